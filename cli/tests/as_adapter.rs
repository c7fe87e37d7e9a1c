//! `treering oracle --as-adapter`: our own trees, judged like any other engine.

mod support;

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use support::{has, treering};

fn oracle(folder: &Path, args: &[&str]) -> Output {
    treering(folder, &[&["oracle"], args].concat())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn adapter(tree: &str, more: &str) -> String {
    let this = env!("CARGO_BIN_EXE_treering");
    format!("'{this}' oracle --tree {tree} --as-adapter {more}")
}

/// What the oracle says of the tree; it must find nothing.
fn holds(tree: &str, more: &str, args: &[&str]) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let adapter = adapter(tree, more);
    let output = oracle(folder.path(), &[&["--exec", &adapter], args].concat());
    let said = text(&output.stdout) + &text(&output.stderr);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{tree} {more} {args:?}: {said}"
    );
    said
}

#[test]
fn each_tree_of_pages_keeps_to_the_protocol() {
    for tree in ["btree", "bf", "bminus", "btree+cow"] {
        let said = holds(tree, "--durability deferred", &["--self-test"]);
        assert!(said.contains("many requests ahead    holds"), "{said}");
    }
}

#[test]
fn programs_hold_also_if_the_process_is_killed() {
    for tree in ["btree", "bf+cow", "bminus"] {
        let short = ["--runs", "2", "--ops", "300"];
        let mode = |mode| [&["--mode", mode][..], &short].concat();
        holds(tree, "--durability deferred", &mode("differential"));
        holds(tree, "--durability deferred", &mode("crash"));
        holds(tree, "--durability commit", &mode("crash"));
    }
}

#[test]
fn what_was_acknowledged_survives_power_cuts_of_the_file() {
    if !has(&["/dev/fuse"]) {
        return;
    }
    let cuts = [
        "--fs", "files", "--runs", "1", "--ops", "12", "--states", "60",
    ];
    // The sparse log never rewrites a block, so that no acknowledged write can be torn.
    holds("btree+cow+sparse", "--log-size 96KiB", &cuts);
}

#[test]
fn what_cannot_be_served_is_one_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    for (args, expected) in [
        (&["--tree", "ccl"][..], "lives in persistent memory"),
        (&["--tree", "oak"], "--tree oak"),
        (
            &["--tree", "btree", "--log-size", "4KiB"],
            "--log-size: 4096 bytes",
        ),
        (
            &["--tree", "btree", "--cache", "4KiB"],
            "--cache: 4096 bytes",
        ),
        (&[], "--tree"),
    ] {
        let output = oracle(folder.path(), &[args, &["--as-adapter"]].concat());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(expected), "{args:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{args:?}: {said}");
    }
    let mut child = Command::new(env!("CARGO_BIN_EXE_treering"))
        .args(["oracle", "--tree", "btree", "--as-adapter"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(b"garbage\n").expect("it reads");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("line 1 of the requests"), "{said}");
}
