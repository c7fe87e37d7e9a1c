//! [`OverlayDevice`], a writable view of another device that is never changed: writes stay in
//! memory, and reads see them.
//!
//! `verify` recovers a store on an overlay, so that examining a file does not change it.

use super::{BlockDevice, DeviceError, check_range};
use crate::sync::{Arc, Mutex};
use crate::types::{BLOCK_SIZE, IoClass, Lba};
use std::collections::HashMap;

/// A device whose writes and trims stay in memory, on top of another device that it only reads.
pub struct OverlayDevice {
    below: Arc<dyn BlockDevice>,
    changed: Mutex<HashMap<u64, Option<Box<[u8]>>>>,
}

impl OverlayDevice {
    /// Creates a view of `below` that is initially identical to it.
    pub fn new(below: Arc<dyn BlockDevice>) -> OverlayDevice {
        OverlayDevice {
            below,
            changed: Mutex::new(HashMap::new()),
        }
    }

    fn check(&self, what: &'static str, lba: Lba, blocks: u64) -> Result<(), DeviceError> {
        check_range(what, lba, blocks, self.capacity_blocks())
    }
}

impl BlockDevice for OverlayDevice {
    fn capacity_blocks(&self) -> u64 {
        self.below.capacity_blocks()
    }

    fn extend_to(&self, blocks: u64) -> bool {
        self.below.extend_to(blocks)
    }

    fn durable_blocks(&self) -> u64 {
        self.below.durable_blocks()
    }

    fn read(&self, lba: Lba, buf: &mut [u8], class: IoClass) -> Result<(), DeviceError> {
        self.below.read(lba, buf, class)?;
        let changed = self.changed.lock();
        for (i, block) in buf.chunks_exact_mut(BLOCK_SIZE).enumerate() {
            match changed.get(&(lba.0 + i as u64)) {
                Some(Some(bytes)) => block.copy_from_slice(bytes),
                Some(None) => block.fill(0),
                None => {}
            }
        }
        Ok(())
    }

    fn write(&self, lba: Lba, bytes: &[u8], _class: IoClass) -> Result<(), DeviceError> {
        if bytes.is_empty() || !bytes.len().is_multiple_of(BLOCK_SIZE) {
            return Err(DeviceError::Misaligned {
                what: "write",
                lba,
                bytes: bytes.len(),
            });
        }
        self.check("write", lba, (bytes.len() / BLOCK_SIZE) as u64)?;
        let mut changed = self.changed.lock();
        for (i, block) in bytes.chunks_exact(BLOCK_SIZE).enumerate() {
            changed.insert(lba.0 + i as u64, Some(block.into()));
        }
        Ok(())
    }

    fn trim(&self, lba: Lba, blocks: u64) -> Result<(), DeviceError> {
        self.check("trim", lba, blocks)?;
        let mut changed = self.changed.lock();
        for block in lba.0..lba.0 + blocks {
            changed.insert(block, None);
        }
        Ok(())
    }

    fn flush(&self) -> Result<(), DeviceError> {
        Ok(())
    }
}
