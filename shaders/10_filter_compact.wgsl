// Boxes against a view: how many meet it, and which. The kernels read alike, and differ in how a
// survivor gets its place: how many atomics go to the one counter, and whether order is kept.
//
// In:  boxes, n vec4 of min x, min y, max x, max y, as the bits of f32; view, one such vec4.
// Out: survivors, the boxes that meet it, side by side; kept, how many. Or counts: how many in all,
//      then for each workgroup, how many in those before it. Or the boxes copied.

const WIDTH: u32 = 256u;
// What a workgroup takes in one round: four boxes for each lane.
const ROUND: u32 = 4u * WIDTH;
const INFINITY: i32 = 0x7f800000;

@group(0) @binding(0) var<storage, read> boxes: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read_write> survivors: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> kept: atomic<u32>;
@group(0) @binding(2) var<storage, read_write> counts: array<u32>;
@group(0) @binding(3) var<uniform> view: vec4<u32>;

// f32 as i32 in the same order: sign and magnitude, both zeros 0, every NaN beyond infinity. Of f32,
// WGSL lets a GPU take the smallest for 0 and NaN for absent; whole numbers are the CPU's.
fn ordered(bits: vec4<u32>) -> vec4<i32> {
    let magnitude = vec4<i32>(bits & vec4(0x7fffffffu));
    return select(magnitude, -magnitude, bits > vec4(0x7fffffffu));
}

// The CPU's `meets`, with 1 for true.
fn meets(box: vec4<u32>) -> u32 {
    let a = ordered(box);
    let b = ordered(view);
    let numbers = all(max(abs(a), abs(b)) <= vec4(INFINITY));
    return u32(numbers && all(a.xy <= a.zw) && all(a.xy <= b.zw) && all(b.xy <= a.zw));
}

fn box(i: u32) -> vec4<u32> {
    // Tail: past the end there is a box of NaN, which meets nothing.
    if i < arrayLength(&boxes) {
        return boxes[i];
    }
    return vec4(0x7fc00000u);
}

fn put(place: u32, box: vec4<u32>) {
    // Tail: a copy's last round; and nothing is written past the end, should there be less room.
    if place < arrayLength(&survivors) {
        survivors[place] = box;
    }
}

// A lane's boxes in one round, and 1 for each that meets the view.
struct Four {
    a: vec4<u32>,
    b: vec4<u32>,
    c: vec4<u32>,
    d: vec4<u32>,
    keep: vec4<u32>,
}

fn take(i: u32) -> Four {
    // Access: lane k reads k, k + 256, k + 512, k + 768; in each step neighbours are side by side.
    let a = box(i);
    let b = box(i + WIDTH);
    let c = box(i + 2u * WIDTH);
    let d = box(i + 3u * WIDTH);
    return Four(a, b, c, d, vec4(meets(a), meets(b), meets(c), meets(d)));
}

fn put_kept(four: Four, places: vec4<u32>) {
    if four.keep.x == 1u { put(places.x, four.a); }
    if four.keep.y == 1u { put(places.y, four.b); }
    if four.keep.z == 1u { put(places.z, four.c); }
    if four.keep.w == 1u { put(places.w, four.d); }
}

// Where a workgroup's chunk of the boxes begins and ends: whole rounds, the same for all its lanes.
fn chunk(group: u32, groups: u32) -> vec2<u32> {
    let rounds = (arrayLength(&boxes) + ROUND - 1u) / ROUND;
    let each = (rounds + groups - 1u) / groups;
    return min(vec2(group, group + 1u) * each, vec2(rounds)) * ROUND;
}

@compute @workgroup_size(WIDTH)
fn copy(
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let chunk = chunk(group.x, groups.x);
    for (var first = chunk.x; first < chunk.y; first += ROUND) {
        let four = take(first + lane);
        put(first + lane, four.a);
        put(first + lane + WIDTH, four.b);
        put(first + lane + 2u * WIDTH, four.c);
        put(first + lane + 3u * WIDTH, four.d);
    }
}

// One atomic for each box that meets the view, all to one address.
@compute @workgroup_size(WIDTH)
fn count_each(
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let chunk = chunk(group.x, groups.x);
    for (var first = chunk.x; first < chunk.y; first += ROUND) {
        let keep = take(first + lane).keep;
        if keep.x == 1u { atomicAdd(&kept, 1u); }
        if keep.y == 1u { atomicAdd(&kept, 1u); }
        if keep.z == 1u { atomicAdd(&kept, 1u); }
        if keep.w == 1u { atomicAdd(&kept, 1u); }
    }
}

var<workgroup> arrived: atomic<u32>;

// How many of the workgroup's chunk meet the view, for all its lanes.
fn count(lane: u32, chunk: vec2<u32>) -> u32 {
    var own = 0u;
    for (var first = chunk.x; first < chunk.y; first += ROUND) {
        let keep = take(first + lane).keep;
        own += keep.x + keep.y + keep.z + keep.w;
    }
    atomicAdd(&arrived, own);
    // Barrier: all lanes, before any reads what all have added.
    workgroupBarrier();
    return atomicLoad(&arrived);
}

