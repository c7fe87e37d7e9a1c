//! The keys for which an empty dense page would have places. Models of leaves use it to predict the
//! dense layouts.

use super::dense::Dense;
use super::dense_image::{Empty, empty};
use super::dispatch::by_layout;
use super::envelope::Fences;
use super::limit::Refused;
use crate::options::PageLayout;
use crate::types::{Lsn, PageId};

/// The places of a dense page that has no record yet. Made by [`places`].
///
/// ```
/// use treering_engine::node::{PageLayout, places};
///
/// let fences = (&b"wiki\0\0\0\x10"[..], None);
/// let places = places(PageLayout::FullyDense, 4096, fences, 8, 8)?;
/// assert_eq!(places.distance(b"wiki\0\0\0\x17"), Some(7));
/// assert!(places.has(b"wiki\0\0\0\x17"));
/// assert!(!places.has(b"wiki\x7f\0\0\x17")); // Far beyond the last place.
/// # Ok::<(), treering_engine::node::Refused>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// The fixed part: the bytes with which all keys begin.
    fixed: Vec<u8>,
    key_len: usize,
    /// The number of the first place's key.
    reference: u32,
    count: usize,
    /// The key behind the last place, if its number exists.
    end: Option<Vec<u8>>,
    used_bytes: usize,
}

/// Returns the places of a page of `page_size` bytes, including the envelope, with these fences,
/// for keys and values of these lengths. A semi-dense page takes values of any length.
///
/// # Errors
/// [`Refused::Unfit`] if no such page can exist or `layout` is not dense, [`Refused::TooLarge`] and
/// [`Refused::NotCovered`] for bad fences.
pub fn places(
    layout: PageLayout,
    page_size: usize,
    (lower, upper): (&[u8], Option<&[u8]>),
    key_len: usize,
    value_len: usize,
) -> Result<Places, Refused> {
    let shape = Empty {
        key_len,
        value_len,
        ..Empty::of(PageId(0), Lsn(0), page_size, Fences { lower, upper })
    };
    by_layout!(layout, F => {
        let _: F;
        Err(Refused::Unfit)
    }, D => {
        let bytes = empty::<D>(shape)?;
        let page = Dense::<D>::new(&bytes);
        Ok(Places {
            fixed: page.prefix().to_vec(),
            key_len,
            reference: number(&page.suffix_at(0)),
            count: page.places(),
            end: page.end(),
            used_bytes: page.used_bytes(),
        })
    })
}

/// The last bytes of a key as a number.
fn number(numeric: &[u8]) -> u32 {
    let digits = numeric.iter();
    digits.fold(0, |number, &byte| number << 8 | u32::from(byte))
}

impl Places {
    /// The distance of the key's number from that of the first place, if the key has the fixed part
    /// and the right length.
    #[must_use]
    pub fn distance(&self, key: &[u8]) -> Option<usize> {
        if key.len() != self.key_len {
            return None;
        }
        let numeric = key.strip_prefix(&self.fixed[..])?;
        let distance = number(numeric).checked_sub(self.reference)?;
        usize::try_from(distance).ok()
    }

    /// Returns whether this key has a place.
    #[must_use]
    pub fn has(&self, key: &[u8]) -> bool {
        (self.distance(key)).is_some_and(|distance| distance < self.count)
    }

    /// The number of places.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// The key behind the last place, if its number exists.
    #[must_use]
    pub fn end(&self) -> Option<&[u8]> {
        self.end.as_deref()
    }

    /// The length of the fixed part, with which all keys begin.
    #[must_use]
    pub fn fixed_bytes(&self) -> usize {
        self.fixed.len()
    }

    /// Bytes in use while the page has no record.
    #[must_use]
    pub fn used_bytes(&self) -> usize {
        self.used_bytes
    }
}
