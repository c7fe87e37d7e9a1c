//! An episode: the seeded life of a store, with clients, background work, failures, crashes and
//! recoveries.
//!
//! Three clients share one thread, each with one call at a time. A put returns when its record is
//! in the buffer, and the rest of the call is its `sync`. So the seed decides the order of
//! everything, and no flush overlaps a write.

use std::sync::Arc;

use treering_engine::{Kv, Lsn, Result, Store, Task};

use super::judge::{Entry, Heard, Judge, Refusal};
use super::setup::Setup;
use crate::conformance::fate::{End, Fate, Opened};
use crate::conformance::record::{Heard as Said, Recorder, on_behalf_of};
use crate::conformance::refused::Tally;
use crate::mirror::wide::page_shadowing::PageShadowing;
use treering_oracle::deadline::Deadline;
use treering_oracle::value;

/// Clients of an episode.
pub const CLIENTS: u8 = 3;
/// The number of openings.
const LIVES: u64 = 5;
/// The number of steps between an opening and the next end.
const STEPS: u64 = 100;

/// The activity of a client.
#[derive(Clone, Copy, PartialEq)]
enum Client {
    Idle,
    /// Its write is in the log buffer at this LSN.
    Waits(Lsn),
}

/// A store and its clients.
struct Episode<'a> {
    setup: &'a Setup,
    fate: Fate,
    clients: [Client; CLIENTS as usize],
    bytes: Vec<u8>,
    found: Vec<u8>,
}

/// Runs the episode of a seed and judges it.
///
/// # Errors
/// The engine's own, at the first opening and when a device is read. No error is expected there.
pub fn run_episode(setup: &Setup, seed: u64) -> Result<(Tally, Option<Box<Refusal>>)> {
    run_until(setup, seed, &Deadline::never())
}

/// Like [`run_episode`], but ends when the time is up.
pub(super) fn run_until(
    setup: &Setup,
    seed: u64,
    until: &Deadline,
) -> Result<(Tally, Option<Box<Refusal>>)> {
    let mut judge = Judge::new(CLIENTS, setup);
    let refusal = episode(setup, seed).run(&mut judge, until)?;
    Ok((judge.tally().clone(), refusal))
}

/// The judge of the episode of a seed, with the situations of all steps.
pub(super) fn record(setup: &Setup, seed: u64) -> Result<(Judge<'_>, Option<Box<Refusal>>)> {
    let mut judge = Judge::new(CLIENTS, setup);
    judge.note_situations();
    let refusal = episode(setup, seed).run(&mut judge, &Deadline::never())?;
    Ok((judge, refusal))
}

fn episode(setup: &Setup, seed: u64) -> Episode<'_> {
    Episode {
        setup,
        fate: Fate::new(seed, setup.device(), Arc::new(Recorder::of_shadows())),
        clients: [Client::Idle; CLIENTS as usize],
        bytes: Vec::new(),
        found: Vec::new(),
    }
}

