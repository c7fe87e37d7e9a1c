//! Last-level inner nodes in DRAM, whose free slots are the buffer (LodgeTree §III-A, Figures 4 and
//! 5).
//!
//! ```text
//! slots       | low, leaf | low, leaf | low, leaf | key, value | key, value | ...      free |
//! leaf_count  |   keys    |   keys    |   keys    | which leaf | which leaf | ...           |
//! buf_ver     |                                   |  number, log             |
//!             0                                buf_start                  buf_start + buffered
//! ```
//!
//! Slots have sixteen bytes, in the index part and in the buffer part. Beside them the paper has an
//! array `leaf_count` of one byte per slot, and `buf_ver`, and states that a node of 29 slots has
//! 512 bytes. That leaves 48 bytes for everything else, which the two arrays alone exceed (CLAIMS
//! LT-01). Here a node keeps its 29 slots and takes whatever space it needs; [`Census::bytes`]
//! reports it. A pair's number, which the paper does not have, takes eight more bytes.
//!
//! A separator that is not of eight bytes is stored outside the node, and its slot says where. The
//! same is true of keys and values of pairs, in records to which the log refers, too.
//!
//! Each node has a reader-writer lock that also covers its leaves (§III-A). A node that was merged
//! into its left neighbour ([`super::merge`]) has no leaves, and its number is reused.
//!
//! Invariants (`specs/surrogate_buffer`)
//! - `SpaceInv`: between two operations, index entries and pairs together are fewer than the slots;
//!   a key is buffered only once.
//! - `IndexInv`: separators ascend, and equal the lows of their leaves.

use std::cmp::Ordering as Order;
use std::sync::OnceLock;

use crate::error::Result;
use crate::options::limits::LODGE_SLOTS;
use crate::pm::bytes::word_of;
use crate::pm::layout::{LeafId, Time};
use crate::pm::leaf::Slot;
use crate::pm::nodes::Change;
use crate::pm::records::Records;
use crate::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use crate::sync::{Mutex, RwLock};

/// The greatest number of slots of a node, and its default (§IV-A).
pub(crate) const MAX_SLOTS: usize = *LODGE_SLOTS.end();

/// A key to be found.
#[derive(Clone, Copy)]
pub(crate) struct Sought<'a> {
    pub(crate) bytes: &'a [u8],
    word: Option<u64>,
}

impl<'a> From<&'a [u8]> for Sought<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Sought {
            bytes,
            word: word_of(bytes),
        }
    }
}

/// A buffered change, and the log entry that holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) change: Change,
    /// The entry's number.
    pub(crate) number: Time,
    /// The log of the entry: the paper's version.
    pub(crate) log: u32,
}

/// The contents of a node, protected by its lock.
pub(crate) struct Body {
    /// The number of slots used by the index part: `buf_start`.
    index: u8,
    buffered: u8,
    slots: u8,
    /// M, the number of nodes that the last split made of one, and the times of the last two splits
    /// (§III-C).
    pub(super) parts: u8,
    pub(super) split_before: u64,
    pub(super) split_last: u64,
    words: [[u64; 2]; MAX_SLOTS],
    leaf_count: [u8; MAX_SLOTS],
    /// For a pair: number 36, delete 1, indirect 1. For a separator: whether it is stored in
    /// `long`.
    said: [u64; MAX_SLOTS],
    logs: [u32; MAX_SLOTS],
    long: Vec<Box<[u8]>>,
}

impl Body {
    fn new(slots: usize) -> Body {
        Body {
            index: 0,
            buffered: 0,
            slots: slots as u8,
            parts: 2,
            split_before: 0,
            split_last: 0,
            words: [[0; 2]; MAX_SLOTS],
            leaf_count: [0; MAX_SLOTS],
            said: [0; MAX_SLOTS],
            logs: [0; MAX_SLOTS],
            long: Vec::new(),
        }
    }

    /// Returns the number of leaves of the node.
    pub(crate) fn leaves(&self) -> usize {
        usize::from(self.index)
    }

    /// Returns the number of pairs in the buffer part.
    pub(crate) fn buffered(&self) -> usize {
        usize::from(self.buffered)
    }

