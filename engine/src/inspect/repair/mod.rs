//! Salvage: recovers the records of a store that no longer opens, as far as they are still readable
//! on its device.
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
//! A leaf image with LSN `p` and fences `[a, b)` holds *all* that `[a, b)` contained when the log
//! stood at `p`, because every change up to `p` is in it. The same is true of the records that a
//! log record of a split or a merge carries. A log record of a put or a delete says what one key
//! holds from its LSN on. So salvage needs neither page names nor an index: in each key range, the
//! image or part with the greatest LSN wins, and later puts and deletes from the log are applied on
//! top of it. A leaf that was split or merged away loses to the leaves that took over its range,
//! because those have greater LSNs.
//!
//! # What may be stale
//!
//! The winner is the newest image *found*; the newest one *written* may be the one that was
//! damaged. An image with an LSN behind the redo start is correct all the same, because the log has
//! every change since. An image from before the checkpoint is correct if it is the one that the
//! checkpoint's index refers to: the snapshot and the log say which leaf has the range, and the
//! page store says where that leaf lies. This leads to three verdicts:
//!
//! - *current*: one of these two proves the image. (The log may reach back further than the redo
//!   start, as long as its old blocks have not been reused.)
//! - *stale*: the place of the leaf that has the range holds no whole image, so the image that was
//!   found is an older one. Its records are not returned. The range is reported as **missing**,
//!   except for single keys in the log.
//! - *doubtful*: the proof itself is lost, because the snapshot, the page table or both superblocks
//!   are damaged, or the log has a hole behind the image. Its records are returned, and the range
//!   is reported as **doubtful**: values may be old, and deleted keys may reappear.
//!
//! # Long values
//!
//! A record that points at a long value ([`crate::overflow`]) is as good as the blocks that it
//! points at. Each block carries the value's name, so blocks that were reused for another value are
//! recognized. A value that is not whole is reported as damage, and its key as missing.
//!
//! # What salvage cannot detect
//!
//! A log whose last blocks are damaged looks like a log that a crash cut short, unless a later
//! block or a page proves that it went on. A write that the drive lost without a trace goes
//! unnoticed if nothing refers to it. For example, nothing says that a shadow slot or a
//! modification log that reads as zeros was ever written, so the previous image is taken for the
//! newest.

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

/// What the caller may know about a damaged store in advance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SalvageHints {
    /// Page size in bytes, for a store without an intact superblock: images of other sizes are
    /// ignored. With `None`, each image states its own size.
    pub page_size: Option<usize>,
}

/// The contents of the superblocks.
struct Known {
    superblock: Option<Superblock>,
    /// Whether the other superblock is unreadable, so that this one may not be the newest.
    alone: bool,
    damage: Vec<String>,
}

/// Reads both superblocks. A superblock that was never written does not count as damage.
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
            "superblock at {blank} is damaged: expected the number before or after {}, found zeros",
            found.sequence
        ));
    }
    known
}

/// Calls `visit` with every record of the store on `device` that can still be read, in key order,
/// each key once, and reports what is missing. The device is only read. `progress` is called now
/// and then.
///
/// No part of the store needs to be intact. Memory: a few hundred bytes per page image, and the
/// log.
///
/// ```
/// use std::sync::Arc;
/// use treering_engine::device::{BlockDevice, MemDevice};
/// use treering_engine::{
///     BLOCK_SIZE, IoClass, Kv, Lba, Options, SalvageHints, Store, SystemClock, required_blocks,
///     salvage,
/// };
///
/// # fn main() -> treering_engine::Result<()> {
/// let options = Options::default();
/// let device = Arc::new(MemDevice::new(required_blocks(&options, 64)));
/// let store = Store::open(device.clone(), Arc::new(SystemClock::new()), &options)?;
/// store.put(b"key", b"value")?;
/// store.close()?;
///
/// // Both superblocks are lost, so the store does not open any more.
/// for lba in [Lba(0), Lba(1)] {
///     device.write(lba, &[0; BLOCK_SIZE], IoClass::Extra)?;
/// }
/// let mut rows = Vec::new();
/// let report = salvage(device, SalvageHints::default(), &mut |_progress| {}, &mut |key, value| {
///     rows.push((key.to_vec(), value.to_vec()));
///     Ok(())
/// })?;
/// assert_eq!(rows, [(b"key".to_vec(), b"value".to_vec())]);
/// assert_eq!(report.records, 1);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// The error of `visit`, which ends the salvage. Damage and unreadable blocks are not errors but
/// are listed in the report.
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

/// Returns options for a new store that can hold what is salvaged: those of the damaged store as
/// far as its superblocks or its pages state them, else the defaults.
///
/// # Errors
/// Only errors of the device itself; settings that cannot be read keep their defaults.
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
