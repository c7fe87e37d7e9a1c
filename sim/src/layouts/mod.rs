//! Space and speed of page layouts: "which layout suits my keys?"
//!
//! A B-tree of real pages in memory, of any layout, without log, cache, device or latches, as
//! measured in B-Trees Are Back (§4, §5.2, §6). Its speed can therefore be compared with that paper
//! and with other ordered maps in memory, and its size is that of the layout alone (Figures 7, 9,
//! 12, 13, 15). A store does more work.
//!
//! ```text
//!   inner 1      first child | sep -> child | sep -> child  [ hints ]: searched once on descent
//!                       /                 |               \
//!   leaves      [ hints ]           [ fully dense ]       [ hints ]
//!               4 KiB each, behind an envelope that is not counted
//! ```
//!
//! - **Inner nodes** (§2) are pages whose keys are separators and whose eight-byte values are
//!   numbers of children. There is one more child than separators: as in the paper, the first child
//!   is in the header, in the field where the envelope of a stored page has the LSN. When an inner
//!   node is split, one of its separators moves up, and that separator's child becomes the first
//!   child of the new node. Inner nodes have the leaves' layout, or hints where leaves are dense or
//!   have fingerprints (§4.5).
//! - **Operations** take and return whole keys. A get, and a put into a leaf with room, allocate
//!   nothing. A scan first sorts records that fingerprints left unordered (§3.4).
//! - **Adaption** (§5.1) is that of the engine's trees ([`treering_engine::node::adapt`]): by keys
//!   at splits, by operations with a probability, and at once at the ends of the counter.
//!
//! *Counting follows the paper*: a node has 4096 bytes for the layout alone; the envelope of a page
//! in a store (checksum, page id, LSN, magic: 28 bytes) is additional. [`Counts::bytes_per_record`]
//! counts leaves only, [`Counts::bytes_per_record_with_inner`] counts all nodes, as the paper's
//! figures do. A page in a store that takes 4 KiB with its envelope holds 0.7 % less.

mod arena;
mod counts;
pub mod keys;

pub use counts::{Counts, Kind};

use arena::Arena;
use treering_engine::node::adapt::Use;
use treering_engine::node::{
    ChangeMap, ENVELOPE_BYTES, LayoutChoice, PageLayout, PageMut, PageRef, Refused, Remedy,
};
use treering_engine::{Lsn, PageId};

/// The number of a child, stored as the value of an inner node's record.
type Child = [u8; 8];

/// A B-tree of pages in memory; see the [module](self).
#[derive(Debug)]
pub struct PageTree {
    choice: LayoutChoice,
    node_bytes: usize,
    nodes: Arena,
    root: u64,
    /// Levels of inner nodes.
    height: usize,
    /// State of operation adaption, if the layout adapts by operations.
    uses: u64,
    /// A sink for changes that nobody needs.
    changes: ChangeMap,
    /// The current key and next fence of a scan; kept to reuse their memory.
    row: Vec<u8>,
    fence: Vec<u8>,
}

impl PageTree {
    /// Creates an empty tree with nodes of this many bytes, without envelopes.
    ///
    /// # Panics
    /// If that is not a page size; see [`treering_engine::node::is_page_size`].
    #[must_use]
    pub fn new(choice: LayoutChoice, node_bytes: usize) -> PageTree {
        let page_bytes = node_bytes + ENVELOPE_BYTES;
        let mut leaf = vec![0; page_bytes];
        PageMut::new(&mut leaf, &mut ChangeMap::new())
            .init(choice.general(), PageId(0), b"", None)
            .expect("an empty page fits");
        let mut nodes = Arena::new(page_bytes);
        PageTree {
            choice,
            node_bytes,
            root: nodes.push(&leaf),
            nodes,
            height: 0,
            uses: 0,
            changes: ChangeMap::new(),
            row: Vec::new(),
            fence: Vec::new(),
        }
    }

