//! The circular buffer of mini-pages, as addresses only (Bf-Tree §4): which block is where, and
//! which the head meets next.
//!
//! ```text
//!      head                         tail - in place               tail
//!       [ copy on access            | changed in place            ] free
//!        a freed block stays unused    a freed block is listed and reused
//! ```
//!
//! A block that is reused keeps its place: the head reaches it sooner than a block at the tail. So
//! mini-pages do not all spend the same time in the ring, unlike pages in the frames of a page
//! cache ([`crate::predict::cache`]).

use std::collections::VecDeque;

/// Number of a block, in the order in which the tail passed them.
pub(super) type BlockId = u64;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Holds {
    MiniPage(u32),
    /// Nothing; the block is on the list of its class.
    Nothing,
    /// Nothing until the head has passed: a tombstone, or padding before the physical end.
    Dead,
}

#[derive(Clone, Copy)]
struct Block {
    at: u64,
    bytes: u64,
    holds: Holds,
}

/// The ring, with its blocks from head to tail and its free lists.
pub(super) struct Ring {
    capacity: u64,
    in_place: u64,
    /// Bytes of a block, by class.
    classes: Vec<u64>,
    tail: u64,
    /// The blocks from head to tail.
    blocks: VecDeque<Block>,
    first: BlockId,
    /// Free blocks by class, last in first out. Blocks that the head has passed meanwhile are
    /// skipped.
    lists: Vec<Vec<BlockId>>,
}

impl Ring {
    pub(super) fn new(capacity: u64, in_place: u64, classes: Vec<u64>) -> Ring {
        let lists = vec![Vec::new(); classes.len()];
        Ring {
            capacity,
            in_place,
            classes,
            tail: 0,
            blocks: VecDeque::new(),
            first: 0,
            lists,
        }
    }

    fn head(&self) -> u64 {
        self.blocks.front().map_or(self.tail, |block| block.at)
    }

    fn block(&mut self, id: BlockId) -> &mut Block {
        &mut self.blocks[(id - self.first) as usize]
    }

    /// The smallest class of blocks with at least this many bytes.
    pub(super) fn class_for(&self, bytes: u64) -> usize {
        self.classes.partition_point(|class| *class < bytes)
    }

    /// Whether the block is so near to the head that a used mini-page is copied to the tail (§4.1).
    pub(super) fn near_head(&self, id: BlockId) -> bool {
        self.blocks[(id - self.first) as usize].at + self.in_place < self.tail
    }

    /// Allocates a block for a leaf's mini-page (§4.2, Alloc).
    ///
    /// # Errors
    /// The ring is full; the number of bytes missing.
    pub(super) fn allocate(&mut self, class: usize, leaf: u32) -> Result<BlockId, u64> {
        while let Some(id) = self.lists[class].pop() {
            if id >= self.first {
                self.block(id).holds = Holds::MiniPage(leaf);
                return Ok(id);
            }
        }
        let bytes = self.classes[class];
        let rest = self.capacity - self.tail % self.capacity;
        if rest < bytes && !self.lacks(bytes) {
            self.push(rest, Holds::Dead);
        }
        if self.lacks(bytes) {
            let rest = self.capacity - self.tail % self.capacity;
            let padding = if rest < bytes { rest } else { 0 };
            return Err(self.tail + padding + bytes - self.head() - self.capacity);
        }
        Ok(self.push(bytes, Holds::MiniPage(leaf)))
    }

    /// Bytes that the tail has passed so far.
    pub(super) fn passed(&self) -> u64 {
        self.tail
    }

    /// Bytes between tail and head.
    pub(super) fn room(&self) -> u64 {
        self.head() + self.capacity - self.tail
    }

    fn lacks(&self, bytes: u64) -> bool {
        self.tail + bytes > self.head() + self.capacity
    }

    fn push(&mut self, bytes: u64, holds: Holds) -> BlockId {
        let at = self.tail;
        self.blocks.push_back(Block { at, bytes, holds });
        self.tail += bytes;
        self.first + self.blocks.len() as u64 - 1
    }

    /// Frees the block that a mini-page has left (§4.2, Dealloc; §5.5).
    pub(super) fn free(&mut self, id: BlockId, class: usize) {
        if self.near_head(id) {
            self.block(id).holds = Holds::Dead;
        } else {
            self.block(id).holds = Holds::Nothing;
            self.lists[class].push(id);
        }
    }

