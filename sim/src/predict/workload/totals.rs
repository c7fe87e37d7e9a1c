//! Sums over all operations, exact even if keys are sampled.

use std::io;

use treering_engine::node::{self, MAX_PAGE_BYTES, MIN_PAGE_BYTES};
use treering_engine::{BLOCK_SIZE, POINTER_BYTES, is_long, overflow_blocks};
use treering_traces::{Op, OpKind};

use crate::codec::{Decoder, Encoder};
use crate::predict::log::{record_bytes, varint_len};

/// Sums over one part (warm-up or measured) of the trace; exact, not sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Totals {
    /// Operations by kind, in the order of [`OpKind::ALL`].
    pub ops: [u64; 4],
    /// Key and value bytes of puts, key bytes of deletes.
    pub user_bytes: u64,
    /// Bytes of the redo records of puts and deletes, without page names (B⁻-tree §2.4, `W_log`
    /// before rounding).
    pub log_bytes: u64,
    /// Sum of the scan lengths, in records.
    pub scanned_records: u64,
    /// Puts with out-of-line values, by page size.
    long: [Long; PAGE_SIZES],
}

/// The possible page sizes, powers of two.
const PAGE_SIZES: usize = (MAX_PAGE_BYTES / MIN_PAGE_BYTES).ilog2() as usize + 1;

/// Puts with out-of-line values for one page size.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Long {
    /// Bytes of their overflow blocks.
    overflow_bytes: u64,
    /// Bytes of their values.
    value_bytes: u64,
    /// Bytes by which their redo records are shorter than with the values included.
    log_saved: u64,
}

/// Index in [`Totals::long`] of a page size.
fn size_class(page_size: usize) -> usize {
    (page_size / MIN_PAGE_BYTES).max(1).ilog2() as usize
}

/// Bytes of the redo record of a put, without the page's name.
fn put_bytes(key: u64, value: u64) -> u64 {
    record_bytes(varint_len(key) + key + value)
}

impl Totals {
    /// Number of operations.
    #[must_use]
    pub fn all_ops(&self) -> u64 {
        self.ops.iter().sum()
    }

    /// Number of operations of one kind.
    #[must_use]
    pub fn of(&self, kind: OpKind) -> u64 {
        self.ops[kind as usize]
    }

    /// Puts and deletes.
    #[must_use]
    pub fn writes(&self) -> u64 {
        self.of(OpKind::Put) + self.of(OpKind::Delete)
    }

    pub(super) fn save(&self, out: &mut Encoder<'_>) -> io::Result<()> {
        let fixed = [self.user_bytes, self.log_bytes, self.scanned_records];
        let long = (self.long.iter()).flat_map(|l| [l.overflow_bytes, l.value_bytes, l.log_saved]);
        let all = self.ops.into_iter().chain(fixed).chain(long);
        all.into_iter().try_for_each(|n| out.number(n))
    }

    pub(super) fn load(from: &mut Decoder<'_>) -> io::Result<Totals> {
        let mut totals = Totals::default();
        for count in &mut totals.ops {
            *count = from.number()?;
        }
        totals.user_bytes = from.number()?;
        totals.log_bytes = from.number()?;
        totals.scanned_records = from.number()?;
        for long in &mut totals.long {
            *long = Long {
                overflow_bytes: from.number()?,
                value_bytes: from.number()?,
                log_saved: from.number()?,
            };
        }
        Ok(totals)
    }

    pub(super) fn add(&mut self, op: &Op) {
        self.ops[op.kind as usize] += 1;
        self.user_bytes += op.user_bytes();
        self.scanned_records += u64::from(op.scan_len);
        let key = op.key.len() as u64;
        match op.kind {
            OpKind::Put => {
                self.log_bytes += put_bytes(key, u64::from(op.value_len));
                self.add_long(key, op.value_len);
            }
            OpKind::Delete => self.log_bytes += record_bytes(key),
            OpKind::Get | OpKind::Scan => {}
        }
    }

    fn add_long(&mut self, key: u64, value: u32) {
        let blocks = overflow_blocks(value as usize);
        let saved = || {
            put_bytes(key, u64::from(value)).saturating_sub(put_bytes(key, POINTER_BYTES as u64))
        };
        for (class, long) in self.long.iter_mut().enumerate() {
            // A value that fits a small page also fits larger ones.
            if !is_long(
                &node::limits(MIN_PAGE_BYTES << class),
                key as usize,
                value as usize,
            ) {
                return;
            }
            long.overflow_bytes += blocks * BLOCK_SIZE as u64;
            long.value_bytes += u64::from(value);
            long.log_saved += saved();
        }
    }

    /// [`Totals::log_bytes`] in a store with this page size, which keeps long values out of the
    /// log.
    #[must_use]
    pub fn log_bytes_with(&self, page_size: usize) -> u64 {
        self.log_bytes - self.long[size_class(page_size)].log_saved
    }

    /// Bytes of overflow blocks that puts write in such a store.
    #[must_use]
    pub fn overflow_bytes(&self, page_size: usize) -> u64 {
        self.long[size_class(page_size)].overflow_bytes
    }

    /// Bytes of the values in them.
    #[must_use]
    pub fn overflow_value_bytes(&self, page_size: usize) -> u64 {
        self.long[size_class(page_size)].value_bytes
    }
}
