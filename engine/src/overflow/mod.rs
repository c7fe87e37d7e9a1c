//! Long values: what is longer than a quarter of a page lies on overflow blocks of its own.
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
//! The record in the leaf keeps a [`Pointer`] of [`POINTER_BYTES`]. Layouts, mini-pages, log, redo,
//! splits and scans copy it as they copy any short value; only [`crate::Store`] follows it, when a
//! value is asked for. So a scan that does not get to a row reads nothing of it.
//!
//! # Which values
//! A value that is longer than a quarter of the page, or whose record fits no leaf; up to
//! [`MAX_VALUE_BYTES`] ([`goes_out_of_line`]). A pointer is told from a user's value by its length
//! and its first four bytes. A user's value that looks so is stored out of line, too: what looks
//! like a pointer in a leaf always is one, and no other record pays for that.
//!
//! # A pointer, little-endian
//!
//! | offset | bytes | field |
//! |---:|---:|---|
//! | 0 | 4 | mark |
//! | 4 | 4 | bytes of the value |
//! | 8 | 4 | epoch of the log in which it was written |
//! | 12 | 8 | its number in that epoch: both together no other value ever has |
//! | 20 | 8 | first block of the first run |
//! | 28 | 4 | blocks of the first run |
//! | 32 | 8 | xxh3 of the value |
//!
//! [`block`] says what a block says of itself: whose it is, which part, where the next run lies.
//! A block that is torn, old, lost or another value's is so never taken for data.
//!
//! # The order of things, and why a crash loses nothing
//!
//! ```text
//!   put      write blocks ─▶ append the record ─▶ log flush: device flush, log blocks, device flush
//!   replace  append the record ─▶ durable ─▶ old blocks trimmed and free
//! ```
//!
//! 1. *No durable record names what is not durable.* A record gets to the device in a block of the
//!    log, or in a page or snapshot, which are written after the log is durable up to it. Before it
//!    writes blocks, the log flushes the device if a value was written since the last flush
//!    ([`crate::device::Volume::flush_before_log`]). So redo never needs the bytes of a value.
//! 2. *What a recovery may name is not written over.* Blocks are free once the record that replaced
//!    or deleted their pointer is durable: every recovery from then on redoes that record, or finds
//!    a page that has it, and ends without the pointer. That page or mini-page may have the pointer
//!    for a while; nobody follows it. A `bf` tree learns of a pointer in a leaf when the dirty
//!    record is merged into that, and lets go of it then.
//! 3. *What no record names is free.* Nothing of the allocation is written down. Recovery reads the
//!    leaves that may have pointers, and what they name is taken, all else is free: see
//!    [`recover`]. Blocks of a value whose record was not durable, and those whose end the log had
//!    not yet seen through, are free by that.
//! 4. *Redo writes over no value.* Where page names are places a page that is dead by the log's end
//!    may have a live value in its place. Redo leaves out what the log says of a page before a
//!    value in its place, and so does repair. Where they are not, redo moves pages to free slots:
//!    the slots of all values that it might end with are taken before it begins.
//!
//! # Readers
//! A reader copies the pointer under the latch and reads the blocks without it. If they are not the
//! value's it looks at the record again: a pointer that is still there was never let go of, for no
//! two values have one name, and so the value is damaged; else the read begins anew. So blocks are
//! reused without waiting for readers.
//!
//! `specs/overflow/Overflow.tla` is this protocol, checked with power cuts at every step.
//!
//! # What it costs
//! A put writes `4096 * ceil(len / 4048)` bytes of class `Page`, its record takes 40 bytes of log
//! and leaf for the value, and a log flush behind such puts one more flush of the device. A get
//! reads the blocks, one request a run and MiB, past the page cache: it holds leaves only. Opening
//! a store reads the leaves that may have pointers.

pub(crate) mod block;
pub(crate) mod recover;
mod values;

pub(crate) use values::{Overflow, each_run, read};

use crate::error::{Error, Result};
use crate::node::Limits;
use crate::types::Lba;

/// The longest value in bytes, in every tree of pages.
pub const MAX_VALUE_BYTES: usize = 16 << 20;

/// Bytes of a record's value when the value itself is out of line.
pub const POINTER_BYTES: usize = 40;

/// With what a pointer begins.
const MARK: [u8; 4] = [0xfd, b'O', b'V', 0x01];

/// Where a long value lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pointer {
    /// Bytes of the value.
    pub(crate) len: u32,
    pub(crate) name: Name,
    /// Where the first run begins.
    pub(crate) first: Lba,
    /// Blocks of the first run; fewer than the value has if there are more runs.
    pub(crate) blocks: u32,
    /// xxh3 of the value.
    pub(crate) sum: u64,
}

/// What no two values of a store have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    /// Of the log: durable before anything is written in it.
    pub(crate) epoch: u32,
    pub(crate) number: u64,
}

impl Pointer {
    /// The pointer that these bytes of a leaf, a mini-page or the log are; `None`: they are a
    /// value.
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

    /// Blocks of the value.
    pub(crate) fn all_blocks(&self) -> u64 {
        overflow_blocks(self.len as usize)
    }
}

/// Whether these bytes look like a pointer: in a leaf they are one then.
#[inline]
pub(crate) fn is_pointer(stored: &[u8]) -> bool {
    stored.len() == POINTER_BYTES && stored[..4] == MARK
}

/// Whether there may be a pointer anywhere in these bytes.
pub(crate) fn may_have_pointers(bytes: &[u8]) -> bool {
    bytes.windows(MARK.len()).any(|window| window == MARK)
}

/// Blocks of 4 KiB that a long value of so many bytes takes.
#[must_use]
pub fn overflow_blocks(value_len: usize) -> u64 {
    value_len.div_ceil(block::PAYLOAD).max(1) as u64
}

/// Whether a value of this length goes on overflow blocks, its key being so long.
#[must_use]
#[inline]
pub fn is_long(limits: &Limits, key_len: usize, value_len: usize) -> bool {
    value_len > limits.page_size / 4 || !limits.admits(key_len, value_len)
}

/// Whether this value goes on overflow blocks.
#[inline]
pub(crate) fn goes_out_of_line(limits: &Limits, key_len: usize, value: &[u8]) -> bool {
    is_long(limits, key_len, value.len()) || is_pointer(value)
}

/// Refuses what no store of these pages takes.
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
        // A user who stores these very bytes gets them back: they go out of line.
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
            // A record of the longest key is out of room earlier.
            let room = limits.max_record - limits.max_key;
            assert!(is_long(&limits, limits.max_key, room + 1));
            // Whatever goes out of line, its record fits.
            assert!(limits.admits(limits.max_key, POINTER_BYTES));
        }
        assert_eq!(overflow_blocks(4_048), 1);
        assert_eq!(overflow_blocks(4_049), 2);
        assert_eq!(overflow_blocks(MAX_VALUE_BYTES), 4_145);
    }
}
