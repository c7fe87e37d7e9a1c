//! The invariants, and what must be reachable, by the names of the spec.

use super::CopyOnWrite;
use super::room::{N, SlotSet};
use super::state::{ABSENT, Call, Content, InSlot, NO_SLOT, PENDING, Phase, State, Super, Writing};
use super::state::{bit, image_of, named_by, redo_one, reindexed, slot_bit};

type Invariant = fn(&CopyOnWrite, &State) -> bool;

pub(super) const INVARIANTS: [(&str, Invariant); 20] = [
    ("TypeInv", type_inv),
    ("AckInv", ack_inv),
    ("WalRuleInv", wal_rule_inv),
    ("MemoryInv", memory_inv),
    ("CleanInv", clean_inv),
    ("NamedInv", named_inv),
    ("SnapshotInv", snapshot_inv),
    ("LogKeptInv", log_kept_inv),
    ("ConsecutiveInv", consecutive_inv),
    ("FreeInv", free_inv),
    ("LeakInv", leak_inv),
    ("DeadInv", dead_inv),
    ("OneOwnerInv", one_owner_inv),
    ("RecoverableInv", recoverable_inv),
    ("RecoveredInv", recovered_inv),
    ("ReachHeld", |m, s| {
        let blocks = s.table_dev.map(|place| place.newest());
        let on_device = m.table_of(&blocks);
        let mut both = s.table.iter().zip(on_device);
        !both.any(|(now, there)| *now != NO_SLOT && there != NO_SLOT && there != *now)
    }),
    ("ReachOlderPlace", |m, s| {
        let first = m.may_choose(s).next();
        m.may_choose(s).all(|chosen| Some(chosen) == first)
    }),
    ("ReachTornTaken", |_, s| {
        let torn = s.super_dev.iter().any(|place| place.all()[0].number == 0);
        !(s.phase == Phase::Cut && torn)
    }),
    ("ReachDead", |m, s| {
        !(s.phase == Phase::Clearing && m.held(s) != 0)
    }),
    ("ReachNewOwner", |_, s| {
        !s.slot_dev.iter().any(|place| {
            let owners = (place.all()[0], place.newest());
            matches!(owners, (InSlot::Image { page: p, .. }, InSlot::Image { page: q, .. }) if p != q)
        })
    }),
];

fn type_inv(m: &CopyOnWrite, s: &State) -> bool {
    let content = |value: N| value <= m.values;
    let pages = m.pages().fold(0, |set, p| set | bit(p));
    let slots = |set: SlotSet| set & !m.all_slots() == 0;
    let in_slot = |block: &InSlot| match *block {
        InSlot::Zeros => true,
        InSlot::Image { content: of, .. } => content(of.value),
        InSlot::Snapshot { pages: of, .. } => of & !pages == 0,
    };
    let called = |call: &Call| match *call {
        Call::Get { got, .. } => got == PENDING || content(got),
        Call::Write { value, .. } => content(value),
        _ => true,
    };
    let mut versions = s.slot_dev.iter().flat_map(|place| place.all());
    let mut tables = s.table_dev.iter().flat_map(|place| place.all());
    s.durable <= s.log_len
        && s.oldest <= s.durable
        && s.call.iter().all(called)
        && s.page.iter().all(|page| content(page.value))
        && s.index & !pages == 0
        && slots(s.free)
        && slots(named_by(&s.table))
        && versions.all(in_slot)
        && tables.all(|entries| slots(named_by(entries)))
}

fn ack_inv(_: &CopyOnWrite, s: &State) -> bool {
    let waits = |n: N| {
        let mut calls = s.call.iter();
        calls.any(|call| matches!(call, Call::Write { lsn, .. } if *lsn == n))
    };
    s.poisoned || (s.durable + 1..=s.log_len).all(waits)
}

fn wal_rule_inv(_: &CopyOnWrite, s: &State) -> bool {
    let mut blocks = s.slot_dev.iter().flat_map(|place| place.all());
    blocks.all(|block| block.lsn().is_none_or(|lsn| lsn <= s.durable))
}

fn memory_inv(m: &CopyOnWrite, s: &State) -> bool {
    let gone = Content::default();
    s.phase != Phase::Up
        || m.pages().all(|p| {
            let exists = s.index & bit(p) != 0;
            s.page[p].value == s.value_at(p, s.log_len) && exists == (s.page[p] != gone)
        })
}

fn clean_inv(m: &CopyOnWrite, s: &State) -> bool {
    m.pages().all(|p| {
        let page = s.page[p];
        page == Content::default() || s.is_dirty(p) || s.image_at(s.table[p], p) == page
    })
}

