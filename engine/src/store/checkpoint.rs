//! Fuzzy checkpoints: they bound what recovery has to redo, while operations go on.
//!
//! ```text
//!  begin  = end of the log now; wait for the operations in flight
//!  buffer changes buffered above the leaves are pushed down to them,      `bf` only
//!         or logged again, so that the log before `begin` is not needed
//!  merge  leaves noted as sparse: the log will not name those noted before `begin` any more
//!  sweep  every page first dirtied at or before `begin` is written         one batch per step
//!  index  snapshot of fence -> page and its version, read while it changes
//!  table  changed page-table blocks                                        copy-on-write only
//!  log    flushed to its end: the snapshot may name pages that only the log can rebuild
//!  flush, superblock (redo start = begin), flush
//!  then   the old snapshot and the log before `begin` are free
//! ```
//!
//! Until the superblock is flushed, a crash recovers from the previous checkpoint, and nothing that
//! it needs has been freed. (BUGS D8 records a log that was removed before the flush that replaced
//! it.)
//!
//! A whole checkpoint costs one write per page that is dirty when it begins, a snapshot of about 28
//! bytes per leaf, and one superblock.

use crate::error::Result;
use crate::events::{self, Event};
use crate::layout::{Slot, Superblock};
use crate::mutation;
use crate::pager::Pager;
use crate::pages::PageStore;
use crate::snapshot::{self, Chain};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::trees::{Again, Tree};
use crate::types::Progress;
use crate::types::{IoClass, Lba, Lsn, PageId};

/// Runs checkpoints in steps. Holds the result of the last one and the progress of the running one.
pub(crate) struct Checkpointer {
    state: Mutex<State>,
    /// Whether a checkpoint is running. Can be read without the lock.
    running: AtomicBool,
    /// Log position at which the newest checkpoint began, running or complete. The trigger counts
    /// from here.
    last_begin: AtomicU64,
    completed: AtomicU64,
}

struct State {
    superblock: Superblock,
    snapshot_slots: Vec<Slot>,
    /// Slots of snapshots whose superblock write failed for lack of room. The device may have
    /// written that superblock nevertheless, so they stay allocated until another one is written.
    abandoned: Vec<Slot>,
    run: Option<Run>,
}

/// A checkpoint in progress.
struct Run {
    begin: Lsn,
    /// The log's epoch at `begin`.
    epoch: u32,
    /// Next page whose buffered changes are weighed, to choose which are logged again. `None` when
    /// all have been, or none may be.
    weighed: Option<PageId>,
    /// Next page whose buffered changes are pushed down to its leaf. `None` when all have been.
    buffered: Option<PageId>,
    /// Which of these changes may still be logged again instead.
    again: Again,
    /// Remaining merge steps. `None` until they have been counted.
    merges: Option<u64>,
    /// Next frame of the sweep.
    cursor: usize,
}

impl Checkpointer {
    /// Continues from the checkpoint that the device holds.
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

    /// Writes the newest superblock once more, in the other place and with the next sequence
    /// number. From then on there are always two, so a missing one is damage.
    pub(crate) fn write_twin(&self, tree: &Tree) -> Result<()> {
        let volume = &tree.leaves().pager.volume;
        let superblock = &mut self.state.lock().superblock;
        superblock.sequence += 1;
        volume.write(superblock.lba(), &superblock.encode(), IoClass::Extra)?;
        volume.flush()
    }

    /// Makes the log's epoch durable without a checkpoint, so that records may be appended under it
    /// while redo still begins in the epoch before. For recovery, before it appends anything.
    pub(crate) fn write_epoch(&self, tree: &Tree) -> Result<()> {
        let volume = &tree.leaves().pager.volume;
        let superblock = &mut self.state.lock().superblock;
        superblock.sequence += 1;
        let flush_blocks = tree.leaves().pager.log.flush_blocks() as u32;
        superblock.flush_blocks = superblock.flush_blocks.max(flush_blocks);
        let (epoch, redo_start) = (superblock.epoch, superblock.redo_start);
        volume.tell(|| Event::SuperblockWriting { epoch, redo_start });
        volume.write(superblock.lba(), &superblock.encode(), IoClass::Extra)?;
        volume.tell(|| Event::SuperblockWritten { redo_start });
        volume.flush()?;
        volume.tell(|| Event::SuperblockFlushed { redo_start });
        Ok(())
    }

    pub(crate) fn completed(&self) -> u64 {
        self.completed.load(Ordering::Relaxed)
    }

    /// Returns whether a checkpoint is running, or is due because the log has grown by `every`
    /// bytes since the last one began.
    pub(crate) fn due(&self, log_end: Lsn, every: u64) -> bool {
        self.running.load(Ordering::Relaxed)
            || log_end
                .0
                .saturating_sub(self.last_begin.load(Ordering::Relaxed))
                >= every
    }

    /// Does one bounded step, and begins a checkpoint if none is running. Returns `Idle` when it is
    /// complete. Checkpoints begin when the log has grown by `every` bytes.
    pub(crate) fn step(&self, tree: &Tree, every: u64) -> Result<Progress> {
        self.step_towards(tree, u64::MAX, tree.may_log_again(every))
    }

