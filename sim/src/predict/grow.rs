//! Computes how a leaf fills, splits and changes its layout, from ranks and byte counts only. This
//! is the recursion behind [`super::leaf`].
//!
//! ```text
//!           refused, and records could be dense        refused, and all would fit slots
//!  range --> fill -----------------------------> dense --------------------------> slots, go on
//!             |  ^                                 |
//!             |  +-- go on with the next key       | refused, beyond the last place
//!             v                                    v
//!           split: where most could be dense,   split there: no record moves
//!           else about the middle
//! ```
//!
//! The rules are those of a store's leaves (`engine/src/node/choice.rs`, B-Trees Are Back §3.5,
//! §5.1) for a user that puts records and never scans. A dense page is represented by its places
//! only ([`treering_engine::node::places`]), any other page by two sums.

use treering_engine::node::adapt::{RECORDS_A_COLLISION, Use};
use treering_engine::node::{LayoutChoice, PageLayout, Places, places};

use super::grown::{Leaf, Split, part};
use super::workload::Workload;

/// Where to split a page that cannot be fully dense although most of its records could (B-Trees Are
/// Back §3.5 "Partition Detection").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PartitionSplit {
    /// Where the places of that dense page would end. The page to the right of a dense page has no
    /// dense layout at first.
    #[default]
    AtPlaces,
    /// Before the next key, which is beyond the places. The published code does this when it looks
    /// for partitions (`m-mueller678/btree-cpp`, `DenseNode`). Keys between the places and that
    /// key, if any come, get a leaf of their own at a dense split, a dense one if the first is
    /// within half a page. No dense leaf changes its layout for having few records.
    BeforeNextKey,
    /// In the middle, as the published code does when it does not look for partitions. Otherwise
    /// like `BeforeNextKey`.
    AtMiddle,
}

/// Bytes of a value's length field in a semi-dense page.
const VALUE_LEN_BYTES: usize = 2;

/// Lengths of the records of a dense page.
#[derive(Clone, Copy, Debug)]
struct Shape {
    key_len: usize,
    value_len: usize,
}

/// A key range whose leaves are not computed yet.
struct Range {
    /// The range's part of the insertion order.
    keys: std::ops::Range<usize>,
    /// How many of these keys are already there because a split moved them.
    present: usize,
    /// First rank of the range.
    start: u32,
    lower: Vec<u8>,
    upper: Option<Vec<u8>>,
    layout: PageLayout,
    /// Lengths of the records, if the layout is dense.
    shape: Option<Shape>,
    /// In an adaptive tree, whether the leaf's heads were never judged, or were found bad with no
    /// room for fingerprints. One of its uses will judge them.
    unjudged: bool,
}

/// The properties of a page that decide whether it takes a record.
struct Page {
    layout: PageLayout,
    /// Number of key bytes that are not stored, because all keys share them.
    prefix: usize,
    records: usize,
    used: usize,
    dense: Option<(Shape, Places)>,
}

/// Where to split.
struct Plan {
    separator: Vec<u8>,
    /// Index of the first record that moves.
    at: usize,
    right: PageLayout,
}

/// What to do with a page that refused a record.
enum Remedy {
    Relayout(Page),
    Split(Plan),
}

/// The state of the recursion.
pub(super) struct Growth<'a> {
    workload: &'a Workload,
    /// Key indices in key order: `order[rank]`.
    order: &'a [u32],
    page_size: usize,
    choice: LayoutChoice,
    partitions: PartitionSplit,
    /// Whether all keys come in ascending order. Then no keys need to be moved at a split, which
    /// saves much: there is a split for every half page.
    ascending: bool,
    pub(super) leaves: Vec<Leaf>,
    pub(super) leaf_starts: Vec<u32>,
    pub(super) splits: Vec<Split>,
    scratch: Vec<u32>,
}

impl<'a> Growth<'a> {
    pub(super) fn new(
        workload: &'a Workload,
        order: &'a [u32],
        page_size: usize,
        (choice, partitions): (LayoutChoice, PartitionSplit),
    ) -> Self {
        Growth {
            workload,
            order,
            page_size,
            choice,
            partitions,
            ascending: false,
            leaves: Vec::new(),
            leaf_starts: Vec::new(),
            splits: Vec::new(),
            scratch: Vec::new(),
        }
    }

