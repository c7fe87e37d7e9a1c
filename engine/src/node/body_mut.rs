//! Changes to sorted slots over a heap, in any [`Format`]: single records, and compaction once only
//! holes have room.

use std::marker::PhantomData;

use super::body::Body;
use super::change::{SEGMENT_BYTES, Track};
use super::format::{Format, Slot};
use super::image::Image;
use super::limit::Refused;
use crate::mutation;

/// A page or mini-page to change, and a tracker that is told which bytes change. A change happens
/// wholly or not at all.
#[derive(Debug)]
pub(crate) struct BodyMut<'a, F, T> {
    bytes: &'a mut [u8],
    track: T,
    format: PhantomData<F>,
}

impl<'a, F: Format, T: Track> BodyMut<'a, F, T> {
    /// Creates a guard over `bytes`, which must have at least `F::SLOTS_AT` of them.
    #[inline]
    pub(crate) fn new(bytes: &'a mut [u8], track: T) -> Self {
        BodyMut {
            bytes,
            track,
            format: PhantomData,
        }
    }

    #[inline]
    pub(crate) fn view(&self) -> Body<'_, F> {
        Body::new(self.bytes)
    }

    /// Removes all records; the tail stays.
    pub(crate) fn clear(&mut self) {
        let heap_end = self.view().heap_end();
        let used = self.bytes.len() - heap_end;
        self.set(F::set_count, 0);
        self.set(F::set_heap_start, heap_end);
        self.set(F::set_heap_used, used);
    }

    /// Inserts a record before the one at `index`, the position that the search returned.
    ///
    /// # Errors
    /// [`Refused::NoSpace`] if it does not fit even after compaction.
    #[inline]
    pub(crate) fn insert(
        &mut self,
        index: usize,
        kind: u8,
        suffix: &[u8],
        value: &[u8],
    ) -> Result<(), Refused> {
        let page = self.view();
        let len = suffix.len() + value.len();
        let need = page.growth() + len;
        if page.gap() < need {
            if page.free_bytes() < need {
                return Err(Refused::NoSpace);
            }
            return self.compact_inserting(index, kind, suffix, value);
        }
        let count = page.count();
        let heap_used = page.heap_used() + len;
        let offset = self.append(suffix, value);
        // The index behind the slots moves along.
        let (at, end) = (F::slot_at(index), F::slots_end(count));
        self.bytes[at..end + F::STRIDE].copy_within(..end - at, F::STRIDE);
        let slot = Slot {
            offset,
            key_len: suffix.len() as u16,
            value_len: value.len() as u16,
            head: F::head(suffix.get(F::shared(self.bytes)..).unwrap_or_default()),
            kind,
        };
        self.bytes[at..at + F::STRIDE].copy_from_slice(F::encode(&slot).as_ref());
        if F::INDEXED {
            F::index_inserted(self.bytes, count + 1, index);
            self.track.mark(at..F::slots_end(count + 1));
        } else {
            self.track.mark(at..end + F::STRIDE);
        }
        self.set(F::set_count, count + 1);
        self.set(F::set_heap_used, heap_used);
        Ok(())
    }

    /// Gives record `index`, whose key is `suffix`, a new kind and value. A value that is not
    /// longer is written in place, a longer one at the heap's end or, if the gap is too small, by
    /// compaction.
    ///
    /// # Errors
    /// [`Refused::NoSpace`] as with [`BodyMut::insert`].
    #[inline]
    pub(crate) fn replace(
        &mut self,
        index: usize,
        kind: u8,
        suffix: &[u8],
        value: &[u8],
    ) -> Result<(), Refused> {
        let page = self.view();
        let Some(mut slot) = page.slot(index) else {
            return Err(Refused::NoSpace);
        };
        let (old, new) = (slot.payload_len(), suffix.len() + value.len());
        let heap_used = page.heap_used().saturating_sub(old) + new;
        if new == old && mutation::on("same-length-same-value") {
            return Ok(());
        }
        if new <= old {
            let at = usize::from(slot.offset) + suffix.len();
            let Some(place) = self.bytes.get_mut(at..at + value.len()) else {
                return Err(Refused::NoSpace);
            };
            overwrite(place, value, at, &mut self.track);
            if new == old && kind == slot.kind {
                return Ok(());
            }
            if new == 0 {
                slot.offset = 0;
            }
        } else if new <= page.gap() {
            slot.offset = self.append(suffix, value);
        } else if new <= page.free_bytes().saturating_add(old) {
            return self.compact_replacing(index, kind, value);
        } else {
            return Err(Refused::NoSpace);
        }
        slot.value_len = value.len() as u16;
        slot.kind = kind;
        self.set_slot(index, &slot);
        self.set(F::set_heap_used, heap_used);
        Ok(())
    }

    /// Removes record `index`, if it exists. Its bytes on the heap become a hole.
    #[inline]
    pub(crate) fn remove(&mut self, index: usize) -> bool {
        let page = self.view();
        let Some(slot) = page.slot(index) else {
            return false;
        };
        let count = page.count() - 1;
        let heap_used = page.heap_used().saturating_sub(slot.payload_len());
        // The index behind the slots moves along; on damaged bytes it may end outside the page.
        let (at, end) = (F::slot_at(index), F::slots_end(count + 1));
        let end = end.min(self.bytes.len());
        self.bytes.copy_within(at + F::STRIDE..end, at);
        if F::INDEXED {
            F::index_removed(self.bytes, count, index);
            self.bytes[F::slots_end(count).min(end)..end].fill(0);
        } else {
            self.bytes[end - F::STRIDE..end].fill(0);
        }
        self.track.mark(at..end);
        self.set(F::set_count, count);
        self.set(F::set_heap_used, heap_used);
        true
    }

    /// Sorts all slots. Returns whether they were unsorted.
    pub(super) fn sort(&mut self) -> bool {
        let page = self.view();
        if page.is_in_order() {
            return false;
        }
        let slots = page.ordered().into_owned();
        for (index, raw) in slots.iter().enumerate() {
            let at = F::slot_at(index);
            self.bytes[at..at + F::STRIDE].copy_from_slice(raw.as_ref());
        }
        F::build_index(self.bytes, slots.len());
        // The header now says that they are sorted.
        self.track.mark(0..F::slots_end(slots.len()));
        true
    }

    /// Replaces the slot of record `index`, which must exist.
    #[inline]
    pub(crate) fn set_slot(&mut self, index: usize, slot: &Slot) {
        let at = F::slot_at(index);
        self.bytes[at..at + F::STRIDE].copy_from_slice(F::encode(slot).as_ref());
        self.track.mark(at..at + F::STRIDE);
    }

    /// Writes a payload below the heap and returns its offset. The caller has checked that the gap
    /// is large enough.
    #[inline(always)]
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
        self.track.mark(start..end);
        self.set(F::set_heap_start, start);
        start as u16
    }

    #[cold]
    fn compact_inserting(
        &mut self,
        at: usize,
        kind: u8,
        suffix: &[u8],
        value: &[u8],
    ) -> Result<(), Refused> {
        let page = self.view();
        let mut image = Image::like(page)?;
        for (index, raw) in page.slots().iter().enumerate() {
            if index == at {
                image.push(kind, &[], suffix, value)?;
            }
            image.copy(page, raw)?;
        }
        if at >= page.count() {
            image.push(kind, &[], suffix, value)?;
        }
        adopt(self.bytes, &image.finish(), &mut self.track);
        Ok(())
    }

    #[cold]
    fn compact_replacing(&mut self, at: usize, kind: u8, value: &[u8]) -> Result<(), Refused> {
        let page = self.view();
        let mut image = Image::like(page)?;
        for (index, raw) in page.slots().iter().enumerate() {
            if index == at {
                image.push(kind, &[], page.suffix_of(raw), value)?;
            } else {
                image.copy(page, raw)?;
            }
        }
        adopt(self.bytes, &image.finish(), &mut self.track);
        Ok(())
    }

    #[inline(always)]
    fn set(&mut self, field: impl Fn(&mut [u8], usize) -> std::ops::Range<usize>, value: usize) {
        let changed = field(self.bytes, value);
        self.track.mark(changed);
    }
}

/// Copies the segments of `new` that differ, and marks exactly those.
pub(super) fn adopt<T: Track>(old: &mut [u8], new: &[u8], track: &mut T) {
    let segments = old.chunks_mut(SEGMENT_BYTES).zip(new.chunks(SEGMENT_BYTES));
    for (segment, (old, new)) in segments.enumerate() {
        if old != new {
            old.copy_from_slice(new);
            let at = segment * SEGMENT_BYTES;
            track.mark(at..at + new.len());
        }
    }
}

/// Copies `new` over `old`, which lies at `at`, and marks only the segments that differ.
#[inline]
fn overwrite<T: Track>(old: &mut [u8], new: &[u8], at: usize, track: &mut T) {
    if T::LISTENS {
        let mut from = 0;
        while from < new.len() {
            let to = (from + SEGMENT_BYTES - (at + from) % SEGMENT_BYTES).min(new.len());
            if old[from..to] != new[from..to] {
                track.mark(at + from..at + to);
            }
            from = to;
        }
    }
    old.copy_from_slice(new);
}
