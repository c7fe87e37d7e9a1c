//! Compares predicted with measured write amplification, over the grid on which the predictors must
//! hold.
//!
//! ```sh
//! cargo run --release -p treering-sim --example prediction_grid            # a few minutes
//! cargo run --release -p treering-sim --example prediction_grid -- 500000  # fewer operations
//! cargo run --release -p treering-sim --example prediction_grid -- bf      # the Bf-Tree's grid
//! cargo run --release -p treering-sim --example prediction_grid -- fifth   # every fifth cell
//! cargo run --release -p treering-sim --example prediction_grid -- small   # small stores, seconds
//! ```
//!
//! By default a cell measures 2 M operations. With fewer, drives may not be steady yet.
//!
//! Cells of `btree`: page store × cache of 5, 20 and 50 % of the data × uniform and Zipf 0.9 ×
//! records of 16+16 and 8+120 bytes × writes only and half writes. Prints every component that is
//! at least 3 % of its total. The exit status is 1 if an error exceeds 10 %, or the median 5 %.
//!
//! The copy-on-write store runs with its default table, and with a page table that only checkpoints
//! write. In the latter case a drive moves few pages, and their number depends on the tail of the
//! pages' lifetimes. With a cache of half the data, the model predicts up to 14 % too much, so 15 %
//! is accepted.
//!
//! Cells of `small`: some of both grids, with stores of 5,000 records of 8+400 bytes, down to the
//! size of the sample that ships with the project. Garbage collection alone is not judged there.
//!
//! The grid fails if a cell lies outside the bounds of `sim/src/predict/tried`.
//!
//! Cells of `bf`: cache of 1, 5 and 20 % of the data × uniform and Zipf 0.7, 0.9, 0.99 × writes 5,
//! 50 and 95 %, records of 16+16 bytes in place, measured over the second half of the operations.
//! These figures are judged too, however small: the share of gets that mini-pages answer (if there
//! are a thousand hits or more), and page reads, page writes and log bytes per operation.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;

use treering_engine::Options;
use treering_sim::predict::tried::Decides;
use treering_sim::replay::{ReplayConfig, Size, Target, run};
use treering_sim::report::ReplayReport;
use treering_traces::generate::{GenParams, ValueSize, Workload, build};
use treering_traces::{Op, Writer};

/// Maximum error of a component, of a component with a lazy page table, and of the median.
const WORST: f64 = 0.10;
const WORST_LAZY: f64 = 0.15;
const MEDIAN: f64 = 0.05;

/// The tree whose page table is written lazily.
const LAZY: &str = "btree+cow";

#[derive(Clone, Copy)]
struct Cell {
    tree: &'static str,
    cache: f64,
    theta: Option<f64>,
    record: (u32, u32),
    writes: f64,
    /// Share of the operations after the load that are also warm-up.
    warm: f64,
    records: u64,
}

impl Cell {
    fn trace_name(&self) -> String {
        let (key, value) = self.record;
        let theta = self.theta.map_or("uniform".into(), |t| format!("zipf{t}"));
        format!("{theta}-{key}+{value}-w{}.trz", self.writes)
    }
}

fn btree_cells() -> Vec<Cell> {
    let trees = ["btree", "btree+cow(table=each-flush)", LAZY];
    let mut cells = Vec::new();
    for tree in trees {
        for record in [(16, 16), (8, 120)] {
            for theta in [None, Some(0.9)] {
                for writes in [1.0, 0.5] {
                    for cache in [0.05, 0.20, 0.50] {
                        cells.push(Cell {
                            tree,
                            cache,
                            theta,
                            record,
                            writes,
                            warm: 0.0,
                            records: 1_000_000,
                        });
                    }
                }
            }
        }
    }
    cells
}

fn bf_cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for theta in [None, Some(0.7), Some(0.9), Some(0.99)] {
        for writes in [0.05, 0.5, 0.95] {
            for cache in [0.01, 0.05, 0.20] {
                cells.push(Cell {
                    tree: "bf(policy=published)",
                    cache,
                    theta,
                    record: (16, 16),
                    writes,
                    warm: 0.5,
                    records: 500_000,
                });
            }
        }
    }
    cells
}

/// Stores of 5,000 records of 8+400 bytes: about 800 leaves.
fn small_cells() -> Vec<Cell> {
    let mut cells: Vec<Cell> = (btree_cells().into_iter())
        .filter(|cell| cell.record == (16, 16))
        .collect();
    cells.extend(
        bf_cells()
            .into_iter()
            .filter(|cell| cell.writes == 0.5 && cell.cache >= 0.05),
    );
    for cell in &mut cells {
        cell.record = (8, 400);
        cell.records = 5000;
        cell.warm = 0.0;
    }
    cells
}

fn make_trace(cell: &Cell, ops: u64, path: &Path) -> Result<(), treering_traces::TraceError> {
    let workload = if cell.theta.is_some() {
        Workload::Zipf
    } else {
        Workload::Uniform
    };
    let mut params = GenParams::new(workload, cell.records);
    params.ops = Some(ops);
    params.theta = cell.theta;
    params.writes = Some(cell.writes);
    params.key_size = Some(cell.record.0);
    params.value_size = Some(ValueSize::fixed(cell.record.1));
    let (header, mut source) = build(&params)?;
    let mut writer = Writer::create(path, header)?;
    let mut op = Op::default();
    while source.next_op(&mut op)? {
        writer.write(&op)?;
    }
    writer.finish().map(drop)
}

