//! `treering sweep`: its table, that a killed sweep goes on to the same bytes, and what becomes of
//! runs that fail.

mod support;
#[path = "support/sweeps.rs"]
mod sweeps;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use support::{listing, ok, treering, words};
use sweeps::{place, read, rows, stderr, tables, values};

#[test]
fn every_combination_of_flags_is_a_row_with_the_figures_of_its_replay() {
    let folder = place();
    let folder = folder.path();
    let line = "sweep z.trz --tree bf,btree+shadow(T=1KiB,Ds=128) --cache 5%,20% --timing --out o";
    let said = ok(folder, &words(line));
    assert!(said.contains("4 runs, 0 failed; 4 new reports"), "{said}");
    let rows = rows(&folder.join("o"));
    let shadow = "btree+shadow(T=1KiB,Ds=128)";
    let expected: Vec<String> = ["bf", shadow]
        .iter()
        .flat_map(|tree| ["5%", "20%"].map(|cache| format!("z.trz {tree} {cache} replayed")))
        .collect();
    assert_eq!(values(&rows, "trace tree cache state"), expected);
    let alone = format!("replay z.trz --tree {shadow} --cache 20% --timing --json -");
    let alone: Value = serde_json::from_str(&ok(folder, &words(&alone))).expect("JSON");
    for (column, path) in [
        ("wa.device.total", "/wa/device/total"),
        ("wa.predicted.host.log.low", "/wa/predicted/host/log/low"),
        ("latency_ns.get.p99", "/latency_ns/get/p99"),
        ("space.leaves", "/space/leaves"),
    ] {
        let value = alone.pointer(path).expect(path).to_string();
        assert_eq!(rows[3][column], value, "{column}");
    }
    let report: Value = serde_json::from_slice(&read(
        &folder.join("o/runs"),
        &format!("{}.json", rows[3]["run"]),
    ))
    .expect("JSON");
    assert_eq!(report, alone, "the report of a run is that of its replay");
}

#[test]
#[cfg(feature = "parquet")]
fn both_tables_have_the_same_values() {
    use parquet::file::reader::{FileReader as _, SerializedFileReader};
    let folder = place();
    let folder = folder.path();
    let line = "sweep z.trz --tree btree,ccl --store in-place --limit 1k --out o";
    assert_eq!(treering(folder, &words(line)).status.code(), Some(2));
    let rows = rows(&folder.join("o"));
    let file = std::fs::File::open(folder.join("o/results.parquet")).expect("a file");
    let reader = SerializedFileReader::new(file).expect("a Parquet file");
    let mut count = 0;
    for (row, text) in reader.get_row_iter(None).expect("rows").zip(&rows) {
        count += 1;
        for (name, field) in row.expect("a row").get_column_iter() {
            let value = match field {
                parquet::record::Field::Null => String::new(),
                parquet::record::Field::Str(text) => text.clone(),
                parquet::record::Field::Long(n) => n.to_string(),
                parquet::record::Field::Double(x) => {
                    let csv: f64 = text[name].parse().expect(name);
                    assert_eq!(*x, csv, "{name}");
                    continue;
                }
                other => panic!("{name}: {other:?}"),
            };
            assert_eq!(value, text[name], "{name}");
        }
    }
    assert_eq!((count, rows.len()), (2, 2));
}

/// The study of the tests that kill: enough runs that some are always left.
const KILLED: &str = "sweep z.trz --tree btree,bf --cache 5%,10%,20% --page 4KiB,8KiB \
                      --device ssd,csd --jobs 2 --out";

/// A trace that takes a while.
const BIG: &str = "gen zipf --records 20k --ops 400k --writes 0.5 -o big.trz";

fn sweep_of(line: &str, out: &str) -> String {
    format!("{line} {out}")
}

#[test]
fn a_sweep_that_is_killed_goes_on_to_the_same_bytes() {
    let folder = place();
    let folder = folder.path();
    ok(folder, &words(&sweep_of(KILLED, "whole")));
    let whole = tables(&folder.join("whole"));
    let all = listing(&folder.join("whole/runs")).len();
    let mut lefts = Vec::new();
    for round in 0..4_u64 {
        let out = format!("killed-{round}");
        let mut killed = 0;
        // Killed again and again, later and later.
        for wait in [30, 150, 400].map(|ms| ms * (round + 1)) {
            let mut child = Command::new(env!("CARGO_BIN_EXE_treering"))
                .args(words(&sweep_of(KILLED, &out)))
                .current_dir(folder)
                .stdout(Stdio::null())
                .spawn()
                .expect("the command starts");
            std::thread::sleep(Duration::from_millis(wait));
            child.kill().expect("kill -9");
            let status = child.wait().expect("an end");
            killed += u32::from(status.code().is_none());
        }
        let runs = folder.join(&out).join("runs");
        let left = match runs.exists() {
            true => listing(&runs)
                .iter()
                .filter(|name| !name.starts_with('.'))
                .count(),
            false => 0,
        };
        lefts.push((killed, left));
        ok(folder, &words(&sweep_of(KILLED, &out)));
        assert!(
            tables(&folder.join(&out)) == whole,
            "round {round}: other tables"
        );
        assert_eq!(listing(&runs), listing(&folder.join("whole/runs")));
        let known = listing(&folder.join("whole"));
        assert_eq!(listing(&folder.join(&out)), known, "nothing is left behind");
    }
    eprintln!("killed, and runs that were done then: {lefts:?} of {all}");
    assert!(
        lefts
            .iter()
            .any(|(killed, left)| *killed > 0 && *left < all)
    );
}

