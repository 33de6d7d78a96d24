// The sum as one would write it if WGSL had float atomics: no tree, no barrier, no second dispatch.
// A native feature, SHADER_FLOAT32_ATOMIC; where it is missing this module is rejected whole.
//
// In:  scalars, n f32.   Out: total, one f32, added to; the order of the additions is anybody's.

const WIDTH: u32 = 256u;

@group(0) @binding(1) var<storage, read> scalars: array<f32>;
@group(0) @binding(3) var<storage, read_write> total: atomic<f32>;

@compute @workgroup_size(WIDTH)
fn atomics(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    // Access: in each round, neighbouring invocations read neighbouring elements.
    var own = 0.0;
    for (var i = id.x; i < arrayLength(&scalars); i += groups.x * WIDTH) {
        own += scalars[i];
    }
    atomicAdd(&total, own);
}
