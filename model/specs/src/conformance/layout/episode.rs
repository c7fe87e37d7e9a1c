//! Episodes: the seeded life of a store from its first leaf on, with clients, background work, ends
//! of every kind, and openings with options that allow dense leaves or do not.
//!
//! Three clients share one thread, each with one call at a time: a put or delete returns when its
//! record is in the buffer, and the rest of the call is its `sync`. So the seed decides the order
//! of everything.

use std::ops::ControlFlow;
use std::sync::Arc;

use treering_engine::device::{CrashDevice, Image};
use treering_engine::{Kv, Lsn, PageId, Result, Store, Task};

use super::judge::{Entry, Heard, Judge, Refusal};
use super::setup::{Leaves, SLOTS, Setup, digest, value_of};
use crate::conformance::record::{self, LeafUse, Recorder, on_behalf_of};
use crate::conformance::refused::Tally;
use treering_oracle::deadline::Deadline;
use treering_oracle::random::Random;

/// Clients of an episode.
pub const CLIENTS: u8 = 3;
/// The number of openings.
const LIVES: u64 = 6;
/// The most steps between an opening and the next end.
const STEPS: u64 = 150;

/// Receives what was recorded, life by life, and returns whether the episode is over. An error ends
/// it, too.
type Hear<'a> = dyn FnMut(Vec<Entry>) -> std::result::Result<bool, Box<Refusal>> + 'a;

/// The activity of a client.
#[derive(Clone, Copy, Debug, Default)]
enum Client {
    #[default]
    Idle,
    /// Its write is in the log buffer at this LSN.
    Waits(Lsn),
}

/// How a life ends.
enum End {
    /// A power failure, after which the device holds this.
    Power(Image),
    /// The process is killed in the middle of a request, and the device holds this.
    Killed(Image),
    /// The process ends between two requests.
    Process,
    /// A call fails, which it should not.
    Failure,
}

/// What a life does.
#[derive(Clone, Copy, Debug)]
struct Habits {
    /// The keys that it uses, by their numbers: a range.
    keys: (u8, u8),
    /// The usual length of values.
    len: usize,
    /// One write in so many has another length.
    others: u64,
    /// Of 16 steps of an idle client, so many are deletes.
    deletes: u64,
}

/// A store and its clients.
struct Episode<'a> {
    setup: &'a Setup,
    rng: Random,
    device: Arc<CrashDevice>,
    recorder: Arc<Recorder>,
    clients: [Client; CLIENTS as usize],
    habits: Habits,
    /// The usual length of values, and the number of keys that are used.
    usual: (usize, u8),
    /// Whether the trap that is set kills the process.
    kills: bool,
}

/// Runs the episode of a seed and judges it.
///
/// # Errors
/// The engine's own, when a device is read. No error is expected there.
pub fn run_episode(setup: &Setup, seed: u64) -> Result<(Tally, Option<Box<Refusal>>)> {
    run_until(setup, seed, &Deadline::never())
}

/// Like [`run_episode`], but ends when the time is up.
pub(super) fn run_until(
    setup: &Setup,
    seed: u64,
    until: &Deadline,
) -> Result<(Tally, Option<Box<Refusal>>)> {
    let (judge, refusal) = judged(setup, seed, until, false)?;
    Ok((judge.tally().clone(), refusal))
}

/// The judge of the episode of a seed, with the situations of all steps.
pub(super) fn record(setup: &Setup, seed: u64) -> Result<(Judge<'_>, Option<Box<Refusal>>)> {
    judged(setup, seed, &Deadline::never(), true)
}

