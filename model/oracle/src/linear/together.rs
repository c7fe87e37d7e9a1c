//! Checks that the changes of a batch take effect at one instant.
//!
//! A batch that readers see in part can pass the check of each key alone: one read finds its change
//! of `a`, a later read does not yet find its change of `b`.
//!
//! ```text
//! batch a b    |-------------------------------|
//! get a            |-finds it-|                       so it takes effect before this ends
//! get b                          |-does not-|         and after this begins: impossible
//! ```
//!
//! Each write has an interval within which it takes effect: at first that of its call. Reads narrow
//! it, key by key:
//!
//! - A write takes effect before the reads that found it have ended.
//! - If one write is certainly before another, so are the reads that found it.
//! - If a write is certainly before a read that found another one, it is before that one.
//!
//! What narrows a batch on one key holds on its other keys. This goes on until nothing changes any
//! more, or an interval is empty. Then the writes are put in order: by their intervals, and by
//! reads that say which of two concurrent writes came first (`order`). Each step follows from the
//! calls, so an empty interval or a circle is a violation. The converse is not true, because writes
//! whose order is open are not tried in each order: that would take exponential time. O(n log n)
//! for each round over the reads and writes of a key.

use rustc_hash::{FxHashMap, FxHashSet};

use super::order::{Before, circle};
use super::register::{Access, Event};
use super::violation::Violation;
use crate::history::{Action, History, KeyId, Version};

/// A key is processed at most this often.
const MOST_ROUNDS: u32 = 64;
/// A report lists at most this many calls.
const MOST_CALLS: usize = 12;

/// The end of an interval, and what it follows from.
#[derive(Clone, Copy, Debug)]
struct Bound {
    at: u64,
    /// The read, and its key. `None` if this is an end of the call itself.
    read: Option<(u32, KeyId)>,
    /// Another write of that key, from whose interval this follows.
    write: Option<u32>,
}

impl Bound {
    fn of_call(at: u64) -> Bound {
        Bound {
            at,
            read: None,
            write: None,
        }
    }
}

/// Where a write takes effect: after `lo` and before `hi`.
#[derive(Clone, Copy, Debug)]
struct Interval {
    lo: Bound,
    hi: Bound,
}

/// The events of one key that has changes of batches.
struct OfKey {
    key: KeyId,
    writes: Vec<Event>,
    reads: Vec<Read>,
    rounds: u32,
}

struct Read {
    event: Event,
    /// The place among the writes of the one that it found, once that is known.
    found: Option<usize>,
}

/// The keys and calls that batches connect.
pub(super) struct Together<'h> {
    history: &'h History,
    /// Keys of more than one change.
    wanted: FxHashSet<u32>,
    keys: Vec<OfKey>,
    /// Of each write of these keys, by its call.
    intervals: FxHashMap<u32, Interval>,
}

