//! A store with one empty leaf, at rest, and how its keys and values correspond to the spec's.
//!
//! Each store has values of three lengths, so that leaves become dense and are converted back in
//! all ways:
//!
//! ```text
//! numbers   keys of 4 bytes, mostly in sequence   1000, 670, 400 bytes   dense: 4, 6, 10 places
//! names     keys of 490 bytes, in three groups    0, 1, 300 bytes        dense: 24568, 2729, 10
//! prints    104 keys of 4 bytes in three groups   10, 1000, 400 bytes    begins with fingerprints
//! semi      68 keys of 4 bytes, near and far      60, 140, 300 bytes     semi-dense
//! ```
//!
//! The first leaf of `names` is never dense, because its lower fence does not have the fixed part
//! of the keys. Fences are so long that a general leaf has room for 6 records at the end of the
//! tree, and for hundreds within it. With values of no bytes, a separator that is three bytes
//! longer takes 24 places: so a dense leaf may be too large for a dense right side.
//!
//! The first leaf of `prints` is filled so that it is split left of its middle, because the
//! separator is shorter there: its right side has room for its records with fingerprints, and none
//! with hints.
//!
//! In `semi`, a page with near keys takes 28 values of 140 bytes rather than 26, and one with far
//! keys fewer than with slots.

use std::sync::Arc;

use treering_engine::device::{CrashDevice, Image};
use treering_engine::events::record_sum;
use treering_engine::node::{LayoutChoice, PageLayout};
use treering_engine::{
    BLOCK_SIZE, Durability, Options, PageId, Result, Store, required_blocks, survey,
};

use super::found::{Found, Places};
use super::pages::Pages;
use crate::conformance::at_rest::{AtRest, contents, open};
use crate::conformance::record::Recorder;
use crate::mirror::wide::leaf_layout::{Layout, LeafLayout};
use treering_oracle::value;

/// Slots of the store.
pub(super) const SLOTS: u64 = 64;

/// The numbers of the keys of `numbers`.
const SEQUENCE: [u32; 24] = [
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 20, 24, 30, 31, 40, 60,
];

/// Where the second group of the keys of `names` begins.
const GROUP: u32 = 1 << 24;

/// The numbers of the keys of `names`: the first group is in the first leaf; the last key of the
/// second one is in one of the last places of a leaf that begins there, if values have no bytes.
const GROUPS: [u32; 24] = [
    0x10,
    0x11,
    0x12,
    0x13,
    0x14,
    GROUP,
    GROUP + 1,
    GROUP + 2,
    GROUP + 3,
    GROUP + 4,
    GROUP + 5,
    GROUP + 6,
    GROUP + 7,
    GROUP + 8,
    GROUP + 9,
    GROUP + 10,
    GROUP + 11,
    GROUP + 0xa00,
    GROUP + 0x5ff2,
    GROUP + 0x6ff1,
    2 * GROUP,
    2 * GROUP + 1,
    2 * GROUP + 2,
    2 * GROUP + 3,
];

/// The number of keys of `semi` that are near each other, from 0 on, and the numbers of others.
pub(super) const NEAR: u8 = 58;
const FAR: [u32; 10] = [100, 101, 160, 161, 300, 301, 302, 900, 901, 2500];

/// The layouts that a store's leaves may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaves {
    /// Hints, and fully dense.
    Hints,
    /// Hints, and semi-dense.
    Semi,
    /// Hints or fingerprints, by their use, and fully dense.
    Adaptive,
    /// The same, but the first one begins with fingerprints.
    Prints,
}

impl Leaves {
    /// Whether there are two general layouts.
    pub(super) fn is_adaptive(self) -> bool {
        matches!(self, Leaves::Adaptive | Leaves::Prints)
    }
}

/// A store on a device, at rest.
#[derive(Clone, Debug)]
pub struct Setup {
    rest: AtRest,
    places: Places,
    pub(super) pages: Pages,
    pub(super) leaves: Leaves,
    /// The numbers of the keys, in order.
    pub(super) keys: Vec<u32>,
    /// The lengths of values.
    pub(super) lengths: &'static [usize],
}

fn options(leaves: Leaves, dense: bool) -> Options {
    let choice = match leaves {
        Leaves::Hints => LayoutChoice::of(PageLayout::FullyDense),
        Leaves::Semi => LayoutChoice::of(PageLayout::SemiDense),
        Leaves::Adaptive | Leaves::Prints => LayoutChoice::ADAPTIVE,
    };
    let log_bytes = 768 * BLOCK_SIZE as u64;
    Options {
        layout: Some(if dense {
            choice
        } else {
            choice.without_dense()
        }),
        page_size: BLOCK_SIZE,
        // Every leaf is in memory, as in the spec.
        cache_bytes: 2 * SLOTS * BLOCK_SIZE as u64,
        durability: Durability::Deferred,
        log_bytes,
        checkpoint_log_bytes: log_bytes / 2,
        log_buffer_bytes: log_bytes / 8,
        write_batch_pages: 1,
        ..Options::default()
    }
}