/// The processes whose command lines name this folder.
fn processes_of(folder: &Path) -> usize {
    let name = folder.canonicalize().expect("a folder");
    let name = name.to_str().expect("text");
    let entries = std::fs::read_dir("/proc").expect("/proc").flatten();
    let command = |entry: std::fs::DirEntry| std::fs::read(entry.path().join("cmdline")).ok();
    let commands = entries.filter_map(command);
    let names = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).contains(name);
    commands.filter(names).count()
}

#[test]
fn the_runs_of_a_killed_sweep_end_with_it() {
    let folder = place();
    let folder = folder.path();
    ok(folder, &words(BIG));
    let mut child = Command::new(env!("CARGO_BIN_EXE_treering"))
        .args(words("sweep big.trz --cache 1%,5%,20% --out o --jobs 2"))
        .current_dir(folder)
        .stdout(Stdio::null())
        .spawn()
        .expect("the command starts");
    // Runs get the whole path of the folder; the sweep itself does not.
    let began = Instant::now();
    while processes_of(folder) < 2 && began.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(processes_of(folder), 2, "two runs side by side");
    child.kill().expect("kill -9");
    child.wait().expect("an end");
    let killed = Instant::now();
    while processes_of(folder) > 0 && killed.elapsed() < Duration::from_secs(5) {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(processes_of(folder), 0, "no run goes on by itself");
}

#[test]
fn a_sweep_that_is_stopped_ends_its_runs_and_says_how_far_it_came() {
    let folder = place();
    let folder = folder.path();
    ok(folder, &words(BIG));
    let child = Command::new(env!("CARGO_BIN_EXE_treering"))
        .args(words(
            "sweep big.trz --cache 1%,5%,20% --out o --jobs 2 --json o.json",
        ))
        .current_dir(folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let pid = child.id().to_string();
    // Until its first processes run.
    while !folder.join("o/.lock").exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(200));
    let killed = Command::new("kill").args(["-s", "TERM", &pid]).status();
    assert!(killed.expect("kill starts").success());
    let output = child.wait_with_output().expect("an end");
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(143), "{said}");
    assert!(
        said.contains("of 3 runs are done; the same command goes on"),
        "{said}"
    );
    let report: Value = serde_json::from_slice(&read(folder, "o.json")).expect("JSON");
    assert_eq!(report["complete"], false);
}

#[test]
fn a_further_value_runs_only_what_is_new() {
    let folder = place();
    let folder = folder.path();
    let line = "sweep z.trz --tree btree,bf --cache";
    ok(folder, &words(&format!("{line} 5%,20% --out o")));
    let before = listing(&folder.join("o/runs"));
    let times = || -> Vec<_> {
        let time = |name: &String| {
            let about = folder.join("o/runs").join(name).metadata().expect("a file");
            about.modified().expect("a time")
        };
        before.iter().map(time).collect()
    };
    let old = times();
    let said = ok(folder, &words(&format!("{line} 5%,9%,20% --out o")));
    assert!(said.contains("6 runs, 0 failed; 2 new reports"), "{said}");
    assert_eq!(times(), old, "old runs are not touched");
    let found = rows(&folder.join("o"));
    assert_eq!(
        values(&found, "tree cache"),
        [
            "btree 5%",
            "btree 9%",
            "btree 20%",
            "bf 5%",
            "bf 9%",
            "bf 20%"
        ]
    );
    // A sweep of its own has the same table.
    ok(
        folder,
        &words(&format!("{line} 5%,9%,20% --out new --jobs 1 --memory 1")),
    );
    assert!(tables(&folder.join("o")) == tables(&folder.join("new")));
    // The same trace under another name has the same results; another trace has not.
    std::fs::copy(folder.join("z.trz"), folder.join("y.trz")).expect("copied");
    let said = ok(folder, &words("sweep y.trz --cache 5%,9% --out o"));
    assert!(said.contains("0 new reports"), "{said}");
    ok(folder, &words("gen zipf --records 500 --ops 3001 -o y.trz"));
    let said = ok(folder, &words("sweep y.trz --cache 5%,9% --out o"));
    assert!(said.contains("2 new reports"), "{said}");
}