    /// Does one bounded step towards `wanted` completed checkpoints in total.
    fn step_towards(&self, tree: &Tree, wanted: u64, again: u64) -> Result<Progress> {
        let pager = &*tree.leaves().pager;
        pager.check_poison()?;
        let mut state = self.state.lock();
        // Checked under the lock: otherwise several threads that wait for the same checkpoint would
        // each begin another one.
        if self.completed() >= wanted {
            return Ok(Progress::Idle);
        }
        let Some(run) = &mut state.run else {
            let (begin, epoch) = pager.log.begin_checkpoint();
            self.last_begin.store(begin.0, Ordering::Relaxed);
            self.running.store(true, Ordering::Relaxed);
            state.run = Some(Run {
                begin,
                epoch,
                weighed: (again > 0).then_some(PageId(0)),
                buffered: Some(PageId(0)),
                again: Again::new(again, begin),
                merges: None,
                cursor: 0,
            });
            // An operation may have appended before `begin` and not yet marked its page dirty.
            pager.quiesce();
            return Ok(Progress::More);
        };
        if let Some(from) = run.weighed {
            run.weighed = tree.weigh(from, &mut run.again)?;
            return Ok(Progress::More);
        }
        if let Some(from) = run.buffered {
            run.buffered = tree.push_down(from, &mut run.again)?;
            if run.buffered.is_some() {
                return Ok(Progress::More);
            }
        }
        let owed = *run.merges.get_or_insert_with(|| tree.merges_owed());
        if owed > 0 && tree.merge_due() {
            run.merges = Some(owed - 1);
            // A leaf that cannot be merged stays as it is. That is no reason to keep the log for
            // ever.
            drop(tree.merge_step());
            return Ok(Progress::More);
        }
        if run.cursor < pager.cache.len() && !mutation::on("checkpoint-skips-pages") {
            let before = run.cursor;
            run.cursor = pager.checkpoint_sweep(run.begin, before)?;
            if run.cursor == before {
                // Another thread has latched the page and may be waiting for this one: let it run.
                crate::sync::yield_now();
            }
            return Ok(Progress::More);
        }
        let redo_from = (run.begin, run.epoch);
        let finished = self.finish(&mut state, tree, redo_from);
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

    /// Runs a checkpoint that begins after this call. Completes the running one first, if there is
    /// one. Concurrent callers share it. Returns the position where redo would start. Nothing is
    /// logged again: the caller wants the log to be free, or recovery to have nothing to do.
    pub(crate) fn run(&self, tree: &Tree) -> Result<Lsn> {
        let wanted = {
            let state = self.state.lock();
            self.completed() + 1 + u64::from(state.run.is_some())
        };
        while self.completed() < wanted {
            self.step_towards(tree, wanted, 0)?;
        }
        Ok(self.state.lock().superblock.redo_start)
    }

    fn finish(&self, state: &mut State, tree: &Tree, redo_from: (Lsn, u32)) -> Result<()> {
        let (begin, redo_epoch) = redo_from;
        let pager = &*tree.leaves().pager;
        // Free them before the table is written. It may name their places, which become free with
        // it.
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
            tree.leaves().index.for_each(|fence, page| {
                tell(pager, || events::Snapshot::ReadsFence {
                    fence: events::fence_name(fence),
                    page,
                });
                let leaf = pager.leaf_entry(page);
                let version = leaf.version;
                tell(pager, || events::Snapshot::AddsEntry { page, version });
                visit(fence, leaf);
            });
        })?;
        // Written after the snapshot: the table must name images at least as new as the snapshot
        // does.
        let flushed = (pager.pages.persist_table())
            .and_then(|()| match mutation::on("snapshot-before-log") {
                true => Ok(()),
                false => pager.flush_log(pager.log.end()),
            })
            .and_then(|()| {
                pager.volume.tell(|| Event::PagesWritten { begin });
                match mutation::on("snapshot-not-flushed") {
                    true => Ok(()),
                    false => pager.volume.flush(),
                }
            });
        if let Err(e) = flushed {
            snapshot::give_up(&pager.pages, written.slots, &e);
            return Err(e);
        }
        pager.volume.tell(|| Event::PagesFlushed { begin });
        let superblock = Superblock {
            sequence,
            redo_epoch,
            redo_start: match mutation::on("redo-from-snapshot") {
                true => pager.log.end(),
                false => begin,
            },
            snapshot_head: written.head,
            snapshot: written.content,
            snapshot_number: sequence,
            flush_blocks: match redo_epoch == state.superblock.epoch {
                true => pager.log.flush_blocks() as u32,
                // An older epoch is read first. `write_epoch` has noted the longer of both flushes.
                false => state.superblock.flush_blocks,
            },
            high_water: pager.pages.high_water(),
            grown_blocks: match state.superblock.grown_blocks {
                0 => 0,
                noted if mutation::on("growth-not-noted") => noted,
                _ => pager.volume.device().durable_blocks(),
            },
            ..state.superblock
        };
        if mutation::on("snapshot-freed-early") {
            free_chunks(pager, std::mem::take(&mut state.snapshot_slots))?;
        }
        tell(pager, || events::Snapshot::WritesSuper {
            number: sequence,
            head: superblock.snapshot_head.0,
            entries: superblock.snapshot.entries,
            sum: superblock.snapshot.sum,
        });
        pager.volume.tell(|| Event::SuperblockWriting {
            epoch: superblock.epoch,
            redo_start: superblock.redo_start,
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
        free_chunks(pager, old)?;
        pager.log.truncate(begin)?;
        pager.free_retired()?;
        // The log rewrites its blocks over and over. Keep them allocated, or every flush would pay
        // for allocating them again.
        let log = pager.layout.log_start();
        pager
            .volume
            .reclaim(log..Lba(log.0 + pager.layout.log_blocks));
        Ok(())
    }
}

/// Frees the chunks of a snapshot that no superblock names any more.
fn free_chunks(pager: &Pager, slots: Vec<Slot>) -> Result<()> {
    slots.into_iter().try_for_each(|slot| {
        tell(pager, || events::Snapshot::FreesChunk { slot: slot.0 });
        pager.pages.free_slot(slot)
    })
}

fn tell(pager: &Pager, event: impl FnOnce() -> events::Snapshot) {
    pager.volume.tell(|| Event::Snapshot(event()));
}
