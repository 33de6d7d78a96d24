// Two ways to add up what the subgroups of a workgroup found: one takes their size for granted. Needs the feature
// for subgroups; a browser wants `enable subgroups;` on top, which wgpu 30 rejects.

const WIDTH: u32 = 256u;

@group(0) @binding(0) var<storage, read> input: array<u32>;
@group(0) @binding(1) var<storage, read_write> output: array<atomic<u32>>;

// Every 32nd lane adds what it takes for the sum of 32 lanes. Of smaller subgroups most are left out.
@compute @workgroup_size(WIDTH)
fn add_by_32(
    @builtin(global_invocation_id) id: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let found = subgroupAdd(select(0u, 1u, id.x < arrayLength(&input)));
    if lane % 32u == 0u {
        atomicAdd(&output[0], found);
    }
}

// The first lane of each subgroup adds, however many lanes that has.
@compute @workgroup_size(WIDTH)
fn add_by_subgroup(
    @builtin(global_invocation_id) id: vec3<u32>,
    @builtin(subgroup_invocation_id) place: u32,
) {
    let found = subgroupAdd(select(0u, 1u, id.x < arrayLength(&input)));
    if place == 0u {
        atomicAdd(&output[0], found);
    }
}
