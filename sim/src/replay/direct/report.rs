//! The report of a drive without a tree.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use treering_engine::BLOCK_SIZE;

use crate::drive::{DriveCounters, SimDrive};
use crate::replay::blocks::{BlockPrediction, block_wa, side};
use crate::replay::config::ReplayConfig;
use crate::replay::frame::{Said, frame, named};
use crate::replay::look::Looked;
use crate::replay::measure::Outcome;
use crate::replay::measured::{DriveRun, lifetime, unsteady_drive};
use crate::replay::target::AskedDrive;
use crate::report::{
    DeviceReport, DirectReport, IoBytes, PredictedRun, ReplayReport, SpaceReport, StoreReport,
};

/// Share of the flash that a run must write for its garbage collection to be predicted well.
const LEAST_ROUND: f64 = 0.25;

/// The inputs of a report besides the run.
pub(super) struct Material<'a> {
    pub(super) config: &'a ReplayConfig,
    pub(super) looked: &'a Looked,
    pub(super) drive: &'a dyn SimDrive,
    pub(super) asked: AskedDrive<'a>,
    /// Blocks of all records.
    pub(super) data_blocks: u64,
    pub(super) predicted: Option<BlockPrediction>,
}

/// Builds the report.
pub(super) fn report(material: &Material<'_>, mut outcome: Outcome<DriveCounters>) -> ReplayReport {
    let Material {
        config,
        looked,
        drive,
        asked,
        ..
    } = *material;
    let planned = asked.profile.too_small(drive.capacity_blocks());
    let said = Said {
        planned: planned.into_iter().collect(),
        predicted: Vec::new(),
    };
    let mut report = frame((config, looked), &mut outcome, said);
    // A block is replayed as a block.
    report.trace.blocks = None;
    let (before, after) = (&outcome.before.stats, &outcome.after.stats);
    let on = DriveRun {
        drive,
        asked,
        before: outcome.before.device,
        after: outcome.after.device,
    };
    let user_bytes = report.user_bytes;
    let written = after.written.since(&before.written);
    report.wa = block_wa(&on, (&written, user_bytes), material.predicted.as_ref());
    let spans = (user_bytes, looked.measured_span_ns);
    report.lifetime = Some(lifetime(config.daily_bytes, &on, &report.wa, spans));
    report.io_bytes = IoBytes {
        page: written.page,
        read: after.read.since(&before.read).total(),
        trimmed: after.trimmed_bytes - before.trimmed_bytes,
        ..IoBytes::default()
    };
    report.space = SpaceReport {
        logical_bytes: material.data_blocks * BLOCK_SIZE as u64,
        physical_bytes: drive.in_use_bytes(),
        ..SpaceReport::default()
    };
    report.store = StoreReport::new("none", (before, after));
    report.device = DeviceReport {
        profile: config.target.name(),
        ..drive.report(&on.before, &on.after)
    };
    if user_bytes > 0 {
        report.warnings.extend(unsteady_drive(&on));
        let predicted = material.predicted.as_ref();
        report
            .warnings
            .extend(predicted.and_then(|p| short(p, drive)));
    }
    report.options.extend(options((config, drive, asked)));
    report.direct = Some(DirectReport {
        data_blocks: material.data_blocks,
        miniature: material
            .predicted
            .as_ref()
            .and_then(BlockPrediction::miniature),
    });
    report
}

/// Builds what is predicted without a run.
pub(super) fn forecast(
    on: On<'_>,
    looked: &Looked,
    predicted: Option<BlockPrediction>,
) -> PredictedRun {
    let (_, drive, asked) = on;
    let user_bytes = looked.workload.measured.user_bytes;
    let compresses = drive.params().compression.is_some();
    let mut warnings: Vec<String> = asked
        .profile
        .too_small(drive.capacity_blocks())
        .into_iter()
        .collect();
    let wa = predicted.as_ref().filter(|_| user_bytes > 0).map(|p| {
        warnings.extend(short(p, drive));
        side(p, user_bytes, compresses)
    });
    PredictedRun {
        options: options(on),
        wa,
        warnings,
        ..PredictedRun::default()
    }
}

/// A configuration, and the drive that it asked for.
type On<'a> = (&'a ReplayConfig, &'a dyn SimDrive, AskedDrive<'a>);

/// The options in force that only a drive without a tree has, by flag name.
fn options((config, drive, asked): On<'_>) -> BTreeMap<String, Value> {
    let flash = asked.profile.flash();
    named([
        (
            "precondition",
            json!(format!("{:?}", asked.precondition).to_lowercase()),
        ),
        (
            "capacity",
            json!(drive.capacity_blocks() * BLOCK_SIZE as u64),
        ),
        ("fill", json!(config.fill)),
        ("op", json!(flash.map(|flash| flash.over_provisioning))),
        ("gc", json!(flash.map(|flash| &flash.gc))),
    ])
}

/// A warning about a measured part in which garbage collection has hardly begun its round: a
/// miniature then shows what its few erase blocks held by chance.
fn short(p: &BlockPrediction, drive: &dyn SimDrive) -> Option<String> {
    let played = p.played.as_ref()?;
    let share = p.programmed_bytes / drive.log_bytes();
    (share < LEAST_ROUND && played.gc_reached).then(|| {
        format!(
            "The measured part writes {:.1} % of the flash: garbage collection is predicted for \
             longer runs (more operations would change that).",
            100.0 * share
        )
    })
}
