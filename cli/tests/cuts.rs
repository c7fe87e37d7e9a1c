//! `treering cuts` end to end. Tests that need FUSE or root skip loudly without it.

mod support;

use std::path::Path;

use serde_json::Value;
use support::{has, listing, ok, treering};

/// Replaces a file five times; `FILE` and `DIRECTORY` sync what their names say.
const PROGRAM: &str = r#"
    printf 'value-%0600d' 0 >db; sync db; sync .; echo 0 >>$TREERING_ACKS
    for i in 1 2 3 4 5; do
        printf 'value-%0600d' $i >new; $FILE; mv new db; $DIRECTORY
        echo $i >>$TREERING_ACKS
    done"#;

/// What was acknowledged, or the one behind it, must be there as a whole.
const CHECKER: &str = r#"
    last=$(tail -n 1 "$TREERING_ACKS")
    [ -n "$last" ] || exit 0
    for i in $last $((last + 1)); do
        [ "$(cat db 2>&1)" = "$(printf 'value-%0600d' $i)" ] && exit 0
    done
    [ -e db ] || { echo 'the database is gone'; exit 1; }
    echo "$(wc -c <db) bytes that nobody wrote last"
    exit 1"#;

fn record(folder: &Path, fs: &str, file: &str, directory: &str) {
    let script = format!("FILE='{file}' DIRECTORY='{directory}'; {PROGRAM}");
    let mut run = vec![
        "drive",
        "run",
        "--fs",
        fs,
        "--record",
        "a.rec",
        "--no-predict",
    ];
    if fs == "files" {
        run.extend(["--page-cache", "write-through"]);
    } else {
        run.extend(["--capacity", "64MiB"]);
    }
    run.extend(["--", "sh", "-c", &script]);
    ok(folder, &run);
}

fn cuts(folder: &Path, flags: &[&str], status: i32) -> Value {
    let mut args = vec!["cuts", "a.rec", "--json", "cuts.json"];
    args.extend(flags);
    args.extend(["--", "sh", "-c", CHECKER]);
    let output = treering(folder, &args);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(status), "{said}\n{told}");
    let json = std::fs::read_to_string(folder.join("cuts.json")).expect("a report");
    serde_json::from_str(&json).expect("JSON")
}

fn findings(report: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let findings = report["findings"].as_array().expect("findings").iter();
    let of = |finding: &Value| (text(&finding["cause"]), text(&finding["missing_fsync"]));
    findings.map(of).collect()
}

#[test]
fn a_program_that_syncs_everything_survives_every_model() {
    if !has(&["/dev/fuse"]) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    record(folder, "files", "sync new", "sync .");
    for model in ["strict", "ext4-ordered", "ext4-writeback", "xfs", "btrfs"] {
        let flags = ["--model", model, "--states", "200", "--recovery-cuts"];
        let report = cuts(folder, &flags, 0);
        assert_eq!(report["verdict"], "holds", "{model}");
        assert_eq!(report["schema"], "treering.cuts/1");
        assert_eq!(report["recording"]["acknowledgements"], 6);
        let distinct = report["states"]["distinct"].as_u64().expect("a number");
        assert!(distinct > 20, "{model}: {distinct}");
    }
    assert!(
        !listing(folder).contains(&"a.rec.cuts".to_owned()),
        "nothing was found"
    );
}

#[test]
fn a_file_that_is_not_synced_before_its_rename_is_found_and_named() {
    if !has(&["/dev/fuse"]) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    record(folder, "files", ":", "sync .");
    let report = cuts(
        folder,
        &["--states", "400", "--html", "cuts.html", "--keep", "kept"],
        1,
    );
    let found = findings(&report);
    assert!(
        found
            .iter()
            .all(|(_, missing)| missing.starts_with("fsync(new)")),
        "{found:?}"
    );
    assert!(!found.is_empty());
    let html = std::fs::read_to_string(folder.join("cuts.html")).expect("a page");
    assert!(html.contains("<svg") && html.contains("fsync(new)"));
    assert!(folder.join("kept/1/db").exists(), "a copy for a debugger");
    // The same again, and again as a whole: the state fails still.
    let again = cuts(folder, &["--states", "400"], 1);
    let clear = |report: &Value| {
        let text = report.to_string();
        text.replace("\"kept\":\"kept/1\",", "")
            .replace("\"kept\":\"kept/2\",", "")
    };
    assert_eq!(
        clear(&again),
        clear(&report),
        "the same seed, the same report"
    );
    let replay = [
        "cuts",
        "--replay",
        "a.rec.cuts/1.cut",
        "--",
        "sh",
        "-c",
        CHECKER,
    ];
    let output = treering(folder, &replay);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        said.contains("bytes that nobody wrote") || said.contains("gone"),
        "{said}"
    );
    // ext4 waits for the bytes by itself.
    let report = cuts(folder, &["--states", "300", "--model", "ext4-ordered"], 0);
    assert_eq!(report["verdict"], "holds");
}

#[test]
fn a_directory_that_is_not_synced_is_found_and_named() {
    if !has(&["/dev/fuse"]) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    record(folder, "files", "sync new", ":");
    let report = cuts(folder, &["--states", "400"], 1);
    let found = findings(&report);
    let named = |(_, missing): &(String, String)| missing.starts_with("fsync of directory");
    assert!(found.iter().all(named) && !found.is_empty(), "{found:?}");
    let story = report["findings"][0]["story"].as_array().expect("a story");
    let lost = story.iter().any(|line| line["became"] == "lost");
    let acknowledged = story.iter().any(|line| {
        let what = line["what"].as_str().unwrap_or_default();
        what.starts_with("acknowledged")
    });
    assert!(lost && acknowledged, "{story:?}");
}

