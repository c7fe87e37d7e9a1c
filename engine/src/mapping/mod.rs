//! The mapping table: an indirection array from page ids to addresses, each in one word with its page's lock (Bf-Tree §3.3).
//!
//! ```text
//! directory   [ chunk 0 | chunk 1 | (not yet) | ... ]            as long as the stated bound on pages needs; never moves
//!                 |
//!                 v
//! chunk       [ word | word | ... ]                              64 KiB each, made when its first id is given out
//!                |
//!                v
//! word        | address: 48 bits | lock: 16 bits |               see `word`
//!
//! address     0                  no page: the id is free
//!             0 | leaf + 1       the page is its leaf only       leaf: 47 bits, whatever the tree calls its leaves
//!             1 | block / 8      the page has a mini-page        block: an offset in the ring
//! ```
//!
//! A page's mini-page and its leaf page have one id and so one lock (§3.3). The table never shrinks and no word moves, so a lock needs no
//! second look-up and the word of an id that is free may still be locked for an instant by somebody who read the id long ago
//! (an evictor); that one finds the address changed and lets go.
//!
//! The table is a room of its own beside the ring, for it knows nothing of blocks, and not public by its parts: the bytes of a block are
//! handed out on the strength of the address in its page's word, so only [`crate::ring::Ring`], which owns one, may write there.
//!
//! Ids: smallest free one first, O(log n); look-up: two loads.

mod word;

use std::collections::BTreeSet;
use std::sync::OnceLock;

use crate::PageId;
use crate::sync::Mutex;
pub(crate) use word::{ADDRESS_BITS, Word};

/// Words in a chunk: 64 KiB. Few under loom, which makes them all for each execution.
const CHUNK: usize = if cfg!(loom) { 4 } else { 8192 };

/// What a tree calls a leaf page: 47 bits of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeafAddress(u64);

impl LeafAddress {
    /// The largest value.
    pub const MAX: u64 = (1 << (ADDRESS_BITS - 1)) - 2;

    /// An address, if it is no larger than [`LeafAddress::MAX`].
    pub const fn new(address: u64) -> Option<Self> {
        if address <= Self::MAX {
            Some(Self(address))
        } else {
            None
        }
    }

    /// The number that it was made of.
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// Where a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Nowhere: the id is free.
    Free,
    /// In its leaf page only.
    Leaf(LeafAddress),
    /// It has a mini-page: the offset of its block, a multiple of 8.
    Block(u64),
}

const BLOCK: u64 = 1 << (ADDRESS_BITS - 1);

impl Place {
    /// The bits of `Place::Free`.
    pub(crate) const FREE_BITS: u64 = 0;

    /// The 48 bits of the drawing.
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

/// A page id that cannot be had, or means nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PageError {
    /// No such id was ever given out, or it was taken back.
    #[error("{page} is not in the mapping table")]
    Unknown {
        /// The id.
        page: PageId,
    },
    /// All ids are in use.
    #[error("all {limit} page ids of the mapping table are in use")]
    OutOfPages {
        /// How many there are.
        limit: u64,
    },
    /// The id asked for lies beyond the table's bound.
    #[error("{page} is beyond the {limit} page ids of the mapping table")]
    BeyondLimit {
        /// The id.
        page: PageId,
        /// How many there are.
        limit: u64,
    },
    /// The id asked for is in use.
    #[error("{page} is in the mapping table already")]
    InUse {
        /// The id.
        page: PageId,
    },
}

#[derive(Debug, Default)]
struct Ids {
    /// Given out once and taken back, or passed over by [`Table::adopt`].
    free: BTreeSet<u64>,
    /// All ids from here on are free, too.
    next: u64,
}

/// Words by page id.
#[derive(Debug)]
pub(crate) struct Table {
    chunks: Box<[OnceLock<Box<[Word]>>]>,
    limit: u64,
    ids: Mutex<Ids>,
}

impl Table {
    /// The most ids that a table may be asked for: what a block's header can name.
    pub(crate) const MOST_PAGES: u64 = 1 << 40;

    /// A table for at most `limit` pages; none is there yet. The directory takes 24 bytes for each 8192 of them.
    pub(crate) fn new(limit: u64) -> Self {
        let chunks = limit.div_ceil(CHUNK as u64);
        let table = Self {
            chunks: (0..chunks).map(|_| OnceLock::new()).collect(),
            limit,
            ids: Mutex::new(Ids::default()),
        };
        if cfg!(loom) {
            // `OnceLock` orders the making of a chunk before its uses; loom does not see that, so its chunks are made ahead.
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

    /// The word of an id that may be garbage.
    #[inline]
    pub(crate) fn word(&self, page: PageId) -> Result<&Word, PageError> {
        let place = page.0 as usize;
        let chunk = self.chunks.get(place / CHUNK).and_then(OnceLock::get);
        match chunk {
            Some(chunk) => Ok(&chunk[place % CHUNK]),
            None => Err(PageError::Unknown { page }),
        }
    }

    /// Gives out an id for a page that is a leaf only.
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

    /// Gives out this very id, of a page that others know already: its word comes locked, with its address. O(gap) for the ids that it
    /// passes over.
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
        // Somebody may hold the lock for an instant, on behalf of a page that had the id before.
        let was = word.lock();
        debug_assert_eq!(Place::of(was), Place::Free, "{page} is given out twice");
        let bits = Place::Leaf(leaf).bits();
        word.redirect(was, bits);
        (word, bits)
    }

    /// Takes an id back; its word has just been unlocked as free.
    pub(crate) fn release(&self, page: PageId) {
        self.ids.lock().free.insert(page.0);
    }

    /// Ids in use.
    pub(crate) fn len(&self) -> u64 {
        let ids = self.ids.lock();
        ids.next - ids.free.len() as u64
    }

    /// Bytes taken from the allocator for words and directory.
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
