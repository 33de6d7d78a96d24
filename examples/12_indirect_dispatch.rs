//! 12 indirect dispatch: how the GPU sizes its own next dispatch, and what checking that costs.
//!
//! In:    05's graphs: R-MAT with 2^scale vertices, a grid of at most 1024 rows with as many, a path as
//!        long as they are; the argument is the scale, 18 if none is given, 10 on a slow adapter.
//! Out:   workgroups asked for and come, and their µs; three refusals; 05's searches, with a queue.
//! Run:   cargo run --example 12_indirect_dispatch 18
//! Read:  guide/12_indirect_dispatch.md
//!
//! Rungs: 2 and 11 as 02; 1 its own: indirect calls are checked, or not; 10 and 12 its own: what one
//! dispatch writes sizes the next. From 4 to 9 they stand in the foot.

use std::hint::black_box;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Barrier, RwLock};
use std::time::Instant;
use wgpu::BufferUsages;
use wgpu::util::DeviceExt;

const HEAD: &str = include_str!("12_indirect_dispatch.rs");
const WIDTH: u32 = 256;
/// Lanes of a workgroup that share a piece of a vertex's arcs, and how many arcs that is.
const LANES: u32 = 8;
const LENGTH: usize = 32;
/// If a vertex would be more pieces, it is so many and they are longer.
const MOST_PIECES: usize = 256;
pub const MOST_GROUPS: u32 = 65535;
/// Levels in the first submit.
const BATCH: u32 = 8;
const ROWS: usize = 1024;
const SCALE: u32 = 18;
const SCALE_SLOW: u32 = 10;
/// A search of R-MAT of scale 10 that takes this many µs comes from a slow adapter.
const SLOW: f64 = 1e3;

pub fn main() {
    env_logger::init();
    let scale = argument(HEAD, 0..=20).map(|scale| scale as u32);
    if let Err(error) = lesson(scale) {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

pub fn setup(validated: bool) -> Result<IndirectGpu> {
    // Rung 1, instance: unless it is told not to, wgpu checks each indirect call, on the GPU.
    let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle_from_env();
    descriptor.flags.set(wgpu::InstanceFlags::VALIDATION_INDIRECT_CALL, validated);
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

    Ok(indirect_gpu(adapter, flags, device, queue, errors))
}

/// The arguments that `plan` makes of so many pieces in the queue.
pub fn planned(gpu: &IndirectGpu, pieces: u32) -> wgpu::Buffer {
    let [queue, next] =
        [pieces, 0].map(|tail| holding(gpu, "queue, next", &[tail, 0, 0, 0, 0, 0], RESULT));
    let groups = holding(gpu, "planned", &[0; 3], RESULT | BufferUsages::INDIRECT);
    pass_with(gpu, &gpu.plan, [&queue, &next, &groups], |pass| pass.dispatch_workgroups(1, 1, 1));
    groups
}

/// How many workgroups really come of what `dispatch` records; `bound` is bound meanwhile.
pub fn arrivals(
    gpu: &IndirectGpu,
    bound: &wgpu::Buffer,
    dispatch: impl FnOnce(&mut wgpu::ComputePass),
) -> Result<u32> {
    let [queue, next] = [0, 1].map(|_| holding(gpu, "counter, next", &[0; 6], RESULT));
    pass_with(gpu, &gpu.arrive, [&queue, &next, bound], dispatch);
    Ok(words(&gpu.device, &gpu.queue, &gpu.errors, &queue, 1)?[0])
}

/// Workgroups that come of a dispatch, by `groups` in a buffer or else directly, and its µs among many.
fn price(gpu: &IndirectGpu, direct: u32, groups: Option<&wgpu::Buffer>) -> Result<(u32, f64)> {
    let spare = holding(gpu, "spare", &[0; 3], RESULT);
    let pass = |times: u32| {
        arrivals(gpu, &spare, |pass| match groups {
            Some(groups) => (0..times).for_each(|_| pass.dispatch_workgroups_indirect(groups, 0)),
            None => (0..times).for_each(|_| pass.dispatch_workgroups(direct, 1, 1)),
        })
    };
    let (came, begin, mut calls) = (pass(1)?, Instant::now(), 0);
    while micros(begin) < 1e5 {
        (_, calls) = (pass(1)?, calls + 1);
    }
    let times = (calls / 4).clamp(1, 512);
    let [us] = repeat(timed(|| pass(times)))?;
    Ok((came, us / f64::from(times)))
}

/// Fills `depths`, each level with as many workgroups as `plan` says, or with a `fixed` number. The first
/// submit has `batch` levels, the next ones more. Returns how many levels, workgroups and submits.
pub fn search(
    gpu: &IndirectGpu,
    graph: &IndirectGraph,
    batch: u32,
    indirect: bool,
) -> Result<[u32; 3]> {
    let IndirectGpu { device, queue, errors, plan, expand, .. } = gpu;
    let IndirectGraph { fixed, firsts, start, seed, depths, now, groups, readback, .. } = graph;
    let (mut submits, mut dispatches) = (0, 0);
    loop {
        // Rung 10, commands: a dispatch finds as arguments what the one before it wrote.
        let label = Some("search");
        let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label });
        if submits == 0 {
            encoder.copy_buffer_to_buffer(start, 0, depths, 0, start.size());
            encoder.copy_buffer_to_buffer(seed, 0, &graph.queue, 0, seed.size());
            let first = &firsts[usize::from(indirect)];
            encoder.copy_buffer_to_buffer(first, 0, now, 0, first.size());
        }
        let pass = wgpu::ComputePassDescriptor { label, timestamp_writes: None };
        let mut pass = encoder.begin_compute_pass(&pass);
        let levels = batch << submits.min(3);
        for _ in 0..levels {
            pass.set_pipeline(plan);
            pass.set_bind_group(0, &graph.bind_groups[0], &[]);
            pass.dispatch_workgroups(1, 1, 1);
            pass.set_pipeline(expand);
            pass.set_bind_group(0, &graph.bind_groups[1], &[]);
            if indirect {
                pass.dispatch_workgroups_indirect(groups, 0);
            } else {
                pass.dispatch_workgroups(*fixed, 1, 1);
            }
        }
        drop(pass);
        encoder.copy_buffer_to_buffer(now, 0, readback, 0, 16);
        encoder.copy_buffer_to_buffer(&graph.queue, 0, readback, 16, 4);
        let commands = encoder.finish();

        // Rung 11, submit and wait.
        queue.submit([commands]);

        // Rung 12, map and read: past `end` there is the tail, unless nothing was found.
        let now = read::<u32>(device, errors, readback)?;

        (submits, dispatches) = (submits + 1, dispatches + levels);
        if now[2] == now[4] {
            let groups = if indirect { now[3] } else { dispatches * fixed };
            return Ok([now[0].max(1), groups, submits]);
        }
    }
}

