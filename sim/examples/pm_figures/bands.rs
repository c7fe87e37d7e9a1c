//! Published figures of Optane DIMMs (DEVICES §2), each with an accepted band and the simulated
//! device's value.
//!
//! DEVICES states the bands of the inference experiment. The other bands are this project's: 2 %
//! for latencies, which are parameters; 5 % for results of coalescing alone; 10 % for bandwidth
//! without competition; 20 % for results that depend on how threads interleave.

use std::ops::RangeInclusive;

use treering_sim::pm::PmProfile;

use crate::patterns::{
    Ccl, Kind, Order, Writers, ccl, inference, read_latency, read_rate, stalls, write_latency,
    write_rate,
};

/// A published figure.
pub(crate) struct Row {
    /// The table that it belongs to.
    pub(crate) group: &'static str,
    /// What it measures, in words.
    pub(crate) name: String,
    /// The published value; `None` if only a band is given.
    pub(crate) published: Option<f64>,
    pub(crate) band: RangeInclusive<f64>,
    pub(crate) found: f64,
}

impl Row {
    pub(crate) fn held(&self) -> bool {
        self.band.contains(&self.found)
    }
}

/// The groups of rows, in the order of the page.
pub(crate) const GROUPS: [&str; 6] = ["latency", "ewr", "inference", "bandwidth", "stalls", "ccl"];

const EXACT: f64 = 0.02;
const COALESCING: f64 = 0.05;
const ALONE: f64 = 0.10;
const TOGETHER: f64 = 0.20;

struct Rows(Vec<Row>);

impl Rows {
    fn near(&mut self, group: &'static str, name: &str, published: f64, share: f64, found: f64) {
        self.0.push(Row {
            group,
            name: name.into(),
            published: Some(published),
            band: published * (1.0 - share)..=published * (1.0 + share),
            found,
        });
    }

    fn within(
        &mut self,
        group: &'static str,
        name: &str,
        (published, band): (Option<f64>, RangeInclusive<f64>),
        found: f64,
    ) {
        self.0.push(Row {
            group,
            name: name.into(),
            published,
            band,
            found,
        });
    }
}

/// The figures of some [`GROUPS`], each from this many lines.
pub(crate) fn rows(profile: &PmProfile, groups: &[&str], lines: u64) -> Vec<Row> {
    let mut rows = Rows(Vec::new());
    for group in groups {
        match *group {
            "latency" => latencies(&mut rows, profile),
            "ewr" => ratios(&mut rows, profile, lines),
            "inference" => knee(&mut rows, profile),
            "bandwidth" => bandwidths(&mut rows, profile, lines),
            "stalls" => wear(&mut rows, profile),
            "ccl" => trees(&mut rows, profile, lines),
            _ => unreachable!("no group {group}"),
        }
    }
    rows.0
}

fn by(threads: u32) -> String {
    let plural = if threads == 1 { "" } else { "s" };
    format!("{threads} thread{plural}")
}

fn latencies(rows: &mut Rows, profile: &PmProfile) {
    for (name, published, found) in [
        (
            "sequential read, ns",
            169.4,
            read_latency(profile, Order::Sequential),
        ),
        (
            "random read, ns",
            305.0,
            read_latency(profile, Order::Random),
        ),
        ("ntstore, ns", 90.4, write_latency(profile, Kind::NtStore)),
        ("clwb, ns", 62.3, write_latency(profile, Kind::Clwb)),
    ] {
        rows.near("latency", name, published, EXACT, found);
    }
}

/// EWR of random non-temporal stores of 256 bytes by number of threads (DEVICES §2.3).
pub(crate) const EWR_256: [(u32, f64); 7] = [
    (1, 0.98),
    (2, 0.87),
    (3, 0.87),
    (4, 0.93),
    (6, 0.80),
    (8, 0.65),
    (12, 0.57),
];

