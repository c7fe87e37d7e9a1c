//! Programs: the operations that a client applies to a store, as text that people can read and the
//! oracle can replay.
//!
//! ```text
//! {"schema":"treering.program/1","engine":"btree:cow"}
//! put "test" 120
//! put "teste" 80
//! delete "test"
//! write put "a" 90 delete "teste" put "u" 0
//! scan "a" to "u" limit 5
//! sync
//! crash after request 57 keep 0 1 1 0
//! crash in recovery after request 3 keep 1
//! ```
//!
//! A value is made of the number of its operation, counted from 1, and a length, so the file is all
//! that a replay needs. The values of a batch (`write`) also depend on their place in it. In memory
//! a key is an index into a sorted table, so comparing keys compares numbers.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use treering_engine::device::RequestKind;

/// Name and version of the file format.
pub const SCHEMA: &str = "treering.program/1";

/// A key, as an index into [`Program::keys`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyNo(pub u32);

/// What a power cut leaves of unflushed blocks, or of unfenced words of persistent memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Keep {
    /// Each reverts to its last durable version.
    Oldest,
    /// Each keeps its newest version.
    Newest,
    /// Each keeps any of its versions, chosen by a seed.
    Seeded(u64),
}

/// One change of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Change {
    /// The key.
    pub key: KeyNo,
    /// The length of its new value in bytes, or `None` if the key is removed.
    pub len: Option<u32>,
}

/// One operation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Sets a key to a value of this many bytes.
    Put(KeyNo, u32),
    /// Removes a key.
    Delete(KeyNo),
    /// Writes a batch: changes that take effect together. If several are to one key, the last one
    /// counts.
    Write(Vec<Change>),
    /// Reads a key.
    Get(KeyNo),
    /// Reads keys in order.
    Scan {
        /// The first key, inclusive.
        from: KeyNo,
        /// The end, exclusive.
        to: Option<KeyNo>,
        /// The most rows to read.
        limit: Option<u32>,
    },
    /// Reads keys in descending order.
    ScanBack {
        /// Keys below this one.
        before: Option<KeyNo>,
        /// The most rows to read.
        limit: Option<u32>,
    },
    /// Waits until all writes so far are durable.
    Sync,
    /// Syncs the LSN that the last write returned. If that write changed nothing, this promises
    /// nothing about earlier ones.
    SyncLast,
    /// Does all background work that is due.
    Pump,
    /// Does one bounded step of background work, so that later operations meet a checkpoint
    /// half-way.
    Step,
    /// Takes a checkpoint.
    Checkpoint,
    /// Drops the store and opens it again. The power stays on.
    Reopen,
    /// Cuts the power, and opens the store on what is left.
    Crash(Keep),
    /// Cuts the power at the n-th device request from here; 0 is the next.
    CutPower(u64),
    /// Fails the n-th device request of this kind from here; 0 is the next. Requests of a later
    /// recovery count as well.
    Fail(RequestKind, u64),
    /// From here on the medium has no space for blocks that hold nothing (`true`), or has space
    /// again (`false`).
    Starve(bool),
    /// From here on the medium takes trims for hints (`true`): it may forget them, or do them later;
    /// or it does them at once (`false`).
    Hint(bool),
}

impl Op {
    /// Whether this operation is a put, a delete or a batch.
    #[must_use]
    pub fn is_write(&self) -> bool {
        matches!(self, Op::Put(..) | Op::Delete(_) | Op::Write(_))
    }
}

/// One power cut of a recorded run.
///
/// A block that was written and not flushed is in doubt, as is an unfenced word of persistent
/// memory: the cut may leave any of its versions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CrashPoint {
    /// The number of device requests before the cut. The last of them may be torn.
    pub after_request: u64,
    /// The surviving version of each block or word in doubt, in order of address. 0 is the durable
    /// version.
    pub keep: Vec<usize>,
    /// A byte that is damaged after the cut.
    pub damage: Option<Damage>,
}

/// A damaged byte on a block device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Damage {
    /// The block.
    pub block: u64,
    /// The offset of the byte in the block.
    pub byte: u64,
}

