//! The statistics of a trace that a predictor may use: one streaming pass, bounded memory.
//!
//! ```text
//! ops ──hash──▶ table: tag | number ──▶ row: first put, value length, counts, key
//!               4.6 to 6.4 B a key           9 B and the key
//! ```
//!
//! That is at most 24 bytes per key of 8 bytes. Longer keys add their additional length, keys of
//! different lengths 4 bytes each, keys at which scans start one byte, and counts that overflow
//! their fields some 20 bytes each. Modules `keys` and `table` have the details. Evaluating the
//! counts afterwards needs no table, but key order and insertion order, 4 bytes per key each, so 25
//! to 26 bytes per key.
//!
//! Counts are exact while the keys fit the budget, which holds for 9.4 million keys of 8 bytes.
//! Beyond it, the pass keeps only the keys whose hash begins with `k` zero bits (spatial sampling
//! by hash, Waldspurger et al., SHARDS, FAST'15) and halves the sample as often as needed. The
//! factor is a power of two on purpose: a B-tree of `N / 2^k` records of the same size is at the
//! same phase of its growth wave as one of `N` (see [`super::leaf`]), so the leaf fill of the
//! sample is that of the whole.

mod accesses;
mod derived;
mod keys;
mod order;
mod pass;
mod saved;
mod segment;
mod sums;
mod table;
#[cfg(test)]
mod tests;
mod totals;

use std::any::Any;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use treering_engine::node;
use treering_engine::{BLOCK_SIZE, POINTER_BYTES, is_long, overflow_blocks};
use treering_traces::{Op, OpSource, TraceError};

pub(crate) use self::accesses::{Accesses, Added, Event, Rest, Step};
pub(crate) use self::derived::Derived;
use self::keys::Keys;
pub(crate) use self::keys::{KeyStats, NEVER};
use self::pass::Pass;
use self::sums::Sums;
pub use self::totals::Totals;

/// The part of the trace to measure, and the memory that the pass may use.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// Number of operations at the beginning that are warm-up.
    pub warmup_ops: u64,
    /// The pass stops after this many operations, including warm-up.
    pub limit_ops: u64,
    /// Memory budget in bytes for the keys, their counts, and what predictors derive from them.
    pub memory_bytes: usize,
    /// Number of pages of the predicted store; small pages need more of the budget.
    pub page_size: usize,
}

/// The default budget. The rest of a replay, without its cache and the drive's tables, fits with it
/// into 256 MiB.
const MEMORY_BYTES: usize = 245_000_000;
/// The minimum budget, even if other data need memory.
const LEAST_MEMORY_BYTES: usize = 96_000_000;

impl Span {
    /// A span without limit, with the default memory budget, which is enough for 9.4 million keys
    /// of 8 bytes.
    #[must_use]
    pub fn after(warmup_ops: u64) -> Self {
        Span {
            warmup_ops,
            limit_ops: u64::MAX,
            memory_bytes: MEMORY_BYTES,
            page_size: BLOCK_SIZE,
        }
    }

    /// A span with less memory because other data take this many bytes, but with enough for one or
    /// two million keys.
    #[must_use]
    pub fn beside(self, bytes: usize) -> Self {
        let left = self.memory_bytes.saturating_sub(bytes);
        let memory_bytes = left.max(LEAST_MEMORY_BYTES.min(self.memory_bytes));
        Span {
            memory_bytes,
            ..self
        }
    }
}

/// The statistics of a trace, as predictors use them. Created by [`Workload::analyze`].
#[derive(Debug)]
pub struct Workload {
    /// The warm-up part.
    pub warmup: Totals,
    /// The measured part.
    pub measured: Totals,
    /// The sample holds each key with probability `2^-sample_shift`.
    pub sample_shift: u32,
    /// Puts of existing keys, and deletes, in the warm-up, which determine how full modification
    /// logs are (estimated if sampled).
    pub rewrites_before: f64,
    /// Share of zero bytes at the end of values; half, unless set otherwise (B⁻-tree §4.1).
    pub zeros: f64,
    /// How bursty measured accesses to a key are: 1 if independent (see [`super::recency`]); `None`
    /// if no key comes back.
    pub burstiness: Option<f64>,
    /// Bytes of the records at the end of the warm-up; `None` if there is no warm-up.
    warmup_bytes: Option<f64>,
    /// Operations per unit of [`KeyStats::first_put`]: 1 for up to 4 billion operations.
    pub(crate) tick: u64,
    pub(crate) keys: Keys,
    /// The operations on them, in order.
    pub(crate) accesses: Accesses,
    sums: OnceLock<Sums>,
    /// What was last derived from all this, for the next prediction that needs the same; see
    /// [`crate::predict::leaf::LeafLevel::kept`].
    pub(crate) kept: Mutex<Option<Arc<dyn Any + Send + Sync>>>,
    /// Blocks that were compressed for earlier predictions, by what they depend on.
    pub(crate) samples: Derived,
    /// Lower bounds of page writes, by leaves; see [`crate::limit::Limit::kept`].
    pub(crate) limits: Derived,
}

