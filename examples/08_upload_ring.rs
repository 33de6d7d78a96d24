//! 08 upload ring: what each road to the device costs, and how a ring overlaps them.
//!
//! In:    n u32 on the host; the argument is n; if none is given, as many as suit the adapter.
//! Out:   ms and GB/s of each road beside its ceilings; the same of a stream, and who waited in it.
//! Run:   cargo run --example 08_upload_ring 2^22
//! Read:  guide/08_upload_ring.md
//!
//! Rungs: 11 its own: each bucket is waited for alone. The others stand in the foot, up to the consumer:
//! its totals stay on the device until a stream has ended.

use std::ops::Range;
use std::time::Instant;
use wgpu::util::{DeviceExt, StagingBelt};
use wgpu::{BufferUsages as Usage, Features, WriteOnly};

const HEAD: &str = include_str!("08_upload_ring.rs");
/// A bucket that threads fill, one that is handed out already, one that the GPU reads.
pub const DEPTH: usize = 3;
/// Bytes of a chunk, where the table does not say how many.
pub const CHUNK: u64 = 16 << 20;

pub fn main() {
    env_logger::init();
    let n = argument(HEAD, 0..=1 << 32);
    if let Err(error) = lesson(n) {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

/// Word i of all data here: a hash of its place.
pub fn word(i: u64) -> u32 {
    let hash = (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (hash ^ hash >> 29) as u32
}

/// The sum of the first words on the CPU: the definition of correct.
pub fn cpu_sum(words: u64) -> u64 {
    (0..words).map(|i| u64::from(word(i))).sum()
}

/// What a thread tells in the end: that all is done, or why not.
pub type Verdict = std::result::Result<(), String>;

/// Gives each of so many threads a share of the data, with the byte at which it begins.
fn share(data: &[u8], threads: usize, write: impl Fn(u64, &[u8]) -> Verdict + Sync) -> Verdict {
    let (size, write) = (data.len().div_ceil(threads).next_multiple_of(4096).max(4096), &write);
    std::thread::scope(|scope| {
        let start = |(at, part)| scope.spawn(move || write(at, part));
        let threads: Vec<_> = (0..).step_by(size).zip(data.chunks(size)).map(start).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("a verdict, no panic"))
    })
}

/// Into staging memory that wgpu makes for each share, and that the next submit copies from.
pub fn write_with(gpu: &Crossing, to: &wgpu::Buffer, data: &[u8], threads: usize) -> Road {
    share(data, threads, |at, part| {
        let size = wgpu::BufferSize::new(part.len() as u64).ok_or("an empty share")?;
        let view = gpu.queue.write_buffer_with(to, at, size);
        view.ok_or("wgpu refuses the write")?.copy_from_slice(part);
        Ok(())
    })?;
    arrive(gpu, to)
}

/// Into a buffer that the host maps, and no further: a view for each share.
pub fn place(gpu: &Crossing, to: &wgpu::Buffer, data: &[u8], threads: usize) -> Road {
    let answer = map(to);
    arrive(gpu, to)?;
    answer.try_recv()??;
    share(data, threads, |at, part| {
        let view = to.get_mapped_range_mut(at..at + part.len() as u64);
        view.map_err(|error| error.to_string())?.copy_from_slice(part);
        Ok(())
    })?;
    to.unmap();
    Ok(to.clone())
}

/// Asks for a buffer. The answer comes, inside some poll, when the GPU is done with it.
fn map(buffer: &wgpu::Buffer) -> flume::Receiver<Answer> {
    let (sender, answer) = flume::bounded(1);
    buffer.map_async(wgpu::MapMode::Write, .., move |mapped| _ = sender.send(mapped));
    answer
}

pub struct Ring<'a> {
    gpu: &'a Crossing,
    chunk: u64,
    threads: usize,
    buckets: [Bucket; DEPTH],
}

/// A staging buffer. It is mapped; or away with a submit that reads it, and asked for.
struct Bucket {
    staging: wgpu::Buffer,
    away: Option<(wgpu::SubmissionIndex, flume::Receiver<Answer>)>,
}

pub fn ring(gpu: &Crossing, chunk: u64, threads: usize) -> Ring<'_> {
    let (label, usage) = (Some("bucket"), Usage::MAP_WRITE | Usage::COPY_SRC);
    let bucket = wgpu::BufferDescriptor { label, size: chunk, usage, mapped_at_creation: true };
    let bucket = |_| Bucket { staging: gpu.device.create_buffer(&bucket), away: None };
    Ring { gpu, chunk, threads, buckets: std::array::from_fn(bucket) }
}

