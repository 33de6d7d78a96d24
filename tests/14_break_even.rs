//! 14: the model adds and compares as it says, on constants made up for it; and whatever is timed for
//! a prediction gives the CPU's answer.
//!
//! Not proven: that the constants are those of this machine, or that a prediction is near. That shows
//! in microseconds only, and those no test asserts; the example prints how near it came.

mod data;
#[path = "../examples/14_break_even.rs"]
mod example;
mod process;

use data::{SIZES, signed, whole};
use example::{
    ADD, CHAINS_ON_CPU, Curve, Engine, FLIPS, HASH, HELD_OUT, HISTOGRAM, KEEP, Machine,
    OPERATOR_KERNELS, Operator, SUM, Side, by_card, chains_on_gpu, cpu_operator, cpu_operator_all,
    how_far_off, launch_kernel, load_columns, operator_agrees, operator_engine, operator_words,
};

// Named here, so that the compiler finds a use for all of the example.
const _: fn() = example::main;

const EXAMPLE: process::Example = process::Example {
    name: "14_break_even",
    quick: &["16"],
    outside: &["0", "15", "26"],
    too_large: &[],
    // Where no work would let a streamed sum win, 14.3 is `none`.
    ids: |_| &["14.1", "14.2", "14.3"],
};

/// µs that are so many for each byte, and a fixed part.
fn line(fixed: f64, each: f64) -> Curve {
    Curve::new([1.0, 1e12].into_iter().map(|bytes| (bytes, fixed + each * bytes)))
}

/// A machine of round numbers: a thread reads 10 GB/s, four cores 40 after 50 µs, the GPU 400; a column
/// crosses at 5 GB/s, a result returns at 2.
fn machine() -> Machine {
    let side = |fixed, each, work, scattered| Side { read: line(fixed, each), work, scattered };
    Machine {
        one: side(0.0, 1e-4, 0.4, 2.0),
        all: side(50.0, 2.5e-5, 0.1, 0.5),
        gpu: side(0.0, 2.5e-6, 0.001, 0.01),
        floor: 100.0,
        dispatch: 5.0,
        upload: line(10.0, 2e-4),
        back: line(0.0, 5e-4),
        made: line(20.0, 1e-4),
    }
}

#[track_caller]
fn near(got: f64, wanted: f64) {
    assert!((got - wanted).abs() <= 1e-6 * wanted.abs(), "{got} is not {wanted}");
}

#[test]
fn a_curve_is_a_line_from_point_to_point() {
    let curve = Curve::new([(10.0, 5.0), (20.0, 25.0), (40.0, 30.0)].into_iter());
    for (bytes, us) in [(0.0, 0.0), (1.0, 5.0), (10.0, 5.0), (15.0, 15.0), (20.0, 25.0)] {
        near(curve.at(bytes), us);
    }
    for (bytes, us) in [(30.0, 27.5), (40.0, 30.0), (80.0, 60.0), (4000.0, 3000.0)] {
        near(curve.at(bytes), us);
    }
    near(Curve::new([(10.0, -5.0), (20.0, 4.0)].into_iter()).at(15.0), 2.0);
    near(Curve::new([].into_iter()).at(15.0), 0.0);
}

/// Each part by hand, for a million elements.
#[test]
fn a_prediction_is_the_sum_of_its_parts() {
    let (machine, n) = (machine(), 1e6);
    // Reading 4 MB: 400 µs on a thread, 50 and 100 on all cores, 10 on the GPU; crossing, 10 and 800.
    let [cpu, streamed, resident] = machine.predict(&SUM, n);
    near(cpu, 150.0);
    near(resident, 100.0 + 10.0);
    near(streamed, 110.0 + 810.0);
    // Two columns cross one by one: two fixed parts.
    let two = Operator { bytes_in: &[4.0, 4.0], ..SUM };
    near(machine.predict(&two, n)[1], 100.0 + 20.0 + 2.0 * 810.0);
    // Ten passes: nine dispatches more, and all cores started ten times.
    let [cpu, streamed, resident] = machine.predict(&Operator { passes: 10.0, ..SUM }, n);
    near(cpu, 10.0 * 150.0);
    near(resident, 100.0 + 9.0 * 5.0 + 10.0 * 10.0);
    near(streamed, resident + 810.0);
    // 100 operations: 10 more ms on all cores, 0.1 on the GPU. Increments: half a ms, and 0.01.
    let [cpu, _, resident] = machine.predict(&Operator { work: 100.0, ..SUM }, n);
    near(cpu, 150.0 + 10_000.0);
    near(resident, 110.0 + 100.0);
    let [cpu, _, resident] = machine.predict(&Operator { scattered: 1.0, ..SUM }, n);
    near(cpu, 150.0 + 500.0);
    near(resident, 110.0 + 10.0);
    // A word out for a word in: 4 MB more to go over, to bring back, and to make buffers for.
    let [cpu, streamed, resident] = machine.predict(&Operator { bytes_out: 4.0, ..SUM }, n);
    near(cpu, 50.0 + 200.0);
    near(resident, 100.0 + 20.0 + 2000.0);
    near(streamed, resident + 810.0 + 420.0);
    // Few elements: one thread is the faster.
    near(machine.predict(&SUM, 1000.0)[0], 0.4);
}

