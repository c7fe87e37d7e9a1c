//! The kernel's requests, handed to [`State`] under its lock.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::time::SystemTime;

use fuser::{
    BsdFileFlags, CopyFileRangeFlags, Errno, FileAttr, FileHandle, Filesystem, FopenFlags, INodeNo,
    InitFlags, KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyLseek, ReplyOpen, ReplyStatfs,
    ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};
use treering_engine::BLOCK_SIZE;

use super::attributes::NewAttributes;
use super::content::{How, Whence};
use super::names::{NAME_MAX, NewNode};
use super::nodes::{Time, file_type};
use super::seek::Seek;
use super::state::{Answer, Shared, State};
use super::words::{
    ATTRIBUTES_TTL, GENERATION, caller, empty, entry, must, node, open_flags, time, value, writes,
};
use crate::face::PageCache;
use crate::recording::event::FlushKind;
use crate::recording::{NodeId, NodeKind};

/// The largest write.
const MAX_WRITE: u32 = 1 << 20;

/// The file system as `fuser` wants it.
pub(super) struct Files {
    pub(super) shared: Arc<Shared>,
    pub(super) page_cache: PageCache,
    pub(super) seeks: mpsc::Sender<Seek>,
}

thread_local! {
    /// Where a read's bytes go on their way to the kernel.
    static BYTES: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Files {
    fn change<T>(&self, operation: impl FnOnce(&mut State) -> Answer<T>) -> Answer<T> {
        operation(&mut self.shared.state.write())
    }

    fn make(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        new: NewNode,
    ) -> Answer<FileAttr> {
        let (parent, who) = (node(parent), caller(request));
        self.change(|state| state.make(parent, name.as_bytes(), new, who))
    }

    fn flush_of(&self, id: NodeId, kind: FlushKind, reply: ReplyEmpty) {
        self.shared.counters.flushes.fetch_add(1, Ordering::Relaxed);
        empty(reply, self.change(|state| state.flush(id, kind)));
    }
}

impl Filesystem for Files {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Locks are left to the kernel: all users of the drive are on this machine, so its own
        // answers are exact.
        let mut wanted = InitFlags::FUSE_PARALLEL_DIROPS
            | InitFlags::FUSE_ASYNC_DIO
            | InitFlags::FUSE_DO_READDIRPLUS
            | InitFlags::FUSE_READDIRPLUS_AUTO
            | InitFlags::FUSE_CACHE_SYMLINKS
            | InitFlags::FUSE_HANDLE_KILLPRIV_V2
            | InitFlags::FUSE_EXPLICIT_INVAL_DATA
            | InitFlags::FUSE_POSIX_ACL
            | InitFlags::FUSE_DONT_MASK
            | InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP;
        if self.page_cache == PageCache::WriteBack {
            wanted |= InitFlags::FUSE_WRITEBACK_CACHE;
        }
        for flag in wanted.iter() {
            // An older kernel does without.
            let _ = config.add_capabilities(flag);
        }
        let _ = config.set_max_write(MAX_WRITE);
        let _ = config.set_max_background(64);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        entry(
            reply,
            self.change(|state| state.lookup(node(parent), name.as_bytes())),
        );
    }

    fn forget(&self, _: &Request, ino: INodeNo, count: u64) {
        self.shared.state.write().forget(node(ino), count);
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        let state = self.shared.state.read();
        match state.node(node(ino)) {
            Ok(found) => reply.attr(&ATTRIBUTES_TTL, &found.attributes(node(ino))),
            Err(error) => reply.error(error),
        }
    }

    fn setattr(
        &self,
        request: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        ctime: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let new = NewAttributes {
            mode,
            uid,
            gid,
            size,
            accessed: atime.map(time),
            modified: mtime.map(time),
            changed: ctime.map(Time::of_request),
        };
        match self.change(|state| state.set_attributes(node(ino), new, caller(request))) {
            Ok(found) => reply.attr(&ATTRIBUTES_TTL, &found),
            Err(error) => reply.error(error),
        }
    }

    fn readlink(&self, _: &Request, ino: INodeNo, reply: ReplyData) {
        let state = self.shared.state.read();
        match state.target(node(ino)) {
            Ok(target) => reply.data(target),
            Err(error) => reply.error(error),
        }
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        device: u32,
        reply: ReplyEntry,
    ) {
        let kind = match mode & libc::S_IFMT {
            libc::S_IFIFO => NodeKind::Fifo,
            libc::S_IFSOCK => NodeKind::Socket,
            libc::S_IFCHR => NodeKind::CharDevice,
            libc::S_IFBLK => NodeKind::BlockDevice,
            libc::S_IFREG => NodeKind::File,
            _ => return reply.error(Errno::EINVAL),
        };
        let new = NewNode {
            kind,
            mode: mode & 0o7777,
            umask,
            device,
            target: Vec::new(),
        };
        entry(reply, self.make(request, parent, name, new));
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        reply: ReplyEntry,
    ) {
        let (kind, mode) = (NodeKind::Directory, mode & 0o7777);
        let new = NewNode {
            kind,
            mode,
            umask,
            device: 0,
            target: Vec::new(),
        };
        entry(reply, self.make(request, parent, name, new));
    }

    fn symlink(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let target = target.as_os_str().as_bytes().to_vec();
        let new = NewNode {
            kind: NodeKind::Symlink,
            mode: 0o777,
            umask: 0,
            device: 0,
            target,
        };
        entry(reply, self.make(request, parent, name, new));
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(
            reply,
            self.change(|state| state.unlink(node(parent), name.as_bytes())),
        );
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(
            reply,
            self.change(|state| state.rmdir(node(parent), name.as_bytes())),
        );
    }

    fn rename(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        to: INodeNo,
        to_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let from = (node(parent), name.as_bytes());
        let to = (node(to), to_name.as_bytes());
        empty(
            reply,
            self.change(|state| state.rename(from, to, flags, caller(request))),
        );
    }

    fn link(&self, _: &Request, ino: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let name = name.as_bytes();
        entry(
            reply,
            self.change(|state| state.link(node(ino), node(parent), name)),
        );
    }

    fn open(&self, _: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        match self.change(|state| state.open(node(ino), writes(flags))) {
            Ok(()) => reply.opened(FileHandle(0), open_flags(self.page_cache)),
            Err(error) => reply.error(error),
        }
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let (kind, mode) = (NodeKind::File, mode & 0o7777);
        let new = NewNode {
            kind,
            mode,
            umask,
            device: 0,
            target: Vec::new(),
        };
        let made = self.change(|state| {
            let found = state.make(node(parent), name.as_bytes(), new, caller(request))?;
            state.open(node(found.ino), writes(OpenFlags(flags)))?;
            Ok(found)
        });
        match made {
            Ok(found) => {
                // `fuser` has one time to live for both.
                let (handle, flags) = (FileHandle(0), open_flags(self.page_cache));
                reply.created(&ATTRIBUTES_TTL, &found, GENERATION, handle, flags);
            }
            Err(error) => reply.error(error),
        }
    }

    fn release(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        flags: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        empty(
            reply,
            self.change(|state| state.release(node(ino), writes(flags))),
        );
    }

    fn read(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        BYTES.with_borrow_mut(|bytes| {
            let read = self
                .shared
                .state
                .read()
                .read(node(ino), offset, size as usize, bytes);
            match read {
                Ok(touch) => {
                    let count = bytes.len() as u64;
                    self.shared
                        .counters
                        .read
                        .fetch_add(count, Ordering::Relaxed);
                    reply.data(bytes);
                    if touch {
                        self.shared.state.write().touch_read(node(ino));
                    }
                }
                Err(error) => reply.error(error),
            }
        });
    }

    fn write(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        bytes: &[u8],
        write_flags: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let how = How {
            synced: flags.0 & libc::O_DSYNC != 0,
            cached: write_flags.contains(WriteFlags::FUSE_WRITE_CACHE),
            direct: flags.0 & libc::O_DIRECT != 0,
            kill_privileges: write_flags.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID),
        };
        match self.change(|state| state.write(node(ino), offset, bytes, how)) {
            Ok(count) => {
                let written = &self.shared.counters.written;
                written.fetch_add(count as u64, Ordering::Relaxed);
                // At most `MAX_WRITE`.
                reply.written(count as u32);
            }
            Err(error) => reply.error(error),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        // The kernel has written its dirty pages; there is nothing else to do, now or later.
        reply.error(Errno::ENOSYS);
    }

    fn fsync(&self, _: &Request, ino: INodeNo, _: FileHandle, data: bool, reply: ReplyEmpty) {
        let kind = match data {
            true => FlushKind::Data,
            false => FlushKind::File,
        };
        self.flush_of(node(ino), kind, reply);
    }

    fn fsyncdir(&self, _: &Request, ino: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.flush_of(node(ino), FlushKind::Directory, reply);
    }

    fn opendir(&self, _: &Request, ino: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        match self.change(|state| state.open(node(ino), false)) {
            Ok(()) => reply.opened(FileHandle(0), FopenFlags::empty()),
            Err(error) => reply.error(error),
        }
    }

    fn releasedir(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        _: OpenFlags,
        reply: ReplyEmpty,
    ) {
        empty(reply, self.change(|state| state.release(node(ino), false)));
    }

    fn readdir(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let state = self.shared.state.read();
        let directory = match state.directory(node(ino)) {
            Ok(directory) => directory,
            Err(error) => return reply.error(error),
        };
        for (cookie, name, id) in directory.list(node(ino), offset) {
            let Ok(found) = state.node(id) else { continue };
            let (kind, name) = (file_type(found.kind()), OsStr::from_bytes(name));
            if reply.add(INodeNo(id.0), cookie, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn readdirplus(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        let mut state = self.shared.state.write();
        let directory = match state.directory(node(ino)) {
            Ok(directory) => directory,
            Err(error) => return reply.error(error),
        };
        let mut told = Vec::new();
        for (cookie, name, id) in directory.list(node(ino), offset) {
            let Ok(found) = state.node(id) else { continue };
            let (number, found) = (INodeNo(id.0), found.attributes(id));
            let entry = OsStr::from_bytes(name);
            if reply.add(number, cookie, entry, &ATTRIBUTES_TTL, &found, GENERATION) {
                break;
            }
            if name != b"." && name != b".." {
                told.push(id);
            }
        }
        for id in told {
            state.remember(id);
        }
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let state = self.shared.state.read();
        let (blocks, free) = (state.space.blocks(), state.room());
        let files = state.nodes.len() as u64;
        let left = u64::from(u32::MAX) - files;
        let block = BLOCK_SIZE as u32;
        reply.statfs(
            blocks,
            free,
            free,
            files + left,
            left,
            block,
            NAME_MAX as u32,
            block,
        );
    }

    fn setxattr(
        &self,
        request: &Request,
        ino: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _: u32,
        reply: ReplyEmpty,
    ) {
        let Some(must) = must(flags) else {
            return reply.error(Errno::EINVAL);
        };
        let (id, name, who) = (node(ino), name.as_bytes(), caller(request));
        empty(
            reply,
            self.change(|state| state.setxattr(id, name, value, must, who)),
        );
    }

    fn getxattr(&self, _: &Request, ino: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        let state = self.shared.state.read();
        value(reply, size, state.getxattr(node(ino), name.as_bytes()));
    }

    fn listxattr(&self, _: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        let names = self.shared.state.read().listxattr(node(ino));
        value(reply, size, names.as_deref().map_err(|error| *error));
    }

    fn removexattr(&self, _: &Request, ino: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(
            reply,
            self.change(|state| state.removexattr(node(ino), name.as_bytes())),
        );
    }

    fn fallocate(
        &self,
        request: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        len: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let keep_size = mode & libc::FALLOC_FL_KEEP_SIZE != 0;
        let (id, who) = (node(ino), caller(request));
        let done = self.change(|state| match mode & !libc::FALLOC_FL_KEEP_SIZE {
            0 => state.allocate(id, offset, len, keep_size, who),
            libc::FALLOC_FL_PUNCH_HOLE if keep_size => state.punch(id, offset, len, who),
            libc::FALLOC_FL_ZERO_RANGE => state.zero_range(id, offset, len, keep_size, who),
            _ => Err(Errno::EOPNOTSUPP),
        });
        empty(reply, done);
    }

    fn lseek(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        let whence = match whence {
            libc::SEEK_DATA => Whence::Data,
            libc::SEEK_HOLE => Whence::Hole,
            _ => return reply.error(Errno::EINVAL),
        };
        let Ok(offset) = u64::try_from(offset) else {
            return reply.error(Errno::ENXIO);
        };
        let seek = Seek {
            node: node(ino),
            offset,
            whence,
            reply,
        };
        if let Err(mpsc::SendError(seek)) = self.seeks.send(seek) {
            seek.reply.error(Errno::EIO);
        }
    }

    fn copy_file_range(
        &self,
        request: &Request,
        from: INodeNo,
        _: FileHandle,
        offset: u64,
        to: INodeNo,
        _: FileHandle,
        to_offset: u64,
        len: u64,
        _: CopyFileRangeFlags,
        reply: ReplyWrite,
    ) {
        // The answer has 32 bits; the program asks again for the rest.
        let len = len.min(1 << 30);
        let (from, to) = ((node(from), offset), (node(to), to_offset));
        match self.change(|state| state.copy(from, to, len, caller(request))) {
            Ok(count) => {
                let written = &self.shared.counters.written;
                written.fetch_add(count, Ordering::Relaxed);
                reply.written(count as u32);
            }
            Err(error) => reply.error(error),
        }
    }
}
