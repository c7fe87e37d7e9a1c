//! The Bf-Tree: mini-pages over leaves (Bf-Tree §3, §5).
//!
//! ```text
//!   index     "" -> page 0        "g" -> page 7        inner nodes, latch-free (§3.4)
//!   mapping   page 0: ●           page 7: leaf         one word a page: address and lock (§3.3)
//!   ring      [ a=1* | c† ]                            mini-pages: hot and dirty records (§4)
//!   leaves    [ a .. f ]          [ g .. z ]           pages, in few frames, under the log (§3.2)
//! ```
//!
//! A write goes to the log and to the mini-page of the key's leaf, which is made if there is none;
//! the leaf is not read. A read looks in the mini-page first and then in the leaf. Sometimes it
//! then leaves a copy of what it found in the mini-page, or a phantom if it found nothing (§5.1,
//! §5.6). The dirty records of a mini-page are merged into the leaf together: when the mini-page
//! has become too large, when it is evicted from the ring, and at a checkpoint, unless that logs
//! them again (`relog`). If too large, or if its leaf is scanned, it becomes a mirror (`mirror`).
//!
//! # The layers below
//! The leaves are those of [`BTree`]: pages in a cache of few frames, which serves as a write
//! buffer, over any page store, with the log records, redo, structure changes and checkpoints of
//! that tree. So on the device, a store is the same as a `btree` store except for the layout of its
//! pages, and either tree can open it. Each change is logged against its leaf when it enters the
//! mini-page; [`mini`](crate::mini) explains why redo can repeat it.
//!
//! # Leaves of any layout
//! A dense leaf accepts a record only if it has a place for it, which only the leaf knows. So a
//! write of a key that the mini-page does not have reads the leaf. If there is no place or no room,
//! the mini-page is merged, and then the leaf is converted or split as in [`BTree`]. The use of a
//! leaf counts when the leaf itself is used (B-Trees Are Back §5.1): gets and scans that read it,
//! and records that are merged into it. It gets another layout at a merge, with a clean mini-page.
//!
//! In a store whose background tasks are pumped, mini-pages are evicted before room is needed, and
//! their leaves are read together (`ahead`). Mini-pages with few changes may be spared (`spare`).
//!
//! # Locks
//! The lock in the mapping table covers mini-page and leaf. After taking it, a thread checks with
//! the index that the page still covers the key: splits and merges change the index under the locks
//! of their pages (MiniPage 1: a split fits between the inner node's version and the page's lock).
//! Frames are latched below page locks. A thread may hold a page's lock while it waits for a frame,
//! because no thread that holds a latch or a spare frame waits for a page. No thread evicts while
//! it holds a page's lock (CircularBuffer 1): an operation that finds the ring full releases its
//! page, makes room and starts again. A write that loses the room that it has made takes turns with
//! others like it.
//!
//! Cost: a point operation is one descent and, if the mini-page has the key, no I/O; otherwise at
//! most one page read.

mod ahead;
pub(crate) mod cache_only;
mod census;
mod counters;
mod join;
mod lightest;
mod merge;
mod mirror;
mod page;
mod promotion;
mod relog;
mod scan;
mod shape;
mod spare;
mod threshold;

use crate::cache::{Fix, ReadGuard};
use crate::error::{Error, Result};
use crate::events::{Event, Hook};
use crate::mini::events::{Event as Told, LeafImage};
use crate::mini::{self, Kind, Leaf, Marks, MiniMut, MiniRef};
use crate::mutation;
use crate::node::adapt::Use;
use crate::options::BfOptions;
use crate::overflow::Pointer;
use crate::pages::PageStore as _;
use crate::ring::{AllocateError, Exclusive, MARK_BYTES, Ring, RingOptions, Shared};
use crate::stats::Stats;
use crate::sync::Turns;
use crate::sync::atomic::AtomicU64;
use crate::trees::btree::{Attempt, BTree};
use crate::types::{Lsn, PageId};
use crate::wal::Record;
use counters::Counters;
use page::{
    SMALLEST, SPARE_ROOM, address, image, lock, note_put, note_use, ring_sizes, unexpected,
    with_room,
};
use promotion::Promoter;
pub(crate) use relog::Again;

