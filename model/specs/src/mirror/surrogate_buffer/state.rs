//! The variables: `LodgeState.tla`.
//!
//! Small numbers in short rows, since a state is copied and hashed at every step. Unused entries
//! are zero, so that equal states are equal bytes. Keys and leaves are numbered from 1, as in the
//! spec; clients, nodes, logs and log entries from 0.

use super::constants::{Bug, SurrogateBuffer};
pub(super) use super::room::CLIENTS;
use super::row::Row;
use super::words::{ABSENT, Content, ENTRIES, Entry, EntryWords, Fence, Index, KEYS, LEAVES, Leaf};
use super::words::{LeafWords, Leaves, N, NO_LEAF, Replayed, SPACES, leaf_at, place};
use crate::mirror::Phase;

pub(super) const PENDING: Content = N::MAX;

/// The progress of a write.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode, strum::IntoStaticStr,
)]
#[strum(serialize_all = "lowercase")]
pub enum Step {
    /// The call was made, and has had no effect yet.
    Called,
    /// Its log entry is stored.
    Appended,
    /// Its log entry is persistent, before its fence.
    Durable,
    /// Its log entry is fenced, and its pair is buffered.
    Done,
}

/// A client's outstanding call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub enum Call {
    /// No call is outstanding.
    Idle,
    /// A get.
    Get {
        /// The key.
        key: u8,
        /// The value read.
        got: Content,
    },
    /// A put or delete.
    Write {
        /// The key.
        key: u8,
        /// The value to write.
        value: Content,
        /// The progress of the write.
        step: Step,
        /// The log that its entry was appended to, counted from 1. 0 means none yet.
        space: u8,
    },
}

/// A pair in a buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct Buffered {
    pub(super) key: u8,
    pub(super) value: Content,
    pub(super) number: N,
    pub(super) version: N,
}

/// The holder of a node's exclusive lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub enum Lock {
    /// Nobody.
    #[default]
    Free,
    /// A flush.
    Flushing,
    /// A client.
    Client(u8),
}

/// The progress of a flush with its first leaf.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    bitcode::Encode,
    bitcode::Decode,
    strum::IntoStaticStr,
)]
#[strum(serialize_all = "lowercase")]
pub enum At {
    /// The flush has not started on the leaf.
    #[default]
    Idle,
    /// Bits are cleared, so that there are enough empty slots.
    Cleared,
    /// The pairs are in empty slots.
    Written,
    /// The bits of the pairs are set.
    Marked,
    /// The new leaf is written.
    Prepared,
    /// The new leaf is linked.
    Linked,
    /// The sibling pointer is switched to the new leaf.
    Switched,
}

/// An inner node of the last level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct Node {
    pub(super) index: Index,
    pub(super) buffer: Row<Buffered, KEYS>,
    pub(super) lock: Lock,
    pub(super) todo: Row<u8, LEAVES>,
    pub(super) at: At,
    pub(super) fresh: u8,
}

impl Node {
    /// A node with this index and buffer, which is not being flushed (`NewNode`).
    pub(super) fn new(
        index: impl IntoIterator<Item = Fence>,
        buffer: impl IntoIterator<Item = Buffered>,
    ) -> Self {
        Self {
            index: index.into_iter().collect(),
            buffer: buffer.into_iter().collect(),
            ..Self::default()
        }
    }

    /// The leaf of a key (`LeafOf`).
    pub(super) fn leaf_of(&self, key: u8) -> u8 {
        leaf_at(&self.index, key)
    }

    /// The buffered pair of a key, if any (`InBuffer`).
    pub(super) fn in_buffer(&self, key: u8) -> Option<&Buffered> {
        self.buffer.iter().find(|pair| pair.key == key)
    }

    /// `Absorbed`: adds a pair to the buffer, and returns the pair that it replaces.
    pub(super) fn absorb(&mut self, pair: Buffered) -> Option<Buffered> {
        let mut there = self.buffer.iter_mut();
        let old = there.find(|old| old.key == pair.key);
        let Some(old) = old else {
            self.buffer.push(pair);
            return None;
        };
        Some(std::mem::replace(old, pair))
    }
}

/// The known state of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct Version {
    pub(super) version: N,
    /// The partition that it belongs to.
    pub(super) owner: Option<u8>,
    pub(super) used: u8,
    pub(super) valid: u8,
}

/// The variables of the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct State {
    pub(super) call: [Call; CLIENTS],
    pub(super) nodes: Row<Node, LEAVES>,
    pub(super) versions: [Version; SPACES],
    pub(super) version: N,
    pub(super) clock: N,
    pub(super) leaf: [LeafWords; LEAVES],
    pub(super) log: [[EntryWords; ENTRIES]; SPACES],
    pub(super) phase: Phase,
    pub(super) replayed: Replayed,
    pub(super) crashes: N,
    pub(super) kept: [Content; KEYS],
}

