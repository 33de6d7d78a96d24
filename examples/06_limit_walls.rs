//! 06 limit walls: where each wall of a device stands, what wgpu says there, and the ways past it.
//!
//! In:    nothing; all sizes that are tried follow from this machine's limits.
//! Out:   the limits side by side; each wall with its text; each way past it, µs and exact total.
//! Run:   cargo run --example 06_limit_walls
//! Read:  guide/06_limit_walls.md
//!
//! Rungs: 2 as 02; 3 its own: the caller chooses the limits. From 4 on they stand in the foot: there is
//! one total and no partials, and each window of the data has a bind group and a dispatch.

use std::hint::black_box;
use std::ops::RangeInclusive;
use std::time::Instant;
use wgpu::{BufferBinding, BufferSize, BufferUsages, Limits};

const HEAD: &str = include_str!("06_limit_walls.rs");
const NO_NUMBER: RangeInclusive<u64> = RangeInclusive::new(1, 0);
const WIDTH: u32 = 256;
/// Workgroups that share what there is, by a loop.
const SHARED: [u32; 3] = [2112, 1, 1];
type Limit = fn(&Limits) -> u64;
const LIMITS: [(&str, Limit); 7] = [
    ("binding, bytes", |limits| limits.max_storage_buffer_binding_size),
    ("buffer, bytes", |limits| limits.max_buffer_size),
    ("row, groups", |limits| limits.max_compute_workgroups_per_dimension.into()),
    ("group, lanes", |limits| lanes(limits).into()),
    ("group, bytes", |limits| limits.max_compute_workgroup_storage_size.into()),
    ("stage, buffers", |limits| limits.max_storage_buffers_per_shader_stage.into()),
    ("offset, bytes", |limits| limits.min_storage_buffer_offset_alignment.into()),
];

pub fn main() {
    env_logger::init();
    argument(HEAD, NO_NUMBER);
    if let Err(error) = lesson() {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

/// The total on the CPU, the definition of correct. Whole numbers have one, in whatever order; past
/// 2^32 as well, where u32 goes round on both sides.
pub fn exact(n: u64) -> u32 {
    (0..n).map(element).fold(0, u32::wrapping_add)
}

/// A buffer in windows: as large as may be bound, each at an offset where one may begin.
pub fn windows<'a>(buffer: &'a wgpu::Buffer, limits: &Limits) -> Vec<BufferBinding<'a>> {
    let alignment = u64::from(limits.min_storage_buffer_offset_alignment);
    let bound = limits.max_storage_buffer_binding_size;
    let most = if buffer.size() > bound { bound / alignment * alignment } else { bound };
    let size = |offset| BufferSize::new(most.min(buffer.size() - offset));
    let window = |offset| BufferBinding { buffer, offset, size: size(offset) };
    (0..buffer.size()).step_by(most as usize).map(window).collect()
}

/// At least so many workgroups, in as few rows as the limit allows, all of one length.
pub fn fold(groups: u32, limit: u32) -> [u32; 3] {
    let rows = groups.div_ceil(limit).max(1);
    [groups.div_ceil(rows), rows, 1]
}

/// Limits to get past the walls with: one element more than `least` binds and holds, as much of a
/// workgroup as is offered, and nothing that is not offered.
pub fn asked(least: Limits, offered: &Limits) -> Limits {
    Limits {
        max_storage_buffer_binding_size: least.max_storage_buffer_binding_size + 4,
        max_buffer_size: least.max_buffer_size + 4,
        max_compute_invocations_per_workgroup: offered.max_compute_invocations_per_workgroup,
        max_compute_workgroup_size_x: offered.max_compute_workgroup_size_x,
        max_compute_workgroup_storage_size: offered.max_compute_workgroup_storage_size,
        ..least
    }
    .or_worse_values_from(offered)
}

