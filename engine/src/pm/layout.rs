//! The layout of a persistent memory, and the words that describe it.
//!
//! ```text
//! 0      magic 8 | version 4, crc 4 | device bytes 8 | chunk bytes 8 | chunks 8
//!                                                                   written once; the magic last
//! 64     log floor: time 48 | check 16                              one word, stored atomically
//! 256    directory: a word per chunk = kind 3 | time 48 | check 13  zero: lost
//! ...    chunk 0 | chunk 1 | ...            from a multiple of 256 on
//! ```
//!
//! A chunk holds leaves, log entries, or records that are too long for a leaf. Chunk 0 always holds
//! leaves, and its first block is always the first leaf. The version determines the format of
//! leaves ([`LeafFormat`]). A single store of its directory word changes what a chunk is used for,
//! so no crash leaks a chunk. Which blocks *in* a chunk are in use is not recorded: recovery finds
//! what is reachable from the first leaf.
//!
//! A flipped bit in these words is detected, and so is a line that reads as zeros: the checks are
//! CRCs, which detect every single-bit error, and no valid word is zero. If the magic is zero but
//! chunks are in use, a store has lost its superblock, and the device is not formatted over it.
//!
//! The **log floor** is a time: log chunks begun before it are dead. Raising it frees any number of
//! chunks at once. Freeing them one by one would not be safe: if two chunks hold an older and a
//! newer value of a key, a crash could leave only the older.

use crate::error::{Error, Result};
use crate::mutation;
use crate::options::LeafFormat;
use crate::options::limits::CHUNK_BYTES;
use crate::types::{IoClass, Lba};

use super::events::Event;
use super::medium::Medium;

/// The size of a leaf in bytes, and the alignment of blocks: an XPLine (CCL-BTree §4.1).
pub(crate) const BLOCK: u64 = 256;
/// Number of bits of a time. At ten million writes a second, they last for most of a year.
pub(crate) const TIME_BITS: u32 = 48;

const MAGIC: u64 = u64::from_le_bytes(*b"TREEPM\x00\x01");
const FLOOR: u64 = 64;
const DIRECTORY: u64 = 256;

/// A moment of the store's logical clock, which continues across restarts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Time(pub(crate) u64);

/// The name of a leaf: the number of its first 256-byte block, counted from the beginning of the
/// device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LeafId(pub(crate) u64);

impl LeafId {
    pub(crate) fn offset(self) -> u64 {
        self.0 * BLOCK
    }
}

/// The number of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ChunkId(pub(crate) u32);

/// The use of a chunk according to the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// Never used: all zeros.
    Blank,
    /// Leaves.
    Leaves,
    /// Entries of a log, begun at this time.
    Log(Time),
    /// Records too long for leaves.
    Records,
}

/// Mixes words into one, for short checks.
pub(crate) fn mix<const N: usize>(words: [u64; N]) -> u64 {
    words.iter().fold(0x9e37_79b9_7f4a_7c15, |sum, word| {
        let mut z = (sum ^ word).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 32)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 29)
    })
}

/// Returns the low bits of a CRC of words, for a check that detects every single-bit error.
fn crc_of<const N: usize>(words: [u64; N], bits: u32) -> u64 {
    let mut hasher = crc32fast::Hasher::new();
    for word in words {
        hasher.update(&word.to_le_bytes());
    }
    u64::from(hasher.finalize()) & ((1 << bits) - 1)
}

/// Bits of the check in a directory word.
const USE_CHECK: u32 = 13;
/// Bits of the check in the log floor.
const FLOOR_CHECK: u32 = 16;

impl Use {
    pub(super) fn encode(self, chunk: ChunkId) -> u64 {
        let (kind, time) = match self {
            Use::Blank => (1, 0),
            Use::Leaves => (2, 0),
            Use::Log(time) => (3, time.0),
            Use::Records => (4, 0),
        };
        let said = kind << (TIME_BITS + USE_CHECK) | time << USE_CHECK;
        said | crc_of([said, u64::from(chunk.0)], USE_CHECK)
    }

