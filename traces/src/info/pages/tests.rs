//! Compares the curve with caches of pages that are played access by access.

use std::collections::BTreeSet;

use super::super::collect::collect_pages_with;
use super::super::reuse::tests::{Access, play};
use super::*;

/// Operations in memory.
struct List<'a>(std::slice::Iter<'a, Op>);

impl OpSource for List<'_> {
    fn next_op(&mut self, op: &mut Op) -> Result<bool, TraceError> {
        let next = self.0.next();
        let more = next.is_some();
        *op = next.cloned().unwrap_or_default();
        Ok(more)
    }
}

fn curve(ops: &[Op], warmup: usize, page_bytes: u32, limits: Limits) -> PageCurve {
    let mut header = Header::named("a list", "a test");
    (header.ops, header.warmup_ops) = (ops.len() as u64, warmup as u64);
    let open = || Ok(List(ops.iter()));
    let info = collect_pages_with(&header, page_bytes, limits, open);
    let info = info.expect("a list does not fail");
    info.page_cache.expect("there are operations")
}

/// Operations on keys of several lengths, with bursts, scans, deletes, and popularity that moves.
fn operations(keys: u64, count: usize, seed: u64) -> Vec<Op> {
    let mut drawn = 0;
    let mut below = |most: u64| {
        drawn += 1;
        xxh3_64(format!("{seed} {drawn}").as_bytes()) % most
    };
    let mut ops = Vec::new();
    while ops.len() < count {
        let middle = ops.len() as u64 * keys / count as u64;
        let number = match below(4) {
            0 => below(keys),
            _ => (middle + below(keys / 8)) % keys,
        };
        let kind = OpKind::ALL[below(4) as usize];
        let is = |wanted| u32::from(kind == wanted);
        for next in 0..1 + below(3) {
            ops.push(Op {
                kind,
                key: format!("k{}", (number + next) % keys).into_bytes(),
                value_len: is(OpKind::Put) * (50 + below(100) as u32),
                scan_len: is(OpKind::Scan) * below(60) as u32,
                ..Op::default()
            });
        }
    }
    ops.truncate(count);
    ops
}

/// The number of records of a page, and the accesses to pages.
fn accesses(ops: &[Op], warmup: usize, page_bytes: u32) -> (u64, Vec<Access>) {
    let keys: BTreeSet<&[u8]> = ops.iter().map(|op| &op.key[..]).collect();
    let puts = || ops.iter().filter(|op| op.kind == OpKind::Put);
    let values: u64 = puts().map(|op| u64::from(op.value_len)).sum();
    let key_bytes: usize = keys.iter().map(|key| key.len()).sum();
    let record = key_bytes as f64 / keys.len() as f64 + values as f64 / puts().count() as f64;
    let per_page = (0.69 * f64::from(page_bytes) / record) as u64;
    let order: Vec<&[u8]> = keys.into_iter().collect();
    let mut all = Vec::new();
    for op in &ops[warmup..] {
        let place = order.binary_search(&&op.key[..]).expect("a key") as u64;
        let last = place + u64::from(op.scan_len.max(1)) - 1;
        let last = last.min(order.len() as u64 - 1);
        let write = is_write(op.kind);
        all.extend((place / per_page..=last / per_page).map(|page| (page, write)));
    }
    (per_page, all)
}

fn writes(ops: &[Op]) -> f64 {
    ops.iter().filter(|op| is_write(op.kind)).count() as f64
}

#[test]
fn the_curve_is_what_a_cache_of_pages_does() {
    for (seed, warmup, page_bytes) in [(1, 0, 512), (2, 300, 512), (3, 7, 1024), (4, 0, 3000)] {
        let ops = operations(300, 3_000, seed);
        let (per_page, list) = accesses(&ops, warmup, page_bytes);
        let found = curve(&ops, warmup, page_bytes, Limits::default());
        assert_eq!(u64::from(found.records_per_page), per_page);
        assert_eq!((found.sampled, found.estimated), (1.0, false));
        // Small enough for exact bins.
        let most = found.points.last().expect("points").pages;
        assert!((10..128).contains(&most), "{most} pages");
        for point in &found.points {
            let (misses, back) = play(&list, point.pages as usize);
            let expected = misses as f64 / list.len() as f64;
            assert!((point.misses - expected).abs() < 1e-9, "{seed}: {point:?}");
            let written = point.written_back.expect("there are writes");
            let expected = back as f64 / writes(&ops[warmup..]);
            assert!((written - expected).abs() < 1e-9, "{seed}: {point:?}");
        }
    }
}

