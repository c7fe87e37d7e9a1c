//! The store itself, shared by all its handles: a tree, its pages and its log on one device.
//!
//! Background work is split into [`Task`]s. [`Core::due`] returns the one that is due now, and
//! [`Core::pump`] does one bounded step of it. A store that is never pumped still works: an
//! operation that runs out of frames or of log room does the step itself.

use super::checkpoint::Checkpointer;
use super::fill::LeafFill;
use super::life::Life;
use super::open_batch::Batches;
use super::recovery::RecoveryReport;
use super::room::{Full, Made};
use super::task::Task;
use crate::batch::Batch;
use crate::cache::{Fix, ReadGuard};
use crate::device::Claim;
use crate::error::{Error, Result};
use crate::events::{Event, Observer};
use crate::kv::{Kv, Visitor};
use crate::mini;
use crate::mutation;
use crate::options::Options;
use crate::overflow::{self, Pointer};
use crate::pages::PageStore;
use crate::stats::{MemoryStats, Stats};
use crate::sync::Arc;
use crate::sync::atomic::Ordering;
use crate::trees::Tree;
use crate::trees::btree::Attempt;
use crate::types::{Clock, Lba, Lsn, PageId, Progress};

/// How often one change may merge neighbours that happen to fit, before the store counts as full.
///
/// Without a limit, a change could loop for ever. A large record may take two splits. If the only
/// neighbours that fit one page are the halves of the first split, making room for the second
/// merges them again.
const MOST_SQUEEZES: u32 = 8;

/// First pause of a background thread that finds nothing to do. Each further one is twice as long,
/// up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: std::time::Duration = std::time::Duration::from_micros(200);

/// Longest pause of a background thread. Writers that run out of room meanwhile do the work
/// themselves.
const LONGEST_PAUSE: std::time::Duration = std::time::Duration::from_millis(5);

/// Pause of a background thread before it retries a write that the file system had no room for.
const NO_SPACE_PAUSE: std::time::Duration = std::time::Duration::from_millis(20);

/// A store on a block device.
pub(crate) struct Core {
    pub(crate) tree: Tree,
    pub(super) checkpointer: Checkpointer,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) options: Options,
    pub(super) recovery: RecoveryReport,
    pub(super) life: Life,
    pub(super) batches: Batches,
    /// State of the search for free pages.
    pub(crate) full: Full,
    /// Keeps other stores of this process off the device. Must be the last field: it is dropped
    /// when nothing is written any more.
    pub(super) claim: Option<Claim>,
}

impl Core {
    /// Emits the mini-page events of a `bf` tree to `observer` from now on; see [`mini::events`].
    /// Other trees emit none.
    pub(crate) fn observe_mini_pages(&mut self, observer: Arc<dyn Observer<mini::events::Event>>) {
        self.tree.observe_mini_pages(observer);
    }

    /// Returns what recovery did when the store was opened.
    pub(crate) fn recovery(&self) -> RecoveryReport {
        self.recovery
    }

    /// Returns the options in force.
    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    /// Returns the most urgent task that is due now. Costs a few loads, and one clock reading under
    /// [`crate::Durability::Grouped`].
    pub(crate) fn due(&self) -> Option<Task> {
        let pager = &*self.tree.leaves().pager;
        if pager.write_back_due() {
            return Some(Task::WriteBack);
        }
        if self.tree.evict_due() {
            return Some(Task::Evict);
        }
        let unflushed = pager.log.unflushed_bytes();
        if unflushed >= self.options.log_buffer_bytes {
            return Some(Task::FlushLog);
        }
        if self
            .checkpointer
            .due(pager.log.end(), self.options.checkpoint_log_bytes)
        {
            return Some(Task::Checkpoint);
        }
        if self.tree.merge_due() {
            return Some(Task::Merge);
        }
        if self.interval_is_over() {
            return Some(Task::FlushLog);
        }
        None
    }

    /// Does one bounded step of `task`.
    ///
    /// # Errors
    /// A device failure, after which the store refuses writes. [`Error::Poisoned`] if it refused
    /// them before.
    pub(crate) fn pump(&self, task: Task) -> Result<Progress> {
        match task {
            Task::FlushLog => {
                self.flush_log(self.tree.leaves().pager.log.end())?;
                Ok(Progress::Idle)
            }
            Task::WriteBack => self.tree.leaves().pager.write_back(),
            Task::Evict => self.tree.evict(),
            Task::Checkpoint => {
                let every = self.options.checkpoint_log_bytes;
                self.checkpointer.step(&self.tree, every)
            }
            Task::Merge => self.tree.merge_step(),
        }
    }

