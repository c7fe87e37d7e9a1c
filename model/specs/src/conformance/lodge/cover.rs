//! Measures how much of the mirror's graph the engine's tree covers.
//!
//! As for `LeafBuffering` ([`crate::conformance::leaf::cover`]), the tree cannot be led through a
//! model's graph state by state: a leaf of the smoke model has one slot, the engine's twenty-seven,
//! and a lock is not a step that the engine's threads can be stopped at. So episodes are recorded,
//! and the situation of each step that the judge takes is noted ([`SurrogateBuffer::situations`]).

use std::time::Duration;

use super::episode::Episode;
use super::judge::Refusal;
use crate::conformance::persistent::clients_in_turns;
use crate::conformance::persistent::episode::cover_with;
use crate::conformance::situations;
use crate::mirror::surrogate_buffer::SurrogateBuffer;

/// The situations that recordings have covered.
pub type Cover = situations::Cover<Episode, Refusal>;

/// The reason why the engine does not take a step in a situation, if it is not merely chance.
#[must_use]
pub fn why_not(label: &str, situation: &str) -> Option<&'static str> {
    let buffered = label == "SplitNode" && situation.contains("pairs");
    buffered.then_some("a node is split when its leaves leave no slot for a pair")
}

/// Records episodes until the time is up.
#[must_use]
pub fn run(mirror: &SurrogateBuffer, seed: u64, limit: Duration) -> Cover {
    let mut cover = Cover::of(mirror, |s, action, _| mirror.situations(s, *action));
    cover_with(&mut cover, (seed, limit), |n, seed| {
        Episode::new(clients_in_turns(n), seed)
    });
    cover
}