pub use lightest::{Chosen, Lightest};
pub use promotion::{LeafReads, Promotion, PromotionTotals};
pub use shape::BfShape;
pub use threshold::Threshold;

/// The number of threads that may make room in the ring at once, among those that lost the room
/// they had made. Eviction reads leaves, and drives serve several reads at once.
const EVICTORS_IN_TURN: u64 = 4;

/// A tree with mini-pages over leaves, see the module documentation.
pub(crate) struct BfTree {
    leaves: BTree,
    ring: Ring,
    options: BfOptions,
    /// Payload of the largest mini-page that is made for what was read or is used, other than a
    /// mirror.
    largest: usize,
    /// That of the largest which changes make: one that needs more is merged (§5.5).
    largest_of_changes: usize,
    /// Payload of the ring's largest class.
    largest_mirror: usize,
    /// Bytes of the ring that eviction ahead of need keeps free.
    free_goal: u64,
    /// Turns of the threads that made room in the ring and lost it.
    turns: Turns,
    /// The end of the log when a checkpoint had last looked at all pages.
    swept: AtomicU64,
    /// The [`Threshold`] below which mini-pages are spared.
    threshold: AtomicU64,
    promoter: Promoter,
    counters: Counters,
    /// Observes what happens to mini-pages.
    pub(super) hook: Hook<Told>,
}

/// A change to a leaf.
struct Change<'a> {
    kind: Kind,
    key: &'a [u8],
    value: &'a [u8],
}

impl Change<'_> {
    /// Bytes that this page's mini-page needs with the change in it.
    fn needs(&self, guard: &Exclusive<'_>) -> usize {
        match guard.bytes().map(MiniRef::new) {
            Some(mini) => mini.bytes_with(self.key, self.value.len()),
            None => mini::bytes_for(1, self.key.len() + self.value.len()),
        }
    }

    /// Returns whether the change needs no place in a dense leaf, or replaces a record of the
    /// mini-page that has one.
    fn has_place(&self, mini: Option<MiniRef<'_>>) -> bool {
        let known = |mini: MiniRef<'_>| {
            (mini.find(self.key))
                .is_some_and(|old| old.kind.exists() && old.value.len() == self.value.len())
        };
        self.kind == Kind::Tombstone || mini.is_some_and(known)
    }

    /// Bytes that the change takes in a mini-page without the key.
    fn bytes(&self) -> usize {
        mini::META + self.key.len() + self.value.len()
    }

    /// Bytes that the change takes in a leaf. `old` is the length of the leaf's present value of
    /// the key, if any.
    fn growth(&self, leaf: Leaf, old: Option<usize>) -> isize {
        let before = old.map_or(0, |len| leaf.growth(Kind::Insert, self.key.len(), len));
        leaf.growth(self.kind, self.key.len(), self.value.len()) - before
    }
}

/// The result of preparing a page for a change.
enum Ready<'a> {
    /// The mini-page has room for the change, which takes this many bytes of the leaf.
    Page(Exclusive<'a>, isize),
    /// The ring has no block for the change; the page has been released.
    RingFull(AllocateError),
    /// The operation must start again.
    Not(Attempt<std::convert::Infallible>),
}

/// The result of one try at a change.
enum Changed {
    Attempted(Attempt<Lsn>),
    /// The ring has no room; it must be made with no page locked.
    RingFull(AllocateError),
}