impl<'h> Together<'h> {
    pub(super) fn new(history: &'h History) -> Together<'h> {
        let several = history.batches().iter().filter(|batch| batch.changes > 1);
        let changes = several.flat_map(|batch| history.changes_of(batch));
        Together {
            history,
            wanted: changes.map(|change| change.key.0).collect(),
            keys: Vec::new(),
            intervals: FxHashMap::default(),
        }
    }

    /// Adds the events of a key, in the order of their invocations.
    pub(super) fn add(&mut self, key: KeyId, events: &[Event]) {
        if !self.wanted.contains(&key.0) {
            return;
        }
        let (writes, reads): (Vec<Event>, Vec<Event>) =
            (events.iter()).partition(|event| event.access == Access::Write);
        for write in &writes {
            self.intervals.entry(write.call).or_insert(Interval {
                lo: Bound::of_call(write.invoke),
                hi: Bound::of_call(write.end),
            });
        }
        let puts = writes.iter().enumerate();
        let puts: FxHashMap<u64, usize> = puts
            .filter(|(_, write)| write.version != Version::ABSENT)
            .map(|(at, write)| (write.version.0, at))
            .collect();
        let reads = reads.into_iter().map(|event| Read {
            event,
            found: puts.get(&event.version.0).copied(),
        });
        self.keys.push(OfKey {
            key,
            reads: reads.collect(),
            writes,
            rounds: 0,
        });
    }

    /// The first violation that is found, if there is one.
    pub(super) fn violation(&mut self) -> Option<Violation> {
        let places: FxHashMap<u32, usize> = (self.keys.iter().enumerate())
            .map(|(at, of_key)| (of_key.key.0, at))
            .collect();
        let mut keys = std::mem::take(&mut self.keys);
        let mut dirty: Vec<usize> = (0..keys.len()).rev().collect();
        let mut is_dirty = vec![true; keys.len()];
        while let Some(at) = dirty.pop() {
            is_dirty[at] = false;
            if keys[at].rounds >= MOST_ROUNDS {
                continue;
            }
            keys[at].rounds += 1;
            for call in keys[at].narrow(&mut self.intervals) {
                let interval = self.intervals[&call];
                if interval.lo.at >= interval.hi.at {
                    return Some(self.explain(call, interval));
                }
                for change in self
                    .history
                    .written_by(&self.history.calls()[call as usize])
                {
                    if let Some(other) = places.get(&change.key.0)
                        && !std::mem::replace(&mut is_dirty[*other], true)
                    {
                        dirty.push(*other);
                    }
                }
            }
        }
        self.in_a_circle(&keys)
    }

    /// Writes that are before one another, if there are any.
    fn in_a_circle(&self, keys: &[OfKey]) -> Option<Violation> {
        let mut edges = Vec::new();
        for of_key in keys {
            let of: Vec<Interval> = of_key
                .writes
                .iter()
                .map(|write| self.intervals[&write.call])
                .collect();
            let latest = of_key.latest();
            edges.extend(
                of_key
                    .told(&of, &latest)
                    .into_iter()
                    .filter_map(|(one, other)| {
                        Some(Before {
                            one: of_key.writes[one].call,
                            other: of_key.writes[other].call,
                            because: latest[other]?.read?,
                        })
                    }),
            );
        }
        let ends = self.intervals.iter();
        let ends = ends.map(|(call, interval)| (*call, (interval.lo.at, interval.hi.at)));
        let circle = circle(&ends.collect(), &edges);
        let (culprit, key) = circle.first()?.because;
        let mut listed = Vec::new();
        for Before {
            one,
            other,
            because,
        } in circle
        {
            listed.extend([(one, because.1), (other, because.1), because]);
            listed.extend(self.intervals[&one].hi.read);
        }
        Some(self.report((culprit, key), listed))
    }

    /// Lists the calls from which an empty interval follows.
    fn explain(&self, call: u32, interval: Interval) -> Violation {
        let mut listed: Vec<(u32, KeyId)> = Vec::new();
        for first in [interval.lo, interval.hi] {
            let mut next = Some(first);
            while let Some(bound) = next.take()
                && listed.len() < MOST_CALLS
            {
                listed.extend(bound.read);
                let key = bound.read.map_or(KeyId(0), |(_, key)| key);
                if let Some(write) = bound.write
                    && !listed.iter().any(|(listed, _)| *listed == write)
                {
                    listed.push((write, key));
                    // It is certainly before the other, because it ends so early.
                    next = Some(self.intervals[&write].hi);
                }
            }
        }
        let changes = self
            .history
            .written_by(&self.history.calls()[call as usize]);
        // The read that came too late not to find the change.
        let too_late = interval.lo.read.or(interval.hi.read);
        let (culprit, key) = too_late.unwrap_or((call, changes[0].key));
        listed.push((call, key));
        self.report((culprit, key), listed)
    }

    fn report(&self, (culprit, key): (u32, KeyId), mut listed: Vec<(u32, KeyId)>) -> Violation {
        let row = |rows: &[crate::history::Row]| {
            let row = rows.iter().find(|row| row.key == key);
            row.map_or(Version::ABSENT, |row| row.version)
        };
        let found = match self.history.calls()[culprit as usize].action {
            Action::Get { found, .. } => found,
            Action::Scan(scan) => row(self.history.rows_of(&self.history.scans()[scan as usize])),
            _ => row(&self
                .history
                .written_by(&self.history.calls()[culprit as usize])),
        };
        listed.sort_by_key(|(call, _)| *call);
        listed.dedup_by_key(|(call, _)| *call);
        let listed: Vec<(usize, KeyId)> = listed
            .iter()
            .map(|(call, key)| (*call as usize, *key))
            .collect();
        Violation::of_batch(self.history, (culprit as usize, key), found, &listed)
    }
}

impl OfKey {
    /// Narrows the intervals of the writes of this key. Returns the calls whose interval is
    /// narrower now.
    fn narrow(&mut self, intervals: &mut FxHashMap<u32, Interval>) -> Vec<u32> {
        let mut of: Vec<Interval> = self
            .writes
            .iter()
            .map(|write| intervals[&write.call])
            .collect();
        let mut narrowed = vec![false; of.len()];
        self.find_deletes(&of);
        let mut lower = |of: &mut Vec<Interval>, at: usize, bound: Bound| {
            if bound.at < of[at].hi.at {
                (of[at].hi, narrowed[at]) = (bound, true);
            }
        };
        let latest = self.latest();
        for read in &self.reads {
            if let Some(at) = read.found {
                let bound = Bound {
                    at: read.event.end,
                    read: Some((read.event.call, self.key)),
                    write: None,
                };
                lower(&mut of, at, bound);
            }
        }
        // Writes that are certainly before a read that found another one are before that one.
        let mut by_latest: Vec<usize> = (0..of.len()).filter(|at| latest[*at].is_some()).collect();
        by_latest.sort_by_key(|at| std::cmp::Reverse(latest[*at].map(|latest| latest.at)));
        let mut by_end: Vec<usize> = (0..of.len()).collect();
        by_end.sort_by_key(|at| of[*at].hi.at);
        let (mut next, mut least) = (0, None::<usize>);
        for at in by_end.iter().rev() {
            while let Some(other) = by_latest.get(next)
                && latest[*other].is_some_and(|latest| latest.at >= of[*at].hi.at)
            {
                if least.is_none_or(|least| of[*other].hi.at < of[least].hi.at) {
                    least = Some(*other);
                }
                next += 1;
            }
            if let Some(other) = least.filter(|other| other != at) {
                let bound = Bound {
                    at: of[other].hi.at,
                    read: latest[other].and_then(|latest| latest.read),
                    write: Some(self.writes[other].call),
                };
                lower(&mut of, *at, bound);
            }
        }
        self.raise(&mut of, &latest, &mut narrowed);
        let mut calls = Vec::new();
        for (at, write) in self.writes.iter().enumerate() {
            if narrowed[at] {
                intervals.insert(write.call, of[at]);
                calls.push(write.call);
            }
        }
        calls
    }

