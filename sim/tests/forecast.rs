//! A forecast predicts the same numbers as a replay, without one.

use std::path::{Path, PathBuf};

use serde_json::Value;
use treering_engine::{Nanos, PmTreeKind, TreeSpec};
use treering_sim::predict::Model;
use treering_sim::replay::{
    Acknowledge, Oversize, Precondition, Preload, ReplayConfig, ReplayError, Size, Target, Tree,
    forecast, forecast_each, run,
};
use treering_sim::report::{PredictReport, html, predict};
use treering_traces::generate::{GenParams, ValueSize, Workload};
use treering_traces::{Op, OpKind};

#[path = "support/mod.rs"]
#[allow(dead_code)]
mod support;

/// 3,000 records of 8+`value` bytes, half of the operations writes.
fn zipf(folder: &Path, value: u32) -> PathBuf {
    let mut params = GenParams::new(Workload::Zipf, 3_000);
    params.ops = Some(10_000);
    params.key_size = Some(8);
    params.value_size = Some(ValueSize::fixed(value));
    params.theta = Some(0.9);
    params.writes = Some(0.5);
    support::traces::generated(folder, &format!("zipf-{value}"), &params)
}

fn config(trace: &Path, tree: &str, device: &str) -> ReplayConfig {
    let target = Target::builtin(device).expect("a built-in device");
    let mut config = ReplayConfig::new(trace.to_path_buf(), target);
    let spec: TreeSpec = tree.parse().expect("a tree");
    config.tree = match (spec.options(), spec.pm()) {
        (Some(options), _) => Tree::Pages(options),
        (None, Some(tree)) => Tree::pm(tree),
        (None, None) => panic!("{tree}: a tree of neither family"),
    };
    config
}

fn predicted(configs: &[ReplayConfig]) -> PredictReport {
    forecast(configs, &mut |_| {}, &mut |_| {}).expect("predictions")
}

fn json(document: &impl serde::Serialize) -> Value {
    serde_json::to_value(document).expect("JSON")
}

/// Predicts all configurations at once, replays each, and compares every predicted number, and the
/// options in force.
fn same_as_replays(configs: &[ReplayConfig]) -> PredictReport {
    let report = predicted(configs);
    assert!(report.complete);
    assert_eq!(report.configurations.len(), configs.len());
    for (config, run_) in configs.iter().zip(&report.configurations) {
        let replayed = run(config, &mut |_| {}).expect("a replay");
        let what = format!(
            "{} on {}, {:?}",
            config.tree.name(),
            config.target.name(),
            config.cache
        );
        let (forecast, replayed_json) = (json(run_), json(&replayed));
        assert_eq!(forecast["wa"], replayed_json["wa"]["predicted"], "{what}");
        assert_eq!(
            forecast["prediction"], replayed_json["prediction"],
            "{what}"
        );
        assert_eq!(
            forecast["untried"], replayed_json["wa"]["untried"],
            "{what}"
        );
        assert_eq!(run_.user_bytes, replayed.user_bytes, "{what}");
        if let Some(pm) = &replayed.pm {
            let measured = json(pm);
            assert_eq!(forecast["pm"], measured["predicted"], "{what}");
            let lodge = pm.lodge.as_ref().and_then(|lodge| lodge.predicted);
            assert_eq!(run_.lodge, lodge, "{what}");
        }
        for options in [&report.options, &run_.options] {
            for (name, value) in options {
                assert_eq!(*value, replayed.options[name], "{what}: {name}");
            }
        }
        assert_eq!(report.trace, replayed.trace);
        assert_eq!(report.ops, replayed.ops);
    }
    report
}

