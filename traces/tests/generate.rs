//! Tests of generated traces: operation mixes, popularity, determinism, round trips, and refused
//! parameters.

use std::collections::HashMap;

use treering_traces::generate::{
    GenParams, MixgraphParams, Order, Pareto, ValueSize, Workload, build,
};
use treering_traces::info::{self, TraceInfo};
use treering_traces::{Header, Op, OpKind, Writer, open};
use xxhash_rust::xxh3::Xxh3;

fn params(workload: Workload, records: u64, ops: u64) -> GenParams {
    let mut params = GenParams::new(workload, records);
    if workload != Workload::Load {
        params.ops = Some(ops);
    }
    params
}

fn all(params: &GenParams) -> (Header, Vec<Op>) {
    let (header, mut source) = build(params).expect("valid parameters");
    let mut ops = Vec::new();
    let mut op = Op::default();
    while source.next_op(&mut op).expect("generators do not fail") {
        ops.push(op.clone());
    }
    (header, ops)
}

fn counts(ops: &[Op]) -> [u64; 4] {
    OpKind::ALL.map(|kind| ops.iter().filter(|op| op.kind == kind).count() as u64)
}

fn measured(header: &Header, ops: &[Op]) -> Vec<Op> {
    ops[header.warmup_ops as usize..].to_vec()
}

fn popularity(ops: &[Op]) -> HashMap<Vec<u8>, u64> {
    let mut counts = HashMap::new();
    for op in ops {
        *counts.entry(op.key.clone()).or_insert(0) += 1;
    }
    counts
}

#[test]
fn headers_describe_their_traces() {
    for (workload, name) in Workload::ALL {
        for order in [Order::Random, Order::Sorted] {
            let mut params = params(workload, 1000, 5000);
            params.order = order;
            let (header, ops) = all(&params);
            assert_eq!(header.ops, ops.len() as u64, "{name}");
            let distinct = popularity(&ops).len() as u64;
            assert_eq!(header.records, Some(distinct), "{name}");
            let load = if workload == Workload::Load { 0 } else { 1000 };
            assert_eq!(header.warmup_ops, load, "{name}");
            assert!(header.source.starts_with(&format!("gen {name} ")), "{name}");
            assert!(
                ops[..1000].iter().all(|op| op.kind == OpKind::Put),
                "{name}"
            );
            assert_eq!(popularity(&ops[..1000]).len(), 1000, "{name}");
        }
    }
}

#[test]
fn ycsb_mixes_have_the_published_proportions() {
    // Gets, puts, deletes and scans among 6000 operations. F: 2000 reads, and 2000 read-put pairs.
    let expected = [
        (Workload::YcsbA, [3000, 3000, 0, 0]),
        (Workload::YcsbB, [5700, 300, 0, 0]),
        (Workload::YcsbC, [6000, 0, 0, 0]),
        (Workload::YcsbD, [5700, 300, 0, 0]),
        (Workload::YcsbE, [0, 300, 0, 5700]),
        (Workload::YcsbF, [4000, 2000, 0, 0]),
    ];
    for (workload, expected) in expected {
        let (header, ops) = all(&params(workload, 1000, 6000));
        assert_eq!(counts(&measured(&header, &ops)), expected, "{workload:?}");
    }
}

#[test]
fn operation_kinds_have_their_shares_and_are_interleaved() {
    let mut params = params(Workload::Zipf, 1000, 10_000);
    (params.writes, params.deletes, params.scans) = (Some(0.25), Some(0.1), Some(0.05));
    let (header, ops) = all(&params);
    let ops = measured(&header, &ops);
    assert_eq!(counts(&ops), [6000, 2500, 1000, 500]);
    for part in ops.chunks(1000) {
        let [_, puts, _, _] = counts(part);
        assert!(
            (200..300).contains(&puts),
            "{puts} puts in one tenth of the trace"
        );
    }
}

