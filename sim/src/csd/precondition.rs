//! Preconditioning of a compressing drive: before the store is created, the whole drive is filled
//! with foreign data.
//!
//! As on a drive without compression ([`crate::ssd::SimSsd::fill`]), only the map knows these data,
//! which read as zeros. Their compressed extents take the nominal flash `P`, an equal part for each
//! logical block: incompressible data on a drive that shows no more than its flash, and on a thinly
//! provisioned drive data that compress as far as it assumes. So a filled drive is as full as its
//! over-provisioning says.

use super::device::SimCsd;
use super::ftl::ExtentFtl;
use super::geometry::foreign_extent;
use crate::ssd::precondition::{FOREIGN, Foreign, fill, overwrite_until_steady};

/// The FTL, with the size of foreign extents.
pub(crate) struct Prepared<'a> {
    pub(crate) ftl: &'a mut ExtentFtl,
    pub(crate) extent: u16,
}

impl Foreign for Prepared<'_> {
    fn blocks(&self) -> u64 {
        self.ftl.logical_blocks()
    }

    fn write_foreign(&mut self, block: u32) {
        self.ftl.write(block, self.extent, FOREIGN, &mut ());
    }

    fn reset(&mut self) {
        self.ftl.reset_counters();
    }

    fn amplification(&self) -> Option<f64> {
        let counters = self.ftl.counters();
        let all = (counters.host + counters.gc) as f64;
        (counters.erases > 0).then(|| all / counters.host as f64)
    }
}

impl SimCsd {
    /// Writes every block once, in order.
    pub fn fill(&self) {
        self.prepare(|ftl| fill(ftl));
    }

    /// [`SimCsd::fill`], then random overwrites until the write amplification hardly differs
    /// between two passes over the logical space.
    pub fn fill_until_steady(&self, seed: u64) {
        self.prepare(|ftl| {
            fill(ftl);
            overwrite_until_steady(ftl, seed);
        });
    }

    fn prepare(&self, how: impl FnOnce(&mut Prepared<'_>)) {
        let extent = foreign_extent(self.profile());
        self.with_ftl(|ftl| {
            how(&mut Prepared { ftl, extent });
            ftl.reset_counters();
        });
    }
}

#[cfg(test)]
mod tests {
    use treering_engine::device::BlockDevice;
    use treering_engine::{BLOCK_SIZE, IoClass, Lba};

    use super::*;
    use crate::csd::builtin;
    use crate::predict::ftl::greedy;
    use crate::ssd::TimingMode;
    use crate::ssd::gc::SplitMix;

    const BLOCKS: u64 = 30_000;

    fn drive(name: &str) -> SimCsd {
        let (_, profile) = builtin(name).unwrap();
        SimCsd::new(&profile, BLOCKS, TimingMode::Counting, 0).unwrap()
    }

    #[test]
    fn a_filled_drive_is_full_and_reads_as_zeros() {
        for (name, each) in [("csd", 4096), ("csd-thin", 2048)] {
            let drive = drive(name);
            drive.fill();
            assert_eq!(drive.live_bytes(), BLOCKS * each);
            assert_eq!(drive.counters(), Default::default());
            let mut block = vec![1; BLOCK_SIZE];
            drive.read(Lba(77), &mut block, IoClass::Page).unwrap();
            assert!(block.iter().all(|&byte| byte == 0));
            drive.trim(Lba(0), BLOCKS).unwrap();
            assert_eq!(drive.live_bytes(), 0);
        }
    }

    #[test]
    fn a_steady_drive_goes_on_as_the_closed_form_says() {
        let drive = drive("csd");
        drive.fill_until_steady(5);
        let mut random = SplitMix(6);
        let mut block = vec![0; BLOCK_SIZE];
        for _ in 0..3 * BLOCKS {
            // Incompressible content.
            for word in block.chunks_exact_mut(8) {
                word.copy_from_slice(&random.below(u64::MAX).to_le_bytes());
            }
            let lba = Lba(random.below(BLOCKS));
            drive.write(lba, &block, IoClass::Page).unwrap();
        }
        let counters = drive.counters();
        let found = 1.0 + counters.nand_gc as f64 / counters.nand_host as f64;
        let expected = greedy(drive.log_bytes() as f64 / drive.live_bytes() as f64, 256);
        let off = found / expected - 1.0;
        assert!(off.abs() < 0.03, "{found}, not {expected}");
        drive.check_invariants().unwrap();
    }
}
