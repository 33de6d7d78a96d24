//! 01: the GPU's sum is the CPU's, for every n, and the rungs are the twelve, in their order.
//!
//! Not proven: what a rung should cost; that another adapter adds as well; that the kernel has a
//! guard, since past the end an adapter may read 0 (llvmpipe does, SwiftShader does not).

use std::sync::{LazyLock, MutexGuard};

mod data;
#[path = "../examples/01_object_ladder.rs"]
mod example;
mod process;

use data::{SIZES, signed, whole};
use example::{climb, cpu_all, cpu_one, exact_sum, memory};

/// The turn, with the driver loaded and kept: some drivers give up once they have been loaded anew
/// for one climb after another.
fn turn() -> MutexGuard<'static, ()> {
    static DRIVER: LazyLock<wgpu::Instance> = LazyLock::new(|| {
        wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle_from_env())
    });
    LazyLock::force(&DRIVER);
    process::turn()
}

// Named here, so that the compiler finds a use for all of the example.
const _: fn() = example::main;

const EXAMPLE: process::Example = process::Example {
    name: "01_object_ladder",
    quick: &["1000"],
    outside: &["33554433"],
    too_large: &[],
    ids: |_| &["01.1", "01.2"],
};

/// Each f32 addition is off by at most 2^-24 of what it gives, and a chain of them leads to each
/// partial sum: in all, at most 2^-24 of the absolute values' sum for each link of the chain.
fn bound(chain: usize, data: &[f32]) -> f64 {
    let absolute: f64 = data.iter().map(|x| f64::from(x.abs())).sum();
    chain as f64 / f64::from(1 << 24) * absolute
}

#[test]
fn whole_numbers_add_up_exactly_at_every_edge() {
    let _turn = turn();
    for n in SIZES {
        let data = whole(n);
        let sum: usize = (0..n).map(|i| 1 + i % 17).sum();
        assert_eq!(climb(&data).unwrap().sum, sum as f64, "GPU, n = {n}");
        assert_eq!(exact_sum(&data), sum as f64, "CPU in f64, n = {n}");
        assert_eq!(cpu_one(&data), sum as f32, "CPU, n = {n}");
        assert_eq!(cpu_all(&data), sum as f32, "CPU on all cores, n = {n}");
    }
}

#[test]
fn both_signs_add_up_within_the_bound() {
    let _turn = turn();
    for n in [3, 1000, 65537, 1048577] {
        let data = signed(n);
        let exact = exact_sum(&data);
        // An invocation has at most 16 elements, or its share where there are 65536 invocations.
        let (off, most) =
            ((climb(&data).unwrap().sum - exact).abs(), bound(n.div_ceil(65536).max(16), &data));
        assert!(off <= most, "n = {n}: the GPU is off by {off}, and rounding explains {most}");
        // One of eight accumulators, then all eight, the rest, and the other threads.
        let chain = n / 8 + 8 + 8 + std::thread::available_parallelism().unwrap().get();
        for cpu in [cpu_one(&data), cpu_all(&data)] {
            let (off, most) = ((f64::from(cpu) - exact).abs(), bound(chain, &data));
            assert!(off <= most, "n = {n}: the CPU is off by {off}, and rounding explains {most}");
        }
    }
}

/// Where one f32 total of ones sticks.
#[test]
fn ones_are_all_counted_past_2_to_the_24() {
    let _turn = turn();
    let n = (1 << 24) + 1;
    assert_eq!(climb(&vec![1.0; n]).unwrap().sum, n as f64);
}

#[test]
fn data_past_the_largest_binding_is_an_error() {
    let _turn = turn();
    let error = climb(&vec![0.0; (1 << 25) + 1]).err().expect("it cannot be bound").to_string();
    assert!(error.contains("134217732 bytes"), "{error}");
}

#[test]
fn the_rungs_are_twelve_in_their_order() {
    let _turn = turn();
    let climb = climb(&[1.0]).unwrap();
    let names: Vec<_> = climb.rungs.iter().map(|(name, _)| *name).collect();
    let process = "instance, adapter, device and queue, shader module, bind group layout, \
                   pipeline layout, pipeline";
    let call = "buffers, bind group, commands, submit and wait, map and read";
    assert_eq!(names.join(", "), format!("{process}, {call}"));
    for (name, micros) in climb.rungs {
        assert!(micros.is_finite() && micros >= 0.0, "{name} took {micros} µs");
    }
}

/// No size that a lesson accepts may need more than there is on every machine, so the check is asked.
#[test]
fn more_memory_than_there_is_is_refused() {
    let error = memory(1 << 60).expect_err("no machine has it").to_string();
    assert!(error.contains("MiB and") && error.contains("give a smaller size"), "{error}");
    assert!(memory(0).is_ok());
}
