//! What a replay found: one structure, `treering.replay/1`, and its three faces: JSON (this structure as it is), [`text`] and
//! [`html`].
//!
//! Every number is what the run measured *after warm-up*, unless its name says otherwise. Everything under `wa` is bytes over
//! user bytes (key and value of puts, key of deletes). Nothing in here depends on wall-clock time, except on real files.

mod buffering;
mod durability;
pub mod html;
mod lifetime;
mod mini_pages;
mod pm;
pub mod text;

use std::collections::BTreeMap;
use std::ops::Deref;

use serde::Serialize;
use treering_traces::Blocks;

use crate::predict::Prediction;
use crate::predict::tried::{Decides, Untried};
use crate::replay::PreloadReport;

pub use buffering::Compared;
pub(crate) use buffering::{PageIo, compared};
pub(crate) use lifetime::{Daily, Worn};
pub use lifetime::{DailyFrom, LifetimeReport};
pub use mini_pages::{HitsByKind, MergeBin, MergesByCause, MiniPagesReport, RingReport, SizeBin};
pub use pm::{Amplification, LodgePredicted, LodgeReport, PmReport};

/// Name and version of the document.
pub const SCHEMA: &str = "treering.replay/1";

/// Components under this share of the total have no error in the report: a per cent of next to nothing says nothing.
pub const LEAST_SHARE: f64 = 0.03;

/// A whole replay.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReplayReport {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// Whether the whole trace (or what `--limit` left of it) was replayed.
    pub complete: bool,
    /// What was replayed.
    pub trace: TraceInfo,
    /// What was loaded before it.
    pub preload: PreloadReport,
    /// The tree: `btree`, `bf`, `bminus`, `ccl`, `lodge` or `pmtree`.
    pub tree: String,
    /// What it ran on.
    pub device: DeviceReport,
    /// Options in force, by flag name.
    pub options: BTreeMap<String, serde_json::Value>,
    /// Operations by kind.
    pub ops: ByOp<u64>,
    /// Bytes of keys and values that puts and deletes wrote.
    pub user_bytes: u64,
    /// Write amplification.
    pub wa: WaReport,
    /// Bytes of engine I/O.
    pub io_bytes: IoBytes,
    /// Latency in virtual (files: real) nanoseconds; `null` without `--timing` on a simulated device.
    pub latency_ns: Option<ByOp<Option<Latency>>>,
    /// Rates and time.
    pub time: TimeReport,
    /// Space.
    pub space: SpaceReport,
    /// The page store.
    pub store: StoreReport,
    /// The page cache.
    pub cache: CacheReport,
    /// Persistent memory; `null` on other devices.
    pub pm: Option<PmReport>,
    /// Wear, and how long the device lasts at a daily volume; `null` on files, whose drive is unknown.
    pub lifetime: Option<LifetimeReport>,
    /// What the kernel says; files only.
    pub kernel: Option<KernelReport>,
    /// What the predictors said, whole; `null` with `--no-predict`, and for trees that have none.
    pub prediction: Option<Prediction>,
    /// WA over the run, about a hundred points.
    pub series: Vec<SeriesPoint>,
    /// Leaves by used share of the page: twenty bins of 5 %.
    pub page_fill: Vec<u64>,
    /// Sentences a reader should know before believing a number.
    pub warnings: Vec<String>,
}

impl CacheReport {
    /// What was asked for, in words.
    fn asked(&self) -> String {
        let budget = text::bytes(self.budget_bytes as f64);
        let data_set = text::bytes(self.data_set_bytes as f64);
        match self.share {
            None => format!("{budget} asked for; the data set is {data_set}"),
            Some(share)
                if (share * self.data_set_bytes as f64) < self.budget_bytes as f64 - 1.0 =>
            {
                format!(
                    "the least that works; {:.1} % of {data_set} asked for",
                    100.0 * share
                )
            }
            Some(share) => format!("{budget} asked for, {:.1} % of {data_set}", 100.0 * share),
        }
    }
}

impl ReplayReport {
    /// What the modification log did, beside what was predicted, in a sentence; nothing if pages have none.
    fn mod_log(&self) -> Option<String> {
        let store = &self.store;
        let (beta, mean, whole) = (
            store.beta?,
            store.delta_bytes_mean?,
            store.full_flush_share?,
        );
        let predicted = self.prediction.as_ref().and_then(|p| p.mod_log);
        let predicted = predicted.map_or(String::new(), |p| {
            format!(
                " (predicted {:.2} %, {:.0} bytes, {:.2} %)",
                100.0 * p.beta,
                p.delta_bytes_mean,
                100.0 * p.full_flush_share
            )
        });
        Some(format!(
            "β {:.2} %, {mean:.0} bytes of differences a page, {:.2} % of page writes whole{predicted}",
            100.0 * beta,
            100.0 * whole
        ))
    }
}

