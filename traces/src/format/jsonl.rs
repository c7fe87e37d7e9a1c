//! The `.jsonl` encoding: one JSON object per line.
//!
//! ```text
//! {"op":"put","key":"user7","value":100}        value: bytes of the value (puts only)
//! {"op":"scan","hex":"00ff","scan":20}          scan: records to read (scans only)
//! {"op":"get","key":"k","client":3,"t":1200}    client: 0 if left out; t: ns since the start
//! {"op":"put","key":"","value":0,"zeros":128}   zeros: share of zero bytes in 1/255
//! ```
//!
//! A key is stored as `key` if its bytes are UTF-8 without control characters, else as `hex`, two
//! digits per byte. So every key survives a round trip, and most can be read. Empty lines are
//! skipped. Unknown fields are errors, because a misspelt field would silently change the workload.

use std::borrow::Cow;
use std::io::{Read, Write};

use serde::Deserialize;

use super::beside::Beside;
use crate::error::shorten;
use crate::hex;
use crate::input::Lines;
use crate::op::MAX_KEY;
use crate::{Op, OpKind, TraceError};

/// A line as serde parses it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    op: Name,
    #[serde(borrow)]
    key: Option<Cow<'a, str>>,
    #[serde(borrow)]
    hex: Option<Cow<'a, str>>,
    value: Option<u32>,
    scan: Option<u32>,
    client: Option<u32>,
    t: Option<u64>,
    zeros: Option<u8>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Name {
    Get,
    Put,
    Delete,
    Scan,
}

impl From<Name> for OpKind {
    fn from(name: Name) -> OpKind {
        match name {
            Name::Get => OpKind::Get,
            Name::Put => OpKind::Put,
            Name::Delete => OpKind::Delete,
            Name::Scan => OpKind::Scan,
        }
    }
}

#[derive(Debug)]
pub(crate) struct LineReader<R> {
    lines: Lines<R>,
}

impl<R: Read> LineReader<R> {
    pub(crate) fn new(lines: Lines<R>) -> Self {
        LineReader { lines }
    }

    pub(crate) fn bytes_read(&self) -> u64 {
        self.lines.bytes_read()
    }

    pub(crate) fn next_op(&mut self, file: &str, op: &mut Op) -> Result<bool, TraceError> {
        loop {
            let Some(line) = self.lines.next_line(file)? else {
                return Ok(false);
            };
            if line.bytes.trim_ascii().is_empty() {
                continue;
            }
            return match parse(line.bytes, op) {
                Ok(()) => Ok(true),
                Err((expected, why)) => Err(TraceError::Bad {
                    file: file.into(),
                    place: format!("line {}", line.number),
                    expected,
                    found: format!("{}{why}", shorten(line.bytes)),
                }),
            };
        }
    }
}

/// Fills `op` from a line. On failure returns what was expected and what was found.
fn parse(bytes: &[u8], op: &mut Op) -> Result<(), (String, String)> {
    let line: Line<'_> = serde_json::from_slice(bytes).map_err(|why| {
        let expected = "an operation such as {\"op\":\"put\",\"key\":\"k\",\"value\":100}";
        (expected.into(), format!(" ({why})"))
    })?;
    let wrong = |expected: &str| Err((expected.into(), String::new()));
    op.kind = line.op.into();
    op.key.clear();
    match (&line.key, &line.hex) {
        (Some(key), None) => op.key.extend_from_slice(key.as_bytes()),
        (None, Some(digits)) => {
            if hex::decode(digits.as_bytes(), &mut op.key).is_none() {
                return wrong("pairs of hexadecimal digits in \"hex\"");
            }
        }
        _ => return wrong("either \"key\" or \"hex\""),
    }
    if op.key.len() > MAX_KEY {
        return Err((format!("a key of at most {MAX_KEY} bytes"), String::new()));
    }
    if line.value.is_some() != (op.kind == OpKind::Put) {
        return wrong("\"value\" (bytes) on puts and on nothing else");
    }
    if line.scan.is_some() != (op.kind == OpKind::Scan) {
        return wrong("\"scan\" (records) on scans and on nothing else");
    }
    op.value_len = line.value.unwrap_or(0);
    op.scan_len = line.scan.unwrap_or(0);
    op.client = line.client.unwrap_or(0);
    op.time_ns = line.t;
    op.zeros = line.zeros;
    Ok(())
}

#[derive(Debug, Default)]
pub(crate) struct LineWriter {
    line: Vec<u8>,
}

impl LineWriter {
    pub(crate) fn write(&mut self, op: &Op, file: &mut Beside) -> Result<(), TraceError> {
        let line = &mut self.line;
        line.clear();
        // Writing into a `Vec` cannot fail.
        let _ = write!(line, "{{\"op\":\"{}\",", op.kind.name());
        put_key(&op.key, line);
        if op.kind == OpKind::Put {
            let _ = write!(line, ",\"value\":{}", op.value_len);
        }
        if op.kind == OpKind::Scan {
            let _ = write!(line, ",\"scan\":{}", op.scan_len);
        }
        if op.client != 0 {
            let _ = write!(line, ",\"client\":{}", op.client);
        }
        if let Some(time) = op.time_ns {
            let _ = write!(line, ",\"t\":{time}");
        }
        if let Some(zeros) = op.zeros {
            let _ = write!(line, ",\"zeros\":{zeros}");
        }
        line.extend_from_slice(b"}\n");
        file.write(line)
    }
}

fn put_key(key: &[u8], line: &mut Vec<u8>) {
    match std::str::from_utf8(key) {
        Ok(text) if !text.chars().any(char::is_control) => {
            line.extend_from_slice(b"\"key\":");
            serde_json::to_writer(&mut *line, text).expect("a string is JSON");
        }
        _ => {
            line.extend_from_slice(b"\"hex\":\"");
            hex::encode(key, line);
            line.push(b'"');
        }
    }
}
