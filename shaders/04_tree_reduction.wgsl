// Four ways to bring n elements to one partial per workgroup; then `finish` brings the partials to
// one total. All end in the same tree: core WGSL has no float atomics that could replace it. And a
// `copy`, to measure the memory with.
//
// In:  quads and scalars, one buffer bound twice: n / 4 vec4 to load four at once, n f32 for the rest.
// Out: partials, one f32 per workgroup; total, one f32. Or copied, n / 4 vec4.
//      Binding 2 stands for either: an entry point binds the one of the two that it names.

const WIDTH: u32 = 256u;

@group(0) @binding(0) var<storage, read> quads: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> scalars: array<f32>;
@group(0) @binding(2) var<storage, read_write> partials: array<f32>;
@group(0) @binding(2) var<storage, read_write> copied: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> total: f32;

var<workgroup> scratch: array<f32, WIDTH>;

// The sum of `own` over the workgroup, for lane 0: half of the lanes fall idle at every step.
fn tree(lane: u32, own: f32) -> f32 {
    scratch[lane] = own;
    // Barrier: all lanes, before any reads what another wrote.
    workgroupBarrier();
    for (var half = WIDTH / 2u; half > 0u; half /= 2u) {
        if lane < half {
            scratch[lane] += scratch[lane + half];
        }
        // Barrier: all lanes, the idle ones too, so it stands outside the `if`.
        workgroupBarrier();
    }
    return scratch[0];
}

fn element(i: u32) -> f32 {
    // Tail: past the end there is 0, which adds nothing.
    if i < arrayLength(&scalars) {
        return scalars[i];
    }
    return 0.0;
}

@compute @workgroup_size(WIDTH)
fn one_each(@builtin(local_invocation_index) lane: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let sum = tree(lane, element(group.x * WIDTH + lane));
    if lane == 0u {
        partials[group.x] = sum;
    }
}

@compute @workgroup_size(WIDTH)
fn four_in_a_row(@builtin(local_invocation_index) lane: u32, @builtin(workgroup_id) group: vec3<u32>) {
    // Access: lane k reads 4k, 4k + 1, 4k + 2, 4k + 3; in each step neighbours are 16 bytes apart.
    let first = (group.x * WIDTH + lane) * 4u;
    let own = element(first) + element(first + 1u) + element(first + 2u) + element(first + 3u);
    let sum = tree(lane, own);
    if lane == 0u {
        partials[group.x] = sum;
    }
}

@compute @workgroup_size(WIDTH)
fn four_strided(@builtin(local_invocation_index) lane: u32, @builtin(workgroup_id) group: vec3<u32>) {
    // Access: lane k reads k, k + 256, k + 512, k + 768; in each step neighbours are 4 bytes apart.
    let first = group.x * WIDTH * 4u + lane;
    let own = element(first) + element(first + WIDTH)
        + element(first + 2u * WIDTH) + element(first + 3u * WIDTH);
    let sum = tree(lane, own);
    if lane == 0u {
        partials[group.x] = sum;
    }
}

// Where a workgroup's chunk of the quads begins and ends: whole rounds, the last ones short or empty.
const ROUND: u32 = 4u * WIDTH;
fn chunk(group: u32, groups: u32) -> vec2<u32> {
    let quads_in_all = arrayLength(&scalars) / 4u;
    let length = (quads_in_all + groups * ROUND - 1u) / (groups * ROUND) * ROUND;
    return min(vec2(group, group + 1u) * length, vec2(quads_in_all));
}

@compute @workgroup_size(WIDTH)
fn many(
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let chunk = chunk(group.x, groups.x);
    var i = chunk.x + lane;
    // Four accumulators, so that four loads are under way before the first addition needs its own.
    var a = vec4<f32>();
    var b = vec4<f32>();
    var c = vec4<f32>();
    var d = vec4<f32>();
    // Access: lane k reads 16 bytes at k, neighbours side by side, four times 4 KiB in a round.
    for (; i + 3u * WIDTH < chunk.y; i += ROUND) {
        a += quads[i];
        b += quads[i + WIDTH];
        c += quads[i + 2u * WIDTH];
        d += quads[i + 3u * WIDTH];
    }
    // Tail: less than a round of vec4; then, for the first workgroup, less than a vec4 of scalars.
    for (; i < chunk.y; i += WIDTH) {
        a += quads[i];
    }
    let n = arrayLength(&scalars);
    let last = n / 4u * 4u + lane;
    if group.x == 0u && last < n {
        b.x += scalars[last];
    }
    a = (a + b) + (c + d);
    let sum = tree(lane, (a.x + a.y) + (a.z + a.w));
    if lane == 0u {
        partials[group.x] = sum;
    }
}

fn partial(i: u32) -> f32 {
    if i < arrayLength(&partials) {
        return partials[i];
    }
    return 0.0;
}

// One workgroup, dispatched after the others: between two dispatches there is a barrier for all. It
// is alone on the GPU, so nothing hides the wait for a load: eight at a time are under way.
@compute @workgroup_size(WIDTH)
fn finish(@builtin(local_invocation_index) lane: u32) {
    var own = 0.0;
    for (var i = lane; i < arrayLength(&partials); i += 8u * WIDTH) {
        own += (partial(i) + partial(i + WIDTH)) + (partial(i + 2u * WIDTH) + partial(i + 3u * WIDTH));
        let j = i + 4u * WIDTH;
        own += (partial(j) + partial(j + WIDTH)) + (partial(j + 2u * WIDTH) + partial(j + 3u * WIDTH));
    }
    let sum = tree(lane, own);
    if lane == 0u {
        total = sum;
    }
}

@compute @workgroup_size(WIDTH)
fn copy(
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    // Access and tail: as in `many`, with every vec4 written where it was read; scalars stay behind.
    let chunk = chunk(group.x, groups.x);
    var i = chunk.x + lane;
    for (; i + 3u * WIDTH < chunk.y; i += ROUND) {
        let a = quads[i];
        let b = quads[i + WIDTH];
        let c = quads[i + 2u * WIDTH];
        let d = quads[i + 3u * WIDTH];
        copied[i] = a;
        copied[i + WIDTH] = b;
        copied[i + 2u * WIDTH] = c;
        copied[i + 3u * WIDTH] = d;
    }
    for (; i < chunk.y; i += WIDTH) {
        copied[i] = quads[i];
    }
}