    /// Returns the number of free slots.
    pub(crate) fn free(&self) -> usize {
        usize::from(self.slots) - self.leaves() - self.buffered()
    }

    /// Returns whether there is no room for another pair. One slot is kept for a separator.
    pub(crate) fn is_full(&self) -> bool {
        self.free() <= 1
    }

    /// Returns whether there would be no room for a pair even if none were buffered.
    pub(crate) fn must_split(&self) -> bool {
        self.leaves() + 1 >= usize::from(self.slots)
    }

    pub(crate) fn leaf(&self, at: usize) -> LeafId {
        debug_assert!(at < self.leaves());
        LeafId(self.words[at][1])
    }

    /// Returns the number of keys of a leaf.
    pub(crate) fn count(&self, at: usize) -> usize {
        usize::from(self.leaf_count[at])
    }

    pub(crate) fn set_count(&mut self, at: usize, keys: usize) {
        debug_assert!(at < self.leaves());
        self.leaf_count[at] = keys as u8;
    }

    /// Returns the separator of a leaf.
    pub(crate) fn low(&self, at: usize) -> Vec<u8> {
        match self.said[at] {
            0 => self.words[at][0].to_be_bytes().to_vec(),
            _ => self.long[self.words[at][0] as usize].to_vec(),
        }
    }

    fn compare(&self, at: usize, key: Sought<'_>) -> Order {
        match (self.said[at], key.word) {
            (0, Some(word)) => self.words[at][0].cmp(&word),
            (0, None) => self.words[at][0].to_be_bytes().as_slice().cmp(key.bytes),
            _ => (*self.long[self.words[at][0] as usize]).cmp(key.bytes),
        }
    }

    /// Returns the leaf to which a key of this node belongs.
    pub(crate) fn leaf_of(&self, key: Sought<'_>) -> usize {
        // The first separator is the node's own lower bound.
        let (mut low, mut high) = (0, self.leaves());
        while high - low > 1 {
            let middle = (low + high) / 2;
            match self.compare(middle, key) {
                Order::Greater => high = middle,
                _ => low = middle,
            }
        }
        low
    }

    /// Returns the last leaf that begins below `before`, or the last of all if there is no bound.
    pub(crate) fn leaf_before(&self, before: Option<Sought<'_>>) -> usize {
        let Some(before) = before else {
            return self.leaves() - 1;
        };
        let at = self.leaf_of(before);
        match self.compare(at, before) {
            Order::Equal if at > 0 => at - 1,
            _ => at,
        }
    }

    /// Returns the range of the buffer part.
    pub(crate) fn pairs(&self) -> std::ops::Range<usize> {
        self.leaves()..self.leaves() + self.buffered()
    }

    pub(crate) fn pair(&self, at: usize) -> Pair {
        debug_assert!(self.pairs().contains(&at));
        let said = self.said[at];
        Pair {
            change: Change {
                slot: Slot {
                    key: self.words[at][0],
                    value: self.words[at][1],
                    indirect: said & 1 == 1,
                },
                delete: said & 2 != 0,
            },
            number: Time(said >> 2),
            log: self.logs[at],
        }
    }

    /// Returns the leaf of a pair.
    pub(crate) fn leaf_of_pair(&self, at: usize) -> usize {
        debug_assert!(self.pairs().contains(&at));
        usize::from(self.leaf_count[at])
    }

    /// Returns the pairs of a leaf, in the order of the buffer.
    pub(crate) fn group(&self, leaf: usize) -> Vec<Pair> {
        let of_leaf = self.pairs().filter(|at| self.leaf_of_pair(*at) == leaf);
        of_leaf.map(|at| self.pair(at)).collect()
    }

