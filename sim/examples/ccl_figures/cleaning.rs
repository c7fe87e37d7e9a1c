//! Figure 14 and §3.4: the cost of cleaning the log, and its duration.

use treering_engine::{CclOptions, Cleaning, PmTreeKind};
use treering_sim::replay::ReplayError;
use treering_sim::report::html::{Curve, Lines, Scale};

use crate::cell::{Work, pm_of, replay, trace};
use crate::page::{Sheet, Table, percent};
use crate::run::each;

const RECORDS: u64 = 1_000_000;

/// Number of clients: one socket's part of the paper's 48 threads.
const CLIENTS: u32 = 24;

fn tree(cleaning: Cleaning) -> PmTreeKind {
    PmTreeKind::Ccl(CclOptions {
        cleaning,
        ..CclOptions::default()
    })
}

pub(crate) fn figure(sheet: &mut Sheet) -> Result<(), ReplayError> {
    let trace = trace(RECORDS, 2 * RECORDS, Work::Inserts)?;
    let kinds = [
        ("locality-aware", Cleaning::LocalityAware),
        ("naive", Cleaning::Naive),
    ];
    let mut wanted = Vec::new();
    for timing in [false, true] {
        wanted.extend(kinds.map(|(name, cleaning)| (name, cleaning, timing)));
    }
    let reports = each(&wanted, |(_, cleaning, timing)| {
        replay(&trace, tree(*cleaning), |config| {
            config.timing = *timing;
            config.clients = if *timing { CLIENTS } else { 1 };
        })
    })?;
    let mut table = Table::new(&[
        "cleaning",
        "cleanings",
        "KiB written per cleaning",
        "entries copied per cleaning",
        "leaves flushed per cleaning",
    ]);
    for ((name, ..), report) in kinds.iter().zip(&reports) {
        let pm = pm_of(report);
        let each = |n: u64| n as f64 / pm.cleanings.max(1) as f64;
        let bytes = pm.cleaning_media_write_bytes.unwrap_or_default();
        table.row(&[
            (*name).into(),
            pm.cleanings.to_string(),
            format!("{:.0}", each(bytes) / 1024.0),
            format!("{:.0}", each(pm.cleaning_copies)),
            format!("{:.0}", each(pm.cleaning_flushes)),
        ]);
    }
    sheet.table("cleaning", table);
    let mut rates = Table::new(&[
        "cleaning",
        "M inserts/s, all",
        "median of a hundredth",
        "slowest hundredth",
        "slowdown",
    ]);
    let mut curves = Vec::new();
    for ((name, ..), report) in kinds.iter().zip(&reports[kinds.len()..]) {
        let mut points = Vec::new();
        let (mut ops, mut at) = (0, 0);
        for point in &report.series {
            let seconds = (point.elapsed_ns - at) as f64 / 1e9;
            let rate = (point.ops - ops) as f64 / seconds / 1e6;
            // Steps, because a stop is long and its rate holds throughout.
            points.extend([at, point.elapsed_ns].map(|ns| (ns as f64 / 1e6, rate)));
            (ops, at) = (point.ops, point.elapsed_ns);
        }
        let mut sorted: Vec<f64> = points.iter().step_by(2).map(|(_, rate)| *rate).collect();
        sorted.sort_by(f64::total_cmp);
        let (slowest, median) = (sorted[0], sorted[sorted.len() / 2]);
        rates.row(&[
            (*name).into(),
            format!("{:.2}", report.time.ops_per_second / 1e6),
            format!("{median:.2}"),
            format!("{slowest:.2}"),
            percent(1.0 - slowest / median),
        ]);
        curves.push(Curve {
            name: (*name).into(),
            points,
        });
    }
    sheet.table("cleaning-rate", rates);
    sheet.picture(
        "ccl-cleaning",
        &Lines {
            x: "virtual time in milliseconds",
            y: "M inserts/s",
            scale: Scale::Linear,
            y_scale: Scale::Linear,
            curves,
        },
    );
    Ok(())
}
