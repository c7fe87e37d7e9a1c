//! What the tree stores: log entries, batches, splits and merges.

use treering_engine::pm_events::{NodeImage, SlotWords};

use super::judge::{Judge, Raws, chunk_number, of_leaf, slots_of_leaf};
use crate::conformance::led::holds;
use crate::conformance::persistent::words::{Raw, Use};
use crate::conformance::refused::{Accepted, same};
use crate::mirror::wide::leaf_buffering::look::Is;
use crate::mirror::wide::leaf_buffering::unbounded::{NOTHING, RECOVERY};
use crate::mirror::wide::leaf_buffering::{Action, At, Kv};

/// The most leaves that the mirror has room for.
const MOST_LEAVES: u8 = 16;

impl Judge {
    pub(super) fn takes(&mut self, chunk: u32, word: u64, log: bool) -> Accepted {
        let k = chunk_number(chunk);
        let used = &mut self.uses[chunk as usize];
        self.notes.tally.took("(Takes)");
        if !log {
            *used = Use::Leaves;
            self.words.also(Is::Chunk(k), [word, 0]);
            return Ok(());
        }
        if *used != Use::Log {
            // It is wiped, or was never used.
            *used = Use::Log;
            let of_chunk =
                Is::all().filter(|is| matches!(is, Is::Kv(c, _) | Is::Time(c, _) if *c == k));
            of_chunk.for_each(|is| self.words.set(is, [0, 0]));
        }
        let before = self.state.clone();
        if !self.mirror.takes_chunk(&mut self.state, k) {
            self.state = before;
            return self.notes.claim(Err(format!("chunk {k} is not free")), || {
                holds(&format!("{k} \\in FreeChunks"))
            });
        }
        let raw = |is| (is == Is::Chunk(k)).then_some([word, 0]);
        self.words.follow((&before, &self.state), raw)
    }

    pub(super) fn appends(
        &mut self,
        (c, copy): (u8, bool),
        (chunk, place): (u8, usize),
        (words, delete): ([u64; 3], bool),
    ) -> Accepted {
        let key = self.key(words[0])?;
        let value = if delete {
            NOTHING
        } else {
            self.value(words[1])?
        };
        let raws = [
            (Is::Kv(chunk, place), [words[0], words[1]]),
            (Is::Time(chunk, place), [words[2], 0]),
        ];
        if !copy {
            self.latches(c)?;
        }
        let logger = (!copy).then_some(usize::from(c));
        let before = self.state.clone();
        let goes_on = self
            .mirror
            .log_goes_on(&mut self.state, logger, (chunk, place));
        self.words.follow((&before, &self.state), |_| None)?;
        self.words.fenced(Is::Chunk(chunk));
        if !goes_on {
            return Err(format!("chunk {chunk} is not of this epoch, or is full"));
        }
        if copy {
            // The copy before is durable.
            self.fence_copies()?;
            let leaf = self.state.inner().leaf_for(key);
            self.take(Action::ScanBuffer(leaf), &raws)?;
            self.copied = Some((chunk, place));
        } else {
            self.take(Action::AppendLog(c), &raws)?;
        }
        // In a chunk that was wiped, the mirror may have this very entry there from before. Then it
        // is no new version.
        self.also(&raws);
        same(
            "the entry",
            Kv { key, value },
            self.state.logged(chunk, place),
        )
    }

    /// The spec fences all copies at the end (`Reclaim`), and the engine each as it is made.
    pub(super) fn fence_copies(&mut self) -> Accepted {
        let Some(copied) = self.copied.take() else {
            return Ok(());
        };
        let before = self.state.clone();
        self.mirror.fences_entry(&mut self.state, copied);
        self.words.follow((&before, &self.state), |_| None)
    }

    /// A write has the latch of its leaf.
    pub(super) fn latches(&mut self, c: u8) -> Accepted {
        match self.state.job(c.into()).0 {
            At::None => self.take(Action::Latch(c), &[]),
            at => Err(format!("the write has its latch already, and is at {at:?}")),
        }
    }

