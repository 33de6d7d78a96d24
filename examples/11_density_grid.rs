//! 11 density grid: when contention bites, and what hierarchical atomics and disjoint tiles change.
//!
//! In:    n points in a square, resident: all over it, in clusters, in one cell; the argument is n.
//! Out:   per set of points and way to count them into 2048 × 2048 cells: µs, points/µs, × flat.
//! Run:   cargo run --example 11_density_grid 2^20
//! Read:  guide/11_density_grid.md
//!
//! Rungs: 2 and 11 as 02; 3 its own: larger bindings, and 32 bytes more of workgroup memory; 5, 6 and
//! 7 its own: points, cells and bins, and a kernel is up to five entry points; 8 and 9 its own: one
//! point that is NaN where there are none; 10 and 12 its own: several dispatches, and cells come back.

use std::hint::black_box;
use std::time::Instant;

const HEAD: &str = include_str!("11_density_grid.rs");
const WIDTH: u32 = 256;
/// Cells in a row of the grid, and rows; cells in a row of a tile, and rows.
pub const SIDE: u32 = 2048;
pub const TILE: u32 = 64;
const TILES: u32 = 1024;
const CELLS: usize = (SIDE * SIDE) as usize;
/// Ways to count, and what each of them dispatches.
pub const KERNELS: [(&str, &[&str]); 3] = [
    ("flat", &["zero", "flat"]),
    ("cached", &["zero", "cached"]),
    ("tiled", &["begin", "count", "place", "scatter", "tiled"]),
];
pub type Point = [f32; 2];
const SETS: [PointSet; 3] =
    [("all over", points_all_over), ("clusters", points_in_clusters), ("one cell", points_in_one)];

pub fn main() {
    env_logger::init();
    let n = argument(HEAD, 0..=1 << 25);
    if let Err(error) = lesson(n) {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

/// The cell of a point, exactly, since SIDE is a power of two. Outside is dropped; so is NaN.
pub fn cell([x, y]: Point) -> Option<usize> {
    let inside = (0.0..1.0).contains(&x) && (0.0..1.0).contains(&y);
    let [column, row] = [x, y].map(|at| (at * SIDE as f32) as usize);
    inside.then(|| row * SIDE as usize + column)
}

/// How many points each cell has: the definition of correct.
pub fn count_one(points: &[Point]) -> Vec<u32> {
    let mut cells = vec![0; CELLS];
    points.iter().filter_map(|&point| cell(point)).for_each(|cell| cells[cell] += 1);
    cells
}

/// What is made once per process.
pub struct Gpu {
    adapter: wgpu::Adapter,
    flags: wgpu::InstanceFlags,
    device: wgpu::Device,
    queue: wgpu::Queue,
    errors: flume::Receiver<wgpu::Error>,
    bind_group_layout: wgpu::BindGroupLayout,
    /// In the order of `KERNELS`, and of what each dispatches.
    kernels: Vec<Vec<wgpu::ComputePipeline>>,
    stamps: Option<Stamps>,
}

pub fn setup() -> Result<Gpu> {
    // Rung 1, instance.
    let descriptor = wgpu::InstanceDescriptor::new_without_display_handle_from_env();
    let flags = descriptor.flags;
    let instance = wgpu::Instance::new(descriptor);

    // Rung 2, adapter.
    let adapter = adapter(&instance)?;

    // Rung 3, device and queue: a tile takes all of the default's workgroup memory.
    let offered = adapter.limits();
    let (device, queue) = pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor {
        label: Some("device"),
        required_features: adapter.features() & wgpu::Features::TIMESTAMP_QUERY,
        required_limits: wgpu::Limits {
            max_compute_workgroup_storage_size: TILE * TILE * 4,
            max_storage_buffer_binding_size: offered.max_storage_buffer_binding_size,
            max_buffer_size: offered.max_buffer_size,
            ..wgpu::Limits::downlevel_defaults()
        },
        ..Default::default()
    }))?;
    let errors = errors(&device);

    // Rung 4, shader module.
    let shader =
        device.create_shader_module(wgpu::include_wgsl!("../shaders/11_density_grid.wgsl"));

    // Rung 5, bind group layout.
    let bind_group_layout = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
        label: Some("points, cells and bins"),
        entries: &[storage(0, true), storage(1, false), storage(2, false), storage(3, false)],
    });

    // Rung 6, pipeline layout.
    let pipeline_layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
        label: Some("points, cells and bins"),
        bind_group_layouts: &[Some(&bind_group_layout)],
        immediate_size: 0,
    });

    // Rung 7, pipeline: one for each dispatch of a kernel, which zeroes its workgroup memory itself.
    let compile = |name: &&str| {
        device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(name),
            layout: Some(&pipeline_layout),
            module: &shader,
            entry_point: Some(name),
            compilation_options: wgpu::PipelineCompilationOptions {
                zero_initialize_workgroup_memory: false,
                ..Default::default()
            },
            cache: None,
        })
    };
    let kernels = KERNELS.map(|(_, names)| names.iter().map(compile).collect()).into();

    let stamps = Stamps::new(&device, &queue);
    Ok(Gpu { adapter, flags, device, queue, errors, bind_group_layout, kernels, stamps })
}

