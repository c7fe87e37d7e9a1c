//! What the actions of `WriteBatch.tla` do. An action is taken only if it is enabled.

use super::state::{
    At, Batch, Call, Change, Effect, Gate, Kind, Leaf, N, PENDING, Phase, Reading, State, Writing,
    place,
};
use super::{Action, Bug, WriteBatch};

impl WriteBatch {
    /// Takes an enabled action.
    pub(super) fn take(&self, s: &mut State, action: Action) {
        match action {
            Action::CallGet(c, key) => {
                s.call[usize::from(c)] = Call::Get {
                    key,
                    at: Reading::Called,
                    version: 0,
                    got: PENDING,
                }
            }
            Action::Look(c) => look(s, c),
            Action::ReadLeaf(c) => read_leaf(s, c),
            Action::AnswerGet(c) | Action::Acknowledge(c) => s.call[usize::from(c)] = Call::Idle,
            Action::CallWrite(c, key) => {
                s.asked += 1;
                let value = self.written(s.asked);
                s.call[usize::from(c)] = Call::Write {
                    change: Change { key, value },
                    at: Writing::Called,
                    lsn: 0,
                };
            }
            Action::Pass(c) => move_to(s, c, Writing::Passing),
            Action::WriteOne(c) => write_one(s, c),
            Action::CallBatch(c) => {
                s.asked += 1;
                s.call[usize::from(c)] = Call::Batch {
                    changes: self.changes_of(s.asked),
                    at: Writing::Called,
                    lsn: 0,
                };
            }
            Action::CloseGate(c) => {
                let at = match s.call[usize::from(c)] {
                    Call::Batch { .. } => Writing::Closed,
                    _ => Writing::Finishing,
                };
                move_to(s, c, at);
                s.gate = Gate::Client(c);
            }
            Action::OpenBatch(c) => self.open_batch(s, c),
            Action::Refuse(c) => {
                s.call[usize::from(c)] = Call::Refused;
                (s.gate, s.batch, s.pin) = (Gate::Nobody, None, 0);
            }
            Action::Hide(c) => hide(s, c),
            Action::StopShort(c) => {
                let call = &mut s.call[usize::from(c)];
                let at = Writing::Writing;
                let own = matches!(call, Call::Batch { at: now, .. } if *now == at);
                *call = match own && self.bug != Bug::RefusedShows {
                    true => Call::Unknown,
                    false => Call::Refused,
                };
                s.gate = Gate::Nobody;
                set_at(s, At::Making);
            }
            Action::FlushLog => s.durable = s.end(),
            Action::WriteBack(k) => s.leaf_dev[place(k)] = s.leaf[place(k)],
            Action::BeginCheckpoint => s.checkpoint = self.checkpoint_begin(s),
            Action::FinishCheckpoint => {
                (s.durable, s.redo_start) = (s.end(), s.checkpoint);
                (s.super_epoch, s.checkpoint) = (s.epoch, 0);
            }
            Action::Crash(n) => crash(s, n),
            Action::Redo => self.redo(s),
            Action::FinishRecovery => {
                s.phase = Phase::Up;
                (s.gate, s.batch, s.pin) = (Gate::Nobody, None, 0);
                s.leaf_dev = s.leaf;
                (s.durable, s.redo_start) = (s.end(), s.end());
                s.super_epoch = s.epoch;
            }
            Action::LogPart
            | Action::Show
            | Action::MakeChange
            | Action::RenewIntent
            | Action::FreeOldIntent
            | Action::LogEnd
            | Action::WriteEpoch => {
                // These are enabled only with a batch.
                if let Some(batch) = s.batch.take() {
                    let batch = self.go_on(s, batch, action);
                    s.batch = Some(batch);
                }
            }
        }
    }

    /// The changes of the batch that is this write (`ChangesOf`).
    fn changes_of(&self, write: N) -> Vec<Change> {
        let changes = (1..=self.keys).map(|key| Change {
            key,
            value: match key == self.keys {
                true => self.written(write),
                false => write,
            },
        });
        changes.collect()
    }

    fn open_batch(&self, s: &mut State, c: u8) {
        let Call::Batch { changes, at, .. } = &mut s.call[usize::from(c)] else {
            return;
        };
        *at = Writing::Writing;
        let changes = changes.clone();
        let begin = s.end() + 1;
        let unannounced = self.bug == Bug::BatchMadeBeforeIntent;
        if unannounced {
            s.effects.push(Effect {
                lsn: begin,
                changes: changes.clone(),
            });
        }
        s.pin = begin;
        s.batch = Some(Batch {
            at: match unannounced {
                true => At::Logged,
                false => At::Logging,
            },
            changes,
            made: 0,
            parts: 0,
            begin,
        });
    }

