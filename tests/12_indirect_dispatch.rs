//! 12: as many workgroups come as the arguments say, none past the cap if that is checked, and the cap's
//! number if `plan` clamps; a queue that stays on the GPU finds the depths of the CPU's queue.
//!
//! Not proven: what a driver does past the cap if nobody checks.

#[path = "../examples/12_indirect_dispatch.rs"]
mod example;
mod graphs;
mod process;

use std::sync::LazyLock;

use example::{
    Graph, IndirectGpu, MOST_GROUPS, UNSEEN, arc_pieces, arrivals, caught_call, cpu_queue, found,
    grid, holding, planned, rmat, search, setup, upload_graph,
};
use wgpu::BufferUsages;

// Named here, so that the compiler finds a use for all of the example.
const _: fn() = example::main;

const EXAMPLE: process::Example = process::Example {
    name: "12_indirect_dispatch",
    quick: &["5"],
    outside: &["21", "2^20"],
    too_large: &[],
    ids: |_| &["12.1", "12.2", "12.3", "12.4"],
};

const STORAGE: BufferUsages = BufferUsages::STORAGE;
const ARGUMENTS: BufferUsages = STORAGE.union(BufferUsages::INDIRECT);
/// What a workgroup takes of the queue at a time.
const PIECES: u32 = 32;

/// The device that does not check, and the one that does.
static GPUS: LazyLock<[IndirectGpu; 2]> =
    LazyLock::new(|| [false, true].map(|on| setup(on).unwrap()));

/// How many workgroups come of an indirect dispatch by these words, from this byte on.
fn come(gpu: &IndirectGpu, words: &[u32], offset: u64) -> u32 {
    let groups = holding(gpu, "groups", words, BufferUsages::INDIRECT);
    let spare = holding(gpu, "spare", &[0; 3], STORAGE);
    arrivals(gpu, &spare, |pass| pass.dispatch_workgroups_indirect(&groups, offset)).unwrap()
}

#[test]
fn as_many_come_as_are_asked_for() {
    let _turn = process::turn();
    for gpu in &*GPUS {
        for groups in [0, 1, 2, 255, 256, 65534, 65535] {
            assert_eq!(come(gpu, &[groups, 1, 1], 0), groups);
        }
        assert_eq!(come(gpu, &[3, 5, 7], 0), 105);
        assert_eq!(come(gpu, &[1, 65535, 1], 0), 65535);
        assert_eq!(come(gpu, &[1, 1, 65535], 0), 65535);
        assert_eq!(come(gpu, &[3, 0, 7], 0), 0);
    }
}

/// Also at offsets that no storage buffer could be bound at, and at the end of a large buffer.
#[test]
fn the_arguments_may_stand_at_any_multiple_of_four() {
    let _turn = process::turn();
    let mut words = vec![9; 1000];
    for at in [0, 1, 2, 63, 64, 65, 500, 997] {
        words[at..at + 3].copy_from_slice(&[2, 3, 1]);
        for gpu in &*GPUS {
            assert_eq!(come(gpu, &words, 4 * at as u64), 6, "at word {at}");
        }
        words.fill(9);
    }
}

/// Only where it is checked: without, it is not ours to say, nor to try.
#[test]
fn past_the_cap_none_come() {
    let _turn = process::turn();
    for words in [[65536, 1, 1], [1, 65536, 1], [1, 1, 65536], [u32::MAX, 1, 1], [65536, 0, 1]] {
        assert_eq!(come(&GPUS[1], &words, 0), 0, "{words:?}");
    }
}

