//! Leaf layouts by name and by number. What each of them is, is in [`crate::node`].

/// The numbers of layouts in their first versions. Other layouts and later versions take other numbers.
pub(crate) const KIND_SLOTTED_V1: u8 = 1;
pub(crate) const KIND_COMPACT_V1: u8 = 2;
pub(crate) const KIND_BASELINE_V1: u8 = 3;
pub(crate) const KIND_PREFIX_V1: u8 = 4;
pub(crate) const KIND_HINTS_V1: u8 = 5;
pub(crate) const KIND_FINGERPRINT_V1: u8 = 6;
pub(crate) const KIND_SEMI_DENSE_V1: u8 = 7;
pub(crate) const KIND_FULLY_DENSE_V1: u8 = 8;

/// What dense pages are when they cannot be dense.
pub(crate) const GENERAL: PageLayout = PageLayout::Hints;

/// How a page lays out its records. Each page says it itself; a store's first page has that of the tree which made the store, and what is split off
/// a page has that page's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum PageLayout {
    /// Slots of 10 bytes with heads of 4 (B-Trees Are Back §3.2).
    Slotted = KIND_SLOTTED_V1,
    /// A header of 12 bytes, slots of 8 with heads of 2 (Bf-Tree §3.2, §3.5).
    Compact = KIND_COMPACT_V1,
    /// Slots of 6 bytes, whole keys (B-Trees Are Back §2).
    Baseline = KIND_BASELINE_V1,
    /// Slots of 6 bytes, keys without what the fences share (B-Trees Are Back §3.1).
    Prefix = KIND_PREFIX_V1,
    /// As `Slotted`, and 16 hints where to search (B-Trees Are Back §3.3).
    Hints = KIND_HINTS_V1,
    /// Slots of 6 bytes in no order, and a byte of hash for each (B-Trees Are Back §3.4).
    Fingerprint = KIND_FINGERPRINT_V1,
    /// An offset for each key that may come, keys being numbers; values of any length (B-Trees Are Back §3.5).
    SemiDense = KIND_SEMI_DENSE_V1,
    /// An array of values of one length, keys being numbers (B-Trees Are Back §3.5).
    FullyDense = KIND_FULLY_DENSE_V1,
}

impl PageLayout {
    /// Every layout whose pages take any records.
    pub const ALL: [PageLayout; 6] = [
        PageLayout::Slotted,
        PageLayout::Compact,
        PageLayout::Baseline,
        PageLayout::Prefix,
        PageLayout::Hints,
        PageLayout::Fingerprint,
    ];
    /// The layouts whose pages take only keys of one length that are numbers near each other.
    pub const DENSE: [PageLayout; 2] = [PageLayout::SemiDense, PageLayout::FullyDense];

    /// Whether it is one of [`PageLayout::DENSE`].
    #[must_use]
    #[inline]
    pub const fn is_dense(self) -> bool {
        matches!(self, PageLayout::SemiDense | PageLayout::FullyDense)
    }

    /// Its name on the command line and in reports.
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

    /// Its number in pages and log records.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The layout of this number, if there is one.
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

/// The layouts of a tree's leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LayoutChoice {
    /// What takes any records: one of [`PageLayout::ALL`].
    general: PageLayout,
    /// What leaves become where they can: one of [`PageLayout::DENSE`].
    dense: Option<PageLayout>,
    /// Whether leaves that are not dense have hints or fingerprints, whichever suits them.
    adaptive: bool,
}

impl LayoutChoice {
    /// Leaves of this layout; where it is a dense one, of it where that can be, else with hints, as the paper has it.
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

    /// Hints, fingerprints or fully dense, each leaf as suits it ([`super::adapt`]).
    pub const ADAPTIVE: LayoutChoice = LayoutChoice {
        general: GENERAL,
        dense: Some(PageLayout::FullyDense),
        adaptive: true,
    };

    /// Every choice.
    pub fn all() -> impl Iterator<Item = LayoutChoice> {
        let layouts = PageLayout::ALL.into_iter().chain(PageLayout::DENSE);
        layouts
            .map(LayoutChoice::of)
            .chain([LayoutChoice::ADAPTIVE])
    }

    /// Its name on the command line and in reports: that of the layout, or `adaptive`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self.adaptive {
            true => "adaptive",
            false => self.dense.unwrap_or(self.general).name(),
        }
    }

    /// The choice of this name, if there is one; the paper calls the slotted layout by its heads.
    #[must_use]
    pub fn named(name: &str) -> Option<LayoutChoice> {
        let name = if name == "heads" { "slotted" } else { name };
        Self::all().find(|choice| choice.name() == name)
    }

    /// What leaves become where they can: one of [`PageLayout::DENSE`].
    #[must_use]
    pub const fn dense(self) -> Option<PageLayout> {
        self.dense
    }

    /// Whether leaves may become dense.
    #[must_use]
    pub const fn may_be_dense(self) -> bool {
        self.dense.is_some()
    }

    /// Whether uses of leaves are to be counted.
    #[must_use]
    pub const fn is_adaptive(self) -> bool {
        self.adaptive
    }

    /// The same but for dense leaves, of which there are none.
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
