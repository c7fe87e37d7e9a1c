//! The user's command: its surroundings, how it ended, and what it left behind.

use std::cell::Cell;
use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

use treering_drive::DriveError;
use treering_drive::program::{Ended, Exit, run};

fn sh(dir: &Path, script: &str, signal: &dyn Fn() -> Option<i32>) -> Ended {
    let command: Vec<OsString> = ["sh", "-c", script].map(OsString::from).to_vec();
    let env = [("EXTRA".into(), "more".into())];
    run(&command, dir, Some(Path::new("/acks")), &env, signal).expect("runs")
}

#[test]
fn a_command_finds_its_directory_and_variables() {
    let dir = tempfile::tempdir().expect("dir");
    let dir = dir.path().canonicalize().expect("there");
    let script = "echo $TREERING_DIR $TREERING_ACKS $EXTRA $(pwd) > out; exit 3";
    let ended = sh(&dir, script, &|| None);
    assert_eq!(ended.exit, Exit::Status(3));
    assert_eq!(ended.left, Vec::<String>::new());
    let said = std::fs::read_to_string(dir.join("out")).expect("written");
    assert_eq!(said, format!("{0} /acks more {0}\n", dir.display()));
}

#[test]
fn time_and_memory_are_those_of_the_command_and_its_children() {
    let script = "dd if=/dev/zero of=/dev/null bs=50M count=60 status=none; sleep 0.2";
    let ended = sh(Path::new("/"), script, &|| None);
    assert!(ended.wall_s > 0.2 && ended.cpu_s > 0.0, "{ended:?}");
    assert!(ended.max_rss_kib > 50 << 10, "{ended:?}");
}

/// Not SIGINT: where a shell has started the tests in the background, it is ignored, and shells
/// cannot trap it.
#[test]
fn a_signal_is_passed_on_once() {
    let dir = tempfile::tempdir().expect("dir");
    let script = "trap 'echo x >> got' USR1; touch ready; while :; do sleep 0.1; \
        test -e got && sleep 0.5 && exit 4; done";
    let began = Instant::now();
    let signal = || dir.path().join("ready").exists().then_some(libc::SIGUSR1);
    let ended = sh(dir.path(), script, &signal);
    assert_eq!(ended.exit, Exit::Status(4), "{ended:?}");
    assert_eq!(
        std::fs::read_to_string(dir.path().join("got")).expect("written"),
        "x\n"
    );
    assert!(began.elapsed() < Duration::from_secs(9));
    let asked = Cell::new(0);
    let later = || {
        asked.set(asked.get() + 1);
        (asked.get() > 3).then_some(libc::SIGTERM)
    };
    let ended = sh(dir.path(), "sleep 60", &later);
    assert_eq!(ended.exit, Exit::Signal(libc::SIGTERM));
}

#[test]
fn what_runs_in_the_background_is_ended_and_named() {
    let dir = tempfile::tempdir().expect("dir");
    let began = Instant::now();
    let script = "sleep 61 & (trap 'echo bye > bye; exit' TERM; while :; do sleep 0.1; done) & \
        sleep 0.2";
    let ended = sh(dir.path(), script, &|| None);
    assert_eq!(ended.exit, Exit::Status(0));
    assert!(
        ended
            .left
            .iter()
            .any(|name| name.starts_with("sleep (process ")),
        "{ended:?}"
    );
    assert!(dir.path().join("bye").exists(), "SIGTERM comes first");
    // One that does not listen is killed.
    let ended = sh(dir.path(), "(trap '' TERM; sleep 62) & sleep 0.2", &|| None);
    assert!(!ended.left.is_empty(), "{ended:?}");
    assert!(began.elapsed() < Duration::from_secs(20));
    let processes = std::process::Command::new("ps")
        .args(["ax", "-o", "args"])
        .output();
    let processes = String::from_utf8_lossy(&processes.expect("ps").stdout).into_owned();
    assert!(
        !processes
            .lines()
            .any(|p| p == "sleep 61" || p == "sleep 62"),
        "{processes}"
    );
}

#[test]
fn a_command_that_does_not_exist_is_one_sentence() {
    let command = [OsString::from("/no/such/program")];
    let error = run(&command, Path::new("/"), None, &[], &|| None).expect_err("missing");
    assert!(matches!(error, DriveError::Missing { .. }));
    let said = "the command /no/such/program: not found; it is neither a file nor in $PATH";
    assert_eq!(error.to_string(), said);
}
