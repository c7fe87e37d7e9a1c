//! Predicts configurations without a replay: no store is opened and no operation is played.
//!
//! ```text
//!           ┌─ page 4 KiB, cache 1 % ─▶ plan ─▶ predict
//! trace ──▶ statistics ─ cache 5 % ───▶ plan ─▶ predict     the trace is read once, unless …
//!           └─ page 8 KiB, cache 1 % ─▶ plan ─▶ predict
//! ```
//!
//! What a pass over the trace finds depends little on the configuration. The page size limits the
//! keys that a store takes, and so the operations that are skipped, and it limits the keys that
//! fit into the memory. So the trace is read for the smallest page first. If no operation had to
//! be skipped and no key was left out, larger pages share that pass. The other settings that a pass
//! depends on (trace, limit, warm-up, records loaded before it) force another pass only if they
//! differ.
//!
//! Configurations with the same store on several drives are predicted together: the store is played
//! once ([`crate::predict::predict_drives`]).
//!
//! Without a tree, the writes of the trace are read again for each configuration.
//!
//! Plan and prediction are those of a replay, so both show the same numbers.

use treering_engine::node::LayoutChoice;
use treering_traces::OpKind;

use super::config::ReplayConfig;
use super::direct::{self, Places};
use super::error::{ReplayError, setting};
use super::frame;
use super::look::{Looked, check_clients, look_again, look_through};
use super::pages::{self, Asked, LeafCounts};
use super::persistent;
use super::progress::Progress;
use super::target::Place;
use super::tree::Tree;
use crate::report::{ByOp, PredictReport, PredictedDevice, PredictedRun};

/// Predicts all configurations, without running any. `progress` is called while the trace is read,
/// and `done` after each configuration with the report so far.
///
/// ```
/// use treering_sim::replay::{ReplayConfig, Size, Target, forecast};
///
/// # use treering_traces::generate::{GenParams, Workload, build};
/// # use treering_traces::{Op, OpSource, Writer};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("zipf.trz");
/// # let (header, mut source) = build(&GenParams::new(Workload::Zipf, 5_000))?;
/// # let mut writer = Writer::create(&path, header)?;
/// # let mut op = Op::default();
/// # while source.next_op(&mut op)? {
/// #     writer.write(&op)?;
/// # }
/// # writer.finish()?;
/// let drive = Target::builtin("ssd").expect("a built-in drive");
/// let of_cache = |share| {
///     let mut config = ReplayConfig::new(path.clone(), drive.clone());
///     config.cache = Size::Share(share);
///     config
/// };
/// let report = forecast(&[0.2, 0.9].map(of_cache), &mut |_| {}, &mut |_| {})?;
/// let hits = |i: usize| report.configurations[i].hit_ratio.expect("pages").estimate.value;
/// assert!(report.passes == 1 && hits(0) < hits(1));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`ReplayError`], the same that a replay returns for a bad configuration or trace.
pub fn forecast(
    configs: &[ReplayConfig],
    progress: &mut dyn FnMut(Progress),
    done: &mut dyn FnMut(&PredictReport),
) -> Result<PredictReport, ReplayError> {
    for config in configs {
        check(config)?;
    }
    let mut runs: Vec<Option<PredictedRun>> = vec![None; configs.len()];
    let mut report = PredictReport::default();
    let all = (0..configs.len()).collect();
    predict_all(configs, all, progress, &mut |passes, pass, predicted| {
        for (i, run) in predicted {
            runs[i] = Some(run?);
        }
        if report.passes == 0 {
            report = pass.begin(pass.config, configs.len());
        }
        report.passes = passes;
        report.configurations = runs.iter().flatten().cloned().collect();
        report.complete = report.configurations.len() == configs.len();
        done(&report);
        Ok(())
    })?;
    Ok(report)
}

/// Predicts all configurations as [`forecast`] does, and makes a report of each one as if it were
/// the only one. `done` gets its place in the list and its report. A configuration that cannot be
/// predicted has none: [`forecast`] of it alone says why.
///
/// # Errors
/// [`ReplayError`] if a trace cannot be read.
pub fn forecast_each(
    configs: &[ReplayConfig],
    progress: &mut dyn FnMut(Progress),
    done: &mut dyn FnMut(usize, PredictReport),
) -> Result<(), ReplayError> {
    let all = (0..configs.len()).filter(|i| check(&configs[*i]).is_ok());
    let all = all.collect();
    predict_all(configs, all, progress, &mut |_, pass, predicted| {
        for (i, run) in predicted {
            if let Ok(run) = run {
                let mut report = pass.begin(&configs[i], 1);
                report.configurations = vec![run];
                report.complete = true;
                done(i, report);
            }
        }
        Ok(())
    })
}

