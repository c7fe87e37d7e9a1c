//! Mutants of the protocols, made by machine: would the specs notice a small mistake in them?
//!
//! A seeded bug is a mistake that somebody thought of. Here every small change of a protocol's
//! actions is tried: a condition dropped, an assignment forgotten, `<` for `<=`. Each mutant is
//! checked with `tla-mc` on the small models of its spec, until something catches it.
//!
//! ```text
//!   X.tla ─ tokens ─▶ syntax ─▶ scope: the definitions that Next reaches,
//!                                 │    without bounds, seeded bugs and ghosts
//!                                 ▼
//!                             operators ─▶ mutants, each a few bytes of X.tla
//!                                 │
//!                                 ▼
//!         trial: tla-mc on each judge, the smallest model first
//!           │ violated            │ holds, other counts     │ holds, same counts
//!           ▼                     ▼                         ▼
//!         killed                alive        steps: has it the steps of the unchanged protocol?
//!                                                  │ yes             │ no
//!                                                  ▼                 ▼
//!                                              equivalent          alive
//! ```
//!
//! - *Killed*: an invariant or a property is violated, a probe (`Reach…`) is not violated any more,
//!   or an action of the protocol is never taken in the
//!   model that takes most.
//! - *Equivalent*: the state graph of every judge has the same states and the same steps.
//! - *Stillborn*: the mutant cannot be evaluated, e.g. because it compares a number with a set.
//! - *Alive*: everything else. The score is killed / (killed + alive).
//!
//! Only the protocol is mutated: what `Next` reaches in the modules of the spec's folder. Left out
//! are the contract, `Init`, invariants and properties, operators that the models replace by their
//! bounds, what only a seeded bug evaluates, and variables that only serve the checking.

mod checker;
mod judges;
mod mutant;
mod operators;
mod report;
mod scope;
mod steps;
mod suite;
mod syntax;
#[cfg(test)]
mod tests;
mod tokens;
mod tree;
mod trial;

pub use mutant::{Mutant, MutantsError};
pub use report::{Fate, ModuleScore, Survivor, Trial, scores};
pub use suite::{Report, Request, Selection, Step, ghosts, list, run};
