//! `specs/mini_page/MiniRecords.tla`: the contents of a mini-page and a leaf page, and how the
//! mini-page is merged into the leaf page.

use std::hash::{Hash, Hasher};

use super::bug::Bug;
use super::room::{self, KEYS, Packed, Set, hash_page};

/// The value of a key: `ABSENT`, or the number of one of `Values`, counted from 1.
pub type Content = u8;
/// The value of a key that does not exist (`Absent`).
pub const ABSENT: Content = 0;
/// The result of a read that has not happened yet (`Pending`).
pub const PENDING: Content = room::PENDING;

/// No client. The writer of a page that nobody has locked.
pub(super) const NOBODY: u8 = 0xff;

/// The contents of a leaf page. Keys are numbered from 1, so key k is at index k - 1.
pub type Image = [Content; KEYS];

/// The kinds of record: those of Table 1, and "none".
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
#[repr(u8)]
pub enum Kind {
    /// No record.
    None,
    /// Dirty, and the key exists.
    Insert,
    /// Clean, and the key exists.
    Cache,
    /// Dirty, and the key does not exist.
    Tombstone,
    /// Clean, and the key does not exist.
    Phantom,
}

/// A record of a mini-page: kind in the low three bits, then the reference bit, then the value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, bitcode::Encode, bitcode::Decode)]
pub struct Record(Packed);

const HOT: Packed = 1 << 3;

impl Record {
    /// The absence of a record (`NoRecord`).
    pub const NONE: Self = Self(0);

    /// A record of this kind (`Record`).
    #[must_use]
    pub fn new(kind: Kind, value: Content, hot: bool) -> Self {
        Self(kind as Packed | if hot { HOT } else { 0 } | Packed::from(value) << 4)
    }

    /// The record that a put or delete leaves (`Written`).
    #[must_use]
    pub fn written(value: Content, hot: bool) -> Self {
        let kind = if value == ABSENT {
            Kind::Tombstone
        } else {
            Kind::Insert
        };
        Self::new(kind, value, hot)
    }

    /// The record that caches what a get found in the leaf (`Cached`).
    #[must_use]
    pub fn cached(value: Content, hot: bool) -> Self {
        let kind = if value == ABSENT {
            Kind::Phantom
        } else {
            Kind::Cache
        };
        Self::new(kind, value, hot)
    }

    /// The record's kind, as in Table 1.
    #[must_use]
    pub fn kind(self) -> Kind {
        match self.0 & 7 {
            0 => Kind::None,
            1 => Kind::Insert,
            2 => Kind::Cache,
            3 => Kind::Tombstone,
            _ => Kind::Phantom,
        }
    }

    /// Whether there is a record.
    #[must_use]
    pub fn is_some(self) -> bool {
        self.0 != 0
    }

    /// The reference bit.
    #[must_use]
    pub fn hot(self) -> bool {
        self.0 & HOT != 0
    }

    /// The value. For a tombstone, a phantom or no record it is `ABSENT`.
    #[must_use]
    pub fn value(self) -> Content {
        (self.0 >> 4) as Content
    }

    /// Whether the leaf lacks the record's change (`IsDirty`).
    #[must_use]
    pub fn is_dirty(self) -> bool {
        // Insert is 1, tombstone 3: the odd kinds.
        self.0 & 1 != 0
    }

    /// The record with its reference bit set, if there is one.
    #[must_use]
    pub fn touched(self) -> Self {
        if self.is_some() {
            Self(self.0 | HOT)
        } else {
            self
        }
    }

    /// The record with its reference bit cleared (`Cooled`).
    #[must_use]
    pub fn cooled(self) -> Self {
        Self(self.0 & !HOT)
    }

    /// The record after a merge (`Cleaned`).
    #[must_use]
    pub fn cleaned(self) -> Self {
        if self.is_dirty() {
            Self::cached(self.value(), self.hot())
        } else {
            self
        }
    }
}

/// The records of a mini-page.
pub type Records = [Record; KEYS];

