//! 05 bfs levels: why a phase boundary ends a dispatch, and why that need not end a submit.
//!
//! In:    three graphs: R-MAT with 2^scale vertices, a grid of 1024 rows with as many, or 1024 if that
//!        is more, a path of 1024; the argument is the scale, 18 if none is given, 12 if slow.
//! Out:   per graph and search: levels, dispatches, submits, µs, µs per level; the CPU's beside them.
//! Run:   cargo run --example 05_bfs_levels 18
//! Read:  guide/05_bfs_levels.md
//!
//! Rungs: 2 and 11 as 02; 5, 6 and 7 its own: arcs, depths, and two turns; 8 and 9 its own: the graph
//! stays, and the turns change places; 10 and 12 its own: many levels, of which two counters come back.

use std::hint::black_box;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Barrier, RwLock};
use std::time::Instant;
use wgpu::util::DeviceExt;

const HEAD: &str = include_str!("05_bfs_levels.rs");
const WIDTH: u32 = 256;
/// The depth of a vertex that no path leads to, or none so far.
pub const UNSEEN: u32 = 0xffff_ffff;
/// Levels in one submit, unless it is one.
const BATCH: usize = 32;
const ROWS: usize = 1024;
const SCALE: u32 = 18;
const SCALE_SLOW: u32 = 12;
/// A search of R-MAT of scale 12 that takes this many µs comes from a slow adapter.
const SLOW: f64 = 2e3;

pub fn main() {
    env_logger::init();
    let scale = argument(HEAD, 0..=20).map(|scale| scale as u32);
    if let Err(error) = lesson(scale) {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

/// The depths on the CPU, with a queue: the definition of correct.
pub fn cpu_queue(graph: &Graph, source: u32) -> Vec<u32> {
    let mut depths = vec![UNSEEN; graph.vertices()];
    depths[source as usize] = 0;
    let (mut queue, mut at) = (vec![source], 0);
    while let Some(&tail) = queue.get(at) {
        for &head in graph.heads(tail) {
            if depths[head as usize] == UNSEEN {
                depths[head as usize] = depths[tail as usize] + 1;
                queue.push(head);
            }
        }
        at += 1;
    }
    depths
}

/// What is made once per process.
pub struct Gpu {
    adapter: wgpu::Adapter,
    flags: wgpu::InstanceFlags,
    device: wgpu::Device,
    queue: wgpu::Queue,
    errors: flume::Receiver<wgpu::Error>,
    bind_group_layout: wgpu::BindGroupLayout,
    expand: wgpu::ComputePipeline,
}

pub fn setup() -> Result<Gpu> {
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
    let shader = device.create_shader_module(wgpu::include_wgsl!("../shaders/05_bfs_levels.wgsl"));

    // Rung 5, bind group layout: `now` is a uniform buffer, since downlevel allows four for storage.
    let uniform = wgpu::BindingType::Buffer {
        ty: wgpu::BufferBindingType::Uniform,
        has_dynamic_offset: false,
        min_binding_size: None,
    };
    let now = wgpu::BindGroupLayoutEntry { ty: uniform, ..storage(3, true) };
    let bind_group_layout = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
        label: Some("arcs, depths and turns"),
        entries: &[storage(0, true), storage(1, true), storage(2, false), now, storage(4, false)],
    });

    // Rung 6, pipeline layout.
    let pipeline_layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
        label: Some("arcs, depths and turns"),
        bind_group_layouts: &[Some(&bind_group_layout)],
        immediate_size: 0,
    });

    // Rung 7, pipeline.
    let expand = pipeline(&device, &pipeline_layout, &shader, "expand");

    Ok(Gpu { adapter, flags, device, queue, errors, bind_group_layout, expand })
}

/// A graph on the device, and all that searches from one source need.
pub struct Resident {
    groups: u32,
    start: wgpu::Buffer,
    depths: wgpu::Buffer,
    turns: [wgpu::Buffer; 2],
    readback: wgpu::Buffer,
    bind_groups: [wgpu::BindGroup; 2],
}

