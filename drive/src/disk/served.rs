//! The file `disk`: a FUSE file system of one file, whose writes, flushes and holes are recorded.
//!
//! | request | in the image | recorded |
//! |---|---|---|
//! | `WRITE` | bytes | [`Event::Write`], and before it [`Event::Region`] if its contents tell more |
//! | `FSYNC` | nothing: the image is the drive | [`Event::Flush`] of the drive |
//! | `FALLOCATE` with `PUNCH_HOLE` or `ZERO_RANGE` | zeros, holes where whole blocks are | [`Event::Punch`], then [`Event::Discard`] of the whole blocks |
//!
//! One lock orders writes in the recording as in the image. Reads take no lock: a read that is
//! concurrent with a write sees either, as on a real drive.

use std::ffi::OsStr;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fuser::{
    Errno, FileHandle, Filesystem, FopenFlags, INodeNo, InitFlags, KernelConfig, LockOwner,
    OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyLseek, ReplyOpen,
    ReplyStatfs, ReplyWrite, Request, WriteFlags,
};
use parking_lot::Mutex;
use treering_engine::BLOCK_SIZE;

use crate::faults::Faults;
use crate::fuse::OneFile;
use crate::image::Image;
use crate::layout::Sniffer;
use crate::recording::event::{FlushKind, Write};
use crate::recording::{Event, Extent, NodeId, Sink};

const BLOCK: u64 = BLOCK_SIZE as u64;
/// Nothing changes but through this kernel, so it may remember for long.
const TTL: Duration = Duration::from_secs(3600);

/// What is shared by the requests of a disk and by the mount that uses it.
pub(super) struct Disk {
    pub(super) image: Image,
    pub(super) sink: Arc<dyn Sink>,
    /// Set when the recording has ended: whatever still comes is refused.
    pub(super) closed: AtomicBool,
    pub(super) faults: Arc<Faults>,
    /// Orders writes; knows what metadata lies where.
    order: Mutex<Sniffer>,
}

impl Disk {
    pub(super) fn new(
        image: Image,
        sniffer: Sniffer,
        (sink, faults): (Arc<dyn Sink>, Arc<Faults>),
    ) -> Disk {
        let (closed, order) = (AtomicBool::new(false), Mutex::new(sniffer));
        Disk {
            image,
            sink,
            closed,
            faults,
            order,
        }
    }

    /// These blocks hold a file's bytes now; should metadata be written there, it is told anew.
    pub(super) fn forget(&self, extents: &[Extent]) {
        self.order.lock().forget(extents);
    }

    fn size(&self) -> u64 {
        self.image.blocks() * BLOCK
    }

    fn check(&self, offset: u64, len: u64) -> Result<(), Errno> {
        if self.closed.load(Ordering::Acquire) {
            return Err(Errno::EIO);
        }
        match offset.checked_add(len) {
            Some(end) if end <= self.size() => Ok(()),
            _ => Err(Errno::ENOSPC),
        }
    }

    fn write(&self, offset: u64, data: &[u8], how: Written) -> Result<(), Errno> {
        self.check(offset, data.len() as u64)?;
        let len = u32::try_from(data.len()).map_err(|_| Errno::EINVAL)?;
        if len == 0 {
            return Ok(());
        }
        let (first, last) = (offset / BLOCK, (offset + u64::from(len) - 1) / BLOCK);
        let extent = Extent {
            lba: first,
            blocks: last - first + 1,
        };
        let write = Write {
            node: NodeId::ROOT,
            offset,
            len,
            extents: vec![extent],
            synced: how.synced,
            cached: how.cached,
        };
        let mut sniffer = self.order.lock();
        for (name, extents) in sniffer.look(offset, data) {
            let name = name.to_owned();
            let event = Event::Region { name, extents };
            self.sink.note(event).map_err(|_| Errno::EIO)?;
        }
        // Recorded first: a recording may hold a write that failed, as a drive may hold a write
        // that it did not acknowledge, but never lacks one that succeeded.
        self.sink.write(write, data).map_err(|_| Errno::EIO)?;
        self.faults.written(NodeId::ROOT, offset, u64::from(len));
        self.image.write(offset, data).map_err(errno)
    }

    fn flush(&self) -> Result<(), Errno> {
        self.check(0, 0)?;
        let _order = self.order.lock();
        let (node, kind) = (NodeId::ROOT, FlushKind::Drive);
        if self.faults.fail_flush() {
            let failed = self.sink.note(Event::FailedFlush { node, kind });
            return failed.map_err(|_| Errno::EIO).and(Err(Errno::EIO));
        }
        let flushed = self.sink.note(Event::Flush { node, kind });
        flushed.map_err(|_| Errno::EIO)
    }

    fn punch(&self, offset: u64, len: u64) -> Result<(), Errno> {
        let end = offset.saturating_add(len).min(self.size());
        self.check(offset, end.saturating_sub(offset))?;
        if end <= offset {
            return Ok(());
        }
        let (first, last) = (offset.div_ceil(BLOCK), end / BLOCK);
        let node = NodeId::ROOT;
        let len = end - offset;
        let _order = self.order.lock();
        let noted = self.sink.note(Event::Punch { node, offset, len });
        noted.map_err(|_| Errno::EIO)?;
        if first >= last {
            return self.zero(offset, end);
        }
        let extent = Extent {
            lba: first,
            blocks: last - first,
        };
        let extents = vec![extent];
        let noted = self.sink.note(Event::Discard { node, extents });
        noted.map_err(|_| Errno::EIO)?;
        self.zero(offset, first * BLOCK)?;
        self.image.discard(extent).map_err(errno)?;
        self.zero(last * BLOCK, end)
    }

