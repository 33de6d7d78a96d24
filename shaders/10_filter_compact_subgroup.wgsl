// The append with subgroups: lanes that run together agree on their ranks without memory. With four
// kernels of the plain shader to compare, this one has two. Needs SUBGROUP; in a browser `enable
// subgroups;` goes in front, as 07 tells.
//
// In:  boxes and view, as in the plain shader.   Out: survivors and kept, likewise.

const WIDTH: u32 = 256u;
// What a workgroup takes in one round: four boxes for each lane.
const ROUND: u32 = 4u * WIDTH;
const INFINITY: i32 = 0x7f800000;

@group(0) @binding(0) var<storage, read> boxes: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read_write> survivors: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> kept: atomic<u32>;
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

// The places of a lane's boxes among all that its subgroup keeps in this round, and how many that is.
struct Places {
    own: vec4<u32>,
    count: u32,
}

fn places(keep: vec4<u32>) -> Places {
    // Four counts in one number, 8 bits each, since no subgroup has more than 128 lanes.
    let shift = vec4(0u, 8u, 16u, 24u);
    let own = dot(keep << shift, vec4(1u));
    let before = (vec4(subgroupExclusiveAdd(own)) >> shift) & vec4(0xffu);
    let all = (vec4(subgroupAdd(own)) >> shift) & vec4(0xffu);
    let firsts = vec4(0u, all.x, all.x + all.y, all.x + all.y + all.z);
    return Places(firsts + before, firsts.w + all.w);
}

// One atomic for all that a subgroup keeps in a round. No barrier: nobody waits for another subgroup.
@compute @workgroup_size(WIDTH)
fn append_subgroup(
    @builtin(local_invocation_index) lane: u32,
    @builtin(subgroup_invocation_id) place: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let chunk = chunk(group.x, groups.x);
    for (var first = chunk.x; first < chunk.y; first += ROUND) {
        let four = take(first + lane);
        let places = places(four.keep);
        var base = 0u;
        if place == 0u && places.count > 0u {
            base = atomicAdd(&kept, places.count);
        }
        put_kept(four, subgroupBroadcastFirst(base) + places.own);
    }
}

var<workgroup> arrived: atomic<u32>;
var<workgroup> base: u32;

// The same one level up: subgroups meet in workgroup memory, and one atomic goes to the counter.
@compute @workgroup_size(WIDTH)
fn append_both(
    @builtin(local_invocation_index) lane: u32,
    @builtin(subgroup_invocation_id) place: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let chunk = chunk(group.x, groups.x);
    for (var first = chunk.x; first < chunk.y; first += ROUND) {
        let four = take(first + lane);
        let places = places(four.keep);
        var ahead = 0u;
        if place == 0u {
            ahead = atomicAdd(&arrived, places.count);
        }
        // Barrier: all lanes, before lane 0 reads how many arrived.
        workgroupBarrier();
        if lane == 0u {
            base = atomicAdd(&kept, atomicExchange(&arrived, 0u));
        }
        // Barrier: all lanes, before any reads the base, or arrives for the next round.
        workgroupBarrier();
        put_kept(four, base + subgroupBroadcastFirst(ahead) + places.own);
    }
}
