//! Names: making, linking, renaming and removing nodes.
//!
//! The kernel has checked permissions, and that no directory is moved into itself.

use fuser::{Errno, FileAttr, RenameFlags};

use super::acl::{self, Acl};
use super::nodes::{Body, Node, SGID};
use super::state::{Answer, Caller, State};
use crate::recording::{Event, NodeId, NodeKind};

/// The longest name, in bytes.
pub(super) const NAME_MAX: usize = 255;
/// The most names that a file can have: those of ext4.
const LINKS_MAX: u32 = 65_000;

/// A node that is to be made.
#[derive(Debug)]
pub(super) struct NewNode {
    pub(super) kind: NodeKind,
    /// Permission bits that the program asks for.
    pub(super) mode: u32,
    /// Those of them that it does not get, unless the directory has a default list.
    pub(super) umask: u32,
    /// Device number of a device.
    pub(super) device: u32,
    /// Target of a symbolic link.
    pub(super) target: Vec<u8>,
}

/// Permission bits, and lists by the names of their extended attributes.
type Inherited = (u32, Vec<(&'static [u8], Acl)>);

impl State {
    /// Finds a name; the kernel then knows the node.
    pub(super) fn lookup(&mut self, parent: NodeId, name: &[u8]) -> Answer<FileAttr> {
        let id = self.find(parent, name)?.ok_or(Errno::ENOENT)?;
        self.remember(id);
        Ok(self.node(id)?.attributes(id))
    }

    fn find(&self, parent: NodeId, name: &[u8]) -> Answer<Option<NodeId>> {
        if name.len() > NAME_MAX {
            return Err(Errno::ENAMETOOLONG);
        }
        Ok(self.directory(parent)?.get(name))
    }

    fn is_free(&self, parent: NodeId, name: &[u8]) -> Answer<()> {
        match self.find(parent, name)? {
            Some(_) => Err(Errno::EEXIST),
            None if self.node(parent)?.links == 0 => Err(Errno::ENOENT),
            None => Ok(()),
        }
    }

    /// Makes a node and its first name; the kernel then knows it.
    pub(super) fn make(
        &mut self,
        parent: NodeId,
        name: &[u8],
        new: NewNode,
        caller: Caller,
    ) -> Answer<FileAttr> {
        self.is_free(parent, name)?;
        let id = self.add(parent, name, new, caller)?;
        self.settle()?;
        self.remember(id);
        Ok(self.node(id)?.attributes(id))
    }

    fn add(&mut self, parent: NodeId, name: &[u8], new: NewNode, caller: Caller) -> Answer<NodeId> {
        let NewNode {
            kind,
            mode,
            umask,
            device,
            target,
        } = new;
        let (mut mode, lists) = self.inherit(parent, kind, mode, umask)?;
        let above = self.node(parent)?;
        let mut gid = caller.gid;
        if above.mode & SGID != 0 {
            gid = above.gid;
            if kind == NodeKind::Directory {
                mode |= SGID;
            }
        }
        self.last_node += 1;
        let id = NodeId(self.last_node);
        let mut node = Node::new(Body::empty(kind, target.clone()), mode, caller.uid, gid);
        (node.device, node.links) = (device, 1);
        if let Body::Directory(directory) = &mut node.body {
            directory.parent = parent;
            node.links = 2;
        }
        let uid = caller.uid;
        self.note(Event::Make {
            node: id,
            kind,
            mode,
            uid,
            gid,
            device,
            target,
        })?;
        self.note(Event::Link {
            parent,
            name: name.to_vec(),
            node: id,
        })?;
        self.nodes.insert(id, node);
        self.save(id);
        for (name, list) in lists {
            self.note_xattr(id, name, Some(&list.encode()))?;
        }
        self.set_entry(parent, name, Some(id));
        self.change_directory(parent, i32::from(kind == NodeKind::Directory))?;
        Ok(id)
    }

    /// The permission bits of a node that is made in a directory, and the lists that it inherits.
    fn inherit(&self, parent: NodeId, kind: NodeKind, mode: u32, umask: u32) -> Answer<Inherited> {
        if kind == NodeKind::Symlink {
            return Ok((mode, Vec::new()));
        }
        let Some(list) = self.node(parent)?.xattrs.get(acl::DEFAULT) else {
            return Ok((mode & !umask, Vec::new()));
        };
        let default = Acl::decode(list)?;
        let mut access = default.clone();
        access.limit(mode);
        let mode = mode & !0o777 | access.bits();
        let mut lists = Vec::new();
        if !access.is_minimal() {
            lists.push((acl::ACCESS, access));
        }
        if kind == NodeKind::Directory {
            lists.push((acl::DEFAULT, default));
        }
        Ok((mode, lists))
    }

    /// The entries of a directory changed, and it got or lost subdirectories.
    fn change_directory(&mut self, id: NodeId, subdirectories: i32) -> Answer<()> {
        let node = self.node_mut(id)?;
        node.links = node.links.saturating_add_signed(subdirectories);
        node.touch();
        self.save(id);
        Ok(())
    }

    /// Gives a node another name; the kernel then knows it once more.
    pub(super) fn link(&mut self, id: NodeId, parent: NodeId, name: &[u8]) -> Answer<FileAttr> {
        self.is_free(parent, name)?;
        let node = self.node(id)?;
        if node.is_directory() {
            return Err(Errno::EPERM);
        } else if node.links == 0 {
            return Err(Errno::ENOENT);
        } else if node.links >= LINKS_MAX {
            return Err(Errno::EMLINK);
        }
        self.note(Event::Link {
            parent,
            name: name.to_vec(),
            node: id,
        })?;
        self.set_entry(parent, name, Some(id));
        self.change_links(id, 1)?;
        self.change_directory(parent, 0)?;
        self.settle()?;
        self.remember(id);
        Ok(self.node(id)?.attributes(id))
    }

    fn change_links(&mut self, id: NodeId, by: i32) -> Answer<()> {
        let node = self.node_mut(id)?;
        node.links = node.links.saturating_add_signed(by);
        node.times.changed = super::nodes::Time::now();
        self.save(id);
        Ok(())
    }

    /// Removes a name of a node that is no directory.
    pub(super) fn unlink(&mut self, parent: NodeId, name: &[u8]) -> Answer<()> {
        let id = self.find(parent, name)?.ok_or(Errno::ENOENT)?;
        if self.node(id)?.is_directory() {
            return Err(Errno::EISDIR);
        }
        self.remove(parent, name, id)
    }

    /// Removes an empty directory.
    pub(super) fn rmdir(&mut self, parent: NodeId, name: &[u8]) -> Answer<()> {
        let id = self.find(parent, name)?.ok_or(Errno::ENOENT)?;
        if !self.directory(id)?.is_empty() {
            return Err(Errno::ENOTEMPTY);
        }
        self.remove(parent, name, id)
    }

    fn remove(&mut self, parent: NodeId, name: &[u8], id: NodeId) -> Answer<()> {
        self.note(Event::Unlink {
            parent,
            name: name.to_vec(),
            node: id,
        })?;
        self.set_entry(parent, name, None);
        let directory = self.node(id)?.is_directory();
        self.change_directory(parent, -i32::from(directory))?;
        self.lose_name(id)?;
        self.settle()
    }

    /// A node lost a name, a directory its only one.
    fn lose_name(&mut self, id: NodeId) -> Answer<()> {
        let node = self.node(id)?;
        let lost = if node.is_directory() { node.links } else { 1 };
        self.change_links(id, -lost.cast_signed())?;
        self.free_if_unused(id)
    }

    /// Moves a name.
    pub(super) fn rename(
        &mut self,
        from: (NodeId, &[u8]),
        to: (NodeId, &[u8]),
        flags: RenameFlags,
        caller: Caller,
    ) -> Answer<()> {
        let exchange = flags.contains(RenameFlags::RENAME_EXCHANGE);
        let keep = flags.contains(RenameFlags::RENAME_NOREPLACE);
        let whiteout = flags.contains(RenameFlags::RENAME_WHITEOUT);
        if exchange && (keep || whiteout) || !(flags - RenameFlags::all()).is_empty() {
            return Err(Errno::EINVAL);
        }
        let id = self.find(from.0, from.1)?.ok_or(Errno::ENOENT)?;
        let other = self.find(to.0, to.1)?;
        match other {
            None if exchange => return Err(Errno::ENOENT),
            None if self.node(to.0)?.links == 0 => return Err(Errno::ENOENT),
            Some(_) if keep => return Err(Errno::EEXIST),
            Some(other) if other == id => return Ok(()),
            Some(other) if !exchange => self.may_replace(id, other)?,
            _ => {}
        }
        self.note(Event::Rename {
            parent: from.0,
            name: from.1.to_vec(),
            to: to.0,
            to_name: to.1.to_vec(),
            node: id,
            other,
            exchange,
        })?;
        self.set_entry(from.0, from.1, other.filter(|_| exchange));
        self.set_entry(to.0, to.1, Some(id));
        let lost = other.filter(|_| !exchange);
        let directory = |state: &State, id: Option<NodeId>| {
            id.and_then(|id| state.nodes.get(&id))
                .is_some_and(Node::is_directory)
        };
        let moved = i32::from(directory(self, Some(id)));
        let replaced = i32::from(directory(self, other));
        let back = if exchange { replaced } else { 0 };
        self.change_directory(from.0, back - moved)?;
        self.change_directory(to.0, moved - replaced)?;
        self.move_to(id, to.0)?;
        if let Some(other) = other.filter(|_| exchange) {
            self.move_to(other, from.0)?;
        }
        if whiteout {
            let (mode, device, target) = (0, 0, Vec::new());
            let new = NewNode {
                kind: NodeKind::CharDevice,
                mode,
                umask: 0,
                device,
                target,
            };
            self.add(from.0, from.1, new, caller)?;
        }
        if let Some(lost) = lost {
            self.lose_name(lost)?;
        }
        self.settle()
    }

    /// Whether a node may take the name of another.
    fn may_replace(&self, id: NodeId, other: NodeId) -> Answer<()> {
        match (self.node(id)?.is_directory(), &self.node(other)?.body) {
            (true, Body::Directory(directory)) if !directory.is_empty() => Err(Errno::ENOTEMPTY),
            (true, Body::Directory(_)) => Ok(()),
            (true, _) => Err(Errno::ENOTDIR),
            (false, Body::Directory(_)) => Err(Errno::EISDIR),
            (false, _) => Ok(()),
        }
    }

    /// A node's entry is now in `parent`.
    fn move_to(&mut self, id: NodeId, parent: NodeId) -> Answer<()> {
        if let Body::Directory(directory) = &mut self.node_mut(id)?.body {
            directory.parent = parent;
        }
        self.change_links(id, 0)
    }
}
