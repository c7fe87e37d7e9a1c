//! The mirror as the judge of a recording: it is led step by step, and only its state's size bounds
//! it.
//!
//! A checker asks for every enabled step. A judge has one step in hand and asks whether it is
//! enabled. The guards are the same. One step is finer than the spec's, and does less: see
//! [`CopyOnWrite::try_redo`].

use super::super::wal_recovery::Versions;
use super::invariants::INVARIANTS;
use super::room::{CLIENTS, LOG, N, PAGES, SLOTS, Set};
use super::state::{Call, Content, InSlot, NO_SLOT, PENDING, Phase, State, Super, Writing};
use super::state::{bit, named_by, redo_one, reindexed, slot_bit};
use super::{Action, Bug, CopyOnWrite, Discards};
use crate::Value;
use crate::mirror::invariants;

/// A version of a slot, as a judge compares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotName {
    /// Zeros.
    Zeros,
    /// The image of a page, with its LSN.
    Image(usize, u64),
    /// A snapshot, with its number.
    Snapshot(u64),
}

/// A version of a superblock, as a judge compares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SuperName {
    /// Its number.
    pub number: u64,
    /// The LSN after which redo begins.
    pub redo: u64,
    /// The slot of its snapshot, counted from 1.
    pub snapshot: u8,
}

/// What a crash leaves: the version of each place, counted from the durable one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Of each slot.
    pub slots: Vec<usize>,
    /// Of each table block.
    pub table: Vec<usize>,
    /// Of both places of the superblock.
    pub supers: [usize; 2],
}

impl CopyOnWrite {
    /// The protocol for the given numbers of clients, pages and slots, and one block of the table.
    /// Any client may write and get anything. Any free slot may be taken, any flush may fail, and
    /// the power may fail at any time.
    ///
    /// # Panics
    /// If the state has no room for as many.
    #[must_use]
    pub fn unbounded(clients: usize, pages: usize, slots: usize) -> Self {
        assert!(clients <= CLIENTS && pages <= PAGES && slots <= SLOTS);
        let named = |letter: char, n: usize| {
            let names = (1..=n).map(|i| Value::model(format!("{letter}{i}")));
            names.collect()
        };
        Self {
            clients: named('c', clients),
            pages: named('p', pages),
            blocks: 1,
            slots: slots as u8,
            values: LOG as N,
            absent: Value::model("Absent"),
            pending: Value::model("Pending"),
            each: true,
            checkpoints: true,
            tears: false,
            discards: Discards::Act,
            bug: Bug::None,
            second: 0,
            deletes: 0,
            either: 0,
            home: 0,
            at_home: 0,
            readers: Set::MAX,
            max_crashes: N::MAX,
            max_restarts: N::MAX,
            flushes_fail: true,
            bounded: false,
            invariants: invariants(&INVARIANTS),
        }
    }

    /// The maximum number of pages.
    pub const MOST_PAGES: usize = PAGES;

    /// The maximum number of slots.
    pub const MOST_SLOTS: usize = SLOTS;

    /// The initial state: the table is written each time, or at checkpoints.
    #[must_use]
    pub fn first(&self, each: bool) -> State {
        self.initial(each)
    }

    /// Takes a step, other than a crash or restart, if it is enabled. Returns whether it was.
    pub fn try_take(&self, s: &mut State, action: Action) -> bool {
        let may = self.steps(s).contains(&action);
        if may {
            self.take(s, action);
        }
        may
    }

    /// All enabled steps, except crashes and restarts.
    #[must_use]
    pub fn steps(&self, s: &State) -> Vec<Action> {
        let mut actions = Vec::new();
        self.enabled_but_crashes(s, &mut actions);
        actions
    }

    /// Takes a `Crash` that leaves the log up to record `n` and these versions. Returns `false` if
    /// there are no such versions.
    pub fn try_crash(&self, s: &mut State, n: u64, left: &Left) -> bool {
        fn all<T: Copy + Default + std::hash::Hash, const ROOM: usize>(
            places: &mut [Versions<T, ROOM>],
            versions: &[usize],
        ) -> bool {
            let mut places = places.iter_mut().zip(versions);
            places.all(|(place, version)| {
                let left = place.all().get(*version).copied();
                left.map(|left| *place = Versions::durably(left)).is_some()
            })
        }
        let Some(n) = log_end(s, n) else {
            return false;
        };
        let may = all(&mut s.slot_dev, &left.slots)
            && all(&mut s.table_dev, &left.table)
            && all(&mut s.super_dev, &left.supers);
        if may {
            self.reopen_after_crash(s, n);
        }
        may
    }

