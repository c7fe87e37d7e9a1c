//! A Bf-Tree, played: mini-pages in their ring ([`crate::predict::bf`]) above the frames, with the
//! accesses in the order of the trace.

use std::ops::{Deref, DerefMut};

use treering_engine::BfShape;
use treering_traces::OpKind;

use super::Tree;
use super::store::PageTree;
use crate::predict::bf::{Below, Key, MiniPageCounts, MiniPageModel, Record};
use crate::predict::log::{record_bytes, varint_len};
use crate::predict::workload::{Event, Step};

/// The leaves below the mini-pages.
pub(super) struct Leaves<'a, 'f> {
    tree: PageTree<'a, 'f>,
    /// Key numbers in key order, and the rank of each key.
    order: &'a [u32],
    ranks: Vec<u32>,
    mini_slot: u32,
    leaf_slot: u32,
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
            let value = self.tree.fill.as_ref().map_or(0, |fill| fill.value(key));
            self.tree.settle(leaf, key, value);
        }
        self.tree.free_replaced(leaf, written);
        let gone = |record: &Record| !self.tree.is_live(self.order[record.rank as usize]);
        if records.iter().any(|record| record.dirty && gone(record)) {
            self.tree.note_sparse(leaf);
        }
    }

    fn log_again(&mut self, leaf: u32, records: &[Record]) -> f64 {
        let name = varint_len(self.tree.homes.name(leaf));
        let of = |record: &Record| {
            let key = self.order[record.rank as usize];
            let length = match self.tree.is_live(key) {
                true => varint_len(self.tree.workload.keys.key_len(key) as u64),
                false => 0,
            };
            record_bytes(length + u64::from(record.bytes - self.mini_slot)) + name
        };
        let bytes = records.iter().filter(|record| record.dirty).map(of).sum();
        self.tree.log(bytes)
    }

    fn now(&self) -> u64 {
        self.tree.log_end()
    }

    fn tidy(&mut self) {
        self.tree.tidy();
    }

    fn free(&self, leaf: u32) -> u32 {
        let records = self.tree.leaves.records(leaf);
        let fill = self.tree.fill.as_ref();
        fill.map_or(0, |fill| fill.free(leaf, records).max(0.0) as u32)
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
        let key_len = self.tree.workload.keys.key_len(key);
        match &self.tree.fill {
            Some(fill) if self.tree.is_live(key) => fill.bytes(key),
            _ => key_len as u32,
        }
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
}

/// The tree.
pub(super) struct BfTree<'a, 'f> {
    model: MiniPageModel<'a, Leaves<'a, 'f>>,
    /// Bytes that a checkpoint may log again, unless it is to leave nothing.
    relog: u64,
}

impl Tree for BfTree<'_, '_> {
    fn play(&mut self, event: Event) {
        match event {
            Event::Step(step) => self.step(step),
            // On leaves that are not played.
            Event::Rest(rest) => self.store().rest(rest),
            Event::Add(added) => self.store().add_elsewhere(added),
        }
        self.background();
    }

    fn drain(&mut self) {
        self.checkpoint(0);
    }

    fn begin_measuring(&mut self) {
        self.model.counts = MiniPageCounts::default();
        self.store().begin_measuring();
    }
}

impl<'a, 'f> BfTree<'a, 'f> {
    /// The tree above these leaves, each of which stands for `weight`.
    pub(super) fn new(tree: PageTree<'a, 'f>, shape: &'a BfShape, weight: f64) -> BfTree<'a, 'f> {
        let level = tree.level;
        let mut ranks = vec![0; level.order.len()];
        for (rank, key) in (0..).zip(&level.order) {
            ranks[*key as usize] = rank;
        }
        let count = tree.leaves.limit();
        let below = Leaves {
            order: &level.order,
            ranks,
            mini_slot: shape.mini_slot as u32,
            leaf_slot: shape.leaf_slot as u32,
            tree,
        };
        BfTree {
            model: MiniPageModel::new(shape, count, weight, below),
            relog: shape.relog,
        }
    }

    pub(super) fn store(&mut self) -> &mut PageTree<'a, 'f> {
        &mut self.model.below.tree
    }

    /// The tree below, and the counts of the mini-pages.
    pub(super) fn finish(self) -> (PageTree<'a, 'f>, MiniPageCounts) {
        (self.model.below.tree, self.model.counts)
    }

