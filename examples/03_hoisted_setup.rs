//! 03 hoisted setup: what is saved by climbing some rungs once, by leaving data there, by batching.
//!
//! In:    n random f32 on the host; the argument is n, 2^24 if none is given, 2^20 on a slow adapter.
//! Out:   µs of one sum, with ever more hoisted out of it; µs of a dispatch, in ever larger batches.
//! Run:   cargo run --example 03_hoisted_setup 2^24
//! Read:  guide/03_hoisted_setup.md
//!
//! Rungs: 2, 5, 9, 11 and 12 as 02; 7 its own: two entry points share the layout; 8 its own: the
//! input can be filled again.

use std::cell::Cell;
use std::hint::black_box;
use std::time::Instant;
use wgpu::util::DeviceExt;

const HEAD: &str = include_str!("03_hoisted_setup.rs");
const N: u64 = 1 << 24;
const N_SLOW: u64 = 1 << 20;
/// A sum of 2^16 that takes this many µs comes from a slow adapter.
const SLOW: f64 = 1e3;
/// Dispatches, each of which needs what the one before it wrote.
const STEPS: usize = 1000;

pub fn main() {
    env_logger::init();
    let n = argument(HEAD, 0..=1 << 25);
    if let Err(error) = lesson(n) {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

/// The rungs of a process, climbed once.
pub struct Reducer {
    adapter: wgpu::Adapter,
    flags: wgpu::InstanceFlags,
    device: wgpu::Device,
    pub queue: wgpu::Queue,
    errors: flume::Receiver<wgpu::Error>,
    bind_group_layout: wgpu::BindGroupLayout,
    fold: wgpu::ComputePipeline,
    step: wgpu::ComputePipeline,
}

/// Data that stays on the device, with all that a sum of it needs.
pub struct Resident {
    groups: u32,
    input: wgpu::Buffer,
    partials: wgpu::Buffer,
    readback: wgpu::Buffer,
    bind_group: wgpu::BindGroup,
}

impl Reducer {
    pub fn new() -> Result<Self> {
        // Rung 1, instance.
        let descriptor = wgpu::InstanceDescriptor::new_without_display_handle_from_env();
        let flags = descriptor.flags;
        let instance = wgpu::Instance::new(descriptor);

        // Rung 2, adapter.
        let adapter = adapter(&instance)?;

        // Rung 3, device and queue.
        let (device, queue) =
            pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor {
                label: Some("device"),
                required_limits: wgpu::Limits::downlevel_defaults(),
                ..Default::default()
            }))?;
        let errors = errors(&device);

        // Rung 4, shader module.
        let shader =
            device.create_shader_module(wgpu::include_wgsl!("../shaders/03_hoisted_setup.wgsl"));

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

        // Rung 7, pipeline: one for each entry point.
        let fold = pipeline(&device, &pipeline_layout, &shader, "fold");
        let step = pipeline(&device, &pipeline_layout, &shader, "step");

        Ok(Self { adapter, flags, device, queue, errors, bind_group_layout, fold, step })
    }

    /// Regime B, first half: the data crosses once, …
    pub fn upload(&self, data: &[f32]) -> Result<Resident> {
        let Self { device, bind_group_layout, .. } = self;
        fits(device, size_of_val(data) as u64)?;
        // Rung 8, buffers.
        let groups = groups(data.len());
        let partials_bytes = u64::from(groups * WIDTH) * 4;
        let input = device.create_buffer_init(&wgpu::util::BufferInitDescriptor {
            label: Some("input"),
            contents: if data.is_empty() { &[0; 4] } else { bytemuck::cast_slice(data) },
            usage: wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST,
        });
        let partials = buffer(device, "partials", partials_bytes, RESULT);
        let readback = buffer(device, "readback", partials_bytes, READBACK);

        // Rung 9, bind group.
        let operands = [(&input, input.size()), (&partials, partials_bytes)];
        let bind_group = bind(device, bind_group_layout, &operands);

        Ok(Resident { groups, input, partials, readback, bind_group })
    }

    /// … second half: and each sum of it pays rungs 10 to 12 alone.
    pub fn sum(&self, resident: &Resident) -> Result<f64> {
        let Self { device, queue, errors, fold: pipeline, .. } = self;
        let Resident { partials, readback, bind_group, .. } = resident;
        let groups = resident.groups;
        // Rung 10, commands.
        let label = Some("fold");
        let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label });
        let pass = wgpu::ComputePassDescriptor { label, timestamp_writes: None };
        let mut pass = encoder.begin_compute_pass(&pass);
        pass.set_pipeline(pipeline);
        pass.set_bind_group(0, bind_group, &[]);
        pass.dispatch_workgroups(groups, 1, 1);
        drop(pass);
        encoder.copy_buffer_to_buffer(partials, 0, readback, 0, readback.size());
        let commands = encoder.finish();

        // Rung 11, submit and wait.
        queue.submit([commands]);

        // Rung 12, map and read.
        let sum = read::<f32>(device, errors, readback)?.into_iter().map(f64::from).sum();

        Ok(sum)
    }

    /// Regime A: the data crosses in every call.
    pub fn sum_streamed(&self, data: &[f32]) -> Result<f64> {
        self.sum(&self.upload(data)?)
    }

    /// Between the two: the data crosses, into buffers that are there already.
    pub fn refill(&self, resident: &Resident, data: &[f32]) {
        self.queue.write_buffer(&resident.input, 0, bytemuck::cast_slice(data));
    }

    /// Passes, with `each` dispatches of `step` in each, ready to submit.
    pub fn steps(&self, counter: &Resident, passes: usize, each: usize) -> wgpu::CommandBuffer {
        let label = Some("step");
        let mut encoder =
            self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label });
        for _ in 0..passes {
            let pass = wgpu::ComputePassDescriptor { label, timestamp_writes: None };
            let mut pass = encoder.begin_compute_pass(&pass);
            pass.set_pipeline(&self.step);
            pass.set_bind_group(0, &counter.bind_group, &[]);
            for _ in 0..each {
                pass.dispatch_workgroups(1, 1, 1);
            }
        }
        encoder.finish()
    }

    /// How many steps `counter` has been through.
    pub fn count(&self, counter: &Resident) -> Result<f32> {
        let Self { device, queue, errors, .. } = self;
        let Resident { partials, readback, .. } = counter;
        let label = Some("count");
        let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label });
        encoder.copy_buffer_to_buffer(partials, 0, readback, 0, readback.size());
        queue.submit([encoder.finish()]);
        Ok(read(device, errors, readback)?[0])
    }
}

