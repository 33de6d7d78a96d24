// Operators in their plainest shape, all of one kind: every invocation goes over its share in strides.
// `add`, `mix` and `bump` measure constants; the others are what the constants then predict.
//
// In:  a and b, n f32 each; operators of one column read a alone.
// Out: one f32 per workgroup of add, multiply and largest; a word for 32 elements of keep; the counts
//      of histogram and bump, 256; one word of hash and mix. Counts and words are added to.

const WIDTH: u32 = 256u;
const HISTOGRAM_BINS: u32 = 256u;
const KEEP_BLOCK: u32 = 8192u;
const KEEP_ABOVE: f32 = 0.75;
const HASH_ROUNDS: u32 = 16u;
const MIX_STEPS: u32 = 8u;
const BUMPS: u32 = 16u;

@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> partials: array<f32>;
@group(0) @binding(2) var<storage, read_write> words: array<u32>;
@group(0) @binding(2) var<storage, read_write> counts: array<atomic<u32>>;

var<workgroup> scratch: array<f32, WIDTH>;
var<workgroup> bins: array<atomic<u32>, HISTOGRAM_BINS>;

// Lane 0 writes the sum of `own` over the workgroup, or the largest. Sixteen lanes take sixteen each, and one
// lane takes theirs: two barriers.
fn together(lane: u32, group: u32, own: f32, largest: bool) {
    scratch[lane] = own;
    // Barrier: all lanes, before any reads what another wrote.
    workgroupBarrier();
    var mine = own;
    if lane < 16u {
        // Access: lanes 0 to 15 side by side; no two of them touch the same number.
        for (var i = lane + 16u; i < WIDTH; i += 16u) {
            mine = select(mine + scratch[i], max(mine, scratch[i]), largest);
        }
        scratch[lane] = mine;
    }
    // Barrier: all lanes, the idle ones too, so it stands outside the `if`.
    workgroupBarrier();
    if lane == 0u {
        for (var i = 1u; i < 16u; i++) {
            mine = select(mine + scratch[i], max(mine, scratch[i]), largest);
        }
        partials[group] = mine;
    }
}

// In all entry points an invocation begins at `id.x`, and strides by as many as there are of them, so neighbours
// read neighbouring elements. Tail: the guard is the loop's own condition.

@compute @workgroup_size(WIDTH)
fn add(
    @builtin(global_invocation_id) id: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    var own = 0.0;
    for (var i = id.x; i < arrayLength(&a); i += groups.x * WIDTH) {
        own += a[i];
    }
    together(lane, group.x, own, false);
}

@compute @workgroup_size(WIDTH)
fn multiply(
    @builtin(global_invocation_id) id: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    var own = 0.0;
    for (var i = id.x; i < arrayLength(&a); i += groups.x * WIDTH) {
        own += a[i] * b[i];
    }
    together(lane, group.x, own, false);
}

@compute @workgroup_size(WIDTH)
fn largest(
    @builtin(global_invocation_id) id: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    // An invocation past the end has an element all the same: the first, which changes no maximum.
    var own = a[0];
    for (var i = id.x; i < arrayLength(&a); i += groups.x * WIDTH) {
        own = max(own, a[i]);
    }
    together(lane, group.x, own, true);
}

// A bit for each element, 32 to a word: bit k of word w of a block is for its element 256 k + w. So
// neighbours write neighbouring words, and read neighbouring elements.
@compute @workgroup_size(WIDTH)
fn keep(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let n = arrayLength(&a);
    let row = KEEP_BLOCK / 32u;
    for (var word = id.x; word < (n + KEEP_BLOCK - 1u) / KEEP_BLOCK * row; word += groups.x * WIDTH) {
        let first = word / row * KEEP_BLOCK + word % row;
        var bits = 0u;
        for (var bit = 0u; bit < 32u; bit++) {
            // Tail: the last block's missing elements are not above anything.
            let i = first + bit * row;
            if i < n {
                bits |= u32(a[i] > KEEP_ABOVE) << bit;
            }
        }
        words[word] = bits;
    }
}

@compute @workgroup_size(WIDTH)
fn histogram(
    @builtin(global_invocation_id) id: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    for (var i = id.x; i < arrayLength(&a); i += groups.x * WIDTH) {
        atomicAdd(&bins[(bitcast<u32>(a[i]) >> 15u) % HISTOGRAM_BINS], 1u);
    }
    // Barrier: all lanes; then each adds one bin of the workgroup's to the bin of all.
    workgroupBarrier();
    atomicAdd(&counts[lane], atomicLoad(&bins[lane]));
}

@compute @workgroup_size(WIDTH)
fn hash(
    @builtin(global_invocation_id) id: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    var own = 0u;
    for (var i = id.x; i < arrayLength(&a); i += groups.x * WIDTH) {
        var word = bitcast<u32>(a[i]);
        for (var round = 0u; round < HASH_ROUNDS; round++) {
            word = (word ^ (word >> 15u)) * 0x2c1b3c6du;
        }
        own += word;
    }
    add_up(lane, own);
}

// Adds `own` of all invocations to the first word; integers come out the same in any order.
fn add_up(lane: u32, own: u32) {
    atomicAdd(&bins[0], own);
    // Barrier: all lanes, before one of them reads the workgroup's sum.
    workgroupBarrier();
    if lane == 0u {
        atomicAdd(&counts[0], atomicLoad(&bins[0]));
    }
}

// Work and nothing else: six operations a step, on no data.
@compute @workgroup_size(WIDTH)
fn mix(
    @builtin(global_invocation_id) id: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    var own = 0u;
    for (var i = id.x; i < arrayLength(&a); i += groups.x * WIDTH) {
        var word = i;
        for (var step = 0u; step < MIX_STEPS; step++) {
            word = (word ^ (word >> 13u)) * 0x5bd1e995u;
            word = (word ^ (word >> 16u)) + i;
        }
        own += word;
    }
    add_up(lane, own);
}

// Increments and nothing else, at places that a multiplication scatters.
@compute @workgroup_size(WIDTH)
fn bump(
    @builtin(global_invocation_id) id: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    for (var i = id.x; i < arrayLength(&a); i += groups.x * WIDTH) {
        for (var k = 0u; k < BUMPS; k++) {
            atomicAdd(&bins[((i * BUMPS + k) * 0x9e3779b1u) >> 24u], 1u);
        }
    }
    // Barrier: as in `histogram`.
    workgroupBarrier();
    atomicAdd(&counts[lane], atomicLoad(&bins[lane]));
}
