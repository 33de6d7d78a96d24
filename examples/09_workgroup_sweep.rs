//! 09 workgroup sweep: how to choose a workgroup's size by measuring, and how to keep the winner.
//!
//! In:    n random u32, resident; the argument is n; if none is given, a size that suits the adapter.
//! Out:   per kernel and width: workgroups, idle lanes, µs, the curve; a verdict; the winner is kept in
//!        a file, and a later run on the same adapter, driver, backend, shader and n takes it from there.
//! Run:   cargo run --example 09_workgroup_sweep 2^22
//! Read:  guide/09_workgroup_sweep.md
//!
//! Rungs: 7 its own: a pipeline for each size. The others stand in the foot: the device is asked for
//! workgroups as large as the adapter allows, the data stays on it, and only times come back.

use std::ops::Range;
use std::path::Path;
use std::time::Instant;

const HEAD: &str = include_str!("09_workgroup_sweep.rs");
pub const KERNELS: [&str; 2] = ["scale", "blur"];
pub const SCALE: usize = 0;
pub const BLUR: usize = 1;
const FACTOR: u32 = 3;
const RADIUS: u32 = 1;
/// Lanes of a rectangle, as many as every adapter allows: what is swept is its shape.
const AREA: u32 = 256;
/// Medians this close are alike.
const ALIKE: f64 = 1.05;
/// A best median that may be off by more than this, as a share of it, is not sure.
const NOISY: f64 = 0.2;

pub fn main() {
    env_logger::init();
    let n = argument(HEAD, 0..=1 << 32);
    if let Err(error) = lesson(n) {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

/// Element i of the result on the CPU: the definition of correct.
pub fn cpu(kernel: usize, data: &[u32], i: usize) -> u32 {
    if kernel == SCALE {
        return data[i].wrapping_mul(FACTOR);
    }
    let (side, radius) = (data.len().isqrt(), RADIUS as usize);
    let near = |at: usize| at.saturating_sub(radius)..side.min(at + radius + 1);
    let cells = near(i / side).flat_map(|y| near(i % side).map(move |x| data[y * side + x]));
    cells.fold(0, u32::wrapping_add)
}

/// Columns and rows of a workgroup.
pub type Shape = [u32; 2];

/// What is worth a try: whole subgroups, doubled while the limits allow it, and rectangles. wgpu 30
/// compares no override with a limit, and a driver that is asked for more may do anything.
pub fn candidates(kernel: usize, lanes: u32, limits: &wgpu::Limits) -> Vec<Shape> {
    let most = limits.max_compute_invocations_per_workgroup;
    let (x, y) = (limits.max_compute_workgroup_size_x, limits.max_compute_workgroup_size_y);
    let fits = |shape: &Shape| shape[0] <= x && shape[1] <= y && shape[0] * shape[1] <= most;
    let doubled = (0..16).map(|power| [lanes << power, 1]);
    let folded = (0..=AREA.ilog2()).map(|power| [AREA >> power, 1 << power]);
    if kernel == SCALE { doubled.filter(fits).collect() } else { folded.filter(fits).collect() }
}

/// The share of lanes without an element, where the hardware gives whole subgroups: G·W − N of G·W.
pub fn idle(kernel: usize, shape: Shape, n: u64, lanes: u32) -> f64 {
    let [x, y] = sweep_groups(kernel, shape, n);
    let held = x * y * u64::from((shape[0] * shape[1]).next_multiple_of(lanes));
    held.saturating_sub(sweep_elements(kernel, n)) as f64 / held.max(1) as f64
}

/// A kernel with workgroups of one shape, and µs: its first run with the compiling, and all others.
pub struct Candidate {
    pub kernel: usize,
    pub shape: Shape,
    pipeline: wgpu::ComputePipeline,
    pub cold: f64,
    pub runs: Vec<f64>,
}

pub fn compile(gpu: &Sweeper, kernel: usize, shape: Shape, n: u64) -> Candidate {
    let (label, [columns, rows]) = (Some(KERNELS[kernel]), shape.map(f64::from));
    // Rung 7, pipeline: the overrides get their values here, so another width is another pipeline.
    let constants: &[_] = match kernel {
        SCALE => &[("WIDTH", columns)],
        _ => &[("COLUMNS", columns), ("ROWS", rows), ("SIDE", n.isqrt() as f64)],
    };
    let pipeline = gpu.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label,
        layout: Some(&gpu.pipeline_layout),
        module: &gpu.shader,
        entry_point: label,
        compilation_options: wgpu::PipelineCompilationOptions { constants, ..Default::default() },
        cache: None,
    });

    Candidate { kernel, shape, pipeline, cold: 0.0, runs: Vec::new() }
}

