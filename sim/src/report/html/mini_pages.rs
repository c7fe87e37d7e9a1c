//! Charts of mini-pages: what answered lookups, sizes of mini-pages, and records per merge.

use super::bars::{Bars, Series, bars};
use super::chart::{PARTS, Picture};
use crate::report::MiniPagesReport;
use crate::report::numbers::{bytes, grouped};

/// Lookups by the kind of record that answered them, and those that read the leaf.
pub(super) fn hits(m: &MiniPagesReport) -> Picture<'_> {
    let mut counts: Vec<(&str, u64)> = m.hits.iter().to_vec();
    counts.push(("none (leaf read)", m.misses));
    let all: u64 = counts.iter().map(|(_, n)| n).sum();
    let share = |n: u64| 100.0 * n as f64 / all.max(1) as f64;
    bars(Bars {
        groups: counts.iter().map(|(name, _)| (*name).to_string()).collect(),
        series: vec![Series {
            name: "",
            colour: PARTS[0].1,
            heights: counts.iter().map(|(_, n)| share(*n)).collect(),
            labels: counts.iter().map(|(_, n)| grouped(*n)).collect(),
        }],
        x: "kind of record that answered a lookup",
        y: "share of lookups, %",
    })
}

/// Mini-pages by size: those in the ring at the end, and those allocated during the run.
pub(super) fn sizes(m: &MiniPagesReport) -> Picture<'_> {
    let series = |name, colour, of: &dyn Fn(usize) -> u64| {
        let counts: Vec<u64> = (0..m.sizes.len()).map(of).collect();
        let all: u64 = counts.iter().sum();
        let share = |n: &u64| 100.0 * *n as f64 / all.max(1) as f64;
        Series {
            name,
            colour,
            heights: counts.iter().map(share).collect(),
            labels: counts.iter().map(|n| short_count(*n)).collect(),
        }
    };
    bars(Bars {
        groups: m.sizes.iter().map(|s| bytes(s.bytes as f64)).collect(),
        series: vec![
            series("in the ring at the end", PARTS[0].1, &|i| m.sizes[i].live),
            series("allocated during the run", PARTS[1].1, &|i| {
                m.sizes[i].allocated
            }),
        ],
        x: "size of the mini-page",
        y: "share of mini-pages, %",
    })
}

/// Merges by the number of records that they wrote to the leaf.
pub(super) fn merges(m: &MiniPagesReport) -> Picture<'_> {
    let share = |n: u64| 100.0 * n as f64 / m.merges.max(1) as f64;
    bars(Bars {
        groups: m.merge_sizes.iter().map(|bin| bin.name()).collect(),
        series: vec![Series {
            name: "",
            colour: PARTS[2].1,
            heights: m.merge_sizes.iter().map(|bin| share(bin.merges)).collect(),
            labels: m
                .merge_sizes
                .iter()
                .map(|bin| grouped(bin.merges))
                .collect(),
        }],
        x: "records per merge",
        y: "share of merges, %",
    })
}

/// Formats a count: 12,345, or 1.2M where that is shorter.
fn short_count(n: u64) -> String {
    match n {
        0..10_000 => grouped(n),
        10_000..1_000_000 => format!("{:.0}k", n as f64 / 1e3),
        _ => format!("{:.1}M", n as f64 / 1e6),
    }
}
