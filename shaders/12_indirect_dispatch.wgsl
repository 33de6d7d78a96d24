// plan and expand: a breadth-first search whose queue stays on the GPU. `plan` counts what the last level
// left in the queue and writes how many workgroups the next one needs; `expand` runs on exactly that.
// arrive: counts the workgroups that a dispatch really has.
//
// In:  offsets, one u32 per vertex and one more; heads, one per arc; the queue, with the source in it.
// Out: depths, one u32 per vertex. The queue only grows: a level is a slice of it, as on the CPU.

const WIDTH: u32 = 256u;
const UNSEEN: u32 = 0xffffffffu;
// So many lanes share a piece of a vertex's arcs, and take so many arcs of it each at a time.
const LANES: u32 = 8u;
const ARCS: u32 = 4u;
const PIECES: u32 = WIDTH / LANES;
const LENGTH: u32 = LANES * ARCS;
// A vertex that would be more pieces than this is so many, and they are longer.
const MOST_PIECES: u32 = 256u;
// More than that in one dimension is nobody's to dispatch.
const MOST_GROUPS: u32 = 65535u;

// A piece is where in heads it begins, and where it ends.
struct Queue {
    tail: atomic<u32>,
    pieces: array<vec2<u32>>,
}
// The depth that this level gives, its slice of the queue, the workgroups planned so far; how many there
// are in every level if the host fixed that, or 0; and how many there are in this one.
struct Now {
    depth: u32,
    begin: u32,
    end: u32,
    planned: u32,
    fixed: u32,
    all: u32,
}

@group(0) @binding(0) var<storage, read_write> queue: Queue;

@group(0) @binding(1) var<storage, read_write> next: Now;
@group(0) @binding(2) var<storage, read_write> groups: array<u32, 3>;

@group(0) @binding(1) var<uniform> now: Now;
@group(0) @binding(2) var<storage, read> offsets: array<u32>;
@group(0) @binding(3) var<storage, read> heads: array<u32>;
@group(0) @binding(4) var<storage, read_write> depths: array<atomic<u32>>;

@compute @workgroup_size(1)
fn plan() {
    // Counts, rounds up, clamps. Nothing found is no workgroup, and then there is no next depth.
    next.begin = next.end;
    next.end = atomicLoad(&queue.tail);
    let pieces = next.end - next.begin;
    groups = array(min((pieces + PIECES - 1u) / PIECES, MOST_GROUPS), 1u, 1u);
    next.depth += min(pieces, 1u);
    next.planned += groups[0];
    next.all = select(next.fixed, groups[0], next.fixed == 0u);
}

// The length of the pieces of arcs from x to y.
fn length(arcs: vec2<u32>) -> u32 {
    return max(LENGTH, (arcs.y - arcs.x + MOST_PIECES - 1u) / MOST_PIECES);
}

var<workgroup> found: atomic<u32>;
var<workgroup> longer: atomic<u32>;
var<workgroup> slots: vec2<u32>;

@compute @workgroup_size(WIDTH)
fn expand(
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
) {
    // Not `num_workgroups`: on Direct3D 12 that is 0 in an indirect dispatch that is not checked.
    for (var first = now.begin + group.x * PIECES; first < now.end; first += now.all * PIECES) {
        // Tail: past the slice is what others are about to write, and no piece of this level's.
        var piece = vec2<u32>();
        if first + lane / LANES < now.end {
            piece = queue.pieces[first + lane / LANES];
        }
        // Access: the lanes of a piece read neighbouring heads; depths wherever the arcs lead.
        var arc = piece.x + lane % LANES;
        loop {
            var own: array<vec2<u32>, ARCS>;
            var pieces = 0u;
            for (var i = 0u; i < ARCS; i += 1u) {
                own[i] = vec2<u32>();
                if arc < piece.y {
                    let head = heads[arc];
                    // Looks first, for most have been seen. Of all that find it, one gets UNSEEN back.
                    if atomicLoad(&depths[head]) == UNSEEN
                        && atomicExchange(&depths[head], now.depth) == UNSEEN {
                        own[i] = vec2(offsets[head], offsets[head + 1u]);
                        let each = length(own[i]);
                        pieces += (own[i].y - own[i].x + each - 1u) / each;
                    }
                }
                arc += LANES;
            }
            // One atomic on the queue for the whole workgroup, as in 10.
            let place = atomicAdd(&found, pieces);
            if arc < piece.y {
                atomicStore(&longer, 1u);
            }
            // Barrier: all lanes, before lane 0 reads what they found.
            workgroupBarrier();
            if lane == 0u {
                let sum = atomicLoad(&found);
                if sum > 0u {
                    slots.x = atomicAdd(&queue.tail, sum);
                }
                slots.y = atomicLoad(&longer);
                atomicStore(&found, 0u);
                atomicStore(&longer, 0u);
            }
            // Barriers: before this load and after it, for all lanes again.
            let shared_slots = workgroupUniformLoad(&slots);
            var slot = shared_slots.x + place;
            for (var i = 0u; i < ARCS; i += 1u) {
                let each = length(own[i]);
                for (; own[i].x < own[i].y; own[i].x += each) {
                    queue.pieces[slot] = vec2(own[i].x, min(own[i].x + each, own[i].y));
                    slot += 1u;
                }
            }
            if shared_slots.y == 0u {
                break;
            }
        }
    }
}

@compute @workgroup_size(1)
fn arrive() {
    atomicAdd(&queue.tail, 1u);
}