/// Returns when the bucket is mapped, and whether that took a wait.
fn back(gpu: &Crossing, bucket: &mut Bucket) -> Result<bool> {
    let Some((submission, answer)) = bucket.away.take() else { return Ok(false) };
    gpu.device.poll(wgpu::PollType::Poll)?;
    let waits = answer.is_empty();
    if waits {
        wait_for_submission(gpu, submission)?;
    }
    answer.try_recv()??;
    Ok(waits)
}

/// What fills a part of the data, given the byte at which it begins; or says why it cannot.
pub type Source<'a> = &'a (dyn Fn(u64, WriteOnly<[u8]>) -> Verdict + Sync);

/// Sends bytes through the ring: threads fill a chunk from `source`, while the GPU does for those
/// before it what `record` has recorded. Returns how many chunks waited for their bucket.
fn flow<R>(ring: &mut Ring, bytes: u64, source: Source, record: R) -> Result<usize>
where
    R: Fn(&mut wgpu::CommandEncoder, &wgpu::Buffer, Range<u64>),
{
    let Ring { gpu, chunk, threads, buckets } = ring;
    let range = |at| at..bytes.min(at + *chunk);
    let chunks: Vec<Range<u64>> = (0..bytes).step_by(*chunk as usize).map(range).collect();
    // Whole pages: a view of a mapped buffer has to begin at a multiple of 8.
    let share = chunk.div_ceil(*threads as u64).next_multiple_of(4096);
    std::thread::scope(|scope| {
        let worker = |_| {
            let (hand, parts) = flume::unbounded::<(u64, wgpu::BufferViewMut)>();
            let (tell, told) = flume::unbounded();
            scope.spawn(move || {
                for (at, mut part) in parts {
                    let verdict = source(at, part.slice(..));
                    // First, since a buffer with an open view cannot be unmapped.
                    drop(part);
                    _ = tell.send(verdict);
                }
            });
            (hand, told)
        };
        let workers: Vec<_> = (0..*threads).map(worker).collect();
        let mut waits = 0;
        for turn in 0..=chunks.len() {
            // Hand out a chunk before the one before it is collected: no thread runs out of work.
            if let Some(chunk) = chunks.get(turn) {
                let bucket = &mut buckets[turn % DEPTH];
                waits += usize::from(back(gpu, bucket)?);
                for (at, (hand, _)) in chunk.clone().step_by(share as usize).zip(&workers) {
                    let part = at - chunk.start..chunk.end.min(at + share) - chunk.start;
                    hand.send((at, bucket.staging.get_mapped_range_mut(part)?))?;
                }
            }
            let Some(last) = turn.checked_sub(1) else { continue };
            let (chunk, bucket) = (chunks[last].clone(), &mut buckets[last % DEPTH]);
            for (_, (_, told)) in chunk.clone().step_by(share as usize).zip(&workers) {
                let far = |why| format!("{why}; {} of {bytes} bytes had gone before", chunk.start);
                told.recv()?.map_err(far)?;
            }
            bucket.staging.unmap();
            let mut encoder = chunk_encoder(gpu);
            record(&mut encoder, &bucket.staging, chunk);
            // Rung 11, submit and wait: `back` waits, when this bucket's turn comes again.
            let submission = gpu.queue.submit([encoder.finish()]);
            bucket.away = Some((submission, map(&bucket.staging)));
        }
        Ok(waits)
    })
}

