//! Whole replays of small generated traces: every combination of store, policy and preparation
//! completes, engine and drive count the same bytes (otherwise the replay fails), and the reports
//! are well-formed.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use treering_engine::node::LayoutChoice;
use treering_engine::{BfOptions, Nanos, PageStoreKind, TreeKind};
use treering_sim::predict::Model;
use treering_sim::replay::{Acknowledge, Precondition, ReplayConfig, ReplayError, Target, run};
use treering_sim::report::{html, text};
use treering_traces::generate::{GenParams, ValueSize};

#[path = "support/mod.rs"]
#[allow(dead_code)]
mod support;

use support::drives::{
    STORES, close, compressing, config, gc, prepared, puts, replay, small, trace,
};

#[test]
fn stores_clients_and_acknowledgements_combine() {
    let folder = tempfile::tempdir().unwrap();
    let path = trace(folder.path(), "t", small);
    for store in STORES {
        for clients in [1, 8] {
            for acknowledge in [
                Acknowledge::Deferred,
                Acknowledge::Commit,
                Acknowledge::Interval(Nanos(5_000_000)),
            ] {
                for timing in [false, true] {
                    let mut config = config(&path, |_| {});
                    config.tree.pages_mut().store = store;
                    config.clients = clients;
                    config.acknowledge = acknowledge;
                    config.timing = timing;
                    let report = replay(&config);
                    assert_eq!(report.latency_ns.is_some(), timing);
                    assert_eq!(report.trace.ops - report.trace.warmup_ops, 10_000);
                    let total = report.wa.host.log + report.wa.host.page + report.wa.host.extra;
                    assert!((total - report.wa.host.total).abs() < 1e-9);
                    assert_eq!(
                        report,
                        replay(&config),
                        "a second replay must give the same report"
                    );
                }
            }
        }
    }
}

/// From the limit to the total, in all kinds of stores. No run writes less than its limit.
#[test]
fn steps_lead_from_the_limit_to_what_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = trace(folder.path(), "t", |p| p.ops = Some(20_000));
    for store in STORES {
        for tree in [TreeKind::BTree, TreeKind::Bf(BfOptions::default())] {
            let mut config = config(&path, |_| {});
            config.tree.pages_mut().store = store;
            config.tree.pages_mut().tree = tree;
            let report = replay(&config);
            let limit = report.wa.limit.as_ref().expect("a limit");
            assert!(limit.host.page > 0.0 && limit.host.total < report.wa.host.total);
            let steps = &report.wa.waterfall;
            assert_eq!((steps[0].name, steps[0].wa), ("limit", limit.host.total));
            let mut sum = 0.0;
            for step in steps {
                sum += step.wa;
                assert!((step.sum - sum).abs() < 1e-9, "{step:?}");
            }
            let total = report.wa.device.expect("a drive").total;
            assert!(
                (sum - total).abs() < 0.001 * steps.len() as f64,
                "{sum}, not {total}"
            );
            let named = |name| steps.iter().any(|step| step.name == name);
            let holds_changes = matches!(tree, TreeKind::Bf(_));
            assert_eq!(named("whole pages"), !holds_changes);
            assert_eq!(
                named("size classes") && named("cached records"),
                holds_changes
            );
            let text = text::waterfall(&report);
            assert!(
                text.contains("limit") && text.contains("device total"),
                "{text}"
            );
            assert!(html::render(&report, None).contains("Where the bytes go"));
        }
    }
}

#[test]
fn there_is_no_limit_without_predictions_unless_it_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = trace(folder.path(), "t", small);
    let mut config = config(&path, |_| {});
    config.predict = false;
    let without = replay(&config);
    assert!(without.wa.limit.is_none() && without.wa.waterfall.is_empty());
    assert!(text::waterfall(&without).contains("unknown"));
    config.explain = true;
    let with = replay(&config);
    assert!(with.wa.limit.is_some() && !with.wa.waterfall.is_empty());
    assert_eq!(with.wa.host, without.wa.host);
}

