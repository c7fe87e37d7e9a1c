//! Locks on pages, and access to the bytes that they protect.
//!
//! ```text
//! shared(page) --> Shared --try_upgrade--> Exclusive <-- exclusive(page)
//!                  bytes()   <--downgrade-- bytes_mut()
//!                                           |
//!                                           v
//!                                        allocate(len) --> Fresh --publish--> Exclusive, new block
//!                                           |                |                (old one freed)
//!                                           v                +---abandon----> Exclusive, old block
//!                                        NoBlock, Full: give_back, make_room, start again
//! ```
//!
//! Growing, creating, shrinking and copying to the tail are all "a read-copy-update":
//! [`Exclusive::allocate`], fill, [`Fresh::publish`], in the order copy, publish, free
//! (`BufferThreads.tla`). A guard belongs to the thread that made it.
//!
//! Why the slices are sound: a block whose offset is in a page's word is `Ready` and has that page
//! in its header (`MappedInv`). It is freed or evicted only under the exclusive lock of that page.
//! So under a shared lock nobody writes, and under the exclusive lock nobody else reads or writes.
//! A `Fresh` block is in no word at all.

use std::marker::PhantomData;
use std::mem;

use super::header::{HEADER, Header, State};
use super::region::Block;
use super::space::Wanted;
use super::{Event, Ring};
use crate::PageId;
use crate::held::{self, Kind};
use crate::mapping::{LeafAddress, PageError, Place, Word};
use crate::sync::atomic::AtomicU32;

/// The ring has no free block. The caller must release every page that it holds and call
/// [`Ring::make_room`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the ring is full: the head must move {short} bytes for a block of {wanted}")]
#[must_use = "make room and try again"]
pub struct Full {
    /// Bytes of the block, header included.
    pub wanted: u64,
    /// How far the head must move before a block like this fits.
    pub short: u64,
}

/// An allocation that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AllocateError {
    /// The ring has no free block now.
    #[error(transparent)]
    Full(#[from] Full),
    /// No size class is large enough.
    #[error("{len} bytes are more than the largest size class, {largest}")]
    TooLarge {
        /// The requested size.
        len: usize,
        /// Payload of the largest class.
        largest: usize,
    },
}

/// The state that both guards share; they unlock on drop.
#[derive(Clone, Copy)]
pub(super) struct Locked<'a> {
    ring: &'a Ring,
    page: PageId,
    word: &'a Word,
    /// The address in the word: an encoded [`Place`], which is decoded when needed.
    bits: u64,
    /// Makes the guard neither `Send` nor `Sync`: see `held`.
    here: PhantomData<*const ()>,
}

impl<'a> Locked<'a> {
    #[inline]
    pub(super) fn new(ring: &'a Ring, page: PageId, word: &'a Word, bits: u64) -> Self {
        held::one_more(Kind::RingPage);
        if let Place::Block(at) = Place::of(bits) {
            ring.region.prefetch(at);
        }
        Self {
            ring,
            page,
            word,
            bits,
            here: PhantomData,
        }
    }

    #[inline]
    fn place(&self) -> Place {
        Place::of(self.bits)
    }

    #[inline]
    fn is_free(&self) -> bool {
        self.bits == Place::FREE_BITS
    }

    #[inline]
    fn block(&self) -> Option<Block<'a>> {
        match self.place() {
            // SAFETY: the page's word, read under its lock, points at the page's own block, which
            // is freed or evicted only under the exclusive lock.
            Place::Block(at) => Some(unsafe { self.ring.region.block(at) }),
            Place::Free | Place::Leaf(_) => None,
        }
    }

    fn leaf(&self) -> Option<LeafAddress> {
        match self.place() {
            Place::Leaf(leaf) => Some(leaf),
            Place::Free | Place::Block(_) => None,
        }
    }

    /// The payload, for as long as the guard is borrowed.
    #[inline]
    fn bytes(&self) -> Option<&[u8]> {
        let block = self.block()?;
        let footprint = block.known_header().footprint();
        // SAFETY: the footprint is the header's, and the lock keeps writers out while the guard is
        // borrowed.
        Some(unsafe { block.bytes(self.ring.marks, footprint) })
    }

    #[inline]
    fn marks(&self) -> Option<&AtomicU32> {
        let block = self.block().filter(|_| self.ring.marks > 0)?;
        // SAFETY: the block stays the page's for as long as the guard lives. In a ring with marks,
        // all slices begin behind the marks, and the links of a free block are touched only while
        // no page has the block.
        Some(unsafe { block.marks() })
    }

    #[inline]
    fn near_head(&self) -> bool {
        match self.place() {
            Place::Block(at) => self.ring.near_head(self.page, at),
            Place::Free | Place::Leaf(_) => false,
        }
    }
}

/// A page under a shared lock.
pub struct Shared<'a>(Locked<'a>);

impl<'a> Shared<'a> {
    #[inline]
    pub(super) fn new(locked: Locked<'a>) -> Result<Self, PageError> {
        let shared = Self(locked);
        if shared.0.is_free() {
            let page = shared.0.page;
            return Err(PageError::Unknown { page });
        }
        Ok(shared)
    }

