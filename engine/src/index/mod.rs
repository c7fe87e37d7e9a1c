//! The in-memory inner nodes: an ordered map from a leaf's lower fence to its page, which is read
//! without latches.
//!
//! The nodes use optimistic lock coupling (Leis et al., DaMoN 2016; Bf-Tree §3.4; B-Trees Are Back
//! §7.1): every node has a version, which is odd while the node is locked. A reader notes the
//! version, reads, and checks that the version has not changed. Before it trusts a child, it notes
//! the child's version and *then* checks the parent again (BUGS S5). So the child was the right one
//! at an instant at which its noted version was current. Readers never write shared memory.
//!
//! ```text
//! reader: v = version (Acquire, even) · relaxed loads · fence(Acquire) · version == v ?
//! writer: CAS v -> v+1 (Acquire) · fence(Release) · relaxed stores · version = v+2 (Release)
//! ```
//!
//! ```
//! use treering_engine::PageId;
//! use treering_engine::index::Index;
//!
//! let index = Index::new(PageId(1)); // Leaf 1 covers all keys.
//! index.insert(b"m", PageId(2)); // A split at "m" added leaf 2.
//! assert_eq!(index.find(b"kiwi"), PageId(1));
//! assert_eq!(index.find(b"pear"), PageId(2));
//! assert_eq!(index.fence_after(b"kiwi"), Some(b"m".to_vec()));
//! // A merge gives the range of leaf 2 back to leaf 1.
//! assert!(index.remove(b"m"));
//! assert_eq!(index.find(b"pear"), PageId(1));
//! ```
//!
//! Why these orderings suffice: if a reader sees one relaxed store of a writer, the writer's
//! release fence synchronises with the reader's acquire fence. The reader's last load then sees v+1
//! or later, and it discards what it read. If the reader noted v+2, its acquire load makes all
//! stores before v+2 visible. The same argument covers recycled nodes and key slots: both pass
//! through a mutex and a release fence before they are written again. Everything is plain atomics
//! in storage that is not freed while the index lives. So a stale id or key reference leads to
//! wrong words, but never to invalid memory.
//!
//! Invariants
//! - The root is always node 0. It grows and shrinks by moving its content, so there is no root
//!   pointer to race on (BUGS S3).
//! - `SeparatorIsFirst`: the first key of a bottom node equals the separator that leads to it (BUGS
//!   S4). So a reader whose key is below the first key has followed a stale path, even if no node
//!   on it has changed since, and starts again.
//! - In nodes above the bottom, the first key is empty and stands for the node's own lower bound.
//! - Upper bounds shrink only by a split, which also changes the parent; so a validated bottom node
//!   covers the key.
//! - The key "" is always present.
//!
//! A writer that changes one bottom node only upgrades its version. Splits, merges, and removals of
//! a first entry also take the `structure` mutex (about one insert in `N/2`). They lock every node
//! that they will change before they change the first, and unlock after the last. They are in
//! `structure.rs`; nodes and arena are in `node.rs`, key tails in `heap.rs`.

mod heap;
mod node;
mod structure;

use crate::PageId;
use crate::mutation;
use crate::options::limits::INDEX_ENTRIES;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use heap::{Heap, head};
use node::{Arena, Entry, Node};

/// The lowest limit that a node's number of entries may have.
const LEAST: usize = *INDEX_ENTRIES.start();

/// The maximum number of entries in a node of the engine's index. Such a node takes 4 KiB.
pub(crate) const FANOUT: usize = *INDEX_ENTRIES.end();

/// The index as the engine uses it.
pub type Index = IndexOf<FANOUT>;

/// The entries for a bulk load are out of order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("index entry {at}: expected {}", if *.at == 0 { "the empty fence first" } else { "a fence above the one before it" })]
pub struct UnsortedEntries {
    /// Position of the first invalid entry, counted from 0.
    pub at: usize,
}

