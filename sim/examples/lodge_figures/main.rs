//! Reproduces LodgeTree's evaluation on simulated persistent memory; see `sim/LODGE.md`.
//!
//! ```sh
//! cargo run --release -p treering-sim --example lodge_figures
//! cargo run --release -p treering-sim --example lodge_figures -- --figure growth
//! cargo run --release -p treering-sim --example lodge_figures -- --out DIR
//! ```
//!
//! The first command makes all figures and rewrites `docs/` and the page. The second makes only
//! one. The third writes pictures and `tables.md` to another folder.
//!
//! Results are counts and virtual times, so they are the same on every machine.

#[path = "../bf_figures/errors.rs"]
mod errors;
#[path = "../bf_figures/page.rs"]
mod page;
mod patterns;
mod prediction;
#[path = "../bf_figures/run.rs"]
mod run;
#[path = "../pm_figures/trace.rs"]
mod trace;

use std::process::ExitCode;
use std::sync::Arc;

use treering_engine::{
    CclOptions, GlobalOptions, Kv, LodgeOptions, NodeSplit, PmOptions, PmStats, PmStore, PmTreeKind,
};
use treering_sim::pm::{SimPm, builtin};
use treering_sim::replay::{ReplayConfig, ReplayError, Target, Tree, run};
use treering_sim::report::ReplayReport;
use treering_sim::report::html::{Curve, Lines, Scale};
use treering_sim::ssd::TimingMode;

use page::{Sheet, Table, percent};
use patterns::Pattern;
use run::{Figure, each};
use trace::Trace;

/// Number of keys inserted; the second half is measured.
const KEYS: u64 = 400_000;

const FIGURES: [(&str, Figure); 6] = [
    ("growth", growth),
    ("grouping", grouping),
    ("logs", logs),
    ("dram", dram),
    ("tails", tails),
    ("prediction", prediction::figure),
];

fn main() -> ExitCode {
    run::main(&FIGURES, "sim/LODGE.md")
}

fn lodge() -> LodgeOptions {
    LodgeOptions::default()
}

/// A store on memory without timing, for counts in DRAM.
fn open(tree: PmTreeKind) -> Result<PmStore, ReplayError> {
    let options = PmOptions {
        tree,
        ..PmOptions::default()
    };
    let (_, profile) = builtin("pm").expect("built in");
    let device = SimPm::new(&profile, 256 << 20, TimingMode::Counting, 0)?;
    Ok(PmStore::open(Arc::new(device), &options).expect("it fits"))
}

/// Puts keys one after another and cleans when it is due. Calls `tell` at regular intervals.
fn grow(store: &PmStore, pattern: Pattern, mut tell: impl FnMut(u64, &PmStats)) {
    for i in 0..KEYS {
        store.put(&pattern.key(i), &i.to_le_bytes()).expect("puts");
        while store.pump_due().expect("pumps") {}
        let n = i + 1;
        let told = n.is_power_of_two() || n.is_multiple_of(KEYS / 100);
        if told && n >= 1_000 {
            tell(
                n,
                &store.stats().pm.expect("it is one in persistent memory"),
            );
        }
    }
}

/// §II-C: the share of the last level's slots that index no leaf, while the tree grows.
fn growth(sheet: &mut Sheet) -> Result<(), ReplayError> {
    let curves = each(&Pattern::INSERTS, |pattern| {
        let store = open(PmTreeKind::Lodge(lodge()))?;
        let (mut free, mut buffered) = (Vec::new(), Vec::new());
        grow(&store, *pattern, |n, stats| {
            let own = stats.lodge.expect("it is one");
            free.push((n as f64, own.free_share()));
            buffered.push(own.buffered as f64 / own.slots as f64);
        });
        Ok((free, buffered))
    })?;
    let mut table = Table::new(&[
        "inserts",
        "free slots from 10,000 keys on: least",
        "most",
        "mean",
        "at the end",
        "mean share of these with a record",
    ]);
    for (pattern, (free, buffered)) in Pattern::INSERTS.iter().zip(&curves) {
        let later: Vec<f64> = free
            .iter()
            .filter(|(n, _)| *n >= 1e4)
            .map(|(_, y)| *y)
            .collect();
        let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
        let used = mean(buffered) / mean(&later);
        table.row(&[
            pattern.name().into(),
            percent(later.iter().copied().fold(1.0, f64::min)),
            percent(later.iter().copied().fold(0.0, f64::max)),
            percent(mean(&later)),
            percent(later[later.len() - 1]),
            percent(used),
        ]);
    }
    sheet.table("growth", table);
    let curves = Pattern::INSERTS
        .iter()
        .zip(curves)
        .map(|(pattern, (free, _))| Curve {
            name: pattern.name().into(),
            points: free,
        });
    sheet.picture(
        "lodge-growth",
        &Lines {
            x: "keys",
            y: "share of slots that index no leaf",
            scale: Scale::Log,
            y_scale: Scale::Linear,
            curves: curves.collect(),
        },
    );
    Ok(())
}

