//! Treering's own page trees on each page store, with and without a modification log.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use treering_engine::device::BlockDevice;
use treering_engine::node::LayoutChoice;
use treering_engine::{
    BLOCK_SIZE, BfOptions, Clock, ContentionSplit, Durability, Error, IoClass, Kv, Lba, LogPacking,
    ModLog, Nanos, Options, PageStoreKind, ResetRule, Result, Store, SystemClock, TablePersist,
    TreeKind, node, required_blocks, verify,
};

use super::owned;
use crate::random::Random;
use crate::system::in_a_file;
use crate::{Disk, DiskKind, Engine, Limits, LongValues, Promise, Write};

/// How large everything is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Geometry {
    /// Fewest frames, a log of 24 pages, a device of 200: everything that can fill up or wrap does within two hundred
    /// operations.
    Tiny,
    /// In persistent memory, six mebibytes: room for what programs of a thousand operations write; else as `Tiny`.
    Medium,
    /// A cache of 64 pages and a device of 16,384.
    Small,
}

/// [`Store`] under judgement. Behind its name may stand [variations](VARIATIONS), each behind a
/// slash: `btree:cow/per-commit/32k`.
#[derive(Clone, Debug)]
pub struct BTree {
    name: String,
    options: Options,
    geometry: Geometry,
    blocks: u64,
    /// A store that is let go of is closed, as a program's that ends; else abandoned, as a killed
    /// one's.
    closes: bool,
    /// Places for so few pages that programs fill them.
    cramped: bool,
    /// Hundreds of leaves, and room for them.
    large: bool,
    /// More than 4,096 of them.
    huge: bool,
    /// A log, and a buffer before it, of mebibytes.
    long_flush: bool,
    /// The device is one in a file, on a system that the oracle plays.
    in_file: bool,
    /// Draws the options of all openings; 0: the first has those that the name says.
    draw: u64,
}

/// What may stand behind a slash: when writes are durable (at the next `sync`, if nothing else is
/// said), whether a store that is let go of is closed, whether there is hardly room, or room for a
/// tree of hundreds or thousands of leaves, with which programs begin, whether one flush of the log may write
/// mebibytes, whether the device is a file, whether inner nodes are as wide as a user's, and the
/// size of pages. And `options=N`, by which all other options are drawn.
pub const VARIATIONS: [&str; 13] = [
    "per-commit",
    "grouped",
    "closes",
    "cramped",
    "large",
    "huge",
    "long-flush",
    "file",
    "wide",
    "8k",
    "16k",
    "32k",
    "64k",
];

/// Entries of an inner node, so that a tree of a few dozen leaves is several levels deep.
pub(super) const FEW_ENTRIES: usize = 4;

/// Entries of an inner node at most, at the `opening`-th opening.
pub(super) fn entries_again(most: usize, random: &mut Random) -> usize {
    [most, 3, 5, 9, 170][random.below(5) as usize]
}

/// So many openings of a store have options of their own.
pub(super) const DRAWN_OPENINGS: u64 = 1_000_000;

/// Draws of options there are.
pub(super) const DRAWS: u64 = 1_000;

/// Pages of a store that is not tiny: more than one block of a page table names.
const LARGE_PAGES: u64 = 1_500;

/// More than 64 words of 64 bits name.
const HUGE_PAGES: u64 = 9_000;

/// Of a store whose log is flushed in long pieces.
const LONG_LOG_BYTES: u64 = 16 << 20;

/// A clock that goes on by one each time that somebody looks: so that programs repeat exactly.
#[derive(Debug, Default)]
struct Looks(AtomicU64);

impl Clock for Looks {
    fn now(&self) -> Nanos {
        Nanos(self.0.fetch_add(1, Ordering::Relaxed))
    }
}

/// Looks at that clock from one flush of the log to the next: with each write there is one.
const GROUPED: Durability = Durability::Grouped(Nanos(6));

/// How pages and log reach the device.
#[derive(Clone, Copy)]
struct Parts {
    store: PageStoreKind,
    mod_log: Option<ModLog>,
    log_packing: LogPacking,
    page_size: usize,
}

const COW: PageStoreKind = PageStoreKind::CopyOnWrite {
    table: TablePersist::EachFlush,
};
const COW_LAZY: PageStoreKind = PageStoreKind::CopyOnWrite {
    table: TablePersist::Checkpoint,
};