/// Tries each shape once, then all in turn, round by round: what drifts, drifts for all alike.
pub fn sweep(
    gpu: &Sweeper,
    data: &Swept,
    kernel: usize,
    shapes: &[Shape],
) -> Result<Vec<Candidate>> {
    let mut all = Vec::new();
    for &shape in shapes {
        let start = Instant::now();
        let mut candidate = compile(gpu, kernel, shape, data.n());
        sweep_run(gpu, data, &candidate)?;
        candidate.cold = micros(start);
        sweep_agree(gpu, data, &candidate, 1 << 20)?;
        all.push(candidate);
    }
    // Twice: uncounted, until the clocks have risen, and for the record.
    for (least, most, limit) in [(1, usize::MAX, 3e5), (5, 60, 2.5e6)] {
        let (begin, mut rounds) = (Instant::now(), 0);
        all.iter_mut().for_each(|candidate| candidate.runs.clear());
        while rounds < least || (rounds < most && micros(begin) < limit) {
            for place in 0..all.len() {
                // Each round begins one further, so that nobody always has the same one before.
                let candidate = (rounds + place) % all.len();
                let us = sweep_run(gpu, data, &all[candidate])?;
                all[candidate].runs.push(us);
            }
            rounds += 1;
        }
    }
    all.iter_mut().for_each(|candidate| candidate.runs.sort_by(f64::total_cmp));
    Ok(all)
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    Flat,
    Plateau,
    Peak,
    Scattered,
    Noise,
}

/// What a curve says, and which neighbours in it are as good as the best. A point of it is a median,
/// between the least and the most that it may be.
pub fn verdict(curve: &[[f64; 3]]) -> (Verdict, Range<usize>) {
    let best = least(curve.iter().map(|point| point[1]));
    let [low, median, high] = curve[best];
    let alike = |&place: &usize| curve[place][1] <= high.max(ALIKE * median);
    let before = (0..best).rev().take_while(alike).count();
    let after = (best..curve.len()).take_while(alike).count();
    let (together, all) = (before + after, curve.len());
    let scattered = (0..all).filter(alike).count() > together;
    let verdict = match together {
        // All of them, or some that are no neighbours: where the best is not sure, that is chance.
        _ if (scattered || together == all) && high - low > NOISY * median => Verdict::Noise,
        _ if together == all => Verdict::Flat,
        1 if scattered => Verdict::Scattered,
        1 => Verdict::Peak,
        _ => Verdict::Plateau,
    };
    (verdict, best - before..best + after)
}

/// What a winner holds for: anywhere else, or after an edit of the shader, it is a guess.
pub fn key(info: &wgpu::AdapterInfo, n: u64) -> String {
    let driver = format!("{} {}", info.driver, info.driver_info);
    let [backend, n] = [info.backend.to_string(), n.to_string()];
    let fields = [&info.name, &driver, &backend, &fingerprint(SWEEP_SHADER), &n];
    fields.map(|field| field.replace(char::is_control, " ") + "\t").concat()
}

