//! Write-optimised B-trees on any block device.
//!
//! A [`Store`] keeps an ordered map on a [`device::BlockDevice`] and survives crashes; it reads time through a
//! [`Clock`] and spawns no thread: background work is [`Task`]s that the owner pumps.

#![warn(missing_docs)]

pub mod device;
mod error;
mod kv;
pub mod node;
mod options;
mod stats;
mod types;

pub use error::{Error, Result};
pub use kv::Kv;
pub use options::{Durability, Options, PageStoreKind, TablePersist, TreeKind};
pub use stats::{ClassBytes, Stats};
pub use types::{BLOCK_SIZE, Clock, IoClass, Lba, Lsn, Nanos, PageId, SystemClock};