    /// Returns the pair of a key.
    pub(crate) fn find(&self, records: &Records, key: Sought<'_>) -> Result<Option<usize>> {
        for at in self.pairs() {
            if self.said[at] & 1 == 0 {
                if key.word == Some(self.words[at][0]) {
                    return Ok(Some(at));
                }
            } else if records.is_key(self.pair(at).change.slot, key.bytes)? {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    /// Overwrites a pair, or fills a free slot of the buffer part.
    fn set(&mut self, at: usize, pair: Pair, leaf: usize) {
        let Change { slot, delete } = pair.change;
        self.words[at] = [slot.key, slot.value];
        self.leaf_count[at] = leaf as u8;
        self.said[at] = pair.number.0 << 2 | u64::from(delete) << 1 | u64::from(slot.indirect);
        self.logs[at] = pair.log;
    }

    /// Overwrites a pair of the same key.
    pub(crate) fn replace(&mut self, at: usize, pair: Pair) {
        let leaf = self.leaf_of_pair(at);
        self.set(at, pair, leaf);
    }

    /// Adds a pair for a leaf.
    pub(crate) fn push(&mut self, pair: Pair, leaf: usize) {
        debug_assert!(!self.is_full(), "SpaceInv");
        let at = self.pairs().end;
        self.set(at, pair, leaf);
        self.buffered += 1;
    }

    /// Removes the pairs for which `stays` returns `false`; the others keep their order.
    pub(crate) fn retain(&mut self, mut stays: impl FnMut(Pair, usize) -> bool) {
        let mut to = self.leaves();
        for at in self.pairs() {
            let (pair, leaf) = (self.pair(at), self.leaf_of_pair(at));
            if stays(pair, leaf) {
                self.set(to, pair, leaf);
                to += 1;
            }
        }
        self.buffered = (to - self.leaves()) as u8;
    }

    fn set_entry(&mut self, at: usize, low: &[u8], leaf: LeafId, keys: usize) {
        let (word, said) = match word_of(low) {
            Some(word) => (word, 0),
            None => {
                self.long.push(low.into());
                (self.long.len() as u64 - 1, 1)
            }
        };
        self.words[at] = [word, leaf.0];
        self.leaf_count[at] = keys as u8;
        self.said[at] = said;
        self.logs[at] = 0;
    }

    /// Adds a leaf behind the existing ones.
    pub(crate) fn push_leaf(&mut self, low: &[u8], leaf: LeafId, keys: usize) {
        debug_assert!(self.buffered == 0 && !self.must_split());
        let at = self.leaves();
        self.set_entry(at, low, leaf, keys);
        self.index += 1;
    }

    /// Inserts a leaf that was split off the one at `after`: its separator takes the slot that is
    /// kept for it, and pairs of later leaves are renumbered.
    pub(crate) fn insert_leaf(&mut self, after: usize, low: &[u8], leaf: LeafId, keys: usize) {
        debug_assert!(self.free() > 0, "SpaceInv");
        let (at, end) = (after + 1, self.pairs().end);
        for pair in self.pairs() {
            if usize::from(self.leaf_count[pair]) > after {
                self.leaf_count[pair] += 1;
            }
        }
        self.words.copy_within(at..end, at + 1);
        self.leaf_count.copy_within(at..end, at + 1);
        self.said.copy_within(at..end, at + 1);
        self.logs.copy_within(at..end, at + 1);
        self.set_entry(at, low, leaf, keys);
        self.index += 1;
        debug_assert!(
            self.compare(at - 1, low.into()) == Order::Less || at == 1,
            "IndexInv"
        );
    }

    /// Removes the leaf behind the one at `at`, which was merged into it. Pairs of both now belong
    /// to the one at `at`.
    pub(crate) fn remove_leaf_behind(&mut self, at: usize) {
        let (gone, end) = (at + 1, self.pairs().end);
        debug_assert!(gone < self.leaves());
        if self.said[gone] != 0 {
            self.drop_long(self.words[gone][0]);
        }
        for pair in self.pairs() {
            if usize::from(self.leaf_count[pair]) > at {
                self.leaf_count[pair] -= 1;
            }
        }
        self.words.copy_within(gone + 1..end, gone);
        self.leaf_count.copy_within(gone + 1..end, gone);
        self.said.copy_within(gone + 1..end, gone);
        self.logs.copy_within(gone + 1..end, gone);
        self.index -= 1;
    }

    /// Drops a separator stored outside the node; the last one takes its place.
    fn drop_long(&mut self, place: u64) {
        self.long.swap_remove(place as usize);
        let moved = self.long.len() as u64;
        for at in 0..self.leaves() {
            if self.said[at] != 0 && self.words[at][0] == moved {
                self.words[at][0] = place;
            }
        }
    }

    /// Takes over everything in the node to the right. There must be room for it.
    pub(crate) fn absorb(&mut self, right: &Body) {
        let mut all = self.like();
        for body in [&*self, right] {
            for at in 0..body.leaves() {
                all.set_entry(all.leaves(), &body.low(at), body.leaf(at), body.count(at));
                all.index += 1;
            }
        }
        for (body, before) in [(&*self, 0), (right, self.leaves())] {
            for at in body.pairs() {
                let leaf = body.leaf_of_pair(at) + before;
                all.set(all.pairs().end, body.pair(at), leaf);
                all.buffered += 1;
            }
        }
        debug_assert!(all.free() > 0, "SpaceInv");
        *self = all;
    }

    /// Returns a node of the leaves `range`, and of their buffered pairs.
    pub(crate) fn part(&self, range: std::ops::Range<usize>) -> Body {
        let mut to = self.like();
        for at in range.clone() {
            let low = self.low(at);
            to.set_entry(at - range.start, &low, self.leaf(at), self.count(at));
            to.index += 1;
        }
        for at in self.pairs() {
            let leaf = self.leaf_of_pair(at);
            if range.contains(&leaf) {
                to.set(to.pairs().end, self.pair(at), leaf - range.start);
                to.buffered += 1;
            }
        }
        to
    }

    /// Returns an empty node with the same number of slots.
    pub(crate) fn like(&self) -> Body {
        Body {
            parts: self.parts,
            split_before: self.split_before,
            split_last: self.split_last,
            ..Body::new(usize::from(self.slots))
        }
    }

    /// Returns the bytes of DRAM for separators that are not of eight bytes.
    fn long_bytes(&self) -> u64 {
        let long = self
            .long
            .iter()
            .map(|low| low.len() + size_of::<Box<[u8]>>());
        long.sum::<usize>() as u64
    }
}

/// All nodes, by number.
pub(crate) struct Nodes {
    slots: usize,
    count: AtomicUsize,
    /// Numbers of nodes that were merged away.
    free: Mutex<Vec<u64>>,
    /// Each is twice as long as the one before.
    segments: [OnceLock<Box<[RwLock<Body>]>>; 32],
}

const FIRST_SEGMENT: usize = 16;

impl Nodes {
    pub(crate) fn new(slots: usize) -> Nodes {
        Nodes {
            slots,
            count: AtomicUsize::new(0),
            free: Mutex::new(Vec::new()),
            segments: [const { OnceLock::new() }; 32],
        }
    }

    /// Returns the number of a new node, which the index does not refer to yet. A late thread may
    /// still wait for the lock of the node that had the number before; it then finds that its key
    /// is elsewhere.
    pub(crate) fn allocate(&self) -> u64 {
        if let Some(number) = self.free.lock().pop() {
            return number;
        }
        self.count.fetch_add(1, Relaxed) as u64
    }

    /// Returns a node that was allocated.
    pub(crate) fn node(&self, number: u64) -> &RwLock<Body> {
        let number = number as usize;
        let segment = (number / FIRST_SEGMENT + 1).ilog2() as usize;
        let before = ((1 << segment) - 1) * FIRST_SEGMENT;
        let nodes = self.segments[segment].get_or_init(|| {
            let count = FIRST_SEGMENT << segment;
            (0..count)
                .map(|_| RwLock::new(Body::new(self.slots)))
                .collect()
        });
        &nodes[number - before]
    }

    /// Frees a node that is empty and to which the index no longer refers.
    pub(crate) fn free(&self, number: u64) {
        self.free.lock().push(number);
    }

    /// Returns how many node numbers have ever been used.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Relaxed) as u64
    }

    /// Returns the sums over all nodes. Locks each node briefly.
    pub(crate) fn census(&self) -> Census {
        let mut census = Census::default();
        for number in 0..self.count() {
            let body = self.node(number).read();
            census.nodes += u64::from(body.leaves() > 0);
            census.leaves += body.leaves() as u64;
            census.buffered += body.buffered() as u64;
            census.long_bytes += body.long_bytes();
        }
        census.slots = census.nodes * self.slots as u64;
        census
    }
}

/// Sums over last-level inner nodes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Census {
    pub(crate) nodes: u64,
    pub(crate) slots: u64,
    pub(crate) leaves: u64,
    pub(crate) buffered: u64,
    long_bytes: u64,
}

impl Census {
    /// Returns the bytes of DRAM of the nodes in use.
    pub(crate) fn bytes(&self) -> u64 {
        self.nodes * size_of::<RwLock<Body>>() as u64 + self.long_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(key: u64, delete: bool) -> Pair {
        Pair {
            change: Change {
                slot: Slot {
                    key,
                    value: !key,
                    indirect: key.is_multiple_of(2),
                },
                delete,
            },
            number: Time(1 << 35 | key),
            log: key as u32,
        }
    }

    fn key(word: u64) -> [u8; 8] {
        word.to_be_bytes()
    }

    fn find(body: &Body, bytes: &[u8]) -> usize {
        body.leaf_of(bytes.into())
    }

    #[test]
    fn leaf_count_says_counts_of_leaves_and_leaves_of_pairs() {
        // LT-07; LT-13: buffering uses free slots only.
        let mut body = Body::new(8);
        body.push_leaf(b"", LeafId(1), 9);
        body.push_leaf(&key(20), LeafId(2), 13);
        body.push_leaf(b"zz", LeafId(3), 2);
        for (n, bytes) in [key(25), key(3), key(21)].iter().enumerate() {
            let leaf = find(&body, bytes);
            body.push(pair(n as u64, n == 1), leaf);
        }
        assert_eq!((body.leaves(), body.buffered(), body.free()), (3, 3, 2));
        assert_eq!(
            body.pairs()
                .map(|at| body.leaf_of_pair(at))
                .collect::<Vec<_>>(),
            [1, 0, 1]
        );
        body.insert_leaf(1, &key(25), LeafId(4), 7);
        // The caller has flushed the new leaf's pairs; here they stay.
        assert_eq!(
            body.pairs()
                .map(|at| body.leaf_of_pair(at))
                .collect::<Vec<_>>(),
            [1, 0, 1]
        );
        assert_eq!(body.pair(5), pair(1, true));
        assert_eq!(
            [
                b"".as_slice(),
                &key(19),
                &key(20),
                &key(24),
                &key(25),
                b"zy",
                b"zz",
                b"zzz"
            ]
            .map(|k| find(&body, k)),
            [0, 0, 1, 1, 2, 2, 3, 3]
        );
        assert_eq!([0, 1, 2, 3].map(|at| body.count(at)), [9, 13, 7, 2]);
        assert_eq!(body.leaf_before(Some(key(25).as_slice().into())), 1);
        assert_eq!(body.leaf_before(Some(key(26).as_slice().into())), 2);
        assert_eq!(body.leaf_before(None), 3);
        assert!(body.is_full() && !body.must_split());
        let upper = body.part(1..4);
        assert_eq!((upper.leaves(), upper.buffered()), (3, 2));
        assert_eq!(upper.low(2), b"zz");
        assert_eq!(
            upper
                .pairs()
                .map(|at| upper.leaf_of_pair(at))
                .collect::<Vec<_>>(),
            [0, 0]
        );
        body.retain(|_, leaf| leaf == 0);
        assert_eq!(
            body.pairs().map(|at| body.pair(at)).collect::<Vec<_>>(),
            [pair(1, true)]
        );
    }

    #[test]
    fn nodes_are_found_by_number() {
        let nodes = Nodes::new(*LODGE_SLOTS.start());
        for number in 0..1_000u64 {
            assert_eq!(nodes.allocate(), number);
            nodes.node(number).write().split_last = number;
        }
        assert!((0..1_000).all(|number| nodes.node(number).read().split_last == number));
    }
}
