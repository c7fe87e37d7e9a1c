//! What a simulated drive did in the measured part of a run.

use treering_engine::ClassBytes;

use super::frame::over;
use super::target::AskedDrive;
use crate::drive::{DriveCounters, Precondition, SimDrive, logical_bytes};
use crate::report::{self, CsdWa, Daily, DeviceWa, HostWa, LifetimeReport, WaReport, WaSide, Worn};
use crate::ssd::{CLASSES, SsdCounters};

/// A fresh drive is steady after the host has written its capacity this often.
const STEADY_TURNS: f64 = 4.0;

/// A simulated drive, with its counters at the begin and end of the measured part.
pub struct DriveRun<'a> {
    /// The drive.
    pub drive: &'a dyn SimDrive,
    /// What was asked for.
    pub asked: AskedDrive<'a>,
    /// When the measured part began.
    pub before: DriveCounters,
    /// When it ended.
    pub after: DriveCounters,
}

pub(super) fn host_wa(written: &ClassBytes, user_bytes: u64) -> HostWa<f64> {
    HostWa {
        log: over(written.log, user_bytes),
        page: over(written.page, user_bytes),
        extra: over(written.extra, user_bytes),
        total: over(written.total(), user_bytes),
    }
}

pub(super) fn device_wa(
    before: &SsdCounters,
    after: &SsdCounters,
    user_bytes: u64,
) -> DeviceWa<f64> {
    let gc = after.nand_gc - before.nand_gc;
    let host = after.nand_host - before.nand_host;
    DeviceWa {
        total: over(host + gc, user_bytes),
        gc: over(gc, user_bytes),
        nand_over_host: over(
            host + gc,
            sum(&after.host_written) - sum(&before.host_written),
        ),
    }
}

fn sum(classes: &[u64; CLASSES]) -> u64 {
    classes.iter().sum()
}

/// The compressing drive's side of write amplification: B⁻-tree eq. (2).
pub(super) fn csd_wa(drive: &DriveRun<'_>, user_bytes: u64) -> Option<CsdWa> {
    let (before, after) = (&drive.before.flash, &drive.after.flash);
    let (from, to) = drive.before.compression.zip(drive.after.compression)?;
    let stored = |i: usize| to.stored[i] - from.stored[i];
    let written = |i: usize| after.host_written[i] - before.host_written[i];
    let alpha = |stored, written| (written > 0).then(|| over(stored, written));
    let all_stored = sum(&to.stored) - sum(&from.stored);
    let all_written = sum(&after.host_written) - sum(&before.host_written);
    let flash = after.nand_host + after.nand_gc - before.nand_host - before.nand_gc;
    Some(CsdWa {
        alpha: HostWa {
            log: alpha(stored(0), written(0)),
            page: alpha(stored(1), written(1)),
            extra: alpha(stored(2), written(2)),
            total: alpha(all_stored, all_written),
        },
        stored: HostWa {
            log: over(stored(0), user_bytes),
            page: over(stored(1), user_bytes),
            extra: over(stored(2), user_bytes),
            total: over(all_stored, user_bytes),
        },
        gc_only: over(flash, all_stored),
    })
}

pub(super) fn errors(measured: &WaSide<f64>, predicted: &WaSide<f64>) -> WaSide<Option<f64>> {
    let by_class = |measured: HostWa<f64>, predicted: HostWa<f64>| HostWa {
        log: report::error(measured.log, predicted.log, measured.total),
        page: report::error(measured.page, predicted.page, measured.total),
        extra: report::error(measured.extra, predicted.extra, measured.total),
        total: report::error(measured.total, predicted.total, measured.total),
    };
    let csd = measured.csd.zip(predicted.csd).map(|(m, p)| by_class(m, p));
    let host = by_class(measured.host, predicted.host);
    let device = measured
        .device
        .zip(predicted.device)
        .map(|(m, p)| DeviceWa {
            total: report::error(m.total, p.total, m.total),
            gc: report::error(m.gc, p.gc, m.total),
            nand_over_host: report::error(m.nand_over_host, p.nand_over_host, m.nand_over_host),
        });
    WaSide { host, device, csd }
}

/// The lifetime of the drive at the measured write amplification; `daily_bytes` are the user's bytes
/// a day, if asked for.
pub fn lifetime(
    daily_bytes: Option<u64>,
    drive: &DriveRun<'_>,
    wa: &WaReport,
    (user_bytes, span_ns): (u64, Option<u64>),
) -> LifetimeReport {
    let wear = drive.drive.wear();
    let erases = drive.after.flash.erases - drive.before.flash.erases;
    let logical_bytes = logical_bytes(drive.drive);
    let limit = drive.asked.profile.flash().and_then(|flash| flash.pe_limit);
    LifetimeReport::new(&Worn {
        erases: Some((erases, wear.mean_erases, wear.max_erases)),
        limit_cycles: limit.map(f64::from),
        medium_bytes: drive.drive.log_bytes(),
        logical_bytes,
        medium_over_host: wa.device.map_or(0.0, |d| d.nand_over_host),
        host_over_user: wa.host.total,
        daily: Daily::new(daily_bytes, user_bytes, span_ns, logical_bytes),
    })
}

/// How often the host has written the whole drive, if that is too few times for steady garbage
/// collection.
fn turns_short(drive: &DriveRun<'_>) -> Option<f64> {
    let steady = drive.asked.precondition == Precondition::Steady;
    let flash = &drive.after.flash;
    let written = flash.host_written.iter().sum::<u64>() as f64;
    let turns = written / logical_bytes(drive.drive);
    (!steady && flash.erases > 0 && turns < STEADY_TURNS).then_some(turns)
}

/// Warnings about a drive that was written too little.
pub fn unsteady_drive(drive: &DriveRun<'_>) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(turns) = turns_short(drive) {
        warnings.push(format!(
            "The drive was written {turns:.1} times over: its garbage collection may not be steady \
             yet (more operations, or --precondition steady, would change that)."
        ));
    }
    if drive.before.flash.erases == drive.after.flash.erases {
        warnings.push(
            "The drive never reached garbage collection after warm-up: its own write \
             amplification is not that of a drive in use (more operations, a smaller --capacity or \
             --precondition would change that)."
                .into(),
        );
    }
    warnings
}
