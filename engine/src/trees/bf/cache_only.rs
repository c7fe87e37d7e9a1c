//! Cache-only mode: mini-pages without leaves, and so without a disk (Bf-Tree §4; `cache_only` in
//! the paper's code).
//!
//! ```text
//!   index     "" -> page 0        "g" -> page 7        "q" -> page 3
//!   ring      [ a b d ]           [ g h ]              (no mini-page any more)
//! ```
//!
//! This is a bounded, ordered, concurrent map that forgets. Cold mini-pages reach the ring's head
//! and are dropped. When a used mini-page is moved, its unused records are dropped, too. A get
//! returns the value that was put last, or nothing, but never an older value. A mini-page that has
//! become too large is split. Ranges without a mini-page are given to their left neighbour, a few
//! with each split, so the index stays in proportion to the ring.
//!
//! All records are [`Kind::Cache`], or [`Kind::Phantom`] for deleted keys. The locks are those of
//! [`super`].

use super::counters::Counters;
use super::mirror::give_part;
use super::page::{
    SPARE_ROOM, address, keep, locate_and_lock, lock, lock_before, marks_of, note_put, note_use,
    ring_sizes, unexpected, with_room,
};
use crate::error::{Error, Result};
use crate::events::Hook;
use crate::index::Index;
use crate::kv::{Kv, Visitor};
use crate::mapping::PageError;
use crate::mini::events::Event as Told;
use crate::mini::{self, Kind, Leaf, MiniMut, MiniRef};
use crate::mutation;
use crate::node::{self, Limits, common_prefix};
use crate::options::BfOptions;
use crate::ring::{AllocateError, Exclusive, MARK_BYTES, Ring, RingOptions, Shared};
use crate::rows::{self, Rows};
use crate::stats::Stats;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::types::Lsn;

/// The page size whose limits apply to records.
const PAGE: usize = 4096;

/// Number of ranges that each split checks for ones without a mini-page.
const SWEEP: usize = 4;

/// An ordered map of bounded size in memory: mini-pages without leaves (Bf-Tree §4). As a [`Kv`] it
/// is not durable: `sync` waits for nothing.
///
/// ```
/// use treering_engine::{BfOptions, CacheOnly, Kv, Result};
///
/// # fn main() -> Result<()> {
/// let cache = CacheOnly::new(1 << 20, BfOptions::default())?;
/// cache.put(b"apple", b"red")?;
/// let mut value = Vec::new();
/// assert!(cache.get(b"apple", &mut value)? && value == b"red");
/// cache.delete(b"apple")?;
/// assert!(!cache.get(b"apple", &mut value)?);
/// # Ok(())
/// # }
/// ```
pub struct CacheOnly {
    index: Index,
    ring: Ring,
    limits: Limits,
    /// Payload of the largest mini-page.
    largest: usize,
    writes: AtomicU64,
    /// Where the next sweep begins.
    cursor: Mutex<Vec<u8>>,
    counters: Counters,
    /// Never observed: there is no protocol with leaves.
    hook: Hook<Told>,
}

impl CacheOnly {
    /// Makes an empty cache with `bytes` bytes of mini-pages. The index and the mapping table need
    /// additional memory: about 50 bytes for each mini-page.
    ///
    /// # Errors
    /// [`Error::BadOption`] if `bytes` or `options` are invalid.
    pub fn new(bytes: u64, options: BfOptions) -> Result<CacheOnly> {
        options.check()?;
        let capacity = usize::try_from(bytes / PAGE as u64 * PAGE as u64).unwrap_or(usize::MAX);
        let sizes = ring_sizes(PAGE, capacity, options.growth_percent);
        let largest = sizes.last().copied().unwrap_or(0) - MARK_BYTES;
        let ring = RingOptions {
            capacity,
            copy_on_access_percent: options.copy_on_access_percent,
            sizes,
            // The ring cannot hold more mini-pages than this, and ranges without one are swept.
            pages: (bytes / 64).max(1 << 16).next_multiple_of(1 << 16),
            marks: true,
        };
        let bad = |why: String| Error::BadOption { name: "cache", why };
        let ring = Ring::new(&ring).map_err(|e| bad(e.to_string()))?;
        let first = ring
            .create_page(address(None))
            .map_err(|e| unexpected(&e))?;
        Ok(CacheOnly {
            index: Index::new(first),
            ring,
            limits: node::limits(PAGE),
            largest,
            writes: AtomicU64::new(0),
            cursor: Mutex::new(Vec::new()),
            counters: Counters::default(),
            hook: Hook::new(None),
        })
    }

