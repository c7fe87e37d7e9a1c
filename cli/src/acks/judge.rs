//! Comparing a store's content with what was acknowledged.
//!
//! For each writer, let `j` count its tries. The content of its keys must be that after `j` tries,
//! for some `j` from the last durable one to the last one asked for. A key's values divide all `j`
//! into intervals; the content is legal where every key is in an interval with the value found. So
//! one pass over all changes counts the keys that differ, for all `j` at once.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;

use super::{Acks, Content, Hex, Value, Writer};

/// What is wrong with a content. Each kind is told by one sentence, in two lines: the first is the
/// same for all keys and numbers, so that it tells kinds of failures apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// A key is there that nobody wrote.
    NeverWrittenKey { key: String },
    /// A key has a value that nobody wrote.
    NeverWrittenValue { key: String, len: usize },
    /// A durable transaction is gone, or overwritten with what was before it.
    Lost {
        key: String,
        durable: String,
        found: String,
    },
    /// A key is there whose deletion is durable.
    Back {
        key: String,
        durable: String,
        found: String,
    },
    /// Of one transaction, one key is as after it and one as before.
    InPart {
        id: String,
        after: String,
        before: String,
    },
    /// A later transaction is there and an earlier one is not.
    OutOfOrder {
        later: String,
        there: String,
        earlier: String,
        missing: String,
    },
    /// Each key has a value that it may have, but no transaction left them all.
    NoMoment { writer: String },
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wrong::NeverWrittenKey { key } => {
                write!(f, "a key is there that was never written\nkey {key}")
            }
            Wrong::NeverWrittenValue { key, len } => {
                write!(
                    f,
                    "a key has a value that was never written\nkey {key}, {len} bytes"
                )
            }
            Wrong::Lost {
                key,
                durable,
                found,
            } => {
                write!(f, "acknowledged write lost\nkey {key} {found}; {durable}")
            }
            Wrong::Back {
                key,
                durable,
                found,
            } => {
                write!(f, "a deleted key is back\nkey {key} {found}; {durable}")
            }
            Wrong::InPart { id, after, before } => write!(
                f,
                "a transaction is there in part\ntransaction {id}: key {after} is as after it, key \
                 {before} as before"
            ),
            Wrong::OutOfOrder {
                later,
                there,
                earlier,
                missing,
            } => write!(
                f,
                "writes survived out of order\n{later} is there (key {there}), {earlier} before it \
                 is not (key {missing})"
            ),
            Wrong::NoMoment { writer } => write!(
                f,
                "the content was never there as a whole\neach key{writer} is as at some time, but \
                 not at the same"
            ),
        }
    }
}

/// A key's values: from which `j` on, and whether each is the one that is found.
struct Key<'a> {
    key: &'a [u8],
    found: Option<&'a [u8]>,
    /// Rising; the first is (0, absent).
    versions: Vec<(usize, Option<&'a Value>)>,
}

impl Key<'_> {
    /// The intervals of `j` in which it is as found, within `0..=tries`.
    fn same(&self, tries: usize) -> Vec<Range<usize>> {
        let ends = self.versions[1..].iter().map(|(from, _)| *from);
        let versions = self.versions.iter().zip(ends.chain([tries + 1]));
        let same = versions.filter(|((_, value), _)| match (value, self.found) {
            (None, None) => true,
            (Some(value), Some(found)) => value.is(found),
            _ => false,
        });
        same.map(|((from, _), to)| *from..to).collect()
    }

    /// The last version at `j`: since when, and whether it is there.
    fn at(&self, j: usize) -> (usize, bool) {
        let after = self.versions.partition_point(|(from, _)| *from <= j);
        let (from, value) = self.versions[after - 1];
        (from, value.is_some())
    }
}

impl Acks {
    /// What is wrong with the content that a power cut has left; `None` if it is legal.
    pub(crate) fn judge(&self, content: &Content) -> Option<Wrong> {
        if self.is_empty() {
            return None;
        }
        let mut unknown: BTreeSet<&[u8]> = content.keys().map(Vec::as_slice).collect();
        let mut wrong = None;
        for (name, writer) in &self.writers {
            let keys = keys(writer, content);
            for key in &keys {
                unknown.remove(key.key);
            }
            let found = judge(name, writer, &keys, content);
            // The gravest first, whichever writer it is of.
            wrong = match (wrong, found) {
                (Some(old), Some(new)) if gravity(&new) < gravity(&old) => Some(new),
                (old, new) => old.or(new),
            };
        }
        let strange = unknown.first().map(|key| Wrong::NeverWrittenKey {
            key: Hex(key).to_string(),
        });
        strange.or(wrong)
    }
}

