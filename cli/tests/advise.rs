//! `treering advise`: what it says is measured, it is as good as a sweep of everything, and what
//! cannot be advised is refused.

mod support;
#[path = "support/sweeps.rs"]
mod sweeps;

use std::path::Path;

use serde_json::Value;
use support::{listing, ok, treering, words};
use sweeps::{rows, stderr};

/// A folder with a trace that is longer than that of a sweep, so that every design writes.
fn place() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = "gen zipf --records 4k --ops 20k --writes 0.5 --value-size 100 -o z.trz";
    ok(folder.path(), &words(trace));
    folder
}

/// The document of an advice.
fn advice(folder: &Path, line: &str) -> Value {
    let said = ok(folder, &words(&format!("advise {line} --json -")));
    serde_json::from_str(&said).expect("JSON")
}

fn flags(row: &Value) -> Vec<String> {
    let options = row["options"].as_object().expect("options");
    let flag = |(flag, value): (&String, &Value)| format!("--{flag}={}", value.as_str().unwrap());
    options.iter().map(flag).collect()
}

#[test]
fn the_advised_design_is_nearly_the_best_of_all_and_measures_what_is_said() {
    let folder = place();
    let folder = folder.path();
    let space = "--tree btree,bf --store in-place,cow,shadow --page 4KiB,8KiB --threshold 0,2KiB";
    let line = format!("z.trz --capacity 8MiB {space} --promote auto --no-what-if");
    let found = advice(folder, &line);
    let best = &found["ranking"][0];
    let measured = best["measured"].as_f64().expect("a measured value");

    // As `replay` says with the same flags.
    let mut again: Vec<String> = vec!["replay".into(), "z.trz".into()];
    again.extend(flags(best));
    again.extend(["--json".into(), "-".into()]);
    let again: Vec<&str> = again.iter().map(String::as_str).collect();
    let report: Value = serde_json::from_str(&ok(folder, &again)).expect("JSON");
    assert_eq!(report["wa"]["device"]["total"].as_f64(), Some(measured));

    // Every combination, replayed.
    let all = format!("sweep z.trz --capacity 8MiB {space} --no-predict --out all");
    ok(folder, &words(&all));
    let totals = rows(&folder.join("all")).into_iter().map(|row| {
        let total = &row["wa.device.total"];
        total.parse::<f64>().unwrap_or_else(|_| panic!("{total}"))
    });
    let least = totals.fold(f64::INFINITY, f64::min);
    assert!(
        measured <= 1.1 * least,
        "{measured} was advised, {least} is the best"
    );
}

/// Settings depend on each other: here a large modification log pays with large pages only, and
/// copying on access with sizes that grow slowly only.
#[test]
fn the_search_finds_the_best_prediction_of_all_combinations() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    ok(
        folder,
        &words("gen ycsb-e --records 4k --ops 16k -o scans.trz"),
    );
    let space = "--tree bf --store shadow --page 4KiB,8KiB,16KiB,32KiB \
                 --threshold 0,1KiB,2KiB,3KiB --promote 0,30 --copy-on-access 0,10 \
                 --relog 0,50 --growth 100,25";
    let line = format!("scans.trz {space} --replays 0 --no-what-if");
    let found = advice(folder, &line);
    let best = found["ranking"][0]["predicted"]["value"].as_f64();
    let all = format!("sweep scans.trz {space} --predict-only --out all");
    ok(folder, &words(&all));
    let all = rows(&folder.join("all"));
    assert_eq!(all.len(), 4 * 4 * 2 * 2 * 2 * 2);
    let totals = all.into_iter().map(|row| {
        let total = &row["wa.predicted.device.total.value"];
        total.parse::<f64>().unwrap_or_else(|_| panic!("{total}"))
    });
    let least = totals.fold(f64::INFINITY, f64::min);
    assert_eq!(best, Some(least), "advised, and least of all");
    let predictions = found["ranking"].as_array().expect("a ranking").len();
    assert!(predictions < 100, "{predictions} predictions of 256");
}

/// A thousand writes are merged in the measured part or behind it, as the checkpoints come.
#[test]
fn a_short_trace_is_told_that_it_needs_a_drain() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    ok(
        folder,
        &words("gen ycsb-b --records 5k --ops 20k -o short.trz"),
    );
    let line = "short.trz --tree bf --threshold 0 --no-what-if --replays 1";
    let said = |more: &str| advice(folder, &format!("{line}{more}"))["warnings"].clone();
    let warnings = said("");
    let asks = |warning: &Value| {
        warning
            .as_str()
            .is_some_and(|text| text.contains("--drain"))
    };
    assert!(
        warnings.as_array().expect("a list").iter().any(asks),
        "{warnings}"
    );
    assert_eq!(said(" --drain"), serde_json::json!([]));
}

#[test]
fn an_advice_is_the_same_each_time_and_leaves_nothing_behind() {
    let folder = place();
    let folder = folder.path();
    let line = "z.trz --tree btree --cache 5% --replays 1";
    assert_eq!(advice(folder, line), advice(folder, line));
    assert_eq!(listing(folder), ["z.trz"]);
    ok(folder, &words(&format!("advise {line} --out kept")));
    assert!(!listing(&folder.join("kept/runs")).is_empty());
}

