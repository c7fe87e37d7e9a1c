//! The mirror as the judge of a recording: it is led step by step, and only its state's size bounds
//! it.
//!
//! A checker asks for every enabled step. A judge has one step in hand and asks whether it is
//! enabled. The guards are the same. Some steps are not the spec's: see [`IndexSnapshot::flush`],
//! [`IndexSnapshot::try_read_fence`] and [`IndexSnapshot::restore`].

use super::super::wal_recovery::Versions;
use super::invariants::INVARIANTS;
use super::room::{CLIENTS, KEYS, LOG, N, SLOTS, Set};
use super::state::{Call, Entries, InSlot, Index, Kind, Leaf, NO_SLOT, PENDING, Phase, State};
use super::state::{Stage, Step, Super, at, fence_of, fences_from, has};
use super::{Action, Apart, Bug, IndexSnapshot};
use crate::Value;

/// An entry of a chunk, as a judge compares it: fence, page, and version.
pub type EntryName = (u8, u8, u64);

/// A version of a slot, as a judge compares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SlotName {
    /// Zeros.
    Zeros,
    /// The image of the page of that number.
    Image(LeafName),
    /// A chunk of a snapshot.
    Chunk {
        /// The number of its superblock.
        number: u64,
        /// Its entries.
        entries: Vec<EntryName>,
        /// The slot of the next chunk; 0 if it is the last.
        next: u8,
    },
}

/// A leaf, as a judge compares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeafName {
    /// The lower fence.
    pub lower: u8,
    /// The upper fence.
    pub upper: u8,
    /// The LSN of its last change.
    pub lsn: u64,
    /// The keys that exist, with their values.
    pub records: Vec<(u8, u64)>,
}

/// A version of the superblock, as a judge compares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SuperName {
    /// Its number.
    pub number: u64,
    /// The LSN after which redo begins.
    pub redo: u64,
    /// The slot of the first chunk.
    pub head: u8,
    /// The number of entries.
    pub entries: u64,
}

/// What a crash leaves: the version of each place, counted from the durable one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Of each slot.
    pub slots: Vec<usize>,
    /// Of the superblock.
    pub superblock: usize,
}

/// What the index was at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexThen(Index);

impl IndexSnapshot {
    /// The protocol for the given numbers of clients, keys and slots, for leaves with room for
    /// `room` records and chunks with room for `per_chunk` entries. It begins with one leaf. Any
    /// client may call anything, any free slot may be taken, any write may be lost, and the power
    /// may fail at any time.
    ///
    /// # Panics
    /// If the state has no room for as many.
    #[must_use]
    pub fn unbounded(
        clients: usize,
        (keys, slots): (usize, usize),
        room: usize,
        per_chunk: usize,
    ) -> Self {
        assert!(clients <= CLIENTS && keys <= KEYS && slots <= SLOTS);
        let names = (1..=clients).map(|i| Value::model(format!("c{i}")));
        Self {
            clients: names.collect(),
            keys: keys as u8,
            slots: slots as u8,
            values: LOG as N,
            absent: Value::model("Absent"),
            pending: Value::model("Pending"),
            fences: 1,
            room,
            per_chunk,
            trims: true,
            bug: Bug::None,
            deletes: 0,
            write_keys: Set::MAX,
            writers: Set::MAX,
            read_keys: Set::MAX,
            readers: Set::MAX,
            scanners: Set::MAX,
            back_scanners: Set::MAX,
            split_keys: Set::MAX,
            max_splits: N::MAX,
            max_merges: N::MAX,
            max_checkpoints: N::MAX,
            max_crashes: N::MAX,
            max_restarts: N::MAX,
            max_losses: N::MAX,
            apart: Apart::No,
            bounded: false,
            invariants: INVARIANTS
                .iter()
                .map(|(name, _)| *name)
                .filter(|name| name.ends_with("Inv"))
                .collect(),
        }
    }

    /// The maximum number of keys.
    pub const MOST_KEYS: usize = KEYS;

    /// The maximum number of slots.
    pub const MOST_SLOTS: usize = SLOTS;

    /// The initial state.
    #[must_use]
    pub fn first(&self) -> State {
        self.initial()
    }

