//! The 8-byte header before every block: its state, its size, and its page (Bf-Tree §4.3).
//!
//! ```text
//!  63                      24 23            8 7   3 2     0
//! +--------------------------+---------------+-----+-------+
//! | page id                  | footprint / 8 |  0  | state |  footprint: header and payload
//! +--------------------------+---------------+-----+-------+
//!
//! none -> allocated -> ready -> listed -> allocated ..           the owner, under its page's lock
//!         allocated -> listed | tombstone                        an allocation that was dropped
//!                      ready -> tombstone                        copied away near the head
//!                                                                (padding begins as a tombstone)
//!         ready | listed | tombstone -> evicted -> (head passes) the evictor that claimed it
//! ```
//!
//! Only `allocated -> ready` happens outside of the ring's mutex; the evictor that waits for it
//! polls the word.

use crate::PageId;

/// The state of a block: `States` of `RingMemory.tla` without `none`, which is never read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Allocated, but not yet in the mapping table.
    Allocated = 1,
    /// The mini-page of a page.
    Ready = 2,
    /// Free, and on the free list of its size.
    Listed = 3,
    /// Free, but not reusable until the head has passed it; also padding.
    Tombstone = 4,
    /// Evicted: the head may pass it.
    Evicted = 5,
}

/// A header word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Header(pub(super) u64);

const UNIT: u64 = 8;

/// Bytes of a header.
pub(super) const HEADER: u64 = 8;

/// The largest footprint that a header can hold.
pub(super) const LARGEST: u64 = 0xffff * UNIT;

impl Header {
    pub(super) fn new(state: State, footprint: u64, page: PageId) -> Self {
        debug_assert!(
            footprint.is_multiple_of(UNIT) && (UNIT..=LARGEST).contains(&footprint),
            "a footprint of {footprint} bytes"
        );
        Self(page.0 << 24 | (footprint / UNIT) << 8 | state as u64)
    }

    /// The header of a block that belongs to no page.
    pub(super) fn dead(state: State, footprint: u64) -> Self {
        Self::new(state, footprint, PageId(0))
    }

    /// The block's state; `None` if the word is not a header.
    pub(super) fn state(self) -> Option<State> {
        const STATES: [State; 5] = [
            State::Allocated,
            State::Ready,
            State::Listed,
            State::Tombstone,
            State::Evicted,
        ];
        STATES
            .into_iter()
            .find(|state| *state as u64 == self.0 & 0xff)
    }

    pub(super) fn is(self, state: State) -> bool {
        self.0 & 0xff == state as u64
    }

    pub(super) fn footprint(self) -> u64 {
        (self.0 >> 8 & 0xffff) * UNIT
    }

    pub(super) fn page(self) -> PageId {
        PageId(self.0 >> 24)
    }
}

impl std::fmt::Debug for Header {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.state() {
            Some(state) => write!(f, "{state:?} {} B of {}", self.footprint(), self.page()),
            None => write!(f, "no header ({:#x})", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_tells_what_was_put_in() {
        for footprint in [8, 72, 4168, LARGEST] {
            for page in [0, 1, (1 << 40) - 1] {
                let header = Header::new(State::Ready, footprint, PageId(page));
                assert!(header.is(State::Ready) && !header.is(State::Listed));
                assert_eq!(header.state(), Some(State::Ready));
                assert_eq!(
                    (header.footprint(), header.page()),
                    (footprint, PageId(page))
                );
            }
        }
        assert_eq!(Header(0).state(), None);
    }
}
