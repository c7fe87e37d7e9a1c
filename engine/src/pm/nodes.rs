//! Buffer nodes in DRAM, one per leaf (CCL-BTree §3.2, Figure 7 (a)): a header of eight bytes and
//! N_batch slots of sixteen.
//!
//! ```text
//! header: version 32 (odd: locked) | unflushed 3 | filled 3 | epoch bits 6 | indirect bits 6
//!         | tombstone bits 6 | gone 1 | 7 unused
//! slots:  [0, unflushed) in the log and not in the leaf
//!         | [unflushed, filled) the same as in the leaf | the rest hold nothing
//! ```
//!
//! A leaf's node is found by the leaf's number, so the header needs no pointer to the leaf. The
//! leaf shares its node's lock (§4.4). A tree that buffers nothing has nodes that consist of a
//! header only. Readers take no lock: they note the header, read, and check that the header is
//! unchanged. This is the scheme of [`crate::index`], whose argument for the memory orderings
//! applies here word for word; nodes, too, are atomics that live as long as the tree.
//!
//! Beside each node, and not counted as part of it, is a word that the paper does not have: the
//! time of the leaf's last flush, which becomes the leaf's timestamp at the next flush. It cannot
//! be stored at once in the same line as the header word: a crash could leave the new timestamp
//! without the header word, and log entries would then lose against a leaf that lacks them.

use std::sync::OnceLock;

use crate::sync::Backoff;
use crate::sync::atomic::{
    AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release, fence,
};

use super::events::{NodeImage, NodeSlot};
use super::layout::{Geometry, LeafId, Time};
use super::leaf::Slot;

const VERSION: u64 = 0xffff_ffff;

/// The fields of a header, without the version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fields(u64);

impl Fields {
    fn get(self, shift: u32, bits: u32) -> usize {
        (self.0 >> shift) as usize & ((1 << bits) - 1)
    }

    fn set(&mut self, shift: u32, bits: u32, value: usize) {
        let mask = ((1 << bits) - 1) << shift;
        self.0 = self.0 & !mask | (value as u64) << shift & mask;
    }

    /// Returns the number of slots that are in the log and not in the leaf: the position counter.
    pub(crate) fn unflushed(self) -> usize {
        self.get(32, 3)
    }

    /// Returns the number of slots in use.
    pub(crate) fn filled(self) -> usize {
        self.get(35, 3)
    }

    /// Returns the epoch bit of a slot.
    pub(crate) fn epoch(self, at: usize) -> u8 {
        self.get(38 + at as u32, 1) as u8
    }

    fn is_indirect(self, at: usize) -> bool {
        self.get(44 + at as u32, 1) == 1
    }

    fn is_tombstone(self, at: usize) -> bool {
        self.get(50 + at as u32, 1) == 1
    }

    /// Returns whether the leaf was merged away and has not been reused since. Its bytes are then
    /// meaningless.
    pub(crate) fn is_gone(self) -> bool {
        self.get(56, 1) == 1
    }

    pub(crate) fn set_gone(&mut self) {
        self.set(56, 1, 1);
    }

    pub(crate) fn set_unflushed(&mut self, count: usize) {
        self.set(32, 3, count);
    }

    pub(crate) fn set_filled(&mut self, count: usize) {
        self.set(35, 3, count);
    }

    pub(crate) fn set_epoch(&mut self, at: usize, epoch: u8) {
        self.set(38 + at as u32, 1, usize::from(epoch));
    }
}

/// A change to one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// The key, and the value unless it is deleted.
    pub(crate) slot: Slot,
    /// Whether the key is deleted.
    pub(crate) delete: bool,
}

#[cfg(test)]
impl Change {
    /// A put of a value of eight bytes.
    pub(crate) fn put(key: u64, value: u64) -> Change {
        Change {
            slot: Slot {
                key,
                value,
                indirect: false,
            },
            delete: false,
        }
    }
}

/// A buffer node.
#[derive(Clone, Copy)]
pub(crate) struct Node<'a> {
    words: &'a [AtomicU64],
    flushed: &'a AtomicU64,
}

impl<'a> Node<'a> {
    /// Begins an optimistic read: waits until the node is unlocked, and returns its header.
    pub(crate) fn begin(self) -> u64 {
        let mut backoff = Backoff::new();
        loop {
            let header = self.words[0].load(Acquire);
            if header & 1 == 0 {
                return header;
            }
            backoff.wait();
        }
    }

