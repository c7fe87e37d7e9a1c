//! Records: keys and values that are not of eight bytes. They are stored outside the leaves, which
//! hold their places (CCL-BTree §4.4, "indirection pointers").
//!
//! ```text
//! length 4 | crc 4 | bytes, padded to a multiple of 16          the crc covers the place, too
//! ```
//!
//! A value that is longer than a chunk, up to [`MAX_VALUE_BYTES`], is stored in several pieces.
//! Each piece but the last fills a chunk and holds the place of the next:
//!
//! ```text
//! length 4 | crc 4 | next 8 | bytes to the end of the chunk ──▶ ... ──▶ length 4 | crc 4 | bytes
//! ```
//!
//! The length in a piece counts the bytes of the value from this piece on, so it shows whether the
//! piece is the last. The crc of a piece also covers its length and `next`, so no piece of another
//! value, or of another part of this one, is mistaken for it.
//!
//! A record, with all of its pieces, is durable before anything refers to it, because a complete
//! log entry may be replayed even though its write was never acknowledged. A record is never
//! changed, and its space is reused once neither a leaf nor a log entry refers to it
//! ([`super::space`]).
//!
//! A scan reads a value longer than [`EAGER_BYTES`] only when it reaches the value's row
//! ([`Records::row_value`]).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::device::LINE_SIZE;
use crate::error::{Error, Result};
use crate::mutation;
use crate::overflow::MAX_VALUE_BYTES;
use crate::types::IoClass;

use super::bytes::{Bytes, word_of};
use super::layout::{Time, damaged};
use super::leaf::{AT, Slot};
use super::logs::LogicalClock;
use super::medium::Medium;
use super::space::{GRAIN, Room, Space};
use crate::stats::OverflowStats;
use crate::sync::Arc;
use crate::sync::atomic::{AtomicU64, Ordering::Relaxed};

const HEAD: u64 = 8;
/// Size of the header of a piece that is followed by another one.
const PIECE_HEAD: u64 = 16;

/// The length in bytes of the longest value that a scan reads along with the other rows of a leaf.
const EAGER_BYTES: usize = 4096;

/// The value of a row of a scan.
#[derive(Clone, Debug)]
pub(crate) enum RowValue {
    Read(Bytes),
    /// A long value, to be read when the scan reaches its row.
    Later,
}

/// The header of a record, or of a piece of one.
#[derive(Clone, Copy, Debug)]
struct Piece {
    offset: u64,
    /// Bytes of the record from this piece on.
    len: usize,
    crc: u32,
    /// The place of the next piece.
    next: Option<u64>,
}

/// Counters of values of several pieces.
#[derive(Default)]
struct LongCounters {
    written: AtomicU64,
    bytes_written: AtomicU64,
    bytes_read: AtomicU64,
    freed: AtomicU64,
    /// The pieces of live values.
    pieces: AtomicU64,
}

/// Reads and writes records in the chunks of a [`Space`].
pub(crate) struct Records {
    medium: Arc<Medium>,
    space: Arc<Space>,
    long: LongCounters,
}

fn size_of_record(len: usize) -> u64 {
    (HEAD + len as u64).next_multiple_of(GRAIN)
}

/// Returns the checksum of a record at a place. Neither zeros nor another place's record match it.
fn crc_at(offset: u64, bytes: &[u8]) -> u32 {
    if mutation::on("pm-record-anywhere") {
        return crc32fast::hash(bytes);
    }
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&offset.to_le_bytes());
    hasher.update(bytes);
    hasher.finalize()
}

/// Returns the checksum of a piece: `len` bytes of the record remain from it on, and `next` is the
/// place of the next piece, if there is one.
fn crc_of_piece(offset: u64, len: usize, next: Option<u64>, bytes: &[u8]) -> u32 {
    let Some(next) = next else {
        return crc_at(offset, bytes);
    };
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&offset.to_le_bytes());
    hasher.update(&(len as u32).to_le_bytes());
    hasher.update(&next.to_le_bytes());
    hasher.update(bytes);
    hasher.finalize()
}

fn check(what: &'static str, len: usize, max: usize) -> Result<()> {
    if len <= max {
        return Ok(());
    }
    Err(Error::PmTooLong { what, len, max })
}

impl Records {
    pub(crate) fn new(medium: Arc<Medium>, space: Arc<Space>) -> Records {
        Records {
            medium,
            space,
            long: LongCounters::default(),
        }
    }

