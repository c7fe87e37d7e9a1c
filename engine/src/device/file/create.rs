//! Creates the file of a store atomically: it exists under its name with its full length, or not at
//! all.
//!
//! ```text
//! NAME.new   created, locked, extended to its full length, flushed
//! NAME       a second name of the same file, refused if there is one; the folder flushed
//! ```
//!
//! A process that dies on the way leaves `NAME.new`, which the next creation takes over. A process
//! that dies later leaves a blank file of full length, which [`crate::Store::open`] formats.

use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::FallocateFlags;

use super::FileSpace;

/// Returns the name of a file that is being created.
pub(super) fn unfinished(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    PathBuf::from(name)
}

/// Sets the length of the locked, empty file.
pub(super) fn size(file: &File, len: u64, space: FileSpace) -> std::io::Result<()> {
    // The file may be left over from an earlier creation with another length.
    file.set_len(0)?;
    file.set_len(len)?;
    if space == FileSpace::Reserved {
        rustix::fs::fallocate(file, FallocateFlags::empty(), 0, len)?;
    }
    file.sync_all()
}

/// Gives the file at `unfinished` the name `path`, unless that name is taken.
pub(super) fn publish(unfinished: &Path, path: &Path) -> std::io::Result<()> {
    match std::fs::hard_link(unfinished, path) {
        Ok(()) => std::fs::remove_file(unfinished)?,
        Err(e) if e.kind() == ErrorKind::AlreadyExists => return Err(e),
        // The file system does not support hard links.
        Err(_) if path.exists() => return Err(Error::from(ErrorKind::AlreadyExists)),
        Err(_) => std::fs::rename(unfinished, path)?,
    }
    sync_folder(path)
}

/// Makes the file's name durable by flushing its folder.
fn sync_folder(path: &Path) -> std::io::Result<()> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Returns whether `path` still refers to this file.
pub(super) fn names(path: &Path, file: &File) -> bool {
    let (Ok(there), Ok(here)) = (std::fs::metadata(path), file.metadata()) else {
        return false;
    };
    (there.dev(), there.ino()) == (here.dev(), here.ino())
}

/// Returns the options for opening the file being created, whether or not it already exists.
pub(super) fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    options
}
