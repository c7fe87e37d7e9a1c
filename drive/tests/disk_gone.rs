//! Whatever happens, no mount and no loop device is left behind.

mod disk;

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use treering_drive::face::{FileSystem, Mounted};
use treering_drive::recording::event::Write;
use treering_drive::recording::{Event, Nowhere, Sink, Stopped};

const CHILD: &str = "TREERING_TEST_MOUNT";

/// Not a test: the process that is killed by the others. It mounts a disk and waits.
#[test]
fn child_that_is_killed() {
    let Some(what) = std::env::var_os(CHILD) else {
        return;
    };
    let what = what.into_string().expect("text");
    let (fs, dir) = what.split_once(' ').expect("two words");
    let fs = match fs {
        "ext4" => FileSystem::Ext4,
        "none" => FileSystem::None,
        _ => FileSystem::Xfs,
    };
    let mut options = disk::options(Path::new(dir));
    options.keep = std::env::var_os("TREERING_TEST_KEEP").map(PathBuf::from);
    let mounted = match treering_drive::disk::mount(&options, fs, Arc::new(Nowhere)) {
        Ok(mounted) => mounted,
        Err(error) => {
            eprintln!("refused: {error}");
            std::process::exit(3);
        }
    };
    fs::write(format!("{dir}.ready"), "").expect("room");
    std::thread::sleep(Duration::from_secs(60));
    drop(mounted);
}

fn child(fs: &str, dir: &Path) -> Command {
    let mut child = Command::new(std::env::current_exe().expect("this program"));
    child.args(["--exact", "child_that_is_killed", "--nocapture"]);
    child.env(CHILD, format!("{fs} {}", dir.display()));
    child.stdout(Stdio::null());
    child
}

fn ready(dir: &Path) {
    let ready = format!("{}.ready", dir.display());
    let deadline = Instant::now() + Duration::from_secs(30);
    while fs::remove_file(&ready).is_err() {
        assert!(Instant::now() < deadline, "not mounted within 30 s");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn kill(child: &mut Child, signal: Signal) {
    let child_pid = Pid::from_raw(child.id() as i32).expect("a process");
    kill_process(child_pid, signal).expect("killed");
    child.wait().expect("ended");
}

#[test]
fn a_killed_process_leaves_nothing() {
    if !disk::can_mount("kill -9") {
        return;
    }
    for (name, fs) in [
        ("ext4", FileSystem::Ext4),
        ("xfs", FileSystem::Xfs),
        ("none", FileSystem::None),
    ] {
        // Not SIGINT: it is ignored where a shell has started the tests in the background.
        for signal in [Signal::KILL, Signal::USR1, Signal::TERM] {
            let parent = tempfile::tempdir().expect("dir");
            let dir = parent.path().join("m");
            fs::create_dir(&dir).expect("dir");
            let mut child = child(name, &dir).spawn().expect("runs");
            ready(&dir);
            let device = fs::metadata(&dir).expect("mounted").dev();
            assert_ne!(device, fs::metadata(parent.path()).expect("there").dev());
            kill(&mut child, signal);
            disk::assert_gone(&dir, fs, device);
        }
    }
}

#[test]
fn what_is_left_without_a_janitor_is_cleaned_up() {
    if !disk::can_mount("cleaning up") {
        return;
    }
    for (name, fs) in [("ext4", FileSystem::Ext4), ("none", FileSystem::None)] {
        let parent = tempfile::tempdir().expect("dir");
        let dir = parent.path().join("m m");
        fs::create_dir(&dir).expect("dir");
        let mut child = child(name, &dir).spawn().expect("runs");
        ready(&dir);
        let device = fs::metadata(&dir).expect("mounted").dev();
        let janitors = fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id()));
        let tasks = fs::read_dir(format!("/proc/{}/task", child.id()))
            .expect("tasks")
            .flatten();
        let children = tasks.map(|task| fs::read_to_string(task.path().join("children")));
        let children: Vec<String> = children.flatten().collect();
        for janitor in children.iter().flat_map(|c| c.split_whitespace()) {
            let janitor = Pid::from_raw(janitor.parse().expect("a number")).expect("a process");
            kill_process(janitor, Signal::KILL).expect("killed");
        }
        assert!(
            children.iter().any(|c| !c.is_empty()),
            "a janitor: {janitors:?}"
        );
        kill(&mut child, Signal::KILL);
        let undone = treering_drive::disk::clean_up();
        eprintln!("{undone:?}");
        disk::assert_gone(&dir, fs, device);
    }
}

