//! Caches of pages: the curves of [`reuse`](super::reuse) for the leaves of a tree instead of keys.
//!
//! **Pages.** All keys of the trace, in order, are cut into pages of equal numbers of records. A page
//! holds as many records of mean size (key and value) as fit into 69 % of it: what random inserts
//! leave in the pages of a B-tree (ln 2; Yao, "On random 2-3 trees", Acta Informatica 9, 1978). Keys
//! of all operations count, also deleted ones and those that are only read, so the pages are those
//! of a tree at the end that merges none. Put, delete and get access the page of their key. A scan
//! accesses all pages that hold its records.
//!
//! ```text
//! keys in order:  a b c d e f | g h i j k l | m n ...      put h: writes page 1
//!                    page 0   |   page 1    | page 2       scan 4 records from e: pages 0 and 1
//! ```
//!
//! **Passes.** The pages are known once all keys are, so the accesses are played in a second pass. It
//! takes about as long as the first.
//!
//! **Memory.** The first pass keeps the keys in a list. If there are more than [`MOST_KEYS`] or
//! [`MOST_BYTES`], every second one is dropped by its hash, and so on. Then the rest are *fences*
//! at nearly equal distances in key order. They cut the keys into zones of about [`ZONE_PAGES`]
//! pages (fewer if pages have so many records that there would be few zones). One zone in 2^level
//! is chosen by a hash, a second pass collects the keys of the chosen zones, and a third one plays
//! the accesses to them. A scan that leaves a chosen zone goes on at its beginning, so that pages
//! get as many visits as they should. Of all these pages, a sample of at most
//! [`reuse::MOST_KEYS`](super::reuse::MOST_KEYS) is tracked.

use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use xxhash_rust::xxh3::xxh3_64;

use super::kinds::is_write;
use super::reuse::{self, Reuse};
use crate::import::ImportOptions;
use crate::{Header, Op, OpKind, OpSource, TraceError};

/// The most keys that are held: just below the capacity of a table of 2^20 hash buckets, 16 MiB.
const MOST_KEYS: usize = 900_000;
/// The most bytes of keys that are held.
const MOST_BYTES: usize = 48 << 20;
/// The share of a page that records fill.
const FILL: f64 = 0.69;
/// The number of pages in a zone, if there are then [`ZONES`] zones or more.
const ZONE_PAGES: usize = 64;
/// The fewest pages in a zone.
const LEAST_PAGES: usize = 8;
/// The number of zones that should be chosen at least.
const ZONES: usize = 64;
/// The sizes that a page may have.
const SIZES: std::ops::RangeInclusive<u32> = 512..=1 << 20;

/// How least-recently-used caches of pages of all sizes would do.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PageCurve {
    /// Bytes of a page.
    pub page_bytes: u32,
    /// Share of a page that records fill.
    pub fill: f64,
    /// Number of records of a page.
    pub records_per_page: u32,
    /// Number of pages that hold all keys of the trace; an estimate if the curve is.
    pub pages: u64,
    /// Mean number of pages that a scan accesses; `None` without scans.
    pub pages_per_scan: Option<f64>,
    /// Whether the curve is an estimate from a sample of the pages. If not, it is exact up to 128
    /// pages, and beyond that for a size that differs by at most 1.6 %.
    pub estimated: bool,
    /// Share of the pages that were tracked.
    pub sampled: f64,
    /// In order of size, up to the number of pages accessed.
    pub points: Vec<PagePoint>,
}

/// A cache size and what a least-recently-used cache of that size does.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PagePoint {
    /// Number of pages that the cache holds.
    pub pages: u64,
    /// Share of the accesses to pages that miss, among them the first one to each page.
    pub misses: f64,
    /// Pages written back per put and delete; `None` if there are none of these. Pages that are
    /// still dirty at the end are not among them.
    pub written_back: Option<f64>,
}

/// How much is held at most.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) keys: usize,
    pub(super) bytes: usize,
    /// Of tracked pages.
    pub(super) pages: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            keys: MOST_KEYS,
            bytes: MOST_BYTES,
            pages: reuse::MOST_KEYS,
        }
    }
}

