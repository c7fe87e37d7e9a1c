//! Crashes, restarts, decay and recovery.

use super::format::{Block, Content, Super};
use super::state::{Packing, Phase, State, Verdict, count_up_to};
use super::steps::forget_memory;
use super::{Action, Bug, RedoLog};

impl RedoLog {
    pub(super) fn recovery_steps(&self, s: &State, actions: &mut Vec<Action>) {
        if !s.is_down() {
            let switched = s.packing == Packing::Sparse && s.phase != Phase::Read;
            if s.crashes < self.max_crashes && (!self.switches || switched) {
                actions.extend((0..self.outcomes(s)).map(Action::Crash));
            }
            if s.crashes < self.max_restarts {
                actions.push(Action::Restart);
            }
        }
        match s.phase {
            Phase::Cut | Phase::Killed => {
                if s.rotten < self.max_rotten {
                    actions.extend(
                        (0..s.log_dev.len())
                            .filter(|p| self.may_rot(s, *p))
                            .map(Action::Rot),
                    );
                }
                actions.extend(
                    self.packings
                        .iter()
                        .map(|packing| Action::OpenLog(*packing)),
                );
            }
            Phase::Read => {
                actions.push(Action::FlushAgain);
                if self.bug == Bug::MarksEndEarly {
                    actions.push(Action::MarkEnd);
                }
            }
            Phase::Durable if self.bug == Bug::MarksEndEarly => {}
            Phase::Durable => actions.push(Action::MarkEnd),
            Phase::Marked => actions.push(Action::FlushMark),
            Phase::Settled => actions.extend([true, false].map(Action::RecordEpoch)),
            Phase::Recorded => actions.push(Action::Open),
            Phase::Up | Phase::Closing | Phase::Damaged => {}
        }
    }

    fn may_rot(&self, s: &State, p: usize) -> bool {
        s.log_dev[p].len() == 1 && s.log_dev[p][0] != self.zeros()
    }

    /// `LeftOf`: what a crash may leave of a place.
    fn left_of(&self, versions: &[Content]) -> Vec<Content> {
        let mut left = versions.to_vec();
        if self.tears_at_sectors && versions.len() > 1 {
            for i in 0..self.units as usize - 1 {
                let mixed = left.iter().flat_map(|content| {
                    versions.iter().map(|other| {
                        let mut content = content.clone();
                        content.rest[i] = other.rest[i];
                        content
                    })
                });
                left = mixed.collect();
                left.sort();
                left.dedup();
            }
        }
        left
    }

    /// The number of combinations that a crash may leave.
    fn outcomes(&self, s: &State) -> usize {
        let places = s.log_dev.iter().map(|place| self.left_of(place).len());
        places.product::<usize>() * s.super_dev.len()
    }

    /// Takes an action that ends a life, or one of recovery.
    pub(super) fn recover(&self, s: &mut State, action: Action) {
        match action {
            Action::Crash(left) => self.crash(s, left),
            Action::Restart => {
                let (blocks, of) = (s.newest(), s.newest_super());
                s.verdict = self.judge(s, &blocks, of);
                forget_memory(s);
                s.crashes += 1;
                s.phase = Phase::Killed;
            }
            Action::Rot(p) => {
                s.log_dev[p] = vec![self.zeros()];
                s.rotten += 1;
            }
            Action::OpenLog(packing) => self.open_log(s, packing),
            Action::FlushAgain => {
                s.device_flush();
                s.durable = s.found.last().map_or(s.oldest, |last| last.lsn);
                s.phase = Phase::Durable;
            }
            Action::MarkEnd => {
                if let Some((place, mark)) = self.end_mark(s) {
                    s.put(place, mark);
                }
                s.phase = Phase::Marked;
            }
            Action::FlushMark => {
                s.device_flush();
                s.durable = s.end;
                let given_up = count_up_to(&s.history, s.oldest);
                s.history.truncate(given_up);
                s.history.extend(&s.found);
                s.phase = Phase::Settled;
            }
            Action::RecordEpoch(moves) => {
                let of = match moves {
                    true => Super {
                        epoch: s.epoch,
                        redo: s.end,
                        redo_epoch: s.epoch,
                    },
                    false => Super {
                        epoch: s.epoch,
                        ..s.newest_super()
                    },
                };
                s.lost_super = false;
                if self.bug != Bug::RecordsNoEpoch {
                    s.write_super(of);
                }
                s.phase = Phase::Recorded;
            }
            Action::Open => {
                s.device_flush();
                s.oldest = s.newest_super().redo;
                s.found.clear();
                s.phase = Phase::Up;
            }
            _ => {}
        }
    }

    /// The power fails, and the digits of `left` select what is left of each place.
    fn crash(&self, s: &mut State, left: usize) {
        let mut rest = left;
        let mut digit = |base: usize| {
            let digit = rest % base;
            rest /= base;
            digit
        };
        let blocks = s.log_dev.iter().map(|place| {
            let mut all = self.left_of(place);
            all.swap_remove(digit(all.len()))
        });
        let blocks: Vec<Content> = blocks.collect();
        let of = s.super_dev[digit(s.super_dev.len())];
        self.leave(s, blocks, of);
    }

    /// The rest of `Crash`, once it is known what is left.
    pub(super) fn leave(&self, s: &mut State, blocks: Vec<Content>, of: Super) {
        s.verdict = self.judge(s, &blocks, of);
        let walk = self.read_log(&blocks, of);
        s.history = s.history_read(of, &walk);
        s.durable = walk.end;
        s.log_dev = blocks.into_iter().map(|content| vec![content]).collect();
        s.super_dev = vec![of];
        s.lost_log.fill(false);
        s.lost_super = false;
        forget_memory(s);
        s.crashes += 1;
        s.phase = Phase::Cut;
    }

    /// The end mark that recovery writes, and its place, unless the log fills its ring or ends with
    /// a witness.
    pub(super) fn end_mark(&self, s: &State) -> Option<(usize, Content)> {
        let (index, from) = (self.block_of(s.end), self.block_of(s.oldest));
        let place = self.place(index);
        let blocks = s.newest();
        let walk = self.read_log(&blocks, s.newest_super());
        let witnessed = blocks[place] == self.witness(walk.epoch, index);
        let mark = Block {
            epoch: s.epoch,
            index,
            closed: true,
            end_mark: true,
            ..Block::default()
        };
        let marks = index != from + self.ring && !witnessed && self.bug != Bug::TrustsTheEnd;
        marks.then(|| (place, self.sealed(mark)))
    }

    fn open_log(&self, s: &mut State, packing: Packing) {
        let (blocks, of) = (s.newest(), s.newest_super());
        let walk = self.read_log(&blocks, of);
        if self.is_damaged(&blocks, &walk) {
            s.phase = Phase::Damaged;
            if s.rotten == 0 {
                s.verdict = Verdict::Damaged;
            }
            return;
        }
        s.verdict = s.judge_read(&walk);
        let start = self.round_up(walk.end);
        if self.bug != Bug::TrustsWhatItReads {
            for index in walk.flush..self.block_of(start) {
                s.lost_log[self.place(index)] = false;
            }
            s.lost_super = false;
        }
        s.found = walk.found;
        s.packing = packing;
        s.epoch = of.epoch + u32::from(self.bug != Bug::KeepsEpoch);
        s.starts_at = self.block_of(start);
        s.buffer_at = s.starts_at;
        s.end = start;
        s.oldest = of.redo;
        s.phase = Phase::Read;
    }
}
