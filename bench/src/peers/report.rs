//! The tables and JSON of a run.

use std::fmt::{self, Write};

use serde::Serialize;

use super::child::{Footprint, Row};
use super::engines::{Durability, ENGINES, Spec, is_compared};

/// The name of the JSON's schema.
pub const SCHEMA: &str = "treering-peers";

/// The schema's version. It is raised whenever a field is removed or changes its meaning.
pub const SCHEMA_VERSION: u32 = 1;

/// The parameters of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Setup {
    /// Number of records.
    pub records: u64,
    /// Size of each engine's cache in bytes.
    pub cache_bytes: u64,
    /// Writes in a group.
    pub group: usize,
    /// Seconds of measurement per workload.
    pub seconds: f64,
    /// Seconds of warm-up per workload.
    pub warm_up_seconds: f64,
    /// Operations per workload, after half as many of warm-up, instead of a time.
    pub ops: Option<u64>,
    /// Whether engines are drained before and after each measurement.
    pub drain: bool,
    /// A description of the machine.
    pub machine: String,
}

impl Setup {
    fn length(&self) -> String {
        let (unit, measured, warm_up) = match self.ops {
            Some(ops) => ("operations", thousands(ops), thousands(ops / 2)),
            None => (
                "s",
                self.seconds.to_string(),
                self.warm_up_seconds.to_string(),
            ),
        };
        format!("{measured} {unit} a workload after {warm_up} {unit} of warm-up")
    }
}

/// An engine in the JSON.
#[derive(Debug, Serialize)]
struct About {
    name: &'static str,
    backing: &'static str,
    settings: &'static str,
    relaxed: Option<&'static str>,
    grouped: &'static str,
}

/// The results of a run.
#[derive(Debug, Serialize)]
pub struct Report {
    schema: &'static str,
    version: u32,
    setup: Setup,
    engines: Vec<About>,
    /// The rows, in the order of the run.
    pub rows: Vec<Row>,
    /// One for each process that finished.
    pub footprints: Vec<Footprint>,
    /// One for each process that did not finish.
    pub lost: Vec<Lost>,
    means: Vec<Mean>,
    /// Bytes of ours over those of others, when drained.
    bytes: Vec<Bytes>,
}

/// A process that died or hung, so that some of its rows are missing.
#[derive(Clone, Debug, Serialize)]
pub struct Lost {
    /// The durability of writes.
    pub durability: Durability,
    /// The engine, and what happened.
    pub why: String,
}

/// How many times faster one of our engines is than another engine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Mean {
    /// The durability of writes.
    pub durability: Durability,
    /// Our engine.
    pub ours: String,
    /// The other engine.
    pub other: String,
    /// Geometric mean of the ratios of operations per second.
    pub ratio: f64,
    /// The smallest ratio.
    pub least: f64,
    /// The row with the smallest ratio.
    pub least_at: String,
    /// Number of ratios.
    pub rows: usize,
    /// Rows left out because one side is void or missing.
    pub left_out: usize,
}

/// How much one of our engines writes beside another engine, when both are drained.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bytes {
    /// The durability of writes.
    pub durability: Durability,
    /// Our engine.
    pub ours: String,
    /// The other engine.
    pub other: String,
    /// All bytes written to the device, and those beside the log if both say what their log is.
    pub all: Ratio,
    /// See `all`.
    pub pages: Option<Ratio>,
}

/// Ratios over rows that write.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// Geometric mean.
    pub mean: f64,
    /// The greatest.
    pub most: f64,
    /// The row with the greatest.
    pub most_at: String,
    /// Number of rows.
    pub rows: usize,
}

impl Ratio {
    fn of(rows: &[(&Row, &Row)], figure: fn(&Row) -> Option<f64>) -> Option<Ratio> {
        let ratio = |(ours, other): &(&Row, &Row)| {
            let (own, theirs) = (figure(ours)?, figure(other)?);
            (own > 0.0 && theirs > 0.0).then(|| (own / theirs, place(ours)))
        };
        let ratios: Vec<(f64, String)> = rows.iter().filter_map(ratio).collect();
        let (most, most_at) = ratios.iter().max_by(|a, b| a.0.total_cmp(&b.0))?.clone();
        let logs: f64 = ratios.iter().map(|(ratio, _)| ratio.ln()).sum();
        Some(Ratio {
            mean: (logs / ratios.len() as f64).exp(),
            most,
            most_at,
            rows: ratios.len(),
        })
    }
}

