//! The variables of `SnapshotState.tla`, and what follows from the log and the index.
//!
//! Small numbers in small arrays, since a state is copied and hashed at every step. Unused entries
//! are zero, so that equal states are equal bytes. Clients are numbered from 0; keys, slots and
//! LSNs from 1, and the entry of number n lies at n - 1.

use super::super::wal_recovery::Versions;
use super::room::{CLIENTS, KEYS, LOG, N, SLOTS, Set, VERSIONS};

/// 0 is `Absent`.
pub(super) const ABSENT: N = 0;
pub(super) const PENDING: N = N::MAX;
/// `NoSlot`.
pub(super) const NO_SLOT: u8 = 0;

/// The records of a leaf.
pub(super) type Map = [N; KEYS];
/// The page of each fence.
pub(super) type Index = [u8; KEYS];

/// The place of a key, slot or LSN in its array.
pub(super) fn at(n: impl Into<usize>) -> usize {
    n.into() - 1
}

/// The set of one slot, or of none.
pub(super) fn bit(slot: u8) -> Set {
    slot.checked_sub(1).map_or(0, |n| 1 << n)
}

/// Whether a set has a member, which is counted from 1.
pub(super) fn has(set: Set, member: u8) -> bool {
    set & bit(member) != 0
}

/// A leaf page. The default is `Gone`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct Leaf {
    pub(super) lower: u8,
    pub(super) upper: u8,
    pub(super) map: Map,
    pub(super) lsn: N,
}

impl Leaf {
    pub(super) fn is_gone(&self) -> bool {
        *self == Leaf::default()
    }

    pub(super) fn covers(&self, k: u8) -> bool {
        self.lower <= k && k < self.upper
    }

    pub(super) fn has_room_for(&self, k: u8, value: N, room: usize) -> bool {
        value == ABSENT || self.map[at(k)] != ABSENT || size(&self.map) < room
    }
}

/// `Size`: the number of records.
pub(super) fn size(map: &Map) -> usize {
    map.iter().filter(|value| **value != ABSENT).count()
}

/// `Joined`: the records of `left` below a key, and those of `right` from it on.
pub(super) fn joined(left: &Map, right: &Map, k: u8) -> Map {
    std::array::from_fn(|i| if i < at(k) { left[i] } else { right[i] })
}

/// `From`.
pub(super) fn from(map: &Map, k: u8) -> Map {
    joined(&[ABSENT; KEYS], map, k)
}

/// `Before`.
pub(super) fn before(map: &Map, k: u8) -> Map {
    joined(map, &[ABSENT; KEYS], k)
}

/// The kind of a record.
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
pub enum Kind {
    /// A put or delete.
    #[default]
    Put,
    /// A leaf gives a new page its upper part.
    Split,
    /// A leaf absorbs its right neighbour.
    Merge,
}

/// A record of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct Record {
    pub(super) is: Kind,
    pub(super) page: u8,
    pub(super) key: u8,
    /// Of a put.
    pub(super) value: N,
    /// The right page of a split or merge.
    pub(super) right: u8,
    pub(super) upper: u8,
    pub(super) map: Map,
}

impl Record {
    /// `Ends`: whether this is the end of a page.
    pub(super) fn ends(&self, p: u8) -> bool {
        self.is == Kind::Merge && self.right == p
    }

    /// `Built`: the right page of a split, of which this is the record.
    pub(super) fn built(&self, n: N) -> Leaf {
        Leaf {
            lower: self.key,
            upper: self.upper,
            map: self.map,
            lsn: n,
        }
    }

    /// `Names`: whether this changes a page.
    pub(super) fn names(&self, p: u8) -> bool {
        self.page == p || (self.is == Kind::Split && self.right == p)
    }
}

/// An entry of a chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct Entry {
    pub(super) fence: u8,
    pub(super) page: u8,
    pub(super) version: N,
}

/// The entries of a chunk or of a whole snapshot. Unused ones are default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct Entries([Entry; KEYS]);

