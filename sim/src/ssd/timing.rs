//! Completion times of the drive: channels, dies, and the queues before them.
//!
//! ```text
//!  channel 0 ── die 0, die 1, …        page p of the flash lies on die p mod dies
//! channel 1 ── die …                  an erase unit is a super-block, striped over all dies
//!
//!  read      die busy tR,       then its channel for one transfer
//!  program   channel transfer,  then die busy tProg
//!  gc move   read on one die, program on another; others queue behind it, nobody waits for it
//!  erase     all dies busy tErase
//! ```
//!
//! The engine's calls are ordered: a read or a batch of writes begins when the previous call has
//! ended, the pages of one call are sent together, and a call ends with its last page. A flush does
//! not wait for anything else, because writes are acknowledged when they are programmed: the drive
//! has no volatile write cache.
//!
//! Dies and channels serve requests in the order in which they are simulated. A request of a client
//! that is behind in virtual time may find a die taken by one that was simulated earlier; with
//! closed-loop clients the error is less than one request.

use super::ftl::FlashOps;
use super::profile::SsdProfile;

/// One recorded flash operation.
#[derive(Clone, Copy, Debug)]
enum Step {
    Read {
        page: u32,
    },
    Program {
        page: u32,
    },
    Move {
        from: u32,
        to: u32,
    },
    Erase,
    /// A call of the engine has returned.
    EndOfCall,
}

/// Times in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Times {
    read: u64,
    program: u64,
    erase: u64,
    transfer: u64,
}

/// Flash operations since they were last served.
#[derive(Default)]
pub(super) struct Recorder {
    steps: Vec<Step>,
}

impl Recorder {
    pub(super) fn read(&mut self, page: u32) {
        self.steps.push(Step::Read { page });
    }

    pub(super) fn end_call(&mut self) {
        if !matches!(self.steps.last(), None | Some(Step::EndOfCall)) {
            self.steps.push(Step::EndOfCall);
        }
    }
}

impl FlashOps for Recorder {
    fn host_program(&mut self, physical: u32) {
        self.steps.push(Step::Program { page: physical });
    }

    fn gc_move(&mut self, from: u32, to: u32) {
        self.steps.push(Step::Move { from, to });
    }

    fn erase(&mut self, _block: u32) {
        self.steps.push(Step::Erase);
    }
}

/// Dies and channels, and the times when each is free.
pub(crate) struct Flash {
    times: Times,
    die_free: Vec<u64>,
    channel_free: Vec<u64>,
}

/// When the recorded I/O is done, and its service time.
pub(crate) struct Taken {
    pub(crate) done_ns: u64,
    pub(crate) service_ns: u64,
}

impl Flash {
    pub(crate) fn new(profile: &SsdProfile) -> Flash {
        let ns = |us: f64| (us * 1000.0).round() as u64;
        Flash {
            times: Times {
                read: ns(profile.read_us),
                program: ns(profile.program_us),
                erase: ns(profile.erase_us),
                transfer: (4096.0 * 1000.0 / profile.channel_mb_per_s).round() as u64,
            },
            die_free: vec![0; profile.dies() as usize],
            channel_free: vec![0; profile.channels as usize],
        }
    }

    /// Serves everything recorded, beginning at `at`. Service time is the time on otherwise idle
    /// dies and channels.
    pub(super) fn serve(&mut self, recorder: &mut Recorder, at: u64) -> Taken {
        let mut call_begins = at;
        let mut call_ends = at;
        let mut service = 0;
        let mut alone = Alone::default();
        for step in recorder.steps.drain(..) {
            match step {
                Step::Read { page } => {
                    call_ends = call_ends.max(self.read(page, call_begins));
                    alone.reads += 1;
                }
                Step::Program { page } => {
                    call_ends = call_ends.max(self.program(page, call_begins));
                    alone.programs += 1;
                }
                Step::Move { from, to } => {
                    let read = self.read(from, call_begins);
                    self.program(to, read);
                }
                Step::Erase => self.erase(call_begins),
                Step::EndOfCall => {
                    service += alone.time(&self.times, self.die_free.len() as u64);
                    alone = Alone::default();
                    call_begins = call_ends;
                }
            }
        }
        service += alone.time(&self.times, self.die_free.len() as u64);
        Taken {
            done_ns: call_ends,
            service_ns: service.min(call_ends - at),
        }
    }

