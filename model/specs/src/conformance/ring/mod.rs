//! Conformance of the engine's ring of mini-pages to `CircularBuffer`.
//!
//! In an episode ([`episode`]) clients, one thread each, read and write pages through a real
//! [`treering_engine::ring::Ring`] of eight or sixteen units. The ring's events, and the calls and
//! answers of clients, are recorded in one order and replayed on the mirror ([`judge`]). That
//! mirror has the source whose graph equals TLC's, with room for a real engine
//! ([`crate::mirror::wide`]) and without the model's bounds on clients. The first event for which
//! the mirror has no step, or another outcome, is refused, and reported with the state before it.
//! All invariants are checked after each event.
//!
//! # How the spec maps to the engine
//!
//! [`treering_engine::ring::events`] has a table of the engine's events. A unit is 512 bytes, and
//! an offset of the spec is the engine's in units. A record of the spec is the first byte of the
//! payload, and its dirty bit the second. Clients take these steps of the spec:
//!
//! - `Call`, `LockPage`, `Read`, `Return`: heard from the client; locks are taken and given back
//!   while the recorder listens to nobody else
//! - `Create`: heard before the allocation, when the client has the page alone
//! - `CopyToTail`, of a get: the same; of a write, `Looked` near the head
//! - `Grow`, `Write` in place: `Looked` elsewhere, by what the client intends to do: it has the
//!   page exclusively, so the time at which it does it cannot be observed
//! - `Write` after moving: recorded when it is done
//!
//! There are two differences of granularity:
//!
//! - When a get returns, the spec decides again whether the mini-page is near the head. The engine
//!   decided once, when it looked. If the tail has moved since, the engine's get returns without
//!   copying and the spec's would copy: `(LateReturn)`, accepted by rule and counted.
//! - `VictimMoved` is not a step: the spec's thread is back at the block where it was.
//!
//! Not judged, since the spec does not have them: merges that fail, allocations that are dropped,
//! pages that the tree merges itself.

pub mod cover;
pub mod episode;
pub mod judge;
mod tla;

use episode::run_until;
pub use episode::{Episode, run_episode};
pub use judge::{Heard, Judge, Refusal};

use super::{Budget, refused};

/// The result of episodes.
pub type Report = refused::Report<Episode, Refusal>;

/// The actions of the spec that a single client takes.
pub const ALONE: [&str; 24] = [
    "Allocate",
    "Call",
    "Claim",
    "Copy",
    "CopyToTail",
    "Create",
    "Deallocate",
    "FindPage",
    "Finish",
    "Full",
    "Grow",
    "LockPage",
    "LockVictim",
    "Pad",
    "PopFreeList",
    "Publish",
    "Read",
    "Return",
    "Reuse",
    "Skip",
    "Unlist",
    "Unmap",
    "Write",
    "WriteLeaf",
];

/// Runs episodes of `clients` threads until this many events are accepted, or one is refused.
#[must_use]
pub fn run(clients: u8, seed: u64, events: u64) -> Report {
    Report::of(seed, Budget::Events(events), |_, seed, until| {
        let episode = Episode::new(clients, seed);
        (episode, run_until(&episode, until))
    })
}

/// Runs episodes of one, two, four or eight threads until the budget is used up or an event is
/// refused.
#[must_use]
pub fn run_mixed(seed: u64, budget: Budget) -> Report {
    Report::of(seed, budget, |n, seed, until| {
        let episode = Episode::new(refused::in_turns(n), seed);
        (episode, run_until(&episode, until))
    })
}
