//! A device on a file system with room for a limited number of blocks. It refuses a write that does
//! not fit, after writing part of it.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use treering_engine::device::{BlockDevice, DeviceError, MemDevice};
use treering_engine::{BLOCK_SIZE, IoClass, Lba};

pub(crate) struct Thin {
    memory: MemDevice,
    state: Mutex<State>,
    writes: AtomicU64,
}

struct State {
    allocated: BTreeSet<u64>,
    limit: usize,
}

impl Thin {
    pub(crate) fn new(blocks: u64, limit: usize) -> Thin {
        Thin {
            memory: MemDevice::new(blocks),
            state: Mutex::new(State {
                allocated: BTreeSet::new(),
                limit,
            }),
            writes: AtomicU64::new(0),
        }
    }

    /// Sets the number of blocks for which the file system has room.
    pub(crate) fn set_limit(&self, limit: usize) {
        self.state.lock().unwrap().limit = limit;
    }

    /// Returns the number of writes and trims so far.
    pub(crate) fn writes(&self) -> u64 {
        self.writes.load(Ordering::Relaxed)
    }
}

impl BlockDevice for Thin {
    fn capacity_blocks(&self) -> u64 {
        self.memory.capacity_blocks()
    }

    fn read(&self, lba: Lba, buf: &mut [u8], class: IoClass) -> Result<(), DeviceError> {
        self.memory.read(lba, buf, class)
    }

    fn write(&self, lba: Lba, bytes: &[u8], class: IoClass) -> Result<(), DeviceError> {
        self.writes.fetch_add(1, Ordering::Relaxed);
        for (at, block) in (lba.0..).zip(bytes.chunks_exact(BLOCK_SIZE)) {
            let mut state = self.state.lock().unwrap();
            if !state.allocated.contains(&at) && state.allocated.len() >= state.limit {
                return Err(DeviceError::Io {
                    what: "write",
                    lba,
                    source: ErrorKind::StorageFull.into(),
                });
            }
            state.allocated.insert(at);
            self.memory.write(Lba(at), block, class)?;
        }
        Ok(())
    }

    fn trim(&self, lba: Lba, blocks: u64) -> Result<(), DeviceError> {
        self.writes.fetch_add(1, Ordering::Relaxed);
        let mut state = self.state.lock().unwrap();
        (lba.0..lba.0 + blocks).for_each(|at| {
            state.allocated.remove(&at);
        });
        self.memory.trim(lba, blocks)
    }

    fn flush(&self) -> Result<(), DeviceError> {
        Ok(())
    }
}
