//! A Bf-Tree, played: mini-pages in their ring ([`crate::predict::bf`]) above the frames, with the
//! accesses in the order of the trace.

use std::ops::{Deref, DerefMut};

use treering_engine::BfShape;
use treering_traces::OpKind;

use super::store::PageTree;
use crate::predict::bf::{Below, Key, MiniPageCounts, MiniPageModel, Record};
use crate::predict::workload::{NEVER, Step};

/// The leaves below the mini-pages.
pub(super) struct Leaves<'a, 'f> {
    tree: PageTree<'a, 'f>,
    /// Key numbers in key order, and the rank of each key.
    order: &'a [u32],
    ranks: Vec<u32>,
    mini_slot: u32,
    leaf_slot: u32,
    /// Bytes of each key's value as leaves store it.
    values: Vec<u16>,
    /// Bytes of keys and values in each leaf, once all records are merged.
    used: Vec<u32>,
    /// Bytes that a record takes beside key and value, and a leaf beside its records, on average.
    beside: f64,
    header_bytes: f64,
}

impl<'a, 'f> Deref for Leaves<'a, 'f> {
    type Target = PageTree<'a, 'f>;

    fn deref(&self) -> &PageTree<'a, 'f> {
        &self.tree
    }
}

impl DerefMut for Leaves<'_, '_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.tree
    }
}

impl Below for Leaves<'_, '_> {
    fn read(&mut self, leaf: u32) {
        self.tree.visit(leaf, None);
    }

    fn merge(&mut self, leaf: u32, written: u64, records: &[Record]) {
        self.tree.visit(leaf, Some(written));
        for record in records.iter().filter(|record| record.dirty) {
            let key = self.order[record.rank as usize];
            self.tree
                .settle(leaf, key, self.values[key as usize].into());
        }
        self.tree.free_replaced(leaf, written);
    }

    fn now(&self) -> u64 {
        self.tree.log_end()
    }

    fn tidy(&mut self) {
        self.tree.tidy();
    }

    fn free(&self, leaf: u32) -> u32 {
        let beside = self.header_bytes + f64::from(self.tree.leaves.records(leaf)) * self.beside;
        let used = beside + f64::from(self.used[leaf as usize]);
        (self.tree.options.page_size as f64 - used).max(0.0) as u32
    }

    fn has_places(&self, leaf: u32) -> bool {
        let leaf = self.tree.level.leaves.get(leaf as usize);
        leaf.is_some_and(|leaf| leaf.layout.is_dense())
    }

    fn is_played(&self, leaf: u32) -> bool {
        self.tree.is_sampled(leaf)
    }

    fn records(&self, leaf: u32) -> Vec<Record> {
        let keys = &self.order[self.tree.leaves.ranks(leaf)];
        let live = keys.iter().filter(|key| self.tree.is_live(**key));
        live.map(|key| self.record(*key)).collect()
    }
}

impl Leaves<'_, '_> {
    fn record(&self, key: u32) -> Record {
        Record {
            rank: self.ranks[key as usize],
            bytes: self.mini_slot + self.bytes(key),
            dirty: false,
        }
    }

    /// Bytes of key and value, or of the key alone if there is no record: then a mini-page holds a
    /// tombstone or a phantom.
    fn bytes(&self, key: u32) -> u32 {
        let (key_len, _) = self.tree.workload.keys.lens(key);
        if !self.tree.is_live(key) {
            return key_len as u32;
        }
        key_len as u32 + u32::from(self.values[key as usize])
    }

    fn key(&self, key: u32) -> Key {
        let bytes = self.bytes(key);
        Key {
            leaf: self.tree.leaves.page(key),
            rank: self.ranks[key as usize],
            bytes: self.mini_slot + bytes,
            growth: match self.tree.is_live(key) {
                true => self.leaf_slot + bytes,
                false => 0,
            },
        }
    }

    /// A key gets a value of this many bytes as leaves store it, or none.
    fn note_value(&mut self, key: u32, value: Option<usize>) {
        let page = self.tree.leaves.page(key) as usize;
        if self.tree.is_live(key) {
            self.used[page] = self.used[page].saturating_sub(self.bytes(key));
        }
        if let Some(value) = value {
            self.values[key as usize] = value.min(usize::from(u16::MAX)) as u16;
            let (key_len, _) = self.tree.workload.keys.lens(key);
            self.used[page] += key_len as u32 + u32::from(self.values[key as usize]);
        }
    }

    /// A leaf was split: counts the bytes of both halves.
    fn note_split(&mut self, left: u32, right: u32) {
        let moved: u32 = (self.order[self.tree.leaves.ranks(right)].iter())
            .filter(|key| self.tree.is_live(**key))
            .map(|key| self.bytes(*key))
            .sum();
        let used = &mut self.used;
        used[left as usize] = used[left as usize].saturating_sub(moved);
        used[right as usize] = moved;
    }
}

/// The tree.
pub(super) struct BfTree<'a, 'f> {
    model: MiniPageModel<'a, Leaves<'a, 'f>>,
}

