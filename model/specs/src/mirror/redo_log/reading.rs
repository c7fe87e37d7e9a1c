//! How blocks are sealed, and how they are read back (`LogFormat.tla`).

use super::format::{Block, Carry, Content, N, Super, Unit, Walk, first_in, record_in};
use super::state::Packing;
use super::{Bug, RedoLog};

impl RedoLog {
    /// The block that contains a position.
    pub(super) fn block_of(&self, position: N) -> N {
        position / self.units
    }

    pub(super) fn round_up(&self, position: N) -> N {
        position.next_multiple_of(self.units)
    }

    pub(super) fn place(&self, index: N) -> usize {
        (index % self.ring) as usize
    }

    /// `Sealed`.
    pub(super) fn sealed(&self, head: Block) -> Content {
        let others = 1..self.units as usize;
        let rest = others.map(|i| head.units.get(i).copied().unwrap_or_default());
        let rest = rest.collect();
        Content { head, rest }
    }

    /// `Zeros`.
    pub(super) fn zeros(&self) -> Content {
        self.sealed(Block::default())
    }

    /// `Witness`.
    pub(super) fn witness(&self, epoch: N, index: N) -> Content {
        self.sealed(Block {
            epoch,
            index,
            closed: true,
            witness: true,
            ..Block::default()
        })
    }

    /// `SealedBlocks`: the blocks that a flush writes, with their indexes.
    pub(super) fn sealed_blocks(
        &self,
        (epoch, starts_at): (N, N),
        packing: Packing,
        at: N,
        units: &[Unit],
    ) -> Vec<(N, Content)> {
        let blocks = units.chunks(self.units as usize);
        let last = at + blocks.len() as N - 1;
        let sealed = (at..).zip(blocks).map(|(index, here)| {
            let unforced = match self.bug {
                Bug::CountsNoUnforced => 0,
                _ => index - at,
            };
            let head = Block {
                epoch,
                index,
                first: first_in(here),
                unforced,
                starts: index == starts_at,
                closed: index == last && packing == Packing::Sparse,
                witness: false,
                end_mark: false,
                units: here.to_vec(),
            };
            (index, self.sealed(head))
        });
        sealed.collect()
    }

    /// `Whole`: the checksum matches.
    pub(super) fn is_whole(&self, content: &Content) -> bool {
        self.bug == Bug::BelievesTornBlock || *content == self.sealed(content.head.clone())
    }

    fn is_mine(&self, content: &Content, index: N) -> bool {
        let head = &content.head;
        let lap = self.bug == Bug::ReplaysOldLap && self.place(head.index) == self.place(index);
        self.is_whole(content) && head.epoch != 0 && (head.index == index || lap)
    }

    /// `Continues`.
    fn continues(&self, walk: &Walk, head: &Block) -> bool {
        match head.epoch.cmp(&walk.epoch) {
            std::cmp::Ordering::Greater => head.starts,
            std::cmp::Ordering::Equal => {
                (!head.witness || self.bug == Bug::ReadsWitness)
                    && !head.end_mark
                    && (walk.ended || self.bug == Bug::ReadsPastHole)
            }
            std::cmp::Ordering::Less => self.bug == Bug::ReadsOlderEpoch,
        }
    }

    /// `ReadLog`: the log from a superblock's redo start on, up to its end.
    pub(super) fn read_log(&self, blocks: &[Content], of: Super) -> Walk {
        let begin = self.block_of(of.redo);
        let mut walk = Walk {
            from: of.redo,
            epoch: of.redo_epoch,
            ended: true,
            flush: self.block_of(self.round_up(of.redo)),
            carry: Carry::None,
            end: of.redo,
            found: Vec::new(),
            bad: false,
            stop: 0,
        };
        let mut index = begin;
        while !walk.bad && index < begin + self.ring {
            let content = &blocks[self.place(index)];
            if !self.is_mine(content, index) || !self.continues(&walk, &content.head) {
                break;
            }
            self.take_block(&mut walk, index, content);
            index += 1;
        }
        walk.stop = index;
        walk
    }

