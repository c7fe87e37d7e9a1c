//! The judge: takes, for each recorded entry, the step of the mirror that corresponds to it.
//!
//! The first entry for which the mirror has no step, or another outcome, is a [`Refusal`]. The
//! correspondence is described in [`super`], and implemented here.

use std::collections::BTreeMap;
use std::sync::Arc;

use treering_engine::events::{Event, Redo, Shadow};
use treering_engine::{LogHeader, LogPacking, Lsn};

use super::setup::{Found, Setup, UNITS, Variant, header_in_tla};
use crate::conformance::behaviour::Constants;
use crate::conformance::led::{Leads, Notes, holds};
use crate::conformance::paged;
use crate::conformance::record::{self, LogUse, Why};
use crate::conformance::refused::{self, Accepted, same};
use crate::mirror::redo_log::unbounded::{self, Reading};
use crate::mirror::redo_log::{Action, Call, Packing, Phase, RedoLog, State, Step, Super};

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
    /// Whether a failed flush had left what is written again.
    pub(super) lost: bool,
    /// The number of records that redo has read once more.
    pub(super) again: usize,
}

/// Judges one recording.
pub struct Judge<'a> {
    pub(super) setup: &'a Setup,
    pub(super) mirror: RedoLog,
    pub(super) state: Box<State>,
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
    /// The content that the next process will read, if the power does not fail before. If a write of
    /// the log fails, nothing is written to it afterwards, so this is what that has left.
    foreseen: Option<Arc<Found>>,
    /// The next block that the leader of the flush in flight must report.
    pub(super) next_block: u32,
    /// Whether the checkpoint under way has nothing to give up, so that the spec has none.
    pub(super) empty_checkpoint: bool,
    pub(super) notes: Notes<RedoLog>,
}

pub(super) fn form(packing: LogPacking) -> Packing {
    match packing {
        LogPacking::Packed => Packing::Packed,
        LogPacking::Sparse => Packing::Sparse,
    }
}

