//! 01 object ladder: every object that one dispatch needs, in the order in which they must be made.
//!
//! In:    n random f32 on the host; the argument is n, 2^20 if none is given.
//! Out:   their sum, and the µs of each rung, beside how often a program pays for it.
//! Run:   cargo run --example 01_object_ladder 2^20
//! Read:  guide/01_object_ladder.md

use std::hint::black_box;
use std::time::{Duration, Instant};
use wgpu::util::DeviceExt;

const HEAD: &str = include_str!("01_object_ladder.rs");
const N: u64 = 1 << 20;

pub fn main() {
    env_logger::init();
    let n = argument(HEAD, 0..=1 << 25).unwrap_or(N);
    if let Err(error) = lesson(n) {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

/// The sum on the CPU: the definition of correct. In f64: an f32 total of ones sticks at 2^24.
pub fn exact_sum(data: &[f32]) -> f64 {
    data.iter().fold(0.0, |sum, &x| sum + f64::from(x))
}

/// The sum as one would write it: eight accumulators, so that no addition waits for the last one.
pub fn cpu_one(data: &[f32]) -> f32 {
    let chunks = data.chunks_exact(8);
    let rest: f32 = chunks.remainder().iter().sum();
    let add = |sums: [f32; 8], chunk: &[f32]| std::array::from_fn(|lane| sums[lane] + chunk[lane]);
    chunks.fold([0.0; 8], add).iter().sum::<f32>() + rest
}

/// The same on every core. Starting the threads is a tax too, and part of the time.
pub fn cpu_all(data: &[f32]) -> f32 {
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get());
    let share = data.len().div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        let start = |share| scope.spawn(move || cpu_one(share));
        let threads: Vec<_> = data.chunks(share).map(start).collect();
        threads.into_iter().map(|thread| thread.join().expect("a sum does not panic")).sum()
    })
}

/// What one climb brings back.
pub struct Climb {
    pub sum: f64,
    pub adapter: wgpu::Adapter,
    pub flags: wgpu::InstanceFlags,
    /// Each rung's name and µs.
    pub rungs: Vec<(&'static str, f64)>,
}

/// The sum on the GPU: twelve rungs, every object made once and used once.
pub fn climb(data: &[f32]) -> Result<Climb> {
    let (mut rungs, mut start) = (Vec::new(), Instant::now());
    let mut climbed = |name| {
        rungs.push((name, micros(start)));
        start = Instant::now();
    };

    // Rung 1, instance: loads the drivers' libraries; all else hangs from it. Its flags say whether
    // validation watches every call, which makes each one dearer.
    let descriptor = wgpu::InstanceDescriptor::new_without_display_handle_from_env();
    let flags = descriptor.flags;
    let instance = wgpu::Instance::new(descriptor);

    climbed("instance");
    // Rung 2, adapter: one GPU as one driver shows it, with features and limits to be read. The
    // first of the list will not do: on many a machine that is a CPU playing a GPU.
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

    climbed("adapter");
    // Rung 3, device and queue: a session on the adapter, with just the features and limits that
    // were asked for, whatever the hardware could do. Errors that no call returns go to a channel;
    // left alone, wgpu would panic.
    let (device, queue) = pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor {
        label: Some("device"),
        required_limits: wgpu::Limits::downlevel_defaults(),
        ..Default::default()
    }))?;
    let errors = errors(&device);

    climbed("device and queue");
    // Rung 4, shader module: the WGSL, parsed and validated by naga; no driver has seen it yet.
    let shader =
        device.create_shader_module(wgpu::include_wgsl!("../shaders/01_object_ladder.wgsl"));

    climbed("shader module");
    // Rung 5, bind group layout: what @group(0) holds, before any buffer exists. A pipeline can
    // derive one from its shader, but nothing else may then use it.
    let storage = |binding, read_only| wgpu::BindGroupLayoutEntry {
        binding,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer {
            ty: wgpu::BufferBindingType::Storage { read_only },
            has_dynamic_offset: false,
            min_binding_size: None,
        },
        count: None,
    };
    let bind_group_layout = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
        label: Some("input and partials"),
        entries: &[storage(0, true), storage(1, false)],
    });

    climbed("bind group layout");
    // Rung 6, pipeline layout: all the groups of a pipeline. Pipelines with one layout can share
    // their bind groups.
    let pipeline_layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
        label: Some("input and partials"),
        bind_group_layouts: &[Some(&bind_group_layout)],
        immediate_size: 0,
    });

    climbed("pipeline layout");
    // Rung 7, pipeline: one entry point, compiled by the driver for that layout. Some drivers put
    // the work off until the first dispatch, so a first call is this rung and that dispatch.
    let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: Some("fold"),
        layout: Some(&pipeline_layout),
        module: &shader,
        entry_point: Some("fold"),
        compilation_options: Default::default(),
        cache: None,
    });

    climbed("pipeline");
    // Rung 8, buffers: memory that the GPU reaches, with all the uses it will have. The third is
    // there because MAP_READ pairs with COPY_DST alone: no kernel writes where the host reads. An
    // empty binding is illegal, so no elements become one zero. The input's bytes are only queued
    // by this call; the next submit copies them.
    fits(&device, size_of_val(data) as u64)?;
    let groups = groups(data.len());
    let partials_bytes = u64::from(groups * WIDTH) * 4;
    let input = device.create_buffer_init(&wgpu::util::BufferInitDescriptor {
        label: Some("input"),
        contents: if data.is_empty() { &[0; 4] } else { bytemuck::cast_slice(data) },
        usage: wgpu::BufferUsages::STORAGE,
    });
    let partials = device.create_buffer(&wgpu::BufferDescriptor {
        label: Some("partials"),
        size: partials_bytes,
        usage: wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC,
        mapped_at_creation: false,
    });
    let readback = device.create_buffer(&wgpu::BufferDescriptor {
        label: Some("readback"),
        size: partials_bytes,
        usage: wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::MAP_READ,
        mapped_at_creation: false,
    });

    climbed("buffers");
    // Rung 9, bind group: these buffers in the layout's places; another buffer, another bind group.
    let entry = |binding, resource| wgpu::BindGroupEntry { binding, resource };
    let bind_group = device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: Some("input and partials"),
        layout: &bind_group_layout,
        entries: &[entry(0, input.as_entire_binding()), entry(1, partials.as_entire_binding())],
    });

    climbed("bind group");
    // Rung 10, commands: recorded here, run by nobody yet. A dispatch counts workgroups, not
    // invocations. The copy sees what the pass wrote: wgpu puts the barrier between them.
    let label = Some("fold");
    let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label });
    let pass = wgpu::ComputePassDescriptor { label, timestamp_writes: None };
    let mut pass = encoder.begin_compute_pass(&pass);
    pass.set_pipeline(&pipeline);
    pass.set_bind_group(0, &bind_group, &[]);
    pass.dispatch_workgroups(groups, 1, 1);
    drop(pass);
    encoder.copy_buffer_to_buffer(&partials, 0, &readback, 0, readback.size());
    let commands = encoder.finish();

    climbed("commands");
    // Rung 11, submit and wait: the crossing. `submit` hands over and returns; the poll sleeps until
    // the GPU is done, with a limit. Past it there is only the exit: dropping the queue waits too.
    queue.submit([commands]);
    let timeout = Some(Duration::from_secs(120));
    let polled = device.poll(wgpu::PollType::Wait { submission_index: None, timeout });
    if let Err(wgpu::PollError::Timeout) = polled {
        eprintln!("the GPU was not done within two minutes: give a smaller size");
        std::process::exit(1);
    }
    if let Ok(error) = errors.try_recv() {
        return Err(error.to_string().replace('\n', " ").into());
    }

    climbed("submit and wait");
    // Rung 12, map and read: the callback runs inside a later poll, or never if nobody polls.
    let (sender, receiver) = flume::bounded(1);
    readback.map_async(wgpu::MapMode::Read, .., move |verdict| _ = sender.send(verdict));
    device.poll(wgpu::PollType::Poll)?;
    receiver.try_recv()??;
    let mapped = readback.get_mapped_range(..)?;
    let partials: &[f32] = bytemuck::cast_slice(&mapped);
    let sum = partials.iter().map(|&partial| f64::from(partial)).sum();

    climbed("map and read");
    Ok(Climb { sum, adapter, flags, rungs })
}

