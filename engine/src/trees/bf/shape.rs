//! Sizes in a Bf-Tree, for its predictors, which compute with bytes and never run the tree.

use crate::mini;
use crate::options::{Options, Promote, TreeKind};
use crate::ring::{BLOCK_HEADER_BYTES, MARK_BYTES};

/// Payload of the largest mini-page that is made for what was read or is used, other than a mirror.
pub(super) fn largest(page_size: usize) -> usize {
    page_size / 2 - MARK_BYTES
}

/// Payload of the largest mini-page that changes make, other than a mirror, in a ring of these
/// sizes.
pub(super) fn largest_of_changes(page_size: usize, sizes: &[usize], percent: u8) -> usize {
    let wanted = page_size * usize::from(percent) / 100;
    wanted.min(sizes.last().copied().unwrap_or(0)) - MARK_BYTES
}

/// Sizes of a Bf-Tree's parts, in bytes unless stated otherwise.
///
/// ```
/// use treering_engine::{BfOptions, BfShape, Options, TreeKind};
///
/// let options = Options {
///     tree: TreeKind::Bf(BfOptions::default()),
///     ..Options::default()
/// };
/// let shape = BfShape::of(&options).expect("a Bf-Tree");
/// assert!(shape.in_place < shape.ring);
/// assert!(shape.blocks.is_sorted());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BfShape {
    /// The ring.
    pub ring: u64,
    /// The part of the ring before the tail in which mini-pages are changed in place (§4.1).
    pub in_place: u64,
    /// Blocks of the ring by size class, ascending, headers included.
    pub blocks: Vec<u64>,
    /// The part of a block that holds no mini-page: its header, and the reference bits.
    pub block_overhead: usize,
    /// An empty mini-page.
    pub mini_page: usize,
    /// Bytes that a record takes in a mini-page beside key and value.
    pub mini_slot: usize,
    /// The largest mini-page that is made for what was read or is used, other than a mirror.
    pub largest: usize,
    /// The largest that changes make, other than a mirror: one that needs more is merged.
    pub largest_of_changes: usize,
    /// Bytes that a new record is assumed to need in its leaf beside key and value.
    pub leaf_slot: usize,
    /// The minimum that is evicted at once.
    pub spare: u64,
    /// The room that eviction ahead of need keeps; each time it makes twice as much.
    pub free_goal: u64,
    /// The number of mini-pages that one step of that eviction handles, and the most that are spared
    /// in a row for an operation that waits.
    pub batch: usize,
    /// The number of reference bits of a mini-page: records beyond share the last one (§5.5).
    pub marks: usize,
    /// Which reads of a leaf leave a copy in the mini-page (§5.1).
    pub promote: Promote,
    /// The percentage of mini-pages with changes that the head spares.
    pub spare_percent: u8,
    /// Log bytes in which a checkpoint may log dirty records again instead of merging them.
    pub relog: u64,
}

impl BfShape {
    /// The shape for these options; `None` if they select another tree.
    #[must_use]
    pub fn of(options: &Options) -> Option<BfShape> {
        let TreeKind::Bf(bf) = options.tree else {
            return None;
        };
        let ring = options.ring_bytes() / 4096 * 4096;
        let copied = ring * u64::from(bf.copy_on_access_percent) / 100;
        let capacity = usize::try_from(ring).unwrap_or(usize::MAX);
        let sizes = super::ring_sizes(options.page_size, capacity, bf.growth_percent);
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
            largest_of_changes: largest_of_changes(
                options.page_size,
                &sizes,
                bf.max_mini_page_percent,
            ),
            leaf_slot: options.page_layout().slot_bytes(),
            spare: super::SPARE_ROOM,
            free_goal: ring / super::ahead::FREE_SHARE,
            batch: super::ahead::BATCH,
            marks: mini::Marks::COUNT,
            promote: bf.promote,
            spare_percent: bf.spare_percent,
            relog: bf.relog_bytes(options.checkpoint_log_bytes),
        })
    }
}
