//! Whether keys that are written together are overwritten together.
//!
//! A drive collects garbage cheaply if the pages of a block die at about the same time. That depends
//! on whether neighbours in the order of writes share their overwrite interval. So pairs of writes
//! to different keys are compared: a pair dies together if the two overwrite intervals differ by at
//! most [`WITHIN`] operations.
//!
//! ```text
//! writes:  a b ............... a b ....      intervals of a and b are equal: together
//!          '-'  neighbours
//! writes:  a ... 4,096 ... z                 a and z: apart
//! ```
//!
//! If overwrite intervals were independent of each other, neighbours would die together as often as
//! writes that are [`APART`] writes apart. These are the second sample of pairs. A pair is judged once
//! it is certain: both are overwritten, or one of them is so much older than the other's interval
//! that the two can no longer die together. Other pairs are left out.
//!
//! **Cost and error.** At most [`MOST`] pairs of either sort are held, then every second one is
//! dropped by a hash of its time, so that they stay spread over the whole trace. A write costs a
//! look-up among the writes in these pairs. A share p of n pairs has a standard error of
//! √(p (1 − p) / n), at most 0.004 for 2^14 pairs. Traces of more than 2^31 operations have none.

use std::collections::VecDeque;

use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use xxhash_rust::xxh3::xxh3_64;

use super::clock::Time;

/// Two overwrite intervals are equal if they differ by at most this number of operations.
const WITHIN: Time = 64;
/// Number of writes between the two of a pair that is taken for independent.
pub(super) const APART: usize = 4096;
/// The largest number of pairs of either sort.
pub(super) const MOST: usize = 1 << 15;

/// How often two keys written together are overwritten together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WrittenTogether {
    /// Two keys are overwritten together if their overwrite intervals differ by at most this number
    /// of operations.
    pub within_ops: u64,
    /// Writes that follow each other; `None` if the trace decides about none.
    pub neighbours: Option<Together>,
    /// Writes with 4,095 others between them, as if the intervals were independent; `None` if the
    /// trace decides about none.
    pub apart: Option<Together>,
}

/// A share of pairs of writes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Together {
    /// Share of the pairs that are overwritten together.
    pub share: f64,
    /// Its standard error.
    pub error: f64,
    /// Number of pairs.
    pub pairs: u64,
    /// Whether the pairs are a sample of all such pairs.
    pub sampled: bool,
}

/// Two writes, by time.
#[derive(Clone, Copy)]
struct Pair {
    first: Time,
    second: Time,
    /// Zero bits at the start of both hashes, the smaller number: whether a sample has both.
    zeros: u32,
}

/// A write.
#[derive(Clone, Copy)]
struct Write {
    time: Time,
    hash: u64,
}

/// Pairs at the same distance.
struct Sample {
    most: usize,
    /// Writes begin a pair if the hash of their time begins with this number of zero bits.
    level: u32,
    pairs: Vec<Pair>,
    /// The writes in the pairs, by time, and when they were overwritten; 0 if they were not.
    deaths: FxHashMap<Time, Time>,
}

/// The state of the pass over a trace.
pub(super) struct Fates {
    neighbours: Sample,
    apart: Sample,
    /// The last writes.
    recent: VecDeque<Write>,
    distance: usize,
}

impl Fates {
    /// Creates the state for at most `most` pairs of either sort; those of one sort are `distance`
    /// writes apart.
    pub(super) fn new(most: usize, distance: usize) -> Fates {
        Fates {
            neighbours: Sample::new(most),
            apart: Sample::new(most),
            recent: VecDeque::new(),
            distance,
        }
    }

    /// Takes a put or delete of the key with this hash, and when the key was written before.
    pub(super) fn write(&mut self, hash: u64, now: Time, before: Option<Time>) {
        let write = Write { time: now, hash };
        let neighbour = self.recent.back().copied();
        let old = match self.recent.len() == self.distance {
            true => self.recent.pop_front(),
            false => None,
        };
        self.recent.push_back(write);
        self.neighbours.write(write, before, neighbour);
        self.apart.write(write, before, old);
    }

    /// Ends the pass at the time `end`. Only keys whose hash begins with `level` zero bits have
    /// known times of writes.
    pub(super) fn finish(&self, end: Time, level: u32) -> Option<WrittenTogether> {
        let found = WrittenTogether {
            within_ops: u64::from(WITHIN),
            neighbours: self.neighbours.share(end, level),
            apart: self.apart.share(end, level),
        };
        (found.neighbours.is_some() || found.apart.is_some()).then_some(found)
    }
}

impl Sample {
    fn new(most: usize) -> Sample {
        Sample {
            most,
            level: 0,
            pairs: Vec::new(),
            deaths: FxHashMap::default(),
        }
    }

    /// Takes a write, and the write with which it makes a pair.
    #[inline]
    fn write(&mut self, write: Write, before: Option<Time>, first: Option<Write>) {
        if let Some(death) = before.and_then(|time| self.deaths.get_mut(&time)) {
            *death = write.time;
        }
        if let Some(first) = first.filter(|first| self.begins_pair(first.time))
            && first.hash != write.hash
        {
            self.deaths.entry(write.time).or_insert(0);
            self.pairs.push(Pair {
                first: first.time,
                second: write.time,
                zeros: first.hash.leading_zeros().min(write.hash.leading_zeros()),
            });
        }
        if self.begins_pair(write.time) {
            self.deaths.entry(write.time).or_insert(0);
            self.shrink();
        }
    }

    fn begins_pair(&self, time: Time) -> bool {
        xxh3_64(&time.to_le_bytes()).leading_zeros() >= self.level
    }

    /// Drops half of the pairs as long as there are too many writes.
    fn shrink(&mut self) {
        while self.deaths.len() > 2 * self.most {
            self.level += 1;
            let mut pairs = std::mem::take(&mut self.pairs);
            pairs.retain(|pair| self.begins_pair(pair.first));
            let seconds: FxHashSet<Time> = pairs.iter().map(|pair| pair.second).collect();
            let mut deaths = std::mem::take(&mut self.deaths);
            deaths.retain(|time, _| seconds.contains(time) || self.begins_pair(*time));
            (self.pairs, self.deaths) = (pairs, deaths);
        }
    }

    fn share(&self, end: Time, level: u32) -> Option<Together> {
        let known = self.pairs.iter().filter(|pair| pair.zeros >= level);
        let judged: Vec<bool> = known.filter_map(|pair| self.judge(pair, end)).collect();
        let pairs = judged.len() as f64;
        let share = judged.iter().filter(|together| **together).count() as f64 / pairs;
        (pairs > 0.0).then(|| Together {
            share,
            error: (share * (1.0 - share) / pairs).sqrt(),
            pairs: judged.len() as u64,
            sampled: self.level > 0 || level > 0,
        })
    }

    /// Whether the pair is overwritten together; `None` if that cannot be known.
    fn judge(&self, pair: &Pair, end: Time) -> Option<bool> {
        let interval = |time: Time| match self.deaths.get(&time) {
            Some(&death) if death > 0 => Ok(death - time),
            _ => Err(end - time),
        };
        match (interval(pair.first), interval(pair.second)) {
            (Ok(a), Ok(b)) => Some(a.abs_diff(b) <= WITHIN),
            (Ok(ended), Err(age)) | (Err(age), Ok(ended)) => {
                (age >= ended.saturating_add(WITHIN)).then_some(false)
            }
            (Err(_), Err(_)) => None,
        }
    }
}
