//! Mini-pages: some records of one leaf, sorted, in memory (Bf-Tree §3.1, §3.2, §5.5).
//!
//! ```text
//!        0     8                                                             20             len
//!  +-----+-----+-------+--------+-----------+--------+------+------+--------+-+-----+------------+
//!  |marks| lsn | count | shared | leaf room | beside | heap | used | slot 0 |.| gap | <- records |
//!  +-----+-----+-------+--------+-----------+--------+------+------+--------+-+-----+------------+
//!   4 B   8 B    12-byte node header                                8-byte KV metadata, sorted
//!  slot:  | offset u16 | kind 2 bits, key length 14 bits | value length u16 | two key bytes u16 |
//!  record:| key | value |
//! ```
//!
//! The layout and its code are those of compact leaves (§3.2): `crate::node::leaves::compact`
//! defines the bytes, `crate::node::body` searches them and `crate::node::body_mut` changes them.
//! There are two differences. Keys are stored whole, because a mini-page has no fences to take a
//! prefix from. The look-ahead bytes are those behind the first bytes that all keys *share*,
//! because the keys of one leaf have much in common.
//!
//! One bit beside the length of the shared bytes marks the mini-page as *whole*: a mirror of its
//! leaf (§3.1 "range gaps", §5.3). A mirror has all records of the leaf, so a scan need not read
//! the leaf, and a key that is absent here does not exist.
//!
//! The marks belong to the ring, because readers set them: one reference bit for each record, see
//! `Marks`. With 16-byte keys and values, the smallest block, 64 bytes, holds one record. The two
//! look-ahead bytes order records like their keys where they differ. Since they are zero-padded,
//! equal ones decide nothing (`test`, `teste`: BUGS S1).
//!
//! The four kinds of records (Table 1):
//!
//! | kind | dirty | exists |
//! |---|---|---|
//! | [`Kind::Insert`] | yes | yes |
//! | [`Kind::Cache`] | no | yes |
//! | [`Kind::Tombstone`] | yes | no |
//! | [`Kind::Phantom`] | no | no |
//!
//! # Redo needs no history here, either
//! Redo repeats logged changes one by one on an image of the leaf. So every change must fit the
//! leaf when it is logged, although the leaf is not read then. A mini-page therefore stores a lower
//! bound of the bytes that its leaf will have free once all dirty records are merged
//! (`MiniRef::leaf`). A record that does not fit is not admitted; the tree first merges or splits.
//! The paper leaves the split to the merge (§5.5), which page-wise redo cannot repeat.
//!
//! A record counts with the exact bytes that it takes in its leaf, whatever the leaf's layout: key,
//! value and the bytes *beside* them, which are the slot minus the prefix that the leaf leaves out.
//! An upper bound would not do: a deleted record gives back what it was counted for, and a record
//! that replaced one of the leaf's own was not counted at all. Prefix and layout of a leaf change
//! when it is split, merged or converted; then its mini-page is dropped, or is clean and gets the
//! new numbers.
//!
//! In a dense leaf, the record also needs a *place*. The mini-page knows only the places of records
//! that it holds; for other records, the leaf must be read.

pub mod events;

use crate::mutation;
use crate::node::body::Body;
use crate::node::body_mut::BodyMut;
use crate::node::format::Format;
use crate::node::leaves::compact::{self, Compact, field};
use crate::node::{PageRef, Untracked, common_prefix};
use crate::types::Lsn;

#[cfg(test)]
mod tests;

const LSN: usize = 0;
/// Bytes before the node header.
const NODE: usize = 8;
const SHARED: usize = NODE + field::PREFIX_LEN;
const ROOM: usize = NODE + field::LOWER_LEN;
const BESIDE: usize = NODE + field::UPPER_LEN;
/// A flag beside the length in `SHARED`.
const WHOLE: u16 = compact::WHOLE;
/// Bytes that a record takes beside key and value.
pub(crate) const META: usize = Layout::SLOT_BYTES;

/// The layout of compact leaves, behind an LSN and without fences.
type Layout = Compact<NODE, false>;

