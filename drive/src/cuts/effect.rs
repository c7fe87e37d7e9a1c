//! Effects: the parts of events that a power cut keeps or loses by themselves.
//!
//! A write is two effects, the bytes and the growth of the file; a rename may be two entries. An
//! effect *needs* others that are durable before it whatever the file system: earlier changes of
//! the same entry, the truncation before new bytes. What the model orders beyond that stands in
//! [`Effect::journal`].

use std::sync::Arc;

use super::tree::{Name, Payload};
use crate::recording::event::Attributes;
use crate::recording::{NodeId, NodeKind};

/// Numbers effects in the order in which they happened.
pub(super) type EffectId = u64;

/// What becomes durable or not.
#[derive(Clone, Debug)]
pub(super) enum What {
    /// Bytes of a file.
    Bytes {
        node: NodeId,
        offset: u64,
        len: u64,
        payload: Payload,
    },
    /// A file is at least this long. `bytes` is the effect of the bytes that it grew by.
    Grow {
        node: NodeId,
        size: u64,
        bytes: Option<EffectId>,
    },
    /// A file is exactly this long.
    Resize { node: NodeId, size: u64 },
    /// An entry of a directory names `node`, or nothing; before it named `before`.
    Entry {
        parent: NodeId,
        name: Name,
        node: Option<NodeId>,
        before: Option<NodeId>,
    },
    /// An entry moves.
    Rename(Arc<Rename>),
    /// Attributes change.
    Attributes { node: NodeId, change: Attributes },
    /// An extended attribute is set or removed.
    Xattr {
        node: NodeId,
        name: Vec<u8>,
        value: Option<Vec<u8>>,
    },
}

/// A rename in one step.
#[derive(Clone, Debug)]
pub(super) struct Rename {
    pub(super) parent: NodeId,
    pub(super) name: Name,
    pub(super) to: NodeId,
    pub(super) to_name: Name,
    pub(super) node: NodeId,
    pub(super) other: Option<NodeId>,
    pub(super) exchange: bool,
}

/// Something that a power cut keeps or loses.
#[derive(Clone, Debug)]
pub(super) struct Effect {
    pub(super) id: EffectId,
    /// The number of the event that it is a part of.
    pub(super) event: u64,
    /// Which part of the event.
    pub(super) part: u8,
    pub(super) what: What,
    /// Effects that are durable before this one.
    pub(super) needs: Vec<EffectId>,
    /// The effect before it in the file system's journal; `None` if it is not in one.
    pub(super) journal: Option<EffectId>,
    /// Whether it is in the file system's journal.
    pub(super) journaled: bool,
}

impl Effect {
    /// Whether these are bytes, or the growth of a file by them.
    pub(super) fn is_of_contents(&self) -> bool {
        matches!(self.what, What::Bytes { .. } | What::Grow { .. })
    }

    /// The node whose contents or attributes these are.
    pub(super) fn node(&self) -> Option<NodeId> {
        match &self.what {
            What::Bytes { node, .. }
            | What::Grow { node, .. }
            | What::Resize { node, .. }
            | What::Attributes { node, .. }
            | What::Xattr { node, .. } => Some(*node),
            What::Entry { .. } | What::Rename(_) => None,
        }
    }

    /// Whether it is about a node: its contents, its names, or, of a directory, its entries.
    pub(super) fn touches(&self, id: NodeId) -> bool {
        match &self.what {
            What::Entry {
                parent,
                node,
                before,
                ..
            } => *parent == id || *node == Some(id) || *before == Some(id),
            What::Rename(r) => [r.parent, r.to, r.node].contains(&id) || r.other == Some(id),
            _ => self.node() == Some(id),
        }
    }

    /// Whether it gives a node a name or takes one.
    pub(super) fn names(&self, id: NodeId) -> bool {
        match &self.what {
            What::Entry { node, before, .. } => *node == Some(id) || *before == Some(id),
            What::Rename(r) => r.node == id || r.other == Some(id),
            _ => false,
        }
    }

    /// Whether it changes an entry of a directory.
    pub(super) fn is_entry_of(&self, id: NodeId) -> bool {
        match &self.what {
            What::Entry { parent, .. } => *parent == id,
            What::Rename(r) => r.parent == id || r.to == id,
            _ => false,
        }
    }
}

/// Whether a node of this kind has entries.
pub(super) fn is_directory(kind: NodeKind) -> bool {
    kind == NodeKind::Directory
}
