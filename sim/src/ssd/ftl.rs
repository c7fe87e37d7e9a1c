//! A page-mapped flash translation layer that keeps counts only, no data.
//!
//! ```text
//! logical pages 0..U ──l2p──▶ physical pages 0..blocks·b ──p2l──▶ logical page and its I/O class
//!
//! blocks:  [sealed][sealed][sealed] … [sealed]   [frontier]  [free] …
//!          └────────── T pages ──────────────┘   └─ reserve blocks ─┘
//! ```
//!
//! Every write, by the host or by garbage collection (GC), goes to the next page of the frontier.
//! When the frontier is full, it is sealed and a free block becomes the frontier. If that leaves
//! fewer free blocks than the reserve, a victim is chosen among the sealed blocks, its valid pages
//! are appended to the frontier, and it is erased. This *single-frontier log* is what the closed
//! forms of [`crate::predict::ftl`] describe; [`Frontiers::Separate`] gives GC a frontier of its
//! own.
//!
//! **Over-provisioning.** `T` counts the pages of the sealed blocks when a victim is chosen: it
//! excludes the reserve, from which frontiers and free blocks are taken. `α = T/U` is
//! [`Ftl::alpha`]; the user-relative over-provisioning is `α − 1`. With TRIM only mapped pages
//! count, so `T / in use` applies.
//!
//! Invariants: `l2p[p2l[x]] == x` for every valid physical page `x`; the valid counts of all blocks
//! sum to the mapped pages; `sealed + open + free == blocks`.

use crate::labels::Labels;
use crate::ssd::gc::{GcPolicy, Ties, Victims};

/// No page: in `l2p` an unmapped logical page, in `p2l` an invalid physical page.
const NONE: u32 = u32::MAX;
/// Bits of a `p2l` entry that hold the logical page; the two above hold the I/O class.
const PAGE_BITS: u32 = 30;
const PAGE_MASK: u32 = (1 << PAGE_BITS) - 1;
/// Maximum number of logical pages that an FTL can map (4 TiB of 4 KiB pages).
pub const MAX_LOGICAL_PAGES: u64 = (1 << PAGE_BITS) - 1;
/// Number of page classes that are counted separately.
pub const CLASSES: usize = 3;

/// Which frontiers host and GC append to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frontiers {
    /// Host and GC share one write frontier.
    Shared,
    /// GC appends to a block of its own.
    Separate,
}

/// Geometry and policy of an [`Ftl`].
#[derive(Clone, Debug, PartialEq)]
pub struct FtlConfig {
    /// Logical pages, U.
    pub logical_pages: u64,
    /// Pages per erase block, b.
    pub pages_per_block: u32,
    /// Blocks of the log, T/b.
    pub log_blocks: u32,
    /// Additional blocks for frontiers and free blocks: at least 1, with separate frontiers at
    /// least 3.
    pub reserve_blocks: u32,
    /// The victim selection policy.
    pub policy: GcPolicy,
    /// Which frontiers host and GC append to.
    pub frontiers: Frontiers,
    /// Seed of the randomised policies.
    pub seed: u64,
}

impl FtlConfig {
    /// The configuration for a log of `T = U·(1 + over_provisioning)` pages, with the smallest
    /// reserve and a shared frontier. The log is rounded up to whole blocks, and has at least one
    /// block more than `U` needs.
    pub fn new(
        logical_pages: u64,
        pages_per_block: u32,
        over_provisioning: f64,
        policy: GcPolicy,
    ) -> Self {
        let b = f64::from(pages_per_block.max(1));
        let wanted = (logical_pages as f64 * (1.0 + over_provisioning) / b - 1e-9).ceil() as u32;
        let least = (logical_pages as f64 / b).ceil() as u32 + 1;
        FtlConfig {
            logical_pages,
            pages_per_block,
            log_blocks: wanted.max(least),
            reserve_blocks: 1,
            policy,
            frontiers: Frontiers::Shared,
            seed: 0,
        }
    }
}

/// An invalid geometry.
#[derive(Debug, thiserror::Error, PartialEq)]
#[error("flash geometry: {name} is {found}, expected {expected}")]
pub struct GeometryError {
    /// The parameter.
    pub name: &'static str,
    /// Its value.
    pub found: String,
    /// The valid range.
    pub expected: String,
}

/// Counts of an FTL since its counters were last reset, in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FtlCounters {
    /// Pages the host wrote.
    pub host_writes: u64,
    /// Pages GC moved.
    pub gc_writes: u64,
    /// The moved pages by class of their data.
    pub gc_by_class: [u64; CLASSES],
    /// Logical pages unmapped by TRIM.
    pub trimmed: u64,
    /// Blocks erased.
    pub erases: u64,
}

