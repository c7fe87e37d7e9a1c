//! Errors that a drive gives on purpose: of a flush, for want of room, of a read.
//!
//! | fault | what fails | what the drive does from then on |
//! |---|---|---|
//! | `flush` | the N-th `fsync`, `fdatasync`, `msync` or `O_DSYNC` write, with `EIO` | what was written to that file since its last flush never reaches the drive, although the program still reads it |
//! | `space` | the N-th write or `fallocate` that needs room, with `ENOSPC` | the drive stays as full as it is then, until something is removed |
//! | `read` | the N-th read that reaches the drive, with `EIO` | these blocks cannot be read until they are written again |
//!
//! A failed flush is as Linux has it: dirty pages count as clean once their write-back has failed,
//! so the next `fsync` succeeds and writes none of them (Rebello et al., *Can Applications Recover
//! from fsync Failures?*, ATC 2020: ext4, XFS and Btrfs alike). A page that is written again is
//! written whole. Below a real file system a failed flush is no flush, and that file system
//! decides what becomes of it.
//!
//! Faults are counted from when they are [armed](Faults::arm): what mounting needs never fails.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use treering_engine::BLOCK_SIZE;

use crate::error::DriveError;
use crate::face::Face;
use crate::recording::NodeId;

const BLOCK: u64 = BLOCK_SIZE as u64;

/// What fails, counted from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultPlan {
    /// The flush that fails.
    pub flush: Option<u64>,
    /// The write that finds no room.
    pub space: Option<u64>,
    /// The read that fails.
    pub read: Option<u64>,
}

/// Something that fails once, and how often it could have.
#[derive(Debug)]
struct Once {
    /// The call that fails; 0 for none.
    at: u64,
    calls: AtomicU64,
}

impl Once {
    fn at(number: Option<u64>) -> Once {
        Once {
            at: number.unwrap_or(0),
            calls: AtomicU64::new(0),
        }
    }

    fn fails(&self) -> bool {
        self.at != 0 && self.calls.fetch_add(1, Ordering::Relaxed) + 1 == self.at
    }

    fn told(&self, what: &str) -> Option<(String, bool)> {
        let calls = self.calls.load(Ordering::Relaxed);
        let happened = calls >= self.at;
        (self.at != 0).then(|| {
            let words = match happened {
                true => format!("{what} {} of {calls} failed", self.at),
                false => format!("{what} {} was to fail, but there were {calls}", self.at),
            };
            (words, happened)
        })
    }
}

/// The faults of one drive, shared by all that serves it.
#[derive(Debug)]
pub struct Faults {
    armed: AtomicBool,
    flush: Once,
    space: Once,
    read: Once,
    /// Blocks that cannot be read: of a node from the first to the last, exclusive.
    unreadable: Mutex<Vec<(NodeId, u64, u64)>>,
}

impl Default for Faults {
    fn default() -> Faults {
        Faults::new(FaultPlan::default())
    }
}

impl Faults {
    /// The faults of a plan, not armed yet.
    #[must_use]
    pub fn new(plan: FaultPlan) -> Faults {
        Faults {
            armed: AtomicBool::new(false),
            flush: Once::at(plan.flush),
            space: Once::at(plan.space),
            read: Once::at(plan.read),
            unreadable: Mutex::new(Vec::new()),
        }
    }

    /// The faults of a plan on a face.
    ///
    /// # Errors
    /// [`DriveError::Parameter`] if the face cannot have them: a disk with a file system has all
    /// its room.
    pub fn on(face: Face, plan: FaultPlan) -> Result<Faults, DriveError> {
        if plan.space.is_some() && face != Face::Files {
            let why = "expected --fs files, as a disk with a file system has all its room";
            return Err(DriveError::Parameter {
                name: "fail-space",
                why: why.into(),
            });
        }
        Ok(Faults::new(plan))
    }

    /// From now on faults are counted.
    pub fn arm(&self) {
        self.armed.store(true, Ordering::Release);
    }

