//! Episodes: the seeded life of a store from its first leaf on, with clients, background work, ends
//! of every kind and openings.
//!
//! Three clients share one thread, each with one call at a time: a put or delete returns when its
//! record is in the buffer, and the rest of the call is its `sync`; a scan fetches a few records at
//! a time. Checkpoints run on a thread of their own, in turns with that one (`drive`). So the seed
//! decides the order of everything.

use std::ops::ControlFlow;
use std::sync::Arc;

use treering_engine::{Kv, Lsn, PageId, Progress, Result, Store, Task};

use super::drive::Ear;
use super::judge::{Entry, Heard, Judge, Refusal};
use super::setup::{KEYS, SLOTS, Setup, bound, key, key_of, value_of};
use crate::conformance::behaviour::KEPT;
use crate::conformance::led::{Leads as _, Recorded, told_again};
use crate::conformance::mortal::{End, Mortal};
use crate::conformance::record::{self, Recorder, TreeUse, on_behalf_of};
use crate::conformance::refused::Tally;
use treering_oracle::deadline::Deadline;
use treering_oracle::random::Random;
use treering_oracle::value;

/// Clients of an episode.
pub const CLIENTS: u8 = 3;
/// The number of openings.
const LIVES: u64 = 6;
/// The most steps between an opening and the next end.
const STEPS: u64 = 120;

/// Receives what was recorded, life by life. An error ends the episode.
type Hear<'a> = dyn FnMut(Vec<Entry>) -> std::result::Result<bool, Box<Refusal>> + 'a;

/// The activity of a client.
#[derive(Clone, Debug, Default)]
enum Client {
    #[default]
    Idle,
    /// Its write is in the log buffer at this LSN.
    Waits(Lsn),
    /// Its scan goes on from this bound, and has read these records.
    Scans {
        back: bool,
        at: u8,
        rows: Vec<(u8, u64)>,
    },
}

/// A store and its clients.
struct Episode<'a> {
    setup: &'a Setup,
    life: Mortal,
    ear: Arc<Ear>,
    clients: [Client; CLIENTS as usize],
    losses: Option<u64>,
    /// This life reads and writes the first so many keys.
    keys: u8,
}

/// Runs the episode of a seed and judges it. If `losses` is given, the device loses one in so many
/// writes.
///
/// # Errors
/// The engine's own, at the first opening and when a device is read. No error is expected there.
pub fn run_episode(
    setup: &Setup,
    seed: u64,
    losses: Option<u64>,
) -> Result<(Tally, Option<Box<Refusal>>)> {
    run_until(setup, (seed, losses), &Deadline::never())
}

/// Like [`run_episode`], but ends when the time is up.
pub(super) fn run_until(
    setup: &Setup,
    of: (u64, Option<u64>),
    until: &Deadline,
) -> Result<(Tally, Option<Box<Refusal>>)> {
    told_again(judged(setup, of, until, None)?, || record(setup, of))
}

/// The judge of the episode of a seed, with the situations of all steps.
pub(super) fn record(
    setup: &Setup,
    of: (u64, Option<u64>),
) -> Result<(Judge<'_>, Option<Box<Refusal>>)> {
    judged(setup, of, &Deadline::never(), Some(KEPT))
}

/// All steps of an episode as a behaviour of the spec. `None` if there is no step.
///
/// # Errors
/// As [`run_episode`].
pub fn recorded(setup: &Setup, of: (u64, Option<u64>)) -> Result<Option<Recorded>> {
    let (judge, _) = judged(setup, of, &Deadline::never(), Some(usize::MAX))?;
    Ok(judge.recorded())
}

fn judged<'a>(
    setup: &'a Setup,
    (seed, losses): (u64, Option<u64>),
    until: &Deadline,
    steps: Option<usize>,
) -> Result<(Judge<'a>, Option<Box<Refusal>>)> {
    let mut rng = Random::new(seed);
    let device = setup.device();
    let recorder = Arc::new(Recorder::of_tree());
    let ear = Ear::new(recorder.clone(), device.clone(), rng.word(), losses);
    let mut episode = Episode {
        setup,
        life: Mortal::new(rng, device, recorder),
        ear,
        clients: Default::default(),
        losses,
        keys: KEYS,
    };
    let mut judge = Judge::new(CLIENTS, setup);
    if let Some(steps) = steps {
        judge.note(steps);
    }
    let refusal = episode.run(until, &mut |entries| {
        judge.hear(entries).map(|()| judge.is_over())
    })?;
    Ok((judge, refusal))
}