fn ratios(rows: &mut Rows, profile: &PmProfile, lines: u64) {
    let ratio = |order, threads, size| {
        let writers = Writers {
            kind: Kind::NtStore,
            order,
            threads,
            size,
        };
        let rate = write_rate(profile, writers, lines);
        rate.counters.effective_write_ratio()
    };
    let share = |threads: u32| if threads == 1 { COALESCING } else { TOGETHER };
    for (threads, published) in [
        (1, 0.25),
        (2, 0.24),
        (3, 0.24),
        (4, 0.24),
        (6, 0.24),
        (8, 0.24),
        (12, 0.24),
    ] {
        let name = format!("random 64 B, {}", by(threads));
        let found = ratio(Order::Random, threads, 64);
        rows.near("ewr", &name, published, COALESCING, found);
    }
    let found = ratio(Order::Random, 1, 128);
    rows.near("ewr", "random 128 B, 1 thread", 0.5, COALESCING, found);
    for (threads, published) in EWR_256 {
        let name = format!("random 256 B, {}", by(threads));
        let found = ratio(Order::Random, threads, 256);
        rows.near("ewr", &name, published, share(threads), found);
    }
    for size in [64, 128, 256, 1024, 4096] {
        let name = format!("sequential {size} B, 1 thread");
        let found = ratio(Order::Sequential, 1, size);
        rows.near("ewr", &name, 0.98, COALESCING, found);
    }
}

/// WA of the inference experiment by bytes of the region, as measured (FAST'20), divided by the
/// plateau of 1.0365.
pub(crate) const KNEE: [(u64, Option<f64>); 9] = [
    (8 << 10, Some(1.0)),
    (16 << 10, Some(1.0)),
    (18 << 10, Some(1.039 / 1.0365)),
    (20 << 10, Some(1.359 / 1.0365)),
    (24 << 10, None),
    (32 << 10, None),
    (64 << 10, None),
    (128 << 10, Some(2.076 / 1.0365)),
    (256 << 10, Some(2.076 / 1.0365)),
];

fn knee(rows: &mut Rows, profile: &PmProfile) {
    let mut least = 1.0;
    for (bytes, published) in KNEE {
        let name = format!("halves of {} KiB", bytes >> 10);
        let band = match bytes >> 10 {
            ..=16 => 0.95..=1.05,
            20 => 1.15..=1.45,
            128.. => 1.95..=2.05,
            // Smooth and monotone in between.
            _ => least..=2.05,
        };
        let found = inference(profile, bytes / 256);
        rows.within("inference", &name, (published, band), found);
        least = found;
    }
}

fn bandwidths(rows: &mut Rows, profile: &PmProfile, lines: u64) {
    let mut interleaved = profile.clone();
    interleaved.dimms = 6;
    let write = |profile: &PmProfile, kind, threads, size| {
        let writers = Writers {
            kind,
            order: Order::Random,
            threads,
            size,
        };
        write_rate(profile, writers, lines).gb_per_s
    };
    for (threads, size, published, share) in [
        (1, 64, 0.55, ALONE),
        (1, 128, 1.10, ALONE),
        (1, 256, 2.22, ALONE),
        (8, 256, 1.53, TOGETHER),
        (24, 256, 0.80, TOGETHER),
    ] {
        let name = format!("ntstore {size} B, {}, GB/s", by(threads));
        let found = write(profile, Kind::NtStore, threads, size);
        rows.near("bandwidth", &name, published, share, found);
    }
    for (threads, published, share) in [(1, 1.44, ALONE), (3, 1.79, TOGETHER), (24, 0.82, TOGETHER)]
    {
        let name = format!("clwb 256 B, {}, GB/s", by(threads));
        let found = write(profile, Kind::Clwb, threads, 256);
        rows.near("bandwidth", &name, published, share, found);
    }
    for (threads, size, published) in [
        (4, 256, 12.5),
        (24, 256, 7.5),
        (4, 4096, 9.4),
        (4, 24 << 10, 12.2),
    ] {
        let name = format!("ntstore {size} B, {threads} threads, 6 DIMMs, GB/s");
        let found = write(&interleaved, Kind::NtStore, threads, size);
        rows.near("bandwidth", &name, published, TOGETHER, found);
    }
    // A load of one line waits for it. With enough threads, the medium is always busy.
    for (size, published) in [(64, 1.68), (128, 3.34), (256, 6.5)] {
        let name = format!("random read {size} B, 64 threads, GB/s");
        let found = read_rate(profile, Order::Random, (64, size), lines);
        rows.near("bandwidth", &name, published, ALONE, found);
    }
    for (threads, published) in [(1, 2.92), (4, 6.5)] {
        let name = format!("sequential read, {}, GB/s", by(threads));
        let found = read_rate(profile, Order::Sequential, (threads, 16 << 10), lines);
        rows.near("bandwidth", &name, published, ALONE, found);
    }
    let found = read_rate(&interleaved, Order::Random, (256, 256), 4 * lines);
    let name = "random read 256 B, 256 threads, 6 DIMMs, GB/s";
    rows.near("bandwidth", name, 37.6, ALONE, found);
}