/// A list of keys in one piece of memory.
#[derive(Default)]
struct Keys {
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

impl Keys {
    fn push(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len() as u32);
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    fn span(&self, i: usize) -> Range<usize> {
        let start = i.checked_sub(1).map_or(0, |before| self.ends[before]);
        start as usize..self.ends[i] as usize
    }

    fn get(&self, i: usize) -> &[u8] {
        &self.bytes[self.span(i)]
    }

    fn retain(&mut self, is_kept: impl Fn(&[u8]) -> bool) {
        let (mut start, mut kept, mut end) = (0, 0, 0);
        for i in 0..self.len() {
            let span = start..self.ends[i] as usize;
            start = span.end;
            if is_kept(&self.bytes[span.clone()]) {
                let len = span.len();
                self.bytes.copy_within(span, end);
                end += len;
                self.ends[kept] = end as u32;
                kept += 1;
            }
        }
        self.ends.truncate(kept);
        self.bytes.truncate(end);
    }

    /// The indices of the keys in their order.
    fn sorted(&self) -> Vec<u32> {
        // Most comparisons are decided by the bytes behind what all keys begin with.
        let common = match self.len() {
            0 => 0,
            _ => self.in_common(),
        };
        let start = |i: usize| {
            let key = self.get(i)[common..].iter().take(8);
            key.enumerate()
                .fold(0, |all, (at, &byte)| all | u64::from(byte) << (56 - 8 * at))
        };
        let mut order: Vec<(u64, u32)> = (0..self.len()).map(|i| (start(i), i as u32)).collect();
        let key = |i: u32| self.get(i as usize);
        order.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| key(a.1).cmp(key(b.1))));
        order.into_iter().map(|(_, i)| i).collect()
    }

    /// The number of bytes with which all keys begin.
    fn in_common(&self) -> usize {
        let first = self.get(0);
        (1..self.len()).fold(first.len(), |len, i| {
            let pairs = first[..len].iter().zip(self.get(i));
            pairs.take_while(|(a, b)| a == b).count()
        })
    }
}

/// The keys of a trace, or a sample of them by their hashes, and the sizes of its records.
pub(super) struct KeySample {
    limits: Limits,
    level: u32,
    keys: Keys,
    puts: u64,
    value_bytes: u64,
}

impl KeySample {
    pub(super) fn new(limits: Limits) -> KeySample {
        KeySample {
            limits,
            level: 0,
            keys: Keys::default(),
            puts: 0,
            value_bytes: 0,
        }
    }

    /// Takes a key that no earlier operation had, and its hash.
    pub(super) fn meet(&mut self, key: &[u8], hash: u64) {
        if !is_sampled(hash, self.level) {
            return;
        }
        self.keys.push(key);
        while self.keys.len() > self.limits.keys || self.keys.bytes.len() > self.limits.bytes {
            self.level += 1;
            let level = self.level;
            self.keys.retain(|key| is_sampled(xxh3_64(key), level));
        }
    }

    /// Takes the length of a put's value.
    pub(super) fn put(&mut self, value_len: u32) {
        self.puts += 1;
        self.value_bytes += u64::from(value_len);
    }

    /// The number of records of a page. If there are no puts, values are as long as those that a
    /// replay loads first.
    fn per_page(&self, page_bytes: u32) -> u32 {
        let mean = |sum: u64, count: u64| sum as f64 / count.max(1) as f64;
        let keys = mean(self.keys.bytes.len() as u64, self.keys.len() as u64);
        let values = match self.puts {
            0 => f64::from(ImportOptions::default().value_size),
            puts => mean(self.value_bytes, puts),
        };
        ((FILL * f64::from(page_bytes) / (keys + values).max(1.0)) as u32).max(1)
    }
}

fn is_sampled(hash: u64, level: u32) -> bool {
    hash.leading_zeros() >= level
}

