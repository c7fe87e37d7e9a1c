//! What layouts of sorted slots over a heap differ in: the fields of the header, the bytes of a slot, the length of its head.
//!
//! ```text
//!                       slots at                                      heap start                    heap end
//!   +------------------+---------+-------+-------------+------- ... -+-----------------------------+--------+
//!   | header           | slot 0  | slot 1| ->          | gap         | <- payloads                 | fences |
//!   +------------------+---------+-------+-------------+------- ... -+-----------------------------+--------+
//! ```
//!
//! [`super::body`] searches and changes whatever has a [`Format`]: leaf pages of every layout, and mini-pages, which have no fences of their own
//! ([`crate::mini`]). It is compiled for each format, so no loop asks for the layout. A layout without slots (dense leaves) takes
//! another body, beside this one; what chooses between them is [`super::layout::by_layout`].

use std::ops::Range;

use super::layout::PageLayout;

/// One slot, decoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) offset: u16,
    pub(crate) key_len: u16,
    pub(crate) value_len: u16,
    /// The first bytes of the key suffix, zero padded, as an integer that orders like them; how many is up to the format.
    pub(crate) head: u32,
    /// Two bits that a mini-page has for each record; 0 in leaves.
    pub(crate) kind: u8,
}

impl Slot {
    /// Bytes of key suffix and value on the heap.
    #[inline]
    pub(crate) fn payload_len(&self) -> usize {
        usize::from(self.key_len) + usize::from(self.value_len)
    }
}

/// The bytes of header and slots. On damaged bytes numbers are wrong, but nothing panics on a slice of at least `SLOTS_AT` bytes.
///
/// The setters write a field and say which bytes that are. Numbers must fit, as all lengths within a page do.
pub(crate) trait Format: Copy + 'static {
    /// A slot as it lies in the page: an array of bytes.
    type RawSlot: Copy + AsRef<[u8]> + 'static;
    /// Bytes of one slot.
    const SLOT_BYTES: usize = size_of::<Self::RawSlot>();
    /// Bytes of the header, all that is before it included.
    const SLOTS_AT: usize;

    /// The slots of all records; none where a damaged header has them end outside.
    fn slots(bytes: &[u8]) -> &[Self::RawSlot];
    /// The slot that `bytes` begin with.
    fn slot_in(bytes: &[u8]) -> Option<&Self::RawSlot>;
    fn decode(raw: &Self::RawSlot) -> Slot;
    fn encode(slot: &Slot) -> Self::RawSlot;
    /// The head stored in a slot, without decoding the rest.
    fn head_of(raw: &Self::RawSlot) -> u32;
    /// The head of a key suffix.
    fn head(suffix: &[u8]) -> u32;

    /// Where the lowest payload begins.
    fn heap_start(bytes: &[u8]) -> usize;
    /// Live bytes behind the slots: payloads and fences, holes left out.
    fn heap_used(bytes: &[u8]) -> usize;
    /// So many first bytes are the same in all stored keys, and searches know of them: heads begin behind. 0 in leaves, which do not store them.
    #[inline]
    fn shared(_: &[u8]) -> usize {
        0
    }
    /// Bytes behind the payloads.
    fn tail_len(bytes: &[u8]) -> usize;
    fn set_count(bytes: &mut [u8], count: usize) -> Range<usize>;
    fn set_heap_start(bytes: &mut [u8], at: usize) -> Range<usize>;
    fn set_heap_used(bytes: &mut [u8], used: usize) -> Range<usize>;

    /// Where slot `index` begins.
    #[inline]
    fn slot_at(index: usize) -> usize {
        Self::SLOTS_AT + index * Self::SLOT_BYTES
    }
}

/// A format of leaf pages: with fences, behind the envelope.
pub(crate) trait LeafFormat: Format {
    const LAYOUT: PageLayout;

    /// Number of records that the header claims.
    fn count(bytes: &[u8]) -> usize;
    fn prefix_len(bytes: &[u8]) -> usize;
    fn lower_len(bytes: &[u8]) -> usize;
    fn upper_len(bytes: &[u8]) -> usize;
    /// 1 if there is an upper fence, 0 if the page is the rightmost one; anything else is damage.
    fn bounded(bytes: &[u8]) -> u8;
    /// Header bytes that are zero.
    fn reserved(bytes: &[u8]) -> &[u8];
    fn set_fences(bytes: &mut [u8], prefix_len: usize, lower: usize, upper: Option<usize>);
}

/// The first `N` bytes of a key suffix, zero padded.
#[inline]
pub(super) fn first_bytes<const N: usize>(suffix: &[u8]) -> [u8; N] {
    match suffix.first_chunk::<N>() {
        Some(first) => *first,
        None => {
            let mut padded = [0; N];
            padded[..suffix.len()].copy_from_slice(suffix);
            padded
        }
    }
}

/// The `count` slots of `N` bytes from `at` on.
#[inline]
pub(super) fn slots_of<const N: usize>(bytes: &[u8], at: usize, count: usize) -> &[[u8; N]] {
    let slots = bytes.get(at..at + count * N).unwrap_or_default();
    slots.as_chunks().0
}
