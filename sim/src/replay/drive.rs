//! The simulated drive below a store, of either kind.

use std::sync::Arc;

use treering_engine::device::BlockDevice;
use treering_engine::{BLOCK_SIZE, Nanos};

use super::Precondition;
use crate::csd::{CompressionCounters, SimCsd};
use crate::ssd::{Served, SimSsd, SsdCounters, Wear};

/// A simulated drive.
#[derive(Clone)]
pub(super) enum Drive {
    Ssd(Arc<SimSsd>),
    Csd(Arc<SimCsd>),
}

impl Drive {
    pub(super) fn device(&self) -> Arc<dyn BlockDevice> {
        match self {
            Drive::Ssd(drive) => drive.clone(),
            Drive::Csd(drive) => drive.clone(),
        }
    }

    /// Puts it through what it is to have been through before the run.
    pub(super) fn prepare(&self, how: Precondition, seed: u64) {
        match (self, how) {
            (_, Precondition::None) => {}
            (Drive::Ssd(drive), Precondition::Fill) => drive.fill(),
            (Drive::Csd(drive), Precondition::Fill) => drive.fill(),
            (Drive::Ssd(drive), Precondition::Steady) => drive.fill_until_steady(seed),
            (Drive::Csd(drive), Precondition::Steady) => drive.fill_until_steady(seed),
        }
    }

    pub(super) fn serve(&self, at: Nanos) -> Served {
        match self {
            Drive::Ssd(drive) => drive.serve(at),
            Drive::Csd(drive) => drive.serve(at),
        }
    }

    pub(super) fn counters(&self) -> SsdCounters {
        match self {
            Drive::Ssd(drive) => drive.counters(),
            Drive::Csd(drive) => drive.counters(),
        }
    }

    /// What compression did, if the drive compresses.
    pub(super) fn compression(&self) -> Option<CompressionCounters> {
        match self {
            Drive::Ssd(_) => None,
            Drive::Csd(drive) => Some(drive.compression()),
        }
    }

    pub(super) fn restart_in_use_mean(&self) {
        match self {
            Drive::Ssd(drive) => drive.restart_in_use_mean(),
            Drive::Csd(drive) => drive.restart_live_mean(),
        }
    }

    /// Bytes of flash that hold data now.
    pub(super) fn in_use_bytes(&self) -> u64 {
        match self {
            Drive::Ssd(drive) => drive.in_use_pages() * BLOCK_SIZE as u64,
            Drive::Csd(drive) => drive.live_bytes(),
        }
    }

    /// Bytes of flash that the drive's log can use, T.
    pub(super) fn log_bytes(&self) -> f64 {
        match self {
            Drive::Ssd(drive) => drive.alpha() * self.logical_bytes(),
            Drive::Csd(drive) => drive.log_bytes() as f64,
        }
    }

    pub(super) fn logical_bytes(&self) -> f64 {
        self.device().capacity_blocks() as f64 * BLOCK_SIZE as f64
    }

    pub(super) fn wear(&self) -> Wear {
        match self {
            Drive::Ssd(drive) => drive.wear(),
            Drive::Csd(drive) => drive.wear(),
        }
    }
}
