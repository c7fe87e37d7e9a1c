//! Splits a leaf without a log (LodgeTree §III-B), repaired
//! (`specs/surrogate_buffer/LeafCountFlush.tla`, PrepareLeaf to FinishSplit).
//!
//! ```text
//! new leaf, with what moves and what is buffered for it, next0 = the old one's next ─▶ fence
//! ─▶ spare sibling pointer of the old one = the new one ─▶ fence
//! ─▶ old header word: use_n flipped, bits of what moved off, stamp as it was ─▶ fence
//! ─▶ separator into the node; then what is buffered for the lower half is merged
//! ```
//!
//! - The separator is the median of all keys that the leaf would have, so one split always makes
//!   enough room: t_split plus the slots of a node are at most twice a leaf.
//! - The new leaf is stamped with the greatest number of the whole group. The old one keeps its
//!   stamp, because its half is still buffered.
//! - The beginning of the new leaf's range (`low`) is written into it before it is linked. In the
//!   paper, recovery has no separators except the keys that happen to be in the leaves.

use crate::error::Result;
use crate::mutation;
use crate::pm::bytes::Bytes;
use crate::pm::events::lodge::LodgeEvent;
use crate::pm::leaf::Slot;
use crate::pm::space::Room;
use crate::sync::atomic::Ordering::Relaxed;
use crate::types::IoClass;

use super::Lodge;
use super::flush::{Visit, take_out};
use super::leaf::{Bits, HEADER_BYTES, Header, Image, SLOT_BYTES, SLOTS, members, next_at};
use super::node::{Body, Pair};

/// A key that the leaf would have.
struct Key {
    key: Bytes,
    slot: Slot,
}

/// The two parts of a split.
struct Parted {
    /// The beginning of the new leaf's range.
    separator: Bytes,
    /// The contents of the new leaf.
    upper: Vec<Slot>,
    /// Slots that leave the old leaf: those that move, and those in the new range that the group
    /// replaces.
    leaving: Bits,
    /// Slots in the new leaf's range that the group replaces.
    replaced: Vec<Slot>,
}

impl Lodge {
    /// Splits a leaf that would have too many keys, and merges its buffered pairs. If this fails
    /// for lack of space, nothing has changed.
    pub(super) fn split_leaf(&self, body: &mut Body, visit: Visit) -> Result<()> {
        self.split_at(body, visit, None, Room::Put)
    }

