//! The format of log entries in persistent memory: three words (CCL-BTree §3.3). The meaning of the
//! third depends on the log.
//!
//! The words of an entry become durable in any order, over those of an older entry. So the writer
//! has to know what it overwrites; [`Ahead`] loads that, a few entries at a time.

use crate::error::Result;
use crate::options::limits::PM_ENTRY_BYTES;
use crate::types::IoClass;

use super::layout::{ChunkId, Geometry};
use super::medium::Medium;

/// Bytes of an entry.
pub(crate) const ENTRY_BYTES: u64 = PM_ENTRY_BYTES;
/// The number of entries that are loaded together to see what is overwritten.
const AHEAD: u64 = 10;

/// The key, the value, and a word of metadata.
pub(crate) type Words = [u64; 3];

fn words_of(bytes: &[u8]) -> Words {
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    [word(0), word(8), word(16)]
}

/// Writes an entry and starts its write-back. It is durable after the next fence.
pub(crate) fn store(medium: &Medium, offset: u64, words: Words) -> Result<()> {
    let mut bytes = [0; ENTRY_BYTES as usize];
    for (bytes, word) in bytes.chunks_exact_mut(8).zip(words) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    medium.store(offset, &bytes)?;
    medium.write_back(offset..offset + ENTRY_BYTES, IoClass::Log)
}

/// Loads all entries that fit in a chunk, with their offsets.
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

/// A window of the entries that the log is about to overwrite.
pub(crate) struct Ahead {
    /// Whether the log is known to be all zeros.
    blank: bool,
    /// The group of [`AHEAD`] entries that is loaded, or `u64::MAX` if none is.
    group: u64,
    bytes: [u8; (AHEAD * ENTRY_BYTES) as usize],
}

impl Ahead {
    /// Creates the window of a log that is all zeros (`blank`), or of any other.
    pub(crate) fn new(blank: bool) -> Ahead {
        Ahead {
            blank,
            group: u64::MAX,
            bytes: [0; (AHEAD * ENTRY_BYTES) as usize],
        }
    }

    /// Returns what entry `at` overwrites, in a log with room for `room` entries from `start` on.
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
