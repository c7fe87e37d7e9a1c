//! Distinct keys and their access counts in bounded memory.
//!
//! A table maps the hash of a key to its count and holds every key until it is full. From then on
//! it keeps only keys whose hash starts with one more zero bit, which is half of them, and
//! continues ("adaptive sampling", Wegman; analysed by Flajolet, "On adaptive sampling", Computing
//! 34, 1990). A key that is in the table at the end was there since its first access, so its count
//! is exact. The kept keys are a uniform sample of all keys. (Number kept) · 2^level estimates the
//! number of keys, with a standard error of about 1.2 / √(table size), below 0.1 %.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use xxhash_rust::xxh3::xxh3_64;

use crate::{Op, OpKind};

/// The most keys that are counted exactly; beyond it the number is estimated. Just below the
/// capacity of a table of 2^22 hash buckets: 70 MiB.
pub(crate) const EXACT_KEYS: usize = 3_600_000;

/// Flag in a key's count: an operation has written the key.
const WRITTEN: u32 = 1 << 31;
/// Flag in a key's count: the first operation on the key was not a put.
const WAS_THERE: u32 = 1 << 30;
/// The bits of the count itself.
const COUNT: u32 = WAS_THERE - 1;

/// Access counts by key.
pub(crate) struct KeyCounts {
    counts: FxHashMap<u64, u32>,
    limit: usize,
    level: u32,
    /// Kept keys with a count above 0.
    accessed: u64,
    /// Reads of keys that no earlier operation wrote.
    unwritten_reads: u64,
}

impl KeyCounts {
    /// Creates a table of at most `limit` keys.
    pub(crate) fn new(limit: usize) -> Self {
        KeyCounts {
            counts: FxHashMap::default(),
            limit,
            level: 0,
            accessed: 0,
            unwritten_reads: 0,
        }
    }

    fn keeps(level: u32, hash: u64) -> bool {
        hash.leading_zeros() >= level
    }

    /// Records an operation on a key without counting it as an access.
    #[inline]
    pub(crate) fn meet(&mut self, op: &Op) {
        let hash = xxh3_64(&op.key);
        if Self::keeps(self.level, hash) {
            self.note(hash, op.kind);
            self.shrink();
        }
    }

    /// Counts an access to the key with this hash (`xxh3_64`).
    #[inline]
    pub(crate) fn access(&mut self, hash: u64, kind: OpKind) {
        if Self::keeps(self.level, hash) {
            let level = self.level;
            let (count, unwritten) = self.note(hash, kind);
            let first = *count & COUNT == 0;
            if *count & COUNT < COUNT {
                *count += 1;
            }
            self.accessed += u64::from(first);
            if unwritten && kind == OpKind::Get {
                self.unwritten_reads += 1 << level;
            }
            self.shrink();
        }
    }

    /// Returns the count of a key, and whether no earlier operation has written it.
    #[inline]
    fn note(&mut self, hash: u64, kind: OpKind) -> (&mut u32, bool) {
        let first = if kind == OpKind::Put { 0 } else { WAS_THERE };
        let count = self.counts.entry(hash).or_insert(first);
        let unwritten = *count & WRITTEN == 0;
        if matches!(kind, OpKind::Put | OpKind::Delete) {
            *count |= WRITTEN;
        }
        (count, unwritten)
    }

    /// Returns the number of keys whose first operation was not a put, so they existed before.
    pub(crate) fn was_there(&self) -> u64 {
        let there = self.counts.values().filter(|&&count| count & WAS_THERE > 0);
        (there.count() as u64) << self.level
    }

    /// Returns the number of accesses that read a key that no earlier operation wrote.
    pub(crate) fn unwritten_reads(&self) -> u64 {
        self.unwritten_reads
    }

    #[inline]
    fn shrink(&mut self) {
        while self.counts.len() > self.limit {
            self.level += 1;
            let level = self.level;
            self.counts.retain(|&hash, _| Self::keeps(level, hash));
            self.accessed = self
                .counts
                .values()
                .filter(|&&count| count & COUNT > 0)
                .count() as u64;
        }
    }

