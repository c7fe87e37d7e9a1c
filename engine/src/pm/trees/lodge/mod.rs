//! LodgeTree: writes collect in the free slots of last-level inner nodes, and are in the log until
//! they are flushed together to a few leaves (LodgeTree §III).
//!
//! ```text
//! DRAM  index: low -> node | nodes: (low, leaf) ... (key, value) ... free
//!                                   the buffer is what the index part leaves free
//! PM    leaves, chained by next0 or next1 | logs, a partition per thread
//!
//! write ─▶ room in the log ─▶ lock the node ─▶ full? flush t_node leaves, or split one
//!       ─▶ number, entry, fence ─▶ buffer ─▶ unlock
//! ```
//!
//! This implements the protocol of `specs/surrogate_buffer`, which repairs the paper's protocol and
//! fills in what it leaves open. The rules are described where they are implemented: entries and
//! their numbers in [`log`], the flush in [`flush`], the split of leaves in [`split`], of nodes in
//! [`hotness`], recovery in [`recover`], the words of a leaf in [`leaf`].
//!
//! Where the text contradicts itself or leaves something open:
//! - **Sizes** (CLAIMS LT-01): a leaf has its 512 bytes. A node of 29 slots with `leaf_count` and
//!   `buf_ver` does not fit in 512 bytes; the number of slots is kept, see [`node`].
//! - **t_split** (LT-02) is 26 as in §IV-A, although Figure 6 has 27; both can be set as an option.
//! - **Equation (1)** (LT-10), t and M: see [`hotness`].
//! - **Merging** of leaves and nodes: neither the paper nor the spec has it, so leaves emptied by
//!   deletes would stay forever. [`merge`] describes what is done instead.
//! - **Log room** (§III-D): one cold pair keeps L entries. The paper lets the log grow. Here, the
//!   pairs that pin old logs are flushed when the log takes more than a share of the leaves' bytes,
//!   and when there is no room, see [`clean`].
//! - **Records** to which log entries refer (keys and values not of eight bytes, which the paper
//!   does not have) wait for the log floor of [`crate::pm::layout`]: recovery ignores entries with
//!   numbers below it. It is raised once all changes of these entries are in leaves.
//!
//! A write to a buffered key takes over its pair's slot, so it need not wait for the flush of a
//! full buffer. The spec's AppendEntry does wait, asking for room whatever the key; no invariant
//! but SpaceInv is about room, and the number of pairs stays the same.
//!
//! The last level's nodes are this module's own, each with a reader-writer lock that also covers
//! their leaves (§III-A). Above them is the engine's index, with nodes of 29 entries.

mod clean;
mod flush;
mod hotness;
mod leaf;
mod log;
mod merge;
mod node;
mod phases;
mod recover;
mod scan;
mod share;
mod split;
mod told;

use crate::error::{Error, Result};
use crate::index::IndexOf;
use crate::kv::Visitor;
use crate::mutation;
use crate::options::{LodgeOptions, PmOptions};
use crate::pm::bytes::Bytes;
use crate::pm::entries::ENTRY_BYTES;
use crate::pm::layout::Geometry;
use crate::pm::layout::LeafId;
use crate::pm::leaf::Slot;
use crate::pm::logs::LogicalClock;
use crate::pm::medium::Medium;
use crate::pm::nodes::Change;
use crate::pm::records::Records;
use crate::pm::space::{Room, Space};
use crate::pm::tree::{Base, Opened, PmTree, Structure};
use crate::stats::FLUSH_BINS;
use crate::stats::{LodgeStats, PmStats};
use crate::sync::atomic::{AtomicU64, Ordering::Relaxed};
use crate::sync::{Arc, Backoff, Mutex, RwLockReadGuard, RwLockWriteGuard};
use crate::types::IoClass;
use crate::types::Progress;

use leaf::{BYTES, HEADER_BYTES, Image, members, slot_at};
use log::{Reserved, VersionLogs};
use node::{Body, Nodes, Pair, Sought};

/// Fan-out of the upper levels (§IV-A).
const FANOUT: usize = 29;

