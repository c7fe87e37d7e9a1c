//! [`Space`], the allocator of a persistent memory: chunks, leaves in chunks, records in chunks.
//!
//! Only the use of whole chunks is recorded, in the directory ([`super::layout`]). Leaves and
//! records are free if recovery does not reach them. So a crash leaks neither: what was allocated
//! and not linked yet is free again.
//!
//! Log entries may still refer to a record that was replaced, and recovery needs the keys of these
//! entries. So a retired record is not freed until the log floor has passed the time of its
//! retirement.

mod state;

pub(crate) use state::Room;

use std::collections::BTreeSet;
use std::ops::Range;

use crate::error::{Error, Result};
use crate::mutation;
use crate::sync::atomic::{AtomicU64, Ordering::Relaxed};
use crate::sync::{Arc, Mutex};
use crate::types::IoClass;

use super::events::Event;
use super::layout::{BLOCK, ChunkId, Geometry, LeafId, Time, Use};
use super::medium::Medium;

use state::{Serves, State, cut, give_back, give_up_retired};

/// Records begin at multiples of this.
pub(super) const GRAIN: u64 = 16;

/// The allocator, described in the module's introduction.
pub(crate) struct Space {
    medium: Arc<Medium>,
    geometry: Geometry,
    state: Mutex<State>,
    shrunk: AtomicU64,
}

impl Space {
    /// Creates the allocator from the directory. Leaves and records are added by
    /// [`Space::recovered_leaves`] and [`Space::recovered_records`].
    pub(crate) fn new(medium: Arc<Medium>, geometry: Geometry, uses: Vec<Use>) -> Space {
        for (chunk, used) in (0..).map(ChunkId).zip(&uses) {
            announce(&medium, &geometry, chunk, *used);
        }
        Space {
            medium,
            geometry,
            state: Mutex::new(State::new(uses)),
            // Nothing is known about the time before the opening, so assume that a leaf has shrunk.
            shrunk: AtomicU64::new(1),
        }
    }

    pub(crate) fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// From now on, puts leave room for deletes and, if the log is cleaned by copying, for the
    /// copies.
    pub(crate) fn serve(&self, copies: bool) {
        self.state.lock().serves = if copies {
            Serves::WithCopies
        } else {
            Serves::WithoutCopies
        };
    }

    /// Returns the bytes for records that puts leave to deletes: enough for a few keys in log
    /// entries. The next cleaning gives them back.
    fn reserve(&self) -> u64 {
        if mutation::on("pm-puts-take-all") {
            return 0;
        }
        (self.geometry.chunk_bytes / 16).clamp(64, 4096)
    }

    /// Returns the use of a chunk.
    pub(crate) fn use_of(&self, chunk: ChunkId) -> Use {
        self.state.lock().uses[chunk.0 as usize]
    }

    /// Returns whether there can be a leaf of this name.
    pub(crate) fn holds_leaves(&self, leaf: LeafId) -> bool {
        let offset = leaf.0.checked_mul(BLOCK);
        let chunk = offset.and_then(|offset| self.geometry.chunk_of(offset));
        chunk.is_some_and(|chunk| {
            let block = leaf.0 - self.geometry.offset(chunk) / BLOCK;
            block.is_multiple_of(self.geometry.blocks_of_leaf())
                && self.use_of(chunk) == Use::Leaves
        })
    }

    /// Returns the bytes from `offset` to the end of its chunk, if a record may begin there: at a
    /// multiple of [`GRAIN`], in a chunk of records.
    pub(super) fn room_of_record(&self, offset: u64) -> Option<u64> {
        let chunk = self.geometry.chunk_of(offset)?;
        let may_be = offset.is_multiple_of(GRAIN) && self.use_of(chunk) == Use::Records;
        may_be.then(|| self.geometry.offset(chunk) + self.geometry.chunk_bytes - offset)
    }

    /// Returns the log chunks, by number.
    pub(crate) fn log_chunks(&self) -> Vec<(ChunkId, Time)> {
        let state = self.state.lock();
        let chunks = (0..).map(ChunkId).zip(&state.uses);
        let logs = chunks.filter_map(|(chunk, used)| match used {
            Use::Log(begun) => Some((chunk, *begun)),
            _ => None,
        });
        logs.collect()
    }

