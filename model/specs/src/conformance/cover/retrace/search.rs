//! The shortest counterexample whose steps the engine can take, and what follows until something is
//! lost.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use stateright::{Expectation, Model as _};

use super::super::graph::cannot;
use super::Way;
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
    // How each state was reached first.
    let mut came: FxHashMap<State, Option<(State, Action)>> = FxHashMap::default();
    let mut pending = VecDeque::from([first]);
    came.insert(first, None);
    let mut actions = Vec::new();
    while let Some(at) = pending.pop_front() {
        mirror.actions(&at, &mut actions);
        for action in actions.drain(..) {
            let Some(next) = mirror.next_state(&at, action).filter(|_| may(&at, action)) else {
                continue;
            };
            if came.contains_key(&next) {
                continue;
            }
            came.insert(next, Some((at, action)));
            if wanted(&next) {
                let mut way = Way::new();
                let mut back = next;
                while let Some(Some((from, action))) = came.get(&back) {
                    way.push((*from, *action));
                    back = *from;
                }
                way.reverse();
                return Some((way, next));
            }
            pending.push_back(next);
        }
    }
    None
}
