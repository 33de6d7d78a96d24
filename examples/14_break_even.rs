//! 14 break even: given this machine's constants, whether an operator should cross at all.
//!
//! In:    OPERATORS, which you edit, and columns of random f32; the argument is the last exponent of
//!        their n; if none is given, one that suits the adapter.
//! Out:   the constants; who wins for each operator, and from where on; then, for operators that the
//!        constants have not seen, the model's µs beside measured ones.
//! Run:   cargo run --example 14_break_even 22
//! Read:  guide/14_break_even.md
//!
//! Rungs: none here. All twelve are known by now, and stand in the foot: `operator_engine`,
//! `load_columns`, `launch_kernel`.

use std::hint::black_box;
use std::ops::RangeInclusive;
use std::time::Instant;
use wgpu::util::DeviceExt;

const HEAD: &str = include_str!("14_break_even.rs");
/// Exponents of n: the least that is checked; the range in which it is looked for a flip.
const FIRST: u64 = 16;
pub const FLIPS: RangeInclusive<u32> = RangeInclusive::new(10, 28);

pub fn main() {
    env_logger::init();
    let last = argument(HEAD, FIRST..=25);
    if let Err(error) = lesson(last) {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

/// What the model knows of an operator. All but name, passes and `resident` is for one element.
#[derive(Clone, Copy)]
pub struct Operator {
    pub name: &'static str,
    /// Of each column that it reads. A column is a buffer, and crosses by itself.
    pub bytes_in: &'static [f64],
    pub bytes_out: f64,
    /// How often it goes over its columns, with a dispatch each time.
    pub passes: f64,
    /// Operations, but for the first on each column: an addition is part of reading.
    pub work: f64,
    /// Increments at places that the data choose.
    pub scattered: f64,
    /// Whether its columns are on the device before the call.
    pub resident: bool,
}

pub const SUM: Operator = Operator {
    name: "sum",
    bytes_in: &[4.0],
    bytes_out: 0.0,
    passes: 1.0,
    work: 0.0,
    scattered: 0.0,
    resident: false,
};
const FILTER: Operator = Operator { name: "filter", bytes_out: 0.125, work: 2.0, ..SUM };

/// What is to be decided: edit these, and add your own.
const OPERATORS: [Operator; 8] = [
    SUM,
    Operator { resident: true, ..SUM },
    FILTER,
    Operator { resident: true, ..FILTER },
    Operator { name: "hash", work: 48.0, ..SUM },
    Operator { name: "score of each row", bytes_out: 4.0, work: 1000.0, ..SUM },
    Operator { name: "ten passes", passes: 10.0, ..SUM },
    Operator { name: "ten passes", passes: 10.0, resident: true, ..SUM },
];

/// What the model is checked on: the kernels, none of which has been measured for a constant.
pub const HELD_OUT: [(usize, Operator); 5] = [
    (DOT, Operator { name: "dot", bytes_in: &[4.0, 4.0], ..SUM }),
    (LARGEST, Operator { name: "max", ..SUM }),
    (KEEP, FILTER),
    (HISTOGRAM, Operator { name: "histogram", work: 1.0, scattered: 1.0, ..SUM }),
    (HASH, Operator { name: "hash", work: 48.0, ..SUM }),
];

/// What computes: one thread, all cores, or the GPU.
pub struct Side {
    /// µs to go once over so many bytes.
    pub read: Curve,
    /// ns for an operation, and for an increment.
    pub work: f64,
    pub scattered: f64,
}

/// The machine's constants.
pub struct Machine {
    pub one: Side,
    pub all: Side,
    pub gpu: Side,
    /// µs for one dispatch on hardly any data, and its answer; for each dispatch more.
    pub floor: f64,
    pub dispatch: f64,
    /// µs beyond the floor for so many bytes: a column crosses; a result returns; in a streamed call,
    /// the buffers of such a result are made.
    pub upload: Curve,
    pub back: Curve,
    pub made: Curve,
}

impl Machine {
    /// µs for n elements: on the CPU, streamed, resident. Every part is added, though some overlap:
    /// of two parts that overlap whole, the sum is at most twice too much.
    pub fn predict(&self, operator: &Operator, n: f64) -> [f64; 3] {
        let Operator { bytes_in, bytes_out, passes, work, scattered, .. } = *operator;
        let (bytes, out) = ((bytes_in.iter().sum::<f64>() + bytes_out) * n, bytes_out * n);
        let over = |side: &Side| {
            let ns = n * (work * side.work + scattered * side.scattered);
            passes * (side.read.at(bytes) + ns / 1e3)
        };
        let dispatches = self.floor + (passes - 1.0) * self.dispatch;
        let resident = dispatches + over(&self.gpu) + self.back.at(out);
        let crossing: f64 = bytes_in.iter().map(|bytes| self.upload.at(bytes * n)).sum();
        let cpu = over(&self.one).min(over(&self.all));
        [cpu, resident + crossing + self.made.at(out), resident]
    }

    /// Whether the GPU wins, with the data where the operator says.
    pub fn crosses(&self, operator: &Operator, n: f64) -> bool {
        let [cpu, streamed, resident] = self.predict(operator, n);
        cpu > if operator.resident { resident } else { streamed }
    }

    /// The exponent of n from which on the GPU wins, as far as `FLIPS` goes. None: not there yet.
    pub fn flip(&self, operator: &Operator) -> Option<u32> {
        let loses = |&exponent: &u32| !self.crosses(operator, f64::from(exponent).exp2());
        let from = FLIPS.rev().find(loses).map_or(*FLIPS.start(), |exponent| exponent + 1);
        FLIPS.contains(&from).then_some(from)
    }

    /// The work from which on the GPU wins at this n, all else the same. None: not with a million. In
    /// the work, the GPU's time is a line, the CPU's the lesser of two: if it wins at two, then between.
    pub fn gate(&self, operator: &Operator, n: f64) -> Option<f64> {
        let crosses = |work| self.crosses(&Operator { work, ..*operator }, n);
        let (mut loses, mut wins) = (0.0, 1e6);
        if !crosses(wins) || crosses(loses) {
            return crosses(wins).then_some(0.0);
        }
        while wins - loses > 0.5 {
            let work = (loses + wins) / 2.0;
            *if crosses(work) { &mut wins } else { &mut loses } = work;
        }
        Some(wins)
    }
}

/// What a card alone says of a sum of f32: n from which on it pays streamed, and resident. Floor in
/// seconds; upload, reading on the CPU, reading on the GPU in bytes per second.
pub fn by_card([floor, upload, cpu, gpu]: [f64; 4]) -> [Option<f64>; 2] {
    [upload, f64::INFINITY].map(|upload| {
        let saved = 4.0 / cpu - 4.0 / gpu - 4.0 / upload;
        (saved > 0.0).then_some(floor / saved)
    })
}

/// Measures the constants, with `add`, `mix` and `bump` alone, and prints them.
fn calibrate(engine: &Engine, last: u64) -> Result<Machine> {
    let data = random(1 << last);
    let (least, sizes) = (&data[..1], settle_malloc(engine, &data)?);
    let loaded = load_columns(engine, ADD, &[least], 0)?;
    let [floor, _] = gpu_times(engine, ADD, &[least], 0)?;
    let [thousand] = repeat(timed(|| launch_kernel(engine, ADD, &loaded, 1000)))?;
    say("\n|    n | upload, µs | read, µs | back, µs | made, µs | CPU 1, µs | all, µs |");
    say("|-----:|-----------:|---------:|---------:|---------:|----------:|--------:|");
    let mut rows = Vec::new();
    for exponent in sizes {
        let data = &data[..1 << exponent];
        let [home, streamed] = gpu_times(engine, ADD, &[data], 0)?;
        let [back, made] = gpu_times(engine, KEEP, &[least], data.len())?;
        let [one, all] = cpu_times(ADD, data, data)?;
        let row = [streamed - home, home - floor, back - floor, made - back, one, all];
        let [a, b, c, d, e, f] = row.map(|us| us.max(0.0));
        let gpu = format!("| 2^{exponent:<2} | {a:>10.0} | {b:>8.1} | {c:>8.0} | {d:>8.0}");
        say(format_args!("{gpu} | {e:>9.1} | {f:>7.0} |"));
        rows.push((4.0 * data.len() as f64, row));
    }
    // ns for one of what a kernel does `times` to an element: by one thread, all cores, the GPU.
    let each = |kernel, times: u32| -> Result<[f64; 3]> {
        let (few, more) = (&data[..1 << 16], &data[..1 << last.min(24)]);
        let [gpu, _] = gpu_times(engine, kernel, &[&data], 0)?;
        let ([one, _], [_, all]) = (cpu_times(kernel, few, few)?, cpu_times(kernel, more, more)?);
        let per = |us: f64, n: usize| (us * 1e3 / n as f64 / f64::from(times)).max(1e-6);
        Ok([per(one, few.len()), per(all - rows[0].1[5], more.len()), per(gpu - floor, data.len())])
    };
    let (work, scattered) = (each(MIX, 6 * MIX_STEPS)?, each(BUMP, BUMPS)?);
    let curve = |part: usize| Curve::new(rows.iter().map(|&(bytes, row)| (bytes, row[part])));
    let side = |part, who: usize| {
        let (work, scattered) = (work[who], scattered[who]);
        Side { read: curve(part), work, scattered }
    };
    let (one, all, gpu) = (side(4, 0), side(5, 1), side(1, 2));
    let [upload, back, made] = [0, 2, 3].map(curve);
    Ok(Machine { one, all, gpu, floor, dispatch: (thousand - floor) / 999.0, upload, back, made })
}

fn lesson(last: Option<u64>) -> Result<()> {
    let engine = operator_engine()?;
    header(&engine.adapter, engine.flags);
    let last = last.map_or_else(|| last_that_suits(&engine), Ok)?;
    // Two columns here, their staging and two copies; on a software adapter all in the same memory.
    memory((10 * 4) << last)?;
    say(format_args!("runs    n to 2^{last}; medians of 15, or of 3 and more in half a second"));
    let machine = calibrate(&engine, last)?;
    beside_the_card(&machine, 4.0 * (1u64 << last) as f64);

    say(format_args!(
        "\n| what 2^{last} would take        | CPU, µs | GPU, µs | from n | or work |"
    ));
    say("|-----------------------------|--------:|--------:|-------:|--------:|");
    let n = (1u64 << last) as f64;
    for operator in &OPERATORS {
        let [cpu, streamed, resident] = machine.predict(operator, n);
        let (at, gpu) =
            if operator.resident { ("resident", resident) } else { ("streamed", streamed) };
        let from =
            machine.flip(operator).map_or("never".into(), |exponent| format!("2^{exponent}"));
        let work = machine.gate(operator, n).map_or("never".into(), |work| format!("{work:.0}"));
        let what = format!("{}, {at}", operator.name);
        say(format_args!("| {what:<27} | {cpu:>7.0} | {gpu:>7.0} | {from:>6} | {work:>7} |"));
    }

    say("\nPredicted (p) and measured (m), in µs: on the CPU, streamed, resident.\n");
    say("| operator, n      |   CPU p |   CPU m | strmd p | strmd m | resid p | resid m |");
    say("|------------------|--------:|--------:|--------:|--------:|--------:|--------:|");
    let (first, second) = (random(1 << last), random((1 << last) + 1));
    let mut checks = Vec::new();
    for (kernel, operator) in HELD_OUT {
        for exponent in (FIRST..=last).step_by(3) {
            let (a, b) = (&first[..1 << exponent], &second[1..=1 << exponent]);
            let columns = &[a, b][..operator.bytes_in.len()];
            let [resident, streamed] = gpu_times(&engine, kernel, columns, 0)?;
            let [one, all] = cpu_times(kernel, a, b)?;
            answers_agree(&engine, kernel, columns, [a, b])?;
            let said = machine.predict(&operator, a.len() as f64);
            let seen = [one.min(all), streamed, resident];
            let name = format!("{}, 2^{exponent}", operator.name);
            let mut row = format!("| {name:<16} |");
            for (said, seen) in said.into_iter().zip(seen) {
                row += &format!(" {:>7} | {:>7} |", short(said), short(seen));
            }
            say(row);
            checks.push((name, said, seen));
        }
    }
    let [share, worst] = how_far_off(&checks);
    let mut notes = format!("14.1 measured {share:.0} %   14.2 measured {worst:.2}×");
    notes += &match machine.gate(&SUM, n) {
        Some(work) => format!("   14.3 measured {work:.0} operations"),
        None => "   14.3 measured none".into(),
    };
    say("Slices or handles, and what gate before them? That is question 14.A.");
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

/// n values in (0, 1], none of them zero, the same in every run.
fn random(n: usize) -> Vec<f32> {
    let mut state = 1u64;
    let next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((state >> 40) + 1) as f32 / (1 << 24) as f32
    };
    std::iter::repeat_with(next).take(n).collect()
}

const WIDTH: u32 = 256;
/// Kernels of the shader, by their places in `OPERATOR_KERNELS`.
pub const ADD: usize = 0;
const DOT: usize = 1;
const LARGEST: usize = 2;
pub const KEEP: usize = 3;
pub const HISTOGRAM: usize = 4;
pub const HASH: usize = 5;
const MIX: usize = 6;
const BUMP: usize = 7;
pub const OPERATOR_KERNELS: [&str; 8] =
    ["add", "multiply", "largest", "keep", "histogram", "hash", "mix", "bump"];
const HISTOGRAM_BINS: usize = 256;
/// Elements of a block of `keep`: 256 words, neighbours' bits in neighbouring words.
const KEEP_BLOCK: usize = 8192;
const KEEP_ABOVE: f32 = 0.75;
const HASH_ROUNDS: u32 = 16;
const MIX_STEPS: u32 = 8;
const BUMPS: u32 = 16;

/// µs by bytes, measured at some sizes: a line from one to the next; below the first as at the first;
/// past the last at the last one's rate.
pub struct Curve(Vec<(f64, f64)>);

impl Curve {
    /// A difference of two times that noise has taken below 0 is 0.
    pub fn new(points: impl Iterator<Item = (f64, f64)>) -> Self {
        Self(points.map(|(bytes, us)| (bytes, us.max(0.0))).collect())
    }

    /// Nothing takes no time.
    pub fn at(&self, bytes: f64) -> f64 {
        let above = self.0.iter().position(|&(size, _)| size >= bytes);
        match (above, self.0.last()) {
            _ if bytes <= 0.0 => 0.0,
            (Some(0), _) => self.0[0].1,
            (Some(above), _) => {
                let ((less, from), (more, to)) = (self.0[above - 1], self.0[above]);
                from + (to - from) * (bytes - less) / (more - less)
            }
            (None, last) => last.map_or(0.0, |(size, us)| us * bytes / size),
        }
    }
}

/// Rungs 1 to 7, once per process.
pub struct Engine {
    adapter: wgpu::Adapter,
    flags: wgpu::InstanceFlags,
    device: wgpu::Device,
    queue: wgpu::Queue,
    errors: flume::Receiver<wgpu::Error>,
    bind_group_layout: wgpu::BindGroupLayout,
    kernels: [wgpu::ComputePipeline; OPERATOR_KERNELS.len()],
}

pub fn operator_engine() -> Result<Engine> {
    // Rung 1, instance.
    let descriptor = wgpu::InstanceDescriptor::new_without_display_handle_from_env();
    let flags = descriptor.flags;
    let instance = wgpu::Instance::new(descriptor);

    // Rung 2, adapter.
    let adapter = adapter(&instance)?;

    // Rung 3, device and queue.
    let (device, queue) = pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor {
        label: Some("device"),
        required_limits: wgpu::Limits::downlevel_defaults(),
        ..Default::default()
    }))?;
    let errors = errors(&device);

    // Rung 4, shader module.
    let shader = device.create_shader_module(wgpu::include_wgsl!("../shaders/14_break_even.wgsl"));

    // Rung 5, bind group layout.
    let bind_group_layout = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
        label: Some("columns and result"),
        entries: &[storage(0, true), storage(1, true), storage(2, false)],
    });

    // Rung 6, pipeline layout.
    let pipeline_layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
        label: Some("columns and result"),
        bind_group_layouts: &[Some(&bind_group_layout)],
        immediate_size: 0,
    });

    // Rung 7, pipeline: one for each kernel.
    let kernels = OPERATOR_KERNELS.map(|name| pipeline(&device, &pipeline_layout, &shader, name));

    Ok(Engine { adapter, flags, device, queue, errors, bind_group_layout, kernels })
}