impl Entries {
    pub(super) fn all(&self) -> impl Iterator<Item = Entry> + '_ {
        let all = self.0.iter().copied();
        all.take_while(|entry| entry.fence > 0)
    }

    pub(super) fn len(&self) -> usize {
        self.all().count()
    }

    pub(super) fn is_ascending(&self) -> bool {
        let fences = self.all().map(|entry| entry.fence);
        fences.is_sorted_by(|a, b| a < b)
    }

    /// Adds an entry. A chain that is damaged may have more than there are keys.
    pub(super) fn push(&mut self, entry: Entry) -> bool {
        let end = self.len();
        let place = self.0.get_mut(end);
        place.map(|place| *place = entry).is_some()
    }
}

/// What is in a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub enum InSlot {
    /// Never written, or trimmed.
    #[default]
    Zeros,
    /// The image of the page of that number.
    Image(Leaf),
    /// A chunk of a snapshot.
    Chunk {
        /// The number of its superblock.
        number: N,
        /// Its entries.
        entries: Entries,
        /// The slot of the next chunk.
        next: u8,
    },
}

/// A superblock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct Super {
    pub(super) number: N,
    pub(super) redo: N,
    pub(super) head: u8,
    /// The checksum of all entries: here they are themselves.
    pub(super) sum: Entries,
}

/// What reading a chain of chunks yields. The default is `NoChain`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Chain {
    pub(super) entries: Entries,
    pub(super) slots: Set,
    pub(super) ok: bool,
}

impl Chain {
    /// `IndexOf`.
    pub(super) fn index(&self) -> Index {
        let mut index = Index::default();
        for entry in self.entries.all() {
            let page = &mut index[at(entry.fence)];
            if *page == NO_SLOT {
                *page = entry.page;
            }
        }
        index
    }

    /// `VersionIn`: how new a page's image is at least.
    pub(super) fn version(&self, p: u8) -> N {
        let of = self.entries.all().filter(|entry| entry.page == p);
        of.map(|entry| entry.version).max().unwrap_or(0)
    }
}

/// A client's outstanding call. `page` is where a descent has led.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub enum Call {
    /// None.
    #[default]
    Idle,
    /// A get.
    Get {
        /// The key.
        key: u8,
        /// What was read.
        got: N,
        /// The page.
        page: u8,
        /// The log's end at the call.
        from: N,
    },
    /// A put or delete.
    Write {
        /// The key.
        key: u8,
        /// The value to write.
        value: N,
        /// The page.
        page: u8,
        /// The LSN of its record, once it has one.
        lsn: N,
    },
    /// A scan of all keys.
    Scan {
        /// Whether it goes downwards.
        back: bool,
        /// The bound from which it goes on.
        at: u8,
        /// The fence of the page, if it goes downwards.
        fence: u8,
        /// The page.
        page: u8,
        /// What was read.
        got: Map,
        /// The log's end at the call.
        from: N,
    },
}

impl Call {
    /// Where a descent has led.
    pub(super) fn page(&self) -> u8 {
        match *self {
            Call::Idle => NO_SLOT,
            Call::Get { page, .. } | Call::Write { page, .. } | Call::Scan { page, .. } => page,
        }
    }
}

/// The progress of a split or merge.
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
pub enum Stage {
    /// There is none.
    #[default]
    None,
    /// Its record is in the log.
    Logged,
    /// Its leaves are changed.
    Changed,
}

/// A split or merge. The record at `lsn` says which.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct Change {
    pub(super) at: Stage,
    pub(super) page: u8,
    pub(super) right: u8,
    pub(super) lsn: N,
}

/// A checkpoint's step.
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
pub enum Step {
    /// There is no checkpoint.
    #[default]
    None,
    /// Pages are written.
    Sweep,
    /// The next fence of the index is to be read.
    Fence,
    /// Its page's version is to be read.
    Version,
    /// The snapshot is written.
    Read,
    /// The superblock is written.
    Recorded,
}

/// A checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct Checkpoint {
    pub(super) at: Step,
    pub(super) begin: N,
    pub(super) up_to: N,
    pub(super) head: u8,
    pub(super) last: u8,
    pub(super) slots: Set,
    pub(super) entries: Entries,
    pub(super) sum: Entries,
    pub(super) next: u8,
    pub(super) page: u8,
}

