//! Models where leaves, logs and records are: chunks, and places in chunks.
//!
//! The rules are those of the engine (`engine/src/pm/space.rs`): the lowest free chunk comes first,
//! a freed leaf is reused before a fresh one, records of the same size take each other's places, and
//! a replaced record waits until no log entry can refer to it. Places matter because records are
//! smaller than XPLines, and because log chunks come back.
//!
//! *Ignored*: space that runs out.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use super::lines::{Class, Lines};

/// Records begin at multiples of this.
const GRAIN: u64 = 16;
/// Bytes of a record before its contents, and of a piece that another one follows.
const HEAD: u64 = 8;
const PIECE_HEAD: u64 = 16;
/// Offset of the directory, and of the line with the log floor.
const DIRECTORY: u64 = 256;
const FLOOR: u64 = 64;

/// No record.
pub(super) const NONE: u32 = 0;

/// A piece of a record.
#[derive(Clone, Copy, Debug, Default)]
struct Piece {
    offset: u64,
    size: u64,
    /// The next piece, or [`NONE`].
    next: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Blank,
    Leaves,
    Log,
    Records,
}

/// The space of a device.
pub(super) struct Space {
    pub(super) start: u64,
    pub(super) chunk_bytes: u64,
    leaf_bytes: u64,
    uses: Vec<Use>,
    /// The next chunk to use is last.
    free_chunks: Vec<u32>,
    free_leaves: Vec<u64>,
    fresh_leaves: Range<u64>,
    leaves_in: Vec<u32>,
    pub(super) leaves: u64,
    fresh_records: Vec<Range<u64>>,
    free_records: BTreeMap<u64, Vec<u64>>,
    spare_records: u64,
    freed_records: u64,
    pub(super) record_bytes: u64,
    retired: VecDeque<(u64, u64, u64)>,
    pub(super) retired_bytes: u64,
    pieces: Vec<Piece>,
    free_pieces: Vec<u32>,
}

impl Space {
    /// Chunks on a device of so many bytes; chunk 0 has leaves, the first of which is in use.
    pub(super) fn new(device_bytes: u64, chunk_bytes: u64, leaf_bytes: u64) -> Space {
        let room = device_bytes.saturating_sub(DIRECTORY + leaf_bytes);
        let chunks = (room / (chunk_bytes + 8)).max(3) as u32;
        let start = (DIRECTORY + 8 * u64::from(chunks)).next_multiple_of(leaf_bytes);
        let mut uses = vec![Use::Blank; chunks as usize];
        uses[0] = Use::Leaves;
        let mut leaves_in = vec![0; chunks as usize];
        leaves_in[0] = 1;
        Space {
            start,
            chunk_bytes,
            leaf_bytes,
            uses,
            free_chunks: (1..chunks).rev().collect(),
            free_leaves: Vec::new(),
            fresh_leaves: start + leaf_bytes..start + chunk_bytes / leaf_bytes * leaf_bytes,
            leaves_in,
            leaves: 1,
            fresh_records: Vec::new(),
            free_records: BTreeMap::new(),
            spare_records: 0,
            freed_records: 0,
            record_bytes: 0,
            retired: VecDeque::new(),
            retired_bytes: 0,
            pieces: vec![Piece::default()],
            free_pieces: Vec::new(),
        }
    }

    /// Number of chunks.
    pub(super) fn chunks(&self) -> u32 {
        self.uses.len() as u32
    }

    /// Number of chunks that are free.
    pub(super) fn free(&self) -> u64 {
        self.free_chunks.len() as u64
    }

    pub(super) fn offset(&self, chunk: u32) -> u64 {
        self.start + u64::from(chunk) * self.chunk_bytes
    }

    fn chunk_of(&self, offset: u64) -> u32 {
        ((offset - self.start) / self.chunk_bytes) as u32
    }

    /// Takes a chunk, and says whether it is known to be all zeros.
    fn take_chunk(&mut self, used: Use, lines: &mut Lines) -> Option<(u32, bool)> {
        let chunk = self.free_chunks.pop()?;
        let before = self.uses[chunk as usize];
        let wiped = matches!(before, Use::Leaves | Use::Records) && used == Use::Log;
        if wiped {
            lines.write(self.offset(chunk), self.chunk_bytes);
            lines.fence();
        }
        lines.write(DIRECTORY + 8 * u64::from(chunk), 8);
        lines.fence();
        self.uses[chunk as usize] = used;
        let class = if used == Use::Log {
            Class::Log
        } else {
            Class::Page
        };
        lines.set_class(chunk, class);
        Some((chunk, wiped || before == Use::Blank))
    }

