//! Whether a page has a place for a record, and what the record costs there.

use super::dense::{Dense, DenseFormat};
use super::leaves::{FullyDense, SemiDense};
use super::view::PageRef;
use crate::options::PageLayout;

impl PageRef<'_> {
    /// Returns whether the page has a place for such a record, regardless of free bytes. Pages with
    /// slots always have one; dense pages ([`PageLayout::DENSE`]) only for certain keys and values.
    #[must_use]
    pub fn has_place(&self, key: &[u8], value_len: usize) -> bool {
        fn in_dense<D: DenseFormat>(page: Dense<'_, D>, key: &[u8], value_len: usize) -> bool {
            let suits = !D::ONE_LENGTH || D::value_len(page.bytes()) == value_len;
            suits && page.place(key).is_some()
        }
        match self.layout() {
            PageLayout::SemiDense => in_dense(self.dense::<SemiDense>(), key, value_len),
            PageLayout::FullyDense => in_dense(self.dense::<FullyDense>(), key, value_len),
            _ => true,
        }
    }

    /// Bytes of [`PageRef::room_bytes`] that a record takes beside key and value: the slot minus
    /// the prefix that stored keys leave out. In a dense page, the whole key is left out.
    #[must_use]
    pub(crate) fn bytes_beside(&self) -> i16 {
        let (beside, left_out) = match self.layout() {
            PageLayout::SemiDense => (SemiDense::BESIDE, self.dense::<SemiDense>().key_len()),
            PageLayout::FullyDense => (FullyDense::BESIDE, self.dense::<FullyDense>().key_len()),
            layout => (layout.slot_bytes(), self.prefix().len()),
        };
        // Both are far below 2^15, even if the page is damaged.
        (beside as i16).wrapping_sub(left_out as i16)
    }
}