/// The phase of the store.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode, strum::IntoStaticStr,
)]
#[strum(serialize_all = "lowercase")]
pub enum Phase {
    /// The store serves clients.
    Up,
    /// Recovery, after the power failed.
    Cut,
    /// Recovery, after the process died and the device lived on.
    Killed,
    /// The store cannot be opened.
    Damaged,
}

/// A slot's versions.
pub(super) type Place = Versions<InSlot, VERSIONS>;

/// All variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct State {
    pub(super) call: [Call; CLIENTS],
    pub(super) log: [Record; LOG],
    pub(super) log_len: N,
    pub(super) durable: N,
    pub(super) oldest: N,
    pub(super) page: [Leaf; SLOTS],
    pub(super) version: [N; SLOTS],
    pub(super) index: Index,
    pub(super) free: Set,
    /// For each page, the LSN of the record that merged it away, until it is freed.
    pub(super) retired: [N; SLOTS],
    pub(super) chain: Set,
    pub(super) newest: Super,
    pub(super) change: Change,
    pub(super) checkpoint: Checkpoint,
    pub(super) slot_dev: [Place; SLOTS],
    pub(super) super_dev: Versions<Super, VERSIONS>,
    pub(super) phase: Phase,
    pub(super) redone: N,
    pub(super) crashes: N,
    pub(super) losses: N,
}

impl State {
    /// The log's records with their LSNs.
    pub(super) fn records(&self) -> impl DoubleEndedIterator<Item = (N, &Record)> {
        (1..=self.log_len).zip(&self.log[..usize::from(self.log_len)])
    }

    pub(super) fn record(&self, n: N) -> &Record {
        &self.log[at(n)]
    }

    /// Appends a record, and returns its LSN.
    pub(super) fn append(&mut self, record: Record) -> N {
        self.log[usize::from(self.log_len)] = record;
        self.log_len += 1;
        self.log_len
    }

    /// The number of records of a kind.
    pub(super) fn count(&self, is: Kind) -> N {
        self.records().filter(|(_, record)| record.is == is).count() as N
    }

    /// `ValueAt`: the value of a key after the first `n` records.
    pub(super) fn value_at(&self, k: u8, n: N) -> N {
        let mut records = self.log[..usize::from(n)].iter().rev();
        let last = records.find(|record| record.is == Kind::Put && record.key == k);
        last.map_or(ABSENT, |record| record.value)
    }

    pub(super) fn place(&self, s: u8) -> &Place {
        &self.slot_dev[at(s)]
    }

    pub(super) fn leaf(&self, p: u8) -> &Leaf {
        &self.page[at(p)]
    }

    pub(super) fn is_dirty(&self, p: u8) -> bool {
        let leaf = self.leaf(p);
        !leaf.is_gone() && leaf.lsn != self.version[at(p)]
    }

    /// The pages that were merged away and are not freed.
    pub(super) fn retired_pages(&self) -> Set {
        let pages = (1..).zip(&self.retired).filter(|(_, lsn)| **lsn > 0);
        pages.fold(0, |set, (p, _)| set | bit(p))
    }

    pub(super) fn recovering(&self) -> bool {
        matches!(self.phase, Phase::Cut | Phase::Killed)
    }

    pub(super) fn is_readable(&self) -> bool {
        self.index[0] != NO_SLOT
    }
}

/// `FenceOf`: the greatest fence up to a key. There must be one.
pub(super) fn fence_of(index: &Index, k: u8) -> u8 {
    (1..=k)
        .rev()
        .find(|f| index[at(*f)] != NO_SLOT)
        .unwrap_or(1)
}

/// `Find`: the page of the leaf that covers a key.
pub(super) fn find(index: &Index, k: u8) -> u8 {
    index[at(fence_of(index, k))]
}

/// The fences from a key on.
pub(super) fn fences_from(index: &Index, k: u8) -> impl Iterator<Item = u8> + use<> {
    let index = *index;
    (k..=KEYS as u8).filter(move |f| index[at(*f)] != NO_SLOT)
}

/// `InIndex`: the pages that some fence has.
pub(super) fn in_index(index: &Index) -> Set {
    index.iter().fold(0, |set, page| set | bit(*page))
}
