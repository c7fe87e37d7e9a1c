use super::*;
use crate::peers::measure::Traffic;
use crate::peers::workload::Workload;

fn row(engine: &str, workload: Workload, ops_per_second: f64) -> Row {
    Row {
        engine: engine.into(),
        durability: Durability::Relaxed,
        workload,
        threads: 1,
        void: None,
        ops: 1000,
        writes: 500,
        seconds: 1.0,
        ops_per_second,
        p50_ns: 900,
        p99_ns: 2_500_000,
        p999_ns: 1,
        max_ns: 1,
        user_bytes: 16_000,
        device: None,
        drained: None,
        logged_bytes: None,
        process: None,
        counters: String::new(),
    }
}

fn report(rows: Vec<Row>) -> Report {
    let mut report = Report::new(Setup {
        records: 5_000_000,
        cache_bytes: 32 << 20,
        group: 64,
        seconds: 1.0,
        warm_up_seconds: 0.5,
        ops: None,
        drain: rows.iter().any(|row| row.drained.is_some()),
        machine: "a machine".into(),
    });
    report.rows = rows;
    report.finish();
    report
}

#[test]
fn a_mean_is_geometric_and_names_the_least_row() {
    let report = report(vec![
        row("bf", Workload::Read, 200.0),
        row("redb", Workload::Read, 100.0),
        row("bf", Workload::Scan, 800.0),
        row("redb", Workload::Scan, 100.0),
        row("bf", Workload::Update, 100.0),
    ]);
    let of = |mean: &&Mean| mean.ours == "bf" && mean.other == "redb";
    let mean = report.means().iter().find(of).expect("both have rows");
    assert!((mean.ratio - 4.0).abs() < 1e-9, "{mean:?}");
    assert_eq!((mean.least, mean.rows, mean.left_out), (2.0, 2, 1));
    assert_eq!(mean.least_at, "read Zipf 0.9, 1 thread");
}

#[test]
fn a_void_row_has_no_figures_and_counts_in_no_mean() {
    let mut wrong = row("redb", Workload::Read, 123_456.0);
    wrong.void = Some("wrong answer: record 7".into());
    let report = report(vec![row("bf", Workload::Read, 200.0), wrong]);
    assert_eq!(report.means(), &[]);
    let text = report.to_string();
    assert!(!text.contains("123,456"), "{text}");
    let told = "VOID: redb, read Zipf 0.9, 1 thread: wrong answer: record 7";
    assert!(text.contains(told), "{text}");
}

#[test]
fn the_json_says_what_it_is() {
    let report = report(vec![row("bf", Workload::Read, 200.0)]);
    let json = serde_json::to_value(&report).expect("numbers and strings");
    assert_eq!(json["schema"], SCHEMA);
    assert_eq!(json["version"], SCHEMA_VERSION);
    assert_eq!(json["rows"][0]["workload"], "read");
    assert_eq!(json["engines"][0]["name"], "bf");
}

#[test]
fn bytes_are_compared_when_drained_with_the_log_and_without() {
    let with = |engine: &str, workload, written, log| {
        let mut row = row(engine, workload, 100.0);
        row.device = Some(Traffic {
            written: 16_000,
            read: 0,
        });
        row.drained = Some(Traffic { written, read: 0 });
        row.logged_bytes = log;
        row
    };
    let report = report(vec![
        with("bf", Workload::Update, 64_000, Some(16_000)),
        with("bf-tree std", Workload::Update, 96_000, Some(0)),
        with("redb", Workload::Update, 32_000, None),
        with("bf", Workload::Mixed, 48_000, Some(16_000)),
        with("bf-tree std", Workload::Mixed, 24_000, Some(0)),
    ]);
    let found = |other: &str| {
        let of = |bytes: &&Bytes| bytes.ours == "bf" && bytes.other == other;
        report.bytes.iter().find(of).expect("both have rows")
    };
    let std = found("bf-tree std");
    assert!((std.all.mean - (2.0 / 3.0 * 2.0_f64).sqrt()).abs() < 1e-9);
    let pages = std.pages.as_ref().expect("both say what their log is");
    assert!(
        (pages.mean - (0.5 * 4.0 / 3.0_f64).sqrt()).abs() < 1e-9,
        "{pages:?}"
    );
    assert_eq!(
        (pages.rows, pages.most_at.as_str()),
        (2, "50:50 Zipf 0.9, 1 thread")
    );
    assert_eq!((found("redb").all.mean, &found("redb").pages), (2.0, &None));
    let text = report.to_string();
    assert!(text.contains("drained     log  the rest"), "{text}");
    assert!(text.contains("       4.0     1.0       3.0"), "{text}");
}

#[test]
fn figures_are_scaled_for_reading() {
    assert_eq!(thousands(1_234_567), "1,234,567");
    assert_eq!(thousands(12), "12");
    assert_eq!(time(2_500_000), "2.5 ms");
    assert_eq!(time(999), "999 ns");
}

#[test]
fn figures_of_a_disturbed_device_are_marked() {
    let traffic = |written| Some(Traffic { written, read: 0 });
    let mut row = row("bf", Workload::Update, 200.0);
    (row.device, row.process) = (traffic(3 << 30), traffic(1 << 30));
    assert!(!row.is_disturbed());
    row.device = traffic(5 << 30);
    assert!(row.is_disturbed());
    let text = report(vec![row]).to_string();
    assert!(text.contains("0 B*"), "{text}");
}
