//! What the engine's pages take, computed from their layout on the device: the sizes of the mirror.
//!
//! ```text
//! page      4096 bytes, 48 of them for envelope and header; both fences at its end
//! hints     10 bytes for a slot, suffix and value; 16 hints for more than 32 records
//! prints     6 bytes for a slot, one for a hash, suffix and value
//! dense      a bit and a value for each place; room for a fence as long as a key
//! semi       2 bytes for each key between the fences; 2 for a value's length, and the value
//! key        `fixed` equal bytes, then its number, 4 bytes big-endian
//! fence      as long as it must be to tell its neighbours apart
//! ```

use treering_engine::BLOCK_SIZE;

use crate::mirror::wide::leaf_layout::Layout;
use crate::mirror::wide::leaf_layout::sizes::{Fences, Sizes};

/// Envelope and header of a page.
const HEADER: usize = 48;
/// Bytes of a record beside suffix and value, with hints.
const SLOT_WITH_HEAD: usize = 10;
/// The same with fingerprints.
const SLOT_WITH_PRINT: usize = 7;
/// Bytes of a place of a semi-dense page, and of the length before a value there.
const PLACE: usize = 2;
const SEMI_LEN: usize = 2;
/// Bytes of a key's number.
pub(super) const NUMBER: usize = 4;

/// Bytes of the hints of a page with so many records.
fn index(records: usize) -> usize {
    if records > 32 {
        16 * size_of::<u32>()
    } else {
        0
    }
}

/// Pages for keys with `fixed` bytes before their numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pages {
    pub(super) fixed: usize,
    /// The least key. As a fence it is empty.
    pub(super) least: u32,
    /// Behind the greatest key. There is no such fence.
    pub(super) top: u32,
    /// Whether dense pages are semi-dense.
    pub(super) semi: bool,
}

impl Pages {
    /// The bytes of a key.
    pub(super) fn key(&self, number: u32) -> Vec<u8> {
        let mut key = vec![b'p'; self.fixed];
        key.extend(number.to_be_bytes());
        key
    }

    /// The number of a key. `None` for bytes that are none.
    pub(super) fn number(&self, key: &[u8]) -> Option<u32> {
        let number = key.get(self.fixed..)?.try_into().ok()?;
        let number = u32::from_be_bytes(number);
        (self.key(number) == key).then_some(number)
    }

    /// The bytes of a fence. Its last byte is not 0: it is the first one that differs.
    pub(super) fn fence(&self, number: u32) -> Vec<u8> {
        if number == self.least || number == self.top {
            return Vec::new();
        }
        let mut fence = self.key(number);
        while fence.len() > self.fixed && fence.last() == Some(&0) {
            fence.pop();
        }
        fence
    }

    /// The number of a fence. `None` for bytes that are none.
    pub(super) fn number_of_fence(&self, fence: &[u8]) -> Option<u32> {
        if fence.is_empty() {
            return Some(self.least);
        }
        let mut key = fence.to_vec();
        key.resize(self.fixed + NUMBER, 0);
        self.number(&key)
    }

    /// The bytes that the fences have in common, if there are both.
    fn shared(&self, (lower, upper): Fences) -> usize {
        let (lower, upper) = (self.fence(lower), self.fence(upper));
        let pairs = lower.iter().zip(&upper);
        pairs.take_while(|(a, b)| a == b).count()
    }

    fn places_beside(&self, lower: u32, len: u32, tail: usize) -> u32 {
        let lower = self.fence(lower).len();
        if lower < self.fixed {
            // The fixed part is read from the lower fence.
            return 0;
        }
        let (room, len) = (BLOCK_SIZE - HEADER - lower - tail, len as usize);
        let mut places = 8 * room / (8 * len + 1);
        while places.div_ceil(8) + places * len > room {
            places -= 1;
        }
        places.min(u16::MAX.into()) as u32
    }
}

impl Sizes for Pages {
    fn room(&self, layout: Layout, (lower, upper): Fences, records: usize) -> u32 {
        let fences = self.fence(lower).len() + self.fence(upper).len();
        let index = if layout == Layout::General {
            index(records)
        } else {
            0
        };
        (BLOCK_SIZE - HEADER - fences - index) as u32
    }

    fn beside(&self, layout: Layout, fences: Fences) -> u32 {
        let slot = match layout {
            Layout::Other => SLOT_WITH_PRINT,
            _ => SLOT_WITH_HEAD,
        };
        (slot + self.fixed + NUMBER - self.shared(fences)) as u32
    }

    fn places(&self, lower: u32, len: u32) -> u32 {
        self.places_beside(lower, len, self.fixed + NUMBER)
    }

    fn is_semi(&self) -> bool {
        self.semi
    }

    fn room_of_semi(&self, (lower, upper): Fences) -> Option<u32> {
        let places = (upper - lower) as usize;
        let (lower, bounded) = (self.fence(lower), upper != self.top);
        let fences = lower.len() + self.fence(upper).len();
        let room = (BLOCK_SIZE - HEADER - fences).checked_sub(PLACE * places);
        // The fixed part is read from the lower fence.
        let room = room.filter(|_| bounded && lower.len() >= self.fixed);
        room.map(|room| room as u32)
    }

    fn beside_in_semi(&self) -> u32 {
        SEMI_LEN as u32
    }

    /// The upper fence is not known yet: it is taken for one byte more than a key.
    fn end_of_partition(&self, lower: u32, len: u32) -> u32 {
        lower + self.places_beside(lower, len, self.fixed + NUMBER + 1)
    }

    fn separator(&self, left: u32, right: u32) -> u32 {
        let same = (left ^ right).leading_zeros() / 8;
        let cut = 8 * (NUMBER as u32 - 1).saturating_sub(same);
        right >> cut << cut
    }

    /// One key in sixteen, around the median, may be the first on the right: the first that differs
    /// where all of them do.
    fn near(&self, keys: &[u32], n: usize) -> usize {
        let around = (keys.len() / 16).max(2);
        let first = n.saturating_sub(around / 2);
        let end = (first + around).min(keys.len());
        let same = (keys[first] ^ keys[end - 1]).leading_zeros() / 8;
        let byte = |key: u32| key.to_be_bytes()[same as usize];
        let mut others = first + 1..end;
        let at = others.find(|at| byte(keys[*at]) != byte(keys[first]));
        at.unwrap_or(n)
    }

    /// Three quarters of the page would be free if its records had slots.
    fn is_nearly_empty(&self, records: usize, len: u32, (lower, upper): Fences) -> bool {
        let fences = self.fence(lower).len() + self.fence(upper).len();
        let used = fences + index(records) + records * (SLOT_WITH_HEAD + NUMBER + len as usize);
        (BLOCK_SIZE - HEADER).saturating_sub(used) >= BLOCK_SIZE / 4 * 3
    }
}