    fn step(&mut self, step: Step) {
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
            // All pages are played if records are deleted.
            OpKind::Delete => wrote = self.delete(step.key),
            OpKind::Scan => {
                let store = &mut self.model.below.tree;
                let pages = store.leaves.scanned(step);
                for (nth, page) in pages.into_iter().enumerate() {
                    if self.store().is_sampled(page) {
                        self.model.scan(page, nth);
                    }
                }
            }
        }
        self.store().end(before, wrote);
    }

    fn background(&mut self) {
        self.model.tidy();
        let store = self.store();
        store.flush_if_due();
        if store.checkpoint_is_due() {
            self.checkpoint(self.relog);
        }
        self.merge_noted();
    }

    /// A checkpoint that may log so many bytes again.
    fn checkpoint(&mut self, relog: u64) {
        let store = self.store();
        store.begin_checkpoint();
        let leaves = store.homes.pages();
        self.model.push_down(leaves, relog);
        self.model.below.tidy();
        self.merge_noted();
        self.store().sweep();
    }

    fn put(&mut self, step: Step) {
        while self.store().leaves.is_due(step.time) {
            let next = self.store().leaves.next_split();
            let Some((left, right, rank)) = next else {
                self.store().split();
                continue;
            };
            self.split((left, right, rank), step, PageTree::split);
        }
        while let Some((left, right)) = self.store().overflowing(step) {
            let rank = self.store().level.starts[right as usize];
            self.split((left, right, rank), step, |store| {
                store.split_full(left, right)
            });
        }
        let page = self.store().leaves.page(step.key);
        if !self.store().is_sampled(page) {
            return self.store().put_elsewhere(step, page);
        }
        let before = self.model.below.key(step.key);
        let in_leaf = !self.model.has_dirty(before);
        let store = self.store();
        store.log_put(step, page, in_leaf);
        let value = store.leaf_bytes(step);
        store.note_value(step.key, Some(value));
        // What is new is counted in its leaf from now on.
        let growth = self.model.below.key(step.key).growth;
        let store = self.store();
        store.note_put(step.key, page);
        let key = self.model.below.key(step.key);
        self.model.write(Key { growth, ..key });
    }

    /// Splits a leaf that has no room for a put, with its mini-page.
    fn split(
        &mut self,
        (left, right, rank): (u32, u32, u32),
        step: Step,
        split: impl FnOnce(&mut PageTree<'a, 'f>),
    ) {
        let is_sampled = self.store().is_sampled(left);
        if is_sampled {
            let (key_len, _) = self.store().workload.keys.lens(step.key);
            let bytes = key_len + self.store().leaf_bytes(step);
            let slot = self.model.below.mini_slot as usize;
            self.model.before_split(left, slot + bytes);
        }
        split(self.store());
        if is_sampled {
            self.model.divide(left, right, rank);
        }
    }

    /// Merges noted leaves, as [`PageTree::merge_noted`] does below mini-pages.
    fn merge_noted(&mut self) {
        while let Some(page) = self.store().next_note() {
            if !self.store().leaves.exists(page) || !self.store().is_sampled(page) {
                continue;
            }
            self.model.look_at_leaf(page);
            if !self.store().is_sparse(page) {
                continue;
            }
            let right = self.store().leaves.after(page);
            if right.is_some_and(|right| self.merge_leaves(page, right)) {
                continue;
            }
            if let Some(left) = self.store().leaves.before(page) {
                self.merge_leaves(left, page);
            }
        }
    }

    /// Merges two leaves if the rule asks for it. Their mini-pages are merged in any case.
    fn merge_leaves(&mut self, left: u32, right: u32) -> bool {
        if !self.store().is_sampled(left) || !self.store().is_sampled(right) {
            return false;
        }
        self.model.look_at_leaf(left);
        self.model.settle_both(left, right);
        self.store().look(left);
        self.store().look_beside(right);
        let merges = self.store().may_merge(left, right);
        if merges {
            self.model.drop_both(left, right);
            self.store().merge_pages(left, right);
        } else {
            self.model.look_at_leaf(left);
        }
        merges
    }

    /// Writes a tombstone, unless the mini-page already says that there is no record. Returns
    /// whether it did.
    fn delete(&mut self, key: u32) -> bool {
        let was_live = self.store().is_live(key);
        let before = self.model.below.key(key);
        let in_leaf = !self.model.has_dirty(before);
        let store = self.store();
        store.leaves.loosen(store.leaves.page(key));
        store.log_delete(key, in_leaf);
        let known = self.model.below.key(key);
        if !was_live && self.model.has(known) {
            return false;
        }
        if !was_live {
            self.store().log_tombstone(key);
        }
        self.model.write(known);
        if was_live && in_leaf {
            // The leaf has its bytes until the tombstone is merged.
            self.model.owe(before.leaf, before.growth);
        }
        true
    }
}