pub struct Resident {
    n: u64,
    cells: wgpu::Buffer,
    bind_group: wgpu::BindGroup,
}

pub fn upload(gpu: &Gpu, points: &[Point]) -> Result<Resident> {
    let Gpu { device, queue, bind_group_layout, .. } = gpu;
    let points = if points.is_empty() { &[[f32::NAN; 2]] } else { points };
    let n = points.len() as u64;
    fits(device, n * 8)?;
    // Rung 8, buffers: no binding may be empty, and one point that is NaN counts as none.
    let usage = RESULT | wgpu::BufferUsages::COPY_DST;
    let input = buffer(device, "points", n * 8, usage);
    let cells = buffer(device, "cells", CELLS as u64 * 4, usage);
    let bins = buffer(device, "bins", u64::from(1 + 2 * TILES) * 4, usage);
    let binned = buffer(device, "binned", n * 4, usage);
    queue.write_buffer(&input, 0, bytemuck::cast_slice(points));

    // Rung 9, bind group.
    let operands = [&input, &cells, &bins, &binned].map(|buffer| (buffer, buffer.size()));
    let bind_group = bind(device, bind_group_layout, &operands);

    Ok(Resident { n, cells, bind_group })
}

/// Workgroups that share n points; at most 16 for each of the 132 cores of a large card.
pub fn groups(n: u64) -> u32 {
    n.div_ceil(16 * u64::from(WIDTH)).clamp(1, 2112) as u32
}

/// Counts by one of the `KERNELS`. Returns the GPU's µs, or the wall's where there are no stamps.
pub fn density(gpu: &Gpu, kernel: usize, resident: &Resident) -> Result<f64> {
    let Gpu { device, queue, errors, kernels, stamps, .. } = gpu;
    // Rung 10, commands: each dispatch sees all that the one before it wrote.
    let (label, dispatches) = (Some(KERNELS[kernel].0), KERNELS[kernel].1);
    let timestamp_writes = stamps.as_ref().map(Stamps::writes);
    let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label });
    let pass = wgpu::ComputePassDescriptor { label, timestamp_writes };
    let mut pass = encoder.begin_compute_pass(&pass);
    pass.set_bind_group(0, &resident.bind_group, &[]);
    for (pipeline, &name) in kernels[kernel].iter().zip(dispatches) {
        let groups = match name {
            "begin" | "place" => TILES / WIDTH,
            "zero" | "tiled" => TILES,
            _ => groups(resident.n),
        };
        pass.set_pipeline(pipeline);
        pass.dispatch_workgroups(groups, 1, 1);
    }
    drop(pass);
    stamps.iter().for_each(|stamps| stamps.resolve(&mut encoder));
    let commands = encoder.finish();

    let start = Instant::now();
    // Rung 11, submit and wait.
    queue.submit([commands]);

    wait(device, errors)?;
    let wall = micros(start);
    let stamped = stamps.as_ref().map(|stamps| stamps.micros(device, errors)).transpose()?;
    Ok(stamped.filter(|&us| us > 0.0 && us <= wall).unwrap_or(wall))
}