#[test]
fn trees_of_pages_are_predicted_as_in_replays() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = zipf(folder.path(), 120);
    for tree in ["btree", "bf", "bminus"] {
        for store in ["in-place", "cow", "cow(table=each-flush)", "shadow"] {
            for device in ["ssd", "csd"] {
                let of = |share| {
                    let mut config = config(&trace, &format!("{tree}+{store}"), device);
                    config.cache = Size::Share(share);
                    config
                };
                let report = same_as_replays(&[0.1, 0.4].map(of));
                assert_eq!(report.passes, 1);
            }
        }
    }
}

#[test]
fn trees_in_persistent_memory_are_predicted_as_in_replays() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = zipf(folder.path(), 8);
    for tree in ["ccl", "ccl(nbatch=4)", "lodge", "pmtree", "pmtree-global"] {
        let report = same_as_replays(&[config(&trace, tree, "pm")]);
        let run = &report.configurations[0];
        assert!(run.pm.is_some(), "{tree}");
        assert!(run.wa.is_none() && run.hit_ratio.is_none(), "{tree}");
    }
}

#[test]
fn a_drive_alone_is_predicted_as_in_replays() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = zipf(folder.path(), 6000);
    for device in ["ssd", "csd"] {
        let of = |over_provisioning| {
            let mut config = config(&trace, "btree", device);
            config.tree = Tree::Direct;
            config.target.flash_mut().expect("flash").over_provisioning = over_provisioning;
            *config.target.precondition_mut().expect("a drive") = Precondition::Steady;
            config
        };
        let report = same_as_replays(&[0.07, 0.28].map(of));
        assert_eq!((report.passes, report.tree.as_str()), (1, "none"));
        let totals = report.configurations.iter().map(|run| {
            let wa = run.wa.as_ref().expect("writes");
            let total = wa.device.expect("a drive").total.estimate;
            assert!(total.high.expect("a bar") >= total.value);
            total.value
        });
        let totals: Vec<f64> = totals.collect();
        assert!(totals[0] > totals[1], "{device}: {totals:?}");
        let text = predict::render(&report);
        assert!(
            text.contains("over-provisioning") && !text.contains("host log"),
            "{text}"
        );
    }
}

#[test]
fn popularity_alone_predicts_a_drive_under_independent_writes() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = zipf(folder.path(), 3000);
    let mut config = config(&trace, "btree", "ssd");
    config.tree = Tree::Direct;
    config.method.model = Model::Independent;
    *config.target.precondition_mut().expect("a drive") = Precondition::Steady;
    let replayed = run(&config, &mut |_| {}).expect("a replay");
    assert_eq!(replayed.direct.and_then(|direct| direct.miniature), None);
    let predicted = replayed
        .wa
        .predicted
        .expect("a prediction")
        .device
        .expect("a drive");
    let measured = replayed.wa.device.expect("a drive");
    let predicted = predicted.total.estimate.value;
    let error = measured.total / predicted - 1.0;
    assert!(error.abs() < 0.1, "{measured:?}, not {predicted:?}");
    let report = forecast(&[config], &mut |_| {}, &mut |_| {}).expect("a prediction");
    let run = &report.configurations[0];
    let side = run.wa.as_ref().expect("writes");
    let device = side.device.expect("a drive");
    assert_eq!(device.total.model, Model::Independent);
    assert_eq!(device.total.estimate.value, predicted);
}

#[test]
fn other_settings_of_runs_change_predictions_as_in_replays() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = zipf(folder.path(), 400);
    let base = config(&trace, "btree", "ssd");
    let changed = |change: fn(&mut ReplayConfig)| {
        let mut config = base.clone();
        change(&mut config);
        same_as_replays(&[config]);
    };
    changed(|c| c.limit = Some(12_000));
    changed(|c| c.warmup = Some(0.5));
    changed(|c| c.preload = Preload::All);
    changed(|c| {
        c.clients = 8;
        c.acknowledge = Acknowledge::Commit;
    });
    changed(|c| *c.target.precondition_mut().expect("a drive") = Precondition::Steady);
    changed(|c| *c.target.capacity_mut().expect("a drive") = Some(64 << 20));
    changed(|c| c.seed = 7);
}

