//! [`PmStore`], a store in persistent memory: a tree of leaves there, its log, and its state in
//! DRAM.
//!
//! Unlike [`crate::Store`], it has no pages, no cache, no write-back and no checkpoints, and each
//! tree has its own kind of log. The two share [`Kv`], the index, and the way of working: no thread
//! is started (except by [`PmOptions::recovery_threads`]), and background work is a [`PmTask`] that
//! the owner pumps.
//!
//! **Durability.** A write is durable when the call returns. Its LSN is a moment of the store's
//! logical clock, and [`Kv::sync`] has nothing to wait for.

use crate::device::PmDevice;
use crate::error::{Error, Result};
use crate::events::Observer;
use crate::kv::{Kv, Visitor};
use crate::mutation;
use crate::options::PmOptions;
use crate::pm::entries::ENTRY_BYTES;
use crate::pm::events::Event;
use crate::pm::layout::Geometry;
use crate::pm::leaves::recover::PmRecoveryReport;
use crate::pm::medium::Medium;
use crate::pm::nodes::Change;
use crate::pm::room::make_room;
use crate::pm::space::Room;
use crate::pm::tree::{PmTree, Structure};
use crate::pm::trees;
use crate::stats::Stats;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Arc, Mutex};
use crate::types::{Lba, Lsn, Progress};

/// A kind of background work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PmTask {
    /// Clean the log: free the chunks whose entries are mostly in leaves already.
    CleanLog,
    /// Merge leaves that deletes have left sparse with their neighbours, including leaves from
    /// before the opening.
    MergeLeaves,
}

/// A crash-safe ordered map in persistent memory. See [`Kv`] for its operations and guarantees.
///
/// A write is durable when it returns, so dropping the store loses nothing; it is equivalent to
/// killing the process.
///
/// ```
/// use std::sync::Arc;
/// use treering_engine::device::MemPm;
/// use treering_engine::{Kv, PmOptions, PmStore};
///
/// # fn main() -> treering_engine::Result<()> {
/// let device = Arc::new(MemPm::new(16 << 20));
/// let store = PmStore::open(device.clone(), &PmOptions::default())?;
/// store.put(b"key", b"value")?;
/// while store.pump_due()? {} // background work, a bounded step at a time
/// drop(store);
///
/// // The power fails: whatever is still in the CPU caches is lost.
/// let device = Arc::new(MemPm::from_image(device.crash(&mut |_| 0)));
/// let store = PmStore::open(device, &PmOptions::default())?;
/// assert_eq!(store.get_owned(b"key")?.as_deref(), Some(&b"value"[..]));
/// # Ok(())
/// # }
/// ```
///
/// **After an error.** [`Error::PmTooLong`] and [`Error::PmFull`] have changed nothing, and other
/// writes may succeed. After a device failure, or damage found by a write, every write,
/// [`PmStore::pump`], [`Kv::sync`] and [`Kv::checkpoint`] return [`Error::Poisoned`] with that
/// first cause, and reads continue as far as they can. Open the store again to write.
pub struct PmStore {
    tree: Box<dyn PmTree>,
    options: PmOptions,
    recovery: PmRecoveryReport,
    /// How often leaves had lost keys when all possible merges were last made.
    swept: AtomicU64,
    failed: AtomicBool,
    why: Mutex<String>,
}

impl PmStore {
    /// Opens the store on `device`, recovering it if necessary. If `options.create` is set, formats
    /// a blank device, which must be all zeros.
    ///
    /// # Errors
    /// [`Error::BadOption`]; [`Error::NotAStore`]; [`Error::PmDamaged`] if recovery finds something
    /// that no crash leaves behind; [`Error::PmFull`] if the device has no room for what the log
    /// says, because the store was last opened as another tree or with larger buffers; device
    /// failures. The store's contents are still there, and another opening may continue where this
    /// one stopped.
    pub fn open(device: Arc<dyn PmDevice>, options: &PmOptions) -> Result<PmStore> {
        PmStore::open_observed(device, options, None)
    }

