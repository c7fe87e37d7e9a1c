//! Lookups during a descent: which child covers a key, and what a leaf holds for it.
//!
//! ```text
//!   inner      first child | sep 0 -> child 0 | sep 1 -> child 1 | ...
//!              child i covers [sep i, sep i+1)
//! ```
//!
//! An inner node is a page like any other. Its keys are separators and its values name children.
//! The child below the first separator has no key; the tree that made the page keeps it elsewhere
//! (B-Trees Are Back §2 has it in the header).
//!
//! A caller that descended from the root knows that the page covers the key. So nothing here
//! compares the key with the fences, or with the prefix that fences and key share: they lie at the
//! other end of the page, a cache line or two away.

use super::body::{self, Body};
use super::dense::{Dense, DenseFormat};
use super::dispatch::by_layout;
use super::format::LeafFormat;
use super::view::PageRef;

impl<'a> PageRef<'a> {
    /// The value of the last record whose key is not greater than `key`; `None` if all keys are
    /// greater. The page must cover `key`.
    #[must_use]
    #[inline]
    pub fn floor(&self, key: &[u8]) -> Option<&'a [u8]> {
        by_layout!(self.layout(), F => self.body::<F>().floor(key), D => self.dense::<D>().floor(key))
    }

    /// As [`PageRef::get`], for a key that the page covers. For any other key, it may return the
    /// value of a key with the same ending.
    #[must_use]
    #[inline]
    pub fn get_covered(&self, key: &[u8]) -> Option<&'a [u8]> {
        by_layout!(self.layout(), F => self.body::<F>().get_covered(key), D => self.dense::<D>().get(key))
    }

    /// Visits the records from `key` on, which the page must cover, as (key suffix, value) in key
    /// order until the visitor returns `false`. Returns whether the visitor wants more. Looks up
    /// the layout only once.
    #[inline]
    pub fn visit_from(&self, key: &[u8], visit: impl FnMut(&[u8], &'a [u8]) -> bool) -> bool {
        by_layout!(
            self.layout(),
            F => self.body::<F>().visit_from(key, visit),
            D => self.dense::<D>().visit_from(key, visit)
        )
    }
}

impl<'a, F: LeafFormat> Body<'a, F> {
    /// The part of a key behind the prefix, which the key must have.
    #[inline]
    fn behind_prefix(self, key: &[u8]) -> &[u8] {
        key.get(F::prefix_len(self.bytes())..).unwrap_or_default()
    }

    #[inline]
    fn floor(self, key: &[u8]) -> Option<&'a [u8]> {
        let at = match self.search(self.behind_prefix(key)) {
            Ok(at) => at,
            Err(at) => at.checked_sub(1)?,
        };
        if self.is_in_order() {
            return self.slots().get(at).map(|raw| self.value_of(raw));
        }
        Some(self.value(at))
    }

    #[inline]
    fn get_covered(self, key: &[u8]) -> Option<&'a [u8]> {
        let slot = self.place(self.behind_prefix(key)).ok()?;
        self.slots().get(slot).map(|raw| self.value_of(raw))
    }

    #[inline]
    fn visit_from(self, key: &[u8], mut visit: impl FnMut(&[u8], &'a [u8]) -> bool) -> bool {
        let (Ok(at) | Err(at)) = self.search(self.behind_prefix(key));
        let slots = self.ordered();
        let rest = slots.get(at..).unwrap_or_default();
        rest.iter().all(|raw| {
            let slot = F::decode(raw);
            visit(
                body::suffix(self.bytes(), &slot),
                body::value(self.bytes(), &slot),
            )
        })
    }
}

impl<'a, D: DenseFormat> Dense<'a, D> {
    fn floor(self, key: &[u8]) -> Option<&'a [u8]> {
        let at = match self.search_key(key) {
            Ok(at) => at,
            Err(at) => at.checked_sub(1)?,
        };
        Some(self.value(at))
    }

    #[inline]
    fn visit_from(self, key: &[u8], mut visit: impl FnMut(&[u8], &'a [u8]) -> bool) -> bool {
        let mut from = self.first_place(key);
        while let Some(place) = D::next(self.bytes(), from) {
            if !visit(&self.suffix_at(place), self.value_at(place)) {
                return false;
            }
            from = place + 1;
        }
        true
    }
}