#[test]
fn mini_pages_combine_with_stores_pages_clients_and_acknowledgements() {
    let folder = tempfile::tempdir().unwrap();
    let path = trace(folder.path(), "t", |p| p.ops = Some(20_000));
    for store in STORES {
        for (page_size, clients, timing, acknowledge) in [
            (4096, 1, false, Acknowledge::Deferred),
            (4096, 8, true, Acknowledge::Commit),
            (16_384, 3, true, Acknowledge::Interval(Nanos(5_000_000))),
        ] {
            let mut config = config(&path, |_| {});
            config.tree.pages_mut().tree = TreeKind::Bf(BfOptions {
                growth_percent: if clients == 8 { 25 } else { 100 },
                ..BfOptions::default()
            });
            config.tree.pages_mut().store = store;
            config.tree.pages_mut().page_size = page_size;
            config.clients = clients;
            config.acknowledge = acknowledge;
            config.timing = timing;
            let report = replay(&config);
            let mini_pages = report.cache.mini_pages.as_ref().unwrap();
            let lookups = mini_pages.hits.total() + mini_pages.misses;
            assert_eq!(lookups, report.ops.get);
            assert!(mini_pages.merges > 0 && mini_pages.evictions > 0);
            let mut compared = report.cache.compared.iter();
            assert!(compared.all(|figure| figure.predicted.is_some()));
            assert_eq!(
                report,
                replay(&config),
                "a second replay must give the same report"
            );
        }
    }
}

/// Leaves that become empty are merged in the background. In a replay the virtual clients do that
/// work, so it is deterministic.
#[test]
fn merges_of_emptied_leaves_are_deterministic() {
    let folder = tempfile::tempdir().unwrap();
    let deletes = trace(folder.path(), "deletes", |p| {
        p.theta = Some(0.0);
        p.writes = Some(0.05);
        p.deletes = Some(0.7);
    });
    for tree in [TreeKind::BTree, TreeKind::Bf(BfOptions::default())] {
        let mut config = config(&deletes, |_| {});
        config.tree.pages_mut().tree = tree;
        let report = replay(&config);
        let merges = report.store.merges;
        assert!(merges > 50, "{tree:?}: {merges} merges");
        assert_eq!(
            report,
            replay(&config),
            "{tree:?}: a second replay must give the same report"
        );
    }
}

/// A value too long for a quarter of a page is written once, outside log and leaves, and the report
/// shows it as overflow. The prediction for a compressing drive includes it.
#[test]
fn long_values_are_reported_and_predicted() {
    let folder = tempfile::tempdir().unwrap();
    let path = trace(folder.path(), "long", |params| {
        params.records = 1_000;
        params.ops = Some(8_000);
        params.value_size = Some(ValueSize {
            min: 200,
            max: 12_000,
        });
    });
    for store in STORES {
        for tree in [TreeKind::BTree, TreeKind::Bf(BfOptions::default())] {
            let mut config = config(&path, |_| {});
            config.tree.pages_mut().store = store;
            config.tree.pages_mut().tree = tree;
            let report = replay(&config);
            let causes = report.wa.host.page_causes.expect("a store of pages");
            let story = format!("{tree:?} on {store:?}");
            let predicted = causes.overflow_predicted.expect("a prediction").value();
            close(
                &format!("{story}: overflow"),
                (causes.overflow, predicted),
                0.001,
            );
            // Long values hold 24 of 25 user bytes, and each ends within a block.
            assert!((1.0..1.5).contains(&causes.overflow), "{story}: {causes:?}");
            let page = causes.leaf + causes.overflow;
            close(&format!("{story}: page"), (page, report.wa.host.page), 1e-9);
            let total = (
                report.wa.host.total,
                report.wa.predicted.as_ref().unwrap().host.total.value(),
            );
            close(&format!("{story}: total"), total, 0.05);
            assert!(
                report.wa.host.log < 0.1,
                "{story}: the log must not contain the values"
            );
            let text = text::render(&report);
            assert!(text.contains("host page overflow"), "{text}");
            let document = serde_json::to_value(&report).unwrap();
            let named = &document["wa"]["host"]["page_causes"]["overflow"];
            assert_eq!(named.as_f64(), Some(causes.overflow), "{story}");
        }
    }
    let compressed = replay(&compressing(&path, |_| {}));
    let (csd, predicted) = (compressed.wa.csd.unwrap(), compressed.wa.predicted.unwrap());
    let predicted = predicted.values();
    let pages = (csd.stored.page, predicted.csd.unwrap().page);
    close("compressed page bytes", pages, 0.05);
}

