//! Counts what a thread holds, in debug builds, to check two rules that no type can express:
//!
//! - a thread that evicts from the ring holds none of its pages (CircularBuffer 1);
//! - a thread that waits for a frame holds no latch. Otherwise all frames could be latched by
//!   waiting threads.
//!
//! Guards do not move between threads, so one count for each thread suffices. Nothing is counted in
//! release builds, nor under explorers, which run all threads as coroutines of one thread.

/// The kind of guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A lock of a page in the ring.
    RingPage,
    /// The latch of a frame in the cache.
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

    /// Must not panic for a guard that was leaked, or dropped while its thread ends.
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
            "a thread waits while it holds {held} of {kind:?}: {rule}"
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

/// Counts one guard of a kind for as long as it lives.
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
