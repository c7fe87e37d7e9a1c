//! Table 1 and §3.5: the effect of the size of buffer nodes.

use treering_sim::replay::ReplayError;
use treering_sim::report::html::{Curve, Lines, Scale};

use crate::cell::{Work, ccl, pm_of, replay, trace};
use crate::page::{Sheet, Table};
use crate::run::each;

/// Number of records: a tenth of the paper's 50 M loaded and 50 M measured.
const RECORDS: u64 = 5_000_000;

/// Bytes of a record, an XPLine, a log entry, and the header of a buffer node.
const RECORD: f64 = 16.0;
const XPLINE: f64 = 256.0;
const ENTRY: f64 = 24.0;

/// Table 1, by N_batch from 1: GiB that 50 M inserts write to the medium; GiB of persistent memory
/// and of DRAM with 100 M records.
const MEDIA_GIB: [f64; 5] = [9.37, 7.52, 6.63, 6.17, 5.88];
const PM_GIB: [f64; 5] = [2.71, 2.77, 2.96, 2.83, 2.81];
/// Millions of 50 M searches that a buffer node answers (Table 1, "DRAM hit").
const DRAM_HITS: [f64; 5] = [4.9, 9.4, 14.2, 17.6, 21.7];
/// Number of measured searches.
const SEARCHES: u64 = 1_000_000;
const DRAM_GIB: [f64; 5] = [0.47, 0.59, 0.74, 0.82, 0.93];
const GIB: f64 = (1u64 << 30) as f64;

/// Bytes of XPLines written to leaves and to the log, per user byte, for writes of 16 bytes (§3.5).
fn formula(batch: f64) -> (f64, f64) {
    let leaf = XPLINE / RECORD / (batch + 1.0);
    let log = ENTRY / RECORD * batch / (batch + 1.0);
    (leaf, log)
}

/// Searches that buffer nodes answer after a load. For comparison, N_batch divided by the number of
/// records in a leaf and its buffer node.
fn hits(batches: &[usize]) -> Result<Table, ReplayError> {
    let trace = trace(RECORDS, SEARCHES, Work::Searches)?;
    let reports = each(batches, |batch| replay(&trace, ccl(*batch), |_| {}))?;
    let mut table = Table::new(&[
        "N_batch",
        "DRAM hits",
        "Table 1",
        "off, points",
        "N_batch ÷ records of a leaf and its node",
    ]);
    for (i, (batch, report)) in batches.iter().zip(&reports).enumerate() {
        let measured = 100.0 * report.cache.hit_ratio;
        let published = 100.0 * DRAM_HITS[i] / 50.0;
        let leaves = report.space.leaves as f64;
        table.row(&[
            batch.to_string(),
            format!("{measured:.1} %"),
            format!("{published:.1} %"),
            format!("{:+.1}", measured - published),
            format!("{:.1} %", 100.0 * *batch as f64 * leaves / RECORDS as f64),
        ]);
    }
    Ok(table)
}

pub(crate) fn figure(sheet: &mut Sheet) -> Result<(), ReplayError> {
    let trace = trace(RECORDS, RECORDS, Work::Inserts)?;
    let batches: Vec<usize> = (1..=5).collect();
    let reports = each(&batches, |batch| replay(&trace, ccl(*batch), |_| {}))?;
    let mut table = Table::new(&[
        "N_batch",
        "XBI",
        "Table 1",
        "off",
        "predicted",
        "CLI",
        "leaves",
        "log",
        "§3.5: leaves",
        "log",
    ]);
    let mut left_out = Table::new(&[
        "N_batch",
        "leaves over §3.5",
        "log over §3.5",
        "log entries per write",
        "§3.5",
        "of these copied by cleaning",
        "cleanings",
    ]);
    let mut space = Table::new(&[
        "N_batch",
        "leaf bytes per record",
        "PM, GiB for 100 M",
        "Table 1",
        "largest log, share of leaves",
        "DRAM of buffer nodes above N = 1, GiB for 100 M",
        "Table 1",
    ]);
    let (mut measured, mut paper, mut ideal) = (Vec::new(), Vec::new(), Vec::new());
    let dram = |i: usize| pm_of(&reports[i]).node_bytes as f64;
    for (i, (batch, report)) in batches.iter().zip(&reports).enumerate() {
        let (n, pm) = (*batch as f64, pm_of(report));
        let published = MEDIA_GIB[i] * GIB / (50e6 * RECORD);
        let (leaf, log) = formula(n);
        let predicted = pm.predicted.expect("records fit leaves");
        table.row(&[
            batch.to_string(),
            format!("{:.2}", pm.measured.xbi),
            format!("{published:.2}"),
            format!("{:+.1} %", 100.0 * (pm.measured.xbi / published - 1.0)),
            format!("{:.2}", predicted.xbi.value()),
            format!("{:.2}", pm.measured.cli),
            format!("{:.2}", pm.measured.xbi_leaf),
            format!("{:.2}", pm.measured.xbi_log),
            format!("{leaf:.2}"),
            format!("{log:.2}"),
        ]);
        let writes = report.ops.put as f64;
        left_out.row(&[
            batch.to_string(),
            format!("{:+.2}", pm.measured.xbi_leaf - leaf),
            format!("{:+.2}", pm.measured.xbi_log - log),
            format!("{:.3}", pm.log_appends as f64 / writes),
            format!("{:.3}", n / (n + 1.0)),
            format!("{:.3}", pm.cleaning_copies as f64 / writes),
            pm.cleanings.to_string(),
        ]);
        let records = 2.0 * RECORDS as f64;
        let leaf_bytes = pm.leaf_bytes as f64 / records;
        let log_peak = pm.log_peak_bytes as f64 / records;
        let over_first = |gib: f64| gib * 1e8 / records / GIB;
        space.row(&[
            batch.to_string(),
            format!("{leaf_bytes:.2}"),
            format!("{:.2}", (leaf_bytes + log_peak) * 1e8 / GIB),
            format!("{:.2}", PM_GIB[i]),
            format!("{:.3}", log_peak / leaf_bytes),
            format!("{:.2}", over_first(dram(i) - dram(0))),
            format!("{:.2}", DRAM_GIB[i] - DRAM_GIB[0]),
        ]);
        measured.push((n, pm.measured.xbi));
        paper.push((n, published));
        ideal.push((n, leaf + log));
    }
    sheet.table("dram-hits", hits(&batches)?);
    sheet.table("table1", table);
    sheet.table("left-out", left_out);
    sheet.table("space", space);
    let curve = |name: &str, points| Curve {
        name: name.into(),
        points,
    };
    sheet.picture(
        "ccl-table1",
        &Lines {
            x: "N_batch",
            y: "XBI-amplification",
            scale: Scale::Linear,
            y_scale: Scale::Linear,
            curves: vec![
                curve("measured", measured),
                curve("Table 1", paper),
                curve("§3.5", ideal),
            ],
        },
    );
    Ok(())
}
