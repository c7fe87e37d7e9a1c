//! The actions of `CopyOnWrite.tla`, except crashes and recovery, in their order.
//!
//! [`CopyOnWrite::enabled`] contains the guards, [`CopyOnWrite::take`] the effects. An action is
//! taken only if it is enabled.

use super::super::wal_recovery::Versions;
use super::room::{N, Set, SlotSet};
use super::state::{ABSENT, Call, Checkpoint, Content, Entries, InSlot, Kind, NO_SLOT, PENDING};
use super::state::{Phase, Record, State, Step, Super, Writing, bit, named_by, slot_bit};
use super::{Action, Bug, CopyOnWrite, Discards};

fn has(set: Set, member: impl Into<u32>) -> bool {
    set.checked_shr(member.into()).unwrap_or(0) & 1 == 1
}

impl CopyOnWrite {
    fn clients(&self) -> impl Iterator<Item = u8> + use<> {
        0..self.clients.len() as u8
    }

    /// The pages.
    pub(super) fn pages(&self) -> impl Iterator<Item = usize> + use<> {
        0..self.pages.len()
    }

    pub(super) fn enabled(&self, s: &State, actions: &mut Vec<Action>) {
        self.enabled_but_crashes(s, actions);
        self.crashes(s, actions);
    }

    /// All enabled steps, except crashes and restarts.
    pub(super) fn enabled_but_crashes(&self, s: &State, actions: &mut Vec<Action>) {
        for c in self.clients() {
            self.client_steps(s, c, actions);
        }
        if s.serving() {
            actions.extend((s.durable + 1..=s.log_len).map(Action::CommitLog));
            self.checkpoint_steps(s, actions);
        }
        if !s.poisoned {
            self.page_steps(s, actions);
            self.recovery_steps(s, actions);
        }
    }

    fn client_steps(&self, s: &State, c: u8, actions: &mut Vec<Action>) {
        let call = s.call[usize::from(c)];
        if let Call::Write { lsn, .. } = call
            && s.phase == Phase::Up
            && lsn > 0
            && (lsn <= s.durable || self.bug == Bug::AcksAtOnce)
        {
            actions.push(Action::Acknowledge(c));
        }
        if s.phase == Phase::Up && s.poisoned && call.waits() {
            actions.push(Action::FailCall(c));
        }
        if s.phase == Phase::Up
            && let Call::Get { got, .. } = call
        {
            actions.push(match got {
                PENDING => Action::ReadPage(c),
                _ => Action::AnswerGet(c),
            });
        }
        if !s.serving() {
            return;
        }
        match call {
            Call::Write {
                page,
                value,
                lsn: 0,
            } => {
                let p = usize::from(page);
                if value == ABSENT {
                    actions.push(Action::DropPage(c));
                } else if s.index & bit(p) != 0 {
                    actions.push(Action::ChangePage(c));
                } else if s.retired[p] == 0 {
                    actions.push(Action::BuildPage(c));
                }
            }
            Call::Write { .. } | Call::Get { .. } => {}
            Call::Idle | Call::Refused | Call::Unknown => self.calls(s, c, actions),
        }
    }

    fn calls(&self, s: &State, c: u8, actions: &mut Vec<Action>) {
        let n = s.log_len;
        for p in self.pages() {
            let page = p as u8;
            if has(self.readers, c) {
                actions.push(Action::CallGet(c, page));
            }
            if n >= self.values || has(self.at_home, n) && page != self.home {
                continue;
            }
            if !has(self.deletes, n) {
                actions.push(Action::CallWrite(c, page, false));
            }
            if has(self.deletes, n) || has(self.either, n) {
                actions.push(Action::CallWrite(c, page, true));
            }
        }
    }

    /// The slots that may be taken.
    fn may_take(&self, s: &State) -> impl Iterator<Item = u8> + use<> {
        let (free, bounded) = (s.free, self.bounded);
        let slots = (1..=self.slots).filter(move |slot| free & slot_bit(*slot) != 0);
        slots.take(if bounded { 1 } else { usize::MAX })
    }