    fn key(&self, rank: u32) -> &'a [u8] {
        self.workload.key(self.order[rank as usize])
    }

    fn value_len(&self, rank: u32) -> usize {
        (self.workload).stored_len(self.order[rank as usize], self.page_size)
    }

    fn first_put(&self, rank: u32) -> u32 {
        self.workload.keys.first_put(self.order[rank as usize])
    }

    /// Grows all ranges from left to right.
    pub(super) fn run(&mut self, inserted: &mut [u32], (lower, upper): (&[u8], Option<&[u8]>)) {
        self.ascending = inserted.is_sorted();
        let mut ranges = vec![Range {
            keys: 0..inserted.len(),
            present: 0,
            start: 0,
            lower: lower.to_vec(),
            upper: upper.map(<[u8]>::to_vec),
            layout: self.choice.general(),
            shape: None,
            // Only the first leaf of a whole tree is unjudged. In a part of a tree, a split has
            // judged it.
            unjudged: self.choice.is_adaptive() && lower.is_empty() && upper.is_none(),
        }];
        while let Some(range) = ranges.pop() {
            let keys = &mut inserted[range.keys.clone()];
            if let Some((left, right)) = self.fill_or_split(&range, keys) {
                ranges.push(right);
                ranges.push(left);
            }
        }
    }

    /// Fills a page until it must be split, and returns both halves. If it need not be, it becomes
    /// a leaf.
    fn fill_or_split(&mut self, range: &Range, keys: &mut [u32]) -> Option<(Range, Range)> {
        let dense = (range.shape).and_then(|shape| self.empty_dense(range, range.layout, shape));
        let mut page = dense.unwrap_or_else(|| self.empty(range, range.layout));
        let mut unjudged = range.unjudged;
        let mut at = 0;
        while at < keys.len() {
            let cost = match at < range.present {
                true => Some(self.cost(&page, keys[at])),
                false => self.room(&page, keys[at]),
            };
            if let Some(cost) = cost {
                page.used += cost;
                page.records += 1;
                at += 1;
                if unjudged && at > range.present && self.is_counted(keys[at - 1]) {
                    let present = sorted(&keys[..at]);
                    let suited = self.suited_layout(range, &present);
                    if suited == page.layout {
                        unjudged = false;
                    } else if let Some(other) = self.with(self.empty(range, suited), &present) {
                        (page, unjudged) = (other, false);
                    }
                }
                continue;
            }
            let present = sorted(&keys[..at]);
            match self.remedy(range, &page, &present, keys[at]) {
                Remedy::Relayout(other) => (page, unjudged) = (other, false),
                Remedy::Split(plan) => {
                    return Some(self.split(range, keys, (&page, &present), &plan));
                }
            }
        }
        let last = keys.last().map_or(0, |&r| self.first_put(r));
        self.leaf_starts.push(range.start);
        self.leaves.push(Leaf {
            layout: page.layout,
            records: keys.len() as u32,
            used_bytes: page.used as u32,
            fence_len: range.lower.len() as u32,
            reads: 0.0,
            scans: 0.0,
            writes: 0.0,
            in_runs: 0.0,
            loaded: (keys.len() - range.present) as u32,
            last_insert: last,
        });
        None
    }
}

