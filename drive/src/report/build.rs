//! Builds the report from the counts of a replay.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde_json::{Value, json};
use treering_engine::BLOCK_SIZE;
use treering_sim::replay::{block_wa, lifetime, unsteady_drive};
use treering_sim::report::{DeviceReport, PredictedValue, WaReport};

use super::{
    Cause, Chain, Device, DriveReport, MeasuredPart, Program, Recorded, SCHEMA, Timeline, Times,
    TopFile,
};
use crate::causes::{CauseId, Causes};
use crate::error::DriveError;
use crate::face::{Face, FileSystem};
use crate::measure::{self, Account, Looked, Measured, Outcome, Progress, Settings};
use crate::recording::Contents;

/// Files that a report lists.
const MOST_FILES: usize = 20;
const BLOCK: u64 = BLOCK_SIZE as u64;
/// Recordings that are shorter do not tell the volume of a day: one hour.
const LEAST_SPAN_NS: u64 = 3_600_000_000_000;

impl DriveReport {
    /// Replays a recording on all drives, and reports what they did.
    ///
    /// # Errors
    /// [`DriveError`] if the recording cannot be read, or a drive cannot be built or is full.
    pub fn measure(settings: &Settings, progress: Progress<'_>) -> Result<DriveReport, DriveError> {
        let outcome = measure::replay(settings, progress)?;
        let Outcome {
            looked,
            account,
            causes,
            drives,
        } = &outcome;
        let file_bytes = account.sum(|c| if c.of_file_system { 0 } else { c.bytes });
        let user_bytes = settings.user_bytes.or(account.user_bytes());
        let (over, over_bytes) = match user_bytes {
            Some(bytes) => ("user", bytes),
            None => ("file", file_bytes),
        };
        let span_ns = looked.wall_ns.saturating_sub(account.timeline.begin_ns);
        let of = (over_bytes, span_ns);
        let device = |drive| Device::new(settings, drive, of);
        let devices: Vec<Device> = drives.iter().filter_map(device).collect();
        let Some(first) = devices.first() else {
            return Err(DriveError::Parameter {
                name: "device",
                why: "expected at least one".into(),
            });
        };
        let order = order(account);
        let cause = |&at| Cause::new(at, account, causes, drives);
        Ok(DriveReport {
            schema: SCHEMA,
            complete: looked.truncated.is_none(),
            program: Program {
                command: looked.header.command.clone(),
                user_bytes,
                ended: None,
            },
            face: looked.header.face.name().into(),
            recording: recording(settings, looked, account),
            measured: MeasuredPart {
                wall_ns: span_ns,
                over,
                over_bytes,
                marks: account.marks,
            },
            chain: Chain {
                user_bytes,
                file_bytes,
                host_bytes: BLOCK * account.sum(|c| c.blocks),
                nand_bytes: drives.first().map_or(0, programmed),
            },
            causes: order.iter().map(cause).collect(),
            wa: first.wa.clone(),
            device: first.device.clone(),
            lifetime: first.lifetime,
            timeline: timeline(account, &order, drives.len()),
            files: files(account, causes),
            options: options(settings),
            warnings: warnings(looked, account, over_bytes),
            devices,
        })
    }
}

fn recording(settings: &Settings, looked: &Looked, account: &Account) -> Recorded {
    Recorded {
        file: settings.log.display().to_string(),
        events: looked.events,
        file_bytes: looked.summary.map(|summary| summary.file_bytes),
        bytes: account.sum(|c| c.bytes),
        writes: account.sum(|c| c.writes),
        flushes: account.sum(|c| c.flushes),
        contents: looked.header.contents == Contents::All && !looked.lacks_contents,
        page_cache: looked.header.page_cache,
        wall_ns: looked.wall_ns,
    }
}

/// Bytes that a drive programmed in the measured part.
fn programmed(drive: &Measured) -> u64 {
    drive.run().map_or(0, |run| {
        let (before, after) = (run.before.flash, run.after.flash);
        after.nand_host + after.nand_gc - before.nand_host - before.nand_gc
    })
}

/// Causes that did anything, the one with the most bytes first.
fn order(account: &Account) -> Vec<usize> {
    let any = |at: &usize| {
        let c = &account.causes[*at];
        c.writes + c.blocks + c.flushes + c.discarded_blocks + c.metadata > 0
    };
    let mut order: Vec<usize> = (0..account.causes.len()).filter(any).collect();
    order.sort_by_key(|&at| Reverse(account.causes[at].blocks));
    order
}

impl Cause {
    fn new(at: usize, account: &Account, causes: &Causes, drives: &[Measured]) -> Cause {
        let totals = &account.causes[at];
        let host_bytes = totals.blocks * BLOCK;
        let stored = drives.iter().find_map(|drive| drive.stored(at));
        let alpha = stored.filter(|_| host_bytes > 0);
        Cause {
            name: causes.names()[at].clone(),
            bytes: totals.bytes,
            host_bytes,
            writes: totals.writes,
            flushes: totals.flushes,
            discards: totals.discarded_blocks * BLOCK,
            metadata: totals.metadata,
            of_file_system: totals.of_file_system,
            alpha: alpha.map(|stored| stored as f64 / host_bytes as f64),
            gc_bytes: drives.iter().map(|drive| drive.moved(at)).collect(),
        }
    }
}

