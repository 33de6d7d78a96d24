//! 10: every kernel keeps the boxes that the CPU keeps, whatever they are and however many; the
//! ordered one in the CPU's order.
//!
//! Not proven: that the barriers are where they must be, since the lanes may happen to run in step
//! where one is missing; nor how many atomics a driver makes of those in the shader.

use std::io::Write;
use std::sync::LazyLock;

#[path = "../examples/10_filter_compact.rs"]
mod example;
mod process;

use example::{
    Gpu, KERNELS, ODD_BOXES, OPTIONAL, ORDERED, Rect, cpu_filter, cpu_filter_all, filter,
    filter_agrees, filter_survivors, groups, meets, random_boxes, setup, upload,
};
use wgpu::Features;

// Named here, so that the compiler finds a use for all of the example.
const _: fn() = example::main;

const EXAMPLE: process::Example = process::Example {
    name: "10_filter_compact",
    quick: &["1000"],
    outside: &[],
    too_large: &["2^32"],
    ids: |_| &["10.1", "10.2", "10.3"],
};

/// None, few, around a workgroup's invocations (256), around a round (1024), more than a workgroup.
const SIZES: [usize; 19] =
    [0, 1, 2, 3, 4, 5, 255, 256, 257, 511, 513, 767, 769, 1023, 1024, 1025, 2049, 65537, 262147];

/// Views that keep none of `random_boxes`, few, half and all.
const VIEWS: [Rect; 4] = [
    [-1.0, -1.0, 0.0, 2.0],
    [-1.0, -1.0, 0.01, 2.0],
    [-1.0, -1.0, 0.5, 2.0],
    [-1.0, -1.0, 1.0, 2.0],
];

/// Whether this adapter has subgroups; where not, that is told once.
static SUBGROUPS: LazyLock<bool> = LazyLock::new(|| {
    let here = setup(OPTIONAL, true).unwrap().kernels.len() == KERNELS.len();
    if !here {
        // Not `eprintln!`, which a test keeps to itself until it has failed.
        _ = writeln!(std::io::stderr(), "10: no subgroups here, and what needs them is skipped");
    }
    here
});

/// Counts and appends by every kernel, and returns how many boxes they keep.
#[track_caller]
fn all_agree(gpu: &Gpu, boxes: &[Rect], view: &Rect) -> usize {
    let resident = upload(gpu, boxes).unwrap();
    let bits = |boxes: Vec<Rect>| boxes.concat().into_iter().map(f32::to_bits).collect::<Vec<_>>();
    let exact = cpu_filter(boxes, view).len();
    let all = bits(cpu_filter_all(boxes, view));
    assert!(all == bits(cpu_filter(boxes, view)), "all cores, n = {}, {view:?}", boxes.len());
    let here = if *SUBGROUPS { KERNELS.len() } else { ORDERED + 1 };
    for (kernel, (name, _)) in KERNELS.into_iter().enumerate().take(here).skip(1) {
        let n = boxes.len();
        let (kept, _) = filter(gpu, kernel, &resident, view).unwrap();
        assert_eq!(kept, exact as u64, "{name}, n = {n}, {view:?}");
        if name.starts_with("append") {
            if let Err(error) = filter_agrees(gpu, kernel, &resident, boxes, view) {
                panic!("n = {n}, {view:?}: {error}");
            }
        }
    }
    exact
}

/// The definition itself, on boxes that one can draw.
#[test]
fn a_box_meets_what_it_shares_a_point_with() {
    let view = [0.0, 0.0, 1.0, 1.0];
    for (one, wanted) in [
        ([0.2, 0.2, 0.3, 0.3], true),
        ([-1.0, -1.0, 2.0, 2.0], true),
        ([0.5, 0.5, 0.5, 0.5], true),
        ([1.0, 0.2, 2.0, 0.3], true),
        ([1.0, 1.0, 2.0, 2.0], true),
        ([-1.0, -1.0, -0.0, 0.0], true),
        ([1.1, 0.2, 2.0, 0.3], false),
        ([0.2, 1.1, 0.3, 2.0], false),
        ([-2.0, 0.2, -0.1, 0.3], false),
        ([0.2, -2.0, 0.3, -0.1], false),
        ([0.3, 0.2, 0.2, 0.3], false),
        ([0.2, 0.3, 0.3, 0.2], false),
        ([f32::NEG_INFINITY, f32::NEG_INFINITY, f32::INFINITY, f32::INFINITY], true),
        ([f32::NAN, 0.2, 0.3, 0.3], false),
        ([0.2, f32::NAN, 0.3, 0.3], false),
        ([0.2, 0.2, f32::NAN, 0.3], false),
        ([0.2, 0.2, 0.3, f32::NAN], false),
    ] {
        assert_eq!(meets(&one, &view), wanted, "{one:?}");
    }
    for coordinate in 0..4 {
        let mut view = view;
        view[coordinate] = f32::NAN;
        assert!(!meets(&[0.2, 0.2, 0.3, 0.3], &view), "{view:?}");
    }
}

