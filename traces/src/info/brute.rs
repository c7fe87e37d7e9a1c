//! Compares the statistics of correlation with computations that look at all operations at once.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::collect::collect_with;
use super::*;
use crate::{Header, Op, OpKind, OpSource, TraceError};

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

fn collected(ops: &[Op], warmup: usize, exact_keys: usize) -> TraceInfo {
    let mut header = Header::named("a list", "a test");
    (header.ops, header.warmup_ops) = (ops.len() as u64, warmup as u64);
    let mut list = List(ops.iter());
    collect_with(&mut list, &header, exact_keys).expect("a list does not fail")
}

/// Pseudo-random numbers.
struct Draws {
    seed: u64,
    drawn: u64,
}

impl Draws {
    fn within(&mut self, range: std::ops::Range<u64>) -> u64 {
        self.drawn += 1;
        let bytes = [self.seed, self.drawn].map(u64::to_le_bytes).concat();
        range.start + xxhash_rust::xxh3::xxh3_64(&bytes) % (range.end - range.start)
    }
}

/// Random operations: popular keys that move, runs, reads before writes, deletes.
fn random(keys: u64, count: usize, seed: u64) -> Vec<Op> {
    let mut random = Draws { seed, drawn: 0 };
    let mut ops: Vec<Op> = Vec::new();
    let op = |kind, number: u64| Op {
        kind,
        key: (number % keys).to_be_bytes().to_vec(),
        ..Op::default()
    };
    while ops.len() < count {
        let middle = ops.len() as u64 * keys / (2 * count as u64);
        let number = match random.within(0..4) {
            0 => random.within(0..keys),
            _ => middle + random.within(0..keys / 8),
        };
        match random.within(0..10) {
            0..3 => ops.push(op(OpKind::Get, number)),
            3 => ops.push(op(OpKind::Scan, number)),
            4 => ops.push(op(OpKind::Delete, number)),
            5..8 => {
                let run = random.within(1..6);
                ops.extend((0..run).map(|next| op(OpKind::Put, number + next)));
            }
            _ => {
                ops.push(op(OpKind::Get, number));
                let between = random.within(0..2) * random.within(0..24);
                ops.extend((0..between).map(|next| op(OpKind::Get, number + 7 + next)));
                ops.push(op(OpKind::Put, number));
            }
        }
    }
    ops.truncate(count);
    ops
}

/// Count, minimum, maximum, sum, and counts by powers of two.
fn summary(values: &[u64]) -> (u64, u64, u64, u64, BTreeMap<u64, u64>) {
    let mut by_start = BTreeMap::new();
    for value in values {
        *by_start.entry(1 << value.ilog2()).or_insert(0) += 1;
    }
    let (least, most) = (values.iter().min(), values.iter().max());
    (
        values.len() as u64,
        *least.unwrap_or(&0),
        *most.unwrap_or(&0),
        values.iter().sum(),
        by_start,
    )
}

fn check_sizes(what: &str, found: &Option<SizeStats>, values: &[u64]) {
    let expected = summary(values);
    let found = found.as_ref().map_or((0, 0, 0, 0, BTreeMap::new()), |f| {
        let bins = f.histogram.iter().map(|bin| (bin.from, bin.count));
        let sum = (f.mean * f.count as f64).round() as u64;
        (f.count, f.min, f.max, sum, bins.collect())
    });
    assert_eq!(found, expected, "{what}");
}

/// The last operation before `at` on the same key that `is` accepts.
fn last(ops: &[Op], at: usize, is: impl Fn(OpKind) -> bool) -> Option<usize> {
    let same = |&i: &usize| ops[i].key == ops[at].key && is(ops[i].kind);
    (0..at).rev().find(same)
}

fn write_kind(kind: OpKind) -> bool {
    kind == OpKind::Put || kind == OpKind::Delete
}