impl BfTree {
    /// Makes the tree over these leaves, with a ring of `ring_bytes` bytes.
    ///
    /// # Errors
    /// [`Error::BadOption`] if the ring cannot be made.
    pub(crate) fn new(leaves: BTree, options: BfOptions, ring_bytes: u64) -> Result<BfTree> {
        let page_size = leaves.pager.layout.page_size;
        let capacity = usize::try_from(ring_bytes / 4096 * 4096).unwrap_or(usize::MAX);
        let sizes = ring_sizes(page_size, capacity, options.growth_percent);
        let largest_mirror = sizes.last().copied().unwrap_or(0) - MARK_BYTES;
        let percent = options.max_mini_page_percent;
        let largest_of_changes = shape::largest_of_changes(page_size, &sizes, percent);
        let ring = RingOptions {
            capacity,
            copy_on_access_percent: options.copy_on_access_percent,
            sizes,
            pages: leaves.pager.pages.page_limit(),
            marks: true,
        };
        let ring = Ring::new(&ring).map_err(|e| Error::BadOption {
            name: "cache",
            why: e.to_string(),
        })?;
        let mut adopted = Ok(());
        leaves.index.for_each(|_, page| {
            if adopted.is_ok() {
                adopted = ring.adopt_page(page, address(None)).map(drop);
            }
        });
        adopted.map_err(|e| unexpected(&e))?;
        Ok(BfTree {
            leaves,
            ring,
            options,
            largest: shape::largest(page_size),
            largest_of_changes,
            largest_mirror,
            free_goal: capacity as u64 / ahead::FREE_SHARE,
            turns: Turns::new(EVICTORS_IN_TURN),
            swept: AtomicU64::new(0),
            threshold: AtomicU64::new(Threshold::new().to_bits()),
            promoter: Promoter::new(options.promote),
            counters: Counters::default(),
            hook: Hook::default(),
        })
    }

    pub(crate) fn leaves(&self) -> &BTree {
        &self.leaves
    }

    fn lock_shared(&self, key: &[u8]) -> Result<(PageId, Shared<'_>)> {
        lock(&self.leaves.index, &self.hook, key, |page| {
            self.ring.shared(page)
        })
    }

    fn lock_exclusive(&self, key: &[u8]) -> Result<(PageId, Exclusive<'_>)> {
        lock(&self.leaves.index, &self.hook, key, |page| {
            self.ring.exclusive(page)
        })
    }