#[test]
fn what_was_synced_survives_a_kill() {
    if !disk::can_mount("kept after a kill") {
        return;
    }
    let parent = tempfile::tempdir().expect("dir");
    let (dir, keep) = (parent.path().join("m"), parent.path().join("keep"));
    fs::create_dir(&dir).expect("dir");
    let mut child = child("xfs", &dir);
    let mut child = child
        .env("TREERING_TEST_KEEP", &keep)
        .spawn()
        .expect("runs");
    ready(&dir);
    let device = fs::metadata(&dir).expect("mounted").dev();
    disk::shell(&dir, "seq 100000 > synced; sync; seq 10 > not");
    kill(&mut child, Signal::KILL);
    disk::assert_gone(&dir, FileSystem::Xfs, device);
    let mut options = disk::options(&dir);
    options.keep = Some(keep);
    disk::with_disk(&options, FileSystem::Xfs, Arc::new(Nowhere), |dir| {
        disk::shell(dir, "seq 100000 | cmp - synced");
    });
}

#[test]
fn a_panic_unmounts() {
    if !disk::can_mount("a panic") {
        return;
    }
    let dir = tempfile::tempdir().expect("dir");
    let device = std::sync::Mutex::new(0);
    let panicked = std::panic::catch_unwind(|| {
        let options = disk::options(dir.path());
        let mounted =
            treering_drive::disk::mount(&options, FileSystem::Ext4, Arc::new(Nowhere)).expect("ok");
        *device.lock().expect("whole") = fs::metadata(mounted.dir()).expect("there").dev();
        std::panic::resume_unwind(Box::new("on purpose"));
    });
    assert!(panicked.is_err());
    disk::assert_gone(dir.path(), FileSystem::Ext4, *device.lock().expect("whole"));
}

#[test]
fn a_step_that_fails_undoes_those_before() {
    if !disk::can_mount("a failing mkfs") {
        return;
    }
    let parent = tempfile::tempdir().expect("dir");
    let dir = parent.path().join("m");
    fs::create_dir(&dir).expect("dir");
    let script = "#!/bin/sh\ntest \"$1\" = -V && exit 0\nfor d; do :; done\n\
        echo \"$d\" > \"$0.device\"\necho broken >&2\nexit 7\n";
    let mkfs = parent.path().join("mkfs.ext4");
    fs::write(&mkfs, script).expect("room");
    disk::shell(parent.path(), "chmod +x mkfs.ext4");
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", parent.path().display());
    let child = child("ext4", &dir)
        .env("PATH", path)
        .stderr(Stdio::piped())
        .output();
    let child = child.expect("runs");
    assert_eq!(child.status.code(), Some(3));
    let said = String::from_utf8_lossy(&child.stderr);
    assert!(
        said.contains("mkfs.ext4 /dev/loop") && said.contains("broken"),
        "{said}"
    );
    let device = fs::read_to_string(parent.path().join("mkfs.ext4.device")).expect("it ran");
    let device = fs::metadata(device.trim()).expect("a device").rdev();
    disk::assert_gone(&dir, FileSystem::Ext4, device);
}

#[test]
fn a_busy_disk_is_detached_and_its_users_named() {
    if !disk::can_mount("a busy disk") {
        return;
    }
    let dir = tempfile::tempdir().expect("dir");
    let options = disk::options(dir.path());
    let mounted = treering_drive::disk::mount(&options, FileSystem::Ext4, Arc::new(Nowhere));
    let mounted = mounted.expect("mounted");
    let device = fs::metadata(dir.path()).expect("there").dev();
    let file = File::create(dir.path().join("f")).expect("room");
    let mut sleep = Command::new("sleep")
        .arg("60")
        .current_dir(dir.path())
        .spawn()
        .expect("runs");
    let unmounted = Box::new(mounted).unmount().expect("detached");
    let busy = unmounted.busy.expect("users");
    assert!(
        busy.contains(&format!("sleep (process {})", sleep.id())),
        "{busy}"
    );
    assert!(
        busy.contains(&format!("(process {})", std::process::id())),
        "{busy}"
    );
    assert!(
        fs::read_dir(dir.path()).expect("there").next().is_none(),
        "out of sight"
    );
    sleep.kill().expect("killed");
    sleep.wait().expect("ended");
    drop(file);
    disk::assert_gone(dir.path(), FileSystem::Ext4, device);
}