/// More clients share a flush, so each write has a smaller part of a log block.
#[test]
fn group_commit_writes_less_log_as_predicted() {
    let folder = tempfile::tempdir().unwrap();
    let path = trace(folder.path(), "t", |p| p.ops = Some(20_000));
    let log = |clients, writes_only: bool| {
        let only = trace(folder.path(), "w", |p| {
            p.ops = Some(20_000);
            p.writes = Some(1.0);
        });
        let mut config = config(if writes_only { &only } else { &path }, |_| {});
        config.acknowledge = Acknowledge::Commit;
        config.clients = clients;
        let report = replay(&config);
        let predicted = report.wa.predicted.unwrap().host.log.value();
        let what = format!("{clients} clients, only writes: {writes_only}");
        println!("{what}: {} {predicted}", report.wa.host.log);
        close(&what, (report.wa.host.log, predicted), 0.15);
        report.wa.host.log
    };
    let alone = log(1, false);
    for clients in [2, 8, 32, 128] {
        assert!(log(clients, false) < alone);
        log(clients, true);
    }
}

#[test]
fn short_intervals_write_more_log_as_predicted() {
    let folder = tempfile::tempdir().unwrap();
    let path = trace(folder.path(), "t", |p| p.ops = Some(20_000));
    for micros in [200, 1_000, 5_000, 1_000_000] {
        let mut config = config(&path, |_| {});
        config.acknowledge = Acknowledge::Interval(Nanos(1_000 * micros));
        let report = replay(&config);
        let predicted = report.wa.predicted.unwrap().host.log.value();
        println!("{micros}: {} {predicted}", report.wa.host.log);
        close(
            &format!("{micros} us"),
            (report.wa.host.log, predicted),
            0.15,
        );
    }
}

#[test]
fn a_preconditioned_drive_moves_more_as_predicted() {
    let folder = tempfile::tempdir().unwrap();
    let path = trace(folder.path(), "t", |p| p.ops = Some(120_000));
    for store in STORES {
        let mut fresh = config(&path, |_| {});
        fresh.tree.pages_mut().store = store;
        let fresh_gc = gc(&replay(&fresh));
        // The closed forms are for many erase blocks; these drives have a few dozen.
        close("fresh", fresh_gc, 0.15);
        for how in [Precondition::Fill, Precondition::Steady] {
            let report = replay(&prepared(fresh.clone(), how));
            close(&format!("{store:?}, {how:?}"), gc(&report), 0.15);
            if store == PageStoreKind::InPlace {
                // Blocks that the store never writes stay valid and must be moved by garbage
                // collection.
                assert!(gc(&report).0 > 1.2 * fresh_gc.0);
            }
        }
    }
}

#[test]
fn cleaning_policies_without_a_prediction_give_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let path = trace(folder.path(), "t", |p| {
        p.ops = Some(120_000);
        p.theta = Some(0.0);
    });
    for policy in ["greedy", "fifo", "random", "d-choices:3"] {
        let report = replay(&config(&path, |p| p.gc = policy.into()));
        close(policy, gc(&report), 0.10);
        assert!(!report.warnings.iter().any(|w| w.contains("closed form")));
    }
    for policy in ["cost-benefit", "windowed-greedy:8"] {
        let report = replay(&config(&path, |p| p.gc = policy.into()));
        assert!(
            report.warnings.iter().any(|w| w.contains("closed form")),
            "{policy}: {:?}",
            report.warnings
        );
    }
}

/// A prime, so that the multiples of a smaller number visit every residue.
const NUMBERS: u64 = 99_991;

/// Dense numbers in random order, then updates of any of them. Which leaves become dense, and when,
/// decides how many there are to write.
#[test]
fn leaves_that_become_dense_are_predicted() {
    let folder = tempfile::tempdir().unwrap();
    let loaded = (0..NUMBERS).map(|i| i * 7_919 % NUMBERS);
    let mut random = StdRng::seed_from_u64(1);
    let updated: Vec<u64> = (0..NUMBERS)
        .map(|_| random.random_range(0..NUMBERS))
        .collect();
    let path = puts(
        folder.path(),
        "dense",
        (NUMBERS, 8),
        loaded.chain(updated.iter().copied()),
    );
    let with = |layout| {
        let mut config = config(&path, |_| {});
        config.tree.pages_mut().layout = Some(LayoutChoice::named(layout).unwrap());
        let report = replay(&config);
        let predicted = report.wa.predicted.as_ref().unwrap().values();
        let (measured, predicted) = (&report.wa.host, &predicted.host);
        close(layout, (measured.page, predicted.page), 0.03);
        close(layout, (measured.total, predicted.total), 0.03);
        assert_eq!(report.warnings, [""; 0], "{layout}");
        report.space.leaves
    };
    let hints = with("hints");
    for (layout, percent) in [("semi-dense", 75), ("fully-dense", 60), ("adaptive", 60)] {
        let leaves = with(layout);
        assert!(
            leaves < hints * percent / 100,
            "{layout}: {leaves} of {hints}"
        );
    }
}

