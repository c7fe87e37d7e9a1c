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
mod coverage;
mod damage;
mod effort;
mod explore;
mod record;

pub use crate::point::{Phase, Point};
pub use coverage::Coverage;
pub use effort::Effort;
pub use explore::{explore, explore_until, replay};

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