    fn lock_exclusive(&self, key: &[u8]) -> Result<Exclusive<'_>> {
        lock(&self.index, &self.hook, key, |page| {
            self.ring.exclusive(page)
        })
        .map(|(_, guard)| guard)
    }

    fn make_room(&self, full: &AllocateError) {
        if let AllocateError::Full(full) = full {
            let forget = |_, _: &mut [u8]| Ok::<_, std::convert::Infallible>(address(None));
            let Ok(_) = self.ring.make_room(full.short.max(SPARE_ROOM), forget);
        }
    }

    fn copy_to_tail(&self, guard: Shared<'_>) {
        if let Ok(guard) = guard.try_upgrade() {
            self.move_to_tail(guard);
        }
    }

    /// Moves a mini-page to the tail, without the records that were not used since its last move.
    fn move_to_tail(&self, guard: Exclusive<'_>) {
        let marks = marks_of(guard.marks());
        if keep(guard, &self.hook, |index| marks.is_hot(index, false)).is_none() {
            Counters::add(&self.counters.copies_to_tail, 1);
        }
    }

    /// Puts a record or a phantom.
    fn change(&self, kind: Kind, key: &[u8], value: &[u8]) -> Result<Lsn> {
        self.limits.check(key.len(), value.len())?;
        loop {
            let guard = self.lock_exclusive(key)?;
            let mini = guard.bytes().map(MiniRef::new);
            if kind == Kind::Phantom && mini.is_none_or(|mini| mini.find(key).is_none()) {
                break;
            }
            let needed = match mini {
                Some(mini) => mini.bytes_with(key, value.len()),
                None => mini::bytes_for(1, key.len() + value.len()),
            };
            if needed > self.largest {
                self.split(guard)?;
                continue;
            }
            match with_room(guard, &self.hook, needed, Leaf::NONE, Lsn(0)) {
                Ok(mut guard) => {
                    let block = guard.bytes_mut().expect("a block was made");
                    let at = MiniMut::new(block).put(kind, key, value);
                    note_put(&guard, at);
                    if guard.in_copy_on_access_region() {
                        self.move_to_tail(guard);
                    }
                    break;
                }
                Err(none) => self.make_room(&none.give_back()),
            }
        }
        Ok(Lsn(self.writes.fetch_add(1, Ordering::Relaxed) + 1))
    }

    /// Splits a mini-page of two or more records near its middle.
    fn split(&self, mut left: Exclusive<'_>) -> Result<()> {
        let bytes = left.bytes().map(<[u8]>::to_vec).unwrap_or_default();
        let old = MiniRef::new(&bytes);
        let mut sum = 0;
        let half = old.bytes_of(|_| true) / 2;
        let at = (0..old.count()).position(|index| {
            sum += old.bytes_of(|i| i == index) - old.bytes_of(|_| false);
            sum > half
        });
        let at = at.unwrap_or(1).clamp(1, old.count() - 1);
        let (below, above) = (old.entry(at - 1).key, old.entry(at).key);
        let separator = &above[..=common_prefix(below, above)];
        let right = match self.ring.create_page(address(None)) {
            Ok(right) => right,
            // A cache may forget: dropping the mini-page removes the need for a split.
            Err(PageError::OutOfPages { .. }) => {
                left.set_leaf(address(None));
                return Ok(());
            }
            Err(e) => return Err(unexpected(&e)),
        };
        // Both stay locked until the index has the separator. Otherwise a record could be put into
        // the wrong one.
        let right_guard = self.ring.exclusive(right).map_err(|e| unexpected(&e))?;
        let stale = usize::from(mutation::on("cache-split-keeps") && old.count() > 4);
        let left = give_part(Some(old), left, Leaf::NONE, |index| index < at + stale);
        let right_guard = give_part(Some(old), right_guard, Leaf::NONE, |index| index >= at);
        self.index.insert(separator, right);
        drop((left, right_guard));
        self.sweep()
    }

    /// Gives some ranges without a mini-page to their left neighbours.
    fn sweep(&self) -> Result<()> {
        let Some(mut cursor) = self.cursor.try_lock() else {
            return Ok(());
        };
        let ranges = self.index.range(&cursor, SWEEP);
        *cursor = match ranges.last() {
            Some((fence, _)) if ranges.len() == SWEEP => [fence, &b"\0"[..]].concat(),
            _ => Vec::new(),
        };
        for (fence, page) in ranges.into_iter().filter(|(fence, _)| !fence.is_empty()) {
            let guard = match self.ring.try_exclusive(page) {
                Ok(Some(guard)) if guard.bytes().is_none() => guard,
                Ok(_) | Err(PageError::Unknown { .. }) => continue,
                Err(e) => return Err(unexpected(&e)),
            };
            // Another thread may have swept the range, and the id may belong to another range by
            // now.
            if self.index.find(&fence) == page && self.index.remove(&fence) {
                guard.free_page();
            }
        }
        Ok(())
    }
}

