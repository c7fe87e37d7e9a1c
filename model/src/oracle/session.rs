//! A store under judgement: one client, one operation after the other, every answer compared with the reference map.
//!
//! When an injected failure strikes, the operation's outcome is in doubt and the program goes on: reads must be right as before, a `sync` that succeeds is
//! believed, and the crashes that follow show whether it lied. When the power goes, the store is opened on what that left. Persistent memory says nothing
//! when it goes: the operation in which it went returns as ever, is taken as one that never did, and the store is opened on what was left before it ended.

mod scans;

use std::sync::Arc;

use treering_engine::{Error, Kv, Lsn, Stats};

use super::edges::Edges;
use super::finding::{Check, Finding};
use super::medium::{Medium, When};
use super::program::{Keep, KeyNo, Op, Program};
use super::reach::{Area, Reach};
use super::reference::{Content, MOST_DOUBTFUL, Reference, Written};
use super::value;
use super::{Disk, DiskKind, Engine, Promise, Write};

/// How often each thing happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Operations done.
    pub operations: u64,
    /// Of these: operations that returned an error because of an injected failure.
    pub failed: u64,
    /// Power cuts.
    pub crashes: u64,
    /// Times a store was opened that had been used before.
    pub reopens: u64,
    /// Leaf splits.
    pub splits: u64,
    /// Leaf merges.
    pub merges: u64,
    /// Pages evicted.
    pub evictions: u64,
    /// Checkpoints.
    pub checkpoints: u64,
    /// Log bytes appended.
    pub log_bytes: u64,
    /// Times the log began again at the beginning of its region.
    pub log_wraps: u64,
    /// Puts that were refused because the store was full.
    pub full: u64,
    /// Operations that the medium had no room for.
    pub starved: u64,
    /// Times a store was opened for reading only.
    pub read_only: u64,
    /// The limits that keys and values have been at.
    pub edges: Edges,
    /// What else was met, limits aside.
    pub reach: Reach,
}

impl Tally {
    /// Both together.
    pub fn add(&mut self, other: &Tally) {
        self.operations += other.operations;
        self.failed += other.failed;
        self.crashes += other.crashes;
        self.reopens += other.reopens;
        self.splits += other.splits;
        self.merges += other.merges;
        self.evictions += other.evictions;
        self.checkpoints += other.checkpoints;
        self.log_bytes += other.log_bytes;
        self.log_wraps += other.log_wraps;
        self.full += other.full;
        self.starved += other.starved;
        self.read_only += other.read_only;
        self.edges.add(other.edges);
        self.reach.add(&other.reach);
    }

    pub(super) fn note(&mut self, stats: &Stats) {
        self.splits += stats.splits;
        self.merges += stats.merges;
        self.evictions += stats.evictions;
        self.checkpoints += stats.checkpoints;
        self.log_bytes += stats.log_appended_bytes;
        self.log_wraps += stats.log_wraps;
        self.reach.steps(stats, false);
    }
}

/// The operation of a program that asks for what cannot be: a key or record over the engine's limits, a crash where there is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("operation {operation} ({line}): {why}")]
pub struct Unfit {
    /// Counted from 1.
    pub operation: usize,
    /// The operation.
    pub line: String,
    /// What is wrong with it.
    pub why: String,
}

/// Whether an engine can run a program at all.
///
/// # Errors
/// The first operation that it cannot.
pub fn fits(engine: &dyn Engine, program: &Program) -> Result<(), Unfit> {
    let limits = engine.limits();
    for (i, op) in program.ops.iter().enumerate() {
        let why = match op {
            Op::Put(key, len) => {
                let (key, len) = (program.key(*key).len(), *len as usize);
                if key > limits.max_key {
                    Some(format!("the key is longer than {} bytes", limits.max_key))
                } else if key + len > limits.max_record {
                    Some(format!(
                        "key and value are longer than {} bytes",
                        limits.max_record
                    ))
                } else if key == 0 && !limits.empty_key {
                    Some("the engine takes no empty key".to_owned())
                } else {
                    None
                }
            }
            op => beyond(op, engine.disk()).map(str::to_owned),
        };
        if let Some(why) = why {
            return Err(Unfit {
                operation: i + 1,
                line: program.line(op),
                why,
            });
        }
    }
    Ok(())
}

