//! The compressing drive as the replay uses it.

use std::sync::Arc;

use treering_engine::device::{BlockDevice, DeviceError};
use treering_engine::{BLOCK_SIZE, Lba, Nanos};

use super::device::{CompressionCounters, SimCsd};
use super::geometry::foreign_share;
use super::profile::CsdProfile;
use crate::drive::{
    DriveCounters, DriveError, DriveProfile, Precondition, SimDrive, logical_bytes,
};
use crate::labels::SizedWrite;
use crate::predict::{Before, Compression, DeviceParams};
use crate::report::{self, CompressionReport, DeviceReport};
use crate::ssd::{Served, SsdCounters, SsdProfile, TimingMode, Wear, cleaning};

impl SimDrive for SimCsd {
    fn serve(&self, at: Nanos) -> Served {
        SimCsd::serve(self, at)
    }

    fn counters(&self) -> SsdCounters {
        SimCsd::counters(self)
    }

    fn compression(&self) -> Option<CompressionCounters> {
        Some(SimCsd::compression(self))
    }

    fn write_sized(&self, write: SizedWrite<'_>) -> Result<(), DeviceError> {
        SimCsd::write_sized(self, &[write])
    }

    fn write_batch_sized(&self, writes: &[SizedWrite<'_>]) -> Result<(), DeviceError> {
        SimCsd::write_sized(self, writes)
    }

    fn payloads(&self, lba: Lba, blocks: usize, sizes: &mut Vec<u16>) {
        SimCsd::payloads(self, lba, blocks, sizes);
    }

    fn moved(&self) -> Vec<u64> {
        SimCsd::moved(self)
    }

    fn prepare(&self, how: Precondition, seed: u64) {
        match how {
            Precondition::None => {}
            Precondition::Fill => self.fill(),
            Precondition::Steady => self.fill_until_steady(seed),
        }
    }

    fn restart_mean(&self) {
        self.restart_live_mean();
    }

    fn in_use_bytes(&self) -> u64 {
        self.live_bytes()
    }

    fn log_bytes(&self) -> f64 {
        SimCsd::log_bytes(self) as f64
    }

    fn wear(&self) -> Wear {
        SimCsd::wear(self)
    }

    fn read_ns(&self, bytes: usize) -> u64 {
        SimCsd::read_ns(self, bytes)
    }

    fn write_ns(&self, bytes: usize) -> u64 {
        SimCsd::write_ns(self, bytes)
    }

    fn params(&self) -> DeviceParams {
        let profile = self.profile();
        DeviceParams {
            capacity_blocks: self.capacity_blocks(),
            physical_pages: SimCsd::log_bytes(self) as f64 / BLOCK_SIZE as f64,
            pages_per_block: profile.flash.pages_per_block,
            before: Before::Nothing,
            before_block: foreign_share(profile),
            cleaning: cleaning(&profile.flash),
            compression: Some(Compression {
                codec: self.codec(),
                extent_header: f64::from(profile.extent_header_bytes),
                seed: self.seed(),
            }),
            flash: Some(self.shape()),
        }
    }

    fn report(&self, before: &DriveCounters, after: &DriveCounters) -> DeviceReport {
        let profile = self.profile();
        let log = SimCsd::log_bytes(self) as f64;
        let logical = logical_bytes(self);
        let compression = before.compression.zip(after.compression);
        DeviceReport {
            kind: "csd".into(),
            profile: String::new(),
            logical_blocks: self.capacity_blocks(),
            over_provisioning_definition:
                "T/P - 1: bytes of the log (free reserve and frontier left out) over nominal flash \
                 P, minus one; P is logical bytes over logical_over_physical"
                    .into(),
            over_provisioning: Some(log / (logical / profile.logical_over_physical) - 1.0),
            alpha: Some(log / logical),
            effective_alpha: Some(log / self.mean_live_bytes().max(1.0)),
            pages_per_block: Some(profile.flash.pages_per_block),
            gc: Some(profile.flash.gc.clone()),
            gc_reached: Some(after.flash.erases > before.flash.erases),
            compression: compression.map(|(a, b)| CompressionReport {
                codec: profile.codec.clone(),
                level: profile.level,
                logical_over_physical: profile.logical_over_physical,
                capacity_bytes: self.capacity_bytes(),
                zero_blocks: b.zero_blocks - a.zero_blocks,
                compressed_blocks: b.compressed_blocks - a.compressed_blocks,
                remembered_blocks: b.remembered_blocks - a.remembered_blocks,
                padding_bytes: b.padding - a.padding,
            }),
            profile_values: report::flat(profile),
        }
    }
}

impl DriveProfile for CsdProfile {
    fn build(
        &self,
        blocks: u64,
        timing: TimingMode,
        seed: u64,
    ) -> Result<Arc<dyn SimDrive>, DriveError> {
        Ok(Arc::new(SimCsd::new(self, blocks, timing, seed)?))
    }

    fn flash(&self) -> Option<&SsdProfile> {
        Some(&self.flash)
    }
}
