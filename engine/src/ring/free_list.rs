//! Free lists by exact size class (Bf-Tree §4.1, §4.2), threaded through the free blocks themselves.
//!
//! ```text
//! class 64 B    first --> [h|next|prev|..] <--> [h|next|prev|..]          offsets; NONE at either end
//! class 128 B   first --> NONE
//! ```
//!
//! Doubly linked, so that an evictor takes a block out of the middle in O(1) (`UnlistBlock`; CircularBuffer 2: what the head passes must be
//! on no list). Links live in the payloads, so lists need no memory however long they get. All is done under the ring's mutex, and
//! whoever takes a block off a list changes the block's state in the same critical section: the spec's state between `PopFreeList` and
//! `Reuse`, in which the finding's stale pointers live, does not exist here.

use super::header::{Header, State};
use super::region::{Block, Region};

const NONE: u64 = u64::MAX;

/// The lists, one a class.
#[derive(Debug)]
pub(super) struct FreeLists {
    first: Vec<u64>,
}

/// A block on some list.
///
/// The caller holds the ring's mutex: every function here takes `&mut FreeLists`, which lives behind it.
fn listed(region: &Region, offset: u64) -> Block<'_> {
    // SAFETY: offsets on a list are those of blocks that were put there as free; an evictor takes a block off before the head passes.
    unsafe { region.block(offset) }
}

impl FreeLists {
    pub(super) fn new(classes: usize) -> Self {
        Self {
            first: vec![NONE; classes],
        }
    }

    /// A block that the list of `class` offers.
    pub(super) fn first(&self, class: usize) -> Option<u64> {
        Some(self.first[class]).filter(|offset| *offset != NONE)
    }

    /// Puts a block on the list of its class.
    pub(super) fn push(&mut self, region: &Region, class: usize, offset: u64, footprint: u64) {
        let next = self.first[class];
        let block = listed(region, offset);
        block.set_header(Header::dead(State::Listed, footprint));
        // SAFETY: the block is free, as its header now says, and the mutex is held.
        unsafe { block.set_links([next, NONE]) };
        if next != NONE {
            relink(region, next, |[next, _]| [next, offset]);
        }
        self.first[class] = offset;
    }

    /// Takes a block off the list of its class; its state is for the caller to change.
    pub(super) fn remove(&mut self, region: &Region, class: usize, offset: u64) {
        // SAFETY: a listed block is free, and the mutex is held.
        let [next, previous] = unsafe { listed(region, offset).links() };
        if previous == NONE {
            debug_assert_eq!(self.first[class], offset, "FreeListInv");
            self.first[class] = next;
        } else {
            relink(region, previous, |[_, previous]| [next, previous]);
        }
        if next != NONE {
            relink(region, next, |[next, _]| [next, previous]);
        }
    }

    /// What a list offers, in its order; at most `most`, for a list that is broken may be a circle.
    pub(super) fn offsets(&self, region: &Region, class: usize, most: usize) -> Vec<u64> {
        let mut found = Vec::new();
        let mut offset = self.first[class];
        while offset != NONE && found.len() < most {
            found.push(offset);
            // SAFETY: as in `remove`.
            [offset, _] = unsafe { listed(region, offset).links() };
        }
        found
    }
}

fn relink(region: &Region, offset: u64, change: impl FnOnce([u64; 2]) -> [u64; 2]) {
    let block = listed(region, offset);
    // SAFETY: a listed block is free, and the mutex is held.
    unsafe { block.set_links(change(block.links())) };
}