/// Operations on pages.
impl Growth<'_> {
    fn empty(&self, range: &Range, layout: PageLayout) -> Page {
        let upper = range.upper.as_deref();
        Page {
            layout,
            prefix: layout.prefix_bytes(&range.lower, upper),
            records: 0,
            used: layout.header_bytes() + range.lower.len() + upper.map_or(0, <[u8]>::len),
            dense: None,
        }
    }

    /// An empty dense page; `None` if the range cannot have one.
    fn empty_dense(&self, range: &Range, layout: PageLayout, shape: Shape) -> Option<Page> {
        let fences = (&range.lower[..], range.upper.as_deref());
        let places = places(
            layout,
            self.page_size,
            fences,
            shape.key_len,
            shape.value_len,
        );
        let places = places.ok()?;
        Some(Page {
            layout,
            prefix: places.fixed_bytes(),
            records: 0,
            used: places.used_bytes(),
            dense: Some((shape, places)),
        })
    }

    /// Bytes that one more record takes.
    fn cost(&self, page: &Page, rank: u32) -> usize {
        let value = self.value_len(rank);
        match page.layout {
            PageLayout::FullyDense => value,
            PageLayout::SemiDense => VALUE_LEN_BYTES + value,
            // The index over the slots may grow by several entries at once.
            slots => {
                let slot = slots.slots_bytes(page.records + 1) - slots.slots_bytes(page.records);
                slot + self.key(rank).len().saturating_sub(page.prefix) + value
            }
        }
    }

    /// Bytes that one more record takes; `None` if the page refuses it.
    fn room(&self, page: &Page, rank: u32) -> Option<usize> {
        let cost = self.cost(page, rank);
        let takes = match &page.dense {
            Some((_, places)) if !places.has(self.key(rank)) => false,
            Some((shape, _)) if page.layout == PageLayout::FullyDense => {
                self.value_len(rank) == shape.value_len
            }
            // A page with fewer than two records always has room (`engine/src/node/limit.rs`).
            None if page.records < 2 => true,
            _ => page.used + cost <= self.page_size,
        };
        takes.then_some(cost)
    }

    /// The page with these records added; `None` if it refuses one of them.
    fn with(&self, mut page: Page, ranks: &[u32]) -> Option<Page> {
        for &rank in ranks {
            page.used += self.room(&page, rank)?;
            page.records += 1;
        }
        Some(page)
    }
}

/// What to do with a page that refused a record. Mirrors `LayoutChoice::remedy`.
impl<'a> Growth<'a> {
    fn remedy(&self, range: &Range, page: &Page, present: &[u32], refused: u32) -> Remedy {
        if page.dense.is_some() {
            return self.remedy_for_dense(range, page, present, refused);
        }
        if let Some(dense) = self.choice.dense() {
            let may = page.layout != PageLayout::Fingerprint || !self.choice.is_adaptive();
            if let Some(page) = may
                .then(|| self.as_dense(range, dense, present, refused))
                .flatten()
            {
                return Remedy::Relayout(page);
            }
            if dense == PageLayout::FullyDense
                && self.partitions != PartitionSplit::AtMiddle
                && let Some(plan) = self.partition(range, page, present)
            {
                return Remedy::Split(plan);
            }
        }
        Remedy::Split(self.around_the_middle(page, present))
    }

    /// The page in dense layout; `None` unless all its records can be dense and the refused one has
    /// the same lengths.
    fn as_dense(
        &self,
        range: &Range,
        dense: PageLayout,
        present: &[u32],
        refused: u32,
    ) -> Option<Page> {
        let first = *present.first()?;
        let shape = Shape {
            key_len: self.key(first).len(),
            value_len: self.value_len(first),
        };
        let like = self.key(refused).len() == shape.key_len
            && (dense == PageLayout::SemiDense || self.value_len(refused) == shape.value_len);
        if !like {
            return None;
        }
        self.with(self.empty_dense(range, dense, shape)?, present)
    }

    fn remedy_for_dense(
        &self,
        range: &Range,
        page: &Page,
        present: &[u32],
        refused: u32,
    ) -> Remedy {
        let general = || {
            let page = self.with(self.empty(range, self.choice.general()), present)?;
            self.room(&page, refused).map(|_| page)
        };
        if let Some((_, places)) = &page.dense
            && let Some(end) = places.end()
            && page.layout == PageLayout::FullyDense
            && range.upper.as_deref().is_none_or(|upper| end < upper)
            && self.key(refused) >= end
        {
            let published = self.partitions != PartitionSplit::AtPlaces;
            let wasteful = !published && self.is_three_quarters_free(range, page, present);
            if let Some(page) = wasteful.then(general).flatten() {
                return Remedy::Relayout(page);
            }
            let near = |key| {
                let distance = places.distance(key);
                distance.is_some_and(|distance| distance < places.count() * 3 / 2)
            };
            return Remedy::Split(Plan {
                separator: end.to_vec(),
                at: present.len(),
                right: match published && near(self.key(refused)) {
                    true => page.layout,
                    false => self.choice.general(),
                },
            });
        }
        match general() {
            Some(page) => Remedy::Relayout(page),
            None => Remedy::Split(self.around_the_middle(page, present)),
        }
    }