impl Episode<'_> {
    fn run(mut self, judge: &mut Judge<'_>, until: &Deadline) -> Result<Option<Box<Refusal>>> {
        let store = self.setup.open(&self.fate.device, &self.fate.recorder)?;
        // The first opening is not part of the episode.
        drop(self.fate.recorder.take());
        let mut opened = Opened::Up(Box::new(store));
        for _ in 0..LIVES {
            let end = match opened {
                Opened::Up(store) => self.live(&store, until),
                Opened::Not(end) => end,
            };
            let mut entries = self.heard();
            entries.push(self.bury(end)?);
            if let Err(refusal) = judge.hear(entries) {
                return Ok(Some(refusal));
            }
            if until.is_over() {
                return Ok(None);
            }
            opened = self.reopen();
        }
        if let Opened::Up(store) = &opened {
            // The recorder has whatever went wrong.
            drop(self.read_all(store));
        }
        Ok(judge.hear(self.heard()).err())
    }

    fn heard(&self) -> Vec<Entry> {
        let entries = self.fate.recorder.take().into_iter();
        let said = |entry: crate::conformance::Entry| Entry {
            client: entry.client,
            heard: Heard::Said(entry.heard),
        };
        entries.map(said).collect()
    }

    /// Runs a life from the opening to its end.
    fn live(&mut self, store: &Store, until: &Deadline) -> End {
        if self.fate.rng.one_in(4) && self.read_all(store).is_err() {
            return self.fate.end();
        }
        self.set_fate();
        // Few pages, so that each is written often, or all, so that they are evicted and loaded.
        let pages = [3, self.setup.pages.len()][self.fate.rng.below(2) as usize];
        // Without checkpoints redo has more pages to handle than there are frames.
        let checkpoints = !self.fate.rng.one_in(3);
        for _ in 0..STEPS {
            if until.is_over() {
                break;
            }
            let failed = self.step(store, pages as u64, checkpoints).is_err();
            if let Some(image) = self.fate.recorder.sprung() {
                return End::Power(image);
            }
            if failed || self.fate.device.power_is_cut() {
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
            0 | 1 => self.fate.device.fail_flush_in(self.fate.rng.below(30)),
            2 => self.fate.fail_write(60),
            3 => self.fate.cut_power(150),
            4..=6 => self.fate.set_trap(500, seed),
            _ => {}
        }
    }

    /// Records what the end of a life has left.
    fn bury(&mut self, end: End) -> Result<Entry> {
        self.clients = [Client::Idle; CLIENTS as usize];
        let power = self.fate.bury(end);
        let found = Arc::new(self.setup.look(&self.fate.device)?);
        let heard = if power {
            Heard::Crashed(found)
        } else {
            Heard::Restarted(found)
        };
        Ok(Entry {
            client: None,
            heard,
        })
    }

    /// Opens the store. That may fail, or the power may fail meanwhile.
    fn reopen(&mut self) -> Opened {
        let setup = self.setup;
        self.fate
            .reopen(100, |device, recorder| setup.open(device, recorder))
    }

    /// One random step.
    fn step(&mut self, store: &Store, pages: u64, checkpoints: bool) -> Result<()> {
        match self.fate.rng.below(24) {
            0 => store.pump(Task::WriteBack).map(drop),
            1 | 2 if checkpoints => store.pump(Task::Checkpoint).map(drop),
            3 if self.fate.rng.one_in(4) => store.pump(Task::FlushLog).map(drop),
            4 if checkpoints && self.fate.rng.one_in(8) => store.checkpoint().map(drop),
            5..=7 => {
                let page = self.fate.rng.below(pages) as usize;
                store.write_back_page(self.setup.pages[page].id).map(drop)
            }
            8 => {
                let page = self.fate.rng.below(pages) as usize;
                store.reload_page(self.setup.pages[page].id).map(drop)
            }
            _ => {
                let c = self.fate.rng.below(u64::from(CLIENTS)) as u8;
                self.client_step(store, c, pages)
            }
        }
    }

    fn client_step(&mut self, store: &Store, c: u8, pages: u64) -> Result<()> {
        let page = self.fate.rng.below(pages) as usize;
        let segment = self.fate.rng.below(self.setup.segments() as u64) as usize;
        // Half of the writes change the same record as the one before.
        let segment = if self.fate.rng.one_in(2) { 0 } else { segment };
        let key = PageShadowing::key_of(page, segment);
        match self.clients[usize::from(c)] {
            Client::Idle if self.fate.rng.one_in(4) => self.get(store, c, key),
            Client::Idle => self.put(store, c, key),
            Client::Waits(lsn) if self.fate.rng.one_in(2) => {
                let synced = on_behalf_of(c, || store.sync(lsn));
                self.answered(c, synced)
            }
            Client::Waits(_) => Ok(()),
        }
    }

    /// A client gets its answer, or an error instead.
    fn answered(&mut self, c: u8, answer: Result<()>) -> Result<()> {
        self.clients[usize::from(c)] = Client::Idle;
        if answer.is_err() {
            self.fate.recorder.hear(Some(c), Said::Refused);
        }
        answer
    }

    fn put(&mut self, store: &Store, c: u8, key: u8) -> Result<()> {
        let version = self.fate.recorder.call_write(c, key, false);
        self.setup.fill(&mut self.bytes, version);
        let put = on_behalf_of(c, || store.put(&self.setup.key(key), &self.bytes));
        match put {
            Ok(lsn) => {
                self.clients[usize::from(c)] = Client::Waits(lsn);
                Ok(())
            }
            Err(e) => self.answered(c, Err(e)),
        }
    }

    fn get(&mut self, store: &Store, c: u8, key: u8) -> Result<()> {
        self.fate.recorder.hear(Some(c), Said::CallGet(key));
        let found = &mut self.found;
        let got = on_behalf_of(c, || store.get(&self.setup.key(key), found));
        if got.is_ok() {
            // A value that is not a version of anything is one that the mirror does not know.
            let version = value::version(found).unwrap_or(u64::MAX);
            self.fate.recorder.hear(Some(c), Said::Answered(version));
        }
        self.answered(c, got.map(drop))
    }

    /// A client reads all keys.
    fn read_all(&mut self, store: &Store) -> Result<()> {
        for page in 0..self.setup.pages.len() {
            for segment in 0..self.setup.segments() {
                let key = PageShadowing::key_of(page, segment);
                self.get(store, 0, key)?;
            }
        }
        Ok(())
    }
}
