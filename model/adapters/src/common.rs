//! What all adapters need: the requested disk, errors in the engine's own words, and write numbers.

use std::fmt::Display;
use std::ops::{Bound, ControlFlow};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use treering_engine::device::BlockDevice;
use treering_engine::{Error, Lsn, Visitor};
use treering_oracle::Disk;

/// The longest key for engines that accept far longer ones: a quarter of a page, so that an inner
/// node holds few keys.
pub(crate) const LONG_KEY: usize = 1024;

/// The largest record for engines that accept far larger ones. It spans four pages, so that
/// overflow pages and blobs are used.
pub(crate) const LARGE_RECORD: usize = 16 << 10;

/// A failure in the engine's own words.
pub(crate) fn foreign(engine: &'static str, why: impl Display) -> Error {
    Error::Foreign {
        engine,
        why: why.to_string(),
    }
}

/// The folder that an engine requires.
pub(crate) fn folder<'d>(engine: &'static str, disk: &'d Disk) -> Result<&'d Path, Error> {
    match disk {
        Disk::Folder(path) => Ok(path),
        Disk::Blocks(_) => Err(foreign(engine, "wants a folder, got a device of blocks")),
        Disk::Pm(_) => Err(foreign(engine, "wants a folder, got persistent memory")),
    }
}

/// The device that an engine requires.
pub(crate) fn device(engine: &'static str, disk: &Disk) -> Result<Arc<dyn BlockDevice>, Error> {
    match disk {
        Disk::Blocks(device) => Ok(device.clone()),
        Disk::Pm(_) => Err(foreign(
            engine,
            "wants a device of blocks, got persistent memory",
        )),
        Disk::Folder(_) => Err(foreign(engine, "wants a device of blocks, got a folder")),
    }
}

/// The start of a downward scan.
pub(crate) fn below(before: Option<&[u8]>) -> Bound<&[u8]> {
    before.map_or(Bound::Unbounded, Bound::Excluded)
}

/// Visits records until `visit` breaks off.
pub(crate) fn visit_all<K: AsRef<[u8]>, V: AsRef<[u8]>>(
    records: impl Iterator<Item = Result<(K, V), Error>>,
    visit: &mut Visitor<'_>,
) -> Result<(), Error> {
    for record in records {
        let (key, value) = record?;
        if visit(key.as_ref(), value.as_ref()) == ControlFlow::Break(()) {
            break;
        }
    }
    Ok(())
}

/// Numbers the writes of an engine that has no LSNs. A number is drawn after the write has
/// returned. So if all finished writes become durable, those up to any number drawn so far do.
#[derive(Default)]
pub(crate) struct Writes(AtomicU64);

impl Writes {
    pub(crate) fn next(&self) -> Lsn {
        Lsn(self.0.fetch_add(1, Ordering::Relaxed) + 1)
    }
}
