//! Replays a trace through the real engine on a device.
//!
//! ```text
//! trace ──▶ analysis ──────▶ the loop ─────────────▶ report: measured beside predicted
//!              │ sizes         source ─▶ engine on       ▲
//!              │               a device ─▶ measures      │
//!              └──▶ predict: from the trace's statistics alone
//! ```
//!
//! | part | contents |
//! |---|---|
//! | `config`, `target`, `tree` | the settings, the devices and the trees |
//! | `look`, `preload` | the pass over the trace; the records to load before it |
//! | `source`, `fit` | the numbered operations, made to fit the store |
//! | `virtual_time` | the loop: closed-loop clients on any simulated device |
//! | `measure`, `frame` | measurements, and the part of a report that all devices have |
//! | `pages`, `persistent` | trees of pages and trees in persistent memory: sizes, device, report |
//! | `direct` | no tree: the trace's own writes on a simulated drive |
//! | `measured` | what a drive did in the measured part |
//! | `blocks` | writes of blocks, measured beside predicted |
//! | `file` | real threads on a real file, with the same source and the same measures |
//! | `forecast` | predictions for many configurations without a run |
//! | `rig` | a store on a drive that experiments drive by hand |
//!
//! To add a simulated drive, implement [`SimDrive`](crate::drive::SimDrive) and
//! [`DriveProfile`](crate::drive::DriveProfile) in a folder of its own beside `ssd`, name the
//! folder in `lib.rs`, add a variant in `target`, and list it in the command line's `devices_cmd`.
//! To add a figure to the report, add it to its type in [`crate::report`], next to the sentences
//! about it, and fill it in `pages/report` or `persistent/report`.

mod blocks;
mod config;
mod direct;
mod error;
mod file;
mod fit;
mod forecast;
mod frame;
mod look;
mod measure;
mod measured;
mod pages;
mod persistent;
mod preload;
mod progress;
mod rig;
mod source;
mod statistics;
mod stop;
mod target;
mod tree;
mod virtual_time;

use target::Place;

use crate::report::ReplayReport;

pub use crate::drive::Precondition;
pub use crate::report::{Evidence, PreloadReport};
pub use crate::values;
pub use blocks::{BlockPrediction, BlockPredictor, block_wa};
pub use config::{Acknowledge, ReplayConfig, Size};
pub use error::ReplayError;
pub use fit::Oversize;
pub use forecast::{forecast, forecast_each};
pub use measured::{DriveRun, lifetime, unsteady_drive};
pub use preload::Preload;
pub use progress::{Progress, Unfit};
pub use rig::{Part, Rig};
pub use statistics::Statistics;
pub use stop::Stop;
pub use target::{AskedDrive, OwnDrive, Target};
pub use tree::Tree;

/// Replays a trace. `progress` is called every few ten thousand operations.
///
/// To replay on a tree in persistent memory:
///
/// ```
/// use treering_engine::{CclOptions, PmTreeKind};
/// use treering_sim::replay::{Progress, ReplayConfig, Target, Tree, run};
///
/// # use treering_traces::generate::{GenParams, ValueSize, Workload, build};
/// # use treering_traces::{Op, OpSource, Writer};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("zipf.trz");
/// # let mut params = GenParams::new(Workload::Zipf, 2_000);
/// # params.value_size = Some(ValueSize::fixed(8));
/// # let (header, mut source) = build(&params)?;
/// # let mut writer = Writer::create(&path, header)?;
/// # let mut op = Op::default();
/// # while source.next_op(&mut op)? {
/// #     writer.write(&op)?;
/// # }
/// # writer.finish()?;
/// let memory = Target::builtin("pm").expect("a built-in memory");
/// let mut config = ReplayConfig::new(path, memory);
/// config.tree = Tree::pm(PmTreeKind::Ccl(CclOptions::default()));
/// let mut replaying = false;
/// let report = run(&config, &mut |at| replaying |= matches!(at, Progress::Replay(..)))?;
/// let pm = report.pm.expect("it ran on persistent memory");
/// println!("{:.2} to the XPBuffer, {:.2} to the medium", pm.measured.cli, pm.measured.xbi);
/// assert!(replaying && report.complete);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`ReplayError`].
pub fn run(
    config: &ReplayConfig,
    progress: &mut dyn FnMut(Progress),
) -> Result<ReplayReport, ReplayError> {
    let report = match (&config.tree, config.target.place()) {
        (Tree::Pages(options), Place::Drive(asked)) => {
            pages::on_drive(config, options, asked, progress)
        }
        (Tree::Pages(options), Place::File(path, choices)) => {
            pages::on_file(config, options, (path, choices), progress)
        }
        (Tree::Pm(options), Place::Memory(profile, bytes)) => {
            persistent::run(config, options, (profile, bytes), progress)
        }
        (Tree::Direct, Place::Drive(asked)) => direct::run(config, asked, progress),
        (tree, _) => Err(tree.not_on(&config.target)),
    };
    report.map(ReplayReport::with_outside)
}

/// Replays a trace on several simulated drives, with one run of the tree if possible. The
/// configurations may differ in their targets and in [`ReplayConfig::daily_bytes`]; of others, all
/// reports are `None`.
///
/// A report is the one that [`run`] makes, byte for byte. It is `None` if the store would not do
/// the same on that drive as on the others, so that the configuration must be run alone: if the
/// drive has another size (give [`Target::capacity_mut`] to prevent that), or other times that
/// decide what the store does, or compresses with another codec.
///
/// ```
/// use treering_sim::replay::{ReplayConfig, Target, run, run_together};
///
/// # use treering_traces::generate::{GenParams, Workload, build};
/// # use treering_traces::{Op, OpSource, Writer};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("zipf.trz");
/// # let (header, mut source) = build(&GenParams::new(Workload::Zipf, 2_000))?;
/// # let mut writer = Writer::create(&path, header)?;
/// # let mut op = Op::default();
/// # while source.next_op(&mut op)? {
/// #     writer.write(&op)?;
/// # }
/// # writer.finish()?;
/// let mut configs = Vec::new();
/// for (device, spare) in [("csd", 0.07), ("csd", 0.28), ("ssd", 0.07)] {
///     let mut target = Target::builtin(device).expect("a built-in profile");
///     target.flash_mut().expect("it has flash").over_provisioning = spare;
///     *target.capacity_mut().expect("it is simulated") = Some(64 << 20);
///     configs.push(ReplayConfig::new(path.clone(), target));
/// }
/// let reports = run_together(&configs, &mut |_| {})?;
/// for (config, report) in configs.iter().zip(&reports) {
///     assert_eq!(report.as_ref(), Some(&run(config, &mut |_| {})?));
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`ReplayError`], also if only one of the drives cannot be built.
pub fn run_together(
    configs: &[ReplayConfig],
    progress: &mut dyn FnMut(Progress),
) -> Result<Vec<Option<ReplayReport>>, ReplayError> {
    let alone = || Ok(configs.iter().map(|_| None).collect());
    let Some(first) = configs.first() else {
        return alone();
    };
    let Tree::Pages(options) = &first.tree else {
        return alone();
    };
    let as_first = |config: &ReplayConfig| ReplayConfig {
        target: first.target.clone(),
        daily_bytes: first.daily_bytes,
        ..config.clone()
    };
    let mut asked = Vec::new();
    for config in configs {
        match config.target.place() {
            Place::Drive(drive) if as_first(config) == *first => asked.push((config, drive)),
            _ => return alone(),
        }
    }
    let reports = pages::on_drives(&asked, options, progress)?.into_iter();
    Ok(reports
        .map(|report| report.map(ReplayReport::with_outside))
        .collect())
}
