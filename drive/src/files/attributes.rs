//! Changes of attributes and extended attributes.
//!
//! Who may change what, the kernel has checked. What is left are the rules that only the file
//! system can follow: a change of owner or size takes suid and sgid away, permission bits and access
//! control list say the same, and each change sets the time of the last change.

use fuser::{Errno, FileAttr};

use super::acl::{self, Acl};
use super::nodes::{Node, SGID, Time};
use super::state::{Answer, Caller, State};
use crate::recording::event::Attributes;
use crate::recording::{Event, NodeId};

/// The longest name of an extended attribute, in bytes.
const XATTR_NAME_MAX: usize = 255;
/// The most bytes of extended attributes, names included, that a node can have.
const XATTRS_MAX: usize = 1 << 20;

/// What is to change; `None`: as before.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NewAttributes {
    pub(super) mode: Option<u32>,
    pub(super) uid: Option<u32>,
    pub(super) gid: Option<u32>,
    pub(super) size: Option<u64>,
    pub(super) accessed: Option<Time>,
    pub(super) modified: Option<Time>,
    pub(super) changed: Option<Time>,
}

/// Whether an extended attribute must exist before it is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum XattrMust {
    /// It may.
    Whatever,
    /// It must not.
    BeNew,
    /// It must.
    Exist,
}

impl State {
    /// Changes attributes; those that the node has then.
    pub(super) fn set_attributes(
        &mut self,
        id: NodeId,
        new: NewAttributes,
        caller: Caller,
    ) -> Answer<FileAttr> {
        if let Some(size) = new.size {
            self.resize(id, size, caller)?;
        }
        let node = self.node_mut(id)?;
        let (mode, owner) = (node.mode, (node.uid, node.gid));
        if (new.uid.is_some() || new.gid.is_some()) && !node.is_directory() {
            node.kill_privileges();
        }
        node.mode = new.mode.map_or(node.mode, |mode| mode & 0o7777);
        node.uid = new.uid.unwrap_or(node.uid);
        node.gid = new.gid.unwrap_or(node.gid);
        node.times.accessed = new.accessed.unwrap_or(node.times.accessed);
        node.times.modified = new.modified.unwrap_or(node.times.modified);
        node.times.changed = new.changed.unwrap_or_else(Time::now);
        let change = Attributes {
            mode: (new.mode.is_some() || node.mode != mode).then_some(node.mode),
            uid: (new.uid.is_some() || node.uid != owner.0).then_some(node.uid),
            gid: (new.gid.is_some() || node.gid != owner.1).then_some(node.gid),
            modified_ns: new.modified.map(|time| time.0),
        };
        if change != Attributes::default() {
            self.note(Event::Attributes { node: id, change })?;
        }
        self.save(id);
        if let (Some(mode), Some(list)) = (new.mode, self.node(id)?.xattrs.get(acl::ACCESS)) {
            let mut list = Acl::decode(list)?;
            list.set_bits(mode);
            self.note_xattr(id, acl::ACCESS, Some(&list.encode()))?;
        }
        self.settle()?;
        Ok(self.node(id)?.attributes(id))
    }

    /// Sets an extended attribute.
    pub(super) fn setxattr(
        &mut self,
        id: NodeId,
        name: &[u8],
        value: &[u8],
        must: XattrMust,
        caller: Caller,
    ) -> Answer<()> {
        let node = self.node(id)?;
        if name.len() > XATTR_NAME_MAX {
            return Err(Errno::ERANGE);
        }
        if name.starts_with(b"system.") && name != acl::ACCESS && name != acl::DEFAULT {
            return Err(Errno::EOPNOTSUPP);
        }
        match (must, node.xattrs.contains_key(name)) {
            (XattrMust::BeNew, true) => return Err(Errno::EEXIST),
            (XattrMust::Exist, false) => return Err(Errno::ENODATA),
            _ => {}
        }
        let others = node
            .xattrs
            .iter()
            .filter(|(other, _)| other.as_slice() != name);
        let used: usize = others.map(|(name, value)| name.len() + value.len()).sum();
        if used + name.len() + value.len() > XATTRS_MAX {
            return Err(Errno::ENOSPC);
        }
        if name == acl::ACCESS {
            return self.set_access(id, value, caller);
        }
        self.change_xattr(id, name, Some(value))
    }

    /// Sets the list that decides on access, and the permission bits with it.
    fn set_access(&mut self, id: NodeId, value: &[u8], caller: Caller) -> Answer<()> {
        let list = Acl::decode(value)?;
        let node = self.node_mut(id)?;
        let mut mode = node.mode & !0o777 | list.bits();
        // As `chmod` does, except that other groups than the caller's first are not known here.
        if !caller.keeps_privileges() && caller.gid != node.gid {
            mode &= !SGID;
        }
        if mode != node.mode {
            node.mode = mode;
            let change = Attributes {
                mode: Some(mode),
                ..Attributes::default()
            };
            self.note(Event::Attributes { node: id, change })?;
        }
        let had = self.node(id)?.xattrs.contains_key(acl::ACCESS);
        match list.is_minimal() {
            false => self.change_xattr(id, acl::ACCESS, Some(value)),
            true if had => self.change_xattr(id, acl::ACCESS, None),
            true => self.changed(id),
        }
    }

    /// The value of an extended attribute.
    pub(super) fn getxattr(&self, id: NodeId, name: &[u8]) -> Answer<&[u8]> {
        let value = self.node(id)?.xattrs.get(name);
        value.map(Vec::as_slice).ok_or(Errno::ENODATA)
    }

    /// The names of extended attributes, each with a zero behind it.
    pub(super) fn listxattr(&self, id: NodeId) -> Answer<Vec<u8>> {
        let names = self.node(id)?.xattrs.keys();
        Ok(names
            .flat_map(|name| name.iter().copied().chain([0]))
            .collect())
    }

    /// Removes an extended attribute.
    pub(super) fn removexattr(&mut self, id: NodeId, name: &[u8]) -> Answer<()> {
        match self.getxattr(id, name) {
            Ok(_) => self.change_xattr(id, name, None),
            // As on other file systems, which take no list for an empty one.
            Err(_) if name == acl::ACCESS || name == acl::DEFAULT => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn change_xattr(&mut self, id: NodeId, name: &[u8], value: Option<&[u8]>) -> Answer<()> {
        self.note_xattr(id, name, value)?;
        self.changed(id)
    }

    /// Sets or removes an extended attribute, as part of an operation.
    pub(super) fn note_xattr(
        &mut self,
        id: NodeId,
        name: &[u8],
        value: Option<&[u8]>,
    ) -> Answer<()> {
        self.note(Event::Xattr {
            node: id,
            name: name.to_vec(),
            value: value.map(<[u8]>::to_vec),
        })?;
        self.set_xattr(id, name, value);
        Ok(())
    }

    /// Attributes changed just now, which ends an operation.
    fn changed(&mut self, id: NodeId) -> Answer<()> {
        let node: &mut Node = self.node_mut(id)?;
        node.times.changed = Time::now();
        self.save(id);
        self.settle()
    }
}
