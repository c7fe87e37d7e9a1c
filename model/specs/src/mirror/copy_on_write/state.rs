//! The variables of `CowState.tla`, and what follows from them.
//!
//! Small numbers in small arrays, since a state is copied and hashed at every step. Unused entries
//! are zero, so that equal states are equal bytes. Clients, pages and table blocks are numbered
//! from 0, slots from 1.

use super::super::wal_recovery::Versions;
use super::room::{BLOCKS, CLIENTS, LOG, N, PAGES, SLOTS, Set, SlotSet, VERSIONS};

/// 0 is `Absent`.
pub(super) const ABSENT: N = 0;
pub(super) const PENDING: N = N::MAX;
/// `NoSlot`.
pub(super) const NO_SLOT: u8 = 0;

/// What a record does to its page.
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
pub enum Kind {
    /// Makes it.
    #[default]
    Build,
    /// Changes it.
    Put,
    /// The page exists no more.
    Drop,
}

/// A record of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct Record {
    pub(super) kind: Kind,
    pub(super) page: u8,
    pub(super) value: N,
}

/// The content of a page. The default is `Gone`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct Content {
    pub(super) value: N,
    pub(super) lsn: N,
}

/// What is in a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub enum InSlot {
    /// Never written, or trimmed.
    #[default]
    Zeros,
    /// The image of a page.
    Image {
        /// The page.
        page: u8,
        /// Its content.
        content: Content,
    },
    /// The pages that existed at a checkpoint.
    Snapshot {
        /// The checkpoint's number.
        number: N,
        /// The pages.
        pages: Set,
    },
}

impl InSlot {
    /// Whether this is the snapshot that a superblock names.
    pub(super) fn is_snapshot_of(self, chosen: Super) -> bool {
        matches!(self, InSlot::Snapshot { number, .. } if number == chosen.made)
    }

    /// The LSN of an image.
    pub(super) fn lsn(self) -> Option<N> {
        match self {
            InSlot::Image { content, .. } => Some(content.lsn),
            _ => None,
        }
    }
}

/// A superblock. The default is `Unreadable`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct Super {
    pub(super) number: N,
    pub(super) redo: N,
    pub(super) snapshot: u8,
    pub(super) made: N,
}

/// A table block: the slot of each page. Pages of other blocks have none.
pub(super) type Entries = [u8; PAGES];

/// A client's outstanding call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub enum Call {
    /// No call is outstanding.
    Idle,
    /// No call is outstanding. The last one was refused, and has had no effect.
    Refused,
    /// No call is outstanding. The last one failed, and nobody knows whether it had an effect.
    Unknown,
    /// A get.
    Get {
        /// The page.
        page: u8,
        /// What was read.
        got: N,
    },
    /// A put or delete.
    Write {
        /// The page.
        page: u8,
        /// The value to write.
        value: N,
        /// The LSN of its record, once it has one.
        lsn: N,
    },
}

impl Call {
    /// Whether the client waits for an answer.
    pub(super) fn waits(self) -> bool {
        matches!(self, Call::Get { .. } | Call::Write { .. })
    }
}

/// The write of a page or of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub enum Writing {
    /// None.
    Quiet,
    /// A page is written to a slot.
    Image {
        /// The page.
        page: u8,
        /// The slot.
        slot: u8,
    },
    /// Table blocks are written. These slots are free afterwards.
    Table(SlotSet),
}

/// A checkpoint's step.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode, strum::IntoStaticStr,
)]
#[strum(serialize_all = "lowercase")]
pub enum Step {
    /// There is no checkpoint.
    None,
    /// Pages are written.
    Sweep,
    /// The snapshot is written.
    Snapshot,
    /// The table names the pages.
    Named,
    /// The superblock is written.
    Recorded,
}

/// A checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct Checkpoint {
    pub(super) at: Step,
    pub(super) begin: N,
    pub(super) up_to: N,
    pub(super) slot: u8,
}

impl Checkpoint {
    pub(super) const NONE: Self = Self {
        at: Step::None,
        begin: 0,
        up_to: 0,
        slot: NO_SLOT,
    };
}

/// The phase of the store.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode, strum::IntoStaticStr,
)]
#[strum(serialize_all = "lowercase")]
pub enum Phase {
    /// The store serves clients.
    Up,
    /// Redo, after the power failed.
    Cut,
    /// Redo, after the process died and the device lived on.
    Killed,
    /// Redo is complete, and the table is being written.
    Clearing,
}

pub(super) type Slots = [Versions<InSlot, VERSIONS>; SLOTS];
pub(super) type Tables = [Versions<Entries, VERSIONS>; BLOCKS];
pub(super) type Supers = [Versions<Super, VERSIONS>; 2];

/// All variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct State {
    pub(super) each: bool,
    pub(super) call: [Call; CLIENTS],
    pub(super) log: [Record; LOG],
    pub(super) log_len: N,
    pub(super) durable: N,
    pub(super) oldest: N,
    pub(super) page: [Content; PAGES],
    pub(super) index: Set,
    pub(super) table: Entries,
    pub(super) free: SlotSet,
    /// For each page, the LSN of the record that dropped it, until it is freed.
    pub(super) retired: [N; PAGES],
    pub(super) newest: Super,
    pub(super) writing: Writing,
    pub(super) checkpoint: Checkpoint,
    pub(super) slot_dev: Slots,
    pub(super) table_dev: Tables,
    pub(super) super_dev: Supers,
    pub(super) lost_slots: SlotSet,
    pub(super) lost_table: Set,
    pub(super) lost_super: Set,
    pub(super) poisoned: bool,
    pub(super) phase: Phase,
    pub(super) redone: N,
    pub(super) crashes: N,
}

