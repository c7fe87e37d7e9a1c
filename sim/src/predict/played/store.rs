//! The store of a played tree of pages: frames, log, page store and background work. What an
//! operation does to them is decided by the tree above (`btree`, `bf`).

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use treering_engine::node::adapt::Use;
use treering_engine::{BLOCK_SIZE, Durability, Options, TreeKind, is_long, node, overflow_blocks};
use treering_traces::OpKind;

use super::blocks::{Blocks, Bytes};
use super::clients::Clients;
use super::deltas::{Deltas, Written};
use super::fill::Fill;
use super::frames::{FrameCounts, Frames, Picked};
use super::homes::{Homes, PageWrite};
use super::later::{Gone, Retired};
use super::leaves::Leaves;
use super::redo::{Redo, RedoCounts};
use super::rounds::Rounds;
use super::thinned::is_sampled;
use super::visits::Visits;
use crate::predict::leaf::LeafLevel;
use crate::predict::log::{page_name_bytes, record_bytes, varint_len};
use crate::predict::workload::{Added, Rest, Step, Totals, Workload};
use treering_engine::POINTER_BYTES;

/// Bytes of a snapshot entry besides the fence, and of the header of a chunk of entries.
const SNAPSHOT_ENTRY_BYTES: f64 = 18.0;
const SNAPSHOT_HEADER_BYTES: f64 = 32.0;

/// Counts of the measured part.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Counts {
    pub(super) ops: u64,
    /// Accesses to pages, in the sample or not.
    pub(super) accesses: u64,
    pub(super) frames: FrameCounts,
    pub(super) redo: RedoCounts,
    pub(super) bytes: Bytes,
    pub(super) checkpoints: u64,
    /// Page writes, and those that wrote the whole page.
    pub(super) writes: u64,
    pub(super) whole: u64,
    /// Bytes of log blocks of pages after compression.
    pub(super) delta_stored: f64,
    /// Bytes of overflow blocks.
    pub(super) overflow: f64,
}

/// The store.
pub(super) struct PageTree<'a, 'f> {
    pub(super) workload: &'a Workload,
    pub(super) level: &'a LeafLevel,
    pub(super) options: &'a Options,
    pub(super) leaves: Leaves<'a>,
    /// Of a tree with mini-pages or deletes.
    pub(super) fill: Option<Fill<'a>>,
    /// Sparse pages that may be merged.
    pub(super) notes: BTreeSet<(u64, u32)>,
    visits: Visits,
    pub(super) frames: Frames,
    pub(super) redo: Redo,
    pub(super) homes: Homes,
    pub(super) deltas: Option<Deltas<'a>>,
    blocks: Blocks<'f>,
    clients: Clients,
    /// Keys that have a record now.
    pub(super) live: Vec<bool>,
    /// Places of long values, by key.
    values: FxHashMap<u32, Vec<u64>>,
    /// Places of values that a page still names, although a record above it does not any more.
    replaced: FxHashMap<u32, Vec<u64>>,
    /// What nothing refers to any more.
    pub(super) retired: Retired,
    /// Mean bytes of a fence.
    pub(super) fence_bytes: f64,
    /// Uses of leaves so far, and whether leaves adapt to them.
    uses: u64,
    adapts: bool,
    /// Operations that one of the sample stands for.
    weight: f64,
    /// Of so many pages one is played.
    sample: u64,
    /// Mean bytes of the log record of a put or delete.
    put_bytes: f64,
    /// Position and end of the log at which the last checkpoint began.
    checkpoint_from: u64,
    rounds: Rounds,
    begun: u64,
    flushed_at: f64,
    interval: f64,
    snapshot_entries: f64,
    picked: Vec<Picked>,
    batch: Vec<PageWrite>,
    counts: Counts,
}

/// The parts of a store to be played.
pub(super) struct Parts<'a, 'f> {
    pub(super) frames: Frames,
    pub(super) redo: Redo,
    pub(super) homes: Homes,
    pub(super) deltas: Option<Deltas<'a>>,
    pub(super) blocks: Blocks<'f>,
    pub(super) clients: Clients,
    /// Of so many pages one is played, a power of two.
    pub(super) sample: u64,
}

