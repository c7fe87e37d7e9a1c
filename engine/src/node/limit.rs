//! How large keys and records may be, and what a page says when it cannot do as asked.

use crate::error::Error;

/// The largest key and record of a page size. Made by [`limits`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Page size in bytes.
    pub page_size: usize,
    /// The longest key in bytes.
    pub max_key: usize,
    /// The largest record: key length plus value length in bytes.
    pub max_record: usize,
}

/// Limits for pages of `page_size` bytes.
///
/// | page size | longest key | largest record (key + value) |
/// |---|---|---|
/// | 4 KiB | 512 | 1,502 |
/// | 8 KiB | 1,024 | 3,038 |
/// | 16 KiB | 2,048 | 6,110 |
/// | 32 KiB | 4,096 | 12,254 |
/// | 64 KiB | 8,192 | 24,542 |
///
/// Keys get an eighth of the page (`K = P/8`); records get what makes two of them and two fences fit:
/// `2 K + 2 (R + 10) <= P - 48`, that is `R = (P - 48)/2 - 10 - P/8`.
///
/// *Why that suffices.* Claim: a put of an admitted record succeeds after finitely many splits.
/// (1) A page with at least two records can be split, both sides fit and are non-empty ([`super::SplitPlan`]),
/// so each further split leaves the put a page with fewer records. (2) Fences are separators, hence never longer than a
/// key. (3) A page with at most one record uses at most `48 + 2 K + (R + 10)` bytes, truncated prefixes only make it
/// smaller, so the inequality above leaves it room for one more. By (1) at most `count - 1` splits lead to (3).
///
/// The 48 and the 10 are the slotted layout's header and slot. No layout takes more for two records, and all have the same limits, so that whatever one
/// holds another can.
///
/// `page_size` must satisfy [`super::is_page_size`]; others give limits without meaning.
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

/// Header bytes of the layout that takes most (slotted).
pub(super) const LARGEST_HEADER_BYTES: usize = 48;
/// Slot bytes of the layout that takes most (slotted).
pub(super) const LARGEST_SLOT_BYTES: usize = 10;

impl Limits {
    /// Whether a record of these lengths is admitted.
    #[must_use]
    #[inline]
    pub const fn admits(&self, key_len: usize, value_len: usize) -> bool {
        key_len <= self.max_key && value_len <= self.max_record - key_len
    }

    /// As [`Limits::admits`], with the error that a caller of the store wants to see.
    ///
    /// # Errors
    /// [`Error::KeyTooLong`], [`Error::RecordTooLarge`].
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

/// Why a page refused a change. The page is then exactly as before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Not enough free bytes, holes included: split the page first.
    #[error("the page has no room for it")]
    NoSpace,
    /// The key (or the separator) lies outside the page's fences: whoever sent it here was misled.
    #[error("the key lies outside the page's fences")]
    NotCovered,
    /// Records that must come in strictly ascending key order did not.
    #[error("the records are not in strictly ascending key order")]
    OutOfOrder,
    /// The layout has no place for such a key or value ([`PageLayout::DENSE`]): lay the page out in another way, or split it, first.
    #[error("the page's layout has no place for such a record")]
    Unfit,
    /// The key, fence or record is larger than [`limits`] allows.
    #[error("the key or record is larger than the page size allows")]
    TooLarge,
}