    /// Sets a key.
    ///
    /// # Errors
    /// [`Refused::TooLarge`] for a record that exceeds the limits of the pages.
    #[inline]
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Refused> {
        loop {
            let leaf = self.node_at(0, key);
            match self.edit(leaf).put(key, value) {
                Ok(_) => {
                    self.count_use(leaf, Use::Point);
                    return Ok(());
                }
                Err(Refused::NoSpace | Refused::Unfit) => self.make_room(leaf, key, value.len())?,
                Err(refused) => return Err(refused),
            }
        }
    }

    /// The value of a key.
    #[must_use]
    #[inline]
    pub fn get(&mut self, key: &[u8]) -> Option<&[u8]> {
        let leaf = self.node_at(0, key);
        self.count_use(leaf, Use::Point);
        self.view(leaf).get_covered(key)
    }

    /// Visits records from a key on as (key, value), in key order, until the visitor stops.
    #[inline]
    pub fn scan(&mut self, from: &[u8], mut visit: impl FnMut(&[u8], &[u8]) -> bool) {
        let (mut row, mut fence) = (
            std::mem::take(&mut self.row),
            std::mem::take(&mut self.fence),
        );
        fence.clear();
        fence.extend_from_slice(from);
        loop {
            let leaf = self.node_at(0, &fence);
            self.count_use(leaf, Use::Scan);
            if !self.view(leaf).is_in_order() {
                self.edit(leaf).sort();
            }
            let page = self.view(leaf);
            let prefix = page.prefix();
            row.clear();
            row.extend_from_slice(prefix);
            let more = page.visit_from(&fence, |suffix, value| {
                row.truncate(prefix.len());
                row.extend_from_slice(suffix);
                visit(&row, value)
            });
            let Some(upper) = page.upper_fence().filter(|_| more) else {
                break;
            };
            fence.clear();
            fence.extend_from_slice(upper);
        }
        (self.row, self.fence) = (row, fence);
    }

    /// The node that covers a key, at a height above the leaves.
    #[inline]
    fn node_at(&self, height: usize, key: &[u8]) -> u64 {
        let mut node = self.root;
        for _ in height..self.height {
            let inner = self.view(node);
            node = inner.floor(key).map_or_else(|| first_child(inner), child);
        }
        node
    }

