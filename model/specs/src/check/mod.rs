//! Runs TLC, `tla-mc` and the mirrors on the bounded models, and compares what they say with
//! `specs/manifest.json`.
//!
//! Two referees and a mirror: TLC decides; `tla-mc` reads the same files and must agree; the mirror
//! must agree too, and where the model is small its whole labelled state graph must be TLC's.

pub mod configs;
mod coverage;
pub mod cpu;
mod explorer;
pub mod manifest;
pub mod mirrors;
pub mod output;
mod process;
pub mod run;
mod scratch;
pub mod story;
pub mod suite;
pub mod tools;

pub use scratch::abandon;
