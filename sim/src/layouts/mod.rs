//! What each page layout takes: "which layout suits my keys?"
//!
//! Trees of real pages in memory, one for each layout, without log, cache or device: records are put in the order in which they come, pages split, take on
//! other layouts and get inner nodes as in a store, and then bytes are counted (B-Trees Are Back §4, Figures 7, 9, 12, 13, 15).
//!
//! ```text
//!   inner 1                     [ ... ]                   separators with eight-byte children, in the layout's general form
//!   leaves    [ hints ] [ fully dense ] [ hints ]         4 KiB each, behind an envelope that is not counted
//! ```
//!
//! *Counted as the paper does*: a node has 4096 bytes for the layout alone; the envelope of a page in a store (checksum, page id, LSN, magic: 28 bytes) comes on
//! top. [`Counts::bytes_per_record`] is of leaves, [`Counts::bytes_per_record_with_inner`] of all nodes, which is what the paper's figures are. A page in a store
//! that takes 4 KiB with its envelope holds 0.7 % less.

pub mod keys;

use std::collections::BTreeMap;
use std::ops::Bound;

use treering_engine::PageId;
use treering_engine::node::{
    ChangeMap, ENVELOPE_BYTES, LayoutChoice, PageLayout, PageMut, PageRef, Refused, Remedy,
};

/// Bytes of a child's pointer in an inner node.
const CHILD_BYTES: usize = 8;

/// The nodes of one height, by their lower fences.
#[derive(Debug)]
struct Level {
    choice: LayoutChoice,
    pages: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Level {
    fn new(choice: LayoutChoice, page_bytes: usize) -> Level {
        let mut first = vec![0; page_bytes];
        PageMut::new(&mut first, &mut ChangeMap::new())
            .init(choice.general(), PageId(0), b"", None)
            .expect("an empty page fits");
        Level {
            choice,
            pages: BTreeMap::from([(Vec::new(), first)]),
        }
    }

    /// Puts a record, and says at which separators pages were split for it.
    fn put(&mut self, key: &[u8], value: &[u8], splits: &mut Vec<Vec<u8>>) -> Result<(), Refused> {
        let mut changes = ChangeMap::new();
        loop {
            let mut at_or_below = self.pages.range_mut::<[u8], _>(up_to(key));
            let Some((_, bytes)) = at_or_below.next_back() else {
                return Err(Refused::NotCovered);
            };
            let size = bytes.len();
            let mut page = PageMut::new(bytes, &mut changes);
            match page.put(key, value) {
                Ok(_) => return Ok(()),
                Err(Refused::NoSpace | Refused::Unfit) => {}
                Err(refused) => return Err(refused),
            }
            match self.choice.remedy(&page.view(), key, value.len()) {
                Some(Remedy::Relayout(layout)) => page.relayout(layout)?,
                Some(Remedy::Split(plan)) => {
                    let mut right = vec![0; size];
                    let mut marks = ChangeMap::new();
                    page.split_into(&mut PageMut::new(&mut right, &mut marks), PageId(0), &plan)?;
                    if self.choice.is_adaptive() {
                        adapt(&mut page)?;
                        adapt(&mut PageMut::new(&mut right, &mut marks))?;
                    }
                    splits.push(plan.separator.clone());
                    self.pages.insert(plan.separator, right);
                }
                None => return Err(Refused::NoSpace),
            }
        }
    }

    fn views(&self) -> impl Iterator<Item = PageRef<'_>> {
        self.pages.values().map(|bytes| PageRef::new(bytes))
    }
}

/// The bounds of what is not greater.
fn up_to(key: &[u8]) -> (Bound<&[u8]>, Bound<&[u8]>) {
    (Bound::Unbounded, Bound::Included(key))
}

/// Key adaption (§5.1), as if there were no scans.
fn adapt(page: &mut PageMut<'_>) -> Result<(), Refused> {
    let suited = page.view().suited_layout();
    if !page.view().layout().is_dense() && page.view().can_be(suited) {
        page.relayout(suited)?;
    }
    page.judge_heads();
    Ok(())
}

/// A tree of pages in memory.
#[derive(Debug)]
pub struct PageTree {
    /// The leaves, and what is above them.
    levels: Vec<Level>,
    node_bytes: usize,
}

impl PageTree {
    /// An empty tree whose nodes have so many bytes, envelopes aside.
    ///
    /// # Panics
    /// If that is no page size, see [`treering_engine::node::is_page_size`].
    #[must_use]
    pub fn new(choice: LayoutChoice, node_bytes: usize) -> PageTree {
        let leaves = Level::new(choice, node_bytes + ENVELOPE_BYTES);
        PageTree {
            levels: vec![leaves],
            node_bytes,
        }
    }

