//! A state as TLA+ values.

use super::WriteBatch;
use super::state::{
    ABSENT, Call, Change, Content, Effect, Gate, Kind, Leaf, PENDING, Record, State,
};
use crate::Value;

impl WriteBatch {
    fn content(&self, content: Content) -> Value {
        match content {
            ABSENT => self.absent.clone(),
            PENDING => self.pending.clone(),
            n => Value::int(n),
        }
    }

    fn change(&self, change: Change) -> Value {
        Value::record([
            ("key", Value::int(change.key)),
            ("value", self.content(change.value)),
        ])
    }

    fn changes(&self, changes: &[Change]) -> Value {
        Value::seq(changes.iter().map(|change| self.change(*change)))
    }

    fn leaves(&self, leaves: &[Leaf]) -> Value {
        let leaf = |leaf: &Leaf| {
            Value::record([
                ("value", self.content(leaf.value)),
                ("lsn", Value::int(leaf.lsn)),
            ])
        };
        Value::seq(leaves.iter().take(usize::from(self.keys)).map(leaf))
    }

    fn call_value(&self, call: &Call) -> Value {
        match call {
            Call::Idle => Value::record([("op", Value::str("none"))]),
            Call::Refused => Value::record([("op", Value::str("refused"))]),
            Call::Unknown => Value::record([("op", Value::str("unknown"))]),
            Call::Get {
                key,
                at,
                version,
                got,
            } => Value::record([
                ("op", Value::str("get")),
                ("key", Value::int(*key)),
                ("at", Value::variant(*at)),
                ("version", Value::int(*version)),
                ("got", self.content(*got)),
            ]),
            Call::Write { change, at, lsn } => Value::record([
                ("op", Value::str("write")),
                ("key", Value::int(change.key)),
                ("value", self.content(change.value)),
                ("at", Value::variant(*at)),
                ("lsn", Value::int(*lsn)),
            ]),
            Call::Batch { changes, at, lsn } => Value::record([
                ("op", Value::str("batch")),
                ("changes", self.changes(changes)),
                ("at", Value::variant(*at)),
                ("lsn", Value::int(*lsn)),
            ]),
        }
    }

    fn gate_value(&self, gate: Gate) -> Value {
        match gate {
            Gate::Nobody => Value::str("nobody"),
            Gate::Client(c) => self.clients[usize::from(c)].clone(),
            Gate::Recovery => Value::str("recovery"),
        }
    }

    fn batch_value(&self, s: &State) -> Value {
        let Some(batch) = &s.batch else {
            return Value::record([("at", Value::str("none"))]);
        };
        Value::record([
            ("at", Value::variant(batch.at)),
            ("changes", self.changes(&batch.changes)),
            ("made", Value::int(batch.made)),
            ("parts", Value::int(batch.parts)),
            ("begin", Value::int(batch.begin)),
        ])
    }

    fn record(&self, record: &Record) -> Value {
        let (kind, number, last) = match record.kind {
            Kind::Put => ("put", 0, false),
            Kind::Part { number, last } => ("part", number, last),
            Kind::End => ("end", 0, false),
        };
        Value::record([
            ("kind", Value::str(kind)),
            ("epoch", Value::int(record.epoch)),
            ("change", self.change(record.change)),
            ("number", Value::int(number)),
            ("last", last.into()),
        ])
    }

    fn effect(&self, effect: &Effect) -> Value {
        Value::record([
            ("lsn", Value::int(effect.lsn)),
            ("changes", self.changes(&effect.changes)),
        ])
    }

    pub(super) fn values_of(&self, s: &State) -> Vec<(&'static str, Value)> {
        let calls = s.call.iter().map(|call| self.call_value(call));
        vec![
            ("call", Value::fun(self.clients.iter().cloned().zip(calls))),
            ("asked", Value::int(s.asked)),
            ("gate", self.gate_value(s.gate)),
            ("batch", self.batch_value(s)),
            ("shown", self.changes(&s.shown)),
            ("version", Value::int(s.version)),
            ("log", Value::seq(s.log.iter().map(|r| self.record(r)))),
            ("durable", Value::int(s.durable)),
            ("pin", Value::int(s.pin)),
            ("checkpoint", Value::int(s.checkpoint)),
            ("redoStart", Value::int(s.redo_start)),
            ("leaf", self.leaves(&s.leaf)),
            ("leafDev", self.leaves(&s.leaf_dev)),
            ("epoch", Value::int(s.epoch)),
            ("superEpoch", Value::int(s.super_epoch)),
            ("phase", Value::variant(s.phase)),
            ("crashes", Value::int(s.crashes)),
            (
                "effects",
                Value::seq(s.effects.iter().map(|e| self.effect(e))),
            ),
        ]
    }
}
