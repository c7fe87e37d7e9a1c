//! Figure 13, right: ascending numbers in partitions.

use treering_engine::node::{LayoutChoice, PageLayout};
use treering_sim::layouts::Counts;
use treering_sim::layouts::keys;
use treering_sim::report::html::{Curve, Lines, Scale};

use crate::cell::{SEED, dense, measure, sample};
use crate::page::{Sheet, Table, percent};

const SHOWN: [LayoutChoice; 4] = [
    LayoutChoice::of(PageLayout::Hints),
    LayoutChoice::of(PageLayout::SemiDense),
    LayoutChoice::of(PageLayout::FullyDense),
    LayoutChoice::ADAPTIVE,
];
const EACH: [u32; 11] = [
    10, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000,
];

pub(crate) fn figure(records: u32, sheet: &mut Sheet) {
    let records = records / 20;
    let mut table = Table::new(&[
        "records per partition",
        "bytes per record: `hints`",
        "`fully-dense`",
        "dense leaves",
        "`semi-dense`: dense leaves",
        "`adaptive`",
        "largest error of prediction",
    ]);
    let mut curves: Vec<Curve> = Vec::new();
    for choice in SHOWN {
        curves.push(Curve {
            name: choice.name().into(),
            points: Vec::new(),
        });
    }
    for each in EACH {
        let keys = keys::partitioned(records, records / each, SEED);
        let counts = SHOWN.map(|choice| measure(choice, &keys));
        let all = counts.each_ref().map(Counts::bytes_per_record_with_inner);
        for (curve, bytes) in curves.iter_mut().zip(all) {
            curve.points.push((f64::from(each), bytes));
        }
        let sample = sample(&keys, 1.0, SEED);
        let off = SHOWN.iter().zip(&counts).map(|(choice, counts)| {
            let predicted = sample.forecast(*choice).bytes_per_record();
            (predicted / counts.bytes_per_record() - 1.0).abs()
        });
        table.row(&[
            each.to_string(),
            format!("{:.2}", all[0]),
            format!("{:.2}", all[2]),
            percent(dense(&counts[2])),
            percent(dense(&counts[1])),
            format!("{:.2}", all[3]),
            percent(off.fold(0.0, f64::max)),
        ]);
    }
    sheet.table("partitions", table);
    // With partitions all these leaves have hints, so the curve is the same as that of hints.
    curves.remove(1);
    sheet.picture(
        "layouts-partitions",
        &Lines {
            x: "records a partition",
            y: "bytes of all nodes a record",
            scale: Scale::Log,
            y_scale: Scale::Linear,
            curves,
        },
    );
}
