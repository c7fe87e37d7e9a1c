//! An inner node (a version word and three parallel arrays of relaxed atomics), and the arena that
//! keeps nodes alive.
//!
//! ```text
//! version u64 (odd: locked) | meta u64 = level << 32 | count |
//!     heads [u64; N] | keys [KeyRef; N] | children [u64; N]
//! ```

use super::heap::{Heap, KeyRef, head};
use crate::sync::atomic::{
    AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release, fence,
};
use crate::sync::{Mutex, hint, yield_now};
use std::sync::OnceLock;

/// One entry: a key and a child, which is a node id above the bottom level and a page id on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) head: u64,
    pub(super) key: KeyRef,
    pub(super) child: u64,
}

/// An inner node of at most `N` entries.
#[derive(Debug)]
pub(super) struct Node<const N: usize> {
    version: AtomicU64,
    meta: AtomicU64,
    heads: [AtomicU64; N],
    keys: [AtomicU64; N],
    children: [AtomicU64; N],
}

fn zeros<const N: usize>() -> [AtomicU64; N] {
    std::array::from_fn(|_| AtomicU64::new(0))
}

impl<const N: usize> Node<N> {
    pub(super) fn new() -> Self {
        Self {
            version: AtomicU64::new(0),
            meta: AtomicU64::new(0),
            heads: zeros(),
            keys: zeros(),
            children: zeros(),
        }
    }

    /// Begins an optimistic read. Waits until the node is unlocked and returns its (even) version.
    pub(super) fn begin(&self) -> u64 {
        let mut spins = 0;
        loop {
            let version = self.version.load(Acquire);
            if version & 1 == 0 {
                return version;
            }
            spins += 1;
            if spins % 64 == 0 || cfg!(loom) {
                yield_now()
            } else {
                hint::spin_loop()
            }
        }
    }

    /// Returns whether everything read since `begin` returned `version` belongs to one state of the
    /// node.
    pub(super) fn valid(&self, version: u64) -> bool {
        fence(Acquire);
        self.version.load(Relaxed) == version
    }

    /// Turns an optimistic read into the write lock. Fails if the node has changed.
    pub(super) fn upgrade(&self, version: u64) -> bool {
        let taken = self
            .version
            .compare_exchange(version, version + 1, Acquire, Relaxed)
            .is_ok();
        if taken {
            fence(Release);
        }
        taken
    }

    pub(super) fn lock(&self) {
        while !self.upgrade(self.begin()) {}
    }

    pub(super) fn unlock(&self) {
        self.version.store(self.version.load(Relaxed) + 1, Release);
    }

    pub(super) fn count(&self) -> usize {
        (self.meta.load(Relaxed) as u32 as usize).min(N)
    }

    pub(super) fn level(&self) -> u64 {
        self.meta.load(Relaxed) >> 32
    }

    pub(super) fn set_meta(&self, level: u64, count: usize) {
        self.meta.store(level << 32 | count as u64, Relaxed);
    }

    pub(super) fn child(&self, at: usize) -> u64 {
        self.children[at].load(Relaxed)
    }

    pub(super) fn set_child(&self, at: usize, child: u64) {
        self.children[at].store(child, Relaxed);
    }

    pub(super) fn set_key(&self, at: usize, head: u64, key: KeyRef) {
        self.heads[at].store(head, Relaxed);
        self.keys[at].store(key.0, Relaxed);
    }

    pub(super) fn get(&self, at: usize) -> Entry {
        Entry {
            head: self.heads[at].load(Relaxed),
            key: KeyRef(self.keys[at].load(Relaxed)),
            child: self.child(at),
        }
    }

    pub(super) fn set(&self, at: usize, entry: Entry) {
        self.set_key(at, entry.head, entry.key);
        self.set_child(at, entry.child);
    }

    /// Inserts in place. The caller holds the lock and has checked that there is room.
    pub(super) fn insert(&self, at: usize, entry: Entry) {
        let count = self.count();
        for i in (at..count).rev() {
            self.set(i + 1, self.get(i));
        }
        self.set(at, entry);
        self.set_meta(self.level(), count + 1);
    }

    /// Removes in place. The caller must free the key's slot.
    pub(super) fn remove(&self, at: usize) -> Entry {
        let (count, gone) = (self.count(), self.get(at));
        for i in at + 1..count {
            self.set(i - 1, self.get(i));
        }
        self.set_meta(self.level(), count - 1);
        gone
    }

    /// Overwrites all entries and the level.
    pub(super) fn fill(&self, level: u64, entries: &[Entry]) {
        for (at, entry) in entries.iter().enumerate() {
            self.set(at, *entry);
        }
        self.set_meta(level, entries.len());
    }

