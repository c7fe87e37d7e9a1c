//! What a page takes: the constants and operators of `LayoutState.tla` that say so.

use std::fmt::Debug;

use super::room::N;
use super::state::Layout;

/// The fences of a page: the lower and the upper one.
pub type Fences = (N, N);

/// Rooms and lengths. Those of the bounded models are in their configuration, and those of an
/// engine follow from its pages.
pub trait Sizes: Debug + Send + Sync {
    /// The bytes that a general page has for so many records (`RoomIn`).
    fn room(&self, layout: Layout, fences: Fences, records: usize) -> N;

    /// The bytes that a record takes there beside its value (`RecordBytes`).
    fn beside(&self, layout: Layout, fences: Fences) -> N;

    /// The number of places of a dense page with this lower fence, for values of this length
    /// (`Places`).
    fn places(&self, lower: N, len: N) -> N;

    /// Whether dense pages are semi-dense (`Semi`).
    fn is_semi(&self) -> bool;

    /// The bytes that a semi-dense page with these fences has beside its places (`RoomOfSemi`).
    /// `None` if it cannot have a place for each key between them.
    fn room_of_semi(&self, fences: Fences) -> Option<N>;

    /// The bytes that a record takes of them beside its value (`BesideInSemi`).
    fn beside_in_semi(&self) -> N;

    /// Where a page is split so that its left side can become dense (`EndOfPartition`).
    fn end_of_partition(&self, lower: N, len: N) -> N;

    /// The fence between two neighbours (`Separator`).
    fn separator(&self, left: N, right: N) -> N;

    /// The number of keys left of a split at the median, which has `n` of them (`Near`).
    fn near(&self, keys: &[N], n: usize) -> usize;

    /// Whether a dense page with so many records, whose values have this length, is nearly empty
    /// (`IsNearlyEmpty`).
    fn is_nearly_empty(&self, records: usize, len: N, fences: Fences) -> bool;
}

/// The sizes of a bounded model.
#[derive(Debug)]
pub(super) struct Bounded {
    pub(super) least: N,
    pub(super) top: N,
    pub(super) room: N,
    pub(super) key_size: N,
    pub(super) fence: N,
    pub(super) few: usize,
    pub(super) semi: bool,
    /// Whether fences take bytes of general pages, and splits are made before the median
    /// (`MCRoomIn`, `MCRecordBytes`, `MCNear`).
    pub(super) fenced: bool,
    /// Whether the fence before key 2 takes all the room of a semi-dense page below it
    /// (`MCRoomOfSemi`).
    pub(super) semi_fenced: bool,
}

impl Bounded {
    fn fences(&self, (lower, upper): Fences) -> N {
        let all = [lower, upper].into_iter();
        all.filter(|fence| *fence != self.least && *fence != self.top)
            .count() as N
    }
}

impl Sizes for Bounded {
    fn room(&self, _layout: Layout, fences: Fences, _records: usize) -> N {
        match self.fenced {
            true => self.room - self.fences(fences),
            false => self.room,
        }
    }

    fn beside(&self, layout: Layout, fences: Fences) -> N {
        match self.fenced {
            true => {
                self.key_size + 2 * N::from(layout == Layout::Other)
                    - N::from(self.fences(fences) == 2)
            }
            false => self.key_size,
        }
    }

    fn places(&self, lower: N, len: N) -> N {
        let fence = if lower == self.least { 0 } else { self.fence };
        (self.room - fence) / len
    }

    fn is_semi(&self) -> bool {
        self.semi
    }

    fn room_of_semi(&self, (lower, upper): Fences) -> Option<N> {
        let room = self.room.checked_sub(upper - lower);
        room.filter(|_| upper != self.top && !(self.semi_fenced && upper == 2))
    }

    fn beside_in_semi(&self) -> N {
        0
    }

    fn end_of_partition(&self, lower: N, len: N) -> N {
        lower + self.places(lower, len)
    }

    fn separator(&self, _left: N, right: N) -> N {
        right
    }

    fn near(&self, _keys: &[N], n: usize) -> usize {
        if self.fenced && n > 1 { n - 1 } else { n }
    }

    fn is_nearly_empty(&self, records: usize, _len: N, _fences: Fences) -> bool {
        records <= self.few
    }
}
