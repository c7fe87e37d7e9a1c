//! A store in persistent memory: a tree of leaves there, its log, and what it keeps in DRAM.
//!
//! It is not a [`crate::Store`]: there are no pages, no cache, no write-back and no checkpoints, and the log is the tree's own. What they share is
//! [`Kv`], the index and the manner: no thread is started (save by [`PmOptions::recovery_threads`]), and what can wait is a [`PmTask`] that the owner pumps.
//!
//! **Durability.** A write is durable when the call returns; its LSN is a moment of the store's logical clock, and [`Kv::sync`] has nothing to wait for.

use crate::device::PmDevice;
use crate::error::{Error, Result};
use crate::kv::{Kv, Visitor};
use crate::mutation;
use crate::options::PmOptions;
use crate::pm::entries::ENTRY_BYTES;
use crate::pm::layout::{Format, Geometry};
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
    /// Give up the chunks of the log that hold mostly what is in leaves already.
    CleanLog,
    /// Merge leaves that deletes have left sparse with their neighbours, those from before the
    /// opening included.
    MergeLeaves,
}

/// An ordered map in persistent memory, crash-safe. See [`Kv`] for what it does and promises.
///
/// A write is durable when it returns, so dropping the store loses nothing, and a drop and the end
/// of a killed process are the same.
///
/// **After an error.** [`Error::PmTooLong`] and [`Error::PmFull`] have changed nothing, and other
/// writes may succeed. After a failure of the device, or damage that a write met, every write,
/// [`PmStore::pump`], [`Kv::sync`] and [`Kv::checkpoint`] return [`Error::Poisoned`] with that
/// first cause, and reads go on as far as they can. Open the store again to write.
pub struct PmStore {
    tree: Box<dyn PmTree>,
    options: PmOptions,
    recovery: PmRecoveryReport,
    /// How often leaves had lost keys when all of them were merged that could be.
    swept: AtomicU64,
    failed: AtomicBool,
    why: Mutex<String>,
}

impl PmStore {
    /// Opens the store on `device`, recovering it if need be, or formats a blank device, which must be all zeros, if `options.create` says so.
    ///
    /// # Errors
    /// [`Error::BadOption`], [`Error::NotAStore`], [`Error::PmDamaged`] if recovery finds what no
    /// crash leaves behind, [`Error::PmFull`] if the store was another tree, or had larger buffers,
    /// and the device has no room for what its log says, and device failures. What the store held
    /// is still there, and another opening may go on where this one ended.
    pub fn open(device: Arc<dyn PmDevice>, options: &PmOptions) -> Result<PmStore> {
        options.check()?;
        let medium = Arc::new(Medium::new(device));
        let geometry = match Geometry::load(&medium)? {
            Some(geometry) => geometry,
            None if options.create => {
                let format = Format::of(options.tree);
                let geometry = Geometry::plan(medium.len(), options.chunk_bytes, format)?;
                if !mutation::on("pm-blank-by-magic") {
                    geometry.check_blank(&medium)?;
                }
                geometry.format(&medium)?;
                geometry
            }
            None => return Err(Error::NotAStore { lba: Lba(0) }),
        };
        if geometry.format != Format::of(options.tree) {
            return Err(Error::BadOption {
                name: "tree",
                why: format!(
                    "{}; expected one of leaves of {} bytes, as the store has them",
                    options.tree.name(),
                    geometry.format.leaf_bytes()
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

    /// The options in force.
    pub fn options(&self) -> &PmOptions {
        &self.options
    }

    /// What opening had to do.
    pub fn recovery(&self) -> PmRecoveryReport {
        self.recovery
    }

    /// The task that wants doing now. A few loads.
    pub fn due(&self) -> Option<PmTask> {
        if self.tree.cleaning_due() {
            return Some(PmTask::CleanLog);
        }
        self.tree.merging_due().then_some(PmTask::MergeLeaves)
    }

    /// Does one bounded step of `task`; all of it if cleaning is naive.
    ///
    /// # Errors
    /// [`Error::PmFull`] if what must be flushed has no room, which a delete or a later pump may
    /// change; a device failure, after which the store refuses writes; [`Error::Poisoned`] from
    /// then on.
    pub fn pump(&self, task: PmTask) -> Result<Progress> {
        self.check()?;
        match task {
            PmTask::CleanLog => self.note(self.tree.clean()),
            PmTask::MergeLeaves => self.note(self.tree.merge_step()),
        }
    }

    /// Flushes what is buffered to the leaves and gives up the log, so that the next opening has nothing to replay. Nothing becomes more
    /// durable by it.
    ///
    /// # Errors
    /// As [`PmStore::pump`]. The store is gone all the same, and has lost nothing that was
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

    /// After a failure that leaves leaf and buffer in doubt, nothing more is written.
    fn note<T>(&self, done: Result<T>) -> Result<T> {
        if let Err(e) = &done
            && !matches!(e, Error::PmFull { .. } | Error::PmTooLong { .. })
        {
            // The first cause is what later refusals carry, also where several fail at once.
            let mut why = self.why.lock();
            if why.is_empty() {
                *why = e.to_string();
                self.failed.store(true, Ordering::Release);
            }
        }
        done
    }

    /// Makes a change; if there is no room, once more when room was made.
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
                // There was no room to say that nothing goes.
                return Ok(self.now());
            }
            // Nor to log the key, or to write it down.
            let in_place = !mutation::on("pm-delete-wants-a-record");
            if in_place && self.note(self.tree.delete_in_place(key))? {
                return Ok(self.now());
            }
        }
        done
    }

    /// Does what can be done for a store that would say it is full; says whether there was anything.
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
            // No such key can be there.
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

    /// Returns at once: what has an LSN is durable.
    fn sync(&self, _lsn: Lsn) -> Result<()> {
        self.check()
    }

    /// Flushes what is buffered to the leaves and gives up the log; if there is no room, once more
    /// when room was made.
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
