//! Entries of logs as they lie in persistent memory: three words (CCL-BTree §3.3), whatever the third one says.
//!
//! Words of an entry become durable in any order, over those of an older one. So the writer has to know what it overwrites; [`Ahead`] loads that a few entries at
//! a time.

use crate::error::Result;
use crate::types::IoClass;

use super::layout::{ChunkId, Geometry};
use super::medium::Medium;

/// Bytes of an entry.
pub(crate) const ENTRY_BYTES: u64 = 24;
/// Entries that are loaded together to see what is overwritten.
const AHEAD: u64 = 10;

/// Key, value, and what is said of them.
pub(crate) type Words = [u64; 3];

fn words_of(bytes: &[u8]) -> Words {
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    [word(0), word(8), word(16)]
}

/// Writes an entry and starts its write-back; durable by the next fence.
pub(crate) fn store(medium: &Medium, offset: u64, words: Words) -> Result<()> {
    let mut bytes = [0; ENTRY_BYTES as usize];
    for (bytes, word) in bytes.chunks_exact_mut(8).zip(words) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    medium.store(offset, &bytes)?;
    medium.write_back(offset..offset + ENTRY_BYTES, IoClass::Log)
}

/// All entries that a chunk has room for, with their offsets.
pub(crate) fn load_chunk(
    medium: &Medium,
    geometry: &Geometry,
    chunk: ChunkId,
) -> Result<Vec<(u64, Words)>> {
    let start = geometry.offset(chunk);
    let room = geometry.chunk_bytes / ENTRY_BYTES;
    let mut bytes = vec![0; (room * ENTRY_BYTES) as usize];
    medium.load(start, &mut bytes, IoClass::Log)?;
    let words = bytes.chunks_exact(ENTRY_BYTES as usize).map(words_of);
    let offsets = (start..).step_by(ENTRY_BYTES as usize);
    Ok(offsets.zip(words).collect())
}

/// What the entries of a log held before.
pub(crate) struct Ahead {
    /// Nothing, all of it is zeros.
    blank: bool,
    /// The group of [`AHEAD`] entries that is loaded; none, if that is none of them.
    group: u64,
    bytes: [u8; (AHEAD * ENTRY_BYTES) as usize],
}

impl Ahead {
    /// Of a log that is all zeros, or of any other.
    pub(crate) fn new(blank: bool) -> Ahead {
        Ahead {
            blank,
            group: u64::MAX,
            bytes: [0; (AHEAD * ENTRY_BYTES) as usize],
        }
    }

    /// What entry `at` overwrites, of a log with room for `room` entries from `start` on.
    pub(crate) fn overwritten(
        &mut self,
        medium: &Medium,
        start: u64,
        at: u64,
        room: u64,
    ) -> Result<Words> {
        if self.blank {
            return Ok([0; 3]);
        }
        let group = at / AHEAD;
        if self.group != group {
            let entries = AHEAD.min(room - group * AHEAD);
            let bytes = &mut self.bytes[..(entries * ENTRY_BYTES) as usize];
            let offset = start + group * AHEAD * ENTRY_BYTES;
            medium.load(offset, bytes, IoClass::Log)?;
            self.group = group;
        }
        let place = (at % AHEAD * ENTRY_BYTES) as usize;
        Ok(words_of(&self.bytes[place..]))
    }
}