    /// Nanoseconds to read this many pages at once on an idle drive.
    pub(crate) fn reads_alone(&self, reads: u64) -> u64 {
        let alone = Alone { reads, programs: 0 };
        alone.time(&self.times, self.die_free.len() as u64)
    }

    fn die(&self, page: u32) -> usize {
        page as usize % self.die_free.len()
    }

    pub(crate) fn read(&mut self, page: u32, at: u64) -> u64 {
        let die = self.die(page);
        let channel = die % self.channel_free.len();
        let sensed = at.max(self.die_free[die]) + self.times.read;
        let moved = sensed.max(self.channel_free[channel]) + self.times.transfer;
        self.die_free[die] = sensed;
        self.channel_free[channel] = moved;
        moved
    }

    pub(crate) fn program(&mut self, page: u32, at: u64) -> u64 {
        let die = self.die(page);
        let channel = die % self.channel_free.len();
        let moved = at.max(self.channel_free[channel]) + self.times.transfer;
        let programmed = moved.max(self.die_free[die]) + self.times.program;
        self.channel_free[channel] = moved;
        self.die_free[die] = programmed;
        programmed
    }

    pub(crate) fn erase(&mut self, at: u64) {
        for die in &mut self.die_free {
            *die = at.max(*die) + self.times.erase;
        }
    }
}

/// The pages of one call, for computing its time on an idle drive.
#[derive(Default)]
pub(super) struct Alone {
    pub(super) reads: u64,
    pub(super) programs: u64,
}

impl Alone {
    fn time(&self, times: &Times, dies: u64) -> u64 {
        let rounds = |n: u64| n.div_ceil(dies);
        let transfers = self.reads.min(1) + self.programs.min(1);
        rounds(self.reads) * times.read
            + rounds(self.programs) * times.program
            + transfers * times.transfer
    }
}

/// Nominal time of one call, without queues: what counting mode charges.
pub(super) fn nominal_ns(profile: &SsdProfile, reads: u64, programs: u64) -> u64 {
    let flash = Flash::new(profile);
    Alone { reads, programs }.time(&flash.times, u64::from(profile.dies()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One channel, two dies; tR 10, tProg 100, tErase 1000, transfer 4.096 µs.
    fn flash() -> Flash {
        let (_, mut profile) = super::super::profile::builtin("ssd").expect("built in");
        profile.channels = 1;
        profile.dies_per_channel = 2;
        profile.read_us = 10.0;
        profile.program_us = 100.0;
        profile.erase_us = 1000.0;
        profile.channel_mb_per_s = 1000.0;
        Flash::new(&profile)
    }

    #[test]
    fn a_read_alone_takes_sense_and_transfer() {
        let mut recorder = Recorder::default();
        recorder.read(0);
        recorder.end_call();
        let taken = flash().serve(&mut recorder, 500);
        assert_eq!(taken.done_ns, 500 + 10_000 + 4_096);
        assert_eq!(taken.service_ns, 14_096);
    }

    #[test]
    fn calls_follow_one_another_and_pages_of_a_call_overlap() {
        let mut together = Recorder::default();
        together.read(0);
        together.read(1);
        together.end_call();
        let mut apart = Recorder::default();
        apart.read(0);
        apart.end_call();
        apart.read(1);
        apart.end_call();
        let both = flash().serve(&mut together, 0).done_ns;
        assert_eq!(
            both,
            10_000 + 2 * 4_096,
            "two dies sense at once, one channel carries both"
        );
        assert_eq!(flash().serve(&mut apart, 0).done_ns, 2 * 14_096);
    }

    #[test]
    fn a_read_waits_behind_garbage_collection_and_the_wait_is_queueing() {
        let mut flash = flash();
        let mut recorder = Recorder::default();
        recorder.host_program(1);
        recorder.erase(0);
        recorder.end_call();
        let write = flash.serve(&mut recorder, 0);
        assert_eq!(
            write.done_ns, 104_096,
            "the write itself does not wait for the erase behind it"
        );
        recorder.read(0);
        recorder.end_call();
        let read = flash.serve(&mut recorder, write.done_ns);
        assert_eq!(
            read.done_ns,
            1_000_000 + 10_000 + 4_096,
            "die 0 is being erased"
        );
        assert_eq!(read.service_ns, 14_096);
    }
}
