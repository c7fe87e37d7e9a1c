//! Salvage: the records of a store that does not open any more, as far as bytes on its device still
//! say them.
//!
//! ```text
//! scan     every block that is a whole page image, a modification log or a log block
//! log      its records, from the checkpoint on or earlier, over holes
//! place    which image recovery would have taken for a page that the index names
//! resolve  for each key range the newest that is known, record by record, in key order
//! ```
//!
//! # Why fences and LSNs are enough
//!
//! A leaf image with LSN `p` and fences `[a, b)` says what `[a, b)` held when the log stood at `p`:
//! *all* of it, for every change up to `p` is in it. So does the part of a split or a merge that
//! its log record carries. A log record of a put or a delete says what one key holds from its LSN
//! on. So page names do not matter, nor does an index: of each key range the image or part with the
//! greatest LSN wins, and the log's later puts and deletes go over it. A leaf that was split or
//! merged away loses to those that took its range, because they were stamped later.
//!
//! # What may be stale
//!
//! That is the newest *found*, and the newest *written* may be what was damaged. An image with an
//! LSN behind the redo start is right all the same, for the log has everything since. An image from
//! before the checkpoint is right if it is the one that the checkpoint's index means: the snapshot
//! and the log say which leaf has the range, and the page store which place that leaf has. Three
//! verdicts follow:
//!
//! - *current*: proved by one of the two (the log may go back further than the redo start, as long
//!   as nobody has reused its blocks);
//! - *stale*: the place of the leaf that has the range holds no whole image, so what was found is
//!   of another time. Its records are not given, the range is **missing**, but for what the log
//!   says of single keys;
//! - *doubtful*: the proof itself is gone, because the snapshot, the page table or both superblocks
//!   are not whole, or the log has a hole behind the image. Its records are given, the range is
//!   told as **doubtful**: values in it may be old, deleted keys may be back.
//!
//! # Long values
//!
//! A record that points at a long value ([`crate::overflow`]) is worth what the blocks are worth
//! that it points at. They bear the value's name, so blocks that were another's since are not
//! taken for it. A value that is not whole is told as damage, and its key as missing.
//!
//! # What cannot be seen
//!
//! A log whose last blocks are damaged looks like one that a crash tore, unless a later block or a
//! page proves that there was more. A write that the drive lost without a trace is not noticed
//! where nothing names it: of a shadow slot or a modification log that reads as zeros nothing says
//! that there was one, so the image before it is taken for the last.

mod log;
mod place;
mod report;
mod resolve;
mod scan;

pub use report::{KeyRange, SalvageReport, SalvageStep, SalvageVisitor};

use crate::device::{AlignedBuf, BlockDevice, Volume};
use crate::error::Result;
use crate::layout::Superblock;
use crate::options::Options;
use crate::sync::Arc;
use crate::types::{BLOCK_SIZE, IoClass, Lba};

/// What may be known of a damaged store beforehand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SalvageHints {
    /// Page size in bytes, for a store without a whole superblock: images of other sizes are passed
    /// over. `None`: each image says its own.
    pub page_size: Option<usize>,
}

/// What the superblocks say.
struct Known {
    superblock: Option<Superblock>,
    /// The other place holds none, so this may not be the newest.
    alone: bool,
    damage: Vec<String>,
}

/// Reads both superblocks. One that was never written is no damage.
fn superblocks(volume: &Volume) -> Known {
    let mut known = Known {
        superblock: None,
        alone: false,
        damage: Vec::new(),
    };
    let mut sound = 0;
    let mut block = AlignedBuf::zeroed(BLOCK_SIZE);
    for lba in [Lba(0), Lba(1)] {
        let read = volume.read(lba, &mut block, IoClass::Extra);
        let decoded = read.and_then(|()| Superblock::decode(&block, lba, volume.capacity_blocks()));
        match decoded {
            Ok(found) => {
                sound += 1;
                let newer = |old: &Superblock| old.sequence < found.sequence;
                if known.superblock.as_ref().is_none_or(newer) {
                    known.superblock = Some(found);
                }
            }
            Err(_) if block.iter().all(|b| *b == 0) => {}
            Err(e) => known.damage.push(e.to_string()),
        }
    }
    known.alone = sound == 1;
    if let Some(found) = known.superblock.filter(|s| s.sequence > 1 && sound == 1)
        && known.damage.is_empty()
    {
        let blank = Lba(1 - found.lba().0);
        known.damage.push(format!(
            "superblock at {blank} is damaged: expected the one before or after number {}, found zeros",
            found.sequence
        ));
    }
    known
}

/// Gives `visit` every record of the store on `device` that is still there, in the order of keys,
/// each key once, and says what is missing. The device is only read. `progress` is told now and
/// then how far it is.
///
/// Needs no part of the store to be whole. Memory: some hundred bytes for each page image, and the
/// log.
///
/// # Errors
/// What `visit` returns, which ends it. Damage and blocks that cannot be read are no errors but in
/// the report.
pub fn salvage(
    device: Arc<dyn BlockDevice>,
    hints: SalvageHints,
    progress: &mut dyn FnMut(SalvageStep),
    visit: &mut SalvageVisitor<'_>,
) -> Result<SalvageReport> {
    let volume = Volume::new(device);
    let Known {
        superblock,
        alone,
        damage,
    } = superblocks(&volume);
    let layout = superblock.map(|s| s.layout);
    let page_size = layout.map(|l| l.page_size).or(hints.page_size);
    let found = scan::scan(&volume, layout.as_ref(), page_size, progress);
    let log = log::read(&volume, &found, superblock.as_ref(), alone);
    let places = place::Places::read(&volume, &found, superblock.as_ref(), &log);
    let mut report = SalvageReport {
        images: found.images.len() as u64,
        log_records: log.records,
        damage,
        ..SalvageReport::default()
    };
    report.damage.extend(found.damage.iter().cloned());
    report.damage.extend(log.damage.iter().cloned());
    report.damage.extend(places.damage.iter().cloned());
    resolve::resolve(&volume, &found, &log, &places, &mut report, progress, visit)?;
    Ok(report)
}

/// Options with which a new store can be made that takes what was salvaged: those of the damaged
/// store as far as its superblocks or its pages say them, else the defaults.
///
/// # Errors
/// None but the device's own; what cannot be read is not known.
pub fn salvage_options(device: &Arc<dyn BlockDevice>, hints: SalvageHints) -> Result<Options> {
    if let Ok(options) = Options::of_store(device) {
        return Ok(Options {
            create: true,
            ..options
        });
    }
    let volume = Volume::new(Arc::clone(device));
    let found = scan::scan(&volume, None, hints.page_size, &mut |_| {});
    let page_size = found.images.iter().map(|image| image.page_size).max();
    let defaults = Options::default();
    Ok(Options {
        page_size: hints.page_size.or(page_size).unwrap_or(defaults.page_size),
        ..defaults
    })
}
