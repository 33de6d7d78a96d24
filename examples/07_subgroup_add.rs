//! 07 subgroup add: what subgroups replace, what they ask of an adapter, and any size with one shader.
//!
//! In:    n random f32, resident; the argument is n; if none is given, sizes that suit the adapter.
//! Out:   per kernel, ending in 04's tree or in subgroups: barriers, µs on the GPU, GB/s, error.
//! Run:   cargo run --example 07_subgroup_add 2^22
//! Read:  guide/07_subgroup_add.md
//!
//! Rungs: 2 and 11 as 02; 5, 8 and 12 as 04; 3 its own: subgroups, where there are any; 4 and 7 its
//! own: two modules with the same kernels; 9 and 10 its own: some kernels leave no partials.

use std::collections::BTreeSet;
use std::time::Instant;
use wgpu::Features;

const HEAD: &str = include_str!("07_subgroup_add.rs");
const WIDTH: u32 = 256;
/// What one dispatch may have in one dimension, on every adapter.
const MOST_GROUPS: u64 = 65535;
/// Entry points; elements that one invocation takes, 0 for a share of all; barriers. Three are plain.
pub const KERNELS: [(&str, u64, u32); 7] = [
    ("copy", 0, 0),
    ("four_strided", 4, 9),
    ("many", 0, 9),
    ("four_strided", 4, 1),
    ("many", 0, 1),
    ("rank", 1, 1),
    ("census", 0, 0),
];
const SUMS: std::ops::Range<usize> = 1..5;
pub const RANK: usize = 5;
pub const CENSUS: usize = 6;
/// What the lesson asks for, of what there is.
pub const OPTIONAL: Features = Features::TIMESTAMP_QUERY.union(Features::SUBGROUP);
/// The shader with the line in front that WGSL demands, and naga 30 rejects.
pub const STANDARD: &str =
    concat!("enable subgroups;\n", include_str!("../shaders/07_subgroup_add_subgroup.wgsl"));

pub fn main() {
    env_logger::init();
    let n = argument(HEAD, 0..=1 << 32);
    if let Err(error) = lesson(n) {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

/// Workgroups for n elements; where they share, at most 16 for each of the 132 cores of a large card.
pub fn groups(each: u64, n: u64) -> u64 {
    let (each, most) = if each > 0 { (each, u64::MAX) } else { (16, 2112) };
    n.div_ceil(each * u64::from(WIDTH)).clamp(1, most)
}

/// 04's, but that a workgroup's chain over subgroups can have 255 additions, in the adapter's order.
pub fn bound(kernel: usize, n: u64, absolute: f64) -> f64 {
    let (groups, width) = (groups(KERNELS[kernel].1, n), u64::from(WIDTH));
    let workgroup = if KERNELS[kernel].2 == 1 { width - 1 } else { 8 };
    let chain = n / (groups * width) + 2 + groups / width + 2 * workgroup;
    chain as f64 * f64::from(f32::EPSILON) / 2.0 * absolute
}

/// What is made once per process.
pub struct Gpu {
    adapter: wgpu::Adapter,
    flags: wgpu::InstanceFlags,
    pub device: wgpu::Device,
    pub queue: wgpu::Queue,
    pub errors: flume::Receiver<wgpu::Error>,
    bind_group_layout: wgpu::BindGroupLayout,
    /// In the order of `KERNELS`, each with its `finish`; without subgroups, the first three.
    pub kernels: Vec<(wgpu::ComputePipeline, wgpu::ComputePipeline)>,
    stamps: Option<Stamps>,
}

pub fn setup(optional: wgpu::Features) -> Result<Gpu> {
    // Rung 1, instance.
    let descriptor = wgpu::InstanceDescriptor::new_without_display_handle_from_env();
    let flags = descriptor.flags;
    let instance = wgpu::Instance::new(descriptor);

    // Rung 2, adapter.
    let adapter = adapter(&instance)?;

    // Rung 3, device and queue: as large a binding as the adapter offers, for data past its caches.
    let offered = adapter.limits();
    let (device, queue) = pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor {
        label: Some("device"),
        required_features: adapter.features() & optional,
        required_limits: wgpu::Limits {
            max_storage_buffer_binding_size: offered.max_storage_buffer_binding_size,
            max_buffer_size: offered.max_buffer_size,
            ..wgpu::Limits::downlevel_defaults()
        },
        ..Default::default()
    }))?;
    let errors = errors(&device);

    // Rung 4, shader module: a second one, for a device that does not reject it whole.
    let shader =
        device.create_shader_module(wgpu::include_wgsl!("../shaders/07_subgroup_add.wgsl"));
    let source = wgpu::include_wgsl!("../shaders/07_subgroup_add_subgroup.wgsl");
    let here = device.features().contains(Features::SUBGROUP);
    let subgroups = here.then(|| device.create_shader_module(source));

    // Rung 5, bind group layout.
    let bind_group_layout = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
        label: Some("input and partials"),
        entries: &[storage(0, true), storage(1, true), storage(2, false), storage(3, false)],
    });

    // Rung 6, pipeline layout.
    let pipeline_layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
        label: Some("input and partials"),
        bind_group_layouts: &[Some(&bind_group_layout)],
        immediate_size: 0,
    });

    // Rung 7, pipeline: one for each kernel that this device can have, and one to finish with.
    let mut kernels = Vec::new();
    for (kernel, (name, ..)) in KERNELS.into_iter().enumerate() {
        let module = if kernel < 3 { Some(&shader) } else { subgroups.as_ref() };
        let compile = |name| Some(pipeline(&device, &pipeline_layout, module?, name));
        kernels.extend(compile(name).zip(compile("finish")));
    }

    let stamps = Stamps::new(&device, &queue);
    Ok(Gpu { adapter, flags, device, queue, errors, bind_group_layout, kernels, stamps })
}

