//! The states in which a store is damaged.

use std::fmt;

use crate::random::Random;

/// The state of a store when it is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It was closed.
    AtRest,
    /// The power was cut.
    Cut,
}

impl State {
    pub(super) fn any(random: &mut Random) -> State {
        if random.one_in(2) {
            State::AtRest
        } else {
            State::Cut
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            State::AtRest => "at rest",
            State::Cut => "after a power cut",
        })
    }
}
