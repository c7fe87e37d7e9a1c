//! Changes of more than one node: split, merge, root growth and collapse, removal of a first entry.
//!
//! While the `structure` mutex is held, nodes above the bottom do not change, so a path can be read
//! without validation. The bottom node is locked first and then checked again. All nodes that
//! change are locked before the first change. A reader that meets one of them waits or starts
//! again; a reader that has already passed them is caught by its bottom node (see the invariants of
//! [`super`]).

use super::IndexOf;
use super::heap::{KeyRef, head};
use super::node::{Entry, Node};
use crate::PageId;
use crate::sync::atomic::Ordering::Relaxed;

/// Node ids from the root to the bottom, each with the position of the child taken (unused at the
/// bottom).
type Path = Vec<(u64, usize)>;

impl<const N: usize> IndexOf<N> {
    fn node(&self, id: u64) -> &Node<N> {
        self.arena.node(id)
    }

    /// The path to the bottom node that covers `key`. The caller holds `structure`.
    fn path(&self, key: &[u8]) -> Path {
        let (mut path, mut id) = (Path::new(), 0);
        loop {
            let node = self.node(id);
            if node.level() == 0 {
                path.push((id, 0));
                return path;
            }
            let (at, exact) = node.search(&self.heap, key);
            let at = if exact { at } else { at.saturating_sub(1) };
            path.push((id, at));
            id = node.child(at);
        }
    }

    /// Inserts into a full bottom node, which must be split. Returns `false` if the node is no
    /// longer full.
    pub(super) fn insert_with_split(&self, lower: &[u8], page: PageId) -> bool {
        let _structure = self.structure.lock();
        let mut path = self.path(lower);
        let bottom = self.node(path[path.len() - 1].0);
        bottom.lock();
        let (at, exact) = bottom.search(&self.heap, lower);
        if exact || bottom.count() < self.most {
            bottom.unlock();
            return false;
        }
        // Every full node on the path is split; the lowest one that has room takes the last
        // separator.
        let mut top = path.len() - 1;
        while top > 0 && self.node(path[top].0).count() >= self.most {
            top -= 1;
        }
        for (id, _) in &path[top..path.len() - 1] {
            self.node(*id).lock();
        }
        if self.node(path[top].0).count() >= self.most {
            path = self.grow_root(&path);
        }
        let mut entry = self.entry(lower, page.0);
        let mut at = at;
        let mut locked: Vec<u64> = path[top..].iter().map(|step| step.0).collect();
        for level in (top + 1..path.len()).rev() {
            let (separator, right) = self.split(path[level].0, at, entry);
            locked.push(right);
            entry = separator;
            at = path[level - 1].1 + 1;
        }
        self.node(path[top].0).insert(at, entry);
        self.len.fetch_add(1, Relaxed);
        for id in locked {
            self.node(id).unlock();
        }
        true
    }

    /// Moves the content of the full, locked root one level down, into a new locked node.
    fn grow_root(&self, path: &Path) -> Path {
        let (root, below) = (self.node(0), self.arena.allocate());
        let level = root.level();
        self.node(below).fill(level, &root.entries());
        root.fill(
            level + 1,
            &[Entry {
                head: 0,
                key: KeyRef::EMPTY,
                child: below,
            }],
        );
        let mut longer = vec![(0, 0), (below, path[0].1)];
        longer.extend_from_slice(&path[1..]);
        longer
    }

    /// Splits a full, locked node while inserting `entry` at `at`. Returns the entry for the
    /// parent, and the new node, which is locked. An append splits at the end, so that ascending
    /// keys leave full nodes behind.
    fn split(&self, id: u64, at: usize, entry: Entry) -> (Entry, u64) {
        let node = self.node(id);
        let mut entries = node.entries();
        let cut = if at == entries.len() {
            at
        } else {
            entries.len().div_ceil(2)
        };
        entries.insert(at, entry);
        let right = self.arena.allocate();
        let mut upper = entries.split_off(cut);
        let first = upper[0];
        let separator = if node.level() == 0 {
            let key = self.heap.copy(first.head, first.key);
            self.entry(&key, right)
        } else {
            // The separator moves up. The right node's first key becomes empty and stands for the
            // node's lower bound.
            upper[0] = Entry {
                head: 0,
                key: KeyRef::EMPTY,
                child: first.child,
            };
            Entry {
                child: right,
                ..first
            }
        };
        node.fill(node.level(), &entries);
        self.node(right).fill(node.level(), &upper);
        (separator, right)
    }

