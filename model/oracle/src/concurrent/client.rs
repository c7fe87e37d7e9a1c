//! Clients, which make one call after another and record each.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use treering_engine::{Batch, Error, Kv, Lsn, Result};

use super::power::{Power, Trouble};
use super::races::{Deed, Deeds};
use super::workload::{Group, Step, Workload};
use crate::engine::{Engine, Write};
use crate::history::{Action, KeyId, Recorder, Start, Ticks, Version};
use crate::random::Random;
use crate::value;

/// What all clients of a history share. Its locks are std's, even where the engine's are replaced
/// to explore schedules, and are never held across a call.
#[derive(Debug)]
pub struct Session {
    /// What the clients do.
    pub work: Workload,
    /// The clock.
    pub ticks: Ticks,
    /// The greatest LSN that a write has returned.
    pub last: AtomicU64,
    /// The power, if the history can end in a power cut.
    power: Option<Arc<Power>>,
    /// What happened besides the calls.
    pub(super) deeds: Deeds,
    refusals: Refusals,
    recorders: Vec<Mutex<Recorder>>,
}

/// What a full store may refuse; see [`Engine::may_refuse`].
#[derive(Clone, Debug, Default)]
pub(super) struct Refusals {
    puts: bool,
    batches: bool,
    /// For each key, whether its delete may be refused.
    deletes: Vec<bool>,
    background: bool,
}

impl Refusals {
    fn of(engine: &dyn Engine, work: &Workload) -> Refusals {
        let delete = |key: &crate::history::Key| engine.may_refuse(&Write::Delete(key));
        Refusals {
            puts: engine.may_refuse(&Write::Put),
            batches: engine.may_refuse(&Write::Batch),
            deletes: work.keys().iter().map(delete).collect(),
            background: engine.may_refuse(&Write::Background),
        }
    }
}

/// Whether an error says that the store is full.
fn is_full(error: &Error) -> bool {
    matches!(error, Error::Full { .. } | Error::PmFull { .. })
}

/// Locks a recorder. A recorder is consistent after every push, so one whose lock a panic has
/// poisoned is usable.
fn lock(recorder: &Mutex<Recorder>) -> MutexGuard<'_, Recorder> {
    recorder.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Session {
    /// A session with clients 0 to `clients - 1`.
    #[must_use]
    pub fn new(work: Workload, clients: u32) -> Session {
        let recorder = |client| Mutex::new(Recorder::new(client, Arc::clone(work.keys())));
        Session {
            recorders: (0..clients).map(recorder).collect(),
            ticks: Ticks::default(),
            last: AtomicU64::new(0),
            power: None,
            deeds: Deeds::default(),
            refusals: Refusals::default(),
            work,
        }
    }

    /// The same session, which goes on until the power is cut.
    #[must_use]
    pub fn with_power(self, power: Arc<Power>) -> Session {
        Session {
            power: Some(power),
            ..self
        }
    }

    /// The same session with a store that may refuse what `engine` may refuse.
    #[must_use]
    pub fn on(self, engine: &dyn Engine) -> Session {
        Session {
            refusals: Refusals::of(engine, &self.work),
            ..self
        }
    }

    /// Whether background work may return this error: the store is full, or requests fail.
    pub(super) fn may_stall(&self, error: &Error) -> bool {
        self.refusals.background && is_full(error) || self.may_fail()
    }

    /// Whether requests of the medium fail, so that calls may fail.
    pub(super) fn may_fail(&self) -> bool {
        let troubled = |power: &Arc<Power>| power.trouble != Trouble::None;
        self.power.as_ref().is_some_and(troubled)
    }

    /// Whether calls may succeed again after one has failed.
    pub(super) fn recovers(&self) -> bool {
        let no_room = |power: &Arc<Power>| power.trouble == Trouble::NoRoom;
        self.power.as_ref().is_some_and(no_room)
    }

    /// Called before step `step` of background work.
    pub(super) fn background(&self, step: u64) {
        if let Some(power) = &self.power {
            power.background(step);
        }
    }

    /// Notes something that happened from `from` until now. If the power has been cut, it never
    /// ended.
    pub(super) fn noted(&self, deed: Deed, from: u64) {
        let until = match self.is_dark() {
            true => u64::MAX,
            false => self.ticks.last() + 1,
        };
        self.deeds.note(deed, from, until);
    }

    /// Whether the power can be cut.
    pub(super) fn can_be_cut(&self) -> bool {
        self.power.is_some()
    }

    /// Whether the power has been cut, so that answers no longer count.
    #[must_use]
    pub fn is_dark(&self) -> bool {
        self.power.as_ref().is_some_and(|power| power.is_cut())
    }

    /// The calls of all clients so far. A pending call counts as one that never returns.
    #[must_use]
    pub fn recorded(&self) -> Vec<Recorder> {
        self.recorders
            .iter()
            .map(|recorder| lock(recorder).clone())
            .collect()
    }
}

