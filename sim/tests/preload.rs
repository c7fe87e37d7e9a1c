//! Keys that a trace reads but never wrote are loaded before the replay.

use std::ops::ControlFlow;
use std::path::Path;

use treering_sim::replay::{Preload, ReplayConfig, Target, run};
use treering_sim::report::ReplayReport;
use treering_sim::ssd::builtin;
use treering_traces::import::{Format, ImportOptions, import_file};
use treering_traces::{Op, OpKind};

#[path = "support/mod.rs"]
#[allow(dead_code)]
mod support;

use support::traces::made as trace;

const RECORDS: u64 = 4_000;
const VALUE: u32 = 200;

fn key(number: u64) -> Vec<u8> {
    (number * 0x9E37_79B9 % 1_000_003).to_be_bytes().to_vec()
}

fn operation(kind: OpKind, number: u64) -> Op {
    Op {
        kind,
        key: key(number),
        value_len: if kind == OpKind::Put { VALUE } else { 0 },
        scan_len: if kind == OpKind::Scan { 10 } else { 0 },
        ..Op::default()
    }
}

/// Two gets and a put of another key, repeated: each key is read long before it is put.
fn mostly_read() -> impl Iterator<Item = Op> {
    (0..3 * RECORDS).map(|n| match n % 3 {
        2 => operation(OpKind::Put, (n + RECORDS / 2) % RECORDS),
        _ => operation(OpKind::Get, n * 7 % RECORDS),
    })
}

fn config(trace: &Path, preload: Preload) -> ReplayConfig {
    let (_, mut profile) = builtin("ssd").expect("it is built in");
    profile.pages_per_block = 32;
    let target = Target::ssd(profile, "ssd");
    let mut config = ReplayConfig::new(trace.to_path_buf(), target);
    config.preload = preload;
    config
}

fn replay(trace: &Path, preload: Preload) -> ReplayReport {
    run(&config(trace, preload), &mut |_| {}).expect("it runs")
}

#[test]
fn reads_of_preloaded_records_read_pages() {
    let folder = tempfile::tempdir().unwrap();
    let trace = trace(folder.path(), "reads", 0, mostly_read());
    let (none, auto) = (replay(&trace, Preload::None), replay(&trace, Preload::Auto));
    assert_eq!(none.preload.keys, 0);
    assert_eq!(none.trace.warmup_ops, 0);
    let loaded = &auto.preload;
    // All keys but those whose first operation is a put.
    assert!(
        loaded.keys > RECORDS / 2 && loaded.keys < RECORDS,
        "{loaded:?}"
    );
    assert_eq!(loaded.bytes, loaded.keys * u64::from(8 + VALUE));
    assert_eq!(loaded.evidence.put + loaded.evidence.mean, loaded.keys);
    assert_eq!(auto.trace.warmup_ops, loaded.keys);
    assert_eq!(auto.ops, none.ops, "preloaded records must not be measured");
    let without = loaded.share_of_reads.expect("there are gets");
    assert!(without > 0.3 && without < 0.9, "{without}");
    // The tree is as large as the traced data set was, so less of it fits into the cache.
    let (less, more) = (none.cache.misses, auto.cache.misses);
    assert!(more * 5 > less * 6, "{more} {less}");
}

#[test]
fn records_that_the_trace_loads_are_not_preloaded() {
    let folder = tempfile::tempdir().unwrap();
    let load = (0..RECORDS).map(|n| operation(OpKind::Put, n));
    let gets = (0..RECORDS).map(|n| operation(OpKind::Get, n * 3 % RECORDS));
    let trace = trace(folder.path(), "loaded", RECORDS, load.chain(gets));
    let (none, auto) = (replay(&trace, Preload::None), replay(&trace, Preload::Auto));
    assert_eq!(auto.preload.keys, 0);
    assert_eq!(auto.preload.share_of_reads, Some(0.0));
    let without_preload = |mut report: ReplayReport| {
        report.preload = Default::default();
        report.options.remove("preload");
        serde_json::to_string(&report).unwrap()
    };
    assert_eq!(without_preload(none), without_preload(auto));
}