    /// Returns the counters of values of several pieces since the store was opened. A piece counts
    /// as a place.
    pub(crate) fn overflow(&self) -> OverflowStats {
        let load = |counter: &AtomicU64| counter.load(Relaxed);
        OverflowStats {
            values_written: load(&self.long.written),
            bytes_written: load(&self.long.bytes_written),
            bytes_read: load(&self.long.bytes_read),
            values_freed: load(&self.long.freed),
            places: load(&self.long.pieces),
        }
    }

    /// Checks that a key fits in a chunk.
    pub(crate) fn check_key(&self, len: usize) -> Result<()> {
        check("key", len, self.most_of_one())
    }

    /// Checks that a value is not longer than the limit for all stores.
    pub(crate) fn check_value(&self, len: usize) -> Result<()> {
        check("value", len, MAX_VALUE_BYTES)
    }

    /// Returns the length of the longest record in one piece.
    fn most_of_one(&self) -> usize {
        (self.space.geometry().chunk_bytes - HEAD) as usize
    }

    /// Returns how many bytes a piece holds if `len` bytes of the record remain from it on.
    fn bytes_of_piece(&self, len: usize) -> usize {
        if len <= self.most_of_one() {
            return len;
        }
        (self.space.geometry().chunk_bytes - PIECE_HEAD) as usize
    }

    /// Returns the size of such a piece.
    fn size_of_piece(&self, len: usize) -> u64 {
        if len <= self.most_of_one() {
            return size_of_record(len);
        }
        self.space.geometry().chunk_bytes
    }

    /// Encodes a key and a value, or a key alone, as a slot. The records of the slot are durable
    /// and belong to the caller.
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

    /// Returns the same key as an anchor: indirect, without a value.
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

    /// Encodes bytes as a word. If the word is a place, the bytes' write-back to it has been
    /// started.
    fn put(&self, bytes: &[u8], room: Room) -> Result<u64> {
        if let Some(word) = word_of(bytes).filter(|word| word & AT == 0) {
            return Ok(word);
        }
        let pieces = self.allocate(bytes.len(), room)?;
        let (mut rest, mut size) = (bytes, 0);
        for (at, offset) in pieces.iter().enumerate() {
            let next = pieces.get(at + 1).copied();
            let (here, behind) = rest.split_at(self.bytes_of_piece(rest.len()));
            let taken = self.size_of_piece(rest.len());
            let mut record = Vec::with_capacity(taken as usize);
            record.extend_from_slice(&(rest.len() as u32).to_le_bytes());
            let crc = crc_of_piece(*offset, rest.len(), next, here);
            record.extend_from_slice(&crc.to_le_bytes());
            if let Some(next) = next {
                record.extend_from_slice(&next.to_le_bytes());
            }
            record.extend_from_slice(here);
            self.medium.store(*offset, &record)?;
            if at == 0 || !mutation::on("pm-later-pieces-cached") {
                let end = offset + record.len() as u64;
                self.medium.write_back(*offset..end, IoClass::Page)?;
            }
            rest = behind;
            size += taken;
        }
        if pieces.len() > 1 {
            self.long.written.fetch_add(1, Relaxed);
            self.long.bytes_written.fetch_add(size, Relaxed);
            self.long.pieces.fetch_add(pieces.len() as u64, Relaxed);
        }
        Ok(AT | pieces[0])
    }

    /// Allocates the pieces of a record of `len` bytes, in order: at least one.
    fn allocate(&self, len: usize, room: Room) -> Result<Vec<u64>> {
        let mut pieces = Vec::new();
        let mut rest = len;
        loop {
            match self.space.allocate_record(self.size_of_piece(rest), room) {
                Ok(offset) => pieces.push(offset),
                Err(e) => {
                    let mut given = len;
                    for offset in pieces {
                        self.space.free_record(offset, self.size_of_piece(given));
                        given -= self.bytes_of_piece(given);
                    }
                    return Err(e);
                }
            }
            rest -= self.bytes_of_piece(rest);
            if rest == 0 {
                return Ok(pieces);
            }
        }
    }

