//! What the tree stores while it serves clients: log entries, flushes, splits and merges.

use treering_engine::pm_events::SlotWords;
use treering_engine::pm_events::lodge::LodgeNode;

use super::judge::{Judge, N, Raws};
use super::words::{HEAD, SLOTS, header_of};
use crate::conformance::persistent::words::Use;
use crate::conformance::refused::{Accepted, same};
use crate::mirror::wide::surrogate_buffer::look::Is;
use crate::mirror::wide::surrogate_buffer::{Action, Pair};

/// The most leaves that the mirror has room for.
const MOST_LEAVES: u8 = 22;
/// The greatest number that the mirror has room for.
const MOST_NUMBER: u64 = 60_000;

impl Judge {
    /// A chunk gets another use. What a log had there counts until the directory says so.
    pub(super) fn takes(&mut self, chunk: u32, log: bool) {
        let used = &mut self.uses[chunk as usize];
        self.notes.tally.took("(Takes)");
        if log && *used != Use::Log {
            // It is wiped, or was never used.
            self.forget_log(chunk as usize);
        }
        self.uses[chunk as usize] = if log { Use::Log } else { Use::Leaves };
    }

    /// The entries of a chunk are gone.
    pub(super) fn forget_log(&mut self, chunk: usize) {
        let logs = chunk * self.logs.per_chunk..(chunk + 1) * self.logs.per_chunk;
        for log in logs {
            for at in 0..self.logs.entries {
                self.empties((log, at));
            }
        }
    }

    fn empties(&mut self, (log, at): (usize, usize)) {
        self.mirror.empties(&mut self.state, (log, at));
        self.words.settle(Is::Pair(log, at), [0, 0]);
        self.words.settle(Is::Meta(log, at), [0, 0]);
    }

    /// The last word of an entry becomes zero: of one that a crash has torn, or of an older one
    /// that might pass for another with a part of the new one.
    pub(super) fn erases(&mut self, chunk: u32, place: u64) -> Accepted {
        let at = self.logs.at(chunk, place);
        let (log, at) = at.ok_or("no log has this place")?;
        self.notes.tally.took("(Erased)");
        if self.state.entry_seen(log, at).0 != 0 {
            self.mirror.empties(&mut self.state, (log, at));
        }
        self.words.also(Is::Meta(log, at), [0, 0]);
        Ok(())
    }

    pub(super) fn floor_rises(&mut self, word: u64) -> Accepted {
        let floor = word >> 16;
        let pairs = self.state.all_nodes().iter().flat_map(|node| node.pairs());
        let least = pairs.map(|pair| u64::from(pair.parts().2)).min();
        if let Some(least) = least.filter(|least| *least < floor) {
            return Err(format!(
                "pair {least} is buffered, below the log floor {floor}"
            ));
        }
        self.floor.1 = Some(floor);
        self.notes.tally.took("(FloorRises)");
        Ok(())
    }

    pub(super) fn opens_log(&mut self, c: u8, log: usize) -> Accepted {
        if self.uses[self.logs.chunk(log)] != Use::Log {
            return Err(format!("the chunk of log {log} has another use"));
        }
        let before = self.state.clone();
        let opens = (log, self.clients > 1);
        let free = self.mirror.opens_log(&mut self.state, c, opens);
        self.took(Action::OpenLog(c, log as u8), (free, &before), &[])
    }

    pub(super) fn appends(
        &mut self,
        c: u8,
        (log, place): (usize, u64),
        (words, number, delete): ([u64; 3], u64, bool),
    ) -> Accepted {
        let pair = Pair::of(self.key(words[0])?, self.change(words[1], delete)?);
        let at = self.state.used(log);
        let there = self.logs.place_of(log, place);
        let there = there.filter(|there| *there >= at);
        let there = there.ok_or_else(|| format!("place {place} of log {log} is taken"))?;
        if there != at {
            // Another client has reserved the place before.
            self.mirror.swaps(&mut self.state, log, (at, there));
            self.logs.places[log].swap(at, there);
            self.words.swap(Is::Pair(log, at), Is::Pair(log, there));
            self.words.swap(Is::Meta(log, at), Is::Meta(log, there));
        }
        let next = u64::from(self.state.next_number());
        if number > MOST_NUMBER {
            return Err(format!("the mirror has no room for the number {number}"));
        }
        if number < next && (self.clients == 1 || self.mirror.is_used(&self.state, number as N)) {
            return Err(format!("the number {number}: the next one is {next}"));
        }
        let before = self.state.clone();
        self.mirror.draws(&mut self.state, number as N);
        let appends = self.mirror.appends(&mut self.state, c, log);
        let waits = self
            .notes
            .claim(appends, || format!("AppendEntry(c{})", c + 1))?;
        if waits {
            self.notes.tally.took("(NoWait)");
        }
        self.mirror.draws_after(&mut self.state, next as N);
        let raws = [
            (Is::Pair(log, at), [words[0], words[1]]),
            (Is::Meta(log, at), [words[2], 0]),
        ];
        self.took(Action::AppendEntry(c), (true, &before), &raws)?;
        same(
            "the entry",
            (number as N, pair),
            self.state.entry_seen(log, at),
        )
    }

