//! The index of known keys: 4 bytes per slot, for keys that are stored elsewhere.
//!
//! ```text
//! slot: tag 8 | number of the key + 1, 24        0 if empty
//! ```
//!
//! Open addressing with linear probing. The lower half of the hash chooses the first slot, sampling
//! uses its highest bits, and the tag is taken from the bits in between. If a tag matches, the key
//! itself is compared, so different keys are never confused. Beyond 2^24 keys, the numbers need the
//! whole slot, and there are no tags.
//!
//! A table is 62 to 87 % full. To grow, the old slots are freed and the new table is filled from
//! the keys, so growth needs no additional memory.

use xxhash_rust::xxh3::xxh3_64;

use super::keys::Keys;

/// Slots of an empty table.
const LEAST_SLOTS: usize = 4096;
/// Bits of a key number in a slot with a tag.
const NUMBER_BITS: u32 = 24;
const TAGS: u32 = u32::MAX << NUMBER_BITS;

/// The index from hashes to keys.
pub(super) struct Table {
    slots: Vec<u32>,
    used: usize,
    /// Number of tag bits in a slot.
    tags: u32,
}

impl Table {
    pub(super) fn new() -> Table {
        Table {
            slots: vec![0; LEAST_SLOTS],
            used: 0,
            tags: TAGS,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.slots.capacity() * size_of::<u32>()
    }

    fn home(&self, hash: u64) -> usize {
        // The lower half times the number of slots, which need not be a power of two.
        (((hash & u64::from(u32::MAX)) * self.slots.len() as u64) >> 32) as usize
    }

    fn tag(&self, hash: u64) -> u32 {
        (hash >> 8) as u32 & self.tags
    }

    /// Prefetches the cache line that `find` will need.
    pub(super) fn touch(&self, hash: u64) {
        std::hint::black_box(self.slots[self.home(hash)]);
    }

    /// The first key that may have this hash.
    #[inline]
    pub(super) fn candidate(&self, hash: u64) -> Option<u32> {
        self.find(hash, |_| true)
    }

    /// The number of the key with this hash for which `is` returns `true`.
    #[inline]
    pub(super) fn find(&self, hash: u64, is: impl Fn(u32) -> bool) -> Option<u32> {
        let tag = self.tag(hash);
        let home = self.home(hash);
        let (before, from) = self.slots.split_at(home);
        for &slot in from.iter().chain(before) {
            if slot == 0 {
                return None;
            }
            let number = slot & !self.tags;
            if slot & self.tags == tag && is(number - 1) {
                return Some(number - 1);
            }
        }
        None
    }

    fn insert(&mut self, hash: u64, index: u32) {
        let mut at = self.home(hash);
        while self.slots[at] != 0 {
            at += 1;
            if at == self.slots.len() {
                at = 0;
            }
        }
        self.slots[at] = self.tag(hash) | (index + 1);
        self.used += 1;
    }

    /// Adds the last key, which has this hash.
    pub(super) fn add(&mut self, hash: u64, keys: &Keys) {
        if self.used * 8 >= self.slots.len() * 7 {
            self.fill(keys);
            return;
        }
        if keys.len() >= 1 << NUMBER_BITS && self.tags != 0 {
            self.tags = 0;
            self.slots.iter_mut().for_each(|slot| *slot &= !TAGS);
        }
        self.insert(hash, keys.len() as u32 - 1);
    }

    /// Rebuilds the table from these keys.
    pub(super) fn fill(&mut self, keys: &Keys) {
        // Old slots are freed before there are new ones.
        self.slots = Vec::new();
        self.slots = vec![0; (keys.len() * 8 / 5).max(LEAST_SLOTS)];
        self.used = 0;
        self.tags = match keys.len() < 1 << NUMBER_BITS {
            true => TAGS,
            false => 0,
        };
        keys.each_key(|index, key| self.insert(xxh3_64(key), index));
    }
}
