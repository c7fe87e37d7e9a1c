//! What a run leaves behind, and the report made of it.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use treering_engine::node::Limits;
use treering_engine::{
    BLOCK_SIZE, LeafFill, LogPacking, ModLogStats, PageStoreKind, ResetRule, Stats, TablePersist,
    TreeKind,
};
use treering_traces::OpKind;

use super::drive::Drive;
use super::measure::Latencies;
use super::plan::Plan;
use super::{Acknowledge, Precondition, ReplayConfig, Size, Target};
use crate::csd::CompressionCounters;
use crate::predict::Prediction;
use crate::report::{
    self, ByOp, CacheReport, CsdWa, Daily, DeviceReport, DeviceWa, HostReport, HostWa, IoBytes,
    KernelReport, LifetimeReport, MiniPagesReport, PageCauses, PageIo, ReplayReport, SeriesPoint,
    SpaceReport, StoreReport, TimeReport, TraceInfo, WaReport, WaSide, Worn,
};
use crate::ssd::{CLASSES, SsdCounters};

/// A fresh drive has settled by the time it has been written so often.
const STEADY_TURNS: f64 = 4.0;

/// Bins of the page-fill histogram.
const FILL_BINS: usize = 20;

/// Operations and user bytes of the part at hand.
#[derive(Clone, Copy, Default)]
pub(super) struct Phase {
    ops: [u64; 4],
    pub(super) user_bytes: u64,
    pub(super) skipped: u64,
    limits: Option<Limits>,
}

impl Phase {
    pub(super) fn count(&mut self, kind: OpKind, user_bytes: u64) {
        self.ops[kind as usize] += 1;
        self.user_bytes += user_bytes;
    }

    pub(super) fn ops(&self) -> u64 {
        self.ops.iter().sum()
    }

    /// The limits of a page, worked out once.
    pub(super) fn limits(&mut self, page_size: usize) -> Limits {
        *self
            .limits
            .get_or_insert_with(|| treering_engine::node::limits(page_size))
    }

    /// Adds what another thread did.
    pub(super) fn add(&mut self, other: &Phase) {
        for (mine, theirs) in self.ops.iter_mut().zip(other.ops) {
            *mine += theirs;
        }
        self.user_bytes += other.user_bytes;
        self.skipped += other.skipped;
    }

    /// What is said of operations that were left out.
    pub(super) fn skips(&self) -> Option<String> {
        (self.skipped > 0).then(|| {
            format!(
                "{} operations were skipped: no store takes their records (--oversize skip).",
                self.skipped
            )
        })
    }

    pub(super) fn by_op(&self) -> ByOp<u64> {
        let of = |kind: OpKind| self.ops[kind as usize];
        ByOp {
            get: of(OpKind::Get),
            put: of(OpKind::Put),
            delete: of(OpKind::Delete),
            scan: of(OpKind::Scan),
        }
    }
}

/// A finished run.
pub(super) struct Outcome {
    pub(super) phase: Phase,
    /// Operations done, warm-up included.
    pub(super) done_ops: u64,
    /// Counters when the measured part began, and when it ended.
    pub(super) before: Stats,
    pub(super) after: Stats,
    pub(super) elapsed_ns: u64,
    pub(super) latencies: Latencies,
    pub(super) series: Vec<SeriesPoint>,
    pub(super) drive: Option<(SsdCounters, SsdCounters)>,
    pub(super) compression: Option<(CompressionCounters, CompressionCounters)>,
    pub(super) leaves: Vec<LeafFill>,
    pub(super) kernel: Option<KernelReport>,
}

/// Everything a report is made of.
pub(super) struct Material<'a> {
    pub(super) config: &'a ReplayConfig,
    pub(super) plan: &'a Plan,
    pub(super) outcome: Outcome,
    pub(super) prediction: Option<Prediction>,
    pub(super) device: DeviceReport,
    pub(super) drive: Option<&'a Drive>,
}

