//! The circular buffer of mini-pages: Bf-Tree's variable-length buffer pool (§4), with the mapping table that leads into it (§3.3).
//!
//! ```text
//! page id --> mapping table word --> offset = address mod capacity
//!             | address | lock |
//!
//!      head      claimed   in_place bytes before the tail      tail       addresses only grow; one region, never grown
//!       |           |           |                               |
//!       v           v           v                               v
//!  free [ being evicted | copy on access | updated in place     ] free
//!
//!  [h|mini-page][h|mini-page        ][h|dead][h|mini-page][h|padding     ]| physical end
//! ```
//!
//! One region of configured size. A block is an 8-byte header (`header`) and a payload of one of the size classes; blocks
//! stand side by side (§4.3). Allocation takes a block of exactly the class from its free list, else moves the tail; when there is no room
//! the caller gives its page back and evicts at the head ([`Ring::make_room`]). A mini-page that is used while in the copy-on-access region
//! is copied to the tail by who uses it (§5.5), so what reaches the head is cold.
//!
//! # Who may touch what
//!
//! The bytes of a block are reached through a lock on the page whose mini-page it is, and no other way: [`Shared`] gives `&[u8]`,
//! [`Exclusive`] `&mut [u8]`, [`Fresh`] the bytes of a block that no page has yet. Shared lock, look, unlock are two atomic additions on one
//! word. Addresses, free lists and counters are behind one short mutex, which no access to bytes ever takes. A header names its page
//! (in the header word itself), so that the evictor, who comes from the head and not from the tree, knows which lock to ask for.
//!
//! # What the specs found, and what is done about it
//!
//! `specs/FINDINGS.md`, CircularBuffer, refutes the paper's text in places; this is the repaired protocol.
//!
//! | finding | here |
//! |---|---|
//! | 1 eviction under the page's lock deadlocks | `allocate` never evicts: it returns [`Full`] and the guard; `evict` asserts (debug builds) that the thread holds no guard. The call begins anew |
//! | 2 the head passes free-listed blocks; popped pointers go stale (ABA) | evictors unlist; taking a pointer off its list and the block behind it are one critical section, so no popped pointer is ever at large, and what the spec's evictor must wait for cannot be met |
//! | 3 a block runs over the physical end | padding, born a tombstone |
//! | 4 room made by one is taken by another | kept, as in the model: [`Ring::make_room`] evicts what its caller lacks and the caller tries again; fair only by luck. A caller that must not starve takes turns outside |
//! | 5 two readers that both want to copy wait for each other | [`Shared::try_upgrade`] succeeds for the only reader and never waits |
//! | 6 what an evictor must look at | after the lock: is the page's address still the victim; new blocks are waited for; unmap and unlock are one atomic addition; who finds all claimed sleeps until the head moves |
//!
//! # When a merge fails
//!
//! The evictor's callback may fail (I/O). Then nothing has happened: the page is unlocked, its mini-page stays where it is, mapped and
//! usable, and the error is the caller's. The block has been claimed, and the claim is *given back*: the next evictor takes given-back
//! claims, oldest first, before it claims anything new. So nobody piles up eviction behind a failing page: who evicts next meets the same
//! page and the same error, or succeeds. Evictors that had claimed blocks behind it, and would wait for the head to reach theirs, stop
//! waiting when a claim before theirs is given back; their blocks stay marked as evicted, and whoever gets the head past the failed one
//! moves it over all of them. A callback that panics counts as failed.
//!
//! # What the spec does not have
//!
//! - [`Fresh`] may be dropped: the block is freed as if it had been published and left (`Abandoned`).
//! - [`Exclusive::set_leaf`]: a mini-page too large is merged by the tree, not by an evictor (`Discarded`; the spec's header says so).
//! - Failed merges, above. Page ids that come and go.
//!
//! # Complexity
//!
//! Locks, bytes, allocation, free: O(1). Eviction: O(1) and the callback; each block is passed once.
//!
//! # Rooms
//!
//! `region` (memory; the pointers), `header` (a block's word), `space` (addresses), `free_list`, `guard` (locks and bytes), `evict`,
//! `events`, `stats`, `audit` (the invariants, for tests).

mod audit;
pub mod events;
mod evict;
mod free_list;
mod guard;
mod header;
mod region;
mod space;
mod stats;

pub use audit::{BlockSeen, Broken, Census, Seen};
pub use events::{Event, Pause};
pub use evict::Eviction;
pub use guard::{AllocateError, Exclusive, Fresh, Full, NoBlock, Shared};
pub use header::State as BlockState;
pub use stats::{ClassStats, RingStats};

