//! A leaf of LodgeTree: 512 bytes, 27 slots (LodgeTree §III-A, Figure 4; §IV-A).
//!
//! ```text
//! 0    header word: bitmap 27 | use_n 1 | stamp 36   the one word that commits a merge, or a split
//! 8    low                        the least key that the leaf may hold: written before the
//!                                 leaf is linked, and never again
//! 16   next0 | 24 next1           the leaf to the right is that of use_n
//! 32   kinds: indirect bits 27, of low 1             of a slot: valid if its bit in the bitmap is
//! 40   not used
//! 80   slots 27 × (key 8, value 8)
//! ```
//!
//! 27 · 16 + 80 bytes are 512, as in the paper, which names bitmap, `next0`, `next1` and `use_n`
//! among the 80. The **stamp** and **low** belong to the repair (`specs/FINDINGS.md`,
//! SurrogateBuffer 1 and 6). All log entries of the leaf's keys with numbers up to the stamp are in
//! the leaf, and which keys are the leaf's must not depend on its contents. Bitmap, use_n and stamp
//! are in one word, because a split changes the first two together (5). So there is no room in that
//! word for the indirect bits of [`crate::pm::leaf`]. They are written with the pairs, before the
//! fence that the header word waits for.

use crate::options::limits::LODGE_LEAF_SLOTS;
use crate::pm::events::SlotWords;
use crate::pm::layout::{LeafId, Time};
use crate::pm::leaf::Slot;

/// Slots of a leaf.
pub(crate) const SLOTS: usize = LODGE_LEAF_SLOTS;
/// The size of a leaf in bytes.
pub(crate) const BYTES: usize = 512;
/// Bytes before the slots.
pub(crate) const HEADER_BYTES: usize = 80;
/// Bytes of a slot.
pub(crate) const SLOT_BYTES: usize = 16;
/// Number of bits of stamps and of log entries' numbers. At a million writes a second, they last
/// for most of a day; the store reports when they run out.
pub(crate) const NUMBER_BITS: u32 = 36;

/// Offsets of words in a leaf.
pub(crate) const LOW: u64 = 8;
const NEXT: u64 = 16;
pub(crate) const KINDS: u64 = 32;

const ALL: u64 = (1 << SLOTS) - 1;
const USE: u64 = 1 << SLOTS;

/// A set of slots.
pub(crate) type Bits = u32;

/// A leaf's header word, which commits changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Header(pub(crate) u64);

impl Header {
    pub(crate) fn new(bits: Bits, use_n: u64, stamp: Time) -> Header {
        debug_assert!(u64::from(bits) & !ALL == 0 && use_n < 2 && stamp.0 >> NUMBER_BITS == 0);
        Header(u64::from(bits) | use_n << SLOTS | stamp.0 << (SLOTS + 1))
    }

    /// Returns the slots in use.
    pub(crate) fn bits(self) -> Bits {
        (self.0 & ALL) as Bits
    }

    pub(crate) fn count(self) -> usize {
        self.bits().count_ones() as usize
    }

    /// Returns which of the two sibling pointers is valid.
    pub(crate) fn use_n(self) -> u64 {
        (self.0 & USE) >> SLOTS
    }

    /// Returns the stamp: all entries of the leaf's keys with numbers up to it are in the leaf.
    pub(crate) fn stamp(self) -> Time {
        Time(self.0 >> (SLOTS + 1))
    }

    pub(crate) fn with_bits(self, bits: Bits) -> Header {
        Header::new(bits, self.use_n(), self.stamp())
    }
}

/// Returns the offset of a sibling pointer in the leaf.
pub(crate) fn next_at(use_n: u64) -> u64 {
    NEXT + 8 * use_n
}

/// Returns the range of a slot's bytes in the leaf.
pub(crate) fn slot_at(at: usize) -> std::ops::Range<usize> {
    let start = HEADER_BYTES + at * SLOT_BYTES;
    start..start + SLOT_BYTES
}

/// Returns the members of a set of slots, ascending.
pub(crate) fn members(bits: Bits) -> impl Iterator<Item = usize> {
    (0..SLOTS).filter(move |at| bits >> at & 1 == 1)
}

/// The bytes of a leaf.
#[derive(Clone)]
pub(crate) struct Image(pub(crate) [u8; BYTES]);

impl Image {
    pub(crate) fn empty() -> Image {
        Image([0; BYTES])
    }

