//! Whole replays of small generated traces: every combination of store, policy and preparation runs to its end with engine and drive
//! counting the same bytes (a replay fails if they do not), and its faces hold what they promise.

use std::path::{Path, PathBuf};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use treering_engine::node::LayoutChoice;
use treering_engine::{BfOptions, Nanos, PageStoreKind, TablePersist, TreeKind};
use treering_sim::csd::CsdProfile;
use treering_sim::replay::{Acknowledge, Precondition, ReplayConfig, ReplayError, Target, run};
use treering_sim::report::{ReplayReport, html, text};
use treering_sim::ssd::builtin;
use treering_traces::generate::{GenParams, ValueSize, Workload};
use treering_traces::{Op, OpKind};

#[path = "support/mod.rs"]
#[allow(dead_code)]
mod support;

const STORES: [PageStoreKind; 4] = [
    PageStoreKind::Shadow,
    PageStoreKind::InPlace,
    PageStoreKind::CopyOnWrite {
        table: TablePersist::EachFlush,
    },
    PageStoreKind::CopyOnWrite {
        table: TablePersist::Checkpoint,
    },
];

fn trace(folder: &Path, name: &str, set: impl FnOnce(&mut GenParams)) -> PathBuf {
    let mut params = GenParams::new(Workload::Zipf, 20_000);
    params.ops = Some(60_000);
    params.theta = Some(0.8);
    params.writes = Some(0.7);
    params.key_size = Some(8);
    params.value_size = Some(ValueSize::fixed(100));
    set(&mut params);
    support::traces::generated(folder, name, &params)
}

/// For what is asked of many combinations.
fn small(params: &mut GenParams) {
    params.records = 5_000;
    params.ops = Some(10_000);
}

/// A trace that puts these numbers, of which so many are warm-up, with values of so many bytes.
fn puts(
    folder: &Path,
    name: &str,
    (warmup_ops, value_len): (u64, u32),
    keys: impl Iterator<Item = u64>,
) -> PathBuf {
    let put = |key: u64| Op {
        kind: OpKind::Put,
        key: key.to_be_bytes().to_vec(),
        value_len,
        ..Op::default()
    };
    support::traces::made(folder, name, warmup_ops, keys.map(put))
}

fn config(trace: &Path, change: impl FnOnce(&mut treering_sim::ssd::SsdProfile)) -> ReplayConfig {
    let (_, mut profile) = builtin("ssd").unwrap();
    // Small enough erase blocks for a drive of a few thousand pages.
    profile.pages_per_block = 32;
    change(&mut profile);
    let target = Target::Ssd {
        profile: Box::new(profile),
        name: "ssd".into(),
        capacity_bytes: None,
        precondition: Precondition::None,
    };
    ReplayConfig::new(trace.to_path_buf(), target)
}

fn prepared(mut config: ReplayConfig, how: Precondition) -> ReplayConfig {
    if let Target::Ssd { precondition, .. } = &mut config.target {
        *precondition = how;
    }
    config
}

fn replay(config: &ReplayConfig) -> ReplayReport {
    run(config, &mut |_| {}).unwrap_or_else(|e| panic!("{config:?}: {e}"))
}

fn gc(report: &ReplayReport) -> (f64, f64) {
    let predicted = report.wa.predicted.as_ref().and_then(|p| p.device.as_ref());
    (report.wa.device.as_ref().unwrap().gc, predicted.unwrap().gc)
}

fn close(what: &str, (measured, predicted): (f64, f64), within: f64) {
    assert!(
        (measured / predicted - 1.0).abs() < within,
        "{what}: measured {measured}, predicted {predicted}"
    );
}

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
                    config.engine.store = store;
                    config.clients = clients;
                    config.acknowledge = acknowledge;
                    config.timing = timing;
                    let report = replay(&config);
                    assert_eq!(report.latency_ns.is_some(), timing);
                    assert_eq!(report.trace.ops - report.trace.warmup_ops, 10_000);
                    let total = report.wa.host.log + report.wa.host.page + report.wa.host.extra;
                    assert!((total - report.wa.host.total).abs() < 1e-9);
                    assert_eq!(report, replay(&config), "the same twice");
                }
            }
        }
    }
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
            config.engine.tree = TreeKind::Bf(BfOptions::default());
            config.engine.store = store;
            config.engine.page_size = page_size;
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
            assert_eq!(report, replay(&config), "the same twice");
        }
    }
}

