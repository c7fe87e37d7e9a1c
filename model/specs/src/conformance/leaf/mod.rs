//! Conformance of the engine's CCL-BTree to `LeafBuffering`.
//!
//! Episodes ([`episode`]) drive a real [`treering_engine::PmStore`] on a persistent memory that
//! crashes word by word ([`treering_engine::device::MemPm`]). The events of the tree
//! ([`treering_engine::pm_events`]) and the calls of its clients are recorded and replayed on the
//! mirror ([`judge`], `writes`). That mirror has the source whose graph equals TLC's, with room for
//! a real engine ([`crate::mirror::wide`]). The first event for which the mirror has no step, or
//! another outcome, is refused. All invariants are checked after each event.
//!
//! How the medium is compared is told in [`super::persistent`].
//!
//! # How the spec maps to the engine
//!
//! Each item names a part of the spec, then what it is in an episode of the engine. The table of
//! events is at [`treering_engine::pm_events`].
//!
//! - a leaf of `Slots`: one of 14; a word for key and value: two, which tear
//! - a chunk of `Entries`: one of 42, of 1 KiB; its epoch: its word in the directory, which has the
//!   time at which it was begun; an entry: three words, which tear
//! - `First`: the log floor, a time
//! - a time, an epoch and a tick: one number, which the judge does not interpret. It compares words.
//! - `Crash`, `Settle`: a new medium that holds one outcome; which one is read off it
//! - `Kill`, `WriteBack`: the same medium with its caches, opened again
//! - a buffer node: what is unflushed is compared, with its epoch bits; what is cached must equal the
//!   leaf's, and the mirror takes it over
//!
//! The spec makes some choices so that there are fewer states, and the judge follows the engine's,
//! if the spec could have made them in another order: which free slot, leaf and chunk are next, where
//! a leaf is split, and how many keys of a leaf are replayed together.
//!
//! # What the engine does otherwise
//!
//! These are accepted by rule and counted:
//!
//! - `(SplitTakesBatch)`: a split stores what fits of the batch with the halves. In the spec it is
//!   inserted after the split.
//! - `(Flush)`: a buffer is flushed without a write: by a checkpoint, or a merge of the right leaf.
//! - `(MergesLater)`, `(LetsGo)`: the leaf is unlocked between a flush and the merge after it, and
//!   whether both fit in one is decided again. A merge is a worker's step, not the writer's.
//! - `(VainDelete)`: deleting a leaf's smallest key again writes nothing.
//! - `(Born)`: the first flush since the opening stamps the leaf with the time of the opening, which
//!   is above everything that was logged before.
//! - `(StampLags)`: the spec stores a timestamp right after the header's fence, and the engine with
//!   the next header. After a power cut both are allowed. A process that is killed finds it in the
//!   spec, and not in the engine, which then replays one flush more, and changes nothing.
//! - `(Takes)`: a chunk's own word is durable before its first entry is stored.
//! - `(Torn)`: a crash has left the key of one version and the value of another. No bitmap and no
//!   checksum refers to them.
//! - `(Erased)`, `(NotStored)`, `(HasRead)`: a torn entry's last word is zeroed; a killed process had
//!   announced a store and not made it; a get has read before other events were recorded.
//! - After a kill, the engine does not write back what it reads of the logs, as the spec does
//!   (`WriteBack`), but replays it. If an entry was in doubt, the power does not fail in that
//!   recovery: the mirror has the entry, and the medium may lose it once more.
//!
//! `pmtree`, the papers' baseline, is the same tree with buffer nodes of no slots: every write is a
//! trigger write, and nothing is logged. It is judged by the same mirror with `Batch` 0, which takes
//! the steps of [`UNBUFFERED`] and no other but `Open`.
//!
//! Left out: full devices, on which changes are written without the log or deletes in place; naive
//! cleaning; records longer than a word; range queries.

pub mod cover;
pub mod episode;
pub mod judge;
mod power;
mod tla;
mod words;
mod writes;

pub use episode::Episode;
pub use judge::{Judge, Refusal};

use super::persistent::clients_in_turns;
use super::persistent::episode::run_until;
use super::{Budget, refused};
pub use crate::mirror::wide::leaf_buffering::LABELS;

/// The actions of a tree without buffers and log.
pub const UNBUFFERED: [&str; 22] = [
    "CallGet",
    "ReadKey",
    "AnswerGet",
    "CallWrite",
    "Latch",
    "StoreRecords",
    "StoreHeader",
    "FenceHeader",
    "StoreNewLeaf",
    "StoreLink",
    "FenceLink",
    "Finish",
    "LatchLeft",
    "MoveRecords",
    "StoreMerged",
    "FenceMerged",
    "Crash",
    "Settle",
    "Kill",
    "WriteBack",
    "Restart",
    "DropLogs",
];

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
/// is refused. Buffer nodes have `batch` slots, or as many as each episode chooses; none
/// is the tree without buffers.
#[must_use]
pub fn run_mixed(batch: Option<u8>, seed: u64, budget: Budget) -> Report {
    Report::of(seed, budget, |n, seed, until| {
        let any = Episode::new(clients_in_turns(n), seed);
        let episode = Episode {
            batch: batch.unwrap_or(any.batch),
            ..any
        };
        (episode, run_until(&episode, until))
    })
}