/// Counters since the store was opened.
#[derive(Default)]
pub(crate) struct Counters {
    hits: AtomicU64,
    misses: AtomicU64,
    overwrites: AtomicU64,
    /// Writes that found their buffer full.
    triggers: AtomicU64,
    flushes: AtomicU64,
    /// Leaves written by flushes, by number of changes.
    visits: [AtomicU64; FLUSH_BINS],
    flushed: AtomicU64,
    most_leaves_flushed: AtomicU64,
    clears: AtomicU64,
    splits: AtomicU64,
    merges: AtomicU64,
    node_splits: [AtomicU64; FLUSH_BINS],
    buffered: AtomicU64,
    cleanings: AtomicU64,
    cleaning_flushes: AtomicU64,
}

/// The LodgeTree, described in the module's introduction.
pub(crate) struct Lodge {
    pub(crate) medium: Arc<Medium>,
    pub(crate) space: Arc<Space>,
    pub(crate) records: Records,
    pub(crate) clock: Arc<LogicalClock>,
    options: LodgeOptions,
    index: IndexOf<FANOUT>,
    nodes: Nodes,
    logs: VersionLogs,
    /// The log floor: recovery ignores entries with smaller numbers. It never falls, because the
    /// records of those entries may be gone.
    floor: AtomicU64,
    cleaning: Mutex<Option<phases::Run>>,
    /// No cleaning is due before the clock reaches this.
    stuck_until: AtomicU64,
    /// 1 if the last cleaning did not shorten the log.
    in_vain: AtomicU64,
    /// The sweep in progress, and the number of leaves found sparse since the last one began.
    sweep: Mutex<Option<phases::Sweep>>,
    sparse: AtomicU64,
    counters: Counters,
}

