//! Compares how contents of recordings could be compressed: `cargo run --release -p treering-drive
//! --example compression_levels -- [FILE…]`. With files, their bytes are a third kind of contents.

const BLOCK: usize = 4096;

/// Bytes of each kind of contents.
const BYTES: usize = 64 << 20;

/// CPU time of this thread in seconds.
fn cpu() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Blocks whose first `random` bytes are random, and the rest text.
fn blocks(random: usize) -> Vec<u8> {
    let mut data = vec![0; BYTES];
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    for block in data.chunks_mut(BLOCK) {
        for word in block[..random].chunks_mut(8) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            word.copy_from_slice(&state.to_le_bytes());
        }
        for (at, byte) in block[random..].iter_mut().enumerate() {
            *byte = b"a row of a table, and the next; "[at % 32];
        }
    }
    data
}

/// Prints the speed and the ratio of a way to compress.
fn measure(name: &str, data: &[u8], chunk: usize, mut compress: impl FnMut(&[u8]) -> usize) {
    let begin = cpu();
    let size: usize = data.chunks(chunk).map(&mut compress).sum();
    let took = cpu() - begin;
    println!(
        "  {name:<10} {:>6.0} MB a CPU-s, {:.3} of the bytes",
        data.len() as f64 / took / 1e6,
        size as f64 / data.len() as f64
    );
}

fn compare(kind: &str, data: &[u8]) {
    for chunk in [128 << 10, 512 << 10, 1 << 20] {
        println!("{kind}, in chunks of {} KiB:", chunk >> 10);
        for level in [-7, -5, -3, -1, 1, 3] {
            let mut zstd = zstd::bulk::Compressor::new(level).expect("memory");
            let mut out = vec![0; zstd::zstd_safe::compress_bound(chunk)];
            measure(&format!("zstd {level}"), data, chunk, |part| {
                zstd.compress_to_buffer(part, &mut out).expect("fits")
            });
        }
        let mut out = vec![0; lz4_flex::block::get_maximum_output_size(chunk)];
        measure("LZ4", data, chunk, |part| {
            lz4_flex::block::compress_into(part, &mut out).expect("fits")
        });
    }
    measure("XXH3-128", data, BLOCK, |part| {
        std::hint::black_box(xxhash_rust::xxh3::xxh3_128(part));
        0
    });
    measure("CRC-32", data, BLOCK, |part| {
        std::hint::black_box(crc32fast::hash(part));
        0
    });
}

fn main() {
    compare("half random, half text", &blocks(BLOCK / 2));
    compare("random", &blocks(BLOCK));
    let mut files = Vec::new();
    for path in std::env::args().skip(1) {
        files.extend(std::fs::read(&path).expect("a readable file"));
    }
    files.truncate(BYTES);
    if !files.is_empty() {
        compare("files", &files);
    }
}
