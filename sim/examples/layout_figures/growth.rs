//! The growth wave: the results of the other figures for other numbers of records.
//!
//! Leaves of random inserts split at about the same time, so the number of records per leaf rises
//! and falls as a tree grows. The paper's fan-outs are means over `N 16^-R` with `R` uniform in [0,
//! 1) (§4.4); its other figures are for one `N`.

use treering_sim::layouts::keys::{self, Order};
use treering_sim::predict::space::{Forecast, PartitionSplit};
use treering_sim::report::html::{Curve, Lines, Scale};

use crate::cell::{LAYOUTS, SEED, bytes, off, paper, sample};
use crate::page::{Sheet, Table};
use crate::sets::at;

/// The sweep ends at this fraction of the records: a quarter.
const QUARTER: u32 = 4;
/// Number of steps of the sweep, and the ratio of its largest to its smallest number of records.
const STEPS: u32 = 12;
const FACTOR: f64 = 16.0;

type Shape = fn(&Played) -> f64;

/// The predictions for one number of records.
struct Played {
    records: u32,
    /// Forecasts in the order of [`LAYOUTS`].
    forecasts: Vec<Forecast>,
    /// The fully dense tree as in the published code, with and without partition detection, and the
    /// adaptive tree likewise.
    published: [Forecast; 4],
}

impl Played {
    fn of(records: u32, numbers: &[u32]) -> Played {
        let sample = sample(&bytes(numbers), 1.0, SEED);
        let as_published = |at: usize, split| sample.forecast_with(LAYOUTS[at], split);
        Played {
            records,
            forecasts: LAYOUTS.map(|choice| sample.forecast(choice)).into(),
            published: [
                as_published(at::FULLY, PartitionSplit::BeforeNextKey),
                as_published(at::FULLY, PartitionSplit::AtMiddle),
                as_published(at::ADAPTIVE, PartitionSplit::BeforeNextKey),
                as_published(at::ADAPTIVE, PartitionSplit::AtMiddle),
            ],
        }
    }

    fn bytes(&self, at: usize) -> f64 {
        self.forecasts[at].bytes_per_record()
    }

    /// Saving relative to hints, in per cent.
    fn published_saved(&self, which: usize) -> f64 {
        100.0 * (1.0 - self.published[which].bytes_per_record() / self.bytes(at::HINTS))
    }

    /// Saving of one layout relative to another, in per cent.
    fn saved(&self, at: usize, from: usize) -> f64 {
        100.0 * (1.0 - self.bytes(at) / self.bytes(from))
    }
}

/// The swept figures: name, function, and the paper's values for dense and sparse numbers.
const SHAPES: [(&str, Shape, [&str; 2]); 12] = [
    (
        "saved by prefixes, %",
        |p| p.saved(at::PREFIX, at::BASELINE),
        ["8.0", "6.8"],
    ),
    (
        "cost of heads, B a record",
        |p| p.bytes(at::HEADS) - p.bytes(at::PREFIX),
        ["4.58", "5.78"],
    ),
    (
        "cost of hints, %",
        |p| -p.saved(at::HINTS, at::HEADS),
        ["2.0", "1.7"],
    ),
    (
        "records a leaf with hints",
        |p| p.forecasts[at::HINTS].records_per_leaf(),
        ["138.9", "134.6"],
    ),
    (
        "saved by fingerprints, %",
        |p| p.saved(at::PRINTS, at::HINTS),
        ["15.4", "15.2"],
    ),
    (
        "saved by semi-dense leaves, %",
        |p| p.saved(at::SEMI, at::HINTS),
        ["40", "–"],
    ),
    (
        "saved by fully dense leaves, %",
        |p| p.saved(at::FULLY, at::HINTS),
        ["52", "–"],
    ),
    (
        "the same, partitions split off before the next key, %",
        |p| p.published_saved(0),
        ["52", "–"],
    ),
    (
        "the same, no partitions split off, %",
        |p| p.published_saved(1),
        ["52", "–"],
    ),
    (
        "dense leaves of the adaptive tree, %",
        |p| 100.0 * p.forecasts[at::ADAPTIVE].dense(),
        ["85.7", "0"],
    ),
    (
        "the same, partitions split off before the next key, %",
        |p| 100.0 * p.published[2].dense(),
        ["85.7", "0"],
    ),
    (
        "the same, no partitions split off, %",
        |p| 100.0 * p.published[3].dense(),
        ["85.7", "0"],
    ),
];

