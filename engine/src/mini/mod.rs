//! Mini-pages: a few records of one leaf, in memory, sorted (Bf-Tree §3.1, §3.2, §5.5).
//!
//! ```text
//!         0     8                                                     20                                 len
//!   +-----+-----+-------+-------+---------+-----------+--------+------+--------+-------+------+------------+
//!   |marks| lsn | count | start | garbage | leaf free | growth | whole| meta 0 | ..    | gap  | <- records |
//!   |     |     |       |       |         |           |        | skip |        |       |      |            |
//!   +-----+-----+-------+-------+---------+-----------+--------+------+--------+-------+------+------------+
//!    4 B   8 B                  12-byte node header                   8-byte KV metas, in key order
//!   meta:  | offset u16 | kind 2 bits, key length 14 bits | value length u16 | two key bytes u16 |
//!   record:| key | value |
//! ```
//!
//! *Whole*: a mirror of its leaf (§3.1 "range gaps", §5.3): all records that the leaf has are here, too, so that a scan need not look at the
//! leaf, and what is not here does not exist. *Skip*: so many first bytes are the same in all keys; the two look-ahead bytes are those behind them, for
//! the keys of one leaf have much in common.
//!
//! The marks are the ring's, for readers set them: a reference bit a record, see [`Marks`]. With 16-byte keys and values the smallest block, 64
//! bytes, holds one record. Integers are in the machine's own order: mini-pages
//! never leave memory. The two look-ahead bytes order records like their keys where they differ and say nothing where they are equal
//! (`test`, `teste`: BUGS S1), as they are zero-padded.
//!
//! The four kinds of Table 1:
//!
//! | kind | dirty | exists |
//! |---|---|---|
//! | [`Kind::Insert`] | yes | yes |
//! | [`Kind::Cache`] | no | yes |
//! | [`Kind::Tombstone`] | yes | no |
//! | [`Kind::Phantom`] | no | no |
//!
//! # Redo needs no history, here neither
//! Redo repeats logged changes one by one on an image of the leaf, so every change has to fit the leaf at the time at which it is
//! logged, though the leaf is not looked at. Therefore a mini-page knows how many bytes its leaf has free, and an upper bound of what its dirty
//! records will take of them ([`MiniRef::room`]): what does not fit in between is not admitted, and the tree merges, or splits, first. The paper
//! leaves the split to the merge (§5.5), which page-wise redo cannot repeat.

use std::cmp::Ordering;

use crate::mutation;
use crate::node::{PageRef, common_prefix};
use crate::types::Lsn;

#[cfg(test)]
mod tests;

const LSN: usize = 0;
const COUNT: usize = 8;
const START: usize = 10;
const GARBAGE: usize = 12;
const LEAF_FREE: usize = 14;
const GROWTH: usize = 16;
const SKIP: usize = 18;
const METAS: usize = 20;
/// Beside the length in `SKIP`.
const WHOLE: usize = 1 << 15;
pub(crate) const META: usize = 8;

/// What a record takes of its leaf beside key and value: the slot.
const LEAF_SLOT: usize = 10;

/// Longest key: its length shares 16 bits with the kind.
pub(crate) const MAX_KEY: usize = (1 << 14) - 1;

/// Table 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Written here, not yet in the leaf.
    Insert,
    /// As it is in the leaf.
    Cache,
    /// Deleted here, perhaps not yet in the leaf.
    Tombstone,
    /// Not in the leaf.
    Phantom,
}

impl Kind {
    fn from_bits(bits: u16) -> Kind {
        match bits & 3 {
            0 => Kind::Insert,
            1 => Kind::Cache,
            2 => Kind::Tombstone,
            _ => Kind::Phantom,
        }
    }

    fn bits(self) -> u16 {
        match self {
            Kind::Insert => 0,
            Kind::Cache => 1,
            Kind::Tombstone => 2,
            Kind::Phantom => 3,
        }
    }

    /// Whether the leaf has to be told.
    pub(crate) fn is_dirty(self) -> bool {
        matches!(self, Kind::Insert | Kind::Tombstone)
    }

    /// Whether the key is there.
    pub(crate) fn exists(self) -> bool {
        matches!(self, Kind::Insert | Kind::Cache)
    }

    /// What it is once the leaf has been told.
    fn merged(self) -> Kind {
        if self.exists() {
            Kind::Cache
        } else {
            Kind::Phantom
        }
    }
}

