//! What the ring does, in the words of `specs/circular_buffer`, told where it happens.
//!
//! | event | actions of the spec | told |
//! |---|---|---|
//! | [`Looked`](Event::Looked) | `OnSecondChance`, on which `Write`, `Grow`, `CopyToTail`, `Return` turn | under the ring's mutex |
//! | [`Reused`](Event::Reused) | `PopFreeList`, `Reuse` | under the ring's mutex |
//! | [`PassedOver`](Event::PassedOver) | `PopFreeList`, `PassOver` | under the ring's mutex |
//! | [`Padded`](Event::Padded) | `Pad` | under the ring's mutex |
//! | [`Allocated`](Event::Allocated) | `Allocate` | under the ring's mutex |
//! | [`Full`](Event::Full) | `Full`; the caller gives its page back | under the ring's mutex |
//! | [`Published`](Event::Published) | `Copy`, `Publish` | under the page's lock |
//! | [`Freed`](Event::Freed) | `Deallocate` | under both |
//! | [`Claimed`](Event::Claimed) | `Claim`; of a claim given back: none, another thread goes on with it | under the ring's mutex |
//! | [`Retried`](Event::Retried) | `Retry` | under the ring's mutex |
//! | [`Skipped`](Event::Skipped), [`Unlisted`](Event::Unlisted) | `Skip`, `Unlist` | under the ring's mutex |
//! | [`VictimLocked`](Event::VictimLocked) | `FindPage`, `LockVictim`, that found its victim | under the page's lock |
//! | [`VictimMoved`](Event::VictimMoved) | `FindPage`, `LockVictim`, that did not | under the page's lock |
//! | [`Merged`](Event::Merged) | `WriteLeaf`, if there is something dirty | under the page's lock |
//! | [`Unmapped`](Event::Unmapped) | `Unmap` | under the page's lock, just before it is given back |
//! | [`ClaimReturned`](Event::ClaimReturned) | none: the merge failed, the victim is unlocked and its block claimed and waiting | under the ring's mutex |
//! | [`Passed`](Event::Passed) | `Finish`, of whoever claimed the block | under the ring's mutex |
//! | [`Pauses`](Event::Pauses) | none: an evictor between two steps | with nothing held, and so in no order |
//! | [`Abandoned`](Event::Abandoned), [`Discarded`](Event::Discarded) | none: see [`crate::ring`] | under both; under the page's lock |
//!
//! Each event but `Pauses` is told under the lock that orders it among those that it could race with, so the order of telling is an order in which
//! things happened. For `Looked` this takes the mutex, which the ring does not do without an observer: there the answer may be older
//! than the last allocation, and nothing depends on it but how long a mini-page stays.
//!
//! `Call`, `LockPage`, `Read`, `Write` and `Return` are the callers', who know what they lock a page for.
//!
//! Pointers are the spec's: offsets in the ring. Without an observer the cost is one branch on a field that is never written.

use crate::PageId;

/// One step of the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are those of the module's table")]
pub enum Event {
    /// Somebody with a lock on the page asked whether its block is in the copy-on-access region.
    Looked {
        page: PageId,
        at: u64,
        near_head: bool,
    },
    /// A block from the free list of its size.
    Reused { page: PageId, at: u64, bytes: u64 },
    /// A block was popped that an evictor has claimed: it becomes a tombstone.
    PassedOver { page: PageId, at: u64 },
    /// What was left before the physical end becomes a tombstone.
    Padded { page: PageId, at: u64, bytes: u64 },
    /// A block from the tail.
    Allocated { page: PageId, at: u64, bytes: u64 },
    /// No block.
    Full { page: PageId, bytes: u64 },
    /// The page's mini-page is the block.
    Published { page: PageId, at: u64 },
    /// The page's former block is free.
    Freed { page: PageId, at: u64, listed: bool },
    /// An allocation was dropped.
    Abandoned { page: PageId, at: u64, listed: bool },
    /// The page has no mini-page any more; `Freed` follows.
    Discarded { page: PageId, at: u64 },
    /// Somebody will evict the block.
    Claimed { at: u64, bytes: u64, again: bool },
    /// There is nothing to evict.
    Retried,
    /// The claimed block is a tombstone: nothing to evict.
    Skipped { at: u64 },
    /// The claimed block was on a free list, and no longer is.
    Unlisted { at: u64 },
    /// The claimed block is the mini-page of this page, which is locked.
    VictimLocked { page: PageId, at: u64 },
    /// The mini-page of this page, which is locked for an instant, is no longer the claimed block.
    VictimMoved { page: PageId, at: u64 },
    /// The callback has merged the page's mini-page.
    Merged { page: PageId, at: u64 },
    /// The page is its leaf only; its lock is free.
    Unmapped { page: PageId, at: u64 },
    /// The callback failed: the block waits for the next evictor.
    ClaimReturned { at: u64 },
    /// The head moved over the block.
    Passed { at: u64 },
    /// Who evicts the block holds nothing, and goes on to this.
    Pauses { at: u64, before: Pause },
}

/// What an evictor comes to next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pause {
    /// To look at the block that it has claimed.
    Look,
    /// To lock the page that the block's header names.
    Lock,
    /// To move the head over the block, which is unmapped.
    Pass,
}
