//! Eviction at the head, by many threads side by side and in order (Bf-Tree §4.2, §4.3; `CircularBuffer.tla`).
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
//! *claim* takes the next block; *look* waits while the block is only allocated; *lock* takes the lock of the page that the header
//! names and asks whether the block is still its mini-page; *merge* is the callback; *unmap* is one atomic addition; *pass* marks
//! the block and moves the head over all that are marked, then waits until the head has come past this block, too, so that no more blocks
//! are under eviction than there are threads. What happens when merging fails is told in [`super`].
//!
//! Claim, pass and the waits are under the ring's mutex and its condition variable: a thread behind another one's I/O sleeps.

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

/// What an eviction came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eviction {
    /// A block of so many bytes, header included, was evicted, and the head is past it unless a failed one is before it.
    Block(u64),
    /// All blocks were claimed by other threads; meanwhile one of these was passed, or failed.
    ByOthers,
    /// The ring is empty.
    Empty,
}

/// A block that this thread evicts. Dropped before it is done, it is given back.
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

/// What `try_evict` says of a block that it did not evict.
enum Look {
    Again,
    Evicted,
}

impl Ring {
    /// Evicts blocks of `bytes` together, or all that there is to evict; the caller holds no page. Then the caller begins its operation
    /// anew: what it read before may have changed, and others may have taken the room.
    ///
    /// [`Full::short`](super::Full::short) is the least that helps. A few KiB more than that cost a large ring nothing, and the allocations
    /// after this one then succeed at once.
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

    /// Evicts one block. The thread holds no page, or it could wait for itself (CircularBuffer 1).
    ///
    /// `merge` is called with the victim's page locked alone, and its mini-page; it merges what is dirty into the leaf and returns where
    /// the leaf is now. It may lock pages that nobody waits with, and allocate, but not evict. It is not called for dead blocks.
    ///
    /// # Errors
    /// What `merge` returned; the page and its mini-page are as they were, and will be the next victim.
    pub fn evict<E>(
        &self,
        merge: impl FnOnce(PageId, &mut [u8]) -> Result<LeafAddress, E>,
    ) -> Result<Eviction, E> {
        held::assert_none(
            Kind::RingPage,
            "who evicts holds no page (CircularBuffer 1)",
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
                    // Whatever the block has become in the meantime was decided under the mutex.
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
        // All is claimed by others (`Retry`): they will move the head, or give a claim back.
        while space.head == head && space.returned.is_empty() {
            self.moved.wait(&mut space);
        }
        Begun::Over(Eviction::ByOthers)
    }

    fn tell_pause(&self, at: u64, before: Pause) {
        self.hook.tell(|| Event::Pauses { at, before });
    }

    /// `FindPage`, `LockVictim`, `WriteLeaf`, `Unmap`.
    fn try_evict<E>(
        &self,
        claim: &mut Claim<'_>,
        merge: &mut Option<impl FnOnce(PageId, &mut [u8]) -> Result<LeafAddress, E>>,
    ) -> Result<Look, E> {
        let at = claim.address % self.capacity;
        // SAFETY: a claimed block is where it is until its claimer marks it as evicted.
        let header = unsafe { self.region.block(at) }.header();
        if !header.is(State::Ready) {
            return Ok(Look::Again);
        }
        let page = header.page();
        let Ok(word) = self.table.word(page) else {
            unreachable!("MappedInv: a mini-page of {page}, which is in no table");
        };
        self.tell_pause(at, Pause::Lock);
        // A reader may hold it for long, and whoever holds it alone waits for no evictor (CircularBuffer 1).
        let mut victim = Exclusive::of_victim(Locked::new(self, page, word, word.lock()));
        // Before the lock was there the mini-page may have moved away; the block may even belong to another page.
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

    /// `Finish`: moves the head, and waits until it is past this block.
    fn pass(&self, mut space: MutexGuard<'_, Space>, claim: &mut Claim<'_>) -> Eviction {
        claim.done = true;
        let address = claim.address;
        let at = space.offset_of(address);
        // SAFETY: the caller has marked the block as evicted, and the head has not passed it: that happens under the mutex, below.
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
