//! Stateright Explorer, with states printed as TLA+.
//!
//! Explorer prints states with `Debug`, and a mirror's state is packed for speed. So Explorer gets
//! a wrapped mirror whose states print themselves as TLA+.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::SocketAddr;
use std::sync::Arc;

use stateright::{Expectation, Model, Property};

use crate::Mirror;

/// The mirror that Explorer shows.
struct Shown<M: Mirror>(Arc<M>, Vec<Property<M>>);

/// A state that prints itself as TLA+.
struct ShownState<M: Mirror> {
    mirror: Arc<M>,
    state: M::State,
}

impl<M: Mirror> Clone for ShownState<M> {
    fn clone(&self) -> Self {
        Self {
            mirror: Arc::clone(&self.mirror),
            state: self.state.clone(),
        }
    }
}

impl<M: Mirror> PartialEq for ShownState<M> {
    fn eq(&self, other: &Self) -> bool {
        self.state == other.state
    }
}

impl<M: Mirror> Hash for ShownState<M> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.state.hash(hasher);
    }
}

impl<M: Mirror> fmt::Debug for ShownState<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in self.mirror.variables(&self.state) {
            writeln!(f, "{name} = {value}")?;
        }
        Ok(())
    }
}

/// The condition of the `I`-th property. Conditions are plain functions, so they cannot capture the
/// index.
fn condition<M: Mirror, const I: usize>(shown: &Shown<M>, state: &ShownState<M>) -> bool {
    (shown.1.get(I)).is_none_or(|property| (property.condition)(&shown.0, &state.state))
}

macro_rules! conditions {
    ($($i:literal)*) => { [$(condition::<M, $i>),*] };
}

impl<M: Mirror> Model for Shown<M> {
    type State = ShownState<M>;
    type Action = M::Action;

    fn init_states(&self) -> Vec<Self::State> {
        let states = self.0.init_states().into_iter();
        states.map(|state| self.show(state)).collect()
    }

    fn actions(&self, state: &Self::State, actions: &mut Vec<M::Action>) {
        self.0.actions(&state.state, actions);
    }

    fn next_state(&self, state: &Self::State, action: M::Action) -> Option<Self::State> {
        let next = self.0.next_state(&state.state, action)?;
        Some(self.show(next))
    }

    /// The variables that a step changes.
    fn format_step(&self, last: &Self::State, action: M::Action) -> Option<String> {
        let next = self.0.next_state(&last.state, action)?;
        let before = self.0.variables(&last.state);
        let changed = self.0.variables(&next).into_iter();
        let lines = changed
            .filter(|pair| !before.contains(pair))
            .map(|(name, value)| format!("{name} = {value}\n"));
        Some(lines.collect())
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let conditions: [fn(&Self, &Self::State) -> bool; 32] = conditions![
            0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
        ];
        let named = self.1.iter().zip(conditions);
        named
            .map(|(property, condition)| Property {
                expectation: Expectation::Always,
                name: property.name,
                condition,
            })
            .collect()
    }

    fn within_boundary(&self, state: &Self::State) -> bool {
        self.0.within_boundary(&state.state)
    }
}

impl<M: Mirror> Shown<M> {
    fn show(&self, state: M::State) -> ShownState<M> {
        ShownState {
            mirror: Arc::clone(&self.0),
            state,
        }
    }
}

/// Serves Explorer for a mirror. Returns only when the process ends.
pub(super) fn serve<M: Mirror>(mirror: &M, address: SocketAddr) {
    let properties = mirror.properties();
    let shown = Shown(Arc::new(mirror.clone()), properties);
    shown.checker().serve(address);
}
