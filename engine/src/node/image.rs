//! A page under construction: written from scratch in key order, without holes.
//!
//! Everything that reshapes a page (initialise, compact, split, merge) builds the new page here and then lets
//! [`super::PageMut`] copy over the segments that differ. So a change that turns out not to fit leaves no
//! trace, change tracking is exact, and a rewritten page holds no leftovers (its gap is zeros, which compressing
//! devices store for free).

use super::layout::{
    HEADER_BYTES, KIND_SLOTTED_V1, MAGIC, SLOT_BYTES, Slot, field, head, shared_prefix, slot_at,
};
use super::limit::{Limits, Refused, limits};
use super::view::PageRef;
use crate::types::{Lsn, PageId};

/// The range a page covers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fences<'a> {
    pub(super) lower: &'a [u8],
    pub(super) upper: Option<&'a [u8]>,
}

/// A page that is being filled. `heap_start` falls, `count` rises; they never cross.
pub(super) struct Image {
    bytes: Vec<u8>,
    limits: Limits,
    prefix_len: usize,
    heap_start: usize,
    count: usize,
}

impl Image {
    /// An empty page with these fences.
    pub(super) fn new(
        page_size: usize,
        id: PageId,
        lsn: Lsn,
        fences: Fences<'_>,
    ) -> Result<Image, Refused> {
        let Fences { lower, upper } = fences;
        let limits = limits(page_size);
        let upper_bytes = upper.unwrap_or_default();
        if lower.len().max(upper_bytes.len()) > limits.max_key {
            return Err(Refused::TooLarge);
        }
        if upper.is_some_and(|upper| lower >= upper) {
            return Err(Refused::NotCovered);
        }
        let prefix_len = shared_prefix(lower, upper);
        let heap_start = page_size - lower.len() - upper_bytes.len();
        let mut image = Image {
            bytes: vec![0; page_size],
            limits,
            prefix_len,
            heap_start,
            count: 0,
        };
        image.bytes[page_size - lower.len()..].copy_from_slice(lower);
        image.bytes[heap_start..page_size - lower.len()].copy_from_slice(upper_bytes);
        image.set(field::PAGE_ID, id.0.to_le_bytes());
        image.set(field::LSN, lsn.0.to_le_bytes());
        image.set(field::MAGIC, MAGIC.to_le_bytes());
        image.set(field::KIND, [KIND_SLOTTED_V1]);
        image.set(field::SIZE_LOG2, [page_size.trailing_zeros() as u8]);
        image.set(field::PREFIX_LEN, narrow(prefix_len));
        image.set(field::LOWER_LEN, narrow(lower.len()));
        image.set(field::UPPER_LEN, narrow(upper_bytes.len()));
        image.set(field::BOUNDED, [u8::from(upper.is_some())]);
        Ok(image)
    }

    pub(super) fn prefix_len(&self) -> usize {
        self.prefix_len
    }

    /// Appends a record whose key, behind the prefix, is `lead` and then `suffix`. The caller knows that it
    /// belongs here and is greater than the last.
    pub(super) fn push(&mut self, lead: &[u8], suffix: &[u8], value: &[u8]) -> Result<(), Refused> {
        let key_len = lead.len() + suffix.len();
        let len = key_len + value.len();
        if self.heap_start - slot_at(self.count) < SLOT_BYTES + len {
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
            head: head(&self.bytes[key_at..value_at]),
        };
        self.set(slot_at(self.count), slot.encode());
        self.count += 1;
        Ok(())
    }

    /// Appends a record with its whole key, after checking that it may stand here.
    pub(super) fn push_checked(
        &mut self,
        fences: Fences<'_>,
        key: &[u8],
        value: &[u8],
    ) -> Result<(), Refused> {
        if !self.limits.admits(key.len(), value.len()) {
            return Err(Refused::TooLarge);
        }
        if key < fences.lower || fences.upper.is_some_and(|upper| key >= upper) {
            return Err(Refused::NotCovered);
        }
        let suffix = &key[self.prefix_len..];
        if self.last_suffix().is_some_and(|last| last >= suffix) {
            return Err(Refused::OutOfOrder);
        }
        self.push(&[], suffix, value)
    }

    /// The finished page. Its checksum field is zero.
    pub(super) fn finish(mut self) -> Vec<u8> {
        let heap_used = self.bytes.len() - self.heap_start;
        self.set(field::COUNT, narrow(self.count));
        self.set(field::HEAP_START, (self.heap_start as u32).to_le_bytes());
        self.set(field::HEAP_USED, (heap_used as u32).to_le_bytes());
        self.bytes
    }

    fn last_suffix(&self) -> Option<&[u8]> {
        let at = slot_at(self.count.checked_sub(1)?);
        let raw = self.bytes[at..].first_chunk::<SLOT_BYTES>()?;
        let slot = Slot::decode(raw);
        let start = usize::from(slot.offset);
        self.bytes.get(start..start + usize::from(slot.key_len))
    }

    fn set<const N: usize>(&mut self, at: usize, bytes: [u8; N]) {
        self.bytes[at..at + N].copy_from_slice(&bytes);
    }
}

/// Lengths and counts within a page fit 16 bits: lengths are below the page size less the header, and
/// `(65536 - 48) / 10` slots are 6,548 at most, so the count cannot overflow (redb e1ed56da).
fn narrow(n: usize) -> [u8; 2] {
    debug_assert!(n <= usize::from(u16::MAX));
    (n as u16).to_le_bytes()
}

const _: () = assert!((super::MAX_PAGE_BYTES - HEADER_BYTES) / SLOT_BYTES <= u16::MAX as usize);

/// A copy of `page` without holes, with the same fences. `edit` sees every record by index and pushes it, or
/// something else.
pub(super) fn rewritten(
    page: PageRef<'_>,
    mut edit: impl FnMut(&mut Image, usize, &[u8], &[u8]) -> Result<(), Refused>,
) -> Result<Image, Refused> {
    let fences = Fences {
        lower: page.lower_fence(),
        upper: page.upper_fence(),
    };
    let mut image = Image::new(page.page_size(), page.page_id(), page.lsn(), fences)?;
    for (index, (suffix, value)) in page.iter().enumerate() {
        edit(&mut image, index, suffix, value)?;
    }
    Ok(image)
}
