//! Flushes the pairs that pin the log (`specs/surrogate_buffer`, IsSqueezed), one bounded step at a
//! time.
//!
//! ```text
//! a number ─▶ node after node: flush to leaves with pairs that are numbered below ─▶ log floor
//! ```
//!
//! A log is free when none of its entries is needed (§III-D), so one cold pair keeps L entries.
//! Records to which stale entries refer have to wait until recovery no longer looks at those
//! entries. The paper has neither a bound nor records. Cleaning flushes the pairs of the older half
//! of the logs or, if space has run out or records wait, all pairs numbered so far. Once every node
//! has been visited, no entry below that number is needed: a number is drawn under the lock of its
//! key's node, and its pair is in the buffer when the node is unlocked.

use super::phases::Run;
use crate::error::{Error, Result};
use crate::pm::entries::ENTRY_BYTES;
use crate::pm::layout::{Time, set_floor};
use crate::sync::atomic::Ordering::Relaxed;
use crate::types::Progress;

use super::Lodge;
use super::leaf::BYTES;
use super::node::Body;

/// The number of nodes that one step visits.
const STEP: usize = 16;
/// Fewer bytes of retired records than this are not worth a cleaning.
const LEAST_RETIRED: u64 = 16 << 10;
/// The number of writes before a cleaning that could not be finished is tried again.
const PATIENCE: u64 = 1_000;

impl Lodge {
    /// Returns whether the log needs cleaning, or is being cleaned.
    pub(crate) fn cleaning_due(&self) -> bool {
        if self.cleaning.lock().is_some() {
            return true;
        }
        // A cleaning that failed for lack of space is not tried again before something has changed.
        let waits = self.stuck_until.load(Relaxed) > self.clock.last().0;
        !waits && (self.log_is_long() || self.records_wait())
    }

    /// Returns whether the logs' capacity exceeds both the share that the option allows, and twice
    /// what is buffered plus what the partitions are entitled to.
    fn log_is_long(&self) -> bool {
        let (room, _) = self.logs.room();
        let buffered = self.counters.buffered.load(Relaxed);
        if room <= 2 * (buffered + self.logs.partition_room()) {
            return false;
        }
        let leaf_bytes = self.space.leaves() * BYTES as u64;
        room * ENTRY_BYTES * 100 > leaf_bytes * u64::from(self.options.log_percent)
    }

    /// Returns whether a quarter of all records is waiting for the log floor.
    fn records_wait(&self) -> bool {
        let (retired, all) = self.space.retired_bytes();
        retired > LEAST_RETIRED && retired > all / 4
    }

    /// Does one bounded step.
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
            // Logs of several partitions overlap in time, so flushing half of them may free none.
            // The next time everything is flushed.
            self.in_vain.store(u64::from(self.log_is_long()), Relaxed);
        }
        Ok(progress)
    }

    fn step(&self, run: &mut Run) -> Result<Progress> {
        for _ in 0..STEP {
            run.whole &= self.flush_below(&run.from, run.floor)?;
            // Ask only now: nodes split off this one before have not been visited yet.
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

    /// Flushes the pairs of a node that are numbered below `floor`. Returns `false` if some must
    /// wait for space.
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

    /// Flushes the buffered pairs of a leaf.
    pub(super) fn flush_leaf(&self, body: &mut Body, at: usize) -> Result<()> {
        let leaf = body.leaf(at);
        let is_of_leaf = |body: &Body, pair: usize| body.leaf(body.leaf_of_pair(pair)) == leaf;
        while let Some(pair) = body.pairs().find(|pair| is_of_leaf(body, *pair)) {
            let wanted = body.pair(pair);
            self.flush(body, |pair| *pair == wanted)?;
        }
        Ok(())
    }

    /// Flushes everything logged so far, as far as space permits, and frees what is no longer
    /// needed.
    pub(crate) fn make_room(&self) -> Result<()> {
        let mut cleaning = self.cleaning.lock();
        let mut run = Run::new(self.clock.tick());
        while self.step(&mut run)? == Progress::More {}
        *cleaning = None;
        Ok(())
    }

    /// As [`Lodge::make_room`], but nothing may be left over.
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