/// The winners that were kept for this key; else in words why there is nothing to trust.
pub fn recall(path: &Path, key: &str, allowed: &[Vec<Shape>]) -> std::result::Result<Kept, String> {
    let (mut others, mut damaged) = (0, 0);
    for line in sweep_file(path)?.lines() {
        match unsealed(line).map(|line| line.strip_prefix(key)) {
            Some(Some(winners)) => {
                let refused = "a line with a size that is no candidate here, and is ignored";
                return winners_in(winners, allowed).ok_or(refused.into());
            }
            Some(None) => others += 1,
            None => damaged += 1,
        }
    }
    Err(format!("no line for this key; ignored: {others} with another, {damaged} damaged"))
}

/// Adds a line, or puts it in the place of the one with the same key. Damaged ones go.
pub fn keep(path: &Path, key: &str, [scale, blur]: Kept) -> std::io::Result<()> {
    let text = match sweep_file(path) {
        Err(error) if path.exists() => return Err(std::io::Error::other(error)),
        text => text.unwrap_or_default(),
    };
    let other = |line: &&str| unsealed(line).is_some_and(|line| !line.starts_with(key));
    let ours = sealed(&format!("{key}{}\t{}", winner_out(scale), winner_out(blur)));
    let lines = text.lines().filter(other).chain([ours.as_str()]);
    std::fs::write(path, lines.map(|line| line.to_string() + "\n").collect::<String>())
}

