//! What the sums of lessons 01 to 04 are tested on.

/// Few elements; then around one workgroup of one element for each invocation (256), of four (1024),
/// of sixteen (4096); around more workgroups than one has invocations (65536), than `finish` adds up
/// in a round (524288), and than there are to be had in 01 to 03 (2^20).
pub const SIZES: [usize; 25] = [
    0, 1, 2, 3, 4, 5, 255, 256, 257, 1023, 1024, 1025, 4095, 4096, 4097, 8191, 8193, 65535, 65536,
    65537, 262147, 524289, 1048575, 1048576, 1048577,
];

/// Whole numbers from 1 to 17: f32 adds them without rounding while a sum is below 2^24, and there
/// is none among them that could get lost or be counted twice unseen.
pub fn whole(n: usize) -> Vec<f32> {
    (0..n).map(|i| (1 + i % 17) as f32).collect()
}

/// In [-1, 1), of both signs, with all the bits that f32 has: the top ones of a hash of the index.
pub fn signed(n: usize) -> Vec<f32> {
    let hash = |i: usize| (i as u32).wrapping_add(1).wrapping_mul(2654435761);
    (0..n).map(|i| (hash(i) >> 8) as f32 / (1 << 23) as f32 - 1.0).collect()
}