#[test]
fn windows_are_what_sets_of_their_keys_say() {
    for (seed, count, warmup) in [(1, 700, 0), (2, 1001, 100), (3, 30, 7), (4, 5, 0)] {
        let ops = random(90, count, seed);
        let info = collected(&ops, warmup, 1000);
        let measured = &ops[warmup..];
        let len = measured.len().div_ceil(24);
        let chunks: Vec<&[Op]> = measured.chunks(len).collect();
        assert_eq!(info.windows.len(), chunks.len(), "{seed}");
        let set = |ops: &[Op]| -> HashSet<Vec<u8>> { ops.iter().map(|o| o.key.clone()).collect() };
        let mut earlier = set(&ops[..warmup]);
        for (i, (chunk, window)) in chunks.iter().zip(&info.windows).enumerate() {
            let keys = set(chunk);
            let writes = chunk.iter().filter(|op| write_kind(op.kind)).cloned();
            let shared = |with: usize| {
                let both = keys.intersection(&set(chunks[with])).count();
                (i > 0).then(|| both as f64 / keys.len() as f64)
            };
            let expected = Window {
                end_op: ((i + 1) * len).min(measured.len()) as u64,
                ops: chunk.iter().fold(OpCounts::default(), |mut all, op| {
                    all.add(op.kind);
                    all
                }),
                distinct_keys: keys.len() as u64,
                written_keys: set(&writes.collect::<Vec<_>>()).len() as u64,
                new_keys: keys.difference(&earlier).count() as u64,
                in_window_before: shared(i.saturating_sub(1)),
                in_first_window: shared(0),
                keys_error: 0.0,
            };
            assert_eq!(*window, expected, "{seed}, window {i}");
            earlier.extend(keys);
        }
    }
}

#[test]
fn reuse_times_are_the_distances_in_the_list() {
    for (seed, warmup) in [(1, 0), (2, 150)] {
        let ops = random(90, 900, seed);
        let info = collected(&ops, warmup, 1000).reuse_times;
        let ops = &ops[warmup..];
        let (mut reads, mut writes, mut overwrites) = (vec![], vec![], vec![]);
        let (mut puts, mut direct, mut near) = (0, 0, 0);
        for (i, op) in ops.iter().enumerate() {
            let access = last(ops, i, |_| true);
            let reuse = access.map(|at| (i - at) as u64);
            let is_put = op.kind == OpKind::Put;
            puts += u32::from(is_put);
            if let Some(at) = access.filter(|&at| is_put && !write_kind(ops[at].kind)) {
                near += u32::from(i - at <= 16);
                direct += u32::from(i - at == 1);
            }
            if write_kind(op.kind) {
                writes.extend(reuse);
                overwrites.extend(last(ops, i, write_kind).map(|at| (i - at) as u64));
            } else {
                reads.extend(reuse);
            }
        }
        check_sizes("reads", &info.reads, &reads);
        check_sizes("writes", &info.writes, &writes);
        check_sizes("overwrites", &info.overwrites, &overwrites);
        let found = info.read_modify_write.expect("puts");
        assert_eq!((found.direct * f64::from(puts)).round() as u32, direct);
        assert_eq!((found.near * f64::from(puts)).round() as u32, near);
        assert!(direct > 10 && near > direct + 10, "{direct} {near}");
        for point in &info.mean_working_set {
            let (mut all, mut written) = (0, 0);
            for end in 1..=ops.len() {
                let interval = &ops[end.saturating_sub(point.ops as usize)..end];
                let of = |is: &dyn Fn(OpKind) -> bool| {
                    let ops = interval.iter().filter(|op| is(op.kind));
                    ops.map(|op| &op.key).collect::<HashSet<_>>().len()
                };
                all += of(&|_| true);
                written += of(&write_kind);
            }
            let mean = |sum: usize| sum as f64 / ops.len() as f64;
            assert!((point.accessed_keys - mean(all)).abs() < 1e-9, "{point:?}");
            assert!(
                (point.written_keys - mean(written)).abs() < 1e-9,
                "{point:?}"
            );
        }
        assert!(info.mean_working_set.len() >= 6);
    }
}

#[test]
fn runs_are_those_in_the_list() {
    let ops = random(90, 900, 5);
    let runs = collected(&ops, 0, 1000).runs;
    for (found, writes) in [(runs.reads, false), (runs.writes, true)] {
        let numbers: Vec<u64> = (ops.iter().filter(|op| write_kind(op.kind) == writes))
            .map(|op| u64::from_be_bytes(op.key[..].try_into().expect("8 bytes")))
            .collect();
        let runs = numbers.chunk_by(|a, b| *b == a + 1);
        let runs: Vec<u64> = runs.map(|run| run.len() as u64).collect();
        let found = found.expect("operations");
        check_sizes("runs", &Some(found.length), &runs);
        let steps = numbers.len() - 1;
        let up = numbers.windows(2).filter(|pair| pair[0] < pair[1]).count();
        assert_eq!(found.ascending, Some(up as f64 / steps as f64));
    }
}

