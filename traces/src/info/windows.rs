//! Windows over the length of a trace: what a workload does early and late, and whether the keys
//! that it uses stay the same.
//!
//! The operations after the warm-up are cut into at most [`MOST`] windows of equal length. The
//! distinct keys of a window are its working set (Denning, "The working set model for program
//! behavior", CACM 11:5, 1968).
//!
//! **Drift.** Each window says which share of its keys the window before has too, and which share
//! the first window has. If popularity is stationary, both shares are the same on average, whatever
//! the skew. If popularity moves, the second share falls from window to window. A window whose first
//! share is far below that of the others is one in which the keys change.
//!
//! **Cost and error.** All is known from the table of keys (`count`) at each access: the time of
//! the key's last access, and whether it was in the first window. Numbers of keys are exact as long
//! as that table is, 3.6 M keys. Beyond, they are sums over a sample; each window has its relative
//! standard error, as of a binomial sample of that many keys.

use serde::Serialize;

use super::clock::{Clock, Time};
use super::count::Before;
use super::kinds::{OpCounts, is_write};
use crate::OpKind;

/// The largest number of windows.
pub(super) const MOST: u64 = 24;

/// A part of the trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Window {
    /// The last operation of the window, counted from 1 at the end of the warm-up.
    pub end_op: u64,
    /// Operations in the window, by kind.
    pub ops: OpCounts,
    /// The working set: distinct keys that the window accesses.
    pub distinct_keys: u64,
    /// Distinct keys that it puts or deletes.
    pub written_keys: u64,
    /// Keys that no earlier operation had, warm-up included.
    pub new_keys: u64,
    /// Share of the window's keys that the window before accesses too; `None` for the first window.
    pub in_window_before: Option<f64>,
    /// Share of the window's keys that the first window accesses too; `None` for the first window.
    pub in_first_window: Option<f64>,
    /// Relative standard error of the numbers of keys; 0 if they are exact.
    pub keys_error: f64,
}

/// The sums of a window.
#[derive(Clone, Default)]
struct Sums {
    ops: OpCounts,
    distinct: u64,
    written: u64,
    new: u64,
    in_before: u64,
    in_first: u64,
    /// Keys of the sample among `distinct`, and the largest number of keys that one stands for.
    sampled: u64,
    stands_for: u64,
}

/// The windows so far.
pub(super) struct Windows {
    clock: Clock,
    /// Operations in a window.
    len: u64,
    /// Operations so far.
    seen: u64,
    /// The times of the first operations of this window and of the one before.
    start: Time,
    start_before: Time,
    now: Sums,
    done: Vec<Window>,
}

/// Returns the length of the windows of a trace with this number of operations.
pub(super) fn length(ops: u64) -> u64 {
    ops.div_ceil(MOST).max(1)
}

impl Windows {
    /// Creates windows of `len` operations.
    pub(super) fn new(clock: Clock, len: u64) -> Windows {
        Windows {
            clock,
            len,
            seen: 0,
            start: clock.time(1),
            start_before: clock.time(1),
            now: Sums::default(),
            done: Vec::new(),
        }
    }

    /// Takes the next operation, and what was known of its key; `None` if the key is not in the
    /// sample.
    #[inline]
    pub(super) fn add(&mut self, kind: OpKind, before: Option<&Before>) {
        self.seen += 1;
        self.now.ops.add(kind);
        if let Some(before) = before {
            self.touch(kind, before);
        }
        // The last window takes what a trace has more than its header says.
        if self.seen.is_multiple_of(self.len) && (self.done.len() as u64) < MOST - 1 {
            self.close();
        }
    }

    fn touch(&mut self, kind: OpKind, before: &Before) {
        let now = &mut self.now;
        let weight = before.stands_for;
        if is_write(kind) && before.written.is_none_or(|time| time < self.start) {
            now.written += weight;
        }
        if before.accessed.is_some_and(|time| time >= self.start) {
            return;
        }
        now.distinct += weight;
        now.sampled += 1;
        now.stands_for = now.stands_for.max(weight);
        now.new += if before.is_known { 0 } else { weight };
        if before
            .accessed
            .is_some_and(|time| time >= self.start_before)
        {
            now.in_before += weight;
        }
        if before.is_early {
            now.in_first += weight;
        }
    }

    fn close(&mut self) {
        let sums = std::mem::take(&mut self.now);
        let share = |keys: u64| {
            let some = !self.done.is_empty() && sums.distinct > 0;
            some.then(|| keys as f64 / sums.distinct as f64)
        };
        let left_out = 1.0 - 1.0 / sums.stands_for.max(1) as f64;
        self.done.push(Window {
            end_op: self.seen,
            ops: sums.ops,
            distinct_keys: sums.distinct,
            written_keys: sums.written,
            new_keys: sums.new,
            in_window_before: share(sums.in_before),
            in_first_window: share(sums.in_first),
            keys_error: (left_out / sums.sampled.max(1) as f64).sqrt(),
        });
        self.start_before = self.start;
        self.start = self.clock.time(self.seen + 1);
    }

    /// Returns the windows, the last of which may be shorter than the others.
    pub(super) fn finish(mut self) -> Vec<Window> {
        if self.now.ops.total() > 0 {
            self.close();
        }
        self.done
    }
}