pub fn upload(gpu: &Gpu, graph: &Graph, source: u32) -> Result<Resident> {
    let Gpu { device, bind_group_layout, .. } = gpu;
    let (n, arcs) = (graph.vertices(), graph.heads.len());
    if source as usize >= n {
        return Err(format!("there is no source {source}: the graph has {n} vertices").into());
    }
    fits(device, 4 * n.max(arcs) as u64)?;
    // Rung 8, buffers: an arc from 0 to 0, where there are none, since it leads nowhere new.
    let full = |label, content: &[u32], usage| {
        let contents = bytemuck::cast_slice(if content.is_empty() { &[0] } else { content });
        let label = Some(label);
        device.create_buffer_init(&wgpu::util::BufferInitDescriptor { label, contents, usage })
    };
    let tails = full("tails", &graph.tails(), wgpu::BufferUsages::STORAGE);
    let heads = full("heads", &graph.heads, wgpu::BufferUsages::STORAGE);
    let mut depths = vec![UNSEEN; n];
    depths[source as usize] = 0;
    let start = full("start", &depths, wgpu::BufferUsages::COPY_SRC);
    let depths = buffer(device, "depths", start.size(), RESULT | wgpu::BufferUsages::COPY_DST);
    let usage = RESULT | wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::UNIFORM;
    let turns = ["even turn", "odd turn"].map(|label| buffer(device, label, 8, usage));
    let readback = buffer(device, "readback", 16, READBACK);

    // Rung 9, bind group: what is `next` in an even level is `now` in an odd one.
    let bind_groups = [[0, 1], [1, 0]].map(|[now, next]| {
        let graph = [&tails, &heads, &depths, &turns[now], &turns[next]];
        bind(device, bind_group_layout, &graph.map(|buffer| (buffer, buffer.size())))
    });

    // Four arcs or more for each invocation, and at most 16 workgroups for each core of a large card.
    let groups = arcs.div_ceil(4 * WIDTH as usize).clamp(1, 2112) as u32;
    Ok(Resident { groups, start, depths, turns, readback, bind_groups })
}

/// Fills `depths`, with `batch` levels in a submit. Returns how many levels, dispatches and submits.
pub fn search(gpu: &Gpu, resident: &Resident, batch: usize) -> Result<[usize; 3]> {
    let Gpu { device, queue, errors, expand, .. } = gpu;
    let Resident { groups, start, depths, turns, readback, bind_groups } = resident;
    let (mut dispatches, mut submits) = (0, 0);
    loop {
        // Rung 10, commands: each dispatch sees all that the one before it wrote.
        let label = Some("expand");
        let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label });
        if submits == 0 {
            encoder.copy_buffer_to_buffer(start, 0, depths, 0, start.size());
            turns.iter().for_each(|turn| encoder.clear_buffer(turn, 0, None));
        }
        let pass = wgpu::ComputePassDescriptor { label, timestamp_writes: None };
        let mut pass = encoder.begin_compute_pass(&pass);
        pass.set_pipeline(expand);
        for level in dispatches..dispatches + batch {
            pass.set_bind_group(0, &bind_groups[level % 2], &[]);
            pass.dispatch_workgroups(*groups, 1, 1);
        }
        drop(pass);
        encoder.copy_buffer_to_buffer(&turns[0], 0, readback, 0, 8);
        encoder.copy_buffer_to_buffer(&turns[1], 0, readback, 8, 8);
        let commands = encoder.finish();

        // Rung 11, submit and wait.
        queue.submit([commands]);

        // Rung 12, map and read.
        let turns = read::<[u32; 2]>(device, errors, readback)?;

        (dispatches, submits) = (dispatches + batch, submits + 1);
        let deepest = turns[0][1].max(turns[1][1]) as usize;
        if deepest < dispatches {
            return Ok([deepest + 1, dispatches, submits]);
        }
    }
}

/// The depths that the last search left on the device.
pub fn depths(gpu: &Gpu, resident: &Resident) -> Result<Vec<u32>> {
    let Gpu { device, queue, errors, .. } = gpu;
    let readback = buffer(device, "depths, read back", resident.depths.size(), READBACK);
    let mut encoder = device.create_command_encoder(&Default::default());
    encoder.copy_buffer_to_buffer(&resident.depths, 0, &readback, 0, readback.size());
    queue.submit([encoder.finish()]);
    read(device, errors, &readback)
}