/// A record as it lies in a mini-page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    pub(crate) kind: Kind,
    pub(crate) key: &'a [u8],
    /// Empty if it does not exist.
    pub(crate) value: &'a [u8],
}

/// Payload bytes of a mini-page for records of so many bytes of keys and values together.
pub(crate) fn bytes_for(records: usize, bytes: usize) -> usize {
    METAS + records * META + bytes
}

/// Reference bits (§5.5, "Evicting cold records"): bit *i* for record *i*; from the 31st record on they share one, in a mirror every 31st does,
/// so that a few cold ones may be taken for hot in a mini-page of that many. One more says that a mirror was used as a whole, by a scan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks(pub(crate) u32);

impl Marks {
    /// How many bits records have.
    pub(crate) const COUNT: usize = 31;
    const LAST: usize = Self::COUNT - 1;

    /// Set by who used all of a mirror.
    pub(crate) const SCANNED: u32 = 1 << 31;

    /// The bit of a record, in a mirror or not.
    #[inline]
    pub(crate) fn bit(index: usize, whole: bool) -> u32 {
        if whole {
            1 << (index % (Self::LAST + 1))
        } else {
            1 << index.min(Self::LAST)
        }
    }

    /// Whether a record was used.
    pub(crate) fn is_hot(self, index: usize, whole: bool) -> bool {
        self.0 & Self::bit(index, whole) != 0
    }

    /// Whether a scan has used the mirror.
    pub(crate) fn is_scanned(self) -> bool {
        self.0 & Self::SCANNED != 0
    }

    /// A record was put in before the one at `index`, not of a mirror, and counts as used.
    pub(crate) fn insert(self, index: usize) -> Marks {
        let bit = Self::bit(index, false);
        let below = bit - 1;
        // The last bit is that of several, which stay.
        let last = self.0 & (Self::bit(Self::LAST, false) | Self::SCANNED);
        let moved = (self.0 & !below) << 1 & !Self::SCANNED;
        Marks(self.0 & below | moved | last | bit)
    }
}

#[derive(Clone, Copy)]
struct Meta {
    offset: usize,
    kind: Kind,
    key_len: usize,
    value_len: usize,
    head: u16,
}

impl Meta {
    fn encode(self) -> [u8; META] {
        let mut bytes = [0; META];
        bytes[..2].copy_from_slice(&(self.offset as u16).to_ne_bytes());
        let kind = self.kind.bits() << 14 | self.key_len as u16;
        bytes[2..4].copy_from_slice(&kind.to_ne_bytes());
        bytes[4..6].copy_from_slice(&(self.value_len as u16).to_ne_bytes());
        bytes[6..].copy_from_slice(&self.head.to_ne_bytes());
        bytes
    }

    fn len(self) -> usize {
        self.key_len + self.value_len
    }
}

/// The look-ahead bytes of a key (§3.5).
fn head(key: &[u8]) -> u16 {
    match *key {
        [] => 0,
        [a] => u16::from_be_bytes([a, 0]),
        [a, b, ..] => u16::from_be_bytes([a, b]),
    }
}

/// A mini-page, to read.
#[derive(Clone, Copy)]
pub(crate) struct MiniRef<'a>(&'a [u8]);

impl<'a> MiniRef<'a> {
    pub(crate) fn new(block: &'a [u8]) -> Self {
        MiniRef(block)
    }

    #[inline]
    fn u16(self, at: usize) -> usize {
        usize::from(u16::from_ne_bytes([self.0[at], self.0[at + 1]]))
    }

    pub(crate) fn count(self) -> usize {
        self.u16(COUNT)
    }

    /// Whether it is a mirror: what is not here is not in the leaf either.
    #[inline]
    pub(crate) fn is_whole(self) -> bool {
        self.u16(SKIP) & WHOLE != 0
    }

    /// The mark of a record.
    #[inline]
    pub(crate) fn mark(self, index: usize) -> u32 {
        Marks::bit(index, self.is_whole())
    }

    /// How many first bytes all keys share, at least.
    #[inline]
    fn skip(self) -> usize {
        self.u16(SKIP) & !WHOLE
    }

    /// LSN of the newest change.
    pub(crate) fn lsn(self) -> Lsn {
        let bytes = &self.0[LSN..LSN + 8];
        Lsn(u64::from_ne_bytes(bytes.try_into().expect("eight bytes")))
    }

    /// Bytes that the leaf has free for records that are not dirty yet.
    pub(crate) fn room(self) -> usize {
        self.leaf_free().saturating_sub(self.u16(GROWTH))
    }

