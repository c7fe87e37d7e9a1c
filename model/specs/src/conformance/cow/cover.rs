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

const ONE_REQUEST: &str =
    "a checkpoint's last steps are one request, and one thread plays all clients";
const DURABLE_FIRST: &str =
    "images are durable before a table names them, and one thread plays all clients";
const ENDS: &str = "the flush that makes a superblock durable ends the checkpoint";

/// The reason why the engine does not take a step in a situation, if it is not merely chance.
#[must_use]
pub fn why_not(label: &str, situation: &str) -> Option<&'static str> {
    let has = |part: &str| situation.contains(part);
    let each = situation.starts_with("each");
    let is_last = has("checkpoint named") || has("checkpoint recorded");
    match label {
        "DropPage" | "FreePage" => Some("an episode has no splits and merges"),
        "BuildPage" => Some("the pages of an episode exist when it begins"),
        "FinishRedo" if has("dead") => Some("an episode has no splits and merges"),
        _ if has("absent") || has("no image") => Some("the pages of an episode exist"),
        "WriteImage" | "NameImage" | "WriteTable" | "FinishTable" if is_last => Some(ONE_REQUEST),
        "WriteImage" | "NameImage" if has("checkpoint snapshot") => Some(ONE_REQUEST),
        "FinishTable" if each && has("checkpoint snapshot") => Some(ONE_REQUEST),
        "FinishTable" if each && has("none left") => {
            Some("a page of the episode had an image before, whose slot is left")
        }
        "WriteTable" | "FinishTable"
            if (has("none held") || has("none left")) && !has("clearing") =>
        {
            Some("a table that checkpoints write, or that frees slots, names pages that have moved")
        }
        "CommitLog" if has("a part") => Some("a flush covers all that was appended"),
        "FlushDevice" | "FailFlush" => why_not_flushed(situation),
        "Crash" | "Restart" => why_not_left(situation),
        _ => None,
    }
}

/// The reason why the engine does not flush the device in a situation.
fn why_not_flushed(situation: &str) -> Option<&'static str> {
    let has = |part: &str| situation.contains(part);
    let is_last = has("checkpoint named") || has("checkpoint recorded");
    let each = situation.starts_with("each");
    if has("slots, table") && (each || !has("snapshot") && !has("clearing")) {
        return Some(DURABLE_FIRST);
    }
    if has("checkpoint recorded") && !has("superblock") {
        return Some(ENDS);
    }
    let table = has("table") && (is_last || each && has("checkpoint snapshot"));
    let slots = each && has("slots, superblock");
    (table || slots).then_some(ONE_REQUEST)
}

/// The reason why the engine does not end in a situation, or not with this left.
fn why_not_left(situation: &str) -> Option<&'static str> {
    let (unflushed, left) = situation.split_once(": ").unwrap_or((situation, ""));
    let has = |part: &str| unflushed.contains(part);
    let each = situation.starts_with("each");
    let is_newer = left.starts_with("a newer superblock");
    if each && has("slots, table") {
        return Some(DURABLE_FIRST);
    }
    if is_newer && !has("superblock") && (has("slots") || has("table")) {
        return Some(ENDS);
    }
    let slots = each && has("slots, superblock");
    let table = left.ends_with("another table") && (is_newer || has("superblock"));
    (table || slots).then_some(ONE_REQUEST)
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
