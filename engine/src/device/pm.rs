//! Persistent memory: 64-byte lines that are stored, written back and fenced.
//!
//! ```text
//! store ─▶ CPU cache ──clwb──▶ on its way ──fence──▶ persistent
//! ntstore ─────────────────▶ on its way
//! ```
//!
//! A store becomes persistent at the latest at the fence after its write-back, and at the earliest at once: the CPU may evict
//! a line whenever it likes. Stores of eight aligned bytes are atomic; a line is the unit in which [`MemPm`] crashes.

use std::collections::BTreeMap;

use super::DeviceError;
use crate::sync::Mutex;
use crate::types::Lba;

/// Bytes in a cache line, the unit of write-back.
pub const LINE_SIZE: usize = 64;

/// A byte-addressable persistent device. Shared by threads.
pub trait PmDevice: Send + Sync {
    /// Size in bytes; a multiple of [`LINE_SIZE`].
    fn len(&self) -> u64;

    /// Whether the device has no bytes at all.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads `buf.len()` bytes from `offset` on, as last stored, persistent or not.
    ///
    /// # Errors
    /// [`DeviceError`] if the range lies outside the device.
    fn load(&self, offset: u64, buf: &mut [u8]) -> Result<(), DeviceError>;

    /// Stores into the CPU cache.
    ///
    /// # Errors
    /// [`DeviceError`] if the range lies outside the device.
    fn store(&self, offset: u64, bytes: &[u8]) -> Result<(), DeviceError>;

    /// Starts writing back the line that holds `offset`.
    ///
    /// # Errors
    /// [`DeviceError`] if `offset` lies outside the device.
    fn clwb(&self, offset: u64) -> Result<(), DeviceError>;

    /// Stores past the cache; persistent after the next fence.
    ///
    /// # Errors
    /// [`DeviceError`] if the range lies outside the device.
    fn ntstore(&self, offset: u64, bytes: &[u8]) -> Result<(), DeviceError>;

    /// Returns when all write-backs and non-temporal stores that were started are persistent.
    fn fence(&self);
}

/// What a crash may leave of a line instead of its persisted bytes.
#[derive(Default)]
struct Unfenced {
    /// As of the last write-back that no fence has followed.
    on_its_way: Option<[u8; LINE_SIZE]>,
    /// The cache holds newer bytes than were ever written back.
    cached: bool,
}

struct Images {
    volatile: Vec<u8>,
    persisted: Vec<u8>,
    unfenced: BTreeMap<u64, Unfenced>,
}

/// Persistent memory in ordinary memory, with both images.
pub struct MemPm {
    len: u64,
    images: Mutex<Images>,
}

impl MemPm {
    /// `len` zero bytes, rounded up to whole lines.
    pub fn new(len: u64) -> MemPm {
        MemPm::from_image(vec![0; len.next_multiple_of(LINE_SIZE as u64) as usize])
    }

    /// Holds `image` persistently. Its length must be a whole number of lines.
    pub fn from_image(image: Vec<u8>) -> MemPm {
        assert!(image.len().is_multiple_of(LINE_SIZE), "whole lines");
        MemPm {
            len: image.len() as u64,
            images: Mutex::new(Images {
                volatile: image.clone(),
                persisted: image,
                unfenced: BTreeMap::new(),
            }),
        }
    }

    /// What is persistent if power fails now. For each line in doubt, in order of address, `choose(n)` picks one of `n` outcomes: 0
    /// is the persisted bytes, the others what is on its way and what the cache holds. (What the cache held between two
    /// write-backs and was overwritten there is left out.)
    pub fn crash(&self, choose: &mut dyn FnMut(usize) -> usize) -> Vec<u8> {
        let images = self.images.lock();
        let mut image = images.persisted.clone();
        for (line, unfenced) in &images.unfenced {
            let at = line_range(*line);
            let cached = unfenced.cached.then(|| &images.volatile[at.clone()]);
            let outcomes: Vec<&[u8]> = unfenced
                .on_its_way
                .as_ref()
                .map(|l| &l[..])
                .into_iter()
                .chain(cached)
                .collect();
            let pick = choose(outcomes.len() + 1);
            if let Some(bytes) = pick.checked_sub(1).and_then(|i| outcomes.get(i)) {
                image[at].copy_from_slice(bytes);
            }
        }
        image
    }

    fn check(&self, what: &'static str, offset: u64, len: usize) -> Result<(), DeviceError> {
        let end = offset.checked_add(len as u64);
        if end.is_some_and(|end| end <= self.len) {
            return Ok(());
        }
        let source = std::io::Error::other(format!(
            "{len} bytes at offset {offset} are outside the device of {} bytes",
            self.len
        ));
        Err(DeviceError::Io {
            what,
            lba: Lba(offset / crate::types::BLOCK_SIZE as u64),
            source,
        })
    }
}

fn line_range(line: u64) -> std::ops::Range<usize> {
    let at = line as usize * LINE_SIZE;
    at..at + LINE_SIZE
}

/// The lines that `len` bytes at `offset` touch.
fn lines(offset: u64, len: usize) -> std::ops::Range<u64> {
    offset / LINE_SIZE as u64..(offset + len as u64).div_ceil(LINE_SIZE as u64)
}

impl Images {
    fn write_back(&mut self, line: u64) {
        if let Some(unfenced) = self.unfenced.get_mut(&line)
            && unfenced.cached
        {
            let bytes = &self.volatile[line_range(line)];
            unfenced.on_its_way = Some(bytes.try_into().expect("one line"));
            unfenced.cached = false;
        }
    }
}

impl PmDevice for MemPm {
    fn len(&self) -> u64 {
        self.len
    }

    fn load(&self, offset: u64, buf: &mut [u8]) -> Result<(), DeviceError> {
        self.check("load", offset, buf.len())?;
        let at = offset as usize;
        buf.copy_from_slice(&self.images.lock().volatile[at..at + buf.len()]);
        Ok(())
    }

    fn store(&self, offset: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.check("store", offset, bytes.len())?;
        let images = &mut *self.images.lock();
        images.volatile[offset as usize..][..bytes.len()].copy_from_slice(bytes);
        for line in lines(offset, bytes.len()) {
            images.unfenced.entry(line).or_default().cached = true;
        }
        Ok(())
    }

    fn clwb(&self, offset: u64) -> Result<(), DeviceError> {
        self.check("clwb", offset, 1)?;
        self.images.lock().write_back(offset / LINE_SIZE as u64);
        Ok(())
    }

    fn ntstore(&self, offset: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.store(offset, bytes)?;
        let images = &mut *self.images.lock();
        lines(offset, bytes.len()).for_each(|line| images.write_back(line));
        Ok(())
    }

    fn fence(&self) {
        let images = &mut *self.images.lock();
        let persisted = &mut images.persisted;
        images.unfenced.retain(|line, unfenced| {
            if let Some(bytes) = unfenced.on_its_way.take() {
                persisted[line_range(*line)].copy_from_slice(&bytes);
            }
            unfenced.cached
        });
    }
}
