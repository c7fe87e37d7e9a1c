//! Discrete-event devices, predictors, replay and reports.

pub mod ssd;
