//! No tree: the trace's own block writes go straight to a simulated drive.
//!
//! ```text
//! put ──▶ write the record's blocks     delete ──▶ TRIM them     get, scan ──▶ read them
//! ```
//!
//! This separates the drive from the trees above it, and serves those who only have a drive: host
//! write amplification is 1 for a block trace, and what the drive adds is measured beside
//! predicted.
//!
//! A record of a block trace is a block of 4 KiB, whatever length the import gave it. A record of
//! another trace takes as many blocks as its value needs, at least one; keys are not stored.
//! [`places`] says which blocks these are.

mod backend;
mod independent;
mod places;
mod predict;
mod report;
mod store;

use std::sync::Arc;

use treering_engine::BLOCK_SIZE;

use self::backend::DirectBackend;
pub(super) use self::places::Places;
use super::config::ReplayConfig;
use super::error::{ReplayError, setting};
use super::look::Looked;
use super::progress::Progress;
use super::target::AskedDrive;
use super::virtual_time;
use crate::drive::{SimDrive, before};
use crate::predict::DeviceParams;
use crate::report::{PredictedRun, ReplayReport};
use crate::ssd::TimingMode;

/// A drive for the blocks of a trace, and what predictors know of it.
struct Planned {
    drive: Arc<dyn SimDrive>,
    params: DeviceParams,
}

impl Planned {
    fn new(
        config: &ReplayConfig,
        asked: AskedDrive<'_>,
        places: &Places,
    ) -> Result<Planned, ReplayError> {
        let blocks = drive_blocks(config, asked, places.blocks())?;
        let mode = match config.timing {
            true => TimingMode::Queued,
            false => TimingMode::Counting,
        };
        let built = asked.profile.build(blocks, mode, config.seed);
        let drive = built.map_err(ReplayError::Drive)?;
        let params = DeviceParams {
            before: before(asked.precondition),
            ..drive.params()
        };
        Ok(Planned { drive, params })
    }
}

/// Replays on a simulated drive.
pub(super) fn run(
    config: &ReplayConfig,
    asked: AskedDrive<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<ReplayReport, ReplayError> {
    let looked = super::look::look_through(config, progress)?;
    let places = Arc::new(Places::find(config, &looked)?);
    let Planned { drive, params } = Planned::new(config, asked, &places)?;
    drive.prepare(asked.precondition, config.seed);
    let name = config.target.name();
    let mut backend = DirectBackend::new(drive.clone(), Arc::clone(&places), config.clients);
    let run = virtual_time::replay((config, &looked), &mut backend, progress);
    let outcome = run.map_err(|e| e.on(&name))?;
    drop(backend);
    // Predictions cover the whole trace.
    let predicted = match config.predict && outcome.done_ops == looked.ops {
        true => predict::predict(config, &looked, &places, &params)?,
        false => None,
    };
    let material = report::Material {
        config,
        looked: &looked,
        drive: &*drive,
        asked,
        data_blocks: places.blocks(),
        predicted,
    };
    Ok(report::report(&material, outcome))
}

/// Predicts one configuration without a run.
pub(super) fn forecast(
    config: &ReplayConfig,
    asked: AskedDrive<'_>,
    looked: &Looked,
    places: &Places,
) -> Result<PredictedRun, ReplayError> {
    let Planned { drive, params } = Planned::new(config, asked, places)?;
    let predicted = predict::predict(config, looked, places, &params)?;
    Ok(report::forecast(
        (config, &*drive, asked),
        looked,
        predicted,
    ))
}

/// Blocks of the drive: the configured capacity, or what the records need.
fn drive_blocks(
    config: &ReplayConfig,
    asked: AskedDrive<'_>,
    data: u64,
) -> Result<u64, ReplayError> {
    let Some(bytes) = asked.capacity_bytes else {
        let fitted = (data as f64 / config.fill).ceil().max(1.0) as u64;
        return Ok(asked.profile.fitted_blocks(fitted));
    };
    let blocks = bytes / BLOCK_SIZE as u64;
    if blocks < data.max(1) {
        let needed = data.max(1) * BLOCK_SIZE as u64;
        let why = format!("{bytes} bytes; expected at least {needed}, the blocks of this trace");
        return Err(setting("capacity", why));
    }
    Ok(blocks)
}