/// A device with the limits that `choose` makes of those offered.
pub fn open(choose: impl FnOnce(&Limits) -> Limits) -> Result<Session> {
    // Rung 1, instance.
    let descriptor = wgpu::InstanceDescriptor::new_without_display_handle_from_env();
    let flags = descriptor.flags;
    let instance = wgpu::Instance::new(descriptor);

    // Rung 2, adapter.
    let adapter = adapter(&instance)?;

    // Rung 3, device and queue: here the walls are put up. More than is offered is refused at once.
    let (device, queue) = pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor {
        label: Some("device"),
        required_limits: choose(&adapter.limits()),
        ..Default::default()
    }))?;

    Ok(session(adapter, flags, device, queue))
}

/// What came of a try: wgpu's text; or no error, and whether the answer is right; or no try.
pub enum Met {
    Refused(String),
    Silent(bool),
    LeftOut(String),
}

/// The first error that `exhibit` raises in this thread. The scope stays open to the end: what could
/// not be made raises more where it is used.
fn caught(gpu: &Session, exact: u32, exhibit: impl FnOnce() -> Result<u32>) -> Met {
    let scope = gpu.device.push_error_scope(wgpu::ErrorFilter::Validation);
    let end = exhibit();
    match (pollster::block_on(scope.pop()), end) {
        (Some(error), _) => Met::Refused(error.to_string()),
        (None, Ok(total)) => Met::Silent(total == exact),
        (None, Err(error)) => Met::LeftOut(error.to_string()),
    }
}

/// Runs into each wall; `row` gets its name, its rung, what is allowed and what is tried, what it met.
/// What nothing checks is tried as far as the adapter goes, and no further: drivers abort or hang.
pub fn walls(gpu: &Session, mut row: impl FnMut(&str, &str, [u64; 2], Met)) -> Result<()> {
    let (limits, offered) = (gpu.device.limits(), gpu.adapter.limits());
    let small = zeros(gpu, 2)?;
    let whole = |buffer: &wgpu::Buffer, offset| {
        let window = BufferBinding { buffer, offset, size: None };
        total(gpu, &gpu.kernels["strided"], &[window], SHARED)
    };
    let one = |kernel: &_, x| total(gpu, kernel, &windows(&small, &limits), [x, 1, 1]);

    let fit = limits.max_storage_buffer_binding_size / 4;
    let met = caught(gpu, 0, || whole(&zeros(gpu, fit + 1)?, 0));
    row("elements in one binding", "9, bind group", [fit, fit + 1], met);
    let fit = limits.min_storage_buffer_offset_alignment.into();
    let met = caught(gpu, 0, || whole(&small, 4));
    row("a binding's offset, in bytes", "9, bind group", [fit, 4], met);
    let fit = limits.max_buffer_size / 4;
    let past = || buffer(&gpu.device, "input", 4 * (fit + 1), BufferUsages::STORAGE);
    let met = caught(gpu, 0, || whole(&past(), 0));
    row("elements in one buffer", "8, buffers", [fit, fit + 1], met);
    let fit = limits.max_compute_workgroups_per_dimension;
    let met = caught(gpu, 0, || one(&gpu.kernels["one_each"], fit + 1));
    row("elements, one an invocation", "10, commands", [fit, fit + 1].map(elements), met);

    let (fit, most) = (lanes(&limits), lanes(&offered));
    let met = caught(gpu, fit + 1, || one(&rewritten(gpu, "arrive", "LANES", fit + 1), 1));
    row("invocations, in the text", "7, pipeline", [fit, fit + 1].map(u64::from), met);
    let past = || one(&overridden(gpu, "arrive", "LANES", further(fit, most)?), 1);
    let met = caught(gpu, most, past);
    row("invocations, by an override", "7, pipeline", [fit, most].map(u64::from), met);
    let [fit, most] = [&limits, &offered].map(|limits| limits.max_compute_workgroup_storage_size);
    let past = || one(&rewritten(gpu, "recall", "WORDS", further(fit, most)? / 4), 1);
    let met = caught(gpu, recalled(most), past);
    row("bytes of workgroup memory", "7, pipeline", [fit, most].map(u64::from), met);

    let fit = offered.max_compute_workgroups_per_dimension;
    let met = match open(|_| Limits { max_compute_workgroups_per_dimension: fit + 1, ..limits }) {
        Err(error) => Met::Refused(error.to_string()),
        Ok(_) => Met::Silent(true),
    };
    row("workgroups, negotiated", "3, device", [fit, fit + 1].map(u64::from), met);
    Ok(())
}