use crate::PageId;
use crate::events::{Hook, Observer};
use crate::mapping::{LeafAddress, PageError, Table};
use crate::sync::atomic::{AtomicU64, Ordering::Relaxed};
use crate::sync::{Arc, Condvar, Mutex};
use guard::Locked;
use header::{HEADER, LARGEST};
use region::{GRAIN, LINKS, MARKS, Region};
use space::{Space, Wanted};

/// Payload of the class for full-page mirrors: a leaf page of 4 KiB, and a cache line for what the tree keeps beside it.
pub const MIRROR: usize = 4096 + 64;

/// The header before every block's payload.
pub const BLOCK_HEADER_BYTES: usize = HEADER as usize;

/// What marks take of a block's payload ([`RingOptions::marks`]).
pub const MARK_BYTES: usize = MARKS as usize;

/// Payloads of the default size classes.
pub const SIZES: [usize; 8] = [64, 128, 256, 512, 1024, 2048, 4096, MIRROR];

/// A ring's size and shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingOptions {
    /// Bytes of the region: a multiple of 4 KiB, and at least two blocks of the largest class.
    pub capacity: usize,
    /// Share of the region in which mini-pages are copied to the tail when they are used, in percent: 0 to 100.
    pub copy_on_access_percent: u8,
    /// Payloads of the size classes, ascending multiples of 8. A block takes 8 bytes more.
    pub sizes: Vec<usize>,
    /// The most pages that there can be: bound of the mapping table, at most 2^40.
    pub pages: u64,
    /// Whether the first four bytes of each payload are marks, which readers may set. Default: no.
    pub marks: bool,
}

impl Default for RingOptions {
    fn default() -> Self {
        Self {
            capacity: 32 << 20,
            copy_on_access_percent: 10,
            sizes: SIZES.to_vec(),
            pages: 1 << 28,
            marks: false,
        }
    }
}

/// A ring that cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum RingError {
    /// The region's size will not do.
    #[error("a ring of {found} bytes: expected a multiple of 4096, at least {least}")]
    Capacity {
        /// What was asked for.
        found: usize,
        /// Two blocks of the largest class, rounded up.
        least: usize,
    },
    /// More than all of it.
    #[error("a copy-on-access region of {found} %: expected 0 to 100")]
    Share {
        /// What was asked for.
        found: u8,
    },
    /// A size class will not do.
    #[error(
        "size class {found}: expected up to 32 ascending multiples of 8 from {least} to {most} bytes"
    )]
    Size {
        /// The class, or how many there are.
        found: usize,
        /// Smallest payload.
        least: usize,
        /// Largest payload.
        most: usize,
    },
    /// More pages than a block's header can name.
    #[error("a mapping table of {found} pages: expected 1 to {most}")]
    Pages {
        /// What was asked for.
        found: u64,
        /// The most.
        most: u64,
    },
    /// The system has no such memory.
    #[error("no memory for a ring of {bytes} bytes")]
    Memory {
        /// What was asked for.
        bytes: usize,
        /// What the system says.
        source: std::io::Error,
    },
}

impl RingOptions {
    /// The smallest region for these size classes: an allocation at any place may have to pad first, up to its own size, less what all
    /// footprints are multiples of.
    #[must_use]
    pub fn least_capacity(&self) -> usize {
        let footprints = self.sizes.iter().map(|size| size + HEADER as usize);
        let largest = footprints.clone().max().unwrap_or(0);
        let unit = footprints.fold(self.capacity, gcd);
        (2 * largest).saturating_sub(unit).next_multiple_of(4096)
    }