#[test]
fn none_few_half_and_all_are_kept_at_every_edge() {
    let _turn = process::turn();
    let gpu = setup(OPTIONAL, true).unwrap();
    for n in SIZES {
        let boxes = random_boxes(n);
        let kept = VIEWS.map(|view| all_agree(&gpu, &boxes, &view));
        assert_eq!((kept[0], kept[3]), (0, n), "n = {n}");
        // What the others are compared with moves all there is.
        let resident = upload(&gpu, &boxes).unwrap();
        filter(&gpu, 0, &resident, &VIEWS[0]).unwrap();
        assert!(filter_survivors(&gpu, &resident, n as u64).unwrap() == boxes, "copy, n = {n}");
    }
}

/// Up to 2112 workgroups, one has a round of 1024 boxes to itself; past that it takes two.
#[test]
fn all_boxes_are_taken_when_there_are_no_more_groups() {
    let _turn = process::turn();
    let gpu = setup(OPTIONAL, true).unwrap();
    for n in [2112 * 1024, 2112 * 1024 + 1] {
        all_agree(&gpu, &random_boxes(n), &VIEWS[2]);
    }
}

/// One survivor, wherever it lies: no lane, step or workgroup loses it.
#[test]
fn a_survivor_alone_is_found_in_every_place() {
    let _turn = process::turn();
    let gpu = setup(OPTIONAL, true).unwrap();
    let places = (0..1024).step_by(61).chain([255, 256, 511, 512, 767, 768, 1023, 1024, 2999]);
    for place in places {
        let mut boxes = vec![[2.0, 2.0, 3.0, 3.0]; 3000];
        boxes[place] = [0.0, 0.0, 1.0, place as f32];
        assert_eq!(all_agree(&gpu, &boxes, &[0.5; 4]), usize::from(place > 0), "at {place}");
    }
}

/// Boxes with the same content are as many after as before.
#[test]
fn equal_boxes_are_kept_each() {
    let _turn = process::turn();
    let gpu = setup(OPTIONAL, true).unwrap();
    let boxes: Vec<Rect> = (0..5000).map(|i| [(i % 3) as f32, 0.0, 2.0, 1.0]).collect();
    assert_eq!(all_agree(&gpu, &boxes, &[0.0, 0.0, 1.0, 1.0]), 3334);
}

/// All combinations of numbers at which f32 comparisons go wrong: NaN of both signs, infinities, both
/// zeros, and numbers so small that a GPU may take them for 0. Inverted boxes are among them.
#[test]
fn odd_numbers_are_compared_as_the_cpu_compares() {
    let _turn = process::turn();
    let gpu = setup(OPTIONAL, true).unwrap();
    let numbers = [
        f32::NAN,
        -f32::NAN,
        f32::from_bits(0x7f800001),
        f32::INFINITY,
        f32::NEG_INFINITY,
        0.0,
        -0.0,
        1e-40,
        -1e-40,
        f32::from_bits(1),
        f32::MIN_POSITIVE,
        1.0,
        -1.0,
    ];
    let pairs = || numbers.into_iter().flat_map(|a| numbers.map(|b| [a, b]));
    let boxes: Vec<Rect> =
        pairs().flat_map(|[a, b]| pairs().map(move |[c, d]| [a, b, c, d])).collect();
    let views = boxes.iter().step_by(2003).copied().chain([
        [0.0; 4],
        [-0.0; 4],
        [1e-40; 4],
        [-1.0, -1.0, -1e-40, 1.0],
        [0.0, 0.0, f32::from_bits(1), 1.0],
    ]);
    let mut kept = 0;
    for view in views {
        kept += all_agree(&gpu, &boxes, &view);
    }
    assert!(kept > 0, "no view keeps any of these boxes");
}

#[test]
fn the_examples_odd_boxes_are_odd() {
    let kept = VIEWS.map(|view| cpu_filter(&ODD_BOXES, &view).len());
    assert_eq!(kept, [0, 1, 1, 1]);
}

