//! The report of a tree in persistent memory.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use treering_engine::{Cleaning, Logging, NodeSplit, PmOptions, PmStats, PmTreeKind};

use super::plan::ENTRY_BYTES;
use crate::pm::{PmCounters, PmProfile};
use crate::predict::pm::{PmBars, PmPrediction, TreePrediction};
use crate::predict::tried::{Case, untried};
use crate::replay::config::ReplayConfig;
use crate::replay::frame::{Said, frame, named, over};
use crate::replay::look::Looked;
use crate::replay::measure::{Moment, Outcome};
use crate::report::{
    self, Amplification, CacheReport, Daily, DeviceReport, DeviceWa, HostReport, HostWa, IoBytes,
    LifetimeReport, LodgePredicted, LodgeReport, PageCauses, PmPredicted, PmReport, PredictedValue,
    ReplayReport, SpaceReport, StoreReport, WaReport, Worn,
};

/// The inputs of a report besides the run.
pub(super) struct Material<'a> {
    pub(super) config: &'a ReplayConfig,
    pub(super) options: &'a PmOptions,
    pub(super) profile: &'a PmProfile,
    pub(super) looked: &'a Looked,
    pub(super) capacity_bytes: u64,
    /// Bytes that cleaning wrote to the medium; `None` if other writes interleaved.
    pub(super) cleaning_bytes: Option<u64>,
    pub(super) predicted: Option<TreePrediction>,
}

/// Builds the report.
pub(super) fn report(material: &Material<'_>, mut outcome: Outcome<PmCounters>) -> ReplayReport {
    let Material {
        config,
        options: PmOptions { tree, .. },
        looked,
        predicted,
        ..
    } = *material;
    let said = Said {
        planned: Vec::new(),
        predicted: unpredicted(config, looked),
    };
    let mut report = frame((config, looked), &mut outcome, said);
    if config.clients > 1 && tree.facts().is_logged() {
        let shared = "All clients share a log: to the engine they are one thread.";
        report.warnings.push(shared.into());
    }
    // If no operation leaves the CPU cache, no time passes; the rate then assumes one nanosecond.
    let elapsed_ns = (report.time.elapsed_ns as f64).max(1.0);
    report.time.ops_per_second = outcome.measures.phase.ops() as f64 * 1e9 / elapsed_ns;
    let user_bytes = report.user_bytes;
    let (before, after) = (&outcome.before, &outcome.after);
    let device = after.device.since(&before.device);
    let by_class = |bytes: [u64; 3]| HostWa {
        log: over(bytes[0], user_bytes),
        page: over(bytes[1], user_bytes),
        extra: over(bytes[2], user_bytes),
        total: over(bytes.iter().sum(), user_bytes),
    };
    let host = by_class(device.written_bytes());
    let media = by_class(device.media_write_bytes());
    let stats = |moment: &Moment<PmCounters>| moment.stats.pm.unwrap_or_default();
    let pm_stats = stats(after).since(&stats(before));
    report.device = DeviceReport {
        kind: "pm".into(),
        profile: config.target.name(),
        logical_blocks: pm_stats.leaf_bytes / 4096,
        profile_values: report::flat(material.profile),
        ..DeviceReport::default()
    };
    let of_tree = (material.options, material.profile);
    (report.options).extend(options(of_tree, material.capacity_bytes));
    report.wa = WaReport {
        host: HostReport {
            by_class: host,
            page_causes: page_causes(before, after, host.page, user_bytes),
        },
        device: Some(DeviceWa {
            total: media.total,
            nand_over_host: media.total / host.total.max(1e-300),
            ..DeviceWa::default()
        }),
        untried: predicted.map_or(Vec::new(), |predicted| {
            untried(&Case::of_pm(&looked.workload, predicted.family()))
        }),
        ..WaReport::default()
    };
    let [log, page, extra] = device.written_bytes();
    report.io_bytes = IoBytes {
        log,
        page,
        extra,
        read: device.media_read_bytes().iter().sum(),
        trimmed: 0,
    };
    report.space = space(tree, looked, (after, &pm_stats));
    report.store = StoreReport {
        log_appended_bytes: pm_stats.log_appends * ENTRY_BYTES as u64,
        flushes: device.fences,
        ..StoreReport::new("persistent memory", (&before.stats, &after.stats))
    };
    let reads = pm_stats.buffer_hits + pm_stats.buffer_misses;
    report.cache = CacheReport {
        hit_ratio: pm_stats.buffer_hits as f64 / reads.max(1) as f64,
        hits: pm_stats.buffer_hits,
        misses: pm_stats.buffer_misses,
        bytes: pm_stats.node_bytes,
        ..CacheReport::default()
    };
    report.pm = Some(pm_report(
        material,
        (&device, &pm_stats),
        (host, media),
        user_bytes,
    ));
    report.lifetime = Some(lifetime(material, (host.total, media.total), user_bytes));
    report
}

/// A warning about the prediction, or the reason why there is none.
pub(super) fn unpredicted(config: &ReplayConfig, looked: &Looked) -> Vec<String> {
    let mut warnings = Vec::new();
    if !config.predict {
        return warnings;
    }
    if let Some(why) = looked.workload.accesses.lost() {
        warnings.push(format!(
            "The order of the accesses could not be kept ({why}), so writes are taken for \
             independent draws; a tree for which no such model applies is not predicted."
        ));
    }
    warnings.extend(looked.workload.estimated());
    warnings
}

