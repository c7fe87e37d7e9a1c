//! What sessions count.

use treering_engine::Stats;

use crate::edges::Edges;
use crate::reach::Reach;

/// How often each thing happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Operations done.
    pub operations: u64,
    /// Of these: operations that returned an error because of an injected failure.
    pub failed: u64,
    /// Power cuts.
    pub crashes: u64,
    /// Times a store was opened that had been used before.
    pub reopens: u64,
    /// Leaf splits.
    pub splits: u64,
    /// Leaf merges.
    pub merges: u64,
    /// Pages evicted.
    pub evictions: u64,
    /// Checkpoints.
    pub checkpoints: u64,
    /// Log bytes appended.
    pub log_bytes: u64,
    /// Times the log began again at the beginning of its region.
    pub log_wraps: u64,
    /// Puts that were refused because the store was full.
    pub full: u64,
    /// Operations that the medium had no room for.
    pub starved: u64,
    /// Times a store was opened for reading only.
    pub read_only: u64,
    /// The limits that keys and values have been at.
    pub edges: Edges,
    /// What else was met, limits aside.
    pub reach: Reach,
}

impl Tally {
    /// Both together.
    pub fn add(&mut self, other: &Tally) {
        self.operations += other.operations;
        self.failed += other.failed;
        self.crashes += other.crashes;
        self.reopens += other.reopens;
        self.splits += other.splits;
        self.merges += other.merges;
        self.evictions += other.evictions;
        self.checkpoints += other.checkpoints;
        self.log_bytes += other.log_bytes;
        self.log_wraps += other.log_wraps;
        self.full += other.full;
        self.starved += other.starved;
        self.read_only += other.read_only;
        self.edges.add(other.edges);
        self.reach.add(&other.reach);
    }

    pub(crate) fn note(&mut self, stats: &Stats) {
        self.splits += stats.splits;
        self.merges += stats.merges;
        self.evictions += stats.evictions;
        self.checkpoints += stats.checkpoints;
        self.log_bytes += stats.log_appended_bytes;
        self.log_wraps += stats.log_wraps;
        self.reach.steps(stats, false);
    }
}