    #[inline]
    fn view(&self, node: u64) -> PageRef<'_> {
        PageRef::new(self.nodes.bytes(node))
    }

    #[inline]
    fn edit(&mut self, node: u64) -> PageMut<'_> {
        PageMut::new(self.nodes.bytes_mut(node), &mut self.changes)
    }

    /// Operation adaption (§5.1).
    #[inline]
    fn count_use(&mut self, leaf: u64, used: Use) {
        if !self.choice.is_adaptive() {
            return;
        }
        let number = self.uses;
        self.uses += 1;
        if used.counts(number) {
            let mut page = self.edit(leaf);
            if let Some(layout) = page.count_use(used) {
                // If the records do not fit the other layout, the leaf stays as it is.
                let _ = page.relayout(layout);
            }
        }
    }

    /// Changes the layout of a leaf that has refused a record, or splits it.
    #[cold]
    fn make_room(&mut self, leaf: u64, key: &[u8], value_len: usize) -> Result<(), Refused> {
        let (choice, size) = (self.choice, self.node_bytes + ENVELOPE_BYTES);
        let number = PageId(self.nodes.len() as u64);
        let mut page = self.edit(leaf);
        // Every remedy needs the records in order, some several times.
        page.sort();
        let plan = match choice.remedy(&page.view(), key, value_len) {
            Some(Remedy::Relayout(layout)) => return page.relayout(layout),
            Some(Remedy::Split(plan)) => plan,
            None => return Err(Refused::NoSpace),
        };
        let (mut right, mut marks) = (vec![0; size], ChangeMap::new());
        let mut other = PageMut::new(&mut right, &mut marks);
        page.split_into(&mut other, number, &plan)?;
        if choice.is_adaptive() {
            adapt(&mut page)?;
            adapt(&mut other)?;
        }
        let right = self.nodes.push(&right);
        self.insert_child(1, &plan.separator, right)
    }

    /// Inserts a node that was split off into the level above.
    fn insert_child(&mut self, height: usize, separator: &[u8], child: u64) -> Result<(), Refused> {
        if height > self.height {
            return self.grow(separator, child);
        }
        loop {
            let node = self.node_at(height, separator);
            match self.edit(node).put(separator, &child.to_le_bytes()) {
                Ok(_) => return Ok(()),
                Err(Refused::NoSpace) => {
                    let (middle, right) = self.split_inner(node)?;
                    self.insert_child(height + 1, &middle, right)?;
                }
                Err(refused) => return Err(refused),
            }
        }
    }

    /// Splits an inner node at the same position as a leaf, but at a whole separator: that moves
    /// up, and its child becomes the first child of the new node (§2).
    fn split_inner(&mut self, node: u64) -> Result<(Vec<u8>, u64), Refused> {
        let mut right = vec![0; self.node_bytes + ENVELOPE_BYTES];
        let number = PageId(self.nodes.len() as u64);
        let page = self.view(node);
        let at = page.choose_separator().ok_or(Refused::NoSpace)?.at;
        let middle = page.key(at);
        let first = Lsn(child(page.value(at)));
        let records = (at + 1..page.count()).map(|i| (page.key(i), page.value(i)));
        PageMut::new(&mut right, &mut ChangeMap::new()).build(
            page.layout(),
            number,
            &middle,
            page.upper_fence(),
            first,
            records,
        )?;
        self.edit(node).truncate_to(&middle)?;
        Ok((middle, self.nodes.push(&right)))
    }

    /// Creates a new root above the old one and its new neighbour.
    fn grow(&mut self, separator: &[u8], child: u64) -> Result<(), Refused> {
        let layout = match self.choice.general() {
            PageLayout::Fingerprint => PageLayout::Hints,
            other => other,
        };
        let mut bytes = vec![0; self.node_bytes + ENVELOPE_BYTES];
        let number = PageId(self.nodes.len() as u64);
        let mut root = PageMut::new(&mut bytes, &mut self.changes);
        root.init(layout, number, b"", None)?;
        root.set_lsn(Lsn(self.root));
        root.put(separator, &child.to_le_bytes())?;
        self.root = self.nodes.push(&bytes);
        self.height += 1;
        Ok(())
    }

    /// Bytes of memory for nodes, including envelopes and alignment.
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        self.nodes.allocated_bytes()
    }

    /// Counts the tree's nodes and records.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let mut leaves = vec![self.root];
        for _ in 0..self.height {
            let inner = leaves.iter().map(|node| self.view(*node));
            leaves = inner
                .flat_map(|inner| {
                    let rest = inner.iter().map(|(_, value)| child(value));
                    std::iter::once(first_child(inner)).chain(rest)
                })
                .collect();
        }
        let mut counts = Counts {
            node_bytes: self.node_bytes,
            inner: self.nodes.len() - leaves.len(),
            ..Counts::default()
        };
        for leaf in leaves {
            counts.add_leaf(self.view(leaf));
        }
        counts
    }
}

/// Position of an inner node's lowest keys.
#[inline]
fn first_child(inner: PageRef<'_>) -> u64 {
    inner.lsn().0
}

#[inline]
fn child(value: &[u8]) -> u64 {
    let number: Child = value.try_into().unwrap_or_default();
    u64::from_le_bytes(number)
}

/// Key adaption (§5.1).
fn adapt(page: &mut PageMut<'_>) -> Result<(), Refused> {
    if let Some(layout) = page.view().better_layout() {
        page.relayout(layout)?;
    }
    page.judge_heads();
    Ok(())
}