    pub(super) fn flushes(&mut self, leaves: &[u64]) -> Accepted {
        let first = leaves.first().ok_or("a flush goes to a leaf")?;
        let (_, n) = self.node_of(*first)?;
        let todo: Result<Vec<u8>, String> = leaves.iter().map(|leaf| self.leaf(*leaf)).collect();
        let before = self.state.clone();
        if !self.mirror.starts_flush(&mut self.state, n, &todo?)? {
            self.notes.tally.took("(FlushChosen)");
        }
        self.took(Action::StartFlush(n as u8), (true, &before), &[])
    }

    pub(super) fn clears_slots(&mut self, leaf: u64, header: u64) -> Accepted {
        let (l, n) = self.node_of(leaf)?;
        let raws = [(Is::Header(l), [header, 0])];
        self.take(Action::ClearSlots(n as u8), &raws)?;
        self.same_header(l, header)
    }

    pub(super) fn writes_pairs(&mut self, leaf: u64, slots: &[SlotWords]) -> Accepted {
        let (l, n) = self.node_of(leaf)?;
        let pairs = self.pairs(slots)?;
        let before = self.state.clone();
        let (taken, splits) = self.mirror.writes_pairs(&mut self.state, n, &pairs)?;
        if splits {
            self.notes.tally.took("(SplitsOnce)");
        }
        self.filled.insert(l, taken);
        let raws = slot_raws(l, slots);
        self.took(Action::WritePairs(n as u8), (true, &before), &raws)
    }

    pub(super) fn sets_bitmap(&mut self, leaf: u64, header: u64) -> Accepted {
        let (l, n) = self.node_of(leaf)?;
        let filled = self.filled.remove(&l).unwrap_or_default();
        let raws = [(Is::Header(l), [header, 0])];
        let before = self.state.clone();
        let free = self.mirror.sets_bitmap(&mut self.state, n, filled);
        self.took(Action::SetBitmap(n as u8), (free, &before), &raws)?;
        self.same_header(l, header)
    }

    pub(super) fn prepares_leaf(&mut self, leaf: u64, new: u64, words: &[u64]) -> Accepted {
        let (_, n) = self.node_of(leaf)?;
        let at = |at: usize| words.get(at).copied().unwrap_or_default();
        let (bits, ..) = header_of(at(0));
        let low = self.key(at(1))?;
        let slot = |i: usize| (i, [at(HEAD + 2 * i), at(HEAD + 2 * i + 1)]);
        let slots: Vec<SlotWords> = (0..SLOTS)
            .filter(|i| bits >> i & 1 == 1)
            .map(slot)
            .collect();
        let pairs = self.pairs(&slots)?;
        let l = self.number_for(new)?;
        let before = self.state.clone();
        let alike = self
            .mirror
            .prepares_leaf(&mut self.state, n, ((l, low), &pairs))?;
        if !alike {
            self.notes.tally.took("(SplitsAt)");
        }
        let raw = |is: Is| match is {
            Is::Header(_) => [at(0), 0],
            Is::Low(_) => [at(1), 0],
            Is::Next(_, n) => [at(2 + n), 0],
            Is::Slot(_, i) => slot(i).1,
            Is::Pair(..) | Is::Meta(..) => [0, 0],
        };
        let raws: Raws = Is::of_leaf(l).map(|is| (is, raw(is))).collect();
        self.took(Action::PrepareLeaf(n as u8), (true, &before), &raws)?;
        // Bytes behind the slots in use may be anything, and so may be what was there before.
        for is in Is::of_leaf(l) {
            if matches!(is, Is::Slot(_, i) if bits >> i & 1 == 0) {
                self.words.forget(is);
            } else {
                self.words.set(is, raw(is));
            }
        }
        self.same_header(l, at(0))?;
        self.same_links(l, (at(1), [at(2), at(3)]))
    }

    fn same_links(&self, l: u8, (low, next): (u64, [u64; 2])) -> Accepted {
        let number = |leaf: u64| if leaf == 0 { Ok(0) } else { self.leaf(leaf) };
        let told = (self.key(low)?, [number(next[0])?, number(next[1])?]);
        same("low and next", told, self.state.leaf_seen(l).links())
    }