/// Goes past each wall, by what was asked for `more` too; `row` gets the way, n, µs or why none.
pub fn ways(
    gpu: &Session,
    more: &Session,
    mut row: impl FnMut(&str, u64, Result<f64>),
) -> Result<()> {
    let (limits, raised) = (gpu.device.limits(), more.device.limits());
    let mut way = |name: &str, gpu: &Session, offered: bool, kernel: &str, grid, n| -> Result<()> {
        let limits = gpu.device.limits();
        let inputs = if offered { inputs(gpu, n) } else { Err("no more is offered".into()) };
        let timing = inputs.map(|inputs| -> Result<f64> {
            let windows: Vec<_> = inputs.iter().flat_map(|input| windows(input, &limits)).collect();
            let sum = || total(gpu, &gpu.kernels[kernel], &windows, grid);
            let call = || exactly(name, sum()?, expected(kernel, n));
            Ok(repeat(timed(call))?[0])
        });
        // What cannot be tried is left out; what is tried and goes wrong ends the program.
        row(name, n, timing.map_or_else(|why| Ok(Err(why)), |us| us.map(Ok))?);
        Ok(())
    };
    let [fit, most] = [&limits, &raised].map(|limits| limits.max_storage_buffer_binding_size / 4);
    way("binding: negotiate", more, most > fit, "strided", SHARED, fit + 1)?;
    way("binding: windows of one buffer", gpu, true, "strided", SHARED, fit + 1)?;
    let [fit, most] = [&limits, &raised].map(|limits| limits.max_buffer_size / 4);
    way("buffer: negotiate, and windows", more, most > fit, "strided", SHARED, fit + 1)?;
    way("buffer: several buffers", gpu, true, "strided", SHARED, fit + 1)?;
    let fit = limits.max_compute_workgroups_per_dimension;
    let (n, four) = (elements(fit + 1), [(fit + 1).div_ceil(4), 1, 1]);
    way("workgroups: four an invocation", gpu, true, "four_each", four, n)?;
    way("workgroups: fold into rows", gpu, true, "folded", fold(fit + 1, fit), n)?;
    way("workgroups: share by a loop", gpu, true, "strided", SHARED, n)?;
    let [fit, most] = [&limits, &raised].map(lanes);
    way("invocations: clamp", gpu, true, "arrive", [1; 3], fit.into())?;
    way("invocations: negotiate", more, most > fit, "arrive", [1; 3], most.into())?;
    let [fit, most] = [&limits, &raised].map(|limits| limits.max_compute_workgroup_storage_size);
    way("workgroup memory: negotiate", more, most > fit, "recall", [1; 3], most.into())
}

