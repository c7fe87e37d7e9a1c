//! §4.1-§4.6: the sets of numbers, in every layout.

use treering_sim::layouts::Counts;
use treering_sim::layouts::keys::{self, Order};

use crate::cell::{LAYOUTS, SEED, bytes, dense, measure, off, paper, sample};
use crate::page::{Sheet, Table, percent};

/// Indices into [`LAYOUTS`].
pub(crate) mod at {
    pub(crate) const BASELINE: usize = 0;
    pub(crate) const PREFIX: usize = 1;
    pub(crate) const HEADS: usize = 2;
    pub(crate) const HINTS: usize = 3;
    pub(crate) const PRINTS: usize = 4;
    pub(crate) const SEMI: usize = 5;
    pub(crate) const FULLY: usize = 6;
    pub(crate) const ADAPTIVE: usize = 7;
}

/// The page's name for a table of this many records.
pub(crate) fn named(name: &str, records: u32) -> String {
    match records {
        2_500_000 => name.into(),
        more if more % 1_000_000 == 0 => format!("{name}-{}M", more / 1_000_000),
        some => format!("{name}-{some}"),
    }
}

/// A table with a line for each layout.
pub(crate) fn table<K: AsRef<[u8]>>(
    keys: &[K],
    counts: &[Counts],
    paper: [Option<f64>; 8],
) -> Table {
    let sample = sample(keys, 1.0, SEED);
    let mut table = Table::new(&[
        "layout",
        "leaves",
        "records per leaf",
        "bytes per record, leaves",
        "predicted",
        "all nodes",
        "paper",
        "off",
        "prefix, bytes",
        "neighbours whose heads differ",
        "dense leaves",
    ]);
    for ((choice, counts), paper) in LAYOUTS.iter().zip(counts).zip(paper) {
        let all = counts.bytes_per_record_with_inner();
        let or_none = |text: Option<String>| text.unwrap_or("–".into());
        table.row(&[
            format!("`{}`", choice.name()),
            counts.leaves.to_string(),
            format!("{:.1}", counts.records_per_leaf()),
            format!("{:.2}", counts.bytes_per_record()),
            format!("{:.2}", sample.forecast(*choice).bytes_per_record()),
            format!("{all:.2}"),
            or_none(paper.map(|paper| format!("{paper:.2}"))),
            or_none(paper.map(|paper| off(all, paper))),
            format!("{:.2}", counts.prefix_bytes_mean()),
            percent(counts.distinct_heads()),
            percent(dense(counts)),
        ]);
    }
    table
}

pub(crate) fn tables(records: u32, sheet: &mut Sheet) {
    let sets = [
        ("dense", keys::dense(records, 1.0, Order::Random, SEED)),
        ("sparse", keys::sparse(records, Order::Random, SEED)),
    ];
    let counts = sets.map(|(name, numbers)| {
        let keys = bytes(&numbers);
        let counts = LAYOUTS.map(|choice| measure(choice, &keys));
        sheet.table(&named(name, records), table(&keys, &counts, paper(name)));
        counts
    });
    sheet.table(&named("claims", records), claims(&counts));
}

/// A claim of CLAIMS.md: its row, what it is about, the measured and the published value, and the
/// accepted deviation in the same unit.
struct Claim {
    row: &'static str,
    what: String,
    measured: f64,
    paper: f64,
    within: f64,
    unit: Unit,
}

enum Unit {
    /// Percentage points.
    Points,
    Bytes,
    /// Records; the deviation is a percentage.
    Records,
}