/// With fewer hits, the share varies by 3 % by chance alone.
const ENOUGH: u64 = 1000;

/// The figures of mini-pages that are judged; the other figures of a report are parts of these.
const MINI_PAGES: [&str; 4] = ["gets answered", "page reads", "page writes", "log bytes"];

fn errors(report: &ReplayReport) -> Vec<(&'static str, f64)> {
    let Some(error) = &report.wa.error else {
        return Vec::new();
    };
    let compared = report.cache.compared.iter();
    let compared = compared.filter(|c| MINI_PAGES.contains(&c.name));
    let mini_pages = report.cache.mini_pages.as_ref();
    let enough = mini_pages.is_some_and(|m| m.hits.total() >= ENOUGH);
    let compared = compared.filter(|c| enough || c.name != "gets answered");
    let mut all = vec![
        ("host.log", error.host.log),
        ("host.page", error.host.page),
        ("host.extra", error.host.extra),
        ("host.total", error.host.total),
    ];
    if let Some(device) = &error.device {
        // For drives that are too small, garbage collection alone is not predicted reliably.
        let mut untried = report.wa.untried.iter();
        let tried = untried.all(|u| u.decides != Decides::Collection);
        all.push(("device.gc", device.gc.filter(|_| tried)));
        all.push(("device.total", device.total));
    }
    all.into_iter()
        .chain(compared.map(|c| (c.name, c.error)))
        .filter_map(|(name, e)| e.map(|e| (name, e)))
        .collect()
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let asks = |name: &str| args.iter().any(|arg| arg == name);
    let usual = if asks("small") { 40_000 } else { 2_000_000 };
    let ops = (args.iter().find_map(|arg| arg.parse().ok())).unwrap_or(usual);
    let mut cells = match (asks("bf"), asks("small")) {
        (_, true) => small_cells(),
        (true, _) => bf_cells(),
        _ => btree_cells(),
    };
    if asks("fifth") {
        // Five divides no side of the grid, so every value of each side occurs.
        cells = cells.into_iter().step_by(5).collect();
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    for cell in &cells {
        let path = folder.path().join(cell.trace_name());
        if !path.exists() {
            make_trace(cell, ops, &path).expect("a generated trace can be written");
        }
    }
    let next = Mutex::new(0usize);
    let found: Mutex<Vec<(String, f64)>> = Mutex::new(Vec::new());
    let workers = std::thread::available_parallelism().map_or(1, |n| n.get());
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let i = {
                        let mut next = next.lock().expect("no worker panics");
                        *next += 1;
                        *next - 1
                    };
                    let Some(cell) = cells.get(i) else { return };
                    let report = replay(cell, ops, &folder.path().join(cell.trace_name()));
                    show(cell, &report, &found);
                }
            });
        }
    });
    verdict(found.into_inner().expect("no worker panics"))
}

fn replay(cell: &Cell, ops: u64, trace: &Path) -> ReplayReport {
    let target = Target::builtin("ssd").expect("the built-in profile");
    let mut config = ReplayConfig::new(trace.to_path_buf(), target);
    *config.tree.pages_mut() = Options::of_tree(cell.tree).expect("a tree of pages");
    if cell.warm > 0.0 {
        let load = cell.records as f64;
        config.warmup = Some((load + cell.warm * ops as f64) / (load + ops as f64));
    }
    config.cache = Size::Share(cell.cache);
    run(&config, &mut |_| {}).unwrap_or_else(|e| panic!("{}: {e}", cell.trace_name()))
}

fn show(cell: &Cell, report: &ReplayReport, found: &Mutex<Vec<(String, f64)>>) {
    let name = format!(
        "{:<27} {:<24} cache {:>2.0}%",
        cell.tree,
        cell.trace_name().trim_end_matches(".trz"),
        cell.cache * 100.0
    );
    let errors = errors(report);
    let shown: Vec<String> = errors
        .iter()
        .map(|(c, e)| format!("{c} {:+.2}%", e * 100.0))
        .collect();
    println!(
        "{name}  WA {:7.2}  {}",
        report.wa.host.total,
        shown.join("  ")
    );
    for untried in (report.wa.untried.iter()).filter(|u| u.decides == Decides::All) {
        // `predict::tried` claims that this grid tests these bounds.
        println!("  outside its own bounds: {}", untried.sentence);
        found
            .lock()
            .expect("no worker panics")
            .push((format!("{name} bounds"), f64::INFINITY));
    }
    let mut found = found.lock().expect("no worker panics");
    found.extend(
        errors
            .into_iter()
            .map(|(c, e)| (format!("{name} {c}"), e.abs())),
    );
}

fn verdict(mut found: Vec<(String, f64)>) -> ExitCode {
    found.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (Some(worst), Some(median)) = (found.last(), found.get(found.len() / 2)) else {
        println!("no component to compare");
        return ExitCode::FAILURE;
    };
    println!(
        "{} components: median {:.2} %, worst {:.2} % ({})",
        found.len(),
        median.1 * 100.0,
        worst.1 * 100.0,
        worst.0
    );
    let allowed = |name: &str| {
        if name.starts_with(LAZY) {
            WORST_LAZY
        } else {
            WORST
        }
    };
    let mut holds = median.1 <= MEDIAN;
    for (name, e) in found.iter().filter(|(_, e)| *e > WORST) {
        println!("over {:.0} %: {name}: {:.2} %", WORST * 100.0, e * 100.0);
        holds &= *e <= allowed(name);
    }
    if holds {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
