//! The graphs that 05 and 12 are tested on, beside those that their own generators make.

use super::example::{Graph, UNSEEN, cpu_levels, cpu_queue};

/// The depths by the CPU's queue, with which all cores agree, and how many levels they have.
#[track_caller]
pub fn exact(what: &str, graph: &Graph, source: u32) -> (Vec<u32>, u32) {
    let exact = cpu_queue(graph, source);
    assert!(cpu_levels(graph, source) == exact, "{what}, from {source}: all cores");
    let deepest = exact.iter().filter(|&&depth| depth != UNSEEN).max();
    let levels = deepest.expect("the source has a depth") + 1;
    (exact, levels)
}

#[track_caller]
pub fn equal(what: &str, depths: &[u32], exact: &[u32]) {
    let wrong = (0..exact.len()).find(|&vertex| depths[vertex] != exact[vertex]);
    assert_eq!(wrong, None, "{what}: the first wrong vertex");
}

/// The first vertex that has an edge.
pub fn source(graph: &Graph) -> u32 {
    let exact = |&vertex: &u32| cpu_queue(graph, vertex).contains(&1);
    (0..graph.vertices() as u32).find(exact).unwrap_or(0)
}

/// Loops and repeated edges; what they are, the graph, a source, and its levels.
pub fn repeated() -> [(&'static str, Graph, u32, u32); 4] {
    let plain: Vec<[u32; 2]> = (0..40).map(|vertex| [vertex, vertex + 1]).collect();
    let mut edges = plain.repeat(3);
    edges.extend((0..=40).map(|vertex| [vertex, vertex]));
    edges.extend(plain.iter().map(|&[a, b]| [b, a]));
    let apart = || Graph::new(3, &[[1, 1], [1, 2]]);
    [
        ("repeated", Graph::new(41, &edges), 0, 41),
        ("a loop alone", Graph::new(1, &[[0, 0]]), 0, 1),
        ("a vertex apart", apart(), 0, 1),
        ("a vertex apart", apart(), 2, 2),
    ]
}

/// Triangles, and pairs, and a vertex alone now and then; with sources.
pub fn components() -> (Graph, [u32; 4]) {
    let edges: Vec<[u32; 2]> = (0..3000)
        .filter(|vertex| vertex % 7 != 6)
        .flat_map(|vertex| [[vertex, vertex / 7 * 7 + vertex % 3], [vertex, vertex / 7 * 7]])
        .collect();
    (Graph::new(3000, &edges), [0, 5, 6, 2999])
}

/// A hub, vertex 0, and its leaves.
pub fn star(leaves: u32) -> Graph {
    let edges: Vec<[u32; 2]> = (1..=leaves).map(|leaf| [0, leaf]).collect();
    Graph::new(leaves as usize + 1, &edges)
}

/// More vertices than 65535 workgroups have invocations, four of them on a path; the last one's number.
pub fn far_apart() -> (Graph, u32) {
    let vertices = 65535 * 256 + 2;
    let last = vertices as u32 - 1;
    (Graph::new(vertices, &[[0, last], [last, 1], [1, last - 1]]), last)
}

/// Few vertices, and edges drawn with a seed, from none to 2.5 for each; with sources.
pub fn random(seed: u64, rounds: usize) -> impl Iterator<Item = (String, Graph, u32)> {
    let mut state = seed;
    let mut below = move |n: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (((state >> 32) * n as u64) >> 32) as usize
    };
    (0..rounds).map(move |round| {
        let vertices = 1 + below(300);
        let mut end = || below(vertices) as u32;
        let source = end();
        let edges = 5 * round * vertices / (2 * rounds);
        let edges: Vec<[u32; 2]> = (0..edges).map(|_| [end(), end()]).collect();
        (format!("random graph {round}"), Graph::new(vertices, &edges), source)
    })
}
