//! Treering's own trees in persistent memory.

use std::sync::Arc;

use treering_engine::{
    CclOptions, Cleaning, Family, GlobalOptions, Kv, LeafFormat, LodgeOptions, Logging, NodeSplit,
    PmBuffer, PmOptions, PmStore, PmTreeKind, Result,
};

use super::btree::Geometry;
use super::recipes;
use super::shared::{DRAWN_OPENINGS, DRAWS, FEW_ENTRIES, entries_again, owned};
use crate::point::Point;
use crate::random::Random;
use crate::reach::steps;
use crate::{Disk, DiskKind, Engine, Limits, LongValues, Promise, Write};

/// Treering's [`PmStore`] as an [`Engine`]. A name may be followed by variations, each after a
/// slash:
/// `lodge:small/logs=3/chunk=2k/cramped`, `ccl/tight`. `options=N` chooses all other options.
#[derive(Clone, Debug)]
pub struct PmTree {
    name: String,
    options: PmOptions,
    bytes: u64,
    geometry: Geometry,
    /// Hundreds of leaves.
    large: bool,
    /// So little memory that programs fill it.
    cramped: bool,
    /// So little memory that a hundred short writes fill it; then no capacity is promised.
    tight: bool,
    /// Chooses the options of all openings. With 0, the first opening has the options of the name.
    draw: u64,
}

/// Chunks of a `cramped` memory.
const CRAMPED_CHUNKS: u64 = 40;

/// Chunks of a `tight` memory.
const TIGHT_CHUNKS: u64 = 20;

impl PmTree {
    /// All names. A recipe says what is special about each.
    pub fn names() -> impl Iterator<Item = &'static str> {
        recipes::names(Family::Pm)
    }

    /// The engine of a name. `None` if there is no such engine.
    #[must_use]
    pub fn named(name: &str, geometry: Geometry) -> Option<PmTree> {
        let mut parts = name.split('/');
        let plain = PmTree::plain(parts.next()?, geometry)?;
        parts.try_fold(plain, PmTree::varied)
    }

    /// The same engine with one more variation.
    fn varied(mut self, variation: &str) -> Option<PmTree> {
        if variation == "wide" {
            self.options.index_entries = PmOptions::default().index_entries;
        } else if variation == "large" {
            self.large = true;
            self.bytes *= 8;
        } else if variation == "cramped" {
            self.cramped = true;
        } else if variation == "tight" {
            (self.cramped, self.tight) = (true, true);
        } else if let Some(logs) = variation.strip_prefix("logs=") {
            set_logs(&mut self.options.tree, logs.parse().ok()?);
        } else if let Some(draw) = variation.strip_prefix("options=") {
            self.draw = draw.parse().ok()?;
        } else {
            let size = variation.strip_prefix("chunk=")?;
            let (number, unit) = match size.strip_suffix('k') {
                Some(kibibytes) => (kibibytes, 1 << 10),
                None => (size, 1),
            };
            self.options.chunk_bytes = number.parse::<u64>().ok()?.checked_mul(unit)?;
        }
        if self.cramped {
            let chunks = if self.tight {
                TIGHT_CHUNKS
            } else {
                CRAMPED_CHUNKS
            };
            self.bytes = self.options.chunk_bytes * chunks;
        }
        self.name = format!("{}/{variation}", self.name);
        Some(self)
    }

    fn plain(name: &str, geometry: Geometry) -> Option<PmTree> {
        let tree = recipes::spec(name)?.pm()?;
        // Chunks of four leaves, of two of a LodgeTree's, or of 42 log entries.
        let (chunk_bytes, bytes) = match geometry {
            Geometry::Tiny => (1 << 10, 768 << 10),
            Geometry::Medium => (4 << 10, 6 << 20),
            Geometry::Small => (16 << 10, 32 << 20),
        };
        let options = PmOptions {
            tree,
            chunk_bytes,
            index_entries: match geometry {
                Geometry::Tiny | Geometry::Medium => FEW_ENTRIES,
                Geometry::Small => PmOptions::default().index_entries,
            },
            ..PmOptions::default()
        };
        Some(PmTree {
            name: name.to_owned(),
            options,
            bytes,
            geometry,
            large: false,
            cramped: false,
            tight: false,
            draw: 0,
        })
    }
}

/// Sets the number of logs. A tree without a log has no such parameter and stays as it is.
fn set_logs(tree: &mut PmTreeKind, logs: usize) {
    let _ = tree.set("logs", &logs.to_string());
}

