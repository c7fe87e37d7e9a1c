//! `treering cuts --check NAME`: programs that say what they write, and the engines' own tools.
//! Tests that need FUSE, root or a tool skip loudly without it.

mod support;

use std::path::Path;

use serde_json::Value;
use support::{has, ok, treering};

/// Records a shell script.
fn record(folder: &Path, script: &str) {
    let run = [
        "drive",
        "run",
        "--no-predict",
        "--page-cache",
        "write-through",
    ];
    let script = ["--record", "a.rec", "--", "sh", "-ec", script];
    ok(folder, &[&run[..], &script].concat());
}

/// Cuts the recording. Returns the report, and what was said.
fn cuts(folder: &Path, check: &str, states: &str, status: i32) -> (Value, String) {
    let args = [
        "cuts",
        "a.rec",
        "--check",
        check,
        "--states",
        states,
        "--json",
        "cuts.json",
    ];
    let output = treering(folder, &args);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(status), "{said}\n{told}");
    let json = std::fs::read_to_string(folder.join("cuts.json")).expect("a report");
    (serde_json::from_str(&json).expect("JSON"), told)
}

/// What the checker says of a directory with these acknowledgements: status and words.
fn state(folder: &Path, check: &str, acks: &str) -> (i32, String) {
    let file = folder.join("../acks");
    std::fs::write(&file, acks).expect("room");
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_treering"))
        .args(["cuts", "--check", check, "--check-state"])
        .current_dir(folder)
        .env("TREERING_DIR", folder)
        .env("TREERING_ACKS", file)
        .output()
        .expect("the command starts");
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code().unwrap_or(-1), told + &said)
}

/// Three rows, of which the last transaction writes two and deletes one.
fn sqlite(pragmas: &str) -> String {
    format!(
        r#"
        say() {{ echo "$*" >>"$TREERING_ACKS"; }}
        run() {{ sqlite3 -bail app.db "{pragmas} $1" >/dev/null; }}
        run 'CREATE TABLE kv(key BLOB PRIMARY KEY, value)'
        say try 1 put 61 78; run "INSERT INTO kv VALUES(x'61', x'78')"; say durable 1
        say try 2 put 62 79 delete 61 put 63 7a
        run "BEGIN; DELETE FROM kv; INSERT INTO kv VALUES(x'62', 'y'), ('c', 'z'); COMMIT"
        say durable 2
        say try 3 put 62 3132; run "UPDATE kv SET value = 12 WHERE key = x'62'"; say durable 3"#
    )
}