/// An ordered map from lower fence to page, with inner nodes of at most `N >= 3` entries.
///
/// Every method may be called from any thread. `find`, `insert`, `remove` and `find_before` are
/// linearizable.
#[derive(Debug)]
pub struct IndexOf<const N: usize> {
    arena: Arena<N>,
    heap: Heap,
    /// Held while nodes above the bottom level are changed.
    structure: Mutex<()>,
    len: AtomicUsize,
    /// The number of entries at which a node is full: 3 to `N`.
    most: usize,
}

/// A bottom node reached by an optimistic descent.
struct Reached<'a, const N: usize> {
    node: &'a Node<N>,
    version: u64,
    /// The separator behind the node, if the caller asked for it.
    next: Option<Vec<u8>>,
}

/// A leaf, and the bottom node that named it, as of a version.
pub(crate) struct Located<'a, const N: usize = FANOUT> {
    pub(crate) page: PageId,
    node: &'a Node<N>,
    version: u64,
    /// The position of the leaf's entry in the node.
    at: usize,
}

/// What a descent looks for.
#[derive(Clone, Copy, PartialEq)]
enum Aim {
    /// The node that covers the key.
    Cover,
    /// The node that covers the key, and the separator behind the node.
    CoverAndNext,
    /// The node with the greatest fence below the key.
    Before,
    /// The last node, whatever the key.
    Last,
}

impl<const N: usize> IndexOf<N> {
    /// Creates an index of one leaf, which covers all keys.
    pub fn new(first: PageId) -> Self {
        Self::with_entries(first, N)
    }

    /// As [`IndexOf::new`], with nodes of at most `most` entries. `most` is clamped to 3 to `N`.
    pub fn with_entries(first: PageId, most: usize) -> Self {
        const {
            assert!(
                N >= LEAST,
                "a split leaves an entry on either side and one to insert"
            )
        };
        let index = Self {
            arena: Arena::new(),
            heap: Heap::new(),
            structure: Mutex::new(()),
            len: AtomicUsize::new(1),
            most: most.clamp(LEAST, N),
        };
        let root = index.arena.allocate();
        let first = Entry {
            head: 0,
            key: heap::KeyRef::EMPTY,
            child: first.0,
        };
        index.arena.node(root).fill(0, &[first]);
        index.arena.node(root).unlock();
        index
    }

    /// Creates an index, with node sizes as in [`IndexOf::with_entries`], from entries in ascending
    /// order, the first of which has the fence "".
    ///
    /// # Errors
    /// [`UnsortedEntries`] with the first entry that is out of order.
    pub fn from_sorted<K: AsRef<[u8]>>(
        entries: impl IntoIterator<Item = (K, PageId)>,
        most: usize,
    ) -> Result<Self, UnsortedEntries> {
        let mut entries = entries.into_iter();
        let first = entries.next().filter(|(key, _)| key.as_ref().is_empty());
        let (mut last, page) = first.ok_or(UnsortedEntries { at: 0 })?;
        let index = Self::with_entries(page, most);
        for (at, (key, page)) in entries.enumerate() {
            if key.as_ref() <= last.as_ref() {
                return Err(UnsortedEntries { at: at + 1 });
            }
            index.insert(key.as_ref(), page);
            last = key;
        }
        Ok(index)
    }

