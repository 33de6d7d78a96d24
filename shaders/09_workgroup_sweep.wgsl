// Two kernels whose workgroups have the size that the host gives when it makes the pipeline: `scale`
// goes along the data once, `blur` adds up 9 neighbours in a grid.
//
// In:  input, n u32; for `blur` the first SIDE rows of SIDE of them.
// Out: output, as many, where they belong.

const FACTOR: u32 = 3u;
const RADIUS: u32 = 1u;

// No defaults: a pipeline that is not told a size is refused, and runs at no size that nobody chose.
override WIDTH: u32;
override COLUMNS: u32;
override ROWS: u32;
override SIDE: u32;

@group(0) @binding(0) var<storage, read> input: array<u32>;
@group(0) @binding(1) var<storage, read_write> output: array<u32>;

@compute @workgroup_size(WIDTH)
fn scale(
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    // Workgroups lie in rows, since narrow ones are more than one dimension takes.
    let i = (group.y * groups.x + group.x) * WIDTH + lane;
    // Tail: lanes past the end, and whole workgroups where the last row is not full.
    if i >= arrayLength(&input) {
        return;
    }
    // Access: lane k reads and writes 4 bytes at k, neighbours side by side, whatever the width.
    output[i] = FACTOR * input[i];
}

@compute @workgroup_size(COLUMNS, ROWS)
fn blur(@builtin(global_invocation_id) id: vec3<u32>) {
    // Tail: lanes right of the grid, and below it.
    if id.x >= SIDE || id.y >= SIDE {
        return;
    }
    let first = id.xy - min(id.xy, vec2(RADIUS));
    let last = min(id.xy + RADIUS, vec2(SIDE - 1u));
    var sum = 0u;
    // Access: COLUMNS neighbours in a row lie side by side, the next row 4 * SIDE bytes further on;
    // what a lane reads, up to 8 others read too, most of them in the same workgroup.
    for (var y = first.y; y <= last.y; y++) {
        for (var x = first.x; x <= last.x; x++) {
            sum += input[y * SIDE + x];
        }
    }
    output[id.y * SIDE + id.x] = sum;
}
