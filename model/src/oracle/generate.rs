//! Programs at random: `proptest-state-machine` generates and shrinks them.
//!
//! The state machine knows nothing of engines: a transition is a kind of operation and a few small numbers, and [`Shape::program`] makes an operation within
//! an engine's limits of it. So a failing program shrinks in the same way whatever it runs on: operations are dropped, numbers get smaller.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use proptest::prelude::*;
use proptest::strategy::{NewTree, ValueTree};
use proptest::test_runner::TestRunner;
use proptest_state_machine::ReferenceStateMachine;

use super::program::{Keep, KeyNo, Op, Program};
use super::random::Random;
use super::{DiskKind, Engine};

/// What the keys of a program look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vocabulary {
    /// Numbers, two bytes big-endian.
    Numbers,
    /// Keys that are prefixes of one another, the empty one among them.
    Prefixes,
    /// A long common prefix, then two digits; and some very long ones.
    Long,
}

/// What may go wrong in a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Faults {
    /// Nothing.
    None,
    /// The power.
    Power,
    /// The power, writes and flushes.
    All,
}

/// What a program may contain besides ordinary operations: for a run that is to show what one check finds without the help of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// The store is closed and opened again.
    pub reopen: bool,
    /// The power goes.
    pub power: bool,
    /// Writes and flushes fail.
    pub failures: bool,
}

impl Trouble {
    /// Whatever there is.
    pub const ANY: Trouble = Trouble {
        reopen: true,
        power: true,
        failures: true,
    };
}

/// What all operations of a program have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    vocabulary: Vocabulary,
    /// So many keys, at least 2.
    keys: u16,
    /// The longest value, in 255ths of what fits.
    longest: u8,
    faults: Faults,
    /// Phases of growth alternate with phases of shrinking: operations of one.
    phase: u8,
    /// How many of 64 operations are syncs.
    syncs: u8,
    /// Operations so far.
    step: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Put,
    Delete,
    Get,
    Scan,
    ScanBounded,
    ScanBack,
    Sync,
    Pump,
    Step,
    Checkpoint,
    Reopen,
    Crash,
    CutPower,
    FailWrite,
    FailFlush,
}

/// An operation before it meets an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    kind: Kind,
    a: u16,
    b: u16,
}

/// Of 1,000 operations, how many are of each kind; the rest are puts and deletes.
const OFTEN: [(Kind, u32); 12] = [
    (Kind::Get, 150),
    (Kind::Scan, 30),
    (Kind::ScanBounded, 20),
    (Kind::ScanBack, 20),
    (Kind::Pump, 60),
    (Kind::Step, 60),
    (Kind::Checkpoint, 4),
    (Kind::Reopen, 2),
    (Kind::Crash, 3),
    (Kind::CutPower, 2),
    (Kind::FailWrite, 1),
    (Kind::FailFlush, 1),
];

fn draw(shape: &Shape, runner: &mut TestRunner) -> Step {
    let word = runner.rng().next_u64();
    let (a, b) = (word as u16, (word >> 16) as u16);
    let mut lot = (word >> 32) as u32 % 1_000;
    if (word >> 58) < u64::from(shape.syncs) {
        return Step {
            kind: Kind::Sync,
            a,
            b,
        };
    }
    for (kind, often) in OFTEN {
        if lot < often {
            return Step { kind, a, b };
        }
        lot -= often;
    }
    let puts = if (shape.step / u32::from(shape.phase)).is_multiple_of(2) {
        80
    } else {
        25
    };
    let kind = if (word >> 44) as u32 % 100 < puts {
        Kind::Put
    } else {
        Kind::Delete
    };
    Step { kind, a, b }
}

/// A step that gets smaller: first its second number (a value's length, a bound), then its first (a key).
struct StepTree {
    step: Step,
    before: Option<Step>,
}

impl ValueTree for StepTree {
    type Value = Step;

    fn current(&self) -> Step {
        self.step
    }

    fn simplify(&mut self) -> bool {
        let mut smaller = self.step;
        if smaller.b > 0 {
            smaller.b /= 2;
        } else if smaller.a > 0 {
            smaller.a /= 2;
        } else {
            return false;
        }
        self.before = Some(std::mem::replace(&mut self.step, smaller));
        true
    }

