//! Discards that wait: holes are punched in batches, and never where something was written since.
//!
//! ```text
//! trim ──▶ pending ──(reclaim: long, or old)──▶ being punched ──▶ a hole
//!             │                                      ▲
//!             └──── written again: taken out         └── whoever wants to write here waits
//! ```
//!
//! A hole for each page that moves is two transactions of the file system where there need be none,
//! for the next write fills it again: a copy-on-write store spent most of its time on them. So
//! ranges are gathered, neighbours joined, and a hole is punched only for a range that is long
//! ([`LONG`]), was left alone from one call of [`Discards::reclaim`] to the next, or is one of a
//! few ([`FEW`]). A trim is a hint, and is not ordered before the next flush: whether and when a
//! hole is made changes nothing but the file's size.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::mutation;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Condvar, Mutex};

/// Blocks of a range that is worth a hole at once: 64 KiB.
const LONG: u64 = 16;
/// Ranges that are so few that a hole for each costs nothing to speak of.
const FEW: usize = 64;
/// Ranges that are remembered at most; beyond that the next reclaim need not wait to be asked.
const MANY: usize = 1 << 16;

/// What is to become of one range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Waiting {
    end: u64,
    /// In which generation the youngest part of it came.
    since: u64,
}

#[derive(Default)]
struct State {
    /// By first block; apart from each other, and never side by side.
    pending: BTreeMap<u64, Waiting>,
    /// The range of which a hole is being made.
    punching: Option<Range<u64>>,
    generation: u64,
}

/// Blocks that hold nothing any more and that the file system has not been told of.
#[derive(Default)]
pub(super) struct Discards {
    state: Mutex<State>,
    /// Signalled when a hole has been made.
    punched: Condvar,
    /// Whether there is anything in `state`, to be read without its lock.
    any: AtomicBool,
    /// Whether more are gathered than should be.
    many: AtomicBool,
    /// Held by whoever punches.
    puncher: Mutex<()>,
}

impl State {
    /// Joins `range` to what is pending.
    fn add(&mut self, range: Range<u64>) {
        let Range { mut start, mut end } = range;
        let since = self.generation;
        // Those that touch it: the last one that begins before its end, again and again.
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

    /// Takes `range` out of what is pending.
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

    /// The first range from `from` on that is worth a hole, and lies outside `keep`.
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
    /// These blocks hold nothing any more.
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

    /// These blocks are about to be written: no hole is made of them from now on. Waits for one
    /// that is being made.
    pub(super) fn about_to_write(&self, ranges: impl Iterator<Item = Range<u64>>) {
        // Whoever trimmed these very blocks did so before he let others write them, so his mark is
        // seen.
        if !self.any.load(Ordering::Acquire) || mutation::on("punch-after-rewrite") {
            return;
        }
        let mut state = self.state.lock();
        for range in ranges {
            state.remove(&range);
            let overlaps = |hole: &Range<u64>| hole.start < range.end && range.start < hole.end;
            while state.punching.as_ref().is_some_and(overlaps) {
                self.punched.wait(&mut state);
            }
        }
        let idle = state.pending.is_empty() && state.punching.is_none();
        self.any.store(!idle, Ordering::Release);
    }

    /// Whether so many are gathered that memory asks for a reclaim.
    pub(super) fn are_many(&self) -> bool {
        self.many.load(Ordering::Relaxed)
    }

    /// Has `punch` make holes of what is worth it, but for blocks of `keep`. What it refuses with
    /// an error is forgotten: a hint that was not taken. One caller at a time; another one returns
    /// at once.
    pub(super) fn reclaim<E>(
        &self,
        keep: &Range<u64>,
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
            self.state.lock().punching = None;
            self.punched.notify_all();
            outcome?;
            from = range.start;
        }
        self.many.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Blocks that wait.
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
        discards.reclaim(keep, note).expect("nobody refuses");
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
                discards.reclaim(&NOTHING, slow).expect("made");
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
        assert_eq!(discards.reclaim(&NOTHING, refuse), Err("no"));
        assert_eq!(discards.pending(), []);
        discards.about_to_write(std::iter::once(0..4));
    }
}
