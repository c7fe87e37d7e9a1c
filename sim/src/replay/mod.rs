//! A trace through the real engine on a device.
//!
//! ```text
//! trace ──▶ plan ───▶ simulated | real_file ──▶ outcome ──▶ report
//!            │ sizes    the engine at work       counters     measured beside predicted
//!            └──▶ predict: from the trace's statistics alone ────▲
//! ```

mod config;
mod drive;
mod kernel;
mod measure;
mod outcome;
mod persistent;
mod plan;
mod preload;
mod real_file;
mod rig;
mod simulated;
mod stop;
pub mod values;

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use drive::Drive;
use outcome::{Material, Outcome};
use plan::Plan;

use treering_engine::device::BlockDevice;
use treering_engine::device::FileOptions;
use treering_engine::{BLOCK_SIZE, Kv, Options};
use treering_traces::Op;

use crate::csd::{CsdError, CsdProfile, SimCsd};
use crate::predict::device::{Before, Cleaning};
use crate::predict::{self, Compression, DeviceParams, Pace};
use crate::report::{self, CompressionReport, DeviceReport, ReplayReport};
use crate::ssd::{GcPolicy, SimSsd, SsdProfile, TimingMode};

pub use config::{Acknowledge, Oversize, Precondition, ReplayConfig, Size, Target};
pub use persistent::{PmReplayConfig, run_pm};
pub use preload::{Evidence, Preload, PreloadReport};
pub use rig::{Part, Rig};
pub use stop::Stop;

