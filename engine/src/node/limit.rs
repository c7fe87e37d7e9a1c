//! The largest keys and records that pages take, and the errors of a page that refuses a change.

use crate::error::Error;

/// The largest key and record for a page size. Made by [`limits`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Page size in bytes.
    pub page_size: usize,
    /// The longest key in bytes.
    pub max_key: usize,
    /// The largest record: key length plus value length in bytes.
    pub max_record: usize,
}

/// Returns the limits for pages of `page_size` bytes.
///
/// | page size | longest key | largest record (key + value) |
/// |---|---|---|
/// | 4 KiB | 512 | 1,502 |
/// | 8 KiB | 1,024 | 3,038 |
/// | 16 KiB | 2,048 | 6,110 |
/// | 32 KiB | 4,096 | 12,254 |
/// | 64 KiB | 8,192 | 24,542 |
///
/// A key may take an eighth of the page (`K = P/8`). The limit of records lets two of them and two
/// fences fit: `2 K + 2 (R + 10) <= P - 48`, that is `R = (P - 48)/2 - 10 - P/8`.
///
/// *Why that suffices.* Claim: a put of an admitted record succeeds after finitely many splits. (1)
/// A page with at least two records can be split; both sides fit and are non-empty
/// ([`super::SplitPlan`]), so each further split leaves the put with a page of fewer records. (2)
/// Fences are separators, hence never longer than a key. (3) A page with at most one record uses at
/// most `48 + 2 K + (R + 10)` bytes. Truncated prefixes only make it smaller, so the inequality
/// above leaves room for one more record. By (1), at most `count - 1` splits lead to (3).
///
/// The 48 and the 10 are the header and the slot of the slotted layout. No layout needs more bytes
/// for two records, and all layouts have the same limits, so that records can move between any two
/// of them.
///
/// `page_size` must satisfy [`super::is_page_size`]; other values give meaningless limits.
///
/// ```
/// use treering_engine::node::limits;
///
/// let limits = limits(4096);
/// assert_eq!((limits.max_key, limits.max_record), (512, 1502));
/// assert!(limits.admits(16, 1000));
/// assert!(!limits.admits(16, 1500));
/// ```
#[must_use]
pub const fn limits(page_size: usize) -> Limits {
    let max_key = page_size / 8;
    let per_side = page_size.saturating_sub(LARGEST_HEADER_BYTES) / 2;
    Limits {
        page_size,
        max_key,
        max_record: per_side.saturating_sub(LARGEST_SLOT_BYTES + max_key),
    }
}

/// Header bytes of the layout with the largest header (slotted).
pub(super) const LARGEST_HEADER_BYTES: usize = 48;
/// Slot bytes of the layout with the largest slots (slotted).
pub(super) const LARGEST_SLOT_BYTES: usize = 10;

impl Limits {
    /// Returns whether a record of these lengths is admitted.
    #[must_use]
    #[inline]
    pub const fn admits(&self, key_len: usize, value_len: usize) -> bool {
        key_len <= self.max_key && value_len <= self.max_record - key_len
    }

    /// As [`Limits::admits`], but returns the error for the store's caller.
    pub fn check(&self, key_len: usize, value_len: usize) -> Result<(), Error> {
        if key_len > self.max_key {
            return Err(Error::KeyTooLong {
                len: key_len,
                max: self.max_key,
                page_size: self.page_size,
            });
        }
        if !self.admits(key_len, value_len) {
            return Err(Error::RecordTooLarge {
                len: key_len.saturating_add(value_len),
                max: self.max_record,
                page_size: self.page_size,
            });
        }
        Ok(())
    }
}

/// Why a page refused a change. The page is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The page has too few free bytes, even counting holes: split it first.
    #[error("the page has no room for it")]
    NoSpace,
    /// The key (or the separator) lies outside the page's fences: the caller picked the wrong page.
    #[error("the key lies outside the page's fences")]
    NotCovered,
    /// The records are not in strictly ascending key order.
    #[error("the records are not in strictly ascending key order")]
    OutOfOrder,
    /// The layout has no place for such a key or value
    /// ([`PageLayout::DENSE`](super::PageLayout::DENSE)): convert or split the page first.
    #[error("the page's layout has no place for such a record")]
    Unfit,
    /// The key, fence or record is larger than [`limits`] allows.
    #[error("the key or record is larger than the page size allows")]
    TooLarge,
}
