//! Turns: a semaphore that serves threads in the order of arrival.
//!
//! ```text
//!   tickets   0   1   2 | 3   4   5   6        next = 7: the next ticket to draw
//!             left   in |     waiting          left = 2, places = 1: ticket 2 has its turn
//! ```
//!
//! A ticket has its turn when, of the tickets before it, fewer than `places` have not left yet.
//! Nobody is overtaken, so a thread waits for as many turns as there were tickets before its own. A
//! mutex that lets newcomers in does not promise that. Waiting threads sleep.
//!
//! Cost: one short mutex at each end of a turn. The end of a turn wakes one in [`SHIFTS`] of the
//! waiting threads, the right one among them.
//!
//! ```
//! use treering_engine::sync::Turns;
//!
//! let turns = Turns::new(1);
//! let turn = turns.wait();
//! assert!(turns.try_now().is_none()); // The only place is taken.
//! drop(turn);
//! assert!(turns.try_now().is_some());
//! ```

use crate::mutation;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Condvar, Mutex};

/// Number of condition variables over which waiting threads are distributed by their tickets.
const SHIFTS: usize = 16;

/// A semaphore that serves in the order of arrival, see the module documentation.
pub struct Turns {
    places: u64,
    state: Mutex<Tickets>,
    shifts: [Condvar; SHIFTS],
    /// Tickets drawn and not returned yet, readable without the lock.
    out: AtomicU64,
}

struct Tickets {
    next: u64,
    left: u64,
}

/// A turn, which ends on drop.
pub struct Turn<'a> {
    turns: &'a Turns,
}

impl Turns {
    /// Makes a semaphore with this number of places, at least one.
    #[must_use]
    pub fn new(places: u64) -> Turns {
        Turns {
            places: places.max(1),
            state: Mutex::new(Tickets { next: 0, left: 0 }),
            shifts: std::array::from_fn(|_| Condvar::new()),
            out: AtomicU64::new(0),
        }
    }

    /// Waits for a turn.
    pub fn wait(&self) -> Turn<'_> {
        let mut state = self.state.lock();
        let ticket = state.next;
        state.next += 1;
        self.out.fetch_add(1, Ordering::Relaxed);
        while ticket >= state.left + self.places {
            self.shifts[ticket as usize % SHIFTS].wait(&mut state);
        }
        Turn { turns: self }
    }

    /// Takes a turn, if there is a free place and nobody waits for it.
    pub fn try_now(&self) -> Option<Turn<'_>> {
        let mut state = self.state.lock();
        if state.next >= state.left + self.places {
            return None;
        }
        state.next += 1;
        self.out.fetch_add(1, Ordering::Relaxed);
        Some(Turn { turns: self })
    }

    /// Returns whether a thread has, or waits for, a turn. A guess, made without the lock.
    pub fn is_wanted(&self) -> bool {
        self.out.load(Ordering::Relaxed) > 0
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let turns = self.turns;
        turns.out.fetch_sub(1, Ordering::Relaxed);
        let mut state = turns.state.lock();
        state.left += 1;
        // Wake the first waiting ticket. Others may sleep on the same condition variable; they
        // check and sleep again.
        let admitted = state.left + turns.places - 1;
        if admitted < state.next && !mutation::on("turn-ends-unheard") {
            turns.shifts[admitted as usize % SHIFTS].notify_all();
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::sync::Arc;
    use std::time::Duration;

    #[test]
    fn turns_come_in_the_order_of_arrival() {
        for places in [1, 3] {
            let turns = Turns::new(places);
            let held: Vec<_> = (0..places).map(|_| turns.wait()).collect();
            assert!(turns.try_now().is_none(), "all {places} places are taken");
            let served = Mutex::new(Vec::new());
            std::thread::scope(|scope| {
                for n in 0..40 {
                    let (turns, served) = (&turns, &served);
                    scope.spawn(move || {
                        let turn = turns.wait();
                        served.lock().push(n);
                        drop(turn);
                    });
                    // The next thread comes when this one has drawn its ticket.
                    while turns.state.lock().next <= places + n {
                        std::thread::sleep(Duration::from_micros(50));
                    }
                }
                drop(held);
            });
            let mut served = served.into_inner();
            if places > 1 {
                // Threads whose turns overlap push in any order.
                let late = |(at, n): (usize, &u64)| at as u64 + 2 * places < *n;
                assert!(!served.iter().enumerate().any(late), "{served:?}");
                served.sort_unstable();
            }
            assert_eq!(served, (0..40).collect::<Vec<_>>());
            assert!(!turns.is_wanted());
        }
    }

    #[test]
    fn no_more_than_the_places_are_taken_and_every_turn_is_handed_on() {
        let turns = Arc::new(Turns::new(3));
        let inside = Arc::new(AtomicU64::new(0));
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let (turns, inside) = (Arc::clone(&turns), Arc::clone(&inside));
                std::thread::spawn(move || {
                    for _ in 0..2_000 {
                        let _turn = turns.wait();
                        let now = inside.fetch_add(1, Ordering::SeqCst) + 1;
                        assert!(now <= 3, "{now} have their turn");
                        inside.fetch_sub(1, Ordering::SeqCst);
                    }
                })
            })
            .collect();
        let started = std::time::Instant::now();
        while threads.iter().any(|thread| !thread.is_finished()) {
            let waited = started.elapsed();
            assert!(
                waited < Duration::from_secs(60),
                "a turn ended and nobody was told"
            );
            std::thread::sleep(Duration::from_millis(1));
        }
        for thread in threads {
            thread.join().expect("a thread failed");
        }
    }
}