impl Engine {
    /// A card at rest lowers its clocks, and takes its time to raise them. A CPU has done so by now.
    fn warm(&self, kernel: usize, loaded: &Loaded) -> Result<()> {
        let begin = Instant::now();
        let card = self.adapter.get_info().device_type != wgpu::DeviceType::Cpu;
        while card && micros(begin) < 3e5 {
            launch_kernel(self, kernel, loaded, 1)?;
        }
        Ok(())
    }
}

/// Columns on the device, kept by the bind group, with all that an operator on them needs.
pub struct Loaded {
    groups: u32,
    words: usize,
    result: wgpu::Buffer,
    readback: wgpu::Buffer,
    bind_group: wgpu::BindGroup,
}

/// Workgroups for n elements: 16 or more for each invocation, and 16 for each core of a large card.
fn operator_groups(n: usize) -> usize {
    n.div_ceil(16 * WIDTH as usize).min(2112)
}

/// Words of the result: a partial for each workgroup, a bit for each element, counts, or one.
pub fn operator_words(kernel: usize, n: usize) -> usize {
    match kernel {
        ADD | DOT | LARGEST => operator_groups(n),
        KEEP => n.div_ceil(KEEP_BLOCK) * (KEEP_BLOCK / 32),
        HASH | MIX => 1,
        _ => HISTOGRAM_BINS,
    }
}

