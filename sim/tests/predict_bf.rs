//! Predictions for mini-pages compared with small replays of the real tree.

use std::path::{Path, PathBuf};

use treering_engine::{BfOptions, Durability, Options, Promote, TreeKind};
use treering_sim::predict::{self, Before, Cleaning, DeviceParams, Span};
use treering_sim::replay::{ReplayConfig, Size, Target, run};
use treering_sim::report::ReplayReport;
use treering_traces::generate::{GenParams, ValueSize, Workload, build};
use treering_traces::{Op, Writer};

fn trace(folder: &Path, theta: f64, writes: f64) -> PathBuf {
    let mut params = GenParams::new(Workload::Zipf, 60_000);
    params.ops = Some(240_000);
    params.theta = Some(theta);
    params.writes = Some(writes);
    params.key_size = Some(16);
    params.value_size = Some(ValueSize::fixed(16));
    let (header, mut source) = build(&params).expect("good parameters");
    let path = folder.join(format!("{theta}-{writes}.trz"));
    let mut writer = Writer::create(&path, header).expect("a new file");
    let mut op = Op::default();
    while source.next_op(&mut op).expect("made up") {
        writer.write(&op).expect("room");
    }
    writer.finish().expect("room");
    path
}

fn replay(trace: &Path, cache: f64, bf: BfOptions) -> ReplayReport {
    let target = Target::builtin("ssd").expect("the built-in profile");
    let mut config = ReplayConfig::new(trace.to_path_buf(), target);
    config.tree.pages_mut().tree = TreeKind::Bf(bf);
    config.cache = Size::Share(cache);
    config.warmup = Some(0.5);
    run(&config, &mut |_| {}).expect("a replay")
}

/// The relative error of a figure: measured over predicted, minus one.
fn off(report: &ReplayReport, name: &str) -> f64 {
    let found = report.cache.compared.iter().find(|c| c.name == name);
    let found = found.unwrap_or_else(|| panic!("the report has no figure of {name}"));
    let predicted = found.predicted.expect("a prediction");
    found.measured / predicted.value() - 1.0
}

fn holds(report: &ReplayReport, figures: &[(&str, f64)]) {
    for (name, within) in figures {
        let off = off(report, name);
        assert!(off.abs() < *within, "{name}: off by {off}");
    }
}

/// Small stores are noisy: they have a few thousand leaves, and a few thousand gets hit.
const ALL: [(&str, f64); 5] = [
    ("gets answered", 0.05),
    ("page reads", 0.03),
    ("page writes", 0.04),
    ("log bytes", 0.08),
    ("merges", 0.04),
];

#[test]
fn hits_and_page_writes_are_predicted() {
    let folder = tempfile::tempdir().expect("a folder");
    for writes in [0.1, 0.5, 0.9] {
        let path = trace(folder.path(), 0.9, writes);
        for cache in [0.1, 0.3] {
            holds(&replay(&path, cache, BfOptions::PUBLISHED), &ALL);
        }
    }
}

/// Fewer page writes are fewer to count, and a checkpoint more or less at the end of so small a run is
/// a part of them.
#[test]
fn what_the_head_spares_is_predicted() {
    let folder = tempfile::tempdir().expect("a folder");
    for writes in [0.5, 0.9] {
        let path = trace(folder.path(), 0.9, writes);
        for cache in [0.1, 0.3] {
            let report = replay(&path, cache, BfOptions::default());
            let published = replay(&path, cache, BfOptions::PUBLISHED);
            holds(&report, &ALL.map(|(name, _)| (name, 0.10)));
            let mini_pages = report.cache.mini_pages.as_ref().expect("a Bf-Tree");
            assert!(mini_pages.spared > mini_pages.evictions / 2);
            assert!(report.wa.host.page < 0.8 * published.wa.host.page);
        }
    }
}

#[test]
fn ring_options_change_the_prediction_as_they_change_the_tree() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = trace(folder.path(), 0.7, 0.5);
    let mut hits = Vec::new();
    for (copy_on_access_percent, promotion_percent) in [(0, 100), (50, 0)] {
        let bf = BfOptions {
            copy_on_access_percent,
            promote: Promote::Percent(promotion_percent),
            ..BfOptions::PUBLISHED
        };
        let report = replay(&path, 0.2, bf);
        holds(&report, &ALL);
        let prediction = report
            .prediction
            .as_ref()
            .and_then(|p| p.mini_pages.as_ref());
        let mini_pages = prediction.expect("a prediction");
        assert_eq!(mini_pages.promotions == 0.0, promotion_percent == 0);
        assert_eq!(
            mini_pages.copies_to_tail == 0.0,
            copy_on_access_percent == 0
        );
        hits.push(mini_pages.hit_ratio);
    }
    assert!(
        hits[0] > hits[1],
        "promotion must raise the hit ratio: {hits:?}"
    );
}

/// The keys take twice and four times the sampling budget.
#[test]
fn a_sample_of_the_keys_predicts_what_all_of_them_do() {
    let mut params = GenParams::new(Workload::Zipf, 120_000);
    params.ops = Some(360_000);
    params.theta = Some(0.7);
    params.key_size = Some(16);
    params.value_size = Some(ValueSize::fixed(16));
    let options = Options {
        tree: TreeKind::Bf(BfOptions::PUBLISHED),
        cache_bytes: 1 << 20,
        log_bytes: 2 << 20,
        checkpoint_log_bytes: 1 << 20,
        log_buffer_bytes: 64 << 10,
        durability: Durability::PER_MINUTE,
        ..Options::default()
    };
    let device = DeviceParams {
        capacity_blocks: 4000,
        physical_pages: 4400.0,
        pages_per_block: 256,
        before: Before::Nothing,
        before_block: 1.0,
        cleaning: Cleaning::Greedy,
        compression: None,
        flash: None,
    };
    let predicted = |memory_bytes| {
        let (_, mut source) = build(&params).expect("good parameters");
        let span = Span {
            memory_bytes,
            ..Span::after(300_000)
        };
        let workload = predict::Workload::analyze(&mut *source, span).expect("a trace");
        let prediction = predict::predict(&workload, &options, &device, None);
        let mini_pages = prediction.mini_pages.expect("mini-pages");
        let figures = [
            mini_pages.hit_ratio,
            mini_pages.page_reads,
            mini_pages.page_writes,
        ];
        (workload.sample_shift, figures)
    };
    let (shift, all) = predicted(100_000_000);
    assert_eq!(shift, 0);
    for budget in [2_600_000, 1_300_000] {
        let (shift, part) = predicted(budget);
        assert!(
            shift > 0,
            "a budget of {budget} fits all keys: nothing was sampled"
        );
        for (all, part) in all.iter().zip(part) {
            assert!(
                (part / all - 1.0).abs() < 0.06,
                "{part} of 1 in 2^{shift}, {all} of all"
            );
        }
    }
}

#[test]
fn predictions_with_mini_pages_are_deterministic() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = trace(folder.path(), 0.9, 0.5);
    let twice = [0, 1].map(|_| replay(&path, 0.1, BfOptions::PUBLISHED).prediction);
    assert!(twice[0].is_some() && twice[0] == twice[1]);
}
