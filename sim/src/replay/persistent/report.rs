//! The report of a replay on persistent memory.

use treering_engine::{Cleaning, Logging, NodeSplit, PmStats, PmTreeKind};

use super::{ENTRY_BYTES, LODGE_SLOTS, Outcome, PmReplayConfig, Predicted, Snapshot};
use crate::pm::PmCounters;
use crate::predict::pm as predict;
use crate::predict::tried::{Case, Family, untried};
use crate::replay::plan::Looked;
use crate::report::{
    self, Amplification, CacheReport, Daily, DeviceReport, DeviceWa, HostReport, HostWa, IoBytes,
    LifetimeReport, LodgeReport, PageCauses, PmReport, ReplayReport, SpaceReport, StoreReport,
    TimeReport, TraceInfo, WaReport, Worn,
};

/// Slots of a leaf (CCL-BTree §3.3).
const LEAF_SLOTS: f64 = 14.0;

/// Makes the report of a run on so many bytes.
pub(super) fn of(
    config: &PmReplayConfig,
    looked: &Looked,
    outcome: Outcome,
    predicted: Option<Predicted>,
    capacity_bytes: u64,
) -> ReplayReport {
    let user_bytes = outcome.phase.user_bytes;
    let (before, after) = (&outcome.before, &outcome.after);
    let device = after.device.since(&before.device);
    let over = |bytes: u64| match user_bytes {
        0 => 0.0,
        user_bytes => bytes as f64 / user_bytes as f64,
    };
    let by_class = |bytes: [u64; 3]| HostWa {
        log: over(bytes[0]),
        page: over(bytes[1]),
        extra: over(bytes[2]),
        total: over(bytes.iter().sum()),
    };
    let host = by_class(device.written_bytes());
    let media = by_class(device.media_write_bytes());
    let elapsed_ns = after.at.0 - before.at.0;
    let stats = |s: &Snapshot| s.stats.pm.unwrap_or_default();
    let pm_stats = stats(after).since(&stats(before));
    let leaves = after.stats.leaf_pages;
    let records = looked.workload.live_records();
    let leaf_slots = match config.tree {
        PmTreeKind::Lodge(_) => LODGE_SLOTS,
        _ => LEAF_SLOTS,
    };
    let reads = pm_stats.buffer_hits + pm_stats.buffer_misses;
    let mut warnings = Vec::new();
    warnings.extend(crate::replay::interrupted(outcome.done_ops, looked.ops));
    if config.predict && !predict::fits_leaves(&looked.workload) {
        warnings.push(
            "Nothing is predicted: keys or values are not of eight bytes, so records lie outside the leaves.".into(),
        );
    }
    if config.predict {
        warnings.extend(looked.workload.estimated());
    }
    warnings.extend(outcome.phase.skips());
    if user_bytes == 0 {
        warnings.push("Nothing was written after warm-up: there is no write amplification.".into());
    }
    if config.clients > 1 && config.tree != PmTreeKind::PmTree {
        warnings.push("All clients share a log: to the engine they are one thread.".into());
    }
    ReplayReport {
        schema: report::SCHEMA,
        complete: outcome.done_ops == looked.ops,
        trace: TraceInfo {
            name: looked.header.name.clone(),
            source: looked.header.source.clone(),
            ops: outcome.done_ops,
            warmup_ops: looked.warmup_ops.min(outcome.done_ops),
            records: looked.workload.records().round() as u64,
            blocks: looked.blocks(),
        },
        preload: looked.loads.report.clone(),
        tree: config.tree.name().into(),
        device: DeviceReport {
            kind: "pm".into(),
            profile: config.name.clone(),
            logical_blocks: pm_stats.leaf_bytes / 4096,
            profile_values: report::flat(&config.profile),
            ..DeviceReport::default()
        },
        options: options(config, capacity_bytes),
        ops: outcome.phase.by_op(),
        user_bytes,
        wa: WaReport {
            host: HostReport {
                by_class: host,
                page_causes: page_causes(before, after, host.page, user_bytes),
            },
            device: Some(DeviceWa {
                total: media.total,
                gc: 0.0,
                nand_over_host: media.total / host.total.max(1e-300),
            }),
            predicted: None,
            error: None,
            csd: None,
            untried: predicted.map_or(Vec::new(), |_| {
                let family = match config.tree {
                    PmTreeKind::Lodge(_) => Family::Lodge,
                    _ => Family::Ccl,
                };
                untried(&Case::of_pm(&looked.workload, family))
            }),
        },
        io_bytes: IoBytes {
            log: device.written_bytes()[0],
            page: device.written_bytes()[1],
            extra: device.written_bytes()[2],
            read: device.media_read_bytes().iter().sum(),
            trimmed: 0,
        },
        latency_ns: config.timing.then(|| outcome.latencies.report()),
        time: TimeReport {
            elapsed_ns,
            ops_per_second: outcome.phase.ops() as f64 * 1e9 / (elapsed_ns as f64).max(1.0),
            queued: config.timing,
        },
        space: SpaceReport {
            logical_bytes: pm_stats.leaf_bytes,
            physical_bytes: pm_stats.leaf_bytes + pm_stats.log_chunk_bytes + pm_stats.record_bytes,
            leaves,
            records: records.round() as u64,
            records_per_leaf: records / leaves.max(1) as f64,
            fill: records / (leaves.max(1) as f64 * leaf_slots),
            index_bytes: after.stats.index_bytes,
        },
        store: StoreReport {
            kind: "persistent memory".into(),
            splits: after.stats.splits - before.stats.splits,
            contention_splits: 0,
            contended_writes: 0,
            merges: after.stats.merges - before.stats.merges,
            log_appended_bytes: pm_stats.log_appends * ENTRY_BYTES as u64,
            flushes: device.fences,
            ..StoreReport::default()
        },
        cache: CacheReport {
            hit_ratio: pm_stats.buffer_hits as f64 / reads.max(1) as f64,
            hits: pm_stats.buffer_hits,
            misses: pm_stats.buffer_misses,
            bytes: pm_stats.node_bytes,
            ..CacheReport::default()
        },
        pm: Some(pm_report(
            &device,
            &pm_stats,
            (host, media),
            user_bytes,
            outcome.cleaning_bytes,
            predicted,
        )),
        lifetime: Some(lifetime(
            config,
            looked,
            (host.total, media.total),
            user_bytes,
            capacity_bytes,
        )),
        kernel: None,
        prediction: None,
        series: outcome.series,
        page_fill: Vec::new(),
        warnings,
    }
}

