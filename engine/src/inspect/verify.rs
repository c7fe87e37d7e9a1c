//! `verify` checks the integrity of a store.
//!
//! The store is recovered on an [`OverlayDevice`], so that its file is not changed, and then
//! walked: every leaf in the index is read, its checksum and all of its slots are checked, and its
//! fences must join those of its neighbours without gap or overlap. Long values are read and
//! compared with their checksums. Damage is listed in the report, and the walk goes on.
//!
//! A store that cannot be recovered has no index to walk. [`verify_blocks`] instead examines its
//! blocks one by one, as [`salvage`] does: pages, log blocks, what proves them current, and the key
//! ranges for which nothing current is whole.

use crate::cache::Fix;
use crate::device::{BlockDevice, FileAccess, FileDevice, FileOptions, OverlayDevice, Volume};
use crate::error::{Error, Result};
use crate::inspect::repair::{KeyRange, SalvageHints, salvage};
use crate::layout::Superblock;
use crate::node;
use crate::options::MIN_CACHE_PAGES;
use crate::options::{ModLog, Options};
use crate::overflow::Pointer;
use crate::store::Store;
use crate::sync::Arc;
use crate::types::{BLOCK_SIZE, IoClass, Lba, PageId, SystemClock};

/// The results of [`verify`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// Leaf pages in the index.
    pub leaves: u64,
    /// Records in the readable leaves.
    pub records: u64,
    /// Bytes of keys and values in them, including long values.
    pub user_bytes: u64,
    /// Values on overflow blocks.
    pub long_values: u64,
    /// Page size in bytes.
    pub page_size: usize,
    /// Log records that recovery had to read. 0 after a clean close.
    pub log_records: u64,
    /// Torn pages that recovery would restore from the journal.
    pub pages_repaired: u64,
    /// Whether the store could be recovered and its leaves were walked.
    pub walked: bool,
    /// Whole page images found by [`verify_blocks`], including old ones. In that case there are no
    /// leaves to count, and `records` are those that can be salvaged.
    pub images: Option<u64>,
    /// One sentence for each damage found. Empty if the store is undamaged.
    pub damage: Vec<String>,
}

/// Checks the store on `device` without changing it.
///
/// ```
/// use std::sync::Arc;
/// use treering_engine::device::MemDevice;
/// use treering_engine::{Kv, Options, Store, SystemClock, required_blocks, verify};
///
/// # fn main() -> treering_engine::Result<()> {
/// let options = Options::default();
/// let device = Arc::new(MemDevice::new(required_blocks(&options, 64)));
/// let store = Store::open(device.clone(), Arc::new(SystemClock::new()), &options)?;
/// store.put(b"key", b"value")?;
/// store.close()?;
///
/// let report = verify(device)?;
/// assert!(report.walked && report.damage.is_empty());
/// assert_eq!((report.records, report.user_bytes), (1, 8));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::NotAStore`] and device failures. Damage is not an error but is listed in the report.
pub fn verify(device: Arc<dyn BlockDevice>) -> Result<VerifyReport> {
    let mut report = VerifyReport::default();
    let options = match Options::of_store(&device) {
        Ok(options) => options,
        Err(e @ Error::Damaged { .. }) => {
            report.damage.push(e.to_string());
            return Ok(report);
        }
        Err(e) => return Err(e),
    };
    report.page_size = options.page_size;
    note_bad_superblocks(&*device, &mut report)?;
    let overlay: Arc<dyn BlockDevice> = Arc::new(OverlayDevice::new(device));
    let store = match Store::open(overlay, Arc::new(SystemClock::new()), &options) {
        Ok(store) => store,
        Err(e @ (Error::Damaged { .. } | Error::MissingPage { .. })) => {
            report.damage.push(e.to_string());
            return Ok(report);
        }
        Err(e) => return Err(e),
    };
    report.log_records = store.recovery().records_read;
    report.pages_repaired = store.recovery().pages_repaired;
    walk(&store, &mut report)?;
    report.walked = true;
    Ok(report)
}

/// Examines each block of a store that could not be walked, and adds the findings to `report`.
/// Reads the whole device.
///
/// # Errors
/// Only errors of the device itself.
pub fn verify_blocks(device: Arc<dyn BlockDevice>, report: &mut VerifyReport) -> Result<()> {
    let hints = SalvageHints::default();
    let found = salvage(device, hints, &mut |_| {}, &mut |_, _| Ok(()))?;
    report.images = Some(found.images);
    report.log_records = found.log_records;
    report.records = found.records;
    report.user_bytes = found.user_bytes;
    let told = report.damage.clone();
    let new = found.damage.into_iter().filter(|d| !told.contains(d));
    report.damage.extend(new);
    let kinds = [
        ("the current contents are lost", found.missing),
        ("the contents found may be out of date", found.doubtful),
    ];
    for (what, ranges) in kinds {
        for range in &ranges {
            report.damage.push(format!("{}: {what}", Keys(range)));
        }
    }
    Ok(())
}