#[test]
fn page_sizes_share_a_pass_unless_keys_do_not_fit_some_of_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let of_page = |trace: &Path, page_size| {
        let mut config = config(trace, "btree", "ssd");
        config.tree.pages_mut().page_size = page_size;
        config.oversize = Oversize::Skip;
        config.cache = Size::Bytes(1 << 20);
        config
    };
    let pages = [16_384, 4096, 8192];
    let short = zipf(folder.path(), 120);
    let report = same_as_replays(&pages.map(|page| of_page(&short, page)));
    assert_eq!(report.passes, 1);
    // Every tenth key has 900 bytes: too long for pages of 4 KiB.
    let key = |i: u32| {
        let mut key = i.wrapping_mul(2_654_435_761).to_be_bytes().to_vec();
        key.resize(if i.is_multiple_of(10) { 900 } else { 16 }, 7);
        key
    };
    let put = |i: u32| Op {
        value_len: 100,
        ..support::op(OpKind::Put, key(i % 2000))
    };
    let ops = (0..8000).map(put);
    let long = support::traces::made(folder.path(), "long", 2000, ops);
    let configs = pages.map(|page| of_page(&long, page));
    let report = predicted(&configs);
    assert_eq!(report.passes, 2, "pages of 8 and 16 KiB share one");
    let bytes: Vec<u64> = report
        .configurations
        .iter()
        .map(|run| run.user_bytes)
        .collect();
    assert!(bytes[1] < bytes[2] && bytes[2] == bytes[0], "{bytes:?}");
    for (config, run_) in configs.iter().zip(&report.configurations) {
        let replayed = run(config, &mut |_| {}).expect("a replay");
        assert_eq!(json(&run_.prediction), json(&replayed.prediction));
        assert_eq!(run_.user_bytes, replayed.user_bytes);
        let warning = |w: &&String| w.contains("operations were skipped");
        let skipped = replayed.warnings.iter().find(warning);
        assert_eq!(run_.warnings.iter().find(warning), skipped);
    }
}

#[test]
fn rows_come_in_the_order_of_the_request_and_are_told_store_by_store() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = zipf(folder.path(), 120);
    let of = |(page_size, share)| {
        let mut config = config(&trace, "btree", "ssd");
        config.tree.pages_mut().page_size = page_size;
        config.cache = Size::Share(share);
        config
    };
    let configs = [(8192, 0.2), (4096, 0.2), (8192, 0.05), (4096, 0.05)].map(of);
    let mut told = Vec::new();
    let report = forecast(&configs, &mut |_| {}, &mut |report| {
        told.push((report.configurations.len(), report.complete));
    });
    let report = report.expect("predictions");
    // Both caches of pages of 8 KiB have the minimum of frames: that is one store.
    assert_eq!(told, [(1, false), (2, false), (4, true)]);
    let of = |name: &str| -> Vec<u64> {
        let options = report.configurations.iter().map(|run| &run.options[name]);
        options.filter_map(Value::as_u64).collect()
    };
    assert_eq!(of("page"), [8192, 4096, 8192, 4096]);
    let text = predict::render(&report);
    assert!(
        text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
    assert!(text.contains("  20 %  8.0 KiB  "), "{text}");
    let svg = html::predict_svg(&report).expect("two options vary");
    assert_eq!(svg.matches("<svg").count(), 1);
    // Two page sizes, each with write amplification and hits.
    for part in ["page 4.0 KiB", "page 8.0 KiB", "device total", "hits, %"] {
        assert!(svg.contains(part), "no {part}");
    }
    let page = html::predict_page(&report, Some("treering predict it"));
    for part in [
        "treering predict it",
        "Predicted hit ratio by cache, page 8.0 KiB",
        "<table",
    ] {
        assert!(page.contains(part), "no {part}");
    }
    assert!(html::predict_svg(&predicted(&configs[..1])).is_none());
}

