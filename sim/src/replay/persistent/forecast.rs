//! The prediction for a tree in persistent memory, with or without a replay.

use treering_engine::PmOptions;

use super::plan;
use super::report::{amplification, lodge_predicted, options, unpredicted};
use crate::pm::{PmError, PmProfile};
use crate::predict::Model;
use crate::predict::pm::buffer::XpBuffer;
use crate::predict::pm::{TreePrediction, predict_independent, predict_tree};
use crate::predict::tried::{Case, untried};
use crate::replay::config::ReplayConfig;
use crate::replay::error::ReplayError;
use crate::replay::look::Looked;
use crate::report::PredictedRun;

/// Predicts from the trace's statistics; `None` if no predictor applies.
pub(super) fn predict(
    (config, options): (&ReplayConfig, &PmOptions),
    (profile, bytes): (&PmProfile, u64),
    looked: &Looked,
) -> Option<TreePrediction> {
    if config.method.model == Model::Independent {
        let tree = (&options.tree, config.clients);
        return predict_independent(&looked.workload, tree, &XpBuffer::of(profile));
    }
    let tree = (options, config.clients);
    let predicted = predict_tree(&looked.workload, tree, (profile, bytes))?;
    Some(predicted.with_clients(config.clients, config.timing))
}

/// Predicts one configuration without opening a store.
pub(in crate::replay) fn forecast(
    (config, base): (&ReplayConfig, &PmOptions),
    (profile, capacity_bytes): (&PmProfile, Option<u64>),
    looked: &Looked,
) -> PredictedRun {
    let bytes = capacity_bytes.unwrap_or_else(|| plan::device_bytes(base, &looked.workload));
    let prediction = predict((config, base), (profile, bytes), looked);
    let user_bytes = looked.workload.measured.user_bytes;
    PredictedRun {
        options: options((base, profile), bytes),
        pm: (prediction.filter(|_| user_bytes > 0)).map(|p| amplification(&p, user_bytes)),
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
