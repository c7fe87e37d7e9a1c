//! Options and their defaults: the one place where an unset option gets its value.

mod contention;

pub use contention::ContentionSplit;

use crate::error::{Error, Result};
use crate::index;
use crate::node::{LayoutChoice, PageLayout};
use crate::pm::layout::{Format, MAX_CHUNK, MIN_CHUNK};
use crate::pm::nodes::MAX_BATCH;
use crate::store::MIN_CACHE_PAGES;
use crate::trees::pm::lodge::{MAX_SLOTS, MIN_SLOTS, SLOTS as LEAF_SLOTS};
use crate::types::Nanos;

/// Which tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TreeKind {
    /// The conventional B-tree over a page cache: the baseline of all comparisons.
    BTree,
    /// Mini-pages in a ring over the same leaves (Bf-Tree).
    Bf(BfOptions),
}

impl TreeKind {
    /// Its name on the command line and in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            TreeKind::BTree => "btree",
            TreeKind::Bf(_) => "bf",
        }
    }

    /// The layout of the leaf pages of a store that it makes, unless [`Options::layout`] is another. In a store that is there already each page says its own.
    #[must_use]
    pub fn page_layout(self) -> PageLayout {
        match self {
            TreeKind::BTree => PageLayout::Slotted,
            TreeKind::Bf(_) => PageLayout::Compact,
        }
    }
}

/// What a Bf-Tree can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BfOptions {
    /// Share of the ring, in percent, in which a mini-page that is used is copied to the tail. Default: 10 (§6.10), which
    /// `sim/FIGURES.md` finds best.
    pub copy_on_access_percent: u8,
    /// How many of a hundred reads of a leaf leave a copy in the mini-page, and a third as many scans a mirror. Default: 30, as the
    /// paper's code has it; the paper says 1 (§5.1) and 20 (§6.11). By `sim/FIGURES.md` 10 reads 4 % fewer pages in the end, and 16 % more after a
    /// change of the workload.
    pub promotion_percent: u8,
}

impl Default for BfOptions {
    fn default() -> Self {
        BfOptions {
            copy_on_access_percent: 10,
            promotion_percent: 30,
        }
    }
}

impl BfOptions {
    /// Refuses what cannot work, by name.
    pub(crate) fn check(&self) -> Result<()> {
        let shares = [
            ("copy-on-access", self.copy_on_access_percent),
            ("promotion", self.promotion_percent),
        ];
        match shares.into_iter().find(|(_, share)| *share > 100) {
            Some((name, share)) => Err(Error::BadOption {
                name,
                why: format!("{share} %; expected 0 to 100"),
            }),
            None => Ok(()),
        }
    }
}

/// How dirty pages reach their place on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PageStoreKind {
    /// Pages have a fixed home; a page journal makes their writes atomic (B⁻-tree §2.4 (i)).
    InPlace,
    /// Pages move to a free place on every write; a persisted page table finds them (B⁻-tree §2.4 (ii)).
    CopyOnWrite {
        /// When the page table is persisted.
        table: TablePersist,
    },
    /// Pages have two fixed slots, written in turns; the one that is not valid is trimmed (B⁻-tree §3.1).
    Shadow,
}

impl PageStoreKind {
    /// Whether a page's place follows from its name, so that a place that an index snapshot takes is a name less.
    pub(crate) fn has_fixed_places(self) -> bool {
        match self {
            PageStoreKind::InPlace | PageStoreKind::Shadow => true,
            PageStoreKind::CopyOnWrite { .. } => false,
        }
    }
}

/// Localized page modification logging (B⁻-tree §3.2): while little of a page differs from its image on the device, only the differences
/// are written, to a 4 KiB block of the page's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ModLog {
    /// T: most bytes of differing segments that go to the log block. Default: 2 KiB (§4.2).
    pub threshold: u32,
    /// Ds: bytes of a segment, a power of two from 64 to 4096. Default: 128 (§4.2).
    pub segment: u32,
    /// What becomes of a page when exactly T bytes differ.
    pub reset: ResetRule,
}

impl Default for ModLog {
    fn default() -> Self {
        ModLog {
            threshold: 2048,
            segment: 128,
            reset: ResetRule::AtThreshold,
        }
    }
}

