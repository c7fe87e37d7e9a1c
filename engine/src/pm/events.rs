//! Events of trees in persistent memory. Those of the LodgeTree are in [`lodge`]; the others are
//! those of the CCL-BTree, named after the actions of `specs/leaf_buffering` and emitted where they
//! happen.
//!
//! | event | actions of the spec | emitted |
//! |---|---|---|
//! | [`Takes`] | a part of `AppendLog`: the chunk's own word | before the store |
//! | [`Erases`] | none: an entry that a crash cut off becomes zero | before the store |
//! | [`Appends`] | `Latch`, `AppendLog`; `ScanBuffer` if it is a copy | before the store |
//! | [`Buffered`] | `FenceLog`, `Finish` | after the fence |
//! | [`Flushes`] | `Latch` of a trigger write; else see below | before anything |
//! | [`StoresRecords`] | `StoreRecords` | before the stores |
//! | [`StoresHeader`] | `StoreHeader`, `StoreLink`, `StoreMerged` | between fence and store |
//! | [`Flushed`] | `FenceHeader`; `Finish` | after the fence |
//! | [`StoresNewLeaf`] | `StoreNewLeaf` | before the stores |
//! | [`Linked`] | `FenceLink` | after the fence |
//! | [`LatchesLeft`] | `LatchLeft` | both leaves locked |
//! | [`LetsGo`] | none: the two leaves do not fit in one | both leaves locked |
//! | [`MovesRecords`] | `MoveRecords` | before the stores |
//! | [`Merged`] | `FenceMerged`, `Finish` | after the fence |
//! | [`Flips`] | `FlipEpoch` | all logs locked |
//! | [`Visited`] | `ScanBuffer` that finds nothing more to copy | leaf locked |
//! | [`FloorRises`] | `Reclaim`; in recovery `DropLogs` | before the store |
//! | [`FloorRaised`] | `FreeLogs`; in recovery `Open` | after the fence |
//! | [`Recovers`] | `WriteBack`s after a kill; `Restart` | after the fence |
//! | [`Replays`] | `Replay` of some keys of one leaf | before anything |
//! | [`Replayed`] | `FenceHeader` of recovery | after the fence |
//!
//! - A flush without a write of its own has no action: a checkpoint, a merge of the right leaf or
//!   cleaning without room for a copy flushes a buffer. Its steps are those of a trigger write.
//! - The header line of a flush has the timestamp of the flush *before*. The spec stores the
//!   timestamp right after the header's fence, unfenced, so that it may lag by one flush.
//! - A split that finds some of its batch fit the leaf puts those records into the halves. In the
//!   spec they are inserted after the split.
//!
//! What *may* survive a crash is reported before it is stored, and what *must* survive after the
//! fence that makes it durable. Each event of a leaf is emitted under the leaf's lock, and each
//! event of a log under the log's, so the order of emission is an order in which things happened.
//! Words are reported as they are stored. Without a listener, the cost is one branch on a field
//! that is never written.
//!
//! [`Takes`]: Event::Takes
//! [`Erases`]: Event::Erases
//! [`Appends`]: Event::Appends
//! [`Buffered`]: Event::Buffered
//! [`Flushes`]: Event::Flushes
//! [`StoresRecords`]: Event::StoresRecords
//! [`StoresHeader`]: Event::StoresHeader
//! [`Flushed`]: Event::Flushed
//! [`StoresNewLeaf`]: Event::StoresNewLeaf
//! [`Linked`]: Event::Linked
//! [`LatchesLeft`]: Event::LatchesLeft
//! [`LetsGo`]: Event::LetsGo
//! [`MovesRecords`]: Event::MovesRecords
//! [`Merged`]: Event::Merged
//! [`Flips`]: Event::Flips
//! [`Visited`]: Event::Visited
//! [`FloorRises`]: Event::FloorRises
//! [`FloorRaised`]: Event::FloorRaised
//! [`Recovers`]: Event::Recovers
//! [`Replays`]: Event::Replays
//! [`Replayed`]: Event::Replayed

pub mod lodge;

use lodge::LodgeEvent;

/// A slot of a leaf: its place, the word of the key and the word of the value.
pub type SlotWords = (usize, [u64; 2]);

/// A slot of a buffer node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NodeSlot {
    /// The word of the key.
    pub key: u64,
    /// The word of the value. Meaningless if the key is deleted.
    pub value: u64,
    /// Whether the key is deleted.
    pub delete: bool,
    /// The epoch bit. Meaningless if the slot is flushed.
    pub epoch: u8,
}