    pub(super) fn flushes(&mut self, c: u8, leaf: u64, trigger: bool) -> Accepted {
        let l = self.leaf(leaf)?;
        if trigger {
            self.latches(c)?;
            let (at, found, _) = self.state.job(c.into());
            return same("the flush", (At::Batch, l), (at, found));
        }
        let merge = self.worker(c, 0);
        let (at, found, _) = self.state.job(merge);
        if at == At::Batch && found == l {
            // A merge flushes the left buffer.
            return Ok(());
        }
        let merges = at != At::None;
        let (w, beside) = match merges {
            true => (self.worker(c, 1), Some(merge)),
            false => (merge, None),
        };
        self.notes.tally.took("(Flush)");
        if !self.mirror.flushes(&mut self.state, w, (l, beside)) {
            return Err(format!("another writer has leaf {l}"));
        }
        Ok(())
    }

    pub(super) fn vain_deletes(&mut self, w: usize) {
        if self.mirror.without_vain_deletes(&mut self.state, w) {
            self.notes.tally.took("(VainDelete)");
        }
    }

    pub(super) fn stores_records(&mut self, leaf: u64, slots: &[SlotWords]) -> Accepted {
        let l = self.leaf(leaf)?;
        let w = self.writer(l)?;
        self.vain_deletes(w);
        let records = self.records(slots)?;
        let before = self.state.clone();
        let taken = self.mirror.stores_records(&mut self.state, w, &records);
        let taken = self
            .notes
            .claim(taken, || super::tla::stored(w, &records))?;
        self.filled.insert(w, (taken, 0));
        self.took(
            Action::StoreRecords(w as u8),
            (true, &before),
            &slot_raws(l, slots),
        )?;
        self.also(&slot_raws(l, slots));
        Ok(())
    }

    /// What the engine stores anew and the mirror has already.
    pub(super) fn also(&mut self, raws: &[(Is, Raw)]) {
        for (is, raw) in raws {
            self.words.also(*is, *raw);
        }
    }

    pub(super) fn stores_header(&mut self, leaf: u64, header: u64, stamp: u64) -> Accepted {
        let l = self.leaf(leaf)?;
        let w = self.writer(l)?;
        let raws = [(Is::Header(l), [header, 0]), (Is::Stamp(l), [stamp, 0])];
        if self.unstamped {
            // Nothing is logged that a timestamp could be compared with.
            self.words.also(Is::Stamp(l), [stamp, 0]);
        } else if self.words.last(Is::Stamp(l))[0] != stamp {
            if stamp != self.born.0 {
                let last = self.words.last(Is::Stamp(l))[0];
                let why = format!("the timestamp is {stamp}: expected {last}");
                return self.notes.claim(Err(why), || {
                    let stamp = format!("pm'[StampOf({l})] # pm[StampOf({l})]");
                    format!("({}) /\\ {stamp}", super::tla::header_steps(w))
                });
            }
            let before = self.state.clone();
            self.mirror.stamps(&mut self.state, l, self.born.1);
            self.words
                .follow((&before, &self.state), |_| Some([stamp, 0]))?;
            self.words.also(Is::Stamp(l), [stamp, 0]);
            self.notes.tally.took("(Born)");
        }
        let (slots, keys) = self.filled.remove(&w).unwrap_or_default();
        let before = self.state.clone();
        let (at, _, new) = self.state.job(w);
        let action = match at {
            At::Records => {
                self.mirror.stores_header(&mut self.state, w, slots);
                Action::StoreHeader(w as u8)
            }
            At::New => {
                self.mirror.stores_link(&mut self.state, w, (slots, keys));
                Action::StoreLink(w as u8)
            }
            At::Moved => {
                self.mirror.stores_merged(&mut self.state, w, slots);
                Action::StoreMerged(w as u8)
            }
            at => {
                let why = format!("the header is stored at {at:?}");
                return self.notes.claim(Err(why), || super::tla::header_steps(w));
            }
        };
        self.took(action, (true, &before), &raws)?;
        if at == At::New {
            self.new_leaf_is_durable(w, new);
        }
        for slot in 0..slots_of_leaf() {
            self.words.fenced(Is::Slot(l, slot));
        }
        self.words.also(Is::Header(l), [header, 0]);
        self.same_header(l, header)
    }