impl ModLog {
    /// Refuses what cannot work, by name.
    pub(crate) fn check(&self) -> Result<()> {
        if !(64..=4096).contains(&self.segment) || !self.segment.is_power_of_two() {
            return Err(Error::BadOption {
                name: "segment",
                why: format!(
                    "{} bytes; expected a power of two from 64 to 4096",
                    self.segment
                ),
            });
        }
        if !(self.segment..=4096).contains(&self.threshold) {
            return Err(Error::BadOption {
                name: "threshold",
                why: format!(
                    "{} bytes; expected at least a segment's {} and at most 4096",
                    self.threshold, self.segment
                ),
            });
        }
        Ok(())
    }
}

/// How the threshold of [`ModLog`] is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResetRule {
    /// The page is written whole when |Δ| reaches T: what the paper's Table 2 fits.
    AtThreshold,
    /// The page is written whole when |Δ| exceeds T: the text of B⁻-tree §3.2.
    AboveThreshold,
}

/// How redo records lie in the blocks of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LogPacking {
    /// Tightly: consecutive flushes write the last block again while it fills.
    Packed,
    /// Every flush ends with zeros up to the block's end, and the next record begins another block, so that a record is written once
    /// (B⁻-tree §3.3). For drives that compress.
    Sparse,
}

/// When the copy-on-write store persists its page table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TablePersist {
    /// After each page flush, as the baseline of B⁻-tree §4 does.
    EachFlush,
    /// At checkpoints only.
    Checkpoint,
}

/// When a write is durable that nobody calls `sync` for. Dropping or closing a store makes all of
/// them durable; a killed process or a power cut does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Durability {
    /// `put` and `delete` return at once; whoever needs durability calls `sync`. A crash loses up
    /// to [`Options::log_buffer_bytes`] of log if somebody pumps, more if nobody does.
    Deferred,
    /// As `Deferred`, and the log is flushed this long after the flush before at the latest: by the
    /// next write, which reads the clock for that, or by whoever pumps (`Task::FlushLog` comes
    /// due). A store in which nobody writes any more, and that nobody pumps, keeps its last writes
    /// undurable until it is synced, closed or dropped.
    Grouped(Nanos),
    /// `put` and `delete` return only when durable; concurrent callers share a flush.
    PerCommit,
}

impl Durability {
    /// Flushed once a minute, as the B⁻-tree paper measures (B⁻-tree §4.2, "log-flush-per-minute"):
    /// a crash may lose the last minute.
    pub const PER_MINUTE: Durability = Durability::Grouped(Nanos(60_000_000_000));
}

/// How a store is made and run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The tree. Default: `BTree`.
    pub tree: TreeKind,
    /// The page store. Default: `InPlace`.
    pub store: PageStoreKind,
    /// Whether pages have a modification log, in any page store. Default: none.
    pub mod_log: Option<ModLog>,
    /// How leaf pages lay out their records; `None`: as the tree's own papers have it ([`TreeKind::page_layout`]). A dense layout is one that leaves take on where
    /// their records let them. In a store that is there already pages keep theirs until they change it by that rule.
    pub layout: Option<LayoutChoice>,
    /// Whether leaves that writers wait for are split, in a [`TreeKind::BTree`]; over the leaves of a Bf-Tree writers do not meet. Default: none, as the paper has it but where
    /// it measures this (§7.3): a store with one thread gains nothing. Not kept with the store.
    pub contention_split: Option<ContentionSplit>,
    /// Page size in bytes: a power of two from 4 KiB to 64 KiB. Default: 4 KiB.
    pub page_size: usize,
    /// Cache budget in bytes: page frames and, where there are mini-pages, their ring. Default: 64 MiB.
    pub cache_bytes: u64,
    /// When writes are durable. Default: `PerCommit`, when they return; faster ones are asked for
    /// by name.
    pub durability: Durability,
    /// How records lie in the log. Default: `Packed`.
    pub log_packing: LogPacking,
    /// Size of the log's circular region in bytes. Default: 64 MiB.
    pub log_bytes: u64,
    /// A checkpoint comes due when the log has grown by this much since the last one began. Default: half of
    /// `log_bytes`.
    pub checkpoint_log_bytes: u64,
    /// The log is flushed when this much of it is unflushed. Default: 256 KiB.
    pub log_buffer_bytes: u64,
    /// Most pages that one write-back step writes. Default: 32; less in a small cache.
    pub write_batch_pages: usize,
    /// Entries of an inner node at most, which are in memory: 3 to 170. Default: 170, nodes of
    /// 4 KiB; with few entries a small tree is as deep as a large one. Not kept with the store.
    pub index_entries: usize,
    /// The LSN that a new store's log begins with, in bytes, rounded up to a block; at most 2^62. It
    /// changes nothing but numbers: for tests of stores that have written much. Default: 0.
    pub first_lsn: u64,
    /// Format the device when it holds no store. Default: true.
    pub create: bool,
    /// Write nothing: recovery works in memory, `put` and `delete` return [`Error::ReadOnly`].
    /// Others may have the device open so at the same time. For a store on a full file system, one
    /// that must not be changed, or a file that may not be written
    /// ([`crate::device::FileAccess::ReadOnly`]). Default: false.
    pub read_only: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            tree: TreeKind::BTree,
            store: PageStoreKind::InPlace,
            mod_log: None,
            layout: None,
            contention_split: None,
            page_size: 4096,
            cache_bytes: 64 << 20,
            durability: Durability::PerCommit,
            log_packing: LogPacking::Packed,
            log_bytes: 64 << 20,
            checkpoint_log_bytes: 32 << 20,
            log_buffer_bytes: 256 << 10,
            write_batch_pages: 32,
            index_entries: index::FANOUT,
            first_lsn: 0,
            create: true,
            read_only: false,
        }
    }
}

