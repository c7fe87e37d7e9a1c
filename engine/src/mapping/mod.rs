//! The mapping table: an indirection array from page ids to addresses, in which each word also
//! holds its page's lock (Bf-Tree §3.3).
//!
//! ```text
//! directory   [ chunk 0 | chunk 1 | (not yet) | ... ]     fixed length, for all pages; never moves
//!                 |
//!                 v
//! chunk       [ word | word | ... ]                       64 KiB, made when its first id is used
//!                |
//!                v
//! word        | address: 48 bits | lock: 16 bits |        see `word`
//!
//! address     0                  no page: the id is free
//!             0 | leaf + 1       the page has only its leaf     leaf: 47 bits, defined by the tree
//!             1 | block / 8      the page has a mini-page       block: an offset in the ring
//! ```
//!
//! A page's mini-page and its leaf page have one id and therefore one lock (§3.3). The table never
//! shrinks and no word moves, so a lock needs no second lookup. The word of a free id may still be
//! locked for an instant by a thread that read the id long ago (an evictor); that thread finds the
//! address changed and unlocks.
//!
//! The table is separate from the ring because it knows nothing of blocks. Its parts are not
//! public: access to a block's bytes relies on the address in its page's word, so only
//! [`crate::ring::Ring`], which owns a table, may write there.
//!
//! Allocating an id takes the smallest free one, O(log n). A lookup is two loads.

mod word;

use std::collections::BTreeSet;
use std::sync::OnceLock;

use crate::PageId;
use crate::sync::Mutex;
pub(crate) use word::{ADDRESS_BITS, Word};

/// Words in a chunk: 64 KiB. Few under loom, which makes them all for each execution.
const CHUNK: usize = if cfg!(loom) { 4 } else { 8192 };

/// The tree's address of a leaf page: any number of 47 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeafAddress(u64);

impl LeafAddress {
    /// The largest value.
    pub const MAX: u64 = (1 << (ADDRESS_BITS - 1)) - 2;

    /// Makes an address, if it is no larger than [`LeafAddress::MAX`].
    pub const fn new(address: u64) -> Option<Self> {
        if address <= Self::MAX {
            Some(Self(address))
        } else {
            None
        }
    }

    /// The number that the address was made of.
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// Where a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Nowhere: the id is free.
    Free,
    /// The page has only its leaf.
    Leaf(LeafAddress),
    /// The page has a mini-page, whose block has this offset, a multiple of 8.
    Block(u64),
}

const BLOCK: u64 = 1 << (ADDRESS_BITS - 1);

impl Place {
    /// The bits of `Place::Free`.
    pub(crate) const FREE_BITS: u64 = 0;

    /// The 48 bits of the drawing in the module documentation.
    #[inline]
    pub(crate) fn bits(self) -> u64 {
        match self {
            Place::Free => Self::FREE_BITS,
            Place::Leaf(LeafAddress(leaf)) => leaf + 1,
            Place::Block(offset) => BLOCK | (offset / 8),
        }
    }

    #[inline]
    pub(crate) fn of(bits: u64) -> Self {
        match bits {
            Self::FREE_BITS => Place::Free,
            leaf if leaf & BLOCK == 0 => Place::Leaf(LeafAddress(leaf - 1)),
            block => Place::Block((block & !BLOCK) * 8),
        }
    }
}

/// Why a page id is invalid or cannot be assigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PageError {
    /// The id was never assigned, or was released.
    #[error("{page} is not in the mapping table")]
    Unknown {
        /// The id.
        page: PageId,
    },
    /// All ids are in use.
    #[error("all {limit} page ids of the mapping table are in use")]
    OutOfPages {
        /// The number of ids.
        limit: u64,
    },
    /// The requested id lies beyond the table's bound.
    #[error("{page} is beyond the {limit} page ids of the mapping table")]
    BeyondLimit {
        /// The id.
        page: PageId,
        /// The number of ids.
        limit: u64,
    },
    /// The requested id is in use.
    #[error("{page} is in the mapping table already")]
    InUse {
        /// The id.
        page: PageId,
    },
}

#[derive(Debug, Default)]
struct Ids {
    /// Ids that were assigned and released, or skipped by [`Table::adopt`].
    free: BTreeSet<u64>,
    /// All ids from here on are free, too.
    next: u64,
}

/// The words of all pages, by page id.
#[derive(Debug)]
pub(crate) struct Table {
    chunks: Box<[OnceLock<Box<[Word]>>]>,
    limit: u64,
    ids: Mutex<Ids>,
}

impl Table {
    /// The maximum number of ids of a table: those that a block's header can name.
    pub(crate) const MOST_PAGES: u64 = 1 << 40;

    /// Makes an empty table for at most `limit` pages. The directory takes 24 bytes for each 8192
    /// pages.
    pub(crate) fn new(limit: u64) -> Self {
        let chunks = limit.div_ceil(CHUNK as u64);
        let table = Self {
            chunks: (0..chunks).map(|_| OnceLock::new()).collect(),
            limit,
            ids: Mutex::new(Ids::default()),
        };
        if cfg!(loom) {
            // `OnceLock` orders the creation of a chunk before its uses. Loom does not see that, so
            // under loom all chunks are made in advance.
            (0..limit)
                .step_by(CHUNK)
                .for_each(|id| _ = table.make(PageId(id)));
        }
        table
    }

    fn make(&self, page: PageId) -> &Word {
        let place = page.0 as usize;
        let chunk =
            self.chunks[place / CHUNK].get_or_init(|| (0..CHUNK).map(|_| Word::new()).collect());
        &chunk[place % CHUNK]
    }

