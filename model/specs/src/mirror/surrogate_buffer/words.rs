//! The contents of persistent memory: `LodgeWords.tla`.
//!
//! Leaves are numbered from 1, as in the spec, since 0 means no leaf. Slots, logs and entries are
//! numbered from 0.

use super::super::wal_recovery::Versions;
use super::constants::{Bug, SurrogateBuffer};
pub(super) use super::room::{ENTRIES, KEYS, LEAVES, N, SLOTS, SPACES, Set};
use super::room::{REPLAYED, VERSIONS};
use super::row::Row;

/// A value: 0 is `Absent`.
pub(super) type Content = N;
pub(super) const ABSENT: Content = 0;

pub(super) const NO_LEAF: u8 = 0;

/// A word: all values that a crash may leave, oldest first.
pub(super) type Word<T> = Versions<T, VERSIONS>;

/// A key and its value. Key 0 means no pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct Pair {
    pub(super) key: u8,
    pub(super) value: Content,
}

/// The word that makes a flush valid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct Header {
    pub(super) bits: Set,
    pub(super) use_n: u8,
    pub(super) stamp: N,
}

/// A leaf as a load sees it: one value of each word. The default is `Blank(0, NoLeaf)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct Leaf {
    pub(super) header: Header,
    pub(super) low: u8,
    pub(super) next: [u8; 2],
    pub(super) slots: [Pair; SLOTS],
}

/// A leaf in memory: all values of each word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct LeafWords {
    pub(super) header: Word<Header>,
    pub(super) low: Word<u8>,
    pub(super) next: [Word<u8>; 2],
    pub(super) slots: [Word<Pair>; SLOTS],
}

/// The second word of a log entry: its number, and the pair that the checksum vouches for. Number 0
/// means that it was never written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct Meta {
    pub(super) number: N,
    pub(super) sum: Pair,
}

/// A log entry as a load sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct Entry {
    pub(super) pair: Pair,
    pub(super) meta: Meta,
}

/// A log entry in memory: all values of each word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct EntryWords {
    pub(super) pair: Word<Pair>,
    pub(super) meta: Word<Meta>,
}

pub(super) type Leaves = [Leaf; LEAVES];
pub(super) type Log = [[Entry; ENTRIES]; SPACES];

/// An entry of an index: a leaf, and the smallest key that belongs to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct Fence {
    pub(super) low: u8,
    pub(super) leaf: u8,
}

pub(super) type Index = Row<Fence, LEAVES>;

/// A set of log entries, by their number among all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct Replayed([Set; REPLAYED]);

impl Replayed {
    const BITS: usize = Set::BITS as usize;

    pub(super) fn has(&self, entry: usize) -> bool {
        self.0[entry / Self::BITS] >> (entry % Self::BITS) & 1 == 1
    }

    pub(super) fn add(&mut self, entry: usize) {
        self.0[entry / Self::BITS] |= 1 << (entry % Self::BITS);
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = usize> + use<> {
        let all = *self;
        (0..REPLAYED * Self::BITS).filter(move |entry| all.has(*entry))
    }
}

/// The members of a bit set.
pub(super) fn members(set: Set) -> impl Iterator<Item = usize> {
    (0..Set::BITS as usize).filter(move |i| set >> i & 1 == 1)
}

/// The array index of a leaf.
pub(super) fn place(leaf: u8) -> usize {
    usize::from(leaf) - 1
}

impl Leaf {
    /// The valid pairs of the leaf (`PairsIn`).
    pub(super) fn pairs(&self) -> impl Iterator<Item = Pair> + '_ {
        members(self.header.bits).map(|i| self.slots[i])
    }

    /// `KeysIn`: bit `k` for key `k`.
    pub(super) fn keys(&self) -> Set {
        self.pairs().fold(0, |set, pair| set | 1 << pair.key)
    }

    /// The value of a key in the leaf (`ValueIn`).
    pub(super) fn value_of(&self, key: u8) -> Content {
        let found = self.pairs().find(|pair| pair.key == key);
        found.map_or(ABSENT, |pair| pair.value)
    }