/// A mini-page. If its size is 0, there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, bitcode::Encode, bitcode::Decode)]
pub struct Mini {
    /// The number of records that it has room for.
    pub size: u8,
    /// Whether a key without a record is known to be absent.
    pub mirror: bool,
    /// The record of each key.
    pub rec: Records,
}

impl Mini {
    /// The absence of a mini-page (`NoMini`).
    pub const NONE: Self = Self {
        size: 0,
        mirror: false,
        rec: [Record::NONE; KEYS],
    };

    /// The record of a key.
    #[must_use]
    pub fn record(&self, key: u8) -> Record {
        self.rec[usize::from(key) - 1]
    }

    /// Number of records (`Used`).
    #[must_use]
    pub fn used(&self) -> u8 {
        count(&self.rec)
    }

    /// Whether another record fits (`HasRoom`).
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.used() < self.size
    }

    /// Whether the mini-page alone answers a get of the key (`Hits`).
    #[must_use]
    pub fn hits(&self, key: u8) -> bool {
        self.mirror || self.record(key).is_some()
    }

    /// Sets the reference bits of the keys from `from` up to, not including, `to`.
    pub fn touch(&mut self, from: u8, to: u8) {
        for record in &mut self.rec[usize::from(from) - 1..usize::from(to) - 1] {
            *record = record.touched();
        }
    }

    fn cold_dirty(&self) -> bool {
        let mut records = self.rec.iter();
        records.any(|r| r.is_dirty() && !r.hot())
    }
}

fn count(rec: &Records) -> u8 {
    rec.iter().map(|r| u8::from(r.is_some())).sum()
}

/// A leaf page and its mini-page, with the fences and the lock that they share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, bitcode::Encode, bitcode::Decode)]
pub struct Page {
    /// The first key that may lie in this page. 0 for an unused page.
    pub low: u8,
    /// The first key beyond this page. 0 for an unused page.
    pub high: u8,
    /// The client that holds the lock for writing, or `NOBODY`.
    pub writer: u8,
    /// The clients that hold it for reading, one bit each.
    pub readers: Set,
    /// The contents on disk.
    pub leaf: Image,
    /// The contents in memory.
    pub mini: Mini,
}

impl Hash for Page {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let mini = (
            self.mini.size,
            self.mini.mirror,
            self.mini.rec.map(|record| record.0),
        );
        let head = (self.low, self.high, self.writer, self.readers);
        hash_page(head, &self.leaf, mini, hasher);
    }
}

impl Page {
    /// A page that is not used.
    pub const UNUSED: Self = Self {
        low: 0,
        high: 0,
        writer: NOBODY,
        readers: 0,
        leaf: [ABSENT; KEYS],
        mini: Mini::NONE,
    };

    /// Whether the page is unused (`Free`).
    #[must_use]
    pub fn is_free(&self) -> bool {
        self.writer == NOBODY && self.readers == 0
    }

    /// Whether the key is within the page's fences (`Covers`).
    #[must_use]
    pub fn covers(&self, key: u8) -> bool {
        self.low <= key && key < self.high
    }

    /// What the leaf holds.
    #[must_use]
    pub fn in_leaf(&self, key: u8) -> Content {
        self.leaf[usize::from(key) - 1]
    }

    /// The value of a key in the mini-page and the leaf together (`Says`).
    #[must_use]
    pub fn says(&self, key: u8) -> Content {
        if self.mini.hits(key) {
            self.mini.record(key).value()
        } else {
            self.in_leaf(key)
        }
    }

    /// The size of `Together`.
    #[must_use]
    pub fn count_together(&self) -> u8 {
        let keys = 1..=KEYS as u8;
        keys.map(|k| u8::from(self.says(k) != ABSENT)).sum()
    }

    /// The leaf after the mini-page's dirty records were merged into it (`Merged`).
    #[must_use]
    pub fn merged(&self, bug: Bug) -> Image {
        let mut image = self.leaf;
        for (content, record) in image.iter_mut().zip(self.mini.rec) {
            match record.kind() {
                Kind::Insert => *content = record.value(),
                Kind::Tombstone if bug != Bug::MergeDropsTombstone => *content = ABSENT,
                _ => {}
            }
        }
        image
    }