/// A program, and the power cuts that end it.
///
/// ```
/// use treering_oracle::{KeyNo, Op, Program};
///
/// let text = r#"{"schema":"treering.program/1","engine":"btree:cow"}
/// put "a" 120
/// delete "b"
/// crash keep-oldest
/// "#;
/// let saved = Program::parse(text).unwrap();
/// assert_eq!(saved.engine, "btree:cow");
/// assert_eq!(saved.program.ops[0], Op::Put(KeyNo(0), 120));
/// assert_eq!(saved.program.save("btree:cow", None), text);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// All keys of the operations, sorted.
    pub keys: Vec<Vec<u8>>,
    /// The operations, in order.
    pub ops: Vec<Op>,
    /// A power cut during the program, then cuts during the recoveries after it.
    pub crashes: Vec<CrashPoint>,
}

/// The first line of a program file.
#[derive(Debug, Serialize, Deserialize)]
struct Header {
    schema: String,
    engine: String,
    /// The violation that was found when the program was saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    found: Option<String>,
}

/// A malformed program file.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: expected {expected}, found {found}")]
pub struct ProgramError {
    /// The line, counted from 1.
    pub line: usize,
    /// What the line should hold.
    pub expected: &'static str,
    /// What the line holds.
    pub found: String,
}

/// A program as read from its file.
#[derive(Debug)]
pub struct Saved {
    /// The name of the engine that it ran on.
    pub engine: String,
    /// The violation that was found, as a sentence.
    pub found: Option<String>,
    /// The program.
    pub program: Program,
}

impl Program {
    /// The bytes of a key.
    #[must_use]
    pub fn key(&self, key: KeyNo) -> &[u8] {
        &self.keys[key.0 as usize]
    }

    /// Drops the keys that no operation uses.
    pub fn forget_unused_keys(&mut self) {
        let Ok(saved) = Program::parse(&self.save("", None)) else {
            unreachable!("what was saved can be read");
        };
        self.keys = saved.program.keys;
        self.ops = saved.program.ops;
    }

    /// The text of the program file.
    #[must_use]
    pub fn save(&self, engine: &str, found: Option<&str>) -> String {
        let header = Header {
            schema: SCHEMA.into(),
            engine: engine.into(),
            found: found.map(str::to_owned),
        };
        let mut text = serde_json::to_string(&header).expect("three strings are JSON");
        text.push('\n');
        for op in &self.ops {
            text.push_str(&self.line(op));
            text.push('\n');
        }
        for (i, crash) in self.crashes.iter().enumerate() {
            let place = if i == 0 { "crash" } else { "crash in recovery" };
            let _ = write!(text, "{place} after request {} keep", crash.after_request);
            crash.keep.iter().for_each(|n| {
                let _ = write!(text, " {n}");
            });
            if let Some(Damage { block, byte }) = crash.damage {
                let _ = write!(text, " damage block {block} byte {byte}");
            }
            text.push('\n');
        }
        text
    }

    /// The line of one operation in the program file.
    #[must_use]
    pub fn line(&self, op: &Op) -> String {
        let key = |k: &KeyNo| format!("\"{}\"", self.key(*k).escape_ascii());
        match op {
            Op::Put(k, len) => format!("put {} {len}", key(k)),
            Op::Delete(k) => format!("delete {}", key(k)),
            Op::Write(changes) => {
                let mut line = "write".to_owned();
                for Change { key: k, len } in changes {
                    let _ = match len {
                        Some(len) => write!(line, " put {} {len}", key(k)),
                        None => write!(line, " delete {}", key(k)),
                    };
                }
                line
            }
            Op::Get(k) => format!("get {}", key(k)),
            Op::Scan { from, to, limit } => {
                let mut line = format!("scan {}", key(from));
                if let Some(to) = to {
                    let _ = write!(line, " to {}", key(to));
                }
                if let Some(limit) = limit {
                    let _ = write!(line, " limit {limit}");
                }
                line
            }
            Op::ScanBack { before, limit } => {
                let mut line = "scan-back".to_owned();
                if let Some(before) = before {
                    let _ = write!(line, " below {}", key(before));
                }
                if let Some(limit) = limit {
                    let _ = write!(line, " limit {limit}");
                }
                line
            }
            Op::Sync => "sync".into(),
            Op::SyncLast => "sync-last".into(),
            Op::Pump => "pump".into(),
            Op::Step => "step".into(),
            Op::Checkpoint => "checkpoint".into(),
            Op::Reopen => "reopen".into(),
            Op::Crash(Keep::Oldest) => "crash keep-oldest".into(),
            Op::Crash(Keep::Newest) => "crash keep-newest".into(),
            Op::Crash(Keep::Seeded(seed)) => format!("crash keep-seeded {seed}"),
            Op::CutPower(n) => format!("cut-power {n}"),
            Op::Fail(kind, n) => format!("fail-{} {n}", kind.name()),
            Op::Starve(true) => "no-space".into(),
            Op::Starve(false) => "space".into(),
            Op::Hint(true) => "trims-are-hints".into(),
            Op::Hint(false) => "trims-are-done".into(),
        }
    }

