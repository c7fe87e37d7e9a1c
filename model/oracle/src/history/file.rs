//! The text format of histories, `treering.history/1`: a header, then one line for each call.
//!
//! ```text
//! {"schema":"treering.history/1","complete":true,"calls":4}
//! {"client":0,"invoke":1,"return":2,"op":"put","key":"a","version":1}
//! {"client":1,"invoke":3,"return":6,"op":"get","key":"a","found":1}
//! {"client":0,"invoke":4,"return":5,"failed":true,"op":"delete","key":{"hex":"00ff"}}
//! {"client":2,"invoke":7,"op":"scan","key":"a","through":"q","limit":9,"rows":[["a",1],["c","foreign"]]}
//! {"client":0,"invoke":8,"return":9,"op":"write","changes":[["a",3],["c",null]]}
//! {"client":2,"invoke":8,"return":9,"op":"scan-back","key":"q","limit":9,"rows":[["c",2],["a",1]]}
//! ```
//!
//! A call without `return` never returned. A key is text if its bytes are UTF-8 without control
//! characters, else pairs of hexadecimal digits. A get that found nothing has no `found`. A change
//! of a batch without a version is a delete. Bytes that no write wrote are `"foreign"`.

use std::collections::HashMap;
use std::io::{self, BufRead, Write};

use serde::{Deserialize, Serialize};

use super::{Action, Batch, Call, History, Key, KeyId, Outcome, Row, Scan, Start, Version};

/// The schema's name.
const SCHEMA: &str = "treering.history/1";

/// A history that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The file cannot be read.
    #[error("{name}: {source}")]
    Io {
        /// The file.
        name: String,
        /// The cause.
        source: io::Error,
    },
    /// A line is malformed.
    #[error("{name}, line {line}: expected {expected}, found {found}")]
    Line {
        /// The file.
        name: String,
        /// The line, from 1.
        line: usize,
        /// What the line should hold.
        expected: String,
        /// What the line holds.
        found: String,
    },
}

#[derive(Serialize, Deserialize)]
struct Header {
    schema: String,
    complete: bool,
    calls: usize,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Name {
    Text(String),
    Hex { hex: String },
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(untagged)]
enum Number {
    Of(u64),
    Word(Word),
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Word {
    Foreign,
}

#[derive(Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Op {
    Get,
    Put,
    Delete,
    Write,
    Scan,
    #[serde(rename = "scan-back")]
    ScanBack,
}

impl Op {
    fn is_scan(self) -> bool {
        matches!(self, Op::Scan | Op::ScanBack)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    client: u32,
    invoke: u64,
    #[serde(rename = "return", default, skip_serializing_if = "Option::is_none")]
    end: Option<u64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    failed: bool,
    op: Op,
    /// Present for all calls except a batch and a scan back from the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    version: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    found: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    through: Option<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    limit: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rows: Option<Vec<(Name, Number)>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    changes: Option<Vec<(Name, Option<u64>)>>,
}

fn name_of(key: &[u8]) -> Name {
    match std::str::from_utf8(key) {
        Ok(text) if !text.chars().any(char::is_control) => Name::Text(text.into()),
        _ => Name::Hex {
            hex: key.iter().map(|byte| format!("{byte:02x}")).collect(),
        },
    }
}

fn key_of(name: Name) -> Result<Key, String> {
    let hex = match name {
        Name::Text(text) => return Ok(text.into_bytes().into()),
        Name::Hex { hex } => hex,
    };
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let pair = |pair: &[u8]| match *pair {
        [high, low] => Some(digit(high)? << 4 | digit(low)?),
        _ => None,
    };
    let bytes: Option<Vec<u8>> = hex.as_bytes().chunks(2).map(pair).collect();
    bytes.map(Key::from).ok_or(hex)
}

fn number_of(version: Version) -> Number {
    match version {
        Version::FOREIGN => Number::Word(Word::Foreign),
        Version(number) => Number::Of(number),
    }
}

impl History {
    fn line(&self, call: &Call) -> Line {
        let name = |key: KeyId| name_of(self.key(key));
        let mut line = Line {
            client: call.client,
            invoke: call.invoke,
            end: (call.outcome != Outcome::Pending).then_some(call.end),
            failed: call.outcome == Outcome::Failed,
            op: Op::Delete,
            key: None,
            version: None,
            found: None,
            through: None,
            limit: None,
            rows: None,
            changes: None,
        };
        match call.action {
            Action::Get { key, found } => {
                (line.op, line.key) = (Op::Get, Some(name(key)));
                line.found = (found != Version::ABSENT).then(|| number_of(found));
            }
            Action::Put { key, version } => {
                (line.op, line.key, line.version) = (Op::Put, Some(name(key)), Some(version.0));
            }
            Action::Delete { key } => line.key = Some(name(key)),
            Action::Write(_) => {
                let there = |version: Version| (version != Version::ABSENT).then_some(version.0);
                let changes = self.written_by(call).into_iter();
                let changes = changes.map(|row| (name(row.key), there(row.version)));
                (line.op, line.changes) = (Op::Write, Some(changes.collect()));
            }
            Action::Scan(scan) => {
                let scan = &self.scans()[scan as usize];
                (line.op, line.key) = match scan.start {
                    Start::From(from) => (Op::Scan, Some(name(from))),
                    Start::Below(before) => (Op::ScanBack, Some(name(before))),
                    Start::End => (Op::ScanBack, None),
                };
                (line.through, line.limit) = (scan.through.map(name), Some(scan.limit));
                let rows = self.rows_of(scan).iter();
                line.rows = Some(
                    rows.map(|row| (name(row.key), number_of(row.version)))
                        .collect(),
                );
            }
        }
        line
    }

