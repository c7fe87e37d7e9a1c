//! Changing a page: single records, LSN, checksum.

use super::change::{ChangeMap, SEGMENT_BYTES};
use super::image::{Fences, Image, rewritten};
use super::layout::{self, SLOT_BYTES, Slot, field, head, is_page_size, slot_at};
use super::limit::{Refused, limits};
use super::view::PageRef;
use crate::mutation;
use crate::types::{Lsn, PageId};

/// What a put did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// The key was not there before.
    Inserted,
    /// The key was there; its old value is gone.
    Replaced,
}

/// A page to change, and the note of what changed. The only way to change a page.
///
/// Either a change happens wholly or the page stays as it was, byte for byte.
#[derive(Debug)]
pub struct PageMut<'a> {
    bytes: &'a mut [u8],
    changes: &'a mut ChangeMap,
}

impl<'a> PageMut<'a> {
    /// A guard over `bytes` that notes changes in `changes`.
    ///
    /// # Panics
    /// If `bytes` is not of a page size: a mistake of the caller, whatever the bytes hold.
    #[must_use]
    #[inline]
    pub fn new(bytes: &'a mut [u8], changes: &'a mut ChangeMap) -> Self {
        assert!(is_page_size(bytes.len()), "not a page: {}", bytes.len());
        PageMut { bytes, changes }
    }