/// All stores that episodes begin with.
///
/// # Errors
/// The engine's own. None is expected.
pub fn setups() -> Result<Vec<Setup>> {
    let numbers = |leaves| Setup::new(leaves, (0, SEQUENCE.to_vec()), &[1000, 670, 400]);
    let names = |leaves| Setup::new(leaves, (486, GROUPS.to_vec()), &[0, 1, 300]);
    // Two keys, two more, and the others.
    let few = [0, 1, GROUP, GROUP + 1].into_iter();
    let prints = few.chain((0..LeafLayout::MOST_KEYS as u32 - 4).map(|n| 2 * GROUP + n));
    let near_and_far = (0..NEAR.into()).chain(FAR);
    Ok(vec![
        numbers(Leaves::Hints)?,
        names(Leaves::Hints)?,
        numbers(Leaves::Adaptive)?,
        names(Leaves::Adaptive)?,
        Setup::new(Leaves::Prints, (0, prints.collect()), &[10, 1000, 400])?,
        Setup::new(Leaves::Semi, (0, near_and_far.collect()), &[60, 140, 300])?,
    ])
}

impl Setup {
    fn new(
        leaves: Leaves,
        (fixed, keys): (usize, Vec<u32>),
        lengths: &'static [usize],
    ) -> Result<Setup> {
        let options = options(leaves, true);
        let device = Arc::new(CrashDevice::new(required_blocks(&options, 1)));
        let first = match leaves {
            Leaves::Prints => Some(LayoutChoice::of(PageLayout::Fingerprint)),
            _ => options.layout,
        };
        let formats = Options {
            layout: first,
            ..options.clone()
        };
        open(&device, &formats, None)?.abandon();
        let disk = Image::from(contents(&device)?);
        let survey = survey(device.clone())?;
        let (_, slots) = survey.pages[&PageId(0)];
        let pages = Pages {
            fixed,
            least: keys[0],
            top: keys[keys.len() - 1] + 1,
            semi: leaves == Leaves::Semi,
        };
        Ok(Setup {
            places: Places {
                store: survey.store,
                slots,
                count: SLOTS,
            },
            rest: AtRest { options, disk },
            pages,
            leaves,
            keys,
            lengths,
        })
    }

    /// The protocol for this store.
    pub(super) fn mirror(&self, clients: u8) -> LeafLayout {
        let generals: &[Layout] = match self.leaves.is_adaptive() {
            false => &[Layout::General],
            true => &[Layout::General, Layout::Other],
        };
        LeafLayout::unbounded(clients.into(), &self.keys, Arc::new(self.pages), generals)
    }

    /// The layouts that its leaves may have.
    #[must_use]
    pub fn leaves(&self) -> Leaves {
        self.leaves
    }

    /// Whether the first leaf has fingerprints. In the spec it has been converted.
    pub(super) fn begins_with_prints(&self) -> bool {
        self.leaves == Leaves::Prints
    }

    /// A device that holds the store durably.
    pub(super) fn device(&self) -> Arc<CrashDevice> {
        self.rest.device()
    }

    /// Opens the store on `device`, recorded by `recorder`. Its leaves may become dense, or not.
    ///
    /// # Errors
    /// The engine's own.
    pub(super) fn open(
        &self,
        device: &Arc<CrashDevice>,
        recorder: &Arc<Recorder>,
        dense: bool,
    ) -> Result<Store> {
        open(device, &options(self.leaves, dense), Some(recorder))
    }

    /// The content of a device, and the log as recovery reads it from a copy.
    ///
    /// # Errors
    /// The device fails.
    pub(super) fn look(&self, device: &CrashDevice) -> Result<Found> {
        let image = Image::from(contents(device)?);
        let log = self.rest.log_of(image.clone());
        Ok(self.places.read(&image, log, &self.pages))
    }
}

/// The layout of the spec.
pub(super) fn layout_of(layout: PageLayout) -> Layout {
    match layout {
        PageLayout::Hints => Layout::General,
        PageLayout::Fingerprint => Layout::Other,
        PageLayout::FullyDense | PageLayout::SemiDense => Layout::Dense,
        _ => Layout::None,
    }
}

/// The value that a write of this number has, if it has so many bytes.
pub(super) fn value_of(version: u64, len: u64) -> Vec<u8> {
    value::value(version, len as usize)
}

/// A short name of a value. 0 is that of none.
pub(super) fn digest(value: &[u8]) -> u64 {
    (value.len() as u64 + 1) << 32 | u64::from(record_sum(&[], value))
}
