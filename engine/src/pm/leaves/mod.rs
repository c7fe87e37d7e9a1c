//! Leaves in persistent memory under the shared index: what all PM trees have, and all that `pmtree` has.
//!
//! ```text
//! index (DRAM) ─▶ leaf number ─▶ buffer node (DRAM: lock, slots) and leaf (PM)
//! ```
//!
//! Whoever changes a leaf holds its node's lock and then asks the index whether the key is still of this leaf: splits and merges change the index under the
//! locks of the leaves that they are of. Readers hold nothing: they note the node's header, read node, leaf and records, ask the index and look
//! at the header again; what they read meanwhile may be nonsense, errors included, and is then thrown away.

pub(crate) mod merge;
mod parts;
pub(crate) mod recover;
pub(crate) mod scan;
pub(crate) mod share;
pub(crate) mod sweep;
pub(crate) mod write;

use std::collections::BTreeMap;

use crate::error::Result;
use crate::index::Index;
use crate::kv::Visitor;
use crate::mutation;
use crate::pm::bytes::Bytes;
use crate::pm::layout::{LeafId, Time};
use crate::pm::leaf::{LEAF_BYTES, LeafImage, SPARSE, fingerprint};
use crate::pm::logs::LogicalClock;
use crate::pm::medium::Medium;
use crate::pm::nodes::{Change, Held, Node, Nodes};
use crate::pm::records::{Records, RowValue};
use crate::pm::space::{Room, Space};
use crate::rows;
use crate::stats::FLUSH_BINS;
use crate::sync::atomic::{AtomicU64, Ordering::Relaxed};
use crate::sync::{Arc, Backoff, Mutex};
use crate::types::{IoClass, PageId};

use scan::Range;
use sweep::Sweep;
use write::{IfFull, Plan};

/// What was done since the opening.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) hits: AtomicU64,
    pub(crate) misses: AtomicU64,
    /// Leaf flushes by their changes.
    pub(crate) flushes: [AtomicU64; FLUSH_BINS],
    pub(crate) splits: AtomicU64,
    pub(crate) merges: AtomicU64,
    /// Changes in buffers that are not in leaves.
    pub(crate) buffered: AtomicU64,
}

/// See the module's story.
pub(crate) struct Leaves {
    pub(crate) medium: Arc<Medium>,
    pub(crate) space: Arc<Space>,
    pub(crate) records: Records,
    pub(crate) index: Index,
    pub(crate) nodes: Nodes,
    pub(crate) clock: Arc<LogicalClock>,
    pub(crate) counters: Counters,
    /// Whether a log may still name what leaves and buffers name no longer.
    pub(crate) logged: bool,
    /// Whether timestamps say what of a log is in the leaves.
    pub(crate) stamped: bool,
    /// The sweep under way, and leaves that were left sparse since the last one began.
    pub(crate) sweep: Mutex<Option<Sweep>>,
    pub(crate) sparse: AtomicU64,
}

/// What is buffered above leaves and their nodes.
pub(crate) trait Above {
    /// Tells of each change to a key of `range`, newer ones of a key later, what the key's value
    /// is.
    fn overlay(
        &self,
        range: Range<'_>,
        visit: &mut dyn FnMut(&Bytes, Option<RowValue>),
    ) -> Result<()>;
}

/// Nothing is.
pub(crate) struct NothingAbove;

impl Above for NothingAbove {
    fn overlay(&self, _: Range<'_>, _: &mut dyn FnMut(&Bytes, Option<RowValue>)) -> Result<()> {
        Ok(())
    }
}

/// The times of a leaf write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamps {
    /// Of the leaf's previous flush: what its timestamp becomes.
    pub(crate) late: Time,
    /// Of this one: a new leaf's timestamp.
    pub(crate) new: Time,
}

impl Stamps {
    /// For a global buffer, whose leaves have no timestamps: theirs stay as they are.
    pub(crate) const NONE: Stamps = Stamps {
        late: Time(0),
        new: Time(0),
    };
}

/// What a leaf write came to.
#[derive(Debug, Default)]
pub(crate) struct Written {
    /// Keys from here on are another leaf's now.
    pub(crate) split_at: Option<Bytes>,
    /// After a split: entries that the leaf's buffer node begins with.
    pub(crate) copies: Vec<Change>,
    /// Slots of the leaf that are in use.
    pub(crate) used: usize,
    /// Changes that were made, and whether there were deletes among them.
    pub(crate) changes: usize,
    pub(crate) deletes: bool,
}

impl Written {
    /// Whether the leaf has lost keys and wants a merge.
    pub(crate) fn is_sparse(&self) -> bool {
        self.deletes && self.used < SPARSE
    }
}

