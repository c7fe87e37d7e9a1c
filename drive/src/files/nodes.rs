//! A node: what a file, directory or other thing is, apart from its names.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{FileAttr, FileType, INodeNo};
use treering_engine::BLOCK_SIZE;

use super::directory::Directory;
use super::extents::Extents;
use crate::recording::{NodeId, NodeKind};

/// Set-user-id.
pub(super) const SUID: u32 = libc::S_ISUID;
/// Set-group-id.
pub(super) const SGID: u32 = libc::S_ISGID;
/// Execution by the group.
pub(super) const GROUP_EXECUTE: u32 = libc::S_IXGRP;

/// Extended attributes by name.
pub(super) type Xattrs = BTreeMap<Vec<u8>, Vec<u8>>;

/// Nanoseconds since 1970, as attributes have them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Time(pub(super) i64);

impl Time {
    pub(super) fn now() -> Time {
        Time::of(SystemTime::now())
    }

    /// Times beyond the years 1677 to 2262 become the nearest that can be kept.
    pub(super) fn of(time: SystemTime) -> Time {
        let nanos = |span: Duration| i64::try_from(span.as_nanos()).unwrap_or(i64::MAX);
        Time(match time.duration_since(UNIX_EPOCH) {
            Ok(after) => nanos(after),
            Err(before) => -nanos(before.duration()),
        })
    }

    /// A time as `fuser` hands it over. Before 1970 it counts the fraction of a second in the
    /// wrong direction: -0.7 s, which the kernel sends as -1 s and 0.3 s, arrives as -1.3 s.
    pub(super) fn of_request(time: SystemTime) -> Time {
        const SECOND: i64 = 1_000_000_000;
        match Time::of(time) {
            Time(nanos) if nanos < 0 => {
                let (seconds, fraction) = (-(-nanos / SECOND), -nanos % SECOND);
                Time(seconds * SECOND + fraction)
            }
            after => after,
        }
    }

    fn system(self) -> SystemTime {
        let span = Duration::from_nanos(self.0.unsigned_abs());
        if self.0 < 0 {
            UNIX_EPOCH - span
        } else {
            UNIX_EPOCH + span
        }
    }
}

/// The times of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Times {
    /// Last read.
    pub(super) accessed: Time,
    /// Last change of the contents.
    pub(super) modified: Time,
    /// Last change of the contents or attributes.
    pub(super) changed: Time,
}

/// What a node holds.
#[derive(Clone, Debug)]
pub(super) enum Body {
    /// A file: where its blocks are.
    File(Extents),
    /// A directory: its entries.
    Directory(Directory),
    /// A symbolic link: its target.
    Symlink(Vec<u8>),
    /// A pipe, socket or device: nothing.
    Special(NodeKind),
}

impl Body {
    /// The body of a node of this kind that holds nothing; the target of a symbolic link.
    pub(super) fn empty(kind: NodeKind, target: Vec<u8>) -> Body {
        match kind {
            NodeKind::File => Body::File(Extents::default()),
            NodeKind::Directory => Body::Directory(Directory::new(NodeId::ROOT)),
            NodeKind::Symlink => Body::Symlink(target),
            special => Body::Special(special),
        }
    }
}

/// A file, directory, symbolic link or other node.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// Permission bits, with suid, sgid and sticky.
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    /// Device number of a device.
    pub(super) device: u32,
    /// Names; for directories also `.` and the `..` of their subdirectories.
    pub(super) links: u32,
    /// Size in bytes of a file.
    pub(super) size: u64,
    pub(super) times: Times,
    pub(super) body: Body,
    pub(super) xattrs: Xattrs,
    /// How often the kernel was told of it and has not forgotten it.
    pub(super) lookups: u64,
    /// Open files.
    pub(super) opens: u32,
    /// Open files that can be written to.
    pub(super) writers: u32,
    /// Whether the journal has an older time of the last change.
    pub(super) unsaved: bool,
    /// Whether its contents are gone, and only the kernel still knows its number.
    pub(super) freed: bool,
}

impl Node {
    /// A node without names.
    pub(super) fn new(body: Body, mode: u32, uid: u32, gid: u32) -> Node {
        let now = Time::now();
        Node {
            mode,
            uid,
            gid,
            device: 0,
            links: 0,
            size: 0,
            times: Times {
                accessed: now,
                modified: now,
                changed: now,
            },
            body,
            xattrs: Xattrs::new(),
            lookups: 0,
            opens: 0,
            writers: 0,
            unsaved: false,
            freed: false,
        }
    }

    pub(super) fn kind(&self) -> NodeKind {
        match &self.body {
            Body::File(_) => NodeKind::File,
            Body::Directory(_) => NodeKind::Directory,
            Body::Symlink(_) => NodeKind::Symlink,
            Body::Special(kind) => *kind,
        }
    }

    pub(super) fn is_directory(&self) -> bool {
        matches!(self.body, Body::Directory(_))
    }

    /// Takes away the bits that let a program run with its owner's rights.
    pub(super) fn kill_privileges(&mut self) {
        self.mode &= !SUID;
        if self.mode & GROUP_EXECUTE != 0 {
            self.mode &= !SGID;
        }
    }

    /// The contents changed just now.
    pub(super) fn touch(&mut self) {
        self.times.modified = Time::now();
        self.times.changed = self.times.modified;
    }

    /// The attributes as the kernel wants them.
    pub(super) fn attributes(&self, id: NodeId) -> FileAttr {
        let block = BLOCK_SIZE as u64;
        let (size, blocks) = match &self.body {
            Body::File(extents) => (self.size, extents.blocks()),
            Body::Directory(_) => (block, 0),
            Body::Symlink(target) => (target.len() as u64, 0),
            Body::Special(_) => (0, 0),
        };
        FileAttr {
            ino: INodeNo(id.0),
            size,
            blocks: blocks * (block / 512),
            atime: self.times.accessed.system(),
            mtime: self.times.modified.system(),
            ctime: self.times.changed.system(),
            crtime: UNIX_EPOCH,
            kind: file_type(self.kind()),
            // Twelve bits.
            perm: (self.mode & 0o7777) as u16,
            nlink: self.links,
            uid: self.uid,
            gid: self.gid,
            rdev: self.device,
            blksize: BLOCK_SIZE as u32,
            flags: 0,
        }
    }
}

/// The kernel's name of a kind.
pub(super) fn file_type(kind: NodeKind) -> FileType {
    match kind {
        NodeKind::File => FileType::RegularFile,
        NodeKind::Directory => FileType::Directory,
        NodeKind::Symlink => FileType::Symlink,
        NodeKind::Fifo => FileType::NamedPipe,
        NodeKind::Socket => FileType::Socket,
        NodeKind::CharDevice => FileType::CharDevice,
        NodeKind::BlockDevice => FileType::BlockDevice,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_1970_arrive_as_the_program_set_them() {
        // utimensat(-1 s, 300_000_000 ns) as fuser 0.18 decodes it.
        let arrived = UNIX_EPOCH - Duration::new(1, 300_000_000);
        let time = Time::of_request(arrived);
        assert_eq!(time, Time(-700_000_000));
        assert_eq!(time.system(), UNIX_EPOCH - Duration::from_millis(700));
        assert_eq!(
            Time::of_request(UNIX_EPOCH - Duration::from_secs(5)),
            Time(-5_000_000_000)
        );
    }
}
