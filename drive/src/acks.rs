//! `$TREERING_ACKS`: a file whose lines become marks in the recording.
//!
//! It is the one file of a FUSE file system in a temporary directory. It is opened for direct I/O,
//! so a `write` returns after its lines are in the recording: what the program acknowledges after
//! that comes after it there, and what was durable before it came before.
//!
//! As a file it behaves as files do: with `O_APPEND` writes go to its end, without they go where
//! they are told, and what was written can be read back, up to 1 GiB. The marks do not depend on
//! that: each open file gathers the bytes written through it, in the order of the writes, and every
//! line end makes a mark, as does the last close if a line has no end. So writers that open the
//! file for themselves do not mix their lines, however they are cut into pieces; processes that
//! share an open file do, as on any file. A line longer than 64 KiB becomes several marks.
//!
//! The line `user_bytes N` is also understood here: how many bytes the program itself has written
//! so far, in its own terms. Of several such lines the last counts, so it may be reported again and
//! again, and who runs several programs writes the sum.

use std::collections::hash_map::Entry;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use fuser::{
    BackgroundSession, Config, Errno, FileHandle, Filesystem, FopenFlags, INodeNo, LockOwner,
    MountOption, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry,
    ReplyOpen, ReplyWrite, Request, Session, WriteFlags,
};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use rustix::fs::{MemfdFlags, memfd_create};

use crate::disk::busy::{Attempt, unmount};
use crate::error::DriveError;
use crate::fuse::{FILE, OneFile, no_fuse, users};
use crate::janitor::{Directory, Janitor};
use crate::recording::{Event, Sink};

const NAME: &str = "acks";
/// The longest line that is one mark.
const LONGEST: usize = 1 << 16;
/// The file's greatest size.
const LARGEST: u64 = 1 << 30;
/// Not a number of bytes that anyone has written.
const UNKNOWN: u64 = u64::MAX;

/// The mounted file. Dropped, it is unmounted and its directory removed.
pub struct Acks {
    dir: PathBuf,
    path: PathBuf,
    lines: Arc<Lines>,
    session: Option<BackgroundSession>,
    janitor: Option<Janitor>,
}

/// Mounts a file whose lines go to the sink.
///
/// # Errors
/// [`DriveError::Missing`] if there is no FUSE, [`DriveError::System`] if it cannot be mounted.
pub fn mount(sink: Arc<dyn Sink>) -> Result<Acks, DriveError> {
    let what = "a directory for $TREERING_ACKS";
    let dir = tempfile::Builder::new().prefix("treering-acks-").tempdir();
    let dir = dir.map_err(DriveError::system(what))?;
    // The program may run as somebody else.
    let open = fs_mode(dir.path(), 0o755);
    open.map_err(DriveError::system(what))?;
    let bytes = memfd_create("treering-acks", MemfdFlags::CLOEXEC).map_err(io::Error::from);
    let bytes = bytes.map_err(DriveError::system("memory for $TREERING_ACKS"))?;
    let lines = Arc::new(Lines {
        sink,
        user_bytes: AtomicU64::new(UNKNOWN),
        state: Mutex::new(State {
            bytes: bytes.into(),
            size: 0,
            last_handle: 0,
            pieces: FxHashMap::default(),
        }),
    });
    let mut config = Config::default();
    config.mount_options = vec![MountOption::FSName("treering-acks".into())];
    config.acl = users();
    let janitor = Janitor::watch(dir.path(), Directory::Remove)?;
    let session = Session::new(Served(Arc::clone(&lines)), dir.path(), &config);
    let session = session.and_then(Session::spawn);
    let session = session.map_err(|error| no_fuse(error, "mounting $TREERING_ACKS"))?;
    let dir = dir.keep();
    Ok(Acks {
        path: dir.join(NAME),
        dir,
        lines,
        session: Some(session),
        janitor: Some(janitor),
    })
}

fn fs_mode(path: &Path, mode: u32) -> io::Result<()> {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
}

impl Acks {
    /// The file, for `$TREERING_ACKS`.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The bytes of the last line `user_bytes N`, if there was one.
    #[must_use]
    pub fn user_bytes(&self) -> Option<u64> {
        let bytes = self.lines.user_bytes.load(Ordering::Acquire);
        (bytes != UNKNOWN).then_some(bytes)
    }
}

