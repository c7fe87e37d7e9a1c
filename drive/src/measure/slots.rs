//! Which block of the simulated drive holds which block of the recorded one.
//!
//! A drive maps pages, so addresses mean nothing to it: only which writes replace which, and what is
//! live. Recorded addresses may be spread over a large disk. Here each address that holds data has a
//! *slot*, the lowest that was free when it was first written; a discard frees it. The drive is
//! sized to the most slots that were taken at once, and `--capacity` makes it larger.
//!
//! Memory: 4 bytes for each block of a stretch of 4096 that was ever touched. Time: O(1) a block.

/// Addresses of a stretch.
const STRETCH: u64 = 4096;
/// No slot.
const NONE: u32 = u32::MAX;

/// Slots of the addresses that hold data.
#[derive(Clone, Debug, Default)]
pub(super) struct Slots {
    stretches: Vec<Option<Box<[u32]>>>,
    free: Vec<u32>,
    /// Slots that were ever taken; more are not needed at once.
    next: u32,
}

impl Slots {
    /// The slot of an address that is written, and whether it is new.
    #[inline]
    pub(super) fn write(&mut self, lba: u64) -> u32 {
        let stretch = (lba / STRETCH) as usize;
        if stretch >= self.stretches.len() {
            self.stretches.resize(stretch + 1, None);
        }
        let slots =
            self.stretches[stretch].get_or_insert_with(|| vec![NONE; STRETCH as usize].into());
        let slot = &mut slots[(lba % STRETCH) as usize];
        if *slot == NONE {
            *slot = self.free.pop().unwrap_or_else(|| {
                self.next += 1;
                self.next - 1
            });
        }
        *slot
    }

    /// Frees the slot of an address that is discarded.
    #[inline]
    pub(super) fn discard(&mut self, lba: u64) -> Option<u32> {
        let slots = self.stretches.get_mut((lba / STRETCH) as usize)?;
        let slot = &mut slots.as_mut()?[(lba % STRETCH) as usize];
        let freed = std::mem::replace(slot, NONE);
        if freed == NONE {
            return None;
        }
        self.free.push(freed);
        Some(freed)
    }

    /// The slots that were taken at once, at most.
    pub(super) fn most(&self) -> u64 {
        u64::from(self.next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_kept_while_written_and_used_again_after_a_discard() {
        let mut slots = Slots::default();
        let far = 1 << 40;
        assert_eq!(
            [slots.write(5), slots.write(far), slots.write(5)],
            [0, 1, 0]
        );
        assert_eq!(slots.discard(5), Some(0));
        assert_eq!(slots.discard(5), None);
        assert_eq!(slots.discard(6), None);
        assert_eq!(slots.write(9), 0);
        assert_eq!(slots.most(), 2);
    }
}