    /// Reads the header of the record at `offset`, or of a piece of one.
    fn head(&self, offset: u64) -> Result<Piece> {
        let head = self.medium.load_word(offset, IoClass::Page)?;
        let (len, crc) = (head as u32 as usize, (head >> 32) as u32);
        if len > MAX_VALUE_BYTES {
            return Err(damaged(
                "a record",
                offset,
                format!("a length of at most {MAX_VALUE_BYTES} bytes"),
                format!("{len} bytes"),
            ));
        }
        let mut piece = Piece {
            offset,
            len,
            crc,
            next: None,
        };
        if len > self.most_of_one() {
            let next = self.medium.load_word(offset + HEAD, IoClass::Page)?;
            self.room(next)?;
            piece.next = Some(next);
        }
        Ok(piece)
    }

    /// Reads the header of the next piece, and checks that it holds the rest of the record.
    fn head_behind(&self, piece: Piece) -> Result<Option<Piece>> {
        let Some(next) = piece.next else {
            return Ok(None);
        };
        let found = self.head(next)?;
        let expected = piece.len - self.bytes_of_piece(piece.len);
        if found.len == expected {
            return Ok(Some(found));
        }
        Err(damaged(
            "a piece of a record",
            next,
            format!("{expected} remaining bytes"),
            format!("{}", found.len),
        ))
    }

    /// Returns the place and size of each piece of the record at `offset`, in order.
    fn pieces(&self, offset: u64) -> Result<Vec<(u64, u64)>> {
        let mut pieces = Vec::new();
        let mut piece = Some(self.head(offset)?);
        while let Some(at) = piece {
            pieces.push((at.offset, self.size_of_piece(at.len)));
            piece = self.head_behind(at)?;
        }
        Ok(pieces)
    }

    fn load(&self, offset: u64) -> Result<Vec<u8>> {
        self.load_from(self.head(offset)?, &mut |_, _| {})
    }

    /// Loads a record from its first piece on, and calls `visit` with the place and size of each
    /// piece.
    fn load_from(&self, first: Piece, visit: &mut dyn FnMut(u64, u64)) -> Result<Vec<u8>> {
        let mut piece = first;
        let mut bytes = vec![0; piece.len];
        let (mut filled, mut size) = (0, 0);
        loop {
            let end = filled + self.bytes_of_piece(piece.len);
            let here = &mut bytes[filled..end];
            let head = piece.next.map_or(HEAD, |_| PIECE_HEAD);
            self.medium.load(piece.offset + head, here, IoClass::Page)?;
            let found = crc_of_piece(piece.offset, piece.len, piece.next, here);
            if found != piece.crc {
                return Err(damaged(
                    "a record",
                    piece.offset,
                    format!("the checksum {:#010x}", piece.crc),
                    format!("{found:#010x}"),
                ));
            }
            filled = end;
            let taken = self.size_of_piece(piece.len);
            size += taken;
            visit(piece.offset, taken);
            match self.head_behind(piece)? {
                Some(behind) => piece = behind,
                None => break,
            }
        }
        if first.next.is_some() {
            self.long.bytes_read.fetch_add(size, Relaxed);
        }
        Ok(bytes)
    }

    /// Returns the bytes that a word of a slot stands for.
    fn bytes(&self, word: u64, indirect: bool) -> Result<Bytes> {
        Ok(if indirect && word & AT != 0 {
            Bytes::of_record(self.load(word & !AT)?)
        } else {
            Bytes::of_word(word)
        })
    }

    /// Returns a slot's key.
    pub(crate) fn key(&self, slot: Slot) -> Result<Bytes> {
        self.bytes(slot.key, slot.indirect)
    }

    /// Returns a slot's value, which must be present.
    pub(crate) fn value(&self, slot: Slot) -> Result<Bytes> {
        self.bytes(slot.value, slot.indirect)
    }

    /// Returns a slot's value, which must be present, for a row of a scan. A long value is read
    /// only if its row is the `next` one.
    pub(crate) fn row_value(&self, slot: Slot, next: bool) -> Result<RowValue> {
        if !slot.indirect || slot.value & AT == 0 {
            return self.value(slot).map(RowValue::Read);
        }
        let first = self.head(slot.value & !AT)?;
        if first.len > EAGER_BYTES && !next && !mutation::on("pm-scan-reads-ahead") {
            return Ok(RowValue::Later);
        }
        let bytes = self.load_from(first, &mut |_, _| {})?;
        Ok(RowValue::Read(Bytes::of_record(bytes)))
    }

    /// Returns whether a slot's key is `key`.
    pub(crate) fn is_key(&self, slot: Slot, key: &[u8]) -> Result<bool> {
        if !slot.indirect || slot.key & AT == 0 {
            return Ok(word_of(key) == Some(slot.key));
        }
        if word_of(key).is_some_and(|word| word & AT == 0) {
            return Ok(false);
        }
        let offset = slot.key & !AT;
        Ok(self.head(offset)?.len == key.len() && self.load(offset)? == key)
    }

