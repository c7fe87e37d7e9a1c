//! Flushing what pins the log (`specs/surrogate_buffer`, IsSqueezed), a bounded step at a time.
//!
//! ```text
//! a number ─▶ node after node: leaves with pairs that are numbered below are flushed to ─▶ log floor
//! ```
//!
//! A log is free when nothing in it is needed (§III-D), so one cold pair keeps L entries; and records that stale entries name wait until recovery does not look at those. The paper
//! has neither bound nor records. What is flushed here are the pairs of the older half of the logs, or, where room has run out or records wait, all that were numbered so far. When
//! every node was visited nobody needs an entry below that number: a number is drawn under the lock of its key's node, and is in the buffer when that is unlocked.

use super::phases::Run;
use crate::error::{Error, Result};
use crate::pm::entries::ENTRY_BYTES;
use crate::pm::layout::{Time, set_floor};
use crate::sync::atomic::Ordering::Relaxed;
use crate::types::Progress;

use super::Lodge;
use super::leaf::BYTES;
use super::node::Body;

/// Nodes that one step visits.
const STEP: usize = 16;
/// Retired records are not worth a cleaning below so many bytes.
const LEAST_RETIRED: u64 = 16 << 10;
/// Writes until a cleaning that could not be finished is tried again.
const PATIENCE: u64 = 1_000;

impl Lodge {
    /// Whether the log wants cleaning, or is being cleaned.
    pub(crate) fn cleaning_due(&self) -> bool {
        if self.cleaning.lock().is_some() {
            return true;
        }
        // One that could not be finished for lack of room is not tried again before something has happened.
        let waits = self.stuck_until.load(Relaxed) > self.clock.last().0;
        !waits && (self.log_is_long() || self.records_wait())
    }

    /// Logs have room for more entries than the option says, and twice what is buffered and what partitions are entitled to.
    fn log_is_long(&self) -> bool {
        let (room, _) = self.logs.room();
        let buffered = self.counters.buffered.load(Relaxed);
        if room <= 2 * (buffered + self.logs.partition_room()) {
            return false;
        }
        let leaf_bytes = self.space.leaves() * BYTES as u64;
        room * ENTRY_BYTES * 100 > leaf_bytes * u64::from(self.options.log_percent)
    }

    /// A quarter of all records waits for the log floor.
    fn records_wait(&self) -> bool {
        let (retired, all) = self.space.retired_bytes();
        retired > LEAST_RETIRED && retired > all / 4
    }

    /// One bounded step.
    pub(crate) fn clean(&self) -> Result<Progress> {
        let mut cleaning = self.cleaning.lock();
        let run = cleaning.get_or_insert_with(|| {
            let in_vain = self.in_vain.swap(0, Relaxed) == 1;
            let median = self.logs.median_opened();
            let older_half =
                !in_vain && !self.records_wait() && median.0 > self.floor.load(Relaxed);
            Run::new(if older_half {
                median
            } else {
                self.clock.tick()
            })
        });
        let progress = self.step(run)?;
        if progress == Progress::Idle {
            *cleaning = None;
            // Logs of several partitions overlap, so that half of them may free none: the next time all is flushed.
            self.in_vain.store(u64::from(self.log_is_long()), Relaxed);
        }
        Ok(progress)
    }

    fn step(&self, run: &mut Run) -> Result<Progress> {
        for _ in 0..STEP {
            run.whole &= self.flush_below(&run.from, run.floor)?;
            // Asked now: whatever was split off that node before was not visited yet.
            match self.index.fence_after(&run.from) {
                Some(next) => run.from = next,
                None => return self.finish(run),
            }
        }
        Ok(Progress::More)
    }

    fn finish(&self, run: &Run) -> Result<Progress> {
        if run.whole {
            let before = self.floor.swap(run.floor.0, Relaxed);
            debug_assert!(before <= run.floor.0, "the floor never falls");
            set_floor(&self.medium, run.floor)?;
            self.space.records_unnamed(run.floor);
        } else {
            self.stuck_until
                .store(self.clock.last().0 + PATIENCE, Relaxed);
        }
        self.counters.cleanings.fetch_add(1, Relaxed);
        Ok(Progress::Idle)
    }

    /// Flushes the pairs of a node that are numbered below `floor`; `false` if some of them must wait for room.
    fn flush_below(&self, low: &[u8], floor: Time) -> Result<bool> {
        let mut body = self.write(low);
        while body.pairs().any(|at| body.pair(at).number < floor) {
            match self.flush(&mut body, |pair| pair.number < floor) {
                Ok(()) => {}
                Err(Error::PmFull { .. }) => return Ok(false),
                Err(e) => return Err(e),
            }
            self.counters.cleaning_flushes.fetch_add(1, Relaxed);
        }
        if body.must_split() {
            self.split_node(body);
        }
        Ok(true)
    }

    /// Flushes what is buffered for a leaf.
    pub(super) fn flush_leaf(&self, body: &mut Body, at: usize) -> Result<()> {
        let leaf = body.leaf(at);
        let is_of_leaf = |body: &Body, pair: usize| body.leaf(body.leaf_of_pair(pair)) == leaf;
        while let Some(pair) = body.pairs().find(|pair| is_of_leaf(body, *pair)) {
            let wanted = body.pair(pair);
            self.flush(body, |pair| *pair == wanted)?;
        }
        Ok(())
    }

    /// Flushes all that was logged before now, as far as there is room, and gives up what is free then.
    pub(crate) fn make_room(&self) -> Result<()> {
        let mut cleaning = self.cleaning.lock();
        let mut run = Run::new(self.clock.tick());
        while self.step(&mut run)? == Progress::More {}
        *cleaning = None;
        Ok(())
    }

    /// The same, but nothing may be left.
    pub(crate) fn flush_all(&self) -> Result<()> {
        let mut cleaning = self.cleaning.lock();
        let mut run = Run::new(self.clock.tick());
        while self.step(&mut run)? == Progress::More {}
        *cleaning = None;
        if run.whole {
            return Ok(());
        }
        Err(self.space.full("another leaf"))
    }
}

impl Run {
    fn new(floor: Time) -> Run {
        Run {
            floor,
            from: Vec::new(),
            whole: true,
        }
    }
}