    /// Sets which leaves are in use. All other leaves are free, and so are chunks without leaves,
    /// and chunks of logs begun before `floor`.
    pub(crate) fn recovered_leaves(&self, reachable: &BTreeSet<LeafId>, floor: Time) {
        let mut state = self.state.lock();
        state.leaves = reachable.len() as u64;
        let (mut chunks, mut leaves) = (Vec::new(), Vec::new());
        for chunk in (0..self.geometry.chunks).map(ChunkId) {
            match state.uses[chunk.0 as usize] {
                Use::Blank => chunks.push(chunk),
                Use::Log(begun) if begun < floor => chunks.push(chunk),
                Use::Log(_) | Use::Records => {}
                Use::Leaves => {
                    let start = self.geometry.offset(chunk) / BLOCK;
                    let blocks = self.geometry.blocks_of_leaf();
                    let all = (0..self.geometry.leaves_in_chunk())
                        .map(|leaf| LeafId(start + leaf * blocks));
                    let free: Vec<LeafId> = all.filter(|leaf| !reachable.contains(leaf)).collect();
                    let used = self.geometry.leaves_in_chunk() - free.len() as u64;
                    state.leaves_in[chunk.0 as usize] = used as u32;
                    if used == 0 {
                        chunks.push(chunk);
                    } else {
                        leaves.extend(free);
                    }
                }
            }
        }
        // Use the lowest first.
        chunks.reverse();
        leaves.reverse();
        state.free_chunks = chunks;
        state.free_leaves = leaves;
    }

    /// Sets which records are in use, ascending. A later call replaces an earlier one.
    pub(crate) fn recovered_records(&self, records: &[Range<u64>]) {
        let mut state = self.state.lock();
        state.retired.clear();
        state.retired_bytes = 0;
        state.free_records.clear();
        state.fresh_records.clear();
        state.freed_records = 0;
        state.record_bytes = records.iter().map(|used| used.end - used.start).sum();
        let mut records = records.iter().peekable();
        let listed: BTreeSet<ChunkId> = state.free_chunks.iter().copied().collect();
        for chunk in (0..self.geometry.chunks).map(ChunkId) {
            if state.uses[chunk.0 as usize] != Use::Records {
                continue;
            }
            let start = self.geometry.offset(chunk);
            let end = start + self.geometry.chunk_bytes;
            let mut at = start;
            let before = state.fresh_records.len();
            while let Some(used) = records.next_if(|used| used.start < end) {
                state.fresh_records.push(at..used.start);
                at = used.end;
            }
            if at == start {
                state.fresh_records.truncate(before);
                if !listed.contains(&chunk) {
                    state.free_chunks.push(chunk);
                }
            } else {
                state.fresh_records.push(at..end);
            }
        }
        state.fresh_records.retain(|range| !range.is_empty());
        let spare = state.fresh_records.iter();
        state.spare_records = spare.map(|range| range.end - range.start).sum();
    }

    /// Joins adjacent freed ranges of records. A chunk without records in use becomes free for
    /// other uses, like a chunk without leaves.
    fn gather(&self, state: &mut State) {
        if state.freed_records == 0 || mutation::on("pm-record-chunks-kept") {
            return;
        }
        state.freed_records = 0;
        let freed = std::mem::take(&mut state.free_records);
        let freed = freed
            .into_iter()
            .flat_map(|(size, offsets)| offsets.into_iter().map(move |at| at..at + size));
        let mut ranges: Vec<Range<u64>> = freed.chain(state.fresh_records.drain(..)).collect();
        ranges.sort_unstable_by_key(|range| range.start);
        let mut joined: Vec<Range<u64>> = Vec::new();
        for range in ranges {
            let chunk = self.geometry.chunk_of(range.start);
            match joined.last_mut() {
                Some(last)
                    if last.end == range.start && self.geometry.chunk_of(last.start) == chunk =>
                {
                    last.end = range.end;
                }
                _ => joined.push(range),
            }
        }
        for range in joined {
            let size = range.end - range.start;
            match self.geometry.chunk_of(range.start) {
                Some(chunk) if size == self.geometry.chunk_bytes => {
                    state.spare_records -= size;
                    state.free_chunks.push(chunk);
                }
                _ if size >= self.geometry.chunk_bytes / 4 => state.fresh_records.push(range),
                _ => {
                    let same = state.free_records.entry(size).or_default();
                    same.push(range.start);
                }
            }
        }
    }