/// Judges one writer. What failed may be missing; if no choice of that is legal, what is wrong with
/// all of it there is told.
fn judge(name: &str, writer: &Writer, keys: &[Key<'_>], content: &Content) -> Option<Wrong> {
    let wrong = Judge { name, writer, keys }.judge()?;
    for missing in 1..1_usize << writer.failed.len() {
        let mut without = writer.clone();
        for (bit, at) in writer.failed.iter().enumerate() {
            if missing >> bit & 1 == 1 {
                without.tries[*at].changes.clear();
            }
        }
        let left = self::keys(&without, content);
        let is_left = |key: &Key<'_>| left.iter().any(|other| other.key == key.key);
        // What only these have written must be absent.
        if keys.iter().any(|key| key.found.is_some() && !is_left(key)) {
            continue;
        }
        let (writer, keys) = (&without, &left[..]);
        (Judge { name, writer, keys }).judge()?;
    }
    Some(wrong)
}

fn gravity(wrong: &Wrong) -> u8 {
    match wrong {
        Wrong::NeverWrittenKey { .. } => 0,
        Wrong::NeverWrittenValue { .. } => 1,
        Wrong::Lost { .. } => 2,
        Wrong::Back { .. } => 3,
        Wrong::InPart { .. } => 4,
        Wrong::OutOfOrder { .. } => 5,
        Wrong::NoMoment { .. } => 6,
    }
}

fn keys<'a>(writer: &'a Writer, content: &'a Content) -> Vec<Key<'a>> {
    let mut keys: BTreeMap<&[u8], Key<'_>> = BTreeMap::new();
    for (at, attempt) in (1..).zip(&writer.tries) {
        for (key, value) in &attempt.changes {
            let new = || Key {
                key,
                found: content.get(key).map(Vec::as_slice),
                versions: vec![(0, None)],
            };
            let versions = &mut keys.entry(key).or_insert_with(new).versions;
            match versions.last_mut() {
                // A transaction that is told in two lines may change a key twice.
                Some((last, known)) if *last == at => *known = value.as_ref(),
                _ => versions.push((at, value.as_ref())),
            }
        }
    }
    keys.into_values().collect()
}

/// Judges one writer's keys.
struct Judge<'a> {
    name: &'a str,
    writer: &'a Writer,
    keys: &'a [Key<'a>],
}