impl Options {
    /// The B⁻-tree (B⁻-tree §3, §4.2): not another tree, but the conventional one on shadowed pages
    /// with a modification log, and a sparse redo log. Pages of 8 KiB. Durable as by default; the
    /// paper measures [`Durability::PER_MINUTE`].
    #[must_use]
    pub fn bminus() -> Options {
        Options {
            store: PageStoreKind::Shadow,
            mod_log: Some(ModLog::default()),
            log_packing: LogPacking::Sparse,
            page_size: 8192,
            ..Options::default()
        }
    }

    /// The layouts of leaves.
    #[must_use]
    pub fn leaf_layouts(&self) -> LayoutChoice {
        let own = LayoutChoice::of(self.tree.page_layout());
        self.layout.unwrap_or(own)
    }

    /// The layout that leaves begin with.
    #[must_use]
    pub fn page_layout(&self) -> PageLayout {
        self.leaf_layouts().general()
    }

    /// What reports call the tree: its kind's name, or `bminus` if all three of that composition's parts are here.
    #[must_use]
    pub fn tree_name(&self) -> &'static str {
        let parts = (self.store, self.mod_log.is_some(), self.log_packing);
        match (self.tree, parts) {
            (TreeKind::BTree, (PageStoreKind::Shadow, true, LogPacking::Sparse)) => "bminus",
            (tree, _) => tree.name(),
        }
    }

    /// The smallest cache that works.
    #[must_use]
    pub fn least_cache_bytes(&self) -> u64 {
        let pages = match self.tree {
            TreeKind::BTree => MIN_CACHE_PAGES,
            // Two mini-pages of half a page, and a little.
            TreeKind::Bf(_) => MIN_CACHE_PAGES + 2,
        };
        pages * self.page_size as u64
    }

    /// Frames for pages: all of the cache, or, below mini-pages, a sixteenth of it.
    #[must_use]
    pub fn frames(&self) -> u64 {
        let pages = self.cache_bytes / self.page_size as u64;
        match self.tree {
            TreeKind::BTree => pages,
            TreeKind::Bf(_) => (pages / 16).max(MIN_CACHE_PAGES),
        }
    }

    /// Bytes for mini-pages.
    #[must_use]
    pub fn ring_bytes(&self) -> u64 {
        let frames = self.frames() * self.page_size as u64;
        self.cache_bytes.saturating_sub(frames)
    }
}

/// Which tree in persistent memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PmTreeKind {
    /// Every write goes to its leaf, without buffer or log: the baseline (CCL-BTree §5.2, *Base*).
    PmTree,
    /// Leaf-node-centric buffering over a write-ahead log (CCL-BTree).
    Ccl(CclOptions),
    /// A buffer for all leaves together over a write-ahead log, in the manner of DPTree.
    Global(GlobalOptions),
    /// A surrogate buffer in the free slots of last-level inner nodes over a partitioned version log (LodgeTree). Its leaves are its own: a store that it made is its own, too.
    Lodge(LodgeOptions),
}

