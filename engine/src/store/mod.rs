//! A store on a block device: the handles that its users hold.
//!
//! ```text
//! Store ──clone──▶ Store          handles, any number
//!    └──────┬───────┘
//!          Core                   the store; dropping the last handle flushes its log
//!           ▲
//!        worker                   with `open_path`: a thread that does the background work
//! ```
//!
//! A program opens a file with [`Store::open_path`]. Callers that bring their own device and clock,
//! such as simulators, use [`Store::open`]. It starts no thread: the owner pumps background
//! [`Task`]s ([`Store::due`], [`Store::pump`]).

mod batch;
pub(crate) mod checkpoint;
mod core;
mod fill;
mod life;
mod long;
mod open;
mod open_batch;
#[cfg(not(any(loom, shuttle)))]
mod path;
pub(crate) mod recovery;
pub(crate) mod room;
mod steps;
mod task;
#[cfg(not(any(loom, shuttle)))]
mod worker;

pub use fill::LeafFill;
pub use task::Task;

use std::sync::atomic::AtomicBool;

use self::core::Core;
#[cfg(not(any(loom, shuttle)))]
use self::worker::Worker;
use crate::batch::Batch;
use crate::device::BlockDevice;
use crate::error::Result;
use crate::events::Observer;
use crate::kv::{Kv, Visitor};
use crate::mini;
use crate::options::Options;
use crate::stats::{RingUse, Stats};
use crate::sync::Arc;
use crate::types::{Clock, Lsn, PageId, Progress};
use recovery::RecoveryReport;

/// A crash-safe ordered map on a block device. [`Kv`] documents its operations and their
/// guarantees.
///
/// A store is a handle: clones share the store, and any number of threads may use them.
///
/// There are three ways to end a store:
///
/// - [`Store::close`] makes all writes durable and reports whether that worked.
/// - Dropping the last handle flushes the log as well as it can and reports nothing.
/// - [`Store::abandon`] flushes nothing, as if the process had been killed.
#[derive(Clone)]
pub struct Store {
    /// The background thread, if the store has one. Declared before `core`, so that the thread has
    /// ended when the last handle drops the store.
    #[cfg(not(any(loom, shuttle)))]
    worker: Option<std::sync::Arc<Worker>>,
    core: Arc<Core>,
}

impl Store {
    /// Opens the store on `device`, and recovers it if necessary. If the device holds no store and
    /// `options.create` is set, formats it.
    ///
    /// The page size and page store in `options` must match those of an existing store. The log
    /// size and journal size are taken from the device.
    ///
    /// # Errors
    /// Nothing has been written after:
    ///
    /// - [`crate::Error::BadOption`] and [`crate::Error::Mismatch`], which name the option;
    /// - [`crate::Error::NotAStore`]: the device holds something else, or it is blank and
    ///   `options.create` is not set;
    /// - [`crate::Error::InUse`]: another store has this device object open.
    ///
    /// Recovery may also fail:
    ///
    /// - [`crate::Error::NoSpace`]: recovery must write, and the file system below is full. With
    ///   [`Options::read_only`] it writes nothing.
    /// - [`crate::Error::Damaged`] or [`crate::Error::MissingPage`]: recovery found a state that no
    ///   crash leaves behind. [`crate::salvage`] extracts what can still be read.
    /// - Device failures.
    ///
    /// Recovery that failed may have redone some changes. The next attempt redoes them all, so
    /// trying again loses no acknowledged write. The device is released in every case.
    pub fn open(
        device: Arc<dyn BlockDevice>,
        clock: Arc<dyn Clock>,
        options: &Options,
    ) -> Result<Store> {
        Store::open_observed(device, clock, options, None)
    }

    /// Like [`Store::open`], and emits events to `observer` from recovery on. See
    /// [`crate::events`].
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_observed(
        device: Arc<dyn BlockDevice>,
        clock: Arc<dyn Clock>,
        options: &Options,
        observer: Option<Arc<dyn Observer>>,
    ) -> Result<Store> {
        Ok(Store {
            #[cfg(not(any(loom, shuttle)))]
            worker: None,
            core: Arc::new(Core::open(device, clock, options, observer)?),
        })
    }