/// The longest key.
pub(crate) const MAX_KEY: usize = compact::MAX_KEY_BYTES;

/// The kind of a record (Table 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Written here, not yet in the leaf.
    Insert,
    /// The same as in the leaf.
    Cache,
    /// Deleted here, perhaps not yet in the leaf.
    Tombstone,
    /// Known to be absent from the leaf.
    Phantom,
}

impl Kind {
    fn from_bits(bits: u8) -> Kind {
        match bits & 3 {
            0 => Kind::Insert,
            1 => Kind::Cache,
            2 => Kind::Tombstone,
            _ => Kind::Phantom,
        }
    }

    fn bits(self) -> u8 {
        match self {
            Kind::Insert => 0,
            Kind::Cache => 1,
            Kind::Tombstone => 2,
            Kind::Phantom => 3,
        }
    }

    /// Returns whether the leaf must be changed.
    pub(crate) fn is_dirty(self) -> bool {
        matches!(self, Kind::Insert | Kind::Tombstone)
    }

    /// Returns whether the key exists.
    pub(crate) fn exists(self) -> bool {
        matches!(self, Kind::Insert | Kind::Cache)
    }

    /// The kind after a merge into the leaf.
    fn merged(self) -> Kind {
        if self.exists() {
            Kind::Cache
        } else {
            Kind::Phantom
        }
    }
}

/// A record stored in a mini-page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    pub(crate) kind: Kind,
    pub(crate) key: &'a [u8],
    /// Empty if the key does not exist.
    pub(crate) value: &'a [u8],
}

/// What a mini-page knows of its leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Leaf {
    /// Free bytes of the leaf.
    pub(crate) free: usize,
    /// Bytes that a record takes in the leaf beside key and value: [`PageRef::bytes_beside`]; 15
    /// bits.
    beside: i16,
    /// Whether a record also needs a place there: [`PageRef::has_place`].
    pub(crate) has_places: bool,
}

/// The bit for `has_places`, above the 15 bits of `beside`.
const PLACES: u16 = 1 << 15;

impl Leaf {
    /// The value where there is no leaf.
    pub(crate) const NONE: Leaf = Leaf {
        free: 0,
        beside: 0,
        has_places: false,
    };

    pub(crate) fn of(page: &PageRef<'_>) -> Leaf {
        Leaf {
            free: page.room_bytes(),
            beside: page.bytes_beside(),
            has_places: page.layout().is_dense(),
        }
    }

    /// Encodes all fields but `free`.
    fn kind_bits(self) -> u16 {
        let places = if self.has_places { PLACES } else { 0 };
        self.beside as u16 & !PLACES | places
    }

    /// Decodes [`Leaf::kind_bits`] of a leaf with `free` bytes free.
    fn of_kind(bits: u16, free: usize) -> Leaf {
        Leaf {
            free,
            // The sign is the highest of the 15 bits.
            beside: (bits << 1) as i16 >> 1,
            has_places: bits & PLACES != 0,
        }
    }

    /// Bytes that a record of this kind adds to the leaf.
    pub(crate) fn growth(self, kind: Kind, key_len: usize, value_len: usize) -> isize {
        if kind == Kind::Insert {
            (key_len + value_len) as isize + isize::from(self.beside)
        } else {
            0
        }
    }

    /// Encodes the leaf in 33 bits, never as 0.
    pub(crate) fn to_bits(self) -> u64 {
        1 << 32 | u64::from(self.kind_bits()) << 16 | self.free as u64
    }

    /// Decodes [`Leaf::to_bits`]. Returns `None` for 0.
    pub(crate) fn from_bits(bits: u64) -> Option<Leaf> {
        (bits != 0).then(|| Leaf::of_kind((bits >> 16) as u16, usize::from(bits as u16)))
    }
}

/// Payload bytes of a mini-page for this many records with `bytes` of keys and values in total.
pub(crate) fn bytes_for(records: usize, bytes: usize) -> usize {
    Layout::slot_at(records) + bytes
}