    /// Takes a `Restart` that finds the log up to record `n`. Returns `false` if the log cannot end
    /// there.
    pub fn try_restart(&self, s: &mut State, n: u64) -> bool {
        let n = log_end(s, n);
        if let Some(n) = n {
            self.restart(s, n);
        }
        n.is_some()
    }

    /// Takes the `RedoRecord` of record `n`. Records are redone in order for each page, but not in
    /// log order: the engine redoes page by page, and records of different pages commute. The
    /// engine reports only records that the page lacked. Returns `false` if another record is next.
    pub fn try_redo(&self, s: &mut State, n: u64) -> bool {
        let Some((n, record)) = s.records().find(|(m, _)| u64::from(*m) == n) else {
            return false;
        };
        let (record, p) = (*record, usize::from(record.page));
        let may = matches!(s.phase, Phase::Cut | Phase::Killed) && self.missing(s, p) == Some(n);
        if may {
            s.page[p] = redo_one(s.page[p], &record, n);
            s.index = reindexed(s.index, &record);
        }
        may
    }

    /// The first record that redo has yet to apply to a page.
    fn missing(&self, s: &State, p: usize) -> Option<N> {
        let (lsn, redo) = (s.page[p].lsn, s.newest.redo);
        let mut records = s.records().filter(|(_, r)| usize::from(r.page) == p);
        records.find(|(n, _)| *n > lsn && *n > redo).map(|(n, _)| n)
    }

    /// Takes `FinishRedo`, after the records that [`CopyOnWrite::try_redo`] was told of; pages had
    /// the others.
    ///
    /// # Errors
    /// The page, and a record that it lacks.
    pub fn try_finish_redo(&self, s: &mut State) -> Result<(), (usize, u64)> {
        let mut lacking = self.pages().map(|p| (p, self.missing(s, p)));
        if let Some((p, Some(n))) = lacking.find(|(_, missing)| missing.is_some()) {
            return Err((p, n.into()));
        }
        s.redone = s.log_len;
        self.take(s, Action::FinishRedo);
        Ok(())
    }

    /// The slots that a recovery, or the table in memory, may name.
    #[must_use]
    pub fn needed(&self, s: &State) -> Vec<u8> {
        let tables = s.table_dev.iter().flat_map(|place| place.all());
        let named = tables.fold(named_by(&s.table), |set, table| set | named_by(table));
        let chosen = self.may_choose(s).map(|chosen| slot_bit(chosen.snapshot));
        let needed = chosen.fold(named, |set, slot| set | slot);
        (1..=self.slots)
            .filter(|slot| needed & slot_bit(*slot) != 0)
            .collect()
    }

    /// Whether the table in memory differs from the newest on the device.
    #[must_use]
    pub fn is_table_dirty(&self, s: &State) -> bool {
        self.dirty_blocks(s) != 0
    }

    /// Whether a page in memory differs from its newest image.
    #[must_use]
    pub fn is_page_dirty(&self, s: &State, p: usize) -> bool {
        s.is_dirty(p)
    }
}

fn log_end(s: &State, n: u64) -> Option<N> {
    let known = u64::from(s.durable)..=u64::from(s.log_len);
    known.contains(&n).then_some(n as N)
}

/// What a judge reads of a state. All numbers have 64 bits.
impl State {
    /// A client's outstanding call.
    #[must_use]
    pub fn call(&self, c: u8) -> Call {
        self.call[usize::from(c)]
    }

    /// The value that a client's get has read.
    #[must_use]
    pub fn got(&self, c: u8) -> Option<u64> {
        match self.call(c) {
            Call::Get { got, .. } if got != PENDING => Some(got.into()),
            _ => None,
        }
    }

