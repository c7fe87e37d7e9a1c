//! The report of one replay: the whole document, and the parts that all devices have.

use std::collections::BTreeMap;

use serde::Serialize;
use treering_traces::Blocks;

use super::buffering::Compared;
use super::device::{DeviceReport, KernelReport};
use super::direct::DirectReport;
use super::latency::Latency;
use super::lifetime::LifetimeReport;
use super::mini_pages::MiniPagesReport;
use super::numbers::{bytes, duration, grouped};
use super::pm::PmReport;
use super::predicted::PredictedValue;
use super::preload::PreloadReport;
use super::row::Row;
use super::store::{SpaceReport, StoreReport};
use super::wa::{HostWa, WaReport};
use crate::predict::Prediction;
use crate::predict::tried::Decides;

/// The report of a replay.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ReplayReport {
    /// [`SCHEMA`](super::SCHEMA).
    pub schema: &'static str,
    /// Whether the whole trace (or the part that `--limit` selects) was replayed.
    pub complete: bool,
    /// The trace that was replayed.
    pub trace: TraceInfo,
    /// The records that were loaded before the trace.
    pub preload: PreloadReport,
    /// The tree: `btree`, `bf`, `bminus`, `ccl`, `lodge` or `pmtree`; `none` for a drive alone.
    pub tree: String,
    /// The device.
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
    /// Latency in nanoseconds, virtual on simulated devices and real on files; `null` on a
    /// simulated device without `--timing`.
    pub latency_ns: Option<ByOp<Option<Latency>>>,
    /// Throughput and elapsed time.
    pub time: TimeReport,
    /// Space used.
    pub space: SpaceReport,
    /// The page store.
    pub store: StoreReport,
    /// The page cache.
    pub cache: CacheReport,
    /// Persistent memory; `null` on other devices.
    pub pm: Option<PmReport>,
    /// The drive without a tree; left out with a tree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direct: Option<DirectReport>,
    /// Wear, and the device's lifetime at a daily write volume; `null` on files, whose drive is
    /// unknown.
    pub lifetime: Option<LifetimeReport>,
    /// What the kernel counted; files only.
    pub kernel: Option<KernelReport>,
    /// The measured values outside the 90 % interval of their prediction, by the place of the
    /// prediction: `host.log` for `wa.predicted.host.log`, `pm.xbi` for `pm.predicted.xbi`,
    /// `mini_pages.merges` for the figure in `cache.compared`. Components below 3 % of their total
    /// are not listed.
    pub outside: Vec<&'static str>,
    /// The full predictions; `null` with `--no-predict`, and for trees without a predictor.
    pub prediction: Option<Prediction>,
    /// Write amplification during the run, in about a hundred points.
    pub series: Vec<SeriesPoint>,
    /// Leaves by used share of the page, in twenty bins of 5 %.
    pub page_fill: Vec<u64>,
    /// Warnings that a reader should know before trusting the numbers.
    pub warnings: Vec<String>,
}

impl ReplayReport {
    /// Lists the measured values outside the intervals of their predictions.
    pub(crate) fn with_outside(self) -> ReplayReport {
        let rows = self.amplification().into_iter().chain(self.mini_pages());
        let outside = rows.filter(Row::is_outside).map(|row| row.path);
        let hits = (!self.hits_are_inside()).then_some("hit_ratio");
        ReplayReport {
            outside: outside.chain(hits).collect(),
            ..self
        }
    }

    fn hits_are_inside(&self) -> bool {
        let p = self.prediction.as_ref().map(hits);
        p.is_none_or(|hits| hits.holds(self.cache.hit_ratio))
    }

    /// Amplification by component, measured beside predicted.
    pub(super) fn amplification(&self) -> Vec<Row> {
        let wa = &self.wa;
        match &self.pm {
            Some(pm) => {
                let untried = wa.is_untried(Decides::All);
                pm.compared(wa.host.page_causes.as_ref(), untried)
            }
            None => wa.rows(),
        }
    }

    /// What mini-pages save, measured beside predicted; empty for trees without.
    pub(super) fn mini_pages(&self) -> Vec<Row> {
        let untried = self.wa.is_untried(Decides::All);
        let compared = self.cache.compared.iter();
        compared.map(|figure| figure.row(untried)).collect()
    }

    /// Time, cache, space and store as labelled sentences, as a terminal shows them.
    pub(super) fn state(&self) -> Vec<(&'static str, String)> {
        let mut rows = vec![("Throughput:", self.throughput())];
        if let Some(direct) = &self.direct {
            rows.extend(direct.rows());
            return rows;
        }
        if self.pm.is_some() {
            let (space, store) = (&self.space, &self.store);
            let answered = format!(
                "{:.1} % answered by buffer nodes",
                self.cache.hit_ratio * 100.0
            );
            rows.push(("Lookups:", answered));
            let sizes = format!(
                "{} leaves, {:.1} records each; {} splits, {} merges",
                grouped(space.leaves),
                space.records_per_leaf,
                grouped(store.splits),
                grouped(store.merges)
            );
            rows.push(("Space:", sizes));
            return rows;
        }
        rows.extend(self.cache.rows());
        rows.extend(self.hits_predicted().map(|said| ("", said)));
        rows.push(("Space:", self.space.said()));
        rows.push(("Store:", self.store.said()));
        rows.extend(self.durability().map(|said| ("Durability:", said)));
        rows.extend(self.store.latches().map(|said| ("Latches:", said)));
        rows.extend(self.mod_log().map(|said| ("Mod. log:", said)));
        rows
    }