/// Reference bits (§5.5, "Evicting cold records"): bit *i* for record *i*. There are 31: from the
/// 31st record on, records share the last bit, and in a mirror every 31st record shares one. So
/// with many records, a few cold ones may be taken for hot. One more bit records that a scan used a
/// mirror as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks(pub(crate) u32);

impl Marks {
    /// The number of bits for records.
    pub(crate) const COUNT: usize = 31;
    const LAST: usize = Self::COUNT - 1;

    /// Set when all of a mirror was used.
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

    /// Returns whether a record was used.
    pub(crate) fn is_hot(self, index: usize, whole: bool) -> bool {
        self.0 & Self::bit(index, whole) != 0
    }

    /// Returns whether a scan used the mirror.
    pub(crate) fn is_scanned(self) -> bool {
        self.0 & Self::SCANNED != 0
    }

    /// Returns the marks after a record was inserted before `index`. The mini-page is not a mirror,
    /// and the new record counts as used.
    pub(crate) fn insert(self, index: usize) -> Marks {
        let bit = Self::bit(index, false);
        let below = bit - 1;
        // The last bit belongs to several records, which keep it.
        let last = self.0 & (Self::bit(Self::LAST, false) | Self::SCANNED);
        let moved = (self.0 & !below) << 1 & !Self::SCANNED;
        Marks(self.0 & below | moved | last | bit)
    }
}

/// A read-only view of a mini-page.
#[derive(Clone, Copy)]
pub(crate) struct MiniRef<'a>(Body<'a, Layout>);

impl<'a> MiniRef<'a> {
    pub(crate) fn new(block: &'a [u8]) -> Self {
        MiniRef(Body::new(block))
    }

    pub(crate) fn bytes(self) -> &'a [u8] {
        self.0.bytes()
    }

    #[inline]
    fn u16(self, at: usize) -> u16 {
        let bytes = self.0.bytes();
        u16::from_le_bytes([bytes[at], bytes[at + 1]])
    }

    pub(crate) fn count(self) -> usize {
        self.0.count()
    }

    /// Returns whether it is a mirror: a key that is absent here is absent from the leaf, too.
    #[inline]
    pub(crate) fn is_whole(self) -> bool {
        self.u16(SHARED) & WHOLE != 0
    }

    /// The mark of a record.
    #[inline]
    pub(crate) fn mark(self, index: usize) -> u32 {
        Marks::bit(index, self.is_whole())
    }

    /// A number of leading bytes that all keys share; they may share more.
    #[inline]
    fn shared(self) -> usize {
        usize::from(self.u16(SHARED) & !WHOLE)
    }

    /// LSN of the newest change.
    pub(crate) fn lsn(self) -> Lsn {
        let bytes = &self.0.bytes()[LSN..LSN + 8];
        Lsn(u64::from_le_bytes(bytes.try_into().expect("eight bytes")))
    }

    /// A lower bound of the leaf's room after all dirty records have been merged.
    pub(crate) fn leaf(self) -> Leaf {
        Leaf::of_kind(self.u16(BESIDE), self.u16(ROOM).into())
    }

    fn entry_of(self, raw: &'a <Layout as Format>::RawSlot) -> Entry<'a> {
        Entry {
            kind: Kind::from_bits(Layout::decode(raw).kind),
            key: self.0.suffix_of(raw),
            value: self.0.value_of(raw),
        }
    }

    pub(crate) fn entry(self, index: usize) -> Entry<'a> {
        self.entry_of(&self.0.slots()[index])
    }

    pub(crate) fn entries(self) -> impl Iterator<Item = Entry<'a>> {
        self.0.slots().iter().map(move |raw| self.entry_of(raw))
    }

    /// Finds the record of `key`, or the position at which to insert it. O(log n) comparisons, of
    /// two bytes each unless those are equal.
    #[inline]
    pub(crate) fn search(self, key: &[u8]) -> Result<usize, usize> {
        // All keys begin with the same bytes as the first one.
        let shared = self.0.suffix(0).get(..self.shared()).unwrap_or_default();
        match key.strip_prefix(shared) {
            Some(rest) => self.0.search(rest),
            None if key < shared => Err(0),
            None => Err(self.count()),
        }
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
        (0..count).any(|index| self.is_dirty_at(index))
    }

    /// An upper bound of the bytes that a change to `key` adds to the leaf, minus those already
    /// counted for a dirty record that it replaces.
    pub(crate) fn growth_of(self, kind: Kind, key: &[u8], value: &[u8]) -> isize {
        let leaf = self.leaf();
        let after = leaf.growth(kind, key.len(), value.len());
        let before = self.find(key).map_or(0, |old| match old.kind {
            // The leaf has this record, with this size.
            Kind::Cache if kind == Kind::Insert => {
                leaf.growth(Kind::Insert, old.key.len(), old.value.len())
            }
            Kind::Insert => leaf.growth(Kind::Insert, old.key.len(), old.value.len()),
            _ => 0,
        });
        after - before
    }

    /// Payload bytes that this mini-page needs, without holes, once `key` has a value of
    /// `value_len` bytes.
    pub(crate) fn bytes_with(self, key: &[u8], value_len: usize) -> usize {
        let used = self.0.used_bytes();
        match self.search(key) {
            Ok(index) => used - self.0.value(index).len() + value_len,
            Err(_) => used + Layout::SLOT_BYTES + key.len() + value_len,
        }
    }

    /// Payload bytes that a mini-page with only the records selected by `keep` needs.
    pub(crate) fn bytes_of(self, keep: impl Fn(usize) -> bool) -> usize {
        let slots = self.0.slots().iter().enumerate();
        let kept = slots.filter(|(index, _)| keep(*index));
        let record = |(_, raw)| Layout::SLOT_BYTES + Layout::decode(raw).payload_len();
        Layout::SLOTS_AT + kept.map(record).sum::<usize>()
    }

    /// Bytes that its dirty records take in it.
    pub(crate) fn bytes_of_changes(self) -> usize {
        self.bytes_of(|index| self.is_dirty_at(index)) - Layout::SLOTS_AT
    }

    pub(crate) fn is_dirty_at(self, index: usize) -> bool {
        let slot = self.0.slot(index);
        slot.is_some_and(|slot| Kind::from_bits(slot.kind).is_dirty())
    }
}