fn wear(rows: &mut Rows, profile: &PmProfile) {
    let (long, longest) = stalls(profile, 60_000);
    let between: Vec<u64> = long.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let mean = between.iter().sum::<u64>() as f64 / between.len().max(1) as f64;
    let name = "overwrites of one XPLine from stall to stall";
    let band = (Some(14_297.0), 14_100.0..=14_400.0);
    rows.within("stalls", name, band, mean);
    let name = "longest overwrite, µs";
    rows.within("stalls", name, (Some(51.0), 45.0..=55.0), longest);
}

fn trees(rows: &mut Rows, profile: &PmProfile, lines: u64) {
    let mut on_eviction = profile.clone();
    on_eviction.buffer.full_lines = "on-eviction".into();
    let log = |profile: &PmProfile| {
        let one = Ccl {
            tails: 1,
            leaves: None,
        };
        ccl(profile, one, lines).0
    };
    // CC-09: entries of 24 B; two of three operations are logged.
    let name = "log of 24 B entries, × 2/3, full lines on eviction";
    let band = (Some(0.0625), 0.0619..=0.0651);
    rows.within("ccl", name, band, log(&on_eviction) * 2.0 / 3.0);
    let name = "log of 24 B entries, × 2/3";
    let band = (Some(0.130), 0.124..=0.131);
    rows.within("ccl", name, band, log(profile) * 2.0 / 3.0);
    let leaves = Ccl {
        tails: 1,
        leaves: Some(2),
    };
    let (log, page) = ccl(profile, leaves, lines);
    rows.near(
        "ccl",
        "the same among leaves, log",
        0.130,
        COALESCING * 2.0,
        log,
    );
    rows.near(
        "ccl",
        "the same among leaves, leaves",
        1.0 / 3.0,
        COALESCING,
        page,
    );
}

/// Log XPLines per operation by number of logs, on one DIMM and on four (CLAIMS, third modelling
/// note).
pub(crate) fn tails(profile: &PmProfile, lines: u64) -> Vec<(u64, f64, f64)> {
    let mut four = profile.clone();
    four.dimms = 4;
    let of = |profile: &PmProfile, tails| {
        let leaves = Some(2);
        ccl(profile, Ccl { tails, leaves }, lines).0
    };
    [1, 12, 24, 48]
        .map(|tails| (tails, of(profile, tails), of(&four, tails)))
        .into()
}

/// XPLines per operation, of the log and of leaves. With explicit flushes, and under eADR by bytes
/// of the CPU cache (CCL-BTree §5.4).
pub(crate) fn implicit_flushes(profile: &PmProfile, lines: u64) -> Vec<(Option<u64>, (f64, f64))> {
    let of = |eadr: Option<u64>| {
        let mut profile = profile.clone();
        if let Some(bytes) = eadr {
            (profile.eadr, profile.cpu.cache_bytes) = (true, bytes);
        }
        let one = Ccl {
            tails: 1,
            leaves: Some(2),
        };
        (eadr, ccl(&profile, one, lines))
    };
    [None, Some(1 << 20), Some(4 << 20), Some(8 << 20)]
        .map(of)
        .into()
}