    /// Pumps due tasks until `stop` is set. This is the body of a background thread on a real
    /// device.
    ///
    /// # Errors
    /// As [`Core::pump`].
    pub(crate) fn pump_until(&self, stop: &std::sync::atomic::AtomicBool) -> Result<()> {
        let mut pause = FIRST_PAUSE;
        while !stop.load(Ordering::Acquire) {
            let Some(task) = self.due() else {
                std::thread::sleep(pause);
                pause = LONGEST_PAUSE.min(2 * pause);
                continue;
            };
            pause = FIRST_PAUSE;
            match self.pump(task) {
                // Writers get the error; this thread waits for room.
                Err(e) if e.is_no_space() => std::thread::sleep(NO_SPACE_PAUSE),
                pumped => drop(pumped?),
            }
        }
        Ok(())
    }

    /// Completes a checkpoint and closes the store. All writes are then durable, and the next
    /// opening has nothing to redo.
    ///
    /// # Errors
    /// A device failure, or [`Error::Poisoned`] after an earlier one. The next opening recovers
    /// what was durable.
    pub(crate) fn close(&self) -> Result<()> {
        if self.options.read_only || self.life.is_closed() {
            return Ok(());
        }
        self.finish_batch()?;
        // Merge before the checkpoint begins, so that the next opening finds nothing to redo. A
        // damaged neighbour prevents one merge, not the others.
        drop(self.merge_noted());
        self.checkpointer.run(&self.tree)?;
        // All of the log has been applied to the pages now.
        let nothing = Lba(0)..Lba(0);
        self.tree.leaves().pager.volume.reclaim(nothing);
        self.life.close();
        Ok(())
    }

    pub(crate) fn flush_log(&self, lsn: Lsn) -> Result<()> {
        // A sync up to a durable LSN flushes nothing, so it must not put off the next flush.
        if lsn > self.tree.leaves().pager.log.durable() {
            self.life.log_flushes(&*self.clock);
        }
        self.tree.leaves().pager.flush_log(lsn)?;
        if mutation::on("harmless-second-flush") {
            self.tree.leaves().pager.volume.flush()?;
        }
        self.tree
            .leaves()
            .pager
            .volume
            .tell(|| Event::Acknowledged { lsn });
        Ok(())
    }

    /// Runs checkpoint steps until the log has room again.
    pub(crate) fn make_log_room(&self) -> Result<()> {
        let log = &self.tree.leaves().pager.log;
        if log.space_left() > log.capacity() / 2 {
            // Another thread has made room meanwhile, or what there is has been reserved.
            crate::sync::yield_now();
            return Ok(());
        }
        // Try twice: if another checkpoint had just ended when this one began, other threads may
        // have filled the log while it ran.
        for _ in 0..2 {
            let before = log.redo_start();
            self.checkpointer.run(&self.tree)?;
            if log.redo_start() != before || log.space_left() >= log.capacity() / 4 {
                return Ok(());
            }
        }
        Err(Error::LogFull {
            capacity: log.capacity(),
            redo_start: log.redo_start(),
        })
    }

    /// Repeats `attempt` until the change is made, and makes room for it between attempts. No latch
    /// is held there.
    pub(super) fn change<T>(&self, attempt: &mut dyn FnMut() -> Result<Attempt<T>>) -> Result<T> {
        self.check_writable()?;
        let _pass = self.pass()?;
        self.repeat(attempt)
    }

    /// Returns an error if the store takes no writes. Writes call this first.
    pub(super) fn check_writable(&self) -> Result<()> {
        if self.options.read_only {
            return Err(Error::ReadOnly);
        }
        self.life.check_open()?;
        self.tree.leaves().pager.check_poison()?;
        self.tree.leaves().pager.retry_refused()
    }

    /// Repeats `attempt` as [`Core::change`] does, for a caller that has the right to write.
    pub(super) fn repeat<T>(&self, attempt: &mut dyn FnMut() -> Result<Attempt<T>>) -> Result<T> {
        let mut squeezed = 0;
        loop {
            let freed = self.pages_freed();
            match attempt()? {
                Attempt::Done(done) => return Ok(done),
                Attempt::Again => {}
                Attempt::LogFull => self.make_log_room()?,
                Attempt::StoreFull if squeezed == MOST_SQUEEZES => return Err(self.is_full()),
                Attempt::StoreFull => match self.make_page_room(freed)? {
                    Made::Squeezed if !mutation::on("full-for-ever") => squeezed += 1,
                    Made::Squeezed | Made::Freed => {}
                },
            }
        }
    }

    /// Returns the memory in use, by part of the store.
    fn memory(&self) -> MemoryStats {
        let pager = &*self.tree.leaves().pager;
        let tree = self.tree.stats(Stats::default());
        MemoryStats {
            cache_bytes: pager.cache.frame_bytes(),
            ring_bytes: tree.bf.map_or(0, |bf| bf.ring_bytes),
            index_bytes: tree.index_bytes,
            map_bytes: pager.cache.map_bytes()
                + pager.pages.map_bytes()
                + pager.overflow.map_bytes()
                + tree.bf.map_or(0, |bf| bf.mapping_bytes),
            log_buffer_bytes: pager.log.buffer_bytes(),
            write_buffer_bytes: pager.write_buffer_bytes(),
        }
    }