/// Why an operation cannot be had of a kind of disk, if it cannot.
fn beyond(op: &Op, disk: DiskKind) -> Option<&'static str> {
    match (op, disk) {
        (Op::Crash(_) | Op::CutPower(_) | Op::Fail(..) | Op::Starve(_), DiskKind::Folder) => {
            Some("the engine keeps its files itself, where nothing can be made to fail")
        }
        (Op::Fail(..) | Op::Starve(_), DiskKind::Pm(_)) => Some(
            "the engine keeps its store in persistent memory, where stores and fences cannot fail",
        ),
        _ => None,
    }
}

/// A new place for a store, and what holds it.
pub(super) struct Place {
    pub(super) disk: Disk,
    medium: Option<Medium>,
    // invariant: outlives `disk`, whose folder it is.
    _folder: Option<tempfile::TempDir>,
}

impl Place {
    pub(super) fn new(kind: DiskKind) -> std::io::Result<Place> {
        if let Some(medium) = Medium::new(kind) {
            return Ok(Place::on(medium));
        }
        let folder = tempfile::tempdir()?;
        Ok(Place {
            disk: Disk::Folder(folder.path().to_owned()),
            medium: None,
            _folder: Some(folder),
        })
    }

    pub(super) fn on(medium: Medium) -> Place {
        Place {
            disk: medium.disk(),
            medium: Some(medium),
            _folder: None,
        }
    }

    pub(super) fn medium(&self) -> Option<&Medium> {
        self.medium.as_ref()
    }

    /// See [`Medium::is_dark`].
    fn is_dark(&self) -> bool {
        self.medium.as_ref().is_some_and(Medium::is_dark)
    }
}

/// The version that the put with index `at` writes: its own or, now and then, the one whose values
/// are all zeros, as what was never written is, and which may be what the key has.
fn version_of(at: usize) -> u64 {
    match at as u64 + 1 {
        n if n % 16 == 9 => 0,
        n => n,
    }
}

/// See the module's story.
pub struct Session<'e> {
    engine: &'e dyn Engine,
    program: &'e Program,
    place: Place,
    store: Option<Arc<dyn Kv>>,
    reference: Reference,
    newest: Lsn,
    /// What the last write returned.
    last: Lsn,
    /// How often a store was opened here.
    openings: u64,
    /// Something was told to fail since the store was opened.
    armed: bool,
    /// The medium has no room for blocks that hold nothing.
    starved: bool,
    /// What reaches the medium is recorded, so it must stay the same.
    recorded: bool,
    /// An operation has failed with the power on: whatever is wrong from then on, however often the store was opened since, may come of that.
    has_failed: bool,
    tally: Tally,
    buffer: Vec<u8>,
}

