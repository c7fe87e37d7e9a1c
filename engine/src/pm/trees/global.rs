//! A tree with one global buffer, in the manner of DPTree. CCL-BTree is compared with it (CCL-BTree
//! §3.2, "limitations of the global buffering approach").
//!
//! ```text
//! write ─▶ log, fence ─▶ active map (DRAM) ──full──▶ merging map
//!       ─▶ leaf after leaf, a bounded step at a time ─▶ log floor
//! ```
//!
//! Every write is logged. The buffer's changes are spread over all leaves, so a merge brings few
//! changes to each. While one map is being merged, another takes writes; a writer that finds that
//! one full too does a step of the merge itself.
//!
//! This is not DPTree. It has that tree's plan (a write-optimised buffer over a read-optimised
//! base, merged when the buffer reaches a share of the base), but uses the leaves that all trees
//! here share instead of leaves of 256 records.
//!
//! **Without room.** A change whose leaf would have to be split when no leaf is free stays behind
//! when its map is merged. It is logged again and goes to the active map, so that the old log can
//! be given up all the same. While there are such changes, puts are refused. Deletes are not
//! refused, because they make the room that the others wait for. If few chunks are free, a map is
//! full sooner ([`Global::capacity`]), so that what stays behind fits in the chunk that is kept for
//! copies.
//!
//! A crash replays the whole log, so leaves have no timestamps, and the entries of both maps stay
//! alive until a merge ends by raising the floor.

use std::collections::BTreeSet;
use std::ops::Bound;

use crate::error::{Error, Result};
use crate::kv::Visitor;
use crate::options::{GlobalOptions, PmOptions};
use crate::pm::bytes::Bytes;
use crate::pm::entries::ENTRY_BYTES;
use crate::pm::layout::Geometry;
use crate::pm::layout::{BLOCK, Time, set_floor};
use crate::pm::leaf::{SLOT_BYTES, SLOTS};
use crate::pm::leaves::recover::{Recovered, recover};
use crate::pm::logs::Logs;
use crate::pm::medium::Medium;
use crate::pm::nodes::Change;
use crate::pm::records::RowValue;
use crate::pm::space::Room;
use crate::pm::tree::{Base, Opened, PmTree, Structure};
use crate::stats::PmStats;
use crate::sync::atomic::{AtomicU64, Ordering::Relaxed};
use crate::sync::{Arc, Mutex, RwLock};
use crate::types::Progress;

use crate::pm::leaves::recover::Changes;
use crate::pm::leaves::scan::Range;
use crate::pm::leaves::write::IfFull;
use crate::pm::leaves::{Above, Leaves, Stamps};
use crate::stats::FLUSH_BINS;

/// The number of leaves that one step of a merge writes.
const STEP: usize = 64;
/// The smallest number of changes that make the buffer full.
const LEAST: u64 = 16;

#[derive(Default)]
struct Maps {
    active: Changes,
    merging: Arc<Changes>,
}

/// A merge in progress.
struct Run {
    /// The log floor to be set when it is done.
    floor: Time,
    /// Keys up to this one are in their leaves, or left behind.
    done: Option<Bytes>,
    /// Changes that had no room in their leaves, and the number of these that are in the new log
    /// already.
    left: Changes,
    copied: BTreeSet<Bytes>,
}

/// The tree, described in the module's introduction.
pub(crate) struct Global {
    pub(crate) leaves: Leaves,
    pub(crate) logs: Logs,
    options: GlobalOptions,
    maps: RwLock<Maps>,
    run: Mutex<Option<Run>>,
    /// The number of changes that the last merge left behind.
    left: AtomicU64,
    /// Completed merges.
    pub(crate) merges: AtomicU64,
    pub(crate) overwrites: AtomicU64,
}

impl Global {
    /// Creates a tree whose buffer already contains `active`.
    pub(crate) fn new(
        leaves: Leaves,
        logs: Logs,
        options: GlobalOptions,
        active: Changes,
    ) -> Global {
        let left = AtomicU64::new(active.len() as u64);
        let maps = Maps {
            active,
            merging: Arc::default(),
        };
        Global {
            leaves,
            logs,
            options,
            maps: RwLock::new(maps),
            run: Mutex::new(None),
            left,
            merges: AtomicU64::new(0),
            overwrites: AtomicU64::new(0),
        }
    }