impl Report {
    /// Returns an empty report.
    #[must_use]
    pub fn new(setup: Setup) -> Report {
        Report {
            schema: SCHEMA,
            version: SCHEMA_VERSION,
            setup,
            engines: Vec::new(),
            rows: Vec::new(),
            footprints: Vec::new(),
            lost: Vec::new(),
            means: Vec::new(),
            bytes: Vec::new(),
        }
    }

    /// Computes the means. Call it when all rows are there.
    pub fn finish(&mut self) {
        let about = |spec: &Spec| About {
            name: spec.name,
            backing: spec.backing.name(),
            settings: spec.settings,
            relaxed: spec.relaxed,
            grouped: spec.grouped,
        };
        let ran = |spec: &&Spec| self.rows.iter().any(|row| row.engine == spec.name);
        self.engines = ENGINES.iter().filter(ran).map(about).collect();
        let rows = &self.rows;
        self.means = compared(|table, ours, other| mean(rows, table, ours, other));
        self.bytes = compared(|table, ours, other| bytes(rows, table, ours, other));
    }

    /// Returns the means of a finished report.
    #[must_use]
    pub fn means(&self) -> &[Mean] {
        &self.means
    }

    fn find(&self, like: &Row, engine: &str) -> Option<&Row> {
        let same = |row: &&Row| row.engine == engine && is_alike(row, like);
        self.rows.iter().find(same)
    }
}

fn is_alike(a: &Row, b: &Row) -> bool {
    (a.durability, a.workload, a.threads) == (b.durability, b.workload, b.threads)
}

/// Compares each Bf-Tree of ours with every other engine, by table.
fn compared<T>(beside: impl Fn(Durability, &str, &str) -> Option<T>) -> Vec<T> {
    let mut all = Vec::new();
    for durability in Durability::ALL {
        for ours in ENGINES.iter().filter(|spec| is_compared(spec)) {
            for other in ENGINES.iter().filter(|spec| spec.name != ours.name) {
                all.extend(beside(durability, ours.name, other.name));
            }
        }
    }
    all
}

fn mean(rows: &[Row], durability: Durability, ours: &str, other: &str) -> Option<Mean> {
    let of = |engine| {
        let wanted = move |row: &&Row| row.engine == engine && row.durability == durability;
        rows.iter().filter(wanted)
    };
    let (mut logs, mut left_out) = (0.0, 0);
    let mut ratios = Vec::new();
    for ours in of(ours) {
        let twin = of(other).find(|row| is_alike(row, ours));
        let valid = twin.filter(|twin| twin.void.is_none() && ours.void.is_none());
        let Some(twin) = valid.filter(|twin| twin.ops > 0 && ours.ops > 0) else {
            left_out += 1;
            continue;
        };
        let ratio = ours.ops_per_second / twin.ops_per_second;
        logs += ratio.ln();
        ratios.push((ratio, ours));
    }
    let (least, at) = ratios.iter().min_by(|a, b| a.0.total_cmp(&b.0))?;
    Some(Mean {
        durability,
        ours: ours.into(),
        other: other.into(),
        ratio: (logs / ratios.len() as f64).exp(),
        least: *least,
        least_at: place(at),
        rows: ratios.len(),
        left_out,
    })
}

fn bytes(rows: &[Row], durability: Durability, ours: &str, other: &str) -> Option<Bytes> {
    let is_of = |row: &&Row, engine: &str| {
        row.engine == engine && row.durability == durability && row.void.is_none()
    };
    let pairs: Vec<(&Row, &Row)> = (rows.iter().filter(|row| is_of(row, ours)))
        .filter_map(|row| {
            let twin = |twin: &&Row| is_of(twin, other) && is_alike(twin, row);
            Some((row, rows.iter().find(twin)?))
        })
        .collect();
    Some(Bytes {
        durability,
        ours: ours.into(),
        other: other.into(),
        all: Ratio::of(&pairs, Row::drained_per_user_byte)?,
        pages: Ratio::of(&pairs, Row::pages_per_user_byte),
    })
}