    /// Returns the number of chunks available for `room`. If there are too few, first looks for
    /// chunks that records have left.
    fn chunks_for(&self, state: &mut State, room: Room) -> usize {
        // A put must leave two, so it looks for more.
        if state.chunks_for(room) < if room == Room::Put { 3 } else { 1 } {
            self.gather(state);
        }
        state.chunks_for(room)
    }

    /// Returns whether a chunk may be taken. It adds `records` bytes for records, or leaves, or
    /// neither.
    fn may_take_chunk(&self, state: &mut State, room: Room, records: u64, leaves: bool) -> bool {
        let chunks = self.chunks_for(state, room);
        if chunks == 0 || room != Room::Put {
            return chunks > 0;
        }
        let spare = state.spare_records + records;
        let leaf = leaves || state.has_leaf(0, self.geometry.blocks_of_leaf());
        state.leaves_enough(chunks - 1, spare, self.reserve(), leaf)
    }

    /// Returns the error for a lack of space.
    pub(crate) fn full(&self, what: &'static str) -> Error {
        Error::PmFull {
            what,
            bytes: self.geometry.device_bytes,
        }
    }

    /// Takes a chunk for `used`. Also returns whether it is all zeros, because it was never used or
    /// was wiped.
    fn take_chunk(&self, state: &mut State, used: Use) -> Result<Option<(ChunkId, bool)>> {
        let Some(chunk) = state.free_chunks.pop() else {
            return Ok(None);
        };
        let before = state.uses[chunk.0 as usize];
        // A log can tell old entries from new ones, but it cannot tell the words of leaves and
        // records from entries: these may look like any time, and one in 16,384 of them passes a
        // check of fourteen bits. So they are wiped before a log gets the chunk.
        let wiped = matches!(before, Use::Leaves | Use::Records)
            && matches!(used, Use::Log(_))
            && !mutation::on("pm-log-over-records");
        if wiped {
            self.geometry.wipe(&self.medium, chunk)?;
        }
        self.medium.tell(|| Event::Takes {
            chunk: chunk.0,
            word: used.encode(chunk),
            log: matches!(used, Use::Log(_)),
        });
        self.geometry.set_use(&self.medium, chunk, used)?;
        state.uses[chunk.0 as usize] = used;
        announce(&self.medium, &self.geometry, chunk, used);
        Ok(Some((chunk, before == Use::Blank || wiped)))
    }

    /// Allocates a leaf. It is free again after a crash unless it was linked.
    pub(crate) fn allocate_leaf(&self, room: Room) -> Result<LeafId> {
        let mut state = self.state.lock();
        let blocks = self.geometry.blocks_of_leaf();
        if !state.has_leaf(0, blocks) {
            if !self.may_take_chunk(&mut state, room, 0, self.geometry.leaves_in_chunk() > 1) {
                return Err(self.full("another leaf"));
            }
            let taken = self.take_chunk(&mut state, Use::Leaves)?;
            let (chunk, _) = taken.ok_or_else(|| self.full("another leaf"))?;
            let start = self.geometry.offset(chunk) / BLOCK;
            let blocks = self.geometry.leaves_in_chunk() * self.geometry.blocks_of_leaf();
            state.fresh_leaves = start..start + blocks;
        } else if room == Room::Put && !state.has_leaf(1, blocks) {
            // The last one.
            let (chunks, spare) = (self.chunks_for(&mut state, room), state.spare_records);
            if !state.leaves_enough(chunks, spare, self.reserve(), false) {
                return Err(self.full("another leaf"));
            }
        }
        let leaf = state.free_leaves.pop().unwrap_or_else(|| {
            let leaf = LeafId(state.fresh_leaves.start);
            state.fresh_leaves.start += self.geometry.blocks_of_leaf();
            leaf
        });
        state.leaves += 1;
        let chunk = self.chunk_of(leaf);
        state.leaves_in[chunk.0 as usize] += 1;
        Ok(leaf)
    }

    /// Returns the chunk of a leaf that was allocated or recovered.
    fn chunk_of(&self, leaf: LeafId) -> ChunkId {
        let chunk = self.geometry.chunk_of(leaf.offset());
        chunk.expect("a leaf lies in a chunk")
    }