impl<'a, 'f> PageTree<'a, 'f> {
    pub(super) fn new(
        workload: &'a Workload,
        level: &'a LeafLevel,
        options: &'a Options,
        parts: Parts<'a, 'f>,
    ) -> PageTree<'a, 'f> {
        let keys = workload.keys.len();
        let fences: f64 = level.leaves.iter().map(|l| f64::from(l.fence_len)).sum();
        let fence_bytes = fences / level.leaves.len().max(1) as f64;
        let entry = SNAPSHOT_ENTRY_BYTES + fence_bytes;
        let chunk = options.page_size as f64 - SNAPSHOT_HEADER_BYTES;
        let Parts {
            frames,
            redo,
            homes,
            deltas,
            blocks,
            clients,
            sample,
        } = parts;
        let deletes = |totals: &Totals| totals.of(OpKind::Delete) > 0;
        let shrinks = deletes(&workload.warmup) || deletes(&workload.measured);
        let fill = (shrinks || matches!(options.tree, TreeKind::Bf(_))).then(|| {
            let pages = level.starts.len().max(1);
            let layout = options.page_layout();
            Fill::new((workload, level), options.page_size, (layout, pages))
        });
        let mut tree = PageTree {
            fill,
            notes: BTreeSet::new(),
            fence_bytes,
            workload,
            level,
            options,
            leaves: Leaves::new(level, workload.tick),
            visits: Visits::new(level.starts.len().max(1)),
            checkpoint_from: redo.position(),
            rounds: Rounds::new(redo.position(), options.checkpoint_log_bytes),
            frames,
            redo,
            homes,
            deltas,
            blocks,
            clients,
            live: vec![false; keys],
            values: FxHashMap::default(),
            replaced: FxHashMap::default(),
            retired: Retired::default(),
            weight: workload.sample_weight(),
            sample,
            put_bytes: mean_put_bytes(workload, options, level),
            begun: 0,
            uses: 0,
            adapts: options.leaf_layouts().is_adaptive(),
            flushed_at: 0.0,
            interval: match options.durability {
                Durability::Grouped(interval) => interval.0 as f64,
                Durability::Deferred | Durability::PerCommit => f64::INFINITY,
            },
            snapshot_entries: (chunk / entry).floor().max(1.0),
            picked: Vec::new(),
            batch: Vec::new(),
            counts: Counts::default(),
        };
        if tree.is_sampled(0) {
            tree.homes.create(0);
            tree.frames.create(0, tree.redo.end());
        }
        tree
    }

    /// Whether a page is one of those that are played.
    #[inline]
    pub(super) fn is_sampled(&self, page: u32) -> bool {
        is_sampled(page, self.sample)
    }

    /// Forgets what the warm-up counted.
    pub(super) fn begin_measuring(&mut self) {
        (self.rounds).begin_measuring(self.redo.position(), self.checkpoint_from);
        self.counts = Counts::default();
        self.visits.clear();
        self.frames.counts = FrameCounts::default();
        self.redo.counts = RedoCounts::default();
        self.blocks.bytes = Bytes::default();
        self.blocks.flash.begin_measured();
    }

    /// The counts of the measured part.
    pub(super) fn counts(&self) -> Counts {
        Counts {
            frames: self.frames.counts,
            redo: self.redo.counts,
            bytes: self.blocks.bytes,
            ..self.counts
        }
    }

    /// Mean number of segments in a page's log block.
    pub(super) fn held_segments(&self) -> f64 {
        self.deltas.as_ref().map_or(0.0, Deltas::held)
    }

    /// The rounds of checkpoints until now.
    pub(super) fn rounds(&self) -> Rounds {
        (self.rounds).until(self.redo.position(), self.checkpoint_from)
    }

    /// Turns of the clock hand in the measured part.
    pub(super) fn turns(&self) -> f64 {
        self.frames.counts.passed as f64 / self.frames.len() as f64
    }

    /// Begins an operation: a client takes it, perhaps after a log flush. Returns the misses so far.
    pub(super) fn begin(&mut self, kind: OpKind) -> u64 {
        while !self.clients.begin() {
            self.flush();
            self.clients.flushed();
        }
        self.counts.ops += 1;
        if kind != OpKind::Scan {
            self.uses += 1;
        }
        self.frames.counts.misses
    }