    /// Writes the history as text, one call a line.
    ///
    /// # Errors
    /// An error of `out`.
    pub fn save(&self, out: &mut dyn Write) -> io::Result<()> {
        let header = Header {
            schema: SCHEMA.into(),
            complete: true,
            calls: self.calls().len(),
        };
        serde_json::to_writer(&mut *out, &header)?;
        for call in self.calls() {
            out.write_all(b"\n")?;
            serde_json::to_writer(&mut *out, &self.line(call))?;
        }
        out.write_all(b"\n")
    }

    /// Reads the text that [`History::save`] writes. `name` is its name in errors.
    ///
    /// # Errors
    /// The file cannot be read, or a line is malformed.
    pub fn load(name: &str, input: &mut dyn BufRead) -> Result<History, HistoryError> {
        let mut loader = Loader::default();
        let mut promised = None;
        let mut number = 0;
        let at = |line, (expected, found)| HistoryError::Line {
            name: name.into(),
            line,
            expected,
            found,
        };
        for text in input.lines() {
            let text = text.map_err(|source| HistoryError::Io {
                name: name.into(),
                source,
            })?;
            number += 1;
            match promised {
                None => promised = Some(header(&text).map_err(|wrong| at(number, wrong))?),
                Some(_) if text.trim().is_empty() => {}
                Some(_) => loader.take(&text).map_err(|wrong| at(number, wrong))?,
            }
        }
        let found = loader.calls.len();
        match promised {
            Some(calls) if calls == found => Ok(History::assemble(
                loader.keys,
                loader.calls,
                loader.scans,
                loader.batches,
                loader.rows,
            )),
            Some(calls) => Err(at(
                number,
                (
                    format!("{calls} calls before the end"),
                    format!("{found}: the file is cut short or patched up"),
                ),
            )),
            None => Err(at(1, (format!("the header of {SCHEMA}"), "nothing".into()))),
        }
    }
}

/// What was expected and what was found.
type Wrong = (String, String);

fn wrong<T>(expected: &str, found: impl Into<String>) -> Result<T, Wrong> {
    Err((expected.into(), found.into()))
}

fn header(text: &str) -> Result<usize, Wrong> {
    let expected = format!("the header of {SCHEMA}");
    match serde_json::from_str::<Header>(text) {
        Ok(header) if header.schema != SCHEMA => {
            wrong(&expected, format!("schema {:?}", header.schema))
        }
        Ok(header) if !header.complete => wrong("a complete history", "\"complete\":false"),
        Ok(header) => Ok(header.calls),
        Err(e) => wrong(&expected, e.to_string()),
    }
}

#[derive(Default)]
struct Loader {
    keys: Vec<Key>,
    known: HashMap<Key, KeyId>,
    calls: Vec<Call>,
    scans: Vec<Scan>,
    batches: Vec<Batch>,
    rows: Vec<Row>,
}

impl Loader {
    fn key(&mut self, name: Name) -> Result<KeyId, Wrong> {
        let key = key_of(name).or_else(|hex| wrong("pairs of hexadecimal digits", hex))?;
        let next = KeyId(self.keys.len() as u32);
        Ok(*self.known.entry(key).or_insert_with_key(|key| {
            self.keys.push(key.clone());
            next
        }))
    }