fn lesson(n: Option<u64>) -> Result<()> {
    let reducer = Reducer::new()?;
    let Reducer { device, queue, errors, .. } = &reducer;
    header(&reducer.adapter, reducer.flags);
    let small = reducer.upload(&random(1 << 16))?;
    reducer.sum(&small)?;
    let [probe] = timed(|| reducer.sum(&small))()?;
    let n = n.unwrap_or(if probe > SLOW { N_SLOW } else { N });
    say(format_args!("runs    n = {n}; medians of 15, or of 3 and more in half a second"));
    // The data, and on a software adapter in the same memory: two buffers and what stages them.
    memory(5 * 4 * n)?;
    fits(device, 4 * n)?;
    let data = random(n as usize);
    let resident = reducer.upload(&data)?;

    say("\n| one sum                                             |       µs |");
    say("|-----------------------------------------------------|---------:|");
    let row = |what: &str, call: &dyn Fn() -> Result<f64>| -> Result<f64> {
        agree(call()?, &data)?;
        let [median] = repeat(timed(call))?;
        say(format_args!("| {what:<51} | {median:>8.0} |"));
        Ok(median)
    };
    row("nothing hoisted: all twelve rungs", &|| Reducer::new()?.sum_streamed(&data))?;
    let streamed = row("rungs 1 to 7 hoisted", &|| reducer.sum_streamed(&data))?;
    row("rungs 1 to 9 hoisted, the data still crosses", &|| {
        reducer.refill(&resident, &data);
        reducer.sum(&resident)
    })?;
    let at_home = row("rungs 1 to 9 hoisted, the data resident", &|| reducer.sum(&resident))?;
    let [one] = repeat(timed(|| Ok(cpu_one(black_box(&data)))))?;
    let [all] = repeat(timed(|| Ok(cpu_all(black_box(&data)))))?;
    let cpu = one.min(all);
    say(format_args!("| the CPU, on one thread or on all, as is faster      | {cpu:>8.0} |"));

    let counter = reducer.upload(&[])?;
    let steps = Cell::new(0);
    say(format_args!(
        "\n| {STEPS} dispatches, each needing the last | submits | waits | µs each |"
    ));
    say("|----------------------------------------|--------:|------:|--------:|");
    let row = |what: &str, submits: usize, waits: usize, passes, each| -> Result<f64> {
        let [median] = repeat(timed(|| {
            for submit in 1..=submits {
                queue.submit([reducer.steps(&counter, passes, each)]);
                if waits == submits || submit == submits {
                    wait(device, errors)?;
                }
            }
            steps.set(steps.get() + STEPS);
            Ok(())
        }))?;
        let micros = median / STEPS as f64;
        say(format_args!("| {what:<38} | {submits:>7} | {waits:>5} | {micros:>7.2} |"));
        Ok(micros)
    };
    let apart = row("a submit and a wait for each", STEPS, STEPS, 1, 1)?;
    row("a submit for each, one wait", STEPS, 1, 1, 1)?;
    row("a pass for each, one submit", 1, 1, STEPS, 1)?;
    let together = row("all in one pass", 1, 1, 1, STEPS)?;
    if reducer.count(&counter)? as usize != steps.get() {
        return Err("some dispatch ran before the one that it needs was done".into());
    }

    let ahead = |gpu: f64| match cpu / gpu {
        ratio if ratio > 1.0 => format!("the GPU is {ratio:.1}× ahead"),
        ratio => format!("the CPU is {:.1}× ahead", 1.0 / ratio),
    };
    say(format_args!("\nStreamed, {}; resident, {}.", ahead(streamed), ahead(at_home)));
    say(format_args!("A submit and a wait for each: {:.0}× one pass of all.", apart / together));
    let notes = format!("03.1 measured {streamed:.0} µs   03.2 measured {at_home:.0} µs");
    say(format_args!("For notes.md:  {notes}   03.3 measured {together:.2} µs"));
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
fn agree(sum: f64, data: &[f32]) -> Result<[f64; 2]> {
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
