//! Distinct keys and their access counts in bounded memory.
//!
//! A table maps the hash of a key to its count and to the times of its last access and last write,
//! from which `windows`, `times`, `together` and `lives` take what they need. It holds every key
//! until it is full. From then on it keeps only keys whose hash starts with one more zero bit, which
//! is half of them, and continues ("adaptive sampling", Wegman; analysed by Flajolet, "On adaptive
//! sampling", Computing 34, 1990). A key that is in the table at the end was there since its first access, so its count
//! is exact. The kept keys are a uniform sample of all keys. (Number kept) · 2^level estimates the
//! number of keys, with a standard error of about 1.2 / √(table size), below 0.1 %.
//!
//! An access costs one look-up. Look-ups wait for memory, so the keys of a batch of operations are
//! fetched at once.

use std::collections::BTreeMap;
use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

use super::clock::Time;
use crate::OpKind;

/// The most keys that are counted exactly; beyond it the number is estimated. Just below the
/// capacity of a table of 2^22 hash buckets: 100 MiB.
pub(crate) const EXACT_KEYS: usize = 3_600_000;

/// Flag in a key's count: an operation has written the key.
const WRITTEN: u32 = 1 << 31;
/// Flag in a key's count: the first operation on the key was not a put.
const WAS_THERE: u32 = 1 << 30;
/// Flag in a key's count: an operation of the first window accessed the key.
const EARLY: u32 = 1 << 29;
/// The bits of the count itself.
const COUNT: u32 = EARLY - 1;
/// Instead of the time of a put: the key was deleted.
const DELETED: Time = Time::MAX;

/// The record of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Record {
    /// If there is one, it is older than the measured operations.
    Older,
    /// A put made it at this time.
    Since(Time),
    /// It was deleted.
    Deleted,
}

/// What was known of a key before an access.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    /// The number of keys that this one stands for.
    pub(super) stands_for: u64,
    /// Whether an earlier operation had the key, warm-up included.
    pub(super) is_known: bool,
    /// Whether an operation of the first window accessed the key.
    pub(super) is_early: bool,
    /// The time of the last access.
    pub(super) accessed: Option<Time>,
    /// The time of the last put or delete.
    pub(super) written: Option<Time>,
    /// The key's record.
    pub(super) record: Record,
}

/// A key of the table: 16 bytes.
#[derive(Clone, Copy)]
struct Known {
    /// The number of accesses, and flags.
    count: u32,
    /// The time of the last access; 0 if there was none.
    accessed: Time,
    /// The time of the last put or delete; 0 if there was none.
    written: Time,
    /// The time of the put that made the record, or [`DELETED`]; 0 if the record is older.
    since: Time,
}

/// Access counts by key.
pub(crate) struct KeyCounts {
    keys: FxHashMap<u64, Known>,
    limit: usize,
    level: u32,
    /// The last operation of the first window.
    early: Time,
    /// Kept keys with a count above 0.
    accessed: u64,
    /// Reads of keys that no earlier operation wrote.
    unwritten_reads: u64,
}

impl KeyCounts {
    /// Creates a table of at most `limit` keys. The first window ends with the operation `early`.
    pub(crate) fn new(limit: usize, early: Time) -> Self {
        KeyCounts {
            keys: FxHashMap::default(),
            limit,
            level: 0,
            early,
            accessed: 0,
            unwritten_reads: 0,
        }
    }

    fn keeps(level: u32, hash: u64) -> bool {
        hash.leading_zeros() >= level
    }

    /// Looks up keys, so that the table's entries are in the processor's cache when the keys are
    /// accessed. The look-ups do not depend on each other, so they wait for memory at the same time.
    pub(super) fn fetch(&self, hashes: impl Iterator<Item = u64>) {
        let known = hashes.filter(|&hash| {
            Self::keeps(self.level, hash) && self.keys.get(&hash).is_some_and(|key| key.count > 0)
        });
        std::hint::black_box(known.count());
    }

    /// Records an operation on a key without counting it as an access. Returns whether it is a key
    /// of the sample that no earlier operation had.
    #[inline]
    pub(crate) fn meet(&mut self, hash: u64, kind: OpKind) -> bool {
        let mut is_known = true;
        if Self::keeps(self.level, hash) {
            let key;
            (key, is_known) = self.note(hash, kind);
            match kind {
                OpKind::Put => (key.count, key.since) = (key.count | WRITTEN, 0),
                OpKind::Delete => (key.count, key.since) = (key.count | WRITTEN, DELETED),
                OpKind::Get | OpKind::Scan => {}
            }
            self.shrink();
        }
        !is_known
    }