impl PmTreeKind {
    /// Its name on the command line and in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            PmTreeKind::PmTree => "pmtree",
            PmTreeKind::Ccl(_) => "ccl",
            PmTreeKind::Global(_) => "pmtree-global",
            PmTreeKind::Lodge(_) => "lodge",
        }
    }

    /// The leaves that it has.
    pub(crate) fn format(self) -> Format {
        match self {
            PmTreeKind::Lodge(_) => Format::Lodge,
            _ => Format::Block,
        }
    }

    /// N_batch; 0 if nothing is buffered.
    pub(crate) fn batch(self) -> usize {
        match self {
            PmTreeKind::PmTree | PmTreeKind::Global(_) | PmTreeKind::Lodge(_) => 0,
            PmTreeKind::Ccl(ccl) => ccl.batch,
        }
    }
}

/// Which writes of a CCL-BTree are logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Logging {
    /// Those that stay in a buffer (§3.3; *+WLog* of §5.2).
    WriteConservative,
    /// All of them, trigger writes included (*+BNode* of §5.2).
    EveryWrite,
}

/// How a CCL-BTree's log is cleaned (§3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cleaning {
    /// What is unflushed is copied to new chunks.
    LocalityAware,
    /// Everybody waits while all buffers are flushed.
    Naive,
}

/// What a CCL-BTree can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CclOptions {
    /// N_batch: slots of a buffer node, 1 to 6. Default: 2 (§3.2).
    pub batch: usize,
    /// Which writes are logged. Default: write-conservative.
    pub logging: Logging,
    /// How the log is cleaned. Default: locality-aware.
    pub cleaning: Cleaning,
    /// TH_log: the log is cleaned when its entries take more than this share of the leaves' bytes, in percent. Default: 20 (§3.4).
    pub log_percent: u8,
    /// And more than this share of the entries, in percent, is garbage: else a large N_batch would be cleaned for without end. Default: 50, as in the
    /// published code (CLAIMS CC-32); the paper has no such rule.
    pub garbage_percent: u8,
    /// Logs, which threads share if there are more of them. Default: 8; the paper has one a thread.
    pub logs: usize,
}

impl Default for CclOptions {
    fn default() -> Self {
        CclOptions {
            batch: 2,
            logging: Logging::WriteConservative,
            cleaning: Cleaning::LocalityAware,
            log_percent: 20,
            garbage_percent: 50,
            logs: 8,
        }
    }
}

/// What a global buffer can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GlobalOptions {
    /// Changes of sixteen bytes that make the buffer full, as a share of the leaves' bytes, in percent. Default: 10.
    pub buffer_percent: u8,
    /// Logs, which threads share. Default: 8.
    pub logs: usize,
}

impl Default for GlobalOptions {
    fn default() -> Self {
        GlobalOptions {
            buffer_percent: 10,
            logs: 8,
        }
    }
}

/// Into how many a LodgeTree splits a last-level inner node (LodgeTree §III-C).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NodeSplit {
    /// Into two.
    Double,
    /// Into more while splits follow each other quickly, as far as the upper node has room.
    HotnessAware,
}

/// What a LodgeTree can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LodgeOptions {
    /// Slots of a last-level inner node, 4 to 29. Default: 29 (§IV-A).
    pub slots: usize,
    /// t_node: leaves that one flush goes to at most. Default: 2 (§IV-A).
    pub t_node: usize,
    /// t_split: keys of a leaf above which it is split, 2 to 27. Default: 26 (§IV-A).
    pub t_split: usize,
    /// Into how many a node is split. Default: hotness-aware.
    pub node_split: NodeSplit,
    /// t of §III-C: by this factor must the time since the last split be shorter, or longer, than that between the last two. Default: 2; the paper does not print it.
    pub burst_factor: u8,
    /// Partitions of the log, which threads share if there are more of them. Default: 8; the paper has one a thread.
    pub logs: usize,
    /// L: entries of a log, at least 2; at most what a chunk holds. Default: 256, six kibibytes; the paper does not print it.
    pub log_entries: u32,
    /// Old logs are flushed for when logs have room for entries of more than this share of the leaves' bytes, in percent. Default: 20; the paper has no such bound.
    pub log_percent: u8,
}

impl Default for LodgeOptions {
    fn default() -> Self {
        LodgeOptions {
            slots: MAX_SLOTS,
            t_node: 2,
            t_split: 26,
            node_split: NodeSplit::HotnessAware,
            burst_factor: 2,
            logs: 8,
            log_entries: 256,
            log_percent: 20,
        }
    }
}