/// A mini-page to change.
pub(crate) struct MiniMut<'a>(&'a mut [u8]);

impl<'a> MiniMut<'a> {
    /// Wraps an existing mini-page.
    pub(crate) fn new(block: &'a mut [u8]) -> Self {
        MiniMut(block)
    }

    /// Creates an empty mini-page over this leaf.
    pub(crate) fn init(block: &'a mut [u8], leaf: Leaf) -> Self {
        block[..Layout::SLOTS_AT].fill(0);
        let mut mini = MiniMut(block);
        mini.body().clear();
        mini.set_leaf(leaf);
        mini
    }

    pub(crate) fn view(&self) -> MiniRef<'_> {
        MiniRef::new(self.0)
    }

    fn body(&mut self) -> BodyMut<'_, Layout, Untracked> {
        BodyMut::new(self.0, Untracked)
    }

    fn set(&mut self, at: usize, value: u16) {
        self.0[at..at + 2].copy_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn set_lsn(&mut self, lsn: Lsn) {
        self.0[LSN..LSN + 8].copy_from_slice(&lsn.0.to_le_bytes());
    }

    fn set_leaf(&mut self, leaf: Leaf) {
        self.set_room(leaf.free as isize);
        self.set(BESIDE, leaf.kind_bits());
    }

    fn set_room(&mut self, bytes: isize) {
        self.set(ROOM, bytes.clamp(0, 0xffff) as u16);
    }

    /// Returns whether a value of `value_len` bytes for `key` fits this block.
    pub(crate) fn fits(&self, key: &[u8], value_len: usize) -> bool {
        self.view().bytes_with(key, value_len) <= self.0.len()
    }

    /// Sets a record. It must fit ([`MiniMut::fits`]) and, if dirty, be admitted by the leaf's room
    /// ([`MiniRef::leaf`]). Returns its position: `Ok` if the key was present, else `Err`.
    pub(crate) fn put(&mut self, kind: Kind, key: &[u8], value: &[u8]) -> Result<usize, usize> {
        let growth = self.view().growth_of(kind, key, value);
        self.put_grown(kind, key, value, growth)
    }

    /// As [`MiniMut::put`], for a record for which the leaf is known to need `grown` bytes.
    pub(crate) fn put_grown(
        &mut self,
        kind: Kind,
        key: &[u8],
        value: &[u8],
        grown: isize,
    ) -> Result<usize, usize> {
        debug_assert!(self.fits(key, value.len()) && key.len() <= MAX_KEY);
        let at = self.view().search(key);
        match at {
            Ok(index) => {
                let old = self.view().entry(index).kind;
                if old == Kind::Phantom && mutation::on("bf-phantom-stays") {
                    return at;
                }
                let put = self.body().replace(index, kind.bits(), key, value);
                put.expect("it fits");
            }
            Err(index) => self.insert(index, kind, key, value),
        }
        self.set_room(self.view().leaf().free as isize - grown);
        at
    }

    /// Inserts a record, for which there is room, before the one at `index`.
    fn insert(&mut self, index: usize, kind: Kind, key: &[u8], value: &[u8]) {
        self.share(key);
        let put = self.body().insert(index, kind.bits(), key, value);
        put.expect("it fits");
    }

    /// Shortens the shared bytes to those that `key` has, too. O(n) if that changes them.
    fn share(&mut self, key: &[u8]) {
        let view = self.view();
        let whole = view.u16(SHARED) & WHOLE;
        if view.count() == 0 {
            return self.set(SHARED, key.len() as u16 | whole);
        }
        let before = view.shared();
        let first = view.0.suffix(0);
        let shared = common_prefix(&first[..before.min(first.len())], key);
        if shared == before {
            return;
        }
        self.set(SHARED, shared as u16 | whole);
        for index in 0..self.view().count() {
            let view = self.view().0;
            let mut slot = view.slot(index).expect("it is there");
            slot.head = Layout::head(&view.suffix(index)[shared..]);
            self.body().set_slot(index, &slot);
        }
    }

    /// Sets whether this is a mirror of its leaf.
    pub(crate) fn set_whole(&mut self, whole: bool) {
        let shared = self.view().u16(SHARED) & !WHOLE;
        self.set(SHARED, shared | if whole { WHOLE } else { 0 });
    }

    /// Appends a record of the leaf, whose key is greater than all present ones.
    pub(crate) fn push(&mut self, kind: Kind, key: &[u8], value: &[u8]) {
        self.insert(self.view().count(), kind, key, value);
    }

    /// Recomputes the bytes that the dirty records will take in their leaf, now that the leaf is at
    /// hand.
    pub(crate) fn recount(&mut self, page: &PageRef<'_>) {
        let leaf = Leaf::of(page);
        let growth_in = |entry: Entry<'_>| {
            let old = page.get(entry.key);
            let old = old.map_or(0, |old| {
                leaf.growth(Kind::Insert, entry.key.len(), old.len())
            });
            let new = leaf.growth(entry.kind, entry.key.len(), entry.value.len());
            (new - old).max(0)
        };
        let dirty = self.view().entries().filter(|entry| entry.kind.is_dirty());
        let growth: isize = dirty.map(growth_in).sum();
        self.set_leaf(leaf);
        self.set_room(leaf.free as isize - growth);
    }

    /// Copies the records of `old` that `keep` selects, which must include all dirty ones: growing,
    /// shrinking and moving are read-copy-update (§4.2). The records keep their order.
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

    /// Takes over the LSN of the newest change.
    pub(crate) fn inherit(&mut self, old: MiniRef<'_>) {
        if !mutation::on("bf-copy-forgets-lsn") {
            self.set_lsn(old.lsn());
        }
    }

    /// Notes that the leaf now has all records, and has this room.
    pub(crate) fn merged(&mut self, leaf: Leaf) {
        for index in 0..self.view().count() {
            let mut slot = self.view().0.slot(index).expect("it is there");
            slot.kind = Kind::from_bits(slot.kind).merged().bits();
            self.body().set_slot(index, &slot);
        }
        self.set_leaf(leaf);
    }
}