    /// The leaves whose mini-pages the head reaches next, at most `most` of them, and the bytes up to
    /// the last: about `bytes`.
    pub(super) fn next_victims(&self, most: usize, bytes: u64) -> (Vec<u32>, u64) {
        let (mut leaves, mut passed) = (Vec::new(), 0);
        for block in self.blocks.iter().take(2 * most) {
            if passed >= bytes || leaves.len() == most {
                break;
            }
            if let Holds::MiniPage(leaf) = block.holds {
                leaves.push(leaf);
            }
            passed += block.bytes;
        }
        (leaves, passed)
    }

    /// Moves the head past a block. Returns its bytes and the leaf whose mini-page was in it;
    /// `None` if the ring is empty.
    pub(super) fn evict(&mut self) -> Option<(u64, Option<u32>)> {
        let block = self.blocks.pop_front()?;
        self.first += 1;
        let evicted = match block.holds {
            Holds::MiniPage(leaf) => Some(leaf),
            Holds::Nothing | Holds::Dead => None,
        };
        Some((block.bytes, evicted))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rand::rngs::SmallRng;
    use rand::{RngExt, SeedableRng};
    use treering_engine::mapping::LeafAddress;
    use treering_engine::ring::{BLOCK_HEADER_BYTES, Exclusive};
    use treering_engine::{PageId, ring};

    use super::*;

    const SIZES: [usize; 4] = [64, 128, 256, 512];

    fn leaf() -> LeafAddress {
        LeafAddress::new(1).expect("a small address")
    }

    /// Allocates the block of `page` in both rings, in a class that the ring has room for.
    fn settle(
        real: Exclusive<'_>,
        model: &mut Ring,
        blocks: &mut BTreeMap<u32, (BlockId, usize)>,
        class: usize,
    ) -> bool {
        let page = real.page().0 as u32;
        let played = model.allocate(class, page);
        match real.allocate(SIZES[class]) {
            Ok(fresh) => {
                drop(fresh.publish());
                let id = played.expect("as the real ring");
                if let Some((old, class)) = blocks.insert(page, (id, class)) {
                    model.free(old, class);
                }
                true
            }
            Err(full) => {
                let _ = full.give_back();
                assert!(played.is_err(), "page {page} found no room");
                false
            }
        }
    }

    #[test]
    fn it_does_with_addresses_what_the_real_ring_does_with_blocks() {
        let options = ring::RingOptions {
            capacity: 16 << 10,
            copy_on_access_percent: 25,
            sizes: SIZES.to_vec(),
            pages: 64,
            marks: false,
        };
        let real = ring::Ring::new(&options).expect("a ring");
        for page in 0..64 {
            real.adopt_page(PageId(page), leaf()).expect("a new page");
        }
        let footprints = SIZES.map(|size| (size + BLOCK_HEADER_BYTES) as u64);
        let mut model = Ring::new(16 << 10, 12 << 10, footprints.to_vec());
        let mut blocks = BTreeMap::new();
        let mut random = SmallRng::seed_from_u64(7);
        let (mut near_head, mut evictions) = (0, 0);
        for step in 0..200_000 {
            let page = random.random_range(0..64u32);
            let mut guard = real.exclusive(PageId(u64::from(page))).expect("a page");
            if let Some(&(id, class)) = blocks.get(&page) {
                let near = guard.in_copy_on_access_region();
                assert_eq!(model.near_head(id), near, "step {step}, page {page}");
                near_head += u32::from(near);
                if random.random_bool(0.1) {
                    guard.set_leaf(leaf());
                    model.free(id, class);
                    blocks.remove(&page);
                    continue;
                }
            }
            let class = random.random_range(0..SIZES.len());
            if settle(guard, &mut model, &mut blocks, class) {
                continue;
            }
            let mut gone = None;
            let evict = |page: PageId, _: &mut [u8]| {
                gone = Some(page.0 as u32);
                Ok::<_, std::convert::Infallible>(leaf())
            };
            let evicted = real.evict(evict).expect("nothing fails");
            let (bytes, played) = model.evict().expect("it is full");
            assert_eq!(evicted, ring::Eviction::Block(bytes), "step {step}");
            assert_eq!(played, gone, "step {step}");
            if let Some(page) = gone {
                blocks.remove(&page);
                evictions += 1;
            }
        }
        assert!(
            near_head > 1000 && evictions > 1000,
            "{near_head} {evictions}"
        );
    }
}
