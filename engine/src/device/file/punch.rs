//! Delayed discards: holes are punched in batches, and never where data was written since the trim.
//!
//! ```text
//! trim ──▶ pending ──(reclaim: long, or old)──▶ being punched ──▶ a hole
//!             │                                      ▲
//!             └──── written again: taken out         └── a write to these blocks waits
//! ```
//!
//! Punching a hole for each page that moves costs two transactions of the file system, and both are
//! wasted if the next write fills the hole again: a copy-on-write store spent most of its time on
//! them. So trimmed ranges are collected and adjacent ones joined. A hole is punched only for a
//! range that is long ([`LONG`]), that was left alone from one call of [`Discards::reclaim`] to the
//! next, or that is one of a few ([`FEW`]). A trim is a hint and is not ordered before the next
//! flush, so when a hole is punched, and whether, affects only the file's size.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::mutation;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Condvar, Mutex};

/// The number of blocks of a range that is punched at once: 64 KiB.
const LONG: u64 = 16;
/// Up to this many ranges, punching each of them costs next to nothing.
const FEW: usize = 64;
/// The number of pending ranges above which a reclaim is run without being asked for.
const MANY: usize = 1 << 16;

/// The state of one pending range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Waiting {
    end: u64,
    /// The generation in which its youngest part was trimmed.
    since: u64,
}

#[derive(Default)]
struct State {
    /// Keyed by first block. Ranges are disjoint and never adjacent.
    pending: BTreeMap<u64, Waiting>,
    /// The range for which a hole is being punched.
    punching: Option<Range<u64>>,
    generation: u64,
}

/// Trimmed blocks that the file system has not been told of yet.
#[derive(Default)]
pub(super) struct Discards {
    state: Mutex<State>,
    /// Signalled when a hole has been punched.
    punched: Condvar,
    /// Whether `state` is non-empty, readable without its lock.
    any: AtomicBool,
    /// Whether more ranges are pending than should be.
    many: AtomicBool,
    /// Held by the thread that punches.
    puncher: Mutex<()>,
}

impl State {
    /// Adds `range` to the pending ranges, joining it with ranges that it touches.
    fn add(&mut self, range: Range<u64>) {
        let Range { mut start, mut end } = range;
        let since = self.generation;
        // Find the touching ranges: repeatedly the last one that begins before the end of this one.
        while let Some((&first, &before)) = self.pending.range(..=end).next_back() {
            if before.end < start {
                break;
            }
            start = start.min(first);
            end = end.max(before.end);
            self.pending.remove(&first);
        }
        self.pending.insert(start, Waiting { end, since });
    }

    /// Removes `range` from the pending ranges.
    fn remove(&mut self, range: &Range<u64>) {
        while let Some((&first, &found)) = self.pending.range(..range.end).next_back() {
            if found.end <= range.start {
                break;
            }
            self.pending.remove(&first);
            if first < range.start {
                let end = range.start;
                self.pending.insert(first, Waiting { end, ..found });
            }
            if found.end > range.end {
                self.pending.insert(range.end, found);
            }
        }
    }

    /// Returns the first range at or after `from` that is worth a hole and lies outside `keep`.
    fn due(&self, from: u64, keep: &Range<u64>, all: bool) -> Option<Range<u64>> {
        let worth = |range: &Range<u64>, since: u64| {
            all || range.end - range.start >= LONG || since + 1 < self.generation
        };
        self.pending
            .range(from..)
            .flat_map(|(&first, found)| {
                let below = first..found.end.min(keep.start);
                let above = first.max(keep.end)..found.end;
                [(below, found.since), (above, found.since)]
            })
            .find(|(range, since)| !range.is_empty() && worth(range, *since))
            .map(|(range, _)| range)
    }
}

impl Discards {
    /// Adds blocks that were trimmed.
    pub(super) fn add(&self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let mut state = self.state.lock();
        state.add(range);
        self.any.store(true, Ordering::Release);
        self.many
            .store(state.pending.len() > MANY, Ordering::Relaxed);
    }

    /// Prevents holes in blocks that are about to be written. Waits for a hole that is being
    /// punched there.
    pub(super) fn about_to_write(&self, ranges: impl Iterator<Item = Range<u64>>) {
        // The trim of these blocks happened before they were handed out for writing, so its flag is
        // visible.
        if !self.any.load(Ordering::Acquire) || mutation::on("punch-after-rewrite") {
            return;
        }
        let mut state = self.state.lock();
        for range in ranges {
            let overlaps = |hole: &Range<u64>| hole.start < range.end && range.start < hole.end;
            while state.punching.as_ref().is_some_and(overlaps) {
                self.punched.wait(&mut state);
            }
            // After the wait: a hole for which there was no room is pending again.
            state.remove(&range);
        }
        let idle = state.pending.is_empty() && state.punching.is_none();
        self.any.store(!idle, Ordering::Release);
    }

    /// Returns whether so many ranges are pending that their memory calls for a reclaim.
    pub(super) fn are_many(&self) -> bool {
        self.many.load(Ordering::Relaxed)
    }