    /// Ends an operation: its client has waited for what it read.
    pub(super) fn end(&mut self, misses_before: u64, wrote: bool) {
        let misses = self.frames.counts.misses - misses_before;
        // The pages outside the sample miss as often as those in it.
        self.clients.end(misses * self.sample, wrote);
    }

    /// Whether a key has a record now.
    pub(super) fn is_live(&self, key: u32) -> bool {
        self.live[key as usize]
    }

    /// End of the log.
    pub(super) fn log_end(&self) -> u64 {
        self.redo.end()
    }

    /// An access to a page; makes room first if a frame is needed and none is free.
    pub(super) fn visit(&mut self, page: u32, changed: Option<u64>) {
        while self.frames.lacks_room_for(page) {
            self.write_back();
        }
        self.visits.add(page);
        let hit = self.frames.visit(page, changed);
        if let Some(deltas) = self.deltas.as_mut().filter(|_| !hit) {
            deltas.load(page);
        }
    }

    /// Notes an access to a page, in the sample or not.
    #[inline]
    pub(super) fn note_access(&mut self) {
        self.counts.accesses += 1;
    }

    /// How often each page was accessed.
    pub(super) fn into_visits(self) -> Visits {
        self.visits
    }

    /// Logs a put, and writes its value if that is long. If the value before is `in_leaf` that will
    /// be changed later, its blocks stay until then.
    pub(super) fn log_put(&mut self, step: Step, page: u32, in_leaf: bool) {
        let key_len = self.workload.keys.key_len(step.key);
        let mut value = step.len as usize;
        let limits = node::limits(self.options.page_size);
        let long = is_long(&limits, key_len, value);
        if long || !self.values.is_empty() {
            self.replace_value(step.key, long.then(|| overflow_blocks(value)), in_leaf);
        }
        if long {
            value = POINTER_BYTES;
        }
        let fields = varint_len(key_len as u64) + (key_len + value) as u64;
        self.log(record_bytes(fields) + varint_len(self.homes.name(page)));
    }

    /// A put into a page that is not played: only the log sees it.
    pub(super) fn put_elsewhere(&mut self, step: Step, page: u32) {
        self.redo.append(self.weight * self.put_bytes);
        self.note_value(step.key, Some(self.leaf_bytes(step)));
        self.note_put(step.key, page);
    }

    /// A key gets a value of so many bytes as leaves store it, or none. Whether it has a record is
    /// noted after this.
    #[inline]
    pub(super) fn note_value(&mut self, key: u32, value: Option<usize>) {
        if let Some(fill) = &mut self.fill {
            let page = self.leaves.page(key);
            fill.note(page, (key, self.live[key as usize]), value);
        }
    }

    /// Notes a put in a page that has the record from now on.
    pub(super) fn note_put(&mut self, key: u32, page: u32) {
        let new = !std::mem::replace(&mut self.live[key as usize], true);
        if new {
            self.leaves.add(page);
        }
    }

    /// Bytes of a put's value as a leaf stores it.
    pub(super) fn leaf_bytes(&self, step: Step) -> usize {
        let key_len = self.workload.keys.key_len(step.key);
        let limits = node::limits(self.options.page_size);
        match is_long(&limits, key_len, step.len as usize) {
            true => POINTER_BYTES,
            false => step.len as usize,
        }
    }

    /// A put into a page that is changed at once.
    pub(super) fn put_in_page(&mut self, step: Step, page: u32) {
        self.visit(page, Some(self.redo.end()));
        let value = self.leaf_bytes(step);
        if let Some(deltas) = &mut self.deltas {
            deltas.put(page, step.key, value);
        }
        self.note_value(step.key, Some(value));
        self.note_put(step.key, page);
    }

    /// A record that was written above the page, or deleted there, gets into it.
    pub(super) fn settle(&mut self, page: u32, key: u32, value: usize) {
        let Some(deltas) = &mut self.deltas else {
            return;
        };
        match self.live[key as usize] {
            true => deltas.put(page, key, value),
            false => deltas.delete(page, key),
        }
    }

