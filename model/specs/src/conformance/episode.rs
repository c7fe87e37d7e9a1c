//! Episodes: the seeded life of a store, with clients, background work, failures, crashes and
//! recoveries.
//!
//! Four clients share one thread, each with one call at a time. A put returns when its record is in
//! the buffer, and the rest of the call is its `sync`. So several clients wait for a flush, and the
//! seed decides the order of everything.

use std::sync::Arc;

use treering_engine::{Kv, Lsn, Result, Store, Task, survey};

use super::fate::{End, Fate, Opened};
use super::record::{Entry, Heard, on_behalf_of};
use super::setup::Setup;
use treering_oracle::deadline::Deadline;
use treering_oracle::value;

/// Clients of an episode.
pub const CLIENTS: u8 = 4;
/// The length of an episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Length {
    /// The number of openings.
    pub lives: u64,
    /// The number of steps between an opening and the next end.
    pub steps: u64,
}

impl Default for Length {
    fn default() -> Self {
        Length {
            lives: 4,
            steps: 220,
        }
    }
}

/// The activity of a client.
#[derive(Clone, Copy, PartialEq)]
enum Client {
    Idle,
    /// Its write is in the log buffer at this LSN.
    Waits(Lsn),
    /// The client will get no answer before the next crash.
    Stuck,
}

/// A store and its clients.
pub struct Episode<'a> {
    setup: &'a Setup,
    length: Length,
    fate: Fate,
    clients: [Client; CLIENTS as usize],
    bytes: Vec<u8>,
    found: Vec<u8>,
}

