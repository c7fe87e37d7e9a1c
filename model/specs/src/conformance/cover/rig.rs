//! The engine during one walk: takes every step of the spec on the real engine.
//!
//! ```text
//! AppendLog(c)      client c puts, and stops at PageChanged: record appended, page latched
//! ChangePage(c)     the put continues; client c syncs if its LSN is, or soon will be, durable
//! FlushLog(c)       client c syncs, and stops at LogWritten: blocks written
//! CompleteFlush     the leader continues, and so do all sleeping clients
//! FailFlush         the device fails as the leader continues; in a sweep, the store's flush does
//! ReadPage          Store::get
//! WriteBack(k)      Store::write_back_page
//! Reload(k)         Store::reload_page
//! BeginCheckpoint   the keeper pumps one step
//! FlushPages        the keeper pumps on, and stops at PagesFlushed
//! WriteSuperblock   the keeper continues, and stops at SuperblockWritten
//! FlushSuperblock   the keeper continues, and stops at SuperblockFlushed
//! TruncateLog       the keeper continues
//! Crash, Restart    the device dies under the process; another process continues on the outcome
//! LoadSuperblock    the opener opens the store, and stops at RecoveryBegins
//! RedoRecord        the opener reads on, and stops at RecordRead
//! FinishRedo        the opener redoes all records, and stops at CheckpointBegins
//! ```

use std::sync::Arc;
use std::time::Duration;

use treering_engine::events::Event;
use treering_engine::{Kv, Lsn, Options, Result, Store, SystemClock};

use super::actors::{Actor, Cut, Gate, NOWHERE, Outcome, Said};
use super::compare::Atlas;
use super::device::StepDevice;
use super::graph;
use crate::conformance::setup::Setup;
use crate::mirror::wal_recovery::{Action, Call, Checkpoint, Phase, State, WalRecovery};
use treering_oracle::value;

/// Long enough for a thread to reach the next latch.
pub(super) const LATCH_WAIT: Duration = Duration::from_millis(3);

/// Why a step was not taken.
pub(super) enum Not {
    /// The engine cannot take it as a step of its own.
    Able(&'static str),
    /// The engine did something else.
    Same(String),
}

pub(super) type Step<T = ()> = std::result::Result<T, Not>;

pub(super) fn differs<T>(why: impl Into<String>) -> Step<T> {
    Err(Not::Same(why.into()))
}

/// What the rig knows of a client besides its thread's job.
#[derive(Default)]
pub(super) struct Client {
    lsn: Lsn,
    /// Whether its sync succeeded, if it has been called and has returned.
    synced: Option<bool>,
    got: u64,
}

/// The progress of an opening's sweep.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Sweep {
    /// It has begun.
    Begun,
    /// A page has been copied, and not written yet.
    Copied,
    /// All pages are written. The flush comes next.
    Written,
}

/// The engine, stopped somewhere.
pub(super) struct Rig<'a> {
    pub(super) setup: &'a Setup,
    pub(super) atlas: &'a Atlas,
    pub(super) device: Arc<StepDevice>,
    pub(super) store: Option<Arc<Store>>,
    pub(super) actors: [Actor; 2],
    pub(super) clients: [Client; 2],
    pub(super) keeper: Actor,
    pub(super) opener: Actor,
    /// The client that leads the flush in flight.
    leader: Option<usize>,
    pub(super) sweep: Sweep,
    bytes: Vec<u8>,
}

/// Opens a store that ends as a killed process does.
pub(super) fn open(device: &Arc<StepDevice>, options: &Options) -> Result<Store> {
    let clock = Arc::new(SystemClock::new());
    Store::open_observed(device.clone(), clock, options, Some(Arc::new(Gate)))
        .inspect(Store::abandon_on_drop)
}

