//! 02 fixed tax: what one call costs before it has done any work, and where that stops mattering.
//!
//! In:    random f32 on the host, 2^14 to 2^24 of them; the argument is the last exponent.
//! Out:   µs: calls that do nothing; then a row a size, the call in parts beside the CPU's time.
//! Run:   cargo run --example 02_fixed_tax 24
//! Read:  guide/02_fixed_tax.md
//!
//! Rungs: 2, 5, 7, 8 and 9 its own: the foot has what 01 spelt out; 3 and 10 its own: they carry
//! timestamps; 11 and 12 its own: the map is asked for before the one wait.

use std::hint::black_box;
use std::time::Instant;
use wgpu::util::DeviceExt;

const HEAD: &str = include_str!("02_fixed_tax.rs");
const FIRST: u64 = 14;
const LAST: u64 = 24;

pub fn main() {
    env_logger::init();
    let last = argument(HEAD, FIRST..=25).unwrap_or(LAST);
    if let Err(error) = lesson(last) {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

/// What is made once per process; `compile` is the µs that rung 7 took.
pub struct Gpu {
    adapter: wgpu::Adapter,
    flags: wgpu::InstanceFlags,
    device: wgpu::Device,
    queue: wgpu::Queue,
    errors: flume::Receiver<wgpu::Error>,
    bind_group_layout: wgpu::BindGroupLayout,
    pipeline: wgpu::ComputePipeline,
    /// The GPU's own clock: a set of two stamps, the buffer they resolve into, one the host can map.
    stamps: Option<(wgpu::QuerySet, wgpu::Buffer, wgpu::Buffer)>,
    compile: f64,
}

pub fn setup() -> Result<Gpu> {
    // Rung 1, instance.
    let descriptor = wgpu::InstanceDescriptor::new_without_display_handle_from_env();
    let flags = descriptor.flags;
    let instance = wgpu::Instance::new(descriptor);

    // Rung 2, adapter.
    let adapter = adapter(&instance)?;

    // Rung 3, device and queue: timestamps are optional, so they are asked for only where offered.
    let (device, queue) = pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor {
        label: Some("device"),
        required_features: adapter.features() & wgpu::Features::TIMESTAMP_QUERY,
        required_limits: wgpu::Limits::downlevel_defaults(),
        ..Default::default()
    }))?;
    let errors = errors(&device);

    // Rung 4, shader module.
    let shader = device.create_shader_module(wgpu::include_wgsl!("../shaders/02_fixed_tax.wgsl"));

    // Rung 5, bind group layout.
    let bind_group_layout = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
        label: Some("input and partials"),
        entries: &[storage(0, true), storage(1, false)],
    });

    // Rung 6, pipeline layout.
    let pipeline_layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
        label: Some("input and partials"),
        bind_group_layouts: &[Some(&bind_group_layout)],
        immediate_size: 0,
    });

    let start = Instant::now();
    // Rung 7, pipeline.
    let pipeline = pipeline(&device, &pipeline_layout, &shader, "fold");

    let compile = micros(start);
    let stamps = device.features().contains(wgpu::Features::TIMESTAMP_QUERY).then(|| {
        let (label, ty) = (Some("stamps"), wgpu::QueryType::Timestamp);
        let set = device.create_query_set(&wgpu::QuerySetDescriptor { label, ty, count: 2 });
        let resolve = wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC;
        (set, buffer(&device, "stamps", 16, resolve), buffer(&device, "ticks", 16, READBACK))
    });
    Ok(Gpu { adapter, flags, device, queue, errors, bind_group_layout, pipeline, stamps, compile })
}