pub(crate) fn waves(records: u32, sheet: &mut Sheet) {
    let records = records / QUARTER;
    let sizes = (0..STEPS).rev().map(|step| {
        let share = FACTOR.powf(-f64::from(step) / f64::from(STEPS));
        (f64::from(records) * share) as u32
    });
    let sizes: Vec<u32> = sizes.collect();
    let of = |numbers: fn(u32) -> Vec<u32>| -> Vec<Played> {
        let played = sizes.iter().map(|&n| Played::of(n, &numbers(n)));
        played.collect()
    };
    let dense = of(|n| keys::dense(n, 1.0, Order::Random, SEED));
    let sparse = of(|n| keys::sparse(n, Order::Random, SEED));
    let mut table = Table::new(&[
        "",
        "dense, mean",
        "least",
        "most",
        "paper, at 25 M",
        "sparse, mean",
        "least",
        "most",
        "paper, at 25 M",
    ]);
    for (name, shape, paper) in SHAPES {
        let mut line = vec![name.to_string()];
        for (set, paper) in [&dense, &sparse].into_iter().zip(paper) {
            let found: Vec<f64> = set.iter().map(shape).collect();
            let mean = found.iter().sum::<f64>() / found.len() as f64;
            let least = found.iter().copied().fold(f64::INFINITY, f64::min);
            let most = found.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            line.extend([mean, least, most].map(|x| format!("{x:.2}")));
            line.push(paper.into());
        }
        table.row(&line);
    }
    sheet.table("growth", table);
    let curve = |name: &str, of: &dyn Fn(&Played) -> f64| Curve {
        name: name.into(),
        points: (dense.iter())
            .map(|played| (f64::from(played.records), of(played)))
            .collect(),
    };
    let shown = [at::PREFIX, at::HINTS, at::PRINTS, at::SEMI, at::FULLY];
    let mut curves: Vec<_> = shown
        .iter()
        .map(|&at| curve(LAYOUTS[at].name(), &|played| played.bytes(at)))
        .collect();
    curves.push(curve("fully-dense, no partitions", &|played| {
        played.published[1].bytes_per_record()
    }));
    sheet.picture(
        "layouts-growth",
        &Lines {
            x: "records, dense, in random order",
            y: "bytes of leaves a record",
            scale: Scale::Log,
            y_scale: Scale::Linear,
            curves,
        },
    );
}

/// The paper's number of records, and the share of them that is sampled.
const LARGE: u32 = 25_000_000;
const SHARE: f64 = 0.04;

/// Predicts from a sample what the paper's number of records would take.
pub(crate) fn large(sheet: &mut Sheet) {
    let mut table = Table::new(&[
        "layout",
        "dense: bytes per record of leaves",
        "paper, all nodes",
        "off",
        "records per leaf",
        "sparse: bytes per record of leaves",
        "paper, all nodes",
        "off",
        "records per leaf",
    ]);
    let mut lines: Vec<Vec<String>> = (LAYOUTS.iter())
        .map(|choice| vec![format!("`{}`", choice.name())])
        .collect();
    for name in ["dense", "sparse"] {
        let numbers = match name {
            "dense" => keys::dense(LARGE, 1.0, Order::Random, SEED),
            _ => keys::sparse(LARGE, Order::Random, SEED),
        };
        let sample = sample(&bytes(&numbers), SHARE, SEED);
        for ((line, choice), paper) in lines.iter_mut().zip(LAYOUTS).zip(paper(name)) {
            let forecast = sample.forecast(choice);
            let bytes = forecast.bytes_per_record();
            let or_none = |text: Option<String>| text.unwrap_or("–".into());
            line.push(format!("{bytes:.2}"));
            line.push(or_none(paper.map(|paper| format!("{paper:.2}"))));
            line.push(or_none(paper.map(|paper| off(bytes, paper))));
            line.push(format!("{:.1}", forecast.records_per_leaf()));
        }
        if name == "dense" {
            let published = |split| {
                let forecast = sample.forecast_with(LAYOUTS[at::FULLY], split);
                let hints = sample.forecast(LAYOUTS[at::HINTS]).bytes_per_record();
                100.0 * (1.0 - forecast.bytes_per_record() / hints)
            };
            let mut splits = Table::new(&["where partitions are split off", "saved, dense"]);
            for (what, split) in [
                ("where places end: ours", PartitionSplit::AtPlaces),
                (
                    "before the next key: published, with detection",
                    PartitionSplit::BeforeNextKey,
                ),
                ("not at all: published, without", PartitionSplit::AtMiddle),
            ] {
                splits.row(&[what.into(), format!("{:.1} %", published(split))]);
            }
            sheet.table("large-splits", splits);
        }
    }
    lines.iter().for_each(|line| table.row(line));
    sheet.table("large", table);
}
