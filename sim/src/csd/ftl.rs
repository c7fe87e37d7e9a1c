//! A flash translation layer for extents of any length. It keeps counts only, no data.
//!
//! ```text
//! map: LBA ──▶ address of the extent, its length and I/O class
//!
//! erase block  |ext|extent|ext|exte|░░|   an extent never crosses the end of an erase block:
//!                                          the rest of the block stays unused (padding)
//! blocks       [sealed] … [sealed]   [frontier]  [free] …
//!              └── log blocks (T) ───────────┘   └ reserve ┘
//! ```
//!
//! As in [`crate::ssd::Ftl`], host and garbage collection (GC) share one frontier. When an extent
//! does not fit, the frontier is sealed and a free block is opened; then live extents of victims
//! are appended to it unchanged, until the reserve is complete again.
//!
//! **Capacity.** [`ExtentFtl::capacity_bytes`] is what the log blocks hold if each ends in the
//! largest possible padding, less one block. As long as no more is live, some sealed block always
//! has garbage, so that GC makes progress. Callers must refuse writes beyond it.
//!
//! Invariants: the live bytes of all blocks sum to those of the map; live extents do not overlap;
//! `sealed + open + free == blocks`.

use std::collections::VecDeque;

use crate::labels::Labels;
use crate::predict::flash::{Extents, FlashShape};
use crate::ssd::gc::SplitMix;
use crate::ssd::{CLASSES, Frontiers, GcPolicy, GeometryError};

/// Bytes of a flash page.
pub(super) const FLASH_PAGE: u64 = 4096;

/// Geometry and policy of an [`ExtentFtl`].
#[derive(Clone, Debug, PartialEq)]
pub struct ExtentFtlConfig {
    /// Logical blocks.
    pub logical_blocks: u64,
    /// Flash pages per erase block.
    pub pages_per_block: u32,
    /// Erase blocks of the log.
    pub log_blocks: u32,
    /// Additional erase blocks, from which frontiers are taken: at least 1.
    pub reserve_blocks: u32,
    /// Size of the largest extent.
    pub max_extent: u32,
    /// Share of an extent that must fit before the end of an erase block: 1 on a drive. In a
    /// miniature, whose erase blocks hold few extents, padding would take more of each; there an
    /// extent may exceed its block, so that blocks hold their share of bytes on average.
    pub must_fit: f64,
    /// The victim selection policy.
    pub policy: GcPolicy,
    /// Seed of the randomised policies.
    pub seed: u64,
}

/// Counts of an FTL since its counters were last reset; all in bytes except erases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExtentCounters {
    /// Appended for the host.
    pub host: u64,
    /// Appended by GC.
    pub gc: u64,
    /// The moved bytes by I/O class.
    pub gc_by_class: [u64; CLASSES],
    /// Left unused at the ends of erase blocks.
    pub padding: u64,
    /// Blocks erased.
    pub erases: u64,
}

/// Observes the flash operations in order. `()` observes nothing and costs nothing.
pub trait ExtentOps {
    /// A flash page is full, or its erase block has ended: it is programmed.
    fn program(&mut self, page: u64);
    /// GC reads a flash page.
    fn gc_read(&mut self, page: u64);
    /// A block is erased.
    fn erase(&mut self, block: u32);
}

impl ExtentOps for () {
    #[inline(always)]
    fn program(&mut self, _: u64) {}
    #[inline(always)]
    fn gc_read(&mut self, _: u64) {}
    #[inline(always)]
    fn erase(&mut self, _: u32) {}
}

/// Location of a logical block's extent; `len == 0` means that it has none.
#[derive(Clone, Copy, Debug, Default)]
struct Extent {
    at: u64,
    len: u16,
    class: u8,
}

/// An erase block.
#[derive(Debug, Default)]
struct Unit {
    /// Bytes appended.
    used: u32,
    /// Bytes of live extents.
    live: u32,
    erases: u32,
    /// All extents appended, in order: logical block and offset. Live if the map points to it.
    appended: Vec<(u32, u32)>,
}

/// A flash translation layer for extents; see the [module](self).
#[derive(Debug)]
pub struct ExtentFtl {
    /// Flash bytes of an erase block.
    block_bytes: u64,
    /// Distance of the addresses of two erase blocks: `block_bytes`, and what an extent may exceed it.
    stride: u64,
    must_fit: f64,
    max_extent: u32,
    log_blocks: u32,
    reserve: u32,
    map: Vec<Extent>,
    units: Vec<Unit>,
    free: Vec<u32>,
    /// In the order of sealing, with the seal's number.
    sealed: VecDeque<(u32, u64)>,
    seals: u64,
    frontier: Option<u32>,
    policy: GcPolicy,
    random: SplitMix,
    live: u64,
    counters: ExtentCounters,
    /// Of what is moved; none unless somebody asks.
    labels: Option<Box<Labels>>,
}

