//! Events of the LodgeTree, named after the actions of `specs/surrogate_buffer` and emitted where
//! they happen.
//!
//! | event | actions of the spec | emitted |
//! |---|---|---|
//! | [`OpensLog`] | `OpenLog` | the partition is locked |
//! | [`Appends`] | `AppendEntry` | before the store |
//! | [`Buffered`] | `BufferPair` | after the fence |
//! | [`Flushes`] | `StartFlush` | before anything |
//! | [`ClearsSlots`] | `ClearSlots` | before the store |
//! | [`WritesPairs`] | `WritePairs` | before the stores |
//! | [`SetsBitmap`] | `SetBitmap` | between fence and store |
//! | [`Flushed`] | `FinishMerge` | after the fence |
//! | [`PreparesLeaf`] | `PrepareLeaf` | before the store |
//! | [`LinksLeaf`] | `LinkLeaf` | between fence and store |
//! | [`SwitchesSibling`] | `SwitchSibling` | between fence and store |
//! | [`Split`] | `FinishSplit` | after the fence |
//! | [`SplitsNode`] | `SplitNode`s | before anything |
//! | [`MovesPairs`] | none: leaves are merged | before the stores |
//! | [`LinksPast`] | none | between fence and store |
//! | [`LeavesMerged`] | none | after the fence |
//! | [`NodesMerged`] | none: nodes are merged | both nodes locked |
//! | [`Recovers`] | what follows `Crash`, or `Restart` | after the fence |
//! | [`Replays`] | `ReplayEntry` | the pair is buffered |
//! | [`Recovered`] | `FinishReplay` | before the store is served |
//!
//! Besides these, the tree emits [`Takes`], [`Erases`], [`FloorRises`] and [`FloorRaised`], for
//! which the spec has no actions. What *may* survive a crash is reported before it is stored, and
//! what *must* survive after the fence that makes it durable. Each event of a leaf or a node is
//! emitted under the node's lock, and before what it gives back, a log or a leaf, is free.
//!
//! [`OpensLog`]: LodgeEvent::OpensLog
//! [`Appends`]: LodgeEvent::Appends
//! [`Buffered`]: LodgeEvent::Buffered
//! [`Flushes`]: LodgeEvent::Flushes
//! [`ClearsSlots`]: LodgeEvent::ClearsSlots
//! [`WritesPairs`]: LodgeEvent::WritesPairs
//! [`SetsBitmap`]: LodgeEvent::SetsBitmap
//! [`Flushed`]: LodgeEvent::Flushed
//! [`PreparesLeaf`]: LodgeEvent::PreparesLeaf
//! [`LinksLeaf`]: LodgeEvent::LinksLeaf
//! [`SwitchesSibling`]: LodgeEvent::SwitchesSibling
//! [`Split`]: LodgeEvent::Split
//! [`SplitsNode`]: LodgeEvent::SplitsNode
//! [`MovesPairs`]: LodgeEvent::MovesPairs
//! [`LinksPast`]: LodgeEvent::LinksPast
//! [`LeavesMerged`]: LodgeEvent::LeavesMerged
//! [`NodesMerged`]: LodgeEvent::NodesMerged
//! [`Recovers`]: LodgeEvent::Recovers
//! [`Replays`]: LodgeEvent::Replays
//! [`Recovered`]: LodgeEvent::Recovered
//! [`Takes`]: super::Event::Takes
//! [`Erases`]: super::Event::Erases
//! [`FloorRises`]: super::Event::FloorRises
//! [`FloorRaised`]: super::Event::FloorRaised

use super::SlotWords;

/// A leaf as its node knows it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LodgeLeaf {
    /// The leaf.
    pub leaf: u64,
    /// The least key that it may hold.
    pub low: Vec<u8>,
    /// The number of its keys.
    pub keys: usize,
}

/// A pair in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LodgePair {
    /// The word of the key.
    pub key: u64,
    /// The word of the value. Meaningless if the key is deleted.
    pub value: u64,
    /// Whether the key is deleted.
    pub delete: bool,
    /// The number of the pair's log entry.
    pub number: u64,
    /// The log that has the entry.
    pub log: u32,
}

