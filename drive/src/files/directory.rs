//! The entries of a directory, and the places of a listing.
//!
//! A listing is read in pieces, and the directory may change in between. Each entry has a *cookie*
//! that is never used again; a listing goes by cookies and continues behind the last one it gave.
//! So an entry that is there all the time is listed exactly once.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::recording::NodeId;

/// The cookie of the entry `..`; entries follow.
const PARENT_COOKIE: u64 = 2;

/// The entries of a directory.
#[derive(Clone, Debug)]
pub(super) struct Directory {
    /// Where `..` leads.
    pub(super) parent: NodeId,
    by_name: FxHashMap<Arc<[u8]>, (u64, NodeId)>,
    by_cookie: BTreeMap<u64, Arc<[u8]>>,
    last_cookie: u64,
}

impl Directory {
    /// An empty directory.
    pub(super) fn new(parent: NodeId) -> Directory {
        Directory {
            parent,
            by_name: FxHashMap::default(),
            by_cookie: BTreeMap::new(),
            last_cookie: PARENT_COOKIE,
        }
    }

    /// What a name names.
    pub(super) fn get(&self, name: &[u8]) -> Option<NodeId> {
        self.by_name.get(name).map(|(_, node)| *node)
    }

    /// Whether there are no entries but `.` and `..`.
    pub(super) fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Lets a name name a node, instead of what it named before.
    pub(super) fn set(&mut self, name: &[u8], node: NodeId) {
        if let Some(entry) = self.by_name.get_mut(name) {
            entry.1 = node;
            return;
        }
        self.last_cookie += 1;
        let name: Arc<[u8]> = name.into();
        self.by_cookie.insert(self.last_cookie, name.clone());
        self.by_name.insert(name, (self.last_cookie, node));
    }

    /// Forgets a name.
    pub(super) fn remove(&mut self, name: &[u8]) {
        if let Some((cookie, _)) = self.by_name.remove(name) {
            self.by_cookie.remove(&cookie);
        }
    }

    /// The entries behind a cookie, 0 for all: cookie, name, node. `.` and `..` come first.
    pub(super) fn list(
        &self,
        own: NodeId,
        behind: u64,
    ) -> impl Iterator<Item = (u64, &[u8], NodeId)> + '_ {
        let dots = [
            (1, b".".as_slice(), own),
            (PARENT_COOKIE, b"..".as_slice(), self.parent),
        ];
        let dots = dots
            .into_iter()
            .filter(move |(cookie, _, _)| *cookie > behind);
        let entries = self.by_cookie.range(behind.saturating_add(1)..);
        dots.chain(entries.map(|(cookie, name)| (*cookie, &**name, self.by_name[name].1)))
    }

    /// All entries but `.` and `..`.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&[u8], NodeId)> + '_ {
        self.by_cookie
            .values()
            .map(|name| (&**name, self.by_name[name].1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_in_pieces_survives_changes() {
        let mut directory = Directory::new(NodeId::ROOT);
        for (at, name) in [b"a", b"b", b"c", b"d"].into_iter().enumerate() {
            directory.set(name, NodeId(10 + at as u64));
        }
        let first: Vec<_> = directory.list(NodeId(5), 0).take(4).collect();
        let names: Vec<&[u8]> = first.iter().map(|(_, name, _)| *name).collect();
        assert_eq!(names, [b".".as_slice(), b"..", b"a", b"b"]);
        let last = first[3].0;
        directory.remove(b"a");
        directory.remove(b"c");
        directory.set(b"e", NodeId(20));
        directory.set(b"d", NodeId(21));
        let rest: Vec<_> = directory
            .list(NodeId(5), last)
            .map(|(_, n, id)| (n, id))
            .collect();
        assert_eq!(
            rest,
            [(b"d".as_slice(), NodeId(21)), (b"e".as_slice(), NodeId(20))]
        );
    }
}
