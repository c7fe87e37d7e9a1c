//! Programs at random: `proptest-state-machine` generates and shrinks them.
//!
//! The state machine knows nothing of engines: a transition is a kind of operation and a few small numbers, and [`Shape::program`] makes an operation within
//! an engine's limits of it. So a failing program shrinks in the same way whatever it runs on: operations are dropped, numbers get smaller.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use proptest_state_machine::ReferenceStateMachine;

use treering_engine::BLOCK_SIZE;
use treering_engine::device::RequestKind;

use super::program::{Keep, KeyNo, Op, Program};
use super::random::Random;
use super::{DiskKind, Engine, Limits, LongValues, edges};

mod steps;
mod vocabulary;

pub use steps::Step;
use steps::{Kind, Steps};
pub use vocabulary::Vocabulary;

/// What may go wrong in a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Faults {
    /// Nothing.
    None,
    /// The power.
    Power,
    /// The medium's room: what is lost by that is lost until the store is opened again.
    Room,
    /// Reads: nothing is lost by that, and the store goes on.
    Reads,
    /// The power, requests of all kinds, and the medium's room.
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
    phase: u16,
    /// Of 100 writes, how many are puts while it grows, and while it shrinks.
    puts: (u32, u32),
    /// How many of 64 operations are syncs.
    syncs: u8,
    /// Whether anybody does background work; or all of it is left to those who write.
    pumps: bool,
    /// Decides what patterns phases have.
    salt: u64,
    /// Operations so far.
    step: u32,
}

/// So many keys fit every store, however large what they hold.
const FEW_KEYS: u16 = 160;

/// So many, with values as long as may be, fit no store that has hardly room.
const FILLING_KEYS: u16 = 240;

/// Tides of more keys than these do not come back within a program.
const MOST_TIDAL: u16 = 300;

/// Fewer keys before all else make no tree of hundreds of leaves.
const LEAST_LOADED: u16 = 1_000;

