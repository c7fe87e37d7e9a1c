//! A file system as a state has it: nodes, names and bytes. Cloning shares all of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use xxhash_rust::xxh3::xxh3_64;

use super::content::{BLOCK, Blocks, Cell, Source, Store, mix};
use crate::error::DriveError;
use crate::recording::event::Attributes;
use crate::recording::{NodeId, NodeKind, PIECE, PieceId};

/// A name in a directory.
pub(super) type Name = Arc<[u8]>;

/// What a node is.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) kind: NodeKind,
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) device: u32,
    pub(super) target: Vec<u8>,
    pub(super) size: u64,
    pub(super) blocks: Blocks,
    pub(super) entries: BTreeMap<Name, NodeId>,
    pub(super) xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Entries that name it.
    pub(super) names: u32,
}

impl Node {
    /// A node that holds nothing.
    pub(super) fn new(kind: NodeKind, mode: u32) -> Node {
        Node {
            kind,
            mode,
            uid: 0,
            gid: 0,
            device: 0,
            target: Vec::new(),
            size: 0,
            blocks: Blocks::default(),
            entries: BTreeMap::new(),
            xattrs: BTreeMap::new(),
            names: 0,
        }
    }

    /// Follows a change of attributes. Times are not kept: no check may rest on them.
    pub(super) fn change(&mut self, change: &Attributes) {
        self.mode = change.mode.unwrap_or(self.mode);
        self.uid = change.uid.unwrap_or(self.uid);
        self.gid = change.gid.unwrap_or(self.gid);
    }

    /// Sets the size. What a shorter file loses reads as zeros should it grow again.
    pub(super) fn resize(&mut self, size: u64, store: &Store) -> Result<(), DriveError> {
        if size < self.size {
            self.trim(size, store)?;
        }
        self.size = size;
        Ok(())
    }

    /// Forgets the bytes from `size` on.
    pub(super) fn trim(&mut self, size: u64, store: &Store) -> Result<(), DriveError> {
        self.blocks.cut(size.div_ceil(BLOCK));
        let kept = (size % BLOCK) as usize;
        if kept > 0 && !matches!(self.blocks.get(size / BLOCK), Cell::Zeros) {
            let mut bytes = Box::new([0; PIECE]);
            store.read(self.blocks.get(size / BLOCK), &mut bytes)?;
            bytes[kept..].fill(0);
            self.blocks.set(size / BLOCK, Cell::of(bytes));
        }
        Ok(())
    }
}

/// Bytes that a write brings.
#[derive(Clone, Debug)]
pub(super) enum Payload {
    /// Pieces of a recording: the write's bytes cut at multiples of 4096 of their place.
    Pieces(Source, Arc<[PieceId]>),
    /// Zeros.
    Zeros,
}

/// A file system.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    nodes: FxHashMap<NodeId, Arc<Node>>,
}

impl Tree {
    /// A file system with an empty root directory, which belongs to whoever runs us.
    pub(super) fn files() -> Tree {
        let mut root = Node::new(NodeKind::Directory, 0o755);
        root.uid = rustix::process::getuid().as_raw();
        root.gid = rustix::process::getgid().as_raw();
        Tree::of(root)
    }

    /// A disk of zeros: its root is a file.
    pub(super) fn disk(size: u64) -> Tree {
        let mut disk = Node::new(NodeKind::File, 0o600);
        disk.size = size;
        Tree::of(disk)
    }

    fn of(root: Node) -> Tree {
        let mut nodes = FxHashMap::default();
        nodes.insert(NodeId::ROOT, Arc::new(root));
        Tree { nodes }
    }

    /// A node.
    pub(super) fn get(&self, id: NodeId) -> Option<&Arc<Node>> {
        self.nodes.get(&id)
    }

    /// A node, to change it.
    pub(super) fn get_mut(&mut self, id: NodeId) -> Option<&mut Node> {
        self.nodes.get_mut(&id).map(Arc::make_mut)
    }

    /// Adds a node.
    pub(super) fn insert(&mut self, id: NodeId, node: Node) {
        self.nodes.insert(id, Arc::new(node));
    }

    /// Forgets a node.
    pub(super) fn remove(&mut self, id: NodeId) {
        self.nodes.remove(&id);
    }