/// One client of a [`Session`].
#[derive(Debug)]
pub struct Client {
    session: Arc<Session>,
    number: u32,
    random: Random,
    calls: u64,
    buffer: Vec<u8>,
    expected: Vec<u8>,
    rows: Vec<(Vec<u8>, Version)>,
    /// The LSN that its last write returned.
    own: Lsn,
    /// The tick at which its pending call was invoked.
    invoked: u64,
}

impl Client {
    /// Client `number`. The seed of the session decides what it does.
    #[must_use]
    pub fn new(session: Arc<Session>, number: u32, seed: u64) -> Client {
        Client {
            session,
            number,
            random: Random::part(seed, u64::from(number)),
            calls: 0,
            buffer: Vec::new(),
            expected: Vec::new(),
            rows: Vec::new(),
            own: Lsn(0),
            invoked: 0,
        }
    }

    /// Makes the next call.
    ///
    /// # Errors
    /// The engine's own; the call is recorded as failed.
    pub fn step(&mut self, kv: &dyn Kv) -> Result<()> {
        let step = self.session.work.step(self.calls, &mut self.random);
        self.calls += 1;
        self.make(kv, step)
    }

    fn make(&mut self, kv: &dyn Kv, step: Step) -> Result<()> {
        match step {
            Step::Get(key) => {
                let found = Version::ABSENT;
                self.invoke(Action::Get { key, found });
                let session = Arc::clone(&self.session);
                let name = &session.work.keys()[key.0 as usize];
                let answer = kv.get(name, &mut self.buffer);
                let now = session.ticks.next();
                let found = match &answer {
                    Ok(true) => session
                        .work
                        .version_of(name, &self.buffer, &mut self.expected),
                    Ok(false) | Err(_) => Version::ABSENT,
                };
                self.end(now, answer.map(drop), found)
            }
            Step::Put(key) => {
                let clients = self.session.recorders.len() as u64;
                let version = self.calls * clients + u64::from(self.number);
                let session = Arc::clone(&self.session);
                let name = &session.work.keys()[key.0 as usize];
                let len = session.work.len_of(name.len(), version);
                value::fill(&mut self.buffer, version, len);
                let version = Version(version);
                self.invoke(Action::Put { key, version });
                let answer = kv.put(name, &self.buffer);
                self.wrote(answer, self.session.refusals.puts)
            }
            Step::Delete(key) => {
                self.invoke(Action::Delete { key });
                let name = &self.session.work.keys()[key.0 as usize];
                let answer = kv.delete(name);
                let deletes = &self.session.refusals.deletes;
                let may = deletes.get(key.0 as usize).copied().unwrap_or(false);
                self.wrote(answer, may)
            }
            Step::Write { group, deletes } => self.write(kv, group, deletes),
            Step::Look { group, back, scan } => self.look(kv, group, back, scan),
            Step::Scan {
                start,
                through,
                limit,
            } => self.scan(kv, start, through, limit),
            // Syncs the client's own last write, and every fourth time the last write of any
            // client.
            Step::Sync => self.sync(
                kv,
                match self.calls.is_multiple_of(4) {
                    true => Lsn(self.session.last.load(Ordering::SeqCst)),
                    false => self.own,
                },
            ),
        }
    }

    fn write(&mut self, kv: &dyn Kv, group: Group, deletes: u32) -> Result<()> {
        let session = Arc::clone(&self.session);
        let clients = session.recorders.len() as u64;
        let version = self.calls * clients + u64::from(self.number);
        let keys = session.work.keys_of(group).into_iter().zip(0u32..);
        let changes = keys.map(|(key, place)| match deletes >> place & 1 {
            // Each value has a version of its own.
            0 => (key, Version(version | u64::from(place) << 32)),
            _ => (key, Version::ABSENT),
        });
        let changes = session.work.fitting(changes.collect());
        let mut batch = Batch::new();
        for (key, version) in &changes {
            let name = &*session.work.keys()[key.0 as usize];
            if *version == Version::ABSENT {
                batch.delete(name);
            } else {
                let len = session.work.len_of(name.len(), version.0);
                batch.put(name, value::value(version.0, len));
            }
        }
        let mut recorder = lock(&session.recorders[self.number as usize]);
        self.invoked = session.ticks.next();
        recorder.invoke_batch(self.invoked, changes);
        drop(recorder);
        let answer = kv.write(&batch);
        self.wrote(answer, session.refusals.batches)
    }

