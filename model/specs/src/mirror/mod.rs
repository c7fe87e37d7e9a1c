//! The mirrors: one module a spec, with constants, actions and invariants of the same names.
//!
//! A mirror's state is small and flat, so that a checker copies and hashes it cheaply; what it means in TLA+ is said by
//! [`Mirror::variables`], and that alone is compared with TLC's states. [`wide`] has the same source with room for a real engine.

pub mod circular_buffer;
mod circular_buffer_room;
pub mod durable_map;
pub mod leaf_buffering;
mod leaf_buffering_room;
pub mod mini_page;
mod mini_page_room;
#[cfg(test)]
#[path = "mini_page/tests.rs"]
mod mini_page_tests;
pub mod overflow;
mod overflow_room;
pub mod page_shadowing;
mod page_shadowing_room;
pub mod surrogate_buffer;
mod surrogate_buffer_room;
pub mod wal_recovery;
mod wal_recovery_room;
pub mod wide;

use std::fmt::Debug;
use std::hash::Hash;
use std::ops::{BitOr, Shl};

use stateright::{Model, Property};

use crate::{Config, ConfigError, Value};

/// A spec in Rust.
pub trait Mirror:
    Model<
        State: Clone + Debug + Eq + Hash + Send + Sync + 'static,
        Action: Clone + Debug + PartialEq + Send + Sync + 'static,
    > + Clone
    + Send
    + Sync
    + 'static
{
    /// The module's name, e.g. `DurableMap`.
    const SPEC: &'static str;

    /// The model with the constants of a configuration, and the invariants that it lists as its properties.
    ///
    /// # Errors
    /// A constant is missing, of another kind, or larger than the mirror's state has room for.
    fn from_config(config: &Config) -> Result<Self, ConfigError>;

    /// The name of the action in TLA+: the label of the edge.
    fn label(action: &Self::Action) -> &'static str;

    /// The variables of the module in this state, as TLA+ values.
    fn variables(&self, state: &Self::State) -> Vec<(&'static str, Value)>;
}

/// Of `all` invariants of a mirror those that a configuration lists; for [`Mirror::from_config`].
///
/// # Errors
/// One is listed that the mirror does not have.
pub fn listed<'a, T>(
    config: &Config,
    all: &'a [(&'static str, T)],
) -> Result<Vec<&'a (&'static str, T)>, ConfigError> {
    let find = |name: &String| {
        all.iter()
            .find(|(known, _)| known == name)
            .ok_or_else(|| config.wrong(name, "is not an invariant of the mirror"))
    };
    config.invariants.iter().map(find).collect()
}

/// What an invariant of a mirror asks of a state.
pub type Condition<M> = fn(&M, &<M as Model>::State) -> bool;

/// Those of `all` invariants of a mirror that are in `listed`, by name; for [`Model::properties`].
pub fn properties<M: Model>(
    all: &[(&'static str, Condition<M>)],
    listed: &[&'static str],
) -> Vec<Property<M>> {
    let known = all.iter().filter(|(name, _)| listed.contains(name));
    known
        .map(|(name, condition)| Property::always(name, *condition))
        .collect()
}

/// Refuses a configuration that leaves one of these operators unbounded: each is to be overridden by the one of `MC`; for [`Mirror::from_config`].
///
/// # Errors
/// The first that is not.
pub fn bounded(config: &Config, operators: &[&str]) -> Result<(), ConfigError> {
    for name in operators {
        if config.overrides.get(*name) != Some(&format!("MC{name}")) {
            return Err(config.wrong(name, format!("expected {name} <- MC{name}")));
        }
    }
    Ok(())
}

/// What a string constant stands for; for [`Mirror::from_config`].
///
/// # Errors
/// It is not given, or names nothing that is known.
pub fn named<T: Copy>(
    config: &Config,
    constant: &str,
    known: &[(&str, T)],
) -> Result<T, ConfigError> {
    let wanted = config.string(constant)?;
    let found = known.iter().find(|(name, _)| *name == wanted);
    found
        .map(|(_, meaning)| *meaning)
        .ok_or_else(|| config.wrong(constant, format!("the mirror does not know \"{wanted}\"")))
}

/// A constant that is `{1, 2, ...}`: how many; for [`Mirror::from_config`].
///
/// # Errors
/// It is not given, something else, or has more than `most` members.
pub fn count(config: &Config, constant: &str, most: usize) -> Result<usize, ConfigError> {
    let members = config.members(constant, most)?;
    let without_gap = (1i64..).map(Value::Int).zip(&members);
    if without_gap.into_iter().all(|(n, member)| n == *member) {
        return Ok(members.len());
    }
    Err(config.wrong(constant, "expected 1, 2, ... without a gap"))
}

/// A constant that is a subset of `of`, as a bit set; for [`Mirror::from_config`].
///
/// # Errors
/// It is not given, or no subset.
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
