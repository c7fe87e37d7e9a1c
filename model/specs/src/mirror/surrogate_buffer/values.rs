//! A state as TLA+ values.

use super::constants::SurrogateBuffer;
use super::state::{Buffered, Call, Lock, Node, PENDING, State, Version};
use super::words::members;
use super::words::{
    ABSENT, Content, EntryWords, Fence, Header, LeafWords, Meta, Pair, Replayed, Word,
};
use crate::Value;

fn number(n: usize) -> Value {
    Value::Int(n as i64)
}

/// All values of a word, as a place of `Device`.
fn place<T>(word: &Word<T>, value: impl Fn(&T) -> Value) -> Value
where
    T: Copy + Default + std::hash::Hash,
{
    Value::seq(word.all().iter().map(value))
}

fn spot(name: &'static str, n: usize) -> Value {
    Value::seq([Value::str(name), number(n)])
}

fn fence(fence: &Fence) -> Value {
    Value::record([
        ("low", Value::int(fence.low)),
        ("leaf", Value::int(fence.leaf)),
    ])
}

fn header(header: &Header) -> Value {
    let bits = members(header.bits).map(|i| number(i + 1));
    Value::record([
        ("bits", Value::set(bits)),
        ("use", Value::int(header.use_n)),
        ("stamp", Value::int(header.stamp)),
    ])
}

impl SurrogateBuffer {
    fn content(&self, content: Content) -> Value {
        match content {
            ABSENT => self.absent.clone(),
            PENDING => self.pending.clone(),
            n => Value::int(n),
        }
    }

    fn pair(&self, pair: &Pair) -> Value {
        Value::record([
            ("key", Value::int(pair.key)),
            ("value", self.content(pair.value)),
        ])
    }

    fn meta(&self, meta: &Meta) -> Value {
        let sum = match meta.number {
            0 => Value::seq([]),
            n => Value::seq([Value::int(n), self.pair(&meta.sum)]),
        };
        Value::record([("number", Value::int(meta.number)), ("sum", sum)])
    }

    fn entry(&self, entry: &EntryWords) -> Value {
        Value::record([
            ("pair", place(&entry.pair, |pair| self.pair(pair))),
            ("meta", place(&entry.meta, |meta| self.meta(meta))),
        ])
    }

    fn leaf(&self, leaf: &LeafWords) -> Value {
        let next = |u: usize| place(&leaf.next[u], |next| Value::int(*next));
        let mut words = vec![
            (spot("header", 0), place(&leaf.header, header)),
            (spot("low", 0), place(&leaf.low, |low| Value::int(*low))),
            (spot("next", 0), next(0)),
            (spot("next", 1), next(1)),
        ];
        for (i, slot) in leaf.slots.iter().enumerate().take(self.leaf_slots) {
            words.push((spot("slot", i + 1), place(slot, |pair| self.pair(pair))));
        }
        Value::fun(words)
    }

    fn call_value(&self, call: &Call) -> Value {
        match *call {
            Call::Idle => Value::record([("op", Value::str("none"))]),
            Call::Get { key, got } => Value::record([
                ("op", Value::str("get")),
                ("key", Value::int(key)),
                ("got", self.content(got)),
            ]),
            Call::Write {
                key,
                value,
                step,
                space,
            } => Value::record([
                ("op", Value::str("write")),
                ("key", Value::int(key)),
                ("value", self.content(value)),
                ("at", Value::variant(step)),
                ("space", Value::int(space)),
            ]),
        }
    }

    fn buffered(&self, pair: &Buffered) -> Value {
        Value::record([
            ("key", Value::int(pair.key)),
            ("value", self.content(pair.value)),
            ("number", Value::int(pair.number)),
            ("version", Value::int(pair.version)),
        ])
    }

    fn node(&self, node: &Node) -> Value {
        let lock = match node.lock {
            Lock::Free => Value::str("free"),
            Lock::Flushing => Value::str("flush"),
            Lock::Client(c) => self.clients[usize::from(c)].clone(),
        };
        let buffer = node.buffer.iter().map(|pair| self.buffered(pair));
        let todo = node.todo.iter().map(|leaf| Value::int(*leaf));
        Value::record([
            ("index", Value::seq(node.index.iter().map(fence))),
            ("buffer", Value::seq(buffer)),
            ("lock", lock),
            ("todo", Value::seq(todo)),
            ("at", Value::variant(node.at)),
            ("fresh", Value::int(node.fresh)),
        ])
    }

    fn version(&self, version: &Version) -> Value {
        let owner = version.owner.map(|c| self.clients[usize::from(c)].clone());
        Value::record([
            ("version", Value::int(version.version)),
            ("owner", owner.unwrap_or_else(|| Value::str("nobody"))),
            ("used", Value::int(version.used)),
            ("valid", Value::int(version.valid)),
        ])
    }

    fn replayed(&self, replayed: Replayed) -> Value {
        let place = |at: usize| {
            [
                number(at / self.log_size + 1),
                number(at % self.log_size + 1),
            ]
        };
        Value::set(replayed.entries().map(|at| Value::seq(place(at))))
    }

    pub(super) fn values_of(&self, s: &State) -> Vec<(&'static str, Value)> {
        let calls = s.call.iter().map(|call| self.call_value(call));
        let logs = s.log.iter().take(self.spaces);
        let log = |entries: &[EntryWords]| {
            let entries = entries.iter().take(self.log_size);
            Value::seq(entries.map(|entry| self.entry(entry)))
        };
        let versions = s.versions.iter().take(self.spaces);
        let leaves = s.leaf.iter().take(self.leaves);
        let kept = s.kept.iter().take(self.keys.into());
        vec![
            ("call", Value::fun(self.clients.iter().cloned().zip(calls))),
            (
                "nodes",
                Value::seq(s.nodes.iter().map(|node| self.node(node))),
            ),
            ("versions", Value::seq(versions.map(|v| self.version(v)))),
            ("version", Value::int(s.version)),
            ("clock", Value::int(s.clock)),
            ("leaf", Value::seq(leaves.map(|leaf| self.leaf(leaf)))),
            ("log", Value::seq(logs.map(|entries| log(entries)))),
            ("phase", Value::variant(s.phase)),
            ("replayed", self.replayed(s.replayed)),
            ("crashes", Value::int(s.crashes)),
            ("kept", Value::seq(kept.map(|value| self.content(*value)))),
        ]
    }
}
