//! How long writes stay undurable, and how a store ends.
//!
//! ```text
//!                    PerCommit  Grouped(interval)                    Deferred
//! a write returns    durable    in the log's buffer                  in the log's buffer
//! it is durable      -          with the first write, pump, sync or  with the next sync,
//!                               checkpoint behind the interval       checkpoint, full buffer
//! `close`            checkpointed, and an error is returned
//! `drop`             durable, best effort: an error has nobody to go to; and the log says so
//!                    (`Log::witness`), lest damage to its last flush pass for a crash
//! `abandon`          as a killed process leaves it: what was not durable is lost
//! ```
//!
//! An interval is kept by the writers themselves, on their own clock: whoever finds that the log
//! has held something undurable for that long flushes it, own write included. The engine has no
//! thread, so a store in which nobody writes any more keeps its last writes undurable until
//! somebody pumps, syncs, closes or drops it.

use super::core::Core;
use crate::error::{Error, Result};
use crate::mutation;
use crate::options::Durability;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::types::{Clock, Lsn};

/// When the log was last flushed, and whether the end of the store flushes it.
pub(super) struct Life {
    last_log_flush: AtomicU64,
    abandoned: AtomicBool,
    closed: AtomicBool,
}

impl Life {
    pub(super) fn begin(clock: &dyn Clock) -> Life {
        Life {
            last_log_flush: AtomicU64::new(clock.now().0),
            abandoned: AtomicBool::new(false),
            closed: AtomicBool::new(false),
        }
    }

    /// The store has been closed: it takes no more writes.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// Whether one of the store's handles has closed it.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Refuses a write to a store that one of its handles has closed.
    pub(super) fn check_open(&self) -> Result<()> {
        match self.is_closed() {
            true => Err(Error::Closed),
            false => Ok(()),
        }
    }

    /// The log is about to be flushed.
    pub(super) fn log_flushes(&self, clock: &dyn Clock) {
        self.last_log_flush.store(clock.now().0, Ordering::Relaxed);
    }
}

impl Core {
    /// From now on dropping the store is [`Core::abandon`], whoever drops it: for a store that is
    /// shared, or that must not outlive a panic. All else is as before; [`Core::close`] still
    /// closes.
    pub(crate) fn abandon_on_drop(&self) {
        self.life.abandoned.store(true, Ordering::Relaxed);
    }

    /// Whether the log has held something undurable for an interval of [`Durability::Grouped`]. One
    /// clock reading, if it holds anything undurable at all.
    pub(super) fn interval_is_over(&self) -> bool {
        let Durability::Grouped(interval) = self.options.durability else {
            return false;
        };
        if self.tree.leaves().pager.log.unflushed_bytes() == 0 {
            return false;
        }
        let last = self.life.last_log_flush.load(Ordering::Relaxed);
        let longer = if mutation::on("interval-is-long") {
            1_000
        } else {
            1
        };
        self.clock.now().0.saturating_sub(last) >= longer * interval.0
    }

    /// Asked before a write: has what others wrote waited for an interval, so that this write must
    /// flush behind it?
    pub(super) fn must_flush_for_others(&self) -> bool {
        self.interval_is_over() && !mutation::on("interval-needs-pump")
    }

    /// Keeps what [`Core::options`] promise, of a write that is in the log up to `lsn` and of
    /// those before it; `for_others` is what [`Core::must_flush_for_others`] said.
    pub(super) fn acknowledge(&self, lsn: Lsn, for_others: bool) -> Result<Lsn> {
        if self.options.durability == Durability::PerCommit {
            self.flush_log(lsn)?;
        } else if for_others && self.interval_is_over() {
            // Of several writers who come together the first has flushed for the others.
            self.flush_log(self.tree.leaves().pager.log.end())?;
        }
        Ok(lsn)
    }

    /// What a drop does for the writes that nobody has synced. Not after a failure, for what the
    /// device holds is in doubt; nor while the thread panics, for what this store holds may be.
    fn flush_on_drop(&self) {
        let abandoned = self.life.abandoned.load(Ordering::Relaxed);
        if abandoned || std::thread::panicking() || mutation::on("drop-forgets-log") {
            return;
        }
        let pager = &*self.tree.leaves().pager;
        if pager.log.unflushed_bytes() > 0 {
            // Refused if the store is poisoned. What fails here has nobody to be told to: that is
            // what `close` is for.
            drop(pager.flush_log(pager.log.end()));
        }
        if !self.options.read_only && !mutation::on("drop-leaves-no-witness") {
            drop(pager.log.witness());
        }
    }
}

impl Drop for Core {
    /// Makes the log durable, best effort: see [`Core::close`] for knowing whether it is.
    fn drop(&mut self) {
        self.flush_on_drop();
    }
}