    /// Takes a step, other than a crash or restart, if it is enabled. Returns whether it was.
    pub fn try_take(&self, s: &mut State, action: Action) -> bool {
        let may = self.steps(s).contains(&action);
        if may {
            self.take(s, action);
        }
        may
    }

    /// All enabled steps, except crashes and restarts.
    #[must_use]
    pub fn steps(&self, s: &State) -> Vec<Action> {
        let mut actions = Vec::new();
        self.enabled_but_crashes(s, &mut actions);
        actions
    }

    /// A flush of the device for something else. The spec leaves it out, since it only leaves less
    /// to a crash.
    pub fn flush(&self, s: &mut State) {
        s.slot_dev.iter_mut().for_each(Versions::flush);
        s.super_dev.flush();
    }

    /// Takes back the trim of a slot, if that is the last thing that was done to it: it was
    /// announced, and the process ended before. Returns whether it was.
    pub fn undo_trim(&self, s: &mut State, slot: u8) -> bool {
        let all = s.place(slot).all().to_vec();
        let Some((InSlot::Zeros, [first, rest @ ..])) = all.split_last() else {
            return false;
        };
        let mut place = Versions::durably(*first);
        rest.iter().for_each(|version| place.push(*version));
        s.slot_dev[at(slot)] = place;
        true
    }

    /// Whether a slot holds a chunk that the chosen superblock does not name.
    #[must_use]
    pub fn holds_dead_chunk(&self, s: &State, slot: u8) -> bool {
        let is_chunk = matches!(s.place(slot).newest(), InSlot::Chunk { .. });
        is_chunk && !self.chain(s).contains(&slot)
    }

    /// The journal restores the image of a page to its slot, while recovery begins. The spec has no
    /// journal: there, a slot that holds a chunk has no page.
    pub fn restore(&self, s: &mut State, slot: u8, image: &LeafName) {
        let leaf = leaf_of(image);
        s.slot_dev[at(slot)].push(InSlot::Image(leaf));
        if s.phase != Phase::Up {
            let version = self.chain_of(&s.slot_dev, s.newest).version(slot);
            s.page[at(slot)] = self.leaf_in(InSlot::Image(leaf), version);
            s.version[at(slot)] = s.page[at(slot)].lsn;
        }
    }

    /// Takes `ReadFence`, of a fence and its page that the index had at an earlier instant: the
    /// engine reads many entries at once, and adds them one by one. Returns `false` if the
    /// checkpoint does not read fences, or if this is not the next one.
    pub fn try_read_fence(&self, s: &mut State, then: IndexThen, fence: u8, page: u8) -> bool {
        let next = fences_from(&then.0, s.checkpoint.next).next();
        let reads = s.phase == Phase::Up && s.checkpoint.at == Step::Fence;
        let may = reads && next == Some(fence) && then.0[at(fence)] == page;
        if may {
            s.checkpoint.at = Step::Version;
            (s.checkpoint.next, s.checkpoint.page) = (fence, page);
        }
        may
    }

    /// Whether the next fence, and its page, are the same in both.
    #[must_use]
    pub fn reads_alike(&self, s: &State, (then, now): (IndexThen, IndexThen)) -> bool {
        let next = |index: &Index| {
            let fence = fences_from(index, s.checkpoint.next).next();
            fence.map(|fence| (fence, index[at(fence)]))
        };
        next(&then.0) == next(&now.0)
    }

    /// In recovery, whether the chunks are what was written.
    #[must_use]
    pub fn is_chain_whole(&self, s: &State) -> bool {
        s.is_readable()
    }

    /// Whether the index has a fence from the checkpoint's next one on.
    #[must_use]
    pub fn has_fence_left(&self, s: &State, then: IndexThen) -> bool {
        fences_from(&then.0, s.checkpoint.next).next().is_some()
    }

    /// Takes a `Crash` that leaves the log up to record `n` and these versions. Returns `false` if
    /// there are no such versions.
    pub fn try_crash(&self, s: &mut State, n: u64, left: &Left) -> bool {
        let Some(n) = log_end(s, n) else {
            return false;
        };
        let mut places = s.slot_dev.iter_mut().zip(&left.slots);
        let may = places.all(|(place, version)| {
            let left = place.all().get(*version).copied();
            left.map(|left| *place = Versions::durably(left)).is_some()
        });
        let chosen = s.super_dev.all().get(left.superblock).copied();
        let Some(chosen) = chosen.filter(|_| may) else {
            return false;
        };
        s.super_dev = Versions::durably(chosen);
        self.reads(s, n);
        s.phase = Phase::Cut;
        true
    }

