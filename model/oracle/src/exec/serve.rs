//! The other side of the protocol: an engine of this process, served as an adapter.
//!
//! ```text
//! stdin ──▶ read all there is ──▶ answer line by line ──▶ write, flush ──▶ stdout
//!                                        │
//!                                  Engine::open, Kv, Engine::close
//! ```
//!
//! Reading, answering and writing in large pieces is what makes a pipe fast. Transactions and
//! snapshots are not offered, as [`Kv`] has none.

use std::borrow::Cow;
use std::io::{Error as IoError, ErrorKind, Read, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use rustix::process::{Signal, getpid, kill_process};
use serde::{Deserialize, Serialize};
use treering_engine::{Batch, Error, Kv, Lsn};

use super::claims::{Claims, PROTOCOL};
use super::wire::{Refusal, hex, unhex};
use crate::engine::{Disk, Engine};

/// Bytes that one read asks for: what a pipe holds.
const READ_BYTES: usize = 64 << 10;

/// Answers are written when so many bytes of them have gathered, or no request is left.
const ANSWER_BYTES: usize = 256 << 10;

/// The most of a line that a message shows.
const SHOWN: usize = 80;

/// Why serving has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The requests have ended, or nobody reads the answers. A store that was open is dropped.
    Input,
    /// `crash` was asked for. A store that was open is leaked: nothing may be flushed any more, so
    /// the process must end at once.
    Crash,
}

/// Why serving cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// A line is no request, so that there is no number to answer.
    #[error(
        "line {line} of the requests: expected a JSON object with `id` and `op`, found {found}"
    )]
    Line {
        /// The line, counted from 1.
        line: u64,
        /// Its beginning.
        found: String,
    },
    /// Requests cannot be read, or answers cannot be written.
    #[error("requests cannot be read, or answers cannot be written: {0}")]
    Io(#[from] IoError),
}

/// Serves the engine to whoever started this process, by its standard input and output. Returns
/// when the requests end; after `crash` the process kills itself.
///
/// # Errors
/// As [`serve`].
pub fn serve_stdio(engine: &dyn Engine) -> Result<(), ServeError> {
    let (input, output) = (std::io::stdin().lock(), std::io::stdout().lock());
    match serve(engine, input, output)? {
        End::Input => Ok(()),
        End::Crash => loop {
            // Nothing stops this signal; the loop only tells the compiler so.
            let _ = kill_process(getpid(), Signal::KILL);
        },
    }
}

