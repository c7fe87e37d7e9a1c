//! How large things are in a Bf-Tree: for its predictors, which compute with bytes and never run it.

use crate::mini;
use crate::options::{Options, TreeKind};
use crate::ring::{BLOCK_HEADER_BYTES, MARK_BYTES};

/// Payload of the largest mini-page that is no mirror.
pub(super) fn largest(page_size: usize) -> usize {
    page_size / 2 - MARK_BYTES
}

/// Sizes in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BfShape {
    /// The ring.
    pub ring: u64,
    /// The part of it, next to the tail, in which mini-pages are changed in place (§4.1).
    pub in_place: u64,
    /// Blocks of the ring by size class, ascending, headers included.
    pub blocks: Vec<u64>,
    /// What of a block holds no mini-page: its header, and the reference bits.
    pub block_overhead: usize,
    /// An empty mini-page.
    pub mini_page: usize,
    /// What a record takes of a mini-page beside key and value.
    pub mini_slot: usize,
    /// The largest mini-page that is no mirror: what needs more is merged.
    pub largest: usize,
    /// What a new record is taken to need of its leaf beside key and value.
    pub leaf_slot: usize,
    /// Least that is evicted at once.
    pub spare: u64,
    /// Room that eviction ahead of need keeps; it makes twice as much.
    pub free_goal: u64,
    /// Mini-pages that one step of it evicts.
    pub batch: usize,
    /// Reference bits of a mini-page: records beyond share the last one (§5.5).
    pub marks: usize,
    /// How many of a hundred reads of a leaf leave a copy in the mini-page (§5.1).
    pub promotion_percent: u8,
}

impl BfShape {
    /// The shape that `options` give; none of another tree.
    #[must_use]
    pub fn of(options: &Options) -> Option<BfShape> {
        let TreeKind::Bf(bf) = options.tree else {
            return None;
        };
        let ring = options.ring_bytes() / 4096 * 4096;
        let copied = ring * u64::from(bf.copy_on_access_percent) / 100;
        let capacity = usize::try_from(ring).unwrap_or(usize::MAX);
        let sizes = super::ring_sizes(options.page_size, capacity);
        Some(BfShape {
            ring,
            in_place: ring - copied,
            blocks: (sizes.iter())
                .map(|size| (size + BLOCK_HEADER_BYTES) as u64)
                .collect(),
            block_overhead: BLOCK_HEADER_BYTES + MARK_BYTES,
            mini_page: mini::bytes_for(0, 0),
            mini_slot: mini::bytes_for(1, 0) - mini::bytes_for(0, 0),
            largest: largest(options.page_size),
            leaf_slot: options.page_layout().slot_bytes(),
            spare: super::SPARE_ROOM,
            free_goal: ring / super::ahead::FREE_SHARE,
            batch: super::ahead::BATCH,
            marks: mini::Marks::COUNT,
            promotion_percent: bf.promotion_percent,
        })
    }
}