impl<'a, 'f> BfTree<'a, 'f> {
    /// The tree above these leaves, each of which stands for `weight`.
    pub(super) fn new(tree: PageTree<'a, 'f>, shape: &'a BfShape, weight: f64) -> BfTree<'a, 'f> {
        let level = tree.level;
        let mut ranks = vec![0; level.order.len()];
        for (rank, key) in (0..).zip(&level.order) {
            ranks[*key as usize] = rank;
        }
        let leaves = level.leaves.len().max(1) as f64;
        let records: f64 = level.leaves.iter().map(|l| f64::from(l.records)).sum();
        let used: f64 = level.leaves.iter().map(|l| f64::from(l.used_bytes)).sum();
        let header = f64::from(level.leaves.first().map_or(0, |leaf| {
            leaf.layout.header_bytes() as u32 + 2 * leaf.fence_len
        }));
        let count = tree.leaves.limit();
        let page_size = tree.options.page_size;
        let payload: f64 = (level.order.iter())
            .filter(|key| tree.workload.keys.first_put(**key) != NEVER)
            .map(|key| {
                let (key_len, _) = tree.workload.keys.lens(*key);
                (key_len + tree.workload.stored_len(*key, page_size)) as f64
            })
            .sum();
        let below = Leaves {
            order: &level.order,
            ranks,
            mini_slot: shape.mini_slot as u32,
            leaf_slot: shape.leaf_slot as u32,
            header_bytes: header,
            beside: (used - leaves * header - payload) / records.max(1.0),
            values: vec![0; level.order.len()],
            used: vec![0; count],
            tree,
        };
        BfTree {
            model: MiniPageModel::new(shape, count, weight, below),
        }
    }

    pub(super) fn store(&mut self) -> &mut PageTree<'a, 'f> {
        &mut self.model.below.tree
    }

    pub(super) fn begin_measuring(&mut self) {
        self.model.counts = MiniPageCounts::default();
        self.store().begin_measuring();
    }

    /// The tree below, and the counts of the mini-pages.
    pub(super) fn finish(self) -> (PageTree<'a, 'f>, MiniPageCounts) {
        (self.model.below.tree, self.model.counts)
    }

    /// Does one operation and the background work that becomes due.
    pub(super) fn step(&mut self, step: Step) {
        let before = self.store().begin(step.kind);
        let mut wrote = false;
        let page = self.store().leaves.page(step.key);
        let is_sampled = self.store().is_sampled(page);
        match step.kind {
            OpKind::Get if !is_sampled => {}
            OpKind::Get => {
                let key = self.model.below.key(step.key);
                self.model.get(key);
            }
            OpKind::Put => {
                wrote = true;
                self.put(step);
            }
            OpKind::Delete if !is_sampled => {
                wrote = true;
                self.store().log_tombstone(step.key);
            }
            OpKind::Delete => wrote = self.delete(step.key),
            OpKind::Scan => {
                let store = &mut self.model.below.tree;
                let pages = store.scanned(step);
                for (nth, page) in pages.into_iter().enumerate() {
                    if self.store().is_sampled(page) {
                        self.model.scan(page, nth);
                    }
                }
            }
        }
        self.store().end(before, wrote);
        self.model.tidy();
        let store = self.store();
        store.flush_if_due();
        if store.checkpoint_is_due() {
            store.begin_checkpoint();
            let leaves = self.store().homes.created().to_vec();
            self.model.push_down(leaves);
            self.model.below.tidy();
            self.store().sweep();
        }
    }

    fn put(&mut self, step: Step) {
        while self.store().leaves.is_due(step.time) {
            let next = self.store().leaves.next_split();
            let Some((left, right, rank)) = next else {
                self.store().split();
                continue;
            };
            let is_sampled = self.store().is_sampled(left);
            if is_sampled {
                let (key_len, _) = self.store().workload.keys.lens(step.key);
                let bytes = key_len + self.store().leaf_bytes(step);
                let slot = self.model.below.mini_slot as usize;
                self.model.before_split(left, slot + bytes);
            }
            self.store().split();
            self.model.below.note_split(left, right);
            if is_sampled {
                self.model.divide(left, right, rank);
            }
        }
        let page = self.store().leaves.page(step.key);
        if !self.store().is_sampled(page) {
            return self.store().put_elsewhere(step, page);
        }
        let before = self.model.below.key(step.key);
        let in_leaf = !self.model.has_dirty(before);
        let store = self.store();
        store.log_put(step, in_leaf);
        let value = store.leaf_bytes(step);
        self.model.below.note_value(step.key, Some(value));
        // What is new is counted in its leaf from now on.
        let growth = self.model.below.key(step.key).growth;
        let store = self.store();
        store.note_put(step.key, store.leaves.page(step.key));
        let key = self.model.below.key(step.key);
        self.model.write(Key { growth, ..key });
    }

    /// Writes a tombstone, unless the mini-page already says that there is no record. Returns
    /// whether it did.
    fn delete(&mut self, key: u32) -> bool {
        let was_live = self.store().is_live(key);
        let before = self.model.below.key(key);
        let in_leaf = !self.model.has_dirty(before);
        self.model.below.note_value(key, None);
        self.store().log_delete(key, in_leaf);
        let known = self.model.below.key(key);
        if !was_live && self.model.has(known) {
            return false;
        }
        if !was_live {
            self.store().log_tombstone(key);
        }
        self.model.write(known);
        true
    }
}