// One atomic for each workgroup; its lanes meet in workgroup memory.
@compute @workgroup_size(WIDTH)
fn count_group(
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let chunk = chunk(group.x, groups.x);
    let count = count(lane, chunk);
    if lane == 0u {
        atomicAdd(&kept, count);
    }
}

// What the counter was before, is the place: one atomic for each survivor.
@compute @workgroup_size(WIDTH)
fn append_each(
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let chunk = chunk(group.x, groups.x);
    for (var first = chunk.x; first < chunk.y; first += ROUND) {
        let four = take(first + lane);
        if four.keep.x == 1u { put(atomicAdd(&kept, 1u), four.a); }
        if four.keep.y == 1u { put(atomicAdd(&kept, 1u), four.b); }
        if four.keep.z == 1u { put(atomicAdd(&kept, 1u), four.c); }
        if four.keep.w == 1u { put(atomicAdd(&kept, 1u), four.d); }
    }
}

var<workgroup> base: u32;

// A rank by an atomic in workgroup memory; then one for all survivors of a round to the counter.
@compute @workgroup_size(WIDTH)
fn append_group(
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let chunk = chunk(group.x, groups.x);
    for (var first = chunk.x; first < chunk.y; first += ROUND) {
        let four = take(first + lane);
        var ranks = vec4<u32>();
        if four.keep.x == 1u { ranks.x = atomicAdd(&arrived, 1u); }
        if four.keep.y == 1u { ranks.y = atomicAdd(&arrived, 1u); }
        if four.keep.z == 1u { ranks.z = atomicAdd(&arrived, 1u); }
        if four.keep.w == 1u { ranks.w = atomicAdd(&arrived, 1u); }
        // Barrier: all lanes, before lane 0 reads how many arrived.
        workgroupBarrier();
        if lane == 0u {
            base = atomicAdd(&kept, atomicExchange(&arrived, 0u));
        }
        // Barrier: all lanes, before any reads the base, or arrives for the next round.
        workgroupBarrier();
        put_kept(four, base + ranks);
    }
}

// Order, first of three dispatches: counts, one for each workgroup.
@compute @workgroup_size(WIDTH)
fn tally(
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let count = count(lane, chunk(group.x, groups.x));
    if lane == 0u {
        counts[1u + group.x] = count;
    }
}

var<workgroup> sums: array<vec2<u32>, 2u * WIDTH>;

// The sum of `own` over this lane and those before it. Two halves of `sums` take turns, so that one
// barrier a step will do: nobody writes where others still read.
fn scan(lane: u32, own: vec2<u32>) -> vec2<u32> {
    var sum = own;
    var half = 0u;
    sums[lane] = sum;
    // Barrier: all lanes, before any reads what another wrote.
    workgroupBarrier();
    for (var step = 1u; step < WIDTH; step *= 2u) {
        if lane >= step {
            sum += sums[half + lane - step];
        }
        half = WIDTH - half;
        sums[half + lane] = sum;
        // Barrier: all lanes, those that add nothing too.
        workgroupBarrier();
    }
    return sum;
}

// Order, second: one workgroup turns each count into the sum of those before it, and writes the total.
@compute @workgroup_size(WIDTH)
fn offsets(@builtin(local_invocation_index) lane: u32) {
    // Access: lane k goes through counts k * each to (k + 1) * each, twice; they are few.
    let groups = arrayLength(&counts) - 1u;
    let each = (groups + WIDTH - 1u) / WIDTH;
    let chunk = min(vec2(lane, lane + 1u) * each, vec2(groups)) + 1u;
    var own = 0u;
    for (var i = chunk.x; i < chunk.y; i += 1u) {
        own += counts[i];
    }
    let sum = scan(lane, vec2(own, 0u)).x;
    var before = sum - own;
    for (var i = chunk.x; i < chunk.y; i += 1u) {
        let count = counts[i];
        counts[i] = before;
        before += count;
    }
    if lane == WIDTH - 1u {
        counts[0] = sum;
    }
}

// Order, third: reads the boxes again, and knows what lies before its chunk.
@compute @workgroup_size(WIDTH)
fn place(
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let chunk = chunk(group.x, groups.x);
    var base = counts[1u + group.x];
    for (var first = chunk.x; first < chunk.y; first += ROUND) {
        let four = take(first + lane);
        // Four counts in one scan, 16 bits each, since none of them is above 256.
        let own = four.keep.xy + (four.keep.zw << vec2(16u));
        let before = scan(lane, own) - own;
        let all = sums[WIDTH - 1u];
        // What a lane took in its first step comes before all that was taken in the second, and so on.
        let y = all.x & 0xffffu;
        let z = y + (all.y & 0xffffu);
        let w = z + (all.x >> 16u);
        put_kept(four, base + vec4(0u, y, z, w) + vec4(before & vec2(0xffffu), before >> vec2(16u)));
        base += w + (all.y >> 16u);
        // Barrier: all lanes, before the next round writes to `sums`.
        workgroupBarrier();
    }
}