impl ExtentFtl {
    /// Creates an empty medium.
    ///
    /// # Errors
    /// [`GeometryError`] if a number is out of range or the log has fewer than three blocks.
    pub fn new(config: &ExtentFtlConfig) -> Result<Self, GeometryError> {
        check(config)?;
        let blocks = config.log_blocks + config.reserve_blocks;
        let block_bytes = u64::from(config.pages_per_block) * FLASH_PAGE;
        let exceeding = 1.0 - config.must_fit;
        Ok(ExtentFtl {
            block_bytes,
            stride: block_bytes + (exceeding * f64::from(config.max_extent)).ceil() as u64,
            must_fit: config.must_fit,
            max_extent: config.max_extent,
            log_blocks: config.log_blocks,
            reserve: config.reserve_blocks,
            map: vec![Extent::default(); config.logical_blocks as usize],
            units: (0..blocks).map(|_| Unit::default()).collect(),
            free: (0..blocks).rev().collect(),
            sealed: VecDeque::new(),
            seals: 0,
            frontier: None,
            policy: config.policy,
            random: SplitMix(config.seed),
            live: 0,
            counters: ExtentCounters::default(),
            labels: None,
        })
    }

    /// Writes `len` bytes as the extent of `lba`. The caller must ensure that at most
    /// [`ExtentFtl::capacity_bytes`] are live afterwards. Panics if `lba` is out of range, or if
    /// `len` is 0 or above the largest extent.
    pub fn write<O: ExtentOps>(&mut self, lba: u32, len: u16, class: u8, ops: &mut O) {
        assert!(len > 0 && u32::from(len) <= self.max_extent);
        // Invalidate first, so that the old extent needs no space: the write buffer has the new
        // data.
        self.invalidate(lba);
        self.make_room(len, ops);
        self.append(lba, len, class, ops);
        self.live += u64::from(len);
        self.counters.host += u64::from(len);
    }

    /// Labels a logical block, so that its moves are counted by label. Panics if it is out of range.
    pub(crate) fn label(&mut self, lba: u32, label: u8) {
        let blocks = self.map.len();
        let labels = (self.labels).get_or_insert_with(|| Box::new(Labels::new(blocks)));
        labels.set(lba as usize, label);
    }

    /// Bytes moved since the counters were reset, by label; empty if nothing was labelled.
    pub(crate) fn moved(&self) -> &[u64] {
        self.labels.as_ref().map_or(&[], |labels| labels.moved())
    }

    /// Programs `len` bytes for the host that are invalid at once: an extent that is overwritten
    /// before garbage collection can meet it.
    pub(crate) fn waste<O: ExtentOps>(&mut self, len: u16, ops: &mut O) {
        self.make_room(len, ops);
        self.program(len, ops);
        self.counters.host += u64::from(len);
    }

    /// Opens frontiers until one has room for an extent of `len` bytes.
    fn make_room<O: ExtentOps>(&mut self, len: u16, ops: &mut O) {
        while !self.fits(len) {
            self.next_frontier(ops);
        }
    }

    /// Drops the extent of `lba`; returns its length.
    pub fn trim(&mut self, lba: u32) -> u16 {
        self.invalidate(lba)
    }

    /// Length of the extent of `lba`; 0 if it has none.
    pub fn len(&self, lba: u32) -> u16 {
        self.map[lba as usize].len
    }

    /// Whether nothing is live.
    pub fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// The programmed flash pages, first and last, that hold the extent of `lba`; `None` if it has
    /// no extent or is still completely in the buffer for the frontier's page.
    pub fn pages(&self, lba: u32) -> Option<(u64, u64)> {
        let extent = self.map[lba as usize];
        if extent.len == 0 {
            return None;
        }
        let first = extent.at / FLASH_PAGE;
        let last = (extent.at + u64::from(extent.len) - 1) / FLASH_PAGE;
        // The frontier's last page is programmed only when it is full.
        let open = self.frontier.and_then(|block| {
            let used = u64::from(self.units[block as usize].used);
            (!used.is_multiple_of(FLASH_PAGE))
                .then(|| (u64::from(block) * self.stride + used) / FLASH_PAGE)
        });
        match open {
            Some(open) if open == first => None,
            Some(open) if open == last => Some((first, last - 1)),
            _ => Some((first, last)),
        }
    }

    fn invalidate(&mut self, lba: u32) -> u16 {
        let Extent { at, len, .. } = std::mem::take(&mut self.map[lba as usize]);
        if len > 0 {
            self.units[(at / self.stride) as usize].live -= u32::from(len);
            self.live -= u64::from(len);
        }
        len
    }

