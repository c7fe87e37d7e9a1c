//! Opens store files as they are, even if they were cut off.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use treering_engine::device::FileDevice;
use treering_engine::{BLOCK_SIZE, is_store_file};

use crate::failure::{self, Failure};

/// Size of the superblocks. A shorter file has no contents.
const SUPERBLOCKS: u64 = 2 * BLOCK_SIZE as u64;

/// A store file opened for inspection, however damaged.
pub(crate) struct StoreFile {
    /// The device, cut to whole blocks.
    pub(crate) device: FileDevice,
    /// What is wrong with its length, if anything.
    pub(crate) cut: Option<String>,
}

/// Opens the file. If its length is not a whole number of blocks, it is a damaged store if it
/// begins as a store does, and not a store otherwise.
pub(crate) fn open(path: &Path) -> Result<StoreFile, Failure> {
    let name = path.display().to_string();
    let refused = match FileDevice::open(path) {
        Ok(device) => return Ok(StoreFile { device, cut: None }),
        Err(refused) => failure::engine(&name, refused.into()),
    };
    let Some((len, cut)) = cut(path) else {
        return Err(refused);
    };
    if len < SUPERBLOCKS {
        return Err(Failure::found(format!("{name}: {cut}")));
    }
    let device = FileDevice::open_cut(path).map_err(|e| failure::engine(&name, e.into()))?;
    Ok(StoreFile {
        device,
        cut: Some(cut),
    })
}

/// The usable length of a store file that was cut off within a block, and a message about it.
fn cut(path: &Path) -> Option<(u64, String)> {
    let block = BLOCK_SIZE as u64;
    let len = path.metadata().ok().filter(|meta| meta.is_file())?.len();
    let mut start = Vec::new();
    let file = File::open(path).ok()?;
    file.take(SUPERBLOCKS).read_to_end(&mut start).ok()?;
    (!len.is_multiple_of(block) && is_store_file(&start)).then(|| {
        let why = format!(
            "the file is cut: expected a whole number of blocks of {block} bytes, found {len} bytes"
        );
        (len, why)
    })
}
