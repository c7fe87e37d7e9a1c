//! A state as TLA+ values.

use super::WalRecovery;
use super::room::Set;
use super::state::{ABSENT, Block, Call, Content, Image, PENDING, Record};
use super::state::{State, Superblock, Versions};
use crate::Value;

fn versions<T: Copy + Default>(places: &Versions<T>, value: impl Fn(T) -> Value) -> Value {
    Value::seq(places.all().iter().map(|version| value(*version)))
}

/// The members of a bit set.
fn members(set: Set, of: impl IntoIterator<Item = Value>) -> Value {
    let mut of = (0u8..).zip(of).collect::<Vec<_>>();
    of.retain(|(i, _)| set >> i & 1 == 1);
    Value::set(of.into_iter().map(|(_, value)| value))
}

impl WalRecovery {
    fn content(&self, content: Content) -> Value {
        match content {
            ABSENT => self.absent.clone(),
            PENDING => self.pending.clone(),
            n => Value::int(n),
        }
    }

    fn key(&self, key: usize) -> Value {
        self.keys[key].clone()
    }

    fn call_value(&self, call: Call) -> Value {
        match call {
            Call::Idle => Value::record([("op", Value::str("none"))]),
            Call::Refused => Value::record([("op", Value::str("refused"))]),
            Call::Unknown => Value::record([("op", Value::str("unknown"))]),
            Call::Get { key, got } => Value::record([
                ("op", Value::str("get")),
                ("key", self.key(usize::from(key))),
                ("got", self.content(got)),
            ]),
            Call::Write {
                key,
                value,
                at,
                lsn,
            } => Value::record([
                ("op", Value::str("write")),
                ("key", self.key(usize::from(key))),
                ("value", self.content(value)),
                ("at", Value::variant(at)),
                ("lsn", Value::int(lsn)),
            ]),
        }
    }

    fn records(&self, records: &[Record]) -> Value {
        Value::seq(records.iter().map(|record| {
            Value::record([
                ("key", self.key(record.key())),
                ("value", self.content(record.value())),
            ])
        }))
    }

    fn block(&self, block: Block) -> Value {
        Value::record([
            ("epoch", Value::int(block.epoch)),
            ("index", Value::int(block.index)),
            ("records", self.records(block.records())),
        ])
    }

    fn image(&self, image: Image) -> Value {
        Value::record([
            ("value", self.content(image.value)),
            ("lsn", Value::int(image.lsn)),
        ])
    }

    /// A function from keys.
    fn by_key<T: Copy>(&self, values: &[T], value: impl Fn(T) -> Value) -> Value {
        Value::fun((self.keys.iter().cloned()).zip(values.iter().map(|v| value(*v))))
    }

    fn lost(&self, s: &State) -> Value {
        let lost = s.it.lost;
        Value::record([
            (
                "log",
                members(lost.log, (0..i64::from(self.ring_blocks)).map(Value::Int)),
            ),
            ("pages", members(lost.pages, self.keys.iter().cloned())),
            ("super", lost.superblock.into()),
        ])
    }

    pub(super) fn values_of(&self, s: &State) -> Vec<(&'static str, Value)> {
        let it = &s.it;
        let calls = s.call.iter().map(|call| self.call_value(*call));
        let log = s
            .log_dev
            .iter()
            .map(|place| versions(place, |b| self.block(b)));
        let checkpoint = Value::record([
            ("at", Value::variant(it.checkpoint)),
            ("begin", Value::int(it.begin)),
        ]);
        vec![
            ("call", Value::fun(self.clients.iter().cloned().zip(calls))),
            ("asked", Value::int(it.asked)),
            ("buffer", self.records(s.buffer())),
            ("durable", Value::int(it.durable)),
            ("flushing", Value::int(it.flushing)),
            ("epoch", Value::int(it.epoch)),
            ("oldest", Value::int(it.oldest)),
            ("poisoned", it.poisoned.into()),
            ("page", self.by_key(&s.page, |image| self.image(image))),
            ("dirtied", self.by_key(&s.dirtied, Value::int)),
            ("checkpoint", checkpoint),
            ("phase", Value::variant(it.phase)),
            ("redone", Value::int(it.redone)),
            ("logDev", Value::fun((0i64..).map(Value::Int).zip(log))),
            (
                "pageDev",
                self.by_key(&s.page_dev, |place| versions(&place, |i| self.image(i))),
            ),
            ("superDev", versions(&s.super_dev, superblock)),
            ("lost", self.lost(s)),
            ("base", self.by_key(&s.base, |value| self.content(value))),
            ("verdict", Value::variant(it.verdict)),
            ("crashes", Value::int(it.crashes)),
        ]
    }
}

fn superblock(superblock: Superblock) -> Value {
    Value::record([
        ("epoch", Value::int(superblock.epoch)),
        ("redo", Value::int(superblock.redo)),
    ])
}
