//! What recovery reads of the device, and redo (`SnapshotState.tla`).

use super::room::{N, Set};
use super::state::{Chain, Entries, InSlot, Index, Kind, Leaf, NO_SLOT, Place, Record, State};
use super::state::{Super, at, before, bit, from, has, joined, size};
use super::{Bug, IndexSnapshot};

impl IndexSnapshot {
    /// `ChainOf`: the snapshot that a superblock names, as the slots are now.
    pub(super) fn chain_of(&self, slots: &[Place], chosen: Super) -> Chain {
        let chain = self.chain_from(slots, chosen).filter(|chain| {
            let mut fences = chain.entries.all().map(|entry| entry.fence);
            let is_map = fences.next() == Some(1) && chain.entries.is_ascending();
            is_map && self.is_what_was_written(&chain.entries, chosen)
        });
        chain.unwrap_or_default()
    }

    /// `ChainFrom`, from the first chunk on.
    fn chain_from(&self, slots: &[Place], chosen: Super) -> Option<Chain> {
        let mut chain = Chain::default();
        let mut next = chosen.head;
        while next != NO_SLOT {
            let InSlot::Chunk {
                number,
                entries,
                next: then,
            } = slots[at(next)].newest()
            else {
                return None;
            };
            let is_its = number == chosen.number || self.bug == Bug::TakesAnyChunk;
            if has(chain.slots, next) || !is_its {
                return None;
            }
            chain.slots |= bit(next);
            if !entries.all().all(|entry| chain.entries.push(entry)) {
                return None;
            }
            next = then;
        }
        chain.ok = true;
        Some(chain)
    }

    /// `IsWhatWasWritten`.
    fn is_what_was_written(&self, entries: &Entries, chosen: Super) -> bool {
        match self.bug {
            Bug::TakesAnyChunk => true,
            Bug::TrustsNumber => entries.len() == chosen.sum.len(),
            _ => *entries == chosen.sum,
        }
    }

    /// `LeafIn`: the image that recovery takes, if it is not older than `version`.
    pub(super) fn leaf_in(&self, block: InSlot, version: N) -> Leaf {
        match block {
            InSlot::Image(leaf) if leaf.lsn >= version || self.bug == Bug::TakesAnyImage => leaf,
            _ => Leaf::default(),
        }
    }

    /// `Applied`: a record on a leaf that it changes.
    pub(super) fn applied(&self, leaf: Leaf, record: &Record, n: N) -> Leaf {
        let Record { key, .. } = *record;
        let mut changed = Leaf { lsn: n, ..leaf };
        let fits = match record.is {
            Kind::Put => {
                changed.map[at(key)] = record.value;
                leaf.covers(key) && leaf.has_room_for(key, record.value, self.room)
            }
            Kind::Split => {
                changed.upper = key;
                changed.map = before(&leaf.map, key);
                leaf.lower < key && key < leaf.upper
            }
            Kind::Merge => {
                changed.upper = record.upper;
                changed.map = joined(&leaf.map, &record.map, leaf.upper);
                leaf.upper < record.upper
                    && from(&record.map, leaf.upper) == record.map
                    && size(&leaf.map) + size(&record.map) <= self.room
            }
        };
        if fits { changed } else { Leaf::default() }
    }

    /// `Redone`: a page with the record that has this LSN.
    pub(super) fn redone(&self, p: u8, leaf: Leaf, record: &Record, n: N, held: Set) -> Leaf {
        let lacks = leaf.lsn < n || self.bug == Bug::Reapplies;
        if record.page == p {
            match leaf.is_gone() || !lacks {
                true => leaf,
                false => self.applied(leaf, record, n),
            }
        } else if record.is == Kind::Split && record.right == p {
            if has(held, p) && self.bug != Bug::BuildsOverChunk {
                Leaf::default()
            } else if self.bug == Bug::SkipsRight || (!leaf.is_gone() && leaf.lsn >= n) {
                leaf
            } else {
                record.built(n)
            }
        } else if record.ends(p) && leaf.lsn < n {
            Leaf::default()
        } else {
            leaf
        }
    }

    /// `RedoneFrom`.
    pub(super) fn redone_from(
        &self,
        s: &State,
        (p, mut leaf): (u8, Leaf),
        (n, end): (N, N),
        held: Set,
    ) -> Leaf {
        for n in n..=end {
            leaf = self.redone(p, leaf, s.record(n), n, held);
        }
        leaf
    }

    /// `Reindexed`.
    pub(super) fn reindex(&self, index: &mut Index, record: &Record) {
        match record.is {
            Kind::Split if self.bug != Bug::SkipsNewFences => {
                index[at(record.key)] = record.right;
            }
            Kind::Merge if self.bug != Bug::SkipsGoneFences => index[at(record.key)] = NO_SLOT,
            _ => {}
        }
    }

    /// `ReindexedFrom`.
    pub(super) fn reindexed_from(&self, s: &State, mut index: Index, n: N, end: N) -> Index {
        (n..=end).for_each(|n| self.reindex(&mut index, s.record(n)));
        index
    }
}