/// Columns of one length cross, each by itself; the result is as large as it must be, or larger.
pub fn load_columns(
    engine: &Engine,
    kernel: usize,
    columns: &[&[f32]],
    words: usize,
) -> Result<Loaded> {
    let Engine { device, bind_group_layout, .. } = engine;
    let n = columns.iter().map(|column| column.len()).min().unwrap_or(0);
    let words = words.max(operator_words(kernel, n));
    let bytes = 4 * words.max(1) as u64;
    fits(device, bytes.max(4 * n as u64))?;
    // Rung 8, buffers: where there are no elements there are no workgroups, and nothing reads the zeros.
    let column = |data: &&[f32]| {
        device.create_buffer_init(&wgpu::util::BufferInitDescriptor {
            label: Some("column"),
            contents: if n == 0 { &[0; 4] } else { bytemuck::cast_slice(&data[..n]) },
            usage: wgpu::BufferUsages::STORAGE,
        })
    };
    let columns: Vec<_> = columns.iter().map(column).collect();
    let result = buffer(device, "result", bytes, RESULT | wgpu::BufferUsages::COPY_DST);
    let readback = buffer(device, "readback", bytes, READBACK);

    // Rung 9, bind group: an operator of one column has it in both places.
    let [a, b] = match columns.as_slice() {
        [a] => [a, a],
        [a, b] => [a, b],
        _ => return Err("an operator here has one column or two".into()),
    };
    let operands = [(a, a.size()), (b, b.size()), (&result, bytes)];
    let bind_group = bind(device, bind_group_layout, &operands);

    Ok(Loaded { groups: operator_groups(n) as u32, words, result, readback, bind_group })
}