    fn decode(word: u64, chunk: ChunkId) -> Option<Use> {
        let time = Time(word >> USE_CHECK & ((1 << TIME_BITS) - 1));
        let used = match word >> (TIME_BITS + USE_CHECK) {
            1 => Use::Blank,
            2 => Use::Leaves,
            3 => Use::Log(time),
            4 => Use::Records,
            _ => return None,
        };
        (used.encode(chunk) == word).then_some(used)
    }
}

/// The division of a device into chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    pub(crate) device_bytes: u64,
    pub(crate) chunk_bytes: u64,
    pub(crate) chunks: u32,
    pub(crate) format: LeafFormat,
}

impl Geometry {
    /// The offset of the directory.
    pub(crate) const DIRECTORY: u64 = DIRECTORY;

    /// Plans as many chunks as fit.
    pub(crate) fn plan(
        device_bytes: u64,
        chunk_bytes: u64,
        format: LeafFormat,
    ) -> Result<Geometry> {
        let of = |chunks: u64| Geometry {
            device_bytes,
            chunk_bytes,
            chunks: chunks as u32,
            format,
        };
        let room = device_bytes.saturating_sub(DIRECTORY + format.bytes());
        let chunks = (room / (chunk_bytes + 8)).min(1 << 31);
        // One for leaves, one for a log, and one to clean the log into.
        if chunks < 3 {
            let least = of(3).start() + 3 * chunk_bytes;
            return Err(Error::BadOption {
                name: "device",
                why: format!(
                    "{device_bytes} bytes; expected at least {least} for three chunks of \
                     {chunk_bytes} bytes"
                ),
            });
        }
        Ok(of(chunks))
    }

    /// Returns the offset of the first chunk.
    pub(crate) fn start(&self) -> u64 {
        (DIRECTORY + 8 * u64::from(self.chunks)).next_multiple_of(self.format.bytes())
    }

    pub(crate) fn offset(&self, chunk: ChunkId) -> u64 {
        self.start() + u64::from(chunk.0) * self.chunk_bytes
    }

    /// Returns the chunk that contains an offset.
    pub(crate) fn chunk_of(&self, offset: u64) -> Option<ChunkId> {
        let chunk = offset.checked_sub(self.start())? / self.chunk_bytes;
        (chunk < u64::from(self.chunks)).then_some(ChunkId(chunk as u32))
    }

    /// Returns the leaf with the smallest keys.
    pub(crate) fn first_leaf(&self) -> LeafId {
        LeafId(self.start() / BLOCK)
    }

    pub(crate) fn leaves_in_chunk(&self) -> u64 {
        self.chunk_bytes / self.format.bytes()
    }

    /// Returns the number of blocks per leaf. A leaf is named by its first block.
    pub(crate) fn blocks_of_leaf(&self) -> u64 {
        self.format.bytes() / BLOCK
    }

    fn words(&self) -> [u64; 3] {
        [self.device_bytes, self.chunk_bytes, u64::from(self.chunks)]
    }

    fn version_and_crc(&self) -> u64 {
        let mut bytes = Vec::new();
        self.words()
            .iter()
            .for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
        self.format.version() | u64::from(crc32fast::hash(&bytes)) << 32
    }

    /// Formats an empty store: writes all other words first, and the magic that makes the store
    /// valid last.
    pub(crate) fn format(&self, medium: &Medium) -> Result<()> {
        let last = mutation::on("pm-magic-first");
        if last {
            medium.put_word(0, MAGIC, IoClass::Extra)?;
        }
        for (at, word) in [self.version_and_crc()]
            .iter()
            .chain(&self.words())
            .enumerate()
        {
            medium.store_word(8 + 8 * at as u64, *word)?;
        }
        medium.store_word(FLOOR, floor_word(Time(1)))?;
        for chunk in 0..self.chunks {
            self.store_use(medium, ChunkId(chunk), Use::Blank)?;
        }
        self.store_use(medium, ChunkId(0), Use::Leaves)?;
        let leaf_bytes = self.format.bytes();
        medium.store(self.first_leaf().offset(), &vec![0; leaf_bytes as usize])?;
        medium.write_back(0..self.start() + leaf_bytes, IoClass::Extra)?;
        medium.fence();
        medium.put_word(0, MAGIC, IoClass::Extra)
    }