    /// Whether the frontier has room for an extent of `len` bytes.
    fn fits(&self, len: u16) -> bool {
        self.frontier.is_some_and(|block| {
            let room = self.block_bytes as i64 - i64::from(self.units[block as usize].used);
            f64::from(len) * self.must_fit <= room as f64
        })
    }

    fn append<O: ExtentOps>(&mut self, lba: u32, len: u16, class: u8, ops: &mut O) {
        let at = self.program(len, ops);
        let block = (at / self.stride) as u32;
        let unit = &mut self.units[block as usize];
        unit.live += u32::from(len);
        let offset = (at - u64::from(block) * self.stride) as u32;
        unit.appended.push((lba, offset));
        self.map[lba as usize] = Extent { at, len, class };
    }

    /// Programs `len` bytes at the frontier and returns their address.
    fn program<O: ExtentOps>(&mut self, len: u16, ops: &mut O) -> u64 {
        // invariant: callers have made room.
        let block = self.frontier.expect("an open frontier");
        let unit = &mut self.units[block as usize];
        let start = u64::from(block) * self.stride;
        let at = start + u64::from(unit.used);
        unit.used += u32::from(len);
        for page in at / FLASH_PAGE..(start + u64::from(unit.used)) / FLASH_PAGE {
            ops.program(page);
        }
        at
    }

    /// Seals the frontier, opens the next one and collects garbage until the reserve is complete
    /// again.
    fn next_frontier<O: ExtentOps>(&mut self, ops: &mut O) {
        if let Some(full) = self.frontier.take() {
            let used = u64::from(self.units[full as usize].used);
            self.counters.padding += self.block_bytes.saturating_sub(used);
            if !used.is_multiple_of(FLASH_PAGE) {
                ops.program((u64::from(full) * self.stride + used) / FLASH_PAGE);
            }
            self.seals += 1;
            self.sealed.push_back((full, self.seals));
        }
        // invariant: the reserve leaves a free block whenever a frontier fills.
        self.frontier = Some(self.free.pop().expect("the reserve holds a free block"));
        while (self.free.len() as u32) < self.reserve {
            self.collect(ops);
        }
    }

    /// Moves the live extents of one victim to the frontier, which is empty and has room for all of
    /// them, and erases the victim.
    fn collect<O: ExtentOps>(&mut self, ops: &mut O) {
        let victim = self.victim();
        let start = u64::from(victim) * self.stride;
        let mut appended = std::mem::take(&mut self.units[victim as usize].appended);
        let mut read = None;
        for &(lba, offset) in &appended {
            let Extent { at, len, class } = self.map[lba as usize];
            if len == 0 || at != start + u64::from(offset) {
                continue;
            }
            for page in at / FLASH_PAGE..=(at + u64::from(len) - 1) / FLASH_PAGE {
                if read != Some(page) {
                    ops.gc_read(page);
                }
                read = Some(page);
            }
            // invariant: the frontier began empty, and no victim holds more than it does.
            debug_assert!(self.units[victim as usize].live <= self.stride as u32);
            self.append(lba, len, class, ops);
            self.counters.gc += u64::from(len);
            if let Some(labels) = &mut self.labels {
                labels.count(lba as usize, u64::from(len));
            }
            if let Some(bytes) = self.counters.gc_by_class.get_mut(usize::from(class)) {
                *bytes += u64::from(len);
            }
        }
        appended.clear();
        let erases = self.units[victim as usize].erases + 1;
        self.units[victim as usize] = Unit {
            erases,
            appended,
            ..Unit::default()
        };
        self.counters.erases += 1;
        self.free.push(victim);
        ops.erase(victim);
    }

    /// Removes the next victim from the sealed blocks: O(blocks), once for each block of writes.
    fn victim(&mut self) -> u32 {
        let sealed = &self.sealed;
        let live = |i: usize| self.units[sealed[i].0 as usize].live;
        let at = match self.policy {
            GcPolicy::Fifo => 0,
            GcPolicy::Greedy => (0..sealed.len()).min_by_key(|&i| live(i)).unwrap_or(0),
            GcPolicy::WindowedGreedy(w) => (0..sealed.len().min(w as usize))
                .min_by_key(|&i| live(i))
                .unwrap_or(0),
            GcPolicy::DChoices(d) => {
                let random = &mut self.random;
                (0..d)
                    .map(|_| random.below(sealed.len() as u64) as usize)
                    .min_by_key(|&i| live(i))
                    .unwrap_or(0)
            }
            GcPolicy::CostBenefit => {
                let score = |i: usize| {
                    let u = f64::from(live(i)) / self.block_bytes as f64;
                    (self.seals - sealed[i].1 + 1) as f64 * (1.0 - u) / (1.0 + u)
                };
                (0..sealed.len())
                    .max_by(|&x, &y| score(x).total_cmp(&score(y)))
                    .unwrap_or(0)
            }
        };
        // invariant: GC runs only when there are fewer free blocks than the reserve, and then all
        // log blocks are sealed.
        self.sealed.remove(at).expect("a sealed block").0
    }