    /// Bytes that the leaf had free when it was last looked at.
    pub(crate) fn leaf_free(self) -> usize {
        self.u16(LEAF_FREE)
    }

    #[inline]
    fn meta(self, index: usize) -> Meta {
        let at = METAS + index * META;
        let bytes: [u8; META] = self.0[at..at + META].try_into().expect("one meta");
        let part = |i: usize| u16::from_ne_bytes([bytes[i], bytes[i + 1]]);
        let kind = part(2);
        Meta {
            offset: usize::from(part(0)),
            kind: Kind::from_bits(kind >> 14),
            key_len: usize::from(kind & 0x3fff),
            value_len: usize::from(part(4)),
            head: part(6),
        }
    }

    fn key_of(self, meta: Meta) -> &'a [u8] {
        &self.0[meta.offset..meta.offset + meta.key_len]
    }

    pub(crate) fn entry(self, index: usize) -> Entry<'a> {
        let meta = self.meta(index);
        let key_end = meta.offset + meta.key_len;
        Entry {
            kind: meta.kind,
            key: &self.0[meta.offset..key_end],
            value: &self.0[key_end..key_end + meta.value_len],
        }
    }

    pub(crate) fn entries(self) -> impl Iterator<Item = Entry<'a>> {
        (0..self.count()).map(move |index| self.entry(index))
    }

    /// The record of `key`, or the place where it would stand. O(log n) comparisons, of two bytes each while those differ.
    #[inline]
    pub(crate) fn search(self, key: &[u8]) -> Result<usize, usize> {
        let (mut low, mut high) = (0, self.count());
        if high == 0 {
            return Err(0);
        }
        let skip = self.skip();
        let shared = &self.key_of(self.meta(0))[..skip];
        match key[..skip.min(key.len())].cmp(shared) {
            Ordering::Less => return Err(0),
            Ordering::Greater => return Err(high),
            Ordering::Equal => {}
        }
        let key = &key[skip..];
        let wanted = head(key);
        while low < high {
            let middle = usize::midpoint(low, high);
            let meta = self.meta(middle);
            let order = meta
                .head
                .cmp(&wanted)
                .then_with(|| self.key_of(meta)[skip..].cmp(key));
            match order {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => return Ok(middle),
            }
        }
        Err(low)
    }

    pub(crate) fn find(self, key: &[u8]) -> Option<Entry<'a>> {
        self.search(key).ok().map(|index| self.entry(index))
    }

    pub(crate) fn is_dirty(self) -> bool {
        let count = if mutation::on("bf-first-record-speaks-for-all") {
            self.count().min(1)
        } else {
            self.count()
        };
        (0..count).any(|index| self.meta(index).kind.is_dirty())
    }

    /// How much of the leaf's room a change to `key` takes at most, less what a dirty record that it replaces was counted for.
    pub(crate) fn growth_of(self, kind: Kind, key: &[u8], value: &[u8]) -> isize {
        let after = growth(kind, key.len(), value.len());
        let before = self.find(key).map_or(0, |old| match old.kind {
            // The leaf has it, at this size.
            Kind::Cache if kind == Kind::Insert => LEAF_SLOT + old.key.len() + old.value.len(),
            Kind::Insert => growth(Kind::Insert, old.key.len(), old.value.len()),
            _ => 0,
        });
        after as isize - before as isize
    }

    /// Payload bytes that this mini-page needs, without holes, once `key` has a value of so many bytes.
    pub(crate) fn bytes_with(self, key: &[u8], value_len: usize) -> usize {
        let used = self.used();
        match self.search(key) {
            Ok(index) => used - self.meta(index).value_len + value_len,
            Err(_) => used + META + key.len() + value_len,
        }
    }

    /// Payload bytes that a mini-page of the records that `keep` is for needs.
    pub(crate) fn bytes_of(self, keep: impl Fn(usize) -> bool) -> usize {
        let kept = (0..self.count()).filter(|index| keep(*index));
        let record = |index| META + self.meta(index).len();
        METAS + kept.map(record).sum::<usize>()
    }

    pub(crate) fn is_dirty_at(self, index: usize) -> bool {
        self.meta(index).kind.is_dirty()
    }

    /// Payload bytes in use, without holes.
    pub(crate) fn used(self) -> usize {
        let heap = self.0.len() - self.u16(START);
        METAS + self.count() * META + heap - self.u16(GARBAGE)
    }
}

