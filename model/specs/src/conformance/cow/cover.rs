//! The situations in which the smoke model's steps begin, and those in which the engine was heard to
//! take them. See [`super::super::situations`].

use treering_engine::Result;

use super::Variant;
use super::episode::record;
use super::judge::Refusal;
use super::setup::Setup;
use crate::conformance::Budget;
use crate::conformance::led::cover_with;
use crate::conformance::situations;
use crate::mirror::copy_on_write::CopyOnWrite;

/// The situations that recordings have covered.
pub type Cover = situations::Cover<(usize, u64), Refusal>;

/// The reason why the engine does not take a step in a situation, if it is not merely chance.
#[must_use]
pub fn why_not(label: &str, situation: &str) -> Option<&'static str> {
    let has = |part: &str| situation.contains(part);
    match label {
        "DropPage" | "FreePage" => Some("an episode has no splits and merges"),
        "BuildPage" => Some("the pages of an episode exist when it begins"),
        "FinishRedo" if has("dead") => Some("an episode has no splits and merges"),
        _ if has("absent") || has("no image") => Some("the pages of an episode exist"),
        "WriteImage" | "NameImage" | "WriteTable" | "FinishTable"
            if has("checkpoint named") || has("checkpoint recorded") =>
        {
            Some("a checkpoint's last steps are one request")
        }
        "WriteImage" | "NameImage" if has("checkpoint snapshot") => {
            Some("a checkpoint's last steps are one request")
        }
        "WriteTable" if has("none held") && has("up") => {
            Some("a table that checkpoints write names pages that have moved")
        }
        "CommitLog" if has("a part") => Some("a flush covers all that was appended"),
        _ => None,
    }
}

/// Records episodes until the budget is used up; none is interrupted.
///
/// # Errors
/// The engine's own, while a store is built or a device is read.
pub fn run(mirror: &CopyOnWrite, seed: u64, budget: Budget) -> Result<Cover> {
    let mut cover = Cover::of(mirror, |before, action, after| {
        mirror.situations(before, *action, after)
    });
    let setups = [
        Setup::new(Variant::Each)?,
        Setup::new(Variant::Checkpoints)?,
    ];
    cover_with(&mut cover, (seed, budget), setups.len(), |which, seed| {
        record(&setups[which], seed)
    })?;
    Ok(cover)
}
