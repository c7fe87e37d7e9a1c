//! The report of a drive without a tree.

use serde_json::json;
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
    DeviceReport, DeviceWa, DirectReport, HostReport, HostWa, IoBytes, ReplayReport, SpaceReport,
    StoreReport, WaReport, WaSide,
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
        .map(|p| predicted_side(p, user_bytes, csd.is_some()));
    report.wa = WaReport {
        host: HostReport {
            by_class: measured.host,
            page_causes: None,
        },
        device: measured.device,
        error: predicted.as_ref().map(|p| errors(&measured, p)),
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
        report.warnings.extend(short(material));
    }
    let flash = asked.profile.flash();
    report.options.extend(named([
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
    ]));
    report.direct = Some(DirectReport {
        data_blocks: material.data_blocks,
        miniature: material.predicted.as_ref().map(|p| p.miniature),
    });
    report
}

/// A warning about a measured part in which garbage collection has hardly begun its round: a
/// miniature then shows what its few erase blocks held by chance.
fn short(material: &Material<'_>) -> Option<String> {
    let p = material.predicted.as_ref()?;
    let share = p.flash.host_bytes as f64 / material.drive.log_bytes();
    (share < LEAST_ROUND && p.flash.gc_reached).then(|| {
        format!(
            "The measured part writes {:.1} % of the flash: garbage collection is predicted for \
             longer runs (more operations would change that).",
            100.0 * share
        )
    })
}

/// The predicted side of write amplification.
fn predicted_side(p: &Predicted, user_bytes: u64, compresses: bool) -> WaSide<f64> {
    let over = |bytes: f64| bytes / user_bytes as f64;
    let of_blocks = |bytes: f64| HostWa {
        page: over(bytes),
        total: over(bytes),
        ..HostWa::default()
    };
    let (host, gc) = (p.flash.host_bytes as f64, p.flash.gc_bytes());
    WaSide {
        host: of_blocks(p.host_bytes as f64),
        device: Some(DeviceWa {
            total: over(host + gc),
            gc: over(gc),
            nand_over_host: (host + gc) / (p.host_bytes as f64).max(1.0),
        }),
        csd: compresses.then(|| of_blocks(p.compressed_bytes as f64)),
    }
}
