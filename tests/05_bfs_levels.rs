//! 05: whatever the graph, and however many levels go into a submit, the depths are those of the
//! CPU's queue.
//!
//! Not proven: that the GPU orders two dispatches always, and not by luck; that a dispatch after the
//! last level is cheap.

#[path = "../examples/05_bfs_levels.rs"]
mod example;
mod graphs;
mod process;

use example::{
    Gpu, Graph, UNSEEN, cpu_queue, depths, grid, measured, rmat, same, search, setup, three_graphs,
    upload,
};

// Named here, so that the compiler finds a use for all of the example.
const _: fn() = example::main;

const EXAMPLE: process::Example = process::Example {
    name: "05_bfs_levels",
    quick: &["5"],
    outside: &["21", "2^20"],
    too_large: &[],
    ids: |_| &["05.1", "05.2", "05.3"],
};

/// One after the other, few, even and odd, and more than most graphs here have levels.
const BATCHES: [usize; 4] = [1, 2, 7, 32];

/// Searches in every way, and returns how many levels there were.
#[track_caller]
fn agree(gpu: &Gpu, what: &str, graph: &Graph, source: u32) -> usize {
    let (exact, levels) = graphs::exact(what, graph, source);
    let levels = levels as usize;
    let resident = upload(gpu, graph, source).unwrap();
    for batch in BATCHES {
        let took = search(gpu, &resident, batch).unwrap();
        let submits = levels.div_ceil(batch);
        assert_eq!(took, [levels, submits * batch, submits], "{what}, from {source}, by {batch}");
        let what = format!("{what}, from {source}, by {batch}");
        graphs::equal(&what, &depths(gpu, &resident).unwrap(), &exact);
    }
    levels
}

/// The queue itself, on a graph small enough to be looked at.
#[test]
fn the_queue_finds_the_shortest_way() {
    let graph = Graph::new(7, &[[0, 1], [1, 2], [2, 3], [3, 0], [3, 4], [5, 6]]);
    assert_eq!(cpu_queue(&graph, 0), [0, 1, 2, 1, 2, UNSEEN, UNSEEN]);
    assert_eq!(cpu_queue(&graph, 4), [2, 3, 2, 1, 0, UNSEEN, UNSEEN]);
    assert_eq!(cpu_queue(&graph, 6), [UNSEEN, UNSEEN, UNSEEN, UNSEEN, UNSEEN, 1, 0]);
}

#[test]
fn a_graph_without_edges_has_one_level() {
    let _turn = process::turn();
    let gpu = setup().unwrap();
    for vertices in [1, 2, 255, 256, 257, 1000] {
        let graph = Graph::new(vertices, &[]);
        for source in [0, vertices as u32 - 1] {
            assert_eq!(agree(&gpu, "no edges", &graph, source), 1);
        }
    }
}

#[test]
fn loops_and_repeated_edges_change_nothing() {
    let _turn = process::turn();
    let gpu = setup().unwrap();
    for (what, graph, source, levels) in graphs::repeated() {
        assert_eq!(agree(&gpu, what, &graph, source), levels as usize);
    }
}

#[test]
fn components_apart_stay_unseen() {
    let _turn = process::turn();
    let gpu = setup().unwrap();
    let (graph, sources) = graphs::components();
    for source in sources {
        agree(&gpu, "components", &graph, source);
    }
}

/// Around a batch of 32, around a workgroup of 256, and past a thousand.
#[test]
fn a_path_has_as_many_levels_as_vertices() {
    let _turn = process::turn();
    let gpu = setup().unwrap();
    for vertices in [1, 2, 3, 31, 32, 33, 63, 64, 65, 255, 256, 257, 1500] {
        assert_eq!(agree(&gpu, "path", &grid(1, vertices), 0), vertices);
        assert_eq!(agree(&gpu, "path", &grid(vertices, 1), vertices as u32 - 1), vertices);
        agree(&gpu, "path, from its middle", &grid(1, vertices), vertices as u32 / 2);
    }
}

#[test]
fn a_grid_has_as_many_levels_as_its_sides() {
    let _turn = process::turn();
    let gpu = setup().unwrap();
    for (width, rows) in [(2, 2), (3, 5), (16, 16), (17, 31), (100, 7), (4, 1024), (500, 600)] {
        assert_eq!(agree(&gpu, "grid", &grid(width, rows), 0), width + rows - 1);
    }
    agree(&gpu, "grid, from inside", &grid(33, 31), 500);
}

