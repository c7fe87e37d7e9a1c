//! Rows of a table become operations, as a column specification says. Shared by `csv` and
//! `parquet`.

use super::columns::{FIELDS, Field, KeyCode, OpCode, Spec};
use super::emit::{Emit, Fault, KeyOp, Request};
use super::expire::Ttl;
use super::fields::{hex, hex_bytes, number, scaled, size, time};
use super::words::{Meaning, flag, keeps_expiry, scsi, word};
use crate::OpKind;

/// A row's columns, indexed by field; empty where the specification has no column.
pub(super) type Fields<'a> = [&'a [u8]; FIELDS];

/// The meaning of a table's columns.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) spec: Spec,
    key: Vec<u8>,
}

impl Table {
    pub(super) fn new(spec: Spec) -> Table {
        Table {
            spec,
            key: Vec::new(),
        }
    }

    /// Returns the meaning of the operation `op`.
    pub(super) fn meaning(&self, op: &[u8]) -> Result<Meaning, Fault> {
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

    /// Returns what a put with these fields says about its key's expiry.
    fn ttl(&self, fields: &Fields<'_>) -> Result<Ttl, Fault> {
        if !self.spec.has(Field::Ttl) || keeps_expiry(fields[Field::Op as usize]) {
            return Ok(Ttl::Keep);
        }
        match fields[Field::Ttl as usize] {
            b"" => Ok(Ttl::Never),
            ttl => time(ttl, self.spec.ttl_unit, "a time to live").map(Ttl::nanoseconds),
        }
    }

    /// Emits the operation of a row.
    pub(super) fn row(&mut self, fields: &Fields<'_>, out: &mut Emit<'_>) -> Result<(), Fault> {
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
            KeyCode::Auto => match plain_number(key) {
                Some(number) => self.key.extend_from_slice(&number.to_be_bytes()),
                None => self.key.extend_from_slice(key),
            },
            KeyCode::Text => self.key.extend_from_slice(key),
            KeyCode::Hex => hex_bytes(key, "a key", &mut self.key)?,
            KeyCode::Int => self
                .key
                .extend_from_slice(&number(key, "a key")?.to_be_bytes()),
        }
        // For other kinds these columns may hold anything.
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
            OpKind::Put => self.ttl(fields)?,
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

/// Parses a number below 2^64 that has only digits and no leading zeros.
fn plain_number(text: &[u8]) -> Option<u64> {
    let digits = text.iter().all(u8::is_ascii_digit);
    let padded = text.len() > 1 && text[0] == b'0';
    let text = std::str::from_utf8(text).ok()?;
    text.parse().ok().filter(|_| digits && !padded)
}
