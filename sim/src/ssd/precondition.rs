//! Preconditioning of a drive: before the store is created, the whole drive is filled with foreign
//! data.
//!
//! Only the map knows these data: they read as zeros, and counters start at zero, but wear stays.
//! Pages that the store never writes or trims stay valid, and garbage collection moves them like
//! all others; they belong to no I/O class.

use super::device::SimSsd;
use super::ftl::{CLASSES, Ftl};
use super::gc::SplitMix;
use crate::predict::Before;

/// The class of foreign data.
pub(crate) const FOREIGN: u8 = CLASSES as u8;

/// Two passes over the drive are steady if their write amplifications differ by at most this.
const STEADY: f64 = 0.01;

/// Maximum number of passes of overwriting: a drive with 1 % over-provisioning needs that many.
const MOST_TURNS: u32 = 50;

impl SimSsd {
    /// Writes every page once, in order.
    pub fn fill(&self) {
        self.prepare(fill);
    }

    /// [`SimSsd::fill`], then random overwrites until the write amplification hardly differs
    /// between two passes over the drive (SNIA PTS calls it steady within 20 % over five rounds;
    /// this is stricter).
    pub fn fill_until_steady(&self, seed: u64) {
        self.prepare(|ftl| {
            fill(ftl);
            overwrite_until_steady(ftl, seed);
        });
    }
}

/// An FTL that is filled with foreign data.
pub(crate) trait Foreign {
    /// Logical blocks of 4 KiB.
    fn blocks(&self) -> u64;
    /// Writes foreign data to one block.
    fn write_foreign(&mut self, block: u32);
    /// Resets the counters.
    fn reset(&mut self);
    /// Bytes programmed divided by host bytes since then, if garbage collection ran.
    fn amplification(&self) -> Option<f64>;
}

impl Foreign for Ftl {
    fn blocks(&self) -> u64 {
        self.logical_pages()
    }

    fn write_foreign(&mut self, block: u32) {
        self.write_with(block, FOREIGN, &mut ());
    }

    fn reset(&mut self) {
        self.reset_counters();
    }

    fn amplification(&self) -> Option<f64> {
        let ratio = self.counters().write_amplification();
        ratio.filter(|_| self.gc_reached())
    }
}

/// Brings an empty FTL into this state.
pub(crate) fn prepare(ftl: &mut impl Foreign, how: Before, seed: u64) {
    if how == Before::Nothing {
        return;
    }
    fill(ftl);
    if how == Before::Scattered {
        overwrite_until_steady(ftl, seed);
    }
    ftl.reset();
}

/// Writes every block once, in order.
pub(crate) fn fill(ftl: &mut impl Foreign) {
    for block in 0..ftl.blocks() {
        ftl.write_foreign(block as u32);
    }
}

/// Overwrites blocks at random until garbage collection is steady.
pub(crate) fn overwrite_until_steady(ftl: &mut impl Foreign, seed: u64) {
    let mut random = SplitMix(seed);
    let mut before = f64::INFINITY;
    for _ in 0..MOST_TURNS {
        ftl.reset();
        for _ in 0..ftl.blocks() {
            let block = random.below(ftl.blocks());
            ftl.write_foreign(block as u32);
        }
        let now = ftl.amplification();
        if now.is_some_and(|now| (now / before - 1.0).abs() <= STEADY) {
            return;
        }
        before = now.unwrap_or(1.0);
    }
}

#[cfg(test)]
mod tests {
    use treering_engine::device::BlockDevice;
    use treering_engine::{BLOCK_SIZE, IoClass, Lba};

    use super::*;
    use crate::predict::ftl::greedy;
    use crate::ssd::{TimingMode, builtin};

    fn drive() -> SimSsd {
        let (_, profile) = builtin("ssd").unwrap();
        SimSsd::new(&profile, 100_000, TimingMode::Counting, 0).unwrap()
    }

    #[test]
    fn a_filled_drive_is_full_and_reads_as_zeros() {
        let drive = drive();
        drive.fill();
        assert_eq!(drive.in_use_pages(), 100_000);
        assert_eq!(drive.counters(), Default::default());
        let mut block = vec![1; BLOCK_SIZE];
        drive.read(Lba(77), &mut block, IoClass::Page).unwrap();
        assert!(block.iter().all(|&byte| byte == 0));
    }

    #[test]
    fn a_steady_drive_goes_on_as_the_closed_form_says() {
        let drive = drive();
        drive.fill_until_steady(5);
        let mut random = SplitMix(6);
        let block = vec![0; BLOCK_SIZE];
        for _ in 0..200_000 {
            let lba = Lba(random.below(100_000));
            drive.write(lba, &block, IoClass::Page).unwrap();
        }
        let counters = drive.counters();
        let found = 1.0 + counters.nand_gc as f64 / counters.nand_host as f64;
        let expected = greedy(drive.alpha(), 256);
        assert!(
            (found / expected - 1.0).abs() < 0.02,
            "{found}, not {expected}"
        );
        let by_class: u64 = counters.nand_gc_by_class.iter().sum();
        assert!(
            by_class < counters.nand_gc,
            "foreign data belongs to no class"
        );
    }
}
