//! `treering oracle --exec` and `--so`, through the command line: verdicts, exit statuses and the one
//! sentence that says what is wrong.

mod support;

use std::path::Path;
use std::process::{Command, Output};

use support::{has, treering};

fn toy(bugs: &str) -> Option<String> {
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("SKIPPED: python3 is not installed, so no adapter can be tested");
        return None;
    }
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../model/oracle/tests/adapters/toy.py"
    );
    Some(format!("python3 '{file}' {bugs}"))
}

fn oracle(folder: &Path, args: &[&str]) -> Output {
    treering(folder, &[&["oracle"], args].concat())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_right_adapter_holds_in_its_modes_and_the_same_seed_gives_the_same_report() {
    let Some(toy) = toy("") else { return };
    let folder = tempfile::tempdir().unwrap();
    let report = |file: &str| {
        let what = ["--mode", "differential", "--runs", "8", "--ops", "200"];
        let output = oracle(
            folder.path(),
            &[&["--exec", &toy, "--json", file][..], &what].concat(),
        );
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let text = std::fs::read_to_string(folder.path().join(file)).unwrap();
        let mut document: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(document["schema"], "treering.oracle/1");
        document["runs"][0]["seconds"] = 0.into();
        document
    };
    let once = report("one.json");
    assert_eq!(once["runs"][0]["engine"], "exec:toy");
    assert_eq!(once, report("two.json"));
    for mode in ["crash", "concurrent"] {
        let args = [
            "--exec", &toy, "--mode", mode, "--runs", "2", "--ops", "300",
        ];
        let output = oracle(folder.path(), &args);
        assert_eq!(
            output.status.code(),
            Some(0),
            "{mode}: {}",
            text(&output.stderr)
        );
    }
}

#[test]
fn a_bug_is_found_saved_and_found_again() {
    let Some(toy) = toy("lost-delete") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let what = [
        "--mode",
        "differential",
        "--runs",
        "20",
        "--ops",
        "200",
        "--save",
        "f.program",
    ];
    let output = oracle(folder.path(), &[&["--exec", &toy][..], &what].concat());
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("--replay f.program --exec '"), "{said}");
    let again = oracle(folder.path(), &["--replay", "f.program", "--exec", &toy]);
    assert_eq!(again.status.code(), Some(1), "{}", text(&again.stderr));
    let alone = oracle(folder.path(), &["--replay", "f.program"]);
    assert_eq!(alone.status.code(), Some(2));
    assert!(
        text(&alone.stderr).contains("start it with --exec"),
        "{}",
        text(&alone.stderr)
    );
}

#[test]
fn what_is_wrong_with_an_adapter_is_one_sentence_with_its_own_status() {
    let folder = tempfile::tempdir().unwrap();
    let differential = &["--mode", "differential", "--runs", "2"][..];
    let self_test = &["--self-test"][..];
    for (bugs, args, status, expected) in [
        (
            "garbage",
            differential,
            2,
            "of its output: expected an answer as a JSON object",
        ),
        (
            "garbage",
            self_test,
            2,
            "of its output: expected an answer as a JSON object",
        ),
        ("reorders", differential, 2, "may answer in another order"),
        (
            "false-claim",
            differential,
            2,
            "line 1 of its output: expected `isolation`",
        ),
        ("survivor", self_test, 2, "the end of the process"),
        ("scan-order", self_test, 1, "expected the keys"),
        ("kept-abort", self_test, 1, "transactions: get \"a\""),
    ] {
        let Some(toy) = toy(bugs) else { return };
        let output = oracle(folder.path(), &[&["--exec", &toy][..], args].concat());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{bugs}: {said}");
        assert!(said.contains(expected), "{bugs}: {said}");
        assert_eq!(said.lines().count(), 1, "{bugs}: {said}");
    }
    for (args, status, expected) in [
        (
            &["--exec", "/no/such/program"][..],
            3,
            "/no/such/program cannot be started",
        ),
        (&["--exec", "a 'b"], 2, "a ' that is not closed"),
        (&["--so", "/no/such/library.so"], 3, "cannot be started"),
        (&["--self-test"], 2, "--exec"),
    ] {
        let output = oracle(folder.path(), args);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{args:?}: {said}");
        assert!(said.contains(expected), "{args:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{args:?}: {said}");
    }
}