#[test]
fn a_read_modify_write_is_a_get_then_a_put_of_the_same_key_by_the_same_client() {
    let mut params = params(Workload::YcsbF, 100, 3000);
    params.clients = 7;
    let (header, ops) = all(&params);
    let ops = measured(&header, &ops);
    let mut pairs = 0;
    for (i, op) in ops.iter().enumerate() {
        if op.kind == OpKind::Put {
            let read = &ops[i - 1];
            assert_eq!(
                (read.kind, &read.key, read.client),
                (OpKind::Get, &op.key, op.client)
            );
            pairs += 1;
        }
    }
    assert_eq!(pairs, 1000);
}

#[test]
fn zipf_follows_its_distribution_and_scatters_hot_keys_over_the_key_space() {
    for theta in [0.5, 0.9, 1.0, 1.5] {
        let mut params = params(Workload::Zipf, 1000, 500_000);
        params.theta = Some(theta);
        params.no_load = true;
        let (_, ops) = all(&params);
        let mut counts: Vec<_> = popularity(&ops).into_iter().collect();
        counts.sort_by_key(|count| std::cmp::Reverse(count.1));
        let total: f64 = (1..=1000).map(|k| f64::from(k).powf(-theta)).sum();
        // Sorting by the measured counts hardly biases sums over many ranks.
        for most in [10usize, 100, 500] {
            let expected: f64 = (1..=most as u32)
                .map(|k| f64::from(k).powf(-theta))
                .sum::<f64>()
                / total;
            let found = counts[..most].iter().map(|c| c.1).sum::<u64>() as f64 / 500_000.0;
            let slack = 0.03 * expected + 0.002;
            assert!(
                (found - expected).abs() < slack,
                "theta {theta}, {most}: {found} {expected}"
            );
        }
        let hot_low = counts[..100].iter().filter(|c| c.0[0] < 128).count();
        assert!(
            (25..75).contains(&hot_low),
            "{hot_low} of 100 hot keys in the lower half"
        );
    }
}

#[test]
fn the_hot_spot_gets_its_share_of_operations() {
    let mut params = params(Workload::Hotspot, 1000, 100_000);
    (params.hot_ops, params.hot_keys) = (Some(0.9), Some(0.05));
    let (header, ops) = all(&params);
    let mut counts: Vec<u64> = popularity(&measured(&header, &ops)).into_values().collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let hot = counts[..50].iter().sum::<u64>() as f64 / 100_000.0;
    assert!((hot - 0.9).abs() < 0.005, "{hot}");
    assert!(
        counts[49] > 1500 && counts[50] < 200,
        "{} {}",
        counts[49],
        counts[50]
    );
}

#[test]
fn latest_prefers_new_records_and_reads_only_existing_ones() {
    let (_, ops) = all(&params(Workload::Latest, 1000, 20_000));
    let mut born = HashMap::new();
    let mut ages = Vec::new();
    for op in &ops {
        match op.kind {
            OpKind::Put => {
                let age = born.len();
                assert!(born.insert(op.key.clone(), age).is_none(), "inserted twice");
            }
            _ => ages.push(born.len() - 1 - born[&op.key]),
        }
    }
    // 1 / H(1000, 0.99) is about 0.13; a batch may lag behind by a few inserts.
    let young = ages.iter().filter(|&&age| age < 10).count() as f64 / ages.len() as f64;
    assert!((0.3..0.5).contains(&young), "{young}");
}

#[test]
fn scans_of_ycsb_e_start_at_records_that_exist() {
    let (_, ops) = all(&params(Workload::YcsbE, 100, 10_000));
    let mut born = std::collections::HashSet::new();
    for op in &ops {
        match op.kind {
            OpKind::Put => assert!(born.insert(op.key.clone())),
            _ => {
                assert!(born.contains(&op.key));
                assert!((1..=100).contains(&op.scan_len));
            }
        }
    }
    assert_eq!(born.len(), 600);
}

