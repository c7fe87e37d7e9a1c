//! The specs of `specs/`, executable.
//!
//! A *mirror* is a [`stateright::Model`] that is equal to a TLA+ module: for every bounded model (a `.cfg` file, which both read) it
//! has the same set of states and the same set of labelled edges as TLC finds. What TLC proved of the module then holds of the mirror,
//! and the mirror is what the engine is held against.
//!
//! - [`mirror`]: one module a spec.
//! - [`config`]: reads TLC's `.cfg` files, where the constants come from.
//! - [`value`]: TLA+ values, and TLC's way of printing them.
//! - [`graph`]: whole state graphs, a mirror's and TLC's, and how they differ; shortest counterexamples.
//! - [`check`]: runs TLC, `tla-mc` and the mirrors, and compares them with `specs/manifest.json`.
//! - [`conformance`]: does the engine do what its spec allows, and the other way round?
//! - `mutations`, with the feature of that name: seeded bugs in the engine, and which check must catch which.
//!
//! Nothing here is checked by symmetry reduction, and liveness is TLC's alone: stateright's `eventually` says nothing about cycles.

pub mod check;
pub mod config;
pub mod conformance;
pub mod graph;
pub mod mirror;
#[cfg(any(treering_mutations, feature = "mutations"))]
pub mod mutations;
pub mod value;

pub use config::{Config, ConfigError};
pub use mirror::Mirror;
pub use value::Value;
