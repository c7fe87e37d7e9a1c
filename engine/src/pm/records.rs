//! Keys and values that are not of eight bytes: out of the leaves, which name their places (CCL-BTree §4.4, "indirection pointers").
//!
//! ```text
//! length 4 | crc 4 | bytes, padded to a multiple of 16          the crc is of the place, too
//! ```
//!
//! A record is durable before anything names it, since an entry of the log that is whole may be replayed though its write was never acknowledged.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::device::LINE_SIZE;
use crate::error::{Error, Result};
use crate::mutation;
use crate::types::IoClass;

use super::layout::{Time, damaged};
use super::leaf::{AT, Slot};
use super::logs::LogicalClock;
use super::medium::Medium;
use super::space::{GRAIN, Room, Space};
use crate::sync::Arc;

const HEAD: u64 = 8;

/// Records in the chunks of a [`Space`].
pub(crate) struct Records {
    medium: Arc<Medium>,
    space: Arc<Space>,
}

/// A key or value as bytes, wherever they came from.
#[derive(Clone, Debug)]
pub(crate) struct Bytes(BytesOf);

#[derive(Clone, Debug)]
enum BytesOf {
    Word([u8; 8]),
    Record(Vec<u8>),
}

impl From<&[u8]> for Bytes {
    fn from(bytes: &[u8]) -> Bytes {
        Bytes(match bytes.try_into() {
            Ok(word) => BytesOf::Word(word),
            Err(_) => BytesOf::Record(bytes.to_vec()),
        })
    }
}

impl Ord for Bytes {
    fn cmp(&self, other: &Bytes) -> std::cmp::Ordering {
        (**self).cmp(&**other)
    }
}

impl PartialOrd for Bytes {
    fn partial_cmp(&self, other: &Bytes) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Bytes {
    fn eq(&self, other: &Bytes) -> bool {
        **self == **other
    }
}

impl Eq for Bytes {}

impl std::ops::Deref for Bytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match &self.0 {
            BytesOf::Word(bytes) => bytes,
            BytesOf::Record(bytes) => bytes,
        }
    }
}

/// The word of eight bytes; as numbers, words order as their bytes do.
pub(crate) fn word_of(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(bytes.try_into().ok()?))
}

fn size_of_record(len: usize) -> u64 {
    (HEAD + len as u64).next_multiple_of(GRAIN)
}

/// What a record at a place must say, so that neither zeros nor another place's record is one.
fn crc_at(offset: u64, bytes: &[u8]) -> u32 {
    if mutation::on("pm-record-anywhere") {
        return crc32fast::hash(bytes);
    }
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&offset.to_le_bytes());
    hasher.update(bytes);
    hasher.finalize()
}

impl Records {
    pub(crate) fn new(medium: Arc<Medium>, space: Arc<Space>) -> Records {
        Records { medium, space }
    }

    /// Refuses what does not fit a chunk.
    pub(crate) fn check(&self, what: &'static str, len: usize) -> Result<()> {
        let max = (self.space.geometry().chunk_bytes - HEAD) as usize;
        if len <= max {
            return Ok(());
        }
        Err(Error::PmTooLong { what, len, max })
    }

    /// A slot for key and value; or for a key alone, whose value is `None`. What it names is durable, and the caller's to free.
    pub(crate) fn encode(&self, key: &[u8], value: Option<&[u8]>, room: Room) -> Result<Slot> {
        let words = (word_of(key), value.map_or(Some(0), word_of));
        if let (Some(key), Some(value)) = words {
            return Ok(Slot {
                key,
                value,
                indirect: false,
            });
        }
        let key = self.put(key, room)?;
        let value = match value.map_or(Ok(0), |value| self.put(value, room)) {
            Ok(value) => value,
            Err(e) => {
                let half = Slot {
                    key,
                    value: 0,
                    indirect: true,
                };
                self.free(half)?;
                return Err(e);
            }
        };
        self.medium.fence();
        Ok(Slot {
            key,
            value,
            indirect: true,
        })
    }

    /// The same key as an anchor: indirect, without a value.
    pub(crate) fn anchor(&self, slot: Slot) -> Result<Slot> {
        let key = if slot.indirect || slot.key & AT == 0 {
            slot.key
        } else {
            let key = self.put(&slot.key.to_be_bytes(), Room::Delete)?;
            self.medium.fence();
            key
        };
        Ok(Slot {
            key,
            value: super::leaf::ABSENT,
            indirect: true,
        })
    }

    /// A word for some bytes; if it is a place, they are on their way there.
    fn put(&self, bytes: &[u8], room: Room) -> Result<u64> {
        if let Some(word) = word_of(bytes).filter(|word| word & AT == 0) {
            return Ok(word);
        }
        let size = size_of_record(bytes.len());
        let offset = self.space.allocate_record(size, room)?;
        let mut record = Vec::with_capacity(size as usize);
        record.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        record.extend_from_slice(&crc_at(offset, bytes).to_le_bytes());
        record.extend_from_slice(bytes);
        self.medium.store(offset, &record)?;
        let end = offset + record.len() as u64;
        self.medium.write_back(offset..end, IoClass::Page)?;
        Ok(AT | offset)
    }

    /// Length and checksum of the record at `offset`.
    fn head(&self, offset: u64) -> Result<(usize, u32)> {
        let head = self.medium.load_word(offset, IoClass::Page)?;
        let (len, crc) = (head as u32, (head >> 32) as u32);
        if u64::from(len) + HEAD <= self.space.geometry().chunk_bytes {
            return Ok((len as usize, crc));
        }
        Err(damaged(
            "a record",
            offset,
            "a length that fits a chunk".into(),
            format!("{len} bytes"),
        ))
    }

