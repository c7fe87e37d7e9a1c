//! Where a real file system has what on a disk, from its own structures.
//!
//! | file system | [`regions`], read from the image | [`Sniffer`], told by blocks as they are written |
//! |---|---|---|
//! | ext4 | superblocks, bitmaps, inode tables, journal, directories, extent trees, attributes | nothing: ext4's blocks do not describe themselves |
//! | XFS | group headers, journal, btrees of the groups, inodes | all metadata but group headers and journal |
//! | Btrfs | superblocks, chunks of metadata | nodes by tree; `journal` is the log tree |
//!
//! [`Owners`] puts what was recorded of them, and the maps of files, together again: whose was a
//! block at a moment of the recording.
//!
//! An image may be damaged, or may change while it is read. Every walk has a budget and every place
//! is checked, so the worst is an error.

mod btrfs;
mod bytes;
mod ext4;
mod found;
mod owners;
mod xfs;

pub use found::Regions;
pub use owners::{Owner, Owners};
use rustc_hash::FxHashMap;

use self::bytes::{BLOCK, Blocks, Reader};
pub(crate) use self::bytes::{merge, without};
use crate::error::DriveError;
use crate::face::FileSystem;
use crate::image::Image;
use crate::recording::Extent;

/// Where a file system has what is no file: its journal, its tables.
///
/// While it is mounted, the image is behind: what only the journal knows is not seen.
///
/// # Errors
/// [`DriveError::Bad`] if the image does not hold such a file system, or a damaged one.
pub fn regions(image: &Image, fs: FileSystem) -> Result<Regions, DriveError> {
    let mut reader = Reader::new(image);
    match fs {
        FileSystem::Ext4 => ext4::regions(&mut reader),
        FileSystem::Xfs => xfs::regions(&mut reader),
        FileSystem::Btrfs => btrfs::regions(&mut reader),
        FileSystem::None => Ok(Vec::new()),
    }
}

/// Which file system an image holds; `None` if it is none of those known here.
///
/// # Errors
/// [`DriveError::System`] if the image cannot be read.
pub fn holds(image: &Image) -> Result<Option<FileSystem>, DriveError> {
    let mut head = vec![0; (image.blocks() * BLOCK).min(65_536 + BLOCK) as usize];
    let read = image.read(0, &mut head);
    read.map_err(DriveError::system("the first blocks of the disk"))?;
    let found = if xfs::is(&head) {
        Some(FileSystem::Xfs)
    } else if head.get(65_536..).is_some_and(btrfs::is) {
        Some(FileSystem::Btrfs)
    } else if ext4::is(&head) {
        Some(FileSystem::Ext4)
    } else {
        None
    };
    Ok(found)
}

/// What is in `now` and was not in `before`, name by name.
#[must_use]
pub fn added(now: &Regions, before: &Regions) -> Regions {
    let mut found = Vec::new();
    for (name, extents) in now {
        let known = before.iter().find(|(n, _)| n == name);
        let known = known.map_or(&[][..], |(_, extents)| extents);
        let rest = without(extents, known);
        if !rest.is_empty() {
            found.push((name.clone(), rest));
        }
    }
    found
}

/// Turns the addresses that `FIEMAP` gives into blocks of the disk.
pub struct Addresses(Option<btrfs::Chunks>);

impl Addresses {
    /// Reads what is needed of an image: of Btrfs its chunks, of the others nothing.
    ///
    /// # Errors
    /// As of [`regions`].
    pub fn read(image: &Image, fs: FileSystem) -> Result<Addresses, DriveError> {
        let chunks = match fs {
            FileSystem::Btrfs => Some(btrfs::Chunks::read(&mut Reader::new(image))?),
            _ => None,
        };
        Ok(Addresses(chunks))
    }

    /// Whether the file system may have moved on since these were read.
    #[must_use]
    pub fn are_stale(&self, image: &Image) -> bool {
        let Some(chunks) = &self.0 else {
            return false;
        };
        let mut generation = [0; 8];
        let read = image.read(65_536 + 72, &mut generation);
        read.is_err() || u64::from_le_bytes(generation) != chunks.generation
    }

    /// The blocks of `len` bytes from the address `at` on.
    #[must_use]
    pub fn blocks(&self, at: u64, len: u64) -> Vec<Extent> {
        match &self.0 {
            Some(chunks) => chunks.physical(at, len),
            None => {
                let mut blocks = Blocks::default();
                blocks.add_bytes(at, len);
                blocks.extents()
            }
        }
    }
}

/// Tells metadata by the contents of blocks that are being written, where they describe themselves.
pub struct Sniffer {
    by: By,
    /// Blocks of the disk.
    blocks: u64,
    /// What is known of blocks.
    known: FxHashMap<u64, &'static str>,
}

enum By {
    Nothing,
    Xfs(xfs::Sniff),
    Btrfs(btrfs::Sniff),
}

impl Sniffer {
    /// One for a disk, which may hold its file system already.
    #[must_use]
    pub fn new(image: &Image, fs: FileSystem) -> Sniffer {
        let mut reader = Reader::new(image);
        let by = match fs {
            FileSystem::Xfs => {
                let sb = reader.read("the superblock of XFS", 0, BLOCK);
                let geometry = sb.and_then(|sb| xfs::Geometry::parse(&sb, image.blocks()));
                By::Xfs(xfs::Sniff::new(geometry.ok()))
            }
            FileSystem::Btrfs => {
                let chunks = btrfs::Chunks::read(&mut reader);
                By::Btrfs(btrfs::Sniff::new(chunks.ok().map(|c| c.identity)))
            }
            FileSystem::Ext4 | FileSystem::None => By::Nothing,
        };
        Sniffer {
            by,
            blocks: image.blocks(),
            known: FxHashMap::default(),
        }
    }

    /// What the bytes that are about to be written at the byte `offset` tell anew.
    pub fn look(&mut self, offset: u64, data: &[u8]) -> Vec<(&'static str, Vec<Extent>)> {
        let mut told: Vec<(&'static str, Blocks)> = Vec::new();
        if matches!(self.by, By::Nothing) {
            return Vec::new();
        }
        let skipped = offset.next_multiple_of(BLOCK) - offset;
        let whole = data.get(skipped as usize..).unwrap_or_default();
        let first = offset.div_ceil(BLOCK);
        for (lba, block) in (first..).zip(whole.chunks_exact(BLOCK as usize)) {
            let seen = match &mut self.by {
                By::Nothing => None,
                By::Xfs(by) => by.look(lba, block, self.blocks).map(|name| (name, 1)),
                By::Btrfs(by) => by.look(lba, block),
            };
            let Some((name, blocks)) = seen else {
                continue;
            };
            let end = (lba + blocks).min(self.blocks);
            for lba in (lba..end)
                .filter(|lba| self.known.get(lba) != Some(&name))
                .collect::<Vec<_>>()
            {
                self.known.insert(lba, name);
                match told.iter_mut().find(|(n, _)| *n == name) {
                    Some((_, blocks)) => blocks.add(lba, 1),
                    None => {
                        let mut blocks = Blocks::default();
                        blocks.add(lba, 1);
                        told.push((name, blocks));
                    }
                }
            }
        }
        told.into_iter()
            .map(|(name, blocks)| (name, blocks.extents()))
            .collect()
    }

    /// Forgets what was known of blocks that now are a file's.
    pub fn forget(&mut self, extents: &[Extent]) {
        if self.known.is_empty() {
            return;
        }
        for lba in extents
            .iter()
            .flat_map(|e| e.lba..e.lba.saturating_add(e.blocks))
        {
            self.known.remove(&lba);
        }
    }
}
