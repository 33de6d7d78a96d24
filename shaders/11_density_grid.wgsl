// How many points lie in each cell of a grid, counted in three ways: `flat`, `cached`, and `tiled`, which
// takes five dispatches. Whole numbers add up to the same in whatever order.
//
// In:  points, the bits of two f32 each; the grid spans 0 to 1, without 1, both ways.
// Out: cells, SIDE rows of SIDE counts. Between: tiles, how many points each has and where they stand;
//      binned, for each point inside, its cell's number in its tile.

const WIDTH: u32 = 256u;
const SIDE: u32 = 2048u;
// A tile is TILE × TILE cells: as many counters as 16384 bytes of workgroup memory hold.
const TILE: u32 = 64u;
const TILES: u32 = SIDE / TILE * (SIDE / TILE);

struct Tile {
    count: atomic<u32>,
    next: atomic<u32>,
}
struct Tiles {
    used: atomic<u32>,
    tiles: array<Tile, TILES>,
}

@group(0) @binding(0) var<storage, read> points: array<vec2<u32>>;
@group(0) @binding(1) var<storage, read_write> grid: array<atomic<u32>>;
@group(0) @binding(1) var<storage, read_write> cells: array<u32>;
@group(0) @binding(2) var<storage, read_write> bins: Tiles;
@group(0) @binding(3) var<storage, read_write> binned: array<u32>;

// The bits of 1.0 and of -0.0. Those of 0.0 up to 1.0 count from 0 to ONE; whatever is negative, larger,
// infinite or NaN has larger ones.
const ONE: u32 = 0x3f800000u;
const MINUS_ZERO: u32 = 0x80000000u;
const OUTSIDE: u32 = 0xffffffffu;

// Whole numbers decide what is inside. A driver may take tiny f32 for 0, and may assume that none is NaN;
// then a comparison of f32 is no test. SIDE is a power of two: the product is exact.
fn cell(bits: vec2<u32>) -> u32 {
    let inside = all((bits < vec2(ONE)) | (bits == vec2(MINUS_ZERO)));
    let at = vec2<u32>(bitcast<vec2<f32>>(bits) * f32(SIDE));
    return select(OUTSIDE, at.y * SIDE + at.x, inside);
}

// The cells of four points, WIDTH apart: four loads are under way before the first is needed. Access:
// neighbours read neighbouring points. Tail: past the end the last point is read again, and is OUTSIDE.
fn four(i: u32, end: u32) -> vec4<u32> {
    let at = vec4(i, i + WIDTH, i + 2u * WIDTH, i + 3u * WIDTH);
    let safe = min(at, vec4(end - 1u));
    let a = points[safe.x];
    let b = points[safe.y];
    let c = points[safe.z];
    let d = points[safe.w];
    return select(vec4(OUTSIDE), vec4(cell(a), cell(b), cell(c), cell(d)), at < vec4(end));
}

// Where a workgroup's share of the points begins and ends. The last shares are short, or empty.
fn chunk(group: u32, groups: u32) -> vec2<u32> {
    let n = arrayLength(&points);
    let length = (n + groups - 1u) / groups;
    return min(vec2(group, group + 1u) * length, vec2(n));
}

@compute @workgroup_size(WIDTH)
fn zero(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    // Access: neighbours store side by side. Tail: the condition.
    for (var i = id.x; i < SIDE * SIDE; i += groups.x * WIDTH) {
        cells[i] = 0u;
    }
}

// One atomic in global memory for each point.
fn count_in_grid(cell: u32) {
    if cell != OUTSIDE {
        atomicAdd(&grid[cell], 1u);
    }
}

@compute @workgroup_size(WIDTH)
fn flat(
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let chunk = chunk(group.x, groups.x);
    for (var i = chunk.x + lane; i < chunk.y; i += 4u * WIDTH) {
        let cells = four(i, chunk.y);
        count_in_grid(cells.x);
        count_in_grid(cells.y);
        count_in_grid(cells.z);
        count_in_grid(cells.w);
    }
}

