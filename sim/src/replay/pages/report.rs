//! The report of a tree of pages.

use std::path::Path;

use treering_engine::{BLOCK_SIZE, LeafFill, Stats};

use super::options::options;
use super::plan::PagePlan;
use super::waterfall;
use crate::predict::Prediction;
use crate::replay::config::{ReplayConfig, Size};
use crate::replay::frame::{Said, frame, over};
use crate::replay::look::Looked;
use crate::replay::measure::{Outcome, Phase};
use crate::replay::measured::{
    DriveRun, csd_wa, device_wa, errors, host_wa, lifetime, unsteady_drive,
};
use crate::report::{
    self, CacheReport, DeviceReport, DeviceWa, HostReport, HostWa, IoBytes, KernelReport,
    MiniPagesReport, PageCauses, PageIo, PredictedValue, ReplayReport, SpaceReport, StoreReport,
    WaReport, WaSide, with_bars,
};

/// Bins of the page-fill histogram.
const FILL_BINS: usize = 20;

/// The inputs of a report besides the run.
pub(super) struct Material<'a> {
    pub(super) config: &'a ReplayConfig,
    pub(super) looked: &'a Looked,
    pub(super) plan: &'a PagePlan,
    pub(super) leaves: Vec<LeafFill>,
    pub(super) prediction: Option<Prediction>,
}