    /// Counts an access to the key with this hash (`xxh3_64`). Returns what was known before, or
    /// `None` if the key is not in the sample.
    #[inline]
    pub(super) fn access(&mut self, hash: u64, kind: OpKind, now: Time) -> Option<Before> {
        if !Self::keeps(self.level, hash) {
            return None;
        }
        let (level, early) = (self.level, self.early);
        let (key, is_known) = self.note(hash, kind);
        let before = Before {
            stands_for: 1 << level,
            is_known,
            is_early: key.count & EARLY > 0,
            accessed: (key.accessed > 0).then_some(key.accessed),
            written: (key.written > 0).then_some(key.written),
            record: match key.since {
                0 => Record::Older,
                DELETED => Record::Deleted,
                time => Record::Since(time),
            },
        };
        let unwritten = key.count & WRITTEN == 0;
        let first = key.count & COUNT == 0;
        if key.count & COUNT < COUNT {
            key.count += 1;
        }
        key.accessed = now;
        if now <= early {
            key.count |= EARLY;
        }
        match kind {
            OpKind::Put => {
                key.count |= WRITTEN;
                key.written = now;
                if !is_known || before.record == Record::Deleted {
                    key.since = now;
                }
            }
            OpKind::Delete => {
                key.count |= WRITTEN;
                key.written = now;
                key.since = DELETED;
            }
            OpKind::Get | OpKind::Scan => {}
        }
        self.accessed += u64::from(first);
        if unwritten && kind == OpKind::Get {
            self.unwritten_reads += 1 << level;
        }
        self.shrink();
        Some(before)
    }

    /// Returns the entry of a key, and whether it was in the table before.
    #[inline]
    fn note(&mut self, hash: u64, kind: OpKind) -> (&mut Known, bool) {
        match self.keys.entry(hash) {
            Entry::Occupied(entry) => (entry.into_mut(), true),
            Entry::Vacant(entry) => {
                let key = Known {
                    count: if kind == OpKind::Put { 0 } else { WAS_THERE },
                    accessed: 0,
                    written: 0,
                    since: 0,
                };
                (entry.insert(key), false)
            }
        }
    }

    /// Returns the number of keys whose first operation was not a put, so they existed before.
    pub(crate) fn was_there(&self) -> u64 {
        let there = self.keys.values().filter(|key| key.count & WAS_THERE > 0);
        (there.count() as u64) << self.level
    }

    /// Returns the number of accesses that read a key that no earlier operation wrote.
    pub(crate) fn unwritten_reads(&self) -> u64 {
        self.unwritten_reads
    }

    #[inline]
    fn shrink(&mut self) {
        while self.keys.len() > self.limit {
            self.level += 1;
            let level = self.level;
            self.keys.retain(|&hash, _| Self::keeps(level, hash));
            let accessed = self.keys.values().filter(|key| key.count & COUNT > 0);
            self.accessed = accessed.count() as u64;
        }
    }

    /// Whether every key is in the table.
    pub(crate) fn is_exact(&self) -> bool {
        self.level == 0
    }

    /// Returns the relative standard error of the numbers of keys, as of a binomial sample.
    pub(crate) fn error(&self) -> f64 {
        let left_out = 1.0 - 0.5f64.powi(self.level as i32);
        (left_out / self.keys.len().max(1) as f64).sqrt()
    }

    /// Returns the number of distinct keys, whether or not an access to them was counted.
    pub(crate) fn distinct(&self) -> u64 {
        (self.keys.len() as u64) << self.level
    }

    /// Returns the number of distinct keys accessed.
    pub(crate) fn distinct_accessed(&self) -> u64 {
        self.accessed << self.level
    }

    /// Returns the number of times that the sample was halved.
    pub(super) fn level(&self) -> u32 {
        self.level
    }

    /// Yields the last access and the last write of every kept key.
    pub(super) fn last_times(&self) -> impl Iterator<Item = (Option<Time>, Option<Time>)> {
        let given = |time: Time| (time > 0).then_some(time);
        let keys = self.keys.values();
        keys.map(move |key| (given(key.accessed), given(key.written)))
    }

    /// Returns how many of the kept keys were accessed how often.
    pub(crate) fn frequencies(&self) -> BTreeMap<u32, u64> {
        let mut frequencies = BTreeMap::new();
        for key in self.keys.values() {
            *frequencies.entry(key.count & COUNT).or_insert(0) += 1;
        }
        frequencies
    }
}

#[cfg(test)]
mod tests {
    use xxhash_rust::xxh3::xxh3_64;

    use super::*;

    fn access(counts: &mut KeyCounts, kind: OpKind, key: u64) {
        counts.access(xxh3_64(&key.to_be_bytes()), kind, 1);
    }

    #[test]
    fn the_estimate_is_close_when_the_table_overflows_and_counts_stay_exact() {
        let mut counts = KeyCounts::new(10_000, 0);
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
        let mut counts = KeyCounts::new(1000, 0);
        for key in 0..500u64 {
            counts.meet(xxh3_64(&key.to_be_bytes()), OpKind::Put);
        }
        access(&mut counts, OpKind::Get, 7);
        assert!(counts.is_exact());
        assert_eq!((counts.distinct(), counts.distinct_accessed()), (500, 1));
        assert_eq!((counts.was_there(), counts.unwritten_reads()), (0, 0));
    }

    #[test]
    fn what_is_read_before_it_is_written_was_there() {
        for limit in [100_000, 1_000] {
            let mut counts = KeyCounts::new(limit, 0);
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
