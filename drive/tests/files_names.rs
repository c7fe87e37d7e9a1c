//! Names on the face `files`: what programs see, and what the recording has of it.

mod common;

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};

use common::Drive;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use treering_drive::face::PageCache;
use treering_drive::recording::{Event, NodeId, NodeKind};

fn drive() -> Option<Drive> {
    Drive::new(PageCache::WriteThrough, 1024)
}

#[test]
fn names_come_go_and_move_as_recorded() {
    let Some(drive) = drive() else { return };
    fs::create_dir(drive.path("d")).expect("mkdir");
    File::create(drive.path("d/a")).expect("create");
    fs::hard_link(drive.path("d/a"), drive.path("b")).expect("link");
    fs::rename(drive.path("d/a"), drive.path("d/c")).expect("rename");
    symlink("d/c", drive.path("s")).expect("symlink");
    assert_eq!(
        fs::read_link(drive.path("s")).expect("readlink").to_str(),
        Some("d/c")
    );
    assert_eq!(fs::metadata(drive.path("s")).expect("stat").nlink(), 2);
    fs::remove_file(drive.path("b")).expect("unlink");
    fs::remove_file(drive.path("d/c")).expect("unlink");
    fs::remove_dir(drive.path("d")).expect("rmdir");
    let story: Vec<String> = drive.events().iter().map(tell).collect();
    let expected = [
        "make 2 Directory",
        "link 1/d 2",
        "make 3 File",
        "link 2/a 3",
        "link 1/b 3",
        "rename 2/a 2/c 3",
        "make 4 Symlink",
        "link 1/s 4",
        "unlink 1/b 3",
        "unlink 2/c 3",
        "free 3",
        "unlink 1/d 2",
        "free 2",
    ];
    assert_eq!(story, expected);
}

fn tell(event: &Event) -> String {
    let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
    match event {
        Event::Make { node, kind, .. } => format!("make {} {kind:?}", node.0),
        Event::Link { parent, name, node } => {
            format!("link {}/{} {}", parent.0, text(name), node.0)
        }
        Event::Unlink { parent, name, node } => {
            format!("unlink {}/{} {}", parent.0, text(name), node.0)
        }
        Event::Rename {
            parent,
            name,
            to,
            to_name,
            node,
            ..
        } => {
            format!(
                "rename {}/{} {}/{} {}",
                parent.0,
                text(name),
                to.0,
                text(to_name),
                node.0
            )
        }
        Event::Free { node } => format!("free {}", node.0),
        other => format!("{other:?}"),
    }
}

#[test]
fn rename_flags_do_what_they_say() {
    let Some(drive) = drive() else { return };
    let (a, b) = (drive.path("a"), drive.path("b"));
    fs::write(&a, "first").expect("write");
    fs::write(&b, "second").expect("write");
    let rename = |flags| renameat_with(CWD, &a, CWD, &b, flags);
    assert_eq!(rename(RenameFlags::NOREPLACE), Err(Errno::EXIST));
    rename(RenameFlags::EXCHANGE).expect("exchange");
    assert_eq!(fs::read_to_string(&a).expect("read"), "second");
    assert_eq!(fs::read_to_string(&b).expect("read"), "first");
    let events = drive.events();
    let exchanged = events.iter().find_map(|event| match event {
        Event::Rename {
            node,
            other,
            exchange,
            ..
        } => Some((*node, *other, *exchange)),
        _ => None,
    });
    assert_eq!(exchanged, Some((NodeId(2), Some(NodeId(3)), true)));
    fs::rename(&a, &b).expect("replace");
    assert_eq!(fs::read_to_string(&b).expect("read"), "second");
    assert_eq!(
        renameat_with(CWD, &a, CWD, &b, RenameFlags::empty()),
        Err(Errno::NOENT)
    );
    renameat_with(CWD, &b, CWD, &a, RenameFlags::WHITEOUT).expect("whiteout, as root");
    assert_eq!(
        fs::symlink_metadata(&b).expect("stat").mode() & libc::S_IFMT,
        libc::S_IFCHR
    );
}

