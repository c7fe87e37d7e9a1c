//! The counts of a session.

use treering_engine::Stats;

use crate::edges::Edges;
use crate::reach::Reach;

/// What a program did and met, as counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Operations that ran.
    pub operations: u64,
    /// How many of them returned an error because of an injected failure.
    pub failed: u64,
    /// Power cuts.
    pub crashes: u64,
    /// Openings of a store that had been used before.
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
    /// Times the log wrapped around to the start of its region.
    pub log_wraps: u64,
    /// Puts that were refused because the store was full.
    pub full: u64,
    /// Operations that failed because the medium had no space.
    pub starved: u64,
    /// Read-only openings.
    pub read_only: u64,
    /// The length limits that keys and values have reached.
    pub edges: Edges,
    /// What else the program has exercised.
    pub reach: Reach,
}

impl Tally {
    /// Adds the counters of another run.
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
