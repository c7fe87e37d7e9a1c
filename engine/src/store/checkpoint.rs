//! Fuzzy checkpoints: bounding what recovery has to redo, while operations go on.
//!
//! ```text
//!  begin  = end of the log now; wait for the operations in flight
//!  buffer what a tree buffers above its leaves goes down to them           `bf` only
//!  merge  leaves that were noted as sparse: those of before `begin` no log will name any more
//!  sweep  every page first dirtied at or before `begin` is written         a batch a step
//!  index  snapshot of fence -> page and its version, read while it changes
//!  table  changed page-table blocks                                        copy-on-write only
//!  log    flushed to its end: the snapshot may name pages that only the log can rebuild
//!  flush, superblock (redo start = begin), flush
//!  then   the old snapshot and the log before `begin` are free
//! ```
//!
//! Up to the superblock's flush a crash recovers from the previous checkpoint, of which nothing has been given up (BUGS D8: a
//! log removed before the flush that replaces it is recorded).
//!
//! Cost of a whole checkpoint: one write per page that is dirty at its begin, about 28 bytes per
//! leaf of snapshot, one superblock.

use crate::error::Result;
use crate::events::Event;
use crate::layout::{Slot, Superblock};
use crate::mutation;
use crate::pages::PageStore;
use crate::snapshot::{self, Chain};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::trees::Tree;
use crate::types::Progress;
use crate::types::{IoClass, Lba, Lsn, PageId};

/// What the last checkpoint left, and how far the running one is.
pub(crate) struct Checkpointer {
    state: Mutex<State>,
    /// Whether one is running, readable without the lock.
    running: AtomicBool,
    /// Where the last one began, or the running one began: the trigger counts from here.
    last_begin: AtomicU64,
    completed: AtomicU64,
}

struct State {
    superblock: Superblock,
    snapshot_slots: Vec<Slot>,
    /// Of snapshots that a superblock was to name which the device had no room for: it may name
    /// them all the same, until another one is written.
    abandoned: Vec<Slot>,
    run: Option<Run>,
}

/// A checkpoint on its way.
struct Run {
    begin: Lsn,
    /// Next page whose buffered changes go down to its leaf; none when all have.
    buffered: Option<PageId>,
    /// Steps of merging left to do; none before they are counted.
    merges: Option<u64>,
    /// Next frame of the sweep.
    cursor: usize,
}

impl Checkpointer {
    /// Continues from what the device holds.
    pub(crate) fn new(superblock: Superblock, snapshot_slots: Vec<Slot>, log_end: Lsn) -> Self {
        Checkpointer {
            state: Mutex::new(State {
                superblock,
                snapshot_slots,
                abandoned: Vec::new(),
                run: None,
            }),
            running: AtomicBool::new(false),
            last_begin: AtomicU64::new(log_end.0),
            completed: AtomicU64::new(0),
        }
    }

    /// Writes what the newest superblock says once more, to the other place and under the next
    /// number: from then on there are always two, and one that is missing is damage.
    pub(crate) fn write_twin(&self, tree: &Tree) -> Result<()> {
        let volume = &tree.leaves().pager.volume;
        let superblock = &mut self.state.lock().superblock;
        superblock.sequence += 1;
        volume.write(superblock.lba(), &superblock.encode(), IoClass::Extra)?;
        volume.flush()
    }

    pub(crate) fn completed(&self) -> u64 {
        self.completed.load(Ordering::Relaxed)
    }

    /// Whether one is running, or the log has grown by `every` bytes since the last one began.
    pub(crate) fn due(&self, log_end: Lsn, every: u64) -> bool {
        self.running.load(Ordering::Relaxed)
            || log_end
                .0
                .saturating_sub(self.last_begin.load(Ordering::Relaxed))
                >= every
    }

    /// One bounded step; begins a checkpoint if none is running. `Idle` when it is complete.
    pub(crate) fn step(&self, tree: &Tree) -> Result<Progress> {
        self.step_towards(tree, u64::MAX)
    }

