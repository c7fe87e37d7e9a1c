//! The judge: takes, for each recorded entry, the step of the mirror that corresponds to it.
//!
//! The first entry for which the mirror has no step, or another outcome, is a [`Refusal`]. The
//! correspondence is described in [`super`], and implemented here.

use std::collections::BTreeMap;
use std::sync::Arc;

use treering_engine::events::{Cow, Event, Shadow, Snapshot};
use treering_engine::{Lsn, PageId};

use super::found::Found;
use super::setup::Setup;
use crate::conformance::behaviour::Constants;
use crate::conformance::led::{Leads, Notes, holds};
use crate::conformance::paged;
use crate::conformance::record;
use crate::conformance::refused::{self, Accepted, same};
use crate::mirror::wide::copy_on_write::{Action, Call, CopyOnWrite, Phase, State};

/// A recorded event.
pub type Heard = paged::Heard<Found>;

/// A recorded event and its client.
pub type Entry = paged::Entry<Found>;

/// An event that the mirror does not allow.
pub type Refusal = refused::Refusal<Heard, Action>;

/// The phase that the engine is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    /// The store runs, or redoes the log.
    Runs,
    /// A write or flush has failed. Until the next opening nothing is written, and reads are not
    /// judged.
    Failed,
    /// Between the end of a process and the beginning of redo: the mirror does this in `Restart`.
    Opens,
}

/// Judges one recording.
pub struct Judge<'a> {
    pub(super) setup: &'a Setup,
    pub(super) mirror: CopyOnWrite,
    // Boxed because it is large.
    pub(super) state: Box<State>,
    pub(super) life: Life,
    /// Set if the process was restarted without a power failure.
    pub(super) restarting: Option<Arc<Found>>,
    /// Whether the table is being written without a change.
    blank: bool,
    /// The number of records read by recovery.
    pub(super) read: u64,
    /// The numbers of the recording's records, by LSN.
    pub(super) appended: BTreeMap<Lsn, u64>,
    /// The number of records in the prologue. Their values existed before the episode.
    pub(super) prologue: u64,
    /// The engine's superblocks have numbers that are greater by this.
    pub(super) ahead: u64,
    /// The version of each value.
    versions: Vec<u64>,
    writes: u64,
    pub(super) notes: Notes<CopyOnWrite>,
}

impl Leads for Judge<'_> {
    type Mirror = CopyOnWrite;
    type Found = Found;

    const CHECK_EVERY: u64 = 61;

    fn led(&self) -> (&CopyOnWrite, &Box<State>, &Notes<CopyOnWrite>) {
        (&self.mirror, &self.state, &self.notes)
    }

    fn led_mut(&mut self) -> (&mut CopyOnWrite, &mut Box<State>, &mut Notes<CopyOnWrite>) {
        (&mut self.mirror, &mut self.state, &mut self.notes)
    }

    fn constants(&self) -> Constants {
        self.constants_of_spec()
    }

    fn is_one_of_many(action: &Action) -> bool {
        matches!(
            action,
            Action::CallGet(..) | Action::CallWrite(..) | Action::WriteImage(..)
        )
    }

    fn accept(&mut self, client: Option<u8>, heard: &Heard) -> Accepted {
        self.judge(client, heard)
    }
}

