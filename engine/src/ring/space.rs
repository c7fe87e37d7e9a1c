//! The positions of blocks and how the addresses move: `RingMemory.tla`, under one short mutex.
//!
//! ```text
//!      head      claimed    tail - in_place                 tail   logical addresses: only grow
//!       |           |           |                            |
//!       v           v           v                            v       offset = address mod capacity
//!       [ being evicted | copy on access | updated in place  ]  free
//! ```
//!
//! The spec's `secondChance` is max(tail - in_place, head): it follows the tail, and the head
//! pushes it. A block in use is never below the head, so for a block only the first term matters,
//! and no variable is needed.
//!
//! Every function is O(1), except [`Space::walk`] and runs of dead blocks at the head, each of
//! which is passed once. All but `walk` are called with the mutex held (they are behind it), and
//! change a header and the addresses together.

use std::collections::BTreeSet;

use super::events::Event;
use super::free_list::FreeLists;
use super::header::{HEADER, Header, State};
use super::region::{Block, Region};
use super::stats::RingStats;
use crate::PageId;
use crate::events::Hook;
use crate::mutation;

/// The addresses, the free lists and the counters.
#[derive(Debug)]
pub(super) struct Space {
    capacity: u64,
    /// Size of the region before the tail in which mini-pages are updated in place.
    in_place: u64,
    /// The oldest address in use.
    pub(super) head: u64,
    /// The address up to which blocks have been claimed for eviction.
    pub(super) claimed: u64,
    /// The next address to be allocated.
    pub(super) tail: u64,
    lists: FreeLists,
    /// Addresses of blocks whose claims were given back: the next evictors take them first.
    pub(super) returned: BTreeSet<u64>,
    pub(super) stats: RingStats,
}

/// An allocation request.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    pub(super) page: PageId,
    pub(super) class: usize,
    pub(super) footprint: u64,
    /// The block that will be replaced.
    pub(super) old: Option<u64>,
}

/// The result of examining a claimed block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dead {
    /// The block was dead and is now marked as evicted.
    Yes,
    /// The block is a mini-page, or will be one.
    No,
}

/// A block found by a walk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) offset: u64,
    pub(super) header: Header,
}

impl Space {
    pub(super) fn new(capacity: u64, in_place: u64, stats: RingStats) -> Self {
        Self {
            capacity,
            in_place,
            head: 0,
            claimed: 0,
            tail: 0,
            lists: FreeLists::new(stats.classes.len()),
            returned: BTreeSet::new(),
            stats,
        }
    }

    pub(super) fn offset_of(&self, address: u64) -> u64 {
        address % self.capacity
    }

    /// The address that an offset stands for at present.
    fn address_of(&self, offset: u64) -> u64 {
        let from_head = offset + self.capacity - self.offset_of(self.head);
        self.head + from_head % self.capacity
    }

    /// Returns whether the block is in the copy-on-access region (§4.1).
    pub(super) fn near_head(&self, offset: u64) -> bool {
        self.address_of(offset) + self.in_place < self.tail
    }

    fn is_claimed(&self, offset: u64) -> bool {
        self.address_of(offset) < self.claimed
    }

    fn no_room(&self, footprint: u64) -> bool {
        self.tail + footprint > self.head + self.capacity
    }

    fn straddles(&self, footprint: u64) -> bool {
        self.offset_of(self.tail) + footprint > self.capacity && !mutation::on("ring-no-padding")
    }