/// Serves an engine that keeps its stores in folders ([`DiskKind::Folder`]).
///
/// ```
/// use treering_oracle::exec::serve::{End, serve};
/// # use std::sync::Arc;
/// # use treering_engine::{Kv, Options, Result, Store};
/// # use treering_oracle::{Disk, DiskKind, Engine, Limits, Promise};
/// # struct Mine;
/// # impl Engine for Mine {
/// #     fn name(&self) -> String { "mine".into() }
/// #     fn disk(&self) -> DiskKind { DiskKind::Folder }
/// #     fn promise(&self) -> Promise { Promise::OnReturn }
/// #     fn limits(&self) -> Limits { Limits { max_key: 9, max_record: 99, empty_key: true } }
/// #     fn open(&self, disk: &Disk) -> Result<Arc<dyn Kv>> {
/// #         let Disk::Folder(folder) = disk else { unreachable!() };
/// #         Ok(Arc::new(Store::open_path(folder.join("store"), |_| ())?))
/// #     }
/// # }
///
/// let folder = tempfile::tempdir().unwrap();
/// let requests = format!(
///     "{{\"id\":1,\"op\":\"open\",\"dir\":\"{}\"}}\n{{\"id\":2,\"op\":\"get\",\"key\":\"61\"}}\n",
///     folder.path().display()
/// );
/// let mut answers = Vec::new();
/// assert_eq!(serve(&Mine, requests.as_bytes(), &mut answers).unwrap(), End::Input);
/// assert_eq!(answers, b"{\"id\":1}\n{\"id\":2,\"value\":null}\n");
/// ```
///
/// [`DiskKind::Folder`]: crate::DiskKind::Folder
///
/// # Errors
/// A line is no request, or reading or writing fails. What is wrong with a request that has a
/// number is an answer instead.
pub fn serve(
    engine: &dyn Engine,
    mut input: impl Read,
    mut output: impl Write,
) -> Result<End, ServeError> {
    let mut session = Session {
        engine,
        store: None,
        written: Lsn(0),
        value: Vec::new(),
        answers: Vec::with_capacity(2 * ANSWER_BYTES),
    };
    let mut unread = Vec::new();
    let mut lines = 0;
    loop {
        let known = unread.len();
        unread.resize(known + READ_BYTES, 0);
        let read = match input.read(&mut unread[known..]) {
            Err(e) if e.kind() == ErrorKind::Interrupted => {
                unread.truncate(known);
                continue;
            }
            read => read?,
        };
        unread.truncate(known + read);
        let mut begin = 0;
        while let Some(len) = unread[begin..].iter().position(|byte| *byte == b'\n') {
            lines += 1;
            let line = &unread[begin..begin + len];
            begin += len + 1;
            let Ok(asked) = serde_json::from_slice::<Asked<'_>>(line) else {
                let text = String::from_utf8_lossy(line);
                let found = text.chars().take(SHOWN).collect();
                session.write(&mut output)?;
                return Err(ServeError::Line { line: lines, found });
            };
            if asked.op == "crash" {
                std::mem::forget(session.store.take());
                let _ = session.write(&mut output);
                return Ok(End::Crash);
            }
            session.answer(&asked);
            if session.answers.len() >= ANSWER_BYTES && session.write(&mut output)? == Gone {
                return Ok(End::Input);
            }
        }
        unread.drain(..begin);
        if session.write(&mut output)? == Gone || read == 0 {
            return Ok(End::Input);
        }
    }
}

/// A request as it was read.
#[derive(Debug, Deserialize)]
struct Asked<'a> {
    id: u64,
    #[serde(borrow)]
    op: Cow<'a, str>,
    #[serde(borrow, default)]
    protocol: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    dir: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    key: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    value: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    from: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    below: Option<Cow<'a, str>>,
    #[serde(default)]
    limit: Option<u64>,
    #[serde(borrow, default)]
    changes: Option<Vec<Option<Cow<'a, str>>>>,
    #[serde(default)]
    tx: Option<u64>,
}

/// Nobody reads the answers any more.
#[derive(PartialEq, Eq)]
enum Reader {
    There,
    Gone,
}
use Reader::{Gone, There};

/// Why a request is refused.
struct Refused(Refusal, String);

impl Refused {
    /// The request cannot be served now, or by anyone.
    fn expected(what: &str) -> Refused {
        Refused(Refusal::Refused, format!("expected {what}"))
    }

    fn read(error: Error) -> Refused {
        Refused(Refusal::Refused, error.to_string())
    }

    /// Of a write whose device failed it is not known whether it happened, and a foreign engine
    /// does not say.
    fn write(error: Error) -> Refused {
        let refusal = match error {
            Error::Device(_) | Error::Foreign { .. } => Refusal::Unknown,
            _ => Refusal::Refused,
        };
        Refused(refusal, error.to_string())
    }
}

struct Session<'e> {
    engine: &'e dyn Engine,
    store: Option<Arc<dyn Kv>>,
    /// That of the last write, which `sync` makes durable.
    written: Lsn,
    /// A buffer for values.
    value: Vec<u8>,
    answers: Vec<u8>,
}

