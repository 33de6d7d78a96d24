// Four ways to spread n elements over invocations, all of which add up one total; then two kernels
// that look at the workgroup itself. Integers, so that the total is exact in any order.
//
// In:  input, n u32, or a window of them.   Out: total, one u32, added to by every workgroup.

const WIDTH: u32 = 256u;
// Left open for the host to fill in. wgpu 30 compares neither these nor what it fills in with limits.
override LANES: u32 = 256u;
override WORDS: u32 = 256u;

@group(0) @binding(0) var<storage, read> input: array<u32>;
@group(0) @binding(1) var<storage, read_write> total: atomic<u32>;

var<workgroup> share: atomic<u32>;
var<workgroup> scratch: array<u32, WORDS>;

// One addition to the total for each workgroup; lanes without an element come too, with 0.
fn add(lane: u32, own: u32) {
    atomicAdd(&share, own);
    // Barrier: all lanes, before the first of them takes the workgroup's share away.
    workgroupBarrier();
    if lane == 0u {
        atomicAdd(&total, atomicLoad(&share));
    }
}

fn element(i: u32) -> u32 {
    // Tail: past the end there is 0, which adds nothing.
    if i < arrayLength(&input) {
        return input[i];
    }
    return 0u;
}

@compute @workgroup_size(WIDTH)
fn one_each(@builtin(local_invocation_index) lane: u32, @builtin(workgroup_id) group: vec3<u32>) {
    add(lane, element(group.x * WIDTH + lane));
}

@compute @workgroup_size(WIDTH)
fn four_each(@builtin(local_invocation_index) lane: u32, @builtin(workgroup_id) group: vec3<u32>) {
    // Access: in each of the four loads, neighbours are side by side.
    let first = group.x * 4u * WIDTH + lane;
    let own = element(first) + element(first + WIDTH)
        + element(first + 2u * WIDTH) + element(first + 3u * WIDTH);
    add(lane, own);
}

@compute @workgroup_size(WIDTH)
fn folded(
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    // The fold: rows of groups.x workgroups, counted on from one row to the next.
    add(lane, element((group.y * groups.x + group.x) * WIDTH + lane));
}

@compute @workgroup_size(WIDTH)
fn strided(
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    // Access: in each round, neighbours are side by side; the stride is all invocations there are.
    var own = 0u;
    for (var i = group.x * WIDTH + lane; i < arrayLength(&input); i += groups.x * WIDTH) {
        own += input[i];
    }
    add(lane, own);
}

// How many invocations there are, counted by themselves.
@compute @workgroup_size(LANES)
fn arrive() {
    atomicAdd(&total, 1u);
}

// The sum of 1 to WORDS, kept in workgroup memory between two loops.
@compute @workgroup_size(WIDTH)
fn recall(@builtin(local_invocation_index) lane: u32) {
    for (var i = lane; i < WORDS; i += WIDTH) {
        scratch[i] = i + 1u;
    }
    // Barrier: all lanes, since each then reads at the other end what others wrote.
    workgroupBarrier();
    var own = 0u;
    for (var i = lane; i < WORDS; i += WIDTH) {
        own += scratch[WORDS - 1u - i];
    }
    atomicAdd(&total, own);
}
