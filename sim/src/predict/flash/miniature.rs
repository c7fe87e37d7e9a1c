//! One miniature: the drive's own FTL with a k-th of its pages, on a k-th of its logical blocks.

use treering_engine::BLOCK_SIZE;

use crate::csd::precondition::Prepared;
use crate::csd::{ExtentFtl, ExtentFtlConfig};
use crate::mean::Mean;
use crate::predict::device::Before;
use crate::ssd::gc::Ties;
use crate::ssd::precondition::prepare;
use crate::ssd::{Ftl, FtlConfig, GeometryError};

use super::shape::{Extents, FlashShape};

/// What a miniature did since the measured part began. Bytes are those of the miniature; times k
/// they are those of the drive.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Played {
    /// Bytes programmed for the host.
    pub host_bytes: u64,
    /// Bytes moved by garbage collection.
    pub gc_bytes: u64,
    /// Bytes in use, averaged over the host's writes.
    pub in_use_bytes: f64,
    /// Erase blocks erased.
    pub erases: u64,
}

impl Played {
    /// Bytes moved per byte programmed for the host; `None` before the first write.
    #[must_use]
    pub fn gc_per_host(&self) -> Option<f64> {
        (self.host_bytes > 0).then(|| self.gc_bytes as f64 / self.host_bytes as f64)
    }
}

/// The FTL of the drive that is modelled.
#[derive(Debug)]
enum Mapping {
    Pages(Ftl),
    Extents(ExtentFtl, Extents),
}

/// A drive with a k-th of the logical blocks and of the pages of each erase block.
///
/// Blocks are sampled from strata: of `k` consecutive LBAs exactly one, chosen by a hash, is block
/// `lba / k` here. The number of erase blocks stays, so each covers the same stretch of time as on
/// the drive, and what was written together still dies together.
#[derive(Debug)]
pub struct Miniature {
    mapping: Mapping,
    /// log2 k.
    shift: u32,
    seed: u64,
    stratum: u64,
    in_use: Mean,
}

impl Miniature {
    /// A miniature of `1/sample` of the drive, in the state `before`. `sample` must be a power of
    /// two. Miniatures with the same seed and different strata (below `sample`) have no block in
    /// common.
    ///
    /// # Errors
    /// [`GeometryError`] if the drive is too small for this sample.
    pub fn new(
        shape: &FlashShape,
        sample: u32,
        (seed, stratum): (u64, u32),
        before: Before,
    ) -> Result<Miniature, GeometryError> {
        if !sample.is_power_of_two() {
            return Err(GeometryError {
                name: "sample",
                found: sample.to_string(),
                expected: "a power of two".into(),
            });
        }
        let mut mapping = Mapping::new(shape, sample, seed ^ u64::from(stratum))?;
        mapping.prepare(before, seed.wrapping_add(u64::from(stratum)))?;
        Ok(Miniature {
            mapping,
            shift: sample.trailing_zeros(),
            seed,
            stratum: u64::from(stratum),
            in_use: Mean::default(),
        })
    }

    /// Whether `lba` is in the sample.
    #[must_use]
    pub fn holds(&self, lba: u64) -> bool {
        stratum_of(lba, self.shift, self.seed) == self.stratum
    }

    /// The host writes a block whose extent takes `stored` bytes of flash; 0 is an all-zero block
    /// on a drive that compresses. Does nothing if the block is not in the sample.
    pub fn write(&mut self, lba: u64, stored: u16, class: u8) {
        if self.holds(lba) {
            self.place(lba, stored, class);
        }
    }

    /// The host trims `blocks` blocks.
    pub fn trim(&mut self, lba: u64, blocks: u64) {
        (lba..lba + blocks).for_each(|lba| {
            if self.holds(lba) {
                self.remove(lba);
            }
        });
    }

    /// Writes a sampled block.
    pub(super) fn place(&mut self, lba: u64, stored: u16, class: u8) {
        let block = (lba >> self.shift) as u32;
        match &mut self.mapping {
            Mapping::Pages(ftl) => {
                ftl.write_with(block, class, &mut ());
                self.in_use.add(ftl.in_use() * BLOCK_SIZE as u64);
            }
            Mapping::Extents(ftl, _) => {
                let more = u64::from(stored) + ftl.live_bytes();
                let fits = more - u64::from(ftl.len(block)) <= ftl.capacity_bytes();
                if stored == 0 || !fits {
                    ftl.trim(block);
                } else {
                    ftl.write(block, stored, class, &mut ());
                }
                self.in_use.add(ftl.live_bytes());
            }
        }
    }

