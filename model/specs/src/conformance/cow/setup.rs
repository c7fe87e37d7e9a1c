//! A copy-on-write store whose tree has been built: leaves of which the episode writes one record
//! each.

use std::sync::Arc;

use treering_engine::device::{CrashDevice, Image};
use treering_engine::{
    BLOCK_SIZE, Durability, Kv, Lba, LogPacking, Lsn, MIN_CACHE_PAGES, Options, PageId,
    PageStoreKind, Result, Store, TablePersist, required_blocks, survey,
};

use super::found::{self, Found, FoundSuper, Places};
use crate::conformance::at_rest::{AtRest, contents, open};
use crate::conformance::paged::PagedStore;
use crate::conformance::record::Recorder;
use crate::mirror::wide::copy_on_write::CopyOnWrite;
use treering_oracle::random::Random;
use treering_oracle::value;

/// When the store writes its page table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Variant {
    /// For each page.
    Each,
    /// At checkpoints.
    Checkpoints,
}

impl Variant {
    /// All variants.
    pub const ALL: [Variant; 2] = [Variant::Each, Variant::Checkpoints];
}

const VALUE: usize = 60;
/// Records of the store, which make a few more leaves than the episodes write.
const RECORDS: usize = 1640;
/// Versions from this one on existed before the episode.
pub(super) const BUILT: u64 = 1 << 32;

/// A page of the episode.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// The page's id.
    pub id: PageId,
    /// The LSN of its only image.
    pub lsn: Lsn,
    /// The engine's slot that has it.
    pub slot: u64,
    /// The number of the record that is written.
    pub record: usize,
}

/// A store on a device, at rest, and how it corresponds to the spec.
#[derive(Clone, Debug)]
pub struct Setup {
    variant: Variant,
    rest: AtRest,
    /// The pages that are written.
    pub pages: Vec<Page>,
    /// The newest superblock.
    pub newest: FoundSuper,
    places: Places,
}

fn key(n: usize) -> Vec<u8> {
    format!("k{n:05}").into_bytes()
}

fn options(variant: Variant) -> Options {
    let page_size = BLOCK_SIZE;
    let log_bytes = 64 * page_size as u64;
    Options {
        store: PageStoreKind::CopyOnWrite {
            table: match variant {
                Variant::Each => TablePersist::EachFlush,
                Variant::Checkpoints => TablePersist::Checkpoint,
            },
        },
        mod_log: None,
        log_packing: LogPacking::Packed,
        page_size,
        cache_bytes: MIN_CACHE_PAGES * page_size as u64,
        durability: Durability::Deferred,
        log_bytes,
        checkpoint_log_bytes: log_bytes / 4,
        log_buffer_bytes: log_bytes / 8,
        write_batch_pages: 1,
        ..Options::default()
    }
}

impl Setup {
    /// Builds the tree, closes the store, and reads where everything lies.
    ///
    /// # Errors
    /// The engine's own. None is expected.
    pub fn new(variant: Variant) -> Result<Setup> {
        let options = options(variant);
        // One block less than is asked for leaves one table block instead of two, and the fewest
        // slots that a store may have.
        let blocks = required_blocks(&options, 1) - 1;
        let device = Arc::new(CrashDevice::new(blocks));
        build(&device, &options)?;
        let store = open(&device, &options, None)?;
        let leaves = store.leaf_fill()?;
        store.close()?;
        let disk = Image::from(contents(&device)?);
        let survey = survey(device.clone())?;
        // The superblocks and the log come before the table.
        let table = Lba(survey.log_start.0 + survey.log.len() as u64);
        let (first, lba) = (leaves[0].page, survey.pages[&leaves[0].page].1);
        let slot_of = |page| found::table(&disk, table, std::iter::once(page))[0] - 1;
        let slots = Lba(lba.0 - slot_of(first));
        let mut record = 0;
        let mut pages = Vec::new();
        for leaf in leaves {
            if leaf.records > 0 && pages.len() < CopyOnWrite::MOST_PAGES {
                pages.push(Page {
                    id: leaf.page,
                    lsn: survey.pages[&leaf.page].0,
                    slot: slot_of(leaf.page),
                    record,
                });
            }
            record += leaf.records as usize;
        }
        let newest = found::supers(&disk).into_iter().flatten();
        Ok(Setup {
            variant,
            newest: newest
                .max_by_key(|found| found.number)
                .expect("a closed store has superblocks"),
            places: Places {
                table,
                slots,
                count: CopyOnWrite::MOST_SLOTS,
            },
            rest: AtRest { options, disk },
            pages,
        })
    }

    /// Whether the table is written for each page.
    #[must_use]
    pub fn writes_each(&self) -> bool {
        self.variant == Variant::Each
    }

    /// The version that a page's key had before the episode.
    #[must_use]
    pub(crate) fn first_version(&self, page: usize) -> u64 {
        BUILT + self.pages[page].record as u64
    }
}

impl PagedStore for Setup {
    type Found = Found;

    // The store at rest is one whose process has ended.
    const FROM_REST: bool = true;

    fn recorder() -> Recorder {
        Recorder::of_cow()
    }

    fn device(&self) -> Arc<CrashDevice> {
        self.rest.device()
    }

    fn open(&self, device: &Arc<CrashDevice>, recorder: &Arc<Recorder>) -> Result<Store> {
        self.rest.open(device, recorder)
    }

    fn look(&self, device: &CrashDevice) -> Result<Found> {
        let image = Image::from(contents(device)?);
        let log = self.rest.log_of(image.clone());
        Ok(self.places.read(&image, &self.pages, log))
    }

    fn pages(&self) -> Vec<PageId> {
        self.pages.iter().map(|page| page.id).collect()
    }

    fn key_on(&self, page: usize, _rng: &mut Random) -> u8 {
        page as u8
    }

    fn keys(&self) -> Vec<u8> {
        (0..self.pages.len() as u8).collect()
    }

    fn key(&self, page: u8) -> Vec<u8> {
        key(self.pages[usize::from(page)].record)
    }

    fn fill(&self, bytes: &mut Vec<u8>, version: u64) {
        value::fill(bytes, version, VALUE);
    }
}

/// Fills the leaves.
fn build(device: &Arc<CrashDevice>, options: &Options) -> Result<()> {
    let store = open(device, options, None)?;
    // Records inserted in order leave leaves half full. Those inserted in between fill them.
    let even = (0..RECORDS).filter(|n| n % 2 == 0);
    let odd = (0..RECORDS).filter(|n| n % 2 == 1);
    let mut bytes = Vec::new();
    for n in even.chain(odd) {
        value::fill(&mut bytes, BUILT + n as u64, VALUE);
        store.put(&key(n), &bytes)?;
        store.pump_due()?;
    }
    store.checkpoint()?;
    store.close()
}
