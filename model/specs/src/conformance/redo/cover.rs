//! Measures how much of the mirror's graph the engine's log covers.
//!
//! The engine cannot be led through a model's graph state by state, since its smallest log has more
//! blocks than a model's. So episodes are recorded, and the situation of each step that the judge
//! takes is noted ([`RedoLog::situation`]). See [`super::super::situations`].

use std::time::{Duration, Instant};

use treering_engine::Result;

use super::episode::record;
use super::judge::Refusal;
use super::{Variant, setups};
use crate::conformance::situations::{self, Situations};
use crate::mirror::redo_log::RedoLog;
use treering_oracle::random::Random;

/// The situations that recordings have covered.
pub type Cover = situations::Cover<(usize, u64), Refusal>;

/// The reason why the engine does not take a step in a situation, if it is not merely chance.
#[must_use]
pub fn why_not(label: &str, situation: &str) -> Option<&'static str> {
    let has = |part: &str| situation.contains(part);
    match label {
        "Rot" => Some("nothing decays in an episode"),
        "RefuseAppend" => Some("the store makes room by a checkpoint before it appends"),
        _ if has("then refused") => Some("nothing decays in an episode"),
        _ if has("up to a whole lap") => Some("a checkpoint comes before the ring is full"),
        "Crash" | "CompleteFlush" | "FailFlush" => None,
        "Restart" if has("a flush in flight") || has("a checkpoint recorded") => {
            Some("a process is killed between two calls of its only thread")
        }
        "RecordEpoch" if has("as before") => {
            Some("only if a batch has to be completed, and episodes have none")
        }
        "WriteSuper" | "FinishCheckpoint" if has("records not durable") => {
            Some("one thread plays all clients, and the log was flushed to its end")
        }
        _ if has("a flush in flight") => Some("one thread plays all clients"),
        _ => None,
    }
}

/// Records episodes until the time is up.
///
/// # Errors
/// The engine's own, while a store is built or a device is read.
pub fn run(mirror: &RedoLog, seed: u64, limit: Duration) -> Result<Cover> {
    let until = Instant::now() + limit;
    let mut cover = Cover::of(mirror, |before, action, after| {
        vec![mirror.situation(before, *action, after)]
    });
    let setups = setups(Variant::Mixed)?;
    let mut seeds = Random::new(seed);
    let mut heard = Situations::new();
    for n in 0.. {
        if Instant::now() >= until || cover.refusal.is_some() {
            break;
        }
        let (which, seed) = (n % setups.len(), seeds.word());
        let (judge, refusal) = record(&setups[which], seed)?;
        cover.events += judge.tally().heard;
        cover.refusal = refusal.map(|refusal| ((which, seed), refusal));
        for (label, situations) in judge.situations() {
            heard.entry(label).or_default().extend(situations);
        }
    }
    cover.hear(heard);
    Ok(cover)
}
