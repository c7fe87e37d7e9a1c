//! Options of the trees in persistent memory.

use super::limits::{
    CHUNK_BYTES, INDEX_ENTRIES, LODGE_LEAF_BYTES, LODGE_LEAF_SLOTS, LODGE_SLOTS, PM_BATCH,
    check_index_entries,
};
use super::param::{Param, choice, number, percent, show, show_choice, show_percent};
use crate::error::{Error, Result};

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

impl Logging {
    /// The choices by name.
    pub const NAMED: &[(&'static str, Logging)] = &[
        ("conservative", Logging::WriteConservative),
        ("naive", Logging::EveryWrite),
    ];
}

/// How a CCL-BTree's log is cleaned (§3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cleaning {
    /// What is unflushed is copied to new chunks.
    LocalityAware,
    /// Everybody waits while all buffers are flushed.
    Naive,
}

impl Cleaning {
    /// The choices by name.
    pub const NAMED: &[(&'static str, Cleaning)] = &[
        ("locality-aware", Cleaning::LocalityAware),
        ("naive", Cleaning::Naive),
    ];
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

impl CclOptions {
    /// Its parameters in a [`crate::TreeSpec`].
    pub const PARAMS: &[Param<CclOptions>] = &[
        Param {
            name: "nbatch",
            about: "slots of a buffer node (N_batch)",
            get: |ccl| show(ccl.batch),
            set: |ccl, text| number(&mut ccl.batch, text),
        },
        Param {
            name: "logging",
            about: "which writes are logged",
            get: |ccl| show_choice(&ccl.logging, Logging::NAMED),
            set: |ccl, text| choice(&mut ccl.logging, text, Logging::NAMED),
        },
        Param {
            name: "cleaning",
            about: "how the log is cleaned",
            get: |ccl| show_choice(&ccl.cleaning, Cleaning::NAMED),
            set: |ccl, text| choice(&mut ccl.cleaning, text, Cleaning::NAMED),
        },
        Param {
            name: "log-share",
            about: "the log is cleaned when it takes more than this share of the leaves (TH_log)",
            get: |ccl| show_percent(ccl.log_percent),
            set: |ccl, text| percent(&mut ccl.log_percent, text),
        },
        Param {
            name: "garbage-share",
            about: "and when more than this share of it is garbage",
            get: |ccl| show_percent(ccl.garbage_percent),
            set: |ccl, text| percent(&mut ccl.garbage_percent, text),
        },
        Param {
            name: "logs",
            about: "logs that threads share",
            get: |ccl| show(ccl.logs),
            set: |ccl, text| number(&mut ccl.logs, text),
        },
    ];
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

impl GlobalOptions {
    /// Its parameters in a [`crate::TreeSpec`].
    pub const PARAMS: &[Param<GlobalOptions>] = &[
        Param {
            name: "buffer-share",
            about: "size of the buffer as a share of the leaves",
            get: |global| show_percent(global.buffer_percent),
            set: |global, text| percent(&mut global.buffer_percent, text),
        },
        Param {
            name: "logs",
            about: "logs that threads share",
            get: |global| show(global.logs),
            set: |global, text| number(&mut global.logs, text),
        },
    ];
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

impl NodeSplit {
    /// The choices by name.
    pub const NAMED: &[(&'static str, NodeSplit)] = &[
        ("hotness-aware", NodeSplit::HotnessAware),
        ("double", NodeSplit::Double),
    ];
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
            slots: *LODGE_SLOTS.end(),
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
    /// Its parameters in a [`crate::TreeSpec`].
    pub const PARAMS: &[Param<LodgeOptions>] = &[
        Param {
            name: "slots",
            about: "slots of a last-level inner node",
            get: |lodge| show(lodge.slots),
            set: |lodge, text| number(&mut lodge.slots, text),
        },
        Param {
            name: "t-node",
            about: "most leaves that one flush goes to",
            get: |lodge| show(lodge.t_node),
            set: |lodge, text| number(&mut lodge.t_node, text),
        },
        Param {
            name: "t-split",
            about: "keys of a leaf above which it is split",
            get: |lodge| show(lodge.t_split),
            set: |lodge, text| number(&mut lodge.t_split, text),
        },
        Param {
            name: "node-split",
            about: "into how many a last-level inner node is split",
            get: |lodge| show_choice(&lodge.node_split, NodeSplit::NAMED),
            set: |lodge, text| choice(&mut lodge.node_split, text, NodeSplit::NAMED),
        },
        Param {
            name: "burst-factor",
            about: "by how much splits must speed up to be a burst (t of §III-C)",
            get: |lodge| show(lodge.burst_factor),
            set: |lodge, text| number(&mut lodge.burst_factor, text),
        },
        Param {
            name: "logs",
            about: "partitions of the log, which threads share",
            get: |lodge| show(lodge.logs),
            set: |lodge, text| number(&mut lodge.logs, text),
        },
        Param {
            name: "log-entries",
            about: "entries of a log (L)",
            get: |lodge| show(lodge.log_entries),
            set: |lodge, text| number(&mut lodge.log_entries, text),
        },
        Param {
            name: "log-share",
            about: "old logs are flushed for when logs take more than this share of the leaves",
            get: |lodge| show_percent(lodge.log_percent),
            set: |lodge, text| percent(&mut lodge.log_percent, text),
        },
    ];

    fn check(&self) -> Result<()> {
        let bad = |name, why| Err(Error::BadOption { name, why });
        if !LODGE_SLOTS.contains(&self.slots) {
            let (least, most) = (LODGE_SLOTS.start(), LODGE_SLOTS.end());
            let why = format!("{}; expected {least} to {most}", self.slots);
            return bad("slots", why);
        }
        if !(1..=*LODGE_SLOTS.end()).contains(&self.t_node) {
            return bad(
                "t-node",
                format!("{}; expected 1 to {}", self.t_node, LODGE_SLOTS.end()),
            );
        }
        if !(2..=LODGE_LEAF_SLOTS).contains(&self.t_split) {
            let why = format!("{}; expected 2 to {LODGE_LEAF_SLOTS}", self.t_split);
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
            index_entries: *INDEX_ENTRIES.end(),
        }
    }
}

impl PmOptions {
    /// Refuses what cannot work, by name.
    pub(crate) fn check(&self) -> Result<()> {
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
            let leaf_bytes = LODGE_LEAF_BYTES;
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
        if !PM_BATCH.contains(&ccl.batch) {
            return bad(
                "nbatch",
                format!("{}; expected 1 to {}", ccl.batch, PM_BATCH.end()),
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
