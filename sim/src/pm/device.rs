//! The simulated persistent memory: bytes, a CPU cache, DIMMs and counters behind the engine's
//! `PmDevice`.
//!
//! Operations and virtual time are connected in one of two ways:
//!
//! - [`SimPm::serve`], as with the drives: serves the requests since the last call, beginning at a
//!   given time. Clients are then served operation by operation.
//! - [`SimPm::submit`] and [`SimPm::next_done`]: the requests since the last call start as an
//!   operation of a client, and the simulation advances to the first operation that completes.
//!   Clients interleave line by line, which is what spoils write combining on the real device:
//!
//! ```text
//!  for each client:  run its first operation on the engine;  pm.submit(client, 0)
//!  while let Some((client, served)) = pm.next_done():
//!      run its next operation on the engine;  pm.submit(client, served.done)
//! ```
//!
//! In counting mode ([`TimingMode::Counting`]), lines reach the buffers immediately, in the order
//! of the engine's calls, and an operation takes its nominal time. With queues
//! ([`TimingMode::Queued`], module `timing`), lines reach them at their virtual time; until
//! [`SimPm::settle`], the counters lag behind by the lines that are still under way.
//!
//! Memory: the touched bytes themselves, five bytes per XPLine (two of them for wear), and the
//! table of the CPU cache (1/16 of its size).

use std::ops::Range;

use parking_lot::Mutex;
use treering_engine::device::{DeviceError, LINE_SIZE, PmDevice, check_bytes};
use treering_engine::{IoClass, Nanos};

use super::cache::MAX_LINES;
use super::counters::PmCounters;
use super::cpu::{Cpu, How, Step};
use super::dimms::Dimms;
use super::profile::PmProfile;
use super::timing::{Alone, Times, Timing};
use crate::clock::VirtualNanos;
use crate::queue::EventQueue;
use crate::ssd::{Served, TimingMode};

/// Reasons why a persistent memory cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum PmError {
    /// A value of the profile is invalid.
    #[error("{0}")]
    Profile(String),
    /// It is too large to be simulated.
    #[error("{bytes} bytes of persistent memory, expected at most {most}")]
    Size {
        /// Requested bytes.
        bytes: u64,
        /// Maximum bytes.
        most: u64,
    },
}

struct State {
    bytes: Vec<u8>,
    cpu: Cpu,
    lines: Lines,
}

/// Where lines are sent.
struct Lines {
    dimms: Dimms,
    time: Time,
}

enum Time {
    Counting {
        times: Times,
        alone: Alone,
        done: EventQueue<(u32, Served)>,
    },
    Queued {
        steps: Vec<Step>,
        timing: Timing,
    },
}

/// A simulated persistent memory.
pub struct SimPm {
    len: u64,
    state: Mutex<State>,
}

/// The queue number of the client that [`SimPm::serve`] serves; submitting clients have higher
/// numbers.
const SERVED: u32 = 0;

impl SimPm {
    /// Creates a memory of `len` zero bytes, rounded up to whole XPLines.
    ///
    /// # Errors
    /// [`PmError`] for an invalid profile or too many bytes.
    pub fn new(
        profile: &PmProfile,
        len: u64,
        mode: TimingMode,
        seed: u64,
    ) -> Result<SimPm, PmError> {
        profile.check().map_err(PmError::Profile)?;
        let buffer = profile.buffer_config(seed).map_err(PmError::Profile)?;
        let most = MAX_LINES * LINE_SIZE as u64;
        if len > most {
            return Err(PmError::Size { bytes: len, most });
        }
        let len = len.next_multiple_of(super::XPLINE_SIZE as u64);
        let lines = (len / LINE_SIZE as u64) as u32;
        let stripe = profile.interleave_bytes / LINE_SIZE as u32;
        let dimms = Dimms::new(
            &buffer,
            (lines, profile.dimms, stripe),
            profile.times.wear_stall_writes,
        );
        let times = Times::new(profile);
        let time = match mode {
            TimingMode::Counting => Time::Counting {
                times,
                alone: Alone::default(),
                done: EventQueue::default(),
            },
            TimingMode::Queued => Time::Queued {
                steps: Vec::new(),
                timing: Timing::new(times, dimms.count(), seed),
            },
        };
        Ok(SimPm {
            len,
            state: Mutex::new(State {
                bytes: vec![0; len as usize],
                cpu: Cpu::new(profile),
                lines: Lines { dimms, time },
            }),
        })
    }

    /// Serves the requests since the last call, beginning at `at`.
    pub fn serve(&self, at: Nanos) -> Served {
        let mut state = self.state.lock();
        state.end_operation();
        let Lines { dimms, time } = &mut state.lines;
        match time {
            Time::Counting { alone, .. } => nominal(alone, at),
            Time::Queued { steps, timing } => {
                timing.submit(SERVED, steps, at.0);
                timing
                    .finish(SERVED, dimms)
                    .expect("what was submitted ends")
            }
        }
    }

    /// Submits the requests since the last call as an operation of this client that begins at `at`.
    /// Clients are numbered from 0 without large gaps.
    ///
    /// # Panics
    /// With queues, if an operation of this client is already under way.
    pub fn submit(&self, client: u32, at: Nanos) {
        let mut state = self.state.lock();
        state.end_operation();
        match &mut state.lines.time {
            Time::Counting { alone, done, .. } => {
                let served = nominal(alone, at);
                done.push(VirtualNanos(served.done.0), (client, served));
            }
            Time::Queued { steps, timing } => timing.submit(client + 1, steps, at.0),
        }
    }

