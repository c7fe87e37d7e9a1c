//! Log space promised to operations that have begun: one that has room when it begins finds room
//! when it appends.
//!
//! A promise is a few times what the record takes, so with many threads and a small log it is the
//! promises of others, not the log, that leave no room. A checkpoint does not help then; whoever
//! begins waits until others are done. They wait in the order of arrival, with nothing in hand: no
//! latch, no page, no other promise.

use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Condvar, Mutex, Turns};
use crate::wal::Log;

/// See the module's story.
pub(super) struct LogRoom {
    /// Bytes promised.
    promised: AtomicU64,
    turns: Turns,
    /// Whether the one whose turn it is sleeps until a promise ends.
    awaited: AtomicBool,
    sleeping: Mutex<()>,
    ended: Condvar,
}

/// A promise of log space, given back when dropped.
#[must_use]
pub(in crate::trees) struct Room<'a> {
    of: &'a LogRoom,
    bytes: u64,
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        // Sequentially consistent, as what `in_turn` does: either it sees this promise end, or this
        // sees that it waits.
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

    /// What is promised for `bytes` of record.
    fn promise(log: &Log, bytes: usize) -> u64 {
        // Twice: block headers, varints and the cut record at an epoch's end are far less than the
        // record again.
        2 * bytes as u64 + 256 + 2 * log.padding()
    }

    fn fits(&self, log: &Log, promise: u64) -> bool {
        log.space_left() > self.promised.load(Ordering::SeqCst) + promise
    }

    /// Promises log space for `bytes` of record, or says that there is none. Never waits.
    pub(super) fn at_once(&self, log: &Log, bytes: usize) -> Option<Room<'_>> {
        let bytes = LogRoom::promise(log, bytes);
        // Or those for whom there is no room would take it from those for whom there is.
        if !self.fits(log, bytes) {
            return None;
        }
        let promised = self.promised.fetch_add(bytes, Ordering::SeqCst) + bytes;
        let room = Room { of: self, bytes };
        (log.space_left() > promised).then_some(room)
    }

    /// Promises log space for `bytes` of record to who has nothing in hand, in the order of
    /// arrival; `None` if only a checkpoint can make room.
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
