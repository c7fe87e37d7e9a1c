//! The circular buffer of mini-pages: Bf-Tree's variable-length buffer pool (§4), with the mapping
//! table that leads into it (§3.3).
//!
//! ```text
//! page id --> mapping table word --> offset = address mod capacity
//!             | address | lock |
//!
//!      head      claimed   in_place bytes before the tail      tail
//!       |           |           |                               |      addresses only grow;
//!       v           v           v                               v      one region, of fixed size
//!  free [ being evicted | copy on access | updated in place     ] free
//!
//!  [h|mini-page][h|mini-page        ][h|dead][h|mini-page][h|padding     ]| physical end
//! ```
//!
//! The ring is one region of configured size. A block is an 8-byte header (`header`) and a payload
//! of one of the size classes; blocks are adjacent (§4.3). An allocation takes a block of exactly
//! the class from its free list, or else moves the tail. If there is no room, the caller releases
//! its page and evicts at the head ([`Ring::make_room`]). A thread that uses a mini-page in the
//! copy-on-access region copies it to the tail (§5.5), so the mini-pages that reach the head are
//! cold.
//!
//! ```
//! use treering_engine::mapping::LeafAddress;
//! use treering_engine::ring::{Ring, RingOptions};
//!
//! let ring = Ring::new(&RingOptions::default()).expect("valid options");
//! let leaf = LeafAddress::new(7).expect("below the maximum");
//! let page = ring.create_page(leaf).expect("a free id");
//!
//! // Give the page a mini-page: allocate a block, fill it, publish it.
//! let locked = ring.exclusive(page).expect("the page exists");
//! let mut fresh = locked.allocate(100).expect("room in an empty ring");
//! fresh.bytes_mut().fill(1);
//! drop(fresh.publish());
//! assert_eq!(ring.shared(page).expect("the page exists").bytes(), Some(&[1; 128][..]));
//!
//! // Evict it: the callback merges the mini-page into the leaf.
//! ring.evict(|_page, _bytes| Ok::<_, ()>(leaf)).expect("the merge succeeds");
//! assert_eq!(ring.shared(page).expect("the page exists").leaf(), Some(leaf));
//! ```
//!
//! # Access rules
//!
//! The bytes of a block can be reached only through a lock on the page whose mini-page it is:
//! [`Shared`] gives `&[u8]`, [`Exclusive`] gives `&mut [u8]`, and [`Fresh`] gives the bytes of a
//! block that no page has yet. Taking and releasing a shared lock are two atomic additions on one
//! word. Addresses, free lists and counters are behind one short mutex, which no access to bytes
//! takes. A header names its page (in the header word itself), so that the evictor, which comes
//! from the head and not from the tree, knows which lock to take.
//!
//! # Findings of the specs, and their repairs
//!
//! `specs/FINDINGS.md`, CircularBuffer, refutes the paper's text in places. This is the repaired
//! protocol.
//!
//! - **1: eviction under the page's lock deadlocks.** `allocate` never evicts: it returns [`Full`]
//!   and the guard. `evict` asserts (in debug builds) that the thread holds no guard. The caller
//!   then restarts its operation.
//! - **2: the head passes free-listed blocks; popped pointers go stale (ABA).** Evictors unlist
//!   such blocks. A pointer is taken off its list and its block reused in one critical section. So
//!   no thread ever holds a popped pointer, and the case in which the spec's evictor must wait
//!   cannot occur.
//! - **3: a block runs over the physical end.** The rest before the end becomes padding, which
//!   begins as a tombstone.
//! - **4: room made by one thread is taken by another.** Kept, as in the model: [`Ring::make_room`]
//!   evicts what its caller lacks and the caller tries again, which is not guaranteed to be fair. A
//!   caller that must not starve takes turns outside of the ring.
//! - **5: two readers that both want to copy wait for each other.** [`Shared::try_upgrade`]
//!   succeeds for the only reader and never waits.
//! - **6: checks by an evictor.** After locking, the evictor checks that the page's address is
//!   still the victim. It waits for new blocks to be published. Unmapping and unlocking are one
//!   atomic addition. A thread that finds all blocks claimed sleeps until the head moves.
//!
//! # When a merge fails
//!
//! The evictor's callback may fail (I/O). Then nothing has changed: the page is unlocked, its
//! mini-page stays mapped and usable, and the caller gets the error. The claim on the block is
//! *given back*: the next evictor takes returned claims, oldest first, before it claims new blocks.
//! So evictions do not pile up behind a failing page: the next evictor meets the same page and gets
//! the same error, or succeeds. Evictors that have claimed blocks behind it, and would wait for the
//! head to reach theirs, stop waiting once an earlier claim is given back. Their blocks stay marked
//! as evicted, and the thread that moves the head past the failed block moves it past all of them.
//! A callback that panics counts as failed.
//!
//! # Additions to the spec
//!
//! - [`Fresh`] may be dropped: the block is then freed as if it had been published and replaced
//!   (`Abandoned`).
//! - [`Exclusive::set_leaf`]: a mini-page that grew too large is merged by the tree, not by an
//!   evictor (`Discarded`; the spec's header mentions it).
//! - Failed merges, see above. Page ids that come and go.
//!
//! # Complexity
//!
//! Locks, bytes, allocation, free: O(1). Eviction: O(1) and the callback; each block is passed
//! once.
//!
//! # Modules
//!
//! `region` (memory and pointers), `header` (a block's word), `space` (addresses), `free_list`,
//! `guard` (locks and bytes), `evict`, `events`, `stats`, `audit` (the invariants, for tests).

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