impl Drop for Acks {
    fn drop(&mut self) {
        if let Some(session) = self.session.take() {
            // Nobody is left to hear of an error, and the janitor is no help where this is none.
            match unmount(&self.dir) {
                Attempt::Detached(_) => std::mem::forget(session),
                Attempt::Gone | Attempt::Failed(_) => drop(session.umount_and_join()),
            }
        }
        // Lines without an end, of files that are still open.
        self.lines.end_all();
        let _ = std::fs::remove_dir(&self.dir);
        self.janitor = None;
    }
}

struct Lines {
    sink: Arc<dyn Sink>,
    user_bytes: AtomicU64,
    state: Mutex<State>,
}

struct State {
    bytes: File,
    size: u64,
    last_handle: u64,
    /// The beginning of a line, by open file.
    pieces: FxHashMap<u64, Vec<u8>>,
}

impl Lines {
    fn write(&self, handle: u64, offset: u64, data: &[u8]) -> Result<(), Errno> {
        let mut state = self.state.lock();
        let end = offset
            .checked_add(data.len() as u64)
            .filter(|end| *end <= LARGEST);
        let end = end.ok_or(Errno::EFBIG)?;
        let stored = state.bytes.write_all_at(data, offset);
        stored.map_err(|_| Errno::ENOSPC)?;
        state.size = state.size.max(end);
        let piece = state.pieces.entry(handle).or_default();
        for part in data.split_inclusive(|b| *b == b'\n') {
            match part.strip_suffix(b"\n") {
                Some(rest) => {
                    piece.extend_from_slice(rest);
                    self.mark(std::mem::take(piece))?;
                }
                None => piece.extend_from_slice(part),
            }
            while piece.len() > LONGEST {
                let rest = piece.split_off(LONGEST);
                self.mark(std::mem::replace(piece, rest))?;
            }
        }
        Ok(())
    }

    fn mark(&self, line: Vec<u8>) -> Result<(), Errno> {
        let number = line
            .strip_prefix(b"user_bytes ")
            .and_then(|n| std::str::from_utf8(n).ok());
        if let Some(number) = number.and_then(|n| n.trim().parse().ok()) {
            self.user_bytes.store(number, Ordering::Release);
        }
        self.sink.note(Event::Mark { line }).map_err(|_| Errno::EIO)
    }

    fn end(&self, handle: u64) {
        let mut state = self.state.lock();
        if let Entry::Occupied(entry) = state.pieces.entry(handle) {
            let line = entry.remove();
            if !line.is_empty() {
                // `close` has returned already, so nothing more was acknowledged.
                let _ = self.mark(line);
            }
        }
    }

    fn end_all(&self) {
        let handles: Vec<u64> = self.state.lock().pieces.keys().copied().collect();
        for handle in handles {
            self.end(handle);
        }
    }
}

struct Served(Arc<Lines>);

impl Served {
    fn file(&self) -> OneFile<'_> {
        OneFile {
            name: NAME,
            size: self.0.state.lock().size,
            keep: Duration::ZERO,
        }
    }
}

impl Filesystem for Served {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.file().lookup(parent, name, reply);
    }

    fn getattr(&self, _: &Request, node: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        self.file().getattr(node, reply);
    }

    fn setattr(
        &self,
        req: &Request,
        node: INodeNo,
        _: Option<u32>,
        _: Option<u32>,
        _: Option<u32>,
        size: Option<u64>,
        _: Option<fuser::TimeOrNow>,
        _: Option<fuser::TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        if let Some(size) = size.filter(|_| node == FILE) {
            let mut state = self.0.state.lock();
            if size > LARGEST || state.bytes.set_len(size).is_err() {
                return reply.error(Errno::EFBIG);
            }
            state.size = size;
        }
        self.getattr(req, node, None, reply);
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let mut state = self.0.state.lock();
        state.last_handle += 1;
        reply.opened(FileHandle(state.last_handle), FopenFlags::FOPEN_DIRECT_IO);
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let state = self.0.state.lock();
        let len = u64::from(size).min(state.size.saturating_sub(offset));
        let mut bytes = vec![0; len as usize];
        match state.bytes.read_exact_at(&mut bytes, offset) {
            Ok(()) => reply.data(&bytes),
            Err(_) => reply.error(Errno::EIO),
        }
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.0.write(handle.0, offset, data) {
            Ok(()) => reply.written(data.len() as u32),
            Err(error) => reply.error(error),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        reply.ok();
    }

    fn release(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        self.0.end(handle.0);
        reply.ok();
    }

    fn readdir(
        &self,
        _: &Request,
        node: INodeNo,
        _: FileHandle,
        offset: u64,
        reply: ReplyDirectory,
    ) {
        self.file().readdir(node, offset, reply);
    }
}