/// The slots that each version of the table's blocks names, with the page.
fn named(m: &CopyOnWrite, s: &State) -> impl Iterator<Item = (usize, u8)> {
    m.pages().flat_map(move |p| {
        let versions = s.table_dev[m.block_of(p)].all().iter();
        versions.map(move |entries| (p, entries[p]))
    })
}

fn named_inv(m: &CopyOnWrite, s: &State) -> bool {
    named(m, s).all(|(p, slot)| {
        slot == NO_SLOT || {
            let place = s.slot(slot);
            let is = matches!(place.newest(), InSlot::Image { page, .. } if usize::from(page) == p);
            !place.is_unflushed() && is
        }
    })
}

fn snapshot_inv(m: &CopyOnWrite, s: &State) -> bool {
    m.may_choose(s).all(|chosen| {
        chosen.number != 0 && {
            let place = s.slot(chosen.snapshot);
            !place.is_unflushed() && place.newest().is_snapshot_of(chosen)
        }
    })
}

fn log_kept_inv(m: &CopyOnWrite, s: &State) -> bool {
    m.may_choose(s).all(|chosen| s.oldest <= chosen.redo)
}

fn consecutive_inv(m: &CopyOnWrite, s: &State) -> bool {
    m.tears
        || m.left_supers(s).all(|[a, b]: [Super; 2]| {
            a.number % 2 == 0 && b.number % 2 == 1 && a.number.abs_diff(b.number) == 1
        })
}

fn snapshots(m: &CopyOnWrite, s: &State) -> SlotSet {
    m.may_choose(s)
        .fold(0, |set, chosen| set | slot_bit(chosen.snapshot))
}

fn free_inv(m: &CopyOnWrite, s: &State) -> bool {
    let reachable = named(m, s).fold(snapshots(m, s), |set, (_, slot)| set | slot_bit(slot));
    s.free & (reachable | named_by(&s.table)) == 0
}

fn leak_inv(m: &CopyOnWrite, s: &State) -> bool {
    s.poisoned || s.free | m.in_use(s) == m.all_slots()
}

/// A page that does not exist has no slot, unless it is retired.
fn dead_inv(m: &CopyOnWrite, s: &State) -> bool {
    let has_slot = |p: usize| {
        let written = match s.writing {
            Writing::Image { page, .. } => usize::from(page) == p,
            _ => false,
        };
        written || s.table[p] != NO_SLOT
    };
    let may = |p: usize| s.index & bit(p) != 0 || s.retired[p] > 0;
    s.phase != Phase::Up || m.pages().all(|p| may(p) || !has_slot(p))
}

fn one_owner_inv(m: &CopyOnWrite, s: &State) -> bool {
    let of_page = |p: usize| {
        let of = named(m, s).filter(move |(q, _)| *q == p);
        of.fold(0, |set, (_, slot)| set | slot_bit(slot))
    };
    let snapshots = if m.pages.len() > 1 {
        snapshots(m, s)
    } else {
        0
    };
    m.pages().all(|p| {
        let mut others = m.pages().filter(|q| *q != p);
        of_page(p) & snapshots == 0 && others.all(|q| of_page(p) & of_page(q) == 0)
    })
}

/// `RedoFrom`: the value of a page after the records from `n` to `end`.
fn redo_from(s: &State, p: usize, mut content: Content, exists: bool, n: N, end: N) -> N {
    let mut pages = if exists { bit(p) } else { 0 };
    for (lsn, record) in s.records() {
        if (n..=end).contains(&lsn) && usize::from(record.page) == p {
            content = redo_one(content, record, lsn);
            pages = reindexed(pages, record);
        }
    }
    if pages != 0 { content.value } else { ABSENT }
}

fn recoverable_inv(m: &CopyOnWrite, s: &State) -> bool {
    m.may_choose(s).all(|chosen| {
        let pages = s.pages_of(chosen);
        named(m, s).all(|(p, slot)| {
            let image = match slot {
                NO_SLOT => Content::default(),
                slot => image_of(s.slot(slot).newest(), p),
            };
            let exists = pages & bit(p) != 0;
            let value = redo_from(s, p, image, exists, chosen.redo + 1, s.durable);
            value == s.value_at(p, s.durable)
        })
    })
}

fn recovered_inv(m: &CopyOnWrite, s: &State) -> bool {
    let next = match s.phase {
        Phase::Up => return true,
        Phase::Clearing => s.log_len + 1,
        Phase::Cut | Phase::Killed => s.redone + 1,
    };
    m.pages().all(|p| {
        let exists = s.index & bit(p) != 0;
        let value = redo_from(s, p, s.page[p], exists, next, s.log_len);
        value == s.value_at(p, s.log_len)
    })
}