    /// Sets a key.
    ///
    /// # Errors
    /// [`Refused::TooLarge`] for a record that exceeds the limits of such pages.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Refused> {
        let mut splits = Vec::new();
        self.levels[0].put(key, value, &mut splits)?;
        let mut above = 1;
        while !splits.is_empty() {
            if above == self.levels.len() {
                // An inner node has what leaves have that are not dense; fingerprints serve leaves alone (§4.5).
                let layout = match self.levels[0].choice.general() {
                    PageLayout::Fingerprint => PageLayout::Hints,
                    other => other,
                };
                let page_bytes = self.node_bytes + ENVELOPE_BYTES;
                self.levels
                    .push(Level::new(LayoutChoice::of(layout), page_bytes));
            }
            let mut higher = Vec::new();
            for separator in splits {
                self.levels[above].put(&separator, &[0; CHILD_BYTES], &mut higher)?;
            }
            splits = higher;
            above += 1;
        }
        Ok(())
    }

    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &[u8]) -> Option<&[u8]> {
        let mut leaves = self.levels[0].pages.range::<[u8], _>(up_to(key));
        let (_, leaf) = leaves.next_back()?;
        PageRef::new(leaf).get(key)
    }

    /// Counts what is there.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let mut counts = Counts {
            node_bytes: self.node_bytes,
            inner: self.levels[1..].iter().map(|level| level.pages.len()).sum(),
            ..Counts::default()
        };
        for page in self.levels[0].views() {
            let records = page.count();
            counts.leaves += 1;
            counts.records += records;
            counts.prefix_bytes += page.prefix().len();
            let kind = counts.kinds.entry(page.layout().name()).or_default();
            kind.leaves += 1;
            kind.records += records;
            let mut last = None;
            for (suffix, _) in page.iter() {
                let head = head(&suffix);
                if let Some(last) = last {
                    counts.pairs += 1;
                    counts.distinct += usize::from(last != head);
                }
                last = Some(head);
            }
        }
        counts
    }
}

/// The first four bytes behind a prefix: what heads are (§3.2).
fn head(suffix: &[u8]) -> [u8; 4] {
    let mut head = [0; 4];
    let len = suffix.len().min(4);
    head[..len].copy_from_slice(&suffix[..len]);
    head
}

/// Leaves of one layout in a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kind {
    /// How many leaves.
    pub leaves: usize,
    /// Records in them.
    pub records: usize,
}

/// What a tree takes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    /// Bytes of a node, its envelope aside.
    pub node_bytes: usize,
    /// Number of leaves.
    pub leaves: usize,
    /// Number of nodes above them.
    pub inner: usize,
    /// Number of records.
    pub records: usize,
    /// Sum over leaves of the bytes that their keys leave out.
    pub prefix_bytes: usize,
    /// Pairs of neighbours in a leaf.
    pub pairs: usize,
    /// Those of them whose heads differ.
    pub distinct: usize,
    /// Leaves by layout (Figure 15).
    pub kinds: BTreeMap<&'static str, Kind>,
}

impl Counts {
    /// Records in a leaf on average.
    #[must_use]
    pub fn records_per_leaf(&self) -> f64 {
        self.records as f64 / self.leaves.max(1) as f64
    }

    /// Bytes of leaves for each record.
    #[must_use]
    pub fn bytes_per_record(&self) -> f64 {
        self.node_bytes as f64 * self.leaves as f64 / self.records.max(1) as f64
    }

    /// Bytes of all nodes for each record.
    #[must_use]
    pub fn bytes_per_record_with_inner(&self) -> f64 {
        self.node_bytes as f64 * (self.leaves + self.inner) as f64 / self.records.max(1) as f64
    }

    /// Bytes that keys of a leaf leave out, on average over leaves.
    #[must_use]
    pub fn prefix_bytes_mean(&self) -> f64 {
        self.prefix_bytes as f64 / self.leaves.max(1) as f64
    }

    /// Share of neighbours in leaves whose heads differ.
    #[must_use]
    pub fn distinct_heads(&self) -> f64 {
        self.distinct as f64 / self.pairs.max(1) as f64
    }

    /// Share of the leaves that have this layout.
    #[must_use]
    pub fn share_of(&self, layout: PageLayout) -> f64 {
        let kind = self.kinds.get(layout.name()).copied().unwrap_or_default();
        kind.leaves as f64 / self.leaves.max(1) as f64
    }
}