/// What the last kernel counted.
pub fn cells(gpu: &Gpu, resident: &Resident) -> Result<Vec<u32>> {
    // Rung 12, map and read.
    words(&gpu.device, &gpu.queue, &gpu.errors, &resident.cells, CELLS as u64)
}

fn lesson(n: Option<u64>) -> Result<()> {
    let gpu = setup()?;
    header(&gpu.adapter, gpu.flags);
    // A probe chooses the size, and tries the edges.
    let edges = points_on_the_edge();
    let points = [points_all_over(1 << 16), edges.clone()].concat();
    let (small, exact) = (upload(&gpu, &points)?, count_one(&points));
    for (kernel, (name, _)) in KERNELS.into_iter().enumerate() {
        density(&gpu, kernel, &small)?;
        check_cells(&gpu, &small, &exact, name)?;
    }
    let n = n.unwrap_or(match density(&gpu, 2, &small)? {
        ..2e3 => 1 << 24,
        ..8e4 => 1 << 20,
        _ => 1 << 14,
    });
    say(format_args!("runs    n = {n}; medians of 15, or of 3 and more in half a second"));
    let Gpu { device, errors, stamps, .. } = &gpu;
    if stamps.as_ref().map_or(Ok(0.0), |stamps| stamps.micros(device, errors))? == 0.0 {
        say("clock   the wall's, with the waits: there are no timestamps here");
    }
    fits(device, 8 * n).and_then(|()| memory(count_bytes(n)))?;
    say("\n| points   | counted by     |        µs | points/µs |  × flat |");
    say("|----------|----------------|----------:|----------:|--------:|");
    let (mut times, mut fullest) = (Vec::new(), Vec::new());
    for (set, points) in SETS {
        let points = points(n as usize);
        let (resident, exact) = (upload(&gpu, &points)?, count_one(&points));
        fullest.push(exact.iter().copied().fold(0, u32::max));
        let first = times.len();
        let mut row = |what: &str, us: f64| {
            times.push(us);
            let row = format!("| {set:<8} | {what:<14} | {us:>9.1} | {:>9.1}", n as f64 / us);
            say(format_args!("{row} | {:>7.3} |", times[first] / us));
        };
        // A card at rest lowers its clocks, and takes its time to raise them.
        let begin = Instant::now();
        while micros(begin) < 3e5 {
            density(&gpu, 0, &resident)?;
        }
        for (kernel, (name, _)) in KERNELS.into_iter().enumerate() {
            let [us] = repeat(|| Ok([density(&gpu, kernel, &resident)?]))?;
            row(name, us);
            check_cells(&gpu, &resident, &exact, name)?;
        }
        let [one] = repeat(timed(|| Ok(count_one(black_box(&points)))))?;
        row("CPU, one core", one);
        let [all] = repeat(timed(|| Ok(count_all(black_box(&points)))))?;
        row("CPU, all cores", all);
    }
    let (edges, inside) = (edges.len(), edges.iter().filter_map(|&point| cell(point)).count());
    say(format_args!("\nThe fullest cells have {fullest:?} points."));
    say(format_args!("Of {edges} points on edges, past them or no number, {inside} are inside."));
    let ratios = [(10, 0), (5, 6), (10, 11), (0, 2)];
    let [uneven, cached, one, tiled] = ratios.map(|(above, below)| times[above] / times[below]);
    say(format_args!("Flat takes {uneven:.2}× as long for one cell as for points all over."));
    let notes = format!("11.1 measured {uneven:.2}×   11.2 measured {cached:.2}×   11.3 measured");
    say(format_args!("For notes.md:  {notes} {one:.2}×   11.4 measured {tiled:.2}×"));
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

/// A name, and so many points.
type PointSet = (&'static str, fn(usize) -> Vec<Point>);

/// Numbers in [0, 1), each a multiple of 2^-24, the same in every run.
fn points_from() -> impl FnMut() -> f32 {
    let mut state = 1u64;
    move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 40) as f32 / (1 << 24) as f32
    }
}

