//! What a predictor may know of a trace: one streaming pass, bounded memory.
//!
//! ```text
//! ops ──hash──▶ table: tag | number ──▶ row: first put, value length, counts, key
//!               4.6 to 6.4 B a key           9 B and the key
//! ```
//!
//! That is at most 24 bytes a key of 8 bytes; longer keys add what they are longer, keys of
//! different lengths 4 bytes each, keys at which scans start one byte, and counts that overflow
//! their fields some 20 bytes each. Modules `keys` and `table` say how. What is then done with the
//! counts takes no table, but key order and order of insertion, 4 bytes a key each, so 25 to 26
//! bytes a key.
//!
//! Counts are exact while the keys fit the budget: 9.4 million keys of 8 bytes do. Beyond it the
//! pass keeps only the keys whose hash begins with `k` zero bits (spatial sampling by hash,
//! Waldspurger et al., SHARDS, FAST'15) and halves the sample as often as needed. A power of two is
//! no accident: a B-tree of `N / 2^k` records of the same size is at the same phase of its growth
//! wave as one of `N` (see [`super::leaf`]), so what the sample says of leaf fill holds for the
//! whole.

mod keys;
mod order;
mod pass;
mod segment;
mod table;
#[cfg(test)]
mod tests;
mod totals;

use treering_engine::node;
use treering_engine::{BLOCK_SIZE, POINTER_BYTES, is_long, overflow_blocks};
use treering_traces::{Op, OpSource, TraceError};

use self::keys::Keys;
pub(crate) use self::keys::{KeyStats, NEVER};
use self::pass::Pass;
pub use self::totals::Totals;

/// Which part of the trace is measured, and how much memory the pass may take.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// This many operations at the beginning are warm-up.
    pub warmup_ops: u64,
    /// The pass stops after this many operations, warm-up included.
    pub limit_ops: u64,
    /// Budget in bytes for the keys, their counts, and what the predictors make of them.
    pub memory_bytes: usize,
    /// Pages of the store that is predicted: the smaller they are, the more of the budget they
    /// take.
    pub page_size: usize,
}

/// The usual budget: what a replay takes beside it, other than cache and tables of the drive,
/// leaves all of it below 256 MiB.
const MEMORY_BYTES: usize = 245_000_000;
/// The least, whatever else takes memory.
const LEAST_MEMORY_BYTES: usize = 96_000_000;

impl Span {
    /// A span with the usual memory budget, which is for 9.4 million keys of 8 bytes, and no limit.
    #[must_use]
    pub fn after(warmup_ops: u64) -> Self {
        Span {
            warmup_ops,
            limit_ops: u64::MAX,
            memory_bytes: MEMORY_BYTES,
            page_size: BLOCK_SIZE,
        }
    }

    /// The same, with less memory because other things take these bytes, but with enough of it for
    /// a million keys or two.
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

/// Bytes of the keys and values that a store has now.
fn live_bytes(keys: &Keys) -> f64 {
    let live = keys.iter().filter(|k| k.is_live());
    let bytes: u64 = live
        .map(|k| u64::from(k.key_len) + u64::from(k.value_len))
        .sum();
    bytes as f64
}

/// A trace as the predictors see it. Made by [`Workload::analyze`].
#[derive(Debug)]
pub struct Workload {
    /// The warm-up part.
    pub warmup: Totals,
    /// The measured part.
    pub measured: Totals,
    /// The sample holds each key with probability `2^-sample_shift`.
    pub sample_shift: u32,
    /// Puts of keys that were there before, and deletes, in the warm-up: how far modification logs
    /// have come (estimated where sampled).
    pub rewrites_before: f64,
    /// Share of zero bytes at the end of values; half, unless set otherwise (B⁻-tree §4.1).
    pub zeros: f64,
    /// How far measured accesses of a key are from independent moments, which give 1
    /// ([`super::recency`]); nothing if no key comes back.
    pub burstiness: Option<f64>,
    /// Bytes of the records at the end of the warm-up; nothing if there is none.
    warmup_bytes: Option<f64>,
    /// Operations a unit of [`KeyStats::first_put`] stands for: 1 up to 4 billion operations.
    pub(crate) tick: u64,
    pub(crate) keys: Keys,
}

impl Workload {
    /// Reads `source` to its end (or to `span.limit_ops`) and counts.
    ///
    /// # Errors
    /// What the source says of a bad trace.
    pub fn analyze(source: &mut dyn OpSource, span: Span) -> Result<Workload, TraceError> {
        Workload::analyze_stored(source, span, |_, _| Ok::<_, TraceError>(true))
    }