    /// Calls `punch` for all ranges that are worth a hole, except blocks in `keep`, up to the first
    /// error. If that `may_pass`, its range is pending again; otherwise the range is forgotten,
    /// since a trim is only a hint. Only one thread does this at a time; any other returns at once.
    pub(super) fn reclaim<E>(
        &self,
        keep: &Range<u64>,
        may_pass: impl Fn(&E) -> bool,
        mut punch: impl FnMut(&Range<u64>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(_alone) = self.puncher.try_lock() else {
            return Ok(());
        };
        let mut from = 0;
        let few = {
            let mut state = self.state.lock();
            state.generation += 1;
            state.pending.len() <= FEW
        };
        loop {
            let range = {
                let mut state = self.state.lock();
                let Some(range) = state.due(from, keep, few) else {
                    break;
                };
                state.remove(&range);
                state.punching = Some(range.clone());
                range
            };
            let outcome = punch(&range);
            {
                // At once, so that a writer who waits finds what is pending again.
                let mut state = self.state.lock();
                state.punching = None;
                if outcome.as_ref().is_err_and(&may_pass) {
                    state.add(range.clone());
                }
            }
            self.punched.notify_all();
            outcome?;
            from = range.start;
        }
        self.many.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Returns the number of pending blocks.
    #[cfg(test)]
    fn pending(&self) -> Vec<Range<u64>> {
        let state = self.state.lock();
        state.pending.iter().map(|(f, w)| *f..w.end).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    const NOTHING: Range<u64> = 0..0;

    fn punched(discards: &Discards, keep: &Range<u64>) -> Vec<Range<u64>> {
        let mut all = Vec::new();
        let note = |range: &Range<u64>| {
            all.push(range.clone());
            Ok::<(), ()>(())
        };
        discards
            .reclaim(keep, |()| false, note)
            .expect("nobody refuses");
        all
    }

    #[test]
    fn neighbours_become_one_hole() {
        let discards = Discards::default();
        for at in [4, 0, 8, 12, 20] {
            discards.add(at..at + 4);
        }
        assert_eq!(discards.pending(), [0..16, 20..24]);
        assert_eq!(punched(&discards, &NOTHING), [0..16, 20..24]);
        assert_eq!(discards.pending(), []);
    }

    #[test]
    fn a_block_written_again_is_no_hole() {
        let discards = Discards::default();
        discards.add(100..164);
        discards.about_to_write([120..121, 0..101, 163..200].into_iter());
        assert_eq!(discards.pending(), [101..120, 121..163]);
        assert_eq!(punched(&discards, &NOTHING), [101..120, 121..163]);
    }

    #[test]
    fn short_ranges_wait_until_they_were_left_alone_if_they_are_many() {
        let discards = Discards::default();
        let ranges: Vec<Range<u64>> = (0..200).map(|i| 3 * i..3 * i + 2).collect();
        ranges.iter().for_each(|range| discards.add(range.clone()));
        assert_eq!(punched(&discards, &NOTHING), []);
        assert_eq!(punched(&discards, &NOTHING), ranges);
        assert_eq!(discards.pending(), []);
    }

    #[test]
    fn what_is_to_be_kept_stays_and_its_surroundings_go() {
        let discards = Discards::default();
        discards.add(0..200);
        let keep = 50..100;
        assert_eq!(punched(&discards, &keep), [0..50, 100..200]);
        assert_eq!(discards.pending(), vec![50..100; 1]);
        assert_eq!(punched(&discards, &NOTHING), vec![50..100; 1]);
    }

    #[test]
    fn a_writer_waits_for_the_hole_that_is_being_made_where_it_writes() {
        let discards = Discards::default();
        discards.add(0..LONG);
        let (begun, done) = (AtomicBool::new(false), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let slow = |_: &Range<u64>| {
                    begun.store(true, Ordering::Release);
                    std::thread::sleep(std::time::Duration::from_millis(100));
                    done.store(1, Ordering::Release);
                    Ok::<(), ()>(())
                };
                discards.reclaim(&NOTHING, |()| false, slow).expect("made");
            });
            while !begun.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            discards.about_to_write(std::iter::once(3..4));
            assert_eq!(done.load(Ordering::Acquire), 1, "written into a hole");
        });
    }

    #[test]
    fn a_refusal_is_told_and_the_range_forgotten() {
        let discards = Discards::default();
        discards.add(0..LONG);
        let refuse = |_: &Range<u64>| Err::<(), &str>("no");
        let refused = discards.reclaim(&NOTHING, |_| false, refuse);
        assert_eq!(refused, Err("no"));
        assert_eq!(discards.pending(), []);
        discards.about_to_write(std::iter::once(0..4));
    }

    #[test]
    fn a_hole_without_room_is_pending_again_but_not_what_a_waiting_writer_takes() {
        let discards = Discards::default();
        discards.add(0..LONG);
        let begun = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let full = |_: &Range<u64>| {
                    begun.store(true, Ordering::Release);
                    std::thread::sleep(std::time::Duration::from_millis(100));
                    Err::<(), &str>("full")
                };
                let failed = discards.reclaim(&NOTHING, |_| true, full);
                assert_eq!(failed, Err("full"));
            });
            while !begun.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            discards.about_to_write(std::iter::once(3..4));
        });
        assert_eq!(discards.pending(), [0..3, 4..LONG]);
    }
}
