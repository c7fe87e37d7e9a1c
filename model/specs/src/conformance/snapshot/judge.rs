//! The judge: takes, for each recorded entry, the step of the mirror that corresponds to it.
//!
//! The first entry for which the mirror has no step, or another outcome, is a [`Refusal`]. The
//! correspondence is described in [`super`], and implemented here: clients, splits and merges, and
//! pages. `checkpoints` has the snapshot, and `power` has crashes and recovery.

use std::collections::{BTreeMap, BTreeSet};

use treering_engine::events::{Event, Shadow, Snapshot};
use treering_engine::{Lsn, PageId};

use super::checkpoints::Chunks;
use super::found::Found;
use super::setup::{KEYS, PER_CHUNK, ROOM, SLOTS, Setup};
use crate::conformance::behaviour::Constants;
use crate::conformance::led::{Leads, Notes, holds};
use crate::conformance::paged;
use crate::conformance::record::{self, TreeUse};
use crate::conformance::refused::{self, Accepted, same};
use crate::mirror::wide::index_snapshot::unbounded::{IndexThen, LeafName};
use crate::mirror::wide::index_snapshot::{Action, Call, IndexSnapshot, Kind, Phase, State};

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
    /// The power is off. Until the next opening nothing is judged.
    Failed,
    /// A write that was lost is noticed. Nothing is judged any more.
    Damaged,
}

/// Judges one recording.
pub struct Judge<'a> {
    pub(super) setup: &'a Setup,
    pub(super) mirror: IndexSnapshot,
    // Boxed because it is large.
    pub(super) state: Box<State>,
    pub(super) life: Life,
    /// The end of the log that the next process finds, and the state that it makes of it, if the
    /// last one was not ended by a power failure.
    pub(super) restarting: Option<(u64, Box<State>)>,
    /// The page that is about to be written, and whether the write will be lost.
    pub(super) writing: Option<(PageId, Lsn, bool)>,
    /// The newest image of each page that may be in the device's journal.
    pub(super) journal: BTreeMap<u8, LeafName>,
    /// The index when the checkpoint read the entries that it is adding.
    pub(super) read: Option<IndexThen>,
    /// The chunks of the checkpoint under way.
    pub(super) chunks: Chunks,
    /// Records that redo must apply to pages, and those that it has applied.
    pub(super) to_redo: BTreeSet<(u8, u64)>,
    pub(super) redone: BTreeSet<(u8, u64)>,
    /// The number of chunks that recovery has read.
    pub(super) chunks_read: usize,
    /// The numbers of the recording's records, by LSN.
    pub(super) appended: BTreeMap<Lsn, u64>,
    /// The version of each value. A delete has version 0.
    pub(super) versions: Vec<u64>,
    writes: u64,
    /// How many records the scan of each client wants.
    wanted: BTreeMap<u8, u64>,
    pub(super) notes: Notes<IndexSnapshot>,
}

impl Leads for Judge<'_> {
    type Mirror = IndexSnapshot;
    type Found = Found;

    const CHECK_EVERY: u64 = 41;

    fn led(&self) -> (&IndexSnapshot, &Box<State>, &Notes<IndexSnapshot>) {
        (&self.mirror, &self.state, &self.notes)
    }

    fn led_mut(
        &mut self,
    ) -> (
        &mut IndexSnapshot,
        &mut Box<State>,
        &mut Notes<IndexSnapshot>,
    ) {
        (&mut self.mirror, &mut self.state, &mut self.notes)
    }

    fn constants(&self) -> Constants {
        self.constants_of_spec()
    }

    fn is_one_of_many(action: &Action) -> bool {
        matches!(
            action,
            Action::CallGet(..)
                | Action::CallWrite(..)
                | Action::CallScan(..)
                | Action::AppendSplit(..)
        )
    }

    fn accept(&mut self, client: Option<u8>, heard: &Heard) -> Accepted {
        self.judge(client, heard)
    }
}

