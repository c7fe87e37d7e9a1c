//! Events of the ring, named after the actions of `specs/circular_buffer` and emitted where they
//! happen.
//!
//! | event | actions of the spec | emitted |
//! |---|---|---|
//! | [`Looked`](Event::Looked) | `OnSecondChance` (see below) | mutex |
//! | [`Reused`](Event::Reused) | `PopFreeList`, `Reuse` | mutex |
//! | [`PassedOver`](Event::PassedOver) | `PopFreeList`, `PassOver` | mutex |
//! | [`Padded`](Event::Padded) | `Pad` | mutex |
//! | [`Allocated`](Event::Allocated) | `Allocate` | mutex |
//! | [`Full`](Event::Full) | `Full`; the caller releases its page | mutex |
//! | [`Published`](Event::Published) | `Copy`, `Publish` | page lock |
//! | [`Freed`](Event::Freed) | `Deallocate` | both |
//! | [`Claimed`](Event::Claimed) | `Claim`; none if a returned claim is taken over | mutex |
//! | [`Retried`](Event::Retried) | `Retry` | mutex |
//! | [`Skipped`](Event::Skipped) | `Skip` | mutex |
//! | [`Unlisted`](Event::Unlisted) | `Unlist` | mutex |
//! | [`VictimLocked`](Event::VictimLocked) | `FindPage`, `LockVictim`, victim found | page lock |
//! | [`VictimMoved`](Event::VictimMoved) | `FindPage`, `LockVictim`, victim gone | page lock |
//! | [`Merged`](Event::Merged) | `WriteLeaf`, if there is something dirty | page lock |
//! | [`Unmapped`](Event::Unmapped) | `Unmap` | page lock, just before its release |
//! | [`ClaimReturned`](Event::ClaimReturned) | none: the merge failed, the block waits | mutex |
//! | [`Passed`](Event::Passed) | `Finish`, of the thread that claimed the block | mutex |
//! | [`Pauses`](Event::Pauses) | none: an evictor between two steps | nothing held, unordered |
//! | [`Abandoned`](Event::Abandoned) | none: see [`crate::ring`] | both |
//! | [`Discarded`](Event::Discarded) | none: see [`crate::ring`] | page lock |
//!
//! `Write`, `Grow`, `CopyToTail` and `Return` depend on the answer of `OnSecondChance`. *Mutex* is
//! the ring's mutex, *page lock* the lock of the page, *both* means that both are held.
//!
//! Each event but `Pauses` is emitted under the lock that orders it among the events that it could
//! race with. So the order of emission is an order in which things happened. For `Looked` this
//! takes the mutex, which the ring does not take without an observer: the answer may then be older
//! than the last allocation, but only the residence time of a mini-page depends on it.
//!
//! `Call`, `LockPage`, `Read`, `Write` and `Return` are actions of the callers, who know why they
//! lock a page.
//!
//! Pointers are the spec's: offsets in the ring. Without an observer, the cost is one branch on a
//! field that is never written.

use crate::PageId;

/// One step of the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are those of the module's table")]
pub enum Event {
    /// A thread with a lock on the page asked whether its block is in the copy-on-access region.
    Looked {
        page: PageId,
        at: u64,
        near_head: bool,
    },
    /// An allocation took a block from the free list of its size.
    Reused { page: PageId, at: u64, bytes: u64 },
    /// The block popped from a free list is claimed by an evictor, so it became a tombstone.
    PassedOver { page: PageId, at: u64 },
    /// The rest before the physical end became a tombstone.
    Padded { page: PageId, at: u64, bytes: u64 },
    /// An allocation took a block from the tail.
    Allocated { page: PageId, at: u64, bytes: u64 },
    /// An allocation found no block.
    Full { page: PageId, bytes: u64 },
    /// The block became the page's mini-page.
    Published { page: PageId, at: u64 },
    /// The page's former block was freed.
    Freed { page: PageId, at: u64, listed: bool },
    /// An allocation was dropped unpublished.
    Abandoned { page: PageId, at: u64, listed: bool },
    /// The page lost its mini-page; `Freed` follows.
    Discarded { page: PageId, at: u64 },
    /// A thread claimed the block for eviction.
    Claimed { at: u64, bytes: u64, again: bool },
    /// There is nothing to evict.
    Retried,
    /// The claimed block is a tombstone: nothing to evict.
    Skipped { at: u64 },
    /// The claimed block was on a free list and was removed from it.
    Unlisted { at: u64 },
    /// The claimed block is the mini-page of this page, which is now locked.
    VictimLocked { page: PageId, at: u64 },
    /// This page, locked for an instant, no longer has the claimed block as its mini-page.
    VictimMoved { page: PageId, at: u64 },
    /// The callback has merged the page's mini-page.
    Merged { page: PageId, at: u64 },
    /// The page has only its leaf; its lock is about to be released.
    Unmapped { page: PageId, at: u64 },
    /// The callback failed: the block waits for the next evictor.
    ClaimReturned { at: u64 },
    /// The head moved past the block.
    Passed { at: u64 },
    /// The evictor of the block holds nothing, and this is its next step.
    Pauses { at: u64, before: Pause },
}

/// The next step of an evictor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pause {
    /// To examine the block that it has claimed.
    Look,
    /// To lock the page that the block's header names.
    Lock,
    /// To move the head past the block, which is unmapped.
    Pass,
}
