//! The state of [`super::Space`] in DRAM: what is free and what is in use.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use crate::pm::layout::{ChunkId, LeafId, Time, Use};

/// The purpose for which space is taken. Puts leave some space to operations that make room:
/// deletes, and the copies made when a log is cleaned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// A put. It leaves a leaf, and [`super::Space::reserve`] bytes for records, or chunks for
    /// both. A delete needs them: in a full leaf it splits the leaf before the halves are merged
    /// again, and its log entry may refer to a record.
    Put,
    /// A delete. It may take what puts leave.
    Delete,
    /// A log entry that cleaning copies. If a log has grown into all other chunks, it is cleaned
    /// into the last one.
    Copies,
}

impl Room {
    /// Returns the purpose of a change, depending on whether it deletes.
    pub(crate) fn of(delete: bool) -> Room {
        if delete { Room::Delete } else { Room::Put }
    }
}

/// Whether the log is cleaned by copying, for which one chunk is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Serves {
    /// Not known yet, as during recovery: any operation may take all space.
    #[default]
    Nobody,
    WithCopies,
    WithoutCopies,
}

pub(super) struct State {
    pub(super) uses: Vec<Use>,
    /// Free chunks. The next one to use is last.
    pub(super) free_chunks: Vec<ChunkId>,
    pub(super) serves: Serves,
    /// Leaves to reuse. The next one is last.
    pub(super) free_leaves: Vec<LeafId>,
    /// The unused rest of the newest chunk of leaves, in blocks.
    pub(super) fresh_leaves: Range<u64>,
    /// The number of leaves in use by chunk, and in all.
    pub(super) leaves_in: Vec<u32>,
    pub(super) leaves: u64,
    /// Ranges in record chunks that have not been allocated since the store was opened.
    pub(super) fresh_records: Vec<Range<u64>>,
    /// Freed ranges by size. Sizes without ranges have no entry.
    pub(super) free_records: BTreeMap<u64, Vec<u64>>,
    /// The bytes of all these ranges, and of those freed since adjacent ranges were last joined.
    pub(super) spare_records: u64,
    pub(super) freed_records: u64,
    pub(super) record_bytes: u64,
    /// Time, offset and size of records to which the log may still refer, in order of time.
    pub(super) retired: VecDeque<(Time, u64, u64)>,
    pub(super) retired_bytes: u64,
}

impl State {
    /// Creates the state before recovery: no chunk is free.
    pub(super) fn new(uses: Vec<Use>) -> State {
        State {
            free_chunks: Vec::new(),
            serves: Serves::default(),
            leaves_in: vec![0; uses.len()],
            uses,
            free_leaves: Vec::new(),
            fresh_leaves: 0..0,
            leaves: 0,
            fresh_records: Vec::new(),
            free_records: BTreeMap::new(),
            spare_records: 0,
            freed_records: 0,
            record_bytes: 0,
            retired: VecDeque::new(),
            retired_bytes: 0,
        }
    }

    /// Returns the number of free chunks that `room` may take.
    pub(super) fn chunks_for(&self, room: Room) -> usize {
        let kept = self.serves == Serves::WithCopies && room != Room::Copies;
        self.free_chunks.len().saturating_sub(usize::from(kept))
    }

    /// Returns whether deletes have enough left after a put that leaves `chunks` chunks, `records`
    /// bytes for records and, if `leaf` is set, a leaf.
    pub(super) fn leaves_enough(
        &self,
        chunks: usize,
        records: u64,
        reserve: u64,
        leaf: bool,
    ) -> bool {
        let wanted = usize::from(records < reserve) + usize::from(!leaf);
        self.serves == Serves::Nobody || chunks >= wanted
    }

    /// Returns whether more than `besides` leaves are free in chunks of leaves.
    pub(super) fn has_leaf(&self, besides: usize, blocks: u64) -> bool {
        let fresh = (self.fresh_leaves.end - self.fresh_leaves.start) / blocks;
        self.free_leaves.len() as u64 + fresh > besides as u64
    }

    /// Takes a freed range of exactly `size` bytes.
    pub(super) fn take_exactly(&mut self, size: u64) -> Option<u64> {
        let offsets = self.free_records.get_mut(&size)?;
        let offset = offsets.pop();
        if offsets.is_empty() {
            self.free_records.remove(&size);
        }
        offset
    }

    /// Takes the beginning of the smallest freed range of at least `size` bytes.
    pub(super) fn take_from_larger(&mut self, size: u64) -> Option<u64> {
        let larger = *self.free_records.range(size..).next()?.0;
        let offset = self.take_exactly(larger)?;
        if larger > size {
            let rest = self.free_records.entry(larger - size).or_default();
            rest.push(offset + size);
        }
        Some(offset)
    }
}

/// Frees all records retired before `floor`.
pub(super) fn give_up_retired(state: &mut State, floor: Time) {
    while let Some((time, offset, size)) = state.retired.front().copied() {
        if time >= floor {
            break;
        }
        state.retired.pop_front();
        state.retired_bytes -= size;
        give_back(state, offset, size);
    }
}

pub(super) fn give_back(state: &mut State, offset: u64, size: u64) {
    state.record_bytes -= size;
    state.spare_records += size;
    state.freed_records += size;
    state.free_records.entry(size).or_default().push(offset);
}

/// Cuts `size` bytes off the beginning of a range that is large enough, trying the last and newest
/// range first.
pub(super) fn cut(ranges: &mut Vec<Range<u64>>, size: u64) -> Option<u64> {
    let at = ranges
        .iter()
        .rposition(|range| range.end - range.start >= size)?;
    let offset = ranges[at].start;
    ranges[at].start += size;
    if ranges[at].is_empty() {
        ranges.swap_remove(at);
    }
    Some(offset)
}
