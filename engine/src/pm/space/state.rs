//! What is free and what is in use, as [`super::Space`] keeps it in DRAM.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use crate::pm::layout::{ChunkId, LeafId, Time, Use};

/// What room is taken for. Puts leave some of it to what makes room: to deletes, and to the copies
/// with which a log is cleaned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// A put: it leaves a leaf, and [`super::Space::reserve`] bytes for records, or chunks for them. A
    /// delete in a full leaf splits it before the halves are merged again, and its log entry may
    /// name a record.
    Put,
    /// A delete: it takes what puts leave.
    Delete,
    /// Entries that cleaning copies: a log that has grown into all other chunks is cleaned into the
    /// last one.
    Copies,
}

impl Room {
    /// For a change that deletes, or for one that does not.
    pub(crate) fn of(delete: bool) -> Room {
        if delete { Room::Delete } else { Room::Put }
    }
}

/// Whether a log is cleaned by copying, for which a chunk is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Serves {
    /// Not yet, or whoever recovers: all room is anybody's.
    #[default]
    Nobody,
    WithCopies,
    WithoutCopies,
}

pub(super) struct State {
    pub(super) uses: Vec<Use>,
    /// Chunks that hold nothing, the next one to use last.
    pub(super) free_chunks: Vec<ChunkId>,
    pub(super) serves: Serves,
    /// Leaves to reuse, the next one last.
    pub(super) free_leaves: Vec<LeafId>,
    /// The rest of the newest chunk of leaves, in blocks.
    pub(super) fresh_leaves: Range<u64>,
    /// Leaves in use, by chunk, and of all chunks.
    pub(super) leaves_in: Vec<u32>,
    pub(super) leaves: u64,
    /// Ranges of record chunks that were never handed out since the opening.
    pub(super) fresh_records: Vec<Range<u64>>,
    /// Freed ranges, by size; there is no size without any.
    pub(super) free_records: BTreeMap<u64, Vec<u64>>,
    /// Bytes of all these ranges, and of those that were freed since neighbours were last put
    /// together.
    pub(super) spare_records: u64,
    pub(super) freed_records: u64,
    pub(super) record_bytes: u64,
    /// Offset, size and time of records that the log may still name; in order of time.
    pub(super) retired: VecDeque<(Time, u64, u64)>,
    pub(super) retired_bytes: u64,
}

impl State {
    /// The state before recovery has said what is free: of `uses` chunks none is.
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

    /// Chunks that are free, and not kept for others.
    pub(super) fn chunks_for(&self, room: Room) -> usize {
        let kept = self.serves == Serves::WithCopies && room != Room::Copies;
        self.free_chunks.len().saturating_sub(usize::from(kept))
    }

    /// Whether a put that leaves so many chunks, bytes for records and leaves leaves deletes
    /// enough.
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

    /// Whether there is a leaf in chunks of leaves.
    pub(super) fn has_leaf(&self, besides: usize, blocks: u64) -> bool {
        let fresh = (self.fresh_leaves.end - self.fresh_leaves.start) / blocks;
        self.free_leaves.len() as u64 + fresh > besides as u64
    }

    /// Takes a freed range of exactly that size.
    pub(super) fn take_exactly(&mut self, size: u64) -> Option<u64> {
        let offsets = self.free_records.get_mut(&size)?;
        let offset = offsets.pop();
        if offsets.is_empty() {
            self.free_records.remove(&size);
        }
        offset
    }

    /// Takes the beginning of the smallest freed range that is larger.
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

/// What was retired before `floor` is free.
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

/// The first of the ranges that is large enough gives its beginning; from the last one, which is the newest, on.
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