impl<'a> Judge<'a> {
    /// A judge for a store that `setup` has built, at rest.
    #[must_use]
    pub fn new(clients: u8, setup: &'a Setup) -> Judge<'a> {
        let sizes = (usize::from(KEYS), SLOTS);
        let mirror = IndexSnapshot::unbounded(clients.into(), sizes, ROOM, PER_CHUNK);
        Judge {
            setup,
            state: Box::new(mirror.first()),
            mirror,
            life: Life::Runs,
            restarting: None,
            writing: None,
            journal: BTreeMap::new(),
            read: None,
            chunks: Chunks::default(),
            to_redo: BTreeSet::new(),
            redone: BTreeSet::new(),
            chunks_read: 0,
            appended: BTreeMap::new(),
            versions: vec![0],
            writes: 0,
            wanted: BTreeMap::new(),
            notes: Notes::default(),
        }
    }

    /// Whether a lost write has been noticed, so that the episode is over.
    pub(crate) fn is_over(&self) -> bool {
        self.life == Life::Damaged
    }

    fn judge(&mut self, client: Option<u8>, heard: &Heard) -> Accepted {
        match heard {
            _ if self.life == Life::Damaged => Ok(()),
            Heard::Crashed(found) => self.crashed(found),
            Heard::Restarted(found) => self.restarted(found),
            Heard::Said(record::Heard::Tree(TreeUse::Damaged(why))) => self.damaged(why),
            Heard::Said(record::Heard::Tree(TreeUse::Opens)) => {
                self.chunks_read = 0;
                Ok(())
            }
            Heard::Said(_) if self.life == Life::Failed => Ok(()),
            Heard::Said(record::Heard::Engine(event)) => self.engine(client, *event),
            Heard::Said(record::Heard::Tree(TreeUse::Loses)) => self.loses(),
            Heard::Said(said) => self.client(client.ok_or("the event belongs to no client")?, said),
        }
    }

    // Clients.

    fn client(&mut self, c: u8, said: &record::Heard) -> Accepted {
        match said {
            record::Heard::CallGet(key) => self.take(Action::CallGet(c, *key)),
            record::Heard::CallWrite { key, absent } => {
                self.writes += 1;
                self.take(Action::CallWrite(c, *key, *absent))
            }
            record::Heard::Answered(version) => {
                let got = self.state.got(c).ok_or("it has read nothing")?;
                let is = same("the version", *version, self.versions[got as usize]);
                self.claim(is, || {
                    let value = self.value_of(*version);
                    holds(&format!("call[c{}].got = {value}", c + 1))
                })?;
                self.take(Action::Answer(c))
            }
            record::Heard::Tree(TreeUse::Scans(back)) => self.take(Action::CallScan(c, *back)),
            record::Heard::Tree(TreeUse::Fetches(most)) => {
                self.wanted.insert(c, *most);
                Ok(())
            }
            record::Heard::Tree(TreeUse::Scanned(rows)) => {
                let got = self.state.scanned(c).into_iter();
                let got: Vec<(u8, u64)> = got
                    .map(|(k, value)| (k, self.versions[value as usize]))
                    .collect();
                self.claim(same("the records", rows, &got), || {
                    let keys = self.state.scanned(c).into_iter().map(|(k, _)| k);
                    let keys: BTreeSet<u8> = keys.chain(rows.iter().map(|row| row.0)).collect();
                    let has = keys.into_iter().map(|k| {
                        let row = rows.iter().find(|row| row.0 == k);
                        let value = row.map_or("Absent".into(), |row| self.value_of(row.1));
                        format!("got[{k}] = {value}")
                    });
                    let has: Vec<String> = has.collect();
                    let has = has.join(" /\\ ");
                    holds(&format!("LET got == call[c{}].got IN {has}", c + 1))
                })?;
                self.take(Action::Answer(c))
            }
            record::Heard::Refused => Err("nothing has failed".into()),
            other => Err(format!("{other:?} is not an event of a client here")),
        }
    }

    /// A call is about to use this page. The engine does not tell when a descent has led to it;
    /// under the page's latch, it would lead there now.
    fn descend(&mut self, c: u8, page: PageId) -> Accepted {
        if self.state.reached(c) == 0 {
            self.take(Action::Descend(c))?;
        }
        let p = slot(page)?;
        let is = same("the page", p, self.state.reached(c));
        self.claim(is, || holds(&format!("call[c{}].page = {p}", c + 1)))
    }

    fn page_read(&mut self, client: Option<u8>, page: PageId, lsn: Lsn) -> Accepted {
        // The episode looks by itself, too.
        let Some(c) = client else { return Ok(()) };
        self.descend(c, page)?;
        self.same_lsn(page, lsn)?;
        self.take(Action::ReadLeaf(c))
    }

    /// A scan copies the records of a leaf up to the last one that it wants.
    fn copies(&mut self, client: Option<u8>, page: PageId, back: bool) -> Accepted {
        let c = client.ok_or("no client scans it")?;
        let (at, is_back) = match self.state.call(c) {
            Call::Scan { at, back, .. } => (at, back),
            other => {
                let why = format!("client c{} does not scan: {other:?}", c + 1);
                return self.claim(Err(why), || format!("CopyLeaf(c{})", c + 1));
            }
        };
        let is = same("the direction", back, is_back);
        self.claim(is, || {
            let back = crate::Value::Bool(back);
            holds(&format!("call[c{}].back = {back}", c + 1))
        })?;
        self.descend(c, page)?;
        let p = slot(page)?;
        let wanted = self.wanted.entry(c).or_default();
        let (lower, upper) = self.state.fences_of(p);
        let keys = self.state.keys_of(p).into_iter();
        let keys: Vec<u8> = match back {
            true => keys.filter(|k| *k < at).rev().collect(),
            false => keys.filter(|k| *k >= at).collect(),
        };
        let last = wanted.checked_sub(1).and_then(|n| keys.get(n as usize));
        *wanted = wanted.saturating_sub(keys.len() as u64);
        match (back, last) {
            (false, Some(last)) => self.take(Action::CopyLeaf(c, last + 1)),
            (false, None) => self.take(Action::CopyLeaf(c, upper)),
            (true, Some(last)) => self.take(Action::CopyBack(c, *last)),
            (true, None) => self.take(Action::CopyBack(c, lower)),
        }
    }

    fn log_appended(&mut self, client: Option<u8>, lsn: Lsn, page: PageId) -> Accepted {
        let c = client.ok_or("no client writes")?;
        let delete = match self.state.call(c) {
            Call::Write { value, .. } => value == 0,
            other => {
                let why = format!("client c{} does not write: {other:?}", c + 1);
                return self.claim(Err(why), || format!("ChangeLeaf(c{})", c + 1));
            }
        };
        self.descend(c, page)?;
        self.take(Action::ChangeLeaf(c))?;
        self.versions.truncate(self.state.puts() as usize);
        self.versions.push(if delete { 0 } else { self.writes });
        self.appended.insert(lsn, self.state.log_len());
        Ok(())
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

    fn log_flushed(&mut self, to: Lsn) -> Accepted {
        let n = self.position(to);
        if n <= self.state.durable() {
            return Ok(());
        }
        self.take(Action::CommitLog(n as _))
    }

    // The engine.

    fn engine(&mut self, client: Option<u8>, event: Event) -> Accepted {
        self.written()?;
        match event {
            Event::Shadow(Shadow::DeviceFlushFailed)
            | Event::LogFlushFailed { .. }
            | Event::Failed
            | Event::CheckpointFailed => {
                self.life = Life::Failed;
                Ok(())
            }
            Event::Shadow(Shadow::DeviceFlushed) => {
                self.mirror.flush(&mut self.state);
                self.notes.tally.took("(FlushDevice)");
                Ok(())
            }
            Event::LogAppended { lsn, page } => self.log_appended(client, lsn, page),
            Event::LogFlushed { to } => self.log_flushed(to),
            Event::Acknowledged { lsn } => self.acknowledged(client, lsn),
            Event::PageRead { page, lsn } => self.page_read(client, page, lsn),
            Event::PageChanged { page, lsn } => self.page_changed(page, lsn),
            Event::PageWriting { page, lsn } => {
                self.same_lsn(page, lsn)?;
                let p = slot(page)?;
                self.journal.insert(p, self.state.page_now(p));
                self.writing = Some((page, lsn, false));
                Ok(())
            }
            Event::PageWritten { page, .. } => {
                let writing = self.writing.take();
                let (wanted, _, lost) = writing.ok_or("it is not being written")?;
                same("the page", page, wanted)?;
                self.take(Action::WritePage(slot(page)?, lost))
            }
            Event::Snapshot(event) => self.tree(client, event),
            Event::CheckpointBegins { .. }
            | Event::SuperblockWriting { .. }
            | Event::SuperblockWritten { .. }
            | Event::SuperblockFlushed { .. }
            | Event::LogTruncated { .. } => self.checkpoint(event),
            Event::RecoveryBegins { .. }
            | Event::RecordRead { .. }
            | Event::PageRedone { .. }
            | Event::RedoEnds
            | Event::Opened => self.recovers(event),
            // The spec has no more of the log, and of the end of a write, than other events report.
            _ => Ok(()),
        }
    }

    fn tree(&mut self, client: Option<u8>, event: Snapshot) -> Accepted {
        match event {
            Snapshot::Copies { page, back } => self.copies(client, page, back),
            Snapshot::Splits {
                lsn,
                left,
                right,
                fence,
                ..
            } => {
                let fence = self.setup.fence(fence)?;
                self.take(Action::AppendSplit(slot(left)?, fence, slot(right)?))?;
                self.appended.insert(lsn, self.state.log_len());
                Ok(())
            }
            Snapshot::Merges {
                lsn,
                left,
                right,
                fence,
            } => {
                self.take(Action::AppendMerge(slot(left)?))?;
                let n = self.state.log_len();
                self.appended.insert(lsn, n);
                let record = (
                    Kind::Merge,
                    slot(left)?,
                    self.setup.fence(fence)?,
                    slot(right)?,
                );
                let is = same("the record", Some(record), self.state.record_of(n));
                let (_, left, fence, right) = record;
                let does = format!("AppendMerge({left}) /\\ change'.right = {right}");
                self.instead(is, || format!("{does} /\\ log'[Len(log')].key = {fence}"))
            }
            Snapshot::Indexed { lsn } => {
                let n = self.number(lsn)?;
                let is = same("the change", Some((n, true)), self.state.changing());
                self.claim(is, || {
                    holds(&format!("change.at = \"changed\" /\\ change.lsn = {n}"))
                })?;
                self.take(Action::UpdateIndex)
            }
            Snapshot::FreesPage { page } => self.take(Action::FreePage(slot(page)?)),
            Snapshot::Takes { .. } | Snapshot::ReadChunk { .. } | Snapshot::Built { .. } => {
                self.reads(event)
            }
            Snapshot::Restored { page, lsn } => self.restored(slot(page)?, lsn),
            other => self.snaps(other),
        }
    }

    /// A page has a change: that of a client, or a part of a split or merge.
    fn page_changed(&mut self, page: PageId, lsn: Lsn) -> Accepted {
        let n = self.number(lsn)?;
        let (is, left, _, right) = self.state.record_of(n).ok_or("it has no record")?;
        let p = slot(page)?;
        let last = match is {
            Kind::Put => return self.same_lsn(page, lsn),
            Kind::Split => right,
            Kind::Merge => left,
        };
        let is = same("the change", Some((n, false)), self.state.changing());
        self.claim(is, || {
            holds(&format!("change.at = \"logged\" /\\ change.lsn = {n}"))
        })?;
        if p != left && p != last {
            return self.claim(Err("it is neither of the leaves".into()), || {
                holds(&format!("{p} \\in {{change.page, change.right}}"))
            });
        }
        if p == last {
            self.take(Action::ChangeLeaves)?;
        }
        Ok(())
    }

    /// The device loses the write that was announced.
    fn loses(&mut self) -> Accepted {
        if let Some((_, _, lost)) = &mut self.writing {
            *lost = true;
            return Ok(());
        }
        self.loses_chunk()
    }

    // Requests to the mirror, and translations of numbers.

    fn same_lsn(&self, page: PageId, lsn: Lsn) -> Accepted {
        let (n, p) = (self.number(lsn)?, slot(page)?);
        let is = same("the page's LSN", n, self.state.lsn_of(p));
        self.claim(is, || holds(&format!("page[{p}].lsn = {n}")))
    }

    /// The value of the spec with this version. No value is 0: it stands for what nobody has
    /// written.
    pub(super) fn value_of(&self, version: u64) -> String {
        match version {
            0 => "Absent".into(),
            version => {
                let known = self.versions.iter().rposition(|known| *known == version);
                known.unwrap_or(0).to_string()
            }
        }
    }

    /// The spec's LSN of a record or page.
    pub(super) fn number(&self, lsn: Lsn) -> Result<u64, String> {
        if lsn.0 == 0 {
            return Ok(0);
        }
        let n = self.appended.get(&lsn).copied();
        n.ok_or_else(|| format!("{lsn} is not the LSN of a remaining record"))
    }

    /// The number of records before this position of the log.
    pub(super) fn position(&self, lsn: Lsn) -> u64 {
        let before = self.appended.range(..=lsn).next_back();
        before.map_or(0, |(_, n)| *n)
    }

    pub(super) fn is_up(&self) -> bool {
        self.state.phase() == Phase::Up
    }
}

/// The spec's number of a page, which is that of its slot.
pub(super) fn slot(page: PageId) -> Result<u8, String> {
    slot_at(page.0)
}

/// The spec's number of a slot.
pub(super) fn slot_at(slot: u64) -> Result<u8, String> {
    let known = u8::try_from(slot + 1).ok();
    let known = known.filter(|slot| usize::from(*slot) <= SLOTS);
    known.ok_or_else(|| format!("slot {slot} is outside the store"))
}
