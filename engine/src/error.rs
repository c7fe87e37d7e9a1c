//! [`Error`], the one error type of the engine.

use crate::device::DeviceError;
use crate::types::{Lba, Lsn, PageId};

/// A result whose error is the engine's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that opening, reading or changing a store can report.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The device failed.
    #[error(transparent)]
    Device(DeviceError),
    /// The medium below the store has no room for a write, for example because a file system or a
    /// thin volume is full. Nothing is lost: acknowledged writes are durable, reads continue, and
    /// writes continue once there is room.
    #[error("no space left on the device: {source}; reads continue, and writes once there is room")]
    NoSpace {
        /// The device's report.
        source: DeviceError,
    },
    /// The store was opened read-only.
    #[error("the store is open for reading only")]
    ReadOnly,
    /// The store has been closed by one of its handles.
    #[error("the store is closed; open it again to write")]
    Closed,
    /// Another store in this process is using the same device object.
    #[error("the device is in use by another store of this process; close that one first")]
    InUse,
    /// The key is longer than a page of this size allows.
    #[error(
        "key of {len} bytes is longer than the {max} bytes that a {page_size}-byte page allows"
    )]
    KeyTooLong {
        /// The key's length in bytes.
        len: usize,
        /// The longest that fits.
        max: usize,
        /// Page size in bytes.
        page_size: usize,
    },
    /// Key and value together are larger than a page of this size allows. Only a store without a
    /// disk returns this, because it has no overflow blocks for long values.
    #[error(
        "record of {len} bytes (key and value) is larger than the {max} bytes that a \
         {page_size}-byte page allows"
    )]
    RecordTooLarge {
        /// Key length plus value length in bytes.
        len: usize,
        /// The largest that fits.
        max: usize,
        /// Page size in bytes.
        page_size: usize,
    },
    /// The value is longer than the limit for all stores.
    #[error("value of {len} bytes is longer than the {max} bytes that a value may have")]
    ValueTooLong {
        /// The value's length in bytes.
        len: usize,
        /// The greatest length allowed.
        max: usize,
    },
    /// An option has a value that cannot be used.
    #[error("option {name}: {why}")]
    BadOption {
        /// The option's name.
        name: &'static str,
        /// What was given, and what is expected.
        why: String,
    },
    /// The device holds no store.
    #[error("{lba} holds no store: expected the magic bytes of a superblock")]
    NotAStore {
        /// Where a superblock was expected.
        lba: Lba,
    },
    /// The store was formatted with other settings than the caller asked for.
    #[error("the store was formatted with {name} = {stored}, but {asked} was asked for")]
    Mismatch {
        /// The setting.
        name: &'static str,
        /// Its value in the store.
        stored: String,
        /// What the caller asked for.
        asked: String,
    },
    /// Bytes on the device are not what the engine wrote.
    #[error("{what} at {lba} is damaged: expected {expected}, found {found}")]
    Damaged {
        /// The damaged structure: a page, a superblock, a log block.
        what: String,
        /// Its first block.
        lba: Lba,
        /// What should be there.
        expected: String,
        /// What is there.
        found: String,
    },
    /// No free page is left on the device.
    #[error("the store is full: all {pages} pages are in use")]
    Full {
        /// Number of pages of the store.
        pages: u64,
    },
    /// The log has no room left, even though a checkpoint has just truncated it as far as possible.
    #[error("the log of {capacity} bytes is full and cannot be truncated past {redo_start}")]
    LogFull {
        /// Log capacity in bytes.
        capacity: u64,
        /// The oldest log position that is still needed.
        redo_start: Lsn,
    },
    /// An earlier write or flush failed, so nothing more can be acknowledged. Open the store again
    /// to recover.
    #[error("the store stopped accepting writes: {why}")]
    Poisoned {
        /// The first failure.
        why: String,
    },
    /// The index refers to a page that does not exist.
    #[error("{page} is referenced but does not exist")]
    MissingPage {
        /// The page.
        page: PageId,
    },
    /// The persistent memory has no room left.
    #[error("the persistent memory of {bytes} bytes has no room for {what}")]
    PmFull {
        /// What did not fit.
        what: &'static str,
        /// Its size in bytes.
        bytes: u64,
    },
    /// A key is longer than a chunk of the persistent memory, or a value is longer than the limit
    /// for all stores.
    #[error("a {what} of {len} bytes is longer than the {max} bytes that this store takes")]
    PmTooLong {
        /// `key` or `value`.
        what: &'static str,
        /// Its length in bytes.
        len: usize,
        /// The longest that fits.
        max: usize,
    },
    /// Bytes of a persistent memory are not what the engine wrote.
    #[error("{what} at offset {offset} is damaged: expected {expected}, found {found}")]
    PmDamaged {
        /// The damaged structure: a superblock, a leaf, the log.
        what: String,
        /// Its first byte.
        offset: u64,
        /// What should be there.
        expected: String,
        /// What is there.
        found: String,
    },
    /// This kind of store cannot do what was asked.
    #[error("this store has no {what}")]
    Unsupported {
        /// What it lacks.
        what: &'static str,
    },
    /// The changes of a batch take more of the log than one batch may.
    #[error(
        "batch of {bytes} bytes is larger than the {max} bytes that a batch may have in this log"
    )]
    BatchTooLarge {
        /// Bytes of its keys and values, with framing.
        bytes: u64,
        /// The most that one batch may have.
        max: u64,
    },
    /// A failure of another engine behind [`crate::Kv`], in that engine's words.
    #[error("{engine}: {why}")]
    Foreign {
        /// The engine's name.
        engine: &'static str,
        /// The engine's message.
        why: String,
    },
}

impl From<DeviceError> for Error {
    fn from(source: DeviceError) -> Error {
        if source.is_no_space() {
            Error::NoSpace { source }
        } else {
            Error::Device(source)
        }
    }
}

impl Error {
    /// Returns whether the medium was out of space. The same operation may then succeed later, once
    /// there is room, and the store has lost nothing in the meantime.
    #[must_use]
    pub fn is_no_space(&self) -> bool {
        matches!(self, Error::NoSpace { .. })
    }
}
