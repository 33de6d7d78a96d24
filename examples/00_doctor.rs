//! 00 doctor: which adapters this machine has, which one will run and why, and what it lacks.
//!
//! In:    nothing; there is no argument.
//! Out:   the adapters; the chosen one's features and limits that lessons use; a line for each lesson.
//! Run:   cargo run --example 00_doctor
//! Read:  guide/00_doctor.md

use std::ops::RangeInclusive;

const HEAD: &str = include_str!("00_doctor.rs");
const NO_NUMBER: RangeInclusive<u64> = RangeInclusive::new(1, 0);
/// Lessons that read the GPU's own clock where there is one.
const TIMED: &[u32] = &[2, 4, 7, 9, 10, 11, 13];
/// Features that some lessons ask for and can do without: name, purpose, those lessons.
const OPTIONAL: [(wgpu::Features, &str, &str, &[u32]); 4] = [
    (wgpu::Features::TIMESTAMP_QUERY, "timestamps", "the GPU's own clock", TIMED),
    (wgpu::Features::SHADER_FLOAT32_ATOMIC, "float atomics", "a sum without a tree", &[4, 13]),
    (wgpu::Features::SUBGROUP, "subgroups", "sums without memory", &[7, 10, 13]),
    (wgpu::Features::MAPPABLE_PRIMARY_BUFFERS, "mappable primary", "uploads without a copy", &[8]),
];
/// Bytes of workgroup memory that a tile of 11 fills.
const TILE: u32 = 64 * 64 * 4;
/// Limits that lessons ask for, or run into.
type Limit = fn(&wgpu::Limits) -> u64;
const LIMITS: [(&str, Limit); 5] = [
    ("bytes in one binding", |limits| limits.max_storage_buffer_binding_size),
    ("bytes in one buffer", |limits| limits.max_buffer_size),
    ("workgroups in one dimension", |limits| limits.max_compute_workgroups_per_dimension.into()),
    ("invocations in one workgroup", |limits| limits.max_compute_invocations_per_workgroup.into()),
    ("bytes of workgroup memory", |limits| limits.max_compute_workgroup_storage_size.into()),
];
const LESSONS: &[(u32, &str)] = &[
    (1, "object_ladder"),
    (2, "fixed_tax"),
    (3, "hoisted_setup"),
    (4, "tree_reduction"),
    (5, "bfs_levels"),
    (6, "limit_walls"),
    (7, "subgroup_add"),
    (8, "upload_ring"),
    (9, "workgroup_sweep"),
    (10, "filter_compact"),
    (11, "density_grid"),
    (12, "indirect_dispatch"),
    (13, "failure_gallery"),
    (14, "break_even"),
    (15, "calibration"),
];