#[test]
fn the_plan_rounds_up_and_clamps() {
    let _turn = process::turn();
    let cap = MOST_GROUPS * PIECES;
    for gpu in &*GPUS {
        let spare = holding(gpu, "spare", &[0; 3], STORAGE);
        for (pieces, groups) in [
            (0, 0),
            (1, 1),
            (PIECES - 1, 1),
            (PIECES, 1),
            (PIECES + 1, 2),
            (cap - 1, MOST_GROUPS),
            (cap, MOST_GROUPS),
            (cap + 1, MOST_GROUPS),
            (u32::MAX - PIECES, MOST_GROUPS),
        ] {
            let arguments = planned(gpu, pieces);
            let came =
                arrivals(gpu, &spare, |pass| pass.dispatch_workgroups_indirect(&arguments, 0));
            assert_eq!(came.unwrap(), groups, "{pieces} pieces");
        }
    }
}

#[test]
fn each_mistake_is_refused_in_its_own_words() {
    let _turn = process::turn();
    for gpu in &*GPUS {
        let [right, plain, small] =
            [(&[1; 4][..], ARGUMENTS), (&[1; 4], STORAGE), (&[1; 2], ARGUMENTS)]
                .map(|(words, usage)| holding(gpu, "groups", words, usage));
        for (groups, offset, bound, text) in [
            (&plain, 0, &plain, "do not contain required usage flags BufferUsages(INDIRECT)"),
            (&right, 2, &plain, "Indirect buffer offset 2 is not a multiple of 4"),
            (&right, 8, &plain, "12 bytes starting at offset 8 would overrun buffer of size 16"),
            (&small, 0, &plain, "12 bytes starting at offset 0 would overrun buffer of size 8"),
            (&right, 0, &right, "new usage BufferUses(INDIRECT). BufferUses(STORAGE_READ_WRITE)"),
        ] {
            let said = caught_call(gpu, groups, offset, bound).expect_err(text);
            assert!(said.contains(text), "{said}");
            // The next call is no worse for it.
            assert_eq!(caught_call(gpu, &right, 0, &plain), Ok(1));
            assert_eq!(caught_call(gpu, &right, 4, &plain), Ok(1));
        }
    }
}

/// Searches in every way, and returns how many levels there are.
#[track_caller]
fn agree(what: &str, graph: &Graph, source: u32) -> u32 {
    let (exact, levels) = graphs::exact(what, graph, source);
    for (gpu, indirect) in [(&GPUS[0], true), (&GPUS[1], true), (&GPUS[0], false)] {
        let resident = upload_graph(gpu, graph, source).unwrap();
        for batch in [1, 8] {
            // The fixed grid starts all its workgroups in each level, which a CPU takes long for.
            if !indirect && (batch * levels > 100 || exact.len() > 20_000) {
                continue;
            }
            let [found_levels, groups, submits] = search(gpu, &resident, batch, indirect).unwrap();
            let (mut took, mut dispatches) = (0, 0);
            while dispatches < levels {
                dispatches += batch << took.min(3);
                took += 1;
            }
            let what = format!("{what}, from {source}, by {batch}, indirect {indirect}");
            assert_eq!([found_levels, submits], [levels, took], "{what}");
            // Each level that has arcs takes a workgroup.
            assert!(groups >= levels - 1, "{what}: {groups} workgroups");
            let (depths, queued) = found(gpu, &resident).unwrap();
            graphs::equal(&what, &depths, &exact);
            // Each vertex that was reached has queued its pieces, and once.
            let reached = (0..graph.vertices() as u32).filter(|&v| exact[v as usize] != UNSEEN);
            let pieces: usize = reached.map(|vertex| arc_pieces(graph, vertex).count()).sum();
            assert_eq!(queued as usize, pieces, "{what}: pieces");
        }
    }
    levels
}

#[test]
fn a_graph_without_edges_has_one_level() {
    let _turn = process::turn();
    for vertices in [1, 2, 255, 256, 257, 1000] {
        let graph = Graph::new(vertices, &[]);
        for source in [0, vertices as u32 - 1] {
            assert_eq!(agree("no edges", &graph, source), 1);
        }
    }
}

