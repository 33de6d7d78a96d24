// What the exhibits run: each kernel does one thing, and where two differ by little, the one is the fault and the
// other its cure. Kernels with a fault in them are valid, and stay inside their buffers.

const WIDTH: u32 = 256u;
// Words of workgroup memory. The host puts another number into the text.
const WORDS: u32 = 64u;
// Invocations in a workgroup, put in when the pipeline is made.
override LANES: u32 = 256u;

// Bound as words, as quads and as triples: no entry point uses two of the three.
@group(0) @binding(0) var<storage, read> input: array<u32>;
@group(0) @binding(0) var<storage, read> quads: array<vec4<u32>>;
@group(0) @binding(0) var<storage, read> triples: array<vec3<u32>>;
@group(0) @binding(1) var<storage, read_write> output: array<atomic<u32>>;

var<workgroup> scratch: array<f32, WIDTH>;
var<workgroup> sum: atomic<u32>;
var<workgroup> words: array<u32, WORDS>;

// Adds up the words. Lane k of a workgroup loads word k of its 256; the guard is for the last workgroup.
@compute @workgroup_size(WIDTH)
fn add_up(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < arrayLength(&input) {
        atomicAdd(&output[0], input[id.x]);
    }
}

// Counts the invocations that there are, so that a tail without a guard is counted too.
@compute @workgroup_size(WIDTH)
fn count_all(@builtin(global_invocation_id) id: vec3<u32>) {
    atomicAdd(&output[0], select(0u, 1u, id.x < 0xffffffffu));
}

// One for a workgroup of one invocation, wherever in the grid it is.
@compute @workgroup_size(1)
fn tally() {
    atomicAdd(&output[0], 1u);
}

@compute @workgroup_size(LANES)
fn arrive() {
    atomicAdd(&output[0], 1u);
}

// Adds up the words, with one atomic addition to the buffer for a whole workgroup.
@compute @workgroup_size(WIDTH)
fn add_up_first(
    @builtin(global_invocation_id) id: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    if id.x < arrayLength(&input) {
        atomicAdd(&sum, input[id.x]);
    }
    // All lanes arrive: what they added is in before lane 0 takes it out.
    workgroupBarrier();
    if lane == 0u {
        atomicAdd(&output[0], atomicLoad(&sum));
    }
}

// The sum of the floats of each workgroup, as bits.
@compute @workgroup_size(WIDTH)
fn tree(
    @builtin(global_invocation_id) id: vec3<u32>,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    scratch[lane] = element(id.x);
    // All lanes arrive, before each step and after the last: a step reads what other lanes wrote.
    workgroupBarrier();
    for (var stride = WIDTH / 2u; stride > 0u; stride /= 2u) {
        if lane < stride {
            scratch[lane] += scratch[lane + stride];
        }
        workgroupBarrier();
    }
    if lane == 0u {
        atomicStore(&output[group.x], bitcast<u32>(scratch[0]));
    }
}

// The fault is that no barrier is here: a lane adds what another has not written yet.
@compute @workgroup_size(WIDTH)
fn tree_unguarded(
    @builtin(global_invocation_id) id: vec3<u32>,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    scratch[lane] = element(id.x);
    for (var stride = WIDTH / 2u; stride > 0u; stride /= 2u) {
        if lane < stride {
            scratch[lane] += scratch[lane + stride];
        }
    }
    if lane == 0u {
        atomicStore(&output[group.x], bitcast<u32>(scratch[0]));
    }
}

// The fault is where the barrier is: only the lanes below `stride` arrive. Made into a pipeline, and never run.
@compute @workgroup_size(WIDTH)
fn tree_divergent(
    @builtin(global_invocation_id) id: vec3<u32>,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    scratch[lane] = element(id.x);
    workgroupBarrier();
    for (var stride = WIDTH / 2u; stride > 0u; stride /= 2u) {
        if lane < stride {
            scratch[lane] += scratch[lane + stride];
            workgroupBarrier();
        }
    }
    if lane == 0u {
        atomicStore(&output[group.x], bitcast<u32>(scratch[0]));
    }
}

// A word as the float that it is, and 0 past the end.
fn element(i: u32) -> f32 {
    if i < arrayLength(&input) {
        return bitcast<f32>(input[i]);
    }
    return 0.0;
}

// Each workgroup raises a flag; the first one counts all flags, too early: a storage barrier is one workgroup's.
@compute @workgroup_size(WIDTH)
fn raise_and_count(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    if lane == 0u {
        atomicStore(&output[1u + group.x], 1u);
    }
    // The 256 lanes of this workgroup arrive, and nobody else.
    storageBarrier();
    if group.x == 0u {
        count(lane);
    }
}

