//! Episodes of a store whose pages on the device are judged, by [`super::shadow`] and
//! [`super::cow`]: its seeded life, with clients, background work, failures, crashes and recoveries.
//!
//! Three clients share one thread, each with one call at a time. A put returns when its record is
//! in the buffer, and the rest of the call is its `sync`. So the seed decides the order of
//! everything, and no flush overlaps a write.
//!
//! Half of the episodes have many brief lives: a few steps, and something that fails at one of the
//! first requests.

use std::sync::Arc;

use treering_engine::device::CrashDevice;
use treering_engine::{Kv, Lsn, PageId, Result, Store, Task};

use super::fate::{End, Fate, Opened};
use super::record::{self, Recorder, on_behalf_of};
use treering_oracle::deadline::Deadline;
use treering_oracle::random::Random;
use treering_oracle::value;

/// Clients of an episode.
pub const CLIENTS: u8 = 3;
/// The number of openings. Some episodes have many lives, most of them brief.
const LIVES: [u64; 2] = [5, 20];
/// The number of steps between an opening and the next end.
const STEPS: u64 = 100;
/// The same without checkpoints: a copy-on-write store then runs out of slots.
const STEPS_ALONE: u64 = 300;

/// A recorded event. `Found` is what is read off a device.
#[derive(Clone, Debug, PartialEq)]
pub enum Heard<Found> {
    /// An event of the engine or of a client.
    Said(record::Heard),
    /// The power failed, and this is what remained.
    Crashed(Arc<Found>),
    /// The process was ended, and this is what the next process reads.
    Restarted(Arc<Found>),
}

impl<Found> Heard<Found> {
    /// The kind of the event.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Heard::Said(heard) => heard.kind(),
            Heard::Crashed(_) => "Crashed",
            Heard::Restarted(_) => "Restarted",
        }
    }
}

/// A recorded event and its client.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry<Found> {
    /// The client.
    pub client: Option<u8>,
    /// The event.
    pub heard: Heard<Found>,
}

/// A store at rest whose pages are judged, and its keys in the spec.
pub(super) trait PagedStore {
    /// What is read off a device.
    type Found;

    /// Whether the first opening is judged, as one after the end of a process.
    const FROM_REST: bool;

    /// A recorder of the events that are judged.
    fn recorder() -> Recorder;

    /// A device that holds the store durably.
    fn device(&self) -> Arc<CrashDevice>;

    /// Opens the store on `device`, recorded by `recorder`.
    ///
    /// # Errors
    /// The engine's own.
    fn open(&self, device: &Arc<CrashDevice>, recorder: &Arc<Recorder>) -> Result<Store>;

    /// The content of a device, and the log as recovery reads it from a copy.
    ///
    /// # Errors
    /// The device fails.
    fn look(&self, device: &CrashDevice) -> Result<Self::Found>;

    /// The pages that are written.
    fn pages(&self) -> Vec<PageId>;

    /// A key of the spec on page `page`.
    fn key_on(&self, page: usize, rng: &mut Random) -> u8;

    /// All keys of the spec.
    fn keys(&self) -> Vec<u8>;

    /// The bytes of a key of the spec.
    fn key(&self, key_of_spec: u8) -> Vec<u8>;

    /// Fills `bytes` with version `version`.
    fn fill(&self, bytes: &mut Vec<u8>, version: u64);
}

/// Receives what was recorded, life by life. An error ends the episode.
pub(super) type Hear<'a, Found, Refusal> =
    dyn FnMut(Vec<Entry<Found>>) -> std::result::Result<(), Box<Refusal>> + 'a;

/// Runs the episode of a seed, and returns the event that `hear` refused.
///
/// # Errors
/// The engine's own, at the first opening and when a device is read. No error is expected there.
pub(super) fn run<S: PagedStore, Refusal>(
    setup: &S,
    seed: u64,
    until: &Deadline,
    hear: &mut Hear<'_, S::Found, Refusal>,
) -> Result<Option<Box<Refusal>>> {
    let mut fate = Fate::new(seed, setup.device(), Arc::new(S::recorder()));
    fate.kills = true;
    let episode = Episode {
        setup,
        pages: setup.pages(),
        fate,
        clients: [Client::Idle; CLIENTS as usize],
        brief: false,
        bytes: Vec::new(),
        found: Vec::new(),
    };
    episode.run(until, hear)
}

/// The activity of a client.
#[derive(Clone, Copy, PartialEq)]
enum Client {
    Idle,
    /// Its write is in the log buffer at this LSN.
    Waits(Lsn),
}

/// A store and its clients.
struct Episode<'a, S> {
    setup: &'a S,
    pages: Vec<PageId>,
    fate: Fate,
    clients: [Client; CLIENTS as usize],
    /// Whether most lives are brief: few steps, each of which something may cut short.
    brief: bool,
    bytes: Vec<u8>,
    found: Vec<u8>,
}

