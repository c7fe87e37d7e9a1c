//! The variables of `OverflowState.tla`, and what follows from the log.
//!
//! Small numbers in small arrays, since a state is copied and hashed at every step. Unused entries
//! are zero, so that equal states are equal bytes. Clients and keys are numbered from 0, blocks
//! from 1.

use super::super::wal_recovery::Versions;
use super::room::{BLOCKS, CLIENTS, KEYS, LEAF_VERSIONS, LOG, N, PARTS, Set, VERSIONS};

/// A value: 0 is `Absent`.
pub(super) type Content = N;
pub(super) const ABSENT: Content = 0;
pub(super) const PENDING: Content = N::MAX;

/// Where a long value lies. The default is `Nowhere`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct Pointer {
    pub(super) name: N,
    /// The blocks of the value. 0 marks the end.
    pub(super) blocks: [u8; PARTS],
}

impl Pointer {
    /// The value's blocks, in order.
    pub(super) fn blocks(&self) -> impl Iterator<Item = u8> + use<> {
        self.blocks.into_iter().take_while(|block| *block > 0)
    }

    /// The set of blocks of a pointer (`BlocksOf`).
    pub(super) fn set(&self) -> Set {
        self.blocks().fold(0, |set, block| set | bit(block))
    }

    pub(super) fn is_long(&self) -> bool {
        self.blocks[0] > 0
    }

    /// Whether the i-th block, counted from 0, is the last.
    pub(super) fn is_last(&self, i: usize) -> bool {
        self.blocks.get(i + 1).is_none_or(|block| *block == 0)
    }
}

/// The set of one block.
pub(super) fn bit(block: u8) -> Set {
    1 << (block - 1)
}

/// A leaf's entry for its key. The default is `Empty`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct Entry {
    pub(super) value: Content,
    pub(super) at: Pointer,
}

impl Entry {
    /// The blocks of the value, each with its intended contents.
    pub(super) fn parts(&self) -> impl Iterator<Item = (u8, Block)> + use<> {
        let (name, value) = (self.at.name, self.value);
        (self.at.blocks().zip(1..)).map(move |(block, part)| (block, Block { name, part, value }))
    }
}

/// A block. The default is `NoPart`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct Block {
    pub(super) name: N,
    pub(super) part: u8,
    pub(super) value: Content,
}

/// A leaf, and the LSN of its last change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct Leaf {
    pub(super) entry: Entry,
    pub(super) lsn: N,
}

/// A record of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct Record {
    pub(super) key: u8,
    pub(super) entry: Entry,
}

/// A pointer that the record at `lsn` replaced in its leaf. 0 means none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct Retired {
    pub(super) lsn: N,
    pub(super) at: Pointer,
}

/// The progress of a get.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode, strum::IntoStaticStr,
)]
#[strum(serialize_all = "lowercase")]
pub enum Reading {
    /// The call was made, and has had no effect yet.
    Called,
    /// The get is reading the blocks of the record that it copied.
    Reading,
    /// The get has read all blocks.
    Read,
    /// A block did not belong to the value.
    Again,
    /// A block did not belong to the value, and the record still has the pointer.
    Damaged,
}

/// The progress of a write.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode, strum::IntoStaticStr,
)]
#[strum(serialize_all = "lowercase")]
pub enum Writing {
    /// The call was made, and has had no effect yet.
    Called,
    /// The blocks of its value are written.
    Stored,
    /// Its record is in the log.
    Waiting,
}

/// A client's outstanding call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub enum Call {
    /// No call is outstanding. The last one, if any, returned, or a crash ended it.
    Idle,
    /// No call is outstanding. The last one was refused, and has had no effect.
    Refused,
    /// A get.
    Get {
        /// The key.
        key: u8,
        /// The progress of the get.
        at: Reading,
        /// The record it copied.
        from: Entry,
        /// The number of blocks read.
        parts: u8,
        /// The value that the blocks belonged to.
        got: Content,
    },
    /// A put or delete.
    Write {
        /// The key.
        key: u8,
        /// The value to write.
        value: Content,
        /// The progress of the write.
        at: Writing,
        /// Where the value lies.
        to: Pointer,
        /// The LSN of its record, once it has one.
        lsn: N,
    },
}