impl State {
    pub(super) fn leaf_now(&self, leaf: u8) -> Leaf {
        self.leaf[place(leaf)].now()
    }

    /// The leaves as loads see them (`LeavesNow`).
    pub(super) fn leaves_now(&self) -> Leaves {
        self.leaf.map(|leaf| leaf.now())
    }

    pub(super) fn entry_at(&self, (s, i): (usize, usize)) -> Entry {
        self.log[s][i].now()
    }

    /// The node of a key (`NodeOf`).
    pub(super) fn node_of(&self, key: u8) -> usize {
        let begins = |node: &Node| node.index.first().is_some_and(|fence| fence.low <= key);
        // The first node begins at 0.
        self.nodes.iter().rposition(begins).unwrap_or(0)
    }

    /// The value that a get of the key finds (`Lookup`).
    pub(super) fn lookup(&self, key: u8) -> Content {
        let node = &self.nodes[self.node_of(key)];
        let buffered = node.in_buffer(key).map(|pair| pair.value);
        buffered.unwrap_or_else(|| self.leaf_now(node.leaf_of(key)).value_of(key))
    }

    /// Decreases the counts of the logs of pairs whose entries are no longer needed (`Uncounted`).
    pub(super) fn uncount(&mut self, pairs: impl IntoIterator<Item = Buffered>) {
        for pair in pairs {
            let mut versions = self.versions.iter_mut();
            if let Some(version) = versions.find(|known| known.version == pair.version) {
                version.valid -= 1;
            }
        }
    }

    /// Whether the client waits with a write that has no entry yet (`Waiting`).
    pub(super) fn is_waiting(&self, c: usize) -> bool {
        matches!(
            self.call[c],
            Call::Write {
                step: Step::Called,
                ..
            }
        )
    }
}

impl SurrogateBuffer {
    /// The initial state (`Init`).
    pub(super) fn initial(&self) -> State {
        let lows = &self.lows;
        let mut leaves = Leaves::default();
        for (l, low) in lows.iter().enumerate() {
            leaves[l].low = *low;
            leaves[l].next[0] = if l + 1 < lows.len() {
                l as u8 + 2
            } else {
                NO_LEAF
            };
        }
        let index = lows.iter().zip(1..).map(|(&low, leaf)| Fence { low, leaf });
        let mut nodes = Row::default();
        nodes.push(Node::new(index, []));
        State {
            call: [Call::Idle; CLIENTS],
            nodes,
            versions: self.old_versions(),
            version: self.spaces as N,
            clock: 1,
            leaf: leaves.map(|leaf| LeafWords::durably(&leaf)),
            log: [[EntryWords::durably(&Entry::default()); ENTRIES]; SPACES],
            phase: Phase::Up,
            replayed: Replayed::default(),
            crashes: 0,
            kept: [ABSENT; KEYS],
        }
    }

    /// The versions of logs whose entries are not needed (`OldVersions`).
    pub(super) fn old_versions(&self) -> [Version; SPACES] {
        let mut versions = [Version::default(); SPACES];
        for (version, number) in versions.iter_mut().zip(1..).take(self.spaces) {
            version.version = number;
            version.used = self.log_size as u8;
        }
        versions
    }

    /// `Current`: the log that a client's partition appends to.
    pub(super) fn current(&self, s: &State, c: u8) -> Option<usize> {
        let has_room = |version: &Version| {
            version.owner == Some(c) && usize::from(version.used) < self.log_size
        };
        s.versions.iter().position(has_room)
    }

    /// The free spaces for logs (`FreeSpaces`).
    pub(super) fn free_spaces(&self, s: &State) -> Vec<usize> {
        let is_free = |version: &Version| {
            let full = usize::from(version.used) == self.log_size;
            version.valid == 0 || self.bug == Bug::ReusesLiveLog && full
        };
        (0..self.spaces)
            .filter(|space| is_free(&s.versions[*space]))
            .collect()
    }

    /// Whether a node's buffer has no free slot (`IsFull`).
    pub(super) fn is_full(&self, node: &Node) -> bool {
        let kept_back = usize::from(self.bug != Bug::NoDesignatedSlot);
        node.index.len() + node.buffer.len() + kept_back >= self.slots
    }

    /// Whether a node has so many leaves that it must be split (`MustSplit`).
    pub(super) fn must_split(&self, node: &Node) -> bool {
        node.index.len() >= self.fanout
    }

    /// Whether a client without the lock may add a pair to the node's buffer.
    pub(super) fn is_open(&self, node: &Node) -> bool {
        node.lock == Lock::Free && !self.is_full(node) && !self.must_split(node)
    }
}
