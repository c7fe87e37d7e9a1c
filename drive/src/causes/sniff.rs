//! What a file holds, by its first bytes: a sink that looks at them on their way to the recording.
//!
//! A name does not tell whether a PostgreSQL file is a table or an index, nor that `notes.dat` is a
//! SQLite database; the first bytes do. They are looked at when they are written, so that a
//! recording without contents knows it, too. The recording gets an [`Event::Hint`] before the write.

use parking_lot::Mutex;
use rustc_hash::FxHashSet;

use crate::recording::event::Write;
use crate::recording::{Event, NodeId, Sink, Stopped};

/// What a file holds, and the cause that follows.
pub(super) const HINTS: &[(&str, &str)] = &[
    ("sqlite", "database"),
    ("sqlite-wal", "wal"),
    ("sqlite-journal", "journal"),
    ("pg-heap", "heap"),
    ("pg-index", "index"),
    ("redb", "database"),
    ("duckdb", "database"),
    ("bbolt", "database"),
    ("lmdb", "database"),
];

/// Passes everything on to another sink, after hints.
#[derive(Debug)]
pub struct Sniffer<S> {
    to: S,
    /// Files whose first bytes were seen.
    seen: Mutex<FxHashSet<NodeId>>,
}

impl<S: Sink> Sniffer<S> {
    /// A sniffer before `to`.
    pub fn new(to: S) -> Sniffer<S> {
        Sniffer {
            to,
            seen: Mutex::default(),
        }
    }

    /// What it passes everything on to.
    pub fn into_inner(self) -> S {
        self.to
    }
}

impl<S: Sink> Sink for Sniffer<S> {
    fn note(&self, event: Event) -> Result<(), Stopped> {
        match event {
            Event::Free { node } => drop(self.seen.lock().remove(&node)),
            // What comes next may be something else.
            Event::Resize { node, size: 0 } => drop(self.seen.lock().remove(&node)),
            _ => {}
        }
        self.to.note(event)
    }

    fn write(&self, write: Write, bytes: &[u8]) -> Result<(), Stopped> {
        if write.offset == 0 {
            let what = sniff(bytes);
            if let Some(what) = what.filter(|_| self.seen.lock().insert(write.node)) {
                let (node, what) = (write.node, what.to_string());
                self.to.note(Event::Hint { node, what })?;
            }
        }
        self.to.write(write, bytes)
    }
}

/// What a file that begins with these bytes holds.
#[must_use]
pub fn sniff(bytes: &[u8]) -> Option<&'static str> {
    let at = |from: usize, len: usize| bytes.get(from..from + len);
    let is = |from: usize, what: &[u8]| at(from, what.len()) == Some(what);
    // SQLite, "Database File Format" 1.3, 3, 4.1.
    if is(0, b"SQLite format 3\0") {
        return Some("sqlite");
    }
    if is(0, &[0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]) {
        return Some("sqlite-journal");
    }
    if is(0, &[0x37, 0x7f, 0x06, 0x82]) || is(0, &[0x37, 0x7f, 0x06, 0x83]) {
        return Some("sqlite-wal");
    }
    // redb's and DuckDB's magic numbers.
    if is(0, b"redb\x1a\x0a\xa9\x0d\x0a") {
        return Some("redb");
    }
    if is(8, b"DUCK") {
        return Some("duckdb");
    }
    // bbolt: a page header of 16 bytes, then the magic number. LMDB: the same.
    if is(16, &0xED0C_DAED_u32.to_le_bytes()) {
        return Some("bbolt");
    }
    if is(16, &0xBEEF_C0DE_u32.to_le_bytes()) {
        return Some("lmdb");
    }
    postgres(bytes)
}

/// PostgreSQL's page header (`src/include/storage/bufpage.h`): tables have no special space at the
/// end of a page, indexes have.
fn postgres(bytes: &[u8]) -> Option<&'static str> {
    /// Page size 8 KiB, and layout version 4.
    const SIZE_AND_VERSION: u16 = 8192 | 4;
    let word = |from: usize| {
        Some(u16::from_le_bytes(
            bytes.get(from..from + 2)?.try_into().ok()?,
        ))
    };
    let (lower, upper, special) = (word(12)?, word(14)?, word(16)?);
    let sound = word(18)? == SIZE_AND_VERSION && lower >= 24 && lower <= upper;
    (sound && upper <= special && special <= 8192).then_some(match special {
        8192 => "pg-heap",
        _ => "pg-index",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::InMemory;

    fn page(special: u16) -> Vec<u8> {
        let mut page = vec![0; 8192];
        for (at, word) in [(12, 40_u16), (14, 8000), (16, special), (18, 8196)] {
            page[at..at + 2].copy_from_slice(&word.to_le_bytes());
        }
        page
    }

    #[test]
    fn a_table_and_an_index_of_postgresql_differ_by_their_special_space() {
        assert_eq!(sniff(&page(8192)), Some("pg-heap"));
        assert_eq!(sniff(&page(8176)), Some("pg-index"));
        assert_eq!(sniff(&[0; 8192]), None);
        assert_eq!(sniff(&page(8176)[..17]), None);
    }

    #[test]
    fn the_hint_comes_once_and_before_the_write() {
        let sniffer = Sniffer::new(InMemory::default());
        let write = |offset| Write {
            node: NodeId(7),
            offset,
            len: 16,
            extents: Vec::new(),
            synced: false,
            cached: false,
        };
        for offset in [0, 16, 0] {
            sniffer
                .write(write(offset), b"SQLite format 3\0")
                .expect("it is in memory");
        }
        let events = sniffer.into_inner().take();
        let is_hint = |(event, _): &(Event, Vec<u8>)| matches!(event, Event::Hint { .. });
        let hints: Vec<bool> = events.iter().map(is_hint).collect();
        assert_eq!(hints, [true, false, false, false]);
    }
}
