//! The actions of `RedoLog.tla`, except crashes and recovery, in their order.
//!
//! [`RedoLog::enabled`] contains the guards, [`RedoLog::take`] the effects. An action is taken only
//! if it is enabled.

use super::format::{Entry, N, Super, Unit, units_of};
use super::state::{Call, Packing, Phase, State, Step};
use super::{Action, Bug, RedoLog};

impl RedoLog {
    pub(super) fn enabled(&self, s: &State, actions: &mut Vec<Action>) {
        for c in 0..self.clients.len() {
            self.client_steps(s, c, actions);
        }
        if s.serves() {
            self.log_steps(s, actions);
        }
        let fails = s.phase == Phase::Up || s.phase == Phase::Closing;
        let gives_up = s.recovers() && s.crashes < self.max_restarts;
        if (fails || gives_up) && !s.poisoned && s.something_written() && self.flushes_fail {
            actions.push(Action::FailFlush);
        }
        if s.phase == Phase::Closing && !s.poisoned {
            actions.push(Action::Close);
        }
        if self.writes_fail && self.may_fail_write(s) {
            let hidden = 1..1 << self.rewritten(s).len();
            actions.extend(hidden.map(Action::FailWrite));
        }
        self.recovery_steps(s, actions);
    }

    fn client_steps(&self, s: &State, c: usize, actions: &mut Vec<Action>) {
        let call = s.call[c];
        if s.phase != Phase::Up {
            return;
        }
        if let Some(lsn) = call.awaited() {
            if lsn <= s.durable || self.bug == Bug::AcksAtOnce {
                actions.push(Action::Acknowledge(c));
            }
            if lsn > s.durable && !s.poisoned && self.leaves {
                actions.push(Action::Leave(c));
            }
        }
        let undone = call.awaited().is_none_or(|lsn| lsn > s.durable);
        if s.poisoned {
            if call.waits() && undone {
                actions.push(Action::FailCall(c));
            }
            return;
        }
        match call {
            Call::Append { len, lsn: 0, .. } => {
                let limit = (self.block_of(s.oldest) + self.ring) * self.units;
                let room = self.next(s) + len <= limit || self.bug == Bug::OverrunsLog;
                actions.push(match room {
                    true => Action::AppendRecord(c),
                    false => Action::RefuseAppend(c),
                });
            }
            Call::Append { .. } => {}
            Call::Idle | Call::Refused | Call::Unknown => {
                if s.asked < self.records {
                    let lengths = self.lengths.iter().filter(|len| **len <= 2 * self.units);
                    actions.extend(lengths.map(|len| Action::CallAppend(c, *len)));
                }
            }
        }
    }

    fn log_steps(&self, s: &State, actions: &mut Vec<Action>) {
        let in_flight = s.flying != (0, 0);
        if in_flight {
            actions.push(Action::CompleteFlush);
        } else if s.durable < s.end {
            actions.push(Action::WriteLog);
        }
        let (step, begin) = s.checkpoint;
        match step {
            Step::None => {
                let due = self.checkpoints != 0 && s.asked >= self.checkpoints;
                if s.oldest < s.end && due {
                    actions.push(Action::BeginCheckpoint);
                }
            }
            Step::Begun if begin <= s.durable || self.bug == Bug::SuperBeforeLog => {
                actions.push(Action::WriteSuper);
            }
            Step::Begun => {}
            Step::Recorded => actions.push(Action::FinishCheckpoint),
        }
        let quiet = !in_flight && step == Step::None && !s.call.iter().any(|call| call.waits());
        let read = s.durable == s.end && s.oldest < s.end && s.starts_at * self.units < s.end;
        let room = self.witness_at(s) < self.block_of(s.oldest) + self.ring;
        if self.closes && quiet && read && room {
            actions.push(Action::WriteWitness);
        }
    }

    /// The index of the block in which a witness is written.
    pub(super) fn witness_at(&self, s: &State) -> N {
        self.block_of(self.round_up(s.end))
    }

