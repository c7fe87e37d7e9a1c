//! The names and numbers of the leaf layouts. [`crate::node`] describes the layouts themselves.

/// The numbers of the layouts in their first versions. Other layouts and later versions take other
/// numbers.
pub(crate) const KIND_SLOTTED_V1: u8 = 1;
pub(crate) const KIND_COMPACT_V1: u8 = 2;
pub(crate) const KIND_BASELINE_V1: u8 = 3;
pub(crate) const KIND_PREFIX_V1: u8 = 4;
pub(crate) const KIND_HINTS_V1: u8 = 5;
pub(crate) const KIND_FINGERPRINT_V1: u8 = 6;
pub(crate) const KIND_SEMI_DENSE_V1: u8 = 7;
pub(crate) const KIND_FULLY_DENSE_V1: u8 = 8;

/// The layout of pages that are to be dense but whose records do not allow it.
pub(crate) const GENERAL: PageLayout = PageLayout::Hints;

/// How a page lays out its records. Each page records its layout. The first page of a store takes
/// the layout of the tree that created the store, and a page made by a split takes that of the page
/// it came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum PageLayout {
    /// 10-byte slots with 4-byte heads (B-Trees Are Back §3.2).
    Slotted = KIND_SLOTTED_V1,
    /// A 12-byte header and 8-byte slots with 2-byte heads (Bf-Tree §3.2, §3.5).
    Compact = KIND_COMPACT_V1,
    /// 6-byte slots and whole keys (B-Trees Are Back §2).
    Baseline = KIND_BASELINE_V1,
    /// 6-byte slots, and keys without the prefix that the fences share (B-Trees Are Back §3.1).
    Prefix = KIND_PREFIX_V1,
    /// Like `Slotted`, plus 16 hints that narrow the search (B-Trees Are Back §3.3).
    Hints = KIND_HINTS_V1,
    /// 6-byte unsorted slots, each with a one-byte hash (B-Trees Are Back §3.4).
    Fingerprint = KIND_FINGERPRINT_V1,
    /// An offset for each possible key. Keys are numbers, values have any length (B-Trees Are Back
    /// §3.5).
    SemiDense = KIND_SEMI_DENSE_V1,
    /// An array of values of one length. Keys are numbers (B-Trees Are Back §3.5).
    FullyDense = KIND_FULLY_DENSE_V1,
}

impl PageLayout {
    /// The layouts whose pages take any records.
    pub const ALL: [PageLayout; 6] = [
        PageLayout::Slotted,
        PageLayout::Compact,
        PageLayout::Baseline,
        PageLayout::Prefix,
        PageLayout::Hints,
        PageLayout::Fingerprint,
    ];
    /// The layouts whose pages take only keys of one length that are numbers close to each other.
    pub const DENSE: [PageLayout; 2] = [PageLayout::SemiDense, PageLayout::FullyDense];

    /// Returns whether this is one of [`PageLayout::DENSE`].
    #[must_use]
    #[inline]
    pub const fn is_dense(self) -> bool {
        matches!(self, PageLayout::SemiDense | PageLayout::FullyDense)
    }

    /// The name on the command line and in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            PageLayout::Slotted => "slotted",
            PageLayout::Compact => "compact",
            PageLayout::Baseline => "baseline",
            PageLayout::Prefix => "prefix",
            PageLayout::Hints => "hints",
            PageLayout::Fingerprint => "fingerprint",
            PageLayout::SemiDense => "semi-dense",
            PageLayout::FullyDense => "fully-dense",
        }
    }

    /// The number in pages and log records.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// Returns the layout with this number, if there is one.
    #[must_use]
    #[inline]
    pub const fn from_number(number: u8) -> Option<PageLayout> {
        Some(match number {
            KIND_SLOTTED_V1 => PageLayout::Slotted,
            KIND_COMPACT_V1 => PageLayout::Compact,
            KIND_BASELINE_V1 => PageLayout::Baseline,
            KIND_PREFIX_V1 => PageLayout::Prefix,
            KIND_HINTS_V1 => PageLayout::Hints,
            KIND_FINGERPRINT_V1 => PageLayout::Fingerprint,
            KIND_SEMI_DENSE_V1 => PageLayout::SemiDense,
            KIND_FULLY_DENSE_V1 => PageLayout::FullyDense,
            _ => return None,
        })
    }
}

/// The layouts that the leaves of a tree may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LayoutChoice {
    /// The layout for any records: one of [`PageLayout::ALL`].
    general: PageLayout,
    /// The layout that leaves get where their records allow it: one of [`PageLayout::DENSE`].
    dense: Option<PageLayout>,
    /// Whether a leaf that is not dense chooses between hints and fingerprints by how it is used.
    adaptive: bool,
}

impl LayoutChoice {
    /// Returns the choice of this layout for all leaves. If it is a dense one, leaves that cannot
    /// have it use hints, as in the paper.
    #[must_use]
    pub const fn of(layout: PageLayout) -> LayoutChoice {
        match layout.is_dense() {
            true => LayoutChoice {
                general: GENERAL,
                dense: Some(layout),
                adaptive: false,
            },
            false => LayoutChoice {
                general: layout,
                dense: None,
                adaptive: false,
            },
        }
    }

    /// Each leaf uses hints, fingerprints or the fully dense layout, whichever suits it
    /// ([`crate::node::adapt`]).
    pub const ADAPTIVE: LayoutChoice = LayoutChoice {
        general: GENERAL,
        dense: Some(PageLayout::FullyDense),
        adaptive: true,
    };

    /// Returns every choice.
    pub fn all() -> impl Iterator<Item = LayoutChoice> {
        let layouts = PageLayout::ALL.into_iter().chain(PageLayout::DENSE);
        layouts
            .map(LayoutChoice::of)
            .chain([LayoutChoice::ADAPTIVE])
    }

    /// The name on the command line and in reports: that of the layout, or `adaptive`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self.adaptive {
            true => "adaptive",
            false => self.dense.unwrap_or(self.general).name(),
        }
    }

    /// Returns the choice with this name, if there is one. `heads` is another name for `slotted`:
    /// the paper names that layout after its heads.
    #[must_use]
    pub fn named(name: &str) -> Option<LayoutChoice> {
        let name = if name == "heads" { "slotted" } else { name };
        Self::all().find(|choice| choice.name() == name)
    }

    /// The layout that leaves get where their records allow it: one of [`PageLayout::DENSE`].
    #[must_use]
    pub const fn dense(self) -> Option<PageLayout> {
        self.dense
    }

    /// Returns whether leaves may become dense.
    #[must_use]
    pub const fn may_be_dense(self) -> bool {
        self.dense.is_some()
    }

    /// Returns whether the uses of leaves must be counted.
    #[must_use]
    pub const fn is_adaptive(self) -> bool {
        self.adaptive
    }

    /// Returns the same choice without dense leaves.
    #[must_use]
    pub const fn without_dense(self) -> LayoutChoice {
        LayoutChoice {
            dense: None,
            ..self
        }
    }

    /// The layout of leaves that are not dense.
    #[must_use]
    pub const fn general(self) -> PageLayout {
        self.general
    }
}