fn lesson() -> Result<()> {
    let least = Limits::downlevel_defaults();
    let (gpu, more) = (open(|_| least.clone())?, open(|offered| asked(least.clone(), offered))?);
    let [ours, raised] = [&gpu, &more].map(|gpu| gpu.device.limits());
    let offered = gpu.adapter.limits();
    header(&gpu.adapter, gpu.flags);
    say("runs    medians of 15, or of 3 and more in half a second");
    say("\n| limit          |   default | downlevel |     adapter |    device |      more |");
    say("|----------------|----------:|----------:|------------:|----------:|----------:|");
    for (name, limit) in LIMITS {
        let [a, b, c, d, e] = [&Limits::defaults(), &least, &offered, &ours, &raised].map(limit);
        say(format_args!("| {name:<14} | {a:>9} | {b:>9} | {c:>11} | {d:>9} | {e:>9} |"));
    }

    say("\n|   | wall                         |    allowed |      tried | raised at rung |");
    say("|--:|------------------------------|-----------:|-----------:|----------------|");
    let (mut said, mut errors, mut silent) = (Vec::new(), 0, 0);
    walls(&gpu, |wall, rung, [allowed, tried], met| {
        let (at, text) = match met {
            Met::Refused(text) => (rung, text),
            Met::Silent(true) => ("nowhere", "No error, and the right answer.".into()),
            Met::Silent(false) => ("nowhere", "No error, and a wrong answer.".into()),
            Met::LeftOut(why) => ("left out", format!("Left out: {why}.")),
        };
        (errors, silent) = (errors + u32::from(at == rung), silent + u32::from(at == "nowhere"));
        said.push(text.split_whitespace().collect::<Vec<_>>().join(" "));
        let number = said.len();
        say(format_args!("| {number} | {wall:<28} | {allowed:>10} | {tried:>10} | {at:<14} |"));
    })?;
    say("\nWhat was said there:");
    (1..).zip(&said).for_each(|(wall, text)| say(format_args!("{wall}. {text}")));

    say("\n| a way past a wall              |          n |        µs | total    |");
    say("|--------------------------------|-----------:|----------:|----------|");
    let (mut times, mut left_out) = (Vec::new(), Vec::new());
    ways(&gpu, &more, |way, n, timing| {
        times.push(*timing.as_ref().unwrap_or(&f64::NAN));
        let us = timing.as_ref().map_or(String::new(), |us| format!("{us:.1}"));
        let total = if timing.is_ok() { "exact" } else { "left out" };
        say(format_args!("| {way:<30} | {n:>10} | {us:>9} | {total:<8} |"));
        left_out.extend(timing.err().map(|why| format!("Left out, {way}: {why}.")));
    })?;
    say(format_args!("\nRaise an error: {errors}; raise none, and are yours to check: {silent}."));
    left_out.iter().for_each(say);
    let (most, ratio) = (offered.max_storage_buffer_binding_size / 4, times[5] / times[6]);
    let mut notes = format!("06.1 measured {errors} walls   06.2 measured {most} elements");
    if ratio > 0.0 {
        say(format_args!("One element each, in rows, takes {ratio:.1}× the time of the loop."));
        notes += &format!("   06.3 measured {ratio:.1}×");
    }
    say(format_args!("For notes.md:  {notes}"));
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
const RESULT: wgpu::BufferUsages = wgpu::BufferUsages::STORAGE.union(wgpu::BufferUsages::COPY_SRC);
const READBACK: wgpu::BufferUsages =
    wgpu::BufferUsages::MAP_READ.union(wgpu::BufferUsages::COPY_DST);

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

/// Refuses what this machine cannot hold before anything is allocated: a software adapter would
/// overcommit, and be killed.
fn memory(bytes: u64) -> Result<()> {
    let free = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
        line.trim().strip_suffix(" kB")?.parse::<u64>().ok()
    });
    let (mib, free) = (bytes >> 20, free.map_or(4 << 10, |kib| kib >> 10));
    if mib <= free {
        return Ok(());
    }
    Err(format!("this takes {mib} MiB and {free} are free: give a smaller size").into())
}

/// The adapter that WGPU_ADAPTER_NAME names, else the one that promises most.
fn adapter(instance: &wgpu::Instance) -> Result<wgpu::Adapter> {
    let wanted = std::env::var("WGPU_ADAPTER_NAME").unwrap_or_default().to_lowercase();
    let all = pollster::block_on(instance.enumerate_adapters(wgpu::Backends::all()));
    if wanted.is_empty() || all.is_empty() {
        let power_preference = wgpu::PowerPreference::HighPerformance;
        let options = wgpu::RequestAdapterOptions { power_preference, ..Default::default() };
        let adapter = pollster::block_on(instance.request_adapter(&options));
        return Ok(adapter.map_err(|error| format!("{error}. {NO_ADAPTER}"))?);
    }
    let names: Vec<String> = all.iter().map(|adapter| adapter.get_info().name).collect();
    let found = names.iter().position(|name| name.to_lowercase().contains(&wanted));
    let unknown = || format!("WGPU_ADAPTER_NAME is none of the adapters here: {names:?}");
    Ok(all.into_iter().nth(found.ok_or_else(unknown)?).ok_or_else(unknown)?)
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

/// Where the errors go that no call returns; wgpu's own handler would panic.
fn errors(device: &wgpu::Device) -> flume::Receiver<wgpu::Error> {
    let (sender, receiver) = flume::unbounded();
    device.on_uncaptured_error(std::sync::Arc::new(move |error| {
        if let wgpu::Error::OutOfMemory { .. } = error {
            // There is no going on: `create_buffer_init` is about to fill a buffer that is not there.
            eprintln!("out of memory: give a smaller size");
            std::process::exit(1);
        }
        _ = sender.send(error);
    }));
    receiver
}

/// The layout's entry for a storage buffer.
fn storage(binding: u32, read_only: bool) -> wgpu::BindGroupLayoutEntry {
    wgpu::BindGroupLayoutEntry {
        binding,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer {
            ty: wgpu::BufferBindingType::Storage { read_only },
            has_dynamic_offset: false,
            min_binding_size: None,
        },
        count: None,
    }
}

/// The pipeline of one entry point.
fn pipeline(
    device: &wgpu::Device,
    layout: &wgpu::PipelineLayout,
    module: &wgpu::ShaderModule,
    entry_point: &str,
) -> wgpu::ComputePipeline {
    device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: Some(entry_point),
        layout: Some(layout),
        module,
        entry_point: Some(entry_point),
        compilation_options: Default::default(),
        cache: None,
    })
}