    /// Takes an enabled action.
    pub(super) fn take(&self, s: &mut State, action: Action) {
        match action {
            Action::CallAppend(c, len) => {
                s.asked += 1;
                s.call[c] = Call::Append {
                    record: s.asked,
                    len,
                    lsn: 0,
                };
            }
            Action::AppendRecord(c) => self.append(s, c),
            Action::RefuseAppend(c) => s.call[c] = Call::Refused,
            Action::Acknowledge(c) => {
                s.acked = s.acked.max(s.call[c].awaited().unwrap_or(0));
                s.call[c] = Call::Idle;
            }
            Action::Leave(c) => s.call[c] = Call::Unknown,
            Action::FailCall(c) => {
                let doubt = s.call[c].awaited().is_some() && self.bug != Bug::RefusedShows;
                s.call[c] = if doubt { Call::Unknown } else { Call::Refused };
            }
            Action::WriteLog => self.write_log(s),
            Action::CompleteFlush => {
                s.device_flush();
                let (at, to) = std::mem::take(&mut s.flying);
                s.durable = to;
                s.sure = s.sure.max(at * self.units);
            }
            Action::FailFlush => self.fail_flush(s),
            Action::FailWrite(hidden) => self.fail_write(s, hidden),
            Action::BeginCheckpoint => s.checkpoint = (Step::Begun, s.end),
            Action::WriteSuper => {
                let begin = s.checkpoint.1;
                s.write_super(Super {
                    epoch: s.epoch,
                    redo: begin,
                    redo_epoch: s.epoch,
                });
                s.checkpoint.0 = Step::Recorded;
                if self.bug == Bug::FreesBeforeSuper {
                    s.oldest = begin;
                }
            }
            Action::FinishCheckpoint => {
                s.device_flush();
                s.oldest = s.checkpoint.1;
                s.checkpoint = (Step::None, 0);
            }
            Action::WriteWitness => {
                if self.bug != Bug::LeavesNoWitness {
                    let index = self.witness_at(s);
                    s.put(self.place(index), self.witness(s.epoch, index));
                }
                s.phase = Phase::Closing;
            }
            Action::Close => {
                s.device_flush();
                s.sure = s.durable;
                forget_memory(s);
                s.phase = Phase::Killed;
            }
            recovery => self.recover(s, recovery),
        }
    }

    fn append(&self, s: &mut State, c: usize) {
        let at = self.next(s);
        let Call::Append { record, len, lsn } = &mut s.call[c] else {
            return;
        };
        *lsn = at + *len;
        s.end = *lsn;
        s.buffer.extend(units_of(*record, *len));
        let (record, lsn) = (*record, *lsn);
        s.history.push(Entry { record, lsn });
    }

    fn write_log(&self, s: &mut State) {
        let epoch = (s.epoch, s.starts_at);
        let blocks = self.sealed_blocks(epoch, s.packing, s.buffer_at, &s.buffer);
        s.flying = (s.buffer_at, s.end);
        // Only a seeded bug writes more blocks than the ring has. The first then stays.
        let mut written = vec![false; self.ring as usize];
        for (index, content) in blocks {
            let place = self.place(index);
            if !std::mem::replace(&mut written[place], true) {
                s.put(place, content);
            }
        }
        let next = self.next(s);
        let used = (next % self.units) as usize;
        let joins = self.bug == Bug::GoesOnInBlock;
        (s.buffer_at, s.buffer) = match s.packing {
            Packing::Packed => (
                self.block_of(next),
                s.buffer.split_off(s.buffer.len() - used),
            ),
            Packing::Sparse if joins => (self.block_of(next), vec![Unit::default(); used]),
            Packing::Sparse => (self.block_of(self.round_up(next)), Vec::new()),
        };
        if self.bug == Bug::AcksBeforeFlush {
            s.durable = s.end;
        }
    }

    /// Whether the write of a flush or witness may fail.
    pub(super) fn may_fail_write(&self, s: &State) -> bool {
        s.serves() && s.flying != (0, 0) || s.phase == Phase::Closing && !s.poisoned
    }

    /// The places of the flush in flight, or of the witness, that have a version before it.
    pub(super) fn rewritten(&self, s: &State) -> Vec<usize> {
        let blocks = match s.phase {
            Phase::Closing => self.witness_at(s)..self.witness_at(s) + 1,
            _ => s.flying.0..self.block_of(self.round_up(s.flying.1)),
        };
        let mut places: Vec<usize> = blocks
            .map(|index| self.place(index))
            .filter(|place| s.log_dev[*place].len() > 1)
            .collect();
        places.sort_unstable();
        places.dedup();
        places
    }

    /// The binary digits of `hidden` select the places that are read as they were before.
    fn fail_write(&self, s: &mut State, hidden: usize) {
        for (i, place) in self.rewritten(s).into_iter().enumerate() {
            s.lost_log[place] = true;
            if hidden >> i & 1 == 1 {
                let versions = &mut s.log_dev[place];
                let before = versions[versions.len() - 2].clone();
                versions.push(before);
            }
        }
        s.poisoned = true;
    }

    fn fail_flush(&self, s: &mut State) {
        for (place, lost) in s.log_dev.iter().zip(&mut s.lost_log) {
            *lost |= place.len() > 1;
        }
        s.lost_super |= s.super_dev.len() > 1;
        if s.recovers() {
            forget_memory(s);
            s.crashes += 1;
            s.phase = Phase::Killed;
        } else if self.bug == Bug::RetriesFailedFlush {
            if s.flying != (0, 0) {
                s.durable = std::mem::take(&mut s.flying).1;
            }
        } else {
            s.poisoned = true;
        }
    }
}

/// `ForgetMemory`.
pub(super) fn forget_memory(s: &mut State) {
    s.call.fill(Call::Idle);
    (s.epoch, s.starts_at, s.buffer_at, s.end, s.oldest) = (0, 0, 0, 0, 0);
    s.buffer.clear();
    s.flying = (0, 0);
    s.checkpoint = (Step::None, 0);
    s.poisoned = false;
    s.found.clear();
}
