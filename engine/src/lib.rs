//! Write-optimised B-trees on any block device, and in persistent memory.
//!
//! A [`Store`] keeps an ordered map on a [`device::BlockDevice`] and survives crashes, a
//! [`PmStore`] does on a [`device::PmDevice`]. A store reads time through a [`Clock`] and spawns no
//! thread: background work is [`Task`]s that the owner pumps, and what nobody pumps is done by the
//! operations that need it.
//!
//! ```
//! use std::ops::ControlFlow;
//! use std::sync::Arc;
//! use treering_engine::device::FileDevice;
//! use treering_engine::{Kv, Options, Result, Store, SystemClock, required_blocks};
//!
//! # let folder = tempfile::tempdir().expect("a folder");
//! # let path = folder.path().join("my.store");
//! # fn main_in(path: &std::path::Path) -> Result<()> {
//! // A write is durable when it returns. `Durability` has faster promises, each by its name.
//! let options = Options::default();
//! // A file has its size from the beginning: here with room for 1,000 pages of 4 KiB.
//! let device = Arc::new(FileDevice::create(path, required_blocks(&options, 1_000))?);
//! let store = Store::open(device, Arc::new(SystemClock::new()), &options)?;
//! for n in 0..100_u32 {
//!     store.put(&n.to_be_bytes(), format!("value {n}").as_bytes())?;
//! }
//! store.delete(&7_u32.to_be_bytes())?;
//!
//! let mut value = Vec::new();
//! assert!(store.get(&8_u32.to_be_bytes(), &mut value)? && value == b"value 8");
//! assert!(!store.get(&7_u32.to_be_bytes(), &mut value)?);
//!
//! // Closing says whether all is well, and leaves the next opening nothing to redo. A store that is just dropped has lost
//! // nothing, either, and one whose process was killed nothing that was durable.
//! store.close()?;
//!
//! let device = Arc::new(FileDevice::open(path)?);
//! let store = Store::open(device, Arc::new(SystemClock::new()), &options)?;
//! let mut rows = 0;
//! store.scan(b"", &mut |_key, _value| {
//!     rows += 1;
//!     ControlFlow::Continue(())
//! })?;
//! assert_eq!(rows, 99);
//! # Ok(())
//! # }
//! # main_in(&path).expect("runs");
//! ```
//!
//! # After an error
//!
//! A failed read leaves the store as it was; other keys can be read. A write that the store
//! *refuses* ([`Error::KeyTooLong`], [`Error::ValueTooLong`], [`Error::RecordTooLarge`],
//! [`Error::Full`], [`Error::LogFull`], [`Error::PmFull`], [`Error::PmTooLong`]) has changed
//! nothing, and others may
//! succeed. A write, flush or checkpoint that *fails on the device* leaves in doubt what the device
//! holds: from then on the store refuses every write with [`Error::Poisoned`], which carries the
//! first cause, and still answers reads as far as it can. Whether the write that failed survives is
//! known when the store has been opened again.

pub mod device;
pub mod events;
pub mod index;
pub mod mapping;
pub mod mini;
pub mod node;
pub mod prelude;
pub mod ring;
pub mod spec;
pub mod sync;
pub mod wal;

mod cache;
mod error;
mod held;
mod inspect;
mod kv;
mod layout;
mod mutation;
mod open;
mod options;
mod overflow;
mod pager;
mod pages;
mod pm;
mod range;
mod rows;
mod snapshot;
mod sparse;
mod stats;
mod store;
mod trees;
mod types;

pub use error::{Error, Result};
pub use inspect::repair::{
    KeyRange, SalvageHints, SalvageReport, SalvageStep, SalvageVisitor, salvage, salvage_options,
};
pub use inspect::survey::{LogBlock, SuperblockFound, Survey, survey};
pub use inspect::verify::{VerifyReport, verify, verify_blocks, verify_path};
pub use kv::{Kv, Visitor};
pub use layout::{is_store_file, required_blocks};
#[cfg(any(treering_mutations, feature = "mutations"))]
pub use mutation::choose as choose_mutation;
pub use mutation::{HARMLESS, MUTATIONS};
pub use open::{AnyDevice, open, open_with};
pub use options::{
    BfOptions, CclOptions, Cleaning, ContentionSplit, Durability, GlobalOptions, LodgeOptions,
    LogPacking, Logging, MIN_CACHE_PAGES, ModLog, NodeSplit, Options, PageStoreKind, Param,
    PmOptions, PmTreeKind, ResetRule, TablePersist, TreeKind,
};
pub use overflow::{MAX_VALUE_BYTES, POINTER_BYTES, is_long, overflow_blocks};
pub use pages::delta_block;
pub use pm::leaves::recover::PmRecoveryReport;
pub use pm::places::{PmPlace, pm_places};
pub use pm::store::{PmStore, PmTask};
pub use range::{KvRange, Range, Row};
pub use spec::{Family, PageTree, SpecError, TreeEntry, TreeSpec};
pub use stats::{
    BATCH_BINS, BfStats, ClassBytes, FLUSH_BINS, KindCounts, LodgeStats, MemoryStats, MergeCauses,
    ModLogStats, OverflowStats, PmStats, SIZE_CLASSES, SizeClass, Stats,
};
pub use store::recovery::RecoveryReport;
pub use store::{LeafFill, Store, Task};
pub use trees::bf::BfShape;
pub use trees::bf::cache_only::CacheOnly;
pub use types::{
    BLOCK_SIZE, Clock, IoClass, Lba, Lsn, Nanos, PageId, Progress, StoreId, SystemClock,
};
