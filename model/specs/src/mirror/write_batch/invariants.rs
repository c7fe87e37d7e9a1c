//! The invariants, by the names of the spec, and the probes of its wrapper.

use super::WriteBatch;
use super::state::{
    At, Call, Change, Gate, KEYS, Kind, N, PENDING, Phase, Reading, Record, State, Writing,
};

type Invariant = fn(&WriteBatch, &State) -> bool;

pub(super) const INVARIANTS: [(&str, Invariant); 21] = [
    ("TypeInv", WriteBatch::type_inv),
    ("AckInv", ack_inv),
    ("AloneInv", alone_inv),
    ("VisibleInv", visible_inv),
    ("RecoverInv", WriteBatch::recover_inv),
    ("IntentKeptInv", |_, s| s.pin == 0 || s.redo_start < s.pin),
    ("WalRuleInv", wal_rule_inv),
    ("EpochInv", epoch_inv),
    ("RoomInv", WriteBatch::room_inv),
    ("GateInv", gate_inv),
    ("PinInv", |_, s| match s.phase {
        Phase::Up => (s.pin != 0) == s.batch.is_some(),
        _ => s.pin == 0 || s.batch.is_some(),
    }),
    ("OnceInv", once_inv),
    ("IntentInv", intent_inv),
    ("WholeInv", whole_inv),
    ("WaitInv", wait_inv),
    ("CheckpointInv", |_, s| {
        s.checkpoint == 0 || s.redo_start < s.checkpoint && s.checkpoint <= s.end()
    }),
    ("VersionInv", |_, s| {
        s.version.is_multiple_of(2) == s.shown.is_empty()
    }),
    ("GoneInv", gone_inv),
    ("ReachRenewal", |_, s| {
        s.phase != Phase::Up || s.at() != Some(At::Moving)
    }),
    ("ReachHelp", |_, s| {
        s.at() != Some(At::Ended) || !s.call.iter().any(is_finishing)
    }),
    ("ReachSecondCrash", |_, s| {
        s.phase != Phase::Completing || s.at() != Some(At::Ended) || s.crashes != 2
    }),
];

fn is_finishing(call: &Call) -> bool {
    matches!(
        call,
        Call::Write {
            at: Writing::Finishing,
            ..
        }
    )
}

impl WriteBatch {
    /// Each value is in the set that its variable ranges over. Holds by construction, except for
    /// contents, keys and the order of LSNs.
    fn type_inv(&self, s: &State) -> bool {
        let content = |value: N| value <= self.values;
        let change =
            |change: &Change| (1..=self.keys).contains(&change.key) && content(change.value);
        let called = |call: &Call| match call {
            Call::Idle | Call::Refused | Call::Unknown => true,
            Call::Get { got, .. } => *got == PENDING || content(*got),
            Call::Write { change: asked, .. } => change(asked),
            Call::Batch { changes, .. } => changes.iter().all(change),
        };
        let gate = match s.gate {
            Gate::Client(c) => usize::from(c) < self.clients.len(),
            _ => true,
        };
        let mut leaves = s.leaf.iter().chain(&s.leaf_dev);
        s.redo_start <= s.durable
            && s.durable <= s.end()
            && gate
            && s.call.iter().all(called)
            && s.shown.iter().all(change)
            && s.log.iter().all(|record| change(&record.change))
            && leaves.all(|leaf| content(leaf.value))
    }

    fn recover_inv(&self, s: &State) -> bool {
        (s.durable..=s.end()).all(|n| self.recovered(s, n) == s.map_after(n))
    }

    fn room_inv(&self, s: &State) -> bool {
        // While parts are being logged, fewer are in the log than there are to be.
        let has_room = |batch: &super::Batch| match batch.at {
            At::Logging | At::Renewing => batch.made + batch.parts + self.left(s) >= batch.len(),
            _ => true,
        };
        let keeps_free = |batch: &super::Batch| match batch.at {
            At::Logging => {
                let parts = batch.len();
                self.left(s) + batch.parts >= parts + self.reserve(parts)
            }
            At::Making => {
                let is_put = s.log.last().is_some_and(|r| r.kind == Kind::Put);
                let any_left = batch.made < batch.len();
                !(any_left && is_put) || self.left(s) + 1 >= self.reserve(batch.parts)
            }
            _ => true,
        };
        s.end() <= self.room + s.redo_start
            && s.batch.as_ref().is_none_or(keeps_free)
            && (s.phase == Phase::Up || s.batch.as_ref().is_none_or(has_room))
    }
}

/// `EffectEnd`: how far the log has taken effect.
fn effect_end(s: &State) -> N {
    let unseen = matches!(s.at(), Some(At::Logging | At::Logged));
    match s.phase == Phase::Up && unseen {
        true => s.pin - 1,
        false => s.end(),
    }
}

