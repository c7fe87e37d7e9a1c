//! The judge: takes, for each recorded entry, the step of the mirror that corresponds to it.
//!
//! The first entry for which the mirror has no step, or another outcome, is a [`Refusal`]. The
//! correspondence is described in [`super`], and implemented here: clients, conversions, splits,
//! merges, pages and checkpoints. `power` has crashes and recovery.

use std::collections::{BTreeMap, BTreeSet};

use treering_engine::events::{Event, Leaf, Shadow, Snapshot, fence_name, record_sum};
use treering_engine::node::PageLayout;
use treering_engine::{Lsn, PageId};

use super::found::Found;
use super::setup::{Setup, digest, layout_of, value_of};
use crate::conformance::behaviour::Constants;
use crate::conformance::led::{Leads, Notes, holds};
use crate::conformance::paged;
use crate::conformance::record::{self, LeafUse};
use crate::conformance::refused::{self, Accepted, same};
use crate::mirror::wide::leaf_layout::unbounded::LeafName;
use crate::mirror::wide::leaf_layout::{Action, Call, Is, Layout, LeafLayout, State};

/// A recorded event.
pub type Heard = paged::Heard<Found>;

/// A recorded event and its client.
pub type Entry = paged::Entry<Found>;

/// An event that the mirror does not allow.
pub type Refusal = refused::Refusal<Heard, Action>;

/// Judges one recording.
pub struct Judge<'a> {
    pub(super) setup: &'a Setup,
    pub(super) mirror: LeafLayout,
    // Boxed because it is large.
    pub(super) state: Box<State>,
    /// The number of records before those of the engine.
    base: u64,
    /// The power is off. Until the next opening nothing is judged.
    pub(super) failed: bool,
    /// The end of the log that the next process finds, and the state that it makes of it, if the
    /// last one was not ended by a power failure.
    pub(super) restarting: Option<(u64, Box<State>)>,
    /// The engine's pages, by the spec's number less 1: it does not give numbers again.
    pub(super) ids: Vec<PageId>,
    /// The record of a change to one leaf, until it is clear which one.
    pub(super) appended_to: Option<(Lsn, PageId)>,
    /// The page that is about to be written.
    pub(super) writing: Option<(PageId, Lsn)>,
    /// The newest image of each page that may be in the device's journal.
    pub(super) journal: BTreeMap<u8, LeafName>,
    /// The redo start in the superblock that is about to be written.
    pub(super) superblock: Option<u64>,
    /// What redo of a record must make of a page, and which it has made.
    pub(super) to_redo: BTreeMap<(u8, u64), LeafName>,
    pub(super) redone: BTreeSet<(u8, u64)>,
    /// The numbers of the recording's records, by LSN.
    pub(super) appended: BTreeMap<Lsn, u64>,
    /// The length of the value of the next write.
    sized: Option<u64>,
    /// Whether the options of the life that begins allow dense leaves.
    pub(super) allows: bool,
    pub(super) notes: Notes<LeafLayout>,
}

impl Leads for Judge<'_> {
    type Mirror = LeafLayout;
    type Found = Found;

    const CHECK_EVERY: u64 = 97;

    fn led(&self) -> (&LeafLayout, &Box<State>, &Notes<LeafLayout>) {
        (&self.mirror, &self.state, &self.notes)
    }

    fn led_mut(&mut self) -> (&mut LeafLayout, &mut Box<State>, &mut Notes<LeafLayout>) {
        (&mut self.mirror, &mut self.state, &mut self.notes)
    }

    fn constants(&self) -> Constants {
        self.constants_of_spec()
    }

    fn accept(&mut self, client: Option<u8>, heard: &Heard) -> Accepted {
        self.judge(client, heard)
    }
}