/// What of the pages' bytes is of values that are longer than a chunk, if there are such.
fn page_causes(
    before: &Snapshot,
    after: &Snapshot,
    page: f64,
    user_bytes: u64,
) -> Option<PageCauses> {
    let written = |snapshot: &Snapshot| snapshot.stats.overflow.bytes_written;
    let overflow = (written(after) - written(before)) as f64 / user_bytes.max(1) as f64;
    (overflow > 0.0).then_some(PageCauses {
        leaf: page - overflow,
        overflow,
        overflow_predicted: None,
    })
}

/// The whole device shares the wear: the medium is levelled.
fn lifetime(
    config: &PmReplayConfig,
    looked: &Looked,
    (host, media): (f64, f64),
    user_bytes: u64,
    capacity_bytes: u64,
) -> LifetimeReport {
    let capacity = capacity_bytes as f64;
    LifetimeReport::new(&Worn {
        erases: None,
        limit_cycles: config.profile.write_limit.map(f64::from),
        medium_bytes: capacity,
        logical_bytes: capacity,
        medium_over_host: media / host.max(f64::MIN_POSITIVE),
        host_over_user: host,
        daily: Daily::new(
            config.daily_bytes,
            user_bytes,
            looked.measured_span_ns,
            capacity,
        ),
    })
}

