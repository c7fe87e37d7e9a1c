//! Scans every block of the device by itself for page images, modification logs and log blocks.

use std::collections::{BTreeMap, HashMap};

use super::report::SalvageStep;
use crate::device::{AlignedBuf, Volume};
use crate::layout::Layout;
use crate::node::{self, MAX_PAGE_BYTES, PageRef, is_page_size};
use crate::pages::lay_over;
use crate::types::{BLOCK_SIZE, IoClass, Lba, Lsn, PageId, StoreId};
use crate::wal::BlockHeader;

/// Blocks read at once.
const CHUNK: u64 = 256;
/// Blocks of the largest page.
const LARGEST: u64 = (MAX_PAGE_BYTES / BLOCK_SIZE) as u64;

/// A whole page image.
pub(super) struct Image {
    pub(super) lba: Lba,
    /// The modification log applied to it, if this is an image with one.
    pub(super) log_block: Option<Lba>,
    pub(super) page_size: usize,
    pub(super) page: PageId,
    pub(super) lsn: Lsn,
    pub(super) lower: Vec<u8>,
    pub(super) upper: Option<Vec<u8>>,
}

/// A whole block of the log.
#[derive(Clone, Copy)]
pub(super) struct LogBlock {
    pub(super) lba: Lba,
    pub(super) header: BlockHeader,
}

/// Everything found on the device.
#[derive(Default)]
pub(super) struct Found {
    pub(super) store: StoreId,
    pub(super) images: Vec<Image>,
    /// By index. Of several blocks with one index, the one with the greatest epoch.
    pub(super) log: HashMap<u64, LogBlock>,
    pub(super) damage: Vec<String>,
}

/// Returns the page of `store` at the beginning of `bytes`, if its checksum matches and all of its
/// slots are sound.
pub(super) fn whole_page(bytes: &[u8], store: StoreId) -> Option<PageRef<'_>> {
    let page = like_page(bytes)?;
    node::check_for(page.bytes(), page.page_id(), store).ok()?;
    node::check_structure(page.bytes()).ok()?;
    Some(page)
}

/// Returns what looks like a page at the beginning of `bytes`.
fn like_page(bytes: &[u8]) -> Option<PageRef<'_>> {
    let size = 1_usize.checked_shl(u32::from(*bytes.get(27)?))?;
    if &bytes[24..26] != b"TR" || !is_page_size(size) {
        return None;
    }
    bytes.get(..size).map(PageRef::new)
}

/// Returns the store whose id most pages on the device carry, for use when no superblock names it.
fn most_likely_store(volume: &Volume) -> StoreId {
    let mut votes: BTreeMap<StoreId, u64> = BTreeMap::new();
    each_block(volume, &mut |_, bytes| {
        if let Some(page) = like_page(bytes)
            && node::check_structure(page.bytes()).is_ok()
        {
            *votes.entry(node::sealed_for(page.bytes())).or_default() += 1;
        }
    });
    let most = votes.into_iter().max_by_key(|(_, pages)| *pages);
    most.map(|(store, _)| store).unwrap_or_default()
}

impl Image {
    fn of(page: PageRef<'_>, lba: Lba, log_block: Option<Lba>) -> Image {
        Image {
            lba,
            log_block,
            page_size: page.page_size(),
            page: page.page_id(),
            lsn: page.lsn(),
            lower: page.lower_fence().to_vec(),
            upper: page.upper_fence().map(<[u8]>::to_vec),
        }
    }

    /// Reads the image again as it was found, or returns `None` if it cannot be read any more.
    pub(super) fn load(&self, volume: &Volume, store: StoreId) -> Option<AlignedBuf> {
        let mut bytes = AlignedBuf::zeroed(self.page_size);
        volume.read(self.lba, &mut bytes, IoClass::Page).ok()?;
        if let Some(lba) = self.log_block {
            let mut block = AlignedBuf::zeroed(BLOCK_SIZE);
            volume.read(lba, &mut block, IoClass::Page).ok()?;
            lay_over(&block, &mut bytes, store).ok()?;
        }
        let page = whole_page(&bytes, store)?;
        (page.page_id() == self.page && page.lsn() == self.lsn).then_some(bytes)
    }
}