    /// Zeroes less than two blocks.
    fn zero(&self, from: u64, to: u64) -> Result<(), Errno> {
        let zeros = [0; 2 * BLOCK_SIZE];
        let len = to.saturating_sub(from) as usize;
        let zeros = zeros.get(..len).ok_or(Errno::EINVAL)?;
        self.image.write(from, zeros).map_err(errno)
    }
}

/// How a write came.
#[derive(Clone, Copy)]
struct Written {
    synced: bool,
    cached: bool,
}

fn errno(error: io::Error) -> Errno {
    Errno::from_i32(error.raw_os_error().unwrap_or(libc::EIO))
}

fn answer(reply: ReplyEmpty, result: Result<(), Errno>) {
    match result {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error),
    }
}

/// Who may keep bytes above the file `disk`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Above {
    /// Nobody: each write is a request.
    Nothing,
    /// The kernel's page cache, which writes back later. A write beyond the end of the disk fails
    /// only then, so `fsync` tells of it.
    PageCache,
}

/// The file system that the kernel talks to.
pub(super) struct Served {
    pub(super) disk: Arc<Disk>,
    pub(super) above: Above,
    /// The file's name.
    pub(super) name: String,
}

impl Served {
    fn file(&self) -> OneFile<'_> {
        OneFile {
            name: &self.name,
            size: self.disk.size(),
            keep: TTL,
        }
    }
}

impl Filesystem for Served {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // What an older kernel does not have, it does without.
        let _ = config.add_capabilities(InitFlags::FUSE_ASYNC_DIO);
        let _ = match self.above {
            Above::Nothing => config.add_capabilities(InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP),
            Above::PageCache => config.add_capabilities(InitFlags::FUSE_WRITEBACK_CACHE),
        };
        let _ = config.set_max_background(64);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.file().lookup(parent, name, reply);
    }

    fn getattr(&self, _: &Request, node: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        self.file().getattr(node, reply);
    }

    /// Times may be set, without effect; the size of a disk may not.
    fn setattr(
        &self,
        _: &Request,
        node: INodeNo,
        _: Option<u32>,
        _: Option<u32>,
        _: Option<u32>,
        size: Option<u64>,
        _: Option<fuser::TimeOrNow>,
        _: Option<fuser::TimeOrNow>,
        _: Option<std::time::SystemTime>,
        _: Option<FileHandle>,
        _: Option<std::time::SystemTime>,
        _: Option<std::time::SystemTime>,
        _: Option<std::time::SystemTime>,
        _: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let file = self.file();
        match size {
            // `O_TRUNC` on a block device has no effect either.
            Some(size) if size != file.size && size != 0 => reply.error(Errno::EINVAL),
            _ => file.getattr(node, reply),
        }
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let flags = match self.above {
            Above::Nothing => {
                FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES
            }
            Above::PageCache => FopenFlags::FOPEN_KEEP_CACHE,
        };
        reply.opened(FileHandle(0), flags);
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
        let len = u64::from(size).min(self.disk.size().saturating_sub(offset));
        if self.disk.faults.fail_read(NodeId::ROOT, offset, len) {
            return reply.error(Errno::EIO);
        }
        let mut bytes = vec![0; len as usize];
        match self.disk.image.read(offset, &mut bytes) {
            Ok(()) => reply.data(&bytes),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        how: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let cached = how.contains(WriteFlags::FUSE_WRITE_CACHE);
        let synced = !cached && flags.0 & libc::O_DSYNC != 0;
        match self.disk.write(offset, data, Written { synced, cached }) {
            Ok(()) => reply.written(data.len() as u32),
            Err(error) => reply.error(error),
        }
    }

    /// `close` promises nothing on a disk.
    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        answer(reply, self.disk.flush());
    }

    fn fallocate(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        len: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let holes = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_ZERO_RANGE;
        let result = match mode & holes {
            // Everything on a disk is allocated.
            0 => self.disk.check(offset, len),
            _ => self.disk.punch(offset, len),
        };
        answer(reply, result);
    }

    fn lseek(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        // As on a block device, everything is data.
        let size = self.disk.size() as i64;
        match whence {
            libc::SEEK_DATA if (0..size).contains(&offset) => reply.offset(offset),
            libc::SEEK_HOLE if (0..size).contains(&offset) => reply.offset(size),
            libc::SEEK_DATA | libc::SEEK_HOLE => reply.error(Errno::ENXIO),
            _ => reply.error(Errno::EINVAL),
        }
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

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        // The block size here is the unit of discards of a loop device.
        let blocks = self.disk.image.blocks();
        reply.statfs(
            blocks,
            0,
            0,
            2,
            0,
            BLOCK_SIZE as u32,
            255,
            BLOCK_SIZE as u32,
        );
    }
}
