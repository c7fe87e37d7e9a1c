//! [`Volume`], the engine's only path to its device. It counts everything that passes, by class.
//!
//! Write amplification is the ratio of these counters to the user's bytes (B⁻-tree eq. (1)), so
//! nothing in the engine may bypass them. Bytes are counted once the device has accepted them.

use std::ops::Range;
use std::sync::Arc;
// Plain counters that nothing else depends on: not worth a scheduling point under loom.
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Relaxed, SeqCst},
};

use super::{BlockDevice, BlockRead, BlockWrite};
use crate::error::{Error, Result};
use crate::events::{Event, Hook, Observer, Shadow};
use crate::mutation;
use crate::stats::{ClassBytes, Stats};
use crate::sync::Mutex;
use crate::types::{BLOCK_SIZE, IoClass, Lba};

#[derive(Default)]
struct PerClass([AtomicU64; 3]);

impl PerClass {
    fn add(&self, class: IoClass, bytes: usize) {
        self.0[class as usize].fetch_add(bytes as u64, Relaxed);
    }

    fn load(&self) -> ClassBytes {
        let mut sum = ClassBytes::default();
        for class in IoClass::ALL {
            sum.add(class, self.0[class as usize].load(Relaxed));
        }
        sum
    }
}

/// The time of a write, measured in flushes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp(u64);

/// A device with counters.
pub struct Volume {
    device: Arc<dyn BlockDevice>,
    written: PerClass,
    read: PerClass,
    trimmed_bytes: AtomicU64,
    flushes: AtomicU64,
    /// The number of flushes begun. A write that returned when this was `n` is durable once more
    /// than `n` flushes have completed.
    flushes_begun: AtomicU64,
    /// One more than the stamp of the writes that must be durable before the log can refer to them;
    /// 0 if there are none.
    before_log: AtomicU64,
    /// Whether any flush has ever failed.
    flush_failed: Mutex<bool>,
    hook: Hook,
}

impl Volume {
    /// Wraps `device`, with all counters at zero.
    pub fn new(device: Arc<dyn BlockDevice>) -> Volume {
        Volume::observed(device, None)
    }

    /// As [`Volume::new`]; everything that works on this volume reports its events to `observer`.
    pub fn observed(device: Arc<dyn BlockDevice>, observer: Option<Arc<dyn Observer>>) -> Volume {
        Volume {
            device,
            written: PerClass::default(),
            read: PerClass::default(),
            trimmed_bytes: AtomicU64::new(0),
            flushes: AtomicU64::new(0),
            flushes_begun: AtomicU64::new(0),
            before_log: AtomicU64::new(0),
            flush_failed: Mutex::new(false),
            hook: Hook::new(observer),
        }
    }

    /// Returns whether there is an observer.
    #[inline]
    pub(crate) fn is_heard(&self) -> bool {
        self.hook.is_heard()
    }

    /// Reports an event to the observer, if there is one.
    #[inline]
    pub(crate) fn tell(&self, event: impl FnOnce() -> Event) {
        self.hook.tell(event);
    }

    /// Returns the observer's hook, for parts that do no I/O of their own.
    pub(crate) fn hook(&self) -> Hook {
        self.hook.clone()
    }

    /// Returns the device below.
    pub fn device(&self) -> &Arc<dyn BlockDevice> {
        &self.device
    }

    /// Returns the number of addressable blocks.
    pub fn capacity_blocks(&self) -> u64 {
        self.device.capacity_blocks()
    }

    /// Reads whole blocks.
    ///
    /// # Errors
    /// As [`BlockDevice::read`].
    pub fn read(&self, lba: Lba, buf: &mut [u8], class: IoClass) -> Result<()> {
        self.device.read(lba, buf, class)?;
        self.read.add(class, buf.len());
        Ok(())
    }