/// Through the ring, all into one buffer.
pub fn upload(ring: &mut Ring, to: &wgpu::Buffer, data: &[u8]) -> Road {
    let source = |at: u64, mut part: WriteOnly<[u8]>| {
        part.copy_from_slice(&data[at as usize..][..part.len()]);
        Ok(())
    };
    flow(ring, data.len() as u64, &source, |encoder, staging, chunk| {
        encoder.copy_buffer_to_buffer(staging, 0, to, chunk.start, chunk.end - chunk.start);
    })?;
    arrive(ring.gpu, to)
}

/// The sum of a stream that is nowhere whole, each chunk read so often; and how many chunks waited.
pub fn stream(ring: &mut Ring, bytes: u64, source: Source, reads: usize) -> Result<(u64, usize)> {
    let gpu = ring.gpu;
    clear_words(gpu, &gpu.totals[0]);
    let waits = flow(ring, bytes, source, |encoder, staging, chunk| {
        consume_chunk(gpu, encoder, staging, 0..chunk.end - chunk.start, reads);
    })?;
    Ok((words_total(gpu, 0)?, waits))
}

fn lesson(n: Option<u64>) -> Result<()> {
    let gpu = crossing(Features::MAPPABLE_PRIMARY_BUFFERS)?;
    header(&gpu.adapter, gpu.flags);
    let (words, threads, slow) = suited_words(&gpu, n)?;
    let (data, all): (&[u8], _) = (bytemuck::cast_slice(&words), threads[threads.len() - 1]);
    let [to, twin] = [(); 2].map(|()| road_buffer(&gpu, data, Usage::STORAGE | Usage::COPY_DST));
    let staging = road_buffer(&gpu, data, Usage::MAP_WRITE);
    let row = |road, threads, chunk, call: &mut dyn FnMut() -> Road| {
        clear_words(&gpu, &to);
        road_row(&gpu, &words, road, threads, chunk, call)
    };
    say("\n| ceiling or road       | threads | KiB a chunk |       ms |    GB/s |");
    say("|-----------------------|--------:|------------:|---------:|--------:|");
    for &threads in &threads {
        heap_row(data, threads)?;
        row("memcpy into a mapping", threads, 0, &mut || place(&gpu, &staging, data, threads))?;
    }
    row("copy, from staging", 0, 0, &mut || by_copy(&gpu, &staging, &to))?;
    by_copy(&gpu, &staging, &twin)?;
    row("copy, on the device", 0, 0, &mut || by_copy(&gpu, &twin, &to))?;
    let init = row("create_buffer_init", 1, 0, &mut || by_init(&gpu, data))?;
    row("write_buffer", 1, 0, &mut || by_write_buffer(&gpu, &to, data))?;
    for &threads in &threads {
        row("write_buffer_with", threads, 0, &mut || write_with(&gpu, &to, data, threads))?;
    }
    let mut belt = StagingBelt::new(gpu.device.clone(), CHUNK);
    row("StagingBelt", 1, CHUNK, &mut || by_belt(&gpu, &mut belt, &to, data))?;
    let mut best: f64 = 0.0;
    for (part, threads) in [(16, 1), (64, all), (16, all), (4, all)] {
        let chunk = (data.len() as u64 / part).next_multiple_of(4096).max(4096);
        let mut ring = ring(&gpu, chunk, threads);
        best = best.max(row("ring", threads, chunk, &mut || upload(&mut ring, &to, data))?);
    }
    if gpu.device.features().contains(Features::MAPPABLE_PRIMARY_BUFFERS) {
        let primary = road_buffer(&gpu, data, Usage::MAP_WRITE | Usage::STORAGE);
        row("mappable primary", all, 0, &mut || place(&gpu, &primary, data, all))?;
        say_paces(&gpu, &primary, &to)?;
    }
    say("\n| reads of each chunk | chunks | waits |       ms |    GB/s |");
    say("|--------------------:|-------:|------:|---------:|--------:|");
    let (mut ring, chunks, mut waits) = (ring(&gpu, CHUNK, all), 4 * DEPTH as u64, 0);
    let (bytes, mut sum) = (chunks * CHUNK, 0);
    for reads in [1, slow] {
        let start = Instant::now();
        (sum, waits) = stream(&mut ring, bytes, &made, reads)?;
        let us = micros(start);
        exactly_words(sum, bytes / 4)?;
        let row = format!("| {reads:>19} | {chunks:>6} | {waits:>5}");
        say(format_args!("{row} | {:>8.2} | {:>7.2} |", us / 1e3, bytes as f64 / us / 1e3));
    }
    say(format_args!("\nThe stream's sum is {sum}, and so is the CPU's."));
    let broken = |at: u64, part: WriteOnly<[u8]>| {
        if at < bytes / 2 { made(at, part) } else { Err("there is no more".into()) }
    };
    if let Err(error) = stream(&mut ring, bytes, &broken, 1) {
        say(format_args!("A source that fails half-way: {error}."));
    }
    say(format_args!("The ring's best is {:.1}× create_buffer_init.", best / init.max(1e-9)));
    let notes = format!("08.1 measured {init:.2} GB/s   08.2 measured {best:.2} GB/s");
    say(format_args!("For notes.md:  {notes}   08.3 measured {waits} chunks"));
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

const WIDTH: u32 = 256;
const GROUPS: u32 = 256;
/// More than this many brought no more where we tried.
const MOST_THREADS: usize = 8;
type Answer = std::result::Result<(), wgpu::BufferAsyncError>;
/// The buffer that holds the data now.
type Road = Result<wgpu::Buffer>;

/// What is made once per process, and a consumer that adds up words.
pub struct Crossing {
    adapter: wgpu::Adapter,
    flags: wgpu::InstanceFlags,
    pub device: wgpu::Device,
    pub queue: wgpu::Queue,
    pub errors: flume::Receiver<wgpu::Error>,
    bind_group_layout: wgpu::BindGroupLayout,
    add: wgpu::ComputePipeline,
    /// One chunk on the device. A second would bring nothing, since a queue does one thing at a time.
    input: wgpu::Buffer,
    /// The running totals, and those of further reads, which count for nothing.
    totals: [wgpu::Buffer; 2],
    readback: wgpu::Buffer,
}

pub fn crossing(optional: wgpu::Features) -> Result<Crossing> {
    // Rung 1, instance.
    let descriptor = wgpu::InstanceDescriptor::new_without_display_handle_from_env();
    let flags = descriptor.flags;
    let instance = wgpu::Instance::new(descriptor);

    // Rung 2, adapter.
    let adapter = adapter(&instance)?;

    // Rung 3, device and queue: what is optional is asked for only where offered.
    let (device, queue) = pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor {
        label: Some("device"),
        required_features: adapter.features() & optional,
        required_limits: wgpu::Limits::downlevel_defaults(),
        ..Default::default()
    }))?;
    let errors = errors(&device);

    // Rung 4, shader module.
    let shader = device.create_shader_module(wgpu::include_wgsl!("../shaders/08_upload_ring.wgsl"));

    // Rung 5, bind group layout.
    let bind_group_layout = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
        label: Some("words and totals"),
        entries: &[storage(0, true), storage(1, false)],
    });

    // Rung 6, pipeline layout.
    let pipeline_layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
        label: Some("words and totals"),
        bind_group_layouts: &[Some(&bind_group_layout)],
        immediate_size: 0,
    });

    // Rung 7, pipeline.
    let add = pipeline(&device, &pipeline_layout, &shader, "add");

    // Rung 8, buffers: two u32 of total for each invocation.
    let input = buffer(&device, "input", CHUNK, Usage::STORAGE | Usage::COPY_DST);
    let size = u64::from(GROUPS * WIDTH) * 8;
    let totals = ["totals", "totals that do not count"]
        .map(|label| buffer(&device, label, size, RESULT | Usage::COPY_DST));
    let readback = buffer(&device, "readback", size, READBACK);

    Ok(Crossing {
        adapter,
        flags,
        device,
        queue,
        errors,
        bind_group_layout,
        add,
        input,
        totals,
        readback,
    })
}

