//! What a predictor may know of a trace: one streaming pass, bounded memory.
//!
//! ```text
//! ops ──hash──> table: tag | entry          entry: key, last value length, first put, reads, writes
//!                      (8 B a slot)                 (44 B, keys in one arena)
//! ```
//!
//! Counts are exact while the keys fit the budget. Beyond it the pass keeps only the keys whose hash begins with `k` zero bits
//! (spatial sampling by hash, Waldspurger et al., SHARDS, FAST'15) and halves the sample as often as needed. A power of
//! two is no accident: a B-tree of `N / 2^k` records of the same size is at the same phase of its growth wave as one of `N`
//! (see [`super::leaf`]), so what the sample says of leaf fill holds for the whole.
//!
//! Two keys with the same 32-bit tag in the same probe run are taken for one: at four million keys that befalls a handful.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use treering_engine::node::{self, MAX_PAGE_BYTES, MIN_PAGE_BYTES};
use treering_engine::{BLOCK_SIZE, POINTER_BYTES, is_long, overflow_blocks};
use treering_traces::{Op, OpKind, OpSource, TraceError};
use xxhash_rust::xxh3::xxh3_64;

use super::log::{record_bytes, varint_len};
use super::recency::Recency;

/// Which part of the trace is measured, and how much memory the pass may take.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// This many operations at the beginning are warm-up.
    pub warmup_ops: u64,
    /// The pass stops after this many operations, warm-up included.
    pub limit_ops: u64,
    /// Budget for keys and their counts in bytes.
    pub memory_bytes: usize,
}

impl Span {
    /// A span with the usual memory budget (110 MB) and no limit.
    #[must_use]
    pub fn after(warmup_ops: u64) -> Self {
        Span {
            warmup_ops,
            limit_ops: u64::MAX,
            memory_bytes: 110_000_000,
        }
    }
}

/// No put of this key has been seen.
pub(crate) const NEVER: u32 = u32::MAX;

/// What the pass knows of a key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyStats {
    key_at: u32,
    pub(crate) key_len: u16,
    /// Whether the last write was a delete.
    pub(crate) deleted: bool,
    pub(crate) value_len: u32,
    /// Number of the operation that put it first, in units of [`Workload::tick`]; [`NEVER`] if none did.
    pub(crate) first_put: u32,
    /// Measured gets and scan starts.
    pub(crate) reads: u32,
    /// Measured puts and deletes.
    pub(crate) writes: u32,
    /// Gets of the warm-up.
    pub(crate) warmup_reads: u32,
    /// Puts, but for the first, and deletes of the warm-up.
    pub(crate) warmup_writes: u32,
    /// Of the reads and of the writes, those that come right after one of the same sort on the key right before this one: in a page that
    /// holds both they are no visits of their own.
    pub(crate) run_reads: u32,
    pub(crate) run_writes: u32,
}

impl KeyStats {
    /// Whether the store has a record of it now.
    fn is_live(&self) -> bool {
        self.first_put != NEVER && !self.deleted
    }
}

/// Bytes of the keys and values that a store has now.
fn live_bytes(keys: &[KeyStats]) -> f64 {
    let live = keys.iter().filter(|k| k.is_live());
    let bytes: u64 = live
        .map(|k| u64::from(k.key_len) + u64::from(k.value_len))
        .sum();
    bytes as f64
}

/// Sums over one part (warm-up or measured) of the trace: exact, not sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Totals {
    /// Operations by kind, in the order of [`OpKind::ALL`].
    pub ops: [u64; 4],
    /// Key and value bytes of puts, key bytes of deletes.
    pub user_bytes: u64,
    /// Bytes of the redo records of puts and deletes, without the page's name (B⁻-tree §2.4, `W_log` before rounding).
    pub log_bytes: u64,
    /// Sum of the lengths of scans in records.
    pub scanned_records: u64,
    /// Of puts whose values are out of line, by page size.
    long: [Long; PAGE_SIZES],
}

/// Page sizes that there are: powers of two.
const PAGE_SIZES: usize = (MAX_PAGE_BYTES / MIN_PAGE_BYTES).ilog2() as usize + 1;

/// Puts whose values are out of line with pages of one size.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Long {
    /// Bytes of their overflow blocks.
    overflow_bytes: u64,
    /// Bytes of their values.
    value_bytes: u64,
    /// By how much their redo records are shorter than with the values in them.
    log_saved: u64,
}

/// Which of [`Totals::long`] is that of a page size.
fn size_class(page_size: usize) -> usize {
    (page_size / MIN_PAGE_BYTES).max(1).ilog2() as usize
}

