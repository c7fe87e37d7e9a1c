//! The keys of a trace and their statistics, in 9 bytes besides the key.
//!
//! ```text
//! 65,536 keys are a segment:  rows of one length                  arena, if keys differ in length
//!                             first put 3|value 2|counts 4|key
//!                             first put 3|value 2|counts 4|start 4 ────▶ key, up to the next
//!
//! counts, low bits first:     reads 8|writes 8|warm-up reads 4|warm-up writes 4|run reads 3|
//!                             run writes 3|deleted 1|more 1
//! ```
//!
//! A count that overflows its field starts again at 0 and adds one to its entry in the map `more`,
//! so a count of thousands accesses the map once in 2^bits times. First puts are relative to the
//! time when the first of 1,024 keys came; those more than 16 million operations later are in the
//! map as well, as are value lengths of 64 KiB or more. Scans that start at a key are counted in a
//! byte per key, in segments that have any.
//!
//! Only the last segment grows, in steps of a sixty-fourth of all keys, so hardly any memory is
//! unused.

use std::io;

use rustc_hash::FxHashMap;
use treering_traces::OpKind;

use super::segment::{HEAD, Head, SEGMENT_KEYS, Segment};
use crate::codec::{Decoder, Encoder, malformed};

/// Marks a key that was never put.
pub(crate) const NEVER: u32 = u32::MAX;

/// Maximum number of keys, so that names of map entries fit 32 bits.
pub(super) const MOST_KEYS: usize = 1 << (32 - NAME_BITS);

/// The statistics of a key that a predictor may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyStats {
    pub(crate) key_len: u16,
    /// Whether the last write was a delete.
    pub(crate) deleted: bool,
    pub(crate) value_len: u32,
    /// Number of the operation that first put it, in units of [`super::Workload::tick`]; [`NEVER`]
    /// if none did.
    pub(crate) first_put: u32,
    /// Measured gets and scan starts.
    pub(crate) reads: u32,
    /// Measured puts and deletes.
    pub(crate) writes: u32,
    /// Gets of the warm-up.
    pub(crate) warmup_reads: u32,
    /// Puts (except the first) and deletes of the warm-up.
    pub(crate) warmup_writes: u32,
    /// The reads and writes that directly follow one of the same kind on the preceding key. In a
    /// page that holds both keys they are not separate visits.
    pub(crate) run_reads: u32,
    pub(crate) run_writes: u32,
}

impl KeyStats {
    /// Whether the store has a record of it at the end.
    pub(super) fn is_live(&self) -> bool {
        self.first_put != NEVER && !self.deleted
    }
}

/// An operation, as it is counted for its key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    pub(super) kind: OpKind,
    pub(super) measured: bool,
    /// Whether it directly follows one of the same kind on the preceding key.
    pub(super) in_run: bool,
    pub(super) value_len: u32,
    /// Time in ticks.
    pub(super) time: u32,
}

/// Number of keys whose first puts are relative to the same time.
const BLOCK_KEYS: usize = 1 << 10;

/// Codes for the first put of a key that has none, and of one that is in the map.
const NO_PUT: u32 = 0xff_ffff;
const FAR_PUT: u32 = 0xff_fffe;
/// Code for the length of a value that is in the map.
const LONG_VALUE: u32 = 0xffff;

/// Bits of a map entry's name that select the kind of entry.
const NAME_BITS: u32 = 4;
const SCANS_NAME: u32 = 6;
const FIRST_PUT_NAME: u32 = 7;
const VALUE_NAME: u32 = 8;

type More = FxHashMap<u32, u32>;

fn name(index: u32, what: u32) -> u32 {
    index << NAME_BITS | what
}

/// A field of the counts in a row.
#[derive(Clone, Copy)]
struct Field {
    name: u32,
    shift: u32,
    bits: u32,
}

