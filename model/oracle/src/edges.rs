//! Key and value lengths at which formats change: a length field needs another byte, a flag bit is
//! reached, or the engine's limit. Programs use these lengths on purpose, and reports say which of
//! them occurred.

use std::fmt;

use crate::engine::Limits;

/// The length that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    Key,
    Value,
    Record,
}

/// How long an edge is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Long {
    Bytes(usize),
    /// This much shorter than the engine's limit.
    Below(usize),
}

use Long::{Below, Bytes};
use Of::{Key, Record, Value};

/// All edges. Eight bytes is the longest value that trees in persistent memory store inline.
const ALL: [(Of, Long); 31] = [
    (Key, Bytes(0)),
    (Key, Bytes(1)),
    (Key, Bytes(7)),
    (Key, Bytes(8)),
    (Key, Bytes(9)),
    (Key, Bytes(127)),
    (Key, Bytes(128)),
    (Key, Bytes(254)),
    (Key, Bytes(255)),
    (Key, Bytes(256)),
    (Key, Bytes(257)),
    (Key, Below(1)),
    (Key, Below(0)),
    (Value, Bytes(0)),
    (Value, Bytes(1)),
    (Value, Bytes(7)),
    (Value, Bytes(8)),
    (Value, Bytes(9)),
    (Value, Bytes(127)),
    (Value, Bytes(128)),
    (Value, Bytes(254)),
    (Value, Bytes(255)),
    (Value, Bytes(256)),
    (Value, Bytes(257)),
    (Value, Bytes(4_096)),
    (Value, Bytes(16_383)),
    (Value, Bytes(16_384)),
    (Value, Bytes(16_385)),
    (Record, Below(2)),
    (Record, Below(1)),
    (Record, Below(0)),
];

/// A limit beyond this is not an edge, because programs never reach it.
const LONGEST: usize = 1 << 17;

/// The number of times that each edge occurred. The edges that occurred at all can be used as a
/// set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Edges([u64; ALL.len()]);

/// The length of an edge for an engine; `None` if it is beyond the engine's limits.
fn bytes(limits: &Limits, (of, long): (Of, Long)) -> Option<usize> {
    let most = match of {
        Key => limits.max_key,
        // A record has a key.
        Value => limits.max_record - usize::from(!limits.empty_key).min(limits.max_record),
        Record => limits.max_record,
    };
    let bytes = match long {
        Bytes(bytes) => bytes,
        Below(less) if most <= LONGEST => most.checked_sub(less)?,
        Below(_) => return None,
    };
    let taken = bytes <= most && (of != Key || bytes > 0 || limits.empty_key);
    taken.then_some(bytes)
}

impl Edges {
    /// The edges within these limits, each counted once.
    #[must_use]
    pub fn within(limits: &Limits) -> Edges {
        Edges(std::array::from_fn(|at| {
            u64::from(bytes(limits, ALL[at]).is_some())
        }))
    }

    /// Counts a written record with a key and a value of these lengths.
    pub fn met(&mut self, limits: &Limits, key: usize, value: usize) {
        for (edge, n) in ALL.iter().zip(&mut self.0) {
            let found = match edge.0 {
                Key => key,
                Value => value,
                Record => key + value,
            };
            *n += u64::from(bytes(limits, *edge) == Some(found));
        }
    }

    /// Adds the counts of `other`.
    pub fn add(&mut self, other: Edges) {
        self.0
            .iter_mut()
            .zip(other.0)
            .for_each(|(n, more)| *n += more);
    }

    /// These edges, without those for values shorter than `least` bytes.
    #[must_use]
    pub fn with_values_from(self, least: usize) -> Edges {
        let long = |at: usize| !matches!(ALL[at], (Value, Bytes(n)) if n < least);
        Edges(std::array::from_fn(|at| self.0[at] * u64::from(long(at))))
    }

    /// These edges, without those that occurred in `others`.
    #[must_use]
    pub fn without(self, others: Edges) -> Edges {
        Edges(std::array::from_fn(|at| {
            self.0[at] * u64::from(others.0[at] == 0)
        }))
    }

