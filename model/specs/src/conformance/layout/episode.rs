//! Episodes: the seeded life of a store from its first leaf on, with clients, background work, ends
//! of every kind, and openings with options that allow dense leaves or do not.
//!
//! Three clients share one thread, each with one call at a time: a put or delete returns when its
//! record is in the buffer, and the rest of the call is its `sync`. So the seed decides the order
//! of everything.

use std::ops::ControlFlow;
use std::sync::Arc;

use treering_engine::{Kv, Lsn, PageId, Result, Store, Task};

use super::judge::{Entry, Heard, Judge, Refusal};
use super::setup::{Leaves, NEAR, SLOTS, Setup, digest, value_of};
use crate::conformance::behaviour::KEPT;
use crate::conformance::led::{Leads as _, Recorded, told_again};
use crate::conformance::mortal::{End, Mortal};
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
    life: Mortal,
    clients: [Client; CLIENTS as usize],
    habits: Habits,
    /// The usual length of values, and the number of keys that are used.
    usual: (usize, u8),
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
    told_again(judged(setup, seed, until, None)?, || record(setup, seed))
}

/// The judge of the episode of a seed, with the situations of all steps.
pub(super) fn record(setup: &Setup, seed: u64) -> Result<(Judge<'_>, Option<Box<Refusal>>)> {
    judged(setup, seed, &Deadline::never(), Some(KEPT))
}

/// All steps of an episode as a behaviour of the spec. `None` if there is no step.
///
/// # Errors
/// As [`run_episode`].
pub fn recorded(setup: &Setup, seed: u64) -> Result<Option<Recorded>> {
    let (judge, _) = judged(setup, seed, &Deadline::never(), Some(usize::MAX))?;
    Ok(judge.recorded())
}