/// Makes the report.
pub(super) fn report(material: Material<'_>) -> ReplayReport {
    let user_bytes = material.outcome.phase.user_bytes;
    let (before, after) = (&material.outcome.before, &material.outcome.after);
    let written = after.written.since(&before.written);
    let csd = csd_wa(&material.outcome, user_bytes);
    let drives = material.outcome.drive.as_ref();
    let measured = WaSide {
        host: host_wa(&written, user_bytes),
        device: drives.map(|(a, b)| device_wa(a, b, user_bytes)),
        csd: csd.map(|csd| csd.stored),
    };
    let lifetime = lifetime(&material, &measured);
    let Material {
        config,
        plan,
        outcome,
        prediction,
        device,
        drive,
    } = material;
    let (before, after) = (&outcome.before, &outcome.after);
    // Without user bytes there is nothing to be an amplification of.
    let predicted = (prediction.as_ref())
        .filter(|_| user_bytes > 0)
        .map(|p| predicted_side(p, measured.device.is_some()));
    let error = predicted.as_ref().map(|p| errors(&measured, p));
    let space = space(&outcome.leaves, after, plan, drive);
    let mut warnings = plan.warnings.clone();
    warnings.extend(super::interrupted(outcome.done_ops, plan.ops));
    warnings.extend(prediction.iter().flat_map(|p| p.warnings.clone()));
    steady_warnings(
        &outcome,
        user_bytes,
        turns_short(config, &outcome, plan),
        &mut warnings,
    );
    ReplayReport {
        schema: report::SCHEMA,
        complete: outcome.done_ops == plan.ops,
        trace: TraceInfo {
            name: plan.trace_name.clone(),
            source: plan.trace_source.clone(),
            ops: outcome.done_ops,
            warmup_ops: plan.warmup_ops.min(outcome.done_ops),
            records: plan.workload.records().round() as u64,
            blocks: plan.blocks,
        },
        preload: plan.loads.report.clone(),
        tree: plan.engine.tree_name().into(),
        lifetime,
        device,
        options: options(config, plan),
        ops: outcome.phase.by_op(),
        user_bytes,
        wa: WaReport {
            host: HostReport {
                by_class: measured.host,
                page_causes: Some(page_causes(before, after, user_bytes, prediction.as_ref())),
            },
            device: measured.device,
            predicted,
            error,
            csd,
            untried: prediction.iter().flat_map(|p| p.untried.clone()).collect(),
        },
        io_bytes: IoBytes {
            log: written.log,
            page: written.page,
            extra: written.extra,
            read: after.read.since(&before.read).total(),
            trimmed: after.trimmed_bytes - before.trimmed_bytes,
        },
        latency_ns: (config.timing || outcome.kernel.is_some()).then(|| outcome.latencies.report()),
        time: TimeReport {
            elapsed_ns: outcome.elapsed_ns,
            ops_per_second: rate(outcome.phase.ops(), outcome.elapsed_ns),
            queued: config.timing,
        },
        space,
        store: store(before, after, plan),
        cache: cache(
            before,
            after,
            (config, plan),
            &outcome.phase,
            prediction.as_ref(),
        ),
        pm: None,
        kernel: outcome.kernel,
        prediction,
        series: outcome.series,
        page_fill: page_fill(&outcome.leaves, plan.engine.page_size),
        warnings,
    }
}

fn over(bytes: u64, user_bytes: u64) -> f64 {
    if user_bytes == 0 {
        0.0
    } else {
        bytes as f64 / user_bytes as f64
    }
}

fn rate(ops: u64, elapsed_ns: u64) -> f64 {
    if elapsed_ns == 0 {
        0.0
    } else {
        ops as f64 * 1e9 / elapsed_ns as f64
    }
}

fn host_wa(written: &treering_engine::ClassBytes, user_bytes: u64) -> HostWa<f64> {
    HostWa {
        log: over(written.log, user_bytes),
        page: over(written.page, user_bytes),
        extra: over(written.extra, user_bytes),
        total: over(written.total(), user_bytes),
    }
}

fn page_causes(
    before: &Stats,
    after: &Stats,
    user_bytes: u64,
    prediction: Option<&Prediction>,
) -> PageCauses {
    let page = after.written.since(&before.written).page;
    let overflow = after.overflow.bytes_written - before.overflow.bytes_written;
    PageCauses {
        leaf: over(page - overflow, user_bytes),
        overflow: over(overflow, user_bytes),
        overflow_predicted: prediction.map(|p| p.overflow),
    }
}

