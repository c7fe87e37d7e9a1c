//! The invariants, by the names of the spec.

use super::super::Discards;
use super::Overflow;
use super::room::{BLOCKS, N};
use super::state::{Block, Call, Entry, PENDING, Pointer, Reading, State, Writing, bit, named_by};

type Invariant = fn(&Overflow, &State) -> bool;

pub(super) const INVARIANTS: [(&str, Invariant); 17] = [
    ("TypeInv", Overflow::type_inv),
    ("AckInv", ack_inv),
    ("WalRuleInv", wal_rule_inv),
    ("MemoryInv", memory_inv),
    ("RedoStartInv", redo_start_inv),
    ("KeptInv", kept_inv),
    ("ForcedInv", forced_inv),
    ("OneOwnerInv", one_owner_inv),
    ("FreeInv", free_inv),
    ("LeakInv", Overflow::leak_inv),
    ("TrimmedInv", |m, s| {
        m.discards == Discards::Inert || !s.is_up() || s.crashes > 0 || !keeps_dead(s)
    }),
    ("PointerInv", Overflow::pointer_inv),
    ("ReaderInv", reader_inv),
    ("DamagedInv", damaged_inv),
    ("ReachNoRedo", |_, s| {
        s.is_up() || s.redo_start == 0 || s.redo_start < s.log_len
    }),
    ("ReachPage", |_, s| {
        let dead = Block::default();
        let over =
            |all: &[Block]| matches!(all, [first, .., last] if *first != dead && *last == dead);
        s.is_up() || !s.block_dev.iter().any(|place| over(place.all()))
    }),
    ("ReachStale", |_, s| s.crashes > 0 || !keeps_dead(s)),
];

fn ack_inv(_: &Overflow, s: &State) -> bool {
    let waits = |n: N| {
        let mut calls = s.call.iter();
        calls.any(|call| matches!(call, Call::Write { lsn, .. } if *lsn == n))
    };
    (s.durable + 1..=s.log_len).all(waits)
}

impl Overflow {
    /// Each value is in the set that its variable ranges over. Holds by construction, except for
    /// contents, blocks and the order of LSNs.
    fn type_inv(&self, s: &State) -> bool {
        let content = |value: N| value <= self.values;
        let pointer = |at: &Pointer| at.set() & !self.all_blocks() == 0;
        let entry = |entry: &Entry| content(entry.value) && pointer(&entry.at);
        let called = |call: &Call| match *call {
            Call::Idle | Call::Refused => true,
            Call::Get { from, got, .. } => entry(&from) && (got == PENDING || content(got)),
            Call::Write { value, to, .. } => content(value) && pointer(&to),
        };
        let forced = s.forcing == 0 || (s.durable < s.forcing && s.forcing <= s.log_len);
        s.redo_start <= s.durable
            && s.durable <= s.written
            && s.written <= s.log_len
            && forced
            && (!s.is_up() || s.redone == 0)
            && s.free & !self.all_blocks() == 0
            && s.retired().all(|r| r.lsn <= s.log_len && pointer(&r.at))
            && s.call.iter().all(called)
            && s.records().all(|(_, record)| entry(&record.entry))
            && s.leaf.iter().all(|leaf| entry(&leaf.entry))
    }

    fn pointer_inv(&self, s: &State) -> bool {
        let stored = |call: &Call| {
            let Call::Write {
                at: Writing::Stored,
                to,
                ..
            } = call
            else {
                return true;
            };
            to.is_long()
        };
        s.call.iter().all(stored)
            && s.retired().all(|retired| retired.at.is_long())
            && s.records().all(|(_, record)| {
                let Entry { value, at } = record.entry;
                let named = !at.is_long() || (1..=s.named).contains(&at.name);
                at.blocks().count() == self.size_of(value) as usize && named
            })
    }

    fn leak_inv(&self, s: &State) -> bool {
        let waiting = s.retired().map(|retired| retired.at);
        let used = in_use(s).chain(waiting);
        !s.is_up() || used.fold(s.free, |set, at| set | at.set()) == self.all_blocks()
    }
}

fn wal_rule_inv(_: &Overflow, s: &State) -> bool {
    let mut images = s.leaf_dev.iter().flat_map(|place| place.all());
    images.all(|image| image.lsn <= s.durable)
}

fn memory_inv(_: &Overflow, s: &State) -> bool {
    let mut leaves = s.leaf.iter().enumerate();
    !s.is_up() || leaves.all(|(k, leaf)| leaf.entry == s.entry_at(k, s.log_len))
}

fn redo_start_inv(_: &Overflow, s: &State) -> bool {
    let mut before = s.records().take(usize::from(s.redo_start));
    before.all(|(n, record)| {
        let images = s.leaf_dev[usize::from(record.key)].all();
        images.iter().all(|image| image.lsn >= n)
    })
}

fn forced_inv(_: &Overflow, s: &State) -> bool {
    let mut parts = s.may_end_with().flat_map(|entry| entry.parts());
    parts.all(|(block, part)| s.place(block).all()[0] == part)
}

fn kept_inv(_: &Overflow, s: &State) -> bool {
    let leaves = s.leaf.iter().filter(|_| s.is_up()).map(|leaf| leaf.entry);
    let live = s.may_end_with().chain(leaves);
    let mut parts = live.flat_map(|entry| entry.parts());
    parts.all(|(block, part)| s.place(block).newest() == part)
}

/// `InUse`: the pointers whose blocks are not free.
fn in_use(s: &State) -> impl Iterator<Item = Pointer> + Clone {
    let leaves = s.leaf.iter().map(|leaf| leaf.entry.at);
    let ends: Vec<_> = s.may_end_with().map(|entry| entry.at).collect();
    let under_way = s.call.iter().filter_map(|call| match *call {
        Call::Write {
            at: Writing::Stored,
            to,
            ..
        } => Some(to),
        _ => None,
    });
    leaves.chain(ends).chain(under_way)
}

fn one_owner_inv(_: &Overflow, s: &State) -> bool {
    let apart = |p: Pointer, q: Pointer| p == q || p.set() & q.set() == 0;
    !s.is_up() || in_use(s).all(|p| in_use(s).all(|q| apart(p, q)))
}

fn free_inv(_: &Overflow, s: &State) -> bool {
    s.free & named_by(&s.leaf) == 0 && s.may_end_with().all(|entry| s.free & entry.at.set() == 0)
}

/// Whether a free block still has a part of a value.
fn keeps_dead(s: &State) -> bool {
    let mut free = (1..=BLOCKS as u8).filter(|block| s.free & bit(*block) != 0);
    free.any(|block| s.place(block).newest() != Block::default())
}

fn reader_inv(_: &Overflow, s: &State) -> bool {
    s.call.iter().all(|call| match *call {
        Call::Get {
            at: at @ (Reading::Reading | Reading::Read),
            from,
            parts,
            got,
            ..
        } => {
            let whole = usize::from(parts) == from.at.blocks().count();
            got == from.value && (at == Reading::Reading || whole)
        }
        _ => true,
    })
}

fn damaged_inv(_: &Overflow, s: &State) -> bool {
    let told = |call: &Call| {
        matches!(
            call,
            Call::Refused
                | Call::Get {
                    at: Reading::Damaged,
                    ..
                }
        )
    };
    !s.call.iter().any(told)
}
