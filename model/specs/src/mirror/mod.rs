//! The mirrors: one module a spec, with constants, actions and invariants of the same names.
//!
//! The state of a mirror is small and flat, so that a checker copies and hashes it cheaply.
//! [`Mirror::variables`] translates it to TLA+, and only that is compared with TLC's states.
//! [`wide`] compiles the same source with larger sizes, for the recordings of a real engine.

pub mod circular_buffer;
mod circular_buffer_room;
pub mod copy_on_write;
mod copy_on_write_room;
pub mod durable_map;
pub mod index_snapshot;
mod index_snapshot_room;
pub mod leaf_buffering;
mod leaf_buffering_room;
pub mod leaf_layout;
mod leaf_layout_room;
pub mod mini_page;
mod mini_page_room;
#[cfg(test)]
#[path = "mini_page/tests.rs"]
mod mini_page_tests;
pub(crate) mod no_room;
pub mod overflow;
mod overflow_room;
pub mod page_shadowing;
mod page_shadowing_room;
pub mod redo_log;
pub mod surrogate_buffer;
mod surrogate_buffer_room;
pub mod wal_recovery;
mod wal_recovery_room;
pub mod wide;
pub mod write_batch;

use std::fmt::Debug;
use std::hash::Hash;
use std::ops::{BitOr, Shl};
use std::str::FromStr;

use bitcode::{DecodeOwned, Encode};
use stateright::{Model, Property};

use crate::{Config, ConfigError, Value};

/// The phase of a store whose recovery begins in the step that ends the life before. Of recovery it
/// says how that life ended.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode, strum::IntoStaticStr,
)]
#[strum(serialize_all = "lowercase")]
pub enum Phase {
    /// The store serves clients.
    Up,
    /// Recovery, after the power failed.
    Cut,
    /// Recovery, after the process died and the device lived on.
    Killed,
}

impl Phase {
    /// Whether the store serves clients.
    #[must_use]
    pub fn is_up(self) -> bool {
        self == Phase::Up
    }
}

/// What a trim does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumString)]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum Discards {
    /// It writes zeros.
    Act,
    /// Nothing: the device ignores it.
    Inert,
}

/// A TLA+ module as a Rust model.
///
/// ```
/// use stateright::{Checker, Model};
/// use treering_specs::mirror::durable_map::DurableMap;
/// use treering_specs::{Config, Mirror};
///
/// let specs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../specs/contract");
/// let config = Config::read(format!("{specs}/MCDurableMap_smoke.cfg").as_ref()).unwrap();
/// let mirror = DurableMap::from_config(&config).unwrap();
/// // The configuration's invariants are the model's properties.
/// let checker = mirror.checker().spawn_bfs().join();
/// checker.assert_properties();
/// ```
pub trait Mirror:
    Model<
        State: Clone + Debug + Eq + Hash + Encode + DecodeOwned + Send + Sync + 'static,
        Action: Clone + Debug + PartialEq + Send + Sync + 'static,
    > + Clone
    + Send
    + Sync
    + 'static
{
    /// The module's name, e.g. `DurableMap`.
    const SPEC: &'static str;

    /// Makes the model from a configuration: its constants, and its invariants as properties.
    ///
    /// # Errors
    /// A constant is missing, has the wrong type, or is larger than the mirror's state has room
    /// for.
    fn from_config(config: &Config) -> Result<Self, ConfigError>;

    /// The name of an action in TLA+, which labels its edges.
    fn label(action: &Self::Action) -> &'static str;

    /// The variables of the module in a state, as TLA+ values.
    fn variables(&self, state: &Self::State) -> Vec<(&'static str, Value)>;

    /// The name of the first of the model's invariants that does not hold in a state.
    fn broken(&self, state: &Self::State) -> Option<&'static str> {
        let mut invariants = self.properties().into_iter();
        let broken = invariants.find(|invariant| !(invariant.condition)(self, state));
        broken.map(|invariant| invariant.name)
    }
}

/// An invariant of a mirror: whether it holds in a state.
pub type Condition<M> = fn(&M, &<M as Model>::State) -> bool;

