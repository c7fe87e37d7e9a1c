//! One tree on several drives: the tree runs once, and the drives are asked for the same.
//!
//! ```text
//! trace ─▶ store ─▶ drive 1         the recorded run
//!            │        │
//!            └─ tape ─┘  calls, and what each asked of the drive: blocks, classes, compressed sizes
//!                 ├─▶ drive 2       the loop of a replay with a store that plays the tape
//!                 └─▶ drive 3 …
//! ```
//!
//! Each report is the one that a replay of its own would have made, byte for byte. That is so
//! because a store does the same on two drives if these are told apart by nothing that it looks at:
//!
//! - *The content.* It reads what it has written.
//! - *The size.* Stores have the same options and as many blocks, or they do not run together.
//! - *The time.* It decides which client is next, in the loop, and whether an interval of
//!   [`Durability::Grouped`](treering_engine::Durability::Grouped) is over, in the store. The loop
//!   runs for each drive with its own clock. A drive where a call does not come in the recorded
//!   order, or where the interval would be over at another call, drops out. So does one whose medium
//!   is full. It must be replayed alone.
//!
//! A drive that plays holds no contents. Compressed sizes depend on the codec alone, so drives that
//! compress can follow one with the same codec, and all others can follow any drive.
//!
//! The tape is played whenever it has some ten thousand entries, and then cleared, so its length does
//! not grow with the trace. Everything happens in one thread.

mod play;
mod record;
mod tape;

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use treering_engine::{LeafFill, Options};
use treering_traces::OpKind;

use self::play::{OfTape, Played};
use self::record::{Noted, Recorded};
use self::tape::Tape;
use super::backend::{self, DriveBackend};
use super::forecast::{Planned, predict_runs};
use super::plan::LeafCounts;
use crate::clock::VirtualClock;
use crate::drive::DriveCounters;
use crate::predict::Prediction;
use crate::replay::config::ReplayConfig;
use crate::replay::error::{Failure, ReplayError};
use crate::replay::look::{Looked, look_through};
use crate::replay::measure::Outcome;
use crate::replay::progress::Progress;
use crate::replay::target::AskedDrive;
use crate::replay::virtual_time::{Backend, OfTrace, Run};
use crate::report::ReplayReport;

/// Entries of the tape before it is played.
const CHUNK: usize = 1 << 14;
/// Turns between two looks at its length.
const LOOK: u32 = 64;

/// A drive that plays.
type Follower<'a> = Run<'a, DriveBackend<Played>, OfTape>;

/// A configuration and its drive.
type Asked<'a> = (&'a ReplayConfig, AskedDrive<'a>);

