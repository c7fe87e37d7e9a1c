//! How pages reach the device: page store, page table, modification log.

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
    /// Whether a page's place follows from its name, so that a place that an index snapshot takes is a name less.
    pub(crate) fn has_fixed_places(self) -> bool {
        match self {
            PageStoreKind::InPlace | PageStoreKind::Shadow => true,
            PageStoreKind::CopyOnWrite { .. } => false,
        }
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

/// When the copy-on-write store persists its page table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TablePersist {
    /// After each page flush, as the baseline of B⁻-tree §4 does.
    EachFlush,
    /// At checkpoints only.
    Checkpoint,
}
