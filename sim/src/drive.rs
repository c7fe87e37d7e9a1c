//! The interface between a replay and a simulated drive, and the profile that builds the drive.
//!
//! ```text
//! profile ──build──▶ drive ◀──read, write, trim, flush── store
//!                      │ serve(now): when is the requested work done?
//!                      ▼
//!              counters, wear, a section of the report, parameters for the predictors
//! ```
//!
//! To add a drive of your own, implement [`SimDrive`] for a [`BlockDevice`], and [`DriveProfile`]
//! to build it. This one keeps two copies of each block:
//!
//! ```
//! use std::sync::{Arc, Mutex};
//! use treering_engine::device::{BlockDevice, DeviceError, MemDevice};
//! use treering_engine::{IoClass, Lba, Nanos};
//! use treering_sim::drive::{DriveError, DriveProfile, SimDrive};
//! use treering_sim::replay::{OwnDrive, ReplayConfig, Target, run};
//! use treering_sim::ssd::{Served, SsdCounters, TimingMode};
//!
//! struct Mirror(MemDevice, Mutex<SsdCounters>);
//!
//! impl BlockDevice for Mirror {
//!     fn capacity_blocks(&self) -> u64 {
//!         self.0.capacity_blocks()
//!     }
//!     fn read(&self, lba: Lba, buf: &mut [u8], class: IoClass) -> Result<(), DeviceError> {
//!         self.1.lock().unwrap().host_read[class as usize] += buf.len() as u64;
//!         self.0.read(lba, buf, class)
//!     }
//!     fn write(&self, lba: Lba, bytes: &[u8], class: IoClass) -> Result<(), DeviceError> {
//!         let mut counters = self.1.lock().unwrap();
//!         counters.host_written[class as usize] += bytes.len() as u64;
//!         counters.nand_host += 2 * bytes.len() as u64;
//!         self.0.write(lba, bytes, class)
//!     }
//!     fn trim(&self, lba: Lba, blocks: u64) -> Result<(), DeviceError> {
//!         self.0.trim(lba, blocks)
//!     }
//!     fn flush(&self) -> Result<(), DeviceError> {
//!         self.0.flush()
//!     }
//! }
//!
//! impl SimDrive for Mirror {
//!     fn serve(&self, at: Nanos) -> Served {
//!         Served { done: at, service_ns: 0, queue_ns: 0 }
//!     }
//!     fn counters(&self) -> SsdCounters {
//!         *self.1.lock().unwrap()
//!     }
//! }
//!
//! #[derive(Debug)]
//! struct MirrorProfile;
//!
//! impl DriveProfile for MirrorProfile {
//!     fn build(
//!         &self,
//!         blocks: u64,
//!         _timing: TimingMode,
//!         _seed: u64,
//!     ) -> Result<Arc<dyn SimDrive>, DriveError> {
//!         Ok(Arc::new(Mirror(MemDevice::new(blocks), Mutex::default())))
//!     }
//! }
//!
//! # use treering_traces::generate::{GenParams, Workload, build};
//! # use treering_traces::{Op, OpSource, Writer};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("zipf.trz");
//! # let (header, mut source) = build(&GenParams::new(Workload::Zipf, 2_000))?;
//! # let mut writer = Writer::create(&path, header)?;
//! # let mut op = Op::default();
//! # while source.next_op(&mut op)? {
//! #     writer.write(&op)?;
//! # }
//! # writer.finish()?;
//! let profile = Arc::new(MirrorProfile);
//! let target = Target::Own(OwnDrive { profile, name: "mirror".into() });
//! let report = run(&ReplayConfig::new(path, target), &mut |_| {})?;
//! assert_eq!(report.device.profile, "mirror");
//! assert_eq!(report.wa.device.expect("a simulated drive").nand_over_host, 2.0);
//! # Ok(())
//! # }
//! ```

use std::error::Error;
use std::fmt::Debug;
use std::sync::Arc;

use treering_engine::device::{BlockDevice, DeviceError};
use treering_engine::{BLOCK_SIZE, Lba, Nanos};

use crate::csd::CompressionCounters;
pub use crate::labels::SizedWrite;
use crate::predict::{Before, Cleaning, DeviceParams};
use crate::report::DeviceReport;
use crate::ssd::{Served, SsdCounters, SsdProfile, TimingMode, Wear};

/// The reason why a drive cannot be built.
pub type DriveError = Box<dyn Error + Send + Sync>;

/// The state of a drive before the store is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// Factory-fresh.
    None,
    /// Every page was written once, in order, with foreign data.
    Fill,
    /// As [`Precondition::Fill`], then randomly overwritten until garbage collection is steady.
    Steady,
}

/// A drive's counters at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriveCounters {
    /// Bytes from the host, and bytes to flash.
    pub flash: SsdCounters,
    /// Compression statistics, if the drive compresses.
    pub compression: Option<CompressionCounters>,
}

/// A block device that counts its work and computes completion times in virtual time.
///
/// Only [`SimDrive::serve`] and [`SimDrive::counters`] have no default. With the other defaults, a
/// drive has no garbage collection, no wear and no timing of its own.
pub trait SimDrive: BlockDevice {
    /// Serves the requests since the last call, as if they began at `at`.
    fn serve(&self, at: Nanos) -> Served;

