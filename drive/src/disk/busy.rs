//! Unmounting a directory, and who uses it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use rustix::io::Errno;
use rustix::mount::UnmountFlags;

/// A process that has just ended may hold its files a little longer.
const PATIENCE: [u64; 6] = [0, 10, 20, 50, 100, 200];

/// More than these are only counted.
const NAMED: usize = 8;

/// The processes that have something of the file system of `dir` open, mapped, or as their
/// directory, in words; `None` if there is none that can be seen.
pub(crate) fn users(dir: &Path) -> Option<String> {
    let device = fs::metadata(dir).ok()?.dev();
    let mut names = Vec::new();
    let processes = fs::read_dir("/proc").ok()?.flatten();
    for process in processes {
        let number = process.file_name().to_string_lossy().parse::<u32>();
        if let (Ok(number), true) = (number, uses(&process.path(), device)) {
            let name = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            names.push(format!("{} (process {number})", name.trim()));
        }
    }
    names.extend(mounted_below(dir));
    match names.len() {
        0 => None,
        all if all > NAMED => {
            names.truncate(NAMED);
            Some(format!("{} and {} more", names.join(", "), all - NAMED))
        }
        _ => Some(names.join(", ")),
    }
}

fn uses(process: &Path, device: u64) -> bool {
    let on = |path: &Path| fs::metadata(path).is_ok_and(|m| m.dev() == device);
    if ["cwd", "root", "exe"]
        .iter()
        .any(|name| on(&process.join(name)))
    {
        return true;
    }
    let open = fs::read_dir(process.join("fd"));
    if open.is_ok_and(|mut open| open.any(|file| file.is_ok_and(|file| on(&file.path())))) {
        return true;
    }
    let maps = fs::read_to_string(process.join("maps")).unwrap_or_default();
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let device = format!("{major:02x}:{minor:02x}");
    maps.lines()
        .any(|line| line.split_whitespace().nth(3) == Some(&device))
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