impl Claim {
    fn line(&self) -> [String; 6] {
        let off = match self.unit {
            Unit::Points | Unit::Bytes => self.measured - self.paper,
            Unit::Records => 100.0 * (self.measured / self.paper - 1.0),
        };
        let of = |number: f64| match self.unit {
            Unit::Points => format!("{number:.1} %"),
            Unit::Bytes => format!("{number:.2} B"),
            Unit::Records => format!("{number:.1}"),
        };
        let unit = match self.unit {
            Unit::Points => "points",
            Unit::Bytes => "B",
            Unit::Records => "%",
        };
        let held = if off.abs() <= self.within {
            "yes"
        } else {
            "**no**"
        };
        [
            format!("{} {}", self.row, self.what),
            of(self.measured),
            of(self.paper),
            format!("{off:+.2} {unit}"),
            format!("±{} {unit}", self.within),
            held.into(),
        ]
    }
}

/// The paper's claims about numbers, in the order dense, sparse.
fn claims(counts: &[[Counts; 8]; 2]) -> Table {
    let all = |set: usize, at: usize| counts[set][at].bytes_per_record_with_inner();
    let saved = |set: usize, at: usize, from: usize| 100.0 * (1.0 - all(set, at) / all(set, from));
    let leaf = |set: usize, at: usize| counts[set][at].records_per_leaf();
    let mut claims = Vec::new();
    for (set, name) in ["dense", "sparse"].into_iter().enumerate() {
        let mut claim = |row, what: &str, measured, paper: [f64; 2], within, unit| {
            claims.push(Claim {
                row,
                what: format!("{what}, {name}"),
                measured,
                paper: paper[set],
                within,
                unit,
            });
        };
        let prefix = counts[set][at::PREFIX].prefix_bytes_mean();
        let cost = all(set, at::HEADS) - all(set, at::PREFIX);
        let fewer = 100.0 * (leaf(set, at::HEADS) / leaf(set, at::PREFIX) - 1.0);
        let hints = -saved(set, at::HINTS, at::HEADS);
        let prints = saved(set, at::PRINTS, at::HINTS);
        use Unit::{Bytes, Points, Records};
        claim(
            "BB-06",
            "saved by prefixes",
            saved(set, at::PREFIX, at::BASELINE),
            [8.0, 6.8],
            2.0,
            Points,
        );
        claim("BB-07", "mean prefix", prefix, [2.34, 1.64], 0.1, Bytes);
        claim(
            "BB-08",
            "cost of heads, a record",
            cost,
            [4.58, 5.78],
            0.4,
            Bytes,
        );
        claim(
            "BB-09",
            "more records a leaf with heads",
            fewer,
            [-15.8, -19.3],
            2.0,
            Points,
        );
        claim("BB-10", "cost of hints", hints, [1.96, 1.66], 0.3, Points);
        claim(
            "BB-13",
            "records a leaf with hints",
            leaf(set, at::HINTS),
            [138.9, 134.6],
            1.5,
            Records,
        );
        claim(
            "BB-14",
            "saved by fingerprints",
            prints,
            [15.4, 15.2],
            0.7,
            Points,
        );
        let dense_share = 100.0 * dense(&counts[set][at::ADAPTIVE]);
        claim(
            "BB-35",
            "dense leaves of the adaptive tree",
            dense_share,
            [85.7, 0.0],
            2.0,
            Points,
        );
        if set == 0 {
            let [semi, fully] = [at::SEMI, at::FULLY].map(|at| saved(0, at, at::HINTS));
            claim(
                "BB-18",
                "saved by semi-dense leaves",
                semi,
                [40.0; 2],
                1.0,
                Points,
            );
            claim(
                "BB-18",
                "saved by fully dense leaves",
                fully,
                [52.0; 2],
                1.0,
                Points,
            );
        }
    }
    let mut table = Table::new(&["claim", "measured", "paper", "off", "target", "held"]);
    claims.iter().for_each(|claim| table.row(&claim.line()));
    table
}

/// §3.5: how full leaves of ascending numbers are.
pub(crate) fn sorted(records: u32, sheet: &mut Sheet) {
    let keys = bytes(&keys::dense(records, 1.0, Order::Sorted, SEED));
    let counts = LAYOUTS.map(|choice| measure(choice, &keys));
    sheet.table("sorted", table(&keys, &counts, [None; 8]));
}
