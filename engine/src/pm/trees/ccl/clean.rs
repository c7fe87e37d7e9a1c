//! Cleans the logs (CCL-BTree §3.4), one bounded step at a time.
//!
//! ```text
//! locality-aware   flip: all logs go on in new chunks, another epoch
//!                  ─▶ what is unflushed and of the old epoch is appended anew ─▶ log floor
//! naive            writers stop ─▶ flip ─▶ every buffer is flushed to its leaf ─▶ log floor
//! ```
//!
//! Raising the floor kills all older chunks with one store. Until then both the old entries and
//! their copies are live, which is harmless: replay takes the newest entry of each key.
//!
//! A copied change belongs to the new epoch, and its epoch bit has to say so, although the paper
//! does not mention it. Otherwise the bit would pass for new at the next flip but one, and the copy
//! would be given up without being copied again.
//!
//! Cleaning is due when the entries of live chunks take more than TH_log of the leaves' bytes. In
//! addition, a share of them must be garbage. Otherwise a large N_batch would have the logs cleaned
//! endlessly and in vain (2.5 entries of 24 bytes per leaf are more than 20 % of the leaf).

use crate::error::{Error, Result};
use crate::mutation;
use crate::options::Cleaning;
use crate::pm::entries::ENTRY_BYTES;
use crate::pm::events::Event;
use crate::pm::layout::{BLOCK, LeafId, Time, set_floor};
use crate::pm::nodes::Held;
use crate::sync::atomic::Ordering::Relaxed;
use crate::types::Progress;

use super::Ccl;
use super::state::Run;
use crate::pm::leaves::write::IfFull;

/// The number of leaves that one step visits.
const STEP: usize = 64;

impl Ccl {
    /// Returns whether the logs need cleaning, or are being cleaned.
    pub(crate) fn cleaning_due(&self) -> bool {
        self.cleaning.lock().is_some() || self.log_is_long()
    }

    fn log_is_long(&self) -> bool {
        let log = self.logs.live();
        let leaf_bytes = self.leaves.space.leaves() * BLOCK;
        let long = log * ENTRY_BYTES * 100 > leaf_bytes * u64::from(self.options.log_percent);
        let buffered = self.leaves.counters.buffered.load(Relaxed);
        let garbage = log.saturating_sub(buffered);
        long && garbage * 100 > log * u64::from(self.options.garbage_percent)
    }

    /// Does one bounded step. Naive cleaning is done all at once.
    pub(crate) fn clean(&self) -> Result<Progress> {
        let mut cleaning = self.cleaning.lock();
        if self.options.cleaning == Cleaning::Naive {
            let _stopped = self.gate.write();
            return self.clean_naively();
        }
        let run = match &mut *cleaning {
            Some(run) => run,
            None => cleaning.insert(self.begin()?),
        };
        let shrunk = self.leaves.space.shrunk();
        if run.vain_at == Some(shrunk) {
            return Err(self.leaves.space.full("what is buffered"));
        }
        let entries = self.leaves.index.range(&run.from, STEP);
        for (_, page) in &entries {
            match self.copy(LeafId(page.0), run.epoch) {
                // Other operations may make room for it.
                Err(Error::PmFull { .. }) => run.passed = true,
                done => done?,
            }
        }
        if entries.len() == STEP {
            let (mut last, _) = entries.into_iter().next_back().expect("there are some");
            // The smallest key above that fence.
            last.push(0);
            run.from = last;
            return Ok(Progress::More);
        }
        if std::mem::take(&mut run.passed) {
            run.from.clear();
            run.vain_at = Some(shrunk);
            return Err(self.leaves.space.full("what is buffered"));
        }
        let floor = run.floor;
        *cleaning = None;
        self.give_up(floor)?;
        Ok(Progress::Idle)
    }

    /// Flushes every buffer. Changes that do not fit in their leaf go to the new log, because a
    /// full leaf must not keep the old log alive.
    fn clean_naively(&self) -> Result<Progress> {
        let (floor, epoch) = self.logs.flip();
        for leaf in self.all_leaves() {
            match self.flush_node(leaf) {
                Ok(flushed) => {
                    let flushes = &self.counters.cleaning_flushes;
                    flushes.fetch_add(u64::from(flushed), Relaxed);
                }
                Err(Error::PmFull { .. }) => {
                    let mut held = self.leaves.nodes.node(leaf).lock();
                    for at in 0..held.fields.unflushed() {
                        held.fields.set_epoch(at, 1 - epoch);
                    }
                    self.copy_held(&mut held, leaf, epoch)?;
                }
                Err(e) => return Err(e),
            }
        }
        self.give_up(floor)?;
        Ok(Progress::Idle)
    }

