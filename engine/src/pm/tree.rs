//! [`PmTree`], the interface between a store in persistent memory and its tree.
//!
//! Each tree is a file of [`super::trees`]. It determines how a change reaches a leaf, and what is
//! kept in buffers and logs until then; [`super::store`] does the rest.

use super::leaves::recover::PmRecoveryReport;
use super::logs::LogicalClock;
use super::medium::Medium;
use super::nodes::Change;
use super::records::Records;
use super::space::Space;
use crate::error::Result;
use crate::kv::Visitor;
use crate::stats::PmStats;
use crate::types::Progress;

/// The parts that every tree has.
#[derive(Clone, Copy)]
pub(crate) struct Base<'a> {
    pub(crate) medium: &'a Medium,
    pub(crate) space: &'a Space,
    pub(crate) records: &'a Records,
    pub(crate) clock: &'a LogicalClock,
}

/// A recovered tree, and a report of the recovery.
pub(crate) type Opened = (Box<dyn PmTree>, PmRecoveryReport);

/// Counts of changes to a tree's structure, and the size of its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Structure {
    /// Leaf splits since the store was opened.
    pub(crate) splits: u64,
    /// Leaf merges since the store was opened.
    pub(crate) merges: u64,
    /// Bytes of the index in DRAM.
    pub(crate) index_bytes: u64,
}

/// A tree in persistent memory.
pub(crate) trait PmTree: Send + Sync {
    /// Returns the parts that every tree has.
    fn base(&self) -> Base<'_>;

    /// Returns how often the structure has changed.
    fn structure(&self) -> Structure;

    /// Returns the tree's counters.
    fn stats(&self) -> PmStats;

    /// Makes a change to `key`. It is durable when this returns.
    ///
    /// # Errors
    /// If there is no room, nothing has changed.
    fn change(&self, key: &[u8], change: Change) -> Result<()>;

    /// Deletes a key without a record of it and without a log entry. Returns `false` if the tree
    /// cannot.
    ///
    /// # Errors
    /// [`crate::Error::PmFull`] if other changes that must be written first have no room.
    fn delete_in_place(&self, key: &[u8]) -> Result<bool>;

    /// Copies the value of `key` into `value`. Returns `false` if the key is absent.
    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool>;

    /// Visits the records with keys at or after `from` in ascending order.
    fn scan(&self, from: &[u8], visit: &mut Visitor<'_>) -> Result<()>;

    /// Visits the records with keys below `before` in descending order.
    fn scan_back(&self, before: Option<&[u8]>, visit: &mut Visitor<'_>) -> Result<()>;

    /// Returns whether the log needs cleaning, or is being cleaned.
    fn cleaning_due(&self) -> bool {
        false
    }

    /// Does one bounded step of cleaning.
    fn clean(&self) -> Result<Progress> {
        Ok(Progress::Idle)
    }

    /// Returns whether leaves should be merged, or are being merged.
    fn merging_due(&self) -> bool;

    /// Does one bounded step of merging.
    fn merge_step(&self) -> Result<Progress>;

    /// Merges all leaves that can be merged.
    fn merge_all(&self) -> Result<()>;

    /// Returns the number of changes that are not in leaves yet. They keep the records alive that
    /// they replace.
    fn buffered(&self) -> u64 {
        0
    }

    /// Cleans the whole log, so that the records that wait for it become free. If there is no room
    /// for that, buffered changes stay buffered.
    fn clean_all(&self) -> Result<()> {
        Ok(())
    }

    /// As [`PmTree::clean_all`], and flushes those buffers for which there is room.
    fn flush_what_fits(&self) -> Result<()> {
        self.clean_all()
    }

    /// Flushes all buffered changes to the leaves and frees the log.
    fn flush_all(&self) -> Result<()> {
        Ok(())
    }
}
