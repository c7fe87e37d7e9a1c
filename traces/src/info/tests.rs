use super::collect::collect_with;
use super::*;
use crate::Op;
use crate::generate::{GenParams, ValueSize, Workload, build};

fn info(params: &GenParams) -> TraceInfo {
    let (header, mut source) = build(params).expect("valid parameters");
    collect(&mut *source, &header).expect("generators do not fail")
}

fn zipf(theta: f64, records: u64, ops: u64, no_load: bool) -> GenParams {
    let mut params = GenParams::new(Workload::Zipf, records);
    params.theta = Some(theta);
    params.ops = Some(ops);
    params.no_load = no_load;
    params
}

#[test]
fn the_fitted_exponent_is_the_generated_one() {
    for no_load in [false, true] {
        for (records, ops) in [(1000, 100_000), (20_000, 200_000), (100_000, 100_000)] {
            for theta in [0.5, 0.7, 0.9, 0.99, 1.0, 1.2] {
                let info = info(&zipf(theta, records, ops, no_load));
                let found = info.popularity.expect("keys repeat");
                assert!(
                    (found.theta - theta).abs() <= 0.03,
                    "records {records} ops {ops} no_load {no_load}: \
                     generated {theta}, found {found:?}"
                );
                assert!(found.ks_distance < 0.02, "{found:?}");
                // The stated error covers the difference, except for the grid of ranks and counts.
                let stated = 4.0 * found.theta_error + 0.005;
                assert!((found.theta - theta).abs() <= stated, "{theta}: {found:?}");
                assert!(found.estimated && found.theta_error < 0.05, "{found:?}");
            }
        }
    }
}

#[test]
fn uniform_accesses_are_no_skew() {
    for no_load in [false, true] {
        for (records, ops) in [(1000, 100_000), (50_000, 50_000), (20_000, 400_000)] {
            let mut params = GenParams::new(Workload::Uniform, records);
            params.ops = Some(ops);
            params.no_load = no_load;
            let found = info(&params).popularity.expect("keys repeat");
            // With one access per key, 0.1 can hardly be told from 0.
            let tolerance = if ops > records { 0.1 } else { 0.15 };
            assert!(
                found.theta < tolerance,
                "{records} {ops} {no_load}: {found:?}"
            );
        }
    }
}

#[test]
fn a_sample_of_the_keys_serves_for_the_fit() {
    let params = zipf(0.9, 200_000, 1_000_000, false);
    let (header, mut source) = build(&params).expect("valid parameters");
    let info = collect_with(&mut *source, &header, 30_000).expect("generators do not fail");
    assert!(info.estimated && !info.keys_exact);
    let error = info.distinct_keys as f64 / 200_000.0 - 1.0;
    assert!(error.abs() < 4.0 * info.keys_error, "{error}");
    assert!(
        (0.003..0.01).contains(&info.keys_error),
        "{}",
        info.keys_error
    );
    // The load fills the table. Without a load, points are exact until the table is full.
    assert!(info.working_set.iter().all(|p| p.estimated));
    let (header, mut source) = build(&zipf(0.9, 200_000, 100_000, true)).expect("valid parameters");
    let unloaded = collect_with(&mut *source, &header, 30_000).expect("generators do not fail");
    let exact = unloaded.working_set.iter().take_while(|p| !p.estimated);
    assert!((5..unloaded.working_set.len()).contains(&exact.count()));
    let text = info.render_text();
    let error = 100.0 * info.keys_error;
    assert!(
        text.contains(&format!("(estimated, ± {error:.2} %)")),
        "{text}"
    );
    assert!(
        text.contains("distinct keys  ≈") && text.contains("Zipf ≈"),
        "{text}"
    );
    let theta = info.popularity.expect("keys repeat").theta;
    assert!((theta - 0.9).abs() < 0.03, "{theta}");
}

#[test]
fn a_hot_spot_is_no_zipf_and_its_share_is_seen() {
    let mut params = GenParams::new(Workload::Hotspot, 10_000);
    params.ops = Some(500_000);
    let found = info(&params).popularity.expect("keys repeat");
    let fifth = found.hottest[3];
    assert_eq!(fifth.keys, 0.2);
    assert!((fifth.accesses - 0.8).abs() < 0.01, "{found:?}");
    assert!(found.ks_distance > 0.1, "{found:?}");
}

#[test]
fn counts_bytes_and_sizes_leave_the_warm_up_out() {
    let mut params = GenParams::new(Workload::Uniform, 1000);
    params.ops = Some(10_000);
    params.writes = Some(0.3);
    params.deletes = Some(0.1);
    params.scans = Some(0.2);
    params.value_size = Some(ValueSize { min: 10, max: 50 });
    params.clients = 3;
    let info = info(&params);
    assert!(info.complete);
    assert_eq!((info.ops, info.warmup_ops), (11_000, 1000));
    let counts = (
        info.measured.get,
        info.measured.put,
        info.measured.delete,
        info.measured.scan,
    );
    assert_eq!(counts, (4000, 3000, 1000, 2000));
    assert_eq!(info.all.put, 4000);
    assert_eq!(info.write_share, Some(0.4));
    assert_eq!(
        (info.distinct_keys, info.keys_exact, info.clients),
        (1000, true, 3)
    );
    let values = info.value_bytes.as_ref().expect("puts");
    assert_eq!((values.count, values.min, values.max), (3000, 10, 50));
    assert!((values.mean - 30.0).abs() < 1.5);
    let user = 4000 * 16 + (values.mean * 3000.0).round() as u64;
    assert_eq!(info.user_bytes, user);
    let scans = info.scan_records.as_ref().expect("scans");
    assert_eq!((scans.min, scans.max), (1, 100));
    assert_eq!(info.duration_ns, None);
    let text = info.render_text();
    for part in [
        "11.0k",
        "write share    40.00 %",
        "value bytes",
        "working set",
    ] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
}

