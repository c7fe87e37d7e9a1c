//! What the tests of disks share.

#![allow(dead_code, reason = "each test file uses another part")]

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use treering_drive::face::{FileSystem, MountOptions, Mounted, PageCache};
use treering_drive::recording::Sink;
use treering_drive::{acks, disk};

/// The real file systems.
pub(crate) const ALL: [FileSystem; 3] = [FileSystem::Ext4, FileSystem::Xfs, FileSystem::Btrfs];

/// Whether disks can be mounted here; if not, says loudly why.
pub(crate) fn can_mount(test: &str) -> bool {
    let missing = if !Path::new("/dev/fuse").exists() {
        "/dev/fuse"
    } else if !rustix::process::geteuid().is_root() {
        "root"
    } else if !Path::new("/dev/loop-control").exists() {
        "/dev/loop-control"
    } else {
        return true;
    };
    eprintln!("SKIPPED {test}: {missing} is missing on this machine");
    false
}

/// Options for a disk of 512 MiB.
pub(crate) fn options(dir: &Path) -> MountOptions {
    let capacity_blocks = 512 << 8;
    let (dir, page_cache) = (dir.to_owned(), PageCache::WriteBack);
    MountOptions {
        dir,
        capacity_blocks,
        keep: None,
        page_cache,
        threads: 1,
        faults: Arc::default(),
    }
}

/// Mounts, uses and unmounts a disk; checks that nothing is left of it.
pub(crate) fn with_disk(
    options: &MountOptions,
    fs: FileSystem,
    sink: Arc<dyn Sink>,
    user: impl Fn(&Path),
) {
    let mounted = disk::mount(options, fs, sink);
    let mounted = mounted.unwrap_or_else(|error| panic!("{fs:?}: {error}"));
    assert!(mounted.is_mounted());
    let device = fs::metadata(&options.dir).expect("mounted").dev();
    user(mounted.dir());
    let unmounted = Box::new(mounted).unmount().expect("unmounted");
    assert_eq!(unmounted.busy, None);
    assert_gone(&options.dir, fs, device);
}

/// Nothing is mounted on the directory, and the loop device that was is free.
pub(crate) fn assert_gone(dir: &Path, fs: FileSystem, device: u64) {
    let deadline = Instant::now() + Duration::from_secs(10);
    let still = || {
        let table = fs::read_to_string("/proc/self/mounts").expect("mounts");
        let dir = dir.display().to_string().replace(" ", "\\040");
        if table
            .lines()
            .any(|line| line.split(' ').nth(1) == Some(&dir))
        {
            return Some(format!("{dir} is still mounted"));
        }
        // The device number of Btrfs is not the loop device's.
        if matches!(fs, FileSystem::Ext4 | FileSystem::Xfs) {
            let minor = rustix::fs::minor(device);
            let backing = format!("/sys/block/loop{minor}/loop/backing_file");
            return Path::new(&backing)
                .exists()
                .then(|| format!("loop{minor} is attached"));
        }
        None
    };
    while let Some(what) = still() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Runs a shell script in a directory and returns what it printed.
pub(crate) fn shell(dir: &Path, script: &str) -> String {
    let output = Command::new("sh")
        .args(["-ec", script])
        .current_dir(dir)
        .output();
    let output = output.expect("sh runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}\n{said}{errors}");
    said
}

/// Whether a program is installed; if not, says loudly that a test is cut short.
pub(crate) fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        eprintln!("SKIPPED what needs {program}: it is not installed");
    }
    found
}

/// A file for acknowledgements, for tests of those alone.
pub(crate) fn acks(sink: Arc<dyn Sink>) -> acks::Acks {
    acks::mount(sink).unwrap_or_else(|error| panic!("{error}"))
}