/// The contents of a last-level inner node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct LodgeNode {
    /// Its leaves, from left to right.
    pub leaves: Vec<LodgeLeaf>,
    /// Its buffer, in order.
    pub pairs: Vec<LodgePair>,
}

/// One step of the tree. A leaf is named by the number of its first block of 256 bytes, and a log
/// by its place on the device.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LodgeEvent {
    /// A partition goes on in a free log.
    OpensLog {
        /// The log.
        log: u32,
    },
    /// An entry is about to be stored in a log. Its node is locked.
    Appends {
        /// The log.
        log: u32,
        /// The entry's place in it.
        place: u64,
        /// The entry.
        words: [u64; 3],
        /// The entry's number.
        number: u64,
        /// Whether the entry deletes its key.
        delete: bool,
    },
    /// A logged change is in the buffer of its node.
    Buffered {
        /// The node.
        node: LodgeNode,
    },
    /// Buffered pairs are about to be flushed to these leaves of one node.
    Flushes {
        /// The leaves.
        leaves: Vec<u64>,
    },
    /// The bits of slots that a flush replaces are about to be cleared.
    ClearsSlots {
        /// The leaf.
        leaf: u64,
        /// The header word.
        header: u64,
    },
    /// Pairs are about to be stored in empty slots.
    WritesPairs {
        /// The leaf.
        leaf: u64,
        /// The slots.
        slots: Vec<SlotWords>,
    },
    /// The pairs are durable, and the header is about to be stored.
    SetsBitmap {
        /// The leaf.
        leaf: u64,
        /// The header word.
        header: u64,
    },
    /// A leaf's pairs are flushed.
    Flushed {
        /// The leaf.
        leaf: u64,
        /// Its node.
        node: LodgeNode,
    },
    /// The upper part of a leaf is about to be stored in a new leaf.
    PreparesLeaf {
        /// The leaf.
        leaf: u64,
        /// The new leaf.
        new: u64,
        /// The contents of the new leaf, up to the last slot in use.
        words: Vec<u64>,
    },
    /// The new leaf is durable, and the spare sibling pointer is about to be stored.
    LinksLeaf {
        /// The leaf.
        leaf: u64,
        /// The new leaf.
        new: u64,
    },
    /// The pointer is durable, and the header is about to be stored.
    SwitchesSibling {
        /// The leaf.
        leaf: u64,
        /// The header word.
        header: u64,
    },
    /// A leaf is split.
    Split {
        /// The leaf.
        leaf: u64,
        /// The new leaf.
        new: u64,
        /// Their node.
        node: LodgeNode,
    },
    /// A node is about to be split into these.
    SplitsNode {
        /// The nodes, from left to right.
        parts: Vec<LodgeNode>,
    },
    /// The pairs of a leaf are about to be stored in its left neighbour, and the leaf behind it as
    /// that one's spare sibling.
    MovesPairs {
        /// The leaf.
        leaf: u64,
        /// Its left neighbour.
        left: u64,
        /// The slots of the left leaf.
        slots: Vec<SlotWords>,
        /// The word of the sibling pointer.
        next: u64,
    },
    /// The pairs are durable, and the left neighbour's header is about to be stored.
    LinksPast {
        /// The left neighbour.
        left: u64,
        /// The header word.
        header: u64,
    },
    /// A leaf is merged into its left neighbour. It is about to be freed.
    LeavesMerged {
        /// The leaf.
        leaf: u64,
        /// The node of the left neighbour.
        node: LodgeNode,
    },
    /// A node has taken over its right neighbour.
    NodesMerged {
        /// The node.
        node: LodgeNode,
    },
    /// Recovery has read leaves and logs, made them durable, and built nodes.
    Recovers {
        /// The nodes, from left to right.
        nodes: Vec<LodgeNode>,
    },
    /// Recovery has put a log entry back into a buffer.
    Replays {
        /// The entry's number.
        number: u64,
        /// The node.
        node: LodgeNode,
    },
    /// Recovery is done.
    Recovered,
}
