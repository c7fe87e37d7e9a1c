//! Reading the lines.

use std::collections::{BTreeMap, HashMap};
use std::path::{Component, Path};

use super::{Acks, Change, FAILED, Try, Value, Writer, unhex};

/// Why lines of this form cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AcksError {
    /// A word is another than expected.
    Word {
        /// The line, counted from 1.
        line: usize,
        expected: &'static str,
        found: String,
    },
    /// The number of a `try` is not above the one before it.
    Order {
        line: usize,
        before: u64,
        found: String,
    },
    /// `did`, `durable` or `failed` of what was not tried.
    NotTried { line: usize, found: String },
    /// Two writers have one key.
    Shared {
        line: usize,
        key: String,
        writers: [String; 2],
    },
}

impl std::fmt::Display for AcksError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            AcksError::Word {
                line,
                expected,
                found,
            } => {
                let found: String = found.chars().take(60).collect();
                write!(f, "line {line}: expected {expected}, found `{found}`")
            }
            AcksError::Order {
                line,
                before,
                found,
            } => write!(
                f,
                "line {line}: expected a number above {before}, the writer's last, found {found}"
            ),
            AcksError::NotTried { line, found } => {
                write!(
                    f,
                    "line {line}: expected a transaction with a line `try`, found {found}"
                )
            }
            AcksError::Shared {
                line,
                key,
                writers: [one, other],
            } => write!(
                f,
                "line {line}: expected keys of the writer's own, found key {key} of the writers \
                 `{one}` and `{other}`"
            ),
        }
    }
}

impl std::error::Error for AcksError {}

impl Acks {
    /// Reads the lines of a file.
    pub(crate) fn read(text: &str) -> Result<Acks, AcksError> {
        let mut acks = Acks::default();
        let mut owners = HashMap::new();
        for (line, words) in (1..).zip(text.lines()) {
            let mut words = words.split_ascii_whitespace();
            match words.next() {
                Some("store") => acks.store(line, &mut words)?,
                Some(word @ ("try" | "did" | "durable" | "failed")) => {
                    // A line without a number is the program's own.
                    let Some((id, (writer, number))) =
                        words.next().and_then(|id| Some((id, self::id(id)?)))
                    else {
                        continue;
                    };
                    match word {
                        "try" => acks.attempt(line, (writer, number), words, &mut owners)?,
                        // Without any `try`, these are the program's own, too.
                        _ if acks.writers.is_empty() => {}
                        _ => acks.returned(line, id, (writer, number), word)?,
                    }
                }
                _ => {}
            }
        }
        Ok(acks)
    }

    fn store<'a>(
        &mut self,
        line: usize,
        words: &mut impl Iterator<Item = &'a str>,
    ) -> Result<(), AcksError> {
        let path = words.next().unwrap_or_default();
        let within = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        if path.is_empty() || !Path::new(path).components().all(within) {
            let expected = "a path within the directory";
            return Err(AcksError::Word {
                line,
                expected,
                found: path.into(),
            });
        }
        self.store = Some(path.into());
        Ok(())
    }

    fn attempt<'a>(
        &mut self,
        line: usize,
        (name, number): (&str, u64),
        words: impl Iterator<Item = &'a str>,
        owners: &mut HashMap<Vec<u8>, String>,
    ) -> Result<(), AcksError> {
        let changes = changes(line, words)?;
        for (key, _) in &changes {
            let owner = owners.entry(key.clone()).or_insert_with(|| name.into());
            if owner != name {
                return Err(AcksError::Shared {
                    line,
                    key: super::Hex(key).to_string(),
                    writers: [owner.clone(), name.into()],
                });
            }
        }
        let writer = self.writers.entry(name.into()).or_default();
        match writer.tries.last_mut() {
            Some(last) if last.number == number => last.changes.extend(changes),
            Some(last) if last.number > number => {
                return Err(AcksError::Order {
                    line,
                    before: last.number,
                    found: number.to_string(),
                });
            }
            _ => writer.tries.push(Try { number, changes }),
        }
        Ok(())
    }

    fn returned(
        &mut self,
        line: usize,
        id: &str,
        (name, number): (&str, u64),
        word: &str,
    ) -> Result<(), AcksError> {
        let writer = self.writers.get_mut(name);
        let at = |writer: &Writer| {
            writer
                .tries
                .binary_search_by_key(&number, |t| t.number)
                .ok()
        };
        let Some((writer, at)) = writer.and_then(|writer| at(writer).map(|at| (writer, at))) else {
            return Err(AcksError::NotTried {
                line,
                found: id.into(),
            });
        };
        match word {
            "durable" => writer.durable = writer.durable.max(at + 1),
            "failed" if writer.failed.len() == FAILED => {
                return Err(AcksError::Word {
                    line,
                    expected: "at most 8 transactions of a writer that failed",
                    found: id.into(),
                });
            }
            "failed" if !writer.failed.contains(&at) => writer.failed.push(at),
            _ => {}
        }
        Ok(())
    }
}

/// `N` or `WRITER.N`.
fn id(word: &str) -> Option<(&str, u64)> {
    let (writer, number) = word.rsplit_once('.').unwrap_or(("", word));
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    Some((writer, number.parse().ok().filter(|_| is_number)?))
}