impl<'e> Session<'e> {
    /// Makes a new store.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn start(engine: &'e dyn Engine, program: &'e Program) -> Result<Session<'e>, Finding> {
        let place = Place::new(engine.disk()).map_err(|e| Finding {
            check: Check::Error,
            operation: None,
            what: "make a folder".into(),
            expected: "a folder".into(),
            found: e.to_string(),
        })?;
        Session::on_new(engine, program, place)
    }

    fn on_new(
        engine: &'e dyn Engine,
        program: &'e Program,
        place: Place,
    ) -> Result<Session<'e>, Finding> {
        Session::on(engine, program, place, 0).map_err(|why| Finding {
            check: Check::Error,
            operation: None,
            what: "open a new store".into(),
            expected: "a store".into(),
            found: why,
        })
    }

    /// As [`Session::start`], on a device that records what reaches it.
    ///
    /// # Errors
    /// It cannot be made.
    pub(super) fn start_recorded(
        engine: &'e dyn Engine,
        program: &'e Program,
    ) -> Result<Session<'e>, Finding> {
        let Some(medium) = Medium::new(engine.disk()) else {
            return Session::start(engine, program);
        };
        medium.record();
        let mut session = Session::on_new(engine, program, Place::on(medium))?;
        session.recorded = true;
        Ok(session)
    }

    /// Opens what is at a place, for the `opening`-th time. The reference is empty until [`Session::settle`].
    ///
    /// # Errors
    /// The engine's.
    pub(super) fn on(
        engine: &'e dyn Engine,
        program: &'e Program,
        place: Place,
        opening: u64,
    ) -> Result<Session<'e>, String> {
        let mut session = Session {
            engine,
            program,
            place,
            store: None,
            reference: Reference::new(program),
            newest: Lsn(0),
            last: Lsn(0),
            openings: opening,
            armed: false,
            starved: false,
            recorded: false,
            has_failed: false,
            tally: Tally::default(),
            buffer: Vec::new(),
        };
        session.store = Some(session.open()?);
        Ok(session)
    }

    /// What was found is what the store holds.
    pub(super) fn settle(&mut self, found: Vec<Content>) {
        self.reference.settle(found);
    }

    /// What a crash may leave while the write with index `at` is under way: with it or without.
    pub(super) fn anticipate(&self, at: usize, reference: &mut Reference) {
        match &self.program.ops[at] {
            Op::Put(key, len) => {
                let written = Written::new(version_of(at), *len);
                reference.wrote(*key, Some(written), Lsn(u64::MAX));
            }
            Op::Delete(key) => reference.wrote(*key, None, Lsn(u64::MAX)),
            _ => {}
        }
    }

    /// All writes so far become durable.
    ///
    /// # Errors
    /// The engine says that they do not.
    pub(super) fn make_durable(&mut self) -> Result<(), Finding> {
        self.sync(self.program.ops.len().saturating_sub(1))
    }

    /// What was done, when no more is wanted.
    pub(super) fn end(mut self) -> Tally {
        self.note_and_drop();
        self.tally
    }

    fn open(&mut self) -> Result<Arc<dyn Kv>, String> {
        let opening = self.openings;
        self.openings += 1;
        let opened = self.engine.open_again(&self.place.disk, opening);
        self.requested(When::Opening);
        opened.map_err(|e| e.to_string())
    }

    /// What reached the medium since this was said last came when the store was at this.
    fn requested(&mut self, when: When) {
        if let Some(medium) = self.place.medium() {
            medium.note(when, &mut self.tally.reach);
        }
    }

    fn store(&self) -> &Arc<dyn Kv> {
        self.store.as_ref().expect("a session has a store")
    }

    /// The device under the store, if it is one that crashes.
    pub fn medium(&self) -> Option<&Medium> {
        self.place.medium()
    }

    /// What the store must and may hold.
    pub fn reference(&self) -> &Reference {
        &self.reference
    }

    fn finding(&self, check: Check, at: usize, expected: String, found: String) -> Finding {
        Finding {
            check,
            operation: Some(at + 1),
            what: self.program.line(&self.program.ops[at]),
            expected,
            found,
        }
    }

    /// Does the operation with index `at`.
    ///
    /// # Errors
    /// What it showed.
    pub fn step(&mut self, at: usize) -> Result<(), Finding> {
        self.tally.operations += 1;
        self.operate(at)?;
        if self.place.is_dark() {
            return self.reopen(at, Some(Keep::Seeded(at as u64)));
        }
        Ok(())
    }

    fn operate(&mut self, at: usize) -> Result<(), Finding> {
        match &self.program.ops[at] {
            Op::Put(key, len) => self.write(at, *key, Some((version_of(at), *len))),
            Op::Delete(key) => self.write(at, *key, None),
            Op::Get(key) => self.get(at, *key),
            Op::Scan { from, to, limit } => self.scan(at, *from, *to, *limit),
            Op::ScanBack { before, limit } => self.scan_back(at, *before, *limit),
            Op::Sync => self.sync(at),
            Op::SyncLast => self.sync_last(at),
            Op::Pump => {
                // A failing engine may say "more" for ever.
                for _ in 0..1_000 {
                    match self.store().pump_due() {
                        Ok(true) => {}
                        Ok(false) => break,
                        Err(e) => return self.stalled(at, &e),
                    }
                }
                Ok(())
            }
            Op::Step => match self.store().pump_due() {
                Ok(_) => Ok(()),
                Err(e) => self.stalled(at, &e),
            },
            Op::Checkpoint => match self.store().checkpoint() {
                Ok(_) => Ok(()),
                Err(e) => self.stalled(at, &e),
            },
            Op::Reopen if self.openings % 4 == 1 => self.reopen_at_rest(at),
            Op::Reopen => self.reopen(at, None),
            Op::Crash(keep) => self.reopen(at, Some(*keep)),
            Op::CutPower(n) => {
                self.arm(|medium| medium.cut_power_in(*n));
                Ok(())
            }
            Op::Fail(kind, n) => {
                self.arm(|medium| {
                    (medium.blocks()).inspect(|device| device.fail_in(*kind, *n));
                });
                Ok(())
            }
            Op::Starve(starved) => {
                self.starve(*starved);
                Ok(())
            }
        }
    }

    fn arm(&mut self, what: impl FnOnce(&Medium)) {
        if let Some(medium) = self.place.medium() {
            what(medium);
            self.armed = true;
        }
    }

    fn starve(&mut self, starved: bool) {
        if let Some(device) = self.place.medium().and_then(Medium::blocks) {
            device.set_full(starved);
            self.starved = starved;
        }
    }

    /// Whether that is what a store without room may say.
    fn is_full(&self, error: &Error, write: &Write<'_>) -> bool {
        matches!(error, Error::Full { .. } | Error::PmFull { .. }) && self.engine.may_refuse(write)
    }

    /// Background work returned an error: it may want room, too.
    fn stalled(&mut self, at: usize, error: &Error) -> Result<(), Finding> {
        if self.is_full(error, &Write::Background) {
            return Ok(());
        }
        self.failed(at, error)
    }

    /// An operation returned an error.
    fn failed(&mut self, at: usize, error: &Error) -> Result<(), Finding> {
        self.tally.failed += 1;
        if self.starved && error.is_no_space() {
            // Nothing is lost by it, and all goes on when there is room.
            self.tally.starved += 1;
            return Ok(());
        }
        let on_blocks = (self.place.medium()).is_some_and(|m| m.blocks().is_some());
        // Memory fails nobody, with or without power.
        if !self.armed || !on_blocks {
            let expected = "no error, as nothing has failed".to_owned();
            return Err(self.finding(Check::Error, at, expected, error.to_string()));
        }
        let cut = self.place.medium().is_some_and(Medium::power_is_cut);
        if cut {
            return self.reopen(at, Some(Keep::Seeded(at as u64)));
        }
        self.has_failed = true;
        Ok(())
    }

    /// A read returned an error. A store that refuses writes goes on reading, so it may not be that.
    fn unread(&mut self, at: usize, error: &Error) -> Result<(), Finding> {
        let cut = self.place.medium().is_some_and(Medium::power_is_cut);
        if !cut && matches!(error, Error::Poisoned { .. }) {
            let expected = "an answer, as a store that takes no writes goes on reading".to_owned();
            return Err(self.finding(Check::Error, at, expected, error.to_string()));
        }
        self.failed(at, error)
    }

    fn write(&mut self, at: usize, key: KeyNo, to: Option<(u64, u32)>) -> Result<(), Finding> {
        if self.reference.doubtful() >= MOST_DOUBTFUL {
            // What refuses writes is opened again; what the program has left to say is said then.
            return self.reopen(at, None);
        }
        let store = self.store.as_ref().expect("a session has a store");
        let bytes = self.program.key(key);
        let done = match to {
            Some((version, len)) => {
                value::fill(&mut self.buffer, version, len as usize);
                store.put(bytes, &self.buffer)
            }
            None => store.delete(bytes),
        };
        let written = to;
        let to = to.map(|(version, len)| Written::new(version, len));
        match done {
            Ok(lsn) => {
                self.newest = self.newest.max(lsn);
                self.reference.wrote(key, to, lsn);
                self.last = lsn;
                if let Some((_, len)) = written {
                    let (key, value) = (self.program.key(key).len(), len as usize);
                    self.tally.edges.met(&self.engine.limits(), key, value);
                }
                if let Some(most) = self.engine.undurable_at_most().filter(|_| !self.armed) {
                    self.reference.acknowledge_all_but(most);
                }
                // A promise made in the dark was never heard.
                if self.engine.promise() == Promise::OnReturn && !self.place.is_dark() {
                    self.reference.acknowledge();
                }
                Ok(())
            }
            // A store without room has changed nothing, and goes on.
            Err(e) if self.is_full(&e, &written.map_or(Write::Delete(bytes), |_| Write::Put)) => {
                self.tally.full += 1;
                let refused = "write refused by a full store";
                self.tally.reach.met(Area::Fault, refused, 1);
                self.judge_refusal(at, key, to, &e)
            }
            Err(e) => {
                self.reference.may_have_written(key, to);
                self.failed(at, &e)
            }
        }
    }

    /// A store may say that it is full if it holds more than it promises to take.
    fn judge_refusal(
        &self,
        at: usize,
        key: KeyNo,
        to: Content,
        error: &Error,
    ) -> Result<(), Finding> {
        let Some(room) = self.engine.room() else {
            return Ok(());
        };
        let live = self.reference.live_bytes_with(self.program, key, to);
        // A delete may want room, too; and what is in doubt may be live.
        if to.is_none() || self.reference.doubtful() > 0 || live > room {
            return Ok(());
        }
        let expected = format!(
            "room for it: {live} bytes of keys and values would be live, and there is always room \
             for {room}"
        );
        Err(self.finding(Check::Room, at, expected, error.to_string()))
    }

    fn get(&mut self, at: usize, key: KeyNo) -> Result<(), Finding> {
        let store = self.store.as_ref().expect("a session has a store");
        let found = match store.get(self.program.key(key), &mut self.buffer) {
            Ok(found) => found.then_some(self.buffer.as_slice()),
            Err(e) => return self.unread(at, &e),
        };
        let content = found.map(Written::decode);
        let right = match content {
            None => self.reference.may_read(key, None),
            Some(None) => false,
            Some(written) => self.reference.may_read(key, written),
        };
        if right {
            return Ok(());
        }
        let expected = Written::describe(self.reference.get(key));
        let found = value::describe(found);
        Err(self.finding(Check::Reference, at, expected, found))
    }

    fn sync(&mut self, at: usize) -> Result<(), Finding> {
        match self.store().sync(self.newest) {
            Ok(()) if self.place.is_dark() => Ok(()),
            Ok(()) => {
                self.reference.acknowledge();
                Ok(())
            }
            Err(e) => self.failed(at, &e),
        }
    }

    /// Waits for the last write only: of what it had nothing to do with nothing is known.
    fn sync_last(&mut self, at: usize) -> Result<(), Finding> {
        match self.store().sync(self.last) {
            Ok(()) if self.place.is_dark() => Ok(()),
            Ok(()) => {
                self.reference.acknowledge_last();
                Ok(())
            }
            Err(e) => self.failed(at, &e),
        }
    }

    /// All that the store holds.
    ///
    /// # Errors
    /// What is wrong with it by itself, or the engine's error.
    pub fn contents(&self) -> Result<Vec<Content>, String> {
        let mut contents = vec![None; self.program.keys.len()];
        if contents.is_empty() {
            return Ok(contents);
        }
        let rows = self
            .read_range(None, None, None)
            .map_err(|e| e.to_string())??;
        for (key, content) in rows {
            contents[key.0 as usize] = content;
        }
        Ok(contents)
    }

    /// Lets go of the store, cuts the power if that is asked for, opens what is there, and judges it.
    fn reopen(&mut self, at: usize, cut: Option<Keep>) -> Result<(), Finding> {
        let cut = match cut {
            None if self.openings % 3 == 2 => self.close(at)?,
            cut => cut,
        };
        let check = self.reopening(cut.is_some());
        let untroubled = !self.armed && !self.starved && !self.has_failed;
        if cut.is_none() && untroubled && self.engine.keeps_all_when_dropped() {
            self.reference.acknowledge();
        }
        let mut keep = cut;
        let mut why = String::new();
        // What was told to fail may strike while the store is opened or read, each kind once;
        // and the medium may be full.
        for _ in 0..6 {
            if let Some(keep) = keep.take() {
                // Before the store is let go of: or an engine that writes on the way out would not crash but close.
                self.lose_power(keep);
            }
            self.note_and_drop();
            if !self.armed && self.openings.is_multiple_of(4) {
                self.read_only(at, check)?;
            }
            match self.open_and_read() {
                Ok(found) => {
                    self.tally.reopens += 1;
                    return self.judge_reopened(at, check, found);
                }
                Err(e) => why = e,
            }
            if self.starved {
                // What recovery writes may have no room; reading what is there needs none.
                if !self.armed {
                    self.read_only(at, check)?;
                }
                self.starve(false);
                continue;
            }
            if !self.armed {
                break;
            }
            if self.place.medium().is_some_and(Medium::power_is_cut) {
                keep = Some(Keep::Seeded(at as u64));
            }
        }
        let expected = "a store that opens and can be read".to_owned();
        Err(self.finding(check, at, expected, why))
    }

    /// Closes the store, if the engine can, and believes what that says. What the power cut leaves
    /// that came meanwhile, or comes now.
    fn close(&mut self, at: usize) -> Result<Option<Keep>, Finding> {
        let Some(store) = self.store.take() else {
            return Ok(None);
        };
        self.requested(When::InUse);
        self.tally.note(&store.stats());
        let closed = self.engine.close(store);
        self.requested(When::Closing);
        if self.place.medium().is_some_and(Medium::power_is_cut) {
            return Ok(Some(Keep::Seeded(at as u64)));
        }
        match closed {
            None => Ok(None),
            Some(Err(e)) => self.stalled(at, &e).map(|()| None),
            Some(Ok(())) => {
                self.reference.acknowledge();
                let goes = self.openings.is_multiple_of(2) && !self.recorded;
                self.tally.reach.met(Area::Step, "store closed", 1);
                Ok(goes.then_some(Keep::Oldest))
            }
        }
    }

    /// Opens the store for reading only, if the engine can, and judges what is read; nothing may be
    /// written by that.
    fn read_only(&mut self, at: usize, check: Check) -> Result<(), Finding> {
        self.note_and_drop();
        let requests = || self.place.medium().map(Medium::requests);
        let before = requests();
        let opened = match self.engine.open_to_read(&self.place.disk) {
            None => return Ok(()),
            Some(opened) => opened.map_err(|e| e.to_string()),
        };
        self.store = opened
            .map(Some)
            .map_err(|why| self.read_only_finding(at, check, why))?;
        let found = self
            .contents()
            .map_err(|why| self.read_only_finding(at, check, why))?;
        self.store = None;
        self.tally.read_only += 1;
        if requests() != before {
            let why = "requests that change the medium".to_owned();
            return Err(self.read_only_finding(at, check, why));
        }
        if self.reference.permits(&found) {
            return Ok(());
        }
        let (_, found) = self.reference.explain(self.program, &found, 4);
        Err(self.read_only_finding(at, check, found))
    }

    fn read_only_finding(&self, at: usize, check: Check, found: String) -> Finding {
        let expected =
            "a store that opens for reading only, writes nothing, and holds what it must";
        self.finding(check, at, expected.to_owned(), found)
    }

    fn open_and_read(&mut self) -> Result<Vec<Content>, String> {
        self.store = Some(self.open()?);
        let found = self.contents()?;
        if self.place.is_dark() {
            return Err("the power went meanwhile".into());
        }
        Ok(found)
    }

    /// Which check a store fails that was opened again and is not right.
    fn reopening(&self, cut: bool) -> Check {
        match (cut, self.armed) {
            _ if self.has_failed => Check::InjectedFailure,
            (true, _) => Check::Crash,
            (false, true) => Check::InjectedFailure,
            (false, false) => Check::Reference,
        }
    }

    fn note_and_drop(&mut self) {
        if let Some(store) = self.store.take() {
            self.requested(When::InUse);
            self.tally.note(&store.stats());
            drop(store);
            self.requested(When::Closing);
        }
    }

    fn lose_power(&mut self, keep: Keep) {
        self.requested(When::InUse);
        if let Some(medium) = self.place.medium() {
            let image = medium.crash_keeping(keep);
            // What was to fail and has not yet may fail in recovery, or behind it.
            let ahead = medium.blocks().map(|device| device.failures_ahead());
            let medium = Medium::holding(image);
            if let (Some(device), Some(ahead)) = (medium.blocks(), &ahead) {
                ahead.iter().for_each(|(kind, n)| device.fail_in(*kind, *n));
            }
            self.armed = ahead.is_some_and(|ahead| !ahead.is_empty());
            self.place = Place::on(medium);
            self.starve(self.starved);
            self.tally.crashes += 1;
        }
    }

    fn judge_reopened(
        &mut self,
        at: usize,
        check: Check,
        found: Vec<Content>,
    ) -> Result<(), Finding> {
        if !self.reference.permits(&found) {
            let (expected, described) = self.reference.explain(self.program, &found, 4);
            let wrong: Vec<KeyNo> = (0u32..)
                .map(KeyNo)
                .zip(&found)
                .filter(|(key, content)| !self.reference.may_read(*key, **content))
                .map(|(key, _)| key)
                .collect();
            let check = match check {
                Check::Reference => self.blame(&wrong),
                other => other,
            };
            return Err(self.finding(check, at, expected, described));
        }
        self.reference.settle(found);
        // A number of the store that was open before means nothing to this one.
        self.newest = Lsn(0);
        self.last = Lsn(0);
        Ok(())
    }

    /// What the store holds when all that is due was done; `None` if that failed, or may have.
    fn holds_at_rest(&mut self) -> Option<Vec<(&'static str, u64)>> {
        let store = self.store.as_ref()?;
        if self.armed || self.starved || self.has_failed {
            return None;
        }
        // What one checkpoint lets go of is free with the next.
        for _ in 0..2 {
            for _ in 0..10_000 {
                if !store.pump_due().ok()? {
                    break;
                }
            }
            store.checkpoint().ok()?;
        }
        Some(self.engine.holds(&**store))
    }

    /// Opens the store again when nothing is left to do: then it holds what it held before.
    fn reopen_at_rest(&mut self, at: usize) -> Result<(), Finding> {
        // What was lost for want of room shows when there is some.
        self.starve(false);
        let before = self.holds_at_rest();
        self.reopen(at, None)?;
        if let (Some(before), Some(after)) = (before, self.holds_at_rest())
            && before.first() == after.first()
            && before != after
        {
            let expected = format!("as much room in use as before: {}", in_words(&before));
            return Err(self.finding(Check::Room, at, expected, in_words(&after)));
        }
        Ok(())
    }

    /// The end of the program: everything is compared, made durable, opened again, compared again, and the structure is checked.
    ///
    /// # Errors
    /// What that showed.
    pub fn finish(mut self) -> Result<Tally, Finding> {
        let last = self.program.ops.len().saturating_sub(1);
        if self.program.ops.is_empty() {
            return Ok(self.tally);
        }
        self.tally.operations += 1;
        if !self.armed {
            self.scan(last, KeyNo(0), None, None)?;
            self.sync(last)?;
        }
        self.reopen_at_rest(last)?;
        self.note_and_drop();
        let damage = match self.engine.damage(&self.place.disk) {
            Ok(damage) => damage,
            Err(_) if self.armed => Vec::new(),
            Err(e) => vec![e.to_string()],
        };
        if let Some(damage) = damage.first() {
            let expected = "no damage after the last operation".to_owned();
            return Err(self.finding(Check::Structure, last, expected, damage.clone()));
        }
        Ok(self.tally)
    }
}

fn in_words(holds: &[(&'static str, u64)]) -> String {
    let words = holds.iter().map(|(what, n)| format!("{what} {n}"));
    words.collect::<Vec<_>>().join(", ")
}

/// Runs a program to its end, and says what it showed.
///
/// # Errors
/// The first violation.
pub fn execute(engine: &dyn Engine, program: &Program) -> Result<Tally, Finding> {
    let mut at = 0;
    let run = || {
        let mut session = Session::start(engine, program)?;
        for i in 0..program.ops.len() {
            at = i;
            session.step(i)?;
        }
        session.finish()
    };
    match super::panics::catch(run) {
        Ok(result) => result,
        Err(said) => Err(Finding {
            check: Check::Panic,
            operation: Some(at + 1),
            what: (program.ops.get(at)).map_or_else(|| "open".into(), |op| program.line(op)),
            expected: "an answer".into(),
            found: said,
        }),
    }
}
