//! Making a file for a store such that it is there whole or not at all.
//!
//! ```text
//! NAME.new   made, locked, made as long as it is to be, flushed
//! NAME       a second name of the same file, refused if there is one; the folder flushed
//! ```
//!
//! Whoever dies on the way leaves `NAME.new`, which the next creation takes over. One who dies
//! behind it leaves a blank file of full length, which [`crate::Store::open`] formats.

use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::FallocateFlags;

use super::FileSpace;

/// The name of a file that is being made.
pub(super) fn unfinished(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    PathBuf::from(name)
}

/// Gives the locked, empty file its length.
pub(super) fn size(file: &File, len: u64, space: FileSpace) -> std::io::Result<()> {
    // What an earlier creation left may have had another length.
    file.set_len(0)?;
    file.set_len(len)?;
    if space == FileSpace::Reserved {
        rustix::fs::fallocate(file, FallocateFlags::empty(), 0, len)?;
    }
    file.sync_all()
}

/// Gives the file that is `unfinished` the name `path`, unless there is one of that name.
pub(super) fn publish(unfinished: &Path, path: &Path) -> std::io::Result<()> {
    match std::fs::hard_link(unfinished, path) {
        Ok(()) => std::fs::remove_file(unfinished)?,
        Err(e) if e.kind() == ErrorKind::AlreadyExists => return Err(e),
        // A file system without second names.
        Err(_) if path.exists() => return Err(Error::from(ErrorKind::AlreadyExists)),
        Err(_) => std::fs::rename(unfinished, path)?,
    }
    sync_folder(path)
}

/// Makes the file's name durable.
fn sync_folder(path: &Path) -> std::io::Result<()> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Whether `path` still names this file.
pub(super) fn names(path: &Path, file: &File) -> bool {
    let (Ok(there), Ok(here)) = (std::fs::metadata(path), file.metadata()) else {
        return false;
    };
    (there.dev(), there.ino()) == (here.dev(), here.ino())
}

/// How the file that is being made is opened: there or not.
pub(super) fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    options
}