    /// Returns whether everything read since `begin` returned `header` belongs to one state of node
    /// and leaf.
    pub(crate) fn valid(self, header: u64) -> bool {
        fence(Acquire);
        self.words[0].load(Relaxed) == header
    }

    /// Returns the fields of a noted header.
    pub(crate) fn fields(header: u64) -> Fields {
        Fields(header & !VERSION)
    }

    /// Returns the change in a used slot, according to a header's fields.
    pub(crate) fn change(self, fields: Fields, at: usize) -> Change {
        Change {
            slot: Slot {
                key: self.words[1 + 2 * at].load(Relaxed),
                value: self.words[2 + 2 * at].load(Relaxed),
                indirect: fields.is_indirect(at),
            },
            delete: fields.is_tombstone(at),
        }
    }

    /// Waits for the lock of node and leaf, and takes it.
    pub(crate) fn lock(self) -> Held<'a> {
        let mut backoff = Backoff::new();
        loop {
            let header = self.begin();
            let locked = self.words[0].compare_exchange(header, header | 1, Acquire, Relaxed);
            if locked.is_ok() {
                fence(Release);
                return Held {
                    node: self,
                    version: header & VERSION,
                    fields: Node::fields(header),
                };
            }
            backoff.wait();
        }
    }
}

/// A locked node. Node and leaf may be changed only through this. Dropping it unlocks the node.
pub(crate) struct Held<'a> {
    node: Node<'a>,
    version: u64,
    /// The fields that the header will have when unlocked.
    pub(crate) fields: Fields,
}

impl Held<'_> {
    /// Returns the change in a used slot.
    pub(crate) fn change(&self, at: usize) -> Change {
        self.node.change(self.fields, at)
    }

    /// Returns the changes that are in the log and not in the leaf.
    pub(crate) fn unflushed(&self) -> Vec<Change> {
        let slots = 0..self.fields.unflushed();
        slots.map(|at| self.change(at)).collect()
    }

    /// Returns the contents for the observer.
    pub(crate) fn image(&self) -> NodeImage {
        let slot = |at: usize| {
            let Change { slot, delete } = self.change(at);
            NodeSlot {
                key: slot.key,
                value: slot.value,
                delete: delete || slot.is_absent(),
                epoch: self.fields.epoch(at),
            }
        };
        let unflushed = self.fields.unflushed();
        NodeImage {
            unflushed: (0..unflushed).map(slot).collect(),
            cached: (unflushed..self.fields.filled()).map(slot).collect(),
        }
    }

    /// Overwrites a slot. The counters stay as they are.
    pub(crate) fn set(&mut self, at: usize, change: Change, epoch: u8) {
        self.node.words[1 + 2 * at].store(change.slot.key, Relaxed);
        self.node.words[2 + 2 * at].store(change.slot.value, Relaxed);
        let fields = &mut self.fields;
        fields.set_epoch(at, epoch);
        fields.set(44 + at as u32, 1, usize::from(change.slot.indirect));
        fields.set(50 + at as u32, 1, usize::from(change.delete));
    }

    /// Replaces the node's contents by these entries, which equal the leaf's. At most N_batch of
    /// them.
    pub(crate) fn cache(&mut self, entries: &[Change]) {
        for (at, entry) in entries.iter().enumerate() {
            self.set(at, *entry, 0);
        }
        self.fields.set_unflushed(0);
        self.fields.set_filled(entries.len());
    }

    /// Returns the time of the leaf's last flush. All of the leaf's log entries up to that time are
    /// in the leaf.
    pub(crate) fn flushed_at(&self) -> Time {
        Time(self.node.flushed.load(Relaxed))
    }

    pub(crate) fn set_flushed_at(&mut self, time: Time) {
        self.node.flushed.store(time.0, Relaxed);
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let version = (self.version + 2) & VERSION;
        self.node.words[0].store(version | self.fields.0, Release);
    }
}

struct Chunk {
    words: Box<[AtomicU64]>,
    flushed: Box<[AtomicU64]>,
}

/// The nodes of all leaves. They are allocated for a whole chunk of leaves when the first of these
/// is used.
pub(crate) struct Nodes {
    geometry: Geometry,
    /// N_batch.
    batch: usize,
    /// The flush time of leaves that have not been flushed yet.
    born: Time,
    chunks: Box<[OnceLock<Chunk>]>,
}