// A workgroup's own counters, too few for the grid: each counts for the first cell that claims it. Laid
// over the grid again and again they are patches of ROWS × COLUMNS, so that cells close together never
// want the same one.
const ROWS: u32 = 64u;
const COLUMNS: u32 = 32u;
const PATCHES: u32 = SIDE / COLUMNS;
// In the upper 12 bits the patch of the cell that claimed it, from 1; in the lower 20 the count, which no
// workgroup has enough points to overflow. 0 is a counter that nobody claimed.
const COUNT: u32 = 0xfffffu;
var<workgroup> counters: array<atomic<u32>, ROWS * COLUMNS>;

fn count_in_cache(cell: u32) {
    if cell == OUTSIDE {
        return;
    }
    let row = cell / SIDE;
    let column = cell % SIDE;
    let counter = &counters[row % ROWS * COLUMNS + column % COLUMNS];
    let claim = (row / ROWS * PATCHES + column / COLUMNS + 1u) << 20u;
    // Looks before it exchanges: a claim is made once, and asked for by every point.
    var found = atomicLoad(counter);
    if found == 0u {
        let exchange = atomicCompareExchangeWeak(counter, 0u, claim);
        found = select(exchange.old_value, claim, exchange.exchanged);
    }
    // Another cell's, or a weak exchange that failed for no reason: global memory always counts.
    if (found & ~COUNT) == claim {
        atomicAdd(counter, 1u);
    } else {
        atomicAdd(&grid[cell], 1u);
    }
}

@compute @workgroup_size(WIDTH)
fn cached(
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    for (var k = lane; k < ROWS * COLUMNS; k += WIDTH) {
        atomicStore(&counters[k], 0u);
    }
    // Barrier: all is zero, before any lane counts.
    workgroupBarrier();
    let chunk = chunk(group.x, groups.x);
    for (var i = chunk.x + lane; i < chunk.y; i += 4u * WIDTH) {
        let cells = four(i, chunk.y);
        count_in_cache(cells.x);
        count_in_cache(cells.y);
        count_in_cache(cells.z);
        count_in_cache(cells.w);
    }
    // Barrier: all lanes have counted, before any hands over what others counted.
    workgroupBarrier();
    for (var k = lane; k < ROWS * COLUMNS; k += WIDTH) {
        let found = atomicLoad(&counters[k]);
        if found != 0u {
            let laid = (found >> 20u) - 1u;
            let row = laid / PATCHES * ROWS + k / COLUMNS;
            let column = laid % PATCHES * COLUMNS + k % COLUMNS;
            atomicAdd(&grid[row * SIDE + column], found & COUNT);
        }
    }
}

// `tiled`, 1 of 5: no tile has points, and no place in `binned` is taken.
@compute @workgroup_size(WIDTH)
fn begin(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < TILES {
        atomicStore(&bins.tiles[id.x].count, 0u);
    }
    if id.x == 0u {
        atomicStore(&bins.used, 0u);
    }
}

// The tile of a cell, and the cell's number in it.
fn tile(cell: u32) -> u32 {
    return cell / SIDE / TILE * (SIDE / TILE) + cell % SIDE / TILE;
}
fn within(cell: u32) -> u32 {
    return cell / SIDE % TILE * TILE + cell % TILE;
}

// One counter for each tile: these do fit into workgroup memory.
var<workgroup> mine: array<atomic<u32>, TILES>;

fn count_in_mine(cell: u32) {
    if cell != OUTSIDE {
        atomicAdd(&mine[tile(cell)], 1u);
    }
}

fn count_chunk(chunk: vec2<u32>, lane: u32) {
    for (var t = lane; t < TILES; t += WIDTH) {
        atomicStore(&mine[t], 0u);
    }
    // Barrier: all is zero, before any lane counts.
    workgroupBarrier();
    for (var i = chunk.x + lane; i < chunk.y; i += 4u * WIDTH) {
        let cells = four(i, chunk.y);
        count_in_mine(cells.x);
        count_in_mine(cells.y);
        count_in_mine(cells.z);
        count_in_mine(cells.w);
    }
    // Barrier: all lanes have counted, before any reads what others counted.
    workgroupBarrier();
}

