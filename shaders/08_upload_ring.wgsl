// The consumer of a stream: adds a chunk of words to running totals, one for each invocation.
//
// In:  words, a chunk of u32.
// Out: totals, one for each invocation: 64 bits in two u32, the low one first.

const WIDTH: u32 = 256u;

@group(0) @binding(0) var<storage, read> words: array<u32>;
@group(0) @binding(1) var<storage, read_write> totals: array<vec2<u32>>;

@compute @workgroup_size(WIDTH)
fn add(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    var total = totals[id.x];
    // Access: in each step neighbours read side by side. Tail: the loop ends where the words do.
    for (var i = id.x; i < arrayLength(&words); i += groups.x * WIDTH) {
        let low = total.x + words[i];
        // A sum that has wrapped is below each of its parts: that is the carry.
        total = vec2(low, total.y + select(0u, 1u, low < total.x));
    }
    totals[id.x] = total;
}