impl LodgeOptions {
    fn check(&self) -> Result<()> {
        let bad = |name, why| Err(Error::BadOption { name, why });
        if !(MIN_SLOTS..=MAX_SLOTS).contains(&self.slots) {
            let why = format!("{}; expected {MIN_SLOTS} to {MAX_SLOTS}", self.slots);
            return bad("slots", why);
        }
        if !(1..=MAX_SLOTS).contains(&self.t_node) {
            return bad(
                "t-node",
                format!("{}; expected 1 to {MAX_SLOTS}", self.t_node),
            );
        }
        if !(2..=LEAF_SLOTS).contains(&self.t_split) {
            let why = format!("{}; expected 2 to {LEAF_SLOTS}", self.t_split);
            return bad("t-split", why);
        }
        if self.burst_factor == 0 {
            return bad("burst-factor", "0; expected 1 to 255".into());
        }
        if self.log_entries < 2 {
            return bad(
                "log-entries",
                format!("{}; expected 2 or more", self.log_entries),
            );
        }
        if self.log_percent == 0 {
            return bad("log-share", "0 %; expected 1 to 255".into());
        }
        Ok(())
    }
}

/// How a store in persistent memory is made and run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PmOptions {
    /// The tree. Default: `Ccl`. On the device a store has none: any may open it that has its leaves, which are LodgeTree's own or everybody else's.
    pub tree: PmTreeKind,
    /// Bytes of a chunk, the unit in which leaves, logs and records share the device: a multiple of 256 (LodgeTree: of 512) from 1 KiB to 8 MiB. Default: 4 MiB (§3.3); a store that is there
    /// already keeps its own. A key is at most eight bytes shorter than one; a value may be longer.
    pub chunk_bytes: u64,
    /// Threads that read leaves and logs at an opening; the engine starts them, and they end before it returns. Default: 1, which is the caller's.
    pub recovery_threads: usize,
    /// Format the device when it holds no store. Default: true.
    pub create: bool,
    /// Entries of an inner node at most: 3 to 170. Default: 170. A LodgeTree's upper nodes have 29
    /// at most.
    pub index_entries: usize,
}

impl Default for PmOptions {
    fn default() -> Self {
        PmOptions {
            tree: PmTreeKind::Ccl(CclOptions::default()),
            chunk_bytes: 4 << 20,
            recovery_threads: 1,
            create: true,
            index_entries: index::FANOUT,
        }
    }
}

impl PmOptions {
    /// Refuses what cannot work, by name.
    pub(crate) fn check(&self) -> Result<()> {
        let bad = |name, why| Err(Error::BadOption { name, why });
        let sized = (MIN_CHUNK..=MAX_CHUNK).contains(&self.chunk_bytes);
        if !sized || !self.chunk_bytes.is_multiple_of(256) {
            let why = format!(
                "{} bytes; expected a multiple of 256 from 1KiB to 8MiB",
                self.chunk_bytes
            );
            return bad("chunk", why);
        }
        if !(1..=64).contains(&self.recovery_threads) {
            let why = format!("{}; expected 1 to 64", self.recovery_threads);
            return bad("recovery-threads", why);
        }
        if let Some(why) = index::wrong_entries(self.index_entries) {
            return bad("index-entries", why);
        }
        let logs = match self.tree {
            PmTreeKind::PmTree => 1,
            PmTreeKind::Ccl(ccl) => ccl.logs,
            PmTreeKind::Global(global) => global.logs,
            PmTreeKind::Lodge(lodge) => lodge.logs,
        };
        if !(1..=256).contains(&logs) {
            return bad("logs", format!("{logs}; expected 1 to 256"));
        }
        if let PmTreeKind::Global(global) = self.tree
            && global.buffer_percent == 0
        {
            return bad("buffer-share", "0 %; expected 1 to 255".into());
        }
        if let PmTreeKind::Lodge(lodge) = self.tree {
            let leaf_bytes = Format::Lodge.leaf_bytes();
            if !self.chunk_bytes.is_multiple_of(leaf_bytes) {
                let why = format!(
                    "{} bytes; expected a multiple of {leaf_bytes}",
                    self.chunk_bytes
                );
                return bad("chunk", why);
            }
            return lodge.check();
        }
        let PmTreeKind::Ccl(ccl) = self.tree else {
            return Ok(());
        };
        if !(1..=MAX_BATCH).contains(&ccl.batch) {
            return bad(
                "nbatch",
                format!("{}; expected 1 to {MAX_BATCH}", ccl.batch),
            );
        }
        if ccl.log_percent == 0 {
            return bad("log-share", "0 %; expected 1 to 255".into());
        }
        if ccl.garbage_percent > 90 {
            let why = format!("{} %; expected 0 to 90", ccl.garbage_percent);
            return bad("garbage-share", why);
        }
        Ok(())
    }
}