/// Payload of the size class for full-page mirrors: a leaf page of 4 KiB, and a cache line of the
/// tree's own data.
pub const MIRROR: usize = 4096 + 64;

/// Bytes of the header before every block's payload.
pub const BLOCK_HEADER_BYTES: usize = HEADER as usize;

/// Bytes of the marks in a block's payload ([`RingOptions::marks`]).
pub const MARK_BYTES: usize = MARKS as usize;

/// Payloads of the default size classes.
pub const SIZES: [usize; 8] = [64, 128, 256, 512, 1024, 2048, 4096, MIRROR];

/// A ring's size and shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingOptions {
    /// Bytes of the region: a multiple of 4 KiB, and at least two blocks of the largest class.
    pub capacity: usize,
    /// The share of the region, in percent, in which mini-pages are copied to the tail when they
    /// are used: 0 to 100.
    pub copy_on_access_percent: u8,
    /// Payloads of the size classes in ascending order, each a multiple of 8. A block takes 8 bytes
    /// more.
    pub sizes: Vec<usize>,
    /// The maximum number of pages, which bounds the mapping table: at most 2^40.
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

/// Why a ring could not be made.
#[derive(Debug, thiserror::Error)]
pub enum RingError {
    /// The size of the region is invalid.
    #[error("a ring of {found} bytes: expected a multiple of 4096, at least {least}")]
    Capacity {
        /// The requested value.
        found: usize,
        /// The minimum: two blocks of the largest class, rounded up.
        least: usize,
    },
    /// The copy-on-access region is larger than the ring.
    #[error("a copy-on-access region of {found} %: expected 0 to 100")]
    Share {
        /// The requested share.
        found: u8,
    },
    /// A size class is invalid.
    #[error(
        "size class {found}: expected up to 32 ascending multiples of 8 from {least} to {most} bytes"
    )]
    Size {
        /// The class, or the number of classes.
        found: usize,
        /// The smallest valid payload.
        least: usize,
        /// The largest valid payload.
        most: usize,
    },
    /// A block's header cannot name so many pages.
    #[error("a mapping table of {found} pages: expected 1 to {most}")]
    Pages {
        /// The requested value.
        found: u64,
        /// The maximum.
        most: u64,
    },
    /// The system could not allocate the memory.
    #[error("no memory for a ring of {bytes} bytes")]
    Memory {
        /// The requested value.
        bytes: usize,
        /// The system's error.
        source: std::io::Error,
    },
}

impl RingOptions {
    /// The smallest valid region for these size classes. An allocation may have to be preceded by
    /// padding of up to its own size, minus the common divisor of all footprints.
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

/// Data that other threads write often, on its own cache line (and its neighbour, which is fetched
/// with it).
#[derive(Debug)]
#[repr(align(128))]
struct Apart<T>(T);

/// A circular buffer of mini-pages, with the mapping table of their pages. See the [module](self).
pub struct Ring {
    table: Table,
    region: Region,
    /// Footprints of the size classes, ascending.
    classes: Box<[u64]>,
    capacity: u64,
    /// Bytes of marks in each payload.
    marks: u64,
    in_place: u64,
    /// The tail's offset, for threads that do not hold the mutex.
    tail: Apart<AtomicU64>,
    space: Apart<Mutex<Space>>,
    /// Signalled when the head has moved or a claim was given back.
    moved: Condvar,
    hook: Hook<Event>,
}

impl Ring {
    /// Makes an empty ring.
    ///
    /// # Errors
    /// [`RingError`] if an option is invalid or the system has no memory.
    pub fn new(options: &RingOptions) -> Result<Self, RingError> {
        Self::observed(options, None)
    }

    /// Makes an empty ring that reports its steps to an observer.
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

    /// Adds a page that has a leaf and no mini-page.
    ///
    /// # Errors
    /// [`PageError::OutOfPages`] if all ids are in use.
    pub fn create_page(&self, leaf: LeafAddress) -> Result<PageId, PageError> {
        self.table.allocate(leaf)
    }