    /// Offset of a new leaf.
    pub(super) fn allocate_leaf(&mut self, lines: &mut Lines) -> u64 {
        if self.free_leaves.is_empty()
            && self.fresh_leaves.is_empty()
            && let Some((chunk, _)) = self.take_chunk(Use::Leaves, lines)
        {
            let start = self.offset(chunk);
            self.fresh_leaves = start..start + self.chunk_bytes / self.leaf_bytes * self.leaf_bytes;
        }
        let leaf = self.free_leaves.pop().unwrap_or_else(|| {
            // On a full device, which the run would refuse, leaves are put over each other.
            let leaf = self
                .fresh_leaves
                .start
                .min(self.offset(self.chunks()) - self.leaf_bytes);
            self.fresh_leaves.start += self.leaf_bytes;
            leaf
        });
        self.leaves += 1;
        let chunk = self.chunk_of(leaf) as usize;
        self.leaves_in[chunk] += 1;
        leaf
    }

    /// A leaf is free.
    pub(super) fn free_leaf(&mut self, leaf: u64) {
        self.leaves -= 1;
        self.free_leaves.push(leaf);
        let chunk = self.chunk_of(leaf);
        let left = &mut self.leaves_in[chunk as usize];
        *left = left.saturating_sub(1);
        if *left == 0 {
            let all = self.offset(chunk)..self.offset(chunk) + self.chunk_bytes;
            self.free_leaves.retain(|leaf| !all.contains(leaf));
            if all.contains(&self.fresh_leaves.start) {
                self.fresh_leaves = 0..0;
            }
            self.free_chunks.push(chunk);
        }
    }

    /// A chunk for log entries, and whether it is known to be all zeros.
    pub(super) fn allocate_log(&mut self, lines: &mut Lines) -> (u32, bool) {
        let taken = self.take_chunk(Use::Log, lines);
        taken.unwrap_or((self.chunks() - 1, false))
    }

    /// As `allocate_log`, for logs whose chunks keep their use in the directory.
    pub(super) fn allocate_version_log(&mut self, lines: &mut Lines) -> (u32, bool) {
        match self.free_chunks.last() {
            Some(last) if self.uses[*last as usize] == Use::Log => {
                (self.free_chunks.pop().unwrap_or_default(), false)
            }
            _ => self.allocate_log(lines),
        }
    }

    /// Chunks of a log are free, the first of them to be used first.
    pub(super) fn free_logs(&mut self, chunks: &mut Vec<u32>) {
        chunks.sort_unstable();
        self.free_chunks.extend(chunks.drain(..).rev());
    }

    /// Stores the log floor.
    pub(super) fn set_floor(&mut self, lines: &mut Lines) {
        lines.write(FLOOR, 8);
        lines.fence();
    }

    fn most_of_one(&self) -> u64 {
        self.chunk_bytes - HEAD
    }

    /// Writes a record of `len` bytes; returns its first piece.
    pub(super) fn put_record(&mut self, len: u64, lines: &mut Lines) -> u32 {
        let (mut rest, mut first, mut last) = (len, NONE, NONE);
        let mut pieces = Vec::with_capacity(1);
        loop {
            let (here, size) = if rest <= self.most_of_one() {
                (rest, (HEAD + rest).next_multiple_of(GRAIN))
            } else {
                (self.chunk_bytes - PIECE_HEAD, self.chunk_bytes)
            };
            let head = if here < rest { PIECE_HEAD } else { HEAD };
            let offset = self.allocate_record(size, lines);
            pieces.push((offset, head + here));
            let piece = Piece {
                offset,
                size,
                next: NONE,
            };
            let at = match self.free_pieces.pop() {
                Some(at) => {
                    self.pieces[at as usize] = piece;
                    at
                }
                None => {
                    self.pieces.push(piece);
                    self.pieces.len() as u32 - 1
                }
            };
            if first == NONE {
                first = at;
            } else {
                self.pieces[last as usize].next = at;
            }
            last = at;
            rest -= here;
            if rest == 0 {
                break;
            }
        }
        for (offset, bytes) in pieces {
            lines.write(offset, bytes);
        }
        first
    }

    /// Loads a record: its head, and then its bytes.
    pub(super) fn load_record(&self, mut at: u32, lines: &mut Lines) {
        while at != NONE {
            let piece = self.pieces[at as usize];
            lines.load(piece.offset, HEAD);
            lines.load(piece.offset + HEAD, piece.size - HEAD);
            at = piece.next;
        }
    }

    /// Its head says where the next piece is.
    fn give_up_piece(&mut self, at: u32, lines: &mut Lines) -> Option<(Piece, u32)> {
        if at == NONE {
            return None;
        }
        lines.load(self.pieces[at as usize].offset, HEAD);
        let piece = self.pieces[at as usize];
        self.free_pieces.push(at);
        Some((piece, piece.next))
    }

