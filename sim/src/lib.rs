//! Discrete-event devices, predictors, replay and reports.

#![warn(missing_docs)]

pub mod predict;
