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

    /// Predicts the run from the trace's statistics.
    pub(super) fn predict(
        &self,
        config: &ReplayConfig,
        looked: &Looked,
        asked: AskedDrive<'_>,
    ) -> Prediction {
        let params = DeviceParams {
            before: before(asked.precondition),
            ..self.drive.params()
        };
        let engine = &self.plan.engine;
        let pace = pace(&*self.drive, engine, (config.clients, config.acknowledge));
        predict::predict_by(
            config.method,
            &looked.workload,
            engine,
            &params,
            Some(&pace),
        )
    }
}

/// Predicts one configuration without opening a store.
pub(in crate::replay) fn forecast(
    (config, base): (&ReplayConfig, &Options),
    asked: AskedDrive<'_>,
    looked: &Looked,
    leaves: &mut LeafCounts,
) -> Result<PredictedRun, ReplayError> {
    let planned = Planned::new((config, base), looked, asked, leaves)?;
    let prediction = planned.predict(config, looked, asked);
    let plan = planned.plan;
    let writes = looked.workload.measured.user_bytes > 0;
    let mut warnings = plan.warnings;
    warnings.extend(prediction.warnings.iter().cloned());
    Ok(PredictedRun {
        options: options(config, (&plan.engine, plan.device_blocks), Some(&asked)),
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
    })
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
