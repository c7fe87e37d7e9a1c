//! What each page layout takes, counted exactly, beside the figures of B-Trees Are Back (§4.1-§4.6, raw data of its Figures 7, 9, 10, 12 and 13).
//!
//! ```text
//! cargo run --release -p treering-sim --example layout_figures -- [--records 25M] [--keys FILE] [sets|density|partitions|sorted]...
//! ```
//!
//! `--keys` adds a key set: a file of one key a line, put in random order. What is in the column *paper* is what its authors measured with 25 million records of
//! 4-byte keys; the growth wave of a B-tree moves figures by several per cent with the number of records, so compare at the same number.

use std::process::ExitCode;

use treering_engine::node::{LayoutChoice, PageLayout};
use treering_sim::layouts::keys::{self, Order};
use treering_sim::layouts::{Counts, PageTree};

const NODE: usize = 4096;
const VALUE: [u8; 8] = *b"8 bytes.";

/// Bytes per record of all nodes, by key set, as the paper's raw data have it.
const PAPER: [(&str, PageLayout, f64); 11] = [
    ("dense", PageLayout::Baseline, 26.64),
    ("dense", PageLayout::Prefix, 24.51),
    ("dense", PageLayout::Slotted, 29.09),
    ("dense", PageLayout::Hints, 29.66),
    ("dense", PageLayout::Fingerprint, 25.09),
    ("dense", PageLayout::SemiDense, 17.80),
    ("dense", PageLayout::FullyDense, 14.24),
    ("sparse", PageLayout::Baseline, 26.12),
    ("sparse", PageLayout::Prefix, 24.34),
    ("sparse", PageLayout::Slotted, 30.12),
    ("sparse", PageLayout::Hints, 30.62),
];

const LAYOUTS: [PageLayout; 7] = [
    PageLayout::Baseline,
    PageLayout::Prefix,
    PageLayout::Slotted,
    PageLayout::Hints,
    PageLayout::Fingerprint,
    PageLayout::SemiDense,
    PageLayout::FullyDense,
];

fn grow<K: AsRef<[u8]>>(layout: PageLayout, keys: impl IntoIterator<Item = K>) -> Counts {
    let mut tree = PageTree::new(LayoutChoice::of(layout), NODE);
    for key in keys {
        if let Err(refused) = tree.put(key.as_ref(), &VALUE) {
            println!("a key of {} bytes: {refused}", key.as_ref().len());
        }
    }
    tree.counts()
}

fn heading() {
    println!(
        "{:<12} {:>9} {:>10} {:>8} {:>9} {:>7} {:>7} {:>7} {:>6} {:>7}",
        "layout",
        "leaves",
        "rec/leaf",
        "B/rec",
        "with inner",
        "paper",
        "error",
        "prefix",
        "heads",
        "dense"
    );
}

fn line(layout: PageLayout, counts: &Counts, paper: Option<f64>) {
    let all = counts.bytes_per_record_with_inner();
    let (paper, error) = paper.map_or(("-".into(), "-".into()), |paper| {
        (
            format!("{paper:.2}"),
            format!("{:+.1}%", (all / paper - 1.0) * 100.0),
        )
    });
    println!(
        "{:<12} {:>9} {:>10.1} {:>8.2} {:>10.2} {:>7} {:>7} {:>7.2} {:>5.1}% {:>6.1}%",
        layout.name(),
        counts.leaves,
        counts.records_per_leaf(),
        counts.bytes_per_record(),
        all,
        paper,
        error,
        counts.prefix_bytes_mean(),
        100.0 * counts.distinct_heads(),
        100.0 * counts.share_of(layout),
    );
}

fn set<K: AsRef<[u8]>>(name: &str, keys: &[K]) {
    println!(
        "\n{name}: {} records, random order, values of 8 bytes",
        keys.len()
    );
    heading();
    for layout in LAYOUTS {
        let paper = PAPER
            .iter()
            .find(|(set, of, _)| *set == name && *of == layout);
        let paper = paper.map(|(.., bytes)| *bytes).or(match (name, layout) {
            ("sparse", PageLayout::Fingerprint) => Some(25.96),
            _ => None,
        });
        line(layout, &grow(layout, keys), paper);
    }
}

fn bytes(numbers: &[u32]) -> Vec<[u8; 4]> {
    numbers.iter().map(|number| number.to_be_bytes()).collect()
}