    fn take(&mut self, text: &str) -> Result<(), Wrong> {
        let line: Line = serde_json::from_str(text).or_else(|e| wrong("a call", e.to_string()))?;
        let (client, invoke) = (line.client, line.invoke);
        if line.end.is_some_and(|end| end <= invoke) {
            return wrong("a return after the invocation", format!("{:?}", line.end));
        }
        let outcome = match (line.end, line.failed) {
            (None, true) => return wrong("the time at which the call failed", "no \"return\""),
            (None, false) => Outcome::Pending,
            (Some(_), true) => Outcome::Failed,
            (Some(_), false) => Outcome::Returned,
        };
        let strays = [
            ("version", line.version.is_some() && line.op != Op::Put),
            ("found", line.found.is_some() && line.op != Op::Get),
            ("through", line.through.is_some() && !line.op.is_scan()),
            ("limit", line.limit.is_some() && !line.op.is_scan()),
            ("rows", line.rows.is_some() && !line.op.is_scan()),
            ("changes", line.changes.is_some() && line.op != Op::Write),
            ("key", line.key.is_some() && line.op == Op::Write),
        ];
        if let Some((stray, _)) = strays.iter().find(|(_, stray)| *stray) {
            return wrong("only what belongs to the operation", format!("{stray:?}"));
        }
        let named = line.key.map(|name| self.key(name)).transpose()?;
        let (key, start) = match (line.op, named) {
            (Op::ScanBack | Op::Write, None) => (KeyId(0), Start::End),
            (_, None) => return wrong("a \"key\"", "none"),
            (Op::ScanBack, Some(before)) => (before, Start::Below(before)),
            (_, Some(key)) => (key, Start::From(key)),
        };
        let action = match line.op {
            Op::Get => Action::Get {
                key,
                found: line.found.map_or(Ok(Version::ABSENT), seen)?,
            },
            Op::Put => match line.version.map(Version) {
                Some(version) if version.is_writable() => Action::Put { key, version },
                other => {
                    let found = other.map_or("none".into(), |version| version.0.to_string());
                    return wrong("a \"version\" above 0 and below 2^64 - 1", found);
                }
            },
            Op::Delete => Action::Delete { key },
            Op::Write => self.batch(line.changes.unwrap_or_default())?,
            Op::Scan | Op::ScanBack => {
                let through = line.through.map(|name| self.key(name)).transpose()?;
                let Some(limit) = line.limit.filter(|limit| *limit > 0) else {
                    return wrong("a \"limit\" above 0", format!("{:?}", line.limit));
                };
                let first = self.rows.len() as u32;
                for (name, version) in line.rows.unwrap_or_default() {
                    let (key, version) = (self.key(name)?, seen(version)?);
                    if version == Version::ABSENT {
                        return wrong("rows that are there", "version 0");
                    }
                    self.rows.push(Row { key, version });
                }
                let rows = self.rows.len() as u32 - first;
                self.scans.push(Scan {
                    start,
                    through,
                    limit,
                    first,
                    rows,
                });
                Action::Scan(self.scans.len() as u32 - 1)
            }
        };
        self.calls.push(Call {
            client,
            outcome,
            invoke,
            end: line.end.unwrap_or(u64::MAX),
            action,
        });
        Ok(())
    }
}

impl Loader {
    fn batch(&mut self, listed: Vec<(Name, Option<u64>)>) -> Result<Action, Wrong> {
        let first = self.rows.len();
        for (name, version) in listed {
            let (key, version) = (self.key(name)?, version.map(Version));
            if version.is_some_and(|version| !version.is_writable()) {
                return wrong(
                    "versions above 0 and below 2^64 - 1",
                    format!("{version:?}"),
                );
            }
            if self.rows[first..].iter().any(|row| row.key == key) {
                return wrong("one change for each key", "another");
            }
            let version = version.unwrap_or(Version::ABSENT);
            self.rows.push(Row { key, version });
        }
        let changes = (self.rows.len() - first) as u32;
        let first = first as u32;
        self.batches.push(Batch { first, changes });
        Ok(Action::Write(self.batches.len() as u32 - 1))
    }
}

fn seen(number: Number) -> Result<Version, Wrong> {
    match number {
        Number::Word(Word::Foreign) => Ok(Version::FOREIGN),
        Number::Of(u64::MAX) => wrong("a version below 2^64 - 1", "2^64 - 1"),
        Number::Of(number) => Ok(Version(number)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{"schema":"treering.history/1","complete":true,"calls":8}
{"client":0,"invoke":1,"return":2,"op":"put","key":"a","version":1}
{"client":1,"invoke":3,"return":6,"op":"get","key":"a","found":1}
{"client":0,"invoke":4,"return":5,"failed":true,"op":"delete","key":{"hex":"00ff"}}
{"client":2,"invoke":7,"op":"scan","key":"a","through":"q","limit":9,"rows":[["a",1],["c","foreign"]]}
{"client":1,"invoke":8,"return":9,"op":"get","key":"a"}
{"client":1,"invoke":10,"return":11,"op":"scan-back","key":"q","through":"a","limit":9,"rows":[["c",2],["a",1]]}
{"client":1,"invoke":12,"return":13,"op":"scan-back","limit":1,"rows":[["c",2]]}
{"client":1,"invoke":14,"return":15,"op":"write","changes":[["a",4],["q",null]]}
"#;

    fn load(text: &str) -> Result<History, HistoryError> {
        History::load("h.jsonl", &mut text.as_bytes())
    }

    #[test]
    fn a_history_is_the_same_after_saving_and_loading() {
        let history = load(TEXT).unwrap();
        let mut saved = Vec::new();
        history.save(&mut saved).unwrap();
        assert_eq!(String::from_utf8(saved).unwrap(), TEXT);
        let scan = history.calls()[3];
        assert_eq!((scan.outcome, scan.end), (Outcome::Pending, u64::MAX));
        assert_eq!(history.rows()[1].version, Version::FOREIGN);
        // The keys are a, c, q, and the hexadecimal one before them.
        let starts: Vec<Start> = history.scans().iter().map(|scan| scan.start).collect();
        let [a, q] = [1, 3].map(KeyId);
        assert_eq!(starts, [Start::From(a), Start::Below(q), Start::End]);
    }

    #[test]
    fn bad_lines_are_named_with_what_was_expected() {
        for (from, to, line, expected) in [
            (
                "history/1",
                "history/9",
                1,
                "the header of treering.history/1",
            ),
            ("\"complete\":true", "\"complete\":false", 1, "a complete"),
            ("\"calls\":8", "\"calls\":9", 9, "9 calls before the end"),
            ("[\"q\",null]", "[\"a\",null]", 9, "one change for each key"),
            ("[\"a\",4]", "[\"a\",0]", 9, "versions above 0"),
            (
                ",\"changes\":[",
                ",\"rows\":[],\"changes\":[",
                9,
                "only what belongs",
            ),
            ("\"return\":2", "\"return\":1", 2, "after the invocation"),
            ("\"version\":1", "\"version\":0", 2, "a \"version\" above 0"),
            (
                ",\"version\":1",
                ",\"limit\":1,\"version\":1",
                2,
                "only what belongs",
            ),
            ("\"found\":1", "\"found\":\"lost\"", 3, "a call"),
            ("00ff", "00f", 4, "hexadecimal"),
            ("00ff", "0x00", 4, "hexadecimal"),
            ("\"return\":5,", "", 4, "the time at which"),
            ("\"limit\":9", "\"limit\":0", 5, "a \"limit\" above 0"),
            ("[\"a\",1]", "[\"a\",0]", 5, "rows that are there"),
            ("\"get\",\"key\":\"a\"}", "\"get\"}", 6, "a \"key\""),
        ] {
            assert!(TEXT.contains(from), "{from}");
            let error = load(&TEXT.replacen(from, to, 1)).unwrap_err().to_string();
            let start = format!("h.jsonl, line {line}: expected ");
            assert!(
                error.starts_with(&start) && error.contains(expected),
                "{error}"
            );
        }
        assert!(load("").unwrap_err().to_string().contains("line 1"));
    }
}