/// More clients share a flush, so that each write's part of a log block is smaller.
/// Leaves that deletes empty are merged in the background, so virtual clients do it: in the same
/// steps each time.
#[test]
fn what_deletes_empty_is_merged_in_the_same_steps_each_time() {
    let folder = tempfile::tempdir().unwrap();
    let deletes = trace(folder.path(), "deletes", |p| {
        p.theta = Some(0.0);
        p.writes = Some(0.05);
        p.deletes = Some(0.7);
    });
    for tree in [TreeKind::BTree, TreeKind::Bf(BfOptions::default())] {
        let mut config = config(&deletes, |_| {});
        config.engine.tree = tree;
        let report = replay(&config);
        let merges = report.store.merges;
        assert!(merges > 50, "{tree:?}: {merges} merges");
        assert_eq!(report, replay(&config), "{tree:?}: the same twice");
    }
}

/// What a page's quarter does not hold is written once, beside log and leaves, and named; and a
/// drive that compresses knows what it holds.
#[test]
fn long_values_are_named_and_predicted() {
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
            config.engine.store = store;
            config.engine.tree = tree;
            let report = replay(&config);
            let causes = report.wa.host.page_causes.expect("a store of pages");
            let story = format!("{tree:?} on {store:?}");
            let predicted = causes.overflow_predicted.expect("a prediction");
            close(
                &format!("{story}: overflow"),
                (causes.overflow, predicted),
                0.001,
            );
            // 24 in 25 user bytes are of such values, each of which ends within a block.
            assert!((1.0..1.5).contains(&causes.overflow), "{story}: {causes:?}");
            let page = causes.leaf + causes.overflow;
            close(&format!("{story}: page"), (page, report.wa.host.page), 1e-9);
            let total = (
                report.wa.host.total,
                report.wa.predicted.as_ref().unwrap().host.total,
            );
            close(&format!("{story}: total"), total, 0.05);
            assert!(report.wa.host.log < 0.1, "{story}: the log has no value");
            let text = text::render(&report);
            assert!(text.contains("host page overflow"), "{text}");
            let document = serde_json::to_value(&report).unwrap();
            let named = &document["wa"]["host"]["page_causes"]["overflow"];
            assert_eq!(named.as_f64(), Some(causes.overflow), "{story}");
        }
    }
    let compressed = replay(&compressing(&path, |_| {}));
    let (csd, predicted) = (compressed.wa.csd.unwrap(), compressed.wa.predicted.unwrap());
    let pages = (csd.stored.page, predicted.csd.unwrap().page);
    close("what compression leaves of pages", pages, 0.05);
}

#[test]
fn groups_of_commits_write_less_log_as_predicted() {
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
        let predicted = report.wa.predicted.unwrap().host.log;
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
        let predicted = report.wa.predicted.unwrap().host.log;
        println!("{micros}: {} {predicted}", report.wa.host.log);
        close(
            &format!("{micros} us"),
            (report.wa.host.log, predicted),
            0.15,
        );
    }
}

#[test]
fn a_drive_in_use_moves_more_and_the_predictor_knows() {
    let folder = tempfile::tempdir().unwrap();
    let path = trace(folder.path(), "t", |p| p.ops = Some(120_000));
    for store in STORES {
        let mut fresh = config(&path, |_| {});
        fresh.engine.store = store;
        let fresh_gc = gc(&replay(&fresh));
        // The closed forms are for many erase blocks; here are a few dozen.
        close("fresh", fresh_gc, 0.15);
        for how in [Precondition::Fill, Precondition::Steady] {
            let report = replay(&prepared(fresh.clone(), how));
            close(&format!("{store:?}, {how:?}"), gc(&report), 0.15);
            if store == PageStoreKind::InPlace {
                // What the store never writes stays where it is and must be moved with the rest.
                assert!(gc(&report).0 > 1.2 * fresh_gc.0);
            }
        }
    }
}

#[test]
fn every_cleaning_policy_is_predicted_or_said_not_to_be() {
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

/// A prime, so that multiples of a number go through all below it.
const NUMBERS: u64 = 99_991;

/// Dense numbers in random order, then updates of any of them: what becomes dense, and when, decides how many leaves there are to write.
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
        config.engine.layout = Some(LayoutChoice::named(layout).unwrap());
        let report = replay(&config);
        let predicted = report.wa.predicted.as_ref().unwrap();
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
fn runs_of_neighbouring_keys_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let keys = (0..3_u64).flat_map(|pass| (0..20_000).map(move |block| block ^ (pass << 40)));
    let path = puts(folder.path(), "runs", (0, 120), keys);
    let report = replay(&config(&path, |_| {}));
    assert!(
        report
            .warnings
            .iter()
            .any(|w| w.contains("a trace of runs")),
        "{:?}",
        report.warnings
    );
}