fn lesson(scale: Option<u32>) -> Result<()> {
    let [open, checked] = [setup(false)?, setup(true)?];
    header(&checked.adapter, checked.flags);
    say("beside  a device without VALIDATION_INDIRECT_CALL; rows with it say \"checked\"");
    let small = upload_graph(&open, &rmat(SCALE_SLOW), 0)?;
    search(&open, &small, BATCH, true)?;
    let [probe] = timed(|| search(&open, &small, BATCH, true))()?;
    let scale = scale.unwrap_or(if probe > SLOW { SCALE_SLOW } else { SCALE });
    say(format_args!("runs    scale {scale}; medians of 15, or of 3 and more in half a second"));
    // Of an arc: half its edge, head and tail on the host; the head staged, and on a device.
    memory((5 * 4 * 32) << scale)?;

    say("\n| dispatch          | by   |  asked |   came | µs among many |");
    say("|-------------------|------|-------:|-------:|--------------:|");
    let (mut came, mut took, past) = (Vec::new(), Vec::new(), MOST_GROUPS + 1);
    for (dispatch, gpu, by, counts) in [
        ("direct", &open, "host", &[0, 1, MOST_GROUPS][..]),
        ("indirect", &open, "host", &[0, 1, MOST_GROUPS]),
        ("indirect", &open, "plan", &[past]),
        ("indirect, checked", &checked, "host", &[0, 1, MOST_GROUPS, past]),
        ("indirect, checked", &checked, "plan", &[past]),
    ] {
        for &asked in counts {
            let groups = match by {
                "plan" => planned(gpu, asked * WIDTH / LANES),
                _ => holding(gpu, "asked", &[asked, 1, 1], BufferUsages::INDIRECT),
            };
            let (real, us) = price(gpu, asked, (dispatch != "direct").then_some(&groups))?;
            say(format_args!("| {dispatch:<17} | {by:<4} | {asked:>6} | {real:>6} | {us:>13.2} |"));
            came.push(real);
            took.push(us);
        }
    }
    say("\nRefused, and how many workgroups come after the cure:");
    let [one, plain] = [RESULT | BufferUsages::INDIRECT, RESULT]
        .map(|usage| holding(&checked, "groups", &[1; 4], usage));
    for (mistake, groups, offset, bound, cure) in [
        ("No INDIRECT", &plain, 0, &plain, 0),
        ("Offset 2", &one, 2, &plain, 4),
        ("Bound as well", &one, 0, &one, 0),
    ] {
        let text = caught_call(&checked, groups, offset, bound).err().unwrap_or("no error".into());
        let cured = caught_call(&checked, &one, cure, &plain)?;
        say(format_args!("{mistake}: {text} Cured: {cured} came."));
    }

    say("\n| graph | search         | levels |   groups | submits |       µs |  µs/level |");
    say("|-------|----------------|-------:|---------:|--------:|---------:|----------:|");
    let (mut times, rows) = (Vec::new(), ROWS.min(2 << (scale / 2)));
    let square = grid(((1 << scale) / rows).max(1), rows);
    let (mut arcs, path) = (Vec::new(), grid(1, rows));
    let card = open.adapter.get_info().device_type != wgpu::DeviceType::Cpu;
    let graphs = [("R-MAT", rmat(scale)), ("grid", square), ("path", path)];
    for (name, graph) in &graphs {
        let source = (0..).find(|&vertex| !graph.heads(vertex).is_empty()).unwrap_or(0);
        let (exact, mut counts) = (cpu_queue(graph, source), [0; 3]);
        let mut row = |what: &str, [levels, groups, submits]: [u32; 3], us| {
            let (row, each) =
                (format!("| {name:<5} | {what:<14} | {levels:>6}"), f64::from(levels));
            let row = format!("{row} | {groups:>8} | {submits:>7} | {us:>8.1}");
            say(format_args!("{row} | {:>9.3} |", us / each));
            times.push(us);
        };
        for (what, gpu) in [("fixed", &open), ("indirect", &open), ("checked", &checked)] {
            let resident = upload_graph(gpu, graph, source)?;
            let call = || search(gpu, &resident, BATCH, what != "fixed");
            // A card at rest lowers its clocks, and takes its time to raise them.
            let begin = Instant::now();
            counts = call()?;
            while card && micros(begin) < 3e5 {
                counts = call()?;
            }
            if found(gpu, &resident)?.0 != exact || cpu_levels(graph, source) != exact {
                return Err(format!("{name}: the depths are not those of the CPU's queue").into());
            }
            row(what, counts, repeat(timed(call))?[0]);
        }
        let [queue] = repeat(timed(|| Ok(cpu_queue(black_box(graph), source))))?;
        row("CPU, a queue", [counts[0], 0, 0], queue);
        let [all] = repeat(timed(|| Ok(cpu_levels(black_box(graph), source))))?;
        row("CPU, all cores", [counts[0], 0, 0], all);
        let reached = |&tail: &u32| exact[tail as usize] != UNSEEN;
        arcs.push(graph.tails().into_iter().filter(reached).count() as f64);
    }
    let [direct, indirect, check] = [took[1], took[4], took[8]];
    let one = format!("{direct:.2} µs, indirect {indirect:.2} µs, checked {check:.2} µs");
    say(format_args!("\nOne workgroup takes {one}."));
    say(format_args!("Of {past} asked for, {} come if checked, {} by plan.", came[10], came[6]));
    let [rmat, grid, path] = [0, 5, 10].map(|row| times[row] / times[row + 1]);
    let over = format!("{rmat:.2}× on R-MAT, {grid:.2}× on the grid, {path:.2}× on the path");
    say(format_args!("`fixed` takes {over}, of indirect's time."));
    let (cpu, rate) = (times[3].min(times[4]) / times[1], arcs[0] / times[1]);
    let cpu = if cpu < 0.1 { format!("{cpu:.5}") } else { format!("{cpu:.2}") };
    say(format_args!("R-MAT: {rate:.0} arcs a µs, {cpu}× as fast as the faster CPU."));
    let notes = format!("12.1 measured {indirect:.2} µs   12.2 measured {check:.2} µs");
    let notes = format!("{notes}   12.3 measured {} groups", came[10]);
    say(format_args!("For notes.md:  {notes}   12.4 measured {cpu}×"));
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
/// The depth of a vertex that no path leads to, or none so far.
pub const UNSEEN: u32 = 0xffff_ffff;
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

/// A device with the kernels of this lesson.
pub struct IndirectGpu {
    adapter: wgpu::Adapter,
    flags: wgpu::InstanceFlags,
    device: wgpu::Device,
    queue: wgpu::Queue,
    errors: flume::Receiver<wgpu::Error>,
    layouts: [wgpu::BindGroupLayout; 2],
    plan: wgpu::ComputePipeline,
    arrive: wgpu::ComputePipeline,
    expand: wgpu::ComputePipeline,
}

/// The rungs of a process that are left once there is a device.
fn indirect_gpu(
    adapter: wgpu::Adapter,
    flags: wgpu::InstanceFlags,
    device: wgpu::Device,
    queue: wgpu::Queue,
    errors: flume::Receiver<wgpu::Error>,
) -> IndirectGpu {
    // Rung 4, shader module.
    let shader =
        device.create_shader_module(wgpu::include_wgsl!("../shaders/12_indirect_dispatch.wgsl"));

    // Rung 5, bind group layout: `groups` is in the first only, and `now` is uniform in the second.
    let uniform = wgpu::BindingType::Buffer {
        ty: wgpu::BufferBindingType::Uniform,
        has_dynamic_offset: false,
        min_binding_size: None,
    };
    let now = wgpu::BindGroupLayoutEntry { ty: uniform, ..storage(1, true) };
    let layouts = [
        &[storage(0, false), storage(1, false), storage(2, false)][..],
        &[storage(0, false), now, storage(2, true), storage(3, true), storage(4, false)],
    ];
    let layouts = layouts.map(|entries| {
        let label = Some("queue, and what it is for");
        device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label, entries })
    });

    // Rung 6, pipeline layout.
    let pipeline_layouts = layouts.each_ref().map(|layout| {
        device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: Some("queue, and what it is for"),
            bind_group_layouts: &[Some(layout)],
            immediate_size: 0,
        })
    });

    // Rung 7, pipeline.
    let [plan, arrive, expand] = [("plan", 0), ("arrive", 0), ("expand", 1)]
        .map(|(name, layout)| pipeline(&device, &pipeline_layouts[layout], &shader, name));

    IndirectGpu { adapter, flags, device, queue, errors, layouts, plan, arrive, expand }
}

