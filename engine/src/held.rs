//! What a thread holds, counted in debug builds, for the two rules of waiting that no type can
//! state:
//!
//! - who evicts from the ring holds none of its pages (CircularBuffer 1);
//! - who waits for a frame holds no latch of one: or all frames may be latched by those who wait.
//!
//! Guards do not move between threads, so a count for each thread tells. Explorers run their
//! threads as coroutines of one, so there nothing is counted; nor in release builds.

/// What is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A page of the ring, locked.
    RingPage,
    /// A frame of the cache, latched.
    Latch,
}

#[cfg(all(debug_assertions, not(any(loom, shuttle))))]
mod count {
    use super::Kind;
    use std::cell::Cell;

    thread_local! {
        static HELD: [Cell<u32>; 2] = const { [Cell::new(0), Cell::new(0)] };
    }

    pub(crate) fn one_more(kind: Kind) {
        HELD.with(|held| held[kind as usize].set(held[kind as usize].get() + 1));
    }

    /// A guard that was forgotten, or dropped while its thread ends, must not make this panic.
    pub(crate) fn one_less(kind: Kind) {
        let less = |held: &[Cell<u32>; 2]| {
            let count = &held[kind as usize];
            count.set(count.get().saturating_sub(1));
        };
        let _ = HELD.try_with(less);
    }

    pub(crate) fn assert_none(kind: Kind, rule: &str) {
        let held = HELD.with(|held| held[kind as usize].get());
        assert!(
            held == 0,
            "a thread that holds {held} of {kind:?} waits: {rule}"
        );
    }
}

#[cfg(not(all(debug_assertions, not(any(loom, shuttle)))))]
mod count {
    use super::Kind;

    #[inline(always)]
    pub(crate) fn one_more(_: Kind) {}
    #[inline(always)]
    pub(crate) fn one_less(_: Kind) {}
    #[inline(always)]
    pub(crate) fn assert_none(_: Kind, _: &str) {}
}

pub(crate) use count::{assert_none, one_less, one_more};

/// Counts one of a kind as long as it lives.
pub(crate) struct Held(Kind);

impl Held {
    #[inline]
    pub(crate) fn new(kind: Kind) -> Held {
        one_more(kind);
        Held(kind)
    }
}

impl Drop for Held {
    #[inline]
    fn drop(&mut self) {
        one_less(self.0);
    }
}
