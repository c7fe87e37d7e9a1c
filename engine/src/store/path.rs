//! Stores opened by path: each owns its file and, unless it is read-only, a background thread.

use std::path::Path;

use super::Store;
use super::core::Core;
use super::worker::Worker;
use crate::device::{BlockDevice, DeviceError, FileAccess, FileDevice, FileOptions};
use crate::error::{Error, Result};
use crate::layout::required_blocks;
use crate::options::Options;
use crate::sync::Arc;
use crate::types::SystemClock;

/// Pages that a new file has room for before it grows.
const FIRST_PAGES: u64 = 256;

/// Default limit on the size of a store: 1 TiB.
const LIMIT_BYTES: u64 = 1 << 40;

impl Store {
    /// Opens the store in the file at `path`, or creates one if the file does not exist.
    ///
    /// `set` may change the options before the store is opened. For an existing store they start
    /// from what the file records (page size, page store, log), so none of that need be repeated.
    /// For a new store they start from the defaults, with an [`Options::limit_bytes`] of 1 TiB. The
    /// file grows with the data.
    ///
    /// A thread does the background work until the store is closed or its last handle is dropped.
    ///
    /// ```
    /// use treering_engine::prelude::*;
    ///
    /// # let folder = tempfile::tempdir().expect("a folder");
    /// # let path = folder.path().join("my.store");
    /// let store = Store::open_path(&path, |options| options.cache_bytes = 8 << 20)?;
    /// store.put(b"key", b"value")?;
    /// assert_eq!(store.get_owned(b"key")?.as_deref(), Some(&b"value"[..]));
    /// store.close()?;
    /// # Ok::<(), treering_engine::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Store::open`]. [`Error::Device`] if the file cannot be opened or created, or if another
    /// process has it open.
    pub fn open_path(path: impl AsRef<Path>, set: impl FnOnce(&mut Options)) -> Result<Store> {
        let path = path.as_ref();
        let (device, options) = match path.exists() {
            true => existing(path, set)?,
            false => new(path, set)?,
        };
        let core = Core::open(device, Arc::new(SystemClock::new()), &options, None)?;
        let core = Arc::new(core);
        let worker = match options.read_only {
            true => None,
            false => Some(start(path, Arc::clone(&core))?),
        };
        Ok(Store {
            worker: worker.map(std::sync::Arc::new),
            core,
        })
    }
}

fn existing(
    path: &Path,
    set: impl FnOnce(&mut Options),
) -> Result<(Arc<dyn BlockDevice>, Options)> {
    // Read the options without claiming the file for writing: others may be reading it, too.
    let read_only = FileOptions {
        access: FileAccess::ReadOnly,
        ..FileOptions::default()
    };
    let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open_with(path, &read_only)?);
    let mut options = match Options::of_store(&device) {
        Ok(stored) => Options {
            cache_bytes: Options::default().cache_bytes,
            ..stored
        },
        // The file was created, but the process died before a store was in it.
        Err(Error::NotAStore { .. }) => new_options(),
        Err(e) => return Err(e),
    };
    set(&mut options);
    if options.read_only {
        return Ok((device, options));
    }
    drop(device);
    Ok((Arc::new(FileDevice::open(path)?), options))
}

fn new(path: &Path, set: impl FnOnce(&mut Options)) -> Result<(Arc<dyn BlockDevice>, Options)> {
    let mut options = new_options();
    set(&mut options);
    options.check()?;
    let blocks = required_blocks(&options, FIRST_PAGES);
    Ok((Arc::new(FileDevice::create(path, blocks)?), options))
}

fn new_options() -> Options {
    Options {
        limit_bytes: Some(LIMIT_BYTES),
        create: true,
        ..Options::default()
    }
}

fn start(path: &Path, core: Arc<Core>) -> Result<Worker> {
    let started = Worker::start(core);
    started.map_err(|e| {
        Error::Device(DeviceError::Open {
            path: path.to_owned(),
            why: format!("its background thread cannot be started: {e}"),
        })
    })
}
