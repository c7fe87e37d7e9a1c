//! Compares the simulated persistent memory with published figures of Optane DIMMs; see
//! `sim/PM.md`.
//!
//! ```sh
//! cargo run --release -p treering-sim --example pm_figures
//! cargo run --release -p treering-sim --example pm_figures -- --figure inference
//! cargo run --release -p treering-sim --example pm_figures -- --out DIR
//! ```
//!
//! The first command makes all figures and rewrites `docs/` and the page. The second makes only
//! one. The third writes pictures and `tables.md` to another folder.
//!
//! Results are counts and virtual times, so they are the same on every machine. Only the
//! simulation's speed differs; it goes to stderr.

mod bands;
#[path = "../bf_figures/page.rs"]
mod page;
mod patterns;
#[path = "../bf_figures/run.rs"]
mod run;

use std::process::ExitCode;
use std::time::Instant;

use treering_sim::pm::{PmProfile, builtin, builtin_names};
use treering_sim::replay::ReplayError;
use treering_sim::report::html::{Curve, Lines, Scale};
use treering_sim::ssd::TimingMode;

use bands::{GROUPS, Row};
use page::{Sheet, Table, percent};
use patterns::{Kind, Order, Writers, inference, write_rate};
use run::{Figure, each};

/// Number of lines from which a figure is computed.
const LINES: u64 = 400_000;

const FIGURES: [(&str, Figure); 6] = [
    ("calibration", calibration),
    ("inference", knee),
    ("threads", threads),
    ("tails", tails),
    ("eadr", eadr),
    ("speed", speed),
];

fn main() -> ExitCode {
    run::main(&FIGURES, "sim/PM.md")
}

fn profiles() -> Vec<(&'static str, PmProfile)> {
    builtin_names()
        .map(|name| (name, builtin(name).expect("built in").1))
        .collect()
}

/// Formats a number with its significant digits.
fn number(x: f64) -> String {
    match x.abs() {
        1000.0.. => format!("{x:.0}"),
        10.0.. => format!("{x:.1}"),
        1.0.. => format!("{x:.2}"),
        _ => format!("{x:.3}"),
    }
}

fn calibration(sheet: &mut Sheet) -> Result<(), ReplayError> {
    let profiles = profiles();
    let all: Vec<Vec<Row>> = each(&profiles, |(_, p)| Ok(bands::rows(p, &GROUPS, LINES)))?;
    let names: Vec<&str> = profiles.iter().map(|(name, _)| *name).collect();
    for group in GROUPS {
        let head: Vec<&str> = ["", "published", "band"]
            .into_iter()
            .chain(names.iter().copied())
            .collect();
        let mut table = Table::new(&head);
        for (i, row) in all[0]
            .iter()
            .enumerate()
            .filter(|(_, row)| row.group == group)
        {
            let band = format!(
                "{} to {}",
                number(*row.band.start()),
                number(*row.band.end())
            );
            let published = row.published.map_or(String::new(), number);
            let mut cells = vec![row.name.clone(), published, band];
            for rows in &all {
                let miss = if rows[i].held() { "" } else { " ✗" };
                cells.push(number(rows[i].found) + miss);
            }
            table.row(&cells);
        }
        sheet.table(group, table);
    }
    let mut table = Table::new(&["", "figures", "within their band", "outside"]);
    for (name, rows) in names.iter().zip(&all) {
        let missed = rows.iter().filter(|row| !row.held());
        let missed: Vec<&str> = missed.map(|row| row.name.as_str()).collect();
        table.row(&[
            format!("`{name}`"),
            rows.len().to_string(),
            percent(1.0 - missed.len() as f64 / rows.len() as f64),
            missed.join("; "),
        ]);
    }
    sheet.table("summary", table);
    Ok(())
}

/// Variants of the buffer, and their effects on the knee.
fn knee(sheet: &mut Sheet) -> Result<(), ReplayError> {
    let (_, pm) = builtin("pm").expect("built in");
    let variant = |name: &str, replacement: &str, evict_lines| {
        let mut profile = pm.clone();
        profile.buffer.replacement = replacement.into();
        profile.buffer.evict_lines = evict_lines;
        (name.to_string(), profile)
    };
    let variants = [
        variant("random", "random", 1),
        variant("random, 4 at a time", "random", 4),
        variant("random, 8 at a time", "random", 8),
        variant("LRU", "lru", 1),
        variant("FIFO", "fifo", 1),
    ];
    let sizes: Vec<u64> = [
        1, 2, 4, 8, 12, 16, 17, 18, 19, 20, 22, 24, 28, 32, 40, 48, 64, 96, 128, 256,
    ]
    .map(|kib| kib << 10)
    .into();
    let curves = each(&variants, |(name, profile)| {
        let points = sizes.iter().map(|&bytes| {
            let wa = inference(profile, bytes / 256);
            ((bytes >> 10) as f64, wa)
        });
        Ok(Curve {
            name: name.clone(),
            points: points.collect(),
        })
    })?;
    let published: Vec<(f64, f64)> = [
        (1.0, 0.97),
        (2.0, 1.036),
        (16.0, 1.036),
        (18.0, 1.039),
        (20.0, 1.359),
        (128.0, 2.076),
    ]
    .map(|(kib, wa)| (kib, wa / 1.0365))
    .into();
    let head = ["region, KiB", "16", "18", "20", "24", "32", "64", "128"];
    let mut table = Table::new(&head);
    for curve in &curves {
        let mut cells = vec![curve.name.clone()];
        for kib in head[1..]
            .iter()
            .map(|kib| kib.parse::<f64>().expect("a number"))
        {
            let point = curve.points.iter().find(|(x, _)| *x == kib);
            cells.push(point.map_or(String::new(), |(_, wa)| format!("{wa:.2}")));
        }
        table.row(&cells);
    }
    sheet.table("variants", table);
    let measured = Curve {
        name: "Optane (FAST'20), the points that DEVICES has".into(),
        points: published,
    };
    sheet.picture(
        "pm-inference",
        &Lines {
            x: "region in KiB",
            y: "media bytes over bytes issued",
            scale: Scale::Log,
            y_scale: Scale::Linear,
            curves: std::iter::once(measured).chain(curves).collect(),
        },
    );
    Ok(())
}

