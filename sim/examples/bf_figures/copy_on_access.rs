//! Figure 14: the size of the copy-on-access region, in which a used mini-page moves to the tail.

use treering_engine::BfOptions;
use treering_sim::replay::ReplayError;
use treering_sim::report::html::{Curve, Lines, Scale};
use treering_traces::Op;
use treering_traces::generate::{GenParams, Workload, build};

use crate::cell::{Cell, Measured, Mix, RECORDS, bf, mini_pages, per_op};
use crate::each;
use crate::page::{Sheet, Table, percent};
use crate::ring_model::{Cold, Left, RingModel, Rules};

const SHARES: [u8; 10] = [0, 5, 10, 15, 20, 25, 50, 75, 90, 100];

/// The default promotion rate.
fn promotion() -> u8 {
    let promote = BfOptions::PUBLISHED.promote;
    promote.percent().expect("a fixed share")
}

const MIXES: [(&str, Mix); 3] = [
    ("reads only", Mix::Reads),
    ("half updates", Mix::Half),
    ("updates only", Mix::Updates),
];

pub(crate) fn figure(sheet: &mut Sheet) -> Result<(), ReplayError> {
    let mut cells = Vec::new();
    for (_, mix) in MIXES {
        cells.extend(SHARES.map(|share| Cell::new(bf(share, promotion()), mix)));
    }
    let measured = each(&cells, Cell::measure)?;
    let rows: Vec<_> = measured.chunks(SHARES.len()).collect();
    for ((name, mix), row) in MIXES.iter().zip(&rows) {
        let table = match mix {
            Mix::Reads => of_reads(row),
            _ => of_updates(row),
        };
        let name = name.replace(' ', "-");
        sheet.table(&format!("copy-on-access-{name}"), table);
    }
    let curves = MIXES.iter().zip(&rows).map(|((name, _), row)| Curve {
        name: (*name).into(),
        points: along(&SHARES, row, |found| found.part.page_ios()),
    });
    sheet.picture(
        "bf-copy-on-access",
        &Lines {
            x: "copy-on-access region, % of the ring",
            y: "page I/Os an operation",
            scale: Scale::Linear,
            y_scale: Scale::Linear,
            curves: curves.collect(),
        },
    );
    taken_apart(sheet, rows[0])
}

fn along(xs: &[u8], row: &[Measured], y: impl Fn(&Measured) -> f64) -> Vec<(f64, f64)> {
    xs.iter()
        .zip(row)
        .map(|(x, found)| (f64::from(*x), y(found)))
        .collect()
}

/// Share of lookups that no mini-page answers.
fn miss_ratio(found: &Measured) -> f64 {
    let bf = found.part.bf().unwrap_or_default();
    bf.misses as f64 / (bf.misses + bf.hits.total()).max(1) as f64
}

fn ring_shares(found: &Measured) -> [String; 2] {
    let bf = found.part.after.bf.unwrap_or_default();
    let share = |bytes: u64| percent(bytes as f64 / bf.ring_bytes as f64);
    [share(bf.live_bytes), share(bf.listed_bytes)]
}

fn of_reads(row: &[Measured]) -> Table {
    let mut table = Table::new(&[
        "region",
        "misses",
        "copies per op",
        "ring in mini-pages",
        "ring on free lists",
        "mini-pages",
        "mean bytes",
    ]);
    for (share, found) in SHARES.iter().zip(row) {
        let bf = found.part.bf().unwrap_or_default();
        let [live, listed] = ring_shares(found);
        let pages = mini_pages(&found.part);
        table.row(&[
            format!("{share} %"),
            percent(miss_ratio(found)),
            per_op(bf.copies_to_tail as f64 / found.part.ops as f64),
            live,
            listed,
            format!("{pages:.0}"),
            format!("{:.0}", bf.live_bytes as f64 / pages.max(1.0)),
        ]);
    }
    table
}

fn of_updates(row: &[Measured]) -> Table {
    let mut table = Table::new(&[
        "region",
        "page reads",
        "page writes",
        "page I/Os",
        "copies per op",
        "merges by eviction",
        "by copy on access",
        "records per merge",
        "ring in mini-pages",
    ]);
    for (share, found) in SHARES.iter().zip(row) {
        let bf = found.part.bf().unwrap_or_default();
        let rate = |n: u64| per_op(n as f64 / found.part.ops as f64);
        let merges = &bf.merges;
        table.row(&[
            format!("{share} %"),
            per_op(found.part.page_reads()),
            per_op(found.part.page_writes()),
            per_op(found.part.page_ios()),
            rate(bf.copies_to_tail),
            rate(merges.eviction),
            rate(merges.copy_on_access),
            format!(
                "{:.1}",
                bf.merged_records as f64 / merges.total().max(1) as f64
            ),
            ring_shares(found)[0].clone(),
        ]);
    }
    table
}

