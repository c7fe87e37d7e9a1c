//! Long values: values longer than a quarter of a page, stored on overflow blocks of their own.
//!
//! ```text
//!   leaf, mini-page, log      [ key | pointer ]          a short record like any other
//!                                       │
//!   page space                          ▼  first run                 second run
//!                             [block 0][block 1] ... [block n]   [block n+1] ...
//!                              header + 4,048 bytes   │ next run ──▲
//! ```
//!
//! A value is written once, to places of the page store that hold nothing else, and never changed.
//! The record in the leaf holds a [`Pointer`] of [`POINTER_BYTES`]. Layouts, mini-pages, log, redo,
//! splits and scans copy the pointer as they copy any short value; only [`crate::Store`] follows
//! it, when a value is requested. So a scan that stops before a row reads nothing of its value.
//!
//! # Which values
//! A value is stored out of line if it is longer than a quarter of the page, or if its record does
//! not fit in a leaf. The limit is [`MAX_VALUE_BYTES`] ([`goes_out_of_line`]). A pointer is
//! recognized by its length and its first four bytes. A user's value that looks like a pointer is
//! stored out of line too, so whatever looks like a pointer in a leaf is one, and other records pay
//! nothing for the distinction.
//!
//! # A pointer, little-endian
//!
//! | offset | bytes | field |
//! |---:|---:|---|
//! | 0 | 4 | mark |
//! | 4 | 4 | bytes of the value |
//! | 8 | 4 | epoch of the log in which it was written |
//! | 12 | 8 | its number in that epoch; epoch and number are never reused together |
//! | 20 | 8 | first block of the first run |
//! | 28 | 4 | blocks of the first run |
//! | 32 | 8 | xxh3 of the value |
//!
//! The header of a [`block`] says which value it belongs to, which part of it, and where the next
//! run lies. So a block that is torn, old, lost or another value's is never mistaken for data.
//!
//! # The order of writes, and why a crash loses nothing
//!
//! ```text
//!   put      write blocks ─▶ append the record ─▶ log flush: device flush, log, device flush
//!   replace  append the record ─▶ durable ─▶ old blocks trimmed and free
//! ```
//!
//! 1. *No durable record refers to a value that is not durable.* A record reaches the device in a
//!    block of the log, or in a page or snapshot, which are written only once the log is durable up
//!    to the record. If a value was written since the last flush, the log flushes the device before
//!    it writes blocks ([`crate::device::Volume::flush_before_log`]). So redo never needs the bytes
//!    of a value.
//! 2. *A value that recovery may refer to is not overwritten.* Blocks are freed once the record
//!    that replaced or deleted their pointer is durable. From then on every recovery redoes that
//!    record, or finds a page that includes it, and ends without the pointer. A page or mini-page
//!    may contain the old pointer for a while, but nobody follows it. A `bf` tree discovers a
//!    pointer in a leaf when it merges the dirty record into the leaf, and retires the value then.
//! 3. *A value that no record refers to is free.* The allocation is not recorded anywhere. Recovery
//!    reads the leaves that may have pointers and takes the places of the values they refer to; all
//!    other places are free: see [`recover`]. This also frees the blocks of values whose record was
//!    not durable, and of values that were retired but not freed yet.
//! 4. *Redo overwrites no value.* Where page names are places, a page that is dead at the end of
//!    the log may have a live value in its place. Redo skips records of a page that are older than
//!    a value in its place, and so does repair. Where page names are not places, redo moves pages
//!    to free slots, so the slots of all values that may be live at the end are taken before redo
//!    begins.
//!
//! # Readers
//! A reader copies the pointer under the latch and reads the blocks without it. If the blocks are
//! not the value's, it looks at the record again. If the pointer is still there, the value was
//! never freed, since no two values have the same name, so the value is damaged. Otherwise the read
//! starts over. So blocks can be reused without waiting for readers.
//!
//! `specs/overflow/Overflow.tla` specifies this protocol, and checks it with power cuts at every
//! step.
//!
//! # What it costs
//! A put writes `4096 * ceil(len / 4048)` bytes of class `Page`, and its record takes 40 bytes of
//! log and leaf for the value. A log flush after such puts makes one more flush of the device. A
//! get reads the blocks, one request per run and MiB, bypassing the page cache, which holds leaves
//! only. Opening a store reads the leaves that may have pointers.

pub(crate) mod block;
pub(crate) mod recover;
mod values;

pub(crate) use values::{Overflow, each_run, read};

use crate::error::{Error, Result};
use crate::node::Limits;
use crate::types::Lba;

/// The length in bytes of the longest value that a store accepts.
pub const MAX_VALUE_BYTES: usize = 16 << 20;

/// The length in bytes of the pointer that replaces a long value in its record.
pub const POINTER_BYTES: usize = 40;

/// The first bytes of every pointer.
const MARK: [u8; 4] = [0xfd, b'O', b'V', 0x01];

/// A reference to a long value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pointer {
    /// Bytes of the value.
    pub(crate) len: u32,
    pub(crate) name: Name,
    /// First block of the first run.
    pub(crate) first: Lba,
    /// Blocks of the first run. Fewer than the value has if there are more runs.
    pub(crate) blocks: u32,
    /// xxh3 of the value.
    pub(crate) sum: u64,
}

