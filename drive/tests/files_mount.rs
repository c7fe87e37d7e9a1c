//! Mounting and unmounting the face `files`, extended attributes, and drives that are kept.

mod common;

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use common::{Drive, has_fuse, options};
use rustix::fs::{XattrFlags, getxattr, listxattr, removexattr, setxattr};
use rustix::io::Errno;
use treering_drive::DriveError;
use treering_drive::face::{Mounted, PageCache};
use treering_drive::files::mount;
use treering_drive::recording::event::{FlushKind, Write};
use treering_drive::recording::{Event, NodeId, Nowhere, Sink, Stopped};

#[test]
fn a_busy_mount_is_detached_and_its_user_named() {
    let Some(mut drive) = Drive::new(PageCache::WriteBack, 1024) else {
        return;
    };
    assert!(drive.mount().is_mounted());
    let file = File::create(drive.path("open")).expect("create");
    file.write_all_at(b"dirty", 0).expect("write");
    let busy = drive.unmount().busy.expect("an open file");
    assert!(
        busy.contains("has open") && busy.contains("/open"),
        "{busy}"
    );
    let events = drive.events();
    let written = |event: &Event| matches!(event, Event::Write(write) if write.len == 5);
    assert!(
        events.iter().any(written),
        "what was dirty is recorded: {events:?}"
    );
    assert!(file.sync_all().is_err() || file.write_all_at(b"late", 0).is_err());
    assert_eq!(drive.events(), [], "nothing comes behind the end");
}

/// Stops after some events.
struct Short(parking_lot::Mutex<u32>);

impl Short {
    fn take(&self) -> Result<(), Stopped> {
        let mut left = self.0.lock();
        *left = left.checked_sub(1).ok_or(Stopped)?;
        Ok(())
    }
}

impl Sink for Short {
    fn note(&self, _: Event) -> Result<(), Stopped> {
        self.take()
    }

    fn write(&self, _: Write, _: &[u8]) -> Result<(), Stopped> {
        self.take()
    }
}

