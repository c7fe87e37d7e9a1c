//! A drive in use: before the store is made, somebody else has written all of it.
//!
//! Only the map knows: the data reads as zeros, counters start at zero, wear stays. What the store never writes or trims stays valid, and
//! garbage collection moves it around with everything else; it counts towards no I/O class.

use super::device::SimSsd;
use super::ftl::{CLASSES, Ftl};
use super::gc::SplitMix;

/// The class of data that is not the store's.
const FOREIGN: u8 = CLASSES as u8;

/// Two device turns in a row whose write amplifications differ by no more are steady.
const STEADY: f64 = 0.01;

/// Most device turns of overwriting: at 1 % over-provisioning a drive needs that many.
const MOST_TURNS: u32 = 50;

impl SimSsd {
    /// Writes every page once, in order.
    pub fn fill(&self) {
        self.prepare(fill);
    }

    /// [`SimSsd::fill`], then random overwrites until the write amplification of a device turn hardly differs from that of the turn
    /// before (SNIA PTS calls it steady within 20 % over five rounds; this is stricter).
    pub fn fill_until_steady(&self, seed: u64) {
        self.prepare(|ftl| {
            fill(ftl);
            overwrite_until_steady(ftl, seed);
        });
    }
}

fn fill(ftl: &mut Ftl) {
    for page in 0..ftl.logical_pages() {
        ftl.write_with(page as u32, FOREIGN, &mut ());
    }
}

fn overwrite_until_steady(ftl: &mut Ftl, seed: u64) {
    let mut random = SplitMix(seed);
    let mut before = f64::INFINITY;
    for _ in 0..MOST_TURNS {
        ftl.reset_counters();
        for _ in 0..ftl.logical_pages() {
            let page = random.below(ftl.logical_pages());
            ftl.write_with(page as u32, FOREIGN, &mut ());
        }
        let now = ftl.counters().write_amplification().unwrap_or(1.0);
        if ftl.gc_reached() && (now / before - 1.0).abs() <= STEADY {
            return;
        }
        before = now;
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