fn buffer(
    device: &wgpu::Device,
    label: &str,
    size: u64,
    usage: wgpu::BufferUsages,
) -> wgpu::Buffer {
    let label = Some(label);
    device.create_buffer(&wgpu::BufferDescriptor { label, size, usage, mapped_at_creation: false })
}

/// Sleeps until all that was submitted is done. What went wrong since the last wait is its `Err`.
fn wait(device: &wgpu::Device, errors: &flume::Receiver<wgpu::Error>) -> Result<()> {
    let timeout = Some(std::time::Duration::from_secs(120));
    let polled = device.poll(wgpu::PollType::Wait { submission_index: None, timeout });
    if let Err(wgpu::PollError::Timeout) = polled {
        // No `Err` here: dropping the queue on the way out would wait for the same work, for ever.
        eprintln!("the GPU was not done within two minutes: give a smaller size");
        std::process::exit(1);
    }
    // The first error is the cause. The others go with it, or the next wait would find them.
    match errors.drain().next() {
        Some(error) => Err(error.to_string().replace('\n', " ").into()),
        None => Ok(()),
    }
}

/// Asks for the content of `buffer` before it waits: the work and the map cost one wait together.
fn read<T: bytemuck::Pod>(
    device: &wgpu::Device,
    errors: &flume::Receiver<wgpu::Error>,
    buffer: &wgpu::Buffer,
) -> Result<Vec<T>> {
    let (sender, receiver) = flume::bounded(1);
    buffer.map_async(wgpu::MapMode::Read, .., move |verdict| _ = sender.send(verdict));
    let waited = wait(device, errors);
    if let Err(why) = receiver.try_recv()? {
        return waited.and(Err(why.into()));
    }
    let content = bytemuck::cast_slice(&buffer.get_mapped_range(..)?).to_vec();
    // Also after an error of the work, or the next call would find the buffer mapped.
    buffer.unmap();
    waited.map(|()| content)
}

fn micros(since: std::time::Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e6
}

/// Medians over 15 calls, or fewer after half a second but never under 3. Two calls and 50 ms go
/// before, uncounted, to warm up caches and clocks.
fn repeat<const N: usize>(mut call: impl FnMut() -> Result<[f64; N]>) -> Result<[f64; N]> {
    let (begin, mut calls) = (Instant::now(), Vec::new());
    while calls.len() < 2 || micros(begin) < 5e4 {
        calls.push(call()?);
    }
    calls.clear();
    let begin = Instant::now();
    while calls.len() < 3 || (calls.len() < 15 && micros(begin) < 5e5) {
        calls.push(call()?);
    }
    Ok(std::array::from_fn(|part| {
        calls.sort_by(|a, b| a[part].total_cmp(&b[part]));
        calls[calls.len() / 2][part]
    }))
}

/// A call that reports its own µs.
fn timed<T>(call: impl Fn() -> Result<T>) -> impl Fn() -> Result<[f64; 1]> {
    move || {
        let start = Instant::now();
        black_box(call()?);
        Ok([micros(start)])
    }
}