    /// The page's id.
    #[must_use]
    pub fn page(&self) -> PageId {
        self.0.page
    }

    /// The leaf's address, for a page without a mini-page. With a mini-page, the tree keeps the
    /// address in it.
    #[inline]
    #[must_use]
    pub fn leaf(&self) -> Option<LeafAddress> {
        self.0.leaf()
    }

    /// The mini-page, if the page has one.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> Option<&[u8]> {
        self.0.bytes()
    }

    /// The mini-page's marks: 32 bits that readers may set, too, and whose meaning the tree
    /// defines. They are 0 in a new block. `None` if the ring has no marks
    /// ([`RingOptions::marks`](super::RingOptions::marks)).
    #[inline]
    #[must_use]
    pub fn marks(&self) -> Option<&AtomicU32> {
        self.0.marks()
    }

    /// Returns whether the mini-page is near the head. A thread that uses such a page copies it to
    /// the tail if it can (§4.1, §5.5).
    #[inline]
    #[must_use]
    pub fn in_copy_on_access_region(&self) -> bool {
        self.0.near_head()
    }

    /// Upgrades to the exclusive lock, if no other reader holds the page.
    ///
    /// # Errors
    /// The guard itself, if another reader does: leave the copy to a later access (CircularBuffer
    /// 5).
    pub fn try_upgrade(self) -> Result<Exclusive<'a>, Self> {
        if !self.0.word.try_upgrade() {
            return Err(self);
        }
        let locked = self.0;
        mem::forget(self);
        Ok(Exclusive(locked))
    }
}

impl Drop for Shared<'_> {
    #[inline]
    fn drop(&mut self) {
        held::one_less(Kind::RingPage);
        self.0.word.unlock_shared();
    }
}

/// A page under an exclusive lock, with its mini-page and its leaf.
pub struct Exclusive<'a>(Locked<'a>);

impl<'a> Exclusive<'a> {
    #[inline]
    pub(super) fn new(locked: Locked<'a>) -> Result<Self, PageError> {
        let exclusive = Self(locked);
        if exclusive.0.is_free() {
            let page = exclusive.0.page;
            return Err(PageError::Unknown { page });
        }
        Ok(exclusive)
    }

    /// The lock of an evictor, which may find that the page has moved or is gone.
    pub(super) fn of_victim(locked: Locked<'a>) -> Self {
        Self(locked)
    }

    /// The page's id.
    #[must_use]
    pub fn page(&self) -> PageId {
        self.0.page
    }

    /// The leaf's address, for a page without a mini-page.
    #[inline]
    #[must_use]
    pub fn leaf(&self) -> Option<LeafAddress> {
        self.0.leaf()
    }

    /// The mini-page, if the page has one.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> Option<&[u8]> {
        self.0.bytes()
    }

    /// The mini-page, if the page has one, to change in place.
    #[inline]
    #[must_use]
    pub fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        let block = self.0.block()?;
        let footprint = block.known_header().footprint();
        // SAFETY: the footprint is the header's; nobody else has the page, and the guard is
        // borrowed mutably.
        Some(unsafe { block.bytes_mut(self.0.ring.marks, footprint) })
    }

    /// The mini-page's marks: 32 bits that readers may set, too, and whose meaning the tree
    /// defines. They are 0 in a new block. `None` if the ring has no marks
    /// ([`RingOptions::marks`](super::RingOptions::marks)).
    #[inline]
    #[must_use]
    pub fn marks(&self) -> Option<&AtomicU32> {
        self.0.marks()
    }

    /// Returns whether the mini-page is near the head, so that it should be copied rather than
    /// changed in place (§4.1).
    #[inline]
    #[must_use]
    pub fn in_copy_on_access_region(&self) -> bool {
        self.0.near_head()
    }

    pub(super) fn points_at(&self, at: u64) -> bool {
        self.0.place() == Place::Block(at)
    }

    /// Allocates a block for a mini-page of at least `len` bytes, which will replace the page's
    /// present block, if any.
    ///
    /// # Errors
    /// [`NoBlock`], which contains the guard. If the reason is [`Full`], release the guard before
    /// making room. Otherwise, no class holds `len` bytes.
    pub fn allocate(self, len: usize) -> Result<Fresh<'a>, NoBlock<'a>> {
        let Locked { ring, page, .. } = self.0;
        let Some(class) = ring.class_for(len + ring.marks as usize) else {
            let overhead = HEADER + ring.marks;
            let largest = ring.classes.last().map_or(0, |f| (f - overhead) as usize);
            let why = AllocateError::TooLarge { len, largest };
            return Err(NoBlock { page: self, why });
        };
        let footprint = ring.classes[class];
        let old = match self.0.place() {
            Place::Block(at) => Some(at),
            Place::Free | Place::Leaf(_) => None,
        };
        let wanted = Wanted {
            page,
            class,
            footprint,
            old,
        };
        match ring.allocate(wanted) {
            Ok(at) => {
                // SAFETY: the block is `Allocated`, a state that only `NewBlock` ends.
                let block = unsafe { ring.region.block(at) };
                if ring.marks > 0 {
                    // SAFETY: as above, and no part of the block has been handed out yet.
                    unsafe { block.clear_marks() };
                }
                let block = NewBlock {
                    ring,
                    page,
                    block,
                    at,
                    footprint,
                };
                Ok(Fresh { block, page: self })
            }
            Err(full) => Err(NoBlock {
                page: self,
                why: full.into(),
            }),
        }
    }

    /// Makes the page a leaf without a mini-page. A mini-page that the caller has merged is freed.
    pub fn set_leaf(&mut self, leaf: LeafAddress) {
        self.leave_for(Place::Leaf(leaf));
    }

    /// Frees the page and its mini-page. The id will be reused.
    pub fn free_page(mut self) {
        self.leave_for(Place::Free);
        let (ring, page) = (self.0.ring, self.0.page);
        drop(self);
        ring.table.release(page);
    }

    fn leave_for(&mut self, place: Place) {
        let Locked {
            ring, page, word, ..
        } = self.0;
        let old = mem::replace(&mut self.0.bits, place.bits());
        word.redirect(old, place.bits());
        if let Place::Block(at) = Place::of(old) {
            ring.hook.tell(|| Event::Discarded { page, at });
            ring.free(page, at);
        }
    }

    /// Sets the page's address to `leaf` and releases its lock in one step (CircularBuffer 6). The
    /// caller, who claimed the block, keeps it.
    pub(super) fn unmap(self, leaf: LeafAddress) {
        let Locked { word, bits, .. } = self.0;
        mem::forget(self);
        held::one_less(Kind::RingPage);
        word.unlock(bits, Place::Leaf(leaf).bits());
    }

    /// Turns the exclusive lock into a shared one, without a gap in which another thread could
    /// change the page.
    #[must_use]
    pub fn downgrade(self) -> Shared<'a> {
        let locked = self.0;
        mem::forget(self);
        locked.word.downgrade();
        Shared(locked)
    }
}

