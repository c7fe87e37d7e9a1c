//! The invariants of the circular buffer, by the names of the spec.

use super::CircularBuffer;
use super::state::{ABSENT, Block, Life, NONE, PENDING, Phase, State};

type Invariant = fn(&CircularBuffer, &State) -> bool;

pub(super) const INVARIANTS: [(&str, Invariant); 12] = [
    ("TypeInv", type_inv),
    ("RegionsInv", regions_inv),
    ("NoStraddleInv", no_straddle_inv),
    ("NoOverlapInv", no_overlap_inv),
    ("FreeListInv", free_list_inv),
    ("LockInv", lock_inv),
    ("MappedInv", mapped_inv),
    ("ReachableInv", reachable_inv),
    ("HolderInv", holder_inv),
    ("OwnerInv", owner_inv),
    ("CleanInv", clean_inv),
    ("NoLossInv", no_loss_inv),
];

/// Holds by construction, except for the contents of records and of the disk.
fn type_inv(m: &CircularBuffer, s: &State) -> bool {
    let content = |v: u8| v == ABSENT || usize::from(v) < m.values.len();
    let blocks = s.block[..m.units()].iter();
    let reads = s.thread[..m.clients.len()].iter().map(|t| match t.call {
        super::Call::Get { got, .. } => got,
        _ => PENDING,
    });
    s.disk[..m.pages.len()].iter().all(|v| content(*v))
        && blocks.into_iter().all(|b| b.rec == NONE || content(b.rec))
        && reads.into_iter().all(|v| v == PENDING || content(v))
}

fn regions_inv(m: &CircularBuffer, s: &State) -> bool {
    s.head <= s.claimed
        && s.claimed <= s.tail
        && s.head <= s.second_chance
        && s.second_chance <= s.tail
        && s.tail <= s.head + m.capacity
}

fn no_straddle_inv(m: &CircularBuffer, s: &State) -> bool {
    (0..m.capacity).all(|o| o + s.at(o).size <= m.capacity)
}

fn no_overlap_inv(m: &CircularBuffer, s: &State) -> bool {
    let (mut once, mut twice, mut used) = (0u32, 0u32, 0u32);
    for o in 0..m.capacity {
        let cells = ((1 << s.at(o).size) - 1) << o & ((1 << m.capacity) - 1);
        twice |= once & cells;
        once |= cells;
        used |= u32::from(m.address_of(s, o) < s.tail) << o;
    }
    twice == 0 && once == used
}

fn free_list_inv(m: &CircularBuffer, s: &State) -> bool {
    m.sizes.iter().zip(s.free_list).all(|(size, list)| {
        (0..m.capacity)
            .filter(|o| list >> o & 1 == 1)
            .all(|o| *s.at(o) == Block::dead(Life::Listed, *size))
    })
}

fn lock_inv(_: &CircularBuffer, s: &State) -> bool {
    (s.word.iter()).all(|word| word.writer == NONE || word.readers == 0)
}

fn mapped_inv(m: &CircularBuffer, s: &State) -> bool {
    (0..m.pages.len()).all(|p| {
        let at = s.word[p].at;
        at == NONE || s.at(at).life == Life::Ready && usize::from(s.at(at).page) == p
    })
}

fn reachable_inv(m: &CircularBuffer, s: &State) -> bool {
    (0..m.capacity).all(|o| {
        let block = s.at(o);
        if block.life != Life::Ready {
            return true;
        }
        let word = &s.word[usize::from(block.page)];
        word.at == o || word.writer != NONE
    })
}

fn holder_inv(m: &CircularBuffer, s: &State) -> bool {
    s.thread[..m.clients.len()].iter().all(|t| {
        let old = t.work.old;
        old == NONE || s.at(old).life == Life::Ready && usize::from(s.at(old).page) == t.key()
    })
}

fn owner_inv(m: &CircularBuffer, s: &State) -> bool {
    let threads = &s.thread[..m.clients.len()];
    threads.iter().enumerate().all(|(c, t)| {
        let others = || threads.iter().enumerate().filter(move |(d, _)| *d != c);
        !matches!(t.phase, Phase::Copy | Phase::Publish)
            || s.at(t.work.new).life == Life::Allocated
                && others().all(|(_, other)| other.work.new != t.work.new)
    })
}

fn clean_inv(m: &CircularBuffer, s: &State) -> bool {
    s.block[..m.units()]
        .iter()
        .all(|b| b.rec == NONE || b.dirty || b.rec == s.disk[usize::from(b.page)])
}

fn no_loss_inv(m: &CircularBuffer, s: &State) -> bool {
    (0..m.pages.len()).all(|p| s.current(p) == s.written[p])
}
