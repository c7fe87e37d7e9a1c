//! A device that loses a write on demand, and an observer that lets a checkpoint and the rest of a
//! store take turns.
//!
//! ```text
//! the episode's thread   put  put ─── split ┐                ┌ put ─── end
//! a checkpoint's thread                ReadsFence ─ ReadsFence
//! ```
//!
//! Only one of the two threads runs at any time, and the seed decides when they change places. So
//! leaves are split, merged and written while the index is being read, and every episode repeats
//! exactly. The episode's thread may be in the middle of a split or merge then, with the latches of
//! the leaves: reading the index, and writing the snapshot and the superblock, needs none.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use treering_engine::device::{BlockDevice, CrashDevice, DeviceError};
use treering_engine::events::{Event, Observer, Snapshot};
use treering_engine::{IoClass, Lba};

use crate::conformance::record::{Heard, Recorder, TreeUse};
use treering_oracle::random::Random;

/// Chunks are lost so many times as often as pages: there are fewer of them.
const MORE_CHUNKS: u64 = 6;

/// A device that loses the next write of a class when it is asked to.
pub(super) struct Drive {
    device: Arc<CrashDevice>,
    loses_page: AtomicBool,
    loses_chunk: AtomicBool,
}

impl Drive {
    fn loses(&self, class: IoClass) -> bool {
        match class {
            IoClass::Page => self.loses_page.swap(false, Ordering::Relaxed),
            IoClass::Extra => self.loses_chunk.swap(false, Ordering::Relaxed),
            _ => false,
        }
    }
}

impl BlockDevice for Drive {
    fn capacity_blocks(&self) -> u64 {
        self.device.capacity_blocks()
    }

    fn read(&self, lba: Lba, buf: &mut [u8], class: IoClass) -> Result<(), DeviceError> {
        self.device.read(lba, buf, class)
    }

    fn write(&self, lba: Lba, bytes: &[u8], class: IoClass) -> Result<(), DeviceError> {
        if self.loses(class) {
            return Ok(());
        }
        self.device.write(lba, bytes, class)
    }

    fn trim(&self, lba: Lba, blocks: u64) -> Result<(), DeviceError> {
        self.device.trim(lba, blocks)
    }

    fn flush(&self) -> Result<(), DeviceError> {
        self.device.flush()
    }
}

thread_local! {
    /// Whether this thread runs a checkpoint in turns.
    static CHECKPOINTS: Cell<bool> = const { Cell::new(false) };
}

/// Whose turn it is.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Turn {
    /// The episode's thread, as there is no other.
    #[default]
    Alone,
    /// The episode's thread. The other one rests.
    Episode,
    /// The checkpoint's thread. If the flag is set, it gives the turn back at the next chance.
    Checkpoint { briefly: bool },
}

/// Records the events of a store, and lets threads take turns.
pub(super) struct Ear {
    pub(super) recorder: Arc<Recorder>,
    pub(super) drive: Arc<Drive>,
    turn: Mutex<Turn>,
    changed: Condvar,
    rng: Mutex<Random>,
    /// One in so many writes of pages is lost, if any, and more of chunks.
    losses: Option<u64>,
}

impl Ear {
    /// Listens to a store on this device. If `losses` is given, one in so many writes of pages is
    /// lost, and more of chunks.
    pub(super) fn new(
        recorder: Arc<Recorder>,
        device: Arc<CrashDevice>,
        seed: u64,
        losses: Option<u64>,
    ) -> Arc<Ear> {
        Arc::new(Ear {
            recorder,
            drive: Arc::new(Drive {
                device,
                loses_page: AtomicBool::new(false),
                loses_chunk: AtomicBool::new(false),
            }),
            turn: Mutex::default(),
            changed: Condvar::new(),
            rng: Mutex::new(Random::new(seed)),
            losses,
        })
    }

    fn one_in(&self, n: u64) -> bool {
        let mut rng = self.rng.lock().unwrap_or_else(PoisonError::into_inner);
        rng.one_in(n)
    }

    fn turn(&self) -> MutexGuard<'_, Turn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the turn to the other thread, unless that has ended, and waits until it comes back or
    /// ends.
    fn give(&self, to: Turn) {
        let mut turn = self.turn();
        if *turn == Turn::Alone {
            return;
        }
        *turn = to;
        self.changed.notify_all();
        let mine = CHECKPOINTS.get();
        let waits = |turn: &mut Turn| match turn {
            Turn::Alone => false,
            Turn::Episode => mine,
            Turn::Checkpoint { .. } => !mine,
        };
        let waited = self.changed.wait_while(turn, waits);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Runs `checkpoint` on a thread of its own, in turns with `meanwhile`, which is called each
    /// time that the checkpoint rests.
    pub(super) fn in_turns<T: Send>(
        &self,
        checkpoint: impl FnOnce() -> T + Send,
        mut meanwhile: impl FnMut(),
    ) -> T {
        /// Ends the turns, also in a panic.
        struct Ends<'a>(&'a Ear);
        impl Drop for Ends<'_> {
            fn drop(&mut self) {
                *self.0.turn() = Turn::Alone;
                self.0.changed.notify_all();
            }
        }
        *self.turn() = Turn::Episode;
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                CHECKPOINTS.set(true);
                let turn = self.turn();
                let waits = |turn: &mut Turn| !matches!(turn, Turn::Checkpoint { .. });
                let waited = self.changed.wait_while(turn, waits);
                drop(waited.unwrap_or_else(PoisonError::into_inner));
                let _ends = Ends(self);
                checkpoint()
            });
            let _ends = Ends(self);
            loop {
                self.give(Turn::Checkpoint { briefly: false });
                if *self.turn() == Turn::Alone {
                    break;
                }
                meanwhile();
            }
            other
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// The checkpoint's thread may rest here.
    fn rest(&self) {
        let briefly = *self.turn() == Turn::Checkpoint { briefly: true };
        if briefly || self.one_in(3) {
            self.give(Turn::Episode);
        }
    }

    /// The episode's thread may let the checkpoint go on here.
    fn lend(&self) {
        let rests = *self.turn() == Turn::Episode;
        if rests && self.one_in(2) {
            self.give(Turn::Checkpoint { briefly: true });
        }
    }

    fn lose(&self, flag: &AtomicBool, times: u64) {
        if self.losses.is_some_and(|n| self.one_in((n / times).max(2))) {
            flag.store(true, Ordering::Relaxed);
            self.recorder.hear(None, Heard::Tree(TreeUse::Loses));
        }
    }
}

impl Observer for Ear {
    fn event(&self, event: Event) {
        self.recorder.event(event);
        match event {
            Event::PageWriting { .. } => self.lose(&self.drive.loses_page, 1),
            Event::Snapshot(Snapshot::WritesChunk { .. }) => {
                self.lose(&self.drive.loses_chunk, MORE_CHUNKS);
            }
            _ => {}
        }
        if CHECKPOINTS.get() {
            match event {
                Event::Snapshot(Snapshot::Begins { .. } | Snapshot::ReadsFence { .. }) => {
                    self.rest();
                }
                Event::PagesWritten { .. } | Event::SuperblockWritten { .. } => self.rest(),
                _ => {}
            }
        } else if matches!(
            event,
            Event::PageChanged { .. }
                | Event::Snapshot(
                    Snapshot::Splits { .. } | Snapshot::Merges { .. } | Snapshot::Indexed { .. }
                )
        ) {
            self.lend();
        }
    }
}