const READS: Field = Field::new(0, 0, 8);
const WRITES: Field = Field::new(1, 8, 8);
const WARMUP_READS: Field = Field::new(2, 16, 4);
const WARMUP_WRITES: Field = Field::new(3, 20, 4);
const RUN_READS: Field = Field::new(4, 24, 3);
const RUN_WRITES: Field = Field::new(5, 27, 3);
const DELETED: u32 = 1 << 30;
/// Whether a count has overflowed.
const MORE: u32 = 1 << 31;

impl Field {
    const fn new(name: u32, shift: u32, bits: u32) -> Field {
        Field { name, shift, bits }
    }

    const fn mask(self) -> u32 {
        ((1 << self.bits) - 1) << self.shift
    }

    /// The counts after incrementing this field for the key with this index.
    #[inline]
    fn add_one(self, counts: u32, more: &mut More, index: u32) -> u32 {
        if counts & self.mask() != self.mask() {
            return counts + (1 << self.shift);
        }
        carry(more, name(index, self.name));
        counts & !self.mask() | MORE
    }

    fn of(self, counts: u32, more: &More, index: u32) -> u32 {
        let here = (counts & self.mask()) >> self.shift;
        if counts & MORE == 0 {
            return here;
        }
        here + (more_of(more, name(index, self.name)) << self.bits)
    }
}

#[cold]
fn carry(more: &mut More, name: u32) {
    *more.entry(name).or_default() += 1;
}

fn more_of(more: &More, name: u32) -> u32 {
    more.get(&name).copied().unwrap_or(0)
}

#[inline]
fn head_counts(head: &Head) -> u32 {
    u32::from_le_bytes([head[5], head[6], head[7], head[8]])
}

#[inline]
fn set_head_counts(head: &mut Head, counts: u32) {
    [head[5], head[6], head[7], head[8]] = counts.to_le_bytes();
}

#[inline]
fn head_first_put(head: &Head) -> u32 {
    u32::from_le_bytes([head[0], head[1], head[2], 0])
}

#[inline]
fn set_head_first_put(head: &mut Head, first_put: u32) {
    [head[0], head[1], head[2], _] = first_put.to_le_bytes();
}

#[inline]
fn head_value(head: &Head) -> u32 {
    u32::from(u16::from_le_bytes([head[3], head[4]]))
}

/// The code for a value length, which may need a map entry.
#[inline]
fn set_head_value(head: &mut Head, value_len: u32, more: &mut More, index: u32) {
    let short = value_len.min(LONG_VALUE);
    [head[3], head[4], _, _] = short.to_le_bytes();
    if short == LONG_VALUE {
        more.insert(name(index, VALUE_NAME), value_len);
    }
}

/// Compares two keys, without a call for short ones.
#[inline]
fn same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    match (a.first_chunk::<8>(), b.first_chunk::<8>()) {
        (Some(x), Some(y)) if a.len() <= 16 => x == y && a.last_chunk::<8>() == b.last_chunk::<8>(),
        _ => a == b,
    }
}

/// Keys, numbered in order of arrival.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    segments: Vec<Segment>,
    len: usize,
    /// When the first key of each [`BLOCK_KEYS`] came, in ticks.
    bases: Vec<u32>,
    /// Values that do not fit into rows.
    more: More,
    /// Bytes of all segments but the last.
    full_bytes: usize,
    has_scans: bool,
}

impl Keys {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Bytes allocated in total.
    pub(crate) fn bytes(&self) -> usize {
        let last = self.segments.last().map_or(0, Segment::bytes);
        let list = self.segments.capacity() * size_of::<Segment>();
        self.full_bytes + last + list + self.bases.capacity() * size_of::<u32>() + self.more_bytes()
    }

    /// The map has a power of two of buckets, a seventh more than its capacity or a few.
    fn more_bytes(&self) -> usize {
        match self.more.capacity() {
            0 => 0,
            capacity => (capacity * 8 / 7).next_power_of_two() * (size_of::<(u32, u32)>() + 1) + 16,
        }
    }

