//! Measures how well and how fast the codecs of the compressing drive compress zero-padded random
//! blocks, and the speed of the drive itself.
//!
//! `cargo run --release -p treering-sim --example csd_codecs`

use std::time::Instant;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use treering_engine::device::BlockDevice;
use treering_engine::{BLOCK_SIZE, IoClass, Lba};
use treering_sim::csd::{Codec, Compressor, Decompressor, SimCsd, builtin};
use treering_sim::ssd::TimingMode;

type Block = [u8; BLOCK_SIZE];

fn blocks(count: u64, random: usize) -> Vec<Block> {
    let mut rng = StdRng::seed_from_u64(1);
    let block = |_| {
        let mut block = [0; BLOCK_SIZE];
        rng.fill_bytes(&mut block[..random]);
        block
    };
    (0..count).map(block).collect()
}

fn micros(began: Instant, times: usize) -> f64 {
    began.elapsed().as_secs_f64() * 1e6 / times.max(1) as f64
}

fn codec(codec: Codec) {
    let mut compressor = Compressor::new(codec);
    let mut decompressor = Decompressor::new(codec);
    for percent in [1, 5, 10, 25, 50, 75, 100] {
        let blocks = blocks(2000, BLOCK_SIZE * percent / 100);
        let began = Instant::now();
        let sum: u64 = blocks.iter().map(|b| u64::from(compressor.size(b))).sum();
        let there = micros(began, blocks.len());
        let forms: Vec<Vec<u8>> = (blocks.iter())
            .filter_map(|b| compressor.compress(b).map(<[u8]>::to_vec))
            .collect();
        let mut out = [0; BLOCK_SIZE];
        let began = Instant::now();
        let back = forms
            .iter()
            .filter(|f| decompressor.decompress(f, &mut out));
        assert_eq!(back.count(), forms.len());
        let back = micros(began, forms.len());
        let mean = sum / blocks.len() as u64;
        println!(
            "{codec:?}: {percent:>3} % random {mean:>5} bytes {there:>6.1} µs, back {back:>5.1} µs"
        );
    }
}

fn drive() {
    let (_, profile) = builtin("csd").expect("built in");
    let drive = SimCsd::new(&profile, 20_000, TimingMode::Counting, 0).expect("a sound geometry");
    let blocks = blocks(100_000, BLOCK_SIZE / 2);
    let began = Instant::now();
    for (i, block) in (0..).zip(&blocks) {
        let lba = Lba(i * 7919 % 20_000);
        drive.write(lba, block, IoClass::Page).expect("room");
    }
    let write = micros(began, blocks.len());
    let mut out = [0; BLOCK_SIZE];
    let began = Instant::now();
    for lba in 0..20_000 {
        drive
            .read(Lba(lba), &mut out, IoClass::Page)
            .expect("a read");
    }
    let read = micros(began, 20_000);
    println!(
        "drive: half random, {write:.1} µs a write ({:.0}/s), {read:.2} µs a read",
        1e6 / write
    );
}

fn main() {
    for c in [
        Codec::Zlib(1),
        Codec::Zlib(2),
        Codec::Zlib(6),
        Codec::Zstd(1),
        Codec::Lz4,
    ] {
        codec(c);
    }
    drive();
}