/// Figure 12, and which leaves become dense.
fn density(records: u32) {
    println!(
        "\nspace by density, {records} records: bytes per record of all nodes, and share of leaves that are dense"
    );
    println!(
        "{:>8} {:>8} {:>8} {:>7} {:>7} {:>8} {:>7} {:>7}",
        "density", "hints", "semi", "saves", "leaves", "fully", "saves", "leaves"
    );
    for percent in (4..=100_u32).step_by(8) {
        let keys = bytes(&keys::dense(
            records,
            f64::from(percent) / 100.0,
            Order::Random,
            1,
        ));
        let hints = grow(PageLayout::Hints, &keys).bytes_per_record_with_inner();
        let dense = PageLayout::DENSE.map(|layout| {
            let counts = grow(layout, &keys);
            let all = counts.bytes_per_record_with_inner();
            let (saves, share) = (1.0 - all / hints, counts.share_of(layout));
            format!("{all:>8.2} {:>6.1}% {:>6.1}%", 100.0 * saves, 100.0 * share)
        });
        println!("{percent:>7}% {hints:>8.2} {} {}", dense[0], dense[1]);
    }
}

/// Figure 13, right.
fn partitions(records: u32) {
    println!(
        "\nascending keys of 8 bytes in partitions, {records} records: bytes per record of all nodes"
    );
    println!(
        "{:>12} {:>8} {:>8} {:>8} {:>8}",
        "in each", "hints", "fully", "leaves", "semi"
    );
    for each in [10, 50, 200, 1_000, 5_000, 20_000, 100_000] {
        let keys = keys::partitioned(records, (records / each).max(1), 1);
        let counts = [
            PageLayout::Hints,
            PageLayout::FullyDense,
            PageLayout::SemiDense,
        ]
        .map(|layout| grow(layout, &keys));
        let all = counts.each_ref().map(Counts::bytes_per_record_with_inner);
        println!(
            "{each:>12} {:>8.2} {:>8.2} {:>7.1}% {:>7.1}%",
            all[0],
            all[1],
            100.0 * counts[1].share_of(PageLayout::FullyDense),
            100.0 * counts[2].share_of(PageLayout::SemiDense),
        );
    }
}

/// §3.5: what full dense leaves hold.
fn sorted(records: u32) {
    println!("\ndense keys in ascending order, {records} records");
    heading();
    let keys = bytes(&keys::dense(records, 1.0, Order::Sorted, 1));
    for layout in LAYOUTS {
        line(layout, &grow(layout, &keys), None);
    }
}

fn main() -> ExitCode {
    let (mut records, mut file, mut parts) = (2_500_000_u32, None, Vec::new());
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--records" => {
                let text = args.next().unwrap_or_default();
                let (digits, unit) = match text.strip_suffix('M') {
                    Some(digits) => (digits, 1_000_000),
                    None => (text.as_str(), 1),
                };
                let Ok(number) = digits.parse::<u32>() else {
                    eprintln!("--records {text}: expected a number, such as 2500000 or 25M");
                    return ExitCode::from(2);
                };
                records = number * unit;
            }
            "--keys" => file = args.next(),
            "sets" | "density" | "partitions" | "sorted" => parts.push(arg),
            other => {
                eprintln!(
                    "{other}: expected --records N, --keys FILE, sets, density, partitions or sorted"
                );
                return ExitCode::from(2);
            }
        }
    }
    let wants = |part: &str| parts.is_empty() || parts.iter().any(|wanted| wanted == part);
    if wants("sets") {
        set(
            "dense",
            &bytes(&keys::dense(records, 1.0, Order::Random, 1)),
        );
        set("sparse", &bytes(&keys::sparse(records, Order::Random, 1)));
    }
    if let Some(file) = file {
        match std::fs::read(&file) {
            Ok(text) => set(&file, &keys::lines(&text, 1)),
            Err(e) => {
                eprintln!("{file}: {e}");
                return ExitCode::from(2);
            }
        }
    }
    if wants("sorted") {
        sorted(records.min(2_500_000));
    }
    if wants("density") {
        density(records.min(2_500_000));
    }
    if wants("partitions") {
        partitions(records.min(2_500_000));
    }
    ExitCode::SUCCESS
}
