//! How much of the mirror's graph the engine's tree is heard to do.
//!
//! The tree cannot be led state for state through a model's graph, as the ring can
//! ([`crate::conformance::ring::cover`]): the smoke model's leaves have room for one record, the
//! engine's for at least seven of the same length, since no key is longer than an eighth of a page.
//! And the spec's inner node is read in two steps, which the engine's threads cannot be stopped
//! between. So episodes are recorded, and of each step that the judge takes for an event the
//! *situation* is noted ([`MiniPage::situation`]): whose call, what mini-page, which kind of record
//! the key has there, whether it is used, whether the leaf has it, who else has the page. See
//! [`crate::conformance::situations`].

use std::time::{Duration, Instant};

use super::episode::{Episode, record};
use super::judge::Refusal;
use crate::conformance::refused::in_turns;
use crate::conformance::situations::{self, Situations};
use crate::mirror::mini_page::MiniPage;
use treering_oracle::random::Random;

/// Actions that the engine never takes as they are, and why: see the parent module.
pub const NEVER: [(&str, &str); 5] = [
    (
        "MergeToMirror",
        "a merge and a mirror are two steps: told as (Mirrored)",
    ),
    (
        "GrowToMirror",
        "a merge and a mirror are two steps: told as (Mirrored)",
    ),
    (
        "EvictMirror",
        "a mirror is merged and stays: (MergedMirror); or evicted by the ring: EvictMini",
    ),
    (
        "FindLeafFull",
        "no merge finds its leaf full, for what it brings was admitted before",
    ),
    (
        "GiveUpJoin",
        "whether two leaves are joined is decided when both are locked",
    ),
];

/// Why the engine does not take a step in a situation, where there is a reason beside chance.
#[must_use]
pub fn why_not(label: &str, situation: &str) -> Option<&'static str> {
    if let Some((_, why)) = NEVER.iter().find(|(never, _)| *never == label) {
        return Some(why);
    }
    match label {
        "LockInner" | "AllocateRight" | "ShortenLeft" | "InsertSeparator" => Some(
            "a leaf is split for a put that finds it full, with its mini-page merged and given up before",
        ),
        "Restart" if situation.contains("another one writes") => {
            Some("who begins again has just had the lock of the page, and says so under it")
        }
        "Restart" => Some(
            "one version for all inner nodes sends back whoever is on the way; the engine begins again only if the way to its own page has changed",
        ),
        "WriteRecord" if situation.starts_with("delete") => Some(
            "a delete of what the mini-page knows to be absent writes nothing: (AbsentAlready)",
        ),
        "LockPage" | "ReadMini" | "ScanPage" if situation.contains("others read") => Some(
            "who reads a mini-page does so in one event: nobody else is heard while it has the lock",
        ),
        _ => None,
    }
}

/// What was heard of what there is.
pub type Cover = situations::Cover<Episode, Refusal>;

impl Cover {
    /// Actions of which nothing was heard, though the engine has them.
    #[must_use]
    pub fn never(&self) -> Vec<&'static str> {
        let named = |label: &str| NEVER.iter().any(|(never, _)| *never == label);
        let labels = self.all.keys().copied();
        labels
            .filter(|label| !named(label) && !self.heard.contains_key(label))
            .collect()
    }
}

/// Records episodes for so long.
#[must_use]
pub fn run(mirror: &MiniPage, seed: u64, limit: Duration) -> Cover {
    let until = Instant::now() + limit;
    let mut cover = Cover::of(mirror, |s, action, _| vec![mirror.situation(s, *action)]);
    let mut seeds = Random::new(seed);
    let mut heard = Situations::new();
    let mut n = 0;
    while Instant::now() < until && cover.refusal.is_none() {
        let episode = Episode::new(in_turns(n), seeds.word());
        n += 1;
        let (judge, refusal) = record(&episode);
        cover.events += judge.tally().heard;
        cover.refusal = refusal.map(|refusal| (episode, refusal));
        for (label, situations) in judge.situations() {
            let known = heard.entry(label).or_default();
            known.extend(situations.iter().cloned());
        }
    }
    cover.hear(heard);
    cover
}