/// Replays on several drives; `None` for one that must be replayed alone.
pub(in crate::replay) fn on_drives(
    asked: &[Asked<'_>],
    options: &Options,
    progress: &mut dyn FnMut(Progress),
) -> Result<Vec<Option<ReplayReport>>, ReplayError> {
    let Some((first, _)) = asked.first() else {
        return Ok(Vec::new());
    };
    let looked = look_through(first, progress)?;
    let counts = &mut LeafCounts::default();
    let mut planned = Vec::new();
    for (config, drive) in asked {
        planned.push(Planned::new((config, options), &looked, *drive, counts)?);
    }
    let lead = (planned.iter())
        .position(|plan| plan.drive.params().compression.is_some())
        .unwrap_or(0);
    let follows = |at: &usize| *at != lead && may_follow(&planned[*at], &planned[lead]);
    let members: Vec<usize> = std::iter::once(lead)
        .chain((0..planned.len()).filter(follows))
        .collect();
    for &at in &members {
        let (config, drive) = &asked[at];
        planned[at].drive.prepare(drive.precondition, config.seed);
    }
    let runs: Vec<(&ReplayConfig, &Planned)> = members
        .iter()
        .map(|&at| (asked[at].0, &planned[at]))
        .collect();
    let name = first.target.name();
    let ran = run(&runs, &looked, progress).map_err(|e| e.on(&name))?;
    let mut reports: Vec<Option<ReplayReport>> = asked.iter().map(|_| None).collect();
    let ended: Vec<(usize, Outcome<DriveCounters>)> = (members.iter().zip(ran.outcomes))
        .filter_map(|(at, outcome)| Some((*at, outcome?)))
        .collect();
    let to_predict: Vec<usize> = (ended.iter())
        .filter(|(at, outcome)| super::predicts(asked[*at].0, outcome.done_ops, &looked))
        .map(|(at, _)| *at)
        .collect();
    let of_runs: Vec<_> = (to_predict.iter())
        .map(|&at| (asked[at].0, asked[at].1, &planned[at]))
        .collect();
    let predictions = predict_runs(&of_runs, &looked);
    let mut predictions: BTreeMap<usize, Prediction> =
        to_predict.into_iter().zip(predictions).collect();
    for (at, outcome) in ended {
        backend::check_counters(&outcome.after.stats, &outcome.after.device.flash)?;
        let (ran, prediction) = ((outcome, ran.leaves.clone()), predictions.remove(&at));
        let report = super::reported(asked[at], &looked, &planned[at], ran, prediction);
        reports[at] = Some(report);
    }
    Ok(reports)
}

/// Whether nothing that is known before the run tells two drives apart.
fn may_follow(one: &Planned, lead: &Planned) -> bool {
    let codec = |planned: &Planned| planned.drive.params().compression.map(|c| c.codec);
    one.plan.engine == lead.plan.engine
        && one.plan.device_blocks == lead.plan.device_blocks
        && codec(one).is_none_or(|own| codec(lead) == Some(own))
}

/// What came out: the outcome of each drive that has come to the end, and the leaves.
struct Ran {
    outcomes: Vec<Option<Outcome<DriveCounters>>>,
    leaves: Vec<LeafFill>,
}

/// Runs the first, and lets the others follow.
fn run(
    runs: &[(&ReplayConfig, &Planned)],
    looked: &Looked,
    progress: &mut dyn FnMut(Progress),
) -> Result<Ran, Failure> {
    let (config, planned) = runs[0];
    let engine = &planned.plan.engine;
    let tape = Arc::new(Mutex::new(Tape::default()));
    let clock = Arc::new(VirtualClock::new());
    let store = Recorded::open(&planned.drive, (engine, &clock), &tape)?;
    let mut lead = DriveBackend::new(planned.drive.clone(), store, clock, config);
    let mut behind = Vec::new();
    for (config, planned) in &runs[1..] {
        let clock = Arc::new(VirtualClock::new());
        let store = Played::open(&planned.drive, (engine, &clock), &tape);
        let opened = |store| DriveBackend::new(planned.drive.clone(), store, clock, config);
        behind.push(store.ok().map(opened));
    }
    let mut followers: Vec<Option<Follower<'_>>> = behind
        .iter_mut()
        .map(|backend| backend.as_mut())
        .map(|backend| Some(Run::new((config, looked), backend?, OfTape::default())))
        .collect();
    forget(&tape, &mut followers);
    let feed = Noted {
        trace: OfTrace::open(config, looked)?,
        kind: OpKind::Get,
    };
    progress(Progress::Replay(0, looked.ops));
    let mut run = Run::new((config, looked), &mut lead, feed);
    let (mut turns, mut told) = (0_u32, 0);
    while run.turn()? {
        turns = turns.wrapping_add(1);
        if turns.is_multiple_of(LOOK) && tape.lock().entries.len() >= CHUNK {
            catch_up(&mut followers);
            forget(&tape, &mut followers);
            if run.number() > told {
                told = run.number();
                progress(Progress::Replay(told, looked.ops));
            }
        }
    }
    finish(&mut followers);
    let outcome = run.end()?;
    if tape.lock().is_torn {
        followers.iter_mut().for_each(|follower| *follower = None);
    }
    let ends = |follower: Option<Follower<'_>>| Some(as_lead(follower?.end().ok()?, &outcome));
    let mut others: Vec<_> = followers.into_iter().map(ends).collect();
    // Looking at the leaves may write pages, which is after the run, and drives count it.
    let leaves = lead.store().store().leaf_fill()?;
    for (outcome, backend) in others.iter_mut().zip(&behind) {
        let played = backend.as_ref().map(|backend| backend.store().play_rest());
        if !matches!(played, Some(Ok(()))) {
            *outcome = None;
        }
    }
    let outcomes = std::iter::once(Some(outcome)).chain(others).collect();
    Ok(Ran { outcomes, leaves })
}

/// Plays the tape to its end. A turn of the recorded run has ended there, so one of a follower does.
fn catch_up(followers: &mut [Option<Follower<'_>>]) {
    for place in followers {
        let Some(follower) = place else { continue };
        while !follower.backend.store().is_at_end() {
            if !matches!(follower.turn(), Ok(true)) {
                *place = None;
                break;
            }
        }
    }
}

/// As [`catch_up`], when the recorded run is over.
fn finish(followers: &mut [Option<Follower<'_>>]) {
    for place in followers {
        let Some(follower) = place else { continue };
        let ended = loop {
            match follower.turn() {
                Ok(true) => {}
                Ok(false) => break follower.backend.store().is_at_end(),
                Err(_) => break false,
            }
        };
        if !ended {
            *place = None;
        }
    }
}

/// Clears the tape.
fn forget(tape: &Mutex<Tape>, followers: &mut [Option<Follower<'_>>]) {
    tape.lock().clear();
    for follower in followers.iter().flatten() {
        follower.backend.store().rewind();
    }
}

/// The outcome of a drive, with what only the recorded run knows: the store's counters, what its
/// ring held, and how much the codec had to do.
fn as_lead(
    mut own: Outcome<DriveCounters>,
    lead: &Outcome<DriveCounters>,
) -> Outcome<DriveCounters> {
    own.measures.ring = lead.measures.ring;
    for (own, lead) in [
        (&mut own.before, &lead.before),
        (&mut own.after, &lead.after),
    ] {
        own.stats = lead.stats;
        if let (Some(own), Some(lead)) = (&mut own.device.compression, &lead.device.compression) {
            own.compressed_blocks = lead.compressed_blocks;
            own.remembered_blocks = lead.remembered_blocks;
        }
    }
    own
}
