//! A leaf in persistent memory: 256 bytes, one XPLine (CCL-BTree §4.1, Figure 7 (b)).
//!
//! ```text
//! 0    header word: bitmap 14 | indirect 14 | next leaf 36      the one word that commits a change
//! 8    timestamp                                all log entries of this leaf up to here are in it
//! 16   fingerprints 14 × 1 | padding 2
//! 32   slots 14 × (key 8, value 8)
//! ```
//!
//! The paper's header word has a bitmap of 14 bits and a pointer of 48. Since a leaf begins at a
//! multiple of 256, 36 bits name it (16 TiB). The bits saved say of each slot whether it is
//! **indirect**. In a direct slot both words are the bytes themselves, all 64 bits of them. In an
//! indirect slot the top bit of each word distinguishes bytes (0) from the place of a record (1),
//! as in §4.4, and the value may be [`ABSENT`].
//!
//! The smallest key of every leaf but the first is its **anchor**: recovery uses it as the
//! separator. Log entries are compared with the timestamp of the leaf to which their key belongs,
//! so recovery has to find the same separator that was in use before. Hence a deleted anchor stays
//! in the leaf, as an indirect slot whose value is [`ABSENT`]. The paper leaves that open (§3.3).

use super::layout::{LeafId, Time};

/// Slots of a leaf.
pub(crate) const SLOTS: usize = 14;
/// A leaf with fewer used slots than this should be merged.
pub(crate) const SPARSE: usize = SLOTS / 2;
/// The size of a leaf in bytes.
pub(crate) const LEAF_BYTES: usize = 256;
/// Bytes before the slots.
pub(crate) const HEADER_BYTES: usize = 32;
/// Bytes of a slot.
pub(crate) const SLOT_BYTES: usize = 16;

const ALL: u64 = (1 << SLOTS) - 1;
/// The top bit of a word in an indirect slot: the rest of the word is the place of a record.
pub(crate) const AT: u64 = 1 << 63;
/// In an indirect slot, a value that says that the key is not in the map.
pub(crate) const ABSENT: u64 = u64::MAX;

/// A key and a value, each stored directly or as the place of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) key: u64,
    pub(crate) value: u64,
    /// Whether the words' top bits distinguish bytes from places.
    pub(crate) indirect: bool,
}

impl Slot {
    /// Returns whether this is only the anchor of a leaf, whose key is not in the map.
    pub(crate) fn is_absent(self) -> bool {
        self.indirect && self.value == ABSENT
    }

    /// Returns the places of the records to which the slot refers.
    pub(crate) fn records(self) -> impl Iterator<Item = u64> {
        let words = [self.key, self.value].into_iter();
        let named = words.filter(move |word| self.indirect && *word & AT != 0 && *word != ABSENT);
        named.map(|word| word & !AT)
    }
}

/// A leaf's header word, which commits changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HeaderWord(pub(crate) u64);

impl HeaderWord {
    /// Slots in use, as a bit mask.
    pub(crate) fn bitmap(self) -> u16 {
        (self.0 & ALL) as u16
    }

    fn indirect(self) -> u16 {
        (self.0 >> SLOTS & ALL) as u16
    }

    /// The leaf to the right.
    pub(crate) fn next(self) -> Option<LeafId> {
        let next = self.0 >> (2 * SLOTS);
        (next != 0).then_some(LeafId(next))
    }

    pub(crate) fn with_next(self, next: Option<LeafId>) -> HeaderWord {
        let low = self.0 & (ALL | ALL << SLOTS);
        HeaderWord(low | next.map_or(0, |leaf| leaf.0) << (2 * SLOTS))
    }

    pub(crate) fn with(self, at: usize, indirect: bool) -> HeaderWord {
        let cleared = self.without(at).0;
        HeaderWord(cleared | 1 << at | u64::from(indirect) << (SLOTS + at))
    }

    pub(crate) fn without(self, at: usize) -> HeaderWord {
        HeaderWord(self.0 & !(1 << at | 1 << (SLOTS + at)))
    }

    /// Returns whether the word is one that the engine never writes: an indirect bit is set for a
    /// slot that is not in use.
    pub(crate) fn is_damaged(self) -> bool {
        self.indirect() & !self.bitmap() != 0
    }
}

