//! Replays on a simulated compressing drive.

#[path = "support/mod.rs"]
#[allow(dead_code)]
mod support;

use treering_sim::replay::{Precondition, ReplayConfig, Target, run};
use treering_sim::report::text;
use treering_traces::generate::ValueSize;

use support::drives::{STORES, compressing, config, replay, small, trace};

#[test]
fn a_compressing_drive_stores_less_than_the_host_writes() {
    let folder = tempfile::tempdir().unwrap();
    let path = trace(folder.path(), "t", small);
    for store in STORES {
        for timing in [false, true] {
            let mut on_csd = compressing(&path, |_| {});
            on_csd.tree.pages_mut().store = store;
            on_csd.timing = timing;
            let mut on_ssd = config(&path, |_| {});
            on_ssd.tree.pages_mut().store = store;
            on_ssd.timing = timing;
            let (csd, ssd) = (replay(&on_csd), replay(&on_ssd));
            assert_eq!(
                csd,
                replay(&on_csd),
                "a second replay must give the same report"
            );
            let (wa, device) = (csd.wa.csd.unwrap(), csd.wa.device.unwrap());
            assert_eq!(ssd.wa.csd, None);
            // B⁻-tree eq. (2): the shares of the classes add up.
            let host = &csd.wa.host;
            let parts = [
                (wa.alpha.log, host.log, wa.stored.log),
                (wa.alpha.page, host.page, wa.stored.page),
                (wa.alpha.extra, host.extra, wa.stored.extra),
                (wa.alpha.total, host.total, wa.stored.total),
            ];
            for (alpha, host, stored) in parts {
                let alpha = alpha.unwrap_or(0.0);
                assert!(
                    (alpha * host - stored).abs() < 1e-9,
                    "{alpha} × {host} must be {stored}"
                );
            }
            let sum = wa.stored.log + wa.stored.page + wa.stored.extra;
            assert!((sum - wa.stored.total).abs() < 1e-9);
            // Leaves are two thirds full, and half of each record is zeros.
            let page = wa.alpha.page.unwrap();
            assert!((0.3..0.7).contains(&page), "{page}");
            // Both report formats show the same bytes.
            assert!((wa.gc_only * wa.stored.total - device.total).abs() < 1e-9);
            assert!((device.total - device.gc - wa.stored.total).abs() < 1e-9);
            assert!(device.nand_over_host < 1.0);
            assert!(csd.space.physical_bytes < ssd.space.physical_bytes);
            assert!(text::render(&csd).contains("compressed page"));
        }
    }
}

#[test]
fn a_medium_too_small_for_its_data_ends_the_replay() {
    let folder = tempfile::tempdir().unwrap();
    let path = trace(folder.path(), "t", |_| ());
    let thin = compressing(&path, |profile| profile.logical_over_physical = 8.0);
    let error = run(&thin, &mut |_| {}).unwrap_err().to_string();
    assert!(
        error.starts_with("csd: ") && error.contains("the medium is full"),
        "{error}"
    );
}

/// A compressing drive programs the stored bytes and those that garbage collection moves. The chart
/// must show these, and not the bytes that the host wrote.
#[test]
fn the_chart_of_a_compressing_drive_adds_up_to_the_programmed_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let path = trace(folder.path(), "zipf", small);
    let target = Target::builtin("csd").unwrap();
    let report = replay(&ReplayConfig::new(path, target));
    let csd = report.wa.csd.as_ref().unwrap();
    let device = report.wa.device.as_ref().unwrap();
    assert!(csd.stored.total < 0.8 * report.wa.host.total, "{csd:?}");
    let programmed = csd.stored.total + device.gc;
    assert!(
        (programmed / device.total - 1.0).abs() < 0.05,
        "{programmed} {device:?}"
    );
    let svg = treering_sim::report::html::wa_svg(&report);
    let short = |n: f64| {
        if n >= 10.0 {
            format!("{n:.1}")
        } else {
            format!("{n:.2}")
        }
    };
    assert!(
        svg.contains("compressed page") && svg.contains(&short(programmed)),
        "{svg}"
    );
    assert!(!svg.contains(&short(report.wa.host.total)), "{svg}");
    // The chart over time must add up to the same bytes.
    let (mut before, mut stored) = (0, 0.0);
    for point in &report.series {
        stored += point.host.total * (point.ops - before) as f64;
        before = point.ops;
    }
    let mean = stored / before as f64;
    assert!(
        (mean / csd.stored.total - 1.0).abs() < 0.1,
        "{mean} {csd:?}"
    );
}

#[test]
fn a_preconditioned_compressing_drive_moves_more_as_predicted() {
    let folder = tempfile::tempdir().unwrap();
    let path = trace(folder.path(), "used", |params| {
        params.records = 5_000;
        params.ops = Some(40_000);
        params.writes = Some(1.0);
        params.theta = None;
        params.value_size = Some(ValueSize::fixed(400));
    });
    let mut before = 0.0;
    for precondition in [Precondition::None, Precondition::Fill, Precondition::Steady] {
        let mut config = compressing(&path, |_| {});
        let Target::Csd {
            precondition: of, ..
        } = &mut config.target
        else {
            unreachable!("it compresses");
        };
        *of = precondition;
        let report = replay(&config);
        let name = format!("{precondition:?}").to_lowercase();
        assert_eq!(report.options["precondition"], name);
        let device = report.wa.device.unwrap();
        assert!(device.gc > before, "{name}: {} after {before}", device.gc);
        before = device.gc;
        let predicted = report.wa.predicted.unwrap().values().device.unwrap();
        let off = device.total / predicted.total - 1.0;
        assert!(
            off.abs() < 0.10,
            "{name}: {} predicted, {} measured",
            predicted.total,
            device.total
        );
    }
}