    fn load(&self, offset: u64) -> Result<Vec<u8>> {
        let (len, crc) = self.head(offset)?;
        let mut bytes = vec![0; len];
        self.medium.load(offset + HEAD, &mut bytes, IoClass::Page)?;
        let found = crc_at(offset, &bytes);
        if found == crc {
            return Ok(bytes);
        }
        Err(damaged(
            "a record",
            offset,
            format!("the checksum {crc:#010x}"),
            format!("{found:#010x}"),
        ))
    }

    /// What a word of a slot stands for.
    fn bytes(&self, word: u64, indirect: bool) -> Result<Bytes> {
        Ok(Bytes(if indirect && word & AT != 0 {
            BytesOf::Record(self.load(word & !AT)?)
        } else {
            BytesOf::Word(word.to_be_bytes())
        }))
    }

    /// A slot's key.
    pub(crate) fn key(&self, slot: Slot) -> Result<Bytes> {
        self.bytes(slot.key, slot.indirect)
    }

    /// A slot's value, which is there.
    pub(crate) fn value(&self, slot: Slot) -> Result<Bytes> {
        self.bytes(slot.value, slot.indirect)
    }

    /// Whether a slot's key is `key`.
    pub(crate) fn is_key(&self, slot: Slot, key: &[u8]) -> Result<bool> {
        if !slot.indirect || slot.key & AT == 0 {
            return Ok(word_of(key) == Some(slot.key));
        }
        if word_of(key).is_some_and(|word| word & AT == 0) {
            return Ok(false);
        }
        let offset = slot.key & !AT;
        Ok(self.head(offset)?.0 == key.len() && self.load(offset)? == key)
    }

    /// The range of a record that an opening found named, checked.
    fn range(&self, offset: u64) -> Result<Range<u64>> {
        let room = self.space.room_of_record(offset).ok_or_else(|| {
            damaged(
                "a record",
                offset,
                format!("a multiple of {GRAIN} in a chunk of records"),
                "a place elsewhere, which a slot names".into(),
            )
        })?;
        let len = self.load(offset)?.len();
        let size = size_of_record(len);
        if size <= room {
            return Ok(offset..offset + size);
        }
        Err(damaged(
            "a record",
            offset,
            "a length that ends in its chunk".into(),
            format!("{len} bytes"),
        ))
    }

    /// The ranges of all records that these slots name. What is in use has one name, or to free it once would free it under the other.
    fn named_once(&self, slots: &[Slot]) -> Result<BTreeMap<u64, u64>> {
        let mut ranges = BTreeMap::new();
        for offset in slots.iter().flat_map(|slot| slot.records()) {
            let range = self.range(offset)?;
            if ranges.insert(range.start, range.end).is_some() {
                return Err(damaged(
                    "a record",
                    offset,
                    "one slot that names it".into(),
                    "two".into(),
                ));
            }
        }
        Ok(ranges)
    }

    /// Nothing has ever named these records but the caller.
    pub(crate) fn free(&self, slot: Slot) -> Result<()> {
        for offset in slot.records() {
            let (len, _) = self.head(offset)?;
            self.space.free_record(offset, size_of_record(len));
        }
        Ok(())
    }

    /// No leaf and no buffer names them any more since `time`, but log entries may.
    pub(crate) fn retire(&self, slot: Slot, time: Time) -> Result<()> {
        for offset in slot.records() {
            let (len, _) = self.head(offset)?;
            let size = size_of_record(len);
            self.space.retire_record(offset, size, time);
        }
        Ok(())
    }

    /// After an opening: records that none of these slots names, in leaves, buffers or log entries, are free; those that only log entries name are as good as
    /// retired now. All that are kept are durable when this returns. No two slots in use name the same record.
    pub(crate) fn recovered(
        &self,
        used: &[Slot],
        logged: &[Slot],
        clock: &LogicalClock,
    ) -> Result<()> {
        let mut ranges = self.named_once(used)?;
        let in_use: BTreeSet<u64> = ranges.keys().copied().collect();
        for offset in logged.iter().flat_map(|slot| slot.records()) {
            let range = self.range(offset)?;
            ranges.insert(range.start, range.end);
        }
        let ranges: Vec<_> = ranges.into_iter().map(|(start, end)| start..end).collect();
        if let Some(pair) = ranges.windows(2).find(|pair| pair[0].end > pair[1].start) {
            return Err(damaged(
                "a record",
                pair[1].start,
                "bytes of its own".into(),
                format!("bytes of the record at offset {}", pair[0].start),
            ));
        }
        for range in &ranges {
            self.rewrite(range.clone())?;
        }
        self.medium.fence();
        self.space.recovered_records(&ranges);
        for range in ranges.iter().filter(|range| !in_use.contains(&range.start)) {
            let size = range.end - range.start;
            self.space.retire_record(range.start, size, clock.tick());
        }
        Ok(())
    }

    /// Starts the write-back of a record that was read at an opening, where it need not be durable.
    fn rewrite(&self, range: Range<u64>) -> Result<()> {
        debug_assert!(
            range.start.is_multiple_of(GRAIN) && LINE_SIZE.is_multiple_of(GRAIN as usize)
        );
        self.medium.write_back(range, IoClass::Page)
    }
}