#[test]
fn more_of_anything_takes_no_less() {
    let machine = machine();
    let more: [fn(Operator) -> Operator; 6] = [
        |operator| Operator { bytes_in: &[8.0], ..operator },
        |operator| Operator { bytes_in: &[4.0, 4.0], ..operator },
        |operator| Operator { bytes_out: operator.bytes_out + 4.0, ..operator },
        |operator| Operator { passes: operator.passes + 1.0, ..operator },
        |operator| Operator { work: operator.work + 1.0, ..operator },
        |operator| Operator { scattered: operator.scattered + 1.0, ..operator },
    ];
    for exponent in FLIPS {
        let n = f64::from(exponent).exp2();
        for (_, operator) in HELD_OUT {
            let times = machine.predict(&operator, n);
            assert!(times[1] >= times[2], "streamed before resident at 2^{exponent}: {times:?}");
            let twice = machine.predict(&operator, 2.0 * n);
            assert!((0..3).all(|at| twice[at] >= times[at]), "2^{exponent}: {times:?}, {twice:?}");
            for more in more.map(|more| more(SUM)) {
                let (less, more) = (machine.predict(&SUM, n), machine.predict(&more, n));
                assert!((0..3).all(|at| more[at] >= less[at]), "2^{exponent}: {less:?}, {more:?}");
            }
        }
    }
}

/// From the flip on the GPU wins at every size, and just before it does not.
#[test]
fn a_flip_is_where_the_gpu_begins_to_win_for_good() {
    let machine = machine();
    let resident = Operator { resident: true, ..SUM };
    let heavy = Operator { work: 1000.0, ..SUM };
    for (what, operator, wanted) in [
        // The floor is what a thread takes for 2^18 elements, and all cores for nearly 2^19.
        ("resident", resident, Some(20)),
        ("ten passes", Operator { passes: 10.0, ..resident }, Some(16)),
        ("much work", heavy, Some(10)),
        ("a sum that streams", SUM, None),
    ] {
        assert_eq!(machine.flip(&operator), wanted, "{what}");
        for exponent in FLIPS {
            let wins = machine.crosses(&operator, f64::from(exponent).exp2());
            assert_eq!(wins, wanted.is_some_and(|from| from <= exponent), "{what}, 2^{exponent}");
        }
    }
}

/// A GPU that wins at some sizes and not at the largest does not win for good: no flip is claimed.
#[test]
fn a_win_in_the_middle_is_no_flip() {
    let resident = Operator { resident: true, ..SUM };
    let slow_when_large = [(1.0, 0.0), (1e7, 25.0), (2e7, 1e6)];
    let gpu = Side { read: Curve::new(slow_when_large.into_iter()), ..machine().gpu };
    let machine = Machine { gpu, ..machine() };
    assert!(machine.crosses(&resident, 2e6) && !machine.crosses(&resident, 2e8));
    assert_eq!(machine.flip(&resident), None);
}

#[test]
fn without_a_floor_or_a_crossing_the_gpu_wins_everywhere() {
    let machine = Machine { floor: 0.0, ..machine() };
    assert_eq!(machine.flip(&Operator { resident: true, ..SUM }), Some(*FLIPS.start()));
    let nothing = Machine { floor: 1e12, ..machine };
    assert_eq!(nothing.flip(&Operator { resident: true, work: 1e3, ..SUM }), None);
}