fn lesson(n: Option<u64>) -> Result<()> {
    let gpu = sweeper()?;
    header(&gpu.adapter, gpu.flags);
    let (info, limits) = (gpu.adapter.get_info(), gpu.device.limits());
    let ([lanes, most], n) = (subgroups(&info), sweep_size(&gpu, n)?);
    let numbers = random(n as usize);
    let data = swept(&gpu, bytemuck::cast_slice(&numbers))?;
    let allowed = [SCALE, BLUR].map(|kernel| candidates(kernel, lanes, &limits));
    let (path, key) = (sweep_path(), key(&info, n));
    match recall(&path, &key, &allowed) {
        Ok(kept) => return sweep_spared(&gpu, &data, &path, kept),
        Err(why) => say(format_args!("kept    {why}")),
    }
    let (mut winners, mut notes) = (Vec::new(), String::new());
    for (kernel, mut shapes) in allowed.into_iter().enumerate() {
        // One and a half subgroups, where their size is known: outside the contest, and worth a look.
        let outside = [lanes + lanes / 2, 1];
        if kernel == SCALE && lanes == most {
            shapes.insert(1, outside);
        }
        let all = sweep(&gpu, &data, kernel, &shapes)?;
        sweep_table(&all, n, [lanes, most]);
        let (all, curve) = contest(&all, outside);
        let (verdict, alike) = verdict(&curve);
        let [cold, lucky, best] = [
            least(all.iter().map(|candidate| candidate.cold)),
            least(all.iter().map(|candidate| candidate.runs[0])),
            least(curve.iter().map(|point| point[1])),
        ];
        let name = |place: usize| shape_name(all[place].kernel, all[place].shape);
        let worse = |place: usize| curve[place][1] / curve[best][1];
        let [first, last] = [name(alike.start), name(alike.end - 1)];
        let inside = alike.start > 0 && alike.end < all.len();
        say(sweep_sentence(verdict, &first, &last, inside));
        let [a, b] =
            [cold, lucky].map(|place| format!("{}, {:.2}× its time", name(place), worse(place)));
        let best_name = name(best);
        say(format_args!("The median chooses {best_name}; the cold run {a}; the least run {b}."));
        if verdict != Verdict::Noise {
            sweep_agree(&gpu, &data, all[best], u64::MAX)?;
            winners.push((all[best].shape, curve[best][1]));
        }
        let slowest = (0..all.len()).map(worse).fold(1.0, f64::max);
        notes += &match (kernel, all[best].shape[0]) {
            (SCALE, lanes) => {
                format!("09.1 measured {lanes} lanes   09.2 measured {slowest:.2}×   ")
            }
            _ => format!("09.3 measured {slowest:.2}×"),
        };
    }
    let written = |kept| keep(&path, &key, kept).map_err(|error| error.to_string());
    let kept = <[_; 2]>::try_from(winners).map_err(|_| "no verdict, no winner".into());
    say(match kept.and_then(written) {
        Ok(()) => format!("Kept in {}.", path.display()),
        Err(why) => format!("Nothing is kept in {}: {why}. Run it again.", path.display()),
    });
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

/// Refuses what the device will not bind in one piece, where wgpu would panic.
fn fits(device: &wgpu::Device, bytes: u64) -> Result<()> {
    let limits = device.limits();
    let most = limits.max_storage_buffer_binding_size.min(limits.max_buffer_size);
    if bytes <= most {
        return Ok(());
    }
    Err(format!("this binds {bytes} bytes and the device allows {most}: give a smaller size")
        .into())
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

/// The bind group with these in places 0, 1, 2, …: buffers, and how many bytes of each.
fn bind(
    device: &wgpu::Device,
    layout: &wgpu::BindGroupLayout,
    buffers: &[(&wgpu::Buffer, u64)],
) -> wgpu::BindGroup {
    let entry = |(binding, &(buffer, bytes)): (u32, &(_, u64))| {
        let part = wgpu::BufferBinding { buffer, offset: 0, size: wgpu::BufferSize::new(bytes) };
        wgpu::BindGroupEntry { binding, resource: wgpu::BindingResource::Buffer(part) }
    };
    let (label, entries) = (Some("operands"), (0..).zip(buffers).map(entry).collect::<Vec<_>>());
    device.create_bind_group(&wgpu::BindGroupDescriptor { label, layout, entries: &entries })
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

/// Brings the first words of a buffer back.
pub fn words(
    device: &wgpu::Device,
    queue: &wgpu::Queue,
    errors: &flume::Receiver<wgpu::Error>,
    buffer: &wgpu::Buffer,
    words: u64,
) -> Result<Vec<u32>> {
    let readback = self::buffer(device, "words", words * 4, READBACK);
    let mut encoder = device.create_command_encoder(&Default::default());
    encoder.copy_buffer_to_buffer(buffer, 0, &readback, 0, words * 4);
    queue.submit([encoder.finish()]);
    read(device, errors, &readback)
}

fn micros(since: std::time::Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e6
}

/// n values in (0, 1], none of them zero, the same in every run.
fn random(n: usize) -> Vec<f32> {
    let mut state = 1u64;
    let next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((state >> 40) + 1) as f32 / (1 << 24) as f32
    };
    std::iter::repeat_with(next).take(n).collect()
}

/// The GPU's own clock: two stamps around a pass, the buffer they resolve into, one the host can map.
struct Stamps {
    set: wgpu::QuerySet,
    stamps: wgpu::Buffer,
    ticks: wgpu::Buffer,
    period: f64,
}

impl Stamps {
    /// `None` where the device has no timestamps.
    fn new(device: &wgpu::Device, queue: &wgpu::Queue) -> Option<Self> {
        device.features().contains(wgpu::Features::TIMESTAMP_QUERY).then(|| {
            let (label, ty) = (Some("stamps"), wgpu::QueryType::Timestamp);
            let set = device.create_query_set(&wgpu::QuerySetDescriptor { label, ty, count: 2 });
            let resolve = wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC;
            let stamps = buffer(device, "stamps", 16, resolve);
            let ticks = buffer(device, "ticks", 16, READBACK);
            Self { set, stamps, ticks, period: f64::from(queue.get_timestamp_period()) }
        })
    }

    fn writes(&self) -> wgpu::ComputePassTimestampWrites<'_> {
        wgpu::ComputePassTimestampWrites {
            query_set: &self.set,
            beginning_of_pass_write_index: Some(0),
            end_of_pass_write_index: Some(1),
        }
    }

    fn resolve(&self, encoder: &mut wgpu::CommandEncoder) {
        encoder.resolve_query_set(&self.set, 0..2, &self.stamps, 0);
        encoder.copy_buffer_to_buffer(&self.stamps, 0, &self.ticks, 0, 16);
    }

    /// µs between the two; 0 where the driver's stamps are zeros or run backwards.
    fn micros(&self, device: &wgpu::Device, errors: &flume::Receiver<wgpu::Error>) -> Result<f64> {
        let ticks: Vec<u64> = read(device, errors, &self.ticks)?;
        Ok(ticks[1].saturating_sub(ticks[0]) as f64 * self.period / 1e3)
    }
}

const SWEEP_SHADER: &str = include_str!("../shaders/09_workgroup_sweep.wgsl");
/// What one dispatch may have in one dimension, on every adapter.
const SWEEP_GROUPS: u64 = 65535;

/// What is made once per process.
pub struct Sweeper {
    pub adapter: wgpu::Adapter,
    flags: wgpu::InstanceFlags,
    pub device: wgpu::Device,
    queue: wgpu::Queue,
    errors: flume::Receiver<wgpu::Error>,
    shader: wgpu::ShaderModule,
    bind_group_layout: wgpu::BindGroupLayout,
    pipeline_layout: wgpu::PipelineLayout,
    stamps: Option<Stamps>,
}

pub fn sweeper() -> Result<Sweeper> {
    // Rung 1, instance.
    let descriptor = wgpu::InstanceDescriptor::new_without_display_handle_from_env();
    let flags = descriptor.flags;
    let instance = wgpu::Instance::new(descriptor);

    // Rung 2, adapter.
    let adapter = adapter(&instance)?;

    // Rung 3, device and queue: all widths that there are to choose from, and data past the caches.
    let offered = adapter.limits();
    let (device, queue) = pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor {
        label: Some("device"),
        required_features: adapter.features() & wgpu::Features::TIMESTAMP_QUERY,
        required_limits: wgpu::Limits {
            max_compute_invocations_per_workgroup: offered.max_compute_invocations_per_workgroup,
            max_compute_workgroup_size_x: offered.max_compute_workgroup_size_x,
            max_storage_buffer_binding_size: offered.max_storage_buffer_binding_size,
            max_buffer_size: offered.max_buffer_size,
            ..wgpu::Limits::downlevel_defaults()
        },
        ..Default::default()
    }))?;
    let errors = errors(&device);

    // Rung 4, shader module.
    let source = wgpu::include_wgsl!("../shaders/09_workgroup_sweep.wgsl");
    let shader = device.create_shader_module(source);

    // Rung 5, bind group layout.
    let bind_group_layout = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
        label: Some("input and output"),
        entries: &[storage(0, true), storage(1, false)],
    });

    // Rung 6, pipeline layout.
    let pipeline_layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
        label: Some("input and output"),
        bind_group_layouts: &[Some(&bind_group_layout)],
        immediate_size: 0,
    });

    let stamps = Stamps::new(&device, &queue);
    Ok(Sweeper {
        adapter,
        flags,
        device,
        queue,
        errors,
        shader,
        bind_group_layout,
        pipeline_layout,
        stamps,
    })
}