/// The phase of the store.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode, strum::IntoStaticStr,
)]
#[strum(serialize_all = "lowercase")]
pub enum Phase {
    /// The store serves clients.
    Up,
    /// Recovery, after the power failed.
    Cut,
    /// Recovery, after the process died and the device lived on.
    Killed,
}

/// All variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct State {
    pub(super) call: [Call; CLIENTS],
    pub(super) asked: N,
    pub(super) named: N,
    pub(super) log: [Record; LOG],
    pub(super) log_len: N,
    pub(super) written: N,
    pub(super) durable: N,
    pub(super) forcing: N,
    pub(super) redo_start: N,
    pub(super) leaf: [Leaf; KEYS],
    pub(super) free: Set,
    /// In LSN order, without gaps.
    pub(super) retired: [Retired; LOG],
    pub(super) leaf_dev: [Versions<Leaf, LEAF_VERSIONS>; KEYS],
    pub(super) block_dev: [Versions<Block, VERSIONS>; BLOCKS],
    pub(super) phase: Phase,
    pub(super) redone: N,
    pub(super) crashes: N,
}

impl State {
    /// `Init`, with these blocks free.
    pub(super) fn initial(free: Set) -> Self {
        Self {
            call: [Call::Idle; CLIENTS],
            asked: 0,
            named: 0,
            log: [Record::default(); LOG],
            log_len: 0,
            written: 0,
            durable: 0,
            forcing: 0,
            redo_start: 0,
            leaf: [Leaf::default(); KEYS],
            free,
            retired: [Retired::default(); LOG],
            leaf_dev: [Versions::durably(Leaf::default()); KEYS],
            block_dev: [Versions::durably(Block::default()); BLOCKS],
            phase: Phase::Up,
            redone: 0,
            crashes: 0,
        }
    }

    pub(super) fn is_up(&self) -> bool {
        self.phase == Phase::Up
    }

    /// The log's records with their LSNs.
    pub(super) fn records(&self) -> impl DoubleEndedIterator<Item = (N, &Record)> {
        (1..=self.log_len).zip(&self.log[..usize::from(self.log_len)])
    }

    pub(super) fn retired(&self) -> impl Iterator<Item = &Retired> {
        self.retired.iter().take_while(|retired| retired.lsn > 0)
    }

    pub(super) fn place(&self, block: u8) -> &Versions<Block, VERSIONS> {
        &self.block_dev[usize::from(block) - 1]
    }

    pub(super) fn place_mut(&mut self, block: u8) -> &mut Versions<Block, VERSIONS> {
        &mut self.block_dev[usize::from(block) - 1]
    }

    pub(super) fn device_flush(&mut self) {
        self.leaf_dev.iter_mut().for_each(Versions::flush);
        self.block_dev.iter_mut().for_each(Versions::flush);
    }

    /// `EntryAt`: a key's entry after the first `n` records.
    pub(super) fn entry_at(&self, key: usize, n: N) -> Entry {
        let mut records = self.log[..usize::from(n)].iter().rev();
        let last = records.find(|record| usize::from(record.key) == key);
        last.map_or(Entry::default(), |record| record.entry)
    }

    /// The leaves after redoing the records after the first `n`, except those that a leaf has
    /// already.
    pub(super) fn redone_from(&self, n: N) -> [Leaf; KEYS] {
        let mut leaves = self.leaf;
        for (lsn, record) in self.records().skip(usize::from(n)) {
            let leaf = &mut leaves[usize::from(record.key)];
            if leaf.lsn < lsn {
                let entry = record.entry;
                *leaf = Leaf { entry, lsn };
            }
        }
        leaves
    }

    /// `MayEndWith`: the records that a recovery may leave last for a key.
    pub(super) fn may_end_with(&self) -> impl Iterator<Item = Entry> {
        (self.durable..=self.written).flat_map(move |n| (0..KEYS).map(move |k| self.entry_at(k, n)))
    }
}

/// `NamedBy`: the blocks that leaves name.
pub(super) fn named_by(leaves: &[Leaf; KEYS]) -> Set {
    leaves.iter().fold(0, |set, leaf| set | leaf.entry.at.set())
}