/// At the gate the GPU wins, one operation below it does not.
#[test]
fn a_gate_is_the_least_work_that_lets_the_gpu_win() {
    let machine = machine();
    for (operator, n) in [(SUM, 1e6), (SUM, 3e4), (Operator { bytes_out: 4.0, ..SUM }, 1e7)] {
        let gate = machine.gate(&operator, n).expect("work is cheap on this GPU");
        assert!(gate > 1.0);
        assert!(machine.crosses(&Operator { work: gate, ..operator }, n), "{gate} at {n}");
        assert!(!machine.crosses(&Operator { work: gate - 1.0, ..operator }, n), "{gate} at {n}");
    }
    // By hand: 920 + 0.001 w µs a million elements, against 150 + 0.1 w, is even at w = 7.78.
    let gate = machine.gate(&SUM, 1e6).expect("as above");
    assert!((gate - 770.0 / 99.0).abs() <= 0.5, "{gate}");
    assert_eq!(machine.gate(&Operator { resident: true, ..SUM }, 1e8), Some(0.0), "it wins anyway");
    let gpu = Side { work: 0.2, ..self::machine().gpu };
    let slow = Machine { gpu, ..self::machine() };
    assert_eq!(slow.gate(&SUM, 1e6), None, "all cores are faster at work");
    assert_eq!(slow.gate(&SUM, 1e8), None);
}

/// Constants that are 0, as differences lost in noise are, are no reason to stop.
#[test]
fn a_machine_of_zeros_has_an_answer_too() {
    let side = || Side { read: line(0.0, 0.0), work: 1e-6, scattered: 1e-6 };
    let zero = || line(0.0, 0.0);
    let (one, all, gpu, upload, back, made) = (side(), side(), side(), zero(), zero(), zero());
    let machine = Machine { one, all, gpu, floor: 0.0, dispatch: 0.0, upload, back, made };
    for (_, operator) in HELD_OUT {
        assert!(machine.predict(&operator, 1e6).iter().all(|us| us.is_finite()));
        assert_eq!(machine.flip(&operator), None, "nobody wins a tie");
        assert_eq!(machine.gate(&operator, 1e6), None);
    }
}

#[test]
fn a_card_alone_gives_a_verdict() {
    // 4 bytes: 400 ps on the CPU, 10 ps on the GPU, 800 ps to cross.
    let card = [100e-6, 5e9, 10e9, 400e9];
    let [streamed, resident] = by_card(card);
    assert_eq!(streamed, None);
    near(resident.expect("the GPU reads faster"), 100e-6 / 390e-12);
    let [streamed, _] = by_card([100e-6, 40e9, 10e9, 400e9]);
    near(streamed.expect("crossing is cheaper than reading here"), 100e-6 / 290e-12);
    assert_eq!(by_card([100e-6, 5e9, 10e9, 10e9]), [None, None]);
}

/// The GPU's answer, and all cores', against one thread's.
#[track_caller]
fn agree(gpu: &Engine, kernel: usize, a: &[f32], b: &[f32]) {
    let what = format!("{}, n = {}", OPERATOR_KERNELS[kernel], a.len());
    let columns: &[&[f32]] = if kernel == ADD { &[a] } else { &[a, b] };
    let loaded = load_columns(gpu, kernel, columns, 0).unwrap();
    let answer = launch_kernel(gpu, kernel, &loaded, 1).unwrap();
    assert_eq!(answer.len(), cpu_operator(kernel, a, b).len(), "{what}: words");
    let agrees = operator_agrees(kernel, chains_on_gpu(a.len()), &answer, [a, b]);
    assert!(agrees.is_ok(), "{what}: {}", agrees.unwrap_err());
    if kernel > HASH {
        // These know an element by its place, and a share's places begin anew.
        return;
    }
    let all = operator_agrees(kernel, CHAINS_ON_CPU, &cpu_operator_all(kernel, a, b), [a, b]);
    assert!(all.is_ok(), "{what}, all cores: {}", all.unwrap_err());
}

/// Around a block of `keep`, and around more workgroups than there are to be had.
const MORE_SIZES: [usize; 8] =
    [8192, 16383, 16384, 16385, 2112 * 4096 - 1, 2112 * 4096, 2112 * 4096 + 1, (1 << 23) + 5];

/// None of them may be wrong, those that measure constants included.
#[test]
fn every_kernel_gives_the_cpus_answer_at_every_edge() {
    let _turn = process::turn();
    let gpu = operator_engine().unwrap();
    for n in SIZES.into_iter().chain(MORE_SIZES) {
        let data = signed(n + 1);
        for kernel in 0..OPERATOR_KERNELS.len() {
            agree(&gpu, kernel, &data[..n], &data[1..]);
        }
    }
}

