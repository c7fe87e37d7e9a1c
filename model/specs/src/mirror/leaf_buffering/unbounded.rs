//! The mirror as the judge of a recording: it is led step by step, and only its state's size bounds
//! it. What the spec chooses to have fewer states, the engine may choose otherwise: which free slot
//! a record takes, which free leaf or chunk is next, where a leaf is split. Each such step returns
//! whether it is one of the choices that the spec could make.

use super::Action;
use super::constants::{Bug, LeafBuffering};
use super::content::{kept_above, unflushed};
use super::invariants::INVARIANTS;
use super::memory::{ABSENT, FIRST, chunk_of, kv_of, members, one, slot_of, stamp_of};
use super::memory::{Place, time_of};
use super::room::{self, BATCH, CHUNKS, CLIENTS, ENTRIES, KEYS, LEAVES, SLOTS};
use super::state::{At, Batch, Buffer, CLEANER, Call, Job, LogEnd, N, PENDING, Phase};
use super::state::{RECOVERER, Set, Slot, State, WriteAt};
use super::word::{Kv, Time, Word};
use crate::Value;

/// The writer that is recovery.
pub const RECOVERY: usize = RECOVERER;
/// The value of a key that does not exist.
pub const NOTHING: N = ABSENT;

/// A record and its slot.
pub type InSlot = (usize, Kv);

impl LeafBuffering {
    /// The maximum number of clients in a state.
    pub const MOST_CLIENTS: usize = CLIENTS;
    /// Leaves, slots of a leaf, chunks, and entries of a chunk in a state.
    pub const MOST_PLACES: (usize, usize, usize, usize) = (LEAVES, SLOTS, CHUNKS, ENTRIES);
    /// The maximum number of keys in a state.
    pub const MOST_KEYS: usize = KEYS;

    /// The protocol for these clients and keys, in a state as large as there is room for. Any
    /// client may call anything.
    ///
    /// # Panics
    /// If the state has no room for as many.
    #[must_use]
    pub fn unbounded(clients: usize, keys: usize, batch: usize) -> Self {
        assert!(
            clients <= CLIENTS && keys <= KEYS && batch <= BATCH,
            "no room"
        );
        Self {
            clients: (1..=clients)
                .map(|c| Value::model(format!("c{c}")))
                .collect(),
            keys,
            values: N::MAX - 1,
            leaves: LEAVES,
            slots: SLOTS,
            chunks: CHUNKS,
            entries: ENTRIES,
            batch,
            absent: Value::model("Absent"),
            pending: Value::model("Pending"),
            bug: Bug::None,
            deletes: 0,
            plan: [0; room::WRITES],
            readers: 0,
            flips: 0,
            max_crashes: N::MAX,
            max_kills: N::MAX,
            invariants: INVARIANTS[..6].iter().map(|(name, _)| *name).collect(),
        }
    }

    /// The first state.
    #[must_use]
    pub fn first() -> State {
        State::initial()
    }

    /// What may happen next, other than a call, a flip, or an end.
    #[must_use]
    pub fn steps(&self, s: &State) -> Vec<Action> {
        let mut actions = Vec::new();
        self.enabled(s, &mut actions);
        actions
    }

    /// Takes an action if it is enabled. Returns whether it was.
    #[must_use]
    pub fn try_take(&self, s: &mut State, action: Action) -> bool {
        let enabled = self.steps(s).contains(&action);
        if enabled {
            self.take(s, action);
        }
        enabled
    }

    /// `CallGet`, of any key.
    #[must_use]
    pub fn calls_get(&self, s: &mut State, c: usize, key: u8) -> bool {
        let free = s.phase == Phase::Up && s.call[c] == Call::Idle;
        s.call[c] = Call::Get { key, got: PENDING };
        free
    }

    /// `CallWrite`. Returns the value that the write puts.
    pub fn calls_write(&self, s: &mut State, c: usize, key: u8, delete: bool) -> Option<N> {
        if s.phase != Phase::Up || s.call[c] != Call::Idle {
            return None;
        }
        s.asked += 1;
        let value = if delete { ABSENT } else { s.asked };
        let at = WriteAt::Called;
        s.call[c] = Call::Write { key, value, at };
        Some(s.asked)
    }

    /// `ReadKey` at an earlier time, when the key had this value.
    pub fn has_read(&self, s: &mut State, c: usize, value: N) {
        if let Call::Get { got, .. } = &mut s.call[c] {
            *got = value;
        }
    }