/// A device with the kernels of this lesson, by name.
pub struct Session {
    adapter: wgpu::Adapter,
    flags: wgpu::InstanceFlags,
    device: wgpu::Device,
    queue: wgpu::Queue,
    errors: flume::Receiver<wgpu::Error>,
    bind_group_layout: wgpu::BindGroupLayout,
    pipeline_layout: wgpu::PipelineLayout,
    shader: wgpu::ShaderModule,
    pub kernels: std::collections::BTreeMap<&'static str, wgpu::ComputePipeline>,
}

/// The rungs of a process that are left once there is a device.
fn session(
    adapter: wgpu::Adapter,
    flags: wgpu::InstanceFlags,
    device: wgpu::Device,
    queue: wgpu::Queue,
) -> Session {
    let errors = errors(&device);
    // Rung 4, shader module.
    let shader = device.create_shader_module(wgpu::include_wgsl!("../shaders/06_limit_walls.wgsl"));

    // Rung 5, bind group layout.
    let bind_group_layout = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
        label: Some("input and total"),
        entries: &[storage(0, true), storage(1, false)],
    });

    // Rung 6, pipeline layout.
    let pipeline_layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
        label: Some("input and total"),
        bind_group_layouts: &[Some(&bind_group_layout)],
        immediate_size: 0,
    });

    // Rung 7, pipeline.
    let kernels = ["one_each", "four_each", "folded", "strided"]
        .map(|name| (name, pipeline(&device, &pipeline_layout, &shader, name)));

    let kernels = std::collections::BTreeMap::from(kernels);
    let mut session = Session {
        adapter,
        flags,
        device,
        queue,
        errors,
        bind_group_layout,
        pipeline_layout,
        shader,
        kernels,
    };
    let limits = session.device.limits();
    let (lanes, words) = (lanes(&limits), limits.max_compute_workgroup_storage_size / 4);
    for (name, left_open, value) in [("arrive", "LANES", lanes), ("recall", "WORDS", words)] {
        session.kernels.insert(name, overridden(&session, name, left_open, value));
    }
    session
}

/// The total that a kernel makes of some windows, with a dispatch of `grid` for each.
pub fn total(
    gpu: &Session,
    kernel: &wgpu::ComputePipeline,
    windows: &[wgpu::BufferBinding],
    grid: [u32; 3],
) -> Result<u32> {
    let Session { device, queue, errors, bind_group_layout: layout, .. } = gpu;
    // Rung 8, buffers: a new buffer is all zeros, and so is the total before anything is added.
    let total = buffer(device, "total", 4, RESULT);
    let readback = buffer(device, "readback", 4, READBACK);

    // Rung 9, bind group: one for each window, with the same total in all of them.
    let bind_groups = windows.iter().map(|window| {
        let resource = wgpu::BindingResource::Buffer(window.clone());
        let input = wgpu::BindGroupEntry { binding: 0, resource };
        let total = wgpu::BindGroupEntry { binding: 1, resource: total.as_entire_binding() };
        let (label, entries) = (Some("window and total"), &[input, total]);
        device.create_bind_group(&wgpu::BindGroupDescriptor { label, layout, entries })
    });

    // Rung 10, commands.
    let label = Some("total");
    let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label });
    let pass = wgpu::ComputePassDescriptor { label, timestamp_writes: None };
    let mut pass = encoder.begin_compute_pass(&pass);
    pass.set_pipeline(kernel);
    for bind_group in bind_groups {
        pass.set_bind_group(0, &bind_group, &[]);
        pass.dispatch_workgroups(grid[0], grid[1], grid[2]);
    }
    drop(pass);
    encoder.copy_buffer_to_buffer(&total, 0, &readback, 0, 4);
    let commands = encoder.finish();

    // Rung 11, submit and wait.
    queue.submit([commands]);

    // Rung 12, map and read.
    Ok(read::<u32>(device, errors, &readback)?[0])
}

