//! Free lists by exact size class (Bf-Tree §4.1, §4.2), threaded through the free blocks
//! themselves.
//!
//! ```text
//! class 64 B    first --> [h|next|prev|..] <--> [h|next|prev|..]      offsets; NONE at either end
//! class 128 B   first --> NONE
//! ```
//!
//! The lists are doubly linked, so that an evictor can remove a block from the middle in O(1)
//! (`UnlistBlock`; CircularBuffer 2: a block that the head passes must be on no list). Links are in
//! the payloads of free blocks, so lists need no further memory however long they get. All
//! operations hold the ring's mutex, and a block's state is changed in the critical section that
//! takes it off its list. So the spec's state between `PopFreeList` and `Reuse`, in which that
//! finding's stale pointers exist, does not occur here.

use super::header::{Header, State};
use super::region::{Block, Region};

const NONE: u64 = u64::MAX;

/// The free lists, one for each size class.
#[derive(Debug)]
pub(super) struct FreeLists {
    first: Vec<u64>,
}

/// Returns a block that is on some list.
///
/// The caller holds the ring's mutex: every function here takes `&mut FreeLists`, which the mutex
/// guards.
fn listed(region: &Region, offset: u64) -> Block<'_> {
    // SAFETY: offsets on a list are of blocks that were freed; an evictor unlists a block before
    // the head passes it.
    unsafe { region.block(offset) }
}

impl FreeLists {
    pub(super) fn new(classes: usize) -> Self {
        Self {
            first: vec![NONE; classes],
        }
    }

    /// The first block on the list of `class`.
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

    /// Removes a block from the list of its class. The caller must change the block's state.
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

    /// The offsets on a list, in order. At most `most`, because a corrupt list may be circular.
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
