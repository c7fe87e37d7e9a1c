//! Unmounting a directory, and who uses it.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags};
use rustix::io::Errno;
use rustix::mount::UnmountFlags;

use crate::busy;

/// A process that has just ended may hold its files a little longer.
const PATIENCE: [u64; 6] = [0, 10, 20, 50, 100, 200];

/// The processes that use the file system of `dir`, and what is mounted below it, in words; `None` if
/// there is nothing that can be seen.
pub(crate) fn users(dir: &Path) -> Option<String> {
    let device = fs::metadata(dir).ok()?.dev();
    let all: Vec<String> = busy::users(device)
        .into_iter()
        .chain(mounted_below(dir))
        .collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// File systems that are mounted within the directory.
fn mounted_below(dir: &Path) -> Vec<String> {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let points = table
        .lines()
        .filter_map(|line| line.split(' ').nth(4))
        .map(Path::new);
    let below = points.filter(|point| *point != dir && point.starts_with(dir));
    below
        .map(|point| format!("a mount on {}", point.display()))
        .collect()
}

/// How an attempt to unmount went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// Nothing is mounted there any more.
    Gone,
    /// It is out of sight, but these still use it.
    Detached(String),
    /// It is still there.
    Failed(Errno),
}

/// Unmounts what is mounted on a directory; if it is busy, it is detached.
pub(crate) fn unmount(dir: &Path) -> Attempt {
    for pause in PATIENCE {
        std::thread::sleep(Duration::from_millis(pause));
        match rustix::mount::unmount(dir, UnmountFlags::NOFOLLOW) {
            // `EINVAL`: somebody else has unmounted it.
            Ok(()) | Err(Errno::INVAL) => return Attempt::Gone,
            Err(Errno::BUSY) => {}
            Err(error) => return Attempt::Failed(error),
        }
    }
    let users = users(dir).unwrap_or_else(|| "something in another mount namespace".into());
    match rustix::mount::unmount(dir, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW) {
        Ok(()) => Attempt::Detached(users),
        Err(error) => Attempt::Failed(error),
    }
}

/// Detaches from a directory what is mounted there from this source. Whatever else is mounted there
/// stays. Returns whether it was there.
///
/// Between a look at a path and its unmounting, somebody else may unmount. So the mount is opened,
/// and unmounted by what was opened.
pub(crate) fn detach(dir: &Path, source: &str) -> bool {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(opened) = rustix::fs::open(dir, flags, Mode::empty()) else {
        return false;
    };
    let link = format!("/proc/self/fd/{}", opened.as_raw_fd());
    source_of(&opened).is_some_and(|found| found == source)
        && rustix::mount::unmount(link.as_str(), UnmountFlags::DETACH).is_ok()
}

/// The source of the mount that an open file is on. Device numbers would not do: Btrfs has its own.
fn source_of(opened: &OwnedFd) -> Option<String> {
    let found = rustix::fs::statx(opened, "", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID).ok()?;
    let number = found.stx_mnt_id.to_string();
    let table = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let mut mounts = table.lines().filter_map(|line| line.split_once(' '));
    let (_, fields) = mounts.find(|(id, _)| *id == number)?;
    // Behind the dash: the type, the source.
    let (_, fields) = fields.split_once(" - ")?;
    fields.split(' ').nth(1).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(dir: &Path) -> u64 {
        fs::metadata(dir).expect("there").dev()
    }

    /// Mounts a `tmpfs` of this name, and returns its device number; `None` if this process may not.
    fn mounted(dir: &Path, source: &str) -> Option<u64> {
        let flags = rustix::mount::MountFlags::empty();
        rustix::mount::mount(source, dir, "tmpfs", flags, None).ok()?;
        Some(device(dir))
    }

    #[test]
    fn only_what_is_mounted_from_the_source_is_detached() {
        let dir = tempfile::tempdir().expect("dir");
        let dir = dir.path();
        let root = device(dir);
        let (Some(below), Some(above)) = (mounted(dir, "below"), mounted(dir, "above")) else {
            eprintln!("SKIPPED: mounts need the rights of root");
            return;
        };
        assert!(!detach(dir, "below"), "it is covered");
        assert_eq!(device(dir), above);
        assert!(detach(dir, "above"));
        assert!(!detach(dir, "above"), "it is gone");
        assert_eq!(device(dir), below);
        assert!(detach(dir, "below"));
        assert_eq!(device(dir), root);
    }
}