    /// A step of the open batch. Returns the batch after it.
    fn go_on(&self, s: &mut State, mut batch: Batch, action: Action) -> Batch {
        match action {
            Action::LogPart => log_part(s, &mut batch),
            Action::Show => {
                batch.at = At::Making;
                if self.bug != Bug::BatchShownPiecemeal {
                    s.shown.clone_from(&batch.changes);
                    s.version += 1;
                }
            }
            Action::MakeChange => {
                let change = batch.changes[usize::from(batch.made)];
                batch.made += 1;
                if self.bug == Bug::BatchEndsEarly && batch.made == batch.len() {
                    s.append(Kind::End, Change::NONE);
                    batch.at = At::Ended;
                }
                put(s, change);
            }
            Action::RenewIntent => {
                (batch.at, batch.parts, batch.begin) = (At::Renewing, 0, s.end() + 1);
                if self.bug == Bug::BatchMovesBeforeIntent {
                    s.pin = batch.begin;
                }
            }
            Action::FreeOldIntent => batch.at = At::Making,
            Action::LogEnd => {
                s.append(Kind::End, Change::NONE);
                batch.at = At::Ended;
            }
            _ => self.write_epoch(s, &mut batch),
        }
        batch
    }

    fn redo(&self, s: &mut State) {
        let pending = self.pending_at(s, s.end());
        s.leaf = s.redone(s.end());
        s.epoch = s.super_epoch + 1;
        if pending.is_empty() {
            s.phase = Phase::Up;
            (s.leaf_dev, s.redo_start, s.super_epoch) = (s.leaf, s.end(), s.epoch);
            return;
        }
        (s.phase, s.gate) = (Phase::Completing, Gate::Recovery);
        s.batch = Some(Batch {
            at: At::Epoch,
            changes: pending,
            made: 0,
            parts: 0,
            begin: 0,
        });
    }

    fn write_epoch(&self, s: &mut State, batch: &mut Batch) {
        if self.bug != Bug::RecoverySkipsEpoch {
            s.super_epoch = s.epoch;
        }
        let last = |s: &State| s.log.last().map(|record| record.kind);
        while self.resumes && matches!(last(s), Some(Kind::Part { last: false, .. })) {
            s.log.pop();
        }
        s.durable = s.end();
        match last(s) {
            Some(Kind::Part { number, .. }) if self.resumes => {
                s.pin = s.end() - number;
                (batch.at, batch.parts, batch.begin) = (At::Moving, batch.len(), s.pin);
            }
            _ => (batch.at, batch.parts, batch.begin) = (At::Renewing, 0, s.end() + 1),
        }
    }
}

fn set_at(s: &mut State, at: At) {
    if let Some(batch) = &mut s.batch {
        batch.at = at;
    }
}

fn move_to(s: &mut State, c: u8, to: Writing) {
    if let Call::Write { at, .. } | Call::Batch { at, .. } = &mut s.call[usize::from(c)] {
        *at = to;
    }
}

fn look(s: &mut State, c: u8) {
    let Call::Get { key, .. } = s.call[usize::from(c)] else {
        return;
    };
    let (shown, now) = (s.shown_for(key), s.version);
    if let Call::Get {
        at, version, got, ..
    } = &mut s.call[usize::from(c)]
    {
        match shown {
            Some(value) => (*at, *got) = (Reading::Read, value),
            None => (*at, *version) = (Reading::Looked, now),
        }
    }
}

fn read_leaf(s: &mut State, c: u8) {
    if let Call::Get {
        key,
        at,
        version,
        got,
    } = &mut s.call[usize::from(c)]
    {
        *at = Reading::Called;
        if *version == s.version {
            (*at, *got) = (Reading::Read, s.leaf[place(*key)].value);
        }
        *version = 0;
    }
}

/// Logs a change and makes it. Returns its LSN.
fn put(s: &mut State, change: Change) -> N {
    let lsn = s.append(Kind::Put, change);
    let value = change.value;
    s.leaf[place(change.key)] = Leaf { value, lsn };
    lsn
}

fn write_one(s: &mut State, c: u8) {
    let Call::Write { change, .. } = s.call[usize::from(c)] else {
        return;
    };
    let lsn = put(s, change);
    s.effects.push(Effect {
        lsn,
        changes: vec![change],
    });
    s.call[usize::from(c)] = Call::Write {
        change,
        at: Writing::Waiting,
        lsn,
    };
}

fn log_part(s: &mut State, batch: &mut Batch) {
    let at = batch.made + batch.parts;
    let kind = Kind::Part {
        number: batch.parts,
        last: at + 1 == batch.len(),
    };
    let lsn = s.append(kind, batch.changes[usize::from(at)]);
    batch.parts += 1;
    if at + 1 < batch.len() {
        return;
    }
    s.pin = batch.begin;
    if batch.at == At::Logging {
        s.effects.push(Effect {
            lsn,
            changes: batch.changes.clone(),
        });
        batch.at = At::Logged;
    } else {
        batch.at = At::Moving;
    }
}

fn hide(s: &mut State, c: u8) {
    if !s.shown.is_empty() {
        s.shown.clear();
        s.version += 1;
    }
    (s.batch, s.pin) = (None, 0);
    let end = s.end();
    match &mut s.call[usize::from(c)] {
        // The batch was another client's, and this one's own follows.
        Call::Batch {
            at: Writing::Closed,
            ..
        } => return,
        Call::Batch { at, lsn, .. } => (*at, *lsn) = (Writing::Waiting, end),
        Call::Write { at, .. } => *at = Writing::Called,
        _ => {}
    }
    s.gate = Gate::Nobody;
}

fn crash(s: &mut State, n: N) {
    s.log.truncate(usize::from(n));
    s.durable = n;
    s.effects.retain(|effect| effect.lsn <= n);
    s.forget_memory();
    s.phase = Phase::Down;
    s.crashes += 1;
}
