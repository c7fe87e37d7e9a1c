//! The judge: takes, for each recorded entry, the step of the mirror that corresponds to it.
//!
//! The first entry for which the mirror has no step, or another outcome, is a [`Refusal`]. The
//! correspondence is described in [`super`], and implemented here.

use std::collections::BTreeMap;
use std::sync::Arc;

use treering_engine::events::{Event, Redo, Shadow};
use treering_engine::{LogHeader, LogPacking, Lsn};

use super::setup::{Found, Setup, UNITS, Variant};
use crate::Mirror;
use crate::conformance::paged;
use crate::conformance::record::{self, LogUse, Why};
use crate::conformance::refused::{self, Accepted, Tally, same};
use crate::conformance::situations::Situations;
use crate::mirror::redo_log::unbounded::Reading;
use crate::mirror::redo_log::{Action, Call, Packing, Phase, RedoLog, State, Step};
use crate::value::state_text;

/// The invariants are checked after every end, and each time after this many events.
const CHECK_EVERY: u64 = 13;

/// A recorded event.
pub type Heard = paged::Heard<Found>;

/// A recorded event and its client.
pub type Entry = paged::Entry<Found>;

/// An event that the mirror does not allow.
pub type Refusal = refused::Refusal<Heard, Action>;

/// What recovery has read, and what it has done about it.
#[derive(Clone, Debug)]
pub(super) struct Recovery {
    pub(super) reading: Reading,
    pub(super) rewrote: bool,
    pub(super) rewrote_super: bool,
    /// The number of records that redo has read once more.
    pub(super) again: usize,
}

/// Judges one recording.
pub struct Judge<'a> {
    pub(super) setup: &'a Setup,
    pub(super) mirror: RedoLog,
    pub(super) state: State,
    /// The mirror's numbers of the records, by those that are in their units.
    pub(super) records: BTreeMap<u32, u32>,
    /// Records that clients have asked for.
    asked: u32,
    /// The form of the log that the next opening writes.
    pub(super) packing: Packing,
    /// The content that the next process reads, if the last one was not ended by a power failure.
    pub(super) restarting: Option<Arc<Found>>,
    pub(super) recovery: Option<Recovery>,
    /// Whether a process runs that has opened the store.
    pub(super) is_up: bool,
    /// Something has failed. Until the next opening, nothing new is written.
    pub(super) failed: bool,
    /// The next block that the leader of the flush in flight must report.
    pub(super) next_block: u32,
    /// Whether the checkpoint under way has nothing to give up, so that the spec has none.
    pub(super) empty_checkpoint: bool,
    before: Option<Box<State>>,
    pub(super) tally: Tally,
    situations: Option<Situations>,
}

pub(super) fn form(packing: LogPacking) -> Packing {
    match packing {
        LogPacking::Packed => Packing::Packed,
        LogPacking::Sparse => Packing::Sparse,
    }
}