fn judged<'a>(
    setup: &'a Setup,
    seed: u64,
    until: &Deadline,
    steps: Option<usize>,
) -> Result<(Judge<'a>, Option<Box<Refusal>>)> {
    let mut episode = Episode {
        setup,
        life: Mortal::new(
            Random::new(seed),
            setup.device(),
            Arc::new(Recorder::of_layouts()),
        ),
        clients: Default::default(),
        habits: Habits {
            keys: (0, setup.keys.len() as u8),
            len: setup.lengths[0],
            others: 8,
            deletes: 2,
        },
        usual: (setup.lengths[0], setup.keys.len() as u8),
    };
    episode.choose_usual();
    let mut judge = Judge::new(CLIENTS, setup);
    if let Some(steps) = steps {
        judge.note(steps);
    }
    let refusal = episode.run(until, &mut |entries| {
        judge.hear(entries).map(|()| judge.is_over())
    })?;
    Ok((judge, refusal))
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
                Ok(store) => self.live(store, life == 0, until),
                Err(end) => end,
            };
            let failure = matches!(end, End::Failed);
            let heard = self.life.recorder.take().into_iter();
            entries.extend(heard.map(|entry| Entry {
                client: entry.client,
                heard: Heard::Said(entry.heard),
            }));
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
        self.life.recorder.hear(client, record::Heard::Leaf(what));
    }

    /// Opens the store, with one or the other options. A life may end meanwhile.
    fn open(&mut self, again: bool) -> std::result::Result<Store, End> {
        let dense = !self.life.rng.one_in(4);
        self.hear(None, LeafUse::Opens(dense));
        if again && self.life.rng.one_in(3) {
            self.life.set_fate(120, 60);
        }
        let opened = self
            .setup
            .open(&self.life.device, &self.life.recorder, dense);
        let opened = self.life.opened(opened)?;
        opened.map_err(|e| self.fails(&e))
    }

    fn fails(&self, error: &treering_engine::Error) -> End {
        self.hear(None, LeafUse::Failed(error.to_string()));
        End::Failed
    }

    /// Chooses what this life does.
    fn choose_habits(&mut self, len: usize) {
        let (_, all) = self.usual;
        // Keys in a row make a leaf dense; all of them are in several leaves.
        let keys = match self.setup.leaves {
            Leaves::Semi => [(0, all), (0, 30), (0, 30), (0, NEAR), (20, 40), (NEAR, all)],
            _ => [(0, all), (5, 19), (5, 19), (0, 17), (5, 17), (all - 7, all)],
        };
        self.habits = Habits {
            keys: keys[self.life.rng.below(6) as usize],
            len,
            others: [3, 20, 100, 1000][self.life.rng.below(4) as usize],
            deletes: [0, 1, 3, 10][self.life.rng.below(4) as usize],
        };
    }

    /// Chooses what this episode does. Without its last keys, the leaf of `names` that may become
    /// dense is the last one.
    fn choose_usual(&mut self) {
        let all = self.setup.keys.len() as u8;
        let most = if all == 24 && self.life.rng.one_in(2) {
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
    /// few records are left, and it refuses a key behind its places. The first leaf of `semi` is
    /// split, so that the left one can become semi-dense.
    fn beginning(&mut self) -> Vec<(u8, Option<usize>)> {
        let (first, other) = (self.setup.lengths[0], self.setup.lengths[1]);
        let puts = |keys: &[u8]| keys.iter().map(|k| (*k, Some(first))).collect::<Vec<_>>();
        match self.setup.keys.len() {
            _ if self.setup.leaves == Leaves::Semi => {
                let near: Vec<u8> = (0..NEAR).collect();
                puts(&near)
            }
            24 if first > 0 => Vec::new(),
            24 if self.life.rng.one_in(2) => {
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
            if self.life.recorder.is_sprung() || self.life.device.power_is_cut() {
                break;
            }
        }
        Ok(())
    }

    fn length(&mut self) -> usize {
        let lengths = self.setup.lengths;
        lengths[self.life.rng.below(lengths.len() as u64) as usize]
    }

    /// Runs a life from the opening to its end.
    fn live(&mut self, store: Store, first: bool, until: &Deadline) -> End {
        self.life.set_fate(900, 300);
        let steps = [STEPS / 6, STEPS][self.life.rng.below(2) as usize];
        let len = match self.life.rng.one_in(2) {
            true => self.length(),
            false => self.usual.0,
        };
        let begins = first && !self.life.rng.one_in(3);
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

    /// One random step.
    fn step(&mut self, store: &Store) -> Result<()> {
        match self.life.rng.below(24) {
            0..=2 => {
                let page = PageId(self.life.rng.below(SLOTS / 8));
                store.write_back_page(page).map(drop)
            }
            3 => store.pump(Task::FlushLog).map(drop),
            4 => store.pump(Task::Merge).map(drop),
            5 => store.pump(Task::WriteBack).map(drop),
            6 if self.life.rng.one_in(3) => store.pump(Task::Checkpoint).map(drop),
            7 if self.life.rng.one_in(6) => store.checkpoint().map(drop),
            8 if self.setup.leaves.is_adaptive() => self.scan(store),
            _ => {
                let c = self.life.rng.below(u64::from(CLIENTS)) as u8;
                self.client_step(store, c)
            }
        }
    }

    fn client_step(&mut self, store: &Store, c: u8) -> Result<()> {
        let (first, end) = self.habits.keys;
        let k = first + self.life.rng.below(u64::from(end - first)) as u8;
        match std::mem::take(&mut self.clients[usize::from(c)]) {
            Client::Idle => match self.life.rng.below(16) {
                0 | 1 => self.get(store, c, k),
                n if n < 2 + self.habits.deletes => self.delete(store, c, k),
                _ => self.put(store, c, k),
            },
            Client::Waits(lsn) if self.life.rng.one_in(2) => on_behalf_of(c, || store.sync(lsn)),
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
        let len = match self.life.rng.one_in(self.habits.others) {
            true => self.length(),
            false => self.habits.len,
        };
        self.put_sized(store, (c, k), len)
    }

    fn put_sized(&mut self, store: &Store, (c, k): (u8, u8), len: usize) -> Result<()> {
        self.hear(Some(c), LeafUse::Sized(len as u64));
        let version = self.life.recorder.call_write(c, k, false);
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
        self.life.recorder.call_write(c, k, true);
        let lsn = on_behalf_of(c, || store.delete(&self.key(k)))?;
        self.clients[usize::from(c)] = Client::Waits(lsn);
        Ok(())
    }

    fn get(&mut self, store: &Store, c: u8, k: u8) -> Result<()> {
        self.life.recorder.hear(Some(c), record::Heard::CallGet(k));
        let mut bytes = Vec::new();
        let found = on_behalf_of(c, || store.get(&self.key(k), &mut bytes))?;
        let value = if found { digest(&bytes) } else { 0 };
        self.hear(Some(c), LeafUse::Got(value));
        Ok(())
    }

    /// Scans all keys, some times, so that leaves are used for scans. What is read is not judged.
    fn scan(&mut self, store: &Store) -> Result<()> {
        for _ in 0..1 + self.life.rng.below(12) {
            store.scan(&[], &mut |_, _| ControlFlow::Continue(()))?;
        }
        Ok(())
    }
}
