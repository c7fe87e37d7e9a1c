//! A store on a block device, as its users hold it.
//!
//! ```text
//! Store ──clone──▶ Store          handles, as many as one likes
//!    └──────┬───────┘
//!          Core                   the store; the last handle makes its writes durable
//!           ▲
//!        worker                   with `open_path`: a thread that does the background work
//! ```
//!
//! [`Store::open_path`] is how a program opens a file. [`Store::open`] is for those who bring a
//! device and a clock of their own, such as simulators: it starts no thread, and background work is
//! [`Task`]s that the owner pumps ([`Store::due`], [`Store::pump`]).

pub(crate) mod checkpoint;
mod core;
mod fill;
mod life;
mod long;
mod open;
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
use crate::device::BlockDevice;
use crate::error::Result;
use crate::events::Observer;
use crate::kv::{Kv, Visitor};
use crate::mini;
use crate::options::Options;
use crate::stats::Stats;
use crate::sync::Arc;
use crate::types::{Clock, Lsn, PageId, Progress};
use recovery::RecoveryReport;

/// An ordered map on a device, crash-safe. See [`Kv`] for what it does and promises.
///
/// A store is a handle: clones share the store, and any number of threads may use them.
///
/// Dropping the last handle makes durable what nobody has synced, as well as it can;
/// [`Store::close`] reports whether it worked, and [`Store::abandon`] drops the store as a killed
/// process would.
#[derive(Clone)]
pub struct Store {
    /// Does the background work, if a thread does it. Before `core`, so that the thread has ended
    /// when the last handle gives the store up.
    #[cfg(not(any(loom, shuttle)))]
    worker: Option<std::sync::Arc<Worker>>,
    core: Arc<Core>,
}

impl Store {
    /// Opens the store on `device`, recovering it if need be, or formats a blank device if `options.create` says so.
    ///
    /// Page size and page store of an existing store must be the ones asked for; log size and journal size are the stored ones.
    ///
    /// # Errors
    /// [`Error::BadOption`] and [`Error::Mismatch`] name the option, and [`Error::NotAStore`] says that something else is there:
    /// nothing was written. [`Error::InUse`] if another store has this device object,
    /// [`Error::NoSpace`] if recovery must write and there is no room below (with
    /// [`Options::read_only`] it does not). [`Error::Damaged`] or [`Error::MissingPage`] if
    /// recovery finds what no crash leaves behind, and device failures: recovery may have made some
    /// of its changes again, another opening does them all, and no acknowledged write is lost by
    /// trying. A damaged store is a case for [`crate::salvage`]. The device is free again then.
    pub fn open(
        device: Arc<dyn BlockDevice>,
        clock: Arc<dyn Clock>,
        options: &Options,
    ) -> Result<Store> {
        Store::open_observed(device, clock, options, None)
    }

    /// As [`Store::open`]. `observer` is told what the store does from recovery on, see
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

    /// Has `observer` told what a `bf` tree does with its mini-pages from now on, see
    /// [`mini::events`]. Other trees have none.
    ///
    /// # Panics
    /// If the store has been cloned.
    pub fn observe_mini_pages(&mut self, observer: Arc<dyn Observer<mini::events::Event>>) {
        let core = Arc::get_mut(&mut self.core).expect("the store is observed before it is cloned");
        core.observe_mini_pages(observer);
    }

    /// What opening had to do.
    #[must_use]
    pub fn recovery(&self) -> RecoveryReport {
        self.core.recovery()
    }

    /// The options in force.
    #[must_use]
    pub fn options(&self) -> &Options {
        self.core.options()
    }

    /// The most urgent task that is due now, for those who pump. A few loads; one clock reading
    /// under [`crate::Durability::Grouped`].
    #[must_use]
    pub fn due(&self) -> Option<Task> {
        self.core.due()
    }

    /// Does one bounded step of `task`.
    ///
    /// # Errors
    /// A device failure; the store then refuses further writes. [`crate::Error::Poisoned`] if it
    /// refused them before.
    pub fn pump(&self, task: Task) -> Result<Progress> {
        self.core.pump(task)
    }

    /// Pumps whatever is due until `stop` is set: the body of a background thread on a real device.
    ///
    /// # Errors
    /// As [`Store::pump`].
    pub fn pump_until(&self, stop: &AtomicBool) -> Result<()> {
        self.core.pump_until(stop)
    }

    /// Checkpoints and lets go of the device. What was not synced before is durable, too, and the
    /// next opening has nothing to redo. Clones of the handle refuse writes from then on
    /// ([`crate::Error::Closed`]).
    ///
    /// # Errors
    /// A device failure, or [`crate::Error::Poisoned`] after an earlier one: the store is gone all
    /// the same, and the next opening finds what was durable.
    pub fn close(self) -> Result<()> {
        #[cfg(not(any(loom, shuttle)))]
        if let Some(worker) = &self.worker {
            worker.stop();
        }
        self.core.close()
    }

    /// Drops the store as the end of a killed process would: nothing more is written, and what was
    /// not durable is lost with it. For tests of what a crash leaves, and for those who want to
    /// forget what has not been synced. [`Store::close`] is the opposite; a plain drop is in
    /// between.
    pub fn abandon(self) {
        self.abandon_on_drop();
    }

    /// From now on dropping the store is [`Store::abandon`], whoever drops it: for a store that is
    /// shared, or that must not outlive a panic. All else is as before; [`Store::close`] still
    /// closes.
    pub fn abandon_on_drop(&self) {
        self.core.abandon_on_drop();
    }

    /// How full every leaf is, in key order. Reads the leaves through the cache, and counts like any
    /// other read, so ask after everything else has been measured.
    ///
    /// # Errors
    /// Device failures and damage.
    pub fn leaf_fill(&self) -> Result<Vec<LeafFill>> {
        self.core.leaf_fill()
    }

    /// Writes one page back, if it is in a frame, dirty and not latched; returns whether it was
    /// written. For tests that lead a store step by step.
    ///
    /// # Errors
    /// As [`Store::pump`].
    pub fn write_back_page(&self, page: PageId) -> Result<bool> {
        self.core.write_back_page(page)
    }

    /// Evicts one page, if it is in a frame, clean and not latched, and reads it again; returns
    /// whether it was evicted. For tests that lead a store step by step.
    ///
    /// # Errors
    /// A device failure or damage.
    pub fn reload_page(&self, page: PageId) -> Result<bool> {
        self.core.reload_page(page)
    }

    /// The store below the handles.
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
