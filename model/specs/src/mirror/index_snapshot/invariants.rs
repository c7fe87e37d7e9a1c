//! The invariants, and what must be reachable, by the names of the spec.

use super::IndexSnapshot;
use super::room::{N, Set};
use super::state::{Call, Chain, InSlot, Index, Kind, Leaf, NO_SLOT, PENDING, Phase, Stage, State};
use super::state::{Step, at, bit, fences_from, find, has, in_index};

type Invariant = fn(&IndexSnapshot, &State) -> bool;

pub(super) const INVARIANTS: [(&str, Invariant); 22] = [
    ("TypeInv", type_inv),
    ("AckInv", ack_inv),
    ("WalRuleInv", wal_rule_inv),
    ("FenceInv", fence_inv),
    ("MemoryInv", memory_inv),
    ("AnswerInv", answer_inv),
    ("CleanInv", clean_inv),
    ("SnapshotInv", snapshot_inv),
    ("OnceInv", once_inv),
    ("LogKeptInv", |_, s| {
        let mut supers = s.super_dev.all().iter();
        supers.all(|chosen| s.oldest <= chosen.redo)
    }),
    ("FreeInv", free_inv),
    ("LeakInv", |m, s| {
        s.phase != Phase::Up || s.free | taken(s) == m.all_slots()
    }),
    ("OneOwnerInv", one_owner_inv),
    ("RecoverableInv", recoverable_inv),
    ("RecoveredInv", recovered_inv),
    ("OpensInv", |_, s| s.phase != Phase::Damaged || s.losses > 0),
    ("ReachMixture", reach_mixture),
    ("ReachNewOwner", reach_new_owner),
    ("ReachUnderChunk", |_, s| {
        let mut rest = s.records().filter(|(n, _)| *n > s.redone);
        let under = |record: &super::Record| record.is == Kind::Split && has(s.chain, record.right);
        !(s.recovering() && rest.any(|(_, record)| under(record)))
    }),
    ("ReachMoved", |m, s| {
        let moved = |call: &&Call| {
            let page = call.page();
            let reached = m.looks_up(call) && page != NO_SLOT && !m.is_latched(s, page);
            s.phase == Phase::Up && reached && !m.is_the_leaf(s, call)
        };
        s.call.iter().find(moved).is_none()
    }),
    ("ReachCutOff", |_, s| {
        let newer = s.page.iter().any(|leaf| leaf.lsn > s.newest.redo);
        !(s.recovering() && s.crashes == 2 && newer)
    }),
    ("ReachDamage", |_, s| s.phase != Phase::Damaged),
];

fn type_inv(m: &IndexSnapshot, s: &State) -> bool {
    let content = |value: &N| *value <= m.values;
    let leaf = |leaf: &Leaf| leaf.upper <= m.top() && leaf.map.iter().all(content);
    let slots = m.all_slots();
    let in_slot = |block: &InSlot| match block {
        InSlot::Zeros => true,
        InSlot::Image(of) => leaf(of),
        InSlot::Chunk { entries, next, .. } => {
            *next <= m.slots && entries.all().all(|entry| entry.page <= m.slots)
        }
    };
    let called = |call: &Call| match call {
        Call::Idle => true,
        Call::Get { got, .. } => *got == PENDING || content(got),
        Call::Write { value, .. } => content(value),
        Call::Scan { at, got, .. } => {
            *at <= m.top() && got.iter().all(|got| *got == PENDING || content(got))
        }
    };
    let mut versions = s.slot_dev.iter().flat_map(|place| place.all());
    s.durable <= s.log_len
        && s.oldest <= s.durable
        && s.call.iter().all(called)
        && s.page.iter().all(leaf)
        && (s.free | s.chain | s.checkpoint.slots) & !slots == 0
        && versions.all(in_slot)
}

fn once_inv(m: &IndexSnapshot, s: &State) -> bool {
    let once = |slot: u8| {
        let unflushed = s.slot_dev[at(slot)].all().iter().skip(1);
        let chunks = unflushed.filter(|block| matches!(block, InSlot::Chunk { .. }));
        chunks.count() <= 1
    };
    let mut slots = m.slots().filter(|slot| has(s.checkpoint.slots, *slot));
    s.phase != Phase::Up || slots.all(once)
}

fn ack_inv(_: &IndexSnapshot, s: &State) -> bool {
    let waits = |n: N| {
        let mut calls = s.call.iter();
        calls.any(|call| matches!(call, Call::Write { lsn, .. } if *lsn == n))
    };
    (s.durable + 1..=s.log_len).all(|n| s.record(n).is != Kind::Put || waits(n))
}

fn wal_rule_inv(_: &IndexSnapshot, s: &State) -> bool {
    let mut blocks = s.slot_dev.iter().flat_map(|place| place.all());
    blocks.all(|block| !matches!(block, InSlot::Image(leaf) if leaf.lsn > s.durable))
}

/// `TrueIndex`: the index, as the leaves that are being changed already say.
fn true_index(m: &IndexSnapshot, s: &State) -> Index {
    let mut index = s.index;
    if s.change.at == Stage::Changed {
        m.reindex(&mut index, s.record(s.change.lsn));
    }
    index
}

