//! The report of a drive without a tree.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use treering_engine::BLOCK_SIZE;

use super::predict::Predicted;
use crate::drive::{DriveCounters, SimDrive};
use crate::replay::config::ReplayConfig;
use crate::replay::frame::{Said, frame, named};
use crate::replay::look::Looked;
use crate::replay::measure::Outcome;
use crate::replay::pages::{Drive, csd_wa, device_wa, errors, host_wa, lifetime, unsteady_drive};
use crate::replay::target::AskedDrive;
use crate::report::{
    DeviceReport, DeviceWa, DirectReport, HostReport, HostWa, IoBytes, PredictedRun,
    PredictedValue, ReplayReport, SpaceReport, StoreReport, WaReport, WaSide, with_bars,
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
    pub(super) predicted: Option<Predicted>,
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
    let on = Drive {
        drive,
        asked,
        before: outcome.before.device,
        after: outcome.after.device,
    };
    let user_bytes = report.user_bytes;
    let written = after.written.since(&before.written);
    let csd = csd_wa(&on, user_bytes);
    let measured = WaSide {
        host: host_wa(&written, user_bytes),
        device: Some(device_wa(&on.before.flash, &on.after.flash, user_bytes)),
        csd: csd.map(|csd| csd.stored),
    };
    let predicted = (material.predicted.as_ref())
        .filter(|_| user_bytes > 0)
        .map(|p| side(p, user_bytes, csd.is_some()));
    report.wa = WaReport {
        host: HostReport {
            by_class: measured.host,
            page_causes: None,
        },
        device: measured.device,
        error: (predicted.as_ref()).map(|p| errors(&measured, &p.values())),
        predicted,
        csd,
        untried: Vec::new(),
    };
    let spans = (user_bytes, looked.measured_span_ns);
    report.lifetime = Some(lifetime(config, &on, &report.wa, spans));
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
    let played = material.predicted.as_ref().and_then(|p| p.played.as_ref());
    report.direct = Some(DirectReport {
        data_blocks: material.data_blocks,
        miniature: played.map(|played| played.miniature),
    });
    report
}

/// Builds what is predicted without a run.
pub(super) fn forecast(on: On<'_>, looked: &Looked, predicted: Option<Predicted>) -> PredictedRun {
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
fn short(p: &Predicted, drive: &dyn SimDrive) -> Option<String> {
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

/// The predicted side of write amplification.
fn side(p: &Predicted, user_bytes: u64, compresses: bool) -> WaSide<PredictedValue> {
    let over = |bytes: f64| bytes / user_bytes as f64;
    let of_blocks = |bytes: f64| HostWa {
        page: over(bytes),
        total: over(bytes),
        ..HostWa::default()
    };
    let (host, gc) = (p.programmed_bytes, p.gc_bytes);
    let values = WaSide {
        host: of_blocks(p.host_bytes as f64),
        device: Some(DeviceWa {
            total: over(host + gc),
            gc: over(gc),
            nand_over_host: (host + gc) / (p.host_bytes as f64).max(1.0),
        }),
        csd: compresses.then(|| of_blocks(p.compressed_bytes as f64)),
    };
    let bars = p.played.as_ref().map(|played| &played.bars);
    with_bars(&values, bars, p.model)
}
