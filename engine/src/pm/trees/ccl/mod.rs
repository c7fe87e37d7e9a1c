//! CCL-BTree: writes collect in a buffer node per leaf, and are in the log until they are flushed
//! together (CCL-BTree §3.2, §3.3).
//!
//! ```text
//! write ─▶ slot free?  ──yes──▶ append to the log, fence ─▶ slot
//!              └────────no───▶ trigger write: N_batch + 1 changes to the leaf, two fences, no log
//! ```
//!
//! All of this happens under the node's lock, so the log entries of a leaf, its flushes and its
//! buffer are in the same order.
//!
//! Invariants
//! - A key has at most one unflushed slot. A write to a key that has one is logged and overwrites
//!   the slot, so the key of a trigger write is never in the buffer.
//! - An unflushed key has no cached copy beside it: after a flush of a node that was not full, an
//!   older copy could outlive the newer one.
//! - Every unflushed change is in a live chunk of the log, whose epoch is given by the slot's epoch
//!   bit.

use crate::error::{Error, Result};
use crate::kv::Visitor;
use crate::mutation;
use crate::options::{CclOptions, Cleaning, Logging, PmOptions};
use crate::pm::entries::ENTRY_BYTES;
use crate::pm::events::Event;
use crate::pm::layout::Geometry;
use crate::pm::layout::LeafId;
use crate::pm::leaf::SLOTS;
use crate::pm::leaves::recover::{Recovered, recover};
use crate::pm::logs::Logs;
use crate::pm::medium::Medium;
use crate::pm::nodes::{Change, Held};
use crate::pm::space::Room;
use crate::pm::tree::{Base, Opened, PmTree, Structure};
use crate::stats::PmStats;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::{Arc, Mutex, RwLock, RwLockReadGuard};

mod clean;
mod state;

use crate::pm::leaves::write::IfFull;
use crate::pm::leaves::{Leaves, NothingAbove, Stamps, Written};
use crate::types::Progress;
use state::Run;

/// The CCL-BTree, described in the module's introduction.
pub(crate) struct Ccl {
    pub(crate) leaves: Leaves,
    pub(crate) logs: Logs,
    pub(crate) options: CclOptions,
    /// The cleaning in progress.
    pub(super) cleaning: Mutex<Option<Run>>,
    /// Taken for reading by writers, if cleaning stops them all (§3.4, naive).
    pub(super) gate: RwLock<()>,
    pub(crate) counters: Counters,
}

/// Counters since the store was opened.
#[derive(Default)]
pub(crate) struct Counters {
    /// Writes that overwrote their key's unflushed slot.
    pub(crate) overwrites: crate::sync::atomic::AtomicU64,
    /// Writes that found their buffer full.
    pub(crate) triggers: crate::sync::atomic::AtomicU64,
    /// Completed cleanings, entries copied by them, and leaves flushed by them.
    pub(crate) cleanings: crate::sync::atomic::AtomicU64,
    pub(crate) copied: crate::sync::atomic::AtomicU64,
    pub(crate) cleaning_flushes: crate::sync::atomic::AtomicU64,
}

/// The outcome of an attempt to make a change.
enum Attempt {
    Done,
    /// Made, and this leaf should be merged.
    Sparse(LeafId),
    /// The log has no room.
    NoRoom,
}

impl Attempt {
    fn of(leaf: LeafId, written: &Written) -> Attempt {
        if written.is_sparse() {
            Attempt::Sparse(leaf)
        } else {
            Attempt::Done
        }
    }
}

impl Ccl {
    pub(crate) fn new(leaves: Leaves, logs: Logs, options: CclOptions) -> Ccl {
        Ccl {
            leaves,
            logs,
            options,
            cleaning: Mutex::new(None),
            gate: RwLock::new(()),
            counters: Counters::default(),
        }
    }