/// The set of one slot; of none if there is none.
pub(super) fn slot_bit(slot: u8) -> SlotSet {
    match slot {
        NO_SLOT => 0,
        slot => 1 << (slot - 1),
    }
}

pub(super) fn bit(member: usize) -> Set {
    1 << member
}

/// `NamedBy`: the slots that a table names.
pub(super) fn named_by(table: &Entries) -> SlotSet {
    table.iter().fold(0, |set, slot| set | slot_bit(*slot))
}

/// `ImageAt`: the image of a page in a slot with this content.
pub(super) fn image_of(content: InSlot, p: usize) -> Content {
    match content {
        InSlot::Image { page, content } if usize::from(page) == p => content,
        _ => Content::default(),
    }
}

impl State {
    /// The log's records with their LSNs.
    pub(super) fn records(&self) -> impl DoubleEndedIterator<Item = (N, &Record)> {
        (1..=self.log_len).zip(&self.log[..usize::from(self.log_len)])
    }

    pub(super) fn slot(&self, slot: u8) -> &Versions<InSlot, VERSIONS> {
        &self.slot_dev[usize::from(slot) - 1]
    }

    pub(super) fn slot_mut(&mut self, slot: u8) -> &mut Versions<InSlot, VERSIONS> {
        &mut self.slot_dev[usize::from(slot) - 1]
    }

    /// The newest image of a page in this slot.
    pub(super) fn image_at(&self, slot: u8, p: usize) -> Content {
        match slot {
            NO_SLOT => Content::default(),
            slot => image_of(self.slot(slot).newest(), p),
        }
    }

    pub(super) fn is_dirty(&self, p: usize) -> bool {
        let page = self.page[p];
        page != Content::default() && page.lsn != self.image_at(self.table[p], p).lsn
    }

    /// `PagesOf`: the pages that a superblock says exist.
    pub(super) fn pages_of(&self, chosen: Super) -> Set {
        match chosen.snapshot {
            NO_SLOT => 0,
            slot => match self.slot(slot).newest() {
                InSlot::Snapshot { number, pages } if number == chosen.made => pages,
                _ => 0,
            },
        }
    }

    pub(super) fn serving(&self) -> bool {
        self.phase == Phase::Up && !self.poisoned
    }

    pub(super) fn something_written(&self) -> bool {
        self.slot_dev.iter().any(Versions::is_unflushed)
            || self.table_dev.iter().any(Versions::is_unflushed)
            || self.super_dev.iter().any(Versions::is_unflushed)
    }

    pub(super) fn flush_slots(&mut self) {
        for (place, lost) in self
            .slot_dev
            .iter_mut()
            .zip(members(self.lost_slots.into()))
        {
            if !lost {
                place.flush();
            }
        }
    }

    pub(super) fn flush_table(&mut self) {
        for (place, lost) in self
            .table_dev
            .iter_mut()
            .zip(members(self.lost_table.into()))
        {
            if !lost {
                place.flush();
            }
        }
    }

    pub(super) fn flush_super(&mut self) {
        for (place, lost) in self
            .super_dev
            .iter_mut()
            .zip(members(self.lost_super.into()))
        {
            if !lost {
                place.flush();
            }
        }
    }

    /// `DeviceFlush`.
    pub(super) fn device_flush(&mut self) {
        self.flush_slots();
        self.flush_table();
        self.flush_super();
    }

    /// Writes to a slot.
    pub(super) fn write_slot(&mut self, slot: u8, content: InSlot) {
        self.slot_mut(slot).push(content);
        self.lost_slots &= !slot_bit(slot);
    }

    /// `Trimmed`: slots become zeros.
    pub(super) fn trim(&mut self, slots: SlotSet) {
        for slot in 1..=SLOTS as u8 {
            if slots & slot_bit(slot) != 0 {
                self.write_slot(slot, InSlot::Zeros);
            }
        }
    }

    /// `ValueAt`: the value of a page after the first `n` records.
    pub(super) fn value_at(&self, p: usize, n: N) -> N {
        let mut records = self.log[..usize::from(n)].iter().rev();
        let last = records.find(|record| usize::from(record.page) == p);
        last.map_or(ABSENT, |record| record.value)
    }
}

/// Whether each number from 0 on is in a bit set.
fn members(set: u128) -> impl Iterator<Item = bool> {
    (0..128).map(move |member| set >> member & 1 == 1)
}

/// `RedoOne`.
pub(super) fn redo_one(content: Content, record: &Record, n: N) -> Content {
    let changed = Content {
        value: record.value,
        lsn: n,
    };
    match record.kind {
        Kind::Build if content.lsn < n => changed,
        Kind::Put if content != Content::default() && content.lsn < n => changed,
        Kind::Drop if content.lsn < n => Content::default(),
        _ => content,
    }
}

/// `Reindexed`.
pub(super) fn reindexed(pages: Set, record: &Record) -> Set {
    let page = bit(usize::from(record.page));
    match record.kind {
        Kind::Build => pages | page,
        Kind::Put => pages,
        Kind::Drop => pages & !page,
    }
}
