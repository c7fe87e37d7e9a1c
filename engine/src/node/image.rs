//! Builds a page from scratch, in key order and without holes.
//!
//! Everything that reshapes a page (initialise, compact, split, merge) builds the new page here.
//! [`super::PageMut`] then copies the segments that differ. So a change that turns out not to fit
//! leaves no trace, change tracking is exact, and a rewritten page has no leftovers: its gap is
//! zeros, which compressing devices store for free.

use std::marker::PhantomData;

use super::body::{self, Body};
use super::envelope::{Fences, MAGIC, field, put_at};
use super::format::{Format, LeafFormat, Slot};
use super::limit::{Refused, limits};
use crate::types::{Lsn, PageId};

/// A page that is being filled. `heap_start` falls and `count` rises; they never cross.
pub(super) struct Image<F> {
    bytes: Vec<u8>,
    heap_start: usize,
    count: usize,
    format: PhantomData<F>,
}

impl<F: Format> Image<F> {
    /// An image with the header and tail of `page`, but without its records.
    pub(super) fn like(page: Body<'_, F>) -> Result<Image<F>, Refused> {
        let (old, heap_start) = (page.bytes(), page.heap_end());
        if heap_start < F::SLOTS_AT {
            return Err(Refused::NoSpace);
        }
        let mut bytes = vec![0; old.len()];
        bytes[..F::SLOTS_AT].copy_from_slice(&old[..F::SLOTS_AT]);
        bytes[heap_start..].copy_from_slice(&old[heap_start..]);
        Ok(Image {
            bytes,
            heap_start,
            count: 0,
            format: PhantomData,
        })
    }

    /// Appends a record whose key, behind the prefix, is `lead` followed by `suffix`. The caller
    /// ensures that it belongs here and is greater than the last.
    pub(super) fn push(
        &mut self,
        kind: u8,
        lead: &[u8],
        suffix: &[u8],
        value: &[u8],
    ) -> Result<(), Refused> {
        let key_len = lead.len() + suffix.len();
        let len = key_len + value.len();
        if self.heap_start < F::slots_end(self.count + 1) + len {
            return Err(Refused::NoSpace);
        }
        self.heap_start -= len;
        let (key_at, value_at) = (self.heap_start, self.heap_start + key_len);
        self.bytes[key_at..key_at + lead.len()].copy_from_slice(lead);
        self.bytes[key_at + lead.len()..value_at].copy_from_slice(suffix);
        self.bytes[value_at..value_at + value.len()].copy_from_slice(value);
        let slot = Slot {
            offset: if len == 0 { 0 } else { key_at as u16 },
            key_len: key_len as u16,
            value_len: value.len() as u16,
            head: F::head(
                self.bytes[key_at..value_at]
                    .get(F::shared(&self.bytes)..)
                    .unwrap_or_default(),
            ),
            kind,
        };
        let at = F::slot_at(self.count);
        self.bytes[at..at + F::STRIDE].copy_from_slice(F::encode(&slot).as_ref());
        self.count += 1;
        Ok(())
    }

    /// Appends an unchanged record of `page`.
    pub(super) fn copy(&mut self, page: Body<'_, F>, raw: &F::RawSlot) -> Result<(), Refused> {
        let slot = F::decode(raw);
        self.push(slot.kind, &[], page.suffix_of(raw), page.value_of(raw))
    }

    /// Returns the finished page.
    pub(super) fn finish(mut self) -> Vec<u8> {
        let heap_used = self.bytes.len() - self.heap_start;
        F::set_count(&mut self.bytes, self.count);
        F::set_heap_start(&mut self.bytes, self.heap_start);
        F::set_heap_used(&mut self.bytes, heap_used);
        F::build_index(&mut self.bytes, self.count);
        self.bytes
    }
}

impl<F: LeafFormat> Image<F> {
    /// An empty page with these fences. Its checksum is zero.
    pub(super) fn new(
        page_size: usize,
        id: PageId,
        lsn: Lsn,
        fences: Fences<'_>,
    ) -> Result<Image<F>, Refused> {
        let Fences { lower, upper } = fences;
        let upper_bytes = upper.unwrap_or_default();
        if lower.len().max(upper_bytes.len()) > limits(page_size).max_key {
            return Err(Refused::TooLarge);
        }
        if upper.is_some_and(|upper| lower >= upper) {
            return Err(Refused::NotCovered);
        }
        let heap_start = page_size - lower.len() - upper_bytes.len();
        let mut bytes = vec![0; page_size];
        bytes[page_size - lower.len()..].copy_from_slice(lower);
        bytes[heap_start..page_size - lower.len()].copy_from_slice(upper_bytes);
        put_at(&mut bytes, field::PAGE_ID, id.0.to_le_bytes());
        put_at(&mut bytes, field::LSN, lsn.0.to_le_bytes());
        put_at(&mut bytes, field::MAGIC, MAGIC.to_le_bytes());
        bytes[field::KIND] = F::LAYOUT.number();
        bytes[field::SIZE_LOG2] = page_size.ilog2() as u8;
        let prefix_len = F::truncated(lower, upper);
        F::set_fences(&mut bytes, prefix_len, lower.len(), upper.map(<[u8]>::len));
        Ok(Image {
            bytes,
            heap_start,
            count: 0,
            format: PhantomData,
        })
    }

    pub(super) fn prefix_len(&self) -> usize {
        F::prefix_len(&self.bytes)
    }

    /// Appends a record given by its whole key, after checking its size, the fences and the order.
    pub(super) fn push_checked(
        &mut self,
        fences: Fences<'_>,
        key: &[u8],
        value: &[u8],
    ) -> Result<(), Refused> {
        if !limits(self.bytes.len()).admits(key.len(), value.len()) {
            return Err(Refused::TooLarge);
        }
        if key < fences.lower || fences.upper.is_some_and(|upper| key >= upper) {
            return Err(Refused::NotCovered);
        }
        let suffix = &key[self.prefix_len()..];
        if self.last_suffix().is_some_and(|last| last >= suffix) {
            return Err(Refused::OutOfOrder);
        }
        self.push(0, &[], suffix, value)
    }

    fn last_suffix(&self) -> Option<&[u8]> {
        // The header does not count the slots yet.
        let at = F::slot_at(self.count.checked_sub(1)?);
        let raw = F::slot_in(self.bytes.get(at..)?)?;
        Some(body::suffix(&self.bytes, &F::decode(raw)))
    }
}
