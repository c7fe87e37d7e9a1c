//! A measured value outside the interval of its prediction is named in every rendering.

use super::{
    DeviceWa, HostReport, HostWa, PredictedValue, ReplayReport, WaReport, WaSide, html, text,
};
use crate::predict::Model;

/// A run whose log is twice what was predicted, within five per cent; the rest is as predicted.
fn report(half_width: Option<f64>) -> ReplayReport {
    let value = |value| PredictedValue::new(value, half_width, Model::Played);
    let predicted = WaSide {
        host: HostWa {
            log: value(1.0),
            page: value(8.0),
            extra: value(0.1),
            total: value(10.1),
        },
        device: Some(DeviceWa {
            total: value(20.0),
            gc: value(9.9),
            nand_over_host: value(2.0),
        }),
        csd: None,
    };
    let mut error = predicted.values();
    error.host.log = 1.0;
    let some = |e: HostWa<f64>| HostWa {
        log: Some(e.log),
        ..HostWa::default()
    };
    let report = ReplayReport {
        wa: WaReport {
            host: HostReport {
                by_class: HostWa {
                    log: 2.0,
                    // Below 3 % of the total: of no account.
                    extra: 0.2,
                    total: 10.2,
                    page: 8.0,
                },
                page_causes: None,
            },
            device: Some(DeviceWa {
                total: 20.1,
                gc: 9.9,
                nand_over_host: 2.01,
            }),
            error: Some(WaSide {
                host: some(error.host),
                device: None,
                csd: None,
            }),
            predicted: Some(predicted),
            ..WaReport::default()
        },
        ..ReplayReport::default()
    };
    report.with_outside()
}

const LEGEND: &str = "!: measured outside it";

#[test]
fn what_is_outside_its_interval_is_named_in_text_page_and_json() {
    let report = report(Some(0.05));
    assert_eq!(report.outside, ["host.log"]);
    let text = text::render(&report);
    let row = text.lines().find(|line| line.contains("host log"));
    let row = row.expect("a row of the log");
    assert!(
        row.contains("1.000 ±5.0%") && row.ends_with("+100.00 % !"),
        "{row}"
    );
    assert_eq!(text.matches(LEGEND).count(), 1, "{text}");
    let page = html::render(&report, None);
    for part in ["1.000 ±5.0%", "+100.00 % !", LEGEND] {
        assert!(page.contains(part), "no {part} in {page}");
    }
    // The total of the bar has a whisker.
    assert!(page.contains("90 % interval 18.050 to 19.950"), "{page}");
    let json = serde_json::to_value(&report).expect("JSON");
    assert_eq!(json["outside"], serde_json::json!(["host.log"]));
    let log = &json["wa"]["predicted"]["host"]["log"];
    let expected = serde_json::json!({"value": 1.0, "low": 0.95, "high": 1.05, "model": "played"});
    assert_eq!(*log, expected);
}

#[test]
fn without_an_interval_nothing_is_outside() {
    let report = report(None);
    assert!(report.outside.is_empty());
    let text = text::render(&report);
    assert!(!text.contains('±') && !text.contains(LEGEND), "{text}");
    let page = html::render(&report, None);
    assert!(!page.contains("90 % interval"), "{page}");
}