pub struct Resident {
    n: u64,
    input: wgpu::Buffer,
    pub partials: wgpu::Buffer,
    total: wgpu::Buffer,
    readback: wgpu::Buffer,
}

pub fn upload(gpu: &Gpu, data: &[f32]) -> Result<Resident> {
    let Gpu { device, queue, .. } = gpu;
    let n = data.len() as u64;
    let size = (n * 4).next_multiple_of(16).max(16);
    fits(device, size)?;
    // Rung 8, buffers: the input ends with a whole vec4, so that it can be bound as such.
    let usage = RESULT | wgpu::BufferUsages::COPY_DST;
    let input = buffer(device, "input", size, usage);
    let partials = buffer(device, "partials or copy", size.max(4 * MOST_GROUPS), RESULT);
    let total = buffer(device, "total", 4, usage);
    let readback = buffer(device, "readback", 4, READBACK);
    queue.write_buffer(&input, 0, bytemuck::cast_slice(data));

    Ok(Resident { n, input, partials, total, readback })
}

/// The sum by one of the `KERNELS`, and the GPU's µs for it, or the wall's where there are no stamps.
pub fn sum(gpu: &Gpu, kernel: usize, resident: &Resident) -> Result<(f32, f64)> {
    let Gpu { device, queue, errors, bind_group_layout, kernels, stamps, .. } = gpu;
    let Resident { n, input, partials, total, readback } = resident;
    let (name, each, _) = KERNELS[kernel];
    let (pipeline, finish) = kernels.get(kernel).ok_or("this device has no subgroups")?;
    let groups = groups(each, *n);
    // Rung 9, bind group: as much of a buffer as has content, so that kernels know n; if none, zeros.
    let written = if SUMS.contains(&kernel) { groups * 4 } else { partials.size() };
    let operands = [(input, input.size()), (input, n * 4), (partials, written), (total, 4)];
    let bind_group = bind(device, bind_group_layout, &operands);

    // Rung 10, commands: `finish` sees all partials, since a dispatch begins when the last has ended.
    let label = Some(name);
    let timestamp_writes = stamps.as_ref().map(Stamps::writes);
    let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label });
    let pass = wgpu::ComputePassDescriptor { label, timestamp_writes };
    let mut pass = encoder.begin_compute_pass(&pass);
    pass.set_bind_group(0, &bind_group, &[]);
    pass.set_pipeline(pipeline);
    pass.dispatch_workgroups(groups as u32, 1, 1);
    if SUMS.contains(&kernel) {
        pass.set_pipeline(finish);
        pass.dispatch_workgroups(1, 1, 1);
    }
    drop(pass);
    encoder.copy_buffer_to_buffer(total, 0, readback, 0, 4);
    stamps.iter().for_each(|stamps| stamps.resolve(&mut encoder));
    let commands = encoder.finish();

    let start = Instant::now();
    // Rung 11, submit and wait.
    queue.submit([commands]);

    // Rung 12, map and read.
    let sum = read::<f32>(device, errors, readback)?[0];

    let wall = micros(start);
    let stamped = stamps.as_ref().map(|stamps| stamps.micros(device, errors)).transpose()?;
    Ok((sum, stamped.filter(|&us| us > 0.0 && us <= wall).unwrap_or(wall)))
}