    /// Whether every key is in the table.
    pub(crate) fn is_exact(&self) -> bool {
        self.level == 0
    }

    /// Returns the relative standard error of the numbers of keys, as of a binomial sample.
    pub(crate) fn error(&self) -> f64 {
        let left_out = 1.0 - 0.5f64.powi(self.level as i32);
        (left_out / self.counts.len().max(1) as f64).sqrt()
    }

    /// Returns the number of distinct keys, whether or not an access to them was counted.
    pub(crate) fn distinct(&self) -> u64 {
        (self.counts.len() as u64) << self.level
    }

    /// Returns the number of distinct keys accessed.
    pub(crate) fn distinct_accessed(&self) -> u64 {
        self.accessed << self.level
    }

    /// Returns how many of the kept keys were accessed how often.
    pub(crate) fn frequencies(&self) -> BTreeMap<u32, u64> {
        let mut frequencies = BTreeMap::new();
        for &count in self.counts.values() {
            *frequencies.entry(count & COUNT).or_insert(0) += 1;
        }
        frequencies
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn op(kind: OpKind, key: u64) -> Op {
        Op {
            kind,
            key: key.to_be_bytes().to_vec(),
            ..Op::default()
        }
    }

    fn access(counts: &mut KeyCounts, kind: OpKind, key: u64) {
        counts.access(xxh3_64(&key.to_be_bytes()), kind);
    }

    #[test]
    fn the_estimate_is_close_when_the_table_overflows_and_counts_stay_exact() {
        let mut counts = KeyCounts::new(10_000);
        for _ in 0..3 {
            for key in 0..200_000u64 {
                access(&mut counts, OpKind::Get, key);
            }
        }
        assert!(!counts.is_exact());
        let error = counts.distinct() as f64 / 200_000.0 - 1.0;
        assert!(error.abs() < 0.05, "{error}");
        // Within three standard errors, which are about 1 % for 10,000 keys.
        let expected = counts.error();
        assert!((0.008..0.02).contains(&expected), "{expected}");
        assert!(error.abs() < 3.0 * expected, "{error}");
        assert_eq!(counts.distinct(), counts.distinct_accessed());
        assert_eq!(counts.frequencies().into_keys().collect::<Vec<_>>(), [3]);
    }

    #[test]
    fn a_table_with_room_is_exact() {
        let mut counts = KeyCounts::new(1000);
        for key in 0..500u64 {
            counts.meet(&op(OpKind::Put, key));
        }
        access(&mut counts, OpKind::Get, 7);
        assert!(counts.is_exact());
        assert_eq!((counts.distinct(), counts.distinct_accessed()), (500, 1));
        assert_eq!((counts.was_there(), counts.unwritten_reads()), (0, 0));
    }

    #[test]
    fn what_is_read_before_it_is_written_was_there() {
        for limit in [100_000, 1_000] {
            let mut counts = KeyCounts::new(limit);
            for key in 0..20_000 {
                let kinds = match key % 4 {
                    0 => [OpKind::Get, OpKind::Put, OpKind::Get],
                    1 => [OpKind::Put, OpKind::Get, OpKind::Get],
                    2 => [OpKind::Delete, OpKind::Get, OpKind::Put],
                    _ => [OpKind::Scan, OpKind::Get, OpKind::Get],
                };
                kinds
                    .iter()
                    .for_each(|kind| access(&mut counts, *kind, key));
            }
            // One get of a key in four, and two of another.
            let (keys, reads) = (counts.was_there() as f64, counts.unwritten_reads() as f64);
            let bound = if counts.is_exact() { 0.0 } else { 0.15 };
            assert!((keys / 15_000.0 - 1.0).abs() <= bound, "{keys}");
            assert!((reads / 15_000.0 - 1.0).abs() <= bound, "{reads}");
        }
    }
}
