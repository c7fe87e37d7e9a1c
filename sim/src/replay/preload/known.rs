//! The set of keys that a trace has named so far, in 15 to 19 bytes per key.
//!
//! Open addressing with linear probing on 64-bit hashes: among traces of ten million keys, one in
//! 400,000 has two keys with the same hash. Tables are 64 to 80 % full. There are 64 tables, so
//! that a growing table needs its old and new slots at the same time for only a sixty-fourth of the
//! keys.

const SHARDS: usize = 64;

/// Slots of a new table.
const LEAST_SLOTS: usize = 16;

/// A map from key hashes to numbers.
#[derive(Debug)]
pub(super) struct Known {
    shards: Vec<Shard>,
}

/// Hashes (0 for an empty slot) and their numbers.
#[derive(Clone, Debug)]
struct Shard {
    hashes: Vec<u64>,
    numbers: Vec<u32>,
    used: usize,
}

impl Known {
    pub(super) fn new() -> Known {
        Known {
            shards: vec![Shard::with_slots(LEAST_SLOTS); SHARDS],
        }
    }

    /// The number of a key; `first` chooses it when the key is new.
    pub(super) fn number(&mut self, hash: u64, first: impl FnOnce() -> u32) -> u32 {
        let hash = hash.max(1);
        let shard = &mut self.shards[hash as usize % SHARDS];
        let at = shard.place(hash);
        if shard.hashes[at] == hash {
            return shard.numbers[at];
        }
        let number = first();
        shard.hashes[at] = hash;
        shard.numbers[at] = number;
        shard.used += 1;
        if shard.used * 5 > shard.hashes.len() * 4 {
            shard.grow();
        }
        number
    }
}

impl Shard {
    fn with_slots(slots: usize) -> Shard {
        Shard {
            hashes: vec![0; slots],
            numbers: vec![0; slots],
            used: 0,
        }
    }

    /// The slot where a key is or would be. Some slot is always empty.
    fn place(&self, hash: u64) -> usize {
        let slots = self.hashes.len();
        // The upper bits times the number of slots, which need not be a power of two.
        let mut at = ((u128::from(hash) * slots as u128) >> 64) as usize;
        while self.hashes[at] != 0 && self.hashes[at] != hash {
            at = if at + 1 == slots { 0 } else { at + 1 };
        }
        at
    }

    fn grow(&mut self) {
        let larger = self.hashes.len() + self.hashes.len() / 4;
        let old = std::mem::replace(self, Shard::with_slots(larger));
        self.used = old.used;
        for (hash, number) in old.hashes.into_iter().zip(old.numbers) {
            if hash != 0 {
                let at = self.place(hash);
                self.hashes[at] = hash;
                self.numbers[at] = number;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_keeps_the_number_it_got_first_in_few_bytes() {
        let mut known = Known::new();
        let hash = |key: u64| xxhash_rust::xxh3::xxh3_64(&key.to_le_bytes());
        let mut most = 0.0f64;
        for key in 0..200_000u64 {
            assert_eq!(known.number(hash(key), || key as u32), key as u32);
            let again = key / 2;
            assert_eq!(known.number(hash(again), || u32::MAX), again as u32);
            let slots: usize = known.shards.iter().map(|s| s.hashes.len()).sum();
            if key > 20_000 {
                most = most.max(slots as f64 * 12.0 / (key + 1) as f64);
            }
        }
        assert!(most < 20.0, "{most} bytes a key");
        assert_eq!(known.number(0, || 7), 7);
        assert_eq!(known.number(0, || 8), 7);
    }
}
