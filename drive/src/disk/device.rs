//! The loop device: the block device that the kernel makes of the file `disk`.
//!
//! - Direct I/O, so that nothing is cached twice and each request of the block layer is one request
//!   to the file.
//! - Sectors of 512 bytes, as most drives that are sold show (`512e`): programs that open files with
//!   `O_DIRECT` and write 512-byte records (InnoDB's log) fail with `EINVAL` on sectors of 4 KiB.
//!   `mkfs.xfs` is told to use 4 KiB itself, as it would on a 512e drive, whose physical sectors it
//!   sees; ext4 and Btrfs write whole blocks anyway.
//! - A loop device knows no FUA: the block layer turns a FUA write into the write and a flush
//!   behind it. A flush reaches the file as `fsync`, a discard as `fallocate(PUNCH_HOLE)`; so does a
//!   write of zeros, unless the device is asked not to unmap.
//! - The last to close the device detaches it, so none is left behind by a process that is killed.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use crate::disk::sys;
use crate::error::DriveError;

pub(super) const SECTOR: u32 = 512;
const CONTROL: &str = "/dev/loop-control";
/// Others may take a free device first.
const ATTEMPTS: usize = 64;
const OURS: &str = "treering-drive";

/// A loop device over the file `disk`. Dropped, it is detached, or will be when it is not in use.
#[derive(Debug)]
pub(super) struct Loop {
    device: File,
    path: PathBuf,
}

impl Loop {
    /// Takes a free device.
    pub(super) fn over(backing: &File) -> Result<Loop, DriveError> {
        let control = OpenOptions::new().read(true).write(true).open(CONTROL);
        let control = control.map_err(|error| missing(error, CONTROL))?;
        let mut last = io::Error::from(io::ErrorKind::ResourceBusy);
        for _ in 0..ATTEMPTS {
            let free = sys::loop_free(&control);
            let number = free.map_err(DriveError::system(CONTROL))?;
            let path = PathBuf::from(format!("/dev/loop{number}"));
            let opened = OpenOptions::new().read(true).write(true).open(&path);
            let device = opened.map_err(|error| missing(error, &path.display().to_string()))?;
            match sys::loop_configure(&device, backing, SECTOR, &name()) {
                Ok(()) => return Ok(Loop { device, path }),
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => last = error,
                Err(error) => return Err(DriveError::system(path.display().to_string())(error)),
            }
        }
        Err(DriveError::system("a free loop device")(last))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        // If this fails, the device is detached when the last user closes it.
        let _ = sys::loop_clear(&self.device);
    }
}

fn missing(error: io::Error, what: &str) -> DriveError {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => DriveError::Missing {
            what: what.into(),
            needed: "loop devices put a file system on the drive: `modprobe loop`, and in a \
                     container give it /dev/loop-control and /dev/loop*"
                .into(),
        },
        _ => DriveError::system(what)(error),
    }
}

/// Marks a device as ours: the process, and when it began, since numbers of processes come again.
fn name() -> String {
    let process = std::process::id();
    format!("{OURS} {process} {}", began(process).unwrap_or(0))
}

/// When a process began, in clock ticks since the machine did; `None` if there is no such process.
fn began(process: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // Behind the name, which may contain anything, this is the 20th field.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(19)?.parse().ok()
}

/// The loop devices of drives whose process is gone.
pub(super) fn left_behind() -> Vec<PathBuf> {
    let Ok(devices) = std::fs::read_dir("/sys/block") else {
        return Vec::new();
    };
    let attached = devices
        .flatten()
        .filter(|d| d.path().join("loop/backing_file").exists());
    let paths = attached.map(|d| Path::new("/dev").join(d.file_name()));
    paths.filter(|path| is_left_behind(path)).collect()
}

fn is_left_behind(path: &Path) -> bool {
    let name = File::open(path).and_then(|device| sys::loop_name(&device));
    let name = name.unwrap_or_default();
    let Some(fields) = name.strip_prefix(OURS) else {
        return false;
    };
    let mut fields = fields.split_whitespace().map(str::parse::<u64>);
    match (fields.next(), fields.next()) {
        (Some(Ok(process)), Some(Ok(then))) => began(process as u32) != Some(then),
        _ => false,
    }
}

/// Detaches a device of a drive whose process is gone.
pub(super) fn detach(path: &Path) -> io::Result<()> {
    sys::loop_clear(&File::open(path)?)
}