    /// Writes the overflow blocks of a long value, and frees those of the value before.
    fn replace_value(&mut self, key: u32, blocks: Option<u64>, in_leaf: bool) {
        let old = self.values.remove(&key);
        if let Some(count) = blocks {
            self.counts.overflow += (count * BLOCK_SIZE as u64) as f64;
            // Places that have become free are used again first.
            self.free_retired();
            if !self.homes.has_room_for(count) {
                self.flush();
                self.free_retired();
            }
            let places = self.homes.write_value(count, &mut self.blocks);
            self.values.insert(key, places);
        }
        let old = old.unwrap_or_default();
        if in_leaf && !old.is_empty() {
            let page = self.leaves.page(key);
            self.replaced.entry(page).or_default().extend(old);
            return;
        }
        // The record that replaces it is logged next.
        let end = self.redo.end() + 1;
        for place in old {
            self.retired.push(end, Gone::Place(place));
        }
    }

    /// A page no longer names the values that were replaced in records above it, the newest of
    /// which the log has up to `end`.
    pub(super) fn free_replaced(&mut self, page: u32, end: u64) {
        if self.replaced.is_empty() {
            return;
        }
        for place in self.replaced.remove(&page).unwrap_or_default() {
            self.retired.push(end, Gone::Place(place));
        }
    }

    /// Frees what nothing refers to any more, as far as the log says so durably.
    fn free_retired(&mut self) {
        let redo = &self.redo;
        for gone in self.retired.take(|end| redo.is_durable(end)) {
            match gone {
                Gone::Place(place) => self.homes.free(place, &mut self.blocks),
                Gone::Page(page) => self.homes.free_page(page, &mut self.blocks),
            }
        }
    }

    /// Logs a delete. Returns whether there was a record; if not, nothing is logged.
    pub(super) fn log_delete(&mut self, key: u32, in_leaf: bool) -> bool {
        if !self.live[key as usize] {
            return false;
        }
        self.note_value(key, None);
        self.live[key as usize] = false;
        self.leaves.remove(self.leaves.page(key));
        if !self.values.is_empty() {
            self.replace_value(key, None, in_leaf);
        }
        self.log_tombstone(key);
        true
    }

    /// Logs the delete of a key that may have no record.
    pub(super) fn log_tombstone(&mut self, key: u32) {
        let page = self.leaves.page(key);
        let key_len = self.workload.keys.key_len(key);
        self.log(record_bytes(key_len as u64) + varint_len(self.homes.name(page)));
    }

    /// A delete in a page that is changed at once.
    pub(super) fn delete_in_page(&mut self, key: u32, page: u32) {
        self.visit(page, Some(self.redo.end()));
        if let Some(deltas) = &mut self.deltas {
            deltas.delete(page, key);
        }
        self.note_sparse(page);
    }

    /// A put that makes a record on a page that is not played.
    pub(super) fn add_elsewhere(&mut self, added: Added) {
        self.rest(Rest {
            ops: 1,
            puts: 1,
            further: 0,
        });
        self.note_put(added.key, added.page);
    }

    /// Operations on pages that are not played and that make no record: only the log sees them.
    pub(super) fn rest(&mut self, rest: Rest) {
        self.counts.ops += u64::from(rest.ops);
        self.counts.accesses += u64::from(rest.ops + rest.further);
        self.uses += u64::from(rest.ops);
        self.redo
            .append(self.weight * self.put_bytes * f64::from(rest.puts));
    }

    /// A scan reads a page. In a tree that adapts its leaves, some of these accesses are counted,
    /// which is an access of its own that loads the page.
    pub(super) fn scan_page(&mut self, page: u32) {
        if let Some(deltas) = &mut self.deltas {
            deltas.scan(page);
        }
        if self.adapts {
            self.uses += 1;
            if Use::Scan.counts(self.uses - 1) && !self.frames.holds(page) {
                self.visit(page, None);
            }
        }
        self.visit(page, None);
    }

    /// Adds bytes to the log.
    pub(super) fn append(&mut self, bytes: f64) {
        self.redo.append(self.weight * bytes);
    }

