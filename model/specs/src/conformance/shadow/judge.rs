//! The judge: takes, for each recorded entry, the step of the mirror that corresponds to it.
//!
//! The first entry for which the mirror has no step, or another outcome, is a [`Refusal`]. The
//! correspondence is described in [`super`], and implemented here.

use std::collections::BTreeMap;
use std::sync::Arc;

use treering_engine::events::{Event, Shadow};
use treering_engine::{Lsn, PageId};

use super::found::Found;
use super::setup::Setup;
use crate::conformance::behaviour::Constants;
use crate::conformance::led::{Leads, Notes, holds};
use crate::conformance::paged;
use crate::conformance::record;
use crate::conformance::refused::{self, Accepted, same};
use crate::mirror::wide::page_shadowing::{Action, Call, PageShadowing, State};

/// A recorded event.
pub type Heard = paged::Heard<Found>;

/// A recorded event and its client.
pub type Entry = paged::Entry<Found>;

/// An event that the mirror does not allow.
pub type Refusal = refused::Refusal<Heard, Action>;

/// The reported result of reading both slots of a page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Choice {
    pub(super) slot: u8,
    pub(super) lsn: u64,
    pub(super) delta: Option<u32>,
    pub(super) leftover: bool,
}

/// The phase that the engine is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
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
    pub(super) mirror: PageShadowing,
    // Boxed because it is large.
    pub(super) state: Box<State>,
    pub(super) phase: Phase,
    /// Set if the process was restarted without a power failure.
    pub(super) restarting: Option<Arc<Found>>,
    /// The choices made for pages that are not in memory yet.
    pub(super) chosen: BTreeMap<usize, Choice>,
    /// The redo start of a superblock whose write is in progress, and the state if it reaches the
    /// device.
    pub(super) recorded: Option<(u64, Box<State>)>,
    /// The number of records read by recovery.
    pub(super) read: u64,
    /// The numbers of the recording's records, by LSN.
    pub(super) appended: BTreeMap<Lsn, u64>,
    /// The number of records in the prologue. Their values existed before the episode.
    pub(super) prologue: u64,
    /// The version of each value.
    pub(super) versions: Vec<u64>,
    writes: u64,
    pub(super) notes: Notes<PageShadowing>,
}

impl Leads for Judge<'_> {
    type Mirror = PageShadowing;
    type Found = Found;

    const CHECK_EVERY: u64 = 61;

    fn led(&self) -> (&PageShadowing, &Box<State>, &Notes<PageShadowing>) {
        (&self.mirror, &self.state, &self.notes)
    }

    fn led_mut(
        &mut self,
    ) -> (
        &mut PageShadowing,
        &mut Box<State>,
        &mut Notes<PageShadowing>,
    ) {
        (&mut self.mirror, &mut self.state, &mut self.notes)
    }

    fn constants(&self) -> Constants {
        self.constants_of_spec()
    }

    fn is_one_of_many(action: &Action) -> bool {
        matches!(action, Action::CallGet(..) | Action::CallWrite(..))
    }

    fn accept(&mut self, client: Option<u8>, heard: &Heard) -> Accepted {
        self.judge(client, heard)
    }
}