/// The data on both sides, and room for a result.
pub struct Swept<'a> {
    data: &'a [u32],
    output: wgpu::Buffer,
    bind_group: wgpu::BindGroup,
}

impl Swept<'_> {
    fn n(&self) -> u64 {
        self.data.len() as u64
    }
}

pub fn swept<'a>(gpu: &Sweeper, data: &'a [u32]) -> Result<Swept<'a>> {
    let Sweeper { device, queue, errors, bind_group_layout, .. } = gpu;
    let size = data.len().max(1) as u64 * 4;
    fits(device, size)?;
    // Rung 8, buffers.
    let usage = RESULT | wgpu::BufferUsages::COPY_DST;
    let input = buffer(device, "input", size, usage);
    let output = buffer(device, "output", size, usage);
    queue.write_buffer(&input, 0, bytemuck::cast_slice(data));

    // Rung 9, bind group.
    let bind_group = bind(device, bind_group_layout, &[(&input, size), (&output, size)]);

    // A flush, or the first run would wait for the data.
    queue.submit([]);
    wait(device, errors)?;
    Ok(Swept { data, output, bind_group })
}

/// Elements that a kernel writes: all, or the largest square.
fn sweep_elements(kernel: usize, n: u64) -> u64 {
    if kernel == SCALE { n } else { n.isqrt().pow(2) }
}

