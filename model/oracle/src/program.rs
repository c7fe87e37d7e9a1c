//! Programs: what a client does to a store, operation by operation, in a form that people read and the oracle replays.
//!
//! ```text
//! {"schema":"treering.program/1","engine":"btree:cow"}
//! put "test" 120
//! put "teste" 80
//! delete "test"
//! scan "a" to "u" limit 5
//! sync
//! crash after request 57 keep 0 1 1 0
//! crash in recovery after request 3 keep 1
//! ```
//!
//! The version of a written value is the number of its line's operation, counted from 1, so a program says all there is to say: no seed is needed to run it
//! again. Keys are numbers into a sorted table while a program runs, so that comparing keys compares numbers.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use treering_engine::device::RequestKind;

/// The schema's name and version.
pub const SCHEMA: &str = "treering.program/1";

/// A key, by its place in [`Program::keys`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyNo(pub u32);

/// What power does to the blocks that no flush vouches for, or the words of memory that no fence does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Keep {
    /// Each reverts to what was last flushed.
    Oldest,
    /// Each holds what was last written.
    Newest,
    /// Each holds any version, by a seed.
    Seeded(u64),
}

/// One operation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Sets a key to a value of so many bytes.
    Put(KeyNo, u32),
    /// Removes a key.
    Delete(KeyNo),
    /// Reads a key.
    Get(KeyNo),
    /// Reads keys in order.
    Scan {
        /// At or after this one.
        from: KeyNo,
        /// Before this one.
        to: Option<KeyNo>,
        /// At most so many.
        limit: Option<u32>,
    },
    /// Reads keys in descending order.
    ScanBack {
        /// Below this one.
        before: Option<KeyNo>,
        /// At most so many.
        limit: Option<u32>,
    },
    /// Waits until all writes so far are durable.
    Sync,
    /// Waits for what the last write returned, which it may have had nothing to do for: no more
    /// than that is promised.
    SyncLast,
    /// Does what background work is due.
    Pump,
    /// One bounded step of it: the operations that follow meet a checkpoint half-way.
    Step,
    /// Writes all that recovery would have to redo.
    Checkpoint,
    /// Lets go of the store and opens it again. The power stays on.
    Reopen,
    /// Cuts the power, and opens what is left.
    Crash(Keep),
    /// Cuts the power at the n-th device request from here, 0 being the next.
    CutPower(u64),
    /// The n-th request of this kind from here fails, 0 being the next; in recovery, too, if it
    /// comes to that.
    Fail(RequestKind, u64),
    /// From here on the medium has no room for blocks that hold nothing (`true`), or has again.
    Starve(bool),
}

impl Op {
    /// Whether it changes what the store holds.
    #[must_use]
    pub fn is_write(&self) -> bool {
        matches!(self, Op::Put(..) | Op::Delete(_))
    }
}

/// One power cut of a recorded run: the requests that were begun, and for each block (in persistent memory: each word of eight bytes) in doubt, in order of
/// address, which of its versions survived (0: the durable one).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CrashPoint {
    /// So many requests of the device were done, the last perhaps by half.
    pub after_request: u64,
    /// The versions kept.
    pub keep: Vec<usize>,
    /// What was damaged then.
    pub damage: Option<Damage>,
}

/// A bit of a device of blocks that is not what was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Damage {
    /// The block.
    pub block: u64,
    /// The byte in it.
    pub byte: u64,
}

/// A program, and the power cuts at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// All keys that it names, in order.
    pub keys: Vec<Vec<u8>>,
    /// What it does.
    pub ops: Vec<Op>,
    /// The power cut in it, then those in recovery after it.
    pub crashes: Vec<CrashPoint>,
}

/// The first line of a program file.
#[derive(Debug, Serialize, Deserialize)]
struct Header {
    schema: String,
    engine: String,
    /// What was found when it was saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    found: Option<String>,
}

/// A program file that is none.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: expected {expected}, found {found}")]
pub struct ProgramError {
    /// Counted from 1.
    pub line: usize,
    /// What should be there.
    pub expected: &'static str,
    /// What is there.
    pub found: String,
}

/// A program as read from its file.
#[derive(Debug)]
pub struct Saved {
    /// The engine that it was run on.
    pub engine: String,
    /// What was found, in a sentence.
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

    /// Leaves out the keys that no operation names.
    pub fn forget_unused_keys(&mut self) {
        let Ok(saved) = Program::parse(&self.save("", None)) else {
            unreachable!("what was saved can be read");
        };
        self.keys = saved.program.keys;
        self.ops = saved.program.ops;
    }

    /// The file that replays it.
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

    /// An operation as its line.
    #[must_use]
    pub fn line(&self, op: &Op) -> String {
        let key = |k: &KeyNo| format!("\"{}\"", self.key(*k).escape_ascii());
        match op {
            Op::Put(k, len) => format!("put {} {len}", key(k)),
            Op::Delete(k) => format!("delete {}", key(k)),
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
        }
    }

    /// Reads what [`Program::save`] wrote.
    ///
    /// # Errors
    /// The first line that is not one of a program.
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
