//! A state as TLA+ values.

use super::IndexSnapshot;
use super::room::{N, Set};
use super::state::{ABSENT, Call, Entries, InSlot, Kind, Leaf, Map, PENDING, Record, Stage};
use super::state::{State, Super, at, has};
use crate::Value;

fn op(name: &'static str) -> Value {
    Value::record([("op", Value::str(name))])
}

fn super_value(of: &Super) -> Value {
    Value::record([
        ("number", Value::int(of.number)),
        ("redo", Value::int(of.redo)),
        ("head", Value::int(of.head)),
        ("sum", entries_value(&of.sum)),
    ])
}

fn entries_value(entries: &Entries) -> Value {
    Value::seq(entries.all().map(|entry| {
        Value::record([
            ("fence", Value::int(entry.fence)),
            ("page", Value::int(entry.page)),
            ("version", Value::int(entry.version)),
        ])
    }))
}

impl IndexSnapshot {
    fn content(&self, value: N) -> Value {
        match value {
            ABSENT => self.absent.clone(),
            PENDING => self.pending.clone(),
            n => Value::int(n),
        }
    }

    fn slot_set(&self, set: Set) -> Value {
        Value::set(self.slots().filter(|s| has(set, *s)).map(Value::int))
    }

    /// A function from keys.
    fn map(&self, map: &Map) -> Value {
        Value::seq(self.keys().map(|k| self.content(map[at(k)])))
    }

    fn leaf_value(&self, leaf: &Leaf) -> Value {
        Value::record([
            ("lower", Value::int(leaf.lower)),
            ("upper", Value::int(leaf.upper)),
            ("map", self.map(&leaf.map)),
            ("lsn", Value::int(leaf.lsn)),
        ])
    }

    fn record(&self, record: &Record) -> Value {
        let mut fields = vec![
            ("is", Value::variant(record.is)),
            ("page", Value::int(record.page)),
            ("key", Value::int(record.key)),
        ];
        fields.extend(match record.is {
            Kind::Put => vec![("value", self.content(record.value))],
            Kind::Split | Kind::Merge => vec![
                ("right", Value::int(record.right)),
                ("upper", Value::int(record.upper)),
                ("map", self.map(&record.map)),
            ],
        });
        Value::record(fields)
    }

    fn in_slot(&self, block: &InSlot) -> Value {
        match block {
            InSlot::Zeros => Value::record([("is", Value::str("zeros"))]),
            InSlot::Image(leaf) => {
                Value::record([("is", Value::str("image")), ("leaf", self.leaf_value(leaf))])
            }
            InSlot::Chunk {
                number,
                entries,
                next,
            } => Value::record([
                ("is", Value::str("chunk")),
                ("number", Value::int(*number)),
                ("entries", entries_value(entries)),
                ("next", Value::int(*next)),
            ]),
        }
    }

    fn call_value(&self, call: Call) -> Value {
        match call {
            Call::Idle => op("none"),
            Call::Get {
                key,
                got,
                page,
                from,
            } => Value::record([
                ("op", Value::str("get")),
                ("key", Value::int(key)),
                ("got", self.content(got)),
                ("page", Value::int(page)),
                ("from", Value::int(from)),
            ]),
            Call::Write {
                key,
                value,
                page,
                lsn,
            } => Value::record([
                ("op", Value::str("write")),
                ("key", Value::int(key)),
                ("value", self.content(value)),
                ("page", Value::int(page)),
                ("lsn", Value::int(lsn)),
            ]),
            Call::Scan {
                back,
                at,
                fence,
                page,
                got,
                from,
            } => Value::record([
                ("op", Value::str("scan")),
                ("back", Value::Bool(back)),
                ("at", Value::int(at)),
                ("fence", Value::int(fence)),
                ("page", Value::int(page)),
                ("got", self.map(&got)),
                ("from", Value::int(from)),
            ]),
        }
    }

    fn change_value(&self, s: &State) -> Value {
        let is = match s.change.at {
            Stage::None => "none",
            Stage::Logged | Stage::Changed => s.record(s.change.lsn).is.into(),
        };
        Value::record([
            ("at", Value::variant(s.change.at)),
            ("is", Value::str(is)),
            ("page", Value::int(s.change.page)),
            ("right", Value::int(s.change.right)),
            ("lsn", Value::int(s.change.lsn)),
        ])
    }

    fn checkpoint_value(&self, s: &State) -> Value {
        let of = &s.checkpoint;
        Value::record([
            ("at", Value::variant(of.at)),
            ("begin", Value::int(of.begin)),
            ("upTo", Value::int(of.up_to)),
            ("head", Value::int(of.head)),
            ("last", Value::int(of.last)),
            ("slots", self.slot_set(of.slots)),
            ("entries", entries_value(&of.entries)),
            ("sum", entries_value(&of.sum)),
            ("next", Value::int(of.next)),
            ("page", Value::int(of.page)),
        ])
    }

    pub(super) fn values_of(&self, s: &State) -> Vec<(&'static str, Value)> {
        let calls = s.call.iter().map(|call| self.call_value(*call));
        let retired = self.slots().filter(|p| s.retired[at(*p)] > 0).map(|p| {
            Value::record([
                ("page", Value::int(p)),
                ("lsn", Value::int(s.retired[at(p)])),
            ])
        });
        let slot_dev = self.slots().map(|slot| {
            let versions = s.place(slot).all().iter();
            Value::seq(versions.map(|block| self.in_slot(block)))
        });
        vec![
            ("call", Value::fun(self.clients.iter().cloned().zip(calls))),
            ("log", Value::seq(s.records().map(|(_, r)| self.record(r)))),
            ("durable", Value::int(s.durable)),
            ("oldest", Value::int(s.oldest)),
            (
                "page",
                Value::seq(self.slots().map(|p| self.leaf_value(s.leaf(p)))),
            ),
            (
                "version",
                Value::seq(self.slots().map(|p| Value::int(s.version[at(p)]))),
            ),
            (
                "index",
                Value::seq(self.keys().map(|k| Value::int(s.index[at(k)]))),
            ),
            ("free", self.slot_set(s.free)),
            ("retired", Value::set(retired)),
            ("chain", self.slot_set(s.chain)),
            ("super", super_value(&s.newest)),
            ("change", self.change_value(s)),
            ("checkpoint", self.checkpoint_value(s)),
            ("slotDev", Value::seq(slot_dev)),
            (
                "superDev",
                Value::seq(s.super_dev.all().iter().map(super_value)),
            ),
            ("phase", Value::variant(s.phase)),
            ("redone", Value::int(s.redone)),
            ("crashes", Value::int(s.crashes)),
            ("losses", Value::int(s.losses)),
        ]
    }
}