#[test]
fn directories_know_their_subdirectories_and_their_place() {
    let Some(drive) = drive() else { return };
    fs::create_dir_all(drive.path("a/b")).expect("mkdir");
    fs::create_dir(drive.path("c")).expect("mkdir");
    let links = |name: &str| fs::metadata(drive.path(name)).expect("stat").nlink();
    assert_eq!((links(""), links("a"), links("c")), (4, 3, 2));
    fs::rename(drive.path("a/b"), drive.path("c/b")).expect("rename");
    assert_eq!((links(""), links("a"), links("c")), (4, 2, 3));
    let up = fs::metadata(drive.path("c/b/..")).expect("stat").ino();
    assert_eq!(up, fs::metadata(drive.path("c")).expect("stat").ino());
    let error = fs::remove_dir(drive.path("c")).expect_err("not empty");
    assert_eq!(error.raw_os_error(), Some(libc::ENOTEMPTY));
    let error = File::create(drive.path(&"x".repeat(256))).expect_err("too long");
    assert_eq!(error.raw_os_error(), Some(libc::ENAMETOOLONG));
}

#[test]
fn a_long_listing_is_whole_and_survives_removals() {
    let Some(drive) = drive() else { return };
    for at in 0..3000 {
        File::create(drive.path(&format!("file-with-a-name-{at:05}"))).expect("create");
    }
    // Removing while listing: what is removed has been listed, the rest must come still.
    let mut seen = 0;
    for entry in fs::read_dir(drive.path("")).expect("opendir") {
        let entry = entry.expect("an entry");
        assert!(entry.metadata().expect("stat").is_file());
        fs::remove_file(entry.path()).expect("unlink");
        seen += 1;
    }
    assert_eq!(seen, 3000);
    assert_eq!(fs::read_dir(drive.path("")).expect("opendir").count(), 0);
}

#[test]
fn a_file_removed_while_open_lives_until_it_is_closed() {
    let Some(drive) = drive() else { return };
    let path = drive.path("temporary");
    let mut how = File::options();
    let file = how
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path)
        .expect("create");
    file.write_all_at(&[7; 8192], 0).expect("write");
    fs::remove_file(&path).expect("unlink");
    assert_eq!(file.metadata().expect("fstat").nlink(), 0);
    let again = format!("/proc/self/fd/{}", file.as_raw_fd());
    assert!(fs::read(again).expect("read") == [7; 8192]);
    assert_eq!(drive.mount().stats().used_blocks, 2);
    let before = drive.events();
    assert!(
        !before
            .iter()
            .any(|event| matches!(event, Event::Free { .. })),
        "{before:?}"
    );
    drop(file);
    let mut drive = drive;
    assert!(drive.unmount().busy.is_none());
    let after = drive.events();
    assert!(
        matches!(after[0], Event::Free { node: NodeId(2) }),
        "{after:?}"
    );
    assert!(matches!(&after[1], Event::Discard { extents, .. } if extents[0].blocks == 2));
}

#[test]
fn special_nodes_and_inherited_groups_are_as_on_other_file_systems() {
    let Some(drive) = drive() else { return };
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: only root may make devices and give files away");
        return;
    }
    let device = rustix::fs::makedev(1, 3);
    let mode = rustix::fs::Mode::from_raw_mode(0o666);
    let kind = rustix::fs::FileType::CharacterDevice;
    rustix::fs::mknodat(CWD, drive.path("null"), kind, mode, device).expect("mknod");
    fs::write(drive.path("null"), "gone").expect("it is /dev/null");
    assert_eq!(
        fs::metadata(drive.path("null")).expect("stat").rdev(),
        device
    );
    fs::create_dir(drive.path("team")).expect("mkdir");
    std::os::unix::fs::chown(drive.path("team"), None, Some(1234)).expect("chown");
    fs::set_permissions(drive.path("team"), PermissionsExt::from_mode(0o2775)).expect("chmod");
    fs::create_dir(drive.path("team/sub")).expect("mkdir");
    let sub = fs::metadata(drive.path("team/sub")).expect("stat");
    assert_eq!((sub.gid(), sub.mode() & 0o2000), (1234, 0o2000));
    let makes = drive.events();
    let made = makes.iter().find(|event| {
        matches!(event, Event::Make { kind, .. }
        if *kind == NodeKind::CharDevice)
    });
    assert!(
        matches!(made, Some(Event::Make { device: 0x103, .. })),
        "{made:?}"
    );
}