    #[inline]
    fn at(&self, index: u32) -> (&Segment, usize) {
        let index = index as usize;
        (&self.segments[index / SEGMENT_KEYS], index % SEGMENT_KEYS)
    }

    /// Prefetches the cache lines of a key's row: the key may end on another one.
    #[inline]
    pub(super) fn touch(&self, index: u32) {
        let (segment, at) = self.at(index);
        std::hint::black_box(segment.ends(at));
    }

    /// The key itself.
    #[inline]
    pub(crate) fn key(&self, index: u32) -> &[u8] {
        let (segment, at) = self.at(index);
        segment.key(at)
    }

    /// Length of the key. Needs no look at the row unless keys differ in length.
    #[inline]
    pub(crate) fn key_len(&self, index: u32) -> usize {
        let (segment, at) = self.at(index);
        segment.key_len(at)
    }

    /// Lengths of the key and of its last value.
    #[inline]
    pub(crate) fn lens(&self, index: u32) -> (usize, usize) {
        let (segment, at) = self.at(index);
        let value = match head_value(segment.head(at)) {
            LONG_VALUE => more_of(&self.more, name(index, VALUE_NAME)),
            short => short,
        };
        (segment.key_len(at), value as usize)
    }

    /// As [`KeyStats::first_put`].
    #[inline]
    pub(crate) fn first_put(&self, index: u32) -> u32 {
        let (segment, at) = self.at(index);
        match head_first_put(segment.head(at)) {
            NO_PUT => NEVER,
            FAR_PUT => more_of(&self.more, name(index, FIRST_PUT_NAME)),
            since => self.bases[index as usize / BLOCK_KEYS] + since,
        }
    }

    /// As [`KeyStats::writes`].
    pub(crate) fn writes(&self, index: u32) -> u32 {
        let (segment, at) = self.at(index);
        WRITES.of(head_counts(segment.head(at)), &self.more, index)
    }

    /// Whether any measured scan started.
    pub(crate) fn has_scans(&self) -> bool {
        self.has_scans
    }

    /// Measured scans that started at this key.
    pub(crate) fn scans(&self, index: u32) -> u32 {
        if !self.has_scans {
            return 0;
        }
        let (segment, at) = self.at(index);
        segment.scans(at) + (more_of(&self.more, name(index, SCANS_NAME)) << u8::BITS)
    }

    /// All statistics of a key except scans.
    #[inline]
    pub(crate) fn get(&self, index: u32) -> KeyStats {
        let (segment, at) = self.at(index);
        let counts = head_counts(segment.head(at));
        let count = |field: Field| field.of(counts, &self.more, index);
        let (key_len, value_len) = self.lens(index);
        KeyStats {
            key_len: key_len as u16,
            deleted: counts & DELETED != 0,
            value_len: value_len as u32,
            first_put: self.first_put(index),
            reads: count(READS),
            writes: count(WRITES),
            warmup_reads: count(WARMUP_READS),
            warmup_writes: count(WARMUP_WRITES),
            run_reads: count(RUN_READS),
            run_writes: count(RUN_WRITES),
        }
    }