    /// Takes a `Restart` that finds the log up to record `n`. Returns `false` if the log cannot end
    /// there.
    pub fn try_restart(&self, s: &mut State, n: u64) -> bool {
        let n = log_end(s, n);
        if let Some(n) = n {
            self.take(s, Action::Restart(n));
        }
        n.is_some()
    }

    /// The slots of the chain that the newest superblock names, in its order.
    #[must_use]
    pub fn chain(&self, s: &State) -> Vec<u8> {
        let mut slots = Vec::new();
        let mut next = s.newest.head;
        while next != NO_SLOT && !slots.contains(&next) {
            slots.push(next);
            next = match s.place(next).newest() {
                InSlot::Chunk { next, .. } => next,
                _ => NO_SLOT,
            };
        }
        slots
    }
}

fn log_end(s: &State, n: u64) -> Option<N> {
    let known = u64::from(s.durable)..=u64::from(s.log_len);
    known.contains(&n).then_some(n as N)
}

fn names(entries: &Entries) -> Vec<EntryName> {
    let all = entries.all();
    all.map(|entry| (entry.fence, entry.page, entry.version.into()))
        .collect()
}

fn leaf_name(leaf: &Leaf) -> LeafName {
    let records = (1..).zip(leaf.map).filter(|(_, value)| *value != 0);
    LeafName {
        lower: leaf.lower,
        upper: leaf.upper,
        lsn: leaf.lsn.into(),
        records: records.map(|(k, value)| (k, value.into())).collect(),
    }
}

fn leaf_of(name: &LeafName) -> Leaf {
    let mut leaf = Leaf {
        lower: name.lower,
        upper: name.upper,
        lsn: name.lsn as N,
        ..Leaf::default()
    };
    for (k, value) in &name.records {
        leaf.map[at(*k)] = *value as N;
    }
    leaf
}

fn slot_name(block: &InSlot) -> SlotName {
    match block {
        InSlot::Zeros => SlotName::Zeros,
        InSlot::Image(leaf) => SlotName::Image(leaf_name(leaf)),
        InSlot::Chunk {
            number,
            entries,
            next,
        } => SlotName::Chunk {
            number: (*number).into(),
            entries: names(entries),
            next: *next,
        },
    }
}

fn super_name(of: &Super) -> SuperName {
    SuperName {
        number: of.number.into(),
        redo: of.redo.into(),
        head: of.head,
        entries: of.sum.len() as u64,
    }
}

/// What a judge reads of a state. All numbers have 64 bits.
impl State {
    /// A client's outstanding call.
    #[must_use]
    pub fn call(&self, c: u8) -> Call {
        self.call[usize::from(c)]
    }

    /// The page to which a client's descent has led; 0 if it has to descend.
    #[must_use]
    pub fn reached(&self, c: u8) -> u8 {
        self.call(c).page()
    }

    /// The value that a client's get has read.
    #[must_use]
    pub fn got(&self, c: u8) -> Option<u64> {
        match self.call(c) {
            Call::Get { got, .. } if got != PENDING => Some(got.into()),
            _ => None,
        }
    }

