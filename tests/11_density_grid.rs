//! 11: however the points lie, each way to count gives every cell the CPU's count, and drops what is
//! outside or NaN.
//!
//! Not proven: that no count is ever lost on an adapter with more workgroups at once than this one; that
//! any of the ways is faster than another; that `cached` uses its counters, since the grid is right without.

#[path = "../examples/11_density_grid.rs"]
mod example;
mod process;

use example::{
    Gpu, KERNELS, Point, SIDE, TILE, cell, cells, count_all, count_bytes, count_one, density,
    groups, points_all_over, points_in_clusters, points_in_one, points_on_the_edge, setup, upload,
};

// Named here, so that the compiler finds a use for all of the example.
const _: fn() = example::main;

const EXAMPLE: process::Example = process::Example {
    name: "11_density_grid",
    quick: &["1000"],
    outside: &["2^26", "33554433"],
    too_large: &[],
    ids: |_| &["11.1", "11.2", "11.3", "11.4"],
};

/// Around a workgroup, around what four points for each of its lanes are, and around two workgroups.
const SIZES: [usize; 14] =
    [0, 1, 2, 255, 256, 257, 1023, 1024, 1025, 4095, 4096, 4097, 8193, 100_003];

/// Counts in every way, each into cells of its own, and returns how many points are inside.
#[track_caller]
fn agree(gpu: &Gpu, what: &str, points: &[Point]) -> u32 {
    let exact = count_one(points);
    assert!(count_all(points) == exact, "{what}, all cores");
    for (kernel, (name, _)) in KERNELS.into_iter().enumerate() {
        let resident = upload(gpu, points).unwrap();
        // The second time, what the first has left must not count.
        for time in ["first", "second"] {
            let micros = density(gpu, kernel, &resident).unwrap();
            assert!(micros.is_finite() && micros > 0.0, "{name} took {micros} µs");
            let counted = cells(gpu, &resident).unwrap();
            let wrong = (0..exact.len()).find(|&cell| counted[cell] != exact[cell]);
            let pair = wrong.map(|cell| [counted[cell], exact[cell]]);
            assert!(wrong.is_none(), "{what}, {name}, {time} time: cell {wrong:?} has {pair:?}");
        }
    }
    exact.iter().sum()
}

/// The middle of a cell.
fn middle(column: u32, row: u32) -> Point {
    [column, row].map(|at| (at as f32 + 0.5) / SIDE as f32)
}

#[test]
fn the_cpu_drops_what_is_outside_and_keeps_the_edge() {
    let (last, below_1) = ((SIDE * SIDE - 1) as usize, 1.0f32.next_down());
    for (point, wanted) in [
        ([0.0, 0.0], Some(0)),
        ([-0.0, -0.0], Some(0)),
        ([f32::from_bits(1), 0.0], Some(0)),
        ([-f32::from_bits(1), 0.0], None),
        ([below_1, below_1], Some(last)),
        ([1.0, 0.5], None),
        ([0.5, 1.0], None),
        ([1.0 / 2048.0, 0.0], Some(1)),
        ([(1.0f32 / 2048.0).next_down(), 0.0], Some(0)),
        ([0.0, 1.0 / 2048.0], Some(2048)),
        ([f32::NAN, 0.5], None),
        ([0.5, -f32::NAN], None),
        ([f32::INFINITY, 0.5], None),
        ([0.5, f32::NEG_INFINITY], None),
        ([0.5, f32::MAX], None),
    ] {
        assert_eq!(cell(point), wanted, "{point:?}");
    }
}

#[test]
fn all_cores_count_as_one_does() {
    for n in SIZES {
        assert!(count_all(&points_all_over(n)) == count_one(&points_all_over(n)), "n = {n}");
    }
}

#[test]
fn every_size_is_counted_whole() {
    let _turn = process::turn();
    let gpu = setup().unwrap();
    for n in SIZES {
        assert_eq!(agree(&gpu, &format!("{n} all over"), &points_all_over(n)), n as u32);
        assert_eq!(agree(&gpu, &format!("{n} in one cell"), &points_in_one(n)), n as u32);
        agree(&gpu, &format!("{n} in clusters"), &points_in_clusters(n));
    }
}

/// All in one cell: in the corners of the grid, and on both sides of a tile's edges.
#[test]
fn any_one_cell_takes_all() {
    let _turn = process::turn();
    let gpu = setup().unwrap();
    let (n, last) = (5000, SIDE - 1);
    for (column, row) in
        [(0, 0), (last, 0), (0, last), (last, last), (TILE - 1, TILE), (TILE, TILE - 1), (31, 33)]
    {
        let points = vec![middle(column, row); n];
        assert_eq!(agree(&gpu, &format!("all in {column}, {row}"), &points), n as u32);
    }
}

/// More points in a cell than 16 bits count, and more than 65535 invocations take one each.
#[test]
fn a_cell_may_have_very_many() {
    let _turn = process::turn();
    let gpu = setup().unwrap();
    assert_eq!(agree(&gpu, "2^18 + 1 in one cell", &points_in_one((1 << 18) + 1)), (1 << 18) + 1);
}

