//! Measurements: bytes that reached the block device, memory of this process, and page cache of a
//! folder's files.
//!
//! Bytes are counted by the block device between two syncs of the file system. `write_bytes` of
//! `/proc/self/io` is no substitute, because it counts a page each time it becomes dirty: up to ten
//! times for a page that is overwritten in the page cache. The device counts the I/O of all
//! processes, so the machine should be quiet. The process's own counts are in the JSON.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Failure, Result};

/// The sector of `/sys/block/*/stat`, whatever sectors the device has.
const SECTOR: u64 = 512;

/// The block device that holds a folder.
pub struct Device {
    folder: PathBuf,
    /// The device's counters, or the reason why there are none.
    stat: std::result::Result<PathBuf, String>,
}

/// Bytes written to and read from the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// Written.
    pub written: u64,
    /// Read.
    pub read: u64,
}

impl Traffic {
    /// Returns the difference since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Traffic) -> Traffic {
        Traffic {
            written: self.written.saturating_sub(earlier.written),
            read: self.read.saturating_sub(earlier.read),
        }
    }
}

impl Device {
    /// Returns the device that holds `folder`.
    ///
    /// # Errors
    /// [`Failure::File`] if there is no such folder. A folder without a block device is not an
    /// error; see [`Device::missing`].
    pub fn of(folder: &Path) -> Result<Device> {
        let meta = fs::metadata(folder).map_err(|e| file(folder, "cannot be looked at", e))?;
        let (major, minor) = (rustix::fs::major(meta.dev()), rustix::fs::minor(meta.dev()));
        let stat = PathBuf::from(format!("/sys/dev/block/{major}:{minor}/stat"));
        let stat = match read_stat(&stat) {
            Some(_) => Ok(stat),
            None => Err(format!(
                "{}: on device {major}:{minor} without a readable {}, so bytes are not counted",
                folder.display(),
                stat.display()
            )),
        };
        Ok(Device {
            folder: folder.to_owned(),
            stat,
        })
    }

    /// Returns why nothing is counted, if that is the case.
    #[must_use]
    pub fn missing(&self) -> Option<&str> {
        self.stat.as_ref().err().map(String::as_str)
    }

    /// Syncs the file system of the folder.
    ///
    /// # Errors
    /// [`Failure::File`].
    pub fn sync(&self) -> Result<()> {
        let folder = File::open(&self.folder);
        let folder = folder.map_err(|e| file(&self.folder, "cannot be opened", e))?;
        let synced = rustix::fs::syncfs(&folder);
        synced.map_err(|e| file(&self.folder, "cannot be synced", e.into()))
    }

    /// Returns the bytes so far, of all processes. Call [`Device::sync`] first.
    #[must_use]
    pub fn traffic(&self) -> Option<Traffic> {
        read_stat(self.stat.as_ref().ok()?)
    }
}

fn file(path: &Path, what: &'static str, source: std::io::Error) -> Failure {
    Failure::File {
        path: path.to_owned(),
        what,
        source,
    }
}

fn read_stat(path: &Path) -> Option<Traffic> {
    let text = fs::read_to_string(path).ok()?;
    // Reads: requests, merged, sectors, ms. Then the same for writes.
    let fields: Vec<u64> = (text.split_whitespace())
        .map_while(|field| field.parse().ok())
        .collect();
    Some(Traffic {
        written: fields.get(6)? * SECTOR,
        read: fields.get(2)? * SECTOR,
    })
}

/// Returns the kernel's counts for this process, in which each page counts each time it becomes
/// dirty.
#[must_use]
pub fn own_traffic() -> Option<Traffic> {
    Some(Traffic {
        written: field("/proc/self/io", "write_bytes:")?,
        read: field("/proc/self/io", "read_bytes:")?,
    })
}

/// Returns the peak resident memory of this process, including maps of files.
#[must_use]
pub fn peak_resident_bytes() -> Option<u64> {
    Some(field("/proc/self/status", "VmHWM:")? << 10)
}

/// Returns the resident memory of this process without maps of files (which include its code).
#[must_use]
pub fn resident_bytes() -> Option<u64> {
    Some(field("/proc/self/status", "RssAnon:")? << 10)
}

fn field(path: &str, name: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Returns the bytes of all files below a folder and, if the kernel supports it (Linux 6.5), how
/// many of them the page cache holds.
#[must_use]
pub fn files(folder: &Path) -> (u64, Option<u64>) {
    let (mut bytes, mut cached) = (0, Some(0));
    let Ok(entries) = fs::read_dir(folder) else {
        return (0, None);
    };
    for entry in entries.flatten() {
        let Ok(meta) = entry.metadata() else { continue };
        let (more, in_cache) = if meta.is_dir() {
            files(&entry.path())
        } else {
            // Allocated blocks, because files may have holes.
            (meta.blocks() * SECTOR, cached_bytes(&entry.path()))
        };
        bytes += more;
        cached = cached.zip(in_cache).map(|(a, b): (u64, u64)| a + b);
    }
    (bytes, cached)
}

/// The system call's number is the same on every architecture.
const SYS_CACHESTAT: libc::c_long = 451;

#[repr(C)]
struct Range {
    offset: u64,
    len: u64,
}

#[repr(C)]
#[derive(Default)]
struct Cached {
    pages: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

fn cached_bytes(path: &Path) -> Option<u64> {
    let file = File::open(path).ok()?;
    // A length of 0 means up to the end of the file.
    let range = Range { offset: 0, len: 0 };
    let mut cached = Cached::default();
    // SAFETY: the kernel reads one `struct cachestat_range` and writes one `struct cachestat`. Both
    // are passed by valid references and outlive the call.
    let said = unsafe {
        libc::syscall(
            SYS_CACHESTAT,
            file.as_raw_fd(),
            &raw const range,
            &raw mut cached,
            0,
        )
    };
    (said == 0).then_some(cached.pages * rustix::param::page_size() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn what_is_written_is_on_the_device_after_a_sync() {
        let folder = tempfile::tempdir().expect("a folder");
        let device = Device::of(folder.path()).expect("a folder that is there");
        let Some(before) = device.sync().ok().and_then(|()| device.traffic()) else {
            // Nothing can be counted here, so it must give the reason.
            assert!(device.missing().is_some());
            return;
        };
        let mut file = File::create(folder.path().join("file")).expect("a new file");
        file.write_all(&vec![7; 1 << 20]).expect("room");
        device.sync().expect("a file system that syncs");
        let since = device.traffic().expect("as before").since(before);
        assert!(since.written >= 1 << 20, "{since:?}");
        let (bytes, cached) = files(folder.path());
        assert!(bytes >= 1 << 20, "{bytes}");
        assert!(cached.is_none_or(|cached| cached >= 1 << 20), "{cached:?}");
    }
}