    /// The mirror's header is the engine's.
    pub(super) fn same_header(&self, l: u8, header: u64) -> Accepted {
        let next = match header >> 28 {
            0 => 0,
            leaf => self.leaf(leaf)?,
        };
        let told = (header & ((1 << slots_of_leaf()) - 1), next);
        same("the header", told, self.state.header(l))
    }

    pub(super) fn new_leaf_is_durable(&mut self, w: usize, new: u8) {
        let words = self.new.remove(&w).unwrap_or_default();
        for is in of_leaf(new) {
            let raw = leaf_raw(is, &words);
            self.words.set(is, raw);
        }
    }

    pub(super) fn flushed(&mut self, leaf: u64, now: u64, node: &NodeImage) -> Accepted {
        let l = self.leaf(leaf)?;
        let w = self.writer(l)?;
        if self.state.job(w).0 == At::Batch {
            self.changes_nothing(w, l)?;
        }
        let raws = [(Is::Stamp(l), [now, 0])];
        self.words.fenced(Is::Header(l));
        self.words.fenced(Is::Stamp(l));
        self.take(Action::FenceHeader(w as u8), &raws)?;
        self.also(&raws);
        self.same_node(leaf, node)?;
        if self.state.merging(w) != 0 {
            return Ok(());
        }
        if w >= usize::from(self.clients) {
            self.mirror.lets_go(&mut self.state, w);
            return Ok(());
        }
        if self.mirror.merges_later(&mut self.state, w) {
            self.notes.tally.took("(MergesLater)");
        }
        self.take(Action::Finish(w as u8), &[])
    }

    /// A batch of deletes of keys that are not there is not written at all.
    pub(super) fn changes_nothing(&mut self, w: usize, l: u8) -> Accepted {
        self.vain_deletes(w);
        let header = self.state.header(l);
        let before = self.state.clone();
        self.mirror.stores_records(&mut self.state, w, &[])?;
        self.took(Action::StoreRecords(w as u8), (true, &before), &[])?;
        let before = self.state.clone();
        self.mirror.stores_header(&mut self.state, w, 0);
        self.took(Action::StoreHeader(w as u8), (true, &before), &[])?;
        same("the header", header, self.state.header(l))
    }

    pub(super) fn stores_new_leaf(
        &mut self,
        (leaf, new): (u64, u64),
        fence: &[u8],
        (words, slots): (&[u64], &[SlotWords]),
    ) -> Accepted {
        let l = self.leaf(leaf)?;
        let w = self.writer(l)?;
        self.vain_deletes(w);
        let fence: [u8; 8] = fence.try_into().map_err(|_| "a fence of eight bytes")?;
        let low = self.key(u64::from_be_bytes(fence))?;
        let number = self.number_for(new)?;
        let live = words[0] & ((1 << slots_of_leaf()) - 1);
        let in_new: Vec<SlotWords> = (0..slots_of_leaf())
            .filter(|slot| live >> slot & 1 == 1)
            .map(|slot| (slot, [words[4 + 2 * slot], words[5 + 2 * slot]]))
            .collect();
        let (records, stay) = (self.records(&in_new)?, self.records(slots)?);
        let before = self.state.clone();
        let gains =
            self.mirror
                .stores_new_leaf(&mut self.state, w, (number, low), (&records, &stay))?;
        if !self.mirror.splits_alike(&before, w, (low, gains.1)) {
            self.notes.tally.took("(SplitTakesBatch)");
        }
        self.filled.insert(w, gains);
        self.new.insert(w, words.to_vec());
        let mut raws: Raws = of_leaf(number)
            .map(|is| (is, leaf_raw(is, words)))
            .collect();
        raws.extend(slot_raws(l, slots));
        self.took(Action::StoreNewLeaf(w as u8), (true, &before), &raws)?;
        self.also(&slot_raws(l, slots));
        if w == RECOVERY {
            same(
                "the new timestamp",
                words[1],
                self.words.last(Is::Stamp(l))[0],
            )?;
        }
        self.same_header(number, words[0])
    }

