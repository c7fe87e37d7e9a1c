//! Comparing graphs finds what comparing counts cannot: a mirror with the same states and fewer
//! edges.

use std::path::Path;

use stateright::{Model, Property};
use treering_specs::graph::{Difference, explore, missing};
use treering_specs::mirror::durable_map::{Action, DurableMap, State};
use treering_specs::{Config, ConfigError, Mirror, Value};

/// The contract, except that `Harden` makes one write durable at a time. It reaches the same states
/// in more steps.
#[derive(Clone)]
struct OneAtATime(DurableMap);

impl Model for OneAtATime {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        self.0.init_states()
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        self.0.actions(state, actions);
        actions.retain(|action| !matches!(action, Action::Harden(2..)));
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        self.0.next_state(state, action)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        Vec::new()
    }

    fn within_boundary(&self, state: &State) -> bool {
        self.0.within_boundary(state)
    }
}

impl Mirror for OneAtATime {
    const SPEC: &'static str = DurableMap::SPEC;

    fn from_config(config: &Config) -> Result<Self, ConfigError> {
        DurableMap::from_config(config).map(Self)
    }

    fn label(action: &Action) -> &'static str {
        DurableMap::label(action)
    }

    fn variables(&self, state: &State) -> Vec<(&'static str, Value)> {
        self.0.variables(state)
    }
}

#[test]
fn a_mirror_with_equal_states_but_missing_edges_is_detected() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../specs/contract/MCDurableMap_smoke.cfg");
    let config = Config::read(&path).unwrap();
    let right = explore(&DurableMap::from_config(&config).unwrap());
    let planted = explore(&OneAtATime::from_config(&config).unwrap());
    assert_eq!(
        right.states, planted.states,
        "the bug must not change the states"
    );
    assert!(right.edges.len() > planted.edges.len());
    assert_eq!(missing(&planted, &right), None);
    let Some(Difference::Edge(from, label, to)) = missing(&right, &planted) else {
        panic!("the missing edges were not found");
    };
    assert_eq!(label, "Harden");
    assert_ne!(from, to);
}