#[test]
fn nothing_is_predicted_where_nothing_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let key = |i: u32| i.wrapping_mul(2_654_435_761).to_be_bytes().to_vec();
    let ops = (0..4000).map(|i| match i < 2000 {
        true => support::op(OpKind::Put, key(i)),
        false => support::op(OpKind::Get, key(i - 2000)),
    });
    let ops: Vec<Op> = ops.collect();
    let trace = support::trace(&folder, 2000, &ops);
    let report = same_as_replays(&[config(&trace, "btree", "ssd")]);
    let run = &report.configurations[0];
    assert!(run.wa.is_none() && run.hit_ratio.is_some());
    let said = |w: &String| w.contains("no write amplification");
    assert!(run.warnings.iter().any(said), "{:?}", run.warnings);
}

#[test]
fn bad_configurations_fail_as_in_replays() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = zipf(folder.path(), 120);
    let both = |config: ReplayConfig| -> String {
        let replayed = run(&config, &mut |_| {})
            .expect_err("a bad configuration")
            .to_string();
        let found = forecast(&[config], &mut |_| {}, &mut |_| {});
        assert_eq!(
            found.expect_err("a bad configuration").to_string(),
            replayed
        );
        replayed
    };
    let mut bad = config(&trace, "btree", "ssd");
    bad.tree.pages_mut().page_size = 5000;
    assert!(both(bad).contains("5000"));
    let mut bad = config(&trace, "btree", "ssd");
    bad.cache = Size::Bytes(4096);
    assert!(both(bad).contains("expected at least"));
    let mut bad = config(&trace, "btree", "ssd");
    *bad.target.capacity_mut().expect("a drive") = Some(1 << 20);
    assert!(both(bad).contains("expected at least"));
    let mut bad = config(&trace, "ccl", "pm");
    if let Tree::Pm(options) = &mut bad.tree
        && let PmTreeKind::Ccl(ccl) = &mut options.tree
    {
        ccl.batch = 60;
    }
    both(bad);
    both(config(&trace, "ccl", "ssd"));
    let mut bad = config(&trace, "btree", "ssd");
    bad.warmup = Some(1.0);
    both(bad);
    let file = Target::File(folder.path().join("store"), Default::default());
    let on_file = ReplayConfig::new(trace, file);
    let refused = forecast(&[on_file], &mut |_| {}, &mut |_| {});
    assert!(matches!(
        refused,
        Err(ReplayError::Setting { flag: "device", .. })
    ));
}

/// Predicts all together, in both ways, and each alone; nothing may differ.
fn same_as_alone(configs: &[ReplayConfig]) {
    let all = predicted(configs);
    let mut each: Vec<Option<PredictReport>> = vec![None; configs.len()];
    forecast_each(configs, &mut |_| {}, &mut |at, report| {
        assert!(each[at].replace(report).is_none(), "told twice");
    })
    .expect("predictions");
    for ((config, run), each) in configs.iter().zip(&all.configurations).zip(each) {
        let alone = predicted(std::slice::from_ref(config));
        let what = format!("{} on {}", config.tree.name(), config.target.name());
        assert_eq!(json(run), json(&alone.configurations[0]), "{what}");
        let each = each.unwrap_or_else(|| panic!("{what}: no report"));
        assert_eq!(json(&each), json(&alone), "{what}");
    }
}

/// A configuration on each of several drives.
fn on_drives(
    config: &ReplayConfig,
    drives: &[(&str, f64, &str)],
    capacity: Option<u64>,
) -> Vec<ReplayConfig> {
    let of = |(device, spare, gc): &(&str, f64, &str)| {
        let mut target = Target::builtin(device).expect("a built-in device");
        let flash = target.flash_mut().expect("it has flash");
        (flash.over_provisioning, flash.gc) = (*spare, (*gc).into());
        *target.capacity_mut().expect("it is simulated") = capacity;
        ReplayConfig {
            target,
            ..config.clone()
        }
    };
    drives.iter().map(of).collect()
}

