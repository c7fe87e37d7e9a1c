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
//! Without a tree, the writes of the trace are read again for each configuration.
//!
//! Plan and prediction are those of a replay, so both show the same numbers.

use treering_traces::OpKind;

use super::config::ReplayConfig;
use super::direct::{self, Places};
use super::error::{ReplayError, setting};
use super::frame;
use super::look::{Looked, look_again, look_through};
use super::pages::{self, LeafCounts};
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
    // From the smallest page on, because larger pages can share its pass.
    let mut order: Vec<usize> = (0..configs.len()).collect();
    order.sort_by_key(|i| configs[*i].tree.unit_bytes());
    let mut runs: Vec<Option<PredictedRun>> = vec![None; configs.len()];
    let mut report = PredictReport::default();
    let mut pass: Option<Pass<'_>> = None;
    for i in order {
        let config = &configs[i];
        if config.stop.is_set() {
            return Ok(report);
        }
        let mut current = match pass.take().filter(|pass| pass.suits(config)) {
            Some(pass) => pass,
            None => {
                let pass = Pass::over(config, report.passes, progress)?;
                report = pass.begin(report, configs.len());
                pass
            }
        };
        runs[i] = Some(current.predict(config)?);
        pass = Some(current);
        report.configurations = runs.iter().flatten().cloned().collect();
        report.complete = report.configurations.len() == configs.len();
        done(&report);
    }
    Ok(report)
}

/// Checks what a replay checks when it opens a store, before the trace is read.
fn check(config: &ReplayConfig) -> Result<(), ReplayError> {
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
        let of = |c: &ReplayConfig| (c.limit, c.warmup, c.oversize, c.seed, c.clients);
        let ours = self.config;
        let same_source = ours.trace == config.trace && ours.preload == config.preload;
        let (read_for, unit) = (ours.tree.unit_bytes(), config.tree.unit_bytes());
        let is_whole = self.looked.all_fit && !self.looked.workload.is_estimated();
        same_source
            && of(ours) == of(config)
            && std::mem::discriminant(&ours.tree) == std::mem::discriminant(&config.tree)
            && (read_for == unit || (read_for < unit && is_whole))
    }

    /// The report before its first configuration, or with another pass counted.
    fn begin(&self, report: PredictReport, requested: usize) -> PredictReport {
        if report.passes > 0 {
            let passes = report.passes + 1;
            return PredictReport { passes, ..report };
        }
        let (config, looked) = (self.config, &self.looked);
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
            ..report
        }
    }

    fn predict(&mut self, config: &ReplayConfig) -> Result<PredictedRun, ReplayError> {
        let looked = &self.looked;
        let mut run = match (&config.tree, config.target.place()) {
            (Tree::Pages(options), Place::Drive(asked)) => {
                pages::forecast((config, options), asked, looked, &mut self.leaves)?
            }
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
        run.user_bytes = looked.workload.measured.user_bytes;
        run.warnings.extend(frame::skipped(looked.skipped));
        if run.user_bytes == 0 {
            run.warnings.push(frame::NOTHING_WRITTEN.into());
        }
        Ok(run)
    }
}
