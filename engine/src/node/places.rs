//! Which keys an empty dense page would have places for: what a model of leaves needs to know of the dense layouts.

use super::dense::Dense;
use super::dense_image::{Empty, empty};
use super::dispatch::by_layout;
use super::envelope::Fences;
use super::limit::Refused;
use crate::options::PageLayout;
use crate::types::{Lsn, PageId};

/// The places of a dense page that has no record yet. Made by [`places`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// What all its keys begin with.
    fixed: Vec<u8>,
    key_len: usize,
    /// The number of the first place's key.
    reference: u32,
    count: usize,
    /// The key behind the last place, if there is such a number.
    end: Option<Vec<u8>>,
    used_bytes: usize,
}

/// The places of a page of `page_size` bytes, envelope included, with these fences, for keys and values of these lengths (a semi-dense page takes values of any).
///
/// # Errors
/// [`Refused::Unfit`] if there is no such page or `layout` is not a dense one, [`Refused::TooLarge`] and [`Refused::NotCovered`] for bad fences.
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

/// A key's last bytes as a number.
fn number(numeric: &[u8]) -> u32 {
    let digits = numeric.iter();
    digits.fold(0, |number, &byte| number << 8 | u32::from(byte))
}

impl Places {
    /// How far the key's number is from that of the first place, if the key begins like others and is as long.
    #[must_use]
    pub fn distance(&self, key: &[u8]) -> Option<usize> {
        if key.len() != self.key_len {
            return None;
        }
        let numeric = key.strip_prefix(&self.fixed[..])?;
        let distance = number(numeric).checked_sub(self.reference)?;
        usize::try_from(distance).ok()
    }

    /// Whether this key has a place.
    #[must_use]
    pub fn has(&self, key: &[u8]) -> bool {
        (self.distance(key)).is_some_and(|distance| distance < self.count)
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// The key behind the last place, if there is such a number.
    #[must_use]
    pub fn end(&self) -> Option<&[u8]> {
        self.end.as_deref()
    }

    /// How many bytes all keys begin with.
    #[must_use]
    pub fn fixed_bytes(&self) -> usize {
        self.fixed.len()
    }

    /// Bytes in use while there is no record.
    #[must_use]
    pub fn used_bytes(&self) -> usize {
        self.used_bytes
    }
}
