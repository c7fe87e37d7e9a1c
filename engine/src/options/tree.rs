//! The choice of page tree, and the options of a Bf-Tree.

use std::fmt;
use std::str::FromStr;

use super::layout::LayoutChoice;
use super::layout::PageLayout;
use super::param::{Param, percent, show_percent};
use crate::error::{Error, Result};

/// Which tree a store on a block device uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TreeKind {
    /// The conventional B-tree over a page cache: the baseline of all comparisons.
    BTree,
    /// A Bf-Tree: mini-pages in a ring over the same leaves.
    Bf(BfOptions),
}

impl TreeKind {
    /// The name on the command line and in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            TreeKind::BTree => "btree",
            TreeKind::Bf(_) => "bf",
        }
    }

    /// Returns the layouts of the tree's leaves if [`crate::Options::layout`] is not set. In an
    /// existing store, each page records its own layout.
    #[must_use]
    pub const fn layouts(self) -> LayoutChoice {
        match self {
            TreeKind::BTree => LayoutChoice::ADAPTIVE,
            TreeKind::Bf(_) => LayoutChoice::of(PageLayout::Compact),
        }
    }
}

/// Whose rules a tree follows where its paper's are not the ones that write least.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Policy {
    /// The paper's.
    Published,
    /// Those that write fewer bytes, in the same memory.
    #[default]
    Frugal,
}

impl Policy {
    /// All policies, by name.
    pub const NAMED: &[(&str, Policy)] =
        &[("published", Policy::Published), ("frugal", Policy::Frugal)];
}

/// Which reads of a leaf leave a copy of what they found in the mini-page of a Bf-Tree (§5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Promote {
    /// As many as pay by what they answer later: [`crate::Promotion`] has the rule.
    Adaptive,
    /// So many per cent of the lookups, and of the scans a third of that.
    Percent(u8),
}

impl Promote {
    /// The share, if it is fixed.
    #[must_use]
    pub const fn percent(self) -> Option<u8> {
        match self {
            Promote::Adaptive => None,
            Promote::Percent(percent) => Some(percent),
        }
    }
}

impl fmt::Display for Promote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Promote::Adaptive => f.write_str("auto"),
            Promote::Percent(share) => f.write_str(&show_percent(*share)),
        }
    }
}

impl FromStr for Promote {
    type Err = String;

    /// Reads `auto` or a percentage. The error says what was expected.
    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let mut share = 0;
        match text {
            "auto" => Ok(Promote::Adaptive),
            text => match percent(&mut share, text) {
                Ok(()) => Ok(Promote::Percent(share)),
                Err(expected) => Err(format!("{expected}, or auto")),
            },
        }
    }
}

/// Options of a Bf-Tree. The default is [`Policy::Frugal`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BfOptions {
    /// Share of the ring, in percent, in which a mini-page that is used is copied to the tail.
    /// Default: 10 (§6.10), which `sim/FIGURES.md` finds best.
    pub copy_on_access_percent: u8,
    /// Which reads of a leaf leave a copy of the record in the mini-page, or a mirror. Default: as
    /// many as pay; in the paper's code 30 %, and the paper says 1 (§5.1) and 20 (§6.11).
    pub promote: Promote,
    /// What a checkpoint may log again of the dirty records in mini-pages instead of merging them
    /// into their leaves, in percent of the log between two checkpoints. Default: 50; in the paper 0
    /// (§5.7). More makes recovery read that much more.
    pub relog_percent: u8,
    /// How much larger each size of mini-pages is than the one below, in percent, from 10 to 100.
    /// Default: 25; in the paper 100, which doubles them. With 25, less room in mini-pages is unused,
    /// and they move more often as they grow; `docs/LIMIT.md` has figures.
    pub growth_percent: u8,
    /// Of the mini-pages with changes that the head of the ring reaches, how many per cent go to the
    /// tail instead of being merged, because they have few: up to 90. Default: 75; in the paper 0
    /// (§4.2). With more than 0, mini-pages near the head also move with their changes unmerged.
    pub spare_percent: u8,
    /// The largest mini-page that is no mirror, in percent of a page, from 50 to 100: one that
    /// needs more for a change is merged. Default: 100; in the paper 50 (§3.1). With 100, records
    /// of more than a hundredth of a page gather until there is a whole leaf of them.
    pub max_mini_page_percent: u8,
}