/// Workgroups in x and y, enough for these elements.
pub fn sweep_groups(kernel: usize, [columns, rows]: Shape, n: u64) -> [u64; 2] {
    if kernel == BLUR {
        return [columns, rows].map(|size| n.isqrt().div_ceil(size.into()));
    }
    let groups = n.div_ceil(columns.into());
    let y = groups.div_ceil(SWEEP_GROUPS).max(1);
    [groups.div_ceil(y), y]
}

/// The GPU's µs for one dispatch, or the wall's where there are no stamps.
pub fn sweep_run(gpu: &Sweeper, data: &Swept, candidate: &Candidate) -> Result<f64> {
    let Sweeper { device, queue, errors, stamps, .. } = gpu;
    let [x, y] = sweep_groups(candidate.kernel, candidate.shape, data.n());
    // Rung 10, commands.
    let label = Some(KERNELS[candidate.kernel]);
    let timestamp_writes = stamps.as_ref().map(Stamps::writes);
    let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label });
    let pass = wgpu::ComputePassDescriptor { label, timestamp_writes };
    let mut pass = encoder.begin_compute_pass(&pass);
    pass.set_pipeline(&candidate.pipeline);
    pass.set_bind_group(0, &data.bind_group, &[]);
    pass.dispatch_workgroups(x as u32, y as u32, 1);
    drop(pass);
    stamps.iter().for_each(|stamps| stamps.resolve(&mut encoder));
    let commands = encoder.finish();

    let start = Instant::now();
    // Rung 11, submit and wait.
    queue.submit([commands]);

    // Rung 12, map and read: the stamps, where there are any.
    let waited = || wait(device, errors).map(|()| 0.0);
    let stamped = stamps.as_ref().map_or_else(waited, |stamps| stamps.micros(device, errors))?;

    let wall = micros(start);
    Ok(if stamped > 0.0 && stamped <= wall { stamped } else { wall })
}

/// Compares with the CPU, up to `most` elements. That no driver complained says nothing.
pub fn sweep_agree(gpu: &Sweeper, data: &Swept, candidate: &Candidate, most: u64) -> Result<()> {
    let Sweeper { device, queue, errors, .. } = gpu;
    let mut encoder = device.create_command_encoder(&Default::default());
    encoder.clear_buffer(&data.output, 0, None);
    queue.submit([encoder.finish()]);
    sweep_run(gpu, data, candidate)?;
    let elements = sweep_elements(candidate.kernel, data.n()).min(most);
    let output = words(device, queue, errors, &data.output, elements.max(1))?;
    let right = |&i: &usize| output[i] == cpu(candidate.kernel, data.data, i);
    match (0..elements as usize).find(|i| !right(i)) {
        Some(i) => {
            let name = shape_name(candidate.kernel, candidate.shape);
            Err(format!("{name}: element {i} is {}, and not the CPU's", output[i]).into())
        }
        None => Ok(()),
    }
}

/// The size, if none was given, that a probe says this adapter takes easily; and what comes of it.
fn sweep_size(gpu: &Sweeper, n: Option<u64>) -> Result<u64> {
    let few = random(1 << 18);
    let small = swept(gpu, bytemuck::cast_slice(&few))?;
    let probe = compile(gpu, BLUR, [AREA, 1], 1 << 18);
    sweep_run(gpu, &small, &probe)?;
    let n = n.unwrap_or(match sweep_run(gpu, &small, &probe)? {
        ..1e3 => (gpu.device.limits().max_storage_buffer_binding_size / 4).min(1 << 26),
        ..1e4 => 1 << 20,
        _ => 1 << 18,
    });
    // Data, staging, input and output; then the output comes back, and is copied out.
    fits(&gpu.device, 4 * n).and_then(|()| memory(6 * 4 * n))?;
    let lanes = match subgroups(&gpu.adapter.get_info()) {
        [least, most] if least < most => format!("{least} to {most}"),
        [lanes, _] => lanes.to_string(),
    };
    say(format_args!(
        "runs    n = {n}, subgroups of {lanes}; all sizes in turn, 60 rounds or 2.5 s"
    ));
    let stamps = &gpu.stamps;
    let stamps =
        stamps.as_ref().map_or(Ok(0.0), |stamps| stamps.micros(&gpu.device, &gpu.errors))?;
    if stamps == 0.0 {
        say("clock   the wall's, with the waits: there are no timestamps here");
    }
    Ok(n)
}