    fn complicate(&mut self) -> bool {
        // Halving went too far; there is nothing in between.
        self.before.take().is_some_and(|before| {
            self.step = before;
            false
        })
    }
}

#[derive(Debug)]
struct Steps(Shape);

impl Strategy for Steps {
    type Tree = StepTree;
    type Value = Step;

    fn new_tree(&self, runner: &mut TestRunner) -> NewTree<Self> {
        Ok(StepTree {
            step: draw(&self.0, runner),
            before: None,
        })
    }
}

/// The state machine of programs with any faults.
pub struct Programs;

impl ReferenceStateMachine for Programs {
    type State = Shape;
    type Transition = Step;

    fn init_state() -> BoxedStrategy<Shape> {
        let vocabulary = prop_oneof![
            Just(Vocabulary::Numbers),
            Just(Vocabulary::Prefixes),
            Just(Vocabulary::Long)
        ];
        let faults = prop_oneof![Just(Faults::None), Just(Faults::Power), Just(Faults::All)];
        // Half of the programs have values as long as they may be: few to a page, so that pages are many.
        let longest = prop_oneof![any::<u8>(), Just(255u8)];
        (vocabulary, 2u16..160, longest, faults, 25u8..150, 1u8..16)
            .prop_map(|(vocabulary, keys, longest, faults, phase, syncs)| Shape {
                vocabulary,
                keys,
                longest,
                faults,
                phase,
                syncs,
                step: 0,
            })
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

/// What a generated value of [`Programs`] is.
pub type Generated = (Shape, Vec<Step>, Option<Arc<AtomicUsize>>);

impl Shape {
    fn key(&self, n: u16, longest: usize) -> Vec<u8> {
        let n = n % self.keys;
        let mut key = match self.vocabulary {
            Vocabulary::Numbers => n.to_be_bytes().to_vec(),
            Vocabulary::Prefixes => {
                let stem = [&b""[..], b"a", b"test", b"teste", b"user:0000"][usize::from(n) % 5];
                let mut key = stem.to_vec();
                key.extend(std::iter::repeat_n(b'e', usize::from(n) / 5 % 7));
                key.extend((n / 35 > 0).then_some((n / 35) as u8));
                key
            }
            Vocabulary::Long => {
                let mut key = format!("a/long/common/prefix/{n:03}").into_bytes();
                key.extend(std::iter::repeat_n(b'z', usize::from(n) % 11 * 13));
                key
            }
        };
        key.truncate(longest);
        key
    }

    /// The program for an engine.
    #[must_use]
    pub fn program(&self, steps: &[Step], engine: &dyn Engine, trouble: Trouble) -> Program {
        let limits = engine.limits();
        let faults = match engine.disk() {
            DiskKind::Blocks(_) => self.faults,
            // A store to memory does not fail.
            DiskKind::Pm(_) if self.faults == Faults::All => Faults::Power,
            DiskKind::Pm(_) => self.faults,
            DiskKind::Folder => Faults::None,
        };
        let power = trouble.power && faults != Faults::None;
        let failures = trouble.failures && faults == Faults::All;
        let taken = |key: &Vec<u8>| limits.empty_key || !key.is_empty();
        let mut keys: Vec<Vec<u8>> = (0..self.keys)
            .map(|n| self.key(n, limits.max_key))
            .filter(taken)
            .collect();
        keys.sort();
        keys.dedup();
        let key = |n: u16| KeyNo(u32::from(n) % keys.len() as u32);
        let ops = steps.iter().map(|step| {
            let seed = u64::from(step.a) << 16 | u64::from(step.b);
            match step.kind {
                Kind::Put => {
                    let room = limits.max_record - keys[key(step.a).0 as usize].len();
                    Op::Put(key(step.a), self.length(step.b, room))
                }
                Kind::Delete => Op::Delete(key(step.a)),
                Kind::Get => Op::Get(key(step.a)),
                Kind::Scan => Op::Scan {
                    from: key(step.a),
                    to: None,
                    limit: (step.b > 0).then_some(u32::from(step.b) % 12),
                },
                Kind::ScanBounded => Op::Scan {
                    from: key(step.a),
                    to: Some(key(step.b)),
                    limit: None,
                },
                Kind::ScanBack => Op::ScanBack {
                    before: (step.a % 4 > 0).then_some(key(step.a)),
                    limit: (step.b > 0).then_some(u32::from(step.b) % 12),
                },
                Kind::Sync => Op::Sync,
                Kind::Pump => Op::Pump,
                Kind::Step => Op::Step,
                Kind::Checkpoint => Op::Checkpoint,
                Kind::Crash if power => Op::Crash(match step.a % 4 {
                    0 => Keep::Oldest,
                    1 => Keep::Newest,
                    _ => Keep::Seeded(seed),
                }),
                Kind::CutPower if power => Op::CutPower(u64::from(step.a) % 200),
                Kind::FailWrite if failures => Op::FailWrite(u64::from(step.a) % 60),
                Kind::FailFlush if failures => Op::FailFlush(u64::from(step.a) % 12),
                Kind::Reopen | Kind::Crash | Kind::CutPower | Kind::FailWrite | Kind::FailFlush
                    if trouble.reopen =>
                {
                    Op::Reopen
                }
                _ => Op::Sync,
            }
        });
        Program {
            ops: ops.collect(),
            keys,
            crashes: Vec::new(),
        }
    }

    /// Now and then nothing or the largest there is; mostly a few dozen bytes, or up to the shape's longest.
    fn length(&self, n: u16, room: usize) -> u32 {
        let longest = (room * usize::from(self.longest) / 255).max(8).min(room);
        // The largest values only, a few to a page: a few dozen operations then need more pages than the cache has.
        let large = self.longest == u8::MAX && n % 32 >= 4;
        let len = match n % 32 {
            _ if large => room - usize::from(n / 32) % 64 * room / 256,
            0 => usize::from(n / 32) % 9,
            1 => room,
            2..=15 => 8 + usize::from(n / 32) % 60,
            _ => 8 + usize::from(n / 32) * longest / 2048,
        };
        len.min(room) as u32
    }
}

/// Makes the operations of a program of `ops` operations by a seed.
#[must_use]
pub fn runner(seed: u64) -> TestRunner {
    use proptest::test_runner::{Config, RngAlgorithm, TestRng};
    let config = Config {
        cases: 1,
        failure_persistence: None,
        max_shrink_iters: 20_000,
        max_shrink_time: 30_000,
        ..Config::default()
    };
    // Mixed: xorshift's first numbers of seeds that differ in few bits are nearly equal, and those decide what shape a program has.
    let mut random = Random::new(seed);
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&random.word().to_le_bytes());
    bytes[8..].copy_from_slice(&random.word().to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::XorShift, &bytes);
    TestRunner::new_with_rng(config, rng)
}

/// The program of `operations` operations that `seed` makes for an engine.
#[must_use]
pub fn program(engine: &dyn Engine, seed: u64, operations: usize, trouble: Trouble) -> Program {
    let strategy = Programs::sequential_strategy(operations..=operations);
    let tree = strategy.new_tree(&mut runner(seed));
    let (shape, steps, _) = tree.expect("nothing is ever rejected").current();
    shape.program(&steps, engine, trouble)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn seeds_that_follow_one_another_make_programs_of_many_shapes() {
        let shapes: Vec<Shape> = (0..200)
            .map(|seed| {
                let tree = Programs::sequential_strategy(1..=1).new_tree(&mut runner(seed));
                tree.expect("nothing is ever rejected").current().0
            })
            .collect();
        let different = |of: fn(&Shape) -> u64| shapes.iter().map(of).collect::<HashSet<_>>().len();
        assert_eq!(different(|shape| shape.vocabulary as u64), 3);
        assert_eq!(different(|shape| shape.faults as u64), 3);
        assert!(different(|shape| u64::from(shape.keys)) > 50);
        assert!(different(|shape| u64::from(shape.syncs)) > 10);
        assert!(different(|shape| u64::from(shape.phase)) > 50);
    }
}
