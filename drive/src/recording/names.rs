//! Which path a node has, as events change it.
//!
//! On the face `files`, names are entries of directories. A node keeps its last path after its
//! last name is gone, because programs write to files that they have removed. On the other faces
//! there are no names: [`Event::Map`] tells paths, which are kept by their blocks elsewhere. Some
//! nodes that were freed are remembered for a while, for the discards that follow.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::event::{Event, NodeId, NodeKind};

/// A name of a node: the directory and the entry.
type Entry = (NodeId, Vec<u8>);

#[derive(Clone, Debug, Default)]
struct Node {
    kind: Option<NodeKind>,
    /// Its names now, in the order in which it got them.
    names: Vec<Entry>,
    /// Its path when it lost its last name.
    last_path: Option<Vec<u8>>,
    size: u64,
}

/// The names of all nodes.
#[derive(Clone, Debug, Default)]
pub struct Names {
    nodes: FxHashMap<NodeId, Node>,
    entries: FxHashMap<Entry, NodeId>,
    /// Nodes that were freed: their discards come next, and want to know whose they are.
    freed: VecDeque<NodeId>,
    changes: u64,
}

/// The number of freed nodes that are remembered.
const FREED: usize = 256;

impl Names {
    /// Creates the names of an empty drive: only the root.
    #[must_use]
    pub fn new() -> Names {
        Names::default()
    }