    /// Makes a change, which is durable when this returns. If it fails for lack of space, nothing
    /// has changed, not even a log.
    pub(crate) fn change(&self, key: &[u8], change: Change) -> Result<()> {
        let made = match self.try_change(key, change) {
            Ok(Attempt::NoRoom) => self.make_room_and_change(key, change),
            Err(Error::PmFull { .. }) if self.is_garbage_in_the_way() => {
                self.make_room_and_change(key, change)
            }
            made => made,
        };
        if let Attempt::Sparse(leaf) = made? {
            let _gate = self.enter();
            self.leaves.merge_around(leaf)?;
        }
        Ok(())
    }

    /// Returns whether cleaning would free at least one chunk of the log, or is in progress.
    fn is_garbage_in_the_way(&self) -> bool {
        if mutation::on("ccl-full-of-log") {
            return false;
        }
        let buffered = self.leaves.counters.buffered.load(Relaxed);
        let garbage = self.logs.live().saturating_sub(buffered);
        let in_a_chunk = self.leaves.space.geometry().chunk_bytes / ENTRY_BYTES;
        garbage >= in_a_chunk || self.cleaning.lock().is_some()
    }

    /// Keeps a cleaning from stopping the writers while a write runs, if cleaning does that.
    pub(super) fn enter(&self) -> Option<RwLockReadGuard<'_, ()>> {
        (self.options.cleaning == Cleaning::Naive).then(|| self.gate.read())
    }

    fn make_room_and_change(&self, key: &[u8], change: Change) -> Result<Attempt> {
        // Leaves and records may have taken every chunk. Changes that are only logged can still be
        // flushed.
        match self.clean_all() {
            Ok(()) => {}
            Err(Error::PmFull { .. }) => {}
            Err(e) => return Err(e),
        }
        match self.try_change(key, change)? {
            Attempt::NoRoom => self.write_through(key, change),
            made => Ok(made),
        }
    }

    fn try_change(&self, key: &[u8], change: Change) -> Result<Attempt> {
        let _gate = self.enter();
        let (leaf, mut held) = self.leaves.lock(key);
        if let Some(at) = self.unflushed_slot(&held, key)? {
            let Some(appended) = self.logs.append(change)? else {
                return Ok(Attempt::NoRoom);
            };
            self.leaves.retire(held.change(at).slot)?;
            held.set(at, change, appended.epoch);
            self.counters.overwrites.fetch_add(1, Relaxed);
            self.tell_buffered(&held, leaf);
            return Ok(Attempt::Done);
        }
        let at = held.fields.unflushed();
        let waits = at < self.leaves.nodes.batch();
        if waits && !change.delete && self.needs_split_when_tight(&held, leaf)? {
            // A cached copy of the key would be older than the leaf.
            held.fields.set_filled(at);
        } else if waits {
            let Some(appended) = self.logs.append(change)? else {
                return Ok(Attempt::NoRoom);
            };
            self.drop_cached(&mut held, key)?;
            held.set(at, change, appended.epoch);
            held.fields.set_unflushed(at + 1);
            let filled = held.fields.filled().max(at + 1);
            held.fields.set_filled(filled);
            self.leaves.counters.buffered.fetch_add(1, Relaxed);
            self.tell_buffered(&held, leaf);
            return Ok(Attempt::Done);
        }
        self.counters.triggers.fetch_add(1, Relaxed);
        let every = self.options.logging == Logging::EveryWrite;
        if every && mutation::on("ccl-logs-what-it-refuses") && self.logs.append(change)?.is_none()
        {
            return Ok(Attempt::NoRoom);
        }
        let planned = |room| self.leaves.plan_flush(&held, leaf, Some(change), room);
        let plan = match planned(Room::Put) {
            Err(Error::PmFull { .. }) if change.delete => {
                match self.delete_alone(&held, leaf, change) {
                    // It needs a slot, and there is none.
                    Err(Error::PmFull { .. }) => planned(Room::Delete)?,
                    done => return done,
                }
            }
            plan => plan?,
        };
        // Once the change is in the log it is in the map, so the space for it must be found before.
        if every && self.logs.append(change)?.is_none() {
            self.leaves.give_up(plan)?;
            return Ok(Attempt::NoRoom);
        }
        let written = self.leaves.carry_out_flush(&mut held, leaf, plan)?;
        Ok(Attempt::of(leaf, &written))
    }

    /// Returns whether another change, together with what is buffered, would not fit in the leaf,
    /// on a device that hardly has room to split the leaf later. A change refused at that point
    /// would already be in the log and stay there, because there is no room to copy it either.
    fn needs_split_when_tight(&self, held: &Held<'_>, leaf: LeafId) -> Result<bool> {
        if !self.leaves.space.is_tight() {
            return Ok(false);
        }
        let used = self.leaves.load(leaf)?.header().bitmap().count_ones();
        Ok(used as usize + held.fields.unflushed() >= SLOTS)
    }

    fn tell_buffered(&self, held: &Held<'_>, leaf: LeafId) {
        self.leaves.medium.tell(|| Event::Buffered {
            leaf: leaf.0,
            node: held.image(),
        });
    }

    /// Returns the unflushed slot of a key.
    fn unflushed_slot(&self, held: &Held<'_>, key: &[u8]) -> Result<Option<usize>> {
        for at in 0..held.fields.unflushed() {
            if self.leaves.records.is_key(held.change(at).slot, key)? {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    /// Prepares for writing a key to the first slot that is not unflushed: moves the entry cached
    /// there to the slot of the key's own cached copy.
    fn drop_cached(&self, held: &mut Held<'_>, key: &[u8]) -> Result<()> {
        if mutation::on("ccl-stale-copy-cached") {
            return Ok(());
        }
        let next = held.fields.unflushed();
        for at in next..held.fields.filled() {
            if self.leaves.records.is_key(held.change(at).slot, key)? {
                if at > next {
                    held.set(at, held.change(next), 0);
                }
                return Ok(());
            }
        }
        Ok(())
    }

    /// Makes a change without the log, as a trigger write together with whatever is buffered.
    fn write_through(&self, key: &[u8], change: Change) -> Result<Attempt> {
        let _gate = self.enter();
        loop {
            let (leaf, mut held) = self.leaves.lock(key);
            if self.unflushed_slot(&held, key)?.is_some() {
                // Cleaning has flushed everything, so another thread, whose log had room, has
                // logged the key since. An unlogged change must find the leaf's timestamp above the
                // key's last log entry, so the logged change goes to the leaf by a flush of its
                // own.
                match self.leaves.flush(&mut held, leaf, None) {
                    // There is no room for that either, so the chunk kept for copies is used: a
                    // delete leaves less to copy.
                    Err(Error::PmFull { .. }) if change.delete => {
                        return self.overwrite(&mut held, key, change);
                    }
                    flushed => drop(flushed?),
                }
                continue;
            }
            // A cached copy of the key would be older than the leaf.
            let unflushed = held.fields.unflushed();
            held.fields.set_filled(unflushed);
            return match self.leaves.flush(&mut held, leaf, Some(change)) {
                Err(Error::PmFull { .. }) if change.delete => {
                    match self.delete_alone(&held, leaf, change) {
                        Err(Error::PmFull { .. }) => {
                            let plan =
                                self.leaves
                                    .plan_flush(&held, leaf, Some(change), Room::Delete)?;
                            let written = self.leaves.carry_out_flush(&mut held, leaf, plan)?;
                            Ok(Attempt::of(leaf, &written))
                        }
                        done => done,
                    }
                }
                written => Ok(Attempt::of(leaf, &written?)),
            };
        }
    }

    /// Logs the delete of a buffered key in the last free chunk.
    fn overwrite(&self, held: &mut Held<'_>, key: &[u8], change: Change) -> Result<Attempt> {
        let appended = self.logs.append_copy(change)?;
        let at = self.unflushed_slot(held, key)?;
        let (Some(appended), Some(at)) = (appended, at) else {
            return Err(self.leaves.space.full("the log"));
        };
        self.leaves.retire(held.change(at).slot)?;
        held.set(at, change, appended.epoch);
        self.counters.overwrites.fetch_add(1, Relaxed);
        Ok(Attempt::Done)
    }

    /// Deletes a key that is not buffered from its leaf, if the leaf has no room for the buffered
    /// changes. The header carries the time of the last flush, as always, which covers the key's
    /// log entries.
    fn delete_alone(&self, held: &Held<'_>, leaf: LeafId, change: Change) -> Result<Attempt> {
        let at = held.flushed_at();
        let stamps = Stamps { late: at, new: at };
        self.leaves.write(leaf, &[change], IfFull::Refuse, stamps)?;
        Ok(Attempt::Sparse(leaf))
    }

    /// Writes a leaf's buffered changes to the leaf. Returns whether there were any.
    pub(super) fn flush_node(&self, leaf: LeafId) -> Result<bool> {
        // Cleaning walks the index, so the leaf may have been merged away since. Its node was left
        // empty then.
        let mut held = self.leaves.nodes.node(leaf).lock();
        if held.fields.unflushed() == 0 {
            return Ok(false);
        }
        let written = self.leaves.flush(&mut held, leaf, None)?;
        drop(held);
        if written.is_sparse() {
            self.leaves.merge_around(leaf)?;
        }
        Ok(true)
    }
}

/// Recovers the tree.
pub(super) fn open(
    medium: Arc<Medium>,
    geometry: Geometry,
    (ccl, options): (CclOptions, &PmOptions),
) -> Result<Opened> {
    let Recovered { leaves, report, .. } = recover(&medium, geometry, options)?;
    let logs = leaves.logs(medium, ccl.logs, report.log_kept);
    Ok((Box::new(Ccl::new(leaves, logs, ccl)), report))
}

impl PmTree for Ccl {
    fn base(&self) -> Base<'_> {
        self.leaves.base()
    }

    fn structure(&self) -> Structure {
        self.leaves.structure()
    }

    fn stats(&self) -> PmStats {
        let counters = &self.counters;
        PmStats {
            buffer_overwrites: counters.overwrites.load(Relaxed),
            trigger_writes: counters.triggers.load(Relaxed),
            cleanings: counters.cleanings.load(Relaxed),
            cleaning_copies: counters.copied.load(Relaxed),
            cleaning_flushes: counters.cleaning_flushes.load(Relaxed),
            ..self.leaves.stats_with(&self.logs)
        }
    }

    fn change(&self, key: &[u8], change: Change) -> Result<()> {
        Ccl::change(self, key, change)
    }

    fn delete_in_place(&self, key: &[u8]) -> Result<bool> {
        let _gate = self.enter();
        self.leaves.delete_in_place(key)?;
        Ok(true)
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.leaves.get(key, value)
    }

    fn scan(&self, from: &[u8], visit: &mut Visitor<'_>) -> Result<()> {
        self.leaves.scan(&NothingAbove, from, visit)
    }

    fn scan_back(&self, before: Option<&[u8]>, visit: &mut Visitor<'_>) -> Result<()> {
        self.leaves.scan_back(&NothingAbove, before, visit)
    }

    fn cleaning_due(&self) -> bool {
        Ccl::cleaning_due(self)
    }

    fn clean(&self) -> Result<Progress> {
        Ccl::clean(self)
    }

    fn merging_due(&self) -> bool {
        self.leaves.merging_due()
    }

    fn merge_step(&self) -> Result<Progress> {
        let _gate = self.enter();
        self.leaves.merge_step()
    }

    fn merge_all(&self) -> Result<()> {
        let _gate = self.enter();
        self.leaves.merge_all()
    }

    fn buffered(&self) -> u64 {
        self.leaves.counters.buffered.load(Relaxed)
    }

    fn clean_all(&self) -> Result<()> {
        Ccl::clean_all(self)
    }

    fn flush_what_fits(&self) -> Result<()> {
        Ccl::flush_what_fits(self)
    }

    fn flush_all(&self) -> Result<()> {
        self.flush_and_give_up()
    }
}