    /// Removes `lower` if it is the first entry of its node, or if its removal leaves the node
    /// nearly empty.
    pub(super) fn remove_with_merge(&self, lower: &[u8]) -> bool {
        let _structure = self.structure.lock();
        let path = self.path(lower);
        let bottom = self.node(path[path.len() - 1].0);
        bottom.lock();
        let (at, exact) = bottom.search(&self.heap, lower);
        if !exact {
            bottom.unlock();
            return false;
        }
        self.len.fetch_sub(1, Relaxed);
        if at > 0 {
            self.heap.free(bottom.remove(at).key);
            bottom.unlock();
        } else {
            self.remove_first(&path);
        }
        self.rebalance(lower);
        true
    }

    /// Removes the first entry of the locked bottom node at the end of `path`, and every node that
    /// becomes empty, and raises the separator that leads there. Unlocks all nodes.
    fn remove_first(&self, path: &Path) {
        let mut keeper = path.len() - 1;
        while self.node(path[keeper].0).count() == 1 {
            keeper -= 1;
        }
        let at = if keeper == path.len() - 1 {
            0
        } else {
            path[keeper].1
        };
        // The separator to raise is in the lowest node above the keeper in which the path does not
        // take the leftmost child.
        let holder = (0..keeper)
            .rev()
            .find(|&level| path[level].1 > 0 && at == 0);
        let locked = holder.unwrap_or(keeper)..path.len() - 1;
        for (id, _) in &path[locked.clone()] {
            self.node(*id).lock();
        }
        let node = self.node(path[keeper].0);
        self.heap.free(node.remove(at).key);
        if let Some(holder) = holder {
            let (parent, place) = (self.node(path[holder].0), path[holder].1);
            self.heap.free(parent.get(place).key);
            let first = node.get(0);
            if node.level() == 0 {
                let key = self.heap.copy(first.head, first.key);
                parent.set_key(place, head(&key), self.heap.store(&key));
            } else {
                parent.set_key(place, first.head, first.key);
                node.set_key(0, 0, KeyRef::EMPTY);
            }
        }
        for (id, _) in &path[keeper + 1..] {
            let gone = self.node(*id);
            gone.entries()
                .iter()
                .for_each(|entry| self.heap.free(entry.key));
            self.arena.free(*id);
        }
        for (id, _) in &path[locked.start..=keeper] {
            self.node(*id).unlock();
        }
    }

    /// Merges nearly empty nodes on the path to `key` with a neighbour, and collapses a root with
    /// one child.
    fn rebalance(&self, key: &[u8]) {
        let path = self.path(key);
        for level in (1..path.len()).rev() {
            let (parent, at) = (self.node(path[level - 1].0), path[level - 1].1);
            if self.node(path[level].0).count() <= self.most / 4 && parent.count() > 1 {
                let right = if at + 1 < parent.count() { at + 1 } else { at };
                self.merge(parent, right);
            }
        }
        let root = self.node(0);
        while root.level() > 0 && root.count() == 1 {
            root.lock();
            let (id, child) = (root.child(0), self.node(root.child(0)));
            child.lock();
            root.fill(child.level(), &child.entries());
            self.arena.free(id);
            root.unlock();
        }
    }

    /// Merges the child at `at` of `parent` into its left neighbour if both fit with room to spare.
    fn merge(&self, parent: &Node<N>, at: usize) {
        let (left, right_id) = (self.node(parent.child(at - 1)), parent.child(at));
        let right = self.node(right_id);
        parent.lock();
        left.lock();
        right.lock();
        if left.count() + right.count() <= self.most - self.most / 4 {
            let separator = parent.remove(at);
            let mut entries = left.entries();
            let start = entries.len();
            entries.extend(right.entries());
            if left.level() == 0 {
                self.heap.free(separator.key);
            } else {
                entries[start].head = separator.head;
                entries[start].key = separator.key;
            }
            left.fill(left.level(), &entries);
            self.arena.free(right_id);
        } else {
            right.unlock();
        }
        left.unlock();
        parent.unlock();
    }
}
