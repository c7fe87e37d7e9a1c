//! Runs TLC, `tla-mc` and the mirrors on the bounded models, and compares their results with
//! `specs/manifest.json`.
//!
//! TLC's verdict decides. `tla-mc` reads the same files and must agree, and so must the mirror.
//! Where a model is small, the mirror's whole labelled state graph must equal TLC's.

pub mod configs;
mod coverage;
pub mod cpu;
mod explorer;
pub mod frontier;
pub mod lanes;
pub mod manifest;
pub mod mirrors;
pub mod output;
pub(crate) mod process;
pub mod run;
pub(crate) mod scratch;
pub mod sources;
pub mod story;
pub mod suite;
pub mod tools;
mod visit;
mod walks;

pub use scratch::abandon;
pub use walks::Walked;
