//! The conventional B-tree over a page cache: the baseline of every comparison.
//!
//! ```text
//!   index (memory):  "" -> page 0   "g" -> page 7   "q" -> page 3      latch-free descent
//!   leaves (cache):  [ "" , "g" )   [ "g" , "q" )   [ "q" , +inf )     latched, with fences
//! ```
//!
//! Every operation descends the index without latches, latches one leaf, and checks that the leaf
//! covers the key. The leaf's fences are authoritative; the index is only a fast way to the leaf.
//! If its answer has become outdated, the operation descends again.
//!
//! A change to a leaf appends its log record, and sets the leaf's LSN to the record's, under the
//! same exclusive latch. So the log's order is the order of changes for each page, which is all
//! that page-wise redo needs (see [`crate::store`], `recovery`).
//!
//! Structure changes (`smo`) hold the latches of the leaves they change, left before right, and
//! update the index before releasing them. A thread that needs a second page gets the frame for it
//! before the first latch, or releases the leaf to wait for it ([`crate::pager`], `frames`).
//! B-Trees Are Back §2 defines where to split, and `notes` in [`crate::trees`] when to merge. If
//! configured, leaves for which writers wait are split, too (`contention`).
//!
//! Cost: a point operation is one descent, O(log n) comparisons in the leaf, and at most one page
//! read.

mod adapt;
mod contention;
mod log_room;
mod merge;
mod share;
mod smo;

use crate::cache::{Fix, ReadGuard, WriteGuard};
use crate::error::{Error, Result};
use crate::events::{Event, Leaf, Snapshot};
use crate::index::Index;
use crate::kv::Visitor;
use crate::mutation;
use crate::node::adapt::Use;
use crate::node::{self, LayoutChoice, Limits, PageRef, Refused};
use crate::options::{ContentionSplit, Options};
use crate::overflow::{self, Pointer};
use crate::pager::{Pager, Spare};
use crate::pages::PageStore as _;
use crate::rows;
use crate::snapshot::ENTRY_BYTES;
use crate::sync::Arc;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::trees::notes::Notes;
use crate::types::{Lsn, PageId};
use crate::wal::Record;
use log_room::{LogRoom, Room};

/// Slots that only sharing out a leaf may take ([`share`]), which frees more than it takes.
const SHARING_SLOTS: u64 = 4;

/// The slots that a split must leave free.
#[derive(Clone, Copy, Debug)]
enum Keep {
    /// Those that index snapshots need, and those that sharing needs to make room.
    Reserve,
    /// Those that index snapshots need.
    Snapshots,
}

/// The conventional B-tree, see the module documentation.
pub(crate) struct BTree {
    pub(crate) pager: Arc<Pager>,
    pub(crate) index: Index,
    /// Decides the layouts of new leaves, and of leaves without room or place for a record.
    choice: LayoutChoice,
    limits: Limits,
    log_room: LogRoom,
    /// Bytes of all fences in the index, which a snapshot must hold.
    fence_bytes: AtomicU64,
    pub(crate) splits: AtomicU64,
    pub(crate) merges: AtomicU64,
    /// Leaves that may need a merge.
    pub(crate) notes: Notes,
    /// The number of uses of leaves so far, if uses are counted.
    uses: AtomicU64,
    /// The rule for splitting leaves for which writers wait; without it, they are not split.
    contention: Option<ContentionSplit>,
    /// Writes that waited for the latch of their leaf.
    pub(crate) contended_writes: AtomicU64,
    /// The part of `splits` that was due to contention.
    pub(crate) contention_splits: AtomicU64,
}

/// The result of an attempt at a change.
pub(crate) enum Attempt<T> {
    Done(T),
    /// The leaf was split or the descent was outdated: try again.
    Again,
    /// The log has no room: a checkpoint must make some first. No latch is held.
    LogFull,
    /// No page is free. No latch is held.
    StoreFull,
}

impl<T> Attempt<T> {
    /// Maps the value of a successful attempt.
    pub(crate) fn map<U>(self, done: impl FnOnce(T) -> U) -> Attempt<U> {
        self.and_then(|it| Attempt::Done(done(it)))
    }

    /// Continues a successful attempt with `next`.
    pub(crate) fn and_then<U>(self, next: impl FnOnce(T) -> Attempt<U>) -> Attempt<U> {
        match self {
            Attempt::Done(it) => next(it),
            Attempt::Again => Attempt::Again,
            Attempt::LogFull => Attempt::LogFull,
            Attempt::StoreFull => Attempt::StoreFull,
        }
    }
}