    /// Emits the mini-page events of a `bf` tree to `observer` from now on. See [`mini::events`].
    /// Other trees emit none.
    ///
    /// # Panics
    /// If the store has been cloned.
    pub fn observe_mini_pages(&mut self, observer: Arc<dyn Observer<mini::events::Event>>) {
        let core = Arc::get_mut(&mut self.core).expect("the store is observed before it is cloned");
        core.observe_mini_pages(observer);
    }

    /// Returns what recovery did when the store was opened.
    #[must_use]
    pub fn recovery(&self) -> RecoveryReport {
        self.core.recovery()
    }

    /// Returns the options in force.
    #[must_use]
    pub fn options(&self) -> &Options {
        self.core.options()
    }

    /// Returns how often an interval of [`crate::Durability::Grouped`] has begun anew since the store
    /// was opened: at each flush of the log that a client, a task or an interval asked for.
    ///
    /// Between two of these, and nowhere else, does the clock decide what a store does. Whoever
    /// compares runs with different clocks needs to know.
    #[must_use]
    pub fn intervals_begun(&self) -> u64 {
        self.core.life.log_flush_count()
    }

    /// Returns the most urgent task that is due now, or `None`. Costs a few loads, and one clock
    /// reading under [`crate::Durability::Grouped`].
    #[must_use]
    pub fn due(&self) -> Option<Task> {
        self.core.due()
    }

    /// Does one bounded step of `task`.
    ///
    /// A store that is never pumped still works: operations that need the work do it themselves. A
    /// simulator pumps so that background work happens at times of its choice:
    ///
    /// ```
    /// use std::sync::Arc;
    /// use treering_engine::device::MemDevice;
    /// use treering_engine::prelude::*;
    /// use treering_engine::{Progress, SystemClock, Task};
    ///
    /// let device = Arc::new(MemDevice::new(1 << 15));
    /// let options = Options { durability: Durability::Deferred, ..Options::default() };
    /// let store = Store::open(device, Arc::new(SystemClock::new()), &options)?;
    /// store.put(b"key", b"value")?;
    ///
    /// // Do everything that is due. So far this is nothing.
    /// while let Some(task) = store.due() {
    ///     store.pump(task)?;
    /// }
    /// // A task may also be pumped before it is due: this completes a checkpoint.
    /// let before = store.stats().checkpoints;
    /// while store.pump(Task::Checkpoint)? == Progress::More {}
    /// assert_eq!(store.stats().checkpoints, before + 1);
    /// # Ok::<(), treering_engine::Error>(())
    /// ```
    ///
    /// # Errors
    /// A device failure, after which the store refuses writes. [`crate::Error::Poisoned`] if it
    /// refused them before.
    pub fn pump(&self, task: Task) -> Result<Progress> {
        self.core.pump(task)
    }

    /// Pumps due tasks until `stop` is set. This is the body of a background thread on a real
    /// device.
    ///
    /// # Errors
    /// As [`Store::pump`].
    pub fn pump_until(&self, stop: &AtomicBool) -> Result<()> {
        self.core.pump_until(stop)
    }

    /// Completes a checkpoint and closes the store. All writes are then durable, and the next
    /// opening has nothing to redo. Other handles refuse writes from then on
    /// ([`crate::Error::Closed`]).
    ///
    /// # Errors
    /// A device failure, or [`crate::Error::Poisoned`] after an earlier one. The handle is gone in
    /// this case too, and the next opening recovers what was durable.
    pub fn close(self) -> Result<()> {
        #[cfg(not(any(loom, shuttle)))]
        if let Some(worker) = &self.worker {
            worker.stop();
        }
        self.core.close()
    }

    /// Drops the store without writing anything more, as if the process had been killed. Writes
    /// that are not durable are lost. For crash tests, and for discarding writes that were not
    /// synced.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use treering_engine::SystemClock;
    /// use treering_engine::device::MemDevice;
    /// use treering_engine::prelude::*;
    ///
    /// let device = Arc::new(MemDevice::new(1 << 15));
    /// let options = Options { durability: Durability::Deferred, ..Options::default() };
    /// let open = || Store::open(device.clone(), Arc::new(SystemClock::new()), &options);
    ///
    /// let store = open()?;
    /// store.put(b"key", b"value")?;
    /// store.abandon();
    /// assert_eq!(open()?.get_owned(b"key")?, None);
    ///
    /// // A plain drop flushes the log.
    /// let store = open()?;
    /// store.put(b"key", b"value")?;
    /// drop(store);
    /// assert!(open()?.get_owned(b"key")?.is_some());
    /// # Ok::<(), treering_engine::Error>(())
    /// ```
    pub fn abandon(self) {
        self.abandon_on_drop();
    }