    fn check(&self) -> Result<(), RingError> {
        let least = LINKS as usize;
        let most = (LARGEST - HEADER) as usize;
        let size = |found| RingError::Size { found, least, most };
        if self.sizes.is_empty() || self.sizes.len() > 32 {
            return Err(size(self.sizes.len()));
        }
        let mut above = least;
        for found in &self.sizes {
            let aligned = found.is_multiple_of(8) && (*found as u64 + HEADER).is_multiple_of(GRAIN);
            if !aligned || *found < above || *found > most {
                return Err(size(*found));
            }
            above = found + 8;
        }
        let least = self.least_capacity();
        if !self.capacity.is_multiple_of(4096) || self.capacity < least {
            let found = self.capacity;
            return Err(RingError::Capacity { found, least });
        }
        if self.copy_on_access_percent > 100 {
            let found = self.copy_on_access_percent;
            return Err(RingError::Share { found });
        }
        let (found, most) = (self.pages, Table::MOST_PAGES);
        if !(1..=most).contains(&found) {
            return Err(RingError::Pages { found, most });
        }
        Ok(())
    }
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// What other threads write often, on a cache line (and its neighbour, which is fetched with it) of its own.
#[derive(Debug)]
#[repr(align(128))]
struct Apart<T>(T);

/// Pages and their mini-pages. See the [module](self).
pub struct Ring {
    table: Table,
    region: Region,
    /// Footprints of the size classes, ascending.
    classes: Box<[u64]>,
    capacity: u64,
    /// Bytes of marks in each payload.
    marks: u64,
    in_place: u64,
    /// The tail's offset, for those who do not hold the mutex.
    tail: Apart<AtomicU64>,
    space: Apart<Mutex<Space>>,
    /// The head moved, or a claim was given back.
    moved: Condvar,
    hook: Hook<Event>,
}

impl Ring {
    /// An empty ring.
    ///
    /// # Errors
    /// An option will not do, or the system has no memory.
    pub fn new(options: &RingOptions) -> Result<Self, RingError> {
        Self::observed(options, None)
    }

    /// An empty ring that tells what it does.
    ///
    /// # Errors
    /// As [`Ring::new`].
    pub fn observed(
        options: &RingOptions,
        observer: Option<Arc<dyn Observer<Event>>>,
    ) -> Result<Self, RingError> {
        options.check()?;
        let bytes = options.capacity;
        let region = Region::new(bytes).map_err(|source| RingError::Memory { bytes, source })?;
        let capacity = bytes as u64;
        let share = u64::from(options.copy_on_access_percent);
        let in_place = capacity - capacity / 100 * share - capacity % 100 * share / 100;
        let class = |size: &usize| ClassStats {
            size: *size,
            ..ClassStats::default()
        };
        let stats = RingStats {
            classes: options.sizes.iter().map(class).collect(),
            capacity_bytes: capacity,
            huge_pages: region.huge_pages(),
            ..RingStats::default()
        };
        let footprints = options.sizes.iter().map(|size| *size as u64 + HEADER);
        Ok(Self {
            table: Table::new(options.pages),
            region,
            classes: footprints.collect(),
            capacity,
            marks: if options.marks { MARKS } else { 0 },
            in_place,
            tail: Apart(AtomicU64::new(0)),
            space: Apart(Mutex::new(Space::new(capacity, in_place, stats))),
            moved: Condvar::new(),
            hook: Hook::new(observer),
        })
    }

    /// A new page, which is a leaf only.
    ///
    /// # Errors
    /// All ids are in use.
    pub fn create_page(&self, leaf: LeafAddress) -> Result<PageId, PageError> {
        self.table.allocate(leaf)
    }

    /// A page whose id somebody else gave out: on recovery, or when a leaf was split. It comes locked, so that whoever else knows the id
    /// finds the page as the caller leaves it. Ids below that nobody adopts are free.
    ///
    /// # Errors
    /// The id is in use, or beyond the table's bound.
    pub fn adopt_page(&self, page: PageId, leaf: LeafAddress) -> Result<Exclusive<'_>, PageError> {
        let (word, bits) = self.table.adopt(page, leaf)?;
        Exclusive::new(Locked::new(self, page, word, bits))
    }

    /// Pages that there are.
    #[must_use]
    pub fn pages(&self) -> u64 {
        self.table.len()
    }

    /// Bytes of the mapping table.
    #[must_use]
    pub fn table_bytes(&self) -> usize {
        self.table.bytes()
    }

