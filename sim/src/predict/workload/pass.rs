//! The streaming pass over a trace.

use std::sync::OnceLock;

use parking_lot::Mutex;
use treering_traces::{Op, OpKind};
use xxhash_rust::xxh3::xxh3_64;

use super::accesses::Accesses;
use super::derived::Derived;
use super::keys::{Access, Keys, MOST_KEYS, NEVER};
use super::order::head;
use super::sums::Sums;
use super::table::Table;
use super::totals::Totals;
use super::{Span, Workload};
use crate::predict::grown::{Leaf, Split};
use crate::predict::recency::Recency;

/// Number of operations whose table lookups run together, so that their cache misses overlap.
const BATCH: usize = 64;

/// Memory that the analysis needs besides the keys: key order, insertion order, and leaves with
/// their splits.
const ORDER_BYTES: usize = 2 * size_of::<u32>();
const LEAF_BYTES: usize = size_of::<Leaf>() + size_of::<Split>();

/// Traces with fewer keys are never sampled.
const LEAST_KEYS: usize = 1024;

/// The state of the pass.
pub(super) struct Pass {
    span: Span,
    pub(super) seen: u64,
    tick: u64,
    warmup: Totals,
    measured: Totals,
    /// Length and [`tail`] of the previous key, and whether it was written.
    last: (usize, u64, bool),
    shift: u32,
    table: Table,
    keys: Keys,
    accesses: Accesses,
    /// Operations outside the sample since the last one in it.
    passed: u64,
    waiting: Vec<Waiting>,
    waiting_keys: Vec<u8>,
    recency: Recency,
    warmup_bytes: Option<f64>,
    /// Approximate bytes that the records take in leaves.
    leaf_bytes: usize,
}

/// An operation that has been hashed but not counted yet.
struct Waiting {
    hash: u64,
    key_at: u32,
    key_len: u16,
    /// The first key with this tag.
    candidate: Option<u32>,
    access: Access,
    /// Value length of a put, records of a scan.
    len: u32,
    /// Operations outside the sample between the previous one in it and this.
    passed: u64,
}

impl Pass {
    pub(super) fn new(span: Span) -> Pass {
        Pass {
            span,
            seen: 0,
            tick: 1,
            warmup: Totals::default(),
            measured: Totals::default(),
            last: (0, 0, false),
            shift: 0,
            table: Table::new(),
            keys: Keys::default(),
            accesses: Accesses::default(),
            passed: 0,
            waiting: Vec::with_capacity(BATCH),
            waiting_keys: Vec::new(),
            recency: Recency::default(),
            warmup_bytes: None,
            leaf_bytes: 0,
        }
    }

    /// Sums up what the store holds when the measured part begins.
    pub(super) fn end_warmup(&mut self) {
        self.count_waiting();
        let weight = (1u64 << self.shift) as f64;
        self.warmup_bytes =
            (self.seen > 0).then(|| Sums::of(&self.keys).live_bytes as f64 * weight);
    }

    pub(super) fn take(&mut self, op: &Op) {
        let measured = self.seen >= self.span.warmup_ops;
        let writes = matches!(op.kind, OpKind::Put | OpKind::Delete);
        let key = (op.key.len(), tail(&op.key), writes);
        let follows = key.1.checked_sub(1) == Some(self.last.1)
            && (key.0, key.2) == (self.last.0, self.last.2);
        self.last = key;
        if measured {
            self.measured.add(op);
        } else {
            self.warmup.add(op);
        }
        if self.seen / self.tick == u64::from(NEVER - 1) {
            self.coarsen_time();
        }
        let time = (self.seen / self.tick) as u32;
        self.seen += 1;
        let hash = xxh3_64(&op.key);
        if measured {
            self.recency.note(hash, self.seen);
        }
        if !sampled(hash, self.shift) {
            self.passed += 1;
            return;
        }
        let key_at = self.waiting_keys.len() as u32;
        self.waiting_keys.extend_from_slice(&op.key);
        self.waiting.push(Waiting {
            hash,
            key_at,
            key_len: u16::try_from(op.key.len()).unwrap_or(u16::MAX),
            candidate: None,
            access: Access {
                kind: op.kind,
                measured,
                in_run: measured && follows,
                value_len: op.value_len,
                time,
            },
            len: match op.kind {
                OpKind::Put => op.value_len,
                _ => op.scan_len,
            },
            passed: std::mem::take(&mut self.passed),
        });
        if self.waiting.len() == BATCH {
            self.count_waiting();
        }
    }