    /// Whether the records of a dense page would fill at most a quarter of a page with slots.
    fn is_three_quarters_free(&self, range: &Range, page: &Page, present: &[u32]) -> bool {
        let mut slots = self.empty(range, LayoutChoice::of(page.layout).general());
        slots.prefix = page.prefix;
        for &rank in present {
            slots.used += self.cost(&slots, rank);
            slots.records += 1;
        }
        self.page_size.saturating_sub(slots.used) >= self.page_size / 4 * 3
    }

    /// A split whose left side holds all records that fit a fully dense page. `None` if these are
    /// all records, or less than half of them.
    fn partition(&self, range: &Range, page: &Page, present: &[u32]) -> Option<Plan> {
        let (first, rest) = present.split_first()?;
        let key = self.key(*first);
        let value_len = self.value_len(*first);
        // The first record alone determines which keys have a place.
        let upper = [key, &[0]].concat();
        let fences = (&range.lower[..], Some(&upper[..]));
        let (layout, size) = (PageLayout::FullyDense, self.page_size);
        let places = places(layout, size, fences, key.len(), value_len).ok()?;
        let belongs =
            |rank: &u32| self.value_len(*rank) == value_len && places.has(self.key(*rank));
        let at = 1 + rest.iter().position(|rank| !belongs(rank))?;
        if at < present.len() / 2 {
            return None;
        }
        let (last, next) = (self.key(present[at - 1]), self.key(present[at]));
        let end = (places.end()).filter(|end| *end <= next && end.len() <= next.len());
        let separator = match (self.partitions, end) {
            (PartitionSplit::BeforeNextKey, _) => next,
            (_, Some(end)) => end,
            (_, None) => next.get(..=common_prefix(last, next))?,
        };
        Some(Plan {
            separator: separator.to_vec(),
            at,
            right: page.layout,
        })
    }

    /// A split near the median by bytes, where the separator is shortest (B-Trees Are Back §2). In
    /// dense pages it is the median by records.
    fn around_the_middle(&self, page: &Page, present: &[u32]) -> Plan {
        let count = present.len();
        let middle = match page.layout.is_dense() {
            true => count / 2,
            false => self.byte_median(page, present),
        };
        let middle = middle.clamp(1, count - 1);
        let keys = (count / 16).max(2);
        let first = middle.saturating_sub(keys / 2);
        let end = (first + keys).min(count);
        let lowest = self.key(present[first]);
        let shared = common_prefix(lowest, self.key(present[end - 1]));
        let at = (first + 1..end)
            .find(|&i| self.key(present[i]).get(shared) != lowest.get(shared))
            .unwrap_or(middle);
        Plan {
            separator: self.separator(present[at - 1], present[at]),
            at,
            right: page.layout,
        }
    }

    /// Number of records left of the boundary that divides the bytes most evenly.
    fn byte_median(&self, page: &Page, present: &[u32]) -> usize {
        let slot = page.layout.slot_bytes();
        let bytes = |rank: u32| {
            slot + self.key(rank).len().saturating_sub(page.prefix) + self.value_len(rank)
        };
        let total: usize = present.iter().map(|&rank| bytes(rank)).sum();
        let mut left = 0;
        for (i, &rank) in present.iter().enumerate() {
            let more = left + bytes(rank);
            if 2 * more > total {
                let closer_without = total - 2 * left <= 2 * more - total;
                return if closer_without { i } else { i + 1 };
            }
            left = more;
        }
        present.len() - 1
    }

    /// The shortest string that is above key `below` and not above key `from`.
    fn separator(&self, below: u32, from: u32) -> Vec<u8> {
        let key = self.key(from);
        let shared = common_prefix(self.key(below), key);
        key[..(shared + 1).min(key.len())].to_vec()
    }

