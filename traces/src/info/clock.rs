//! Time, counted in operations.

/// A point in time: an operation after the warm-up, numbered from 1.
///
/// Times have 32 bits, because a table holds three of them for each key. In a trace of more than
/// 2^31 operations, a time stands for 2, 4, 8, … of them.
pub(super) type Time = u32;

/// Numbers operations.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    /// A time stands for 2^shift operations.
    shift: u32,
}

/// The largest time, which leaves room for a special value.
const LAST: u64 = Time::MAX as u64 - 1;

impl Clock {
    /// Creates a clock for this number of operations.
    pub(super) fn new(ops: u64) -> Clock {
        let most = ops.max(1).ilog2();
        Clock {
            shift: (most + 1).saturating_sub(Time::BITS - 1),
        }
    }

    /// Whether every operation has a time of its own.
    pub(super) fn is_exact(self) -> bool {
        self.shift == 0
    }

    /// Returns the time of the operation with this number, counted from 1.
    #[inline]
    pub(super) fn time(self, op: u64) -> Time {
        // A trace may be longer than its header says.
        (((op - 1) >> self.shift) + 1).min(LAST) as Time
    }

    /// Returns the number of operations from one time to a later one.
    #[inline]
    pub(super) fn between(self, from: Time, to: Time) -> u64 {
        u64::from(to.saturating_sub(from)) << self.shift
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exact_in_short_traces_and_fit_in_long_ones() {
        let short = Clock::new(2_000_000_000);
        assert!(short.is_exact());
        assert_eq!((short.time(1), short.time(7)), (1, 7));
        assert_eq!(short.between(3, 7), 4);
        for ops in [0, 1, 1 << 31, 1 << 32, 1 << 40, u64::MAX] {
            let clock = Clock::new(ops);
            let last = clock.time(ops.max(1));
            assert!(last >= 1 && u64::from(last) <= LAST, "{ops}: {last}");
            let error = clock.between(1, last).abs_diff(ops.max(1) - 1);
            assert!(error <= ops >> 30, "{ops}: {error}");
        }
    }
}