#[test]
fn constraints_leave_designs_out() {
    let folder = place();
    let folder = folder.path();
    let free = advice(folder, "z.trz --replays 0 --no-what-if");
    let value = |found: &Value| found["ranking"][0]["predicted"]["value"].as_f64().unwrap();
    let narrow = [
        "advise",
        "z.trz",
        "--replays",
        "0",
        "--no-what-if",
        "--json",
        "-",
        "--constraint",
        "wa.host.extra > 1",
    ];
    let narrow: Value = serde_json::from_str(&ok(folder, &narrow)).expect("JSON");
    let extra = |row: &Value| row["parts"]["extra"].as_f64().expect("a part");
    let kept = narrow["ranking"].as_array().expect("rows");
    assert!(kept.iter().all(|row| extra(row) > 1.0));
    assert!(value(&free) < value(&narrow) && extra(&free["ranking"][0]) <= 1.0);

    let none = [
        "advise",
        "z.trz",
        "--replays",
        "0",
        "--constraint",
        "wa.device.total < 0.01",
    ];
    let none = treering(folder, &none);
    assert_eq!(none.status.code(), Some(4));
    assert!(
        stderr(&none).contains("keeps the constraints"),
        "{}",
        stderr(&none)
    );
}

#[test]
fn each_objective_has_an_advice() {
    let folder = place();
    let folder = folder.path();
    for objective in ["wa", "lifetime", "latency", "space", "cost"] {
        let line = format!(
            "z.trz --objective {objective} --daily 1GiB --tree btree,bf --no-what-if --replays 1"
        );
        let found = advice(folder, &line);
        assert_eq!(found["objective"], objective);
        let best = &found["ranking"][0];
        assert!(best["measured"].as_f64() > Some(0.0), "{objective}: {best}");
    }
    let memory = advice(folder, "z.trz --device pm --replays 1");
    assert!(
        memory["ranking"]
            .as_array()
            .is_some_and(|rows| rows.len() >= 4)
    );
}

#[test]
fn what_cannot_be_advised_is_refused() {
    let folder = place();
    let folder = folder.path();
    for (line, status, expected) in [
        ("advise nothing.trz", 2, "No such file"),
        (
            "advise z.trz --html a.html",
            2,
            "applies only to `treering replay`",
        ),
        ("advise z.trz --objective cost", 2, "--daily"),
        ("advise z.trz --objective speed", 2, "possible values"),
        ("advise z.trz --constraint wa", 2, "expected a figure"),
        (
            "advise z.trz --constraint wa.nothing<1 --replays 1",
            2,
            "no figure wa.nothing",
        ),
        ("advise z.trz --cache 5%,5%", 2, "given twice"),
        ("advise z.trz --device floppy", 2, "no such drive"),
        ("advise z.trz --price-flash much", 2, "expected a price"),
        (
            "advise z.trz --device file:x",
            2,
            "expected simulated devices",
        ),
        ("advise z.trz --tree ccl --promote 30", 2, "promote"),
    ] {
        let output = treering(folder, &words(line));
        assert_eq!(
            output.status.code(),
            Some(status),
            "{line}: {}",
            stderr(&output)
        );
        assert!(
            stderr(&output).contains(expected),
            "{line}: {}",
            stderr(&output)
        );
        assert!(output.stdout.is_empty(), "{line}");
    }
    assert_eq!(listing(folder), ["z.trz"]);
}

#[test]
fn a_recording_has_an_advice_on_drives() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let write = "for i in $(seq 60); do dd if=/dev/urandom of=f bs=64k count=4 seek=$((i % 7)) \
                 conv=notrunc 2>/dev/null; done";
    let run = [
        "drive", "run", "--record", "app.rec", "--", "sh", "-c", write,
    ];
    let recorded = treering(folder, &run);
    if recorded.status.code() == Some(3) {
        println!("SKIPPED: {}", stderr(&recorded));
        return;
    }
    assert!(recorded.status.success(), "{}", stderr(&recorded));
    let found = advice(folder, "app.rec --device ssd --op 7%,50% --gc greedy");
    let ranking = found["ranking"].as_array().expect("rows");
    assert!(!ranking.is_empty() && ranking.len() <= 2, "{ranking:?}");
    let measured: Vec<f64> = ranking
        .iter()
        .map(|row| row["measured"].as_f64().unwrap())
        .collect();
    assert!(measured.is_sorted() && measured[0] >= 1.0, "{measured:?}");
    assert!(
        found["use"]
            .as_str()
            .is_some_and(|said| said.starts_with("ssd with"))
    );
    let said = ok(
        folder,
        &words("advise app.rec --device ssd --op 7%,50% --gc greedy"),
    );
    assert!(said.contains("bytes of flash per byte"), "{said}");
    for line in [
        "advise app.rec --objective space",
        "advise app.rec --tree bf",
    ] {
        assert_eq!(
            treering(folder, &words(line)).status.code(),
            Some(2),
            "{line}"
        );
    }
}