fn space(
    tree: &PmTreeKind,
    looked: &Looked,
    (after, pm_stats): (&Moment<PmCounters>, &PmStats),
) -> SpaceReport {
    let leaves = after.stats.leaf_pages;
    let records = looked.workload.live_records();
    let leaf_slots = tree.facts().leaves.slots() as f64;
    SpaceReport {
        logical_bytes: pm_stats.leaf_bytes,
        physical_bytes: pm_stats.leaf_bytes + pm_stats.log_chunk_bytes + pm_stats.record_bytes,
        leaves,
        fill: records / (leaves.max(1) as f64 * leaf_slots),
        index_bytes: after.stats.index_bytes,
        ..SpaceReport::default()
    }
    .with_records(records)
}

/// The part of the page bytes due to values longer than a chunk, if there are any.
fn page_causes(
    before: &Moment<PmCounters>,
    after: &Moment<PmCounters>,
    page: f64,
    user_bytes: u64,
) -> Option<PageCauses> {
    let written = |moment: &Moment<PmCounters>| moment.stats.overflow.bytes_written;
    let overflow = (written(after) - written(before)) as f64 / user_bytes.max(1) as f64;
    (overflow > 0.0).then_some(PageCauses {
        leaf: page - overflow,
        overflow,
        overflow_predicted: None,
    })
}

/// The medium is wear-levelled, so the whole device shares the wear.
fn lifetime(material: &Material<'_>, (host, media): (f64, f64), user_bytes: u64) -> LifetimeReport {
    let capacity = material.capacity_bytes as f64;
    LifetimeReport::new(&Worn {
        erases: None,
        limit_cycles: material.profile.write_limit.map(f64::from),
        medium_bytes: capacity,
        logical_bytes: capacity,
        medium_over_host: media / host.max(f64::MIN_POSITIVE),
        host_over_user: host,
        daily: Daily::new(
            material.config.daily_bytes,
            user_bytes,
            material.looked.measured_span_ns,
            capacity,
        ),
    })
}

fn pm_report(
    material: &Material<'_>,
    (device, stats): (&PmCounters, &PmStats),
    (host, media): (HostWa<f64>, HostWa<f64>),
    user_bytes: u64,
) -> PmReport {
    let measured = Amplification {
        cli: host.total,
        xbi: media.total,
        xbi_leaf: media.page,
        xbi_log: media.log,
        xbi_extra: media.extra,
    };
    let predicted = (material.predicted).map(|predicted| amplification(&predicted, user_bytes));
    let error = predicted.map(|p| p.values()).map(|p| {
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
        cleaning_media_write_bytes: material.cleaning_bytes,
        buffered: stats.buffered,
        leaf_bytes: stats.leaf_bytes,
        log_bytes: stats.log_bytes,
        log_peak_bytes: stats.log_peak_bytes,
        node_bytes: stats.node_bytes,
        predicted_activity: material.predicted.map(|predicted| activity(predicted.pm())),
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
            predicted: material.predicted.and_then(lodge_predicted),
        }),
    }
}

fn activity(p: &PmPrediction) -> PmPredicted {
    PmPredicted {
        hit_ratio: p.hit_ratio,
        leaf_flushes: p.flushes,
        log_appends: p.appended + p.copied,
        cleanings: p.cleanings,
        leaves: p.leaves,
        buffered: p.buffered,
    }
}

/// The predicted amplification.
pub(super) fn amplification(
    predicted: &TreePrediction,
    user_bytes: u64,
) -> Amplification<PredictedValue> {
    let p = predicted.pm();
    let (model, bars) = (predicted.model(), p.bars);
    let with = |value, bar: fn(PmBars) -> f64| PredictedValue::new(value, bars.map(bar), model);
    let [leaf, log, extra] = p.xbi(user_bytes as f64);
    Amplification {
        cli: with(p.cli(user_bytes as f64), |bars| bars.cli),
        xbi: with(leaf + log + extra, |bars| bars.xbi),
        xbi_leaf: with(leaf, |bars| bars.leaf),
        xbi_log: with(log, |bars| bars.log),
        xbi_extra: with(extra, |bars| bars.extra),
    }
}

pub(super) fn lodge_predicted(predicted: TreePrediction) -> Option<LodgePredicted> {
    let TreePrediction::Lodge(p) = predicted else {
        return None;
    };
    Some(LodgePredicted {
        flushes: p.node_flushes,
        pairs_per_flush: p.pairs_per_flush,
        pairs_per_leaf: p.pairs_per_leaf,
        nodes: p.nodes,
        free_share: p.free_share,
        buffered_share: p.buffered_share,
    })
}

fn share(of: u64, all: u64) -> f64 {
    of as f64 / all.max(1) as f64
}

/// The options that only trees in persistent memory have, by flag name.
pub(super) fn options(
    (options, profile): (&PmOptions, &PmProfile),
    capacity_bytes: u64,
) -> BTreeMap<String, Value> {
    let tree = &options.tree;
    let ccl = match tree {
        PmTreeKind::Ccl(ccl) => Some(ccl),
        _ => None,
    };
    let lodge = match tree {
        PmTreeKind::Lodge(lodge) => Some(lodge),
        _ => None,
    };
    let log_percent = ccl.map(|c| c.log_percent).or(lodge.map(|l| l.log_percent));
    named([
        ("nbatch", json!(tree.facts().batch())),
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
    ])
}
