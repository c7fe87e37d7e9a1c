//! Predicts when logs are cleaned: they are when they have room for too many entries, because a
//! single buffered change keeps a whole log alive.
//!
//! Simulated without cleaning, each log has a time at which its last change leaves the buffer.
//! Cleaning frees the older half of the logs in use, as the engine does
//! (`engine/src/trees/pm/lodge/clean.rs`). The model assumes that cleaning does not affect later
//! events. So one pass over these times yields all cleanings.

use super::play::{Cleaning, Watch, Write};
use super::{ENTRY, LEAF};

/// The times and counts of a log that determine cleanings.
struct Log {
    /// When its first entry was written, in ticks.
    opened: u32,
    /// When the last of its changes left the buffer.
    needed: u32,
    /// Leaves split off after this log was opened and before the next one.
    splits: f64,
    /// Buffered changes added in that time, minus those that left.
    more_buffered: f64,
}

/// Logs as they would be without cleaning, in the order in which they were opened.
pub(super) struct Logs(Vec<Log>);

impl Logs {
    /// Divides writes, which are in order of time, into logs of `entries` writes.
    pub(super) fn new(writes: &[Write], entries: f64) -> Logs {
        let logs = writes.chunks((entries as usize).max(1));
        let log = |writes: &[Write]| Log {
            opened: writes[0].time(),
            needed: 0,
            splits: 0.0,
            more_buffered: writes.len() as f64,
        };
        Logs(logs.map(log).collect())
    }

    fn log(&mut self, time: u32) -> &mut Log {
        let after = self.0.partition_point(|log| log.opened <= time);
        &mut self.0[after.saturating_sub(1)]
    }

    /// The cleanings. One is due when the logs in use have entries for more than `share` of the
    /// leaves' bytes, and for more than twice the buffered changes and the entries that partitions
    /// are entitled to. A log has `entries` entries; each simulated leaf and change represents
    /// `weight` real ones.
    pub(super) fn cleanings(
        &self,
        share: f64,
        (entries, entitled): (f64, f64),
        weight: f64,
    ) -> Vec<Cleaning> {
        let mut cleanings = Vec::new();
        let mut in_use: Vec<&Log> = Vec::new();
        let (mut leaves, mut buffered) = (1.0, 0.0);
        for log in &self.0 {
            let at = log.opened;
            in_use.retain(|log| log.needed > at);
            in_use.push(log);
            let room = in_use.len() as f64 * entries;
            let is_long = room > 2.0 * (buffered * weight + entitled)
                && room * ENTRY > share * leaves * weight * LEAF;
            let older = in_use.len() / 2;
            if is_long && older > 0 {
                let below = in_use[older].opened;
                in_use.drain(..older);
                cleanings.push(Cleaning { at, below });
            }
            leaves += log.splits;
            buffered += log.more_buffered;
        }
        cleanings
    }
}

impl Watch for Logs {
    fn split(&mut self, time: u32) {
        self.log(time).splits += 1.0;
    }

    fn left(&mut self, written: u32, time: Option<u32>) {
        let log = self.log(written);
        log.needed = log.needed.max(time.unwrap_or(u32::MAX));
        if let Some(time) = time {
            self.log(time).more_buffered -= 1.0;
        }
    }
}

/// Ignores all events.
pub(super) struct Nobody;

impl Watch for Nobody {
    fn split(&mut self, _: u32) {}

    fn left(&mut self, _: u32, _: Option<u32>) {}
}
