//! The situations in which the smoke model's steps begin, and those in which the engine was heard
//! to take them. See [`super::super::situations`].

use std::time::{Duration, Instant};

use treering_engine::Result;

use super::episode::record;
use super::judge::Refusal;
use super::{Setup, losses};
use crate::conformance::led::Leads as _;
use crate::conformance::situations::{self, Situations};
use crate::mirror::index_snapshot::IndexSnapshot;
use treering_oracle::random::Random;

/// The situations that recordings have covered.
pub type Cover = situations::Cover<(u64, Option<u64>), Refusal>;

/// The reason why the engine does not take a step in a situation, if it is not merely chance.
#[must_use]
pub fn why_not(label: &str, situation: &str) -> Option<&'static str> {
    let has = |part: &str| situation.contains(part);
    let changes = has("split ") || has("merge ");
    match label {
        "DescendAgain" => Some("with one thread, no leaf moves from under a descent"),
        "AppendSplit" if has("nothing moves") => Some("a leaf is split between two records"),
        "CommitLog" if has("a part") => Some("a flush covers all that was appended"),
        "BeginCheckpoint" | "BeginSnapshot" if changes => {
            Some("the other thread would wait for the latches")
        }
        "WritePage" if has("redo") => Some("the cache has room for all pages that are redone"),
        _ => None,
    }
}

/// Records episodes until the time is up.
///
/// # Errors
/// The engine's own, while a store is built or a device is read.
pub fn run(mirror: &IndexSnapshot, seed: u64, limit: Duration) -> Result<Cover> {
    let until = Instant::now() + limit;
    let mut cover = Cover::of(mirror, |before, action, after| {
        mirror.situations(before, *action, after)
    });
    let setup = Setup::new()?;
    let mut seeds = Random::new(seed);
    let mut heard = Situations::new();
    let mut episodes = 0..;
    while Instant::now() < until && cover.refusal.is_none() {
        let of = (seeds.word(), episodes.next().and_then(losses));
        let (judge, refusal) = record(&setup, of)?;
        cover.events += judge.tally().heard;
        cover.refusal = refusal.map(|refusal| (of, refusal));
        for (label, situations) in judge.situations() {
            heard.entry(label).or_default().extend(situations);
        }
    }
    cover.hear(heard);
    Ok(cover)
}