impl Drop for Exclusive<'_> {
    #[inline]
    fn drop(&mut self) {
        held::one_less(Kind::RingPage);
        self.0.word.unlock(self.0.bits, self.0.bits);
    }
}

/// A block that belongs to no page yet; its bytes are arbitrary. If dropped, the block is freed and
/// the page is unlocked unchanged.
///
/// An evictor that reaches the block waits for it: fill and publish it, and do no I/O in between.
pub struct Fresh<'a> {
    /// Declared first, so that it is dropped before the page is unlocked.
    block: NewBlock<'a>,
    page: Exclusive<'a>,
}

/// An allocated block, which is freed on drop.
struct NewBlock<'a> {
    ring: &'a Ring,
    page: PageId,
    block: Block<'a>,
    at: u64,
    footprint: u64,
}

impl Drop for NewBlock<'_> {
    fn drop(&mut self) {
        self.ring.abandon(self.page, self.at);
    }
}

impl<'a> Fresh<'a> {
    /// The mini-page that the block will replace.
    #[must_use]
    pub fn old(&self) -> Option<&[u8]> {
        self.page.bytes()
    }

    /// The bytes to fill: all of the size class.
    #[must_use]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.both().1
    }

    /// The mini-page that the block will replace, and the bytes to fill.
    #[must_use]
    pub fn both(&mut self) -> (Option<&[u8]>, &mut [u8]) {
        let NewBlock {
            ring,
            block,
            footprint,
            ..
        } = self.block;
        // SAFETY: an allocated block belongs to this guard alone, and the guard is borrowed
        // mutably. The old one is another block.
        let new = unsafe { block.bytes_mut(ring.marks, footprint) };
        (self.page.bytes(), new)
    }

    /// Makes this block the page's mini-page and frees the old one.
    pub fn publish(self) -> Exclusive<'a> {
        let Self { block, mut page } = self;
        let NewBlock {
            ring,
            page: id,
            at,
            footprint,
            ..
        } = block;
        let new = Place::Block(at).bits();
        let old = mem::replace(&mut page.0.bits, new);
        block
            .block
            .set_header(Header::new(State::Ready, footprint, id));
        page.0.word.redirect(old, new);
        mem::forget(block);
        ring.hook.tell(|| Event::Published { page: id, at });
        if let Place::Block(old) = Place::of(old) {
            ring.free(id, old);
        }
        page
    }

    /// Frees the block and returns the page unchanged.
    pub fn abandon(self) -> Exclusive<'a> {
        self.page
    }
}

/// A failed allocation, with the page, which is still locked.
pub struct NoBlock<'a> {
    /// The page for which the block was wanted.
    pub page: Exclusive<'a>,
    /// Why there is no block.
    pub why: AllocateError,
}

impl NoBlock<'_> {
    /// Unlocks the page, which must be done before making room.
    pub fn give_back(self) -> AllocateError {
        self.why
    }
}

impl std::fmt::Debug for NoBlock<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "no block for {}: {}", self.page.page(), self.why)
    }
}