    /// Reads the keys of a batch.
    fn look(&mut self, kv: &dyn Kv, group: Group, back: bool, scan: bool) -> Result<()> {
        let mut keys = self.session.work.keys_of(group);
        if back {
            keys.reverse();
        }
        let (Some(first), Some(last)) = (keys.first().copied(), keys.last().copied()) else {
            return Ok(());
        };
        if !scan {
            return keys
                .into_iter()
                .try_for_each(|key| self.make(kv, Step::Get(key)));
        }
        self.make(kv, Step::Get(first))?;
        let (low, high) = (first.min(last), first.max(last));
        self.scan(kv, Start::From(low), Some(high), 200)
    }

    fn scan(
        &mut self,
        kv: &dyn Kv,
        start: Start,
        through: Option<KeyId>,
        limit: u32,
    ) -> Result<()> {
        let session = Arc::clone(&self.session);
        let keys = session.work.keys();
        let now = session.ticks.next();
        lock(&session.recorders[self.number as usize]).invoke_scan(now, start, through, limit);
        let bytes_of = |key: KeyId| &*keys[key.0 as usize];
        let bound = through.map(bytes_of);
        let beyond = |key: &[u8], bound: &[u8]| {
            if start.is_down() {
                key < bound
            } else {
                key > bound
            }
        };
        let (rows, expected) = (&mut self.rows, &mut self.expected);
        rows.clear();
        let visit = &mut |key: &[u8], bytes: &[u8]| {
            rows.push((key.to_vec(), session.work.version_of(key, bytes, expected)));
            // Also stops again if the engine goes on after it was told to stop.
            if rows.len() >= limit as usize || bound.is_some_and(|bound| beyond(key, bound)) {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        let answer = match start {
            Start::From(from) => kv.scan(bytes_of(from), visit),
            Start::Below(before) => kv.scan_back(Some(bytes_of(before)), visit),
            Start::End => kv.scan_back(None, visit),
        };
        let now = session.ticks.next();
        let mut recorder = lock(&session.recorders[self.number as usize]);
        for (key, version) in &self.rows {
            recorder.row(key, *version);
        }
        drop(recorder);
        self.end(now, answer, Version::ABSENT)
    }

    fn sync(&self, kv: &dyn Kv, lsn: Lsn) -> Result<()> {
        let began = self.session.ticks.next();
        let done = kv.sync(lsn);
        self.session.noted(Deed::Sync, began);
        done?;
        if let Some(power) = self.session.power.as_ref().filter(|power| !power.is_cut()) {
            power.synced(lsn);
        }
        Ok(())
    }

    fn invoke(&mut self, action: Action) {
        let mut recorder = lock(&self.session.recorders[self.number as usize]);
        self.invoked = self.session.ticks.next();
        recorder.invoke(self.invoked, action);
    }

    fn wrote(&mut self, answer: Result<Lsn>, may_be_refused: bool) -> Result<()> {
        if may_be_refused && answer.as_ref().is_err_and(is_full) && !self.session.is_dark() {
            lock(&self.session.recorders[self.number as usize]).refused();
            return Ok(());
        }
        let now = self.session.ticks.next();
        if let Ok(lsn) = &answer {
            self.own = *lsn;
            self.session.last.fetch_max(lsn.0, Ordering::SeqCst);
            if let Some(power) = &self.session.power {
                power.wrote(self.invoked, *lsn);
            }
        }
        self.end(now, answer.map(drop), Version::ABSENT)
    }

    fn end(&self, now: u64, answer: Result<()>, found: Version) -> Result<()> {
        if self.session.is_dark() {
            return answer;
        }
        let mut recorder = lock(&self.session.recorders[self.number as usize]);
        match &answer {
            Ok(()) => recorder.returned(now, found),
            Err(_) => recorder.failed(now),
        }
        answer
    }

    /// Writes every `step`-th key, so that there is something to read and there are gaps to grow
    /// in.
    ///
    /// # Errors
    /// The engine's own.
    pub fn fill(&mut self, kv: &dyn Kv, step: usize) -> Result<()> {
        let keys = self.session.work.keys().len() as u32;
        (0..keys).step_by(step).try_for_each(|key| {
            self.calls += 1;
            self.make(kv, Step::Put(KeyId(key)))
        })
    }

    /// Reads the whole content: a scan up, a scan down, and a get of each key.
    ///
    /// # Errors
    /// The engine's own.
    pub fn audit(&mut self, kv: &dyn Kv) -> Result<()> {
        let keys = self.session.work.keys().len() as u32;
        self.scan(kv, Start::From(KeyId(0)), None, u32::MAX)?;
        self.scan(kv, Start::End, None, u32::MAX)?;
        (0..keys).try_for_each(|key| self.make(kv, Step::Get(KeyId(key))))
    }
}