impl Leaves {
    /// Locks the leaf of a key, and its node.
    pub(crate) fn lock(&self, key: &[u8]) -> (LeafId, Held<'_>) {
        let mut backoff = Backoff::new();
        loop {
            let located = self.index.locate(key);
            let leaf = LeafId(located.page.0);
            let held = self.nodes.node(leaf).lock();
            if self.index.is_current(key, &located) || mutation::on("pm-trust-index") {
                return (leaf, held);
            }
            drop(held);
            backoff.wait();
        }
    }

    /// Reads what belongs to one state of a leaf and its node. `locate` finds the leaf, and `is_current` says whether it would find it again.
    fn read<L, T>(
        &self,
        mut locate: impl FnMut() -> (LeafId, L),
        is_current: impl Fn(&L) -> bool,
        mut read: impl FnMut(LeafId, Node<'_>, u64, &L) -> Result<T>,
    ) -> Result<T> {
        let mut backoff = Backoff::new();
        loop {
            let (leaf, located) = locate();
            let node = self.nodes.node(leaf);
            let header = node.begin();
            let found = read(leaf, node, header, &located);
            if is_current(&located) && node.valid(header) || mutation::on("pm-read-unvalidated") {
                return found;
            }
            backoff.wait();
        }
    }

    /// Copies the value of `key` into `value`; `false` if there is none.
    pub(crate) fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let (found, hit) = self.read(
            || {
                let located = self.index.locate(key);
                (LeafId(located.page.0), located)
            },
            |located| self.index.is_current(key, located),
            |leaf, node, header, _| self.look(leaf, node, header, key),
        )?;
        let counter = if hit {
            &self.counters.hits
        } else {
            &self.counters.misses
        };
        counter.fetch_add(1, Relaxed);
        value.clear();
        if let Some(bytes) = &found {
            value.extend_from_slice(bytes);
        }
        Ok(found.is_some())
    }

    /// Looks for a key in the buffer node, from the left, and then in the leaf (§4.3); also says whether the node had it.
    fn look(
        &self,
        leaf: LeafId,
        node: Node<'_>,
        header: u64,
        key: &[u8],
    ) -> Result<(Option<Bytes>, bool)> {
        let fields = Node::fields(header);
        for at in 0..fields.filled().min(self.nodes.batch()) {
            let change = node.change(fields, at);
            if self.records.is_key(change.slot, key)? {
                let there = (!change.delete).then(|| self.records.value(change.slot));
                return Ok((there.transpose()?, true));
            }
        }
        // The header, the fingerprints and the first two slots are one line; of the others only those are read that may be it.
        let line = crate::device::LINE_SIZE;
        let mut image = LeafImage::empty();
        self.medium
            .load(leaf.offset(), &mut image.0[..line], IoClass::Page)?;
        let wanted = fingerprint(key);
        for at in image.used() {
            if image.fingerprint(at) != wanted {
                continue;
            }
            let bytes = LeafImage::slot_range(at);
            if bytes.end > line {
                let offset = leaf.offset() + bytes.start as u64;
                self.medium
                    .load(offset, &mut image.0[bytes], IoClass::Page)?;
            }
            let slot = image.slot(at);
            if self.records.is_key(slot, key)? {
                let there = (!slot.is_absent()).then(|| self.records.value(slot));
                return Ok((there.transpose()?, false));
            }
        }
        Ok((None, false))
    }

    /// All of a leaf.
    pub(crate) fn load(&self, leaf: LeafId) -> Result<LeafImage> {
        let mut bytes = [0; LEAF_BYTES];
        self.medium.load(leaf.offset(), &mut bytes, IoClass::Page)?;
        Ok(LeafImage(bytes))
    }