    /// Reads several pieces at once.
    ///
    /// # Errors
    /// As [`BlockDevice::read_batch`]; nothing of the batch is then counted.
    pub fn read_batch(&self, reads: &mut [BlockRead<'_>]) -> Result<()> {
        self.device.read_batch(reads)?;
        for r in reads {
            self.read.add(r.class, r.buf.len());
        }
        Ok(())
    }

    /// Writes whole blocks, which are durable after the next flush.
    ///
    /// # Errors
    /// As [`BlockDevice::write`].
    pub fn write(&self, lba: Lba, bytes: &[u8], class: IoClass) -> Result<()> {
        self.device.write(lba, bytes, class)?;
        self.written.add(class, bytes.len());
        Ok(())
    }

    /// Writes several pieces at once, in any order.
    ///
    /// # Errors
    /// As [`BlockDevice::write_batch`]; nothing of the batch is then counted.
    pub fn write_batch(&self, writes: &[BlockWrite<'_>]) -> Result<()> {
        self.device.write_batch(writes)?;
        for w in writes {
            self.written.add(w.class, w.bytes.len());
        }
        Ok(())
    }

    /// Tells the device that blocks no longer hold data.
    ///
    /// # Errors
    /// As [`BlockDevice::trim`].
    pub fn trim(&self, lba: Lba, blocks: u64) -> Result<()> {
        if !mutation::on("harmless-trim-ignored") {
            self.device.trim(lba, blocks)?;
        }
        self.trimmed_bytes
            .fetch_add(blocks * BLOCK_SIZE as u64, Relaxed);
        Ok(())
    }

    /// Gives trimmed space back, as [`BlockDevice::reclaim`].
    pub fn reclaim(&self, keep: Range<Lba>) {
        self.device.reclaim(keep);
    }

    /// Makes every completed write durable.
    ///
    /// # Errors
    /// As [`BlockDevice::flush`]. [`Error::Poisoned`] once any flush has failed, whoever called it:
    /// no later flush makes durable what the failed one lost (BUGS D5).
    pub fn flush(&self) -> Result<()> {
        // Held throughout: a flush that overtook a failing one would vouch for writes that the
        // failing one lost.
        let mut failed = self.flush_failed.lock();
        if *failed && !mutation::on("flush-forgets-failure") {
            return Err(Error::Poisoned {
                why: "an earlier flush failed".into(),
            });
        }
        self.flushes_begun.fetch_add(1, SeqCst);
        if let Err(e) = self.device.flush() {
            *failed = true;
            self.tell(|| Event::Shadow(Shadow::DeviceFlushFailed));
            return Err(e.into());
        }
        self.flushes.fetch_add(1, SeqCst);
        self.tell(|| Event::Shadow(Shadow::DeviceFlushed));
        Ok(())
    }

    /// Returns a stamp for everything written so far, for [`Volume::is_durable`].
    pub(crate) fn stamp(&self) -> Stamp {
        Stamp(self.flushes_begun.load(SeqCst))
    }

    /// Returns whether a flush that began after the stamp was taken has succeeded.
    pub(crate) fn is_durable(&self, written: Stamp) -> bool {
        // Counting is enough, because no successful flush follows a failed one: after a failure all
        // fail.
        self.flushes.load(SeqCst) > written.0
    }

    /// Requires that everything written so far becomes durable before any log block is written that
    /// holds records appended from now on.
    pub(crate) fn durable_before_log(&self) {
        self.before_log.fetch_max(self.stamp().0 + 1, SeqCst);
    }

    /// Flushes if a call of [`Volume::durable_before_log`] requires it and no flush has succeeded
    /// since. Called before each write of a log block.
    ///
    /// # Errors
    /// As [`Volume::flush`].
    pub(crate) fn flush_before_log(&self) -> Result<()> {
        let wanted = self.before_log.load(SeqCst).checked_sub(1).map(Stamp);
        match wanted {
            Some(written) if !self.is_durable(written) => self.flush(),
            _ => Ok(()),
        }
    }

    /// Returns the I/O part of [`Stats`]; everything else is zero.
    pub fn stats(&self) -> Stats {
        Stats {
            access: self.device.access(),
            written: self.written.load(),
            read: self.read.load(),
            trimmed_bytes: self.trimmed_bytes.load(Relaxed),
            flushes: self.flushes.load(Relaxed),
            ..Stats::default()
        }
    }
}
