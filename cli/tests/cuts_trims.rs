//! Trims on real files: what a power cut leaves of blocks that the engine's file device trims and
//! writes again is what the specs' device allows (`specs/contract/Device.tla`,
//! `specs/page_shadowing/PageImages.tla`). Tests that need FUSE or root skip loudly without it.

mod support;

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;
use support::{has, treering};
use treering_engine::device::{BlockDevice, FileDevice, FileIo};
use treering_engine::{BLOCK_SIZE, IoClass, Lba};

/// The variable that makes [`the_program_that_is_recorded`] run, and says which one.
const PROGRAM: &str = "TREERING_TRIMS";

/// The recorded program: three blocks are durable; two of them are trimmed, and the first is
/// written again.
#[test]
#[ignore = "the other tests record it on a drive"]
fn the_program_that_is_recorded() {
    let which = std::env::var(PROGRAM).expect("which program");
    let acks = std::env::var("TREERING_ACKS").expect("a file");
    let say = |what: &str| {
        use std::io::Write;
        let file = std::fs::File::options()
            .append(true)
            .create(true)
            .open(&acks);
        writeln!(file.expect("opens"), "{what}").expect("room");
    };
    let device = FileDevice::create_for("db", 3, FileIo::Buffered).expect("a device");
    let write = |lba: u64, byte: u8| {
        let written = device.write(Lba(lba), &[byte; BLOCK_SIZE], IoClass::Page);
        written.expect("written");
    };
    let trim = |lba: u64, blocks: u64| {
        device.trim(Lba(lba), blocks).expect("a hint");
        if which != "waits" {
            device.reclaim(Lba(0)..Lba(0));
        }
    };
    (0..3).for_each(|lba| write(lba, b'a'));
    device.flush().expect("flushed");
    say("old");
    trim(0, 2);
    write(0, b'b');
    device.flush().expect("flushed");
    say("new");
    match &*which {
        // The hole is punched only now; the block that was written again is none.
        "waits" => {
            device.reclaim(Lba(0)..Lba(0));
            device.flush().expect("flushed");
        }
        // A seeded bug: what is in use is trimmed.
        "late" => trim(0, 1),
        _ => {}
    }
}

/// Judges the file that is left, and notes it in `SEEN`: of each block the bytes that it has.
const CHECKER: &str = r#"
    last=$(tail -n 1 "$TREERING_ACKS" 2>/dev/null)
    [ -n "$last" ] || exit 0
    [ "$(wc -c <db)" = 12288 ] || { echo 'the file is not whole'; exit 1; }
    state=
    for i in 0 1 2; do
        bytes=$(dd if=db bs=4096 skip=$i count=1 status=none | tr '\0' . | fold -w 1 | sort -u)
        state="$state$(echo "$bytes" | tr -d '\n') "
    done
    echo "$last: $state" >>"$SEEN"
    case "$last: $state" in
        "old: "[a.b]" "[a.]" a "|"new: b "NEW" a ") exit 0;;
    esac
    echo "$state"; exit 1"#;

/// Records a program and cuts the recording. Returns the report and the states that were seen.
fn cut(fs: &str, which: &str, states: &str) -> (i32, Value, BTreeSet<String>) {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let program = std::env::current_exe().expect("this program");
    let program = program.to_str().expect("a name");
    let mut run = vec!["drive", "run", "--fs", fs, "--record", "a.rec"];
    run.push("--no-predict");
    match fs {
        "files" => run.extend(["--page-cache", "write-through"]),
        "xfs" => run.extend(["--capacity", "400MiB"]),
        "btrfs" => run.extend(["--capacity", "256MiB"]),
        _ => run.extend(["--capacity", "64MiB"]),
    }
    let program =
        format!("{PROGRAM}={which} {program} --ignored --exact the_program_that_is_recorded >&2");
    run.extend(["--", "sh", "-c", &program]);
    support::ok(folder, &run);
    let seen = folder.join("seen");
    // A hole that waits is there or not.
    let new = if which == "waits" { "[a.]" } else { "." };
    let checker = CHECKER.replace("NEW", new);
    let checker = format!("SEEN={}; {checker}", path(&seen));
    let mut args = vec!["cuts", "a.rec", "--json", "cuts.json", "--torn", "4KiB"];
    args.extend(["--states", states, "--", "sh", "-c", &checker]);
    let output = treering(folder, &args);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let json = std::fs::read_to_string(folder.join("cuts.json"));
    let json = json.unwrap_or_else(|e| panic!("{e}: {said}"));
    let seen = std::fs::read_to_string(seen).unwrap_or_default();
    (
        output.status.code().unwrap_or(-1),
        serde_json::from_str(&json).expect("JSON"),
        seen.lines()
            .map(|line| line.trim_end().to_owned())
            .collect(),
    )
}

fn path(path: &Path) -> &str {
    path.to_str().expect("a name")
}

fn set(states: &[&str]) -> BTreeSet<String> {
    states.iter().map(ToString::to_string).collect()
}

#[test]
fn after_a_power_cut_a_trimmed_block_is_old_or_zeros_until_it_is_written() {
    if !has(&["/dev/fuse"]) {
        return;
    }
    let (status, report, seen) = cut("files", "punches", "400");
    assert_eq!(status, 0, "{report}");
    // Block by block, in any order, whatever comes after it: `Survivors` of each place.
    let old = ["a a", "a .", ". a", ". .", "b a", "b ."].map(|s| format!("old: {s} a"));
    let mut all: BTreeSet<String> = old.into();
    all.insert("new: b . a".into());
    assert_eq!(seen, all);
}

#[test]
fn a_hole_that_is_punched_late_never_takes_what_was_written_since() {
    if !has(&["/dev/fuse"]) {
        return;
    }
    let (status, report, seen) = cut("files", "waits", "400");
    assert_eq!(status, 0, "{report}");
    let expected = ["old: a a a", "old: b a a", "new: b a a", "new: b . a"];
    assert_eq!(seen, set(&expected));
}

#[test]
fn a_trim_of_what_is_in_use_is_found() {
    if !has(&["/dev/fuse"]) {
        return;
    }
    let (status, report, seen) = cut("files", "late", "400");
    assert_eq!(status, 1, "{report}");
    assert!(seen.contains("new: . . a"), "{seen:?}");
}

#[test]
fn below_real_file_systems_trims_are_no_more_than_that() {
    if !has(&["/dev/fuse", "/dev/loop-control", "root"]) {
        return;
    }
    for fs in ["ext4", "xfs", "btrfs"] {
        let (status, report, seen) = cut(fs, "punches", "80");
        assert_eq!(status, 0, "{fs}: {report}");
        assert!(seen.contains("new: b . a"), "{fs}: {seen:?}");
        assert!(
            seen.iter().any(|s| s.starts_with("old: ")),
            "{fs}: {seen:?}"
        );
        let (status, report, _) = cut(fs, "late", "80");
        assert_eq!(status, 1, "{fs}: {report}");
    }
}