/// The share of pairs of writes that are overwritten together, and the number of pairs.
fn together(ops: &[Op], distance: usize) -> (f64, u64) {
    let writes: Vec<usize> = (0..ops.len())
        .filter(|&i| write_kind(ops[i].kind))
        .collect();
    let death = |at: usize| {
        let same = |&&i: &&usize| i > at && ops[i].key == ops[at].key;
        writes.iter().find(same).map(|&i| i - at)
    };
    let (mut judged, mut alike) = (0_u64, 0_u64);
    for (&a, &b) in writes.iter().zip(writes.iter().skip(distance)) {
        let ages = |at: usize| ops.len() - 1 - at;
        if ops[a].key == ops[b].key {
            continue;
        }
        let verdict = match (death(a), death(b)) {
            (Some(x), Some(y)) => Some(x.abs_diff(y) <= 64),
            (Some(x), None) => (ages(b) >= x + 64).then_some(false),
            (None, Some(y)) => (ages(a) >= y + 64).then_some(false),
            (None, None) => None,
        };
        judged += u64::from(verdict.is_some());
        alike += u64::from(verdict == Some(true));
    }
    (alike as f64 / judged as f64, judged)
}

#[test]
fn pairs_of_writes_have_the_fates_that_the_list_shows() {
    for seed in 0..4 {
        let ops = random(400, 30_000, seed);
        let found = collected(&ops, 0, 1000).written_together.expect("pairs");
        for (found, distance) in [(found.neighbours, 1), (found.apart, together::APART)] {
            let found = found.expect("pairs");
            let (share, pairs) = together(&ops, distance);
            assert_eq!((found.share, found.pairs), (share, pairs), "{distance}");
            assert!(!found.sampled && pairs > 5000, "{found:?}");
        }
    }
}

#[test]
fn lives_are_those_of_a_map_of_records() {
    let ops = random(90, 6000, 6);
    let warmup = 50;
    let info = collected(&ops, warmup, 1000).lives;
    let mut since: HashMap<&[u8], Option<Option<usize>>> = HashMap::new();
    let (mut made, mut again, mut older, mut twice) = (0, 0, 0, 0);
    let mut lives = Vec::new();
    for (i, op) in ops.iter().enumerate() {
        let known = since.get(&op.key[..]).copied();
        let measured = i >= warmup;
        // None: deleted. Some(None): older. Some(Some(time)): made by a measured put.
        let next = match (op.kind, known) {
            (OpKind::Put, None) if measured => {
                made += 1;
                Some(Some(i))
            }
            (OpKind::Put, Some(None)) if measured => {
                made += 1;
                again += 1;
                Some(Some(i))
            }
            (OpKind::Put, Some(None) | None) => Some(None),
            (OpKind::Delete, known) => {
                if measured {
                    match known {
                        Some(Some(Some(time))) => lives.push((i - time) as u64),
                        Some(Some(None)) | None => older += 1,
                        Some(None) => twice += 1,
                    }
                }
                None
            }
            (_, Some(known)) => known,
            (_, None) => Some(None),
        };
        since.insert(&op.key, next);
    }
    let found = (
        info.made,
        info.made_again,
        info.deleted_older,
        info.deleted_again,
    );
    assert_eq!(found, (made, again, older, twice));
    assert_eq!(info.deleted, lives.len() as u64);
    check_sizes("lives", &info.life_ops, &lives);
    assert!(
        made > 100 && again > 50 && older > 5 && twice > 5,
        "{info:?}"
    );
}

/// Compares shares of a histogram.
fn near(what: &str, found: &Option<SizeStats>, exact: &Option<SizeStats>, error: f64) {
    let (found, exact) = (found.as_ref().expect("some"), exact.as_ref().expect("some"));
    let count = found.count as f64 / exact.count as f64 - 1.0;
    assert!(count.abs() < 4.0 * error, "{what}: {count}, {error}");
    let up_to = |stats: &SizeStats, most: u64| {
        let bins = stats.histogram.iter().filter(|bin| bin.to <= most);
        bins.map(|bin| bin.count).sum::<u64>() as f64 / stats.count as f64
    };
    for bin in &exact.histogram {
        let (a, b) = (up_to(found, bin.to), up_to(exact, bin.to));
        assert!((a - b).abs() < 4.0 * error, "{what} {bin:?}: {a} {b}");
    }
}