/// The answer, with the columns already there; `passes` is how often the kernel goes over them.
pub fn launch_kernel(
    engine: &Engine,
    kernel: usize,
    loaded: &Loaded,
    passes: usize,
) -> Result<Vec<u32>> {
    let Engine { device, queue, errors, kernels, .. } = engine;
    let Loaded { groups, words, result, readback, bind_group } = loaded;
    // Rung 10, commands: the kernels add to counts and words, so these begin at 0.
    let label = Some(OPERATOR_KERNELS[kernel]);
    let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label });
    encoder.clear_buffer(result, 0, Some(result.size().min(4 * HISTOGRAM_BINS as u64)));
    let pass = wgpu::ComputePassDescriptor { label, timestamp_writes: None };
    let mut pass = encoder.begin_compute_pass(&pass);
    pass.set_pipeline(&kernels[kernel]);
    pass.set_bind_group(0, bind_group, &[]);
    for _ in 0..passes {
        pass.dispatch_workgroups(*groups, 1, 1);
    }
    drop(pass);
    encoder.copy_buffer_to_buffer(result, 0, readback, 0, readback.size());
    let commands = encoder.finish();

    // Rung 11, submit and wait.
    queue.submit([commands]);

    // Rung 12, map and read.
    let mut answer = read(device, errors, readback)?;

    answer.truncate(*words);
    if [ADD, DOT, LARGEST].contains(&kernel) {
        return Ok(gather_operator(kernel, answer.chunks(1).take(*groups as usize)));
    }
    Ok(answer)
}