/// The trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TraceInfo {
    /// Its name.
    pub name: String,
    /// Where it came from.
    pub source: String,
    /// Operations replayed, warm-up included.
    pub ops: u64,
    /// Of those, warm-up, with what is loaded before the trace.
    pub warmup_ops: u64,
    /// Distinct keys that are put.
    pub records: u64,
    /// Of a block trace: what its blocks are replayed as.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocks: Option<Blocks>,
}

/// The device.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DeviceReport {
    /// `ssd`, `csd`, `pm` or `file`.
    pub kind: String,
    /// Name of the profile, or the file's path as the user gave it.
    pub profile: String,
    /// Addressable 4 KiB blocks.
    pub logical_blocks: u64,
    /// Which over-provisioning is meant, in words; empty on files.
    pub over_provisioning_definition: String,
    /// `T / U − 1`.
    pub over_provisioning: Option<f64>,
    /// `α = T / U`.
    pub alpha: Option<f64>,
    /// `T / in use`, in use averaged over the measured part.
    pub effective_alpha: Option<f64>,
    /// Pages of an erase block.
    pub pages_per_block: Option<u32>,
    /// Garbage collection policy.
    pub gc: Option<String>,
    /// Whether garbage collection ran in the measured part.
    pub gc_reached: Option<bool>,
    /// How the drive compresses; `null` if it does not.
    pub compression: Option<CompressionReport>,
    /// Every number of the profile as the run used it, by its key in the profile; empty on files.
    pub profile_values: BTreeMap<String, serde_json::Value>,
}

/// Compression in the measured part.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CompressionReport {
    /// `zlib`, `zstd` or `lz4`.
    pub codec: String,
    /// Its level.
    pub level: u32,
    /// Logical bytes over nominal flash bytes; above 1 is thin provisioning.
    pub logical_over_physical: f64,
    /// Bytes that may be live before the medium is full.
    pub capacity_bytes: u64,
    /// Blocks of zeros written: they take no room.
    pub zero_blocks: u64,
    /// Blocks that went through the codec.
    pub compressed_blocks: u64,
    /// Blocks whose size was known from the same content before.
    pub remembered_blocks: u64,
    /// Bytes left empty at the ends of erase blocks.
    pub padding_bytes: u64,
}

/// Something for each kind of operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ByOp<T> {
    /// Lookups.
    pub get: T,
    /// Writes.
    pub put: T,
    /// Removals.
    pub delete: T,
    /// Scans.
    pub scan: T,
}

impl<T> ByOp<T> {
    /// Name and value, in report order.
    pub fn iter(&self) -> [(&'static str, &T); 4] {
        [
            ("get", &self.get),
            ("put", &self.put),
            ("delete", &self.delete),
            ("scan", &self.scan),
        ]
    }
}

/// Write amplification: measured, predicted, and the relative error.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WaReport {
    /// Bytes the engine wrote over user bytes; on persistent memory, bytes of lines that reached the XPBuffer.
    pub host: HostReport,
    /// Bytes the drive programmed over user bytes; `null` on files.
    pub device: Option<DeviceWa<f64>>,
    /// The same, predicted; `null` where there is no prediction.
    pub predicted: Option<WaSide<f64>>,
    /// Measured over predicted, minus one; `null` where the component is under 3 % of the total.
    pub error: Option<WaSide<Option<f64>>>,
    /// What compression makes of it; `null` on drives without.
    pub csd: Option<CsdWa>,
    /// What of the prediction lies outside the bounds between which predictions were tried; empty if nothing does.
    pub untried: Vec<Untried>,
}

/// By class, and what wrote the pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct HostReport {
    /// By class.
    #[serde(flatten)]
    pub by_class: HostWa<f64>,
    /// The part of class page, by cause; `null` on persistent memory.
    pub page_causes: Option<PageCauses>,
}

impl Deref for HostReport {
    type Target = HostWa<f64>;

    fn deref(&self) -> &HostWa<f64> {
        &self.by_class
    }
}

/// Bytes of class page over user bytes, by what they hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct PageCauses {
    /// Leaves, and the differences of leaves in modification logs; in persistent memory also keys
    /// and values of one piece.
    pub leaf: f64,
    /// Values that are longer than a quarter of a page, on blocks of their own; in persistent
    /// memory those that are longer than a chunk.
    pub overflow: f64,
    /// The same, predicted.
    pub overflow_predicted: Option<f64>,
}