#[test]
fn loops_and_repeated_edges_change_nothing() {
    let _turn = process::turn();
    for (what, graph, source, levels) in graphs::repeated() {
        assert_eq!(agree(what, &graph, source), levels);
    }
}

#[test]
fn components_apart_stay_unseen() {
    let _turn = process::turn();
    let (graph, sources) = graphs::components();
    for source in sources {
        agree("components", &graph, source);
    }
}

/// Around the first submit of 8, the first two, three and four, and one that grows no longer.
#[test]
fn a_path_has_as_many_levels_as_vertices() {
    let _turn = process::turn();
    for vertices in [1, 2, 3, 7, 8, 9, 23, 24, 25, 55, 56, 57, 119, 120, 121, 185] {
        assert_eq!(agree("path", &grid(1, vertices), 0), vertices as u32);
        agree("path, from its middle", &grid(1, vertices), vertices as u32 / 2);
    }
    assert_eq!(agree("path", &grid(1500, 1), 1499), 1500);
}

#[test]
fn a_grid_has_as_many_levels_as_its_sides() {
    let _turn = process::turn();
    for (width, rows) in [(2, 2), (3, 5), (16, 16), (17, 31), (100, 7), (4, 256), (120, 130)] {
        assert_eq!(agree("grid", &grid(width, rows), 0) as usize, width + rows - 1);
    }
    agree("grid, from inside", &grid(33, 31), 500);
}

/// Around a piece of 32 arcs, around 256 pieces, where pieces grow, and around 65535 workgroups of 32
/// pieces, where the plan clamps: then each piece is a leaf.
#[test]
fn a_star_has_two_levels_or_three() {
    let _turn = process::turn();
    for leaves in [1, 31, 32, 33, 255, 256, 257, 8191, 8192, 8193, 65535, 65536, 1_000_000] {
        let star = graphs::star(leaves);
        assert_eq!(agree("star", &star, 0), 2);
        if leaves < 100_000 {
            assert_eq!(agree("star, from a leaf", &star, leaves), if leaves > 1 { 3 } else { 2 });
        }
    }
}

/// A level of more than 65535 workgroups: the clamped ones take the rest as well.
#[test]
fn a_level_past_the_cap_is_searched_whole() {
    let _turn = process::turn();
    let leaves = MOST_GROUPS * PIECES + PIECES + 1;
    let star = graphs::star(leaves);
    let resident = upload_graph(&GPUS[1], &star, 0).unwrap();
    let [levels, groups, _] = search(&GPUS[1], &resident, 2, true).unwrap();
    assert_eq!([levels, groups], [2, 256 / PIECES + MOST_GROUPS]);
    // The fixed grid is clamped as well.
    assert_eq!(search(&GPUS[1], &resident, 2, false).unwrap(), [2, 2 * MOST_GROUPS, 1]);
    assert!(found(&GPUS[1], &resident).unwrap().0 == cpu_queue(&star, 0));
}

/// More vertices than 65535 workgroups have invocations, and no room taken in the queue by most.
#[test]
fn vertices_may_be_more_than_a_dispatch_has_invocations() {
    let _turn = process::turn();
    let (graph, _) = graphs::far_apart();
    assert_eq!(agree("far apart", &graph, 0), 4);
}

#[test]
fn r_mat_has_the_queues_depths() {
    let _turn = process::turn();
    for scale in [0, 1, 5, 8, 10, 11, 12, 14] {
        let graph = rmat(scale);
        let what = format!("R-MAT of scale {scale}");
        agree(&what, &graph, graphs::source(&graph));
        agree(&what, &graph, graph.vertices() as u32 - 1);
    }
    // Without the fixed grid, a larger one.
    let graph = rmat(16);
    let resident = upload_graph(&GPUS[0], &graph, graphs::source(&graph)).unwrap();
    search(&GPUS[0], &resident, 8, true).unwrap();
    assert!(found(&GPUS[0], &resident).unwrap().0 == cpu_queue(&graph, graphs::source(&graph)));
}

