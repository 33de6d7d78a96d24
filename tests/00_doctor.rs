//! 00: what an adapter lacks is named, and every lesson has its line.
//!
//! Not proven: that a lesson which is said to run whole does; its own tests show that.

#[path = "../examples/00_doctor.rs"]
mod example;
mod process;

use example::outlook;
use wgpu::{Features, Limits};

// Named here, so that the compiler finds a use for all of the example.
const _: fn() = example::main;

const EXAMPLE: process::Example = process::Example {
    name: "00_doctor",
    quick: &[],
    outside: &["0", "1"],
    too_large: &[],
    ids: |_| &[],
};

const STAMPS: Features = Features::TIMESTAMP_QUERY;
const ATOMICS: Features = Features::SHADER_FLOAT32_ATOMIC;

#[test]
fn missing_features_are_named_where_a_lesson_has_a_use_for_them() {
    for (lesson, features, wanted) in [
        (1, Features::empty(), "runs whole"),
        (2, Features::empty(), "runs without timestamps"),
        (2, ATOMICS, "runs without timestamps"),
        (2, STAMPS, "runs whole"),
        (3, Features::empty(), "runs whole"),
        (4, Features::empty(), "runs without timestamps and float atomics"),
        (4, STAMPS, "runs without float atomics"),
        (4, ATOMICS, "runs without timestamps"),
        (4, STAMPS | ATOMICS, "runs whole"),
        (11, STAMPS, "cannot run: max_compute_workgroup_storage_size is 16352 of 16384"),
        (15, Features::empty(), "runs whole, on no adapter"),
    ] {
        assert_eq!(
            outlook(lesson, features, &Limits::downlevel_defaults()),
            wanted,
            "{lesson}, {features:?}"
        );
    }
}

/// The one number of another lesson that 00 repeats.
#[test]
fn the_tile_of_11_is_as_large_as_11_says() {
    let eleven = include_str!("../examples/11_density_grid.rs");
    assert!(eleven.contains("\npub const TILE: u32 = 64;\n"));
    assert!(eleven.contains("max_compute_workgroup_storage_size: TILE * TILE * 4,"));
    let tile =
        Limits { max_compute_workgroup_storage_size: 64 * 64 * 4, ..Limits::downlevel_defaults() };
    assert_eq!(outlook(11, STAMPS, &tile), "runs whole");
}

#[test]
fn a_limit_that_is_too_low_is_named_with_what_there_is_and_what_it_takes() {
    let low = Limits { max_compute_workgroup_size_x: 128, ..Limits::downlevel_defaults() };
    for lesson in 1..=4 {
        let wanted = "cannot run: max_compute_workgroup_size_x is 128 of 256";
        assert_eq!(outlook(lesson, Features::all(), &low), wanted, "lesson {lesson}");
    }
    let lower = Limits { max_storage_buffer_binding_size: 1 << 20, ..low };
    let outlook = outlook(1, Features::empty(), &lower);
    for limit in
        ["max_compute_workgroup_size_x", "max_storage_buffer_binding_size is 1048576 of 134217728"]
    {
        assert!(
            outlook.starts_with("cannot run: ") && outlook.contains(limit),
            "{limit}: {outlook}"
        );
    }
}

#[test]
fn more_than_is_asked_for_is_no_hindrance() {
    let high = Limits { max_buffer_size: 1 << 40, ..Limits::default() };
    assert_eq!(outlook(4, Features::all(), &high), "runs whole");
}

#[test]
fn the_adapter_that_runs_is_one_of_those_here_and_every_lesson_has_a_line() {
    let _turn = process::turn();
    let printed = process::run(&[]).stdout;
    let taken = printed.lines().find_map(|line| line.strip_prefix("adapter ")).unwrap();
    assert!(printed.lines().any(|line| line.starts_with(&format!("- {taken}; "))), "{printed}");
    let examples = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/examples")).unwrap();
    for example in examples.map(|example| example.unwrap().file_name().into_string().unwrap()) {
        let lesson = example.trim_end_matches(".rs");
        if lesson != EXAMPLE.name && lesson.as_bytes()[0].is_ascii_digit() {
            assert!(
                printed.contains(&format!("\n| {lesson} ")),
                "no line for {lesson} in {printed}"
            );
        }
    }
    assert_eq!(printed.lines().last(), Some("Next: cargo run --example 01_object_ladder"));
}