/// A graph on the device, and all that searches from one source need.
pub struct IndirectGraph {
    fixed: u32,
    firsts: [wgpu::Buffer; 2],
    start: wgpu::Buffer,
    seed: wgpu::Buffer,
    depths: wgpu::Buffer,
    queue: wgpu::Buffer,
    now: wgpu::Buffer,
    groups: wgpu::Buffer,
    readback: wgpu::Buffer,
    bind_groups: [wgpu::BindGroup; 2],
}

/// A buffer with this content.
pub fn holding(
    gpu: &IndirectGpu,
    label: &str,
    content: &[u32],
    usage: BufferUsages,
) -> wgpu::Buffer {
    let (label, contents) = (Some(label), bytemuck::cast_slice(content));
    let content = wgpu::util::BufferInitDescriptor { label, contents, usage };
    gpu.device.create_buffer_init(&content)
}

/// Submits one pass of what `dispatch` records, with `plan` or `arrive` and their three buffers.
fn pass_with(
    gpu: &IndirectGpu,
    kernel: &wgpu::ComputePipeline,
    bound: [&wgpu::Buffer; 3],
    dispatch: impl FnOnce(&mut wgpu::ComputePass),
) {
    let bind_group =
        bind(&gpu.device, &gpu.layouts[0], &bound.map(|buffer| (buffer, buffer.size())));
    let label = Some("one pass");
    let descriptor = wgpu::CommandEncoderDescriptor { label };
    let mut encoder = gpu.device.create_command_encoder(&descriptor);
    let pass = wgpu::ComputePassDescriptor { label, timestamp_writes: None };
    let mut pass = encoder.begin_compute_pass(&pass);
    pass.set_pipeline(kernel);
    pass.set_bind_group(0, &bind_group, &[]);
    dispatch(&mut pass);
    drop(pass);
    gpu.queue.submit([encoder.finish()]);
}