/// Configurations that were predicted together, by their places in the list.
type Predicted = Vec<(usize, Result<PredictedRun, ReplayError>)>;

/// Predicts these configurations, and tells of each group that was predicted together: the number
/// of passes so far, the pass, and the group.
fn predict_all(
    configs: &[ReplayConfig],
    mut order: Vec<usize>,
    progress: &mut dyn FnMut(Progress),
    told: &mut dyn FnMut(u64, &Pass<'_>, Predicted) -> Result<(), ReplayError>,
) -> Result<(), ReplayError> {
    // From the smallest page on, because larger pages can share its pass.
    order.sort_by_key(|i| configs[*i].tree.unit_bytes());
    let mut passes = 0;
    while let Some(first) = order.first() {
        if configs[*first].stop.is_set() {
            return Ok(());
        }
        let mut pass = Pass::over(&configs[*first], passes, progress)?;
        passes += 1;
        let (now, later) = order.into_iter().partition(|i| pass.suits(&configs[*i]));
        order = later;
        if !pass.predict_all(configs, now, &mut |pass, predicted| {
            told(passes, pass, predicted)
        })? {
            return Ok(());
        }
    }
    Ok(())
}

/// Checks what a replay checks when it opens a store, before the trace is read.
fn check(config: &ReplayConfig) -> Result<(), ReplayError> {
    check_clients(config)?;
    match (&config.tree, config.target.place()) {
        (Tree::Pages(options), Place::Drive(_)) => pages::check(config, options),
        (Tree::Pm(options), Place::Memory(profile, _)) => {
            persistent::check(config, options, profile)
        }
        (Tree::Pages(_), Place::File(..)) => Err(setting(
            "device",
            "a file; expected a simulated drive, because the drive below a file is not known",
        )),
        (Tree::Direct, Place::Drive(_)) => Ok(()),
        (tree, _) => Err(tree.not_on(&config.target)),
    }
}

/// A pass over a trace, and what has been computed from it.
struct Pass<'a> {
    /// The configuration that it was made for.
    config: &'a ReplayConfig,
    looked: Looked,
    leaves: LeafCounts,
    /// Where records lie on a drive without a tree.
    places: Option<Places>,
}

impl<'a> Pass<'a> {
    /// A pass after `passes` others. Only the first one's statistics are saved.
    fn over(
        config: &'a ReplayConfig,
        passes: u64,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Pass<'a>, ReplayError> {
        let looked = match passes {
            0 => look_through(config, progress)?,
            _ => look_again(config, progress)?,
        };
        Ok(Pass {
            config,
            looked,
            leaves: LeafCounts::default(),
            places: None,
        })
    }

    /// Whether a pass for this configuration would find the same.
    fn suits(&self, config: &ReplayConfig) -> bool {
        let of = |c: &ReplayConfig| (c.limit, c.warmup, c.oversize, c.seed);
        let ours = self.config;
        let same_source = ours.trace == config.trace && ours.preload == config.preload;
        let (read_for, unit) = (ours.tree.unit_bytes(), config.tree.unit_bytes());
        let is_whole = self.looked.all_fit && !self.looked.workload.is_estimated();
        same_source
            && of(ours) == of(config)
            && std::mem::discriminant(&ours.tree) == std::mem::discriminant(&config.tree)
            && (read_for == unit || (read_for < unit && is_whole))
    }

    /// The report before its first configuration, for so many configurations with the options of
    /// this one.
    fn begin(&self, config: &ReplayConfig, requested: usize) -> PredictReport {
        let looked = &self.looked;
        let measured = |kind| looked.workload.measured.of(kind);
        PredictReport {
            schema: crate::report::PREDICT_SCHEMA,
            trace: frame::trace(looked, looked.ops),
            preload: looked.loads.report.clone(),
            tree: config.tree.name().into(),
            device: PredictedDevice {
                kind: config.target.kind(),
                profile: config.target.name(),
            },
            options: frame::options_of_pass(config),
            ops: ByOp {
                get: measured(OpKind::Get),
                put: measured(OpKind::Put),
                delete: measured(OpKind::Delete),
                scan: measured(OpKind::Scan),
            },
            passes: 1,
            requested: requested as u64,
            ..PredictReport::default()
        }
    }

