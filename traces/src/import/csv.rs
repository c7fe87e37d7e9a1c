//! Any delimited text, one operation a line, described by a column specification: the escape hatch that covers
//! SYSTOR'17, Alibaba, Tencent, FIU and most traces still to come. The grammar, with a line for each of those, is in
//! [`columns`](super::columns).
//!
//! The first line is a header if the specification names columns, or if no column that should hold a number begins like
//! one (without such columns: if `op` holds no operation). Quoted fields are not understood. An operation by an unknown
//! name has no counterpart: it is left out, counted and named.

use super::TextFormat;
use super::columns::{FIELDS, Field, KeyCode, OpCode, Place, Separator, Spec};
use super::emit::{Emit, Fault, KeyOp, Request};
use super::expire::Ttl;
use super::fields::{hex, hex_bytes, number, scaled, size, time, words_of};
use super::words::{Meaning, flag, keeps_expiry, scsi, word};
use crate::{OpKind, TraceError};

#[derive(Debug)]
pub(super) struct Csv {
    spec: Spec,
    /// Which field column `i` holds; as long as the last column that matters.
    roles: Vec<Option<Field>>,
    begun: bool,
    key: Vec<u8>,
}

impl Csv {
    pub(super) fn new(columns: Option<&str>) -> Result<Csv, TraceError> {
        let Some(columns) = columns else {
            return Err(TraceError::BadParameter {
                name: "columns",
                why: "expected for the csv format, such as \
                      time=1:s,op=3,offset=5:bytes,size=6:bytes; found none"
                    .into(),
            });
        };
        let spec = Spec::parse(columns)?;
        Ok(Csv {
            spec,
            roles: Vec::new(),
            begun: false,
            key: Vec::new(),
        })
    }

    /// Finds out where the columns are; `true` if `line` is a header.
    fn begin(&mut self, line: &[u8]) -> Result<bool, Fault> {
        let columns: Vec<&[u8]> = match self.spec.separator {
            Separator::Byte(byte) => line.split(|&b| b == byte).map(<[u8]>::trim_ascii).collect(),
            Separator::WhiteSpace => words_of(line).collect(),
        };
        let mut by_name = false;
        // A first line that was bad and skipped has left roles behind.
        self.roles.clear();
        let all = [
            Field::Time,
            Field::Op,
            Field::Offset,
            Field::Size,
            Field::Device,
            Field::Key,
        ]
        .into_iter()
        .chain([Field::Value, Field::Scan, Field::Client, Field::Ttl]);
        for field in all {
            let index = match &self.spec.places[field as usize] {
                None => continue,
                Some(Place::Index(index)) => *index,
                Some(Place::Name(name)) => {
                    by_name = true;
                    columns
                        .iter()
                        .position(|column| *column == name.as_bytes())
                        .ok_or_else(|| {
                            Fault::bad(format!("a header line with a column {name}"), line)
                        })?
                }
            };
            if self.roles.len() <= index {
                self.roles.resize(index + 1, None);
            }
            if self.roles[index].replace(field).is_some() {
                return Err(Fault::bad("every column of the specification once", line));
            }
        }
        Ok(by_name || self.looks_like_header(&columns))
    }

    fn looks_like_header(&self, columns: &[&[u8]]) -> bool {
        let column_of = |field| {
            let index = self.roles.iter().position(|role| *role == Some(field))?;
            columns.get(index).copied()
        };
        let numbers: Vec<&[u8]> = [Field::Time, Field::Offset, Field::Size, Field::Value]
            .into_iter()
            .filter_map(column_of)
            .collect();
        if numbers.is_empty() {
            let op = column_of(Field::Op).unwrap_or_default();
            return self
                .meaning(op)
                .is_ok_and(|meaning| meaning == Meaning::NoCounterpart);
        }
        let like_number =
            |c: &[u8]| matches!(c.first(), Some(b'0'..=b'9' | b'.' | b'-' | b'+') | None);
        !numbers.into_iter().any(like_number)
    }

