//! The changes of each leaf in the measured part, in order of time.

use std::collections::{BTreeMap, HashMap};
use std::io;

use treering_traces::OpKind;

use super::Leaves;
use crate::predict::leaf::key_order;
use crate::predict::workload::{NEVER, Workload};

/// A change of a record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Change {
    /// Operations of the measured part before it.
    pub(super) at: f64,
    /// When the same record is changed next, perhaps in the next round.
    pub(super) next: f64,
    /// When it was changed first in this round.
    pub(super) first: f64,
    /// Bytes of key and value.
    pub(super) bytes: f64,
}

/// The changes of the leaves that are looked at.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// Leaf by leaf.
    pub(super) of_leaves: Vec<Vec<Change>>,
    /// Operations in the time that is looked at.
    pub(super) ops: f64,
    /// The part of the measured part that this time is.
    pub(super) share: f64,
    /// How many leaves one that is looked at stands for.
    pub(super) one_in: f64,
    /// All leaves.
    pub(super) leaves: f64,
    /// All changes.
    pub(super) total: f64,
}

/// Leaves that are looked at in any case. Their changes may be more than was asked for, up to
/// [`MORE`] times as many.
const LEAST_LEAVES: u64 = 64;
const MORE: f64 = 4.0;

impl Changes {
    /// Collects about `most` changes. Which leaves they are of depends on nothing but their place.
    /// Needs 4 bytes for each key, 8 if the keys were not sorted yet.
    pub(super) fn of(workload: &Workload, shape: Leaves, most: u64) -> io::Result<Changes> {
        let (leaf_of, leaves) = leaves_of(workload, shape);
        let weight = workload.sample_weight();
        let measured = &workload.measured;
        let total = measured.of(OpKind::Put) + measured.of(OpKind::Delete);
        let in_sample = total as f64 / weight;
        let mut one_in = 1_u64;
        while in_sample / one_in as f64 > most as f64
            && u64::from(leaves) / (2 * one_in) >= LEAST_LEAVES
        {
            one_in *= 2;
        }
        let mut of_leaves: BTreeMap<u32, Vec<Change>> = BTreeMap::new();
        // Where the last change of a record is.
        let mut last: HashMap<u32, usize> = HashMap::new();
        let warmup = workload.warmup.all_ops();
        let share = (MORE * most as f64 * one_in as f64 / in_sample.max(1.0)).min(1.0);
        let ops = (measured.all_ops() as f64 * share).ceil();
        let end = warmup + ops as u64;
        workload.accesses.each(|step| {
            let is_change = matches!(step.kind, OpKind::Put | OpKind::Delete);
            let leaf = leaf_of[step.key as usize];
            let is_looked_at = spread(leaf).is_multiple_of(one_in);
            if !is_change || step.time < warmup || step.time >= end || !is_looked_at {
                return;
            }
            let stored = || workload.stored_len(step.key, shape.page_size);
            let value = match step.kind {
                OpKind::Put => stored().min(step.len as usize),
                _ => 0,
            };
            let of_leaf = of_leaves.entry(leaf).or_default();
            let at = (step.time - warmup) as f64;
            let before = last.insert(step.key, of_leaf.len());
            let mut first = at;
            if let Some(before) = before.and_then(|before| of_leaf.get_mut(before)) {
                before.next = at;
                first = before.first;
            }
            of_leaf.push(Change {
                at,
                next: first + ops,
                first,
                bytes: (workload.keys.key_len(step.key) + value) as f64,
            });
        })?;
        // What the sample stands for is known by its changes, which vary less than its leaves.
        let found: usize = of_leaves.values().map(Vec::len).sum();
        let stands_for = match one_in {
            1 => 1.0,
            _ => in_sample * share / (found as f64).max(1.0),
        };
        Ok(Changes {
            of_leaves: of_leaves.into_values().collect(),
            ops,
            share,
            // A key of the sample stands for `weight` keys, and so does its leaf.
            one_in: stands_for * weight,
            leaves: f64::from(leaves) * weight,
            total: total as f64,
        })
    }
}

/// The leaf of each key, and how many there are. Leaves are filled one by one, in key order.
fn leaves_of(workload: &Workload, shape: Leaves) -> (Vec<u32>, u32) {
    let bytes = |key: u32| match workload.keys.first_put(key) {
        NEVER => 0.0,
        _ => (workload.keys.key_len(key) + workload.stored_len(key, shape.page_size)) as f64,
    };
    let keys = workload.keys.len() as u32;
    let in_a_leaf = match shape.count {
        None => shape.page_size as f64,
        Some(count) => {
            (0..keys).map(bytes).sum::<f64>() * workload.sample_weight() / count.max(1.0)
        }
    };
    let mut leaf_of = vec![0; keys as usize];
    let mut leaf = 0;
    let mut filled = 0.0;
    for key in key_order(workload).iter() {
        let bytes = bytes(*key);
        if filled > 0.0 && filled + bytes > in_a_leaf {
            leaf += 1;
            filled = 0.0;
        }
        filled += bytes;
        leaf_of[*key as usize] = leaf;
    }
    (leaf_of, leaf + 1)
}

/// A number that does not follow the order of leaves (the finalizer of MurmurHash3).
fn spread(leaf: u32) -> u64 {
    let mut x = u64::from(leaf).wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    x = (x ^ (x >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ (x >> 33)
}