/// Every tag closes, nothing is fetched, and no number is missing.
fn check_page(page: &str) {
    // A script is no markup; it is the last thing of the body.
    let (before, after) = page.split_once("<script>").expect("a script");
    let (_, after) = after.split_once("</script>").expect("its end");
    let page = format!("{before}{after}");
    let page = page.as_str();
    let mut open = Vec::new();
    let mut rest = page;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        let end = rest.find('>').expect("a tag ends");
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
            assert_eq!(open.pop(), Some(name), "closed out of turn");
        } else {
            open.push(name);
        }
    }
    assert_eq!(open, Vec::<&str>::new());
    assert!(page.matches("<svg").count() >= 3, "pictures are missing");
    for foreign in ["<script", "<link", "<img", "src=", "url(", "@import"] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    for absent in ["NaN", "inf ", "inf<", "\"inf", "-0.00 %"] {
        assert!(!page.contains(absent), "{absent}");
    }
}

#[test]
fn the_page_is_whole_whatever_the_run() {
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
        config.engine.tree = TreeKind::Bf(BfOptions::default());
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

/// On a compressing drive, with zeros in the values.
fn compressing(trace: &Path, change: impl FnOnce(&mut CsdProfile)) -> ReplayConfig {
    let (_, mut profile) = treering_sim::csd::builtin("csd").unwrap();
    profile.flash.pages_per_block = 32;
    change(&mut profile);
    let target = Target::Csd {
        profile: Box::new(profile),
        name: "csd".into(),
        capacity_bytes: None,
        precondition: Precondition::None,
    };
    ReplayConfig::new(trace.to_path_buf(), target)
}

#[test]
fn a_compressing_drive_stores_less_than_it_is_given() {
    let folder = tempfile::tempdir().unwrap();
    let path = trace(folder.path(), "t", small);
    for store in STORES {
        for timing in [false, true] {
            let mut on_csd = compressing(&path, |_| {});
            on_csd.engine.store = store;
            on_csd.timing = timing;
            let mut on_ssd = config(&path, |_| {});
            on_ssd.engine.store = store;
            on_ssd.timing = timing;
            let (csd, ssd) = (replay(&on_csd), replay(&on_ssd));
            assert_eq!(csd, replay(&on_csd), "the same twice");
            let (wa, device) = (csd.wa.csd.unwrap(), csd.wa.device.unwrap());
            assert_eq!(ssd.wa.csd, None);
            // B⁻-tree eq. (2): the classes' shares add up.
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
                    "{alpha} x {host} is not {stored}"
                );
            }
            let sum = wa.stored.log + wa.stored.page + wa.stored.extra;
            assert!((sum - wa.stored.total).abs() < 1e-9);
            // Leaves are two thirds full of records that are half zeros.
            let page = wa.alpha.page.unwrap();
            assert!((0.3..0.7).contains(&page), "{page}");
            // Both conventions tell the same bytes.
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

#[test]
fn settings_that_cannot_work_are_told_by_their_flag() {
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

/// What a drive that compresses programs is what it stores and what its garbage collection moves: so
/// the chart has these, and not what the host wrote.
#[test]
fn the_chart_of_a_drive_that_compresses_adds_up_to_what_it_programs() {
    let folder = tempfile::tempdir().unwrap();
    let path = trace(folder.path(), "zipf", small);
    let (_, profile) = treering_sim::csd::builtin("csd").unwrap();
    let target = Target::Csd {
        profile: Box::new(profile),
        name: "csd".into(),
        capacity_bytes: None,
        precondition: Precondition::None,
    };
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
    // And so has its course over time.
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
fn a_compressing_drive_in_use_collects_more_garbage_and_that_is_predicted() {
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
        let predicted = report.wa.predicted.unwrap().device.unwrap();
        let off = device.total / predicted.total - 1.0;
        assert!(
            off.abs() < 0.10,
            "{name}: {} predicted, {} measured",
            predicted.total,
            device.total
        );
    }
}
