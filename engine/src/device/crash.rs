//! A device that crashes: it keeps, for every block written since the last good flush, whichever version a crash may leave.
//!
//! ```text
//!            write / trim               flush                 crash
//! durable ───────────────▶ versions ───────────▶ durable      any one of: durable, each version
//!                             │ failed flush
//!                             ▼
//!                         forgotten: no later flush makes them durable, only rewriting does (BUGS D5)
//! ```
//!
//! A trim is a version of zeros. Which version survives is the caller's choice block by block, so a seed, a model
//! checker or an exhaustive loop can drive it. Failures are injected at the n-th write or flush from now.

use std::collections::BTreeMap;

use super::{BlockDevice, DeviceError, check_range, check_request};
use crate::sync::Mutex;
use crate::types::{BLOCK_SIZE, IoClass, Lba};

/// What may be on the medium in place of the durable bytes; `None` is a trimmed block.
struct Version {
    bytes: Option<Box<[u8]>>,
    /// Written before a flush that failed, or by a write that failed.
    forgotten: bool,
}

struct State {
    durable: Vec<u8>,
    current: Vec<u8>,
    versions: BTreeMap<u64, Vec<Version>>,
    writes: u64,
    flushes: u64,
    fail_write: Option<u64>,
    fail_flush: Option<u64>,
    /// Requests of any kind until the power goes.
    power: Option<u64>,
}

/// A small in-memory device with a volatile write cache.
pub struct CrashDevice {
    blocks: u64,
    state: Mutex<State>,
}

impl CrashDevice {
    /// A device of `blocks` zero blocks, all durable.
    pub fn new(blocks: u64) -> CrashDevice {
        CrashDevice::from_image(vec![0; blocks as usize * BLOCK_SIZE])
    }

    /// A device that holds `image` durably, for instance what [`CrashDevice::crash`] left.
    pub fn from_image(image: Vec<u8>) -> CrashDevice {
        let state = State {
            current: image.clone(),
            durable: image,
            versions: BTreeMap::new(),
            writes: 0,
            flushes: 0,
            fail_write: None,
            fail_flush: None,
            power: None,
        };
        CrashDevice {
            blocks: (state.durable.len() / BLOCK_SIZE) as u64,
            state: Mutex::new(state),
        }
    }

    /// What the medium holds if power fails now. For each block with unflushed versions, in order of address, `choose(n)`
    /// picks one of `n` outcomes: 0 is the durable bytes, `i` the i-th version since, oldest first.
    pub fn crash(&self, choose: &mut dyn FnMut(usize) -> usize) -> Vec<u8> {
        let state = self.state.lock();
        let mut image = state.durable.clone();
        for (block, versions) in &state.versions {
            let pick = choose(versions.len() + 1);
            if let Some(version) = pick.checked_sub(1).and_then(|i| versions.get(i)) {
                put_block(&mut image, *block, version.bytes.as_deref());
            }
        }
        image
    }

    /// As [`CrashDevice::crash`], choosing by a seed (splitmix64).
    pub fn crash_seeded(&self, seed: u64) -> Vec<u8> {
        let mut x = seed;
        self.crash(&mut |n| {
            x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = x;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((z ^ (z >> 31)) % n as u64) as usize
        })
    }

    /// The `n`-th write request from now fails (0: the next one), leaving its first half of blocks written.
    pub fn fail_write_in(&self, n: u64) {
        let mut state = self.state.lock();
        state.fail_write = Some(state.writes + n);
    }

    /// The `n`-th flush from now fails (0: the next one).
    pub fn fail_flush_in(&self, n: u64) {
        let mut state = self.state.lock();
        state.fail_flush = Some(state.flushes + n);
    }

    /// After `n` more requests the power goes: that request and all later ones fail and leave nothing behind.
    pub fn cut_power_in(&self, n: u64) {
        self.state.lock().power = Some(n);
    }

    /// Whether the power has gone.
    pub fn power_is_cut(&self) -> bool {
        self.state.lock().power == Some(0)
    }

    /// Write requests so far.
    pub fn writes(&self) -> u64 {
        self.state.lock().writes
    }

    /// Flushes so far.
    pub fn flushes(&self) -> u64 {
        self.state.lock().flushes
    }
}

fn put_block(image: &mut [u8], block: u64, bytes: Option<&[u8]>) {
    let at = block as usize * BLOCK_SIZE;
    let place = &mut image[at..at + BLOCK_SIZE];
    match bytes {
        Some(bytes) => place.copy_from_slice(bytes),
        None => place.fill(0),
    }
}

fn injected(what: &'static str, lba: Lba) -> DeviceError {
    DeviceError::Io {
        what,
        lba,
        source: std::io::Error::other("injected failure"),
    }
}

impl State {
    /// Counts a request against the power that is left.
    fn draw_power(&mut self, what: &'static str, lba: Lba) -> Result<(), DeviceError> {
        match &mut self.power {
            Some(0) => Err(injected(what, lba)),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn add(&mut self, block: u64, bytes: Option<&[u8]>, forgotten: bool) {
        let version = Version {
            bytes: bytes.map(Box::from),
            forgotten,
        };
        self.versions.entry(block).or_default().push(version);
    }
}

impl BlockDevice for CrashDevice {
    fn capacity_blocks(&self) -> u64 {
        self.blocks
    }

    fn read(&self, lba: Lba, buf: &mut [u8], _class: IoClass) -> Result<(), DeviceError> {
        check_request("read", lba, buf.len(), self.blocks)?;
        let at = lba.0 as usize * BLOCK_SIZE;
        let state = &mut *self.state.lock();
        state.draw_power("read", lba)?;
        buf.copy_from_slice(&state.current[at..at + buf.len()]);
        Ok(())
    }

    fn write(&self, lba: Lba, bytes: &[u8], _class: IoClass) -> Result<(), DeviceError> {
        let blocks = check_request("write", lba, bytes.len(), self.blocks)?;
        let state = &mut *self.state.lock();
        state.draw_power("write", lba)?;
        let fails = state.fail_write.is_some_and(|n| n == state.writes);
        state.writes += 1;
        for (i, block) in bytes.chunks_exact(BLOCK_SIZE).enumerate() {
            state.add(lba.0 + i as u64, Some(block), fails);
            if !fails || (i as u64) < blocks / 2 {
                put_block(&mut state.current, lba.0 + i as u64, Some(block));
            }
        }
        if fails {
            Err(injected("write", lba))
        } else {
            Ok(())
        }
    }

    fn trim(&self, lba: Lba, blocks: u64) -> Result<(), DeviceError> {
        check_range("trim", lba, blocks, self.blocks)?;
        let state = &mut *self.state.lock();
        state.draw_power("trim", lba)?;
        for block in lba.0..lba.0 + blocks {
            state.add(block, None, false);
            put_block(&mut state.current, block, None);
        }
        Ok(())
    }

    fn flush(&self) -> Result<(), DeviceError> {
        let state = &mut *self.state.lock();
        state.draw_power("flush", Lba(0))?;
        let fails = state.fail_flush.is_some_and(|n| n == state.flushes);
        state.flushes += 1;
        if fails {
            state
                .versions
                .values_mut()
                .flatten()
                .for_each(|v| v.forgotten = true);
            return Err(injected("flush", Lba(0)));
        }
        let durable = &mut state.durable;
        state
            .versions
            .retain(|block, versions| match versions.last() {
                Some(last) if !last.forgotten => {
                    put_block(durable, *block, last.bytes.as_deref());
                    false
                }
                _ => true,
            });
        Ok(())
    }
}