    /// Whether the merged records fit the leaf (`Fits`).
    #[must_use]
    pub fn fits(&self, capacity: u8, bug: Bug) -> bool {
        present(&self.merged(bug)) <= capacity
    }

    /// Merges the mini-page into the leaf and makes it a mirror (`MirrorOf`).
    pub fn become_mirror(&mut self, capacity: u8, bug: Bug) {
        self.leaf = self.merged(bug);
        let mut rec = [Record::NONE; KEYS];
        for ((new, old), content) in rec.iter_mut().zip(self.mini.rec).zip(self.leaf) {
            if content != ABSENT {
                *new = Record::cached(content, old.hot());
            }
        }
        self.mini = Mini {
            size: capacity,
            mirror: true,
            rec,
        };
    }

    /// Whether evicting the cold records requires a merge (`MustMerge`).
    #[must_use]
    pub fn must_merge(&self, bug: Bug) -> bool {
        bug != Bug::ColdDirtyDropped && self.mini.cold_dirty()
    }

    /// Evicts the cold records (`ImageAfterCooling`, `MiniAfterCooling`).
    pub fn cool(&mut self, sizes: &Sizes, bug: Bug) {
        let merge = self.must_merge(bug);
        if merge {
            let old = self.leaf;
            self.leaf = self.merged(bug);
            for (i, record) in self.mini.rec.iter().enumerate() {
                let forgotten = match record.kind() {
                    Kind::Insert => bug == Bug::HotInsertNotMerged,
                    Kind::Tombstone => bug == Bug::HotTombstoneNotMerged,
                    _ => false,
                };
                if forgotten && record.hot() {
                    self.leaf[i] = old[i];
                }
            }
        }
        let all = self.mini.rec;
        let keep = |r: Record| if merge { r.cleaned() } else { r }.cooled();
        let hot_only = all.map(|r| if r.hot() { keep(r) } else { Record::NONE });
        let hot = count(&hot_only);
        if !self.mini.mirror {
            self.mini = sizes.shrunk(hot_only);
        } else if bug == Bug::AsPublishedColdMirror {
            self.mini.rec = hot_only;
        } else if hot == count(&all) || hot > sizes.largest() {
            self.mini.rec = all.map(keep);
        } else {
            self.mini = sizes.shrunk(hot_only);
        }
    }
}

/// The number of keys in an image.
#[must_use]
pub fn present(image: &Image) -> u8 {
    image.iter().map(|c| u8::from(*c != ABSENT)).sum()
}

/// `Below` (`upper` false) or `NotBelow` (true).
#[must_use]
pub fn half<T: Copy>(all: &[T; KEYS], split: u8, upper: bool, none: T) -> [T; KEYS] {
    let mut half = [none; KEYS];
    let at = usize::from(split) - 1;
    if upper {
        half[at..].copy_from_slice(&all[at..]);
    } else {
        half[..at].copy_from_slice(&all[..at]);
    }
    half
}

/// The constant `Sizes`, in ascending order.
#[derive(Clone, Debug)]
pub struct Sizes(pub Vec<u8>);

impl Sizes {
    /// `NextSize`, if `CanGrow`.
    #[must_use]
    pub fn next(&self, mini: &Mini) -> Option<u8> {
        let mut larger = self.0.iter().filter(|n| !mini.mirror && **n > mini.size);
        larger.next().copied()
    }

    fn largest(&self) -> u8 {
        self.0.last().copied().unwrap_or(0)
    }

    /// `Shrunk`. Returns the largest size if none is large enough, but the protocol never asks for
    /// that.
    #[must_use]
    pub fn shrunk(&self, rec: Records) -> Mini {
        let used = count(&rec);
        if used == 0 {
            return Mini::NONE;
        }
        let mut fitting = self.0.iter().filter(|n| **n >= used);
        Mini {
            size: fitting.next().copied().unwrap_or(self.largest()),
            mirror: false,
            rec,
        }
    }
}