    /// What happened of each fault, in words, and whether it did.
    #[must_use]
    pub fn told(&self) -> Vec<(String, bool)> {
        let all = [
            self.flush.told("flush"),
            self.space.told("write that needs room"),
            self.read.told("read"),
        ];
        all.into_iter().flatten().collect()
    }

    fn is_armed(&self) -> bool {
        self.armed.load(Ordering::Acquire)
    }

    /// Whether this flush fails.
    pub(crate) fn fail_flush(&self) -> bool {
        self.is_armed() && self.flush.fails()
    }

    /// Whether there is no room any more from this write on.
    pub(crate) fn fail_space(&self) -> bool {
        self.is_armed() && self.space.fails()
    }

    /// Whether this read fails.
    pub(crate) fn fail_read(&self, node: NodeId, offset: u64, len: u64) -> bool {
        if self.read.at == 0 || !self.is_armed() || len == 0 {
            return false;
        }
        let (first, last) = blocks(offset, len);
        let mut unreadable = self.unreadable.lock();
        if self.read.fails() {
            unreadable.push((node, first, last));
        }
        let hits = |(of, from, to): &(NodeId, u64, u64)| *of == node && *from < last && first < *to;
        unreadable.iter().any(hits)
    }

    /// Blocks that are written can be read again.
    pub(crate) fn written(&self, node: NodeId, offset: u64, len: u64) {
        if self.read.at == 0 || !self.is_armed() || len == 0 {
            return;
        }
        let (first, last) = blocks(offset, len);
        let mut left = Vec::new();
        let mut unreadable = self.unreadable.lock();
        for (of, from, to) in unreadable.drain(..) {
            if of != node || to <= first || last <= from {
                left.push((of, from, to));
                continue;
            }
            left.extend((from < first).then_some((of, from, first)));
            left.extend((last < to).then_some((of, last, to)));
        }
        *unreadable = left;
    }
}

/// The first block of a range of bytes, and the one behind its last.
fn blocks(offset: u64, len: u64) -> (u64, u64) {
    let end = offset.saturating_add(len);
    (offset / BLOCK, end.div_ceil(BLOCK))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: NodeId = NodeId(7);

    #[test]
    fn the_nth_flush_fails_and_no_other() {
        let plan = FaultPlan {
            flush: Some(3),
            ..FaultPlan::default()
        };
        let faults = Faults::new(plan);
        assert!(!faults.fail_flush(), "not armed");
        faults.arm();
        let failed: Vec<bool> = (0..5).map(|_| faults.fail_flush()).collect();
        assert_eq!(failed, [false, false, true, false, false]);
        assert_eq!(faults.told(), [("flush 3 of 5 failed".to_owned(), true)]);
    }

    #[test]
    fn what_cannot_be_read_can_be_once_it_is_written() {
        let plan = FaultPlan {
            read: Some(2),
            ..FaultPlan::default()
        };
        let faults = Faults::new(plan);
        faults.arm();
        assert!(!faults.fail_read(FILE, 0, 4 * BLOCK));
        assert!(faults.fail_read(FILE, BLOCK, 2 * BLOCK));
        assert!(faults.fail_read(FILE, 0, 4 * BLOCK), "a bad block stays");
        assert!(!faults.fail_read(FILE, 0, BLOCK) && !faults.fail_read(NodeId(8), BLOCK, BLOCK));
        faults.written(FILE, BLOCK, 100);
        assert!(!faults.fail_read(FILE, BLOCK, BLOCK));
        assert!(faults.fail_read(FILE, 2 * BLOCK, 1), "the other one stays");
    }

    #[test]
    fn a_fault_that_never_came_is_told() {
        let plan = FaultPlan {
            space: Some(9),
            ..FaultPlan::default()
        };
        let faults = Faults::new(plan);
        faults.arm();
        assert!(!faults.fail_space());
        let words = "write that needs room 9 was to fail, but there were 1";
        assert_eq!(faults.told(), [(words.to_owned(), false)]);
    }
}