    /// Logs so many bytes. Returns the bytes of log that this takes in the whole tree.
    pub(super) fn log(&mut self, bytes: u64) -> f64 {
        let bytes = self.weight * bytes as f64;
        self.redo.append(bytes);
        bytes
    }

    fn flush(&mut self) {
        if self.redo.flush(&mut self.blocks) > 0 {
            self.device_flushed();
        }
        self.flushed_at = self.clients.now();
    }

    fn device_flushed(&mut self) {
        self.homes.flushed();
        if let Some(deltas) = &mut self.deltas {
            deltas.flushed();
        }
    }

    /// Evicts ahead of need.
    #[inline]
    pub(super) fn tidy(&mut self) {
        while self.frames.is_short() {
            self.write_back();
        }
    }

    /// Flushes the log if its buffer is full or its interval over.
    #[inline]
    pub(super) fn flush_if_due(&mut self) {
        if self.redo.unflushed() >= self.options.log_buffer_bytes
            || self.clients.now() - self.flushed_at >= self.interval
        {
            self.flush();
        }
    }

    /// Whether the log has grown enough for a checkpoint.
    #[inline]
    pub(super) fn checkpoint_is_due(&self) -> bool {
        self.redo.position() - self.checkpoint_from >= self.options.checkpoint_log_bytes
    }

    pub(super) fn write_back(&mut self) {
        let mut picked = std::mem::take(&mut self.picked);
        self.frames.pick(&mut picked);
        self.write(&picked);
        self.frames.evict_picked(&picked);
        self.picked = picked;
        self.free_retired();
    }

    /// Writes pages, after the log.
    fn write(&mut self, picked: &[Picked]) {
        if picked.iter().any(|p| !self.redo.is_durable(p.changed)) {
            self.flush();
        }
        self.batch.clear();
        let pages = picked.iter().map(|p| p.page);
        let written = self.deltas.as_mut().map(|d| d.write(pages.clone()));
        let sizes = &self.blocks.sizes;
        for (i, page) in pages.enumerate() {
            let (is_delta, stored) = match written.as_ref().map(|written| written[i]) {
                None => (false, sizes.page.mean),
                Some(Written::Whole(used)) => (false, sizes.page.of(used)),
                Some(Written::Delta(marked)) => (true, sizes.delta.with(marked)),
            };
            self.batch.push(PageWrite {
                page,
                is_delta,
                stored,
            });
            self.counts.writes += 1;
            self.counts.whole += u64::from(!is_delta);
            self.counts.delta_stored += if is_delta { stored } else { 0.0 };
        }
        self.homes.write(&self.batch, &mut self.blocks);
    }

    /// Begins a checkpoint here. What is buffered above the pages is to be merged now.
    pub(super) fn begin_checkpoint(&mut self) {
        self.rounds.begin(self.counts.writes, self.redo.position());
        self.begun = self.redo.end();
        self.checkpoint_from = self.redo.position();
    }

    /// Writes all dirty pages, and completes the checkpoint.
    pub(super) fn sweep(&mut self) {
        let mut picked = std::mem::take(&mut self.picked);
        let mut from = Some(0);
        while let Some(at) = from {
            from = self.frames.sweep(at, &mut picked);
            self.write(&picked);
        }
        self.picked = picked;
        self.free_retired();
        let chunks = (self.leaves.count() as f64 / self.snapshot_entries).ceil();
        let chunks = (chunks / self.sample as f64).ceil() as u64;
        let old = self.homes.write_snapshot(chunks, &mut self.blocks);
        self.flush();
        self.device_flushed();
        self.homes.write_superblock(old, &mut self.blocks);
        self.redo.truncate(self.begun, &mut self.blocks);
        self.free_retired();
        self.counts.checkpoints += 1;
        self.rounds.end(self.counts.writes, self.redo.position());
    }
}

/// Mean bytes of the log record of a put or delete, with the page's name.
fn mean_put_bytes(workload: &Workload, options: &Options, level: &LeafLevel) -> f64 {
    let bytes = |t: &Totals| t.log_bytes_with(options.page_size) as f64;
    let writes = workload.warmup.writes() + workload.measured.writes();
    let all = bytes(&workload.warmup) + bytes(&workload.measured);
    all / (writes as f64).max(1.0) + page_name_bytes(level.count())
}