    /// A number for a new leaf.
    pub(super) fn number_for(&mut self, leaf: u64) -> Result<u8, String> {
        if let Some(known) = self.leaves.get(&leaf) {
            return Err(format!("leaf {leaf} is in use: the mirror's {known}"));
        }
        let used: Vec<u8> = self.leaves.values().copied().collect();
        let free = (1..=MOST_LEAVES).find(|number| !used.contains(number));
        let number = free.ok_or("the mirror has no room for another leaf")?;
        self.leaves.insert(leaf, number);
        Ok(number)
    }

    pub(super) fn linked(&mut self, leaf: u64, new: u64, node: &NodeImage) -> Accepted {
        let l = self.leaf(leaf)?;
        let w = self.writer(l)?;
        self.words.fenced(Is::Header(l));
        self.words.fenced(Is::Stamp(l));
        self.take(Action::FenceLink(w as u8), &[])?;
        self.same_node(new, node)
    }

    pub(super) fn latches_left(&mut self, c: u8, leaf: u64, left: u64) -> Accepted {
        let w = self.worker(c, 0);
        let (from, left) = (self.leaf(leaf)?, self.leaf(left)?);
        if !self.mirror.begins_merge(&mut self.state, w, (from, left)) {
            return Err(format!("leaf {from} cannot be merged into leaf {left}"));
        }
        let before = self.state.clone();
        self.mirror.latches_left(&mut self.state, w);
        self.took(Action::LatchLeft(w as u8), (true, &before), &[])
    }

    pub(super) fn moves_records(&mut self, left: u64, slots: &[SlotWords], stamp: u64) -> Accepted {
        let l = self.leaf(left)?;
        let w = self.writer(l)?;
        let records = self.records(slots)?;
        let before = self.state.clone();
        let taken = self.mirror.moves_records(&mut self.state, w, &records)?;
        self.filled.insert(w, (taken, 0));
        let mut raws = slot_raws(l, slots);
        raws.push((Is::Stamp(l), [stamp, 0]));
        self.took(Action::MoveRecords(w as u8), (true, &before), &raws)?;
        self.also(&raws);
        Ok(())
    }

    pub(super) fn merged(&mut self, leaf: u64, left: u64, node: &NodeImage) -> Accepted {
        let l = self.leaf(left)?;
        let w = self.writer(l)?;
        let from = self.leaf(leaf)?;
        same("the leaf that is merged", from, self.state.merging(w))?;
        self.words.fenced(Is::Header(l));
        self.words.fenced(Is::Stamp(l));
        self.take(Action::FenceMerged(w as u8), &[])?;
        self.leaves.remove(&leaf);
        self.same_node(left, node)?;
        self.mirror.lets_go(&mut self.state, w);
        Ok(())
    }

    pub(super) fn replays(&mut self, leaf: u64, keys: &[u64]) -> Accepted {
        let l = self.leaf(leaf)?;
        let keys: Result<Vec<u8>, String> = keys.iter().map(|key| self.key(*key)).collect();
        let before = self.state.clone();
        let keys = keys?;
        let missing = self.mirror.replays(&mut self.state, l, &keys);
        if !missing {
            self.state = before;
            let why = "the leaf does not lack these keys".into();
            return self.notes.claim(Err(why), || {
                let keys: Vec<String> = keys.iter().map(u8::to_string).collect();
                holds(&format!(
                    "phase = \"recovery\" /\\ {{{}}} \\subseteq Missing",
                    keys.join(", ")
                ))
            });
        }
        self.took(Action::Replay, (true, &before), &[])
    }
}

/// A word of a leaf, by the leaf's contents.
fn leaf_raw(is: Is, words: &[u64]) -> Raw {
    let at = |at: usize| words.get(at).copied().unwrap_or_default();
    match is {
        Is::Header(_) => [at(0), 0],
        Is::Stamp(_) => [at(1), 0],
        Is::Slot(_, slot) => [at(4 + 2 * slot), at(5 + 2 * slot)],
        _ => [0, 0],
    }
}

fn slot_raws(leaf: u8, slots: &[SlotWords]) -> Raws {
    let raw = |(slot, words): &SlotWords| (Is::Slot(leaf, *slot), *words);
    slots.iter().map(raw).collect()
}
