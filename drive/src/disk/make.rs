//! Making and mounting the real file system on the disk.
//!
//! | | `mkfs` | mount |
//! |---|---|---|
//! | ext4 | 4-KiB blocks; inode tables and journal are initialised at once, so that no thread writes zeros during the run | `discard` |
//! | XFS | 4-KiB sectors, as on a drive with 512-byte sectors that emulate them | `discard` |
//! | Btrfs | defaults: metadata twice, data once | `discard=async`, its default |
//!
//! Everything else is what `mkfs` and `mount` do by default on this machine, since that is what the
//! program would meet. `discard` can be switched off.

use std::ffi::CString;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};

use crate::error::DriveError;
use crate::face::FileSystem;

/// Whether the file system tells the drive at once which blocks it has freed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnlineDiscard {
    /// As on a drive that is mounted with `-o discard`.
    #[default]
    On,
    /// Only `fstrim` does.
    Off,
}

/// The file system's name, in `mkfs.NAME` and `mount -t NAME`.
pub(super) fn name(fs: FileSystem) -> &'static str {
    match fs {
        FileSystem::Ext4 => "ext4",
        FileSystem::Xfs => "xfs",
        FileSystem::Btrfs => "btrfs",
        FileSystem::None => "none",
    }
}

/// Checks that a disk is large enough for the file system.
pub(super) fn check_capacity(fs: FileSystem, blocks: u64) -> Result<(), DriveError> {
    // What mkfs.xfs and mkfs.btrfs demand; ext4 without room for a journal would be another thing.
    let mib = match fs {
        FileSystem::Ext4 => 8,
        FileSystem::Xfs => 300,
        FileSystem::Btrfs => 128,
        FileSystem::None => 0,
    };
    if blocks < mib << 20 >> 12 {
        let why = format!(
            "{} needs at least {mib} MiB, found {} KiB",
            name(fs),
            blocks * 4
        );
        let name = "capacity";
        return Err(DriveError::Parameter { name, why });
    }
    Ok(())
}

/// Finds `mkfs` before anything is mounted.
pub(super) fn check_mkfs(fs: FileSystem) -> Result<(), DriveError> {
    let (program, package) = match fs {
        FileSystem::Ext4 => ("mkfs.ext4", "e2fsprogs"),
        FileSystem::Xfs => ("mkfs.xfs", "xfsprogs"),
        FileSystem::Btrfs => ("mkfs.btrfs", "btrfs-progs"),
        FileSystem::None => return Ok(()),
    };
    let run = Command::new(program)
        .env("PATH", path())
        .arg("-V")
        .stdin(Stdio::null())
        .output();
    match run {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(DriveError::Missing {
            what: program.into(),
            needed: format!("it makes the file system on the drive: install {package}"),
        }),
        _ => Ok(()),
    }
}

/// The search path, and where administrators' programs are: some users' paths lack these.
fn path() -> std::ffi::OsString {
    let mut path = std::env::var_os("PATH").unwrap_or_default();
    path.push(":/usr/local/sbin:/usr/sbin:/sbin");
    path
}

/// Makes a file system.
pub(super) fn mkfs(fs: FileSystem, device: &Path) -> Result<(), DriveError> {
    let program = format!("mkfs.{}", name(fs));
    let options: &[&str] = match fs {
        FileSystem::Ext4 => &[
            "-q",
            "-F",
            "-b",
            "4096",
            "-E",
            "lazy_itable_init=0,lazy_journal_init=0",
        ],
        FileSystem::Xfs => &["-q", "-f", "-s", "size=4096", "-b", "size=4096"],
        FileSystem::Btrfs => &["-q", "-f"],
        FileSystem::None => return Ok(()),
    };
    let mut command = Command::new(&program);
    command
        .env("PATH", path())
        .args(options)
        .arg(device)
        .stdin(Stdio::null());
    let what = format!("{program} {}", device.display());
    let output = command.output().map_err(DriveError::system(&what))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.trim().replace('\n', "; ");
    let source = std::io::Error::other(format!("{}: {said}", output.status));
    Err(DriveError::System { what, source })
}

/// Mounts a device. Copies of one file system, such as the states of a power cut, may be mounted side
/// by side, though they have the same UUID.
pub(super) fn mount_device(
    fs: FileSystem,
    device: &Path,
    dir: &Path,
    discard: OnlineDiscard,
) -> Result<(), DriveError> {
    let data = match (fs, discard) {
        (FileSystem::Btrfs, OnlineDiscard::On) => "discard=async",
        (FileSystem::Btrfs, OnlineDiscard::Off) => "nodiscard",
        (FileSystem::Xfs, OnlineDiscard::On) => "discard,nouuid",
        (FileSystem::Xfs, OnlineDiscard::Off) => "nodiscard,nouuid",
        (_, OnlineDiscard::On) => "discard",
        (_, OnlineDiscard::Off) => "nodiscard",
    };
    let data = CString::new(data).unwrap_or_default();
    let what = format!("mounting {} on {}", name(fs), dir.display());
    let mounted = mount(device, dir, name(fs), MountFlags::empty(), data.as_c_str());
    mounted.map_err(|error| match error {
        Errno::NODEV => DriveError::Missing {
            what: format!("the kernel's {}", name(fs)),
            needed: format!("the drive is mounted as that: `modprobe {}`", name(fs)),
        },
        // Linux mounts copies of one Btrfs side by side since 6.7.
        Errno::EXIST if fs == FileSystem::Btrfs => DriveError::Missing {
            what: "a kernel that mounts two copies of one Btrfs".into(),
            needed: format!(
                "{what} needs Linux 6.7, or no other copy at the same time: `--jobs 1`"
            ),
        },
        error => DriveError::System {
            what,
            source: error.into(),
        },
    })
}
