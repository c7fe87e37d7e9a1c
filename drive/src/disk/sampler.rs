//! Tells the recording which file has which blocks: a thread that walks the mounted directory.
//!
//! Every half second, or less often if a walk takes long (at most a tenth of the time is spent so),
//! each directory is read, and each file whose inode changed since (size, times, blocks) is asked for
//! its extents (`FIEMAP`). A map that differs from the last is recorded as [`Event::Map`]; a file
//! that is gone, as one without blocks. Directories and files are opened with `O_NOATIME`, so looking
//! changes nothing.
//!
//! What is not seen: a file that is made and removed between two walks; blocks that the file system
//! has not placed yet (they are seen in the next walk); file systems mounted within the directory.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, fstat, openat, statat};

use crate::disk::served::Disk;
use crate::disk::sys::{FileExtent, fiemap};
use crate::face::FileSystem;
use crate::layout::{Addresses, Regions, added, merge, regions, without};
use crate::recording::{Event, Extent};

const PERIOD: Duration = Duration::from_millis(500);
/// The longest pause between walks, even if they are slow.
const LONGEST: Duration = Duration::from_secs(30);
/// A walk rests this many times as long as it took.
const REST: u32 = 9;
/// Deeper directories are not visited.
const DEEPEST: usize = 64;
/// Extents of one file that are recorded; the rest of a more scattered file stays unknown.
const MOST_EXTENTS: usize = 1 << 20;

/// What tells that a file's extents may have changed.
type Signature = [i128; 4];

struct Known {
    path: PathBuf,
    signature: Signature,
    /// Whether all extents had their places.
    settled: bool,
    extents: Vec<Extent>,
    /// The walk in which the file was seen last.
    seen: u64,
}

/// What is known of a disk's files and regions.
pub(super) struct Samples {
    disk: Arc<Disk>,
    fs: FileSystem,
    dir: PathBuf,
    device: u64,
    addresses: Option<Addresses>,
    regions: Regions,
    files: FxHashMap<u64, Known>,
    walk: u64,
}

impl Samples {
    /// Those of a file system that was just mounted; its regions are recorded.
    pub(super) fn new(disk: Arc<Disk>, fs: FileSystem, dir: &Path) -> Samples {
        let device = rustix::fs::stat(dir).map_or(0, |stat| stat.st_dev);
        let dir = dir.to_owned();
        Samples {
            disk,
            fs,
            dir,
            device,
            addresses: None,
            regions: Regions::new(),
            files: FxHashMap::default(),
            walk: 0,
        }
    }

    /// Records regions that are new. A file system that is being written may be inconsistent on the
    /// disk; then nothing is recorded and `false` returned.
    pub(super) fn note_regions(&mut self) -> bool {
        let Ok(now) = regions(&self.disk.image, self.fs) else {
            return false;
        };
        for (name, extents) in added(&now, &self.regions) {
            if self
                .disk
                .sink
                .note(Event::Region { name, extents })
                .is_err()
            {
                return false;
            }
        }
        self.regions = now;
        true
    }

    /// Walks the directory once and records what changed.
    pub(super) fn walk(&mut self) {
        self.walk += 1;
        if self
            .addresses
            .as_ref()
            .is_none_or(|a| a.are_stale(&self.disk.image))
        {
            // A tree that was replaced while it was read: the next attempt finds it whole.
            let read = || Addresses::read(&self.disk.image, self.fs).ok();
            self.addresses = (0..3).find_map(|_| read()).or(self.addresses.take());
            if self.fs == FileSystem::Btrfs {
                self.note_regions();
            }
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOATIME | OFlags::CLOEXEC;
        if let Ok(root) = rustix::fs::open(&self.dir, flags, Mode::empty()) {
            self.directory(root, &mut PathBuf::new(), 0);
        }
        let walk = self.walk;
        let gone = self.files.extract_if(|_, known| known.seen != walk);
        for (inode, known) in gone.collect::<Vec<_>>() {
            if !known.extents.is_empty() {
                self.record(inode, &known.path, Vec::new());
            }
        }
    }

    fn directory(&mut self, dir: OwnedFd, path: &mut PathBuf, depth: usize) {
        let on_this_disk = fstat(&dir).is_ok_and(|stat| stat.st_dev == self.device);
        // Subvolumes of Btrfs have devices of their own.
        if depth > DEEPEST || !(on_this_disk || self.fs == FileSystem::Btrfs) {
            return;
        }
        let Ok(again) = dir.try_clone() else {
            return;
        };
        let Ok(entries) = Dir::new(again) else {
            return;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            path.push(OsStr::from_bytes(name.to_bytes()));
            let stat = statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW);
            match stat.as_ref().map(|s| FileType::from_raw_mode(s.st_mode)) {
                Ok(FileType::Directory) => {
                    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
                    let flags = flags | OFlags::NOATIME | OFlags::CLOEXEC;
                    if let Ok(inner) = openat(&dir, name, flags, Mode::empty()) {
                        self.directory(inner, path, depth + 1);
                    }
                }
                Ok(FileType::RegularFile) => {
                    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK;
                    let flags = flags | OFlags::NOATIME | OFlags::CLOEXEC;
                    let open = || openat(&dir, name, flags, Mode::empty()).ok();
                    if let Ok(stat) = &stat {
                        self.file(stat, path, open);
                    }
                }
                _ => {}
            }
            path.pop();
        }
    }