/// Reports a damaged superblock. A crash may tear one of the two, which is worth reporting only if
/// it was whole once.
fn note_bad_superblocks(device: &dyn BlockDevice, report: &mut VerifyReport) -> Result<()> {
    let mut block = crate::device::AlignedBuf::zeroed(BLOCK_SIZE);
    for lba in [Lba(0), Lba(1)] {
        device.read(lba, &mut block, IoClass::Extra)?;
        // Until the second checkpoint, one of them has never been written.
        if block.iter().any(|&b| b != 0)
            && let Err(e) = Superblock::decode(&block, lba, device.capacity_blocks())
        {
            report.damage.push(e.to_string());
        }
    }
    Ok(())
}

fn walk(store: &Store, report: &mut VerifyReport) -> Result<()> {
    let mut leaves: Vec<(Vec<u8>, PageId)> = Vec::new();
    store
        .core()
        .for_each_leaf(|fence, page| leaves.push((fence.to_vec(), page)));
    report.leaves = leaves.len() as u64;
    for (i, (fence, page)) in leaves.iter().enumerate() {
        let leaf = match store.core().read_leaf(*page) {
            Ok(Fix::Got(leaf)) => leaf,
            Ok(Fix::Gone) => {
                report
                    .damage
                    .push(Error::MissingPage { page: *page }.to_string());
                continue;
            }
            Err(e @ (Error::Damaged { .. } | Error::MissingPage { .. })) => {
                report.damage.push(e.to_string());
                continue;
            }
            Err(e) => return Err(e),
        };
        let view = leaf.view();
        if let Err(damage) = node::check_structure(view.bytes()) {
            report.damage.push(format!("{page} is damaged: {damage}"));
            continue;
        }
        let next = leaves.get(i + 1).map(|(fence, _)| fence.as_slice());
        if view.lower_fence() != fence.as_slice() || view.upper_fence() != next {
            report.damage.push(format!(
                "{page} is damaged: expected fences that join its neighbours', found a gap \
                 or an overlap"
            ));
        }
        report.records += view.count() as u64;
        let prefix = view.prefix().len();
        for (suffix, value) in view.iter() {
            let len = match Pointer::of(value) {
                Some(pointer) => {
                    let key = [view.prefix(), &suffix].concat();
                    check_long(store, &key, &pointer, report)?;
                    pointer.len as usize
                }
                None => value.len(),
            };
            report.user_bytes += (prefix + suffix.len() + len) as u64;
        }
    }
    Ok(())
}

/// Reads a long value, and reports it if it is damaged.
fn check_long(
    store: &Store,
    key: &[u8],
    pointer: &Pointer,
    report: &mut VerifyReport,
) -> Result<()> {
    report.long_values += 1;
    let pager = &*store.core().tree.leaves().pager;
    match pager.read_value(key, pointer, &mut Vec::new()) {
        Err(e @ Error::Damaged { .. }) => report.damage.push(format!("key {}: {e}", Hex(key))),
        read => read?,
    }
    Ok(())
}

/// Displays a key in hexadecimal digits.
struct Hex<'a>(&'a [u8]);

impl std::fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Displays a range of keys in words.
struct Keys<'a>(&'a KeyRange);

impl std::fmt::Display for Keys<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0.from.is_empty() {
            true => write!(f, "keys from the first")?,
            false => write!(f, "keys from {}", Hex(&self.0.from))?,
        }
        match &self.0.to {
            None => write!(f, " to the last"),
            Some(to) => write!(f, " to before {}", Hex(to)),
        }
    }
}

impl Options {
    /// Returns the options that an existing store was created with, and defaults for everything
    /// that the store does not record.
    ///
    /// # Errors
    /// [`Error::NotAStore`] for a blank device or other data, [`Error::Damaged`], and device
    /// failures.
    pub fn of_store(device: &Arc<dyn BlockDevice>) -> Result<Options> {
        let volume = Volume::new(Arc::clone(device));
        let superblock = Superblock::load(&volume)?.ok_or(Error::NotAStore { lba: Lba(0) })?;
        let log_bytes = superblock.layout.log_blocks * BLOCK_SIZE as u64;
        let defaults = Options::default();
        let page_bytes = superblock.layout.page_size as u64;
        let least = MIN_CACHE_PAGES * page_bytes;
        Ok(Options {
            page_size: superblock.layout.page_size,
            store: superblock.layout.store,
            mod_log: superblock.layout.mod_log.then(ModLog::default),
            log_bytes,
            // No more frames than there can be pages, so that examining a small store takes little
            // memory.
            cache_bytes: (superblock.layout.slots * page_bytes)
                .clamp(least, defaults.cache_bytes.max(least)),
            checkpoint_log_bytes: log_bytes / 2,
            log_buffer_bytes: defaults.log_buffer_bytes.min(log_bytes / 4),
            create: false,
            ..defaults
        })
    }
}

/// As [`verify`], for the store in the file at `path`, which is opened read-only.
///
/// # Errors
/// As [`verify`]; [`Error::Device`] if the file cannot be opened.
pub fn verify_path(path: impl AsRef<std::path::Path>) -> Result<VerifyReport> {
    let choices = FileOptions {
        access: FileAccess::ReadOnly,
        ..FileOptions::default()
    };
    verify(Arc::new(FileDevice::open_with(path, &choices)?))
}