    /// Makes a later drop of the store act like [`Store::abandon`], whichever handle is dropped
    /// last. For shared stores, and for stores that must not be flushed when a thread panics.
    /// Everything else works as before, including [`Store::close`].
    pub fn abandon_on_drop(&self) {
        self.core.abandon_on_drop();
    }

    /// Returns how full each leaf is, in key order. Reads the leaves through the cache and counts
    /// as ordinary reads, so call it after all other measurements.
    ///
    /// # Errors
    /// Device failures and damage.
    pub fn leaf_fill(&self) -> Result<Vec<LeafFill>> {
        self.core.leaf_fill()
    }

    /// Returns how the bytes of a Bf-Tree's ring are used now; `None` for other trees. Exact if no
    /// other thread uses the store. O(records in the ring).
    ///
    /// ```
    /// use std::sync::Arc;
    /// use treering_engine::device::MemDevice;
    /// use treering_engine::{BfOptions, SystemClock, TreeKind, prelude::*};
    ///
    /// # fn main() -> treering_engine::Result<()> {
    /// let tree = TreeKind::Bf(BfOptions::default());
    /// let options = Options { tree, ..Options::default() };
    /// let device = Arc::new(MemDevice::new(1 << 15));
    /// let store = Store::open(device, Arc::new(SystemClock::new()), &options)?;
    /// store.put(b"key", b"value")?;
    ///
    /// let ring = store.ring_use().expect("a Bf-Tree");
    /// assert_eq!((ring.dirty_records, ring.dirty), (1, 8));
    /// // A checkpoint merges the record into its leaf.
    /// store.checkpoint()?;
    /// assert_eq!(store.ring_use().expect("a Bf-Tree").dirty, 0);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn ring_use(&self) -> Option<RingUse> {
        self.core.tree.ring_use()
    }

    /// Writes one page back if it is cached, dirty and not latched. Returns whether it was written.
    /// For tests that drive a store step by step.
    ///
    /// # Errors
    /// As [`Store::pump`].
    pub fn write_back_page(&self, page: PageId) -> Result<bool> {
        self.core.write_back_page(page)
    }

    /// The position up to which the log is durable. For tests that drive a store step by step.
    #[must_use]
    pub fn durable(&self) -> Lsn {
        self.core.durable()
    }

    /// Evicts one page if it is cached, clean and not latched, then reads it again. Returns whether
    /// it was evicted. For tests that drive a store step by step.
    ///
    /// # Errors
    /// A device failure or damage.
    pub fn reload_page(&self, page: PageId) -> Result<bool> {
        self.core.reload_page(page)
    }

    /// The shared store behind this handle.
    pub(crate) fn core(&self) -> &Core {
        &self.core
    }
}

impl Kv for Store {
    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.core.get(key, value)
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<Lsn> {
        self.core.put(key, value)
    }

    fn delete(&self, key: &[u8]) -> Result<Lsn> {
        self.core.delete(key)
    }

    fn write(&self, batch: &Batch) -> Result<Lsn> {
        self.core.write(batch)
    }

    fn scan(&self, from: &[u8], visit: &mut Visitor<'_>) -> Result<()> {
        self.core.scan(from, visit)
    }

    fn scan_back(&self, before: Option<&[u8]>, visit: &mut Visitor<'_>) -> Result<()> {
        self.core.scan_back(before, visit)
    }

    fn sync(&self, lsn: Lsn) -> Result<()> {
        self.core.sync(lsn)
    }

    fn checkpoint(&self) -> Result<Lsn> {
        self.core.checkpoint()
    }

    fn pump_due(&self) -> Result<bool> {
        self.core.pump_due()
    }

    fn stats(&self) -> Stats {
        self.core.stats()
    }
}