impl FtlCounters {
    /// Pages programmed per page the host wrote; `None` before the first write.
    pub fn write_amplification(&self) -> Option<f64> {
        (self.host_writes > 0)
            .then(|| (self.host_writes + self.gc_writes) as f64 / self.host_writes as f64)
    }
}

/// Observes every flash operation in order. `()` observes nothing and costs nothing.
pub trait FlashOps {
    /// A page is programmed for the host.
    fn host_program(&mut self, physical: u32);
    /// A valid page is read from `from` and programmed at `to` by GC.
    fn gc_move(&mut self, from: u32, to: u32);
    /// A block is erased.
    fn erase(&mut self, block: u32);
}

impl FlashOps for () {
    #[inline(always)]
    fn host_program(&mut self, _: u32) {}
    #[inline(always)]
    fn gc_move(&mut self, _: u32, _: u32) {}
    #[inline(always)]
    fn erase(&mut self, _: u32) {}
}

/// An append position: the next physical page, and the end of its block.
#[derive(Clone, Copy, Debug)]
struct Frontier {
    next: u32,
    end: u32,
}

impl Frontier {
    const CLOSED: Frontier = Frontier { next: 0, end: 0 };

    #[inline(always)]
    fn is_full(self) -> bool {
        self.next == self.end
    }
}

/// A page-mapped flash translation layer; see the [module](self).
#[derive(Debug)]
pub struct Ftl {
    b: u32,
    /// log2(b) if b is a power of two: a shift instead of a division in the hottest line.
    shift: Option<u32>,
    log_blocks: u32,
    reserve: u32,
    l2p: Vec<u32>,
    p2l: Vec<u32>,
    erase_counts: Vec<u32>,
    free: Vec<u32>,
    policy: GcPolicy,
    victims: Victims,
    host: Frontier,
    gc: Frontier,
    frontiers: Frontiers,
    in_use: u64,
    counters: FtlCounters,
    gc_reached: bool,
    /// Of what is moved; none unless somebody asks.
    labels: Option<Box<Labels>>,
}

impl Ftl {
    /// Creates an empty drive.
    ///
    /// # Errors
    /// [`GeometryError`] if the log cannot hold the logical pages plus one block, or a number is
    /// out of range.
    pub fn new(config: &FtlConfig) -> Result<Self, GeometryError> {
        let blocks = check(config)?;
        let b = config.pages_per_block;
        let mut free: Vec<u32> = (0..blocks).rev().collect();
        free.shrink_to_fit();
        Ok(Ftl {
            b,
            shift: b.is_power_of_two().then(|| b.trailing_zeros()),
            log_blocks: config.log_blocks,
            reserve: config.reserve_blocks,
            l2p: vec![NONE; config.logical_pages as usize],
            p2l: vec![NONE; blocks as usize * b as usize],
            erase_counts: vec![0; blocks as usize],
            free,
            policy: config.policy,
            victims: Victims::new(config.policy, blocks, b, config.seed),
            host: Frontier::CLOSED,
            gc: Frontier::CLOSED,
            frontiers: config.frontiers,
            in_use: 0,
            counters: FtlCounters::default(),
            gc_reached: false,
            labels: None,
        })
    }

    /// Sets which of several equally good victims greedy cleaning takes.
    pub(crate) fn set_ties(&mut self, how: Ties) {
        self.victims.set_ties(how);
    }

    /// Labels a logical page, so that its moves are counted by label. Panics if it is out of range.
    pub(crate) fn label(&mut self, page: u32, label: u8) {
        let pages = self.l2p.len();
        let labels = (self.labels).get_or_insert_with(|| Box::new(Labels::new(pages)));
        labels.set(page as usize, label);
    }

    /// Pages moved since the counters were reset, by label; empty if nothing was labelled.
    pub(crate) fn moved(&self) -> &[u64] {
        self.labels.as_ref().map_or(&[], |labels| labels.moved())
    }

    /// Writes one logical page of class 0. Panics if `page >= logical_pages()`.
    #[inline]
    pub fn write(&mut self, page: u32) {
        self.write_with(page, 0, &mut ());
    }

    /// Writes one logical page of class `class` (below [`CLASSES`]) and reports the flash
    /// operations to `ops`. Panics if `page >= logical_pages()`.
    #[inline]
    pub fn write_with<O: FlashOps>(&mut self, page: u32, class: u8, ops: &mut O) {
        while self.host.is_full() {
            self.next_frontier(ops);
        }
        let to = self.host.next;
        self.host.next += 1;
        // GC may have moved this page, so look up its location only now.
        let old = std::mem::replace(&mut self.l2p[page as usize], to);
        self.p2l[to as usize] = page | (u32::from(class) << PAGE_BITS);
        self.victims.add(self.block_of(to), 1);
        if old == NONE {
            self.in_use += 1;
        } else {
            self.p2l[old as usize] = NONE;
            self.victims.invalidate(self.block_of(old));
        }
        self.counters.host_writes += 1;
        ops.host_program(to);
    }

