//! `treering layout` and `replay --layout`, tested through the command line.

mod support;

use serde_json::Value;
use support::{ok, treering, words};

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../traces/samples/zipf.trz");

const NAMES: [&str; 9] = [
    "slotted",
    "compact",
    "baseline",
    "prefix",
    "hints",
    "fingerprint",
    "semi-dense",
    "fully-dense",
    "adaptive",
];

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

/// Layouts by name.
fn rows(document: &Value) -> Vec<(&str, &Value)> {
    assert_eq!(document["schema"], "treering.layout/1");
    assert_eq!(document["complete"], true);
    let rows = document["layouts"].as_array().expect("a list");
    let name = |row: &'_ Value| row["layout"].as_str().expect("a name").len();
    assert!(rows.iter().all(|row| name(row) > 0));
    let named = rows
        .iter()
        .map(|row| (row["layout"].as_str().unwrap_or_default(), row));
    named.collect()
}

fn bytes(row: &Value) -> f64 {
    row["bytes_per_record"].as_f64().expect("a number")
}

#[test]
fn fully_dense_leaves_take_least_space_for_dense_keys() {
    let folder = tempfile::tempdir().expect("a folder");
    let args = words("layout dense --records 20k --order sorted --json -");
    let document = json(&ok(folder.path(), &args));
    let rows = rows(&document);
    let names: Vec<_> = rows.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, NAMES);
    let of = |name| rows.iter().find(|(n, _)| *n == name).expect("a row").1;
    assert!(bytes(of("fully-dense")) * 4.0 < bytes(of("hints")));
    assert_eq!(bytes(of("adaptive")), bytes(of("fully-dense")));
    assert_eq!(of("fully-dense")["kinds"]["fully-dense"]["leaves"], 40);
    for (name, row) in rows {
        let predicted = row["predicted_bytes_per_record"]
            .as_f64()
            .expect("a number");
        assert!((predicted / bytes(row) - 1.0).abs() < 0.01, "{name}");
        let leaves = |kinds: &Value| -> f64 {
            let kinds = kinds.as_object().expect("by layout").values();
            kinds.filter_map(|kind| kind["leaves"].as_f64()).sum()
        };
        let all = row["leaves"].as_f64().expect("a number");
        assert_eq!(leaves(&row["kinds"]), all, "{name}");
        assert!((leaves(&row["predicted_kinds"]) / all - 1.0).abs() < 0.01);
    }
}

#[test]
fn keys_may_come_from_a_file_or_a_trace() {
    let folder = tempfile::tempdir().expect("a folder");
    let urls: String = (0..3000)
        .map(|n| format!("https://example.org/{}/{n}\n", n % 7))
        .collect();
    std::fs::write(folder.path().join("urls.txt"), urls).expect("writes");
    let text = ok(folder.path(), &["layout", "urls.txt"]);
    assert!(text.contains("urls.txt: 3000 records"), "{text}");
    assert!(NAMES.iter().all(|name| text.contains(name)), "{text}");
    let document = json(&ok(
        folder.path(),
        &[
            "layout",
            "--trace",
            SAMPLE,
            "--records",
            "2000",
            "--json",
            "-",
        ],
    ));
    assert_eq!(rows(&document).len(), NAMES.len());
    // The first 2000 puts have 2000 distinct keys.
    let whole = json(&ok(
        folder.path(),
        &["layout", "--trace", SAMPLE, "--json", "-"],
    ));
    assert_eq!(
        (&whole["records"], &whole["puts"]),
        (&5000.into(), &25_000.into())
    );
    assert_eq!(whole["estimated"], false);
    let text = ok(folder.path(), &["layout", "--trace", SAMPLE]);
    assert!(
        text.contains("zipf.trz: 5000 records") && !text.contains(" ≈"),
        "{text}"
    );
}

