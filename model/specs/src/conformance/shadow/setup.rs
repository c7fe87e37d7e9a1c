//! A store whose tree has been built: pages of several blocks, with a record in each block that the
//! episode writes.

use std::collections::BTreeMap;
use std::sync::Arc;

use treering_engine::device::{BlockDevice, CrashDevice, Image};
use treering_engine::events::{Event, Shadow};
use treering_engine::{
    BLOCK_SIZE, Durability, Kv, Lba, LogPacking, Lsn, MIN_CACHE_PAGES, ModLog, Options, PageId,
    PageStoreKind, ResetRule, Result, Store, required_blocks, survey,
};

use super::found::{Found, Places};
use crate::conformance::at_rest::{AtRest, contents, open};
use crate::conformance::paged::PagedStore;
use crate::conformance::record::{Entry, Heard, Recorder};
use crate::mirror::wide::page_shadowing::{LABELS, PageShadowing};
use treering_oracle::random::Random;
use treering_oracle::value;

/// The store, by the oracle's name for its tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Variant {
    /// Shadowed pages with a modification log, and a sparse redo log.
    BMinus,
    /// Shadowed pages only.
    Plain,
}

impl Variant {
    /// All variants.
    pub const ALL: [Variant; 2] = [Variant::BMinus, Variant::Plain];

    /// The actions that the variant takes.
    #[must_use]
    pub fn labels(self) -> Vec<&'static str> {
        let mut labels = LABELS.to_vec();
        if self == Variant::Plain {
            labels.retain(|label| *label != "WriteDelta");
        }
        labels
    }
}

/// Ds, the segment size. A whole value lies in one segment.
const SEGMENT: usize = 256;
const VALUE: usize = 60;
/// The total number of records. A page has about ninety for each of its blocks.
const RECORDS: usize = 50 * PageShadowing::MOST_PAGES;
/// Versions from this one on existed before the episode.
pub(super) const BUILT: u64 = 1 << 32;

/// A page of the episode.
#[derive(Clone, Debug)]
pub struct Page {
    /// The page's id.
    pub id: PageId,
    /// The LSN of its only image.
    pub lsn: Lsn,
    /// The slot that has it.
    pub slot: u8,
    /// The record in each of its blocks that is written, and the offset of its value in the page.
    pub records: Vec<(usize, usize)>,
}

/// A store on a device, at rest, and how it corresponds to the spec.
#[derive(Clone, Debug)]
pub struct Setup {
    rest: AtRest,
    /// The pages that are written.
    pub pages: Vec<Page>,
    /// Where redo begins.
    pub start: Lsn,
    places: Places,
}

fn key(n: usize) -> Vec<u8> {
    format!("k{n:05}").into_bytes()
}

fn options(variant: Variant, blocks: usize, reset: ResetRule) -> Options {
    let page_size = blocks * BLOCK_SIZE;
    let page = page_size as u64;
    // At most one segment in two goes to the log block.
    let most = (blocks / 2 * SEGMENT) as u32;
    let threshold = match reset {
        ResetRule::AboveThreshold => most,
        ResetRule::AtThreshold => most + 1,
    };
    let bminus = variant == Variant::BMinus;
    let log_bytes = 32 * page;
    Options {
        store: PageStoreKind::Shadow,
        mod_log: bminus.then_some(ModLog {
            threshold,
            segment: SEGMENT as u32,
            reset,
        }),
        log_packing: if bminus {
            LogPacking::Sparse
        } else {
            LogPacking::Packed
        },
        page_size,
        cache_bytes: MIN_CACHE_PAGES * page,
        durability: Durability::Deferred,
        log_bytes,
        checkpoint_log_bytes: log_bytes / 4,
        log_buffer_bytes: log_bytes / 8,
        write_batch_pages: 3,
        ..Options::default()
    }
}

impl Setup {
    /// Builds the tree with pages of this many blocks, closes the store and opens it again. Opening
    /// reports where pages lie.
    ///
    /// # Errors
    /// The engine's own. None is expected.
    pub fn new(variant: Variant, blocks: usize, reset: ResetRule) -> Result<Setup> {
        let options = options(variant, blocks, reset);
        let pages = required_blocks(&options, 2 * PageShadowing::MOST_PAGES as u64);
        let device = Arc::new(CrashDevice::new(pages));
        open(&device, &options, None)?.close()?;
        build(&device, &options)?;
        let recorder = Arc::new(Recorder::of_shadows());
        let store = open(&device, &options, Some(&recorder))?;
        let at = survey(device.clone())?.pages;
        let mut places = Places::new(&options);
        let mut pages = Vec::new();
        let mut bytes = vec![0; options.page_size];
        // Records are in key order, so the leaves' counts tell which record is where.
        let mut built = built(&options);
        let leaves = store.leaf_fill()?;
        let slots = slots(&recorder);
        for leaf in leaves {
            let (lsn, lba) = at[&leaf.page];
            device.read(lba, &mut bytes, treering_engine::IoClass::Page)?;
            let records = written(&bytes, built.by_ref().take(leaf.records as usize));
            if records.len() == blocks && pages.len() < PageShadowing::MOST_PAGES {
                let page = Page {
                    id: leaf.page,
                    lsn,
                    slot: slots[&leaf.page],
                    records,
                };
                let slot_0 = lba.0 - u64::from(page.slot) * places.behind();
                places.add(&page, Lba(slot_0));
                pages.push(page);
            }
        }
        assert!(!pages.is_empty(), "no page has a record in each block");
        drop(store);
        Ok(Setup {
            start: survey(device.clone())?.redo_start,
            rest: AtRest {
                disk: contents(&device)?.into(),
                options,
            },
            pages,
            places,
        })
    }