    fn split(
        &mut self,
        range: &Range,
        keys: &mut [u32],
        (page, present): (&Page, &[u32]),
        plan: &Plan,
    ) -> (Range, Range) {
        let (at, separator) = (plan.at, &plan.separator);
        let high = present.get(at).copied().unwrap_or(self.order.len() as u32);
        let boundary = self.first_rank_from(separator, present[at - 1] + 1, high);
        let moved: usize = (present[at..].iter())
            .map(|&r| self.moved_bytes(r, page.prefix))
            .sum();
        self.splits.push(Split {
            time: self.first_put(keys[present.len()]),
            from: boundary,
            moved: (present.len() - at) as u32,
            moved_bytes: (page.prefix + moved) as u32,
            separator_len: separator.len() as u32,
        });
        let left_len = match self.ascending {
            true => keys.partition_point(|rank| *rank < boundary),
            false => part(keys, boundary, &mut self.scratch),
        };
        let middle = range.keys.start + left_len;
        let shape = page.dense.as_ref().map(|(shape, _)| *shape);
        let mut left = Range {
            keys: range.keys.start..middle,
            present: at,
            start: range.start,
            lower: range.lower.clone(),
            upper: Some(separator.clone()),
            layout: page.layout,
            shape,
            unjudged: false,
        };
        let mut right = Range {
            keys: middle..range.keys.end,
            present: present.len() - at,
            start: boundary,
            lower: separator.clone(),
            upper: range.upper.clone(),
            layout: plan.right,
            shape: shape.filter(|_| plan.right.is_dense()),
            unjudged: false,
        };
        if self.choice.is_adaptive() {
            self.adapt(&mut left, &present[..at]);
            self.adapt(&mut right, &present[at..]);
        }
        (left, right)
    }

    /// Key adaption after a split: chooses the layout that suits the range's keys.
    fn adapt(&self, range: &mut Range, present: &[u32]) {
        if range.layout.is_dense() {
            return;
        }
        let suited = self.suited_layout(range, present);
        if self.with(self.empty(range, suited), present).is_some() {
            range.layout = suited;
        }
        range.unjudged = range.layout == PageLayout::Hints && suited != range.layout;
    }

    /// Hints if heads tell most keys apart, otherwise fingerprints (B-Trees Are Back §5.1).
    fn suited_layout(&self, range: &Range, present: &[u32]) -> PageLayout {
        let prefix = PageLayout::Hints.prefix_bytes(&range.lower, range.upper.as_deref());
        let head = |rank: u32| {
            let suffix = self.key(rank).get(prefix..).unwrap_or_default();
            let mut head = [0; 4];
            let len = suffix.len().min(4);
            head[..len].copy_from_slice(&suffix[..len]);
            head
        };
        let pairs = present.windows(2);
        let same = pairs.filter(|pair| head(pair[0]) == head(pair[1])).count();
        match same > present.len() / RECORDS_A_COLLISION {
            true => PageLayout::Fingerprint,
            false => PageLayout::Hints,
        }
    }

    /// Whether the put of this record is one of the uses that trigger a judgement.
    fn is_counted(&self, rank: u32) -> bool {
        Use::Point.counts(u64::from(self.first_put(rank)) * self.workload.tick)
    }

    /// The first rank in `low..=high` whose key is not below `separator`. The key of `high` must
    /// not be below it.
    fn first_rank_from(&self, separator: &[u8], mut low: u32, mut high: u32) -> u32 {
        while low < high {
            let middle = low + (high - low) / 2;
            if self.key(middle) < separator {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Bytes of a record in the list that the log record of a split carries. `prefix` bytes are
    /// shared by all keys of the page.
    fn moved_bytes(&self, rank: u32, prefix: usize) -> usize {
        let key = self.key(rank).len().saturating_sub(prefix);
        let value = self.value_len(rank);
        let lengths = super::log::varint_len(key as u64) + super::log::varint_len(value as u64);
        lengths as usize + key + value
    }
}

fn sorted(ranks: &[u32]) -> Vec<u32> {
    let mut ranks = ranks.to_vec();
    ranks.sort_unstable();
    ranks
}

pub(super) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}