/// Within 0.04 of the whole, for sizes that both curves have.
fn check_near(sampled: &PageCurve, exact: &PageCurve) {
    assert!(sampled.estimated && !exact.estimated);
    let pages = sampled.pages as f64 / exact.pages as f64;
    assert!((pages - 1.0).abs() < 0.06, "{pages}");
    let per_scan = |curve: &PageCurve| curve.pages_per_scan.expect("scans");
    let scans = per_scan(sampled) / per_scan(exact);
    assert!((scans - 1.0).abs() < 0.03, "{scans}");
    let mut compared = 0;
    for a in &sampled.points {
        let Some(b) = exact.points.iter().find(|b| a.pages == b.pages) else {
            continue;
        };
        compared += 1;
        assert!((a.misses - b.misses).abs() < 0.04, "{a:?}, {b:?}");
        let back = a.written_back.expect("writes") - b.written_back.expect("writes");
        assert!(back.abs() < 0.04, "{a:?}, {b:?}");
    }
    assert!(compared >= 3, "{sampled:?}");
}

#[test]
fn a_sample_of_keys_or_of_pages_gives_nearly_the_same_curve() {
    let ops = operations(40_000, 200_000, 5);
    let exact = curve(&ops, 1_000, 512, Limits::default());
    let limits = Limits::default;
    for limits in [
        Limits {
            keys: 12_000,
            ..limits()
        },
        Limits {
            bytes: 100_000,
            ..limits()
        },
        Limits {
            pages: 2_500,
            ..limits()
        },
        Limits {
            keys: 24_000,
            pages: 2_500,
            ..limits()
        },
    ] {
        let found = curve(&ops, 1_000, 512, limits);
        check_near(&found, &exact);
        assert!(found.sampled < 0.6, "{limits:?}: {}", found.sampled);
    }
}

/// Keys that arrive in order are as likely in a sample as the others.
#[test]
fn a_queue_is_sampled_at_both_ends() {
    let op = |kind, number: usize| Op {
        kind,
        key: format!("{number:08}").into_bytes(),
        value_len: if kind == OpKind::Put { 92 } else { 0 },
        ..Op::default()
    };
    let ops = (0..60_000_usize).flat_map(|i| {
        let oldest = i.checked_sub(5_000).map(|old| op(OpKind::Delete, old));
        [Some(op(OpKind::Put, i)), oldest].into_iter().flatten()
    });
    let ops: Vec<Op> = ops.collect();
    let exact = curve(&ops, 0, 4096, Limits::default());
    let limits = Limits {
        keys: 10_000,
        ..Limits::default()
    };
    let found = curve(&ops, 0, 4096, limits);
    assert_eq!(exact.pages, 60_000_u64.div_ceil(28));
    let back = |curve: &PageCurve, pages: u64| {
        let point = curve.points.iter().find(|point| point.pages == pages);
        point.expect("the size").written_back.expect("writes")
    };
    // A page leaves a small cache twice, and one that holds the queue once, unless it is still in
    // there at the end.
    for pages in [200, 500] {
        let (found, exact) = (back(&found, pages), back(&exact, pages));
        assert!(
            (found / exact - 1.0).abs() < 0.1,
            "{pages}: {found}, {exact}"
        );
    }
    let twice = back(&exact, 200) / back(&exact, 500);
    assert!((2.0..2.5).contains(&twice), "{twice}");
}

#[test]
fn keys_are_sorted_and_retained_as_a_list_of_keys() {
    for common in ["", "user", "a long prefix of all keys "] {
        let numbers = 0..500_u64;
        let numbers = numbers.map(|i| xxh3_64(&i.to_le_bytes()) >> (8 * (i % 8)));
        let mut list: Vec<Vec<u8>> = numbers
            .map(|number| format!("{common}{number:x}").into_bytes())
            .collect();
        list.push(common.as_bytes().to_vec());
        let mut keys = Keys::default();
        list.iter().for_each(|key| keys.push(key));
        let is_kept = |key: &[u8]| !xxh3_64(key).is_multiple_of(3);
        keys.retain(is_kept);
        list.retain(|key| is_kept(key));
        let kept: Vec<&[u8]> = (0..keys.len()).map(|i| keys.get(i)).collect();
        assert_eq!(kept, list);
        list.sort();
        let order = keys.sorted();
        let sorted: Vec<&[u8]> = order.iter().map(|&i| keys.get(i as usize)).collect();
        assert_eq!(sorted, list);
    }
    assert!(Keys::default().sorted().is_empty());
}

#[test]
fn a_page_has_a_sensible_size_and_without_operations_there_is_no_curve() {
    let header = Header::named("nothing", "a test");
    let open = || Ok(List([].iter()));
    let limits = Limits::default();
    let none = collect_pages_with(&header, 4096, limits, open).expect("a list");
    assert_eq!(none.page_cache, None);
    for bytes in [0, 511, (1 << 20) + 1] {
        let error = collect_pages_with(&header, bytes, limits, open).expect_err("a bad size");
        assert!(error.to_string().contains("512 bytes to 1 MiB"), "{error}");
    }
    // A record is larger than a page.
    let put = Op {
        kind: OpKind::Put,
        key: b"k".to_vec(),
        value_len: 5000,
        ..Op::default()
    };
    let found = curve(&[put], 0, 4096, limits);
    assert_eq!((found.records_per_page, found.pages), (1, 1));
    assert_eq!(found.pages_per_scan, None);
}