    /// The block at an offset that the caller obtained in one of the ways that `region` lists.
    fn block<'r>(&self, region: &'r Region, offset: u64) -> Block<'r> {
        // SAFETY: offsets come from the free lists, a claim or a page's lock of the caller, or are
        // the tail's. Addresses move only under the mutex, which the caller holds.
        unsafe { region.block(offset) }
    }

    /// The next block at the tail.
    fn begin<'r>(&self, region: &'r Region, tail: u64) -> Block<'r> {
        let block = self.block(region, tail);
        // SAFETY: the tail has not moved past it, and the caller holds the mutex.
        unsafe { block.begin() };
        block
    }

    /// Allocates a block (§4.2, Alloc), from the free list of its class or else from the tail.
    /// Returns `None` if the ring is full.
    pub(super) fn allocate(
        &mut self,
        region: &Region,
        wanted: Wanted,
        hook: &Hook<Event>,
    ) -> Option<u64> {
        let Wanted {
            page,
            footprint: bytes,
            ..
        } = wanted;
        let reused = self.reuse(region, wanted, hook);
        let found = reused.or_else(|| self.allocate_at_tail(region, wanted, hook));
        match found {
            Some(at) => {
                self.block(region, at)
                    .set_header(Header::new(State::Allocated, bytes, page));
                if wanted.old.is_some_and(|old| self.near_head(old)) {
                    self.stats.copies_to_tail += 1;
                }
            }
            None => {
                self.stats.full_returns += 1;
                hook.tell(|| Event::Full { page, bytes });
            }
        }
        found
    }

    /// Performs `PopFreeList`, then `Reuse` or `PassOver`, in one critical section.
    fn reuse(&mut self, region: &Region, wanted: Wanted, hook: &Hook<Event>) -> Option<u64> {
        let Wanted {
            page,
            class,
            footprint,
            ..
        } = wanted;
        while let Some(at) = self.lists.first(class) {
            let stale = self.is_claimed(at);
            let unchecked = mutation::on("ring-pop-unchecked");
            if !stale || unchecked {
                // Emitted before the list's links are read: if the list is corrupt, this is the
                // last event.
                hook.tell(|| Event::Reused {
                    page,
                    at,
                    bytes: footprint,
                });
            }
            if unchecked {
                // The pointer stays on the list.
                return Some(at);
            }
            self.lists.remove(region, class, at);
            self.stats.listed_bytes -= footprint;
            if !stale {
                self.stats.classes[class].from_list += 1;
                return Some(at);
            }
            // An evictor waits for this block, so leave it to that evictor.
            self.bury(region, at, footprint);
            hook.tell(|| Event::PassedOver { page, at });
        }
        None
    }

    /// Performs `Pad` if necessary, then `Allocate`.
    fn allocate_at_tail(
        &mut self,
        region: &Region,
        wanted: Wanted,
        hook: &Hook<Event>,
    ) -> Option<u64> {
        let Wanted {
            page,
            class,
            footprint: bytes,
            ..
        } = wanted;
        if !self.no_room(bytes) && self.straddles(bytes) {
            // Not in the paper (CircularBuffer 3): the rest before the physical end becomes a
            // tombstone.
            let at = self.offset_of(self.tail);
            let rest = self.capacity - at;
            self.begin(region, at)
                .set_header(Header::dead(State::Tombstone, rest));
            self.tail += rest;
            self.stats.padding_bytes += rest;
            hook.tell(|| Event::Padded {
                page,
                at,
                bytes: rest,
            });
        }
        if self.no_room(bytes) {
            return None;
        }
        let at = self.offset_of(self.tail);
        self.begin(region, at);
        self.tail += bytes;
        self.stats.classes[class].from_tail += 1;
        hook.tell(|| Event::Allocated { page, at, bytes });
        Some(at)
    }

    /// How far the head must move before `footprint` bytes fit: the amount for a caller to evict
    /// when the ring is full.
    pub(super) fn short_of(&self, footprint: u64) -> u64 {
        let offset = self.offset_of(self.tail);
        let padding = if offset + footprint > self.capacity {
            self.capacity - offset
        } else {
            0
        };
        (self.tail + padding + footprint).saturating_sub(self.head + self.capacity)
    }

    fn bury(&mut self, region: &Region, at: u64, footprint: u64) {
        self.block(region, at)
            .set_header(Header::dead(State::Tombstone, footprint));
        self.stats.tombstone_bytes += footprint;
    }

    /// Frees a block (§4.2, Dealloc). Puts it on its free list and returns true; or, near the head,
    /// makes it a tombstone (§5.5) and returns false.
    pub(super) fn free(&mut self, region: &Region, class: usize, at: u64) -> bool {
        let footprint = self.block(region, at).known_header().footprint();
        self.stats.classes[class].freed += 1;
        let listed = !self.near_head(at);
        if listed {
            self.lists.push(region, class, at, footprint);
            self.stats.listed_bytes += footprint;
        } else {
            self.bury(region, at, footprint);
        }
        listed
    }

    /// Claims the next block to evict: one whose claim was given back, or else the first unclaimed
    /// one. `None` if there is neither.
    pub(super) fn claim(&mut self, region: &Region, hook: &Hook<Event>) -> Option<u64> {
        let returned = self.returned.pop_first();
        let address = returned.or_else(|| (self.claimed < self.tail).then_some(self.claimed))?;
        let at = self.offset_of(address);
        let bytes = self.block(region, at).known_header().footprint();
        if returned.is_none() {
            assert!(
                bytes > 0,
                "NoOverlapInv: no block at the claimed address {address}"
            );
            self.claimed += bytes;
        }
        let again = returned.is_some();
        hook.tell(|| Event::Claimed { at, bytes, again });
        Some(address)
    }

    /// Evicts a claimed block if it is dead: `Skip`, `Unlist`.
    pub(super) fn clear(
        &mut self,
        region: &Region,
        class_of: impl Fn(u64) -> usize,
        address: u64,
        hook: &Hook<Event>,
    ) -> Dead {
        let at = self.offset_of(address);
        let block = self.block(region, at);
        let header = block.known_header();
        let footprint = header.footprint();
        if header.is(State::Tombstone) {
            hook.tell(|| Event::Skipped { at });
        } else if header.is(State::Listed) {
            // The pointer must be off its list before the head passes the block (CircularBuffer 2).
            if !mutation::on("ring-listed-block-passed") {
                self.lists.remove(region, class_of(footprint), at);
                self.stats.listed_bytes -= footprint;
            }
            hook.tell(|| Event::Unlisted { at });
        } else {
            return Dead::No;
        }
        block.set_header(Header::dead(State::Evicted, footprint));
        Dead::Yes
    }

    /// Marks a claimed block as evicted after its mini-page has been unmapped.
    pub(super) fn evicted(
        &mut self,
        region: &Region,
        class_of: impl Fn(u64) -> usize,
        address: u64,
    ) {
        let block = self.block(region, self.offset_of(address));
        let footprint = block.known_header().footprint();
        block.set_header(Header::dead(State::Evicted, footprint));
        self.stats.evictions += 1;
        self.stats.classes[class_of(footprint)].evicted += 1;
    }

    /// Moves the head past all evicted blocks, in order (§4.3), whichever thread evicted them.
    /// Returns whether it moved.
    pub(super) fn advance(&mut self, region: &Region, own: u64, hook: &Hook<Event>) -> bool {
        let before = self.head;
        if mutation::on("ring-head-out-of-order") {
            let block = self.block(region, self.offset_of(own));
            self.head = own + block.known_header().footprint();
        }
        while self.head < self.claimed {
            let at = self.offset_of(self.head);
            let header = self.block(region, at).known_header();
            if !header.is(State::Evicted) {
                break;
            }
            self.head += header.footprint();
            self.stats.passed_bytes += header.footprint();
            hook.tell(|| Event::Passed { at });
        }
        self.head != before
    }

    /// The pages of unclaimed blocks, oldest first, and the bytes of all blocks up to the last of
    /// these.
    pub(super) fn next_victims(
        &self,
        region: &Region,
        most: usize,
        bytes: u64,
    ) -> (Vec<PageId>, u64) {
        let (mut pages, mut address) = (Vec::with_capacity(most), self.claimed);
        let until = self.tail.min(self.claimed + bytes);
        // Dead blocks count towards the limit, too, to bound the walk.
        for _ in 0..2 * most {
            if address >= until || pages.len() == most {
                break;
            }
            let header = self.block(region, self.offset_of(address)).known_header();
            if header.is(State::Ready) {
                pages.push(header.page());
            }
            address += header.footprint();
        }
        (pages, address - self.claimed)
    }

    /// All blocks from head to tail, in order. `Err` is the address at which the walk failed.
    /// O(blocks).
    pub(super) fn walk(&self, region: &Region) -> Result<Vec<Found>, u64> {
        let (mut found, mut address) = (Vec::new(), self.head);
        while address < self.tail {
            let offset = self.offset_of(address);
            if !offset.is_multiple_of(super::region::GRAIN) {
                return Err(address);
            }
            let header = self.block(region, offset).header();
            if header.state().is_none() || header.footprint() < HEADER {
                return Err(address);
            }
            found.push(Found { offset, header });
            address += header.footprint();
        }
        if address == self.tail {
            Ok(found)
        } else {
            Err(address)
        }
    }

    pub(super) fn listed(&self, region: &Region, class: usize) -> Vec<u64> {
        let most = self.capacity / HEADER;
        self.lists.offsets(region, class, most as usize)
    }
}