@compute @workgroup_size(WIDTH)
fn raise(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    if lane == 0u {
        atomicStore(&output[1u + group.x], 1u);
    }
}

@compute @workgroup_size(WIDTH)
fn count_raised(@builtin(local_invocation_index) lane: u32) {
    count(lane);
}

// Lane k takes flags k, k + 256, and so on.
fn count(lane: u32) {
    for (var j = 1u + lane; j < arrayLength(&output); j += WIDTH) {
        atomicAdd(&output[0], atomicLoad(&output[j]));
    }
}

// Copies word by word. Where the output is shorter, the rest is written past its end.
@compute @workgroup_size(WIDTH)
fn copy_out(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < arrayLength(&input) {
        atomicStore(&output[id.x], input[id.x]);
    }
}

// Adds up whole quads. What is left at the end is in no quad.
@compute @workgroup_size(1)
fn add_quads() {
    for (var i = 0u; i < arrayLength(&quads); i++) {
        let quad = quads[i];
        atomicAdd(&output[0], quad.x + quad.y + quad.z + quad.w);
    }
}

// What the quads leave, from the same buffer bound as words.
@compute @workgroup_size(1)
fn add_tail() {
    for (var i = arrayLength(&input) / 4u * 4u; i < arrayLength(&input); i++) {
        atomicAdd(&output[0], input[i]);
    }
}

// Adds up the first parts of the triples, of which each begins 16 bytes after the last.
@compute @workgroup_size(1)
fn add_triples() {
    for (var i = 0u; i < arrayLength(&triples); i++) {
        atomicAdd(&output[0], triples[i].x);
    }
}

// Adds 1 to a large float, so many times.
@compute @workgroup_size(1)
fn add_to_large() {
    var large = bitcast<f32>(input[0]);
    for (var i = 0u; i < input[1]; i++) {
        large += 1.0;
    }
    atomicStore(&output[0], u32(large));
}

// The same, apart from the large one, which is added last.
@compute @workgroup_size(1)
fn add_apart() {
    var small = 0.0;
    for (var i = 0u; i < input[1]; i++) {
        small += 1.0;
    }
    atomicStore(&output[0], u32(bitcast<f32>(input[0]) + small));
}

// Counts the rounds of one loop, and adds them to those of the other invocations.
@compute @workgroup_size(1)
fn rounds() {
    var counted = 0u;
    for (var i = 0u; i < input[0]; i++) {
        counted += 1u;
    }
    atomicAdd(&output[0], counted);
}

// Keeps all invocations busy for so many rounds.
@compute @workgroup_size(WIDTH)
fn work(@builtin(global_invocation_id) id: vec3<u32>) {
    var hash = id.x;
    for (var i = 0u; i < input[0]; i++) {
        hash = hash * 747796405u + 2891336453u;
    }
    // Never so, but no compiler knows.
    atomicAdd(&output[0], select(0u, 1u, id.x == 0u || hash == 1u && id.x > 0xfffffff0u));
}

// A float addition out of a compare and an exchange: again, until nobody else came between.
@compute @workgroup_size(WIDTH)
fn add_float(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= arrayLength(&input) {
        return;
    }
    var old = atomicLoad(&output[0]);
    for (var i = 0u; i < 60000u; i++) {
        let ours = bitcast<u32>(bitcast<f32>(old) + f32(input[id.x]));
        let tried = atomicCompareExchangeWeak(&output[0], old, ours);
        if tried.exchanged {
            return;
        }
        old = tried.old_value;
    }
}

// Counts the points in each of 4 cells of length 1. A negative number becomes 0, and lands in the first.
@compute @workgroup_size(1)
fn bin(@builtin(workgroup_id) group: vec3<u32>) {
    let cell = u32(bitcast<f32>(input[group.x]));
    if cell < 4u {
        atomicAdd(&output[cell], 1u);
    }
}

// The same, with the points outside dropped before they become whole numbers.
@compute @workgroup_size(1)
fn bin_inside(@builtin(workgroup_id) group: vec3<u32>) {
    let x = bitcast<f32>(input[group.x]);
    if x >= 0.0 && x < 4.0 {
        atomicAdd(&output[u32(x)], 1u);
    }
}

// Uses every word of `words`, each from the lane that did not write it.
@compute @workgroup_size(WIDTH)
fn recall(@builtin(local_invocation_index) lane: u32) {
    for (var i = lane; i < WORDS; i += WIDTH) {
        words[i] = 1u;
    }
    // All lanes arrive: every word is written before another lane reads it.
    workgroupBarrier();
    for (var i = lane; i < WORDS; i += WIDTH) {
        atomicAdd(&output[0], words[WORDS - 1u - i]);
    }
}