/// Bytes that a record of this kind takes of a leaf without its key.
pub(crate) fn growth(kind: Kind, key_len: usize, value_len: usize) -> usize {
    if kind == Kind::Insert {
        LEAF_SLOT + key_len + value_len
    } else {
        0
    }
}

/// A mini-page, to change.
pub(crate) struct MiniMut<'a>(&'a mut [u8]);

impl<'a> MiniMut<'a> {
    /// A mini-page that is there.
    pub(crate) fn new(block: &'a mut [u8]) -> Self {
        MiniMut(block)
    }

    /// An empty one, for a leaf with so many bytes free.
    pub(crate) fn init(block: &'a mut [u8], leaf_free: usize) -> Self {
        let len = block.len();
        block[..METAS].fill(0);
        let mut mini = MiniMut(block);
        mini.set(START, len);
        mini.set_leaf_free(leaf_free);
        mini
    }

    pub(crate) fn view(&self) -> MiniRef<'_> {
        MiniRef(self.0)
    }

    fn set(&mut self, at: usize, value: usize) {
        let value = u16::try_from(value).unwrap_or(u16::MAX);
        self.0[at..at + 2].copy_from_slice(&value.to_ne_bytes());
    }

    pub(crate) fn set_lsn(&mut self, lsn: Lsn) {
        self.0[LSN..LSN + 8].copy_from_slice(&lsn.0.to_ne_bytes());
    }

    /// The leaf was looked at, or written.
    pub(crate) fn set_leaf_free(&mut self, bytes: usize) {
        self.set(LEAF_FREE, bytes);
    }

    /// Whether a value of so many bytes for `key` fits without another block.
    pub(crate) fn fits(&self, key: &[u8], value_len: usize) -> bool {
        self.view().bytes_with(key, value_len) <= self.0.len()
    }

    /// Sets a record, which must fit ([`MiniMut::fits`]) and, if dirty, be admitted ([`MiniRef::room`]). `Ok` with its place if there was
    /// one of that key, else `Err`.
    pub(crate) fn put(&mut self, kind: Kind, key: &[u8], value: &[u8]) -> Result<usize, usize> {
        let growth = self.view().growth_of(kind, key, value);
        self.put_grown(kind, key, value, growth)
    }

    /// As [`MiniMut::put`], of a record of which the leaf is known to need `grown` bytes.
    pub(crate) fn put_grown(
        &mut self,
        kind: Kind,
        key: &[u8],
        value: &[u8],
        grown: isize,
    ) -> Result<usize, usize> {
        debug_assert!(self.fits(key, value.len()) && key.len() <= MAX_KEY);
        let at = self.view().search(key);
        if let Ok(index) = at {
            let mut meta = self.view().meta(index);
            if meta.kind == Kind::Phantom && mutation::on("bf-phantom-stays") {
                return at;
            }
            if meta.value_len == value.len() {
                let value_at = meta.offset + meta.key_len;
                self.0[value_at..value_at + value.len()].copy_from_slice(value);
                meta.kind = kind;
                self.set_meta(index, meta);
                self.grow(grown);
                return at;
            }
            self.remove(index);
        }
        self.insert(at.unwrap_or_else(|index| index), kind, key, value);
        self.grow(grown);
        at
    }

    /// Puts a record, for which there is room, before the one at `index`.
    fn insert(&mut self, index: usize, kind: Kind, key: &[u8], value: &[u8]) {
        let len = key.len() + value.len();
        if self.gap() < META + len {
            self.compact();
        }
        self.share(key);
        let start = self.view().u16(START) - len;
        self.0[start..start + key.len()].copy_from_slice(key);
        self.0[start + key.len()..start + len].copy_from_slice(value);
        let count = self.view().count();
        let (from, end) = (METAS + index * META, METAS + count * META);
        self.0.copy_within(from..end, from + META);
        self.set(START, start);
        self.set(COUNT, count + 1);
        let skip = self.view().skip();
        self.set_meta(
            index,
            Meta {
                offset: start,
                kind,
                key_len: key.len(),
                value_len: value.len(),
                head: head(&key[skip..]),
            },
        );
    }

    /// Keeps `skip` to what all keys share, with `key` among them. O(n) if that has become less.
    fn share(&mut self, key: &[u8]) {
        let (view, whole) = (self.view(), self.view().u16(SKIP) & WHOLE);
        if view.count() == 0 {
            return self.set(SKIP, key.len() | whole);
        }
        let skip = view.skip();
        let shared = common_prefix(&view.key_of(view.meta(0))[..skip], key);
        if shared == skip {
            return;
        }
        self.set(SKIP, shared | whole);
        for index in 0..self.view().count() {
            let mut meta = self.view().meta(index);
            meta.head = head(&self.view().key_of(meta)[shared..]);
            self.set_meta(index, meta);
        }
    }

    /// From now on it is, or is not, a mirror of its leaf.
    pub(crate) fn set_whole(&mut self, whole: bool) {
        let skip = self.view().skip();
        self.set(SKIP, skip | if whole { WHOLE } else { 0 });
    }

    /// Adds a record of the leaf, behind all that are there.
    pub(crate) fn push(&mut self, kind: Kind, key: &[u8], value: &[u8]) {
        self.insert(self.view().count(), kind, key, value);
    }

    /// Counts anew what the dirty records will take of their leaf, now that it is known which of them it has.
    pub(crate) fn recount(&mut self, leaf: &PageRef<'_>) {
        let growth_in = |entry: Entry<'_>| {
            let old = leaf.get(entry.key);
            let old = old.map_or(0, |old| growth(Kind::Insert, entry.key.len(), old.len()));
            growth(entry.kind, entry.key.len(), entry.value.len()).saturating_sub(old)
        };
        let dirty = self.view().entries().filter(|entry| entry.kind.is_dirty());
        let growth = dirty.map(growth_in).sum();
        self.set(GROWTH, growth);
        self.set_leaf_free(leaf.free_bytes());
    }

    fn grow(&mut self, by: isize) {
        let growth = self.view().u16(GROWTH) as isize + by;
        self.set(GROWTH, growth.max(0) as usize);
    }

    fn set_meta(&mut self, index: usize, meta: Meta) {
        let at = METAS + index * META;
        self.0[at..at + META].copy_from_slice(&meta.encode());
    }

    /// Bytes between metas and records.
    fn gap(&self) -> usize {
        self.view().u16(START) - METAS - self.view().count() * META
    }

    /// Takes the record's meta out; its bytes become garbage.
    fn remove(&mut self, index: usize) {
        let count = self.view().count();
        let garbage = self.view().u16(GARBAGE) + self.view().meta(index).len();
        let (from, end) = (METAS + (index + 1) * META, METAS + count * META);
        self.0.copy_within(from..end, from - META);
        self.set(COUNT, count - 1);
        self.set(GARBAGE, garbage);
    }

    /// Moves the records together. O(bytes), with a copy of the block.
    fn compact(&mut self) {
        let old = self.0.to_vec();
        let from = MiniRef(&old);
        let mut start = self.0.len();
        for index in 0..from.count() {
            let mut meta = from.meta(index);
            start -= meta.len();
            self.0[start..start + meta.len()]
                .copy_from_slice(&old[meta.offset..meta.offset + meta.len()]);
            meta.offset = start;
            self.set_meta(index, meta);
        }
        self.set(START, start);
        self.set(GARBAGE, 0);
    }

    /// Takes over what `old` has of the records that `keep` is for, all dirty ones among them: growing, shrinking and moving are read-copy-update
    /// (§4.2). The records keep their order.
    pub(crate) fn copy_from(&mut self, old: MiniRef<'_>, keep: impl Fn(usize) -> bool) {
        for (index, entry) in old.entries().enumerate() {
            if keep(index) {
                self.push(entry.kind, entry.key, entry.value);
            } else {
                debug_assert!(!entry.kind.is_dirty(), "a dirty record is lost");
            }
        }
        if self.view().count() == old.count() || mutation::on("bf-mirror-outlives-its-records") {
            self.set_whole(old.is_whole());
        }
        self.inherit(old);
    }

    /// Takes over what is known of the leaf's growth, and the newest change.
    pub(crate) fn inherit(&mut self, old: MiniRef<'_>) {
        // A record that replaced a cached one of the leaf was counted for less than it would be now.
        self.set(GROWTH, old.u16(GROWTH));
        if !mutation::on("bf-copy-forgets-lsn") {
            self.set_lsn(old.lsn());
        }
    }

    /// The leaf has all of it, and so many bytes free.
    pub(crate) fn merged(&mut self, leaf_free: usize) {
        for index in 0..self.view().count() {
            let mut meta = self.view().meta(index);
            meta.kind = meta.kind.merged();
            self.set_meta(index, meta);
        }
        self.set(GROWTH, 0);
        self.set_leaf_free(leaf_free);
    }
}
