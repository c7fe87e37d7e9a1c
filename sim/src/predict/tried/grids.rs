//! The grids on which predictions are compared with measurements, and their bounds.

use serde::Serialize;

use super::quantity::Quantity;

/// Families of stores that the same models predict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Pages behind a page cache, on a drive without compression.
    Pages,
    /// Pages below mini-pages, on a drive without compression.
    MiniPages,
    /// Pages on a drive with compression.
    Compressed,
    /// Pages with a modification log, on a drive with compression.
    CompressedModLog,
    /// CCL-BTree, or a tree without buffers, in persistent memory.
    Ccl,
    /// LodgeTree, in persistent memory.
    Lodge,
}

/// The predictions that a bound concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Decides {
    /// All predictions.
    All,
    /// Only the prediction of the drive's garbage collection.
    Collection,
}

/// The tested range of a quantity.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// The quantity.
    pub quantity: Quantity,
    /// Smallest tested value.
    pub low: f64,
    /// Largest tested value.
    pub high: f64,
    /// The predictions that are uncertain outside the range.
    pub decides: Decides,
}

/// A grid on which predictions were compared with measurements.
#[derive(Clone, Copy, Debug)]
pub struct Tried {
    /// The family of stores that it covers.
    pub family: Family,
    /// The command that runs it.
    pub by: &'static str,
    /// Its bounds, in groups that it partly shares with other grids.
    pub bounds: &'static [&'static [Bound]],
}

impl Tried {
    /// All its bounds.
    pub fn all_bounds(&self) -> impl Iterator<Item = &'static Bound> + use<> {
        self.bounds.iter().copied().flatten()
    }
}

const fn all(quantity: Quantity, low: f64, high: f64) -> Bound {
    Bound {
        quantity,
        low,
        high,
        decides: Decides::All,
    }
}

const fn collection(quantity: Quantity, low: f64, high: f64) -> Bound {
    Bound {
        quantity,
        low,
        high,
        decides: Decides::Collection,
    }
}

/// Index of [`super::recency`] that independent accesses of a short trace may reach by chance.
const INDEPENDENT: Bound = all(Quantity::Burstiness, 0.7, 1.4);
/// Deletes leave free space that the models still count as used.
pub(in crate::predict) const FEW_DELETES: Bound = all(Quantity::Deletes, 0.0, 0.02);
/// Runs of neighbouring keys, in which visits to pages are not independent.
pub(in crate::predict) const FEW_RUNS: Bound = all(Quantity::Runs, 0.0, 0.1);
/// Leaves that appear during the measurement: models use the tree's final shape.
pub(in crate::predict) const LITTLE_GROWTH: Bound = all(Quantity::Growth, 0.0, 0.1);
/// The log is flushed when its buffer is full or the WAL rule requires it, as with the default
/// interval of a minute.
const RARE_FLUSHES: Bound = all(Quantity::FlushInterval, 60.0, f64::INFINITY);
const NO_COMMITS: Bound = all(Quantity::Commits, 0.0, 0.0);
const ONE_CLIENT: Bound = all(Quantity::Clients, 1.0, 1.0);
const UP_TO_16_CLIENTS: Bound = all(Quantity::Clients, 1.0, 16.0);
const FRESH_DRIVE: Bound = collection(Quantity::DriveInUse, 0.0, 0.0);
const NO_SCANS: Bound = all(Quantity::Scans, 0.0, 0.0);

const GRID: &str = "cargo run --release -p treering-sim --example prediction_grid";
const GRID_BF: &str = "cargo run --release -p treering-sim --example prediction_grid -- bf";
const BMINUS: &str = "cargo run --release -p treering-sim --example bminus_figures";
const CCL: &str =
    "cargo run --release -p treering-sim --example ccl_figures -- --figure prediction";
const LODGE: &str =
    "cargo run --release -p treering-sim --example lodge_figures -- --figure prediction";

