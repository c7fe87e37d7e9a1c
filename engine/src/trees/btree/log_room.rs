//! Log space reserved for operations in progress: an operation that gets a reservation when it
//! begins will find room when it appends.
//!
//! A reservation is a few times what the record takes. So with many threads and a small log, it may
//! be the reservations of others, not the log, that leave no room. A checkpoint does not help then;
//! the operation waits until others are done. Operations wait in the order of arrival and hold
//! nothing meanwhile: no latch, no page, no other reservation.

use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Condvar, Mutex, Turns};
use crate::wal::Log;

/// The reservations of log space, see the module documentation.
pub(super) struct LogRoom {
    /// Bytes reserved.
    promised: AtomicU64,
    turns: Turns,
    /// Whether the thread whose turn it is sleeps until a reservation ends.
    awaited: AtomicBool,
    sleeping: Mutex<()>,
    ended: Condvar,
}

/// A reservation of log space, which ends on drop.
#[must_use]
pub(in crate::trees) struct Room<'a> {
    of: &'a LogRoom,
    bytes: u64,
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        // Sequentially consistent, as in `in_turn`: either that thread sees this reservation end,
        // or this thread sees that it waits.
        self.of.promised.fetch_sub(self.bytes, Ordering::SeqCst);
        if self.of.awaited.load(Ordering::SeqCst) {
            drop(self.of.sleeping.lock());
            self.of.ended.notify_all();
        }
    }
}

impl LogRoom {
    pub(super) fn new() -> LogRoom {
        LogRoom {
            promised: AtomicU64::new(0),
            turns: Turns::new(1),
            awaited: AtomicBool::new(false),
            sleeping: Mutex::new(()),
            ended: Condvar::new(),
        }
    }

    /// The bytes to reserve for a record of `bytes` bytes.
    fn promise(log: &Log, bytes: usize) -> u64 {
        // Twice the record: block headers, varints and the cut record at the end of an epoch need
        // far less.
        2 * bytes as u64 + 256 + 2 * log.padding()
    }

    fn fits(&self, log: &Log, promise: u64) -> bool {
        log.space_left() > self.promised.load(Ordering::SeqCst) + promise
    }

    /// Reserves log space for a record of `bytes` bytes. Returns `None` if there is none. Never
    /// waits.
    pub(super) fn at_once(&self, log: &Log, bytes: usize) -> Option<Room<'_>> {
        let bytes = LogRoom::promise(log, bytes);
        // Checked first, so that a reservation that fails does not take room from one that would
        // succeed.
        if !self.fits(log, bytes) {
            return None;
        }
        let promised = self.promised.fetch_add(bytes, Ordering::SeqCst) + bytes;
        let room = Room { of: self, bytes };
        (log.space_left() > promised).then_some(room)
    }

    /// Reserves log space for a record of `bytes` bytes, in the order of arrival. The caller must
    /// hold nothing. Returns `None` if only a checkpoint can make room.
    pub(super) fn in_turn(&self, log: &Log, bytes: usize) -> Option<Room<'_>> {
        if !self.turns.is_wanted()
            && let Some(room) = self.at_once(log, bytes)
        {
            return Some(room);
        }
        let _turn = self.turns.wait();
        let promise = LogRoom::promise(log, bytes);
        loop {
            if let Some(room) = self.at_once(log, bytes) {
                return Some(room);
            }
            if log.space_left() <= log.capacity() / 2 {
                return None;
            }
            let mut sleeping = self.sleeping.lock();
            self.awaited.store(true, Ordering::SeqCst);
            let alone = self.promised.load(Ordering::SeqCst) == 0;
            if !alone && !self.fits(log, promise) {
                self.ended.wait(&mut sleeping);
            }
            self.awaited.store(false, Ordering::SeqCst);
            drop(sleeping);
            if alone && !self.fits(log, promise) {
                return None;
            }
        }
    }
}