    fn file(&mut self, stat: &Stat, path: &Path, open: impl FnOnce() -> Option<OwnedFd>) {
        let inode = stat.st_ino;
        let time = |s, ns| i128::from(s) * 1_000_000_000 + i128::from(ns);
        let signature = [
            stat.st_size.into(),
            stat.st_blocks.into(),
            time(stat.st_mtime, stat.st_mtime_nsec as i64),
            time(stat.st_ctime, stat.st_ctime_nsec as i64),
        ];
        let (walk, mut same_path) = (self.walk, false);
        if let Some(known) = self.files.get_mut(&inode) {
            // Of several names of a file, the first that was met in this walk counts.
            if known.seen == walk {
                return;
            }
            known.seen = walk;
            same_path = known.path == path;
            if known.signature == signature && known.settled && same_path {
                return;
            }
        }
        let Some((settled, extents)) = open().and_then(|file| self.extents(&file)) else {
            return;
        };
        let known = Known {
            path: path.to_owned(),
            signature,
            settled,
            extents,
            seen: walk,
        };
        let now = known.extents.clone();
        let before = self
            .files
            .insert(inode, known)
            .map_or(Vec::new(), |known| known.extents);
        if now != before || !same_path && !now.is_empty() {
            self.disk
                .forget(&without(&merge(now.clone()), &merge(before)));
            self.record(inode, path, now);
        }
    }

    fn record(&self, inode: u64, path: &Path, extents: Vec<Extent>) {
        let path = path.as_os_str().as_bytes().to_vec();
        // A recording that has stopped refuses the program's writes, too; that is how it is told.
        let _ = self.disk.sink.note(Event::Map {
            path,
            inode,
            extents,
        });
    }

    /// Where a file's bytes lie, and whether that was decided for all of them.
    fn extents(&self, file: &OwnedFd) -> Option<(bool, Vec<Extent>)> {
        let addresses = self.addresses.as_ref()?;
        let mut found: Vec<Extent> = Vec::new();
        let (mut settled, mut start) = (true, 0);
        while found.len() < MOST_EXTENTS {
            let some = fiemap(file.as_fd(), start).ok()?;
            let Some(last) = some.last() else {
                break;
            };
            let next = last.logical.saturating_add(last.len);
            for extent in &some {
                if extent.flags & FileExtent::UNKNOWN != 0 {
                    settled = false;
                } else if extent.flags & (FileExtent::INLINE | FileExtent::ENCODED) == 0 {
                    for extent in addresses.blocks(extent.physical, extent.len) {
                        push(&mut found, extent);
                    }
                }
            }
            if last.flags & FileExtent::LAST != 0 || next <= start {
                break;
            }
            start = next;
        }
        Some((settled, found))
    }
}

fn push(extents: &mut Vec<Extent>, extent: Extent) {
    match extents.last_mut() {
        Some(last) if last.lba + last.blocks == extent.lba => last.blocks += extent.blocks,
        _ => extents.push(extent),
    }
}

/// The thread that walks.
pub(super) struct Sampler {
    stop: Sender<()>,
    thread: JoinHandle<Samples>,
}

impl Sampler {
    /// Begins to walk.
    pub(super) fn start(samples: Samples) -> std::io::Result<Sampler> {
        let (stop, stopped) = channel();
        let thread = std::thread::Builder::new().name("drive-sampler".into());
        let thread = thread.spawn(move || sample(samples, &stopped))?;
        Ok(Sampler { stop, thread })
    }

    /// Ends the thread; `None` if it panicked.
    pub(super) fn stop(self) -> Option<Samples> {
        drop(self.stop);
        self.thread.join().ok()
    }
}

fn sample(mut samples: Samples, stopped: &Receiver<()>) -> Samples {
    let mut pause = PERIOD;
    while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(pause) {
        let began = Instant::now();
        samples.walk();
        pause = (began.elapsed() * REST).clamp(PERIOD, LONGEST);
    }
    samples
}
