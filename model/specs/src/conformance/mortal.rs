//! Lives of a store that a power cut, a kill or a failed call may end at any event or request.

use std::sync::Arc;

use treering_engine::device::{CrashDevice, Image};
use treering_engine::{Result, Store};
use treering_oracle::random::Random;

use super::record::{Caught, Recorder};

/// How a life ends.
pub(super) enum End {
    /// A power failure, after which the device holds this.
    Power(Image),
    /// The process is killed in the middle of a request, and the device holds this.
    Killed(Arc<CrashDevice>),
    /// The process ends between two requests.
    Process,
    /// A call fails.
    Failed,
}

/// The device of an episode, the recorder of its store, and the random choices.
pub(super) struct Mortal {
    pub(super) rng: Random,
    pub(super) device: Arc<CrashDevice>,
    pub(super) recorder: Arc<Recorder>,
}

impl From<Caught> for End {
    fn from(caught: Caught) -> End {
        match caught {
            Caught::Power(image) => End::Power(image),
            Caught::Killed(device) => End::Killed(device),
        }
    }
}

impl Mortal {
    pub(super) fn new(rng: Random, device: Arc<CrashDevice>, recorder: Arc<Recorder>) -> Mortal {
        Mortal {
            rng,
            device,
            recorder,
        }
    }

    /// Decides when this life ends, unless it ends by itself: within so many events, or requests.
    pub(super) fn set_fate(&mut self, events: u64, requests: u64) {
        let (n, seed) = (self.rng.below(events), self.rng.word());
        match self.rng.below(8) {
            0..=2 => self.recorder.set_trap(n, self.device.clone(), seed),
            3 | 4 => self.recorder.set_kill(n, self.device.clone()),
            5 => self.device.cut_power_in(self.rng.below(requests)),
            _ => {}
        }
    }

    /// What has ended this life, if anything has.
    pub(super) fn ended(&mut self) -> Option<End> {
        if let Some(caught) = self.recorder.sprung() {
            return Some(caught.into());
        }
        if !self.device.power_is_cut() {
            return None;
        }
        self.recorder.clear_trap();
        let image = self.recorder.cut_power(&self.device, self.rng.word());
        Some(End::Power(image))
    }

    /// What has become of an opening, unless the life has ended meanwhile.
    pub(super) fn opened(
        &mut self,
        opened: Result<Store>,
    ) -> std::result::Result<Result<Store>, End> {
        if let Some(end) = self.ended() {
            if let Ok(store) = opened {
                store.abandon();
            }
            return Err(end);
        }
        self.recorder.clear_trap();
        self.device.cut_power_in(u64::MAX);
        Ok(opened)
    }

    /// The process ends between two requests, in order or not, or the power fails.
    ///
    /// # Errors
    /// That of the store, which could not be closed.
    pub(super) fn end(&mut self, store: Store) -> Result<End> {
        let choice = self.rng.below(8);
        let closed = match choice {
            0 | 1 => store.close(),
            _ => {
                drop(store);
                Ok(())
            }
        };
        if let Some(end) = self.ended() {
            return Ok(end);
        }
        self.recorder.clear_trap();
        closed?;
        Ok(match choice {
            0..=4 => End::Process,
            _ => End::Power(self.recorder.cut_power(&self.device, self.rng.word())),
        })
    }

    /// Replaces the device with what the end has left of it. Returns whether the power failed.
    pub(super) fn bury(&mut self, end: End) -> bool {
        let power = matches!(end, End::Power(_));
        match end {
            End::Power(image) => self.device = Arc::new(CrashDevice::from_image(image)),
            End::Killed(device) => self.device = device,
            // A power cut that lies ahead does not come.
            End::Process | End::Failed => self.device.cut_power_in(u64::MAX),
        }
        power
    }
}