fn chunk_encoder(gpu: &Crossing) -> wgpu::CommandEncoder {
    let label = Some("chunk");
    gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label })
}

fn clear_words(gpu: &Crossing, buffer: &wgpu::Buffer) {
    let mut encoder = chunk_encoder(gpu);
    encoder.clear_buffer(buffer, 0, None);
    gpu.queue.submit([encoder.finish()]);
}

/// Records: a chunk of `from` into the input, and added to the totals; then read again, for nothing.
fn consume_chunk(
    gpu: &Crossing,
    encoder: &mut wgpu::CommandEncoder,
    from: &wgpu::Buffer,
    chunk: Range<u64>,
    reads: usize,
) {
    let Crossing { device, bind_group_layout, add, input, totals, .. } = gpu;
    let bytes = chunk.end - chunk.start;
    // Rung 9, bind group: as much of the input as this chunk fills, so that the kernel knows its end.
    let bind_groups = totals
        .each_ref()
        .map(|totals| bind(device, bind_group_layout, &[(input, bytes), (totals, totals.size())]));

    // Rung 10, commands.
    encoder.copy_buffer_to_buffer(from, chunk.start, input, 0, bytes);
    let pass = wgpu::ComputePassDescriptor { label: Some("add"), timestamp_writes: None };
    let mut pass = encoder.begin_compute_pass(&pass);
    pass.set_pipeline(add);
    for read in 0..reads {
        pass.set_bind_group(0, &bind_groups[read.min(1)], &[]);
        pass.dispatch_workgroups(GROUPS, 1, 1);
    }
}