/// Ranges of keys, of which some are chosen.
struct Zones {
    /// The first keys of all zones but the first one.
    fences: Keys,
    chosen: Vec<bool>,
}

impl Zones {
    /// Cuts at keys of the sample, and chooses one zone of 2^level.
    fn new(sample: &KeySample, per_page: u32) -> Zones {
        let (level, page) = (sample.level, per_page as usize);
        // As many keys as the limit are in chosen zones.
        let keys = (ZONE_PAGES * page).min(sample.limits.keys / ZONES);
        let keys = keys.max(LEAST_PAGES * page);
        let mut fences = Keys::default();
        for &i in sample
            .keys
            .sorted()
            .iter()
            .skip(1)
            .step_by((keys >> level).max(1))
        {
            fences.push(sample.keys.get(i as usize));
        }
        let group = 1 << level;
        let is_chosen = |zone: usize| {
            let draw = xxh3_64(&(zone / group).to_le_bytes()) as usize;
            zone % group == draw % group
        };
        let chosen = (0..=fences.len()).map(is_chosen).collect();
        Zones { fences, chosen }
    }

    fn of(&self, key: &[u8]) -> usize {
        let (mut from, mut to) = (0, self.fences.len());
        while from < to {
            let middle = from.midpoint(to);
            match self.fences.get(middle) <= key {
                true => from = middle + 1,
                false => to = middle,
            }
        }
        from
    }
}

/// Where the keys are.
struct Layout {
    per_page: u32,
    /// The pages stand for 2^level times as many.
    level: u32,
    /// Places of keys by their hashes. A page is `per_page` places.
    places: FxHashMap<u64, u32>,
    /// The places of each zone, which begins with a page.
    zones: Vec<Range<u32>>,
}

impl Layout {
    fn new(per_page: u32, level: u32) -> Layout {
        Layout {
            per_page,
            level,
            places: FxHashMap::default(),
            zones: Vec::new(),
        }
    }

    /// Adds a zone with these keys.
    fn add<'a>(&mut self, keys: impl Iterator<Item = &'a [u8]>) {
        let end = self.zones.last().map_or(0, |zone| zone.end);
        let start = end.next_multiple_of(self.per_page);
        let mut place = start;
        for key in keys {
            self.places.insert(xxh3_64(key), place);
            place += 1;
        }
        self.zones.push(start..place);
    }

    /// The number of pages of the trace.
    fn pages(&self) -> u64 {
        let pages = self.zones.iter().map(|zone| self.of(zone).len() as u64);
        pages.sum::<u64>() << self.level
    }

    /// The pages of these places.
    fn of(&self, places: &Range<u32>) -> Range<u32> {
        places.start / self.per_page..places.end.div_ceil(self.per_page)
    }

    /// The pages that an operation on the key with this hash accesses, as two ranges. `None` if the
    /// key is not in a chosen zone.
    fn accesses(&self, op: &Op, hash: u64) -> Option<[Range<u32>; 2]> {
        let place = *self.places.get(&hash)?;
        let wanted = u64::from(place) + u64::from(records(op));
        let zone = &self.zones[self.zones.partition_point(|zone| zone.end <= place)];
        let end = wanted.min(u64::from(zone.end)) as u32;
        let pages = self.of(&(place..end));
        if self.level == 0 || wanted <= u64::from(zone.end) {
            return Some([pages, 0..0]);
        }
        // The scan goes on at the beginning of the zone, up to the page where it began.
        let left = (wanted - u64::from(zone.end)).min(u64::from(zone.end - zone.start)) as u32;
        let again = self.of(&(zone.start..zone.start + left));
        let again = again.start..again.end.min(pages.start);
        Some([pages, again])
    }
}

/// The number of records from its key on that an operation accesses.
fn records(op: &Op) -> u32 {
    match op.kind {
        OpKind::Scan => op.scan_len.max(1),
        OpKind::Get | OpKind::Put | OpKind::Delete => 1,
    }
}

