//! The state of the circular buffer: small numbers, packed for hashing.

use std::hash::{Hash, Hasher};

pub(super) use super::room::{ABSENT, CLASSES, CLIENTS, NONE, PAGES, PENDING, Set, UNITS};

/// `States` of a block.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr, bitcode::Encode, bitcode::Decode,
)]
#[strum(serialize_all = "lowercase")]
pub enum Life {
    /// No block begins here.
    None,
    /// Allocated, but not yet in the mapping table.
    Allocated,
    /// A mini-page.
    Ready,
    /// Free, and on a free list.
    Listed,
    /// Free, but not reusable until the head has passed it. Padding is a tombstone too.
    Tombstone,
    /// Evicted: the head may pass it.
    Evicted,
}

/// A block's header and contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, bitcode::Encode, bitcode::Decode)]
pub struct Block {
    /// `state` of the spec.
    pub life: Life,
    /// Its size, in units of the buffer.
    pub size: u8,
    /// The page whose mini-page it is.
    pub page: u8,
    /// The record.
    pub rec: u8,
    /// Whether it is dirty: its record differs from the leaf page's.
    pub dirty: bool,
}

impl Block {
    /// The absence of a block (`NoBlock`).
    pub(super) const NONE: Self = Self::dead(Life::None, 0);

    /// `Dead`: a block without contents.
    pub(super) const fn dead(life: Life, size: u8) -> Self {
        Self {
            life,
            size,
            page: NONE,
            rec: NONE,
            dirty: false,
        }
    }

    /// `Fresh`: a block that has just been allocated.
    pub(super) const fn fresh(page: u8, size: u8) -> Self {
        Self {
            page,
            ..Self::dead(Life::Allocated, size)
        }
    }

    /// The block in 13 bits.
    fn bits(self) -> u64 {
        pack([
            (self.life as u8, 3),
            (self.size, 3),
            (self.page, 3),
            (self.rec, 3),
            (self.dirty.into(), 1),
        ])
    }
}

/// An entry of the mapping table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, bitcode::Encode, bitcode::Decode)]
pub struct Word {
    /// The offset of the mini-page.
    pub at: u8,
    /// The client that holds the page's write lock.
    pub writer: u8,
    /// The clients that hold its read lock, one bit each.
    pub readers: Set,
}

impl Word {
    /// `Free`: an entry that no client has locked.
    pub(super) const fn free(at: u8) -> Self {
        Self {
            at,
            writer: NONE,
            readers: 0,
        }
    }
}

/// A client\'s outstanding call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, bitcode::Encode, bitcode::Decode)]
pub enum Call {
    /// No call is outstanding.
    None,
    /// To read a record.
    Get {
        /// The page to read.
        key: u8,
        /// The value read.
        got: u8,
    },
    /// To put or delete a record.
    Write {
        /// The page to write.
        key: u8,
        /// The value to write.
        value: u8,
        /// Whether it has taken effect.
        done: bool,
    },
}

/// `Phases`: what a thread is doing.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr, bitcode::Encode, bitcode::Decode,
)]
#[strum(serialize_all = "lowercase")]
#[allow(missing_docs)] // The spec draws how they follow each other.
pub enum Phase {
    Idle,
    Start,
    Look,
    Allocate,
    Popped,
    Copy,
    Publish,
    Free,
    Insert,
    Done,
    Full,
    Victim,
    Lock,
    Merge,
    Unmap,
    Finish,
}

/// The pointers and sizes that a thread holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, bitcode::Encode, bitcode::Decode)]
pub struct Work {
    /// The offset in the mapping table when the page was locked.
    pub old: u8,
    /// The block that replaces it.
    pub new: u8,
    /// The size that the new block must have.
    pub size: u8,
    /// The block to evict.
    pub victim: u8,
    /// The page that the victim seems to belong to.
    pub page: u8,
}

impl Work {
    /// The work of an idle thread (`NoWork`).
    pub(super) const NONE: Self = Self {
        old: NONE,
        new: NONE,
        size: 0,
        victim: NONE,
        page: NONE,
    };
}

/// A client and its thread: `call`, `phase` and `work` of the spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq, bitcode::Encode, bitcode::Decode)]
pub struct Thread {
    /// The client's call.
    pub call: Call,
    /// The thread's phase.
    pub phase: Phase,
    /// What the thread holds.
    pub work: Work,
}

impl Thread {
    /// A client without a call.
    pub(super) const IDLE: Self = Self {
        call: Call::None,
        phase: Phase::Idle,
        work: Work::NONE,
    };

