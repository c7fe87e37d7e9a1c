//! Changes to a page: single records, LSN, checksum.

use super::body_mut::{self, BodyMut};
use super::change::ChangeMap;
use super::dense::{self, DenseFormat};
use super::dense_image::{self, Empty};
use super::dispatch::{by_layout, by_layout_often};
use super::envelope::Fences;
use super::envelope::{self, field, is_page_len, put_at};
use super::format::LeafFormat;
use super::image::Image;
use super::limit::{Refused, limits};
use super::view::PageRef;
use crate::options::PageLayout;
use crate::types::{Lsn, PageId, StoreId};

/// What a put did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// The key is new.
    Inserted,
    /// The key existed; its old value was replaced.
    Replaced,
}

/// A page to change, with a map of its changes. The only way to change a page.
///
/// Every change happens wholly, or leaves the page as it was, byte for byte.
///
/// ```
/// use treering_engine::PageId;
/// use treering_engine::node::{ChangeMap, PageLayout, PageMut, Put, Refused};
///
/// let (mut bytes, mut changes) = (vec![0; 4096], ChangeMap::new());
/// let mut page = PageMut::new(&mut bytes, &mut changes);
/// page.init(PageLayout::Slotted, PageId(7), b"a", Some(b"n"))?;
/// assert_eq!(page.put(b"apple", b"red")?, Put::Inserted);
/// assert_eq!(page.put(b"apple", b"green")?, Put::Replaced);
/// assert_eq!(page.view().get(b"apple"), Some(&b"green"[..]));
/// // The fences bound the page's keys.
/// assert_eq!(page.put(b"pear", b"green"), Err(Refused::NotCovered));
/// assert!(page.delete(b"apple"));
/// # Ok::<(), Refused>(())
/// ```
#[derive(Debug)]
pub struct PageMut<'a> {
    bytes: &'a mut [u8],
    changes: &'a mut ChangeMap,
}

impl<'a> PageMut<'a> {
    /// Creates a guard over `bytes` that records changes in `changes`.
    ///
    /// # Panics
    /// If the length of `bytes` is neither a page size nor the sum of a page size and an envelope.
    /// This is a mistake of the caller, whatever the bytes hold.
    #[must_use]
    #[inline]
    pub fn new(bytes: &'a mut [u8], changes: &'a mut ChangeMap) -> Self {
        assert!(
            is_page_len(bytes.len()),
            "{} bytes are not a page",
            bytes.len()
        );
        PageMut { bytes, changes }
    }

