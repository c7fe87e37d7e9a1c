//! Measures how much of the mirror's graph the engine's tree covers.
//!
//! The tree cannot be led through a model's graph state by state: a leaf of the smoke model has
//! three slots, the engine's fourteen, and a latch is not a step that the engine's threads can be
//! stopped at. So episodes are recorded, and the situation of each step that the judge takes is
//! noted ([`LeafBuffering::situations`]). See [`crate::conformance::situations`].

use std::time::Duration;

use super::episode::Episode;
use super::judge::Refusal;
use crate::conformance::persistent::clients_in_turns;
use crate::conformance::persistent::episode::cover_with;
use crate::conformance::situations;
use crate::mirror::leaf_buffering::LeafBuffering;

/// The situations that recordings have covered.
pub type Cover = situations::Cover<Episode, Refusal>;

/// The reason why the engine does not take a step in a situation, if it is not merely chance.
#[must_use]
pub fn why_not(label: &str, situation: &str) -> Option<&'static str> {
    let ends = matches!(label, "Crash" | "Kill");
    let early = situation.contains("a write has begun") && situation.contains("a chunk's epoch");
    (ends && early).then_some(
        "a chunk's word is durable before its first entry is stored: (Takes) before `Latch`",
    )
}

/// Records episodes until the time is up.
#[must_use]
pub fn run(mirror: &LeafBuffering, seed: u64, limit: Duration) -> Cover {
    let mut cover = Cover::of(mirror, |s, action, _| mirror.situations(s, *action));
    cover_with(&mut cover, (seed, limit), |n, seed| {
        Episode::new(clients_in_turns(n), seed)
    });
    cover
}