impl<'a> Episode<'a> {
    /// Prepares the episode of a seed.
    #[must_use]
    pub fn new(setup: &'a Setup, seed: u64, length: Length) -> Episode<'a> {
        Episode {
            setup,
            length,
            fate: Fate::new(seed, setup.device(), Arc::default()),
            clients: [Client::Idle; CLIENTS as usize],
            bytes: Vec::new(),
            found: Vec::new(),
        }
    }

    /// Runs the episode and passes on the recorded entries, life by life, as long as `judge`
    /// returns true and there is time.
    ///
    /// # Errors
    /// The engine's own, at the first opening and when a device is surveyed. No error is expected
    /// there.
    pub fn run(
        mut self,
        until: &Deadline,
        judge: &mut dyn FnMut(Vec<Entry>) -> bool,
    ) -> Result<()> {
        let mut opened = Opened::Up(Box::new(
            self.setup.begin(&self.fate.device, &self.fate.recorder)?,
        ));
        for _ in 0..self.length.lives {
            let end = match opened {
                Opened::Up(store) => self.live(&store, until),
                Opened::Not(end) => end,
            };
            let go_on = judge(self.fate.recorder.take());
            self.bury(end)?;
            if !go_on || until.is_over() {
                return Ok(());
            }
            opened = self.reopen();
        }
        if let Opened::Up(store) = &opened {
            self.read_all(store);
        }
        judge(self.fate.recorder.take());
        Ok(())
    }

    /// Runs a life from the opening to its end.
    fn live(&mut self, store: &Store, until: &Deadline) -> End {
        self.read_all(store);
        self.set_fate();
        for _ in 0..self.length.steps {
            if until.is_over() {
                break;
            }
            let failed = self.step(store).is_err();
            if let Some(end) = self.fate.caught() {
                return end;
            }
            if self.fate.device.power_is_cut() || (failed && self.fate.rng.one_in(4)) {
                break;
            }
        }
        self.fate.recorder.clear_trap();
        self.fate.end()
    }

    /// Decides what will fail in this life, if anything.
    fn set_fate(&mut self) {
        let seed = self.fate.rng.word();
        match self.fate.rng.below(8) {
            0 => self.fate.device.fail_flush_in(self.fate.rng.below(30)),
            1 => self.fate.fail_write(60),
            2 => self.fate.cut_power(150),
            3..=5 => self.fate.set_trap(1200, seed),
            _ => {}
        }
    }

    /// Records what the end of a life has left.
    fn bury(&mut self, end: End) -> Result<()> {
        self.clients = [Client::Idle; CLIENTS as usize];
        let power = self.fate.bury(end);
        let found = Arc::new(survey(self.fate.device.clone())?);
        let heard = if power {
            Heard::Crashed(found)
        } else {
            Heard::Restarted(found)
        };
        self.fate.recorder.hear(None, heard);
        Ok(())
    }

    /// Opens the store. That may fail, or the power may fail meanwhile.
    fn reopen(&mut self) -> Opened {
        let setup = self.setup;
        self.fate
            .reopen(150, |device, recorder| setup.open(device, recorder))
    }

    /// One random step.
    fn step(&mut self, store: &Store) -> Result<()> {
        match self.fate.rng.below(24) {
            0 => store.pump(Task::WriteBack).map(drop),
            1 | 2 => store.pump(Task::Checkpoint).map(drop),
            3 if self.fate.rng.one_in(4) => store.pump(Task::FlushLog).map(drop),
            4 if self.fate.rng.one_in(8) => store.checkpoint().map(drop),
            _ => {
                let c = self.fate.rng.below(u64::from(CLIENTS)) as u8;
                self.client_step(store, c)
            }
        }
    }

    fn client_step(&mut self, store: &Store, c: u8) -> Result<()> {
        match self.clients[usize::from(c)] {
            Client::Idle if self.fate.rng.one_in(3) => self.get(store, c),
            Client::Idle => self.put(store, c),
            Client::Waits(lsn) if self.fate.rng.one_in(3) => {
                let synced = on_behalf_of(c, || store.sync(lsn));
                self.answered(c, synced)
            }
            Client::Waits(_) | Client::Stuck => Ok(()),
        }
    }

    /// A client gets its answer, or an error instead.
    fn answered(&mut self, c: u8, answer: Result<()>) -> Result<()> {
        self.clients[usize::from(c)] = match &answer {
            Ok(()) => Client::Idle,
            Err(_) => {
                self.fate.recorder.hear(Some(c), Heard::Refused);
                Client::Stuck
            }
        };
        answer
    }

    fn put(&mut self, store: &Store, c: u8) -> Result<()> {
        let key = self.fate.rng.below(self.setup.keys.len() as u64) as u8;
        let absent = self.fate.rng.one_in(4);
        let version = self.fate.recorder.call_write(c, key, absent);
        self.setup
            .fill(&mut self.bytes, if absent { 0 } else { version });
        let put = on_behalf_of(c, || {
            store.put(&self.setup.keys[usize::from(key)], &self.bytes)
        });
        match put {
            Ok(lsn) => {
                self.clients[usize::from(c)] = Client::Waits(lsn);
                Ok(())
            }
            Err(e) => self.answered(c, Err(e)),
        }
    }

    fn get(&mut self, store: &Store, c: u8) -> Result<()> {
        let key = self.fate.rng.below(self.setup.keys.len() as u64) as u8;
        self.get_key(store, c, key)
    }

    fn get_key(&mut self, store: &Store, c: u8, key: u8) -> Result<()> {
        self.fate.recorder.hear(Some(c), Heard::CallGet(key));
        let found = &mut self.found;
        let got = on_behalf_of(c, || store.get(&self.setup.keys[usize::from(key)], found));
        if got.is_ok() {
            // A value that is not a version of anything is one that the mirror does not know.
            let version = value::version(found).unwrap_or(u64::MAX);
            self.fate.recorder.hear(Some(c), Heard::Answered(version));
        }
        self.answered(c, got.map(drop))
    }

    /// A client reads all keys.
    fn read_all(&mut self, store: &Store) {
        for key in 0..self.setup.keys.len() as u8 {
            if self.clients[0] == Client::Idle && self.get_key(store, 0, key).is_err() {
                return;
            }
        }
    }
}