    /// The leaf of a page that the caller has locked.
    fn read_leaf(&self, page: PageId) -> Result<ReadGuard<'_>> {
        Counters::add(&self.counters.leaf_reads, 1);
        match self.leaves.pager.read(page)? {
            Fix::Got(leaf) => Ok(leaf),
            Fix::Gone => Err(Error::MissingPage { page }),
        }
    }

    /// The image of a page's leaf for the observer.
    fn leaf_image(&self, page: PageId) -> Option<LeafImage> {
        match self.leaves.pager.read(page) {
            Ok(Fix::Got(leaf)) => Some(LeafImage::of(&leaf.view())),
            Ok(Fix::Gone) | Err(_) => None,
        }
    }

    /// The leaf of a page that the caller has locked for `key`. Fails if the leaf does not cover
    /// the key, which means damage.
    fn leaf_of(&self, page: PageId, key: &[u8]) -> Result<ReadGuard<'_>> {
        let leaf = self.read_leaf(page)?;
        if !leaf.view().covers(key) {
            self.leaves.check_moved(key, page, &leaf.view())?;
        }
        Ok(leaf)
    }

    pub(crate) fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        if key.len() > self.leaves.limits().max_key {
            return Ok(false);
        }
        let (page, guard) = self.lock_shared(key)?;
        if let Some(mini) = guard.bytes().map(MiniRef::new) {
            let found = mini.search(key);
            if found.is_ok() || mini.is_whole() {
                let kind = match found {
                    Ok(index) => {
                        let entry = mini.entry(index);
                        note_use(guard.marks(), mini.mark(index));
                        if entry.kind.exists() {
                            value.extend_from_slice(entry.value);
                        }
                        entry.kind
                    }
                    // A mirror also answers for absent keys.
                    Err(_) => {
                        note_use(guard.marks(), Marks::SCANNED);
                        Kind::Phantom
                    }
                };
                Counters::add(&self.counters.lookups().hits[kind as usize], 1);
                self.hook.tell(|| Told::ReadMini {
                    page,
                    mini: image(guard.bytes(), guard.marks()),
                });
                if guard.in_copy_on_access_region() {
                    self.copy_to_tail(guard);
                }
                return Ok(kind.exists());
            }
        }
        Counters::add(&self.counters.lookups().misses, 1);
        if self.leaves.counts(Use::Point) {
            self.leaves.note_use(page, Use::Point);
        }
        let leaf = self.leaf_of(page, key)?;
        let found = leaf.view().get(key);
        if let Some(bytes) = found {
            value.extend_from_slice(bytes);
        }
        let exists = found.is_some();
        self.hook.tell(|| Told::ReadLeaf { page });
        let kind = if exists { Kind::Cache } else { Kind::Phantom };
        let change = Change { kind, key, value };
        let ring = (&self.counters, &self.ring);
        if (self.promoter).wants(LeafReads::Lookups, ring, || change.bytes()) {
            self.promote(guard, &change, leaf);
        } else {
            self.hook.tell(|| Told::Declined { page });
        }
        Ok(exists)
    }

    /// Leaves a copy of what was read from the leaf in the mini-page, if that is possible at once
    /// (§5.1, §5.6). If there are other readers of the page, a later read will do it
    /// (CircularBuffer 5).
    fn promote(&self, guard: Shared<'_>, found: &Change<'_>, leaf: ReadGuard<'_>) {
        let page = guard.page();
        let guard = match guard.try_upgrade() {
            Ok(guard) => guard,
            Err(_shared) => return self.hook.tell(|| Told::Declined { page }),
        };
        let needed = found.needs(&guard);
        let made = if self.is_too_large(&guard, needed, self.largest) {
            self.widen(guard, &leaf.view(), 0).map(|guard| {
                let mini = guard.bytes().map(MiniRef::new).expect("a mirror");
                if let Ok(index) = mini.search(found.key) {
                    note_use(guard.marks(), mini.mark(index));
                }
                self.hook.tell(|| Told::Declined { page });
            })
        } else {
            let (known, lsn) = (Leaf::of(&leaf.view()), leaf.view().lsn());
            with_room(guard, &self.hook, needed, known, lsn).map(|mut guard| {
                let block = guard.bytes_mut().expect("a block was made");
                let at = MiniMut::new(block).put(found.kind, found.key, found.value);
                note_put(&guard, at);
                self.hook.tell(|| Told::Promoted {
                    page,
                    mini: image(guard.bytes(), guard.marks()),
                });
            })
        };
        match made {
            Ok(()) => Counters::add(&self.counters.promotions, 1),
            // What was read must not be promoted later, when it may be outdated (MiniPage 5): the
            // room is for the next read. Failing to make room does not fail this read.
            Err(none) => {
                self.hook.tell(|| Told::Full { page });
                let full = none.give_back();
                drop(leaf);
                drop(self.make_room(&full));
                if mutation::on("bf-late-promotion")
                    && matches!(full, AllocateError::Full(_))
                    && let (Ok(guard), Ok(leaf)) = (self.ring.shared(page), self.read_leaf(page))
                {
                    self.promote(guard, found, leaf);
                }
            }
        }
    }

    /// Returns whether `needed` bytes are more than this mini-page may grow to, which is `largest`
    /// unless it is a mirror.
    fn is_too_large(&self, guard: &Exclusive<'_>, needed: usize, largest: usize) -> bool {
        let mini = guard.bytes().map(MiniRef::new);
        let largest = if mini.is_some_and(MiniRef::is_whole) {
            self.largest_mirror
        } else {
            largest
        };
        needed > largest
    }

    /// Sets a key in the mini-page of its leaf.
    pub(crate) fn try_put(&self, key: &[u8], value: &[u8]) -> Result<Attempt<Lsn>> {
        let Some(_room) = self.leaves.room_in_turn(key.len() + value.len()) else {
            return Ok(Attempt::LogFull);
        };
        let change = Change {
            kind: Kind::Insert,
            key,
            value,
        };
        self.try_change(&change, |page| Record::Put { page, key, value })
    }

    /// Puts a tombstone into the mini-page of the key's leaf. The flag says that some leaf may need
    /// a merge.
    pub(crate) fn try_delete(&self, key: &[u8]) -> Result<Attempt<(Lsn, bool)>> {
        let Some(_room) = self.leaves.room_in_turn(key.len()) else {
            return Ok(Attempt::LogFull);
        };
        let change = Change {
            kind: Kind::Tombstone,
            key,
            value: b"",
        };
        let deleted = self.try_change(&change, |page| Record::Delete { page, key })?;
        Ok(deleted.map(|lsn| (lsn, self.leaves.notes.due() > 0)))
    }

    /// Tries a change until there is room for it in the ring. Another thread may take the room that
    /// this one has made (CircularBuffer 4), so a thread that lost its room takes turns with others
    /// like it.
    fn try_change<'r>(
        &self,
        change: &Change<'r>,
        record: impl Fn(PageId) -> Record<'r>,
    ) -> Result<Attempt<Lsn>> {
        let mut turn = None;
        for tries in 0.. {
            let full = match self.try_change_once(change, &record)? {
                Changed::Attempted(attempt) => return Ok(attempt),
                Changed::RingFull(full) => full,
            };
            if turn.is_none() && (tries > 0 || self.turns.is_wanted()) {
                turn = Some(self.turns.wait());
            }
            self.make_room(&full)?;
        }
        unreachable!("tries without end")
    }

    fn try_change_once<'r>(
        &self,
        change: &Change<'r>,
        record: impl Fn(PageId) -> Record<'r>,
    ) -> Result<Changed> {
        let (page, guard) = self.lock_exclusive(change.key)?;
        if change.kind == Kind::Tombstone
            && let Some(mini) = guard.bytes().map(MiniRef::new)
            && mini.find(change.key).is_some_and(|old| !old.kind.exists())
        {
            // Absent as of the mini-page's last change, which the caller may want to be durable.
            self.hook.tell(|| Told::AbsentAlready { page });
            return Ok(Changed::Attempted(Attempt::Done(mini.lsn())));
        }
        let (mut guard, growth) = match self.prepare(page, guard, change)? {
            Ready::Page(guard, growth) => (guard, growth),
            Ready::RingFull(full) => return Ok(Changed::RingFull(full)),
            Ready::Not(stopped) => {
                return Ok(Changed::Attempted(stopped.map(|never| match never {})));
            }
        };
        let mini = guard.bytes().map(MiniRef::new).expect("made ready");
        let replaced = self.pointer_alone_in(page, mini, change.key);
        self.leaves.note_value(page, change.value);
        let lsn = self.leaves.append(&record(page))?;
        self.leaves.retire_value(replaced, lsn);
        let block = guard.bytes_mut().expect("made ready");
        let mut mini = MiniMut::new(block);
        let at = mini.put_grown(change.kind, change.key, change.value, growth);
        mini.set_lsn(lsn);
        note_put(&guard, at);
        self.leaves
            .pager
            .volume
            .tell(|| Event::PageChanged { page, lsn });
        self.hook.tell(|| Told::Written {
            page,
            mini: image(guard.bytes(), guard.marks()),
        });
        if guard.in_copy_on_access_region() {
            // The change is made, whatever becomes of the move.
            drop(self.move_to_tail(guard));
        }
        Ok(Changed::Attempted(Attempt::Done(lsn)))
    }

    /// The pointer to a long value that only the mini-page has under `key`, because its record is
    /// dirty. A pointer in the leaf is retired when it is overwritten.
    #[inline]
    fn pointer_alone_in(&self, page: PageId, mini: MiniRef<'_>, key: &[u8]) -> Option<Pointer> {
        if !self.leaves.pager.overflow.may_be_in(page) {
            return None;
        }
        let old = mini.find(key)?;
        let alone = old.kind.is_dirty() && old.kind.exists();
        alone.then(|| Pointer::of(old.value)).flatten()
    }

    /// Ensures that the leaf can take the change and that a mini-page can hold it.
    fn prepare<'a>(
        &'a self,
        page: PageId,
        mut guard: Exclusive<'a>,
        change: &Change<'_>,
    ) -> Result<Ready<'a>> {
        let mini = guard.bytes().map(MiniRef::new);
        let known = match mini {
            Some(mini) => Some(mini.leaf()),
            None => guard.leaf().and_then(|at| Leaf::from_bits(at.get())),
        };
        let guess = known.map(|leaf| match mini {
            Some(mini) => mini.growth_of(change.kind, change.key, change.value),
            None => change.growth(leaf, None),
        });
        let placed = |leaf: Leaf| {
            !leaf.has_places || change.has_place(mini) || mutation::on("bf-place-ignored")
        };
        let (leaf, growth, lsn, fits) = match (known, guess) {
            (Some(leaf), Some(growth)) if growth <= leaf.free as isize && placed(leaf) => {
                (leaf, growth, Lsn(0), true)
            }
            _ => {
                // The leaf knows exactly what it has free, and whether it has the key.
                let page = self.leaf_of(page, change.key)?;
                let view = page.view();
                let (mut leaf, mut dirty) = (Leaf::of(&view), false);
                if let Some(block) = guard.bytes_mut() {
                    let mut mini = MiniMut::new(block);
                    mini.recount(&view);
                    let found = mini.view().find(change.key);
                    dirty = found.is_some_and(|entry| entry.kind.is_dirty());
                    leaf = mini.view().leaf();
                }
                let growth = match guess {
                    Some(guess) if dirty => guess,
                    _ => change.growth(leaf, view.get(change.key).map(<[u8]>::len)),
                };
                let placed = change.kind == Kind::Tombstone
                    || view.has_place(change.key, change.value.len())
                    || mutation::on("bf-place-ignored");
                let roomy = growth <= leaf.free as isize || mutation::on("bf-growth-ignored");
                (leaf, growth, view.lsn(), placed && roomy)
            }
        };
        if !fits {
            return self.merge_or_split(page, guard, change).map(Ready::Not);
        }
        let needed = change.needs(&guard);
        if self.is_too_large(&guard, needed, self.largest_of_changes) {
            return self.merge_and_reshape(page, guard, change).map(Ready::Not);
        }
        match with_room(guard, &self.hook, needed, leaf, lsn) {
            Ok(guard) => Ok(Ready::Page(guard, growth)),
            Err(none) => {
                self.hook.tell(|| Told::Full { page });
                Ok(Ready::RingFull(none.give_back()))
            }
        }
    }

    /// Evicts what is needed, and a little more. The caller must hold no page lock.
    fn make_room(&self, full: &AllocateError) -> Result<()> {
        let AllocateError::Full(full) = full else {
            return Ok(());
        };
        self.evict_bytes(full.short.max(SPARE_ROOM))
    }

    /// The most pages that merging all mini-pages may split off: one for each mini-page, and as
    /// many as the bytes fill, for a split leaves at least a quarter of a page on each side.
    pub(crate) fn pages_owed(&self) -> u64 {
        let page = self.leaves.pager.layout.page_size as u64;
        let bytes: u64 = self.free_goal * ahead::FREE_SHARE;
        let minis = (bytes / SMALLEST).min(self.leaves.index.len() as u64);
        (4 * bytes).div_ceil(page) + minis
    }

    pub(crate) fn stats(&self, base: Stats) -> Stats {
        Stats {
            bf: Some(self.counters.stats(&self.ring)),
            ..base
        }
    }
}
