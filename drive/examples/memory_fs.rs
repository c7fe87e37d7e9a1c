//! The least that FUSE can do: one file `file`, whose bytes are in memory. It records nothing,
//! places nothing and has no names; the face `files` is measured beside it.
//!
//! `memory_fs DIR CAPACITY_MIB [--write-through]` serves until it is unmounted.

use std::ffi::OsStr;
use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{
    BsdFileFlags, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags,
    Generation, INodeNo, InitFlags, KernelConfig, LockOwner, MountOption, OpenFlags, ReplyAttr,
    ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use parking_lot::Mutex;

const TTL: Duration = Duration::from_secs(86_400);
const FILE: INodeNo = INodeNo(2);

struct Memory {
    /// The file: its room, and its size.
    file: Mutex<(Vec<u8>, u64)>,
    write_back: bool,
}

impl Memory {
    fn attributes(&self, ino: INodeNo) -> FileAttr {
        let directory = ino == INodeNo::ROOT;
        let size = if directory { 4096 } else { self.file.lock().1 };
        FileAttr {
            ino,
            size,
            blocks: size / 512,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind: if directory {
                FileType::Directory
            } else {
                FileType::RegularFile
            },
            perm: 0o777,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }
}

impl Filesystem for Memory {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let mut wanted = InitFlags::FUSE_ASYNC_DIO | InitFlags::FUSE_HANDLE_KILLPRIV_V2;
        if self.write_back {
            wanted |= InitFlags::FUSE_WRITEBACK_CACHE;
        }
        let _ = config.add_capabilities(wanted);
        let _ = config.set_max_write(1 << 20);
        Ok(())
    }

    fn lookup(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match name.to_str() {
            Some("file") => reply.entry(&TTL, &self.attributes(FILE), Generation(0)),
            _ => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&TTL, &self.attributes(ino));
    }

    fn setattr(
        &self,
        _: &Request,
        ino: INodeNo,
        _: Option<u32>,
        _: Option<u32>,
        _: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        if let Some(size) = size {
            self.file.lock().1 = size;
        }
        reply.attr(&TTL, &self.attributes(ino));
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::FOPEN_KEEP_CACHE);
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
        let file = self.file.lock();
        let end = (offset + u64::from(size)).min(file.1);
        reply.data(
            file.0
                .get(offset as usize..end as usize)
                .unwrap_or_default(),
        );
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        bytes: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let mut file = self.file.lock();
        let end = offset + bytes.len() as u64;
        match file.0.get_mut(offset as usize..end as usize) {
            Some(place) => {
                place.copy_from_slice(bytes);
                file.1 = file.1.max(end);
                reply.written(bytes.len() as u32);
            }
            None => reply.error(Errno::ENOSPC),
        }
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        reply.ok();
    }
}

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let (Some(dir), Some(mib)) = (
        arguments.get(1),
        arguments.get(2).and_then(|mib| mib.parse::<usize>().ok()),
    ) else {
        eprintln!("usage: memory_fs DIR CAPACITY_MIB [--write-through]");
        std::process::exit(2);
    };
    let write_back = arguments
        .get(3)
        .is_none_or(|flag| flag != "--write-through");
    let mut config = Config::default();
    config.mount_options = vec![MountOption::FSName("memory_fs".to_owned())];
    let memory = Memory {
        file: Mutex::new((vec![0; mib << 20], 0)),
        write_back,
    };
    fuser::mount(memory, dir, &config)
}