    /// Frees a leaf. Its removal from the chain must be durable. A chunk without leaves becomes
    /// free for other uses.
    pub(crate) fn free_leaf(&self, leaf: LeafId) {
        let mut state = self.state.lock();
        let chunk = self.chunk_of(leaf);
        state.leaves -= 1;
        state.free_leaves.push(leaf);
        state.leaves_in[chunk.0 as usize] -= 1;
        if state.leaves_in[chunk.0 as usize] == 0 {
            state
                .free_leaves
                .retain(|leaf| self.chunk_of(*leaf) != chunk);
            let fresh = LeafId(state.fresh_leaves.start);
            if !state.fresh_leaves.is_empty() && self.chunk_of(fresh) == chunk {
                state.fresh_leaves = 0..0;
            }
            state.free_chunks.push(chunk);
        }
    }

    /// Allocates a chunk for a log that begins at `time`, and returns whether it is all zeros.
    /// Returns `None` if no chunk is available for `room`.
    pub(crate) fn allocate_log(&self, time: Time, room: Room) -> Result<Option<(ChunkId, bool)>> {
        let mut state = self.state.lock();
        // Cleaning gives the chunk back. But a log that takes it again each time would never leave
        // any for records.
        let records = room != Room::Copies && state.spare_records < self.reserve();
        if self.chunks_for(&mut state, room) <= usize::from(records) {
            return Ok(None);
        }
        self.take_chunk(&mut state, Use::Log(time))
    }

    /// Allocates a chunk for a log whose entries identify themselves, so that there is no time to
    /// record. Also returns whether the chunk is all zeros. Returns `None` if no chunk is available
    /// for `room`.
    pub(crate) fn allocate_version_log(&self, room: Room) -> Result<Option<(ChunkId, bool)>> {
        let mut state = self.state.lock();
        if !self.may_take_chunk(&mut state, room, 0, false) {
            return Ok(None);
        }
        let last = state.free_chunks.last().copied();
        if let Some(chunk) =
            last.filter(|chunk| matches!(state.uses[chunk.0 as usize], Use::Log(_)))
        {
            // The directory already says so.
            state.free_chunks.pop();
            return Ok(Some((chunk, false)));
        }
        self.take_chunk(&mut state, Use::Log(Time(0)))
    }

    /// Frees a chunk of such a log when none of its entries is needed. In the directory it remains
    /// a log chunk until it is used for something else.
    pub(crate) fn free_version_log(&self, chunk: ChunkId) {
        self.state.lock().free_chunks.push(chunk);
    }

    /// Frees the log chunks begun before `floor`, and the records retired before it. The log floor
    /// must already be raised.
    pub(crate) fn floor_raised(&self, floor: Time) {
        let mut state = self.state.lock();
        let dead: Vec<ChunkId> = (0..)
            .map(ChunkId)
            .zip(&state.uses)
            .filter(|(_, used)| matches!(used, Use::Log(begun) if *begun < floor))
            .map(|(chunk, _)| chunk)
            .collect();
        // Chunks that are already free keep their position in the list.
        let listed: BTreeSet<ChunkId> = state.free_chunks.iter().copied().collect();
        let dead = dead.into_iter().filter(|chunk| !listed.contains(chunk));
        let mut dead: Vec<ChunkId> = dead.collect();
        // Lowest first, and before blank chunks, so that used chunks are reused before new ones.
        dead.reverse();
        state.free_chunks.extend(dead);
        give_up_retired(&mut state, floor);
    }

    /// Frees records retired before `floor`, because no log entry that refers to them is left.
    pub(crate) fn records_unnamed(&self, floor: Time) {
        give_up_retired(&mut self.state.lock(), floor);
    }

    /// Allocates `size` bytes for a record, a multiple of [`GRAIN`]. If a sizeable share of the
    /// space for records is free in pieces, these are split before another chunk is taken.
    pub(super) fn allocate_record(&self, size: u64, room: Room) -> Result<u64> {
        let mut state = self.state.lock();
        let mut found = self.cut_record(&mut state, size, room, false);
        if found.is_none()
            && self.may_take_chunk(&mut state, room, self.geometry.chunk_bytes - size, false)
            && let Some((chunk, _)) = self.take_chunk(&mut state, Use::Records)?
        {
            let start = self.geometry.offset(chunk);
            let end = start + self.geometry.chunk_bytes;
            state.fresh_records.push(start..end);
            state.spare_records += end - start;
            found = cut(&mut state.fresh_records, size);
        }
        if found.is_none() {
            self.gather(&mut state);
            found = self.cut_record(&mut state, size, room, true);
        }
        let offset = found.ok_or_else(|| self.full("another record"))?;
        state.spare_records -= size;
        state.record_bytes += size;
        Ok(offset)
    }