/// A variant of the model: its rules, and whether a leaf has as many records as in the engine, or
/// one.
#[derive(Clone, Copy)]
struct Variant {
    name: &'static str,
    rules: Rules,
    whole_leaves: bool,
}

const fn variant(name: &'static str, left: Left, cold: Cold) -> Variant {
    Variant {
        name,
        rules: Rules { left, cold },
        whole_leaves: true,
    }
}

const VARIANTS: [Variant; 5] = [
    variant("as published", Left::Stays, Cold::Dropped),
    variant("cold records stay", Left::Stays, Cold::Kept),
    variant("old copies vanish", Left::Vanishes, Cold::Dropped),
    variant("both", Left::Vanishes, Cold::Kept),
    Variant {
        whole_leaves: false,
        ..variant("both, a record a leaf", Left::Vanishes, Cold::Kept)
    },
];

/// Repeats the figure with the model, switching off the ring's two rules one by one.
fn taken_apart(sheet: &mut Sheet, engine: &[Measured]) -> Result<(), ReplayError> {
    let ring_bytes = engine[0].part.after.bf.unwrap_or_default().ring_bytes;
    let per_leaf = engine[0].records_per_leaf;
    let mut runs = Vec::new();
    for variant in VARIANTS {
        runs.extend(SHARES.map(|share| (variant, share)));
    }
    let found = each(&runs, |(variant, share)| {
        let per_leaf = if variant.whole_leaves { per_leaf } else { 1.0 };
        model(variant.rules, *share, ring_bytes, per_leaf)
    })?;
    let rows: Vec<_> = found.chunks(SHARES.len()).collect();
    let mut table = Table::new(&[
        "region",
        "engine",
        "model, as published",
        "cold records stay",
        "old copies vanish",
        "both",
        "both, a record a leaf",
        "live: as published",
        "cold records stay",
        "old copies vanish",
    ]);
    for (i, share) in SHARES.iter().enumerate() {
        let mut cells = vec![format!("{share} %"), percent(miss_ratio(&engine[i]))];
        cells.extend(rows.iter().map(|row| percent(row[i].0)));
        cells.extend(rows[..3].iter().map(|row| percent(row[i].1)));
        table.row(&cells);
    }
    sheet.table("copy-on-access-apart", table);
    let mut curves = vec![Curve {
        name: "engine".into(),
        points: along(&SHARES, engine, miss_ratio),
    }];
    curves.extend(VARIANTS.iter().zip(&rows).map(|(variant, row)| {
        Curve {
            name: variant.name.into(),
            points: (SHARES.iter().zip(*row))
                .map(|(share, (misses, _))| (f64::from(*share), *misses))
                .collect(),
        }
    }));
    sheet.picture(
        "bf-copy-on-access-apart",
        &Lines {
            x: "copy-on-access region, % of the ring",
            y: "misses a lookup",
            scale: Scale::Linear,
            y_scale: Scale::Linear,
            curves,
        },
    );
    Ok(())
}

/// Misses per lookup, and the share of the ring in mini-pages.
fn model(
    rules: Rules,
    share: u8,
    ring_bytes: u64,
    per_leaf: f64,
) -> Result<(f64, f64), ReplayError> {
    const WARM: u64 = 2_400_000;
    const MEASURED: u64 = 400_000;
    let params = GenParams {
        no_load: true,
        ..Cell::new(bf(share, promotion()), Mix::Reads).params(Workload::Zipf)
    };
    let (_, mut source) = build(&params)?;
    let mut op = Op::default();
    let leaves = (RECORDS as f64 / per_leaf).ceil() as usize + 1;
    let allocations = 2 * (WARM + MEASURED) as usize;
    let mut ring = RingModel::new(
        rules,
        ring_bytes,
        share.into(),
        promotion().into(),
        leaves,
        allocations,
    );
    let stride = u64::MAX / RECORDS;
    for n in 0..WARM + MEASURED {
        if n == WARM {
            (ring.lookups, ring.misses) = (0, 0);
        }
        source.next_op(&mut op)?;
        let head = op.key[..8].try_into().expect("keys of 16 bytes");
        // The generator spaces keys evenly.
        let record = u64::from_be_bytes(head) / stride;
        ring.lookup((record as f64 / per_leaf) as usize, record as u32);
    }
    let misses = ring.misses as f64 / ring.lookups as f64;
    Ok((misses, ring.live_share()))
}
