//! 10 filter compact: what an atomic append costs, and what aggregation buys.
//!
//! In:    n random boxes, resident, and a view; the argument is n; if none is given, one that suits.
//! Out:   per kernel: µs on the GPU with 0, 1, 50 and 100 % kept; at 50 % GB/s and a copy's share.
//! Run:   cargo run --example 10_filter_compact 2^20
//! Read:  guide/10_filter_compact.md
//!
//! Rungs: 2 as 02; 3 as 07; 4 and 7 its own: two modules, with kernels of one to three entry
//! points; 5 its own: the access to the boxes is a choice, and the view is a uniform buffer; 6, 8 and
//! 9 its own: boxes, survivors and counts. From 10 on they stand in the foot: a pass of many dispatches.

use std::hint::black_box;
use std::time::Instant;
use wgpu::Features;

const HEAD: &str = include_str!("10_filter_compact.rs");
const WIDTH: u32 = 256;
/// Kernels and their entry points, in the order of the dispatches.
pub const KERNELS: [(&str, &[&str]); 8] = [
    ("copy", &["copy"]),
    ("count_each", &["count_each"]),
    ("count_group", &["count_group"]),
    ("append_each", &["append_each"]),
    ("append_group", &["append_group"]),
    ("append_ordered", &["tally", "offsets", "place"]),
    ("append_subgroup", &["append_subgroup"]),
    ("append_both", &["append_both"]),
];
const COUNT: usize = 2;
const EACH: usize = 3;
const GROUP: usize = 4;
pub const ORDERED: usize = 5;
/// What the lesson asks for, of what there is.
pub const OPTIONAL: Features = Features::TIMESTAMP_QUERY.union(Features::SUBGROUP);
/// Shares of the boxes that are kept: by views that reach to these x, as boxes begin in (0, 1].
const SHARES: [f32; 4] = [0.0, 0.01, 0.5, 1.0];

pub fn main() {
    env_logger::init();
    let n = argument(HEAD, 0..=1 << 32);
    if let Err(error) = lesson(n) {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

/// Least x, least y, most x, most y.
pub type Rect = [f32; 4];

/// Whether a box and the view share a point: the definition of correct. Edges belong to both; a box
/// that is inverted has no points, and a comparison with NaN is false.
pub fn meets(a: &Rect, b: &Rect) -> bool {
    a[0] <= a[2] && a[1] <= a[3] && a[0] <= b[2] && a[1] <= b[3] && b[0] <= a[2] && b[1] <= a[3]
}

/// The boxes that meet the view, in their order.
pub fn cpu_filter(boxes: &[Rect], view: &Rect) -> Vec<Rect> {
    boxes.iter().filter(|one| meets(one, view)).copied().collect()
}

/// Workgroups for n boxes, four for each invocation in a round; at most 16 workgroups for each of the
/// 132 cores of a large card.
pub fn groups(n: u64) -> u64 {
    n.div_ceil(4 * u64::from(WIDTH)).clamp(1, 2112)
}

/// What is made once per process.
pub struct Gpu {
    adapter: wgpu::Adapter,
    flags: wgpu::InstanceFlags,
    device: wgpu::Device,
    queue: wgpu::Queue,
    errors: flume::Receiver<wgpu::Error>,
    bind_group_layout: wgpu::BindGroupLayout,
    /// In the order of `KERNELS`, a pipeline for each entry point; fewer without subgroups.
    pub kernels: Vec<Vec<wgpu::ComputePipeline>>,
    stamps: Option<Stamps>,
}

/// With `read_only` false, the boxes are bound as if a kernel wrote to them.
pub fn setup(optional: Features, read_only: bool) -> Result<Gpu> {
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

    // Rung 4, shader module: a second one with subgroups; either with the access that was chosen.
    let module = |mut source: wgpu::ShaderModuleDescriptor| {
        if let (wgpu::ShaderSource::Wgsl(text), false) = (&mut source.source, read_only) {
            *text = text.replace("<storage, read>", "<storage, read_write>").into();
        }
        device.create_shader_module(source)
    };
    let shader = module(wgpu::include_wgsl!("../shaders/10_filter_compact.wgsl"));
    let source = wgpu::include_wgsl!("../shaders/10_filter_compact_subgroup.wgsl");
    let subgroups = device.features().contains(Features::SUBGROUP).then(|| module(source));

    // Rung 5, bind group layout: one for all kernels.
    let uniform = wgpu::BindingType::Buffer {
        ty: wgpu::BufferBindingType::Uniform,
        has_dynamic_offset: false,
        min_binding_size: None,
    };
    let view = wgpu::BindGroupLayoutEntry { ty: uniform, ..storage(3, true) };
    let bind_group_layout = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
        label: Some("boxes and survivors"),
        entries: &[storage(0, read_only), storage(1, false), storage(2, false), view],
    });

    // Rung 6, pipeline layout.
    let pipeline_layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
        label: Some("boxes and survivors"),
        bind_group_layouts: &[Some(&bind_group_layout)],
        immediate_size: 0,
    });

    // Rung 7, pipeline: one for each entry point that this device can have.
    let mut kernels = Vec::new();
    for (kernel, (_, entry_points)) in KERNELS.into_iter().enumerate() {
        let module = if kernel <= ORDERED { Some(&shader) } else { subgroups.as_ref() };
        let compile = |name: &&str| Some(pipeline(&device, &pipeline_layout, module?, name));
        kernels.extend(entry_points.iter().map(compile).collect::<Option<Vec<_>>>());
    }

    let stamps = Stamps::new(&device, &queue);
    Ok(Gpu { adapter, flags, device, queue, errors, bind_group_layout, kernels, stamps })
}

