//! Unmounting a directory, and who uses it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

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