fn changes<'a>(
    line: usize,
    mut words: impl Iterator<Item = &'a str>,
) -> Result<Vec<Change>, AcksError> {
    let wrong = |expected, found: Option<&str>| AcksError::Word {
        line,
        expected,
        found: found.unwrap_or("the end of the line").into(),
    };
    // The last change of a key in a transaction counts; each has one there.
    let mut changes = BTreeMap::new();
    while let Some(word) = words.next() {
        if !matches!(word, "put" | "delete") {
            return Err(wrong("`put` or `delete`", Some(word)));
        }
        let key = words.next();
        let bytes = key.and_then(bytes);
        let key = bytes.ok_or_else(|| wrong("a key in hexadecimal, or -", key))?;
        let value = match word {
            "delete" => None,
            _ => {
                let word = words.next();
                let expected = "a value in hexadecimal, -, or #CRC32:LENGTH";
                Some(word.and_then(value).ok_or_else(|| wrong(expected, word))?)
            }
        };
        changes.insert(key, value);
    }
    Ok(changes.into_iter().collect())
}

fn bytes(word: &str) -> Option<Vec<u8>> {
    match word {
        "-" => Some(Vec::new()),
        word => unhex(word.as_bytes()),
    }
}

fn value(word: &str) -> Option<Value> {
    match word.strip_prefix('#') {
        None => bytes(word).map(Value::Bytes),
        Some(digest) => {
            let (crc32, len) = digest.split_once(':')?;
            let crc32 = u32::from_str_radix(crc32, 16).ok()?;
            let len = len.parse().ok()?;
            Some(Value::Digest { crc32, len })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::attempt;
    use super::*;

    #[test]
    fn lines_of_other_forms_are_the_programs_own() {
        let text = "began\ntry again\ndid it\ndurable 3\nuser_bytes 4\n0\nstored 3\n";
        assert_eq!(Acks::read(text), Ok(Acks::default()));
    }

    #[test]
    fn what_is_written_is_read_again() {
        let long = vec![7; 1000];
        let changes: [(&[u8], Option<&[u8]>); 3] =
            [(b"k", None), (b"", Some(b"")), (b"l", Some(&long))];
        let text = attempt(3, changes) + "\ntry 4\ndid 3\ndurable 4\nstore a/b.db\n";
        let acks = Acks::read(&text).expect("good lines");
        let writer = &acks.writers[""];
        assert_eq!((writer.tries.len(), writer.durable), (2, 2));
        assert_eq!(writer.tries[0].changes.len(), 3);
        let of = |key: &[u8]| {
            let mut changes = writer.tries[0].changes.iter();
            changes.find(|(k, _)| k == key).expect("the key").1.clone()
        };
        assert_eq!((of(b"k"), of(b"")), (None, Some(Value::Bytes(Vec::new()))));
        let digest = of(b"l").expect("a value");
        assert!(digest.is(&long) && !digest.is(&[7; 999]) && !digest.is(&[8; 1000]));
        assert_eq!(acks.store.as_deref(), Some(Path::new("a/b.db")));
    }

    #[test]
    fn the_checksum_is_that_of_zlib() {
        let text = "try 1 put 61 #cbf43926:9";
        let acks = Acks::read(text).expect("good lines");
        let value = acks.writers[""].tries[0].changes[0]
            .1
            .as_ref()
            .expect("a value");
        assert!(value.is(b"123456789"));
    }

    #[test]
    fn a_long_transaction_continues_in_another_line() {
        let text = "try a.1 put 61 00\ntry a.1 put 62 00\ntry b.1 put 63 00\ndurable b.1\n";
        let acks = Acks::read(text).expect("good lines");
        assert_eq!(acks.writers["a"].tries.len(), 1);
        assert_eq!(acks.writers["a"].tries[0].changes.len(), 2);
        assert_eq!(
            (acks.writers["a"].durable, acks.writers["b"].durable),
            (0, 1)
        );
    }

    #[test]
    fn bad_lines_are_named() {
        for (text, expected) in [
            (
                "try 1 get 61",
                "line 1: expected `put` or `delete`, found `get`",
            ),
            ("\ntry 1 put", "line 2: expected a key in hexadecimal"),
            (
                "try 1 put 6 00",
                "expected a key in hexadecimal, or -, found `6`",
            ),
            ("try 1 put 61", "expected a value in hexadecimal"),
            ("try 1 put 61 #12", "found `#12`"),
            (
                "try 2\ntry 1",
                "line 2: expected a number above 2, the writer's last, found 1",
            ),
            ("try 2\ndurable 3", "with a line `try`, found 3"),
            ("try 2\ndid x.2", "with a line `try`, found x.2"),
            (
                "try a.1 put 61 00\ntry b.1 delete 61",
                "key 61 of the writers `a` and `b`",
            ),
            ("store /etc", "expected a path within the directory"),
            ("store a/../../b", "expected a path within the directory"),
        ] {
            let said = Acks::read(text).expect_err(text).to_string();
            assert!(said.contains(expected), "{text}: {said}");
        }
    }
}
