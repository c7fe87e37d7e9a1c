//! Which page tree, and the options of a Bf-Tree.

use super::layout::LayoutChoice;
use super::layout::PageLayout;
use super::param::{Param, percent, show_percent};
use crate::error::{Error, Result};

/// Which tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TreeKind {
    /// The conventional B-tree over a page cache: the baseline of all comparisons.
    BTree,
    /// Mini-pages in a ring over the same leaves (Bf-Tree).
    Bf(BfOptions),
}

impl TreeKind {
    /// Its name on the command line and in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            TreeKind::BTree => "btree",
            TreeKind::Bf(_) => "bf",
        }
    }

    /// How its leaves lay out their records, unless [`crate::Options::layout`] says otherwise. In
    /// a store that exists each page names its own layout.
    #[must_use]
    pub const fn layouts(self) -> LayoutChoice {
        match self {
            TreeKind::BTree => LayoutChoice::ADAPTIVE,
            TreeKind::Bf(_) => LayoutChoice::of(PageLayout::Compact),
        }
    }
}

/// What a Bf-Tree can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BfOptions {
    /// Share of the ring, in percent, in which a mini-page that is used is copied to the tail. Default: 10 (§6.10), which
    /// `sim/FIGURES.md` finds best.
    pub copy_on_access_percent: u8,
    /// How many of a hundred reads of a leaf leave a copy in the mini-page, and a third as many scans a mirror. Default: 30, as the
    /// paper's code has it; the paper says 1 (§5.1) and 20 (§6.11). By `sim/FIGURES.md` 10 reads 4 % fewer pages in the end, and 16 % more after a
    /// change of the workload.
    pub promotion_percent: u8,
}

impl Default for BfOptions {
    fn default() -> Self {
        BfOptions {
            copy_on_access_percent: 10,
            promotion_percent: 30,
        }
    }
}

impl BfOptions {
    /// Its parameters in a [`crate::TreeSpec`].
    pub const PARAMS: &[Param<BfOptions>] = &[
        Param {
            name: "copy-on-access",
            about: "share of the ring in which a mini-page that is used moves to the tail",
            get: |bf| show_percent(bf.copy_on_access_percent),
            set: |bf, text| percent(&mut bf.copy_on_access_percent, text),
        },
        Param {
            name: "promote",
            about: "share of the lookups of a leaf that copy the record to the mini-page",
            get: |bf| show_percent(bf.promotion_percent),
            set: |bf, text| percent(&mut bf.promotion_percent, text),
        },
    ];

    /// Refuses what cannot work, by name.
    pub(crate) fn check(&self) -> Result<()> {
        let shares = [
            ("copy-on-access", self.copy_on_access_percent),
            ("promotion", self.promotion_percent),
        ];
        match shares.into_iter().find(|(_, share)| *share > 100) {
            Some((name, share)) => Err(Error::BadOption {
                name,
                why: format!("{share} %; expected 0 to 100"),
            }),
            None => Ok(()),
        }
    }
}
