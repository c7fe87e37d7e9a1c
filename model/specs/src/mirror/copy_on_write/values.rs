//! A state as TLA+ values.

use super::super::wal_recovery::Versions;
use super::CopyOnWrite;
use super::room::{N, Set, SlotSet};
use super::state::{ABSENT, Call, Content, Entries, InSlot, PENDING, Record, State, Super};
use super::state::{Writing, bit, slot_bit};
use crate::Value;

fn op(name: &'static str) -> Value {
    Value::record([("op", Value::str(name))])
}

fn super_value(of: Super) -> Value {
    Value::record([
        ("number", Value::int(of.number)),
        ("redo", Value::int(of.redo)),
        ("snapshot", Value::int(of.snapshot)),
        ("made", Value::int(of.made)),
    ])
}

fn versions<T: Copy + Default + std::hash::Hash, const ROOM: usize>(
    place: &Versions<T, ROOM>,
    of: impl Fn(T) -> Value,
) -> Value {
    Value::seq(place.all().iter().map(|version| of(*version)))
}

impl CopyOnWrite {
    fn content(&self, value: N) -> Value {
        match value {
            ABSENT => self.absent.clone(),
            PENDING => self.pending.clone(),
            n => Value::int(n),
        }
    }

    fn name(&self, page: u8) -> Value {
        self.pages[usize::from(page)].clone()
    }

    fn page_value(&self, content: Content) -> Value {
        Value::record([
            ("value", self.content(content.value)),
            ("lsn", Value::int(content.lsn)),
        ])
    }

    fn page_set(&self, set: Set) -> Value {
        let of = self.pages().filter(|p| set & bit(*p) != 0);
        Value::set(of.map(|p| self.pages[p].clone()))
    }

    fn slot_set(&self, set: SlotSet) -> Value {
        let of = (1..=self.slots).filter(|slot| set & slot_bit(*slot) != 0);
        Value::set(of.map(Value::int))
    }

    /// A function from pages.
    fn by_page(&self, of: impl Iterator<Item = Value>) -> Value {
        Value::fun(self.pages.iter().cloned().zip(of))
    }

    fn record(&self, record: &Record) -> Value {
        Value::record([
            ("kind", Value::variant(record.kind)),
            ("page", self.name(record.page)),
            ("value", self.content(record.value)),
        ])
    }

    fn in_slot(&self, block: InSlot) -> Value {
        match block {
            InSlot::Zeros => Value::record([("is", Value::str("zeros"))]),
            InSlot::Image { page, content } => Value::record([
                ("is", Value::str("image")),
                ("page", self.name(page)),
                ("value", self.content(content.value)),
                ("lsn", Value::int(content.lsn)),
            ]),
            InSlot::Snapshot { number, pages } => Value::record([
                ("is", Value::str("snapshot")),
                ("number", Value::int(number)),
                ("pages", self.page_set(pages)),
            ]),
        }
    }

    fn entries_value(&self, block: usize, entries: Entries) -> Value {
        let of = self.pages().filter(|p| self.block_of(*p) == block);
        Value::fun(of.map(|p| (self.pages[p].clone(), Value::int(entries[p]))))
    }

    fn call_value(&self, call: Call) -> Value {
        match call {
            Call::Idle => op("none"),
            Call::Refused => op("refused"),
            Call::Unknown => op("unknown"),
            Call::Get { page, got } => Value::record([
                ("op", Value::str("get")),
                ("key", self.name(page)),
                ("got", self.content(got)),
            ]),
            Call::Write { page, value, lsn } => Value::record([
                ("op", Value::str("write")),
                ("key", self.name(page)),
                ("value", self.content(value)),
                (
                    "at",
                    Value::str(if lsn == 0 { "called" } else { "waiting" }),
                ),
                ("lsn", Value::int(lsn)),
            ]),
        }
    }

    fn writing_value(&self, writing: Writing) -> Value {
        match writing {
            Writing::Quiet => Value::record([("at", Value::str("idle"))]),
            Writing::Image { page, slot } => Value::record([
                ("at", Value::str("image")),
                ("page", self.name(page)),
                ("slot", Value::int(slot)),
            ]),
            Writing::Table(left) => {
                Value::record([("at", Value::str("table")), ("left", self.slot_set(left))])
            }
        }
    }

    fn device_values(&self, s: &State) -> Vec<(&'static str, Value)> {
        let slots = (1..=self.slots).map(|slot| versions(s.slot(slot), |of| self.in_slot(of)));
        let tables =
            (0..self.blocks).map(|b| versions(&s.table_dev[b], |of| self.entries_value(b, of)));
        let supers = (0..2u8).map(|i| {
            (
                Value::int(i),
                versions(&s.super_dev[i as usize], super_value),
            )
        });
        let table = (0..self.blocks).filter(|b| s.lost_table & bit(*b) != 0);
        let lost_supers = (0..2).filter(|i| s.lost_super & bit(*i) != 0);
        let lost = Value::record([
            ("slots", self.slot_set(s.lost_slots)),
            ("table", Value::set(table.map(|b| Value::int(b as u32 + 1)))),
            (
                "super",
                Value::set(lost_supers.map(|i| Value::int(i as u32))),
            ),
        ]);
        vec![
            ("slotDev", Value::seq(slots)),
            ("tableDev", Value::seq(tables)),
            ("superDev", Value::fun(supers)),
            ("lost", lost),
            ("poisoned", Value::Bool(s.poisoned)),
        ]
    }

    pub(super) fn values_of(&self, s: &State) -> Vec<(&'static str, Value)> {
        let calls = s.call.iter().map(|call| self.call_value(*call));
        let retired = self.pages().filter(|p| s.retired[*p] > 0).map(|p| {
            Value::record([
                ("page", self.pages[p].clone()),
                ("lsn", Value::int(s.retired[p])),
            ])
        });
        let checkpoint = Value::record([
            ("at", Value::variant(s.checkpoint.at)),
            ("begin", Value::int(s.checkpoint.begin)),
            ("upTo", Value::int(s.checkpoint.up_to)),
            ("slot", Value::int(s.checkpoint.slot)),
        ]);
        let persist = if s.each { "each" } else { "checkpoints" };
        let mut values = vec![
            ("persist", Value::str(persist)),
            ("call", Value::fun(self.clients.iter().cloned().zip(calls))),
            ("log", Value::seq(s.records().map(|(_, r)| self.record(r)))),
            ("durable", Value::int(s.durable)),
            ("oldest", Value::int(s.oldest)),
            (
                "page",
                self.by_page(s.page.iter().map(|page| self.page_value(*page))),
            ),
            ("index", self.page_set(s.index)),
            (
                "table",
                self.by_page(s.table.iter().map(|slot| Value::int(*slot))),
            ),
            ("free", self.slot_set(s.free)),
            ("retired", Value::set(retired)),
            ("super", super_value(s.newest)),
            ("writing", self.writing_value(s.writing)),
            ("checkpoint", checkpoint),
            ("phase", Value::variant(s.phase)),
            ("redone", Value::int(s.redone)),
            ("crashes", Value::int(s.crashes)),
        ];
        values.extend(self.device_values(s));
        values
    }
}