/// Selects from `all` invariants of a mirror the names that a configuration lists. A helper for
/// [`Mirror::from_config`].
///
/// # Errors
/// The configuration lists an invariant that the mirror does not have.
pub fn listed<T>(
    config: &Config,
    all: &[(&'static str, T)],
) -> Result<Vec<&'static str>, ConfigError> {
    let find = |name: &String| {
        let mut known = all.iter().map(|(known, _)| *known);
        let unknown = || config.wrong(name, "is not an invariant of the mirror");
        known.find(|known| known == name).ok_or_else(unknown)
    };
    config.invariants.iter().map(find).collect()
}

/// The names of all invariants, without probes: what must hold in every state of a recording.
fn invariants<T>(all: &[(&'static str, T)]) -> Vec<&'static str> {
    let names = all.iter().map(|(name, _)| *name);
    names.filter(|name| name.ends_with("Inv")).collect()
}

/// Makes properties of the `listed` ones of `all` invariants. They are in the configuration's
/// order, because TLC reports the first that does not hold. A helper for [`Model::properties`].
pub fn properties<M: Model>(
    all: &[(&'static str, Condition<M>)],
    listed: &[&'static str],
) -> Vec<Property<M>> {
    let known = |name| all.iter().find(|(known, _)| known == name);
    let listed = listed.iter().filter_map(known);
    listed
        .map(|(name, condition)| Property::always(name, *condition))
        .collect()
}

/// Implements [`Model`] for a mirror, given the function that makes its initial state. The mirror
/// has the methods `enabled` and `take` and the field `invariants`; its module has the types
/// `State` and `Action` and the constant `INVARIANTS`.
macro_rules! model {
    ($mirror:ty, $initial:expr) => {
        impl stateright::Model for $mirror {
            type State = State;
            type Action = Action;

            fn init_states(&self) -> Vec<State> {
                let initial: fn(&Self) -> State = $initial;
                vec![initial(self)]
            }

            fn actions(&self, state: &State, actions: &mut Vec<Action>) {
                self.enabled(state, actions);
            }

            fn next_state(&self, state: &State, action: Action) -> Option<State> {
                let mut next = State::clone(state);
                self.take(&mut next, action);
                Some(next)
            }

            fn properties(&self) -> Vec<stateright::Property<Self>> {
                $crate::mirror::properties(&INVARIANTS, &self.invariants)
            }
        }
    };
}
use model;

/// Checks that a configuration bounds each of these operators: it must override `Op` by `MCOp`. A
/// helper for [`Mirror::from_config`].
///
/// # Errors
/// The first operator that is not overridden.
pub fn bounded(config: &Config, operators: &[&str]) -> Result<(), ConfigError> {
    for name in operators {
        if config.overrides.get(*name) != Some(&format!("MC{name}")) {
            return Err(config.wrong(name, format!("expected {name} <- MC{name}")));
        }
    }
    Ok(())
}

/// The variant that a string constant names. A helper for [`Mirror::from_config`].
///
/// # Errors
/// The constant is missing, or has an unknown name.
pub fn named<T: FromStr>(config: &Config, constant: &str) -> Result<T, ConfigError> {
    let name = config.string(constant)?;
    let unknown = |_| config.wrong(constant, format!("the mirror does not know \"{name}\""));
    name.parse().map_err(unknown)
}

/// The size of a constant set `{1, 2, ...}`. A helper for [`Mirror::from_config`].
///
/// # Errors
/// The constant is missing, is another kind of value, or has more than `most` members.
pub fn count(config: &Config, constant: &str, most: usize) -> Result<usize, ConfigError> {
    let members = config.members(constant, most)?;
    let without_gap = (1i64..).map(Value::Int).zip(&members);
    if without_gap.into_iter().all(|(n, member)| n == *member) {
        return Ok(members.len());
    }
    Err(config.wrong(constant, "expected 1, 2, ... without a gap"))
}

/// A constant subset of `of`, as a bit set. A helper for [`Mirror::from_config`].
///
/// # Errors
/// The constant is missing, or is not a subset.
pub fn subset<S>(config: &Config, constant: &str, of: &[Value]) -> Result<S, ConfigError>
where
    S: From<u8> + BitOr<Output = S> + Shl<usize, Output = S>,
{
    let members = config.members(constant, of.len())?;
    members.iter().try_fold(S::from(0), |set, member| {
        let place = of.iter().position(|known| known == member);
        let place = place.ok_or_else(|| config.wrong(constant, format!("{member} is unknown")))?;
        Ok(set | S::from(1) << place)
    })
}
