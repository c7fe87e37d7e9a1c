//! Reuse of keys: which share of the accesses a cache of any size misses, and how often it writes
//! back, from one pass.
//!
//! **Misses.** The *depth* of an access is the number of distinct keys accessed since the last
//! access to its key, that key included. A least-recently-used cache of `c` keys hits exactly if
//! the depth is at most `c` (Mattson et al., IBM Systems Journal 9:2, 1970). So a histogram of
//! depths is the miss ratio of every size at once.
//!
//! **Write-backs.** A key that was written stays dirty until the cache evicts it. Between two
//! writes of a key, a cache of `c` keys evicts it exactly if some access since the first one, the
//! second included, is deeper than `c`. So each write is written back in all caches smaller than
//! the *deepest* of these accesses, and merges with the next write in the others (the dirty level
//! of Thompson and Smith, ACM TOCS 7:1, 1989). What is dirty at the end counts for the caches that
//! have evicted it by then.
//!
//! ```text
//! key a:  write   read (depth 3)   read (depth 7)   write (depth 2)
//!         '------------ deepest 7: written back if c < 7 ---------'
//! ```
//!
//! **Memory.** At most [`MOST_KEYS`] keys are tracked. If there are more, every second one is
//! dropped by its hash, and so on; depths and counts of the others are multiplied (spatial
//! sampling, Waldspurger et al., SHARDS, FAST'15). Popular keys may be over- or under-represented
//! in the sample, so the accesses that it lacks are added to the shallowest ones, as there
//! (`SHARDS_adj`).
//!
//! Each access costs O(log tracked keys).

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::steps::next_point;

/// Maximum number of tracked keys: about 4 MiB.
pub(super) const MOST_KEYS: usize = 1 << 16;
/// Number of sampled keys in the smallest cache of a sampled curve.
const LEAST_SAMPLED: u64 = 16;
/// Number of bins of the histograms for each power of two: they are wrong by at most 1.6 %.
const BINS: u64 = 64;

/// A cache size and what a least-recently-used cache of that size does.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CachePoint {
    /// Number of keys that the cache holds.
    pub keys: u64,
    /// Share of the accesses that miss, among them the first one to each key.
    pub misses: f64,
    /// Write-backs per put and delete; `None` if there are none of these. Keys that are still dirty
    /// at the end are not among them.
    pub written_back: Option<f64>,
}

/// How caches of all sizes would do.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CacheCurve {
    /// Whether the curve is an estimate from a sample of the keys. If not, it is exact up to 128
    /// keys, and beyond that for a size that differs by at most 1.6 %.
    pub estimated: bool,
    /// Share of the keys that were tracked.
    pub sampled: f64,
    /// In order of size, up to the number of keys accessed.
    pub points: Vec<CachePoint>,
}

/// A tracked key.
struct Tracked {
    hash: u64,
    /// Its place in the order of last accesses.
    place: usize,
    /// The deepest access since the last write; `None` if it was never written.
    deepest: Option<u64>,
}

/// Counts by depth, in bins whose width is in proportion to the depth.
#[derive(Default)]
struct Depths(Vec<u64>);

/// The state of the pass over a trace.
pub(super) struct Reuse {
    most: usize,
    /// Each key that is given stands for 2^base keys.
    base: u32,
    /// Keys are tracked if the lowest `level` bits of their hash are zero.
    level: u32,
    by_hash: FxHashMap<u64, u32>,
    tracked: Vec<Tracked>,
    order: Order,
    accesses: u64,
    writes: u64,
    /// Accesses to tracked keys, multiplied by the number of keys that each of these stands for.
    counted: u64,
    depths: Depths,
    stays: Depths,
}

impl Reuse {
    /// Creates the state for at most `most` tracked keys.
    pub(super) fn new(most: usize) -> Reuse {
        Reuse::of_sample(most, 0)
    }

    /// Creates the state for at most `most` tracked keys of a sample: only one key in 2^base is
    /// given to [`Reuse::access`].
    pub(super) fn of_sample(most: usize, base: u32) -> Reuse {
        Reuse {
            most,
            base,
            level: 0,
            by_hash: FxHashMap::default(),
            tracked: Vec::new(),
            order: Order::new(2 * most.max(1)),
            accesses: 0,
            writes: 0,
            counted: 0,
            depths: Depths::default(),
            stays: Depths::default(),
        }
    }

    /// How many halvings of the keys the sample is.
    fn scale(&self) -> u32 {
        self.base + self.level
    }

    /// Counts accesses to keys outside the sample, and how many of them are writes.
    pub(super) fn elsewhere(&mut self, accesses: u64, writes: u64) {
        self.accesses += accesses;
        self.writes += writes;
    }

    /// Takes an access to the key with this hash.
    pub(super) fn access(&mut self, hash: u64, write: bool) {
        self.accesses += 1;
        self.writes += u64::from(write);
        if !is_tracked(self.level, hash) {
            return;
        }
        let scale = self.scale();
        let stands_for = 1 << scale;
        self.counted += stands_for;
        if self.order.is_full() {
            self.order.renumber(&mut self.tracked);
        }
        let Some(&index) = self.by_hash.get(&hash) else {
            let index = self.tracked.len() as u32;
            self.by_hash.insert(hash, index);
            self.tracked.push(Tracked {
                hash,
                place: self.order.push(),
                deepest: write.then_some(0),
            });
            self.shrink();
            return;
        };
        let key = &mut self.tracked[index as usize];
        let depth = self.order.depth(key.place) << scale;
        self.depths.add(depth, stands_for);
        self.order.remove(key.place);
        key.place = self.order.push();
        key.deepest = key.deepest.map(|deepest| deepest.max(depth));
        if write {
            if let Some(deepest) = key.deepest {
                self.stays.add(deepest, stands_for);
            }
            key.deepest = Some(0);
        }
    }