    /// The number of different edges that occurred.
    #[must_use]
    pub fn count(self) -> u64 {
        self.0.iter().filter(|n| **n > 0).count() as u64
    }

    /// The names of the edges that occurred.
    pub fn names(self) -> impl Iterator<Item = String> {
        self.each().map(|(name, _)| name)
    }

    /// The names of the edges that occurred, with their counts.
    pub fn each(self) -> impl Iterator<Item = (String, u64)> {
        let each = ALL.iter().zip(self.0);
        each.filter(|(_, n)| *n > 0).map(|((of, long), n)| {
            let of = match of {
                Key => "a key",
                Value => "a value",
                Record => "a record",
            };
            let name = match long {
                Bytes(1) => format!("{of} of 1 byte"),
                Bytes(bytes) => format!("{of} of {bytes} bytes"),
                Below(0) => format!("{of} as long as may be"),
                Below(less) => format!("{of} {less} short of the longest"),
            };
            (name, n)
        })
    }
}

impl fmt::Display for Edges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.names().collect();
        f.write_str(&names.join(", "))
    }
}

/// The length of key edge number `n`, modulo the number of edges.
#[must_use]
pub fn key_length(limits: &Limits, n: usize) -> usize {
    of(limits, Key, n).unwrap_or(limits.max_key.min(8))
}

/// The length of value edge number `n`, modulo the number of edges, for a key of `key` bytes.
#[must_use]
pub fn value_length(limits: &Limits, key: usize, n: usize) -> usize {
    let room = limits.max_record.saturating_sub(key);
    let values = count(limits, Value);
    let records = count(limits, Record);
    let n = n % (values + records);
    let bytes = match n.checked_sub(values) {
        None => of(limits, Value, n),
        Some(n) => of(limits, Record, n).map(|record| record.saturating_sub(key)),
    };
    bytes.unwrap_or(room).min(room)
}

/// Key number `n` with an edge's length. It repeats one byte, and has its number at the end or at
/// the start, so that keys share long prefixes or none.
#[must_use]
pub fn key(limits: &Limits, n: u16) -> Vec<u8> {
    let long = key_length(limits, usize::from(n));
    let fill = [0, 0xff, b'm'][usize::from(n) % 3];
    let mut key = vec![fill; long];
    let number = n.to_be_bytes();
    match (n.is_multiple_of(2), long) {
        (_, 0 | 1) => {}
        (true, _) => key[..2].copy_from_slice(&number),
        (false, _) => key[long - 2..].copy_from_slice(&number),
    }
    key
}

fn lengths(limits: &Limits, of: Of) -> impl Iterator<Item = usize> {
    let edges = ALL.iter().filter(move |(what, _)| *what == of);
    edges.filter_map(|edge| bytes(limits, *edge))
}

fn count(limits: &Limits, of: Of) -> usize {
    lengths(limits, of).count()
}

fn of(limits: &Limits, of: Of, n: usize) -> Option<usize> {
    lengths(limits, of).nth(n % count(limits, of).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_edge_within_the_limits_is_gone_to() {
        for (max_key, max_record) in [
            (8, 16),
            (512, 1_514),
            (8_192, 24_000),
            (usize::MAX, 1 << 40),
        ] {
            let limits = Limits {
                max_key,
                max_record,
                empty_key: true,
            };
            let mut met = Edges::default();
            for n in 0..ALL.len() {
                let key = key_length(&limits, n);
                let value = value_length(&limits, 1, n);
                assert!(key <= max_key && value < max_record);
                met.met(&limits, key, 2);
                met.met(&limits, 1, value);
            }
            let never = Edges::within(&limits).without(met);
            assert_eq!(never.count(), 0, "{max_key}, {max_record}: {never}");
        }
        let short = Limits {
            max_key: 8,
            max_record: 16,
            empty_key: false,
        };
        let names = Edges::within(&short).to_string();
        assert!(names.contains("a key as long as may be") && !names.contains("a key of 0"));
    }
}