    /// Logical blocks.
    pub fn logical_blocks(&self) -> u64 {
        self.map.len() as u64
    }

    /// The geometry, for a miniature of it.
    #[must_use]
    pub fn shape(&self, extents: Extents) -> FlashShape {
        FlashShape {
            logical_blocks: self.logical_blocks(),
            pages_per_block: (self.block_bytes / FLASH_PAGE) as u32,
            log_blocks: self.log_blocks,
            reserve_blocks: self.reserve,
            policy: self.policy,
            frontiers: Frontiers::Shared,
            extents: Some(extents),
        }
    }

    /// Bytes of live extents.
    pub fn live_bytes(&self) -> u64 {
        self.live
    }

    /// Maximum bytes that may be live at once.
    pub fn capacity_bytes(&self) -> u64 {
        let padding = (f64::from(self.max_extent) * self.must_fit).ceil() as u64;
        u64::from(self.log_blocks - 1) * (self.block_bytes - padding)
    }

    /// Bytes of the log, T.
    pub fn log_bytes(&self) -> u64 {
        u64::from(self.log_blocks) * self.block_bytes
    }

    /// Bytes of all erase blocks.
    pub fn physical_bytes(&self) -> u64 {
        self.units.len() as u64 * self.block_bytes
    }

    /// Counters since the last reset.
    pub fn counters(&self) -> &ExtentCounters {
        &self.counters
    }

    /// Resets the counters; map and wear stay.
    pub fn reset_counters(&mut self) {
        self.counters = ExtentCounters::default();
        self.labels.iter_mut().for_each(|labels| labels.reset());
    }

    /// Erase count of every block.
    pub fn erase_counts(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.units.iter().map(|unit| unit.erases)
    }

    /// Checks every invariant of the [module](self), for tests: O(extents log extents).
    ///
    /// # Errors
    /// A description of the first violated invariant.
    pub fn check(&self) -> Result<(), String> {
        let mut live: Vec<&Extent> = self.map.iter().filter(|e| e.len > 0).collect();
        live.sort_by_key(|e| e.at);
        let overlap = (live.windows(2)).find(|w| w[0].at + u64::from(w[0].len) > w[1].at);
        if let Some(pair) = overlap {
            return Err(format!(
                "extents at {} and {} overlap",
                pair[0].at, pair[1].at
            ));
        }
        let mut by_unit = vec![0u64; self.units.len()];
        for extent in &live {
            let block = extent.at / self.stride;
            let end = (extent.at + u64::from(extent.len) - 1) / self.stride;
            if block != end {
                return Err(format!(
                    "the extent at {} crosses its erase block",
                    extent.at
                ));
            }
            by_unit[block as usize] += u64::from(extent.len);
        }
        for (block, (unit, &expected)) in self.units.iter().zip(&by_unit).enumerate() {
            if u64::from(unit.live) != expected || unit.live > unit.used {
                return Err(format!(
                    "block {block} has {expected} live bytes, its counts say {} of {}",
                    unit.live, unit.used
                ));
            }
        }
        let sum: u64 = by_unit.iter().sum();
        if sum != self.live || sum > self.capacity_bytes() {
            return Err(format!(
                "{sum} bytes live, {} counted, {} allowed",
                self.live,
                self.capacity_bytes()
            ));
        }
        let open = usize::from(self.frontier.is_some());
        if self.sealed.len() + open + self.free.len() != self.units.len() {
            return Err(format!(
                "{} sealed, {open} open and {} free blocks, of {}",
                self.sealed.len(),
                self.free.len(),
                self.units.len()
            ));
        }
        Ok(())
    }
}

/// Refuses invalid geometries.
fn check(config: &ExtentFtlConfig) -> Result<(), GeometryError> {
    let block_bytes = u64::from(config.pages_per_block) * FLASH_PAGE;
    let most_extent = u64::from(u16::MAX).min(block_bytes / 2);
    let ranges = [
        (
            "pages per block",
            u64::from(config.pages_per_block),
            1,
            1 << 15,
        ),
        (
            "logical blocks",
            config.logical_blocks,
            1,
            u64::from(u32::MAX),
        ),
        (
            "reserve blocks",
            u64::from(config.reserve_blocks),
            1,
            1 << 20,
        ),
        ("log blocks", u64::from(config.log_blocks), 3, 1 << 31),
        (
            "largest extent",
            u64::from(config.max_extent),
            1,
            most_extent,
        ),
    ];
    for (name, found, least, most) in ranges {
        if !(least..=most).contains(&found) {
            return Err(GeometryError {
                name,
                found: found.to_string(),
                expected: format!("{least} to {most}"),
            });
        }
    }
    config.policy.check()
}