/// The contents of a buffer node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct NodeImage {
    /// Changes that are in the log and not in the leaf.
    pub unflushed: Vec<NodeSlot>,
    /// Entries that equal the leaf's.
    pub cached: Vec<NodeSlot>,
}

/// One step of the tree. A leaf is named by the number of its first block of 256 bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A chunk of the medium is about to be taken.
    Takes {
        /// The chunk.
        chunk: u32,
        /// Its word in the directory.
        word: u64,
        /// Whether a log takes it.
        log: bool,
    },
    /// The last word of an entry is about to be zeroed, since it might pass for a new one's.
    Erases {
        /// The chunk.
        chunk: u32,
        /// The entry's place in it.
        place: u64,
    },
    /// An entry is about to be stored at the end of a log.
    Appends {
        /// The chunk.
        chunk: u32,
        /// The entry's place in it.
        place: u64,
        /// The entry.
        words: [u64; 3],
        /// Whether the entry deletes its key.
        delete: bool,
        /// The epoch bit of the log.
        epoch: u8,
        /// Whether cleaning copies a change.
        copy: bool,
    },
    /// A logged change is in the buffer node.
    Buffered {
        /// The leaf.
        leaf: u64,
        /// Its buffer node.
        node: NodeImage,
    },
    /// A buffer is about to be flushed to its leaf.
    Flushes {
        /// The leaf.
        leaf: u64,
        /// Whether a write that found the buffer full is flushed with it.
        trigger: bool,
    },
    /// Records are about to be stored in free slots.
    StoresRecords {
        /// The leaf.
        leaf: u64,
        /// The slots.
        slots: Vec<SlotWords>,
    },
    /// The records are durable, and the header is about to be stored.
    StoresHeader {
        /// The leaf.
        leaf: u64,
        /// The header word: bitmap and next leaf.
        header: u64,
        /// The timestamp.
        stamp: u64,
    },
    /// A buffer is flushed.
    Flushed {
        /// The leaf.
        leaf: u64,
        /// The time of the flush, which becomes the leaf's timestamp at the next one.
        now: u64,
        /// Its buffer node.
        node: NodeImage,
    },
    /// The upper half of a leaf is about to be stored in a new leaf.
    StoresNewLeaf {
        /// The leaf.
        leaf: u64,
        /// The new leaf.
        new: u64,
        /// The smallest key of the new leaf.
        fence: Vec<u8>,
        /// The contents of the new leaf.
        words: Vec<u64>,
        /// Records of the batch that go to free slots of the old leaf.
        slots: Vec<SlotWords>,
    },
    /// The new leaf can be found.
    Linked {
        /// The leaf.
        leaf: u64,
        /// The new leaf.
        new: u64,
        /// The buffer node of the new leaf.
        node: NodeImage,
    },
    /// A merge has locked a leaf and its left neighbour, and is about to flush their buffers.
    LatchesLeft {
        /// The leaf.
        leaf: u64,
        /// Its left neighbour.
        left: u64,
    },
    /// The merge does not take place.
    LetsGo {
        /// The leaf.
        leaf: u64,
        /// Its left neighbour.
        left: u64,
    },
    /// A merge is about to store the leaf's records in the left one.
    MovesRecords {
        /// The leaf.
        leaf: u64,
        /// Its left neighbour.
        left: u64,
        /// The slots of the left leaf.
        slots: Vec<SlotWords>,
        /// The timestamp of the left leaf.
        stamp: u64,
    },
    /// A leaf is merged into its left neighbour. It is about to be freed.
    Merged {
        /// The leaf.
        leaf: u64,
        /// Its left neighbour.
        left: u64,
        /// The buffer node of the left leaf.
        node: NodeImage,
    },
    /// All logs go on in another epoch.
    Flips {
        /// The epoch bit.
        epoch: u8,
    },
    /// Cleaning is done with a leaf.
    Visited {
        /// The leaf.
        leaf: u64,
        /// Its buffer node.
        node: NodeImage,
    },
    /// The log floor is about to be raised.
    FloorRises {
        /// Its word.
        word: u64,
    },
    /// The log floor is raised. The chunks below it are about to be freed.
    FloorRaised,
    /// Recovery has read the leaves and made them durable.
    Recovers {
        /// The leaves in order, each with its smallest key.
        leaves: Vec<(u64, Option<Vec<u8>>)>,
    },
    /// Recovery is about to write changes of the log to a leaf.
    Replays {
        /// The leaf.
        leaf: u64,
        /// The words of the keys.
        keys: Vec<u64>,
    },
    /// The changes are in the leaf.
    Replayed {
        /// The leaf.
        leaf: u64,
    },
    /// A step of the LodgeTree.
    Lodge(LodgeEvent),
}