#[test]
fn below_a_real_file_system_the_disk_is_cut() {
    if !has(&["/dev/fuse", "/dev/loop-control", "root"]) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    record(folder, "ext4", "sync new", "sync .");
    let report = cuts(folder, &["--states", "60"], 0);
    assert_eq!(report["model"], "disk");
    assert!(report["states"]["distinct"].as_u64() > Some(20), "{report}");
    // Without the directory, an acknowledged replacement may not have reached the disk.
    let bad = tempfile::tempdir().expect("a folder");
    record(bad.path(), "ext4", ":", ":");
    let report = cuts(bad.path(), &["--states", "60"], 1);
    assert!(!findings(&report).is_empty());
}

#[test]
fn what_cannot_be_done_is_said_in_one_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let refused = |args: &[&str], status: i32, words: &str| {
        let output = treering(folder, args);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(status), "{args:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{args:?}: {said}");
        assert!(
            said.contains(words),
            "{args:?}: expected {words:?} in {said}"
        );
    };
    std::fs::write(folder.join("no.rec"), "no recording").expect("room");
    refused(&["cuts", "no.rec", "--", "true"], 2, "no.rec");
    refused(&["cuts", "missing.rec", "--", "true"], 2, "missing.rec");
    refused(
        &["cuts", "no.rec", "--torn", "1000", "--", "true"],
        2,
        "512, 4KiB or none",
    );
    refused(
        &["cuts", "no.rec", "--model", "ext5", "--", "true"],
        2,
        "expected one of strict",
    );
    refused(&["cuts", "--replay", "no.rec", "--", "true"], 2, "no.rec");
    if !has(&["/dev/fuse"]) {
        return;
    }
    record(folder, "files", "sync new", "sync .");
    let bad = folder.join("a.rec");
    refused(
        &["cuts", "a.rec", "--", "/no/such/program"],
        3,
        "/no/such/program",
    );
    assert!(!listing(folder).contains(&"a.rec.cuts".to_owned()));
    // Nothing that could be lost.
    let idle = [
        "drive",
        "run",
        "--record",
        "idle.rec",
        "--no-predict",
        "--",
        "true",
    ];
    ok(folder, &idle);
    refused(&["cuts", "idle.rec", "--", "true"], 4, "");
    let bytes = std::fs::read(&bad).expect("the recording");
    std::fs::write(&bad, &bytes[..bytes.len() / 2]).expect("room");
    let output = treering(folder, &["cuts", "a.rec", "--states", "20", "--", "true"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(matches!(output.status.code(), Some(0 | 2 | 4)), "{said}");
}

/// Writes three records; a flush that fails is tried again, and believed.
const RETRIES: &str = r#"
    : >db; sync db; sync .
    for i in 1 2 3; do
        dd if=/dev/zero bs=4096 count=1 status=none | tr '\0' $i >>db
        sync db 2>&1 || sync db
        echo $i >>$TREERING_ACKS
    done"#;

#[test]
fn what_a_failed_fsync_dropped_is_found_missing() {
    if !has(&["/dev/fuse"]) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let begin = [
        "drive",
        "run",
        "--record",
        "a.rec",
        "--no-predict",
        "--page-cache",
        "write-through",
    ];
    let run = |flags: &[&str]| {
        let all = [&begin[..], flags, &["--", "sh", "-c", RETRIES]].concat();
        treering(folder, &all)
    };
    let checker = r#"
        for i in $(cat "$TREERING_ACKS"); do
            [ "$(tail -c +$((i * 4096 - 4095)) db | head -c 1)" = "$i" ] || { echo "$i is lost"; exit 1; }
        done"#;
    let verdict = |status: i32| {
        let cut = ["cuts", "a.rec", "--json", "-", "--", "sh", "-c", checker];
        let output = treering(folder, &cut);
        assert_eq!(output.status.code(), Some(status), "{output:?}");
        serde_json::from_slice::<Value>(&output.stdout).expect("JSON")
    };
    assert!(run(&[]).status.success());
    verdict(0);
    let failed = run(&["--fail-fsync", "4"]);
    assert!(failed.status.success(), "{failed:?}");
    let said = String::from_utf8_lossy(&failed.stderr).into_owned();
    assert!(said.contains("flush 4 of 6 failed"), "{said}");
    let report = verdict(1);
    assert_eq!(report["complete"], true);
    assert_eq!(report["findings"][0]["acknowledged_lost"], "2");
    let causes = findings(&report);
    assert_eq!(causes.len(), 1, "{causes:?}");
    assert_eq!(causes[0].0, "lost: bytes of db whose fsync failed");
    // A fault that never comes is told, and so are those that cannot be.
    for (flags, status, expected) in [
        (
            &["--fail-fsync", "9"][..],
            4,
            "flush 9 was to fail, but there were 5",
        ),
        (&["--fail-read", "0"], 2, "1 is the first"),
        (
            &["--fail-space", "1", "--fs", "ext4"],
            2,
            "expected --fs files",
        ),
    ] {
        let output = run(flags);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(status), "{said}");
        assert!(said.contains(expected), "{said}");
    }
}