/// A hub of a million: one invocation could not go through its arcs on llvmpipe.
#[test]
fn a_star_has_two_levels_or_three() {
    let _turn = process::turn();
    let gpu = setup().unwrap();
    for leaves in [1, 255, 256, 65535, 65536, 1_000_000] {
        let star = graphs::star(leaves);
        assert_eq!(agree(&gpu, "star", &star, 0), 2);
        assert_eq!(agree(&gpu, "star, from a leaf", &star, leaves), if leaves > 1 { 3 } else { 2 });
    }
}

/// More vertices than 65535 workgroups have invocations.
#[test]
fn vertices_may_be_more_than_a_dispatch_has_invocations() {
    let _turn = process::turn();
    let gpu = setup().unwrap();
    let (graph, last) = graphs::far_apart();
    assert_eq!(agree(&gpu, "far apart", &graph, 0), 4);
    assert_eq!(agree(&gpu, "far apart", &graph, last - 1), 4);
}

#[test]
fn r_mat_has_the_queues_depths() {
    let _turn = process::turn();
    let gpu = setup().unwrap();
    for scale in [0, 1, 5, 10, 11, 12, 13, 14, 15, 16, 17, 18] {
        let graph = rmat(scale);
        let what = format!("R-MAT of scale {scale}");
        agree(&gpu, &what, &graph, graphs::source(&graph));
        agree(&gpu, &what, &graph, graph.vertices() as u32 - 1);
    }
}

/// Quarters of 57, 19, 19 and 5 in 100 make few vertices with very many edges; names are shuffled.
#[test]
fn r_mat_is_skewed() {
    let graph = rmat(14);
    let reached = |source: u32| cpu_queue(&graph, source).iter().filter(|&&d| d == 1).count();
    let (mut hub, mut alone) = (0, 0);
    for vertex in 0..graph.vertices() as u32 {
        // Sampled, since each takes a whole search.
        if vertex % 64 == 0 {
            hub = hub.max(reached(vertex));
            alone += usize::from(reached(vertex) == 0);
        }
    }
    assert!(hub > 200, "of 256 vertices, none has more than {hub} neighbours");
    assert!(alone > 10, "of 256 vertices, {alone} have none");
}

/// Few vertices, and edges drawn with a seed: from none to several for each.
#[test]
fn small_random_graphs_have_the_queues_depths() {
    let _turn = process::turn();
    let gpu = setup().unwrap();
    for (what, graph, source) in graphs::random(5, 150) {
        agree(&gpu, &what, &graph, source);
    }
}

#[test]
fn a_source_out_of_range_is_one_line() {
    let _turn = process::turn();
    let gpu = setup().unwrap();
    for (vertices, source) in [(0, 0), (1, 1), (5, 5), (5, u32::MAX)] {
        let graph = Graph::new(vertices, &[]);
        let error = upload(&gpu, &graph, source).err().expect("no such vertex").to_string();
        let line = format!("there is no source {source}: the graph has {vertices} vertices");
        assert_eq!(error, line);
    }
}

/// What one search leaves on the device is no business of the next.
#[test]
fn searches_do_not_disturb_each_other() {
    let _turn = process::turn();
    let gpu = setup().unwrap();
    let (long, short) = (grid(1, 100), grid(10, 10));
    let [a, b] = [&long, &short].map(|graph| upload(&gpu, graph, 0).unwrap());
    for (batch, again) in [(1, 32), (32, 1), (7, 7)] {
        search(&gpu, &a, batch).unwrap();
        search(&gpu, &b, again).unwrap();
        assert_eq!(search(&gpu, &a, again).unwrap()[0], 100);
        assert!(depths(&gpu, &a).unwrap() == cpu_queue(&long, 0));
        assert!(depths(&gpu, &b).unwrap() == cpu_queue(&short, 0));
    }
}

#[test]
fn a_graph_past_the_largest_binding_is_an_error() {
    let _turn = process::turn();
    let gpu = setup().unwrap();
    let graph = Graph::new((1 << 25) + 1, &[[0, 1]]);
    let error = upload(&gpu, &graph, 0).err().expect("it cannot be bound").to_string();
    assert!(error.contains("134217732 bytes"), "{error}");
    agree(&gpu, "the next graph", &grid(3, 3), 0);
}

