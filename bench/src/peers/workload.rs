//! The workloads, in the order in which they run on a store.

use serde::{Deserialize, Serialize};

use super::data::Choose;

/// Zipf exponent of the skewed workloads (Bf-Tree §6.1).
pub const THETA: f64 = 0.9;

/// Records per scan.
pub const SCAN: u64 = 100;

/// A workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Workload {
    /// Insert every record, in random order.
    Load,
    /// Read, Zipf 0.9.
    Read,
    /// Overwrite, Zipf 0.9.
    Update,
    /// Half reads, half overwrites, Zipf 0.9.
    Mixed,
    /// Half reads, half overwrites, uniform.
    MixedUniform,
    /// Scans of 100 records from a start key, Zipf 0.9.
    Scan,
}

impl Workload {
    /// All workloads.
    pub const ALL: [Workload; 6] = [
        Workload::Load,
        Workload::Read,
        Workload::Update,
        Workload::Mixed,
        Workload::MixedUniform,
        Workload::Scan,
    ];

    /// Returns the name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Workload::Load => "load",
            Workload::Read => "read Zipf 0.9",
            Workload::Update => "update Zipf 0.9",
            Workload::Mixed => "50:50 Zipf 0.9",
            Workload::MixedUniform => "50:50 uniform",
            Workload::Scan => "scan 100",
        }
    }

    /// Returns how many of two operations are writes.
    #[must_use]
    pub fn writes_of_two(self) -> u32 {
        match self {
            Workload::Load | Workload::Update => 2,
            Workload::Mixed | Workload::MixedUniform => 1,
            Workload::Read | Workload::Scan => 0,
        }
    }

    /// Returns how records are chosen after loading.
    #[must_use]
    pub fn choose(self, records: u64) -> Choose {
        match self {
            Workload::Load | Workload::MixedUniform => Choose::Uniform,
            _ => Choose::zipf(records, THETA),
        }
    }
}