impl Lodge {
    /// Locks the node of a key for reading.
    fn read(&self, key: &[u8]) -> RwLockReadGuard<'_, Body> {
        let mut backoff = Backoff::new();
        loop {
            let located = self.index.locate(key);
            let body = self.nodes.node(located.page.0).read();
            // Splits change the index under the locks of the affected nodes.
            if self.index.is_current(key, &located) {
                return body;
            }
            drop(body);
            backoff.wait();
        }
    }

    /// Locks the node of a key for writing.
    fn write(&self, key: &[u8]) -> RwLockWriteGuard<'_, Body> {
        let mut backoff = Backoff::new();
        loop {
            let located = self.index.locate(key);
            let body = self.nodes.node(located.page.0).write();
            if self.index.is_current(key, &located) || mutation::on("lodge-trust-index") {
                return body;
            }
            drop(body);
            backoff.wait();
        }
    }

    /// Makes a change, which is durable when this returns. If it fails for lack of space, nothing
    /// has changed.
    pub(crate) fn change(&self, key: &[u8], change: Change) -> Result<()> {
        let mut done = self.try_change(key, change);
        if matches!(done, Err(Error::PmFull { .. })) {
            self.make_room()?;
            done = self.try_change(key, change);
        }
        match done {
            Err(Error::PmFull { .. }) if change.delete => self.delete_from_leaf(key, change),
            done => done,
        }
    }

    fn try_change(&self, key: &[u8], change: Change) -> Result<()> {
        let Some(reserved) = self.logs.reserve(Room::of(change.delete))? else {
            return Err(self.space.full("the log"));
        };
        let made = self.change_with(key, change, &reserved);
        if matches!(made, Err(Error::PmFull { .. })) {
            self.logs.release(reserved.log);
        }
        made
    }

    fn change_with(&self, key: &[u8], change: Change, reserved: &Reserved) -> Result<()> {
        let sought = Sought::from(key);
        let mut early = None;
        if mutation::on("lodge-logs-before-lock") {
            early = Some(self.logs.write(reserved, change)?);
            crate::sync::yield_now();
        }
        let mut triggered = false;
        let (mut body, there) = loop {
            let mut body = self.write(key);
            let there = body.find(&self.records, sought)?;
            if there.is_some() || !body.is_full() {
                break (body, there);
            }
            if !triggered {
                self.counters.triggers.fetch_add(1, Relaxed);
                triggered = true;
            }
            if body.buffered() > 0 {
                self.flush(&mut body, |_| true)?;
            }
            if body.must_split() {
                self.split_node(body);
            }
        };
        let number = match early {
            Some(number) => number,
            None => self.logs.write(reserved, change)?,
        };
        let pair = Pair {
            change,
            number,
            log: reserved.log,
        };
        let Some(at) = there else {
            let leaf = body.leaf_of(sought);
            body.push(pair, leaf);
            self.tell_buffered(&body);
            self.counters.buffered.fetch_add(1, Relaxed);
            return Ok(());
        };
        let old = body.pair(at);
        body.replace(at, pair);
        self.tell_buffered(&body);
        drop(body);
        self.counters.overwrites.fetch_add(1, Relaxed);
        self.logs.release(old.log);
        self.retire(old.change.slot)
    }

    fn delete_from_leaf(&self, key: &[u8], change: Change) -> Result<()> {
        self.delete_in_place(key)?;
        self.retire(change.slot)
    }

    /// Deletes a key when there is no room to log the delete, or to flush what is in its way. The
    /// key's bit in the leaf can be cleared all the same: the key is not buffered, so its log
    /// entries are at or below the leaf's stamp, and recovery ignores them.
    pub(crate) fn delete_in_place(&self, key: &[u8]) -> Result<()> {
        let sought = Sought::from(key);
        let mut body = self.write(key);
        let at = body.leaf_of(sought);
        if body.find(&self.records, sought)?.is_some() {
            self.flush_leaf(&mut body, at)?;
        }
        let leaf = body.leaf(at);
        let image = self.load(leaf)?;
        let header = image.header();
        for slot in members(header.bits()) {
            let there = image.slot(slot);
            if self.records.is_key(there, key)? {
                let header = header.with_bits(header.bits() & !(1 << slot));
                self.store_header(leaf.offset(), header)?;
                body.set_count(at, header.count());
                self.note_sparse(header.count());
                self.retire(there)?;
                break;
            }
        }
        Ok(())
    }

    /// Retires records to which no leaf and no buffer refers any more. The log may still do so.
    pub(crate) fn retire(&self, slot: Slot) -> Result<()> {
        if !slot.indirect {
            return Ok(());
        }
        self.records.retire(slot, self.clock.last())
    }

    /// Copies the value of `key` into `value`. Returns `false` if there is none. The buffer
    /// overrides the leaf (§IV-B).
    pub(crate) fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let sought = Sought::from(key);
        let body = self.read(key);
        let found: Option<Bytes> = match body.find(&self.records, sought)? {
            Some(at) => {
                self.counters.hits.fetch_add(1, Relaxed);
                let Change { slot, delete } = body.pair(at).change;
                (!delete).then(|| self.records.value(slot)).transpose()?
            }
            None => {
                self.counters.misses.fetch_add(1, Relaxed);
                self.find_in_leaf(body.leaf(body.leaf_of(sought)), key)?
            }
        };
        drop(body);
        if let Some(found) = &found {
            value.extend_from_slice(found);
        }
        Ok(found.is_some())
    }

    /// Searches the slots of a leaf from the left, half a leaf at a time, which is an XPLine. The
    /// paper has no fingerprints.
    fn find_in_leaf(&self, leaf: LeafId, key: &[u8]) -> Result<Option<Bytes>> {
        let mut image = Image::empty();
        let mut loaded = 0;
        let mut load = |image: &mut Image, end: usize| -> Result<()> {
            while loaded < end {
                let half = loaded..loaded + BYTES / 2;
                let offset = leaf.offset() + loaded as u64;
                loaded = half.end;
                self.medium
                    .load(offset, &mut image.0[half], IoClass::Page)?;
            }
            Ok(())
        };
        load(&mut image, HEADER_BYTES)?;
        for at in members(image.header().bits()) {
            load(&mut image, slot_at(at).end)?;
            let slot = image.slot(at);
            if self.records.is_key(slot, key)? {
                return self.records.value(slot).map(Some);
            }
        }
        Ok(None)
    }

    /// Returns the number of buffered pairs.
    pub(crate) fn buffered(&self) -> u64 {
        self.counters.buffered.load(Relaxed)
    }

    pub(crate) fn stats(&self) -> PmStats {
        let load = |counter: &AtomicU64| counter.load(Relaxed);
        let counters = &self.counters;
        let bins = |from: &[AtomicU64]| {
            let mut bins = [0; FLUSH_BINS];
            for (bin, counter) in bins.iter_mut().zip(from) {
                *bin = load(counter);
            }
            bins
        };
        let census = self.nodes.census();
        let (room, most) = self.logs.room();
        let (appended, logs_opened) = self.logs.counts();
        let buffered = load(&counters.buffered);
        PmStats {
            buffer_hits: load(&counters.hits),
            buffer_misses: load(&counters.misses),
            buffer_overwrites: load(&counters.overwrites),
            trigger_writes: load(&counters.triggers),
            log_appends: appended,
            flushes: bins(&counters.visits),
            cleanings: load(&counters.cleanings),
            cleaning_copies: 0,
            cleaning_flushes: load(&counters.cleaning_flushes),
            buffered,
            leaf_bytes: self.space.leaves() * BYTES as u64,
            named_leaves: census.leaves,
            log_bytes: buffered * ENTRY_BYTES,
            log_peak_bytes: most * ENTRY_BYTES,
            log_chunk_bytes: self.space.live_log_bytes(),
            record_bytes: self.space.record_bytes(),
            retired_record_bytes: self.space.retired_bytes().0,
            node_bytes: census.bytes(),
            flush_time_bytes: 0,
            lodge: Some(LodgeStats {
                flushes: load(&counters.flushes),
                flushed: load(&counters.flushed),
                most_leaves_flushed: load(&counters.most_leaves_flushed),
                clears: load(&counters.clears),
                node_splits: bins(&counters.node_splits),
                logs_opened,
                log_room_entries: room,
                nodes: census.nodes,
                slots: census.slots,
                leaves: census.leaves,
                buffered: census.buffered,
            }),
        }
    }
}