/// The pieces of a vertex's arcs, as the shader makes them: where each begins in the heads, and ends.
pub fn arc_pieces(graph: &Graph, vertex: u32) -> impl Iterator<Item = [u32; 2]> + Clone {
    let [begin, end] = [0, 1].map(|next| graph.offsets[vertex as usize + next]);
    let each = (end - begin).div_ceil(MOST_PIECES).max(LENGTH);
    (begin..end)
        .step_by(each)
        .map(move |first| [first, end.min(first + each)].map(|arc| arc as u32))
}

/// Refuses a source that is not there, and what does not fit.
pub fn upload_graph(gpu: &IndirectGpu, graph: &Graph, source: u32) -> Result<IndirectGraph> {
    let (device, n) = (&gpu.device, graph.vertices());
    if source as usize >= n {
        return Err(format!("there is no source {source}: the graph has {n} vertices").into());
    }
    let pieces: usize = (0..n as u32).map(|vertex| arc_pieces(graph, vertex).count()).sum();
    fits(device, (4 * n + 4).max(4 * graph.heads.len()).max(8 * pieces + 8) as u64)?;
    // Rung 8, buffers: the queue has room for all pieces of all vertices, each of which it gets once.
    let offsets: Vec<u32> = graph.offsets.iter().map(|&offset| offset as u32).collect();
    let offsets = holding(gpu, "offsets", &offsets, BufferUsages::STORAGE);
    let heads = if pieces == 0 { &[0][..] } else { &graph.heads };
    let heads = holding(gpu, "heads", heads, BufferUsages::STORAGE);
    let mut depths = vec![UNSEEN; n];
    depths[source as usize] = 0;
    let start = holding(gpu, "start", &depths, BufferUsages::COPY_SRC);
    let first = arc_pieces(graph, source);
    let seed = [[first.clone().count() as u32, 0]].into_iter().chain(first).flatten();
    let seed: Vec<u32> = seed.collect();
    let seed = holding(gpu, "seed", &seed, BufferUsages::COPY_SRC);
    let usage = RESULT | BufferUsages::COPY_DST;
    let depths = buffer(device, "depths", start.size(), usage);
    let queue = buffer(device, "queue", 8 * (1 + pieces.max(1)) as u64, usage);
    let now = buffer(device, "now", 24, usage | BufferUsages::UNIFORM);
    // Enough for all pieces in one level: what a host must take, which does not know the levels.
    let fixed = (pieces as u32).div_ceil(WIDTH / LANES).clamp(1, MOST_GROUPS);
    let firsts = [fixed, 0]
        .map(|fixed| holding(gpu, "first", &[0, 0, 0, 0, fixed, 0], BufferUsages::COPY_SRC));
    let groups = buffer(device, "groups", 12, BufferUsages::STORAGE | BufferUsages::INDIRECT);
    let readback = buffer(device, "readback", 20, READBACK);

    // Rung 9, bind group: who writes `groups` binds them; whom they are for must not.
    let first = [&queue, &now, &groups].map(|buffer| (buffer, buffer.size()));
    let second = [&queue, &now, &offsets, &heads, &depths].map(|buffer| (buffer, buffer.size()));
    let bind_groups =
        [bind(device, &gpu.layouts[0], &first), bind(device, &gpu.layouts[1], &second)];

    Ok(IndirectGraph {
        fixed,
        firsts,
        start,
        seed,
        depths,
        queue,
        now,
        groups,
        readback,
        bind_groups,
    })
}

/// The depths that the last search left on the device, and how many pieces it had queued.
pub fn found(gpu: &IndirectGpu, graph: &IndirectGraph) -> Result<(Vec<u32>, u32)> {
    let IndirectGpu { device, queue, errors, .. } = gpu;
    let depths = words(device, queue, errors, &graph.depths, graph.depths.size() / 4)?;
    Ok((depths, words(device, queue, errors, &graph.queue, 1)?[0]))
}

/// What wgpu says of an indirect dispatch, or how many workgroups come of it. As in 06, the scope is
/// open to the end: what is wrong with a dispatch is said at `finish`.
pub fn caught_call(
    gpu: &IndirectGpu,
    groups: &wgpu::Buffer,
    offset: u64,
    bound: &wgpu::Buffer,
) -> std::result::Result<u32, String> {
    let scope = gpu.device.push_error_scope(wgpu::ErrorFilter::Validation);
    let came = arrivals(gpu, bound, |pass| pass.dispatch_workgroups_indirect(groups, offset));
    match pollster::block_on(scope.pop()) {
        Some(error) => Err(error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")),
        None => came.map_err(|error| error.to_string()),
    }
}
