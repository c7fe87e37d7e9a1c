//! The tree without buffers: every write goes to its leaf, and there is no log. It is the papers'
//! baseline (CCL-BTree §5.2, *Base*).

use crate::error::Result;
use crate::kv::Visitor;
use crate::options::PmOptions;
use crate::pm::layout::Geometry;
use crate::pm::leaves::recover::{Recovered, recover};
use crate::pm::leaves::{Leaves, NothingAbove};
use crate::pm::medium::Medium;
use crate::pm::nodes::Change;
use crate::pm::tree::{Base, Opened, PmTree, Structure};
use crate::stats::PmStats;
use crate::sync::Arc;
use crate::types::Progress;

/// The leaves, with nothing above them.
struct Plain(Leaves);

/// Recovers the tree.
pub(super) fn open(
    medium: &Arc<Medium>,
    geometry: Geometry,
    options: &PmOptions,
) -> Result<Opened> {
    let Recovered { leaves, report, .. } = recover(medium, geometry, options)?;
    Ok((Box::new(Plain(leaves)), report))
}

impl PmTree for Plain {
    fn base(&self) -> Base<'_> {
        self.0.base()
    }

    fn structure(&self) -> Structure {
        self.0.structure()
    }

    fn stats(&self) -> PmStats {
        self.0.stats()
    }

    fn change(&self, key: &[u8], change: Change) -> Result<()> {
        let leaves = &self.0;
        let (leaf, mut held) = leaves.lock(key);
        let written = leaves.flush(&mut held, leaf, Some(change))?;
        drop(held);
        if written.is_sparse() {
            leaves.merge_around(leaf)?;
        }
        Ok(())
    }

    fn delete_in_place(&self, key: &[u8]) -> Result<bool> {
        self.0.delete_in_place(key)?;
        Ok(true)
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.0.get(key, value)
    }

    fn scan(&self, from: &[u8], visit: &mut Visitor<'_>) -> Result<()> {
        self.0.scan(&NothingAbove, from, visit)
    }

    fn scan_back(&self, before: Option<&[u8]>, visit: &mut Visitor<'_>) -> Result<()> {
        self.0.scan_back(&NothingAbove, before, visit)
    }

    fn merging_due(&self) -> bool {
        self.0.merging_due()
    }

    fn merge_step(&self) -> Result<Progress> {
        self.0.merge_step()
    }

    fn merge_all(&self) -> Result<()> {
        self.0.merge_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{MemPm, PmDevice};
    use crate::options::PmTreeKind;
    use crate::pm::layout::LeafId;
    use crate::pm::space::Room;

    /// One thread is about to merge a leaf that another thread has merged away, while a third
    /// writes a record where the leaf's records were. (`tests/pm_threads.rs` has the threads.)
    #[test]
    fn a_leaf_that_was_merged_away_is_not_read() {
        let device = Arc::new(MemPm::new(1 << 20));
        let shared: Arc<dyn PmDevice> = device.clone();
        let options = PmOptions {
            tree: PmTreeKind::PmTree,
            chunk_bytes: 2048,
            ..PmOptions::default()
        };
        let medium = Arc::new(Medium::new(shared));
        let format = options.tree.facts().leaves;
        let geometry = Geometry::plan(medium.len(), options.chunk_bytes, format).expect("fits");
        geometry.format(&medium).expect("formats");
        let Recovered { leaves, .. } = recover(&medium, geometry, &options).expect("recovers");
        let tree = Plain(leaves);
        let leaves = &tree.0;
        let change = |key: &[u8], value: Option<&[u8]>| {
            let delete = value.is_none();
            let slot = (leaves.records).encode(key, value, Room::of(delete));
            let slot = slot.expect("encodes");
            let change = Change { slot, delete };
            tree.change(key, change).expect("changes");
        };
        let key = |i: u8| vec![i; 20];
        for i in 0..40 {
            change(&key(i), Some(b""));
        }
        let mut all = Vec::new();
        leaves.index.for_each(|_, page| all.push(LeafId(page.0)));
        for i in 1..40 {
            change(&key(i), None);
        }
        assert!(
            all.len() > 3 && leaves.space.leaves() == 1,
            "all are merged"
        );
        let gone = &all[1..];
        for leaf in gone {
            let image = leaves.load(*leaf).expect("loads");
            for record in image.used().flat_map(|at| image.slot(at).records()) {
                device.store(record + 8, &[0xee; 20]).expect("stores");
            }
        }
        for leaf in gone {
            leaves
                .merge_around(*leaf)
                .expect("there is nothing to merge");
        }
        assert_eq!(leaves.space.leaves(), 1);
    }
}