/// µs of a call on columns that are there, and of one in which they cross and all buffers are made.
fn gpu_times(engine: &Engine, kernel: usize, columns: &[&[f32]], words: usize) -> Result<[f64; 2]> {
    let loaded = load_columns(engine, kernel, columns, words)?;
    engine.warm(kernel, &loaded)?;
    let [resident] = repeat(timed(|| launch_kernel(engine, kernel, &loaded, 1)))?;
    let call = || launch_kernel(engine, kernel, &load_columns(engine, kernel, columns, words)?, 1);
    let [streamed] = repeat(timed(call))?;
    Ok([resident, streamed])
}

/// µs on one thread, and on all cores.
fn cpu_times(kernel: usize, a: &[f32], b: &[f32]) -> Result<[f64; 2]> {
    let [one] = repeat(timed(|| Ok(cpu_operator(kernel, black_box(a), b))))?;
    let [all] = repeat(timed(|| Ok(cpu_operator_all(kernel, black_box(a), b))))?;
    Ok([one, all])
}

/// The last exponent that suits the adapter, by what a small `hash` takes.
fn last_that_suits(engine: &Engine) -> Result<u64> {
    let probe = load_columns(engine, HASH, &[&random(1 << 16)], 0)?;
    let [us] = repeat(timed(|| launch_kernel(engine, HASH, &probe, 1)))?;
    Ok(match us {
        ..3e2 => 25,
        ..2e3 => 21,
        _ => 19,
    })
}

/// The sizes to measure at, the last one and every eighth of the one above. malloc hands large blocks
/// back to the system until it has seen some of that size come and go: here they do.
fn settle_malloc(engine: &Engine, data: &[f32]) -> Result<Vec<u32>> {
    let mut sizes: Vec<u32> = (*FLIPS.start()..=data.len().ilog2()).rev().step_by(3).collect();
    for exponent in &sizes {
        let data = &data[..1 << exponent];
        launch_kernel(engine, KEEP, &load_columns(engine, KEEP, &[data], data.len())?, 1)?;
    }
    sizes.reverse();
    Ok(sizes)
}

/// A column's elements, or two columns', folded in 32 lanes, so that no step waits for the last one.
fn in_lanes(a: &[f32], b: &[f32], start: f32, step: impl Fn(f32, f32, f32) -> f32) -> [f32; 32] {
    let ((a, b), mut lanes) = ((a.chunks_exact(32), b.chunks_exact(32)), [start; 32]);
    let rest = a.remainder().iter().zip(b.remainder());
    for (a, b) in a.zip(b) {
        lanes = std::array::from_fn(|lane| step(lanes[lane], a[lane], b[lane]));
    }
    for (lane, (&a, &b)) in lanes.iter_mut().zip(rest) {
        *lane = step(*lane, a, b);
    }
    lanes
}