    pub(crate) fn word(&self, at: u64) -> u64 {
        let at = at as usize;
        u64::from_le_bytes(self.0[at..at + 8].try_into().expect("eight bytes"))
    }

    pub(crate) fn set_word(&mut self, at: u64, word: u64) {
        let at = at as usize;
        self.0[at..at + 8].copy_from_slice(&word.to_le_bytes());
    }

    pub(crate) fn header(&self) -> Header {
        Header(self.word(0))
    }

    /// Returns the leaf to the right.
    pub(crate) fn next(&self) -> Option<LeafId> {
        let next = self.word(next_at(self.header().use_n()));
        (next != 0).then_some(LeafId(next))
    }

    /// Returns the slots whose words are indirect, of all slots in use.
    pub(crate) fn kinds(&self) -> u64 {
        self.word(KINDS)
    }

    /// Returns the beginning of the leaf's range, as the key of a slot. Meaningless for the first
    /// leaf.
    pub(crate) fn low(&self) -> Slot {
        Slot {
            key: self.word(LOW),
            value: 0,
            indirect: self.kinds() & USE != 0,
        }
    }

    pub(crate) fn set_low(&mut self, low: Slot) {
        self.set_word(LOW, low.key);
        let kinds = self.kinds() & !USE | if low.indirect { USE } else { 0 };
        self.set_word(KINDS, kinds);
    }

    /// Returns a used slot.
    pub(crate) fn slot(&self, at: usize) -> Slot {
        let start = slot_at(at).start as u64;
        Slot {
            key: self.word(start),
            value: self.word(start + 8),
            indirect: self.kinds() >> at & 1 == 1,
        }
    }

    /// Returns the words of some slots, each with its place.
    pub(crate) fn words_of(&self, slots: Bits) -> Vec<SlotWords> {
        let words = |at: usize| {
            let start = slot_at(at).start as u64;
            (at, [self.word(start), self.word(start + 8)])
        };
        members(slots).map(words).collect()
    }

    /// Returns the words before `len` bytes.
    pub(crate) fn words(&self, len: usize) -> Vec<u64> {
        (0..len as u64).step_by(8).map(|at| self.word(at)).collect()
    }

    /// Fills a slot. The header word stays unchanged.
    pub(crate) fn fill(&mut self, at: usize, slot: Slot) {
        let start = slot_at(at).start as u64;
        self.set_word(start, slot.key);
        self.set_word(start + 8, slot.value);
        let kinds = self.kinds() & !(1 << at) | u64::from(slot.indirect) << at;
        self.set_word(KINDS, kinds);
    }

    /// Returns whether the leaf has something that the engine never writes: kinds beyond the slots.
    pub(crate) fn is_damaged(&self) -> bool {
        self.kinds() & !(ALL | USE) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leaf_is_laid_out_as_the_paper_has_it() {
        // LT-01, LT-08.
        assert_eq!(BYTES, HEADER_BYTES + SLOTS * SLOT_BYTES);
        assert_eq!(SLOTS + 1 + NUMBER_BITS as usize, 64);
        assert_eq!(slot_at(SLOTS - 1).end, BYTES);
        let mut leaf = Image::empty();
        let slot = Slot {
            key: u64::MAX,
            value: 5,
            indirect: false,
        };
        let indirect = Slot {
            indirect: true,
            ..slot
        };
        leaf.fill(26, slot);
        leaf.fill(0, indirect);
        let most = Time((1 << NUMBER_BITS) - 1);
        leaf.set_word(0, Header::new(1 << 26 | 1, 1, most).0);
        leaf.set_word(next_at(0), 7);
        leaf.set_word(next_at(1), 9);
        leaf.set_low(indirect);
        assert_eq!((leaf.slot(26), leaf.slot(0)), (slot, indirect));
        let header = leaf.header();
        assert_eq!(
            (header.use_n(), header.stamp(), header.count()),
            (1, most, 2)
        );
        assert_eq!(leaf.next(), Some(LeafId(9)));
        assert_eq!(header.with_bits(2).stamp(), most);
        assert_eq!(members(header.bits()).collect::<Vec<_>>(), [0, 26]);
        assert!(leaf.low().indirect && !leaf.is_damaged());
        leaf.set_low(slot);
        assert_eq!(leaf.low(), Slot { value: 0, ..slot });
        assert!(leaf.slot(0).indirect);
    }
}
