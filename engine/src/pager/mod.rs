//! Pages in memory and on the device: combines cache, page store and log, and the write-back
//! between them.
//!
//! Everything that changes a page goes through this module. So it also enforces the two rules that
//! make recovery work:
//!
//! - **WAL rule**: the log is durable up to a page's LSN before the page is written
//!   ([`Pager::write_picked`]).
//! - **One writer**: copying a page out of its frame, marking it clean and writing it are one step
//!   under the `sweep` lock. So images of a page reach the device in the order of their LSNs (BUGS
//!   C3: a cleaner that marks a page clean without checking whether it changed since it was
//!   copied).
//!
//! If the device has no room for a page write, the pages stay dirty and new writes are refused
//! until the waiting ones have been done ([`Pager::retry_refused`]). Meanwhile, readers take clean
//! frames, or some that are reserved for them.
//!
//! After a failed page write, the pages are dirty again and the store is poisoned: the device's
//! content is unknown until recovery has rewritten it.

mod frames;
mod values;
mod write_back;

pub(crate) use frames::Spare;
use write_back::Evicted;
pub(crate) use write_back::SweepState;

use crate::cache::{Cache, Fix, FreeFrame, ReadGuard, WriteGuard};
use crate::device::Volume;
use crate::error::{Error, Result};
use crate::events::{Event, Snapshot};
use crate::layout::Layout;
use crate::mutation;
use crate::overflow::Overflow;
use crate::pages::{PageStore, Versioned};
use crate::snapshot::Leaf;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Arc, Mutex};
use crate::types::{Lsn, PageId};
use crate::wal::Log;
use frames::Waiting;

/// Counters of the pager. Bytes are counted by the [`Volume`].
#[derive(Default)]
pub(crate) struct PagerCounters {
    pub(crate) evictions: AtomicU64,
    pub(crate) written_back: AtomicU64,
    pub(crate) checkpointed: AtomicU64,
    /// Merged pages and unreferenced long values that have been freed.
    pub(crate) freed: AtomicU64,
}

/// Cache, page store and log, combined; see the module documentation.
pub(crate) struct Pager {
    pub(crate) volume: Arc<Volume>,
    pub(crate) layout: Layout,
    pub(crate) cache: Cache,
    pub(crate) pages: Versioned,
    pub(crate) log: Log,
    /// The state of long values.
    pub(crate) overflow: Overflow,
    pub(crate) counters: PagerCounters,
    /// The maximum number of pages that a write-back step writes; also the low watermark of free
    /// frames. The high watermark is twice this.
    batch: usize,
    sweep: Mutex<SweepState>,
    waiting: Waiting,
    /// Pages merged away, with the LSN of the merge. They are freed once that LSN is durable,
    /// because until then a crash brings them back.
    pending_free: Mutex<Vec<(Lsn, PageId)>>,
    poison: Poison,
    /// Whether the device refused the last write for want of room, so that data waits in memory.
    out_of_space: AtomicBool,
}

/// Whether, and why, the store has stopped accepting writes.
#[derive(Default)]
struct Poison {
    set: AtomicBool,
    why: Mutex<Option<String>>,
}

impl Pager {
    pub(crate) fn new(
        volume: Arc<Volume>,
        layout: Layout,
        cache: Cache,
        pages: Versioned,
        (log, overflow): (Log, Overflow),
        write_batch_pages: usize,
    ) -> Pager {
        let batch = write_batch_pages
            .min(cache.ordinary() / 8)
            .min(pages.max_batch())
            .max(1);
        let waiting = Waiting::new(cache.len());
        Pager {
            waiting,
            volume,
            layout,
            cache,
            pages,
            log,
            overflow,
            counters: PagerCounters::default(),
            batch,
            sweep: Mutex::new(SweepState::new(batch, layout.page_size)),
            pending_free: Mutex::new(Vec::new()),
            poison: Poison::default(),
            out_of_space: AtomicBool::new(false),
        }
    }

    /// Bytes of the buffer for images on their way to the device.
    pub(crate) fn write_buffer_bytes(&self) -> u64 {
        (self.batch * self.layout.page_size) as u64
    }

