//! Discrete-event devices, predictors, replay and reports.

pub mod clock;
pub mod queue;
pub mod replay;