#[test]
fn power_cuts_on_a_drive_find_what_is_not_synced() {
    let Some(honest) = toy("fsync") else { return };
    if !has(&["/dev/fuse"]) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let run = [
        "--fs", "files", "--runs", "1", "--ops", "25", "--states", "80",
    ];
    let json = ["--json", "cuts.json"];
    let output = oracle(
        folder.path(),
        &[&["--exec", &honest][..], &run, &json].concat(),
    );
    let (said, told) = (text(&output.stderr), text(&output.stdout));
    assert_eq!(output.status.code(), Some(0), "{said}\n{told}");
    let report = std::fs::read(folder.path().join("cuts.json")).expect("a report");
    let report: serde_json::Value = serde_json::from_slice(&report).expect("JSON");
    assert_eq!(report["schema"], "treering.oracle/1");
    let row = &report["runs"][0];
    assert_eq!(
        (&row["mode"], &row["verdict"]),
        (&"power-cuts".into(), &"holds".into())
    );
    assert!(
        row["cuts"]["states"]["distinct"].as_u64() > Some(40),
        "{row}"
    );
    let left = std::fs::read_dir(folder.path())
        .expect("the folder")
        .count();
    assert_eq!(left, 1, "only the report is left");

    let Some(lax) = toy("") else { return };
    let output = oracle(folder.path(), &[&["--exec", &lax][..], &run].concat());
    let (said, told) = (text(&output.stderr), text(&output.stdout));
    assert_eq!(output.status.code(), Some(1), "{said}\n{told}");
    assert!(told.contains("acknowledged write lost: key "), "{told}");
    assert!(told.contains("missing fsync  fsync(log)"), "{told}");
    assert!(told.contains("fsync of directory"), "{told}");
    let kept = told.lines().find_map(|line| line.strip_prefix("kept: "));
    let kept = Path::new(kept.expect("a folder with the recording"));
    assert!(kept.join("drive.rec").exists() && kept.join("found/1.cut").exists());
}

#[test]
fn an_engine_that_believes_the_second_fsync_loses_what_it_acknowledged() {
    let Some(believes) = toy("fsync fsync-again") else {
        return;
    };
    if !has(&["/dev/fuse"]) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let run = |toy: &str, flags: &[&str]| {
        let begin = [
            "--exec", toy, "--fs", "files", "--ops", "12", "--runs", "1", "--states",
        ];
        let output = oracle(folder.path(), &[&begin, flags].concat());
        let (said, told) = (text(&output.stderr), text(&output.stdout));
        (output.status.code(), format!("{said}\n{told}"))
    };
    // The check writes, too, and is cut again.
    let (status, told) = run(&believes, &["20", "--recovery-cuts", "--torn", "4KiB"]);
    assert_eq!(status, Some(0), "{told}");
    // The sixth flush is that of a put.
    let (status, told) = run(&believes, &["120", "--fail-fsync=6"]);
    assert_eq!(status, Some(1), "{told}");
    for expected in [
        "flush 6 of",
        "whose fsync failed",
        "acknowledged write lost",
    ] {
        assert!(told.contains(expected), "{expected} in {told}");
    }
    // One that ends instead is started again, and what failed may be there or not.
    let Some(ends) = toy("fsync") else { return };
    let (status, told) = run(&ends, &["20", "--fail-fsync", "--json", "-"]);
    assert_ne!(status, Some(2), "{told}");
    assert!(told.contains("flush 1 of"), "{told}");
    let (status, told) = run(&ends, &["20", "--fail-fsync=0"]);
    assert_eq!(status, Some(2), "{told}");
}

