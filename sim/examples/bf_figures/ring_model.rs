//! A small model of the ring that allows two of its rules to be switched off. It has reads only,
//! and mini-pages without bytes.
//!
//! A mini-page that moves leaves its old block behind. In the copy-on-access region that block
//! cannot be reused until the head has passed it (§5.5: "the old address is marked as a
//! tombstone"). When it moves, it loses the records that were not used since it last moved
//! ("evicting cold records"). [`Rules`] says which of the two rules apply; with both, the model
//! misses as often as the engine.

use std::collections::VecDeque;

/// Bytes of a mini-page besides its records, of a block's header, and of a record (engine: `mini`,
/// `ring`).
const PAGE_BYTES: u64 = 24;
const HEADER: u64 = 8;
const RECORD_BYTES: u64 = 40;
const CLASSES: usize = 6;
const LARGEST: u64 = 2044;
const SPARE_ROOM: u64 = 4096;

/// What happens to the block that a mini-page has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// It stays until the head passes it. Outside the copy-on-access region it can be allocated
    /// again.
    Stays,
    /// Its bytes are free at once, wherever they are, as in an LRU list.
    Vanishes,
}

/// What happens to records that were not used since the mini-page last moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cold {
    Dropped,
    Kept,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) left: Left,
    pub(crate) cold: Cold,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Live(u32),
    Listed,
    Dead,
}

struct Block {
    at: u64,
    class: usize,
    state: State,
}

#[derive(Clone, Default)]
struct MiniPage {
    block: Option<usize>,
    /// Ranks of the records, and whether each was used.
    records: Vec<(u32, bool)>,
}

pub(crate) struct RingModel {
    rules: Rules,
    capacity: u64,
    in_place: u64,
    promotion_percent: u64,
    pages: Vec<MiniPage>,
    blocks: VecDeque<Block>,
    /// Number of the first element of `blocks`.
    first: usize,
    lists: [Vec<usize>; CLASSES],
    tail: u64,
    live: Ages,
    chance: u64,
    pub(crate) lookups: u64,
    pub(crate) misses: u64,
}

fn footprint(class: usize) -> u64 {
    (64 << class) + HEADER
}

fn class_of(records: usize) -> usize {
    let bytes = PAGE_BYTES + records as u64 * RECORD_BYTES;
    (0..CLASSES)
        .find(|class| 64 << class >= bytes)
        .unwrap_or(CLASSES)
}

impl RingModel {
    /// Creates an empty ring. At most `allocations` blocks can be distinguished by age.
    pub(crate) fn new(
        rules: Rules,
        capacity: u64,
        copy_on_access_percent: u64,
        promotion_percent: u64,
        leaves: usize,
        allocations: usize,
    ) -> RingModel {
        RingModel {
            rules,
            capacity,
            in_place: capacity * (100 - copy_on_access_percent) / 100,
            promotion_percent,
            pages: vec![MiniPage::default(); leaves],
            blocks: VecDeque::new(),
            first: 0,
            lists: Default::default(),
            tail: 0,
            live: Ages(vec![0; allocations + 1]),
            chance: 0,
            lookups: 0,
            misses: 0,
        }
    }

    pub(crate) fn live_share(&self) -> f64 {
        self.live.from(0) as f64 / self.capacity as f64
    }

    pub(crate) fn lookup(&mut self, leaf: usize, record: u32) {
        self.lookups += 1;
        let page = &mut self.pages[leaf];
        if let Some(found) = page.records.iter_mut().find(|(r, _)| *r == record) {
            found.1 = true;
            let block = page.block.expect("it has records");
            if self.near_head(block) {
                self.move_to_tail(leaf, block);
            }
            return;
        }
        self.misses += 1;
        let spread = self.chance.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        self.chance += 1;
        if (spread * 100) >> 32 < self.promotion_percent {
            self.promote(leaf, record);
        }
    }