/// Bytes of a redo record of a put, without the page's name.
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

    fn add(&mut self, op: &Op) {
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
        let saved = || put_bytes(key, u64::from(value)) - put_bytes(key, POINTER_BYTES as u64);
        for (class, long) in self.long.iter_mut().enumerate() {
            // Where it fits a small page it fits a larger one.
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

    /// [`Totals::log_bytes`] in a store of pages of this size, whose long values are not in the
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

/// A trace as the predictors see it. Made by [`Workload::analyze`].
#[derive(Debug)]
pub struct Workload {
    /// The warm-up part.
    pub warmup: Totals,
    /// The measured part.
    pub measured: Totals,
    /// The sample holds each key with probability `2^-sample_shift`.
    pub sample_shift: u32,
    /// Puts of keys that were there before, and deletes, in the warm-up: how far modification logs have come (estimated where sampled).
    pub rewrites_before: f64,
    /// Share of zero bytes at the end of values; half, unless set otherwise (B⁻-tree §4.1).
    pub zeros: f64,
    /// How far measured accesses of a key are from independent moments, which give 1 ([`super::recency`]); nothing if no key comes back.
    pub burstiness: Option<f64>,
    /// Bytes of the records at the end of the warm-up; nothing if there is none.
    warmup_bytes: Option<f64>,
    /// Operations a unit of [`KeyStats::first_put`] stands for: 1 up to 4 billion operations.
    pub(crate) tick: u64,
    pub(crate) keys: Vec<KeyStats>,
    /// Scans by index of the key they start at.
    pub(crate) scans: BTreeMap<u32, u32>,
    arena: Vec<u8>,
}

impl Workload {
    /// Reads `source` to its end (or to `span.limit_ops`) and counts.
    ///
    /// # Errors
    /// What the source says of a bad trace.
    pub fn analyze(source: &mut dyn OpSource, span: Span) -> Result<Workload, TraceError> {
        Workload::analyze_stored(source, span, |_, _| Ok::<_, TraceError>(true))
    }

    /// As [`Workload::analyze`], of what a store makes of the trace: `stored` gets each operation with its number, from 1 on; it may cut
    /// the value, or leave the operation out by `false`.
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

    /// Number of records the store holds at the end if nothing is deleted: keys that were ever put (estimated where sampled).
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

    /// What a share of the data set is a share of, as in `--cache 20%`: bytes of the keys and values that the store holds at the end of
    /// the warm-up. A trace that has none begins with an empty store; there it is those of its end.
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

    /// What a leaf of this page size keeps of a key's value, in bytes.
    pub(crate) fn stored_len(&self, index: u32, page_size: usize) -> usize {
        let stats = &self.keys[index as usize];
        let (key, value) = (usize::from(stats.key_len), stats.value_len as usize);
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

    pub(crate) fn key(&self, index: u32) -> &[u8] {
        let k = &self.keys[index as usize];
        key_of(&self.arena, k)
    }

    /// Indices of the sampled keys in key order.
    pub(crate) fn key_order(&self) -> Vec<u32> {
        let skip = common_prefix_of_all(&self.arena, &self.keys);
        let mut heads: Vec<(u64, u32)> = (0..self.keys.len() as u32)
            .map(|i| (head(&self.key(i)[skip..]), i))
            .collect();
        heads.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| self.key(a.1).cmp(self.key(b.1))));
        heads.into_iter().map(|(_, i)| i).collect()
    }
}

fn key_of<'a>(arena: &'a [u8], k: &KeyStats) -> &'a [u8] {
    let at = k.key_at as usize;
    &arena[at..at + usize::from(k.key_len)]
}

/// Bytes that all keys begin with: worth skipping before comparing heads.
fn common_prefix_of_all(arena: &[u8], keys: &[KeyStats]) -> usize {
    let Some(first) = keys.first().map(|k| key_of(arena, k)) else {
        return 0;
    };
    keys.iter().fold(first.len(), |shared, k| {
        let key = key_of(arena, k);
        if key.len() >= shared && key[..shared] == first[..shared] {
            return shared;
        }
        first
            .iter()
            .zip(key)
            .take(shared)
            .take_while(|(a, b)| a == b)
            .count()
    })
}

/// The first eight bytes as an integer that orders like them.
fn head(key: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let n = key.len().min(8);
    bytes[..n].copy_from_slice(&key[..n]);
    u64::from_be_bytes(bytes)
}

/// The last eight bytes as an integer: it grows by one from a block number to the next.
fn tail(key: &[u8]) -> u64 {
    head(&key[key.len().saturating_sub(8)..])
}

/// Operations whose table lookups are done together, so that their cache misses overlap.
const BATCH: usize = 32;

