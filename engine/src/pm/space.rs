//! Who uses which bytes of a persistent memory: chunks, leaves in chunks, records in chunks.
//!
//! Only the use of a whole chunk is written down, in the directory ([`super::layout`]). Leaves and records are free if recovery does
//! not reach them, so a crash leaks neither: what was handed out and not linked yet is free again.
//!
//! A record that is replaced may still be named by entries of the log, of which recovery must know the keys; so what is retired waits until
//! the log floor has passed the moment of that.

mod state;

pub(crate) use state::Room;

use std::collections::BTreeSet;
use std::ops::Range;

use crate::error::{Error, Result};
use crate::mutation;
use crate::sync::atomic::{AtomicU64, Ordering::Relaxed};
use crate::sync::{Arc, Mutex};
use crate::types::IoClass;

use super::layout::{BLOCK, ChunkId, Geometry, LeafId, Time, Use};
use super::medium::Medium;

use state::{Serves, State, cut, give_back, give_up_retired};

/// Records begin at multiples of this.
pub(super) const GRAIN: u64 = 16;

/// See the module's story.
pub(crate) struct Space {
    medium: Arc<Medium>,
    geometry: Geometry,
    state: Mutex<State>,
    shrunk: AtomicU64,
}

impl Space {
    /// What the directory says; leaves and records as [`Space::recovered`] will say.
    pub(crate) fn new(medium: Arc<Medium>, geometry: Geometry, uses: Vec<Use>) -> Space {
        for (chunk, used) in (0..).map(ChunkId).zip(&uses) {
            announce(&medium, &geometry, chunk, *used);
        }
        Space {
            medium,
            geometry,
            state: Mutex::new(State::new(uses)),
            // Of before the opening nothing is known.
            shrunk: AtomicU64::new(1),
        }
    }

    pub(crate) fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// From now on puts leave room for deletes; and for copies, if the log is cleaned by them.
    pub(crate) fn serve(&self, copies: bool) {
        self.state.lock().serves = if copies {
            Serves::WithCopies
        } else {
            Serves::WithoutCopies
        };
    }

    /// Bytes for records that puts leave to deletes: for a few keys that log entries name. The next
    /// cleaning gives them back.
    fn reserve(&self) -> u64 {
        if mutation::on("pm-puts-take-all") {
            return 0;
        }
        (self.geometry.chunk_bytes / 16).clamp(64, 4096)
    }

    /// What a chunk is used for.
    pub(crate) fn use_of(&self, chunk: ChunkId) -> Use {
        self.state.lock().uses[chunk.0 as usize]
    }

    /// Whether a leaf may lie there.
    pub(crate) fn holds_leaves(&self, leaf: LeafId) -> bool {
        let offset = leaf.0.checked_mul(BLOCK);
        let chunk = offset.and_then(|offset| self.geometry.chunk_of(offset));
        chunk.is_some_and(|chunk| {
            let block = leaf.0 - self.geometry.offset(chunk) / BLOCK;
            block.is_multiple_of(self.geometry.blocks_of_leaf())
                && self.use_of(chunk) == Use::Leaves
        })
    }

    /// Bytes from there to the end of its chunk, if a record may begin there: at multiples of [`GRAIN`], in chunks of records.
    pub(super) fn room_of_record(&self, offset: u64) -> Option<u64> {
        let chunk = self.geometry.chunk_of(offset)?;
        let may_be = offset.is_multiple_of(GRAIN) && self.use_of(chunk) == Use::Records;
        may_be.then(|| self.geometry.offset(chunk) + self.geometry.chunk_bytes - offset)
    }

    /// The log chunks, by number.
    pub(crate) fn log_chunks(&self) -> Vec<(ChunkId, Time)> {
        let state = self.state.lock();
        let chunks = (0..).map(ChunkId).zip(&state.uses);
        let logs = chunks.filter_map(|(chunk, used)| match used {
            Use::Log(begun) => Some((chunk, *begun)),
            _ => None,
        });
        logs.collect()
    }

