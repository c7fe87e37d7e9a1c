//! Measures how much of the mirror's graph the engine's store covers.
//!
//! The store cannot be led through a model's graph state by state: the smoke model begins with a
//! page that was never written, and its redo log is a separate device. So episodes are recorded,
//! and the situation of each step that the judge takes is noted ([`PageShadowing::situations`]),
//! page by page: what is known of the page, what is in memory, what is on the device in each slot
//! and in the log block, and whether that is durable. See [`super::super::situations`].

use treering_engine::Result;

use super::episode::record;
use super::judge::Refusal;
use super::{Variant, setups};
use crate::conformance::Budget;
use crate::conformance::led::cover_with;
use crate::conformance::situations;
use crate::mirror::page_shadowing::PageShadowing;

/// The situations that recordings have covered.
pub type Cover = situations::Cover<(usize, u64), Refusal>;

/// The reason why the engine does not take a step in a situation, if it is not merely chance.
#[must_use]
pub fn why_not(label: &str, situation: &str) -> Option<&'static str> {
    let has = |part: &str| situation.contains(part);
    let writes = matches!(label, "WriteDelta" | "WriteWhole");
    match label {
        _ if has("no base") || has("its slot trimmed, the other trimmed") => {
            Some("a page that was never written: an episode's pages have an image")
        }
        _ if (has("written;") && has("the other trimmed,"))
            || (has("durable, logged") && has("the other trimmed,"))
            || (has("durable;") && has("the other trimmed, log block trimmed")) =>
        {
            Some("the first image of a page, which has no older image to trim")
        }
        _ if has("alone") && has("the other there") => Some(
            "blocks that were written as zeros: a deleted segment of the spec; the engine's segments hold more than that",
        ),
        _ if has("durable") && (writes || has("logged") && has("log block there in the cache")) => {
            Some("what is durable is trimmed before anything else is written")
        }
        "Load" if has("reads as what was before") => {
            Some("the device of the episodes trims at once")
        }
        "CommitLog" if has("a part") => Some("a flush covers all that was appended"),
        "RedoRecord" if has("the page has it") => {
            Some("redo reports only records that the page lacks")
        }
        _ if writes && has("up, ") && has("there in the cache") => Some(
            "a change is durable before its page is written, by a flush that covers the image before: the log shares the pages' device",
        ),
        "FlushDevice" | "FailFlush" if !has("cache") && !has("forgotten") => {
            Some("the page has nothing to flush: another page has")
        }
        _ => None,
    }
}

/// Records episodes until the budget is used up; none is interrupted. Pages have two
/// blocks, as in the smoke model.
///
/// # Errors
/// The engine's own, while a store is built or a device is read.
pub fn run(mirror: &PageShadowing, seed: u64, budget: Budget) -> Result<Cover> {
    let mut cover = Cover::of(mirror, |before, action, after| {
        mirror.situations(before, *action, after)
    });
    let setup = &setups(Variant::BMinus)?[0];
    cover_with(&mut cover, (seed, budget), 1, |_, seed| record(setup, seed))?;
    Ok(cover)
}
