//! Options of the trees in persistent memory. Each tree has its own file.

mod ccl;
mod facts;
mod global;
mod lodge;
pub(crate) mod part;

pub use ccl::{CclOptions, Cleaning, Logging};
pub use facts::{LeafFormat, PmBuffer, PmFacts};
pub use global::GlobalOptions;
pub use lodge::{LodgeOptions, NodeSplit};

use super::limits::{CHUNK_BYTES, INDEX_ENTRIES, check_index_entries};
use super::param::Param;
use crate::error::{Error, Result};
use part::{AnyPart, PmPart};

/// Which tree a store in persistent memory uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PmTreeKind {
    /// Every write goes to its leaf, without buffer or log: the baseline (CCL-BTree §5.2, *Base*).
    PmTree,
    /// Leaf-node-centric buffering over a write-ahead log (CCL-BTree).
    Ccl(CclOptions),
    /// One buffer for all leaves over a write-ahead log, in the manner of DPTree.
    Global(GlobalOptions),
    /// A surrogate buffer in the free slots of last-level inner nodes, over a partitioned version
    /// log (LodgeTree). It has its own leaf format, so no other tree opens a store that it made.
    Lodge(LodgeOptions),
}

/// The tree without buffers. It has no options.
#[derive(Default)]
struct Plain;

impl PmPart for Plain {
    const NAME: &'static str = "pmtree";
    const ABOUT: &'static str = "every write goes to its leaf, the baseline in persistent memory";
    const SOURCE: &'static str = "CCL-BTree §5.2";
    const PARAMS: &'static [Param<Plain>] = &[];

    fn facts(&self) -> PmFacts {
        PmFacts::PLAIN
    }
}

impl PmTreeKind {
    /// Returns every tree with its default options.
    #[must_use]
    pub fn all() -> [PmTreeKind; 4] {
        [
            PmTreeKind::Ccl(CclOptions::default()),
            PmTreeKind::Lodge(LodgeOptions::default()),
            PmTreeKind::PmTree,
            PmTreeKind::Global(GlobalOptions::default()),
        ]
    }

    /// Returns the tree's description of itself.
    pub(crate) fn part(&self) -> &dyn AnyPart {
        match self {
            PmTreeKind::PmTree => &Plain,
            PmTreeKind::Ccl(ccl) => ccl,
            PmTreeKind::Global(global) => global,
            PmTreeKind::Lodge(lodge) => lodge,
        }
    }

    /// Sets a parameter from text, as in a [`crate::TreeSpec`].
    ///
    /// # Errors
    /// What was expected.
    pub fn set(&mut self, name: &str, value: &str) -> std::result::Result<(), String> {
        match self {
            PmTreeKind::PmTree => Plain.set(name, value),
            PmTreeKind::Ccl(ccl) => ccl.set(name, value),
            PmTreeKind::Global(global) => global.set(name, value),
            PmTreeKind::Lodge(lodge) => lodge.set(name, value),
        }
    }

    /// The name on the command line and in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.part().name()
    }

    /// Returns what the rest of the project asks of the tree.
    #[must_use]
    pub fn facts(self) -> PmFacts {
        self.part().facts()
    }
}

/// How a store in persistent memory is made and run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PmOptions {
    /// The tree. Default: `Ccl`. It is not recorded on the device: any tree with the same leaf
    /// format may open the store. LodgeTree has its own format, and all other trees share one.
    pub tree: PmTreeKind,
    /// Bytes of a chunk, the unit in which leaves, logs and records share the device: a multiple of
    /// 256 (LodgeTree: of 512) from 1 KiB to 8 MiB. Default: 4 MiB (§3.3). An existing store keeps
    /// its own. A key must be at least eight bytes shorter than a chunk; a value may be longer.
    pub chunk_bytes: u64,
    /// Number of threads that read leaves and logs when the store is opened. The engine starts
    /// them, and they end before the call returns. Default: 1, the caller's own thread.
    pub recovery_threads: usize,
    /// Whether to format the device if it holds no store. Default: true.
    pub create: bool,
    /// Most entries in an inner node: 3 to 170. Default: 170. The upper nodes of a LodgeTree have
    /// 29 at most.
    pub index_entries: usize,
}

impl Default for PmOptions {
    fn default() -> Self {
        PmOptions {
            tree: PmTreeKind::Ccl(CclOptions::default()),
            chunk_bytes: 4 << 20,
            recovery_threads: 1,
            create: true,
            index_entries: *INDEX_ENTRIES.end(),
        }
    }
}

impl PmOptions {
    /// Returns an error that names the first option that cannot work. [`crate::PmStore::open`] calls
    /// this; call it to check options without a device.
    ///
    /// # Errors
    /// [`Error::BadOption`].
    pub fn check(&self) -> Result<()> {
        let bad = |name, why| Err(Error::BadOption { name, why });
        let sized = CHUNK_BYTES.contains(&self.chunk_bytes);
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
        check_index_entries(self.index_entries)?;
        let part = self.tree.part();
        let logs = part.facts().logs;
        if !(1..=256).contains(&logs) {
            return bad("logs", format!("{logs}; expected 1 to 256"));
        }
        part.check(self.chunk_bytes)
    }
}