/// The words themselves, small enough to be looked at: 300 elements, of which few are above 0.75.
#[test]
fn one_thread_is_right() {
    let mut data = vec![0.5; 300];
    for at in [0, 255, 256, 299] {
        data[at] = 0.76;
    }
    let words = cpu_operator(KEEP, &data, &data);
    let set = |word: usize| words[word];
    assert_eq!((words.len(), set(0), set(255), set(43), set(1)), (256, 3, 1, 2, 0));
    assert_eq!(words.iter().map(|word| word.count_ones()).sum::<u32>(), 4);
    let bins = cpu_operator(HISTOGRAM, &data, &data);
    let place = |x: f32| (x.to_bits() >> 15) as usize % 256;
    assert_eq!((bins[place(0.5)], bins[place(0.76)]), (296, 4));
    let by_hand = |x: f32| {
        let mut word = x.to_bits();
        for _ in 0..16 {
            word ^= word >> 15;
            word = word.wrapping_mul(0x2c1b_3c6d);
        }
        word
    };
    let sum = by_hand(0.5).wrapping_mul(296).wrapping_add(by_hand(0.76).wrapping_mul(4));
    assert_eq!(cpu_operator(HASH, &data, &data), [sum]);
    assert_eq!(cpu_operator(ADD, &whole(17), &whole(17)), [153f32.to_bits()]);
}

/// What one call leaves in the result is no business of the next, and a larger result is the same one.
#[test]
fn passes_repeat_and_calls_do_not_add_up() {
    let _turn = process::turn();
    let gpu = operator_engine().unwrap();
    let data = signed(10_000);
    for (kernel, what) in OPERATOR_KERNELS.into_iter().enumerate() {
        let loaded = load_columns(&gpu, kernel, &[&data], 0).unwrap();
        let once = launch_kernel(&gpu, kernel, &loaded, 1).unwrap();
        assert_eq!(launch_kernel(&gpu, kernel, &loaded, 1).unwrap(), once, "{what}, again");
        let thrice = launch_kernel(&gpu, kernel, &loaded, 3).unwrap();
        let adds = kernel >= HISTOGRAM;
        let wanted = once.iter().map(|&word| if adds { word.wrapping_mul(3) } else { word });
        assert_eq!(thrice, wanted.collect::<Vec<_>>(), "{what}, three passes");
        let larger = load_columns(&gpu, kernel, &[&data], 100_000).unwrap();
        let answer = launch_kernel(&gpu, kernel, &larger, 1).unwrap();
        assert_eq!(answer[..once.len()], once, "{what}, a larger result");
    }
    assert_eq!(operator_words(KEEP, 8193), 512);
}

#[test]
fn data_past_the_largest_binding_is_an_error() {
    let _turn = process::turn();
    let gpu = operator_engine().unwrap();
    let past = vec![0.5; (1 << 25) + 1];
    let error = load_columns(&gpu, ADD, &[&past], 0).err().expect("it cannot be bound").to_string();
    assert!(error.contains("134217732 bytes"), "{error}");
    agree(&gpu, ADD, &whole(17), &whole(17));
}

#[test]
fn an_answer_that_is_off_does_not_agree() {
    let data = whole(1000);
    for kernel in 0..6 {
        let mut answer = cpu_operator(kernel, &data, &data);
        assert!(operator_agrees(kernel, 256, &answer, [&data, &data]).is_ok());
        answer[0] ^= 1 << 16;
        assert!(operator_agrees(kernel, 256, &answer, [&data, &data]).is_err(), "{kernel}");
    }
    assert!(operator_agrees(ADD, 256, &[], [&data, &data]).is_err());
}

/// Of nine predictions one is three times too high, and one at twice still counts.
#[test]
fn the_share_within_twice_and_the_farthest_off_are_those_of_the_checks() {
    let check = |said: [f64; 3]| ("sum".to_string(), said, [10.0, 20.0, 30.0]);
    let right = check([10.0, 20.0, 30.0]);
    let [share, worst] = how_far_off(&[right.clone(), check([10.0, 60.0, 60.0]), right.clone()]);
    near(share, 100.0 * 8.0 / 9.0);
    near(worst, 3.0);
    let [share, worst] = how_far_off(&[right.clone(), check([10.0, 20.0, 3.0])]);
    near(share, 100.0 * 5.0 / 6.0);
    // The larger over the smaller, whichever was predicted.
    near(worst, 10.0);
    near(how_far_off(&[right])[0], 100.0);
}
