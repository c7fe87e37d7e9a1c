//! A state as TLA+ values.

use super::LeafLayout;
use super::state::{ABSENT, CUT, Call, Content, Leaf, Map, PENDING, Phase, Record, State};
use crate::Value;

impl LeafLayout {
    fn content(&self, content: Content) -> Value {
        match content {
            ABSENT => self.absent.clone(),
            PENDING => self.pending.clone(),
            CUT => Value::int(0u8),
            n => Value::int(n),
        }
    }

    fn key(&self, key: u8) -> Value {
        Value::int(self.keys[usize::from(key)])
    }

    fn map(&self, map: &Map) -> Value {
        let values = map.iter().map(|value| self.content(*value));
        let keys = self.keys.iter().map(|key| Value::int(*key));
        Value::fun(keys.zip(values))
    }

    fn leaf(&self, leaf: &Leaf) -> Value {
        Value::record([
            ("layout", Value::variant(leaf.layout)),
            ("lower", Value::int(leaf.lower)),
            ("upper", Value::int(leaf.upper)),
            ("len", Value::int(leaf.len)),
            ("map", self.map(&leaf.map)),
            ("lsn", Value::int(leaf.lsn)),
        ])
    }

    fn record(&self, record: &Record) -> Value {
        Value::record([
            ("is", Value::variant(record.is)),
            ("page", Value::int(record.page)),
            ("key", Value::int(record.key)),
            ("value", self.content(record.value)),
            ("layout", Value::variant(record.layout)),
            ("right", Value::int(record.right)),
            ("upper", Value::int(record.upper)),
            ("map", self.map(&record.map)),
        ])
    }

    fn call_value(&self, call: Call) -> Value {
        match call {
            Call::Idle => Value::record([("op", Value::str("none"))]),
            Call::Get { key, got } => Value::record([
                ("op", Value::str("get")),
                ("key", self.key(key)),
                ("got", self.content(got)),
            ]),
            Call::Write { key, value, lsn } => Value::record([
                ("op", Value::str("write")),
                ("key", self.key(key)),
                ("value", self.content(value)),
                ("lsn", Value::int(lsn)),
            ]),
        }
    }

    pub(super) fn values_of(&self, s: &State) -> Vec<(&'static str, Value)> {
        let calls = s.call.iter().map(|call| self.call_value(*call));
        let pages = || 1..=self.pages;
        let images = |p: u8| Value::seq(s.images(p).iter().map(|image| self.leaf(image)));
        let log = s.first(s.log_len).map(|(_, record)| self.record(record));
        vec![
            ("call", Value::fun(self.clients.iter().cloned().zip(calls))),
            ("asked", Value::int(s.asked)),
            ("log", Value::seq(log)),
            ("durable", Value::int(s.durable)),
            ("redoStart", Value::int(s.redo_start)),
            ("leaf", Value::seq(pages().map(|p| self.leaf(s.page(p))))),
            ("allows", Value::Bool(s.allows)),
            ("leafDev", Value::seq(pages().map(images))),
            (
                "phase",
                match s.phase {
                    Phase::Goes(phase) => Value::variant(phase),
                    Phase::Damaged => Value::str("damaged"),
                },
            ),
            ("redone", Value::int(s.redone)),
            ("crashes", Value::int(s.crashes)),
        ]
    }
}