fn replay(
    trace: &Trace,
    tree: PmTreeKind,
    set: impl FnOnce(&mut ReplayConfig),
) -> Result<ReplayReport, ReplayError> {
    let (_, profile) = builtin("pm").expect("built in");
    let target = Target::pm(profile, "pm");
    let mut config = ReplayConfig::new(trace.path().into(), target);
    config.tree = Tree::pm(tree);
    set(&mut config);
    run(&config, &mut |_| {})
}

fn unpredicted(config: &mut ReplayConfig) {
    config.predict = false;
}

/// §III-B: records per flush and per visit to a leaf, and the resulting amplification.
fn grouping(sheet: &mut Sheet) -> Result<(), ReplayError> {
    let mut table = Table::new(&[
        "writes",
        "t_node",
        "records per flush",
        "per leaf visit",
        "XBI",
        "of this: leaves",
        "logs",
        "CLI",
        "XBI of `ccl`",
        "of `pmtree`",
    ]);
    for pattern in Pattern::ALL {
        let trace = pattern.trace(KEYS)?;
        let peers = [PmTreeKind::Ccl(CclOptions::default()), PmTreeKind::PmTree];
        let peers = each(&peers, |tree| replay(&trace, *tree, unpredicted))?;
        let xbi = |report: &ReplayReport| report.pm.as_ref().expect("it is pm").measured.xbi;
        let sizes = [1, 2, 4, 8];
        let reports = each(&sizes, |t_node| {
            let options = LodgeOptions {
                t_node: *t_node,
                ..lodge()
            };
            replay(&trace, PmTreeKind::Lodge(options), unpredicted)
        })?;
        for (t_node, report) in sizes.iter().zip(&reports) {
            let pm = report.pm.as_ref().expect("it is pm");
            let own = pm.lodge.as_ref().expect("it is one");
            table.row(&[
                pattern.name().into(),
                t_node.to_string(),
                format!("{:.2}", own.pairs_per_flush),
                format!("{:.2}", own.pairs_per_leaf),
                format!("{:.2}", pm.measured.xbi),
                format!("{:.2}", pm.measured.xbi_leaf),
                format!("{:.2}", pm.measured.xbi_log),
                format!("{:.2}", pm.measured.cli),
                format!("{:.2}", xbi(&peers[0])),
                format!("{:.2}", xbi(&peers[1])),
            ]);
        }
    }
    sheet.table("grouping", table);
    Ok(())
}

/// §IV-D, Figure 15: the log entries that are needed, and those that the logs in use have room for.
fn logs(sheet: &mut Sheet) -> Result<(), ReplayError> {
    let mut table = Table::new(&[
        "writes",
        "L",
        "most needed entries",
        "buffered then, plus a partition's L",
        "most room",
        "most entries of a global buffer",
    ]);
    for pattern in Pattern::ALL {
        let global = {
            let store = open(PmTreeKind::Global(GlobalOptions::default()))?;
            let mut most = 0;
            grow(&store, pattern, |_, stats| most = stats.log_peak_bytes / 24);
            most
        };
        let sizes = [64u32, 256, 1024];
        let rows = each(&sizes, |log_entries| {
            let store = open(PmTreeKind::Lodge(LodgeOptions {
                log_entries: *log_entries,
                ..lodge()
            }))?;
            let (mut needed, mut bound, mut room) = (0, 0, 0);
            grow(&store, pattern, |_, stats| {
                let own = stats.lodge.expect("it is one");
                if stats.log_bytes / 24 > needed {
                    needed = stats.log_bytes / 24;
                    bound = own.buffered + u64::from(*log_entries);
                }
                room = stats.log_peak_bytes / 24;
            });
            Ok((needed, bound, room))
        })?;
        for (l, (needed, bound, room)) in sizes.iter().zip(rows) {
            let numbers = [u64::from(*l), needed, bound, room, global];
            let mut cells = vec![pattern.name().to_string()];
            cells.extend(numbers.map(|n| n.to_string()));
            table.row(&cells);
        }
    }
    sheet.table("logs", table);
    Ok(())
}