    /// These leaves are reachable, and chunks of logs that were begun before `floor` are dead. Other leaves and chunks without any are free.
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
        // The lowest first.
        chunks.reverse();
        leaves.reverse();
        state.free_chunks = chunks;
        state.free_leaves = leaves;
    }

    /// These are all records in use, ascending. The last that is said of them is what counts.
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

    /// Puts freed ranges of records together that lie side by side. A chunk of which nothing is in
    /// use is free for other uses, as one of leaves is without leaves.
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

    /// Chunks that are free for this; if there are none, those too that records have left.
    fn chunks_for(&self, state: &mut State, room: Room) -> usize {
        // A put must leave two, so it looks for more.
        if state.chunks_for(room) < if room == Room::Put { 3 } else { 1 } {
            self.gather(state);
        }
        state.chunks_for(room)
    }

    /// Whether a chunk may be taken: for records, which then have more of them, for leaves, or for
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

    /// The error that says so.
    pub(crate) fn full(&self, what: &'static str) -> Error {
        Error::PmFull {
            what,
            bytes: self.geometry.device_bytes,
        }
    }

    /// Takes a chunk for `used`; also says whether it is all zeros, as it was never used before or held no log's entries.
    fn take_chunk(&self, state: &mut State, used: Use) -> Result<Option<(ChunkId, bool)>> {
        let Some(chunk) = state.free_chunks.pop() else {
            return Ok(None);
        };
        let before = state.uses[chunk.0 as usize];
        // A log can tell old entries from new ones, but not the words of leaves and records from entries: those may say any time, and a check of fourteen
        // bits fits one in 16,384 of them. So they go before the chunk is a log's.
        let wiped = matches!(before, Use::Leaves | Use::Records)
            && matches!(used, Use::Log(_))
            && !mutation::on("pm-log-over-records");
        if wiped {
            self.geometry.wipe(&self.medium, chunk)?;
        }
        self.geometry.set_use(&self.medium, chunk, used)?;
        state.uses[chunk.0 as usize] = used;
        announce(&self.medium, &self.geometry, chunk, used);
        Ok(Some((chunk, before == Use::Blank || wiped)))
    }

    /// A leaf for the caller; free again after a crash unless it was linked.
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

    /// The chunk of a leaf that was allocated or recovered.
    fn chunk_of(&self, leaf: LeafId) -> ChunkId {
        let chunk = self.geometry.chunk_of(leaf.offset());
        chunk.expect("a leaf lies in a chunk")
    }

    /// The leaf is linked no longer, durably. A chunk without leaves is free for other uses.
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

    /// A chunk for a log that begins at `time`, and whether it is all zeros; `None` if no chunk is
    /// free for this.
    pub(crate) fn allocate_log(&self, time: Time, room: Room) -> Result<Option<(ChunkId, bool)>> {
        let mut state = self.state.lock();
        // A cleaning gives it back; but a log that takes it again each time would never leave
        // records any.
        let records = room != Room::Copies && state.spare_records < self.reserve();
        if self.chunks_for(&mut state, room) <= usize::from(records) {
            return Ok(None);
        }
        self.take_chunk(&mut state, Use::Log(time))
    }

    /// A chunk for a log whose entries are known by themselves, so that there is no time to write
    /// down; and whether it is all zeros. `None` if no chunk is free for this.
    pub(crate) fn allocate_version_log(&self, room: Room) -> Result<Option<(ChunkId, bool)>> {
        let mut state = self.state.lock();
        if !self.may_take_chunk(&mut state, room, 0, false) {
            return Ok(None);
        }
        let last = state.free_chunks.last().copied();
        if let Some(chunk) =
            last.filter(|chunk| matches!(state.uses[chunk.0 as usize], Use::Log(_)))
        {
            // The directory says so already.
            state.free_chunks.pop();
            return Ok(Some((chunk, false)));
        }
        self.take_chunk(&mut state, Use::Log(Time(0)))
    }

    /// Nothing that is in a chunk of such a log is needed. It stays one to the directory until it is used for something else.
    pub(crate) fn free_version_log(&self, chunk: ChunkId) {
        self.state.lock().free_chunks.push(chunk);
    }

    /// The log floor has been raised to `floor`: log chunks from before are free, and so is what was retired before.
    pub(crate) fn floor_raised(&self, floor: Time) {
        let mut state = self.state.lock();
        let dead: Vec<ChunkId> = (0..)
            .map(ChunkId)
            .zip(&state.uses)
            .filter(|(_, used)| matches!(used, Use::Log(begun) if *begun < floor))
            .map(|(chunk, _)| chunk)
            .collect();
        // Those that are free already stay where they are in the list.
        let listed: BTreeSet<ChunkId> = state.free_chunks.iter().copied().collect();
        let dead = dead.into_iter().filter(|chunk| !listed.contains(chunk));
        let mut dead: Vec<ChunkId> = dead.collect();
        // The lowest first, and before those that are blank: what was used once is used again.
        dead.reverse();
        state.free_chunks.extend(dead);
        give_up_retired(&mut state, floor);
    }

    /// As far as records go: nothing that is older than `floor` names any.
    pub(crate) fn records_unnamed(&self, floor: Time) {
        give_up_retired(&mut self.state.lock(), floor);
    }

    /// Room for a record of `size` bytes, a multiple of [`GRAIN`]. Where a share of the room for
    /// records is free in pieces they are cut up before another chunk is taken.
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

    /// Room for a record in chunks of records; of larger ranges if `any`, or if many are free.
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

    /// Nothing names this record.
    pub(super) fn free_record(&self, offset: u64, size: u64) {
        give_back(&mut self.state.lock(), offset, size);
    }

    /// No leaf and no buffer names this record any more; the log may, up to entries of `time`.
    pub(super) fn retire_record(&self, offset: u64, size: u64, time: Time) {
        let mut state = self.state.lock();
        if mutation::on("pm-record-reused-at-once") && state.record_bytes >= size {
            return give_back(&mut state, offset, size);
        }
        // Times come from several threads, in nearly this order; what is late waits a little longer.
        let time = state
            .retired
            .back()
            .map_or(time, |(last, ..)| time.max(*last));
        state.retired_bytes += size;
        state.retired.push_back((time, offset, size));
    }

    /// Leaves in use.
    pub(crate) fn leaves(&self) -> u64 {
        self.state.lock().leaves
    }

    /// Leaves in use, and chunks that are free.
    pub(crate) fn leaves_and_free_chunks(&self) -> (u64, u64) {
        let state = self.state.lock();
        (state.leaves, state.free_chunks.len() as u64)
    }

    /// Whether few chunks are free: less than an eighth of all, or than four.
    pub(crate) fn is_tight(&self) -> bool {
        self.is_tight_in(&self.state.lock())
    }

    fn is_tight_in(&self, state: &State) -> bool {
        state.free_chunks.len() < (self.geometry.chunks as usize / 8).max(4)
    }

    /// A leaf has lost keys: there may be others that it fits in.
    pub(crate) fn leaf_shrank(&self) {
        self.shrunk.fetch_add(1, Relaxed);
    }

    /// How often that was so.
    pub(crate) fn shrunk(&self) -> u64 {
        self.shrunk.load(Relaxed)
    }

    /// Bytes of log chunks that are not free.
    pub(crate) fn live_log_bytes(&self) -> u64 {
        let state = self.state.lock();
        let logs = state.uses.iter().filter(|used| matches!(used, Use::Log(_)));
        let free = state.free_chunks.iter();
        let dead = free.filter(|chunk| matches!(state.uses[chunk.0 as usize], Use::Log(_)));
        (logs.count() - dead.count()) as u64 * self.geometry.chunk_bytes
    }

    /// Bytes of records that wait until the log names them no longer, and of all records, those included.
    pub(crate) fn retired_bytes(&self) -> (u64, u64) {
        let state = self.state.lock();
        (state.retired_bytes, state.record_bytes)
    }

    /// Bytes of records in use, retired ones included.
    pub(crate) fn record_bytes(&self) -> u64 {
        self.state.lock().record_bytes
    }
}

fn announce(medium: &Medium, geometry: &Geometry, chunk: ChunkId, used: Use) {
    let class = match used {
        Use::Leaves => IoClass::Page,
        Use::Log(_) => IoClass::Log,
        // Records are the user's data at their home.
        Use::Records => IoClass::Page,
        Use::Blank => return,
    };
    let start = geometry.offset(chunk);
    medium.set_class(start..start + geometry.chunk_bytes, class);
}

#[cfg(test)]
mod tests;