    fn throughput(&self) -> String {
        let clock = match self.kernel {
            Some(_) => "real",
            None => "virtual",
        };
        let rate = match self.time.elapsed_ns {
            0 => "no device time".to_string(),
            _ => format!(
                "{} operations/s in {clock} time",
                grouped(self.time.ops_per_second.round() as u64)
            ),
        };
        format!("{rate}, {} elapsed", duration(self.time.elapsed_ns as f64))
    }

    /// The predicted hit ratio, and that of other replacement policies; `None` without a
    /// prediction.
    fn hits_predicted(&self) -> Option<String> {
        let p = self.prediction.as_ref()?;
        let others = p.other_policies.iter();
        let others = others.map(|(name, ratio)| format!("{name} {:.1} %", ratio * 100.0));
        let mark = if self.hits_are_inside() { "" } else { " !" };
        Some(format!(
            "predicted {}{mark}; a cache of frames alone, of this size: {}",
            hits(p).said_of_share(),
            others.collect::<Vec<_>>().join(", ")
        ))
    }

    /// A sentence on the modification log, measured and predicted; `None` if pages have none.
    pub(super) fn mod_log(&self) -> Option<String> {
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
            "β {:.2} %, {mean:.0} bytes of differences per page, {:.2} % of page writes \
                            write the whole page{predicted}",
            100.0 * beta,
            100.0 * whole
        ))
    }
}

/// The predicted hit ratio with its interval.
fn hits(p: &Prediction) -> PredictedValue {
    PredictedValue::new(p.hit_ratio, p.bars.and_then(|bars| bars.hit_ratio), p.model)
}

/// The trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TraceInfo {
    /// Its name.
    pub name: String,
    /// Where it came from.
    pub source: String,
    /// Operations replayed, including warm-up.
    pub ops: u64,
    /// Number of these that are warm-up, including records loaded before the trace.
    pub warmup_ops: u64,
    /// Number of distinct keys that are put.
    pub records: u64,
    /// How the blocks of a block trace are replayed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocks: Option<Blocks>,
}

/// A value for each kind of operation.
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

/// Bytes of engine I/O in the measured part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct IoBytes {
    /// Written to the log.
    pub log: u64,
    /// Written to the pages' home locations.
    pub page: u64,
    /// Written elsewhere: journal, page table, snapshots, superblocks.
    pub extra: u64,
    /// Read, in all classes.
    pub read: u64,
    /// Trimmed.
    pub trimmed: u64,
}

/// Elapsed time and throughput.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct TimeReport {
    /// Duration of the measured part in nanoseconds: virtual, or real on files.
    pub elapsed_ns: u64,
    /// Operations per second in that time.
    pub ops_per_second: f64,
    /// Whether queues were modelled (`--timing`), or each I/O took its nominal time.
    pub queued: bool,
}

/// The cache in the measured part.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CacheReport {
    /// Share of page accesses answered from memory. A lookup answered by a mini-page counts as one.
    pub hit_ratio: f64,
    /// Accesses answered from memory.
    pub hits: u64,
    /// Accesses that read the device.
    pub misses: u64,
    /// Pages evicted from their frames.
    pub evictions: u64,
    /// Number of page frames.
    pub frames: u64,
    /// Bytes of all frames and of the ring of mini-pages.
    pub bytes: u64,
    /// Requested bytes; the frames are as many whole pages as fit.
    pub budget_bytes: u64,
    /// Requested share of the data set; `null` if bytes were requested.
    pub share: Option<f64>,
    /// Bytes of keys and values that the store holds at the end of the warm-up (without a warm-up,
    /// at the end of the run). A requested share is a share of this.
    pub data_set_bytes: u64,
    /// Mini-pages; `null` for trees without.
    pub mini_pages: Option<MiniPagesReport>,
    /// What mini-pages save, measured beside predicted.
    pub compared: Vec<Compared>,
}

impl CacheReport {
    fn rows(&self) -> [(&'static str, String); 2] {
        let sizes = format!(
            "{} frames{} ({}; {})",
            grouped(self.frames),
            self.mini_pages.as_ref().map_or("", |_| " and a ring"),
            bytes(self.bytes as f64),
            self.asked()
        );
        let hits = format!(
            "{:.1} % of page accesses hit, {} evictions",
            self.hit_ratio * 100.0,
            grouped(self.evictions)
        );
        [("Cache:", sizes), ("", hits)]
    }

    /// The requested cache size, in words.
    pub(super) fn asked(&self) -> String {
        let budget = bytes(self.budget_bytes as f64);
        let data_set = bytes(self.data_set_bytes as f64);
        match self.share {
            None => format!("{budget} requested; the data set is {data_set}"),
            Some(share)
                if (share * self.data_set_bytes as f64) < self.budget_bytes as f64 - 1.0 =>
            {
                format!(
                    "the minimum size; {:.1} % of {data_set} requested",
                    100.0 * share
                )
            }
            Some(share) => format!("{budget} requested, {:.1} % of {data_set}", 100.0 * share),
        }
    }
}

/// One point of write amplification over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SeriesPoint {
    /// Measured operations so far.
    pub ops: u64,
    /// Time of the point, since the first measured operation.
    pub elapsed_ns: u64,
    /// Host WA since the previous point. On persistent memory: bytes that reached the medium; on a
    /// compressing drive: compressed bytes.
    pub host: HostWa<f64>,
    /// Garbage collection's WA since the previous point.
    pub gc: f64,
}