/// Scans all blocks. `layout` identifies the store, and restricts log blocks to the log's region.
pub(super) fn scan(
    volume: &Volume,
    layout: Option<&Layout>,
    page_size: Option<usize>,
    progress: &mut dyn FnMut(SalvageStep),
) -> Found {
    let store = layout.map_or_else(|| most_likely_store(volume), |layout| layout.id);
    let mut found = Found {
        store,
        ..Found::default()
    };
    let mut logs: HashMap<PageId, Vec<Lba>> = HashMap::new();
    let capacity = volume.capacity_blocks();
    let unreadable = each_block(volume, &mut |lba, bytes| {
        look(lba, bytes, layout, page_size, &mut found, &mut logs);
        if (lba.0 + 1).is_multiple_of(CHUNK) || lba.0 + 1 == capacity {
            progress(SalvageStep::Scanned(lba.0 + 1, capacity));
        }
    });
    if unreadable > 0 {
        let what = format!("{unreadable} blocks of the device cannot be read");
        found.damage.push(what);
    }
    lay_all_over(volume, &logs, &mut found);
    found
}

/// Calls `see` with each block, followed by as many blocks as a page may have. Returns how many
/// blocks could not be read.
fn each_block(volume: &Volume, see: &mut dyn FnMut(Lba, &[u8])) -> u64 {
    let capacity = volume.capacity_blocks();
    let mut unreadable = 0;
    let mut buf = AlignedBuf::zeroed((CHUNK + LARGEST - 1) as usize * BLOCK_SIZE);
    let mut at = 0;
    while at < capacity {
        let here = CHUNK.min(capacity - at);
        let with_rest = (here + LARGEST - 1).min(capacity - at);
        let bytes = &mut buf[..with_rest as usize * BLOCK_SIZE];
        unreadable += read(volume, Lba(at), bytes, here);
        for i in 0..here {
            see(Lba(at + i), &bytes[i as usize * BLOCK_SIZE..]);
        }
        at += here;
    }
    unreadable
}

/// Fills `bytes`, with zeros for blocks that cannot be read. Returns how many of the first
/// `counted` blocks could not be read.
fn read(volume: &Volume, lba: Lba, bytes: &mut [u8], counted: u64) -> u64 {
    if volume.read(lba, bytes, IoClass::Page).is_ok() {
        return 0;
    }
    let mut failed = 0;
    for (block, i) in bytes.chunks_exact_mut(BLOCK_SIZE).zip(0..) {
        if volume.read(Lba(lba.0 + i), block, IoClass::Page).is_err() {
            block.fill(0);
            failed += u64::from(i < counted);
        }
    }
    failed
}

/// Classifies the block at the beginning of `bytes`: the start of a page image, a modification log,
/// or a log block.
fn look(
    lba: Lba,
    bytes: &[u8],
    layout: Option<&Layout>,
    page_size: Option<usize>,
    found: &mut Found,
    logs: &mut HashMap<PageId, Vec<Lba>>,
) {
    let block = &bytes[..BLOCK_SIZE];
    if let Some(page) = whole_page(bytes, found.store) {
        if page_size.is_none_or(|size| size == page.page_size()) {
            found.images.push(Image::of(page, lba, None));
        }
    } else if let Some(page) = crate::pages::log_block_of(block, found.store) {
        logs.entry(page).or_default().push(lba);
    } else if let Some(header) =
        BlockHeader::read_any(block, found.store).filter(BlockHeader::has_records)
    {
        let at_home = layout.is_none_or(|l| l.log_start().0 + header.index % l.log_blocks == lba.0);
        let old = found.log.get(&header.index);
        if at_home && old.is_none_or(|old| old.header.epoch < header.epoch) {
            found.log.insert(header.index, LogBlock { lba, header });
        }
    }
}

/// Adds the images that result from applying modification logs to others. A log names its base, so
/// it is matched wherever the two lie.
fn lay_all_over(volume: &Volume, logs: &HashMap<PageId, Vec<Lba>>, found: &mut Found) {
    let mut with = Vec::new();
    let mut block = AlignedBuf::zeroed(BLOCK_SIZE);
    for image in &found.images {
        for &lba in logs.get(&image.page).map_or(&[][..], Vec::as_slice) {
            let Some(mut bytes) = image.load(volume, found.store) else {
                continue;
            };
            if volume.read(lba, &mut block, IoClass::Page).is_ok()
                && lay_over(&block, &mut bytes, found.store) == Ok(true)
                && let Some(page) = whole_page(&bytes, found.store)
            {
                with.push(Image::of(page, image.lba, Some(lba)));
            }
        }
    }
    found.images.extend(with);
}
