//! A mounted drive for tests.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;
use treering_drive::face::{MountOptions, Mounted, PageCache, Unmounted};
use treering_drive::files::{FilesMount, mount};
use treering_drive::recording::{Event, InMemory};

/// A drive that is mounted in a temporary directory, and its recording.
pub(crate) struct Drive {
    mount: Option<FilesMount>,
    pub(crate) recording: Arc<InMemory>,
    dir: TempDir,
}

/// Whether this machine has FUSE. A test that returns without it has tested nothing, and says so.
pub(crate) fn has_fuse() -> bool {
    let has = Path::new("/dev/fuse").exists();
    if !has {
        eprintln!("SKIPPED: this machine has no /dev/fuse, so NOTHING WAS TESTED");
    }
    has
}

pub(crate) fn options(dir: &Path, page_cache: PageCache, blocks: u64) -> MountOptions {
    let dir = dir.to_path_buf();
    MountOptions {
        dir,
        capacity_blocks: blocks,
        keep: None,
        page_cache,
        threads: 2,
        faults: Arc::default(),
    }
}

impl Drive {
    /// `None` if the machine has no FUSE.
    pub(crate) fn new(page_cache: PageCache, blocks: u64) -> Option<Drive> {
        Drive::with(page_cache, blocks, None)
    }

    /// A drive that is kept in a directory.
    pub(crate) fn with(page_cache: PageCache, blocks: u64, keep: Option<&Path>) -> Option<Drive> {
        if !has_fuse() {
            return None;
        }
        let dir = tempfile::tempdir().expect("a temporary directory");
        let recording = Arc::new(InMemory::default());
        let mut options = options(dir.path(), page_cache, blocks);
        options.keep = keep.map(Path::to_path_buf);
        let mount = mount(&options, recording.clone()).expect("a mount");
        Some(Drive {
            mount: Some(mount),
            recording,
            dir,
        })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn mount(&self) -> &FilesMount {
        self.mount.as_ref().expect("mounted")
    }

    pub(crate) fn unmount(&mut self) -> Unmounted {
        let mount = self.mount.take().expect("mounted");
        Box::new(mount).unmount().expect("an unmount")
    }

    /// The events since the last call.
    pub(crate) fn events(&self) -> Vec<Event> {
        self.recording
            .take()
            .into_iter()
            .map(|(event, _)| event)
            .collect()
    }
}