#[test]
fn sorted_and_random_loads_put_the_same_records_in_different_orders() {
    let mut load = params(Workload::Load, 5000, 0);
    let (_, random) = all(&load);
    load.order = Order::Sorted;
    let (_, sorted) = all(&load);
    assert!(sorted.windows(2).all(|w| w[0].key < w[1].key));
    let ascents = random.windows(2).filter(|w| w[0].key < w[1].key).count();
    assert!((2350..2650).contains(&ascents), "{ascents}");
    let mut again = random.clone();
    again.sort_by(|a, b| a.key.cmp(&b.key));
    let pairs = |ops: &[Op]| {
        ops.iter()
            .map(|op| (op.key.clone(), op.value_len))
            .collect::<Vec<_>>()
    };
    assert_eq!(pairs(&again), pairs(&sorted));
    // The keys are spread over the whole key space.
    assert!(sorted[0].key[0] == 0 && sorted[4999].key[0] == 255);
}

#[test]
fn sequential_cycles_through_the_keys_in_order() {
    let (header, ops) = all(&params(Workload::Sequential, 100, 250));
    let ops = measured(&header, &ops);
    assert!(ops[..100].windows(2).all(|w| w[0].key < w[1].key));
    assert_eq!(ops[..100], ops[100..200]);
    assert_eq!(ops[..50], ops[200..]);
}

#[test]
fn hot_records_of_shifting_become_others() {
    let mut params = params(Workload::Shifting, 1000, 60_000);
    (params.hot_keys, params.shift_every) = (Some(0.1), Some(20_000));
    let (header, ops) = all(&params);
    let ops = measured(&header, &ops);
    // Four fifths of the operations go to the records that are hot at that moment.
    let often = |ops: &[Op]| {
        let mut counts: Vec<_> = popularity(ops).into_iter().collect();
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let hot = counts[..100].iter().map(|(_, count)| count).sum::<u64>();
        assert!(hot > ops.len() as u64 * 7 / 10, "{hot} of {}", ops.len());
        let names = counts[..100].iter().map(|(key, _)| key.clone());
        names.collect::<std::collections::HashSet<_>>()
    };
    let [first, second] = [often(&ops[..2000]), often(&ops[20_000..22_000])];
    assert!(first.intersection(&second).count() < 30);
    // In between, the one half is still hot.
    let between = often(&ops[10_000..12_000]);
    assert!((30..70).contains(&first.intersection(&between).count()));
}

#[test]
fn a_log_appends_and_removes_the_oldest() {
    let (header, ops) = all(&params(Workload::Log, 1000, 20_000));
    assert_eq!(header.records, Some(11_000));
    let mut live = std::collections::VecDeque::new();
    let mut last = Vec::new();
    for op in &ops {
        match op.kind {
            OpKind::Put => {
                assert!(op.key > last, "keys ascend");
                last = op.key.clone();
                live.push_back(op.key.clone());
            }
            OpKind::Delete => assert_eq!(live.pop_front().as_ref(), Some(&op.key)),
            kind => panic!("{kind:?}"),
        }
    }
    assert_eq!(live.len(), 1000);
    // Gets read what is there, and without any record deletes find nothing.
    let mut params = params(Workload::Log, 50, 5000);
    (params.writes, params.deletes) = (Some(0.3), Some(0.3));
    let mut live = std::collections::BTreeSet::new();
    for op in all(&params).1 {
        match op.kind {
            OpKind::Put => assert!(live.insert(op.key.clone())),
            OpKind::Delete => drop(live.remove(&op.key)),
            _ => assert!(live.is_empty() || live.contains(&op.key)),
        }
    }
}

#[test]
fn keys_of_every_size_are_distinct() {
    for key_size in [1, 2, 3, 7, 8, 9, 16, 23, 200] {
        let mut params = params(Workload::Load, 250, 0);
        params.key_size = Some(key_size);
        let (_, ops) = all(&params);
        assert!(ops.iter().all(|op| op.key.len() == key_size as usize));
        assert_eq!(popularity(&ops).len(), 250, "{key_size}");
    }
}