    /// Latches `page` for reading.
    pub(crate) fn read(&self, page: PageId) -> Result<Fix<ReadGuard<'_>>> {
        self.cache
            .fix_shared(page, &self.pages, &|| self.free_frame_to_read())
    }

    /// Reads those of `pages` that are not in the cache, in one batch, as far as frames are free,
    /// because they will soon be accessed.
    pub(crate) fn load_ahead(&self, pages: &[PageId]) {
        if self.is_short_of_frames() {
            return;
        }
        // Limited, so that the clock hand does not evict them before they are used.
        let wanted = pages.len().min(self.cache.ordinary() / 4);
        self.cache.load_ahead(&pages[..wanted], &self.pages);
    }

    /// Latches `page` for writing.
    pub(crate) fn write(&self, page: PageId) -> Result<Fix<WriteGuard<'_>>> {
        self.cache
            .fix_exclusive(page, &self.pages, &|| self.free_frame())
    }

    /// As [`Pager::free_frame`], for a reader: a store that cannot write can still be read.
    fn free_frame_to_read(&self) -> Result<FreeFrame<'_>> {
        let cannot_write = match self.free_frame() {
            Err(e @ (Error::NoSpace { .. } | Error::Poisoned { .. })) => e,
            taken => return taken,
        };
        loop {
            let taken = self.cache.take_free();
            if let Some(free) = taken.or_else(|| self.cache.take_reserved()) {
                return Ok(free);
            }
            match self.evict_clean() {
                Evicted::One => {}
                // Another thread briefly holds the latch of an evictable page.
                Evicted::Busy => crate::sync::yield_now(),
                Evicted::None => return Err(cannot_write),
            }
        }
    }

    /// After a write was refused for want of room, tries to write what waits for it: all of the log
    /// and some pages.
    ///
    /// # Errors
    /// Those of the writes: [`Error::NoSpace`] if there is still no room.
    pub(crate) fn retry_refused(&self) -> Result<()> {
        if !self.out_of_space.load(Ordering::Acquire) {
            return Ok(());
        }
        self.flush_log(self.log.end())?;
        self.checkpoint_sweep(Lsn(u64::MAX), 0)?;
        self.out_of_space.store(false, Ordering::Release);
        Ok(())
    }

    /// Retires `page`, which the log record at `lsn` merged away. It is gone for readers now, and
    /// its place is freed once that record is durable.
    pub(crate) fn retire(&self, guard: WriteGuard<'_>, page: PageId, lsn: Lsn) {
        self.pages.forget(page);
        self.cache.discard(guard, true);
        self.pending_free.lock().push((lsn, page));
    }

    /// Frees `page`, to which nothing refers, at the next [`Pager::free_retired`].
    pub(crate) fn free_later(&self, page: PageId) {
        self.pending_free.lock().push((Lsn(0), page));
    }

    /// The entry of a leaf in a checkpoint.
    pub(crate) fn leaf_entry(&self, page: PageId) -> Leaf {
        Leaf {
            page,
            version: match mutation::on("snapshot-version-ahead") {
                true => self.log.end(),
                false => self.pages.version(page),
            },
            pointers: self.overflow.may_be_in(page),
        }
    }

    /// Frees the pages whose merges are durable by now, and the long values to which nothing
    /// refers. Returns their number. What fails is freed another time.
    pub(crate) fn free_retired(&self) -> Result<u64> {
        // No image of a page may be on its way to the device when its place is freed.
        let _no_write_back = self.sweep.lock();
        let durable = self.log.durable();
        let mut pending = self.pending_free.lock();
        let mut freed = self.free_values()?;
        while let Some(at) = pending
            .iter()
            .position(|(lsn, _)| *lsn <= durable || mutation::on("free-before-durable"))
        {
            // Before the id can be reused.
            let page = pending[at].1;
            (self.volume).tell(|| Event::Snapshot(Snapshot::FreesPage { page }));
            self.overflow.unmark(page);
            self.pages.free(page).inspect_err(|e| self.poison(e))?;
            pending.swap_remove(at);
            freed += 1;
            self.counters.freed.fetch_add(1, Ordering::Relaxed);
        }
        Ok(freed)
    }

    /// Returns whether pages wait for their merges to become durable, or long values for the
    /// records that replaced them.
    pub(crate) fn has_retired(&self) -> bool {
        !self.pending_free.lock().is_empty() || self.has_retired_values()
    }

    /// As [`Pager::write`], but never waits for the page's latch: returns `None` if the page is
    /// gone or busy. The caller must hold no latch.
    pub(crate) fn try_write(&self, page: PageId) -> Result<Option<WriteGuard<'_>>> {
        if self.cache.is_absent(page) {
            return self.cache.load(page, &self.pages, self.free_frame()?);
        }
        Ok(self.cache.try_resident(page))
    }

    /// Makes the log durable up to `lsn`.
    pub(crate) fn flush_log(&self, lsn: Lsn) -> Result<()> {
        self.check_poison()?;
        self.log.flush_to(lsn).inspect_err(|e| self.poison(e))
    }

    /// Fails if an earlier write failed.
    pub(crate) fn check_poison(&self) -> Result<()> {
        if !self.poison.set.load(Ordering::Acquire) {
            return Ok(());
        }
        let why = self.poison.why.lock().clone().unwrap_or_default();
        Err(Error::Poisoned { why })
    }

    /// Returns whether no write has failed or is being refused for want of room.
    pub(crate) fn can_write(&self) -> bool {
        !self.poison.set.load(Ordering::Relaxed) && !self.out_of_space.load(Ordering::Relaxed)
    }

    /// Stops all further writes, because the device's content is unknown. If the cause is want of
    /// room, everything that was not written will be written again; so writes are refused only as
    /// long as that lasts.
    pub(crate) fn poison(&self, cause: &Error) {
        if mutation::on("failed-store-goes-on") {
            return;
        }
        if cause.is_no_space() && !mutation::on("enospc-poisons") {
            self.out_of_space.store(true, Ordering::Release);
            return;
        }
        let mut why = self.poison.why.lock();
        if why.is_none() {
            *why = Some(match cause {
                // The log reports its own failure this way.
                Error::Poisoned { why } => why.clone(),
                cause => cause.to_string(),
            });
            self.volume.tell(|| Event::Failed);
            self.poison.set.store(true, Ordering::Release);
        }
    }
}
