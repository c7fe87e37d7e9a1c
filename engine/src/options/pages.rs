//! How pages reach the device: options of page store, page table and modification log.

use super::param::{Param, choice, show_choice, show_size, size};
use crate::error::{Error, Result};

/// How dirty pages are written to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PageStoreKind {
    /// Each page has one fixed place, and a page journal makes its writes atomic (B⁻-tree §2.4
    /// (i)).
    InPlace,
    /// A page moves to a free place on every write, and a persistent page table records where it is
    /// (B⁻-tree §2.4 (ii)).
    CopyOnWrite {
        /// When the page table is persisted.
        table: TablePersist,
    },
    /// Each page has two fixed slots, which are written in turn. The invalid one is trimmed
    /// (B⁻-tree §3.1).
    Shadow,
}

impl PageStoreKind {
    /// Every page store. Of those with the same name, the first has the defaults.
    pub const ALL: [PageStoreKind; 4] = [
        PageStoreKind::InPlace,
        PageStoreKind::CopyOnWrite {
            table: TablePersist::Checkpoint,
        },
        PageStoreKind::CopyOnWrite {
            table: TablePersist::EachFlush,
        },
        PageStoreKind::Shadow,
    ];

    /// The name on the command line and in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            PageStoreKind::InPlace => "in-place",
            PageStoreKind::CopyOnWrite { .. } => "cow",
            PageStoreKind::Shadow => "shadow",
        }
    }

    /// The page store of a name, with the defaults of its parameters, if there is one.
    #[must_use]
    pub fn named(name: &str) -> Option<PageStoreKind> {
        Self::ALL.into_iter().find(|store| store.name() == name)
    }

    /// Returns when the page table is persisted, or `None` for a store without one. In such a
    /// store, the place of a page follows from its id.
    #[must_use]
    pub const fn table(self) -> Option<TablePersist> {
        match self {
            PageStoreKind::InPlace | PageStoreKind::Shadow => None,
            PageStoreKind::CopyOnWrite { table } => Some(table),
        }
    }

    /// Returns whether a journal makes page writes atomic.
    #[must_use]
    pub const fn has_journal(self) -> bool {
        matches!(self, PageStoreKind::InPlace)
    }

    /// Returns the number of page images that one place has room for.
    #[must_use]
    pub const fn images_per_place(self) -> u64 {
        match self {
            PageStoreKind::Shadow => 2,
            PageStoreKind::InPlace | PageStoreKind::CopyOnWrite { .. } => 1,
        }
    }

    /// Returns the two bytes that stand for this page store in a superblock.
    pub(crate) const fn code(self) -> [u8; 2] {
        match self {
            PageStoreKind::InPlace => [0, 0],
            PageStoreKind::CopyOnWrite { table } => [1, table as u8],
            PageStoreKind::Shadow => [2, 0],
        }
    }

    /// Returns the page store with these two bytes, if there is one.
    pub(crate) fn of_code(code: [u8; 2]) -> Option<PageStoreKind> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }
}

/// Localized page modification logging (B⁻-tree §3.2). While a page differs only a little from its
/// image on the device, only the differences are written, to a 4 KiB log block that belongs to the
/// page.
///
/// ```
/// use std::sync::Arc;
/// use treering_engine::device::MemDevice;
/// use treering_engine::prelude::*;
/// use treering_engine::{ModLog, SystemClock};
///
/// let options = Options {
///     mod_log: Some(ModLog { segment: 256, ..ModLog::default() }),
///     ..Options::default()
/// };
/// let device = Arc::new(MemDevice::new(1 << 15));
/// let store = Store::open(device, Arc::new(SystemClock::new()), &options)?;
/// store.put(b"key", b"value")?;
/// store.close()?;
/// # Ok::<(), treering_engine::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ModLog {
    /// T: the most bytes of changed segments that go to the log block. Default: 2 KiB (§4.2).
    pub threshold: u32,
    /// Ds: the size of a segment in bytes, a power of two from 64 to 4096. Default: 128 (§4.2).
    pub segment: u32,
    /// Whether a page is written whole when exactly T bytes differ.
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
    /// The parameters in a [`crate::TreeSpec`], where they follow the page store.
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

    /// Returns an error that names the first option that cannot work.
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

/// How the threshold of [`ModLog`] is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResetRule {
    /// The page is written whole when |Δ| reaches T. This fits the paper's Table 2.
    AtThreshold,
    /// The page is written whole when |Δ| exceeds T. This is what the text of B⁻-tree §3.2 says.
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
    /// The choices by name.
    pub const NAMED: &[(&'static str, TablePersist)] = &[
        ("each-flush", TablePersist::EachFlush),
        ("checkpoint", TablePersist::Checkpoint),
    ];
}