pub struct Resident {
    n: u64,
    boxes: wgpu::Buffer,
    survivors: wgpu::Buffer,
    counts: wgpu::Buffer,
    view: wgpu::Buffer,
    readback: wgpu::Buffer,
}

pub fn upload(gpu: &Gpu, data: &[Rect]) -> Result<Resident> {
    let Gpu { device, queue, .. } = gpu;
    // Where there are no boxes, one of NaN, which meets nothing.
    let data = if data.is_empty() { &[[f32::NAN; 4]] } else { data };
    let n = data.len() as u64;
    fits(device, n * 16)?;
    // Rung 8, buffers: room for all boxes to survive.
    let usage = RESULT | wgpu::BufferUsages::COPY_DST;
    let boxes = buffer(device, "boxes", n * 16, usage);
    let survivors = buffer(device, "survivors", n * 16, usage);
    let counts = buffer(device, "counts", 4 * (1 + groups(n)), usage);
    let view = buffer(device, "view", 16, usage | wgpu::BufferUsages::UNIFORM);
    let readback = buffer(device, "readback", 4, READBACK);
    queue.write_buffer(&boxes, 0, bytemuck::cast_slice(data));

    Ok(Resident { n, boxes, survivors, counts, view, readback })
}

/// How many boxes meet the view, by one of the `KERNELS`, and the GPU's µs for it, or the wall's.
pub fn filter(gpu: &Gpu, kernel: usize, resident: &Resident, view: &Rect) -> Result<(u64, f64)> {
    let (name, entry_points) = KERNELS[kernel];
    let pipelines = gpu.kernels.get(kernel).ok_or("this device has no subgroups")?;
    gpu.queue.write_buffer(&resident.view, 0, bytemuck::cast_slice(view));
    // Rung 9, bind group: the same for all kernels.
    let Resident { n, boxes, survivors, counts, view, .. } = resident;
    let operands = [boxes, survivors, counts, view].map(|buffer| (buffer, buffer.size()));
    let bind_group = bind(&gpu.device, &gpu.bind_group_layout, &operands);

    let groups = |name| if name == "offsets" { 1 } else { groups(*n) as u32 };
    let steps = pipelines.iter().zip(entry_points);
    let steps = steps.map(|(pipeline, &name)| (pipeline, &bind_group, groups(name)));
    filter_pass(gpu, name, &steps.collect::<Vec<_>>(), resident)
}