/// So little that a few operations fill a log block.
const SMALL_MOD_LOG: ModLog = ModLog {
    threshold: 1_024,
    segment: 64,
    reset: ResetRule::AtThreshold,
};

/// Every write counts, and few are enough.
const EAGER: ContentionSplit = ContentionSplit {
    sample_one_in: 1,
    period: 10,
};

impl Parts {
    const fn plain(store: PageStoreKind) -> Parts {
        Parts {
            store,
            mod_log: None,
            log_packing: LogPacking::Packed,
            page_size: 4_096,
        }
    }

    const fn logged(store: PageStoreKind) -> Parts {
        Parts {
            mod_log: Some(SMALL_MOD_LOG),
            ..Parts::plain(store)
        }
    }

    /// The B⁻-tree's.
    fn bminus() -> Parts {
        let options = Options::bminus();
        Parts {
            store: options.store,
            mod_log: options.mod_log,
            log_packing: options.log_packing,
            page_size: options.page_size,
        }
    }

    /// The same with a smaller log block.
    fn small_bminus() -> Parts {
        Parts {
            mod_log: Some(SMALL_MOD_LOG),
            ..Parts::bminus()
        }
    }

    fn named(name: &str) -> Option<Parts> {
        // Pages of several blocks can be torn.
        if let Some(name) = name.strip_suffix("-16k") {
            let page_size = 16_384;
            return Some(Parts {
                page_size,
                ..Parts::named(name)?
            });
        }
        Some(match name {
            "in-place" => Parts::plain(PageStoreKind::InPlace),
            "cow" => Parts::plain(COW),
            "cow-lazy" => Parts::plain(COW_LAZY),
            "shadow" => Parts::plain(PageStoreKind::Shadow),
            "in-place-logged" => Parts::logged(PageStoreKind::InPlace),
            "cow-logged" => Parts::logged(COW),
            "bminus" => Parts::bminus(),
            "bminus-small" => Parts {
                page_size: 4_096,
                ..Parts::small_bminus()
            },
            _ => return None,
        })
    }
}

impl BTree {
    /// The names of the variants that the oracle runs.
    pub const NAMES: [&str; 8] = [
        "btree:in-place",
        "btree:in-place-16k",
        "btree:in-place-logged",
        "btree:cow",
        "btree:cow-lazy",
        "btree:cow-logged",
        "btree:shadow",
        "btree:shadow-16k",
    ];

    /// The B⁻-tree: shadowed pages with modification logs, and a sparse redo log; as the paper has it, and small.
    pub const BMINUS_NAMES: [&str; 2] = ["bminus", "bminus-small"];

    /// Mini-pages in a ring.
    pub const BF_NAMES: [&str; 5] = [
        "bf:in-place",
        "bf:in-place-16k",
        "bf:cow",
        "bf:cow-lazy",
        "bf:bminus",
    ];

    /// Leaves of other layouts: behind the tree's name and a plus.
    pub const LAYOUT_NAMES: [&str; 13] = [
        "btree+baseline:in-place",
        "btree+prefix:cow-logged",
        "btree+compact:shadow",
        "btree+hints:in-place",
        "btree+fingerprint:cow",
        "btree+semi-dense:in-place-logged",
        "btree+fully-dense:cow",
        "btree+adaptive:in-place",
        "bf+hints:in-place",
        "bf+fingerprint:cow",
        "bf+semi-dense:cow-lazy",
        "bf+fully-dense:in-place",
        "bf+adaptive:in-place",
    ];

    /// Leaves that writers wait for are split.
    pub const CONTENTION_SPLIT: &str = "btree+contention-split:in-place";

    /// Those with pages so small that a few keys split and merge them.
    pub const SMALL_PAGES: [&str; 7] = [
        "btree:in-place",
        "btree:cow",
        "btree:cow-lazy",
        "btree:in-place-logged",
        "btree:cow-logged",
        "btree:shadow",
        "bminus-small",
    ];

    /// The same with mini-pages in a ring.
    pub const BF_SMALL_PAGES: [&str; 3] = ["bf:in-place", "bf:cow", "bf:cow-lazy"];

