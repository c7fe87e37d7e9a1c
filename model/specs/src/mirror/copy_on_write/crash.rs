//! Crashes, restarts and recovery.

use super::super::wal_recovery::Versions;
use super::room::N;
use super::state::{Call, Checkpoint, Content, Entries, NO_SLOT, Phase, Record, State};
use super::state::{Super, Writing, bit, named_by, redo_one, reindexed, slot_bit};
use super::{Action, Bug, CopyOnWrite};

impl CopyOnWrite {
    /// Adds the enabled crashes and restarts.
    pub(super) fn crashes(&self, s: &State, actions: &mut Vec<Action>) {
        for n in s.durable..=s.log_len {
            if s.crashes < self.max_crashes {
                actions.extend((0..self.outcomes(s)).map(|left| Action::Crash(n, left)));
            }
            if s.crashes < self.max_restarts {
                actions.push(Action::Restart(n));
            }
        }
    }

    pub(super) fn recovery_steps(&self, s: &State, actions: &mut Vec<Action>) {
        match s.phase {
            Phase::Up => {}
            Phase::Cut | Phase::Killed => {
                if s.redone < s.log_len {
                    actions.push(Action::RedoRecord);
                }
                let ends = s.redone == s.log_len || self.bug == Bug::StopsRedoEarly;
                if ends && s.writing == Writing::Quiet {
                    actions.push(Action::FinishRedo);
                }
            }
            Phase::Clearing => {
                if s.writing == Writing::Quiet && self.dirty_blocks(s) == 0 {
                    actions.push(Action::Open);
                }
            }
        }
    }

    /// The number of combinations of versions that a crash may leave.
    fn outcomes(&self, s: &State) -> u32 {
        let slots = s.slot_dev.iter().map(|place| place.all().len());
        let table = s.table_dev.iter().map(|place| place.all().len());
        let supers = (0..2).map(|i| s.super_dev[i].all().len() + usize::from(self.may_tear(s, i)));
        slots.chain(table).chain(supers).product::<usize>() as u32
    }

    /// The power fails, and the digits of `left` select what is left.
    pub(super) fn crash(&self, s: &mut State, n: N, left: u32) {
        let mut rest = left as usize;
        for place in &mut s.slot_dev {
            *place = Versions::durably(picked(place.all(), &mut rest));
        }
        for place in &mut s.table_dev {
            *place = Versions::durably(picked(place.all(), &mut rest));
        }
        for i in 0..2 {
            let torn = self.may_tear(s, i).then(Super::default);
            let all: Vec<_> = s.super_dev[i].all().iter().copied().chain(torn).collect();
            s.super_dev[i] = Versions::durably(picked(&all, &mut rest));
        }
        self.reopen_after_crash(s, n);
    }

    /// The rest of `Crash`, once each place has the version that is left.
    pub(super) fn reopen_after_crash(&self, s: &mut State, n: N) {
        (s.lost_slots, s.lost_table, s.lost_super) = (0, 0, 0);
        self.reads(s, n);
        s.phase = Phase::Cut;
    }

    /// `Restart`.
    pub(super) fn restart(&self, s: &mut State, n: N) {
        if self.bug != Bug::RestartSkipsFlush {
            if !matches!(self.bug, Bug::TrustsTable | Bug::TrustsWhatItReads) {
                s.lost_table = 0;
            }
            if !matches!(self.bug, Bug::TrustsSuperblock | Bug::TrustsWhatItReads) {
                s.lost_super = 0;
            }
            s.device_flush();
        }
        self.reads(s, n);
        s.phase = Phase::Killed;
    }

    /// `CutLog`, `Reads` and `ForgetMemory`.
    fn reads(&self, s: &mut State, n: N) {
        s.log[usize::from(n)..].fill(Record::default());
        (s.log_len, s.durable) = (n, n);
        let chosen = self.chosen(&s.super_dev.map(|place| place.newest()));
        s.newest = chosen;
        s.index = s.pages_of(chosen);
        let blocks: [Entries; super::BLOCKS] = s.table_dev.map(|place| place.newest());
        s.table = self.table_of(&blocks);
        s.page = std::array::from_fn(|p| s.image_at(s.table[p], p));
        s.free = self.all_slots() & !(named_by(&s.table) | slot_bit(chosen.snapshot));
        s.oldest = chosen.redo;
        s.redone = chosen.redo;
        s.call.fill(Call::Idle);
        s.retired.fill(0);
        s.writing = Writing::Quiet;
        s.checkpoint = Checkpoint::NONE;
        s.poisoned = false;
        s.crashes += 1;
    }

    pub(super) fn redo_record(&self, s: &mut State) {
        let record = s.log[usize::from(s.redone)];
        s.redone += 1;
        let page = &mut s.page[usize::from(record.page)];
        *page = redo_one(*page, &record, s.redone);
        s.index = reindexed(s.index, &record);
    }

    pub(super) fn finish_redo(&self, s: &mut State) {
        let persisted = self.persisted(s);
        let mut dead = 0;
        for p in self.pages().filter(|p| s.index & bit(*p) == 0) {
            s.page[p] = Content::default();
            dead |= slot_bit(std::mem::replace(&mut s.table[p], NO_SLOT));
        }
        let early = self.bug == Bug::ReusesDead;
        self.release(s, if early { dead } else { dead & !persisted });
        s.phase = if early { Phase::Up } else { Phase::Clearing };
        s.redone = 0;
    }
}

/// Takes the next digit of `rest`, in base of the number of versions, and returns that version.
fn picked<T: Copy>(versions: &[T], rest: &mut usize) -> T {
    let version = versions[*rest % versions.len()];
    *rest /= versions.len();
    version
}