    /// As [`PmStore::open`], and reports the steps of recovery and of the tree to `observer`. The
    /// CCL-BTree and the LodgeTree report all of theirs.
    ///
    /// # Errors
    /// As [`PmStore::open`].
    pub fn open_observed(
        device: Arc<dyn PmDevice>,
        options: &PmOptions,
        observer: Option<Arc<dyn Observer<Event>>>,
    ) -> Result<PmStore> {
        options.check()?;
        let medium = Arc::new(Medium::observed(device, observer));
        let geometry = match Geometry::load(&medium)? {
            Some(geometry) => geometry,
            None if options.create => {
                let format = options.tree.facts().leaves;
                let geometry = Geometry::plan(medium.len(), options.chunk_bytes, format)?;
                if !mutation::on("pm-blank-by-magic") {
                    geometry.check_blank(&medium)?;
                }
                geometry.format(&medium)?;
                geometry
            }
            None => return Err(Error::NotAStore { lba: Lba(0) }),
        };
        if geometry.format != options.tree.facts().leaves {
            return Err(Error::BadOption {
                name: "tree",
                why: format!(
                    "{}; expected one of leaves of {} bytes, as the store has them",
                    options.tree.name(),
                    geometry.format.bytes()
                ),
            });
        }
        let (tree, recovery) = trees::open(medium, geometry, options)?;
        Ok(PmStore {
            tree,
            options: *options,
            recovery,
            swept: AtomicU64::new(0),
            failed: AtomicBool::new(false),
            why: Mutex::new(String::new()),
        })
    }

    /// Returns the options in force.
    pub fn options(&self) -> &PmOptions {
        &self.options
    }

    /// Returns what opening the store had to do.
    pub fn recovery(&self) -> PmRecoveryReport {
        self.recovery
    }

    /// Returns a task that is due now. Costs a few loads.
    pub fn due(&self) -> Option<PmTask> {
        if self.tree.cleaning_due() {
            return Some(PmTask::CleanLog);
        }
        self.tree.merging_due().then_some(PmTask::MergeLeaves)
    }

    /// Does one bounded step of `task`. Naive cleaning is done all at once.
    ///
    /// # Errors
    /// [`Error::PmFull`] if changes that must be flushed have no room, which may change after a
    /// delete or a later pump; a device failure, after which the store refuses writes;
    /// [`Error::Poisoned`] from then on.
    pub fn pump(&self, task: PmTask) -> Result<Progress> {
        self.check()?;
        match task {
            PmTask::CleanLog => self.note(self.tree.clean()),
            PmTask::MergeLeaves => self.note(self.tree.merge_step()),
        }
    }

    /// Flushes all buffered changes to the leaves and frees the log, so that the next opening has
    /// nothing to replay. Everything was durable already.
    ///
    /// # Errors
    /// As [`PmStore::pump`]. The store is closed in any case and has lost nothing that was
    /// acknowledged.
    pub fn close(self) -> Result<()> {
        self.checkpoint().map(drop)
    }

    fn check(&self) -> Result<()> {
        if !self.failed.load(Ordering::Acquire) {
            return Ok(());
        }
        let why = self.why.lock().clone();
        Err(Error::Poisoned { why })
    }

    /// Refuses all further writes after a failure that leaves leaf and buffer in doubt.
    fn note<T>(&self, done: Result<T>) -> Result<T> {
        if let Err(e) = &done
            && !matches!(e, Error::PmFull { .. } | Error::PmTooLong { .. })
        {
            // Later refusals report the first cause, even if several threads fail at once.
            let mut why = self.why.lock();
            if why.is_empty() {
                *why = e.to_string();
                self.failed.store(true, Ordering::Release);
            }
        }
        done
    }