    /// What `ReadKey` of an outstanding get would read now.
    #[must_use]
    pub fn would_read(&self, s: &State, c: usize) -> Option<N> {
        match s.call[c] {
            Call::Get { key, got: PENDING } if !s.is_latched(s.inner.route(key)) => {
                Some(self.lookup(s, &s.visible(), key))
            }
            _ => None,
        }
    }

    /// `FlipEpoch`.
    #[must_use]
    pub fn flips_epoch(&self, s: &mut State) -> bool {
        let free = s.phase == Phase::Up && s.cleaning.at == super::CleaningAt::Idle;
        if free {
            self.take(s, Action::FlipEpoch);
        }
        free
    }

    /// The part of `AppendLog` that names the epoch of a free chunk.
    #[must_use]
    pub fn takes_chunk(&self, s: &mut State, chunk: u8) -> bool {
        let free = s.pm[chunk_of(chunk)].newest().as_number() < s.pm[FIRST].all()[0].as_number();
        s.store(chunk_of(chunk), Word::number(s.epoch));
        free
    }

    /// Makes a logger go on at a place of a chunk. The chunk's epoch is durable.
    #[must_use]
    pub fn log_goes_on(
        &self,
        s: &mut State,
        logger: Option<usize>,
        (chunk, place): (u8, usize),
    ) -> bool {
        let epoch = s.pm[chunk_of(chunk)].newest().as_number();
        s.fence([chunk_of(chunk)]);
        s.log[logger.unwrap_or(CLEANER)] = LogEnd {
            chunk,
            used: place as u8,
            epoch,
        };
        epoch == s.epoch && place < self.entries
    }

    /// Makes an entry durable.
    pub fn fences_entry(&self, s: &mut State, (chunk, place): (u8, usize)) {
        s.fence([kv_of(chunk, place), time_of(chunk, place)]);
    }

    /// Leaves nothing for `Reclaim` to fence.
    pub fn copies_are_durable(&self, s: &mut State) {
        s.cleaning.chunks = 0;
    }

    /// A flush without a write of its own. `beside` is a merge that has the leaf's latch.
    #[must_use]
    pub fn flushes(&self, s: &mut State, w: usize, (leaf, beside): (u8, Option<usize>)) -> bool {
        let held = (s.job.iter().enumerate()).any(|(other, job)| {
            job.at != At::None && (job.leaf == leaf || job.from == leaf) && Some(other) != beside
        });
        let batch = unflushed(s.buffer(leaf));
        let free = s.phase == Phase::Up && s.job[w].at == At::None && !held;
        s.job[w] = Job {
            at: At::Batch,
            leaf,
            epoch: s.epoch,
            batch,
            deletes: batch.has_tombstone(),
            ..Job::default()
        };
        free
    }

    /// A write that should merge its leaf leaves that to a step of its own. Returns whether it
    /// should.
    pub fn merges_later(&self, s: &mut State, w: usize) -> bool {
        let should = self.should_merge(s, &s.visible(), &s.job[w]);
        s.job[w].deletes = false;
        should
    }

    /// A flush without a write of its own is done.
    pub fn lets_go(&self, s: &mut State, w: usize) {
        s.job[w] = Job::default();
    }

    /// Makes a writer, which need not be the one that flushed, begin to merge a leaf.
    #[must_use]
    pub fn begins_merge(&self, s: &mut State, w: usize, (from, left): (u8, u8)) -> bool {
        let free = !s.is_latched(from) && !s.is_latched(left) && s.job[w].at == At::None;
        let neighbours = from != 1 && self.left_of(s, from) == left;
        s.job[w] = Job {
            at: At::Flushed,
            leaf: from,
            epoch: s.epoch,
            deletes: true,
            ..Job::default()
        };
        free && neighbours
    }

    /// `LatchLeft`, whatever `ShouldMerge` says.
    pub fn latches_left(&self, s: &mut State, w: usize) {
        self.take(s, Action::LatchLeft(w as u8));
    }

    /// Leaves out of a writer's batch the deletes of a leaf's smallest key that is deleted already.
    /// Returns whether there are any.
    pub fn without_vain_deletes(&self, s: &mut State, w: usize) -> bool {
        let m = s.visible();
        let Job { leaf, batch, .. } = s.job[w];
        let keys = self.keys_in(&m, leaf);
        let vain = members(batch.keys & keys).filter(|key| {
            batch.value(*key) == ABSENT && self.in_leaf(&m, leaf, *key as u8) == ABSENT
        });
        let vain = vain.fold(0, |set, key| set | one(key));
        s.job[w].batch = batch.only(!vain);
        vain != 0
    }