impl BTree {
    pub(crate) fn new(pager: Arc<Pager>, index: Index, options: &Options) -> BTree {
        let limits = node::limits(pager.layout.page_size);
        let mut fence_bytes = 0;
        index.for_each(|fence, _| fence_bytes += fence.len() as u64);
        BTree {
            pager,
            index,
            choice: options.leaf_layouts(),
            limits,
            log_room: LogRoom::new(),
            fence_bytes: AtomicU64::new(fence_bytes),
            splits: AtomicU64::new(0),
            merges: AtomicU64::new(0),
            notes: Notes::default(),
            uses: AtomicU64::new(0),
            contention: options.contention_split,
            contended_writes: AtomicU64::new(0),
            contention_splits: AtomicU64::new(0),
        }
    }

    /// The number of slots that a split must leave free. Index snapshots need some, for the present
    /// one and the next: a store that cannot write a snapshot could neither be checkpointed nor
    /// opened again.
    fn kept_slots(&self, keep: Keep) -> u64 {
        if mutation::on("leaves-take-every-slot") {
            return 0;
        }
        let entries = ENTRY_BYTES * self.index.len();
        let bytes = self.fence_bytes.load(Ordering::Relaxed) + entries as u64;
        let chunk = self.pager.layout.page_size - self.limits.max_key - 64;
        let snapshots = 2 * bytes.div_ceil(chunk as u64) + 12;
        match keep {
            Keep::Reserve => snapshots + SHARING_SLOTS,
            Keep::Snapshots => snapshots,
        }
    }