    /// Returns the number of changes that make the buffer full: a share of the leaves' bytes. If
    /// space is scarce, fewer: even if every change that finds a free leaf splits, the changes that
    /// find none must fit in half of the chunk that is kept for copies.
    fn capacity(&self) -> u64 {
        let space = &self.leaves.space;
        let (leaves, free_chunks) = space.leaves_and_free_chunks();
        let share = leaves * BLOCK * u64::from(self.options.buffer_percent) / 100;
        let left = space.geometry().chunk_bytes / ENTRY_BYTES / 2;
        // Of the free chunks, one is for copies, and a tenth for the log.
        let splits = free_chunks.saturating_sub(2) * space.geometry().leaves_in_chunk() * 9 / 10;
        (share / SLOT_BYTES as u64).min(left + splits).max(LEAST)
    }

    /// Returns the number of changes in both maps.
    pub(crate) fn buffered(&self) -> u64 {
        let maps = self.maps.read();
        (maps.active.len() + maps.merging.len()) as u64
    }

    /// Makes a change, which is durable when this returns. If it fails for lack of space, nothing
    /// has changed.
    pub(crate) fn change(&self, key: &[u8], change: Change) -> Result<()> {
        debug_assert!(self.leaves.records.is_key(change.slot, key)?);
        let mut tried = false;
        loop {
            let left = self.left.load(Relaxed) > 0;
            if left && !change.delete {
                if tried {
                    return Err(self.leaves.space.full("another leaf"));
                }
                tried = true;
                self.empty_buffer()?;
                continue;
            }
            if !left && self.maps.read().active.len() as u64 >= self.capacity() {
                self.merge()?;
                continue;
            }
            let mut maps = self.maps.write();
            let mut appended = self.logs.append(change)?;
            if appended.is_none() && tried && change.delete && !left {
                // Nothing is left to copy, so the chunk for copies is not needed until this map is
                // merged.
                appended = self.logs.append_copy(change)?;
            }
            if appended.is_none() {
                drop(maps);
                if tried {
                    return Err(self.leaves.space.full("the log"));
                }
                tried = true;
                self.empty_buffer()?;
                continue;
            }
            let key = self.leaves.records.key(change.slot)?;
            if let Some(old) = maps.active.insert(key, change) {
                self.overwrites.fetch_add(1, Relaxed);
                self.leaves.retire(old.slot)?;
            }
            return Ok(());
        }
    }

    /// Deletes a key that is in neither map from its leaf, when there is no room for a log entry.
    /// Returns `false` if the key is in a map. Everything is merged first, so that the key's log
    /// entries are below the floor and will not be replayed.
    pub(crate) fn delete_in_place(&self, key: &[u8]) -> Result<bool> {
        self.empty_buffer()?;
        let sought = Bytes::from(key);
        let maps = self.maps.write();
        if maps.active.contains_key(&sought) || maps.merging.contains_key(&sought) {
            return Ok(false);
        }
        self.leaves.delete_in_place(key)?;
        Ok(true)
    }