    /// All names.
    pub fn names() -> impl Iterator<Item = &'static str> {
        let trees = Self::NAMES.into_iter().chain(Self::BMINUS_NAMES);
        let layouts = trees.chain(Self::BF_NAMES).chain(Self::LAYOUT_NAMES);
        layouts.chain([Self::CONTENTION_SPLIT])
    }

    /// A variant by name, with or without variations.
    #[must_use]
    pub fn named(name: &str, geometry: Geometry) -> Option<BTree> {
        let mut parts = name.split('/');
        let plain = BTree::plain(parts.next()?, geometry)?;
        parts.try_fold(plain, BTree::varied)
    }

    fn plain(name: &str, geometry: Geometry) -> Option<BTree> {
        if let Some((tree, (layout, parts))) =
            (name.split_once('+')).and_then(|(tree, rest)| Some((tree, rest.split_once(':')?)))
        {
            let mut engine = BTree::plain(&format!("{tree}:{parts}"), geometry)?;
            match layout {
                "contention-split" => engine.options.contention_split = Some(EAGER),
                layout => engine.options.layout = Some(LayoutChoice::named(layout)?),
            }
            engine.name = name.to_owned();
            return Some(engine);
        }
        let (tree, parts) = match name.split_once(':') {
            Some(("btree", parts)) if !parts.starts_with("bminus") => {
                (TreeKind::BTree, Parts::named(parts)?)
            }
            Some(("bf", "bminus")) => (TreeKind::Bf(BfOptions::default()), Parts::small_bminus()),
            Some(("bf", parts)) => (TreeKind::Bf(BfOptions::default()), Parts::named(parts)?),
            None if name.starts_with("bminus") => (TreeKind::BTree, Parts::named(name)?),
            _ => return None,
        };
        Some(BTree::with(name.to_owned(), tree, parts, geometry))
    }

    /// A variant with pages of `page_size` bytes.
    #[must_use]
    pub fn new(store: PageStoreKind, page_size: usize, geometry: Geometry) -> BTree {
        let parts = Parts {
            page_size,
            ..Parts::plain(store)
        };
        BTree::with("btree".to_owned(), TreeKind::BTree, parts, geometry)
    }

    fn with(name: String, tree: TreeKind, parts: Parts, geometry: Geometry) -> BTree {
        let options = Options {
            tree,
            store: parts.store,
            mod_log: parts.mod_log,
            log_packing: parts.log_packing,
            page_size: parts.page_size,
            durability: Durability::Deferred,
            write_batch_pages: 3,
            ..Options::default()
        };
        let engine = BTree {
            name,
            blocks: 0,
            options,
            geometry,
            closes: false,
            cramped: false,
            large: false,
            huge: false,
            long_flush: false,
            in_file: false,
            draw: 0,
        };
        engine.sized()
    }

    /// Everything that follows from the size of pages.
    fn sized(mut self) -> BTree {
        let (frames, pages, log_pages) = match self.geometry {
            // A page that is evicted takes the log before it along, so none is. And whoever sees the
            // device takes its log for room, so there is some.
            _ if self.long_flush => {
                let pages = (LONG_LOG_BYTES / 3) / self.options.page_size as u64;
                (128, pages.max(200), 24)
            }
            // A few hundred of them for long values.
            Geometry::Tiny | Geometry::Medium => (16, 600, 24),
            Geometry::Small => (64, 16_384, 64),
        };
        let options = &mut self.options;
        let page = options.page_size as u64;
        // A ring of so few pages that it goes round within as many operations.
        let ring = if options.tree == TreeKind::BTree {
            0
        } else {
            frames / 4
        };
        let log_bytes = match self.long_flush {
            false => log_pages * page,
            true => LONG_LOG_BYTES,
        };
        options.cache_bytes = (frames + ring) * page;
        options.log_bytes = log_bytes;
        options.checkpoint_log_bytes = log_bytes / 4;
        options.log_buffer_bytes = match self.long_flush {
            false => log_bytes / 16,
            true => log_bytes / 4,
        };
        let blocks_of = |pages| required_blocks(options, pages);
        let place = blocks_of(pages + 1) - blocks_of(pages);
        self.blocks = match self.cramped {
            false if self.huge => blocks_of(HUGE_PAGES),
            false if self.large => blocks_of(LARGE_PAGES),
            false => log_bytes / BLOCK_SIZE as u64 + (pages - log_pages) * place,
            // The smallest store there is.
            true => blocks_of(0),
        };
        self
    }

    /// The same with one variation more.
    fn varied(mut self, variation: &str) -> Option<BTree> {
        match variation {
            "per-commit" => self.options.durability = Durability::PerCommit,
            "grouped" => self.options.durability = GROUPED,
            "closes" => self.closes = true,
            "cramped" => self.cramped = true,
            "large" => self.large = true,
            "huge" => (self.large, self.huge) = (true, true),
            "long-flush" => self.long_flush = true,
            "file" => self.in_file = true,
            "wide" => self.options.index_entries = Options::default().index_entries,
            other => match other.strip_prefix("options=") {
                Some(draw) => self.draw = draw.parse().ok()?,
                None => {
                    let kibibytes: usize = other.strip_suffix('k')?.parse().ok()?;
                    self.options.page_size = kibibytes << 10;
                }
            },
        }
        if !VARIATIONS.contains(&variation) && !variation.starts_with("options=") {
            return None;
        }
        self.name = format!("{}/{variation}", self.name);
        Some(self.sized())
    }

    /// Options for the `opening`-th time that a store is opened.
    fn options_again(&self, opening: u64) -> Options {
        let mut options = self.options.clone();
        let mut random = Random::part(self.draw * DRAWN_OPENINGS + opening, 0);
        if opening + self.draw == 0 || random.one_in(4) {
            return options;
        }
        options.index_entries = entries_again(options.index_entries, &mut random);
        options.first_lsn = match self.draw % 4 {
            0 => 0,
            // Some of these are met in their lower half soon.
            _ => (1 << (24 + random.below(38))) - (random.below(8) << 14),
        };
        let log = options.log_bytes;
        options.cache_bytes += random.below(9) * options.page_size as u64;
        options.checkpoint_log_bytes = log / (2 + random.below(6));
        options.log_buffer_bytes = log / (4 << random.below(4));
        // No more than at first: there may be no store yet, and its journal must fit.
        options.write_batch_pages = 1 + random.below(options.write_batch_pages as u64) as usize;
        if random.one_in(2) {
            let layouts: Vec<LayoutChoice> = LayoutChoice::all().collect();
            let pick = random.below(layouts.len() as u64) as usize;
            options.layout = layouts.get(pick).copied();
        }
        if random.one_in(3) {
            options.log_packing = match options.log_packing {
                LogPacking::Packed => LogPacking::Sparse,
                LogPacking::Sparse => LogPacking::Packed,
            };
        }
        if let (Some(mod_log), true) = (&mut options.mod_log, random.one_in(2)) {
            mod_log.segment = 64 << random.below(4);
            mod_log.threshold = mod_log.segment.max(512 << random.below(4));
            mod_log.reset = match random.below(3) {
                0 => ResetRule::AboveThreshold,
                _ => ResetRule::AtThreshold,
            };
        }
        if random.one_in(6) {
            // The same pages below another tree, in the same cache and with more or less of it for a ring.
            options.contention_split = None;
            options.tree = match options.tree {
                TreeKind::BTree => TreeKind::Bf(BfOptions::default()),
                TreeKind::Bf(_) => TreeKind::BTree,
            };
            options.cache_bytes = options.cache_bytes.max(options.least_cache_bytes());
        }
        if let (TreeKind::Bf(bf), true) = (&mut options.tree, random.one_in(2)) {
            bf.copy_on_access_percent = [0, 1, 10, 50, 100][random.below(5) as usize];
            bf.promotion_percent = [0, 1, 30, 100][random.below(4) as usize];
        }
        options
    }

    /// Opens the store with an option that does not fit it, and is right if that is refused.
    fn open_wrongly(&self, device: &Arc<dyn BlockDevice>, opening: u64) -> Result<()> {
        let mut options = self.options.clone();
        options.create = false;
        match opening % 24 {
            0 => {
                options.page_size = if options.page_size == 4_096 {
                    8_192
                } else {
                    4_096
                };
                options.cache_bytes = 64 << 20;
                options.log_bytes = 64 << 20;
            }
            8 => {
                options.store = match options.store {
                    PageStoreKind::InPlace => PageStoreKind::Shadow,
                    _ => PageStoreKind::InPlace,
                };
            }
            16 if options.mod_log.is_none() => options.mod_log = Some(SMALL_MOD_LOG),
            _ => return Ok(()),
        }
        match Store::open(Arc::clone(device), Arc::new(SystemClock::new()), &options) {
            Err(Error::Mismatch { .. }) | Err(Error::Device(_)) => Ok(()),
            // Whether there is a store at all is for the right options to say.
            Err(Error::NotAStore { .. } | Error::Damaged { .. }) => Ok(()),
            Err(other) => Err(other),
            Ok(store) => {
                store.abandon_on_drop();
                Err(Error::BadOption {
                    name: "page, store or mod-log",
                    why: "other than the store's; expected them to be refused".into(),
                })
            }
        }
    }

    fn drawn(&self, seed: u64, grown: bool) -> Option<Box<dyn Engine>> {
        let mut random = Random::part(seed, 1);
        let mut variations = Vec::new();
        match random.below(8) {
            0..2 => variations.push("per-commit"),
            2..4 => variations.push("grouped"),
            _ => {}
        }
        if random.one_in(4) {
            variations.push("closes");
        }
        if grown {
            let huge = random.one_in(6) && self.options.page_size == 4_096;
            variations.push(if huge { "huge" } else { "large" });
            // A log in which hundreds of pages are made between two checkpoints.
            if random.one_in(3) {
                variations.push("long-flush");
            }
        } else {
            if random.one_in(8) {
                variations.push("cramped");
            }
            if random.one_in(8) && self.options.page_size < 16_384 {
                variations.push(["16k", "32k", "64k"][random.below(3) as usize]);
            }
            if random.one_in(24) {
                variations.push("long-flush");
            }
        }
        if random.one_in(5) {
            variations.push("file");
        }
        if random.one_in(4) {
            variations.push("wide");
        }
        let draw = format!("options={}", 1 + random.below(DRAWS));
        if random.one_in(2) {
            variations.push(&draw);
        }
        if variations.is_empty() || self.geometry != Geometry::Tiny {
            return None;
        }
        let varied = (variations.into_iter()).try_fold(self.clone(), BTree::varied)?;
        Some(Box::new(varied))
    }

    fn open_with(&self, disk: &Disk, options: &Options) -> Result<Arc<dyn Kv>> {
        let clock: Arc<dyn Clock> = match options.durability {
            Durability::Grouped(_) => Arc::new(Looks::default()),
            Durability::Deferred | Durability::PerCommit => Arc::new(SystemClock::new()),
        };
        let device = Arc::clone(blocks(disk));
        let device = match self.in_file {
            true => in_a_file(device),
            false => device,
        };
        let store = Store::open(device, clock, options)?;
        // The oracle lets go of a store as a killed process does: what was not synced must not come
        // back whole by courtesy.
        if !self.closes {
            store.abandon_on_drop();
        }
        Ok(Arc::new(store))
    }
}

