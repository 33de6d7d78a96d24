//! 13: every exhibit fails as it says, where it says, and its cure is right, on the same device.
//!
//! Not proven: what an exhibit that is told and not shown would have done; nor that one which is wrong only here or
//! there, or only late, is so on another adapter.

use std::sync::LazyLock;

#[path = "../examples/13_failure_gallery.rs"]
mod example;
mod process;

use example::{EXHIBITS, End, Exhibit, SHELVES, Seen, Shelf, enter, nearest, page, show};
use wgpu::Features;

// Named here, so that the compiler finds a use for all of the example.
const _: fn() = example::main;

const EXAMPLE: process::Example = process::Example {
    name: "13_failure_gallery",
    quick: &[],
    outside: &["0", "1", "bindgroup", "LIST", "entry_point list"],
    too_large: &[],
    ids: |_| &["13.1", "13.2", "13.3"],
};

/// Nobody is asked to show these.
const TOLD: [&str; 4] = ["divergent_barrier", "tuned_elsewhere", "memory_promised", "watchdog"];
/// These depend on the adapter or on a flag: a feature, a tick that is no nanosecond, work that is not done at once,
/// indirect calls that are validated.
const MAY_BE_TOLD: [&str; 10] = [
    "feature_refused",
    "timestamps_unasked",
    "subgroups_unasked",
    "subgroup_directive",
    "subgroup_of_32",
    "poll_timeout",
    "resolve_offset",
    "stamps_unwritten",
    "stamps_in_ticks",
    "indirect_65536",
];
/// What these give is wrong on every adapter, by what WGSL and WebGPU say.
const WRONG: [&str; 15] = [
    "tail_guard",
    "rounded_down",
    "groups_for_threads",
    "write_dropped",
    "vec4_tail",
    "vec3_stride",
    "cast_clamps",
    "sum_sticks",
    "sum_order",
    "indirect_65536",
    "parameters_overwritten",
    "copy_too_early",
    "map_without_poll",
    "scope_elsewhere",
    "device_lost",
];
/// What these give is right on every adapter, and late or by luck.
const RIGHT: [&str; 6] = [
    "override_over_limit",
    "workgroup_memory",
    "upload_as_kernel",
    "cold_pipeline",
    "contention",
    "idle_lanes",
];

type Shown = Vec<(&'static Exhibit, [Seen; 2])>;

/// What the adapter has, and all of the gallery, shown once for all tests.
static SHOWN: LazyLock<(Features, Shown)> = LazyLock::new(|| {
    let _turn = process::turn();
    let gpu = enter().unwrap();
    let shown = EXHIBITS.iter().map(|exhibit| (exhibit, show(&gpu, exhibit)));
    (gpu.adapter.features(), shown.collect())
});

fn seen(name: &str) -> &'static [Seen; 2] {
    let (_, seen) = SHOWN.1.iter().find(|(exhibit, _)| exhibit.name == name).unwrap();
    seen
}

fn is_told(seen: &Seen) -> bool {
    matches!(seen.end, End::NotShown(_)) && seen.said.is_empty()
}

#[test]
fn every_exhibit_fails_with_its_text_or_in_silence() {
    for (exhibit, [faulty, _]) in SHOWN.1.iter() {
        let name = exhibit.name;
        if is_told(faulty) {
            assert!(TOLD.contains(&name) || MAY_BE_TOLD.contains(&name), "{name}: {faulty:?}");
        } else {
            assert!(exhibit.as_told(faulty), "{name} wants {:?}: {faulty:?}", exhibit.telling);
        }
    }
}

#[test]
fn every_error_is_raised_where_its_shelf_says() {
    for (exhibit, [faulty, _]) in SHOWN.1.iter().filter(|(_, [faulty, _])| !is_told(faulty)) {
        let at = faulty.said.first().map(|(at, _)| *at);
        let late = at.is_some_and(|at| ["finish", "submit"].contains(&at));
        match exhibit.shelf {
            Shelf::Call => assert!(at.is_some() && !late, "{}: {faulty:?}", exhibit.name),
            Shelf::Later => assert!(late, "{}: {faulty:?}", exhibit.name),
            Shelf::Never => assert_eq!(at, None, "{}: {faulty:?}", exhibit.name),
        }
    }
}

#[test]
fn every_cure_is_right_on_the_device_that_failed() {
    for (exhibit, [_, cured]) in SHOWN.1.iter() {
        let excused = is_told(cured) && MAY_BE_TOLD.contains(&exhibit.name);
        assert!(cured.right() || excused, "{}: {cured:?}", exhibit.name);
    }
}

#[test]
fn silence_is_wrong_or_merely_late() {
    for name in WRONG.iter().filter(|name| !is_told(&seen(name)[0])) {
        assert!(!seen(name)[0].right(), "{name}: {:?}", seen(name));
    }
    for name in RIGHT {
        assert!(seen(name)[0].right(), "{name}: {:?}", seen(name));
    }
}