#[test]
fn a_record_keeps_its_value_length() {
    let mut params = params(Workload::Uniform, 500, 5000);
    params.value_size = Some(ValueSize { min: 10, max: 300 });
    let (_, ops) = all(&params);
    let mut lengths = HashMap::new();
    for op in ops.iter().filter(|op| op.kind == OpKind::Put) {
        let len = *lengths.entry(op.key.clone()).or_insert(op.value_len);
        assert_eq!(len, op.value_len);
    }
    let mean = lengths.values().map(|&l| f64::from(l)).sum::<f64>() / 500.0;
    assert!((mean - 155.0).abs() < 12.0, "{mean}");
    assert!(lengths.values().all(|l| (10..=300).contains(l)));
}

#[test]
fn mixgraph_has_hot_key_ranges_and_pareto_values() {
    let (header, ops) = all(&params(Workload::Mixgraph, 30_000, 100_000));
    let mut sorted: Vec<&[u8]> = ops[..30_000].iter().map(|op| &op.key[..]).collect();
    sorted.sort_unstable();
    let sizes: Vec<f64> = ops[..30_000]
        .iter()
        .map(|op| f64::from(op.value_len))
        .collect();
    let ops = measured(&header, &ops);
    assert_eq!(counts(&ops), [85_000, 14_000, 0, 1000]);
    let mut ranges = [0u32; 30];
    for op in &ops {
        let position = sorted.binary_search(&&op.key[..]).expect("a loaded key");
        ranges[position / 1000] += 1;
    }
    ranges.sort_unstable_by(|a, b| b.cmp(a));
    let weight = |x: f64| 14.18 * (-2.917 * x).exp() + 0.0164 * (-0.08082 * x).exp();
    let total: f64 = (1..=30).map(|x| weight(f64::from(x))).sum();
    for (i, &found) in ranges.iter().enumerate().take(5) {
        let expected = weight(i as f64 + 1.0) / total * 100_000.0;
        let slack = 4.0 * expected.sqrt() + 1.0;
        assert!(
            (f64::from(found) - expected).abs() < slack,
            "{i}: {found} {expected}"
        );
    }
    // The mean of the generalized Pareto distribution is σ / (1 − k) = 34.5. Add half a byte for
    // rounding up and 1.6 for the floor of 10.
    let mean = sizes.iter().sum::<f64>() / sizes.len() as f64;
    assert!((mean - 36.6).abs() < 1.2, "{mean}");
    assert!(sizes.iter().all(|&s| (10.0..=1024.0).contains(&s)));
    assert!(ops.iter().all(|op| op.key.len() == 48));
}

#[test]
fn clients_take_turns() {
    let mut params = params(Workload::Uniform, 10, 100);
    params.clients = 4;
    let (_, ops) = all(&params);
    assert!(
        ops.iter()
            .enumerate()
            .all(|(i, op)| op.client == i as u32 % 4)
    );
}

#[test]
fn the_source_names_every_parameter() {
    let mut params = params(Workload::Mixgraph, 1000, 10);
    assert_eq!(
        build(&params).expect("valid").0.source,
        "gen mixgraph --records 1000 --ops 10 --order random --key-size 48 --zeros 0.5 --seed 0"
    );
    params.mixgraph.keyrange_num = 5;
    params.mixgraph.iter.k = 0.5;
    params.clients = 2;
    params.no_load = true;
    let source = build(&params).expect("valid").0.source;
    for part in [
        "--keyrange-num 5",
        "--iter-pareto 0,0.5,14.236",
        "--clients 2",
        "--no-load",
    ] {
        assert!(source.contains(part), "{part} is missing in {source}");
    }
}