/// A tree of the same leaves: any but LodgeTree, or a LodgeTree told something else.
fn other_tree(tree: PmTreeKind, random: &mut Random) -> PmTreeKind {
    let ccl = CclOptions {
        batch: 1 + random.below(6) as usize,
        log_percent: [1, 4, 20, 100][random.below(4) as usize],
        garbage_percent: [0, 10, 50, 90][random.below(4) as usize],
        logging: [Logging::WriteConservative, Logging::EveryWrite][random.below(2) as usize],
        cleaning: [Cleaning::LocalityAware, Cleaning::Naive][random.below(2) as usize],
        ..CclOptions::default()
    };
    match (tree, random.below(4)) {
        (PmTreeKind::Lodge(lodge), _) => PmTreeKind::Lodge(LodgeOptions {
            slots: 4 + random.below(26) as usize,
            t_node: 1 + random.below(4) as usize,
            t_split: 2 + random.below(26) as usize,
            log_entries: [2, 4, 8, 16, 256, 300][random.below(6) as usize],
            log_percent: [1, 4, 20, 100][random.below(4) as usize],
            burst_factor: [1, 2, 3, 16][random.below(4) as usize],
            node_split: [NodeSplit::HotnessAware, NodeSplit::Double][random.below(2) as usize],
            ..lodge
        }),
        (_, 0) => PmTreeKind::PmTree,
        (_, 1) => PmTreeKind::Global(GlobalOptions {
            buffer_percent: [1, 10, 60][random.below(3) as usize],
            ..GlobalOptions::default()
        }),
        _ => PmTreeKind::Ccl(ccl),
    }
}

impl Engine for PmTree {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn disk(&self) -> DiskKind {
        DiskKind::Pm(self.bytes)
    }

    fn promise(&self) -> Promise {
        Promise::OnReturn
    }

    fn limits(&self) -> Limits {
        let most = (self.options.chunk_bytes - 8) as usize;
        Limits {
            max_key: most.min(300),
            max_record: most.min(4_088),
            empty_key: true,
        }
    }

    fn long_values(&self) -> Option<LongValues> {
        // What fills a chunk, and more of them.
        let chunk = self.options.chunk_bytes as usize;
        (!self.cramped).then_some(LongValues {
            above: chunk - 8,
            to: (3 * chunk).min(chunk + 12_000),
            piece: chunk - 16,
        })
    }

    fn avoids(&self) -> Vec<Point> {
        vec![Point::NtStore]
    }

