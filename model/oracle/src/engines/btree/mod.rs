//! Treering's own page trees on each page store, with and without a modification log.

mod draw;
mod judged;
mod parts;

use treering_engine::{
    BLOCK_SIZE, Durability, Family, Options, TreeKind, TreeSpec, required_blocks,
};

use self::parts::GROUPED;
use super::recipes;

/// The sizes of cache, log and device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Geometry {
    /// The fewest frames, a log of 24 pages and a device of a few hundred. Everything that can fill
    /// up or wrap around does so within two hundred operations.
    Tiny,
    /// As `Tiny`, but six mebibytes in persistent memory, which is enough for programs of a
    /// thousand operations.
    Medium,
    /// A cache of 64 pages and a device of 16,384.
    Small,
}

/// Treering's [`Store`](treering_engine::Store) as an [`Engine`](crate::Engine). A name may be
/// followed by [variations](VARIATIONS), each after a slash: `btree:cow/per-commit/32k`.
#[derive(Clone, Debug)]
pub struct BTree {
    name: String,
    options: Options,
    geometry: Geometry,
    blocks: u64,
    /// A dropped store is closed, as when a program ends. Otherwise it is abandoned, as when a
    /// process is killed.
    closes: bool,
    /// Space for so few pages that programs fill it.
    cramped: bool,
    /// Hundreds of leaves, and space for them.
    large: bool,
    /// More than 4,096 leaves.
    huge: bool,
    /// A log and a log buffer of mebibytes.
    long_flush: bool,
    /// The device is a file, on the simulated file system of [`crate::system`].
    in_file: bool,
    /// Chooses the options of all openings. With 0, the first opening has the options of the name.
    draw: u64,
}

/// The variations of a [`BTree`], besides `options=N`, which chooses all other options by a seed.
///
/// - `per-commit`, `grouped`: writes are durable at their return, or in groups; otherwise at
///   `sync`.
/// - `closes`: dropping a store closes it.
/// - `cramped`, `large`, `huge`: hardly any space; hundreds of leaves; thousands of leaves.
/// - `long-flush`: one flush of the log may write mebibytes.
/// - `file`: the device is a file on a simulated file system.
/// - `wide`: inner nodes are as wide as by default.
/// - `8k` to `64k`: the size of pages.
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

/// Pages of a `large` store: more than one block of the page table can list.
const LARGE_PAGES: u64 = 1_500;

/// Pages of a `huge` store: more than 64 words of 64 bits can list.
const HUGE_PAGES: u64 = 9_000;

/// Log bytes of a `long-flush` store.
const LONG_LOG_BYTES: u64 = 16 << 20;

impl BTree {
    /// B-trees whose pages are so small that a few keys split and merge them.
    pub const SMALL_PAGES: [&str; 7] = [
        "btree:in-place",
        "btree:cow",
        "btree:cow-lazy",
        "btree:in-place-logged",
        "btree:cow-logged",
        "btree:shadow",
        "bminus-small",
    ];

    /// Bf-trees with such small pages.
    pub const BF_SMALL_PAGES: [&str; 3] = ["bf:in-place", "bf:cow", "bf:cow-lazy"];

    /// All names. A recipe says what is special about each.
    pub fn names() -> impl Iterator<Item = &'static str> {
        recipes::names(Family::Pages)
    }

    /// The engine of a name, with or without variations. `None` if there is no such engine.
    #[must_use]
    pub fn named(name: &str, geometry: Geometry) -> Option<BTree> {
        let mut parts = name.split('/');
        let plain = BTree::plain(parts.next()?, geometry)?;
        parts.try_fold(plain, BTree::varied)
    }

    fn plain(name: &str, geometry: Geometry) -> Option<BTree> {
        let options = recipes::spec(name)?.options()?;
        Some(BTree::with(name.to_owned(), options, geometry))
    }

    /// The engine of any spec of a page tree.
    #[must_use]
    pub fn of(tree: &TreeSpec, geometry: Geometry) -> Option<BTree> {
        Some(BTree::with(tree.to_string(), tree.options()?, geometry))
    }

    fn with(name: String, options: Options, geometry: Geometry) -> BTree {
        let options = Options {
            durability: Durability::Deferred,
            write_batch_pages: 3,
            ..options
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

    /// Computes all sizes that depend on the size of pages.
    fn sized(mut self) -> BTree {
        let (frames, pages, log_pages) = match self.geometry {
            // Evicting a page flushes the log up to its record, so there are enough frames that
            // none is evicted. And programs are sized by the whole device, including its log, so
            // there is space for them.
            _ if self.long_flush => {
                let pages = (LONG_LOG_BYTES / 3) / self.options.page_size as u64;
                (128, pages.max(200), 24)
            }
            // A few hundred of these blocks are for long values.
            Geometry::Tiny | Geometry::Medium => (16, 600, 24),
            Geometry::Small => (64, 16_384, 64),
        };
        let options = &mut self.options;
        let page = options.page_size as u64;
        // A ring of so few pages that it wraps around within the same number of operations.
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
            // The smallest possible store.
            true => blocks_of(0),
        };
        self
    }

    /// The same engine with one more variation.
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
