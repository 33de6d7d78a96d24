// expand: one level of a breadth-first search. One dispatch is one level, since nothing shorter than
// a dispatch makes all workgroups wait for each other.
//
// In:  tails and heads, u32, one of each per arc; now, the level to expand.
// Out: depths, one u32 per vertex; next, the level after. The host swaps now and next each time.

const WIDTH: u32 = 256u;
const UNSEEN: u32 = 0xffffffffu;

// `found` equals `level` if some vertex has that depth. If not, it is an older level, or 0.
struct Now {
    level: u32,
    found: u32,
}
struct Next {
    level: u32,
    found: atomic<u32>,
}

@group(0) @binding(0) var<storage, read> tails: array<u32>;
@group(0) @binding(1) var<storage, read> heads: array<u32>;
@group(0) @binding(2) var<storage, read_write> depths: array<atomic<u32>>;
@group(0) @binding(3) var<uniform> now: Now;
@group(0) @binding(4) var<storage, read_write> next: Next;

@compute @workgroup_size(WIDTH)
fn expand(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let deeper = now.level + 1u;
    if id.x == 0u {
        next.level = deeper;
    }
    // Done: no vertex has this depth. The same for all invocations, so a dispatch too many is cheap.
    if now.found != now.level {
        return;
    }
    var found = false;
    // Access: neighbours read neighbouring arcs; depths wherever the arcs lead.
    for (var arc = id.x; arc < arrayLength(&tails); arc += groups.x * WIDTH) {
        if atomicLoad(&depths[tails[arc]]) == now.level {
            // Several may find the same vertex. All store the same depth, and atomics allow that.
            let depth = &depths[heads[arc]];
            if atomicLoad(depth) == UNSEEN {
                atomicStore(depth, deeper);
                found = true;
            }
        }
    }
    // Looks before it stores: once for all is enough, and stores to one address wait in line.
    if found && atomicLoad(&next.found) != deeper {
        atomicStore(&next.found, deeper);
    }
}
