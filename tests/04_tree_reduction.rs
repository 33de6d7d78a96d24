//! 04: every kernel brings n elements to the CPU's sum, whatever is left over at the ends, and the
//! tree to the same bits each time.
//!
//! Not proven: that the barriers are where they must be, since the lanes may happen to run in step
//! where one is missing; that the tails have guards, since past the end an adapter may read 0
//! (llvmpipe does, SwiftShader does not); that `copy` copies, for nothing reads what it wrote.

use std::io::Write;
use std::ops::Range;
use std::sync::Once;

mod data;
#[path = "../examples/04_tree_reduction.rs"]
mod example;
mod process;

use data::{SIZES, signed, whole};
use example::{Gpu, KERNELS, bound, groups, setup, sum, upload};

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
