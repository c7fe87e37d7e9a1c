//! Reuse times: how many operations pass between two accesses to a key, or between two writes.
//!
//! | statistic | of |
//! |---|---|
//! | reuse time | an access: the operations since the last access to its key |
//! | overwrite interval | a put or delete: the operations since the last one of its key |
//! | mean working set | distinct keys among T operations in a row, for every T |
//!
//! **Mean working set.** A key is in the working set of the last T operations for min(I, T) of the
//! operations that follow an access, where I is the number of operations until its next access (or
//! the end). So the sum of these over all accesses, divided by the number of operations, is the mean
//! number of distinct keys among T operations (Denning and Schwartz, "Properties of the
//! working-set model", CACM 15:3, 1972). With overwrite intervals for I, it is the number of distinct
//! keys that T operations write: what a checkpoint every T operations finds dirty. The first T
//! operations have fewer than T before them; so T is at most a tenth of the trace.
//!
//! **Cost and error.** The table of keys (`count`) has the times of the last access and write. An
//! access adds to one histogram, a write to two (`sizes`). All is exact below 4,096 operations,
//! and within 1 % above, as long as the table is, 3.6 M keys. Beyond, it is of a sample of the keys. An
//! estimated number of accesses then has a relative standard error of √((1 − R) Σ c²) / Σ c, where R
//! is the sampled share and c are the access counts of the sampled keys: large only if a few keys
//! have most of the accesses.

use std::collections::BTreeMap;

use serde::Serialize;

use super::clock::{Clock, Time};
use super::count::{Before, KeyCounts};
use super::kinds::is_write;
use super::pairs::{Pairs, ReadModifyWrite};
use super::sizes::{SizeStats, Sizes};
use super::steps::next_point;
use crate::OpKind;

/// Intervals between operations on the same key.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReuseTimes {
    /// Whether these are estimates from a sample of the keys.
    pub estimated: bool,
    /// Share of the keys in the sample.
    pub sampled: f64,
    /// Relative standard error of the numbers of accesses, if they are estimates.
    pub error: f64,
    /// Reuse times of gets and scans.
    pub reads: Option<SizeStats>,
    /// Reuse times of puts and deletes.
    pub writes: Option<SizeStats>,
    /// Overwrite intervals of puts and deletes.
    pub overwrites: Option<SizeStats>,
    /// Puts that follow a read of their key; `None` without puts.
    pub read_modify_write: Option<ReadModifyWrite>,
    /// Distinct keys among any number of operations in a row, up to a tenth of the trace.
    pub mean_working_set: Vec<MeanWorkingSet>,
}

/// The mean number of distinct keys in an interval of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MeanWorkingSet {
    /// Length of the interval, in operations.
    pub ops: u64,
    /// Mean number of distinct keys that it accesses.
    pub accessed_keys: f64,
    /// Mean number of distinct keys that it puts or deletes.
    pub written_keys: f64,
}

/// The state of the pass over a trace.
pub(super) struct Times {
    clock: Clock,
    reads: Sizes,
    writes: Sizes,
    overwrites: Sizes,
}

impl Times {
    /// Creates the state.
    pub(super) fn new(clock: Clock) -> Times {
        Times {
            clock,
            reads: Sizes::of_intervals(),
            writes: Sizes::of_intervals(),
            overwrites: Sizes::of_intervals(),
        }
    }

    /// Takes an access and what was known of its key.
    #[inline]
    pub(super) fn add(&mut self, kind: OpKind, now: Time, before: &Before) {
        let weight = before.stands_for;
        let Some(accessed) = before.accessed else {
            return;
        };
        let reuse = self.clock.between(accessed, now);
        if !is_write(kind) {
            self.reads.add_many(reuse, weight);
            return;
        }
        self.writes.add_many(reuse, weight);
        if let Some(written) = before.written {
            let interval = self.clock.between(written, now);
            self.overwrites.add_many(interval, weight);
        }
    }

    /// Ends the pass after `ops` operations. `frequencies` are the access counts of the keys.
    pub(super) fn finish(
        &self,
        pairs: &Pairs,
        keys: &KeyCounts,
        frequencies: &BTreeMap<u32, u64>,
        ops: u64,
    ) -> ReuseTimes {
        let sampled = 0.5f64.powi(keys.level() as i32);
        ReuseTimes {
            estimated: !keys.is_exact(),
            sampled,
            error: error(frequencies, sampled),
            reads: self.reads.stats(),
            writes: self.writes.stats(),
            overwrites: self.overwrites.stats(),
            read_modify_write: pairs.finish(),
            mean_working_set: self.working_sets(keys, ops),
        }
    }

    fn working_sets(&self, keys: &KeyCounts, ops: u64) -> Vec<MeanWorkingSet> {
        // From the last access to each key to the end.
        let (mut accessed, mut written) = (Sizes::of_intervals(), Sizes::of_intervals());
        if ops == 0 {
            return Vec::new();
        }
        let (end, stands_for) = (self.clock.time(ops), 1 << keys.level());
        for (access, write) in keys.last_times() {
            for (time, sizes) in [(access, &mut accessed), (write, &mut written)] {
                if let Some(time) = time {
                    sizes.add_many(self.clock.between(time, end) + 1, stands_for);
                }
            }
        }
        let mean = |parts: &[&Sizes], most| {
            let sums = parts.iter().map(|sizes| sizes.sum_up_to(most));
            sums.sum::<u128>() as f64 / ops as f64
        };
        let points = std::iter::successors(Some(1), |&point| Some(next_point(point)));
        let points = points.take_while(|&point| point <= ops / 10);
        let point = |most| MeanWorkingSet {
            ops: most,
            accessed_keys: mean(&[&self.reads, &self.writes, &accessed], most),
            written_keys: mean(&[&self.overwrites, &written], most),
        };
        points.map(point).collect()
    }
}

/// Returns the relative standard error of a number of accesses that is estimated from a sample.
fn error(frequencies: &BTreeMap<u32, u64>, sampled: f64) -> f64 {
    let (mut sum, mut squares) = (0.0, 0.0);
    for (&count, &keys) in frequencies {
        let (count, keys) = (f64::from(count), keys as f64);
        sum += count * keys;
        squares += count * count * keys;
    }
    match sum > 0.0 {
        true => ((1.0 - sampled) * squares).sqrt() / sum,
        false => 0.0,
    }
}
