//! Figures 12 and 15: space by density, and which leaves become dense.

use treering_engine::node::{LayoutChoice, PageLayout};
use treering_sim::layouts::Counts;
use treering_sim::layouts::keys::{self, Order};
use treering_sim::report::html::{Curve, Lines, Scale};

use crate::cell::{SEED, bytes, dense, measure, sample};
use crate::page::{Sheet, Table, percent};

const SHOWN: [LayoutChoice; 4] = [
    LayoutChoice::of(PageLayout::Hints),
    LayoutChoice::of(PageLayout::SemiDense),
    LayoutChoice::of(PageLayout::FullyDense),
    LayoutChoice::ADAPTIVE,
];

/// Records are divided by this, because there are 25 densities times four trees.
const FRACTION: u32 = 20;

struct Cell {
    percent: u32,
    /// The measured counts, in the order of [`SHOWN`].
    counts: [Counts; 4],
    /// The largest error of the predicted bytes per record.
    off: f64,
}

pub(crate) fn figure(records: u32, sheet: &mut Sheet) {
    let records = records / FRACTION;
    let cells: Vec<Cell> = (4..=100).step_by(4).map(|at| cell(records, at)).collect();
    let mut table = Table::new(&[
        "density",
        "bytes per record: `hints`",
        "`semi-dense`",
        "saves",
        "dense leaves",
        "`fully-dense`",
        "saves",
        "dense leaves",
        "`adaptive`",
        "largest error of prediction",
    ]);
    for cell in &cells {
        let all = (cell.counts)
            .each_ref()
            .map(Counts::bytes_per_record_with_inner);
        let mut line = vec![format!("{} %", cell.percent), format!("{:.2}", all[0])];
        for i in [1, 2] {
            line.push(format!("{:.2}", all[i]));
            line.push(percent(1.0 - all[i] / all[0]));
            line.push(percent(dense(&cell.counts[i])));
        }
        line.push(format!("{:.2}", all[3]));
        line.push(percent(cell.off));
        table.row(&line);
    }
    sheet.table("density", table);
    // The adaptive tree's curve coincides with that of the fully dense tree.
    let curves = |of: &dyn Fn(&Counts) -> f64, from: usize| -> Vec<Curve> {
        let shown = SHOWN[..3].iter().enumerate().skip(from);
        let curve = |(i, choice): (usize, &LayoutChoice)| Curve {
            name: choice.name().into(),
            points: (cells.iter())
                .map(|cell| (f64::from(cell.percent), of(&cell.counts[i])))
                .collect(),
        };
        shown.map(curve).collect()
    };
    let picture = |y, curves| Lines {
        x: "density, %",
        y,
        scale: Scale::Linear,
        y_scale: Scale::Linear,
        curves,
    };
    let space = curves(&Counts::bytes_per_record_with_inner, 0);
    sheet.picture(
        "layouts-density-space",
        &picture("bytes of all nodes a record", space),
    );
    let leaves = curves(&|counts| 100.0 * dense(counts), 1);
    sheet.picture(
        "layouts-density-leaves",
        &picture("leaves that are dense, %", leaves),
    );
}

fn cell(records: u32, percent: u32) -> Cell {
    let numbers = keys::dense(records, f64::from(percent) / 100.0, Order::Random, SEED);
    let keys = bytes(&numbers);
    let counts = SHOWN.map(|choice| measure(choice, &keys));
    let sample = sample(&keys, 1.0, SEED);
    let off = SHOWN.iter().zip(&counts).map(|(choice, counts)| {
        let predicted = sample.forecast(*choice).bytes_per_record();
        (predicted / counts.bytes_per_record() - 1.0).abs()
    });
    Cell {
        percent,
        off: off.fold(0.0, f64::max),
        counts,
    }
}
