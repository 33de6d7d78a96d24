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
use example::{agree, climb, cpu_all, cpu_one, exact_sum, memory};

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

/// What the lesson stops at: a sum that rounding does not explain. The bound is 2^-24 of the total
/// for each of the additions in a chain, and 2^20 elements make chains of 16: of ones, it is 1.
#[test]
fn a_sum_that_is_off_does_not_agree() {
    let (ones, exact) = (vec![1.0; 1 << 20], f64::from(1 << 20));
    for off in [0.0, 1.0, -1.0] {
        assert_eq!(agree(exact + off, &ones).unwrap(), [exact, 1.0], "off by {off}");
    }
    for off in [1.5, -1.5, exact, f64::NAN, f64::INFINITY] {
        let error = agree(exact + off, &ones).expect_err("it is off").to_string();
        assert!(error.contains("rounding explains 1 at most"), "off by {off}: {error}");
    }
}

/// The number that stands behind these words.
fn after(printed: &str, words: &str) -> f64 {
    let (_, rest) = printed.rsplit_once(words).expect(words);
    let word = rest.split_whitespace().next().expect("a word");
    word.trim_end_matches([',', '.']).parse().expect("a number")
}

/// Seven rungs once per process and five per call, and the sums are the rows', as far as printed.
#[test]
fn the_sums_in_the_notes_are_the_tables() {
    let _turn = turn();
    let printed = &process::quick().stdout;
    let cells = printed.lines().map(|row| row.split('|').map(str::trim).collect::<Vec<_>>());
    let rows: Vec<_> =
        cells.filter(|row| row.len() == 6 && row[1].parse::<u32>().is_ok()).collect();
    let per: Vec<&str> = rows.iter().map(|row| row[4]).collect();
    assert_eq!(per, [["process"; 7].as_slice(), &["call"; 5]].concat());
    let micros = rows.iter().map(|row| row[3].parse::<f64>().expect("µs")).collect::<Vec<_>>();
    let [process, call] = [&micros[..7], &micros[7..]].map(|rungs| rungs.iter().sum::<f64>());
    // Half of the last digit of the sum, in ms and in µs, and of those of the rows, in µs.
    for words in ["Rungs 1 to 7 took ", "01.1 measured "] {
        let off = (1e3 * after(printed, words) - process).abs();
        assert!(off <= 50.0 + 7.0 * 0.05 + 1e-6, "{words}is off by {off} µs in {printed}");
    }
    for words in ["\ntook ", "01.2 measured "] {
        let off = (after(printed, words) - call).abs();
        assert!(off <= 0.5 + 5.0 * 0.05 + 1e-6, "{words}is off by {off} µs in {printed}");
    }
}

/// Threads are started for one figure and not for the other, and for a thousand elements that is all
/// that shows. Each is timed once, so one run in three will do: the other two may have been disturbed.
#[test]
fn for_few_elements_one_thread_is_faster_than_all() {
    let _turn = turn();
    let faster = |printed: &str| after(printed, "The CPU: ") < after(printed, "on all cores ");
    let again = || process::run(EXAMPLE.quick).stdout;
    let (first, mut further) = (&process::quick().stdout, [(); 2].iter().map(|()| again()));
    assert!(faster(first) || further.any(|printed| faster(&printed)), "{first}");
}
