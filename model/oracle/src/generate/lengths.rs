//! Lengths of values.

use super::shape::{FILLING_KEYS, Shape};
use super::vocabulary::Vocabulary;
use crate::edges;
use crate::engine::{Limits, LongValues};

/// The inputs that determine the lengths of values.
#[derive(Clone, Copy)]
pub(super) struct Lengths<'a> {
    pub(super) limits: &'a Limits,
    /// Values that the engine stores out of line.
    pub(super) long: Option<LongValues>,
}

/// The length of a long value: near a multiple of a piece, at either limit, or random.
fn long_length(n: u16, long: LongValues) -> u32 {
    let LongValues { above, to, piece } = long;
    let pieces = (1 + usize::from(n / 8) % 5) * piece;
    let len = match n % 8 {
        0 => above + 1,
        1 => to,
        2 => pieces,
        3 => pieces + 1,
        4 => above + pieces,
        _ => above + usize::from(n / 8) * (to - above) / 2_048,
    };
    len.clamp(above + 1, to) as u32
}

impl Shape {
    /// The length of the value that goes with a key of `key` bytes. Now and then it is empty or as
    /// long as possible; mostly a few dozen bytes, or up to the longest of the shape.
    pub(super) fn length(&self, n: u16, key: usize, lengths: Lengths<'_>) -> u32 {
        let limits = lengths.limits;
        let mut room = limits.max_record - key;
        if let Some(long) = lengths.long {
            room = room.min(long.above);
            // A quarter of the values in half of the programs. With many keys no store could hold
            // them.
            if (self.salt / 4_096).is_multiple_of(2) && self.keys <= FILLING_KEYS && n % 4 == 1 {
                return long_length(n / 4, long);
            }
        }
        // A row with another length ends a leaf that requires one length, so there are few.
        let few = [256, 256, 64, 16][(self.salt / 64 % 4) as usize];
        if self.vocabulary == Vocabulary::Rows && !n.is_multiple_of(few) {
            return room.min([0, 3, 8, 16, 33, 64, 100][(self.salt / 7 % 7) as usize]) as u32;
        }
        // Every value for keys that test lengths, and a few for all others.
        if n % 16 == 5 || self.vocabulary == Vocabulary::Edges && !n.is_multiple_of(4) {
            return edges::value_length(limits, key, usize::from(n / 16)) as u32;
        }
        // Many records fit in a leaf that omits their common prefix, and few in one that does not.
        if self.vocabulary == Vocabulary::Deep
            && (self.salt / 4).is_multiple_of(2)
            && !n.is_multiple_of(8)
        {
            return room.min(usize::from(n / 8) % 12) as u32;
        }
        // Mostly values that fit in a slot of a tree in persistent memory.
        if self.vocabulary == Vocabulary::Words && !n.is_multiple_of(8) {
            return room.min(8) as u32;
        }
        let longest = (room * usize::from(self.longest) / 255).max(8).min(room);
        // Only the largest values, a few to a page. A few dozen operations then need more pages
        // than the cache has.
        let large = self.longest == u8::MAX && n % 32 >= 4;
        let len = match n % 32 {
            _ if large => room - usize::from(n / 32) % 64 * room / 256,
            0 if self.vocabulary == Vocabulary::Rows && (n / 32).is_multiple_of(2) => 0,
            0 => usize::from(n / 32) % 9,
            1 => room,
            2..=15 => 8 + usize::from(n / 32) % 60,
            _ => 8 + usize::from(n / 32) * longest / 2048,
        };
        len.min(room) as u32
    }
}
