//! What the parts of a medium are used for, as its directory says: for tools that look at a store
//! from outside.

use std::ops::Range;

use crate::device::PmDevice;
use crate::error::{Error, Result};
use crate::sync::Arc;
use crate::types::Lba;

use super::layout::{ChunkId, Geometry, Use};
use super::medium::Medium;

/// What lies in a part of a persistent memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PmPlace {
    /// The store's geometry and the log's floor.
    Superblock,
    /// What each chunk is used for.
    Directory,
    /// Leaves.
    Leaves,
    /// Entries of a log.
    Log,
    /// Keys and values that are too long for leaves.
    Records,
    /// Nothing.
    Blank,
}

/// The parts of a store's medium from its beginning to the end of its last chunk, each a range of
/// bytes. Reads the superblock and the directory.
///
/// # Errors
/// [`Error::NotAStore`] if the medium is blank, and those of opening a store whose superblock or directory is damaged.
pub fn pm_places(device: Arc<dyn PmDevice>) -> Result<Vec<(Range<u64>, PmPlace)>> {
    let medium = Medium::new(device);
    let geometry = Geometry::load(&medium)?.ok_or(Error::NotAStore { lba: Lba(0) })?;
    let uses = geometry.load_uses(&medium)?;
    let chunks = (0..).map(ChunkId).zip(uses).map(|(chunk, used)| {
        let start = geometry.offset(chunk);
        let place = match used {
            Use::Blank => PmPlace::Blank,
            Use::Leaves => PmPlace::Leaves,
            Use::Log(_) => PmPlace::Log,
            Use::Records => PmPlace::Records,
        };
        (start..start + geometry.chunk_bytes, place)
    });
    let head = [
        (0..Geometry::DIRECTORY, PmPlace::Superblock),
        (Geometry::DIRECTORY..geometry.start(), PmPlace::Directory),
    ];
    Ok(head.into_iter().chain(chunks).collect())
}
