//! When writes become durable, and what happens when a store ends.
//!
//! ```text
//!                    PerCommit  Grouped(interval)                    Deferred
//! a write returns    durable    in the log's buffer                  in the log's buffer
//! it is durable      -          with the first write, pump, sync or  with the next sync,
//!                               checkpoint after the interval        checkpoint, full buffer
//! `close`            a checkpoint makes all durable; an error is returned
//! `drop`             flushed, best effort; an error is not reported. A witness block in the log
//!                    (`Log::witness`) tells later damage to its last flush from a crash
//! `abandon`          nothing is flushed: what was not durable is lost
//! ```
//!
//! Under `Grouped`, the writers themselves keep the interval, on their own clock. A writer that
//! finds the log unflushed for that long flushes it, including its own write. The engine has no
//! thread. So if writes stop, the last ones stay undurable until somebody pumps, syncs, closes or
//! drops the store.

use super::core::Core;
use crate::error::{Error, Result};
use crate::mutation;
use crate::options::Durability;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::types::{Clock, Lsn};

/// Records when the log was last flushed, and whether dropping the store flushes it.
pub(super) struct Life {
    last_log_flush: AtomicU64,
    log_flushes: AtomicU64,
    abandoned: AtomicBool,
    closed: AtomicBool,
}

impl Life {
    pub(super) fn begin(clock: &dyn Clock) -> Life {
        Life {
            last_log_flush: AtomicU64::new(clock.now().0),
            log_flushes: AtomicU64::new(0),
            abandoned: AtomicBool::new(false),
            closed: AtomicBool::new(false),
        }
    }

    /// Marks the store as closed: it takes no more writes.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// Returns whether a handle has closed the store.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Returns an error if a handle has closed the store. Writes call this first.
    pub(super) fn check_open(&self) -> Result<()> {
        match self.is_closed() {
            true => Err(Error::Closed),
            false => Ok(()),
        }
    }

    /// Records that the log is about to be flushed.
    pub(super) fn log_flushes(&self, clock: &dyn Clock) {
        self.last_log_flush.store(clock.now().0, Ordering::Relaxed);
        self.log_flushes.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how often [`Life::log_flushes`] was called.
    pub(super) fn log_flush_count(&self) -> u64 {
        self.log_flushes.load(Ordering::Relaxed)
    }
}

impl Core {
    /// Makes a later drop of the store act like an abandon; see [`super::Store::abandon_on_drop`].
    pub(crate) fn abandon_on_drop(&self) {
        self.life.abandoned.store(true, Ordering::Relaxed);
    }

    /// Returns whether the log has held undurable records for an interval of
    /// [`Durability::Grouped`]. Reads the clock once, and only if there are undurable records.
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

    /// Returns whether earlier writes have waited for a whole interval, so that the coming write
    /// must flush the log. Called before a write.
    pub(super) fn must_flush_for_others(&self) -> bool {
        self.interval_is_over() && !mutation::on("interval-needs-pump")
    }

    /// Waits until the write at `lsn` is as durable as [`Core::options`] require. `for_others` is
    /// the result of [`Core::must_flush_for_others`] before the write.
    pub(super) fn acknowledge(&self, lsn: Lsn, for_others: bool) -> Result<Lsn> {
        if self.options.durability == Durability::PerCommit {
            self.flush_log(lsn)?;
        } else if for_others && self.interval_is_over() {
            // If several writers get here together, the first one flushes for all.
            self.flush_log(self.tree.leaves().pager.log.end())?;
        }
        Ok(lsn)
    }

    /// Flushes the log when the store is dropped. Does nothing after a failure, because the content
    /// of the device is in doubt, or during a panic, because the content of this store may be.
    fn flush_on_drop(&self) {
        let abandoned = self.life.abandoned.load(Ordering::Relaxed);
        if abandoned || std::thread::panicking() || mutation::on("drop-forgets-log") {
            return;
        }
        let pager = &*self.tree.leaves().pager;
        if pager.log.unflushed_bytes() > 0 {
            // Refused if the store is poisoned. A drop cannot return an error: callers that need it
            // use `close`.
            drop(pager.flush_log(pager.log.end()));
        }
        let failed = pager.check_poison().is_err() && !mutation::on("drop-writes-after-failure");
        if !failed && !self.options.read_only && !mutation::on("drop-leaves-no-witness") {
            drop(pager.log.witness());
        }
    }
}

impl Drop for Core {
    /// Makes the log durable, best effort. [`Core::close`] reports whether it worked.
    fn drop(&mut self) {
        self.flush_on_drop();
    }
}
