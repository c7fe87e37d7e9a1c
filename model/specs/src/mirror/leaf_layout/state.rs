//! The variables of `LayoutState.tla`, and what follows from the log.
//!
//! Small numbers in small arrays, since a state is copied and hashed at every step. Unused entries
//! are default, so that equal states are equal bytes. Clients and keys are numbered from 0, in the
//! order of the keys; pages, values and LSNs from 1. Fences are keys themselves.

use std::ops::{Deref, DerefMut};

use super::super::wal_recovery::Versions;
use super::room::{CLIENTS, KEYS, LOG, N, PAGES, V, VERSIONS};
use super::sizes::Fences;
use crate::mirror::Phase as Ended;

/// A value: 0 is `Absent`.
pub(super) type Content = V;
pub(super) const ABSENT: Content = 0;
pub(super) const PENDING: Content = V::MAX;
/// What is left of a value that was cut.
pub(super) const CUT: Content = V::MAX - 1;

/// The records of a page: the value of each key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub(super) struct Map(pub(super) [Content; KEYS]);

impl Default for Map {
    fn default() -> Self {
        Map([ABSENT; KEYS])
    }
}

impl Deref for Map {
    type Target = [Content; KEYS];

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Map {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

/// The layout of a page, or that there is none.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    bitcode::Encode,
    bitcode::Decode,
    strum::IntoStaticStr,
)]
#[strum(serialize_all = "lowercase")]
pub enum Layout {
    /// The page has never been there.
    #[default]
    None,
    /// Redo could not go on with the page.
    Lost,
    /// Any records, as long as their bytes fit.
    General,
    /// The same in another way, in which records take more or less.
    Other,
    /// A place for each key from the lower fence on, for values of one length.
    Dense,
}

impl Layout {
    /// The general layouts that a page may have, all of them.
    pub(super) const GENERALS: [Layout; 2] = [Layout::General, Layout::Other];

    pub(super) fn is_general(self) -> bool {
        Layout::GENERALS.contains(&self)
    }
}

/// A leaf page. The default is `Gone`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct Leaf {
    pub(super) layout: Layout,
    pub(super) lower: N,
    pub(super) upper: N,
    /// The length of all values of a dense page.
    pub(super) len: N,
    pub(super) map: Map,
    pub(super) lsn: N,
}

impl Leaf {
    /// The page that redo could not go on with (`Lost`).
    pub(super) fn lost() -> Leaf {
        Leaf {
            layout: Layout::Lost,
            ..Leaf::default()
        }
    }

    pub(super) fn is_there(&self) -> bool {
        self.layout.is_general() || self.layout == Layout::Dense
    }

    pub(super) fn fences(&self) -> Fences {
        (self.lower, self.upper)
    }

    /// Whether the page covers a key (`Covers`).
    pub(super) fn covers(&self, key: N) -> bool {
        self.is_there() && self.lower <= key && key < self.upper
    }

    /// The page with another LSN (`Stamped`).
    pub(super) fn stamped(self, lsn: N) -> Leaf {
        Leaf { lsn, ..self }
    }
}

/// The number of records (`Cardinality(KeysIn(map))`).
pub(super) fn count(map: &Map) -> usize {
    map.iter().filter(|value| **value != ABSENT).count()
}

/// What a log record changes.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    bitcode::Encode,
    bitcode::Decode,
    strum::IntoStaticStr,
)]
#[strum(serialize_all = "lowercase")]
pub enum Is {
    /// A put or delete.
    #[default]
    Put,
    /// A conversion.
    Relayout,
    /// A split.
    Split,
    /// A merge.
    Merge,
}

/// A record of the log (`Entry`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct Record {
    pub(super) is: Is,
    pub(super) page: u8,
    /// The key of a put; where a split is made; the lower fence of the page that a merge ends. 0 if
    /// there is none.
    pub(super) key: N,
    pub(super) value: Content,
    pub(super) layout: Layout,
    /// The page that a split makes, or that a merge ends. 0 if there is none.
    pub(super) right: u8,
    pub(super) upper: N,
    pub(super) map: Map,
}

impl Record {
    /// Whether the record builds the page (`Builds`).
    pub(super) fn builds(&self, page: u8) -> bool {
        self.is == Is::Split && self.right == page
    }

    /// Whether the page is merged away (`Ends`).
    pub(super) fn ends(&self, page: u8) -> bool {
        self.is == Is::Merge && self.right == page
    }

    /// Whether the record changes the page (`Names`).
    pub(super) fn names(&self, page: u8) -> bool {
        self.page == page || self.builds(page) || self.ends(page)
    }
}

/// A client's outstanding call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub enum Call {
    /// No call is outstanding.
    Idle,
    /// A get.
    Get {
        /// The key, by its number.
        key: u8,
        /// What it has read.
        got: Content,
    },
    /// A put or delete.
    Write {
        /// The key, by its number.
        key: u8,
        /// The value to write.
        value: Content,
        /// The LSN of its record, once it has one.
        lsn: N,
    },
}