    /// As [`Workload::analyze`], of what a store makes of the trace: `stored` gets each operation
    /// with its number, from 1 on; it may cut the value, or leave the operation out by `false`.
    ///
    /// # Errors
    /// What the source says of a bad trace, and what `stored` says.
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
                pass.seen += 1;
            }
        }
        Ok(pass.finish())
    }

    /// Number of keys of the sample.
    #[must_use]
    pub fn sampled_keys(&self) -> usize {
        self.keys.len()
    }

    /// Number of records the store holds at the end if nothing is deleted: keys that were ever put
    /// (estimated where sampled).
    #[must_use]
    pub fn records(&self) -> f64 {
        let put = self.keys.iter().filter(|k| k.first_put != NEVER).count();
        put as f64 * self.sample_weight()
    }

    /// Number of records the store holds at the end (estimated where sampled).
    #[must_use]
    pub fn live_records(&self) -> f64 {
        let live = self.keys.iter().filter(|k| k.is_live()).count();
        live as f64 * self.sample_weight()
    }

    /// What a share of the data set is a share of, as in `--cache 20%`: bytes of the keys and
    /// values that the store holds at the end of the warm-up. A trace that has none begins with an
    /// empty store; there it is those of its end.
    #[must_use]
    pub fn data_set_bytes(&self) -> f64 {
        match self.warmup_bytes {
            Some(bytes) if bytes > 0.0 => bytes,
            _ => live_bytes(&self.keys) * self.sample_weight(),
        }
    }

    /// Bytes of keys and values of those records.
    #[must_use]
    pub fn data_bytes(&self) -> f64 {
        let put = self.keys.iter().filter(|k| k.first_put != NEVER);
        let bytes: u64 = put
            .map(|k| u64::from(k.key_len) + u64::from(k.value_len))
            .sum();
        bytes as f64 * self.sample_weight()
    }

    /// How many keys of the trace one sampled key stands for.
    #[must_use]
    pub fn sample_weight(&self) -> f64 {
        (1u64 << self.sample_shift) as f64
    }

    /// Whether what is said of keys and records is estimated from a sample of the keys.
    #[must_use]
    pub fn is_estimated(&self) -> bool {
        self.sample_shift > 0
    }

    /// What a reader of estimates should know.
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

    /// What a leaf of this page size keeps of a key's value, in bytes.
    #[inline]
    pub(crate) fn stored_len(&self, index: u32, page_size: usize) -> usize {
        let (key, value) = self.keys.lens(index);
        match is_long(&node::limits(page_size), key, value) {
            true => POINTER_BYTES,
            false => value,
        }
    }

    /// Sum over the records of a store of such pages, if nothing is deleted, of what `of` says of
    /// the overflow blocks of each.
    #[must_use]
    pub fn overflow_sum(&self, page_size: usize, of: impl Fn(u64) -> u64) -> f64 {
        let limits = node::limits(page_size);
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

    /// Indices of the sampled keys in key order.
    pub(crate) fn key_order(&self) -> Vec<u32> {
        order::key_order(&self.keys)
    }
}

/// Makes room in steps of a fifth: doubling would overshoot the budget.
pub(crate) fn reserve<T>(list: &mut Vec<T>, more: usize) {
    if list.capacity() - list.len() < more {
        list.reserve_exact(more.max(list.len() / 5).max(4096));
    }
}