#[test]
fn what_cannot_be_recorded_is_not_acknowledged() {
    if !has_fuse() {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let options = options(dir.path(), PageCache::WriteThrough, 64);
    let mount = mount(&options, Arc::new(Short(3.into()))).expect("a mount");
    // Make, link, write.
    fs::write(dir.path().join("a"), "a").expect("three events");
    let error = fs::write(dir.path().join("a"), "bb").expect_err("a fourth");
    assert_eq!(error.raw_os_error(), Some(libc::EIO));
    Box::new(mount).unmount().expect("an unmount");
}

#[test]
fn extended_attributes_keep_their_rules() {
    let Some(drive) = Drive::new(PageCache::WriteBack, 64) else {
        return;
    };
    let path = drive.path("file");
    File::create(&path).expect("create");
    let set = |name: &str, value: &[u8], flags| setxattr(&path, name, value, flags);
    assert_eq!(set("user.a", b"1", XattrFlags::REPLACE), Err(Errno::NODATA));
    set("user.a", b"one", XattrFlags::CREATE).expect("new");
    assert_eq!(set("user.a", b"1", XattrFlags::CREATE), Err(Errno::EXIST));
    set("user.b", b"", XattrFlags::empty()).expect("empty");
    set("user.c", &[1; 65_536], XattrFlags::empty()).expect("large");
    let mut bytes = [0; 64];
    assert_eq!(getxattr(&path, "user.a", &mut bytes), Ok(3));
    assert_eq!(&bytes[..3], b"one");
    assert_eq!(getxattr(&path, "user.a", &mut [0; 2]), Err(Errno::RANGE));
    assert_eq!(getxattr(&path, "user.none", &mut bytes), Err(Errno::NODATA));
    assert_eq!(listxattr(&path, &mut bytes), Ok(21));
    assert_eq!(&bytes[..21], b"user.a\0user.b\0user.c\0");
    removexattr(&path, "user.a").expect("removed");
    assert_eq!(removexattr(&path, "user.a"), Err(Errno::NODATA));
    let xattrs = drive
        .events()
        .into_iter()
        .filter(|e| matches!(e, Event::Xattr { .. }))
        .count();
    assert_eq!(xattrs, 4);
}

fn write_a_tree(drive: &Drive) {
    fs::create_dir_all(drive.path("a/b")).expect("mkdir");
    fs::write(drive.path("a/b/file"), vec![7; 10_000]).expect("write");
    fs::write(drive.path("gone"), vec![8; 10_000]).expect("write");
    fs::hard_link(drive.path("a/b/file"), drive.path("again")).expect("link");
    std::os::unix::fs::symlink("a/b", drive.path("link")).expect("symlink");
    setxattr(drive.path("again"), "user.x", b"y", XattrFlags::empty()).expect("setxattr");
    fs::remove_file(drive.path("gone")).expect("unlink");
    File::open(drive.path("again"))
        .and_then(|file| file.sync_all())
        .expect("fsync");
}

fn expect_the_tree(drive: &Drive) {
    let file = fs::read(drive.path("link/file")).expect("read through the link");
    assert!(file == vec![7; 10_000]);
    assert!(fs::metadata(drive.path("gone")).is_err());
    let mut value = [0; 8];
    assert_eq!(
        getxattr(drive.path("a/b/file"), "user.x", &mut value),
        Ok(1)
    );
    assert_eq!(drive.mount().stats().used_blocks, 3);
}

#[test]
fn a_kept_drive_comes_back_and_its_recording_begins_with_what_is_on_it() {
    if !has_fuse() {
        return;
    }
    let kept = tempfile::tempdir().expect("a directory");
    let again = || Drive::with(PageCache::WriteBack, 256, Some(kept.path())).expect("FUSE");
    let mut drive = again();
    write_a_tree(&drive);
    drive.unmount();
    for _ in 0..2 {
        let mut drive = again();
        expect_the_tree(&drive);
        let events = drive.events();
        let all = Event::Flush {
            node: NodeId::ROOT,
            kind: FlushKind::Drive,
        };
        let end = events
            .iter()
            .position(|event| *event == all)
            .expect("the end of the old");
        let written = events[..end].iter().filter_map(|event| match event {
            Event::Write(write) => Some(u64::from(write.len)),
            _ => None,
        });
        assert_eq!(written.sum::<u64>(), 10_000);
        let links = events[..end]
            .iter()
            .filter(|e| matches!(e, Event::Link { .. }))
            .count();
        assert_eq!(links, 5);
        let other = fs::metadata(drive.path("again")).expect("stat");
        drive.unmount();
        assert_eq!(std::os::unix::fs::MetadataExt::nlink(&other), 2);
    }
    let mut smaller = options(kept.path(), PageCache::WriteBack, 255);
    let dir = tempfile::tempdir().expect("a directory");
    (smaller.dir, smaller.keep) = (dir.path().to_owned(), Some(kept.path().to_owned()));
    let error = mount(&smaller, Arc::new(Nowhere)).expect_err("another capacity");
    assert!(matches!(error, DriveError::Bad { .. }), "{error}");
}

fn spawn(dir: &Path, kept: &Path) -> Child {
    let tests = std::env::current_exe().expect("this test");
    let examples = tests
        .parent()
        .and_then(Path::parent)
        .expect("target/debug")
        .join("examples");
    let mut command = Command::new(examples.join("mount_files"));
    command.arg(dir).arg("64").arg("--keep").arg(kept);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let child = child.as_mut().expect("examples are built before tests run");
    let mut line = String::new();
    let out = child.stdout.as_mut().expect("piped");
    BufReader::new(out).read_line(&mut line).expect("a line");
    assert!(line.starts_with("mounted"), "{line}");
    std::mem::replace(child, Command::new("true").spawn().expect("true"))
}

#[test]
fn a_killed_drive_loses_nothing_that_was_synced() {
    if !has_fuse() {
        return;
    }
    let kept = tempfile::tempdir().expect("a directory");
    let dir = tempfile::tempdir().expect("a directory");
    for round in 0..5u8 {
        let mut server = spawn(dir.path(), kept.path());
        for before in 0..round {
            let bytes = fs::read(dir.path().join(format!("synced-{before}"))).expect("kept");
            assert!(
                bytes == vec![before + 1; 100_000],
                "round {round}, file {before}"
            );
        }
        let path = dir.path().join(format!("synced-{round}"));
        let file = File::create(path).expect("create");
        file.write_all_at(&vec![round + 1; 100_000], 0)
            .expect("write");
        file.sync_all().expect("fsync");
        // Somebody is in the middle of something.
        let busy = dir.path().join("busy");
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let writer = std::thread::spawn(move || {
            let mut at = 0_u8;
            while !stopped.load(Ordering::Relaxed) && fs::write(&busy, [at; 50_000]).is_ok() {
                at = at.wrapping_add(1);
            }
        });
        std::thread::sleep(std::time::Duration::from_millis(20 * u64::from(round)));
        server.kill().expect("kill -9");
        server.wait().expect("killed");
        stop.store(true, Ordering::Relaxed);
        writer.join().expect("it ends with the drive");
        drop(file);
        wait_until_gone(dir.path());
        // What was written when the drive was gone already is below it.
        let _ = fs::remove_file(dir.path().join("busy"));
    }
}

/// Waits until nothing is mounted any more where a killed drive was.
fn wait_until_gone(dir: &Path) {
    let dir = dir.display().to_string();
    let mounted = || {
        let mounts = fs::read_to_string("/proc/self/mounts").expect("a table of mounts");
        mounts.contains(&dir)
    };
    let began = std::time::Instant::now();
    while mounted() {
        let waited = began.elapsed();
        assert!(
            waited < std::time::Duration::from_secs(30),
            "it stays mounted"
        );
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

#[test]
fn a_time_of_a_write_in_place_survives_a_kill_once_it_is_synced() {
    if !has_fuse() {
        return;
    }
    let kept = tempfile::tempdir().expect("a directory");
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("file");
    let mut server = spawn(dir.path(), kept.path());
    let file = File::create(&path).expect("create");
    file.write_all_at(&[1; 4096], 0).expect("write");
    file.sync_all().expect("fsync");
    let journal = || {
        fs::metadata(kept.path().join("journal"))
            .expect("kept")
            .len()
    };
    let before = journal();
    for _ in 0..50 {
        file.write_all_at(&[2; 4096], 0).expect("write");
        file.sync_data().expect("fdatasync");
    }
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    file.set_modified(time).expect("utimens");
    file.sync_all().expect("fsync");
    assert!(journal() > before);
    server.kill().expect("kill -9");
    server.wait().expect("killed");
    drop(file);
    wait_until_gone(dir.path());
    let mut server = spawn(dir.path(), kept.path());
    assert_eq!(
        fs::metadata(&path)
            .expect("kept")
            .modified()
            .expect("a time"),
        time
    );
    assert_eq!(fs::read(&path).expect("kept"), [2; 4096]);
    drop(server.stdin.take());
    assert!(server.wait().expect("it ends with its input").success());
}
