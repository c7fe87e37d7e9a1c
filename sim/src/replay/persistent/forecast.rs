//! The prediction for a tree in persistent memory, with or without a replay.

use treering_engine::PmOptions;

use super::plan;
use super::report::{amplification, lodge_predicted, options, unpredicted};
use crate::pm::{PmError, PmProfile};
use crate::predict::Model;
use crate::predict::pm::buffer::XpBuffer;
use crate::predict::pm::{TreePrediction, predict_tree};
use crate::predict::tried::{Case, untried};
use crate::replay::config::ReplayConfig;
use crate::replay::error::ReplayError;
use crate::replay::look::Looked;
use crate::report::{PredictedRun, PredictedValue};

/// Predicts from the trace's statistics; `None` if no predictor applies.
pub(super) fn predict(
    (config, options): (&ReplayConfig, &PmOptions),
    profile: &PmProfile,
    looked: &Looked,
) -> Option<TreePrediction> {
    let tree = (&options.tree, config.clients);
    predict_tree(&looked.workload, tree, &XpBuffer::of(profile))
}

/// Predicts one configuration without opening a store.
pub(in crate::replay) fn forecast(
    (config, base): (&ReplayConfig, &PmOptions),
    (profile, capacity_bytes): (&PmProfile, Option<u64>),
    looked: &Looked,
) -> PredictedRun {
    let prediction = predict((config, base), profile, looked);
    let user_bytes = looked.workload.measured.user_bytes;
    let bytes = capacity_bytes.unwrap_or_else(|| plan::device_bytes(base, &looked.workload));
    PredictedRun {
        options: options((base, profile), bytes),
        pm: prediction.filter(|_| user_bytes > 0).map(|p| {
            amplification(&p, user_bytes).map(|v| PredictedValue::bare(v, Model::Independent))
        }),
        lodge: prediction.and_then(lodge_predicted),
        untried: prediction.map_or(Vec::new(), |p| {
            untried(&Case::of_pm(&looked.workload, p.family()))
        }),
        warnings: unpredicted(config, looked),
        ..PredictedRun::default()
    }
}

/// Checks the options of the tree and the profile, as opening a store does.
pub(in crate::replay) fn check(
    config: &ReplayConfig,
    options: &PmOptions,
    profile: &PmProfile,
) -> Result<(), ReplayError> {
    profile.check().map_err(PmError::Profile)?;
    options.check().map_err(|source| ReplayError::Engine {
        device: config.target.name(),
        source,
    })
}