    /// Returns the number of bytes from `offset` to the end of its chunk. Fails if no record can be
    /// there.
    fn room(&self, offset: u64) -> Result<u64> {
        self.space.room_of_record(offset).ok_or_else(|| {
            damaged(
                "a record",
                offset,
                format!("a multiple of {GRAIN} in a chunk of records"),
                "a reference to another place".into(),
            )
        })
    }

    /// Returns the checked ranges of the pieces of a record to which a slot or log entry refers.
    fn ranges(&self, offset: u64) -> Result<Vec<Range<u64>>> {
        self.room(offset)?;
        let mut ranges = Vec::new();
        let mut pieces = Vec::new();
        self.load_from(self.head(offset)?, &mut |offset, size| {
            pieces.push((offset, size))
        })?;
        if mutation::on("pm-later-pieces-unnamed") {
            pieces.truncate(1);
        }
        for (offset, size) in pieces {
            if size > self.room(offset)? {
                return Err(damaged(
                    "a record",
                    offset,
                    "a length that ends in its chunk".into(),
                    format!("{size} bytes"),
                ));
            }
            ranges.push(offset..offset + size);
        }
        Ok(ranges)
    }

    /// Returns the ranges of all pieces of the records of these slots. A record in use must be
    /// referred to only once, or freeing it once would free it under the other reference.
    fn named_once(&self, slots: &[Slot]) -> Result<BTreeMap<u64, u64>> {
        let mut ranges = BTreeMap::new();
        let mut long = 0;
        for offset in slots.iter().flat_map(|slot| slot.records()) {
            let pieces = self.ranges(offset)?;
            long += if pieces.len() > 1 { pieces.len() } else { 0 };
            for range in pieces {
                if ranges.insert(range.start, range.end).is_some() {
                    return Err(damaged(
                        "a record",
                        range.start,
                        "one slot that refers to it".into(),
                        "two".into(),
                    ));
                }
            }
        }
        self.long.pieces.store(long as u64, Relaxed);
        Ok(ranges)
    }

    /// Returns the pieces of all records of a slot, which the caller is about to free.
    fn given_up(&self, slot: Slot) -> Result<Vec<(u64, u64)>> {
        let mut all = Vec::new();
        for offset in slot.records() {
            let mut pieces = self.pieces(offset)?;
            if pieces.len() > 1 {
                self.long.freed.fetch_add(1, Relaxed);
                self.long.pieces.fetch_sub(pieces.len() as u64, Relaxed);
            }
            if mutation::on("pm-later-pieces-kept") {
                pieces.truncate(1);
            }
            all.append(&mut pieces);
        }
        Ok(all)
    }

    /// Frees records to which only the caller has ever referred.
    pub(crate) fn free(&self, slot: Slot) -> Result<()> {
        for (offset, size) in self.given_up(slot)? {
            self.space.free_record(offset, size);
        }
        Ok(())
    }

    /// Retires records to which no leaf and no buffer has referred since `time`. Log entries may
    /// still do so.
    pub(crate) fn retire(&self, slot: Slot, time: Time) -> Result<()> {
        for (offset, size) in self.given_up(slot)? {
            self.space.retire_record(offset, size, time);
        }
        Ok(())
    }

    /// Ends recovery. Records to which no slot refers, in leaves, buffers (`used`) or log entries
    /// (`logged`), are free. Records to which only log entries refer are retired now. All records
    /// that are kept are durable when this returns. No two used slots may refer to the same record.
    pub(crate) fn recovered(
        &self,
        used: &[Slot],
        logged: &[Slot],
        clock: &LogicalClock,
    ) -> Result<()> {
        let mut ranges = self.named_once(used)?;
        let in_use: BTreeSet<u64> = ranges.keys().copied().collect();
        for offset in logged.iter().flat_map(|slot| slot.records()) {
            for range in self.ranges(offset)? {
                ranges.insert(range.start, range.end);
            }
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

    /// Starts the write-back of a record read when the store was opened, which need not be durable.
    fn rewrite(&self, range: Range<u64>) -> Result<()> {
        debug_assert!(
            range.start.is_multiple_of(GRAIN) && LINE_SIZE.is_multiple_of(GRAIN as usize)
        );
        self.medium.write_back(range, IoClass::Page)
    }
}