    /// The number of segments of a page in the spec.
    #[must_use]
    pub fn segments(&self) -> usize {
        self.rest.options.page_size / BLOCK_SIZE
    }

    /// The maximum number of segments that go to the log block. 0 if there is no log block.
    #[must_use]
    pub fn threshold(&self) -> u32 {
        self.rest
            .options
            .mod_log
            .map_or(0, |rule| rule.threshold / rule.segment)
    }

    /// |Δ| of this many segments of the spec.
    #[must_use]
    pub fn delta_bytes(segments: u32) -> u32 {
        segments * SEGMENT as u32
    }

    /// Whether pages have log blocks.
    #[must_use]
    pub(crate) fn has_log_blocks(&self) -> bool {
        self.rest.options.mod_log.is_some()
    }

    /// The version that a key had before the episode.
    #[must_use]
    pub(crate) fn first_version(&self, key_of_spec: u8) -> u64 {
        let (page, segment) = PageShadowing::page_and_segment(key_of_spec);
        BUILT + self.pages[page].records[segment].0 as u64
    }
}

impl PagedStore for Setup {
    type Found = Found;

    const FROM_REST: bool = false;

    fn recorder() -> Recorder {
        Recorder::of_shadows()
    }

    fn device(&self) -> Arc<CrashDevice> {
        self.rest.device()
    }

    fn open(&self, device: &Arc<CrashDevice>, recorder: &Arc<Recorder>) -> Result<Store> {
        self.rest.open(device, recorder)
    }

    fn look(&self, device: &CrashDevice) -> Result<Found> {
        let image = Image::from(contents(device)?);
        Ok(Found {
            pages: self.places.read(&image),
            log: self.rest.log_of(image),
        })
    }

    fn pages(&self) -> Vec<PageId> {
        self.pages.iter().map(|page| page.id).collect()
    }

    fn key_on(&self, page: usize, rng: &mut Random) -> u8 {
        let segment = rng.below(self.segments() as u64) as usize;
        // Half of the writes change the same record as the one before.
        let segment = if rng.one_in(2) { 0 } else { segment };
        PageShadowing::key_of(page, segment)
    }

    fn keys(&self) -> Vec<u8> {
        let pages = 0..self.pages.len();
        let on = |page| (0..self.segments()).map(move |at| PageShadowing::key_of(page, at));
        pages.flat_map(on).collect()
    }

    fn key(&self, key_of_spec: u8) -> Vec<u8> {
        let (page, segment) = PageShadowing::page_and_segment(key_of_spec);
        key(self.pages[page].records[segment].0)
    }

    fn fill(&self, bytes: &mut Vec<u8>, version: u64) {
        value::fill(bytes, version, VALUE);
    }
}

/// Fills the leaves, and leaves each whole in one of its slots, with nothing else on the device.
fn build(device: &Arc<CrashDevice>, options: &Options) -> Result<()> {
    let whole = Options {
        mod_log: None,
        ..options.clone()
    };
    let store = open(device, &whole, None)?;
    // Records inserted in order leave leaves half full. Those inserted in between fill them.
    let even = built(options).filter(|n| n % 2 == 0);
    let odd = built(options).filter(|n| n % 2 == 1);
    let mut bytes = Vec::new();
    for n in even.chain(odd) {
        value::fill(&mut bytes, BUILT + n as u64, VALUE);
        store.put(&key(n), &bytes)?;
        store.pump_due()?;
    }
    // The second checkpoint trims what the first one made superfluous.
    store.checkpoint()?;
    store.checkpoint()?;
    store.close()
}

/// The numbers of all records.
fn built(options: &Options) -> impl Iterator<Item = usize> + use<> {
    let blocks = options.page_size / BLOCK_SIZE;
    (0..RECORDS * blocks).filter(|n| n % 16 != 15)
}

/// For each block of a page with one of these records, picks a record and the offset of its value.
/// The value lies inside one segment, and not in the page's header.
fn written(page: &[u8], records: impl Iterator<Item = usize>) -> Vec<(usize, usize)> {
    let mut of_block = vec![None; page.len() / BLOCK_SIZE];
    for n in records {
        let bytes = value::value(BUILT + n as u64, VALUE);
        let at = page.windows(VALUE).position(|window| window == bytes);
        if let Some(at) = at
            && at / SEGMENT == (at + VALUE - 1) / SEGMENT
        {
            of_block[at / BLOCK_SIZE] = Some((n, at));
        }
    }
    of_block.into_iter().flatten().collect()
}

/// The slots that pages were read from.
fn slots(recorder: &Recorder) -> BTreeMap<PageId, u8> {
    let loaded = |entry: Entry| match entry.heard {
        Heard::Engine(Event::Shadow(Shadow::Loaded { page, slot, .. })) => Some((page, slot)),
        _ => None,
    };
    recorder.take().into_iter().filter_map(loaded).collect()
}