impl Engine for BTree {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn disk(&self) -> DiskKind {
        DiskKind::Blocks(self.blocks)
    }

    fn promise(&self) -> Promise {
        match self.options.durability {
            Durability::PerCommit => Promise::OnReturn,
            Durability::Deferred | Durability::Grouped(_) => Promise::OnSync,
        }
    }

    fn limits(&self) -> Limits {
        let limits = node::limits(self.options.page_size);
        Limits {
            max_key: limits.max_key,
            // With hardly room there is none for values that take a place of their own.
            max_record: match self.cramped {
                true => self.options.page_size / 4,
                false => limits.max_record,
            },
            empty_key: true,
        }
    }

    fn long_values(&self) -> Option<LongValues> {
        let quarter = self.options.page_size / 4;
        // Several places, and more than one block of each.
        (!self.cramped).then_some(LongValues {
            above: quarter,
            to: quarter + 24_000,
            piece: 4_048,
        })
    }

    fn open(&self, disk: &Disk) -> Result<Arc<dyn Kv>> {
        self.open_again(disk, 0)
    }

    fn vary(&self, seed: u64) -> Option<Box<dyn Engine>> {
        self.drawn(seed, false)
    }

    fn grown(&self, seed: u64) -> Option<Box<dyn Engine>> {
        self.drawn(seed, true)
    }