    /// Reserves log space for a record of `bytes` bytes. Returns `None` if there is none.
    fn room(&self, bytes: usize) -> Option<Room<'_>> {
        self.log_room.at_once(&self.pager.log, bytes)
    }

    /// As [`BTree::room`], for an operation that is about to begin: waits while the log's room is
    /// reserved by others. Returns `None` if only a checkpoint can make room. The caller must hold
    /// no latch, lock, or reservation.
    pub(in crate::trees) fn room_in_turn(&self, bytes: usize) -> Option<Room<'_>> {
        self.log_room.in_turn(&self.pager.log, bytes)
    }

    /// Appends a record under a [`Room`]. If that fails nevertheless, the page is changed but not
    /// logged, so the store is poisoned.
    pub(crate) fn append(&self, record: &Record<'_>) -> Result<Lsn> {
        self.pager
            .log
            .append(record)
            .inspect_err(|e| self.pager.poison(e))
    }

    /// Notes that the page has the change of the record at `lsn`.
    fn changed(&self, leaf: &mut WriteGuard<'_>, page: PageId, lsn: Lsn) {
        leaf.changed(lsn);
        self.pager.volume.tell(|| Event::PageChanged { page, lsn });
        (self.pager.volume).tell(|| Event::Leaf(Leaf::of(&leaf.view())));
    }

    /// Latches the leaf that covers `key` for reading.
    fn leaf(&self, key: &[u8]) -> Result<ReadGuard<'_>> {
        loop {
            let page = self.index.find(key);
            if let Fix::Got(leaf) = self.pager.read(page)? {
                if leaf.view().covers(key) || mutation::on("trust-index") {
                    return Ok(leaf);
                }
                self.check_moved(key, page, &leaf.view())?;
            }
            crate::sync::yield_now();
        }
    }

    /// Reads the leaves of these ascending keys. Returns their number.
    ///
    /// # Errors
    /// Device failures, and damage of a leaf.
    pub(crate) fn check_leaves<'k>(&self, keys: impl Iterator<Item = &'k [u8]>) -> Result<u64> {
        let mut leaves = 0;
        let mut covered: Option<Vec<u8>> = Some(Vec::new());
        for key in keys {
            if covered.as_deref().is_some_and(|upper| upper <= key) {
                let leaf = self.leaf(key)?;
                covered = leaf.view().upper_fence().map(<[u8]>::to_vec);
                leaves += 1;
            }
        }
        Ok(leaves)
    }

    /// Returns whether as many pages can be split off, and snapshots still find the slots that they
    /// need then.
    pub(crate) fn has_room_for(&self, pages: u64) -> bool {
        // The index grows with the pages. An entry of the snapshot takes less than half a slot.
        let kept = self.kept_slots(Keep::Reserve) + pages / 2 + 8;
        self.pager.pages.free_places() > kept + pages
    }

    /// Latches the leaf that covers `key` for writing. Returns its page, too.
    fn leaf_mut(&self, key: &[u8]) -> Result<(PageId, WriteGuard<'_>)> {
        loop {
            let page = self.index.find(key);
            if let Fix::Got(leaf) = self.pager.write(page)? {
                if leaf.view().covers(key) {
                    return Ok((page, leaf));
                }
                self.check_moved(key, page, &leaf.view())?;
            }
            crate::sync::yield_now();
        }
    }

    /// Called under the latch of the leaf that the index returned for `key` but that does not cover
    /// it. Splits and merges change the index under the latches of their leaves, so by now the
    /// index must return another leaf. If it does not, it is damaged, and retrying would never end.
    pub(in crate::trees) fn check_moved(
        &self,
        key: &[u8],
        page: PageId,
        leaf: &PageRef<'_>,
    ) -> Result<()> {
        if self.index.find(key) != page {
            return Ok(());
        }
        Err(Error::Damaged {
            what: page.to_string(),
            lba: self.pager.pages.place(page),
            expected: "a leaf that covers the key for which the index returned it".into(),
            found: format!(
                "one with fences {:02x?} and {:02x?}",
                leaf.lower_fence(),
                leaf.upper_fence()
            ),
        })
    }

    /// The limits of keys, and of records that are stored whole in a leaf.
    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Writes a long value to places of its own.
    pub(crate) fn try_write_value(&self, key: &[u8], value: &[u8]) -> Result<Attempt<Pointer>> {
        let keep = self.kept_slots(Keep::Reserve);
        let written = self.pager.write_value(key, value, keep)?;
        Ok(written.map_or(Attempt::StoreFull, Attempt::Done))
    }

    /// The pointer to a long value that the leaf has under `key`, if it has one.
    #[inline]
    pub(in crate::trees) fn pointer_in(
        &self,
        page: PageId,
        leaf: &PageRef<'_>,
        key: &[u8],
    ) -> Option<Pointer> {
        if !self.pager.overflow.may_be_in(page) {
            return None;
        }
        leaf.get(key).and_then(Pointer::of)
    }

    /// Notes a value that may be a pointer. Called under the latch or lock of `page`, before the
    /// record that sets a key in it to `value` is appended.
    #[inline]
    pub(in crate::trees) fn note_value(&self, page: PageId, value: &[u8]) {
        if overflow::is_pointer(value) {
            self.pager.overflow.mark(page);
        }
    }

    /// Retires a long value, if there is one: from the record at `lsn` on, nothing refers to it.
    #[inline]
    pub(in crate::trees) fn retire_value(&self, pointer: Option<Pointer>, lsn: Lsn) {
        if let Some(pointer) = pointer {
            self.pager.retire_value(pointer, lsn);
        }
    }

    pub(crate) fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        if key.len() > self.limits.max_key {
            return Ok(false);
        }
        let leaf = self.leaf(key)?;
        self.pager.volume.tell(|| Event::PageRead {
            page: leaf.view().page_id(),
            lsn: leaf.view().lsn(),
        });
        let mut found = leaf.view().get(key);
        if mutation::on("harmless-second-look") {
            found = leaf.view().get(key);
        }
        if mutation::on("empty-value-is-absent") {
            found = found.filter(|bytes| !bytes.is_empty());
        }
        if let Some(bytes) = found {
            value.extend_from_slice(bytes);
        }
        let found = found.is_some();
        if self.counts(Use::Point) {
            drop(leaf);
            self.count_use(key, Use::Point)?;
        }
        Ok(found)
    }

    /// Sets a key in the leaf that covers it, or splits the leaf.
    pub(crate) fn try_put(&self, key: &[u8], value: &[u8]) -> Result<Attempt<Lsn>> {
        let bytes = key.len() + value.len();
        let Some(room) = self.room_in_turn(bytes) else {
            return Ok(Attempt::LogFull);
        };
        let mut tried = self.put_with(None, None, key, value)?;
        if tried.is_none() {
            let spare = self.pager.spare()?;
            tried = self.put_with(Some(spare), None, key, value)?;
        }
        drop(room);
        if !matches!(tried, Some(Attempt::LogFull)) {
            return Ok(tried.unwrap_or(Attempt::Again));
        }
        // Other operations have reserved what a split would take: reserve that, too, and start
        // again.
        let Some(room) = self.room_in_turn(bytes + self.pager.layout.page_size) else {
            return Ok(Attempt::LogFull);
        };
        let tried = self.put_with(None, Some(room), key, value)?;
        Ok(tried.unwrap_or(Attempt::Again))
    }

    /// Tries to put, with a spare and log space for a split if the caller has them. Returns `None`,
    /// without holding a latch, if a spare is needed that must be waited for.
    fn put_with(
        &self,
        spare: Option<Spare<'_>>,
        room: Option<Room<'_>>,
        key: &[u8],
        value: &[u8],
    ) -> Result<Option<Attempt<Lsn>>> {
        let (page, mut leaf) = self.leaf_mut(key)?;
        let replaced = self.pointer_in(page, &leaf.view(), key);
        match leaf.edit().put(key, value) {
            Ok(_) => {
                self.note_value(page, value);
                let lsn = self.append(&Record::Put { page, key, value })?;
                self.retire_value(replaced, lsn);
                self.changed(&mut leaf, page, lsn);
                if self.counts(Use::Point) {
                    self.count_use_of(page, &mut leaf, Use::Point)?;
                }
                self.note_write(page, leaf, key, lsn)?;
                Ok(Some(Attempt::Done(lsn)))
            }
            Err(Refused::NoSpace | Refused::Unfit) => {
                let refuses = Leaf::Refuses { page };
                self.pager.volume.tell(|| Event::Leaf(refuses));
                let spare = match spare {
                    Some(spare) => Some(spare),
                    None => self.pager.spare_under_latch()?,
                };
                let Some(spare) = spare else { return Ok(None) };
                let made = self.make_room(page, leaf, (key, value.len()), spare, room);
                made.map(Some)
            }
            Err(refused) => Err(self.impossible(page, &refused)),
        }
    }

    /// Removes a key from the leaf that covers it. The flag says that the leaf has been noted and
    /// may need a merge.
    pub(crate) fn try_delete(&self, key: &[u8]) -> Result<Attempt<(Lsn, bool)>> {
        let Some(_room) = self.room_in_turn(key.len()) else {
            return Ok(Attempt::LogFull);
        };
        let (page, mut leaf) = self.leaf_mut(key)?;
        let deleted = self.pointer_in(page, &leaf.view(), key);
        if !leaf.edit().delete(key) {
            // The key is absent as of the leaf's last change, which the caller may want to be
            // durable.
            return Ok(Attempt::Done((leaf.view().lsn(), false)));
        }
        let lsn = if mutation::on("delete-not-logged") {
            self.pager.log.end()
        } else {
            self.append(&Record::Delete { page, key })?
        };
        self.retire_value(deleted, lsn);
        self.changed(&mut leaf, page, lsn);
        let sparse = leaf.view().is_three_quarters_free();
        if sparse {
            // Under the latch, so that a checkpoint that begins behind this delete's record finds
            // the note.
            self.notes.note(page);
        }
        self.note_write(page, leaf, key, lsn)?;
        Ok(Attempt::Done((lsn, sparse)))
    }

    /// Visits records leaf by leaf in ascending order, see [`rows`].
    pub(crate) fn scan(&self, from: &[u8], visit: &mut Visitor<'_>) -> Result<()> {
        rows::scan(from, visit, |at, rows| {
            if self.counts(Use::Scan) {
                self.count_use(at, Use::Scan)?;
            }
            let mut leaf = self.leaf(at)?;
            if !leaf.view().is_in_order() {
                drop(leaf);
                self.leaf_mut(at)?.1.edit().sort();
                leaf = self.leaf(at)?;
            }
            let view = leaf.view();
            self.note_if_empty(&view);
            self.tell(|| Snapshot::Copies {
                page: view.page_id(),
                back: false,
            });
            let prefix = view.prefix();
            (view.iter_from(at)).for_each(|(suffix, value)| rows.push(&[prefix, &suffix], value));
            Ok(view.upper_fence().map(<[u8]>::to_vec))
        })
    }

    /// Visits records leaf by leaf in descending order.
    pub(crate) fn scan_back(&self, before: Option<&[u8]>, visit: &mut Visitor<'_>) -> Result<()> {
        rows::scan_back(before, visit, |before, rows| {
            if self.counts(Use::Scan) {
                self.count_use(&self.index.before(before).0, Use::Scan)?;
            }
            loop {
                let (lower, page) = self.index.before(before);
                let Fix::Got(leaf) = self.pager.read(page)? else {
                    crate::sync::yield_now();
                    continue;
                };
                let view = leaf.view();
                // Splits and merges change the index under the latches of their leaves.
                if self.index.before(before) != (lower.clone(), page) {
                    crate::sync::yield_now();
                    continue;
                }
                if !view.is_in_order() {
                    drop(leaf);
                    self.leaf_mut(&lower)?.1.edit().sort();
                    continue;
                }
                let end = before.map_or(view.count(), |key| {
                    view.search(key).unwrap_or_else(|place| place)
                });
                self.tell(|| Snapshot::Copies { page, back: true });
                let (prefix, records) = (view.prefix(), view.iter().take(end));
                records.for_each(|(suffix, value)| rows.push(&[prefix, &suffix], value));
                return Ok(lower);
            }
        })
    }

    /// The error for a leaf that refused what its fences and limits allow. Only damage that passed
    /// its checks can cause that.
    pub(in crate::trees) fn impossible(&self, page: PageId, refused: &Refused) -> Error {
        Error::Damaged {
            what: page.to_string(),
            lba: self.pager.pages.place(page),
            expected: "room for a record within the limits".into(),
            found: refused.to_string(),
        }
    }
}
