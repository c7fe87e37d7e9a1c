//! Compares the predictions with the paper, with independent counts (CLAIMS CC-07, 08, 09, 19, 20),
//! and with buffers and leaves simulated one write at a time.

use std::collections::BTreeMap;

use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use treering_traces::{Op, OpKind, OpSource, TraceError};

use super::*;
use crate::pm::Replacement;
use crate::predict::workload::Span;

struct Puts<'a>(std::slice::Iter<'a, u64>);

impl OpSource for Puts<'_> {
    fn next_op(&mut self, op: &mut Op) -> Result<bool, TraceError> {
        let Some(key) = self.0.next() else {
            return Ok(false);
        };
        *op = Op {
            kind: OpKind::Put,
            key: key.to_be_bytes().to_vec(),
            value_len: 8,
            ..Op::default()
        };
        Ok(true)
    }
}

fn workload(keys: &[u64], warmup: usize) -> Workload {
    let mut puts = Puts(keys.iter());
    Workload::analyze(&mut puts, Span::after(warmup as u64)).expect("memory does not fail")
}

fn tree(batch: usize) -> PmTree {
    PmTree {
        batch,
        logged: if batch == 0 {
            Logged::Nothing
        } else {
            Logged::WriteConservative
        },
        cleaning: LogCleaning::LocalityAware,
        log_share: 0.2,
        garbage_share: 0.25,
        logs: 1.0,
        clients: 1.0,
    }
}

const BUFFER: XpBuffer = XpBuffer {
    lines: 64.0,
    replacement: Replacement::Lru,
    full_lines: FullLines::AtOnce,
};

fn random_keys(n: u64, seed: u64) -> Vec<u64> {
    // Odd multiples are different from one another.
    let mut keys: Vec<u64> = (0..n)
        .map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .collect();
    keys.shuffle(&mut SmallRng::seed_from_u64(seed));
    keys
}

#[test]
fn inserts_write_as_many_leaf_xplines_as_were_counted() {
    // CC-20: 1.1010 without a buffer; CC-08: with one.
    let counted = [1.1010, 0.5760, 0.4000, 0.3146, 0.2588, 0.2244];
    let bytes = [f64::NAN, 25.10, 24.10, 24.22, 22.55, 22.24];
    let keys = random_keys(400_000, 1);
    let workload = workload(&keys, keys.len() / 2);
    // The table counts flushes and splits, without XPLines that the XPBuffer writes twice.
    let buffer = XpBuffer {
        full_lines: FullLines::OnEviction,
        ..BUFFER
    };
    for (batch, expected) in counted.into_iter().enumerate() {
        let found = predict(&workload, &tree(batch), &buffer);
        let each = found.leaf_xplines / (keys.len() / 2) as f64;
        assert!(
            (each / expected - 1.0).abs() < 0.03,
            "{batch}: {each}, not {expected}"
        );
        // The growth wave of the tree changes this by some per cent, depending on the number of
        // keys.
        let space = found.leaf_bytes_per_record;
        assert!(
            batch == 0 || (space / bytes[batch] - 1.0).abs() < 0.12,
            "{batch}: {space}"
        );
    }
}

#[test]
fn triggers_are_not_logged_and_logs_are_written_twice() {
    let keys = random_keys(400_000, 2);
    let workload = workload(&keys, keys.len() / 2);
    let measured = (keys.len() / 2) as f64;
    for (batch, expected) in [(1, 0.522), (2, 0.694), (5, 0.863)] {
        let found = predict(&workload, &tree(batch), &BUFFER);
        let share = found.appended / measured;
        assert!(
            (share / expected - 1.0).abs() < 0.02,
            "{batch}: {share}, not {expected}"
        );
    }
    // CC-09, without cleaning.
    let never = PmTree {
        log_share: 1e9,
        ..tree(2)
    };
    for (full_lines, expected) in [(FullLines::OnEviction, 0.0651), (FullLines::AtOnce, 0.130)] {
        let buffer = XpBuffer {
            full_lines,
            ..BUFFER
        };
        let found = predict(&workload, &never, &buffer).log_xplines / measured;
        assert!(
            (found / expected - 1.0).abs() < 0.02,
            "{found}, not {expected}"
        );
    }
}

/// Leaves with their buffers, simulated without a device.
#[derive(Default)]
struct Played {
    leaves: BTreeMap<u64, (Vec<u64>, Vec<u64>)>,
    flushes: u64,
    splits: u64,
    appended: u64,
}

impl Played {
    fn put(&mut self, key: u64, batch: usize) {
        if self.leaves.is_empty() {
            self.leaves.insert(0, Default::default());
        }
        let (_, (flushed, buffered)) = self
            .leaves
            .range_mut(..=key)
            .next_back()
            .expect("the first is 0");
        if buffered.contains(&key) || buffered.len() < batch {
            self.appended += 1;
            if !buffered.contains(&key) {
                buffered.push(key);
            }
            return;
        }
        let mut changes = std::mem::take(buffered);
        changes.push(key);
        self.flushes += 1;
        if flushed.len() + changes.len() <= 14 {
            flushed.retain(|key| !changes.contains(key));
            flushed.extend(changes);
            return;
        }
        self.splits += 1;
        flushed.sort_unstable();
        let mut upper = flushed.split_off(flushed.len() / 2);
        let fence = upper[0];
        for key in changes {
            let side = if key < fence {
                &mut *flushed
            } else {
                &mut upper
            };
            if !side.contains(&key) {
                side.push(key);
            }
        }
        self.leaves.insert(fence, (upper, Vec::new()));
    }
}

/// Relative error of the predicted XPLines of leaves and log entries, compared with the simulation.
fn compare(load: &[u64], writes: &[u64], batch: usize) -> [f64; 2] {
    let mut played = Played::default();
    load.iter().for_each(|key| played.put(*key, batch));
    let counts = |played: &Played| [played.flushes + played.splits, played.appended];
    let before = counts(&played);
    writes.iter().for_each(|key| played.put(*key, batch));
    let after = counts(&played);
    let all: Vec<u64> = load.iter().chain(writes).copied().collect();
    let found = predict(&workload(&all, load.len()), &tree(batch), &BUFFER);
    let found = [found.flushes + found.splits, found.appended];
    std::array::from_fn(|i| found[i] / (after[i] - before[i]) as f64 - 1.0)
}

#[test]
fn updates_and_inserts_are_predicted_as_played() {
    let keys = random_keys(60_000, 3);
    let mut rng = SmallRng::seed_from_u64(4);
    let uniform: Vec<u64> = (0..120_000)
        .map(|_| keys[rng.random_range(0..keys.len())])
        .collect();
    let mut skewed = || {
        let u: f64 = rng.random();
        // Ranks with the weights of a power law of exponent 0.9.
        keys[(u.powi(10) * keys.len() as f64) as usize]
    };
    let zipf: Vec<u64> = (0..120_000).map(|_| skewed()).collect();
    // Every third write brings a new key.
    let new = (60_000u64..).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mixed: Vec<u64> = (uniform.iter().enumerate().zip(new))
        .map(|((i, old), new)| if i % 3 == 0 { new } else { *old })
        .collect();
    for batch in 1..=5 {
        for (name, writes) in [("uniform", &uniform), ("zipf", &zipf), ("mixed", &mixed)] {
            let [leaves, log] = compare(&keys, writes, batch);
            assert!(
                leaves.abs() < 0.09 && log.abs() < 0.04,
                "{name}, {batch}: leaves {leaves:.3}, log {log:.3}"
            );
        }
    }
}