/// The sum, and µs: upload, encode, GPU, beyond the GPU, map; these mean something where the call is
/// taken `apart` by stamps and a wait, with the upload flushed before or not.
pub fn call(gpu: &Gpu, data: &[f32], apart: Option<bool>) -> Result<(f64, [f64; 5])> {
    let Gpu { device, queue, errors, bind_group_layout, pipeline, .. } = gpu;
    let stamps = gpu.stamps.as_ref().filter(|_| apart.is_some());
    let start = Instant::now();
    // Rung 8, buffers.
    let groups = groups(data.len());
    let partials_bytes = u64::from(groups * WIDTH) * 4;
    let input = device.create_buffer_init(&wgpu::util::BufferInitDescriptor {
        label: Some("input"),
        contents: if data.is_empty() { &[0; 4] } else { bytemuck::cast_slice(data) },
        usage: wgpu::BufferUsages::STORAGE,
    });
    let partials = buffer(device, "partials", partials_bytes, RESULT);
    let readback = buffer(device, "readback", partials_bytes, READBACK);

    // Rung 9, bind group.
    let operands = [(&input, input.size()), (&partials, partials_bytes)];
    let bind_group = bind(device, bind_group_layout, &operands);

    // The flush: an empty submit makes the copy that rung 8 only queued.
    if apart == Some(true) {
        queue.submit([]);
        wait(device, errors)?;
    }
    let (upload, start) = (micros(start), Instant::now());
    // Rung 10, commands: the pass writes the first stamp as it begins, the second as it ends.
    let label = Some("fold");
    let timestamp_writes = stamps.map(|(query_set, ..)| wgpu::ComputePassTimestampWrites {
        query_set,
        beginning_of_pass_write_index: Some(0),
        end_of_pass_write_index: Some(1),
    });
    let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label });
    let pass = wgpu::ComputePassDescriptor { label, timestamp_writes };
    let mut pass = encoder.begin_compute_pass(&pass);
    pass.set_pipeline(pipeline);
    pass.set_bind_group(0, &bind_group, &[]);
    pass.dispatch_workgroups(groups, 1, 1);
    drop(pass);
    encoder.copy_buffer_to_buffer(&partials, 0, &readback, 0, readback.size());
    if let Some((set, stamps, ticks)) = stamps {
        encoder.resolve_query_set(set, 0..2, stamps, 0);
        encoder.copy_buffer_to_buffer(stamps, 0, ticks, 0, 16);
    }
    let commands = encoder.finish();

    let (encode, start) = (micros(start), Instant::now());
    // Rung 11, submit and wait: a call that is not taken apart leaves the wait to the map.
    queue.submit([commands]);

    if apart.is_some() {
        wait(device, errors)?;
    }
    let (wall, start) = (micros(start), Instant::now());
    // Rung 12, map and read.
    let sum = read::<f32>(device, errors, &readback)?.into_iter().map(f64::from).sum();

    let map = micros(start);
    // Stamps count ticks. Zeros, or more than the wall's time, are not believed: the wall's stands.
    let mut on_gpu = wall;
    if let Some((.., ticks)) = stamps {
        let ticks: Vec<u64> = read(device, errors, ticks)?;
        let ns = ticks[1].saturating_sub(ticks[0]) as f64 * f64::from(queue.get_timestamp_period());
        on_gpu = Some(ns / 1e3).filter(|&us| us > 0.0 && us <= wall).unwrap_or(wall);
    }
    Ok((sum, [upload, encode, on_gpu, wall - on_gpu, map]))
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

