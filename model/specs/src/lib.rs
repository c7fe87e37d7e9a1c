//! The TLA+ specs of Treering as Rust models, and the checks that tie them to TLC and to the
//! engine.
//!
//! A *mirror* is a [`stateright::Model`] of one TLA+ module. Both read their constants from the
//! same `.cfg` file, and for every bounded model the mirror has exactly the states and labelled
//! edges that TLC finds. What TLC has checked of the module therefore holds for the mirror, and the
//! mirror can run inside a Rust test, beside the real engine.
//!
//! ```text
//!   specs/X/X.tla ────── TLC ────────▶ state graph ─┐
//!        MCX_smoke.cfg                              ├─ graph: equal, edge by edge?
//!            └──▶ config ─▶ mirror::X ─▶ state graph ┘
//!                               ▲
//!   engine ──▶ protocol events ─┘          conformance: does the mirror allow each event?
//! ```
//!
//! The engine must acknowledge a write only after the log has been flushed. One of the bounded
//! models of `WalRecovery` has a bug seeded there. The mirror finds a shortest behaviour that shows
//! it:
//!
//! ```
//! use treering_specs::graph::counterexample;
//! use treering_specs::mirror::wal_recovery::WalRecovery;
//! use treering_specs::{Config, Mirror};
//!
//! let specs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../specs");
//! let path = format!("{specs}/wal_recovery/MCWalRecovery_acks-before-flush.cfg");
//! let config = Config::read(path.as_ref()).unwrap();
//! let mirror = WalRecovery::from_config(&config).unwrap();
//!
//! let found = counterexample(&mirror).expect("the bug shows");
//! assert_eq!(Some(found.property.as_str()), config.must_violate());
//! let actions: Vec<_> = found.steps.iter().filter_map(|step| step.action.as_deref()).collect();
//! assert_eq!(actions.last(), Some(&"Acknowledge"), "{actions:?}");
//! ```
//!
//! | module | what it is for |
//! |---|---|
//! | [`mirror`] | the mirrors, one module for each spec |
//! | [`config`] | reads TLC's `.cfg` files |
//! | [`value`] | TLA+ values, and the text that TLC prints for them |
//! | [`graph`] | whole state graphs, their differences, and shortest counterexamples |
//! | [`ghosts`] | variables that only serve the checking, and whether they decide anything |
//! | [`inductive`] | inductive invariants, checked from states that need not be reachable |
//! | [`check`] | runs TLC, `tla-mc` and the mirrors, and compares them with `specs/manifest.json` |
//! | [`mutants`] | mutants of the protocols, made by machine, and what kills each |
//! | [`conformance`] | replays the engine's events on a mirror; leads the engine along its graph |
//! | [`promises`] | what each tree promises, and what stands behind each promise |
//! | `mutations` (a feature) | seeded bugs in the engine, and the check that must catch each |
//!
//! Mirrors check safety only, without symmetry reduction. Liveness is checked by TLC alone:
//! stateright's `eventually` properties ignore cycles.

pub mod check;
pub mod config;
pub mod conformance;
pub mod ghosts;
pub mod graph;
pub mod inductive;
pub mod mirror;
pub mod mutants;
#[cfg(any(treering_mutations, feature = "mutations"))]
pub mod mutations;
pub mod promises;
pub mod value;

pub use config::{Config, ConfigError};
pub use mirror::Mirror;
pub use value::Value;
