//! `treering sweep` runs the tree once for runs that differ only in the drive; their reports are
//! those of replays alone.

mod support;
#[path = "support/sweeps.rs"]
mod sweeps;

use std::collections::BTreeMap;
use std::path::Path;

use support::{ok, treering, words};
use sweeps::{place, rows};

/// Sweeps, and replays each run alone. Returns how many runs each process has had, by what they
/// cost: runs of one process have equal costs.
fn shared(folder: &Path, flags: &str, varied: &[&str]) -> Vec<usize> {
    let line = format!("sweep z.trz {flags} --jobs 1 --out o");
    ok(folder, &words(&line));
    let rows = rows(&folder.join("o"));
    let fixed: Vec<&str> = flags.split(" --").collect();
    for row in &rows {
        assert_eq!(row["state"], "replayed", "{row:?}");
        let mut alone = "replay z.trz".to_owned();
        for flag in &fixed {
            let flag = flag.trim_start_matches("--");
            let (name, value) = flag.split_once(' ').expect("a flag with a value");
            let value = match varied.contains(&name) {
                true => row[name].as_str(),
                false => value,
            };
            alone += &format!(" --{name} {value}");
        }
        ok(folder, &words(&(alone + " --json alone.json")));
        let read = |path: &Path| std::fs::read(path).expect("a report");
        let report = folder.join("o/runs").join(format!("{}.json", row["run"]));
        assert!(
            read(&report) == read(&folder.join("alone.json")),
            "{row:?} is not as alone"
        );
    }
    let costs = std::fs::read_to_string(folder.join("o/costs.csv")).expect("costs");
    let mut processes: BTreeMap<&str, usize> = BTreeMap::new();
    for line in costs.lines().skip(1) {
        let (_, cost) = line.split_once(',').expect("three columns");
        *processes.entry(cost).or_default() += 1;
    }
    let mut counts: Vec<usize> = processes.into_values().collect();
    counts.sort_unstable();
    assert_eq!(counts.iter().sum::<usize>(), rows.len());
    counts
}

#[test]
fn runs_on_several_drives_are_as_alone() {
    let folder = place();
    let flags =
        "--tree bminus --device csd,ssd --op 7%,28% --gc greedy,fifo --capacity 64MiB --limit 6k";
    let processes = shared(folder.path(), flags, &["device", "op", "gc"]);
    // With one process at a time, eight runs are two groups.
    assert_eq!(processes, [4, 4]);
}

#[test]
fn runs_that_the_clock_tells_apart_are_repeated_alone() {
    let folder = place();
    let flags =
        "--device ssd,csd --clients 5 --durability interval:1ms --capacity 64MiB --limit 4k";
    let processes = shared(folder.path(), flags, &["device"]);
    assert_eq!(processes, [1, 1]);
}

#[test]
fn predictions_in_one_process_are_as_alone() {
    let folder = place();
    let folder = folder.path();
    let line = "sweep z.trz --tree btree,bminus --device csd,ssd --op 7%,28% --clients 1,2 \
                --predict-only --out o";
    ok(folder, &words(line));
    let rows = rows(&folder.join("o"));
    assert_eq!(rows.len(), 16);
    for row in &rows {
        assert_eq!(row["state"], "predicted", "{row:?}");
        let flags =
            ["tree", "device", "op", "clients"].map(|name| format!(" --{name} {}", row[name]));
        ok(
            folder,
            &words(&format!(
                "predict z.trz{} --json alone.json",
                flags.concat()
            )),
        );
        let read = |path: &Path| std::fs::read(path).expect("a report");
        let report = folder
            .join("o/predictions")
            .join(format!("{}.json", row["run"]));
        assert!(
            read(&report) == read(&folder.join("alone.json")),
            "{row:?} is not as alone"
        );
    }
}

/// One that `predict` refuses is told as if it had been predicted alone.
#[test]
fn a_refused_prediction_does_not_fail_the_others_of_its_process() {
    let folder = place();
    let folder = folder.path();
    let out = treering(
        folder,
        &words("sweep z.trz --capacity 1MiB,64MiB --op 7%,28% --predict-only --out o"),
    );
    assert_eq!(out.status.code(), Some(2), "{out:?}");
    let rows = rows(&folder.join("o"));
    let states: Vec<&str> = rows.iter().map(|row| row["state"].as_str()).collect();
    assert_eq!(states, ["failed", "failed", "predicted", "predicted"]);
    assert!(rows[0]["reason"].contains("--capacity"), "{:?}", rows[0]);
}