fn fence_inv(m: &IndexSnapshot, s: &State) -> bool {
    let index = true_index(m, s);
    s.phase != Phase::Up
        || fences_from(&index, 1).all(|f| {
            let leaf = s.leaf(index[at(f)]);
            leaf.lower == f && leaf.upper == fences_from(&index, f + 1).next().unwrap_or(m.top())
        })
}

fn memory_inv(m: &IndexSnapshot, s: &State) -> bool {
    let index = true_index(m, s);
    s.phase != Phase::Up
        || m.keys().all(|k| {
            let leaf = s.leaf(find(&index, k));
            leaf.covers(k) && leaf.map[at(k)] == s.value_at(k, s.log_len)
        })
}

fn answer_inv(m: &IndexSnapshot, s: &State) -> bool {
    let current = |k: u8, got: N, from: N| {
        got == PENDING || (from..=s.log_len).any(|n| got == s.value_at(k, n))
    };
    s.call.iter().all(|call| match *call {
        Call::Get { key, got, from, .. } => current(key, got, from),
        Call::Scan { got, from, .. } => {
            let all = m.keys().all(|k| current(k, got[at(k)], from));
            let ended = s.phase == Phase::Up && !m.looks_up(call);
            all && !(ended && got.contains(&PENDING))
        }
        _ => true,
    })
}

fn clean_inv(m: &IndexSnapshot, s: &State) -> bool {
    s.losses > 0
        || s.phase == Phase::Damaged
        || m.slots().all(|p| {
            let leaf = *s.leaf(p);
            leaf.is_gone() || s.is_dirty(p) || s.place(p).newest() == InSlot::Image(leaf)
        })
}

/// The chains of all superblocks that a crash may leave.
fn chains(m: &IndexSnapshot, s: &State) -> impl Iterator<Item = (Chain, N)> {
    let supers = s.super_dev.all().iter();
    supers.map(move |chosen| (m.chain_of(&s.slot_dev, *chosen), chosen.redo))
}

fn snapshot_inv(m: &IndexSnapshot, s: &State) -> bool {
    s.losses > 0
        || chains(m, s).all(|(chain, _)| {
            let mut slots = m.slots().filter(|slot| has(chain.slots, *slot));
            chain.ok && slots.all(|slot| !s.place(slot).is_unflushed())
        })
}

fn taken(s: &State) -> Set {
    let change = bit(s.change.right);
    in_index(&s.index) | s.retired_pages() | s.chain | s.checkpoint.slots | change
}

fn free_inv(m: &IndexSnapshot, s: &State) -> bool {
    let named = chains(m, s).fold(0, |set, (chain, _)| set | chain.slots);
    s.phase != Phase::Up || (s.free & taken(s) == 0 && (s.losses > 0 || s.free & named == 0))
}

fn one_owner_inv(_: &IndexSnapshot, s: &State) -> bool {
    let (retired, snapshot) = (s.retired_pages(), s.checkpoint.slots);
    s.phase != Phase::Up
        || (in_index(&s.index) & (retired | s.chain | snapshot) == 0
            && retired & (s.chain | snapshot) == 0
            && s.chain & snapshot == 0)
}

/// `IsRestored`: redo of the records from `n` to `end` gives the key what the log says.
fn is_restored(
    m: &IndexSnapshot,
    s: &State,
    k: u8,
    of: (u8, Leaf),
    (n, end): (N, N),
    held: Set,
) -> bool {
    let redo = m.redone_from(s, of, (n, end), held);
    let right = redo.covers(k) && redo.map[at(k)] == s.value_at(k, end);
    right || (s.losses > 0 && redo.is_gone())
}

fn recoverable_inv(m: &IndexSnapshot, s: &State) -> bool {
    chains(m, s).all(|(chain, redo)| {
        let from = redo + 1;
        let index = m.reindexed_from(s, chain.index(), from, s.durable);
        let restored = |k: u8| {
            let p = find(&index, k);
            s.place(p).all().iter().all(|block| {
                let leaf = m.leaf_in(*block, chain.version(p));
                is_restored(m, s, k, (p, leaf), (from, s.durable), chain.slots)
            })
        };
        (s.losses > 0 && !chain.ok) || m.keys().all(restored)
    })
}

fn recovered_inv(m: &IndexSnapshot, s: &State) -> bool {
    if !s.recovering() || !s.is_readable() {
        return true;
    }
    let rest = (s.redone + 1, s.log_len);
    let index = m.reindexed_from(s, s.index, rest.0, rest.1);
    m.keys().all(|k| {
        let p = find(&index, k);
        is_restored(m, s, k, (p, *s.leaf(p)), rest, s.chain)
    })
}

fn reach_mixture(m: &IndexSnapshot, s: &State) -> bool {
    if s.checkpoint.at != Step::None || s.newest.number <= 1 {
        return true;
    }
    let read = m.chain_of(&s.slot_dev, s.newest).index();
    let first = m.initial().index;
    (0..=s.log_len).any(|n| m.reindexed_from(s, first, 1, n) == read)
}

fn reach_new_owner(_: &IndexSnapshot, s: &State) -> bool {
    !s.records().any(|(n, merge)| {
        let mut later = s.records().filter(|(m, _)| *m > n);
        merge.is == Kind::Merge
            && later.any(|(m, split)| {
                let same = split.is == Kind::Split && split.right == merge.right;
                same && s.version[at(split.right)] >= m
            })
    })
}
