//! What was written to a disk is told apart: journal, metadata, and files by name.

mod disk;

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use treering_drive::face::FileSystem;
use treering_drive::layout::{Owner, Owners};
use treering_drive::recording::{Event, InMemory, MOUNTED};

const TAG: &[u8; 16] = b"drive test file ";

/// A block that says whose it is.
fn block(file: u32, at: u32) -> Vec<u8> {
    let mut block = TAG.to_vec();
    block.extend(file.to_le_bytes());
    block.extend(at.to_le_bytes());
    let mut state = u64::from(file) << 32 | u64::from(at) | 1;
    while block.len() < 4096 {
        state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
        block.extend((state >> 32).to_le_bytes());
    }
    block
}

fn write(path: &Path, file: u32, blocks: u32) {
    let mut out = File::create(path).expect("a file");
    for at in 0..blocks {
        out.write_all(&block(file, at)).expect("room");
    }
}

/// How long each file lives at least. Maps are taken each half second, and more rarely on a busy
/// machine.
const LIVES: Duration = Duration::from_secs(4);

/// Files of many sizes that live for a while; the paths by number.
fn work(dir: &Path) -> Vec<String> {
    let mut paths = Vec::new();
    for number in 0..300_u32 {
        let sub = format!("d{}", number % 7);
        fs::create_dir_all(dir.join(&sub)).expect("a directory");
        let path = format!("{sub}/file {number}");
        write(&dir.join(&path), number, 1 + number % 40);
        if number % 10 == 0 {
            File::open(dir.join(&path))
                .and_then(|f| f.sync_all())
                .expect("synced");
        }
        paths.push(path);
    }
    paths.push("large".into());
    write(&dir.join("large"), 300, 6000);
    std::thread::sleep(LIVES);
    let large = OpenOptions::new()
        .write(true)
        .open(dir.join("large"))
        .expect("open");
    for at in (0..6000).step_by(7) {
        large
            .write_all_at(&block(300, at), u64::from(at) * 4096)
            .expect("room");
    }
    large.sync_all().expect("synced");
    for path in paths.iter().take(100) {
        fs::remove_file(dir.join(path)).expect("removed");
    }
    paths.push("later".into());
    write(&dir.join("later"), 301, 3000);
    std::thread::sleep(LIVES);
    fs::remove_file(dir.join("later")).expect("removed");
    paths
}

/// Bytes of the program's data under their right name, bytes of it that are not, bytes of others.
#[derive(Default, Debug)]
struct Told {
    right: u64,
    wrong: u64,
    unknown: u64,
    own: BTreeMap<String, u64>,
}

fn tell(events: &[(Event, Vec<u8>)], paths: &[String]) -> Told {
    let mut owners = Owners::default();
    for (at, (event, _)) in (0..).zip(events) {
        owners.note(at, event);
    }
    let mark =
        |(event, _): &(Event, Vec<u8>)| matches!(event, Event::Mark { line } if line == MOUNTED);
    let begin = events.iter().position(mark).expect("a mark behind mkfs");
    let mut told = Told::default();
    for (at, (event, bytes)) in events.iter().enumerate().skip(begin) {
        let Event::Write(write) = event else {
            continue;
        };
        assert_eq!(bytes.len(), write.len as usize);
        assert_eq!(write.extents[0].lba, write.offset / 4096);
        let first = write.offset / 4096;
        let parts = bytes.chunks(4096);
        for (lba, part) in (first..).zip(parts) {
            let len = part.len() as u64;
            let tagged = part.starts_with(TAG);
            let file = part
                .get(16..20)
                .and_then(|b| b.try_into().ok())
                .map(u32::from_le_bytes);
            let path = file.filter(|_| tagged).and_then(|f| paths.get(f as usize));
            match (owners.at(at as u64, lba), path) {
                (Some(Owner::File(found)), Some(path)) if found == path.as_bytes() => {
                    told.right += len;
                }
                (Some(Owner::Region(name)), None) => {
                    told.right += len;
                    *told.own.entry(name.clone()).or_default() += len;
                }
                (None, _) => told.unknown += len,
                (Some(_), _) => told.wrong += len,
            }
        }
    }
    told
}

fn is_told_apart(fs: FileSystem, expected: &[&str]) {
    if !disk::can_mount(&format!("{fs:?} told apart")) {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let sink = Arc::new(InMemory::default());
    let paths = std::cell::RefCell::default();
    disk::with_disk(&disk::options(dir.path()), fs, sink.clone(), |dir| {
        assert!(dir.as_os_str().as_bytes().starts_with(b"/"));
        *paths.borrow_mut() = work(dir);
    });
    let told = tell(&sink.take(), &paths.borrow());
    let all = told.right + told.wrong + told.unknown;
    eprintln!("{fs:?}: {all} bytes: {told:?}");
    assert!(all > 40 << 20, "{told:?}");
    assert!(told.right as f64 >= 0.99 * all as f64, "{told:?}");
    for name in expected {
        assert!(told.own.contains_key(*name), "{name}: {told:?}");
    }
}

#[test]
fn writes_below_ext4_are_told_apart() {
    is_told_apart(
        FileSystem::Ext4,
        &["journal", "inode tables", "superblocks"],
    );
}

#[test]
fn writes_below_xfs_are_told_apart() {
    is_told_apart(
        FileSystem::Xfs,
        &["journal", "inodes", "group headers", "directories"],
    );
}

#[test]
fn writes_below_btrfs_are_told_apart() {
    is_told_apart(
        FileSystem::Btrfs,
        &["journal", "file trees", "superblocks", "extent tree"],
    );
}

/// Files that come and go on a disk that is nearly full, each for a little longer than a second, so
/// that each gets blocks that another had just before.
#[test]
fn blocks_that_are_used_again_are_told_apart() {
    if !disk::can_mount("blocks used again") {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let sink = Arc::new(InMemory::default());
    let mut options = disk::options(dir.path());
    options.capacity_blocks = 40 << 8;
    let paths: Vec<String> = (0..110).map(|number| format!("table {number}")).collect();
    disk::with_disk(&options, FileSystem::Ext4, sink.clone(), |dir| {
        for (number, path) in (0_u32..).zip(&paths) {
            write(&dir.join(path), number, 256);
            File::open(dir.join(path))
                .and_then(|f| f.sync_all())
                .expect("synced");
            std::thread::sleep(Duration::from_millis(50));
            if let Some(old) = number.checked_sub(22) {
                fs::remove_file(dir.join(&paths[old as usize])).expect("removed");
            }
        }
    });
    let told = tell(&sink.take(), &paths);
    let all = told.right + told.wrong + told.unknown;
    eprintln!("used again: {all} bytes: {told:?}");
    assert!(told.right as f64 >= 0.99 * all as f64, "{told:?}");
}