    /// One bounded step towards the completion of `wanted` checkpoints in all.
    fn step_towards(&self, tree: &Tree, wanted: u64) -> Result<Progress> {
        let pager = &*tree.leaves().pager;
        pager.check_poison()?;
        let mut state = self.state.lock();
        // Under the lock: or several who wait for the same checkpoint would each begin another one.
        if self.completed() >= wanted {
            return Ok(Progress::Idle);
        }
        let Some(run) = &mut state.run else {
            let begin = pager.log.begin_checkpoint();
            self.last_begin.store(begin.0, Ordering::Relaxed);
            self.running.store(true, Ordering::Relaxed);
            state.run = Some(Run {
                begin,
                buffered: Some(PageId(0)),
                merges: None,
                cursor: 0,
            });
            // An operation may have appended before `begin` and not yet marked its page dirty.
            pager.quiesce();
            return Ok(Progress::More);
        };
        if let Some(from) = run.buffered {
            run.buffered = tree.push_down(from)?;
            if run.buffered.is_some() {
                return Ok(Progress::More);
            }
        }
        let owed = *run.merges.get_or_insert_with(|| tree.merges_owed());
        if owed > 0 && tree.merge_due() {
            run.merges = Some(owed - 1);
            // A leaf that cannot be merged stays as it is, and is no reason to keep the log for
            // ever.
            drop(tree.merge_step());
            return Ok(Progress::More);
        }
        if run.cursor < pager.cache.len() && !mutation::on("checkpoint-skips-pages") {
            let before = run.cursor;
            run.cursor = pager.checkpoint_sweep(run.begin, before)?;
            if run.cursor == before {
                // A page is latched by somebody who may be waiting for us: let them run.
                crate::sync::yield_now();
            }
            return Ok(Progress::More);
        }
        let begin = run.begin;
        let finished = self.finish(&mut state, tree, begin);
        if let Err(e) = &finished {
            pager.volume.tell(|| Event::CheckpointFailed);
            pager.poison(e);
        }
        finished?;
        state.run = None;
        self.running.store(false, Ordering::Relaxed);
        self.completed.fetch_add(1, Ordering::Relaxed);
        Ok(Progress::Idle)
    }

    /// Runs a whole checkpoint that begins after this call: the one on its way, if any, and then another. Callers that come
    /// together share it.
    pub(crate) fn run(&self, tree: &Tree) -> Result<Lsn> {
        let wanted = {
            let state = self.state.lock();
            self.completed() + 1 + u64::from(state.run.is_some())
        };
        while self.completed() < wanted {
            self.step_towards(tree, wanted)?;
        }
        Ok(self.state.lock().superblock.redo_start)
    }

    fn finish(&self, state: &mut State, tree: &Tree, begin: Lsn) -> Result<()> {
        let pager = &*tree.leaves().pager;
        // Before the table, which may name their places: those are free once it is written.
        pager.free_retired()?;
        if mutation::on("truncate-before-superblock") {
            pager.log.truncate(begin)?;
            pager.volume.flush()?;
        }
        let sequence = state.superblock.sequence + 1;
        let chain = Chain {
            volume: &pager.volume,
            layout: &pager.layout,
            number: sequence,
        };
        let written = snapshot::write(chain, &pager.pages, |visit| {
            tree.leaves()
                .index
                .for_each(|fence, page| visit(fence, pager.leaf_entry(page)));
        })?;
        // After the snapshot: the table must name images at least as new as it says.
        let flushed = (pager.pages.persist_table())
            .and_then(|()| pager.flush_log(pager.log.end()))
            .and_then(|()| {
                pager.volume.tell(|| Event::PagesWritten { begin });
                pager.volume.flush()
            });
        if let Err(e) = flushed {
            // Nothing names the snapshot. What failed is told; that this fails, too, would be no
            // news.
            let slots = written.slots.into_iter();
            let _ = slots
                .map(|slot| pager.pages.free_slot(slot))
                .collect::<Vec<_>>();
            return Err(e);
        }
        pager.volume.tell(|| Event::PagesFlushed { begin });
        let superblock = Superblock {
            sequence,
            redo_start: begin,
            snapshot_head: written.head,
            snapshot_entries: written.entries,
            snapshot_number: sequence,
            flush_blocks: pager.log.flush_blocks() as u32,
            high_water: pager.pages.high_water(),
            grown_blocks: match state.superblock.grown_blocks {
                0 => 0,
                _ => pager.volume.device().durable_blocks(),
            },
            ..state.superblock
        };
        pager.volume.tell(|| Event::SuperblockWriting {
            epoch: superblock.epoch,
            redo_start: begin,
        });
        let recorded = (pager.volume).write(superblock.lba(), &superblock.encode(), IoClass::Extra);
        if let Err(e) = recorded {
            state.abandoned.extend(written.slots);
            return Err(e);
        }
        pager
            .volume
            .tell(|| Event::SuperblockWritten { redo_start: begin });
        pager.volume.flush()?;
        pager
            .volume
            .tell(|| Event::SuperblockFlushed { redo_start: begin });
        state.superblock = superblock;
        let mut old = std::mem::replace(&mut state.snapshot_slots, written.slots);
        old.append(&mut state.abandoned);
        old.into_iter()
            .try_for_each(|slot| pager.pages.free_slot(slot))?;
        pager.log.truncate(begin)?;
        pager.free_retired()?;
        // The log is written round and round: to allocate its blocks anew each time would cost
        // every flush.
        let log = pager.layout.log_start();
        pager
            .volume
            .reclaim(log..Lba(log.0 + pager.layout.log_blocks));
        Ok(())
    }
}
