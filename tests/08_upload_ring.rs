//! 08: whatever the road, n words arrive as they were sent; a stream's sum is exact however slow its
//! consumer is, and a source that breaks off gives an error and no sum.
//!
//! Not proven: that a ring is faster than another road, or that threads fill a chunk at the same time.
//! That no bucket is written while the GPU reads it is seen from sums, which would not come out, and
//! rests on wgpu, which gives no view of a buffer that is away. llvmpipe does the work inside `submit`,
//! so that few chunks wait there, and how many is chance: the number of waits has no least. Nor is it
//! proven that a road's time has its copy in it: nothing shows a write that is still queued.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use wgpu::util::StagingBelt;
use wgpu::{BufferUsages, Features, WriteOnly};

#[path = "../examples/08_upload_ring.rs"]
mod example;
mod process;

use example::{
    CHUNK, Crossing, DEPTH, Verdict, by_belt, by_init, by_write_buffer, cpu_sum, crossing, made,
    place, ring, road_buffer, stream, upload, word, words_checksum, words_total, write_with,
};

// Named here, so that the compiler finds a use for all of the example.
const _: fn() = example::main;

const EXAMPLE: process::Example = process::Example {
    name: "08_upload_ring",
    quick: &["1000"],
    outside: &[],
    too_large: &["2^32"],
    ids: |_| &["08.1", "08.2", "08.3"],
};

const OPTIONAL: Features = Features::MAPPABLE_PRIMARY_BUFFERS;
/// Words. Around a page, which is 1024 of them and the least share of a thread; around the threads'
/// shares of a chunk, the chunks of 16 KiB below, and several turns of a ring.
const SIZES: [u64; 19] = [
    0, 1, 2, 3, 1023, 1024, 1025, 2047, 2049, 4095, 4096, 4097, 8191, 12288, 12289, 16384, 16385,
    49153, 100_001,
];
/// Bytes of a chunk in the rings below: a page for each of four threads.
const SMALL: u64 = 4 * 4096;

fn words(n: u64) -> Vec<u32> {
    (0..n).map(word).collect()
}

/// All of a buffer, brought back, is the data; so is the sum on the GPU.
#[track_caller]
fn holds(gpu: &Crossing, road: &str, buffer: &wgpu::Buffer, data: &[u32]) {
    let n = data.len() as u64;
    assert_eq!(words_checksum(gpu, buffer, 4 * n).unwrap(), cpu_sum(n), "{road}, n = {n}");
    if n == 0 {
        return;
    }
    let usage = BufferUsages::MAP_READ | BufferUsages::COPY_DST;
    let (label, size) = (Some("brought back"), 4 * n);
    let back = wgpu::BufferDescriptor { label, size, usage, mapped_at_creation: false };
    let back = gpu.device.create_buffer(&back);
    let mut encoder = gpu.device.create_command_encoder(&Default::default());
    encoder.copy_buffer_to_buffer(buffer, 0, &back, 0, size);
    gpu.queue.submit([encoder.finish()]);
    back.map_async(wgpu::MapMode::Read, .., |mapped| mapped.unwrap());
    gpu.device.poll(wgpu::PollType::wait_indefinitely()).unwrap();
    let content: Vec<u32> = bytemuck::cast_slice(&back.get_mapped_range(..).unwrap()).to_vec();
    let wrong = (0..data.len()).find(|&i| content[i] != data[i]);
    assert_eq!(wrong, None, "{road}, n = {n}: the first wrong word");
}