    fn open_again(&self, disk: &Disk, opening: u64) -> Result<Arc<dyn Kv>> {
        if opening > 0 {
            self.open_wrongly(blocks(disk), opening)?;
        }
        let options = self.options_again(opening);
        let other = match opening % 8 {
            _ if opening == 0 => None,
            // What is there is read, and goes with the next write of its page.
            0 if options.mod_log.is_some() => Some(Options {
                mod_log: None,
                ..options.clone()
            }),
            // Who knows no better opens a store by default, however small it was made.
            3 => Some(Options {
                tree: options.tree,
                layout: options.layout,
                store: options.store,
                mod_log: options.mod_log,
                page_size: options.page_size,
                durability: options.durability,
                ..Options::default()
            }),
            _ => None,
        };
        if let Some(other) = other {
            // A store that is made so is another one.
            let there = Options {
                create: false,
                ..other
            };
            match self.open_with(disk, &there) {
                Err(Error::NotAStore { .. }) => {}
                opened => return opened,
            }
        }
        self.open_with(disk, &options)
    }

    fn may_refuse(&self, write: &Write<'_>) -> bool {
        self.cramped && !matches!(write, Write::Delete(_))
    }

    fn reads_any_key(&self) -> bool {
        true
    }

    fn close(&self, store: Arc<dyn Kv>) -> Option<Result<()>> {
        owned::<Store>(store).map(Store::close)
    }

