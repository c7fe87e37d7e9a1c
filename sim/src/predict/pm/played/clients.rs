//! Virtual time: which client has the next turn, and when background work has its own.
//!
//! Operations run one after another; a client is free again after the time that its requests take on
//! an idle device. An additional client cleans, one step after another.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Who is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Who {
    Client,
    Cleaner,
}

/// The clients.
#[derive(Debug)]
pub(super) struct Clients {
    /// By time, then in the order of adding.
    events: BinaryHeap<Reverse<(u64, u64, Who)>>,
    added: u64,
    parked: u32,
    pub(super) now: u64,
}

impl Clients {
    pub(super) fn new(count: u32) -> Clients {
        let mut clients = Clients {
            events: BinaryHeap::new(),
            added: 0,
            parked: 0,
            now: 0,
        };
        (0..count.max(1)).for_each(|_| clients.add(0, Who::Client));
        clients
    }

    /// Someone is done after so many nanoseconds.
    pub(super) fn add(&mut self, ns: u64, who: Who) {
        self.added += 1;
        self.events.push(Reverse((self.now + ns, self.added, who)));
    }

    /// Who is done first.
    pub(super) fn next(&mut self) -> Option<Who> {
        let Reverse((at, _, who)) = self.events.pop()?;
        self.now = at;
        Some(who)
    }

    /// A client waits for the cleaner.
    pub(super) fn park(&mut self) {
        self.parked += 1;
    }

    /// Cleaning has ended.
    pub(super) fn unpark(&mut self) {
        for _ in 0..std::mem::take(&mut self.parked) {
            self.add(0, Who::Client);
        }
    }
}