fn device_wa(before: &SsdCounters, after: &SsdCounters, user_bytes: u64) -> DeviceWa<f64> {
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
fn csd_wa(outcome: &Outcome, user_bytes: u64) -> Option<CsdWa> {
    let ((before, after), (from, to)) = outcome.drive.as_ref().zip(outcome.compression.as_ref())?;
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

fn predicted_side(p: &Prediction, with_device: bool) -> WaSide<f64> {
    let host = HostWa {
        log: p.host.log,
        page: p.host.page,
        extra: p.host.extra,
        total: p.host.total,
    };
    let device = with_device.then(|| DeviceWa {
        total: p.device.total,
        gc: p.device.gc,
        nand_over_host: if p.host.total > 0.0 {
            p.device.total / p.host.total
        } else {
            0.0
        },
    });
    let csd = p.stored.map(|stored| HostWa {
        log: stored.log,
        page: stored.page,
        extra: stored.extra,
        total: stored.total,
    });
    WaSide { host, device, csd }
}

fn errors(measured: &WaSide<f64>, predicted: &WaSide<f64>) -> WaSide<Option<f64>> {
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

fn space(leaves: &[LeafFill], after: &Stats, plan: &Plan, drive: Option<&Drive>) -> SpaceReport {
    let count = leaves.len().max(1) as f64;
    let records: u64 = leaves.iter().map(|l| u64::from(l.records)).sum();
    let used: u64 = leaves.iter().map(|l| u64::from(l.used_bytes)).sum();
    let page = plan.engine.page_size as u64;
    let logical = leaves.len() as u64 * page;
    SpaceReport {
        logical_bytes: logical,
        physical_bytes: drive.map_or(plan.device_blocks * BLOCK_SIZE as u64, Drive::in_use_bytes),
        leaves: leaves.len() as u64,
        records,
        records_per_leaf: records as f64 / count,
        fill: used as f64 / (count * page as f64),
        index_bytes: after.index_bytes,
    }
}

fn store(before: &Stats, after: &Stats, plan: &Plan) -> StoreReport {
    let mod_log = after.mod_log.zip(before.mod_log);
    let mod_log = mod_log.map(|(after, before)| after.since(&before));
    let delta_mean = |log: ModLogStats| log.delta_bytes as f64 / log.pages.max(1) as f64;
    StoreReport {
        kind: match plan.engine.store {
            PageStoreKind::InPlace => "in-place".into(),
            PageStoreKind::CopyOnWrite { .. } => "cow".into(),
            PageStoreKind::Shadow => "shadow".into(),
        },
        pages_written_back: after.pages_written_back - before.pages_written_back,
        pages_checkpointed: after.pages_checkpointed - before.pages_checkpointed,
        checkpoints: after.checkpoints - before.checkpoints,
        splits: after.splits - before.splits,
        contention_splits: after.contention_splits - before.contention_splits,
        contended_writes: after.contended_writes - before.contended_writes,
        merges: after.merges - before.merges,
        log_flushes: after.log_flushes - before.log_flushes,
        log_appended_bytes: after.log_appended_bytes - before.log_appended_bytes,
        flushes: after.flushes - before.flushes,
        beta: mod_log.map(|log| delta_mean(log) / plan.engine.page_size as f64),
        delta_bytes_mean: mod_log.map(delta_mean),
        full_flush_share: mod_log.map(|log| {
            let writes = log.whole_writes + log.delta_writes;
            log.whole_writes as f64 / writes.max(1) as f64
        }),
    }
}

fn cache(
    before: &Stats,
    after: &Stats,
    (config, plan): (&ReplayConfig, &Plan),
    phase: &Phase,
    prediction: Option<&Prediction>,
) -> CacheReport {
    let bf = after
        .bf
        .zip(before.bf)
        .map(|(after, before)| after.since(&before));
    let by_mini_pages = bf.map_or(0, |bf| bf.hits.total());
    let hits = after.cache_hits - before.cache_hits + by_mini_pages;
    let misses = after.cache_misses - before.cache_misses;
    // A page is read with its log block, if it has one.
    let log_block = plan.engine.mod_log.map_or(0, |_| BLOCK_SIZE as u64);
    let read_bytes = plan.engine.page_size as u64 + log_block;
    let io = PageIo {
        ops: phase.ops(),
        reads: after.read.since(&before.read).page / read_bytes,
        writes: after.pages_written_back - before.pages_written_back + after.pages_checkpointed
            - before.pages_checkpointed,
        log_bytes: after.written.since(&before.written).log,
        user_bytes: phase.user_bytes,
    };
    let mini_pages = bf.as_ref().map(MiniPagesReport::new);
    CacheReport {
        compared: (mini_pages.as_ref())
            .map(|m| report::compared(m, io, prediction))
            .unwrap_or_default(),
        hit_ratio: over(hits, hits + misses),
        hits,
        misses,
        evictions: after.evictions - before.evictions,
        frames: after.cache_frames,
        bytes: after.cache_frames * plan.engine.page_size as u64 + bf.map_or(0, |bf| bf.ring_bytes),
        budget_bytes: plan.engine.cache_bytes,
        share: match config.cache {
            Size::Bytes(_) => None,
            Size::Share(share) => Some(share),
        },
        data_set_bytes: plan.workload.data_set_bytes().round() as u64,
        mini_pages,
    }
}

fn lifetime(material: &Material<'_>, measured: &WaSide<f64>) -> Option<LifetimeReport> {
    let Material {
        config,
        plan,
        outcome,
        ..
    } = material;
    let drive = material.drive?;
    let wear = drive.wear();
    let erases = (outcome.drive.as_ref()).map_or(0, |(a, b)| b.erases - a.erases);
    let logical_bytes = drive.logical_bytes();
    Some(LifetimeReport::new(&Worn {
        erases: Some((erases, wear.mean_erases, wear.max_erases)),
        limit_cycles: pe_limit(config).map(f64::from),
        medium_bytes: drive.log_bytes(),
        logical_bytes,
        medium_over_host: measured.device.map_or(0.0, |d| d.nand_over_host),
        host_over_user: measured.host.total,
        daily: Daily::new(
            config.daily_bytes,
            outcome.phase.user_bytes,
            plan.measured_span_ns,
            logical_bytes,
        ),
    }))
}

fn pe_limit(config: &ReplayConfig) -> Option<u32> {
    match &config.target {
        Target::Ssd { profile, .. } => profile.pe_limit,
        Target::Csd { profile, .. } => profile.flash.pe_limit,
        Target::File(..) => None,
    }
}

fn page_fill(leaves: &[LeafFill], page_size: usize) -> Vec<u64> {
    let mut bins = vec![0; FILL_BINS];
    for leaf in leaves {
        let bin = leaf.used_bytes as usize * FILL_BINS / page_size;
        bins[bin.min(FILL_BINS - 1)] += 1;
    }
    bins
}

/// How often the host has written the whole drive, if that is not often enough for garbage collection to be steady.
fn turns_short(config: &ReplayConfig, outcome: &Outcome, plan: &Plan) -> Option<f64> {
    let steady = match &config.target {
        Target::Ssd { precondition, .. } | Target::Csd { precondition, .. } => {
            *precondition == Precondition::Steady
        }
        Target::File(..) => return None,
    };
    let (_, drive) = outcome.drive.as_ref()?;
    let written = drive.host_written.iter().sum::<u64>() as f64;
    let turns = written / (plan.device_blocks * BLOCK_SIZE as u64) as f64;
    (!steady && drive.erases > 0 && turns < STEADY_TURNS).then_some(turns)
}

/// Of what makes the most of the cache: the frames below mini-pages are few, and change all the time.
fn evictions(stats: &Stats) -> u64 {
    stats.bf.map_or(stats.evictions, |bf| bf.evictions)
}

fn steady_warnings(
    outcome: &Outcome,
    user_bytes: u64,
    turns: Option<f64>,
    warnings: &mut Vec<String>,
) {
    warnings.extend(outcome.phase.skips());
    if user_bytes == 0 {
        warnings.push("Nothing was written after warm-up: there is no write amplification.".into());
        return;
    }
    let appended = outcome.after.log_appended_bytes - outcome.before.log_appended_bytes;
    if appended > 0 && outcome.after.written.since(&outcome.before.written).total() == 0 {
        warnings.push(format!(
            "Nothing reached the device after warm-up: all {appended} bytes of log are still in its buffer (more operations, or \
             --durability commit, would change that)."
        ));
    }
    if evictions(&outcome.after) == evictions(&outcome.before) {
        let what = match outcome.after.bf {
            None => "page",
            Some(_) => "mini-page",
        };
        warnings.push(format!(
            "No {what} was evicted after warm-up: the cache holds the whole working set."
        ));
    }
    if let Some(turns) = turns {
        warnings.push(format!(
            "The drive was written {turns:.1} times over: its garbage collection may not be steady yet (more operations, or \
             --precondition steady, would change that)."
        ));
    }
    if outcome
        .drive
        .as_ref()
        .is_some_and(|(a, b)| a.erases == b.erases)
    {
        warnings.push(
            "The drive never reached garbage collection after warm-up: its own write amplification is \
             not that of a drive in use (more operations, a smaller --capacity or --precondition would change that)."
                .into(),
        );
    }
}

/// The options in force, by flag name.
fn options(config: &ReplayConfig, plan: &Plan) -> BTreeMap<String, Value> {
    let engine = &plan.engine;
    let (store, table) = match engine.store {
        PageStoreKind::InPlace => ("in-place", Value::Null),
        PageStoreKind::CopyOnWrite {
            table: TablePersist::EachFlush,
        } => ("cow", json!("each-flush")),
        PageStoreKind::CopyOnWrite {
            table: TablePersist::Checkpoint,
        } => ("cow", json!("checkpoint")),
        PageStoreKind::Shadow => ("shadow", Value::Null),
    };
    let log = match engine.log_packing {
        LogPacking::Packed => "packed",
        LogPacking::Sparse => "sparse",
    };
    let threshold = engine.mod_log.map_or(0, |rule| rule.threshold);
    let segment = engine.mod_log.map(|rule| rule.segment);
    let reset = engine.mod_log.map(|rule| match rule.reset {
        ResetRule::AtThreshold => "at-threshold",
        ResetRule::AboveThreshold => "above-threshold",
    });
    let durability = match config.acknowledge {
        Acknowledge::Deferred => "deferred".to_string(),
        Acknowledge::Commit => "commit".to_string(),
        Acknowledge::Interval(every) => format!("interval:{}ns", every.0),
    };
    let precondition = match &config.target {
        Target::Ssd { precondition, .. } | Target::Csd { precondition, .. } => {
            json!(format!("{precondition:?}").to_lowercase())
        }
        Target::File(..) => Value::Null,
    };
    let flash = match &config.target {
        Target::Ssd { profile, .. } => Some(&**profile),
        Target::Csd { profile, .. } => Some(&profile.flash),
        Target::File(..) => None,
    };
    let (copy_on_access, promote) = match engine.tree {
        TreeKind::BTree => (Value::Null, Value::Null),
        TreeKind::Bf(bf) => (
            json!(bf.copy_on_access_percent),
            json!(bf.promotion_percent),
        ),
    };
    let pairs: [(&str, Value); 31] = [
        ("store", json!(store)),
        ("table", table),
        ("log", json!(log)),
        ("threshold", json!(threshold)),
        ("segment", json!(segment)),
        ("reset", json!(reset)),
        ("layout", json!(engine.leaf_layouts().name())),
        ("contention-split", json!(engine.contention_split.is_some())),
        ("page", json!(engine.page_size)),
        ("cache", json!(engine.cache_bytes)),
        ("copy-on-access", copy_on_access),
        ("promote", promote),
        ("clients", json!(config.clients)),
        ("durability", json!(durability)),
        ("log-size", json!(engine.log_bytes)),
        ("log-buffer", json!(engine.log_buffer_bytes)),
        ("checkpoint-every", json!(engine.checkpoint_log_bytes)),
        ("write-batch", json!(engine.write_batch_pages)),
        ("precondition", precondition),
        ("preload", json!(config.preload.name())),
        ("capacity", json!(plan.device_blocks * BLOCK_SIZE as u64)),
        ("fill", json!(config.fill)),
        ("op", json!(flash.map(|flash| flash.over_provisioning))),
        ("gc", json!(flash.map(|flash| &flash.gc))),
        ("no-predict", json!(!config.predict)),
        ("daily", json!(config.daily_bytes)),
        (
            "oversize",
            json!(format!("{:?}", config.oversize).to_lowercase()),
        ),
        ("limit", json!(config.limit)),
        ("warmup", json!(config.warmup)),
        ("timing", json!(config.timing)),
        ("seed", json!(config.seed)),
    ];
    pairs
        .into_iter()
        .map(|(name, value)| (name.to_string(), value))
        .collect()
}
