//! Virtual time in a played run: closed-loop clients that wait for reads and, if they commit, for a
//! log flush that they share.
//!
//! The next operation goes to the client that is free first. An operation without a miss takes no
//! time. A client that commits waits for the first flush that begins after its write; while a flush
//! is in flight, others gather for the next.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::predict::log::Pace;

/// A client's turn, or the flush that others wait for; by time, then in the order of adding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Free,
    Flush,
}

/// The clients.
#[derive(Debug)]
pub(super) struct Clients {
    read_ns: f64,
    flush_ns: f64,
    commits: bool,
    count: u32,
    /// Times in nanoseconds. Only clients that commit need events; the others share time evenly.
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    added: u64,
    waiting: u32,
    flush_done: u64,
    now: f64,
}

impl Clients {
    /// Clients at this pace; without one, time stands still.
    pub(super) fn new(pace: Option<&Pace>) -> Clients {
        let (count, commits) = pace.map_or((1, false), |pace| (pace.clients.max(1), pace.commits));
        let mut clients = Clients {
            read_ns: pace.map_or(0.0, |pace| pace.read_ns),
            flush_ns: pace.map_or(0.0, |pace| pace.flush_ns),
            commits,
            count,
            events: BinaryHeap::new(),
            added: 0,
            waiting: 0,
            flush_done: 0,
            now: 0.0,
        };
        if commits {
            (0..count).for_each(|_| clients.add(0, Event::Free));
        }
        clients
    }

    fn add(&mut self, at: u64, event: Event) {
        self.added += 1;
        self.events.push(Reverse((at, self.added, event)));
    }

    /// Begins an operation: the time moves to when a client is free. Returns `false` if the log is
    /// to be flushed first, and [`Clients::flushed`] called.
    pub(super) fn begin(&mut self) -> bool {
        if !self.commits {
            return true;
        }
        match self.events.pop() {
            Some(Reverse((at, _, event))) => {
                self.now = at as f64;
                event == Event::Free
            }
            // All wait for a flush that is not due yet, which cannot be: one is always planned.
            None => true,
        }
    }

    /// The flush that clients waited for was written.
    pub(super) fn flushed(&mut self) {
        let done = self.now as u64 + self.flush_ns as u64;
        self.flush_done = done;
        for _ in 0..std::mem::take(&mut self.waiting) {
            self.add(done, Event::Free);
        }
    }

    /// Ends an operation that read `misses` pages.
    pub(super) fn end(&mut self, misses: u64, wrote: bool) {
        let took = misses as f64 * self.read_ns;
        if !self.commits {
            self.now += took / f64::from(self.count);
            return;
        }
        let done = (self.now + took) as u64;
        if !wrote {
            self.add(done, Event::Free);
            return;
        }
        if self.waiting == 0 {
            self.add(done.max(self.flush_done), Event::Flush);
        }
        self.waiting += 1;
    }

    /// Nanoseconds since the run began.
    pub(super) fn now(&self) -> f64 {
        self.now
    }
}
