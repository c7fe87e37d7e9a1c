//! How much of the mirror's graph the engine's store is heard to do.
//!
//! The store cannot be led state for state through a model's graph: the smoke model begins with a
//! page that was never written, and its redo log is a device of its own. So episodes are recorded,
//! and of each step that the judge takes for an event the situation is noted
//! ([`PageShadowing::situations`]), page by page: what is known of it, what is in memory, and what
//! is on the device of each slot and of the log block, durable or not. See
//! [`super::super::situations`].

use std::time::{Duration, Instant};

use treering_engine::Result;

use super::episode::record;
use super::judge::Refusal;
use super::{Variant, setups};
use crate::conformance::situations::{self, Situations};
use crate::mirror::page_shadowing::PageShadowing;
use treering_oracle::random::Random;

/// What was heard of what there is.
pub type Cover = situations::Cover<(usize, u64), Refusal>;

/// Why the engine does not take a step in a situation, where there is a reason beside chance.
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
            Some("a page's first image, before which nothing is to be trimmed")
        }
        _ if has("alone") && has("the other there") => Some(
            "blocks of zeros that were written: a deleted segment of the spec; the engine's have more in them",
        ),
        _ if has("durable") && (writes || has("logged") && has("log block there in the cache")) => {
            Some("what is durable is trimmed before anything else is written")
        }
        "Load" if has("reads as what was before") => {
            Some("the device of the episodes trims at once")
        }
        "CommitLog" if has("a part") => Some("a flush takes all that is appended"),
        "RedoRecord" if has("the page has it") => {
            Some("redo tells only of what a page does not have")
        }
        _ if writes && has("up, ") && has("in the cache") => Some(
            "a change is durable before its page is written, by a flush that covers the image before: the log shares the pages' device",
        ),
        "FlushDevice" | "FailFlush" if !has("cache") => {
            Some("nothing of the page is to be flushed: another page's is")
        }
        _ => None,
    }
}

impl Cover {
    /// Actions of which nothing was heard.
    #[must_use]
    pub fn never(&self) -> Vec<&'static str> {
        let labels = self.all.keys().copied();
        labels
            .filter(|label| !self.heard.contains_key(label))
            .collect()
    }
}

/// Records episodes for so long, of pages of two blocks as in the smoke model.
///
/// # Errors
/// The engine's own, where a store is built or a device looked at.
pub fn run(mirror: &PageShadowing, seed: u64, limit: Duration) -> Result<Cover> {
    let until = Instant::now() + limit;
    let mut cover = Cover::of(mirror, |before, action, after| {
        mirror.situations(before, *action, after)
    });
    let setup = &setups(Variant::BMinus)?[0];
    let mut seeds = Random::new(seed);
    let mut heard = Situations::new();
    while Instant::now() < until && cover.refusal.is_none() {
        let seed = seeds.word();
        let (judge, refusal) = record(setup, seed)?;
        cover.events += judge.tally().heard;
        cover.refusal = refusal.map(|refusal| ((0, seed), refusal));
        for (label, situations) in judge.situations() {
            heard.entry(label).or_default().extend(situations);
        }
    }
    cover.hear(heard);
    Ok(cover)
}
