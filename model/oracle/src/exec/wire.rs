//! The lines that go over the pipe: requests as they are written, answers as they are read.
//!
//! Keys and values are lower-case hexadecimal. So a line has no escapes, and an adapter in a
//! language without a JSON library can search it for `"key":"`.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::claims::Claims;

/// A request to an adapter. `tx` is the number of a transaction or snapshot, if it runs in one.
#[derive(Clone, Copy, Debug)]
pub enum Request<'a> {
    /// What can it do, and what does it claim?
    Hello,
    /// Open the store in this folder, or make one.
    Open(&'a str),
    /// Read a key.
    Get {
        /// The key.
        key: &'a [u8],
        /// The transaction.
        tx: Option<u64>,
    },
    /// Set a key.
    Put {
        /// The key.
        key: &'a [u8],
        /// Its new value.
        value: &'a [u8],
        /// The transaction.
        tx: Option<u64>,
    },
    /// Remove a key, if it is there.
    Delete {
        /// The key.
        key: &'a [u8],
        /// The transaction.
        tx: Option<u64>,
    },
    /// Read records in ascending order.
    Scan {
        /// The first key, inclusive.
        from: &'a [u8],
        /// The most records.
        limit: u64,
        /// The transaction.
        tx: Option<u64>,
    },
    /// Read records in descending order.
    ScanBack {
        /// Keys below this one; all if there is none.
        below: Option<&'a [u8]>,
        /// The most records.
        limit: u64,
        /// The transaction.
        tx: Option<u64>,
    },
    /// Make changes that take effect together. `None` removes a key.
    Batch(&'a [(&'a [u8], Option<&'a [u8]>)]),
    /// Make all writes that have returned durable.
    Sync,
    /// Begin a transaction with this number.
    Begin(u64),
    /// Begin a read-only transaction with this number.
    Snapshot(u64),
    /// Commit a transaction.
    Commit(u64),
    /// Abandon a transaction, or release a snapshot.
    Abort(u64),
    /// Close the store.
    Close,
    /// End the process at once, without an answer and without writing anything more.
    Crash,
}

/// The name of a request, which decides what its answer has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// [`Request::Hello`].
    Hello,
    /// [`Request::Get`].
    Get,
    /// [`Request::Scan`] and [`Request::ScanBack`].
    Scan,
    /// Any other; by its name.
    Other(&'static str),
}

impl Kind {
    /// The name, as in the request's `op`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Hello => "hello",
            Kind::Get => "get",
            Kind::Scan => "scan",
            Kind::Other(name) => name,
        }
    }
}

