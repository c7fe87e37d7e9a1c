//! Treering's own page trees on each page store, with and without a modification log.

mod draw;
mod judged;
mod parts;

use treering_engine::node::LayoutChoice;
use treering_engine::{
    BLOCK_SIZE, BfOptions, Durability, Options, PageStoreKind, TreeKind, required_blocks,
};

use self::parts::{EAGER, GROUPED, Parts};

/// How large everything is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Geometry {
    /// Fewest frames, a log of 24 pages, a device of 200: everything that can fill up or wrap does
    /// within two hundred operations.
    Tiny,
    /// In persistent memory, six mebibytes: room for what programs of a thousand operations write;
    /// else as `Tiny`.
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
/// tree of hundreds or thousands of leaves, with which programs begin, whether one flush of the log
/// may write mebibytes, whether the device is a file, whether inner nodes are as wide as a user's,
/// and the size of pages. And `options=N`, by which all other options are drawn.
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

/// Pages of a store that is not tiny: more than one block of a page table names.
const LARGE_PAGES: u64 = 1_500;

/// More than 64 words of 64 bits name.
const HUGE_PAGES: u64 = 9_000;

/// Of a store whose log is flushed in long pieces.
const LONG_LOG_BYTES: u64 = 16 << 20;

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

    /// The B⁻-tree: shadowed pages with modification logs, and a sparse redo log; as the paper has
    /// it, and small.
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
            // A page that is evicted takes the log before it along, so none is. And whoever sees
            // the device takes its log for room, so there is some.
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
}