    /// Splits a leaf so that `lower` of its keys stay, or half of them; otherwise as
    /// [`Lodge::split_leaf`].
    pub(super) fn split_at(
        &self,
        body: &mut Body,
        visit: Visit,
        lower: Option<usize>,
        room: Room,
    ) -> Result<()> {
        let old = body.leaf(visit.at).offset();
        let parted = self.part(&visit, lower)?;
        let fresh = self.space.allocate_leaf(room)?;
        let low = match self.records.encode(&parted.separator, None, room) {
            Ok(low) => low,
            Err(e) => {
                self.space.free_leaf(fresh);
                return Err(e);
            }
        };
        let header = visit.image.header();
        let next = visit.image.word(next_at(header.use_n()));
        let mut image = Image::empty();
        for (at, slot) in parted.upper.iter().enumerate() {
            image.fill(at, *slot);
        }
        let bits = ((1u64 << parted.upper.len()) - 1) as Bits;
        let stamp = if mutation::on("lodge-new-leaf-without-stamp") {
            crate::pm::layout::Time(0)
        } else {
            visit.stamp()
        };
        image.set_word(0, Header::new(bits, 0, stamp).0);
        image.set_low(low);
        image.set_word(next_at(0), next);
        // The bytes behind the slots in use may be anything.
        let len = HEADER_BYTES + parted.upper.len() * SLOT_BYTES;
        let offset = fresh.offset();
        self.tell(|| LodgeEvent::PreparesLeaf {
            leaf: body.leaf(visit.at).0,
            new: fresh.0,
            words: image.words(len),
        });
        self.medium.store(offset, &image.0[..len])?;
        self.medium
            .write_back(offset..offset + len as u64, IoClass::Page)?;
        let unfenced = mutation::on("lodge-switches-before-fence");
        if !unfenced {
            self.medium.fence();
        }

        let spare = old + next_at(1 - header.use_n());
        self.tell(|| LodgeEvent::LinksLeaf {
            leaf: body.leaf(visit.at).0,
            new: fresh.0,
        });
        self.medium.store_word(spare, fresh.0)?;
        self.medium.write_back(spare..spare + 8, IoClass::Page)?;
        if !unfenced {
            self.medium.fence();
        }
        let stays = header.bits() & !parted.leaving;
        let stamp = if mutation::on("lodge-stamps-at-switch") {
            visit.stamp()
        } else {
            header.stamp()
        };
        let switched = Header::new(stays, 1 - header.use_n(), stamp);
        if mutation::on("lodge-two-words") {
            self.store_header(old, header.with_bits(stays))?;
        }
        self.tell(|| LodgeEvent::SwitchesSibling {
            leaf: body.leaf(visit.at).0,
            header: switched.0,
        });
        self.store_header(old, switched)?;

        let separator = parted.separator;
        let mut moved = Vec::new();
        for pair in &visit.group {
            let key = self.records.key(pair.change.slot)?;
            moved.push((*pair, key >= separator));
        }
        let is_moved = |pair: &Pair| moved.contains(&(*pair, true));
        take_out(body, &visit, is_moved);
        body.set_count(visit.at, switched.count());
        body.insert_leaf(visit.at, &separator, fresh, parted.upper.len());
        self.tell(|| LodgeEvent::Split {
            leaf: body.leaf(visit.at).0,
            new: fresh.0,
            node: body.image(),
        });
        self.release(&visit, is_moved)?;
        self.counters.splits.fetch_add(1, Relaxed);
        if !mutation::on("lodge-split-leaks") {
            self.retire_all(&parted.replaced)?;
        }
        let flushed = moved.iter().filter(|(_, moved)| *moved).count();
        if flushed > 0 {
            self.count_visit(flushed);
        }
        if flushed == visit.group.len() {
            return Ok(());
        }
        let mut lower = Visit {
            old: visit.old & !parted.leaving,
            group: visit
                .group
                .into_iter()
                .filter(|pair| !is_moved(pair))
                .collect(),
            ..visit
        };
        lower.image.set_word(0, switched.0);
        self.merge(body, lower)
    }

    fn part(&self, visit: &Visit, lower: Option<usize>) -> Result<Parted> {
        let bits = visit.image.header().bits();
        let mut keys = Vec::with_capacity(2 * SLOTS);
        let mut there = Vec::with_capacity(SLOTS);
        for at in members(bits) {
            let slot = visit.image.slot(at);
            let key = self.records.key(slot)?;
            if visit.old >> at & 1 == 0 {
                let key = key.clone();
                keys.push(Key { key, slot });
            }
            there.push((at, key, slot));
        }
        for pair in visit.puts() {
            let slot = pair.change.slot;
            let key = self.records.key(slot)?;
            keys.push(Key { key, slot });
        }
        keys.sort_unstable_by(|one, other| one.key.cmp(&other.key));
        let upper = keys.split_off(lower.unwrap_or(keys.len() / 2));
        debug_assert!(keys.len() <= SLOTS && upper.len() <= SLOTS, "RoomInv");
        let separator = upper[0].key.clone();
        let mut leaving = 0;
        let mut replaced = Vec::new();
        for (at, key, slot) in there {
            if key >= separator {
                leaving |= 1 << at;
                if visit.old >> at & 1 == 1 {
                    replaced.push(slot);
                }
            }
        }
        Ok(Parted {
            separator,
            upper: upper.into_iter().map(|key| key.slot).collect(),
            leaving,
            replaced,
        })
    }
}
