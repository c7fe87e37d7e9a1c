//! The steps that write to leaves: batches, splits and merges.
//!
//! Where records go is the spec's choice in a model: in ascending order of keys, to the first free
//! slots. [`super::unbounded`] takes the same steps with the choice of an engine.

use super::constants::{Bug, LeafBuffering};
use super::content::{placed, slots_for, unflushed};
use super::memory::{Child, header_of, members, one, slot_of, stamp_of};
use super::room::Set;
use super::state::{At, Batch, Buffer, Call, Job, RECOVERER, Slot, State, WriteAt};
use super::word::{Kv, Time, Word};

impl LeafBuffering {
    pub(super) fn store_records(&self, s: &mut State, w: usize) {
        let m = s.visible();
        let Job { leaf, batch, .. } = s.job[w];
        let kept = self.kept(s, leaf, &batch);
        store_all(s, leaf, placed(&kept, self.free(&m, leaf)));
        s.job[w].at = At::Records;
    }

    pub(super) fn store_header(&self, s: &mut State, w: usize) {
        let m = s.visible();
        let Job { leaf, batch, .. } = s.job[w];
        let kept = self.kept(s, leaf, &batch).keys;
        self.store_header_with(s, w, slots_for(self.free(&m, leaf), kept));
    }

    /// The records of the batch are in these slots.
    pub(super) fn store_header_with(&self, s: &mut State, w: usize, slots: Set) {
        let m = s.visible();
        let Job { leaf, batch, .. } = s.job[w];
        if self.bug != Bug::HeaderBeforeRecords {
            fence_slots(s, leaf, slots);
        }
        let live = self.live_after(&m, leaf, batch.keys) | slots;
        s.store(header_of(leaf), Word::header(live, Self::next_of(&m, leaf)));
        if self.bug == Bug::TimestampWithBitmap && w != RECOVERER {
            let now = self.now(s, w);
            s.store(stamp_of(leaf), Word::time(now));
        }
        s.job[w].at = At::Header;
    }

    pub(super) fn fence_header(&self, s: &mut State, w: usize) {
        let leaf = s.job[w].leaf;
        fence_line(s, leaf);
        if w == RECOVERER {
            s.job[w] = Job::default();
            return;
        }
        let now = self.now(s, w);
        s.store(stamp_of(leaf), Word::time(now));
        s.buffer_mut(leaf).count = 0;
        takes_effect(s, w);
        let job = &mut s.job[w];
        job.at = if job.from == 0 { At::Flushed } else { At::Move };
        job.batch = Batch::default();
    }

    pub(super) fn store_new_leaf(&self, s: &mut State, w: usize) {
        let m = s.visible();
        let Job { leaf, batch, .. } = s.job[w];
        let Some(new) = self.free_leaf(s) else { return };
        let (content, rest) = self.split(&m, leaf, &batch);
        let slots = one(self.slots) - 1;
        self.store_new_leaf_with(s, w, (new, rest), placed(&content, slots));
    }

    /// These records go to this new leaf, and this is the rest of the batch.
    pub(super) fn store_new_leaf_with(
        &self,
        s: &mut State,
        w: usize,
        (new, rest): (u8, Batch),
        records: impl Iterator<Item = (usize, Kv)>,
    ) {
        let m = s.visible();
        let leaf = s.job[w].leaf;
        let live = store_all(s, new, records);
        s.store(header_of(new), Word::header(live, Self::next_of(&m, leaf)));
        let stamp = if self.bug == Bug::NewLeafUnstamped {
            Time::default()
        } else if w != RECOVERER {
            self.now(s, w)
        } else if self.bug == Bug::RecoveryStampsNewLeaf {
            Time {
                epoch: self.next_epoch(&m),
                tick: 0,
            }
        } else {
            m[stamp_of(leaf)].as_time()
        };
        s.store(stamp_of(new), Word::time(stamp));
        let job = &mut s.job[w];
        (job.at, job.new, job.batch) = (At::New, new, rest);
    }

    pub(super) fn store_link(&self, s: &mut State, w: usize) {
        self.store_link_with(s, w, (0, 0));
    }

    /// The old leaf also gets these slots and loses these keys with the link.
    pub(super) fn store_link_with(&self, s: &mut State, w: usize, (slots, keys): (Set, Set)) {
        let m = s.visible();
        let Job { leaf, new, .. } = s.job[w];
        fence_slots(s, leaf, slots);
        if self.bug != Bug::LinksBeforeFence {
            fence_line(s, new);
            fence_slots(s, new, one(self.slots) - 1);
        }
        let low = self.low_of(&m, new);
        let stay = self.records_in(&m, leaf);
        let stay = stay.filter(|(_, kv)| kv.key < low && keys >> kv.key & 1 == 0);
        let stay = stay.fold(slots, |set, (slot, _)| set | one(slot));
        s.store(header_of(leaf), Word::header(stay, new));
        if self.bug == Bug::SplitStampsOldLeaf {
            let now = self.now(s, w);
            s.store(stamp_of(leaf), Word::time(now));
        }
        s.job[w].at = At::Link;
    }