pub fn points_all_over(n: usize) -> Vec<Point> {
    let mut next = points_from();
    (0..n).map(|_| [next(), next()]).collect()
}

/// Of 16 clusters, the first has half of the points, the next a quarter, and so on. Half of a cluster's
/// points lie within about five cells of its middle.
pub fn points_in_clusters(n: usize) -> Vec<Point> {
    let mut next = points_from();
    let middles: [Point; 16] = std::array::from_fn(|_| [next(), next()]);
    let point = |_| {
        // A number's exponent: one in two is in [1/2, 1), one in four in [1/4, 1/2), …
        let rank = 126 - (next().to_bits() >> 23) as usize;
        middles[rank.min(15)].map(|middle| middle + (next() + next() - next() - next()) / 256.0)
    };
    (0..n).map(point).collect()
}

pub fn points_in_one(n: usize) -> Vec<Point> {
    let mut next = points_from();
    let cell = [1234.0, 567.0];
    (0..n).map(|_| cell.map(|cell| (cell + next() / 2.0) / SIDE as f32)).collect()
}

/// Pairs of all that lies on an edge, just beside one, out of range, or is no number.
pub fn points_on_the_edge() -> Vec<Point> {
    let mut numbers = vec![-0.0, f32::NAN, -f32::NAN, f32::from_bits(0x7f80_0001)];
    let edges = [0.0, 1.0, 0.5, 64.0 / 2048.0, 1.0 / 2048.0, 2047.0 / 2048.0, f32::MAX];
    for edge in edges {
        numbers.extend([edge, edge.next_up(), edge.next_down(), -edge]);
    }
    numbers.extend([f32::INFINITY, f32::NEG_INFINITY, f32::MIN_POSITIVE, -f32::MIN_POSITIVE]);
    numbers.iter().flat_map(|&x| numbers.iter().map(move |&y| [x, y])).collect()
}

fn count_threads() -> usize {
    std::thread::available_parallelism().map_or(1, |threads| threads.get())
}

/// Of a point: on the host, staged, on the device, and binned; and for each thread a grid.
pub fn count_bytes(n: u64) -> u64 {
    28 * n + 4 * (CELLS * (count_threads() + 5)) as u64
}

/// The same on every core: each counts a share into a grid of its own, then adds up a share of the
/// cells.
pub fn count_all(points: &[Point]) -> Vec<u32> {
    let threads = count_threads();
    let share = points.len().div_ceil(threads).max(1);
    let grids: Vec<Vec<u32>> = std::thread::scope(|scope| {
        let start = |points| scope.spawn(move || count_one(points));
        let threads: Vec<_> = points.chunks(share).map(start).collect();
        threads.into_iter().map(|thread| thread.join().expect("counting does not panic")).collect()
    });
    let (mut cells, share) = (vec![0; CELLS], CELLS.div_ceil(threads));
    std::thread::scope(|scope| {
        for (place, cells) in cells.chunks_mut(share).enumerate() {
            let grids = &grids;
            scope.spawn(move || {
                for grid in grids {
                    let grid = &grid[place * share..];
                    cells.iter_mut().zip(grid).for_each(|(cell, count)| *cell += count);
                }
            });
        }
    });
    cells
}

/// An `Err` where the last kernel counted otherwise than the CPU. Clears the cells, so that what one
/// kernel leaves cannot serve the next.
fn check_cells(gpu: &Gpu, resident: &Resident, exact: &[u32], what: &str) -> Result<()> {
    let cells = cells(gpu, resident)?;
    let mut encoder = gpu.device.create_command_encoder(&Default::default());
    encoder.clear_buffer(&resident.cells, 0, None);
    gpu.queue.submit([encoder.finish()]);
    let Some(wrong) = (0..CELLS).find(|&cell| cells[cell] != exact[cell]) else { return Ok(()) };
    let [ours, theirs] = [cells[wrong], exact[wrong]];
    Err(format!("{what}: {ours} points in cell {wrong}, and the CPU counts {theirs}").into())
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
