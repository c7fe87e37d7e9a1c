//! The properties of a tree in persistent memory that the rest of the project asks for, so that it
//! need not know which tree it has.

use super::ccl::Cleaning;
use crate::options::limits::{LODGE_LEAF_BYTES, LODGE_LEAF_SLOTS};

/// Where changes wait before they reach a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PmBuffer {
    /// Nowhere: every change goes to its leaf.
    Absent,
    /// In a buffer node per leaf, with this many slots.
    PerLeaf(usize),
    /// In the free slots of each last-level inner node.
    PerNode,
    /// In one buffer for all leaves, which is flushed as a whole.
    Shared,
}

/// The format of a device's leaves. A store keeps the format it was created with, and opens only
/// with trees of that format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LeafFormat {
    /// Leaves of 256 bytes with 14 slots (CCL-BTree §4.1).
    Block,
    /// The leaves of LodgeTree, of 512 bytes with 27 slots (LodgeTree §IV-A).
    Lodge,
}

impl LeafFormat {
    /// All formats.
    pub const ALL: [LeafFormat; 2] = [LeafFormat::Block, LeafFormat::Lodge];

    /// Returns the size of a leaf in bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        match self {
            LeafFormat::Block => 256,
            LeafFormat::Lodge => LODGE_LEAF_BYTES,
        }
    }

    /// Returns the version in the superblock of a store with such leaves.
    pub(crate) const fn version(self) -> u64 {
        match self {
            LeafFormat::Block => 3,
            LeafFormat::Lodge => 4,
        }
    }

    /// Returns the number of slots of a leaf.
    #[must_use]
    pub const fn slots(self) -> usize {
        match self {
            LeafFormat::Block => 14,
            LeafFormat::Lodge => LODGE_LEAF_SLOTS,
        }
    }
}

/// What a tree in persistent memory says of itself. The engine, the replay and the oracle ask for
/// this and for no tree by name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PmFacts {
    /// Where changes wait before they reach a leaf.
    pub buffer: PmBuffer,
    /// How the log is cleaned, or `None` for a tree without a log.
    pub cleaning: Option<Cleaning>,
    /// Number of logs.
    pub logs: usize,
    /// Most bytes of log between two cleanings, per byte of leaves. Replays size the device by it.
    pub log_share: f64,
    /// The format of the leaves.
    pub leaves: LeafFormat,
    /// A leaf with more keys than this is split, or `None` if only a full leaf is.
    pub split_above: Option<usize>,
}

impl PmFacts {
    /// A tree without buffers and without a log, over leaves of 256 bytes.
    pub(crate) const PLAIN: PmFacts = PmFacts {
        buffer: PmBuffer::Absent,
        cleaning: None,
        logs: 1,
        log_share: 0.0,
        leaves: LeafFormat::Block,
        split_above: None,
    };

    /// Returns the number of slots in a leaf's buffer node (N_batch), or 0 if it has none.
    #[must_use]
    pub const fn batch(&self) -> usize {
        match self.buffer {
            PmBuffer::PerLeaf(slots) => slots,
            PmBuffer::Absent | PmBuffer::PerNode | PmBuffer::Shared => 0,
        }
    }

    /// Returns whether changes are logged.
    #[must_use]
    pub const fn is_logged(&self) -> bool {
        self.cleaning.is_some()
    }
}