/// In the CPU's order, and not merely the set: here each box knows its number.
#[test]
fn the_ordered_kernel_keeps_the_order() {
    let _turn = process::turn();
    let gpu = setup(OPTIONAL, true).unwrap();
    let boxes: Vec<Rect> = (0..100_000).map(|i| [0.0, 0.0, (i % 7) as f32, i as f32]).collect();
    let resident = upload(&gpu, &boxes).unwrap();
    let (kept, _) = filter(&gpu, ORDERED, &resident, &[3.0, 0.0, 9.0, 9.0]).unwrap();
    let numbers = filter_survivors(&gpu, &resident, kept).unwrap().into_iter().map(|one| one[3]);
    assert!(numbers.eq((0..100_000).filter(|i| i % 7 >= 3).map(|i| i as f32)));
}

/// What one call leaves on the device is no business of the next.
#[test]
fn calls_do_not_disturb_each_other() {
    let _turn = process::turn();
    let gpu = setup(OPTIONAL, true).unwrap();
    let boxes = [random_boxes(5000), random_boxes(700)];
    let residents = [0, 1].map(|i| upload(&gpu, &boxes[i]).unwrap());
    for kernel in (3..gpu.kernels.len()).chain((3..gpu.kernels.len()).rev()) {
        for (i, view) in [(0, 3), (1, 2), (0, 0), (1, 3), (0, 1)] {
            filter(&gpu, 0, &residents[i], &VIEWS[view]).unwrap();
            filter_agrees(&gpu, kernel, &residents[i], &boxes[i], &VIEWS[view]).unwrap();
        }
    }
}

#[test]
fn boxes_bound_for_writing_make_no_difference() {
    let _turn = process::turn();
    let gpu = setup(OPTIONAL, false).unwrap();
    for n in [0, 1, 257, 1025, 65537] {
        for view in VIEWS {
            all_agree(&gpu, &random_boxes(n), &view);
        }
    }
}

/// A reader's adapter may lack them, and this one is asked for none.
#[test]
fn without_subgroups_their_kernels_are_an_error_and_the_rest_is_right() {
    let _turn = process::turn();
    let gpu = setup(OPTIONAL - Features::SUBGROUP, true).unwrap();
    let boxes = random_boxes(4097);
    let resident = upload(&gpu, &boxes).unwrap();
    for kernel in 3..=ORDERED {
        filter_agrees(&gpu, kernel, &resident, &boxes, &VIEWS[2]).unwrap();
    }
    for kernel in ORDERED + 1..KERNELS.len() {
        let error = filter(&gpu, kernel, &resident, &VIEWS[2]).expect_err("no subgroups");
        assert!(error.to_string().contains("no subgroups"), "{error}");
    }
}

/// And with no optional feature at all, a time is the wall's.
#[test]
fn every_time_is_one() {
    let _turn = process::turn();
    for optional in [OPTIONAL, Features::empty()] {
        let gpu = setup(optional, true).unwrap();
        let resident = upload(&gpu, &random_boxes(4097)).unwrap();
        for (kernel, about) in KERNELS.iter().enumerate().take(gpu.kernels.len()) {
            let (_, micros) = filter(&gpu, kernel, &resident, &VIEWS[2]).unwrap();
            assert!(micros.is_finite() && micros > 0.0, "{about:?} took {micros} µs");
        }
    }
}

/// What the two shaders have in common, they have in the same words.
#[test]
fn the_shaders_read_and_write_alike() {
    let common = |text: &str| {
        let first = text.find("\n@group").expect("bindings");
        let last = text.find("// Where a workgroup's chunk").expect("the chunk");
        let chunk = text[last..].find("\n}\n").expect("its end");
        let lines = text[first..last + chunk].lines().filter(|line| !line.contains("counts"));
        lines.collect::<Vec<_>>().join("\n")
    };
    assert_eq!(
        common(include_str!("../shaders/10_filter_compact.wgsl")),
        common(include_str!("../shaders/10_filter_compact_subgroup.wgsl"))
    );
}

#[test]
fn the_groups_are_as_few_as_will_do() {
    for (n, wanted) in [
        (0, 1),
        (1, 1),
        (1024, 1),
        (1025, 2),
        (2112 * 1024, 2112),
        (2112 * 1024 + 1, 2112),
        (1 << 27, 2112),
    ] {
        assert_eq!(groups(n), wanted, "n = {n}");
    }
}
