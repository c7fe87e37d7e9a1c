//! Event conformance of mini-pages: what the engine's Bf-Tree does is what `MiniPage` allows.
//!
//! Episodes ([`episode`]) let clients, a thread each, get, put, delete and scan a few keys of a
//! real [`treering_engine::Store`] of kind `bf`: leaves of nine records, mini-pages of one, two or
//! four, a ring of 8 to 24 KiB, of which the larger ones have room for mirrors of leaves that are
//! full. The tree's events and what clients ask and hear are recorded in one order and replayed on
//! the mirror ([`judge`], `pages`): the source that is equal to TLC's graph, with room for an
//! engine ([`crate::mirror::wide`]) and without the model's bounds on who calls what. The first
//! event for which the mirror has no step, or another outcome, is refused, and told with the state
//! before it. Events carry mini-pages and leaves, which are compared with the mirror's record by
//! record. All invariants are looked at after every event.
//!
//! # What stands for what
//!
//! The engine's own events: see the table in [`treering_engine::mini::events`]. `CallGet` ..
//! `CallScan` and `Return` are heard from the clients. Records are of one length, so that a page of
//! so many bytes has room for so many of them (`scale`).
//!
//! The spec's inner node is one for all, with one version, and its change sends everybody back who
//! is on the way; the engine's descent looks at the nodes on its path, and at the whole path again
//! once it has the page. So where the engine arrives the spec's client may first have to `Restart`.
//! `Restarted`, where the engine had to, must be a `Restart` that is due.
//!
//! # By way of others
//!
//! Four things the engine does in one step for which the spec has none; but it has several steps
//! that come to the same, if a client whom nobody else knows of takes some of them. The judge plays
//! that client. Its steps count as `(detour)`, never as steps taken.
//!
//! | the engine | the spec |
//! |---|---|
//! | a new record counts as used | it is read once more |
//! | a checkpoint, or a copy to the tail for which there is no room, merges a mini-page and keeps it | `EvictMini`, and all its records are read again: `(MergeInPlace)` |
//! | a merge for room keeps hot records that were dirty, with no cold one dirty | the same, then `CopyToTail` |
//! | a leaf is split when a change finds no room in it, before the mini-page has taken it (see [`treering_engine::mini`]: redo needs it so) | enough of its records are read that the mini-page is full; the writer makes it a mirror and evicts that, which finds the leaf full: `MergeToMirror`, `EvictMirror` |
//!
//! # Differences of grain
//!
//! Accepted by rule and counted:
//!
//! - `(ScanLeavesBits)`: the spec's scan sets the reference bits of what it reads, the engine's
//!   does not. They decide what stays in memory, nothing else.
//! - `(Mirrored)`: a mini-page becomes a mirror of its leaf under its page's lock, of which the
//!   spec's mirror has room for a whole leaf and the engine's for so many bytes (`Grown` is no step
//!   then); the spec merges it at once (`GrowToMirror`, `MergeToMirror`), the engine may leave that
//!   for later.
//! - `(MergedMirror)`: a mirror is merged and stays one; in the spec it is evicted (`EvictMirror`).
//! - `(MirrorKept)`: a mirror that a scan has used is copied to the tail as a whole. Reference bits
//!   of a mirror belong to places, not to records: they are taken over from the engine.
//! - `(ScanDown)`: the spec's scans go up. One that goes down is, at each page, one that begins at
//!   the page's first key; what is below the key that it goes on from is kept, and it goes on below
//!   the page.
//! - `(EarlyRestart)`: a client begins again for a change of the inner nodes that is told of just
//!   afterwards.
//! - `(AbsentAlready)`: the spec's delete writes a tombstone over a phantom or tombstone, the
//!   engine's leaves it.
//!
//! # What the engine never does
//!
//! - `MergeToMirror`, `EvictMirror`, `GrowToMirror`, as they are: see above.
//! - `FindLeafFull`: no merge finds its leaf full, for what it brings was admitted before.
//! - `GiveUpJoin`: whether two leaves are joined is decided when both are locked, so there is
//!   nothing to give up.

pub mod cover;
pub mod episode;
pub mod judge;
mod pages;
mod scale;

use episode::run_until;
pub use episode::{Episode, run_episode};
pub use judge::{Heard, Judge, Refusal};

use treering_engine::PageStoreKind;

use super::{Budget, refused};

/// What came of some episodes.
pub type Report = refused::Report<Episode, Refusal>;

/// Actions of the spec that one client alone takes.
pub const ALONE: [&str; 27] = [
    "CallGet",
    "CallPut",
    "CallDelete",
    "CallScan",
    "Return",
    "ReadVersion",
    "ReadChild",
    "LockPage",
    "ReadMini",
    "ReadLeaf",
    "Decline",
    "Upgrade",
    "Promote",
    "WriteRecord",
    "Grow",
    "ScanPage",
    "LockInner",
    "AllocateRight",
    "ShortenLeft",
    "InsertSeparator",
    "LockLeft",
    "LockRight",
    "LockInnerToJoin",
    "MoveRecords",
    "RemoveSeparator",
    "EvictMini",
    "CopyToTail",
];

/// Those that take two.
pub const TOGETHER: [&str; 1] = ["Restart"];

/// Runs episodes of `clients` threads until so many events are accepted or one is refused.
#[must_use]
pub fn run(clients: u8, seed: u64, events: u64) -> Report {
    Report::of(seed, Budget::Events(events), |_, seed, until| {
        let episode = Episode::new(clients, seed);
        (episode, run_until(&episode, until))
    })
}

/// Runs episodes of one, two, four or eight threads, with leaves in this store, until the budget is
/// used up or an event is refused.
#[must_use]
pub fn run_mixed(store: PageStoreKind, seed: u64, budget: Budget) -> Report {
    Report::of(seed, budget, |n, seed, until| {
        let episode = Episode {
            store,
            ..Episode::new(refused::in_turns(n), seed)
        };
        (episode, run_until(&episode, until))
    })
}
