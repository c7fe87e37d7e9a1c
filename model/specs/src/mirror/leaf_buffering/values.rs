//! A state as TLA+ values.

use super::constants::LeafBuffering;
use super::memory::{ABSENT, FIRST, Map, Place, Words, members};
use super::memory::{chunk_of, header_of, kv_of, slot_of, stamp_of, time_of};
use super::state::{Batch, Buffer, CLEANER, Call, Job, LogEnd, N};
use super::state::{PENDING, RECOVERER, Set, State};
use super::word::{Kv, Time, Word};
use crate::Value;

fn number(n: usize) -> Value {
    Value::Int(n as i64)
}

/// A set of numbers, which the spec counts from `from`.
fn numbers(set: Set, from: usize) -> Value {
    Value::set(members(set).map(|n| number(n + from)))
}

fn time(time: Time) -> Value {
    Value::seq([time.epoch, time.tick].map(Value::int))
}

impl LeafBuffering {
    fn content(&self, content: N) -> Value {
        match content {
            ABSENT => self.absent.clone(),
            PENDING => self.pending.clone(),
            n => Value::int(n),
        }
    }

    fn map(&self, map: &Map) -> Value {
        let values = map.iter().take(self.keys);
        Value::seq(values.map(|value| self.content(*value)))
    }

    fn kv(&self, kv: Kv) -> Value {
        Value::record([
            ("key", Value::int(kv.key)),
            ("value", self.content(kv.value)),
        ])
    }

    fn call_value(&self, call: &Call) -> Value {
        match *call {
            Call::Idle => Value::record([("op", Value::str("none"))]),
            Call::Get { key, got } => Value::record([
                ("op", Value::str("get")),
                ("key", Value::int(key)),
                ("got", self.content(got)),
            ]),
            Call::Write { key, value, at } => Value::record([
                ("op", Value::str("write")),
                ("key", Value::int(key)),
                ("value", self.content(value)),
                ("at", Value::variant(at)),
            ]),
        }
    }

    fn buffer_value(&self, buffer: &Buffer) -> Value {
        let slots = buffer.slots.iter().take(self.batch).map(|slot| {
            Value::record([
                ("key", Value::int(slot.key)),
                ("value", self.content(slot.value)),
                ("bit", Value::int(slot.bit)),
            ])
        });
        Value::record([
            ("slots", Value::seq(slots)),
            ("count", Value::int(buffer.count)),
        ])
    }

    fn batch_value(&self, batch: &Batch) -> Value {
        let keys = members(batch.keys);
        Value::fun(keys.map(|key| (number(key), self.content(batch.value(key)))))
    }

    fn job_value(&self, job: &Job) -> Value {
        Value::record([
            ("at", Value::variant(job.at)),
            ("leaf", Value::int(job.leaf)),
            ("from", Value::int(job.from)),
            ("new", Value::int(job.new)),
            ("epoch", Value::int(job.epoch)),
            ("batch", self.batch_value(&job.batch)),
            ("deletes", job.deletes.into()),
        ])
    }

    /// The words that the model uses, in address order.
    fn memory(&self, pm: &[Place]) -> Value {
        let place = |address: usize, word: &dyn Fn(Word) -> Value| {
            Value::seq(pm[address].all().iter().map(|version| word(*version)))
        };
        let epoch = |word: Word| Value::int(word.as_number());
        let header = |word: Word| {
            Value::record([
                ("live", numbers(word.live(), 1)),
                ("next", Value::int(word.next())),
            ])
        };
        let stamp = |word: Word| time(word.as_time());
        let kv = |word: Word| self.kv(word.as_kv());
        let stamped =
            |word: Word| Value::record([("at", time(word.at())), ("of", self.kv(word.of()))]);
        let mut words = vec![place(FIRST, &epoch)];
        for leaf in 1..=self.leaves as u8 {
            words.push(place(header_of(leaf), &header));
            words.push(place(stamp_of(leaf), &stamp));
            words.extend((0..self.slots).map(|slot| place(slot_of(leaf, slot), &kv)));
        }
        for chunk in self.chunks() {
            words.push(place(chunk_of(chunk), &epoch));
            for entry in 0..self.entries {
                words.push(place(kv_of(chunk, entry), &kv));
                words.push(place(time_of(chunk, entry), &stamped));
            }
        }
        Value::seq(words)
    }

    fn by_client<T>(
        &self,
        of: &[T],
        last: (&'static str, usize),
        value: impl Fn(&T) -> Value,
    ) -> Value {
        let clients = self.clients.iter().cloned().zip(of.iter().map(&value));
        Value::fun(clients.chain([(Value::str(last.0), value(&of[last.1]))]))
    }

    pub(super) fn values_of(&self, s: &State) -> Vec<(&'static str, Value)> {
        let calls = s.call.iter().map(|call| self.call_value(call));
        let inner = s.inner.all().iter().map(|child| {
            Value::record([
                ("leaf", Value::int(child.leaf)),
                ("low", Value::int(child.low)),
            ])
        });
        let buffers = s.buffer.iter().take(self.leaves);
        let medium: Words = s.medium();
        vec![
            ("call", Value::fun(self.clients.iter().cloned().zip(calls))),
            ("asked", Value::int(s.asked)),
            ("inner", Value::seq(inner)),
            ("buffer", Value::seq(buffers.map(|b| self.buffer_value(b)))),
            (
                "job",
                self.by_client(&s.job, ("recovery", RECOVERER), |job| self.job_value(job)),
            ),
            ("log", self.by_client(&s.log, ("cleaner", CLEANER), log_end)),
            ("epoch", Value::int(s.epoch)),
            ("tick", Value::int(s.tick)),
            (
                "cleaning",
                Value::record([
                    ("at", Value::variant(s.cleaning.at)),
                    ("todo", numbers(s.cleaning.todo, 0)),
                    ("chunks", numbers(s.cleaning.chunks, 0)),
                ]),
            ),
            ("pm", self.memory(&s.pm)),
            ("phase", Value::variant(s.phase)),
            ("crashes", Value::int(s.crashes)),
            ("found", self.map(&self.recovered(&medium))),
            ("written", self.map(&s.written)),
        ]
    }
}

fn log_end(end: &LogEnd) -> Value {
    Value::record([
        ("chunk", Value::int(end.chunk)),
        ("used", Value::int(end.used)),
        ("epoch", Value::int(end.epoch)),
    ])
}