/// The place of the least value.
fn least(values: impl Iterator<Item = f64>) -> usize {
    values.enumerate().min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(place, _)| place)
}

/// Of sorted runs the median, between the two ranks where that of ever more runs would lie, nineteen
/// times in twenty: the root of their number, and one, to either side of the middle.
pub fn middle(runs: &[f64]) -> [f64; 3] {
    let (half, last) = (runs.len() / 2, runs.len() - 1);
    let off = runs.len().isqrt() + 1;
    [half.saturating_sub(off), half, last.min(half + off)].map(|place| runs[place])
}

/// All candidates but the one outside, and their curve.
pub fn contest(all: &[Candidate], outside: Shape) -> (Vec<&Candidate>, Vec<[f64; 3]>) {
    let inside = all.iter().filter(|candidate| candidate.shape != outside);
    inside.map(|candidate| (candidate, middle(&candidate.runs))).unzip()
}

fn shape_name(kernel: usize, [columns, rows]: Shape) -> String {
    if kernel == SCALE { columns.to_string() } else { format!("{columns}×{rows}") }
}

/// The least and the most lanes of a subgroup: where the driver does not tell, a wide range (07).
pub fn subgroups(info: &wgpu::AdapterInfo) -> [u32; 2] {
    let least = info.subgroup_min_size.max(4);
    [least, info.subgroup_max_size.max(least)]
}

/// The curve: the better, the longer; light is where the median is not sure.
fn sweep_table(all: &[Candidate], n: u64, [lanes, most]: [u32; 2]) {
    let name = KERNELS[all[0].kernel];
    say(format_args!(
        "\n| {name:<5} |   groups | idle |    cold |   least |  median | spread | speed      |"
    ));
    say("|------:|---------:|-----:|--------:|--------:|--------:|-------:|------------|");
    let best = all.iter().map(|candidate| middle(&candidate.runs)[0]).fold(f64::MAX, f64::min);
    for Candidate { kernel, shape, cold, runs, .. } in all {
        let [low, median, high] = middle(runs);
        let groups: u64 = sweep_groups(*kernel, *shape, n).iter().product();
        let idle = match lanes == most || (shape[0] * shape[1]).is_multiple_of(most) {
            true => format!("{:.0}%", 100.0 * idle(*kernel, *shape, n, lanes)),
            false => "?".into(),
        };
        let cells = |us: f64| (10.0 * best / us).round() as usize;
        let curve = "█".repeat(cells(high)) + &"░".repeat(cells(low) - cells(high));
        let us = [*cold, runs[0], median];
        let [cold, least, median_us] = us.map(|us| format!("{us:.*}", usize::from(us < 1e5)));
        say(format_args!(
            "| {:>5} | {groups:>8} | {idle:>4} | {cold:>7} | {least:>7} | {median_us:>7} | {:>5.1}% | {curve:<10} |",
            shape_name(*kernel, *shape),
            100.0 * (high - low) / median,
        ));
    }
}

/// What a verdict says, of neighbours from `first` to `last`; `inside` if no end of the curve is one.
fn sweep_sentence(verdict: Verdict, first: &str, last: &str, inside: bool) -> String {
    match verdict {
        Verdict::Flat => "Flat: here no size is better than another.".into(),
        Verdict::Plateau => format!("A plateau, {first} to {last}: any of them will do."),
        Verdict::Peak if inside => format!("A peak, {first}: an edit may move it."),
        Verdict::Peak => format!("A slope: {first}, where the candidates end."),
        Verdict::Scattered => {
            format!("Scattered: {first} is best, and some that are no neighbours are as good.")
        }
        Verdict::Noise => "No verdict: the runs of one size differ as the sizes do.".into(),
    }
}

