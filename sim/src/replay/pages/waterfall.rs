//! From the least that the memory allows to what was written, step by step.
//!
//! ```text
//! limit      leaves full, all of the cache full of changes, the future known
//!  + leaves  … with as many leaves as there are
//!  + memory  … with the part of the cache that held changes: without frames, free room, headers …
//!  + order   the rest of what was written of leaves: which leaf was written, and when
//!  + log, values on blocks of their own, journal or page table, the drive
//! ```
//!
//! The first steps are differences of bounds ([`crate::limit`]) with ever less memory. So each says
//! by how much the least grows because that memory holds something else.

use treering_engine::{BLOCK_SIZE, Stats, TreeKind};

use super::plan::PagePlan;
use crate::limit::{Leaves, Limit, Unit};
use crate::predict::Workload;
use crate::replay::frame::over;
use crate::replay::measure::RingMean;
use crate::report::numbers::{bytes, grouped};
use crate::report::{HostWa, LimitReport, WaReport, Waterfall, WaterfallStep};

/// What a waterfall is of.
pub(super) struct Of<'a> {
    pub(super) workload: &'a Workload,
    pub(super) plan: &'a PagePlan,
    /// Number of leaves at the end.
    pub(super) leaves: f64,
    pub(super) user_bytes: u64,
    /// The engine's counters before and after the measured part.
    pub(super) stats: (&'a Stats, &'a Stats),
    pub(super) ring: RingMean,
    pub(super) wa: &'a WaReport,
}

/// The limit and the steps; `None` without user bytes, or if the order of accesses was lost.
pub(super) fn of(of: &Of<'_>) -> Option<(LimitReport, Vec<WaterfallStep>)> {
    let engine = &of.plan.engine;
    if of.user_bytes == 0 || of.workload.accesses.lost().is_some() {
        return None;
    }
    let page_size = engine.page_size;
    let bound = |count| Limit::kept(of.workload, Leaves { page_size, count }).ok();
    let holds_records = matches!(engine.tree, TreeKind::Bf(_));
    let write_bytes = engine.mod_log.map_or(page_size, |_| BLOCK_SIZE) as u64;
    let user = of.user_bytes as f64;
    let per_user = |writes: f64| writes * write_bytes as f64 / user;
    let memory = engine.cache_bytes as f64;

    // What any tree could do, and with as many leaves as there are.
    let full = bound(None)?;
    let real = bound(Some(of.leaves))?;
    let least_of = |unit, memory| per_user(real.writes(unit, memory));
    let writes = full.writes(Unit::Records, memory);
    let long = of.workload.measured.overflow_value_bytes(page_size) as f64;
    let log = (1.0 - long / user).max(0.0);
    let host = HostWa {
        log,
        page: per_user(writes),
        extra: 0.0,
        total: log + per_user(writes),
    };
    let report = LimitReport {
        memory_bytes: engine.cache_bytes,
        leaves: full.leaves,
        write_bytes,
        writes,
        changes_per_write: (writes >= 1.0).then(|| full.changes / writes),
        estimated: full.is_estimated(),
        above: (host.total > 0.0).then(|| of.wa.host.total / host.total),
        host,
    };

    let mut steps = Waterfall::default();
    let what = format!(
        "each change once in the log, full leaves, {} of changes",
        bytes(memory)
    );
    steps.add("limit", host.total, what);
    let mut least = per_user(writes);
    let mut to = |steps: &mut Waterfall, name, wa: f64, what: String| {
        steps.add(name, wa - least, what);
        least = wa;
    };
    let what = format!(
        "{} leaves, not the {} that keys and values fill",
        grouped(of.leaves as u64),
        grouped(full.leaves.round() as u64)
    );
    to(&mut steps, "leaves", least_of(Unit::Records, memory), what);
    if holds_records {
        for (name, left, what) in memories(of) {
            to(&mut steps, name, least_of(Unit::Records, left), what);
        }
    } else {
        let what = format!(
            "memory holds pages of {}, not changes",
            bytes(page_size as f64)
        );
        to(
            &mut steps,
            "whole pages",
            least_of(Unit::Pages, memory),
            what,
        );
    }
    let causes = of.wa.host.page_causes.unwrap_or_default();
    rest_of_leaves(of, &mut steps, causes.leaf - least);
    others(of, &mut steps, (log, causes.overflow));
    Some((report, steps.into_steps()))
}

