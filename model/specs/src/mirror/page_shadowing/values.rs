//! A state as TLA+ values.

use super::PageShadowing;
use super::state::{ABSENT, Block, Call, Content, Known, LOG_BLOCK, N, PENDING, Page, ROTTEN};
use super::state::{Places, SPOTS, Set, State, Values, page_of, segment_of, spot};
use crate::Value;

/// A number, as the spec counts segments, slots and the like: from 1 or from 0.
fn number(n: usize) -> Value {
    Value::Int(n as i64)
}

fn numbered(set: Set, len: usize) -> impl Iterator<Item = usize> {
    (0..len).filter(move |i| set >> i & 1 == 1)
}

impl PageShadowing {
    fn content(&self, content: Content) -> Value {
        match content {
            ABSENT => self.absent.clone(),
            PENDING => self.pending.clone(),
            ROTTEN => self.rotten.clone(),
            n => Value::int(n),
        }
    }

    fn key(&self, key: u8) -> Value {
        let page = self.pages[page_of(key)].clone();
        Value::seq([page, number(segment_of(key) + 1)])
    }

    fn contents(&self, values: &Values) -> Value {
        let values = values.iter().take(self.segments);
        Value::seq(values.map(|value| self.content(*value)))
    }

    pub(super) fn by_page<T>(&self, of: &[T], value: impl Fn(&T) -> Value) -> Value {
        Value::fun(self.pages.iter().cloned().zip(of.iter().map(value)))
    }

    fn call_value(&self, call: &Call) -> Value {
        match *call {
            Call::Idle => Value::record([("op", Value::str("none"))]),
            Call::Refused => Value::record([("op", Value::str("refused"))]),
            Call::Get { key, got } => Value::record([
                ("op", Value::str("get")),
                ("key", self.key(key)),
                ("got", self.content(got)),
            ]),
            Call::Write { key, value, lsn } => {
                let at = if lsn == 0 { "called" } else { "waiting" };
                Value::record([
                    ("op", Value::str("write")),
                    ("key", self.key(key)),
                    ("value", self.content(value)),
                    ("at", Value::str(at)),
                    ("lsn", Value::int(lsn)),
                ])
            }
        }
    }

    fn log(&self, s: &State) -> Value {
        Value::seq(s.records().map(|(_, record)| {
            Value::record([
                ("key", self.key(record.key)),
                ("value", self.content(record.value)),
            ])
        }))
    }

    fn page(&self, page: &Option<Page>) -> Value {
        let Some(page) = page else {
            return Value::record([("at", Value::str("out"))]);
        };
        let dirty = numbered(page.dirty, self.segments);
        Value::record([
            ("at", Value::str("in")),
            ("lsn", Value::int(page.image.lsn)),
            ("values", self.contents(&page.image.values)),
            ("dirty", Value::set(dirty.map(|i| number(i + 1)))),
            ("base", Value::int(page.base)),
            ("stored", Value::int(page.stored)),
        ])
    }

    fn block(&self, at: usize, block: Block) -> Value {
        if block == Block::TRIMMED {
            return self.trimmed.clone();
        }
        let lsn = || Value::int(block.lsn());
        if at == LOG_BLOCK {
            let dirty = numbered(block.dirty(), self.segments);
            let segments = dirty.map(|i| (number(i + 1), self.content(block.value(i))));
            return Value::record([
                ("base", Value::int(block.base())),
                ("lsn", lsn()),
                ("segments", Value::fun(segments)),
            ]);
        }
        if at == spot(0, 0) || at == spot(1, 0) {
            let all = std::array::from_fn(|i| block.value(i));
            return Value::record([("lsn", lsn()), ("all", self.contents(&all))]);
        }
        self.content(block.value(0))
    }

    /// The blocks that a page of the model has, each with its name.
    fn spots(&self) -> Vec<(usize, Value)> {
        let slots = [0, 1].into_iter().flat_map(|slot| {
            let segments = 0..self.segments;
            segments.map(move |i| (spot(slot, i), Value::seq([number(slot), number(i + 1)])))
        });
        let log = (LOG_BLOCK, Value::seq([number(2), number(1)]));
        slots.chain([log]).collect()
    }

    fn places(&self, places: &Places) -> Value {
        Value::fun(self.spots().into_iter().map(|(at, name)| {
            let versions = places[at].all().iter();
            (
                name,
                Value::seq(versions.map(|block| self.block(at, *block))),
            )
        }))
    }

    fn lost(&self, lost: Set) -> Value {
        let is = |at: &usize| numbered(lost, SPOTS).any(|i| i == *at);
        let spots = self.spots().into_iter();
        Value::set(spots.filter(|(at, _)| is(at)).map(|(_, name)| name))
    }

    pub(super) fn values_of(&self, s: &State) -> Vec<(&'static str, Value)> {
        let calls = s.call.iter().map(|call| self.call_value(call));
        let lsn = |n: N| Value::int(n);
        vec![
            ("call", Value::fun(self.clients.iter().cloned().zip(calls))),
            ("log", self.log(s)),
            ("durable", lsn(s.durable)),
            ("redoStart", lsn(s.redo_start)),
            ("mem", self.by_page(&s.mem, |page| self.page(page))),
            ("valid", self.by_page(&s.valid, known)),
            ("dev", self.by_page(&s.dev, |places| self.places(places))),
            ("lost", self.by_page(&s.lost, |lost| self.lost(*lost))),
            ("poisoned", s.poisoned.into()),
            ("phase", Value::variant(s.phase)),
            ("redone", lsn(s.redone)),
            ("crashes", lsn(s.crashes)),
        ]
    }
}

fn known(known: &Known) -> Value {
    Value::record([
        ("slot", Value::int(known.slot)),
        ("is", Value::variant(known.is)),
        ("logged", known.logged.into()),
    ])
}
