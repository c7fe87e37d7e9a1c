//! Statistics that are saved beside a trace: the same predictions without a pass over the trace,
//! and files that do not fit are as if they were not there.

mod support;

use std::path::Path;

use support::{listing, ok, treering, words};

/// Makes a trace that puts some of its keys only after it has read them.
fn trace(folder: &Path, seed: u64) {
    let zipf =
        format!("gen zipf --records 2000 --ops 20000 --scans 0.1 --deletes 0.1 --seed {seed}");
    ok(folder, &words(&format!("{zipf} -o z.trz")));
}

/// The report of a command, and its warnings about statistics.
fn report(folder: &Path, line: &str) -> (String, String) {
    let output = treering(folder, &words(&format!("{line} --json -")));
    assert_eq!(output.status.code(), Some(0), "{line}");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    let warnings = text(output.stderr);
    let warnings = (warnings.lines()).filter(|line| line.contains(".stats: "));
    let warnings: String = warnings.map(|line| format!("{line}\n")).collect();
    (text(output.stdout), warnings)
}

fn stats(folder: &Path) -> Vec<u8> {
    std::fs::read(folder.join("z.trz.stats")).expect("a file")
}

#[test]
fn predictions_and_replays_are_the_same_with_saved_statistics() {
    for preload in ["auto", "all"] {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        trace(folder, 1);
        let lines = [
            "predict z.trz --cache 5%,20%",
            "predict z.trz --tree bf --effort fast",
            "predict z.trz --model independent",
            "predict z.trz --device csd --tree bminus --page 8KiB",
            "replay z.trz",
        ]
        .map(|line| format!("{line} --preload {preload}"));
        let before: Vec<_> = lines.iter().map(|line| report(folder, line)).collect();
        assert_eq!(listing(folder), ["z.trz"], "nothing is saved unless asked");
        let saving = format!("{} --save-statistics", lines[0]);
        assert_eq!(report(folder, &saving).0, before[0].0);
        assert_eq!(listing(folder), ["z.trz", "z.trz.stats"]);
        let file = stats(folder);
        for (line, before) in lines.iter().zip(before) {
            assert_eq!(report(folder, line), before, "{line}");
        }
        report(folder, &saving);
        assert_eq!(stats(folder), file, "the file is as it was");
    }
}

#[test]
fn the_trace_is_not_read_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    trace(folder, 1);
    let read = "predict z.trz --statistics a.stats";
    let (saved, _) = report(folder, &format!("{read} --save-statistics"));
    // The statistics of another trace with the hash of this one.
    trace(folder, 2);
    report(
        folder,
        "predict z.trz --statistics b.stats --save-statistics",
    );
    let [mut a, b] =
        ["a.stats", "b.stats"].map(|name| std::fs::read(folder.join(name)).expect("read"));
    a[8..24].copy_from_slice(&b[8..24]);
    let mut hash = xxhash_rust::xxh3::Xxh3::new();
    hash.update(&a[..48]);
    hash.update(&a[56..]);
    a[48..56].copy_from_slice(&hash.digest().to_le_bytes());
    std::fs::write(folder.join("a.stats"), a).expect("written");
    let configurations = |report: &str| {
        let report: serde_json::Value = serde_json::from_str(report).expect("JSON");
        report["configurations"].clone()
    };
    let (found, _) = report(folder, read);
    assert_eq!(configurations(&found), configurations(&saved));
}

#[test]
fn statistics_of_another_trace_or_of_other_options_are_ignored() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    trace(folder, 1);
    report(folder, "predict z.trz --save-statistics");
    for (option, fits) in [
        ("--seed 3", true),
        ("--page 16KiB", true),
        ("--clients 4", true),
        ("--limit 15000", false),
        ("--warmup 0.5", false),
        ("--preload all", false),
        ("--tree ccl", false),
    ] {
        let (_, warnings) = report(folder, &format!("predict z.trz {option}"));
        assert_eq!(warnings.is_empty(), fits, "{option}: {warnings}");
        assert!(fits || warnings.contains("z.trz.stats: ignored, because it was made with other"));
    }
    trace(folder, 2);
    let with = report(folder, "predict z.trz");
    assert_eq!(with.1.lines().count(), 1);
    assert!(
        with.1.contains("ignored, because the trace has changed"),
        "{}",
        with.1
    );
    let (_, warnings) = report(folder, "predict z.trz --save-statistics");
    assert!(
        warnings.contains("replaced, because the trace has changed"),
        "{warnings}"
    );
    assert_eq!(report(folder, "predict z.trz"), (with.0, String::new()));
}

#[test]
fn damaged_statistics_are_ignored() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    trace(folder, 1);
    let (whole, _) = report(folder, "predict z.trz --save-statistics");
    let file = stats(folder);
    let damaged = |bytes: &[u8], how: &str| {
        std::fs::write(folder.join("z.trz.stats"), bytes).expect("written");
        let (found, warnings) = report(folder, "predict z.trz");
        assert_eq!(found, whole, "{how}");
        assert_eq!(warnings.lines().count(), 1, "{how}: {warnings}");
        assert!(
            warnings.contains("z.trz.stats: ignored, because"),
            "{how}: {warnings}"
        );
    };
    for end in [0, 7, 55, 56, file.len() / 2, file.len() - 1] {
        damaged(&file[..end], &format!("cut to {end} bytes"));
    }
    for at in [0, 9, 20, 30, 48, 56, file.len() / 2, file.len() - 1] {
        let mut bytes = file.clone();
        bytes[at] ^= 0x10;
        damaged(&bytes, &format!("a bit of byte {at}"));
    }
    damaged(&[&file[..], b"x"].concat(), "a byte more");
}

#[test]
fn a_folder_without_write_access_is_refused_with_one_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    trace(folder, 1);
    let refuses = |file: &str, flag: &str, why: &str| {
        let line = format!("predict z.trz --statistics {file} {flag}");
        let output = treering(folder, &words(line.trim_end()));
        let error = String::from_utf8(output.stderr).expect("text");
        assert_eq!(
            (output.status.code(), error.lines().count()),
            (Some(2), 1),
            "{error}"
        );
        assert!(error.contains(why) && output.stdout.is_empty(), "{error}");
    };
    refuses(
        "none/z.stats",
        "--save-statistics",
        "--save-statistics: none/z.stats: ",
    );
    refuses(
        "z.trz/z.stats",
        "--save-statistics",
        "--save-statistics: z.trz/z.stats: ",
    );
    refuses(
        "none.stats",
        "",
        "--statistics: none.stats: there is no such file",
    );
    let closed = folder.join("closed");
    std::fs::create_dir(&closed).expect("a folder");
    let mut access = std::fs::metadata(&closed).expect("a folder").permissions();
    access.set_readonly(true);
    std::fs::set_permissions(&closed, access).expect("changed");
    // Root may write anywhere.
    if std::fs::write(closed.join("probe"), b"").is_err() {
        refuses("closed/z.stats", "--save-statistics", "permission denied");
        assert_eq!(listing(&closed), [""; 0]);
    }
    let left = listing(folder);
    assert_eq!(left, ["closed", "z.trz"]);
}
