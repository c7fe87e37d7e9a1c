//! How pages reach the device: page store, page table, modification log.

use super::param::{Param, choice, show_choice, show_size, size};
use crate::error::{Error, Result};

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
    /// Every page store.
    pub const ALL: [PageStoreKind; 4] = [
        PageStoreKind::InPlace,
        PageStoreKind::CopyOnWrite {
            table: TablePersist::EachFlush,
        },
        PageStoreKind::CopyOnWrite {
            table: TablePersist::Checkpoint,
        },
        PageStoreKind::Shadow,
    ];

    /// Its name on the command line and in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            PageStoreKind::InPlace => "in-place",
            PageStoreKind::CopyOnWrite { .. } => "cow",
            PageStoreKind::Shadow => "shadow",
        }
    }

    /// When its page table is persisted, if it has one. A store without a table has pages whose
    /// place follows from their name.
    #[must_use]
    pub const fn table(self) -> Option<TablePersist> {
        match self {
            PageStoreKind::InPlace | PageStoreKind::Shadow => None,
            PageStoreKind::CopyOnWrite { table } => Some(table),
        }
    }

    /// Whether a journal makes its page writes atomic.
    #[must_use]
    pub const fn has_journal(self) -> bool {
        matches!(self, PageStoreKind::InPlace)
    }

    /// Page images that a place has room for.
    #[must_use]
    pub const fn images_per_place(self) -> u64 {
        match self {
            PageStoreKind::Shadow => 2,
            PageStoreKind::InPlace | PageStoreKind::CopyOnWrite { .. } => 1,
        }
    }

    /// The two bytes that name it in a superblock.
    pub(crate) const fn code(self) -> [u8; 2] {
        match self {
            PageStoreKind::InPlace => [0, 0],
            PageStoreKind::CopyOnWrite { table } => [1, table as u8],
            PageStoreKind::Shadow => [2, 0],
        }
    }

    /// The page store of these two bytes, if there is one.
    pub(crate) fn of_code(code: [u8; 2]) -> Option<PageStoreKind> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
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
    /// Its parameters in a [`crate::TreeSpec`], where they stand with the page store.
    pub const PARAMS: &[Param<ModLog>] = &[
        Param {
            name: "T",
            about: "most bytes of differences that go to a page's log block; 0: no such block",
            get: |log| show_size(log.threshold.into()),
            set: |log, text| size(&mut log.threshold, text),
        },
        Param {
            name: "Ds",
            about: "bytes of a segment, the grain in which pages differ",
            get: |log| show_size(log.segment.into()),
            set: |log, text| size(&mut log.segment, text),
        },
        Param {
            name: "reset",
            about: "whether a page that differs by exactly T is written whole",
            get: |log| show_choice(&log.reset, ResetRule::NAMED),
            set: |log, text| choice(&mut log.reset, text, ResetRule::NAMED),
        },
    ];

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

impl ResetRule {
    /// The rules by name.
    pub const NAMED: &[(&'static str, ResetRule)] = &[
        ("at-threshold", ResetRule::AtThreshold),
        ("above-threshold", ResetRule::AboveThreshold),
    ];
}

/// When the copy-on-write store persists its page table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TablePersist {
    /// After each page flush, as the baseline of B⁻-tree §4 does.
    EachFlush,
    /// At checkpoints only.
    Checkpoint,
}

impl TablePersist {
    /// The moments by name.
    pub const NAMED: &[(&'static str, TablePersist)] = &[
        ("each-flush", TablePersist::EachFlush),
        ("checkpoint", TablePersist::Checkpoint),
    ];
}
