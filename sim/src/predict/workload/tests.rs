use std::collections::{BTreeMap, HashMap};

use proptest::prelude::*;
use treering_traces::OpKind;

use super::keys::{Access, Keys};
use super::*;

/// Uncompressed statistics of a key, for comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Plain {
    key: Vec<u8>,
    stats: KeyStats,
    scans: u32,
}

impl Plain {
    fn new(key: &[u8], value_len: u32) -> Plain {
        let stats = KeyStats {
            key_len: key.len() as u16,
            deleted: false,
            value_len,
            first_put: NEVER,
            reads: 0,
            writes: 0,
            warmup_reads: 0,
            warmup_writes: 0,
            run_reads: 0,
            run_writes: 0,
        };
        Plain {
            key: key.to_vec(),
            stats,
            scans: 0,
        }
    }

    fn note(&mut self, access: &Access) {
        let k = &mut self.stats;
        let is_put = access.kind == OpKind::Put;
        let reads = matches!(access.kind, OpKind::Get | OpKind::Scan);
        match (reads, access.measured) {
            (true, true) => k.reads += 1,
            (true, false) => k.warmup_reads += u32::from(access.kind == OpKind::Get),
            (false, true) => k.writes += 1,
            (false, false) => k.warmup_writes += u32::from(!is_put || k.first_put != NEVER),
        }
        match reads {
            true => k.run_reads += u32::from(access.in_run),
            false => k.run_writes += u32::from(access.in_run),
        }
        self.scans += u32::from(access.measured && access.kind == OpKind::Scan);
        if is_put {
            k.value_len = access.value_len;
            k.first_put = k.first_put.min(access.time);
        }
        if !reads {
            k.deleted = !is_put;
        }
    }
}

fn all_of(keys: &Keys) -> Vec<Plain> {
    let of = |(index, stats)| Plain {
        key: keys.key(index).to_vec(),
        stats,
        scans: keys.scans(index),
    };
    (0..).zip(keys.iter()).map(of).collect()
}

fn value_len() -> impl Strategy<Value = u32> {
    prop_oneof![0..300u32, 65_530..65_540u32, Just(u32::MAX)]
}

/// Parameters of an access: key, distance from the previous access, count, kind.
type Step = (usize, u32, u32, Access);

fn step() -> impl Strategy<Value = Step> {
    let kind = prop::sample::select(OpKind::ALL.to_vec());
    let often = prop_oneof![4 => 1..20u32, 1 => 250..1100u32];
    let later = prop_oneof![8 => 0..1000u32, 1 => 16_777_210..16_777_220u32];
    let flags = (any::<bool>(), any::<bool>());
    (0..60usize, later, often, kind, flags, value_len()).prop_map(
        |(key, later, often, kind, (measured, in_run), value_len)| {
            let access = Access {
                kind,
                measured,
                in_run: measured && in_run,
                value_len,
                time: 0,
            };
            (key, later, often, access)
        },
    )
}

proptest! {
    /// This also holds when units of time double, and when half of the keys are dropped.
    #[test]
    fn rows_hold_what_a_map_of_whole_structs_holds(
        names in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 60),
        of_one_length in any::<bool>(),
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let mut keys = Keys::default();
        let mut plain: Vec<Plain> = Vec::new();
        let mut numbers = HashMap::new();
        let mut time = 0;
        for (number, (key, later, often, access)) in steps.into_iter().enumerate() {
            let mut name = names[key].clone();
            if of_one_length {
                name.resize(8, 0);
            }
            let access = Access { time, ..access };
            time += later;
            let index = *numbers.entry(name.clone()).or_insert_with(|| {
                plain.push(Plain::new(&name, access.value_len));
                keys.push(&name, access.value_len, time - later)
            });
            for _ in 0..often {
                keys.note(index, &access);
                plain[index as usize].note(&access);
            }
            if number == 60 {
                keys.halve_times();
                time /= 2;
                let puts = plain.iter_mut().filter(|p| p.stats.first_put != NEVER);
                puts.for_each(|p| p.stats.first_put /= 2);
            }
            if number == 80 {
                let is_kept = |key: &[u8]| key.iter().fold(0, |a, b| a ^ b) & 1 == 0;
                keys.retain(is_kept);
                plain.retain(|p| is_kept(&p.key));
                let names = plain.iter().map(|p| p.key.clone());
                numbers = names.zip(0..).collect();
            }
        }
        prop_assert_eq!(all_of(&keys), plain);
    }
}

/// Operations from a list.
struct Ops(std::vec::IntoIter<Op>);

impl OpSource for Ops {
    fn next_op(&mut self, op: &mut Op) -> Result<bool, TraceError> {
        let next = self.0.next();
        Ok(next.map(|next| *op = next).is_some())
    }
}

fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// Some keys come far more often than others; key lengths vary from the 70,000th on.
fn op(state: &mut u64, keys: u64) -> Op {
    let often = random(state).is_multiple_of(2);
    let times = if often { 5 } else { 1 };
    let key = (0..times).fold(keys, |below, _| random(state) % below.max(1));
    let mut name = key
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .to_be_bytes()
        .to_vec();
    if key > 70_000 {
        name.truncate(5);
        name.extend(std::iter::repeat_n(9, key as usize % 40));
    }
    let kind = OpKind::ALL[(random(state) % 4) as usize];
    Op {
        kind,
        key: name,
        value_len: random(state) as u32 % 500,
        scan_len: 3,
        ..Op::default()
    }
}

#[test]
fn a_trace_is_counted_as_by_a_map_of_its_keys() {
    const WARMUP: u64 = 200_000;
    let mut state = 5;
    let ops: Vec<Op> = (0..600_000).map(|_| op(&mut state, 100_000)).collect();
    let mut numbers: HashMap<Vec<u8>, usize> = HashMap::new();
    let mut plain: Vec<Plain> = Vec::new();
    for (time, op) in (0..).zip(&ops) {
        let number = *numbers.entry(op.key.clone()).or_insert(plain.len());
        if number == plain.len() {
            plain.push(Plain::new(&op.key, op.value_len));
        }
        plain[number].note(&Access {
            kind: op.kind,
            measured: u64::from(time) >= WARMUP,
            // In this trace no key directly follows its predecessor.
            in_run: false,
            value_len: op.value_len,
            time,
        });
    }
    let most = plain.iter().map(|p| p.stats.reads).max();
    assert!(most > Some(256), "no count overflows: {most:?}");
    let mut source = Ops(ops.into_iter());
    let workload = Workload::analyze(&mut source, Span::after(WARMUP)).expect("a trace");
    let mut found = all_of(&workload.keys);
    for k in &mut found {
        (k.stats.run_reads, k.stats.run_writes) = (0, 0);
    }
    assert!(
        found == plain,
        "{} keys, expected {}",
        found.len(),
        plain.len()
    );
    let sorted: BTreeMap<_, _> = numbers.into_iter().collect();
    let order: Vec<usize> = workload.key_order().iter().map(|i| *i as usize).collect();
    assert_eq!(order, sorted.into_values().collect::<Vec<_>>());
}

/// Maximum bytes per key from the 10,000th key on.
fn most_bytes_a_key(count: u64, op: impl Fn(u64, &mut Op)) -> (f64, usize) {
    let mut pass = Pass::new(Span::after(count / 2));
    let (mut most, mut at) = (0.0, 0);
    let (mut state, mut made) = (7, Op::default());
    for number in 0..count {
        op(number, &mut made);
        made.kind = OpKind::Put;
        pass.take(&made);
        // Later puts go to earlier keys, as many times as each key is put.
        op(random(&mut state) % (number + 1), &mut made);
        made.kind = OpKind::ALL[(number % 2) as usize];
        pass.take(&made);
        let (keys, bytes) = pass.held();
        if keys >= 10_000 && bytes as f64 / keys as f64 > most {
            (most, at) = (bytes as f64 / keys as f64, keys);
        }
    }
    (most, at)
}

fn named(number: u64, op: &mut Op) {
    op.key.clear();
    op.key
        .extend_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    op.value_len = 100;
}

#[test]
fn a_key_takes_24_bytes_and_what_it_is_longer_than_8() {
    let (bytes, keys) = most_bytes_a_key(2_000_000, named);
    assert!(
        bytes <= 24.0,
        "{bytes} bytes a key of 8 bytes at {keys} keys"
    );
    let (bytes, keys) = most_bytes_a_key(300_000, |number, op| {
        named(number, op);
        op.key.extend_from_slice(&[1; 12]);
    });
    assert!(
        bytes <= 36.0,
        "{bytes} bytes a key of 20 bytes at {keys} keys"
    );
    let (bytes, keys) = most_bytes_a_key(300_000, |number, op| {
        named(number, op);
        op.key.extend(std::iter::repeat_n(1, number as usize % 9));
    });
    assert!(
        bytes <= 24.0 + 4.0 + 4.5,
        "{bytes} bytes a key of 12 at {keys} keys"
    );
}

#[test]
fn more_than_nine_million_keys_are_exact_and_the_budget_is_kept_beyond() {
    let mut pass = Pass::new(Span {
        memory_bytes: MEMORY_BYTES / 100,
        ..Span::after(0)
    });
    let mut made = Op::default();
    let mut least = usize::MAX;
    for number in 0..350_000 {
        named(number, &mut made);
        made.value_len = 8;
        made.kind = OpKind::Put;
        let (before, _) = pass.held();
        pass.take(&made);
        let (keys, bytes) = pass.held();
        assert!(bytes <= MEMORY_BYTES / 100, "{bytes} bytes for {keys} keys");
        if keys < before {
            least = least.min(before);
        }
    }
    assert!(least >= 94_000, "sampled at {least} keys");
    let workload = pass.finish();
    assert_eq!(workload.sample_shift, 2);
    let off = workload.records() / 350_000.0 - 1.0;
    assert!(
        off.abs() < 0.02,
        "{} records of 350,000",
        workload.records()
    );
}
