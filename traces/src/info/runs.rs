//! Runs: operations in a row on neighbouring keys, as a scan of a file or of a table makes them.
//!
//! Reads (gets and scans) and writes (puts and deletes) are looked at apart, so that reads between
//! the writes of a run do not end it. A run goes on as long as each key is the number after the one
//! before: as a binary number, most significant byte first, as the keys of block traces, or as a
//! decimal number at the end of a text, with leading zeros. Keys of other kinds make no runs; the
//! share of ascending steps (one half for random keys) still tells whether they come in order.
//!
//! One comparison with the last key for each operation; exact.

use serde::Serialize;

use super::kinds::is_write;
use super::sizes::{SizeStats, Sizes};
use crate::Op;

/// Runs of neighbouring keys.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Runs {
    /// Runs of gets and scans; `None` without these.
    pub reads: Option<RunStats>,
    /// Runs of puts and deletes; `None` without these.
    pub writes: Option<RunStats>,
}

/// How keys follow each other.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunStats {
    /// Operations in a run. An operation without neighbours is a run of one.
    pub length: SizeStats,
    /// Share of the operations whose key is greater than the key before; `None` if there is only one.
    pub ascending: Option<f64>,
}

/// The state of the pass over a trace.
#[derive(Default)]
pub(super) struct Neighbours {
    reads: Chain,
    writes: Chain,
}

/// One kind of operations.
#[derive(Default)]
struct Chain {
    last: Vec<u8>,
    /// Length of the run so far.
    len: u64,
    ops: u64,
    ascending: u64,
    lengths: Sizes,
}

impl Neighbours {
    /// Takes the next operation.
    #[inline]
    pub(super) fn add(&mut self, op: &Op) {
        let chain = match is_write(op.kind) {
            true => &mut self.writes,
            false => &mut self.reads,
        };
        chain.add(&op.key);
    }

    /// Ends the pass.
    pub(super) fn finish(self) -> Runs {
        Runs {
            reads: self.reads.finish(),
            writes: self.writes.finish(),
        }
    }
}

impl Chain {
    fn add(&mut self, key: &[u8]) {
        self.ops += 1;
        if self.len > 0 {
            self.ascending += u64::from(key > &self.last[..]);
            if !follows(&self.last, key) {
                self.lengths.add_many(self.len, 1);
                self.len = 0;
            }
        }
        self.len += 1;
        self.last.clear();
        self.last.extend_from_slice(key);
    }

    fn finish(mut self) -> Option<RunStats> {
        if self.len > 0 {
            self.lengths.add_many(self.len, 1);
        }
        let steps = self.ops.saturating_sub(1);
        self.lengths.stats().map(|length| RunStats {
            length,
            ascending: (steps > 0).then(|| self.ascending as f64 / steps as f64),
        })
    }
}

/// Whether `key` is the number after `last`.
fn follows(last: &[u8], key: &[u8]) -> bool {
    last.len() == key.len() && (is_next(last, key, 0, 0xff) || is_next(last, key, b'0', b'9'))
}

/// Whether `key` is the number after `last`, for digits from `zero` to `nine` at its end.
fn is_next(last: &[u8], key: &[u8], zero: u8, nine: u8) -> bool {
    let carried = last.iter().rev().take_while(|&&byte| byte == nine).count();
    let Some(at) = last.len().checked_sub(carried + 1) else {
        return false;
    };
    (zero..nine).contains(&last[at])
        && key[at] == last[at] + 1
        && key[at + 1..].iter().all(|&byte| byte == zero)
        && key[..at] == last[..at]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_number_is_binary_or_decimal() {
        for number in [0u64, 1, 255, 256, 65_535, 0xffff_ffff, 1 << 40] {
            let (a, b) = (number.to_be_bytes(), (number + 1).to_be_bytes());
            assert!(follows(&a, &b), "{number}");
            assert!(!follows(&b, &a) && !follows(&a, &a), "{number}");
            assert!(!follows(&a, &(number + 2).to_be_bytes()), "{number}");
            let text = |number| format!("user{number:015}").into_bytes();
            assert!(follows(&text(number), &text(number + 1)), "{number}");
            assert!(!follows(&text(number), &text(number + 2)), "{number}");
        }
        for (a, b) in [("", ""), ("a", ""), ("a9", "b0"), ("99", "00"), ("a", "ab")] {
            assert!(!follows(a.as_bytes(), b.as_bytes()), "{a} {b}");
        }
        assert!(!follows(&[0xff, 0xff], &[0, 0]));
    }
}