#[test]
fn every_road_brings_the_words_as_they_were() {
    let _turn = process::turn();
    let gpu = crossing(OPTIONAL).unwrap();
    let mappable = gpu.device.features().contains(OPTIONAL);
    let mut belt = StagingBelt::new(gpu.device.clone(), CHUNK);
    for n in SIZES {
        let words = words(n);
        let data: &[u8] = bytemuck::cast_slice(&words);
        let plain = || road_buffer(&gpu, data, BufferUsages::STORAGE | BufferUsages::COPY_DST);
        let check = |road: &str, buffer: wgpu::Buffer| holds(&gpu, road, &buffer, &words);
        check("create_buffer_init", by_init(&gpu, data).unwrap());
        check("write_buffer", by_write_buffer(&gpu, &plain(), data).unwrap());
        check("StagingBelt", by_belt(&gpu, &mut belt, &plain(), data).unwrap());
        let staging = road_buffer(&gpu, data, BufferUsages::MAP_WRITE);
        for threads in [1, 2, 3, 8] {
            let by = |road| format!("{road} by {threads}");
            check(&by("write_buffer_with"), write_with(&gpu, &plain(), data, threads).unwrap());
            check(&by("mapping"), place(&gpu, &staging, data, threads).unwrap());
            if mappable {
                let usage = BufferUsages::MAP_WRITE | BufferUsages::STORAGE;
                let primary = road_buffer(&gpu, data, usage);
                check(&by("mappable"), place(&gpu, &primary, data, threads).unwrap());
            }
        }
    }
}

/// Chunks from a word on, so that the last is full, short or alone; more threads than pages too.
#[test]
fn a_ring_brings_the_words_whatever_its_chunks() {
    let _turn = process::turn();
    let gpu = crossing(OPTIONAL).unwrap();
    for (chunk, threads) in [(8, 1), (4096, 1), (4096, 3), (SMALL, 1), (SMALL, 4), (SMALL, 16)] {
        // One ring for all sizes: what one upload leaves behind is no business of the next.
        let mut ring = ring(&gpu, chunk, threads);
        for n in SIZES.into_iter().filter(|n| n * 4 / chunk < 200) {
            let words = words(n);
            let data: &[u8] = bytemuck::cast_slice(&words);
            let usage = BufferUsages::STORAGE | BufferUsages::COPY_DST;
            let to = upload(&mut ring, &road_buffer(&gpu, data, usage), data).unwrap();
            holds(&gpu, &format!("chunks of {chunk} by {threads}"), &to, &words);
        }
    }
}

#[test]
fn a_streams_sum_is_exact_at_every_edge() {
    let _turn = process::turn();
    let gpu = crossing(OPTIONAL).unwrap();
    for threads in [1, 4] {
        let mut ring = ring(&gpu, SMALL, threads);
        for n in SIZES {
            let (sum, waits) = stream(&mut ring, n * 4, &made, 1).unwrap();
            assert_eq!(sum, cpu_sum(n), "n = {n}, by {threads}");
            assert!(waits as u64 <= (n * 4).div_ceil(SMALL), "n = {n}: {waits} waits");
        }
    }
}

/// Sums need 64 bits: each invocation here adds 64 words that are all ones, in a chunk.
#[test]
fn sums_carry_past_32_bits() {
    let _turn = process::turn();
    let gpu = crossing(OPTIONAL).unwrap();
    let ones = |_: u64, mut part: WriteOnly<[u8]>| -> Verdict {
        part.fill(0xff);
        Ok(())
    };
    let mut ring = ring(&gpu, CHUNK, 2);
    for bytes in [4, 4096, CHUNK - 4, CHUNK, 2 * CHUNK + 4] {
        let (sum, _) = stream(&mut ring, bytes, &ones, 1).unwrap();
        assert_eq!(sum, bytes / 4 * 0xffff_ffff, "{bytes} bytes");
    }
    let zeros = |_: u64, mut part: WriteOnly<[u8]>| -> Verdict {
        part.fill(0);
        Ok(())
    };
    assert_eq!(stream(&mut ring, CHUNK, &zeros, 1).unwrap().0, 0, "a zero carries nothing");
}

