//! Bounds that options are checked against. The structures themselves are sized by them.

use std::ops::RangeInclusive;

use crate::error::{Error, Result};

/// Fewest frames of a page cache. Schedule explorers may use so few that two threads compete for
/// all of them.
pub const MIN_CACHE_PAGES: u64 = if cfg!(any(loom, shuttle)) { 2 } else { 16 };

/// Smallest log in pages. An operation in flight may split a page and reserves a little over two
/// pages of log for it; several may do so at once, and a checkpoint lags behind.
pub(crate) const MIN_LOG_PAGES: u64 = 24;

/// Largest first LSN, so that no log reaches the end of its numbers.
pub(crate) const MAX_FIRST_LSN: u64 = 1 << 62;

/// Entries of an inner node of the in-memory index. Nodes of 170 entries take 4 KiB.
pub(crate) const INDEX_ENTRIES: RangeInclusive<usize> = 3..=170;

/// Bytes of a chunk of persistent memory: from a few leaves to 8 MiB.
pub(crate) const CHUNK_BYTES: RangeInclusive<u64> = 1 << 10..=8 << 20;

/// Slots of a CCL-BTree's buffer node (CCL-BTree §3.2).
pub(crate) const PM_BATCH: RangeInclusive<usize> = 1..=6;

/// Slots of a LodgeTree's last-level inner node (LodgeTree §IV-A).
pub(crate) const LODGE_SLOTS: RangeInclusive<usize> = 4..=29;

/// Slots of a LodgeTree's leaf (LodgeTree §IV-A).
pub(crate) const LODGE_LEAF_SLOTS: usize = 27;

/// Bytes of a LodgeTree's leaf (LodgeTree §IV-A).
pub(crate) const LODGE_LEAF_BYTES: u64 = 512;

/// Refuses a bound on the entries of an inner node that the index cannot have.
pub(crate) fn check_index_entries(most: usize) -> Result<()> {
    if INDEX_ENTRIES.contains(&most) {
        return Ok(());
    }
    let (least, limit) = (INDEX_ENTRIES.start(), INDEX_ENTRIES.end());
    Err(Error::BadOption {
        name: "index-entries",
        why: format!("{most}; expected {least} to {limit}"),
    })
}