impl Workload {
    /// Reads `source` to its end (or to `span.limit_ops`) and counts.
    ///
    /// # Errors
    /// Errors of the source, for a bad trace.
    pub fn analyze(source: &mut dyn OpSource, span: Span) -> Result<Workload, TraceError> {
        Workload::analyze_stored(source, span, |_, _| Ok::<_, TraceError>(true))
    }

    /// As [`Workload::analyze`], for operations as the store executes them: `stored` receives each
    /// operation with its number, from 1 on. It may cut the value, or return `false` to skip the
    /// operation.
    ///
    /// # Errors
    /// Errors of the source, for a bad trace, and errors of `stored`.
    pub fn analyze_stored<E: From<TraceError>>(
        source: &mut dyn OpSource,
        span: Span,
        mut stored: impl FnMut(&mut Op, u64) -> Result<bool, E>,
    ) -> Result<Workload, E> {
        let mut pass = Pass::new(span);
        let mut op = Op::default();
        while pass.seen < span.limit_ops && source.next_op(&mut op)? {
            if pass.seen == span.warmup_ops {
                pass.end_warmup();
            }
            if stored(&mut op, pass.seen + 1)? {
                pass.take(&op);
            } else {
                pass.skip();
            }
        }
        Ok(pass.finish())
    }

    fn sums(&self) -> &Sums {
        self.sums.get_or_init(|| Sums::of(&self.keys))
    }

    /// Number of keys in the sample.
    #[must_use]
    pub fn sampled_keys(&self) -> usize {
        self.keys.len()
    }

    /// Number of records in the store at the end if nothing is deleted: keys that were ever put
    /// (estimated if sampled).
    #[must_use]
    pub fn records(&self) -> f64 {
        self.sums().put as f64 * self.sample_weight()
    }

    /// Number of records in the store at the end (estimated if sampled).
    #[must_use]
    pub fn live_records(&self) -> f64 {
        self.sums().live as f64 * self.sample_weight()
    }

    /// The size to which shares such as `--cache 20%` refer: bytes of keys and values in the store
    /// at the end of the warm-up. Without a warm-up the store is empty at first, so the end of the
    /// trace counts.
    #[must_use]
    pub fn data_set_bytes(&self) -> f64 {
        match self.warmup_bytes {
            Some(bytes) if bytes > 0.0 => bytes,
            _ => self.sums().live_bytes as f64 * self.sample_weight(),
        }
    }

    /// Bytes of keys and values of the live records at the end.
    #[must_use]
    pub fn data_bytes(&self) -> f64 {
        self.sums().put_bytes as f64 * self.sample_weight()
    }

    /// How many keys of the trace a sampled key represents.
    #[must_use]
    pub fn sample_weight(&self) -> f64 {
        (1u64 << self.sample_shift) as f64
    }

    /// Whether keys and records are estimated from a sample.
    #[must_use]
    pub fn is_estimated(&self) -> bool {
        self.sample_shift > 0
    }

    /// A warning to print if the workload is a sample.
    #[must_use]
    pub fn estimated(&self) -> Option<String> {
        self.is_estimated().then(|| {
            format!(
                "Predictions are estimated from a sample of the keys, 1 in {}: \
                 the most popular ones may be missing.",
                self.sample_weight()
            )
        })
    }

    /// Bytes of a value that a leaf of this page size stores.
    #[inline]
    pub(crate) fn stored_len(&self, index: u32, page_size: usize) -> usize {
        let (key, value) = self.keys.lens(index);
        match is_long(&node::limits(page_size), key, value) {
            true => POINTER_BYTES,
            false => value,
        }
    }

    /// Sum of `of` over the records of a store with this page size if nothing is deleted. `of` maps
    /// the number of overflow blocks of a record to a number.
    #[must_use]
    pub fn overflow_sum(&self, page_size: usize, of: impl Fn(u64) -> u64) -> f64 {
        let limits = node::limits(page_size);
        let sums = self.sums();
        if !is_long(&limits, sums.key_max, sums.value_max) {
            return 0.0;
        }
        let put = self.keys.iter().filter(|k| k.first_put != NEVER);
        let long = put.filter(|k| is_long(&limits, usize::from(k.key_len), k.value_len as usize));
        let sum: u64 = long
            .map(|k| of(overflow_blocks(k.value_len as usize)))
            .sum();
        sum as f64 * self.sample_weight()
    }

    #[inline]
    pub(crate) fn key(&self, index: u32) -> &[u8] {
        self.keys.key(index)
    }

    /// Indices of the sampled keys, in key order.
    pub(crate) fn key_order(&self) -> Vec<u32> {
        order::key_order(&self.keys)
    }
}

/// Grows capacity in steps of a fifth, because doubling would exceed the budget.
pub(crate) fn reserve<T>(list: &mut Vec<T>, more: usize) {
    if list.capacity() - list.len() < more {
        list.reserve_exact(more.max(list.len() / 5).max(4096));
    }
}