    fn page_steps(&self, s: &State, actions: &mut Vec<Action>) {
        match s.writing {
            Writing::Quiet => {
                for p in self.pages() {
                    if s.phase != Phase::Clearing && self.may_write(s, p) {
                        let slots = self.may_take(s);
                        actions.extend(slots.map(|slot| Action::WriteImage(p as u8, slot)));
                    }
                    let retired = s.retired[p];
                    let logged = retired <= s.durable || self.bug == Bug::FreesBeforeLog;
                    if s.phase == Phase::Up && retired > 0 && logged {
                        actions.push(Action::FreePage(p as u8));
                    }
                }
                if self.dirty_blocks(s) != 0 {
                    actions.push(Action::WriteTable);
                }
            }
            Writing::Image { .. } if s.phase != Phase::Clearing => actions.push(Action::NameImage),
            Writing::Image { .. } => {}
            Writing::Table(_) => actions.push(Action::FinishTable),
        }
        if s.something_written() {
            actions.push(Action::FlushDevice);
            if self.flushes_fail {
                actions.push(Action::FailFlush);
            }
        }
    }

    fn may_write(&self, s: &State, p: usize) -> bool {
        s.is_dirty(p) && (s.page[p].lsn <= s.durable || self.bug == Bug::PageBeforeLog)
    }

    /// `Lacks`: a page that exists and whose image lacks a change up to `up_to`.
    fn lacks(&self, s: &State, p: usize, up_to: N) -> bool {
        let stored = s.image_at(s.table[p], p).lsn;
        let changes = s.records().rev();
        let mut changes = changes
            .filter(|(_, record)| usize::from(record.page) == p)
            .take_while(|(_, record)| record.kind != Kind::Drop);
        s.index & bit(p) != 0 && changes.any(|(n, _)| n > stored && n <= up_to)
    }

    fn checkpoint_steps(&self, s: &State, actions: &mut Vec<Action>) {
        let Checkpoint {
            at, begin, up_to, ..
        } = s.checkpoint;
        match at {
            Step::None if !self.bounded || s.newest.redo < s.log_len => {
                actions.push(Action::BeginCheckpoint);
            }
            Step::None => {}
            Step::Sweep => {
                let swept =
                    self.bug == Bug::SkipsSweep || !self.pages().any(|p| self.lacks(s, p, begin));
                if swept {
                    actions.extend(self.may_take(s).map(Action::WriteSnapshot));
                }
            }
            Step::Snapshot => {
                let clean = self.dirty_blocks(s) == 0 || self.bug == Bug::SkipsTable;
                if s.writing == Writing::Quiet && clean {
                    actions.push(Action::PersistTable);
                }
            }
            Step::Named if up_to <= s.durable || self.bug == Bug::SnapshotBeforeLog => {
                actions.push(Action::WriteSuper);
            }
            Step::Named => {}
            Step::Recorded => actions.push(Action::FinishCheckpoint),
        }
    }