pub fn main() {
    env_logger::init();
    argument(HEAD, NO_NUMBER);
    if let Err(error) = lesson() {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

/// What a lesson will be like on an adapter with these features and limits.
pub fn outlook(lesson: u32, features: wgpu::Features, limits: &wgpu::Limits) -> String {
    if lesson == 15 {
        return "runs whole, on no adapter".into();
    }
    let mut short = Vec::new();
    let note = |limit, needs, has| short.push(format!("{limit} is {has} of {needs}"));
    let least = wgpu::Limits::downlevel_defaults();
    let memory = if lesson == 11 { TILE } else { least.max_compute_workgroup_storage_size };
    let needed = wgpu::Limits { max_compute_workgroup_storage_size: memory, ..least };
    needed.check_limits_with_fail_fn(limits, false, note);
    if !short.is_empty() {
        return format!("cannot run: {}", short.join(", "));
    }
    let mut missing = Vec::new();
    for (feature, name, _, lessons) in OPTIONAL {
        if lessons.contains(&lesson) && !features.contains(feature) {
            missing.push(name);
        }
    }
    match missing.as_slice() {
        [] => "runs whole".into(),
        missing => format!("runs without {}", missing.join(" and ")),
    }
}

fn lesson() -> Result<()> {
    // Rung 1, instance.
    let descriptor = wgpu::InstanceDescriptor::new_without_display_handle_from_env();
    let flags = descriptor.flags;
    let instance = wgpu::Instance::new(descriptor);

    // Rung 2, adapter.
    let wanted = std::env::var("WGPU_ADAPTER_NAME").unwrap_or_default().to_lowercase();
    let all = pollster::block_on(instance.enumerate_adapters(wgpu::Backends::all()));
    let adapter = if wanted.is_empty() || all.is_empty() {
        let power_preference = wgpu::PowerPreference::HighPerformance;
        let options = wgpu::RequestAdapterOptions { power_preference, ..Default::default() };
        let adapter = pollster::block_on(instance.request_adapter(&options));
        adapter.map_err(|error| format!("{error}. {NO_ADAPTER}"))?
    } else {
        let names: Vec<String> = all.iter().map(|adapter| adapter.get_info().name).collect();
        let found = names.iter().position(|name| name.to_lowercase().contains(&wanted));
        let found = found.and_then(|found| all.into_iter().nth(found));
        found.ok_or_else(|| format!("WGPU_ADAPTER_NAME is none of the adapters here: {names:?}"))?
    };

    say("Adapters here:");
    for one in pollster::block_on(instance.enumerate_adapters(wgpu::Backends::all())) {
        let wgpu::AdapterInfo { name, device_type, backend, driver, driver_info, .. } =
            one.get_info();
        say(format_args!("- {name}, {device_type:?}, {backend:?}; {driver} {driver_info}"));
    }
    let why = if wanted.is_empty() { "it promises most" } else { "WGPU_ADAPTER_NAME names it" };
    say(format_args!("\nThe lessons take this one, because {why}:\n"));
    header(&adapter, flags);

    let (features, limits) = (adapter.features(), adapter.limits());
    say("\n| optional feature | here | what it is for           |");
    say("|------------------|------|--------------------------|");
    for (feature, name, purpose, _) in OPTIONAL {
        let here = if features.contains(feature) { "yes" } else { "no" };
        say(format_args!("| {name:<16} | {here:<4} | {purpose:<24} |"));
    }
    say("\n| limit                        |  asked for | can be had  |");
    say("|------------------------------|-----------:|------------:|");
    for (name, limit) in LIMITS {
        let (asked, here) = (limit(&wgpu::Limits::downlevel_defaults()), limit(&limits));
        say(format_args!("| {name:<28} | {asked:>10} | {here:>11} |"));
    }
    say("\n| lesson               | here                                             |");
    say("|----------------------|--------------------------------------------------|");
    for &(number, name) in LESSONS {
        let outlook = outlook(number, features, &limits);
        say(format_args!("| {number:02}_{name:<17} | {outlook:<48} |"));
    }
    say("\nNext: cargo run --example 01_object_ladder");
    Ok(())
}

// ======== The foot: what every lesson needs and none teaches; tests/book holds the copies equal.

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const WGPU: &str = "30.0.2";
const NO_ADAPTER: &str = if cfg!(target_os = "linux") {
    "Unset WGPU_BACKEND; install the card's Vulkan driver, or mesa-vulkan-drivers, a software one"
} else if cfg!(target_os = "macos") {
    "Metal serves every Mac since macOS 10.14: unset WGPU_BACKEND and WGPU_ADAPTER_NAME"
} else {
    "Update the graphics driver, for Direct3D 12 or Vulkan, and unset WGPU_BACKEND"
};

/// Prints a line. A reader who has seen enough (`| head`) ends the program; a full disk is told.
fn say(line: impl std::fmt::Display) {
    use std::io::{ErrorKind, Write};
    if let Err(error) = writeln!(std::io::stdout(), "{line}") {
        if error.kind() == ErrorKind::BrokenPipe {
            std::process::exit(0);
        }
        eprintln!("the output cannot be written: {error}");
        std::process::exit(1);
    }
}

/// The one argument, a whole number such as 1000 or 2^20, if there is one. `--help` prints the head.
fn argument(head: &str, accepted: std::ops::RangeInclusive<u64>) -> Option<u64> {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    if words.iter().any(|word| word == "--help" || word == "-h") {
        let head = head.lines().map_while(|line| line.strip_prefix("//!"));
        head.for_each(|line| say(line.strip_prefix(' ').unwrap_or(line)));
        std::process::exit(0);
    }
    let number = |word: &str| match word.split_once('^') {
        Some((base, power)) => base.parse::<u64>().ok()?.checked_pow(power.parse().ok()?),
        None => word.parse().ok(),
    };
    match words.as_slice() {
        [] => return None,
        [word] => number(word).filter(|number| accepted.contains(number)),
        _ => None,
    }
    .or_else(|| {
        let (words, least, most) = (words.join(" "), accepted.start(), accepted.end());
        let range = format!("one whole number from {least} to {most}");
        let range = if accepted.is_empty() { "no argument" } else { &range };
        eprintln!("cannot take {words:?}: it takes {range}; --help says more");
        std::process::exit(2)
    })
}

/// What ran, so that the table can still be read in years.
fn header(adapter: &wgpu::Adapter, flags: wgpu::InstanceFlags) {
    let info = adapter.get_info();
    let assertions = if cfg!(debug_assertions) { "on" } else { "off" };
    say(format_args!("adapter {}, {:?}, {:?}", info.name, info.device_type, info.backend));
    say(format_args!("driver  {} {}", info.driver, info.driver_info));
    say(format_args!("wgpu    {WGPU}, flags {flags:?}, debug assertions {assertions}"));
    if info.device_type == wgpu::DeviceType::Cpu {
        say("note    a CPU plays the GPU here: the answers are right, the times are no card's");
    }
}
