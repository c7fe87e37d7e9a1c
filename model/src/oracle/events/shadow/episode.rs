//! An episode: a seeded life of a store, with clients, background work, failures, crashes and what follows them.
//!
//! Three clients share one thread, each with one call at a time: a put returns when its record is in the buffer, and what is left of the call is
//! its `sync`. So everything happens in an order that the seed fixes, and no flush overlaps a write.

use std::sync::Arc;

use treering_engine::device::{CrashDevice, Image};
use treering_engine::{Kv, Lsn, Result, Store, Task};

use super::judge::{Entry, Heard, Judge, Refusal};
use super::setup::Setup;
use crate::mirror::wide::page_shadowing::PageShadowing;
use crate::oracle::events::record::{Heard as Said, Recorder, on_behalf_of};
use crate::oracle::events::refused::Tally;
use crate::oracle::random::Random;
use crate::oracle::value;

/// Clients of an episode.
pub const CLIENTS: u8 = 3;
/// Openings.
const LIVES: u64 = 5;
/// Steps between an opening and the next end.
const STEPS: u64 = 100;

/// What a client does.
#[derive(Clone, Copy, PartialEq)]
enum Client {
    Idle,
    /// Its write is in the log buffer at this LSN.
    Waits(Lsn),
}

/// How a life ends.
enum End {
    /// The power goes; the device keeps this.
    Power(Image),
    /// The process ends.
    Process,
}

/// What an opening led to.
enum Opened {
    Up(Box<Store>),
    Not(End),
}

/// A store and its clients.
struct Episode<'a> {
    setup: &'a Setup,
    rng: Random,
    device: Arc<CrashDevice>,
    recorder: Arc<Recorder>,
    clients: [Client; CLIENTS as usize],
    /// This device sees no restart, its power goes.
    doomed: bool,
    bytes: Vec<u8>,
    found: Vec<u8>,
}

/// Runs the episode of a seed and judges it.
///
/// # Errors
/// The engine's own, where none is to be expected: the first opening, and looking at a device.
pub fn run_episode(setup: &Setup, seed: u64) -> Result<(Tally, Option<Box<Refusal>>)> {
    let mut judge = Judge::new(CLIENTS, setup);
    let refusal = episode(setup, seed).run(&mut judge)?;
    Ok((judge.tally().clone(), refusal))
}

/// The judge of the episode of a seed, with the situations of all steps.
pub(super) fn record(setup: &Setup, seed: u64) -> Result<(Judge<'_>, Option<Box<Refusal>>)> {
    let mut judge = Judge::new(CLIENTS, setup);
    judge.note_situations();
    let refusal = episode(setup, seed).run(&mut judge)?;
    Ok((judge, refusal))
}

fn episode(setup: &Setup, seed: u64) -> Episode<'_> {
    Episode {
        setup,
        rng: Random::new(seed),
        device: setup.device(),
        recorder: Arc::new(Recorder::of_shadows()),
        clients: [Client::Idle; CLIENTS as usize],
        doomed: false,
        bytes: Vec::new(),
        found: Vec::new(),
    }
}