    /// Adds a page with an id that was assigned elsewhere: in recovery, or when a leaf was split.
    /// The page is returned locked, so that other threads that know the id find the page as the
    /// caller leaves it. Lower ids that are never adopted are free.
    ///
    /// # Errors
    /// If the id is in use, or beyond the table's bound.
    pub fn adopt_page(&self, page: PageId, leaf: LeafAddress) -> Result<Exclusive<'_>, PageError> {
        let (word, bits) = self.table.adopt(page, leaf)?;
        Exclusive::new(Locked::new(self, page, word, bits))
    }

    /// The number of existing pages.
    #[must_use]
    pub fn pages(&self) -> u64 {
        self.table.len()
    }

    /// Bytes of the mapping table.
    #[must_use]
    pub fn table_bytes(&self) -> usize {
        self.table.bytes()
    }

    /// Locks a page for reading. Waits while a writer holds the lock or waits for it. A thread must
    /// not lock a page that it has already locked.
    ///
    /// # Errors
    /// [`PageError::Unknown`] if the page does not exist.
    #[inline]
    pub fn shared(&self, page: PageId) -> Result<Shared<'_>, PageError> {
        let word = self.table.word(page)?;
        Shared::new(Locked::new(self, page, word, word.lock_shared()))
    }

    /// As [`Ring::shared`], but returns `None` instead of waiting.
    ///
    /// # Errors
    /// [`PageError::Unknown`] if the page does not exist.
    #[inline]
    pub fn try_shared(&self, page: PageId) -> Result<Option<Shared<'_>>, PageError> {
        let word = self.table.word(page)?;
        let locked = word.try_lock_shared();
        locked
            .map(|bits| Shared::new(Locked::new(self, page, word, bits)))
            .transpose()
    }

    /// Locks a page exclusively, with its mini-page and its leaf. A thread must not lock a page
    /// that it has already locked.
    ///
    /// # Errors
    /// [`PageError::Unknown`] if the page does not exist.
    #[inline]
    pub fn exclusive(&self, page: PageId) -> Result<Exclusive<'_>, PageError> {
        let word = self.table.word(page)?;
        Exclusive::new(Locked::new(self, page, word, word.lock()))
    }

    /// As [`Ring::exclusive`], but returns `None` instead of waiting.
    ///
    /// # Errors
    /// [`PageError::Unknown`] if the page does not exist.
    #[inline]
    pub fn try_exclusive(&self, page: PageId) -> Result<Option<Exclusive<'_>>, PageError> {
        let word = self.table.word(page)?;
        let locked = word.try_lock();
        locked
            .map(|bits| Exclusive::new(Locked::new(self, page, word, bits)))
            .transpose()
    }

    /// The payload of the smallest block that holds `len` bytes. `None` if no class is large
    /// enough.
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

    /// Returns the ring's counters.
    #[must_use]
    pub fn stats(&self) -> RingStats {
        let space = self.space.0.lock();
        RingStats {
            span_bytes: space.tail - space.head,
            ..space.stats.clone()
        }
    }

    /// Bytes between tail and head: the room for allocations before anything must be evicted, apart
    /// from blocks on free lists.
    #[must_use]
    pub fn room(&self) -> u64 {
        let space = self.space.0.lock();
        self.capacity - (space.tail - space.head)
    }

    /// Bytes that the tail has passed so far.
    #[must_use]
    pub fn passed(&self) -> u64 {
        self.space.0.lock().tail
    }

    /// Returns the pages whose mini-pages will be evicted next, and the bytes up to the last of
    /// them. The blocks add up to about `bytes`, and there are at most `most` pages. The result is
    /// a guess, for prefetching, and may be outdated at once. O(`most`).
    #[must_use]
    pub fn next_victims(&self, most: usize, bytes: u64) -> (Vec<PageId>, u64) {
        let space = self.space.0.lock();
        space.next_victims(&self.region, most, bytes)
    }

    /// Returns whether a block is in the copy-on-access region (§4.1). The caller holds a lock on
    /// its page.
    ///
    /// The block is in use, so its address is less than a lap before any value that the tail has
    /// had since the block was allocated. The page's lock orders the allocation before this load.
    /// So a single load of the tail gives the distance.
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
        // Padding counts even if there was no room for a block behind it.
        let tail = space.offset_of(space.tail);
        self.tail.0.store(tail, Relaxed);
        found.ok_or_else(|| Full {
            wanted: wanted.footprint,
            short: space.short_of(wanted.footprint),
        })
    }

    /// Frees the block of a page. The caller has locked the page exclusively, and the page no
    /// longer points at the block.
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
        // SAFETY: the block belongs to the caller, and the head cannot pass it before it is freed
        // here.
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