    /// Locks a page to read: waits while a writer holds it or waits for it. A thread that holds a page must not ask for it again.
    ///
    /// # Errors
    /// There is no such page.
    #[inline]
    pub fn shared(&self, page: PageId) -> Result<Shared<'_>, PageError> {
        let word = self.table.word(page)?;
        Shared::new(Locked::new(self, page, word, word.lock_shared()))
    }

    /// As [`Ring::shared`], but `None` instead of waiting.
    ///
    /// # Errors
    /// There is no such page.
    #[inline]
    pub fn try_shared(&self, page: PageId) -> Result<Option<Shared<'_>>, PageError> {
        let word = self.table.word(page)?;
        let locked = word.try_lock_shared();
        locked
            .map(|bits| Shared::new(Locked::new(self, page, word, bits)))
            .transpose()
    }

    /// Locks a page, its mini-page and its leaf, alone. A thread that holds a page must not ask for it again.
    ///
    /// # Errors
    /// There is no such page.
    #[inline]
    pub fn exclusive(&self, page: PageId) -> Result<Exclusive<'_>, PageError> {
        let word = self.table.word(page)?;
        Exclusive::new(Locked::new(self, page, word, word.lock()))
    }

    /// As [`Ring::exclusive`], but `None` instead of waiting.
    ///
    /// # Errors
    /// There is no such page.
    #[inline]
    pub fn try_exclusive(&self, page: PageId) -> Result<Option<Exclusive<'_>>, PageError> {
        let word = self.table.word(page)?;
        let locked = word.try_lock();
        locked
            .map(|bits| Exclusive::new(Locked::new(self, page, word, bits)))
            .transpose()
    }

    /// What a block for `len` bytes offers: the smallest class that holds them. `None`: none does.
    #[must_use]
    pub fn size_for(&self, len: usize) -> Option<usize> {
        let class = self.class_for(len)?;
        Some((self.classes[class] - HEADER) as usize)
    }

    fn class_for(&self, len: usize) -> Option<usize> {
        let footprint = len as u64 + HEADER;
        let class = self.classes.partition_point(|class| *class < footprint);
        (class < self.classes.len()).then_some(class)
    }

    /// The class whose blocks have this footprint.
    fn class_of(&self, footprint: u64) -> usize {
        self.classes.partition_point(|class| *class < footprint)
    }

    /// Counters.
    #[must_use]
    pub fn stats(&self) -> RingStats {
        let space = self.space.0.lock();
        RingStats {
            span_bytes: space.tail - space.head,
            ..space.stats.clone()
        }
    }

    /// Bytes between tail and head: what allocations can take before something must be evicted, free-listed blocks aside.
    #[must_use]
    pub fn room(&self) -> u64 {
        let space = self.space.0.lock();
        self.capacity - (space.tail - space.head)
    }

    /// The pages whose mini-pages will be evicted next, `most` at most, and the bytes up to the last of them: as many blocks as it takes to have
    /// `bytes`. A guess, and out of date when it is made: for who wants to prepare something. O(`most`).
    #[must_use]
    pub fn next_victims(&self, most: usize, bytes: u64) -> (Vec<PageId>, u64) {
        let space = self.space.0.lock();
        space.next_victims(&self.region, most, bytes)
    }

    /// Whether a block is in the copy-on-access region (§4.1); asked under a lock on its page.
    ///
    /// The block is in use, so its address lies less than a lap before the tail, whatever the tail was since the block was allocated;
    /// and that is ordered before this load by the page's lock. So one load of the tail tells the distance.
    #[inline]
    fn near_head(&self, page: PageId, offset: u64) -> bool {
        if self.hook.is_heard() {
            return self.tell_looked(page, offset);
        }
        let tail = self.tail.0.load(Relaxed);
        let behind = if tail > offset {
            tail - offset
        } else {
            tail + self.capacity - offset
        };
        behind > self.in_place
    }

    #[cold]
    fn tell_looked(&self, page: PageId, at: u64) -> bool {
        let space = self.space.0.lock();
        let near_head = space.near_head(at);
        self.hook.tell(|| Event::Looked {
            page,
            at,
            near_head,
        });
        near_head
    }

    fn allocate(&self, wanted: Wanted) -> Result<u64, Full> {
        let mut space = self.space.0.lock();
        let found = space.allocate(&self.region, wanted, &self.hook);
        // Padding counts even if there was no block behind it.
        let tail = space.offset_of(space.tail);
        self.tail.0.store(tail, Relaxed);
        found.ok_or_else(|| Full {
            wanted: wanted.footprint,
            short: space.short_of(wanted.footprint),
        })
    }

    /// Frees the block of a page that the caller has locked alone and that does not point at it any more.
    fn free(&self, page: PageId, at: u64) {
        let mut space = self.space.0.lock();
        let listed = self.free_in(&mut space, at);
        self.hook.tell(|| Event::Freed { page, at, listed });
    }

    /// Frees a block that was never published.
    fn abandon(&self, page: PageId, at: u64) {
        let mut space = self.space.0.lock();
        let listed = self.free_in(&mut space, at);
        self.hook.tell(|| Event::Abandoned { page, at, listed });
    }

    fn free_in(&self, space: &mut Space, at: u64) -> bool {
        // SAFETY: the block is the caller's, and until it is freed here the head cannot pass it.
        let block = unsafe { self.region.block(at) };
        let class = self.class_of(block.known_header().footprint());
        space.free(&self.region, class, at)
    }
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let stats = self.stats();
        f.debug_struct("Ring")
            .field("capacity", &self.capacity)
            .field("span", &stats.span_bytes)
            .field("pages", &self.pages())
            .finish_non_exhaustive()
    }
}
