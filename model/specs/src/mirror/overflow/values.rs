//! A state as TLA+ values.

use super::Overflow;
use super::room::Set;
use super::state::{ABSENT, Block, Call, Content, Entry, Leaf, PENDING, Pointer};
use super::state::{Record, State};
use crate::Value;

fn pointer(at: Pointer) -> Value {
    Value::record([
        ("name", Value::int(at.name)),
        ("blocks", Value::seq(at.blocks().map(Value::int))),
    ])
}

impl Overflow {
    fn content(&self, content: Content) -> Value {
        match content {
            ABSENT => self.absent.clone(),
            PENDING => self.pending.clone(),
            n => Value::int(n),
        }
    }

    fn key(&self, key: u8) -> Value {
        self.keys[usize::from(key)].clone()
    }

    fn entry(&self, entry: Entry) -> Value {
        Value::record([
            ("value", self.content(entry.value)),
            ("at", pointer(entry.at)),
        ])
    }

    fn leaf(&self, leaf: Leaf) -> Value {
        Value::record([
            ("entry", self.entry(leaf.entry)),
            ("lsn", Value::int(leaf.lsn)),
        ])
    }

    fn block(&self, block: Block) -> Value {
        Value::record([
            ("name", Value::int(block.name)),
            ("part", Value::int(block.part)),
            ("value", self.content(block.value)),
        ])
    }

    fn record(&self, record: Record) -> Value {
        Value::record([
            ("key", self.key(record.key)),
            ("entry", self.entry(record.entry)),
        ])
    }

    fn call_value(&self, call: Call) -> Value {
        match call {
            Call::Idle => Value::record([("op", Value::str("none"))]),
            Call::Refused => Value::record([("op", Value::str("refused"))]),
            Call::Get {
                key,
                at,
                from,
                parts,
                got,
            } => Value::record([
                ("op", Value::str("get")),
                ("key", self.key(key)),
                ("at", Value::variant(at)),
                ("from", self.entry(from)),
                ("parts", Value::int(parts)),
                ("got", self.content(got)),
            ]),
            Call::Write {
                key,
                value,
                at,
                to,
                lsn,
            } => Value::record([
                ("op", Value::str("write")),
                ("key", self.key(key)),
                ("value", self.content(value)),
                ("at", Value::variant(at)),
                ("to", pointer(to)),
                ("lsn", Value::int(lsn)),
            ]),
        }
    }

    /// A function from keys.
    fn by_key(&self, of: impl Iterator<Item = Value>) -> Value {
        Value::fun(self.keys.iter().cloned().zip(of))
    }

    fn blocks(&self, set: Set) -> Value {
        Value::set(
            (1..=self.blocks)
                .filter(|b| set >> (b - 1) & 1 == 1)
                .map(Value::int),
        )
    }

    pub(super) fn values_of(&self, s: &State) -> Vec<(&'static str, Value)> {
        let calls = s.call.iter().map(|call| self.call_value(*call));
        let retired = s.retired().map(|retired| {
            Value::record([
                ("lsn", Value::int(retired.lsn)),
                ("at", pointer(retired.at)),
            ])
        });
        let leaves = s.leaf_dev.iter();
        let leaves = leaves.map(|place| Value::seq(place.all().iter().map(|l| self.leaf(*l))));
        let blocks = (1..=self.blocks).map(|b| {
            let versions = s.place(b).all().iter().map(|block| self.block(*block));
            Value::seq(versions)
        });
        vec![
            ("call", Value::fun(self.clients.iter().cloned().zip(calls))),
            ("asked", Value::int(s.asked)),
            ("named", Value::int(s.named)),
            ("log", Value::seq(s.records().map(|(_, r)| self.record(*r)))),
            ("written", Value::int(s.written)),
            ("durable", Value::int(s.durable)),
            ("forcing", Value::int(s.forcing)),
            ("redoStart", Value::int(s.redo_start)),
            ("leaf", self.by_key(s.leaf.iter().map(|l| self.leaf(*l)))),
            ("free", self.blocks(s.free)),
            ("retired", Value::set(retired)),
            ("leafDev", self.by_key(leaves)),
            ("blockDev", Value::seq(blocks)),
            ("phase", Value::variant(s.phase)),
            ("redone", Value::int(s.redone)),
            ("crashes", Value::int(s.crashes)),
        ]
    }
}