/// Checks the size of a page.
pub(super) fn check(page_bytes: u32) -> Result<(), TraceError> {
    match SIZES.contains(&page_bytes) {
        true => Ok(()),
        false => Err(TraceError::parameter(
            "page",
            format!("expected 512 bytes to 1 MiB, found {page_bytes} bytes"),
        )),
    }
}

/// Plays the trace on caches of pages. `open` begins it anew. Returns `None` if no operation is
/// measured.
pub(super) fn curve<S: OpSource>(
    sample: KeySample,
    header: &Header,
    page_bytes: u32,
    mut open: impl FnMut() -> Result<S, TraceError>,
) -> Result<Option<PageCurve>, TraceError> {
    let per_page = sample.per_page(page_bytes);
    let most_pages = sample.limits.pages;
    let layout = match sample.level {
        0 => {
            let mut layout = Layout::new(per_page, 0);
            let order = sample.keys.sorted();
            layout.add(order.iter().map(|&i| sample.keys.get(i as usize)));
            layout
        }
        level => {
            let zones = Zones::new(&sample, per_page);
            drop(sample);
            zoned(&zones, Layout::new(per_page, level), &mut open()?)?
        }
    };
    play(&layout, header, (page_bytes, most_pages), &mut open()?)
}

/// Collects the keys of the chosen zones.
fn zoned(
    zones: &Zones,
    mut layout: Layout,
    source: &mut dyn OpSource,
) -> Result<Layout, TraceError> {
    let (mut keys, mut seen) = (Keys::default(), FxHashSet::default());
    let mut op = Op::default();
    while source.next_op(&mut op)? {
        if zones.chosen[zones.of(&op.key)] && seen.insert(xxh3_64(&op.key)) {
            keys.push(&op.key);
        }
    }
    drop(seen);
    let zone = |i: &u32| zones.of(keys.get(*i as usize));
    for in_zone in keys.sorted().chunk_by(|a, b| zone(a) == zone(b)) {
        layout.add(in_zone.iter().map(|&i| keys.get(i as usize)));
    }
    Ok(layout)
}

/// Plays the measured operations.
fn play(
    layout: &Layout,
    header: &Header,
    (page_bytes, most_pages): (u32, usize),
    source: &mut dyn OpSource,
) -> Result<Option<PageCurve>, TraceError> {
    let mut reuse = Reuse::of_sample(most_pages, layout.level);
    let (mut elsewhere, mut writes_elsewhere, mut records_beyond) = (0, 0, 0);
    let (mut scans, mut pages_of_scans) = (0_u64, 0_u64);
    let (mut op, mut ops) = (Op::default(), 0);
    while source.next_op(&mut op)? {
        ops += 1;
        if ops <= header.warmup_ops {
            continue;
        }
        let write = is_write(op.kind);
        let Some(pages) = layout.accesses(&op, xxh3_64(&op.key)) else {
            elsewhere += 1;
            writes_elsewhere += u64::from(write);
            records_beyond += u64::from(records(&op) - 1);
            continue;
        };
        if op.kind == OpKind::Scan {
            scans += 1;
            pages_of_scans += pages.iter().map(|range| range.len() as u64).sum::<u64>();
        }
        for page in pages.into_iter().flatten() {
            reuse.access(xxh3_64(&page.to_le_bytes()), write);
        }
    }
    let accesses_elsewhere = elsewhere + records_beyond / u64::from(layout.per_page);
    reuse.elsewhere(accesses_elsewhere, writes_elsewhere);
    let pages_per_scan = (scans > 0).then(|| pages_of_scans as f64 / scans as f64);
    Ok(reuse.finish().map(|curve| PageCurve {
        page_bytes,
        fill: FILL,
        records_per_page: layout.per_page,
        pages: layout.pages(),
        pages_per_scan,
        estimated: curve.estimated,
        sampled: curve.sampled,
        points: (curve.points.iter())
            .map(|point| PagePoint {
                pages: point.keys,
                misses: point.misses,
                written_back: point.written_back,
            })
            .collect(),
    }))
}

#[cfg(test)]
mod tests;