impl Device {
    fn new(
        settings: &Settings,
        drive: &Measured,
        (over_bytes, span_ns): (u64, u64),
    ) -> Option<Device> {
        let on = drive.run()?;
        let predicted = drive.predicted();
        let wa = block_wa(&on, (drive.written(), over_bytes), predicted.as_ref());
        // A benchmark's minute says nothing about a day.
        let spans = (over_bytes, Some(span_ns).filter(|ns| *ns >= LEAST_SPAN_NS));
        let small = on.asked.profile.too_small(drive.drive.capacity_blocks());
        let mut warnings: Vec<String> = small.into_iter().collect();
        if over_bytes > 0 {
            warnings.extend(unsteady_drive(&on));
        }
        let times = drive.latency_ns().map(|latency| Times {
            p50: latency.value_at_quantile(0.5),
            p99: latency.value_at_quantile(0.99),
            p999: latency.value_at_quantile(0.999),
            max: latency.max(),
        });
        Some(Device {
            device: DeviceReport {
                profile: drive.target.name(),
                ..drive.drive.report(&on.before, &on.after)
            },
            outside: outside(&wa),
            miniature: predicted.as_ref().and_then(|p| p.miniature()),
            lifetime: lifetime(settings.daily_bytes, &on, &wa, spans),
            wa,
            latency_ns: times,
            warnings,
        })
    }
}

/// The measured values of the drive that are outside the intervals of their predictions.
fn outside(wa: &WaReport) -> Vec<&'static str> {
    let predicted = wa.predicted.as_ref().and_then(|p| p.device);
    let error = wa.error.as_ref().and_then(|e| e.device);
    let (Some(measured), Some(predicted), Some(error)) = (wa.device, predicted, error) else {
        return Vec::new();
    };
    let is_out = |measured: f64, predicted: PredictedValue, error: Option<f64>| {
        error.is_some() && !predicted.holds(measured)
    };
    let total = is_out(measured.total, predicted.total, error.total);
    let gc = is_out(measured.gc, predicted.gc, error.gc);
    let named = [("device.total", total), ("device.gc", gc)];
    named
        .into_iter()
        .filter_map(|(path, out)| out.then_some(path))
        .collect()
}

fn timeline(account: &Account, order: &[usize], drives: usize) -> Timeline {
    let stretches = &account.timeline.stretches;
    let at = |bytes: &[u64], i: usize| bytes.get(i).copied().unwrap_or(0);
    let of_cause = |&cause: &usize| {
        let bytes = stretches.iter().map(|s| at(&s.host_bytes, cause));
        bytes.collect()
    };
    let of_drive = |drive| stretches.iter().map(|s| at(&s.gc_bytes, drive)).collect();
    Timeline {
        stretch_ns: account.timeline.width_ns,
        host_bytes: order.iter().map(of_cause).collect(),
        gc_bytes: (0..drives).map(of_drive).collect(),
    }
}

/// The files with the most bytes; files that had the same name and cause one after another are one.
fn files(account: &Account, causes: &Causes) -> Vec<TopFile> {
    let mut by_path: BTreeMap<(&[u8], CauseId), (u64, u64)> = BTreeMap::new();
    for file in account.files.values() {
        let path = file.path.as_deref().unwrap_or(b"(no name)");
        let (bytes, blocks) = by_path.entry((path, file.cause)).or_default();
        *bytes += file.bytes;
        *blocks += file.blocks;
    }
    let mut all: Vec<_> = by_path.into_iter().collect();
    all.sort_by_key(|(_, (_, blocks))| Reverse(*blocks));
    let listed = all.into_iter().take(MOST_FILES);
    let row = |((path, cause), (bytes, blocks)): ((&[u8], CauseId), (u64, u64))| TopFile {
        path: String::from_utf8_lossy(path).into_owned(),
        cause: causes.names()[usize::from(cause)].clone(),
        bytes,
        host_bytes: blocks * BLOCK,
    };
    listed.map(row).collect()
}

fn options(settings: &Settings) -> BTreeMap<String, Value> {
    let devices: Vec<String> = settings.devices.iter().map(|d| d.name()).collect();
    let named = [
        ("device", json!(devices)),
        ("fill", json!(settings.fill)),
        ("no-discard", json!(!settings.discards)),
        ("timing", json!(settings.timing)),
        ("seed", json!(settings.seed)),
    ];
    let owned = named
        .into_iter()
        .map(|(name, value)| (name.to_string(), value));
    owned.collect()
}

fn warnings(looked: &Looked, account: &Account, over_bytes: u64) -> Vec<String> {
    let mut all = Vec::new();
    if let Some(cut) = looked.truncated {
        all.push(format!(
            "The recording was cut off after {} events (byte {}); what followed is not in it.",
            cut.events, cut.offset
        ));
    }
    if over_bytes == 0 {
        all.push("Nothing was written in the measured part.".into());
    }
    let of_files = account.sum(|c| if c.of_file_system { 0 } else { c.blocks });
    if looked.header.face == Face::Disk(FileSystem::None) && of_files > 0 {
        all.push("Without a file system, nothing tells what a block is for.".into());
    }
    all
}
