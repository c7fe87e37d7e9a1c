//! What is below the mini-pages: leaves in frames, and their sizes.

use super::pages::Record;

/// The leaves below mini-pages.
pub(in crate::predict) trait Below {
    /// Reads a leaf.
    fn read(&mut self, leaf: u32);

    /// Merges the dirty ones of these records into a leaf; the newest was written at this time.
    fn merge(&mut self, leaf: u32, written: u64, records: &[Record]);

    /// Logs the dirty ones of these records of a leaf again. Returns the bytes of log that this takes
    /// in the whole tree.
    fn log_again(&mut self, leaf: u32, records: &[Record]) -> f64;

    /// The time of a write that happens now, as [`Below::merge`] will get it.
    fn now(&self) -> u64;

    /// Evicts leaves ahead of need.
    fn tidy(&mut self);

    /// Free bytes of a leaf once all written records are merged into it.
    fn free(&self, leaf: u32) -> u32;

    /// Whether a record also needs a place in this leaf, which only the leaf knows.
    fn has_places(&self, _: u32) -> bool {
        false
    }

    /// Whether a leaf is in the sample.
    fn is_played(&self, leaf: u32) -> bool;

    /// All records of a leaf in key order, clean.
    fn records(&self, leaf: u32) -> Vec<Record>;
}