impl Episode<'_> {
    fn run(mut self, judge: &mut Judge<'_>) -> Result<Option<Box<Refusal>>> {
        let store = self.setup.open(&self.device, &self.recorder)?;
        // What the first opening does is not the episode's.
        drop(self.recorder.take());
        let mut opened = Opened::Up(Box::new(store));
        for _ in 0..LIVES {
            let end = match opened {
                Opened::Up(store) => self.live(&store),
                Opened::Not(end) => end,
            };
            let mut entries = self.heard();
            entries.push(self.bury(end)?);
            if let Err(refusal) = judge.hear(entries) {
                return Ok(Some(refusal));
            }
            opened = self.reopen();
        }
        if let Opened::Up(store) = &opened {
            // What went wrong is heard.
            drop(self.read_all(store));
        }
        Ok(judge.hear(self.heard()).err())
    }

    fn heard(&self) -> Vec<Entry> {
        let entries = self.recorder.take().into_iter();
        let said = |entry: crate::oracle::events::Entry| Entry {
            client: entry.client,
            heard: Heard::Said(entry.heard),
        };
        entries.map(said).collect()
    }

    /// From an opening to the end.
    fn live(&mut self, store: &Store) -> End {
        if self.rng.one_in(4) && self.read_all(store).is_err() {
            return self.end();
        }
        self.set_fate();
        // Few pages, so that each is written often; or all, so that they come and go.
        let pages = [3, self.setup.pages.len()][self.rng.below(2) as usize];
        // Without checkpoints redo has more pages to do than there are frames.
        let checkpoints = !self.rng.one_in(3);
        for _ in 0..STEPS {
            let failed = self.step(store, pages as u64, checkpoints).is_err();
            if let Some(image) = self.recorder.sprung() {
                return End::Power(image);
            }
            if failed || self.device.power_is_cut() {
                break;
            }
        }
        self.recorder.clear_trap();
        self.end()
    }

    /// What will go wrong in this life, if anything.
    fn set_fate(&mut self) {
        let seed = self.rng.word();
        match self.rng.below(8) {
            0 | 1 => self.device.fail_flush_in(self.rng.below(30)),
            2 => self.fail_write(60),
            3 => self.cut_power(150),
            4..=6 => {
                let events = self.rng.below(500);
                (self.recorder).set_trap(events, self.device.clone(), seed);
            }
            _ => {}
        }
    }

    /// What a failed write was to write is not read back and may yet be there after the next power cut: so that comes next.
    fn fail_write(&mut self, writes: u64) {
        self.device.fail_write_in(self.rng.below(writes));
        self.doomed = true;
    }

    fn cut_power(&mut self, requests: u64) {
        self.device.cut_power_in(self.rng.below(requests));
        self.doomed = true;
    }

    fn end(&mut self) -> End {
        if self.doomed || self.rng.one_in(2) {
            return End::Power(self.device.crash_seeded(self.rng.word()));
        }
        End::Process
    }

    /// Tells what is left.
    fn bury(&mut self, end: End) -> Result<Entry> {
        self.clients = [Client::Idle; CLIENTS as usize];
        let power = matches!(end, End::Power(_));
        if let End::Power(image) = end {
            self.device = Arc::new(CrashDevice::from_image(image));
            self.doomed = false;
        }
        let found = Arc::new(self.setup.look(&self.device)?);
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

    /// Opens the store; it may fail, or the power go on the way.
    fn reopen(&mut self) -> Opened {
        let seed = self.rng.word();
        match self.rng.below(12) {
            0 => self.device.fail_flush_in(self.rng.below(8)),
            1 => self.fail_write(20),
            2 => self.cut_power(60),
            3..=5 => {
                let events = self.rng.below(100);
                (self.recorder).set_trap(events, self.device.clone(), seed);
            }
            _ => {}
        }
        let opened = self.setup.open(&self.device, &self.recorder);
        if let Some(image) = self.recorder.sprung() {
            return Opened::Not(End::Power(image));
        }
        self.recorder.clear_trap();
        match opened {
            Ok(store) => Opened::Up(Box::new(store)),
            Err(_) => Opened::Not(self.end()),
        }
    }

    /// One thing that happens.
    fn step(&mut self, store: &Store, pages: u64, checkpoints: bool) -> Result<()> {
        match self.rng.below(24) {
            0 => store.pump(Task::WriteBack).map(drop),
            1 | 2 if checkpoints => store.pump(Task::Checkpoint).map(drop),
            3 if self.rng.one_in(4) => store.pump(Task::FlushLog).map(drop),
            4 if checkpoints && self.rng.one_in(8) => store.checkpoint().map(drop),
            5..=7 => {
                let page = self.rng.below(pages) as usize;
                store.write_back_page(self.setup.pages[page].id).map(drop)
            }
            8 => {
                let page = self.rng.below(pages) as usize;
                store.reload_page(self.setup.pages[page].id).map(drop)
            }
            _ => {
                let c = self.rng.below(u64::from(CLIENTS)) as u8;
                self.client_step(store, c, pages)
            }
        }
    }

    fn client_step(&mut self, store: &Store, c: u8, pages: u64) -> Result<()> {
        let page = self.rng.below(pages) as usize;
        let segment = self.rng.below(self.setup.segments() as u64) as usize;
        // Half of the writes change the same record as the one before.
        let segment = if self.rng.one_in(2) { 0 } else { segment };
        let key = PageShadowing::key_of(page, segment);
        match self.clients[usize::from(c)] {
            Client::Idle if self.rng.one_in(4) => self.get(store, c, key),
            Client::Idle => self.put(store, c, key),
            Client::Waits(lsn) if self.rng.one_in(2) => {
                let synced = on_behalf_of(c, || store.sync(lsn));
                self.answered(c, synced)
            }
            Client::Waits(_) => Ok(()),
        }
    }

    /// A client has its answer, or the error that is said instead of one.
    fn answered(&mut self, c: u8, answer: Result<()>) -> Result<()> {
        self.clients[usize::from(c)] = Client::Idle;
        if answer.is_err() {
            self.recorder.hear(Some(c), Said::Refused);
        }
        answer
    }

    fn put(&mut self, store: &Store, c: u8, key: u8) -> Result<()> {
        let version = self.recorder.call_write(c, key, false);
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
        self.recorder.hear(Some(c), Said::CallGet(key));
        let found = &mut self.found;
        let got = on_behalf_of(c, || store.get(&self.setup.key(key), found));
        if got.is_ok() {
            // What is no version of anything is none that the mirror knows.
            let version = value::version(found).unwrap_or(u64::MAX);
            self.recorder.hear(Some(c), Said::Answered(version));
        }
        self.answered(c, got.map(drop))
    }

    /// A client reads all that there is.
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
