//! Redistributes three leaves into two. This is the last resort of a store that has no room for
//! another leaf, when no two neighbours fit in one leaf.
//!
//! ```text
//!   [ left ....    ][ middle ......  ][ right .....   ]     together no more than two leaves
//!   [ left ....    ][ mid ][ dle ... ][ right .....   ]     split, into the leaf that puts leave
//!   [ left .... mid        ][ dle ... right .....     ]     two merges
//! ```
//!
//! The split ([`super::write`]) and both merges ([`super::merge`]) are the ordinary ones, each
//! crash-safe by itself, so the tree is correct between them. The decision where to split is based
//! on an unlocked look at the neighbours; each merge decides again by the state that it finds. If
//! the first merge no longer fits, the two halves are merged again.

use crate::error::{Error, Result};
use crate::mutation;
use crate::pm::layout::LeafId;
use crate::pm::leaf::SLOTS;
use crate::pm::space::Room;
use crate::types::PageId;

use super::{Leaves, Stamps};

/// The number of index entries returned by one look at the index.
const STEP: usize = 64;

/// Returns how many keys of the middle leaf go to its left neighbour, so that three leaves with
/// `keys` keys become two leaves that are as equal as possible. Returns `None` if they do not fit
/// in two leaves of `slots` slots.
pub(crate) fn keys_to_the_left(keys: [usize; 3], slots: usize) -> Option<usize> {
    let [left, middle, right] = keys;
    let whole = left + middle + right;
    if middle < 2 || whole > 2 * slots {
        return None;
    }
    let lower = (whole / 2).saturating_sub(left).clamp(1, middle - 1);
    (left + lower <= slots && middle - lower + right <= slots).then_some(lower)
}

impl Leaves {
    /// Redistributes every leaf that fits into its two neighbours.
    ///
    /// O(n) for n leaves, each of which is read.
    pub(crate) fn share_all(&self) -> Result<()> {
        if mutation::on("pm-full-without-sharing") {
            return Ok(());
        }
        let mut from = Vec::new();
        loop {
            let entries = self.index.range(&from, STEP);
            let mut at = 0;
            while let Some([left, middle, right]) = entries.get(at..at + 3) {
                let shared = self.share(left.1, middle, right.1)?;
                at += if shared { 3 } else { 1 };
            }
            match entries.len() {
                // The last two have not been in the middle yet.
                STEP => from.clone_from(&entries[STEP - 2].0),
                _ => return Ok(()),
            }
        }
    }

    /// Redistributes the middle one of three neighbours among the others, if they fit in two
    /// leaves. Returns whether it did.
    fn share(&self, left: PageId, middle: &(Vec<u8>, PageId), right: PageId) -> Result<bool> {
        let [left, leaf, right] = [left, middle.1, right].map(|page| LeafId(page.0));
        let mut keys = [0; 3];
        for (keys, leaf) in keys.iter_mut().zip([left, leaf, right]) {
            match self.keys_with_buffer(leaf)? {
                Some(found) => *keys = found,
                None => return Ok(false),
            }
        }
        let Some(lower) = keys_to_the_left(keys, SLOTS) else {
            return Ok(false);
        };
        let new = match self.divide(leaf, &middle.0, lower) {
            Err(Error::PmFull { .. }) => return Ok(false),
            done => done?,
        };
        let Some(new) = new else {
            return Ok(false);
        };
        if !self.merge_left(leaf)? {
            // Frees the leaf that was taken for this.
            self.merge_left(new)?;
            return Ok(false);
        }
        self.merge_left(right)
    }

    /// Returns the number of used slots and buffered changes of a leaf, or `None` if it was merged
    /// away.
    fn keys_with_buffer(&self, leaf: LeafId) -> Result<Option<usize>> {
        let held = self.nodes.node(leaf).lock();
        if held.fields.is_gone() {
            return Ok(None);
        }
        let used = self.load(leaf)?.used().count();
        Ok(Some(used + held.fields.unflushed()))
    }

    /// Splits the leaf of the key `fence` so that `lower` of its keys stay. The new leaf may be the
    /// one that puts leave to deletes. Returns the new leaf, or `None` if `leaf` no longer has that
    /// fence, or has no more than `lower` keys.
    fn divide(&self, leaf: LeafId, fence: &[u8], lower: usize) -> Result<Option<LeafId>> {
        let mut held = self.nodes.node(leaf).lock();
        if held.fields.is_gone() || self.index.find(fence) != Self::page(leaf) {
            return Ok(None);
        }
        if held.fields.unflushed() > 0 {
            self.flush(&mut held, leaf, None)?;
        }
        let Some(plan) = self.plan_division(leaf, lower, Room::Delete)? else {
            return Ok(None);
        };
        let plan = plan.with_copies(self.nodes.batch());
        let new = plan.new_leaf();
        let now = self.clock.tick();
        // A global buffer replays its whole log, unless a leaf has a timestamp of its own.
        let stamps = if self.logged && !self.stamped {
            Stamps::NONE
        } else {
            Stamps {
                late: held.flushed_at(),
                new: now,
            }
        };
        let written = self.carry_out(leaf, plan, stamps)?;
        held.set_flushed_at(now);
        self.keep_cached(&mut held, &written)?;
        Ok(new)
    }
}

#[cfg(test)]
mod tests {
    use super::keys_to_the_left;

    /// For all numbers of keys in three leaves: they are redistributed if they fit in two and the
    /// middle one has at least two.
    #[test]
    fn three_leaves_are_shared_out_if_they_fit_two() {
        const SLOTS: usize = 5;
        for left in 1..=SLOTS {
            for middle in 2..=SLOTS {
                for right in 1..=SLOTS {
                    let keys = [left, middle, right];
                    let pair = left + middle <= SLOTS || middle + right <= SLOTS;
                    let fit = left + middle + right <= 2 * SLOTS;
                    let Some(lower) = keys_to_the_left(keys, SLOTS) else {
                        // If two neighbours fit in one leaf, merging comes first.
                        assert!(pair || !fit, "{keys:?}");
                        continue;
                    };
                    assert!(fit && (1..middle).contains(&lower), "{keys:?}: {lower}");
                    let two = [left + lower, middle - lower + right];
                    assert!(two.iter().all(|keys| *keys <= SLOTS), "{keys:?}: {two:?}");
                }
            }
        }
    }
}