fn percent_of(part: f64, whole: f64) -> String {
    format!("{:.1} %", 100.0 * part / whole.max(1.0))
}

/// Memory for changes, without one thing after the other that takes some of it.
fn memories(of: &Of<'_>) -> Vec<(&'static str, f64, String)> {
    let after = of.stats.1;
    let ring = after.bf.map_or(0, |bf| bf.ring_bytes) as f64;
    let cache = of.plan.engine.cache_bytes as f64;
    let share = |bytes: f64| percent_of(bytes, ring);
    let mut memories = vec![(
        "frames",
        ring,
        format!("{} of the cache is frames", percent_of(cache - ring, cache)),
    )];
    let Some([dirty, slots, clean, headers, slack, holes, free]) = of.ring.parts() else {
        return memories;
    };
    let mut left = ring;
    for (name, bytes, what) in [
        ("free room", free, "of the ring is between tail and head"),
        (
            "holes",
            holes,
            "of the ring is free blocks, tombstones and padding",
        ),
        (
            "size classes",
            slack,
            "of the ring is unused room in mini-pages",
        ),
        ("headers", headers, "of the ring is headers of mini-pages"),
        (
            "cached records",
            clean,
            "of the ring is records that the leaf has, too",
        ),
        (
            "record slots",
            slots,
            "of the ring is what changed records take beside key and value",
        ),
    ] {
        left -= bytes;
        memories.push((name, left, format!("{} {what}", share(bytes))));
    }
    if let Some((_, _, what)) = memories.last_mut() {
        *what += &format!("; {} is their keys and values", share(dirty));
    }
    memories
}

/// Splits what was written of leaves beyond the least among the causes of the writes.
fn rest_of_leaves(of: &Of<'_>, steps: &mut Waterfall, rest: f64) {
    let (before, after) = of.stats;
    let parts: Vec<(&'static str, f64, &str)> = match (before.bf, after.bf) {
        (Some(before), Some(after)) => {
            let merges = after.since(&before).merges;
            vec![
                (
                    "checkpoints",
                    merges.checkpoint as f64,
                    "of the merges are for checkpoints",
                ),
                (
                    "room",
                    merges.room as f64,
                    "of the merges are for room in a mini-page or leaf",
                ),
                (
                    "order",
                    (merges.eviction + merges.copy_on_access + merges.leaf_merge) as f64,
                    "of the merges are at the head of the ring",
                ),
            ]
        }
        _ => vec![
            (
                "checkpoints",
                (after.pages_checkpointed - before.pages_checkpointed) as f64,
                "of the page writes are for checkpoints",
            ),
            (
                "order",
                (after.pages_written_back - before.pages_written_back) as f64,
                "of the page writes are before evictions",
            ),
        ],
    };
    let all: f64 = parts.iter().map(|(_, n, _)| n).sum();
    if all == 0.0 {
        steps.add("order", rest, "which leaf is written, and when");
        return;
    }
    for (name, n, what) in parts {
        let what = format!("{} {what}", percent_of(n, all));
        steps.add(name, rest * n / all, what);
    }
}

/// What is no leaf.
fn others(of: &Of<'_>, steps: &mut Waterfall, (log, overflow): (f64, f64)) {
    let (before, after) = of.stats;
    let host = *of.wa.host;
    steps.add("long values", overflow, "values on blocks of their own");
    let appended = over(
        after.log_appended_bytes - before.log_appended_bytes,
        of.user_bytes,
    );
    let relogged = |stats: &Stats| stats.bf.map_or(0, |bf| bf.relogged);
    let what = match relogged(after) - relogged(before) {
        0 => "headers of log records",
        _ => "headers of log records, and records logged again",
    };
    steps.add("log records", appended - log, what);
    let what = "the rest of log blocks, less what is not flushed yet";
    steps.add("log blocks", host.log - appended, what);
    let what = match of.plan.engine.store.name() {
        "cow" => "blocks of the page table, snapshots, superblocks",
        "shadow" => "snapshots, superblocks",
        _ => "page journal, snapshots, superblocks",
    };
    steps.add("store", host.extra, what);
    let Some(device) = of.wa.device else {
        return;
    };
    if let Some(csd) = of.wa.csd {
        steps.add(
            "compression",
            csd.stored.total - host.total,
            "the drive compresses",
        );
    }
    let collected = device.total - steps.sum();
    steps.add(
        "drive",
        collected,
        "garbage collection, and what the drive adds to blocks",
    );
}