impl<'a> Judge<'a> {
    /// A judge for a store that `setup` has built, at rest.
    #[must_use]
    pub fn new(clients: u8, setup: &'a Setup) -> Judge<'a> {
        let mirror = setup.mirror(clients);
        let mut state = Box::new(mirror.first());
        if setup.begins_with_prints() {
            let first = [
                Action::Adapt(1, Layout::Other),
                Action::CommitLog,
                Action::WritePage(1),
            ];
            let taken = first.map(|step| mirror.try_take(&mut state, step));
            let swept = mirror.try_checkpoint(&mut state, 1);
            assert!(swept && taken == [true; 3], "the first leaf is converted");
        }
        Judge {
            setup,
            base: state.log_len(),
            state,
            mirror,
            failed: false,
            restarting: None,
            ids: vec![PageId(0)],
            appended_to: None,
            writing: None,
            journal: BTreeMap::new(),
            superblock: None,
            to_redo: BTreeMap::new(),
            redone: BTreeSet::new(),
            appended: BTreeMap::new(),
            sized: None,
            allows: true,
            notes: Notes::default(),
        }
    }

    /// Whether the mirror has no room for more, so that the episode is over.
    pub(crate) fn is_over(&self) -> bool {
        self.state.is_nearly_full()
    }

    fn judge(&mut self, client: Option<u8>, heard: &Heard) -> Accepted {
        match heard {
            Heard::Crashed(found) => self.crashed(found),
            Heard::Restarted(found) => self.restarted(found),
            Heard::Said(record::Heard::Leaf(LeafUse::Failed(why))) => {
                Err(format!("nothing has failed, but a call does: {why}"))
            }
            Heard::Said(record::Heard::Leaf(LeafUse::Opens(allows))) => {
                self.allows = *allows;
                Ok(())
            }
            Heard::Said(_) if self.failed => Ok(()),
            Heard::Said(record::Heard::Engine(event)) => self.engine(client, *event),
            Heard::Said(said) => self.client(client.ok_or("the event belongs to no client")?, said),
        }
    }

    // Clients.

    fn client(&mut self, c: u8, said: &record::Heard) -> Accepted {
        match said {
            record::Heard::CallGet(key) => {
                let (key, named) = (*key, Action::CallGet(c, *key));
                self.call(named, |mirror, s| mirror.try_call_get(s, c, key))
            }
            record::Heard::Leaf(LeafUse::Sized(len)) => {
                self.sized = Some(*len);
                Ok(())
            }
            record::Heard::CallWrite { key, absent } => {
                let len = self.sized.take().filter(|_| !absent);
                let (key, named) = (*key, Action::CallWrite(c, *key));
                self.call(named, |mirror, s| mirror.try_call_write(s, c, key, len))
            }
            record::Heard::Leaf(LeafUse::Got(found)) => {
                let got = self.state.got(c).ok_or("it has read nothing")?;
                let is = same("the value", *found, self.digest_of(got));
                self.claim(is, || {
                    let value = self.value_with(*found);
                    holds(&format!("call[c{}].got = {value}", c + 1))
                })?;
                self.take(Action::AnswerGet(c))
            }
            other => Err(format!("{other:?} is not an event of a client here")),
        }
    }

    fn call(
        &mut self,
        named: Action,
        by: impl FnOnce(&mut LeafLayout, &mut State) -> bool,
    ) -> Accepted {
        let may = self.step(&named, by);
        may.then_some(())
            .ok_or_else(|| format!("{named:?} is not enabled"))
    }

    /// The digest of a value of the mirror; 0 for `Absent`.
    pub(super) fn digest_of(&self, value: u64) -> u64 {
        match value {
            0 => 0,
            n => digest(&self.bytes_of(n)),
        }
    }

    fn bytes_of(&self, value: u64) -> Vec<u8> {
        value_of(value, self.mirror.length_of(value))
    }

    fn page_read(&mut self, client: Option<u8>, page: PageId, lsn: Lsn) -> Accepted {
        // The episode looks by itself, too.
        let Some(c) = client else { return Ok(()) };
        let Call::Get { key, .. } = self.state.call(c) else {
            return Ok(());
        };
        let p = self.page(page)?;
        self.same_leaf(c, p, key)?;
        self.same_lsn(p, lsn)?;
        self.take(Action::ReadLeaf(c))
    }

    /// A client's write whose leaf refuses it, if that is this page.
    fn refused_write(&self, client: Option<u8>, page: u8) -> Option<u8> {
        let c = client.filter(|c| self.mirror.refuses(&self.state, *c))?;
        let Call::Write { key, .. } = self.state.call(c) else {
            return None;
        };
        (self.mirror.page_of(&self.state, key) == page).then_some(c)
    }

    fn acknowledged(&mut self, client: Option<u8>, lsn: Lsn) -> Accepted {
        let n = self.position(lsn);
        if let Some(c) = client
            && (1..=n).contains(&self.state.lsn_of_write(c))
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
        let is = same("the end of the log", n, self.state.log_len());
        self.claim(is, || holds(&format!("Len(log) = {n}")))?;
        self.take(Action::CommitLog)
    }

    // The engine.

    fn engine(&mut self, client: Option<u8>, event: Event) -> Accepted {
        match event {
            Event::Shadow(Shadow::DeviceFlushFailed)
            | Event::LogFlushFailed { .. }
            | Event::Failed
            | Event::CheckpointFailed => {
                self.failed = true;
                Ok(())
            }
            Event::Shadow(Shadow::DeviceFlushed) => {
                self.mirror.flush(&mut self.state);
                self.notes.tally.took("(FlushDevice)");
                Ok(())
            }
            Event::LogAppended { lsn, page } => {
                self.appended_to = Some((lsn, page));
                Ok(())
            }
            Event::LogFlushed { to } => self.log_flushed(to),
            Event::Acknowledged { lsn } => self.acknowledged(client, lsn),
            Event::PageRead { page, lsn } => self.page_read(client, page, lsn),
            Event::PageChanged { page, lsn } => self.page_changed(client, page, lsn),
            Event::PageWriting { page, lsn } => {
                let p = self.page(page)?;
                self.same_lsn(p, lsn)?;
                self.journal.insert(p, self.mirror.page_now(&self.state, p));
                self.writing = Some((page, lsn));
                Ok(())
            }
            Event::PageWritten { page, .. } => {
                let (wanted, _) = self.writing.take().ok_or("it is not being written")?;
                same("the page", page, wanted)?;
                self.take(Action::WritePage(self.page(page)?))
            }
            Event::Leaf(event) => self.leaf(client, event),
            Event::Snapshot(event) => self.structure(client, event),
            Event::SuperblockWriting { redo_start, .. } => {
                self.superblock = Some(self.position(redo_start));
                Ok(())
            }
            Event::SuperblockFlushed { .. } => self.super_flushed(),
            Event::RecoveryBegins { .. }
            | Event::RecordRead { .. }
            | Event::PageRedone { .. }
            | Event::RedoEnds
            | Event::Opened => self.recovers(event),
            // The spec has no more of the log, of checkpoints, and of the end of a write, than
            // other events report.
            _ => Ok(()),
        }
    }

    /// A page has a change: that of a client, or one that was reported before.
    fn page_changed(&mut self, client: Option<u8>, page: PageId, lsn: Lsn) -> Accepted {
        if self.appended_to.take() != Some((lsn, page)) {
            return self.number(lsn).map(drop);
        }
        let c = client.ok_or("no client writes")?;
        let Call::Write { key, .. } = self.state.call(c) else {
            let why = format!("client c{} does not write", c + 1);
            return self.claim(Err(why), || format!("ChangeLeaf(c{})", c + 1));
        };
        let p = self.page(page)?;
        self.same_leaf(c, p, key)?;
        self.take(Action::ChangeLeaf(c))?;
        self.appended.insert(lsn, self.state.log_len());
        Ok(())
    }

    fn leaf(&mut self, client: Option<u8>, event: Leaf) -> Accepted {
        match event {
            Leaf::Refuses { page } => {
                let p = self.page(page)?;
                let refused = self.refused_write(client, p);
                let taken = || format!("page {p} has room and a place for the write");
                self.claim(refused.map(drop).ok_or_else(taken), || {
                    let c = client.map_or_else(|| "".into(), |c| format!("c{}", c + 1));
                    holds(&format!(
                        "IsCalled({c}) /\\ ~IsTaken({c}) /\\ LeafOf({c}) = {p}"
                    ))
                })
            }
            Leaf::Converts { lsn, page, layout } => {
                let appended = self.appended_to.take();
                same("the record", Some((lsn, page)), appended)?;
                self.converts(client, self.page(page)?, layout_of(layout))?;
                self.appended.insert(lsn, self.state.log_len());
                Ok(())
            }
            Leaf::Has {
                page,
                lsn,
                layout,
                records,
                sum,
            } => self.has(page, lsn, (layout, records, sum)),
        }
    }

    /// A page is converted: because it refuses a write, because it is to absorb its neighbour, or
    /// by its use.
    fn converts(&mut self, client: Option<u8>, p: u8, layout: Layout) -> Accepted {
        let was = self.mirror.page_now(&self.state, p).layout;
        let step = match self.refused_write(client, p) {
            Some(c) => Action::LayOut(c),
            None if was == Layout::Dense => Action::Prepare(p),
            None => Action::Adapt(p, layout),
        };
        self.take(step)?;
        let is = self.mirror.page_now(&self.state, p).layout;
        self.claim(same("the layout", layout, is), || {
            holds(&format!("leaf[{p}].layout = \"{}\"", <&str>::from(layout)))
        })
    }

    /// What a change has made of a page.
    fn has(
        &mut self,
        page: PageId,
        lsn: Lsn,
        (layout, records, sum): (PageLayout, u32, u32),
    ) -> Accepted {
        let n = self.number(lsn)?;
        let expected = match self.state.is_open() {
            true => self.mirror.page_now(&self.state, self.page(page)?),
            false => match self.expected_of_redo(page, n) {
                Some(expected) => expected,
                // The page is dead by the end of the log.
                None => return Ok(()),
            },
        };
        let claim = |is: Accepted, claim: &dyn Fn() -> String| {
            self.claim(is, || {
                let page = match self.state.is_open() {
                    true => self.page(page).map(|p| format!("leaf[{p}]")),
                    false => self
                        .page_named(page, n)
                        .ok_or_else(String::new)
                        .map(|p| format!("RedoneFrom({p}, Stored({p}), redoStart + 1, {n})")),
                };
                let page = page.unwrap_or_else(|_| "Lost".into());
                holds(&format!("LET page == {page} IN {}", claim()))
            })
        };
        let is = same("the page's LSN", n, expected.lsn);
        claim(is, &|| format!("page.lsn = {n}"))?;
        let is = same("the layout", layout_of(layout), expected.layout);
        claim(is, &|| {
            format!("page.layout = \"{}\"", <&str>::from(layout_of(layout)))
        })?;
        let is = same("the records", records as usize, expected.records.len());
        claim(is, &|| format!("Cardinality(KeysIn(page.map)) = {records}"))?;
        let sums = expected.records.iter().map(|(key, value)| {
            let key = self.setup.pages.key(*key as u32);
            record_sum(&key, &self.bytes_of(*value))
        });
        same("the records' sum", sum, sums.fold(0, u32::wrapping_add))
    }

    fn structure(&mut self, client: Option<u8>, event: Snapshot) -> Accepted {
        match event {
            Snapshot::Splits {
                lsn,
                left,
                right,
                fence,
                layout,
            } => {
                let c = client.ok_or("no client writes")?;
                let p = self.page(left)?;
                let may = self.refused_write(client, p) == Some(c);
                let taken = || format!("page {p} does not refuse the write of c{}", c + 1);
                self.claim(may.then_some(()).ok_or_else(taken), || {
                    format!("Divide(c{0}) /\\ LeafOf(c{0}) = {p}", c + 1)
                })?;
                self.take(Action::Divide(c, layout_of(layout)))?;
                let n = self.state.log_len();
                self.appended.insert(lsn, n);
                self.ids.push(right);
                self.same_fence(n, fence)
            }
            Snapshot::Merges {
                lsn,
                left,
                right,
                fence,
            } => {
                let (p, q) = (self.page(left)?, self.page(right)?);
                let neighbour = self.mirror.right_of(&self.state, p);
                let is = same("the right neighbour", Some(q), neighbour);
                self.claim(is, || holds(&format!("AreNeighbours({p}, {q})")))?;
                self.take(Action::Merge(p))?;
                let n = self.state.log_len();
                self.appended.insert(lsn, n);
                self.same_fence(n, fence)
            }
            Snapshot::Restored { page, lsn } => self.restored(page, lsn),
            other => Err(format!("{other:?} is not an event of leaves")),
        }
    }

    /// Whether a split or merge is at the fence of this name.
    fn same_fence(&self, n: u64, fence: u32) -> Accepted {
        let (_, _, at, _) = self.state.record_of(n).ok_or("it has no record")?;
        let name = fence_name(&self.setup.pages.fence(at as u32));
        match name == fence {
            true => Ok(()),
            false => {
                let why = format!("its fence is not that of {at:#x}");
                let pages = &self.setup.pages;
                let mut all = pages.least..=pages.top;
                match all.find(|at| fence_name(&pages.fence(*at)) == fence) {
                    Some(found) => {
                        self.claim(Err(why), || holds(&format!("log[{n}].key = {found}")))
                    }
                    None => Err(why),
                }
            }
        }
    }

    /// The superblock that was announced is durable.
    pub(super) fn super_flushed(&mut self) -> Accepted {
        let Some(n) = self.superblock.take() else {
            return Err("no superblock was about to be written".into());
        };
        if n == self.state.redo_start() {
            return Ok(());
        }
        let may = self.step(&Action::Checkpoint, |mirror, s| mirror.try_checkpoint(s, n));
        let not = || format!("a page lacks a record before {n}, where redo is to begin");
        self.claim(may.then_some(()).ok_or_else(not), || {
            format!("CheckpointTo({n})")
        })
    }

    // Requests to the mirror, and translations of numbers.

    fn same_lsn(&self, p: u8, lsn: Lsn) -> Accepted {
        let n = self.number(lsn)?;
        let is = same(
            "the page's LSN",
            n,
            self.mirror.page_now(&self.state, p).lsn,
        );
        self.claim(is, || holds(&format!("leaf[{p}].lsn = {n}")))
    }

    /// The page of a call's key.
    fn same_leaf(&self, c: u8, p: u8, key: u8) -> Accepted {
        let is = same("the page", p, self.mirror.page_of(&self.state, key));
        self.claim(is, || holds(&format!("LeafOf(c{}) = {p}", c + 1)))
    }

    /// The value of the spec with this digest; what is left of one that was cut, if there is none.
    pub(super) fn value_with(&self, found: u64) -> String {
        let mut values = 0..=self.state.asked();
        match values.find(|value| self.digest_of(*value) == found) {
            Some(0) => "Absent".into(),
            Some(value) => value.to_string(),
            None => "Cut".into(),
        }
    }

    /// The spec's number of a page.
    pub(super) fn page(&self, page: PageId) -> Result<u8, String> {
        let at = self.ids.iter().rposition(|id| *id == page);
        let at = at.ok_or_else(|| format!("{page} was never made"))?;
        Ok(at as u8 + 1)
    }

    /// The spec's number of the page of this id that a record names.
    pub(super) fn page_named(&self, page: PageId, n: u64) -> Option<u8> {
        let (_, of, _, right) = self.state.record_of(n)?;
        let is_it = |p: &u8| *p > 0 && self.ids.get(usize::from(*p) - 1) == Some(&page);
        [of, right].into_iter().find(is_it)
    }

    /// The spec's LSN of a record or page.
    pub(super) fn number(&self, lsn: Lsn) -> Result<u64, String> {
        if lsn.0 == 0 {
            return Ok(self.base);
        }
        let n = self.appended.get(&lsn).copied();
        n.ok_or_else(|| format!("{lsn} is not the LSN of a remaining record"))
    }

    /// The number of records before this position of the log.
    pub(super) fn position(&self, lsn: Lsn) -> u64 {
        let before = self.appended.range(..=lsn).next_back();
        before.map_or(self.base, |(_, n)| *n)
    }

    /// The kind of a record.
    pub(super) fn is(&self, n: u64) -> Option<Is> {
        self.state.record_of(n).map(|(is, ..)| is)
    }
}
