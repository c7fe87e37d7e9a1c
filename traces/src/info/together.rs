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
//! √(p (1 − p) / n), at most 0.006 for 2^13 pairs. Traces of more than 2^31 operations have none.

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
pub(super) const MOST: usize = 1 << 14;

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

/// Two writes.
#[derive(Clone, Copy)]
struct Pair {
    first: Write,
    second: Write,
}

/// A write.
#[derive(Clone, Copy)]
struct Write {
    time: Time,
    /// A hash of the time, which selects the sample.
    draw: u32,
    /// The hash of the key.
    hash: u64,
}

/// The state of the pass over a trace.
pub(super) struct Fates {
    most: usize,
    distance: usize,
    /// Writes begin pairs if their draw begins with this number of zero bits.
    level: u32,
    /// The last writes.
    recent: VecDeque<Write>,
    neighbours: Vec<Pair>,
    apart: Vec<Pair>,
    /// The writes in the pairs, by time, and when they were overwritten; 0 if they were not.
    deaths: FxHashMap<Time, Time>,
}

impl Fates {
    /// Creates the state for at most `most` pairs of either sort; those of one sort are `distance`
    /// writes apart.
    pub(super) fn new(most: usize, distance: usize) -> Fates {
        Fates {
            most,
            distance,
            level: 0,
            recent: VecDeque::new(),
            neighbours: Vec::new(),
            apart: Vec::new(),
            deaths: FxHashMap::default(),
        }
    }

    /// Takes a put or delete of the key with this hash, and when the key was written before.
    pub(super) fn write(&mut self, hash: u64, now: Time, before: Option<Time>) {
        if let Some(death) = before.and_then(|time| self.deaths.get_mut(&time)) {
            *death = now;
        }
        let write = Write {
            time: now,
            draw: (xxh3_64(&now.to_le_bytes()) >> 32) as u32,
            hash,
        };
        let mut is_watched = begins_pair(&write, self.level);
        let level = self.level;
        let mut pair = |first: Option<Write>, pairs: &mut Vec<Pair>| {
            let first = first.filter(|first| begins_pair(first, level) && first.hash != hash);
            let pair = first.map(|first| Pair {
                first,
                second: write,
            });
            is_watched |= pair.is_some();
            pairs.extend(pair);
        };
        pair(self.recent.back().copied(), &mut self.neighbours);
        if self.recent.len() == self.distance {
            pair(self.recent.pop_front(), &mut self.apart);
        }
        self.recent.push_back(write);
        if is_watched {
            self.deaths.insert(now, 0);
            self.shrink();
        }
    }

    /// Drops half of the pairs as long as there are too many writes in them.
    fn shrink(&mut self) {
        while self.deaths.len() > 3 * self.most {
            self.level += 1;
            let level = self.level;
            self.neighbours
                .retain(|pair| begins_pair(&pair.first, level));
            self.apart.retain(|pair| begins_pair(&pair.first, level));
            let recent = self.recent.iter().filter(|write| begins_pair(write, level));
            let pairs = self.neighbours.iter().chain(&self.apart);
            let writes = pairs.flat_map(|pair| [pair.first.time, pair.second.time]);
            let writes: FxHashSet<Time> = writes.chain(recent.map(|write| write.time)).collect();
            self.deaths.retain(|time, _| writes.contains(time));
        }
    }

    /// Ends the pass at the time `end`. Only keys whose hash begins with `level` zero bits have
    /// known times of writes.
    pub(super) fn finish(&self, end: Time, level: u32) -> Option<WrittenTogether> {
        let found = WrittenTogether {
            within_ops: u64::from(WITHIN),
            neighbours: self.share(&self.neighbours, end, level),
            apart: self.share(&self.apart, end, level),
        };
        (found.neighbours.is_some() || found.apart.is_some()).then_some(found)
    }

    fn share(&self, pairs: &[Pair], end: Time, level: u32) -> Option<Together> {
        let is_known = |write: &Write| write.hash.leading_zeros() >= level;
        let known = pairs.iter();
        let known = known.filter(|pair| is_known(&pair.first) && is_known(&pair.second));
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
        let interval = |write: &Write| match self.deaths.get(&write.time) {
            Some(&death) if death > 0 => Ok(death - write.time),
            _ => Err(end - write.time),
        };
        match (interval(&pair.first), interval(&pair.second)) {
            (Ok(a), Ok(b)) => Some(a.abs_diff(b) <= WITHIN),
            (Ok(ended), Err(age)) | (Err(age), Ok(ended)) => {
                (age >= ended.saturating_add(WITHIN)).then_some(false)
            }
            (Err(_), Err(_)) => None,
        }
    }
}

fn begins_pair(write: &Write, level: u32) -> bool {
    write.draw.leading_zeros() >= level
}