/// Bounds of all grids of page trees.
const PAGES: &[Bound] = &[
    INDEPENDENT,
    FEW_DELETES,
    FEW_RUNS,
    LITTLE_GROWTH,
    NO_SCANS,
    RARE_FLUSHES,
];
/// Bounds of the grids on drives without compression.
const UNCOMPRESSED: &[Bound] = &[NO_COMMITS, ONE_CLIENT, FRESH_DRIVE];
/// Bounds of the grids on drives with compression.
const COMPRESSED: &[Bound] = &[
    all(Quantity::CacheShare, 0.004, 0.05),
    all(Quantity::HottestTenth, 0.0, 0.45),
    all(Quantity::Writes, 1.0, 1.0),
    all(Quantity::RecordBytes, 16.0, 128.0),
    all(Quantity::PageBytes, 8192.0, 16_384.0),
    all(Quantity::Leaves, 4000.0, f64::INFINITY),
];

/// The clients and the drive of these grids.
const CLIENTS: &[Bound] = &[UP_TO_16_CLIENTS, FRESH_DRIVE];

/// All grids.
pub const TRIED: &[Tried] = &[
    Tried {
        family: Family::Pages,
        by: GRID,
        bounds: &[
            &[
                all(Quantity::CacheShare, 0.02, 0.40),
                all(Quantity::HottestTenth, 0.0, 0.80),
                all(Quantity::Writes, 0.5, 1.0),
                all(Quantity::RecordBytes, 32.0, 408.0),
                all(Quantity::PageBytes, 4096.0, 4096.0),
                all(Quantity::Leaves, 700.0, f64::INFINITY),
                // On smaller drives garbage collection moves up to a fifth more than predicted.
                collection(Quantity::Leaves, 7000.0, f64::INFINITY),
            ],
            PAGES,
            UNCOMPRESSED,
        ],
    },
    Tried {
        family: Family::MiniPages,
        by: GRID_BF,
        bounds: &[
            &[
                all(Quantity::CacheShare, 0.005, 0.13),
                all(Quantity::HottestTenth, 0.0, 0.90),
                all(Quantity::Writes, 0.05, 0.95),
                all(Quantity::RecordBytes, 32.0, 408.0),
                all(Quantity::PageBytes, 4096.0, 4096.0),
                all(Quantity::Leaves, 700.0, f64::INFINITY),
                collection(Quantity::Leaves, 5000.0, f64::INFINITY),
            ],
            PAGES,
            UNCOMPRESSED,
        ],
    },
    Tried {
        family: Family::Compressed,
        by: BMINUS,
        bounds: &[
            COMPRESSED,
            &[all(Quantity::RewritesOfLeaf, 5.0, f64::INFINITY)],
            PAGES,
            CLIENTS,
        ],
    },
    Tried {
        family: Family::CompressedModLog,
        by: BMINUS,
        bounds: &[
            COMPRESSED,
            // A modification log must fill up to its threshold before its mean is steady.
            &[all(Quantity::RewritesOfLeaf, 40.0, f64::INFINITY)],
            PAGES,
            CLIENTS,
        ],
    },
    Tried {
        family: Family::Ccl,
        by: CCL,
        bounds: &[&[
            all(Quantity::Writes, 1.0, 1.0),
            all(Quantity::RecordBytes, 16.0, 16.0),
            all(Quantity::HottestTenth, 0.0, 0.80),
            all(Quantity::Records, 500_000.0, f64::INFINITY),
            INDEPENDENT,
            FEW_DELETES,
        ]],
    },
    Tried {
        family: Family::Lodge,
        by: LODGE,
        bounds: &[&[
            all(Quantity::Writes, 1.0, 1.0),
            all(Quantity::RecordBytes, 16.0, 16.0),
            all(Quantity::Records, 200_000.0, f64::INFINITY),
            FEW_DELETES,
        ]],
    },
];