fn place(row: &Row) -> String {
    format!("{}, {}", row.workload.name(), clients(row.threads))
}

fn clients(threads: u64) -> String {
    match threads {
        1 => "1 thread".into(),
        n => format!("{n} threads"),
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let setup = &self.setup;
        writeln!(
            f,
            "{} records of 16+16 B, {} MiB cache, {}\n{}",
            thousands(setup.records),
            setup.cache_bytes >> 20,
            setup.length(),
            setup.machine
        )?;
        for durability in Durability::ALL {
            if self.rows.iter().any(|row| row.durability == durability) {
                self.table(f, durability)?;
            }
        }
        self.settings(f)
    }
}

impl Report {
    fn table(&self, f: &mut fmt::Formatter<'_>, durability: Durability) -> fmt::Result {
        let title = match durability {
            Durability::Relaxed => "Relaxed: no sync per operation, one at the end of each phase",
            Durability::Grouped => "Durable group commit",
        };
        writeln!(f, "\n{title}")?;
        let mut last = None;
        for row in self.in_order(durability) {
            let at = (row.workload, row.threads);
            if last.replace(at) != Some(at) {
                write!(
                    f,
                    "\n{:<28}{:>12}{:>10}{:>10}{:>14}{:>12}",
                    place(row),
                    "ops/s",
                    "bf ÷ it",
                    "p99",
                    "written/user",
                    "read/op"
                )?;
                match self.setup.drain {
                    true => writeln!(f, "{:>10}{:>8}{:>10}", "drained", "log", "the rest")?,
                    false => writeln!(f)?,
                }
            }
            self.line(f, row)?;
        }
        self.void_rows(f, durability)?;
        self.means_table(f, durability)?;
        self.memory(f, durability)?;
        self.promises(f, durability)
    }

    fn in_order(&self, durability: Durability) -> Vec<&Row> {
        let of = |row: &&Row| row.durability == durability;
        let mut rows: Vec<_> = self.rows.iter().filter(of).collect();
        let rank = |row: &Row| ENGINES.iter().position(|spec| spec.name == row.engine);
        rows.sort_by_key(|row| (row.threads, row.workload as u8, rank(row)));
        rows
    }

    fn line(&self, f: &mut fmt::Formatter<'_>, row: &Row) -> fmt::Result {
        if row.void.is_some() {
            return writeln!(f, "  {:<26}{:>12}", row.engine, "VOID");
        }
        let bf = self.find(row, ENGINES[0].name);
        let bf = bf.filter(|bf| bf.void.is_none() && bf.engine != row.engine);
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".into());
        let mark = if row.is_disturbed() { "*" } else { "" };
        write!(
            f,
            "  {:<26}{:>12}{:>10}{:>10}{:>14}{:>12}",
            row.engine,
            thousands(row.ops_per_second as u64),
            or_none(bf.map(|bf| format!("{:.2}", bf.ops_per_second / row.ops_per_second))),
            time(row.p99_ns),
            or_none(row.written_per_user_byte().map(|x| format!("{x:.1}{mark}"))),
            or_none(row.read_per_op().map(|x| format!("{x:.0} B{mark}"))),
        )?;
        if !self.setup.drain {
            return writeln!(f);
        }
        let each = |figure: Option<f64>| or_none(figure.map(|x| format!("{x:.1}{mark}")));
        writeln!(
            f,
            "{:>10}{:>8}{:>10}",
            each(row.drained_per_user_byte()),
            each(row.logged_per_user_byte()),
            each(row.pages_per_user_byte())
        )
    }

    fn void_rows(&self, f: &mut fmt::Formatter<'_>, durability: Durability) -> fmt::Result {
        for row in self.in_order(durability) {
            if let Some(why) = &row.void {
                writeln!(f, "\nVOID: {}, {}: {why}", row.engine, place(row))?;
            }
        }
        for lost in self.lost.iter().filter(|l| l.durability == durability) {
            writeln!(f, "\nLOST: {}", lost.why)?;
        }
        Ok(())
    }

