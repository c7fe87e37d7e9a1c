//! Turns steps into a program for an engine, within the engine's limits.

use treering_engine::BLOCK_SIZE;
use treering_engine::device::RequestKind;

use super::batches::Batches;
use super::lengths::Lengths;
use super::shape::{FILLING_KEYS, Shape};
use super::steps::{Kind, Step};
use super::trouble::{Faults, Trouble};
use super::vocabulary::Vocabulary;
use crate::engine::{DiskKind, Engine};
use crate::program::{Keep, KeyNo, Op, Program};
use crate::random::Random;

/// Loading fewer keys than this would not make hundreds of leaves.
const LEAST_LOADED: u16 = 1_000;

/// A program that begins with at least this many puts builds a store first.
pub const LEAST_BUILT: usize = 50;

impl Shape {
    /// Makes the program for an engine.
    #[must_use]
    pub fn program(&self, steps: &[Step], engine: &dyn Engine, trouble: Trouble) -> Program {
        self.make(steps, engine, trouble, None)
    }

    /// As [`Shape::program`]; with `build`, the program builds a store first.
    pub(super) fn make(
        &self,
        steps: &[Step],
        engine: &dyn Engine,
        trouble: Trouble,
        build: Option<u64>,
    ) -> Program {
        // An engine with little space is mostly filled. Some programs for the others use more pages
        // than the cache holds, however few their operations.
        let fills = match engine.room() {
            Some(_) => !self.salt.is_multiple_of(4),
            None => self.salt.is_multiple_of(3),
        };
        if fills && (self.keys < FILLING_KEYS || self.longest < u8::MAX) {
            let keys = self.keys.max(FILLING_KEYS);
            // A key of the steps stands for several adjacent keys.
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
        // A program of few operations does not spend them on loading.
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
            // A store to persistent memory does not fail.
            DiskKind::Pm(_) if self.faults != Faults::None => Faults::Power,
            DiskKind::Pm(_) => self.faults,
            DiskKind::Folder if engine.can_be_killed() => Faults::Power,
            DiskKind::Folder => Faults::None,
        };
        // A process that is killed sees no failure before it.
        let memory = matches!(engine.disk(), DiskKind::Pm(_)) || engine.can_be_killed();
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
        // Either a key that is written, or any key.
        let key = |n: u16| written[usize::from(n) % written.len()];
        let any = |n: u16, chance: u16| match chance % 4 {
            3 => KeyNo(u32::from(n) % keys.len() as u32),
            _ => key(n),
        };
        let batches = engine.batch_bytes().map(|most| Batches {
            shape: self,
            lengths,
            keys: &keys,
            written: &written,
            most,
        });
        let mut last = None;
        let ops = steps.iter().flat_map(|step| {
            let seed = u64::from(step.a) << 16 | u64::from(step.b);
            let failing = RequestKind::ALL[usize::from(step.b) % RequestKind::ALL.len()];
            let most = match failing {
                // The rarer a kind of request, the sooner it fails.
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
                Kind::PutBatch if batches.is_none() => Kind::Put,
                Kind::DeleteBatch if batches.is_none() => Kind::Delete,
                // In persistent memory the only failure is a power cut, and a process is killed.
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
                Kind::PutBatch | Kind::DeleteBatch => {
                    let begins_with_put = kind == Kind::PutBatch;
                    let made = batches
                        .as_ref()
                        .map(|made| made.batch(step, begins_with_put));
                    // Mostly, what the batch wrote is read soon.
                    if let Some(change) = made.iter().flatten().next() {
                        last = Some(change.key);
                    }
                    Op::Write(made.unwrap_or_default())
                }
                // The key that was just written, a neighbour of it, or any key.
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
                // The result of recovering a few neighbouring keys' last writes is exposed to the
                // next write and the next power cut.
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
                // A process that is killed when its log could not be written reads back data that
                // may not be durable, and continues from it. Then the power is cut.
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
                // So much is written without space that the frames and the log's buffer fill up.
                // Then space returns.
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
                // A checkpoint in progress runs out of space and continues when there is space
                // again. Then the power is cut.
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
                // If nothing else goes wrong, there is no space for half of the time, else for a
                // third.
                Kind::Starve | Kind::Fail if starves && !failures => Op::Starve(step.a % 2 == 0),
                Kind::Starve if starves => Op::Starve(step.a % 3 == 0),
                Kind::Fail | Kind::FailAndCut if failures => {
                    Op::Fail(failing, u64::from(step.a) % most)
                }
                // If failures are excluded, nothing takes their place.
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
        // A third of the drives take trims for hints, which is no fault of theirs.
        let hints = matches!(engine.disk(), DiskKind::Blocks(_))
            && trouble.failures
            && self.faults != Faults::None
            && Random::part(self.salt, u64::MAX - 2).one_in(3);
        let hints = hints.then_some(Op::Hint(true));
        Program {
            ops: load.into_iter().chain(hints).chain(ops).collect(),
            keys,
            crashes: Vec::new(),
        }
    }

    /// Puts of all keys, in order or shuffled.
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
}

/// The row limit of a scan: a few rows, several leaves, or no limit.
fn rows(n: u16) -> Option<u32> {
    let n = u32::from(n);
    match n % 8 {
        0 => None,
        1 | 2 => Some(n / 8 % 200),
        _ => Some(n / 8 % 12),
    }
}

/// The first part of `load`, which fills a quarter of the medium, and mostly a checkpoint after it.
/// Empty if that is too little to matter.
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
        // Plus the overhead of each record.
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