#[test]
fn outside_and_nan_are_dropped_in_every_way() {
    let _turn = process::turn();
    let gpu = setup().unwrap();
    let edges = points_on_the_edge();
    let inside = edges.iter().filter(|&&point| cell(point).is_some()).count();
    assert_eq!(agree(&gpu, "edges", &edges) as usize, inside);
    // Among others, and alone: then nothing is counted anywhere.
    agree(&gpu, "edges among others", &[points_all_over(3000), edges.clone()].concat());
    let outside: Vec<_> = edges.into_iter().filter(|&point| cell(point).is_none()).collect();
    assert_eq!(agree(&gpu, "outside alone", &outside), 0);
    assert_eq!(agree(&gpu, "NaN alone", &[[f32::NAN; 2]; 257]), 0);
}

/// Each boundary between two cells, and the f32 on either side of it: both ways, and out of range too.
#[test]
fn every_boundary_is_where_the_cpu_has_it() {
    let _turn = process::turn();
    let gpu = setup().unwrap();
    let boundary = |k: u32| {
        let at = k as f32 / SIDE as f32;
        [at.next_down(), at, at.next_up()]
    };
    let line: Vec<f32> = (0..=SIDE).flat_map(boundary).collect();
    let columns: Vec<Point> = line.iter().map(|&x| [x, 0.3]).collect();
    let rows: Vec<Point> = line.iter().map(|&y| [0.7, y]).collect();
    // Of 3 × 2049 numbers three are outside: the one below 0, 1 and the one after.
    let inside = 3 * SIDE;
    assert_eq!(agree(&gpu, "columns", &columns), inside);
    assert_eq!(agree(&gpu, "rows", &rows), inside);
    let both: Vec<Point> = line.iter().map(|&at| [at, at]).collect();
    assert_eq!(agree(&gpu, "the diagonal", &both), inside);
}

/// All kinds of f32, drawn by their bits: NaN with every payload, infinities, and numbers too small or too
/// large for anything.
#[test]
fn any_bits_are_a_point() {
    let _turn = process::turn();
    let gpu = setup().unwrap();
    let mut state = 11u64;
    let mut bits = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 32) as u32
    };
    let wild: Vec<Point> = (0..1 << 16).map(|_| [bits(), bits()].map(f32::from_bits)).collect();
    agree(&gpu, "any bits", &wild);
    // Exponents close to the square's, so that many are inside.
    let near = |bits: u32| f32::from_bits(bits & 0x8fff_ffff | 0x3000_0000);
    let near: Vec<Point> = (0..1 << 16).map(|_| [bits(), bits()].map(near)).collect();
    assert!(agree(&gpu, "bits near 1", &near) > 1000);
}

/// Cells whose places in the cache are the same: of each place only one can hold it, and the others
/// must go past it.
#[test]
fn cells_that_want_one_counter_are_all_counted() {
    let _turn = process::turn();
    let gpu = setup().unwrap();
    for (columns, rows) in [(32, 64), (32, 0), (0, 64), (64, 64)] {
        let point = |k: u32| middle(5 + k % 30 * columns, 7 + k / 7 % 30 * rows);
        let points: Vec<Point> = (0..20_000).map(point).collect();
        assert_eq!(agree(&gpu, &format!("{columns} × {rows} apart"), &points), 20_000);
    }
}

/// One point in each of very many cells: no counter is shared, and every tile has some.
#[test]
fn every_cell_counts_its_own() {
    let _turn = process::turn();
    let gpu = setup().unwrap();
    let points: Vec<Point> =
        (0..1 << 18).map(|k| middle(k % 512 * 4 + k / 512 % 4, k / 512 * 4 + k % 4)).collect();
    assert_eq!(agree(&gpu, "one each", &points), 1 << 18);
}

#[test]
fn the_groups_are_as_few_as_will_do() {
    for (n, wanted) in
        [(0, 1), (1, 1), (4096, 1), (4097, 2), (2112 * 4096, 2112), (2112 * 4096 + 1, 2112)]
    {
        assert_eq!(groups(n), wanted, "n = {n}");
    }
    // A workgroup of the cache counts to 2^20 - 1 at most, and has fewer points than that.
    assert!((1u64 << 25).div_ceil(u64::from(groups(1 << 25))) < (1 << 20) - 1);
}

/// Of a point: 8 B on the host, staged and on the device, and 4 B binned.
#[test]
fn the_memory_asked_for_grows_with_the_points() {
    assert_eq!(count_bytes(1 << 24) - count_bytes(0), 28 << 24);
}

/// The last line's ratios are those of the rows above it, as far as they are printed.
#[test]
fn the_ratios_in_the_notes_are_the_tables() {
    let ended = process::run(EXAMPLE.quick);
    let us = |set: &str, by: &str| {
        let begin = format!("| {set:<8} | {by:<14} |");
        let row = ended.stdout.lines().find(|row| row.starts_with(&begin)).expect("a row");
        row.split('|').nth(3).expect("a third cell").trim().parse::<f64>().expect("µs")
    };
    let [flat, one] = ["all over", "one cell"].map(|set| us(set, "flat"));
    let last = ended.stdout.lines().last().expect("a last line");
    for (id, wanted) in [
        ("11.1", one / flat),
        ("11.2", us("clusters", "flat") / us("clusters", "cached")),
        ("11.3", one / us("one cell", "cached")),
        ("11.4", flat / us("all over", "tiled")),
    ] {
        let (_, rest) = last.split_once(&format!("{id} measured ")).expect("its id");
        let printed = rest.split('×').next().and_then(|number| number.parse::<f64>().ok());
        let printed = printed.expect("a ratio");
        assert!((printed - wanted).abs() <= 0.02 * wanted + 0.005, "{id}: {printed}, not {wanted}");
    }
}