/// The bytes of a leaf, or of its first part.
#[derive(Clone, Copy)]
pub(crate) struct LeafImage(pub(crate) [u8; LEAF_BYTES]);

impl LeafImage {
    pub(crate) fn empty() -> LeafImage {
        LeafImage([0; LEAF_BYTES])
    }

    fn word(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.0[at..at + 8].try_into().expect("eight bytes"))
    }

    fn set_word(&mut self, at: usize, word: u64) {
        self.0[at..at + 8].copy_from_slice(&word.to_le_bytes());
    }

    pub(crate) fn header(&self) -> HeaderWord {
        HeaderWord(self.word(0))
    }

    pub(crate) fn set_header(&mut self, header: HeaderWord) {
        self.set_word(0, header.0);
    }

    pub(crate) fn timestamp(&self) -> Time {
        Time(self.word(8))
    }

    pub(crate) fn set_timestamp(&mut self, time: Time) {
        self.set_word(8, time.0);
    }

    pub(crate) fn fingerprint(&self, at: usize) -> u8 {
        self.0[16 + at]
    }

    pub(crate) fn set_fingerprint(&mut self, at: usize, fingerprint: u8) {
        self.0[16 + at] = fingerprint;
    }

    /// Returns the range of a slot's bytes in the leaf.
    pub(crate) fn slot_range(at: usize) -> std::ops::Range<usize> {
        let start = HEADER_BYTES + at * SLOT_BYTES;
        start..start + SLOT_BYTES
    }

    /// Returns a slot, whether in use or not, interpreted by the header.
    pub(crate) fn slot(&self, at: usize) -> Slot {
        let start = Self::slot_range(at).start;
        Slot {
            key: self.word(start),
            value: self.word(start + 8),
            indirect: self.header().indirect() >> at & 1 == 1,
        }
    }

    /// Fills a slot and marks it as used.
    pub(crate) fn fill(&mut self, at: usize, slot: Slot, fingerprint: u8) {
        let start = Self::slot_range(at).start;
        self.set_word(start, slot.key);
        self.set_word(start + 8, slot.value);
        self.set_fingerprint(at, fingerprint);
        self.set_header(self.header().with(at, slot.indirect));
    }

    /// Returns the words of a slot: key and value.
    pub(crate) fn words_of(&self, at: usize) -> [u64; 2] {
        let start = Self::slot_range(at).start;
        [self.word(start), self.word(start + 8)]
    }

    /// Returns all words.
    pub(crate) fn words(&self) -> Vec<u64> {
        (0..LEAF_BYTES).step_by(8).map(|at| self.word(at)).collect()
    }

    /// Returns the slots in use.
    pub(crate) fn used(&self) -> impl Iterator<Item = usize> + use<> {
        let bitmap = self.header().bitmap();
        (0..SLOTS).filter(move |at| bitmap >> at & 1 == 1)
    }
}

/// Returns one byte of a key's hash (§4.1).
pub(crate) fn fingerprint(key: &[u8]) -> u8 {
    xxhash_rust::xxh3::xxh3_64(key) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leaf_is_laid_out_as_the_paper_has_it() {
        // CC-03, CC-04.
        assert_eq!(HEADER_BYTES, 8 + 8 + SLOTS + 2);
        assert_eq!(LEAF_BYTES, HEADER_BYTES + SLOTS * SLOT_BYTES);
        let mut leaf = LeafImage::empty();
        let slot = Slot {
            key: u64::MAX,
            value: 5,
            indirect: false,
        };
        leaf.fill(13, slot, 0xab);
        leaf.set_header(leaf.header().with_next(Some(LeafId((1 << 36) - 1))));
        leaf.set_timestamp(Time(77));
        assert_eq!(leaf.0[240..248], [255; 8]);
        assert_eq!(leaf.0[248..256], 5u64.to_le_bytes());
        assert_eq!(leaf.0[16 + 13], 0xab);
        assert_eq!(
            leaf.slot(13),
            slot,
            "all 64 bits of a plain word are the key's"
        );
        assert_eq!(leaf.header().bitmap(), 1 << 13);
        assert_eq!(leaf.header().next(), Some(LeafId((1 << 36) - 1)));
        assert_eq!(leaf.timestamp(), Time(77));
        leaf.set_header(leaf.header().without(13).with_next(None));
        assert_eq!(leaf.header().0, 0);
    }
}