    /// Checks that a medium without a magic may be formatted: it contains nothing but what
    /// [`format`](Self::format) leaves behind if it is killed.
    pub(crate) fn check_blank(&self, medium: &Medium) -> Result<()> {
        for chunk in (0..self.chunks).map(ChunkId) {
            let at = DIRECTORY + 8 * u64::from(chunk.0);
            let word = medium.load_word(at, IoClass::Extra)?;
            let first = chunk.0 == 0 && Use::decode(word, chunk) == Some(Use::Leaves);
            if word != 0 && Use::decode(word, chunk) != Some(Use::Blank) && !first {
                return Err(Self::lost(at, word));
            }
        }
        let leaf = self.first_leaf().offset();
        for at in (leaf..leaf + self.format.bytes()).step_by(8) {
            let word = medium.load_word(at, IoClass::Extra)?;
            if word != 0 {
                return Err(Self::lost(at, word));
            }
        }
        Ok(())
    }

    fn lost(at: u64, word: u64) -> Error {
        damaged(
            "the superblock",
            0,
            "the beginning of a store, or a medium that is all zeros".into(),
            format!("no magic, but {word:#018x} at {at}"),
        )
    }

    /// Reads the geometry that a device was formatted with. Returns `None` if the device is blank.
    pub(crate) fn load(medium: &Medium) -> Result<Option<Geometry>> {
        let word = |at| medium.load_word(at, IoClass::Extra);
        if medium.len() < DIRECTORY {
            return Ok(None);
        }
        match word(0)? {
            0 => return Ok(None),
            MAGIC => {}
            _ => return Err(Error::NotAStore { lba: Lba(0) }),
        }
        let words = [word(16)?, word(24)?, word(32)?];
        let found = word(8)?;
        let sized = CHUNK_BYTES.contains(&words[1]);
        let planned = LeafFormat::ALL.into_iter().filter_map(|format| {
            let whole = words[1].is_multiple_of(format.bytes());
            (sized && whole).then(|| Geometry::plan(words[0], words[1], format).ok())?
        });
        let said =
            |planned: &Geometry| planned.words() == words && planned.version_and_crc() == found;
        let Some(geometry) = planned.into_iter().find(said) else {
            return Err(damaged(
                "the superblock",
                8,
                "version 3 or 4 and the checksum of a geometry".into(),
                format!("{found:#018x} over {words:?}"),
            ));
        };
        if geometry.device_bytes > medium.len() {
            return Err(damaged(
                "the superblock",
                16,
                format!("a device of {} bytes", geometry.device_bytes),
                format!("one of {}", medium.len()),
            ));
        }
        Ok(Some(geometry))
    }

    /// Reads the directory.
    pub(crate) fn load_uses(&self, medium: &Medium) -> Result<Vec<Use>> {
        let load = |chunk: u32| {
            let at = DIRECTORY + 8 * u64::from(chunk);
            let word = medium.load_word(at, IoClass::Extra)?;
            Use::decode(word, ChunkId(chunk)).ok_or_else(|| {
                damaged(
                    "the chunk directory",
                    at,
                    format!("what chunk {chunk} is used for"),
                    format!("{word:#018x}"),
                )
            })
        };
        let uses = (0..self.chunks).map(load).collect::<Result<Vec<Use>>>()?;
        if uses[0] != Use::Leaves {
            return Err(damaged(
                "the chunk directory",
                DIRECTORY,
                "leaves in chunk 0".into(),
                format!("{:?}", uses[0]),
            ));
        }
        Ok(uses)
    }

    fn store_use(&self, medium: &Medium, chunk: ChunkId, used: Use) -> Result<u64> {
        let at = DIRECTORY + 8 * u64::from(chunk.0);
        medium.store_word(at, used.encode(chunk))?;
        Ok(at)
    }

    /// Fills a chunk that is not in use with zeros. Durable when this returns.
    pub(crate) fn wipe(&self, medium: &Medium, chunk: ChunkId) -> Result<()> {
        let start = self.offset(chunk);
        let end = start + self.chunk_bytes;
        for block in (start..end).step_by(BLOCK as usize) {
            medium.store(block, &[0; BLOCK as usize])?;
        }
        medium.write_back(start..end, IoClass::Extra)?;
        medium.fence();
        Ok(())
    }