// 2 of 5: how many points each tile has; what a workgroup counted it hands over once.
@compute @workgroup_size(WIDTH)
fn count(
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    count_chunk(chunk(group.x, groups.x), lane);
    for (var t = lane; t < TILES; t += WIDTH) {
        let count = atomicLoad(&mine[t]);
        if count > 0u {
            atomicAdd(&bins.tiles[t].count, count);
        }
    }
}

// 3 of 5: each tile takes its places in `binned`. In which order the tiles stand there is no matter, so
// that one counter does, and no scan is needed.
@compute @workgroup_size(WIDTH)
fn place(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < TILES {
        let count = atomicLoad(&bins.tiles[id.x].count);
        atomicStore(&bins.tiles[id.x].next, atomicAdd(&bins.used, count));
    }
}

fn put(cell: u32) {
    if cell != OUTSIDE {
        binned[atomicAdd(&mine[tile(cell)], 1u)] = within(cell);
    }
}

// 4 of 5: each workgroup takes places for its points, tile by tile, and puts them there.
@compute @workgroup_size(WIDTH)
fn scatter(
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let chunk = chunk(group.x, groups.x);
    count_chunk(chunk, lane);
    for (var t = lane; t < TILES; t += WIDTH) {
        let count = atomicLoad(&mine[t]);
        if count > 0u {
            atomicStore(&mine[t], atomicAdd(&bins.tiles[t].next, count));
        }
    }
    // Barrier: all tiles have their places, before any lane puts a point there.
    workgroupBarrier();
    for (var i = chunk.x + lane; i < chunk.y; i += 4u * WIDTH) {
        let cells = four(i, chunk.y);
        put(cells.x);
        put(cells.y);
        put(cells.z);
        put(cells.w);
    }
}

var<workgroup> own: array<atomic<u32>, TILE * TILE>;

// 5 of 5: one workgroup for each tile. No other writes its cells: it stores, empty cells too.
@compute @workgroup_size(WIDTH)
fn tiled(@builtin(local_invocation_index) lane: u32, @builtin(workgroup_id) group: vec3<u32>) {
    for (var k = lane; k < TILE * TILE; k += WIDTH) {
        atomicStore(&own[k], 0u);
    }
    // Barrier: all is zero, before any lane counts.
    workgroupBarrier();
    // `next` has moved past the tile's last point.
    let end = atomicLoad(&bins.tiles[group.x].next);
    let first = end - atomicLoad(&bins.tiles[group.x].count);
    // Four at a time here too. All points may be in one tile: that is up to 32768 rounds for each lane.
    for (var i = first + lane; i < end; i += 4u * WIDTH) {
        let at = vec4(i, i + WIDTH, i + 2u * WIDTH, i + 3u * WIDTH);
        let safe = min(at, vec4(end - 1u));
        let cells = vec4(binned[safe.x], binned[safe.y], binned[safe.z], binned[safe.w]);
        let counts = select(vec4(0u), vec4(1u), at < vec4(end));
        atomicAdd(&own[cells.x], counts.x);
        atomicAdd(&own[cells.y], counts.y);
        atomicAdd(&own[cells.z], counts.z);
        atomicAdd(&own[cells.w], counts.w);
    }
    // Barrier: all lanes have counted, before any stores what others counted.
    workgroupBarrier();
    let corner = group.x / (SIDE / TILE) * TILE * SIDE + group.x % (SIDE / TILE) * TILE;
    // Access: 64 neighbours store a row of the tile side by side.
    for (var k = lane; k < TILE * TILE; k += WIDTH) {
        cells[corner + k / TILE * SIDE + k % TILE] = atomicLoad(&own[k]);
    }
}
