//! Crash runs: run a program once, then check every state, or a sample of the states, that a power
//! cut could have left.
//!
//! ```text
//! recorded run    w w w F w w F …           w: write, F: flush
//!                                           (persistent memory: store, write-back, fence)
//! twin device     apply request 1, 2, 3 …   after each: which blocks (words) are in doubt,
//!                                           and in how many versions?
//! crash states    one version of each       all of them if few, else a sample
//! each state      open, read all, judge     some: cut the power again during that recovery;
//!                                           or write, sync and cut again; or damage a block
//! ```
//!
//! A block is *in doubt* if it was written since the last flush: the crash may leave any of its
//! versions. The twin device replays the recorded requests one by one, so the program itself runs
//! only once. Each state is compared with the reference map as it was at that request: acknowledged
//! writes must be there, later ones must not. A state that was seen before is judged again only if
//! more has been acknowledged since.
//!
//! If a program first builds a store ([`LEAST_BUILT`](crate::generate::LEAST_BUILT)), crashes come
//! after that.
//!
//! **Exhaustive or sampled.** A crash point is one request of the recorded run; its states are all
//! combinations of versions. They are all tried if there are at most [`Effort::exhaustive`] (in a
//! program of up to [`Effort::short`] operations: [`Effort::exhaustive_short`]). Otherwise
//! [`Effort::sample`] are tried: keep none, all, all but one, only one, all up to one, or a random
//! choice; in persistent memory by word or by line. Between two flushes only one point in
//! [`Effort::one_in`] is tried, because what is in doubt only grows until the next flush.
//! [`Coverage`] counts the points of each kind. Second crashes, during recovery, are always
//! sampled.
//!
//! Cost: O(requests · effort) recoveries.

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
