//! `RingMemory.tla`: the actions of the buffer itself. Each returns `None` if the action is not
//! enabled.

use super::state::{Block, Life, Set, State};
use super::{Bug, CircularBuffer};

impl CircularBuffer {
    pub(super) fn offset_of(&self, address: u8) -> u8 {
        address % self.capacity
    }

    /// `AddressOf`: the address that an offset stands for now.
    pub(super) fn address_of(&self, s: &State, offset: u8) -> u8 {
        let (from, to) = (i16::from(s.head), i16::from(offset));
        s.head + (to - from).rem_euclid(self.capacity.into()) as u8
    }

    pub(super) fn in_second_chance(&self, s: &State, offset: u8) -> bool {
        self.address_of(s, offset) < s.second_chance
    }

    fn claimed(&self, s: &State, offset: u8) -> bool {
        self.address_of(s, offset) < s.claimed
    }

    /// The index of a size among the size classes.
    pub(super) fn class(&self, size: u8) -> Option<usize> {
        self.sizes.iter().position(|class| *class == size)
    }

    pub(super) fn no_room(&self, s: &State, size: u8) -> bool {
        if self.bug == Bug::FullIgnored {
            return s.tail >= s.head + self.capacity;
        }
        s.tail + size > s.head + self.capacity
    }

    fn straddles(&self, s: &State, size: u8) -> bool {
        self.bug != Bug::AsPublishedNoPadding && self.offset_of(s.tail) + size > self.capacity
    }

    fn move_tail(&self, s: &mut State, size: u8, new: Block) {
        *s.at_mut(self.offset_of(s.tail)) = new;
        s.tail += size;
        let followed = s.tail.saturating_sub(self.in_place);
        s.second_chance = s.second_chance.max(followed);
    }

    pub(super) fn allocate_at_tail(&self, s: &mut State, page: u8, size: u8) -> Option<()> {
        if self.no_room(s, size) || self.straddles(s, size) {
            return None;
        }
        self.move_tail(s, size, Block::fresh(page, size));
        Some(())
    }

    pub(super) fn pad_at_tail(&self, s: &mut State, size: u8) -> Option<()> {
        if self.no_room(s, size) || !self.straddles(s, size) {
            return None;
        }
        let rest = self.capacity - self.offset_of(s.tail);
        self.move_tail(s, rest, Block::dead(Life::Tombstone, rest));
        Some(())
    }

    pub(super) fn listed(&self, s: &State, size: u8) -> Set {
        self.class(size).map_or(0, |class| s.free_list[class])
    }

    pub(super) fn take_from_list(&self, s: &mut State, size: u8, offset: u8) -> Option<()> {
        let class = self.class(size)?;
        if s.free_list[class] >> offset & 1 == 0 {
            return None;
        }
        if self.bug != Bug::PopUnchecked {
            s.free_list[class] &= !(1 << offset);
        }
        Some(())
    }

    fn reusable(&self, s: &State, offset: u8) -> bool {
        let free = s.at(offset).life == Life::Listed && !self.claimed(s, offset);
        free || self.bug == Bug::PopUnchecked
    }

    pub(super) fn reuse_block(&self, s: &mut State, page: u8, offset: u8) -> Option<()> {
        if !self.reusable(s, offset) {
            return None;
        }
        *s.at_mut(offset) = Block::fresh(page, s.at(offset).size);
        if self.bug == Bug::PopUnchecked {
            s.free_list.iter_mut().for_each(|l| *l &= !(1 << offset));
        }
        Some(())
    }

    pub(super) fn leave_to_evictor(&self, s: &mut State, offset: u8) -> Option<()> {
        if self.reusable(s, offset) {
            return None;
        }
        let block = s.at_mut(offset);
        if block.life == Life::Listed {
            *block = Block::dead(Life::Tombstone, block.size);
        }
        Some(())
    }

    pub(super) fn free_block(&self, s: &mut State, offset: u8) -> Option<()> {
        let size = s.at(offset).size;
        if self.in_second_chance(s, offset) {
            if self.bug != Bug::CopyWithoutTombstone {
                *s.at_mut(offset) = Block::dead(Life::Tombstone, size);
            }
        } else {
            *s.at_mut(offset) = Block::dead(Life::Listed, size);
            s.free_list[self.class(size)?] |= 1 << offset;
        }
        Some(())
    }

    pub(super) fn claim_block(&self, s: &mut State) -> Option<()> {
        if s.claimed >= s.tail {
            return None;
        }
        s.claimed += s.at(self.offset_of(s.claimed)).size;
        Some(())
    }

    pub(super) fn skip_block(&self, s: &mut State, offset: u8) -> Option<()> {
        let Block { life, size, .. } = *s.at(offset);
        let skipped = match (life, self.bug) {
            (Life::Tombstone, _) | (Life::Listed, Bug::AsPublishedFreeList) => true,
            (Life::Listed, Bug::PoppedBlockEvicted) => self.listed(s, size) >> offset & 1 == 0,
            _ => false,
        };
        *s.at_mut(offset) = Block::dead(Life::Evicted, size);
        skipped.then_some(())
    }

    pub(super) fn unlist_block(&self, s: &mut State, offset: u8) -> Option<()> {
        let Block { life, size, .. } = *s.at(offset);
        let waits = matches!(self.bug, Bug::AsPublishedFreeList | Bug::ListWaitedFor);
        if waits || life != Life::Listed || self.listed(s, size) >> offset & 1 == 0 {
            return None;
        }
        *s.at_mut(offset) = Block::dead(Life::Evicted, size);
        s.free_list[self.class(size)?] &= !(1 << offset);
        Some(())
    }

    pub(super) fn advance_head(&self, s: &mut State, offset: u8) -> Option<()> {
        if self.offset_of(s.head) != offset && self.bug != Bug::HeadOutOfOrder {
            return None;
        }
        let next = self.address_of(s, offset) + s.at(offset).size;
        // `MCForgotten`: whole laps are forgotten.
        let gone = if next >= self.capacity {
            self.capacity
        } else {
            0
        };
        if self.bug != Bug::SecondChanceLeftBehind {
            s.second_chance = s.second_chance.max(next);
        }
        s.head = next - gone;
        s.claimed = s.claimed.wrapping_sub(gone);
        s.tail = s.tail.wrapping_sub(gone);
        s.second_chance = s.second_chance.wrapping_sub(gone);
        *s.at_mut(offset) = Block::NONE;
        Some(())
    }
}
