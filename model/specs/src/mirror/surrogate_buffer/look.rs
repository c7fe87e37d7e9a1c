//! What the judge of a recording sees of a state.

use super::room::{ENTRIES, LEAVES, SLOTS, SPACES};
use super::state::{At, Buffered, Call, Lock, Node, PENDING, State};
use super::words::{Content, Entry, Header, Leaf, N, Pair, place};
use crate::mirror::Phase;

/// What a word is for. Leaves are numbered from 1, logs and places from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Is {
    /// The header of a leaf.
    Header(u8),
    /// The least key that a leaf may hold.
    Low(u8),
    /// A sibling pointer of a leaf.
    Next(u8, usize),
    /// A slot of a leaf.
    Slot(u8, usize),
    /// Key and value of an entry of a log.
    Pair(usize, usize),
    /// Number and checksum of an entry of a log.
    Meta(usize, usize),
}

const WORDS_OF_LEAF: usize = 4 + SLOTS;
const WORDS_OF_LOGS: usize = LEAVES * WORDS_OF_LEAF;

impl Is {
    /// A number of the word, from 0.
    #[must_use]
    pub fn address(self) -> usize {
        let leaf = |l: u8, at: usize| place(l) * WORDS_OF_LEAF + at;
        let entry = |s: usize, i: usize| WORDS_OF_LOGS + 2 * (s * ENTRIES + i);
        match self {
            Is::Header(l) => leaf(l, 0),
            Is::Low(l) => leaf(l, 1),
            Is::Next(l, n) => leaf(l, 2 + n),
            Is::Slot(l, i) => leaf(l, 4 + i),
            Is::Pair(s, i) => entry(s, i),
            Is::Meta(s, i) => entry(s, i) + 1,
        }
    }

    /// The words of a leaf.
    pub fn of_leaf(l: u8) -> impl Iterator<Item = Is> {
        let slots = (0..SLOTS).map(move |i| Is::Slot(l, i));
        [Is::Header(l), Is::Low(l), Is::Next(l, 0), Is::Next(l, 1)]
            .into_iter()
            .chain(slots)
    }

    /// The words of a log.
    pub fn of_log(s: usize) -> impl Iterator<Item = Is> {
        (0..ENTRIES).flat_map(move |i| [Is::Pair(s, i), Is::Meta(s, i)])
    }

    /// All words, by address.
    pub fn all() -> impl Iterator<Item = Is> {
        let leaves = (1..=LEAVES as u8).flat_map(Is::of_leaf);
        leaves.chain((0..SPACES).flat_map(Is::of_log))
    }
}

impl State {
    /// The number of versions of a word.
    #[must_use]
    pub fn count(&self, is: Is) -> usize {
        let leaf = |l: u8| &self.leaf[place(l)];
        match is {
            Is::Header(l) => leaf(l).header.all().len(),
            Is::Low(l) => leaf(l).low.all().len(),
            Is::Next(l, n) => leaf(l).next[n].all().len(),
            Is::Slot(l, i) => leaf(l).slots[i].all().len(),
            Is::Pair(s, i) => self.log[s][i].pair.all().len(),
            Is::Meta(s, i) => self.log[s][i].meta.all().len(),
        }
    }

    /// Whether a word has the same versions in another state.
    #[must_use]
    pub fn same(&self, other: &State, is: Is) -> bool {
        let leaves = |l: u8| (&self.leaf[place(l)], &other.leaf[place(l)]);
        match is {
            Is::Header(l) => leaves(l).0.header == leaves(l).1.header,
            Is::Low(l) => leaves(l).0.low == leaves(l).1.low,
            Is::Next(l, n) => leaves(l).0.next[n] == leaves(l).1.next[n],
            Is::Slot(l, i) => leaves(l).0.slots[i] == leaves(l).1.slots[i],
            Is::Pair(s, i) => self.log[s][i].pair == other.log[s][i].pair,
            Is::Meta(s, i) => self.log[s][i].meta == other.log[s][i].meta,
        }
    }

    /// A leaf as a load sees it.
    #[must_use]
    pub fn leaf_seen(&self, l: u8) -> Leaf {
        self.leaf_now(l)
    }