#[test]
fn all_keys_or_those_of_another_trace_can_be_preloaded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let reads = trace(path, "reads", 0, mostly_read());
    let all = replay(&reads, Preload::All).preload;
    assert_eq!(all.keys, RECORDS);
    // Gets in the other trace of keys that it never puts load nothing.
    let before = (0..RECORDS / 2).map(|n| operation(OpKind::Put, n));
    let before = before.chain((0..RECORDS).map(|n| operation(OpKind::Get, n)));
    let before = trace(path, "before", 0, before);
    let some = replay(&reads, Preload::File(before)).preload;
    assert_eq!((some.keys, some.evidence.mean), (RECORDS / 2, 0));
    assert_eq!(some.share_of_reads, None);
}

#[test]
fn the_seed_decides_the_order_of_preloading() {
    let folder = tempfile::tempdir().unwrap();
    let trace = trace(folder.path(), "reads", 0, mostly_read());
    let json = |seed| {
        let mut config = config(&trace, Preload::Auto);
        config.seed = seed;
        serde_json::to_string(&run(&config, &mut |_| {}).expect("it runs")).unwrap()
    };
    assert_eq!(json(1), json(1));
    assert_ne!(json(1), json(2));
}

#[test]
fn values_of_unknown_length_have_the_mean_length() {
    let folder = tempfile::tempdir().unwrap();
    let gets = || (0..RECORDS).map(|n| operation(OpKind::Get, n));
    let trace_of_gets = trace(folder.path(), "gets", 0, gets());
    let loaded = replay(&trace_of_gets, Preload::Auto).preload;
    assert_eq!(
        (loaded.evidence.mean, loaded.evidence.mean_value_bytes),
        (RECORDS, Some(120))
    );
    let puts = (0..10).map(|n| operation(OpKind::Put, RECORDS + n));
    let mixed = trace(folder.path(), "mixed", 0, puts.chain(gets()));
    let loaded = replay(&mixed, Preload::Auto).preload;
    assert_eq!(
        (loaded.evidence.mean, loaded.evidence.mean_value_bytes),
        (RECORDS, Some(VALUE))
    );
}

#[test]
fn all_blocks_of_a_block_trace_are_preloaded() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("blocks.csv");
    // Each block is written once and never read, but existed before.
    let lines: String = (0..2_000u64)
        .map(|n| format!("{n},0,disk,w,{},4096\n", n * 37 % 2_000 * 4096))
        .collect();
    std::fs::write(&input, lines).unwrap();
    let options = ImportOptions {
        columns: Some("time=1:s,device=3,op=4,offset=5:bytes,size=6:bytes".into()),
        ..ImportOptions::default()
    };
    let output = folder.path().join("blocks.trz");
    let (header, _) = import_file(Format::Csv, &input, &options, &output, &mut |_, _| {
        ControlFlow::Continue(())
    })
    .unwrap();
    assert!(header.addresses);
    let loaded = replay(&output, Preload::Auto).preload;
    assert_eq!((loaded.keys, loaded.evidence.put), (2_000, 2_000));
    assert_eq!(replay(&output, Preload::None).preload.keys, 0);
}

#[test]
fn trees_in_persistent_memory_are_preloaded() {
    use treering_engine::{CclOptions, PmTreeKind};
    let folder = tempfile::tempdir().unwrap();
    let ops: Vec<Op> = (0..9_000u64)
        .map(|n| match n % 3 {
            2 => support::op(OpKind::Put, key(n * 5 % 1_000)),
            _ => support::op(OpKind::Get, key(n % 3_000)),
        })
        .collect();
    let trace = support::trace(&folder, 0, &ops);
    let tree = PmTreeKind::Ccl(CclOptions::default());
    let report = |preload| support::replay(trace.clone(), tree, |config| config.preload = preload);
    let (none, auto) = (report(Preload::None), report(Preload::Auto));
    assert!(
        auto.space.leaves > none.space.leaves,
        "{} {}",
        auto.space.leaves,
        none.space.leaves
    );
    assert!(auto.preload.keys > 1_500, "{:?}", auto.preload);
    assert_eq!(auto.ops, none.ops);
}
