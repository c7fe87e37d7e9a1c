//! Bounds of options. The checks use them, and so do the structures that they size.

use std::ops::RangeInclusive;

use crate::error::{Error, Result};

/// The smallest number of frames in a page cache. Much smaller under the schedule explorers, so
/// that two threads compete for all frames.
pub const MIN_CACHE_PAGES: u64 = if cfg!(any(loom, shuttle)) { 2 } else { 16 };

/// The smallest log, in pages. An operation that may split a page reserves a little over two pages
/// of log room. Several may do so at once, and a checkpoint lags behind.
pub(crate) const MIN_LOG_PAGES: u64 = 24;

/// The largest first LSN, so that no log reaches the end of its numbers.
pub(crate) const MAX_FIRST_LSN: u64 = 1 << 62;

/// Bounds of the entries in an inner node of the in-memory index. Nodes of 170 entries take 4 KiB.
pub(crate) const INDEX_ENTRIES: RangeInclusive<usize> = 3..=170;

/// Bounds of a chunk of persistent memory, in bytes: from a few leaves to 8 MiB.
pub(crate) const CHUNK_BYTES: RangeInclusive<u64> = 1 << 10..=8 << 20;

/// Bytes of a log entry in persistent memory (CCL-BTree §3.3).
pub(crate) const PM_ENTRY_BYTES: u64 = 24;

/// Bounds of the slots in a CCL-BTree's buffer node (CCL-BTree §3.2).
pub(crate) const PM_BATCH: RangeInclusive<usize> = 1..=6;

/// Bounds of the slots in a LodgeTree's last-level inner node (LodgeTree §IV-A).
pub(crate) const LODGE_SLOTS: RangeInclusive<usize> = 4..=29;

/// Slots in a LodgeTree's leaf (LodgeTree §IV-A).
pub(crate) const LODGE_LEAF_SLOTS: usize = 27;

/// Bytes of a LodgeTree's leaf (LodgeTree §IV-A).
pub(crate) const LODGE_LEAF_BYTES: u64 = 512;

/// Returns an error if the index cannot have inner nodes of at most `most` entries.
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
