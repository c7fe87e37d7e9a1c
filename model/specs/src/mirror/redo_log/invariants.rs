//! The invariants, and what must be reachable, by the names of the spec.

use super::RedoLog;
use super::format::{Carry, Content, Walk};
use super::state::{Packing, Phase, State, Verdict};
use super::steps::forget_memory;

type Invariant = fn(&RedoLog, &State) -> bool;

pub(super) const INVARIANTS: [(&str, Invariant); 19] = [
    ("TypeInv", type_inv),
    ("AckInv", |_, s| {
        s.phase != Phase::Up || s.rotten > 0 || s.acked <= s.durable
    }),
    ("KeptInv", |_, s| s.verdict != Verdict::Lost),
    ("PrefixInv", |_, s| s.verdict != Verdict::Mixed),
    ("StableInv", |_, s| s.verdict != Verdict::Changed),
    ("OpensInv", |_, s| s.verdict != Verdict::Damaged),
    ("NoticedInv", |_, s| s.verdict != Verdict::Silent),
    ("EpochInv", |_, s| {
        s.phase != Phase::Up || s.super_dev.iter().all(|of| of.epoch == s.epoch)
    }),
    ("LogKeptInv", |_, s| {
        s.phase != Phase::Up || s.super_dev.iter().all(|of| s.oldest <= of.redo)
    }),
    ("BufferInv", buffer_inv),
    ("OnceInv", once_inv),
    ("GoneInv", gone_inv),
    ("ReachDeadRecord", |m, s| {
        !(s.phase == Phase::Cut && reading(m, s).carry != Carry::None)
    }),
    ("ReachTorn", |m, s| {
        !(s.phase == Phase::Cut && s.newest().iter().any(|content| !m.is_whole(content)))
    }),
    ("ReachLeftOver", |_, s| {
        let is_old = |content: &Content| {
            let head = &content.head;
            (1..s.epoch).contains(&head.epoch) && head.index > s.starts_at
        };
        !(s.phase == Phase::Up && s.newest().iter().any(is_old))
    }),
    ("ReachBothForms", both_forms),
    ("ReachWitness", |m, s| {
        let end = reading(m, s).stop;
        let head = &s.newest()[m.place(end)].head;
        !(s.phase == Phase::Killed && head.witness && head.index == end)
    }),
    ("ReachNoticed", |_, s| s.phase != Phase::Damaged),
    ("ReachUnnoticed", |_, s| {
        !(s.phase == Phase::Read && s.rotten > 0 && s.acked > s.end)
    }),
];

fn reading(m: &RedoLog, s: &State) -> Walk {
    m.read_log(&s.newest(), s.newest_super())
}

fn type_inv(m: &RedoLog, s: &State) -> bool {
    let ring = m.ring as usize;
    let places = s.log_dev.len() == ring && s.lost_log.len() == ring;
    let calls = s.call.len() == m.clients.len();
    places && calls && s.log_dev.iter().all(|place| !place.is_empty()) && !s.super_dev.is_empty()
}

fn buffer_inv(m: &RedoLog, s: &State) -> bool {
    if s.phase != Phase::Up {
        return true;
    }
    let last = s.history.last();
    let ends = s.end <= s.starts_at * m.units || last.is_none_or(|last| last.lsn == s.end);
    let limit = (m.block_of(s.oldest) + m.ring) * m.units;
    s.durable <= s.end && ends && (s.buffer.is_empty() || m.next(s) <= limit)
}

fn once_inv(m: &RedoLog, s: &State) -> bool {
    if s.phase != Phase::Up || s.packing != Packing::Sparse || s.oldest >= s.durable {
        return true;
    }
    let mut kept = m.block_of(s.oldest)..=m.block_of(s.durable - 1);
    kept.all(|index| {
        let place = m.place(index);
        s.log_dev[place].len() == 1 || s.lost_log[place]
    })
}

fn gone_inv(_: &RedoLog, s: &State) -> bool {
    let mut gone = s.clone();
    forget_memory(&mut gone);
    !matches!(s.phase, Phase::Cut | Phase::Killed) || gone == *s
}

fn both_forms(m: &RedoLog, s: &State) -> bool {
    if s.phase != Phase::Read || s.found.len() < 2 {
        return true;
    }
    let blocks = s.newest();
    let is_packed = |content: &Content| {
        let head = &content.head;
        head.epoch != 0 && !head.closed && head.units.len() < m.units as usize
    };
    let both = blocks.iter().any(|content| content.head.closed) && blocks.iter().any(is_packed);
    !(both && reading(m, s).epoch > s.newest_super().redo_epoch)
}
