//! Crash runs: one run of a program, and then every way, or a sample of the ways, in which a power cut could have ended it.
//!
//! ```text
//! run, recorded      w w w F w w F …            w: write, F: flush; in persistent memory s: store, b: write-back, F: fence
//! a twin device      apply 1, 2, 3 … requests   after each: which blocks (words) are in doubt, in how many versions?
//! crash states       one version of each        all of them if few, or if the program is short; else a sample
//! for each           open, read all, judge      and for some: cut the power again in that recovery; or write, sync and cut it;
//!                                               or damage a block of it
//! ```
//!
//! The twin goes through the states of the device one request at a time, so the program runs once only. A state is judged by the
//! reference as it was at that request: what was acknowledged must be there, what was not yet asked for cannot be. The same bytes under a
//! stricter promise are judged again; otherwise no state is looked at twice.
//!
//! A program that first builds a store ([`super::generate::LEAST_BUILT`]) is crashed behind that.
//!
//! **All or a sample.** A point is one request of the recorded run, and its states are all combinations of versions that a crash there may leave.
//! If they are at most [`Effort::exhaustive`] all are tried; in a program of at most [`Effort::short`] operations, if they are at most
//! [`Effort::exhaustive_short`]. Otherwise [`Effort::sample`] of them are: none kept, all kept, all but one, only one, all up to one, any; of persistent memory by the
//! word or by the line. Of points between which nothing is settled one in [`Effort::one_in`] is looked at:
//! what one leaves in doubt the next does, too. [`Coverage`] counts both kinds of points. A second crash, in recovery, is always one of a sample. What is in doubt grows until a flush or fence settles it, so the states just before
//! that hold those of all points since the last one.
//!
//! Cost: O(requests · effort) recoveries, each of them what the engine makes it.

mod choices;
mod damage;
mod explore;
mod point;
mod record;

use std::collections::BTreeMap;

pub use explore::{explore, explore_until, replay};
pub use point::{Phase, Point};

use super::DiskKind;
use super::session::Tally;

/// How much to try.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// If a crash can leave at most so many states, all are tried.
    pub exhaustive: usize,
    /// A program of at most so many operations is short.
    pub short: usize,
    /// If a crash in a short program can leave at most so many states, all are tried.
    pub exhaustive_short: usize,
    /// Otherwise so many.
    pub sample: usize,
    /// Of the points of a longer program at which nothing is settled, neither by the request that
    /// comes next nor by what was just promised, one in so many is looked at; at least 1.
    pub one_in: u64,
    /// Every so many-th state is cut again in its recovery; 0: none.
    pub again: u64,
    /// Every so many-th state is written to after recovery, and cut once more; 0: none.
    pub go_on: u64,
    /// Of every so many-th state a block is damaged, if the engine guards any; 0: of none.
    pub damage: u64,
}

impl Default for Effort {
    fn default() -> Self {
        Effort {
            exhaustive: 16,
            short: 12,
            exhaustive_short: 4096,
            sample: 8,
            one_in: 4,
            again: 4,
            go_on: 8,
            damage: 6,
        }
    }
}

impl Effort {
    /// The usual one on such a disk. A write to persistent memory has ten times the points of one to
    /// blocks, and there is more to be learnt from another program than from all of them.
    #[must_use]
    pub fn on(disk: DiskKind) -> Effort {
        match disk {
            DiskKind::Pm(_) => Effort {
                exhaustive: 6,
                exhaustive_short: 512,
                sample: 4,
                one_in: 8,
                ..Effort::default()
            },
            DiskKind::Blocks(_) | DiskKind::Folder => Effort::default(),
        }
    }

    /// If a crash in a program of so many operations can leave at most so many states, all are tried.
    fn all_up_to(&self, operations: usize) -> usize {
        if operations <= self.short {
            self.exhaustive.max(self.exhaustive_short)
        } else {
            self.exhaustive
        }
    }
}

/// What was tried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Distinct states that were recovered from.
    pub states: u64,
    /// Recoveries judged, some of them from one state under several promises.
    pub judged: u64,
    /// Points of the runs at which all states were tried.
    pub exhausted: u64,
    /// Points of the runs at which a sample of the states was tried.
    pub sampled: u64,
    /// Blocks that were damaged, each in a state by itself.
    pub damaged: u64,
    /// Of these: those of which an error told.
    pub told: u64,
    /// Crashes by what they interrupted.
    pub points: BTreeMap<(Phase, Point), u64>,
    /// What the runs themselves did.
    pub tally: Tally,
}

impl Coverage {
    /// Both together; of different programs, whose states are different for all practical purposes.
    pub fn add(&mut self, other: &Coverage) {
        self.states += other.states;
        self.judged += other.judged;
        self.exhausted += other.exhausted;
        self.sampled += other.sampled;
        self.damaged += other.damaged;
        self.told += other.told;
        self.tally.add(&other.tally);
        for (point, n) in &other.points {
            *self.points.entry(*point).or_default() += n;
        }
    }

    fn note(&mut self, phase: Phase, point: Point) {
        *self.points.entry((phase, point)).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::{BTree, Geometry};
    use crate::{KeyNo, Op, Program};

    #[test]
    fn a_short_program_is_crashed_in_every_way_and_a_long_one_in_some() {
        // Pages of four blocks, so that a few writes leave many blocks in doubt.
        let engine = BTree::named("btree:in-place-16k", Geometry::Tiny).unwrap();
        let puts = (0..6).map(|n| Op::Put(KeyNo(n % 3), 2_500));
        let program = Program {
            keys: [b"a", b"b", b"c"].map(|key| key.to_vec()).into(),
            ops: puts.chain([Op::Sync, Op::Checkpoint]).collect(),
            crashes: Vec::new(),
        };
        let effort = Effort {
            one_in: 1,
            ..Effort::default()
        };
        let all = explore(&engine, &program, effort, 0).unwrap();
        assert_eq!(all.sampled, 0, "{all:?}");
        let long = Effort {
            short: program.ops.len() - 1,
            ..effort
        };
        let some = explore(&engine, &program, long, 0).unwrap();
        assert!(some.sampled > 0, "{some:?}");
        assert_eq!(some.exhausted + some.sampled, all.exhausted);
        assert!(
            some.states < all.states,
            "{} of {}",
            some.states,
            all.states
        );
    }
}
