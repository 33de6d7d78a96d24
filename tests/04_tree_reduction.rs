//! 04: every kernel brings n elements to the CPU's sum, whatever is left over at the ends, and the
//! tree to the same bits each time.
//!
//! Not proven: that the barriers are where they must be, since the lanes may happen to run in step
//! where one is missing; that the tails have guards, since past the end an adapter may read 0
//! (llvmpipe does, SwiftShader does not); that a rate is the memory's: only its arithmetic is.

use std::collections::BTreeSet;
use std::io::Write;
use std::ops::Range;
use std::sync::Once;

mod data;
#[path = "../examples/04_tree_reduction.rs"]
mod example;
mod process;

use data::{SIZES, signed, whole};
use example::{Gpu, KERNELS, Resident, bound, groups, off_by, read, setup, sum, upload};

// Named here, so that the compiler finds a use for all of the example.
const _: fn() = example::main;

const EXAMPLE: process::Example = process::Example {
    name: "04_tree_reduction",
    quick: &["1000"],
    outside: &[],
    too_large: &["2^32"],
    ids: |printed| {
        let none = printed.contains("04.3 measured none");
        assert_eq!(none, printed.contains("needs float atomics"), "{printed}");
        &["04.1", "04.2", "04.3"]
    },
};

/// The numbers of the kernels that sum, without the atomics, which come last, where there are none.
fn sums(gpu: &Gpu) -> Range<usize> {
    static TOLD: Once = Once::new();
    if gpu.kernels.len() < KERNELS.len() {
        // Not `eprintln!`, which a test keeps to itself until it has failed.
        let line = "04: 1 of 6 kernels skipped, for want of float atomics";
        TOLD.call_once(|| _ = writeln!(std::io::stderr(), "{line}"));
    }
    1..gpu.kernels.len()
}

/// The number of the kernel of that name.
fn kernel(name: &str) -> usize {
    KERNELS.iter().position(|kernel| kernel.0 == name).unwrap()
}

#[test]
fn whole_numbers_add_up_exactly_at_every_edge() {
    let _turn = process::turn();
    let gpu = setup().unwrap();
    for n in SIZES {
        let resident = upload(&gpu, &whole(n)).unwrap();
        let exact: usize = (0..n).map(|i| 1 + i % 17).sum();
        for kernel in sums(&gpu) {
            let (sum, _) = sum(&gpu, kernel, &resident).unwrap();
            assert_eq!(sum, exact as f32, "{}, n = {n}", KERNELS[kernel].0);
        }
    }
}

/// Up to 2112 workgroups, one has a round of 4096 elements to itself; past that it takes two.
#[test]
fn many_takes_all_of_the_data_when_there_are_no_more_groups() {
    let _turn = process::turn();
    let gpu = setup().unwrap();
    for n in [2112 * 4096 - 1, 2112 * 4096 + 1, 2112 * 4096 + 4_000_003] {
        let resident = upload(&gpu, &vec![1.0; n]).unwrap();
        assert_eq!(sum(&gpu, kernel("many"), &resident).unwrap().0, n as f32, "n = {n}");
    }
}

/// The bound is the example's: 2^-24 of the absolute values for each addition in the longest chain.
#[test]
fn both_signs_add_up_within_the_bound() {
    let _turn = process::turn();
    let gpu = setup().unwrap();
    for n in [3, 1000, 65537, 262147] {
        let data = signed(n);
        let resident = upload(&gpu, &data).unwrap();
        let exact: f64 = data.iter().map(|&x| f64::from(x)).sum();
        let absolute: f64 = data.iter().map(|x| f64::from(x.abs())).sum();
        for kernel in sums(&gpu) {
            let (sum, _) = sum(&gpu, kernel, &resident).unwrap();
            let (off, bound) = ((f64::from(sum) - exact).abs(), bound(kernel, n as u64, absolute));
            let name = KERNELS[kernel].0;
            assert!(off <= bound, "{name}, n = {n}: off by {off}, and rounding explains {bound}");
        }
    }
}

#[test]
fn the_tree_gives_the_same_bits_each_time() {
    let _turn = process::turn();
    let gpu = setup().unwrap();
    let data = signed(65537);
    let [first, second] = [(); 2].map(|()| upload(&gpu, &data).unwrap());
    for name in ["one_each", "four_in_a_row", "four_strided", "many"] {
        let bits = |resident| sum(&gpu, kernel(name), resident).unwrap().0.to_bits();
        let once = bits(&first);
        assert_eq!(bits(&first), once, "{name}, again");
        assert_eq!(bits(&second), once, "{name}, uploaded again");
    }
}

