#![doc = include_str!("../README.md")]
//!
//! # How it is built
//!
//! ```text
//!  TreeSpec ──▶ open ──▶ Store: tree · pages · cache · redo log ──▶ BlockDevice
//!                 └────▶ PmStore: tree · leaves · logs ───────────▶ PmDevice
//!                           both are a Kv
//! ```
//!
//! The same code runs on files, in memory, on simulated drives and on devices that crash. A store
//! opened on the caller's own device reads time through the caller's [`Clock`] and starts no
//! thread. Its background work is split into [`Task`]s that the owner pumps. If the owner does not
//! pump, the operations that need the work do it themselves.
//!
//! ```
//! use std::sync::Arc;
//! use treering_engine::device::MemDevice;
//! use treering_engine::prelude::*;
//! use treering_engine::{SystemClock, Task};
//!
//! let device = Arc::new(MemDevice::new(1 << 15));
//! let options = Options { durability: Durability::Deferred, ..Options::default() };
//! let store = Store::open(device.clone(), Arc::new(SystemClock::new()), &options)?;
//! let durable = store.put(b"kept", b"yes")?;
//! store.sync(durable)?;
//! store.put(b"lost", b"yes")?;
//! // Drops the store as a killed process would.
//! store.abandon();
//!
//! let store = Store::open(device, Arc::new(SystemClock::new()), &options)?;
//! assert_eq!(store.recovery().records_read, 1);
//! assert!(store.get_owned(b"kept")?.is_some() && store.get_owned(b"lost")?.is_none());
//! while store.pump(Task::Checkpoint)? == treering_engine::Progress::More {}
//! # Ok::<(), treering_engine::Error>(())
//! ```
//!
//! # After an error
//!
//! - A failed *read* leaves the store as it was. Other keys can still be read.
//! - A write that the store *refuses* has changed nothing, and other writes may succeed. These
//!   errors are [`Error::KeyTooLong`], [`Error::ValueTooLong`], [`Error::RecordTooLarge`],
//!   [`Error::Full`], [`Error::LogFull`], [`Error::PmFull`] and [`Error::PmTooLong`].
//! - A write, flush or checkpoint that *fails on the device* leaves the content of the device in
//!   doubt. From then on, the store refuses every write with [`Error::Poisoned`], which carries the
//!   first cause. It still answers reads as far as it can. The next opening shows whether the
//!   failed write survived.

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

mod batch;
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

pub use batch::Batch;
pub use error::{Error, Result};
pub use inspect::repair::{
    KeyRange, SalvageHints, SalvageReport, SalvageStep, SalvageVisitor, salvage, salvage_options,
};
pub use inspect::survey::{LogBlock, LogHeader, SuperblockFound, Survey, survey};
pub use inspect::verify::{VerifyReport, verify, verify_blocks, verify_path};
pub use kv::{Kv, Visitor};
pub use layout::{is_store_file, required_blocks};
#[cfg(any(treering_mutations, feature = "mutations"))]
pub use mutation::choose as choose_mutation;
pub use mutation::{HARMLESS, MUTATIONS};
pub use open::{AnyDevice, open, open_with};
pub use options::pm::*;
pub use options::{
    BfOptions, ContentionSplit, Durability, LogPacking, MIN_CACHE_PAGES, ModLog, Options,
    PageStoreKind, Param, Policy, Promote, ResetRule, TablePersist, TreeKind,
};
pub use overflow::{MAX_VALUE_BYTES, POINTER_BYTES, is_long, overflow_blocks};
pub use pages::delta_block;
pub use pm::events as pm_events;
pub use pm::leaves::recover::PmRecoveryReport;
pub use pm::places::{PmPlace, pm_places};
pub use pm::store::{PmStore, PmTask};
pub use range::{KvRange, Range, Row};
pub use spec::{Family, PageTree, SpecError, TreeEntry, TreeSpec};
pub use stats::{
    BATCH_BINS, BfStats, ClassBytes, FLUSH_BINS, KindCounts, LodgeStats, MemoryStats, MergeCauses,
    ModLogStats, OverflowStats, PmStats, RingUse, SIZE_CLASSES, SizeClass, Stats,
};
pub use store::recovery::RecoveryReport;
pub use store::{LeafFill, Store, Task};
pub use trees::bf::cache_only::CacheOnly;
pub use trees::bf::{BfShape, Chosen, LeafReads, Lightest, Promotion, PromotionTotals, Threshold};
pub use types::{
    BLOCK_SIZE, Clock, IoClass, Lba, Lsn, Nanos, PageId, Progress, StoreId, SystemClock,
};
