//! Counters of a ring.

use super::header::HEADER;

/// Allocations of one size class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassStats {
    /// Bytes of payload.
    pub size: usize,
    /// Blocks taken at the tail.
    pub from_tail: u64,
    /// Blocks taken from the free list.
    pub from_list: u64,
    /// Blocks that their pages freed: copied away, dropped, or never published.
    pub freed: u64,
    /// Blocks that held a mini-page and were evicted at the head.
    pub evicted: u64,
}

impl ClassStats {
    /// Blocks taken in total.
    #[must_use]
    pub fn allocated(&self) -> u64 {
        self.from_tail + self.from_list
    }

    /// Blocks in use now.
    #[must_use]
    pub fn live(&self) -> u64 {
        self.allocated().saturating_sub(self.freed + self.evicted)
    }
}

/// A ring's activity since it was made, and its present content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RingStats {
    /// Allocations by size class, ascending.
    pub classes: Vec<ClassStats>,
    /// Allocations for a page whose block was in the copy-on-access region.
    pub copies_to_tail: u64,
    /// Mini-pages evicted at the head.
    pub evictions: u64,
    /// Evictions that failed because the callback failed.
    pub failed_evictions: u64,
    /// Allocations that found the ring full.
    pub full_returns: u64,
    /// Bytes of all padding before the physical end so far.
    pub padding_bytes: u64,
    /// Bytes of all tombstones so far, without padding: blocks that were copied away, dropped or
    /// popped too late.
    pub tombstone_bytes: u64,
    /// Bytes of all blocks that the head has passed, including free ones.
    pub passed_bytes: u64,
    /// Bytes from head to tail now.
    pub span_bytes: u64,
    /// The part of `span_bytes` on free lists.
    pub listed_bytes: u64,
    /// Bytes of the region.
    pub capacity_bytes: u64,
    /// Whether the kernel accepted the advice to back the region with huge pages. Rings below 2 MiB
    /// do not ask for it.
    pub huge_pages: bool,
}

impl RingStats {
    /// Bytes of all blocks in use now, headers included.
    #[must_use]
    pub fn live_bytes(&self) -> u64 {
        let footprint = |class: &ClassStats| class.live() * (class.size as u64 + HEADER);
        self.classes.iter().map(footprint).sum()
    }

    /// Allocations of all classes.
    #[must_use]
    pub fn allocations(&self) -> u64 {
        self.classes.iter().map(ClassStats::allocated).sum()
    }
}