#[test]
fn a_sample_predicts_the_space_and_charts_are_complete() {
    let folder = tempfile::tempdir().expect("a folder");
    let all = "layout sparse --records 100k --sample 20% --html page.html --svg all.svg --json -";
    let args: Vec<_> = all.split(' ').collect();
    let document = json(&ok(folder.path(), &args));
    let sampled = document["sampled_records"].as_u64().expect("a number");
    assert!((10_000..40_000).contains(&sampled), "{sampled}");
    assert_eq!(document["estimated"], true);
    let text = "layout sparse --records 100k --sample 20%";
    let text = ok(folder.path(), &text.split(' ').collect::<Vec<_>>());
    let marked = text.lines().filter(|line| line.contains('≈')).count();
    assert!(marked > NAMES.len(), "{text}");
    for (name, row) in rows(&document) {
        let off = row["error"].as_f64().expect("a number");
        assert!(off != 0.0 && off.abs() < 0.1, "{name}: {off}");
    }
    let read = |file: &str| std::fs::read_to_string(folder.path().join(file)).expect("is there");
    let (page, svg) = (read("page.html"), read("all.svg"));
    assert!(page.starts_with("<!doctype html>") && page.trim_end().ends_with("</html>"));
    // Two charts, each for wide and for narrow pages.
    assert!(svg.starts_with("<svg") && page.matches("<svg").count() == 4);
    for name in NAMES {
        assert!(page.contains(name) && svg.contains(name), "{name}: {page}");
    }
}

#[test]
fn compressed_key_files_are_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let lines: String = (0..500).map(|n| format!("key {n}\n")).collect();
    let compressed = zstd::encode_all(lines.as_bytes(), 1).expect("compresses");
    std::fs::write(folder.path().join("keys.txt.zst"), compressed).expect("writes");
    let text = ok(folder.path(), &["layout", "keys.txt.zst"]);
    assert!(text.contains("keys.txt.zst: 500 records"), "{text}");
}

#[test]
fn invalid_layout_arguments_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("empty.txt"), "\n").expect("writes");
    for (args, status, why) in [
        ("layout", 2, "KEYFILE"),
        ("layout nosuch.txt", 2, "nosuch.txt"),
        ("layout empty.txt", 2, "empty.txt"),
        ("layout dense --page 5KiB", 2, "--page"),
        ("layout dense --page 64KiB", 2, "--page"),
        (
            "layout dense --records 10 --value-size 60KiB",
            2,
            "does not fit",
        ),
        ("layout dense --records 10 --sample 0", 2, "--sample"),
        ("layout dense --records 10 --html -", 2, "--html"),
        ("layout dense --records 10 --svg a --html a", 2, "different"),
        ("layout empty.txt --svg empty.txt", 2, "--svg"),
    ] {
        let args: Vec<_> = args.split(' ').collect();
        let run = treering(folder.path(), &args);
        let stderr = String::from_utf8_lossy(&run.stderr);
        assert_eq!(run.status.code(), Some(status), "{args:?}: {stderr}");
        assert!(stderr.contains(why), "{args:?}: {stderr}");
    }
}

#[test]
fn replays_accept_any_layout_and_default_to_adaptive() {
    let folder = tempfile::tempdir().expect("a folder");
    let replayed = |how: &[&str], layout: &str| {
        let args = [&["replay", SAMPLE, "--seed", "5", "--json", "-"], how].concat();
        let report = json(&ok(folder.path(), &args));
        assert_eq!(report["options"]["layout"], layout, "{how:?}");
        assert_eq!(report["complete"], true);
    };
    for layout in ["hints", "fingerprint", "fully-dense", "adaptive"] {
        replayed(&["--layout", layout], layout);
    }
    replayed(&["--layout", "heads"], "slotted");
    replayed(&[], "adaptive");
    replayed(&["--tree", "bminus", "--device", "csd"], "slotted");
    replayed(&["--tree", "bf"], "compact");
}

/// A report on a single layout must not suggest that the others need more space.
#[test]
fn all_layouts_with_equal_space_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let said = |args: &[&str]| {
        let said = ok(folder, &[&["layout"], args].concat());
        let line = said.lines().find(|line| line.starts_with("Least space: "));
        line.expect("a verdict").to_owned()
    };
    let dense = said(&words("dense --records 20k --order sorted"));
    assert_eq!(dense, "Least space: fully-dense, adaptive (equal).");
    std::fs::write(folder.join("few"), "one\ntwo\nthree\n").expect("written");
    let few = said(&["few"]);
    assert!(
        NAMES.iter().all(|name| few.contains(name)),
        "three records must fit into one page of any layout: {few}"
    );
    let sparse = said(&["sparse", "--records", "20k"]);
    assert_eq!(sparse, "Least space: baseline, prefix (equal).");
}