    /// Whether these are all of some records, each in a free slot of a leaf of its own.
    fn fit(
        &self,
        s: &State,
        leaf: u8,
        content: &Batch,
        slots: &[(usize, Kv)],
    ) -> Result<Set, String> {
        let free = self.free(&s.visible(), leaf);
        let mut told = Batch::default();
        let mut taken = 0;
        for (slot, kv) in slots {
            if (free & !taken) >> slot & 1 == 0 {
                return Err(format!("slot {slot} of leaf {leaf} is not free"));
            }
            taken |= one(*slot);
            told.put(kv.key, kv.value);
        }
        if told != *content {
            let (told, content) = (told.pairs(), content.pairs());
            return Err(format!("{told:?} are stored, and not {content:?}"));
        }
        Ok(taken)
    }

    /// `StoreRecords`, in these slots.
    ///
    /// # Errors
    /// These are not the records of the batch, or the slots are not free.
    pub fn stores_records(
        &self,
        s: &mut State,
        w: usize,
        slots: &[(usize, Kv)],
    ) -> Result<Set, String> {
        let Job {
            at, leaf, batch, ..
        } = s.job[w];
        if at != At::Batch || !self.fits(s, &s.visible(), leaf, &batch) {
            return Err(format!("the writer is at {at:?}, with {:?}", batch.pairs()));
        }
        let taken = self.fit(s, leaf, &self.kept(s, leaf, &batch), slots)?;
        for (slot, kv) in slots {
            s.store(slot_of(leaf, *slot), Word::kv(*kv));
        }
        s.job[w].at = At::Records;
        Ok(taken)
    }

    /// `StoreHeader`, with the records in these slots.
    pub fn stores_header(&self, s: &mut State, w: usize, slots: Set) {
        self.store_header_with(s, w, slots);
    }

    /// Not a step of the spec: the first flush since the store was opened stamps the leaf with the
    /// time of the opening.
    pub fn stamps(&self, s: &mut State, leaf: u8, epoch: N) {
        s.store(stamp_of(leaf), Word::time(Time { epoch, tick: 0 }));
    }

    /// Not a step of the spec: the versions of a word after this one were never stored. Returns
    /// whether there are any.
    pub fn goes_back(&self, s: &mut State, (address, version): (usize, usize)) -> bool {
        let place = &mut s.pm[address];
        let all = place.all().to_vec();
        *place = Place::durably(all[0]);
        for version in &all[1..=version] {
            place.push(*version);
        }
        version + 1 < all.len()
    }

    /// `StoreNewLeaf`, split at another key, in another leaf and slots. Records of the batch that
    /// fit stay in the old leaf, in `slots`. Returns what the header of the old leaf gains and
    /// loses: slots and keys.
    ///
    /// # Errors
    /// The spec cannot split the leaf like this.
    pub fn stores_new_leaf(
        &self,
        s: &mut State,
        w: usize,
        (new, low): (u8, u8),
        (records, slots): (&[InSlot], &[InSlot]),
    ) -> Result<(Set, Set), String> {
        let m = s.visible();
        let Job {
            at, leaf, batch, ..
        } = s.job[w];
        if at != At::Batch || self.fits(s, &m, leaf, &batch) {
            return Err(format!("the writer is at {at:?}, and its batch fits"));
        }
        if s.inner.leaves() >> new & 1 == 1 || s.job.iter().any(|job| job.new == new) {
            return Err(format!("leaf {new} is in use"));
        }
        if (self.keys_in(&m, leaf) | batch.keys) >> low & 1 == 0 {
            return Err(format!("{low} is not a key of the leaf or of the batch"));
        }
        let above = !(one(low.into()) - 1);
        let mut all = Batch::default();
        for (_, kv) in self.records_in(&m, leaf) {
            all.put(kv.key, kv.value);
        }
        for key in members(batch.keys) {
            all.put(key as u8, batch.value(key));
        }
        let content = kept_above(low, &all.only(above));
        let slots_of_new = self.fit_new(&content, records)?;
        // Deletes of keys below are made with the split, and so are the puts that are told.
        let below = batch.only(!above);
        let kept = self.kept(s, leaf, &below);
        let told = slots
            .iter()
            .fold(0, |set, (_, kv)| set | one(kv.key.into()));
        let taken = self.fit(s, leaf, &kept.only(told), slots)?;
        let made = told | below.keys & !kept.keys;
        for (slot, kv) in slots {
            s.store(slot_of(leaf, *slot), Word::kv(*kv));
        }
        let rest = below.only(!made);
        self.store_new_leaf_with(s, w, (new, rest), records.iter().copied());
        debug_assert!(slots_of_new != 0, "the new leaf has its smallest key");
        Ok((taken, made))
    }

