//! Trees of pages: on simulated drives in virtual time, and on real files.

mod backend;
mod forecast;
mod options;
mod plan;
mod report;
mod together;
mod waterfall;

use std::path::Path;

use treering_engine::device::FileOptions;
use treering_engine::{LeafFill, Options};

use self::backend::DriveBackend;
use self::forecast::{Planned, predict_runs};
use self::plan::PagePlan;
use self::report::{Material, On};
use super::config::ReplayConfig;
use super::error::{Failure, ReplayError};
use super::file;
use super::look::Looked;
use super::measure::Outcome;
use super::measured::DriveRun;
use super::progress::Progress;
use super::target::AskedDrive;
use super::virtual_time::{self, Backend as _};
use crate::drive::DriveCounters;
use crate::predict::{self, DeviceParams, Prediction};
use crate::report::ReplayReport;

pub(super) use forecast::{Asked, check, forecast, pace};
pub(super) use plan::LeafCounts;
pub(super) use together::on_drives;

/// Replays on a simulated drive.
pub(super) fn on_drive(
    config: &ReplayConfig,
    options: &Options,
    asked: AskedDrive<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<ReplayReport, ReplayError> {
    let looked = super::look::look_through(config, progress)?;
    let counts = &mut LeafCounts::default();
    let planned = Planned::new((config, options), &looked, asked, counts)?;
    let Planned { plan, drive } = &planned;
    drive.prepare(asked.precondition, config.seed);
    let name = config.target.name();
    let mut backend =
        DriveBackend::open(drive.clone(), &plan.engine, config).map_err(|e| e.on(&name))?;
    let run = virtual_time::replay((config, &looked), &mut backend, progress);
    let outcome = run.map_err(|e| e.on(&name))?;
    // Read the counters first: what follows must not be counted.
    backend::check_counters(&outcome.after.stats, &outcome.after.device.flash)?;
    let leaves = (backend.store().leaf_fill()).map_err(|e| Failure::from(e).on(&name))?;
    drop(backend);
    let prediction = match predicts(config, outcome.done_ops, &looked) {
        true => predict_runs(&[(config, asked, &planned)], &looked).pop(),
        false => None,
    };
    Ok(reported(
        (config, asked),
        &looked,
        &planned,
        (outcome, leaves),
        prediction,
    ))
}

/// The report of a run on a simulated drive, with its prediction.
fn reported(
    (config, asked): (&ReplayConfig, AskedDrive<'_>),
    looked: &Looked,
    planned: &Planned,
    (outcome, leaves): (Outcome<DriveCounters>, Vec<LeafFill>),
    prediction: Option<Prediction>,
) -> ReplayReport {
    let on = On::Drive(Box::new(DriveRun {
        drive: &*planned.drive,
        asked,
        before: outcome.before.device,
        after: outcome.after.device,
    }));
    let material = Material {
        config,
        looked,
        plan: &planned.plan,
        leaves,
        prediction,
    };
    report::report(material, outcome, on)
}

/// Replays on a real file.
pub(super) fn on_file(
    config: &ReplayConfig,
    options: &Options,
    (path, choices): (&Path, FileOptions),
    progress: &mut dyn FnMut(Progress),
) -> Result<ReplayReport, ReplayError> {
    let looked = super::look::look_through(config, progress)?;
    let plan = plan::on_file((config, options), &looked.workload)?;
    let made = (path, choices, plan.device_blocks, &plan.engine);
    let (outcome, kernel, leaves) = file::run((config, &looked), made, progress)?;
    let predicted = predicts(config, outcome.done_ops, &looked).then(|| {
        let params = unknown_drive(&plan);
        predict::predict_by(
            config.predicted_by(),
            &looked.workload,
            &plan.engine,
            &params,
            None,
        )
    });
    let material = Material {
        config,
        looked: &looked,
        plan: &plan,
        leaves,
        prediction: predicted,
    };
    Ok(report::report(material, outcome, On::File(path, kernel)))
}

/// Predictions cover the whole trace.
fn predicts(config: &ReplayConfig, done_ops: u64, looked: &Looked) -> bool {
    config.predict && done_ops == looked.ops
}

/// The drive below a file is unknown, so predictions about it are not shown.
fn unknown_drive(plan: &PagePlan) -> DeviceParams {
    DeviceParams {
        capacity_blocks: plan.device_blocks,
        physical_pages: plan.device_blocks as f64,
        pages_per_block: 256,
        before: predict::Before::Nothing,
        before_block: 1.0,
        cleaning: predict::Cleaning::Greedy,
        compression: None,
        flash: None,
    }
}