    /// Frees a record.
    pub(super) fn free_record(&mut self, mut at: u32, lines: &mut Lines) {
        while let Some((piece, next)) = self.give_up_piece(at, lines) {
            self.give_back(piece.offset, piece.size);
            at = next;
        }
    }

    /// Frees a record once the log floor is above `time`.
    pub(super) fn retire_record(&mut self, mut at: u32, time: u64, lines: &mut Lines) {
        while let Some((piece, next)) = self.give_up_piece(at, lines) {
            self.retired_bytes += piece.size;
            self.retired.push_back((time, piece.offset, piece.size));
            at = next;
        }
    }

    /// The log floor was raised.
    pub(super) fn floor_raised(&mut self, floor: u64) {
        while let Some(&(time, offset, size)) = self.retired.front() {
            if time >= floor {
                break;
            }
            self.retired.pop_front();
            self.retired_bytes -= size;
            self.give_back(offset, size);
        }
    }

    fn give_back(&mut self, offset: u64, size: u64) {
        self.record_bytes -= size;
        self.spare_records += size;
        self.freed_records += size;
        self.free_records.entry(size).or_default().push(offset);
    }

    fn allocate_record(&mut self, size: u64, lines: &mut Lines) -> u64 {
        let mut found = self.cut_record(size, false);
        if found.is_none() {
            if self.free_chunks.len() < 3 {
                self.gather();
            }
            if let Some((chunk, _)) = self.take_chunk(Use::Records, lines) {
                let start = self.offset(chunk);
                self.fresh_records.push(start..start + self.chunk_bytes);
                self.spare_records += self.chunk_bytes;
                found = cut(&mut self.fresh_records, size);
            }
        }
        if found.is_none() {
            self.gather();
            found = self.cut_record(size, true);
        }
        self.record_bytes += size;
        match found {
            Some(offset) => {
                self.spare_records -= size;
                offset
            }
            // The run would refuse this, too.
            None => self.offset(self.chunks() - 1),
        }
    }

    fn cut_record(&mut self, size: u64, any: bool) -> Option<u64> {
        let spare = self.spare_records.checked_sub(size)?;
        let tight = self.free_chunks.len() < (self.uses.len() / 8).max(4);
        if let Some(offset) = self.take_exactly(size) {
            return Some(offset);
        }
        if let Some(offset) = cut(&mut self.fresh_records, size) {
            return Some(offset);
        }
        if !(any || 8 * spare > self.record_bytes || tight) {
            return None;
        }
        let larger = *self.free_records.range(size..).next()?.0;
        let offset = self.take_exactly(larger)?;
        if larger > size {
            let rest = self.free_records.entry(larger - size).or_default();
            rest.push(offset + size);
        }
        Some(offset)
    }

    fn take_exactly(&mut self, size: u64) -> Option<u64> {
        let offsets = self.free_records.get_mut(&size)?;
        let offset = offsets.pop();
        if offsets.is_empty() {
            self.free_records.remove(&size);
        }
        offset
    }

    /// Joins adjacent free ranges.
    fn gather(&mut self) {
        if std::mem::take(&mut self.freed_records) == 0 {
            return;
        }
        let freed = std::mem::take(&mut self.free_records).into_iter();
        let freed = freed.flat_map(|(size, at)| at.into_iter().map(move |at| at..at + size));
        let mut ranges: Vec<Range<u64>> = freed.chain(self.fresh_records.drain(..)).collect();
        ranges.sort_unstable_by_key(|range| range.start);
        let mut joined: Vec<Range<u64>> = Vec::new();
        for range in ranges {
            match joined.last_mut() {
                Some(last)
                    if last.end == range.start
                        && self.chunk_of(last.start) == self.chunk_of(range.start) =>
                {
                    last.end = range.end;
                }
                _ => joined.push(range),
            }
        }
        for range in joined {
            let size = range.end - range.start;
            if size == self.chunk_bytes {
                self.spare_records -= size;
                self.free_chunks.push(self.chunk_of(range.start));
            } else if size >= self.chunk_bytes / 4 {
                self.fresh_records.push(range);
            } else {
                let same = self.free_records.entry(size).or_default();
                same.push(range.start);
            }
        }
    }
}

/// Cuts `size` bytes off the beginning of a range that is large enough, the last one first.
fn cut(ranges: &mut Vec<Range<u64>>, size: u64) -> Option<u64> {
    let at = (ranges.iter()).rposition(|range| range.end - range.start >= size)?;
    let offset = ranges[at].start;
    ranges[at].start += size;
    if ranges[at].is_empty() {
        ranges.swap_remove(at);
    }
    Some(offset)
}