fn lesson(n: Option<u64>) -> Result<()> {
    let gpu = setup(OPTIONAL, true)?;
    header(&gpu.adapter, gpu.flags);
    let Gpu { device, errors, kernels, stamps, .. } = &gpu;
    let views = SHARES.map(|share| [-1.0, -1.0, share, 2.0]);
    // Few boxes show whether the kernels are right, and how fast the adapter is.
    let few = [&random_boxes(1 << 14)[..], &ODD_BOXES].concat();
    let small = upload(&gpu, &few)?;
    for kernel in EACH..kernels.len() {
        views.iter().try_for_each(|view| filter_agrees(&gpu, kernel, &small, &few, view))?;
    }
    let [probe] = repeat(|| Ok([filter(&gpu, COUNT, &small, &views[2])?.1]))?;
    let n = n.unwrap_or(match probe {
        ..60.0 => (device.limits().max_storage_buffer_binding_size / 16).min(1 << 24),
        ..1e3 => 1 << 18,
        _ => 1 << 14,
    });
    say(format_args!("runs    n = {n}; medians of 15, or of 3 and more in half a second"));
    if stamps.as_ref().map_or(Ok(0.0), |stamps| stamps.micros(device, errors))? == 0.0 {
        say("clock   the wall's, with the waits: there are no timestamps here");
    }
    // On the host with what the CPU keeps, staged, and twice on the device.
    fits(device, 16 * n).and_then(|()| memory(5 * 16 * n))?;
    let data = random_boxes(n as usize);
    let resident = upload(&gpu, &data)?;
    let exact = views.map(|view| data.iter().filter(|one| meets(one, &view)).count() as u64);
    say("\n| kernel          |  0 % µs |  1 % µs | 50 % µs | 100 %µs |    GB/s | share |");
    say("|-----------------|--------:|--------:|--------:|--------:|--------:|------:|");
    let mut took = [[f64::NAN; SHARES.len()]; KERNELS.len()];
    let mut rates = [f64::NAN; KERNELS.len()];
    for (kernel, (name, _)) in KERNELS.into_iter().enumerate() {
        if kernel >= kernels.len() {
            say(format_args!("| {name:<15} | needs subgroups {:40} |", ""));
            continue;
        }
        for (view, share) in views.iter().zip(0..) {
            [took[kernel][share]] = repeat(|| {
                let (kept, us) = filter(&gpu, kernel, &resident, view)?;
                if kernel > 0 && kept != exact[share] {
                    return Err(format!("{name} keeps {kept}, the CPU {}", exact[share]).into());
                }
                Ok([us])
            })?;
        }
        let written = [n, 0, 0, exact[2]][kernel.min(EACH)];
        rates[kernel] = (16 * (n + written)) as f64 / took[kernel][2] / 1e3;
        let [none, few, half, all] = took[kernel];
        let row = format!("| {name:<15} | {none:>7.1} | {few:>7.1} | {half:>7.1} | {all:>7.1}");
        let share = rates[kernel] / rates[0].max(1e-9) * 100.0;
        say(format_args!("{row} | {:>7.2} | {share:>4.0}% |", rates[kernel]));
    }
    let [one] = repeat(timed(|| Ok(cpu_filter(black_box(&data), &views[2]))))?;
    let [all] = repeat(timed(|| Ok(cpu_filter_all(black_box(&data), &views[2]))))?;
    let times = took[EACH][2] / took[GROUP][2];
    say(format_args!("\nAt 50 %, the CPU takes {one:.0} µs, on all cores {all:.0}."));
    say(format_args!("An atomic for each survivor takes {times:.2}× the time of one a round."));
    // The same boxes on a second device, which binds them as if they were written to.
    let (other, own) = (setup(OPTIONAL, false)?, few.len());
    let again = upload(&other, &few)?;
    let [read] = repeat(|| Ok([filter_counts(&gpu, &small, false)?]))?;
    let [same] = repeat(|| Ok([filter_counts(&gpu, &small, true)?]))?;
    let [write] = repeat(|| Ok([filter_counts(&other, &again, false)?]))?;
    say(format_args!("32 counts of {own} boxes in one pass: {read:.1} µs with the boxes `read`,"));
    say(format_args!(
        "{same:.1} with one `read_write` buffer for all, {write:.1} with the boxes so."
    ));
    let notes = format!("10.1 measured {times:.2}×   10.2 measured {:.2} GB/s", rates[GROUP]);
    say(format_args!("For notes.md:  {notes}   10.3 measured {:.2}×", write / read));
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

/// Counts 32 times in one pass, each time with a counter of its own; with survivors of its own or the
/// same for all, though this kernel has no use for them. Returns the GPU's µs, or the wall's.
fn filter_counts(gpu: &Gpu, resident: &Resident, same: bool) -> Result<f64> {
    let Resident { n, boxes, survivors, counts, view, .. } = resident;
    let group = |survivors: &wgpu::Buffer, count: &wgpu::Buffer| {
        let operands = [boxes, survivors, count, view].map(|buffer| (buffer, buffer.size()));
        bind(&gpu.device, &gpu.bind_group_layout, &operands)
    };
    let all = [(); 32].map(|()| buffer(&gpu.device, "count", 16, RESULT));
    let bind_groups = all.each_ref().map(|count| {
        let own = buffer(&gpu.device, "survivors", 16, RESULT);
        group(if same { survivors } else { &own }, count)
    });
    let step = |bind_group| (&gpu.kernels[COUNT][0], bind_group, groups(*n) as u32);
    let (_, us) = filter_pass(gpu, "counts", &bind_groups.each_ref().map(step), resident)?;
    // What is timed has to be right as well.
    let alone = group(survivors, counts);
    let (wanted, _) = filter_pass(gpu, "count", &[step(&alone)], resident)?;
    for count in &all {
        let counted = words(&gpu.device, &gpu.queue, &gpu.errors, count, 1)?[0];
        if u64::from(counted) != wanted {
            return Err(format!("one of 32 counts is {counted}, alone it is {wanted}").into());
        }
    }
    Ok(us)
}

/// What a dispatch is made of: a pipeline, its operands, workgroups.
type FilterStep<'a> = (&'a wgpu::ComputePipeline, &'a wgpu::BindGroup, u32);

/// Dispatches in one pass, each of which sees all that the one before it wrote; then the count.
fn filter_pass(
    gpu: &Gpu,
    label: &str,
    steps: &[FilterStep],
    resident: &Resident,
) -> Result<(u64, f64)> {
    let (Gpu { device, queue, errors, stamps, .. }, label) = (gpu, Some(label));
    let Resident { counts, readback, .. } = resident;
    // Rung 10, commands: the counter is cleared first.
    let timestamp_writes = stamps.as_ref().map(Stamps::writes);
    let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label });
    encoder.clear_buffer(counts, 0, None);
    let pass = wgpu::ComputePassDescriptor { label, timestamp_writes };
    let mut pass = encoder.begin_compute_pass(&pass);
    for &(pipeline, bind_group, groups) in steps {
        pass.set_pipeline(pipeline);
        pass.set_bind_group(0, bind_group, &[]);
        pass.dispatch_workgroups(groups, 1, 1);
    }
    drop(pass);
    encoder.copy_buffer_to_buffer(counts, 0, readback, 0, 4);
    stamps.iter().for_each(|stamps| stamps.resolve(&mut encoder));
    let commands = encoder.finish();

    let start = Instant::now();
    // Rung 11, submit and wait.
    queue.submit([commands]);

    // Rung 12, map and read.
    let kept = read::<u32>(device, errors, readback)?[0];

    let wall = micros(start);
    let stamped = stamps.as_ref().map(|stamps| stamps.micros(device, errors)).transpose()?;
    Ok((kept.into(), stamped.filter(|&us| us > 0.0 && us <= wall).unwrap_or(wall)))
}

