//! What happens to the store of an episode: failing requests, the end of a life, and the next
//! opening.

use std::sync::Arc;

use treering_engine::device::{CrashDevice, Image, RequestKind};
use treering_engine::{IoClass, Result, Store};

use super::record::{Caught, Recorder};
use treering_oracle::random::Random;

/// How a life ends.
pub(super) enum End {
    /// A power failure, after which the device holds this.
    Power(Image),
    /// The process is killed in the middle of a request, and the device lives on.
    Killed(Arc<CrashDevice>),
    /// The process ends between two requests.
    Process,
}

impl From<Caught> for End {
    fn from(caught: Caught) -> End {
        match caught {
            Caught::Power(image) => End::Power(image),
            Caught::Killed(device) => End::Killed(device),
        }
    }
}

/// The result of an opening.
pub(super) enum Opened {
    Up(Box<Store>),
    Not(End),
}

/// The device of an episode, the recorder of its store, and the random choices.
pub(super) struct Fate {
    pub(super) rng: Random,
    pub(super) device: Arc<CrashDevice>,
    pub(super) recorder: Arc<Recorder>,
    /// Whether this device is to lose power, and must not be restarted.
    doomed: bool,
    /// Whether traps also kill the process in the middle of a request.
    pub(super) kills: bool,
}

impl Fate {
    pub(super) fn new(seed: u64, device: Arc<CrashDevice>, recorder: Arc<Recorder>) -> Fate {
        Fate {
            rng: Random::new(seed),
            device,
            recorder,
            doomed: false,
            kills: false,
        }
    }

    /// Makes a write fail. A read does not return the data of a failed write, but the next power
    /// failure may still bring it back. So the next thing to happen is a power failure.
    pub(super) fn fail_write(&mut self, writes: u64) {
        self.device.fail_write_in(self.rng.below(writes));
        self.doomed = true;
    }

    /// Makes a write of the log fail, in this life. The process may be restarted then.
    pub(super) fn fail_log_write(&mut self, writes: u64) {
        let n = self.rng.below(writes);
        self.device.fail_in(RequestKind::WriteOf(IoClass::Log), n);
    }

    pub(super) fn cut_power(&mut self, requests: u64) {
        self.device.cut_power_in(self.rng.below(requests));
        self.doomed = true;
    }

    /// Makes the power fail after one of the next events, or the process end there.
    pub(super) fn set_trap(&mut self, events: u64, seed: u64) {
        let (events, device) = (self.rng.below(events), self.device.clone());
        match self.kills && seed.is_multiple_of(3) {
            true => self.recorder.set_kill(events, device),
            false => self.recorder.set_trap(events, device, seed),
        }
    }

    /// Makes the flush or the request fail that a step is about to ask for, or ends the life at one
    /// of so many events, if anything.
    pub(super) fn aim(&mut self, events: u64) {
        let seed = self.rng.word();
        match self.rng.below(6) {
            0 => self.device.fail_flush_in(self.rng.below(3)),
            1 => self.cut_power(6),
            2 => self.set_trap(events, seed),
            _ => {}
        }
    }

    /// What the trap has caught, if it has sprung.
    pub(super) fn caught(&mut self) -> Option<End> {
        match self.recorder.sprung()? {
            Caught::Killed(device) if self.doomed => {
                let seed = self.rng.word();
                Some(End::Power(self.recorder.cut_power(&device, seed)))
            }
            caught => Some(caught.into()),
        }
    }

    pub(super) fn end(&mut self) -> End {
        if self.doomed || self.rng.one_in(2) {
            let seed = self.rng.word();
            return End::Power(self.recorder.cut_power(&self.device, seed));
        }
        End::Process
    }

    /// Replaces the device with what the end has left of it. Returns whether the power failed.
    pub(super) fn bury(&mut self, end: End) -> bool {
        let power = matches!(end, End::Power(_));
        match end {
            End::Power(image) => self.device = Arc::new(CrashDevice::from_image(image)),
            End::Killed(device) => self.device = device,
            End::Process => {
                // A write of the log that was to fail, and has not come yet, will not.
                let log = RequestKind::WriteOf(IoClass::Log);
                self.device.fail_in(log, u64::MAX);
            }
        }
        self.doomed &= !power;
        power
    }

    /// Opens the store. That may fail, or the power may fail meanwhile, perhaps after one of this
    /// many events.
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
        if let Some(end) = self.caught() {
            return Opened::Not(end);
        }
        self.recorder.clear_trap();
        match opened {
            Ok(store) => Opened::Up(Box::new(store)),
            Err(_) => Opened::Not(self.end()),
        }
    }
}
