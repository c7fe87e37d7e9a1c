//! A global buffer, in the manner of DPTree: what CCL-BTree is measured against (CCL-BTree §3.2, "limitations of the global buffering approach").
//!
//! ```text
//! write ─▶ log, fence ─▶ active map (DRAM) ──full──▶ merging map ─▶ leaf after leaf, a bounded step at a time ─▶ log floor
//! ```
//!
//! Every write is logged, and what the buffer holds is spread over all leaves, so a merge brings few changes to each. While one map is merged another
//! takes writes; a writer that finds it full, too, does a step of the merge itself.
//!
//! What this is not: DPTree. It keeps that tree's plan (a write-optimised buffer over a read-optimised base, merged when the buffer reaches a share of
//! the base), on the leaves that all trees here share instead of 256-record ones.
//!
//! All of the log is replayed after a crash, so leaves have no timestamps; and both maps' entries live until the floor that ends a merge.

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::error::{Error, Result};
use crate::options::GlobalOptions;
use crate::pager::Progress;
use crate::pm::layout::{BLOCK, Time, set_floor};
use crate::pm::leaf::{SLOT_BYTES, SLOTS};
use crate::pm::logs::Logs;
use crate::pm::nodes::Change;
use crate::pm::records::Bytes;
use crate::sync::atomic::{AtomicU64, Ordering::Relaxed};
use crate::sync::{Arc, Mutex, RwLock};

use super::leaves::{Above, FLUSH_BINS, Leaves, Stamps};
use super::write::IfFull;

/// Leaves that one step of a merge writes.
const STEP: usize = 64;
/// Fewest changes that make a buffer full.
const LEAST: u64 = 16;

/// Changes by key.
pub(crate) type Changes = BTreeMap<Bytes, Change>;

#[derive(Default)]
struct Maps {
    active: Changes,
    merging: Arc<Changes>,
}

/// A merge under way.
struct Run {
    /// The log floor when it is done.
    floor: Time,
    /// Keys up to here are in their leaves.
    done: Option<Bytes>,
}

/// See the module's story.
pub(crate) struct Global {
    pub(crate) leaves: Leaves,
    pub(crate) logs: Logs,
    options: GlobalOptions,
    maps: RwLock<Maps>,
    run: Mutex<Option<Run>>,
    /// Merges that ended.
    pub(crate) merges: AtomicU64,
    pub(crate) overwrites: AtomicU64,
}

impl Global {
    /// A buffer that has `active` already.
    pub(crate) fn new(
        leaves: Leaves,
        logs: Logs,
        options: GlobalOptions,
        active: Changes,
    ) -> Global {
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
            merges: AtomicU64::new(0),
            overwrites: AtomicU64::new(0),
        }
    }

    /// Changes that make the buffer full.
    fn capacity(&self) -> u64 {
        let leaf_bytes = self.leaves.space.leaves() * BLOCK;
        let share = leaf_bytes * u64::from(self.options.buffer_percent) / 100;
        (share / SLOT_BYTES as u64).max(LEAST)
    }

    /// Changes in both maps.
    pub(crate) fn buffered(&self) -> u64 {
        let maps = self.maps.read();
        (maps.active.len() + maps.merging.len()) as u64
    }

    /// Makes a change, durable when this returns.
    pub(crate) fn change(&self, key: &[u8], change: Change) -> Result<()> {
        debug_assert!(self.leaves.records.is_key(change.slot, key)?);
        let mut tried = false;
        loop {
            if self.maps.read().active.len() as u64 >= self.capacity() {
                self.merge()?;
                continue;
            }
            let mut maps = self.maps.write();
            if self.logs.append(change)?.is_none() {
                drop(maps);
                if tried {
                    return Err(Error::PmFull {
                        what: "the log",
                        bytes: self.leaves.space.geometry().device_bytes,
                    });
                }
                tried = true;
                self.merge_all()?;
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

    /// Copies the value of `key` into `value`; `false` if there is none.
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

    /// Whether the buffer is full, or a merge is under way.
    pub(crate) fn merge_due(&self) -> bool {
        self.run.lock().is_some() || self.maps.read().active.len() as u64 >= self.capacity()
    }

    /// One bounded step of a merge.
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
                let floor = under_way.floor;
                set_floor(&self.leaves.medium, floor)?;
                self.maps.write().merging = Arc::default();
                *run = None;
                self.leaves.space.floor_raised(floor);
                self.logs.flipped_away();
                self.merges.fetch_add(1, Relaxed);
                return Ok(Progress::Idle);
            };
            under_way.done = Some(self.merge_leaf(&merging, key)?);
        }
        Ok(Progress::More)
    }

    /// Merges all of the buffer.
    pub(crate) fn merge_all(&self) -> Result<()> {
        if self.run.lock().is_some() {
            while self.merge()? == Progress::More {}
        }
        while self.merge()? == Progress::More {}
        Ok(())
    }

    /// Another map takes writes, in other chunks of the log.
    fn begin(&self) -> Run {
        let mut maps = self.maps.write();
        let (floor, _) = self.logs.flip();
        maps.merging = Arc::new(std::mem::take(&mut maps.active));
        Run { floor, done: None }
    }

    /// Writes to the leaf of `first`, as much as one batch takes of what there is for it from that key on; returns the last key that was written.
    fn merge_leaf(&self, merging: &Changes, first: &Bytes) -> Result<Bytes> {
        let (leaf, held) = self.leaves.lock(first);
        let fence = self.leaves.index.fence_after(first);
        let of_leaf = merging
            .range(first..)
            .take_while(|(key, _)| fence.as_ref().is_none_or(|fence| ***key < **fence))
            .take(SLOTS / 2);
        let (keys, batch): (Vec<&Bytes>, Vec<Change>) = of_leaf.map(|(k, c)| (k, *c)).unzip();
        let none = Stamps {
            late: Time(0),
            new: Time(0),
        };
        let written = self.leaves.write(leaf, &batch, IfFull::Split, none)?;
        drop(held);
        let bin = batch.len().min(FLUSH_BINS - 1);
        self.leaves.counters.flushes[bin].fetch_add(1, Relaxed);
        if written.is_sparse() {
            self.leaves.merge_around(leaf)?;
        }
        let last = keys.last().expect("the first key is of the leaf");
        Ok((*last).clone())
    }
}

impl Above for Global {
    fn overlay(
        &self,
        from: &[u8],
        below: Option<&[u8]>,
        visit: &mut dyn FnMut(&Bytes, Option<Bytes>),
    ) -> Result<()> {
        let maps = self.maps.read();
        let (from, below) = (Bytes::from(from), below.map(Bytes::from));
        if below.as_ref().is_some_and(|below| *below <= from) {
            return Ok(());
        }
        let end = below.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let range = (Bound::Included(&from), end);
        // The active map's are newer.
        for map in [&*maps.merging, &maps.active] {
            for (key, change) in map.range::<Bytes, _>(range) {
                let value = (!change.delete).then(|| self.leaves.records.value(change.slot));
                visit(key, value.transpose()?);
            }
        }
        Ok(())
    }
}
