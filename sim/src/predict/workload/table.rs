//! Which keys are known: an index of 4 bytes a slot over keys that are stored elsewhere.
//!
//! ```text
//! slot: tag 8 | number of the key + 1, 24        0 if empty
//! ```
//!
//! Open addressing with linear probing. The hash chooses the first slot by its lower half, sampling
//! looks at its highest bits, and the tag is between. A tag that fits leads to the key itself,
//! which is compared, so no two keys are taken for one. Beyond 2^24 keys the numbers need the whole
//! slot, and there are no tags.
//!
//! A table is 62 to 87 % full. It grows by being filled anew from the keys after the old slots are
//! freed, so growth takes no more memory than what it leads to.

use xxhash_rust::xxh3::xxh3_64;

use super::keys::Keys;

/// Slots of a table that has no keys yet.
const LEAST_SLOTS: usize = 4096;
/// Bits of a number in a slot with a tag.
const NUMBER_BITS: u32 = 24;
const TAGS: u32 = u32::MAX << NUMBER_BITS;

/// The keys by their hashes.
pub(super) struct Table {
    slots: Vec<u32>,
    used: usize,
    /// Bits of a slot that are the tag.
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
        // The lower half times the slots: any number of slots will do.
        (((hash & u64::from(u32::MAX)) * self.slots.len() as u64) >> 32) as usize
    }

    fn tag(&self, hash: u64) -> u32 {
        (hash >> 8) as u32 & self.tags
    }

    /// Asks for the cache line that `find` will want.
    pub(super) fn touch(&self, hash: u64) {
        std::hint::black_box(self.slots[self.home(hash)]);
    }

    /// The first key that may have this hash.
    #[inline]
    pub(super) fn candidate(&self, hash: u64) -> Option<u32> {
        self.find(hash, |_| true)
    }

    /// The number of the key with this hash that `is` the one.
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

    /// Adds the last of the keys, which has this hash.
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

    /// Makes the table that of these keys.
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
