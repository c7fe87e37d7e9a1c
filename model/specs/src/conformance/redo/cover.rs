//! Measures how much of the mirror's graph the engine's log covers.
//!
//! The engine cannot be led through a model's graph state by state, since its smallest log has more
//! blocks than a model's. So episodes are recorded, and the situation of each step that the judge
//! takes is noted ([`RedoLog::situation`]). See [`super::super::situations`].

use treering_engine::Result;

use super::episode::record;
use super::judge::Refusal;
use super::{Variant, setups};
use crate::conformance::Budget;
use crate::conformance::led::cover_with;
use crate::conformance::situations;
use crate::mirror::redo_log::RedoLog;

/// The situations that recordings have covered.
pub type Cover = situations::Cover<(usize, u64), Refusal>;

/// The reason why the engine does not take a step in a situation, if it is not merely chance.
#[must_use]
pub fn why_not(label: &str, situation: &str) -> Option<&'static str> {
    let has = |part: &str| situation.contains(part);
    let begins = |part: &str| situation.starts_with(part);
    let one_thread = Some("one thread plays all clients");
    let flushed_to_end = Some("one thread plays all clients, and the log was flushed to its end");
    let redo_stays = Some("only if a batch has to be completed, and episodes have none");
    match label {
        "Rot" => Some("nothing decays in an episode"),
        "RefuseAppend" => Some("the store makes room by a checkpoint before it appends"),
        _ if has("then refused") => Some("nothing decays in an episode"),
        _ if has("up to a whole lap") => Some("a checkpoint comes before the ring is full"),
        // Recovery moves the redo start beyond all that it has read, with its witness or end mark.
        "Crash" | "Restart"
            if begins("up")
                && (has("records, up to a witness") || has("records, up to an end mark")) =>
        {
            redo_stays
        }
        // A checkpoint writes its superblock when the log is durable, and nothing else meanwhile.
        "Crash" | "Restart" if has("a flush in flight") && has("a checkpoint recorded") => {
            one_thread
        }
        "FailFlush" if begins("up") && has("log blocks not durable, a superblock not durable") => {
            one_thread
        }
        "FailCall" if has("in the buffer") && !has("a flush in flight") => flushed_to_end,
        "CompleteFlush" if has("a superblock not durable") || !has("log blocks not durable") => {
            one_thread
        }
        "FailFlush" if has("a flush in flight") && has("a superblock not durable") => one_thread,
        "FailWrite" if has("a superblock not durable") => one_thread,
        "FinishCheckpoint" if !has("a superblock not durable") => one_thread,
        "Crash" if begins("recorded") && has(": records") && !has("an older superblock") => {
            redo_stays
        }
        "OpenLog" if has("a superblock not durable") && has("records, up to a witness") => {
            redo_stays
        }
        "Crash" | "Restart" | "CompleteFlush" | "FailFlush" | "FailWrite" | "FailCall" => None,
        "RecordEpoch" if has("as before") => redo_stays,
        "WriteSuper" | "FinishCheckpoint" if has("records not durable") => flushed_to_end,
        _ if has("a flush in flight") => one_thread,
        _ => None,
    }
}

/// Records episodes until the budget is used up; none is interrupted.
///
/// # Errors
/// The engine's own, while a store is built or a device is read.
pub fn run(mirror: &RedoLog, seed: u64, budget: Budget) -> Result<Cover> {
    let mut cover = Cover::of(mirror, |before, action, after| {
        vec![mirror.situation(before, *action, after)]
    });
    let setups = setups(Variant::Mixed)?;
    cover_with(&mut cover, (seed, budget), setups.len(), |which, seed| {
        record(&setups[which], seed)
    })?;
    Ok(cover)
}
