//! How many guards a thread holds, in debug builds: eviction with a page in hand deadlocks (CircularBuffer 1), and so may a test for it.
//!
//! Guards do not move between threads, so a count for each thread tells. Explorers run their threads as coroutines of one, so there nothing
//! is counted; nor in release builds.

#[cfg(all(debug_assertions, not(any(loom, shuttle))))]
mod count {
    use std::cell::Cell;

    thread_local! {
        static HELD: Cell<u32> = const { Cell::new(0) };
    }

    pub(in super::super) fn one_more() {
        HELD.set(HELD.get() + 1);
    }

    /// A guard that was forgotten, or dropped while its thread ends, must not make this panic.
    pub(in super::super) fn one_less() {
        let _ = HELD.try_with(|held| held.set(held.get().saturating_sub(1)));
    }

    pub(in super::super) fn assert_none() {
        let held = HELD.get();
        assert!(
            held == 0,
            "a thread that holds {held} pages must give them back before it evicts (CircularBuffer 1)"
        );
    }
}

#[cfg(not(all(debug_assertions, not(any(loom, shuttle)))))]
mod count {
    #[inline(always)]
    pub(in super::super) fn one_more() {}
    #[inline(always)]
    pub(in super::super) fn one_less() {}
    #[inline(always)]
    pub(in super::super) fn assert_none() {}
}

pub(super) use count::{assert_none, one_less, one_more};