    /// A number for a new leaf.
    fn number_for(&mut self, leaf: u64) -> Result<u8, String> {
        if let Some(known) = self.leaves.get(&leaf) {
            return Err(format!("leaf {leaf} is in use: the mirror's {known}"));
        }
        let used: Vec<u8> = self.leaves.values().copied().collect();
        let free = (1..=MOST_LEAVES).find(|number| !used.contains(number));
        let number = free.ok_or("the mirror has no room for another leaf")?;
        self.leaves.insert(leaf, number);
        Ok(number)
    }

    pub(super) fn links_leaf(&mut self, leaf: u64, new: u64) -> Accepted {
        let (l, n) = self.node_of(leaf)?;
        let spare = 1 - usize::from(self.state.leaf_seen(l).header_parts().1);
        let raws = [(Is::Next(l, spare), [new, 0])];
        self.take(Action::LinkLeaf(n as u8), &raws)?;
        same(
            "the leaf that is linked",
            self.leaf(new)?,
            self.state.leaf_seen(l).links().1[spare],
        )
    }

    pub(super) fn splits_node(&mut self, parts: &[LodgeNode]) -> Accepted {
        let first = parts.first().and_then(|part| part.leaves.first());
        let (_, mut n) = self.node_of(first.ok_or("a node without leaves")?.leaf)?;
        let last = parts.len() - 1;
        for (nth, part) in parts[..last].iter().enumerate() {
            if part.leaves.is_empty()
                || part.leaves.len() >= self.state.all_nodes()[n].leaves().len()
            {
                return Err("a part without leaves".into());
            }
            let before = self.state.clone();
            let must = self
                .mirror
                .splits_node(&mut self.state, n, part.leaves.len());
            if nth == 0 {
                self.took(Action::SplitNode(n as u8), (must, &before), &[])?;
            } else {
                self.notes.tally.took("(SplitsMore)");
            }
            n += 1;
        }
        parts.iter().try_for_each(|part| self.same_node(part))
    }

    pub(super) fn moves_pairs(
        &mut self,
        (leaf, left): (u64, u64),
        slots: &[SlotWords],
        next: u64,
    ) -> Accepted {
        let (right, l) = (self.leaf(leaf)?, self.leaf(left)?);
        let pairs = self.pairs(slots)?;
        let before = self.state.clone();
        let taken = self
            .mirror
            .moves_pairs(&mut self.state, (right, l), &pairs)?;
        self.notes.tally.took("(MovesPairs)");
        self.filled.insert(l, taken);
        self.merging.insert(l, right);
        let spare = 1 - usize::from(self.state.leaf_seen(l).header_parts().1);
        let mut raws = slot_raws(l, slots);
        raws.push((Is::Next(l, spare), [next, 0]));
        self.follow(&before, &raws)
    }

    pub(super) fn links_past(&mut self, left: u64, header: u64) -> Accepted {
        let l = self.leaf(left)?;
        let right = *self.merging.get(&l).ok_or("nothing was moved there")?;
        let filled = self.filled.remove(&l).unwrap_or_default();
        let before = self.state.clone();
        if !self.mirror.links_past(&mut self.state, (right, l), filled) {
            return Err("the leaves are not being merged".into());
        }
        self.notes.tally.took("(LinksPast)");
        self.follow(&before, &[(Is::Header(l), [header, 0])])?;
        self.same_header(l, header)
    }

    pub(super) fn leaves_merged(&mut self, leaf: u64, node: &LodgeNode) -> Accepted {
        let right = self.leaf(leaf)?;
        let l = self.merging.iter().find(|(_, of)| **of == right);
        let l = *l.ok_or("the leaf was not merged")?.0;
        self.merging.remove(&l);
        let before = self.state.clone();
        if !self.mirror.leaves_merged(&mut self.state, (right, l)) {
            return Err("the leaves are not being merged".into());
        }
        self.notes.tally.took("(LeavesMerged)");
        self.follow(&before, &[])?;
        self.leaves.remove(&leaf);
        self.same_node(node)
    }

    pub(super) fn nodes_merged(&mut self, node: &LodgeNode) -> Accepted {
        let first = node.leaves.first().ok_or("a node without leaves")?;
        let (_, n) = self.node_of(first.leaf)?;
        if !self.mirror.nodes_merged(&mut self.state, n) {
            return Err("the nodes are locked".into());
        }
        self.notes.tally.took("(NodesMerged)");
        self.same_node(node)
    }
}

fn slot_raws(l: u8, slots: &[SlotWords]) -> Raws {
    let raw = |(slot, words): &SlotWords| (Is::Slot(l, *slot), *words);
    slots.iter().map(raw).collect()
}
