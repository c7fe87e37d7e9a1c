//! Options of the LodgeTree.

use super::ccl::Cleaning;
use super::facts::{LeafFormat, PmBuffer, PmFacts};
use super::part::PmPart;
use crate::error::{Error, Result};
use crate::options::limits::{LODGE_LEAF_BYTES, LODGE_LEAF_SLOTS, LODGE_SLOTS, PM_ENTRY_BYTES};
use crate::options::param::{Param, choice, number, percent, show, show_choice, show_percent};

/// Into how many nodes a LodgeTree splits a last-level inner node (LodgeTree §III-C).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NodeSplit {
    /// Into two.
    Double,
    /// Into more than two while splits follow each other quickly, as far as the upper node has
    /// room.
    HotnessAware,
}

impl NodeSplit {
    /// The choices by name.
    pub const NAMED: &[(&'static str, NodeSplit)] = &[
        ("hotness-aware", NodeSplit::HotnessAware),
        ("double", NodeSplit::Double),
    ];
}

/// Options of a LodgeTree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LodgeOptions {
    /// Slots of a last-level inner node, 4 to 29. Default: 29 (§IV-A).
    pub slots: usize,
    /// t_node: the most leaves that one flush writes to. Default: 2 (§IV-A).
    pub t_node: usize,
    /// t_split: a leaf with more keys than this is split, 2 to 27. Default: 26 (§IV-A).
    pub t_split: usize,
    /// Into how many nodes a node is split. Default: hotness-aware.
    pub node_split: NodeSplit,
    /// t of §III-C: the factor by which the time since the last split must be shorter, or longer,
    /// than the time between the last two splits. Default: 2; the paper does not give it.
    pub burst_factor: u8,
    /// Number of partitions of the log. If there are more threads, they share them. Default: 8; the
    /// paper has one per thread.
    pub logs: usize,
    /// L: entries of one log, at least 2 and at most what a chunk holds. Default: 256, which is 6
    /// KiB; the paper does not give it.
    pub log_entries: u32,
    /// Old logs are cleaned by flushing when the logs have room for entries of more than this
    /// percentage of the leaves' bytes. Default: 20; the paper has no such bound.
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

impl PmPart for LodgeOptions {
    const NAME: &'static str = "lodge";
    const ABOUT: &'static str =
        "a buffer in the free slots of last-level inner nodes, over a partitioned log";
    const SOURCE: &'static str = "LodgeTree";
    const PARAMS: &'static [Param<LodgeOptions>] = &[
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

    fn facts(&self) -> PmFacts {
        // A node has at most one entry per slot, and at least two leaves, which are twice as large
        // as blocks.
        let buffered =
            PM_ENTRY_BYTES as f64 * self.slots as f64 / (4.0 * LeafFormat::Block.bytes() as f64);
        PmFacts {
            buffer: PmBuffer::PerNode,
            cleaning: Some(Cleaning::LocalityAware),
            logs: self.logs,
            log_share: buffered.max(2.0 * f64::from(self.log_percent) / 100.0),
            leaves: LeafFormat::Lodge,
            split_above: Some(self.t_split),
        }
    }

    fn check(&self, chunk_bytes: u64) -> Result<()> {
        let bad = |name, why| Err(Error::BadOption { name, why });
        if !chunk_bytes.is_multiple_of(LODGE_LEAF_BYTES) {
            let why = format!("{chunk_bytes} bytes; expected a multiple of {LODGE_LEAF_BYTES}");
            return bad("chunk", why);
        }
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