    /// Visits the lower fence and page id of every leaf, in key order.
    pub(crate) fn for_each_leaf(&self, visit: impl FnMut(&[u8], PageId)) {
        self.tree.leaves().index.for_each(visit);
    }

    /// Latches a leaf for reading.
    pub(crate) fn read_leaf(&self, page: PageId) -> Result<Fix<ReadGuard<'_>>> {
        self.tree.leaves().pager.read(page)
    }

    /// Returns how full each leaf is; see [`super::Store::leaf_fill`].
    ///
    /// # Errors
    /// Device failures and damage.
    pub(crate) fn leaf_fill(&self) -> Result<Vec<LeafFill>> {
        let mut leaves = Vec::with_capacity(self.tree.leaves().index.len());
        let mut ids = Vec::with_capacity(self.tree.leaves().index.len());
        self.for_each_leaf(|_, page| ids.push(page));
        for page in ids {
            if let Fix::Got(leaf) = self.read_leaf(page)? {
                let view = leaf.view();
                leaves.push(LeafFill {
                    page,
                    records: view.count() as u32,
                    used_bytes: view.used_bytes() as u32,
                    prefix_bytes: view.prefix().len() as u32,
                });
            }
        }
        Ok(leaves)
    }
}

impl Kv for Core {
    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let found = self.get_stored(key, value)?;
        match Pointer::of(value) {
            Some(pointer) if found => self.get_long(key, pointer, value),
            _ => Ok(found),
        }
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<Lsn> {
        let limits = self.tree.leaves().limits();
        overflow::check(limits, key, value)?;
        if mutation::on("refuses-for-nothing") && value.len() % 7 == 3 {
            return Err(Error::Poisoned {
                why: "a seeded bug".into(),
            });
        }
        let for_others = self.must_flush_for_others();
        let lsn = match overflow::goes_out_of_line(limits, key.len(), value) {
            true => self.put_long(key, value)?,
            false => self.change(&mut || self.tree.try_put(key, value))?,
        };
        self.acknowledge(lsn, for_others)
    }

    fn delete(&self, key: &[u8]) -> Result<Lsn> {
        if self.options.read_only {
            return Err(Error::ReadOnly);
        }
        if overflow::check(self.tree.leaves().limits(), key, b"").is_err() {
            // No store holds such a key. This answer is as durable as the log.
            return Ok(self.tree.leaves().pager.log.durable());
        }
        let for_others = self.must_flush_for_others();
        let (lsn, sparse) = self.change(&mut || self.tree.try_delete(key))?;
        let acknowledged = self.acknowledge(lsn, for_others)?;
        if sparse {
            // The delete is complete whether or not the merge succeeds. An error here means that a
            // neighbour is damaged or the device failed. It is reported to whoever uses that
            // neighbour, or to the next write.
            drop(self.tree.merge_step());
        }
        Ok(acknowledged)
    }

    fn write(&self, batch: &Batch) -> Result<Lsn> {
        self.write_batch(batch)
    }

    fn scan(&self, from: &[u8], visit: &mut Visitor<'_>) -> Result<()> {
        self.following(visit, |visit| self.scan_stored(from, visit))
    }

    fn scan_back(&self, before: Option<&[u8]>, visit: &mut Visitor<'_>) -> Result<()> {
        self.following(visit, |visit| self.scan_back_stored(before, visit))
    }

    fn sync(&self, lsn: Lsn) -> Result<()> {
        if mutation::on("harmless-checkpoint") {
            self.checkpointer.run(&self.tree)?;
        }
        self.flush_log(lsn)
    }

    fn checkpoint(&self) -> Result<Lsn> {
        if self.options.read_only {
            return Err(Error::ReadOnly);
        }
        self.checkpointer.run(&self.tree)
    }

    fn pump_due(&self) -> Result<bool> {
        let Some(task) = self.due() else {
            return Ok(false);
        };
        self.pump(task)?;
        Ok(true)
    }

    fn stats(&self) -> Stats {
        let pager = &*self.tree.leaves().pager;
        let (cache_hits, cache_misses) = pager.cache.hits_and_misses();
        let counters = &pager.counters;
        Stats {
            cache_hits,
            cache_misses,
            evictions: counters.evictions.load(Ordering::Relaxed),
            pages_written_back: counters.written_back.load(Ordering::Relaxed),
            pages_checkpointed: counters.checkpointed.load(Ordering::Relaxed),
            checkpoints: self.checkpointer.completed(),
            cache_frames: pager.cache.ordinary() as u64,
            memory: self.memory(),
            mod_log: pager.pages.mod_log_stats(),
            places_taken: pager.pages.places_taken(),
            overflow: pager.overflow.stats(),
            ..self.tree.stats(pager.log.stats(pager.volume.stats()))
        }
    }
}
