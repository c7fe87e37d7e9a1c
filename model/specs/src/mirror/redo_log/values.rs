//! A state as TLA+ values.

use super::RedoLog;
use super::format::{Block, Content, Entry, Super, Unit};
use super::state::{Call, State};
use crate::Value;

fn op(name: &'static str) -> Value {
    Value::record([("op", Value::str(name))])
}

fn unit(of: &Unit) -> Value {
    Value::record([
        ("record", Value::int(of.record)),
        ("len", Value::int(of.len)),
        ("part", Value::int(of.part)),
    ])
}

fn units(of: &[Unit]) -> Value {
    Value::seq(of.iter().map(unit))
}

fn entries(of: &[Entry]) -> Value {
    Value::seq(of.iter().map(|entry| {
        Value::record([
            ("record", Value::int(entry.record)),
            ("lsn", Value::int(entry.lsn)),
        ])
    }))
}

fn block(of: &Block) -> Value {
    Value::record([
        ("epoch", Value::int(of.epoch)),
        ("index", Value::int(of.index)),
        ("first", Value::int(of.first)),
        ("unforced", Value::int(of.unforced)),
        ("starts", Value::Bool(of.starts)),
        ("closed", Value::Bool(of.closed)),
        ("witness", Value::Bool(of.witness)),
        ("endMark", Value::Bool(of.end_mark)),
        ("units", units(&of.units)),
    ])
}

fn content(of: &Content) -> Value {
    Value::record([("head", block(&of.head)), ("rest", units(&of.rest))])
}

fn super_value(of: &Super) -> Value {
    Value::record([
        ("epoch", Value::int(of.epoch)),
        ("redo", Value::int(of.redo)),
        ("redoEpoch", Value::int(of.redo_epoch)),
    ])
}

fn call(of: Call) -> Value {
    match of {
        Call::Idle => op("none"),
        Call::Refused => op("refused"),
        Call::Unknown => op("unknown"),
        Call::Append { record, len, lsn } => {
            let at = if lsn == 0 { "called" } else { "waiting" };
            Value::record([
                ("op", Value::str("append")),
                ("record", Value::int(record)),
                ("len", Value::int(len)),
                ("at", Value::str(at)),
                ("lsn", Value::int(lsn)),
            ])
        }
    }
}

impl RedoLog {
    pub(super) fn values_of(&self, s: &State) -> Vec<(&'static str, Value)> {
        let calls = s.call.iter().map(|of| call(*of));
        let places = s
            .log_dev
            .iter()
            .map(|place| Value::seq(place.iter().map(content)));
        let lost = (0u32..).zip(&s.lost_log).filter(|(_, lost)| **lost);
        let lost = Value::set(lost.map(|(place, _)| Value::int(place)));
        let (at, to) = s.flying;
        let flying = Value::record([("at", Value::int(at)), ("to", Value::int(to))]);
        let (step, begin) = s.checkpoint;
        vec![
            ("call", Value::fun(self.clients.iter().cloned().zip(calls))),
            ("asked", Value::int(s.asked)),
            ("packing", Value::variant(s.packing)),
            ("epoch", Value::int(s.epoch)),
            ("startsAt", Value::int(s.starts_at)),
            ("bufferAt", Value::int(s.buffer_at)),
            ("buffer", units(&s.buffer)),
            ("end", Value::int(s.end)),
            ("flying", flying),
            ("durable", Value::int(s.durable)),
            ("oldest", Value::int(s.oldest)),
            (
                "checkpoint",
                Value::record([("at", Value::variant(step)), ("begin", Value::int(begin))]),
            ),
            ("poisoned", Value::Bool(s.poisoned)),
            ("logDev", Value::fun((0i64..).map(Value::Int).zip(places))),
            ("superDev", Value::seq(s.super_dev.iter().map(super_value))),
            (
                "lost",
                Value::record([("log", lost), ("super", Value::Bool(s.lost_super))]),
            ),
            ("phase", Value::variant(s.phase)),
            ("found", entries(&s.found)),
            ("history", entries(&s.history)),
            ("acked", Value::int(s.acked)),
            ("sure", Value::int(s.sure)),
            ("verdict", Value::variant(s.verdict)),
            ("crashes", Value::int(s.crashes)),
            ("rotten", Value::int(s.rotten)),
        ]
    }
}