impl<'a> Judge<'a> {
    /// A judge for a store that `setup` has built, at rest.
    ///
    /// # Panics
    /// If the mirror's own steps do not lead to that state.
    #[must_use]
    pub fn new(clients: u8, setup: &'a Setup) -> Judge<'a> {
        let slots = CopyOnWrite::MOST_SLOTS;
        let mirror = CopyOnWrite::unbounded(usize::from(clients), setup.pages.len(), slots);
        let mut judge = Judge {
            setup,
            state: Box::new(mirror.first(setup.writes_each())),
            mirror,
            life: Life::Runs,
            restarting: None,
            blank: false,
            read: 0,
            appended: BTreeMap::new(),
            prologue: 0,
            ahead: 0,
            versions: vec![0],
            writes: 0,
            notes: Notes::default(),
        };
        let built = judge.build();
        built.expect("the prologue is of the mirror's own steps");
        judge.notes = Notes::default();
        judge
    }

    /// `Init` has no pages. Steps of the mirror lead from there to the store at rest: each page in
    /// its slot, the snapshot in its, and nothing to be redone.
    fn build(&mut self) -> Accepted {
        // The first snapshot is in slot 1, which a page may need.
        self.checkpoint(self.spare(0)?)?;
        for p in 0..self.setup.pages.len() {
            let (page, slot) = (p as u8, self.setup.pages[p].slot as u8 + 1);
            self.take(Action::CallWrite(0, page, false))?;
            self.take(Action::BuildPage(0))?;
            self.take(Action::CommitLog(self.state.log_len() as _))?;
            self.take(Action::Acknowledge(0))?;
            self.versions.push(self.setup.first_version(p));
            self.take(Action::WriteImage(page, slot))?;
            if self.setup.writes_each() {
                self.take(Action::NameImage)?;
                self.take(Action::FinishTable)?;
            }
        }
        self.prologue = self.state.log_len();
        self.checkpoint(self.spare(1)?)?;
        // Of the last number, as the engine's, the same place.
        if self.state.number() % 2 == self.setup.newest.number % 2 {
            self.checkpoint(self.spare(2)?)?;
        }
        self.checkpoint(self.setup.newest.snapshot as u8 + 1)?;
        self.ahead = self.setup.newest.number - self.state.number();
        Ok(())
    }

    /// A slot that neither a page nor the snapshot of the setup has.
    fn spare(&self, n: usize) -> Result<u8, String> {
        let taken = |slot: &u64| {
            let mut pages = self.setup.pages.iter();
            pages.any(|page| page.slot == *slot) || self.setup.newest.snapshot == *slot
        };
        let mut spare = (1..CopyOnWrite::MOST_SLOTS as u64).filter(|slot| !taken(slot));
        let slot = spare.nth(n).ok_or("no slot is free")?;
        Ok(slot as u8 + 1)
    }

    /// A whole checkpoint, with its snapshot in this slot.
    fn checkpoint(&mut self, slot: u8) -> Accepted {
        self.take(Action::BeginCheckpoint)?;
        self.take(Action::WriteSnapshot(slot))?;
        if self.mirror.is_table_dirty(&self.state) {
            self.take(Action::WriteTable)?;
            self.take(Action::FinishTable)?;
        }
        self.take(Action::PersistTable)?;
        self.take(Action::WriteSuper)?;
        self.take(Action::FinishCheckpoint)
    }

    fn judge(&mut self, client: Option<u8>, heard: &Heard) -> Accepted {
        match heard {
            Heard::Said(record::Heard::Engine(event)) => self.engine(client, *event),
            Heard::Said(said) => self.client(client.ok_or("the event belongs to no client")?, said),
            Heard::Crashed(found) => self.crashed(found),
            Heard::Restarted(found) => {
                self.ended(Some(found));
                Ok(())
            }
        }
    }

    fn client(&mut self, c: u8, said: &record::Heard) -> Accepted {
        if matches!(said, record::Heard::CallWrite { .. }) {
            self.writes += 1;
        }
        if self.life == Life::Failed {
            // A call that began after the failure is none of the mirror's.
            if matches!(said, record::Heard::Refused) && self.state.poisoned() {
                self.try_step(&Action::FailCall(c));
            }
            return Ok(());
        }
        match said {
            record::Heard::CallGet(page) => self.take(Action::CallGet(c, *page)),
            record::Heard::CallWrite { key, .. } => self.take(Action::CallWrite(c, *key, false)),
            record::Heard::Answered(version) => {
                let got = self.state.got(c).ok_or("it has read nothing")?;
                let is = same("the version", *version, self.versions[got as usize]);
                self.claim(is, || {
                    // No value is 0: it stands for what nobody has written.
                    let known = self.versions.iter().rposition(|known| known == version);
                    holds(&format!("call[c{}].got = {}", c + 1, known.unwrap_or(0)))
                })?;
                self.take(Action::AnswerGet(c))
            }
            record::Heard::Refused => {
                if matches!(self.state.call(c), Call::Write { lsn, .. } if lsn > 0) {
                    let why = "nothing has failed that could lose the write".into();
                    return self.claim(Err(why), || format!("FailCall(c{})", c + 1));
                }
                // A page could not be read.
                self.life = Life::Failed;
                Ok(())
            }
            other => Err(format!("{other:?} is not an event of a client here")),
        }
    }

    fn engine(&mut self, client: Option<u8>, event: Event) -> Accepted {
        match (event, self.life) {
            (Event::RecoveryBegins { redo_start, .. }, _) => self.recovery_begins(redo_start),
            (Event::Shadow(event), _) => self.device(event),
            (_, Life::Opens) => Ok(()),
            (Event::LogFlushed { to }, _) => self.log_flushed(to),
            (Event::LogFlushFailed { .. } | Event::Failed | Event::CheckpointFailed, _) => {
                self.life = Life::Failed;
                Ok(())
            }
            (Event::Cow(event), _) => self.cow(event),
            (Event::Snapshot(Snapshot::WritesChunk { number, slot, .. }), _) => {
                let next = self.state.number() + 1;
                let number = number - self.ahead;
                let is = same("the snapshot's number", number, next);
                self.claim(is, || holds(&format!("super.number + 1 = {number}")))?;
                self.take(Action::WriteSnapshot(slot as u8 + 1))
            }
            (_, Life::Failed) => Ok(()),
            (event, _) => self.serves(client, event),
        }
    }

    fn device(&mut self, event: Shadow) -> Accepted {
        match event {
            Shadow::DeviceFlushFailed => {
                let opens = self.life == Life::Opens;
                if self.state.has_unflushed() && !self.state.poisoned() && !opens {
                    self.take(Action::FailFlush)?;
                }
                if !opens {
                    self.life = Life::Failed;
                }
                Ok(())
            }
            Shadow::DeviceFlushed if self.life == Life::Opens => Ok(()),
            Shadow::DeviceFlushed if self.state.poisoned() || self.state.has_unflushed() => {
                self.take(Action::FlushDevice)
            }
            _ => Ok(()),
        }
    }

    fn cow(&mut self, event: Cow) -> Accepted {
        match event {
            Cow::WritesImage { page, lsn, slot } => {
                let p = self.page(page)?;
                let lsn = self.number(p, lsn)?;
                self.same_lsn(p, lsn)?;
                self.take(Action::WriteImage(p as u8, slot as u8 + 1))
            }
            Cow::WritesTable => {
                if self
                    .state
                    .slots_of_table()
                    .any(|slot| self.state.is_slot_unflushed(slot))
                {
                    let why = "it would name an image that is not durable".into();
                    return self.claim(Err(why), || {
                        let new = r#"IF writing.at = "image" THEN {writing.slot} ELSE {}"#;
                        let named = format!("NamedBy(table) \\cup {new}");
                        holds(&format!("\\A s \\in {named} : Len(slotDev[s]) = 1"))
                    });
                }
                if self.try_step(&Action::NameImage) || self.try_step(&Action::WriteTable) {
                    return Ok(());
                }
                if self.mirror.is_table_dirty(&self.state) {
                    let why = "neither NameImage nor WriteTable is enabled".into();
                    return self.claim(Err(why), || "NameImage \\/ WriteTable".into());
                }
                self.blank = true;
                Ok(())
            }
            Cow::TableWritten if std::mem::take(&mut self.blank) => Ok(()),
            Cow::TableWritten => {
                if self.state.is_table_unflushed() {
                    return self.claim(Err("the table is not durable".into()), || {
                        holds("\\A b \\in Blocks : Len(tableDev[b]) = 1")
                    });
                }
                self.take(Action::FinishTable)
            }
        }
    }

    /// Handles the events of a store in operation.
    fn serves(&mut self, client: Option<u8>, event: Event) -> Accepted {
        match event {
            Event::LogAppended { lsn, page } => self.log_appended(client, lsn, page),
            Event::StructureAppended { .. } => {
                Err("the episode should have no splits or merges".into())
            }
            Event::PageChanged { page, lsn }
            | Event::PageCopied { page, lsn }
            | Event::PageWriting { page, lsn }
            | Event::PageLoaded { page, lsn } => {
                // Other leaves are read when the store is opened, and never change.
                let Ok(p) = self.page(page) else {
                    return Ok(());
                };
                let lsn = self.number(p, lsn)?;
                self.same_lsn(p, lsn)
            }
            Event::PageRead { page, lsn } => {
                let c = client.ok_or("no client reads it")?;
                let p = self.page(page)?;
                let lsn = self.number(p, lsn)?;
                self.same_lsn(p, lsn)?;
                match self.state.call(c) {
                    Call::Get { page, .. } if usize::from(page) == p => {
                        self.take(Action::ReadPage(c))
                    }
                    other => {
                        let why = format!("client c{} does not get it: {other:?}", c + 1);
                        let page = holds(&format!("call[c{}].key = p{}", c + 1, p + 1));
                        self.claim(Err(why), || page)
                    }
                }
            }
            Event::Acknowledged { lsn } => self.acknowledged(client, lsn),
            Event::RecordRead { lsn, page } => {
                let p = self.page(page)?;
                let n = self.number(p, lsn)?;
                same("the record's number", n, self.read + 1)?;
                let is = same("the record's page", Some(p), self.state.page_of_record(n));
                self.claim(is, || holds(&format!("log[{n}].page = p{}", p + 1)))?;
                self.read = n;
                Ok(())
            }
            Event::PageRedone { page, lsn } => {
                let p = self.page(page)?;
                let n = self.number(p, lsn)?;
                let redone = self.step(&Action::RedoRecord, |mirror, s| mirror.try_redo(s, n));
                let not = || format!("RedoRecord of {n} on page p{} is not enabled", p + 1);
                self.claim(redone.then_some(()).ok_or_else(not), || {
                    format!("RedoOnPage({n})")
                })
            }
            Event::RedoEnds => {
                let is = same("the last record read", self.read, self.state.log_len());
                self.claim(is, || holds(&format!("Len(log) = {}", self.read)))?;
                let before = self.state.clone();
                let finished = self.mirror.try_finish_redo(&mut self.state);
                let lacks = |(p, n)| format!("page p{} still lacks record {n}", p + 1);
                self.claim(finished.map_err(lacks), || "FinishRedoOfPages".into())?;
                self.took(&Action::FinishRedo, Some(&before));
                Ok(())
            }
            Event::CheckpointBegins { .. }
            | Event::PagesWritten { .. }
            | Event::SuperblockWriting { .. }
            | Event::SuperblockFlushed { .. }
            | Event::LogTruncated { .. } => self.checkpoints(event),
            // The spec has no more of the log, and of the end of a write, than other events report.
            _ => Ok(()),
        }
    }

    fn checkpoints(&mut self, event: Event) -> Accepted {
        match event {
            Event::CheckpointBegins { begin } => {
                if self.state.phase() == Phase::Clearing {
                    self.take(Action::Open)?;
                }
                let begin = self.position(begin);
                let is = same("its beginning", begin, self.state.log_len());
                self.claim(is, || holds(&format!("Len(log) = {begin}")))?;
                self.take(Action::BeginCheckpoint)
            }
            Event::PagesWritten { .. } => self.take(Action::PersistTable),
            Event::SuperblockWriting { redo_start, .. } => {
                let snapshot = self.state.new_snapshot();
                if self.state.is_slot_unflushed(snapshot) {
                    return self.claim(Err("its snapshot is not durable".into()), || {
                        holds("Len(slotDev[checkpoint.slot]) = 1")
                    });
                }
                let redo_start = self.position(redo_start);
                let is = same("the redo start", redo_start, self.state.begun());
                self.claim(is, || holds(&format!("checkpoint.begin = {redo_start}")))?;
                self.take(Action::WriteSuper)
            }
            Event::SuperblockFlushed { .. } => {
                if self.state.is_super_unflushed() {
                    return self.claim(Err("the superblock is not durable".into()), || {
                        holds("\\A i \\in SuperPlaces : Len(superDev[i]) = 1")
                    });
                }
                self.take(Action::FinishCheckpoint)
            }
            Event::LogTruncated { redo_start } => self.same_redo_start(redo_start),
            _ => Ok(()),
        }
    }

    fn log_appended(&mut self, client: Option<u8>, lsn: Lsn, page: PageId) -> Accepted {
        let c = client.ok_or("no client writes")?;
        let p = self.page(page)?;
        match self.state.call(c) {
            Call::Write { page, .. } => {
                let is = same("the page", p, usize::from(page));
                self.claim(is, || holds(&format!("call[c{}].key = p{}", c + 1, p + 1)))?;
            }
            other => {
                let why = format!("client c{} does not write: {other:?}", c + 1);
                return self.claim(Err(why), || format!("ChangePage(c{})", c + 1));
            }
        }
        self.take(Action::ChangePage(c))?;
        let n = self.state.log_len();
        self.versions.truncate(n as usize);
        self.versions.push(self.writes);
        self.appended.insert(lsn, n);
        Ok(())
    }

    fn log_flushed(&mut self, to: Lsn) -> Accepted {
        let n = self.position(to);
        if n <= self.state.durable() {
            return Ok(());
        }
        self.take(Action::CommitLog(n as _))
    }

    fn acknowledged(&mut self, client: Option<u8>, lsn: Lsn) -> Accepted {
        let n = self.position(lsn);
        if let Some(c) = client
            && let Call::Write { lsn: mine, .. } = self.state.call(c)
            && mine > 0
            && u64::from(mine) <= n
        {
            return self.take(Action::Acknowledge(c));
        }
        let durable = self.state.durable();
        if n > durable {
            let why = format!("{n} is reported durable, but only {durable} is");
            return self.claim(Err(why), || holds(&format!("{n} <= durable")));
        }
        Ok(())
    }

    fn same_lsn(&self, p: usize, lsn: u64) -> Accepted {
        let is = same("the page's LSN", Some(lsn), self.state.lsn_of(p));
        self.claim(is, || {
            holds(&format!(
                "page[p{0}] # Gone /\\ page[p{0}].lsn = {lsn}",
                p + 1
            ))
        })
    }

    /// The superblock's redo start.
    pub(super) fn same_redo_start(&self, redo_start: Lsn) -> Accepted {
        let redo_start = self.position(redo_start);
        let is = same("the redo start", redo_start, self.state.redo_start());
        self.claim(is, || holds(&format!("super.redo = {redo_start}")))
    }

    // Requests to the mirror, and translations of numbers.

    fn try_step(&mut self, action: &Action) -> bool {
        self.step(action, |mirror, s| mirror.try_take(s, *action))
    }

    fn page(&self, page: PageId) -> Result<usize, String> {
        let mut pages = self.setup.pages.iter();
        let p = pages.position(|known| known.id == page);
        p.ok_or_else(|| format!("{page} is not a page of the episode"))
    }

    /// The spec's LSN for an LSN of page `p`, or of a record of it.
    pub(super) fn number(&self, p: usize, lsn: Lsn) -> Result<u64, String> {
        if lsn == self.setup.pages[p].lsn {
            let mut records = 1..=self.prologue;
            let first = records.find(|n| self.state.page_of_record(*n) == Some(p));
            return first.ok_or_else(|| format!("page p{} has no first record", p + 1));
        }
        let n = self.appended.get(&lsn).copied();
        n.ok_or_else(|| format!("{lsn} is not the LSN of a remaining record"))
    }

    /// The number of records before this position of the log.
    pub(super) fn position(&self, lsn: Lsn) -> u64 {
        let before = self.appended.range(..=lsn).next_back();
        before.map_or(self.prologue, |(_, n)| *n)
    }
}