    fn fit_new(&self, content: &Batch, records: &[(usize, Kv)]) -> Result<Set, String> {
        let mut told = Batch::default();
        let mut taken = 0;
        for (slot, kv) in records {
            taken |= one(*slot);
            told.put(kv.key, kv.value);
        }
        if told != *content || taken.count_ones() as usize != records.len() {
            let (told, content) = (told.pairs(), content.pairs());
            return Err(format!("the new leaf has {told:?}, and not {content:?}"));
        }
        Ok(taken)
    }

    /// Whether the spec's `StoreNewLeaf` would leave the same rest of the batch, at the same key.
    #[must_use]
    pub fn splits_alike(&self, s: &State, w: usize, (low, made): (u8, Set)) -> bool {
        let (content, _) = self.split(&s.visible(), s.job[w].leaf, &s.job[w].batch);
        made == 0 && content.keys.trailing_zeros() == u32::from(low)
    }

    /// `StoreLink`, with what the header gains and loses.
    pub fn stores_link(&self, s: &mut State, w: usize, gains: (Set, Set)) {
        self.store_link_with(s, w, gains);
    }

    /// `MoveRecords`, to these slots.
    ///
    /// # Errors
    /// These are not the records of the leaf, or the slots are not free.
    pub fn moves_records(
        &self,
        s: &mut State,
        w: usize,
        slots: &[(usize, Kv)],
    ) -> Result<Set, String> {
        let Job { at, leaf, from, .. } = s.job[w];
        if at != At::Move {
            return Err(format!("the writer is at {at:?}"));
        }
        let taken = self.fit(s, leaf, &self.records(&s.visible(), from), slots)?;
        self.move_records_to(s, w, slots.iter().copied());
        Ok(taken)
    }

    /// `StoreMerged`, with the records in these slots.
    pub fn stores_merged(&self, s: &mut State, w: usize, slots: Set) {
        self.store_merged_with(s, w, slots);
    }

    /// `Replay` of several keys of one leaf.
    #[must_use]
    pub fn replays(&self, s: &mut State, leaf: u8, keys: &[u8]) -> bool {
        let m = s.visible();
        let mut batch = Batch::default();
        let missing = keys.iter().all(|key| {
            let value = self.recovered_key(&m, &s.inner, *key);
            batch.put(*key, value);
            s.inner.route(*key) == leaf && value != self.in_leaf(&m, leaf, *key)
        });
        let free = s.phase == Phase::Recovery && s.job[RECOVERER].at == At::None;
        s.job[RECOVERER] = Job {
            at: At::Batch,
            leaf,
            batch,
            ..Job::default()
        };
        missing && free
    }

    /// The cache of a buffer node becomes these keys. Returns whether each equals the leaf's and has
    /// no unflushed slot.
    #[must_use]
    pub fn caches(&self, s: &mut State, leaf: u8, cached: &[(u8, N)]) -> bool {
        let m = s.visible();
        let waiting = unflushed(s.buffer(leaf)).keys;
        let equal = cached
            .iter()
            .all(|(key, value)| waiting >> *key & 1 == 0 && self.in_leaf(&m, leaf, *key) == *value);
        let count = s.buffer(leaf).count;
        let buffer: &mut Buffer = s.buffer_mut(leaf);
        let rest = &mut buffer.slots[usize::from(count)..];
        if cached.len() > rest.len() {
            return false;
        }
        rest.fill(Slot::default());
        for (slot, (key, value)) in rest.iter_mut().zip(cached) {
            *slot = Slot {
                key: *key,
                value: *value,
                bit: 0,
            };
        }
        equal
    }

    /// The values of all keys after recovery, if the power failed now and nothing more survived.
    #[must_use]
    pub fn found(&self, s: &State) -> Vec<N> {
        self.recovered(&s.medium())[..self.keys].to_vec()
    }

    /// The keys' values and tombstones in a leaf, by slot.
    #[must_use]
    pub fn leaf_records(&self, s: &State, leaf: u8) -> Vec<(usize, Kv)> {
        self.records_in(&s.visible(), leaf).collect()
    }
}

impl Batch {
    /// The keys and their values.
    fn pairs(&self) -> Vec<(usize, N)> {
        members(self.keys)
            .map(|key| (key, self.value(key)))
            .collect()
    }
}