/// An operator on one thread, as one would write it: words, or the bits of an f32. The definition of
/// correct, but for sums and products, which f64 has to judge.
pub fn cpu_operator(kernel: usize, a: &[f32], b: &[f32]) -> Vec<u32> {
    let larger = |most: f32, x: f32| if x > most { x } else { most };
    let sum = |lanes: [f32; 32]| vec![lanes.iter().sum::<f32>().to_bits()];
    match kernel {
        ADD => sum(in_lanes(a, a, 0.0, |sum, x, _| sum + x)),
        DOT => sum(in_lanes(a, b, 0.0, |sum, x, y| sum + x * y)),
        LARGEST => {
            let lanes = in_lanes(a, a, f32::MIN, |most, x, _| larger(most, x));
            vec![lanes.into_iter().fold(f32::MIN, larger).to_bits()]
        }
        KEEP => {
            let mut words = vec![0; operator_words(KEEP, a.len())];
            for (words, block) in words.chunks_mut(KEEP_BLOCK / 32).zip(a.chunks(KEEP_BLOCK)) {
                for (bit, row) in block.chunks(KEEP_BLOCK / 32).enumerate() {
                    let words = words.iter_mut().zip(row);
                    words.for_each(|(word, &x)| *word |= u32::from(x > KEEP_ABOVE) << bit);
                }
            }
            words
        }
        HISTOGRAM => count_places(a.iter().map(|x| x.to_bits() >> 15)),
        HASH => {
            let round = |word: u32, _| (word ^ (word >> 15)).wrapping_mul(0x2c1b_3c6d);
            let hash = |x: &f32| (0..HASH_ROUNDS).fold(x.to_bits(), round);
            vec![a.iter().map(hash).fold(0, u32::wrapping_add)]
        }
        MIX => {
            let step = |word: u32| (word ^ (word >> 13)).wrapping_mul(0x5bd1_e995);
            let mixed = |word: u32, i| (word ^ (word >> 16)).wrapping_add(i);
            let steps = |i| (0..MIX_STEPS).fold(i, |word, _| mixed(step(word), i));
            vec![(0..a.len() as u32).map(steps).fold(0, u32::wrapping_add)]
        }
        _ => count_places((0..a.len() as u32 * BUMPS).map(|i| i.wrapping_mul(0x9e37_79b1) >> 24)),
    }
}

/// How many times there is each place.
fn count_places(places: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut bins = vec![0; HISTOGRAM_BINS];
    places.for_each(|place| bins[place as usize % HISTOGRAM_BINS] += 1);
    bins
}

/// The same on every core: shares of whole blocks. Starting the threads is part of the time.
pub fn cpu_operator_all(kernel: usize, a: &[f32], b: &[f32]) -> Vec<u32> {
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get());
    let share = a.len().div_ceil(threads).max(1);
    let share = if kernel == KEEP { share.next_multiple_of(KEEP_BLOCK) } else { share };
    let answers: Vec<Vec<u32>> = std::thread::scope(|scope| {
        let start = |(a, b)| scope.spawn(move || cpu_operator(kernel, a, b));
        let threads: Vec<_> = a.chunks(share).zip(b.chunks(share)).map(start).collect();
        let answer = |thread: std::thread::ScopedJoinHandle<'_, _>| thread.join();
        threads.into_iter().map(|thread| answer(thread).expect("no operator panics")).collect()
    });
    gather_operator(kernel, answers.iter().map(|words| words.as_slice()))
}

/// One answer out of the answers of shares.
fn gather_operator<'a>(kernel: usize, answers: impl Iterator<Item = &'a [u32]>) -> Vec<u32> {
    let real = |words: &[u32]| f32::from_bits(words[0]);
    match kernel {
        ADD | DOT => {
            let sum: f64 = answers.map(|words| f64::from(real(words))).sum();
            vec![(sum as f32).to_bits()]
        }
        LARGEST => vec![answers.map(real).fold(f32::MIN, f32::max).to_bits()],
        KEEP => answers.collect::<Vec<_>>().concat(),
        _ => {
            let mut sums = vec![0u32; operator_words(kernel, 0)];
            for answer in answers {
                sums.iter_mut().zip(answer).for_each(|(sum, &word)| *sum = sum.wrapping_add(word));
            }
            sums
        }
    }
}

/// Compares with the CPU: word for word, or within what rounding explains. A sum or a product is made of
/// so many `chains`, and brought together in 34 more additions at most; a product is rounded itself.
pub fn operator_agrees(
    kernel: usize,
    chains: usize,
    answer: &[u32],
    [a, b]: [&[f32]; 2],
) -> Result<()> {
    let name = OPERATOR_KERNELS[kernel];
    if kernel != ADD && kernel != DOT {
        let same = answer == cpu_operator(kernel, a, b);
        return same.then_some(()).ok_or(format!("{name} gives not what one thread gives").into());
    }
    let (mut exact, mut absolute) = (0.0, 0.0);
    for (&x, &y) in a.iter().zip(b) {
        let term = f64::from(x) * if kernel == DOT { f64::from(y) } else { 1.0 };
        (exact, absolute) = (exact + term, absolute + term.abs());
    }
    let bound = (a.len().div_ceil(chains) + 35) as f64 * f64::from(f32::EPSILON) / 2.0 * absolute;
    let got = answer.first().map_or(f64::NAN, |&word| f64::from(f32::from_bits(word)));
    if (got - exact).abs() <= bound {
        return Ok(());
    }
    Err(format!("{name} says {got}, the CPU {exact}, and rounding explains {bound} at most").into())
}