    /// Allocates a record in existing chunks of records. Larger ranges are split if `any` is set,
    /// or if many are free.
    fn cut_record(&self, state: &mut State, size: u64, room: Room, any: bool) -> Option<u64> {
        if state.spare_records < size {
            return None;
        }
        let spare = state.spare_records - size;
        if room == Room::Put && spare < self.reserve() {
            let chunks = self.chunks_for(state, room);
            let leaf = state.has_leaf(0, self.geometry.blocks_of_leaf());
            if !state.leaves_enough(chunks, spare, self.reserve(), leaf) {
                return None;
            }
        }
        let any = any || 8 * spare > state.record_bytes || self.is_tight_in(state);
        state
            .take_exactly(size)
            .or_else(|| cut(&mut state.fresh_records, size))
            .or_else(|| any.then(|| state.take_from_larger(size)).flatten())
    }

    /// Frees a record to which nothing refers.
    pub(super) fn free_record(&self, offset: u64, size: u64) {
        give_back(&mut self.state.lock(), offset, size);
    }

    /// Retires a record to which no leaf and no buffer refers any more. Log entries up to `time`
    /// may still do so.
    pub(super) fn retire_record(&self, offset: u64, size: u64, time: Time) {
        let mut state = self.state.lock();
        if mutation::on("pm-record-reused-at-once") && state.record_bytes >= size {
            return give_back(&mut state, offset, size);
        }
        // Times come from several threads in nearly ascending order. A late one just waits a little
        // longer.
        let time = state
            .retired
            .back()
            .map_or(time, |(last, ..)| time.max(*last));
        state.retired_bytes += size;
        state.retired.push_back((time, offset, size));
    }

    /// Returns the number of leaves in use.
    pub(crate) fn leaves(&self) -> u64 {
        self.state.lock().leaves
    }

    /// Returns the number of leaves in use, and of free chunks.
    pub(crate) fn leaves_and_free_chunks(&self) -> (u64, u64) {
        let state = self.state.lock();
        (state.leaves, state.free_chunks.len() as u64)
    }

    /// Returns whether few chunks are free: less than an eighth of all, or fewer than four.
    pub(crate) fn is_tight(&self) -> bool {
        self.is_tight_in(&self.state.lock())
    }

    fn is_tight_in(&self, state: &State) -> bool {
        state.free_chunks.len() < (self.geometry.chunks as usize / 8).max(4)
    }

    /// Counts a leaf that has lost keys, so that it may now fit together with another.
    pub(crate) fn leaf_shrank(&self) {
        self.shrunk.fetch_add(1, Relaxed);
    }

    /// Returns how often leaves have lost keys.
    pub(crate) fn shrunk(&self) -> u64 {
        self.shrunk.load(Relaxed)
    }

    /// Returns the bytes of log chunks that are not free.
    pub(crate) fn live_log_bytes(&self) -> u64 {
        let state = self.state.lock();
        let logs = state.uses.iter().filter(|used| matches!(used, Use::Log(_)));
        let free = state.free_chunks.iter();
        let dead = free.filter(|chunk| matches!(state.uses[chunk.0 as usize], Use::Log(_)));
        (logs.count() - dead.count()) as u64 * self.geometry.chunk_bytes
    }

    /// Returns the bytes of retired records that are not free yet, and of all records including
    /// those.
    pub(crate) fn retired_bytes(&self) -> (u64, u64) {
        let state = self.state.lock();
        (state.retired_bytes, state.record_bytes)
    }

    /// Returns the bytes of records in use, including retired ones.
    pub(crate) fn record_bytes(&self) -> u64 {
        self.state.lock().record_bytes
    }
}

fn announce(medium: &Medium, geometry: &Geometry, chunk: ChunkId, used: Use) {
    let class = match used {
        Use::Leaves => IoClass::Page,
        Use::Log(_) => IoClass::Log,
        // Records are the user's data at its final place.
        Use::Records => IoClass::Page,
        Use::Blank => return,
    };
    let start = geometry.offset(chunk);
    medium.set_class(start..start + geometry.chunk_bytes, class);
}

#[cfg(test)]
mod tests;
