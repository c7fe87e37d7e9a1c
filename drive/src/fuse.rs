//! What all FUSE file systems here have in common: who may use them, what is wrong when one cannot
//! be mounted, and how a file system of one file looks.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    Errno, FileAttr, FileType, Generation, INodeNo, ReplyAttr, ReplyDirectory, ReplyEntry,
    SessionACL,
};
use treering_engine::BLOCK_SIZE;

use crate::error::DriveError;

/// Programs that mount and unmount for users other than root, with the places where `fuser` looks
/// for them as well.
pub(crate) const FUSERMOUNT: [&str; 4] = [
    "fusermount3",
    "fusermount",
    "/bin/fusermount3",
    "/bin/fusermount",
];

/// Who may use a file system. Servers give up root, and look at their files as somebody else; whoever
/// is not root may not allow that.
pub(crate) fn users() -> SessionACL {
    match rustix::process::geteuid().is_root() {
        true => SessionACL::All,
        false => SessionACL::Owner,
    }
}

/// What is missing, if mounting or opening `/dev/fuse` has failed with this error.
pub(crate) fn no_fuse(error: io::Error, what: impl Into<String>) -> DriveError {
    let missing = |what: &str, needed: String| DriveError::Missing {
        what: what.into(),
        needed,
    };
    if !Path::new("/dev/fuse").exists() || error.raw_os_error() == Some(libc::ENODEV) {
        let how = "`modprobe fuse`, and in a container `--device /dev/fuse`";
        return missing(
            "/dev/fuse",
            format!("drives are served through FUSE: {how}"),
        );
    }
    // What `fusermount3` says comes as words only.
    let words = error.to_string();
    let words = words.trim();
    if words.contains("Operation not permitted") {
        let how = "use sudo, and in a container `--device /dev/fuse --cap-add SYS_ADMIN`";
        let needed = format!("drives are mounted through FUSE: {how} ({words})");
        return missing("permission to mount", needed);
    }
    match error.kind() {
        io::ErrorKind::NotFound => missing(
            "fusermount3",
            "it mounts FUSE file systems where one is not root: install fuse3".into(),
        ),
        io::ErrorKind::PermissionDenied => missing(
            "permission to use /dev/fuse",
            "drives are served through FUSE: use sudo, or give /dev/fuse the mode 666 as \
             distributions do"
                .into(),
        ),
        kind => DriveError::system(what)(io::Error::new(kind, words.to_owned())),
    }
}

/// The only file of a file system that has one.
pub(crate) const FILE: INodeNo = INodeNo(2);

/// A file system of one file, as the kernel asks for it.
pub(crate) struct OneFile<'a> {
    /// The file's name.
    pub(crate) name: &'a str,
    /// Its size in bytes.
    pub(crate) size: u64,
    /// How long the kernel may keep all this.
    pub(crate) keep: Duration,
}

impl OneFile<'_> {
    fn attributes(&self, node: INodeNo) -> Option<FileAttr> {
        let (kind, perm, nlink, size) = match node {
            INodeNo::ROOT => (FileType::Directory, 0o755, 2, 0),
            FILE => (FileType::RegularFile, 0o666, 1, self.size),
            _ => return None,
        };
        Some(FileAttr {
            ino: node,
            size,
            blocks: size.div_ceil(512),
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind,
            perm,
            nlink,
            uid: rustix::process::getuid().as_raw(),
            gid: rustix::process::getgid().as_raw(),
            rdev: 0,
            blksize: BLOCK_SIZE as u32,
            flags: 0,
        })
    }

    pub(crate) fn lookup(&self, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.attributes(FILE) {
            Some(found) if parent == INodeNo::ROOT && name == self.name => {
                reply.entry(&self.keep, &found, Generation(0));
            }
            _ => reply.error(Errno::ENOENT),
        }
    }

    pub(crate) fn getattr(&self, node: INodeNo, reply: ReplyAttr) {
        match self.attributes(node) {
            Some(found) => reply.attr(&self.keep, &found),
            None => reply.error(Errno::ENOENT),
        }
    }

    pub(crate) fn readdir(&self, node: INodeNo, offset: u64, mut reply: ReplyDirectory) {
        if node != INodeNo::ROOT {
            return reply.error(Errno::ENOTDIR);
        }
        let entries = [
            (INodeNo::ROOT, FileType::Directory, "."),
            (INodeNo::ROOT, FileType::Directory, ".."),
            (FILE, FileType::RegularFile, self.name),
        ];
        for (at, (node, kind, name)) in entries.into_iter().enumerate().skip(offset as usize) {
            if reply.add(node, at as u64 + 1, kind, name) {
                break;
            }
        }
        reply.ok();
    }
}