    fn never_does(&self) -> Vec<&'static str> {
        let tree = self.options.tree.facts();
        let mut never = match tree.buffer {
            PmBuffer::Absent => vec![
                steps::BUFFER_HIT,
                steps::BUFFER_OVERWRITE,
                steps::BUFFER_FULL,
            ],
            // It is flushed as a whole, before it is full.
            PmBuffer::Shared => vec![steps::BUFFER_FULL],
            // Leaves that are split long before they are full have slots for updates.
            _ if tree.split_above.is_some_and(|most| most <= 6) => vec![steps::SLOTS_CLEARED],
            _ => Vec::new(),
        };
        match tree.cleaning {
            None => never.extend([steps::LOG_APPEND, steps::LOG_CLEANED, steps::CLEANING_COPY]),
            Some(Cleaning::Naive) => never.push(steps::CLEANING_COPY),
            Some(Cleaning::LocalityAware) => {}
        }
        never
    }

    fn vary(&self, seed: u64) -> Option<Box<dyn Engine>> {
        self.drawn(seed, false)
    }

    fn grown(&self, seed: u64) -> Option<Box<dyn Engine>> {
        self.drawn(seed, true)
    }

    fn open_again(&self, disk: &Disk, opening: u64) -> Result<Arc<dyn Kv>> {
        let mut options = self.options;
        let mut random = Random::part(self.draw * DRAWN_OPENINGS + opening, 3);
        if opening + self.draw > 0 && random.one_in(2) {
            options.recovery_threads = 1 + random.below(4) as usize;
            options.index_entries = entries_again(options.index_entries, &mut random);
            let logs = 1 + random.below(4) as usize;
            // One with larger buffers might find no room for what the log has.
            if random.one_in(2) && !self.cramped {
                options.tree = other_tree(options.tree, &mut random);
            }
            set_logs(&mut options.tree, logs);
        }
        self.open_with(disk, &options)
    }

    fn may_refuse(&self, write: &Write<'_>) -> bool {
        // A longer key needs a record of its own, also for the log to say that it is gone.
        let takes_no_room = matches!(write, Write::Delete(key) if key.len() <= 8);
        // A LodgeTree buffers deletes as it does puts, and its flush may have to split a leaf. A
        // global buffer logs them as it does puts, and leaves may have taken every chunk.
        let buffers_all = matches!(self.buffer(), PmBuffer::PerNode | PmBuffer::Shared);
        // What a tight store keeps for deletes is one leaf, and a batch of them may split several.
        self.cramped && (buffers_all || self.tight || !takes_no_room)
    }

    fn reads_any_key(&self) -> bool {
        true
    }

    fn close(&self, store: Arc<dyn Kv>) -> Option<Result<()>> {
        owned::<PmStore>(store).map(PmStore::close)
    }

    fn holds(&self, store: &dyn Kv) -> Vec<(&'static str, u64)> {
        let pm = store.stats().pm.unwrap_or_default();
        vec![
            ("leaves", pm.named_leaves),
            ("bytes of leaves", pm.leaf_bytes),
            (
                "bytes of records in use",
                pm.record_bytes - pm.retired_record_bytes,
            ),
            ("bytes of log chunks", pm.log_chunk_bytes),
        ]
    }

    fn room(&self) -> Option<u64> {
        // Leaves are two thirds full at least. The log and records take from that, and in a
        // LodgeTree leaves that are split early, and neighbours in different nodes.
        let share = match self.options.tree.facts().split_above {
            Some(most) if most < 6 => 40,
            Some(_) => 10,
            None => 5,
        };
        (self.cramped && !self.tight).then_some(self.bytes / share)
    }

    fn can_be_emptied(&self) -> bool {
        // What a global buffer has no leaves for must be logged anew, and that may take all that a
        // store of so few chunks has for a log.
        !(self.cramped && self.buffer() == PmBuffer::Shared)
    }

    fn leaves_of_nothing(&self, before: u64) -> Option<u64> {
        // A LodgeTree's leaves merge within their node. Of others those are merged that a writer
        // finds sparse, which in the background is not each.
        (self.buffer() != PmBuffer::PerNode).then_some(4 + before / 4)
    }

    fn loads(&self) -> u16 {
        // Ten or so to a leaf.
        if self.large { 2_000 } else { 0 }
    }

    fn open(&self, disk: &Disk) -> Result<Arc<dyn Kv>> {
        self.open_again(disk, 0)
    }
}

impl PmTree {
    fn buffer(&self) -> PmBuffer {
        self.options.tree.facts().buffer
    }

    fn drawn(&self, seed: u64, grown: bool) -> Option<Box<dyn Engine>> {
        let mut random = Random::part(seed, 2);
        let mut variations = Vec::new();
        if random.one_in(3) {
            variations.push(["logs=1", "logs=3", "logs=5"][random.below(3) as usize]);
        }
        match self.geometry {
            // Chunks that are no power of two, too; a LodgeTree's leaves are larger.
            Geometry::Tiny if random.one_in(4) => {
                variations.push(match self.options.tree.facts().leaves {
                    LeafFormat::Lodge => ["chunk=1536", "chunk=2k", "chunk=2560", "chunk=5k"]
                        [random.below(4) as usize],
                    LeafFormat::Block => ["chunk=1280", "chunk=2k", "chunk=1792", "chunk=3k"]
                        [random.below(4) as usize],
                })
            }
            Geometry::Medium | Geometry::Small if random.one_in(2) => {
                variations.push(["chunk=1k", "chunk=4k", "chunk=64k"][random.below(3) as usize]);
            }
            _ => {}
        }
        match random.below(8) {
            _ if grown => variations.push("large"),
            0 => variations.push("cramped"),
            1 => variations.push("tight"),
            _ => {}
        }
        if random.one_in(4) {
            variations.push("wide");
        }
        let draw = format!("options={}", 1 + random.below(DRAWS));
        if random.one_in(2) {
            variations.push(&draw);
        }
        if variations.is_empty() {
            return None;
        }
        let varied = (variations.into_iter()).try_fold(self.clone(), PmTree::varied)?;
        Some(Box::new(varied))
    }

    fn open_with(&self, disk: &Disk, options: &PmOptions) -> Result<Arc<dyn Kv>> {
        let Disk::Pm(device) = disk else {
            unreachable!("the oracle gives the kind of disk that was asked for");
        };
        Ok(Arc::new(PmStore::open(Arc::clone(device), options)?))
    }
}
