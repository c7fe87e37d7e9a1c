//! What befalls the store of an episode: requests that fail, the end of a life, and the next
//! opening.

use std::sync::Arc;

use treering_engine::device::{CrashDevice, Image};
use treering_engine::{Result, Store};

use super::record::Recorder;
use treering_oracle::random::Random;

/// How a life ends.
pub(super) enum End {
    /// The power goes; the device keeps this.
    Power(Image),
    /// The process ends.
    Process,
}

/// What an opening led to.
pub(super) enum Opened {
    Up(Box<Store>),
    Not(End),
}

/// The device of an episode, who hears its store, and the dice.
pub(super) struct Fate {
    pub(super) rng: Random,
    pub(super) device: Arc<CrashDevice>,
    pub(super) recorder: Arc<Recorder>,
    /// This device sees no restart, its power goes.
    doomed: bool,
}

impl Fate {
    pub(super) fn new(seed: u64, device: Arc<CrashDevice>, recorder: Arc<Recorder>) -> Fate {
        Fate {
            rng: Random::new(seed),
            device,
            recorder,
            doomed: false,
        }
    }

    /// What a failed write was to write is not read back and may yet be there after the next power
    /// cut: so that comes next.
    pub(super) fn fail_write(&mut self, writes: u64) {
        self.device.fail_write_in(self.rng.below(writes));
        self.doomed = true;
    }

    pub(super) fn cut_power(&mut self, requests: u64) {
        self.device.cut_power_in(self.rng.below(requests));
        self.doomed = true;
    }

    /// The power goes behind one of the next events.
    pub(super) fn set_trap(&mut self, events: u64, seed: u64) {
        let events = self.rng.below(events);
        (self.recorder).set_trap(events, self.device.clone(), seed);
    }

    pub(super) fn end(&mut self) -> End {
        if self.doomed || self.rng.one_in(2) {
            return End::Power(self.device.crash_seeded(self.rng.word()));
        }
        End::Process
    }

    /// What the device is from here on; says whether the power went.
    pub(super) fn bury(&mut self, end: End) -> bool {
        let End::Power(image) = end else {
            return false;
        };
        self.device = Arc::new(CrashDevice::from_image(image));
        self.doomed = false;
        true
    }

    /// Opens the store; it may fail, or the power go on the way, behind one of so many events
    /// perhaps.
    pub(super) fn reopen(
        &mut self,
        events: u64,
        open: impl FnOnce(&Arc<CrashDevice>, &Arc<Recorder>) -> Result<Store>,
    ) -> Opened {
        let seed = self.rng.word();
        match self.rng.below(12) {
            0 => self.device.fail_flush_in(self.rng.below(8)),
            1 => self.fail_write(20),
            2 => self.cut_power(60),
            3..=5 => self.set_trap(events, seed),
            _ => {}
        }
        let opened = open(&self.device, &self.recorder);
        if let Some(image) = self.recorder.sprung() {
            return Opened::Not(End::Power(image));
        }
        self.recorder.clear_trap();
        match opened {
            Ok(store) => Opened::Up(Box::new(store)),
            Err(_) => Opened::Not(self.end()),
        }
    }
}