impl PageCauses {
    /// The row of overflow blocks beside those of all pages, if there are any; `total`: measured,
    /// all classes.
    fn row(&self, total: f64, untried: bool) -> Option<Row> {
        let predicted = self.overflow_predicted;
        let any = self.overflow > 0.0 || predicted.is_some_and(|p| p > 0.0);
        any.then(|| Row {
            name: "host page overflow",
            measured: self.overflow,
            predicted,
            error: predicted.and_then(|p| error(self.overflow, p, total)),
            untried,
        })
    }
}

/// Write amplification on a compressing drive, both ways: over user bytes and over compressed bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CsdWa {
    /// Compressed bytes over host bytes by class, α of B⁻-tree eq. (2); `null` where nothing was written.
    pub alpha: HostWa<Option<f64>>,
    /// Compressed bytes over user bytes by class, α·WA of the same equation.
    pub stored: HostWa<f64>,
    /// Bytes programmed over compressed bytes: garbage collection (and extent headers) alone.
    pub gc_only: f64,
}

impl CsdWa {
    fn rows(&self) -> Vec<(&'static str, f64)> {
        let mut rows = CsdWa::of_classes(self.stored).to_vec();
        rows.push(("flash over compressed", self.gc_only));
        rows
    }

    fn of_classes<T: Copy>(stored: HostWa<T>) -> [(&'static str, T); 4] {
        [
            ("compressed log", stored.log),
            ("compressed page", stored.page),
            ("compressed extra", stored.extra),
            ("compressed total", stored.total),
        ]
    }
}

/// Host and device together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WaSide<T> {
    /// By the engine.
    pub host: HostWa<T>,
    /// By the drive.
    pub device: Option<DeviceWa<T>>,
    /// Compressed, by class: α·WA of B⁻-tree eq. (2); `null` on drives that do not.
    pub csd: Option<HostWa<T>>,
}

/// By class of the write, B⁻-tree eq. (1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct HostWa<T> {
    /// Redo log.
    pub log: T,
    /// Pages at their home.
    pub page: T,
    /// Journal, page table, snapshots, superblocks.
    pub extra: T,
    /// All.
    pub total: T,
}

impl<T: Copy> HostWa<T> {
    fn rows(&self) -> [(&'static str, T); 4] {
        [
            ("host log", self.log),
            ("host page", self.page),
            ("host extra", self.extra),
            ("host total", self.total),
        ]
    }
}

/// Inside the drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct DeviceWa<T> {
    /// All programs.
    pub total: T,
    /// Programs of garbage collection.
    pub gc: T,
    /// The drive's own ratio: programs over host writes.
    pub nand_over_host: T,
}

impl<T: Copy> DeviceWa<T> {
    fn rows(&self) -> [(&'static str, T); 3] {
        [
            (DEVICE_GC, self.gc),
            ("device total", self.total),
            ("flash over host", self.nand_over_host),
        ]
    }
}

/// Name of the row of garbage collection alone.
const DEVICE_GC: &str = "device gc";

/// One row of the table of components, as every face shows it.
struct Row {
    name: &'static str,
    measured: f64,
    predicted: Option<f64>,
    error: Option<f64>,
    /// Whether it is predicted outside the bounds between which predictions were tried.
    untried: bool,
}

impl Row {
    /// The predicted value as tables show it, with the mark of what was never tried.
    fn predicted(&self) -> Option<String> {
        let mark = if self.untried { UNTRIED_MARK } else { "" };
        self.predicted.map(|p| format!("{p:.3}{mark}"))
    }
}

/// Stands beside a value predicted outside the bounds between which predictions were tried.
const UNTRIED_MARK: &str = " ?";

impl WaReport {
    /// What the mark means here, in a paragraph; nothing if no value has one.
    fn untried_note(&self) -> Option<String> {
        if self.untried.is_empty() {
            return None;
        }
        let of = |decides| {
            let list = self.untried.iter().filter(move |u| u.decides == decides);
            let list: Vec<&str> = list.map(|u| u.sentence.as_str()).collect();
            list.join("; ")
        };
        let (all, collection) = (of(Decides::All), of(Decides::Collection));
        let collection = match collection.is_empty() {
            true => String::new(),
            false => format!("garbage collection alone: {collection}"),
        };
        let parts: Vec<String> = [all, collection]
            .into_iter()
            .filter(|p| !p.is_empty())
            .collect();
        Some(format!(
            "? Predicted outside what the predictor was tried on: {}.",
            parts.join("; ")
        ))
    }