impl<'a> Judge<'a> {
    /// A judge for a store that `setup` has built, just opened.
    ///
    /// # Panics
    /// If the mirror's own steps do not lead to that state.
    #[must_use]
    pub fn new(clients: u8, setup: &'a Setup) -> Judge<'a> {
        let threshold = setup.threshold();
        let mirror = PageShadowing::unbounded(
            usize::from(clients),
            setup.pages.len(),
            setup.segments(),
            threshold,
        );
        let mut judge = Judge {
            setup,
            mirror,
            state: Box::new(State::first()),
            phase: Phase::Runs,
            restarting: None,
            chosen: BTreeMap::new(),
            recorded: None,
            read: 0,
            appended: BTreeMap::new(),
            prologue: 0,
            versions: vec![0],
            writes: 0,
            notes: Notes::default(),
        };
        let built = judge.build();
        built.expect("the prologue is of the mirror's own steps");
        judge.notes = Notes::default();
        judge
    }

    /// `Init` has empty pages in memory. Steps of the mirror lead from there to the state in which
    /// the engine's episode begins: each page is whole in one of its slots, nothing else of it is
    /// on the device, nothing is in memory, and nothing is to be redone.
    fn build(&mut self) -> Accepted {
        for p in 0..self.setup.pages.len() {
            let page = p as u8;
            // The first image goes to slot 0.
            for _ in 0..=self.setup.pages[p].slot {
                for segment in 0..self.setup.segments() {
                    let key = PageShadowing::key_of(p, segment);
                    self.take(Action::CallWrite(0, key))?;
                    self.take(Action::ChangePage(0))?;
                    self.take(Action::CommitLog(self.state.log_len() as _))?;
                    self.take(Action::Acknowledge(0))?;
                    self.versions.push(self.setup.first_version(key));
                }
                self.take(Action::WriteWhole(page))?;
                self.take(Action::FlushDevice)?;
                self.take(Action::Trim(page))?;
            }
            self.take(Action::Evict(page))?;
        }
        self.take(Action::Checkpoint)?;
        self.prologue = self.state.log_len();
        let restarted = self.mirror.try_restart(&mut self.state, self.prologue);
        restarted
            .then_some(())
            .ok_or("Restart is not enabled".to_owned())?;
        self.take(Action::FinishRedo)
    }

    fn judge(&mut self, client: Option<u8>, heard: &Heard) -> Accepted {
        match heard {
            Heard::Said(record::Heard::Engine(event)) => self.engine(client, *event),
            Heard::Said(said) => self.client(client.ok_or("the event belongs to no client")?, said),
            Heard::Crashed(found) => self.crashed(found),
            Heard::Restarted(found) => self.ended(Some(found)),
        }
    }

    fn client(&mut self, c: u8, said: &record::Heard) -> Accepted {
        if matches!(said, record::Heard::CallWrite { .. }) {
            self.writes += 1;
        }
        if self.phase == Phase::Failed {
            return Ok(());
        }
        match said {
            record::Heard::CallGet(key) => self.take(Action::CallGet(c, *key)),
            record::Heard::CallWrite { key, .. } => self.take(Action::CallWrite(c, *key)),
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
                    return Err("nothing has failed that could lose the write".into());
                }
                // A page could not be read.
                self.phase = Phase::Failed;
                Ok(())
            }
            other => Err(format!("{other:?} is not an event of a client here")),
        }
    }

    fn engine(&mut self, client: Option<u8>, event: Event) -> Accepted {
        match (event, self.phase) {
            (Event::Shadow(event), _) => self.shadow(event),
            (Event::RecoveryBegins { redo_start, .. }, _) => self.recovery_begins(redo_start),
            (Event::LogFlushed { to }, _) => self.log_flushed(to),
            (Event::SuperblockWriting { redo_start, .. }, _) => {
                self.checkpoint(self.position(redo_start))
            }
            (Event::SuperblockFlushed { .. }, _) => {
                self.choose_recorded();
                Ok(())
            }
            (Event::LogFlushFailed { .. } | Event::Failed | Event::CheckpointFailed, _) => {
                self.phase = Phase::Failed;
                Ok(())
            }
            (_, Phase::Failed) => Ok(()),
            (event, _) => self.serves(client, event),
        }
    }

    /// Handles the events of a store in operation.
    fn serves(&mut self, client: Option<u8>, event: Event) -> Accepted {
        match event {
            Event::LogAppended { lsn, page } => self.log_appended(client, lsn, page),
            Event::StructureAppended { .. } => {
                Err("the spec has no splits or merges, so the episode should have none".into())
            }
            Event::PageChanged { page, lsn }
            | Event::PageCopied { page, lsn }
            | Event::PageWriting { page, lsn }
            | Event::PageLoaded { page, lsn } => {
                let p = self.page(page)?;
                let lsn = self.number(p, lsn)?;
                self.same_lsn(p, lsn)
            }
            Event::PageRead { page, lsn } => {
                let c = client.ok_or("no client reads it")?;
                let p = self.page(page)?;
                let lsn = self.number(p, lsn)?;
                self.same_lsn(p, lsn)?;
                match self.state.call(c) {
                    Call::Get { key, .. } if PageShadowing::page_and_segment(key).0 == p => {
                        self.take(Action::ReadPage(c))
                    }
                    other => {
                        let why = format!("client c{} does not get it: {other:?}", c + 1);
                        let page = holds(&format!("PageOf(call[c{}].key) = p{}", c + 1, p + 1));
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
                self.claim(is, || holds(&format!("PageOf(log[{n}].key) = p{}", p + 1)))?;
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
            // Of the log, of a checkpoint's steps and of the end of a write the spec has no more
            // than other events report.
            _ => Ok(()),
        }
    }

    fn log_appended(&mut self, client: Option<u8>, lsn: Lsn, page: PageId) -> Accepted {
        let c = client.ok_or("no client writes")?;
        let p = self.page(page)?;
        match self.state.call(c) {
            Call::Write { key, .. } => {
                let (of_key, _) = PageShadowing::page_and_segment(key);
                let is = same("the page", p, of_key);
                let page = format!("PageOf(call[c{}].key) = p{}", c + 1, p + 1);
                self.claim(is, || holds(&page))?;
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

    /// A checkpoint that gives up the log before record `n + 1` is about to be recorded. The spec
    /// has one step for it and for the flush after it. If that fails, or the power fails before,
    /// the device shows whether it was recorded.
    fn checkpoint(&mut self, n: u64) -> Accepted {
        if n == self.state.redo_start() {
            // There is nothing to give up.
            return Ok(());
        }
        let mut recorded = self.state.clone();
        if !self.mirror.try_checkpoint(&mut recorded, n) {
            let why = format!("Checkpoint up to {n} is not enabled");
            return self.claim(Err(why), || format!("CheckpointTo({n})"));
        }
        self.recorded = Some((n, recorded));
        Ok(())
    }

    /// The superblock whose write was in progress has reached the device.
    pub(super) fn choose_recorded(&mut self) {
        if let Some((_, recorded)) = self.recorded.take() {
            let before = std::mem::replace(&mut self.state, recorded);
            self.took(&Action::Checkpoint, Some(&before));
        }
    }

    fn shadow(&mut self, event: Shadow) -> Accepted {
        match event {
            Shadow::WritesDelta {
                page,
                lsn,
                base,
                delta,
            } => {
                let p = self.page(page)?;
                let (lsn, base) = (self.number(p, lsn)?, self.number(p, base)?);
                let there = self.in_memory(p)?;
                let is = same("LSN and base", (lsn, base), (there.lsn, there.base));
                self.claim(is, || {
                    holds(&format!(
                        "mem[p{0}].lsn = {lsn} /\\ mem[p{0}].base = {base}",
                        p + 1
                    ))
                })?;
                let is = same("|Δ|", delta, Setup::delta_bytes(there.dirty));
                self.claim(is, || self.dirty_claim(&format!("mem[p{}]", p + 1), delta))?;
                self.take(Action::WriteDelta(p as u8))
            }
            Shadow::WritesWhole { page, lsn, slot } => {
                let p = self.page(page)?;
                let lsn = self.number(p, lsn)?;
                self.same_lsn(p, lsn)?;
                self.take(Action::WriteWhole(p as u8))?;
                let is = same("the slot", slot, self.state.known(p).slot);
                self.instead(is, || {
                    format!("WriteWhole(p{0}) /\\ valid'[p{0}].slot = {slot}", p + 1)
                })
            }
            Shadow::Trims { page, slot, log } => {
                let p = self.page(page)?;
                let known = self.state.known(p);
                let is = same("the slot that is trimmed", slot, 1 - known.slot);
                self.claim(is, || {
                    holds(&format!("1 - valid[p{}].slot = {slot}", p + 1))
                })?;
                self.take(Action::Trim(p as u8))?;
                let log_too = self.setup.has_log_blocks() && !known.logged;
                let is = same("the log block is trimmed", log, log_too);
                self.claim(is, || {
                    let not = if log { "~" } else { "" };
                    holds(&format!("{not}valid[p{}].logged", p + 1))
                })
            }
            Shadow::DeviceFlushed if self.phase == Phase::Opens => Ok(()),
            Shadow::DeviceFlushed if self.state.poisoned() || self.state.has_unflushed() => {
                self.take(Action::FlushDevice)
            }
            Shadow::DeviceFlushed => Ok(()),
            Shadow::DeviceFlushFailed => {
                if self.state.has_unflushed() && !self.state.poisoned() {
                    self.take(Action::FailFlush)?;
                }
                if let Some((_, recorded)) = &mut self.recorded {
                    // This is not enabled if nothing was written.
                    self.mirror.try_take(recorded, Action::FailFlush);
                }
                self.phase = Phase::Failed;
                Ok(())
            }
            _ if self.phase == Phase::Failed => Ok(()),
            Shadow::Chose {
                page,
                slot,
                lsn,
                delta,
                leftover,
            } => {
                let p = self.page(page)?;
                let lsn = self.number(p, lsn);
                let choice = Choice {
                    slot,
                    // A record that is not in the log is on no page, by the mirror.
                    lsn: lsn.unwrap_or(u64::MAX),
                    delta,
                    leftover,
                };
                self.chosen.insert(p, choice);
                Ok(())
            }
            Shadow::Loaded {
                page,
                slot,
                base,
                delta,
            } => {
                let p = self.page(page)?;
                let base = self.number(p, base)?;
                self.load(p, slot, base, delta)
            }
            Shadow::Evicted { page } => {
                let p = self.page(page)?;
                self.take(Action::Evict(p as u8))
            }
        }
    }

    // Requests to the mirror, and translations of numbers.

    fn same_lsn(&self, p: usize, lsn: u64) -> Accepted {
        let is = same("the page's LSN", Some(lsn), self.lsn_of(p));
        self.claim(is, || {
            holds(&format!("IsIn(p{0}) /\\ mem[p{0}].lsn = {lsn}", p + 1))
        })
    }

    /// What is claimed of the segments that differ from the base image. The engine says how many
    /// bytes they are.
    pub(super) fn dirty_claim(&self, page: &str, delta: u32) -> String {
        let mut counts = 0..=self.setup.segments() as u32;
        let known = counts.find(|n| Setup::delta_bytes(*n) == delta);
        // No page has so many: it stands for bytes that are no number of segments.
        let many = known.unwrap_or(self.setup.segments() as u32 + 1);
        holds(&format!("Cardinality({page}.dirty) = {many}"))
    }

    fn in_memory(&self, p: usize) -> Result<super::InMemory, String> {
        let there = self.state.in_memory(p);
        there.ok_or_else(|| format!("page p{} is not in memory", p + 1))
    }

    fn lsn_of(&self, p: usize) -> Option<u64> {
        self.state.in_memory(p).map(|page| page.lsn)
    }

    fn page(&self, page: PageId) -> Result<usize, String> {
        let mut pages = self.setup.pages.iter();
        let p = pages.position(|known| known.id == page);
        p.ok_or_else(|| format!("{page} is not a page of the episode"))
    }

    /// The spec's LSN for an LSN of page `p`, or of a record of it.
    pub(super) fn number(&self, p: usize, lsn: Lsn) -> Result<u64, String> {
        if lsn == self.setup.pages[p].lsn {
            let mut records = (1..=self.prologue).rev();
            let last = records.find(|n| self.state.page_of_record(*n) == Some(p));
            return last.ok_or_else(|| format!("page p{} has no first record", p + 1));
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
