//! Discrete-event devices, predictors, replay and reports.
//!
//! | room | what |
//! |---|---|
//! | [`ssd`] | a drive: flash translation layer, garbage collection, timing |
//! | [`csd`] | a drive that compresses: extents of any length instead of pages |
//! | [`pm`] | persistent memory: write combining, XPLines, a CPU cache before them |
//! | [`predict`] | write amplification from a trace's statistics alone |
//! | [`replay`] | a trace through the real engine on a device, in virtual time |
//! | [`report`] | what came out, as JSON, text and HTML |
//! | [`layouts`] | what page layouts take of which keys |
//! | [`clock`], [`queue`] | virtual time and its events |

#![warn(missing_docs)]

pub mod clock;
pub mod csd;
pub mod drive;
pub mod layouts;
pub mod pm;
pub mod predict;
mod profiles;
pub mod queue;
pub mod replay;
pub mod report;
pub mod ssd;
pub mod values;