/// How concurrent threads affect each other.
fn threads(sheet: &mut Sheet) -> Result<(), ReplayError> {
    const THREADS: [u32; 10] = [1, 2, 3, 4, 6, 8, 12, 16, 20, 24];
    let profiles = profiles();
    let mut table = Table::new(&[
        "threads",
        "Optane, EWR",
        "`pm`, EWR",
        "GB/s",
        "`pm-lru`, EWR",
        "GB/s",
    ]);
    let measured = each(&THREADS, |&threads| {
        let writers = Writers {
            kind: Kind::NtStore,
            order: Order::Random,
            threads,
            size: 256,
        };
        let rates = profiles
            .iter()
            .map(|(_, profile)| write_rate(profile, writers, LINES));
        Ok(rates.collect::<Vec<_>>())
    })?;
    for (threads, rates) in THREADS.iter().zip(&measured) {
        let published = bands::EWR_256.iter().find(|(t, _)| t == threads);
        let mut cells = vec![
            threads.to_string(),
            published.map_or(String::new(), |(_, ewr)| format!("{ewr:.2}")),
        ];
        for rate in rates {
            cells.push(format!("{:.2}", rate.counters.effective_write_ratio()));
            cells.push(format!("{:.2}", rate.gb_per_s));
        }
        table.row(&cells);
    }
    sheet.table("threads", table);
    let curve = |name: &str, points| Curve {
        name: name.into(),
        points,
    };
    let of = |at: usize| {
        let points = THREADS.iter().zip(&measured);
        points
            .map(|(t, rates)| (f64::from(*t), rates[at].counters.effective_write_ratio()))
            .collect()
    };
    let optane = bands::EWR_256.map(|(t, ewr)| (f64::from(t), ewr)).into();
    sheet.picture(
        "pm-threads",
        &Lines {
            x: "threads that write 256 B at random, one DIMM",
            y: "effective write ratio",
            scale: Scale::Linear,
            y_scale: Scale::Linear,
            curves: vec![
                curve("Optane", optane),
                curve("pm", of(0)),
                curve("pm-lru", of(1)),
            ],
        },
    );
    Ok(())
}

fn tails(sheet: &mut Sheet) -> Result<(), ReplayError> {
    let mut table = Table::new(&[
        "logs",
        "`pm`, 1 DIMM",
        "4 DIMMs",
        "`pm-lru`, 1 DIMM",
        "4 DIMMs",
    ]);
    let profiles = profiles();
    let all = each(&profiles, |(_, profile)| Ok(bands::tails(profile, LINES)))?;
    for (i, (tails, ..)) in all[0].iter().enumerate() {
        let mut cells = vec![tails.to_string()];
        for of in &all {
            cells.push(format!("{:.3}", of[i].1));
            cells.push(format!("{:.3}", of[i].2));
        }
        table.row(&cells);
    }
    sheet.table("tails", table);
    Ok(())
}

fn eadr(sheet: &mut Sheet) -> Result<(), ReplayError> {
    let (_, pm) = builtin("pm").expect("built in");
    let mut table = Table::new(&["flushes", "log", "leaves", "both"]);
    for (cache, (log, leaves)) in bands::implicit_flushes(&pm, LINES) {
        let name = match cache {
            None => "explicit".to_string(),
            Some(bytes) => format!("eADR, {} MiB of cache", bytes >> 20),
        };
        let cells = [log, leaves, log + leaves].map(|xplines| format!("{xplines:.3}"));
        table.row(&[&[name][..], &cells[..]].concat());
    }
    sheet.table("eadr", table);
    Ok(())
}

/// Prints the simulated line writes per second to stderr, because the page must not depend on the
/// machine. Other load on the machine does not count if the system reports a thread's own time.
fn speed(_: &mut Sheet) -> Result<(), ReplayError> {
    const TIMES: u64 = 4_000_000;
    for (name, profile) in profiles() {
        for (how, mode) in [
            ("counting", TimingMode::Counting),
            ("queued", TimingMode::Queued),
        ] {
            let (began, own) = (Instant::now(), thread_ns());
            let (lines, bytes) = patterns::hammer(&profile, mode, TIMES);
            let wall = began.elapsed().as_secs_f64();
            let own = own.zip(thread_ns()).map(|(a, b)| (b - a) as f64 / 1e9);
            let per_s = |seconds: f64| lines as f64 / 1e6 / seconds;
            eprintln!(
                "{name}, {how}: {:.1} M line writes per second of processor time, {:.1} M by the \
                 clock; {bytes} bytes of tables for 64 MiB",
                per_s(own.unwrap_or(wall)),
                per_s(wall)
            );
        }
    }
    Ok(())
}

/// Processor time of this thread in nanoseconds; Linux only.
fn thread_ns() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok()
}
