//! Mode `events` on stores whose blocks are judged: shadowed pages, the redo log, the tree with the
//! snapshot of its index, and the layouts of its leaves.

use std::cell::OnceCell;
use std::fmt::Debug;
use std::time::Instant;

use treering_engine::Result as EngineResult;
use treering_oracle::Engine;
use treering_specs::conformance::refused::{Refusal, Report};
use treering_specs::conformance::{Budget, Variant, layout, redo, shadow, snapshot};

use super::judged::Judged;

/// The stores that episodes begin with, once they are built.
#[derive(Default)]
pub(super) struct Stores {
    shadows: OnceCell<Vec<shadow::Setup>>,
    logs: OnceCell<Vec<redo::Setup>>,
    tree: OnceCell<snapshot::Setup>,
    leaves: OnceCell<Vec<layout::Setup>>,
}

/// Returns the kept value, building it first if necessary.
pub(super) fn kept<T>(
    cell: &OnceCell<T>,
    make: impl FnOnce() -> EngineResult<T>,
) -> EngineResult<&T> {
    if let Some(made) = cell.get() {
        return Ok(made);
    }
    let made = make()?;
    Ok(cell.get_or_init(|| made))
}

/// The variant of the page store, if its pages are shadowed.
pub(super) fn shadows(engine: &dyn Engine) -> Option<shadow::Variant> {
    match engine.name().as_str() {
        "btree:shadow" => Some(shadow::Variant::Plain),
        "bminus" => Some(shadow::Variant::BMinus),
        _ => None,
    }
}

fn judged<H: Debug, A: Debug>(
    part: &'static str,
    actions: Vec<&'static str>,
    report: Report<(usize, u64), Refusal<H, A>>,
) -> Judged {
    let what = |(store, seed)| format!("{part}, the episode of seed {seed} on store {store}");
    Judged::new(part, actions, report, what)
}

/// Runs episodes of shadowed pages.
///
/// # Errors
/// The engine's own. None is expected.
pub(super) fn of_pages(
    variant: shadow::Variant,
    (seed, budget): (u64, Budget),
    stores: &Stores,
) -> EngineResult<Judged> {
    let began = Instant::now();
    let setups = kept(&stores.shadows, || shadow::setups(variant))?;
    let report = shadow::run_on(setups, seed, budget.less(began.elapsed()))?;
    Ok(judged("pages", variant.labels(), report))
}

/// Runs episodes of the redo log: `bminus` has a sparse one, on a drive that tears blocks; others
/// choose a form at each opening.
///
/// # Errors
/// As [`of_pages`].
pub(super) fn of_log(
    variant: shadow::Variant,
    (seed, budget): (u64, Budget),
    stores: &Stores,
) -> EngineResult<Judged> {
    let began = Instant::now();
    let variant = match variant {
        shadow::Variant::BMinus => redo::Variant::Torn,
        shadow::Variant::Plain => redo::Variant::Mixed,
    };
    let setups = kept(&stores.logs, || redo::setups(variant))?;
    let report = redo::run_on(setups, seed, budget.less(began.elapsed()))?;
    Ok(judged("redo log", redo::taken(), report))
}

/// Runs episodes of the tree and of the snapshot of its index, if the store has its pages in place:
/// in the spec, page *n* is in slot *n*.
///
/// # Errors
/// As [`of_pages`].
pub(super) fn of_tree(
    variant: Variant,
    (seed, budget): (u64, Budget),
    stores: &Stores,
) -> EngineResult<Option<Judged>> {
    if variant != Variant::InPlace {
        return Ok(None);
    }
    let began = Instant::now();
    let setup = kept(&stores.tree, snapshot::Setup::new)?;
    let report = snapshot::run_on(setup, seed, budget.less(began.elapsed()))?;
    let part = "index snapshot";
    let what = |(seed, losses)| match losses {
        None => format!("{part}, the episode of seed {seed}"),
        Some(n) => format!("{part}, the episode of seed {seed}, which loses a write in {n}"),
    };
    Ok(Some(Judged::new(part, snapshot::taken(), report, what)))
}

/// Runs episodes of leaves that change their layout, if the store has its pages in place: what a
/// page is on the device is read from its place.
///
/// # Errors
/// As [`of_pages`].
pub(super) fn of_leaves(
    variant: Variant,
    (seed, budget): (u64, Budget),
    stores: &Stores,
) -> EngineResult<Option<Judged>> {
    if variant != Variant::InPlace {
        return Ok(None);
    }
    let began = Instant::now();
    let setups = kept(&stores.leaves, layout::setups)?;
    let report = layout::run_on(setups, seed, budget.less(began.elapsed()))?;
    // A dense leaf is merged in one episode of a hundred.
    let mut actions = layout::taken();
    actions.retain(|action| *action != "Prepare");
    Ok(Some(judged("leaf layouts", actions, report)))
}