/// The device that the store was on.
pub(super) enum On<'a> {
    Drive(Box<DriveRun<'a>>),
    File(&'a Path, KernelReport),
}

/// Builds the report.
pub(super) fn report<C>(
    material: Material<'_>,
    mut outcome: Outcome<C>,
    on: On<'_>,
) -> ReplayReport {
    let Material {
        config,
        looked,
        plan,
        leaves,
        prediction,
    } = material;
    let said = Said {
        planned: plan.warnings.clone(),
        predicted: (prediction.iter().flat_map(|p| p.warnings.clone())).collect(),
    };
    let mut report = frame((config, looked), &mut outcome, said);
    let (before, after) = (&outcome.before.stats, &outcome.after.stats);
    let phase = outcome.measures.phase;
    let written = after.written.since(&before.written);
    let drive = match &on {
        On::Drive(drive) => Some(&**drive),
        On::File(..) => None,
    };
    report.wa = wa(
        drive,
        (before, after),
        report.user_bytes,
        prediction.as_ref(),
    );
    if (config.predict || config.explain) && outcome.done_ops == looked.ops {
        let of = waterfall::Of {
            workload: &looked.workload,
            plan,
            leaves: leaves.len() as f64,
            user_bytes: report.user_bytes,
            stats: (before, after),
            ring: outcome.measures.ring,
            wa: &report.wa,
        };
        if let Some((limit, steps)) = waterfall::of(&of) {
            report.wa.limit = Some(limit);
            report.wa.waterfall = steps;
        }
    }
    report.lifetime = drive.map(|drive| {
        let spans = (phase.user_bytes, looked.measured_span_ns);
        lifetime(config.daily_bytes, drive, &report.wa, spans)
    });
    let device = (&plan.engine, plan.device_blocks);
    let asked = drive.map(|drive| &drive.asked);
    report.options.extend(options(config, device, asked));
    report.io_bytes = IoBytes {
        log: written.log,
        page: written.page,
        extra: written.extra,
        read: after.read.since(&before.read).total(),
        trimmed: after.trimmed_bytes - before.trimmed_bytes,
    };
    report.space = space(&leaves, after, plan, drive);
    report.store = store(before, after, plan);
    report.cache = cache(
        (before, after),
        (config, looked, plan),
        &phase,
        prediction.as_ref(),
    );
    report.page_fill = page_fill(&leaves, plan.engine.page_size);
    if report.user_bytes > 0 {
        report.warnings.extend(unsteady(before, after, drive));
    }
    report.device = device_report(config, plan, &on);
    if let On::File(_, kernel) = on {
        report.kernel = Some(kernel);
    }
    report.prediction = prediction;
    report
}

fn device_report(config: &ReplayConfig, plan: &PagePlan, on: &On<'_>) -> DeviceReport {
    match on {
        On::Drive(drive) => DeviceReport {
            profile: config.target.name(),
            ..drive.drive.report(&drive.before, &drive.after)
        },
        On::File(path, _) => DeviceReport {
            kind: "file".into(),
            profile: path.display().to_string(),
            logical_blocks: plan.device_blocks,
            ..DeviceReport::default()
        },
    }
}

/// Write amplification, measured beside predicted.
fn wa(
    drive: Option<&DriveRun<'_>>,
    (before, after): (&Stats, &Stats),
    user_bytes: u64,
    prediction: Option<&Prediction>,
) -> WaReport {
    let written = after.written.since(&before.written);
    let csd = drive.and_then(|drive| csd_wa(drive, user_bytes));
    let measured = WaSide {
        host: host_wa(&written, user_bytes),
        device: drive.map(|d| device_wa(&d.before.flash, &d.after.flash, user_bytes)),
        csd: csd.map(|csd| csd.stored),
    };
    // Without user bytes, amplification is undefined.
    let predicted = prediction
        .filter(|_| user_bytes > 0)
        .map(|p| predicted_side(p, measured.device.is_some()));
    let error = predicted.as_ref().map(|p| errors(&measured, p));
    let predicted = prediction.zip(predicted);
    let predicted = predicted.map(|(p, side)| with_bars(&side, p.bars.as_ref(), p.model));
    WaReport {
        host: HostReport {
            by_class: measured.host,
            page_causes: Some(page_causes(before, after, user_bytes, prediction)),
        },
        device: measured.device,
        predicted,
        error,
        csd,
        untried: prediction.map_or(Vec::new(), |p| p.untried.clone()),
        limit: None,
        waterfall: Vec::new(),
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
        overflow_predicted: prediction
            .map(|p| PredictedValue::new(p.overflow, p.bars.map(|bars| bars.host_page), p.model)),
    }
}

pub(super) fn predicted_side(p: &Prediction, with_device: bool) -> WaSide<f64> {
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

fn space(
    leaves: &[LeafFill],
    after: &Stats,
    plan: &PagePlan,
    drive: Option<&DriveRun<'_>>,
) -> SpaceReport {
    let device_bytes = plan.device_blocks * BLOCK_SIZE as u64;
    let count = leaves.len().max(1) as f64;
    let records: u64 = leaves.iter().map(|l| u64::from(l.records)).sum();
    let used: u64 = leaves.iter().map(|l| u64::from(l.used_bytes)).sum();
    let page = plan.engine.page_size as u64;
    let logical = leaves.len() as u64 * page;
    SpaceReport {
        logical_bytes: logical,
        physical_bytes: drive.map_or(device_bytes, |d| d.drive.in_use_bytes()),
        leaves: leaves.len() as u64,
        fill: used as f64 / (count * page as f64),
        index_bytes: after.index_bytes,
        ..SpaceReport::default()
    }
    .with_records(records as f64)
}

fn store(before: &Stats, after: &Stats, plan: &PagePlan) -> StoreReport {
    let store = StoreReport::new(plan.engine.store.name(), (before, after));
    let page_bytes = plan.engine.page_size as f64;
    StoreReport {
        beta: store.delta_bytes_mean.map(|delta| delta / page_bytes),
        ..store
    }
}

fn cache(
    (before, after): (&Stats, &Stats),
    (config, looked, plan): (&ReplayConfig, &Looked, &PagePlan),
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
    // A page is read together with its log block, if it has one.
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
        data_set_bytes: looked.workload.data_set_bytes().round() as u64,
        mini_pages,
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

/// Evictions from the larger part of the cache: with mini-pages there are few frames below them,
/// which change all the time.
fn evictions(stats: &Stats) -> u64 {
    stats.bf.map_or(stats.evictions, |bf| bf.evictions)
}

/// Warnings about runs that were too short.
fn unsteady(before: &Stats, after: &Stats, drive: Option<&DriveRun<'_>>) -> Vec<String> {
    let mut warnings = Vec::new();
    let appended = after.log_appended_bytes - before.log_appended_bytes;
    if appended > 0 && after.written.since(&before.written).total() == 0 {
        warnings.push(format!(
            "Nothing reached the device after warm-up: all {appended} bytes of log are still in \
             its buffer (more operations, or --durability commit, would change that)."
        ));
    }
    if evictions(after) == evictions(before) {
        let what = match after.bf {
            None => "page",
            Some(_) => "mini-page",
        };
        warnings.push(format!(
            "No {what} was evicted after warm-up: the cache holds the whole working set."
        ));
    }
    warnings.extend(drive.iter().flat_map(|drive| unsteady_drive(drive)));
    warnings
}