/// It writes where the others' partials are, and none of them may take it for its own.
#[test]
fn a_copy_between_two_sums_changes_neither() {
    let _turn = process::turn();
    let gpu = setup().unwrap();
    let resident = upload(&gpu, &whole(65537)).unwrap();
    let exact: usize = (0..65537).map(|i| 1 + i % 17).sum();
    for kernel in sums(&gpu) {
        let (nothing, _) = sum(&gpu, self::kernel("copy"), &resident).unwrap();
        let (sum, _) = sum(&gpu, kernel, &resident).unwrap();
        assert_eq!((nothing, sum), (0.0, exact as f32), "{}", KERNELS[kernel].0);
    }
}

#[test]
fn every_time_is_one() {
    let _turn = process::turn();
    let gpu = setup().unwrap();
    let resident = upload(&gpu, &whole(4097)).unwrap();
    for kernel in sums(&gpu).chain([kernel("copy")]) {
        let (_, micros) = sum(&gpu, kernel, &resident).unwrap();
        assert!(micros.is_finite() && micros > 0.0, "{} took {micros} µs", KERNELS[kernel].0);
    }
}

#[test]
fn more_groups_than_a_dispatch_may_have_are_an_error() {
    let _turn = process::turn();
    let gpu = setup().unwrap();
    let resident = upload(&gpu, &vec![1.0; 65535 * 256 + 1]).unwrap();
    let error = sum(&gpu, kernel("one_each"), &resident).expect_err("65536 groups").to_string();
    assert!(error.contains("65536"), "{error}");
    assert_eq!(sum(&gpu, kernel("many"), &resident).unwrap().0, 16776961.0, "the next call");
}

#[test]
fn the_groups_are_as_few_as_will_do() {
    for (each, n, wanted) in [
        (1, 0, 1),
        (1, 1, 1),
        (1, 256, 1),
        (1, 257, 2),
        (1, 65535 * 256, 65535),
        (1, 65535 * 256 + 1, 65536),
        (4, 1024, 1),
        (4, 1025, 2),
        (0, 4096, 1),
        (0, 4097, 2),
        (0, 2112 * 4096, 2112),
        (0, 2112 * 4096 + 1, 2112),
        (0, 1 << 32, 2112),
    ] {
        assert_eq!(groups(each, n), wanted, "{each} each, n = {n}");
    }
}

/// So many of the f32 that the last kernel left.
fn left(gpu: &Gpu, resident: &Resident, count: usize) -> Vec<f32> {
    let readback = gpu.device.create_buffer(&wgpu::BufferDescriptor {
        label: Some("partials, read back"),
        size: count as u64 * 4,
        usage: wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::MAP_READ,
        mapped_at_creation: false,
    });
    let mut encoder = gpu.device.create_command_encoder(&Default::default());
    encoder.copy_buffer_to_buffer(&resident.partials, 0, &readback, 0, readback.size());
    gpu.queue.submit([encoder.finish()]);
    read(&gpu.device, &gpu.errors, &readback).unwrap()
}

/// What its rate is claimed for: every whole vec4 of the data; the scalars behind them stay behind.
#[test]
fn a_copy_copies_every_vec4() {
    let _turn = process::turn();
    let gpu = setup().unwrap();
    for n in [1, 3, 4, 5, 1023, 4095, 4096, 4097, 8193, 65537, 262147] {
        // None of them is zero, as all of the copy is at first.
        let data = whole(n);
        let resident = upload(&gpu, &data).unwrap();
        sum(&gpu, kernel("copy"), &resident).unwrap();
        let (copied, wanted) = (left(&gpu, &resident, n), n / 4 * 4);
        let wrong = (0..wanted).find(|&i| copied[i] != data[i]);
        assert_eq!(wrong, None, "the first wrong element of {n}");
        assert!(copied[wanted..].iter().all(|&x| x == 0.0), "past the last vec4 of {n}");
    }
}

