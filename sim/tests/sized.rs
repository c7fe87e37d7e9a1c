//! Writes of which only the sizes are known do to a drive what the same writes with contents do.

use std::sync::Arc;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use treering_engine::{BLOCK_SIZE, IoClass, Lba, Nanos};
use treering_sim::csd::{Codec, Compressor};
use treering_sim::drive::{SimDrive, SizedWrite};
use treering_sim::replay::Target;
use treering_sim::ssd::TimingMode;

const BLOCKS: u64 = 6_000;

fn drive(name: &str, mode: TimingMode) -> Arc<dyn SimDrive> {
    let target = Target::builtin(name).expect("a built-in drive");
    let asked = target.drive().expect("a simulated drive");
    asked.profile.build(BLOCKS, mode, 1).expect("a drive")
}

#[test]
fn a_write_without_contents_does_what_the_write_does() {
    for name in ["ssd", "csd"] {
        for mode in [TimingMode::Counting, TimingMode::Queued] {
            let (full, sized) = (drive(name, mode), drive(name, mode));
            let mut random = SmallRng::seed_from_u64(3);
            let mut compressor = Compressor::new(Codec::Zlib(1));
            let mut now = [Nanos(0); 2];
            for i in 0..30_000_u64 {
                let blocks = random.random_range(1..4);
                let lba = random.random_range(0..BLOCKS - blocks);
                let mut bytes = vec![0; blocks as usize * BLOCK_SIZE];
                let filled = random.random_range(0..bytes.len());
                // Noise of a generator that is cheaper than the random one.
                for (at, byte) in bytes[..filled].iter_mut().enumerate() {
                    *byte = ((at as u64 ^ i).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8;
                }
                full.write(Lba(lba), &bytes, IoClass::Page).expect("room");
                let (chunks, _) = bytes.as_chunks::<BLOCK_SIZE>();
                let size = |block: &[u8; BLOCK_SIZE]| match block.iter().all(|b| *b == 0) {
                    true => 0,
                    false => compressor.size(block),
                };
                let payloads: Vec<u16> = chunks.iter().map(size).collect();
                let write = SizedWrite {
                    lba,
                    payloads: &payloads,
                    class: IoClass::Page,
                    label: (lba % 3) as u8,
                };
                sized.write_sized(write).expect("room");
                if i % 7 == 0 {
                    full.trim(Lba(lba), blocks).expect("in range");
                    sized.trim(Lba(lba), blocks).expect("in range");
                }
                now = [full.serve(now[0]).done, sized.serve(now[1]).done];
            }
            assert_eq!(full.counters(), sized.counters(), "{name}");
            assert_eq!(now[0], now[1], "{name}");
            let moved = sized.moved();
            assert!(sized.counters().nand_gc > 0, "{name}: nothing was moved");
            assert_eq!(
                moved.iter().sum::<u64>(),
                sized.counters().nand_gc,
                "{name}"
            );
            assert!(
                moved[..3].iter().all(|bytes| *bytes > 0),
                "{name}: {moved:?}"
            );
            assert!(full.moved().is_empty(), "nobody asked");
        }
    }
}