/// The pass under way.
struct Pass {
    span: Span,
    seen: u64,
    tick: u64,
    warmup: Totals,
    measured: Totals,
    /// Length and [`tail`] of the key before, and whether it was written.
    last: (usize, u64, bool),
    shift: u32,
    table: Table,
    keys: Vec<KeyStats>,
    arena: Vec<u8>,
    scans: FxHashMap<u32, u32>,
    waiting: Vec<Waiting>,
    waiting_keys: Vec<u8>,
    recency: Recency,
    warmup_bytes: Option<f64>,
}

/// An operation that has been hashed but not counted.
struct Waiting {
    hash: u64,
    key_at: u32,
    key_len: u16,
    kind: OpKind,
    measured: bool,
    follows: bool,
    value_len: u32,
    time: u32,
}

impl Pass {
    fn new(span: Span) -> Pass {
        Pass {
            span,
            seen: 0,
            tick: 1,
            warmup: Totals::default(),
            measured: Totals::default(),
            last: (0, 0, false),
            shift: 0,
            table: Table::with_capacity(1 << 12),
            keys: Vec::new(),
            arena: Vec::new(),
            scans: FxHashMap::default(),
            waiting: Vec::with_capacity(BATCH),
            waiting_keys: Vec::new(),
            recency: Recency::default(),
            warmup_bytes: None,
        }
    }

    /// Sums up what the store holds when measuring begins.
    fn end_warmup(&mut self) {
        self.count_waiting();
        let weight = (1u64 << self.shift) as f64;
        self.warmup_bytes = (self.seen > 0).then_some(live_bytes(&self.keys) * weight);
    }

    fn take(&mut self, op: &Op) {
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
        let time = (self.seen / self.tick) as u32;
        self.seen += 1;
        if time == NEVER - 1 {
            self.coarsen_time();
        }
        let hash = xxh3_64(&op.key);
        if measured {
            self.recency.note(hash, self.seen);
        }
        if !sampled(hash, self.shift) {
            return;
        }
        let key_at = self.waiting_keys.len() as u32;
        self.waiting_keys.extend_from_slice(&op.key);
        self.table.touch(hash);
        self.waiting.push(Waiting {
            hash,
            key_at,
            key_len: u16::try_from(op.key.len()).unwrap_or(u16::MAX),
            kind: op.kind,
            measured,
            follows,
            value_len: op.value_len,
            time,
        });
        if self.waiting.len() == BATCH {
            self.count_waiting();
        }
    }

    /// Doubles the tick, so that operation numbers fit 32 bits.
    fn coarsen_time(&mut self) {
        self.count_waiting();
        self.tick *= 2;
        for k in self.keys.iter_mut().filter(|k| k.first_put != NEVER) {
            k.first_put /= 2;
        }
    }

    fn count_waiting(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        for w in &waiting {
            let index = match self.table.find(w.hash) {
                Some(index) => index,
                None => self.enter(w),
            };
            let k = &mut self.keys[index as usize];
            let in_run = u32::from(w.measured && w.follows);
            match w.kind {
                OpKind::Get | OpKind::Scan => k.run_reads += in_run,
                OpKind::Put | OpKind::Delete => k.run_writes += in_run,
            }
            match w.kind {
                OpKind::Get | OpKind::Scan => {
                    k.reads += u32::from(w.measured);
                    k.warmup_reads += u32::from(!w.measured && w.kind == OpKind::Get);
                    if w.kind == OpKind::Scan && w.measured {
                        *self.scans.entry(index).or_default() += 1;
                    }
                }
                OpKind::Put => {
                    k.writes += u32::from(w.measured);
                    k.warmup_writes += u32::from(!w.measured && k.first_put != NEVER);
                    k.value_len = w.value_len;
                    k.deleted = false;
                    k.first_put = k.first_put.min(w.time);
                }
                OpKind::Delete => {
                    k.writes += u32::from(w.measured);
                    k.warmup_writes += u32::from(!w.measured);
                    k.deleted = true;
                }
            }
        }
        self.waiting = waiting;
        self.waiting.clear();
        self.waiting_keys.clear();
        if self.memory() > self.span.memory_bytes && self.keys.len() > 1024 {
            self.halve();
        }
    }

