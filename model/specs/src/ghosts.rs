//! Ghost variables: what a protocol keeps only so that it can be judged.
//!
//! A *history variable* remembers what has happened, for an invariant or for the mapping to the
//! contract. It must not decide what the protocol does, or what was checked is another protocol.
//! That is checked here by projection: two states that differ in ghosts alone must have the same
//! steps, apart from ghosts. Then the protocol without them has exactly the projected graph.
//!
//! The modules mark ghosts by comments, "For the observer" or "For checking" above them, or "ghost"
//! beside one. What stands under "For the bounds" counts, so that models end, and decides that alone;
//! it is not projected away. Steps that change nothing else are stuttering, and are left out on both sides.
//!
//! Takes O(states + edges) time, and a state and 24 bytes for each projected state.

use std::collections::BTreeSet;
use std::collections::VecDeque;

use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;

use crate::graph::hash;
use crate::value::state_text;
use crate::{Mirror, Value};

/// A state graph without its ghosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Projection {
    /// Distinct states with ghosts.
    pub states: u64,
    /// Distinct states without.
    pub projected: u64,
    /// A step that a ghost decides. `None` if they decide nothing.
    pub decided: Option<Decided>,
}

/// A step that one of two states can take and the other cannot, although they differ in ghosts
/// alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Decided {
    /// The action.
    pub action: String,
    /// The ghosts of the state that takes the step, as TLA+.
    pub takes: String,
    /// The ghosts of the state that does not.
    pub refuses: String,
    /// The rest of both states.
    pub state: String,
}

/// Steps by action and by what they lead to without ghosts.
type Steps = BTreeSet<(&'static str, u128)>;

/// Projects the state graph of a mirror.
pub fn project<M: Mirror>(model: &M, ghosts: &BTreeSet<String>) -> Projection {
    let mut seen: FxHashSet<M::State> = FxHashSet::default();
    let mut pending: VecDeque<M::State> = VecDeque::new();
    let mut firsts: FxHashMap<u128, M::State> = FxHashMap::default();
    let mut decided = None;
    for state in model.init_states() {
        if seen.insert(state.clone()) {
            pending.push_back(state);
        }
    }
    while let Some(state) = pending.pop_front() {
        let at = without(model, &state, ghosts);
        let steps = steps(model, &state, ghosts, at, &mut |next| {
            if seen.insert(next.clone()) {
                pending.push_back(next);
            }
        });
        let first = firsts.entry(at).or_insert_with(|| state.clone());
        if decided.is_none() && *first != state {
            let others = self::steps(model, first, ghosts, at, &mut |_| {});
            decided = difference(model, ghosts, (&state, &steps), (first, &others));
        }
    }
    Projection {
        states: seen.len() as u64,
        projected: firsts.len() as u64,
        decided,
    }
}

/// The hash of a state without ghosts.
fn without<M: Mirror>(model: &M, state: &M::State, ghosts: &BTreeSet<String>) -> u128 {
    hash(&split(model, state, ghosts).1)
}

type Variables = Vec<(&'static str, Value)>;

/// The ghosts of a state, and its other variables.
fn split<M: Mirror>(
    model: &M,
    state: &M::State,
    ghosts: &BTreeSet<String>,
) -> (Variables, Variables) {
    let variables = model.variables(state).into_iter();
    variables.partition(|(name, _)| ghosts.contains(*name))
}

fn steps<M: Mirror>(
    model: &M,
    state: &M::State,
    ghosts: &BTreeSet<String>,
    at: u128,
    visit: &mut dyn FnMut(M::State),
) -> Steps {
    let mut actions = Vec::new();
    model.actions(state, &mut actions);
    let mut steps = Steps::new();
    for action in actions {
        let label = M::label(&action);
        let next = model.next_state(state, action);
        let Some(next) = next.filter(|next| model.within_boundary(next)) else {
            continue;
        };
        let to = without(model, &next, ghosts);
        if to != at {
            steps.insert((label, to));
        }
        visit(next);
    }
    steps
}

fn difference<M: Mirror>(
    model: &M,
    ghosts: &BTreeSet<String>,
    one: (&M::State, &Steps),
    other: (&M::State, &Steps),
) -> Option<Decided> {
    let told = |takes: (&M::State, &Steps), refuses: (&M::State, &Steps)| {
        let (action, _) = takes.1.difference(refuses.1).next()?;
        let (of_takes, rest) = split(model, takes.0, ghosts);
        let (of_refuses, _) = split(model, refuses.0, ghosts);
        Some(Decided {
            action: (*action).to_owned(),
            takes: state_text(&of_takes),
            refuses: state_text(&of_refuses),
            state: state_text(&rest),
        })
    };
    told(one, other).or_else(|| told(other, one))
}