    pub(super) fn entries(&self) -> Vec<Entry> {
        (0..self.count()).map(|at| self.get(at)).collect()
    }

    /// Number of entries whose head is below `limit`, found without branches that depend on data.
    fn heads_below(&self, count: usize, limit: u64) -> usize {
        let heads = &self.heads[..count];
        let (mut base, mut size) = (0, count);
        while size > 1 {
            let half = size / 2;
            let step = usize::from(heads[base + half - 1].load(Relaxed) < limit);
            base += step * half;
            size -= half;
        }
        base + usize::from(size == 1 && heads[base].load(Relaxed) < limit)
    }

    /// The position of the first entry not below `key`, and whether it equals `key`.
    ///
    /// Heads decide unless they are equal; equal heads are never taken for equal keys (BUGS S1).
    pub(super) fn search(&self, heap: &Heap, key: &[u8]) -> (usize, bool) {
        let (count, wanted) = (self.count(), head(key));
        let mut low = self.heads_below(count, wanted);
        if low == count || self.heads[low].load(Relaxed) != wanted {
            return (low, false);
        }
        let mut high = match wanted.checked_add(1) {
            Some(next) => self.heads_below(count, next).max(low),
            None => count,
        };
        while low < high {
            let middle = (low + high) / 2;
            let stored = KeyRef(self.keys[middle].load(Relaxed));
            match heap.compare_tied(stored, key) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return (middle, true),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        (low, false)
    }
}

const CHUNKS: usize = 27;
const FIRST_CHUNK: usize = 32;
/// Nodes made in advance: some under loom, otherwise none.
const READY_MADE: u64 = if cfg!(loom) { 8 } else { 0 };

type Chunk<const N: usize> = Box<[OnceLock<Box<Node<N>>>]>;

/// Nodes by id. A node is never moved or deallocated; freed ids are reused.
#[derive(Debug)]
pub(super) struct Arena<const N: usize> {
    /// Chunk `c` holds `FIRST_CHUNK << c` slots.
    chunks: [OnceLock<Chunk<N>>; CHUNKS],
    ids: Mutex<Ids>,
}

#[derive(Debug, Default)]
struct Ids {
    free: Vec<u32>,
    made: u32,
}

fn locate(id: u64) -> (usize, usize) {
    let place = id.saturating_add(FIRST_CHUNK as u64);
    let chunk = (place / FIRST_CHUNK as u64).ilog2() as usize;
    (chunk, (place - ((FIRST_CHUNK as u64) << chunk)) as usize)
}

impl<const N: usize> Arena<N> {
    pub(super) fn new() -> Self {
        let arena = Self {
            chunks: std::array::from_fn(|_| OnceLock::new()),
            ids: Mutex::new(Ids::default()),
        };
        // `OnceLock` orders the creation of a node before any use of it. Loom does not see that and
        // would report a race with the creation. So under loom the nodes of its small programs are
        // made before its threads start.
        (0..READY_MADE).for_each(|id| arena.make(id));
        arena
    }

    fn make(&self, id: u64) {
        let (chunk, slot) = locate(id);
        let chunk = self.chunks[chunk]
            .get_or_init(|| (0..FIRST_CHUNK << chunk).map(|_| OnceLock::new()).collect());
        chunk[slot].get_or_init(|| Box::new(Node::new()));
    }

    /// The node with this id, which may be arbitrary.
    pub(super) fn get(&self, id: u64) -> Option<&Node<N>> {
        let (chunk, slot) = locate(id);
        self.chunks
            .get(chunk)?
            .get()?
            .get(slot)?
            .get()
            .map(|node| &**node)
    }

    /// The node with an id that was read under a lock.
    pub(super) fn node(&self, id: u64) -> &Node<N> {
        self.get(id).expect("an id read under a lock names a node")
    }

    /// Returns a locked node that only the caller knows.
    pub(super) fn allocate(&self) -> u64 {
        let mut ids = self.ids.lock();
        let id = match ids.free.pop() {
            Some(id) => u64::from(id),
            None => {
                let id = u64::from(ids.made);
                self.make(id);
                ids.made += 1;
                id
            }
        };
        drop(ids);
        self.node(id).lock();
        id
    }

    /// Unlocks and frees a node to which nothing points any more.
    pub(super) fn free(&self, id: u64) {
        self.node(id).unlock();
        self.ids.lock().free.push(id as u32);
    }

    /// Returns the number of nodes made, and how many of them are in use.
    pub(super) fn census(&self) -> (usize, usize) {
        let ids = self.ids.lock();
        (ids.made as usize, ids.made as usize - ids.free.len())
    }
}