/// A recording of SQLite in mode DELETE; `None` where it cannot be made.
fn recorded_with(synchronous: &str) -> Option<tempfile::TempDir> {
    if !has(&["/dev/fuse", "sqlite3"]) {
        return None;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let pragmas = format!("PRAGMA journal_mode=DELETE; PRAGMA synchronous={synchronous};");
    record(folder.path(), &sqlite(&pragmas));
    Some(folder)
}

#[test]
fn sqlite_keeps_what_it_acknowledges_if_it_syncs_the_directory() {
    let Some(folder) = recorded_with("EXTRA") else {
        return;
    };
    let folder = folder.path();
    let (report, told) = cuts(folder, "sqlite", "250", 0);
    assert_eq!(report["verdict"], "holds");
    assert_eq!(report["check"]["name"], "sqlite");
    assert!(
        report["check"]["tool"]
            .as_str()
            .is_some_and(|tool| tool.starts_with("3."))
    );
    assert!(told.contains("Checker    --check sqlite (3."), "{told}");
}

#[test]
fn sqlite_without_syncs_loses_what_it_acknowledges() {
    let Some(folder) = recorded_with("OFF") else {
        return;
    };
    let folder = folder.path();
    let (report, told) = cuts(folder, "sqlite", "250", 1);
    assert_eq!(report["verdict"], "violated");
    assert!(told.contains("acknowledged write lost: key "), "{told}");
    let again = "treering cuts --replay a.rec.cuts/1.cut --check sqlite";
    assert!(told.contains(again), "{told}");
    let words: Vec<&str> = again.split(' ').skip(1).collect();
    assert_eq!(treering(folder, &words).status.code(), Some(1));
}

#[test]
fn each_wrong_content_is_called_by_its_name() {
    if !has(&["sqlite3"]) {
        return;
    }
    let acks = "try 1 put 61 78 put 63 78\ntry 2 put 61 79\ntry 3 delete 63\ndurable 3\n\
                try 4 put 61 7a put 62 7a\ntry 5 put 64 78\n";
    for (rows, expected) in [
        ("('a','y')", ""),
        ("('a','z'),('b','z')", ""),
        ("('a','z'),('b','z'),('d','x')", ""),
        (
            "('a','x')",
            "acknowledged write lost\nkey 61 has the value of transaction 1",
        ),
        (
            "('b','z')",
            "acknowledged write lost\nkey 61 is gone; written by 2, durable by 3",
        ),
        ("('a','y'),('c','x')", "a deleted key is back\nkey 63"),
        (
            "('a','y'),('q','x')",
            "a key is there that was never written\nkey 71",
        ),
        (
            "('a','yy')",
            "a key has a value that was never written\nkey 61, 2 bytes",
        ),
        (
            "('a','z')",
            "a transaction is there in part\ntransaction 4: key 61",
        ),
        (
            "('a','y'),('d','x')",
            "writes survived out of order\ntransaction 5 is there (key 64)",
        ),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let dir = folder.path().join("dir");
        std::fs::create_dir(&dir).expect("a folder");
        let script = format!("CREATE TABLE kv(k, v, more); INSERT INTO kv(k, v) VALUES {rows}");
        let made = std::process::Command::new("sqlite3")
            .arg(dir.join("a.db"))
            .arg(script)
            .status();
        assert!(made.expect("sqlite3 starts").success());
        let (status, told) = state(&dir, "sqlite", acks);
        assert_eq!(status, i32::from(!expected.is_empty()), "{rows}: {told}");
        assert!(told.starts_with(expected), "{rows}: {told}");
    }
}

#[test]
fn a_store_that_is_absent_damaged_or_one_of_two_is_told_so() {
    if !has(&["sqlite3"]) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("dir");
    std::fs::create_dir(&dir).expect("a folder");
    assert_eq!(
        state(&dir, "sqlite", "try 1 put 61 78\n").0,
        0,
        "nothing is durable"
    );
    let (status, told) = state(&dir, "sqlite", "try 1 put 61 78\ndurable 1\n");
    assert_eq!(status, 1);
    let gone =
        "acknowledged write lost\nkey 61 is gone; written by 1, durable by 1: there is no store";
    assert!(told.starts_with(gone), "{told}");
    std::fs::write(dir.join("a.db"), "no database, and nothing else is there").expect("room");
    let (status, told) = state(&dir, "sqlite", "");
    assert_eq!(status, 1);
    assert!(
        told.contains("does not open\nsqlite3: ") && told.contains("not a database"),
        "{told}"
    );
    let database = b"SQLite format 3\0".repeat(10);
    std::fs::write(dir.join("a.db"), &database).expect("room");
    std::fs::write(dir.join("b.db"), &database).expect("room");
    let (status, told) = state(&dir, "sqlite", "");
    assert_eq!(
        (status, told.contains("found a.db, b.db")),
        (2, true),
        "{told}"
    );
    std::fs::write(dir.join("b.db"), "").expect("room");
    assert_eq!(state(&dir, "sqlite", "store b.db\n").0, 0);
}

#[test]
fn bad_names_lines_and_missing_tools_end_it_before_it_begins() {
    if !has(&["/dev/fuse"]) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    record(
        folder,
        "echo x >a; sync a; echo try 1 get 61 >>$TREERING_ACKS",
    );
    for (args, status, expected) in [
        (&["--check", "oracle"][..], 2, "expected sqlite, rocksdb"),
        (
            &["--check", "sqlite", "--", "true"],
            2,
            "cannot be used with",
        ),
        (&[], 2, "required"),
        (
            &["--check", "exec:/no/such/adapter"],
            2,
            "line 1: expected `put` or `delete`",
        ),
    ] {
        let output = treering(folder, &[&["cuts", "a.rec"][..], args].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(status), "{args:?}: {said}");
        assert!(said.contains(expected), "{args:?}: {said}");
    }
    record(folder, "echo x >a; sync a");
    for check in [
        "sqlite",
        "rocksdb",
        "lmdb",
        "wiredtiger",
        "bbolt",
        "leveldb",
    ] {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_treering"))
            .args(["cuts", "a.rec", "--check", check])
            .current_dir(folder)
            .env("PATH", "/no/such/folder")
            .output()
            .expect("the command starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(
            said.contains("in $PATH (Debian: ") && said.lines().count() == 1,
            "{said}"
        );
    }
}

/// Makes a store with four records by shell commands; its content must be told from another, and
/// a cut of its recording has this verdict.
fn judged(check: &str, needs: &[&str], make: &str, put: &str, verdict: &str) {
    if !has(&[&["/dev/fuse"], needs].concat()) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let script = format!(
        r#"
        say() {{ echo "$*" >>"$TREERING_ACKS"; }}
        {make}
        for i in 1 2 3 4; do say try $i put 6b3$i 763$i; {put}; say durable $i; done"#
    );
    let dir = folder.join("dir");
    std::fs::create_dir(&dir).expect("a folder");
    let made = std::process::Command::new("sh")
        .args(["-ec", &script])
        .current_dir(&dir)
        .env("TREERING_ACKS", "../lines")
        .stderr(std::process::Stdio::null())
        .status();
    assert!(made.expect("sh starts").success());
    let lines = std::fs::read_to_string(folder.join("lines")).expect("the lines");
    let (status, told) = state(&dir, check, &lines);
    assert_eq!((status, told.as_str()), (0, ""));
    let (_, told) = state(&dir, check, &lines.replace("7632", "7732"));
    assert!(
        told.starts_with("a key has a value that was never written\nkey 6b32"),
        "{told}"
    );
    let (_, told) = state(&dir, check, &(lines + "try 5 delete 6b31\ndurable 5\n"));
    assert!(
        told.starts_with("a deleted key is back\nkey 6b31"),
        "{told}"
    );
    record(folder, &script);
    let status = i32::from(verdict != "holds");
    let (report, told) = cuts(folder, check, "40", status);
    assert_eq!(report["verdict"] == "holds", status == 0);
    assert!(told.contains(verdict), "{told}");
}

#[test]
fn rocksdb_by_ldb() {
    let make =
        "ldb --db=db --create_if_missing put z z >&2; ldb --db=db delete z >&2; sync db/* db .";
    // `ldb` does not sync its log.
    let put = "ldb --db=db put --hex 0x6b3$i 0x763$i >&2; sync db/* db .";
    judged("rocksdb", &["ldb"], make, put, "holds");
}

#[test]
fn lmdb_by_mdb_dump() {
    let header = "VERSION=3\\nformat=bytevalue\\ntype=btree\\nHEADER=END\\n";
    let make = format!("mkdir db; printf '{header}DATA=END\\n' | mdb_load db >&2; sync db/* db .");
    let put = format!("printf '{header} 6b3%d\\n 763%d\\nDATA=END\\n' $i $i | mdb_load db >&2");
    // LMDB writes a new file in place.
    let verdict = "does not open: mdb_stat: mdb_env_open failed";
    judged("lmdb", &["mdb_dump", "mdb_load"], &make, &put, verdict);
}

#[test]
fn what_is_built_says_of_a_file_that_it_is_no_store() {
    if !has(&["/dev/fuse"]) {
        return;
    }
    for (check, program, make) in [
        ("bbolt", "go", "echo x >a.db; sync a.db ."),
        (
            "leveldb",
            "cc",
            "mkdir db; echo x >db/CURRENT; sync db/CURRENT db .",
        ),
    ] {
        if !has(&[program]) {
            continue;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        record(folder, make);
        let output = treering(folder, &["cuts", "a.rec", "--check", check]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.code() == Some(3) {
            eprintln!("SKIPPED: {check}: {said}");
            continue;
        }
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(
            told.contains(&format!("does not open: {check}: ")),
            "{told}"
        );
    }
}