fn pm_report(
    device: &PmCounters,
    stats: &PmStats,
    (host, media): (HostWa<f64>, HostWa<f64>),
    user_bytes: u64,
    cleaning_bytes: Option<u64>,
    predicted: Option<Predicted>,
) -> PmReport {
    let measured = Amplification {
        cli: host.total,
        xbi: media.total,
        xbi_leaf: media.page,
        xbi_log: media.log,
        xbi_extra: media.extra,
    };
    let predicted_lodge = predicted.and_then(|p| p.lodge);
    let predicted = predicted.map(|Predicted { pm: p, .. }| {
        let (leaf, log) = p.xbi(user_bytes as f64);
        Amplification {
            cli: p.cli(user_bytes as f64),
            xbi: leaf + log,
            xbi_leaf: leaf,
            xbi_log: log,
            xbi_extra: 0.0,
        }
    });
    let error = predicted.map(|p| {
        let of = |measured: f64, predicted| report::error(measured, predicted, media.total);
        Amplification {
            cli: report::error(measured.cli, p.cli, measured.cli),
            xbi: of(measured.xbi, p.xbi),
            xbi_leaf: of(measured.xbi_leaf, p.xbi_leaf),
            xbi_log: of(measured.xbi_log, p.xbi_log),
            xbi_extra: of(measured.xbi_extra, p.xbi_extra),
        }
    });
    PmReport {
        measured,
        predicted,
        error,
        media_read_bytes: device.media_read_bytes().iter().sum(),
        media_write_bytes: device.media_write_bytes().iter().sum(),
        buffer_hit_ratio: device.buffer_hit_ratio(),
        read_modify_writes: device.merges,
        fences: device.fences,
        leaf_flushes: stats.leaf_flushes(),
        trigger_writes: stats.trigger_writes,
        log_appends: stats.log_appends,
        cleanings: stats.cleanings,
        cleaning_copies: stats.cleaning_copies,
        cleaning_flushes: stats.cleaning_flushes,
        cleaning_media_write_bytes: cleaning_bytes,
        buffered: stats.buffered,
        leaf_bytes: stats.leaf_bytes,
        log_bytes: stats.log_bytes,
        log_peak_bytes: stats.log_peak_bytes,
        node_bytes: stats.node_bytes,
        lodge: stats.lodge.map(|lodge| LodgeReport {
            flushes: lodge.flushes,
            pairs_per_flush: share(lodge.flushed, lodge.flushes),
            pairs_per_leaf: share(lodge.flushed, stats.leaf_flushes()),
            most_leaves_flushed: lodge.most_leaves_flushed,
            clears: lodge.clears,
            node_splits: lodge.node_splits.to_vec(),
            nodes: lodge.nodes,
            free_share: lodge.free_share(),
            buffered_share: share(lodge.buffered, lodge.slots),
            logs_opened: lodge.logs_opened,
            log_room_entries: lodge.log_room_entries,
            predicted: predicted_lodge,
        }),
    }
}

fn share(of: u64, all: u64) -> f64 {
    of as f64 / all.max(1) as f64
}

/// The options in force, by flag name.
fn options(
    config: &PmReplayConfig,
    capacity_bytes: u64,
) -> std::collections::BTreeMap<String, serde_json::Value> {
    use serde_json::json;
    let profile = &config.profile;
    let ccl = match config.tree {
        PmTreeKind::Ccl(ccl) => Some(ccl),
        _ => None,
    };
    let lodge = match config.tree {
        PmTreeKind::Lodge(lodge) => Some(lodge),
        _ => None,
    };
    let log_percent = ccl.map(|c| c.log_percent).or(lodge.map(|l| l.log_percent));
    let pairs = [
        ("nbatch", json!(config.batch())),
        (
            "logging",
            json!(ccl.map(|c| match c.logging {
                Logging::WriteConservative => "write-conservative",
                Logging::EveryWrite => "every-write",
            })),
        ),
        (
            "cleaning",
            json!(ccl.map(|c| match c.cleaning {
                Cleaning::LocalityAware => "locality-aware",
                Cleaning::Naive => "naive",
            })),
        ),
        (
            "log-share",
            json!(log_percent.map(|percent| f64::from(percent) / 100.0)),
        ),
        ("slots", json!(lodge.map(|l| l.slots))),
        ("t-node", json!(lodge.map(|l| l.t_node))),
        ("t-split", json!(lodge.map(|l| l.t_split))),
        (
            "node-split",
            json!(lodge.map(|l| match l.node_split {
                NodeSplit::Double => "double",
                NodeSplit::HotnessAware => "hotness-aware",
            })),
        ),
        ("log-entries", json!(lodge.map(|l| l.log_entries))),
        ("dimms", json!(profile.dimms)),
        ("eadr", json!(profile.eadr)),
        ("capacity", json!(capacity_bytes)),
        ("preload", json!(config.preload.name())),
        (
            "oversize",
            json!(format!("{:?}", config.oversize).to_lowercase()),
        ),
        ("no-predict", json!(!config.predict)),
        ("daily", json!(config.daily_bytes)),
        ("clients", json!(config.clients)),
        ("limit", json!(config.limit)),
        ("warmup", json!(config.warmup)),
        ("timing", json!(config.timing)),
        ("seed", json!(config.seed)),
    ];
    let named = |(name, value): (&str, serde_json::Value)| (name.to_string(), value);
    pairs.into_iter().map(named).collect()
}