    /// Finishes the cleaning in progress, or does a whole one.
    pub(crate) fn clean_all(&self) -> Result<()> {
        while self.clean()? == Progress::More {}
        Ok(())
    }

    fn begin(&self) -> Result<Run> {
        let (floor, epoch) = self.logs.flip();
        if mutation::on("ccl-reclaim-before-copy") {
            set_floor(&self.leaves.medium, floor)?;
        }
        Ok(Run {
            floor,
            epoch,
            from: Vec::new(),
            passed: false,
            vain_at: None,
        })
    }

    /// Appends a leaf's unflushed changes of the old epoch to the log again, or flushes them if the
    /// log has no room.
    fn copy(&self, leaf: LeafId, epoch: u8) -> Result<()> {
        let mut held = self.leaves.nodes.node(leaf).lock();
        self.copy_held(&mut held, leaf, epoch)?;
        self.leaves.medium.tell(|| Event::Visited {
            leaf: leaf.0,
            node: held.image(),
        });
        Ok(())
    }

    fn copy_held(&self, held: &mut Held<'_>, leaf: LeafId, epoch: u8) -> Result<()> {
        let of_old = (0..held.fields.unflushed()).any(|at| held.fields.epoch(at) != epoch);
        if of_old && self.leaves.space.is_tight() && self.flush_without_split(held, leaf)? {
            return Ok(());
        }
        for at in 0..held.fields.unflushed() {
            if held.fields.epoch(at) == epoch {
                continue;
            }
            let Some(appended) = self.logs.append_copy(held.change(at))? else {
                let written = self.leaves.flush(held, leaf, None)?;
                if written.is_sparse() {
                    // Merging it would take its neighbour's lock first.
                    self.leaves.note_sparse();
                }
                self.counters.cleaning_flushes.fetch_add(1, Relaxed);
                return Ok(());
            };
            self.counters.copied.fetch_add(1, Relaxed);
            if !mutation::on("ccl-copy-keeps-epoch") {
                held.fields.set_epoch(at, appended.epoch);
            }
        }
        Ok(())
    }

    /// Flushes the changes that fit in the leaf as it is, because copies are a waste where space is
    /// scarce. Returns whether that was all of them.
    fn flush_without_split(&self, held: &mut Held<'_>, leaf: LeafId) -> Result<bool> {
        let plan = match self.leaves.plan(leaf, &held.unflushed(), IfFull::Refuse) {
            Err(Error::PmFull { .. }) => return Ok(false),
            plan => plan?,
        };
        let written = self.leaves.carry_out_flush(held, leaf, plan)?;
        if written.is_sparse() {
            self.leaves.note_sparse();
        }
        self.counters.cleaning_flushes.fetch_add(1, Relaxed);
        Ok(true)
    }

    /// Flushes every buffer whose leaf has room, and cleans the log, so that what deletes and
    /// overwrites no longer need becomes free.
    pub(super) fn flush_what_fits(&self) -> Result<()> {
        let gate = self.enter();
        for leaf in self.all_leaves() {
            match self.flush_node(leaf) {
                Ok(_) | Err(Error::PmFull { .. }) => {}
                Err(e) => return Err(e),
            }
        }
        // Naive cleaning takes the gate itself.
        drop(gate);
        self.clean_all()
    }

    fn all_leaves(&self) -> Vec<LeafId> {
        let mut leaves = Vec::new();
        let index = &self.leaves.index;
        index.for_each(|_, page| leaves.push(LeafId(page.0)));
        leaves
    }

    /// Flushes every buffer.
    pub(crate) fn flush_all(&self) -> Result<()> {
        for leaf in self.all_leaves() {
            if self.flush_node(leaf)? {
                self.counters.cleaning_flushes.fetch_add(1, Relaxed);
            }
        }
        Ok(())
    }

    /// Flushes every buffer and frees the whole log.
    pub(crate) fn flush_and_give_up(&self) -> Result<()> {
        if self.cleaning.lock().is_some() {
            self.clean_all()?;
        }
        self.flush_all()?;
        self.clean_all()
    }

    /// Frees the chunks from before `floor`, which nothing needs any more.
    fn give_up(&self, floor: Time) -> Result<()> {
        if !mutation::on("ccl-floor-not-stored") {
            set_floor(&self.leaves.medium, floor)?;
        }
        self.leaves.space.floor_raised(floor);
        self.logs.flipped_away();
        self.counters.cleanings.fetch_add(1, Relaxed);
        Ok(())
    }
}
