//! A gate: any number of threads pass at once, until one closes it and is alone.
//!
//! ```text
//!   passing:   count myself in  ──▶ open: go on, and count myself out at the end
//!                               ──▶ closed: count myself out, wait, try again
//!   closing:   one at a time; mark every counter as closed, sleep until nobody is counted
//! ```
//!
//! It is a reader-writer lock whose readers hardly ever wait and write to no memory that they all
//! share: each thread counts itself in one of [`STRIPES`] counters, which lie in cache lines of
//! their own. Closing costs a change of every counter.
//!
//! The mark and the count are one word. So either a passing thread sees the mark in the very step
//! in which it counts itself, or the closing one sees it counted.
//!
//! ```
//! use treering_engine::sync::Gate;
//!
//! let gate = Gate::new();
//! {
//!     let (_one, _another) = (gate.pass(), gate.pass());
//! }
//! let alone = gate.close(); // Waits until nobody passes any more.
//! drop(alone);
//! ```

use crate::mutation;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Condvar, Mutex, MutexGuard};

/// Number of counters. One is enough for an explorer, which then has fewer schedules to try.
const STRIPES: usize = if cfg!(any(loom, shuttle)) { 1 } else { 16 };

/// The mark of a closed gate; the bits below count threads.
const CLOSED: u64 = 1 << 63;

/// A counter in cache lines of its own. Processors fetch lines in pairs.
#[repr(align(128))]
struct Stripe(AtomicU64);

/// See the module documentation.
pub struct Gate {
    passing: [Stripe; STRIPES],
    /// Held by the thread that has closed the gate. Threads that found it closed wait for it.
    alone: Mutex<()>,
    sleeping: Mutex<()>,
    /// Signalled when a thread has passed while the gate was being closed.
    passed: Condvar,
}

/// The right to pass, which ends on drop.
#[must_use]
pub struct Pass<'a> {
    gate: &'a Gate,
    stripe: &'a AtomicU64,
}

/// The gate is closed until this is dropped.
#[must_use]
pub struct Closed<'a> {
    gate: &'a Gate,
    _alone: MutexGuard<'a, ()>,
}

impl Default for Gate {
    fn default() -> Self {
        Gate::new()
    }
}

impl Gate {
    /// Makes an open gate.
    #[must_use]
    pub fn new() -> Gate {
        Gate {
            passing: std::array::from_fn(|_| Stripe(AtomicU64::new(0))),
            alone: Mutex::new(()),
            sleeping: Mutex::new(()),
            passed: Condvar::new(),
        }
    }

    /// Passes, if necessary after waiting until the gate is open. A thread that holds a [`Pass`]
    /// must not call this again: a thread that closes the gate in between waits for the first, and
    /// the second for that thread.
    pub fn pass(&self) -> Pass<'_> {
        let stripe = &self.passing[stripe_of_thread()].0;
        loop {
            let before = stripe.fetch_add(1, Ordering::Acquire);
            let pass = Pass { gate: self, stripe };
            if before & CLOSED == 0 || mutation::on("writers-pass-closed-gate") {
                return pass;
            }
            drop(pass);
            drop(self.alone.lock());
        }
    }

    /// Closes the gate, and waits until nobody passes. The caller must hold no [`Pass`].
    pub fn close(&self) -> Closed<'_> {
        let alone = self.alone.lock();
        for stripe in &self.passing {
            stripe.0.fetch_or(CLOSED, Ordering::Relaxed);
        }
        let mut sleeping = self.sleeping.lock();
        while !self.is_empty() {
            self.passed.wait(&mut sleeping);
        }
        drop(sleeping);
        Closed {
            gate: self,
            _alone: alone,
        }
    }

    fn is_empty(&self) -> bool {
        let mut stripes = self.passing.iter();
        stripes.all(|stripe| stripe.0.load(Ordering::Acquire) == CLOSED)
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        let before = self.stripe.fetch_sub(1, Ordering::Release);
        if before & CLOSED != 0 {
            // Under the lock, so that the closing thread is not between its look and its sleep.
            drop(self.gate.sleeping.lock());
            self.gate.passed.notify_all();
        }
    }
}

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        for stripe in &self.gate.passing {
            stripe.0.fetch_and(!CLOSED, Ordering::Release);
        }
    }
}

/// The counter of this thread. Threads get them in turn.
#[cfg(not(any(loom, shuttle)))]
fn stripe_of_thread() -> usize {
    use std::sync::atomic::AtomicUsize;
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static MINE: usize = NEXT.fetch_add(1, Ordering::Relaxed) % STRIPES;
    }
    MINE.with(|mine| *mine)
}

#[cfg(any(loom, shuttle))]
fn stripe_of_thread() -> usize {
    0
}