    /// `Take`.
    fn take_block(&self, walk: &mut Walk, index: N, content: &Content) {
        let head = &content.head;
        let others = content.rest.iter().copied();
        let units: Vec<Unit> = (head.units.first().copied().into_iter().chain(others))
            .take(head.units.len())
            .collect();
        let full = units.len() == self.units as usize;
        let here = index == self.block_of(walk.from);
        let offset = if here {
            (walk.from % self.units) as usize
        } else {
            0
        };
        if head.epoch > walk.epoch && self.bug != Bug::CarriesIntoEpoch {
            walk.carry = Carry::None;
        } else if here && offset == 0 && head.first != 1 {
            walk.carry = Carry::Dead;
        }
        walk.epoch = head.epoch;
        walk.ended = full || head.closed && self.bug != Bug::KnowsNoClosed;
        walk.flush = (index - head.unforced).max(self.block_of(walk.from));
        if offset > units.len() {
            walk.bad = true;
        } else if walk.carry != Carry::None {
            let before = match head.first {
                0 => units.len(),
                first => first as usize - 1,
            };
            self.carried(walk, index, &units[..before], head.first != 0 || !full);
            self.frames(walk, index, &units, before);
        } else if offset == 0 && head.first != 1 {
            walk.bad = true;
        } else {
            self.frames(walk, index, &units, offset);
        }
    }

    /// `Carried`.
    fn carried(&self, walk: &mut Walk, index: N, units: &[Unit], ends_here: bool) {
        let Carry::Begun(mut all) = std::mem::replace(&mut walk.carry, Carry::None) else {
            if !ends_here {
                walk.carry = Carry::Dead;
            }
            return;
        };
        all.extend(units);
        let len = all[0].len as usize;
        if all.len() == len {
            walk.find(index * self.units + units.len() as N, record_in(&all));
        } else {
            walk.bad = all.len() > len || ends_here;
            walk.carry = Carry::Begun(all);
        }
    }

    /// `Frames`, with `at` counted from 0.
    fn frames(&self, walk: &mut Walk, index: N, units: &[Unit], mut at: usize) {
        while at < units.len() && !walk.bad {
            let end = at + units[at].len as usize;
            if units[at].part != 1 {
                walk.bad = true;
            } else if end <= units.len() {
                walk.find(index * self.units + end as N, record_in(&units[at..end]));
            } else if units.len() == self.units as usize {
                walk.carry = Carry::Begun(units[at..].to_vec());
            } else {
                walk.bad = true;
            }
            at = end;
        }
    }

    /// `Proof`: whether a block behind the end was written in a later flush.
    fn has_proof(&self, blocks: &[Content], walk: &Walk) -> bool {
        let limit = self.block_of(walk.from) + self.ring;
        let at = |index: N| &blocks[self.place(index)];
        let ahead = (walk.stop..limit).filter(|index| self.is_mine(at(*index), *index));
        // What lies behind an end mark, and is of an older epoch, counts for nothing.
        let mut marked = 0;
        let mut counts: Vec<(N, &Block)> = Vec::new();
        for (index, head) in ahead.map(|index| (index, &at(index).head)) {
            match head.end_mark {
                true => marked = marked.max(head.epoch),
                false if head.epoch >= marked => counts.push((index, head)),
                false => {}
            }
        }
        let newest = counts.iter().map(|(_, head)| head.epoch);
        let newest = newest.fold(walk.epoch, N::max);
        let ended = walk.ended && self.bug != Bug::SuspectsClosed;
        counts.iter().any(|(index, head)| {
            let again = newest == walk.epoch && !ended && !head.witness;
            // One more on both sides, because the lost block may be the one before the first.
            let lost = if again { walk.stop } else { walk.stop + 1 };
            head.epoch == newest && index + 1 > lost + head.unforced
        })
    }

    /// `Damaged`: whether recovery refuses to open.
    pub(super) fn is_damaged(&self, blocks: &[Content], walk: &Walk) -> bool {
        let end = &blocks[self.place(walk.stop)];
        let later = self.is_whole(end) && end.head.index > walk.stop;
        let missing =
            walk.stop == self.block_of(walk.from) && !walk.from.is_multiple_of(self.units);
        let proof = self.bug != Bug::LooksNotAhead && self.has_proof(blocks, walk);
        walk.bad || missing || later || proof
    }
}
