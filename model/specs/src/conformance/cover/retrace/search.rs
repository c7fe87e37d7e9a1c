//! The shortest counterexample whose steps the engine can take, and what follows until something is
//! lost.

use stateright::{Expectation, Model as _};

use super::super::graph::cannot;
use super::Way;
use crate::conformance::shortest::shortest as shortest_way;
use crate::mirror::wal_recovery::{Action, State, WalRecovery};

/// A counterexample.
pub(super) struct Found {
    /// The property that is violated.
    pub(super) property: &'static str,
    /// The number of steps until it is violated.
    pub(super) violated_at: usize,
    /// The steps.
    pub(super) way: Way,
}

/// The shortest counterexample of a mirror, continued to a loss if that is possible. Steps that the
/// engine cannot take separately are avoided if there is another way.
pub(super) fn shortest(mirror: &WalRecovery) -> Option<Found> {
    let properties: Vec<_> = (mirror.properties().into_iter())
        .filter(|p| p.expectation == Expectation::Always)
        .collect();
    let broken = |state: &State| {
        let mut all = properties.iter();
        all.find(|p| !(p.condition)(mirror, state)).map(|p| p.name)
    };
    let first = mirror.init_states().into_iter().next()?;
    let is_broken = |state: &State| broken(state).is_some();
    let able = |state: &State, action| cannot(mirror, state, action).is_none();
    let anyway = |_: &State, _| true;
    let (mut way, violating) = search(mirror, first, able, is_broken)
        .or_else(|| search(mirror, first, anyway, is_broken))?;
    let property = broken(&violating)?;
    let violated_at = way.len();
    if !violating.is_broken()
        && let Some((more, _)) = search(mirror, violating, able, State::is_broken)
    {
        way.extend(more);
    }
    Some(Found {
        property,
        violated_at,
        way,
    })
}

/// The shortest way from `first` to a wanted state, along steps that `may` be taken.
fn search(
    mirror: &WalRecovery,
    first: State,
    may: impl Fn(&State, Action) -> bool,
    wanted: impl Fn(&State) -> bool,
) -> Option<(Way, State)> {
    let mut actions = Vec::new();
    let next = |at: &State, into: &mut Vec<(Action, State)>| {
        mirror.actions(at, &mut actions);
        let able = actions.drain(..).filter(|action| may(at, *action));
        into.extend(able.filter_map(|action| Some((action, mirror.next_state(at, action)?))));
    };
    shortest_way(first, next, wanted)
}
