//! A store whose tree has been built: one key for each leaf, every record as long as a slot,
//! nothing in the log.

use std::collections::BTreeMap;
use std::sync::Arc;

use treering_engine::device::{CrashDevice, Image};
use treering_engine::{
    BLOCK_SIZE, Durability, Kv, Options, PageId, PageStoreKind, Result, Store, TablePersist,
    required_blocks, survey,
};

use super::at_rest::{contents, open};
use super::record::Recorder;
use super::scale::Scale;
use crate::mirror::wide::wal_recovery::WalRecovery;
use treering_oracle::value;

/// The page store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Variant {
    /// Pages at a fixed home, behind a journal.
    InPlace,
    /// Copy-on-write, the page table written after each batch.
    Cow,
}

impl Variant {
    /// Both variants.
    pub const ALL: [Variant; 2] = [Variant::InPlace, Variant::Cow];

    /// The name that [`treering_oracle::engines::BTree`] uses.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Variant::InPlace => "btree:in-place",
            Variant::Cow => "btree:cow",
        }
    }

    /// The variant of that name, if the protocol fits it. See [`super`] for `btree:cow-lazy`.
    #[must_use]
    pub fn named(name: &str) -> Option<Variant> {
        Self::ALL.into_iter().find(|variant| variant.name() == name)
    }

    fn options(self) -> Options {
        Options {
            store: self.kind(),
            page_size: BLOCK_SIZE,
            cache_bytes: FRAMES * BLOCK_SIZE as u64,
            durability: Durability::Deferred,
            log_bytes: (WalRecovery::RING_BLOCKS * BLOCK_SIZE) as u64,
            checkpoint_log_bytes: (WalRecovery::RING_BLOCKS * BLOCK_SIZE / 2) as u64,
            log_buffer_bytes: (WalRecovery::RING_BLOCKS * BLOCK_SIZE / 8) as u64,
            write_batch_pages: 3,
            ..Options::default()
        }
    }

    fn kind(self) -> PageStoreKind {
        match self {
            Variant::InPlace => PageStoreKind::InPlace,
            Variant::Cow => PageStoreKind::CopyOnWrite {
                table: TablePersist::EachFlush,
            },
        }
    }
}

/// The number of leaves, and so of keys. One and a half times the cache's frames, so that pages are
/// evicted and loaded.
const LEAVES: usize = 24;
const FRAMES: u64 = 16;
const KEY_BYTES: usize = 5;

/// A store on a device, at rest, and how it corresponds to the spec.
#[derive(Clone, Debug)]
pub struct Setup {
    options: Options,
    image: Vec<u8>,
    /// The device's content as blocks that devices share.
    disk: Image,
    /// The key of each leaf, in order.
    pub keys: Vec<Vec<u8>>,
    /// The key on each page.
    pub pages: BTreeMap<PageId, u8>,
    /// The spec's zeros.
    pub scale: Scale,
}

fn key(n: usize) -> Vec<u8> {
    format!("k{n:04}").into_bytes()
}

impl Setup {
    /// Builds the tree, then closes and opens the store. The epoch that begins then is the spec's
    /// first.
    ///
    /// # Errors
    /// The engine's own. None is expected.
    pub fn new(variant: Variant, per_block: u64) -> Result<Setup> {
        Setup::with(variant.options(), LEAVES, per_block)
    }

    /// Builds a tree of two leaves with log blocks of two records, as in the small models. Pages
    /// have two blocks, so that a record of that length fits.
    ///
    /// # Errors
    /// As [`Setup::new`].
    pub fn smoke() -> Result<Setup> {
        Setup::small(2)
    }

    /// As [`Setup::smoke`], with log blocks of `per_block` records, one or two, and pages that are
    /// long enough for such a record.
    ///
    /// # Errors
    /// As [`Setup::new`].
    pub fn small(per_block: u64) -> Result<Setup> {
        let page_size = 4 / per_block as usize * BLOCK_SIZE;
        let log_bytes = 64 * page_size as u64;
        let options = Options {
            page_size,
            cache_bytes: FRAMES * page_size as u64,
            log_bytes,
            checkpoint_log_bytes: log_bytes / 2,
            log_buffer_bytes: log_bytes / 8,
            write_batch_pages: 1,
            ..Variant::InPlace.options()
        };
        Setup::with(options, 2, per_block)
    }

    fn with(options: Options, leaves: usize, per_block: u64) -> Result<Setup> {
        let device: Arc<CrashDevice> = Arc::new(CrashDevice::new(required_blocks(
            &options,
            2 * leaves as u64,
        )));
        let store = open(&device, &options, None)?;
        let mut bytes = Vec::new();
        for n in 0.. {
            if store.stats().leaf_pages as usize == leaves {
                break;
            }
            fill(&mut bytes, per_block, 0);
            store.put(&key(n), &bytes)?;
            store.pump_due()?;
        }
        // Records are in key order, so the leaves' counts tell which record is where.
        let (mut keys, mut pages, mut first) = (Vec::new(), BTreeMap::new(), 0);
        for (n, leaf) in store.leaf_fill()?.into_iter().enumerate() {
            keys.push(key(first));
            pages.insert(leaf.page, n as u8);
            first += leaf.records as usize;
        }
        store.close()?;
        drop(open(&device, &options, None)?);
        let found = survey(device.clone())?;
        let image = contents(&device)?;
        let setup = Setup {
            options,
            disk: Image::from(image.clone()),
            image,
            keys,
            pages,
            scale: Scale {
                per_block,
                first_block: found.redo_start.0 / BLOCK_SIZE as u64,
                // An episode begins with another opening of the store.
                first_epoch: found.epoch + 1,
            },
        };
        assert!(
            setup.pages.keys().all(|page| page.0 < 128),
            "one byte in a record"
        );
        Ok(setup)
    }

    /// A device that holds the store durably.
    #[must_use]
    pub fn device(&self) -> Arc<CrashDevice> {
        Arc::new(CrashDevice::from_image(self.disk.clone()))
    }

    /// Opens the store on `device` for the spec's initial state. What opening does is not recorded.
    ///
    /// # Errors
    /// The engine's own.
    pub fn begin(&self, device: &Arc<CrashDevice>, recorder: &Arc<Recorder>) -> Result<Store> {
        let store = self.open(device, recorder)?;
        drop(recorder.take());
        Ok(store)
    }

    /// Opens the store on `device`, recorded by `recorder`.
    ///
    /// # Errors
    /// The engine's own.
    pub fn open(&self, device: &Arc<CrashDevice>, recorder: &Arc<Recorder>) -> Result<Store> {
        open(device, &self.options, Some(recorder))
    }

    /// The options that the store is opened with.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The content of the device.
    #[must_use]
    pub fn image(&self) -> &[u8] {
        &self.image
    }

    /// Fills `bytes` with version `version`, so long that its record fills a slot.
    pub fn fill(&self, bytes: &mut Vec<u8>, version: u64) {
        fill(bytes, self.scale.per_block, version);
    }
}

fn fill(bytes: &mut Vec<u8>, per_block: u64, version: u64) {
    // Length (two bytes), kind, page, length of the key.
    let head = 5 + KEY_BYTES;
    value::fill(bytes, version, Scale::slot_bytes(per_block) as usize - head);
}