fn lesson(n: Option<u64>) -> Result<()> {
    let gpu = setup(OPTIONAL)?;
    header(&gpu.adapter, gpu.flags);
    let (Gpu { device, queue, errors, kernels, stamps, .. }, info) = (&gpu, gpu.adapter.get_info());
    // A probe chooses the size: on a card, the last that four elements each can take.
    let few = random(1 << 18);
    let small = upload(&gpu, &few)?;
    sum(&gpu, 1, &small)?;
    let n = n.unwrap_or(match sum(&gpu, 1, &small)?.1 {
        ..1e3 => (device.limits().max_storage_buffer_binding_size / 4).min(MOST_GROUPS * 1024),
        ..1e4 => 1 << 22,
        _ => 1 << 18,
    });
    say(format_args!("runs    n = {n}; medians of 15, or of 3 and more in half a second"));
    if stamps.as_ref().map_or(Ok(0.0), |stamps| stamps.micros(device, errors))? == 0.0 {
        say("clock   the wall's, with the waits: there are no timestamps here");
    }
    fits(device, 4 * n).and_then(|()| memory(4 * 4 * n))?;
    let data = random(n as usize);
    let (resident, exact) = (upload(&gpu, &data)?, exact_sum(&data));
    say("\n| kernel       | barriers | groups |       µs |    GB/s |  error |");
    say("|--------------|---------:|-------:|---------:|--------:|-------:|");
    let mut took = [f64::NAN; KERNELS.len()];
    for kernel in [0, 1, 3, 2, 4] {
        let (name, each, barriers) = KERNELS[kernel];
        let (groups, mut sums) = (groups(each, n), BTreeSet::new());
        let row = format!("| {name:<12} | {barriers:>8} | {groups:>6} |");
        if kernel >= kernels.len() || groups > MOST_GROUPS {
            let need = if kernel < kernels.len() { "a smaller n" } else { "subgroups" };
            say(format_args!("{row} needs {need:<21} |"));
            continue;
        }
        [took[kernel]] = repeat(|| {
            let (sum, us) = sum(&gpu, kernel, &resident)?;
            sums.insert(sum.to_bits());
            Ok([us])
        })?;
        // A copy writes every byte too, and has no sum.
        let rate = n as f64 * if kernel == 0 { 8.0 } else { 4.0 } / took[kernel] / 1e3;
        let error = match kernel {
            0 => String::new(),
            _ => format!("{:.1e}", off_by(kernel, n, exact, &sums)?[0]),
        };
        say(format_args!("{row} {:>8.1} | {rate:>7.2} | {error:>6} |", took[kernel]));
    }
    let mut with = "none   07.3 measured none".into();
    if kernels.len() > CENSUS {
        sum(&gpu, CENSUS, &small)?;
        let lanes = words(device, queue, errors, &small.partials, 3)?[2];
        let (least, most) = (info.subgroup_min_size, info.subgroup_max_size);
        say(format_args!("\nA subgroup has {lanes} lanes; {least} to {most} were promised."));
        say(format_args!("`many` with them takes {:.2} of the tree's time.", took[4] / took[2]));
        sum(&gpu, RANK, &small)?;
        let ranks = words(device, queue, errors, &small.partials, few.len() as u64)?;
        let above = |i: usize| few[i & !255..i].iter().filter(|&&x| x > 0.5).count() as u32;
        (0..few.len()).map(above).eq(ranks).then_some(()).ok_or("a rank is not the CPU's")?;
        say(format_args!("A scan with one barrier gave {} elements the CPU's ranks.", few.len()));
        with = format!("{:.1} µs   07.3 measured {lanes} lanes", took[4]);
    }
    if let Err(error) = wgpu::naga::front::wgsl::parse_str(STANDARD) {
        say(format_args!("naga rejects the standard's line: {}.", error.message()));
    }
    say(format_args!("For notes.md:  07.1 measured {:.1} µs   07.2 measured {with}", took[2]));
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

/// The definition of correct.
fn exact_sum(data: &[f32]) -> f64 {
    data.iter().fold(0.0, |sum, &x| sum + f64::from(x))
}

/// The largest error of some sums, which are bits, and its bound; it is an `Err` past the bound.
pub fn off_by(kernel: usize, n: u64, exact: f64, sums: &BTreeSet<u32>) -> Result<[f64; 2]> {
    let (name, bound) = (KERNELS[kernel].0, bound(kernel, n, exact));
    let off = |&sum: &u32| (f64::from(f32::from_bits(sum)) - exact).abs();
    // Not `f64::max`, which would let a sum that is no number pass.
    let error = sums.iter().map(off).max_by(f64::total_cmp).unwrap_or(0.0);
    if error <= bound {
        return Ok([error, bound]);
    }
    Err(format!("{name} is off by {error}, and rounding explains {bound}").into())
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
