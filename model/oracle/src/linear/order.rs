//! Puts writes in order, or finds some that are before one another.
//!
//! One write is before another if its interval ends before the other's begins, or if a read says
//! so. Writes are taken one by one: one that no remaining write is before. If none is left to take,
//! there is a circle. O(n log n) for n writes and reads.

use std::collections::BTreeSet;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::history::KeyId;

/// One write is before the other, because of a read. Writes and reads are calls, by their index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Before {
    pub(super) one: u32,
    pub(super) other: u32,
    /// The read, and its key.
    pub(super) because: (u32, KeyId),
}

/// A circle of writes: what is told by reads along it. Empty if there is none. `ends` has the
/// interval of each write.
pub(super) fn circle(ends: &FxHashMap<u32, (u64, u64)>, told: &[Before]) -> Vec<Before> {
    let mut waits: FxHashMap<u32, usize> = FxHashMap::default();
    let mut after: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
    for before in told {
        *waits.entry(before.other).or_default() += 1;
        after.entry(before.one).or_default().push(before.other);
    }
    // By their ends, and, if no read says that another remaining one is before them, by their
    // beginnings.
    let mut left: BTreeSet<(u64, u32)> = ends.iter().map(|(call, (_, hi))| (*hi, *call)).collect();
    let mut free: BTreeSet<(u64, u32)> = (ends.iter())
        .filter(|(call, _)| !waits.contains_key(call))
        .map(|(call, (lo, _))| (*lo, *call))
        .collect();
    while let (Some((first_end, _)), Some((lo, call))) = (left.first(), free.first().copied())
        && lo < *first_end
    {
        free.pop_first();
        left.remove(&(ends[&call].1, call));
        for other in after.get(&call).into_iter().flatten() {
            let waits = waits.entry(*other).or_default();
            *waits -= 1;
            if *waits == 0 {
                free.insert((ends[other].0, *other));
            }
        }
    }
    let Some((_, first)) = left.first().copied() else {
        return Vec::new();
    };
    // The write that ends first waits for another one, and each remaining one waits for another one
    // or comes after the one that ends first.
    let left: FxHashSet<u32> = left.iter().map(|(_, call)| *call).collect();
    let before = |call: u32| {
        let of_call = |before: &&Before| before.other == call && left.contains(&before.one);
        told.iter().find(of_call).copied()
    };
    let (mut walked, mut at) = (Vec::<(u32, Option<Before>)>::new(), first);
    loop {
        if let Some(begin) = walked.iter().position(|(call, _)| *call == at) {
            return walked[begin..]
                .iter()
                .filter_map(|(_, told)| *told)
                .collect();
        }
        let told = before(at);
        walked.push((at, told));
        at = told.map_or(first, |told| told.one);
    }
}
