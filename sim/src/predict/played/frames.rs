//! The page frames and their clock hand, as the engine's write-back moves it.
//!
//! ```text
//! hand ─▶ referenced: clear the bit, go on    clean: evict    dirty: into the batch, then evict
//! ```
//!
//! Write-back begins when fewer than B frames are free and stops at 2B. Nothing here knows what a
//! page is: only which ones are in frames, used, and changed since when.

/// Marks a page that is in no frame.
const NOWHERE: u32 = u32::MAX;

/// Marks a clean page.
const CLEAN: u64 = 0;

#[derive(Clone, Copy, Debug)]
struct Frame {
    page: u32,
    referenced: bool,
    /// End of the log after the newest change since the page was last written.
    changed: u64,
}

const EMPTY: Frame = Frame {
    page: NOWHERE,
    referenced: false,
    changed: CLEAN,
};

/// A dirty page on its way to the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Picked {
    frame: u32,
    pub(super) page: u32,
    /// End of the log after its newest change.
    pub(super) changed: u64,
}

/// Counts since they were last reset.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct FrameCounts {
    pub(super) hits: u64,
    pub(super) misses: u64,
    pub(super) evicted_dirty: u64,
    pub(super) swept: u64,
    /// Frames that the hand has passed.
    pub(super) passed: u64,
}

/// The frames.
pub(super) struct Frames {
    frames: Vec<Frame>,
    /// Frame of each page.
    places: Vec<u32>,
    free: Vec<u32>,
    hand: usize,
    batch: usize,
    pub(super) counts: FrameCounts,
}

impl Frames {
    /// Empty frames for pages `0..pages`.
    pub(super) fn new(frames: usize, batch: usize, pages: usize) -> Frames {
        let frames = frames.max(2);
        Frames {
            frames: vec![EMPTY; frames],
            places: vec![NOWHERE; pages],
            free: (0..frames as u32).rev().collect(),
            hand: 0,
            batch: batch.clamp(1, frames / 2),
            counts: FrameCounts::default(),
        }
    }

    /// Frames that the hand passes in one turn.
    pub(super) fn len(&self) -> usize {
        self.frames.len()
    }

    /// Whether the next access to this page needs a free frame and there is none.
    #[inline]
    pub(super) fn lacks_room_for(&self, page: u32) -> bool {
        self.free.is_empty() && self.places[page as usize] == NOWHERE
    }

    /// Whether a page is in a frame.
    pub(super) fn holds(&self, page: u32) -> bool {
        self.places[page as usize] != NOWHERE
    }

    /// An access to a page. If it changes the page, `changed` is the end of the log behind the
    /// change. Returns whether it was a hit. A frame must be free if the page is in none.
    #[inline]
    pub(super) fn visit(&mut self, page: u32, changed: Option<u64>) -> bool {
        let at = self.places[page as usize];
        if at != NOWHERE {
            let frame = &mut self.frames[at as usize];
            frame.referenced = true;
            frame.changed = changed.unwrap_or(frame.changed);
            self.counts.hits += 1;
            return true;
        }
        self.counts.misses += 1;
        self.enter(page, changed.unwrap_or(CLEAN));
        false
    }

    /// Changes a page in a frame without an access of its own.
    pub(super) fn change(&mut self, page: u32, changed: u64) {
        let at = self.places[page as usize];
        if let Some(frame) = self.frames.get_mut(at as usize) {
            frame.changed = changed;
        }
    }

    /// Puts a page that has no image yet into a frame.
    pub(super) fn create(&mut self, page: u32, changed: u64) {
        self.enter(page, changed);
    }

    fn enter(&mut self, page: u32, changed: u64) {
        let Some(at) = self.free.pop() else { return };
        self.places[page as usize] = at;
        self.frames[at as usize] = Frame {
            page,
            referenced: false,
            changed,
        };
    }

    /// Drops a page that does not exist any more.
    pub(super) fn discard(&mut self, page: u32) {
        let at = self.places[page as usize];
        if at != NOWHERE {
            self.evict(at);
        }
    }

    /// Whether eviction ahead of need is due.
    #[inline]
    pub(super) fn is_short(&self) -> bool {
        self.free.len() < self.batch
    }

    /// One step of the hand: evicts clean pages and picks at most a batch of dirty ones, which are
    /// clean from now on.
    pub(super) fn pick(&mut self, picked: &mut Vec<Picked>) {
        picked.clear();
        for _ in 0..2 * self.frames.len() {
            if picked.len() == self.batch || self.free.len() + picked.len() >= 2 * self.batch {
                break;
            }
            let at = self.hand as u32;
            self.hand += 1;
            if self.hand == self.frames.len() {
                self.hand = 0;
            }
            self.counts.passed += 1;
            let frame = &mut self.frames[at as usize];
            if frame.page == NOWHERE {
                continue;
            }
            if std::mem::take(&mut frame.referenced) {
                continue;
            }
            if frame.changed != CLEAN {
                picked.push(Picked {
                    frame: at,
                    page: frame.page,
                    changed: std::mem::replace(&mut frame.changed, CLEAN),
                });
            } else if !picked.iter().any(|p| p.frame == at) {
                self.evict(at);
            }
        }
        self.counts.evicted_dirty += picked.len() as u64;
    }

    /// Evicts the picked pages once they are written.
    pub(super) fn evict_picked(&mut self, picked: &[Picked]) {
        picked.iter().for_each(|p| self.evict(p.frame));
    }

    fn evict(&mut self, at: u32) {
        let frame = std::mem::replace(&mut self.frames[at as usize], EMPTY);
        if frame.page != NOWHERE {
            self.places[frame.page as usize] = NOWHERE;
            self.free.push(at);
        }
    }

    /// One step of a checkpoint from frame `from` on: picks at most a batch of dirty pages, which
    /// are clean from now on but stay. Returns the frame to go on from, or `None` at the end.
    pub(super) fn sweep(&mut self, from: usize, picked: &mut Vec<Picked>) -> Option<usize> {
        picked.clear();
        for at in from..self.frames.len() {
            if picked.len() == self.batch {
                self.counts.swept += picked.len() as u64;
                return Some(at);
            }
            let frame = &mut self.frames[at];
            if frame.page != NOWHERE && frame.changed != CLEAN {
                picked.push(Picked {
                    frame: at as u32,
                    page: frame.page,
                    changed: std::mem::replace(&mut frame.changed, CLEAN),
                });
            }
        }
        self.counts.swept += picked.len() as u64;
        None
    }
}