#[test]
fn the_working_set_grows_to_the_number_of_keys() {
    let mut params = GenParams::new(Workload::Sequential, 500);
    params.ops = Some(1234);
    let info = info(&params);
    let points: Vec<_> = info
        .working_set
        .iter()
        .map(|p| (p.ops, p.distinct_keys))
        .collect();
    assert_eq!(
        points,
        [
            (1, 1),
            (2, 2),
            (5, 5),
            (10, 10),
            (20, 20),
            (50, 50),
            (100, 100),
            (200, 200),
            (500, 500),
            (1000, 500),
            (1234, 500)
        ]
    );
}

#[test]
fn an_empty_trace_and_a_short_one_have_no_law() {
    let mut params = zipf(0.9, 10, 0, true);
    let empty = info(&params);
    assert_eq!((empty.ops, empty.popularity.is_none()), (0, true));
    assert_eq!(empty.write_share, None);
    params.ops = Some(1);
    assert!(info(&params).popularity.is_none());
    assert!(!empty.render_text().is_empty());
}

#[test]
fn extreme_counts_have_a_law_and_no_panic() {
    let laws = [
        vec![(1, 10), (1_000_000, 1)],
        vec![(u32::MAX, 2)],
        vec![(1, 1_000_000), (2, 1)],
        vec![(2, 2)],
        vec![(0, 5_000_000), (1, 1)],
        (1..5000).map(|count| (count * count, 1)).collect(),
    ];
    for law in laws {
        for closed in [false, true] {
            let frequencies: std::collections::BTreeMap<u32, u64> = law.iter().copied().collect();
            let accesses = law
                .iter()
                .map(|(count, keys)| u64::from(*count) * keys)
                .sum();
            let seen = law.iter().filter(|(count, _)| closed || *count > 0);
            let fit = fit::zipf(fit::Observed {
                frequencies: &frequencies,
                accesses,
                keys: seen.map(|(_, keys)| keys).sum(),
                closed,
            });
            if let Some(fit) = fit {
                assert!((0.0..=3.0).contains(&fit.theta), "{law:?}: {}", fit.theta);
                assert!((0.0..=1.0 + 1e-9).contains(&fit.ks), "{law:?}: {}", fit.ks);
            }
        }
    }
}

#[test]
fn the_machine_form_names_its_schema_and_whether_it_is_complete() {
    let params = zipf(0.9, 100, 1000, false);
    let (mut header, mut source) = build(&params).expect("valid parameters");
    header.ops += 1;
    let info = collect(&mut *source, &header).expect("generators do not fail");
    let json = serde_json::to_value(&info).expect("plain data");
    assert_eq!(json["schema"], "treering.trace-info/1");
    assert_eq!(json["complete"], false);
    assert_eq!(json["measured"]["put"], 500);
    assert!(
        info.render_text()
            .contains("fewer or more than its header says")
    );
}

/// With few keys, the hottest are counted in whole keys, because half a key gets no accesses.
#[test]
fn of_few_keys_the_hottest_are_whole_keys() {
    let info = info(&zipf(0.9, 20, 10_000, true));
    let counts: Vec<f64> = {
        let mut source = build(&zipf(0.9, 20, 10_000, true)).expect("valid").1;
        let (mut op, mut counts) = (Op::default(), std::collections::HashMap::new());
        while source.next_op(&mut op).expect("generators do not fail") {
            *counts.entry(op.key.clone()).or_insert(0_u32) += 1;
        }
        let mut counts: Vec<f64> = counts.into_values().map(f64::from).collect();
        counts.sort_by(|a, b| b.total_cmp(a));
        counts
    };
    assert_eq!(counts.len(), 20);
    let hottest = &info.popularity.as_ref().expect("keys repeat").hottest;
    let expected: Vec<Hottest> = [1, 2, 4, 10]
        .map(|number| Hottest {
            keys: number as f64 / 20.0,
            accesses: counts[..number].iter().sum::<f64>() / 10_000.0,
            number: Some(number as u64),
        })
        .to_vec();
    assert_eq!(*hottest, expected);
    let text = info.render_text();
    assert!(
        text.contains("accesses to    the hottest key ") && text.contains(", the 2 hottest "),
        "{text}"
    );
}

/// A thousandth of a few hundred keys is less than one key, so one key is shown. Other shares stay
/// shares.
#[test]
fn a_thousandth_of_a_few_hundred_keys_is_one_key() {
    let info = info(&zipf(0.9, 500, 50_000, false));
    let hottest = info.popularity.expect("keys repeat").hottest;
    let numbers: Vec<_> = hottest.iter().map(|hot| hot.number).collect();
    assert_eq!(numbers, [Some(1), None, None, None, None]);
    assert_eq!((hottest[0].keys, hottest[1].keys), (1.0 / 500.0, 0.01));
}
