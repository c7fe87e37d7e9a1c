//! A tree of pages, played: its accesses in the order of the trace, on pages without content.

use treering_engine::{BLOCK_SIZE, Durability, Options, is_long, node, overflow_blocks};
use treering_traces::OpKind;

use super::blocks::{Blocks, Bytes};
use super::clients::Clients;
use super::deltas::Deltas;
use super::frames::{FrameCounts, Frames, Picked};
use super::homes::{Homes, PageWrite};
use super::leaves::Leaves;
use super::redo::{Redo, RedoCounts};
use crate::predict::leaf::LeafLevel;
use crate::predict::log::{record_bytes, varint_len};
use crate::predict::workload::{Step, Workload};
use treering_engine::POINTER_BYTES;

/// Bytes of a snapshot entry besides the fence, and of the header of a chunk of entries.
const SNAPSHOT_ENTRY_BYTES: f64 = 18.0;
const SNAPSHOT_HEADER_BYTES: f64 = 32.0;
/// Bytes of a split's log record besides page names, fences and records: its length, kind, and four
/// short numbers.
const SPLIT_BYTES: f64 = 7.0;

/// Counts of the measured part.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in crate::predict) struct Counts {
    pub(in crate::predict) ops: u64,
    pub(in crate::predict) frames: FrameCounts,
    pub(in crate::predict) redo: RedoCounts,
    pub(in crate::predict) bytes: Bytes,
    pub(in crate::predict) checkpoints: u64,
    /// Page writes, and those that wrote the whole page.
    pub(in crate::predict) writes: u64,
    pub(in crate::predict) whole: u64,
    /// Bytes of overflow blocks.
    pub(in crate::predict) overflow: f64,
    /// Records that scans read.
    pub(in crate::predict) scanned: u64,
}

/// The store.
pub(super) struct PageTree<'a, 'f> {
    workload: &'a Workload,
    level: &'a LeafLevel,
    options: &'a Options,
    leaves: Leaves<'a>,
    pub(super) frames: Frames,
    redo: Redo,
    homes: Homes,
    deltas: Option<Deltas>,
    blocks: Blocks<'f>,
    clients: Clients,
    /// Keys that have a record now.
    live: Vec<bool>,
    /// Places of long values, by key.
    values: rustc_hash::FxHashMap<u32, Vec<u64>>,
    /// Operations that one of the sample stands for.
    weight: f64,
    checkpoint_from: u64,
    flushed_at: f64,
    interval: f64,
    snapshot_entries: f64,
    picked: Vec<Picked>,
    batch: Vec<PageWrite>,
    counts: Counts,
}

/// The parts of a store to be played.
pub(super) struct Parts<'f> {
    pub(super) frames: Frames,
    pub(super) redo: Redo,
    pub(super) homes: Homes,
    pub(super) deltas: Option<Deltas>,
    pub(super) blocks: Blocks<'f>,
    pub(super) clients: Clients,
}

