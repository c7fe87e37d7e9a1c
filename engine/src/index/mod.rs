//! The in-memory inner nodes: an ordered map from a leaf's lower fence to its page, read without latches.
//!
//! Optimistic lock coupling (Leis et al., DaMoN 2016; Bf-Tree §3.4; B-Trees Are Back §7.1): every node carries a
//! version, odd while locked. A reader notes the version, reads, and checks that it has not moved; before it trusts a
//! child it notes the child's version and *then* checks the parent again (BUGS S5), so that the child was the right one
//! at an instant at which its noted version was current. Readers never write shared memory.
//!
//! ```text
//! reader: v = version (Acquire, even) · relaxed loads · fence(Acquire) · version == v ?
//! writer: CAS v -> v+1 (Acquire) · fence(Release) · relaxed stores · version = v+2 (Release)
//! ```
//!
//! Why these orderings suffice. If a reader sees one relaxed store of a writer, the writer's release fence synchronises
//! with the reader's acquire fence, so the last load sees v+1 or later and the read is thrown away. If it noted v+2, its
//! acquire load makes all stores before v+2 visible. The same argument covers recycled nodes and key slots: both pass
//! through a mutex and a release fence before they are written again. All is plain atomics in storage that is never
//! given back while the index lives: a stale id or key reference leads to wrong words, never to wrong memory.
//!
//! Invariants
//! - The root is node 0 for ever; it grows and shrinks by moving its content (no root pointer to race on, BUGS S3).
//! - `SeparatorIsFirst`: a bottom node's first key equals the separator that leads to it (BUGS S4). So a reader that finds
//!   its key below the first key has come by a stale path, though no node on it changed, and starts again.
//! - In nodes above the bottom the first key is empty and stands for the node's own lower bound.
//! - Upper bounds shrink only by a split, which changes the parent too; so a validated bottom node covers the key.
//! - The key "" is always there.
//!
//! Writers that touch one bottom node upgrade its version and nothing else. Splits, merges, and removals of a first
//! entry also take the `structure` mutex (about one insert in `N/2`), lock every node they change before they
//! change the first, and unlock after the last. They are in `structure.rs`; nodes and arena in `node.rs`, key tails in `heap.rs`.

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

/// Fewest entries that a node may be limited to.
const LEAST: usize = *INDEX_ENTRIES.start();

/// Entries of a node of the engine's index. Such a node takes 4 KiB.
pub(crate) const FANOUT: usize = *INDEX_ENTRIES.end();

/// The index as the engine uses it.
pub type Index = IndexOf<FANOUT>;

/// A bulk load met entries that are no index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("index entry {at}: expected {}", if *.at == 0 { "the empty fence first" } else { "a fence above the one before it" })]
pub struct UnsortedEntries {
    /// Position of the offending entry, from 0.
    pub at: usize,
}

/// An ordered map from lower fence to page with inner nodes of at most `N >= 3` entries.
///
/// Every method may be called from any thread. `find`, `insert`, `remove` and `find_before` are linearizable.
#[derive(Debug)]
pub struct IndexOf<const N: usize> {
    arena: Arena<N>,
    heap: Heap,
    /// Held by whoever changes nodes above the bottom level.
    structure: Mutex<()>,
    len: AtomicUsize,
    /// Entries that a node takes before it splits: 3 to `N`.
    most: usize,
}

/// A bottom node reached by an optimistic descent.
struct Reached<'a, const N: usize> {
    node: &'a Node<N>,
    version: u64,
    /// The separator behind the node, if asked for.
    next: Option<Vec<u8>>,
}

/// A leaf, and the bottom node that named it, as of a version.
pub(crate) struct Located<'a, const N: usize = FANOUT> {
    pub(crate) page: PageId,
    node: &'a Node<N>,
    version: u64,
    /// The leaf's place in the node.
    at: usize,
}

/// What a descent looks for.
#[derive(Clone, Copy, PartialEq)]
enum Aim {
    /// The node that covers the key.
    Cover,
    /// The same, and the separator behind it.
    CoverAndNext,
    /// The node that holds what is just below the key.
    Before,
    /// The last node, whatever the key.
    Last,
}