fn said(heard: record::Heard, client: Option<u8>) -> Entry {
    Entry {
        client,
        heard: Heard::Said(heard),
    }
}

impl Episode<'_> {
    fn run(&mut self, until: &Deadline, hear: &mut Hear<'_>) -> Result<Option<Box<Refusal>>> {
        // The store at rest is one whose process has ended.
        let found = Arc::new(self.setup.look(&self.life.device)?);
        let mut entries = vec![Entry {
            client: None,
            heard: Heard::Restarted(found),
        }];
        for life in 0..LIVES {
            let end = match self.open(life > 0) {
                Ok(store) => self.live(store, until),
                Err(end) => end,
            };
            let damage = matches!(end, End::Failed);
            let heard = self.life.recorder.take().into_iter();
            entries.extend(heard.map(|entry| said(entry.heard, entry.client)));
            if !damage {
                entries.push(self.bury(end)?);
            }
            match hear(std::mem::take(&mut entries)) {
                Err(refusal) => return Ok(Some(refusal)),
                Ok(over) if over || damage || until.is_over() => return Ok(None),
                Ok(_) => {}
            }
        }
        Ok(None)
    }

    fn hear(&self, client: Option<u8>, what: TreeUse) {
        self.life.recorder.hear(client, record::Heard::Tree(what));
    }

    /// Opens the store. That may fail, or a life may end meanwhile.
    fn open(&mut self, again: bool) -> std::result::Result<Store, End> {
        let (recorder, device) = (self.life.recorder.clone(), self.life.device.clone());
        self.ear = Ear::new(recorder, device, self.life.rng.word(), self.losses);
        self.hear(None, TreeUse::Opens);
        if again && self.life.rng.one_in(3) {
            self.life.set_fate(90, 60);
        }
        let opened = self.setup.open(self.ear.drive.clone(), self.ear.clone());
        let opened = self.life.opened(opened)?;
        opened.map_err(|e| self.fails(&e))
    }

    fn fails(&self, error: &treering_engine::Error) -> End {
        self.hear(None, TreeUse::Damaged(error.to_string()));
        End::Failed
    }

    /// Runs a life from the opening to its end.
    fn live(&mut self, store: Store, until: &Deadline) -> End {
        store.abandon_on_drop();
        self.life.set_fate(500, 300);
        let steps = [STEPS / 6, STEPS][self.life.rng.below(2) as usize];
        // With few keys, leaves become empty, and are merged.
        self.keys = [4, 10, KEYS, KEYS][self.life.rng.below(4) as usize];
        // Some lives add more than they delete.
        let grows = !self.life.rng.one_in(3);
        for _ in 0..steps {
            if until.is_over() {
                break;
            }
            let done = match self.life.rng.below(12) {
                0 => self.checkpoint(&store, grows),
                _ => self.step(&store, grows),
            };
            if let Some(end) = self.life.ended() {
                return end;
            }
            if let Err(e) = done {
                return self.fails(&e);
            }
        }
        let ended = self.life.end(store);
        ended.unwrap_or_else(|e| self.fails(&e))
    }

    /// Replaces the device with what the end of a life has left, and records that.
    fn bury(&mut self, end: End) -> Result<Entry> {
        self.clients = Default::default();
        let power = self.life.bury(end);
        let found = Arc::new(self.setup.look(&self.life.device)?);
        Ok(Entry {
            client: None,
            heard: match power {
                true => Heard::Crashed(found),
                false => Heard::Restarted(found),
            },
        })
    }

    /// A checkpoint, or some steps of one, in turns with everything else.
    fn checkpoint(&mut self, store: &Store, grows: bool) -> Result<()> {
        let whole = !self.life.rng.one_in(4);
        let pumps = 1 + self.life.rng.below(3);
        let ear = self.ear.clone();
        let mut failed = None;
        let done = ear.in_turns(
            || {
                for n in 0.. {
                    let more = store.pump(Task::Checkpoint)? == Progress::More;
                    if !more || (!whole && n == pumps) {
                        break;
                    }
                }
                Ok(())
            },
            || {
                for _ in 0..self.life.rng.below(6) {
                    if failed.is_none() && !self.life.device.power_is_cut() {
                        failed = self.step(store, grows).err();
                    }
                }
            },
        );
        match failed {
            Some(e) => Err(e),
            None => done,
        }
    }

    /// One random step.
    fn step(&mut self, store: &Store, grows: bool) -> Result<()> {
        match self.life.rng.below(24) {
            0..=3 => {
                let page = PageId(self.life.rng.below(SLOTS as u64 / 2));
                store.write_back_page(page).map(drop)
            }
            4 => store.pump(Task::FlushLog).map(drop),
            5 => store.pump(Task::Merge).map(drop),
            // Frees the pages that were merged away.
            6 => store.pump(Task::WriteBack).map(drop),
            _ => {
                let c = self.life.rng.below(u64::from(CLIENTS)) as u8;
                self.client_step(store, c, grows)
            }
        }
    }

    fn client_step(&mut self, store: &Store, c: u8, grows: bool) -> Result<()> {
        let k = 1 + self.life.rng.below(self.keys.into()) as u8;
        match std::mem::take(&mut self.clients[usize::from(c)]) {
            Client::Idle => match self.life.rng.below(16) {
                0..=2 => self.get(store, c, k),
                3 => {
                    self.scan(c);
                    Ok(())
                }
                n if n < if grows { 7 } else { 12 } => self.delete(store, c, k),
                _ => self.put(store, c, k),
            },
            Client::Waits(lsn) if self.life.rng.one_in(2) => on_behalf_of(c, || store.sync(lsn)),
            Client::Scans { back, at, rows } => self.fetch(store, c, (back, at, rows)),
            waits @ Client::Waits(_) => {
                self.clients[usize::from(c)] = waits;
                Ok(())
            }
        }
    }

    fn put(&mut self, store: &Store, c: u8, k: u8) -> Result<()> {
        let version = self.life.recorder.call_write(c, k, false);
        let mut bytes = Vec::new();
        value_of(&mut bytes, version);
        let lsn = on_behalf_of(c, || store.put(&key(k), &bytes))?;
        self.clients[usize::from(c)] = Client::Waits(lsn);
        Ok(())
    }

    /// Deletes a key, if it exists: the engine logs nothing otherwise.
    fn delete(&mut self, store: &Store, c: u8, k: u8) -> Result<()> {
        if !store.get(&key(k), &mut Vec::new())? {
            return Ok(());
        }
        self.life.recorder.call_write(c, k, true);
        let lsn = on_behalf_of(c, || store.delete(&key(k)))?;
        self.clients[usize::from(c)] = Client::Waits(lsn);
        Ok(())
    }

    fn get(&mut self, store: &Store, c: u8, k: u8) -> Result<()> {
        self.life.recorder.hear(Some(c), record::Heard::CallGet(k));
        let mut bytes = Vec::new();
        let found = on_behalf_of(c, || store.get(&key(k), &mut bytes))?;
        let version = match found {
            true => value::version(&bytes).unwrap_or(u64::MAX),
            false => 0,
        };
        self.life
            .recorder
            .hear(Some(c), record::Heard::Answered(version));
        Ok(())
    }

    /// A client begins a scan of all keys.
    fn scan(&mut self, c: u8) {
        let back = self.life.rng.one_in(2);
        self.hear(Some(c), TreeUse::Scans(back));
        self.clients[usize::from(c)] = Client::Scans {
            back,
            at: if back { KEYS + 1 } else { 1 },
            rows: Vec::new(),
        };
    }

    /// A client's scan fetches a few records.
    fn fetch(&mut self, store: &Store, c: u8, of: (bool, u8, Vec<(u8, u64)>)) -> Result<()> {
        let (back, mut at, mut rows) = of;
        let most = [1, 2, 5, 99][self.life.rng.below(4) as usize];
        self.hear(Some(c), TreeUse::Fetches(most as u64));
        let mut fetched = Vec::new();
        let mut visit = |key: &[u8], bytes: &[u8]| {
            let version = value::version(bytes).unwrap_or(u64::MAX);
            fetched.push((key_of(key), version));
            match fetched.len() < most {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        };
        on_behalf_of(c, || match back {
            true => {
                let before = (at <= KEYS).then(|| key(at));
                store.scan_back(before.as_deref(), &mut visit)
            }
            false => store.scan(&bound(at), &mut visit),
        })?;
        let ended = fetched.len() < most;
        if let Some((last, _)) = fetched.last() {
            at = if back { *last } else { last + 1 };
        }
        rows.extend(fetched);
        // Behind the last key, or before the first, nothing is left to be looked for.
        if ended || at == if back { 1 } else { KEYS + 1 } {
            rows.sort_unstable();
            self.hear(Some(c), TreeUse::Scanned(rows));
            return Ok(());
        }
        self.clients[usize::from(c)] = Client::Scans { back, at, rows };
        Ok(())
    }
}
