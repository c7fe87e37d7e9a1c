//! What recovery reads of the places, and what a crash may leave of them (`CowState.tla`).

use super::super::wal_recovery::Versions;
use super::room::{BLOCKS, CLIENTS, LOG, PAGES, SLOTS, Set, SlotSet};
use super::state::{Call, Checkpoint, Content, Entries, InSlot, NO_SLOT, Phase, Record, State};
use super::state::{Super, Writing, bit, named_by, slot_bit};
use super::{Bug, CopyOnWrite};

impl CopyOnWrite {
    /// `Init`, with the table written each time, or at checkpoints.
    pub(super) fn initial(&self, each: bool) -> State {
        let first = |number| Super {
            number,
            redo: 0,
            snapshot: 1,
            made: 1,
        };
        let mut slot_dev = [Versions::durably(InSlot::Zeros); SLOTS];
        slot_dev[0] = Versions::durably(InSlot::Snapshot {
            number: 1,
            pages: 0,
        });
        State {
            each,
            call: [Call::Idle; CLIENTS],
            log: [Record::default(); LOG],
            log_len: 0,
            durable: 0,
            oldest: 0,
            page: [Content::default(); PAGES],
            index: 0,
            table: [NO_SLOT; PAGES],
            free: self.all_slots() & !1,
            retired: [0; PAGES],
            newest: first(2),
            writing: Writing::Quiet,
            checkpoint: Checkpoint::NONE,
            slot_dev,
            table_dev: [Versions::durably([NO_SLOT; PAGES]); BLOCKS],
            super_dev: [Versions::durably(first(2)), Versions::durably(first(1))],
            lost_slots: 0,
            lost_table: 0,
            lost_super: 0,
            poisoned: false,
            phase: Phase::Up,
            redone: 0,
            crashes: 0,
        }
    }

    pub(super) fn all_slots(&self) -> SlotSet {
        (1..=self.slots).fold(0, |set, slot| set | slot_bit(slot))
    }

    pub(super) fn block_of(&self, p: usize) -> usize {
        usize::from(self.second & bit(p) != 0)
    }

    /// `Entries`: a block of this table.
    pub(super) fn entries(&self, table: &Entries, block: usize) -> Entries {
        let mut entries = *table;
        for (p, slot) in entries.iter_mut().enumerate() {
            if self.block_of(p) != block {
                *slot = NO_SLOT;
            }
        }
        entries
    }

    /// `TableOf`: the table that these blocks are.
    pub(super) fn table_of(&self, blocks: &[Entries; BLOCKS]) -> Entries {
        std::array::from_fn(|p| blocks[self.block_of(p)][p])
    }

    /// `Persisted`: the slots that the table on the device names.
    pub(super) fn persisted(&self, s: &State) -> SlotSet {
        let blocks = s.table_dev.map(|place| place.newest());
        named_by(&self.table_of(&blocks))
    }

    /// `Held`: those of them that the table in memory does not name.
    pub(super) fn held(&self, s: &State) -> SlotSet {
        self.persisted(s) & !named_by(&s.table)
    }

    /// `DirtyBlocks`.
    pub(super) fn dirty_blocks(&self, s: &State) -> Set {
        let dirty = |b: &usize| self.entries(&s.table, *b) != s.table_dev[*b].newest();
        (0..self.blocks)
            .filter(dirty)
            .fold(0, |set, b| set | bit(b))
    }

    /// `Chosen`.
    pub(super) fn chosen(&self, supers: &[Super; 2]) -> Super {
        let (newer, older) = match supers[0].number > supers[1].number {
            true => (supers[0], supers[1]),
            false => (supers[1], supers[0]),
        };
        match self.bug == Bug::TakesOlder && older.number != 0 {
            true => older,
            false => newer,
        }
    }

    /// Whether a crash may leave this superblock's place unreadable.
    pub(super) fn may_tear(&self, s: &State, place: usize) -> bool {
        self.tears && s.super_dev[place].is_unflushed()
    }

    /// The superblocks that a recovery may choose (`MayChoose`).
    pub(super) fn may_choose(&self, s: &State) -> impl Iterator<Item = Super> {
        let supers = self.left_supers(s);
        supers.map(|supers| self.chosen(&supers))
    }

    /// `LeftSupers`.
    pub(super) fn left_supers(&self, s: &State) -> impl Iterator<Item = [Super; 2]> + use<> {
        let of = |i: usize| {
            let torn = self.may_tear(s, i).then(Super::default);
            let all = s.super_dev[i].all().iter().copied().chain(torn);
            all.collect::<Vec<_>>()
        };
        let (first, second) = (of(0), of(1));
        first
            .into_iter()
            .flat_map(move |a| second.clone().into_iter().map(move |b| [a, b]))
    }
}
