//! The invariants of `RingMemory.tla` and `CircularBuffer.tla`, looked at: for tests, and for whoever doubts.

use std::collections::BTreeSet;

use super::Ring;
use super::header::State;
use super::space::Found;
use crate::PageId;
use crate::mapping::Place;

/// What is between head and tail, in bytes, headers included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Blocks handed out and not yet published.
    pub allocated: u64,
    /// Mini-pages.
    pub ready: u64,
    /// Blocks on free lists.
    pub listed: u64,
    /// Tombstones and padding.
    pub tombstone: u64,
    /// Evicted blocks that the head has not reached.
    pub evicted: u64,
    /// From the tail to the head, a lap on.
    pub free: u64,
    /// The pages that have a mini-page.
    pub pages: BTreeSet<PageId>,
}

impl Census {
    /// All of it: the ring's capacity.
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
    /// Its offset.
    pub at: u64,
    /// Header and payload.
    pub bytes: u64,
    /// What it is.
    pub state: State,
    /// Whose, of one that is handed out or a mini-page.
    pub page: PageId,
}

/// Addresses and blocks as they are at one instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The oldest address in use.
    pub head: u64,
    /// Eviction has been started up to here.
    pub claimed: u64,
    /// The next address to be allocated.
    pub tail: u64,
    /// From the head to the tail.
    pub blocks: Vec<BlockSeen>,
}

/// An invariant that does not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{invariant} does not hold: {what}")]
pub struct Broken {
    /// Its name in the spec.
    pub invariant: &'static str,
    /// The story.
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
    /// Addresses and blocks, whoever uses the ring. O(blocks).
    ///
    /// # Errors
    /// There is no block where one should begin.
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

    /// Looks at all blocks, lists and the words of the pages. O(blocks). While no other thread uses the ring: the invariants of the
    /// mapping hold between a thread's steps only.
    ///
    /// # Errors
    /// The first invariant that is broken.
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
                    format!("class {class} offers {at}, which is not free, or twice")
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
