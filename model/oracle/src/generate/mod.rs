//! Random programs. `proptest-state-machine` generates and reduces them.
//!
//! The state machine knows nothing of engines. A transition is a kind of operation and two small
//! numbers, and [`Shape::program`] turns it into an operation within an engine's limits. So a
//! failing program is reduced in the same way on every engine: operations are dropped, numbers get
//! smaller.

mod batches;
mod lengths;
mod machine;
mod make;
mod shape;
mod steps;
mod trouble;
mod vocabulary;

pub use machine::{Generated, Programs, runner};
pub use make::LEAST_BUILT;
pub use shape::Shape;
pub use steps::Step;
pub use trouble::{Faults, Trouble};
pub use vocabulary::Vocabulary;

use machine::generated;

use crate::engine::Engine;
use crate::program::Program;
use crate::random::Random;

/// The program of a seed, with `operations` operations, for an engine.
#[must_use]
pub fn program(engine: &dyn Engine, seed: u64, operations: usize, trouble: Trouble) -> Program {
    let (shape, steps) = generated(seed, operations);
    shape.program(&steps, engine, trouble)
}

/// As [`program`], but one program in three first builds a store of dozens of leaves, and mostly
/// takes a checkpoint, before its operations.
#[must_use]
pub fn on_a_built_store(
    engine: &dyn Engine,
    seed: u64,
    operations: usize,
    trouble: Trouble,
) -> Program {
    let (shape, steps) = generated(seed, operations);
    let builds = Random::part(seed, 4).one_in(3);
    shape.make(&steps, engine, trouble, builds.then_some(seed))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::strategy::{Strategy, ValueTree};
    use proptest_state_machine::ReferenceStateMachine;

    use super::*;
    use crate::program::Op;

    #[test]
    fn seeds_that_follow_one_another_make_programs_of_many_shapes() {
        let shapes: Vec<Shape> = (0..200)
            .map(|seed| {
                let tree = Programs::sequential_strategy(1..=1).new_tree(&mut runner(seed));
                tree.expect("nothing is ever rejected").current().0
            })
            .collect();
        let different = |of: fn(&Shape) -> u64| shapes.iter().map(of).collect::<HashSet<_>>().len();
        assert_eq!(different(|shape| shape.vocabulary as u64), 8);
        assert_eq!(different(|shape| shape.faults as u64), 5);
        assert!(different(|shape| u64::from(shape.keys)) > 50);
        assert!(different(|shape| u64::from(shape.syncs)) > 10);
        assert!(different(|shape| u64::from(shape.phase)) > 50);
    }

    #[test]
    fn programs_go_to_every_edge_and_through_runs_queues_and_ranges() {
        use crate::edges::Edges;
        use crate::engines::{BTree, Geometry};
        let engine = BTree::named("btree:cow/64k", Geometry::Tiny).unwrap();
        let limits = engine.limits();
        let mut met = Edges::default();
        let (mut upwards, mut downwards, mut deleted) = (0, 0, 0);
        for seed in 0..100 {
            let program = program(&engine, seed, 1_000, Trouble::ANY);
            let mut last = [None; 2];
            let mut run = [0; 3];
            for op in &program.ops {
                let (kind, key) = match op {
                    Op::Put(key, len) => {
                        met.met(&limits, program.key(*key).len(), *len as usize);
                        (0, key.0)
                    }
                    Op::Delete(key) => (1, key.0),
                    _ => continue,
                };
                let before: u32 = last[kind].replace(key).unwrap_or(key);
                let up = before < key && key <= before + 3;
                let down = key < before && before <= key + 3;
                run[2] = if kind == 1 && up {
                    run[2] + 1
                } else {
                    run[2] * i32::from(kind == 0)
                };
                if kind == 0 {
                    run[0] = if up { run[0] + 1 } else { 0 };
                    run[1] = if down { run[1] + 1 } else { 0 };
                }
                upwards += i32::from(run[0] == 8);
                downwards += i32::from(run[1] == 8);
                deleted += i32::from(run[2] == 8);
            }
        }
        let never = Edges::within(&limits).without(met);
        assert_eq!(never.count(), 0, "{never}");
        assert!(
            upwards > 10 && downwards > 10 && deleted > 10,
            "{upwards} {downwards} {deleted}"
        );
    }
}