/// What the lesson stops at, whoever found the depths; the GPU's are looked at before they are timed.
#[test]
fn depths_that_are_not_the_queues_are_an_error() {
    let _turn = process::turn();
    let gpu = setup().unwrap();
    let graph = grid(20, 20);
    let (resident, mut exact) = (upload(&gpu, &graph, 0).unwrap(), cpu_queue(&graph, 0));
    assert!(same("grid", &exact, &exact.clone()).is_ok());
    let line = "grid: the depths are not those of the CPU's queue";
    for vertex in [0, 1, 200, 399] {
        exact[vertex] += 1;
        for batch in [1, 32] {
            let error = measured(&gpu, &resident, ("grid", &exact), batch).unwrap_err();
            assert_eq!(error.to_string(), line, "vertex {vertex}");
        }
        let error = same("grid", &cpu_queue(&graph, 0), &exact).unwrap_err();
        assert_eq!(error.to_string(), line, "vertex {vertex}");
        exact[vertex] -= 1;
    }
    assert!(same("grid", &exact[1..], &exact).is_err(), "one is missing");
}

/// Dispatches and submits are counted in the very searches that are timed.
#[test]
fn a_row_counts_what_it_times() {
    let _turn = process::turn();
    let gpu = setup().unwrap();
    let path = grid(1, 100);
    let (resident, exact) = (upload(&gpu, &path, 0).unwrap(), cpu_queue(&path, 0));
    for (batch, counted) in [(1, [100.0, 100.0]), (32, [128.0, 4.0])] {
        let [us, counts @ ..] = measured(&gpu, &resident, ("path", &exact), batch).unwrap();
        assert!(counts == counted && us > 0.0, "by {batch}: {counts:?} in {us} µs");
    }
}

/// 1024 levels in two of the graphs; one in a submit, then 32. And the notes are the rows', as printed.
#[test]
fn each_search_has_a_row_of_its_own() {
    let _turn = process::turn();
    let printed = &process::quick().stdout;
    let row = |graph: &str, search: &str| -> Vec<f64> {
        let begin = format!("| {graph:<5} | {search:<16} |");
        let row = printed.lines().find_map(|row| row.strip_prefix(&begin)).expect("such a row");
        row.split('|').filter_map(|cell| cell.trim().parse().ok()).collect()
    };
    for graph in ["grid", "path"] {
        assert_eq!(row(graph, "GPU, 1 a submit")[..3], [1024.0, 1024.0, 1024.0], "{graph}");
        assert_eq!(row(graph, "GPU, 32 a submit")[..3], [1024.0, 1024.0, 32.0], "{graph}");
        assert_eq!(row(graph, "CPU, a queue")[..3], [1024.0, 0.0, 0.0], "{graph}");
    }
    let [levels, dispatches, submits, ..] = row("R-MAT", "GPU, 1 a submit")[..] else { panic!() };
    assert_eq!([dispatches, submits], [levels; 2]);
    assert_eq!(row("R-MAT", "GPU, 32 a submit")[..3], [levels, 32.0, 1.0]);
    let noted = |id: &str| -> f64 {
        let (_, rest) = printed.rsplit_once(&format!("{id} measured ")).expect(id);
        rest.split([' ', '×']).next().and_then(|word| word.parse().ok()).expect("a number")
    };
    let near = |id: &str, wanted: f64, off: f64| {
        assert!((noted(id) - wanted).abs() <= off, "{id} is not {wanted} in {printed}");
    };
    near("05.1", row("path", "GPU, 1 a submit")[4], 0.0506);
    near("05.2", row("path", "GPU, 32 a submit")[4], 0.0056);
    let [alone, batched] = ["GPU, 1 a submit", "GPU, 32 a submit"].map(|way| row("R-MAT", way)[3]);
    near("05.3", alone / batched, 0.051 + alone / batched * (0.5 / alone + 0.5 / batched));
}

/// The argument ends before any machine does, so that the function is asked and not the program.
#[test]
fn more_memory_than_there_is_is_refused() {
    let error = three_graphs(50).err().expect("no machine has it").to_string();
    // 32 arcs for each of 2^50 vertices, at 28 bytes: 896 × 2^50 / 2^20.
    assert!(error.starts_with("this takes 962072674304 MiB and"), "{error}");
    assert!(error.contains("give a smaller size"), "{error}");
    let vertices = three_graphs(11).unwrap().map(|(name, graph)| (name, graph.vertices()));
    assert_eq!(vertices, [("R-MAT", 2048), ("grid", 2048), ("path", 1024)]);
}