#[test]
fn a_close_is_durable_only_where_that_is_claimed() {
    let Some(toy) = toy("sync-only") else { return };
    if !has(&["/dev/fuse"]) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    // The program closes the store several times, with writes before that were not synced.
    let run = [
        "--fs", "files", "--runs", "1", "--ops", "120", "--seed", "1", "--states", "150",
    ];
    let output = oracle(folder.path(), &[&["--exec", &toy][..], &run].concat());
    let (said, told) = (text(&output.stderr), text(&output.stdout));
    assert_eq!(output.status.code(), Some(0), "{said}\n{told}");
}

#[test]
fn an_adapter_stays_for_many_states_and_what_it_keeps_accuses_nobody() {
    let (Some(honest), Some(keeps)) = (toy("fsync"), toy("fsync keeps")) else {
        return;
    };
    if !has(&["/dev/fuse"]) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let starts = |toy: &str| {
        let file = folder.path().join("starts");
        std::fs::write(&file, "").expect("a file");
        let command = format!("env 'TOY_STARTS={}' {toy}", file.display());
        let run = [
            "--fs",
            "files",
            "--runs",
            "1",
            "--ops",
            "25",
            "--states",
            "60",
            "--threads",
            "1",
        ];
        let output = oracle(folder.path(), &[&["--exec", &command][..], &run].concat());
        let (said, told) = (text(&output.stderr), text(&output.stdout));
        assert_eq!(output.status.code(), Some(0), "{said}\n{told}");
        std::fs::read(&file).expect("a file").len()
    };
    // One to ask for its name, one that is recorded, one that stays.
    assert_eq!(starts(&honest), 3);
    // A new process opens what the one before does not like.
    let keeps = starts(&keeps);
    assert!(keeps > 3, "{keeps}");
}

#[test]
fn another_promise_and_a_later_begin_are_taken() {
    let Some(toy) = toy("sync-only") else { return };
    if !has(&["/dev/fuse"]) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let run = |flags: &[&str]| {
        let run = [
            "--exec", &toy, "--fs", "files", "--runs", "1", "--ops", "30", "--states", "60",
        ];
        let output = oracle(folder.path(), &[&run, flags].concat());
        let (said, told) = (text(&output.stderr), text(&output.stdout));
        (output.status.code(), format!("{said}\n{told}"))
    };
    let (status, told) = run(&["--from", "try 5"]);
    assert_eq!(status, Some(0), "{told}");
    let (status, told) = run(&["--from", "try 5 of nothing"]);
    assert_eq!(status, Some(2), "{told}");
    assert!(told.contains("begins with `try 5 of nothing`"), "{told}");
    let (status, told) = run(&["--promise", "return"]);
    assert_eq!(status, Some(1), "{told}");
    assert!(told.contains("acknowledged write lost"), "{told}");
    let (status, told) = run(&["--promise", "now"]);
    assert_eq!(status, Some(2), "{told}");
}

#[test]
fn what_earlier_programs_have_shown_is_kept_when_a_later_one_cannot_be_recorded() {
    let Some(toy) = toy("fsync") else { return };
    if !has(&["/dev/fuse"]) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let starts = folder.path().join("starts");
    std::fs::write(&starts, "").expect("a file");
    // The first program needs three starts.
    let script = format!(
        "if [ $(wc -c < '{0}') -ge 3 ]; then exit 1; fi\nTOY_STARTS='{0}' exec {toy}\n",
        starts.display()
    );
    let adapter = folder.path().join("adapter.sh");
    std::fs::write(&adapter, script).expect("a file");
    let command = format!("sh '{}'", adapter.display());
    let run = [
        "--fs",
        "files",
        "--runs",
        "2",
        "--ops",
        "25",
        "--states",
        "20",
        "--threads",
        "1",
        "--json",
        "cuts.json",
    ];
    let output = oracle(folder.path(), &[&["--exec", &command][..], &run].concat());
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    let report = std::fs::read(folder.path().join("cuts.json")).expect("a report");
    let report: serde_json::Value = serde_json::from_slice(&report).expect("JSON");
    assert_eq!(report["complete"], false);
    assert_eq!(report["runs"].as_array().map(Vec::len), Some(1));
}
