//! [`Medium`], the trees' only path to a persistent memory. It counts everything that passes, by
//! class.
//!
//! Lines are counted when the engine requests their write-back. So they are the bytes from which
//! CLI-amplification is computed (CCL-BTree §2.1), whatever the device makes of them. Each access
//! is a step that other threads could observe, so the oracle may pause a thread there.

// Plain counters that nothing else depends on: not worth a scheduling point under loom.
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::device::{LINE_SIZE, PmDevice, WORD_SIZE};
use crate::error::Result;
use crate::events::{Hook, Observer};
use crate::stats::ClassBytes;
use crate::sync::{Arc, step};
use crate::types::IoClass;

use super::events::Event;

#[derive(Default)]
struct PerClass([AtomicU64; 3]);

impl PerClass {
    fn add(&self, class: IoClass, bytes: u64) {
        self.0[class as usize].fetch_add(bytes, Relaxed);
    }

    fn load(&self) -> ClassBytes {
        let mut sum = ClassBytes::default();
        for class in IoClass::ALL {
            sum.add(class, self.0[class as usize].load(Relaxed));
        }
        sum
    }
}

/// A persistent memory with counters.
pub(crate) struct Medium {
    device: Arc<dyn PmDevice>,
    hook: Hook<Event>,
    written: PerClass,
    read: PerClass,
    fences: AtomicU64,
}

impl Medium {
    pub(crate) fn new(device: Arc<dyn PmDevice>) -> Medium {
        Medium::observed(device, None)
    }

    /// As [`Medium::new`], with an observer of what the tree stores.
    pub(crate) fn observed(
        device: Arc<dyn PmDevice>,
        observer: Option<Arc<dyn Observer<Event>>>,
    ) -> Medium {
        Medium {
            device,
            hook: Hook::new(observer),
            written: PerClass::default(),
            read: PerClass::default(),
            fences: AtomicU64::new(0),
        }
    }

    /// Reports an event, if there is an observer.
    #[inline]
    pub(crate) fn tell(&self, event: impl FnOnce() -> Event) {
        self.hook.tell(event);
    }

    /// Returns the size in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.device.len()
    }

    #[track_caller]
    pub(crate) fn load(&self, offset: u64, buf: &mut [u8], class: IoClass) -> Result<()> {
        step();
        self.device.load(offset, buf)?;
        self.read.add(class, buf.len() as u64);
        Ok(())
    }

    #[track_caller]
    pub(crate) fn load_word(&self, offset: u64, class: IoClass) -> Result<u64> {
        let mut bytes = [0; WORD_SIZE];
        self.load(offset, &mut bytes, class)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Stores bytes into the CPU cache. They are durable once their lines have been written back
    /// and fenced.
    #[track_caller]
    pub(crate) fn store(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        step();
        Ok(self.device.store(offset, bytes)?)
    }

    /// Stores one aligned word, which is never torn.
    #[track_caller]
    pub(crate) fn store_word(&self, offset: u64, word: u64) -> Result<()> {
        self.store(offset, &word.to_le_bytes())
    }

    /// Starts the write-back of every line that `range` touches.
    #[track_caller]
    pub(crate) fn write_back(&self, range: Range<u64>, class: IoClass) -> Result<()> {
        step();
        let line = LINE_SIZE as u64;
        let first = range.start / line * line;
        for at in (first..range.end).step_by(LINE_SIZE) {
            self.device.clwb(at)?;
            self.written.add(class, line);
        }
        Ok(())
    }

    /// Waits until everything written back so far is durable.
    #[track_caller]
    pub(crate) fn fence(&self) {
        step();
        self.device.fence();
        self.fences.fetch_add(1, Relaxed);
    }

    /// Stores one word, which is durable when this returns.
    #[track_caller]
    pub(crate) fn put_word(&self, offset: u64, word: u64, class: IoClass) -> Result<()> {
        self.store_word(offset, word)?;
        self.write_back(offset..offset + 8, class)?;
        self.fence();
        Ok(())
    }

    /// Declares to the device what a range is used for.
    pub(crate) fn set_class(&self, range: Range<u64>, class: IoClass) {
        self.device.set_class(range, class);
    }

    /// Returns the bytes of lines written back so far.
    pub(crate) fn written(&self) -> ClassBytes {
        self.written.load()
    }

    /// Returns the bytes loaded so far.
    pub(crate) fn read(&self) -> ClassBytes {
        self.read.load()
    }

    /// Returns the number of fences so far.
    pub(crate) fn fences(&self) -> u64 {
        self.fences.load(Relaxed)
    }
}