    /// Takes an enabled action.
    pub(super) fn take(&self, s: &mut State, action: Action) {
        match action {
            Action::CallGet(c, page) => s.call[usize::from(c)] = Call::Get { page, got: PENDING },
            Action::CallWrite(c, page, delete) => {
                let value = if delete { ABSENT } else { s.log_len + 1 };
                s.call[usize::from(c)] = Call::Write {
                    page,
                    value,
                    lsn: 0,
                };
            }
            Action::ReadPage(c) => {
                if let Call::Get { page, got } = &mut s.call[usize::from(c)] {
                    *got = s.page[usize::from(*page)].value;
                }
            }
            Action::AnswerGet(c) | Action::Acknowledge(c) => s.call[usize::from(c)] = Call::Idle,
            Action::FailCall(c) => {
                let call = &mut s.call[usize::from(c)];
                let made = matches!(call, Call::Write { lsn, .. } if *lsn > 0);
                *call = match made && self.bug != Bug::RefusedShows {
                    true => Call::Unknown,
                    false => Call::Refused,
                };
            }
            Action::BuildPage(c) => make(s, c, Kind::Build),
            Action::ChangePage(c) => make(s, c, Kind::Put),
            Action::DropPage(c) => make(s, c, Kind::Drop),
            Action::CommitLog(n) => s.durable = n,
            Action::WriteImage(p, slot) => self.write_image(s, usize::from(p), slot),
            Action::FreePage(p) => self.free_page(s, usize::from(p)),
            Action::NameImage => {
                if let Writing::Image { page, slot } = s.writing {
                    let p = usize::from(page);
                    let old = std::mem::replace(&mut s.table[p], slot);
                    self.flush_then_write(s, bit(self.block_of(p)));
                    s.writing = Writing::Table(slot_bit(old));
                }
            }
            Action::WriteTable => {
                let held = self.held(s);
                let dirty = self.dirty_blocks(s);
                self.flush_then_write(s, dirty);
                s.writing = Writing::Table(held);
            }
            Action::FinishTable => {
                if let Writing::Table(left) = s.writing {
                    if self.bug != Bug::FreesBeforeTable {
                        s.device_flush();
                    }
                    self.release(s, left);
                    s.writing = Writing::Quiet;
                }
            }
            Action::FlushDevice => s.device_flush(),
            Action::FailFlush => fail_flush(s),
            Action::BeginCheckpoint => {
                s.checkpoint = Checkpoint {
                    at: Step::Sweep,
                    begin: s.log_len,
                    ..Checkpoint::NONE
                };
            }
            Action::WriteSnapshot(slot) => {
                let (number, pages) = (s.newest.number + 1, s.index);
                s.write_slot(slot, InSlot::Snapshot { number, pages });
                s.free &= !slot_bit(slot);
                s.checkpoint = Checkpoint {
                    at: Step::Snapshot,
                    slot,
                    up_to: s.log_len,
                    ..s.checkpoint
                };
            }
            Action::PersistTable => s.checkpoint.at = Step::Named,
            Action::WriteSuper => {
                if self.bug == Bug::SuperBeforeSnapshot {
                    s.flush_super();
                } else {
                    s.device_flush();
                }
                let new = new_super(s);
                let place = self.place_of(new.number);
                s.super_dev[place].push(new);
                s.lost_super &= !bit(place);
                s.checkpoint.at = Step::Recorded;
            }
            Action::FinishCheckpoint => self.finish_checkpoint(s),
            Action::Crash(n, left) => self.crash(s, n, left),
            Action::Restart(n) => self.restart(s, n),
            Action::RedoRecord => self.redo_record(s),
            Action::FinishRedo => self.finish_redo(s),
            Action::Open => s.phase = Phase::Up,
        }
    }

    /// `PlaceOf`: the place of a superblock with this number.
    fn place_of(&self, number: N) -> usize {
        match self.bug {
            Bug::OnePlace => 0,
            _ => usize::from(number % 2),
        }
    }

    /// `LeftAtOnce`: the slot that a page has left, if it is free at once.
    fn left_at_once(&self, s: &State, old: u8) -> SlotSet {
        let wait = self.persisted(s) & slot_bit(old) != 0 && self.bug != Bug::ReusesPersisted;
        if wait { 0 } else { slot_bit(old) }
    }

    fn write_image(&self, s: &mut State, p: usize, slot: u8) {
        let page = p as u8;
        let old = s.table[p];
        let left = if s.each { 0 } else { self.left_at_once(s, old) };
        let late = self.bug == Bug::TrimsLate && s.slot(slot).newest() == InSlot::Zeros;
        let content = s.page[p];
        s.write_slot(slot, InSlot::Image { page, content });
        if late {
            s.write_slot(slot, InSlot::Zeros);
        }
        s.free &= !slot_bit(slot);
        self.release(s, left);
        if s.each {
            s.writing = Writing::Image { page, slot };
        } else {
            s.table[p] = slot;
        }
    }