    /// Counts an operation that the store skips.
    pub(super) fn skip(&mut self) {
        self.seen += 1;
        self.passed += 1;
    }

    /// Doubles the tick, so that operation numbers fit into 32 bits.
    fn coarsen_time(&mut self) {
        self.count_waiting();
        self.tick *= 2;
        self.keys.halve_times();
    }

    fn count_waiting(&mut self) {
        // First prefetch; in loops this short, many cache misses overlap.
        for w in &self.waiting {
            self.table.touch(w.hash);
        }
        for w in &mut self.waiting {
            w.candidate = self.table.candidate(w.hash);
        }
        for index in self.waiting.iter().filter_map(|w| w.candidate) {
            self.keys.touch(index);
        }
        for w in &self.waiting {
            let at = w.key_at as usize;
            let key = &self.waiting_keys[at..at + usize::from(w.key_len)];
            let keys = &self.keys;
            let candidate = w.candidate.filter(|index| keys.is(*index, key));
            let find = || self.table.find(w.hash, |index| keys.is(index, key));
            let index = match candidate.or_else(find) {
                Some(index) => index,
                None => {
                    let (value, time) = (w.access.value_len, w.access.time);
                    let index = self.keys.push(key, value, time);
                    self.table.add(w.hash, &self.keys);
                    // Longer keys are stored elsewhere.
                    let record = key.len() + value as usize;
                    self.leaf_bytes += record.min(self.span.page_size / 2);
                    index
                }
            };
            self.keys.note(index, &w.access);
            let kind = w.access.kind;
            self.accesses.push(w.passed, kind, index, w.len);
        }
        self.waiting.clear();
        self.waiting_keys.clear();
        let is_full = self.memory() > self.span.memory_bytes || self.keys.len() > MOST_KEYS - BATCH;
        if is_full && self.keys.len() > LEAST_KEYS {
            self.halve();
        }
    }

    fn memory(&self) -> usize {
        // Evaluating the result needs key order and leaves, but no table.
        let leaves = self.leaf_bytes / (self.span.page_size / 2);
        let later = self.keys.len() * ORDER_BYTES + leaves * LEAF_BYTES;
        self.keys.bytes() + self.table.bytes().max(later)
    }

    /// Number of keys in the sample, and the bytes that they take during the pass.
    #[cfg(test)]
    pub(super) fn held(&self) -> (usize, usize) {
        (self.keys.len(), self.keys.bytes() + self.table.bytes())
    }

    /// Drops the half of the keys whose next hash bit is set.
    fn halve(&mut self) {
        self.shift += 1;
        self.leaf_bytes /= 2;
        let shift = self.shift;
        self.table = Table::new();
        let mut numbers = Vec::with_capacity(self.keys.len());
        let mut kept = 0;
        self.keys.retain(|key| {
            let keep = sampled(xxh3_64(key), shift);
            numbers.push(if keep { kept } else { NEVER });
            kept += u32::from(keep);
            keep
        });
        let to = |key: u32| Some(numbers[key as usize]).filter(|number| *number != NEVER);
        self.accesses.renumber(to);
        self.table.fill(&self.keys);
    }

    pub(super) fn finish(mut self) -> Workload {
        self.count_waiting();
        self.accesses.pass(self.passed);
        let rewrites: u64 = (self.keys.iter()).map(|k| u64::from(k.warmup_writes)).sum();
        Workload {
            rewrites_before: rewrites as f64 * (1u64 << self.shift) as f64,
            warmup: self.warmup,
            measured: self.measured,
            sample_shift: self.shift,
            zeros: 0.5,
            burstiness: self.recency.index(),
            warmup_bytes: self.warmup_bytes,
            tick: self.tick,
            keys: self.keys,
            accesses: self.accesses,
            sums: OnceLock::new(),
            kept: Mutex::default(),
            samples: Derived::default(),
            limits: Derived::default(),
        }
    }
}

/// The last eight bytes as an integer: it grows by one from a block number to the next.
fn tail(key: &[u8]) -> u64 {
    match key.last_chunk() {
        Some(bytes) => u64::from_be_bytes(*bytes),
        None => head(key),
    }
}

fn sampled(hash: u64, shift: u32) -> bool {
    shift == 0 || hash >> (64 - shift) == 0
}
