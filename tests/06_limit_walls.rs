//! 06: each wall is met with its own text, and each way past it ends in the exact total.
//!
//! Not proven: that an adapter would have gone wrong past a limit that nothing checks; it was tried
//! no further than the adapter itself promises.

use std::sync::LazyLock;

#[path = "../examples/06_limit_walls.rs"]
mod example;
mod process;

use example::{Met, asked, exact, exactly, fold, inputs, open, total, walls, ways, windows};
use wgpu::{BufferBinding, BufferSize, Limits};

// Named here, so that the compiler finds a use for all of the example.
const _: fn() = example::main;

const EXAMPLE: process::Example = process::Example {
    name: "06_limit_walls",
    quick: &[],
    outside: &["0", "1", "16777217"],
    too_large: &[],
    ids: |_| &["06.1", "06.2", "06.3"],
};

/// What the adapter offers, as the first device sees it.
static OFFERED: LazyLock<Limits> = LazyLock::new(|| {
    let mut limits = None;
    open(|offered| {
        limits = Some(offered.clone());
        Limits::downlevel_defaults()
    })
    .unwrap();
    limits.unwrap()
});

#[test]
fn each_wall_says_what_was_too_much() {
    let _turn = process::turn();
    let gpu = open(|_| Limits::downlevel_defaults()).unwrap();
    let mut met = Vec::new();
    walls(&gpu, |_, _, [allowed, tried], what| met.push((allowed, tried, what))).unwrap();
    let most = OFFERED.max_compute_workgroups_per_dimension;
    let refused = [
        (
            0,
            33554432,
            33554433,
            "range 134217732 exceeds `max_*_buffer_binding_size` limit 134217728",
        ),
        (1, 256, 4, "`min_storage_buffer_offset_alignment` limit 256"),
        (2, 67108864, 67108865, "268435460 is greater than the maximum buffer size (268435456)"),
        (3, 16776960, 16777216, "([65536, 1, 1]) must be less or equal to 65535"),
        (4, 256, 257, "Workgroup size [257, 1, 1] (257 total invocations) must be less or equal"),
        (7, most.into(), u64::from(most) + 1, "is better than allowed"),
    ];
    for (wall, allowed, tried, text) in refused {
        let (was_allowed, was_tried, what) = &met[wall];
        assert_eq!((*was_allowed, *was_tried), (allowed, tried), "{text}");
        assert!(matches!(what, Met::Refused(said) if said.contains(text)), "wall {wall}: {text}");
    }
}

/// Where the adapter goes further than the device, it is tried, and answers right; else it is left out.
#[test]
fn what_nothing_checks_is_tried_as_far_as_the_adapter_goes() {
    let _turn = process::turn();
    let gpu = open(|_| Limits::downlevel_defaults()).unwrap();
    let mut met = Vec::new();
    walls(&gpu, |_, _, [allowed, tried], what| met.push((allowed, tried, what))).unwrap();
    for (allowed, tried, what) in &met[5..7] {
        match what {
            Met::Silent(right) => assert!(*right && tried > allowed, "{tried} after {allowed}"),
            Met::LeftOut(why) => assert!(tried <= allowed, "left out: {why}"),
            Met::Refused(text) => panic!("now it is checked: {text}"),
        }
    }
    assert_eq!(met[6].1, u64::from(OFFERED.max_compute_workgroup_storage_size));
}

#[test]
fn each_way_past_a_wall_is_exact_or_not_offered() {
    let _turn = process::turn();
    let least = Limits::downlevel_defaults();
    let gpu = open(|_| least.clone()).unwrap();
    let more = open(|offered| asked(least.clone(), offered)).unwrap();
    let mut left_out = Vec::new();
    let mut rows = 0;
    // An answer that is not exact is the `Err` of all.
    ways(&gpu, &more, |way, _, timing| {
        rows += 1;
        left_out.extend(timing.err().map(|why| format!("{way}: {why}")));
    })
    .unwrap();
    let mut wanted = Vec::new();
    let mut negotiate = |way: &str, offered: bool| {
        if !offered {
            wanted.push(format!("{way}: no more is offered"));
        }
    };
    let binding = OFFERED.max_storage_buffer_binding_size > least.max_storage_buffer_binding_size;
    negotiate("binding: negotiate", binding);
    negotiate("buffer: negotiate, and windows", OFFERED.max_buffer_size > least.max_buffer_size);
    let lanes = OFFERED.max_compute_invocations_per_workgroup > 256;
    negotiate("invocations: negotiate", lanes && OFFERED.max_compute_workgroup_size_x > 256);
    negotiate("workgroup memory: negotiate", OFFERED.max_compute_workgroup_storage_size > 16352);
    assert_eq!((rows, left_out), (10, wanted));
}

#[test]
fn no_more_is_asked_for_than_is_offered() {
    let least = Limits::downlevel_defaults();
    let asked_of = |offered: &Limits| asked(least.clone(), offered);
    // llvmpipe: a larger buffer, and no larger binding.
    let offered = Limits { max_buffer_size: i32::MAX as u64, ..least.clone() };
    let limits = asked_of(&offered);
    assert_eq!(limits.max_storage_buffer_binding_size, 1 << 27);
    assert_eq!(limits.max_buffer_size, (1 << 28) + 4);
    // A card: one element more, though far more is offered.
    let card = Limits { max_storage_buffer_binding_size: i32::MAX as u64 - 3, ..offered };
    assert_eq!(asked_of(&card).max_storage_buffer_binding_size, (1 << 27) + 4);
    assert_eq!(asked_of(&least), least);
    assert!(asked_of(&card).check_limits(&card));
}