impl Leads for Judge<'_> {
    type Mirror = RedoLog;
    type Found = Found;

    const CHECK_EVERY: u64 = 13;

    fn led(&self) -> (&RedoLog, &Box<State>, &Notes<RedoLog>) {
        (&self.mirror, &self.state, &self.notes)
    }

    fn led_mut(&mut self) -> (&mut RedoLog, &mut Box<State>, &mut Notes<RedoLog>) {
        (&mut self.mirror, &mut self.state, &mut self.notes)
    }

    fn constants(&self) -> Constants {
        self.constants_of_spec()
    }

    fn is_one_of_many(action: &Action) -> bool {
        matches!(action, Action::CallAppend(..))
    }

    fn accept(&mut self, client: Option<u8>, heard: &Heard) -> Accepted {
        self.judge(client, heard)
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
            state: Box::new(mirror.first(form(packing))),
            mirror,
            records: BTreeMap::new(),
            asked: 0,
            packing: form(packing),
            restarting: None,
            recovery: None,
            is_up: true,
            failed: false,
            foreseen: None,
            next_block: 0,
            empty_checkpoint: false,
            notes: Notes::default(),
        }
    }

    /// Takes the last entry of a life, before the others are heard.
    pub(super) fn foresee(&mut self, last: Option<&Entry>) {
        self.foreseen = match last.map(|entry| &entry.heard) {
            Some(Heard::Restarted(found)) => Some(found.clone()),
            _ => None,
        };
    }

    fn judge(&mut self, client: Option<u8>, heard: &Heard) -> Accepted {
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
            Heard::Said(record::Heard::Log(LogUse::Damaged(why))) => {
                let why = format!("recovery reports damage where there is none: {why}");
                self.claim(Err(why), || {
                    let (blocks, of) = ("NewestOf(logDev)", "Newest(superDev)");
                    holds(&format!("Damaged({blocks}, ReadLog({blocks}, {of}))"))
                })
            }
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
            other => self.claim(Err(format!("it does not wait: {other:?}")), || {
                format!("Leave(c{})", c + 1)
            }),
        }
    }

    /// A call returned an error, and this is why.
    fn refused(&mut self, c: usize, why: &Why) -> Accepted {
        match why {
            Why::DeviceFailed { .. } if self.state.poisoned() => {}
            Why::DeviceFailed { really: true } => {}
            Why::DeviceFailed { really: false } => {
                let why = "it blames the device, of which nothing has failed".into();
                return self.claim(Err(why), || format!("FailCall(c{})", c + 1));
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
            let why = "nothing has failed that could lose the record".into();
            return self.claim(Err(why), || format!("FailCall(c{})", c + 1));
        }
        // A page could not be written, or not be read: that is no event. The spec has no pages.
        self.failed = true;
        self.mirror.fail_call(&mut self.state, c);
        self.notes.tally.took("(FailCall)");
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
            let why = format!("{n} is reported durable, but only {durable} is");
            return self.claim(Err(why), || holds(&format!("{n} <= durable")));
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
                let is = same("the oldest position", redo, self.state.oldest());
                self.claim(is, || holds(&format!("oldest = {redo}")))
            }
            Event::CheckpointBegins { begin } => self.checkpoint_begins(begin),
            Event::LogFlushBegins { from, to } => {
                let from = self.setup.position(from)?;
                let to = self.setup.position(to)?;
                let is = same("the durable position", from, self.state.durable());
                self.claim(is, || holds(&format!("durable = {from}")))?;
                let is = same("the log's end", to, self.state.end());
                self.claim(is, || holds(&format!("end = {to}")))?;
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
                let n = self.setup.position(lsn)?;
                let is = same("the LSN", n, self.state.end());
                self.instead(is, || format!("AppendRecord(c{}) /\\ end' = {n}", c + 1))
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
            end_mark: false,
            whole: true,
        })?;
        let expected = self.mirror.written(&self.state, self.next_block);
        self.claim(same("the block", written, expected), || {
            let is = header_in_tla(&written);
            let newest = format!("Newest(logDev[Place({})]).head", self.next_block);
            holds(&format!("LET head == {newest} IN {is}"))
        })?;
        self.next_block += 1;
        Ok(())
    }

    fn all_blocks(&self) -> Accepted {
        let blocks = self.mirror.in_flight(&self.state);
        let is = same("the end of the blocks", self.next_block, blocks.end);
        self.claim(is, || {
            holds(&format!(
                "BlockOf(RoundUp(flying.to)) = {}",
                self.next_block
            ))
        })
    }

    /// A flush or write has failed.
    fn fail(&mut self) -> Accepted {
        self.failed = true;
        if let Some(found) = self.foreseen.clone() {
            let (read, of) = self.in_terms_of_the_spec(&found)?;
            if self.fail_write(&read, of) {
                return Ok(());
            }
        }
        let action = Action::FailFlush;
        if self.mirror.steps(&self.state).contains(&action) {
            self.take(action)?;
        }
        Ok(())
    }

    /// Takes `FailWrite` if this is what it leaves. Returns whether it was.
    pub(super) fn fail_write(&mut self, read: &[unbounded::Found], of: Super) -> bool {
        let before = self.state.clone();
        let action = self.mirror.try_fail_write(&mut self.state, read, of);
        if let Some(action) = &action {
            self.took(action, Some(&before));
        }
        action.is_some()
    }

    fn checkpoint_begins(&mut self, begin: Lsn) -> Accepted {
        if !self.is_up || self.state.poisoned() {
            // Recovery's checkpoint is part of RecordEpoch.
            return Ok(());
        }
        let begin = self.setup.position(begin)?;
        let is = same("the log's end", begin, self.state.end());
        self.claim(is, || holds(&format!("end = {begin}")))?;
        self.empty_checkpoint = self.state.oldest() == begin;
        if self.empty_checkpoint {
            return Ok(());
        }
        self.take(Action::BeginCheckpoint)
    }

    fn superblock_writing(&mut self, epoch: u32, redo: Lsn) -> Accepted {
        let (epoch, redo) = (self.setup.epoch(epoch), self.setup.position(redo)?);
        let is = same("the epoch", epoch, self.state.epoch());
        self.claim(is, || holds(&format!("epoch = {epoch}")))?;
        if !self.is_up {
            let moves = redo == self.state.end();
            if !moves {
                let is = same("the redo start", redo, self.state.superblock().redo());
                self.claim(is, || holds(&format!("Newest(superDev).redo = {redo}")))?;
            }
            return self.take(Action::RecordEpoch(moves));
        }
        if self.empty_checkpoint {
            let is = same("the redo start", redo, self.state.oldest());
            return self.claim(is, || holds(&format!("oldest = {redo}")));
        }
        let is = same("the redo start", redo, self.state.checkpoint().1);
        self.claim(is, || holds(&format!("checkpoint.begin = {redo}")))?;
        self.take(Action::WriteSuper)
    }

    fn superblock_flushed(&mut self, redo: Lsn) -> Accepted {
        let redo = self.setup.position(redo)?;
        let is = same("the redo start", redo, self.state.superblock().redo());
        self.claim(is, || holds(&format!("Newest(superDev).redo = {redo}")))?;
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
                let epoch = self.setup.epoch(epoch);
                let is = same("the epoch", epoch, self.state.epoch());
                self.claim(is, || holds(&format!("epoch = {epoch}")))?;
                let expected = self.mirror.place_of_witness(&self.state);
                let index = self.setup.index(index)?;
                let is = same("the place", index, expected);
                self.claim(is, || holds(&format!("BlockOf(RoundUp(end)) = {index}")))?;
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
            self.notes.tally.took("(DropCheckpoint)");
        }
    }

    /// The store was dropped in order.
    fn dropped(&mut self) -> Accepted {
        if self.failed || self.state.phase() != Phase::Up {
            return Ok(());
        }
        if self.state.durable() < self.state.end() {
            let why = "it has lost records that were not durable".into();
            return self.claim(Err(why), || holds("durable = end"));
        }
        if self.state.checkpoint().0 == Step::Begun {
            self.drop_checkpoint();
        }
        let enabled = self.mirror.steps(&self.state);
        match enabled.contains(&Action::WriteWitness) {
            true => self.claim(Err("it has left no witness".into()), || {
                holds("~ENABLED WriteWitness")
            }),
            false => Ok(()),
        }
    }

    // Requests to the mirror.
}