    /// Parses the text of a program file; see [`Program::save`].
    ///
    /// # Errors
    /// The first malformed line.
    pub fn parse(text: &str) -> Result<Saved, ProgramError> {
        parse::program(text)
    }
}

mod parse;

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Program {
        let keys = vec![
            b"".to_vec(),
            b"a\"b".to_vec(),
            vec![0, 255, b'\n'],
            b"test".to_vec(),
        ];
        let mut keys = keys;
        keys.sort();
        let k = KeyNo;
        Program {
            ops: vec![
                Op::Put(k(0), 0),
                Op::Put(k(3), 120),
                Op::Delete(k(1)),
                Op::Write(vec![
                    Change {
                        key: k(2),
                        len: Some(0),
                    },
                    Change {
                        key: k(0),
                        len: None,
                    },
                    Change {
                        key: k(2),
                        len: Some(7),
                    },
                ]),
                Op::Write(vec![]),
                Op::Get(k(2)),
                Op::Scan {
                    from: k(0),
                    to: Some(k(3)),
                    limit: Some(5),
                },
                Op::Scan {
                    from: k(1),
                    to: None,
                    limit: None,
                },
                Op::ScanBack {
                    before: Some(k(2)),
                    limit: Some(1),
                },
                Op::ScanBack {
                    before: None,
                    limit: None,
                },
                Op::Sync,
                Op::Pump,
                Op::Step,
                Op::Checkpoint,
                Op::Reopen,
                Op::Crash(Keep::Oldest),
                Op::Crash(Keep::Seeded(7)),
                Op::CutPower(3),
                Op::Hint(true),
                Op::Hint(false),
                Op::SyncLast,
            ]
            .into_iter()
            .chain(
                RequestKind::ALL
                    .into_iter()
                    .zip(0..)
                    .map(|(kind, n)| Op::Fail(kind, n)),
            )
            .collect(),
            crashes: vec![
                CrashPoint {
                    after_request: 57,
                    keep: vec![0, 1, 2],
                    damage: None,
                },
                CrashPoint {
                    after_request: 3,
                    keep: vec![],
                    damage: Some(Damage {
                        block: 70,
                        byte: 4_095,
                    }),
                },
            ],
            keys,
        }
    }

    #[test]
    fn a_saved_program_reads_back_as_it_was() {
        let program = sample();
        let text = program.save("btree:cow", Some("a key is lost"));
        let saved = Program::parse(&text).unwrap();
        assert_eq!(saved.program, program, "{text}");
        assert_eq!(saved.engine, "btree:cow");
        assert_eq!(saved.found.as_deref(), Some("a key is lost"));
    }

    #[test]
    fn a_damaged_program_is_refused_with_its_line() {
        let head = "{\"schema\":\"treering.program/1\",\"engine\":\"x\"}\n";
        for (text, line, expected) in [
            ("", 1, "a header"),
            ("{\"schema\":\"other\",\"engine\":\"x\"}", 1, "a header"),
            ("put test 5", 2, "a key in quotes"),
            ("put \"test", 2, "a key in quotes"),
            ("put \"test\"", 2, "a number"),
            ("put \"test\" -5", 2, "a number"),
            ("put \"test\" 5 6", 2, "the end of the line"),
            ("write put \"test\"", 2, "a number"),
            ("write put \"test\" 5 get \"a\"", 2, "`put` KEY N or"),
            ("sync\nscan \"a\" limit 5 limit 6", 3, "once"),
            ("explode", 2, "put, delete"),
            ("crash in recovery after request 3 keep", 2, "first"),
            ("crash after request 3 keep\nsync", 3, "nothing but"),
            (
                "crash after request 3 keep 1 damage block 5",
                2,
                "damage block N",
            ),
        ] {
            let whole = if line == 1 {
                text.to_owned()
            } else {
                format!("{head}{text}\n")
            };
            let error = Program::parse(&whole).unwrap_err();
            assert_eq!(error.line, line, "{text}: {error}");
            assert!(error.to_string().contains(expected), "{text}: {error}");
        }
    }
}
