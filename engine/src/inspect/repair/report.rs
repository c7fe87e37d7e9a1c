//! What salvage reports to its caller.

use crate::error::Result;

/// A range of keys: at or after `from`, and before `to` if there is an upper bound.
///
/// ```
/// use treering_engine::KeyRange;
///
/// let range = KeyRange { from: b"b".to_vec(), to: Some(b"d".to_vec()) };
/// assert!(range.contains(b"b") && range.contains(b"cc"));
/// assert!(!range.contains(b"d"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    /// The lower bound, inclusive.
    pub from: Vec<u8>,
    /// The upper bound, exclusive. `None`: no bound.
    pub to: Option<Vec<u8>>,
}

impl KeyRange {
    /// Returns whether `key` lies in the range.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        self.from.as_slice() <= key && self.to.as_deref().is_none_or(|to| key < to)
    }
}

/// The results of [`salvage`](super::salvage).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SalvageReport {
    /// Records returned.
    pub records: u64,
    /// Bytes of their keys and values.
    pub user_bytes: u64,
    /// Whole page images on the device, old ones included.
    pub images: u64,
    /// Records read from the log.
    pub log_records: u64,
    /// Key ranges for which nothing current was found, ascending. Single keys of them may have been
    /// found in the log.
    pub missing: Vec<KeyRange>,
    /// Key ranges whose records were returned although nothing proves that they are the newest,
    /// ascending.
    pub doubtful: Vec<KeyRange>,
    /// One sentence for each damage found.
    pub damage: Vec<String>,
}

impl SalvageReport {
    /// Returns whether everything that the store held is known to have been returned.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.missing.is_empty() && self.doubtful.is_empty()
    }
}

/// The progress of [`salvage`](super::salvage).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SalvageStep {
    /// Blocks scanned so far, and blocks in all.
    Scanned(u64, u64),
    /// Records returned so far.
    Given(u64),
}

/// The callback of [`salvage`](super::salvage) for each key and value. An error ends the salvage.
pub type SalvageVisitor<'a> = dyn FnMut(&[u8], &[u8]) -> Result<()> + 'a;
