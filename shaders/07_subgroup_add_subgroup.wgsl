// The tree replaced by two additions over subgroups, with one barrier between: right whatever their
// size, which may be another for each kernel. Needs SUBGROUP; where it is missing this module is
// rejected whole. In a browser `enable subgroups;` goes in front; naga 30 rejects that line.
//
// In:  quads and scalars, one buffer bound twice, as in the plain shader.
// Out: partials and total, likewise; or ranks, one u32 per element; or seen, one vec4 per lane.

const WIDTH: u32 = 256u;
// No subgroup has fewer lanes, anywhere.
const LEAST: u32 = 4u;

@group(0) @binding(0) var<storage, read> quads: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> scalars: array<f32>;
@group(0) @binding(2) var<storage, read_write> partials: array<f32>;
@group(0) @binding(2) var<storage, read_write> ranks: array<u32>;
@group(0) @binding(2) var<storage, read_write> seen: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read_write> total: f32;

var<workgroup> scratch: array<f32, WIDTH / LEAST>;

// The sum of `own` over the workgroup, in the first subgroup; 0 in the others. `place` is a lane's number in its subgroup.
fn workgroup_sum(lane: u32, place: u32, own: f32) -> f32 {
    let sum = subgroupAdd(own);
    // Where no other subgroup writes: it has LEAST lanes or more, side by side. Between are zeros.
    if place == 0u {
        scratch[lane / LEAST] = sum;
    }
    // Barrier: all lanes, before any reads what another subgroup wrote.
    workgroupBarrier();
    // The first subgroup, of which each lane is at its own place, fetches what all of them wrote. It
    // counts its lanes, since not every driver's `subgroup_size` is how many there are.
    let lanes = subgroupAdd(1u);
    var all = 0.0;
    if lane == place {
        for (var i = place; i < WIDTH / LEAST; i += lanes) {
            all += scratch[i];
        }
    }
    // Outside the `if`: what adds over a subgroup is for all lanes to reach, as a barrier is.
    return subgroupAdd(all);
}

fn element(i: u32) -> f32 {
    // Tail: past the end there is 0, which adds nothing.
    if i < arrayLength(&scalars) {
        return scalars[i];
    }
    return 0.0;
}

@compute @workgroup_size(WIDTH)
fn four_strided(
    @builtin(local_invocation_index) lane: u32,
    @builtin(subgroup_invocation_id) place: u32,
    @builtin(workgroup_id) group: vec3<u32>,
) {
    // Access: lane k reads k, k + 256, k + 512, k + 768; in each step neighbours are 4 bytes apart.
    let first = group.x * WIDTH * 4u + lane;
    let own = element(first) + element(first + WIDTH)
        + element(first + 2u * WIDTH) + element(first + 3u * WIDTH);
    let sum = workgroup_sum(lane, place, own);
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
    @builtin(subgroup_invocation_id) place: u32,
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
    let sum = workgroup_sum(lane, place, (a.x + a.y) + (a.z + a.w));
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
fn finish(@builtin(local_invocation_index) lane: u32, @builtin(subgroup_invocation_id) place: u32) {
    var own = 0.0;
    for (var i = lane; i < arrayLength(&partials); i += 8u * WIDTH) {
        own += (partial(i) + partial(i + WIDTH)) + (partial(i + 2u * WIDTH) + partial(i + 3u * WIDTH));
        let j = i + 4u * WIDTH;
        own += (partial(j) + partial(j + WIDTH)) + (partial(j + 2u * WIDTH) + partial(j + 3u * WIDTH));
    }
    let sum = workgroup_sum(lane, place, own);
    if lane == 0u {
        total = sum;
    }
}

var<workgroup> counts: array<u32, WIDTH / LEAST>;

// An exclusive scan: how many elements before this one, in its workgroup, are above a half. It is
// `workgroup_sum` but for two lines: what is before me in my subgroup, and only the subgroups before mine.
@compute @workgroup_size(WIDTH)
fn rank(
    @builtin(local_invocation_index) lane: u32,
    @builtin(subgroup_invocation_id) place: u32,
    @builtin(workgroup_id) group: vec3<u32>,
) {
    let i = group.x * WIDTH + lane;
    let own = select(0u, 1u, element(i) > 0.5);
    let before = subgroupExclusiveAdd(own);
    let sum = subgroupAdd(own);
    if place == 0u {
        counts[lane / LEAST] = sum;
    }
    // Barrier: all lanes, before any reads what another subgroup wrote.
    workgroupBarrier();
    let lanes = subgroupAdd(1u);
    let first = subgroupMin(lane);
    var ahead = 0u;
    for (var j = place; j < first / LEAST; j += lanes) {
        ahead += counts[j];
    }
    let rank = subgroupAdd(ahead) + before;
    // Tail: lanes past the end stay to here, for the others' sake, and write nothing.
    if i < arrayLength(&scalars) {
        ranks[i] = rank;
    }
}

// What a lane is told of its subgroup, and what it finds by counting.
@compute @workgroup_size(WIDTH)
fn census(
    @builtin(local_invocation_index) lane: u32,
    @builtin(subgroup_invocation_id) place: u32,
    @builtin(subgroup_size) size: u32,
) {
    seen[lane] = vec4(size, place, subgroupAdd(1u), subgroupMin(lane));
}