    /// Attempts once to reach a bottom node. Returns `None` if a node changed meanwhile.
    fn try_descend(&self, key: &[u8], aim: Aim) -> Option<Reached<'_, N>> {
        let mut node = self.arena.get(0)?;
        let mut version = node.begin();
        let mut next = None;
        while node.level() > 0 {
            let at = if aim == Aim::Last {
                node.count().saturating_sub(1)
            } else {
                let (at, exact) = node.search(&self.heap, key);
                if exact && aim != Aim::Before {
                    at
                } else {
                    at.saturating_sub(1)
                }
            };
            if at >= N {
                return None;
            }
            if aim == Aim::CoverAndNext && at + 1 < node.count() {
                let entry = node.get(at + 1);
                next = Some(self.heap.copy(entry.head, entry.key));
            }
            let child = self.arena.get(node.child(at))?;
            let child_version = child.begin();
            // Check the parent after noting the child's version. If the parent is unchanged, this
            // was the right child at an instant of that version (BUGS S5).
            if !mutation::on("index-skips-revalidation") && !node.valid(version) {
                return None;
            }
            (node, version) = (child, child_version);
        }
        Some(Reached {
            node,
            version,
            next,
        })
    }

    /// Repeats `attempt` until no concurrent change interferes.
    fn retry<T>(&self, mut attempt: impl FnMut() -> Option<T>) -> T {
        loop {
            if let Some(result) = attempt() {
                return result;
            }
            if cfg!(loom) {
                crate::sync::yield_now();
            }
        }
    }

    /// Finds the leaf with the greatest lower fence at or below `key`.
    pub fn find(&self, key: &[u8]) -> PageId {
        self.locate(key).page
    }

    /// As [`IndexOf::find`]. [`IndexOf::is_current`] can later check whether the answer is still
    /// the same.
    pub(crate) fn locate(&self, key: &[u8]) -> Located<'_, N> {
        self.retry(|| {
            let Reached { node, version, .. } = self.try_descend(key, Aim::Cover)?;
            let (at, exact) = node.search(&self.heap, key);
            let at = if exact { at } else { at.checked_sub(1)? };
            let page = PageId((at < N).then(|| node.child(at))?);
            let located = Located {
                page,
                node,
                version,
                at,
            };
            node.valid(version).then_some(located)
        })
    }

    /// Returns whether `key` still belongs to the leaf that was located for it. Costs one load, and
    /// a descent if the bottom node has changed.
    pub(crate) fn is_current(&self, key: &[u8], located: &Located<'_, N>) -> bool {
        located.node.valid(located.version) || self.find(key) == located.page
    }

    /// As [`IndexOf::fence_after`], for a key whose leaf was located before. Needs no descent if
    /// the bottom node is unchanged and the leaf is not the node's last. The last leaf always needs
    /// one: its upper fence is in another node, so it can be removed without changing this node.
    pub(crate) fn fence_behind(&self, key: &[u8], located: &Located<'_, N>) -> Option<Vec<u8>> {
        let behind = located.at + 1;
        let known = (behind < located.node.count())
            .then(|| located.node.get(behind))
            .map(|entry| self.heap.copy(entry.head, entry.key))
            .filter(|_| located.node.valid(located.version));
        match known {
            Some(fence) => Some(fence),
            None => self.fence_after(key),
        }
    }

    /// Finds the greatest lower fence strictly below `key`, and its leaf. Returns `None` for the
    /// key "".
    pub fn find_before(&self, key: &[u8]) -> Option<(Vec<u8>, PageId)> {
        if key.is_empty() {
            return None;
        }
        Some(self.retry(|| {
            let reached = self.try_descend(key, Aim::Before)?;
            let at = reached.node.search(&self.heap, key).0.checked_sub(1)?;
            self.entry_at(&reached, at)
        }))
    }

    /// The greatest lower fence below `key`, which must not be empty, or of the whole index if
    /// `key` is `None`; and its leaf.
    pub(crate) fn before(&self, key: Option<&[u8]>) -> (Vec<u8>, PageId) {
        let found = key.map(|key| self.find_before(key));
        found.flatten().unwrap_or_else(|| self.last())
    }

    /// The greatest lower fence in the index, and its leaf.
    pub fn last(&self) -> (Vec<u8>, PageId) {
        self.retry(|| {
            let reached = self.try_descend(b"", Aim::Last)?;
            let at = reached.node.count().checked_sub(1).filter(|at| *at < N)?;
            self.entry_at(&reached, at)
        })
    }

    fn entry_at(&self, reached: &Reached<'_, N>, at: usize) -> Option<(Vec<u8>, PageId)> {
        let entry = reached.node.get(at);
        let fence = self.heap.copy(entry.head, entry.key);
        let valid = reached.node.valid(reached.version);
        valid.then_some((fence, PageId(entry.child)))
    }

    /// The smallest fence above `key`: the upper fence of the leaf that covers it. `None` for the
    /// last leaf.
    pub fn fence_after(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.retry(|| {
            let reached = self.try_descend(key, Aim::CoverAndNext)?;
            let (at, exact) = reached.node.search(&self.heap, key);
            if at == 0 && !exact {
                return None;
            }
            let at = at + usize::from(exact);
            if at < reached.node.count().min(N) {
                return self.entry_at(&reached, at).map(|(fence, _)| Some(fence));
            }
            reached.node.valid(reached.version).then_some(reached.next)
        })
    }

    /// Returns up to `max` entries with fences at or above `from`, ascending. Each entry existed at
    /// some instant of the call, and an entry that exists throughout is included. The result as a
    /// whole is not a snapshot.
    pub fn range(&self, from: &[u8], max: usize) -> Vec<(Vec<u8>, PageId)> {
        let mut found = Vec::new();
        let mut from = from.to_vec();
        while found.len() < max {
            let (part, next) = self.retry(|| self.try_part(&from, max - found.len()));
            found.extend(part);
            match next {
                Some(next) => from = next,
                None => break,
            }
        }
        found
    }

    /// The entries of one bottom node from `from` on, and the start of the next node.
    #[expect(clippy::type_complexity, reason = "a pair for one caller")]
    fn try_part(
        &self,
        from: &[u8],
        max: usize,
    ) -> Option<(Vec<(Vec<u8>, PageId)>, Option<Vec<u8>>)> {
        let reached = self.try_descend(from, Aim::CoverAndNext)?;
        let (at, exact) = reached.node.search(&self.heap, from);
        if at == 0 && !exact {
            return None;
        }
        let mut part = Vec::new();
        for at in at..reached.node.count().min(at.saturating_add(max)) {
            let entry = reached.node.get(at);
            part.push((self.heap.copy(entry.head, entry.key), PageId(entry.child)));
        }
        if !reached.node.valid(reached.version) {
            return None;
        }
        // The node's range may have grown since the separator was read. Entries behind the
        // separator come with the next part.
        if let Some(next) = &reached.next {
            part.retain(|(key, _)| key < next);
        }
        Some((part, reached.next))
    }

    /// Visits every entry in order, in batches, while the index may be changing. Each visited entry
    /// existed at some instant of the call, and an entry that exists throughout is not missed.
    pub fn for_each(&self, mut visit: impl FnMut(&[u8], PageId)) {
        const STRIDE: usize = 256;
        let mut from = Vec::new();
        loop {
            let entries = self.range(&from, STRIDE);
            entries.iter().for_each(|(fence, page)| visit(fence, *page));
            let Some((mut last, _)) = entries.into_iter().last() else {
                return;
            };
            // The smallest key above the last fence.
            last.push(0);
            from = last;
        }
    }

    /// Maps `lower` to `page`, replacing an existing entry.
    pub fn insert(&self, lower: &[u8], page: PageId) {
        while !self.retry(|| self.try_insert(lower, page)) {
            if self.insert_with_split(lower, page) {
                return;
            }
        }
    }

    /// Inserts if the node has room. Returns `Some(false)` if the node must be split first.
    fn try_insert(&self, lower: &[u8], page: PageId) -> Option<bool> {
        let Reached { node, version, .. } = self.try_descend(lower, Aim::Cover)?;
        let (at, exact) = node.search(&self.heap, lower);
        let full = node.count() >= self.most;
        if at == 0 && !exact {
            return None;
        }
        if full && !exact {
            return node.valid(version).then_some(false);
        }
        if !node.upgrade(version) {
            return None;
        }
        if exact {
            node.set_child(at, page.0);
        } else {
            node.insert(at, self.entry(lower, page.0));
            self.len.fetch_add(1, Relaxed);
        }
        node.unlock();
        Some(true)
    }

    /// A new entry that owns a copy of `key`.
    fn entry(&self, key: &[u8], child: u64) -> Entry {
        Entry {
            head: head(key),
            key: self.heap.store(key),
            child,
        }
    }

    /// Removes `lower`, so that its range goes to the leaf before. Returns `false` if it is absent,
    /// or is "", which cannot be removed.
    pub fn remove(&self, lower: &[u8]) -> bool {
        !lower.is_empty()
            && match self.retry(|| self.try_remove(lower)) {
                Some(removed) => removed,
                None => self.remove_with_merge(lower),
            }
    }

    /// Removes `lower` if only one node must change. Returns `Some(None)` if more must.
    fn try_remove(&self, lower: &[u8]) -> Option<Option<bool>> {
        let Reached { node, version, .. } = self.try_descend(lower, Aim::Cover)?;
        let (at, exact) = node.search(&self.heap, lower);
        if at == 0 && !exact {
            return None;
        }
        if !exact {
            return node.valid(version).then_some(Some(false));
        }
        let alone = node.level() == 0 && std::ptr::eq(node, self.arena.node(0));
        if at == 0 || (node.count() <= self.most / 4 + 1 && !alone) {
            return node.valid(version).then_some(None);
        }
        if !node.upgrade(version) {
            return None;
        }
        self.heap.free(node.remove(at).key);
        self.len.fetch_sub(1, Relaxed);
        node.unlock();
        Some(Some(true))
    }

    /// The number of entries that the bottom node of `key` can take before it is split.
    pub(crate) fn room(&self, key: &[u8]) -> usize {
        self.retry(|| {
            let Reached { node, version, .. } = self.try_descend(key, Aim::Cover)?;
            let room = self.most.checked_sub(node.count())?;
            node.valid(version).then_some(room)
        })
    }

    /// Number of leaves.
    #[expect(clippy::len_without_is_empty, reason = "an index is never empty")]
    pub fn len(&self) -> usize {
        self.len.load(Relaxed)
    }

    /// Bytes allocated, including free nodes and slots.
    pub fn bytes(&self) -> usize {
        self.arena.census().0 * (size_of::<Node<N>>() + 16) + self.heap.bytes()
    }

    /// Inner nodes in use.
    pub fn nodes(&self) -> usize {
        self.arena.census().1
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn the_fence_behind_a_leaf_is_the_one_after_it_whatever_has_changed_since() {
        let key = |n: u64| (n * 10).to_be_bytes();
        let index = IndexOf::<3>::new(PageId(0));
        (1..40).for_each(|n| index.insert(&key(n), PageId(n)));
        for n in 1..40 {
            let at = key(n);
            let located = index.locate(&at);
            let behind = |n: u64| (n < 40).then(|| key(n).to_vec());
            assert_eq!(index.fence_behind(&at, &located), behind(n + 1));
            // The located entry moves in its node, or into another node.
            let below = (n * 10 - 3).to_be_bytes();
            index.insert(&below, PageId(200 + n));
            assert_eq!(index.fence_behind(&at, &located), behind(n + 1));
            index.remove(&below);
            // Adds a leaf in between, which may split the node, and removes it again.
            let between = (n * 10 + 6).to_be_bytes();
            index.insert(&between, PageId(100 + n));
            let fence = index.fence_behind(&at, &located);
            assert_eq!(fence.as_deref(), Some(&between[..]));
            let located = index.locate(&at);
            assert!(index.remove(&between));
            assert_eq!(index.fence_behind(&at, &located), behind(n + 1));
        }
    }
}
