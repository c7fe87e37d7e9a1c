//! The sizes of a state of `PageShadowing` for the recordings of a real engine, on a store of a few
//! leaves.
//!
//! An episode must not write more than [`LOG`] records, including those that created its pages.

/// LSNs, values, counts.
pub(crate) type N = u16;
/// A set of segments, spots, clients, pages or writes.
pub(crate) type Set = u32;

pub(crate) const CLIENTS: usize = 4;
/// One and a half times as many as the engine's smallest cache has frames.
pub(crate) const PAGES: usize = 24;
/// The number of blocks of the largest page.
pub(crate) const SEGMENTS: usize = 4;
pub(crate) const LOG: usize = 2048;
/// The content of a block that has decayed. It is neither a value nor a pending read.
pub(crate) const ROTTEN: N = N::MAX - 1;
/// Versions of a block between two flushes. After a failed flush, the versions that it forgot
/// remain until the block is written again.
pub(crate) const VERSIONS: usize = 16;

/// A block. The default is a block of zeros.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct Block {
    lsn: N,
    base: N,
    values: [N; SEGMENTS],
    dirty: u8,
    trimmed: bool,
}

impl Block {
    pub(super) const TRIMMED: Self = Self {
        lsn: 0,
        base: 0,
        values: [0; SEGMENTS],
        dirty: 0,
        trimmed: true,
    };

    pub(super) fn new(lsn: N, base: N, dirty: Set, values: [N; SEGMENTS]) -> Self {
        Self {
            lsn,
            base,
            values,
            dirty: dirty as u8,
            trimmed: false,
        }
    }

    pub(super) fn lsn(self) -> N {
        self.lsn
    }

    pub(super) fn base(self) -> N {
        self.base
    }

    pub(super) fn dirty(self) -> Set {
        self.dirty.into()
    }

    pub(super) fn value(self, i: usize) -> N {
        self.values[i]
    }
}
