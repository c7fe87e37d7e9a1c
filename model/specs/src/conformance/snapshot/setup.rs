//! A store with one empty leaf, at rest, and how its keys correspond to the spec's.
//!
//! ```text
//! key k       489 equal bytes, then one that is k's   fences are as long, but for the first one
//! entry       2 + 490 + 8 + 8 bytes                   8 in a chunk of one block
//! record      1 byte and 1000 of a value              2 or 3 in a leaf, by its fences' length
//! ```

use std::sync::Arc;

use treering_engine::device::{BlockDevice, CrashDevice, Image};
use treering_engine::events::{Observer, fence_name};
use treering_engine::node::{LayoutChoice, PageLayout};
use treering_engine::{
    BLOCK_SIZE, Durability, Options, PageId, Result, Store, SystemClock, required_blocks, survey,
};

use super::found::{Found, Places};
use crate::conformance::at_rest::{AtRest, contents, open};
use crate::mirror::wide::index_snapshot::IndexSnapshot;
use treering_oracle::value;

/// Keys of the spec.
pub const KEYS: u8 = IndexSnapshot::MOST_KEYS as u8;
/// Slots of the store.
pub(super) const SLOTS: usize = IndexSnapshot::MOST_SLOTS;
/// The most records in a leaf.
pub(super) const ROOM: usize = 3;
/// The most entries in a chunk.
pub(super) const PER_CHUNK: usize = 8;
const PREFIX: usize = 489;
const VALUE: usize = 1000;

const _: () = assert!((BLOCK_SIZE - 32) / (PREFIX + 1 + 18) == PER_CHUNK);

/// The bytes of a key of the spec.
pub(super) fn key(k: u8) -> Vec<u8> {
    let mut bytes = vec![b'p'; PREFIX];
    bytes.push(b'@' + k);
    bytes
}

/// The key of the spec with these bytes; 0 if there is none.
pub(super) fn key_of(bytes: &[u8]) -> u8 {
    (1..=KEYS).find(|k| key(*k) == bytes).unwrap_or(0)
}

/// The key of the spec that is this lower fence; 0 if there is none.
pub(super) fn fence_of(bytes: &[u8]) -> u8 {
    if bytes.is_empty() { 1 } else { key_of(bytes) }
}

/// The bound of the spec that is this upper fence; 0 if there is none.
pub(super) fn upper_of(bytes: Option<&[u8]>) -> u8 {
    bytes.map_or(KEYS + 1, key_of)
}

/// The bytes of a bound from which a scan goes on.
pub(super) fn bound(at: u8) -> Vec<u8> {
    if at == 1 { Vec::new() } else { key(at) }
}

/// A value of this version.
pub(super) fn value_of(bytes: &mut Vec<u8>, version: u64) {
    value::fill(bytes, version, VALUE);
}

/// A store on a device, at rest.
#[derive(Clone, Debug)]
pub struct Setup {
    rest: AtRest,
    places: Places,
    /// The name of each key as a fence.
    fences: Vec<u32>,
}

fn options() -> Options {
    let log_bytes = 768 * BLOCK_SIZE as u64;
    Options {
        layout: Some(LayoutChoice::of(PageLayout::Slotted)),
        page_size: BLOCK_SIZE,
        // Every leaf is in memory, as in the spec.
        cache_bytes: 2 * SLOTS as u64 * BLOCK_SIZE as u64,
        durability: Durability::Deferred,
        log_bytes,
        checkpoint_log_bytes: log_bytes / 2,
        log_buffer_bytes: log_bytes / 8,
        write_batch_pages: 1,
        ..Options::default()
    }
}

impl Setup {
    /// Formats a store.
    ///
    /// # Errors
    /// The engine's own. None is expected.
    pub fn new() -> Result<Setup> {
        let options = options();
        let device = Arc::new(CrashDevice::new(required_blocks(&options, 1)));
        open(&device, &options, None)?.abandon();
        let disk = Image::from(contents(&device)?);
        let survey = survey(device.clone())?;
        let (_, slots) = survey.pages[&PageId(0)];
        let fences = (1..=KEYS).map(|k| fence_name(&bound(k)));
        Ok(Setup {
            places: Places {
                store: survey.store,
                slots,
                count: SLOTS,
            },
            rest: AtRest { options, disk },
            fences: fences.collect(),
        })
    }

    /// A device that holds the store durably.
    pub(super) fn device(&self) -> Arc<CrashDevice> {
        self.rest.device()
    }

    /// Opens the store on `device`, observed by `observer`.
    ///
    /// # Errors
    /// The engine's own.
    pub(super) fn open(
        &self,
        device: Arc<dyn BlockDevice>,
        observer: Arc<dyn Observer>,
    ) -> Result<Store> {
        let clock = Arc::new(SystemClock::new());
        Store::open_observed(device, clock, &self.rest.options, Some(observer))
    }

    /// The content of a device, and the log as recovery reads it from a copy.
    ///
    /// # Errors
    /// The device fails.
    pub(super) fn look(&self, device: &CrashDevice) -> Result<Found> {
        let image = Image::from(contents(device)?);
        let log = self.rest.log_of(image.clone());
        Ok(self.places.read(&image, log))
    }

    /// The key of the spec of which this is the name as a fence.
    ///
    /// # Errors
    /// If there is none.
    pub(super) fn fence(&self, name: u32) -> std::result::Result<u8, String> {
        let at = self.fences.iter().position(|known| *known == name);
        let at = at.ok_or_else(|| format!("the fence {name:#x} is no key of the spec"))?;
        Ok(at as u8 + 1)
    }
}
