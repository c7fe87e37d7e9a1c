//! Trims of a drive that takes them for hints: some are done, some are forgotten, some are done
//! later, as the contract of [`super::BlockDevice`] allows, and as drives without deterministic
//! read after trim do (ACS-3 §7.10.3.3, NVMe Dataset Management).

use std::collections::BTreeMap;
use std::ops::Range;

use super::crash::seeded;

/// The longest delay of a trim, in good flushes.
const LATEST: usize = 6;

/// What becomes of trims on a [`super::CrashDevice`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trims {
    /// Each is done at once, and is durable with the next flush.
    #[default]
    Done,
    /// Each is done at once, or for its first blocks only, or before a later flush, or never. What
    /// happens is generated from the seed.
    Hints(u64),
}

/// The trims of one device that takes them for hints.
pub(super) struct Hints {
    draw: Box<dyn FnMut(usize) -> usize + Send>,
    /// Good flushes until a block is trimmed after all.
    late: BTreeMap<u64, usize>,
}

impl Hints {
    pub(super) fn new(seed: u64) -> Hints {
        Hints {
            draw: Box::new(seeded(seed)),
            late: BTreeMap::new(),
        }
    }

    /// Takes a trim; returns which of its blocks are trimmed now.
    pub(super) fn take(&mut self, blocks: Range<u64>) -> Range<u64> {
        let count = blocks.end - blocks.start;
        let now = match (self.draw)(4) {
            0 => count,
            1 => count / 2,
            _ => 0,
        };
        let now = blocks.start..blocks.start + now;
        if (self.draw)(2) == 0 {
            let delay = (self.draw)(LATEST);
            self.late
                .extend((now.end..blocks.end).map(|block| (block, delay)));
        }
        now
    }

    /// These blocks are written, so no older trim concerns them.
    pub(super) fn written(&mut self, blocks: Range<u64>) {
        if !self.late.is_empty() {
            self.late.retain(|block, _| !blocks.contains(block));
        }
    }

    /// A good flush begins; returns the blocks that are trimmed before it.
    pub(super) fn due(&mut self) -> Vec<u64> {
        let mut due = Vec::new();
        self.late.retain(|block, left| {
            if *left == 0 {
                due.push(*block);
            }
            let stays = *left > 0;
            *left = left.saturating_sub(1);
            stays
        });
        due
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BlockDevice as _, CrashDevice};
    use super::Trims;
    use crate::types::{BLOCK_SIZE, IoClass, Lba};

    const BLOCKS: u64 = 64;

    fn ones(device: &CrashDevice) -> Vec<bool> {
        let one = |lba| {
            let mut block = vec![0; BLOCK_SIZE];
            device.read(Lba(lba), &mut block, IoClass::Page).unwrap();
            assert!(block.iter().all(|byte| *byte == block[0]));
            block[0] == 1
        };
        (0..BLOCKS).map(one).collect()
    }

    fn filled(seed: u64) -> CrashDevice {
        let device = CrashDevice::new(BLOCKS);
        device.set_trims(Trims::Hints(seed));
        let bytes = vec![1; BLOCK_SIZE * BLOCKS as usize];
        device.write(Lba(0), &bytes, IoClass::Page).unwrap();
        device.flush().unwrap();
        device
    }

    /// How many blocks still hold their bytes at once, after some flushes, and after many.
    fn left(seed: u64) -> [usize; 3] {
        let device = filled(seed);
        for lba in (0..BLOCKS).step_by(4) {
            device.trim(Lba(lba), 4).unwrap();
        }
        let count = || ones(&device).into_iter().filter(|one| *one).count();
        let mut counts = [count(), 0, 0];
        for after in &mut counts[1..] {
            (0..4).for_each(|_| device.flush().unwrap());
            *after = count();
        }
        counts
    }

    #[test]
    fn some_trims_are_done_some_are_late_and_some_are_forgotten() {
        let all: Vec<[usize; 3]> = (0..20).map(left).collect();
        let mean = |at: usize| all.iter().map(|counts| counts[at]).sum::<usize>() / all.len();
        assert!(mean(0) > mean(1) && mean(1) > mean(2), "{all:?}");
        assert!(mean(0) < BLOCKS as usize && mean(2) > 0, "{all:?}");
        assert_eq!(left(7), left(7), "the seed decides");
    }

    #[test]
    fn a_late_trim_spares_what_was_written_since() {
        for seed in 0..50 {
            let device = filled(seed);
            device.trim(Lba(0), BLOCKS).unwrap();
            let bytes = vec![1; BLOCK_SIZE * BLOCKS as usize];
            device.write(Lba(0), &bytes, IoClass::Page).unwrap();
            for _ in 0..10 {
                device.flush().unwrap();
                assert!(ones(&device).into_iter().all(|one| one), "seed {seed}");
            }
        }
    }

    /// Another device that is told the recorded requests goes through the same states.
    #[test]
    fn a_recording_has_trims_when_they_were_done() {
        for seed in 0..20 {
            let device = CrashDevice::new(BLOCKS);
            device.set_trims(Trims::Hints(seed));
            device.record();
            let other = CrashDevice::new(BLOCKS);
            let bytes = vec![1; BLOCK_SIZE * BLOCKS as usize];
            device.write(Lba(0), &bytes, IoClass::Page).unwrap();
            for lba in (0..BLOCKS).step_by(8) {
                device.trim(Lba(lba), 6).unwrap();
                device.flush().unwrap();
                let recorded = device.take_recording();
                recorded.iter().for_each(|request| other.apply(request));
                assert_eq!(ones(&device), ones(&other), "seed {seed}");
                assert_eq!(device.outcomes(), other.outcomes(), "seed {seed}");
            }
        }
    }
}
