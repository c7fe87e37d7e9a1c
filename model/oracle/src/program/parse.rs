//! Parses program files.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

/// A word of a line. Words in quotes are keys.
enum Word {
    Plain(String),
    Key(Vec<u8>),
}

impl Word {
    fn text(&self) -> String {
        match self {
            Word::Plain(word) => word.clone(),
            Word::Key(key) => format!("\"{}\"", key.escape_ascii()),
        }
    }
}

struct Line {
    number: usize,
    words: std::vec::IntoIter<Word>,
}

impl Line {
    fn wrong(&self, expected: &'static str, found: impl Into<String>) -> ProgramError {
        ProgramError {
            line: self.number,
            expected,
            found: found.into(),
        }
    }

    fn next(&mut self, expected: &'static str) -> Result<Word, ProgramError> {
        self.words
            .next()
            .ok_or_else(|| self.wrong(expected, "the end of the line"))
    }

    fn plain(&mut self, expected: &'static str) -> Result<String, ProgramError> {
        match self.next(expected)? {
            Word::Plain(word) => Ok(word),
            key @ Word::Key(_) => Err(self.wrong(expected, key.text())),
        }
    }

    fn key(&mut self) -> Result<Vec<u8>, ProgramError> {
        match self.next("a key in quotes")? {
            Word::Key(key) => Ok(key),
            Word::Plain(word) => Err(self.wrong("a key in quotes", word)),
        }
    }

    fn number<T: std::str::FromStr>(&mut self) -> Result<T, ProgramError> {
        let word = self.plain("a number")?;
        word.parse()
            .map_err(|_| self.wrong("a number in range", word))
    }

    fn words(&mut self, wanted: &[&str], all: &'static str) -> Result<(), ProgramError> {
        for wanted in wanted {
            let word = self.plain(all)?;
            if word != *wanted {
                return Err(self.wrong(all, word));
            }
        }
        Ok(())
    }
}

/// Reads `
/// `, `\t`, `\r`, `\'`, `\"`, `\\` and `\x7f`, as [`slice::escape_ascii`] writes them. Returns the
/// key and the rest of the line.
fn unescape(quoted: &str) -> Option<(Vec<u8>, &str)> {
    let (mut key, mut chars) = (Vec::new(), quoted.char_indices());
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((key, &quoted[at + 1..])),
            '\\' => match chars.next()?.1 {
                'n' => key.push(b'\n'),
                't' => key.push(b'\t'),
                'r' => key.push(b'\r'),
                'x' => {
                    let (high, low) = (chars.next()?.1, chars.next()?.1);
                    let byte = high.to_digit(16)? * 16 + low.to_digit(16)?;
                    key.push(byte as u8);
                }
                c @ ('\'' | '"' | '\\') => key.push(c as u8),
                _ => return None,
            },
            c => key.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    None
}

