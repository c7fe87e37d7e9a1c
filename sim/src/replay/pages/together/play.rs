//! A store that is not there: its calls, and what they ask of the drive, come from a tape.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use parking_lot::Mutex;
use treering_engine::{ClassBytes, Error, Lsn, Options, RingUse, Stats, Task};

use super::super::backend::Hosted;
use super::tape::{Begun, Call, Interval, Place, Tape};
use crate::clock::VirtualClock;
use crate::drive::SimDrive;
use crate::replay::error::Failure;
use crate::replay::virtual_time::{Counted, Fed, Feed};

/// The store. It fails as soon as a real one might have done something else on this drive.
pub(super) struct Played {
    drive: Arc<dyn SimDrive>,
    tape: Arc<Mutex<Tape>>,
    clock: Arc<VirtualClock>,
    interval: Cell<Interval>,
    at: Cell<Place>,
    /// For what is read, which nobody looks at.
    buffer: RefCell<Vec<u8>>,
}

impl Played {
    /// A new store on `drive`. The tape begins with the creation of the recorded one.
    pub(super) fn open(
        drive: &Arc<dyn SimDrive>,
        (engine, clock): (&Options, &Arc<VirtualClock>),
        tape: &Arc<Mutex<Tape>>,
    ) -> Result<Played, Failure> {
        let played = Played {
            drive: Arc::clone(drive),
            tape: Arc::clone(tape),
            clock: Arc::clone(clock),
            interval: Cell::new(Interval::of(engine)),
            at: Cell::default(),
            buffer: RefCell::default(),
        };
        match played.call()? {
            Call::Opened => Ok(played),
            _ => Err(elsewhere()),
        }
    }

    /// Whether everything on the tape was played.
    pub(super) fn is_at_end(&self) -> bool {
        self.at.get().entry >= self.tape.lock().entries.len()
    }

    /// Asks the drive for what is left on the tape after the last call.
    pub(super) fn play_rest(&self) -> Result<(), Failure> {
        while !self.is_at_end() {
            let tape = self.tape.lock();
            let mut at = self.at.get();
            tape.play(&mut at, &*self.drive, &mut self.buffer.borrow_mut())
                .map_err(Error::from)?;
            self.at.set(at);
        }
        Ok(())
    }

    /// Goes to the beginning of the tape, which was cleared.
    pub(super) fn rewind(&self) {
        self.at.set(Place::default());
    }

    /// The next call of the recorded store, after all that it asked of the drive.
    fn call(&self) -> Result<Call, Failure> {
        let tape = self.tape.lock();
        let mut at = self.at.get();
        let call = tape.play(&mut at, &*self.drive, &mut self.buffer.borrow_mut());
        self.at.set(at);
        call.map_err(Error::from)?.ok_or_else(elsewhere)
    }

    fn is_over(&self) -> bool {
        self.interval.get().is_over(self.clock.virtual_now().0)
    }

    /// Checks that the clock of this drive would have decided the same, with `over` from before the
    /// call.
    fn agree(&self, over: bool, recorded: Begun) -> Result<(), Failure> {
        if recorded.over.is_some_and(|recorded| recorded != over) {
            return Err(elsewhere());
        }
        if recorded.anew {
            let mut interval = self.interval.get();
            interval.begin(self.clock.virtual_now().0);
            self.interval.set(interval);
        }
        Ok(())
    }
}

/// This drive has led, or might have led, to another course of events.
fn elsewhere() -> Failure {
    Failure::Engine(Error::Unsupported {
        what: "a course of events that was not recorded",
    })
}

/// Only what was written is known: what a drive counts of its host is what the store has written.
impl Counted for Played {
    fn stats(&self) -> Stats {
        let [log, page, extra] = self.drive.counters().host_written;
        Stats {
            written: ClassBytes { log, page, extra },
            ..Stats::default()
        }
    }
}

impl Hosted for Played {
    fn due(&self) -> Result<Option<Task>, Failure> {
        let over = self.is_over();
        match self.call()? {
            Call::Due(task, begun) => {
                self.agree(over, begun)?;
                Ok(task)
            }
            _ => Err(elsewhere()),
        }
    }

    fn pump(&self, task: Task) -> Result<(), Failure> {
        let over = self.is_over();
        match self.call()? {
            Call::Pumped(other, begun) if other == task => self.agree(over, begun),
            _ => Err(elsewhere()),
        }
    }

    fn drain(&self) -> Result<(), Failure> {
        let over = self.is_over();
        match self.call()? {
            Call::Drained(begun) => self.agree(over, begun),
            _ => Err(elsewhere()),
        }
    }

    fn ring_use(&self) -> Option<RingUse> {
        None
    }
}

/// The operations of the recorded run.
#[derive(Default)]
pub(super) struct OfTape {
    number: u64,
}

impl Feed<Played> for OfTape {
    fn next(&mut self, store: &Played) -> Result<Fed, Failure> {
        match store.call()? {
            Call::Fed(fed) => {
                self.number += u64::from(fed != Fed::Over);
                Ok(fed)
            }
            _ => Err(elsewhere()),
        }
    }

    fn number(&self) -> u64 {
        self.number
    }

    fn operate(&mut self, store: &Played) -> Result<Option<Lsn>, Failure> {
        let over = store.is_over();
        match store.call()? {
            Call::Operated { waits, begun } => {
                store.agree(over, begun)?;
                Ok(waits.then_some(Lsn(1)))
            }
            _ => Err(elsewhere()),
        }
    }
}