impl<'a> Judge<'a> {
    /// A judge for a store that `setup` has built, just opened with a log of this form.
    #[must_use]
    pub fn new(clients: usize, setup: &'a Setup, packing: LogPacking) -> Judge<'a> {
        let tears = setup.variant == Variant::Torn;
        let mirror = RedoLog::unbounded(clients, UNITS, setup.ring(), tears);
        Judge {
            setup,
            state: mirror.first(form(packing)),
            mirror,
            records: BTreeMap::new(),
            asked: 0,
            packing: form(packing),
            restarting: None,
            recovery: None,
            is_up: true,
            failed: false,
            next_block: 0,
            empty_checkpoint: false,
            before: None,
            tally: Tally::default(),
            situations: None,
        }
    }

    /// Notes the situations of steps from now on.
    pub(crate) fn note_situations(&mut self) {
        self.situations = Some(Situations::new());
    }

    /// The noted situations.
    #[must_use]
    pub fn situations(&self) -> Situations {
        self.situations.clone().unwrap_or_default()
    }

    /// The counts of accepted events and steps.
    #[must_use]
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Judges the next entries.
    ///
    /// # Errors
    /// The first entry that is refused.
    pub(crate) fn hear(&mut self, entries: Vec<Entry>) -> Result<(), Box<Refusal>> {
        for Entry { client, heard } in entries {
            self.before = None;
            if let Err(why) = self.accept(client, &heard).and_then(|()| self.check()) {
                return Err(Box::new(self.refuse(client, heard, why)));
            }
            self.tally.heard += 1;
        }
        Ok(())
    }

    fn check(&self) -> Accepted {
        if self.before.is_none() && !self.tally.heard.is_multiple_of(CHECK_EVERY) {
            return Ok(());
        }
        match self.mirror.broken(&self.state) {
            None => Ok(()),
            Some(invariant) => Err(format!("it leads to a state that violates {invariant}")),
        }
    }

    fn refuse(&self, client: Option<u8>, heard: Heard, why: String) -> Refusal {
        let before = self.before.as_deref().unwrap_or(&self.state);
        let mut enabled = self.mirror.steps(before);
        enabled.retain(|action| !matches!(action, Action::CallAppend(..)));
        Refusal {
            number: self.tally.heard + 1,
            client,
            heard,
            why,
            state: state_text(&self.mirror.variables(before)),
            enabled,
        }
    }

    fn accept(&mut self, client: Option<u8>, heard: &Heard) -> Accepted {
        let of_client = || {
            client
                .map(usize::from)
                .ok_or("the event belongs to no client")
        };
        match heard {
            Heard::Said(record::Heard::Engine(event)) => self.engine(client, *event),
            Heard::Said(record::Heard::Log(LogUse::Appends(len))) => {
                self.call_append(of_client()?, *len)
            }
            Heard::Said(record::Heard::Log(LogUse::Leaves)) => self.leaves(of_client()?),
            Heard::Said(record::Heard::Log(LogUse::Opens(packing))) => {
                self.packing = form(*packing);
                Ok(())
            }
            Heard::Said(record::Heard::Log(LogUse::Dropped)) => self.dropped(),
            Heard::Said(record::Heard::Log(LogUse::Damaged(why))) => Err(format!(
                "recovery reports damage where there is none: {why}"
            )),
            Heard::Said(record::Heard::Log(LogUse::Refused(why))) => {
                self.refused(of_client()?, why)
            }
            Heard::Said(other) => Err(format!("{other:?} is not an event of a log")),
            Heard::Crashed(found) => self.crashed(found),
            Heard::Restarted(found) => {
                self.ended();
                self.restarting = Some(found.clone());
                Ok(())
            }
        }
    }

    // Clients.

    fn call_append(&mut self, c: usize, len: u32) -> Accepted {
        self.asked += 1;
        if self.state.poisoned() {
            return Ok(());
        }
        self.take(Action::CallAppend(c, len))?;
        if let Call::Append { record, .. } = self.state.call(c) {
            self.records.insert(self.asked, record);
        }
        Ok(())
    }

    fn leaves(&mut self, c: usize) -> Accepted {
        match self.state.call(c) {
            Call::Append { lsn, .. } if lsn > 0 && lsn <= self.state.durable() => {
                self.take(Action::Acknowledge(c))
            }
            Call::Append { lsn, .. } if lsn > 0 && !self.state.poisoned() => {
                self.take(Action::Leave(c))
            }
            _ if self.failed || self.state.poisoned() => Ok(()),
            other => Err(format!("it does not wait: {other:?}")),
        }
    }

    /// A call returned an error, and this is why.
    fn refused(&mut self, c: usize, why: &Why) -> Accepted {
        match why {
            Why::DeviceFailed { .. } if self.state.poisoned() => {}
            Why::DeviceFailed { really: true } => {}
            Why::DeviceFailed { really: false } => {
                return Err("it blames the device, of which nothing has failed".into());
            }
            Why::LogFull => return self.take(Action::RefuseAppend(c)),
            Why::Other(why) => return Err(format!("no call is refused for this: {why}")),
        }
        if self.state.poisoned() {
            let undone = match self.state.call(c) {
                Call::Append { lsn, .. } => lsn == 0 || lsn > self.state.durable(),
                _ => false,
            };
            return if undone {
                self.take(Action::FailCall(c))
            } else {
                Ok(())
            };
        }
        let appended = matches!(self.state.call(c), Call::Append { lsn, .. } if lsn > 0);
        if !self.failed && appended {
            return Err("nothing has failed that could lose the record".into());
        }
        // A page could not be written, or not be read: that is no event. The spec has no pages.
        self.failed = true;
        self.mirror.fail_call(&mut self.state, c);
        self.tally.took("(FailCall)");
        Ok(())
    }

    fn acknowledged(&mut self, client: Option<u8>, lsn: Lsn) -> Accepted {
        let n = self.setup.position(lsn)?;
        let c = client.map(usize::from);
        if let Some(c) = c
            && let Call::Append { lsn: mine, .. } = self.state.call(c)
            && mine > 0
            && mine <= n
        {
            return self.take(Action::Acknowledge(c));
        }
        let durable = self.state.durable();
        if n > durable {
            return Err(format!("{n} is reported durable, but only {durable} is"));
        }
        Ok(())
    }

    // The engine.

    fn engine(&mut self, client: Option<u8>, event: Event) -> Accepted {
        match event {
            Event::Shadow(Shadow::DeviceFlushFailed)
            | Event::LogFlushFailed { .. }
            | Event::CheckpointFailed => self.fail(),
            Event::Failed => {
                self.failed = true;
                Ok(())
            }
            Event::Redo(Redo::WritesBlock { .. }) => self.writes_block(event),
            Event::Redo(event) => self.redo(event),
            Event::RecoveryBegins { .. }
            | Event::RecordRead { .. }
            | Event::RedoEnds
            | Event::Opened => self.recovers(event),
            Event::SuperblockWriting { epoch, redo_start } => {
                self.superblock_writing(epoch, redo_start)
            }
            Event::SuperblockFlushed { redo_start } => self.superblock_flushed(redo_start),
            Event::LogTruncated { redo_start } => {
                let redo = self.setup.position(redo_start)?;
                same("the oldest position", redo, self.state.oldest())
            }
            Event::CheckpointBegins { begin } => self.checkpoint_begins(begin),
            Event::LogFlushBegins { from, to } => {
                let from = self.setup.position(from)?;
                let to = self.setup.position(to)?;
                same("the durable position", from, self.state.durable())?;
                same("the log's end", to, self.state.end())?;
                self.take(Action::WriteLog)?;
                self.next_block = self.mirror.in_flight(&self.state).start;
                Ok(())
            }
            Event::LogWritten { .. } => self.all_blocks(),
            Event::LogFlushed { .. } => self.take(Action::CompleteFlush),
            Event::Acknowledged { lsn } => self.acknowledged(client, lsn),
            // It is never written.
            Event::LogAppended { .. } if self.state.poisoned() => Ok(()),
            Event::LogAppended { lsn, .. } => {
                let c = client.ok_or("no client appends")?;
                self.take(Action::AppendRecord(c.into()))?;
                same("the LSN", self.setup.position(lsn)?, self.state.end())
            }
            Event::StructureAppended { .. } => {
                Err("an episode has neither splits nor merges nor batches".into())
            }
            // Of pages, and of the end of a write, the spec has nothing.
            _ => Ok(()),
        }
    }

    fn writes_block(&mut self, event: Event) -> Accepted {
        let Event::Redo(Redo::WritesBlock {
            epoch,
            index,
            used,
            first,
            unforced,
            starts,
            closed,
        }) = event
        else {
            return Ok(());
        };
        let written = self.setup.header(&LogHeader {
            epoch,
            index,
            used,
            first,
            unforced,
            starts,
            closed,
            witness: false,
            whole: true,
        })?;
        let expected = self.mirror.written(&self.state, self.next_block);
        same("the block", written, expected)?;
        self.next_block += 1;
        Ok(())
    }

    fn all_blocks(&self) -> Accepted {
        let blocks = self.mirror.in_flight(&self.state);
        same("the end of the blocks", self.next_block, blocks.end)
    }

    /// A flush or write has failed.
    fn fail(&mut self) -> Accepted {
        self.failed = true;
        let action = Action::FailFlush;
        if self.mirror.steps(&self.state).contains(&action) {
            self.take(action)?;
        }
        Ok(())
    }

    fn checkpoint_begins(&mut self, begin: Lsn) -> Accepted {
        if !self.is_up || self.state.poisoned() {
            // Recovery's checkpoint is part of RecordEpoch.
            return Ok(());
        }
        let begin = self.setup.position(begin)?;
        same("the log's end", begin, self.state.end())?;
        self.empty_checkpoint = self.state.oldest() == begin;
        if self.empty_checkpoint {
            return Ok(());
        }
        self.take(Action::BeginCheckpoint)
    }

    fn superblock_writing(&mut self, epoch: u32, redo: Lsn) -> Accepted {
        let (epoch, redo) = (self.setup.epoch(epoch), self.setup.position(redo)?);
        same("the epoch", epoch, self.state.epoch())?;
        if !self.is_up {
            let moves = redo == self.state.end();
            if !moves {
                same("the redo start", redo, self.state.superblock().redo())?;
            }
            return self.take(Action::RecordEpoch(moves));
        }
        if self.empty_checkpoint {
            return same("the redo start", redo, self.state.oldest());
        }
        same("the redo start", redo, self.state.checkpoint().1)?;
        self.take(Action::WriteSuper)
    }

    fn superblock_flushed(&mut self, redo: Lsn) -> Accepted {
        let redo = self.setup.position(redo)?;
        same("the redo start", redo, self.state.superblock().redo())?;
        if !self.is_up {
            return self.take(Action::Open);
        }
        if std::mem::take(&mut self.empty_checkpoint) {
            return Ok(());
        }
        self.take(Action::FinishCheckpoint)
    }

    fn redo(&mut self, event: Redo) -> Accepted {
        match event {
            Redo::WritesWitness { epoch, index } => {
                self.drop_checkpoint();
                same("the epoch", self.setup.epoch(epoch), self.state.epoch())?;
                let expected = self.mirror.place_of_witness(&self.state);
                same("the place", self.setup.index(index)?, expected)?;
                self.take(Action::WriteWitness)
            }
            Redo::WitnessWritten => self.take(Action::Close),
            other => self.reads(other),
        }
    }

    /// A store that is dropped may have begun a checkpoint. The spec closes a store only between
    /// two.
    pub(super) fn drop_checkpoint(&mut self) {
        if self.mirror.drop_checkpoint(&mut self.state) {
            self.tally.took("(DropCheckpoint)");
        }
    }

    /// The store was dropped in order.
    fn dropped(&mut self) -> Accepted {
        if self.failed || self.state.phase() != Phase::Up {
            return Ok(());
        }
        if self.state.durable() < self.state.end() {
            return Err("it has lost records that were not durable".into());
        }
        if self.state.checkpoint().0 == Step::Begun {
            self.drop_checkpoint();
        }
        let enabled = self.mirror.steps(&self.state);
        match enabled.contains(&Action::WriteWitness) {
            true => Err("it has left no witness".into()),
            false => Ok(()),
        }
    }

    // Requests to the mirror.

    /// Keeps the state for the report of a later refusal.
    pub(super) fn remember(&mut self) {
        self.before = Some(Box::new(self.state.clone()));
    }

    pub(super) fn take(&mut self, action: Action) -> Accepted {
        let before = self.situations.is_some().then(|| self.state.clone());
        if !self.mirror.try_take(&mut self.state, action) {
            return Err(format!("{action:?} is not enabled"));
        }
        self.took(action, before.as_ref());
        Ok(())
    }

    /// Records that the mirror has taken a step from `before`.
    pub(super) fn took(&mut self, action: Action, before: Option<&State>) {
        let label = RedoLog::label(&action);
        self.tally.took(label);
        if let Some(situations) = &mut self.situations
            && let Some(before) = before
        {
            let met = self.mirror.situation(before, action, &self.state);
            situations.entry(label).or_default().insert(met);
        }
    }
}