impl Request<'_> {
    /// The kind of the request.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Request::Hello => Kind::Hello,
            Request::Get { .. } => Kind::Get,
            Request::Scan { .. } | Request::ScanBack { .. } => Kind::Scan,
            other => Kind::Other(other.op()),
        }
    }

    fn op(&self) -> &'static str {
        match self {
            Request::Hello => "hello",
            Request::Open(_) => "open",
            Request::Get { .. } => "get",
            Request::Put { .. } => "put",
            Request::Delete { .. } => "delete",
            Request::Scan { .. } => "scan",
            Request::ScanBack { .. } => "scan-back",
            Request::Batch(_) => "batch",
            Request::Sync => "sync",
            Request::Begin(_) => "begin",
            Request::Snapshot(_) => "snapshot",
            Request::Commit(_) => "commit",
            Request::Abort(_) => "abort",
            Request::Close => "close",
            Request::Crash => "crash",
        }
    }

    /// Appends the request as a line.
    ///
    /// ```
    /// use treering_oracle::exec::Request;
    ///
    /// let mut line = Vec::new();
    /// Request::Put { key: b"a", value: &[0, 255], tx: None }.write(7, &mut line);
    /// assert_eq!(line, b"{\"id\":7,\"op\":\"put\",\"key\":\"61\",\"value\":\"00ff\"}\n");
    /// ```
    pub fn write(&self, id: u64, line: &mut Vec<u8>) {
        let mut head = String::with_capacity(48);
        let _ = write!(head, "{{\"id\":{id},\"op\":\"{}\"", self.op());
        line.extend_from_slice(head.as_bytes());
        let mut within = None;
        match *self {
            Request::Hello => line.extend_from_slice(b",\"protocol\":\"treering.exec/1\""),
            Request::Open(dir) => {
                line.extend_from_slice(b",\"dir\":\"");
                line.extend_from_slice(dir.as_bytes());
                line.push(b'"');
            }
            Request::Get { key, tx } | Request::Delete { key, tx } => {
                field(line, "key", key);
                within = tx;
            }
            Request::Put { key, value, tx } => {
                field(line, "key", key);
                field(line, "value", value);
                within = tx;
            }
            Request::Scan { from, limit, tx } => {
                field(line, "from", from);
                number(line, "limit", limit);
                within = tx;
            }
            Request::ScanBack { below, limit, tx } => {
                if let Some(below) = below {
                    field(line, "below", below);
                }
                number(line, "limit", limit);
                within = tx;
            }
            Request::Batch(changes) => {
                line.extend_from_slice(b",\"changes\":[");
                for (at, (key, value)) in changes.iter().enumerate() {
                    line.extend_from_slice(if at > 0 { b",\"" } else { b"\"" });
                    hex(line, key);
                    match value {
                        Some(value) => {
                            line.extend_from_slice(b"\",\"");
                            hex(line, value);
                            line.push(b'"');
                        }
                        None => line.extend_from_slice(b"\",null"),
                    }
                }
                line.push(b']');
            }
            Request::Begin(tx)
            | Request::Snapshot(tx)
            | Request::Commit(tx)
            | Request::Abort(tx) => within = Some(tx),
            Request::Sync | Request::Close | Request::Crash => {}
        }
        if let Some(tx) = within {
            number(line, "tx", tx);
        }
        line.extend_from_slice(b"}\n");
    }
}

fn number(line: &mut Vec<u8>, name: &str, n: u64) {
    line.extend_from_slice(format!(",\"{name}\":{n}").as_bytes());
}

fn field(line: &mut Vec<u8>, name: &str, bytes: &[u8]) {
    line.extend_from_slice(b",\"");
    line.extend_from_slice(name.as_bytes());
    line.extend_from_slice(b"\":\"");
    hex(line, bytes);
    line.push(b'"');
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

pub(super) fn hex(line: &mut Vec<u8>, bytes: &[u8]) {
    line.reserve(2 * bytes.len());
    for byte in bytes {
        let (high, low) = (usize::from(byte >> 4), usize::from(byte & 15));
        line.extend_from_slice(&[DIGITS[high], DIGITS[low]]);
    }
}

/// The bytes that hexadecimal digits stand for; `None` if they are none.
pub(super) fn unhex(digits: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| (byte as char).to_digit(16).map(|n| n as u8);
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let bytes = pairs
        .iter()
        .map(|[a, b]| Some(digit(*a)? << 4 | digit(*b)?));
    rest.is_empty().then(|| bytes.collect())?
}

/// A record: its key and its value.
pub type Record = (Vec<u8>, Vec<u8>);

/// How a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// Nothing has changed.
    Refused,
    /// The transaction is over, and nothing has changed. Trying again may succeed.
    Conflict,
    /// The write may have happened or not.
    Unknown,
}

/// An answer of an adapter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is done.
    Done,
    /// The value of a key, if it has one.
    Value(Option<Vec<u8>>),
    /// The records of a scan.
    Rows(Vec<Record>),
    /// What the adapter can do and claims.
    Claims(Box<Claims>),
    /// An error.
    Error(Refusal, String),
}

/// A line as it was read.
#[derive(Debug, Deserialize)]
pub(super) struct Line<'a> {
    pub(super) id: u64,
    #[serde(borrow, default, deserialize_with = "some")]
    value: Option<Option<Cow<'a, str>>>,
    #[serde(borrow, default)]
    rows: Option<Vec<Cow<'a, str>>>,
    #[serde(default)]
    error: Option<Refusal>,
    #[serde(borrow, default)]
    why: Option<Cow<'a, str>>,
}

/// Tells a field that is `null` from one that is missing.
fn some<'de, D: serde::Deserializer<'de>>(
    field: D,
) -> Result<Option<Option<Cow<'de, str>>>, D::Error> {
    Ok(Some(Option::<&str>::deserialize(field)?.map(Cow::Borrowed)))
}