    /// Copies the value of `key` into `value`. Returns `false` if there is none.
    pub(crate) fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let sought = Bytes::from(key);
        let maps = self.maps.read();
        let found = maps
            .active
            .get(&sought)
            .or_else(|| maps.merging.get(&sought));
        let Some(change) = found else {
            drop(maps);
            return self.leaves.get(key, value);
        };
        self.leaves.counters.hits.fetch_add(1, Relaxed);
        value.clear();
        if !change.delete {
            value.extend_from_slice(&self.leaves.records.value(change.slot)?);
        }
        Ok(!change.delete)
    }

    /// Returns whether the buffer is full, or a merge is in progress.
    pub(crate) fn merge_due(&self) -> bool {
        self.run.lock().is_some() || self.maps.read().active.len() as u64 >= self.capacity()
    }

    /// Does one bounded step of a merge.
    pub(crate) fn merge(&self) -> Result<Progress> {
        let mut run = self.run.lock();
        let under_way = match &mut *run {
            Some(under_way) => under_way,
            None => run.insert(self.begin()),
        };
        let merging = Arc::clone(&self.maps.read().merging);
        for _ in 0..STEP {
            let from = match &under_way.done {
                Some(done) => Bound::Excluded(done),
                None => Bound::Unbounded,
            };
            let mut rest = merging.range::<Bytes, _>((from, Bound::Unbounded));
            let Some((key, _)) = rest.next() else {
                self.finish(under_way)?;
                *run = None;
                return Ok(Progress::Idle);
            };
            under_way.done = Some(self.merge_leaf(&merging, key, &mut under_way.left)?);
        }
        Ok(Progress::More)
    }

    /// Finishes a merge: logs the changes that were left behind again, and then gives up the old
    /// log.
    fn finish(&self, run: &mut Run) -> Result<()> {
        if !run.left.is_empty() {
            // Leaves that deletes have emptied make room for others.
            self.leaves.merge_all()?;
            for (key, change) in std::mem::take(&mut run.left) {
                self.merge_alone(key, change, &mut run.left)?;
            }
        }
        let mut superseded = Vec::new();
        let mut maps = self.maps.write();
        for (key, change) in &run.left {
            if maps.active.contains_key(key) {
                superseded.push((key.clone(), change.slot));
            } else if !run.copied.contains(key) {
                if self.logs.append_copy(*change)?.is_none() {
                    self.left.store(run.left.len() as u64, Relaxed);
                    maps.merging = Arc::new(std::mem::take(&mut run.left));
                    run.done = None;
                    return Err(self.leaves.space.full("the log"));
                }
                run.copied.insert(key.clone());
            }
        }
        let floor = run.floor;
        set_floor(&self.leaves.medium, floor)?;
        for (key, _) in &superseded {
            run.left.remove(key);
        }
        self.left.store(run.left.len() as u64, Relaxed);
        maps.active.append(&mut run.left);
        maps.merging = Arc::default();
        drop(maps);
        for (_, slot) in superseded {
            self.leaves.retire(slot)?;
        }
        self.leaves.space.floor_raised(floor);
        self.logs.flipped_away();
        self.merges.fetch_add(1, Relaxed);
        Ok(())
    }

    /// Merges the whole buffer.
    fn empty_buffer(&self) -> Result<()> {
        if self.run.lock().is_some() {
            while self.merge()? == Progress::More {}
        }
        while self.merge()? == Progress::More {}
        Ok(())
    }

    /// Starts a merge: another map takes writes, in new chunks of the log.
    fn begin(&self) -> Run {
        let mut maps = self.maps.write();
        let (floor, _) = self.logs.flip();
        maps.merging = Arc::new(std::mem::take(&mut maps.active));
        Run {
            floor,
            done: None,
            left: Changes::new(),
            copied: BTreeSet::new(),
        }
    }

    /// Writes one batch of changes to the leaf of `first`, beginning with that key. Returns the
    /// last key that was written, or left behind for lack of space.
    fn merge_leaf(&self, merging: &Changes, first: &Bytes, left: &mut Changes) -> Result<Bytes> {
        let (leaf, held) = self.leaves.lock(first);
        let fence = self.leaves.index.fence_after(first);
        let of_leaf = merging
            .range(first..)
            .take_while(|(key, _)| fence.as_ref().is_none_or(|fence| ***key < **fence))
            .take(SLOTS / 2);
        let (keys, batch): (Vec<&Bytes>, Vec<Change>) = of_leaf.map(|(k, c)| (k, *c)).unzip();
        let last = (*keys.last().expect("the first key is of the leaf")).clone();
        let written = match self
            .leaves
            .write(leaf, &batch, IfFull::Split(Room::Put), Stamps::NONE)
        {
            Err(Error::PmFull { .. }) => {
                drop(held);
                let mut each: Vec<(&Bytes, Change)> = keys.into_iter().zip(batch).collect();
                // Deletes first, because they make room for the others.
                each.sort_by_key(|(_, change)| !change.delete);
                for (key, change) in each {
                    self.merge_alone(key.clone(), change, left)?;
                }
                return Ok(last);
            }
            written => written?,
        };
        drop(held);
        let bin = batch.len().min(FLUSH_BINS - 1);
        self.leaves.counters.flushes[bin].fetch_add(1, Relaxed);
        if written.is_sparse() {
            self.leaves.merge_around(leaf)?;
        }
        Ok(last)
    }

    /// Writes one change to its leaf, or leaves it behind if there is no room.
    fn merge_alone(&self, key: Bytes, change: Change, left: &mut Changes) -> Result<()> {
        let (leaf, held) = self.leaves.lock(&key);
        let split = IfFull::Split(Room::of(change.delete));
        let written = match self.leaves.write(leaf, &[change], split, Stamps::NONE) {
            Err(Error::PmFull { .. }) => {
                left.insert(key, change);
                return Ok(());
            }
            written => written?,
        };
        drop(held);
        self.leaves.counters.flushes[1].fetch_add(1, Relaxed);
        if written.is_sparse() {
            self.leaves.merge_around(leaf)?;
        }
        Ok(())
    }
}