    /// Whether what is predicted of the engine (or else of garbage collection) was never tried like this.
    fn is_untried(&self, decides: Decides) -> bool {
        let mut untried = self.untried.iter();
        untried.any(|u| u.decides == Decides::All || u.decides == decides)
    }

    /// All components, measured beside predicted.
    fn rows(&self) -> Vec<Row> {
        let (predicted, error) = (self.predicted.as_ref(), self.error.as_ref());
        let host = (0..)
            .zip(self.host.rows())
            .map(|(i, (name, measured))| Row {
                name,
                measured,
                predicted: predicted.map(|p| p.host.rows()[i].1),
                error: error.and_then(|e| e.host.rows()[i].1),
                untried: self.is_untried(Decides::All),
            });
        let mut host: Vec<Row> = host.collect();
        let causes = self.host.page_causes.as_ref();
        if let Some(overflow) =
            causes.and_then(|causes| causes.row(self.host.total, self.is_untried(Decides::All)))
        {
            host.insert(2, overflow);
        }
        let device = self.device.iter().flat_map(|d| (0..).zip(d.rows()));
        let device = device.map(|(i, (name, measured))| Row {
            name,
            measured,
            predicted: predicted.and_then(|p| Some(p.device.as_ref()?.rows()[i].1)),
            error: error.and_then(|e| e.device.as_ref()?.rows()[i].1),
            untried: self.is_untried(match name {
                DEVICE_GC => Decides::Collection,
                _ => Decides::All,
            }),
        });
        let csd = self.csd.iter().flat_map(|c| (0..).zip(c.rows()));
        let csd = csd.map(|(i, (name, measured))| Row {
            name,
            measured,
            predicted: predicted.and_then(|p| Some(CsdWa::of_classes(p.csd?).get(i)?.1)),
            error: error.and_then(|e| CsdWa::of_classes(e.csd?).get(i)?.1),
            untried: self.is_untried(Decides::All),
        });
        host.into_iter().chain(device).chain(csd).collect()
    }
}

/// Bytes of engine I/O in the measured part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct IoBytes {
    /// Written to the log.
    pub log: u64,
    /// Written to pages' homes.
    pub page: u64,
    /// Written beside.
    pub extra: u64,
    /// Read, all classes.
    pub read: u64,
    /// Trimmed.
    pub trimmed: u64,
}

/// Percentiles of one kind of operation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Latency {
    /// Operations measured.
    pub count: u64,
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: u64,
    /// 99th percentile.
    pub p99: u64,
    /// 99.9th percentile.
    pub p999: u64,
    /// Largest.
    pub max: u64,
    /// Mean of the part spent waiting for the busy device (and, with `commit`, for the flush before).
    pub queue_mean: f64,
    /// 99th percentile of that part.
    pub queue_p99: u64,
    /// Points of the cumulative distribution: nanoseconds and share of operations at or below.
    pub cdf: Vec<(u64, f64)>,
}

/// Time and rates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct TimeReport {
    /// Length of the measured part in nanoseconds: virtual, or real on files.
    pub elapsed_ns: u64,
    /// Operations a second in that time.
    pub ops_per_second: f64,
    /// Whether queues were modelled (`--timing`), or each I/O counted at its nominal time.
    pub queued: bool,
}

/// Space at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SpaceReport {
    /// Bytes of all leaf pages.
    pub logical_bytes: u64,
    /// Bytes in use on the device: pages, log, journal, table.
    pub physical_bytes: u64,
    /// Leaves.
    pub leaves: u64,
    /// Records in leaves; what only a mini-page has is not counted.
    pub records: u64,
    /// Mean records in a leaf.
    pub records_per_leaf: f64,
    /// Mean used share of a leaf, header and fences included.
    pub fill: f64,
    /// Bytes of the in-memory index.
    pub index_bytes: u64,
}

/// The page store's doings in the measured part.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StoreReport {
    /// `in-place`, `cow` or `shadow`.
    pub kind: String,
    /// Pages written by eviction.
    pub pages_written_back: u64,
    /// Pages written by checkpoints.
    pub pages_checkpointed: u64,
    /// Checkpoints completed.
    pub checkpoints: u64,
    /// Leaf splits.
    pub splits: u64,
    /// Those of them that parted what writers waited for.
    pub contention_splits: u64,
    /// Writes that waited for the latch of their leaf: on a file; simulated clients never wait.
    pub contended_writes: u64,
    /// Leaf merges.
    pub merges: u64,
    /// Log flushes.
    pub log_flushes: u64,
    /// Log bytes appended, before rounding to blocks.
    pub log_appended_bytes: u64,
    /// Device flushes.
    pub flushes: u64,
    /// B⁻-tree eq. (4): bytes of Δ in the log blocks of pages over the bytes of these pages, at the end; `null` without a modification log.
    pub beta: Option<f64>,
    /// Mean |Δ| of a page at the end, in bytes.
    pub delta_bytes_mean: Option<f64>,
    /// Share of page writes that were of the whole page.
    pub full_flush_share: Option<f64>,
}

