//! `treering drive` end to end. Tests that need FUSE, root or a program skip loudly without it.

mod support;

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use support::{has, listing, ok, treering};

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

fn refused(folder: &Path, args: &[&str], status: i32, words: &[&str]) {
    let output = treering(folder, args);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(status), "{args:?}: {said}");
    assert_eq!(said.lines().count(), 1, "{args:?}: {said}");
    for word in words {
        assert!(said.contains(word), "{args:?}: expected {word:?} in {said}");
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Nothing of a drive may be left mounted for a program that has ended.
fn nothing_mounted_below(folder: &Path) {
    let mounts = std::fs::read_to_string("/proc/self/mounts").expect("a table of mounts");
    let folder = folder.display().to_string();
    assert!(!mounts.contains(&folder), "{mounts}");
}

#[test]
fn a_run_is_recorded_and_its_report_is_that_of_the_recording() {
    if !has(&["/dev/fuse"]) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let script = "mkdir data; head -c 1000000 /dev/zero >data/000007.sst; sync data/000007.sst; \
                  echo loaded >>$TREERING_ACKS; echo 'user_bytes 500000' >>$TREERING_ACKS; \
                  head -c 200000 /dev/urandom >data/000008.log; sync data/000008.log; \
                  echo 'user_bytes 600000' >>$TREERING_ACKS; rm data/000007.sst";
    let run = [
        "drive", "run", "--record", "a.rec", "--json", "-", "--device", "ssd,csd", "--", "sh",
        "-c", script,
    ];
    let live = json(&ok(folder, &run));
    assert_eq!(live["schema"], "treering.drive/1");
    assert_eq!(live["complete"], true);
    assert_eq!(live["program"]["ended"]["status"], 0);
    assert_eq!(live["program"]["user_bytes"], 600_000);
    assert_eq!(live["chain"]["file_bytes"], 1_200_000);
    let cause = |report: &Value, name: &str, field: &str| {
        let causes = report["causes"].as_array().expect("causes").clone();
        let found = causes.into_iter().find(|cause| cause["name"] == name);
        found.unwrap_or_else(|| panic!("no cause {name}: {report}"))[field].clone()
    };
    assert_eq!(cause(&live, "sst", "bytes"), 1_000_000);
    assert_eq!(cause(&live, "wal", "bytes"), 200_000);
    assert_eq!(cause(&live, "sst", "discards"), 245 * 4096);
    assert_eq!(cause(&live, "wal", "flushes"), 1);
    let alpha = cause(&live, "sst", "alpha")
        .as_f64()
        .expect("csd compresses");
    assert!(alpha < 0.01, "zeros take no room: {alpha}");
    // Again from the recording: the same but for how the program ended.
    let again = [
        "drive", "replay", "a.rec", "--json", "-", "--device", "ssd,csd",
    ];
    let (first, second) = (ok(folder, &again), ok(folder, &again));
    assert_eq!(first, second, "the same recording, the same report");
    let mut replayed = json(&first);
    replayed["program"]["ended"] = live["program"]["ended"].clone();
    assert_eq!(replayed, live);
    // From a mark on.
    let marked = [&again[..], &["--from-mark", "loaded"]].concat();
    let report = json(&ok(folder, &marked));
    assert_eq!(report["program"]["user_bytes"], 600_000);
    assert_eq!(report["chain"]["file_bytes"], 200_000);
    ok(folder, &["drive", "info", "a.rec", "--html", "info.html"]);
    ok(folder, &["import", "drive", "a.rec", "-o", "a.trz"]);
    let replay = ["replay", "a.trz", "--tree", "none", "--json", "-"];
    assert_eq!(json(&ok(folder, &replay))["complete"], true);
    assert_eq!(listing(folder), ["a.rec", "a.trz", "info.html"]);
}

#[test]
fn the_program_sees_its_directory_and_its_failure_is_told() {
    if !has(&["/dev/fuse"]) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    std::fs::write(
        folder.join("tool"),
        "#!/bin/sh\n[ \"$PWD\" = \"$TREERING_DIR\" ] || exit 9\nexit 7\n",
    )
    .expect("write");
    ok(
        folder,
        &[
            "drive",
            "run",
            "--",
            "sh",
            "-c",
            "test -z \"$(ls -A)\" && test -w .",
        ],
    );
    let mode = Command::new("chmod")
        .args(["+x", "tool"])
        .current_dir(folder)
        .status();
    assert!(mode.expect("chmod starts").success());
    let output = treering(folder, &["drive", "run", "--", "./tool"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("exit status 7"),
        "{}",
        stderr(&output)
    );
    refused(
        folder,
        &["drive", "run", "--", "no-such-program"],
        3,
        &["no-such-program"],
    );
}

#[test]
fn a_full_drive_is_an_error_of_the_program_and_not_of_ours() {
    if !has(&["/dev/fuse"]) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let script = "head -c 5000000 /dev/zero >a && sync a; test $? != 0 && rm a && echo fine >b";
    let args = [
        "drive",
        "run",
        "--capacity",
        "2MiB",
        "--",
        "sh",
        "-c",
        script,
    ];
    let text = ok(folder.path(), &args);
    assert!(text.contains("exit status 0"), "{text}");
}

#[test]
fn a_kept_drive_is_found_again() {
    if !has(&["/dev/fuse"]) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let run = |script: &str| {
        let args = [
            "drive",
            "run",
            "--keep",
            "kept",
            "--capacity",
            "64MiB",
            "--",
            "sh",
            "-c",
        ];
        ok(folder, &[&args[..], &[script]].concat())
    };
    run("echo one >a; ln a b; mkdir d; mv b d/c");
    run("grep -q one d/c && test \"$(stat -c %h a)\" = 2");
    // What it held before is not the program's.
    let args = [
        "drive",
        "run",
        "--keep",
        "kept",
        "--capacity",
        "64MiB",
        "--json",
        "-",
        "--",
    ];
    let report = json(&ok(folder, &[&args[..], &["true"]].concat()));
    assert_eq!(report["chain"]["file_bytes"], 0, "{report}");
}

/// Starts a drive that lasts, and waits until it is mounted.
fn mounted(folder: &Path, more: &[&str]) -> std::process::Child {
    let mut child = Command::new(env!("CARGO_BIN_EXE_treering"))
        .args(["drive", "mount", "drive"])
        .args(more)
        .current_dir(folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let place = folder.canonicalize().expect("a folder").join("drive");
    let place = place.display().to_string();
    let began = Instant::now();
    loop {
        let mounts = std::fs::read_to_string("/proc/self/mounts").expect("a table of mounts");
        if mounts.contains(&place) {
            return child;
        }
        let ended = child.try_wait().expect("a child");
        assert!(
            ended.is_none() && began.elapsed() < Duration::from_secs(30),
            "{ended:?}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_mounted_drive_reports_when_it_is_interrupted_or_unmounted() {
    if !has(&["/dev/fuse"]) {
        return;
    }
    for by_signal in [true, false] {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("drive")).expect("a folder");
        let child = mounted(folder.path(), &["--json", "-"]);
        let file = folder.path().join("drive/a.db");
        std::fs::write(&file, [7; 10_000]).expect("room");
        match by_signal {
            true => {
                let id = child.id().to_string();
                let sent = Command::new("kill").args(["-INT", &id]).status();
                assert!(sent.expect("kill starts").success());
            }
            false => {
                let done = Command::new("umount")
                    .arg(folder.path().join("drive"))
                    .status();
                if !done.is_ok_and(|status| status.success()) {
                    eprintln!("SKIPPED: this user may not unmount");
                    let _ = Command::new("kill").arg(child.id().to_string()).status();
                }
            }
        }
        let output = child.wait_with_output().expect("a child");
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let report = json(&String::from_utf8(output.stdout).expect("text"));
        assert_eq!(report["chain"]["file_bytes"], 10_000);
        nothing_mounted_below(folder.path());
    }
}

#[test]
fn what_was_synced_survives_the_death_of_the_drive() {
    if !has(&["/dev/fuse"]) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    std::fs::create_dir(folder.join("drive")).expect("a folder");
    let mut child = mounted(
        folder,
        &["--keep", "kept", "--capacity", "64MiB", "--record", "k.rec"],
    );
    let bytes: Vec<u8> = (0..100_000_u32).map(|i| (i % 251) as u8).collect();
    let path = folder.join("drive/a.db");
    std::fs::write(&path, &bytes).expect("room");
    std::fs::File::open(&path)
        .expect("a file")
        .sync_all()
        .expect("synced");
    child.kill().expect("a child");
    child.wait().expect("a child");
    // The recording was cut off, and says so.
    std::thread::sleep(Duration::from_millis(300));
    let report = json(&ok(folder, &["drive", "replay", "k.rec", "--json", "-"]));
    assert_eq!(report["complete"], false);
    let args = [
        "drive",
        "run",
        "--keep",
        "kept",
        "--capacity",
        "64MiB",
        "--",
        "cp",
        "a.db",
    ];
    let copy = folder.join("copy").display().to_string();
    ok(folder, &[&args[..], &[&copy]].concat());
    assert_eq!(std::fs::read(copy).expect("a copy"), bytes);
    nothing_mounted_below(folder);
}

#[test]
fn real_file_systems_tell_their_journal_from_files() {
    if !has(&["/dev/fuse", "/dev/loop-control", "root"]) {
        return;
    }
    for (fs, mkfs) in [
        ("ext4", "mkfs.ext4"),
        ("xfs", "mkfs.xfs"),
        ("btrfs", "mkfs.btrfs"),
    ] {
        if !has(&[mkfs]) {
            continue;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let script = "head -c 3000000 /dev/urandom >a.sst; sync; sleep 1.2; sync";
        let args = [
            "drive",
            "run",
            "--fs",
            fs,
            "--capacity",
            "512MiB",
            "--json",
            "-",
            "--",
            "sh",
            "-c",
            script,
        ];
        let report = json(&ok(folder.path(), &args));
        let causes = report["causes"].as_array().expect("causes");
        let bytes = |name: &str| {
            let found = causes.iter().find(|cause| cause["name"] == name);
            found.map_or(0, |cause| cause["host_bytes"].as_u64().expect("bytes"))
        };
        let own = causes
            .iter()
            .filter(|cause| cause["of_file_system"] == true);
        assert_eq!(bytes("sst"), 733 * 4096, "{fs}: {causes:?}");
        assert!(own.count() > 0, "{fs}: {causes:?}");
        assert_eq!(bytes("unknown"), 0, "{fs}: {causes:?}");
        nothing_mounted_below(folder.path());
    }
}

/// A database's own words about itself are the same as on an ordinary directory.
#[test]
fn a_database_is_the_same_as_on_an_ordinary_directory() {
    if !has(&["/dev/fuse", "sqlite3"]) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let sql = "PRAGMA journal_mode=WAL; CREATE TABLE t(id INTEGER PRIMARY KEY, x TEXT); \
               WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM c WHERE n<2000) \
               INSERT INTO t SELECT n, printf('%0100d', n * 7919) FROM c; \
               UPDATE t SET x = x || x WHERE id % 3 = 0; DELETE FROM t WHERE id % 5 = 0;";
    let dump = folder.join("dump").display().to_string();
    let script = format!("sqlite3 a.db \"{sql}\" && sqlite3 a.db .dump >{dump}");
    let plain = Command::new("sh")
        .args(["-c", &script])
        .current_dir(folder)
        .status();
    assert!(plain.expect("sh starts").success());
    let expected = std::fs::read(folder.join("dump")).expect("a dump");
    std::fs::remove_file(folder.join("dump")).expect("a dump");
    for cache in ["write-back", "write-through"] {
        let args = [
            "drive",
            "run",
            "--page-cache",
            cache,
            "--",
            "sh",
            "-c",
            &script,
        ];
        let text = ok(folder, &args);
        assert!(text.contains("wal") && text.contains("database"), "{text}");
        assert_eq!(
            std::fs::read(folder.join("dump")).expect("a dump"),
            expected
        );
        std::fs::remove_file(folder.join("dump")).expect("a dump");
    }
}

#[test]
fn wrong_input_gets_one_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    std::fs::write(
        folder.join("a.rec"),
        b"no recording at all, but long enough to be one",
    )
    .expect("write");
    std::fs::write(folder.join("empty.rec"), b"").expect("write");
    for verb in ["replay", "info"] {
        refused(folder, &["drive", verb, "a.rec"], 2, &["a.rec"]);
        refused(folder, &["drive", verb, "empty.rec"], 2, &["empty.rec"]);
        refused(folder, &["drive", verb, "missing.rec"], 2, &["missing.rec"]);
    }
    refused(
        folder,
        &["drive", "export", "fio", "a.rec", "-o", "b"],
        2,
        &["a.rec"],
    );
    refused(
        folder,
        &["drive", "run", "--device", "pm", "--", "true"],
        2,
        &["pm"],
    );
    refused(
        folder,
        &["drive", "run", "--device", "ssd,ssd", "--", "true"],
        2,
        &["twice"],
    );
    refused(
        folder,
        &["drive", "run", "--capacity", "5000", "--", "true"],
        2,
        &["4096"],
    );
    refused(
        folder,
        &["drive", "run", "--cause", "x", "--", "true"],
        2,
        &["NAME=GLOB"],
    );
    refused(folder, &["drive", "run"], 2, &["CMD"]);
    refused(folder, &["drive", "mount", "nowhere"], 2, &["nowhere"]);
    assert_eq!(
        listing(folder),
        ["a.rec", "empty.rec"],
        "nothing half-written"
    );
}