    fn means_table(&self, f: &mut fmt::Formatter<'_>, durability: Durability) -> fmt::Result {
        writeln!(
            f,
            "\n{:<14}{:<18}{:>8}{:>8}   {:<31}{:>6}",
            "times faster", "than", "geomean", "least", "in", "rows"
        )?;
        for mean in self.means.iter().filter(|m| m.durability == durability) {
            let left_out = match mean.left_out {
                0 => String::new(),
                n => format!(" ({n} left out)"),
            };
            writeln!(
                f,
                "{:<14}{:<18}{:>8.2}{:>8.2}   {:<31}{:>6}{left_out}",
                mean.ours, mean.other, mean.ratio, mean.least, mean.least_at, mean.rows
            )?;
        }
        self.bytes_table(f, durability)
    }

    fn bytes_table(&self, f: &mut fmt::Formatter<'_>, durability: Durability) -> fmt::Result {
        let of = |bytes: &&Bytes| bytes.durability == durability;
        for (nth, found) in self.bytes.iter().filter(of).enumerate() {
            if nth == 0 {
                writeln!(
                    f,
                    "\n{:<14}{:<18}{:>8}{:>8}   {:<31}{:>6}",
                    "bytes drained", "over those of", "geomean", "most", "in", "rows"
                )?;
            }
            let rest = found.pages.as_ref().map(|ratio| (" beside log", ratio));
            for (what, ratio) in [("", &found.all)].into_iter().chain(rest) {
                writeln!(
                    f,
                    "{:<14}{:<18}{:>8.2}{:>8.2}   {:<31}{:>6}{what}",
                    found.ours, found.other, ratio.mean, ratio.most, ratio.most_at, ratio.rows
                )?;
            }
        }
        Ok(())
    }

    fn memory(&self, f: &mut fmt::Formatter<'_>, durability: Durability) -> fmt::Result {
        writeln!(
            f,
            "\n{:<18}{:<12}{:>8}{:>12}{:>12}{:>14}",
            "memory", "data in", "threads", "peak RSS", "files", "page cache"
        )?;
        let mib = |bytes: u64| format!("{:.1} MiB", bytes as f64 / (1 << 20) as f64);
        let or_none = |bytes: Option<u64>| bytes.map_or("-".into(), mib);
        for found in &self.footprints {
            if found.durability == durability {
                let spec = ENGINES.iter().find(|spec| spec.name == found.engine);
                writeln!(
                    f,
                    "{:<18}{:<12}{:>8}{:>12}{:>12}{:>14}",
                    found.engine,
                    spec.map_or("", |spec| spec.backing.name()),
                    found.threads,
                    or_none(found.peak_resident_bytes),
                    mib(found.file_bytes),
                    or_none(found.page_cache_bytes)
                )?;
            }
        }
        let missing: Option<&str> = self.footprints.iter().find_map(|f| f.no_device.as_deref());
        missing.map_or(Ok(()), |why| writeln!(f, "{why}"))
    }

    fn promises(&self, f: &mut fmt::Formatter<'_>, durability: Durability) -> fmt::Result {
        writeln!(f, "\nAn acknowledged write is")?;
        for spec in self.ran() {
            if let Some(promise) = spec.promise(durability) {
                let groups = (spec.groups)(durability, self.setup.group);
                let size = match groups.write {
                    1 => "one by one".into(),
                    n => format!("{n} at a time"),
                };
                writeln!(f, "  {:<18}{promise}; {size}", spec.name)?;
            }
        }
        Ok(())
    }

    fn settings(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nSettings")?;
        for spec in self.ran() {
            writeln!(f, "  {:<18}{}", spec.name, spec.settings)?;
        }
        writeln!(f, "\n{NOTES}")
    }

    fn ran(&self) -> impl Iterator<Item = &'static Spec> {
        let ran = |spec: &&Spec| self.engines.iter().any(|about| about.name == spec.name);
        ENGINES.iter().filter(ran)
    }
}

const NOTES: &str = "\
Bytes are counted by the block device, between two syncs of the file system. A * marks rows in
which the device did several times what the process caused, so something else was using it.
Data that an engine still holds in memory is not counted, so short phases favour engines that
buffer. Peak RSS excludes the harness and includes the pages of a map. The cache size bounds
neither the page cache nor a map: engines that use them keep all their data in memory if the
machine has room. Each operation of a group has the group's latency.";

fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        let _ = text.write_char(digit);
    }
    text
}

fn time(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.1} µs", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        _ => format!("{:.1} s", ns as f64 / 1e9),
    }
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