/// The boxes that the last call kept, from the device.
pub fn filter_survivors(gpu: &Gpu, resident: &Resident, kept: u64) -> Result<Vec<Rect>> {
    let Gpu { device, queue, errors, .. } = gpu;
    if kept == 0 {
        return Ok(Vec::new());
    }
    let words = words(device, queue, errors, &resident.survivors, 4 * kept)?;
    Ok(words.chunks_exact(4).map(|c| [c[0], c[1], c[2], c[3]].map(f32::from_bits)).collect())
}

/// Keeps what meets the view by a kernel that appends, and compares with the CPU: the sequence or, where
/// the kernel keeps no order, the set.
pub fn filter_agrees(
    gpu: &Gpu,
    kernel: usize,
    resident: &Resident,
    boxes: &[Rect],
    view: &Rect,
) -> Result<()> {
    let (kept, _) = filter(gpu, kernel, resident, view)?;
    let bits = |boxes: Vec<Rect>| {
        let mut bits: Vec<_> = boxes.into_iter().map(|one| one.map(f32::to_bits)).collect();
        if kernel != ORDERED {
            bits.sort_unstable();
        }
        bits
    };
    if bits(filter_survivors(gpu, resident, kept)?) == bits(cpu_filter(boxes, view)) {
        return Ok(());
    }
    Err(format!("{}: the boxes that it keeps are not the CPU's", KERNELS[kernel].0).into())
}

/// Boxes that are none, and one that an f32 comparison may take for (0, 0, 1, 1).
pub const ODD_BOXES: [Rect; 4] =
    [[f32::NAN; 4], [0.0, 0.0, 1.0, f32::NAN], [0.3, 0.0, 0.2, 1.0], [1e-40, 0.0, 1.0, 1.0]];

/// n boxes, the same in every run, that begin in (0, 1].
pub fn random_boxes(n: usize) -> Vec<Rect> {
    let numbers = random(2 * n);
    numbers.chunks_exact(2).map(|at| [at[0], at[1], at[0] + 0.01, at[1] + 0.01]).collect()
}

/// The filter on every core: each filters a share, and the shares are joined in order.
pub fn cpu_filter_all(boxes: &[Rect], view: &Rect) -> Vec<Rect> {
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get());
    let share = boxes.len().div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        let start = |share| scope.spawn(move || cpu_filter(share, view));
        let threads: Vec<_> = boxes.chunks(share).map(start).collect();
        let kept =
            threads.into_iter().map(|thread| thread.join().expect("a filter does not panic"));
        kept.collect::<Vec<_>>().concat()
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