fn split(number: usize, text: &str) -> Result<Line, ProgramError> {
    let (mut words, mut rest) = (Vec::new(), text.trim());
    while !rest.is_empty() {
        if let Some(quoted) = rest.strip_prefix('"') {
            let (key, after) = unescape(quoted).ok_or_else(|| ProgramError {
                line: number,
                expected: "a key in quotes",
                found: rest.to_owned(),
            })?;
            words.push(Word::Key(key));
            rest = after.trim_start();
        } else {
            let (word, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            words.push(Word::Plain(word.to_owned()));
            rest = after.trim_start();
        }
    }
    Ok(Line {
        number,
        words: words.into_iter(),
    })
}

/// An operation whose keys are not numbered yet: its `KeyNo`s count its own keys.
struct Raw {
    keys: Vec<Vec<u8>>,
    op: Op,
}

const OPERATION: &str = "put, delete, write, get, scan, scan-back, sync, sync-last, pump, step, \
                         checkpoint, reopen, crash, cut-power, no-space, space, trims-are-hints, \
                         trims-are-done, or fail- and write, log-write, page-write, extra-write, \
                         flush, read or trim";

fn operation(first: &str, line: &mut Line) -> Result<Raw, ProgramError> {
    let mut keys = Vec::new();
    let zero = KeyNo(0);
    let op = match first {
        "put" => {
            keys.push(line.key()?);
            Op::Put(zero, line.number()?)
        }
        "delete" => {
            keys.push(line.key()?);
            Op::Delete(zero)
        }
        "write" => {
            let mut changes = Vec::new();
            while let Some(word) = line.words.next() {
                let key = KeyNo(keys.len() as u32);
                let len = match word {
                    Word::Plain(w) if w == "put" => {
                        keys.push(line.key()?);
                        Some(line.number()?)
                    }
                    Word::Plain(w) if w == "delete" => {
                        keys.push(line.key()?);
                        None
                    }
                    other => {
                        return Err(line.wrong("`put` KEY N or `delete` KEY", other.text()));
                    }
                };
                changes.push(Change { key, len });
            }
            Op::Write(changes)
        }
        "get" => {
            keys.push(line.key()?);
            Op::Get(zero)
        }
        "scan" => {
            keys.push(line.key()?);
            let (mut to, mut limit) = (None, None);
            while let Some(word) = line.words.next() {
                match word {
                    Word::Plain(w) if w == "to" && to.is_none() => {
                        keys.push(line.key()?);
                        to = Some(KeyNo(1));
                    }
                    Word::Plain(w) if w == "limit" && limit.is_none() => {
                        limit = Some(line.number()?);
                    }
                    other => {
                        return Err(line.wrong("`to` KEY or `limit` N, once", other.text()));
                    }
                }
            }
            Op::Scan {
                from: zero,
                to,
                limit,
            }
        }
        "scan-back" => {
            let (mut before, mut limit) = (None, None);
            while let Some(word) = line.words.next() {
                match word {
                    Word::Plain(w) if w == "below" && before.is_none() => {
                        keys.push(line.key()?);
                        before = Some(zero);
                    }
                    Word::Plain(w) if w == "limit" && limit.is_none() => {
                        limit = Some(line.number()?);
                    }
                    other => {
                        return Err(line.wrong("`below` KEY or `limit` N, once", other.text()));
                    }
                }
            }
            Op::ScanBack { before, limit }
        }
        "sync" => Op::Sync,
        "sync-last" => Op::SyncLast,
        "pump" => Op::Pump,
        "step" => Op::Step,
        "checkpoint" => Op::Checkpoint,
        "reopen" => Op::Reopen,
        "cut-power" => Op::CutPower(line.number()?),
        "no-space" => Op::Starve(true),
        "space" => Op::Starve(false),
        "trims-are-hints" => Op::Hint(true),
        "trims-are-done" => Op::Hint(false),
        other => match RequestKind::ALL.into_iter().find(|kind| {
            let name = other.strip_prefix("fail-");
            name == Some(kind.name())
        }) {
            Some(kind) => Op::Fail(kind, line.number()?),
            None => return Err(line.wrong(OPERATION, other)),
        },
    };
    Ok(Raw { keys, op })
}

enum Crash {
    Operation(Keep),
    Point {
        in_recovery: bool,
        point: CrashPoint,
    },
}

const CRASH: &str = "crash keep-oldest, keep-newest, keep-seeded N or [in recovery] after request N keep N … [damage block N byte N]";

fn crash(line: &mut Line) -> Result<Crash, ProgramError> {
    let keep = match line.plain(CRASH)?.as_str() {
        "keep-oldest" => Keep::Oldest,
        "keep-newest" => Keep::Newest,
        "keep-seeded" => Keep::Seeded(line.number()?),
        word @ ("in" | "after") => {
            let in_recovery = word == "in";
            if in_recovery {
                line.words(&["recovery", "after"], CRASH)?;
            }
            line.words(&["request"], CRASH)?;
            let after_request = line.number()?;
            line.words(&["keep"], CRASH)?;
            let (mut keep, mut damage) = (Vec::new(), None);
            let is_damage = |word: &Word| word.text() == "damage";
            while let Some(word) = line.words.as_slice().first() {
                if is_damage(word) {
                    line.words(&["damage", "block"], CRASH)?;
                    let block = line.number()?;
                    line.words(&["byte"], CRASH)?;
                    let byte = line.number()?;
                    damage = Some(Damage { block, byte });
                    break;
                }
                keep.push(line.number()?);
            }
            return Ok(Crash::Point {
                in_recovery,
                point: CrashPoint {
                    after_request,
                    keep,
                    damage,
                },
            });
        }
        other => return Err(line.wrong(CRASH, other)),
    };
    Ok(Crash::Operation(keep))
}

fn header(text: Option<&str>) -> Result<Header, ProgramError> {
    let text = text.unwrap_or_default();
    let expected = "a header {\"schema\":\"treering.program/1\",\"engine\":NAME}";
    let wrong = |found: &str| ProgramError {
        line: 1,
        expected,
        found: found.chars().take(80).collect(),
    };
    let header: Header = serde_json::from_str(text).map_err(|_| wrong(text))?;
    if header.schema != SCHEMA {
        return Err(wrong(&header.schema));
    }
    Ok(header)
}

pub(super) fn program(text: &str) -> Result<Saved, ProgramError> {
    let mut lines = text.lines();
    let header = header(lines.next())?;
    let (mut raw, mut crashes) = (Vec::new(), Vec::new());
    for (i, text) in lines.enumerate() {
        let mut line = split(i + 2, text)?;
        if line.words.len() == 0 {
            continue;
        }
        let first = line.plain(OPERATION)?;
        if first == "crash" {
            match crash(&mut line)? {
                Crash::Operation(keep) => raw.push(Raw {
                    keys: Vec::new(),
                    op: Op::Crash(keep),
                }),
                Crash::Point { in_recovery, point } => {
                    if in_recovery == crashes.is_empty() {
                        return Err(line.wrong(
                            "one crash of the program first, then those in recovery",
                            text,
                        ));
                    }
                    crashes.push(point);
                    continue;
                }
            }
        } else {
            raw.push(operation(&first, &mut line)?);
        }
        if !crashes.is_empty() {
            return Err(line.wrong("nothing but crashes in recovery after a crash", text));
        }
        if let Some(word) = line.words.next() {
            return Err(line.wrong("the end of the line", word.text()));
        }
    }
    let keys: BTreeSet<Vec<u8>> = raw.iter().flat_map(|r| r.keys.iter().cloned()).collect();
    let keys: Vec<Vec<u8>> = keys.into_iter().collect();
    let numbers: BTreeMap<&[u8], KeyNo> = (0..)
        .zip(&keys)
        .map(|(n, key)| (key.as_slice(), KeyNo(n)))
        .collect();
    let ops = raw.iter().map(|raw| {
        let number = |k: KeyNo| numbers[raw.keys[k.0 as usize].as_slice()];
        match raw.op.clone() {
            Op::Put(k, len) => Op::Put(number(k), len),
            Op::Delete(k) => Op::Delete(number(k)),
            Op::Write(changes) => {
                let numbered = |change: Change| Change {
                    key: number(change.key),
                    ..change
                };
                Op::Write(changes.into_iter().map(numbered).collect())
            }
            Op::Get(k) => Op::Get(number(k)),
            Op::Scan { from, to, limit } => Op::Scan {
                from: number(from),
                to: to.map(number),
                limit,
            },
            Op::ScanBack { before, limit } => Op::ScanBack {
                before: before.map(number),
                limit,
            },
            other => other,
        }
    });
    Ok(Saved {
        engine: header.engine,
        found: header.found,
        program: Program {
            ops: ops.collect(),
            keys,
            crashes,
        },
    })
}
