//! `treering check --to-oracle FILE`, and `treering oracle --replay FILE` on what it writes.

mod support;

use std::path::Path;
use std::process::Output;

use support::treering;

fn run(folder: &Path, line: &str) -> Output {
    let words: Vec<&str> = line.split_whitespace().collect();
    treering(folder, &words)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs a command that must end with this status, and returns what it printed.
fn ends(folder: &Path, line: &str, status: i32) -> String {
    let output = run(folder, line);
    let said = text(&output.stdout) + &text(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{line}: {said}");
    said
}

/// The status of a replay, which shows the loss in a build with seeded bugs.
const WITH_THE_BUG: i32 = if cfg!(feature = "mutations") { 1 } else { 0 };

#[test]
fn a_counterexample_becomes_a_test_that_the_engine_does_not_follow() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let write = "check WalRecovery --only page-before-log --to-oracle wal.case";
    let said = ends(folder, write, 0);
    assert!(
        said.contains("  4. WriteBack(k1)\n     WalRuleInv is violated"),
        "{said}"
    );
    assert!(
        said.contains("`treering oracle --replay wal.case` runs it"),
        "{said}"
    );
    let file = std::fs::read_to_string(folder.join("wal.case")).unwrap();
    let case: serde_json::Value = serde_json::from_str(&file).unwrap();
    assert_eq!(case["schema"], "treering.counterexample/1");
    assert_eq!(case["spec"], "WalRecovery");
    assert_eq!(case["engine_bug"], "page-before-log");
    assert_eq!(case["steps"][3]["action"], "WriteBack");
    assert_eq!(case["steps"][3]["with"]["key"], "k1");

    let said = ends(
        folder,
        "oracle --replay wal.case --json told.json",
        WITH_THE_BUG,
    );
    let refused = "The engine does not follow at step 4, WriteBack(k1): \
                   it refuses to write the page of k1 before its log record";
    assert!(said.contains(refused), "{said}");
    let told = std::fs::read_to_string(folder.join("told.json")).unwrap();
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["schema"], "treering.oracle/1");
    let first = &told["runs"][0];
    assert_eq!(
        (&first["verdict"], &first["ending"], &first["step"]),
        (&"holds".into(), &"refused".into(), &4.into())
    );
    if cfg!(feature = "mutations") {
        assert!(
            said.contains("with the seeded bug page-before-log takes all 9 steps"),
            "{said}"
        );
        assert_eq!(told["runs"][1]["ending"], "lost");
    } else {
        assert!(
            said.contains("This build does not have the seeded bug"),
            "{said}"
        );
    }
}

#[test]
fn what_cannot_become_a_test_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (line, status, why) in [
        (
            "check MiniPage --only published_cold-mirror --to-oracle x",
            2,
            "cannot be driven step by step along MiniPage",
        ),
        (
            "check WalRecovery --only smoke --to-oracle x",
            4,
            "no violation",
        ),
        (
            "check WalRecovery --only sleeps-through --to-oracle x",
            4,
            "AnsweredProp",
        ),
        (
            "check WalRecovery --only nothing --to-oracle x",
            2,
            "no model of this name",
        ),
        ("check --only smoke --to-oracle x", 2, "name the spec"),
        ("check WalRecovery --to-oracle x", 2, "--only"),
    ] {
        let said = ends(folder, line, status);
        assert!(said.contains(why), "{line}: {said}");
        assert_eq!(said.lines().count(), 1, "{line}: {said}");
        assert!(!folder.join("x").exists(), "{line}");
    }
}

#[test]
fn a_finding_of_events_is_written_as_a_behaviour() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let said = ends(folder, "oracle --mode events --tla nowhere", 2);
    assert!(said.contains("--tla nowhere: expected a folder"), "{said}");
    let line = "oracle --engine btree:in-place --mode events --budget 2s --tla .";
    ends(folder, line, 0);
    assert!(!folder.join("Finding.tla").exists());
    if !cfg!(feature = "mutations") {
        return;
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_treering"));
    command.args(words).current_dir(folder);
    command.env("TREERING_MUTATION", "checkpoint-skips-pages");
    let output = command.output().unwrap();
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("Finding.tla: "), "{said}");
    let module = std::fs::read_to_string(folder.join("Finding.tla")).unwrap();
    assert!(module.contains("Claim ==\n    FlushPages\n"), "{module}");
    assert!(folder.join("Finding.cfg").is_file());
}

#[test]
fn a_finding_of_any_judge_is_written_as_a_behaviour() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let line = "check RedoLog --against-engine --tla nowhere";
    let said = ends(folder, line, 2);
    assert!(said.contains("--tla nowhere: expected a folder"), "{said}");
    let said = ends(folder, "check WalRecovery --against-engine --tla .", 2);
    assert!(said.contains("WalRecovery: the engine is driven"), "{said}");
    ends(folder, "check RedoLog --tla .", 2);
    if !cfg!(feature = "mutations") {
        return;
    }
    for (bug, line, spec, claim) in [
        (
            "trims-at-once",
            "oracle --engine btree:shadow --mode events --budget 5s --tla .",
            "PageShadowing",
            "Trim(p",
        ),
        (
            "log-acks-before-flush",
            "check RedoLog --against-engine --budget 5s --tla .",
            "RedoLog",
            "Acknowledge(c",
        ),
    ] {
        let words: Vec<&str> = line.split_whitespace().collect();
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_treering"));
        command.args(words).current_dir(folder);
        command.env("TREERING_MUTATION", bug);
        let output = command.output().unwrap();
        let said = text(&output.stdout);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("Finding.tla: "), "{said}");
        let module = std::fs::read_to_string(folder.join("Finding.tla")).unwrap();
        assert!(
            module.contains(&format!("EXTENDS {spec}, TLC\n")),
            "{module}"
        );
        let claimed = module.split_once("NextClaim ==\n").unwrap().1;
        assert!(claimed.trim_start().starts_with(claim), "{module}");
        let config = std::fs::read_to_string(folder.join("Finding.cfg")).unwrap();
        assert!(config.contains("NEXT FollowOrRefuse"), "{config}");
    }
}

#[test]
fn a_damaged_file_gives_status_2_and_its_step() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    ends(
        folder,
        "check WalRecovery --only page-before-log --to-oracle good",
        0,
    );
    let good = std::fs::read_to_string(folder.join("good")).unwrap();
    for (from, to, why) in [
        (
            "\"AppendLog\"",
            "\"AppendLogs\"",
            "step 2: the spec has no step AppendLogs(c1) here",
        ),
        (
            "counterexample/1",
            "counterexample/9",
            "found treering.counterexample/9",
        ),
        ("\"steps\": [", "\"steps\": [[", "line "),
    ] {
        std::fs::write(folder.join("bad"), good.replace(from, to)).unwrap();
        let said = ends(folder, "oracle --replay bad", 2);
        assert!(said.contains("bad: ") && said.contains(why), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}
