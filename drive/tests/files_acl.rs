//! POSIX access control lists on the face `files`: they decide, they are inherited, and permission
//! bits follow them.

mod common;

use std::fs::{self, DirBuilder, File, Permissions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use common::Drive;
use rustix::fs::{XattrFlags, getxattr, removexattr, setxattr};
use rustix::io::Errno;
use treering_drive::face::PageCache;
use treering_drive::recording::Event;

const ACCESS: &str = "system.posix_acl_access";
const DEFAULT: &str = "system.posix_acl_default";
/// Somebody who is not root.
const NOBODY: u32 = 65_534;

/// A list as the kernel has it: one user who is named, and the permissions of the owner, that user,
/// the group, the mask and others.
fn list(user: u32, permissions: [u16; 5]) -> Vec<u8> {
    let entries = [
        (1, u32::MAX),
        (2, user),
        (4, u32::MAX),
        (0x10, u32::MAX),
        (0x20, u32::MAX),
    ];
    let mut bytes = 2_u32.to_le_bytes().to_vec();
    for ((tag, id), permissions) in entries.into_iter().zip(permissions) {
        bytes.extend_from_slice(&u16::to_le_bytes(tag));
        bytes.extend_from_slice(&permissions.to_le_bytes());
        bytes.extend_from_slice(&id.to_le_bytes());
    }
    bytes
}

fn set(path: &Path, name: &str, value: &[u8]) {
    setxattr(path, name, value, XattrFlags::empty()).expect("setxattr");
}

fn get(path: &Path, name: &str) -> Result<Vec<u8>, Errno> {
    let mut bytes = vec![0; 256];
    let length = getxattr(path, name, &mut bytes)?;
    bytes.truncate(length);
    Ok(bytes)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("stat").permissions().mode() & 0o7777
}

#[test]
fn permission_bits_and_access_list_say_the_same() {
    let Some(drive) = Drive::new(PageCache::WriteBack, 64) else {
        return;
    };
    let path = drive.path("file");
    fs::write(&path, "text").expect("write");
    drive.events();
    set(&path, ACCESS, &list(NOBODY, [6, 6, 4, 6, 0]));
    assert_eq!(
        mode(&path),
        0o660,
        "the bits of the group are those of the mask"
    );
    let events = drive.events();
    let bits = |event: &Event| matches!(event, Event::Attributes { change, .. } if change.mode == Some(0o660));
    assert!(events.iter().any(bits), "{events:?}");
    fs::set_permissions(&path, Permissions::from_mode(0o604)).expect("chmod");
    assert_eq!(get(&path, ACCESS), Ok(list(NOBODY, [6, 6, 4, 0, 4])));
    // The owner, the owning group and others are all that permission bits have.
    let mut minimal = list(NOBODY, [6, 0, 4, 0, 0]);
    minimal.drain(4 + 3 * 8..4 + 4 * 8);
    minimal.drain(4 + 8..4 + 2 * 8);
    set(&path, ACCESS, &minimal);
    assert_eq!(
        (mode(&path), get(&path, ACCESS)),
        (0o640, Err(Errno::NODATA))
    );
    removexattr(&path, ACCESS).expect("as if there were one");
    assert_eq!(
        setxattr(&path, DEFAULT, &list(NOBODY, [7; 5]), XattrFlags::empty()),
        Err(Errno::ACCESS),
        "only a directory hands down"
    );
}

#[test]
fn what_is_made_in_a_directory_inherits_its_default_list_and_not_the_umask() {
    if !common::has_fuse() {
        return;
    }
    let kept = tempfile::tempdir().expect("a directory");
    let again = || Drive::with(PageCache::WriteBack, 256, Some(kept.path())).expect("FUSE");
    let mut drive = again();
    let default = list(NOBODY, [7, 7, 7, 7, 0]);
    let (dir, file, below) = (drive.path("d"), drive.path("d/file"), drive.path("d/below"));
    fs::create_dir(&dir).expect("mkdir");
    set(&dir, DEFAULT, &default);
    let mut create = File::options();
    create.write(true).create(true).mode(0o666);
    create.open(&file).expect("create");
    DirBuilder::new().mode(0o755).create(&below).expect("mkdir");
    let expect = |drive: &Drive| {
        let (file, below) = (drive.path("d/file"), drive.path("d/below"));
        assert_eq!(
            mode(&file),
            0o660,
            "the umask would have taken the group's write"
        );
        assert_eq!(get(&file, ACCESS), Ok(list(NOBODY, [6, 7, 7, 6, 0])));
        assert_eq!(get(&file, DEFAULT), Err(Errno::NODATA));
        assert_eq!(mode(&below), 0o750);
        assert_eq!(get(&below, ACCESS), Ok(list(NOBODY, [7, 7, 7, 5, 0])));
        assert_eq!(get(&below, DEFAULT), Ok(default.clone()));
    };
    expect(&drive);
    drive.unmount();
    // The journal has them.
    expect(&again());
}

#[test]
fn the_kernel_lets_in_whom_a_list_names() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: only root can be somebody else, so NOTHING WAS TESTED");
        return;
    }
    let Some(drive) = Drive::new(PageCache::WriteBack, 64) else {
        return;
    };
    fs::set_permissions(drive.path(""), Permissions::from_mode(0o755)).expect("chmod");
    let path = drive.path("file");
    fs::write(&path, "text").expect("write");
    fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("chmod");
    let reads = || {
        let mut cat = Command::new("cat");
        let cat = cat
            .arg("file")
            .current_dir(drive.path(""))
            .stderr(Stdio::null());
        let cat = cat.uid(NOBODY).gid(NOBODY).output().expect("cat");
        cat.status.success()
    };
    assert!(!reads());
    set(&path, ACCESS, &list(NOBODY, [6, 4, 0, 4, 0]));
    assert!(reads());
    fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("chmod");
    assert!(!reads(), "the mask is empty");
}