/// The phase of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub enum Phase {
    /// It serves clients, or recovers.
    Goes(Ended),
    /// Recovery found that a page of the index is lost.
    Damaged,
}

/// The store serves clients.
pub(super) const UP: Phase = Phase::Goes(Ended::Up);

/// All variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct State {
    pub(super) call: [Call; CLIENTS],
    pub(super) asked: N,
    pub(super) log: [Record; LOG],
    pub(super) log_len: N,
    pub(super) durable: N,
    pub(super) redo_start: N,
    pub(super) leaf: [Leaf; PAGES],
    pub(super) allows: bool,
    pub(super) leaf_dev: [Versions<Leaf, VERSIONS>; PAGES],
    pub(super) phase: Phase,
    pub(super) redone: N,
    pub(super) crashes: N,
}

impl State {
    /// `Init`, with a first page that covers the keys from `least` up to `top`.
    pub(super) fn initial(least: N, top: N, allows: bool) -> Self {
        let mut leaf = [Leaf::default(); PAGES];
        leaf[0] = Leaf {
            layout: Layout::General,
            lower: least,
            upper: top,
            ..Leaf::default()
        };
        Self {
            call: [Call::Idle; CLIENTS],
            asked: 0,
            log: [Record::default(); LOG],
            log_len: 0,
            durable: 0,
            redo_start: 0,
            leaf,
            allows,
            leaf_dev: leaf.map(Versions::durably),
            phase: UP,
            redone: 0,
            crashes: 0,
        }
    }

    pub(super) fn is_up(&self) -> bool {
        self.phase == UP
    }

    pub(super) fn recovers(&self) -> bool {
        !matches!(self.phase, UP | Phase::Damaged)
    }

    /// The log's first `n` records, with their LSNs.
    pub(super) fn first(&self, n: N) -> impl DoubleEndedIterator<Item = (N, &Record)> {
        let records = self.log[..n as usize].iter().enumerate();
        records.map(|(i, record)| (i as N + 1, record))
    }

    pub(super) fn page(&self, page: u8) -> &Leaf {
        &self.leaf[usize::from(page) - 1]
    }

    pub(super) fn page_mut(&mut self, page: u8) -> &mut Leaf {
        &mut self.leaf[usize::from(page) - 1]
    }

    /// What the device may be left with of a page.
    pub(super) fn images(&self, page: u8) -> &[Leaf] {
        self.leaf_dev[usize::from(page) - 1].all()
    }

    pub(super) fn device_flush(&mut self) {
        self.leaf_dev.iter_mut().for_each(Versions::flush);
    }

    pub(super) fn append(&mut self, record: Record) -> N {
        self.log[self.log_len as usize] = record;
        self.log_len += 1;
        self.log_len
    }

    /// `ValueAt`: a key's value after the first `n` records.
    pub(super) fn value_at(&self, key: N, n: N) -> Content {
        let mut puts = self.first(n).rev().filter(|(_, r)| r.is == Is::Put);
        let last = puts.find(|(_, record)| record.key == key);
        last.map_or(ABSENT, |(_, record)| record.value)
    }

    /// `LayoutAt`: a page's layout after the first `n` records.
    pub(super) fn layout_at(&self, page: u8, n: N) -> Layout {
        let mut records = self.first(n).rev().map(|(_, record)| record);
        let last = records
            .find(|r| r.builds(page) || r.ends(page) || r.is == Is::Relayout && r.page == page);
        match last {
            Some(record) => record.layout,
            None if page == 1 => Layout::General,
            None => Layout::None,
        }
    }

    /// `Owner`: the page of a key after the first `n` records.
    pub(super) fn owner(&self, key: N, n: N) -> u8 {
        self.first(n).fold(1, |page, (_, record)| {
            let moves = record.is == Is::Split && record.page == page && key >= record.key;
            match moves {
                true => record.right,
                false if record.ends(page) => record.page,
                false => page,
            }
        })
    }

    /// `HasEnded`: a crash cannot undo that the page was merged away.
    pub(super) fn has_ended(&self, page: u8) -> bool {
        self.first(self.durable)
            .any(|(_, record)| record.ends(page))
    }

    /// `IsLive`: the page is in the index.
    pub(super) fn is_live(&self, page: u8) -> bool {
        let leaf = self.page(page);
        leaf.is_there() && self.owner(leaf.lower, self.log_len) == page
    }

    /// `Fresh`: the page that the next split makes.
    pub(super) fn fresh(&self) -> u8 {
        let splits = self.first(self.log_len).filter(|(_, r)| r.is == Is::Split);
        splits.count() as u8 + 2
    }
}