fn lesson(n: u64) -> Result<()> {
    // Three copies: the data, what wgpu stages of it, the buffer. A software adapter's are all here.
    memory(3 * 4 * n)?;
    let data = random(n as usize);
    let Climb { sum, adapter, flags, rungs } = climb(&data)?;
    header(&adapter, flags);
    say(format_args!("runs    one climb with n = {n}, each rung timed once\n"));
    say("| rung | makes             |       µs | paid once per |");
    say("|-----:|-------------------|---------:|---------------|");
    let (mut process, mut call) = (0.0, 0.0);
    for (rung, (name, micros)) in (1..).zip(rungs) {
        let (per, total) = if rung <= 7 { ("process", &mut process) } else { ("call", &mut call) };
        *total += micros;
        say(format_args!("| {rung:>4} | {name:<17} | {micros:>8.1} | {per:<13} |"));
    }
    let [exact, bound] = agree(sum, &data)?;
    let time = |sum: fn(&[f32]) -> f32| {
        let start = Instant::now();
        black_box(sum(black_box(&data)));
        micros(start)
    };
    let (one, all, process) = (time(cpu_one), time(cpu_all), process / 1e3);
    say(format_args!("\nThe sum is {sum:.3}, the CPU's {exact:.3}: apart by {bound:.3} at most."));
    say(format_args!(
        "Rungs 1 to 7 took {process:.1} ms and need not be climbed again; rungs 8 to 12"
    ));
    say(format_args!(
        "took {call:.0} µs, each call anew. The CPU: {one:.0} µs, on all cores {all:.0}."
    ));
    say(format_args!("For notes.md:  01.1 measured {process:.1} ms   01.2 measured {call:.0} µs"));
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

/// Refuses what this machine cannot hold before anything is allocated: a software adapter would
/// overcommit, and be killed.
pub fn memory(bytes: u64) -> Result<()> {
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

const WIDTH: u32 = 256;

/// Workgroups for n elements: 16 or more for each invocation, up to 256 workgroups.
fn groups(n: usize) -> u32 {
    (n.div_ceil(16 * WIDTH as usize) as u32).clamp(1, 256)
}
