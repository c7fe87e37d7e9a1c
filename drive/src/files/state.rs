//! All that the file system is, behind one lock: nodes, free space, bytes, recording, journal.
//!
//! An operation looks first and changes then, so that it either fails without a trace or happens
//! as a whole. It tells the recording what it does, in the order in which it does it. Its last step
//! is [`State::settle`]: the journal has it, and only then the blocks it freed are discarded and
//! can be used again; a death in between leaves blocks that nobody has, never a file with another
//! file's bytes.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use fuser::Errno;
use parking_lot::RwLock;
use rustc_hash::FxHashMap;

use super::directory::Directory;
use super::extents::Extents;
use super::journal::Journal;
use super::nodes::{Body, Node};
use crate::faults::Faults;
use crate::image::Image;
use crate::recording::event::{FlushKind, Write};
use crate::recording::{Event, Extent, NodeId, NodeKind, Sink};
use crate::space::Space;

/// An answer to the kernel.
pub(super) type Answer<T> = Result<T, Errno>;

/// Who asks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caller {
    pub(super) uid: u32,
    pub(super) gid: u32,
}

impl Caller {
    /// Whether writing leaves suid and sgid alone. The kernel asks for `CAP_FSETID`, which cannot
    /// be seen from here; root has it.
    pub(super) fn keeps_privileges(self) -> bool {
        self.uid == 0
    }
}

/// What was done, for reports.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) written: AtomicU64,
    pub(super) read: AtomicU64,
    pub(super) flushes: AtomicU64,
}

/// What the file system and its mount share.
pub(super) struct Shared {
    pub(super) state: RwLock<State>,
    pub(super) counters: Counters,
}

/// The file system.
pub(super) struct State {
    pub(super) nodes: FxHashMap<NodeId, Node>,
    /// The highest number that a node ever had.
    pub(super) last_node: u64,
    pub(super) space: Space,
    pub(super) image: Image,
    pub(super) journal: Option<Journal>,
    pub(super) faults: Arc<Faults>,
    /// Blocks that may be in use once a fault has filled the drive.
    pub(super) full_at: Option<u64>,
    sink: Arc<dyn Sink>,
    /// Blocks that the operation under way has freed.
    freed: Vec<(NodeId, Vec<Extent>)>,
    /// Whether the drive was unmounted: nothing is recorded any more.
    closed: bool,
}

impl State {
    /// A file system with a root directory.
    pub(super) fn new(image: Image, sink: Arc<dyn Sink>) -> State {
        let body = Body::empty(NodeKind::Directory, Vec::new());
        let (uid, gid) = (
            rustix::process::getuid().as_raw(),
            rustix::process::getgid().as_raw(),
        );
        let mut root = Node::new(body, 0o755, uid, gid);
        root.links = 2;
        let mut state = State {
            nodes: FxHashMap::default(),
            last_node: NodeId::ROOT.0,
            space: Space::new(image.blocks()),
            image,
            journal: None,
            faults: Arc::default(),
            full_at: None,
            sink,
            freed: Vec::new(),
            closed: false,
        };
        state.nodes.insert(NodeId::ROOT, root);
        state
    }

    /// A node that the kernel knows.
    pub(super) fn node(&self, id: NodeId) -> Answer<&Node> {
        self.nodes.get(&id).ok_or(Errno::ESTALE)
    }

    /// A node that the kernel knows, to change it; [`State::save`] follows.
    pub(super) fn node_mut(&mut self, id: NodeId) -> Answer<&mut Node> {
        self.nodes.get_mut(&id).ok_or(Errno::ESTALE)
    }

    /// The entries of a directory.
    pub(super) fn directory(&self, id: NodeId) -> Answer<&Directory> {
        match &self.node(id)?.body {
            Body::Directory(directory) => Ok(directory),
            _ => Err(Errno::ENOTDIR),
        }
    }

    /// The extents of a file.
    pub(super) fn extents(&self, id: NodeId) -> Answer<&Extents> {
        match &self.node(id)?.body {
            Body::File(extents) => Ok(extents),
            Body::Directory(_) => Err(Errno::EISDIR),
            _ => Err(Errno::EINVAL),
        }
    }

