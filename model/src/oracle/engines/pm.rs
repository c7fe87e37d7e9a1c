//! Treering's own trees in persistent memory.

use std::sync::Arc;

use treering_engine::{
    CclOptions, Cleaning, GlobalOptions, Kv, LodgeOptions, Logging, NodeSplit, PmOptions, PmStore,
    PmTreeKind, Result,
};

use super::Geometry;
use crate::oracle::crash::Point;
use crate::oracle::{Disk, DiskKind, Engine, Limits, Promise};

/// [`PmStore`] under judgement.
#[derive(Clone, Debug)]
pub struct PmTree {
    name: &'static str,
    options: PmOptions,
    bytes: u64,
}

impl PmTree {
    /// The baselines: without a buffer, and with one for all leaves.
    pub const PMTREE_NAMES: [&str; 2] = ["pmtree", "pmtree:global"];

    /// CCL-BTree: as it is by default, with the smallest and the largest buffers, and with each of its switches.
    pub const CCL_NAMES: [&str; 5] = ["ccl", "ccl:1", "ccl:6", "ccl:every-write", "ccl:naive"];

    /// LodgeTree: as it is by default; with small nodes and leaves that split early, and so with the smallest; with nodes that are only ever split in two; with full leaves, where
    /// updates find no empty slots. Logs are of few entries, and are cleaned for soon.
    pub const LODGE_NAMES: [&str; 5] = [
        "lodge",
        "lodge:small",
        "lodge:smallest",
        "lodge:double",
        "lodge:full",
    ];

    /// All names.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Self::PMTREE_NAMES
            .into_iter()
            .chain(Self::CCL_NAMES)
            .chain(Self::LODGE_NAMES)
    }

    fn lodge(name: &str) -> Option<LodgeOptions> {
        let lodge = LodgeOptions {
            logs: 2,
            log_entries: 16,
            ..LodgeOptions::default()
        };
        let small = LodgeOptions {
            slots: 8,
            t_split: 6,
            log_entries: 8,
            log_percent: 4,
            ..lodge
        };
        Some(match name {
            "lodge" => lodge,
            "lodge:small" => small,
            "lodge:smallest" => LodgeOptions {
                slots: 4,
                t_node: 1,
                t_split: 2,
                log_entries: 2,
                ..small
            },
            "lodge:double" => LodgeOptions {
                t_node: 4,
                node_split: NodeSplit::Double,
                ..small
            },
            "lodge:full" => LodgeOptions {
                slots: 12,
                t_split: 27,
                ..small
            },
            _ => return None,
        })
    }

    /// A variant by name.
    #[must_use]
    pub fn named(name: &str, geometry: Geometry) -> Option<PmTree> {
        let name = Self::names().find(|known| *known == name)?;
        let ccl = CclOptions {
            logs: 2,
            ..CclOptions::default()
        };
        let ccl = match name {
            "ccl:1" => CclOptions { batch: 1, ..ccl },
            "ccl:6" => CclOptions { batch: 6, ..ccl },
            "ccl:every-write" => CclOptions {
                logging: Logging::EveryWrite,
                ..ccl
            },
            "ccl:naive" => CclOptions {
                cleaning: Cleaning::Naive,
                ..ccl
            },
            _ => ccl,
        };
        let tree = match name {
            "pmtree" => PmTreeKind::PmTree,
            "pmtree:global" => PmTreeKind::Global(GlobalOptions {
                logs: 2,
                ..GlobalOptions::default()
            }),
            _ => match Self::lodge(name) {
                Some(lodge) => PmTreeKind::Lodge(lodge),
                None => PmTreeKind::Ccl(ccl),
            },
        };
        // Chunks of four leaves, of two of a LodgeTree's, or of 42 log entries.
        let (chunk_bytes, bytes) = match geometry {
            Geometry::Tiny => (1 << 10, 384 << 10),
            Geometry::Small => (16 << 10, 32 << 20),
        };
        let options = PmOptions {
            tree,
            chunk_bytes,
            ..PmOptions::default()
        };
        Some(PmTree {
            name,
            options,
            bytes,
        })
    }
}

impl Engine for PmTree {
    fn name(&self) -> String {
        self.name.to_owned()
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
            max_record: most.min(1_000),
            empty_key: true,
        }
    }

    fn avoids(&self) -> Vec<Point> {
        vec![Point::NtStore]
    }

    fn merges_leaves(&self) -> bool {
        // LodgeTree has no merges.
        !matches!(self.options.tree, PmTreeKind::Lodge(_))
    }

    fn open(&self, disk: &Disk) -> Result<Arc<dyn Kv>> {
        let Disk::Pm(device) = disk else {
            unreachable!("the oracle gives the kind of disk that was asked for");
        };
        Ok(Arc::new(PmStore::open(Arc::clone(device), &self.options)?))
    }
}