/// The GPU's answer and that of all cores, before any time of theirs is believed.
fn answers_agree(
    engine: &Engine,
    kernel: usize,
    columns: &[&[f32]],
    data: [&[f32]; 2],
) -> Result<()> {
    let loaded = load_columns(engine, kernel, columns, 0)?;
    let answer = launch_kernel(engine, kernel, &loaded, 1)?;
    operator_agrees(kernel, chains_on_gpu(data[0].len()), &answer, data)?;
    let answer = cpu_operator_all(kernel, data[0], data[1]);
    operator_agrees(kernel, CHAINS_ON_CPU, &answer, data)
}

/// How many chains of additions there are: one for each invocation, and on a thread for each lane.
pub fn chains_on_gpu(n: usize) -> usize {
    operator_groups(n).max(1) * WIDTH as usize
}
pub const CHAINS_ON_CPU: usize = 32;

/// Prints the constants beside what the card in notes.md says, and the card's own verdict on a sum.
fn beside_the_card(machine: &Machine, bytes: f64) {
    let Machine { one, all, gpu, floor, dispatch, upload, .. } = machine;
    let cpu = one.read.at(bytes).min(all.read.at(bytes));
    let rate = |us: f64| bytes / us / 1e3;
    let [floor_there, dispatch_there] = ["floor", "dispatch"].map(|name| on_the_card(name, "µs"));
    let rates = ["upload", "cpu", "read"].map(|name| on_the_card(name, "GB/s"));
    say("\n| constant                          |  measured | your card |");
    say("|-----------------------------------|----------:|----------:|");
    let row = |what: &str, measured: f64, card: Option<f64>| {
        let card = card.map_or(String::new(), |card| format!("{card:.1}"));
        // A difference of two times may have been lost in the noise of both.
        let here = if measured.is_finite() { format!("{measured:.1}") } else { "lost".into() };
        say(format_args!("| {what:<33} | {here:>9} | {card:>9} |"));
    };
    row("the floor, µs", *floor, floor_there.map(|s| s * 1e6));
    row("a dispatch more, µs", *dispatch, dispatch_there.map(|s| s * 1e6));
    row("a column crosses, GB/s", rate(upload.at(bytes)), rates[0].map(|rate| rate / 1e9));
    row("the CPU reads, GB/s", rate(cpu), rates[1].map(|rate| rate / 1e9));
    row("the GPU reads, GB/s", rate(gpu.read.at(bytes)), rates[2].map(|rate| rate / 1e9));
    for (who, side) in [("a thread", one), ("all cores", all), ("the GPU", gpu)] {
        // The least that `calibrate` takes stands for nothing measured.
        let rate = |ns: f64| if ns > 1e-6 { 1.0 / ns } else { f64::NAN };
        row(&format!("{who}: operations, 10^9/s"), rate(side.work), None);
        row(&format!("{who}: increments, 10^9/s"), rate(side.scattered), None);
    }
    let (Some(floor), [Some(upload), Some(cpu), Some(gpu)]) = (floor_there, rates) else {
        say(
            "With its floor, upload, cpu and read filled in, a card in notes.md has a verdict here.",
        );
        return;
    };
    let [streamed, resident] = by_card([floor, upload, cpu, gpu])
        .map(|n| n.map_or("never".into(), |n| format!("from 2^{:.1} on", n.log2())));
    say(format_args!("By the card alone, a sum pays streamed {streamed}, resident {resident}."));
}

/// µs in seven places at most, unless they are hours.
fn short(us: f64) -> String {
    if us < 100.0 { format!("{us:.1}") } else { format!("{us:.0}") }
}

/// A line of the card in notes.md, in seconds or in bytes per second, if it is filled in.
fn on_the_card(name: &str, unit: &str) -> Option<f64> {
    let notes = std::fs::read_to_string("notes.md").ok()?;
    let begin = format!("- card.{name} ");
    let line = notes.lines().find_map(|line| line.trim().strip_prefix(&begin))?;
    quantity(line.split_once(": ")?.1, &format!("__ {unit}")).ok().flatten().filter(|&x| x > 0.0)
}

/// What was checked, by name: µs predicted and measured, on the CPU, streamed and resident.
pub type Check = (String, [f64; 3], [f64; 3]);

