//! Checks of the invariants of `RingMemory.tla` and `CircularBuffer.tla` on a live ring, for tests
//! and debugging.

use std::collections::BTreeSet;

use super::Ring;
use super::header::State;
use super::space::Found;
use crate::PageId;
use crate::mapping::Place;

/// Bytes by kind of block, headers included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Blocks that are allocated but not yet published.
    pub allocated: u64,
    /// Mini-pages.
    pub ready: u64,
    /// Blocks on free lists.
    pub listed: u64,
    /// Tombstones and padding.
    pub tombstone: u64,
    /// Evicted blocks that the head has not passed yet.
    pub evicted: u64,
    /// The free space from the tail to the head, one lap on.
    pub free: u64,
    /// The pages that have a mini-page.
    pub pages: BTreeSet<PageId>,
}

impl Census {
    /// The sum of all kinds: the ring's capacity.
    #[must_use]
    pub fn total(&self) -> u64 {
        let Census {
            allocated,
            ready,
            listed,
            tombstone,
            evicted,
            free,
            ..
        } = self;
        allocated + ready + listed + tombstone + evicted + free
    }
}

/// A block between head and tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSeen {
    /// The block's offset.
    pub at: u64,
    /// Bytes of header and payload.
    pub bytes: u64,
    /// The block's state.
    pub state: State,
    /// The page of an allocated block or a mini-page.
    pub page: PageId,
}

/// Addresses and blocks at one instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The oldest address in use.
    pub head: u64,
    /// The address up to which blocks have been claimed for eviction.
    pub claimed: u64,
    /// The next address to be allocated.
    pub tail: u64,
    /// The blocks from the head to the tail.
    pub blocks: Vec<BlockSeen>,
}

/// A violated invariant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{invariant} does not hold: {what}")]
pub struct Broken {
    /// The invariant's name in the spec.
    pub invariant: &'static str,
    /// What was found.
    pub what: String,
}

fn holds(
    condition: bool,
    invariant: &'static str,
    what: impl FnOnce() -> String,
) -> Result<(), Broken> {
    if condition {
        Ok(())
    } else {
        Err(Broken {
            invariant,
            what: what(),
        })
    }
}

impl Ring {
    /// Returns addresses and blocks, even while other threads use the ring. O(blocks).
    ///
    /// # Errors
    /// If there is no block at an address where one should begin.
    pub fn look(&self) -> Result<Seen, Broken> {
        let space = self.space.0.lock();
        let (head, claimed, tail) = (space.head, space.claimed, space.tail);
        let found = space.walk(&self.region).map_err(|address| Broken {
            invariant: "NoOverlapInv",
            what: format!("no block at {address}, between {head} and {tail}"),
        })?;
        let seen = |block: Found| {
            Some(BlockSeen {
                at: block.offset,
                bytes: block.header.footprint(),
                state: block.header.state()?,
                page: block.header.page(),
            })
        };
        Ok(Seen {
            head,
            claimed,
            tail,
            blocks: found.into_iter().filter_map(seen).collect(),
        })
    }

    /// Checks all blocks, free lists and page words. O(blocks). No other thread may use the ring:
    /// the invariants of the mapping hold only between a thread's steps.
    ///
    /// # Errors
    /// The first invariant that is violated.
    pub fn audit(&self) -> Result<Census, Broken> {
        let space = self.space.0.lock();
        let (head, claimed, tail) = (space.head, space.claimed, space.tail);
        holds(
            head <= claimed && claimed <= tail && tail <= head + self.capacity,
            "RegionsInv",
            || format!("head {head}, claimed {claimed}, tail {tail}"),
        )?;
        let found = space.walk(&self.region).map_err(|address| Broken {
            invariant: "NoOverlapInv",
            what: format!("no block at {address}, between {head} and {tail}"),
        })?;
        let mut census = Census {
            free: self.capacity - (tail - head),
            ..Census::default()
        };
        let mut listed = BTreeSet::new();
        for block in found {
            let (at, header) = (block.offset, block.header);
            let bytes = header.footprint();
            holds(at + bytes <= self.capacity, "NoStraddleInv", || {
                format!("{header:?} at {at}")
            })?;
            match header.state() {
                Some(State::Allocated) => census.allocated += bytes,
                Some(State::Ready) => {
                    census.ready += bytes;
                    let page = header.page();
                    let word = self.table.word(page).ok();
                    let points = word.and_then(|word| {
                        let bits = word.try_lock_shared()?;
                        word.unlock_shared();
                        Some(Place::of(bits))
                    });
                    holds(points == Some(Place::Block(at)), "ReachableInv", || {
                        format!("{header:?} at {at}, but the page is at {points:?}")
                    })?;
                    holds(census.pages.insert(page), "MappedInv", || {
                        format!("{page} has two mini-pages")
                    })?;
                }
                Some(State::Listed) => {
                    census.listed += bytes;
                    listed.insert((self.class_of(bytes), at));
                }
                Some(State::Tombstone) => census.tombstone += bytes,
                Some(State::Evicted) => census.evicted += bytes,
                None => unreachable!("the walk stops at what is no header"),
            }
        }
        for class in 0..self.classes.len() {
            for at in space.listed(&self.region, class) {
                holds(listed.remove(&(class, at)), "FreeListInv", || {
                    format!(
                        "the list of class {class} has {at}, which is not free or is listed twice"
                    )
                })?;
            }
        }
        holds(listed.is_empty(), "FreeListInv", || {
            format!("free, but on no list: {listed:?}")
        })?;
        holds(
            census.listed == space.stats.listed_bytes,
            "FreeListInv",
            || {
                format!(
                    "{} bytes are listed, {} counted",
                    census.listed, space.stats.listed_bytes
                )
            },
        )?;
        Ok(census)
    }
}
