//! `treering promises`: what is counted, and what is refused.

mod support;

use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};
use support::{copy_specs, treering};

const SPECS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../specs");

fn promises(folder: &Path, args: &[&str]) -> Output {
    treering(folder, &[&["promises", "--specs", SPECS], args].concat())
}

/// The JSON of a table.
fn table(folder: &Path, args: &[&str]) -> Value {
    let output = promises(folder, &[args, &["--json", "-"]].concat());
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// The row of a promise whose name begins so.
fn row<'a>(table: &'a Value, tree: &str, begins: &str) -> &'a Value {
    let trees = table["trees"].as_array().expect("trees");
    let tree = trees.iter().find(|found| found["tree"] == tree);
    let rows = tree.expect("the tree")["rows"].as_array().expect("rows");
    let named = |row: &&Value| row["promise"].as_str().unwrap_or("").starts_with(begins);
    rows.iter().find(named).expect("the promise")
}

fn write(folder: &Path, name: &str, document: &Value) {
    std::fs::write(folder.join(name), document.to_string()).expect("a file");
}

#[test]
fn what_has_no_evidence_stays_visible() {
    let folder = tempfile::tempdir().expect("a folder");
    let told = table(folder.path(), &[]);
    assert_eq!(told["schema"], "treering.promises/1");
    let cut = row(&told, "btree", "acknowledged writes survive a power cut");
    assert!(cut["states"].as_u64() > Some(100_000), "{cut}");
    assert!(cut["planted"].as_u64() > Some(5), "{cut}");
    assert_eq!(cut["attacked"], Value::Null);
    // No spec speaks of this tree.
    let bare = row(&told, "pmtree", "acknowledged writes survive a power cut");
    assert_eq!(
        (&bare["specified"], &bare["models"]),
        (&json!([]), &json!(0))
    );
    let output = promises(folder.path(), &["--tree", "pmtree"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("| **none** | **none** |"), "{text}");
    assert!(!text.contains("## btree"), "{text}");
}

#[test]
fn reports_are_counted_for_the_tree_that_they_are_about() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |engine: &str, mode: &str, verdict: &str| {
        json!({"engine": engine, "mode": mode, "verdict": verdict, "crash_states": 7,
            "reach": [{"area": "step", "what": "action Crash", "n": 3},
                {"area": "fault", "what": "process killed", "n": 5}]})
    };
    let bug = |name: &str, killed: bool| {
        json!({"name": name, "engine": "btree:cow", "expected_check": "crash", "killed": killed,
            "benign": false})
    };
    write(
        folder.path(),
        "oracle.json",
        &json!({"schema": "treering.oracle/1", "complete": true,
            "runs": [run("btree:cow", "crash", "holds"), run("btree", "crash", "violated"),
                run("bminus-small", "crash", "holds"), run("bf:bminus", "crash", "holds"),
                run("exec:btree+shadow", "crash", "holds"), run("btree:shadow", "events", "holds")],
            "mutations": [bug("a", true), bug("b", false)]}),
    );
    let of_spec = |spec: &str| json!({"spec": spec, "fate": "killed", "by": "KeptInv"});
    write(
        folder.path(),
        "mutants.json",
        &json!({"schema": "treering.mutants-of-specs/1", "complete": true,
            "mutants": [of_spec("WalRecovery"), of_spec("MiniPage")]}),
    );
    let reports = ["--report", "oracle.json", "--report", "mutants.json"];
    let told = table(folder.path(), &reports);
    let cut = row(&told, "btree", "acknowledged writes survive a power cut");
    // What was violated promises nothing.
    assert_eq!(cut["attacked"], 14);
    assert_eq!(cut["heard"], 3);
    assert_eq!(cut["killed"], 1);
    assert_eq!(cut["bugs"], json!([1, 2]));
    let killed = row(&told, "btree", "acknowledged writes survive the end");
    assert_eq!(killed["attacked"], 10);
    // The longest name counts: bf over shadowed pages with a modification log is a B⁻-tree's store.
    let cut = row(&told, "bminus", "acknowledged writes survive a power cut");
    assert_eq!(cut["attacked"], 14);
    let cut = row(&told, "bf", "acknowledged writes survive a power cut");
    assert_eq!(
        (&cut["attacked"], &cut["bugs"]),
        (&json!(0), &json!([0, 0]))
    );
}

#[test]
fn what_is_wrong_is_told_in_one_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    let partial = json!({"schema": "treering.oracle/1", "complete": false, "runs": []});
    write(folder.path(), "partial.json", &partial);
    let other = json!({"schema": "treering.replay/9", "complete": true});
    write(folder.path(), "other.json", &other);
    std::fs::write(folder.path().join("no.json"), "{").expect("a file");
    for (args, expected) in [
        (
            ["--report", "partial.json"],
            "partial.json: expected a complete report",
        ),
        (
            ["--report", "other.json"],
            "other.json: expected a report with the schema",
        ),
        (["--report", "no.json"], "no.json: line 1: expected JSON"),
        (["--report", "gone.json"], "gone.json: "),
        (["--tree", "oak"], "--tree oak: expected one of btree, bf"),
    ] {
        let output = promises(folder.path(), &args);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(
            said.contains(expected) && said.lines().count() == 1,
            "{said}"
        );
    }
}

/// The operators in the document are those of `promises.toml`.
#[test]
fn the_document_has_every_row() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = promises(folder.path(), &[]);
    let fresh = String::from_utf8(output.stdout).expect("text");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/PROMISES.md");
    let kept = std::fs::read_to_string(path).expect("docs/PROMISES.md");
    let rows = |text: &str| -> Vec<String> {
        let head = |line: &str| line.split(" | ").take(2).collect::<Vec<_>>().join(" | ");
        let tables = text.split("\n## Bounds").next().unwrap_or_default();
        tables
            .lines()
            .filter(|line| line.starts_with("| "))
            .map(head)
            .collect()
    };
    assert_eq!(rows(&kept), rows(&fresh), "run .ci/promises");
}

#[test]
fn an_operator_that_no_model_checks_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let specs = folder.path().join("specs");
    copy_specs(&specs);
    let file = specs.join("promises.toml");
    let text = std::fs::read_to_string(&file).expect("the file");
    let refused = |text: &str, expected: &str| {
        std::fs::write(&file, text).expect("a file");
        let output = treering(folder.path(), &["promises", "--specs", "specs"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(
            said.contains(expected) && said.lines().count() == 1,
            "{said}"
        );
    };
    refused(
        &text.replace("WalRecovery.KeptInv", "WalRecovery.KeptInv2"),
        "found WalRecovery.KeptInv2",
    );
    refused(
        &text.replace("\"LeafBuffering\"", "\"LeafBufering\""),
        "found LeafBufering",
    );
    refused(&text.replace("checks =", "check ="), "promises.toml: line ");
    refused("", "promises.toml: line 1: missing field");
}
