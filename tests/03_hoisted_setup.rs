//! 03: hoisting and batching change what a sum costs, never the sum.
//!
//! Not proven: that anything is saved by it; nor, as in 01, that the kernel has a guard.

mod data;
#[path = "../examples/03_hoisted_setup.rs"]
mod example;
mod process;

use data::{SIZES, signed, whole};
use example::Reducer;

// Named here, so that the compiler finds a use for all of the example.
const _: fn() = example::main;

const EXAMPLE: process::Example = process::Example {
    name: "03_hoisted_setup",
    quick: &["0"],
    outside: &["33554433", "2^32"],
    too_large: &[],
    ids: |_| &["03.1", "03.2", "03.3"],
};

#[test]
fn whole_numbers_add_up_exactly_at_every_edge() {
    let _turn = process::turn();
    let reducer = Reducer::new().unwrap();
    for n in SIZES {
        let sum: usize = (0..n).map(|i| 1 + i % 17).sum();
        let resident = reducer.upload(&whole(n)).unwrap();
        assert_eq!(reducer.sum(&resident).unwrap(), sum as f64, "n = {n}");
    }
}

/// The bound: each f32 addition is off by at most 2^-24 of what it gives. An invocation makes a
/// chain of 16 of them, or of its share where there are 65536 invocations; the host adds in f64.
#[test]
fn both_signs_add_up_within_the_bound() {
    let _turn = process::turn();
    let reducer = Reducer::new().unwrap();
    for n in [3, 1000, 65537, 1048577] {
        let data = signed(n);
        let exact: f64 = data.iter().map(|&x| f64::from(x)).sum();
        let absolute: f64 = data.iter().map(|x| f64::from(x.abs())).sum();
        let bound = n.div_ceil(65536).max(16) as f64 / f64::from(1 << 24) * absolute;
        let off = (reducer.sum_streamed(&data).unwrap() - exact).abs();
        assert!(off <= bound, "n = {n}: off by {off}, and rounding explains {bound}");
    }
}

/// Where one f32 total of ones sticks.
#[test]
fn ones_are_all_counted_past_2_to_the_24() {
    let _turn = process::turn();
    let n = (1 << 24) + 1;
    assert_eq!(Reducer::new().unwrap().sum_streamed(&vec![1.0; n]).unwrap(), n as f64);
}

#[test]
fn streamed_is_resident_to_the_bit_and_so_is_a_second_sum() {
    let _turn = process::turn();
    let reducer = Reducer::new().unwrap();
    for n in [0, 1, 257, 65537] {
        let data = signed(n);
        let resident = reducer.upload(&data).unwrap();
        let sum = reducer.sum(&resident).unwrap().to_bits();
        assert_eq!(reducer.sum(&resident).unwrap().to_bits(), sum, "n = {n}, again");
        assert_eq!(reducer.sum_streamed(&data).unwrap().to_bits(), sum, "n = {n}, streamed");
    }
}

#[test]
fn a_sum_after_a_refill_is_that_of_the_new_data() {
    let _turn = process::turn();
    let reducer = Reducer::new().unwrap();
    let resident = reducer.upload(&[1.0; 5000]).unwrap();
    for value in [2.0, -3.0, 0.0] {
        reducer.refill(&resident, &[value; 5000]);
        assert_eq!(reducer.sum(&resident).unwrap(), 5000.0 * f64::from(value));
    }
}

#[test]
fn a_refill_past_the_end_is_the_next_sums_error() {
    let _turn = process::turn();
    let reducer = Reducer::new().unwrap();
    let resident = reducer.upload(&[1.0; 5]).unwrap();
    reducer.refill(&resident, &[1.0; 6]);
    assert!(reducer.sum(&resident).is_err());
    assert_eq!(reducer.sum(&resident).unwrap(), 5.0, "the data that was there");
}

#[test]
fn two_residents_do_not_disturb_each_other() {
    let _turn = process::turn();
    let reducer = Reducer::new().unwrap();
    let [a, b] = [1.0, 2.0].map(|value| reducer.upload(&[value; 5000]).unwrap());
    assert_eq!((reducer.sum(&a).unwrap(), reducer.sum(&b).unwrap()), (5000.0, 10000.0));
    reducer.refill(&a, &[3.0; 5000]);
    assert_eq!((reducer.sum(&b).unwrap(), reducer.sum(&a).unwrap()), (10000.0, 15000.0));
}

#[test]
fn data_past_the_largest_binding_is_an_error() {
    let _turn = process::turn();
    let reducer = Reducer::new().unwrap();
    let error =
        reducer.upload(&vec![0.0; (1 << 25) + 1]).err().expect("it cannot be bound").to_string();
    assert!(error.contains("134217732 bytes"), "{error}");
    assert_eq!(reducer.sum_streamed(&whole(17)).unwrap(), 153.0, "the next call");
}

#[test]
fn a_counter_that_no_step_has_touched_is_at_0() {
    let _turn = process::turn();
    let reducer = Reducer::new().unwrap();
    let counter = reducer.upload(&[]).unwrap();
    assert_eq!(reducer.count(&counter).unwrap(), 0.0);
}

/// Each step needs what the last one wrote: one lost, or begun too early, is missing in the count.
#[test]
fn in_batches_of_every_shape_no_step_is_lost() {
    let _turn = process::turn();
    let reducer = Reducer::new().unwrap();
    let counter = reducer.upload(&[]).unwrap();
    let mut steps = 0.0;
    for (submits, passes, each) in [(1000, 1, 1), (1, 1000, 1), (1, 1, 1000), (10, 10, 10)] {
        for waits in [false, true] {
            for _ in 0..submits {
                reducer.queue.submit([reducer.steps(&counter, passes, each)]);
                // To read the count is to wait for it.
                if waits {
                    reducer.count(&counter).unwrap();
                }
            }
            steps += 1000.0;
            let shape = format!("{submits} submits, {passes} passes, {each} each, waits {waits}");
            assert_eq!(reducer.count(&counter).unwrap(), steps, "{shape}");
        }
    }
}
