//! The level above the last-level inner nodes: how much room a node's parent has, which bounds the
//! number of parts of a split (LodgeTree equation 1).

use std::collections::BTreeMap;

/// Entries of a parent (LodgeTree §IV-A).
const FANOUT: usize = 29;

/// Parents: where each begins, and where its nodes begin.
pub(super) struct Upper(BTreeMap<u32, Vec<u32>>);

impl Upper {
    pub(super) fn new() -> Upper {
        Upper(BTreeMap::from([(0, vec![0])]))
    }

    /// Entries that the parent of a node can take before it is split.
    pub(super) fn room(&self, low: u32) -> usize {
        let parent = self.0.range(..=low).next_back();
        parent.map_or(0, |(_, nodes)| FANOUT.saturating_sub(nodes.len()))
    }

    /// A node begins at a rank.
    pub(super) fn insert(&mut self, low: u32) {
        let Some((_, nodes)) = self.0.range_mut(..=low).next_back() else {
            return;
        };
        let at = nodes.partition_point(|other| *other < low);
        nodes.insert(at, low);
        if nodes.len() > FANOUT {
            let upper = nodes.split_off(nodes.len() / 2);
            self.0.insert(upper[0], upper);
        }
    }

    /// No node begins at a rank any more.
    pub(super) fn remove(&mut self, low: u32) {
        let parent = self.0.range_mut(..=low).next_back();
        if let Some((from, nodes)) = parent {
            nodes.retain(|other| *other != low);
            let (from, is_empty) = (*from, nodes.is_empty());
            if is_empty && from > 0 {
                self.0.remove(&from);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_parent_is_halved() {
        let mut upper = Upper::new();
        (1..FANOUT as u32).for_each(|low| upper.insert(low));
        assert_eq!(upper.room(5), 0);
        upper.insert(FANOUT as u32);
        assert_eq!((upper.room(5), upper.room(20)), (14, 14));
        upper.remove(20);
        assert_eq!(upper.room(29), 15);
    }
}
