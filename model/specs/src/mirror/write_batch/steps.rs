//! The guards of the actions of `WriteBatch.tla`.

use super::state::{ABSENT, At, Batch, Call, Gate, Kind, N, Phase, Reading, State, Writing, place};
use super::{Action, Bug, Set, WriteBatch};

pub(super) fn has(set: Set, member: u8) -> bool {
    set.checked_shr(member.into()).unwrap_or(0) & 1 == 1
}

impl WriteBatch {
    /// `Left`: the room that is left in the log.
    pub(super) fn left(&self, s: &State) -> N {
        (self.room + s.redo_start).saturating_sub(s.end())
    }

    /// The log space that an intent of this many parts keeps free (`Reserve`).
    pub(super) fn reserve(&self, parts: N) -> N {
        2 * parts + self.spare
    }

    pub(super) fn enabled(&self, s: &State, actions: &mut Vec<Action>) {
        for c in 0..self.clients.len() as u8 {
            match &s.call[usize::from(c)] {
                Call::Idle | Call::Refused | Call::Unknown => self.calls(s, c, actions),
                Call::Get { at, .. } => actions.push(match at {
                    Reading::Called => Action::Look(c),
                    Reading::Looked => Action::ReadLeaf(c),
                    Reading::Read => Action::AnswerGet(c),
                }),
                Call::Write { at, lsn, .. } => self.write_steps(s, c, (*at, *lsn), actions),
                Call::Batch { changes, at, lsn } => {
                    let parts = changes.len() as N;
                    self.client_batch_steps(s, c, (*at, *lsn, parts), actions);
                }
            }
            if s.gate == Gate::Client(c) {
                if s.at() == Some(At::Ended) {
                    actions.push(Action::Hide(c));
                }
                if self.stopped && matches!(s.at(), Some(At::Making | At::Moving)) {
                    actions.push(Action::StopShort(c));
                }
            }
        }
        if let Some(batch) = &s.batch {
            self.batch_steps(s, batch, actions);
        }
        self.log_steps(s, actions);
        if s.phase == Phase::Down {
            actions.push(Action::Redo);
        } else if s.crashes < self.max_crashes {
            actions.extend((s.durable..=s.end()).map(Action::Crash));
        }
    }

    fn calls(&self, s: &State, c: u8, actions: &mut Vec<Action>) {
        if s.phase != Phase::Up {
            return;
        }
        let keys = |set: Set| (1..=self.keys).filter(move |k| has(set, k - 1));
        if has(self.readers, c) {
            actions.extend(keys(self.read_keys).map(|k| Action::CallGet(c, k)));
        }
        if s.asked >= self.values {
            return;
        }
        if !has(self.batched, s.asked) {
            if has(self.writers, c) {
                actions.extend(keys(self.write_keys).map(|k| Action::CallWrite(c, k)));
            }
        } else if has(self.batchers, c) {
            actions.push(Action::CallBatch(c));
        }
    }

    fn write_steps(&self, s: &State, c: u8, (at, lsn): (Writing, N), actions: &mut Vec<Action>) {
        let forgotten = self.bug == Bug::UnfinishedBatchForgotten;
        let open = s.gate == Gate::Nobody;
        match at {
            Writing::Called => {
                let may_pass = open || self.bug == Bug::WritersPassClosedGate;
                if may_pass && (!s.unfinished() || forgotten) {
                    actions.push(Action::Pass(c));
                }
                if s.unfinished() && !forgotten {
                    actions.push(Action::CloseGate(c));
                }
            }
            Writing::Passing if self.left(s) >= 1 => actions.push(Action::WriteOne(c)),
            Writing::Waiting if self.may_acknowledge(s, lsn) => {
                actions.push(Action::Acknowledge(c));
            }
            _ => {}
        }
    }

    fn may_acknowledge(&self, s: &State, lsn: N) -> bool {
        lsn <= s.durable || self.bug == Bug::AcksAtOnce
    }

    fn client_batch_steps(
        &self,
        s: &State,
        c: u8,
        (at, lsn, parts): (Writing, N, N),
        actions: &mut Vec<Action>,
    ) {
        match at {
            Writing::Called if s.gate == Gate::Nobody => actions.push(Action::CloseGate(c)),
            Writing::Closed => {
                let passing = |call: &Call| {
                    let at = Writing::Passing;
                    matches!(call, Call::Write { at: now, .. } if *now == at)
                };
                let alone = !s.call.iter().any(passing) || self.bug == Bug::BatchDoesNotWait;
                let room = self.left(s) >= parts + self.reserve(parts);
                if s.batch.is_none() && alone && room {
                    actions.push(Action::OpenBatch(c));
                }
            }
            Writing::Writing if self.refuses && s.at() == Some(At::Logging) => {
                actions.push(Action::Refuse(c));
            }
            Writing::Waiting if self.may_acknowledge(s, lsn) => {
                actions.push(Action::Acknowledge(c));
            }
            _ => {}
        }
    }

    fn batch_steps(&self, s: &State, batch: &Batch, actions: &mut Vec<Action>) {
        let closed = s.gate != Gate::Nobody;
        match batch.at {
            At::Epoch => actions.push(Action::WriteEpoch),
            At::Logging | At::Renewing if self.left(s) >= 1 => actions.push(Action::LogPart),
            At::Logged => actions.push(Action::Show),
            At::Making if closed => actions.push(match () {
                () if batch.made == batch.len() => Action::LogEnd,
                () if self.left(s) < self.reserve(batch.parts) => Action::RenewIntent,
                () => Action::MakeChange,
            }),
            At::Moving if closed && s.redo_start + 1 >= s.pin => {
                actions.push(Action::FreeOldIntent);
            }
            At::Ended if s.phase == Phase::Completing => actions.push(Action::FinishRecovery),
            _ => {}
        }
    }

    /// Where a checkpoint would begin.
    pub(super) fn checkpoint_begin(&self, s: &State) -> N {
        match s.pin {
            0 => s.end(),
            _ if self.bug == Bug::CheckpointIgnoresBatch => s.end(),
            pin => pin - 1,
        }
    }

    fn log_steps(&self, s: &State, actions: &mut Vec<Action>) {
        if s.phase != Phase::Down && s.durable < s.end() {
            actions.push(Action::FlushLog);
        }
        if s.phase != Phase::Down {
            let dirty = |k: &u8| s.leaf_dev[place(*k)] != s.leaf[place(*k)];
            let ready = |k: &u8| s.leaf[place(*k)].lsn <= s.durable;
            let leaves = (1..=self.keys).filter(dirty).filter(ready);
            actions.extend(leaves.map(Action::WriteBack));
        }
        let may = s.phase == Phase::Up || s.at() == Some(At::Moving);
        if may && s.checkpoint == 0 && s.redo_start < self.checkpoint_begin(s) {
            actions.push(Action::BeginCheckpoint);
        }
        if s.checkpoint != 0 && swept(s) {
            actions.push(Action::FinishCheckpoint);
        }
    }

    /// The value that a write of one key puts.
    pub(super) fn written(&self, write: N) -> N {
        match has(self.deletes, write - 1) {
            true => ABSENT,
            false => write,
        }
    }
}

/// `Swept`: whether all leaves have on the device what was changed before the checkpoint began.
fn swept(s: &State) -> bool {
    // A checkpoint that a seeded bug lets begin early may lie behind the redo start.
    let mut before = s.records(s.redo_start.min(s.checkpoint), s.checkpoint);
    before.all(|(n, record)| {
        record.kind != Kind::Put || s.leaf_dev[place(record.change.key)].lsn >= n
    })
}
