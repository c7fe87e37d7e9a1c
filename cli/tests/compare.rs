//! `treering compare`: what differs between reports, and thresholds in both directions.

mod support;

use std::path::Path;

use serde_json::Value;
use support::{ok, treering, words};

/// A folder with the reports `small.json`, `large.json` and `again.json`: two sizes of the cache,
/// and the first once more.
fn place() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let trace = "gen zipf --records 2000 --ops 10k --writes 0.5 -o z.trz";
    ok(path, &words(trace));
    for (name, cache) in [("small", "5%"), ("large", "50%"), ("again", "5%")] {
        let line = format!("replay z.trz --cache {cache} --json {name}.json");
        ok(path, &words(&line));
    }
    folder
}

/// Exit status and stderr.
fn compare(folder: &Path, files: &str, fail_if: &str) -> (Option<i32>, String) {
    let mut line = words("compare");
    line.extend(words(files));
    line.extend(["--fail-if", fail_if]);
    let output = treering(folder, &line);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), said)
}

#[test]
fn the_same_replay_does_not_differ() {
    let folder = place();
    let said = ok(folder.path(), &words("compare small.json again.json"));
    assert!(said.contains("Input:\n  the same\n"), "{said}");
    assert!(said.contains("Outcome:\n  the same\n"), "{said}");
}

#[test]
fn inputs_and_outcomes_are_told_apart_and_given_in_numbers() {
    let folder = place();
    let folder = folder.path();
    let line = "compare small.json large.json again.json --json -";
    let found: Value = serde_json::from_str(&ok(folder, &words(line))).expect("JSON");
    assert_eq!(found["schema"], "treering.compare/1");
    let inputs = found["inputs"].as_array().expect("inputs");
    let paths: Vec<&str> = inputs
        .iter()
        .filter_map(|found| found["path"].as_str())
        .collect();
    assert_eq!(paths, ["options.cache"]);
    let outcomes = found["outcomes"].as_array().expect("outcomes");
    let hits = outcomes
        .iter()
        .find(|found| found["path"] == "cache.hit_ratio")
        .expect("larger caches hit more often");
    let number = |name: &str| -> f64 {
        let report = std::fs::read(folder.join(name)).expect("a file");
        let report: Value = serde_json::from_slice(&report).expect("JSON");
        report["cache"]["hit_ratio"].as_f64().expect("a number")
    };
    let (small, large) = (number("small.json"), number("large.json"));
    assert_eq!(hits["values"], serde_json::json!([small, large, small]));
    let growth = hits["growth"][0].as_f64().expect("a number");
    assert!((growth - (large - small) / small).abs() < 1e-12);
    let text = ok(folder, &words("compare small.json large.json"));
    assert!(text.contains("options.cache"), "{text}");
    assert!(text.contains("cache.hit_ratio"), "{text}");
    assert!(text.contains("In large.json, the device writes"), "{text}");
    assert!(text.contains("% higher"), "{text}");
    assert!(text.contains("--all lists them"), "{text}");
    let all = ok(folder, &words("compare small.json large.json --all"));
    assert!(all.lines().count() > text.lines().count());
}

#[test]
fn thresholds_hold_in_both_directions_relative_and_absolute() {
    let folder = place();
    let folder = folder.path();
    for (files, expression, expected) in [
        ("small.json large.json", "cache.hit_ratio > 1%", 1),
        ("small.json large.json", "cache.hit_ratio > 0.01", 1),
        ("small.json large.json", "cache.hit_ratio > 900%", 0),
        ("small.json large.json", "cache.hit_ratio < -1%", 0),
        ("large.json small.json", "cache.hit_ratio < -1%", 1),
        ("large.json small.json", "cache.hit_ratio > 1%", 0),
        ("small.json again.json", "wa.device.total > 0%", 0),
        ("small.json again.json", "wa.device.total >= 0", 1),
        ("small.json again.json large.json", "cache.misses <= -1", 1),
    ] {
        let (status, said) = compare(folder, files, expression);
        assert_eq!(status, Some(expected), "{files} {expression}\n{said}");
        if expected == 1 {
            assert!(
                said.starts_with(&format!("treering: --fail-if {expression}: ")),
                "{said}"
            );
        }
    }
    let line = ["compare", "small.json", "large.json", "--json", "c.json"];
    let checks = [
        "--fail-if",
        "cache.misses > 1%",
        "--fail-if",
        "cache.hits > 1%",
    ];
    let output = treering(folder, &[&line[..], &checks[..]].concat());
    assert_eq!(output.status.code(), Some(1));
    let report = std::fs::read(folder.join("c.json")).expect("written all the same");
    let report: Value = serde_json::from_slice(&report).expect("JSON");
    assert_eq!(report["verdict"], "exceeded");
    let holds = |at: usize| report["checks"][at]["holds"].as_bool();
    assert_eq!((holds(0), holds(1)), (Some(false), Some(true)));
}

#[test]
fn what_cannot_be_compared_is_refused_in_one_sentence() {
    let folder = place();
    let folder = folder.path();
    std::fs::write(
        folder.join("other.json"),
        "{\"schema\": \"treering.layout/1\"}",
    )
    .expect("room");
    std::fs::write(folder.join("bad.json"), "{\n\"schema\": ").expect("room");
    let two = "small.json large.json";
    for (files, expression, expected) in [
        (two, "wa.device.total", "expected PATH"),
        (two, "wa.device.total > much", "expected PATH"),
        (
            two,
            "wa.no.such > 5%",
            "expected a number at wa.no.such in small.json",
        ),
        (two, "tree > 5%", "expected a number at tree in small.json"),
        ("small.json", "wa.device.total > 5%", "expected two reports"),
        (
            "small.json other.json",
            "x > 1",
            "other.json: expected a report",
        ),
        (
            "small.json bad.json",
            "x > 1",
            "bad.json:2: expected a report",
        ),
        ("small.json no.json", "x > 1", "no.json"),
    ] {
        let (status, said) = compare(folder, files, expression);
        assert_eq!(status, Some(2), "{files} {expression}\n{said}");
        assert!(said.contains(expected), "{files} {expression}\n{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}