impl<'a, 'f> PageTree<'a, 'f> {
    pub(super) fn new(
        workload: &'a Workload,
        level: &'a LeafLevel,
        options: &'a Options,
        parts: Parts<'f>,
    ) -> PageTree<'a, 'f> {
        let keys = workload.keys.len();
        let fences: f64 = level.leaves.iter().map(|l| f64::from(l.fence_len)).sum();
        let entry = SNAPSHOT_ENTRY_BYTES + fences / level.leaves.len().max(1) as f64;
        let chunk = options.page_size as f64 - SNAPSHOT_HEADER_BYTES;
        let Parts {
            frames,
            redo,
            homes,
            deltas,
            blocks,
            clients,
        } = parts;
        let mut tree = PageTree {
            workload,
            level,
            options,
            leaves: Leaves::new(level, keys, workload.tick),
            checkpoint_from: redo.position(),
            frames,
            redo,
            homes,
            deltas,
            blocks,
            clients,
            live: vec![false; keys],
            values: rustc_hash::FxHashMap::default(),
            weight: workload.sample_weight(),
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
        tree.homes.create(0);
        tree.frames.create(0, tree.redo.end());
        tree
    }

    /// Forgets what the warm-up counted.
    pub(super) fn begin_measuring(&mut self) {
        self.counts = Counts::default();
        self.frames.counts = FrameCounts::default();
        self.redo.counts = RedoCounts::default();
        self.blocks.bytes = Bytes::default();
    }

    /// The counts, and the mean number of segments in a page's log block.
    pub(super) fn finish(self) -> (Counts, f64) {
        let held = self.deltas.as_ref().map_or(0.0, Deltas::held);
        let counts = Counts {
            frames: self.frames.counts,
            redo: self.redo.counts,
            bytes: self.blocks.bytes,
            ..self.counts
        };
        (counts, held)
    }

    /// Does one operation and the background work that becomes due.
    pub(super) fn step(&mut self, step: Step) {
        while !self.clients.begin() {
            self.flush();
            self.clients.flushed();
        }
        self.counts.ops += 1;
        let before = self.frames.counts.misses;
        let mut wrote = false;
        match step.kind {
            OpKind::Get => self.look_at(self.leaves.page(step.key)),
            OpKind::Put => {
                wrote = true;
                self.put(step);
            }
            OpKind::Delete => wrote = self.delete(step.key),
            OpKind::Scan => self.scan(step),
        }
        self.clients.end(self.frames.counts.misses - before, wrote);
        self.background();
    }

    /// An access to a page; makes room first if a frame is needed and none is free.
    fn visit(&mut self, page: u32, changed: Option<u64>) {
        while self.frames.lacks_room_for(page) {
            self.write_back();
        }
        self.frames.visit(page, changed);
    }

    fn look_at(&mut self, page: u32) {
        self.visit(page, None);
    }

    fn put(&mut self, step: Step) {
        while self.leaves.is_due(step.time) {
            self.split();
        }
        let page = self.leaves.page(step.key);
        let (key_len, _) = self.workload.keys.lens(step.key);
        let mut value = step.len as usize;
        let limits = node::limits(self.options.page_size);
        let long = is_long(&limits, key_len, value);
        if long || !self.values.is_empty() {
            self.replace_value(step.key, long.then(|| overflow_blocks(value)));
        }
        if long {
            value = POINTER_BYTES;
        }
        let fields = varint_len(key_len as u64) + (key_len + value) as u64;
        self.log(record_bytes(fields) + varint_len(self.homes.name(page)));
        self.visit(page, Some(self.redo.end()));
        let new = !std::mem::replace(&mut self.live[step.key as usize], true);
        if let Some(deltas) = &mut self.deltas {
            deltas.put(page, step.key, value as u32, new, self.leaves.records(page));
        }
        if new {
            self.leaves.add(page);
        }
    }

    /// Writes the overflow blocks of a long value, and frees those of the value before.
    fn replace_value(&mut self, key: u32, blocks: Option<u64>) {
        let old = self.values.remove(&key);
        if let Some(count) = blocks {
            self.counts.overflow += (count * BLOCK_SIZE as u64) as f64;
            let places = self.homes.write_value(count, &mut self.blocks);
            self.values.insert(key, places);
        }
        for place in old.into_iter().flatten() {
            self.homes.free(place, &mut self.blocks);
        }
    }

    /// Returns whether there was a record.
    fn delete(&mut self, key: u32) -> bool {
        let page = self.leaves.page(key);
        if !self.live[key as usize] {
            self.look_at(page);
            return false;
        }
        if !self.values.is_empty() {
            self.replace_value(key, None);
        }
        let (key_len, _) = self.workload.keys.lens(key);
        self.log(record_bytes(key_len as u64) + varint_len(self.homes.name(page)));
        self.visit(page, Some(self.redo.end()));
        if let Some(deltas) = &mut self.deltas {
            deltas.delete(page, key);
        }
        self.live[key as usize] = false;
        true
    }

    fn scan(&mut self, step: Step) {
        let mut page = self.leaves.page(step.key);
        let mut left = f64::from(step.len);
        self.counts.scanned += u64::from(step.len);
        let mut here = self.leaves.behind(page, step.key) * f64::from(self.leaves.records(page));
        loop {
            self.look_at(page);
            left -= here;
            // A scan that ends with the last record of a page does not look for more.
            if left <= 0.0 {
                return;
            }
            let Some(next) = self.leaves.after(page) else {
                return;
            };
            page = next;
            here = f64::from(self.leaves.records(page));
        }
    }

    /// A page is full: it is loaded, then half of it moves to a new page.
    fn split(&mut self) {
        let Some(parted) = self.leaves.split() else {
            return;
        };
        let split = self.level.splits[parted.split];
        self.visit(parted.left, None);
        self.homes.create(parted.right);
        let names =
            varint_len(self.homes.name(parted.left)) + varint_len(self.homes.name(parted.right));
        self.redo.append(
            self.weight
                * (f64::from(split.moved_bytes)
                    + 2.0 * f64::from(split.separator_len)
                    + names as f64
                    + SPLIT_BYTES),
        );
        let end = self.redo.end();
        while self.frames.lacks_room_for(parted.right) {
            self.write_back();
        }
        self.frames.create(parted.right, end);
        self.frames.change(parted.left, end);
        if let Some(deltas) = &mut self.deltas {
            deltas.rewrite(parted.left);
            deltas.rewrite(parted.right);
        }
    }

    fn log(&mut self, bytes: u64) {
        self.redo.append(self.weight * bytes as f64);
    }

    fn flush(&mut self) {
        self.redo.flush(&mut self.blocks);
        self.flushed_at = self.clients.now();
    }

    fn background(&mut self) {
        while self.frames.is_short() {
            self.write_back();
        }
        if self.redo.unflushed() >= self.options.log_buffer_bytes {
            self.flush();
        }
        let every = self.options.checkpoint_log_bytes;
        if self.redo.position() - self.checkpoint_from >= every {
            self.checkpoint();
        }
        if self.clients.now() - self.flushed_at >= self.interval {
            self.flush();
        }
    }

    fn write_back(&mut self) {
        let mut picked = std::mem::take(&mut self.picked);
        self.frames.pick(&mut picked);
        self.write(&picked);
        self.frames.evict_picked(&picked);
        self.picked = picked;
    }

    /// Writes pages, after the log.
    fn write(&mut self, picked: &[Picked]) {
        if picked.iter().any(|p| !self.redo.is_durable(p.changed)) {
            self.flush();
        }
        self.batch.clear();
        for p in picked {
            let segments = match &mut self.deltas {
                Some(deltas) => deltas.write(p.page),
                None => None,
            };
            self.batch.push(PageWrite {
                page: p.page,
                segments,
            });
            self.counts.writes += 1;
            self.counts.whole += u64::from(segments.is_none());
        }
        self.homes.write(&self.batch, &mut self.blocks);
    }

    fn checkpoint(&mut self) {
        let begin = self.redo.end();
        self.checkpoint_from = self.redo.position();
        let mut picked = std::mem::take(&mut self.picked);
        let mut from = Some(0);
        while let Some(at) = from {
            from = self.frames.sweep(at, &mut picked);
            self.write(&picked);
        }
        self.picked = picked;
        let chunks = (self.leaves.count() as f64 / self.snapshot_entries).ceil() as u64;
        let old = self.homes.write_snapshot(chunks, &mut self.blocks);
        self.flush();
        self.homes.write_superblock(old, &mut self.blocks);
        self.redo.truncate(begin, &mut self.blocks);
        self.counts.checkpoints += 1;
    }
}