impl Default for BfOptions {
    fn default() -> Self {
        BfOptions {
            promote: Promote::Adaptive,
            relog_percent: 50,
            growth_percent: 25,
            spare_percent: 75,
            max_mini_page_percent: 100,
            ..BfOptions::PUBLISHED
        }
    }
}

impl BfOptions {
    /// The paper's rules ([`Policy::Published`]).
    pub const PUBLISHED: BfOptions = BfOptions {
        copy_on_access_percent: 10,
        promote: Promote::Percent(30),
        relog_percent: 0,
        growth_percent: 100,
        spare_percent: 0,
        max_mini_page_percent: 50,
    };

    /// The options that follow a policy.
    #[must_use]
    pub fn of(policy: Policy) -> BfOptions {
        match policy {
            Policy::Published => BfOptions::PUBLISHED,
            Policy::Frugal => BfOptions::default(),
        }
    }

    /// The parameters in a [`crate::TreeSpec`].
    pub const PARAMS: &[Param<BfOptions>] = &[
        Param {
            name: "copy-on-access",
            about: "share of the ring in which a mini-page that is used moves to the tail",
            get: |bf| show_percent(bf.copy_on_access_percent),
            set: |bf, text| percent(&mut bf.copy_on_access_percent, text),
        },
        Param {
            name: "promote",
            about: "share of the lookups of a leaf that copy the record to the mini-page, or auto",
            get: |bf| bf.promote.to_string(),
            set: |bf, text| {
                bf.promote = text.parse()?;
                Ok(())
            },
        },
        Param {
            name: "relog",
            about: "what a checkpoint logs again instead of merging it, of the log between two",
            get: |bf| show_percent(bf.relog_percent),
            set: |bf, text| percent(&mut bf.relog_percent, text),
        },
        Param {
            name: "growth",
            about: "how much larger each size of mini-pages is than the one below",
            get: |bf| show_percent(bf.growth_percent),
            set: |bf, text| percent(&mut bf.growth_percent, text),
        },
        Param {
            name: "spare",
            about: "share of mini-pages with changes that the head spares for having few",
            get: |bf| show_percent(bf.spare_percent),
            set: |bf, text| percent(&mut bf.spare_percent, text),
        },
        Param {
            name: "max-mini-page",
            about: "the largest mini-page that is no mirror, of a page",
            get: |bf| show_percent(bf.max_mini_page_percent),
            set: |bf, text| percent(&mut bf.max_mini_page_percent, text),
        },
    ];

    /// Bytes of records that a checkpoint may log again, where the log grows by `every` bytes between
    /// two checkpoints.
    pub(crate) fn relog_bytes(&self, every: u64) -> u64 {
        every / 100 * u64::from(self.relog_percent)
    }

    /// Returns an error that names the first option that cannot work.
    pub(crate) fn check(&self) -> Result<()> {
        let shares = [
            ("copy-on-access", self.copy_on_access_percent, 0..=100),
            ("promotion", self.promote.percent().unwrap_or(0), 0..=100),
            // With more than half, the log would hardly grow by anything else between checkpoints.
            ("relog", self.relog_percent, 0..=50),
            // A ring has at most 32 sizes.
            ("growth", self.growth_percent, 10..=100),
            // With more, nearly all that the head does is to copy.
            ("spare", self.spare_percent, 0..=90),
            // The next size of mini-pages below a page is half of it.
            ("max-mini-page", self.max_mini_page_percent, 50..=100),
        ];
        let mut shares = shares.into_iter();
        match shares.find(|(_, share, allowed)| !allowed.contains(share)) {
            Some((name, share, allowed)) => Err(Error::BadOption {
                name,
                why: format!(
                    "{share} %; expected {} to {}",
                    allowed.start(),
                    allowed.end()
                ),
            }),
            None => Ok(()),
        }
    }
}
