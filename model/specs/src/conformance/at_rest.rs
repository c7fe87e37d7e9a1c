//! A store at rest on a device: what episodes begin with, and how its device is read.

use std::sync::Arc;

use treering_engine::device::{BlockDevice, CrashDevice, Image};
use treering_engine::events::Event;
use treering_engine::{BLOCK_SIZE, IoClass, Lba, Lsn, Options, Result, Store, SystemClock};

use super::record::{Heard, Recorder};

/// The log as recovery reads it from a device.
#[derive(Clone, Debug, PartialEq)]
pub struct LogFound {
    /// Where redo begins. `None` if recovery did not get that far.
    pub redo_start: Option<Lsn>,
    /// The LSNs of the log's records from there on.
    pub records: Vec<Lsn>,
    /// The error, if recovery fails.
    pub error: Option<String>,
}

/// A store that was closed, and what a device with it holds.
#[derive(Clone, Debug)]
pub(super) struct AtRest {
    pub(super) options: Options,
    pub(super) disk: Image,
}

impl AtRest {
    /// A device that holds the store durably.
    pub(super) fn device(&self) -> Arc<CrashDevice> {
        Arc::new(CrashDevice::from_image(self.disk.clone()))
    }

    /// Opens the store on `device`, recorded by `recorder`.
    ///
    /// # Errors
    /// The engine's own.
    pub(super) fn open(
        &self,
        device: &Arc<CrashDevice>,
        recorder: &Arc<Recorder>,
    ) -> Result<Store> {
        open(device, &self.options, Some(recorder))
    }

    /// The log as recovery reads it from a copy of a device.
    pub(super) fn log_of(&self, image: Image) -> LogFound {
        let recorder = Arc::new(Recorder::default());
        let copy = Arc::new(CrashDevice::from_image(image));
        // An error is reported again when the store itself is opened.
        let opened = self.open(&copy, &recorder);
        let mut found = LogFound {
            redo_start: None,
            records: Vec::new(),
            error: opened.err().map(|e| e.to_string()),
        };
        for entry in recorder.take() {
            match entry.heard {
                Heard::Engine(Event::RecoveryBegins { redo_start, .. }) => {
                    found.redo_start = Some(redo_start);
                }
                Heard::Engine(Event::RecordRead { lsn, .. }) => found.records.push(lsn),
                _ => {}
            }
        }
        found
    }
}

/// Opens a store that ends as a killed process does, unless it is closed.
///
/// # Errors
/// The engine's own.
pub(super) fn open(
    device: &Arc<CrashDevice>,
    options: &Options,
    recorder: Option<&Arc<Recorder>>,
) -> Result<Store> {
    let clock = Arc::new(SystemClock::new());
    let observer = recorder.map(|recorder| recorder.clone() as _);
    Store::open_observed(device.clone(), clock, options, observer).inspect(Store::abandon_on_drop)
}

/// Reads the whole device.
///
/// # Errors
/// The device fails.
pub(super) fn contents(device: &CrashDevice) -> Result<Vec<u8>> {
    let mut bytes = vec![0; device.capacity_blocks() as usize * BLOCK_SIZE];
    device.read(Lba(0), &mut bytes, IoClass::Extra)?;
    Ok(bytes)
}