    /// Number of records in the log (`Len(log)`).
    #[must_use]
    pub fn log_len(&self) -> u64 {
        self.log_len.into()
    }

    /// The LSN up to which the log is durable (`durable`).
    #[must_use]
    pub fn durable(&self) -> u64 {
        self.durable.into()
    }

    /// The LSN after which redo begins (`super.redo`).
    #[must_use]
    pub fn redo_start(&self) -> u64 {
        self.newest.redo.into()
    }

    /// The number of the newest superblock (`super.number`).
    #[must_use]
    pub fn number(&self) -> u64 {
        self.newest.number.into()
    }

    /// Whether a flush has failed since the last start (`poisoned`).
    #[must_use]
    pub fn poisoned(&self) -> bool {
        self.poisoned
    }

    /// The phase.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Whether anything is written and not flushed.
    #[must_use]
    pub fn has_unflushed(&self) -> bool {
        self.something_written()
    }

    /// Whether a slot has versions that are not flushed. Slots are counted from 1.
    #[must_use]
    pub fn is_slot_unflushed(&self, slot: u8) -> bool {
        self.slot(slot).is_unflushed()
    }

    /// Whether a table block has versions that are not flushed.
    #[must_use]
    pub fn is_table_unflushed(&self) -> bool {
        self.table_dev.iter().any(Versions::is_unflushed)
    }

    /// Whether a superblock has versions that are not flushed.
    #[must_use]
    pub fn is_super_unflushed(&self) -> bool {
        self.super_dev.iter().any(Versions::is_unflushed)
    }

    /// The slot of a page in the table in memory; 0 if it has none.
    #[must_use]
    pub fn slot_of(&self, p: usize) -> u8 {
        self.table[p]
    }

    /// The slots that the next version of the table names, and the image that is being named.
    pub fn slots_of_table(&self) -> impl Iterator<Item = u8> + '_ {
        let naming = match self.writing {
            Writing::Image { slot, .. } => Some(slot),
            _ => None,
        };
        let named = self.table.iter().copied().filter(|slot| *slot != NO_SLOT);
        named.chain(naming)
    }

    /// The slot of the snapshot of the checkpoint under way; 0 if there is none.
    #[must_use]
    pub fn new_snapshot(&self) -> u8 {
        self.checkpoint.slot
    }

    /// The position at which the checkpoint under way began.
    #[must_use]
    pub fn begun(&self) -> u64 {
        self.checkpoint.begin.into()
    }

    /// The LSN of the last change of a page in memory, if it exists.
    #[must_use]
    pub fn lsn_of(&self, p: usize) -> Option<u64> {
        let page = self.page[p];
        (page != Content::default()).then(|| page.lsn.into())
    }

    /// The page of record `n`.
    #[must_use]
    pub fn page_of_record(&self, n: u64) -> Option<usize> {
        let mut records = self.records();
        let (_, record) = records.find(|(m, _)| u64::from(*m) == n)?;
        Some(usize::from(record.page))
    }

    /// Whether a page exists (`index`).
    #[must_use]
    pub fn exists(&self, p: usize) -> bool {
        self.index & bit(p) != 0
    }

    /// The versions of a slot, oldest first.
    pub fn slot_versions(&self, slot: u8) -> impl DoubleEndedIterator<Item = SlotName> + '_ {
        self.slot(slot).all().iter().map(|content| match *content {
            InSlot::Zeros => SlotName::Zeros,
            InSlot::Image { page, content } => SlotName::Image(page.into(), content.lsn.into()),
            InSlot::Snapshot { number, .. } => SlotName::Snapshot(number.into()),
        })
    }

    /// The versions of the table, oldest first: the slot of each page, or 0.
    pub fn table_versions(&self) -> impl DoubleEndedIterator<Item = &[u8]> + '_ {
        self.table_dev[0].all().iter().map(|table| &table[..])
    }

    /// The versions of a superblock, oldest first.
    pub fn super_versions(&self, i: usize) -> impl DoubleEndedIterator<Item = SuperName> + '_ {
        let all = self.super_dev[i].all().iter();
        all.map(|of: &Super| SuperName {
            number: of.number.into(),
            redo: of.redo.into(),
            snapshot: of.snapshot,
        })
    }
}