    /// Whether the thread's call is a get (`Reads`).
    pub(super) const fn reads(&self) -> bool {
        matches!(self.call, Call::Get { .. })
    }

    /// `Key` of a thread that has a call.
    pub(super) fn key(&self) -> usize {
        match self.call {
            Call::Get { key, .. } | Call::Write { key, .. } => key.into(),
            Call::None => PAGES,
        }
    }

    /// The thread in 28 bits.
    fn bits(&self) -> u64 {
        let (op, key, content, done) = match self.call {
            Call::None => (0, 0, 0, false),
            Call::Get { key, got } => (1, key, got, false),
            Call::Write { key, value, done } => (2, key, value, done),
        };
        let Work {
            old,
            new,
            size,
            victim,
            page,
        } = self.work;
        pack([(op, 2), (key, 2), (content, 3), (done.into(), 1)]) << 20
            | pack([(self.phase as u8, 4), (old, 3), (new, 3)]) << 9
            | pack([(size, 3), (victim, 3), (page, 3)])
    }
}

/// The variables of the modules. Entries that a configuration does not use keep their initial
/// value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, bitcode::Encode, bitcode::Decode)]
pub struct State {
    /// The oldest address in use.
    pub head: u8,
    /// Evictions have been started up to this address.
    pub claimed: u8,
    /// Blocks below this address are copied when they are used.
    pub second_chance: u8,
    /// The next address to be allocated.
    pub tail: u8,
    /// The block that begins at each offset.
    pub block: [Block; UNITS],
    /// One bit set of offsets for each size class.
    pub free_list: [Set; CLASSES],
    /// The mapping table.
    pub word: [Word; PAGES],
    /// The leaf pages.
    pub disk: [u8; PAGES],
    /// The clients.
    pub thread: [Thread; CLIENTS],
    /// Whether clients still make calls.
    pub open: bool,
    /// The value that was last written to each page.
    pub written: [u8; PAGES],
}

impl State {
    /// The initial state (`Init`).
    pub(super) const INIT: Self = Self {
        head: 0,
        claimed: 0,
        second_chance: 0,
        tail: 0,
        block: [Block::NONE; UNITS],
        free_list: [0; CLASSES],
        word: [Word::free(NONE); PAGES],
        disk: [ABSENT; PAGES],
        thread: [Thread::IDLE; CLIENTS],
        open: true,
        written: [ABSENT; PAGES],
    };

    /// The block at an offset.
    pub(super) fn at(&self, offset: u8) -> &Block {
        &self.block[usize::from(offset)]
    }

    /// The block at an offset.
    pub(super) fn at_mut(&mut self, offset: u8) -> &mut Block {
        &mut self.block[usize::from(offset)]
    }

    /// `Current` of a page.
    pub(super) fn current(&self, page: usize) -> u8 {
        let at = self.word[page].at;
        if at == NONE || self.at(at).rec == NONE {
            self.disk[page]
        } else {
            self.at(at).rec
        }
    }
}

/// Packs numbers side by side, each into the given number of bits.
fn pack<const N: usize>(fields: [(u8, u32); N]) -> u64 {
    (fields.into_iter()).fold(0, |word, (field, bits)| word << bits | u64::from(field))
}

// Hashes a few words instead of a hundred fields, since hashing takes a good part of the time of
// checking a state. In the wide form fields overlap.
#[allow(clippy::derived_hash_with_manual_eq)]
#[allow(clippy::unnecessary_cast, reason = "no cast in the wide form")]
impl Hash for State {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let addresses = [self.head, self.claimed, self.second_chance, self.tail];
        let lists = self.free_list.map(|list| (list as u8, 8));
        hasher.write_u64(
            u64::from(u32::from_le_bytes(addresses)) << 32
                | pack(lists) << 8
                | u64::from(self.open),
        );
        for blocks in self.block.chunks(4) {
            hasher.write_u64(blocks.iter().fold(0, |word, b| word << 13 | b.bits()));
        }
        let pages = (0..PAGES).fold(0, |word, p| {
            let Word {
                at,
                writer,
                readers,
            } = self.word[p];
            let page = [(at, 3), (writer, 3), (readers as u8, 3)];
            word << 15 | pack(page) << 6 | pack([(self.disk[p], 3), (self.written[p], 3)])
        });
        hasher.write_u64(pages);
        for threads in self.thread.chunks(2) {
            hasher.write_u64(threads.iter().fold(0, |word, t| word << 28 | t.bits()));
        }
    }
}