/// A second run: the winners do the work, and are looked at once more.
fn sweep_spared(gpu: &Sweeper, data: &Swept, path: &Path, kept: Kept) -> Result<()> {
    say(format_args!("kept    in {}: no sweep; delete it to sweep again", path.display()));
    say("\n| kernel | size  | then µs |  now µs |");
    say("|--------|------:|--------:|--------:|");
    let mut drifted = 0;
    for (kernel, (shape, then)) in kept.into_iter().enumerate() {
        let winner = sweep(gpu, data, kernel, &[shape])?.remove(0);
        sweep_agree(gpu, data, &winner, u64::MAX)?;
        let [_, now, _] = middle(&winner.runs);
        let name = shape_name(kernel, shape);
        say(format_args!("| {:<6} | {name:>5} | {then:>7.1} | {now:>7.1} |", KERNELS[kernel]));
        drifted += usize::from(now > 1.25 * then || then > 1.25 * now);
    }
    let changed = "something changed that the key does not name. Sweep again.";
    say(match drifted {
        0 => "\nBoth are within a quarter of what they took when they won.".into(),
        1 => format!("\nOne is not what it was: {changed}"),
        _ => format!("\nNeither is what it was: {changed}"),
    });
    say(format_args!("For notes.md:  09.1 measured {} lanes", kept[SCALE].0[0]));
    Ok(())
}

/// For each kernel its winner, and the median that it won with.
pub type Kept = [(Shape, f64); 2];

/// Beside the program, which is under target/ and goes with it: nobody's repository gets a new file.
fn sweep_path() -> std::path::PathBuf {
    let path = std::env::current_exe().unwrap_or_default().with_extension("kept");
    let here = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(&here).map(Path::to_path_buf).unwrap_or(path)
}

/// What is in the file; text that is none becomes signs that no line of ours has.
fn sweep_file(path: &Path) -> std::result::Result<String, String> {
    use std::io::{ErrorKind, Read};
    const LONGEST: u64 = 1 << 20;
    let mut bytes = Vec::new();
    let read = |file: std::fs::File| file.take(LONGEST + 1).read_to_end(&mut bytes);
    match std::fs::File::open(path).and_then(read) {
        Ok(length) if length as u64 > LONGEST => {
            Err(format!("{} is longer than 1 MiB; delete it", path.display()))
        }
        Ok(_) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) if error.kind() == ErrorKind::NotFound => Err("nothing so far".into()),
        Err(error) => Err(format!("{} cannot be read: {error}", path.display())),
    }
}

/// FNV-1a, in 64 bits. std's hasher may change with the next Rust, and a file outlives that.
fn fingerprint(text: &str) -> String {
    let step = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    format!("{:016x}", text.as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, step))
}

/// A line with its fingerprint at the end, by which damage shows.
pub fn sealed(line: &str) -> String {
    format!("{line}\t{}", fingerprint(line))
}

fn unsealed(line: &str) -> Option<&str> {
    let (line, seal) = line.rsplit_once('\t')?;
    (seal == fingerprint(line)).then_some(line)
}

fn winner_out(([columns, rows], us): (Shape, f64)) -> String {
    format!("{columns}x{rows} {us:.3}")
}

/// The way back; a size must be a candidate today.
fn winners_in(winners: &str, allowed: &[Vec<Shape>]) -> Option<Kept> {
    let mut words = winners.split('\t');
    let mut next = |kernel: usize| {
        let (size, us) = words.next()?.split_once(' ')?;
        let (columns, rows) = size.split_once('x')?;
        let shape = [columns.parse().ok()?, rows.parse().ok()?];
        let us = us.parse::<f64>().ok().filter(|us| us.is_finite() && *us > 0.0)?;
        allowed[kernel].contains(&shape).then_some((shape, us))
    };
    Some([next(SCALE)?, next(BLUR)?])
}
