//! Discrete-event devices, predictors, replay and reports.