impl Session<'_> {
    /// Writes the answers so far.
    fn write(&mut self, output: &mut impl Write) -> Result<Reader, IoError> {
        if self.answers.is_empty() {
            return Ok(There);
        }
        let written = output
            .write_all(&self.answers)
            .and_then(|()| output.flush());
        self.answers.clear();
        match written {
            Err(e) if e.kind() == ErrorKind::BrokenPipe => Ok(Gone),
            written => written.map(|()| There),
        }
    }

    /// Appends the answer to a request.
    fn answer(&mut self, asked: &Asked<'_>) {
        let begin = self.answers.len();
        let head = format!("{{\"id\":{}", asked.id);
        self.answers.extend_from_slice(head.as_bytes());
        if let Err(Refused(refusal, why)) = self.run(asked) {
            self.answers.truncate(begin + head.len());
            let error = Told {
                error: refusal,
                why: &why,
            };
            self.append(&error);
        }
        self.answers.extend_from_slice(b"}\n");
    }

    /// Appends the fields of a value.
    fn append(&mut self, fields: &impl Serialize) {
        let text = serde_json::to_string(fields).expect("strings and numbers are JSON");
        let inner = text.trim_start_matches('{').strip_suffix('}');
        self.answers.push(b',');
        self.answers
            .extend_from_slice(inner.expect("it is an object").as_bytes());
    }

    fn run(&mut self, asked: &Asked<'_>) -> Result<(), Refused> {
        match &*asked.op {
            "hello" if asked.protocol.as_deref() == Some(PROTOCOL) => {
                self.append(&Claims::of(self.engine));
                return Ok(());
            }
            "hello" => return Err(Refused::expected(&format!("the protocol {PROTOCOL}"))),
            "open" => return self.open(asked),
            "close" => return self.close(),
            "begin" | "snapshot" | "commit" | "abort" => {
                return Err(Refused::expected("no transaction, as none are claimed"));
            }
            _ if asked.tx.is_some() => {
                return Err(Refused::expected("no `tx`, as no transactions are claimed"));
            }
            _ => {}
        }
        let store = self.store.clone();
        let store = store.ok_or_else(|| Refused::expected("an open store"))?;
        match &*asked.op {
            "get" => {
                let key = bytes("key", asked.key.as_deref())?;
                let found = store.get(&key, &mut self.value).map_err(Refused::read)?;
                self.answers.extend_from_slice(b",\"value\":");
                match found {
                    false => self.answers.extend_from_slice(b"null"),
                    true => quoted(&mut self.answers, &self.value),
                }
                Ok(())
            }
            "put" => {
                let key = bytes("key", asked.key.as_deref())?;
                let value = bytes("value", asked.value.as_deref())?;
                self.wrote(store.put(&key, &value))
            }
            "delete" => self.wrote(store.delete(&bytes("key", asked.key.as_deref())?)),
            "batch" => self.wrote(store.write(&batch(asked)?)),
            "sync" => store.sync(self.written).map_err(Refused::write),
            "scan" => {
                let from = bytes("from", asked.from.as_deref())?;
                self.rows(asked.limit, |visit| store.scan(&from, visit))
            }
            "scan-back" => {
                let below = asked.below.as_deref();
                let below = below.map(|text| bytes("below", Some(text))).transpose()?;
                self.rows(asked.limit, |visit| {
                    store.scan_back(below.as_deref(), visit)
                })
            }
            other => Err(Refused::expected(&format!("a request, found {other}"))),
        }
    }

    fn open(&mut self, asked: &Asked<'_>) -> Result<(), Refused> {
        if self.store.is_some() {
            return Err(Refused::expected("`close` before another `open`"));
        }
        let dir = asked.dir.as_deref();
        let dir = dir.ok_or_else(|| Refused::expected("`dir`, a folder"))?;
        let disk = Disk::Folder(PathBuf::from(dir));
        self.store = Some(self.engine.open(&disk).map_err(Refused::read)?);
        self.written = Lsn(0);
        Ok(())
    }

    /// A store that cannot be closed is dropped.
    fn close(&mut self) -> Result<(), Refused> {
        let store = self.store.take();
        let store = store.ok_or_else(|| Refused::expected("an open store"))?;
        let closed = self.engine.close(store);
        closed.unwrap_or(Ok(())).map_err(Refused::write)
    }

    fn wrote(&mut self, written: Result<Lsn, Error>) -> Result<(), Refused> {
        let lsn = written.map_err(Refused::write)?;
        self.written = self.written.max(lsn);
        Ok(())
    }

    /// Appends what a scan visits.
    fn rows(
        &mut self,
        limit: Option<u64>,
        scan: impl FnOnce(&mut treering_engine::Visitor<'_>) -> Result<(), Error>,
    ) -> Result<(), Refused> {
        let limit = limit.ok_or_else(|| Refused::expected("`limit`, a number"))?;
        let answers = &mut self.answers;
        answers.extend_from_slice(b",\"rows\":[");
        let mut rows = 0;
        let mut visit = |key: &[u8], value: &[u8]| {
            if rows > 0 {
                answers.push(b',');
            }
            quoted(answers, key);
            answers.push(b',');
            quoted(answers, value);
            rows += 1;
            match rows < limit {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        };
        if limit > 0 {
            scan(&mut visit).map_err(Refused::read)?;
        }
        self.answers.push(b']');
        Ok(())
    }
}

/// The fields of an error.
#[derive(Serialize)]
struct Told<'a> {
    error: Refusal,
    why: &'a str,
}