    /// The word of an id that may be arbitrary.
    #[inline]
    pub(crate) fn word(&self, page: PageId) -> Result<&Word, PageError> {
        let place = page.0 as usize;
        let chunk = self.chunks.get(place / CHUNK).and_then(OnceLock::get);
        match chunk {
            Some(chunk) => Ok(&chunk[place % CHUNK]),
            None => Err(PageError::Unknown { page }),
        }
    }

    /// Assigns an id to a page that has only a leaf.
    pub(crate) fn allocate(&self, leaf: LeafAddress) -> Result<PageId, PageError> {
        let mut ids = self.ids.lock();
        let id = match ids.free.pop_first() {
            Some(id) => id,
            None if ids.next < self.limit => {
                ids.next += 1;
                ids.next - 1
            }
            None => return Err(PageError::OutOfPages { limit: self.limit }),
        };
        drop(ids);
        let (word, bits) = self.begin(PageId(id), leaf);
        word.unlock(bits, bits);
        Ok(PageId(id))
    }

    /// Assigns this specific id, of a page that other threads know already. Returns its word,
    /// locked, and its address. O(gap) for the ids that are skipped.
    pub(crate) fn adopt(&self, page: PageId, leaf: LeafAddress) -> Result<(&Word, u64), PageError> {
        if page.0 >= self.limit {
            let limit = self.limit;
            return Err(PageError::BeyondLimit { page, limit });
        }
        let mut ids = self.ids.lock();
        if page.0 < ids.next {
            if !ids.free.remove(&page.0) {
                return Err(PageError::InUse { page });
            }
        } else {
            let passed_over = ids.next..page.0;
            ids.free.extend(passed_over);
            ids.next = page.0 + 1;
        }
        drop(ids);
        Ok(self.begin(page, leaf))
    }

    fn begin(&self, page: PageId, leaf: LeafAddress) -> (&Word, u64) {
        let word = self.make(page);
        // An evictor may hold the lock for an instant, on behalf of the id's previous page.
        let was = word.lock();
        debug_assert_eq!(Place::of(was), Place::Free, "{page} is given out twice");
        let bits = Place::Leaf(leaf).bits();
        word.redirect(was, bits);
        (word, bits)
    }

    /// Releases an id whose word has just been unlocked as free.
    pub(crate) fn release(&self, page: PageId) {
        self.ids.lock().free.insert(page.0);
    }

    /// The number of ids in use.
    pub(crate) fn len(&self) -> u64 {
        let ids = self.ids.lock();
        ids.next - ids.free.len() as u64
    }

    /// Bytes allocated for words and directory.
    pub(crate) fn bytes(&self) -> usize {
        let made = self.chunks.iter().filter(|c| c.get().is_some()).count();
        made * CHUNK * size_of::<Word>() + size_of_val(&*self.chunks)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    fn leaf(address: u64) -> LeafAddress {
        LeafAddress::new(address).expect("a small address")
    }

    #[test]
    fn places_survive_their_48_bits() {
        let leaves = [0, 1, 4096, LeafAddress::MAX].map(|a| Place::Leaf(leaf(a)));
        let blocks = [0, 8, 72, 1 << 40].map(Place::Block);
        for place in leaves.into_iter().chain(blocks).chain([Place::Free]) {
            assert!(place.bits() < 1 << ADDRESS_BITS);
            assert_eq!(Place::of(place.bits()), place);
        }
        assert_eq!(LeafAddress::new(LeafAddress::MAX + 1), None);
    }

    #[test]
    fn ids_are_dense_come_back_and_end_at_the_limit() {
        let table = Table::new(3);
        let ids: Vec<_> = (0..3).map(|n| table.allocate(leaf(n))).collect();
        assert_eq!(ids, [Ok(PageId(0)), Ok(PageId(1)), Ok(PageId(2))]);
        assert_eq!(
            table.allocate(leaf(3)),
            Err(PageError::OutOfPages { limit: 3 })
        );
        let word = table.word(PageId(1)).expect("known");
        let was = word.lock();
        assert_eq!(Place::of(was), Place::Leaf(leaf(1)));
        word.unlock(was, Place::Free.bits());
        table.release(PageId(1));
        assert_eq!(table.len(), 2);
        assert_eq!(table.allocate(leaf(9)), Ok(PageId(1)));
        assert!(table.word(PageId(1 << 50)).is_err());
    }

    #[test]
    fn adopted_ids_are_taken_and_those_passed_over_are_free() {
        let table = Table::new(10_000);
        let adopt = |page, at| {
            let (word, bits) = table.adopt(PageId(page), leaf(at))?;
            assert_eq!(word.try_lock_shared(), None, "it comes locked");
            word.unlock(bits, bits);
            Ok(word.lock_shared())
        };
        let bits = |at| Place::Leaf(leaf(at)).bits();
        assert_eq!(adopt(9_000, 1), Ok(bits(1)));
        let page = PageId(9_000);
        assert_eq!(adopt(9_000, 1), Err(PageError::InUse { page }));
        assert_eq!(table.allocate(leaf(2)), Ok(PageId(0)));
        assert_eq!(adopt(1, 2), Ok(bits(2)));
        assert_eq!(table.allocate(leaf(2)), Ok(PageId(2)));
        assert_eq!(table.len(), 4);
        let page = PageId(10_000);
        let limit = 10_000;
        assert_eq!(
            adopt(10_000, 1),
            Err(PageError::BeyondLimit { page, limit })
        );
    }
}