    /// `FlushThenWrite`, with the table in memory.
    fn flush_then_write(&self, s: &mut State, blocks: Set) {
        if self.bug != Bug::TableBeforePage {
            s.device_flush();
        }
        let table: Entries = s.table;
        for b in 0..self.blocks {
            if blocks & bit(b) != 0 {
                let entries = self.entries(&table, b);
                s.table_dev[b].push(entries);
            }
        }
        s.lost_table &= !blocks;
    }

    fn free_page(&self, s: &mut State, p: usize) {
        s.retired[p] = 0;
        let old = s.table[p];
        if s.each && old != NO_SLOT {
            s.table[p] = NO_SLOT;
            self.flush_then_write(s, bit(self.block_of(p)));
            s.writing = Writing::Table(slot_bit(old));
        } else {
            let left = self.left_at_once(s, old);
            s.table[p] = NO_SLOT;
            self.release(s, left);
        }
    }

    fn finish_checkpoint(&self, s: &mut State) {
        if self.bug != Bug::FreesBeforeSuper {
            s.device_flush();
        }
        let old = s.newest.snapshot;
        s.newest = new_super(s);
        s.oldest = s.checkpoint.begin;
        self.release(s, slot_bit(old) & !slot_bit(s.checkpoint.slot));
        s.checkpoint = Checkpoint::NONE;
    }

    /// Trims slots, which are then free.
    pub(super) fn release(&self, s: &mut State, slots: SlotSet) {
        if self.discards == Discards::Act {
            s.trim(slots);
        }
        s.free |= slots;
    }

    /// `InUse`, which no slot outside of `free` may be missing from.
    pub(super) fn in_use(&self, s: &State) -> SlotSet {
        let writing = match s.writing {
            Writing::Quiet => 0,
            Writing::Image { slot, .. } => slot_bit(slot),
            Writing::Table(left) => left,
        };
        let snapshots = slot_bit(s.newest.snapshot) | slot_bit(s.checkpoint.slot);
        named_by(&s.table) | self.persisted(s) | snapshots | writing
    }
}

/// `NewSuper`: the superblock of the checkpoint.
fn new_super(s: &State) -> Super {
    Super {
        number: s.newest.number + 1,
        redo: s.checkpoint.begin,
        snapshot: s.checkpoint.slot,
        made: s.newest.number + 1,
    }
}

/// A write takes effect, in the log and in its page.
fn make(s: &mut State, c: u8, kind: Kind) {
    let n = s.log_len + 1;
    let Call::Write { page, value, lsn } = &mut s.call[usize::from(c)] else {
        return;
    };
    *lsn = n;
    let (page, value) = (*page, *value);
    s.log[usize::from(s.log_len)] = Record { kind, page, value };
    s.log_len = n;
    let p = usize::from(page);
    if kind == Kind::Drop {
        s.page[p] = Content::default();
        if s.index & bit(p) != 0 {
            s.retired[p] = n;
        }
        s.index &= !bit(p);
    } else {
        s.page[p] = Content { value, lsn: n };
        s.index |= bit(p);
    }
}

fn fail_flush(s: &mut State) {
    fn unflushed<T: Copy + Default + std::hash::Hash, const ROOM: usize>(
        places: &[Versions<T, ROOM>],
    ) -> impl Iterator<Item = usize> + '_ {
        let places = places.iter().enumerate();
        places.filter_map(|(i, place)| place.is_unflushed().then_some(i))
    }
    s.lost_slots = unflushed(&s.slot_dev).fold(0, |set, i| set | slot_bit(i as u8 + 1));
    s.lost_table = unflushed(&s.table_dev).fold(0, |set, i| set | bit(i));
    s.lost_super = unflushed(&s.super_dev).fold(0, |set, i| set | bit(i));
    s.poisoned = true;
}
