//! Conformance of the engine's LodgeTree to `SurrogateBuffer`.
//!
//! Episodes (`episode`) drive a real [`treering_engine::PmStore`] on a persistent memory that crashes
//! word by word ([`treering_engine::device::MemPm`]). The events of the tree
//! ([`treering_engine::pm_events::lodge`], with the table of events and actions) and the calls of
//! its clients are recorded and replayed on the mirror (`judge`, `writes`, `power`). That mirror has
//! the source whose graph equals TLC's, with room for a real engine ([`crate::mirror::wide`]). The
//! first event for which the mirror has no step, or another outcome, is refused. All invariants are
//! checked after each event; `RecoverableInv`, which asks about all outcomes of a crash, for four
//! of them whenever the medium is compared. How it is compared is told in [`super::persistent`].
//!
//! # How the spec maps to the engine
//!
//! Each item names a part of the spec, then what it is in an episode of the engine.
//!
//! - a leaf of `LeafSlots`: one of 27; a word for key and value: two, which tear
//! - `Spaces`, `LogSize`: the logs in all chunks of 1 KiB, of six to eight entries; an entry: three
//!   words, which tear
//! - a version: the place of a log. The mirror counts versions; that a pair names its log is compared
//! - a number: the same number
//! - `Fanout`: one less than the slots of a node, since then no pair has room
//! - a node: its leaves with their least keys, the number of keys of each, and its buffer in order
//! - `Crash`: a new medium that holds one outcome; which one is read off it. The spec's recovery
//!   begins in the same step, so a power cut before recovery has written anything is the same
//! - `Restart`: the same medium with its caches, opened again. The step is taken when recovery has
//!   made durable what it reads; a power cut before that is one of the life before
//! - `WriteBackEntry`: taken where a crash shows that an entry was durable before its fence
//!
//! The spec makes some choices so that there are fewer states, and the judge follows the engine's:
//! which free slot, leaf and log are next, and in which order clients that share a log fill it.
//!
//! # What the engine does otherwise
//!
//! These are accepted by rule and counted. None of them can be told from the steps of the spec
//! after a crash, for the reason that is given:
//!
//! - `(NoWait)`: a write to a buffered key takes over its pair's slot, also in a full buffer, and so
//!   does an entry that is replayed. The number of pairs stays the same (`SpaceInv`).
//! - `(FlushChosen)`: a flush is made before the buffer is full, or to other leaves than the first
//!   ones wanted: by cleaning, a checkpoint, a merge, and when no leaf is free for a split. Each
//!   leaf gets all of its pairs, and `FlushInv` holds.
//! - `(SplitsOnce)`: after a split, the rest goes to the old leaf even if that then has more than
//!   t_split keys. The spec splits it once more. With the paper's sizes (26 and 29) that cannot
//!   happen; there is room in any case (`RoomInv`), and the next flush splits the leaf.
//! - `(SplitsMore)`, `(NodesBuilt)`: a node is split into more than two, or at another leaf, and
//!   recovery builds several nodes at once. Nodes are in DRAM only.
//! - `(MovesPairs)`, `(LinksPast)`, `(LeavesMerged)`, `(NodesMerged)`: leaves and nodes are merged,
//!   which neither the paper nor the spec has. The mirror's invariants hold at each step.
//! - `(FloorRises)`, `(BelowFloor)`: entries below the log floor are not replayed. The judge checks
//!   that a later entry of the same key is, and that no pair below the floor is buffered.
//! - `(Takes)`: a chunk is used for something else; entries of a log that was there are gone.
//! - `(Torn)`: a crash has left the key of one version and the value of another. No bitmap and no
//!   checksum refers to them.
//! - `(Erased)`, `(NotStored)`, `(HasRead)`: a torn entry's last word is zeroed; a killed process
//!   had announced a store and not made it; a get has read before other events were recorded.
//!
//! Lives of an episode may have nodes of fewer slots than those before. Otherwise recovery would
//! never flush, because it builds nodes in which all that it replays has room.
//!
//! Left out: full devices, on which keys are deleted in place and leaves redistributed; records
//! longer than a word; range queries.

pub mod cover;
mod episode;
mod judge;
mod power;
mod tla;
mod words;
mod writes;

pub use episode::Episode;
pub use judge::{Judge, Refusal};

use super::persistent::clients_in_turns;
use super::persistent::episode::run_until;
use super::persistent::words::CHUNK;
use super::{Budget, refused};
pub use crate::mirror::wide::surrogate_buffer::LABELS;

/// The result of episodes.
pub type Report = refused::Report<Episode, Refusal>;

/// Runs episodes of so many clients until the budget is used up or an event is refused.
#[must_use]
pub fn run(clients: u8, seed: u64, budget: Budget) -> Report {
    Report::of(seed, budget, |_, seed, until| {
        let episode = Episode::new(clients, seed);
        (episode, run_until(&episode, until))
    })
}

/// Runs episodes of one client, and of two in one of three, until the budget is used up or an event
/// is refused.
#[must_use]
pub fn run_mixed(seed: u64, budget: Budget) -> Report {
    Report::of(seed, budget, |n, seed, until| {
        let episode = Episode::new(clients_in_turns(n), seed);
        (episode, run_until(&episode, until))
    })
}
