//! Measures how much of the mirror's graph the engine's tree covers.
//!
//! The tree cannot be led through a model's graph state by state, as the ring can
//! ([`crate::conformance::ring::cover`]). A leaf of the smoke model has room for one record, the
//! engine's for at least seven of the same length, since no key is longer than an eighth of a page.
//! And the spec reads the inner node in two steps, between which the engine's threads cannot be
//! stopped. So episodes are recorded, and the *situation* of each step that the judge takes is
//! noted ([`MiniPage::situation`]): the call, the mini-page, the kind of the key's record there,
//! whether the record is used, whether the leaf has it, and who else has the page. See
//! [`crate::conformance::situations`].

use std::time::{Duration, Instant};

use super::episode::{Episode, record};
use super::judge::Refusal;
use crate::conformance::refused::in_turns;
use crate::conformance::situations::{self, Situations};
use crate::mirror::mini_page::MiniPage;
use treering_oracle::random::Random;

/// Actions that the engine never takes as such, with the reason. See the parent module.
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
        "no merge finds its leaf full, since its records were admitted earlier",
    ),
    (
        "GiveUpJoin",
        "whether two leaves are joined is decided when both are locked",
    ),
];

/// The reason why the engine does not take a step in a situation, if it is not merely chance.
#[must_use]
pub fn why_not(label: &str, situation: &str) -> Option<&'static str> {
    if let Some((_, why)) = NEVER.iter().find(|(never, _)| *never == label) {
        return Some(why);
    }
    match label {
        "LockInner" | "AllocateRight" | "ShortenLeft" | "InsertSeparator" => Some(
            "a leaf is split for a put that finds it full; its mini-page is merged and dropped before that",
        ),
        "Restart" if situation.contains("another one writes") => Some(
            "a client that restarts has just held the page's lock, and reports it under that lock",
        ),
        "Restart" => Some(
            "with one version for all inner nodes every client on its way restarts; the engine restarts only if the path to its own page has changed",
        ),
        "WriteRecord" if situation.starts_with("delete") => Some(
            "a delete of what the mini-page knows to be absent writes nothing: (AbsentAlready)",
        ),
        "LockPage" | "ReadMini" | "ScanPage" if situation.contains("others read") => Some(
            "a mini-page is read in one event: no other client is recorded while the reader has the lock",
        ),
        _ => None,
    }
}

/// The situations that recordings have covered.
pub type Cover = situations::Cover<Episode, Refusal>;

/// Records episodes until the time is up.
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
            known.extend(situations);
        }
    }
    cover.hear(heard);
    cover
}