/// The totals of all invocations together: of first reads, or of those for nothing.
pub fn words_total(gpu: &Crossing, which: usize) -> Result<u64> {
    let Crossing { device, queue, errors, totals, readback, .. } = gpu;
    let mut encoder = chunk_encoder(gpu);
    encoder.copy_buffer_to_buffer(&totals[which], 0, readback, 0, readback.size());
    queue.submit([encoder.finish()]);
    // Rung 12, map and read.
    let totals = read::<[u32; 2]>(device, errors, readback)?;

    let total = |[low, high]: [u32; 2]| u64::from(high) << 32 | u64::from(low);
    Ok(totals.into_iter().map(total).fold(0, u64::wrapping_add))
}

/// The sum of the words in the first bytes of a buffer.
pub fn words_checksum(gpu: &Crossing, buffer: &wgpu::Buffer, bytes: u64) -> Result<u64> {
    clear_words(gpu, &gpu.totals[0]);
    for at in (0..bytes).step_by(CHUNK as usize) {
        let mut encoder = chunk_encoder(gpu);
        consume_chunk(gpu, &mut encoder, buffer, at..bytes.min(at + CHUNK), 1);
        gpu.queue.submit([encoder.finish()]);
    }
    words_total(gpu, 0)
}

fn exactly_words(sum: u64, words: u64) -> Result<()> {
    let exact = cpu_sum(words);
    if sum == exact {
        return Ok(());
    }
    Err(format!("the words add up to {exact}, and the GPU says {sum}").into())
}

/// `wait`, but for one submission, and whatever was submitted after it goes on.
fn wait_for_submission(gpu: &Crossing, submission: wgpu::SubmissionIndex) -> Result<()> {
    let timeout = Some(std::time::Duration::from_secs(120));
    let submission_index = Some(submission);
    let polled = gpu.device.poll(wgpu::PollType::Wait { submission_index, timeout });
    if let Err(wgpu::PollError::Timeout) = polled {
        // No `Err` here, as in `wait`.
        eprintln!("the GPU was not done within two minutes: give a smaller size");
        std::process::exit(1);
    }
    match gpu.errors.drain().next() {
        Some(error) => Err(error.to_string().replace('\n', " ").into()),
        None => Ok(()),
    }
}