/// A hash of all operations of a trace.
fn fingerprint(params: &GenParams) -> u64 {
    let mut hash = Xxh3::new();
    let (_, ops) = all(params);
    for op in ops {
        hash.update(&[op.kind as u8]);
        hash.update(&op.key);
        hash.update(&op.value_len.to_le_bytes());
        hash.update(&op.scan_len.to_le_bytes());
        hash.update(&op.client.to_le_bytes());
    }
    hash.digest()
}

#[test]
fn a_seed_always_generates_the_same_trace() {
    // These numbers must never change: a workload and its seed identify a trace.
    let golden: [(Workload, u64); 15] = GOLDEN;
    let mut found = Vec::new();
    for (workload, _) in golden {
        let mut params = params(workload, 1000, 20_000);
        params.seed = 7;
        params.value_size =
            (workload != Workload::Mixgraph).then_some(ValueSize { min: 1, max: 99 });
        let fingerprint_7 = fingerprint(&params);
        found.push((workload, fingerprint_7));
        params.seed = 8;
        assert_ne!(
            fingerprint(&params),
            fingerprint_7,
            "{workload:?} ignores its seed"
        );
    }
    assert_eq!(found, golden);
}

#[test]
fn trace_statistics_survive_both_formats() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut params = params(Workload::Zipf, 2000, 30_000);
    (params.deletes, params.scans) = (Some(0.05), Some(0.05));
    params.value_size = Some(ValueSize {
        min: 0,
        max: 70_000,
    });
    params.clients = 5;
    let (header, mut source) = build(&params).expect("valid parameters");
    let direct = info::collect(&mut *source, &header).expect("generators do not fail");
    let (_, ops) = all(&params);
    for name in ["trace.jsonl", "trace.trz"] {
        let path = dir.path().join(name);
        let mut writer = Writer::create(&path, header.clone()).expect("a new file");
        ops.iter()
            .for_each(|op| writer.write(op).expect("room on the disk"));
        writer.finish().expect("room on the disk");
        let mut reader = open(&path).expect("a trace");
        let header = reader.header().clone();
        let read: TraceInfo = info::collect(&mut reader, &header).expect("a sound trace");
        assert_eq!(read, direct, "{name}");
    }
}