fn visible_inv(_: &WriteBatch, s: &State) -> bool {
    let mut seen = [0; KEYS];
    for (key, value) in (1..).zip(&mut seen) {
        let leaf = s.leaf[usize::from(key) - 1];
        *value = s.shown_for(key).unwrap_or(leaf.value);
    }
    s.phase != Phase::Up || seen == s.map_after(effect_end(s))
}

fn ack_inv(_: &WriteBatch, s: &State) -> bool {
    let waits = |n: N| {
        s.call.iter().any(|call| match call {
            Call::Write { at, lsn, .. } => *at == Writing::Waiting && *lsn == n,
            _ => false,
        })
    };
    let is_put = |n: N| {
        let record = s.log.get(usize::from(n) - 1);
        record.is_some_and(|record| record.kind == Kind::Put)
    };
    let kept = |n: N| n <= s.durable || !is_put(n) || waits(n);
    s.phase != Phase::Up || s.effects.iter().all(|effect| kept(effect.lsn))
}

fn alone_inv(_: &WriteBatch, s: &State) -> bool {
    let Some(batch) = s.batch.as_ref().filter(|_| s.pin != 0) else {
        return true;
    };
    // A seeded bug moves the pin behind the end of the log.
    let mut since = s.log.iter().skip(usize::from(s.pin) - 1);
    since.all(|record| record.kind != Kind::Put || batch.changes.contains(&record.change))
}

fn wal_rule_inv(_: &WriteBatch, s: &State) -> bool {
    s.leaf_dev.iter().all(|leaf| leaf.lsn <= s.durable)
}

fn epoch_inv(_: &WriteBatch, s: &State) -> bool {
    let begins = s.at() == Some(At::Epoch);
    let is_right = |epoch| epoch <= s.super_epoch && !(begins && epoch >= s.epoch);
    s.log.iter().all(|record| is_right(record.epoch))
}

fn gate_inv(_: &WriteBatch, s: &State) -> bool {
    let is_there = match s.gate {
        Gate::Client(c) => match &s.call[usize::from(c)] {
            Call::Batch { at, .. } => matches!(at, Writing::Closed | Writing::Writing),
            call => is_finishing(call),
        },
        Gate::Nobody => s.at().is_none_or(|at| at == At::Making),
        Gate::Recovery => true,
    };
    is_there && (s.gate == Gate::Recovery) == (s.phase == Phase::Completing)
}

fn once_inv(_: &WriteBatch, s: &State) -> bool {
    let ends = s
        .log
        .windows(2)
        .any(|two| two.iter().all(|record| record.kind == Kind::End));
    let since = s.log.iter().skip(usize::from(s.pin.max(1)) - 1);
    let puts = since.filter(|record| record.kind == Kind::Put).count();
    let changes = s.batch.as_ref().map_or(0, |batch| batch.changes.len());
    !ends && (s.pin == 0 || puts <= changes)
}

fn intent_inv(_: &WriteBatch, s: &State) -> bool {
    let Some(batch) = s.batch.as_ref().filter(|batch| batch.at != At::Epoch) else {
        return true;
    };
    let is_part = |i: N| {
        let record = s.log.get(usize::from(batch.begin + i) - 1);
        record.is_some_and(|r| matches!(r.kind, Kind::Part { number, .. } if number == i))
    };
    let is_whole = matches!(batch.at, At::Logged | At::Moving);
    (0..batch.parts).all(is_part) && (!is_whole || batch.made + batch.parts == batch.len())
}

fn whole_inv(_: &WriteBatch, s: &State) -> bool {
    s.batch.as_ref().is_none_or(|batch| {
        let last = usize::from(batch.begin + batch.parts).wrapping_sub(2);
        batch.at != At::Making
            || batch.parts > 0
                && s.log
                    .get(last)
                    .is_some_and(|r| matches!(r.kind, Kind::Part { last: true, .. }))
                && batch.made + batch.parts >= batch.len()
    })
}

fn wait_inv(_: &WriteBatch, s: &State) -> bool {
    let at = |lsn: N| s.log.get(usize::from(lsn).wrapping_sub(1));
    s.call.iter().all(|call| match call {
        Call::Write {
            change,
            at: Writing::Waiting,
            lsn,
        } => at(*lsn).is_some_and(|r| r.kind == Kind::Put && r.change == *change),
        Call::Batch {
            at: Writing::Waiting,
            lsn,
            ..
        } => at(*lsn).is_some_and(|r| r.kind == Kind::End),
        _ => true,
    })
}

/// Of records, holds by construction, except for the change of an end.
fn gone_inv(_: &WriteBatch, s: &State) -> bool {
    let mut gone = s.clone();
    gone.forget_memory();
    let read = |call: &Call| !matches!(call, Call::Get { at: Reading::Read, version, .. } if *version != 0);
    let end = |record: &Record| record.kind != Kind::End || record.change == Change::NONE;
    (s.phase != Phase::Down || gone == *s) && s.call.iter().all(read) && s.log.iter().all(end)
}
