//! Event conformance of the ring: what the engine's circular buffer does is what `CircularBuffer`
//! allows.
//!
//! Episodes ([`episode`]) let clients, a thread each, get and write pages through a real
//! [`treering_engine::ring::Ring`] of eight or sixteen units. Its events and what clients ask and
//! hear are recorded in one order and replayed on the mirror ([`judge`]): the source that is equal
//! to TLC's graph, with room for an engine ([`crate::mirror::wide`]) and without the model's bounds
//! on who calls what. The first event for which the mirror has no step, or another outcome, is
//! refused, and told with the state before it. All invariants are looked at after every event.
//!
//! # What stands for what
//!
//! The engine's own events: see the table in [`treering_engine::ring::events`]. The unit is 512
//! bytes, the spec's offsets the engine's in units, the spec's record the first byte of the payload
//! and its dirty bit the second. What clients do:
//!
//! | the spec | the engine in an episode |
//! |---|---|
//! | `Call`, `LockPage`, `Read`, `Return` | heard from the client; locks are taken and given back while the recorder listens to nobody else |
//! | `Create` | heard before the allocation, when the client has the page alone |
//! | `CopyToTail`, of a get | the same; of a write, `Looked` near the head |
//! | `Grow`, `Write` in place | `Looked` elsewhere, by what the client means to do: it holds the page alone, so nobody can tell when it does it |
//! | `Write` after moving | heard when it is done |
//!
//! Two differences of grain:
//!
//! - The spec decides whether a mini-page is near the head again when a get returns; the engine
//!   decided once, when it looked. A get that looked before the tail moved returns without copying,
//!   where the spec would copy: `(LateReturn)`, accepted by rule and counted.
//! - `VictimMoved` is no step: the spec's thread is back at the block, where it was.
//!
//! Not judged, for the spec has none of it: merges that fail, allocations that are dropped, pages
//! that the tree merges itself.

pub mod cover;
pub mod episode;
pub mod judge;

use episode::run_until;
pub use episode::{Episode, run_episode};
pub use judge::{Heard, Judge, Refusal};

use super::{Budget, refused};

/// What came of some episodes.
pub type Report = refused::Report<Episode, Refusal>;

/// Actions of the spec that one client alone takes.
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

/// Runs episodes of `clients` threads until so many events are accepted or one is refused.
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