    /// Trims a sampled block.
    pub(super) fn remove(&mut self, lba: u64) {
        let block = (lba >> self.shift) as u32;
        match &mut self.mapping {
            Mapping::Pages(ftl) => {
                ftl.trim(block);
            }
            Mapping::Extents(ftl, _) => {
                ftl.trim(block);
            }
        }
    }

    /// Programs `stored` bytes that are overwritten at once.
    pub(super) fn waste(&mut self, stored: u16) {
        match &mut self.mapping {
            Mapping::Pages(ftl) => ftl.waste(&mut ()),
            Mapping::Extents(_, _) if stored == 0 => {}
            Mapping::Extents(ftl, _) => ftl.waste(stored, &mut ()),
        }
    }

    /// Starts the counters and the mean again.
    pub fn begin_measured(&mut self) {
        self.in_use = Mean::default();
        match &mut self.mapping {
            Mapping::Pages(ftl) => ftl.reset_counters(),
            Mapping::Extents(ftl, _) => ftl.reset_counters(),
        }
    }

    /// What happened since the measured part began.
    #[must_use]
    pub fn played(&self) -> Played {
        let page = BLOCK_SIZE as u64;
        match &self.mapping {
            Mapping::Pages(ftl) => Played {
                host_bytes: ftl.counters().host_writes * page,
                gc_bytes: ftl.counters().gc_writes * page,
                in_use_bytes: self.in_use.or(ftl.in_use() * page),
                erases: ftl.counters().erases,
            },
            Mapping::Extents(ftl, _) => Played {
                host_bytes: ftl.counters().host,
                gc_bytes: ftl.counters().gc,
                in_use_bytes: self.in_use.or(ftl.live_bytes()),
                erases: ftl.counters().erases,
            },
        }
    }
}

/// Which of the `k = 1 << shift` samples `lba` is in. In each group of `k` consecutive LBAs, every
/// sample has one.
#[inline]
pub(super) fn stratum_of(lba: u64, shift: u32, seed: u64) -> u64 {
    // The finalizer of SplitMix64, shortened: only a few bits are needed.
    let group = (lba >> shift).wrapping_add(seed);
    let mut z = group.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    lba.wrapping_add(z >> 40) & ((1 << shift) - 1)
}

impl Mapping {
    fn new(shape: &FlashShape, sample: u32, seed: u64) -> Result<Mapping, GeometryError> {
        let logical = shape.logical_blocks.div_ceil(u64::from(sample));
        let pages = (f64::from(shape.pages_per_block) / f64::from(sample))
            .round()
            .max(1.0);
        // If k does not divide the pages of an erase block, the number of blocks makes up for it.
        let stretch = f64::from(shape.pages_per_block) / (f64::from(sample) * pages);
        let log_blocks = (f64::from(shape.log_blocks) * stretch).round() as u32;
        let pages = pages as u32;
        let Some(extents) = shape.extents else {
            let least = logical.div_ceil(u64::from(pages)) as u32 + 1;
            let mut ftl = Ftl::new(&FtlConfig {
                logical_pages: logical,
                pages_per_block: pages,
                log_blocks: log_blocks.max(least),
                reserve_blocks: shape.reserve_blocks,
                policy: shape.policy,
                frontiers: shape.frontiers,
                seed,
            })?;
            ftl.set_ties(Ties::Oldest);
            return Ok(Mapping::Pages(ftl));
        };
        let ftl = ExtentFtl::new(&ExtentFtlConfig {
            logical_blocks: logical,
            pages_per_block: pages,
            log_blocks,
            reserve_blocks: shape.reserve_blocks,
            max_extent: extents.largest,
            // Then padding takes the same share of an erase block as on the drive.
            must_fit: 0.5 + 0.5 / f64::from(sample),
            policy: shape.policy,
            seed,
        })?;
        Ok(Mapping::Extents(ftl, extents))
    }

    fn prepare(&mut self, before: Before, seed: u64) -> Result<(), GeometryError> {
        match self {
            Mapping::Pages(ftl) => prepare(ftl, before, seed),
            Mapping::Extents(ftl, extents) => {
                let needed = ftl.logical_blocks() * u64::from(extents.foreign);
                if before != Before::Nothing && needed > ftl.capacity_bytes() {
                    return Err(GeometryError {
                        name: "bytes of foreign data in a miniature",
                        found: needed.to_string(),
                        expected: format!("at most {}", ftl.capacity_bytes()),
                    });
                }
                let extent = extents.foreign;
                prepare(&mut Prepared { ftl, extent }, before, seed);
            }
        }
        Ok(())
    }
}