    /// All statistics of all keys except scans, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = KeyStats> {
        (0..self.len as u32).map(|index| self.get(index))
    }

    /// All keys, in their order.
    pub(super) fn each_key(&self, mut of: impl FnMut(u32, &[u8])) {
        let mut index = 0;
        for segment in &self.segments {
            for at in 0..segment.len() {
                of(index, segment.key(at));
                index += 1;
            }
        }
    }

    /// Whether the key with this index equals this one.
    #[inline]
    pub(super) fn is(&self, index: u32, key: &[u8]) -> bool {
        same(self.key(index), key)
    }

    /// Adds a key that came at this time, without accesses, and returns its index.
    pub(super) fn push(&mut self, key: &[u8], value_len: u32, time: u32) -> u32 {
        let index = self.len as u32;
        let mut head = [0; HEAD];
        set_head_first_put(&mut head, NO_PUT);
        set_head_value(&mut head, value_len, &mut self.more, index);
        self.push_row(head, key, time);
        index
    }

    fn push_row(&mut self, head: Head, key: &[u8], time: u32) {
        if self.len.is_multiple_of(SEGMENT_KEYS) {
            if let Some(last) = self.segments.last_mut() {
                last.close();
                self.full_bytes += last.bytes();
            }
            self.segments.push(Segment::new(key.len()));
        }
        if self.len.is_multiple_of(BLOCK_KEYS) {
            self.bases.push(time);
        }
        let spare = (self.len / 64).max(64);
        if let Some(last) = self.segments.last_mut() {
            last.push(head, key, spare);
        }
        self.len += 1;
    }

    /// Counts an access of a key.
    #[inline]
    pub(super) fn note(&mut self, index: u32, access: &Access) {
        let segment = &mut self.segments[index as usize / SEGMENT_KEYS];
        let head = segment.head_mut(index as usize % SEGMENT_KEYS);
        let more = &mut self.more;
        let mut counts = head_counts(head);
        match access.kind {
            OpKind::Get | OpKind::Scan => {
                if access.measured {
                    counts = READS.add_one(counts, more, index);
                    if access.in_run {
                        counts = RUN_READS.add_one(counts, more, index);
                    }
                } else if access.kind == OpKind::Get {
                    counts = WARMUP_READS.add_one(counts, more, index);
                }
            }
            OpKind::Put | OpKind::Delete => {
                let is_put = access.kind == OpKind::Put;
                let is_first = is_put && head_first_put(head) == NO_PUT;
                if access.measured {
                    counts = WRITES.add_one(counts, more, index);
                    if access.in_run {
                        counts = RUN_WRITES.add_one(counts, more, index);
                    }
                } else if !is_first {
                    counts = WARMUP_WRITES.add_one(counts, more, index);
                }
                if is_put {
                    counts &= !DELETED;
                    set_head_value(head, access.value_len, more, index);
                } else {
                    counts |= DELETED;
                }
                if is_first {
                    let base = self.bases[index as usize / BLOCK_KEYS];
                    set_first_put(head, access.time, base, more, index);
                }
            }
        }
        set_head_counts(head, counts);
        if access.kind == OpKind::Scan && access.measured {
            self.note_scan(index);
        }
    }

    fn note_scan(&mut self, index: u32) {
        self.has_scans = true;
        let (number, at) = (index as usize / SEGMENT_KEYS, index as usize % SEGMENT_KEYS);
        let is_last = number + 1 == self.segments.len();
        let segment = &mut self.segments[number];
        let before = segment.bytes();
        let carried = segment.add_scan(at);
        if !is_last {
            self.full_bytes += segment.bytes() - before;
        }
        if carried {
            carry(&mut self.more, name(index, SCANS_NAME));
        }
    }

    /// Doubles the unit of time.
    pub(super) fn halve_times(&mut self) {
        let old = self.bases.clone();
        self.bases.iter_mut().for_each(|base| *base /= 2);
        for index in 0..self.len as u32 {
            let block = index as usize / BLOCK_KEYS;
            let segment = &mut self.segments[index as usize / SEGMENT_KEYS];
            let head = segment.head_mut(index as usize % SEGMENT_KEYS);
            let first_put = match head_first_put(head) {
                NO_PUT => continue,
                FAR_PUT => more_of(&self.more, name(index, FIRST_PUT_NAME)),
                since => old[block] + since,
            };
            set_first_put(
                head,
                first_put / 2,
                self.bases[block],
                &mut self.more,
                index,
            );
        }
    }

    /// Drops the keys that are not kept, and moves the others up. Segments are freed one by one,
    /// because there is no memory for two copies.
    pub(super) fn retain(&mut self, mut is_kept: impl FnMut(&[u8]) -> bool) {
        let old = std::mem::take(self);
        self.has_scans = old.has_scans;
        let mut index = 0;
        for segment in old.segments {
            for at in 0..segment.len() {
                let key = segment.key(at);
                if is_kept(key) {
                    let base = old.bases[index as usize / BLOCK_KEYS];
                    self.take_over(&segment, at, (&old.more, index, base));
                }
                index += 1;
            }
        }
    }

    pub(super) fn save(&self, out: &mut Encoder<'_>) -> io::Result<()> {
        out.number(self.has_scans.into())?;
        out.words(&self.bases)?;
        // In the order of their names, because that of a map may change.
        let mut more: Vec<_> = self.more.iter().map(|(name, n)| (*name, *n)).collect();
        more.sort_unstable();
        out.number(more.len() as u64)?;
        for (name, n) in more {
            out.number(u64::from(name) << 32 | u64::from(n))?;
        }
        out.number(self.segments.len() as u64)?;
        self.segments.iter().try_for_each(|s| s.save(out))
    }

    pub(super) fn load(from: &mut Decoder<'_>) -> io::Result<Keys> {
        let mut keys = Keys {
            has_scans: from.flag()?,
            bases: from.words()?,
            ..Keys::default()
        };
        for _ in 0..from.number()? {
            let entry = from.number()?;
            keys.more.insert((entry >> 32) as u32, entry as u32);
        }
        for _ in 0..from.number()? {
            if let Some(last) = keys.segments.last() {
                keys.full_bytes += last.bytes();
            }
            // All segments but the last are full.
            if !keys.len.is_multiple_of(SEGMENT_KEYS) {
                return Err(malformed("a segment of keys is not full"));
            }
            let segment = Segment::load(from)?;
            keys.len += segment.len();
            keys.segments.push(segment);
        }
        match keys.len.div_ceil(BLOCK_KEYS) == keys.bases.len() {
            true => Ok(keys),
            false => Err(malformed("times of keys are missing")),
        }
    }

    /// Adds a key of another set, with that set's map, index and times.
    fn take_over(&mut self, segment: &Segment, at: usize, (more, from, base): (&More, u32, u32)) {
        let index = self.len as u32;
        let mut head = [0; HEAD];
        head.copy_from_slice(segment.head(at));
        let counts = head_counts(&head);
        let mut names = Vec::new();
        if counts & MORE != 0 {
            names.extend(READS.name..=RUN_WRITES.name);
        }
        if head_value(&head) == LONG_VALUE {
            names.push(VALUE_NAME);
        }
        if self.has_scans {
            names.push(SCANS_NAME);
        }
        for what in names {
            if let Some(n) = more.get(&name(from, what)) {
                self.more.insert(name(index, what), *n);
            }
        }
        self.push_row(head, segment.key(at), base);
        let scans = segment.scans(at);
        if scans > 0 {
            self.note_scan(index);
            if let Some(segment) = self.segments.last_mut() {
                segment.set_scans(index as usize % SEGMENT_KEYS, scans as u8);
            }
        }
        let first_put = match head_first_put(&head) {
            NO_PUT => return,
            FAR_PUT => more_of(more, name(from, FIRST_PUT_NAME)),
            since => base + since,
        };
        let base = self.bases[index as usize / BLOCK_KEYS];
        if let Some(segment) = self.segments.last_mut() {
            let head = segment.head_mut(index as usize % SEGMENT_KEYS);
            set_first_put(head, first_put, base, &mut self.more, index);
        }
    }
}

/// Records when a key was first put; `base` is the time of its block's first key.
fn set_first_put(head: &mut Head, first_put: u32, base: u32, more: &mut More, index: u32) {
    // Keys come before they are put, and blocks are in order.
    let since = first_put.saturating_sub(base);
    if since < FAR_PUT {
        set_head_first_put(head, since);
    } else {
        set_head_first_put(head, FAR_PUT);
        more.insert(name(index, FIRST_PUT_NAME), first_put);
    }
}