    fn meaning(&self, op: &[u8]) -> Result<Meaning, Fault> {
        match self.spec.op_code {
            OpCode::WriteIsOne => flag(op, 1).map(Meaning::Op),
            OpCode::ReadIsOne => flag(op, 0).map(Meaning::Op),
            OpCode::Scsi => Ok(scsi(hex(op, "a SCSI operation code")?)),
            OpCode::Words => match op {
                b"0" | b"1" => flag(op, 1).map(Meaning::Op),
                _ => word(op).ok_or_else(|| Fault::bad("an operation's name", op)),
            },
        }
    }

    /// What a put with these fields says about its key's expiry.
    fn ttl(&self, fields: &[&[u8]; FIELDS]) -> Result<Ttl, Fault> {
        if !self.spec.has(Field::Ttl) || keeps_expiry(fields[Field::Op as usize]) {
            return Ok(Ttl::Keep);
        }
        match fields[Field::Ttl as usize] {
            b"" => Ok(Ttl::Never),
            ttl => time(ttl, self.spec.ttl_unit, "a time to live").map(Ttl::nanoseconds),
        }
    }

    /// The fields of a line, each at its place; empty where the specification has none.
    fn fields<'l>(&self, line: &'l [u8]) -> Result<[&'l [u8]; FIELDS], Fault> {
        let mut fields = [&[][..]; FIELDS];
        let mut columns = 0;
        let mut take = |column: &'l [u8]| {
            if let Some(field) = self.roles[columns] {
                fields[field as usize] = column;
            }
            columns += 1;
        };
        match self.spec.separator {
            Separator::Byte(byte) => line
                .split(|&b| b == byte)
                .take(self.roles.len())
                .for_each(|column| take(column.trim_ascii())),
            Separator::WhiteSpace => words_of(line).take(self.roles.len()).for_each(take),
        }
        if columns < self.roles.len() {
            return Err(Fault::bad(
                format!("at least {} columns", self.roles.len()),
                line,
            ));
        }
        Ok(fields)
    }
}

impl TextFormat for Csv {
    fn line(&mut self, line: &[u8], out: &mut Emit<'_>) -> Result<(), Fault> {
        if !self.begun {
            let header = self.begin(line)?;
            self.begun = true;
            if header {
                return Ok(());
            }
        }
        let fields = self.fields(line)?;
        let field = |field: Field| fields[field as usize];
        let meaning = self.meaning(field(Field::Op))?;
        let time_ns = if self.spec.has(Field::Time) {
            Some(time(field(Field::Time), self.spec.time_unit, "a time")?)
        } else {
            None
        };
        let Meaning::Op(kind) = meaning else {
            out.leave_out(field(Field::Op));
            return Ok(());
        };
        if !self.spec.has(Field::Key) {
            return out.request(Request {
                kind,
                device: field(Field::Device),
                offset: scaled(field(Field::Offset), self.spec.offset_unit, "an offset")?,
                length: scaled(field(Field::Size), self.spec.size_unit, "a size")?,
                time_ns,
            });
        }
        let key = field(Field::Key);
        self.key.clear();
        match self.spec.key_code {
            KeyCode::Text => self.key.extend_from_slice(key),
            KeyCode::Hex => hex_bytes(key, "a key", &mut self.key)?,
            KeyCode::Int => self
                .key
                .extend_from_slice(&number(key, "a key")?.to_be_bytes()),
        }
        // Other kinds have nothing, or anything, in these columns.
        let value_len = match (kind, self.spec.has(Field::Value)) {
            (OpKind::Put, true) => size(field(Field::Value), "a value length in bytes")?,
            _ => out.value_size,
        };
        let scan_len = match (kind, self.spec.has(Field::Scan)) {
            (OpKind::Scan, true) => size(field(Field::Scan), "a number of records")?,
            _ => 1,
        };
        let client = field(Field::Client);
        let ttl = match kind {
            OpKind::Put => self.ttl(&fields)?,
            _ => Ttl::Keep,
        };
        out.key_op(
            KeyOp {
                kind,
                key: &self.key,
                value_len,
                scan_len,
                client,
                time_ns,
                ttl,
            },
            1,
        )
    }
}