#[test]
fn runs_of_neighbouring_keys_give_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let keys = (0..3_u64).flat_map(|pass| (0..20_000).map(move |block| block ^ (pass << 40)));
    let path = puts(folder.path(), "runs", (0, 120), keys);
    // It concerns models that know popularity alone.
    let mut config = config(&path, |_| {});
    config.method.model = Model::Independent;
    let report = replay(&config);
    assert!(
        report
            .warnings
            .iter()
            .any(|w| w.contains("follow one on the preceding key")),
        "{:?}",
        report.warnings
    );
}

/// Every tag is closed, nothing is loaded from elsewhere, and no number is missing.
fn check_page(page: &str) {
    // Scripts are not markup. The script is the last element of the body.
    let (before, after) = page.split_once("<script>").expect("a script");
    let (_, after) = after.split_once("</script>").expect("its end");
    let page = format!("{before}{after}");
    let page = page.as_str();
    let mut open = Vec::new();
    let mut rest = page;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        let end = rest.find('>').expect("an unclosed tag");
        let tag = &rest[..end];
        rest = &rest[end + 1..];
        let name = tag
            .trim_start_matches('/')
            .split([' ', '/'])
            .next()
            .unwrap();
        if tag.starts_with('!') || tag.ends_with('/') || name == "meta" {
            continue;
        }
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "tags must close in order");
        } else {
            open.push(name);
        }
    }
    assert_eq!(open, Vec::<&str>::new());
    assert!(page.matches("<svg").count() >= 3, "charts are missing");
    for foreign in ["<script", "<link", "<img", "src=", "url(", "@import"] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    for absent in ["NaN", "inf ", "inf<", "\"inf", "-0.00 %"] {
        assert!(!page.contains(absent), "{absent}");
    }
}

#[test]
fn the_html_page_is_well_formed_for_every_kind_of_run() {
    let folder = tempfile::tempdir().unwrap();
    let small = |p: &mut GenParams| p.ops = Some(5_000);
    let ordinary = trace(folder.path(), "t", small);
    let reads_only = trace(folder.path(), "r", |p| {
        small(p);
        p.writes = Some(0.0);
    });
    let mut timed = config(&ordinary, |_| {});
    timed.timing = true;
    let mut unpredicted = config(&ordinary, |_| {});
    unpredicted.predict = false;
    let with_mini_pages = |mut config: ReplayConfig| {
        config.tree.pages_mut().tree = TreeKind::Bf(BfOptions::default());
        config
    };
    for config in [
        with_mini_pages(timed.clone()),
        with_mini_pages(config(&reads_only, |_| {})),
        timed,
        unpredicted,
        config(&reads_only, |_| {}),
    ] {
        let mut report = replay(&config);
        report.trace.name = "<b>&\"'".into();
        let page = html::render(&report, None);
        check_page(&page);
        assert!(page.contains("&lt;b&gt;&amp;&quot;&#39;"));
        assert!(html::wa_svg(&report).starts_with("<svg"));
        let printed = text::render(&report);
        for warning in &report.warnings {
            assert!(printed.contains(warning), "{warning}");
        }
        assert!(!printed.contains("NaN"), "{printed}");
    }
}

#[test]
fn invalid_settings_are_named_by_their_flag() {
    let folder = tempfile::tempdir().unwrap();
    let path = trace(folder.path(), "t", |p| p.ops = Some(1_000));
    let mut small = config(&path, |_| {});
    if let Target::Ssd { capacity_bytes, .. } = &mut small.target {
        *capacity_bytes = Some(1 << 20);
    }
    let error = run(&small, &mut |_| {}).unwrap_err();
    assert!(
        matches!(
            &error,
            ReplayError::Setting {
                flag: "capacity",
                ..
            }
        ),
        "{error}"
    );
    let mut never = config(&path, |_| {});
    never.acknowledge = Acknowledge::Interval(Nanos(0));
    let error = run(&never, &mut |_| {}).unwrap_err();
    assert!(
        matches!(
            &error,
            ReplayError::Setting {
                flag: "durability",
                ..
            }
        ),
        "{error}"
    );
}
