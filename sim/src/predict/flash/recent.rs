//! Recognises blocks that are written again soon after they were written.

use super::shape::FlashShape;

/// The longest time between two writes of a block that counts as soon, as a share of the log:
/// garbage collection meets no page before it is much older.
const SHARE: u64 = 128;
/// Slots of the table, at most.
const MOST_SLOTS: u64 = 1 << 16;
const EMPTY: (u64, u64) = (u64::MAX, 0);

/// A direct-mapped table of the blocks placed last, with the time in host writes.
#[derive(Debug)]
pub(super) struct Recent {
    slots: Vec<(u64, u64)>,
    window: u64,
    now: u64,
}

impl Recent {
    pub(super) fn new(shape: &FlashShape, sample: u32) -> Recent {
        // A block that is hot is placed once in a window, and must remain a small part of a
        // miniature's writes then.
        let least = 16 * u64::from(sample);
        let window = match shape.log_pages() / SHARE {
            window if window < least => 0,
            window => window,
        };
        let slots = (2 * window).next_power_of_two().clamp(1, MOST_SLOTS);
        Recent {
            slots: vec![EMPTY; slots as usize],
            window,
            now: 0,
        }
    }

    /// Counts a write of `lba`; returns whether it was placed a short time ago. If not, it is
    /// placed now.
    #[inline]
    pub(super) fn is_rewritten(&mut self, lba: u64) -> bool {
        self.now += 1;
        let mask = self.slots.len() - 1;
        let slot = &mut self.slots[lba as usize & mask];
        if slot.0 == lba && self.now - slot.1 < self.window {
            return true;
        }
        *slot = (lba, self.now);
        false
    }

    /// Forgets a block that was trimmed.
    pub(super) fn forget(&mut self, lba: u64) {
        let mask = self.slots.len() - 1;
        let slot = &mut self.slots[lba as usize & mask];
        if slot.0 == lba {
            *slot = EMPTY;
        }
    }
}