fn quoted(line: &mut Vec<u8>, bytes: &[u8]) {
    line.push(b'"');
    hex(line, bytes);
    line.push(b'"');
}

fn bytes(name: &str, digits: Option<&str>) -> Result<Vec<u8>, Refused> {
    let bytes = digits.and_then(unhex);
    bytes.ok_or_else(|| Refused::expected(&format!("`{name}` in pairs of hexadecimal digits")))
}

fn batch(asked: &Asked<'_>) -> Result<Batch, Refused> {
    let (pairs, rest) = asked.changes.as_deref().unwrap_or(&[None]).as_chunks::<2>();
    if !rest.is_empty() {
        let what = "`changes`, a key and a value or null for each change";
        return Err(Refused::expected(what));
    }
    let mut batch = Batch::new();
    for [key, value] in pairs {
        let key = bytes("changes", key.as_deref())?;
        match value {
            Some(value) => batch.put(key, bytes("changes", Some(value))?),
            None => batch.delete(key),
        };
    }
    Ok(batch)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{DiskKind, Limits, Promise};

    /// The engine's own store, in a file.
    struct InFile;

    impl Engine for InFile {
        fn name(&self) -> String {
            "in file".into()
        }

        fn disk(&self) -> DiskKind {
            DiskKind::Folder
        }

        fn promise(&self) -> Promise {
            Promise::OnReturn
        }

        fn limits(&self) -> Limits {
            Limits {
                max_key: 100,
                max_record: 1000,
                empty_key: true,
            }
        }

        fn batch_bytes(&self) -> Option<u64> {
            Some(1 << 20)
        }

        fn open(&self, disk: &Disk) -> treering_engine::Result<Arc<dyn Kv>> {
            let Disk::Folder(folder) = disk else {
                unreachable!("a folder is what it asks for")
            };
            let store = treering_engine::Store::open_path(folder.join("store"), |_| ())?;
            Ok(Arc::new(store))
        }
    }

    /// The answers to requests, of which `DIR` is a new folder.
    fn answers(requests: &[&str]) -> (End, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().to_str().unwrap();
        let text: String = requests
            .iter()
            .map(|request| format!("{}\n", request.replace("DIR", dir)))
            .collect();
        let mut output = Vec::new();
        let end = serve(&InFile, text.as_bytes(), &mut output).unwrap();
        let output = String::from_utf8(output).unwrap();
        (end, output.lines().map(str::to_owned).collect())
    }

    const OPEN: &str = r#"{"id":1,"op":"open","dir":"DIR"}"#;

    #[test]
    fn every_request_is_answered_as_the_protocol_says() {
        let (end, found) = answers(&[
            OPEN,
            r#"{"id":2,"op":"put","key":"61","value":"00ff"}"#,
            r#"{"id":3,"op":"get","key":"61"}"#,
            r#"{"id":4,"op":"batch","changes":["62","","61",null,"","07"]}"#,
            r#"{"id":5,"op":"scan","from":"","limit":9}"#,
            r#"{"id":6,"op":"scan-back","limit":1}"#,
            r#"{"id":7,"op":"scan-back","below":"62","limit":9}"#,
            r#"{"id":8,"op":"scan","from":"","limit":0}"#,
            r#"{"id":9,"op":"delete","key":"62"}"#,
            r#"{"id":10,"op":"get","key":"62"}"#,
            r#"{"id":11,"op":"sync"}"#,
            r#"{"id":12,"op":"close"}"#,
            r#"{"id":13,"op":"open","dir":"DIR"}"#,
            r#"{"id":14,"op":"get","key":""}"#,
        ]);
        let expected = [
            r#"{"id":1}"#,
            r#"{"id":2}"#,
            r#"{"id":3,"value":"00ff"}"#,
            r#"{"id":4}"#,
            r#"{"id":5,"rows":["","07","62",""]}"#,
            r#"{"id":6,"rows":["62",""]}"#,
            r#"{"id":7,"rows":["","07"]}"#,
            r#"{"id":8,"rows":[]}"#,
            r#"{"id":9}"#,
            r#"{"id":10,"value":null}"#,
            r#"{"id":11}"#,
            r#"{"id":12}"#,
            r#"{"id":13}"#,
            r#"{"id":14,"value":"07"}"#,
        ];
        assert_eq!(
            (end, found),
            (End::Input, expected.map(str::to_owned).into())
        );
    }

    #[test]
    fn the_claims_can_be_read_by_the_oracle() {
        let (_, found) = answers(&[r#"{"id":1,"op":"hello","protocol":"treering.exec/1"}"#]);
        let claims = Claims::read(&found[0]).unwrap();
        assert_eq!(claims, Claims::of(&InFile));
        assert_eq!(claims.name, "in-file");
    }

    #[test]
    fn a_request_that_cannot_be_served_is_refused_in_a_sentence() {
        let long = format!(
            r#"{{"id":2,"op":"put","key":"{}","value":""}}"#,
            "00".repeat(9000)
        );
        for (request, expected) in [
            (
                r#"{"id":2,"op":"open","dir":"/"}"#,
                "`close` before another",
            ),
            (r#"{"id":2,"op":"get","key":"6"}"#, "`key` in pairs"),
            (r#"{"id":2,"op":"put","key":"61"}"#, "`value` in pairs"),
            (r#"{"id":2,"op":"scan","from":""}"#, "`limit`"),
            (r#"{"id":2,"op":"batch","changes":["61"]}"#, "`changes`"),
            (
                r#"{"id":2,"op":"batch","changes":[null,"61"]}"#,
                "`changes`",
            ),
            (r#"{"id":2,"op":"batch"}"#, "`changes`"),
            (r#"{"id":2,"op":"begin","tx":1}"#, "no transaction"),
            (r#"{"id":2,"op":"get","key":"61","tx":1}"#, "no `tx`"),
            (r#"{"id":2,"op":"fly"}"#, "found fly"),
            (
                r#"{"id":2,"op":"hello","protocol":"other/2"}"#,
                "treering.exec/1",
            ),
            (&long, "key of 9000 bytes"),
        ] {
            let (_, found) = answers(&[OPEN, request]);
            let begin = "{\"id\":2,\"error\":\"refused\",\"why\":\"";
            assert!(found[1].starts_with(begin), "{request}: {}", found[1]);
            assert!(found[1].contains(expected), "{request}: {}", found[1]);
        }
        let (_, found) = answers(&[r#"{"id":1,"op":"sync"}"#]);
        assert!(found[0].contains("expected an open store"), "{}", found[0]);
    }

    #[test]
    fn what_is_no_request_ends_the_service_and_what_was_answered_is_written() {
        let (mut output, text) = (Vec::new(), "{\"id\":1,\"op\":\"sync\"}\nhello\n");
        let error = serve(&InFile, text.as_bytes(), &mut output).unwrap_err();
        assert_eq!(
            error.to_string(),
            "line 2 of the requests: expected a JSON object with `id` and `op`, found hello"
        );
        assert!(output.starts_with(b"{\"id\":1,\"error\""));
    }

    #[test]
    fn a_crash_is_not_answered_and_leaves_the_store_as_it_is() {
        let (end, found) = answers(&[OPEN, r#"{"id":2,"op":"crash"}"#]);
        assert_eq!((end, found.len()), (End::Crash, 1));
    }
}