#[test]
fn failed_runs_are_listed_and_the_others_are_run() {
    let folder = place();
    let folder = folder.path();
    // `ccl` needs persistent memory, and a drive of a mebibyte cannot hold the store.
    let line = "sweep z.trz --tree ccl,btree --device ssd --capacity 1MiB,64MiB --out o";
    let output = treering(folder, &words(line));
    let said = stderr(&output);
    let found = rows(&folder.join("o"));
    assert_eq!(
        values(&found, "tree capacity state"),
        [
            "ccl 1MiB failed",
            "ccl 64MiB failed",
            "btree 1MiB failed",
            "btree 64MiB replayed"
        ]
    );
    assert!(
        found[0]["reason"].contains("persistent memory"),
        "{found:?}"
    );
    assert!(!found[2]["reason"].is_empty());
    assert!(said.contains("3 of 4 runs failed"), "{said}");
    assert!(matches!(output.status.code(), Some(2 | 3)), "{said}");
    let before = tables(&folder.join("o"));
    assert_eq!(
        treering(folder, &words(line)).status.code(),
        output.status.code()
    );
    assert!(tables(&folder.join("o")) == before);
}

#[test]
fn what_strict_did_not_reach_is_listed_with_its_figures() {
    let folder = place();
    let folder = folder.path();
    let line = "sweep z.trz --cache 5%,20% --limit 1k --strict --out o";
    let output = treering(folder, &words(line));
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    for row in rows(&folder.join("o")) {
        assert_eq!(row["state"], "not reached");
        assert!(row["reason"].contains("--strict"), "{row:?}");
        assert!(!row["wa.host.total"].is_empty());
    }
}

#[test]
fn predictions_are_those_of_replays_and_the_best_are_replayed() {
    let folder = place();
    let folder = folder.path();
    let line = "sweep z.trz --store in-place,cow,shadow --cache 5%,20% --out";
    ok(folder, &words(&format!("{line} all")));
    ok(folder, &words(&format!("{line} predicted --predict-only")));
    let (all, predicted) = (rows(&folder.join("all")), rows(&folder.join("predicted")));
    let column = "wa.predicted.device.total.value";
    for (replayed, predicted) in all.iter().zip(&predicted) {
        assert_eq!(predicted["state"], "predicted");
        assert_eq!(predicted["wa.device.total"], "");
        for name in [
            column,
            "wa.predicted.host.page.high",
            "user_bytes",
            "prediction.hit_ratio",
        ] {
            assert!(!predicted[name].is_empty(), "{name}");
            assert_eq!(replayed[name], predicted[name], "{name}");
        }
    }
    ok(
        folder,
        &words(&format!("{line} predicted --predict-first 2")),
    );
    let found = rows(&folder.join("predicted"));
    let wa = |row: &BTreeMap<String, String>| row[column].parse::<f64>().expect("a number");
    let (best, others): (Vec<_>, Vec<_>) = found.iter().partition(|row| row["state"] == "replayed");
    assert_eq!((best.len(), others.len()), (2, 4));
    assert!(
        best.iter()
            .all(|row| others.iter().all(|other| wa(row) <= wa(other)))
    );
    assert_eq!(listing(&folder.join("predicted/runs")).len(), 2);
}

#[test]
fn two_sweeps_do_not_work_in_one_folder() {
    let folder = place();
    let folder = folder.path();
    std::fs::create_dir(folder.join("o")).expect("a folder");
    let lock = std::fs::File::create(folder.join("o/.lock")).expect("a file");
    lock.lock().expect("a lock");
    let output = treering(folder, &words("sweep z.trz --out o"));
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("another sweep works there"));
}

#[test]
fn the_report_has_the_rows_of_the_table() {
    let folder = place();
    let folder = folder.path();
    let line = "sweep z.trz --cache 5%,20% --limit 1k --out o --json -";
    let report: Value = serde_json::from_str(&ok(folder, &words(line))).expect("JSON");
    assert_eq!(report["schema"], "treering.sweep/1");
    assert_eq!(report["complete"], true);
    assert_eq!(report["fixed"]["limit"], "1k");
    let columns = serde_json::json!(["trace", "tree", "cache"]);
    assert_eq!(report["parameters"], columns);
    let found = rows(&folder.join("o"));
    let reported = report["rows"].as_array().expect("rows");
    assert_eq!(reported.len(), 2);
    for (row, text) in reported.iter().zip(&found) {
        assert_eq!(row["wa.device.total"].to_string(), text["wa.device.total"]);
        assert_eq!(row["cache"].as_str(), Some(text["cache"].as_str()));
    }
}
