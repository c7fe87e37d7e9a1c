//! Eviction at the head of the ring, in order, by any number of threads at once (Bf-Tree §4.2,
//! §4.3; `CircularBuffer.tla`).
//!
//! ```text
//!            claim ----- dead --------------------------------> pass
//!              | \                                               ^
//!   (nothing)  |  v                                              |
//!      v       | look <--- moved --+                             |
//!    wait      |  |                |                             |
//!              |  +--> lock page --+--> merge --> unmap+unlock --+
//!              |                          |
//!              +<------ give back <----- fails
//! ```
//!
//! - *claim* takes the next block.
//! - *look* waits while the block is allocated but not published.
//! - *lock* takes the lock of the page that the header names, and checks whether the block is still
//!   its mini-page.
//! - *merge* is the callback.
//! - *unmap* is one atomic addition.
//! - *pass* marks the block, moves the head past all marked blocks, and then waits until the head
//!   has passed this block. So there are never more blocks under eviction than threads.
//!
//! If merging fails, the claim is given back; see [`super`].
//!
//! Claim, pass and the waits use the ring's mutex and its condition variable, so a thread that
//! waits for another's I/O sleeps.

use super::events::Pause;
use super::guard::{Exclusive, Locked};
use super::header::State;
use super::space::{Dead, Space};
use super::{Event, Ring};
use crate::PageId;
use crate::held::{self, Kind};
use crate::mapping::LeafAddress;
use crate::mutation;
use crate::sync::{Backoff, MutexGuard};

/// The outcome of an eviction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eviction {
    /// A block was evicted; its size includes the header. The head has passed it, unless the
    /// eviction of a block before it has failed.
    Block(u64),
    /// Other threads had claimed all blocks; meanwhile, one of these was passed or its eviction
    /// failed.
    ByOthers,
    /// The ring is empty.
    Empty,
}

/// A claimed block that this thread evicts. If dropped before the eviction is complete, the claim
/// is returned.
struct Claim<'a> {
    ring: &'a Ring,
    address: u64,
    done: bool,
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        let mut space = self.ring.space.0.lock();
        space.returned.insert(self.address);
        space.stats.failed_evictions += 1;
        let at = space.offset_of(self.address);
        self.ring.hook.tell(|| Event::ClaimReturned { at });
        self.ring.moved.notify_all();
    }
}

enum Begun<'a> {
    Claim(Claim<'a>),
    Over(Eviction),
}

/// The result of an attempt to evict a block.
enum Look {
    Again,
    Evicted,
}

impl Ring {
    /// Evicts blocks of at least `bytes` together, or everything there is to evict. The caller
    /// holds no page. It must then restart its operation: what it read before may have changed, and
    /// other threads may have taken the room.
    ///
    /// [`Full::short`](super::Full::short) is the minimum that helps. A few KiB more cost a large
    /// ring nothing, and let the next allocations succeed at once.
    ///
    /// # Errors
    /// As [`Ring::evict`].
    pub fn make_room<E>(
        &self,
        bytes: u64,
        mut merge: impl FnMut(PageId, &mut [u8]) -> Result<LeafAddress, E>,
    ) -> Result<u64, E> {
        let mut made = 0;
        while made < bytes {
            match self.evict(&mut merge)? {
                Eviction::Block(evicted) => made += evicted,
                Eviction::ByOthers | Eviction::Empty => break,
            }
        }
        Ok(made)
    }

    /// Evicts one block. The calling thread must hold no page, or it could deadlock with itself
    /// (CircularBuffer 1).
    ///
    /// `merge` is called with the victim's page locked exclusively, and its mini-page. It merges
    /// dirty records into the leaf and returns the leaf's address after that. It may lock pages
    /// that no waiting thread holds, and may allocate, but must not evict. It is not called for
    /// dead blocks.
    ///
    /// # Errors
    /// What `merge` returned. The page and its mini-page are unchanged, and the block will be the
    /// next victim.
    pub fn evict<E>(
        &self,
        merge: impl FnOnce(PageId, &mut [u8]) -> Result<LeafAddress, E>,
    ) -> Result<Eviction, E> {
        held::assert_none(
            Kind::RingPage,
            "an evicting thread must hold no page (CircularBuffer 1)",
        );
        let mut claim = match self.begin() {
            Begun::Claim(claim) => claim,
            Begun::Over(eviction) => return Ok(eviction),
        };
        let mut merge = Some(merge);
        let mut backoff = Backoff::new();
        let at = claim.address % self.capacity;
        loop {
            self.tell_pause(at, Pause::Look);
            match self.try_evict(&mut claim, &mut merge)? {
                Look::Evicted => {
                    self.tell_pause(at, Pause::Pass);
                    let mut space = self.space.0.lock();
                    if !mutation::on("ring-evicted-before-unmapped") {
                        space.evicted(
                            &self.region,
                            |footprint| self.class_of(footprint),
                            claim.address,
                        );
                    }
                    return Ok(self.pass(space, &mut claim));
                }
                Look::Again => {
                    self.tell_pause(at, Pause::Look);
                    // The block's fate since then was decided under the mutex.
                    let mut space = self.space.0.lock();
                    let class_of = |footprint| self.class_of(footprint);
                    if space.clear(&self.region, class_of, claim.address, &self.hook) == Dead::Yes {
                        return Ok(self.pass(space, &mut claim));
                    }
                    drop(space);
                    backoff.wait();
                }
            }
        }
    }

