//! The flash of a drive, as a miniature needs it.

use treering_engine::BLOCK_SIZE;

use crate::ssd::{Frontiers, FtlConfig, GcPolicy};

/// The flash of a drive: its geometry and garbage collection, without times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlashShape {
    /// Addressable blocks of 4 KiB.
    pub logical_blocks: u64,
    /// Flash pages of 4 KiB in an erase block.
    pub pages_per_block: u32,
    /// Erase blocks of the log, T divided by the pages of an erase block.
    pub log_blocks: u32,
    /// Additional erase blocks for frontiers and free blocks.
    pub reserve_blocks: u32,
    /// The victim selection policy.
    pub policy: GcPolicy,
    /// Which frontiers host and garbage collection append to.
    pub frontiers: Frontiers,
    /// How compressed blocks are stored, if the drive compresses.
    pub extents: Option<Extents>,
}

/// How a compressing drive stores a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extents {
    /// Header bytes of each extent.
    pub header: u32,
    /// Extents are rounded up to a multiple of this.
    pub granularity: u32,
    /// Flash bytes of the largest extent.
    pub largest: u32,
    /// Flash bytes of a block with foreign data (see `treering_sim::drive::Precondition`).
    pub foreign: u16,
}

impl Extents {
    /// Flash bytes of a block that compresses to `payload` bytes; an all-zero block has none.
    #[must_use]
    pub fn stored(&self, payload: u16) -> u16 {
        match payload {
            0 => 0,
            payload => {
                let bytes = u32::from(payload) + self.header;
                bytes
                    .next_multiple_of(self.granularity.max(1))
                    .min(self.largest) as u16
            }
        }
    }
}

impl FlashShape {
    /// The flash of a drive that maps pages.
    #[must_use]
    pub fn of_pages(config: &FtlConfig) -> FlashShape {
        FlashShape {
            logical_blocks: config.logical_pages,
            pages_per_block: config.pages_per_block,
            log_blocks: config.log_blocks,
            reserve_blocks: config.reserve_blocks,
            policy: config.policy,
            frontiers: config.frontiers,
            extents: None,
        }
    }

    /// A drive of `1/scale` of the blocks, in erase blocks as much smaller, so that each still
    /// covers the same stretch of time.
    #[must_use]
    pub fn scaled(&self, scale: u64) -> FlashShape {
        let pages = u64::from(self.pages_per_block);
        FlashShape {
            logical_blocks: self.logical_blocks / scale,
            pages_per_block: (pages / scale).max(1) as u32,
            ..*self
        }
    }

    /// Flash pages of the log, T.
    #[must_use]
    pub fn log_pages(&self) -> u64 {
        u64::from(self.log_blocks) * u64::from(self.pages_per_block)
    }

    /// Flash bytes that a host write of `payload` bytes takes; `payload` is the compressed size on
    /// a drive that compresses, and has no meaning on others.
    #[must_use]
    pub fn stored(&self, payload: u16) -> u16 {
        match &self.extents {
            None => BLOCK_SIZE as u16,
            Some(extents) => extents.stored(payload),
        }
    }
}
