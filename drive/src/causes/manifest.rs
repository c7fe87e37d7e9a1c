//! The level of each sorted table, from the manifests of LevelDB, RocksDB and Pebble.
//!
//! A manifest is a log of edits: which table was added to which level, and which was removed. A
//! table's own bytes were written for the level to which it was added first: by a flush to level 0,
//! by a compaction to a deeper one. Later edits only move it.
//!
//! ```text
//! blocks of 32 KiB:  | crc 4 | length 2 | type 1 (| log number 4) | payload … |  …
//!                    type: whole, first, middle or last part of a record; 4 more if recyclable
//! record:            (tag, fields)*    tags 7, 100, 102, 103, 104: a table is added
//! ```
//!
//! Sources: LevelDB `doc/log_format.md` and `db/version_edit.cc`; RocksDB `db/log_format.h` and
//! `db/version_edit.h`; Pebble `version_edit.go`. What is not understood ends its record, never the
//! parse: a missing level is only a missing detail.

use rustc_hash::FxHashMap;

/// Bytes of a block of the log.
const BLOCK: usize = 32 << 10;

/// The level to which each table was added first, by the table's number.
pub type Levels = FxHashMap<u64, u8>;

/// Reads the tables that a manifest adds into `levels`.
pub fn read(manifest: &[u8], levels: &mut Levels) {
    for record in records(manifest) {
        edit(&record, levels);
    }
}

/// The records of a log, whole ones only.
fn records(log: &[u8]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let mut record: Option<Vec<u8>> = None;
    for block in log.chunks(BLOCK) {
        let mut rest = block;
        while let Some((kind, payload, after)) = fragment(rest) {
            rest = after;
            match kind {
                1 => found.push(payload.to_vec()),
                2 => record = Some(payload.to_vec()),
                3 | 4 => {
                    if let Some(begun) = &mut record {
                        begun.extend_from_slice(payload);
                    }
                    if kind == 4 {
                        found.extend(record.take());
                    }
                }
                _ => {}
            }
        }
    }
    found
}

/// The next part of a record in a block: its type (1 to 4), payload, and what follows.
fn fragment(block: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (header, rest) = block.split_at_checked(7)?;
    let len = usize::from(u16::from_le_bytes([header[4], header[5]]));
    let (kind, rest) = match header[6] {
        kind @ 1..=4 => (kind, rest),
        // Recyclable: the number of the log follows.
        kind @ 5..=8 => (kind - 4, rest.get(4..)?),
        // Padding, or the end of what was written.
        _ => return None,
    };
    let (payload, after) = rest.split_at_checked(len)?;
    Some((kind, payload, after))
}

/// Notes the tables that an edit adds; `None` if a field is not understood, which ends the record.
fn edit(record: &[u8], levels: &mut Levels) -> Option<()> {
    /// Tags above this are followed by a string, so that older versions can skip them.
    const SKIPPABLE: u64 = 1 << 13;
    let mut at = Cursor(record);
    while !at.0.is_empty() {
        match at.varint()? {
            // Comparator, column family added.
            1 | 201 => drop(at.string()?),
            // Numbers of logs, files, sequences, families; atomic group; a table removed.
            2 | 3 | 4 | 9 | 10 | 200 | 203 | 300 => drop(at.varint()?),
            202 => {}
            5 => {
                at.varint()?;
                at.string()?;
            }
            6 => {
                at.varint()?;
                at.varint()?;
            }
            tag @ (7 | 100 | 102 | 103 | 104) => {
                let (level, number) = (at.varint()?, at.varint()?);
                if let Ok(level) = u8::try_from(level) {
                    levels.entry(number).or_insert(level);
                }
                added(&mut at, tag)?;
            }
            tag if tag & SKIPPABLE != 0 => drop(at.string()?),
            _ => return None,
        }
    }
    Some(())
}

/// Skips the rest of an added table.
fn added(at: &mut Cursor<'_>, tag: u64) -> Option<()> {
    if tag == 102 {
        at.varint()?; // The number of the folder.
    }
    at.varint()?; // The size.
    if tag == 104 {
        // Pebble's kinds of bounds are not read.
        return None;
    }
    at.string()?;
    at.string()?;
    if tag != 7 {
        at.varint()?;
        at.varint()?;
    }
    if tag == 103 {
        // Fields of their own, until the tag 1.
        while at.varint()? != 1 {
            at.string()?;
        }
    }
    Some(())
}

/// What is left of a record.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn string(&mut self) -> Option<&'a [u8]> {
        let len = usize::try_from(self.varint()?).ok()?;
        let (string, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(string)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(record: &[u8]) -> Vec<u8> {
        let mut log = vec![0; 4];
        log.extend((record.len() as u16).to_le_bytes());
        log.push(1);
        log.extend(record);
        log
    }

    #[test]
    fn a_table_has_the_level_to_which_it_was_added_first() {
        // Two edits: table 12 to level 0, then moved to level 3; table 300 to level 2.
        let mut log = whole(&[1, 1, b'c', 7, 0, 12, 9, 1, b'a', 1, b'b']);
        log.extend(whole(&[
            6, 0, 12, // removed
            103, 3, 12, 9, 1, b'a', 1, b'b', 5, 6, 1, // added, without fields of its own
            103, 2, 0xac, 0x02, 9, 1, b'a', 1, b'b', 5, 6, 4, 2, 0, 0, 1,
        ]));
        let mut levels = Levels::default();
        read(&log, &mut levels);
        assert_eq!(levels.get(&12), Some(&0));
        assert_eq!(levels.get(&300), Some(&2));
    }

    #[test]
    fn whatever_is_cut_or_unknown_ends_only_its_record() {
        let mut log = whole(&[255]);
        log.extend(whole(&[7, 1, 5, 9, 200]));
        log.extend(whole(&[7, 4, 6, 9, 0, 0]));
        for cut in 0..log.len() {
            read(&log[..cut], &mut Levels::default());
        }
        let mut levels = Levels::default();
        read(&log, &mut levels);
        assert_eq!(levels.get(&6), Some(&4));
    }

    #[test]
    fn a_record_in_parts_over_two_blocks_is_put_together() {
        let mut record = vec![1, 0xd0, 0x86, 0x03]; // A comparator of 50,000 bytes.
        record.extend(vec![b'x'; 50_000]);
        record.extend([7, 2, 9, 9, 0, 0]);
        let mut log = vec![0; 4];
        let first = BLOCK - 7;
        log.extend((first as u16).to_le_bytes());
        log.push(2);
        log.extend(&record[..first]);
        log.extend([0; 4]);
        log.extend(((record.len() - first) as u16).to_le_bytes());
        log.push(4);
        log.extend(&record[first..]);
        let mut levels = Levels::default();
        read(&log, &mut levels);
        assert_eq!(levels.get(&9), Some(&2));
    }
}
