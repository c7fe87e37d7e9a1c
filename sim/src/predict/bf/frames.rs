//! The few page frames below the ring: they act as a write buffer of whole leaves, and their
//! evictions make the log flush.
//!
//! This is the clock of [`crate::predict::cache`], but simulated, because leaves are not accessed
//! independently. The ring is emptied some KiB at a time (§4.2), so merges come in bursts, whose
//! length grows with the number of frames. How much of a burst hits the frames, and how old the
//! changes are that it evicts, cannot be computed from renewals of single leaves.

use crate::predict::cache::CacheShape;

/// Marks a leaf that is in no frame.
pub(super) const NOWHERE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Frame {
    leaf: u32,
    referenced: bool,
    /// When the newest change of a dirty leaf was made.
    changed: Option<u64>,
}

/// Counts of reads, writes and flushes.
#[derive(Clone, Copy, Default)]
pub(super) struct Traffic {
    /// Leaves read from the device.
    pub(super) reads: f64,
    /// Leaves written to the device.
    pub(super) writes: f64,
    /// Log flushes. A leaf is written after its log (WAL rule), and the buffer may be full.
    pub(super) flushes: f64,
}

/// The frames and their clock hand.
pub(super) struct Frames {
    frames: Vec<Option<Frame>>,
    /// Frame of each leaf.
    places: Vec<u32>,
    free: Vec<u32>,
    hand: usize,
    batch: usize,
    /// Changes up to this time are durable in the log.
    durable: u64,
    /// Whether the log was flushed since [`Frames::take_flushed`] was last called.
    flushed: bool,
    pub(super) traffic: Traffic,
}

impl Frames {
    /// Frames for this many leaves, which are a share `part` of all leaves.
    pub(super) fn new(shape: CacheShape, leaves: usize, part: f64) -> Frames {
        let frames = (shape.frames * part).max(1.0) as usize;
        Frames {
            frames: vec![None; frames],
            places: vec![NOWHERE; leaves],
            free: (0..frames as u32).rev().collect(),
            hand: 0,
            batch: ((shape.batch * part) as usize).clamp(1, frames),
            durable: 0,
            flushed: false,
            traffic: Traffic::default(),
        }
    }

    /// Flushes the log.
    pub(super) fn flush(&mut self, now: u64) {
        self.durable = now;
        self.traffic.flushes += 1.0;
        self.flushed = true;
    }

    /// Whether the log was flushed since the last call.
    pub(super) fn take_flushed(&mut self) -> bool {
        std::mem::take(&mut self.flushed)
    }

    /// Reads a leaf or, if `changed` is given, merges into it changes up to that time.
    pub(super) fn visit(&mut self, leaf: u32, changed: Option<u64>, now: u64) {
        let mut at = self.places[leaf as usize];
        if at == NOWHERE {
            at = self.free_frame(now);
            self.traffic.reads += 1.0;
            self.places[leaf as usize] = at;
            self.frames[at as usize] = Some(Frame {
                leaf,
                referenced: false,
                changed,
            });
            return;
        }
        if let Some(frame) = &mut self.frames[at as usize] {
            frame.referenced = true;
            frame.changed = changed.or(frame.changed);
        }
    }

    fn free_frame(&mut self, now: u64) -> u32 {
        loop {
            if let Some(at) = self.free.pop() {
                return at;
            }
            self.write_back(now);
        }
    }

    /// Evicts ahead of need, after each operation.
    pub(super) fn tidy(&mut self, now: u64) {
        while self.free.len() < self.batch {
            self.write_back(now);
        }
    }

    /// One step of the clock hand, which writes back at most `batch` leaves.
    fn write_back(&mut self, now: u64) {
        let mut picked: Vec<u32> = Vec::with_capacity(self.batch);
        for _ in 0..2 * self.frames.len() {
            if picked.len() == self.batch || self.free.len() + picked.len() >= 2 * self.batch {
                break;
            }
            let at = self.hand as u32;
            self.hand = (self.hand + 1) % self.frames.len();
            let Some(frame) = &mut self.frames[at as usize] else {
                continue;
            };
            if std::mem::take(&mut frame.referenced) {
                continue;
            }
            if let Some(changed) = frame.changed.take() {
                self.write(changed, now);
                picked.push(at);
            } else if !picked.contains(&at) {
                self.evict(at);
            }
        }
        for at in picked {
            self.evict(at);
        }
    }

    fn write(&mut self, changed: u64, now: u64) {
        self.traffic.writes += 1.0;
        if changed > self.durable {
            self.flush(now);
        }
    }

    fn evict(&mut self, at: u32) {
        if let Some(frame) = self.frames[at as usize].take() {
            self.places[frame.leaf as usize] = NOWHERE;
            self.free.push(at);
        }
    }

    /// Writes all dirty leaves, as a checkpoint does.
    pub(super) fn sweep(&mut self, now: u64) {
        for at in 0..self.frames.len() {
            let changed = self.frames[at].as_mut().and_then(|f| f.changed.take());
            if let Some(changed) = changed {
                self.write(changed, now);
            }
        }
        self.flush(now);
    }
}