/// Few vertices, and edges drawn with a seed: from none to several for each.
#[test]
fn small_random_graphs_have_the_queues_depths() {
    let _turn = process::turn();
    for (what, graph, source) in graphs::random(12, 60) {
        agree(&what, &graph, source);
    }
}

#[test]
fn a_source_out_of_range_is_one_line() {
    let _turn = process::turn();
    for (vertices, source) in [(0, 0), (1, 1), (5, 5), (5, u32::MAX)] {
        let graph = Graph::new(vertices, &[]);
        let error =
            upload_graph(&GPUS[0], &graph, source).err().expect("no such vertex").to_string();
        let line = format!("there is no source {source}: the graph has {vertices} vertices");
        assert_eq!(error, line);
    }
}

/// The planned search takes no more workgroups than there are pieces for; the fixed one takes all, always.
#[test]
fn the_plan_follows_the_levels() {
    let _turn = process::turn();
    let path = grid(1, 500);
    let resident = upload_graph(&GPUS[0], &path, 0).unwrap();
    assert_eq!(search(&GPUS[0], &resident, 8, true).unwrap(), [500, 500, 10]);
    // 500 pieces are 16 workgroups; 8 + 16 + 32 levels, and 7 times 64.
    assert_eq!(search(&GPUS[0], &resident, 8, false).unwrap(), [500, 16 * 504, 10]);
}

/// What one search leaves on the device is no business of the next.
#[test]
fn searches_do_not_disturb_each_other() {
    let _turn = process::turn();
    let (long, short) = (grid(1, 100), grid(10, 10));
    let gpu = &GPUS[0];
    let [a, b] = [&long, &short].map(|graph| upload_graph(gpu, graph, 0).unwrap());
    for (batch, again) in [(1, 32), (32, 1), (7, 7)] {
        search(gpu, &a, batch, true).unwrap();
        search(gpu, &b, again, false).unwrap();
        assert_eq!(search(gpu, &a, again, true).unwrap()[0], 100);
        assert!(found(gpu, &a).unwrap().0 == cpu_queue(&long, 0));
        assert!(found(gpu, &b).unwrap().0 == cpu_queue(&short, 0));
    }
}

#[test]
fn a_graph_past_the_largest_binding_is_an_error() {
    let _turn = process::turn();
    let graph = Graph::new(1 << 25, &[[0, 1]]);
    let error = upload_graph(&GPUS[0], &graph, 0).err().expect("it cannot be bound").to_string();
    assert!(error.contains("134217732 bytes"), "{error}");
    let pairs: Vec<[u32; 2]> = (0..1 << 23).map(|i| [2 * i, 2 * i + 1]).collect();
    let graph = Graph::new(1 << 24, &pairs);
    let error = upload_graph(&GPUS[0], &graph, 0).err().expect("too many pieces").to_string();
    assert!(error.contains("134217736 bytes"), "{error}");
    agree("the next graph", &grid(3, 3), 0);
}

/// The last line's ratio is that of the rows above it, as far as they are printed.
#[test]
fn the_ratio_in_the_notes_is_the_tables() {
    let ended = process::run(EXAMPLE.quick);
    let us = |search: &str| {
        let row = ended.stdout.lines().find(|row| row.starts_with(&format!("| R-MAT | {search} ")));
        let cell = row.and_then(|row| row.split('|').nth(6)).expect("a row with µs");
        cell.trim().parse::<f64>().expect("µs")
    };
    let wanted = us("CPU, a queue").min(us("CPU, all cores")) / us("indirect");
    let (_, printed) = ended.stdout.trim_end().rsplit_once(' ').expect("a last word");
    let printed: f64 = printed.trim_end_matches('×').parse().expect("a ratio");
    assert!((printed - wanted).abs() <= 0.05 * wanted + 0.005, "{printed} is not {wanted}");
}
