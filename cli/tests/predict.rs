//! `treering predict`, tested through the command line.

mod support;

use std::path::Path;

use serde_json::Value;
use support::{listing, ok, treering, words};

fn trace(folder: &Path) {
    let line = "gen zipf --records 3k --ops 20k --key-size 8 --value-size 120 -o z.trz";
    ok(folder, &words(line));
}

fn json(folder: &Path, line: &str) -> Value {
    let line = format!("{line} --json -");
    serde_json::from_str(&ok(folder, &words(&line))).expect("one document")
}

#[test]
fn the_same_flags_give_the_numbers_that_a_replay_predicts() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    trace(folder);
    for flags in [
        "--cache 20%",
        "--tree bf --store cow --page 8KiB --clients 4 --durability commit",
        "--store cow --table each-flush --cache 10%",
        "--tree bminus --device csd --op 28% --threshold 1KiB --segment 256",
        "--cache 1MiB --warmup 0.5 --limit 15k --gc fifo --precondition fill --seed 3",
        "--log sparse --store shadow --layout hints --log-size 2MiB --capacity 64MiB",
        "--tree ccl --nbatch 4 --dimms 2",
        "--tree none --op 7% --precondition fill",
    ] {
        let replayed = json(folder, &format!("replay z.trz {flags}"));
        let predicted = json(folder, &format!("predict z.trz {flags}"));
        assert_eq!(predicted["schema"], "treering.predict/1");
        assert_eq!(predicted["complete"], true);
        assert_eq!(predicted["passes"], 1);
        let run = &predicted["configurations"][0];
        assert_eq!(run["wa"], replayed["wa"]["predicted"], "{flags}");
        assert_eq!(run["prediction"], replayed["prediction"], "{flags}");
        let total = if flags.contains("ccl") {
            assert_eq!(run["pm"], replayed["pm"]["predicted"], "{flags}");
            &run["pm"]["xbi"]
        } else {
            &run["wa"]["device"]["total"]
        };
        let [low, value, high] = ["low", "value", "high"].map(|at| total[at].as_f64());
        assert!(low < value && value < high, "{total}");
        assert_eq!(total["model"], "played");
        let told = |document: &Value| document["trace"].clone();
        assert_eq!(told(&predicted), told(&replayed), "{flags}");
    }
}

#[test]
fn lists_are_combined_and_the_trace_is_read_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    trace(folder);
    let lists = "--cache 5%,20%,50% --page 4KiB,16KiB --op 7%,28%";
    let line = format!("predict z.trz {lists} --svg c.svg --html c.html --json c.json");
    let text = ok(folder, &words(&line));
    let document = std::fs::read(folder.join("c.json")).expect("a report");
    let document: Value = serde_json::from_slice(&document).expect("JSON");
    let runs = document["configurations"].as_array().expect("a list");
    assert_eq!((runs.len(), &document["passes"]), (12, &1.into()));
    let of = |i: usize| {
        let run = &runs[i];
        let shares = [&run["cache_share"], &run["options"]["op"]].map(Value::as_f64);
        (run["options"]["page"].as_u64(), shares)
    };
    assert_eq!(of(0), (Some(4096), [Some(0.05), Some(0.07)]));
    assert_eq!(of(11), (Some(16384), [Some(0.5), Some(0.28)]));
    let hits = |i: usize| runs[i]["hit_ratio"]["value"].as_f64().expect("a number");
    assert!(hits(0) < hits(1) && hits(1) < hits(2));
    let rows = text
        .lines()
        .filter(|line| line.trim_start().contains(" KiB  "));
    assert_eq!(rows.count(), 12, "{text}");
    for part in [
        "cache",
        "page",
        "over-provisioning",
        "device",
        "hits",
        "Glossary:",
    ] {
        assert!(text.contains(part), "no {part} in {text}");
    }
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("a file");
    let (svg, html) = (read("c.svg"), read("c.html"));
    assert!(svg.starts_with("<svg") && svg.contains("host page"));
    // A band around each curve, and its ends at each point.
    assert!(svg.contains("<polygon") && html.contains("; 90 % interval "));
    for face in [&text, &html] {
        assert!(face.contains(" ±"), "no intervals in {face}");
        assert!(face.contains("±: 90 % interval"), "{face}");
    }
    // Four panels of two charts, each for wide and for narrow pages.
    assert_eq!(html.matches("<svg").count(), 16);
    for list in lists.split(" --") {
        assert!(html.contains(list.trim_start_matches("--")), "no {list}");
    }
}

#[test]
fn bad_flags_end_with_one_sentence_and_status_2_and_leave_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    trace(folder);
    for (flags, expected) in [
        ("--cache 5%,,10%", "--cache"),
        ("--cache ,", "--cache"),
        ("--cache=", "--cache"),
        ("--cache 5%,5.0%", "--cache 5.0%: given twice"),
        ("--page 4KiB,4096", "--page 4096: given twice"),
        ("--page 4KiB,5KB", "--page"),
        ("--page 4KiB,5000", "--page"),
        ("--op 7%,x", "--op"),
        ("--threshold 1%", "--threshold"),
        ("--nbatch 1,2", "--nbatch"),
        ("--tree ccl --cache 5%,10%", "--cache"),
        ("--seed 1,2", "--seed"),
        ("--timing", "--timing: nothing is run by"),
        ("--strict", "--strict: nothing is run by"),
        ("--daily 1GiB", "--daily: nothing is run by"),
        ("--no-predict", "--no-predict: nothing is run by"),
        ("--buffered", "--buffered: nothing is run by"),
        (
            "--device file:store",
            "--device file:store: the drive below",
        ),
        ("--svg c.svg", "--svg: one value has no curve"),
        ("--cache 5%,10% --svg -", "--svg -: expected a file"),
        (
            "--cache 5%,10% --svg c --html c",
            "expected different files",
        ),
        ("--json z.trz", "would overwrite the input"),
        ("--tree ccl --device ssd", "--device"),
    ] {
        let line = format!("predict z.trz {flags}");
        let output = treering(folder, &words(&line));
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{flags}: {stderr}");
        assert!(stderr.contains(expected), "{flags}: {stderr}");
        assert_eq!(stderr.trim_end().lines().count(), 1, "{flags}: {stderr}");
        assert!(output.stdout.is_empty(), "{flags}");
        assert_eq!(listing(folder), ["z.trz"], "{flags}");
    }
    let output = treering(folder, &words("predict none.trz --cache 5%,10%"));
    assert_eq!(output.status.code(), Some(2));
    let cut = std::fs::read(folder.join("z.trz")).expect("a trace");
    std::fs::write(folder.join("cut.trz"), &cut[..cut.len() / 2]).expect("a file");
    let output = treering(folder, &words("predict cut.trz --json c.json"));
    assert_eq!(output.status.code(), Some(2));
    assert!(!folder.join("c.json").exists());
}

#[test]
fn the_help_has_the_flags_of_replay_without_those_of_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let help = ok(folder.path(), &words("predict --help"));
    for flag in [
        "--cache",
        "--clients",
        "--preload",
        "--eadr",
        "--svg",
        "--html",
        "or a list",
    ] {
        assert!(help.contains(flag), "no {flag} in {help}");
    }
    for flag in [
        "--timing",
        "--strict",
        "--daily",
        "--no-predict",
        "--buffered",
    ] {
        assert!(!help.contains(flag), "{flag} in {help}");
    }
    for shell in ["bash", "zsh", "fish"] {
        let script = ok(folder.path(), &["completions", shell]);
        assert!(script.contains("predict"), "{shell}");
    }
}