/// Why a replay could not be done.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The trace is at fault.
    #[error(transparent)]
    Trace(#[from] treering_traces::TraceError),
    /// An operation of the trace cannot be done on a store like this.
    #[error("{trace}, operation {op}: {why}")]
    Operation {
        /// The trace file.
        trace: String,
        /// The operation's number, from 1.
        op: u64,
        /// What is wrong with it.
        why: String,
    },
    /// The trace has nothing to replay.
    #[error("{trace}: the trace has no operation; expected one or more")]
    Empty {
        /// The trace's file.
        trace: String,
    },
    /// A setting cannot work.
    #[error("--{flag}: {why}")]
    Setting {
        /// The flag.
        flag: &'static str,
        /// What was found and what is expected.
        why: String,
    },
    /// The store failed.
    #[error("{device}: {source}")]
    Engine {
        /// The device's name, or the file.
        device: String,
        /// The cause.
        source: treering_engine::Error,
    },
    /// The simulated drive cannot be built like this.
    #[error(transparent)]
    Ssd(#[from] crate::ssd::SsdError),
    /// The simulated compressing drive cannot be built like this.
    #[error(transparent)]
    Csd(#[from] CsdError),
    /// The simulated persistent memory cannot be built like this.
    #[error(transparent)]
    Pm(#[from] crate::pm::PmError),
    /// Engine and drive disagree about what was written: a bug in one of them.
    #[error(
        "the engine counted {engine} bytes of class {class}, the drive {drive}: please report this"
    )]
    CountersDiffer {
        /// `log`, `page` or `extra`.
        class: &'static str,
        /// By the engine.
        engine: u64,
        /// By the drive.
        drive: u64,
    },
}

/// What ends a run: the engine's errors are kept apart until the device's name can be added.
enum Failure {
    Replay(ReplayError),
    Engine(treering_engine::Error),
}

impl Failure {
    fn on(self, device: &str) -> ReplayError {
        match self {
            Failure::Replay(e) => e,
            Failure::Engine(source) => ReplayError::Engine {
                device: device.into(),
                source,
            },
        }
    }
}

impl From<treering_engine::Error> for Failure {
    fn from(e: treering_engine::Error) -> Self {
        Failure::Engine(e)
    }
}

impl From<ReplayError> for Failure {
    fn from(e: ReplayError) -> Self {
        Failure::Replay(e)
    }
}

impl From<treering_traces::TraceError> for Failure {
    fn from(e: treering_traces::TraceError) -> Self {
        Failure::Replay(e.into())
    }
}

/// Does a scan of a trace: as many records as it says, and at least one.
fn scan(store: &dyn Kv, op: &Op) -> treering_engine::Result<()> {
    let mut left = op.scan_len;
    store.scan(&op.key, &mut |_, _| {
        left = left.saturating_sub(1);
        match left {
            0 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    })
}

/// What a reader of the report of an interrupted replay should know.
fn interrupted(done: u64, of: u64) -> Option<String> {
    (done < of).then(|| {
        format!("Interrupted after {done} of {of} operations: all figures are of these, and nothing is predicted.")
    })
}

/// How far a replay is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Finding out what was there before the trace: operations so far, of so many.
    Survey(u64, u64),
    /// Looking through the trace: operations so far, of so many.
    Analyse(u64, u64),
    /// Replaying: operations so far, of so many. Told first of none, when the device and the store
    /// are made.
    Replay(u64, u64),
}

/// Replays a trace. `progress` is called every few ten thousand operations.
///
/// # Errors
/// [`ReplayError`].
pub fn run(
    config: &ReplayConfig,
    progress: &mut dyn FnMut(Progress),
) -> Result<ReplayReport, ReplayError> {
    let plan = plan::plan(config, progress)?;
    let ran = match &config.target {
        Target::Ssd {
            profile,
            name,
            precondition,
            ..
        } => on_ssd(config, &plan, profile, name, *precondition, progress)?,
        Target::Csd {
            profile,
            name,
            precondition,
            ..
        } => on_csd(config, &plan, (profile, name), *precondition, progress)?,
        Target::File(path, choices) => {
            on_file(config, &plan, (path.as_path(), *choices), progress)?
        }
    };
    // Predictions are of the whole trace.
    let complete = ran.outcome.done_ops == plan.ops;
    let prediction = (config.predict && complete)
        .then(|| predict::predict(&plan.workload, &plan.engine, &ran.params, ran.pace.as_ref()));
    Ok(outcome::report(Material {
        config,
        plan: &plan,
        outcome: ran.outcome,
        prediction,
        device: ran.device,
        drive: ran.drive.as_ref(),
    }))
}

/// A run, and what the predictor may know of its device.
struct Ran {
    outcome: Outcome,
    device: DeviceReport,
    params: DeviceParams,
    pace: Option<Pace>,
    drive: Option<Drive>,
}

fn timing_mode(config: &ReplayConfig) -> TimingMode {
    if config.timing {
        TimingMode::Queued
    } else {
        TimingMode::Counting
    }
}

fn on_ssd(
    config: &ReplayConfig,
    plan: &Plan,
    profile: &SsdProfile,
    name: &str,
    precondition: Precondition,
    progress: &mut dyn FnMut(Progress),
) -> Result<Ran, ReplayError> {
    let mode = timing_mode(config);
    let drive = Arc::new(SimSsd::new(profile, plan.device_blocks, mode, config.seed)?);
    let on = Drive::Ssd(Arc::clone(&drive));
    on.prepare(precondition, config.seed);
    let outcome = simulated::run(config, plan, on, name, progress)?;
    Ok(Ran {
        device: ssd_report(profile, name, &drive, &outcome, plan),
        params: device_params(profile, &drive, plan, precondition),
        pace: Some(Pace {
            clients: config.clients,
            commits: config.acknowledge == Acknowledge::Commit,
            read_ns: drive.read_ns(bytes_read(&plan.engine)) as f64,
            flush_ns: drive.write_ns(BLOCK_SIZE) as f64,
        }),
        outcome,
        drive: Some(Drive::Ssd(drive)),
    })
}

fn on_csd(
    config: &ReplayConfig,
    plan: &Plan,
    (profile, name): (&CsdProfile, &str),
    precondition: Precondition,
    progress: &mut dyn FnMut(Progress),
) -> Result<Ran, ReplayError> {
    let mode = timing_mode(config);
    let drive = Arc::new(SimCsd::new(profile, plan.device_blocks, mode, config.seed)?);
    let on = Drive::Csd(Arc::clone(&drive));
    on.prepare(precondition, config.seed);
    let outcome = simulated::run(config, plan, on, name, progress)?;
    let clients = (config.clients, config.acknowledge);
    let (params, pace) = csd_params(profile, &drive, &plan.engine, clients, config.seed);
    let params = DeviceParams {
        before: before(precondition),
        ..params
    };
    Ok(Ran {
        device: csd_report(profile, name, &drive, &outcome, plan),
        params,
        pace: Some(pace),
        outcome,
        drive: Some(Drive::Csd(drive)),
    })
}

/// Of one page: its log block is read with it.
fn bytes_read(engine: &Options) -> usize {
    engine.page_size + engine.mod_log.map_or(0, |_| BLOCK_SIZE)
}

/// A compressing drive and its clients as the predictors need them.
fn csd_params(
    profile: &CsdProfile,
    drive: &SimCsd,
    engine: &Options,
    (clients, acknowledge): (u32, Acknowledge),
    seed: u64,
) -> (DeviceParams, Pace) {
    let params = DeviceParams {
        capacity_blocks: BlockDevice::capacity_blocks(drive),
        physical_pages: drive.log_bytes() as f64 / BLOCK_SIZE as f64,
        pages_per_block: profile.flash.pages_per_block,
        before: Before::Nothing,
        before_block: crate::csd::device::foreign_share(profile),
        cleaning: cleaning(&profile.flash),
        compression: Some(Compression {
            codec: drive.codec(),
            extent_header: f64::from(profile.extent_header_bytes),
            seed,
        }),
    };
    let pace = Pace {
        clients,
        commits: acknowledge == Acknowledge::Commit,
        read_ns: drive.read_ns(bytes_read(engine)) as f64,
        flush_ns: drive.write_ns(BLOCK_SIZE) as f64,
    };
    (params, pace)
}

fn on_file(
    config: &ReplayConfig,
    plan: &Plan,
    (path, choices): (&Path, FileOptions),
    progress: &mut dyn FnMut(Progress),
) -> Result<Ran, ReplayError> {
    Ok(Ran {
        outcome: real_file::run(config, plan, (path, choices), progress)?,
        device: DeviceReport {
            kind: "file".into(),
            profile: path.display().to_string(),
            logical_blocks: plan.device_blocks,
            ..DeviceReport::default()
        },
        // Nothing is known of the drive below a file; what is predicted of it is not shown.
        params: DeviceParams {
            capacity_blocks: plan.device_blocks,
            physical_pages: plan.device_blocks as f64,
            pages_per_block: 256,
            before: Before::Nothing,
            before_block: 1.0,
            cleaning: Cleaning::Greedy,
            compression: None,
        },
        pace: None,
        drive: None,
    })
}

fn device_params(
    profile: &SsdProfile,
    drive: &SimSsd,
    plan: &Plan,
    precondition: Precondition,
) -> DeviceParams {
    DeviceParams {
        capacity_blocks: plan.device_blocks,
        physical_pages: drive.alpha() * plan.device_blocks as f64,
        pages_per_block: profile.pages_per_block,
        before: before(precondition),
        before_block: 1.0,
        cleaning: cleaning(profile),
        compression: None,
    }
}

/// What a prepared drive holds, as predictors call it.
fn before(precondition: Precondition) -> Before {
    match precondition {
        Precondition::None => Before::Nothing,
        Precondition::Fill => Before::InOrder,
        Precondition::Steady => Before::Scattered,
    }
}

fn cleaning(profile: &SsdProfile) -> Cleaning {
    match GcPolicy::parse(&profile.gc) {
        Some(GcPolicy::Fifo) => Cleaning::Fifo,
        Some(GcPolicy::DChoices(d)) => Cleaning::DChoices(d),
        // Between FIFO and greedy, and without a closed form: the report says so.
        Some(GcPolicy::Greedy | GcPolicy::CostBenefit | GcPolicy::WindowedGreedy(_)) | None => {
            Cleaning::Greedy
        }
    }
}

fn csd_report(
    profile: &CsdProfile,
    name: &str,
    drive: &SimCsd,
    outcome: &Outcome,
    plan: &Plan,
) -> DeviceReport {
    let log = drive.log_bytes() as f64;
    let logical = (plan.device_blocks * BLOCK_SIZE as u64) as f64;
    let erased = (outcome.drive.as_ref()).is_some_and(|(a, b)| b.erases > a.erases);
    DeviceReport {
        kind: "csd".into(),
        profile: name.into(),
        logical_blocks: plan.device_blocks,
        over_provisioning_definition:
            "T/P - 1: bytes of the log (free reserve and frontier left out) over nominal flash P, minus one; P is logical bytes over \
             logical_over_physical"
                .into(),
        over_provisioning: Some(log / (logical / profile.logical_over_physical) - 1.0),
        alpha: Some(log / logical),
        effective_alpha: Some(log / drive.mean_live_bytes().max(1.0)),
        pages_per_block: Some(profile.flash.pages_per_block),
        gc: Some(profile.flash.gc.clone()),
        gc_reached: Some(erased),
        compression: outcome.compression.as_ref().map(|(a, b)| CompressionReport {
            codec: profile.codec.clone(),
            level: profile.level,
            logical_over_physical: profile.logical_over_physical,
            capacity_bytes: drive.capacity_bytes(),
            zero_blocks: b.zero_blocks - a.zero_blocks,
            compressed_blocks: b.compressed_blocks - a.compressed_blocks,
            remembered_blocks: b.remembered_blocks - a.remembered_blocks,
            padding_bytes: b.padding - a.padding,
        }),
        profile_values: report::flat(profile),
    }
}

fn ssd_report(
    profile: &SsdProfile,
    name: &str,
    drive: &SimSsd,
    outcome: &Outcome,
    plan: &Plan,
) -> DeviceReport {
    let in_use = drive.mean_in_use_pages().max(1.0);
    let physical = drive.alpha() * plan.device_blocks as f64;
    let erased = outcome
        .drive
        .as_ref()
        .is_some_and(|(a, b)| b.erases > a.erases);
    DeviceReport {
        kind: "ssd".into(),
        profile: name.into(),
        logical_blocks: plan.device_blocks,
        over_provisioning_definition:
            "T/U - 1: physical pages of the log (free reserve and frontier left out) over logical pages, minus one".into(),
        over_provisioning: Some(drive.alpha() - 1.0),
        alpha: Some(drive.alpha()),
        effective_alpha: Some(physical / in_use),
        pages_per_block: Some(profile.pages_per_block),
        gc: Some(profile.gc.clone()),
        gc_reached: Some(erased),
        compression: None,
        profile_values: report::flat(profile),
    }
}
