//! The few page frames below the ring: they act as a write buffer of whole leaves, and their
//! evictions make the log flush.
//!
//! This is the clock of [`crate::predict::cache`], but simulated, because leaves are not accessed
//! independently. The ring is emptied some KiB at a time (§4.2), so merges come in bursts, whose
//! length grows with the number of frames. How much of a burst hits the frames, and how old the
//! changes are that it evicts, cannot be computed from renewals of single leaves.

use crate::predict::cache::CacheShape;

/// No frame.
pub(super) const NOWHERE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Frame {
    leaf: u32,
    referenced: bool,
    /// Of a dirty leaf, when its newest change was made.
    changed: Option<f64>,
}

/// What was counted.
#[derive(Clone, Copy, Default)]
pub(super) struct Traffic {
    /// Leaves read from the device.
    pub(super) reads: f64,
    /// Leaves written to it.
    pub(super) writes: f64,
    /// Log flushes: before that, for a leaf goes after its log (WAL rule), or because the buffer
    /// was full.
    pub(super) flushes: f64,
}

/// See the module's story.
pub(super) struct Frames {
    frames: Vec<Option<Frame>>,
    /// By leaf.
    places: Vec<u32>,
    free: Vec<u32>,
    hand: usize,
    batch: usize,
    /// Changes up to this time are in the durable log.
    durable: f64,
    /// The log was flushed since somebody asked.
    flushed: bool,
    pub(super) traffic: Traffic,
}

impl Frames {
    /// For so many leaves; `part` is the share of all leaves that they are.
    pub(super) fn new(shape: CacheShape, leaves: usize, part: f64) -> Frames {
        let frames = (shape.frames * part).max(1.0) as usize;
        Frames {
            frames: vec![None; frames],
            places: vec![NOWHERE; leaves],
            free: (0..frames as u32).rev().collect(),
            hand: 0,
            batch: ((shape.batch * part) as usize).clamp(1, frames),
            durable: f64::NEG_INFINITY,
            flushed: false,
            traffic: Traffic::default(),
        }
    }

    /// The log is flushed.
    pub(super) fn flush(&mut self, now: f64) {
        self.durable = now;
        self.traffic.flushes += 1.0;
        self.flushed = true;
    }

    /// Whether the log was flushed since this was asked last.
    pub(super) fn take_flushed(&mut self) -> bool {
        std::mem::take(&mut self.flushed)
    }

    /// A leaf is looked at or, if `changed`, merged into, with changes up to that time.
    pub(super) fn visit(&mut self, leaf: u32, changed: Option<f64>, now: f64) {
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

    fn free_frame(&mut self, now: f64) -> u32 {
        loop {
            if let Some(at) = self.free.pop() {
                return at;
            }
            self.write_back(now);
        }
    }

    /// After an operation: eviction ahead of need.
    pub(super) fn tidy(&mut self, now: f64) {
        while self.free.len() < self.batch {
            self.write_back(now);
        }
    }

    /// One step of the hand.
    fn write_back(&mut self, now: f64) {
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

    fn write(&mut self, changed: f64, now: f64) {
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

    /// A checkpoint writes what is dirty.
    pub(super) fn sweep(&mut self, now: f64) {
        for at in 0..self.frames.len() {
            let changed = self.frames[at].as_mut().and_then(|f| f.changed.take());
            if let Some(changed) = changed {
                self.write(changed, now);
            }
        }
        self.flush(now);
    }
}
