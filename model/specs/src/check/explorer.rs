//! Stateright Explorer, with states printed as TLA+.
//!
//! Explorer prints states with `Debug`, and a mirror's state is packed for speed. So Explorer gets
//! one model, [`Shown`], whose states print themselves as TLA+. It hides the types of the mirror
//! behind [`Steps`]: Explorer is a web server, and compiling one for each mirror takes minutes.

use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::SocketAddr;
use std::sync::Arc;

use stateright::{Expectation, Model, Property};

use crate::{Mirror, Value};

/// The mirror that Explorer shows.
struct Shown(Box<dyn Steps>);

/// A state that prints itself as TLA+.
#[derive(Clone)]
struct ShownState {
    /// The mirror's own state.
    packed: Arc<dyn Any + Send + Sync>,
    variables: Arc<[(&'static str, Value)]>,
}

impl PartialEq for ShownState {
    fn eq(&self, other: &Self) -> bool {
        self.variables == other.variables
    }
}

impl Hash for ShownState {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.variables.hash(hasher);
    }
}

impl fmt::Debug for ShownState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in self.variables.iter() {
            writeln!(f, "{name} = {value}")?;
        }
        Ok(())
    }
}

/// An action: its place among those that are possible in a state, and its text.
#[derive(Clone, PartialEq)]
struct ShownAction {
    at: usize,
    text: String,
}

impl fmt::Debug for ShownAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// What Explorer asks of a mirror, whatever the type of its states.
trait Steps: Send + Sync {
    fn initial(&self) -> Vec<ShownState>;
    fn actions(&self, state: &ShownState) -> Vec<ShownAction>;
    fn next(&self, state: &ShownState, action: &ShownAction) -> Option<ShownState>;
    fn properties(&self) -> Vec<&'static str>;
    /// Whether the property at this place of the list holds in the state.
    fn holds(&self, state: &ShownState, property: usize) -> bool;
    fn within(&self, state: &ShownState) -> bool;
}

struct Typed<M: Mirror> {
    mirror: M,
    properties: Vec<Property<M>>,
}

impl<M: Mirror> Typed<M> {
    fn show(&self, state: M::State) -> ShownState {
        ShownState {
            variables: self.mirror.variables(&state).into(),
            packed: Arc::new(state),
        }
    }

    fn possible(&self, state: &M::State) -> Vec<M::Action> {
        let mut actions = Vec::new();
        self.mirror.actions(state, &mut actions);
        actions
    }
}

fn packed<M: Mirror>(state: &ShownState) -> &M::State {
    // invariant: Explorer passes only states that `Typed::show` made.
    (state.packed.downcast_ref()).expect("the state of another mirror")
}

impl<M: Mirror> Steps for Typed<M> {
    fn initial(&self) -> Vec<ShownState> {
        let mut shown = Vec::new();
        for state in self.mirror.init_states() {
            shown.push(self.show(state));
        }
        shown
    }

    fn actions(&self, state: &ShownState) -> Vec<ShownAction> {
        let mut shown = Vec::new();
        for (at, action) in self.possible(packed::<M>(state)).iter().enumerate() {
            let text = self.mirror.format_action(action);
            shown.push(ShownAction { at, text });
        }
        shown
    }

    fn next(&self, state: &ShownState, action: &ShownAction) -> Option<ShownState> {
        let state = packed::<M>(state);
        let action = self.possible(state).into_iter().nth(action.at)?;
        let next = self.mirror.next_state(state, action)?;
        Some(self.show(next))
    }

    fn properties(&self) -> Vec<&'static str> {
        self.properties.iter().map(|p| p.name).collect()
    }

    fn holds(&self, state: &ShownState, property: usize) -> bool {
        let property = self.properties.get(property);
        property.is_none_or(|p| (p.condition)(&self.mirror, packed::<M>(state)))
    }

    fn within(&self, state: &ShownState) -> bool {
        self.mirror.within_boundary(packed::<M>(state))
    }
}

/// The condition of the `I`-th property. Conditions are plain functions, so they cannot capture the
/// index.
fn condition<const I: usize>(shown: &Shown, state: &ShownState) -> bool {
    shown.0.holds(state, I)
}

macro_rules! conditions {
    ($($i:literal)*) => { [$(condition::<$i>),*] };
}

impl Model for Shown {
    type State = ShownState;
    type Action = ShownAction;

    fn init_states(&self) -> Vec<ShownState> {
        self.0.initial()
    }

    fn actions(&self, state: &ShownState, actions: &mut Vec<ShownAction>) {
        actions.extend(self.0.actions(state));
    }

    fn next_state(&self, state: &ShownState, action: ShownAction) -> Option<ShownState> {
        self.0.next(state, &action)
    }

    /// The variables that a step changes.
    fn format_step(&self, last: &ShownState, action: ShownAction) -> Option<String> {
        let next = self.0.next(last, &action)?;
        let changed = next.variables.iter();
        let lines = changed
            .filter(|pair| !last.variables.contains(pair))
            .map(|(name, value)| format!("{name} = {value}\n"));
        Some(lines.collect())
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let conditions: [fn(&Self, &ShownState) -> bool; 32] = conditions![
            0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
        ];
        let named = self.0.properties().into_iter().zip(conditions);
        named
            .map(|(name, condition)| Property {
                expectation: Expectation::Always,
                name,
                condition,
            })
            .collect()
    }

    fn within_boundary(&self, state: &ShownState) -> bool {
        self.0.within(state)
    }
}

/// Serves Explorer for a mirror. Returns only when the process ends.
pub(super) fn serve<M: Mirror>(mirror: &M, address: SocketAddr) {
    let steps = Typed {
        mirror: mirror.clone(),
        properties: mirror.properties(),
    };
    Shown(Box::new(steps)).checker().serve(address);
}