    /// The slots of these keys (`SlotsOf`).
    pub(super) fn slots_of(&self, keys: Set) -> Set {
        let has = |i: &usize| keys >> self.slots[*i].key & 1 == 1;
        members(self.header.bits)
            .filter(has)
            .fold(0, |set, i| set | 1 << i)
    }

    /// The next leaf, by the pointer in use (`NextOf`).
    fn next_of(&self) -> u8 {
        self.next[usize::from(self.header.use_n)]
    }

    /// The words without the contents of invalid slots (`Tidy`).
    pub(super) fn tidied(mut self) -> Self {
        for (i, slot) in self.slots.iter_mut().enumerate() {
            if self.header.bits >> i & 1 == 0 {
                *slot = Pair::default();
            }
        }
        self
    }
}

impl LeafWords {
    pub(super) fn durably(leaf: &Leaf) -> Self {
        Self {
            header: Word::durably(leaf.header),
            low: Word::durably(leaf.low),
            next: leaf.next.map(Word::durably),
            slots: leaf.slots.map(Word::durably),
        }
    }

    /// The leaf that a load sees.
    pub(super) fn now(&self) -> Leaf {
        Leaf {
            header: self.header.newest(),
            low: self.low.newest(),
            next: self.next.map(|word| word.newest()),
            slots: self.slots.map(|word| word.newest()),
        }
    }

    pub(super) fn fence(&mut self) {
        *self = Self::durably(&self.now());
    }

    /// Stores a new value in each word.
    pub(super) fn store(&mut self, leaf: &Leaf, slots: usize) {
        self.header.push(leaf.header);
        self.low.push(leaf.low);
        for (word, next) in self.next.iter_mut().zip(leaf.next) {
            word.push(next);
        }
        for (word, pair) in self.slots.iter_mut().zip(leaf.slots).take(slots) {
            word.push(pair);
        }
    }

    fn ways(&self) -> u32 {
        let next: usize = self.next.iter().map(|word| word.all().len()).product();
        let slots: usize = self.slots.iter().map(|word| word.all().len()).product();
        (self.header.all().len() * self.low.all().len() * next * slots) as u32
    }

    /// One of the contents that a crash may leave.
    fn left(&self, n: &mut u32) -> Leaf {
        Leaf {
            header: pick(&self.header, n),
            low: pick(&self.low, n),
            next: self.next.map(|word| pick(&word, n)),
            slots: self.slots.map(|word| pick(&word, n)),
        }
    }
}

/// One of a word's values, selected by a digit of `n`.
fn pick<T: Copy + Default + std::hash::Hash>(word: &Word<T>, n: &mut u32) -> T {
    let all = word.all();
    let count = all.len() as u32;
    let picked = all[(*n % count) as usize];
    *n /= count;
    picked
}

impl EntryWords {
    pub(super) fn durably(entry: &Entry) -> Self {
        Self {
            pair: Word::durably(entry.pair),
            meta: Word::durably(entry.meta),
        }
    }

    pub(super) fn now(&self) -> Entry {
        Entry {
            pair: self.pair.newest(),
            meta: self.meta.newest(),
        }
    }

    pub(super) fn fence(&mut self) {
        *self = Self::durably(&self.now());
    }

    pub(super) fn store(&mut self, entry: &Entry) {
        self.pair.push(entry.pair);
        self.meta.push(entry.meta);
    }

    pub(super) fn is_unfenced(&self) -> bool {
        self.pair.is_unflushed() || self.meta.is_unflushed()
    }
}

impl Entry {
    /// An entry with its checksum (`EntryOf`).
    pub(super) fn new(pair: Pair, number: N) -> Self {
        let meta = Meta { number, sum: pair };
        Self { pair, meta }
    }
}

/// `Pointed`, as array indices.
fn pointed(leaves: &[LeafWords]) -> Set {
    let pointers = leaves.iter().flat_map(|leaf| &leaf.next);
    let targets = pointers.flat_map(|word| word.all());
    targets
        .filter(|leaf| **leaf != NO_LEAF)
        .fold(1, |set, leaf| set | 1 << place(*leaf))
}

/// `LeavesLeft`: the number of ways in which a crash may leave the leaves.
pub(super) fn leaves_ways(leaves: &[LeafWords]) -> u32 {
    members(pointed(leaves)).map(|l| leaves[l].ways()).product()
}