/// The flush that ends every road: what was queued for the buffer has been done.
fn arrive(gpu: &Crossing, to: &wgpu::Buffer) -> Road {
    gpu.queue.submit([]);
    wait(&gpu.device, &gpu.errors)?;
    Ok(to.clone())
}

/// A buffer for the data, that can be checked too.
pub fn road_buffer(gpu: &Crossing, data: &[u8], usage: Usage) -> wgpu::Buffer {
    let label = if usage.contains(Usage::MAP_WRITE) { "mappable" } else { "plain" };
    buffer(&gpu.device, label, data.len().max(4) as u64, usage | Usage::COPY_SRC)
}

pub fn by_init(gpu: &Crossing, data: &[u8]) -> Road {
    let usage = Usage::STORAGE | Usage::COPY_SRC;
    let (label, contents) = (Some("plain"), if data.is_empty() { &[0; 4] } else { data });
    let full = wgpu::util::BufferInitDescriptor { label, contents, usage };
    arrive(gpu, &gpu.device.create_buffer_init(&full))
}

pub fn by_write_buffer(gpu: &Crossing, to: &wgpu::Buffer, data: &[u8]) -> Road {
    gpu.queue.write_buffer(to, 0, data);
    arrive(gpu, to)
}

/// Through wgpu's own ring. It has no depth: where no chunk is free, it makes one more.
pub fn by_belt(gpu: &Crossing, belt: &mut StagingBelt, to: &wgpu::Buffer, data: &[u8]) -> Road {
    for (at, part) in (0..).step_by(CHUNK as usize).zip(data.chunks(CHUNK as usize)) {
        let mut encoder = chunk_encoder(gpu);
        let size = wgpu::BufferSize::new(part.len() as u64).ok_or("an empty chunk")?;
        belt.write_buffer(&mut encoder, to, at, size).copy_from_slice(part);
        belt.finish_and_recall_on_submit(&encoder);
        gpu.queue.submit([encoder.finish()]);
    }
    arrive(gpu, to)
}

/// From buffer to buffer, and the host does nothing.
fn by_copy(gpu: &Crossing, from: &wgpu::Buffer, to: &wgpu::Buffer) -> Road {
    let mut encoder = chunk_encoder(gpu);
    encoder.copy_buffer_to_buffer(from, 0, to, 0, to.size());
    gpu.queue.submit([encoder.finish()]);
    arrive(gpu, to)
}

/// GB/s at which `add` reads a buffer where it lies, as far as one binding reaches.
fn reading_pace(gpu: &Crossing, buffer: &wgpu::Buffer) -> Result<f64> {
    let Crossing { device, queue, errors, bind_group_layout, add, .. } = gpu;
    let bytes = buffer.size().min(device.limits().max_storage_buffer_binding_size);
    // As many as keep a large card's memory busy, and nobody reads their totals.
    let groups = 2112;
    let totals = self::buffer(device, "totals", u64::from(groups * WIDTH) * 8, RESULT);
    let bound = [(buffer, bytes), (&totals, totals.size())];
    let bind_group = bind(device, bind_group_layout, &bound);
    let [us] = repeat(|| {
        let start = Instant::now();
        let mut encoder = chunk_encoder(gpu);
        let pass = wgpu::ComputePassDescriptor { label: Some("add"), timestamp_writes: None };
        let mut pass = encoder.begin_compute_pass(&pass);
        pass.set_pipeline(add);
        pass.set_bind_group(0, &bind_group, &[]);
        pass.dispatch_workgroups(groups, 1, 1);
        drop(pass);
        queue.submit([encoder.finish()]);
        wait(device, errors)?;
        Ok([micros(start)])
    })?;
    Ok(bytes as f64 / us / 1e3)
}