impl CacheOnly {
    /// Copies the records of a page that are at or after `from` and below `before`.
    fn copy_rows(&self, guard: Shared<'_>, from: &[u8], before: Option<&[u8]>, rows: &mut Rows) {
        let Some(mini) = guard.bytes().map(MiniRef::new) else {
            return;
        };
        let (Ok(first) | Err(first)) = mini.search(from);
        for index in first..mini.count() {
            let entry = mini.entry(index);
            if before.is_some_and(|before| entry.key >= before) {
                break;
            }
            if entry.kind.exists() {
                rows.push(&[entry.key], entry.value);
                note_use(guard.marks(), mini.mark(index));
            }
        }
        if guard.in_copy_on_access_region() {
            self.copy_to_tail(guard);
        }
    }
}

impl Kv for CacheOnly {
    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let (_, guard) = lock(&self.index, &self.hook, key, |page| self.ring.shared(page))?;
        let found = guard.bytes().map(MiniRef::new).and_then(|mini| {
            let index = mini.search(key).ok()?;
            let entry = mini.entry(index);
            note_use(guard.marks(), mini.mark(index));
            value.extend_from_slice(entry.value);
            Some(entry.kind)
        });
        let counter = match found {
            Some(kind) => &self.counters.lookups().hits[kind as usize],
            None => &self.counters.lookups().misses,
        };
        Counters::add(counter, 1);
        if found.is_some() && guard.in_copy_on_access_region() {
            self.copy_to_tail(guard);
        }
        Ok(found.is_some_and(Kind::exists))
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<Lsn> {
        self.change(Kind::Cache, key, value)
    }

    fn delete(&self, key: &[u8]) -> Result<Lsn> {
        self.change(Kind::Phantom, key, b"")
    }

    fn scan(&self, from: &[u8], visit: &mut Visitor<'_>) -> Result<()> {
        rows::scan(from, visit, |at, rows| {
            let (located, guard) =
                locate_and_lock(&self.index, &self.hook, at, |page| self.ring.shared(page))?;
            let upper = self.index.fence_behind(at, &located);
            // The range may have grown to the right meanwhile; those records come with the next
            // page.
            self.copy_rows(guard, at, upper.as_deref(), rows);
            Ok(upper)
        })
    }

    fn scan_back(&self, before: Option<&[u8]>, visit: &mut Visitor<'_>) -> Result<()> {
        rows::scan_back(before, visit, |before, rows| {
            let (lower, _, guard) = lock_before(&self.index, &self.hook, &self.ring, before)?;
            self.copy_rows(guard, &lower, before, rows);
            Ok(lower)
        })
    }

    fn sync(&self, _lsn: Lsn) -> Result<()> {
        Ok(())
    }

    fn stats(&self) -> Stats {
        Stats {
            leaf_pages: self.index.len() as u64,
            index_bytes: self.index.bytes() as u64,
            bf: Some(self.counters.stats(&self.ring)),
            ..Stats::default()
        }
    }
}