/// Says how the predictions compare. Returns what percentage is within 2×, and the farthest off.
pub fn how_far_off(checks: &[Check]) -> [f64; 2] {
    say("\n| predicted ÷ measured | least | median |  most | within 2× |");
    say("|----------------------|------:|-------:|------:|----------:|");
    let off = |ratio: f64| ratio.max(1.0 / ratio);
    let (mut within, mut worst) = (0, (1.0, String::new()));
    for (way, place) in [("CPU", 0), ("streamed", 1), ("resident", 2)] {
        let ratio =
            |(name, said, seen): &Check| (said[place] / seen[place].max(1e-3), name.clone());
        let mut ratios: Vec<_> = checks.iter().map(ratio).collect();
        ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
        let [(least, _), (median, _), (most, _)] =
            [0, ratios.len() / 2, ratios.len() - 1].map(|at| ratios[at].clone());
        let (good, all) = (ratios.iter().filter(|ratio| off(ratio.0) <= 2.0).count(), ratios.len());
        within += good;
        say(format_args!(
            "| {way:<20} | {least:>5.2} | {median:>6.2} | {most:>5.2} | {good:>3} of {all:<2} |"
        ));
        for (ratio, name) in ratios {
            if off(ratio) > off(worst.0) {
                worst = (ratio, format!("{name}, {way}"));
            }
        }
    }
    let wins = |times: &[f64; 3], place: usize| times[place] < times[0];
    let named =
        |place| checks.iter().filter(move |(_, said, seen)| wins(said, place) == wins(seen, place));
    let (named, all) = (named(1).count() + named(2).count(), 2 * checks.len());
    say(format_args!("\nFarthest off is {}: {:.2}×.", worst.1, worst.0));
    say(format_args!("Of CPU and GPU, the model names the faster in {named} of {all} cases."));
    [100.0 * within as f64 / (3 * checks.len()) as f64, off(worst.0)]
}

/// What a hand wrote into a slot: `184.5 µs` in seconds, `11 GB/s` in bytes per second, `2^25 elements`
/// and `1.5×` as they are. Without a unit it has that of `slot`, a text with the slot's unit: `__ µs`.
/// None: not filled in. What could be meant in two ways is an error. Remarks stand in brackets, or behind
/// the unit and without figures. A comma before three digits parts thousands; before others, a fraction.
fn quantity(text: &str, slot: &str) -> Result<Option<f64>> {
    const UNITS: [(&str, &str, f64); 13] = [
        ("ns", "s", 1e-9),
        ("us", "s", 1e-6),
        ("µs", "s", 1e-6), // the sign for micro
        ("μs", "s", 1e-6), // the Greek letter
        ("ms", "s", 1e-3),
        ("s", "s", 1.0),
        ("B/s", "B/s", 1.0),
        ("kB/s", "B/s", 1e3),
        ("MB/s", "B/s", 1e6),
        ("GB/s", "B/s", 1e9),
        ("TB/s", "B/s", 1e12),
        ("x", "×", 1.0),
        ("times", "×", 1.0),
    ];
    let number = |word: &str| match word.split_once('^') {
        Some((base, power)) => Some(f64::from(base.parse::<u32>().ok()?).powi(power.parse().ok()?)),
        None => {
            let (whole, fraction) = word.split_at(word.find('.').unwrap_or(word.len()));
            let mut groups = whole.split(',');
            let begins = groups.next().is_some_and(|group| group.len() <= 3 && group != "0");
            if begins && groups.all(|group| group.len() == 3 && group.parse::<u16>().is_ok()) {
                return (whole.replace(',', "") + fraction).parse().ok();
            }
            word.replacen(',', ".", 1).parse().ok()
        }
    };
    // The number, NaN where it cannot be read, and what stands behind it.
    let parts = |text: &str| {
        let text = text.split('(').next().unwrap_or_default().replace(['*', '`'], " ");
        let text = text.replace(['_', '\'', '\u{a0}', '\u{202f}'], "").replace('−', "-");
        let Some(digit) = text.find(|sign: char| sign.is_ascii_digit()) else {
            return (None, text);
        };
        let before = text[..digit].rsplit(char::is_whitespace).next().map_or(0, str::len);
        let word = text[digit - before..].trim_start_matches(['~', '≈', '<', '>', '≤', '≥', '=']);
        let ends = word.char_indices().map(|(at, sign)| at + sign.len_utf8()).take(40);
        let read = ends.filter_map(|end| Some((number(&word[..end])?, end))).last();
        let (number, end) = read.unwrap_or((f64::NAN, word.len()));
        (Some(number), word[end..].to_string())
    };
    let unit = |rest: &str| {
        let inside = |sign: char| sign.is_alphabetic() || ['/', '×', '%'].contains(&sign);
        let word = rest.trim_start().split(|sign| !inside(sign)).next().unwrap_or_default();
        let known = UNITS.iter().find(|(name, ..)| *name == word);
        let (kind, scale) =
            known.map_or((word.trim_end_matches('s'), 1.0), |unit| (unit.1, unit.2));
        (kind.to_string(), scale)
    };
    let ((number, rest), (_, usual)) = (parts(text), parts(slot));
    let ((kind, scale), (wanted, usual)) = (unit(&rest), unit(&usual));
    let one = !rest.contains(|sign: char| sign.is_numeric() || sign == '^');
    let fits = kind.is_empty() || wanted.is_empty() || kind == wanted;
    match number {
        None if (fits && one) || text.contains('_') => Ok(None),
        Some(number) if number.is_finite() && one && fits => {
            Ok(Some(number * if kind.is_empty() { usual } else { scale }))
        }
        _ => {
            let short: String = text.trim().chars().take(40).collect();
            Err(format!("{short:?} is not one number with the slot's unit").into())
        }
    }
}
