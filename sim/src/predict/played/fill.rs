//! How full pages are, in bytes of their live records: which pages a delete leaves sparse, and which
//! have no room for another record.
//!
//! 2 bytes per key, 4 per page. Slots, prefixes and fences count with their averages.

use std::ops::Range;

use treering_engine::node::PageLayout;

use crate::predict::leaf::LeafLevel;
use crate::predict::workload::{NEVER, Workload};

/// Bytes of the two lengths of a record in a log record of a split or merge, if they are short.
const LENGTHS: f64 = 2.0;

/// The records of all pages, as they are once everything that was written is in its page.
pub(super) struct Fill<'a> {
    workload: &'a Workload,
    order: &'a [u32],
    page_size: f64,
    /// Bytes of each key's value as leaves store it.
    values: Vec<u16>,
    /// Bytes of keys and values in each page.
    used: Vec<u32>,
    /// Bytes that a record takes beside key and value, and a page beside its records.
    beside: f64,
    header: f64,
    /// Bytes of the common prefix of a page's keys.
    prefix: f64,
}

impl<'a> Fill<'a> {
    /// Empty pages.
    pub(super) fn new(
        (workload, level): (&'a Workload, &'a LeafLevel),
        page_size: usize,
        (layout, pages): (PageLayout, usize),
    ) -> Fill<'a> {
        let leaves = level.leaves.len().max(1) as f64;
        let header = level.leaves.first().map_or(0, |leaf| {
            leaf.layout.header_bytes() as u32 + 2 * leaf.fence_len
        });
        let put = level.order.iter();
        let put = put.filter(|key| workload.keys.first_put(**key) != NEVER);
        let (mut records, mut payload) = (0.0, 0.0);
        for key in put {
            let (key_len, _) = workload.keys.lens(*key);
            payload += (key_len + workload.stored_len(*key, page_size)) as f64;
            records += 1.0;
        }
        let used: f64 = level.leaves.iter().map(|l| f64::from(l.used_bytes)).sum();
        let beside = (used - leaves * f64::from(header) - payload) / f64::max(records, 1.0);
        Fill {
            workload,
            order: &level.order,
            page_size: page_size as f64,
            values: vec![0; level.order.len()],
            used: vec![0; pages],
            beside,
            header: header.into(),
            prefix: (layout.slot_bytes() as f64 - beside).max(0.0),
        }
    }

    /// Bytes of a key's value.
    pub(super) fn value(&self, key: u32) -> usize {
        self.values[key as usize].into()
    }

    /// Bytes of a key and its value.
    pub(super) fn bytes(&self, key: u32) -> u32 {
        let (key_len, _) = self.workload.keys.lens(key);
        key_len as u32 + u32::from(self.values[key as usize])
    }

    /// The record of a key of this page, which was `live`, gets a value of so many bytes, or none.
    pub(super) fn note(&mut self, page: u32, (key, live): (u32, bool), value: Option<usize>) {
        if live {
            let before = self.bytes(key);
            let used = &mut self.used[page as usize];
            *used = used.saturating_sub(before);
        }
        if let Some(value) = value {
            self.values[key as usize] = value.min(usize::from(u16::MAX)) as u16;
            self.used[page as usize] += self.bytes(key);
        }
    }

    /// Free bytes of a page with so many records; negative if they do not fit.
    pub(super) fn free(&self, page: u32, records: u32) -> f64 {
        let beside = self.header + f64::from(records) * self.beside;
        self.page_size - beside - f64::from(self.used[page as usize])
    }

    /// Whether a page with so many records has no room for one more of so many bytes.
    pub(super) fn lacks_room(&self, page: u32, records: u32, bytes: usize) -> bool {
        self.free(page, records) < bytes as f64 + self.beside
    }

    /// Whether three quarters of a page are unused.
    pub(super) fn is_sparse(&self, page: u32, records: u32) -> bool {
        self.free(page, records) >= self.page_size * 0.75
    }

    /// Whether the records of two pages fit one.
    pub(super) fn fit_one(&self, left: (u32, u32), right: (u32, u32)) -> bool {
        let used = |(page, records)| self.page_size - self.free(page, records) - self.header;
        self.header + used(left) + used(right) <= self.page_size
    }

    /// Bytes that the log record of a split or merge has for these records.
    pub(super) fn moved_bytes(&self, page: u32, records: u32) -> f64 {
        let each = LENGTHS - self.prefix;
        (f64::from(self.used[page as usize]) + f64::from(records) * each).max(0.0) + self.prefix
    }

    /// A page was split: the live keys of the right half moved. Returns their number.
    pub(super) fn split(
        &mut self,
        (left, right): (u32, u32),
        moved: Range<usize>,
        is_live: impl Fn(u32) -> bool,
    ) -> u32 {
        let live = self.order[moved].iter().filter(|key| is_live(**key));
        let (mut bytes, mut records) = (0, 0);
        for key in live {
            bytes += self.bytes(*key);
            records += 1;
        }
        let used = &mut self.used[left as usize];
        *used = used.saturating_sub(bytes);
        self.used[right as usize] = bytes;
        records
    }

    /// A page absorbs its right neighbour.
    pub(super) fn merge(&mut self, left: u32, right: u32) {
        let moved = std::mem::take(&mut self.used[right as usize]);
        self.used[left as usize] += moved;
    }

    /// Where to split the keys of a page: the start, of those given in order, that divides its
    /// live bytes most evenly.
    pub(super) fn middle(
        &self,
        keys: Range<usize>,
        starts: impl Iterator<Item = (u32, usize)>,
        is_live: impl Fn(u32) -> bool,
    ) -> Option<u32> {
        let bytes = |range: Range<usize>| -> i64 {
            let live = self.order[range].iter().filter(|key| is_live(**key));
            live.map(|key| i64::from(self.bytes(*key))).sum()
        };
        let all = bytes(keys.clone());
        let (mut at, mut left) = (keys.start, 0);
        let mut best: Option<(i64, u32)> = None;
        for (leaf, start) in starts {
            left += bytes(at..start);
            at = start;
            let uneven = (2 * left - all).abs();
            let both = left > 0 && left < all;
            if both && best.is_none_or(|(least, _)| uneven < least) {
                best = Some((uneven, leaf));
            }
        }
        best.map(|(_, leaf)| leaf)
    }
}
