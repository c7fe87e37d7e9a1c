//! The engine's one error type.

use crate::device::DeviceError;
use crate::types::{Lba, Lsn, PageId};

/// Shorthand for the engine's results.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that opening, reading or changing a store can report.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The device failed.
    #[error(transparent)]
    Device(DeviceError),
    /// The medium below the store has no room for what is to be written: a full file system, a full
    /// thin volume. Nothing is lost: what was acknowledged is durable, reads go on, and writes do
    /// when there is room.
    #[error("no space left below the store: {source}; reads go on, and writes when there is room")]
    NoSpace {
        /// What the device says.
        source: DeviceError,
    },
    /// The store was opened to be read only.
    #[error("the store is open for reading only")]
    ReadOnly,
    /// The store has been closed by one of its handles.
    #[error("the store is closed; open it again to write")]
    Closed,
    /// Another store of this process has the device object open.
    #[error("the device is in use by another store of this process; close that one first")]
    InUse,
    /// The key is longer than a page of this size can hold.
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
    /// Key and value together are larger than a page of this size can hold, where long values have
    /// no place of their own: in a store without a disk.
    #[error(
        "record of {len} bytes (key and value) is larger than the {max} bytes that a {page_size}-byte page allows"
    )]
    RecordTooLarge {
        /// Key length plus value length in bytes.
        len: usize,
        /// The largest that fits.
        max: usize,
        /// Page size in bytes.
        page_size: usize,
    },
    /// The value is longer than any store takes.
    #[error("value of {len} bytes is longer than the {max} bytes that a value may have")]
    ValueTooLong {
        /// The value's length in bytes.
        len: usize,
        /// The longest that is taken.
        max: usize,
    },
    /// An option has a value that cannot work.
    #[error("option {name}: {why}")]
    BadOption {
        /// The option's name.
        name: &'static str,
        /// What was found and what is expected.
        why: String,
    },
    /// The device holds no store.
    #[error("{lba} holds no store: expected the magic bytes of a superblock")]
    NotAStore {
        /// Where the superblock was looked for.
        lba: Lba,
    },
    /// The store was made with other settings.
    #[error("the store was formatted with {name} = {stored}, but {asked} was asked for")]
    Mismatch {
        /// The setting.
        name: &'static str,
        /// What the store says.
        stored: String,
        /// What the caller asked for.
        asked: String,
    },
    /// Bytes on the device are not what the engine wrote.
    #[error("{what} at {lba} is damaged: expected {expected}, found {found}")]
    Damaged {
        /// The structure: a page, a superblock, a log block.
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
    /// The log has no room left, though a checkpoint has just freed what it could.
    #[error("the log of {capacity} bytes is full and cannot be truncated past {redo_start}")]
    LogFull {
        /// Log capacity in bytes.
        capacity: u64,
        /// The oldest position still needed.
        redo_start: Lsn,
    },
    /// A write or flush failed earlier; nothing more may be acknowledged. Reopen the store to recover.
    #[error("the store stopped accepting writes: {why}")]
    Poisoned {
        /// The first failure.
        why: String,
    },
    /// The index names a page that is not there.
    #[error("{page} is referenced but does not exist")]
    MissingPage {
        /// The page.
        page: PageId,
    },
    /// A persistent memory has no room left.
    #[error("the persistent memory of {bytes} bytes has no room for {what}")]
    PmFull {
        /// What it has no room for.
        what: &'static str,
        /// Its size in bytes.
        bytes: u64,
    },
    /// A key that is longer than a chunk of a persistent memory, or a value that no store takes.
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
        /// The structure: a superblock, a leaf, the log.
        what: String,
        /// Its first byte.
        offset: u64,
        /// What should be there.
        expected: String,
        /// What is there.
        found: String,
    },
    /// Another engine behind [`crate::Kv`] reports a failure in its own words.
    #[error("{engine}: {why}")]
    Foreign {
        /// Its name.
        engine: &'static str,
        /// What it says.
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
    /// Whether the same may succeed later, when there is room below the store, and nothing need be
    /// forgotten until then.
    #[must_use]
    pub fn is_no_space(&self) -> bool {
        matches!(self, Error::NoSpace { .. })
    }
}