    /// What leaf and node hold together, and what is above them, of the keys of `range`: what is
    /// buffered is newer.
    fn rows(
        &self,
        above: &dyn Above,
        range: Range<'_>,
        (leaf, node, header): (LeafId, Node<'_>, u64),
    ) -> Result<BTreeMap<Bytes, RowValue>> {
        // What is above goes down to the leaf, so it is looked at first, lest it be missed on its way.
        let mut newest: BTreeMap<Bytes, Option<RowValue>> = BTreeMap::new();
        above.overlay(range, &mut |key, value| {
            newest.insert(key.clone(), value);
        })?;
        let value_of = |key: &Bytes, slot| self.records.row_value(slot, range.is_next(key));
        let mut rows = BTreeMap::new();
        let image = self.load(leaf)?;
        for slot in image.used().map(|at| image.slot(at)) {
            if !slot.is_absent() {
                let key = self.records.key(slot)?;
                let value = value_of(&key, slot)?;
                rows.insert(key, value);
            }
        }
        let fields = Node::fields(header);
        // The left-most of them last.
        for at in (0..fields.filled().min(self.nodes.batch())).rev() {
            let Change { slot, delete } = node.change(fields, at);
            let key = self.records.key(slot)?;
            if delete {
                rows.remove(&key);
            } else {
                let value = value_of(&key, slot)?;
                rows.insert(key, value);
            }
        }
        for (key, value) in newest {
            match value {
                Some(value) => drop(rows.insert(key, value)),
                None => drop(rows.remove(&key)),
            }
        }
        Ok(rows)
    }

    /// Visits records from `from` on, leaf by leaf.
    pub(crate) fn scan(
        &self,
        above: &dyn Above,
        from: &[u8],
        visit: &mut Visitor<'_>,
    ) -> Result<()> {
        rows::scan(from, visit, |at, copied| {
            let (rows, fence) = self.read(
                || {
                    let located = self.index.locate(at);
                    (LeafId(located.page.0), located)
                },
                |located| self.index.is_current(at, located),
                |leaf, node, header, located| {
                    let fence = self.index.fence_behind(at, located);
                    let range = Range::up(at, fence.as_deref());
                    let rows = self.rows(above, range, (leaf, node, header))?;
                    Ok((rows, fence))
                },
            )?;
            Ok(scan::push_from(&rows, at, copied).or(fence))
        })
    }

    /// Visits records below `before`, or all, downwards.
    pub(crate) fn scan_back(
        &self,
        above: &dyn Above,
        before: Option<&[u8]>,
        visit: &mut Visitor<'_>,
    ) -> Result<()> {
        rows::scan_back(before, visit, |before, copied| {
            let (rows, lower) = self.read(
                || {
                    let (lower, page) = self.index.before(before);
                    (LeafId(page.0), (lower, page))
                },
                |located| self.index.before(before) == *located,
                |leaf, node, header, (lower, _)| {
                    let range = Range::down(lower, before);
                    let rows = self.rows(above, range, (leaf, node, header))?;
                    Ok((rows, lower.clone()))
                },
            )?;
            Ok(scan::push_below(&rows, before, copied).unwrap_or(lower))
        })
    }

    /// Writes what is buffered of a leaf, and `extra`, to the leaf. What was buffered stays as a cache (§3.2). If it fails for lack of space, nothing has changed.
    pub(crate) fn flush(
        &self,
        held: &mut Held<'_>,
        leaf: LeafId,
        extra: Option<Change>,
    ) -> Result<Written> {
        let deletes = extra.is_some_and(|change| change.delete);
        // With nothing buffered the halves fit one leaf again.
        let room = Room::of(deletes && held.fields.unflushed() == 0);
        let plan = self.plan_flush(held, leaf, extra, room)?;
        self.carry_out_flush(held, leaf, plan)
    }

    /// Finds the room for that, of what is there for `room`.
    pub(crate) fn plan_flush(
        &self,
        held: &Held<'_>,
        leaf: LeafId,
        extra: Option<Change>,
        room: Room,
    ) -> Result<Plan<'_>> {
        let batch: Vec<Change> = held.unflushed().into_iter().chain(extra).collect();
        let plan = self.plan(leaf, &batch, IfFull::Split(room))?;
        Ok(plan.with_copies(self.nodes.batch()))
    }

    /// Flushes as planned; the node has been locked since.
    pub(crate) fn carry_out_flush(
        &self,
        held: &mut Held<'_>,
        leaf: LeafId,
        plan: Plan<'_>,
    ) -> Result<Written> {
        let now = self.clock.tick();
        let mut stamps = Stamps {
            late: held.flushed_at(),
            new: now,
        };
        if mutation::on("ccl-early-timestamp") {
            stamps.late = now;
        }
        let written = self.carry_out(leaf, plan, stamps)?;
        self.counters.flushes[written.changes.min(FLUSH_BINS - 1)].fetch_add(1, Relaxed);
        let buffered = held.fields.unflushed() as u64;
        self.counters.buffered.fetch_sub(buffered, Relaxed);
        held.set_flushed_at(now);
        held.fields.set_unflushed(0);
        self.keep_cached(held, &written)?;
        Ok(written)
    }

    /// What moved to another leaf is no longer this node's to keep; and the records of keys that are deleted are gone.
    /// Nothing is unflushed.
    pub(crate) fn keep_cached(&self, held: &mut Held<'_>, written: &Written) -> Result<()> {
        if !written.copies.is_empty() {
            held.cache(&written.copies);
            return Ok(());
        }
        let mut kept = 0;
        for at in 0..held.fields.filled() {
            let change = held.change(at);
            let moved = match &written.split_at {
                Some(fence) => self.records.key(change.slot)? >= *fence,
                None => false,
            };
            if moved || (change.delete && change.slot.indirect) {
                continue;
            }
            if kept < at {
                held.set(kept, change, 0);
            }
            kept += 1;
        }
        held.fields.set_filled(kept);
        Ok(())
    }

    /// No leaf and no buffer names these records any more.
    pub(crate) fn retire(&self, slot: crate::pm::leaf::Slot) -> Result<()> {
        if self.logged {
            self.records.retire(slot, self.clock.tick())
        } else {
            self.records.free(slot)
        }
    }

    /// The leaf's name in the index.
    pub(crate) fn page(leaf: LeafId) -> PageId {
        PageId(leaf.0)
    }
}