fn lesson(scale: Option<u32>) -> Result<()> {
    let gpu = setup()?;
    header(&gpu.adapter, gpu.flags);
    let small = upload(&gpu, &rmat(SCALE_SLOW), 0)?;
    search(&gpu, &small, BATCH)?;
    let [probe] = timed(|| search(&gpu, &small, BATCH))()?;
    let scale = scale.unwrap_or(if probe > SLOW { SCALE_SLOW } else { SCALE });
    say(format_args!("runs    scale {scale}; medians of 15, or of 3 and more in half a second"));
    let graphs = three_graphs(scale)?;
    say("\n| graph | search           | levels | dispatches | submits |     µs | µs/level |");
    say("|-------|------------------|-------:|-----------:|--------:|-------:|---------:|");
    let mut times = Vec::new();
    for (name, graph) in graphs {
        let source = (0..).find(|&vertex| !graph.heads(vertex).is_empty()).unwrap_or(0);
        let (resident, exact) = (upload(&gpu, &graph, source)?, cpu_queue(&graph, source));
        let [levels, ..] = search(&gpu, &resident, BATCH)?;
        let mut row = |what: &str, dispatches, submits, us| {
            let row = format!("| {name:<5} | {what:<16} | {levels:>6} | {dispatches:>10}");
            say(format_args!("{row} | {submits:>7} | {us:>6.0} | {:>8.3} |", us / levels as f64));
            times.push(us);
        };
        for batch in [1, BATCH] {
            let [us, dispatches, submits] = measured(&gpu, &resident, (name, &exact), batch)?;
            row(&format!("GPU, {batch} a submit"), dispatches, submits, us);
        }
        let [queue] = repeat(timed(|| Ok(cpu_queue(black_box(&graph), source))))?;
        row("CPU, a queue", 0.0, 0.0, queue);
        same(name, &cpu_levels(&graph, source), &exact)?;
        let [all] = repeat(timed(|| Ok(cpu_levels(black_box(&graph), source))))?;
        row("CPU, all cores", 0.0, 0.0, all);
    }
    let [alone, batched] = [times[8], times[9]].map(|us| us / ROWS as f64);
    let [rmat, grid] = [0, 4].map(|row| times[row] / times[row + 1]);
    let cpu = [0, 4].map(|row| match times[row + 2].min(times[row + 3]) / times[row + 1] {
        ratio if ratio > 1.0 => format!("{ratio:.1}× as slow"),
        ratio => format!("{:.1}× as fast", 1.0 / ratio),
    });
    say(format_args!("\nA level of the path: {alone:.1} µs alone, {batched:.2} µs in a batch."));
    say(format_args!("A batch is {rmat:.1}× as fast on R-MAT, {grid:.1}× on the grid."));
    say(format_args!("Beside a batch, the CPU is {} on R-MAT, {} on the grid.", cpu[0], cpu[1]));
    let notes = format!("05.1 measured {alone:.1} µs   05.2 measured {batched:.2} µs");
    say(format_args!("For notes.md:  {notes}   05.3 measured {rmat:.2}×"));
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

/// A graph in compressed sparse rows: the arcs of vertex v have the heads from offset v to v + 1.
pub struct Graph {
    offsets: Vec<usize>,
    heads: Vec<u32>,
}

impl Graph {
    /// Each edge becomes two arcs, one each way.
    pub fn new(vertices: usize, edges: &[[u32; 2]]) -> Self {
        let mut offsets = vec![0; vertices + 1];
        edges.iter().flatten().for_each(|&tail| offsets[tail as usize + 1] += 1);
        (0..vertices).for_each(|vertex| offsets[vertex + 1] += offsets[vertex]);
        let (mut ends, mut heads) = (offsets.clone(), vec![0; 2 * edges.len()]);
        for [tail, head] in edges.iter().flat_map(|&[a, b]| [[a, b], [b, a]]) {
            heads[ends[tail as usize]] = head;
            ends[tail as usize] += 1;
        }
        Self { offsets, heads }
    }

    pub fn vertices(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Where the arcs of one vertex lead.
    fn heads(&self, tail: u32) -> &[u32] {
        &self.heads[self.offsets[tail as usize]..self.offsets[tail as usize + 1]]
    }

    /// Where each arc begins.
    fn tails(&self) -> Vec<u32> {
        let tails = (0..).zip(self.offsets.windows(2));
        tails.flat_map(|(tail, ends)| std::iter::repeat_n(tail, ends[1] - ends[0])).collect()
    }
}

/// R-MAT, as in the GAP benchmark: 2^scale vertices, 16 edges for each. Each bit of an edge's ends is
/// drawn with the odds of the four quarters of the matrix, 57, 19, 19 and 5 in 100. Then the vertices
/// are renamed by shuffling.
pub fn rmat(scale: u32) -> Graph {
    let (vertices, mut state) = (1 << scale, 1u64);
    let mut below = |n: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((state >> 32) * n) >> 32
    };
    let mut names: Vec<u32> = (0..vertices as u32).collect();
    (1..vertices).for_each(|last| names.swap(last, below(last as u64 + 1) as usize));
    let edge = |_| {
        let bits = (0..scale).fold([0; 2], |[a, b], _| match below(100) {
            0..57 => [2 * a, 2 * b],
            57..76 => [2 * a, 2 * b + 1],
            76..95 => [2 * a + 1, 2 * b],
            _ => [2 * a + 1, 2 * b + 1],
        });
        bits.map(|end: usize| names[end])
    };
    let edges: Vec<_> = (0..16 * vertices).map(edge).collect();
    Graph::new(vertices, &edges)
}

/// Rows of `width` vertices, each with an edge to its neighbours; of width 1 it is a path.
pub fn grid(width: usize, rows: usize) -> Graph {
    let mut edges = Vec::new();
    for vertex in 0..width * rows {
        if vertex % width + 1 < width {
            edges.push([vertex, vertex + 1].map(|end| end as u32));
        }
        if vertex + width < width * rows {
            edges.push([vertex, vertex + width].map(|end| end as u32));
        }
    }
    Graph::new(width * rows, &edges)
}

/// The graphs of the lesson, unless the machine cannot hold them.
pub fn three_graphs(scale: u32) -> Result<[(&'static str, Graph); 3]> {
    // Of an arc: half its edge, head and tail on the host; the latter two staged, and on the device.
    memory((7 * 4 * 32) << scale)?;
    let width = 1 << scale.saturating_sub(ROWS.ilog2());
    Ok([("R-MAT", rmat(scale)), ("grid", grid(width, ROWS)), ("path", grid(1, ROWS))])
}

/// The depths are compared with the queue's: it is an `Err` if they are others.
pub fn same(name: &str, depths: &[u32], exact: &[u32]) -> Result<()> {
    if depths == exact {
        return Ok(());
    }
    Err(format!("{name}: the depths are not those of the CPU's queue").into())
}

/// A search that is right, and the medians of its µs, dispatches and submits: of the timed ones.
pub fn measured(
    gpu: &Gpu,
    resident: &Resident,
    (name, exact): (&str, &[u32]),
    batch: usize,
) -> Result<[f64; 3]> {
    search(gpu, resident, batch)?;
    same(name, &depths(gpu, resident)?, exact)?;
    // A card at rest lowers its clocks, and takes its time to raise them.
    let begin = Instant::now();
    while micros(begin) < 3e5 {
        search(gpu, resident, BATCH)?;
    }
    repeat(|| {
        let start = Instant::now();
        let [_, dispatches, submits] = black_box(search(gpu, resident, batch)?);
        Ok([micros(start), dispatches as f64, submits as f64])
    })
}

/// The same on every core, level by level. The threads are started once, and meet after each level.
pub fn cpu_levels(graph: &Graph, source: u32) -> Vec<u32> {
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get());
    let depths: Vec<_> = (0..graph.vertices()).map(|_| AtomicU32::new(UNSEEN)).collect();
    depths[source as usize].store(0, Relaxed);
    // A queue for each thread to fill, twice: for the even levels, and for the odd.
    let queues = || (0..threads).map(|_| RwLock::new(Vec::new())).collect::<Vec<_>>();
    let (queues, barrier) = ([queues(), queues()], Barrier::new(threads));
    queues[0][0].write().expect("no thread panics").push(source);
    let search = |thread: usize| {
        for level in 0.. {
            let [now, next] = [&queues[level % 2], &queues[(level + 1) % 2]];
            let now: Vec<_> = now.iter().map(|q| q.read().expect("no thread panics")).collect();
            if now.iter().all(|queue| queue.is_empty()) {
                break;
            }
            let mut next = next[thread].write().expect("no thread panics");
            next.clear();
            for &tail in now.iter().flat_map(|queue| queue.iter().skip(thread).step_by(threads)) {
                for &head in graph.heads(tail) {
                    let (depth, deeper) = (&depths[head as usize], level as u32 + 1);
                    if depth.load(Relaxed) == UNSEEN
                        && depth.compare_exchange(UNSEEN, deeper, Relaxed, Relaxed).is_ok()
                    {
                        next.push(head);
                    }
                }
            }
            drop((now, next));
            // Nobody begins the next level before all have ended this one: what a GPU does not have.
            barrier.wait();
        }
    };
    std::thread::scope(|scope| {
        let search = &search;
        (0..threads).for_each(|thread| _ = scope.spawn(move || search(thread)));
    });
    depths.into_iter().map(AtomicU32::into_inner).collect()
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
