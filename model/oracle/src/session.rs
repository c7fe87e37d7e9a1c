//! Runs a program on a store, operation by operation, and compares each answer with the reference
//! map.
//!
//! After an injected failure the outcome of the operation is in doubt, and the program goes on:
//! reads must still be right, and a `sync` that succeeds is believed, so that later crashes show
//! whether it lied. After a power cut the store is opened on what is left. Persistent memory
//! reports no power cut: the operation returns as usual, but counts as one that never returned, and
//! the store is opened on what was there at the cut.

mod batch;
mod empty;
mod fits;
mod place;
mod reopen;
mod run;
mod scans;
mod tally;

pub use fits::{Unfit, fits};
pub(super) use place::Place;
pub use run::{execute, execute_until};
pub use tally::Tally;

use std::sync::Arc;

use treering_engine::device::Trims;
use treering_engine::{Error, Kv, Lsn};

use super::finding::{Check, Finding};
use super::medium::{Medium, When};
use super::program::{Keep, KeyNo, Op, Program};
use super::reach::Area;
use super::reference::{Content, MOST_DOUBTFUL, Reference, Written};
use super::value;
use super::{Engine, Promise, Write};

/// The version that the put with index `at` writes. Usually its own; now and then the version whose
/// bytes are all zeros, like data that was never written. The key may hold that version already.
fn version_of(at: usize) -> u64 {
    match at as u64 + 1 {
        n if n % 16 == 9 => 0,
        n => n,
    }
}

/// One store, the program that runs on it, and the reference map beside it.
///
/// ```
/// use treering_oracle::Program;
/// use treering_oracle::engines::{BTree, Geometry};
/// use treering_oracle::session::Session;
///
/// let engine = BTree::named("btree:cow", Geometry::Tiny).unwrap();
/// let text = r#"{"schema":"treering.program/1","engine":"btree:cow"}
/// put "a" 100
/// crash keep-oldest
/// get "a"
/// "#;
/// let program = Program::parse(text).unwrap().program;
/// let mut session = Session::start(&engine, &program).unwrap();
/// for at in 0..program.ops.len() {
///     session.step(at).unwrap(); // an `Err` is a finding
/// }
/// assert_eq!(session.contents().unwrap(), [None], "nothing was synced");
/// session.finish().unwrap();
/// ```
pub struct Session<'e> {
    engine: &'e dyn Engine,
    program: &'e Program,
    // invariant: dropped before its place, where it may write when it is closed.
    store: Option<Arc<dyn Kv>>,
    place: Place,
    reference: Reference,
    newest: Lsn,
    /// The LSN that the last write returned.
    last: Lsn,
    /// How often the store was opened.
    openings: u64,
    /// Whether a failure or a power cut has been scheduled and has not happened yet.
    armed: bool,
    /// The number of failed requests of the medium before the last opening, and before this
    /// operation. Only a failed request excuses an error.
    failed_before: (u64, u64),
    /// Whether the medium has no space for blocks that hold nothing.
    starved: bool,
    /// Whether the medium takes trims for hints.
    hints: bool,
    /// Whether the store has refused a write because it was full, since it was opened.
    refused: bool,
    /// Whether a refused write is being retried after background work.
    trying: bool,
    /// Whether the medium records its requests, so that it must not be replaced.
    recorded: bool,
    /// Whether an operation has failed with the power on. A later error may be a consequence.
    has_failed: bool,
    tally: Tally,
    buffer: Vec<u8>,
}

impl<'e> Session<'e> {
    /// Creates a new store.
    ///
    /// # Errors
    /// The store cannot be created.
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

    /// As [`Session::start`], on a medium that records its requests.
    ///
    /// # Errors
    /// The store cannot be created.
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