#[test]
fn a_sample_is_within_its_stated_error_of_the_whole() {
    let ops = random(60_000, 600_000, 9);
    let exact = collected(&ops, 0, 100_000);
    let sampled = collected(&ops, 0, 8_000);
    assert!(exact.keys_exact && !sampled.keys_exact);
    assert_eq!(
        (exact.reuse_times.error, exact.reuse_times.estimated),
        (0.0, false)
    );
    let error = sampled.reuse_times.error;
    assert!((0.005..0.05).contains(&error), "{error}");
    for (a, b) in sampled.windows.iter().zip(&exact.windows) {
        let ratio = |x: u64, y: u64| x as f64 / y as f64 - 1.0;
        let distinct = ratio(a.distinct_keys, b.distinct_keys);
        assert!(distinct.abs() < 4.0 * a.keys_error, "{distinct} {a:?}");
        assert!(
            (a.keys_error > 0.0) == (a.distinct_keys != b.distinct_keys),
            "{a:?}"
        );
        let written = ratio(a.written_keys, b.written_keys);
        assert!(written.abs() < 5.0 * a.keys_error, "{written} {a:?}");
        for (a, b) in [
            (a.in_window_before, b.in_window_before),
            (a.in_first_window, b.in_first_window),
        ] {
            assert!(
                (a.unwrap_or(0.0) - b.unwrap_or(0.0)).abs() < 0.06,
                "{a:?} {b:?}"
            );
        }
    }
    let (a, b) = (&sampled.reuse_times, &exact.reuse_times);
    near("reads", &a.reads, &b.reads, error);
    near("writes", &a.writes, &b.writes, error);
    near("overwrites", &a.overwrites, &b.overwrites, error);
    for (a, b) in a.mean_working_set.iter().zip(&b.mean_working_set) {
        let accessed = a.accessed_keys / b.accessed_keys - 1.0;
        let written = a.written_keys / b.written_keys - 1.0;
        assert!(accessed.abs() < 4.0 * error, "{a:?} {b:?}");
        assert!(written.abs() < 4.0 * error, "{a:?} {b:?}");
    }
    let shares = |info: &TraceInfo| {
        let found = info.written_together.expect("pairs");
        (
            found.neighbours.expect("pairs"),
            found.apart.expect("pairs"),
        )
    };
    let (a, b) = (shares(&sampled), shares(&exact));
    assert!(a.0.sampled && a.0.pairs < b.0.pairs, "{a:?}");
    for (a, b) in [(a.0, b.0), (a.1, b.1)] {
        assert!(
            (a.share - b.share).abs() < 5.0 * a.error.max(0.002),
            "{a:?} {b:?}"
        );
    }
    let made = sampled.lives.made as f64 / exact.lives.made as f64 - 1.0;
    assert!(made.abs() < 4.0 * error, "{made}");
}

/// What a reader should see: runs are overwritten together, random keys are not.
#[test]
fn keys_of_a_run_die_together_and_random_keys_do_not() {
    let put = |number: u64| Op {
        kind: OpKind::Put,
        key: number.to_be_bytes().to_vec(),
        ..Op::default()
    };
    let mix = |n: u64| xxhash_rust::xxh3::xxh3_64(&n.to_le_bytes());
    // Runs of 32 keys, in random order.
    let runs = (0..200_000).map(|i| put(mix(i / 32) % 500 * 32 + i % 32));
    let random = (0..200_000).map(|i| put(mix(i) % 16_000));
    for (ops, is_run) in [(runs.collect::<Vec<_>>(), true), (random.collect(), false)] {
        let found = collected(&ops, 0, 100_000).written_together.expect("pairs");
        let neighbours = found.neighbours.expect("pairs");
        let apart = found.apart.expect("pairs");
        assert!(
            neighbours.sampled && neighbours.error < 0.006,
            "{neighbours:?}"
        );
        assert!(apart.share < 0.02, "{apart:?}");
        if is_run {
            assert!(neighbours.share > 0.95, "{neighbours:?}");
        } else {
            let difference = (neighbours.share - apart.share).abs();
            assert!(
                difference < 5.0 * (neighbours.error + apart.error),
                "{found:?}"
            );
        }
    }
}

/// The first window's keys disappear where popularity moves, and only there.
#[test]
fn drift_is_seen_where_popularity_moves() {
    let get = |number: u64| Op {
        key: number.to_be_bytes().to_vec(),
        ..Op::default()
    };
    let mix = |n: u64| xxhash_rust::xxh3::xxh3_64(&n.to_le_bytes());
    let still: Vec<Op> = (0..48_000).map(|i| get(mix(i) % 1000)).collect();
    let moving: Vec<Op> = (0..48_000).map(|i| get(mix(i) % 1000 + i / 24)).collect();
    for (ops, moves) in [(still, false), (moving, true)] {
        let info = collected(&ops, 0, 100_000);
        let last = info.windows.last().expect("windows");
        let (before, first) = (last.in_window_before, last.in_first_window);
        let (before, first) = (before.expect("a window"), first.expect("a window"));
        assert!(before > 0.75, "{last:?}");
        assert_eq!(first < 0.05, moves, "{last:?}");
        assert_eq!((first - before).abs() < 0.05, !moves, "{last:?}");
    }
}