/// The unique name of a value within a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    /// The log's epoch, which is durable before anything is written in it.
    pub(crate) epoch: u32,
    pub(crate) number: u64,
}

impl Pointer {
    /// Decodes a pointer from the bytes of a leaf, a mini-page or the log. Returns `None` if the
    /// bytes are an ordinary value.
    #[inline]
    pub(crate) fn of(stored: &[u8]) -> Option<Pointer> {
        is_pointer(stored).then(|| Pointer::decode(stored))
    }

    #[cold]
    fn decode(b: &[u8]) -> Pointer {
        let u32_at = |o: usize| u32::from_le_bytes(b[o..o + 4].try_into().expect("four bytes"));
        let u64_at = |o: usize| u64::from_le_bytes(b[o..o + 8].try_into().expect("eight bytes"));
        Pointer {
            len: u32_at(4),
            name: Name {
                epoch: u32_at(8),
                number: u64_at(12),
            },
            first: Lba(u64_at(20)),
            blocks: u32_at(28),
            sum: u64_at(32),
        }
    }

    pub(crate) fn encode(&self) -> [u8; POINTER_BYTES] {
        let mut b = [0; POINTER_BYTES];
        b[0..4].copy_from_slice(&MARK);
        b[4..8].copy_from_slice(&self.len.to_le_bytes());
        b[8..12].copy_from_slice(&self.name.epoch.to_le_bytes());
        b[12..20].copy_from_slice(&self.name.number.to_le_bytes());
        b[20..28].copy_from_slice(&self.first.0.to_le_bytes());
        b[28..32].copy_from_slice(&self.blocks.to_le_bytes());
        b[32..40].copy_from_slice(&self.sum.to_le_bytes());
        b
    }

    /// Returns the number of blocks of the whole value.
    pub(crate) fn all_blocks(&self) -> u64 {
        overflow_blocks(self.len as usize)
    }
}

/// Returns whether these bytes look like a pointer. In a leaf, they then are one.
#[inline]
pub(crate) fn is_pointer(stored: &[u8]) -> bool {
    stored.len() == POINTER_BYTES && stored[..4] == MARK
}

/// Returns whether these bytes may contain a pointer anywhere.
pub(crate) fn may_have_pointers(bytes: &[u8]) -> bool {
    bytes.windows(MARK.len()).any(|window| window == MARK)
}

/// Returns how many blocks of 4 KiB a long value of `len` bytes takes.
///
/// ```
/// use treering_engine::overflow_blocks;
///
/// // A block holds 4,048 bytes of a value behind its header.
/// assert_eq!(overflow_blocks(4_048), 1);
/// assert_eq!(overflow_blocks(4_049), 2);
/// ```
#[must_use]
pub fn overflow_blocks(value_len: usize) -> u64 {
    value_len.div_ceil(block::PAYLOAD).max(1) as u64
}

/// Returns whether a value of this length goes on overflow blocks, given the length of its key.
#[must_use]
#[inline]
pub fn is_long(limits: &Limits, key_len: usize, value_len: usize) -> bool {
    value_len > limits.page_size / 4 || !limits.admits(key_len, value_len)
}

/// Returns whether this value goes on overflow blocks.
#[inline]
pub(crate) fn goes_out_of_line(limits: &Limits, key_len: usize, value: &[u8]) -> bool {
    is_long(limits, key_len, value.len()) || is_pointer(value)
}

/// Checks that a store of these pages can hold the record.
pub(crate) fn check(limits: &Limits, key: &[u8], value: &[u8]) -> Result<()> {
    limits.check(key.len(), 0)?;
    if value.len() > MAX_VALUE_BYTES {
        return Err(Error::ValueTooLong {
            len: value.len(),
            max: MAX_VALUE_BYTES,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::limits;

    #[test]
    fn a_pointer_is_told_from_every_value_that_stays_in_its_leaf() {
        let pointer = Pointer {
            len: 5_000,
            name: Name {
                epoch: 3,
                number: 9,
            },
            first: Lba(77),
            blocks: 2,
            sum: 0x0123_4567_89ab_cdef,
        };
        let bytes = pointer.encode();
        assert_eq!(Pointer::of(&bytes), Some(pointer));
        // A user who stores these very bytes gets them back, because they go out of line.
        let limits = limits(4096);
        assert!(goes_out_of_line(&limits, 8, &bytes));
        for other in [&bytes[..39], &bytes[1..], &[&bytes[..], b"x"].concat()] {
            assert!(!goes_out_of_line(&limits, 8, other));
            assert_eq!(Pointer::of(other), None);
        }
    }

    #[test]
    fn values_go_out_of_line_from_a_quarter_of_the_page_on() {
        for page_size in [4096, 8192, 65_536] {
            let limits = limits(page_size);
            assert!(!is_long(&limits, 8, page_size / 4));
            assert!(is_long(&limits, 8, page_size / 4 + 1));
            // A record with the longest key runs out of room earlier.
            let room = limits.max_record - limits.max_key;
            assert!(is_long(&limits, limits.max_key, room + 1));
            // The record of every value stored out of line fits.
            assert!(limits.admits(limits.max_key, POINTER_BYTES));
        }
        assert_eq!(overflow_blocks(4_048), 1);
        assert_eq!(overflow_blocks(4_049), 2);
        assert_eq!(overflow_blocks(MAX_VALUE_BYTES), 4_145);
    }
}
