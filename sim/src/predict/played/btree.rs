//! A B-tree, played: each operation goes to the page of its key.

use treering_traces::OpKind;

use super::store::PageTree;
use crate::predict::workload::Step;

/// Does one operation and the background work that becomes due.
pub(super) fn step(tree: &mut PageTree<'_, '_>, step: Step) {
    let before = tree.begin(step.kind);
    let mut wrote = false;
    match step.kind {
        OpKind::Get => tree.visit(tree.leaves.page(step.key), None),
        OpKind::Put => {
            wrote = true;
            while tree.leaves.is_due(step.time) {
                tree.split();
            }
            tree.log_put(step);
            tree.put_in_page(step, tree.leaves.page(step.key));
        }
        OpKind::Delete => {
            let page = tree.leaves.page(step.key);
            wrote = tree.log_delete(step.key);
            match wrote {
                true => tree.delete_in_page(step.key, page),
                false => tree.visit(page, None),
            }
        }
        OpKind::Scan => {
            let pages = tree.scanned(step);
            pages.into_iter().for_each(|page| tree.scan_page(page));
        }
    }
    tree.end(before, wrote);
    tree.tidy();
    tree.flush_if_due();
    if tree.checkpoint_is_due() {
        tree.begin_checkpoint();
        tree.sweep();
    }
}
