//! Conformance of the engine's Bf-tree to `MiniPage`.
//!
//! In an episode ([`episode`]) clients, one thread each, get, put, delete and scan a few keys of a
//! real [`treering_engine::Store`] of kind `bf`. Leaves have nine records, mini-pages one, two or
//! four, and the ring 8 to 24 KiB; the larger rings have room for mirrors of full leaves. The
//! tree's events, and the calls and answers of clients, are recorded in one order and replayed on
//! the mirror ([`judge`], `pages`). That mirror has the source whose graph equals TLC's, with room
//! for a real engine ([`crate::mirror::wide`]) and without the model's bounds on clients. The first
//! event for which the mirror has no step, or another outcome, is refused, and reported with the
//! state before it. Events carry mini-pages and leaves, which are compared with the mirror's record
//! by record. All invariants are checked after each event.
//!
//! # How the spec maps to the engine
//!
//! [`treering_engine::mini::events`] has a table of the engine's events. `CallGet` .. `CallScan`
//! and `Return` come from the clients. All records have one length, so that a page has room for a
//! fixed number of them (`scale`).
//!
//! The spec has a single inner node with one version, and a change of it sends every client on its
//! way back to the start. The engine's descent checks only the nodes on its path, and the whole
//! path again once it has the page. So when the engine arrives, the spec's client may first have to
//! `Restart`. A `Restarted` of the engine must be a `Restart` that the spec allows.
//!
//! # Detours
//!
//! The engine does four things in one step that the spec cannot do in one. The spec can do each in
//! several steps if an additional client, which nobody else sees, takes some of them. The judge
//! plays that client. Its steps are counted as `(detour)`, never as steps that the engine took.
//!
//! Each item names what the engine does, then what the spec does:
//!
//! - a new record counts as used: it is read once more
//! - a checkpoint, or a copy to the tail that finds no room, merges a mini-page and keeps it:
//!   `EvictMini`, and all its records are read again: `(MergeInPlace)`
//! - a merge for room keeps hot records that were dirty, and no cold record is dirty: the same,
//!   then `CopyToTail`
//! - a leaf is split when a change finds no room in it, before the mini-page has taken the change
//!   (see [`treering_engine::mini`]: redo needs it so): so many of the leaf's records are read that
//!   the mini-page is full; the writer makes it a mirror and evicts that, which finds the leaf
//!   full: `MergeToMirror`, `EvictMirror`
//!
//! # Differences of granularity
//!
//! These are accepted by rule and counted:
//!
//! - `(ScanLeavesBits)`: the spec's scan sets the reference bits of what it reads, and the engine's
//!   does not. These bits only decide what stays in memory.
//! - `(Mirrored)`: a mini-page becomes a mirror of its leaf under its page's lock. The spec's
//!   mirror has room for a whole leaf, the engine's for a number of bytes, so `Grown` is not a step
//!   then. The spec merges the mirror at once (`GrowToMirror`, `MergeToMirror`), and the engine may
//!   merge it later.
//! - `(MergedMirror)`: a mirror is merged and remains a mirror. In the spec it is evicted
//!   (`EvictMirror`).
//! - `(MirrorKept)`: a mirror that a scan has used is copied to the tail as a whole. The engine's
//!   reference bits of a mirror belong to slots, not to records, so the judge adopts them.
//! - `(Spared)`: a mini-page goes to the tail with changes that nobody has used since it was last
//!   there. In the spec, the additional client reads their keys first, which makes them used. So a
//!   policy that spares mini-pages needs no step of its own.
//! - `(ScanDown)`: the spec's scans go up. For a scan that goes down, the judge begins an upward
//!   scan at the first key of each page. It keeps the rows below the key that the scan continues
//!   from, and then continues below the page.
//! - `(EarlyRestart)`: a client restarts because of a change of the inner nodes that is reported
//!   just afterwards.
//! - `(LoggedAgain)`: a checkpoint logs the dirty records of a mini-page again, which stays as it
//!   is. The spec has no log; to that of `WalRecovery` this is a put of what is there already.
//! - `(AbsentAlready)`: the spec's delete writes a tombstone over a phantom or tombstone, and the
//!   engine's leaves that record as it is.
//!
//! # What the engine never does
//!
//! - `MergeToMirror`, `EvictMirror` and `GrowToMirror` as such: see above.
//! - `FindLeafFull`: no merge finds its leaf full, since its records were admitted earlier.
//! - `GiveUpJoin`: the engine decides whether to join two leaves when both are locked, so it never
//!   gives up a join.

pub mod cover;
pub mod episode;
pub mod judge;
mod pages;
mod scale;
mod tla;

use episode::run_until;
pub use episode::{Episode, run_episode};
pub use judge::{Heard, Judge, Refusal};

use treering_engine::PageStoreKind;

use super::{Budget, refused};

/// The result of episodes.
pub type Report = refused::Report<Episode, Refusal>;

/// The actions of the spec that a single client takes.
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

/// The actions that take two clients.
pub const TOGETHER: [&str; 1] = ["Restart"];

/// Runs episodes of `clients` threads until this many events are accepted, or one is refused.
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