impl Judge<'_> {
    fn judge(&self) -> Option<Wrong> {
        let (durable, tries) = (self.writer.durable, self.writer.tries.len());
        let same: Vec<_> = self.keys.iter().map(|key| key.same(tries)).collect();
        // How many keys are as found, as a sum of differences.
        let mut steps = vec![0_i64; tries + 2];
        for range in same.iter().flatten() {
            steps[range.start] += 1;
            steps[range.end] -= 1;
        }
        let sum = |sum: &mut i64, step: &i64| {
            *sum += step;
            Some(*sum)
        };
        let agree: Vec<i64> = steps.iter().scan(0, sum).take(tries + 1).collect();
        let whole = |j: &usize| agree[*j] == self.keys.len() as i64;
        if (durable..=tries).any(|j| whole(&j)) {
            return None;
        }
        if let Some(early) = (0..durable).rev().find(whole) {
            return Some(self.early(early, &same));
        }
        let keys = || self.keys.iter().zip(&same);
        // Absent is what every key is in the beginning, so something is found.
        let never = keys().find(|(_, same)| same.is_empty());
        if let Some((key, _)) = never {
            return Some(Wrong::NeverWrittenValue {
                key: Hex(key.key).to_string(),
                len: key.found.map_or(0, <[u8]>::len),
            });
        }
        let in_time = |same: &[Range<usize>]| same.iter().any(|range| range.end > durable);
        let lost = keys().find(|(_, same)| !in_time(same));
        if let Some((key, same)) = lost {
            return Some(self.missing(key, same.last().map_or(0, |range| range.start)));
        }
        Some(self.apart(&same))
    }

    /// The whole content is as it was before the last durable transaction.
    fn early(&self, early: usize, same: &[Vec<Range<usize>>]) -> Wrong {
        let durable = self.writer.durable;
        let keys = self.keys.iter().zip(same);
        let differs = keys.filter(|(_, same)| !same.iter().any(|range| range.contains(&durable)));
        let differs: Vec<&Key<'_>> = differs.map(|(key, _)| key).collect();
        let is_back = |key: &&Key<'_>| key.found.is_some() && !key.at(durable).1;
        // A lost deletion alone is named as one.
        match differs.iter().find(|key| !is_back(key)).or(differs.first()) {
            Some(key) => self.missing(key, key.at(early).0),
            None => self.no_moment(),
        }
    }

    /// A key is as it was since `since`, and a durable transaction has changed it after that.
    fn missing(&self, key: &Key<'_>, since: usize) -> Wrong {
        let (durable, is_there) = key.at(self.writer.durable);
        let hex = Hex(key.key).to_string();
        let as_of = match since {
            0 => "of before the first transaction".into(),
            since => format!("of transaction {}", self.id(since)),
        };
        let last = self.id(self.writer.durable);
        let how = if is_there { "written" } else { "deleted" };
        let durable = match durable {
            0 => format!("transactions up to {last} were durable"),
            at => format!("{how} by {}, durable by {last}", self.id(at)),
        };
        match (key.found, is_there) {
            (None, _) => Wrong::Lost {
                key: hex,
                durable,
                found: "is gone".into(),
            },
            (Some(_), true) => Wrong::Lost {
                key: hex,
                durable,
                found: format!("has the value {as_of}"),
            },
            (Some(_), false) => Wrong::Back {
                key: hex,
                durable,
                found: format!("has the value {as_of}"),
            },
        }
    }

    /// Each key is as at some time that is allowed, but not all at the same.
    fn apart(&self, same: &[Vec<Range<usize>>]) -> Wrong {
        let durable = self.writer.durable;
        // The first and the last `j` at which a key may be as found.
        let bounds: Vec<(usize, usize)> = same
            .iter()
            .map(|ranges| {
                let mut late = ranges.iter().filter(|range| range.end > durable);
                let first = late.next().map_or(0, |range| range.start.max(durable));
                (first, ranges.last().map_or(0, |range| range.end - 1))
            })
            .collect();
        let places: BTreeMap<&[u8], usize> = self.keys.iter().map(|key| key.key).zip(0..).collect();
        for (at, attempt) in (1..).zip(&self.writer.tries).skip(durable) {
            let of = |is: &dyn Fn((usize, usize)) -> bool| {
                let mut keys = attempt.changes.iter().map(|(key, _)| key);
                keys.find(|key| is(bounds[places[&key[..]]]))
            };
            let (after, before) = (of(&|(first, _)| first == at), of(&|(_, last)| last < at));
            if let (Some(after), Some(before)) = (after, before) {
                return Wrong::InPart {
                    id: self.id(at),
                    after: Hex(after).to_string(),
                    before: Hex(before).to_string(),
                };
            }
        }
        let last = (0..bounds.len()).min_by_key(|at| bounds[*at].1);
        let first = (0..bounds.len()).max_by_key(|at| bounds[*at].0);
        match (first, last) {
            (Some(first), Some(last)) if bounds[first].0 > bounds[last].1 => Wrong::OutOfOrder {
                later: format!("transaction {}", self.id(bounds[first].0)),
                there: Hex(self.keys[first].key).to_string(),
                // The one that the key would have had to change with.
                earlier: self.id(bounds[last].1 + 1),
                missing: Hex(self.keys[last].key).to_string(),
            },
            _ => self.no_moment(),
        }
    }

    /// The ID of the transaction that makes `j` what it is.
    fn id(&self, j: usize) -> String {
        let number = j.checked_sub(1).and_then(|at| self.writer.tries.get(at));
        match (self.name, number) {
            (_, None) => "none".into(),
            ("", Some(attempt)) => attempt.number.to_string(),
            (name, Some(attempt)) => format!("{name}.{}", attempt.number),
        }
    }

    fn no_moment(&self) -> Wrong {
        let writer = match self.name {
            "" => String::new(),
            name => format!(" of writer {name}"),
        };
        Wrong::NoMoment { writer }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said of a content: `k=v` for each key, letters as bytes.
    fn said(acks: &str, content: &str) -> String {
        let acks: Vec<String> = acks.split(", ").map(line).collect();
        let acks = Acks::read(&acks.join("\n")).expect("good lines");
        let pair = |pair: &str| {
            let (key, value) = pair.split_once('=').expect("a pair");
            (key.as_bytes().to_vec(), value.as_bytes().to_vec())
        };
        let content = content.split_whitespace().map(pair).collect();
        let wrong = acks.judge(&content);
        wrong.map_or("legal".into(), |wrong| {
            wrong.to_string().replace('\n', ": ")
        })
    }

    /// `try 1 a=x b` puts x as a and deletes b.
    fn line(text: &str) -> String {
        let mut words = text.split(' ');
        let mut line = format!("{} {}", words.next().unwrap(), words.next().unwrap());
        for word in words {
            line += &match word.split_once('=') {
                Some((key, value)) => {
                    format!(" put {} {}", Hex(key.as_bytes()), Hex(value.as_bytes()))
                }
                None => format!(" delete {}", Hex(word.as_bytes())),
            };
        }
        line
    }

    #[test]
    fn what_failed_may_be_there_or_not_whatever_comes_after_it() {
        let acks = "try 1 a=x, durable 1, try 2 a=y c=y, failed 2, try 3 b=z, durable 3";
        for content in ["a=x b=z", "a=y b=z c=y"] {
            assert_eq!(said(acks, content), "legal", "{content}");
        }
        assert!(said(acks, "a=y c=y").starts_with("acknowledged write lost"));
        assert_ne!(said(acks, "a=x b=z c=y"), "legal", "in part");
        let two = "try 1 a=x, failed 1, try 2 a=y, failed 2, try 3 b=z, durable 3";
        for content in ["b=z", "a=x b=z", "a=y b=z"] {
            assert_eq!(said(two, content), "legal", "{content}");
        }
        assert_ne!(said(two, "a=w b=z"), "legal");
    }

    #[test]
    fn everything_from_the_last_durable_to_the_last_tried_is_legal() {
        let acks = "try 1 a=x, durable 1, try 2 a=y b=x, did 2, try 3 b";
        for content in ["a=x", "a=y b=x", "a=y"] {
            assert_eq!(said(acks, content), "legal", "{content}");
        }
        assert_eq!(said("try 1 a=x", ""), "legal", "in flight");
        assert_eq!(said("hello there", "a=x"), "legal", "nothing is known");
    }

    #[test]
    fn each_kind_of_violation_has_its_name() {
        let acks =
            "try 1 a=x c=x, try 2 a=y, try 3 c, durable 3, try 4 a=z b=z, try 5 d=x, try 6 e=x";
        for (content, expected) in [
            (
                "",
                "acknowledged write lost: key 61 is gone; written by 2, durable by 3",
            ),
            (
                "a=x",
                "acknowledged write lost: key 61 has the value of transaction 1; written by 2, \
                 durable by 3",
            ),
            (
                "a=x c=x",
                "acknowledged write lost: key 61 has the value of transaction 1; written by 2, \
                 durable by 3",
            ),
            (
                "a=y c=x",
                "a deleted key is back: key 63 has the value of transaction 1; deleted by 3, \
                 durable by 3",
            ),
            (
                "a=z b=z c=x",
                "a deleted key is back: key 63 has the value of transaction 1; deleted by 3, \
                 durable by 3",
            ),
            ("a=y q=x", "a key is there that was never written: key 71"),
            (
                "a=yz",
                "a key has a value that was never written: key 61, 2 bytes",
            ),
            (
                "a=z",
                "a transaction is there in part: transaction 4: key 61 is as after it, key 62 as \
                 before",
            ),
            (
                "a=y d=x",
                "writes survived out of order: transaction 5 is there (key 64), 4 before it is not \
                 (key 61)",
            ),
            (
                "a=z b=z e=x",
                "writes survived out of order: transaction 6 is there (key 65), 5 before it is not \
                 (key 64)",
            ),
        ] {
            assert_eq!(said(acks, content), expected, "{content}");
        }
    }

    #[test]
    fn each_writer_has_a_part_of_its_own() {
        let acks = "try a.1 a=x, try b.1 b=x, durable b.1, try a.2 a=y";
        for content in ["b=x", "a=x b=x", "a=y b=x"] {
            assert_eq!(said(acks, content), "legal", "{content}");
        }
        assert_eq!(
            said(acks, "a=y"),
            "acknowledged write lost: key 62 is gone; written by b.1, durable by b.1"
        );
    }

    #[test]
    fn a_value_that_returns_is_not_taken_for_an_old_one() {
        let acks = "try 1 a=x b=1, try 2 a=y b=2, durable 2, try 3 a=x b=3";
        assert_eq!(said(acks, "a=x b=3"), "legal");
        assert_eq!(
            said(acks, "a=x b=2"),
            "a transaction is there in part: transaction 3: key 61 is as after it, key 62 as before"
        );
        let acks = "try 1 a=x, try 2 a b=x, durable 2, try 3 a=x c=x, try 4 a, try 5 c";
        let none = "the content was never there as a whole: each key is as at some time, but not at \
                    the same";
        assert_eq!(said(acks, "b=x"), "legal");
        let three = "try 1 a=x, try 2 a, try 3 a=x b=x, try 4 a, try 5 b";
        assert_eq!(said(three, "b=x a=x"), "legal");
        let apart = "try 1 a=x, try 2 b=x, try 3 a, try 4 b, try 5 a=x";
        assert_eq!(said(apart, "a=x b=x"), "legal");
        let apart = "try 1 a=x c=1, try 2 a c=2, try 3 a=x c=3, try 4 c=2 d=1";
        assert_eq!(said(apart, "c=2 a=x"), none);
    }
}