    /// The page to read from.
    #[must_use]
    #[inline]
    pub fn view(&self) -> PageRef<'_> {
        PageRef::new(self.bytes)
    }

    /// Makes this an empty page with LSN 0, whatever the bytes held. Marks every segment: what lies on the
    /// device at the page's place is unrelated.
    ///
    /// # Errors
    /// [`Refused::TooLarge`] for a fence longer than a key may be, [`Refused::NotCovered`] unless `lower < upper`.
    pub fn init(&mut self, id: PageId, lower: &[u8], upper: Option<&[u8]>) -> Result<(), Refused> {
        let none: [(&[u8], &[u8]); 0] = [];
        self.build(id, lower, upper, Lsn(0), none)
    }

    /// Makes this a page of exactly `records` (whole keys, strictly ascending), whatever the bytes held: the right
    /// side of a split, live and in redo. Marks every segment, as [`PageMut::init`].
    ///
    /// # Errors
    /// [`Refused`] if fences or records do not make a page.
    pub fn build<K, V>(
        &mut self,
        id: PageId,
        lower: &[u8],
        upper: Option<&[u8]>,
        lsn: Lsn,
        records: impl IntoIterator<Item = (K, V)>,
    ) -> Result<(), Refused>
    where
        K: AsRef<[u8]>,
        V: AsRef<[u8]>,
    {
        let fences = Fences { lower, upper };
        let mut image = Image::new(self.bytes.len(), id, lsn, fences)?;
        for (key, value) in records {
            image.push_checked(fences, key.as_ref(), value.as_ref())?;
        }
        self.adopt_new(image);
        Ok(())
    }

    /// Sets `key` to `value`. A value of the same or a smaller size overwrites the old one in place.
    ///
    /// # Errors
    /// [`Refused::NoSpace`] if it does not fit even after compaction, [`Refused::NotCovered`] if the key lies outside
    /// the fences, [`Refused::TooLarge`] if the record exceeds [`limits`].
    #[inline]
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<Put, Refused> {
        let page = self.view();
        if !limits(page.page_size()).admits(key.len(), value.len()) {
            return Err(Refused::TooLarge);
        }
        if !page.covers(key) {
            return Err(Refused::NotCovered);
        }
        let suffix = key.strip_prefix(page.prefix()).ok_or(Refused::NotCovered)?;
        let sound = self.is_sound();
        let put = match page.search_suffix(suffix) {
            Ok(index) => self.replace(index, suffix, value)?,
            Err(index) => self.insert(index, suffix, value)?,
        };
        self.assert_still_sound(sound);
        Ok(put)
    }

    /// Removes `key`; `false` if it was not there. Its bytes on the heap are reclaimed by the next compaction.
    #[inline]
    pub fn delete(&mut self, key: &[u8]) -> bool {
        let sound = self.is_sound();
        let page = self.view();
        let Ok(index) = page.search(key) else {
            return false;
        };
        let Some(raw) = page.slots().get(index) else {
            return false;
        };
        let freed = Slot::decode(raw).payload_len();
        let count = page.count() - 1;
        let heap_used = page.heap_used().saturating_sub(freed);
        let (at, end) = (slot_at(index), slot_at(count + 1));
        self.bytes.copy_within(at + SLOT_BYTES..end, at);
        self.bytes[end - SLOT_BYTES..end].fill(0);
        self.changes.mark(at..end);
        self.set(field::COUNT, (count as u16).to_le_bytes());
        self.set(field::HEAP_USED, (heap_used as u32).to_le_bytes());
        self.assert_still_sound(sound);
        true
    }

    /// Notes the log record that was applied last.
    pub fn set_lsn(&mut self, lsn: Lsn) {
        self.set(field::LSN, lsn.0.to_le_bytes());
    }

    /// Computes the checksum; to be called just before the page is written.
    pub fn seal(&mut self) {
        let sum = layout::checksum(self.bytes);
        self.set(field::CHECKSUM, sum.to_le_bytes());
    }

    /// Insertion at `index`, which search found to be the place of `suffix`.
    #[inline]
    fn insert(&mut self, index: usize, suffix: &[u8], value: &[u8]) -> Result<Put, Refused> {
        let page = self.view();
        let len = suffix.len() + value.len();
        let need = SLOT_BYTES + len;
        if page.gap() < need {
            if page.free_bytes() < need {
                return Err(Refused::NoSpace);
            }
            return self.compact_inserting(index, suffix, value);
        }
        let count = page.count();
        let heap_used = page.heap_used() + len;
        let offset = self.append(suffix, value);
        let (at, end) = (slot_at(index), slot_at(count));
        self.bytes.copy_within(at..end, at + SLOT_BYTES);
        let slot = Slot {
            offset,
            key_len: suffix.len() as u16,
            value_len: value.len() as u16,
            head: head(suffix),
        };
        self.bytes[at..at + SLOT_BYTES].copy_from_slice(&slot.encode());
        self.changes.mark(at..end + SLOT_BYTES);
        self.set(field::COUNT, ((count + 1) as u16).to_le_bytes());
        self.set(field::HEAP_USED, (heap_used as u32).to_le_bytes());
        Ok(Put::Inserted)
    }

    /// Gives record `index` a new value: in place if it is not longer, else at the heap's end, else by compaction.
    fn replace(&mut self, index: usize, suffix: &[u8], value: &[u8]) -> Result<Put, Refused> {
        let page = self.view();
        let Some(raw) = page.slots().get(index) else {
            return Err(Refused::NoSpace);
        };
        let mut slot = Slot::decode(raw);
        let (old, new) = (slot.payload_len(), suffix.len() + value.len());
        let heap_used = page.heap_used().saturating_sub(old) + new;
        if new == old && mutation::on("same-length-same-value") {
            return Ok(Put::Replaced);
        }
        if new <= old {
            let at = usize::from(slot.offset) + suffix.len();
            let Some(place) = self.bytes.get_mut(at..at + value.len()) else {
                return Err(Refused::NoSpace);
            };
            place.copy_from_slice(value);
            self.changes.mark(at..at + value.len());
            if new == old {
                return Ok(Put::Replaced);
            }
            if new == 0 {
                slot.offset = 0;
            }
        } else if new <= page.gap() {
            slot.offset = self.append(suffix, value);
        } else if new <= page.free_bytes().saturating_add(old) {
            return self.compact_replacing(index, value);
        } else {
            return Err(Refused::NoSpace);
        }
        slot.value_len = value.len() as u16;
        self.set(slot_at(index), slot.encode());
        self.set(field::HEAP_USED, (heap_used as u32).to_le_bytes());
        Ok(Put::Replaced)
    }

    /// Puts a payload below the heap and returns its offset. The caller has checked that the gap is large enough.
    #[inline]
    fn append(&mut self, suffix: &[u8], value: &[u8]) -> u16 {
        let len = suffix.len() + value.len();
        if len == 0 {
            return 0;
        }
        let end = self.view().heap_start();
        let start = end - len;
        let (key_place, value_place) = self.bytes[start..end].split_at_mut(suffix.len());
        key_place.copy_from_slice(suffix);
        value_place.copy_from_slice(value);
        self.changes.mark(start..end);
        self.set(field::HEAP_START, (start as u32).to_le_bytes());
        start as u16
    }

    #[cold]
    fn compact_inserting(
        &mut self,
        at: usize,
        suffix: &[u8],
        value: &[u8],
    ) -> Result<Put, Refused> {
        let page = self.view();
        let mut image = rewritten(page, |image, index, s, v| {
            if index == at {
                image.push(&[], suffix, value)?;
            }
            image.push(&[], s, v)
        })?;
        if at >= page.count() {
            image.push(&[], suffix, value)?;
        }
        self.adopt(image);
        Ok(Put::Inserted)
    }

    #[cold]
    fn compact_replacing(&mut self, at: usize, value: &[u8]) -> Result<Put, Refused> {
        let image = rewritten(self.view(), |image, index, s, v| {
            image.push(&[], s, if index == at { value } else { v })
        })?;
        self.adopt(image);
        Ok(Put::Replaced)
    }

    /// Takes over the segments of `image` that differ, and marks exactly those. The stale checksum stays until
    /// [`PageMut::seal`].
    pub(super) fn adopt(&mut self, image: Image) {
        let sound = self.is_sound();
        let mut image = image.finish();
        let sum = field::CHECKSUM..field::CHECKSUM + 8;
        image[sum.clone()].copy_from_slice(&self.bytes[sum]);
        let old = self.bytes.chunks_exact_mut(SEGMENT_BYTES);
        let new = image.chunks_exact(SEGMENT_BYTES);
        for (segment, (old, new)) in old.zip(new).enumerate() {
            if old != new {
                old.copy_from_slice(new);
                let at = segment * SEGMENT_BYTES;
                self.changes.mark(at..at + SEGMENT_BYTES);
            }
        }
        self.assert_still_sound(sound);
    }

    /// Takes over `image` as a page that was never written: everything changed.
    pub(super) fn adopt_new(&mut self, image: Image) {
        self.bytes.copy_from_slice(&image.finish());
        self.changes.mark(0..self.bytes.len());
    }

    /// Debug builds only, and on larger pages only now and then, as the check takes longer than the change:
    /// whether the structure holds. A change must keep it; on a damaged page there is nothing to keep.
    #[inline]
    fn is_sound(&self) -> bool {
        let count = self.view().count();
        cfg!(debug_assertions)
            && (count <= 32 || count % 16 < 2)
            && super::check_structure(self.bytes).is_ok()
    }

    #[inline]
    fn assert_still_sound(&self, was_sound: bool) {
        if was_sound {
            debug_assert_eq!(super::check_structure(self.bytes), Ok(()));
        }
    }

    #[inline]
    fn set<const N: usize>(&mut self, at: usize, bytes: [u8; N]) {
        self.bytes[at..at + N].copy_from_slice(&bytes);
        self.changes.mark(at..at + N);
    }
}