/// §IV-E: DRAM. A buffer in free slots needs no additional DRAM.
fn dram(sheet: &mut Sheet) -> Result<(), ReplayError> {
    let trees = [
        ("`lodge`", PmTreeKind::Lodge(lodge())),
        ("`ccl`", PmTreeKind::Ccl(CclOptions::default())),
        (
            "global buffer",
            PmTreeKind::Global(GlobalOptions::default()),
        ),
        ("`pmtree`", PmTreeKind::PmTree),
    ];
    let rows = each(&trees, |(_, tree)| {
        let store = open(*tree)?;
        let mut most = 0;
        grow(&store, Pattern::Uniform, |_, stats| {
            most = most.max(stats.buffered)
        });
        let stats = store.stats();
        Ok((stats.index_bytes, stats.pm.expect("it is one"), most))
    })?;
    let mut table = Table::new(&[
        "tree",
        "index above nodes",
        "nodes and flush times",
        "most records buffered",
        "a separate buffer for them",
        "total bytes per key",
    ]);
    for ((name, tree), (index, stats, most)) in trees.iter().zip(rows) {
        let nodes = stats.node_bytes + stats.flush_time_bytes;
        // Sixteen bytes per change, as if the map of a global buffer had no nodes.
        let buffer = match tree {
            PmTreeKind::Global(_) => 16 * most,
            _ => 0,
        };
        let kib = |bytes: u64| format!("{} KiB", bytes >> 10);
        table.row(&[
            (*name).into(),
            kib(index),
            kib(nodes),
            most.to_string(),
            kib(buffer),
            format!("{:.2}", (index + nodes + buffer) as f64 / KEYS as f64),
        ]);
    }
    sheet.table("dram", table);
    Ok(())
}

/// §IV-C, §IV-D: tail latency in virtual time, with splits into two and with hotness-aware splits.
fn tails(sheet: &mut Sheet) -> Result<(), ReplayError> {
    let trace = Pattern::Burst.trace(KEYS)?;
    let double = LodgeOptions {
        node_split: NodeSplit::Double,
        ..lodge()
    };
    let trees = [
        ("`lodge`, hotness-aware", PmTreeKind::Lodge(lodge())),
        ("`lodge`, into two", PmTreeKind::Lodge(double)),
        ("`ccl`", PmTreeKind::Ccl(CclOptions::default())),
        ("`pmtree`", PmTreeKind::PmTree),
    ];
    let cells: Vec<_> = trees
        .iter()
        .flat_map(|tree| [(tree, 1), (tree, 8)])
        .collect();
    let reports = each(&cells, |((_, tree), clients)| {
        replay(&trace, *tree, |config| {
            config.clients = *clients;
            config.timing = true;
            config.predict = false;
        })
    })?;
    let mut table = Table::new(&[
        "tree",
        "clients",
        "p50, ns",
        "p99",
        "p99.9",
        "most",
        "node splits into 2, 3, 4, more",
        "free slots",
        "DRAM of nodes",
    ]);
    for (((name, _), clients), report) in cells.iter().zip(&reports) {
        let put = report.latency_ns.as_ref().and_then(|all| all.put.as_ref());
        let put = put.expect("puts were timed");
        let pm = report.pm.as_ref().expect("it is pm");
        let (splits, free) = match &pm.lodge {
            None => (String::new(), String::new()),
            Some(own) => {
                let into = &own.node_splits;
                let more: u64 = into[3..].iter().sum();
                let splits = format!("{}, {}, {}, {more}", into[0], into[1], into[2]);
                (splits, percent(own.free_share))
            }
        };
        table.row(&[
            (*name).into(),
            clients.to_string(),
            put.p50.to_string(),
            put.p99.to_string(),
            put.p999.to_string(),
            put.max.to_string(),
            splits,
            free,
            format!("{} KiB", pm.node_bytes >> 10),
        ]);
    }
    sheet.table("tails", table);
    Ok(())
}
