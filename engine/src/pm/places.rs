//! Describes what each part of a persistent memory is used for, for tools that examine a store from
//! outside.

use std::ops::Range;

use crate::device::PmDevice;
use crate::error::{Error, Result};
use crate::sync::Arc;
use crate::types::Lba;

use super::layout::{ChunkId, Geometry, Use};
use super::medium::Medium;

/// The use of a part of a persistent memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PmPlace {
    /// The store's geometry and the log floor.
    Superblock,
    /// The directory, which holds the use of each chunk.
    Directory,
    /// Leaves.
    Leaves,
    /// Entries of a log.
    Log,
    /// Keys and values that are too long for leaves.
    Records,
    /// Unused.
    Blank,
}

/// Returns the parts of a store's medium, as ranges of bytes, from its beginning to the end of its
/// last chunk. Reads the superblock and the directory.
///
/// ```
/// use std::sync::Arc;
/// use treering_engine::device::{MemPm, PmDevice};
/// use treering_engine::{PmOptions, PmPlace, PmStore, pm_places};
///
/// # fn main() -> treering_engine::Result<()> {
/// let device: Arc<dyn PmDevice> = Arc::new(MemPm::new(16 << 20));
/// drop(PmStore::open(device.clone(), &PmOptions::default())?);
///
/// let places = pm_places(device)?;
/// assert_eq!(places[0].1, PmPlace::Superblock);
/// assert!(places.iter().any(|(_, place)| *place == PmPlace::Leaves));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::NotAStore`] if the medium is blank, and the errors of opening a store whose superblock
/// or directory is damaged.
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