impl Above for Global {
    fn overlay(
        &self,
        range: Range<'_>,
        visit: &mut dyn FnMut(&Bytes, Option<RowValue>),
    ) -> Result<()> {
        let maps = self.maps.read();
        let (from, below) = (Bytes::from(range.from), range.below.map(Bytes::from));
        if below.as_ref().is_some_and(|below| *below <= from) {
            return Ok(());
        }
        let end = below.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let keys = (Bound::Included(&from), end);
        // The active map's changes are newer.
        for map in [&*maps.merging, &maps.active] {
            for (key, change) in map.range::<Bytes, _>(keys) {
                let records = &self.leaves.records;
                let next = range.is_next(key);
                let value = (!change.delete).then(|| records.row_value(change.slot, next));
                visit(key, value.transpose()?);
            }
        }
        Ok(())
    }
}

/// Recovers the tree.
pub(super) fn open(
    medium: Arc<Medium>,
    geometry: Geometry,
    (global, options): (GlobalOptions, &PmOptions),
) -> Result<Opened> {
    let Recovered {
        leaves,
        above,
        report,
    } = recover(&medium, geometry, options)?;
    let logs = leaves.logs(medium, global.logs, report.log_kept);
    let tree = Global::new(leaves, logs, global, above);
    Ok((Box::new(tree), report))
}

impl PmTree for Global {
    fn base(&self) -> Base<'_> {
        self.leaves.base()
    }

    fn structure(&self) -> Structure {
        self.leaves.structure()
    }

    fn stats(&self) -> PmStats {
        PmStats {
            buffer_overwrites: self.overwrites.load(Relaxed),
            cleanings: self.merges.load(Relaxed),
            buffered: self.buffered(),
            ..self.leaves.stats_with(&self.logs)
        }
    }

    fn change(&self, key: &[u8], change: Change) -> Result<()> {
        Global::change(self, key, change)
    }

    fn delete_in_place(&self, key: &[u8]) -> Result<bool> {
        Global::delete_in_place(self, key)
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        Global::get(self, key, value)
    }

    fn scan(&self, from: &[u8], visit: &mut Visitor<'_>) -> Result<()> {
        self.leaves.scan(self, from, visit)
    }

    fn scan_back(&self, before: Option<&[u8]>, visit: &mut Visitor<'_>) -> Result<()> {
        self.leaves.scan_back(self, before, visit)
    }

    fn cleaning_due(&self) -> bool {
        self.merge_due()
    }

    fn clean(&self) -> Result<Progress> {
        self.merge()
    }

    fn merging_due(&self) -> bool {
        self.leaves.merging_due()
    }

    fn merge_step(&self) -> Result<Progress> {
        self.leaves.merge_step()
    }

    fn merge_all(&self) -> Result<()> {
        self.leaves.merge_all()
    }

    fn buffered(&self) -> u64 {
        Global::buffered(self)
    }

    fn clean_all(&self) -> Result<()> {
        self.empty_buffer()
    }

    fn flush_all(&self) -> Result<()> {
        self.empty_buffer()
    }
}