    /// Predicts configurations that suit the pass, and tells of each group. Returns `false` if it
    /// was stopped before the last.
    fn predict_all(
        &mut self,
        configs: &[ReplayConfig],
        mut order: Vec<usize>,
        told: &mut dyn FnMut(&Pass<'_>, Predicted) -> Result<(), ReplayError>,
    ) -> Result<bool, ReplayError> {
        // Only one shape of leaves is grown at a time.
        while let Some(first) = order.first() {
            let shape = leaf_shape(&configs[*first]);
            let (now, later) = order
                .into_iter()
                .partition(|i| leaf_shape(&configs[*i]) == shape);
            order = later;
            if !self.predict_shape(configs, now, told)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The same for configurations with the same shape of leaves.
    fn predict_shape(
        &mut self,
        configs: &[ReplayConfig],
        order: Vec<usize>,
        told: &mut dyn FnMut(&Pass<'_>, Predicted) -> Result<(), ReplayError>,
    ) -> Result<bool, ReplayError> {
        let mut stores: Vec<Vec<(usize, Asked<'_>)>> = Vec::new();
        for i in order {
            let config = &configs[i];
            if config.stop.is_set() {
                return Ok(false);
            }
            let (Tree::Pages(options), Place::Drive(drive)) = (&config.tree, config.target.place())
            else {
                let run = self.predict(config);
                told(self, vec![(i, run)])?;
                continue;
            };
            match Asked::new((config, options), drive, &self.looked, &mut self.leaves) {
                Err(e) => told(self, vec![(i, Err(e))])?,
                Ok(asked) => put(&mut stores, (i, asked)),
            }
        }
        for store in stores {
            if store.iter().any(|(i, _)| configs[*i].stop.is_set()) {
                return Ok(false);
            }
            let asked: Vec<&Asked<'_>> = store.iter().map(|(_, asked)| asked).collect();
            let runs = pages::forecast(&asked, &self.looked);
            let runs = runs.into_iter().map(|run| Ok(self.finished(run)));
            told(self, store.iter().map(|(i, _)| *i).zip(runs).collect())?;
        }
        Ok(true)
    }

    /// Predicts a configuration without a store of pages.
    fn predict(&mut self, config: &ReplayConfig) -> Result<PredictedRun, ReplayError> {
        let looked = &self.looked;
        let run = match (&config.tree, config.target.place()) {
            (Tree::Direct, Place::Drive(asked)) => {
                let places = match self.places.take() {
                    Some(places) => places,
                    None => Places::find(config, looked)?,
                };
                direct::forecast(config, asked, looked, self.places.insert(places))?
            }
            (Tree::Pm(options), Place::Memory(profile, bytes)) => {
                persistent::forecast((config, options), (profile, bytes), looked)
            }
            (tree, _) => return Err(tree.not_on(&config.target)),
        };
        Ok(self.finished(run))
    }

    /// A run with what the pass says of all.
    fn finished(&self, mut run: PredictedRun) -> PredictedRun {
        let looked = &self.looked;
        run.user_bytes = looked.workload.measured.user_bytes;
        run.warnings.extend(frame::skipped(looked.skipped));
        if run.user_bytes == 0 {
            run.warnings.push(frame::NOTHING_WRITTEN.into());
        }
        run
    }
}

/// What decides how leaves grow, of a tree of pages.
fn leaf_shape(config: &ReplayConfig) -> Option<(usize, LayoutChoice)> {
    match &config.tree {
        Tree::Pages(options) => Some((options.page_size, options.leaf_layouts())),
        Tree::Pm(_) | Tree::Direct => None,
    }
}

/// Puts a configuration with the others that have its store.
fn put<'a>(stores: &mut Vec<Vec<(usize, Asked<'a>)>>, new: (usize, Asked<'a>)) {
    let has_it = |store: &&mut Vec<(usize, Asked<'_>)>| {
        (store.first()).is_some_and(|(_, asked)| asked.has_store_of(&new.1))
    };
    match stores.iter_mut().find(has_it) {
        Some(store) => store.push(new),
        None => stores.push(vec![new]),
    }
}
