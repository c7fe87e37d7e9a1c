//! Damage that no crash leaves: a store is built, some of its medium is harmed, and whoever opens
//! it reads what was acknowledged, or is told.
//!
//! | harm | what happened |
//! |---|---|
//! | flip | a bit rotted |
//! | zero | a block was lost, or read as zeros |
//! | old | a write never reached the medium: the block is as it was at an earlier time |
//! | swap | a write, or two, went to the other's place |
//! | foreign | the block is that of another store, which had the device before |
//! | cut | the file is shorter than it was |
//!
//! The store is harmed at rest, after it was closed and opened some times, or behind a power cut,
//! with a log that goes on behind the last checkpoint; on a medium whose discards act, or on one
//! where they do nothing, in memory or in a real file, so that whatever was written once is there
//! to be taken for what is written now.
//!
//! Allowed are right answers, and errors that name the damage. One thing cannot be told
//! (`engine/src/pages/versioned.rs` has the table): where the log's last flush is harmed behind a
//! power cut, it looks like one that the cut made short. Then a record of that flush may be
//! missing, and all behind it. In persistent memory (`pm`) the papers' leaves have no checksums;
//! harm to them may end in a wrong answer, and is counted. What was not told of goes on to be
//! written, and is cut and read once more: damage must not come out late. One store in three is
//! written to, and checkpointed, before anybody reads it.

mod harm;
mod judge;
mod pm;
mod store;

use std::fmt;

use treering_engine::device::Image;

use super::deadline::Deadline;
use super::finding::{Check, Finding};
use super::panics;
use super::random::Random;
use super::{DiskKind, Engine};
pub use harm::{Harm, HarmKind};
use judge::{Judged, Use};
use store::Built;

/// How often one store is harmed, each time from the same beginning.
const CASES: u64 = 100;
/// Of the time until a deadline building the store has at most this share.
const BUILT: f64 = 0.4;
/// One in so many is in a real file, where there are locks, holes, and calls of the kernel.
const IN_FILE: u64 = 10;

/// What a campaign did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Stores built.
    pub stores: u64,
    /// Operations that built them.
    pub operations: u64,
    /// Harms of each kind, in order of [`HarmKind::ALL`], and of how many somebody was told.
    pub harms: [(u64, u64); HarmKind::ALL.len()],
    /// Harms to stores in real files.
    pub in_files: u64,
    /// Harms to a log's last flush, which may be taken for a flush cut short.
    pub last_flush: u64,
    /// Of those, in how many a record was missing.
    pub cut_short: u64,
    /// Harms that the engine does not promise to notice.
    pub unguarded: u64,
    /// Of those, how many gave a wrong answer.
    pub unguarded_wrong: u64,
}

impl Tally {
    /// Both together.
    pub fn add(&mut self, other: &Tally) {
        self.stores += other.stores;
        self.operations += other.operations;
        for (mine, theirs) in self.harms.iter_mut().zip(other.harms) {
            *mine = (mine.0 + theirs.0, mine.1 + theirs.1);
        }
        self.in_files += other.in_files;
        self.last_flush += other.last_flush;
        self.cut_short += other.cut_short;
        self.unguarded += other.unguarded;
        self.unguarded_wrong += other.unguarded_wrong;
    }

    /// Harms in all.
    #[must_use]
    pub fn cases(&self) -> u64 {
        self.harms.iter().map(|(cases, _)| cases).sum()
    }

    /// Kinds of harm that were never done, or of which never anybody was told.
    #[must_use]
    pub fn never(&self) -> Vec<String> {
        let kinds = HarmKind::ALL.iter().zip(self.harms);
        // In persistent memory there is no other store: whoever makes one there wants a blank medium.
        kinds
            .filter(|(kind, (_, told))| {
                *told == 0 && !(**kind == HarmKind::Foreign && self.unguarded > 0)
            })
            .map(|(kind, _)| format!("an error that tells of {kind}"))
            .collect()
    }
}

/// What a harmed store must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It was closed.
    AtRest,
    /// The power went.
    Cut,
}

impl State {
    fn any(random: &mut Random) -> State {
        if random.one_in(2) {
            State::AtRest
        } else {
            State::Cut
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            State::AtRest => "at rest",
            State::Cut => "behind a power cut",
        })
    }
}

/// Builds the store of `seed` with so many operations, and harms it in a hundred ways.
///
/// # Errors
/// The first harm that was neither told nor harmless.
pub fn run(engine: &dyn Engine, seed: u64, operations: usize) -> Result<Tally, Box<Finding>> {
    run_until(engine, seed, operations, &Deadline::never())
}

/// As [`run`], but ends between two harms once `until` is over. Building the store has at most a
/// part of the time until then; one that is not through by then is harmed as it is.
///
/// # Errors
/// As [`run`].
pub fn run_until(
    engine: &dyn Engine,
    seed: u64,
    operations: usize,
    until: &Deadline,
) -> Result<Tally, Box<Finding>> {
    if let DiskKind::Pm(bytes) = engine.disk() {
        return pm::run(engine, bytes, seed, operations, until);
    }
    let mut random = Random::part(seed, 0);
    let state = State::any(&mut random);
    let inert = random.percent(60);
    let building = until.part(BUILT);
    let built = store::build(engine, state, inert, operations, &mut random, &building)?;
    until.join(&building);
    let mut tally = Tally {
        stores: 1,
        operations: built.operations,
        ..Tally::default()
    };
    for case in 0..CASES {
        if until.is_over() {
            break;
        }
        let mut random = Random::part(seed, case + 1);
        let Some(harm) = harm::pick(&built, &mut random) else {
            continue;
        };
        let usage = Use {
            in_file: case % IN_FILE == 0,
            writes_first: case % 3 == 1,
        };
        one(engine, &built, &harm, usage, &mut tally).map_err(|finding| {
            let discards = if inert { "do nothing" } else { "act" };
            let what = format!(
                "{}, {state}, where discards {discards} (seed {seed}, case {case}{}): {}",
                harm.sentence(&built.image),
                fewer(built.operations, operations),
                finding.what
            );
            Box::new(Finding { what, ..finding })
        })?;
    }
    Ok(tally)
}

/// How a store is to be had again that a deadline has kept from more operations.
fn fewer(done: u64, planned: usize) -> String {
    match done < planned as u64 {
        true => format!(", after {done} of {planned} operations"),
        false => String::new(),
    }
}

/// One harm, judged.
fn one(
    engine: &dyn Engine,
    built: &Built,
    harm: &Harm,
    usage: Use,
    tally: &mut Tally,
) -> Result<(), Finding> {
    let harmed: Image = harm.applied(built);
    let usage = Use {
        // A file of nothing is no device.
        in_file: usage.in_file && harmed.blocks() > 0,
        ..usage
    };
    let cut_at = built.cut_short_at(harm);
    let judged = caught(|| judge::judge(engine, built, harmed, cut_at, usage))?;
    let kind = &mut tally.harms[harm.kind() as usize];
    *kind = (kind.0 + 1, kind.1 + u64::from(judged.told));
    tally.in_files += u64::from(usage.in_file);
    tally.last_flush += u64::from(cut_at.is_some());
    tally.cut_short += u64::from(judged.cut_short);
    Ok(())
}

/// Judges, and takes a panic for what it is.
fn caught(judge: impl FnOnce() -> Result<Judged, Finding>) -> Result<Judged, Finding> {
    panics::catch(judge).map_err(|said| Finding {
        check: Check::Panic,
        operation: None,
        what: "open it and read".into(),
        expected: "an answer or an error".into(),
        found: said,
    })?
}
