//! Leaves in persistent memory under the shared index: the part common to all PM trees, and all of
//! `pmtree`.
//!
//! ```text
//! index (DRAM) ─▶ leaf number ─▶ buffer node (DRAM: lock, slots) and leaf (PM)
//! ```
//!
//! A writer locks the leaf's node and then asks the index whether the key still belongs to this
//! leaf, because splits and merges change the index under the locks of their leaves. Readers take
//! no lock. They note the node's header, read node, leaf and records, ask the index, and compare
//! the header again. What they read in the meantime may be invalid or cause errors, and is then
//! discarded.

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
use crate::pm::events::Event;
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

/// Counters since the store was opened.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) hits: AtomicU64,
    pub(crate) misses: AtomicU64,
    /// Leaf flushes by number of changes.
    pub(crate) flushes: [AtomicU64; FLUSH_BINS],
    pub(crate) splits: AtomicU64,
    pub(crate) merges: AtomicU64,
    /// Buffered changes that are not in leaves.
    pub(crate) buffered: AtomicU64,
}

/// The leaves, their buffer nodes and the index, described in the module's introduction.
pub(crate) struct Leaves {
    pub(crate) medium: Arc<Medium>,
    pub(crate) space: Arc<Space>,
    pub(crate) records: Records,
    pub(crate) index: Index,
    pub(crate) nodes: Nodes,
    pub(crate) clock: Arc<LogicalClock>,
    pub(crate) counters: Counters,
    /// Whether the log may still refer to records that leaves and buffers no longer refer to.
    pub(crate) logged: bool,
    /// Whether timestamps say which log entries are in the leaves.
    pub(crate) stamped: bool,
    /// The sweep in progress, and the number of leaves left sparse since the last one began.
    pub(crate) sweep: Mutex<Option<Sweep>>,
    pub(crate) sparse: AtomicU64,
}

/// Changes that are buffered above the leaves and their nodes.
pub(crate) trait Above {
    /// Calls `visit` with each buffered change to a key of `range`: the value, or `None` if the key
    /// is deleted. Older changes of a key come first.
    fn overlay(
        &self,
        range: Range<'_>,
        visit: &mut dyn FnMut(&Bytes, Option<RowValue>),
    ) -> Result<()>;
}

/// No changes are buffered above the nodes.
pub(crate) struct NothingAbove;

impl Above for NothingAbove {
    fn overlay(&self, _: Range<'_>, _: &mut dyn FnMut(&Bytes, Option<RowValue>)) -> Result<()> {
        Ok(())
    }
}

/// The timestamps of a leaf write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamps {
    /// The time of the leaf's previous flush, which becomes its timestamp.
    pub(crate) late: Time,
    /// The time of this flush, which becomes the timestamp of a new leaf.
    pub(crate) new: Time,
}

impl Stamps {
    /// For a global buffer, whose leaves have no timestamps: existing timestamps stay as they are.
    pub(crate) const NONE: Stamps = Stamps {
        late: Time(0),
        new: Time(0),
    };
}

/// The result of a leaf write.
#[derive(Debug, Default)]
pub(crate) struct Written {
    /// Keys at or after this one now belong to another leaf.
    pub(crate) split_at: Option<Bytes>,
    /// After a split: the entries with which the leaf's buffer node begins.
    pub(crate) copies: Vec<Change>,
    /// Slots of the leaf that are in use.
    pub(crate) used: usize,
    /// The number of changes made, and whether there were deletes among them.
    pub(crate) changes: usize,
    pub(crate) deletes: bool,
}

impl Written {
    /// Returns whether the leaf has lost keys and should be merged.
    pub(crate) fn is_sparse(&self) -> bool {
        self.deletes && self.used < SPARSE
    }
}

impl Leaves {
    /// Locks the leaf of a key together with its node.
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

    /// Reads one consistent state of a leaf and its node. `locate` finds the leaf, and `is_current`
    /// returns whether it would find the same leaf again.
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

    /// Copies the value of `key` into `value`. Returns `false` if there is none.
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

    /// Looks for a key in the buffer node, from the left, and then in the leaf (§4.3). Also returns
    /// whether the node had it.
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
        // The header, the fingerprints and the first two slots are in one line. Of the other slots,
        // only possible matches are read.
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

    /// Loads a whole leaf.
    pub(crate) fn load(&self, leaf: LeafId) -> Result<LeafImage> {
        let mut bytes = [0; LEAF_BYTES];
        self.medium.load(leaf.offset(), &mut bytes, IoClass::Page)?;
        Ok(LeafImage(bytes))
    }

    /// Returns the rows of `range` in the leaf, its node and above. Buffered changes override the
    /// leaf.
    fn rows(
        &self,
        above: &dyn Above,
        range: Range<'_>,
        (leaf, node, header): (LeafId, Node<'_>, u64),
    ) -> Result<BTreeMap<Bytes, RowValue>> {
        // Changes move from above down to the leaf, so read them there first, or they could be
        // missed on their way.
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
        // From the right, so that the left-most entry overrides the others.
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

    /// Visits the records at or after `from`, leaf by leaf.
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

    /// Visits the records below `before`, or all records, in descending order.
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

    /// Writes a leaf's buffered changes, and `extra`, to the leaf. The buffered entries stay as a
    /// cache (§3.2). If this fails for lack of space, nothing has changed.
    pub(crate) fn flush(
        &self,
        held: &mut Held<'_>,
        leaf: LeafId,
        extra: Option<Change>,
    ) -> Result<Written> {
        let deletes = extra.is_some_and(|change| change.delete);
        // If nothing is buffered, the halves fit in one leaf again.
        let room = Room::of(deletes && held.fields.unflushed() == 0);
        let plan = self.plan_flush(held, leaf, extra, room)?;
        self.carry_out_flush(held, leaf, plan)
    }

    /// Finds the space for a flush, as far as `room` may use it.
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

    /// Carries out a planned flush. The node must have stayed locked since.
    pub(crate) fn carry_out_flush(
        &self,
        held: &mut Held<'_>,
        leaf: LeafId,
        plan: Plan<'_>,
    ) -> Result<Written> {
        self.medium.tell(|| Event::Flushes {
            leaf: leaf.0,
            trigger: plan.changes() > held.fields.unflushed(),
        });
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
        self.medium.tell(|| Event::Flushed {
            leaf: leaf.0,
            now: now.0,
            node: held.image(),
        });
        Ok(written)
    }

    /// Removes from the node entries that moved to another leaf, and entries of deleted keys, whose
    /// records are gone. Nothing is unflushed afterwards.
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

    /// Frees records to which no leaf and no buffer refers any more, once the log does not either.
    pub(crate) fn retire(&self, slot: crate::pm::leaf::Slot) -> Result<()> {
        if self.logged {
            self.records.retire(slot, self.clock.tick())
        } else {
            self.records.free(slot)
        }
    }

    /// Returns the leaf's name in the index.
    pub(crate) fn page(leaf: LeafId) -> PageId {
        PageId(leaf.0)
    }
}