/// More than the limit in both dimensions together, and never in one.
#[test]
fn a_fold_has_room_for_every_group_and_no_row_to_spare() {
    for (groups, limit, wanted) in [
        (0, 65535, [0, 1, 1]),
        (1, 65535, [1, 1, 1]),
        (65535, 65535, [65535, 1, 1]),
        (65536, 65535, [32768, 2, 1]),
        (131070, 65535, [65535, 2, 1]),
        (131071, 65535, [43691, 3, 1]),
        (u32::MAX, 65535, [65535, 65537, 1]),
    ] {
        let [x, y, z] = fold(groups, limit);
        assert_eq!([x, y, z], wanted, "{groups} groups");
        assert!(u64::from(x) * u64::from(y) >= groups.into() && x <= limit, "{groups} groups");
    }
}

/// Every byte is in one window, and every window may be bound where it begins.
#[test]
fn windows_cover_a_buffer_at_legal_offsets() {
    let _turn = process::turn();
    let gpu = open(|_| Limits::downlevel_defaults()).unwrap();
    let limits = Limits {
        max_storage_buffer_binding_size: 1000,
        min_storage_buffer_offset_alignment: 256,
        ..Limits::downlevel_defaults()
    };
    for (n, wanted) in [
        (1, vec![(0, 4)]),
        (250, vec![(0, 1000)]),
        (251, vec![(0, 768), (768, 236)]),
        (384, vec![(0, 768), (768, 768)]),
        (385, vec![(0, 768), (768, 768), (1536, 4)]),
    ] {
        let inputs = inputs(&gpu, n).unwrap();
        let windows = windows(&inputs[0], &limits);
        let size = |size: Option<BufferSize>| size.map_or(0, |size| size.get());
        let found: Vec<_> = windows.iter().map(|one| (one.offset, size(one.size))).collect();
        assert_eq!(found, wanted, "n = {n}");
        let kernel = &gpu.kernels["strided"];
        assert_eq!(total(&gpu, kernel, &windows, [2, 1, 1]).unwrap(), exact(n), "n = {n}");
    }
}

/// Sizes around a workgroup and around a row, in rows far shorter than the limit.
#[test]
fn every_spread_takes_every_element_once() {
    let _turn = process::turn();
    let gpu = open(|_| Limits::downlevel_defaults()).unwrap();
    for n in [1, 2, 255, 256, 257, 1023, 1024, 1025, 1792, 1793, 65537] {
        let inputs = inputs(&gpu, n).unwrap();
        let window: BufferBinding = inputs[0].as_entire_buffer_binding();
        let groups = n.div_ceil(256) as u32;
        for (kernel, grid) in [
            ("one_each", [groups, 1, 1]),
            ("four_each", [groups.div_ceil(4), 1, 1]),
            ("folded", fold(groups, 7)),
            ("folded", fold(groups, 65535)),
            ("strided", [1, 1, 1]),
            ("strided", [2112, 1, 1]),
        ] {
            let total =
                total(&gpu, &gpu.kernels[kernel], std::slice::from_ref(&window), grid).unwrap();
            assert_eq!(total, exact(n), "{kernel}, n = {n}");
        }
    }
}

/// An error that a scope caught is in no later call's way.
#[test]
fn a_device_works_on_after_its_walls() {
    let _turn = process::turn();
    let gpu = open(|_| Limits::downlevel_defaults()).unwrap();
    walls(&gpu, |_, _, _, _| {}).unwrap();
    let inputs = inputs(&gpu, 1000).unwrap();
    let windows = windows(&inputs[0], &Limits::downlevel_defaults());
    assert_eq!(total(&gpu, &gpu.kernels["strided"], &windows, [4, 1, 1]).unwrap(), exact(1000));
}

#[test]
fn the_exact_total_is_that_of_a_plain_loop() {
    let mut sum = 0u64;
    for i in 0..10_000u64 {
        assert_eq!(u64::from(exact(i)), sum, "n = {i}");
        sum += 1 + i % 7;
    }
}

/// What every way is held to, and the lesson stops at.
#[test]
fn a_total_that_is_off_is_an_error() {
    assert!(exactly("a way", 28, exact(7)).is_ok());
    for total in [0, 27, 29, u32::MAX] {
        let error = exactly("a way", total, exact(7)).expect_err("it is off").to_string();
        assert_eq!(error, format!("a way: the GPU says {total}, and 28 is exact"));
    }
}

/// The notes are read off the tables: walls that raise, what may be bound, the fold's time to the loop's.
#[test]
fn the_notes_are_the_tables() {
    let _turn = process::turn();
    let printed = &process::quick().stdout;
    let row = |name: &str| -> Vec<&str> {
        let row = printed.lines().find(|row| row.starts_with(&format!("| {name} "))).expect(name);
        row.split('|').map(str::trim).collect()
    };
    let noted = |words: &str| -> f64 {
        let (_, rest) = printed.rsplit_once(words).expect(words);
        rest.split([' ', '×', ';']).next().and_then(|word| word.parse().ok()).expect("a number")
    };
    let raised = (1..=8).filter(|wall| {
        let at = row(&wall.to_string())[5];
        at != "nowhere" && at != "left out"
    });
    assert_eq!(noted("06.1 measured "), raised.count() as f64, "{printed}");
    let bound: f64 = row("binding, bytes")[4].parse().expect("bytes");
    assert_eq!(noted("06.2 measured "), (bound / 4.0).floor());
    let [rows, loops] = ["workgroups: fold into rows", "workgroups: share by a loop"]
        .map(|way| row(way)[3].parse::<f64>().expect("µs"));
    for words in ["06.3 measured ", "in rows, takes "] {
        let off = (noted(words) - rows / loops).abs();
        assert!(off <= 0.06, "{words}is not {rows} through {loops} in {printed}");
    }
}