/// A pipeline whose shader has `value` in its text, where ours leaves it open.
fn rewritten(gpu: &Session, entry_point: &str, name: &str, value: u32) -> wgpu::ComputePipeline {
    let text = include_str!("../shaders/06_limit_walls.wgsl");
    let ours = format!("override {name}: u32 = 256u;");
    let text = text.replace(&ours, &format!("const {name}: u32 = {value}u;"));
    let (label, source) = (Some("rewritten"), wgpu::ShaderSource::Wgsl(text.into()));
    let module = wgpu::ShaderModuleDescriptor { label, source };
    let module = gpu.device.create_shader_module(module);
    pipeline(&gpu.device, &gpu.pipeline_layout, &module, entry_point)
}

/// A pipeline that puts `value` in the place of an `override`.
fn overridden(gpu: &Session, entry_point: &str, name: &str, value: u32) -> wgpu::ComputePipeline {
    gpu.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: Some(entry_point),
        layout: Some(&gpu.pipeline_layout),
        module: &gpu.shader,
        entry_point: Some(entry_point),
        compilation_options: wgpu::PipelineCompilationOptions {
            constants: &[(name, value.into())],
            ..Default::default()
        },
        cache: None,
    })
}

/// `memory`, without its advice: nobody chose these sizes.
fn room(bytes: u64) -> Result<()> {
    memory(bytes).map_err(|error| error.to_string().replace(": give a smaller size", "").into())
}

/// A buffer of n zeros, or what stands in its way: the machine's memory, or the driver's.
fn zeros(gpu: &Session, n: u64) -> Result<wgpu::Buffer> {
    room(4 * n)?;
    let scope = gpu.device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
    let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST;
    let input = buffer(&gpu.device, "input", 4 * n, usage);
    match pollster::block_on(scope.pop()) {
        Some(_) => Err(format!("the driver has no {} MiB", (4 * n) >> 20).into()),
        None => Ok(input),
    }
}

/// A buffer of the elements from `first` on, n of them. Filled by pieces, so that no more than one is
/// staged at a time.
fn filled(gpu: &Session, first: u64, n: u64) -> Result<wgpu::Buffer> {
    const PIECE: u64 = 7 << 20;
    room(4 * (n + 2 * n.min(PIECE)))?;
    let input = zeros(gpu, n.max(1))?;
    let piece: Vec<u32> = (first..first + n.min(PIECE)).map(element).collect();
    for begin in (0..n).step_by(PIECE as usize) {
        let part = &piece[..PIECE.min(n - begin) as usize];
        gpu.queue.write_buffer(&input, 4 * begin, bytemuck::cast_slice(part));
        gpu.queue.submit([]);
        wait(&gpu.device, &gpu.errors)?;
    }
    Ok(input)
}

/// Elements 0 to n, in as many buffers as it takes.
pub fn inputs(gpu: &Session, n: u64) -> Result<Vec<wgpu::Buffer>> {
    let most = gpu.device.limits().max_buffer_size / 4;
    let firsts = (0..n).step_by(most as usize);
    firsts.map(|first| filled(gpu, first, most.min(n - first))).collect()
}

/// What so many workgroups take, with one element for each invocation.
fn elements(groups: u32) -> u64 {
    u64::from(groups) * u64::from(WIDTH)
}

/// What `recall` makes of so many bytes: the sum of the numbers of their words, from 1.
fn recalled(bytes: u32) -> u32 {
    (0..=bytes / 4).fold(0, u32::wrapping_add)
}

/// How far the adapter goes, if that is further than the device.
fn further(device: u32, adapter: u32) -> Result<u32> {
    if adapter > device {
        return Ok(adapter);
    }
    Err("the adapter goes no further".into())
}

/// What a kernel makes of n elements, invocations or bytes.
fn expected(kernel: &str, n: u64) -> u32 {
    match kernel {
        "arrive" => n as u32,
        "recall" => recalled(n as u32),
        _ => exact(n),
    }
}

pub fn exactly(way: &str, total: u32, exact: u32) -> Result<()> {
    if total == exact {
        return Ok(());
    }
    Err(format!("{way}: the GPU says {total}, and {exact} is exact").into())
}

/// Invocations that a workgroup may have in a row: two limits speak of them.
fn lanes(limits: &Limits) -> u32 {
    limits.max_compute_invocations_per_workgroup.min(limits.max_compute_workgroup_size_x)
}

fn element(i: u64) -> u32 {
    1 + (i % 7) as u32
}
