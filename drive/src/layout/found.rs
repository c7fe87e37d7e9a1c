//! What was found on a disk, by name.

use super::bytes::{Blocks, Reader, bad, end};
use crate::error::DriveError;
use crate::recording::Extent;

/// Names of what lies somewhere, and where.
pub type Regions = Vec<(String, Vec<Extent>)>;

/// What was found, each within the disk.
pub(super) fn named<const N: usize>(
    reader: &Reader<'_>,
    all: [(&str, Blocks); N],
) -> Result<Regions, DriveError> {
    let mut found = Vec::new();
    for (name, blocks) in all {
        let extents = blocks.extents();
        let beyond = extents.last().map_or(0, end);
        if beyond > reader.blocks() {
            let expected = format!("blocks below {}", reader.blocks());
            return Err(bad(name, expected, beyond));
        }
        if !extents.is_empty() {
            found.push((name.to_owned(), extents));
        }
    }
    Ok(found)
}