    /// Drops half of the keys as long as there are too many.
    fn shrink(&mut self) {
        while self.tracked.len() > self.most {
            self.level += 1;
            let level = self.level;
            for key in self.tracked.iter().filter(|k| !is_tracked(level, k.hash)) {
                self.order.remove(key.place);
            }
            self.tracked.retain(|key| is_tracked(level, key.hash));
            let indices = (0..).zip(&self.tracked).map(|(i, key)| (key.hash, i));
            self.by_hash = indices.collect();
        }
    }

    /// Ends the pass. Returns `None` if there was no access.
    pub(super) fn finish(mut self) -> Option<CacheCurve> {
        if self.accesses == 0 {
            return None;
        }
        let scale = self.scale();
        let stands_for = 1 << scale;
        for key in &self.tracked {
            if let Some(deepest) = key.deepest {
                // The deepest access that a later one could have.
                let now = self.order.depth(key.place) << scale;
                self.stays.add(deepest.max(now), stands_for);
            }
        }
        let keys = (self.tracked.len() as u64) << scale;
        // Depths are multiples of what a key stands for, which says nothing about smaller caches.
        let least = if scale == 0 {
            0
        } else {
            LEAST_SAMPLED << scale
        };
        let points = sizes(keys).filter(|&keys| keys >= least);
        let points = points.map(|keys| CachePoint {
            keys,
            misses: self.misses(keys),
            written_back: self.written_back(keys),
        });
        Some(CacheCurve {
            estimated: scale > 0,
            sampled: 1.0 / stands_for as f64,
            points: points.collect(),
        })
    }

    fn misses(&self, keys: u64) -> f64 {
        // First accesses have no depth. Accesses that the sample lacks or has in excess are taken
        // for hits.
        let hits = self.depths.up_to(keys) as f64;
        let lacking = self.accesses as f64 - self.counted as f64;
        (1.0 - (hits + lacking) / self.accesses as f64).clamp(0.0, 1.0)
    }

    fn written_back(&self, keys: u64) -> Option<f64> {
        let back = self.stays.total() - self.stays.up_to(keys);
        (self.writes > 0).then(|| (back as f64 / self.writes as f64).min(1.0))
    }
}

fn is_tracked(level: u32, hash: u64) -> bool {
    hash.trailing_zeros() >= level
}

/// 1, 2, 5, 10, … below the number of keys, and that number.
fn sizes(keys: u64) -> impl Iterator<Item = u64> {
    let below = std::iter::successors(Some(1), |&size| Some(next_point(size)));
    below
        .take_while(move |&size| size < keys)
        .chain((keys > 0).then_some(keys))
}

impl Depths {
    fn add(&mut self, depth: u64, count: u64) {
        let bin = bin(depth);
        if self.0.len() <= bin {
            self.0.resize(bin + 1, 0);
        }
        self.0[bin] += count;
    }

    fn up_to(&self, depth: u64) -> u64 {
        self.0.iter().take(bin(depth) + 1).sum()
    }

    fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

/// The bin of a depth: exact below twice [`BINS`].
fn bin(depth: u64) -> usize {
    let halvings = (depth / BINS).checked_ilog2().unwrap_or(0);
    (u64::from(halvings) * BINS + (depth >> halvings)) as usize
}

/// The order of last accesses: which places are taken, with counts of them (a Fenwick tree).
struct Order {
    counts: Vec<u32>,
    next: usize,
    taken: u32,
}

impl Order {
    fn new(places: usize) -> Order {
        Order {
            counts: vec![0; places + 1],
            next: 0,
            taken: 0,
        }
    }

    fn is_full(&self) -> bool {
        self.next + 1 == self.counts.len()
    }

    /// Takes the next place.
    fn push(&mut self) -> usize {
        let place = self.next;
        self.next += 1;
        self.taken += 1;
        self.add(place, 1);
        place
    }

    fn remove(&mut self, place: usize) {
        self.taken -= 1;
        self.add(place, u32::MAX);
    }

    fn add(&mut self, place: usize, count: u32) {
        let mut at = place + 1;
        while at < self.counts.len() {
            self.counts[at] = self.counts[at].wrapping_add(count);
            at += at & at.wrapping_neg();
        }
    }

    /// Returns how many places are taken from this one on.
    fn depth(&self, place: usize) -> u64 {
        let (mut before, mut at) = (0, place);
        while at > 0 {
            before += self.counts[at];
            at &= at - 1;
        }
        u64::from(self.taken - before)
    }

    /// Moves the taken places to the front, in the same order.
    fn renumber(&mut self, tracked: &mut [Tracked]) {
        let mut by_place: Vec<usize> = (0..tracked.len()).collect();
        by_place.sort_unstable_by_key(|&i| tracked[i].place);
        self.counts.fill(0);
        (self.next, self.taken) = (0, 0);
        for i in by_place {
            tracked[i].place = self.push();
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