    /// A read-only view of the page.
    #[must_use]
    #[inline]
    pub fn view(&self) -> PageRef<'_> {
        PageRef::new(self.bytes)
    }

    /// Makes this an empty page with LSN 0, whatever the bytes held. Marks every segment, because
    /// the page's place on the device holds unrelated bytes.
    ///
    /// # Errors
    /// [`Refused::TooLarge`] for a fence longer than a key may be, [`Refused::NotCovered`] unless
    /// `lower < upper`, [`Refused::Unfit`] in dense layouts.
    pub fn init(
        &mut self,
        layout: PageLayout,
        id: PageId,
        lower: &[u8],
        upper: Option<&[u8]>,
    ) -> Result<(), Refused> {
        let none: [(&[u8], &[u8]); 0] = [];
        self.build(layout, id, lower, upper, Lsn(0), none)
    }

    /// Makes this a page of exactly `records` (whole keys, strictly ascending), whatever the bytes
    /// held. This is how the right side of a split is made, both live and in redo. Marks every
    /// segment, as [`PageMut::init`] does.
    ///
    /// # Errors
    /// [`Refused`] if the fences and records cannot make a page. A dense page needs at least one
    /// record, and all records must suit the layout.
    pub fn build<K, V>(
        &mut self,
        layout: PageLayout,
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
        by_layout!(layout, F => {
            let mut image = Image::<F>::new(self.bytes.len(), id, lsn, fences)?;
            for (key, value) in records {
                image.push_checked(fences, key.as_ref(), value.as_ref())?;
            }
            self.adopt_new(&image.finish());
        }, D => {
            let shape = Empty::of(id, lsn, self.bytes.len(), fences);
            self.adopt_new(&dense_image::build::<D, _, _>(shape, records)?);
        });
        Ok(())
    }

    /// Sets `key` to `value`. A value that is not longer overwrites the old one in place.
    ///
    /// # Errors
    /// [`Refused::NoSpace`] if the record does not fit even after compaction,
    /// [`Refused::NotCovered`] if the key lies outside the fences, [`Refused::TooLarge`] if the
    /// record exceeds [`limits`], [`Refused::Unfit`] if the page is dense and has no place for the
    /// key.
    #[inline]
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<Put, Refused> {
        by_layout_often!(
            self.bytes,
            F => self.put_as::<F>(key, value),
            D => self.put_dense::<D>(key, value)
        )
    }

    #[inline]
    fn put_dense<D: DenseFormat>(&mut self, key: &[u8], value: &[u8]) -> Result<Put, Refused> {
        if !limits(self.bytes.len()).admits(key.len(), value.len()) {
            return Err(Refused::TooLarge);
        }
        if !self.view().dense::<D>().covers(key) {
            return Err(Refused::NotCovered);
        }
        let sound = self.is_sound();
        let new = dense::put::<D>(self.bytes, key, value, &mut self.changes)?;
        self.assert_still_sound(sound);
        Ok(if new { Put::Inserted } else { Put::Replaced })
    }

    #[inline]
    fn put_as<F: LeafFormat>(&mut self, key: &[u8], value: &[u8]) -> Result<Put, Refused> {
        if !limits(self.bytes.len()).admits(key.len(), value.len()) {
            return Err(Refused::TooLarge);
        }
        let page = self.view().body::<F>();
        if !page.covers(key) {
            return Err(Refused::NotCovered);
        }
        let suffix = key.strip_prefix(page.prefix()).ok_or(Refused::NotCovered)?;
        let sound = self.is_sound();
        let put = match page.place(suffix) {
            Ok(index) => {
                self.body_mut::<F>().replace(index, 0, suffix, value)?;
                Put::Replaced
            }
            Err(index) => {
                self.body_mut::<F>().insert(index, 0, suffix, value)?;
                Put::Inserted
            }
        };
        self.assert_still_sound(sound);
        Ok(put)
    }

    /// Removes `key`. Returns whether it was present. The next compaction reclaims its bytes on the
    /// heap.
    #[inline]
    pub fn delete(&mut self, key: &[u8]) -> bool {
        let sound = self.is_sound();
        let page = &mut *self;
        let deleted = by_layout_often!(page.bytes, F => {
            let found = page.view().body::<F>().place_key(key);
            found.is_some_and(|slot| page.body_mut::<F>().remove(slot))
        }, D => dense::delete::<D>(page.bytes, key, &mut page.changes));
        self.assert_still_sound(sound);
        deleted
    }

    /// Sorts the slots, so that scans need not. Returns whether anything changed; only
    /// [`PageLayout::Fingerprint`] has unsorted slots. The records stay the same, so this needs no
    /// log record and makes no page dirty.
    pub fn sort(&mut self) -> bool {
        let sound = self.is_sound();
        let sorted = by_layout!(
            self.view().layout(),
            F => self.body_mut::<F>().sort(),
            D => false
        );
        self.assert_still_sound(sound);
        sorted
    }

    /// Sets the LSN of the log record that was applied last.
    pub fn set_lsn(&mut self, lsn: Lsn) {
        self.set(field::LSN, lsn.0.to_le_bytes());
    }

    /// Computes and stores the checksum of a page that belongs to no particular store, see
    /// [`PageMut::seal_for`].
    pub fn seal(&mut self) {
        self.seal_for(StoreId::default());
    }

    /// Computes and stores the checksum of a page of this store. Call it just before the page is
    /// written.
    pub fn seal_for(&mut self, store: StoreId) {
        let sum = envelope::checksum(self.bytes, store);
        self.set(field::CHECKSUM, sum.to_le_bytes());
    }

    /// Copies the segments of `image` that differ, and marks exactly those. The old checksum stays
    /// until [`PageMut::seal`].
    pub(super) fn adopt(&mut self, mut image: Vec<u8>) {
        let sound = self.is_sound();
        let sum = field::CHECKSUM..field::CHECKSUM + 8;
        image[sum.clone()].copy_from_slice(&self.bytes[sum]);
        body_mut::adopt(self.bytes, &image, &mut self.changes);
        self.assert_still_sound(sound);
    }

    /// Copies all of `image`, a page that was never written, and marks all segments.
    pub(super) fn adopt_new(&mut self, image: &[u8]) {
        self.bytes.copy_from_slice(image);
        self.changes.mark(0..self.bytes.len());
    }

    #[inline]
    fn body_mut<F: LeafFormat>(&mut self) -> BodyMut<'_, F, &mut ChangeMap> {
        BodyMut::new(self.bytes, self.changes)
    }

    /// In debug builds, returns whether the structure holds. On larger pages the check runs only
    /// now and then, because it takes longer than the change. A change must keep the structure
    /// intact; on a damaged page there is nothing to keep.
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
    pub(super) fn set<const N: usize>(&mut self, at: usize, bytes: [u8; N]) {
        self.changes.mark(put_at(self.bytes, at, bytes));
    }
}
