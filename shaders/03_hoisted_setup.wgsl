// fold: the kernel of 01, unchanged.   step: the least that one dispatch can do for the next.
//
// In:  input, n f32.   Out: partials, one f32 per invocation of fold; step counts in the first.
// Both entry points share one layout, so one bind group serves both.

const WIDTH: u32 = 256u;

@group(0) @binding(0) var<storage, read> input: array<f32>;
@group(0) @binding(1) var<storage, read_write> partials: array<f32>;

@compute @workgroup_size(WIDTH)
fn fold(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    // Access: in each round, neighbouring invocations read neighbouring elements; `all` is how many there are.
    let all = groups.x * WIDTH;
    var sum = 0.0;
    // Tail: the guard is the loop's own condition; an invocation past the end adds nothing and writes 0.
    for (var i = id.x; i < arrayLength(&input); i += all) {
        sum += input[i];
    }
    partials[id.x] = sum;
}

@compute @workgroup_size(1)
fn step() {
    // Reads what the dispatch before wrote: were two of them to run at once, the count would fall short.
    partials[0] += 1.0;
}
