//! An episode: the seeded life of a store, see `conformance::paged`.

use treering_engine::Result;

use super::judge::{Judge, Refusal};
use super::setup::Setup;
use crate::conformance::behaviour::KEPT;
use crate::conformance::led::{Leads as _, Recorded, told_again};
pub use crate::conformance::paged::CLIENTS;
use crate::conformance::paged::run;
use crate::conformance::refused::Tally;
use treering_oracle::deadline::Deadline;

/// Runs the episode of a seed and judges it.
///
/// # Errors
/// The engine's own, at the first opening and when a device is read. No error is expected there.
pub fn run_episode(setup: &Setup, seed: u64) -> Result<(Tally, Option<Box<Refusal>>)> {
    run_until(setup, seed, &Deadline::never())
}

/// Like [`run_episode`], but ends when the time is up.
pub(super) fn run_until(
    setup: &Setup,
    seed: u64,
    until: &Deadline,
) -> Result<(Tally, Option<Box<Refusal>>)> {
    told_again(judged(setup, seed, until, None)?, || record(setup, seed))
}

/// The judge of the episode of a seed, with the situations of all steps.
pub(super) fn record(setup: &Setup, seed: u64) -> Result<(Judge<'_>, Option<Box<Refusal>>)> {
    judged(setup, seed, &Deadline::never(), Some(KEPT))
}

/// All steps of an episode as a behaviour of the spec. `None` if there is no step.
///
/// # Errors
/// As [`run_episode`].
pub fn recorded(setup: &Setup, seed: u64) -> Result<Option<Recorded>> {
    let (judge, _) = judged(setup, seed, &Deadline::never(), Some(usize::MAX))?;
    Ok(judge.recorded())
}

fn judged<'a>(
    setup: &'a Setup,
    seed: u64,
    until: &Deadline,
    steps: Option<usize>,
) -> Result<(Judge<'a>, Option<Box<Refusal>>)> {
    let mut judge = Judge::new(CLIENTS, setup);
    if let Some(steps) = steps {
        judge.note(steps);
    }
    let refusal = run(setup, seed, until, &mut |entries| judge.hear(entries))?;
    Ok((judge, refusal))
}