    /// For each write the latest beginning among the reads that found it.
    fn latest(&self) -> Vec<Option<Bound>> {
        let mut latest: Vec<Option<Bound>> = vec![None; self.writes.len()];
        for read in &self.reads {
            let Some(at) = read.found else {
                continue;
            };
            if latest[at].is_none_or(|latest| latest.at < read.event.invoke) {
                latest[at] = Some(Bound {
                    at: read.event.invoke,
                    read: Some((read.event.call, self.key)),
                    write: Some(self.writes[at].call),
                });
            }
        }
        latest
    }

    /// Pairs of writes whose intervals leave their order open, and of which a read tells that the
    /// first one is before the other: it found the other one and began when the first was over.
    fn told(&self, of: &[Interval], latest: &[Option<Bound>]) -> Vec<(usize, usize)> {
        let mut by_end: Vec<usize> = (0..of.len()).collect();
        by_end.sort_by_key(|at| of[*at].hi.at);
        let mut told = Vec::new();
        for other in 0..of.len() {
            let Some(latest) = latest[other] else {
                continue;
            };
            let from = by_end.partition_point(|at| of[*at].hi.at <= of[other].lo.at);
            let over = by_end[from..]
                .iter()
                .take_while(|at| of[**at].hi.at <= latest.at);
            told.extend(over.filter(|one| **one != other).map(|one| (*one, other)));
        }
        told
    }

