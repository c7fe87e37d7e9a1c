//! Steps: operations that are independent of an engine. How often each kind occurs, and in which
//! order keys are used.

use proptest::prelude::*;
use proptest::strategy::{NewTree, ValueTree};
use proptest::test_runner::TestRunner;

use super::shape::Shape;
use crate::random::Random;

/// The order of keys within a phase. Each phase has its own order, so that ranges are deleted in a
/// different order than they were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pattern {
    Anywhere,
    Upwards,
    Downwards,
    /// Puts go upwards, and deletes follow behind them.
    Queue,
    /// A few keys. All others are idle.
    Few,
}

impl Pattern {
    /// The pattern of a phase.
    fn of(salt: u64, phase: u32) -> (Pattern, Random) {
        let mut random = Random::part(salt, u64::from(phase));
        let pattern = match random.below(10) {
            0..5 => Pattern::Anywhere,
            5 | 6 => Pattern::Upwards,
            7 => Pattern::Downwards,
            8 => Pattern::Queue,
            _ => Pattern::Few,
        };
        (pattern, random)
    }

    /// The key of step `at` of the phase. `word` is random.
    fn key(self, kind: Kind, keys: u16, start: u16, at: u32, word: u16) -> u16 {
        let keys = u32::from(keys);
        let start = u32::from(start);
        let turned = keys - at % keys;
        let number = match self {
            Pattern::Anywhere => return word,
            Pattern::Upwards => start + at,
            Pattern::Downwards => start + turned,
            Pattern::Queue if kind == Kind::Put => start + at,
            Pattern::Queue => start + at + keys - keys.div_ceil(4),
            Pattern::Few => start + u32::from(word) % 3,
        };
        (number % keys) as u16
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Put,
    Delete,
    /// A batch that begins with a put. For an engine without batches, a put.
    PutBatch,
    /// A batch that begins with a delete. For an engine without batches, a delete.
    DeleteBatch,
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
    Fail,
    /// A failed request and then a power cut, perhaps during the next opening.
    FailAndCut,
    /// The medium becomes full, or has space again.
    Starve,
}

/// An operation that is independent of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    pub(super) kind: Kind,
    pub(super) a: u16,
    pub(super) b: u16,
}

/// How many of 1,000 operations are of each kind. The rest are puts and deletes.
const OFTEN: [(Kind, u32); 13] = [
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
    (Kind::Fail, 3),
    (Kind::FailAndCut, 3),
    (Kind::Starve, 4),
];

fn draw(shape: &Shape, runner: &mut TestRunner) -> Step {
    let word = runner.rng().next_u64();
    let (mut a, b) = (word as u16, (word >> 16) as u16);
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
            let kind = match kind {
                Kind::Pump | Kind::Step if !shape.pumps => Kind::Get,
                kind => kind,
            };
            return Step { kind, a, b };
        }
        lot -= often;
    }
    let (phase, at) = (
        shape.step / u32::from(shape.phase),
        shape.step % u32::from(shape.phase),
    );
    let (growing, shrinking) = shape.puts;
    let puts = match phase % 2 {
        0 => growing,
        _ => shrinking,
    };
    let kind = if (word >> 44) as u32 % 100 < puts {
        Kind::Put
    } else {
        Kind::Delete
    };
    let (pattern, mut random) = Pattern::of(shape.salt, phase);
    let start = random.below(u64::from(shape.keys)) as u16;
    a = pattern.key(kind, shape.keys, start, at, a);
    let kind = match kind {
        Kind::Put if lot < shape.batches() => Kind::PutBatch,
        Kind::Delete if lot < shape.batches() => Kind::DeleteBatch,
        kind => kind,
    };
    Step { kind, a, b }
}

/// A step that can be reduced: first its second number (a length or a bound), then its first (a
/// key).
pub(super) struct StepTree {
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
        // Halving went too far, and there is nothing in between.
        self.before.take().is_some_and(|before| {
            self.step = before;
            false
        })
    }
}

#[derive(Debug)]
pub(super) struct Steps(pub(super) Shape);

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