    fn promote(&mut self, leaf: usize, record: u32) {
        let records = self.pages[leaf].records.len() + 1;
        let class = class_of(records);
        if class == CLASSES || PAGE_BYTES + records as u64 * RECORD_BYTES > LARGEST + 4 {
            return;
        }
        let old = self.pages[leaf].block;
        if old.is_none_or(|block| self.block(block).class < class) {
            let Some(block) = self.allocate(leaf, class) else {
                // The next promotion will find the space.
                self.make_room(footprint(class));
                return;
            };
            if let Some(old) = old {
                self.free(old);
            }
            self.pages[leaf].block = Some(block);
        }
        self.pages[leaf].records.push((record, true));
    }

    /// If there is no space, the mini-page stays where it is.
    fn move_to_tail(&mut self, leaf: usize, old: usize) {
        let keeps = |used: bool| used || self.rules.cold == Cold::Kept;
        let records = &self.pages[leaf].records;
        let kept = records.iter().filter(|(_, used)| keeps(*used)).count();
        let Some(block) = self.allocate(leaf, class_of(kept)) else {
            return;
        };
        self.free(old);
        let keep_all = self.rules.cold == Cold::Kept;
        let page = &mut self.pages[leaf];
        page.records.retain(|(_, used)| *used || keep_all);
        page.records.iter_mut().for_each(|(_, used)| *used = false);
        page.block = Some(block);
    }

    fn block(&self, number: usize) -> &Block {
        &self.blocks[number - self.first]
    }

    fn near_head(&self, number: usize) -> bool {
        match self.rules.left {
            Left::Stays => self.block(number).at + self.in_place < self.tail,
            Left::Vanishes => self.live.from(number) > self.in_place,
        }
    }

    /// Bytes in use.
    fn taken(&self) -> u64 {
        match self.rules.left {
            Left::Stays => self.tail - self.blocks.front().map_or(self.tail, |block| block.at),
            Left::Vanishes => self.live.from(0),
        }
    }

    fn allocate(&mut self, leaf: usize, class: usize) -> Option<usize> {
        while let Some(number) = self.lists[class].pop() {
            if number >= self.first {
                let first = self.first;
                self.blocks[number - first].state = State::Live(leaf as u32);
                self.live.add(number, footprint(class) as i64);
                return Some(number);
            }
        }
        if self.taken() + footprint(class) > self.capacity {
            return None;
        }
        let number = self.first + self.blocks.len();
        self.blocks.push_back(Block {
            at: self.tail,
            class,
            state: State::Live(leaf as u32),
        });
        self.tail += footprint(class);
        self.live.add(number, footprint(class) as i64);
        Some(number)
    }

    fn free(&mut self, number: usize) {
        let listed = self.rules.left == Left::Stays && !self.near_head(number);
        let first = self.first;
        let block = &mut self.blocks[number - first];
        let class = block.class;
        self.live.add(number, -(footprint(class) as i64));
        if listed {
            block.state = State::Listed;
            self.lists[class].push(number);
        } else {
            block.state = State::Dead;
        }
    }

    fn make_room(&mut self, needed: u64) {
        let until = (self.capacity - needed.max(SPARE_ROOM)).min(self.taken());
        while self.taken() > until {
            let Some(block) = self.blocks.pop_front() else {
                return;
            };
            if let State::Live(leaf) = block.state {
                self.live.add(self.first, -(footprint(block.class) as i64));
                self.pages[leaf as usize] = MiniPage::default();
            }
            self.first += 1;
        }
    }
}

/// Bytes by age, with fast sums over all younger blocks (a Fenwick tree).
struct Ages(Vec<u64>);

impl Ages {
    fn add(&mut self, number: usize, bytes: i64) {
        let mut i = self.0.len() - 1 - number;
        while i < self.0.len() {
            self.0[i] = self.0[i].wrapping_add_signed(bytes);
            i += i & i.wrapping_neg();
        }
    }

    /// Bytes of the blocks from this number on.
    fn from(&self, number: usize) -> u64 {
        let (mut i, mut sum) = (self.0.len() - 1 - number, 0);
        while i > 0 {
            sum += self.0[i];
            i &= i - 1;
        }
        sum
    }
}