fn lesson(last: u64) -> Result<()> {
    memory((3 * 4) << last)?;
    let gpu = setup()?;
    let Gpu { device, queue, errors, .. } = &gpu;
    let data = fits(device, 4 << last).map(|()| random(1 << last))?;
    let first = timed(|| call(&gpu, &data[..1], None))()?[0] + gpu.compile;
    let stamped = call(&gpu, &data[..1], Some(true))?.1[3] > 0.0;
    header(&gpu.adapter, gpu.flags);
    let clock = if stamped { "timestamps" } else { "the wall's clock" };
    say(format_args!("runs    medians of 15, or of 3 and more in half a second; GPU by {clock}"));

    // Stage 1: calls that carry nothing, each with more in it than the one before.
    let [asleep] = repeat(timed(|| {
        queue.submit([]);
        wait(device, errors)
    }))?;
    let [spinning] = repeat(timed(|| {
        queue.submit([]);
        while !device.poll(wgpu::PollType::Poll)?.is_queue_empty() {}
        Ok(())
    }))?;
    let [floor] = repeat(timed(|| call(&gpu, &data[..1], None)))?;
    say("\n| a call that carries nothing                      |       µs |");
    say("|--------------------------------------------------|---------:|");
    say(format_args!("| empty submit, waited for asleep                  | {asleep:>8.1} |"));
    say(format_args!("| empty submit, waited for spinning                | {spinning:>8.1} |"));
    say(format_args!("| one element, one workgroup, read back: the floor | {floor:>8.1} |"));
    say(format_args!("| the same, the first time, with its pipeline      | {first:>8.1} |"));

    // Stage 2: the parts are those of flushed and stamped calls; `call` is one that is neither.
    say("\n| n    | CPU 1 | CPU all | upload | encode |    GPU | beyond |    map |   call |");
    say("|------|------:|--------:|-------:|-------:|-------:|-------:|-------:|-------:|");
    let (mut rows, mut flushed) = (Vec::new(), [0.0; 5]);
    for exponent in FIRST..=last {
        let data = &data[..1 << exponent];
        agree(call(&gpu, data, None)?.0, data)?;
        let [one] = repeat(timed(|| Ok(cpu_one(black_box(data)))))?;
        let [all] = repeat(timed(|| Ok(cpu_all(black_box(data)))))?;
        let [whole] = repeat(timed(|| call(&gpu, data, None)))?;
        flushed = repeat(|| Ok(call(&gpu, data, Some(true))?.1))?;
        let [upload, encode, on_gpu, beyond, map] = flushed;
        let cpu =
            format!("| 2^{exponent} | {one:>5.0} | {all:>7.0} | {upload:>6.0} | {encode:>6.1}");
        say(format_args!("{cpu} | {on_gpu:>6.1} | {beyond:>6.1} | {map:>6.1} | {whole:>6.0} |"));
        rows.push([one.min(all), whole, encode + on_gpu + beyond + map, encode + beyond + map]);
    }

    // Stage 3, words: all of them read off the rows.
    let unflushed = repeat(|| Ok(call(&gpu, &data, Some(false))?.1))?;
    let misbooked = unflushed[2] + unflushed[3] - flushed[2] - flushed[3];
    let pays = |column: usize| {
        let loses = |row: &[f64; 4]| row[column] >= row[0];
        match FIRST + rows.iter().rposition(loses).map_or(0, |row| row as u64 + 1) {
            from if from <= last => format!("the GPU wins from 2^{from} on"),
            _ if rows.iter().all(loses) => format!("the CPU wins at every size up to 2^{last}"),
            _ => format!("the CPU wins at 2^{last}, the GPU at some sizes below"),
        }
    };
    let (low, high, grown) = (rows[0][3], rows[rows.len() - 1][3], 1 << (last - FIRST));
    say(format_args!(
        "\nThe tax: {floor:.0} µs buy the sum of one element. Encode, beyond and map"
    ));
    say(format_args!(
        "together go from {low:.0} to {high:.0} µs in the table, while n grows {grown}-fold."
    ));
    say(format_args!(
        "Unflushed, {misbooked:.0} µs of the upload of 2^{last} pass for the kernel's."
    ));
    say(format_args!("Streamed, every call with its upload: {}.", pays(1)));
    say(format_args!("Resident, the data there already: {}.", pays(2)));
    say(format_args!("For notes.md:  02.1 measured {asleep:.1} µs   02.2 measured {floor:.1} µs"));
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

/// n values in (0, 1], none of them zero, the same in every run.
fn random(n: usize) -> Vec<f32> {
    let mut state = 1u64;
    let next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((state >> 40) + 1) as f32 / (1 << 24) as f32
    };
    std::iter::repeat_with(next).take(n).collect()
}

/// The definition of correct.
fn exact_sum(data: &[f32]) -> f64 {
    data.iter().fold(0.0, |sum, &x| sum + f64::from(x))
}

const WIDTH: u32 = 256;

/// Workgroups for n elements: 16 or more for each invocation, up to 256 workgroups.
fn groups(n: usize) -> u32 {
    (n.div_ceil(16 * WIDTH as usize) as u32).clamp(1, 256)
}

/// Compares with the CPU. An invocation adds in a chain, and each f32 addition in it is off by up to
/// 2^-24 of the total; the host's f64 additions add nothing that shows. The CPU's sum, and the bound.
pub fn agree(sum: f64, data: &[f32]) -> Result<[f64; 2]> {
    let chain = data.len().div_ceil((groups(data.len()) * WIDTH) as usize);
    let absolute: f64 = data.iter().map(|x| f64::from(x.abs())).sum();
    let bound = chain as f64 * f64::from(f32::EPSILON) / 2.0 * absolute;
    let exact = exact_sum(data);
    if (sum - exact).abs() <= bound {
        return Ok([exact, bound]);
    }
    Err(format!("GPU {sum}, CPU {exact}: rounding explains {bound} at most").into())
}

/// The sum as one would write it: eight accumulators, so that no addition waits for the last one.
fn cpu_one(data: &[f32]) -> f32 {
    let chunks = data.chunks_exact(8);
    let rest: f32 = chunks.remainder().iter().sum();
    let add = |sums: [f32; 8], chunk: &[f32]| std::array::from_fn(|lane| sums[lane] + chunk[lane]);
    chunks.fold([0.0; 8], add).iter().sum::<f32>() + rest
}

/// The same on every core. Starting the threads is a tax too, and part of the time.
fn cpu_all(data: &[f32]) -> f32 {
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get());
    let share = data.len().div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        let start = |share| scope.spawn(move || cpu_one(share));
        let threads: Vec<_> = data.chunks(share).map(start).collect();
        threads.into_iter().map(|thread| thread.join().expect("a sum does not panic")).sum()
    })
}