impl<const N: usize> IndexOf<N> {
    /// An index of one leaf that covers all keys.
    pub fn new(first: PageId) -> Self {
        Self::with_entries(first, N)
    }

    /// The same with nodes of at most so many entries, 3 to `N`; other numbers are taken for the
    /// nearest of these.
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

    /// Loads ascending entries, the first of them with the fence "", into nodes as
    /// [`IndexOf::with_entries`] has them.
    ///
    /// # Errors
    /// [`UnsortedEntries`] names the first entry out of place.
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

    /// One attempt to reach a bottom node; `None` if a node changed underfoot.
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
            // The child's version is noted: only if the parent still is as we read it was this the right child at a
            // moment of that version (BUGS S5).
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

    /// Repeats `attempt` until it meets no change.
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

    /// The leaf with the greatest lower fence at or below `key`.
    pub fn find(&self, key: &[u8]) -> PageId {
        self.locate(key).page
    }

    /// As [`IndexOf::find`], of which [`IndexOf::is_current`] may be asked later whether it would still be the answer.
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

    /// Whether `key` is still of the leaf that was located for it: one load, and a descent if the bottom node has changed.
    pub(crate) fn is_current(&self, key: &[u8], located: &Located<'_, N>) -> bool {
        located.node.valid(located.version) || self.find(key) == located.page
    }

    /// As [`IndexOf::fence_after`], where `key`'s leaf was located before: no descent if the bottom node has not changed and the leaf is not its last.
    /// For that one the node does not know: who takes the fence behind it away need not touch this node.
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

    /// The greatest lower fence strictly below `key`, and its leaf; `None` for the key "".
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

    /// The greatest lower fence below a key that is not empty, or of all, and its leaf.
    pub(crate) fn before(&self, key: Option<&[u8]>) -> (Vec<u8>, PageId) {
        let found = key.map(|key| self.find_before(key));
        found.flatten().unwrap_or_else(|| self.last())
    }

    /// The greatest lower fence of all, and its leaf.
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

    /// The smallest fence above `key`: the upper one of the leaf that covers it. `None` for the last leaf.
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

    /// Up to `max` entries with fences at or above `from`, ascending. Each was there at some instant of the call, and one
    /// that stays throughout is not left out; together they are no snapshot.
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

    /// The entries of one bottom node from `from` on, and where the next node begins.
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
        // The node's bound may have grown since the separator was read; what lies behind it comes with the next part.
        if let Some(next) = &reached.next {
            part.retain(|(key, _)| key < next);
        }
        Some((part, reached.next))
    }

    /// Visits every entry in order, a stride at a time, while the map goes on changing: each entry is one that was there at some
    /// instant of the call, and none that stayed throughout is missed.
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

    /// Maps `lower` to `page`, replacing what was there.
    pub fn insert(&self, lower: &[u8], page: PageId) {
        while !self.retry(|| self.try_insert(lower, page)) {
            if self.insert_with_split(lower, page) {
                return;
            }
        }
    }

    /// Inserts if the node has room; `Some(false)` if it must split first.
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

    /// Takes `lower` out; its range falls to the leaf before. False if it is not there; "" stays always.
    pub fn remove(&self, lower: &[u8]) -> bool {
        !lower.is_empty()
            && match self.retry(|| self.try_remove(lower)) {
                Some(removed) => removed,
                None => self.remove_with_merge(lower),
            }
    }

    /// Removes where one node is all that changes; `Some(None)` if more must.
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

    /// Entries that the bottom node of `key` has room for before it is split.
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

    /// Bytes taken from the allocator, free nodes and slots included.
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
            // What was located moves on in its node, or into another one.
            let below = (n * 10 - 3).to_be_bytes();
            index.insert(&below, PageId(200 + n));
            assert_eq!(index.fence_behind(&at, &located), behind(n + 1));
            index.remove(&below);
            // One more leaf in between, which may split the node, and then none.
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
