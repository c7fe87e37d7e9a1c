//! A store on a simulated drive, planned but not opened, and its prediction. A replay plans and
//! predicts with the same functions.

use std::sync::Arc;

use treering_engine::{BLOCK_SIZE, Options};

use super::options::options;
use super::plan::{self, LeafCounts, PagePlan};
use super::report;
use crate::drive::{SimDrive, before};
use crate::predict::{self, DeviceParams, Pace, Prediction};
use crate::replay::config::{Acknowledge, ReplayConfig, Size};
use crate::replay::error::ReplayError;
use crate::replay::look::Looked;
use crate::replay::target::AskedDrive;
use crate::report::{PredictedRun, PredictedValue, with_bars};
use crate::ssd::TimingMode;

/// A planned store, and the drive for it.
pub(super) struct Planned {
    pub(super) plan: PagePlan,
    pub(super) drive: Arc<dyn SimDrive>,
}

impl Planned {
    pub(super) fn new(
        (config, base): (&ReplayConfig, &Options),
        looked: &Looked,
        asked: AskedDrive<'_>,
        leaves: &mut LeafCounts,
    ) -> Result<Planned, ReplayError> {
        let plan = plan::on_drive((config, base), &looked.workload, asked, leaves)?;
        let mode = match config.timing {
            true => TimingMode::Queued,
            false => TimingMode::Counting,
        };
        let drive = (asked.profile)
            .build(plan.device_blocks, mode, config.seed)
            .map_err(ReplayError::Drive)?;
        Ok(Planned { plan, drive })
    }
}

/// Predicts runs of one store, each on another drive, from the trace's statistics.
pub(super) fn predict_runs(
    runs: &[(&ReplayConfig, AskedDrive<'_>, &Planned)],
    looked: &Looked,
) -> Vec<Prediction> {
    let Some((config, _, first)) = runs.first() else {
        return Vec::new();
    };
    let engine = &first.plan.engine;
    let seen: Vec<(DeviceParams, Pace)> = (runs.iter())
        .map(|(config, asked, planned)| seen(&*planned.drive, engine, (config, *asked)))
        .collect();
    let drives: Vec<(&DeviceParams, Option<&Pace>)> = seen
        .iter()
        .map(|(params, pace)| (params, Some(pace)))
        .collect();
    predict::predict_drives(config.predicted_by(), &looked.workload, engine, &drives)
}

/// What a prediction knows of a drive.
fn seen(
    drive: &dyn SimDrive,
    engine: &Options,
    (config, asked): (&ReplayConfig, AskedDrive<'_>),
) -> (DeviceParams, Pace) {
    let params = DeviceParams {
        before: before(asked.precondition),
        ..drive.params()
    };
    let pace = pace(drive, engine, (config.clients, config.acknowledge));
    (params, pace)
}

/// A configuration to predict, with its store planned. There is no drive, so many of them take
/// little memory.
pub(in crate::replay) struct Asked<'a> {
    config: &'a ReplayConfig,
    drive: AskedDrive<'a>,
    plan: PagePlan,
    params: DeviceParams,
    pace: Pace,
}

impl<'a> Asked<'a> {
    pub(in crate::replay) fn new(
        (config, base): (&'a ReplayConfig, &Options),
        asked: AskedDrive<'a>,
        looked: &Looked,
        leaves: &mut LeafCounts,
    ) -> Result<Asked<'a>, ReplayError> {
        let Planned { plan, drive } = Planned::new((config, base), looked, asked, leaves)?;
        let (params, pace) = seen(&*drive, &plan.engine, (config, asked));
        Ok(Asked {
            config,
            drive: asked,
            plan,
            params,
            pace,
        })
    }

    /// Whether both ask for the same store, on one drive or another.
    pub(in crate::replay) fn has_store_of(&self, other: &Asked<'_>) -> bool {
        self.config.predicted_by() == other.config.predicted_by()
            && self.plan.engine == other.plan.engine
    }

    fn predicted(&self, prediction: Prediction, writes: bool) -> PredictedRun {
        let (config, plan) = (self.config, &self.plan);
        let mut warnings = plan.warnings.clone();
        warnings.extend(prediction.warnings.iter().cloned());
        PredictedRun {
            options: options(
                config,
                (&plan.engine, plan.device_blocks),
                Some(&self.drive),
            ),
            cache_share: match config.cache {
                Size::Bytes(_) => None,
                Size::Share(share) => Some(share),
            },
            // Without user bytes, amplification is undefined.
            wa: writes.then(|| {
                let side = report::predicted_side(&prediction, true);
                with_bars(&side, prediction.bars.as_ref(), prediction.model)
            }),
            hit_ratio: Some(PredictedValue::new(
                prediction.hit_ratio,
                prediction.bars.and_then(|bars| bars.hit_ratio),
                prediction.model,
            )),
            untried: prediction.untried.clone(),
            warnings,
            prediction: Some(prediction),
            ..PredictedRun::default()
        }
    }
}

/// Predicts a store on one drive or several, without opening it.
pub(in crate::replay) fn forecast(asked: &[&Asked<'_>], looked: &Looked) -> Vec<PredictedRun> {
    let Some(first) = asked.first() else {
        return Vec::new();
    };
    let drives: Vec<(&DeviceParams, Option<&Pace>)> =
        asked.iter().map(|a| (&a.params, Some(&a.pace))).collect();
    let (method, engine) = (first.config.predicted_by(), &first.plan.engine);
    let predictions = predict::predict_drives(method, &looked.workload, engine, &drives);
    let writes = looked.workload.measured.user_bytes > 0;
    (asked.iter().zip(predictions))
        .map(|(asked, prediction)| asked.predicted(prediction, writes))
        .collect()
}

/// Checks the options of the tree as opening a store does. A cache that is a share of the data set
/// is made large enough later.
pub(in crate::replay) fn check(config: &ReplayConfig, base: &Options) -> Result<(), ReplayError> {
    let cache_bytes = match config.cache {
        Size::Bytes(bytes) => bytes,
        Size::Share(_) => base.least_cache_bytes(),
    };
    let mut options = Options {
        cache_bytes,
        ..base.clone()
    };
    if config.fit_log {
        plan::fit_log(&mut options, f64::INFINITY);
    }
    options.check().map_err(|source| ReplayError::Engine {
        device: config.target.name(),
        source,
    })
}

/// The closed-loop clients on a drive, as parameters of the predictors.
pub(in crate::replay) fn pace(
    drive: &dyn SimDrive,
    engine: &Options,
    (clients, acknowledge): (u32, Acknowledge),
) -> Pace {
    // A page is read together with its log block.
    let bytes_read = engine.page_size + engine.mod_log.map_or(0, |_| BLOCK_SIZE);
    Pace {
        clients,
        commits: acknowledge == Acknowledge::Commit,
        read_ns: drive.read_ns(bytes_read) as f64,
        flush_ns: drive.write_ns(BLOCK_SIZE) as f64,
    }
}