/// Additions in the longest chain, counted by hand: an invocation's own, then 8 in the workgroup's
/// tree, an invocation's own in `finish`, 8 in its tree, and 2 to spare for the vec4's and the tail's.
/// With a total of 2^24 and 2^-24 of it for each, the bound is their number.
#[test]
fn the_bound_counts_the_additions() {
    for (name, n, additions) in [
        // 256 workgroups; in `finish`, one partial each.
        ("one_each", 65536, 1 + 8 + 1 + 8 + 2),
        // 64 workgroups, fewer than `finish` has invocations.
        ("four_in_a_row", 65536, 4 + 8 + 8 + 2),
        ("four_strided", 65536, 4 + 8 + 8 + 2),
        // 16 workgroups of 256 invocations: 16 elements each.
        ("many", 65536, 16 + 8 + 8 + 2),
        // 2112 workgroups and no more: twice as many elements each; 8 rounds in `finish`.
        ("many", 2 * 2112 * 4096, 32 + 8 + 8 + 8 + 2),
        // No tree: each of 4096 invocations adds its 16, then all of them to one total.
        ("atomics", 65536, 16 + 4096 + 2),
    ] {
        let bound = bound(kernel(name), n, f64::from(1 << 24));
        assert_eq!(bound, f64::from(additions), "{name}, n = {n}");
    }
}

/// What the lesson stops at: of all sums that a kernel gave, the one that is furthest off decides.
#[test]
fn a_sum_past_its_bound_is_an_error() {
    let exact = f64::from(1 << 20);
    let sums = |off: &[f32]| BTreeSet::from_iter(off.iter().map(|&x| (exact as f32 + x).to_bits()));
    for (kernel, (name, _)) in KERNELS.iter().enumerate().skip(1) {
        let bound = bound(kernel, 65536, exact);
        let most = bound.floor() as f32;
        let near = [0.0, most, -most / 2.0];
        let found = off_by(kernel, 65536, exact, &sums(&near)).unwrap();
        assert_eq!(found, [f64::from(most), bound], "{name}");
        for far in [most + 1.0, -most - 1.0, f32::INFINITY, f32::NAN] {
            let error = off_by(kernel, 65536, exact, &sums(&[0.0, far, 0.0, most]));
            let error = error.expect_err("it is off").to_string();
            assert!(error.starts_with(name), "{error}");
            assert!(error.contains("rounding explains"), "off by {far}: {error}");
        }
    }
}

/// A rate is bytes through µs: of a copy all that it reads and writes, of a sum what it reads. And the
/// bound is that of all the data: the elements lie evenly in (0, 1], and their sum near n / 2.
#[test]
fn the_rates_and_bounds_are_those_of_all_the_bytes() {
    let _turn = process::turn();
    let n = 65536.0;
    let printed = process::run(&["65536"]).stdout;
    let row = |name: &str| -> Option<Vec<f64>> {
        let row = printed.lines().find(|row| row.starts_with(&format!("| {name} ")))?;
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        // A row that says what it needs has no figures.
        let number = |cell: &&str| cell.trim_end_matches('%').parse().ok();
        (cells.len() == 10).then(|| cells[2..9].iter().filter_map(number).collect())
    };
    let near = |what: &str, found: f64, wanted: f64, off: f64| {
        assert!((found - wanted).abs() <= off, "{what}: {found}, not {wanted}, in {printed}");
    };
    let copy = row("copy").expect("it needs nothing");
    for (name, moved, groups, additions) in [
        ("copy", 2.0, 16.0, None),
        ("one_each", 1.0, 256.0, Some(20.0)),
        ("four_in_a_row", 1.0, 64.0, Some(22.0)),
        ("four_strided", 1.0, 64.0, Some(22.0)),
        ("many", 1.0, 16.0, Some(34.0)),
        ("atomics", 1.0, 16.0, Some(4114.0)),
    ] {
        let row = row(name);
        let Some(&[found, us, rate, share, ref rest @ ..]) = row.as_deref() else {
            assert_eq!(name, "atomics", "no figures in {printed}");
            continue;
        };
        assert_eq!(found, groups, "groups of {name}");
        // Half of the last digit printed, and what the µs have lost by theirs.
        let (wanted, lost) = (moved * 4.0 * n / us / 1e3, 0.06 / us);
        near(&format!("{name}, GB/s"), rate, wanted, 0.0051 + lost * wanted);
        let wanted = 100.0 * moved / 2.0 * copy[1] / us;
        near(&format!("{name}, share"), share, wanted, 0.51 + (lost + 0.06 / copy[1]) * wanted);
        if let Some(additions) = additions {
            // Two digits are printed, and the sum of these random elements is not n / 2 to the bit.
            let wanted = additions / f64::from(1 << 24) * n / 2.0;
            near(&format!("{name}, bound"), rest[1], wanted, 0.07 * wanted);
        }
    }
}