    fn keeps_all_when_dropped(&self) -> bool {
        self.closes
    }

    fn holds(&self, store: &dyn Kv) -> Vec<(&'static str, u64)> {
        let stats = store.stats();
        vec![
            ("leaves", stats.leaf_pages),
            ("places taken", stats.places_taken),
        ]
    }

    fn undurable_at_most(&self) -> Option<usize> {
        // Each write looks at the clock at least once, which goes on by one with each look: those
        // of one interval, the one that finds it over, and one more.
        (self.options.durability == GROUPED).then_some(8)
    }

    fn room(&self) -> Option<u64> {
        // The smallest store has some thirty leaves. One that is full has no three neighbours that fit
        // two, so two thirds of their bytes are in use; records of a quarter of a page, headers, and
        // leaves that wait for a checkpoint take from that.
        self.cramped.then_some(15 * self.options.page_size as u64)
    }

    fn leaves_of_nothing(&self, _before: u64) -> Option<u64> {
        Some(1)
    }

    fn loads(&self) -> u16 {
        // Three or four to a leaf.
        match (self.large, self.options.page_size) {
            (false, _) => 0,
            (true, _) if self.huge => 17_000,
            (true, 4_096) => 2_200,
            (true, _) => 1_100,
        }
    }

    fn open_to_read(&self, disk: &Disk) -> Option<Result<Arc<dyn Kv>>> {
        let options = Options {
            read_only: true,
            ..self.options.clone()
        };
        Some(self.open_with(disk, &options))
    }

    fn guarded(&self, disk: &Disk) -> Vec<Lba> {
        guarded(&**blocks(disk), self.options.page_size)
    }

    fn damage(&self, disk: &Disk) -> Result<Vec<String>> {
        Ok(verify(Arc::clone(blocks(disk)))?.damage)
    }
}

fn blocks(disk: &Disk) -> &Arc<dyn BlockDevice> {
    let Disk::Blocks(device) = disk else {
        unreachable!("the oracle gives the kind of disk that was asked for");
    };
    device
}

/// The blocks of page images, of modification logs, of the journal, and of long values: what is
/// lacking, the version of a page tells (`engine/src/pages/versioned.rs`), or the name of a value.
fn guarded(device: &dyn BlockDevice, page_size: usize) -> Vec<Lba> {
    let mut block = vec![0; BLOCK_SIZE];
    let mut found = Vec::new();
    for lba in (0..device.capacity_blocks()).map(Lba) {
        if device.read(lba, &mut block, IoClass::Page).is_err() {
            continue;
        }
        if &block[24..26] == b"TR" {
            let blocks = (page_size / BLOCK_SIZE) as u64;
            found.extend((0..blocks).map(|i| Lba(lba.0 + i)));
        } else if [*b"MLOG", *b"OVFL"].contains(&block[4..8].try_into().expect("four bytes")) {
            found.push(lba);
        }
    }
    found
}
