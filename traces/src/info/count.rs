//! Distinct keys and their access counts in bounded memory.
//!
//! A table from key hash to count holds every key until it is full. Then it keeps only keys whose hash begins with one more
//! zero bit, half of them, and goes on ("adaptive sampling", Wegman; analysed by Flajolet, "On adaptive sampling",
//! Computing 34, 1990). A key that is kept at the end was kept from its first access on, so its count is exact;
//! the kept keys are a uniform sample of all keys, and (number kept) · 2^level estimates how many there
//! are, with a standard error of about 1.2 / √(table size), below 0.1 %.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use xxhash_rust::xxh3::xxh3_64;

/// Keys counted exactly; then the estimate begins. Just below what 2^22 hash buckets hold: 70 MiB.
pub(crate) const EXACT_KEYS: usize = 3_600_000;

/// Access counts by key.
pub(crate) struct KeyCounts {
    counts: FxHashMap<u64, u32>,
    limit: usize,
    level: u32,
    /// Kept keys with a count above 0.
    accessed: u64,
}

impl KeyCounts {
    /// A table of at most `limit` keys.
    pub(crate) fn new(limit: usize) -> Self {
        KeyCounts {
            counts: FxHashMap::default(),
            limit,
            level: 0,
            accessed: 0,
        }
    }

    fn keeps(level: u32, hash: u64) -> bool {
        hash.leading_zeros() >= level
    }

    /// Notes that the key exists, without an access.
    #[inline]
    pub(crate) fn meet(&mut self, key: &[u8]) {
        let hash = xxh3_64(key);
        if Self::keeps(self.level, hash) {
            self.counts.entry(hash).or_insert(0);
            self.shrink();
        }
    }

    /// Counts an access.
    #[inline]
    pub(crate) fn access(&mut self, key: &[u8]) {
        let hash = xxh3_64(key);
        if Self::keeps(self.level, hash) {
            let count = self.counts.entry(hash).or_insert(0);
            if *count == 0 {
                self.accessed += 1;
            }
            *count = count.saturating_add(1);
            self.shrink();
        }
    }

    #[inline]
    fn shrink(&mut self) {
        while self.counts.len() > self.limit {
            self.level += 1;
            let level = self.level;
            self.counts.retain(|&hash, _| Self::keeps(level, hash));
            self.accessed = self.counts.values().filter(|&&count| count > 0).count() as u64;
        }
    }

    /// Whether every key is in the table.
    pub(crate) fn is_exact(&self) -> bool {
        self.level == 0
    }

    /// Distinct keys, met or accessed.
    pub(crate) fn distinct(&self) -> u64 {
        (self.counts.len() as u64) << self.level
    }

    /// Distinct keys accessed.
    pub(crate) fn distinct_accessed(&self) -> u64 {
        self.accessed << self.level
    }

    /// How many of the kept keys were accessed how often.
    pub(crate) fn frequencies(&self) -> BTreeMap<u32, u64> {
        let mut frequencies = BTreeMap::new();
        for &count in self.counts.values() {
            *frequencies.entry(count).or_insert(0) += 1;
        }
        frequencies
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_is_close_when_the_table_overflows_and_counts_stay_exact() {
        let mut counts = KeyCounts::new(10_000);
        for _ in 0..3 {
            for key in 0..200_000u64 {
                counts.access(&key.to_be_bytes());
            }
        }
        assert!(!counts.is_exact());
        let error = counts.distinct() as f64 / 200_000.0 - 1.0;
        assert!(error.abs() < 0.05, "{error}");
        assert_eq!(counts.distinct(), counts.distinct_accessed());
        assert_eq!(counts.frequencies().into_keys().collect::<Vec<_>>(), [3]);
    }

    #[test]
    fn a_table_with_room_is_exact() {
        let mut counts = KeyCounts::new(1000);
        for key in 0..500u64 {
            counts.meet(&key.to_be_bytes());
        }
        counts.access(&7u64.to_be_bytes());
        assert!(counts.is_exact());
        assert_eq!((counts.distinct(), counts.distinct_accessed()), (500, 1));
    }
}
