//! A B-tree, played: each operation goes to the page of its key.

use treering_traces::OpKind;

use super::Tree;
use super::store::PageTree;
use crate::predict::workload::{Event, Step};

impl Tree for PageTree<'_, '_> {
    fn play(&mut self, event: Event) {
        match event {
            Event::Step(one) => step(self, one),
            // On pages that are not played.
            Event::Rest(rest) => self.rest(rest),
            Event::Add(added) => self.add_elsewhere(added),
        }
        background(self);
    }

    fn drain(&mut self) {
        checkpoint(self);
    }

    fn begin_measuring(&mut self) {
        PageTree::begin_measuring(self);
    }
}

fn step(tree: &mut PageTree<'_, '_>, step: Step) {
    let before = tree.begin(step.kind);
    let mut wrote = false;
    let mut page = tree.leaves.page(step.key);
    tree.note_access();
    match step.kind {
        OpKind::Get if tree.is_sampled(page) => tree.visit(page, None),
        OpKind::Get => {}
        OpKind::Put => {
            wrote = true;
            while tree.leaves.is_due(step.time) {
                tree.split();
                page = tree.leaves.page(step.key);
            }
            while let Some((left, right)) = tree.overflowing(step) {
                tree.split_full(left, right);
                page = tree.leaves.page(step.key);
            }
            if tree.is_sampled(page) {
                tree.log_put(step, page, false);
                tree.put_in_page(step, page);
            } else {
                tree.put_elsewhere(step, page);
            }
        }
        OpKind::Delete => {
            // All pages are played if records are deleted.
            wrote = tree.log_delete(step.key, false);
            match wrote {
                true => tree.delete_in_page(step.key, page),
                false => tree.visit(page, None),
            }
        }
        OpKind::Scan => {
            for (nth, page) in tree.leaves.scanned(step).into_iter().enumerate() {
                if nth > 0 {
                    tree.note_access();
                }
                if tree.is_sampled(page) {
                    tree.scan_page(page);
                }
            }
        }
    }
    tree.end(before, wrote);
}

fn background(tree: &mut PageTree<'_, '_>) {
    tree.tidy();
    tree.flush_if_due();
    if tree.checkpoint_is_due() {
        checkpoint(tree);
    }
    tree.merge_noted();
}

fn checkpoint(tree: &mut PageTree<'_, '_>) {
    tree.begin_checkpoint();
    tree.merge_noted();
    tree.sweep();
}
