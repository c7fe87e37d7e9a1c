//! The page-mapped drive as the replay uses it.

use std::sync::Arc;

use treering_engine::device::{BlockDevice, DeviceError};
use treering_engine::{BLOCK_SIZE, Nanos};

use super::device::{Served, SimSsd, SsdCounters, TimingMode, Wear};
use super::gc::GcPolicy;
use super::profile::SsdProfile;
use crate::drive::{
    DriveCounters, DriveError, DriveProfile, Precondition, SimDrive, logical_bytes,
};
use crate::labels::SizedWrite;
use crate::predict::{Before, Cleaning, DeviceParams};
use crate::report::{self, DeviceReport};

impl SimDrive for SimSsd {
    fn serve(&self, at: Nanos) -> Served {
        SimSsd::serve(self, at)
    }

    fn counters(&self) -> SsdCounters {
        SimSsd::counters(self)
    }

    fn write_sized(&self, write: SizedWrite<'_>) -> Result<(), DeviceError> {
        SimSsd::write_sized(self, &[write])
    }

    fn write_batch_sized(&self, writes: &[SizedWrite<'_>]) -> Result<(), DeviceError> {
        SimSsd::write_sized(self, writes)
    }

    fn moved(&self) -> Vec<u64> {
        SimSsd::moved(self)
    }

    fn prepare(&self, how: Precondition, seed: u64) {
        match how {
            Precondition::None => {}
            Precondition::Fill => self.fill(),
            Precondition::Steady => self.fill_until_steady(seed),
        }
    }

    fn restart_mean(&self) {
        self.restart_in_use_mean();
    }

    fn in_use_bytes(&self) -> u64 {
        self.in_use_pages() * BLOCK_SIZE as u64
    }

    fn log_bytes(&self) -> f64 {
        self.alpha() * logical_bytes(self)
    }

    fn wear(&self) -> Wear {
        SimSsd::wear(self)
    }

    fn read_ns(&self, bytes: usize) -> u64 {
        SimSsd::read_ns(self, bytes)
    }

    fn write_ns(&self, bytes: usize) -> u64 {
        SimSsd::write_ns(self, bytes)
    }

    fn params(&self) -> DeviceParams {
        let blocks = self.capacity_blocks();
        DeviceParams {
            capacity_blocks: blocks,
            physical_pages: self.alpha() * blocks as f64,
            pages_per_block: self.profile().pages_per_block,
            before: Before::Nothing,
            before_block: 1.0,
            cleaning: cleaning(self.profile()),
            compression: None,
            flash: Some(self.shape()),
        }
    }

    fn report(&self, before: &DriveCounters, after: &DriveCounters) -> DeviceReport {
        let profile = self.profile();
        let blocks = self.capacity_blocks();
        let in_use = self.mean_in_use_pages().max(1.0);
        let physical = self.alpha() * blocks as f64;
        DeviceReport {
            kind: "ssd".into(),
            profile: String::new(),
            logical_blocks: blocks,
            over_provisioning_definition:
                "T/U - 1: physical pages of the log (free reserve and frontier left out) over \
                 logical pages, minus one"
                    .into(),
            over_provisioning: Some(self.alpha() - 1.0),
            alpha: Some(self.alpha()),
            effective_alpha: Some(physical / in_use),
            pages_per_block: Some(profile.pages_per_block),
            gc: Some(profile.gc.clone()),
            gc_reached: Some(after.flash.erases > before.flash.erases),
            compression: None,
            profile_values: report::flat(profile),
        }
    }
}

/// The garbage collection policy of a profile, as predictors name it.
pub(crate) fn cleaning(profile: &SsdProfile) -> Cleaning {
    match GcPolicy::parse(&profile.gc) {
        Some(GcPolicy::Fifo) => Cleaning::Fifo,
        Some(GcPolicy::DChoices(d)) => Cleaning::DChoices(d),
        // These policies are between FIFO and greedy and have no closed form. The report warns
        // about it.
        Some(GcPolicy::Greedy | GcPolicy::CostBenefit | GcPolicy::WindowedGreedy(_)) | None => {
            Cleaning::Greedy
        }
    }
}

impl DriveProfile for SsdProfile {
    fn build(
        &self,
        blocks: u64,
        timing: TimingMode,
        seed: u64,
    ) -> Result<Arc<dyn SimDrive>, DriveError> {
        Ok(Arc::new(SimSsd::new(self, blocks, timing, seed)?))
    }

    /// The largest size that needs no more erase blocks; over-provisioning then equals that of the
    /// profile.
    fn fitted_blocks(&self, blocks: u64) -> u64 {
        let alpha = 1.0 + self.over_provisioning;
        let pages = f64::from(self.pages_per_block);
        let erase_blocks = (blocks as f64 * alpha / pages).ceil();
        blocks.max((erase_blocks * pages / alpha) as u64)
    }

    fn flash(&self) -> Option<&SsdProfile> {
        Some(self)
    }

    /// A warning if the one spare erase block that every drive needs dominates its
    /// over-provisioning.
    fn too_small(&self, blocks: u64) -> Option<String> {
        let (asked, pages) = (self.over_provisioning, u64::from(self.pages_per_block));
        let least = (blocks.div_ceil(pages) + 1) * pages;
        let found = least as f64 / blocks as f64 - 1.0;
        (found > 1.05 * asked).then(|| {
            format!(
                "The drive is so small that its one spare erase block makes {:.1} % \
                 over-provisioning, not {:.1} % (--capacity or more records would change that).",
                100.0 * found,
                100.0 * asked
            )
        })
    }

    /// A warning for policies without a known formula, which are predicted as greedy cleaning.
    fn unpredicted(&self) -> Option<String> {
        let policy = GcPolicy::parse(&self.gc)?;
        let unknown = matches!(policy, GcPolicy::CostBenefit | GcPolicy::WindowedGreedy(_));
        unknown.then(|| {
            format!(
                "No closed form is known for garbage collection by {policy}: it is predicted as \
                 greedy."
            )
        })
    }
}