fn judged<'a>(
    setup: &'a Setup,
    seed: u64,
    until: &Deadline,
    situations: bool,
) -> Result<(Judge<'a>, Option<Box<Refusal>>)> {
    let mut episode = Episode {
        setup,
        rng: Random::new(seed),
        device: setup.device(),
        recorder: Arc::new(Recorder::of_layouts()),
        clients: Default::default(),
        habits: Habits {
            keys: (0, setup.keys.len() as u8),
            len: setup.lengths[0],
            others: 8,
            deletes: 2,
        },
        usual: (setup.lengths[0], setup.keys.len() as u8),
        kills: false,
    };
    episode.choose_usual();
    let mut judge = Judge::new(CLIENTS, setup);
    if situations {
        judge.note_situations();
    }
    let refusal = episode.run(until, &mut |entries| {
        judge.hear(entries).map(|()| judge.is_over())
    })?;
    Ok((judge, refusal))
}

impl Episode<'_> {
    fn run(&mut self, until: &Deadline, hear: &mut Hear<'_>) -> Result<Option<Box<Refusal>>> {
        // The store at rest is one whose process has ended.
        let found = Arc::new(self.setup.look(&self.device)?);
        let mut entries = vec![Entry {
            client: None,
            heard: Heard::Restarted(found),
        }];
        for life in 0..LIVES {
            let end = match self.open(life > 0) {
                Ok(store) => self.live(store, life == 0, until),
                Err(end) => end,
            };
            let heard = self.recorder.take().into_iter();
            entries.extend(heard.map(|entry| Entry {
                client: entry.client,
                heard: Heard::Said(entry.heard),
            }));
            let failure = matches!(end, End::Failure);
            if !failure {
                entries.push(self.bury(end)?);
            }
            match hear(std::mem::take(&mut entries)) {
                Err(refusal) => return Ok(Some(refusal)),
                Ok(over) if over || failure || until.is_over() => return Ok(None),
                Ok(_) => {}
            }
        }
        Ok(None)
    }

    fn hear(&self, client: Option<u8>, what: LeafUse) {
        self.recorder.hear(client, record::Heard::Leaf(what));
    }

    /// Decides when this life ends, unless it ends by itself: within so many events, or requests.
    fn set_fate(&mut self, events: u64, requests: u64) {
        let (n, seed) = (self.rng.below(events), self.rng.word());
        self.kills = false;
        match self.rng.below(8) {
            0..=2 => self.recorder.set_trap(n, self.device.clone(), seed),
            3 | 4 => {
                self.kills = true;
                self.recorder.set_kill(n, self.device.clone());
            }
            5 => self.device.cut_power_in(self.rng.below(requests)),
            _ => {}
        }
    }

    /// What has ended this life, if anything has.
    fn ended(&mut self) -> Option<End> {
        if let Some(image) = self.recorder.sprung() {
            return Some(match self.kills {
                true => End::Killed(image),
                false => End::Power(image),
            });
        }
        if !self.device.power_is_cut() {
            return None;
        }
        self.recorder.clear_trap();
        let image = self.recorder.cut_power(&self.device, self.rng.word());
        Some(End::Power(image))
    }

    /// Opens the store, with one or the other options. A life may end meanwhile.
    fn open(&mut self, again: bool) -> std::result::Result<Store, End> {
        let dense = !self.rng.one_in(4);
        self.hear(None, LeafUse::Opens(dense));
        if again && self.rng.one_in(3) {
            self.set_fate(120, 60);
        }
        let opened = self.setup.open(&self.device, &self.recorder, dense);
        if let Some(end) = self.ended() {
            if let Ok(store) = opened {
                store.abandon();
            }
            return Err(end);
        }
        self.recorder.clear_trap();
        self.device.cut_power_in(u64::MAX);
        opened.map_err(|e| self.fails(&e))
    }

    fn fails(&self, error: &treering_engine::Error) -> End {
        self.hear(None, LeafUse::Failed(error.to_string()));
        End::Failure
    }

    /// Chooses what this life does.
    fn choose_habits(&mut self, len: usize) {
        let (_, all) = self.usual;
        self.habits = Habits {
            // Keys in a row make a leaf dense; all of them are in several leaves.
            keys: [(0, all), (5, 19), (5, 19), (0, 17), (5, 17), (all - 7, all)]
                [self.rng.below(6) as usize],
            len,
            others: [3, 20, 100, 1000][self.rng.below(4) as usize],
            deletes: [0, 1, 3, 10][self.rng.below(4) as usize],
        };
    }

    /// Chooses what this episode does. Without its last keys, the leaf of `names` that may become
    /// dense is the last one.
    fn choose_usual(&mut self) {
        let all = self.setup.keys.len() as u8;
        let most = if all == 24 && self.rng.one_in(2) {
            19
        } else {
            all
        };
        self.usual = (self.length(), most);
    }

    /// What the first life begins with: puts of keys, with the length of the value, and deletes.
    /// The first leaf of `prints` gets two short values, two long ones, and short ones. The first
    /// leaf of `names` is split before the second group of keys. The right side becomes dense.
    /// Either it has a record in one of its last places, and refuses a value of another length; or
    /// few records are left, and it refuses a key behind its places.
    fn beginning(&mut self) -> Vec<(u8, Option<usize>)> {
        let (first, other) = (self.setup.lengths[0], self.setup.lengths[1]);
        let puts = |keys: &[u8]| keys.iter().map(|k| (*k, Some(first))).collect::<Vec<_>>();
        match self.setup.keys.len() {
            24 if first > 0 => Vec::new(),
            24 if self.rng.one_in(2) => {
                let mut all = puts(&[0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 18]);
                all.push((10, Some(other)));
                all
            }
            24 => {
                let mut all = puts(&[0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13]);
                all.extend((5..11).map(|k| (k, None)));
                all.push((20, Some(first)));
                all
            }
            _ => {
                let len = |k| if (2..4).contains(&k) { other } else { first };
                (0..100).map(|k| (k, Some(len(k)))).collect()
            }
        }
    }

    /// Does what the first life begins with.
    fn begin(&mut self, store: &Store) -> Result<()> {
        for (k, len) in self.beginning() {
            match len {
                Some(len) => self.put_sized(store, (0, k), len)?,
                None => self.delete(store, 0, k)?,
            }
            if let Client::Waits(lsn) = std::mem::take(&mut self.clients[0]) {
                on_behalf_of(0, || store.sync(lsn))?;
            }
            if self.recorder.is_sprung() || self.device.power_is_cut() {
                break;
            }
        }
        Ok(())
    }

    fn length(&mut self) -> usize {
        let lengths = self.setup.lengths;
        lengths[self.rng.below(lengths.len() as u64) as usize]
    }

    /// Runs a life from the opening to its end.
    fn live(&mut self, store: Store, first: bool, until: &Deadline) -> End {
        self.set_fate(900, 300);
        let steps = [STEPS / 6, STEPS][self.rng.below(2) as usize];
        let len = match self.rng.one_in(2) {
            true => self.length(),
            false => self.usual.0,
        };
        let begins = first && !self.rng.one_in(3);
        for n in 0..steps {
            if n % 40 == 0 {
                self.choose_habits(len);
            }
            if until.is_over() {
                break;
            }
            let done = match (begins, n) {
                (true, 0) => self.begin(&store),
                _ => self.step(&store),
            };
            if let Some(end) = self.ended() {
                return end;
            }
            if let Err(e) = done {
                return self.fails(&e);
            }
        }
        self.end(store)
    }

    /// The process ends between two requests, in order or not, or the power fails.
    fn end(&mut self, store: Store) -> End {
        let choice = self.rng.below(8);
        let closed = match choice {
            0 | 1 => store.close(),
            _ => {
                drop(store);
                Ok(())
            }
        };
        if let Some(end) = self.ended() {
            return end;
        }
        self.recorder.clear_trap();
        if let Err(e) = closed {
            return self.fails(&e);
        }
        match choice {
            0..=4 => End::Process,
            _ => End::Power(self.recorder.cut_power(&self.device, self.rng.word())),
        }
    }

    /// Replaces the device with what the end of a life has left, and records that.
    fn bury(&mut self, end: End) -> Result<Entry> {
        self.clients = Default::default();
        let power = matches!(end, End::Power(_));
        match end {
            End::Power(image) | End::Killed(image) => {
                self.device = Arc::new(CrashDevice::from_image(image));
            }
            // A power cut that lies ahead does not come.
            End::Process | End::Failure => self.device.cut_power_in(u64::MAX),
        }
        let found = Arc::new(self.setup.look(&self.device)?);
        Ok(Entry {
            client: None,
            heard: match power {
                true => Heard::Crashed(found),
                false => Heard::Restarted(found),
            },
        })
    }

    /// One random step.
    fn step(&mut self, store: &Store) -> Result<()> {
        match self.rng.below(24) {
            0..=2 => {
                let page = PageId(self.rng.below(SLOTS / 8));
                store.write_back_page(page).map(drop)
            }
            3 => store.pump(Task::FlushLog).map(drop),
            4 => store.pump(Task::Merge).map(drop),
            5 => store.pump(Task::WriteBack).map(drop),
            6 if self.rng.one_in(3) => store.pump(Task::Checkpoint).map(drop),
            7 if self.rng.one_in(6) => store.checkpoint().map(drop),
            8 if self.setup.leaves != Leaves::Hints => self.scan(store),
            _ => {
                let c = self.rng.below(u64::from(CLIENTS)) as u8;
                self.client_step(store, c)
            }
        }
    }

    fn client_step(&mut self, store: &Store, c: u8) -> Result<()> {
        let (first, end) = self.habits.keys;
        let k = first + self.rng.below(u64::from(end - first)) as u8;
        match std::mem::take(&mut self.clients[usize::from(c)]) {
            Client::Idle => match self.rng.below(16) {
                0 | 1 => self.get(store, c, k),
                n if n < 2 + self.habits.deletes => self.delete(store, c, k),
                _ => self.put(store, c, k),
            },
            Client::Waits(lsn) if self.rng.one_in(2) => on_behalf_of(c, || store.sync(lsn)),
            waits @ Client::Waits(_) => {
                self.clients[usize::from(c)] = waits;
                Ok(())
            }
        }
    }

    fn key(&self, k: u8) -> Vec<u8> {
        self.setup.pages.key(self.setup.keys[usize::from(k)])
    }

    fn put(&mut self, store: &Store, c: u8, k: u8) -> Result<()> {
        let len = match self.rng.one_in(self.habits.others) {
            true => self.length(),
            false => self.habits.len,
        };
        self.put_sized(store, (c, k), len)
    }

    fn put_sized(&mut self, store: &Store, (c, k): (u8, u8), len: usize) -> Result<()> {
        self.hear(Some(c), LeafUse::Sized(len as u64));
        let version = self.recorder.call_write(c, k, false);
        let value = value_of(version, len as u64);
        let lsn = on_behalf_of(c, || store.put(&self.key(k), &value))?;
        self.clients[usize::from(c)] = Client::Waits(lsn);
        Ok(())
    }

    /// Deletes a key, if it exists: the engine logs nothing otherwise.
    fn delete(&mut self, store: &Store, c: u8, k: u8) -> Result<()> {
        if !store.get(&self.key(k), &mut Vec::new())? {
            return Ok(());
        }
        self.recorder.call_write(c, k, true);
        let lsn = on_behalf_of(c, || store.delete(&self.key(k)))?;
        self.clients[usize::from(c)] = Client::Waits(lsn);
        Ok(())
    }

    fn get(&mut self, store: &Store, c: u8, k: u8) -> Result<()> {
        self.recorder.hear(Some(c), record::Heard::CallGet(k));
        let mut bytes = Vec::new();
        let found = on_behalf_of(c, || store.get(&self.key(k), &mut bytes))?;
        let value = if found { digest(&bytes) } else { 0 };
        self.hear(Some(c), LeafUse::Got(value));
        Ok(())
    }

    /// Scans all keys, some times, so that leaves are used for scans. What is read is not judged.
    fn scan(&mut self, store: &Store) -> Result<()> {
        for _ in 0..1 + self.rng.below(12) {
            store.scan(&[], &mut |_, _| ControlFlow::Continue(()))?;
        }
        Ok(())
    }
}
