//! The report of a replayed recording: one structure, `treering.drive/1`, with three renderings:
//! JSON (the structure itself), [`text`] and [`html`].
//!
//! Everything is of the measured part. What is under `wa` is bytes over the program's own bytes
//! where they are known, else over the bytes of its files; `measured.over` says which. The document
//! has the fields of a replay's report for the first drive (`wa`, `device`, `lifetime`), and
//! `devices` has all drives.

mod build;
pub mod html;
pub mod text;

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use treering_sim::report::{DeviceReport, LifetimeReport, MiniatureReport, WaReport};

use crate::face::PageCache;

/// Name and version of the document.
pub const SCHEMA: &str = "treering.drive/1";

/// The report.
#[derive(Clone, Debug, Serialize)]
pub struct DriveReport {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// Whether the recording is whole: it was not cut off when its writer died.
    pub complete: bool,
    /// The program.
    pub program: Program,
    /// The face that the program saw: `files`, `ext4`, `xfs`, `btrfs` or `none`.
    pub face: String,
    /// What was recorded.
    pub recording: Recorded,
    /// The measured part.
    pub measured: MeasuredPart,
    /// Bytes on their way down: user → file → host → NAND of the first drive.
    pub chain: Chain,
    /// By cause, the one with the most bytes first.
    pub causes: Vec<Cause>,
    /// Write amplification on the first drive.
    pub wa: WaReport,
    /// The first drive.
    pub device: DeviceReport,
    /// The lifetime of the first drive.
    pub lifetime: LifetimeReport,
    /// All drives, in the order in which they were asked for.
    pub devices: Vec<Device>,
    /// The measured part in equal stretches of the recording's time.
    pub timeline: Timeline,
    /// The files with the most bytes.
    pub files: Vec<TopFile>,
    /// The options in force, by the name of the flag.
    pub options: BTreeMap<String, Value>,
    /// What a reader must know to judge the numbers.
    pub warnings: Vec<String>,
}

/// The program that was recorded.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Program {
    /// The command; empty if the drive was only mounted.
    pub command: Vec<String>,
    /// The program's own bytes in the measured part; `null` if nobody said.
    pub user_bytes: Option<u64>,
    /// How it ended; `null` if the recording was made before.
    pub ended: Option<Ended>,
}

/// How a program ended.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Ended {
    /// Its exit status; `null` if a signal ended it.
    pub status: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Seconds of wall-clock time.
    pub wall_seconds: f64,
    /// Seconds of processor time of it and its children.
    pub cpu_seconds: f64,
}

/// The recording as a whole.
#[derive(Clone, Debug, Serialize)]
pub struct Recorded {
    /// Its file, as the user gave it.
    pub file: String,
    /// Events.
    pub events: u64,
    /// Bytes of the recording's file up to its end; `null` if it was cut off.
    pub file_bytes: Option<u64>,
    /// Bytes that were written in the measured part.
    pub bytes: u64,
    /// Writes in the measured part.
    pub writes: u64,
    /// Flushes in the measured part.
    pub flushes: u64,
    /// Whether the bytes of all writes were recorded.
    pub contents: bool,
    /// Whether the kernel's page cache was above the drive.
    pub page_cache: PageCache,
    /// Wall-clock time from the first to the last event, in nanoseconds.
    pub wall_ns: u64,
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct MeasuredPart {
    /// Wall-clock time of it, in nanoseconds.
    pub wall_ns: u64,
    /// What `wa` is relative to: `user` or `file` bytes.
    pub over: &'static str,
    /// That many bytes.
    pub over_bytes: u64,
    /// Lines of `$TREERING_ACKS`.
    pub marks: u64,
}

/// Bytes on their way to the flash.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Chain {
    /// The program's own bytes; `null` if nobody said.
    pub user_bytes: Option<u64>,
    /// Bytes of files. On a real file system these are whole blocks.
    pub file_bytes: u64,
    /// Blocks of 4 KiB that reached the drive, in bytes; on a real file system with its journal and
    /// tables.
    pub host_bytes: u64,
    /// Bytes programmed by the first drive.
    pub nand_bytes: u64,
}

/// What a cause wrote.
#[derive(Clone, Debug, Serialize)]
pub struct Cause {
    /// Its name.
    pub name: String,
    /// Bytes, as they were written.
    pub bytes: u64,
    /// Blocks of 4 KiB that these bytes touched, in bytes.
    pub host_bytes: u64,
    /// Write requests.
    pub writes: u64,
    /// Flushes of its files.
    pub flushes: u64,
    /// Bytes discarded.
    pub discards: u64,
    /// Changes of names, sizes and attributes.
    pub metadata: u64,
    /// Whether it is of the file system itself, not of a file.
    pub of_file_system: bool,
    /// Compressed bytes over host bytes on the first drive that compresses; `null` without one.
    pub alpha: Option<f64>,
    /// Bytes that each drive moved of it.
    pub gc_bytes: Vec<u64>,
}

/// A drive of the table.
#[derive(Clone, Debug, Serialize)]
pub struct Device {
    /// The drive.
    pub device: DeviceReport,
    /// Write amplification, measured and predicted.
    pub wa: WaReport,
    /// Paths of measured values outside the intervals of their predictions.
    pub outside: Vec<&'static str>,
    /// How it was predicted.
    pub miniature: Option<MiniatureReport>,
    /// Its lifetime.
    pub lifetime: LifetimeReport,
    /// Times of writes one after another, in nanoseconds; `null` without `--timing`.
    pub latency_ns: Option<Times>,
    /// What a reader must know to judge the numbers.
    pub warnings: Vec<String>,
}

/// Percentiles of times, in nanoseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Times {
    /// Median.
    pub p50: u64,
    /// 99th percentile.
    pub p99: u64,
    /// 99.9th percentile.
    pub p999: u64,
    /// Largest.
    pub max: u64,
}

/// The measured part in stretches.
#[derive(Clone, Debug, Serialize)]
pub struct Timeline {
    /// Wall-clock time of a stretch, in nanoseconds.
    pub stretch_ns: u64,
    /// Bytes that reached the drive, by cause (in the order of `causes`) and stretch.
    pub host_bytes: Vec<Vec<u64>>,
    /// Bytes moved by garbage collection, by drive and stretch.
    pub gc_bytes: Vec<Vec<u64>>,
}

/// A file.
#[derive(Clone, Debug, Serialize)]
pub struct TopFile {
    /// Its path when it was first written.
    pub path: String,
    /// The cause of its writes then.
    pub cause: String,
    /// Bytes, as they were written.
    pub bytes: u64,
    /// Blocks of 4 KiB that these bytes touched, in bytes.
    pub host_bytes: u64,
}

impl DriveReport {
    /// All warnings, those of a drive with its name if there are several.
    #[must_use]
    pub fn all_warnings(&self) -> Vec<String> {
        let many = self.devices.len() > 1;
        let mut all = self.warnings.clone();
        for device in &self.devices {
            all.extend(device.warnings.iter().map(|warning| match many {
                true => format!("{}: {warning}", device.device.profile),
                false => warning.clone(),
            }));
        }
        all
    }
}