const DRIVES: [(&str, f64, &str); 5] = [
    ("ssd", 0.07, "greedy"),
    ("csd", 0.07, "greedy"),
    ("ssd", 0.28, "fifo"),
    ("csd", 0.28, "fifo"),
    ("ssd", 0.5, "cost-benefit"),
];

#[test]
fn drives_that_share_a_played_store_are_predicted_as_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = zipf(folder.path(), 120);
    let interval = |ns| Acknowledge::Interval(Nanos(ns));
    for tree in [
        "btree+in-place",
        "bf+cow(table=each-flush)",
        "bminus+shadow",
    ] {
        let mut all = Vec::new();
        for (share, clients, acknowledge) in [
            (0.1, 1, Acknowledge::Deferred),
            (0.4, 1, Acknowledge::Deferred),
            (0.1, 3, interval(300_000)),
            (0.1, 3, Acknowledge::Commit),
        ] {
            let mut config = config(&trace, tree, "ssd");
            config.cache = Size::Share(share);
            (config.clients, config.acknowledge) = (clients, acknowledge);
            // Of the large ones, a sample of the blocks is played, which depends on where they are:
            // behind a longer page table.
            let capacities = [None, Some(64 << 20), Some(1 << 30), Some(3 << 30)];
            let some = if tree.contains("cow") { 4 } else { 2 };
            for capacity in &capacities[..some] {
                all.extend(on_drives(&config, &DRIVES, *capacity));
            }
        }
        same_as_alone(&all);
    }
}

/// On the smallest drive of each group there are too few places for all that the store would keep.
#[test]
fn drives_without_room_are_predicted_as_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    // Values of 6,000 bytes take blocks of their own while there is room.
    let mut params = GenParams::new(Workload::Uniform, 300);
    params.ops = Some(3_000);
    params.value_size = Some(ValueSize::fixed(6_000));
    params.writes = Some(1.0);
    let trace = support::traces::generated(folder.path(), "long", &params);
    for tree in ["btree+cow", "bf+in-place"] {
        let mut all = Vec::new();
        let config = config(&trace, tree, "ssd");
        let fits = |bytes: u64| {
            let config = on_drives(&config, &DRIVES[..1], Some(bytes));
            forecast(&config, &mut |_| {}, &mut |_| {}).is_ok()
        };
        let least = (1..64).map(|mib| mib << 20).find(|bytes| fits(*bytes));
        let least = least.expect("a capacity that is large enough");
        for more in [0, 4096, 1 << 16, 1 << 20, 64 << 20] {
            all.extend(on_drives(&config, &DRIVES, Some(least + more)));
        }
        same_as_alone(&all);
    }
}

#[test]
fn what_cannot_be_predicted_has_no_report_and_does_not_stop_the_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = zipf(folder.path(), 120);
    let good = config(&trace, "btree", "ssd");
    let too_small = on_drives(&good, &DRIVES[..1], Some(1 << 20)).remove(0);
    let no_clients = ReplayConfig {
        clients: 0,
        ..good.clone()
    };
    let misfit = ReplayConfig {
        target: Target::builtin("pm").expect("a built-in device"),
        ..good.clone()
    };
    let mut told = Vec::new();
    let configs = [too_small, good.clone(), no_clients, misfit, good];
    forecast_each(&configs, &mut |_| {}, &mut |at, _| told.push(at)).expect("predictions");
    assert_eq!(told, [1, 4]);
    for config in &configs[..1] {
        let alone = forecast(std::slice::from_ref(config), &mut |_| {}, &mut |_| {});
        assert!(
            matches!(alone, Err(ReplayError::Setting { .. })),
            "{alone:?}"
        );
    }
}