/// Takes some events, and then none.
struct Full(AtomicU32);

impl Full {
    fn take(&self) -> Result<(), Stopped> {
        let left = |n: u32| n.checked_sub(1);
        let taken = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, left);
        taken.map(drop).map_err(|_| Stopped)
    }
}

impl Sink for Full {
    fn note(&self, _: Event) -> Result<(), Stopped> {
        self.take()
    }

    fn write(&self, _: Write, _: &[u8]) -> Result<(), Stopped> {
        self.take()
    }
}

#[test]
fn a_recording_that_stops_fails_the_program_and_nothing_else() {
    if !disk::can_mount("a recording that stops") {
        return;
    }
    for fs in disk::ALL {
        let dir = tempfile::tempdir().expect("dir");
        let sink = Arc::new(Full(AtomicU32::new(u32::MAX)));
        let options = disk::options(dir.path());
        let mounted = treering_drive::disk::mount(&options, fs, sink.clone()).expect("mounted");
        let device = fs::metadata(dir.path()).expect("there").dev();
        let file = File::create(dir.path().join("f")).expect("room");
        let write = |at: u64| {
            file.write_all_at(&[7; 4096], at * 4096)
                .and_then(|()| file.sync_all())
        };
        write(0).expect("recorded");
        sink.0.store(20, Ordering::Relaxed);
        let failed = (1..30).find_map(|at| write(at).err());
        assert!(
            failed.is_some(),
            "{fs:?}: what is not recorded is not acknowledged"
        );
        drop(file);
        assert_eq!(
            Box::new(mounted).unmount().expect("unmounted").busy,
            None,
            "{fs:?}"
        );
        disk::assert_gone(dir.path(), fs, device);
    }
}

#[test]
fn somebody_else_may_unmount() {
    if !disk::can_mount("unmounted by somebody else") {
        return;
    }
    let dir = tempfile::tempdir().expect("dir");
    let options = disk::options(dir.path());
    let mounted = treering_drive::disk::mount(&options, FileSystem::Ext4, Arc::new(Nowhere));
    let mounted = mounted.expect("mounted");
    let device = fs::metadata(dir.path()).expect("there").dev();
    let path = dir.path().display();
    disk::shell(Path::new("/"), &format!("umount {path}"));
    assert!(!mounted.is_mounted());
    assert_eq!(
        Box::new(mounted).unmount().expect("gone already").busy,
        None
    );
    disk::assert_gone(dir.path(), FileSystem::Ext4, device);
}

#[test]
fn what_was_mounted_there_before_stays() {
    if !disk::can_mount("a mount below") {
        return;
    }
    let dir = tempfile::tempdir().expect("dir");
    let path = dir.path().display();
    disk::shell(Path::new("/"), &format!("mount -t tmpfs below {path}"));
    let below = fs::metadata(dir.path()).expect("there").dev();
    for unmounted_before in [false, true] {
        let options = disk::options(dir.path());
        let mounted = treering_drive::disk::mount(&options, FileSystem::Ext4, Arc::new(Nowhere));
        let mounted = mounted.expect("mounted");
        assert_ne!(fs::metadata(dir.path()).expect("there").dev(), below);
        if unmounted_before {
            disk::shell(Path::new("/"), &format!("umount {path}"));
        }
        drop(mounted);
        assert_eq!(fs::metadata(dir.path()).expect("there").dev(), below);
    }
    let mut child = child("ext4", dir.path()).spawn().expect("runs");
    ready(dir.path());
    assert_ne!(fs::metadata(dir.path()).expect("there").dev(), below);
    kill(&mut child, Signal::KILL);
    let deadline = Instant::now() + Duration::from_secs(10);
    while fs::metadata(dir.path()).expect("there").dev() != below {
        assert!(Instant::now() < deadline, "the janitor unmounts");
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(fs::metadata(dir.path()).expect("there").dev(), below);
    disk::shell(Path::new("/"), &format!("umount {path}"));
}
