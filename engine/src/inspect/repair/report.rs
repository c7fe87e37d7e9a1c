//! What salvage tells its caller.

use crate::error::Result;

/// A range of keys: from `from` on, up to but without `to`; `None`: no bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    /// The first key that is in it, if there is such a key.
    pub from: Vec<u8>,
    /// The first key behind it.
    pub to: Option<Vec<u8>>,
}

impl KeyRange {
    /// Whether `key` lies in it.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        self.from.as_slice() <= key && self.to.as_deref().is_none_or(|to| key < to)
    }
}

/// What [`salvage`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SalvageReport {
    /// Records given out.
    pub records: u64,
    /// Bytes of their keys and values.
    pub user_bytes: u64,
    /// Whole page images on the device, old ones included.
    pub images: u64,
    /// Records read from the log.
    pub log_records: u64,
    /// Key ranges of which nothing current was found, ascending. The log may have had single keys
    /// of them.
    pub missing: Vec<KeyRange>,
    /// Key ranges whose records were given, though nothing proves that they are the newest,
    /// ascending.
    pub doubtful: Vec<KeyRange>,
    /// One sentence for each damage found.
    pub damage: Vec<String>,
}

impl SalvageReport {
    /// Whether all that the store held is known to have been given out.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.missing.is_empty() && self.doubtful.is_empty()
    }
}

/// How far [`salvage`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SalvageStep {
    /// So many blocks of so many have been looked at.
    Scanned(u64, u64),
    /// So many records have been given out.
    Given(u64),
}

/// What [`salvage`] calls with each key and value; an error ends it.
pub type SalvageVisitor<'a> = dyn FnMut(&[u8], &[u8]) -> Result<()> + 'a;