    /// The versions of an entry's pair, and those of its second word: of each the number, and the
    /// pair that the checksum vouches for.
    #[must_use]
    pub fn entry_versions(&self, s: usize, i: usize) -> (Vec<Pair>, Vec<(N, Pair)>) {
        let entry = &self.log[s][i];
        let metas = entry.meta.all().iter().map(|meta| (meta.number, meta.sum));
        (entry.pair.all().to_vec(), metas.collect())
    }

    /// An entry as a load sees it: its number, and its pair.
    #[must_use]
    pub fn entry_seen(&self, s: usize, i: usize) -> (N, Pair) {
        let Entry { pair, meta } = self.entry_at((s, i));
        (meta.number, pair)
    }

    /// The nodes, from left to right.
    #[must_use]
    pub fn all_nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The node of a leaf that is in it, or is being split off one.
    #[must_use]
    pub fn node_with(&self, l: u8) -> Option<usize> {
        let has = |node: &Node| node.fresh == l || node.index.iter().any(|fence| fence.leaf == l);
        self.nodes.iter().position(has)
    }

    /// The node that a key belongs to.
    #[must_use]
    pub fn node_for(&self, key: u8) -> usize {
        self.node_of(key)
    }

    /// The leaves that are in a node or reachable from such a leaf.
    #[must_use]
    pub fn listed(&self) -> Vec<u8> {
        let mut listed = Vec::new();
        for node in self.nodes.iter() {
            listed.extend(node.index.iter().map(|fence| fence.leaf));
            if matches!(node.at, At::Linked | At::Switched) && node.fresh != 0 {
                listed.push(node.fresh);
            }
        }
        listed
    }

    /// The call of a client.
    #[must_use]
    pub fn call_of(&self, c: usize) -> Call {
        self.call[c]
    }

    /// Whether clients are served.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// The number that the next entry gets.
    #[must_use]
    pub fn next_number(&self) -> N {
        self.clock
    }

    /// The log whose version a pair has.
    #[must_use]
    pub fn log_of(&self, pair: &Buffered) -> Option<usize> {
        let mut versions = self.versions.iter();
        versions.position(|known| known.version == pair.version)
    }

    /// How many entries of a log are written.
    #[must_use]
    pub fn used(&self, s: usize) -> usize {
        self.versions[s].used.into()
    }

    /// The value that a get has read, if it has.
    #[must_use]
    pub fn got(&self, c: usize) -> Option<Content> {
        match self.call[c] {
            Call::Get { got, .. } if got != PENDING => Some(got),
            _ => None,
        }
    }
}

impl Node {
    /// Its leaves, each with where it begins.
    #[must_use]
    pub fn leaves(&self) -> Vec<(u8, u8)> {
        let index = self.index.iter();
        index.map(|fence| (fence.leaf, fence.low)).collect()
    }

    /// Its buffer.
    #[must_use]
    pub fn pairs(&self) -> &[Buffered] {
        &self.buffer
    }

    /// The leaf that is being flushed to, and the progress there.
    #[must_use]
    pub fn progress(&self) -> (Option<u8>, At) {
        (self.todo.first().copied(), self.at)
    }

    /// The leaf that is being split off.
    #[must_use]
    pub fn splitting_off(&self) -> u8 {
        self.fresh
    }

    /// Whether nobody has the node's lock.
    #[must_use]
    pub fn is_unlocked(&self) -> bool {
        self.lock == Lock::Free
    }
}

impl Buffered {
    /// Key, value and number.
    #[must_use]
    pub fn parts(&self) -> (u8, Content, N) {
        (self.key, self.value, self.number)
    }
}

impl Leaf {
    /// Bitmap, use_n and stamp.
    // In the wide mirror a set has 64 bits already.
    #[allow(clippy::useless_conversion)]
    #[must_use]
    pub fn header_parts(&self) -> (u64, u8, N) {
        let Header { bits, use_n, stamp } = self.header;
        (bits.into(), use_n, stamp)
    }

    /// Where the leaf begins, and its sibling pointers.
    #[must_use]
    pub fn links(&self) -> (u8, [u8; 2]) {
        (self.low, self.next)
    }

    /// The key and the value in a slot.
    #[must_use]
    pub fn slot(&self, i: usize) -> (u8, Content) {
        (self.slots[i].key, self.slots[i].value)
    }
}

impl Pair {
    /// A pair; key 0 means none.
    #[must_use]
    pub fn of(key: u8, value: Content) -> Pair {
        Pair { key, value }
    }
}