    /// Opens the store at a place for the `opening`-th time. The reference is empty until
    /// [`Session::settle`].
    ///
    /// # Errors
    /// The engine's own.
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
            failed_before: (0, 0),
            starved: false,
            hints: false,
            refused: false,
            trying: false,
            recorded: false,
            has_failed: false,
            tally: Tally::default(),
            buffer: Vec::new(),
        };
        session.store = Some(session.open()?);
        session.want_batches();
        Ok(session)
    }

    /// Sets the reference to the content that was found.
    pub(super) fn settle(&mut self, found: Vec<Content>) {
        self.reference.settle(found);
    }

    /// Adds the write with index `at`, which is in progress, to what a crash may leave: it may have
    /// happened or not.
    pub(super) fn anticipate(&self, at: usize, reference: &mut Reference) {
        match &self.program.ops[at] {
            Op::Write(changes) => {
                reference.wrote_together(&batch::contents(at, changes), Lsn(u64::MAX));
            }
            Op::Put(key, len) => {
                let written = Written::new(version_of(at), *len);
                reference.wrote(*key, Some(written), Lsn(u64::MAX));
            }
            Op::Delete(key) => reference.wrote(*key, None, Lsn(u64::MAX)),
            _ => {}
        }
    }

    /// Makes all writes so far durable.
    ///
    /// # Errors
    /// The engine returns an error.
    pub(super) fn make_durable(&mut self) -> Result<(), Finding> {
        self.sync(self.program.ops.len().saturating_sub(1))
    }

    /// Ends the program early and returns its counts.
    pub(super) fn end(mut self) -> Tally {
        self.note_and_drop();
        self.tally
    }

    fn open(&mut self) -> Result<Arc<dyn Kv>, String> {
        let opening = self.openings;
        self.openings += 1;
        self.refused = false;
        self.failed_before = (self.failures(), self.failures());
        let opened = self.engine.open_again(&self.place.disk, opening);
        self.requested(When::Opening);
        opened.map_err(|e| e.to_string())
    }

    /// Attributes the requests since the last call to this phase of the store.
    fn requested(&mut self, when: When) {
        if let Some(medium) = self.place.medium() {
            medium.note(when, &mut self.tally.reach);
        }
    }

    fn store(&self) -> &Arc<dyn Kv> {
        self.store.as_ref().expect("a session has a store")
    }

    /// The medium under the store, if it can crash.
    pub fn medium(&self) -> Option<&Medium> {
        self.place.medium()
    }

    /// The reference map: what the store must hold, and may hold.
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

    /// Runs the operation with index `at` and compares its answer.
    ///
    /// # Errors
    /// What is wrong.
    pub fn step(&mut self, at: usize) -> Result<(), Finding> {
        self.tally.operations += 1;
        self.failed_before.1 = self.failures();
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
            Op::Write(changes) => self.write_batch(at, changes),
            Op::Get(key) => self.get(at, *key),
            Op::Scan { from, to, limit } => self.scan(at, *from, *to, *limit),
            Op::ScanBack { before, limit } => self.scan_back(at, *before, *limit),
            Op::Sync => self.sync(at),
            Op::SyncLast => self.sync_last(at),
            Op::Pump => {
                // A failing engine may report more work forever.
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
            Op::Reopen if self.openings % 4 == 1 => {
                self.empty_and_refill(at)?;
                self.reopen_at_rest(at)
            }
            Op::Reopen => self.reopen(at, None),
            Op::Crash(keep) => self.reopen(at, Some(*keep)),
            Op::CutPower(n) => {
                self.arm(|medium| medium.cut_power_in(*n));
                if self.engine.can_be_killed() && !self.armed {
                    // A program makes few calls, each of which is one request.
                    self.engine.kill(&**self.store(), Some(n % 24));
                    self.armed = true;
                }
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
            Op::Hint(hints) => {
                self.hints = *hints;
                self.take_trims(at as u64);
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

    /// Tells the medium what becomes of trims.
    fn take_trims(&mut self, seed: u64) {
        if let Some(device) = self.place.medium().and_then(Medium::blocks) {
            device.set_trims(match self.hints {
                true => Trims::Hints(seed),
                false => Trims::Done,
            });
            let hints = "trims taken for hints";
            (self.tally.reach).met(Area::Fault, hints, u64::from(self.hints));
        }
    }

    /// Whether a full store may return this error for this write.
    fn is_full(&self, error: &Error, write: &Write<'_>) -> bool {
        matches!(error, Error::Full { .. } | Error::PmFull { .. }) && self.engine.may_refuse(write)
    }

    /// Judges an error of background work, which may need space too.
    fn stalled(&mut self, at: usize, error: &Error) -> Result<(), Finding> {
        if self.is_full(error, &Write::Background) {
            return Ok(());
        }
        self.failed(at, error)
    }

    /// Judges an error of an operation.
    fn failed(&mut self, at: usize, error: &Error) -> Result<(), Finding> {
        self.tally.failed += 1;
        if self.starved && error.is_no_space() {
            // Nothing is lost, and everything continues when there is space again.
            self.tally.starved += 1;
            return Ok(());
        }
        if self
            .place
            .medium()
            .is_some_and(|m| m.blocks().is_some() && m.power_is_cut())
        {
            return self.reopen(at, Some(Keep::Seeded(at as u64)));
        }
        let store = self.store.as_ref();
        if store.is_some_and(|store| self.engine.is_killed(&**store)) {
            return self.reopen(at, Some(Keep::Newest));
        }
        let refuses = matches!(error, Error::Poisoned { .. });
        // Persistent memory does not fail, with or without power.
        if self.failures() == self.failed_before.1 && !(refuses && self.is_troubled()) {
            let expected = "no error, as nothing has failed".to_owned();
            return Err(self.finding(Check::Error, at, expected, error.to_string()));
        }
        self.has_failed = true;
        Ok(())
    }

    /// The number of failed requests of the medium.
    fn failures(&self) -> u64 {
        let blocks = self.place.medium().and_then(Medium::blocks);
        blocks.map_or(0, |device| device.failed())
    }

    /// Whether a request has failed since the opening of the store began.
    fn is_troubled(&self) -> bool {
        self.failures() > self.failed_before.0
    }

    /// Judges an error of a read. A store that refuses writes must still answer reads, so refusing
    /// is no excuse.
    fn unread(&mut self, at: usize, error: &Error) -> Result<(), Finding> {
        let cut = self.place.medium().is_some_and(Medium::power_is_cut);
        if !cut && matches!(error, Error::Poisoned { .. }) {
            let expected =
                "an answer, as a store that refuses writes still answers reads".to_owned();
            return Err(self.finding(Check::Error, at, expected, error.to_string()));
        }
        self.failed(at, error)
    }

    fn write(&mut self, at: usize, key: KeyNo, to: Option<(u64, u32)>) -> Result<(), Finding> {
        if self.reference.doubtful() >= MOST_DOUBTFUL {
            // A store that refuses writes is opened again, and the rest of the program runs on it.
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
        let to = written.map(|(version, len)| Written::new(version, len));
        match done {
            Ok(lsn) => {
                self.reference.wrote(key, to, lsn);
                self.last = lsn;
                if let Some((_, len)) = written {
                    let (key, value) = (self.program.key(key).len(), len as usize);
                    self.tally.edges.met(&self.engine.limits(), key, value);
                }
                self.returned(lsn);
                Ok(())
            }
            // A full store has changed nothing, and continues.
            Err(e) if self.is_full(&e, &written.map_or(Write::Delete(bytes), |_| Write::Put)) => {
                self.tally.full += 1;
                self.refused = true;
                let refused = "write refused by a full store";
                self.tally.reach.met(Area::Fault, refused, 1);
                self.judge_refusal(at, key, written, &e)
            }
            Err(e) => {
                self.reference.may_have_written(key, to);
                self.failed(at, &e)
            }
        }
    }

    /// Notes what a write that returned makes durable.
    fn returned(&mut self, lsn: Lsn) {
        self.newest = self.newest.max(lsn);
        if let Some(most) = self.engine.undurable_at_most().filter(|_| !self.armed) {
            self.reference.acknowledge_all_but(most);
        }
        // After the power was cut, a promise does not count.
        if self.engine.promise() == Promise::OnReturn && !self.place.is_dark() {
            self.reference.acknowledge();
        }
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

    /// Syncs only the last write. Nothing is promised about writes that this one did not depend on.
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

    /// The content of every key of the program, read by a scan.
    ///
    /// # Errors
    /// Rows that are out of order, unknown or torn, or the engine's error.
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

    /// Ends the program: compares the whole content, syncs, reopens, compares again, and checks the
    /// structure.
    ///
    /// # Errors
    /// What is wrong.
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
        self.empty_and_refill(last)?;
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