/// Four times the ring, and more than may be bound at once.
#[test]
fn a_stream_may_be_larger_than_a_binding() {
    let _turn = process::turn();
    let gpu = crossing(OPTIONAL).unwrap();
    let bytes = 4 * DEPTH as u64 * CHUNK;
    assert!(bytes > gpu.device.limits().max_storage_buffer_binding_size);
    let (sum, _) = stream(&mut ring(&gpu, CHUNK, 2), bytes, &made, 1).unwrap();
    assert_eq!(sum, cpu_sum(bytes / 4));
}

/// The consumer reads each chunk so often that the producer is far ahead of it. The copy of a chunk
/// then stands behind the reads of those before: to write it meanwhile would change the sum.
#[test]
fn a_slow_consumer_gets_every_chunk_as_it_was() {
    let _turn = process::turn();
    let gpu = crossing(OPTIONAL).unwrap();
    let (chunk, turns) = (64 << 10, 40);
    let (mut ring, mut further) = (ring(&gpu, chunk, 2), 0u64);
    for reads in [1, 100, 1, 300] {
        // Every byte is asked for once.
        let filled = AtomicU64::new(0);
        let source = |at: u64, part: WriteOnly<[u8]>| {
            filled.fetch_add(part.len() as u64, SeqCst);
            made(at, part)
        };
        let (sum, waits) = stream(&mut ring, turns * chunk, &source, reads).unwrap();
        assert_eq!(sum, cpu_sum(turns * chunk / 4), "{reads} reads");
        assert_eq!(filled.load(SeqCst), turns * chunk, "{reads} reads");
        // It was slow indeed: all further reads were made.
        further = further.wrapping_add((reads as u64 - 1).wrapping_mul(sum));
        assert_eq!(words_total(&gpu, 1).unwrap(), further, "{reads} reads");
        assert!(waits <= turns as usize - DEPTH, "{waits} waits: new buckets are free at once");
    }
}

/// wgpu's part of the promise: while a bucket is away there is no view of it.
#[test]
fn a_buffer_that_is_away_has_no_view() {
    let _turn = process::turn();
    let gpu = crossing(OPTIONAL).unwrap();
    let words = words(1000);
    let staging = road_buffer(&gpu, bytemuck::cast_slice(&words), BufferUsages::MAP_WRITE);
    let error = staging.get_mapped_range_mut(..).expect_err("it is not mapped").to_string();
    assert!(error.contains("not mapped"), "{error}");
    staging.map_async(wgpu::MapMode::Write, .., |mapped| mapped.unwrap());
    let error = staging.get_mapped_range_mut(..).expect_err("it is only asked for").to_string();
    assert!(error.contains("not mapped"), "{error}");
    gpu.device.poll(wgpu::PollType::wait_indefinitely()).unwrap();
    assert!(staging.get_mapped_range_mut(..).is_ok());
}

/// At every chunk, and in the share of any thread: the error says why and how far it came, there is no
/// sum, and the ring serves the next stream.
#[test]
fn a_source_that_breaks_off_gives_no_sum() {
    let _turn = process::turn();
    let gpu = crossing(OPTIONAL).unwrap();
    let mut ring = ring(&gpu, SMALL, 4);
    let bytes = 9 * SMALL + 4;
    for end in (0..bytes).step_by(4096) {
        let source = |at: u64, part: WriteOnly<[u8]>| match at {
            at if at < end => made(at, part),
            at => Err(format!("nothing at byte {at}")),
        };
        let error = stream(&mut ring, bytes, &source, 1).unwrap_err().to_string();
        // Of the threads that have nothing for a chunk, the first is heard.
        let begun = end / SMALL * SMALL;
        let line = format!("nothing at byte {end}; {begun} of {bytes} bytes had gone before");
        assert_eq!(error, line);
        let (sum, _) = stream(&mut ring, bytes, &made, 1).unwrap();
        assert_eq!(sum, cpu_sum(bytes / 4), "after a source that ended at {end}");
    }
}
