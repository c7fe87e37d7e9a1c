//! `treering oracle`, tested through the command line.

mod support;

use std::path::Path;
use std::process::Output;

use support::treering;

fn oracle(folder: &Path, args: &[&str]) -> Output {
    treering(folder, &[&["oracle"], args].concat())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Checks that the command exits with status 2 and one sentence that contains `expected`.
fn refused(folder: &Path, args: &[&str], expected: &str) {
    let output = oracle(folder, args);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
    assert!(said.contains(expected), "{args:?}: {said}");
    assert_eq!(said.lines().count(), 1, "{args:?}: {said}");
}

/// The run passes, and its result does not depend on the number of threads.
fn passes_and_the_same_seed_gives_the_same_report(engine: &[&str], runs: &str) {
    let folder = tempfile::tempdir().unwrap();
    let report = |file: &str, threads: &str| {
        // Programs large enough for evictions and for a log that wraps around.
        let what = ["--mode", "crash", "--seed", "1", "--runs", runs];
        let how = ["--threads", threads, "--json", file];
        let output = oracle(folder.path(), &[engine, what.as_slice(), &how].concat());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{said}");
        let text = std::fs::read_to_string(folder.path().join(file)).unwrap();
        let mut document: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(document["schema"], "treering.oracle/1");
        for run in document["runs"].as_array_mut().unwrap() {
            assert_eq!(run["verdict"], "holds");
            assert!(run["crash_states"].as_u64().unwrap() > 100);
            run["seconds"] = 0.into();
        }
        document
    };
    let once = report("one.json", "1");
    assert_eq!(once, report("two.json", "2"));
}

// One engine for each kind of device. CI runs the others.

#[test]
fn an_engine_on_blocks_passes_deterministically() {
    passes_and_the_same_seed_gives_the_same_report(&["--engine", "btree:cow"], "3");
}

#[test]
fn an_engine_in_persistent_memory_passes_deterministically() {
    passes_and_the_same_seed_gives_the_same_report(&["--tree", "pmtree"], "2");
}

#[test]
fn a_program_can_be_replayed_and_unreached_goals_give_status_4() {
    let folder = tempfile::tempdir().unwrap();
    let program = "{\"schema\":\"treering.program/1\",\"engine\":\"btree:cow\"}\nput \"k\" 100\nsync\ncrash keep-oldest\nget \"k\"\n";
    std::fs::write(folder.path().join("good.program"), program).unwrap();
    let output = oracle(folder.path(), &["--replay", "good.program"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let few = [
        "--engine",
        "btree:cow",
        "--mode",
        "differential",
        "--runs",
        "1",
        "--ops",
        "3",
    ];
    let output = oracle(folder.path(), &few);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("never reached"), "{said}");
}

#[test]
fn with_a_budget_unreached_goals_are_named_and_fail_only_with_strict() {
    let folder = tempfile::tempdir().unwrap();
    // A program of three operations never splits a leaf, however long the budget.
    let small =
        "--engine btree:cow --mode differential --runs 1 --ops 3 --budget 60s --json met.json";
    let small: Vec<&str> = small.split(' ').collect();
    let output = oracle(folder.path(), &small);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(
        said.contains("not reached in this budget: splits"),
        "{said}"
    );
    assert!(said.contains("1 jobs did not reach everything"), "{said}");
    let json = std::fs::read_to_string(folder.path().join("met.json")).unwrap();
    let document: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(document["runs"][0]["verdict"], "holds");
    assert_eq!(document["runs"][0]["never_reached"][0], "splits");
    assert_eq!(document["budget"]["seconds"], 60.0);
    let output = oracle(folder.path(), &[small.as_slice(), &["--strict"]].concat());
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("never reached: splits"), "{said}");
}

#[test]
fn a_mode_that_never_reached_its_purpose_gives_status_4_even_with_a_budget() {
    let folder = tempfile::tempdir().unwrap();
    // A store that was never written contains nothing to damage.
    let args = "--engine btree:cow --mode damage --runs 0 --budget 60s";
    let output = oracle(folder.path(), &args.split(' ').collect::<Vec<_>>());
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(
        said.contains("damage: never reached: harm to a store"),
        "{said}"
    );
}

#[test]
fn a_small_budget_is_kept_and_shared_by_all_modes() {
    let folder = tempfile::tempdir().unwrap();
    let began = std::time::Instant::now();
    let args = "--tree bminus --budget 4s --threads 1 --json met.json";
    let output = oracle(folder.path(), &args.split(' ').collect::<Vec<_>>());
    // A step may take long on a busy machine, but a whole program takes longer.
    assert!(began.elapsed().as_secs() < 30, "{:?}", began.elapsed());
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let json = std::fs::read_to_string(folder.path().join("met.json")).unwrap();
    let document: serde_json::Value = serde_json::from_str(&json).unwrap();
    for mode in ["differential", "crash", "concurrent", "events", "damage"] {
        let runs = document["runs"].as_array().unwrap().iter();
        let mut did = runs.filter(|run| run["mode"] == mode && run["verdict"] == "holds");
        assert!(did.next().is_some(), "{mode}: {said}");
    }
}

#[test]
fn bf_tree_events_are_checked_against_the_mini_page_and_ring_mirrors() {
    let folder = tempfile::tempdir().unwrap();
    let judge = |runs: &str| {
        let args = [
            "--mode",
            "events",
            "--engine",
            "bf:cow",
            "--runs",
            runs,
            "--json",
            "events.json",
        ];
        let output = oracle(folder.path(), &args);
        let json = std::fs::read_to_string(folder.path().join("events.json")).unwrap();
        let document: serde_json::Value = serde_json::from_str(&json).unwrap();
        (output, document["runs"][0].clone())
    };
    let (output, run) = judge("60");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(run["verdict"], "holds");
    let counts = run["counts"].as_array().unwrap();
    for what in [
        "mini-pages: Promote",
        "mini-pages: RemoveSeparator",
        "ring: Claim",
    ] {
        let count = counts.iter().find(|count| count["what"] == what).unwrap();
        assert!(count["n"].as_u64().unwrap() > 0, "{what}");
        assert!(text(&output.stdout).contains(what), "{what}");
    }
    // One episode with a single client, so that no conflict occurs.
    let (output, run) = judge("1");
    assert_eq!(output.status.code(), Some(4), "{}", text(&output.stdout));
    assert_eq!(run["verdict"], "not-exercised");
    assert!(text(&output.stderr).contains("mini-pages: Restart"));
}

#[test]
fn ccl_events_are_checked_against_the_leaf_buffering_mirror() {
    let steps = ["leaves: FenceLog", "leaves: Settle", "leaves: Replay"];
    pm_events_are_accepted("ccl:1", &steps);
}

#[test]
fn lodge_events_are_checked_against_the_surrogate_buffer_mirror() {
    let steps = ["lodge: BufferPair", "lodge: Crash", "lodge: ReplayEntry"];
    pm_events_are_accepted("lodge", &steps);
}

/// Runs a few episodes, which take these steps among others.
fn pm_events_are_accepted(engine: &str, steps: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let args = ["--mode", "events", "--engine", engine, "--runs", "4"];
    let output = oracle(
        folder.path(),
        &[&args[..], &["--json", "events.json"]].concat(),
    );
    // Four episodes need not take every action.
    assert!(
        matches!(output.status.code(), Some(0 | 4)),
        "{}",
        text(&output.stderr)
    );
    let json = std::fs::read_to_string(folder.path().join("events.json")).unwrap();
    let document: serde_json::Value = serde_json::from_str(&json).unwrap();
    let run = &document["runs"][0];
    assert_ne!(run["verdict"], "violated", "{run}");
    let counts = run["counts"].as_array().unwrap();
    for what in steps {
        let count = counts.iter().find(|count| count["what"] == *what).unwrap();
        assert!(count["n"].as_u64().unwrap() > 0, "{what}");
    }
}

#[test]
fn bad_programs_and_names_are_refused_with_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let head = "{\"schema\":\"treering.program/1\",\"engine\":\"btree:cow\"}\n";
    for (name, content, expected) in [
        ("empty", String::new(), "line 1: expected a header"),
        (
            "cut",
            format!("{head}put \"k"),
            "line 2: expected a key in quotes",
        ),
        (
            "absurd",
            format!("{head}put \"k\" 4000000000"),
            "longer than",
        ),
        (
            "other",
            head.replace("btree:cow", "nonesuch"),
            "expected one of",
        ),
        (
            "history",
            "{\"schema\":\"treering.history/1\"}".to_owned(),
            "history",
        ),
    ] {
        std::fs::write(folder.path().join(name), content).unwrap();
        refused(folder.path(), &["--replay", name], expected);
    }
    refused(folder.path(), &["--replay", "missing"], "missing");
    refused(
        folder.path(),
        &["--engine", "nonesuch"],
        "expected one of btree:in-place",
    );
    refused(
        folder.path(),
        &["--tree", "nonesuch"],
        "expected btree, bf, bminus, ccl, lodge or pmtree",
    );
    refused(folder.path(), &["--budget", "soon"], "soon");
    refused(
        folder.path(),
        &["--mode", "events", "--engine", "btree:cow-lazy"],
        "only btree:in-place",
    );
}

#[test]
fn features_missing_from_the_build_give_status_3_and_instructions() {
    let folder = tempfile::tempdir().unwrap();
    if !cfg!(feature = "redb") {
        let output = oracle(folder.path(), &["--engine", "redb"]);
        assert_eq!(output.status.code(), Some(3));
        assert!(text(&output.stderr).contains("--features redb"));
    }
    if !cfg!(feature = "mutations") {
        let output = oracle(folder.path(), &["--mutations"]);
        assert_eq!(output.status.code(), Some(3));
        assert!(text(&output.stderr).contains("--features mutations"));
    }
}