    /// Bytes from the host and to flash so far. The host bytes must be exact for each class,
    /// because a replay compares them with the engine's counts.
    fn counters(&self) -> SsdCounters;

    /// Takes a write of which only the sizes are known: as [`BlockDevice::write`], but the drive
    /// keeps no contents. Reads of such blocks take their time, and return zeros.
    ///
    /// # Errors
    /// As for a write.
    fn write_sized(&self, write: SizedWrite<'_>) -> Result<(), DeviceError> {
        let zeros = [0; BLOCK_SIZE];
        (write.lba..)
            .zip(write.payloads)
            .try_for_each(|(lba, _)| self.write(Lba(lba), &zeros, write.class))
    }

    /// Takes several writes of one call: as [`BlockDevice::write_batch`], but the drive keeps no
    /// contents.
    ///
    /// # Errors
    /// As for a batch.
    fn write_batch_sized(&self, writes: &[SizedWrite<'_>]) -> Result<(), DeviceError> {
        writes.iter().try_for_each(|write| self.write_sized(*write))
    }

    /// Appends the compressed sizes of these blocks, as [`SizedWrite::payloads`] has them. A drive
    /// that does not compress appends any size.
    fn payloads(&self, _lba: Lba, blocks: usize, sizes: &mut Vec<u16>) {
        sizes.extend(std::iter::repeat_n(BLOCK_SIZE as u16, blocks));
    }

    /// Bytes that garbage collection moved so far, by the label of [`SimDrive::write_sized`]; empty
    /// if the drive does not know.
    fn moved(&self) -> Vec<u64> {
        Vec::new()
    }

    /// Compression statistics so far, if the drive compresses.
    fn compression(&self) -> Option<CompressionCounters> {
        None
    }

    /// Brings the drive into this state before the run.
    fn prepare(&self, _how: Precondition, _seed: u64) {}

    /// Restarts the average of used space when the measured part begins.
    fn restart_mean(&self) {}

    /// Bytes of flash that hold data now.
    fn in_use_bytes(&self) -> u64 {
        self.capacity_blocks() * BLOCK_SIZE as u64
    }

    /// Bytes of flash that the drive's log can use, T.
    fn log_bytes(&self) -> f64 {
        logical_bytes(self)
    }

    /// Wear over the drive's whole life.
    fn wear(&self) -> Wear {
        Wear {
            mean_erases: 0.0,
            max_erases: 0,
            lifetime_host_bytes: None,
        }
    }

    /// Nanoseconds to read this many bytes at once on an idle drive.
    fn read_ns(&self, _bytes: usize) -> u64 {
        0
    }

    /// Nanoseconds to write this many bytes at once on an idle drive.
    fn write_ns(&self, _bytes: usize) -> u64 {
        0
    }

    /// Parameters of the fresh drive for the predictors.
    fn params(&self) -> DeviceParams {
        let blocks = self.capacity_blocks();
        DeviceParams {
            capacity_blocks: blocks,
            physical_pages: blocks as f64,
            pages_per_block: 256,
            before: Before::Nothing,
            before_block: 1.0,
            cleaning: Cleaning::Greedy,
            compression: None,
            flash: None,
        }
    }

    /// The drive's section of the report, for the time between two moments. The replay fills in its
    /// name.
    fn report(&self, _before: &DriveCounters, _after: &DriveCounters) -> DeviceReport {
        DeviceReport {
            kind: "own".into(),
            logical_blocks: self.capacity_blocks(),
            ..DeviceReport::default()
        }
    }
}

/// Parameters of a simulated drive; builds the drive for a store of a known size.
pub trait DriveProfile: Debug + Send + Sync {
    /// Builds an empty drive with `blocks` addressable blocks of 4 KiB.
    ///
    /// # Errors
    /// [`DriveError`] that says why the drive cannot be built.
    fn build(
        &self,
        blocks: u64,
        timing: TimingMode,
        seed: u64,
    ) -> Result<Arc<dyn SimDrive>, DriveError>;

    /// The size, at least `blocks`, of a drive that is sized to a store of `blocks` blocks.
    fn fitted_blocks(&self, blocks: u64) -> u64 {
        blocks
    }

    /// The flash: its over-provisioning, garbage collection and endurance.
    fn flash(&self) -> Option<&SsdProfile> {
        None
    }

    /// A warning about a drive as small as this, if any.
    fn too_small(&self, _blocks: u64) -> Option<String> {
        None
    }

    /// A warning about properties that no predictor models, if any.
    fn unpredicted(&self) -> Option<String> {
        None
    }
}

/// Addressable bytes of a drive.
pub(crate) fn logical_bytes(drive: &(impl BlockDevice + ?Sized)) -> f64 {
    drive.capacity_blocks() as f64 * BLOCK_SIZE as f64
}

/// The precondition, as predictors name it.
#[must_use]
pub fn before(how: Precondition) -> Before {
    match how {
        Precondition::None => Before::Nothing,
        Precondition::Fill => Before::InOrder,
        Precondition::Steady => Before::Scattered,
    }
}
