//! Where the records of each page lie, without their bytes: which bytes a change of a page changes.
//!
//! ```text
//!   header | slot 0 | slot 1 | ... | gap | record | record | record | fences
//!                     ^ an insert moves the slots behind it       ^ an update stays in its place
//! ```
//!
//! The rules are those of `engine/src/node/body_mut.rs`. A new record goes to the lower end of the
//! heap and moves the slots behind its own. A value that is not longer is written in place, where
//! the zeros at its end stay zeros. A longer one goes to the heap's end and leaves a hole. If only
//! holes have room, the page is compacted. A split lays both halves out again. A dense page has a
//! fixed place for every key (`engine/src/node/dense.rs`); keys are taken to be without gaps.
//!
//! Ranks name keys here: the records of a page have neighbouring ranks, and the slot of a record is
//! the number of live ones before it. *Ignored*: changes of the layout because of scans.
//!
//! 12 bytes per key, 32 per page.

use std::ops::Range;

use treering_engine::POINTER_BYTES;
use treering_engine::node::PageLayout;

use super::blocks::InUse;
use crate::predict::leaf::LeafLevel;
use crate::predict::workload::Workload;

/// Bytes of a place in a semi-dense page.
const SEMI_DENSE_PLACE: usize = 2;

/// Receives the byte ranges of a page that change.
pub(super) trait Touched {
    /// These bytes changed.
    fn touch(&mut self, range: Range<usize>);

    /// So did these, and all that is in them: they hold whole records.
    fn lay(&mut self, range: Range<usize>) {
        self.touch(range);
    }
}

/// A record on its page.
#[derive(Clone, Copy, Debug, Default)]
struct Record {
    /// Where the payload begins.
    at: u16,
    value: u16,
}

/// A page.
#[derive(Clone, Copy, Debug)]
struct Body {
    /// Ranks of its keys.
    from: u32,
    to: u32,
    layout: PageLayout,
    /// Whether slots are in the order of arrival.
    unsorted: bool,
    /// Whether a scan has sorted them since the page was read or written.
    sorted: bool,
    prefix: u16,
    records: u16,
    heap_start: u32,
    heap_end: u32,
    heap_used: u32,
    /// Bytes of keys that are also in holes.
    repeated: u32,
}

impl Body {
    fn slot_at(&self, index: usize) -> usize {
        let stride = match self.layout {
            PageLayout::SemiDense => SEMI_DENSE_PLACE,
            // A byte of hash stands apart.
            PageLayout::Fingerprint => self.layout.slot_bytes() - 1,
            layout => layout.slot_bytes(),
        };
        self.layout.header_bytes() + index * stride
    }

    fn slots_end(&self, records: usize) -> usize {
        match self.layout {
            PageLayout::SemiDense => self.slot_at((self.to - self.from) as usize),
            layout => layout.header_bytes() + layout.slots_bytes(records),
        }
    }

    fn gap(&self) -> usize {
        (self.heap_start as usize).saturating_sub(self.slots_end(usize::from(self.records)))
    }
}

/// The pages.
pub(super) struct Bodies<'a> {
    workload: &'a Workload,
    level: &'a LeafLevel,
    page_size: usize,
    /// The layout of a page before it becomes dense.
    general: PageLayout,
    /// Rank of each key.
    ranks: Vec<u32>,
    records: Vec<Record>,
    /// Bits of the ranks that have a record.
    live: Vec<u64>,
    /// Bits of the ranks that have a copy in a hole of their page.
    holes: Vec<u64>,
    bodies: Vec<Body>,
}

