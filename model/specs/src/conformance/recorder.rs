//! A recorder of the events of an engine and of its clients' threads, in one order.

use std::cell::Cell;

use treering_engine::sync::{Mutex, MutexGuard, yield_now};

use treering_oracle::random::Random;

thread_local! {
    /// The client that this thread works for.
    static CLIENT: Cell<u8> = const { Cell::new(0) };
}

/// Makes this thread work for `client` from now on.
pub(super) fn work_for(client: u8) {
    CLIENT.set(client);
}

/// The recorded events, each with its client.
pub(super) struct Entries<Heard> {
    heard: Vec<(u8, Heard)>,
    dawdling: Random,
}

impl<Heard> Entries<Heard> {
    /// Records an event of this thread's client.
    pub(super) fn push(&mut self, heard: Heard) {
        self.heard.push((CLIENT.get(), heard));
    }
}

/// Records events of the engine and the clients.
pub(super) struct Recorder<Heard>(Mutex<Entries<Heard>>);

impl<Heard> Recorder<Heard> {
    pub(super) fn new(seed: u64) -> Self {
        Recorder(Mutex::new(Entries {
            heard: Vec::new(),
            dawdling: Random::new(seed),
        }))
    }

    /// Locks the entries. No other thread can record an event meanwhile.
    pub(super) fn lock(&self) -> MutexGuard<'_, Entries<Heard>> {
        self.0.lock()
    }

    pub(super) fn hear(&self, heard: Heard) {
        let mut entries = self.0.lock();
        entries.push(heard);
        // Sometimes delays the recording thread, with whatever locks it holds, so that threads
        // interleave in more ways.
        let dawdles = entries.dawdling.one_in(4);
        drop(entries);
        if dawdles {
            yield_now();
        }
    }

    /// Takes all entries recorded so far.
    pub(super) fn take(&self) -> Vec<(u8, Heard)> {
        std::mem::take(&mut self.0.lock().heard)
    }
}