fn say_paces(gpu: &Crossing, mappable: &wgpu::Buffer, plain: &wgpu::Buffer) -> Result<()> {
    let [mappable, plain] = [reading_pace(gpu, mappable)?, reading_pace(gpu, plain)?];
    say(format_args!("\nKernels read it at {mappable:.2} GB/s, a plain buffer at {plain:.2}."));
    Ok(())
}

/// A source with no data in memory: it makes the words where they are to go.
pub fn made(at: u64, part: WriteOnly<[u8]>) -> Verdict {
    let words = at / 4..(at + part.len() as u64) / 4;
    part.into_chunks().0.write_iter(words.map(|i| word(i).to_le_bytes()));
    Ok(())
}

/// The data; numbers of threads, 1 and all; and how often a slow consumer reads a chunk, to be slow.
fn suited_words(gpu: &Crossing, n: Option<u64>) -> Result<(Vec<u32>, Vec<usize>, usize)> {
    let probe = buffer(&gpu.device, "probe", CHUNK, Usage::COPY_SRC);
    words_checksum(gpu, &probe, CHUNK)?;
    let start = Instant::now();
    words_checksum(gpu, &probe, CHUNK)?;
    let probe = micros(start);
    let n = n.unwrap_or(if probe > 2e3 { 1 << 23 } else { 1 << 26 });
    let most = gpu.device.limits().max_buffer_size;
    if n * 4 > most {
        return Err(format!("one buffer has {most} bytes at most: give a smaller size").into());
    }
    // The data and a copy, two buffers on the device, and up to four in which it may wait.
    memory(8 * 4 * n + 8 * CHUNK)?;
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let mut threads = vec![1, cores.min(MOST_THREADS)];
    threads.dedup();
    say(format_args!("runs    n = {n}; medians of 15, or of 3 and more in half a second"));
    Ok(((0..n).map(word).collect(), threads, (5e4 / probe).clamp(3.0, 500.0) as usize))
}

/// How one road does, in a row that is not printed before the data has arrived. Returns GB/s.
fn road_row(
    gpu: &Crossing,
    words: &[u32],
    road: &str,
    threads: usize,
    chunk: u64,
    call: &mut dyn FnMut() -> Road,
) -> Result<f64> {
    let (bytes, mut held) = (4 * words.len() as u64, None);
    let [us] = repeat(|| {
        let start = Instant::now();
        held = Some(call()?);
        Ok([micros(start)])
    })?;
    if let Some(held) = held {
        exactly_words(words_checksum(gpu, &held, bytes)?, words.len() as u64)?;
    }
    say_road(road, threads, chunk, us, bytes)
}

/// The same of a memcpy that stays on the host.
fn heap_row(data: &[u8], threads: usize) -> Result<()> {
    let (mut copy, size) = (vec![0; data.len()], data.len().div_ceil(threads).max(1));
    let [us] = repeat(|| {
        let start = Instant::now();
        std::thread::scope(|scope| {
            for (to, part) in copy.chunks_mut(size).zip(data.chunks(size)) {
                scope.spawn(|| std::hint::black_box(to).copy_from_slice(part));
            }
        });
        Ok([micros(start)])
    })?;
    say_road("memcpy", threads, 0, us, data.len() as u64).map(drop)
}

fn say_road(road: &str, threads: usize, chunk: u64, us: f64, bytes: u64) -> Result<f64> {
    let number = |n: u64| if n == 0 { String::new() } else { n.to_string() };
    let (threads, chunk, rate) =
        (number(threads as u64), number(chunk >> 10), bytes as f64 / us / 1e3);
    let row = format!("| {road:<21} | {threads:>7} | {chunk:>11}");
    say(format_args!("{row} | {:>8.2} | {rate:>7.2} |", us / 1e3));
    Ok(rate)
}