/// Recovers the tree.
pub(super) fn open(
    medium: &Arc<Medium>,
    geometry: Geometry,
    (lodge, options): (LodgeOptions, &PmOptions),
) -> Result<Opened> {
    let (tree, report) = recover::recover(medium, geometry, lodge, options)?;
    Ok((Box::new(tree), report))
}

impl PmTree for Lodge {
    fn base(&self) -> Base<'_> {
        Base {
            medium: &self.medium,
            space: &self.space,
            records: &self.records,
            clock: &self.clock,
        }
    }

    fn structure(&self) -> Structure {
        Structure {
            splits: self.counters.splits.load(Relaxed),
            merges: self.counters.merges.load(Relaxed),
            index_bytes: self.index.bytes() as u64,
        }
    }

    fn stats(&self) -> PmStats {
        Lodge::stats(self)
    }

    fn change(&self, key: &[u8], change: Change) -> Result<()> {
        Lodge::change(self, key, change)
    }

    fn delete_in_place(&self, key: &[u8]) -> Result<bool> {
        Lodge::delete_in_place(self, key)?;
        Ok(true)
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        Lodge::get(self, key, value)
    }

    fn scan(&self, from: &[u8], visit: &mut Visitor<'_>) -> Result<()> {
        Lodge::scan(self, from, visit)
    }

    fn scan_back(&self, before: Option<&[u8]>, visit: &mut Visitor<'_>) -> Result<()> {
        Lodge::scan_back(self, before, visit)
    }

    fn cleaning_due(&self) -> bool {
        Lodge::cleaning_due(self)
    }

    fn clean(&self) -> Result<Progress> {
        Lodge::clean(self)
    }

    fn merging_due(&self) -> bool {
        Lodge::merging_due(self)
    }

    fn merge_step(&self) -> Result<Progress> {
        Lodge::merge_step(self)
    }

    fn merge_all(&self) -> Result<()> {
        Lodge::merge_all(self)
    }

    fn buffered(&self) -> u64 {
        Lodge::buffered(self)
    }

    fn clean_all(&self) -> Result<()> {
        self.make_room()
    }

    fn flush_all(&self) -> Result<()> {
        Lodge::flush_all(self)
    }
}
