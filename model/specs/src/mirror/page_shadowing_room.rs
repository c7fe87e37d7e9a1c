//! The sizes of a state of `PageShadowing` for the bounded models, small and flat. A configuration
//! that needs more is refused.
//!
//! The mirror's source is compiled twice, here and in [`super::wide`]; only the sizes in this file
//! differ.

/// LSNs, values, counts.
pub(crate) type N = u8;
/// A set of segments, spots, clients, pages or writes.
pub(crate) type Set = u8;

pub(crate) const CLIENTS: usize = 2;
pub(crate) const PAGES: usize = 2;
pub(crate) const SEGMENTS: usize = 3;
pub(crate) const LOG: usize = 7;
/// The content of a block that has decayed. It fits in a block's four bits and is not a value.
pub(crate) const ROTTEN: N = 0xf;
/// Versions of a block between two flushes. A page is written at most as often as there are
/// records, and trimmed once for each.
pub(crate) const VERSIONS: usize = 8;

/// A block: 24 bits. The default is a block of zeros.
///
/// ```text
/// first of a slot   LSN, and all values that its checksum vouches for
/// others            one value
/// log block         LSN, the base's LSN, the segments that differ, their values
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct Block(u32);

impl Block {
    pub(super) const TRIMMED: Self = Self(1 << 31);

    pub(super) fn new(lsn: N, base: N, dirty: Set, values: [N; SEGMENTS]) -> Self {
        let [a, b, c] = values.map(u32::from);
        let rest = u32::from(dirty) << 12 | c << 8 | b << 4 | a;
        Self(u32::from(lsn) << 20 | u32::from(base) << 16 | rest)
    }

    fn nibble(self, at: u32) -> N {
        (self.0 >> at & 0xf) as N
    }

    pub(super) fn lsn(self) -> N {
        self.nibble(20)
    }

    pub(super) fn base(self) -> N {
        self.nibble(16)
    }

    pub(super) fn dirty(self) -> Set {
        self.nibble(12)
    }

    pub(super) fn value(self, i: usize) -> N {
        self.nibble(4 * i as u32)
    }
}