    /// Lets a directory's entry name a node, or nothing.
    pub(super) fn set_entry(&mut self, parent: NodeId, name: &Name, node: Option<NodeId>) {
        let Some(directory) = self.get_mut(parent) else {
            return;
        };
        let before = match node {
            Some(node) => directory.entries.insert(name.clone(), node),
            None => directory.entries.remove(name),
        };
        if before == node {
            return;
        }
        if let Some(before) = before.and_then(|id| self.get_mut(id)) {
            before.names = before.names.saturating_sub(1);
        }
        if let Some(now) = node.and_then(|id| self.get_mut(id)) {
            now.names += 1;
        }
    }

    /// Writes the bytes `from..to` of a file, which are part of a payload that begins at
    /// `offset`. The file's size stays as it is.
    pub(super) fn write(
        &mut self,
        id: NodeId,
        offset: u64,
        payload: &Payload,
        (from, to): (u64, u64),
        store: &Store,
    ) -> Result<(), DriveError> {
        let Some(node) = self.get_mut(id) else {
            return Ok(());
        };
        let mut at = from;
        while at < to {
            let block = at / BLOCK;
            if matches!(payload, Payload::Zeros) && at.is_multiple_of(BLOCK) && to / BLOCK > block {
                node.blocks.clear(block, to / BLOCK);
                at = to / BLOCK * BLOCK;
                continue;
            }
            let end = to.min((block + 1) * BLOCK);
            let whole = end - at == BLOCK;
            let cell = match payload {
                Payload::Zeros => {
                    let mut bytes = Box::new([0; PIECE]);
                    store.read(node.blocks.get(block), &mut bytes)?;
                    bytes[(at % BLOCK) as usize..][..(end - at) as usize].fill(0);
                    Cell::of(bytes)
                }
                Payload::Pieces(source, pieces) => {
                    let piece = pieces[(block - offset / BLOCK) as usize];
                    match (piece, whole) {
                        (PieceId::ZEROS, true) => Cell::Zeros,
                        (piece, true) => Cell::Piece(*source, piece),
                        (piece, false) => {
                            let mut bytes = Box::new([0; PIECE]);
                            store.read(node.blocks.get(block), &mut bytes)?;
                            // Where in the piece `at` lies.
                            let skip = (at - offset.max(block * BLOCK)) as usize;
                            let into = &mut bytes[(at % BLOCK) as usize..][..(end - at) as usize];
                            store.piece(*source, piece, |piece| {
                                into.copy_from_slice(&piece[skip..skip + into.len()]);
                            })?;
                            Cell::of(bytes)
                        }
                    }
                }
            };
            node.blocks.set(block, cell);
            at = end;
        }
        Ok(())
    }

    /// The nodes that have a name in a directory that has one, the root first, each with the path
    /// by which it was found first. A directory is found once.
    pub(super) fn reachable(&self) -> Vec<(NodeId, Vec<u8>)> {
        let mut seen = FxHashSet::default();
        let mut found = vec![(NodeId::ROOT, Vec::new())];
        seen.insert(NodeId::ROOT);
        let mut next = 0;
        while next < found.len() {
            let (id, path) = found[next].clone();
            next += 1;
            let Some(node) = self.get(id) else {
                continue;
            };
            for (name, child) in &node.entries {
                if self.nodes.contains_key(child) && seen.insert(*child) {
                    let slash: &[u8] = if path.is_empty() { b"" } else { b"/" };
                    found.push((*child, [&path[..], slash, &name[..]].concat()));
                }
            }
        }
        found
    }

    /// Equal for file systems that look the same to a program.
    pub(super) fn hash(&self) -> u64 {
        let mut sum = 0u64;
        for (id, path) in self.reachable() {
            let Some(node) = self.get(id) else {
                continue;
            };
            let mut hash = mix(xxh3_64(&path) ^ node.size);
            hash = mix(hash ^ node.blocks.hash());
            let flags = [node.kind as u32, node.mode, node.uid, node.gid];
            for flag in flags {
                hash = mix(hash ^ u64::from(flag));
            }
            hash ^= xxh3_64(&node.target);
            for (name, value) in &node.xattrs {
                hash = mix(hash ^ xxh3_64(name)) ^ xxh3_64(value);
            }
            // Second names of files.
            for (name, child) in &node.entries {
                hash = hash.wrapping_add(mix(xxh3_64(name) ^ mix(child.0)));
            }
            sum = sum.wrapping_add(mix(hash));
        }
        sum
    }
}
