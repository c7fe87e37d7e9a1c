//! The face `files` for a user who is not root: what works, and what is said of what is missing.
//!
//! Each test runs the server in a mount namespace of its own, with a `/dev/fuse` of its own, whose
//! permissions may so be those that it needs. Only root can do that.

mod common;

use std::path::Path;
use std::process::{Command, Output};

use common::has_fuse;

/// Prepares `$1` for somebody who is not root, with `/dev/fuse` of the mode `$2`; then lets him run
/// the script `$4` with the server `$3` copied to where he can run it.
const PREPARE: &str = "set -e; mount -t tmpfs -o dev,suid,mode=755,uid=65534 none \"$1\"; cd \"$1\"; \
    mknod -m \"$2\" fuse c 10 229; mount --bind fuse /dev/fuse; cp \"$3\" server; \
    setpriv --reuid 65534 --regid 65534 --clear-groups mkdir mnt; \
    exec setpriv --reuid 65534 --regid 65534 --clear-groups sh -c \"$4\"";

/// Runs a script as somebody who is not root; `None` if this machine or user cannot.
fn as_nobody(fuse_mode: &str, script: &str) -> Option<Output> {
    let skip = |why: &str| {
        eprintln!("SKIPPED: {why}, so NOTHING WAS TESTED");
        None
    };
    if !has_fuse() {
        return None;
    }
    if !rustix::process::geteuid().is_root() {
        return skip("only root can be somebody else");
    }
    for tool in ["unshare", "setpriv", "fusermount3"] {
        if Command::new(tool).arg("-V").output().is_err() {
            return skip(&format!("this machine has no {tool}"));
        }
    }
    let dir = tempfile::tempdir().expect("a directory");
    let tests = std::env::current_exe().expect("this test");
    let built = tests.parent().and_then(Path::parent).expect("target/debug");
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "sh", "-c", PREPARE, "sh"])
        .arg(dir.path());
    command
        .arg(fuse_mode)
        .arg(built.join("examples/mount_files"))
        .arg(script);
    Some(command.output().expect("unshare"))
}

/// Standard output, standard error, and whether it went well.
fn told(output: &Output) -> (String, String, bool) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        text(&output.stdout),
        text(&output.stderr),
        output.status.success(),
    )
}

/// What the server has to say, in a sentence.
fn refusal(fuse_mode: &str, environment: &str) -> Option<String> {
    let script = format!("{environment} ./server mnt 16 </dev/null");
    let (out, err, good) = told(&as_nobody(fuse_mode, &script)?);
    assert!(!good && out.is_empty(), "{out}{err}");
    assert_eq!(err.lines().count(), 1, "one sentence: {err}");
    Some(err)
}

#[test]
fn who_is_not_root_can_mount_use_and_unmount_a_drive() {
    // The server ends when nobody holds its input any more: not before the last command.
    let script = "{ for i in $(seq 200); do mountpoint -q mnt && break; sleep 0.05; done; \
        echo text >mnt/file && sync mnt/file && stat -c %u mnt/file >uid; true; } | \
        ./server mnt 16 && \
        cat uid && ! mountpoint -q mnt && ls mnt";
    let Some(output) = as_nobody("666", script) else {
        return;
    };
    let (out, err, good) = told(&output);
    assert!(good && err.is_empty(), "{out}{err}");
    assert!(
        out.contains("bytes_written: 5") && out.contains("flushes: 1"),
        "{out}"
    );
    assert!(
        out.ends_with("}\n65534\n"),
        "his file, and nothing below the mount: {out}"
    );
}

#[test]
fn a_busy_drive_of_who_is_not_root_is_detached_and_its_user_named() {
    let script = "{ for i in $(seq 200); do mountpoint -q mnt && break; sleep 0.05; done; \
        echo text >mnt/file; sleep 30 <mnt/file >/dev/null 2>&1 & echo $! >pid; sleep 0.2; } | \
        ./server mnt 16; kill $(cat pid); ! mountpoint -q mnt";
    let Some(output) = as_nobody("666", script) else {
        return;
    };
    let (out, err, good) = told(&output);
    assert!(good, "{out}{err}");
    assert!(
        err.contains("still in use: sleep") && err.contains("/file"),
        "{err}"
    );
}

#[test]
fn a_sentence_says_that_the_device_may_not_be_used() {
    let Some(said) = refusal("600", "") else {
        return;
    };
    assert!(
        said.contains("permission to use /dev/fuse") && said.contains("666"),
        "{said}"
    );
}

#[test]
fn a_sentence_says_that_fusermount_is_missing() {
    let Some(said) = refusal("666", "FUSERMOUNT_PATH=/nowhere/fusermount3") else {
        return;
    };
    assert!(
        said.contains("fusermount3: not found") && said.contains("fuse3"),
        "{said}"
    );
}

#[test]
fn a_sentence_says_that_mounting_is_not_permitted() {
    // As in a container that may not mount: `fusermount3` without the rights of root.
    let copy = "mkdir own; cp \"$(command -v fusermount3)\" own; \
        FUSERMOUNT_PATH=$PWD/own/fusermount3";
    let Some(said) = refusal("666", copy) else {
        return;
    };
    assert!(
        said.contains("permission to mount") && said.contains("SYS_ADMIN"),
        "{said}"
    );
}