    /// Follows an event.
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::Write(write) => {
                let end = write.offset.saturating_add(u64::from(write.len));
                let node = self.nodes.entry(write.node).or_default();
                node.size = node.size.max(end);
            }
            Event::Resize { node, size } => self.nodes.entry(*node).or_default().size = *size,
            Event::Allocate {
                node,
                offset,
                len,
                keep_size: false,
            } => {
                let node = self.nodes.entry(*node).or_default();
                node.size = node.size.max(offset.saturating_add(*len));
            }
            Event::Make { node, kind, .. } => {
                self.nodes.entry(*node).or_default().kind = Some(*kind);
            }
            Event::Link { parent, name, node } => self.link(*parent, name, *node),
            Event::Unlink { parent, name, node } => self.unlink(*parent, name, *node),
            Event::Rename {
                parent,
                name,
                to,
                to_name,
                node,
                other,
                exchange,
            } => {
                if let Some(other) = other {
                    self.unlink(*to, to_name, *other);
                }
                self.unlink(*parent, name, *node);
                self.link(*to, to_name, *node);
                if let (Some(other), true) = (other, exchange) {
                    self.link(*parent, name, *other);
                }
            }
            Event::Free { node } => {
                self.freed.push_back(*node);
                if self.freed.len() > FREED {
                    let oldest = self.freed.pop_front();
                    oldest.map(|oldest| self.nodes.remove(&oldest));
                }
                self.changes += 1;
            }
            _ => {}
        }
    }

    fn link(&mut self, parent: NodeId, name: &[u8], node: NodeId) {
        self.changes += 1;
        self.entries.insert((parent, name.into()), node);
        let named = self.nodes.entry(node).or_default();
        named.last_path = None;
        named.names.push((parent, name.into()));
    }

    fn unlink(&mut self, parent: NodeId, name: &[u8], node: NodeId) {
        self.changes += 1;
        let path = self.path(node);
        self.entries.remove(&(parent, name.to_vec()));
        let named = self.nodes.entry(node).or_default();
        named.names.retain(|(p, n)| (*p, &n[..]) != (parent, name));
        if named.names.is_empty() {
            named.last_path = path;
        }
    }

    /// A path of a node from the root, without a slash at its beginning: any one of them if it has
    /// several names, its last one if it has none. `None` if it never had one. The root's path is
    /// empty.
    #[must_use]
    pub fn path(&self, node: NodeId) -> Option<Vec<u8>> {
        if node == NodeId::ROOT {
            return Some(Vec::new());
        }
        let mut parts: Vec<&[u8]> = Vec::new();
        let mut at = node;
        let mut prefix: &[u8] = &[];
        // A recording that is not of a tree must not make this endless.
        while at != NodeId::ROOT && parts.len() <= self.nodes.len() {
            let named = self.nodes.get(&at)?;
            match named.names.last() {
                Some((parent, name)) => {
                    parts.push(name);
                    at = *parent;
                }
                None => {
                    prefix = named.last_path.as_deref()?;
                    break;
                }
            }
        }
        let mut path = prefix.to_vec();
        for part in parts.iter().rev() {
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(part);
        }
        Some(path)
    }

    /// A node's file name: the last part of its path.
    #[must_use]
    pub fn name(&self, node: NodeId) -> Option<&[u8]> {
        let named = self.nodes.get(&node)?;
        match named.names.last() {
            Some((_, name)) => Some(name),
            None => named.last_path.as_deref()?.rsplit(|b| *b == b'/').next(),
        }
    }

    /// What a directory's entry names.
    #[must_use]
    pub fn lookup(&self, parent: NodeId, name: &[u8]) -> Option<NodeId> {
        self.entries.get(&(parent, name.to_vec())).copied()
    }

    /// What a node is; `None` if no [`Event::Make`] told.
    #[must_use]
    pub fn kind(&self, node: NodeId) -> Option<NodeKind> {
        match node {
            NodeId::ROOT => Some(NodeKind::Directory),
            _ => self.nodes.get(&node)?.kind,
        }
    }

    /// A file's size in bytes, as its writes and resizes tell; 0 of what is not known.
    #[must_use]
    pub fn size(&self, node: NodeId) -> u64 {
        self.nodes.get(&node).map_or(0, |node| node.size)
    }

    /// Whether a node has a name now.
    #[must_use]
    pub fn is_linked(&self, node: NodeId) -> bool {
        node == NodeId::ROOT || self.nodes.get(&node).is_some_and(|n| !n.names.is_empty())
    }

    /// A number that changes whenever some path may have changed: what was derived from paths
    /// holds as long as it stays.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: NodeId = NodeId::ROOT;

    fn link(parent: NodeId, name: &str, node: u64) -> Event {
        Event::Link {
            parent,
            name: name.into(),
            node: NodeId(node),
        }
    }

    fn unlink(parent: NodeId, name: &str, node: u64) -> Event {
        Event::Unlink {
            parent,
            name: name.into(),
            node: NodeId(node),
        }
    }

    fn rename(from: (u64, &str), to: (u64, &str), node: u64, other: Option<u64>) -> Event {
        Event::Rename {
            parent: NodeId(from.0),
            name: from.1.into(),
            to: NodeId(to.0),
            to_name: to.1.into(),
            node: NodeId(node),
            other: other.map(NodeId),
            exchange: false,
        }
    }

    fn names(events: &[Event]) -> Names {
        let mut names = Names::new();
        events.iter().for_each(|event| names.apply(event));
        names
    }

    fn path(names: &Names, node: u64) -> Option<String> {
        let path = names.path(NodeId(node))?;
        Some(String::from_utf8(path).expect("ASCII"))
    }

    #[test]
    fn files_move_with_their_directories() {
        let mut names = names(&[link(ROOT, "a", 2), link(NodeId(2), "f", 3)]);
        assert_eq!(path(&names, 3).as_deref(), Some("a/f"));
        names.apply(&rename((1, "a"), (1, "b"), 2, None));
        assert_eq!(path(&names, 3).as_deref(), Some("b/f"));
        assert_eq!(names.lookup(ROOT, b"a"), None);
        assert_eq!(names.lookup(ROOT, b"b"), Some(NodeId(2)));
        assert_eq!(path(&names, 9), None);
    }

    #[test]
    fn a_removed_file_keeps_its_last_path_and_a_replaced_one_too() {
        let mut names = names(&[link(ROOT, "f", 2), link(ROOT, "g", 3)]);
        names.apply(&rename((1, "g"), (1, "f"), 3, Some(2)));
        assert_eq!(path(&names, 2).as_deref(), Some("f"));
        assert_eq!(path(&names, 3).as_deref(), Some("f"));
        assert_eq!(names.lookup(ROOT, b"f"), Some(NodeId(3)));
        assert!(!names.is_linked(NodeId(2)) && names.is_linked(NodeId(3)));
        names.apply(&unlink(ROOT, "f", 3));
        names.apply(&Event::Free { node: NodeId(3) });
        assert_eq!(names.name(NodeId(3)), Some(&b"f"[..]));
        assert_eq!(names.lookup(ROOT, b"f"), None);
    }

    #[test]
    fn hard_links_name_one_node() {
        let mut names = names(&[link(ROOT, "a", 2), link(ROOT, "b", 2)]);
        names.apply(&unlink(ROOT, "b", 2));
        assert_eq!(path(&names, 2).as_deref(), Some("a"));
    }

    #[test]
    fn exchanged_files_swap_their_paths() {
        let mut names = names(&[link(ROOT, "a", 2), link(ROOT, "d", 4)]);
        names.apply(&link(NodeId(4), "b", 3));
        names.apply(&Event::Rename {
            parent: ROOT,
            name: "a".into(),
            to: NodeId(4),
            to_name: "b".into(),
            node: NodeId(2),
            other: Some(NodeId(3)),
            exchange: true,
        });
        assert_eq!(path(&names, 2).as_deref(), Some("d/b"));
        assert_eq!(path(&names, 3).as_deref(), Some("a"));
    }

    #[test]
    fn a_circle_of_directories_has_no_path_but_ends() {
        let names = names(&[link(NodeId(3), "a", 2), link(NodeId(2), "b", 3)]);
        assert!(path(&names, 2).is_some());
    }
}