    /// Makes a change. If there is no room, makes room and tries once more.
    fn change(&self, key: &[u8], value: Option<&[u8]>) -> Result<Lsn> {
        self.check()?;
        let mut done = self.try_change(key, value);
        if !matches!(done, Err(Error::PmFull { .. })) {
            return done;
        }
        if self.make_room(value.is_none())? {
            done = self.try_change(key, value);
        }
        if matches!(done, Err(Error::PmFull { .. })) && value.is_none() {
            if !self.has(key)? {
                // There was no room to record that nothing is deleted.
                return Ok(self.now());
            }
            // There was no room for a log entry or for a record of the key.
            let in_place = !mutation::on("pm-delete-wants-a-record");
            if in_place && self.note(self.tree.delete_in_place(key))? {
                return Ok(self.now());
            }
        }
        done
    }

    /// Does what it can to make room in a store that would otherwise report that it is full.
    /// Returns whether it did anything.
    fn make_room(&self, delete: bool) -> Result<bool> {
        let swept = self.swept.load(Ordering::Relaxed);
        let made = self.note(make_room(&*self.tree, swept, delete))?;
        if let Some(swept) = made {
            self.swept.store(swept, Ordering::Relaxed);
        }
        Ok(made.is_some())
    }

    fn has(&self, key: &[u8]) -> Result<bool> {
        self.tree.get(key, &mut Vec::new())
    }

    fn try_change(&self, key: &[u8], value: Option<&[u8]>) -> Result<Lsn> {
        let records = self.tree.base().records;
        let slot = self.note(records.encode(key, value, Room::of(value.is_none())))?;
        let change = Change {
            slot,
            delete: value.is_none(),
        };
        let done = self.note(self.tree.change(key, change));
        if matches!(done, Err(Error::PmFull { .. })) {
            self.note(records.free(slot))?;
        }
        done.map(|()| self.now())
    }

    fn now(&self) -> Lsn {
        Lsn(self.tree.base().clock.last().0)
    }
}

impl Kv for PmStore {
    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.tree.get(key, value)
    }

    /// Sets `key` to `value`. Durable when this returns.
    ///
    /// # Errors
    /// [`Error::PmTooLong`], [`Error::PmFull`], a device failure, damage.
    fn put(&self, key: &[u8], value: &[u8]) -> Result<Lsn> {
        let records = self.tree.base().records;
        records.check_key(key.len())?;
        records.check_value(value.len())?;
        self.change(key, Some(value))
    }

    fn delete(&self, key: &[u8]) -> Result<Lsn> {
        if self.tree.base().records.check_key(key.len()).is_err() {
            // No such key can exist.
            return Ok(self.now());
        }
        self.change(key, None)
    }

    fn scan(&self, from: &[u8], visit: &mut Visitor<'_>) -> Result<()> {
        self.tree.scan(from, visit)
    }

    fn scan_back(&self, before: Option<&[u8]>, visit: &mut Visitor<'_>) -> Result<()> {
        self.tree.scan_back(before, visit)
    }

    /// Returns at once, because everything that has an LSN is durable.
    fn sync(&self, _lsn: Lsn) -> Result<()> {
        self.check()
    }

    /// Flushes all buffered changes to the leaves and frees the log. If there is no room, makes
    /// room and tries once more.
    fn checkpoint(&self) -> Result<Lsn> {
        self.check()?;
        let mut done = self.tree.flush_all();
        if matches!(done, Err(Error::PmFull { .. })) && self.make_room(false)? {
            done = self.tree.flush_all();
        }
        self.note(done)?;
        Ok(self.now())
    }

    fn pump_due(&self) -> Result<bool> {
        let Some(task) = self.due() else {
            return Ok(false);
        };
        self.pump(task)?;
        Ok(true)
    }

    fn stats(&self) -> Stats {
        let base = self.tree.base();
        let pm = self.tree.stats();
        let Structure {
            splits,
            merges,
            index_bytes,
        } = self.tree.structure();
        Stats {
            written: base.medium.written(),
            read: base.medium.read(),
            flushes: base.medium.fences(),
            splits,
            merges,
            log_records: pm.log_appends,
            log_appended_bytes: pm.log_appends * ENTRY_BYTES,
            leaf_pages: base.space.leaves(),
            index_bytes,
            overflow: base.records.overflow(),
            pm: Some(pm),
            ..Stats::default()
        }
    }
}
