//! §4.1-§4.5 and Figure 15 for strings, from a key file that the user provides.

use treering_sim::layouts::Counts;
use treering_sim::layouts::keys::{self, Order};
use treering_sim::report::html::{LayoutRow, leaf_kinds_svg};

use crate::cell::{LAYOUTS, SEED, Set, bytes, measure};
use crate::page::{Sheet, Table, percent};
use crate::sets::{at, table};

/// Number of numeric keys in the picture of leaves.
const NUMBERS: u32 = 250_000;

pub(crate) fn figure(set: Option<&Set>, sheet: &mut Sheet) {
    let Some(urls) = set else {
        eprintln!("urls: no --keys FILE, left out");
        return;
    };
    let titles = urls.titles();
    let mut counted = Vec::new();
    for (name, set) in [("urls", urls), ("titles", &titles)] {
        let counts = LAYOUTS.map(|choice| measure(choice, &set.keys));
        sheet.table(name, table(&set.keys, &counts, [None; 8]));
        counted.push(counts);
    }
    sheet.table("strings", claims(&counted));
    kinds(&counted, sheet);
}

/// The paper's claims about its strings, compared with these strings.
fn claims(counted: &[[Counts; 8]]) -> Table {
    let saved = |counts: &[Counts; 8], at: usize, from: usize| {
        let all = |at: usize| counts[at].bytes_per_record_with_inner();
        percent(1.0 - all(at) / all(from))
    };
    let leaf = |counts: &[Counts; 8], at: usize| counts[at].records_per_leaf();
    type Line<'a> = (&'a str, &'a dyn Fn(&[Counts; 8]) -> String, [&'a str; 2]);
    let more = |counts: &[Counts; 8], at: usize, from: usize| {
        percent(leaf(counts, at) / leaf(counts, from) - 1.0)
    };
    let records = |counts: &[Counts; 8]| {
        let [from, to] = [at::BASELINE, at::PREFIX].map(|at| leaf(counts, at));
        format!("{from:.1} → {to:.1}")
    };
    let prefix = |counts: &[Counts; 8]| format!("{:.1}", counts[at::PREFIX].prefix_bytes_mean());
    let heads = |counts: &[Counts; 8]| {
        let [prefix, heads] =
            [at::PREFIX, at::HEADS].map(|at| counts[at].bytes_per_record_with_inner());
        format!("{:.2} B", heads - prefix)
    };
    let hints = |counts: &[Counts; 8]| format!("{:.1}", leaf(counts, at::HINTS));
    let distinct = |counts: &[Counts; 8]| percent(counts[at::HINTS].distinct_heads());
    let prints = |counts: &[Counts; 8]| {
        let kinds = &counts[at::ADAPTIVE].kinds;
        let leaves = kinds.get("fingerprint").map_or(0, |kind| kind.leaves);
        percent(leaves as f64 / counts[at::ADAPTIVE].leaves as f64)
    };
    let lines: [Line<'_>; 10] = [
        (
            "BB-05 records a leaf, prefixes",
            &records,
            ["35.8 → 96.4", "–"],
        ),
        (
            "BB-06 saved by prefixes",
            &|c| saved(c, at::PREFIX, at::BASELINE),
            ["63.5 %", "18.2 %"],
        ),
        ("BB-07 mean prefix, bytes", &prefix, ["49", "7.0"]),
        (
            "BB-08 cost of heads, a record",
            &heads,
            ["5.84 B", "5.75 B"],
        ),
        (
            "BB-09 more records a leaf with heads",
            &|c| more(c, at::HEADS, at::PREFIX),
            ["-11.8 %", "-11.5 %"],
        ),
        (
            "BB-10 cost of hints",
            &|c| saved(c, at::HEADS, at::HINTS),
            ["1.5 %", "1.6 %"],
        ),
        ("BB-13 records a leaf with hints", &hints, ["83.8", "–"]),
        (
            "BB-14 saved by fingerprints",
            &|c| saved(c, at::PRINTS, at::HINTS),
            ["9.6 %", "9.2 %"],
        ),
        (
            "BB-32 neighbours whose heads differ",
            &distinct,
            ["38 %", "61 %"],
        ),
        (
            "BB-35 leaves of the adaptive tree with fingerprints",
            &prints,
            ["90.4 %", "99.4 %"],
        ),
    ];
    let mut table = Table::new(&["", "these URLs", "paper's", "these titles", "paper's"]);
    for (name, of, paper) in lines {
        let mut line = vec![name.to_string()];
        for (counts, paper) in counted.iter().zip(paper) {
            line.extend([of(counts), paper.into()]);
        }
        table.row(&line);
    }
    table
}

/// Figure 15: leaves by layout.
fn kinds(strings: &[[Counts; 8]], sheet: &mut Sheet) {
    let adaptive = LAYOUTS[at::ADAPTIVE];
    let numbers = |numbers: Vec<u32>| measure(adaptive, &bytes(&numbers));
    let sets = [
        (
            "dense",
            numbers(keys::dense(NUMBERS, 1.0, Order::Random, SEED)),
        ),
        (
            "dense, sorted",
            numbers(keys::dense(NUMBERS, 1.0, Order::Sorted, SEED)),
        ),
        (
            "half dense",
            numbers(keys::dense(NUMBERS, 0.5, Order::Random, SEED)),
        ),
        (
            "sparse",
            numbers(keys::sparse(NUMBERS, Order::Random, SEED)),
        ),
        ("URLs", strings[0][at::ADAPTIVE].clone()),
        ("titles", strings[1][at::ADAPTIVE].clone()),
    ];
    let rows = sets.map(|(name, counts)| LayoutRow {
        name: name.into(),
        bytes_per_record: counts.bytes_per_record(),
        predicted: counts.bytes_per_record(),
        kinds: (counts.kinds.iter())
            .map(|(kind, leaves)| (*kind, leaves.leaves as f64 / counts.leaves as f64))
            .collect(),
    });
    sheet.drawn("layouts-kinds", leaf_kinds_svg(&rows));
}