    /// Programs a page for the host that is invalid at once: one that is overwritten before garbage
    /// collection can meet it.
    pub(crate) fn waste<O: FlashOps>(&mut self, ops: &mut O) {
        while self.host.is_full() {
            self.next_frontier(ops);
        }
        let to = self.host.next;
        self.host.next += 1;
        self.counters.host_writes += 1;
        ops.host_program(to);
    }

    /// Unmaps one logical page; returns whether it was mapped. Panics if `page >= logical_pages()`.
    pub fn trim(&mut self, page: u32) -> bool {
        let old = std::mem::replace(&mut self.l2p[page as usize], NONE);
        if old == NONE {
            return false;
        }
        self.p2l[old as usize] = NONE;
        self.victims.invalidate(self.block_of(old));
        self.in_use -= 1;
        self.counters.trimmed += 1;
        true
    }

    /// The physical page that holds `page`, if it is mapped.
    #[inline]
    pub fn lookup(&self, page: u32) -> Option<u32> {
        Some(self.l2p[page as usize]).filter(|&p| p != NONE)
    }

    #[inline(always)]
    fn block_of(&self, physical: u32) -> u32 {
        match self.shift {
            Some(shift) => physical >> shift,
            None => physical / self.b,
        }
    }

    /// Seals the full host frontier, opens the next one and collects garbage until the reserve is
    /// complete again.
    #[cold]
    #[inline(never)]
    fn next_frontier<O: FlashOps>(&mut self, ops: &mut O) {
        self.seal(self.host);
        self.host = self.open();
        // A separate GC frontier permanently takes one block of the reserve.
        let kept = match self.frontiers {
            Frontiers::Shared => self.reserve,
            Frontiers::Separate => self.reserve - 1,
        };
        while (self.free.len() as u32) < kept {
            self.collect(ops);
        }
    }

    fn seal(&mut self, full: Frontier) {
        if full.end != 0 {
            self.victims.seal(self.block_of(full.end - 1));
        }
    }

    fn open(&mut self) -> Frontier {
        // invariant: the reserve leaves a free block whenever a frontier fills (verified by
        // `check`).
        let block = self.free.pop().expect("the reserve holds a free block");
        let start = block * self.b;
        Frontier {
            next: start,
            end: start + self.b,
        }
    }

    /// Collects one victim.
    fn collect<O: FlashOps>(&mut self, ops: &mut O) {
        self.gc_reached = true;
        let victim = self.victims.take();
        let start = victim * self.b;
        let mut left = self.victims.valid(victim);
        for from in start..start + self.b {
            if left == 0 {
                break;
            }
            let entry = self.p2l[from as usize];
            if entry != NONE {
                left -= 1;
                self.relocate(from, entry, ops);
            }
        }
        self.p2l[start as usize..(start + self.b) as usize].fill(NONE);
        self.victims.clear(victim);
        self.erase_counts[victim as usize] += 1;
        self.counters.erases += 1;
        self.free.push(victim);
        ops.erase(victim);
    }

    #[inline(always)]
    fn relocate<O: FlashOps>(&mut self, from: u32, entry: u32, ops: &mut O) {
        let to = match self.frontiers {
            Frontiers::Shared => &mut self.host,
            Frontiers::Separate => {
                if self.gc.is_full() {
                    self.seal(self.gc);
                    self.gc = self.open();
                }
                &mut self.gc
            }
        };
        let target = to.next;
        to.next += 1;
        self.p2l[target as usize] = entry;
        self.l2p[(entry & PAGE_MASK) as usize] = target;
        self.victims.add(self.block_of(target), 1);
        self.counters.gc_writes += 1;
        if let Some(count) = self
            .counters
            .gc_by_class
            .get_mut((entry >> PAGE_BITS) as usize)
        {
            *count += 1;
        }
        if let Some(labels) = &mut self.labels {
            labels.count((entry & PAGE_MASK) as usize, 1);
        }
        ops.gc_move(from, target);
    }

    /// Logical pages, U.
    pub fn logical_pages(&self) -> u64 {
        self.l2p.len() as u64
    }

    /// Pages per erase block, b.
    pub fn pages_per_block(&self) -> u32 {
        self.b
    }

    /// Pages of the log, T.
    pub fn log_pages(&self) -> u64 {
        u64::from(self.log_blocks) * u64::from(self.b)
    }

    /// All physical pages, including the reserve.
    pub fn physical_pages(&self) -> u64 {
        self.p2l.len() as u64
    }

    /// Effective α = T/U: 1 + user-relative over-provisioning, without the reserve.
    pub fn alpha(&self) -> f64 {
        self.log_pages() as f64 / self.logical_pages() as f64
    }

