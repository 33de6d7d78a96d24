//! 13 failure gallery: each way to fail, where it is raised, what wgpu says, and its cure; and those that say nothing.
//!
//! In:    nothing, for the whole gallery; or an exhibit's name; or `list`, for the names
//! Out:   of each exhibit: the cause, where it was raised, wgpu's text, the cure, what that gave
//! Run:   cargo run --example 13_failure_gallery entry_point
//! Read:  guide/13_failure_gallery.md
//!
//! Rungs: 2 as 02; 3 its own: an exhibit may need a device of its own. The others are spread over the
//! methods of `Room`, each under the name of the call that it makes, for that is where errors are raised.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};
use wgpu::{BufferBinding, BufferSize, BufferUsages, Features, Limits, MapMode};

const HEAD: &str = include_str!("13_failure_gallery.rs");
const SHADER: &str = include_str!("../shaders/13_failure_gallery.wgsl");
const SUBGROUP: &str = include_str!("../shaders/13_failure_gallery_subgroup.wgsl");
const WIDTH: u32 = 256;
/// Elements of most exhibits, all of them 1, and the workgroups that take them.
const N: u32 = 1000;
const GROUPS: u32 = 4;
/// Around a statement that is given `i` and `input`, and is to add 1 to `output[0]`.
const AROUND: [&str; 2] = [
    "@group(0) @binding(0) var<storage, read> input: array<u32>;
     @group(0) @binding(0) var<storage, read> again: array<u32>;
     @group(0) @binding(1) var<storage, read_write> output: array<atomic<u32>>;
     @group(0) @binding(2) var<storage, read> third: array<u32>;
     @compute @workgroup_size(256) fn state(@builtin(global_invocation_id) id: vec3<u32>) {
         let i = id.x;
         if i < arrayLength(&input) {\n",
    "\n} }",
];
/// A buffer to be filled, read by kernels, and copied from.
const FILLED: BufferUsages =
    BufferUsages::STORAGE.union(BufferUsages::COPY_DST).union(BufferUsages::COPY_SRC);
const FLOAT: &str = "@group(0) @binding(1) var<storage, read_write> sum: atomic<f32>;
     @compute @workgroup_size(1) fn add_float() { atomicAdd(&sum, 1.0); }";

pub fn main() {
    // naga logs what it also returns. Whoever wants that twice asks for it by RUST_LOG.
    env_logger::Builder::from_env(env_logger::Env::default().default_filter_or("off")).init();
    let name = exhibit_argument(HEAD);
    if let Err(error) = gallery(name.as_deref()) {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

/// Where an exhibit's first error is raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shelf {
    /// By the call that is at fault.
    Call,
    /// By `finish` or `submit`, when the call that is at fault has long returned.
    Later,
    /// By nothing.
    Never,
}

pub struct Exhibit {
    pub name: &'static str,
    pub shelf: Shelf,
    /// Part of what wgpu says; where it says nothing, what there is to be seen instead.
    pub telling: &'static str,
    pub cause: &'static str,
    pub cure: &'static str,
    /// The chapter that has more to say; or nothing.
    pub see: &'static str,
    /// Runs the faulty version, or the cured one: what it gave, and what is right.
    pub run: fn(&Room, bool) -> Result<[u64; 2]>,
}

pub const SHELVES: [(Shelf, &str); 3] = [
    (Shelf::Call, "raised at the call"),
    (Shelf::Later, "raised later"),
    (Shelf::Never, "never raised"),
];

/// All of it, by shelf, and on each shelf in the order in which a program meets it.
pub const EXHIBITS: &[Exhibit] = &[
    Exhibit {
        name: "limit_refused",
        shelf: Shelf::Call,
        telling: "is better than allowed",
        cause: "the device is asked to have a limit that the adapter does not offer",
        cure: "take, field by field, the worse of what you want and what is offered",
        see: "06_limit_walls",
        run: |gpu, cured| {
            let offered = gpu.adapter.limits();
            let most = offered.max_compute_workgroups_per_dimension.saturating_add(1);
            let asked = Limits { max_compute_workgroups_per_dimension: most, ..least() };
            let asked = if cured { asked.or_worse_values_from(&offered) } else { asked };
            gpu.another(Features::empty(), asked)?.whole("add_up")
        },
    },
    Exhibit {
        name: "feature_refused",
        shelf: Shelf::Call,
        telling: "Unsupported features were requested",
        cause: "the device is asked for a feature that the adapter lacks",
        cure: "ask for `adapter.features() & wanted`, and look at what you got",
        see: "04_tree_reduction",
        run: |gpu, cured| {
            let offered = gpu.adapter.features();
            let missing = Features::all() - offered - Features::all_experimental_mask();
            let Some(wanted) = missing.iter().next() else {
                return not_shown("no feature is missing");
            };
            let asked = if cured { wanted & offered } else { wanted };
            gpu.another(asked, least())?.whole("add_up")
        },
    },
    Exhibit {
        name: "timestamps_unasked",
        shelf: Shelf::Call,
        telling: "are required but not enabled on the device",
        cause: "the adapter has a feature, and the device was not asked to have it",
        cure: "name it in `required_features`",
        see: "02_fixed_tax",
        run: |gpu, cured| {
            let other = if cured { &gpu.needs(Features::TIMESTAMP_QUERY)? } else { gpu };
            other.stamps();
            other.whole("add_up")
        },
    },
    Exhibit {
        name: "shader_name",
        shelf: Shelf::Call,
        telling: "no definition in scope for identifier",
        cause: "a name in the shader is misspelt",
        cure: "spell it as it is declared",
        see: "",
        run: |gpu, cured| {
            gpu.stated(if cured {
                "atomicAdd(&output[0], input[i]);"
            } else {
                "atomicAdd(&output[0], inptu[i]);"
            })
        },
    },
    Exhibit {
        name: "shader_keyword",
        shelf: Shelf::Call,
        telling: "is a reserved keyword",
        cause: "a variable bears a name that WGSL keeps to itself, such as `new`, `final` or `target`",
        cure: "another name",
        see: "",
        run: |gpu, cured| {
            gpu.stated(match cured {
                true => "let ours = input[i]; atomicAdd(&output[0], ours);",
                false => "let new = input[i]; atomicAdd(&output[0], new);",
            })
        },
    },
    Exhibit {
        name: "shader_conversion",
        shelf: Shelf::Call,
        telling: "is expected to be `f32`, but got `u32`",
        cause: "a u32 is put where an f32 is wanted: WGSL converts literals, and no variables",
        cure: "write the conversion, `f32(…)`",
        see: "",
        run: |gpu, cured| {
            gpu.stated(match cured {
                true => "let x: f32 = f32(input[i]); atomicAdd(&output[0], u32(x));",
                false => "let x: f32 = input[i]; atomicAdd(&output[0], u32(x));",
            })
        },
    },
    Exhibit {
        name: "shader_mixed",
        shelf: Shelf::Call,
        telling: "can't work with",
        cause: "an operator is given a u32 and an i32",
        cure: "make both one type; mind the `u` of `0u`",
        see: "",
        run: |gpu, cured| {
            gpu.stated(match cured {
                true => "let zero = 0u; atomicAdd(&output[0], input[i] + zero);",
                false => "let zero = 0i; atomicAdd(&output[0], input[i] + zero);",
            })
        },
    },
    Exhibit {
        name: "shader_let",
        shelf: Shelf::Call,
        telling: "invalid left-hand side of assignment",
        cause: "`let` names a value, and something is assigned to it",
        cure: "write `var`",
        see: "",
        run: |gpu, cured| {
            gpu.stated(match cured {
                true => "var x = input[i]; x *= 1u; atomicAdd(&output[0], x);",
                false => "let x = input[i]; x *= 1u; atomicAdd(&output[0], x);",
            })
        },
    },
    Exhibit {
        name: "shader_read_only",
        shelf: Shelf::Call,
        telling: "doesn't relate to a valid destination for a store",
        cause: "something is stored into a binding that is declared `var<storage, read>`",
        cure: "store elsewhere; or make it `read_write`, in the shader and in its layout",
        see: "",
        run: |gpu, cured| {
            gpu.stated(match cured {
                true => "var x = input[i]; x = 1u; atomicAdd(&output[0], x);",
                false => "input[i] = 1u; atomicAdd(&output[0], 1u);",
            })
        },
    },
    Exhibit {
        name: "shader_plain_atomic",
        shelf: Shelf::Call,
        telling: "atomic operation is done on a pointer to a non-atomic",
        cause: "`atomicAdd` is pointed at a plain number",
        cure: "declare it `atomic<u32>` or `atomic<i32>`, in a storage buffer or in workgroup \
            memory",
        see: "04_tree_reduction",
        run: |gpu, cured| {
            gpu.stated(match cured {
                true => "atomicAdd(&output[0], 1u);",
                false => "var x = 0u; atomicAdd(&x, 1u);",
            })
        },
    },
    Exhibit {
        name: "float_atomics",
        shelf: Shelf::Call,
        telling: "Capability Capabilities(SHADER_FLOAT32_ATOMIC) is required",
        cause: "WGSL has no `atomic<f32>`, and wgpu has it as a feature that the device was not \
            asked for",
        cure: "fold in a tree and add once; or compare and exchange; or ask for the feature, in a \
            module apart",
        see: "04_tree_reduction",
        run: |gpu, cured| {
            if !cured {
                let module = gpu.module(FLOAT);
                return gpu.whole_of(&gpu.pipeline(&module, "add_float"));
            }
            let [bits, right] = gpu.whole("add_float")?;
            Ok([f32::from_bits(bits as u32) as u64, right])
        },
    },
    Exhibit {
        name: "subgroups_unasked",
        shelf: Shelf::Call,
        telling: "Shader requires capability Capabilities(SUBGROUP)",
        cause: "the shader has subgroup functions, and the device was not asked for the feature",
        cure: "ask for it where it is offered; elsewhere, never make that module",
        see: "07_subgroup_add",
        run: |gpu, cured| {
            let other = if cured { &gpu.needs(Features::SUBGROUP)? } else { gpu };
            other.whole_of(&other.pipeline(&other.module(SUBGROUP), "add_by_subgroup"))
        },
    },
    Exhibit {
        name: "subgroup_directive",
        shelf: Shelf::Call,
        telling: "the `subgroups` enable-extension is not yet supported",
        cause: "the shader opens with `enable subgroups;`, which the standard demands and wgpu 30 \
            rejects",
        cure: "leave the line out; for a browser put it in front",
        see: "07_subgroup_add",
        run: |gpu, cured| {
            let gpu = gpu.needs(Features::SUBGROUP)?;
            let line = if cured { "" } else { "enable subgroups;\n" };
            let module = gpu.module(&format!("{line}{SUBGROUP}"));
            gpu.whole_of(&gpu.pipeline(&module, "add_by_subgroup"))
        },
    },
    Exhibit {
        name: "too_many_buffers",
        shelf: Shelf::Call,
        telling: "Too many bindings of type StorageBuffers",
        cause: "a layout has more storage buffers than the device allows in a stage; downlevel has 4",
        cure: "ask for more where more is offered; or put two arrays into one buffer",
        see: "",
        run: |gpu, cured| {
            let limits = Limits { max_storage_buffers_per_shader_stage: 5, ..least() };
            let limits = limits.or_worse_values_from(&gpu.adapter.limits());
            let other = if cured { &gpu.another(Features::empty(), limits)? } else { gpu };
            let five = [0, 1, 2, 3, 4].map(|binding| storage(binding, binding != 1));
            let (layout, kernel) = other.with_layout(&five, &other.module, "add_up");
            let (input, output) = (other.ones(N), other.zeros(1));
            let bound = [&input, &output, &input, &input, &input];
            let group =
                other.group(&layout, &bound.map(|buffer| buffer.as_entire_buffer_binding()));
            other.dispatch(&kernel, &group, [GROUPS, 1, 1]);
            Ok([other.first(&output)?, N.into()])
        },
    },
    Exhibit {
        name: "entry_point",
        shelf: Shelf::Call,
        telling: "Unable to find entry point",
        cause: "the pipeline asks for a function that the module does not have",
        cure: "give the name as it stands after `@compute … fn`",
        see: "",
        run: |gpu, cured| gpu.whole(if cured { "add_up" } else { "main" }),
    },
    Exhibit {
        name: "shader_clash",
        shelf: Shelf::Call,
        telling: "conflict with other resource",
        cause: "an entry point uses two variables with one and the same `@binding`",
        cure: "give each its own number; two may share one if no entry point uses both",
        see: "04_tree_reduction",
        run: |gpu, cured| {
            gpu.stated(match cured {
                true => "atomicAdd(&output[0], input[i]);",
                false => "atomicAdd(&output[0], input[i] * again[i]);",
            })
        },
    },
    Exhibit {
        name: "workgroup_257",
        shelf: Shelf::Call,
        telling: "must be less or equal to the per-dimension limit",
        cause: "the shader declares more invocations in a workgroup than the device allows",
        cure: "stay within `max_compute_invocations_per_workgroup`, 256 unless asked for more",
        see: "06_limit_walls",
        run: |gpu, cured| {
            let width = if cured { "WIDTH: u32 = 256u" } else { "WIDTH: u32 = 257u" };
            let module = gpu.module(&SHADER.replace("WIDTH: u32 = 256u", width));
            gpu.whole_of(&gpu.pipeline(&module, "add_up"))
        },
    },
    Exhibit {
        name: "layout_missing",
        shelf: Shelf::Call,
        telling: "Binding is missing from the pipeline layout",
        cause: "the shader uses a binding that the layout has no entry for",
        cure: "add the entry",
        see: "",
        run: |gpu, cured| {
            let three = [storage(0, true), storage(1, false), storage(2, true)];
            let entries = if cured { &three[..] } else { &three[..2] };
            let module = gpu.module(&AROUND.join("atomicAdd(&output[0], input[i] * third[i]);"));
            let (layout, kernel) = gpu.with_layout(entries, &module, "state");
            let (input, output) = (gpu.ones(N), gpu.zeros(1));
            let bound = [&input, &output, &input].map(|buffer| buffer.as_entire_buffer_binding());
            let group = gpu.group(&layout, &bound[..entries.len()]);
            gpu.dispatch(&kernel, &group, [GROUPS, 1, 1]);
            Ok([gpu.first(&output)?, N.into()])
        },
    },
    Exhibit {
        name: "layout_access",
        shelf: Shelf::Call,
        telling: "doesn't match the shader",
        cause: "the shader has a binding as `read_write`, and the layout as read-only, or the \
            reverse",
        cure: "make the two say the same",
        see: "",
        run: |gpu, cured| {
            let entries = [storage(0, true), storage(1, !cured)];
            let (layout, kernel) = gpu.with_layout(&entries, &gpu.module, "add_up");
            let (input, output) = (gpu.ones(N), gpu.zeros(1));
            let bound = [&input, &output].map(|buffer| buffer.as_entire_buffer_binding());
            gpu.dispatch(&kernel, &gpu.group(&layout, &bound), [GROUPS, 1, 1]);
            Ok([gpu.first(&output)?, N.into()])
        },
    },
    Exhibit {
        name: "override_name",
        shelf: Shelf::Call,
        telling: "not found in the shader",
        cause: "a constant is given that no `override` of the shader bears",
        cure: "use the name of the `override`",
        see: "",
        run: |gpu, cured| {
            let name = if cured { "LANES" } else { "LANE" };
            let kernel = gpu.overridden(name, 64);
            Ok([gpu.total(&kernel, [1, 1, 1])?, 64])
        },
    },
    Exhibit {
        name: "override_zero",
        shelf: Shelf::Call,
        telling: "workgroup_size override isn't strictly positive",
        cause: "the host computed a workgroup size of 0",
        cure: "clamp it to 1 at least",
        see: "",
        run: |gpu, cured| {
            let kernel = gpu.overridden("LANES", if cured { 1 } else { 0 });
            Ok([gpu.total(&kernel, [1, 1, 1])?, 1])
        },
    },
    Exhibit {
        name: "buffer_over_limit",
        shelf: Shelf::Call,
        telling: "is greater than the maximum buffer size",
        cause: "a buffer is larger than the device was asked to allow; the default is 256 MiB, \
            whatever the card has",
        cure: "ask for a larger `max_buffer_size`, or take several buffers",
        see: "06_limit_walls",
        run: |gpu, cured| {
            let small =
                Limits { max_buffer_size: 4 * u64::from(N) - if cured { 0 } else { 4 }, ..least() };
            gpu.another(Features::empty(), small)?.whole("add_up")
        },
    },
    Exhibit {
        name: "init_panics",
        shelf: Shelf::Call,
        telling: "Failed to get mapped range",
        cause: "`create_buffer_init` past a limit has no buffer to fill, and panics, whatever scope \
            is open",
        cure: "compare with the limits before, or use `create_buffer` and `write_buffer`",
        see: "06_limit_walls",
        run: |gpu, cured| {
            use wgpu::util::DeviceExt;
            let small =
                Limits { max_buffer_size: 4 * u64::from(N) - if cured { 0 } else { 4 }, ..least() };
            let gpu = gpu.another(Features::empty(), small)?;
            let (ones, usage) = ([1u32; N as usize], BufferUsages::STORAGE);
            let contents = bytemuck::cast_slice(&ones);
            let descriptor =
                wgpu::util::BufferInitDescriptor { label: Some("input"), contents, usage };
            let scope = gpu.device.push_error_scope(wgpu::ErrorFilter::Validation);
            let input = quietly(|| gpu.device.create_buffer_init(&descriptor));
            drop(scope);
            let (input, output) = (gpu.returned("create_buffer_init", input)?, gpu.zeros(1));
            gpu.dispatch(&gpu.kernel("add_up"), &gpu.pair(&input, &output), [GROUPS, 1, 1]);
            Ok([gpu.first(&output)?, N.into()])
        },
    },
    Exhibit {
        name: "nobody_listens",
        shelf: Shelf::Call,
        telling: "wgpu error: Validation Error",
        cause: "an error finds neither a scope nor a handler, and the handler of wgpu itself panics",
        cure: "give the device a handler with `on_uncaptured_error`",
        see: "01_object_ladder",
        run: |gpu, cured| {
            let descriptor =
                wgpu::DeviceDescriptor { required_limits: least(), ..Default::default() };
            let (device, _) = pollster::block_on(gpu.adapter.request_device(&descriptor))?;
            let (sender, heard) = flume::unbounded();
            if cured {
                device
                    .on_uncaptured_error(std::sync::Arc::new(move |error| _ = sender.send(error)));
            }
            let wrong =
                || buffer(&device, "both", 4, BufferUsages::MAP_READ | BufferUsages::STORAGE);
            drop(gpu.returned("create_buffer", quietly(wrong))?);
            Ok([heard.len() as u64, 1])
        },
    },
    Exhibit {
        name: "map_and_storage",
        shelf: Shelf::Call,
        telling: "usage can only be combined with the opposite `COPY`",
        cause: "a buffer is to be mapped, and to be bound or resolved into as well",
        cure: "take two buffers, and copy from one to the other",
        see: "01_object_ladder",
        run: |gpu, cured| {
            let usage = if cured { RESULT } else { BufferUsages::MAP_READ | BufferUsages::STORAGE };
            let (input, output) = (gpu.ones(N), gpu.buffer("output", 4, usage));
            gpu.dispatch(&gpu.kernel("add_up"), &gpu.pair(&input, &output), [GROUPS, 1, 1]);
            Ok([gpu.first(&output)?, N.into()])
        },
    },
    Exhibit {
        name: "usage_missing",
        shelf: Shelf::Call,
        telling: "do not contain required usage flags",
        cause: "a buffer is bound as storage, and was not made for that",
        cure: "add the usage where the buffer is made",
        see: "",
        run: |gpu, cured| {
            let usage = if cured { RESULT } else { BufferUsages::COPY_SRC };
            let (input, output) = (gpu.ones(N), gpu.buffer("output", 4, usage));
            gpu.dispatch(&gpu.kernel("add_up"), &gpu.pair(&input, &output), [GROUPS, 1, 1]);
            Ok([gpu.first(&output)?, N.into()])
        },
    },
    Exhibit {
        name: "other_device",
        shelf: Shelf::Call,
        telling: "doesn't match Device",
        cause: "a bind group is made of a buffer that belongs to another device",
        cure: "keep one device, and hand it around",
        see: "",
        run: |gpu, cured| {
            let other = gpu.another(Features::empty(), least())?;
            let (input, output) = (if cured { gpu } else { &other }.ones(N), gpu.zeros(1));
            gpu.dispatch(&gpu.kernel("add_up"), &gpu.pair(&input, &output), [GROUPS, 1, 1]);
            Ok([gpu.first(&output)?, N.into()])
        },
    },
    Exhibit {
        name: "binding_over_limit",
        shelf: Shelf::Call,
        telling: "exceeds `max_*_buffer_binding_size` limit",
        cause: "more is bound than the device was asked to allow; the default is 128 MiB, 2^25 words",
        cure: "ask for more where more is offered; or bind windows, one after the other",
        see: "06_limit_walls",
        run: |gpu, cured| {
            let bound = 4 * u64::from(N) - if cured { 0 } else { 4 };
            let small = Limits { max_storage_buffer_binding_size: bound, ..least() };
            gpu.another(Features::empty(), small)?.whole("add_up")
        },
    },
    Exhibit {
        name: "binding_offset",
        shelf: Shelf::Call,
        telling: "`min_storage_buffer_offset_alignment` limit",
        cause: "a window of a buffer begins where no window may",
        cure: "begin at a multiple of 256 bytes",
        see: "06_limit_walls",
        run: |gpu, cured| gpu.window(2 * N, if cured { 256 } else { 4 }, 4 * u64::from(N)),
    },
    Exhibit {
        name: "binding_past_end",
        shelf: Shelf::Call,
        telling: "would overflow buffer size of",
        cause: "a window goes past the end of its buffer",
        cure: "make it as long as what is left",
        see: "06_limit_walls",
        run: |gpu, cured| gpu.window(N, 0, 4 * u64::from(N) + if cured { 0 } else { 4 }),
    },
    Exhibit {
        name: "binding_zero",
        shelf: Shelf::Call,
        telling: "binding size is zero",
        cause: "an empty buffer is bound; it can be made, and that is all",
        cure: "put one word in it, and hand over n",
        see: "01_object_ladder",
        run: |gpu, cured| {
            let (input, output) = (gpu.words(if cured { &[0] } else { &[] }), gpu.zeros(1));
            gpu.dispatch(&gpu.kernel("add_up"), &gpu.pair(&input, &output), [1, 1, 1]);
            Ok([gpu.first(&output)?, 0])
        },
    },
    Exhibit {
        name: "binding_size_6",
        shelf: Shelf::Call,
        telling: "for storage buffers is expected to align to 4",
        cause: "the bytes that are bound are no whole words",
        cure: "round up to 4 when the buffer is made",
        see: "",
        run: |gpu, cured| gpu.window(N, 0, if cured { 4 * u64::from(N) } else { 6 }),
    },
    Exhibit {
        name: "binding_count",
        shelf: Shelf::Call,
        telling: "does not match the number of bindings defined in the bind group layout",
        cause: "a bind group has more or fewer entries than its layout",
        cure: "one entry for each of the layout",
        see: "",
        run: |gpu, cured| {
            let (input, output) = (gpu.ones(N), gpu.zeros(1));
            let both = [&input, &output].map(|buffer| buffer.as_entire_buffer_binding());
            let group = gpu.group(&gpu.layout, if cured { &both } else { &both[..1] });
            gpu.dispatch(&gpu.kernel("add_up"), &group, [GROUPS, 1, 1]);
            Ok([gpu.first(&output)?, N.into()])
        },
    },
    Exhibit {
        name: "write_past_end",
        shelf: Shelf::Call,
        telling: "of the Destination buffer",
        cause: "`write_buffer` is given more than the buffer holds",
        cure: "make the buffer for the data",
        see: "",
        run: |gpu, cured| {
            let input = gpu.buffer("input", 4 * u64::from(if cured { N } else { N - 1 }), FILLED);
            gpu.write(&input, bytemuck::cast_slice(&[1u32; N as usize]));
            gpu.counted(&input)
        },
    },
    Exhibit {
        name: "write_size_6",
        shelf: Shelf::Call,
        telling: "does not respect `COPY_BUFFER_ALIGNMENT`",
        cause: "what is written or copied is no whole number of words",
        cure: "pad it to 4 bytes",
        see: "",
        run: |gpu, cured| {
            let input = gpu.ones(N);
            gpu.write(&input, if cured { &[1, 0, 0, 0, 1, 0, 0, 0] } else { &[1, 0, 0, 0, 1, 0] });
            gpu.counted(&input)
        },
    },
    Exhibit {
        name: "view_unmapped",
        shelf: Shelf::Call,
        telling: "Buffer is not mapped",
        cause: "`get_mapped_range` came before the callback of `map_async`",
        cure: "wait until the callback has run",
        see: "01_object_ladder",
        run: |gpu, cured| {
            let (input, readback) = (gpu.ones(1), gpu.buffer("readback", 4, READBACK));
            gpu.submit(|encoder| encoder.copy_buffer_to_buffer(&input, 0, &readback, 0, 4));
            readback.map_async(MapMode::Read, .., |_| ());
            if cured {
                wait(&gpu.device, &gpu.errors)?;
            }
            let view = gpu.returned("get_mapped_range", readback.get_mapped_range(..))?;
            Ok([view[0].into(), 1])
        },
    },
    Exhibit {
        name: "map_twice",
        shelf: Shelf::Call,
        telling: "Error occurred when trying to async map a buffer",
        cause: "a buffer is to be mapped that is mapped, or waits for it, already",
        cure: "unmap it first, or let a ring of buffers take turns",
        see: "",
        run: |gpu, cured| {
            let readback = gpu.buffer("readback", 4, READBACK);
            let (sender, heard) = flume::unbounded();
            for _ in 0..2 {
                let sender = sender.clone();
                readback.map_async(MapMode::Read, .., move |verdict| _ = sender.send(verdict));
                if cured {
                    wait(&gpu.device, &gpu.errors)?;
                    readback.unmap();
                }
            }
            wait(&gpu.device, &gpu.errors)?;
            for verdict in heard.drain() {
                gpu.returned("the callback", verdict)?;
            }
            Ok([2, 2])
        },
    },
    Exhibit {
        name: "map_usage",
        shelf: Shelf::Call,
        telling: "do not contain required usage flags BufferUsages(MAP_READ)",
        cause: "a buffer is to be mapped that was not made for it",
        cure: "copy into one that was",
        see: "01_object_ladder",
        run: |gpu, cured| {
            let usage = if cured { READBACK } else { RESULT | BufferUsages::COPY_DST };
            let (input, readback) = (gpu.ones(1), gpu.buffer("readback", 4, usage));
            gpu.submit(|encoder| encoder.copy_buffer_to_buffer(&input, 0, &readback, 0, 4));
            let content =
                gpu.step("map_async", || read::<u32>(&gpu.device, &gpu.errors, &readback))?;
            Ok([content[0].into(), 1])
        },
    },
    Exhibit {
        name: "poll_timeout",
        shelf: Shelf::Call,
        telling: "The requested Wait timed out before the submission was completed",
        cause: "the work took longer than the wait was given",
        cure: "give it longer; if that was long enough, print and exit: dropping the queue would \
            wait on",
        see: "",
        run: |gpu, cured| {
            let (input, output) = (gpu.words(&[20_000]), gpu.zeros(1));
            gpu.dispatch(&gpu.kernel("work"), &gpu.pair(&input, &output), [GROUPS, 1, 1]);
            let timeout = if cured { Duration::from_secs(120) } else { Duration::ZERO };
            let patience = wgpu::PollType::Wait { submission_index: None, timeout: Some(timeout) };
            match gpu.device.poll(patience) {
                Ok(_) if !cured => not_shown("the adapter was done at once"),
                polled => gpu.returned("poll", polled).and_then(|_| Ok([gpu.first(&output)?, 1])),
            }
        },
    },
    Exhibit {
        name: "dispatch_65536",
        shelf: Shelf::Later,
        telling: "must be less or equal to 65535",
        cause: "a dispatch has more workgroups in one dimension than 65535",
        cure: "more elements to an invocation, a loop, or rows of workgroups",
        see: "06_limit_walls",
        run: |gpu, cured| {
            let grid = if cured { [32768, 2, 1] } else { [65536, 1, 1] };
            Ok([gpu.total(&gpu.kernel("tally"), grid)?, 65536])
        },
    },
    Exhibit {
        name: "pipeline_missing",
        shelf: Shelf::Later,
        telling: "Compute pipeline must be set",
        cause: "a pass dispatches before it has a pipeline",
        cure: "`set_pipeline` first",
        see: "01_object_ladder",
        run: |gpu, cured| {
            let (kernel, input, output) = (gpu.kernel("add_up"), gpu.ones(N), gpu.zeros(1));
            let group = gpu.pair(&input, &output);
            gpu.pass(|pass| {
                if cured {
                    pass.set_pipeline(&kernel);
                }
                pass.set_bind_group(0, &group, &[]);
                pass.dispatch_workgroups(GROUPS, 1, 1);
            });
            Ok([gpu.first(&output)?, N.into()])
        },
    },
    Exhibit {
        name: "group_missing",
        shelf: Shelf::Later,
        telling: "expects a BindGroup to be set at index 0",
        cause: "a pass dispatches before it has the bind group",
        cure: "`set_bind_group` first",
        see: "01_object_ladder",
        run: |gpu, cured| {
            let (kernel, input, output) = (gpu.kernel("add_up"), gpu.ones(N), gpu.zeros(1));
            let group = gpu.pair(&input, &output);
            gpu.pass(|pass| {
                pass.set_pipeline(&kernel);
                if cured {
                    pass.set_bind_group(0, &group, &[]);
                }
                pass.dispatch_workgroups(GROUPS, 1, 1);
            });
            Ok([gpu.first(&output)?, N.into()])
        },
    },
    Exhibit {
        name: "group_foreign",
        shelf: Shelf::Later,
        telling: "is not compatible with the corresponding",
        cause: "the bind group was made for a layout that is not the pipeline's",
        cure: "make both of one layout",
        see: "01_object_ladder",
        run: |gpu, cured| {
            let (kernel, input, output) = (gpu.kernel("add_up"), gpu.ones(N), gpu.zeros(1));
            let (other, _) =
                gpu.with_layout(&[storage(0, false), storage(1, false)], &gpu.module, "tally");
            let both = [&input, &output].map(|buffer| buffer.as_entire_buffer_binding());
            let group = gpu.group(if cured { &gpu.layout } else { &other }, &both);
            gpu.dispatch(&kernel, &group, [GROUPS, 1, 1]);
            Ok([gpu.first(&output)?, N.into()])
        },
    },
    Exhibit {
        name: "read_and_write",
        shelf: Shelf::Later,
        telling: "BufferUses(STORAGE_READ_WRITE) is an exclusive usage",
        cause: "one dispatch has a buffer bound twice, once for writing",
        cure: "write into another buffer; to read twice is fine",
        see: "04_tree_reduction",
        run: |gpu, cured| {
            let (data, output) = (gpu.ones(N), gpu.zeros(1));
            let output = if cured { &output } else { &data };
            gpu.dispatch(&gpu.kernel("add_up"), &gpu.pair(&data, output), [GROUPS, 1, 1]);
            Ok([gpu.first(output)?, N.into()])
        },
    },
    Exhibit {
        name: "indirect_and_written",
        shelf: Shelf::Later,
        telling: "conflicting usages",
        cause: "a dispatch takes its size from a buffer that it may write to as well",
        cure: "bind the buffer in the pass before, and not in this one",
        see: "",
        run: |gpu, cured| {
            let arguments = gpu.buffer("arguments", 12, FILLED | BufferUsages::INDIRECT);
            gpu.write(&arguments, bytemuck::cast_slice(&[GROUPS, 1, 1]));
            let (kernel, input, output) = (gpu.kernel("add_up"), gpu.ones(N), gpu.zeros(1));
            let output = if cured { &output } else { &arguments };
            let group = gpu.pair(&input, output);
            gpu.pass(|pass| {
                pass.set_pipeline(&kernel);
                pass.set_bind_group(0, &group, &[]);
                pass.dispatch_workgroups_indirect(&arguments, 0);
            });
            Ok([gpu.first(output)?, N.into()])
        },
    },
    Exhibit {
        name: "element_cut",
        shelf: Shelf::Later,
        telling: "where the shader expects 16",
        cause: "what is bound is less than one element of the array: 12 bytes for a vec4",
        cure: "bind one element at least; take what is left at the end as words",
        see: "04_tree_reduction",
        run: |gpu, cured| {
            let (input, output) = (gpu.ones(if cured { 4 } else { 3 }), gpu.zeros(1));
            gpu.dispatch(&gpu.kernel("add_quads"), &gpu.pair(&input, &output), [1, 1, 1]);
            Ok([gpu.first(&output)?, 4])
        },
    },
    Exhibit {
        name: "copy_past_end",
        shelf: Shelf::Later,
        telling: "would end up overrunning the bounds of the Source buffer",
        cause: "a copy is longer than the buffer that it is from, or to",
        cure: "copy what there is",
        see: "",
        run: |gpu, cured| {
            let (input, bytes) = (gpu.ones(N), 4 * u64::from(if cured { N } else { N + 1 }));
            let copy = gpu.buffer("copy", bytes, FILLED);
            gpu.submit(|encoder| encoder.copy_buffer_to_buffer(&input, 0, &copy, 0, bytes));
            gpu.counted(&copy)
        },
    },
    Exhibit {
        name: "copy_in_place",
        shelf: Shelf::Later,
        telling: "Source and destination cannot be the same buffer",
        cause: "a copy is from a buffer into itself",
        cure: "copy through a second one",
        see: "",
        run: |gpu, cured| {
            let (data, copy) = (gpu.ones(2 * N), gpu.buffer("copy", 4 * u64::from(N), FILLED));
            let (from, to) = (4 * u64::from(N), if cured { &copy } else { &data });
            gpu.submit(|encoder| encoder.copy_buffer_to_buffer(&data, from, to, 0, from));
            gpu.counted(to)
        },
    },
    Exhibit {
        name: "copy_usage",
        shelf: Shelf::Later,
        telling: "do not contain required usage flags BufferUsages(COPY_SRC)",
        cause: "a copy is from a buffer that was not made for it",
        cure: "add the usage where the buffer is made",
        see: "",
        run: |gpu, cured| {
            let usage = if cured { RESULT } else { BufferUsages::STORAGE };
            let (input, output) = (gpu.ones(N), gpu.buffer("output", 4, usage));
            gpu.dispatch(&gpu.kernel("add_up"), &gpu.pair(&input, &output), [GROUPS, 1, 1]);
            Ok([gpu.first(&output)?, N.into()])
        },
    },
    Exhibit {
        name: "indirect_usage",
        shelf: Shelf::Later,
        telling: "do not contain required usage flags BufferUsages(INDIRECT)",
        cause: "a dispatch takes its size from a buffer that was not made for it",
        cure: "add `INDIRECT` where the buffer is made",
        see: "",
        run: |gpu, cured| {
            let usage = if cured { FILLED | BufferUsages::INDIRECT } else { FILLED };
            let arguments = gpu.buffer("arguments", 12, usage);
            gpu.write(&arguments, bytemuck::cast_slice(&[GROUPS, 1, 1]));
            gpu.indirect(&gpu.kernel("add_up"), &arguments, 0, N)
        },
    },
    Exhibit {
        name: "indirect_offset",
        shelf: Shelf::Later,
        telling: "is not a multiple of 4",
        cause: "a dispatch takes its size from a place that is no multiple of 4 bytes",
        cure: "let each three words begin at a multiple of 4",
        see: "",
        run: |gpu, cured| {
            let arguments = gpu.buffer("arguments", 16, FILLED | BufferUsages::INDIRECT);
            gpu.write(&arguments, bytemuck::cast_slice(&[GROUPS, 1, 1, 1]));
            gpu.indirect(&gpu.kernel("add_up"), &arguments, if cured { 0 } else { 2 }, N)
        },
    },
    Exhibit {
        name: "indirect_past_end",
        shelf: Shelf::Later,
        telling: "would overrun buffer of size",
        cause: "a dispatch takes its size from three words of which the last are past the end",
        cure: "make room for all three: 12 bytes",
        see: "",
        run: |gpu, cured| {
            let size = if cured { 12 } else { 8 };
            let arguments = gpu.buffer("arguments", size, FILLED | BufferUsages::INDIRECT);
            gpu.write(&arguments, &bytemuck::cast_slice(&[GROUPS, 1, 1])[..size as usize]);
            gpu.indirect(&gpu.kernel("add_up"), &arguments, 0, N)
        },
    },
    Exhibit {
        name: "resolve_offset",
        shelf: Shelf::Later,
        telling: "Resolve buffer offset has to be aligned to",
        cause: "timestamps are resolved to a place that is no multiple of 256 bytes",
        cure: "give each set of stamps 256 bytes",
        see: "02_fixed_tax",
        run: |gpu, cured| {
            let gpu = gpu.needs(Features::TIMESTAMP_QUERY)?;
            gpu.ticks(true, if cured { 0 } else { 8 })?;
            gpu.whole("add_up")
        },
    },
    Exhibit {
        name: "pass_open",
        shelf: Shelf::Later,
        telling: "Encoder is locked by a previously created render/compute pass",
        cause: "`finish` came while the pass was open; mostly the compiler is there first, with \
            E0499",
        cure: "`drop(pass)`, or put the pass into a block",
        see: "01_object_ladder",
        run: |gpu, cured| {
            let (kernel, input, output) = (gpu.kernel("add_up"), gpu.ones(N), gpu.zeros(1));
            let mut encoder = gpu.device.create_command_encoder(&Default::default());
            let mut pass = Some(encoder.begin_compute_pass(&Default::default()).forget_lifetime());
            if let Some(pass) = &mut pass {
                pass.set_pipeline(&kernel);
                pass.set_bind_group(0, &gpu.pair(&input, &output), &[]);
                pass.dispatch_workgroups(GROUPS, 1, 1);
            }
            if cured {
                pass = None;
            }
            let commands = gpu.step("finish", || encoder.finish());
            gpu.step("submit", || gpu.queue.submit([commands]));
            gpu.step("drop", || drop(pass));
            Ok([gpu.first(&output)?, N.into()])
        },
    },
    Exhibit {
        name: "still_mapped",
        shelf: Shelf::Later,
        telling: "is still mapped",
        cause: "what is submitted uses a buffer that the host has mapped",
        cure: "`unmap` it before",
        see: "08_upload_ring",
        run: |gpu, cured| {
            let (input, readback) = (gpu.ones(1), gpu.buffer("readback", 4, READBACK));
            readback.map_async(MapMode::Read, .., |_| ());
            wait(&gpu.device, &gpu.errors)?;
            if cured {
                readback.unmap();
            }
            gpu.submit(|encoder| encoder.copy_buffer_to_buffer(&input, 0, &readback, 0, 4));
            if !cured {
                readback.unmap();
            }
            Ok([read::<u32>(&gpu.device, &gpu.errors, &readback)?[0].into(), 1])
        },
    },
    Exhibit {
        name: "buffer_destroyed",
        shelf: Shelf::Later,
        telling: "has been destroyed",
        cause: "what is submitted uses a buffer after its `destroy`",
        cure: "drop it instead: it goes when the last work that needs it is done",
        see: "",
        run: |gpu, cured| {
            let (input, output) = (gpu.ones(N), gpu.zeros(1));
            let group = gpu.pair(&input, &output);
            if !cured {
                input.destroy();
            }
            drop(input);
            gpu.dispatch(&gpu.kernel("add_up"), &group, [GROUPS, 1, 1]);
            Ok([gpu.first(&output)?, N.into()])
        },
    },
    Exhibit {
        name: "override_over_limit",
        shelf: Shelf::Never,
        telling: "nothing: the driver is given a workgroup that nobody has checked",
        cause: "an `override` sets a workgroup's size past the device's limit; wgpu 30 looks at \
            literals only",
        cure: "clamp to `device.limits()` before the number goes in",
        see: "09_workgroup_sweep",
        run: |gpu, cured| {
            // Within the adapter's own limit, so that the driver keeps its promise.
            let least = Limits {
                max_compute_invocations_per_workgroup: 64,
                max_compute_workgroup_size_x: 64,
                ..least()
            };
            let gpu = gpu.another(Features::empty(), least)?;
            let width = if cured { 128.min(lanes(&gpu.device.limits())) } else { 128 };
            Ok([gpu.total(&gpu.overridden("LANES", width), [1, 1, 1])?, width.into()])
        },
    },
    Exhibit {
        name: "workgroup_memory",
        shelf: Shelf::Never,
        telling: "nothing: the driver is given workgroup memory that nobody has checked",
        cause: "`var<workgroup>` is larger than the device's limit; wgpu 30 compares it with nothing",
        cure: "keep the sum of all `var<workgroup>` within `max_compute_workgroup_storage_size` \
            yourself",
        see: "06_limit_walls",
        run: |gpu, cured| {
            // Within the adapter's own limit, so that the driver keeps its promise.
            let least = Limits { max_compute_workgroup_storage_size: 1024, ..least() };
            let gpu = gpu.another(Features::empty(), least)?;
            let fit = gpu.device.limits().max_compute_workgroup_storage_size / 4;
            let words = if cured { 512.min(fit) } else { 512 };
            let text = SHADER.replace("WORDS: u32 = 64u", &format!("WORDS: u32 = {words}u"));
            let kernel = gpu.pipeline(&gpu.module(&text), "recall");
            Ok([gpu.total(&kernel, [1, 1, 1])?, words.into()])
        },
    },
    Exhibit {
        name: "divergent_barrier",
        shelf: Shelf::Never,
        telling: "nothing; then wrong sums on some cards, or a dispatch that never ends",
        cause: "`workgroupBarrier()` stands in an `if` that only some invocations of a workgroup \
            enter; wgpu 30 takes it",
        cure: "put the barrier where all arrive, outside the `if`",
        see: "04_tree_reduction",
        run: |gpu, cured| {
            if !cured {
                gpu.kernel("tree_divergent");
                return not_shown("made, and not run: some drivers would wait for ever");
            }
            gpu.trees("tree")
        },
    },
    Exhibit {
        name: "missing_barrier",
        shelf: Shelf::Never,
        telling: "a sum that is too small, and another one tomorrow",
        cause: "a lane reads workgroup memory that another lane has not written yet",
        cure: "`workgroupBarrier()` between the writing and the reading",
        see: "04_tree_reduction",
        run: |gpu, cured| gpu.trees(if cured { "tree" } else { "tree_unguarded" }),
    },
    Exhibit {
        name: "storage_barrier",
        shelf: Shelf::Never,
        telling: "some of what the other workgroups wrote is not there yet",
        cause: "`storageBarrier()` is taken for one of the whole dispatch; it is one of the \
            workgroup",
        cure: "end the dispatch: the next one, in the same pass, sees all that this one wrote",
        see: "05_bfs_levels",
        run: |gpu, cured| {
            let (groups, input) = (4096, gpu.ones(1));
            let output = gpu.zeros(1 + groups);
            let group = gpu.pair(&input, &output);
            let dispatches = match cured {
                true => vec![(gpu.kernel("raise"), groups), (gpu.kernel("count_raised"), 1)],
                false => vec![(gpu.kernel("raise_and_count"), groups)],
            };
            gpu.pass(|pass| {
                pass.set_bind_group(0, &group, &[]);
                for (kernel, groups) in &dispatches {
                    pass.set_pipeline(kernel);
                    pass.dispatch_workgroups(*groups, 1, 1);
                }
            });
            Ok([gpu.first(&output)?, groups.into()])
        },
    },
    Exhibit {
        name: "tail_guard",
        shelf: Shelf::Never,
        telling: "counts that are too high by up to a workgroup less one",
        cause: "the last workgroup has invocations past the end of the data, and nothing sends them \
            home",
        cure: "`if i < arrayLength(&input)`, or n, around all that an invocation does",
        see: "01_object_ladder",
        run: |gpu, cured| gpu.whole(if cured { "add_up" } else { "count_all" }),
    },
    Exhibit {
        name: "rounded_down",
        shelf: Shelf::Never,
        telling: "the last elements are missing",
        cause: "n ÷ 256 workgroups were dispatched, rounded down",
        cure: "`n.div_ceil(256)`",
        see: "01_object_ladder",
        run: |gpu, cured| {
            let (input, output) = (gpu.ones(N), gpu.zeros(1));
            let groups = if cured { N.div_ceil(WIDTH) } else { N / WIDTH };
            gpu.dispatch(&gpu.kernel("add_up"), &gpu.pair(&input, &output), [groups, 1, 1]);
            Ok([gpu.first(&output)?, N.into()])
        },
    },
    Exhibit {
        name: "groups_for_threads",
        shelf: Shelf::Never,
        telling: "256 times the invocations that were meant, and their time",
        cause: "a dispatch counts workgroups, and was given the number of elements",
        cure: "divide by the workgroup's size, rounding up",
        see: "01_object_ladder",
        run: |gpu, cured| {
            let groups = if cured { 1024 / WIDTH } else { 1024 };
            Ok([gpu.total(&gpu.kernel("count_all"), [groups, 1, 1])?, 1024])
        },
    },
    Exhibit {
        name: "write_dropped",
        shelf: Shelf::Never,
        telling: "results are missing, or the last one is another's",
        cause: "the shader writes past the end of a binding; the write is dropped, or bent to the \
            last element",
        cure: "make the buffer as long as what is written",
        see: "01_object_ladder",
        run: |gpu, cured| {
            let (input, output) = (gpu.ones(N), gpu.zeros(if cured { N } else { N - 100 }));
            gpu.dispatch(&gpu.kernel("copy_out"), &gpu.pair(&input, &output), [GROUPS, 1, 1]);
            Ok([gpu.content(&output)?.iter().map(|word| u64::from(*word)).sum(), N.into()])
        },
    },
    Exhibit {
        name: "vec4_tail",
        shelf: Shelf::Never,
        telling: "up to three elements are missing",
        cause: "an `array<vec4<u32>>` of 7 words has one element; the other three words are in none",
        cure: "bind the buffer a second time as words, and take the tail from there",
        see: "04_tree_reduction",
        run: |gpu, cured| {
            let (input, output) = (gpu.ones(7), gpu.zeros(1));
            let group = gpu.pair(&input, &output);
            gpu.dispatch(&gpu.kernel("add_quads"), &group, [1, 1, 1]);
            if cured {
                gpu.dispatch(&gpu.kernel("add_tail"), &group, [1, 1, 1]);
            }
            Ok([gpu.first(&output)?, 7])
        },
    },
    Exhibit {
        name: "vec3_stride",
        shelf: Shelf::Never,
        telling: "every value but the first is another's",
        cause: "the host packs triples in 12 bytes; an `array<vec3<u32>>` has one every 16",
        cure: "pad each to four words on the host, or declare three words",
        see: "wgsl_beside_cuda",
        run: |gpu, cured| {
            let triples = [[1, 0, 0], [10, 0, 0], [100, 0, 0], [1000, 0, 0]];
            let padded: Vec<u32> = triples.iter().flat_map(|&[x, y, z]| [x, y, z, 0]).collect();
            let input = gpu.words(if cured { &padded } else { triples.as_flattened() });
            let output = gpu.zeros(1);
            gpu.dispatch(&gpu.kernel("add_triples"), &gpu.pair(&input, &output), [1, 1, 1]);
            Ok([gpu.first(&output)?, 1111])
        },
    },
    Exhibit {
        name: "cast_clamps",
        shelf: Shelf::Never,
        telling: "the first cell is too full",
        cause: "`u32(x)` of a negative float is 0, so that points outside are counted in cell 0",
        cure: "compare the float, and drop what is outside, before it becomes a whole number",
        see: "11_density_grid",
        run: |gpu, cured| {
            let points = [-3.0f32, 0.25, 0.5, 9.0, f32::NEG_INFINITY].map(f32::to_bits);
            let (input, output) = (gpu.words(&points), gpu.zeros(4));
            let kernel = gpu.kernel(if cured { "bin_inside" } else { "bin" });
            gpu.dispatch(&kernel, &gpu.pair(&input, &output), [points.len() as u32, 1, 1]);
            Ok([gpu.first(&output)?, 2])
        },
    },
    Exhibit {
        name: "sum_sticks",
        shelf: Shelf::Never,
        telling: "a sum that stays at 16777216",
        cause: "x + 1 is x in f32 from 2^24 on; a sequential sum of ones ends there, on the CPU too",
        cure: "many partial sums, in a tree; and an oracle in f64 or whole numbers",
        see: "04_tree_reduction",
        run: |gpu, cured| {
            let (input, output) =
                (gpu.words(&[(1u32 << 24) as f32, 0.0].map(f32::to_bits)), gpu.zeros(1));
            gpu.queue.write_buffer(&input, 4, bytemuck::bytes_of(&N));
            let kernel = gpu.kernel(if cured { "add_apart" } else { "add_to_large" });
            gpu.dispatch(&kernel, &gpu.pair(&input, &output), [1, 1, 1]);
            Ok([gpu.first(&output)?, (1 << 24) + u64::from(N)])
        },
    },
    Exhibit {
        name: "sum_order",
        shelf: Shelf::Never,
        telling: "the last digits differ from the CPU's, and with atomics from run to run",
        cause: "f32 sums depend on the order, and a GPU has another one than a loop",
        cure: "compare with a sum in f64, and allow what rounding explains",
        see: "01_object_ladder",
        run: |gpu, cured| {
            let data: Vec<f32> = (0..WIDTH).map(|i| 1.0 / (1 + i) as f32).collect();
            let exact: f64 = data.iter().map(|&x| f64::from(x)).sum();
            let input = gpu.words(&data.iter().map(|x| x.to_bits()).collect::<Vec<_>>());
            let output = gpu.zeros(1);
            gpu.dispatch(&gpu.kernel("tree"), &gpu.pair(&input, &output), [1, 1, 1]);
            let [ours, loops] = [f32::from_bits(gpu.first(&output)? as u32), data.iter().sum()];
            gpu.note(format!("the tree says {ours}, the loop {loops}, f64 {exact}"));
            // 8 additions on the way of each element to the top of the tree, each of which rounds.
            let bound = 8.0 * f64::from(f32::EPSILON) * exact;
            let same = if cured { (f64::from(ours) - exact).abs() < bound } else { ours == loops };
            Ok([same.into(), 1])
        },
    },
    Exhibit {
        name: "loop_65536",
        shelf: Shelf::Never,
        telling: "65535 rounds, on llvmpipe alone",
        cause: "llvmpipe ends an invocation's loops after 65535 rounds in all",
        cure: "share long loops out among invocations",
        see: "05_bfs_levels",
        run: |gpu, cured| {
            let (each, groups) = if cured { (1000, 70) } else { (70_000, 1) };
            let (input, output) = (gpu.words(&[each]), gpu.zeros(1));
            gpu.dispatch(&gpu.kernel("rounds"), &gpu.pair(&input, &output), [groups, 1, 1]);
            Ok([gpu.first(&output)?, 70_000])
        },
    },
    Exhibit {
        name: "subgroup_of_32",
        shelf: Shelf::Never,
        telling: "most of the sum is missing, on other adapters",
        cause: "the shader takes subgroups of 32 for granted, as on NVIDIA",
        cure: "count the lanes, or ask each lane for its place",
        see: "07_subgroup_add",
        run: |gpu, cured| {
            let gpu = gpu.needs(Features::SUBGROUP)?;
            let name = if cured { "add_by_subgroup" } else { "add_by_32" };
            gpu.whole_of(&gpu.pipeline(&gpu.module(SUBGROUP), name))
        },
    },
    Exhibit {
        name: "indirect_65536",
        shelf: Shelf::Never,
        telling: "the dispatch does nothing",
        cause: "a shader wrote more than 65535 into the arguments; wgpu makes them 0, 0, 0",
        cure: "fold or clamp in the shader that writes them",
        see: "12_indirect_dispatch",
        run: |gpu, cured| {
            let validated = wgpu::InstanceFlags::VALIDATION_INDIRECT_CALL;
            if !cured && !gpu.flags.contains(validated) {
                return not_shown("validation of indirect calls is off: anything might happen");
            }
            let arguments = gpu.buffer("arguments", 12, FILLED | BufferUsages::INDIRECT);
            let grid = if cured { [32768, 2, 1] } else { [65536, 1, 1] };
            gpu.write(&arguments, bytemuck::cast_slice(&grid));
            gpu.indirect(&gpu.kernel("tally"), &arguments, 0, 65536)
        },
    },
    Exhibit {
        name: "parameters_overwritten",
        shelf: Shelf::Never,
        telling: "every dispatch sees the last value",
        cause: "`write_buffer` between two dispatches of one submit: both writes are done before \
            either runs",
        cure: "a submit after each, or a buffer or an offset for each",
        see: "08_upload_ring",
        run: |gpu, cured| {
            let (kernel, input, output) = (gpu.kernel("add_up"), gpu.words(&[0]), gpu.zeros(1));
            let group = gpu.pair(&input, &output);
            let mut late = Vec::new();
            for value in [1u32, 2] {
                gpu.write(&input, bytemuck::bytes_of(&value));
                let commands =
                    gpu.recorded(|encoder| dispatched(encoder, &kernel, &group, [1, 1, 1]));
                if cured {
                    gpu.queue.submit([commands]);
                } else {
                    late.push(commands);
                }
            }
            gpu.queue.submit(late);
            Ok([gpu.first(&output)?, 3])
        },
    },
    Exhibit {
        name: "copy_too_early",
        shelf: Shelf::Never,
        telling: "zeros, or the last call's result",
        cause: "the copy into the readback buffer is recorded before the dispatch, or not at all",
        cure: "record it after the pass",
        see: "01_object_ladder",
        run: |gpu, cured| {
            let (kernel, input, output) = (gpu.kernel("add_up"), gpu.ones(N), gpu.zeros(1));
            let (group, readback) =
                (gpu.pair(&input, &output), gpu.buffer("readback", 4, READBACK));
            gpu.submit(|encoder| {
                if cured {
                    dispatched(encoder, &kernel, &group, [GROUPS, 1, 1]);
                }
                encoder.copy_buffer_to_buffer(&output, 0, &readback, 0, 4);
                if !cured {
                    dispatched(encoder, &kernel, &group, [GROUPS, 1, 1]);
                }
            });
            Ok([read::<u32>(&gpu.device, &gpu.errors, &readback)?[0].into(), N.into()])
        },
    },
    Exhibit {
        name: "map_without_poll",
        shelf: Shelf::Never,
        telling: "the callback never runs",
        cause: "`map_async` was called, and nobody polls the device",
        cure: "`device.poll`, which runs the callbacks; in a browser the browser does",
        see: "01_object_ladder",
        run: |gpu, cured| {
            let (readback, (sender, heard)) =
                (gpu.buffer("readback", 4, READBACK), flume::unbounded());
            readback.map_async(MapMode::Read, .., move |verdict| _ = sender.send(verdict.is_ok()));
            std::thread::sleep(Duration::from_millis(50));
            if cured {
                wait(&gpu.device, &gpu.errors)?;
            }
            Ok([heard.len() as u64, 1])
        },
    },
    Exhibit {
        name: "scope_elsewhere",
        shelf: Shelf::Never,
        telling: "the scope is empty; the handler of the device has the error",
        cause: "an error scope hears its own thread, and the error was raised by another",
        cure: "open the scope in the thread that makes the call",
        see: "06_limit_walls",
        run: |gpu, cured| {
            let device = gpu.device.clone();
            let wrong = move |scoped: bool| {
                let scope = scoped.then(|| device.push_error_scope(wgpu::ErrorFilter::Validation));
                buffer(&device, "both", 4, BufferUsages::MAP_READ | BufferUsages::STORAGE);
                scope.is_some_and(|scope| pollster::block_on(scope.pop()).is_some())
            };
            let scope = gpu.device.push_error_scope(wgpu::ErrorFilter::Validation);
            let there = std::thread::spawn(move || wrong(cured)).join();
            let heard = pollster::block_on(scope.pop()).is_some() || there.is_ok_and(|heard| heard);
            gpu.note(format!("the handler got {}", gpu.errors.drain().count()));
            Ok([heard.into(), 1])
        },
    },
    Exhibit {
        name: "device_lost",
        shelf: Shelf::Never,
        telling: "calls go on as if all were well, and nothing comes of them",
        cause: "the device is gone: destroyed, reset by the system, or unplugged",
        cure: "`set_device_lost_callback`; then a new device, and all that hung on it",
        see: "",
        run: |gpu, cured| {
            let (other, (sender, heard)) =
                (gpu.another(Features::empty(), least())?, flume::unbounded());
            let (kernel, input, output) = (other.kernel("add_up"), other.ones(N), other.zeros(1));
            let group = other.pair(&input, &output);
            if cured {
                let tell = move |reason, _| _ = sender.send(reason);
                other.device.set_device_lost_callback(tell);
            }
            other.device.destroy();
            other.dispatch(&kernel, &group, [GROUPS, 1, 1]);
            _ = other.device.poll(wgpu::PollType::Poll);
            heard.try_iter().for_each(|reason| gpu.note(format!("it was told {reason:?}")));
            if cured { gpu.whole("add_up") } else { Ok([0, N.into()]) }
        },
    },
    Exhibit {
        name: "stamps_unwritten",
        shelf: Shelf::Never,
        telling: "a pass that took no time at all",
        cause: "a pass was recorded without its timestamps; unwritten ones are resolved to 0",
        cure: "give the pass its `timestamp_writes`; take 0, and less, for no measurement",
        see: "02_fixed_tax",
        run: |gpu, cured| {
            let gpu = gpu.needs(Features::TIMESTAMP_QUERY)?;
            match gpu.ticks(cured, 0)? {
                0 if cured => not_shown("this driver writes zeros whatever is done"),
                ticks => Ok([(ticks > 0).into(), 1]),
            }
        },
    },
    Exhibit {
        name: "stamps_in_ticks",
        shelf: Shelf::Never,
        telling: "times that are wrong by a constant factor",
        cause: "the difference of two timestamps is taken for nanoseconds; it is ticks",
        cure: "multiply by `queue.get_timestamp_period()`",
        see: "02_fixed_tax",
        run: |gpu, cured| {
            let gpu = gpu.needs(Features::TIMESTAMP_QUERY)?;
            let period = f64::from(gpu.queue.get_timestamp_period());
            if !cured && period == 1.0 {
                return not_shown("a tick is 1 ns here, by chance");
            }
            let ticks = gpu.ticks(true, 0)?;
            let ns = (ticks as f64 * period) as u64;
            Ok([if cured { ns } else { ticks }, ns])
        },
    },
    Exhibit {
        name: "upload_as_kernel",
        shelf: Shelf::Never,
        telling: "a kernel that seems to take as long as its upload",
        cause: "`write_buffer` and `create_buffer_init` queue a copy, which the next submit runs and \
            its wait pays",
        cure: "flush: submit nothing and wait, before the kernel is timed",
        see: "02_fixed_tax",
        run: |gpu, cured| {
            let (data, kernel) = (gpu.buffer("data", 8 << 20, FILLED), gpu.kernel("tally"));
            gpu.total(&kernel, [1, 1, 1])?;
            gpu.write(&data, bytemuck::cast_slice(&vec![1u32; 1 << 21]));
            if cured {
                gpu.queue.submit([]);
                wait(&gpu.device, &gpu.errors)?;
            }
            let start = Instant::now();
            let total = gpu.total(&kernel, [1, 1, 1])?;
            gpu.note(format!(
                "after 8 MiB, a kernel of one invocation took {:.0} µs",
                micros(start)
            ));
            Ok([total, 1])
        },
    },
    Exhibit {
        name: "cold_pipeline",
        shelf: Shelf::Never,
        telling: "the size that is tried first is the slowest, and another one tomorrow",
        cause: "the first call of a kernel is timed, and the driver compiles in it",
        cure: "discard the first two; take the median of the others",
        see: "09_workgroup_sweep",
        run: |gpu, cured| {
            let module = gpu.module(&AROUND.join("atomicAdd(&output[0], 1u);"));
            let mut start = Instant::now();
            let kernel = gpu.pipeline(&module, "state");
            if cured {
                gpu.whole_of(&kernel)?;
                gpu.whole_of(&kernel)?;
                start = Instant::now();
            }
            let total = gpu.whole_of(&kernel)?;
            gpu.note(format!("it took {:.0} µs", micros(start)));
            Ok(total)
        },
    },
    Exhibit {
        name: "contention",
        shelf: Shelf::Never,
        telling: "the right answer, late, and the later the more elements are kept",
        cause: "every invocation adds to one address, and they take turns",
        cure: "add up in the workgroup first, and let one invocation add that",
        see: "11_density_grid",
        run: |gpu, cured| {
            let (n, kernel) = (1 << 18, gpu.kernel(if cured { "add_up_first" } else { "add_up" }));
            let (input, output) = (gpu.ones(n), gpu.zeros(1));
            let group = gpu.pair(&input, &output);
            gpu.dispatch(&kernel, &group, [n / WIDTH, 1, 1]);
            wait(&gpu.device, &gpu.errors)?;
            let start = Instant::now();
            gpu.dispatch(&kernel, &group, [n / WIDTH, 1, 1]);
            wait(&gpu.device, &gpu.errors)?;
            gpu.note(format!("{n} elements took {:.0} µs", micros(start)));
            Ok([gpu.first(&output)?, 2 * u64::from(n)])
        },
    },
    Exhibit {
        name: "idle_lanes",
        shelf: Shelf::Never,
        telling: "the right answer, and lanes that did nothing",
        cause: "the workgroup is no multiple of the subgroup: 48 lanes take the place of 64, where \
            it has 32",
        cure: "try whole multiples only",
        see: "09_workgroup_sweep",
        run: |gpu, cured| {
            let size = gpu.adapter.get_info().subgroup_max_size.max(1);
            let width = if cured { 64 } else { 48u32 };
            let idle = width.next_multiple_of(size) - width;
            gpu.note(format!("with subgroups of {size}, {idle} lanes are idle beside {width}"));
            Ok([gpu.total(&gpu.overridden("LANES", width), [1, 1, 1])?, width.into()])
        },
    },
    Exhibit {
        name: "tuned_elsewhere",
        shelf: Shelf::Never,
        telling: "the right answer, at half the speed, on another kind of adapter",
        cause: "a workgroup size that won on one machine is written into the program",
        cure: "measure on each kind of adapter, within its limits, and keep the winner by its name",
        see: "09_workgroup_sweep",
        run: |gpu, cured| {
            if !cured {
                return not_shown("it takes two kinds of adapter");
            }
            let width = lanes(&gpu.device.limits());
            Ok([gpu.total(&gpu.overridden("LANES", width), [1, 1, 1])?, width.into()])
        },
    },
    Exhibit {
        name: "memory_promised",
        shelf: Shelf::Never,
        telling: "the system ends the process, later",
        cause: "a software adapter grants buffers that the machine has no memory for",
        cure: "compare with what is free before anything is made",
        see: "01_object_ladder",
        run: |_, cured| {
            if !cured {
                return not_shown("it would end this process, and others");
            }
            Ok([memory(1 << 50).is_err().into(), 1])
        },
    },
    Exhibit {
        name: "watchdog",
        shelf: Shelf::Never,
        telling: "the screen freezes; then the device is lost",
        cause: "one dispatch takes seconds, and the system resets the card",
        cure: "several dispatches, each a submit; clamp counts that a shader computes",
        see: "12_indirect_dispatch",
        run: |gpu, cured| {
            if !cured {
                return not_shown("it would take the screen along");
            }
            let (kernel, input, output) = (gpu.kernel("work"), gpu.words(&[100]), gpu.zeros(1));
            for _ in 0..4 {
                gpu.dispatch(&kernel, &gpu.pair(&input, &output), [1, 1, 1]);
            }
            Ok([gpu.first(&output)?, 4])
        },
    },
];

/// How one version of an exhibit ended.
#[derive(Debug)]
pub enum End {
    /// What it gave, and what is right.
    Gave([u64; 2]),
    Failed(String),
    /// Why this adapter cannot show it, or should not be asked to.
    NotShown(String),
}

/// What was seen of one version of an exhibit.
#[derive(Debug)]
pub struct Seen {
    /// Each error: the call that raised it, and wgpu's text.
    pub said: Vec<(&'static str, String)>,
    pub note: String,
    pub end: End,
}

/// The device that most exhibits share. Those that need another one, or ruin it, open their own.
pub fn enter() -> Result<Room> {
    // Rung 1, instance.
    let descriptor = wgpu::InstanceDescriptor::new_without_display_handle_from_env();
    let flags = descriptor.flags;
    let instance = wgpu::Instance::new(descriptor);

    // Rung 2, adapter.
    let adapter = adapter(&instance)?;

    room(&adapter, flags, Features::empty(), least(), Default::default())
}

/// An exhibit's two versions, the faulty one first.
pub fn show(gpu: &Room, exhibit: &Exhibit) -> [Seen; 2] {
    [gpu.watch(exhibit, false), gpu.watch(exhibit, true)]
}

impl Exhibit {
    /// Whether what was seen is what the exhibit says.
    pub fn as_told(&self, seen: &Seen) -> bool {
        match seen.said.first() {
            Some((_, text)) => self.shelf != Shelf::Never && text.contains(self.telling),
            None => self.shelf == Shelf::Never && matches!(seen.end, End::Gave(_)),
        }
    }
}

impl Seen {
    /// Whether it is the right answer, without an error.
    pub fn right(&self) -> bool {
        self.said.is_empty() && matches!(self.end, End::Gave([gave, right]) if gave == right)
    }

    fn note(&self) -> String {
        if self.note.is_empty() { String::new() } else { format!("; {}", self.note) }
    }
}

/// One exhibit, or all of them and how many did what.
fn gallery(name: Option<&str>) -> Result<()> {
    if name == Some("list") {
        list();
        return Ok(());
    }
    let gpu = enter()?;
    header(&gpu.adapter, gpu.flags);
    let mut rows = Vec::new();
    let (mut silent, mut told, mut uncured) = ([0; 2], Vec::new(), Vec::new());
    for (shelf, title) in SHELVES {
        let here = |one: &&Exhibit| one.shelf == shelf && name.is_none_or(|name| name == one.name);
        // All exhibits of the shelf; as told; not shown; cured.
        let mut counts = [0; 4];
        for exhibit in EXHIBITS.iter().filter(here) {
            if counts[0] == 0 {
                say(format_args!("\n==== {title}"));
            }
            let [faulty, cured] = show(&gpu, exhibit);
            print(exhibit, &faulty, &cured);
            let not_shown = matches!(faulty.end, End::NotShown(_)) && faulty.said.is_empty();
            let yes = [true, exhibit.as_told(&faulty), not_shown, cured.right()];
            counts = std::array::from_fn(|i| counts[i] + u32::from(yes[i]));
            if shelf == Shelf::Never && exhibit.as_told(&faulty) {
                silent[usize::from(faulty.right())] += 1;
            }
            told.extend(not_shown.then_some(exhibit.name));
            let excused = matches!(cured.end, End::NotShown(_)) && cured.said.is_empty();
            uncured.extend((!cured.right() && !excused).then_some(exhibit.name));
        }
        rows.push((title, counts));
    }
    if name.is_none() {
        summary(&rows, silent, &told);
    }
    match uncured.as_slice() {
        [] => Ok(()),
        names => {
            Err(format!("the cure failed here: {}; see its lines above", names.join(", ")).into())
        }
    }
}

fn list() {
    for (shelf, title) in SHELVES {
        let here = EXHIBITS.iter().filter(|exhibit| exhibit.shelf == shelf);
        let names: Vec<&str> = here.map(|exhibit| exhibit.name).collect();
        say(format_args!("{title}, {}:", names.len()));
        names.iter().for_each(|name| say(format_args!("    {name}")));
    }
}

fn print(exhibit: &Exhibit, faulty: &Seen, cured: &Seen) {
    let Exhibit { name, cause, cure, see, .. } = exhibit;
    say(format_args!("\n{name}"));
    say(format_args!("  cause   {cause}"));
    let raised = match (faulty.said.as_slice(), &faulty.end) {
        ([(at, _)], _) => format!("by {at}"),
        ([(at, _), .., (last, _)], _) => {
            format!("by {at}; then {} more, the last by {last}", faulty.said.len() - 1)
        }
        ([], End::Gave([gave, right])) if gave == right => {
            format!("by nothing; it gave {gave}, which is right{}", faulty.note())
        }
        ([], End::Gave([gave, right])) => {
            format!("by nothing; it gave {gave}, and {right} is right{}", faulty.note())
        }
        ([], End::Failed(why)) => format!("by nothing that was watched: {why}"),
        ([], End::NotShown(why)) => format!("not shown: {why}"),
    };
    say(format_args!("  raised  {raised}"));
    if let Some((_, text)) = faulty.said.first() {
        say(format_args!("  text    {text}"));
    }
    let as_told = exhibit.as_told(faulty) || matches!(faulty.end, End::NotShown(_));
    if faulty.said.is_empty() || !as_told {
        let what = if as_told { "seen" } else { "but not" };
        say(format_args!("  {what:<7} {}", exhibit.telling));
    }
    say(format_args!("  cure    {cure}"));
    let cured = match (cured.said.first(), &cured.end) {
        (Some((at, text)), _) => format!("no: by {at}: {text}"),
        (None, End::Gave([gave, right])) if gave == right => {
            format!("gave {gave}, which is right{}", cured.note())
        }
        (None, End::Gave([gave, right])) => {
            format!("no: it gave {gave}, and {right} is right{}", cured.note())
        }
        (None, End::Failed(why)) => format!("no: {why}"),
        (None, End::NotShown(why)) => format!("not shown: {why}"),
    };
    say(format_args!("  cured   {cured}"));
    if !see.is_empty() {
        say(format_args!("  more    {}", page(see)));
    }
}

/// The file in guide/ that an exhibit refers to: a chapter, or a page of reference.
pub fn page(see: &str) -> String {
    let folder =
        if see.starts_with(|sign: char| sign.is_ascii_digit()) { "" } else { "reference/" };
    format!("guide/{folder}{see}.md")
}

fn summary(rows: &[(&str, [u32; 4])], [wrong, right]: [u32; 2], told: &[&str]) {
    say("\n| shelf              | exhibits | as told | not shown | cured |");
    say("|--------------------|---------:|--------:|----------:|------:|");
    for (title, [all, as_told, not_shown, cured]) in rows {
        say(format_args!(
            "| {title:<18} | {all:>8} | {as_told:>7} | {not_shown:>9} | {cured:>5} |"
        ));
    }
    say(format_args!(
        "\nOf those that raise nothing, {wrong} gave a wrong answer here, and {right} the right one."
    ));
    if !told.is_empty() {
        say(format_args!("Not shown: {}.", told.join(", ")));
    }
    let [later, never] = [rows[1].1[1], rows[2].1[0]];
    let notes = format!("13.1 measured {later} exhibits   13.2 measured {never} exhibits");
    say(format_args!("For notes.md:  {notes}   13.3 measured {wrong} exhibits"));
}

/// What was said, and what was noted, in a room and in the rooms off it.
#[derive(Default)]
struct Record {
    said: RefCell<Vec<(&'static str, String)>>,
    note: RefCell<String>,
}

/// A device, and what most exhibits need of it.
pub struct Room {
    pub adapter: wgpu::Adapter,
    flags: wgpu::InstanceFlags,
    device: wgpu::Device,
    queue: wgpu::Queue,
    errors: flume::Receiver<wgpu::Error>,
    layout: wgpu::BindGroupLayout,
    pipeline_layout: wgpu::PipelineLayout,
    module: wgpu::ShaderModule,
    record: Rc<Record>,
}

fn room(
    adapter: &wgpu::Adapter,
    flags: wgpu::InstanceFlags,
    required_features: Features,
    required_limits: Limits,
    record: Rc<Record>,
) -> Result<Room> {
    // Rung 3, device and queue.
    let (device, queue) = pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor {
        label: Some("device"),
        required_features,
        required_limits,
        ..Default::default()
    }))?;

    let errors = errors(&device);
    let module = wgpu::include_wgsl!("../shaders/13_failure_gallery.wgsl");
    let module = device.create_shader_module(module);
    let (layout, pipeline_layout) = layouts(&device, &[storage(0, true), storage(1, false)]);
    let adapter = adapter.clone();
    Ok(Room { adapter, flags, device, queue, errors, layout, pipeline_layout, module, record })
}

fn layouts(
    device: &wgpu::Device,
    entries: &[wgpu::BindGroupLayoutEntry],
) -> (wgpu::BindGroupLayout, wgpu::PipelineLayout) {
    let label = Some("input and output");
    let layout = wgpu::BindGroupLayoutDescriptor { label, entries };
    let layout = device.create_bind_group_layout(&layout);
    let bind_group_layouts = &[Some(&layout)];
    let both = wgpu::PipelineLayoutDescriptor { label, bind_group_layouts, immediate_size: 0 };
    let pipeline_layout = device.create_pipeline_layout(&both);
    (layout, pipeline_layout)
}

impl Room {
    /// Runs one version of an exhibit to its end, and takes down what was seen.
    fn watch(&self, exhibit: &Exhibit, cured: bool) -> Seen {
        // For what is raised outside the calls that are watched one by one; open to the end, since what
        // could not be made raises more where it is used.
        let scope = self.device.push_error_scope(wgpu::ErrorFilter::Validation);
        let end = (exhibit.run)(self, cured);
        if let Some(error) = pollster::block_on(scope.pop()) {
            self.raised("another call", &error);
        }
        // Nothing of one version may still run in the next one's time.
        let waited = wait(&self.device, &self.errors);
        let end = match end {
            Ok(gave) => {
                waited.map_or_else(|error| End::Failed(error.to_string()), |()| End::Gave(gave))
            }
            Err(error) if error.is::<NotShown>() => End::NotShown(error.to_string()),
            Err(error) => End::Failed(error.to_string()),
        };
        Seen { said: self.record.said.take(), note: self.record.note.take(), end }
    }

    /// Makes a call under a scope of its own, so that it is known which call raised what.
    fn step<T>(&self, at: &'static str, call: impl FnOnce() -> T) -> T {
        let scope = self.device.push_error_scope(wgpu::ErrorFilter::Validation);
        let made = call();
        if let Some(error) = pollster::block_on(scope.pop()) {
            self.raised(at, &error);
        }
        made
    }

    /// Takes down an error that a call returns, which no scope hears of.
    fn returned<T, E>(&self, at: &'static str, result: std::result::Result<T, E>) -> Result<T>
    where
        E: std::fmt::Display + Into<Box<dyn std::error::Error>>,
    {
        if let Err(error) = &result {
            self.raised(at, error);
        }
        result.map_err(Into::into)
    }

    fn raised(&self, at: &'static str, error: &dyn std::fmt::Display) {
        let text = error.to_string();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        self.record.said.borrow_mut().push((at, text));
    }

    fn note(&self, note: String) {
        *self.record.note.borrow_mut() = note;
    }

    /// A second device, with other features and limits; its record is this one's.
    fn another(&self, features: Features, limits: Limits) -> Result<Room> {
        let other = room(&self.adapter, self.flags, features, limits, self.record.clone());
        self.returned("request_device", other)
    }

    /// A device with a feature that not every adapter has.
    fn needs(&self, feature: Features) -> Result<Room> {
        if !self.adapter.features().contains(feature) {
            return not_shown(&format!("the adapter lacks {feature}"));
        }
        self.another(feature, least())
    }

    fn module(&self, text: &str) -> wgpu::ShaderModule {
        let (label, source) = (Some("exhibit"), wgpu::ShaderSource::Wgsl(text.into()));
        let module = wgpu::ShaderModuleDescriptor { label, source };
        self.step("create_shader_module", || self.device.create_shader_module(module))
    }

    fn pipeline(&self, module: &wgpu::ShaderModule, name: &str) -> wgpu::ComputePipeline {
        let make = || pipeline(&self.device, &self.pipeline_layout, module, name);
        self.step("create_compute_pipeline", make)
    }

    /// A kernel of this lesson's shader.
    fn kernel(&self, name: &str) -> wgpu::ComputePipeline {
        self.pipeline(&self.module, name)
    }

    /// `arrive`, with a number put in for an `override`.
    fn overridden(&self, name: &str, value: u32) -> wgpu::ComputePipeline {
        let constants = &[(name, f64::from(value))];
        let descriptor = wgpu::ComputePipelineDescriptor {
            label: Some("arrive"),
            layout: Some(&self.pipeline_layout),
            module: &self.module,
            entry_point: Some("arrive"),
            compilation_options: wgpu::PipelineCompilationOptions {
                constants,
                ..Default::default()
            },
            cache: None,
        };
        self.step("create_compute_pipeline", || self.device.create_compute_pipeline(&descriptor))
    }

    /// A layout of these entries, and a kernel for it.
    fn with_layout(
        &self,
        entries: &[wgpu::BindGroupLayoutEntry],
        module: &wgpu::ShaderModule,
        name: &str,
    ) -> (wgpu::BindGroupLayout, wgpu::ComputePipeline) {
        let (layout, both) =
            self.step("create_bind_group_layout", || layouts(&self.device, entries));
        let make = || pipeline(&self.device, &both, module, name);
        (layout, self.step("create_compute_pipeline", make))
    }

    fn buffer(&self, label: &str, size: u64, usage: BufferUsages) -> wgpu::Buffer {
        self.step("create_buffer", || buffer(&self.device, label, size, usage))
    }

    fn write(&self, buffer: &wgpu::Buffer, bytes: &[u8]) {
        self.step("write_buffer", || self.queue.write_buffer(buffer, 0, bytes));
    }

    fn words(&self, words: &[u32]) -> wgpu::Buffer {
        let input = self.buffer("input", 4 * words.len() as u64, FILLED);
        self.write(&input, bytemuck::cast_slice(words));
        input
    }

    fn ones(&self, n: u32) -> wgpu::Buffer {
        self.words(&vec![1; n as usize])
    }

    /// A buffer for results; a new one is all zeros.
    fn zeros(&self, n: u32) -> wgpu::Buffer {
        self.buffer("output", 4 * u64::from(n), RESULT)
    }

    fn group(&self, layout: &wgpu::BindGroupLayout, bound: &[BufferBinding]) -> wgpu::BindGroup {
        let resources = bound.iter().cloned().map(wgpu::BindingResource::Buffer);
        let entry = |(binding, resource)| wgpu::BindGroupEntry { binding, resource };
        let entries: Vec<_> = (0..).zip(resources).map(entry).collect();
        let label = Some("input and output");
        let group = wgpu::BindGroupDescriptor { label, layout, entries: &entries };
        self.step("create_bind_group", || self.device.create_bind_group(&group))
    }

    fn pair(&self, input: &wgpu::Buffer, output: &wgpu::Buffer) -> wgpu::BindGroup {
        let both = [input, output].map(|buffer| buffer.as_entire_buffer_binding());
        self.group(&self.layout, &both)
    }

    /// What is recorded wrongly is kept until `finish`.
    fn recorded(&self, record: impl FnOnce(&mut wgpu::CommandEncoder)) -> wgpu::CommandBuffer {
        let label = Some("exhibit");
        let encoder = wgpu::CommandEncoderDescriptor { label };
        let mut encoder = self.device.create_command_encoder(&encoder);
        record(&mut encoder);
        self.step("finish", || encoder.finish())
    }

    fn submit(&self, record: impl FnOnce(&mut wgpu::CommandEncoder)) {
        let commands = self.recorded(record);
        self.step("submit", || self.queue.submit([commands]));
    }

    fn pass(&self, record: impl FnOnce(&mut wgpu::ComputePass)) {
        self.submit(|encoder| record(&mut encoder.begin_compute_pass(&Default::default())));
    }

    fn dispatch(&self, kernel: &wgpu::ComputePipeline, group: &wgpu::BindGroup, grid: [u32; 3]) {
        self.submit(|encoder| dispatched(encoder, kernel, group, grid));
    }

    fn content(&self, buffer: &wgpu::Buffer) -> Result<Vec<u32>> {
        let readback = self.buffer("readback", buffer.size(), READBACK);
        self.submit(|encoder| {
            encoder.copy_buffer_to_buffer(buffer, 0, &readback, 0, buffer.size());
        });
        read(&self.device, &self.errors, &readback)
    }

    /// The first word of a buffer.
    fn first(&self, buffer: &wgpu::Buffer) -> Result<u64> {
        Ok(self.content(buffer)?[0].into())
    }

    /// What a kernel makes of one element, in a grid of workgroups.
    fn total(&self, kernel: &wgpu::ComputePipeline, grid: [u32; 3]) -> Result<u64> {
        let (input, output) = (self.ones(1), self.zeros(1));
        self.dispatch(kernel, &self.pair(&input, &output), grid);
        self.first(&output)
    }

    /// What a kernel makes of N elements.
    fn whole_of(&self, kernel: &wgpu::ComputePipeline) -> Result<[u64; 2]> {
        let (input, output) = (self.ones(N), self.zeros(1));
        self.dispatch(kernel, &self.pair(&input, &output), [GROUPS, 1, 1]);
        Ok([self.first(&output)?, N.into()])
    }

    fn whole(&self, name: &str) -> Result<[u64; 2]> {
        self.whole_of(&self.kernel(name))
    }

    /// What a kernel makes of N elements that consists of this statement.
    fn stated(&self, statement: &str) -> Result<[u64; 2]> {
        self.whole_of(&self.pipeline(&self.module(&AROUND.join(statement)), "state"))
    }

    /// How many of the first N words of a buffer are there to be added up.
    fn counted(&self, input: &wgpu::Buffer) -> Result<[u64; 2]> {
        let output = self.zeros(1);
        self.dispatch(&self.kernel("add_up"), &self.pair(input, &output), [GROUPS, 1, 1]);
        Ok([self.first(&output)?, input.size().min(4 * u64::from(N)) / 4])
    }

    /// The sum of a window of a buffer of n ones.
    fn window(&self, n: u32, offset: u64, size: u64) -> Result<[u64; 2]> {
        let (input, output) = (self.ones(n), self.zeros(1));
        let window = BufferBinding { buffer: &input, offset, size: BufferSize::new(size) };
        let group = self.group(&self.layout, &[window, output.as_entire_buffer_binding()]);
        self.dispatch(&self.kernel("add_up"), &group, [GROUPS, 1, 1]);
        Ok([self.first(&output)?, size / 4])
    }

    /// What a kernel makes of N elements, where the grid comes from a buffer.
    fn indirect(
        &self,
        kernel: &wgpu::ComputePipeline,
        arguments: &wgpu::Buffer,
        offset: u64,
        right: u32,
    ) -> Result<[u64; 2]> {
        let (input, output) = (self.ones(N), self.zeros(1));
        let group = self.pair(&input, &output);
        self.pass(|pass| {
            pass.set_pipeline(kernel);
            pass.set_bind_group(0, &group, &[]);
            pass.dispatch_workgroups_indirect(arguments, offset);
        });
        Ok([self.first(&output)?, right.into()])
    }

    /// The sum of 64 trees over ones.
    fn trees(&self, name: &str) -> Result<[u64; 2]> {
        const TREES: u32 = 64;
        let input = self.words(&[1f32.to_bits(); (TREES * WIDTH) as usize]);
        let output = self.zeros(TREES);
        self.dispatch(&self.kernel(name), &self.pair(&input, &output), [TREES, 1, 1]);
        let sums = self.content(&output)?.into_iter().map(f32::from_bits);
        Ok([sums.sum::<f32>() as u64, (TREES * WIDTH).into()])
    }

    /// Two timestamps.
    fn stamps(&self) -> wgpu::QuerySet {
        let (label, ty, count) = (Some("stamps"), wgpu::QueryType::Timestamp, 2);
        let set = wgpu::QuerySetDescriptor { label, ty, count };
        self.step("create_query_set", || self.device.create_query_set(&set))
    }

    /// The ticks that a pass took, if it was told to take stamps; resolved to this place in a buffer.
    fn ticks(&self, stamped: bool, offset: u64) -> Result<u64> {
        let (kernel, input, output) = (self.kernel("work"), self.words(&[1000]), self.zeros(1));
        let (group, query_set) = (self.pair(&input, &output), &self.stamps());
        let usage = BufferUsages::QUERY_RESOLVE | BufferUsages::COPY_SRC;
        let stamps = self.buffer("stamps", 512, usage);
        let timestamp_writes = stamped.then_some(wgpu::ComputePassTimestampWrites {
            query_set,
            beginning_of_pass_write_index: Some(0),
            end_of_pass_write_index: Some(1),
        });
        self.submit(|encoder| {
            let label = Some("stamped");
            let pass = wgpu::ComputePassDescriptor { label, timestamp_writes };
            let mut pass = encoder.begin_compute_pass(&pass);
            pass.set_pipeline(&kernel);
            pass.set_bind_group(0, &group, &[]);
            pass.dispatch_workgroups(GROUPS, 1, 1);
            drop(pass);
            encoder.resolve_query_set(query_set, 0..2, &stamps, offset);
        });
        let words = self.content(&stamps)?;
        let stamp = |at: usize| u64::from(words[at]) | u64::from(words[at + 1]) << 32;
        Ok(stamp(2).saturating_sub(stamp(0)))
    }
}

/// A pass with one dispatch.
fn dispatched(
    encoder: &mut wgpu::CommandEncoder,
    kernel: &wgpu::ComputePipeline,
    group: &wgpu::BindGroup,
    [x, y, z]: [u32; 3],
) {
    let mut pass = encoder.begin_compute_pass(&Default::default());
    pass.set_pipeline(kernel);
    pass.set_bind_group(0, group, &[]);
    pass.dispatch_workgroups(x, y, z);
}

/// Makes a call that may panic, and returns what it would have printed. Nothing reaches stderr.
fn quietly<T>(call: impl FnOnce() -> T) -> std::result::Result<T, String> {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| ()));
    // Whatever the call left half done is not used afterwards.
    let made = std::panic::catch_unwind(std::panic::AssertUnwindSafe(call));
    std::panic::set_hook(hook);
    made.map_err(|payload| match payload.downcast_ref::<String>() {
        Some(text) => text.clone(),
        None => payload.downcast_ref::<&str>().map_or(String::new(), |text| text.to_string()),
    })
}

/// Why an exhibit is told and not shown.
#[derive(Debug)]
struct NotShown(String);

impl std::fmt::Display for NotShown {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotShown {}

fn not_shown<T>(why: &str) -> Result<T> {
    Err(Box::new(NotShown(why.to_string())))
}

/// What every room asks for, if its exhibit does not need more.
fn least() -> Limits {
    Limits::downlevel_defaults()
}

/// Invocations that a workgroup may have in a row: two limits speak of them.
fn lanes(limits: &Limits) -> u32 {
    limits.max_compute_invocations_per_workgroup.min(limits.max_compute_workgroup_size_x)
}

/// The names of exhibits that are most like a word: those that share most of its pairs of letters.
pub fn nearest(word: &str) -> Vec<&'static str> {
    let pairs = |text: &str| -> Vec<(char, char)> {
        let text = text.to_lowercase();
        let letters: Vec<char> = text.chars().filter(|sign| sign.is_alphanumeric()).collect();
        letters.windows(2).map(|pair| (pair[0], pair[1])).collect()
    };
    let wanted = pairs(word);
    let shared = |name: &str| pairs(name).iter().filter(|pair| wanted.contains(pair)).count();
    let close = |name: &&str| 2 * shared(name) >= wanted.len().max(2);
    let mut names: Vec<_> = EXHIBITS.iter().map(|exhibit| exhibit.name).filter(close).collect();
    names.sort_by_key(|name| (std::cmp::Reverse(shared(name)), name.len()));
    names.truncate(3);
    names
}

/// The one argument, an exhibit's name or `list`, if there is one. `--help` prints the head.
fn exhibit_argument(head: &str) -> Option<String> {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    if words.iter().any(|word| word == "--help" || word == "-h") {
        let head = head.lines().map_while(|line| line.strip_prefix("//!"));
        head.for_each(|line| say(line.strip_prefix(' ').unwrap_or(line)));
        std::process::exit(0);
    }
    let known = |word: &str| word == "list" || EXHIBITS.iter().any(|one| one.name == word);
    match words.as_slice() {
        [] => None,
        [word] if known(word) => Some(word.to_string()),
        _ => {
            let (words, near) = (words.join(" "), nearest(&words.join(" ")));
            let such = if near.is_empty() {
                String::new()
            } else {
                format!(", such as {}", near.join(", "))
            };
            eprintln!(
                "cannot take {words:?}: it takes an exhibit's name{such}, or list, which prints them"
            );
            std::process::exit(2)
        }
    }
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