impl<S: PagedStore> Episode<'_, S> {
    fn run<Refusal>(
        mut self,
        until: &Deadline,
        hear: &mut Hear<'_, S::Found, Refusal>,
    ) -> Result<Option<Box<Refusal>>> {
        if S::FROM_REST {
            let found = Arc::new(self.setup.look(&self.fate.device)?);
            let rest = Entry {
                client: None,
                heard: Heard::Restarted(found),
            };
            if let Err(refusal) = hear(vec![rest]) {
                return Ok(Some(refusal));
            }
        }
        let store = self.setup.open(&self.fate.device, &self.fate.recorder)?;
        if !S::FROM_REST {
            drop(self.fate.recorder.take());
        }
        let mut opened = Opened::Up(Box::new(store));
        self.brief = self.fate.rng.one_in(2);
        for _ in 0..LIVES[usize::from(self.brief)] {
            let end = match opened {
                Opened::Up(store) => self.live(&store, until),
                Opened::Not(end) => end,
            };
            let mut entries = self.heard();
            entries.push(self.bury(end)?);
            if let Err(refusal) = hear(entries) {
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
        Ok(hear(self.heard()).err())
    }

    fn heard(&self) -> Vec<Entry<S::Found>> {
        let entries = self.fate.recorder.take().into_iter();
        let said = |entry: record::Entry| Entry {
            client: entry.client,
            heard: Heard::Said(entry.heard),
        };
        entries.map(said).collect()
    }

    /// Runs a life from the opening to its end.
    fn live(&mut self, store: &Store, until: &Deadline) -> End {
        let brief = self.brief && !self.fate.rng.one_in(4);
        if !brief && self.fate.rng.one_in(4) && self.read_all(store).is_err() {
            return self.fate.end();
        }
        match brief {
            true => self.set_brief_fate(),
            false => self.set_fate(),
        }
        // Few pages, so that each is written often, or all, so that they are evicted and loaded.
        let pages = [3, self.pages.len()][self.fate.rng.below(2) as usize];
        // Without checkpoints redo has more pages to handle than there are frames.
        let checkpoints = !self.fate.rng.one_in(3);
        let steps = match (brief, checkpoints) {
            (true, _) => self.fate.rng.below(12),
            (false, true) => STEPS,
            (false, false) => STEPS_ALONE,
        };
        for _ in 0..steps {
            if until.is_over() {
                break;
            }
            let failed = self.step(store, pages as u64, checkpoints).is_err();
            if let Some(end) = self.fate.caught() {
                return end;
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

    /// Decides what will fail in a brief life: after a few events or requests, or nothing at first.
    fn set_brief_fate(&mut self) {
        let seed = self.fate.rng.word();
        match self.fate.rng.below(8) {
            0 => self.fate.device.fail_flush_in(self.fate.rng.below(3)),
            1 => self.fate.fail_write(8),
            2 => self.fate.cut_power(12),
            3 | 4 => self.fate.set_trap(24, seed),
            _ => {}
        }
    }

    /// Records what the end of a life has left.
    fn bury(&mut self, end: End) -> Result<Entry<S::Found>> {
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
        if self.brief && self.fate.rng.one_in(12) {
            self.fate.aim(10);
        }
        match self.fate.rng.below(24) {
            0 => store.pump(Task::WriteBack).map(drop),
            1 | 2 if checkpoints => store.pump(Task::Checkpoint).map(drop),
            3 if self.fate.rng.one_in(4) => store.pump(Task::FlushLog).map(drop),
            4 if checkpoints && self.fate.rng.one_in(8) => store.checkpoint().map(drop),
            5..=7 => {
                let page = self.fate.rng.below(pages) as usize;
                store.write_back_page(self.pages[page]).map(drop)
            }
            8 => {
                let page = self.fate.rng.below(pages) as usize;
                store.reload_page(self.pages[page]).map(drop)
            }
            _ => {
                let c = self.fate.rng.below(u64::from(CLIENTS)) as u8;
                self.client_step(store, c, pages)
            }
        }
    }

    fn client_step(&mut self, store: &Store, c: u8, pages: u64) -> Result<()> {
        let page = self.fate.rng.below(pages) as usize;
        let key = self.setup.key_on(page, &mut self.fate.rng);
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
            self.fate.recorder.hear(Some(c), record::Heard::Refused);
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
        self.fate
            .recorder
            .hear(Some(c), record::Heard::CallGet(key));
        let found = &mut self.found;
        let got = on_behalf_of(c, || store.get(&self.setup.key(key), found));
        if got.is_ok() {
            // A value that is not a version of anything is one that the mirror does not know.
            let version = value::version(found).unwrap_or(u64::MAX);
            self.fate
                .recorder
                .hear(Some(c), record::Heard::Answered(version));
        }
        self.answered(c, got.map(drop))
    }

    /// A client reads all keys.
    fn read_all(&mut self, store: &Store) -> Result<()> {
        let mut keys = self.setup.keys().into_iter();
        keys.try_for_each(|key| self.get(store, 0, key))
    }
}
