//! The situations in which the steps of the small models begin, and those in which the engine was
//! heard to take them. See [`super::super::situations`].

use std::time::Duration;

use treering_engine::Result;

use super::episode::record;
use super::judge::Refusal;
use super::setup::setups;
use crate::conformance::Budget;
use crate::conformance::led::cover_with;
use crate::conformance::situations;
use crate::mirror::leaf_layout::LeafLayout;

/// The situations that recordings have covered: the store and seed of each.
pub type Cover = situations::Cover<(usize, u64), Refusal>;

/// The models that together have all steps: conversions and splits, options that change, fences
/// that take bytes, merges, several general layouts, and semi-dense pages.
pub const MODELS: [&str; 7] = [
    "smoke",
    "mutation",
    "options",
    "fences",
    "merges-crash",
    "general-layouts",
    "semi",
];

/// The reason why the engine does not take a step in a situation, if it is not merely chance.
#[must_use]
pub fn why_not(label: &str, situation: &str) -> Option<&'static str> {
    let has = |part: &str| situation.contains(part);
    match label {
        "ChangeLeaf" if has("deletes nothing") => Some("a delete of an absent key is not logged"),
        "CommitLog" | "Checkpoint" if has("split") && !has("put") => {
            Some("with one thread, the put that needs a split follows at once")
        }
        "RedoRecord" if has("relayout to dense") && has("has it") => {
            Some("with one thread, the put that needs a conversion follows at once")
        }
        "WritePage" if has("redo") => Some("the cache has room for all pages that are redone"),
        _ => None,
    }
}

/// Records episodes until the time is up. The mirrors are those of [`MODELS`].
///
/// # Errors
/// The engine's own, while a store is built or a device is read.
pub fn run(mirrors: &[LeafLayout], seed: u64, limit: Duration) -> Result<Cover> {
    let mut cover = Cover::default();
    for mirror in mirrors {
        cover.add(mirror, |before, action, after| {
            mirror.situations(before, *action, after)
        });
    }
    let setups = setups()?;
    cover_with(
        &mut cover,
        (seed, Budget::of_time(limit)),
        setups.len(),
        |which, seed| record(&setups[which], seed),
    )?;
    Ok(cover)
}