/// What is raised at `finish` is raised again by the submit of what came of it, for the same reason.
#[test]
fn a_command_buffer_with_an_error_is_refused_too() {
    for (exhibit, [faulty, _]) in SHOWN.1.iter().filter(|(one, _)| one.shelf == Shelf::Later) {
        if let [("finish", _), rest @ ..] = faulty.said.as_slice() {
            let again =
                |(at, text): &(&str, String)| *at == "submit" && text.contains(exhibit.telling);
            assert!(rest.iter().any(again), "{}: {faulty:?}", exhibit.name);
        }
    }
}

#[test]
fn a_feature_that_is_there_is_used() {
    for (feature, names) in [
        (Features::SUBGROUP, &["subgroups_unasked", "subgroup_directive", "subgroup_of_32"][..]),
        (Features::TIMESTAMP_QUERY, &["timestamps_unasked", "resolve_offset"]),
    ] {
        for name in names.iter().filter(|_| SHOWN.0.contains(feature)) {
            assert!(seen(name)[1].right(), "{name}: {:?}", seen(name));
        }
    }
}

#[test]
fn the_shelves_are_full_and_their_texts_tell_exhibits_apart() {
    let of = |shelf| EXHIBITS.iter().filter(move |exhibit| exhibit.shelf == shelf).count();
    assert!(SHELVES.iter().all(|(shelf, _)| of(*shelf) >= 8));
    assert!(EXHIBITS.is_sorted_by_key(|exhibit| exhibit.shelf as u32));
    for (place, exhibit) in EXHIBITS.iter().enumerate() {
        let others = &EXHIBITS[..place];
        assert!(!others.iter().any(|other| other.name == exhibit.name), "{}", exhibit.name);
        assert!(!others.iter().any(|other| other.telling == exhibit.telling), "{}", exhibit.name);
    }
}

#[test]
fn a_word_finds_the_names_that_are_like_it() {
    assert_eq!(nearest("entrypoint")[0], "entry_point");
    assert_eq!(nearest("Entry-Point")[0], "entry_point");
    assert_eq!(nearest("poll_timout")[0], "poll_timeout");
    assert_eq!(nearest("barrier").len(), 3);
    for nothing in ["", "x", "?", "é", "zzzz"] {
        assert!(nearest(nothing).is_empty(), "{nothing}");
    }
}

#[test]
fn an_exhibit_says_where_there_is_more() {
    assert_eq!(page("06_limit_walls"), "guide/06_limit_walls.md");
    assert_eq!(page("wgsl_beside_cuda"), "guide/reference/wgsl_beside_cuda.md");
}

#[test]
fn one_exhibit_is_shown_by_its_name() {
    let _turn = process::turn();
    let ended = process::run(&["entry_point"]);
    assert!(ended.code == Some(0) && ended.stderr.is_empty(), "{ended:?}");
    for part in ["entry_point\n  cause   ", "text    Validation Error", "cured   gave 1000"] {
        assert!(ended.stdout.contains(part), "{part} is not in {}", ended.stdout);
    }
    assert!(!ended.stdout.contains("group_missing"), "{}", ended.stdout);
}

#[test]
fn a_list_has_every_name_by_shelf() {
    let ended = process::run(&["list"]);
    assert!(ended.code == Some(0) && ended.stderr.is_empty(), "{ended:?}");
    let mut lines = ended.stdout.lines();
    for (shelf, title) in SHELVES {
        assert!(lines.next().is_some_and(|line| line.starts_with(title)), "{title}");
        for exhibit in EXHIBITS.iter().filter(|exhibit| exhibit.shelf == shelf) {
            assert_eq!(lines.next().map(str::trim), Some(exhibit.name));
        }
    }
    assert_eq!(lines.next(), None);
}

#[test]
fn an_unknown_name_is_told_the_nearest_ones() {
    let ended = process::run(&["bind_count"]);
    assert_eq!((ended.code, ended.stderr.len()), (Some(2), 1), "{ended:?}");
    assert!(ended.stderr[0].contains("such as binding_count"), "{ended:?}");
    assert!(ended.stderr[0].contains("or list"), "{ended:?}");
}

#[cfg(unix)]
#[test]
fn a_word_that_is_no_text_is_refused_as_any_other() {
    use std::os::unix::ffi::OsStrExt;
    let word = std::ffi::OsStr::from_bytes(b"entry\xff");
    let mut cargo = std::process::Command::new(env!("CARGO"));
    cargo.args(["run", "-q", "--example", EXAMPLE.name, "--"]).arg(word);
    let ended = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("cargo starts");
    assert_eq!(ended.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&ended.stderr).contains("such as entry_point"));
}