    /// A write is after all reads that found a write that is certainly before it.
    fn raise(&self, of: &mut [Interval], latest: &[Option<Bound>], narrowed: &mut [bool]) {
        let mut by_end: Vec<usize> = (0..of.len()).filter(|at| latest[*at].is_some()).collect();
        by_end.sort_by_key(|at| of[*at].hi.at);
        let mut by_begin: Vec<usize> = (0..of.len()).collect();
        by_begin.sort_by_key(|at| of[*at].lo.at);
        let (mut next, mut most) = (0, None::<Bound>);
        for at in by_begin {
            while let Some(other) = by_end.get(next)
                && of[*other].hi.at <= of[at].lo.at
            {
                most = std::cmp::max_by_key(most, latest[*other], |bound| bound.map(|b| b.at));
                next += 1;
            }
            if let Some(bound) = most.filter(|bound| bound.at > of[at].lo.at) {
                (of[at].lo, narrowed[at]) = (bound, true);
            }
        }
        for (one, other) in self.told(of, latest) {
            if let Some(bound) = latest[one].filter(|bound| bound.at > of[other].lo.at) {
                (of[other].lo, narrowed[other]) = (bound, true);
            }
        }
    }

    /// Finds out for reads that found nothing which delete that is from, if only one is possible.
    fn find_deletes(&mut self, of: &[Interval]) {
        let is_delete = |at: &usize| self.writes[*at].version == Version::ABSENT;
        let mut deletes: Vec<usize> = (0..of.len()).filter(is_delete).collect();
        if deletes.is_empty() {
            return;
        }
        deletes.sort_by_key(|at| of[*at].hi.at);
        // The earliest beginning among this delete and all that end later.
        let mut begins: Vec<u64> = deletes.iter().map(|at| of[*at].lo.at).collect();
        for at in (1..begins.len()).rev() {
            begins[at - 1] = begins[at - 1].min(begins[at]);
        }
        let mut puts: Vec<(u64, u64)> = (0..of.len())
            .filter(|at| !is_delete(at))
            .map(|at| (of[at].hi.at, of[at].lo.at))
            .collect();
        puts.sort_unstable();
        let mut latest = 0;
        for (_, begin) in &mut puts {
            latest = latest.max(*begin);
            *begin = latest;
        }
        for read in &mut self.reads {
            let event = read.event;
            if read.found.is_some() || event.version != Version::ABSENT {
                continue;
            }
            // A put that is certainly before the read. Without one, the key may never have been
            // there.
            let before = puts.partition_point(|(end, _)| *end <= event.invoke);
            let Some((_, put)) = before.checked_sub(1).map(|at| puts[at]) else {
                continue;
            };
            let first = deletes.partition_point(|at| of[*at].hi.at <= put);
            let may_be = (first..deletes.len())
                .take_while(|at| begins[*at] < event.end)
                .map(|at| deletes[at])
                .filter(|at| of[*at].lo.at < event.end);
            let mut may_be = may_be.take(2);
            read.found = match (may_be.next(), may_be.next()) {
                (Some(only), None) => Some(only),
                (Some(_), Some(_)) => None,
                // What other keys say of the deletes leaves none: whichever it was, its interval
                // will be empty.
                (None, _) => (deletes.iter().copied())
                    .filter(|at| self.writes[*at].invoke < event.end)
                    .max_by_key(|at| self.writes[*at].invoke),
            };
        }
    }
}