/// The cache in the measured part.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CacheReport {
    /// Share of page accesses answered from memory. A lookup that a mini-page answers is one.
    pub hit_ratio: f64,
    /// Accesses answered from memory.
    pub hits: u64,
    /// Accesses that read the device.
    pub misses: u64,
    /// Pages evicted from their frames.
    pub evictions: u64,
    /// Page frames.
    pub frames: u64,
    /// Bytes of all frames, and of the ring of mini-pages.
    pub bytes: u64,
    /// Bytes that were asked for: the frames are the whole pages of it.
    pub budget_bytes: u64,
    /// The share of the data set that was asked for; `null` if bytes were.
    pub share: Option<f64>,
    /// Bytes of the keys and values that the store holds at the end of the warm-up, or without one at the
    /// end: what a share of the data set is a share of.
    pub data_set_bytes: u64,
    /// Mini-pages; `null` for trees without.
    pub mini_pages: Option<MiniPagesReport>,
    /// What they save, measured beside predicted.
    pub compared: Vec<Compared>,
}

/// What the operating system counted, on files.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KernelReport {
    /// Bytes this process caused to be written while the store was measured; `null` if the kernel does not say.
    pub write_bytes: Option<u64>,
    /// The engine's bytes in the same span.
    pub engine_bytes: u64,
    /// How the file was opened: direct or buffered, io_uring or not.
    pub how: String,
    /// Type of the file system; `null` if unknown.
    pub file_system: Option<String>,
    /// The block device below it; `null` if it has none that is known.
    pub block_device: Option<String>,
    /// Bytes that this block device was given in the same span, by any program; `null` if unknown.
    pub block_device_bytes: Option<u64>,
    /// What lies between these numbers, as far as it has a cause that is known; the rest is `unexplained`.
    pub differences: Vec<WriteDifference>,
}

/// One cause for which two counts of written bytes differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WriteDifference {
    /// Which counts: `process - engine`, or `block device - process`.
    pub between: &'static str,
    /// The cause.
    pub name: String,
    /// The difference in bytes.
    pub bytes: i64,
}

/// One point of WA over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SeriesPoint {
    /// Measured operations so far.
    pub ops: u64,
    /// Time of the point, from the first measured operation on.
    pub elapsed_ns: u64,
    /// Host WA since the point before; on persistent memory, what reached the medium, and on a drive
    /// that compresses, what it stored.
    pub host: HostWa<f64>,
    /// Garbage collection's WA since the point before.
    pub gc: f64,
}

/// A profile's values by their keys; those of its tables as `table.key`.
pub(crate) fn flat(profile: &impl Serialize) -> BTreeMap<String, serde_json::Value> {
    let mut found = BTreeMap::new();
    // A profile is plain data, which always has a JSON form.
    if let Ok(serde_json::Value::Object(values)) = serde_json::to_value(profile) {
        for (key, value) in values {
            match value {
                serde_json::Value::Object(table) => found.extend(
                    (table.into_iter()).map(|(inner, value)| (format!("{key}.{inner}"), value)),
                ),
                value => drop(found.insert(key, value)),
            }
        }
    }
    found
}

/// What was loaded before the trace, in a sentence; nothing if nothing was, or would have been.
pub(crate) fn preloaded(p: &PreloadReport) -> Option<String> {
    if p.keys == 0 {
        return None;
    }
    let (records, size) = (text::grouped(p.keys), text::bytes(p.bytes as f64));
    let mut sentence = format!(
        "{records} records ({size}) loaded before it, as warm-up (--preload {})",
        p.mode
    );
    if let Some(mean) = p.evidence.mean_value_bytes {
        let sized = text::grouped(p.evidence.mean);
        sentence += &format!("; {sized} of them, which it never puts, with values of {mean} bytes");
    }
    if let Some(share) = p.share_of_reads {
        sentence += &format!(
            "; {:.1} % of its gets read what only these wrote",
            100.0 * share
        );
    }
    Some(sentence)
}

/// `measured / predicted − 1`, or nothing for a component of little weight (on both sides).
pub fn error(measured: f64, predicted: f64, measured_total: f64) -> Option<f64> {
    let counts = measured.max(predicted) >= LEAST_SHARE * measured_total;
    (counts && predicted > 0.0).then(|| measured / predicted - 1.0)
}
