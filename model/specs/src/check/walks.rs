//! Random walks over a mirror, for models whose states are too many to visit all.
//!
//! Each walk begins in an initial state and takes enabled actions, each with the same chance, until
//! it has [`LONGEST`] states or no action is left. The invariants are checked in each state. The
//! seed of a walk is its number, so that two runs walk alike.

use rand::rngs::SmallRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};

use super::run::LONGEST;
use crate::Mirror;
use crate::graph::{self, Counterexample};

/// What some walks have seen.
#[derive(Clone, Debug, PartialEq)]
pub struct Walked {
    /// States that were visited, those that were visited again included.
    pub states: u64,
    /// The walk to a violation. It is not a shortest one.
    pub counterexample: Option<Counterexample>,
}

/// Walks `walks` times, or until an invariant does not hold. Takes time in proportion to the states
/// that are visited, and memory for one walk.
pub(super) fn walk<M: Mirror>(model: &M, walks: u64) -> Walked {
    let initial = model.init_states();
    let mut states = 0;
    let (mut actions, mut path) = (Vec::new(), Vec::new());
    for number in 0..walks {
        let mut random = SmallRng::seed_from_u64(number);
        let Some(mut state) = initial.choose(&mut random).cloned() else {
            break;
        };
        path.clear();
        path.push((None, state.clone()));
        loop {
            states += 1;
            if let Some(property) = model.broken(&state) {
                return Walked {
                    states,
                    counterexample: Some(Counterexample {
                        property: property.to_owned(),
                        steps: (path.iter())
                            .map(|(action, state)| graph::step(model, *action, state))
                            .collect(),
                    }),
                };
            }
            actions.clear();
            model.actions(&state, &mut actions);
            if actions.is_empty() || path.len() >= LONGEST {
                break;
            }
            let action = actions.swap_remove(random.random_range(0..actions.len()));
            let label = M::label(&action);
            let Some(next) = model.next_state(&state, action) else {
                break;
            };
            state = next;
            path.push((Some(label), state.clone()));
        }
    }
    Walked {
        states,
        counterexample: None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::walk;
    use crate::mirror::wal_recovery::WalRecovery;
    use crate::{Config, Mirror};

    fn model(name: &str) -> WalRecovery {
        let specs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../specs/wal_recovery");
        let config = Config::read(&specs.join(format!("MCWalRecovery_{name}.cfg"))).unwrap();
        WalRecovery::from_config(&config).unwrap()
    }

    #[test]
    fn walks_are_the_same_each_time_and_find_a_seeded_bug() {
        let (right, wrong) = (model("smoke"), model("evicts-dirty"));
        let walked = walk(&right, 50);
        assert!(walked.states > 500 && walked.counterexample.is_none());
        assert_eq!(walk(&right, 50), walked);
        let found = walk(&wrong, 1000).counterexample.expect("a violation");
        assert_eq!(found.steps[0].action, None);
        crate::graph::walk(&wrong, &found.steps, &found.property)
            .expect("a behaviour of the mirror");
    }
}