    fn enter(&mut self, w: &Waiting) -> u32 {
        let index = self.keys.len() as u32;
        let at = w.key_at as usize;
        if self.table.is_full() {
            self.table = Table::with_capacity(0);
            self.table = self.rebuilt(self.keys.len(), self.keys.len() * 2);
        }
        reserve(&mut self.keys, 1);
        reserve(&mut self.arena, usize::from(w.key_len));
        self.keys.push(KeyStats {
            key_at: self.arena.len() as u32,
            key_len: w.key_len,
            deleted: false,
            value_len: w.value_len,
            first_put: NEVER,
            reads: 0,
            writes: 0,
            warmup_reads: 0,
            warmup_writes: 0,
            run_reads: 0,
            run_writes: 0,
        });
        self.arena
            .extend_from_slice(&self.waiting_keys[at..at + usize::from(w.key_len)]);
        self.table.insert(w.hash, index);
        index
    }

    /// A table of the first `count` keys with room for `room`.
    fn rebuilt(&self, count: usize, room: usize) -> Table {
        let mut table = Table::with_capacity(room);
        for (i, k) in self.keys[..count].iter().enumerate() {
            table.insert(xxh3_64(key_of(&self.arena, k)), i as u32);
        }
        table
    }

    fn memory(&self) -> usize {
        self.keys.len() * size_of::<KeyStats>() + self.arena.len() + self.table.bytes()
            // What the analysis of the result takes beside it: key order and leaf growth.
            + self.keys.len() * 16
    }

    /// Drops the half of the keys whose next hash bit is set. In place: there is no room for two copies.
    fn halve(&mut self) {
        self.shift += 1;
        let scans = std::mem::take(&mut self.scans);
        self.table = Table::with_capacity(self.keys.len() / 2 + 4096);
        let (mut kept, mut kept_bytes) = (0, 0);
        for old in 0..self.keys.len() {
            let k = self.keys[old];
            let hash = xxh3_64(key_of(&self.arena, &k));
            if !sampled(hash, self.shift) {
                continue;
            }
            let (at, len) = (k.key_at as usize, usize::from(k.key_len));
            self.arena.copy_within(at..at + len, kept_bytes);
            self.keys[kept] = KeyStats {
                key_at: kept_bytes as u32,
                ..k
            };
            if self.table.is_full() {
                self.table = self.rebuilt(kept, self.keys.len());
            }
            self.table.insert(hash, kept as u32);
            if let Some(n) = scans.get(&(old as u32)) {
                self.scans.insert(kept as u32, *n);
            }
            kept += 1;
            kept_bytes += len;
        }
        self.keys.truncate(kept);
        self.arena.truncate(kept_bytes);
    }

    fn finish(mut self) -> Workload {
        self.count_waiting();
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
            scans: self.scans.into_iter().collect(),
            arena: self.arena,
        }
    }
}

/// Makes room in steps of a fifth: doubling would overshoot the budget.
pub(crate) fn reserve<T>(list: &mut Vec<T>, more: usize) {
    if list.capacity() - list.len() < more {
        list.reserve_exact(more.max(list.len() / 5).max(4096));
    }
}

fn sampled(hash: u64, shift: u32) -> bool {
    shift == 0 || hash >> (64 - shift) == 0
}

/// Open addressing, linear probing; a slot is `tag << 32 | index + 1`, 0 if empty.
struct Table {
    slots: Vec<u64>,
    mask: usize,
    used: usize,
}

impl Table {
    fn with_capacity(keys: usize) -> Table {
        let slots = (keys * 2).next_power_of_two();
        Table {
            slots: vec![0; slots],
            mask: slots - 1,
            used: 0,
        }
    }

    fn bytes(&self) -> usize {
        self.slots.len() * 8
    }

    fn home(&self, hash: u64) -> usize {
        // The upper bits decide sampling and the tag, the lower ones the place.
        hash as usize & self.mask
    }

    /// Asks for the cache line that `find` will want.
    fn touch(&self, hash: u64) {
        std::hint::black_box(self.slots[self.home(hash)]);
    }

    fn find(&self, hash: u64) -> Option<u32> {
        let mut at = self.home(hash);
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                return None;
            }
            if slot >> 32 == tag(hash) {
                return Some(slot as u32 - 1);
            }
            at = (at + 1) & self.mask;
        }
    }

    fn insert(&mut self, hash: u64, index: u32) {
        let mut at = self.home(hash);
        while self.slots[at] != 0 {
            at = (at + 1) & self.mask;
        }
        self.slots[at] = tag(hash) << 32 | (u64::from(index) + 1);
        self.used += 1;
    }

    /// Whether the next insertion wants a larger table.
    fn is_full(&self) -> bool {
        self.used * 4 >= self.slots.len() * 3
    }
}

/// 32 bits of the hash that neither sampling nor (up to sixteen million slots) the home slot uses.
fn tag(hash: u64) -> u64 {
    hash >> 24 & 0xffff_ffff
}
