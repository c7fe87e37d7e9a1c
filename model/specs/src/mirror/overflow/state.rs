//! The variables of `OverflowState.tla`, and what the log says of them.
//!
//! Small numbers in small arrays: a state is copied and hashed at every step. What is not in use is
//! zero, so that equal states are equal bytes. Clients and keys are numbered from 0, blocks from 1.

use super::super::wal_recovery::Versions;
use super::room::{BLOCKS, CLIENTS, KEYS, LEAF_VERSIONS, LOG, N, PARTS, Set, VERSIONS};

/// A value: 0 is `Absent`.
pub(super) type Content = N;
pub(super) const ABSENT: Content = 0;
pub(super) const PENDING: Content = N::MAX;

/// Where a long value lies. The default is `Nowhere`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Pointer {
    pub(super) name: N,
    /// Its blocks; 0: no more.
    pub(super) blocks: [u8; PARTS],
}

impl Pointer {
    /// The value's blocks, in order.
    pub(super) fn blocks(&self) -> impl Iterator<Item = u8> + use<> {
        self.blocks.into_iter().take_while(|block| *block > 0)
    }

    /// `BlocksOf`.
    pub(super) fn set(&self) -> Set {
        self.blocks().fold(0, |set, block| set | bit(block))
    }

    pub(super) fn is_long(&self) -> bool {
        self.blocks[0] > 0
    }

    /// Whether the i-th block, from 0, is the last.
    pub(super) fn is_last(&self, i: usize) -> bool {
        self.blocks.get(i + 1).is_none_or(|block| *block == 0)
    }
}

/// The set of one block.
pub(super) fn bit(block: u8) -> Set {
    1 << (block - 1)
}

/// What a leaf says of its key. The default is `Empty`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Entry {
    pub(super) value: Content,
    pub(super) at: Pointer,
}

impl Entry {
    /// The blocks of the value, with what is to be in them.
    pub(super) fn parts(&self) -> impl Iterator<Item = (u8, Block)> + use<> {
        let (name, value) = (self.at.name, self.value);
        (self.at.blocks().zip(1..)).map(move |(block, part)| (block, Block { name, part, value }))
    }
}

/// A block. The default is `NoPart`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Block {
    pub(super) name: N,
    pub(super) part: u8,
    pub(super) value: Content,
}

/// A leaf, and the LSN of its last change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Leaf {
    pub(super) entry: Entry,
    pub(super) lsn: N,
}

/// A record of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Record {
    pub(super) key: u8,
    pub(super) entry: Entry,
}

/// A pointer that no leaf has since the record at `lsn`; 0: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Retired {
    pub(super) lsn: N,
    pub(super) at: Pointer,
}

/// How far a get is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reading {
    /// Asked for.
    Called,
    /// It reads the blocks of the record that it copied.
    Reading,
    /// It has read them.
    Read,
    /// One was not the value's.
    Again,
    /// And the record still has the pointer.
    Damaged,
}

/// How far a write is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Writing {
    /// Asked for.
    Called,
    /// Its blocks are written.
    Stored,
    /// Its record is in the log.
    Waiting,
}

/// What a client waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// Nothing.
    Idle,
    /// A value.
    Get {
        /// Which key.
        key: u8,
        /// How far it is.
        at: Reading,
        /// The record it copied.
        from: Entry,
        /// Blocks read.
        parts: u8,
        /// Whose bytes.
        got: Content,
    },
    /// A put or delete.
    Write {
        /// Which key.
        key: u8,
        /// What to write there.
        value: Content,
        /// How far it is.
        at: Writing,
        /// Where the value lies.
        to: Pointer,
        /// LSN of its record, once it has one.
        lsn: N,
    },
}

/// All variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    /// By LSN, without a gap.
    pub(super) retired: [Retired; LOG],
    pub(super) leaf_dev: [Versions<Leaf, LEAF_VERSIONS>; KEYS],
    pub(super) block_dev: [Versions<Block, VERSIONS>; BLOCKS],
    pub(super) up: bool,
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
            up: true,
            redone: 0,
            crashes: 0,
        }
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

    /// `EntryAt`: a key's entry after the first n records.
    pub(super) fn entry_at(&self, key: usize, n: N) -> Entry {
        let mut records = self.log[..usize::from(n)].iter().rev();
        let last = records.find(|record| usize::from(record.key) == key);
        last.map_or(Entry::default(), |record| record.entry)
    }

    /// Leaves after the records behind the first `n`, but those that they have.
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

    /// `MayEndWith`: what a recovery may.
    pub(super) fn may_end_with(&self) -> impl Iterator<Item = Entry> {
        (self.durable..=self.written).flat_map(move |n| (0..KEYS).map(move |k| self.entry_at(k, n)))
    }
}

/// `NamedBy`: the blocks that leaves name.
pub(super) fn named_by(leaves: &[Leaf; KEYS]) -> Set {
    leaves.iter().fold(0, |set, leaf| set | leaf.entry.at.set())
}