impl<'a> Bodies<'a> {
    /// Begins with one empty page.
    pub(super) fn new(
        (workload, level): (&'a Workload, &'a LeafLevel),
        page_size: usize,
        general: PageLayout,
    ) -> Bodies<'a> {
        let keys = workload.keys.len();
        let mut ranks = vec![0; keys];
        for (rank, key) in level.order.iter().enumerate() {
            ranks[*key as usize] = rank as u32;
        }
        let empty = Body {
            from: 0,
            to: 0,
            layout: general,
            unsorted: false,
            sorted: false,
            prefix: 0,
            records: 0,
            heap_start: page_size as u32,
            heap_end: page_size as u32,
            heap_used: 0,
            repeated: 0,
        };
        let mut bodies = vec![empty; level.starts.len().max(1)];
        bodies[0].to = level.order.len() as u32;
        Bodies {
            workload,
            level,
            page_size,
            general,
            ranks,
            records: vec![Record::default(); keys],
            live: vec![0; keys.div_ceil(64)],
            holes: vec![0; keys.div_ceil(64)],
            bodies,
        }
    }

    /// What of the page is in use, and its bytes before the gap.
    pub(super) fn used(&self, page: u32) -> (InUse, usize) {
        let body = &self.bodies[page as usize];
        let slots = match body.layout {
            PageLayout::FullyDense => self.page_size - body.gap(),
            _ => body.slots_end(usize::from(body.records)),
        };
        let used = InUse {
            bytes: self.page_size - body.gap(),
            repeated: body.repeated as usize,
        };
        (used, slots)
    }

    /// The record of a rank leaves its bytes behind as a hole.
    fn leave_hole(&mut self, rank: u32) {
        self.holes[rank as usize / 64] |= 1 << (rank % 64);
    }

    /// A record is laid into its page, where a hole may have its key, too.
    fn note_repeated(&mut self, page: u32, rank: u32, suffix: usize) {
        if self.holes[rank as usize / 64] >> (rank % 64) & 1 == 1 {
            self.bodies[page as usize].repeated += suffix as u32;
        }
    }

    /// A page has no holes any more.
    fn forget_holes(&mut self, page: u32) {
        let Body { from, to, .. } = self.bodies[page as usize];
        self.bodies[page as usize].repeated = 0;
        for rank in from..to {
            self.holes[rank as usize / 64] &= !(1 << (rank % 64));
        }
    }

    /// Number of bytes of a value before the zeros at its end.
    fn random(&self, value: usize) -> usize {
        if value == POINTER_BYTES {
            return value;
        }
        value - ((value as f64 * self.workload.zeros) as usize).min(value)
    }

    fn is_live(&self, rank: u32) -> bool {
        self.live[rank as usize / 64] >> (rank % 64) & 1 == 1
    }

    /// The number of records in a range of ranks.
    fn live_in(&self, ranks: Range<u32>) -> usize {
        if ranks.is_empty() {
            return 0;
        }
        let (first, last) = (ranks.start as usize / 64, (ranks.end - 1) as usize / 64);
        let count = |at: usize| {
            let low = if at == first { ranks.start % 64 } else { 0 };
            let high = if at == last { (ranks.end - 1) % 64 } else { 63 };
            let mask = (u64::MAX << low) & (u64::MAX >> (63 - high));
            (self.live[at] & mask).count_ones() as usize
        };
        (first..=last).map(count).sum()
    }

    fn live_ranks(&self, ranks: Range<u32>) -> Vec<u32> {
        ranks.filter(|rank| self.is_live(*rank)).collect()
    }

    /// Bytes of a key that its page stores.
    fn suffix(&self, rank: u32, prefix: u16) -> usize {
        let (key, _) = self.workload.keys.lens(self.level.order[rank as usize]);
        key.saturating_sub(usize::from(prefix))
    }

    /// Puts a record with a value of `value` bytes.
    pub(super) fn put(&mut self, page: u32, key: u32, value: usize, touched: &mut impl Touched) {
        let rank = self.ranks[key as usize];
        let body = self.bodies[page as usize];
        let value = value.min(self.page_size / 2);
        match (self.is_live(rank), body.layout) {
            (_, PageLayout::FullyDense) => self.put_dense(page, rank, value, touched),
            (false, _) => self.insert(page, rank, value, touched),
            (true, _) => self.replace(page, rank, value, touched),
        }
    }

    fn put_dense(&mut self, page: u32, rank: u32, value: usize, touched: &mut impl Touched) {
        let body = &mut self.bodies[page as usize];
        let place = (rank - body.from) as usize;
        let header = body.layout.header_bytes();
        let places = (body.to - body.from) as usize;
        let at = header + places.div_ceil(8) + place * value;
        let new = self.live[rank as usize / 64] >> (rank % 64) & 1 == 0;
        if new {
            self.live[rank as usize / 64] |= 1 << (rank % 64);
            body.records += 1;
            body.heap_start = body.heap_start.saturating_sub(value as u32);
            touched.touch(header - 4..header + 1 + place / 8);
        }
        let random = self.random(value);
        touched.touch(at..at + random);
    }

    fn insert(&mut self, page: u32, rank: u32, value: usize, touched: &mut impl Touched) {
        let len = self.suffix(rank, self.bodies[page as usize].prefix) + value;
        let body = self.bodies[page as usize];
        let count = usize::from(body.records);
        let growth = body.slots_end(count + 1) - body.slots_end(count);
        self.live[rank as usize / 64] |= 1 << (rank % 64);
        let at_page = &mut self.bodies[page as usize];
        at_page.records += 1;
        at_page.heap_used += len as u32;
        self.records[rank as usize].value = value as u16;
        if body.gap() < growth + len {
            let dense = self.level.leaves.get(page as usize).map(|leaf| leaf.layout);
            let free = self.page_size as i64
                - body.slots_end(count + 1) as i64
                - (self.page_size - body.heap_end as usize) as i64
                - i64::from(self.bodies[page as usize].heap_used);
            match dense.filter(|layout| layout.is_dense() && free < 0) {
                Some(layout) => self.lay_out_as(page, layout, touched),
                None => self.compact(page, Some(rank), touched),
            }
            return;
        }
        let index = match body.layout {
            PageLayout::Fingerprint => count,
            PageLayout::SemiDense => (rank - body.from) as usize,
            _ => self.live_in(body.from..rank),
        };
        if body.layout == PageLayout::Fingerprint {
            let last = self.live_in(rank + 1..body.to) == 0;
            self.bodies[page as usize].unsorted |= !last;
        }
        self.append(page, rank, len, touched);
        self.note_repeated(page, rank, len - value);
        let end = match body.layout {
            PageLayout::SemiDense => body.slot_at(index + 1),
            _ => body.slots_end(count + 1),
        };
        touched.touch(body.slot_at(index)..end);
        self.touch_header(&body, touched);
    }

    /// Writes a payload below the heap.
    fn append(&mut self, page: u32, rank: u32, len: usize, touched: &mut impl Touched) {
        if len == 0 {
            self.records[rank as usize].at = 0;
            return;
        }
        let body = &mut self.bodies[page as usize];
        body.heap_start = body.heap_start.saturating_sub(len as u32);
        let at = body.heap_start as usize;
        self.records[rank as usize].at = at as u16;
        touched.lay(at..at + len);
    }

    fn touch_header(&self, body: &Body, touched: &mut impl Touched) {
        let end = body.layout.header_bytes();
        touched.touch(end - 4..end);
    }

    fn replace(&mut self, page: u32, rank: u32, value: usize, touched: &mut impl Touched) {
        let body = self.bodies[page as usize];
        let suffix = self.suffix(rank, body.prefix);
        let old = self.records[rank as usize];
        let before = usize::from(old.value);
        self.records[rank as usize].value = value as u16;
        let used = &mut self.bodies[page as usize].heap_used;
        *used = (*used + value as u32).saturating_sub(u32::from(old.value));
        if value <= before {
            let changed = self.random(value).max(self.random(before).min(value));
            let at = usize::from(old.at) + suffix;
            touched.touch(at..at + changed);
            if value == before {
                return;
            }
        } else if suffix + value <= body.gap() {
            self.append(page, rank, suffix + value, touched);
            self.leave_hole(rank);
            self.note_repeated(page, rank, suffix);
        } else {
            self.compact(page, Some(rank), touched);
            return;
        }
        let index = match body.layout {
            PageLayout::SemiDense => (rank - body.from) as usize,
            _ => self.live_in(body.from..rank),
        };
        touched.touch(body.slot_at(index)..body.slot_at(index + 1));
        self.touch_header(&body, touched);
    }

    /// Deletes a record.
    pub(super) fn delete(&mut self, page: u32, key: u32, touched: &mut impl Touched) {
        let rank = self.ranks[key as usize];
        if !self.is_live(rank) {
            return;
        }
        let body = self.bodies[page as usize];
        let value = self.records[rank as usize].value;
        let index = self.live_in(body.from..rank);
        let count = usize::from(body.records);
        match body.layout {
            PageLayout::FullyDense => self.put_dense(page, rank, usize::from(value), touched),
            PageLayout::SemiDense => {
                let place = (rank - body.from) as usize;
                touched.touch(body.slot_at(place)..body.slot_at(place + 1));
            }
            _ => touched.touch(body.slot_at(index)..body.slots_end(count)),
        }
        self.touch_header(&body, touched);
        self.live[rank as usize / 64] &= !(1 << (rank % 64));
        self.leave_hole(rank);
        let len = self.suffix(rank, body.prefix) + usize::from(value);
        let body = &mut self.bodies[page as usize];
        body.records = body.records.saturating_sub(1);
        body.heap_used = body.heap_used.saturating_sub(len as u32);
    }

    /// A scan sorts the slots. That alone does not make the page dirty.
    pub(super) fn scan(&mut self, page: u32) {
        let body = &mut self.bodies[page as usize];
        body.sorted |= std::mem::take(&mut body.unsorted);
    }

    /// The page is read from the device, where its slots are as they were written.
    pub(super) fn load(&mut self, page: u32) {
        let body = &mut self.bodies[page as usize];
        body.unsorted |= std::mem::take(&mut body.sorted);
    }

    /// The page is about to be written.
    pub(super) fn write(&mut self, page: u32, touched: &mut impl Touched) {
        let body = &mut self.bodies[page as usize];
        if std::mem::take(&mut body.sorted) {
            touched.touch(0..body.slots_end(usize::from(body.records)));
        }
    }

    /// Lays the records out without holes. Touches what then differs. `new` was put just now and
    /// has no place yet.
    fn compact(&mut self, page: u32, new: Option<u32>, touched: &mut impl Touched) {
        let body = self.bodies[page as usize];
        let mut at = body.heap_end as usize;
        let mut used = 0;
        // The slots behind a new one move.
        let (mut index, mut moved) = (0, usize::MAX);
        for rank in self.live_ranks(body.from..body.to) {
            let value = usize::from(self.records[rank as usize].value);
            let suffix = self.suffix(rank, body.prefix);
            let len = suffix + value;
            at = at.saturating_sub(len);
            used += len;
            if usize::from(self.records[rank as usize].at) != at || new == Some(rank) {
                touched.lay(at..at + len);
                self.records[rank as usize].at = at as u16;
                moved = moved.min(index);
            }
            index += 1;
        }
        self.forget_holes(page);
        // What was heap is zeros now.
        touched.touch(body.heap_start as usize..at);
        touched.touch(body.slot_at(moved.min(index))..body.slots_end(index));
        self.touch_header(&body, touched);
        let body = &mut self.bodies[page as usize];
        body.heap_start = at as u32;
        body.heap_used = used as u32;
        body.unsorted = false;
        body.records = index as u16;
    }

    fn lay_out_as(&mut self, page: u32, layout: PageLayout, touched: &mut impl Touched) {
        self.bodies[page as usize].layout = layout;
        self.bodies[page as usize].prefix = match layout.is_dense() {
            // A dense page stores no keys.
            true => u16::MAX,
            false => self.prefix(page),
        };
        touched.touch(0..self.page_size);
        self.compact(page, None, touched);
    }

    /// The fence where a page begins.
    fn fence(&self, page: u32) -> &'a [u8] {
        let level = self.level;
        let rank = level.starts.get(page as usize).copied().unwrap_or(0);
        let Some(leaf) = level.leaves.get(page as usize).filter(|_| page > 0) else {
            return &[];
        };
        let key = level.order.get(rank as usize);
        let key = key.map_or(&[][..], |key| self.workload.key(*key));
        &key[..key.len().min(leaf.fence_len as usize)]
    }

    fn upper(&self, page: u32) -> Option<&'a [u8]> {
        let end = self.bodies[page as usize].to;
        let next = self.level.starts.partition_point(|start| *start < end);
        (next < self.level.starts.len()).then(|| self.fence(next as u32))
    }

    fn prefix(&self, page: u32) -> u16 {
        let layout = self.bodies[page as usize].layout;
        layout.prefix_bytes(self.fence(page), self.upper(page)) as u16
    }

    /// A page was split: both halves are laid out again.
    pub(super) fn split(&mut self, left: u32, right: u32, touched: &mut impl Touched) {
        let start = self.level.starts[right as usize];
        let old = self.bodies[left as usize];
        self.bodies[left as usize].to = start;
        self.bodies[right as usize].from = start;
        self.bodies[right as usize].to = old.to;
        self.settle(right, &mut Nothing);
        let prefix = self.settle(left, touched);
        if prefix != old.prefix {
            touched.touch(0..self.page_size);
        }
    }

    /// A page absorbs its right neighbour.
    pub(super) fn merge(&mut self, left: u32, right: u32, touched: &mut impl Touched) {
        let end = self.bodies[right as usize].to;
        let absorbed = &mut self.bodies[right as usize];
        (absorbed.from, absorbed.to, absorbed.records) = (end, end, 0);
        let layout = self.general;
        self.bodies[left as usize].to = end;
        if self.bodies[left as usize].layout.is_dense() {
            self.bodies[left as usize].layout = layout;
            touched.touch(0..self.page_size);
        }
        self.settle(left, touched);
    }

    /// Lays a page out between its fences, and returns its prefix.
    fn settle(&mut self, page: u32, touched: &mut impl Touched) -> u16 {
        let leaf = self.level.leaves.get(page as usize);
        let layout = leaf.map_or(self.general, |leaf| leaf.layout);
        let before = self.bodies[page as usize].layout;
        self.bodies[page as usize].layout = match (layout.is_dense(), before.is_dense()) {
            (true, true) => before,
            (true, false) | (false, true) => self.general,
            (false, false) => layout,
        };
        let fences = self.fence(page).len() + self.upper(page).map_or(0, <[u8]>::len);
        let prefix = self.prefix(page);
        let old_end = self.bodies[page as usize].heap_end;
        let body = &mut self.bodies[page as usize];
        if body.layout != before {
            touched.touch(0..self.page_size);
        }
        body.prefix = prefix;
        body.heap_end = (self.page_size - fences) as u32;
        let (start, end) = (body.heap_end.min(old_end), self.page_size);
        touched.touch(start as usize..end);
        self.compact(page, None, touched);
        prefix
    }
}

/// For pages whose changes are not of interest.
pub(super) struct Nothing;

impl Touched for Nothing {
    fn touch(&mut self, _: Range<usize>) {}
}