    /// The keys that a client's scan has read and that exist, with their values.
    #[must_use]
    pub fn scanned(&self, c: u8) -> Vec<(u8, u64)> {
        match self.call(c) {
            Call::Scan { got, .. } => {
                let read = (1..).zip(got).filter(|(_, v)| *v != PENDING && *v != 0);
                read.map(|(k, value)| (k, value.into())).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The keys that exist on a page, in order.
    #[must_use]
    pub fn keys_of(&self, page: u8) -> Vec<u8> {
        let records = leaf_name(self.leaf(page)).records;
        records.into_iter().map(|(k, _)| k).collect()
    }

    /// A page, as it is in memory.
    #[must_use]
    pub fn page_now(&self, page: u8) -> LeafName {
        leaf_name(self.leaf(page))
    }

    /// The fences of a page; zeros if it is gone.
    #[must_use]
    pub fn fences_of(&self, page: u8) -> (u8, u8) {
        let leaf = self.leaf(page);
        (leaf.lower, leaf.upper)
    }

    /// The greatest fence up to a key.
    #[must_use]
    pub fn fence_of(&self, k: u8) -> u8 {
        fence_of(&self.index, k)
    }

    /// The LSN of the last change of a page.
    #[must_use]
    pub fn lsn_of(&self, page: u8) -> u64 {
        self.leaf(page).lsn.into()
    }

    /// The LSN of the image that a page is known to have on the device.
    #[must_use]
    pub fn version_of(&self, page: u8) -> u64 {
        self.version[at(page)].into()
    }

    /// Number of records in the log (`Len(log)`).
    #[must_use]
    pub fn log_len(&self) -> u64 {
        self.log_len.into()
    }

    /// Number of writes in the log.
    #[must_use]
    pub fn puts(&self) -> u64 {
        self.count(Kind::Put).into()
    }

    /// The LSN up to which the log is durable (`durable`).
    #[must_use]
    pub fn durable(&self) -> u64 {
        self.durable.into()
    }

    /// The LSN up to which the log has been given up (`oldest`).
    #[must_use]
    pub fn oldest(&self) -> u64 {
        self.oldest.into()
    }

    /// In recovery, the LSN up to which the log has been replayed (`redone`).
    #[must_use]
    pub fn redone(&self) -> u64 {
        self.redone.into()
    }

    /// Kind, page, fence or key, and right page of record `n`.
    #[must_use]
    pub fn record_of(&self, n: u64) -> Option<(Kind, u8, u8, u8)> {
        let mut records = self.records();
        let (_, record) = records.find(|(m, _)| u64::from(*m) == n)?;
        Some((record.is, record.page, record.key, record.right))
    }

    /// The record of the split or merge under way, and whether its leaves are changed.
    #[must_use]
    pub fn changing(&self) -> Option<(u64, bool)> {
        let changed = self.change.at == Stage::Changed;
        (self.change.at != Stage::None).then_some((self.change.lsn.into(), changed))
    }

    /// The phase.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// The newest superblock that is known to be durable (`super`).
    #[must_use]
    pub fn superblock(&self) -> SuperName {
        super_name(&self.newest)
    }

    /// The index now.
    #[must_use]
    pub fn index_now(&self) -> IndexThen {
        IndexThen(self.index)
    }

    /// Whether a slot is free. Slots are counted from 1.
    #[must_use]
    pub fn is_free(&self, slot: u8) -> bool {
        has(self.free, slot)
    }

    /// The progress of the checkpoint.
    #[must_use]
    pub fn step(&self) -> Step {
        self.checkpoint.at
    }

    /// The position at which the checkpoint under way began.
    #[must_use]
    pub fn begun(&self) -> u64 {
        self.checkpoint.begin.into()
    }

    /// The first slot, the last one, the number of entries in memory, and that of all entries of
    /// the snapshot under way.
    #[must_use]
    pub fn snapshot(&self) -> (u8, u8, usize, usize) {
        let of = &self.checkpoint;
        (of.head, of.last, of.entries.len(), of.sum.len())
    }

    /// The page whose version the checkpoint is about to read.
    #[must_use]
    pub fn entry_page(&self) -> u8 {
        self.checkpoint.page
    }

    /// The first slot that has versions that are not flushed.
    #[must_use]
    pub fn unflushed(&self) -> Option<u8> {
        (1..=SLOTS as u8).find(|slot| self.place(*slot).is_unflushed())
    }

    /// Whether the superblock has versions that are not flushed.
    #[must_use]
    pub fn is_super_unflushed(&self) -> bool {
        self.super_dev.is_unflushed()
    }

    /// The versions of a slot, oldest first.
    pub fn slot_versions(&self, slot: u8) -> impl DoubleEndedIterator<Item = SlotName> + '_ {
        self.place(slot).all().iter().map(slot_name)
    }

    /// The versions of the superblock, oldest first.
    pub fn super_versions(&self) -> impl DoubleEndedIterator<Item = SuperName> + '_ {
        self.super_dev.all().iter().map(super_name)
    }
}
