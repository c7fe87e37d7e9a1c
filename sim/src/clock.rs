//! Virtual time (DESIGN, "Time"): a clock that only the simulator advances.
//!
//! The replay owns one [`VirtualClock`] and lends it to the engine, which therefore sees each
//! operation happen at one instant; only devices and queues make time pass. The clock never goes
//! backwards: a move to an earlier instant leaves it where it is.

use std::fmt;
use std::ops::Add;
use std::sync::atomic::{AtomicU64, Ordering};

use treering_engine::{Clock, Nanos};

/// Nanoseconds of virtual time since the start of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VirtualNanos(pub u64);

impl VirtualNanos {
    /// The start of a run.
    pub const ZERO: VirtualNanos = VirtualNanos(0);

    /// Nanoseconds from `earlier` to this instant; 0 if `earlier` is later.
    pub fn since(self, earlier: VirtualNanos) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<u64> for VirtualNanos {
    type Output = VirtualNanos;

    /// The instant `ns` nanoseconds later. Saturates instead of wrapping around.
    fn add(self, ns: u64) -> VirtualNanos {
        VirtualNanos(self.0.saturating_add(ns))
    }
}

impl fmt::Display for VirtualNanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ns of virtual time", self.0)
    }
}

/// A virtual clock. The simulator advances it and the engine reads it.
#[derive(Debug, Default)]
pub struct VirtualClock {
    now: AtomicU64,
}

impl VirtualClock {
    /// A clock at [`VirtualNanos::ZERO`].
    pub fn new() -> Self {
        Self::default()
    }

    /// The current virtual time.
    pub fn virtual_now(&self) -> VirtualNanos {
        VirtualNanos(self.now.load(Ordering::Acquire))
    }

    /// Moves the clock to `to`, unless it is already past it.
    /// Moves the clock to `to`, unless it is already past it.
    ///
    /// Only the simulator's one thread moves the clock. So a load and a store suffice, which saves
    /// a locked instruction per operation.
    pub fn advance_to(&self, to: VirtualNanos) {
        if to.0 > self.now.load(Ordering::Relaxed) {
            self.now.store(to.0, Ordering::Release);
        }
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Nanos {
        Nanos(self.virtual_now().0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_sees_the_time_the_simulator_set_and_never_an_earlier_one() {
        let clock = VirtualClock::new();
        clock.advance_to(VirtualNanos(50));
        clock.advance_to(VirtualNanos(20));
        assert_eq!(clock.now(), Nanos(50));
        assert_eq!(clock.virtual_now() + 7, VirtualNanos(57));
    }

    #[test]
    fn time_stops_at_its_end_instead_of_wrapping() {
        assert_eq!(VirtualNanos(u64::MAX) + 1, VirtualNanos(u64::MAX));
        assert_eq!(VirtualNanos(3).since(VirtualNanos(9)), 0);
    }
}
