//! A drained replay: the measured part pays for all of its own writes, and for no others.

use std::path::{Path, PathBuf};

use treering_engine::{BfOptions, PageStoreKind, TablePersist, TreeKind};
use treering_sim::replay::{ReplayConfig, Size, Target, Tree, run};
use treering_sim::report::ReplayReport;
use treering_traces::generate::{GenParams, Workload};
use treering_traces::{Op, OpKind};

#[path = "support/mod.rs"]
#[allow(dead_code)]
mod support;

const TREES: [TreeKind; 3] = [
    TreeKind::BTree,
    TreeKind::Bf(BfOptions::PUBLISHED),
    TreeKind::Bf(BfOptions {
        relog_percent: 50,
        growth_percent: 25,
        spare_percent: 75,
        max_mini_page_percent: 100,
        ..BfOptions::PUBLISHED
    }),
];

const RECORDS: u64 = 2_000;

fn op(kind: OpKind, key: u64) -> Op {
    Op {
        kind,
        key: (key * 0x9e37_79b9 % RECORDS).to_be_bytes().to_vec(),
        value_len: if kind == OpKind::Put { 100 } else { 0 },
        ..Op::default()
    }
}

/// Two thousand puts as warm-up, then these operations.
fn after_a_load(folder: &Path, measured: impl IntoIterator<Item = Op>) -> PathBuf {
    let load = (0..RECORDS).map(|key| op(OpKind::Put, key));
    support::traces::made(folder, "trace", RECORDS, load.chain(measured))
}

fn config(path: &Path, tree: TreeKind, drain: bool) -> ReplayConfig {
    let target = Target::builtin("ssd").expect("it is built in");
    let mut config = ReplayConfig::new(path.to_path_buf(), target);
    config.tree.pages_mut().tree = tree;
    config.cache = Size::Share(0.4);
    config.drain = drain;
    config
}

fn replay(config: &ReplayConfig) -> ReplayReport {
    run(config, &mut |_| {}).expect("it runs")
}

/// Pages written in the measured part, and those that were predicted.
fn pages(report: &ReplayReport) -> (f64, f64) {
    let predicted = report.prediction.as_ref().expect("a prediction").host.page;
    let user = report.user_bytes as f64;
    (
        report.wa.host.page * user / 4096.0,
        predicted * user / 4096.0,
    )
}

#[test]
fn reads_pay_nothing_for_the_load_before_them() {
    let folder = tempfile::tempdir().expect("a folder");
    // One put, because amplification needs user bytes.
    let reads = (0..6_000).map(|key| op(OpKind::Get, key));
    let path = after_a_load(folder.path(), reads.chain([op(OpKind::Put, 7)]));
    for tree in TREES {
        let (left, _) = pages(&replay(&config(&path, tree, false)));
        assert!(
            left > 10.0,
            "{tree:?}: the load leaves {left} pages to write"
        );
        let drained = pages(&replay(&config(&path, tree, true)));
        assert_eq!(drained, (1.0, 1.0), "{tree:?}: that of the put");
    }
}

#[test]
fn what_was_measured_is_written_to_its_pages() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = after_a_load(folder.path(), (0..40).map(|key| op(OpKind::Put, 50 * key)));
    for tree in TREES {
        let report = replay(&config(&path, tree, true));
        let (measured, predicted) = pages(&report);
        // 2,000 records of 108 bytes are some 70 leaves, and 40 changes meet half of them.
        assert!((20.0..=40.0).contains(&measured), "{tree:?}: {measured}");
        assert!((measured - predicted).abs() <= 1.0, "{tree:?}: {predicted}");
        assert_eq!(report.options["drain"], true);
    }
}

#[test]
fn a_drained_replay_lies_within_its_bars() {
    let folder = tempfile::tempdir().expect("a folder");
    let lazily = PageStoreKind::CopyOnWrite {
        table: TablePersist::Checkpoint,
    };
    let (mut values, mut outside) = (0, Vec::new());
    for workload in [Workload::YcsbA, Workload::Latest, Workload::Mixgraph] {
        let mut params = GenParams::new(workload, 10_000);
        params.ops = Some(30_000);
        let path = support::traces::generated(folder.path(), &format!("{workload:?}"), &params);
        for tree in TREES {
            for store in [PageStoreKind::InPlace, lazily] {
                let mut config = config(&path, tree, true);
                config.tree.pages_mut().store = store;
                config.cache = Size::Share(0.1);
                let report = replay(&config);
                values += 7;
                let host = report
                    .outside
                    .iter()
                    .filter(|name| name.starts_with("host"));
                outside.extend(host.map(|name| format!("{workload:?} {tree:?} {name}")));
            }
        }
    }
    assert!(outside.len() * 10 <= values, "{outside:#?} of {values}");
}

#[test]
fn throughput_is_that_of_the_operations() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = after_a_load(
        folder.path(),
        (0..2_000).map(|key| op(OpKind::Get, 3 * key)),
    );
    let rate = |drain| {
        let mut config = config(&path, TreeKind::BTree, drain);
        config.timing = true;
        replay(&config).time.ops_per_second
    };
    // The drain before them takes the writes out of their way.
    let (with, without) = (rate(true), rate(false));
    assert!(with >= without, "{with} drained, {without} not");
}

#[test]
fn trees_without_pages_in_memory_refuse() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = after_a_load(folder.path(), [op(OpKind::Put, 1)]);
    let memory = Target::builtin("pm").expect("it is built in");
    let mut in_memory = ReplayConfig::new(path.clone(), memory);
    let mut direct = config(&path, TreeKind::BTree, true);
    direct.tree = Tree::Direct;
    in_memory.drain = true;
    for config in [in_memory, direct] {
        let refused = run(&config, &mut |_| {}).expect_err("nothing to drain");
        let said = refused.to_string();
        assert!(
            said.contains("--drain") && said.contains("expected"),
            "{said}"
        );
    }
}