impl<'a> Rig<'a> {
    /// Creates the threads. [`Rig::begin`] gives them a store.
    pub(super) fn new(setup: &'a Setup, atlas: &'a Atlas, blank: &StepDevice) -> Rig<'a> {
        Rig {
            setup,
            atlas,
            device: Arc::new(blank.copy()),
            store: None,
            actors: [Actor::new(), Actor::new()],
            clients: Default::default(),
            keeper: Actor::new(),
            opener: Actor::new(),
            leader: None,
            sweep: Sweep::Begun,
            bytes: Vec::new(),
        }
    }

    /// Puts the engine into the spec's initial state.
    pub(super) fn begin(&mut self, blank: &StepDevice) -> Result<()> {
        self.end_process();
        self.device = Arc::new(blank.copy());
        self.store = Some(Arc::new(open(&self.device, self.setup.options())?));
        Ok(())
    }

    pub(super) fn store(&self) -> Step<&Arc<Store>> {
        self.store
            .as_ref()
            .ok_or_else(|| Not::Same("no store is open".into()))
    }

    /// Takes the step that leads from `from` to `to`, and compares the device.
    pub(super) fn take(
        &mut self,
        mirror: &WalRecovery,
        action: Action,
        from: &State,
        to: &State,
    ) -> Step {
        self.step(mirror, action, from, to)?;
        // Until recovery begins, a restarted process reads what may still be lost.
        if matches!(action, Action::Restart) {
            return Ok(());
        }
        self.atlas.compare(&self.device, to).map_err(Not::Same)
    }

    fn step(&mut self, mirror: &WalRecovery, action: Action, from: &State, to: &State) -> Step {
        match action {
            Action::CallGet(..) | Action::CallWrite(..) => Ok(()),
            Action::ReadPage(c) => self.read_page(c.into(), from, to),
            Action::AnswerGet(c) => {
                same("the answer", self.clients[usize::from(c)].got, from.got(c))
            }
            Action::AppendLog(c) => self.append_log(c.into(), from, to),
            Action::ChangePage(c) => self.change_page(c.into(), from),
            Action::FlushLog(c) => self.flush_log(c.into(), from),
            Action::CompleteFlush => self.end_flush(true),
            Action::FailFlush => self.fail_flush(mirror, from),
            Action::Acknowledge(c) => match self.answer_write(c.into(), true) {
                Err(_) if from.poisoned() => Err(Not::Able(
                    "a poisoned store acknowledges nothing, not even durable writes",
                )),
                answered => answered,
            },
            Action::ReportFailure(c) => self.report_failure(c.into(), from),
            Action::WriteBack(k) => self.write_back(k, from),
            Action::Reload(k) => self.reload(k, from),
            Action::BeginCheckpoint => self.begin_checkpoint(from),
            Action::FlushPages => self.flush_pages(from),
            Action::WriteSuperblock => self.checkpoint_goes_on(from, |point| {
                matches!(point, Some(Event::SuperblockWritten { .. }))
            }),
            Action::FlushSuperblock => self.checkpoint_goes_on(from, |point| {
                matches!(point, Some(Event::SuperblockFlushed { .. }))
            }),
            Action::TruncateLog => self.truncate_log(),
            Action::Crash(_) => {
                let left = self
                    .atlas
                    .crash(&self.device, from, to)
                    .map_err(Not::Same)?;
                self.end_process();
                self.device = Arc::new(left);
                Ok(())
            }
            Action::Restart => {
                let left = self.device.copy();
                self.end_process();
                self.device = Arc::new(left);
                Ok(())
            }
            Action::LoadSuperblock => self.load_superblock(),
            Action::RedoRecord => self.opening_stops(
                |point| matches!(point, Some(Event::RecordRead { .. } | Event::RedoEnds)),
                |point| matches!(point, Some(Event::RecordRead { .. })),
            ),
            Action::FinishRedo => {
                self.sweep = Sweep::Begun;
                self.opening_stops(
                    |point| {
                        matches!(
                            point,
                            Some(Event::RecordRead { .. } | Event::CheckpointBegins { .. })
                        )
                    },
                    |point| matches!(point, Some(Event::CheckpointBegins { .. })),
                )
            }
            Action::FinishRecovery => self.finish_recovery(),
        }
    }

    fn key(&self, k: u8) -> &[u8] {
        &self.setup.keys[usize::from(k)]
    }

    fn page(&self, k: u8) -> treering_engine::PageId {
        let mut pages = self.setup.pages.iter();
        *pages
            .find(|(_, key)| **key == k)
            .expect("a page for each key")
            .0
    }

    fn read_page(&mut self, c: usize, from: &State, to: &State) -> Step {
        let Call::Get { key, .. } = from.call(c as u8) else {
            return differs("no get");
        };
        let mut found = Vec::new();
        let got = self.store()?.get(self.key(key), &mut found);
        let version = value::version(&found).unwrap_or(u64::MAX);
        self.clients[c].got = version;
        if !matches!(got, Ok(true)) {
            return differs(format!("get returned {got:?}"));
        }
        same("what is read", version, to.got(c as u8))
    }

    fn append_log(&mut self, c: usize, from: &State, to: &State) -> Step {
        let Call::Write { key, value, .. } = from.call(c as u8) else {
            return differs("no write");
        };
        let mut bytes = std::mem::take(&mut self.bytes);
        self.setup.fill(&mut bytes, value.into());
        let (store, key) = (self.store()?.clone(), self.key(key).to_vec());
        self.clients[c] = Client::default();
        self.actors[c].begin(
            |point| matches!(point, Some(Event::PageChanged { .. })),
            move || Outcome::Put(store.put(&key, &bytes)),
        );
        let Said::Stopped(Some(Event::PageChanged { lsn, .. })) = self.actors[c].wait() else {
            return differs("the put did not change its page");
        };
        let wanted = to.logged().find(|(client, _)| usize::from(*client) == c);
        let lsn = self.setup.scale.position(lsn).map_err(Not::Same)?;
        same("the LSN", lsn, wanted.map(|(_, lsn)| lsn))
    }

    fn change_page(&mut self, c: usize, from: &State) -> Step {
        self.actors[c].go_on(NOWHERE);
        let Said::Finished(Outcome::Put(Ok(lsn))) = self.actors[c].wait() else {
            return differs("the put failed");
        };
        self.clients[c].lsn = lsn;
        // The beginning of a checkpoint that waited for this latch continues, and takes the other
        // pages' latches briefly.
        if self.keeper.is_busy() && !self.keeper.is_stopped() {
            self.settle_keeper()?;
        }
        let n = self.setup.scale.position(lsn).map_err(Not::Same)?;
        if n <= from.durable() {
            let synced = self.store()?.sync(lsn).is_ok();
            self.clients[c].synced = Some(synced);
        } else if n <= from.flushing() {
            self.sleep(c)?;
        }
        Ok(())
    }

    /// Makes the client wait for the flush in flight.
    fn sleep(&mut self, c: usize) -> Step {
        let (store, lsn) = (self.store()?.clone(), self.clients[c].lsn);
        self.actors[c].begin(NOWHERE, move || Outcome::Done(store.sync(lsn)));
        Ok(())
    }

    fn flush_log(&mut self, c: usize, from: &State) -> Step {
        let (store, lsn) = (self.store()?.clone(), self.clients[c].lsn);
        self.actors[c].begin(
            |point| matches!(point, Some(Event::LogWritten { .. })),
            move || Outcome::Done(store.sync(lsn)),
        );
        let Said::Stopped(_) = self.actors[c].wait() else {
            return differs("the sync did not write the log");
        };
        self.leader = Some(c);
        for other in from.waiting().map(usize::from).filter(|other| *other != c) {
            self.sleep(other)?;
        }
        Ok(())
    }

    /// Lets the leader continue, which wakes all sleeping clients.
    fn end_flush(&mut self, well: bool) -> Step {
        let Some(leader) = self.leader.take() else {
            return differs("no client leads a flush");
        };
        self.actors[leader].go_on(NOWHERE);
        for c in 0..2 {
            // Clients in the middle of a put slept for nothing.
            if !self.actors[c].is_busy() || self.actors[c].is_stopped() {
                continue;
            }
            let Said::Finished(Outcome::Done(synced)) = self.actors[c].wait() else {
                return differs("no sync");
            };
            if synced.is_ok() != well {
                return differs(format!("the sync of client c{} returned {synced:?}", c + 1));
            }
            self.clients[c].synced = Some(well);
        }
        Ok(())
    }

    fn fail_flush(&mut self, mirror: &WalRecovery, from: &State) -> Step {
        if self.leader.is_some() {
            self.device.fail_next_flush();
            return self.end_flush(false);
        }
        let opening = from.phase() == Phase::Opening;
        match from.checkpoint().0 {
            Checkpoint::Written => {
                let actor = if opening {
                    &mut self.opener
                } else {
                    &mut self.keeper
                };
                self.device.fail_next_flush();
                actor.go_on(NOWHERE);
                fails(actor.wait())
            }
            _ if opening => {
                // The flush for the sweep's next page, or the sweep's own flush.
                if self.sweep == Sweep::Begun {
                    self.sweep_on()?;
                }
                self.device.fail_next_flush();
                self.opener.go_on(NOWHERE);
                fails(self.opener.wait())
            }
            _ => match graph::page_to_write(mirror, from) {
                Some(key) => {
                    self.device.fail_next_flush();
                    match self.write_page(key)? {
                        Err(_) => Ok(()),
                        Ok(wrote) => differs(format!("write-back returned {wrote} and no error")),
                    }
                }
                None => {
                    self.keeper_is_free()?;
                    self.device.fail_next_flush();
                    self.pump_to_the_end(NOWHERE)?;
                    fails(self.keeper.wait())
                }
            },
        }
    }

    /// Fails the flush of the log in flight, which the engine with a seeded bug does not notice.
    pub(super) fn flush_fails_unnoticed(&mut self, to: &State) -> Step {
        if self.leader.is_none() {
            return differs("no flush of the log is in flight");
        }
        self.device.fail_next_flush();
        self.end_flush(true)?;
        self.atlas.compare(&self.device, to).map_err(Not::Same)
    }

    fn answer_write(&mut self, c: usize, well: bool) -> Step {
        let synced = match self.clients[c].synced {
            Some(synced) => synced,
            None => self.store()?.sync(self.clients[c].lsn).is_ok(),
        };
        self.clients[c].synced = Some(synced);
        same("whether it is acknowledged", synced, Some(well))
    }

    fn report_failure(&mut self, c: usize, from: &State) -> Step {
        let Call::Write { key, lsn, .. } = from.call(c as u8) else {
            return differs("no write");
        };
        if lsn != 0 {
            return self.answer_write(c, false);
        }
        let put = self.store()?.put(self.key(key), b"");
        same("whether the put is refused", put.is_err(), Some(true))
    }

    fn write_back(&mut self, k: u8, from: &State) -> Step {
        if from.phase() == Phase::Opening {
            return self.write_back_of_opening(k);
        }
        let written = self.write_page(k)?;
        match written {
            Ok(true) => Ok(()),
            other => differs(format!("write-back returned {other:?}")),
        }
    }

    /// Writes the page of key `k` back. Tries again while the beginning of a checkpoint holds its
    /// latch.
    fn write_page(&mut self, k: u8) -> Step<Result<bool>> {
        let page = self.page(k);
        for _ in 0..300 {
            let written = self.store()?.write_back_page(page);
            StepDevice::ignore_none();
            match written {
                Ok(false) if self.keeper.is_busy() => std::thread::yield_now(),
                written => return Ok(written),
            }
            self.settle_keeper()?;
        }
        Ok(Ok(false))
    }

    fn reload(&mut self, k: u8, from: &State) -> Step {
        let page = self.page(k);
        let store = self.store()?;
        // If the page is not in memory, it will be read when it is next asked for.
        let reloaded = store.reload_page(page);
        match reloaded {
            Ok(false) if from.dirtied(k) != 0 => differs("the dirty page stays in memory"),
            Ok(_) => Ok(()),
            Err(e) => differs(format!("reading it again: {e}")),
        }
    }

    /// Ends the process, wherever its threads are. The device keeps what it has.
    pub(super) fn end_process(&mut self) {
        self.device.kill();
        let [a, b] = &mut self.actors;
        let all = [a, b, &mut self.keeper, &mut self.opener];
        for actor in all {
            // Stopped threads first, since others may wait for them.
            if actor.is_stopped() {
                actor.go_on(NOWHERE);
            }
        }
        let [a, b] = &mut self.actors;
        for actor in [a, b, &mut self.keeper, &mut self.opener] {
            while actor.is_busy() {
                if let Said::Stopped(_) = actor.wait() {
                    actor.go_on(NOWHERE);
                }
            }
        }
        self.store = None;
        self.leader = None;
        self.sweep = Sweep::Begun;
    }

    /// Whether a crash in this state can leave what `to` has. The outcome is made on a copy, and
    /// compared.
    pub(super) fn try_crash(&self, from: &State, to: &State) -> Step {
        let left = self
            .atlas
            .crash(&self.device, from, to)
            .map_err(Not::Same)?;
        self.atlas.compare(&left, to).map_err(Not::Same)
    }

    /// Whether a process that is restarted in this state builds on what `to` has. Another process
    /// is started on a copy, and runs until recovery begins.
    pub(super) fn try_restart(&self, to: &State) -> Step {
        let copy = Arc::new(self.device.copy());
        let clock = Arc::new(SystemClock::new());
        let cut = Arc::new(Cut(copy.clone()));
        let opened = Store::open_observed(copy.clone(), clock, self.setup.options(), Some(cut));
        if opened.is_ok() {
            return differs("recovery did not read the device");
        }
        self.atlas.compare(&copy, to).map_err(Not::Same)
    }
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, engine: T, spec: Option<T>) -> Step {
    if spec.as_ref() == Some(&engine) {
        return Ok(());
    }
    differs(format!("{what} is {engine:?}, and in the spec {spec:?}"))
}

fn fails(said: Said) -> Step {
    match said {
        Said::Finished(Outcome::Done(Err(_)) | Outcome::Opened(Err(_))) => Ok(()),
        Said::Finished(_) => differs("the flush failed, and no error was returned"),
        Said::Stopped(point) => differs(format!("it stopped at {point:?}")),
    }
}