/// The `n`-th of these ways.
pub(super) fn leaves_left(leaves: &[LeafWords; LEAVES], mut n: u32) -> Leaves {
    let pointed = pointed(leaves);
    std::array::from_fn(|l| {
        if pointed >> l & 1 == 1 {
            leaves[l].left(&mut n)
        } else {
            leaves[l].now()
        }
    })
}

/// `At`: the last entry of an index that begins at or below a key, counted from 1.
pub(super) fn at(index: &[Fence], key: u8) -> usize {
    let last = index.iter().rposition(|fence| fence.low <= key);
    last.map_or(0, |i| i + 1)
}

/// The leaf of an index that a key belongs to (`LeafAt`).
pub(super) fn leaf_at(index: &[Fence], key: u8) -> u8 {
    index[at(index, key) - 1].leaf
}

impl SurrogateBuffer {
    /// The leaves in order, along the sibling pointers (`Chain`).
    pub(super) fn chain(&self, leaves: &Leaves) -> Row<u8, LEAVES> {
        let mut chain = Row::default();
        let mut next = 1;
        while next != NO_LEAF && chain.len() < self.leaves {
            chain.push(next);
            next = leaves[place(next)].next_of();
        }
        chain
    }

    /// The index that recovery builds from the leaves (`IndexOf`).
    pub(super) fn index_of(&self, leaves: &Leaves) -> Index {
        let mut index = Index::default();
        for &leaf in self.chain(leaves).iter() {
            let words = &leaves[place(leaf)];
            if self.bug != Bug::SeparatorsFromKeys {
                index.push(Fence {
                    low: words.low,
                    leaf,
                });
            } else if leaf == 1 {
                index.push(Fence { low: 0, leaf });
            } else if let Some(low) = members(words.keys()).next() {
                let low = low as u8;
                index.push(Fence { low, leaf });
            }
        }
        index
    }

    /// The leaves as recovery uses them, with unreachable ones cleared (`Found`).
    pub(super) fn found(&self, leaves: &Leaves) -> Leaves {
        let chain = self.chain(leaves);
        std::array::from_fn(|l| {
            let is_in = chain.iter().any(|leaf| place(*leaf) == l);
            if is_in {
                leaves[l].tidied()
            } else {
                Leaf::default()
            }
        })
    }

    /// Whether an entry is complete (`IsWhole`).
    pub(super) fn is_whole(&self, entry: &Entry) -> bool {
        let believed = self.bug == Bug::BelievesTornEntry && entry.pair != Pair::default();
        entry.meta.number != 0 && (entry.meta.sum == entry.pair || believed)
    }

    /// `EntryLeft`: all contents of a log entry that a crash may leave.
    fn entry_left(&self, words: &EntryWords) -> Vec<Entry> {
        let now = words.now();
        let took_effect = |left: &Entry| {
            *left == now || self.bug == Bug::BelievesStaleEntry && left.pair == now.pair
        };
        let pairs = words.pair.all().iter();
        let all = pairs.flat_map(|&pair| {
            let metas = words.meta.all().iter();
            metas.map(move |&meta| Entry { pair, meta })
        });
        all.filter(|left| !took_effect(left)).collect()
    }

    /// The contents of the logs that a crash may leave (`LogLeft`).
    pub(super) fn log_left(&self, log: &[[EntryWords; ENTRIES]; SPACES]) -> Vec<Log> {
        let mut all = vec![log.map(|entries| entries.map(|words| words.now()))];
        for (s, i) in self.entries() {
            if log[s][i].is_unfenced() {
                let ways = self.entry_left(&log[s][i]);
                let vary = |before: &Log| {
                    let before = *before;
                    ways.clone().into_iter().map(move |left| {
                        let mut log = before;
                        log[s][i] = left;
                        log
                    })
                };
                all = all.iter().flat_map(vary).collect();
            }
        }
        all
    }

    /// The places of all entries (`Entries`).
    pub(super) fn entries(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let log_size = self.log_size;
        (0..self.spaces).flat_map(move |s| (0..log_size).map(move |i| (s, i)))
    }
}