impl Line<'_> {
    /// Reads a line of an adapter's output.
    ///
    /// # Errors
    /// What was expected.
    pub(super) fn read(text: &str) -> Result<Line<'_>, String> {
        serde_json::from_str(text).map_err(|e| format!("an answer as a JSON object ({e})"))
    }

    /// The answer to a request of this kind; `text` is the whole line.
    ///
    /// # Errors
    /// What was expected.
    pub(super) fn answer(self, kind: Kind, text: &str) -> Result<Answer, String> {
        if let Some(error) = self.error {
            let why = self.why.unwrap_or(Cow::Borrowed("no reason given"));
            return Ok(Answer::Error(error, why.into_owned()));
        }
        match kind {
            Kind::Hello => Claims::read(text).map(|claims| Answer::Claims(Box::new(claims))),
            Kind::Get => match self.value {
                None => Err("`value` (hexadecimal digits, or null if the key is absent)".into()),
                Some(None) => Ok(Answer::Value(None)),
                Some(Some(digits)) => match unhex(&digits) {
                    Some(value) => Ok(Answer::Value(Some(value))),
                    None => Err("pairs of hexadecimal digits in `value`".into()),
                },
            },
            Kind::Scan => {
                let rows = (self.rows).ok_or("`rows` (key, value, key, value, …)")?;
                let bytes: Option<Vec<Vec<u8>>> = rows.iter().map(|text| unhex(text)).collect();
                let bytes = bytes.ok_or("pairs of hexadecimal digits in `rows`")?;
                if bytes.len() % 2 == 1 {
                    return Err("a value after each key in `rows`".into());
                }
                let mut rows = Vec::with_capacity(bytes.len() / 2);
                let mut bytes = bytes.into_iter();
                while let (Some(key), Some(value)) = (bytes.next(), bytes.next()) {
                    rows.push((key, value));
                }
                Ok(Answer::Rows(rows))
            }
            Kind::Other(_) => Ok(Answer::Done),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(kind: Kind, text: &str) -> Result<Answer, String> {
        Line::read(text)?.answer(kind, text)
    }

    #[test]
    fn a_line_is_written_without_spaces_and_escapes() {
        let mut line = Vec::new();
        let changes: [(&[u8], Option<&[u8]>); 2] = [(b"a", Some(b"\n")), (b"", None)];
        Request::Batch(&changes).write(1, &mut line);
        Request::ScanBack {
            below: None,
            limit: 3,
            tx: Some(9),
        }
        .write(2, &mut line);
        let text = String::from_utf8(line).unwrap();
        assert_eq!(
            text,
            "{\"id\":1,\"op\":\"batch\",\"changes\":[\"61\",\"0a\",\"\",null]}\n\
             {\"id\":2,\"op\":\"scan-back\",\"limit\":3,\"tx\":9}\n"
        );
    }

    #[test]
    fn what_an_answer_lacks_is_named() {
        for (kind, text, expected) in [
            (Kind::Get, "{\"id\":1}", "`value`"),
            (Kind::Get, "{\"id\":1,\"value\":\"4\"}", "pairs of"),
            (Kind::Get, "{\"id\":1,\"value\":\"zz\"}", "pairs of"),
            (Kind::Scan, "{\"id\":1,\"rows\":[\"61\"]}", "a value after"),
            (Kind::Scan, "{\"id\":1}", "`rows`"),
            (Kind::Get, "hello", "a JSON object"),
            (Kind::Get, "{\"value\":null}", "a JSON object"),
        ] {
            let said = read(kind, text).unwrap_err();
            assert!(said.contains(expected), "{text}: {said}");
        }
        let absent = read(Kind::Get, "{\"id\":1,\"value\":null}");
        assert_eq!(absent, Ok(Answer::Value(None)));
        let text = "{\"id\":1,\"error\":\"conflict\",\"why\":\"busy\"}";
        let refused = Answer::Error(Refusal::Conflict, "busy".into());
        assert_eq!(read(Kind::Other("commit"), text), Ok(refused));
    }
}
