//! A device with random delays, so that other threads run meanwhile.
//!
//! Memory answers within a microsecond, a drive in a hundred. Bugs that need a write in flight only
//! show on a device whose writes take time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use treering_engine::device::{BlockDevice, BlockWrite, DeviceError, MemDevice};
use treering_engine::{IoClass, Lba};

use crate::random::Random;

/// One request in this many waits.
const ONE_IN: u64 = 16;

/// A device in memory that pauses before and after writes, after reads, and before flushes and
/// trims.
pub(super) struct SlowDevice {
    memory: Arc<dyn BlockDevice>,
    requests: AtomicU64,
}

impl SlowDevice {
    pub(super) fn new(blocks: u64) -> SlowDevice {
        SlowDevice::over(Arc::new(MemDevice::new(blocks)))
    }

    pub(super) fn over(memory: Arc<dyn BlockDevice>) -> SlowDevice {
        SlowDevice {
            memory,
            requests: AtomicU64::new(0),
        }
    }

    fn pause(&self) {
        let request = self.requests.fetch_add(1, Ordering::Relaxed);
        let mut random = Random::new(request);
        match random.below(ONE_IN) {
            0 => std::thread::sleep(Duration::from_micros(random.below(200))),
            1..4 => std::thread::yield_now(),
            _ => {}
        }
    }
}

impl BlockDevice for SlowDevice {
    fn capacity_blocks(&self) -> u64 {
        self.memory.capacity_blocks()
    }

    fn read(&self, lba: Lba, buf: &mut [u8], class: IoClass) -> Result<(), DeviceError> {
        // Other threads run before the page reaches its reader.
        let done = self.memory.read(lba, buf, class);
        if self.requests.load(Ordering::Relaxed).is_multiple_of(4) {
            self.pause();
        }
        done
    }

    fn write(&self, lba: Lba, bytes: &[u8], class: IoClass) -> Result<(), DeviceError> {
        self.pause();
        let done = self.memory.write(lba, bytes, class);
        self.pause();
        done
    }

    fn write_batch(&self, writes: &[BlockWrite<'_>]) -> Result<(), DeviceError> {
        self.pause();
        let done = self.memory.write_batch(writes);
        self.pause();
        done
    }

    fn trim(&self, lba: Lba, blocks: u64) -> Result<(), DeviceError> {
        self.pause();
        self.memory.trim(lba, blocks)
    }

    fn flush(&self) -> Result<(), DeviceError> {
        self.pause();
        self.memory.flush()
    }
}
