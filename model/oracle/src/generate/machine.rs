//! The state machine of programs: a shape, then one step after another.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use proptest_state_machine::ReferenceStateMachine;

use super::shape::{FEW_KEYS, FILLING_KEYS, Shape};
use super::steps::{Step, Steps};
use super::trouble::Faults;
use super::vocabulary::Vocabulary;
use crate::random::Random;

/// With more keys than this, a phase that writes all keys would not end within a program.
const MOST_TIDAL: u16 = 300;

/// The state machine that generates programs.
pub struct Programs;

impl ReferenceStateMachine for Programs {
    type State = Shape;
    type Transition = Step;

    fn init_state() -> BoxedStrategy<Shape> {
        let vocabulary = prop_oneof![
            Just(Vocabulary::Numbers),
            Just(Vocabulary::Prefixes),
            Just(Vocabulary::Long),
            Just(Vocabulary::Edges),
            Just(Vocabulary::Deep),
            Just(Vocabulary::Words),
            Just(Vocabulary::Rows),
            Just(Vocabulary::Mixed),
        ];
        let faults = prop_oneof![
            Just(Faults::None),
            Just(Faults::Power),
            Just(Faults::Room),
            Just(Faults::Reads),
            Just(Faults::All)
        ];
        // Two thirds of the programs have values up to the maximal length. Few of them fit in a
        // page, so there are many pages.
        let longest = prop_oneof![1 => any::<u8>(), 2 => Just(255u8)];
        let keys = prop_oneof![1 => 2u16..50, 2 => 50..FEW_KEYS, 1 => FEW_KEYS..600];
        let pumps = prop_oneof![3 => Just(true), 1 => Just(false)];
        let rhythm = (25u16..150, 1u8..16, pumps, any::<u64>());
        (vocabulary, keys, longest, faults, rhythm)
            .prop_map(
                |(vocabulary, keys, longest, faults, (phase, syncs, pumps, salt))| {
                    // Many keys are short and have short values, or no store could hold them.
                    let long = matches!(vocabulary, Vocabulary::Edges | Vocabulary::Deep);
                    let keys = if long { keys.min(FEW_KEYS) } else { keys };
                    // Short rows, and enough of them for several pages.
                    let rows = vocabulary == Vocabulary::Rows;
                    let keys = if rows { keys.max(300) } else { keys };
                    let share = f64::from(FEW_KEYS) / f64::from(keys.max(FEW_KEYS));
                    // Tides: all keys are written, and then nearly all are deleted.
                    let (phase, puts) = match salt >> 32 & 7 {
                        0 => (keys.clamp(FILLING_KEYS, MOST_TIDAL) / 2 * 3, (98, 2)),
                        _ => (phase, (80, 25)),
                    };
                    Shape {
                        vocabulary,
                        keys,
                        longest: (f64::from(longest) * share * share) as u8,
                        faults,
                        phase,
                        puts,
                        syncs,
                        pumps,
                        salt,
                        step: 0,
                    }
                },
            )
            .boxed()
    }

    fn transitions(shape: &Shape) -> BoxedStrategy<Step> {
        Steps(shape.clone()).boxed()
    }

    fn apply(mut shape: Shape, _: &Step) -> Shape {
        shape.step += 1;
        shape
    }
}

/// A value that [`Programs`] generates.
pub type Generated = (Shape, Vec<Step>, Option<Arc<AtomicUsize>>);

/// The test runner of a seed.
#[must_use]
pub fn runner(seed: u64) -> TestRunner {
    let config = Config {
        cases: 1,
        failure_persistence: None,
        max_shrink_iters: 20_000,
        max_shrink_time: 30_000,
        ..Config::default()
    };
    // Mixed, because xorshift's first numbers are nearly equal for seeds that differ in few bits,
    // and those numbers decide the shape of a program.
    let mut random = Random::new(seed);
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&random.word().to_le_bytes());
    bytes[8..].copy_from_slice(&random.word().to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::XorShift, &bytes);
    TestRunner::new_with_rng(config, rng)
}

/// The shape and the steps of a seed's program.
pub(super) fn generated(seed: u64, operations: usize) -> (Shape, Vec<Step>) {
    let strategy = Programs::sequential_strategy(operations..=operations);
    let tree = strategy.new_tree(&mut runner(seed));
    let (shape, steps, _) = tree.expect("nothing is ever rejected").current();
    (shape, steps)
}
