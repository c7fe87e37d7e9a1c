//! Write-optimised B-trees on any block device, and in persistent memory.
//!
//! A [`Store`] keeps an ordered map on a [`device::BlockDevice`] and survives crashes, a [`PmStore`] does on a [`device::PmDevice`]. A store reads time through a
//! [`Clock`] and spawns no thread: background work is [`Task`]s that the owner pumps.

pub mod device;
pub mod events;
pub mod index;
pub mod mapping;
pub mod mini;
pub mod node;
pub mod ring;
pub mod sync;
pub mod wal;

mod cache;
mod checkpoint;
mod error;
mod kv;
mod layout;
mod mutation;
mod options;
mod pager;
mod pages;
mod pm;
mod pm_store;
mod recovery;
mod snapshot;
mod sparse;
mod stats;
mod steps;
mod store;
mod survey;
mod trees;
mod types;
mod verify;

pub use error::{Error, Result};
pub use kv::{Kv, Visitor};
pub use layout::required_blocks;
#[cfg(any(treering_mutations, feature = "mutations"))]
pub use mutation::choose as choose_mutation;
pub use mutation::{HARMLESS, MUTATIONS};
pub use options::{
    BfOptions, CclOptions, Cleaning, ContentionSplit, Durability, GlobalOptions, LodgeOptions,
    LogPacking, Logging, ModLog, NodeSplit, Options, PageStoreKind, PmOptions, PmTreeKind,
    ResetRule, TablePersist, TreeKind,
};
pub use pager::Progress;
pub use pages::delta_block;
pub use pm_store::{PmStore, PmTask};
pub use recovery::RecoveryReport;
pub use stats::{
    BATCH_BINS, BfStats, ClassBytes, FLUSH_BINS, KindCounts, LodgeStats, MemoryStats, MergeCauses,
    ModLogStats, PmStats, SIZE_CLASSES, SizeClass, Stats,
};
pub use store::{LeafFill, MIN_CACHE_PAGES, Store, Task};
pub use survey::{LogBlock, SuperblockFound, Survey, survey};
pub use trees::bf::BfShape;
pub use trees::bf::cache_only::CacheOnly;
pub use trees::pm::recover::PmRecoveryReport;
pub use types::{BLOCK_SIZE, Clock, IoClass, Lba, Lsn, Nanos, PageId, SystemClock};
pub use verify::{VerifyReport, verify};