    /// Geometry and policy; the seed is not kept.
    #[must_use]
    pub fn config(&self) -> FtlConfig {
        FtlConfig {
            logical_pages: self.logical_pages(),
            pages_per_block: self.b,
            log_blocks: self.log_blocks,
            reserve_blocks: self.reserve,
            policy: self.policy,
            frontiers: self.frontiers,
            seed: 0,
        }
    }

    /// Logical pages that hold data.
    pub fn in_use(&self) -> u64 {
        self.in_use
    }

    /// Whether GC has ever run (counter resets do not clear it).
    pub fn gc_reached(&self) -> bool {
        self.gc_reached
    }

    /// Counters since the last reset.
    pub fn counters(&self) -> &FtlCounters {
        &self.counters
    }

    /// Resets the counters; wear and mapping stay.
    pub fn reset_counters(&mut self) {
        self.counters = FtlCounters::default();
        self.labels.iter_mut().for_each(|labels| labels.reset());
    }

    /// Erase count of every block.
    pub fn erase_counts(&self) -> &[u32] {
        &self.erase_counts
    }

    /// Heap bytes of all tables.
    pub fn memory_bytes(&self) -> usize {
        4 * (self.l2p.capacity()
            + self.p2l.capacity()
            + self.erase_counts.capacity()
            + self.free.capacity())
            + self.victims.memory_bytes()
            + self
                .labels
                .as_ref()
                .map_or(0, |labels| labels.memory_bytes())
    }

    /// Checks every invariant of the [module](self), for tests: O(pages).
    ///
    /// # Errors
    /// A description of the first violated invariant.
    pub fn check(&self) -> Result<(), String> {
        let mut valid = vec![0u32; self.erase_counts.len()];
        for (physical, &entry) in self.p2l.iter().enumerate() {
            if entry == NONE {
                continue;
            }
            let page = entry & PAGE_MASK;
            if self.l2p[page as usize] != physical as u32 {
                return Err(format!(
                    "physical page {physical} claims logical page {page}, which is elsewhere"
                ));
            }
            valid[physical / self.b as usize] += 1;
        }
        let mapped = self.l2p.iter().filter(|&&p| p != NONE).count() as u64;
        if mapped != self.in_use || u64::from(valid.iter().sum::<u32>()) != mapped {
            return Err(format!(
                "{mapped} mapped pages, {} said to be in use",
                self.in_use
            ));
        }
        let open = [self.host, self.gc]
            .iter()
            .filter(|frontier| frontier.end != 0)
            .count();
        let (sealed, blocks) = (self.victims.sealed_blocks(), valid.len());
        if sealed + open + self.free.len() != blocks {
            return Err(format!(
                "{sealed} sealed, {open} open and {} free blocks, of {blocks}",
                self.free.len()
            ));
        }
        if let Some(block) = self.free.iter().find(|&&block| valid[block as usize] > 0) {
            return Err(format!("block {block} is free and holds valid pages"));
        }
        for (block, &expected) in valid.iter().enumerate() {
            let found = self.victims.valid(block as u32);
            if found != expected {
                return Err(format!(
                    "block {block} holds {expected} valid pages, its count says {found}"
                ));
            }
        }
        Ok(())
    }
}

/// Refuses invalid geometries; returns the number of blocks.
fn check(config: &FtlConfig) -> Result<u32, GeometryError> {
    let wrong = |name, found: String, expected: String| {
        Err(GeometryError {
            name,
            found,
            expected,
        })
    };
    let b = u64::from(config.pages_per_block);
    if !(1..=1 << 15).contains(&b) {
        return wrong("pages per block", b.to_string(), "1 to 32768".into());
    }
    if !(1..=MAX_LOGICAL_PAGES).contains(&config.logical_pages) {
        return wrong(
            "logical pages",
            config.logical_pages.to_string(),
            format!("1 to {MAX_LOGICAL_PAGES}"),
        );
    }
    let least = match config.frontiers {
        Frontiers::Shared => 1,
        Frontiers::Separate => 3,
    };
    if config.reserve_blocks < least {
        return wrong(
            "reserve blocks",
            config.reserve_blocks.to_string(),
            format!("at least {least}"),
        );
    }
    let needed = config.logical_pages.div_ceil(b) + 1;
    if u64::from(config.log_blocks) < needed {
        return wrong(
            "log blocks",
            config.log_blocks.to_string(),
            format!("at least {needed} for the logical pages and one block of slack"),
        );
    }
    let blocks = u64::from(config.log_blocks) + u64::from(config.reserve_blocks);
    if blocks * b >= u64::from(NONE) {
        return wrong(
            "physical pages",
            (blocks * b).to_string(),
            format!("below {NONE}"),
        );
    }
    config.policy.check()?;
    Ok(blocks as u32)
}