    pub(super) fn fence_link(&self, s: &mut State, w: usize) {
        let Job { leaf, new, .. } = s.job[w];
        let m = s.visible();
        let low = match self.bug {
            Bug::SeparatorBetween => (Set::BITS - self.keys_in(&m, leaf).leading_zeros()) as u8,
            _ => self.low_of(&m, new),
        };
        fence_line(s, leaf);
        let at = s.inner.position(leaf) + 1;
        s.inner.insert(at, Child { leaf: new, low });
        *s.buffer_mut(new) = match w == RECOVERER {
            true => Buffer::default(),
            false => self.copies(&m, new),
        };
        if let Some(Call::Write { key, .. }) = s.call.get(w)
            && s.job[w].batch.keys >> key & 1 == 0
        {
            takes_effect(s, w);
        }
        let job = &mut s.job[w];
        job.new = 0;
        job.at = if job.batch.keys == 0 {
            At::Header
        } else {
            At::Batch
        };
    }

    pub(super) fn latch_left(&self, s: &mut State, c: usize) {
        let from = s.job[c].leaf;
        let left = self.left_of(s, from);
        let mut batch = unflushed(s.buffer(left));
        if self.bug == Bug::MergeWithoutFlush {
            batch = Batch::default();
        }
        let epoch = s.epoch;
        let job = &mut s.job[c];
        job.at = if batch.keys == 0 { At::Move } else { At::Batch };
        (job.leaf, job.from) = (left, from);
        (job.epoch, job.batch) = (epoch, batch);
    }

    pub(super) fn move_records(&self, s: &mut State, c: usize) {
        let m = s.visible();
        let Job { leaf, from, .. } = s.job[c];
        let records = placed(&self.records(&m, from), self.free(&m, leaf));
        self.move_records_to(s, c, records);
    }

    /// The records go to these slots.
    pub(super) fn move_records_to(
        &self,
        s: &mut State,
        c: usize,
        records: impl Iterator<Item = (usize, Kv)>,
    ) {
        let leaf = s.job[c].leaf;
        store_all(s, leaf, records);
        if self.bug != Bug::MergeKeepsTimestamp {
            let now = self.now(s, c);
            s.store(stamp_of(leaf), Word::time(now));
        }
        s.job[c].at = At::Moved;
    }

    pub(super) fn store_merged(&self, s: &mut State, c: usize) {
        let m = s.visible();
        let Job { leaf, from, .. } = s.job[c];
        let slots = slots_for(self.free(&m, leaf), self.records(&m, from).keys);
        self.store_merged_with(s, c, slots);
    }

    /// The moved records are in these slots.
    pub(super) fn store_merged_with(&self, s: &mut State, c: usize, slots: Set) {
        let m = s.visible();
        let Job { leaf, from, .. } = s.job[c];
        if self.bug != Bug::MergesUnderOneFence {
            fence_line(s, leaf);
            fence_slots(s, leaf, slots);
        }
        let live = m[header_of(leaf)].live() | slots;
        s.store(header_of(leaf), Word::header(live, Self::next_of(&m, from)));
        s.job[c].at = At::Merged;
    }

    pub(super) fn fence_merged(&self, s: &mut State, c: usize) {
        let Job { leaf, from, .. } = s.job[c];
        fence_line(s, leaf);
        let at = s.inner.position(from);
        s.inner.remove(at);
        if self.bug != Bug::KeepsCache {
            let buffer = s.buffer_mut(leaf);
            buffer.slots[usize::from(buffer.count)..].fill(Slot::default());
        }
        *s.buffer_mut(from) = Buffer::default();
        s.cleaning.todo &= !one(from.into());
        let job = &mut s.job[c];
        (job.at, job.from) = (At::Done, 0);
    }
}

/// `TakesEffect`: the write of client `c` becomes durable.
pub(super) fn takes_effect(s: &mut State, c: usize) {
    if let Call::Write { key, value, at } = &mut s.call[c]
        && *at == WriteAt::Begun
    {
        *at = WriteAt::Done;
        s.written[usize::from(*key) - 1] = *value;
    }
}

/// Stores records, and returns their slots.
fn store_all(s: &mut State, leaf: u8, records: impl Iterator<Item = (usize, Kv)>) -> Set {
    records.fold(0, |slots, (slot, kv)| {
        s.store(slot_of(leaf, slot), Word::kv(kv));
        slots | one(slot)
    })
}

pub(super) fn fence_slots(s: &mut State, leaf: u8, slots: Set) {
    s.fence(members(slots).map(|slot| slot_of(leaf, slot)));
}

pub(super) fn fence_line(s: &mut State, leaf: u8) {
    s.fence([header_of(leaf), stamp_of(leaf)]);
}