    /// Sets the use of a chunk. Durable when this returns; nothing in the chunk may be reachable
    /// before.
    pub(crate) fn set_use(&self, medium: &Medium, chunk: ChunkId, used: Use) -> Result<()> {
        let at = self.store_use(medium, chunk, used)?;
        medium.write_back(at..at + 8, IoClass::Extra)?;
        medium.fence();
        Ok(())
    }
}

fn floor_word(time: Time) -> u64 {
    time.0 << FLOOR_CHECK | crc_of([time.0], FLOOR_CHECK)
}

/// Reads the log floor.
pub(crate) fn load_floor(medium: &Medium) -> Result<Time> {
    let word = medium.load_word(FLOOR, IoClass::Extra)?;
    let time = Time(word >> FLOOR_CHECK);
    if floor_word(time) == word {
        return Ok(time);
    }
    Err(damaged(
        "the log floor",
        FLOOR,
        "a time and its check".into(),
        format!("{word:#018x}"),
    ))
}

/// Raises the log floor to `time`, which frees every log chunk begun before it. Durable when this
/// returns.
pub(crate) fn set_floor(medium: &Medium, time: Time) -> Result<()> {
    let word = floor_word(time);
    medium.tell(|| Event::FloorRises { word });
    medium.put_word(FLOOR, word, IoClass::Extra)?;
    medium.tell(|| Event::FloorRaised);
    Ok(())
}

/// Rewrites all lines of the superblock, because what is read when a store is opened after a kill
/// need not be durable.
pub(crate) fn rewrite(medium: &Medium, geometry: &Geometry) -> Result<()> {
    medium.write_back(0..geometry.start(), IoClass::Extra)
}

/// Returns an error about bytes at `offset`.
pub(crate) fn damaged(what: &str, offset: u64, expected: String, found: String) -> Error {
    Error::PmDamaged {
        what: what.into(),
        offset,
        expected,
        found,
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::device::MemPm;
    use crate::sync::Arc;

    const TIMES: [u64; 4] = [0, 1, 0x1234_5678_9abc, (1 << TIME_BITS) - 1];

    #[test]
    fn no_word_says_anything_with_a_bit_flipped_or_as_zero() {
        for chunk in [0, 1, 77, 1 << 20, (1 << 31) - 1].map(ChunkId) {
            let logs = TIMES.map(|time| Use::Log(Time(time)));
            for used in [Use::Blank, Use::Leaves, Use::Records]
                .into_iter()
                .chain(logs)
            {
                let word = used.encode(chunk);
                assert_eq!(Use::decode(word, chunk), Some(used));
                for bit in 0..64 {
                    let flipped = word ^ 1 << bit;
                    assert_eq!(Use::decode(flipped, chunk), None, "{used:?}, bit {bit}");
                }
            }
            assert_eq!(Use::decode(0, chunk), None);
        }
        for time in TIMES.map(Time) {
            let device = Arc::new(MemPm::new(1024));
            let medium = Medium::new(device);
            let word = floor_word(time);
            for bit in 0..64 {
                medium.store_word(FLOOR, word ^ 1 << bit).unwrap();
                let found = load_floor(&medium);
                assert!(found.is_err(), "{time:?}, bit {bit}: {found:?}");
            }
        }
    }

    #[test]
    fn a_store_that_lost_its_superblock_is_not_formatted_over() {
        let medium = Medium::new(Arc::new(MemPm::new(64 << 10)));
        let geometry = Geometry::plan(medium.len(), 1024, LeafFormat::Block).unwrap();
        geometry.check_blank(&medium).expect("all zeros");
        geometry.format(&medium).unwrap();
        let without = |medium: &Medium| {
            medium.store(0, &[0; BLOCK as usize]).unwrap();
            geometry.check_blank(medium)
        };
        without(&medium).expect("as a kill would leave it");
        geometry.format(&medium).unwrap();
        geometry.set_use(&medium, ChunkId(1), Use::Leaves).unwrap();
        assert!(without(&medium).is_err(), "a chunk is in use");
        geometry.format(&medium).unwrap();
        medium
            .store_word(geometry.first_leaf().offset() + 8, 1)
            .unwrap();
        assert!(without(&medium).is_err(), "the first leaf is in use");
    }
}