    fn begin(&self) -> Begun<'_> {
        let mut space = self.space.0.lock();
        if let Some(address) = space.claim(&self.region, &self.hook) {
            let mut claim = Claim {
                ring: self,
                address,
                done: false,
            };
            let class_of = |footprint| self.class_of(footprint);
            if space.clear(&self.region, class_of, address, &self.hook) == Dead::Yes {
                return Begun::Over(self.pass(space, &mut claim));
            }
            return Begun::Claim(claim);
        }
        let head = space.head;
        if head == space.tail {
            self.hook.tell(|| Event::Retried);
            return Begun::Over(Eviction::Empty);
        }
        // All blocks are claimed by other threads (`Retry`), which will move the head or return a
        // claim.
        while space.head == head && space.returned.is_empty() {
            self.moved.wait(&mut space);
        }
        Begun::Over(Eviction::ByOthers)
    }

    fn tell_pause(&self, at: u64, before: Pause) {
        self.hook.tell(|| Event::Pauses { at, before });
    }

    /// Performs `FindPage`, `LockVictim`, `WriteLeaf` and `Unmap`.
    fn try_evict<E>(
        &self,
        claim: &mut Claim<'_>,
        merge: &mut Option<impl FnOnce(PageId, &mut [u8]) -> Result<LeafAddress, E>>,
    ) -> Result<Look, E> {
        let at = claim.address % self.capacity;
        // SAFETY: a claimed block stays in place until its claimer marks it as evicted.
        let header = unsafe { self.region.block(at) }.header();
        if !header.is(State::Ready) {
            return Ok(Look::Again);
        }
        let page = header.page();
        let Ok(word) = self.table.word(page) else {
            unreachable!("MappedInv: a mini-page of {page}, which is in no table");
        };
        self.tell_pause(at, Pause::Lock);
        // A reader may hold the lock for long. A thread with the exclusive lock never waits for an
        // evictor (CircularBuffer 1).
        let mut victim = Exclusive::of_victim(Locked::new(self, page, word, word.lock()));
        // Before the lock was taken, the mini-page may have moved; the block may even belong to
        // another page now.
        if !victim.points_at(at) && !mutation::on("ring-victim-unchecked") {
            self.hook.tell(|| Event::VictimMoved { page, at });
            return Ok(Look::Again);
        }
        self.hook.tell(|| Event::VictimLocked { page, at });
        let (Some(bytes), Some(merge)) = (victim.bytes_mut(), merge.take()) else {
            unreachable!("a page that points at a block has a mini-page, and it is merged once");
        };
        let leaf = merge(page, bytes)?;
        self.hook.tell(|| Event::Merged { page, at });
        if mutation::on("ring-evicted-before-unmapped") {
            let mut space = self.space.0.lock();
            space.evicted(
                &self.region,
                |footprint| self.class_of(footprint),
                claim.address,
            );
            space.advance(&self.region, claim.address, &self.hook);
        }
        self.hook.tell(|| Event::Unmapped { page, at });
        victim.unmap(leaf);
        Ok(Look::Evicted)
    }

    /// Performs `Finish`: moves the head, and waits until it has passed this block.
    fn pass(&self, mut space: MutexGuard<'_, Space>, claim: &mut Claim<'_>) -> Eviction {
        claim.done = true;
        let address = claim.address;
        let at = space.offset_of(address);
        // SAFETY: the caller has marked the block as evicted, and the head has not passed it: that
        // happens under the mutex, below.
        let bytes = unsafe { self.region.block(at) }.known_header().footprint();
        if space.advance(&self.region, address, &self.hook) && !mutation::on("ring-lost-wake-up") {
            self.moved.notify_all();
        }
        let one_before_failed =
            |space: &Space| space.returned.first().is_some_and(|r| *r < address);
        while space.head <= address && !one_before_failed(&space) {
            self.moved.wait(&mut space);
        }
        Eviction::Block(bytes)
    }
}