/// The state machine of programs with any faults.
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
        // Two thirds of the programs have values as long as they may be: few to a page, so that pages are many.
        let longest = prop_oneof![1 => any::<u8>(), 2 => Just(255u8)];
        let keys = prop_oneof![1 => 2u16..50, 2 => 50..FEW_KEYS, 1 => FEW_KEYS..600];
        let pumps = prop_oneof![3 => Just(true), 1 => Just(false)];
        let rhythm = (25u16..150, 1u8..16, pumps, any::<u64>());
        (vocabulary, keys, longest, faults, rhythm)
            .prop_map(
                |(vocabulary, keys, longest, faults, (phase, syncs, pumps, salt))| {
                    // Many keys are not long, nor are their values, or no store would hold them.
                    let long = matches!(vocabulary, Vocabulary::Edges | Vocabulary::Deep);
                    let keys = if long { keys.min(FEW_KEYS) } else { keys };
                    // Short ones, and enough of them for several pages.
                    let rows = vocabulary == Vocabulary::Rows;
                    let keys = if rows { keys.max(300) } else { keys };
                    let share = f64::from(FEW_KEYS) / f64::from(keys.max(FEW_KEYS));
                    // Tides: all keys are written, and then all deleted, or nearly.
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

/// What a generated value of [`Programs`] is.
pub type Generated = (Shape, Vec<Step>, Option<Arc<AtomicUsize>>);

impl Shape {
    /// The program for an engine.
    #[must_use]
    pub fn program(&self, steps: &[Step], engine: &dyn Engine, trouble: Trouble) -> Program {
        self.make(steps, engine, trouble, None)
    }

    /// The same; `build` decides how a store is built before.
    fn make(
        &self,
        steps: &[Step],
        engine: &dyn Engine,
        trouble: Trouble,
        build: Option<u64>,
    ) -> Program {
        // An engine with hardly room is there to be filled, mostly; and of the others some have more
        // pages than a cache holds, however few operations there are.
        let fills = match engine.room() {
            Some(_) => !self.salt.is_multiple_of(4),
            None => self.salt.is_multiple_of(3),
        };
        if fills && (self.keys < FILLING_KEYS || self.longest < u8::MAX) {
            let keys = self.keys.max(FILLING_KEYS);
            // A key of the steps is several, side by side.
            let several = keys / self.keys;
            let spread = |step: &Step| Step {
                a: (step.a % self.keys) * several + step.b / 7 % several,
                ..*step
            };
            let steps: Vec<Step> = steps.iter().map(spread).collect();
            let filling = Shape {
                keys,
                longest: u8::MAX,
                ..self.clone()
            };
            return filling.make(&steps, engine, trouble, build);
        }
        // A program of few operations has better to do.
        let loads = match (usize::from(engine.loads()) * steps.len() / 1_000) as u16 {
            0..LEAST_LOADED => 0,
            loads => loads,
        };
        let longer = matches!(self.vocabulary, Vocabulary::Edges | Vocabulary::Deep);
        if self.keys < loads {
            let loading = Shape {
                keys: engine.loads(),
                longest: u8::MAX,
                vocabulary: match longer {
                    true => Vocabulary::Numbers,
                    false => self.vocabulary,
                },
                ..self.clone()
            };
            return loading.make(steps, engine, trouble, build);
        }
        let limits = engine.limits();
        let long_values = engine.long_values();
        let lengths = Lengths {
            limits: &limits,
            long: long_values,
        };
        let faults = match engine.disk() {
            DiskKind::Blocks(_) => self.faults,
            // A store to memory does not fail.
            DiskKind::Pm(_) if self.faults != Faults::None => Faults::Power,
            DiskKind::Pm(_) => self.faults,
            DiskKind::Folder => Faults::None,
        };
        let memory = matches!(engine.disk(), DiskKind::Pm(_));
        let power = trouble.power && matches!(faults, Faults::Power | Faults::All);
        let starves = trouble.failures && matches!(faults, Faults::Room | Faults::All);
        let failures = trouble.failures && faults == Faults::All;
        let reads = trouble.failures && faults == Faults::Reads;
        let taken = |key: &Vec<u8>| limits.empty_key || !key.is_empty();
        let mut written: Vec<Vec<u8>> = (0..self.keys)
            .map(|n| self.vocabulary.key(n, self.salt, &limits))
            .filter(taken)
            .collect();
        written.sort();
        written.dedup();
        let mut random = Random::part(self.salt, u64::MAX - 1);
        let beside = Vocabulary::beside(&written, &limits, engine.reads_any_key(), &mut random);
        let mut keys = [written.as_slice(), &beside].concat();
        keys.sort();
        let number = |key: &Vec<u8>| KeyNo(keys.binary_search(key).expect("it is there") as u32);
        let written: Vec<KeyNo> = written.iter().map(number).collect();
        // One that is written, or any.
        let key = |n: u16| written[usize::from(n) % written.len()];
        let any = |n: u16, chance: u16| match chance % 4 {
            3 => KeyNo(u32::from(n) % keys.len() as u32),
            _ => key(n),
        };
        let mut last = None;
        let ops = steps.iter().flat_map(|step| {
            let seed = u64::from(step.a) << 16 | u64::from(step.b);
            let failing = RequestKind::ALL[usize::from(step.b) % RequestKind::ALL.len()];
            let most = match failing {
                // The less there is of a kind, the sooner.
                RequestKind::Write | RequestKind::WriteOf(_) => 60,
                RequestKind::Read => 40,
                RequestKind::Flush | RequestKind::Trim => 12,
            };
            let keep = |n: u16| match n % 4 {
                0 => Keep::Oldest,
                1 => Keep::Newest,
                _ => Keep::Seeded(seed),
            };
            let mut more = Vec::new();
            let kind = match step.kind {
                // Of memory nothing fails but the power.
                Kind::Fail | Kind::FailAndCut | Kind::Starve if memory && power => Kind::Crash,
                kind => kind,
            };
            let op = match kind {
                Kind::Put => {
                    let long = keys[key(step.a).0 as usize].len();
                    Op::Put(key(step.a), self.length(step.b, long, lengths))
                }
                Kind::Delete => Op::Delete(match step.b % 16 {
                    15 => any(step.a, 3),
                    _ => key(step.a),
                }),
                // What was just written, or a neighbour of that, or any.
                Kind::Get => Op::Get(match (last, step.b % 4) {
                    (Some(last), 0) => last,
                    (Some(KeyNo(last)), 1) => {
                        KeyNo((last + u32::from(step.a % 3)) % keys.len() as u32)
                    }
                    _ => any(step.a, step.b / 4),
                }),
                Kind::Scan => Op::Scan {
                    from: any(step.a, step.b / 8),
                    to: None,
                    limit: rows(step.b),
                },
                Kind::ScanBounded => Op::Scan {
                    from: any(step.a, step.b / 8),
                    to: Some(any(step.b, step.a)),
                    limit: None,
                },
                Kind::ScanBack => Op::ScanBack {
                    before: (step.a % 4 > 0).then_some(any(step.a, step.b / 8)),
                    limit: rows(step.b),
                },
                Kind::Sync if step.a.is_multiple_of(2) => Op::SyncLast,
                Kind::Sync => Op::Sync,
                Kind::Pump => Op::Pump,
                Kind::Step => Op::Step,
                Kind::Checkpoint => Op::Checkpoint,
                // What recovery has made of a few neighbours' last writes meets the next, and the next
                // power cut.
                Kind::Crash if power && step.b % 4 < 2 => {
                    let write = |i: u16| match (step.b >> (3 + i)) & 1 {
                        0 => Op::Delete(key(step.a.wrapping_add(i % 5))),
                        _ => {
                            let key = key(step.a.wrapping_add(i % 5));
                            let long = keys[key.0 as usize].len();
                            Op::Put(key, self.length(step.b.wrapping_add(i * 31), long, lengths))
                        }
                    };
                    more.extend((1..4).map(write));
                    more.extend([Op::SyncLast, Op::Crash(keep(step.a))]);
                    more.extend((4..5 + step.a / 8 % 4).map(write));
                    more.extend([Op::SyncLast, Op::Crash(keep(step.a / 4))]);
                    write(0)
                }
                Kind::Crash if power => Op::Crash(keep(step.a)),
                Kind::CutPower if power => Op::CutPower(u64::from(step.a) % 200),
                // A process that is killed when its log could not be written reads back what may not
                // be durable, and goes on from that; and then the power goes.
                Kind::FailAndCut if failures && power && step.b / 8 % 2 == 0 => {
                    let sync =
                        [Op::Sync, Op::Checkpoint, Op::Pump][usize::from(step.b / 16) % 3].clone();
                    more.extend([sync, Op::CutPower(u64::from(step.a) % 60), Op::Reopen]);
                    Op::Fail(failing, u64::from(step.a / 64) % 4)
                }
                Kind::FailAndCut if failures && power => {
                    more.push(Op::CutPower(u64::from(step.a) % 40));
                    Op::Fail(failing, u64::from(step.a) % 20)
                }
                // So much is written without room that frames and the log's buffer are full of it; and
                // then there is some.
                Kind::Starve if starves && step.b % 4 == 1 => {
                    let write = |i: u16| {
                        let key = key(step.a.wrapping_add(i));
                        let long = keys[key.0 as usize].len();
                        Op::Put(key, self.length(step.b.wrapping_add(i * 31), long, lengths))
                    };
                    let writes = 3 + step.b / 4 % 24;
                    more.extend((0..writes).map(write));
                    more.extend((0..step.b / 128 % 8).map(|i| Op::Get(any(step.a + 40 * i, i))));
                    more.extend([
                        Op::Starve(false),
                        write(40 * (step.b / 512 % 4)),
                        Op::SyncLast,
                    ]);
                    more.extend((step.b / 2_048).is_multiple_of(2).then_some(Op::Checkpoint));
                    more.push(match power {
                        true => Op::Crash(Keep::Oldest),
                        false => Op::Reopen,
                    });
                    Op::Starve(true)
                }
                // A checkpoint under way meets a medium without room, goes on when there is some,
                // and then the power goes.
                Kind::Starve if starves && power && step.b.is_multiple_of(2) => {
                    let long = keys[key(step.a).0 as usize].len();
                    let put = Op::Put(key(step.a), self.length(step.b, long, lengths));
                    more.extend([Op::Starve(true), put.clone(), Op::Step, Op::Pump]);
                    more.extend([Op::Starve(false), put, Op::Checkpoint]);
                    more.push(Op::Crash(Keep::Seeded(seed)));
                    Op::Step
                }
                Kind::Starve | Kind::Fail | Kind::FailAndCut | Kind::Crash | Kind::CutPower
                    if reads =>
                {
                    Op::Fail(RequestKind::Read, u64::from(step.a) % 40)
                }
                // Where nothing else goes wrong, without room for half of the time; else a third.
                Kind::Starve | Kind::Fail if starves && !failures => Op::Starve(step.a % 2 == 0),
                Kind::Starve if starves => Op::Starve(step.a % 3 == 0),
                Kind::Fail | Kind::FailAndCut if failures => {
                    Op::Fail(failing, u64::from(step.a) % most)
                }
                // Without failures there is nothing to do in their place.
                Kind::Reopen | Kind::Crash | Kind::CutPower if trouble.reopen => Op::Reopen,
                _ => Op::Sync,
            };
            if let Op::Put(key, _) | Op::Delete(key) = op {
                last = Some(key);
            }
            std::iter::once(op).chain(more)
        });
        let load = self.load(&written, &keys, lengths);
        let load = match build {
            None => load.take(usize::from(loads)).collect(),
            Some(seed) => built(load, &keys, engine, seed),
        };
        Program {
            ops: load.into_iter().chain(ops).collect(),
            keys,
            crashes: Vec::new(),
        }
    }

    /// Puts of all keys that are written, in order or in none.
    fn load(
        &self,
        written: &[KeyNo],
        keys: &[Vec<u8>],
        lengths: Lengths<'_>,
    ) -> impl Iterator<Item = Op> {
        let mut random = Random::part(self.salt, u64::MAX);
        let stride = if random.one_in(2) { 1 } else { 7_919 };
        (0..written.len()).map(move |n| {
            let at = written[n * stride % written.len()];
            let long = keys[at.0 as usize].len();
            Op::Put(at, self.length(random.word() as u16, long, lengths))
        })
    }

    /// Now and then nothing or the largest there is; mostly a few dozen bytes, or up to the shape's longest.
    fn length(&self, n: u16, key: usize, lengths: Lengths<'_>) -> u32 {
        let limits = lengths.limits;
        let mut room = limits.max_record - key;
        if let Some(long) = lengths.long {
            room = room.min(long.above);
            // Of half of the programs a quarter of the values; of many keys no store would hold
            // them.
            if (self.salt / 4_096).is_multiple_of(2) && self.keys <= FILLING_KEYS && n % 4 == 1 {
                return long_length(n / 4, long);
            }
        }
        // A row of another length ends a leaf that is for one, so there are few.
        let few = [256, 256, 64, 16][(self.salt / 64 % 4) as usize];
        if self.vocabulary == Vocabulary::Rows && !n.is_multiple_of(few) {
            return room.min([0, 3, 8, 16, 33, 64, 100][(self.salt / 7 % 7) as usize]) as u32;
        }
        // Every value of those keys that are about lengths, and a few of all others.
        if n % 16 == 5 || self.vocabulary == Vocabulary::Edges && !n.is_multiple_of(4) {
            return edges::value_length(limits, key, usize::from(n / 16)) as u32;
        }
        // Many to a leaf that leaves their prefix out, and few to one that does not.
        if self.vocabulary == Vocabulary::Deep
            && (self.salt / 4).is_multiple_of(2)
            && !n.is_multiple_of(8)
        {
            return room.min(usize::from(n / 8) % 12) as u32;
        }
        // What fits a slot of a tree in persistent memory, mostly.
        if self.vocabulary == Vocabulary::Words && !n.is_multiple_of(8) {
            return room.min(8) as u32;
        }
        let longest = (room * usize::from(self.longest) / 255).max(8).min(room);
        // The largest values only, a few to a page: a few dozen operations then need more pages than the cache has.
        let large = self.longest == u8::MAX && n % 32 >= 4;
        let len = match n % 32 {
            _ if large => room - usize::from(n / 32) % 64 * room / 256,
            0 if self.vocabulary == Vocabulary::Rows && (n / 32).is_multiple_of(2) => 0,
            0 => usize::from(n / 32) % 9,
            1 => room,
            2..=15 => 8 + usize::from(n / 32) % 60,
            _ => 8 + usize::from(n / 32) * longest / 2048,
        };
        len.min(room) as u32
    }
}

/// What values may be like.
#[derive(Clone, Copy)]
struct Lengths<'a> {
    limits: &'a Limits,
    /// Those that are out of line.
    long: Option<LongValues>,
}

/// The length of a long value: around those at which it takes another piece, or any.
fn long_length(n: u16, long: LongValues) -> u32 {
    let LongValues { above, to, piece } = long;
    let pieces = (1 + usize::from(n / 8) % 5) * piece;
    let len = match n % 8 {
        0 => above + 1,
        1 => to,
        2 => pieces,
        3 => pieces + 1,
        4 => above + pieces,
        _ => above + usize::from(n / 8) * (to - above) / 2_048,
    };
    len.clamp(above + 1, to) as u32
}

/// How many rows a scan wants: a few, those of several leaves, or all.
fn rows(n: u16) -> Option<u32> {
    let n = u32::from(n);
    match n % 8 {
        0 => None,
        1 | 2 => Some(n / 8 % 200),
        _ => Some(n / 8 % 12),
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

fn generated(seed: u64, operations: usize) -> (Shape, Vec<Step>) {
    let strategy = Programs::sequential_strategy(operations..=operations);
    let tree = strategy.new_tree(&mut runner(seed));
    let (shape, steps, _) = tree.expect("nothing is ever rejected").current();
    (shape, steps)
}

/// The program of `operations` operations that `seed` makes for an engine.
#[must_use]
pub fn program(engine: &dyn Engine, seed: u64, operations: usize, trouble: Trouble) -> Program {
    let (shape, steps) = generated(seed, operations);
    shape.program(&steps, engine, trouble)
}

/// A program that begins with so many puts, or more, first builds a store.
pub const LEAST_BUILT: usize = 50;

/// As [`program`]; one in three first builds a store of dozens of leaves, mostly checkpointed, on
/// which its operations work then.
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

/// What of `load` builds a store that a quarter of the medium has room for, and mostly a checkpoint;
/// nothing if that is little.
fn built(
    load: impl Iterator<Item = Op>,
    keys: &[Vec<u8>],
    engine: &dyn Engine,
    seed: u64,
) -> Vec<Op> {
    let mut room = match engine.disk() {
        DiskKind::Blocks(blocks) => blocks * BLOCK_SIZE as u64 / 4,
        DiskKind::Pm(bytes) => bytes / 4,
        DiskKind::Folder => 0,
    };
    let within = |op: &Op| {
        let Op::Put(key, length) = op else {
            return false;
        };
        // And what it takes beside that.
        let bytes = keys[key.0 as usize].len() as u64 + u64::from(*length) + 16;
        room = room.saturating_sub(bytes);
        room > 0
    };
    let mut ops: Vec<Op> = load.take_while(within).collect();
    if ops.len() < LEAST_BUILT {
        return Vec::new();
    }
    ops.extend((!Random::part(seed, 5).one_in(4)).then_some(Op::Checkpoint));
    ops
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