    /// The target of a symbolic link.
    pub(super) fn target(&self, id: NodeId) -> Answer<&[u8]> {
        match &self.node(id)?.body {
            Body::Symlink(target) => Ok(target),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Tells the recording what happens.
    pub(super) fn note(&self, event: Event) -> Answer<()> {
        if self.closed {
            return Err(Errno::EIO);
        }
        self.sink.note(event).map_err(|_| Errno::EIO)
    }

    /// Tells the recording of a write.
    pub(super) fn note_write(&self, write: Write, bytes: &[u8]) -> Answer<()> {
        if self.closed {
            return Err(Errno::EIO);
        }
        self.sink.write(write, bytes).map_err(|_| Errno::EIO)
    }

    /// Nothing that comes from now on is recorded, or done.
    pub(super) fn close(&mut self) {
        self.closed = true;
    }

    /// Lets the journal have a node's attributes.
    pub(super) fn save(&mut self, id: NodeId) {
        if let (Some(journal), Some(node)) = (&mut self.journal, self.nodes.get_mut(&id)) {
            node.unsaved = false;
            journal.node(id, node);
        }
    }

    /// Sets or removes an entry.
    pub(super) fn set_entry(&mut self, parent: NodeId, name: &[u8], node: Option<NodeId>) {
        if let Some(Node {
            body: Body::Directory(directory),
            ..
        }) = self.nodes.get_mut(&parent)
        {
            match node {
                Some(node) => directory.set(name, node),
                None => directory.remove(name),
            }
            if let Some(journal) = &mut self.journal {
                journal.entry(parent, name, node);
            }
        }
    }

    /// Sets or removes an extended attribute.
    pub(super) fn set_xattr(&mut self, id: NodeId, name: &[u8], value: Option<&[u8]>) {
        if let Some(node) = self.nodes.get_mut(&id) {
            match value {
                Some(value) => node.xattrs.insert(name.to_vec(), value.to_vec()),
                None => node.xattrs.remove(name),
            };
            if let Some(journal) = &mut self.journal {
                journal.xattr(id, name, value);
            }
        }
    }

    /// Maps a hole of a file, of `blocks` blocks from `block` on. There must be room.
    pub(super) fn map(&mut self, id: NodeId, block: u64, blocks: u64) -> Answer<()> {
        let hints = self.extents(id)?.hints(block);
        let places = self.space.take(&hints, blocks).ok_or(Errno::ENOSPC)?;
        let Some(Node {
            body: Body::File(extents),
            ..
        }) = self.nodes.get_mut(&id)
        else {
            return Err(Errno::EINVAL);
        };
        let mut at = block;
        for place in places {
            extents.insert(at, place);
            if let Some(journal) = &mut self.journal {
                journal.mapped(id, at, place);
            }
            at += place.blocks;
        }
        Ok(())
    }

    /// Makes blocks of a file a hole.
    pub(super) fn unmap(&mut self, id: NodeId, block: u64, blocks: u64) {
        if let Some(Node {
            body: Body::File(extents),
            ..
        }) = self.nodes.get_mut(&id)
        {
            let freed = extents.remove(block, blocks);
            if freed.is_empty() {
                return;
            }
            if let Some(journal) = &mut self.journal {
                journal.hole(id, block, blocks);
            }
            self.freed.push((id, freed));
        }
    }

    /// Frees a node that has neither names nor users.
    pub(super) fn free_if_unused(&mut self, id: NodeId) -> Answer<()> {
        let Some(node) = self.nodes.get(&id) else {
            return Ok(());
        };
        if node.links > 0 || node.opens > 0 || node.freed {
            return Ok(());
        }
        self.note(Event::Free { node: id })?;
        self.unmap(id, 0, u64::MAX);
        if let Some(journal) = &mut self.journal {
            journal.gone(id);
        }
        if let Some(node) = self.nodes.get_mut(&id) {
            node.freed = true;
            node.xattrs.clear();
            if node.lookups == 0 {
                self.nodes.remove(&id);
            }
        }
        Ok(())
    }

    /// Frees all nodes that have no names; nobody uses anything any more.
    pub(super) fn free_all_unused(&mut self) -> Answer<()> {
        let unnamed = self
            .nodes
            .iter()
            .filter(|(_, node)| node.links == 0 && !node.freed);
        let mut unnamed: Vec<NodeId> = unnamed.map(|(id, _)| *id).collect();
        unnamed.sort_unstable();
        for id in unnamed {
            if let Some(node) = self.nodes.get_mut(&id) {
                node.opens = 0;
            }
            self.free_if_unused(id)?;
        }
        self.settle()
    }

    /// Ends an operation: the journal has it, and the blocks it freed are free.
    pub(super) fn settle(&mut self) -> Answer<()> {
        if let Some(journal) = &mut self.journal {
            journal.commit().map_err(Errno::from)?;
        }
        for (node, extents) in std::mem::take(&mut self.freed) {
            for extent in &extents {
                self.image.discard(*extent).map_err(Errno::from)?;
                self.space.give(*extent);
            }
            self.note(Event::Discard { node, extents })?;
        }
        Ok(())
    }

    /// Makes something durable.
    pub(super) fn flush(&mut self, id: NodeId, kind: FlushKind) -> Answer<()> {
        if self.node(id)?.unsaved {
            self.save(id);
            self.settle()?;
        }
        if self.faults.fail_flush() {
            self.note(Event::FailedFlush { node: id, kind })?;
            return Err(Errno::EIO);
        }
        self.note(Event::Flush { node: id, kind })
    }

    /// The kernel was told of a node.
    pub(super) fn remember(&mut self, id: NodeId) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.lookups += 1;
        }
    }

    /// The kernel no longer knows a node.
    pub(super) fn forget(&mut self, id: NodeId, count: u64) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.lookups = node.lookups.saturating_sub(count);
            if node.freed && node.lookups == 0 {
                self.nodes.remove(&id);
            }
        }
    }

    /// A node was opened.
    pub(super) fn open(&mut self, id: NodeId, writes: bool) -> Answer<()> {
        let node = self.node_mut(id)?;
        if node.freed {
            return Err(Errno::ENOENT);
        }
        node.opens += 1;
        node.writers += u32::from(writes);
        Ok(())
    }

    /// An open node was closed for good.
    pub(super) fn release(&mut self, id: NodeId, writes: bool) -> Answer<()> {
        let node = self.node_mut(id)?;
        node.opens = node.opens.saturating_sub(1);
        node.writers = node.writers.saturating_sub(u32::from(writes));
        if node.unsaved {
            self.save(id);
        }
        self.free_if_unused(id)?;
        self.settle()
    }
}