impl Nodes {
    pub(crate) fn new(geometry: Geometry, batch: usize, born: Time) -> Nodes {
        Nodes {
            geometry,
            batch,
            born,
            chunks: (0..geometry.chunks).map(|_| OnceLock::new()).collect(),
        }
    }

    /// N_batch.
    pub(crate) fn batch(&self) -> usize {
        self.batch
    }

    /// Returns the flush time of leaves that have not been flushed yet. It is later than everything
    /// logged before the store was opened.
    pub(crate) fn born(&self) -> Time {
        self.born
    }

    /// Returns the size of a node in bytes: 8 + 16 · N_batch.
    pub(crate) fn node_bytes(&self) -> u64 {
        8 + 16 * self.batch as u64
    }

    /// Returns the node of a leaf, which must lie in a chunk.
    pub(crate) fn node(&self, leaf: LeafId) -> Node<'_> {
        let chunk = self.geometry.chunk_of(leaf.offset());
        let chunk = chunk.expect("a leaf that was allocated or recovered lies in a chunk");
        let at = (leaf.offset() - self.geometry.offset(chunk)) / super::layout::BLOCK;
        let made = self.chunks[chunk.0 as usize].get_or_init(|| self.make());
        let at = at as usize;
        let per = 1 + 2 * self.batch;
        Node {
            words: &made.words[at * per..(at + 1) * per],
            flushed: &made.flushed[at],
        }
    }

    fn make(&self) -> Chunk {
        let leaves = self.geometry.leaves_in_chunk() as usize;
        let words = leaves * (1 + 2 * self.batch);
        Chunk {
            words: (0..words).map(|_| AtomicU64::new(0)).collect(),
            flushed: (0..leaves).map(|_| AtomicU64::new(self.born.0)).collect(),
        }
    }

    /// Returns the bytes allocated for nodes, and for flush times.
    pub(crate) fn bytes(&self) -> (u64, u64) {
        let made = self.chunks.iter().filter(|chunk| chunk.get().is_some());
        let leaves = made.count() as u64 * self.geometry.leaves_in_chunk();
        (leaves * self.node_bytes(), leaves * 8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::LeafFormat;
    use crate::options::limits::PM_BATCH;

    const MAX_BATCH: usize = *PM_BATCH.end();

    #[test]
    fn a_node_has_a_header_of_eight_bytes_and_sixteen_a_slot() {
        // CC-05.
        let geometry = Geometry::plan(1 << 20, 4096, LeafFormat::Block).unwrap();
        let bytes: Vec<u64> = (1..=5)
            .map(|batch| Nodes::new(geometry, batch, Time(0)).node_bytes())
            .collect();
        assert_eq!(bytes, [24, 40, 56, 72, 88]);
        let nodes = Nodes::new(geometry, 2, Time(0));
        drop(nodes.node(geometry.first_leaf()).lock());
        assert_eq!(
            nodes.bytes(),
            (16 * 40, 16 * 8),
            "a chunk of sixteen leaves"
        );
    }

    #[test]
    fn fields_do_not_touch_each_other() {
        let geometry = Geometry::plan(1 << 20, 4096, LeafFormat::Block).unwrap();
        let nodes = Nodes::new(geometry, MAX_BATCH, Time(9));
        let node = nodes.node(geometry.first_leaf());
        let before = node.begin();
        let change = |n: u64| Change {
            slot: Slot {
                key: n,
                value: !n,
                indirect: n.is_multiple_of(2),
            },
            delete: n.is_multiple_of(3),
        };
        let mut held = node.lock();
        assert_eq!(held.flushed_at(), Time(9));
        for at in (0..MAX_BATCH).rev() {
            held.set(at, change(at as u64), (at % 2) as u8);
        }
        held.fields.set_unflushed(5);
        held.fields.set_filled(6);
        drop(held);
        assert!(!node.valid(before), "a reader of before starts again");
        let header = node.begin();
        let fields = Node::fields(header);
        assert_eq!((fields.unflushed(), fields.filled()), (5, 6));
        for at in 0..MAX_BATCH {
            assert_eq!(node.change(fields, at), change(at as u64));
            assert_eq!(fields.epoch(at), (at % 2) as u8);
        }
        drop(node.lock());
        assert_eq!(header & VERSION, 2);
        assert_eq!(node.begin() & VERSION, 4);
        assert_eq!(Node::fields(node.begin()), fields);
    }
}
