//! 02: however a call is taken apart, its sum is the CPU's and its parts are times.
//!
//! Not proven: that each part is what it is called. Whether the upload is booked as the kernel's
//! shows in microseconds only, and those no test asserts. Nor that the kernel has a guard: see 01.

mod data;
#[path = "../examples/02_fixed_tax.rs"]
mod example;
mod process;

use data::{SIZES, signed, whole};
use example::{agree, call, setup};

// Named here, so that the compiler finds a use for all of the example.
const _: fn() = example::main;

const EXAMPLE: process::Example = process::Example {
    name: "02_fixed_tax",
    quick: &["14"],
    outside: &["0", "13", "26"],
    too_large: &[],
    ids: |_| &["02.1", "02.2"],
};

/// Not taken apart; stamped; stamped, with the upload flushed before.
const APART: [Option<bool>; 3] = [None, Some(false), Some(true)];

#[test]
fn whole_numbers_add_up_exactly_at_every_edge() {
    let _turn = process::turn();
    let gpu = setup().unwrap();
    for n in SIZES {
        let sum: usize = (0..n).map(|i| 1 + i % 17).sum();
        assert_eq!(call(&gpu, &whole(n), None).unwrap().0, sum as f64, "n = {n}");
    }
}

/// The bound: each f32 addition is off by at most 2^-24 of what it gives. An invocation makes a
/// chain of 16 of them, or of its share where there are 65536 invocations; the host adds in f64.
#[test]
fn both_signs_add_up_within_the_bound() {
    let _turn = process::turn();
    let gpu = setup().unwrap();
    for n in [3, 1000, 65537, 1048577] {
        let data = signed(n);
        let exact: f64 = data.iter().map(|&x| f64::from(x)).sum();
        let absolute: f64 = data.iter().map(|x| f64::from(x.abs())).sum();
        let bound = n.div_ceil(65536).max(16) as f64 / f64::from(1 << 24) * absolute;
        let off = (call(&gpu, &data, None).unwrap().0 - exact).abs();
        assert!(off <= bound, "n = {n}: off by {off}, and rounding explains {bound}");
    }
}

#[test]
fn taking_a_call_apart_changes_no_bit_of_its_sum() {
    let _turn = process::turn();
    let gpu = setup().unwrap();
    for n in [0, 1, 257, 65537] {
        let data = signed(n);
        let [whole, stamped, flushed] = APART.map(|apart| call(&gpu, &data, apart).unwrap().0);
        assert_eq!(whole.to_bits(), stamped.to_bits(), "n = {n}, stamped");
        assert_eq!(whole.to_bits(), flushed.to_bits(), "n = {n}, flushed");
    }
}

/// `beyond` is what the wall's clock shows past the GPU's: below 0 if the GPU's shows more.
#[test]
fn every_part_is_a_time() {
    let _turn = process::turn();
    let gpu = setup().unwrap();
    for n in [0, 1, 4097, 262147] {
        for apart in APART {
            let (_, parts) = call(&gpu, &whole(n), apart).unwrap();
            for (name, part) in ["upload", "encode", "GPU", "beyond", "map"].into_iter().zip(parts)
            {
                assert!(part.is_finite() && part >= 0.0, "n = {n}, {apart:?}: {name} is {part} µs");
            }
        }
    }
}

#[test]
fn data_past_the_largest_binding_is_an_error() {
    let _turn = process::turn();
    let gpu = setup().unwrap();
    let past = vec![0.0; (1 << 25) + 1];
    for apart in APART {
        let error = call(&gpu, &past, apart).expect_err("it cannot be bound").to_string();
        assert!(error.contains("134217732"), "{apart:?}: {error}");
    }
}

/// One call's errors are not the next one's.
#[test]
fn a_call_after_one_that_failed_is_right() {
    let _turn = process::turn();
    let gpu = setup().unwrap();
    assert!(call(&gpu, &vec![0.0; (1 << 25) + 1], None).is_err());
    assert_eq!(call(&gpu, &whole(17), None).unwrap().0, 153.0);
}

/// What the lesson stops at: a sum that rounding does not explain.
#[test]
fn a_sum_that_is_off_does_not_agree() {
    let data = whole(100);
    let exact: f64 = data.iter().map(|&x| f64::from(x)).sum();
    assert!(agree(exact, &data).is_ok());
    for off in [1.0, -1.0, f64::NAN] {
        let error = agree(exact + off, &data).expect_err("it is off").to_string();
        assert!(error.contains("rounding explains"), "{error}");
    }
}