#[test]
fn invalid_parameters_are_refused_by_name() {
    let refused = |workload, change: &dyn Fn(&mut GenParams), flag: &str| {
        let mut params = params(workload, 1000, 1000);
        change(&mut params);
        let error = build(&params)
            .err()
            .expect("the parameters must be refused")
            .to_string();
        assert!(error.starts_with(&format!("{flag}: ")), "{flag}: {error}");
    };
    use Workload::*;
    refused(Zipf, &|p| p.records = 0, "records");
    refused(Zipf, &|p| p.records = u64::MAX, "records");
    refused(Zipf, &|p| p.ops = Some(u64::MAX), "ops");
    refused(Load, &|p| p.ops = Some(5), "ops");
    refused(Load, &|p| p.no_load = true, "no-load");
    refused(Zipf, &|p| p.theta = Some(1.6), "theta");
    refused(Zipf, &|p| p.theta = Some(f64::NAN), "theta");
    refused(Uniform, &|p| p.theta = Some(0.5), "theta");
    refused(Zipf, &|p| p.writes = Some(-0.1), "writes");
    refused(Zipf, &|p| p.writes = Some(f64::INFINITY), "writes");
    refused(
        Zipf,
        &|p| (p.writes, p.deletes) = (Some(0.7), Some(0.4)),
        "writes",
    );
    refused(YcsbA, &|p| p.writes = Some(0.5), "writes");
    refused(Zipf, &|p| p.scans = Some(1.1), "scans");
    refused(Zipf, &|p| p.max_scan = Some(0), "max-scan");
    refused(Zipf, &|p| p.density = Some(0.0), "density");
    refused(Zipf, &|p| p.density = Some(1.5), "density");
    refused(Zipf, &|p| p.density = Some(f64::NAN), "density");
    refused(
        Zipf,
        &|p| (p.key_size, p.density, p.records) = (Some(2), Some(0.5), 40_000),
        "density",
    );
    refused(Zipf, &|p| p.hot_ops = Some(0.5), "hot-ops");
    refused(Hotspot, &|p| p.hot_keys = Some(2.0), "hot-keys");
    refused(Hotspot, &|p| p.shift_every = Some(9), "shift-every");
    refused(Shifting, &|p| p.shift_every = Some(0), "shift-every");
    refused(Zipf, &|p| p.key_size = Some(1), "key-size");
    refused(Zipf, &|p| p.key_size = Some(0), "key-size");
    refused(Zipf, &|p| p.key_size = Some(5000), "key-size");
    refused(
        Zipf,
        &|p| p.value_size = Some(ValueSize { min: 9, max: 8 }),
        "value-size",
    );
    refused(
        Zipf,
        &|p| p.value_size = Some(ValueSize::fixed(u32::MAX)),
        "value-size",
    );
    refused(Zipf, &|p| p.zeros = 1.5, "zeros");
    refused(Zipf, &|p| p.clients = 0, "clients");
    refused(Mixgraph, &|p| p.mixgraph.keyrange_num = 0, "keyrange-num");
    refused(
        Mixgraph,
        &|p| p.mixgraph.keyrange_dist = [-1.0; 4],
        "keyrange-dist",
    );
    refused(Mixgraph, &|p| p.mixgraph.value.sigma = 0.0, "value-pareto");
    for text in ["", "x", "5-", "9-8", "-3", "4KiBs"] {
        assert!(text.parse::<ValueSize>().is_err(), "{text}");
    }
    assert_eq!(
        "16-400"
            .parse::<ValueSize>()
            .expect("two numbers")
            .to_string(),
        "16-400"
    );
    for text in ["", "1,2", "1,2,x", "1,2,3,4", "0,0,0", "0,nan,1"] {
        assert!(text.parse::<Pareto>().is_err(), "{text}");
    }
    let law: Pareto = "0,0.2615,25.45".parse().expect("three numbers");
    assert_eq!(law, MixgraphParams::default().value);
    assert!("ycsb-g".parse::<Workload>().is_err());
    assert_eq!("ycsb-f".parse::<Workload>().expect("a name"), YcsbF);
    assert!("up".parse::<Order>().is_err());
}

/// Fingerprints of 1000 records and 20 000 operations with seed 7. `ycsb-a` equals `zipf`, and
/// `ycsb-d` equals `latest`, because they have the same distribution, mix and seed.
const GOLDEN: [(Workload, u64); 15] = [
    (Workload::YcsbA, 0x30be_64de_a38b_c8d5),
    (Workload::YcsbB, 0x010c_b80c_0097_a0b8),
    (Workload::YcsbC, 0x8323_e7ec_1d41_cd1c),
    (Workload::YcsbD, 0x6d09_39b2_1c47_7f9a),
    (Workload::YcsbE, 0x8273_9561_870c_54e7),
    (Workload::YcsbF, 0xd503_35af_6568_2776),
    (Workload::Uniform, 0x1121_9a5f_510d_df97),
    (Workload::Zipf, 0x30be_64de_a38b_c8d5),
    (Workload::Latest, 0x6d09_39b2_1c47_7f9a),
    (Workload::Hotspot, 0xbdf4_9b10_ea34_777a),
    (Workload::Mixgraph, 0xdb5f_1769_db67_d3e2),
    (Workload::Load, 0x3f35_f0ce_aa08_5843),
    (Workload::Sequential, 0x366e_b902_2a07_6fed),
    (Workload::Shifting, 0xd87f_057e_f4f4_5bdc),
    (Workload::Log, 0x1e9e_4e54_e8c3_ebcd),
];