    /// The submitted operation that completes first: its client and its times. `None` if none is
    /// under way.
    pub fn next_done(&self) -> Option<(u32, Served)> {
        let Lines { dimms, time } = &mut self.state.lock().lines;
        match time {
            Time::Counting { done, .. } => done.pop().map(|(_, done)| done),
            Time::Queued { timing, .. } => {
                let (client, served) = timing.next_done(dimms)?;
                Some((client - 1, served))
            }
        }
    }

    /// Lets everything under way reach the buffers, regardless of its time.
    pub fn settle(&self) {
        let Lines { dimms, time } = &mut self.state.lock().lines;
        if let Time::Queued { timing, .. } = time {
            timing.settle(dimms);
        }
    }

    /// Writes out all dirty XPLines of the XPBuffers, after [`SimPm::settle`]; for experiments that
    /// must leave nothing behind.
    pub fn write_out(&self) {
        self.settle();
        self.state.lock().lines.dimms.write_out();
    }

    /// Counters since the device was created.
    pub fn counters(&self) -> PmCounters {
        let state = self.state.lock();
        PmCounters {
            cache_evictions: state.cpu.cache_evictions,
            fences: state.cpu.fences,
            ..state.lines.dimms.counters()
        }
    }

    /// Number of XPLines in the buffers with lines that are newer than the medium: writes that the
    /// media counters do not include yet.
    pub fn dirty_xplines(&self) -> usize {
        self.state.lock().lines.dimms.dirty_lines()
    }

    /// Bytes of memory that the simulation takes, without the content.
    pub fn memory_bytes(&self) -> usize {
        let state = self.state.lock();
        state.cpu.memory_bytes() + state.lines.dimms.memory_bytes()
    }

    /// Checks the buffers' invariants; for tests.
    ///
    /// # Errors
    /// A description of the first violation.
    pub fn check_invariants(&self) -> Result<(), String> {
        self.state.lock().lines.dimms.check()
    }

    fn check(&self, what: &'static str, offset: u64, len: usize) -> Result<(), DeviceError> {
        check_bytes(what, offset, len, self.len)
    }
}

/// The nominal time of the operation that has just ended.
fn nominal(alone: &mut Alone, at: Nanos) -> Served {
    let service_ns = alone.take();
    Served {
        done: Nanos(at.0 + service_ns),
        service_ns,
        queue_ns: 0,
    }
}

impl State {
    fn end_operation(&mut self) {
        let State { cpu, lines, .. } = self;
        cpu.end(&mut |step| lines.take(step));
    }
}

impl Lines {
    /// Counts a step, or records it for later.
    fn take(&mut self, step: Step) {
        let Lines { dimms, time } = self;
        let (times, alone) = match time {
            Time::Queued { steps, .. } => return steps.push(step),
            Time::Counting { times, alone, .. } => (times, alone),
        };
        match step {
            Step::Read(line) => alone.read(times, dimms.read(dimms.place(line)).hit),
            Step::EndOfLoad => alone.end_load(times),
            Step::Fetch(line) => drop(dimms.read(dimms.place(line))),
            Step::Write { line, how } => {
                let place = dimms.place(line);
                let fetched = (how == How::ClwbAfterFetch).then(|| dimms.read(place).hit);
                alone.write(times, how, fetched);
                dimms.write(place);
            }
            Step::Fence => alone.fence(times),
        }
    }
}

impl PmDevice for SimPm {
    fn len(&self) -> u64 {
        self.len
    }

    fn load(&self, offset: u64, buf: &mut [u8]) -> Result<(), DeviceError> {
        self.check("load", offset, buf.len())?;
        let State { bytes, cpu, lines } = &mut *self.state.lock();
        buf.copy_from_slice(&bytes[offset as usize..][..buf.len()]);
        cpu.load(offset, buf.len(), &mut |step| lines.take(step));
        Ok(())
    }

    fn store(&self, offset: u64, new: &[u8]) -> Result<(), DeviceError> {
        self.check("store", offset, new.len())?;
        let State { bytes, cpu, lines } = &mut *self.state.lock();
        bytes[offset as usize..][..new.len()].copy_from_slice(new);
        cpu.store(offset, new.len(), &mut |step| lines.take(step));
        Ok(())
    }

    fn clwb(&self, offset: u64) -> Result<(), DeviceError> {
        self.check("clwb", offset, 1)?;
        let State { cpu, lines, .. } = &mut *self.state.lock();
        cpu.clwb(offset, &mut |step| lines.take(step));
        Ok(())
    }

    fn ntstore(&self, offset: u64, new: &[u8]) -> Result<(), DeviceError> {
        self.check("ntstore", offset, new.len())?;
        let State { bytes, cpu, lines } = &mut *self.state.lock();
        bytes[offset as usize..][..new.len()].copy_from_slice(new);
        cpu.ntstore(offset, new.len(), &mut |step| lines.take(step));
        Ok(())
    }

    fn fence(&self) {
        let State { cpu, lines, .. } = &mut *self.state.lock();
        cpu.fence(&mut |step| lines.take(step));
    }

    /// Classes are per XPLine: one that is partly in the range gets the class as a whole.
    fn set_class(&self, range: Range<u64>, class: IoClass) {
        let within = range.start.min(self.len)..range.end.min(self.len);
        self.state.lock().lines.dimms.set_class(&within, class);
    }
}
