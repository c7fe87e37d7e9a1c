//! The kernel's words for ours, and ours for the kernel's.

use std::time::Duration;

use fuser::{
    Errno, FileAttr, FopenFlags, Generation, INodeNo, OpenAccMode, OpenFlags, ReplyEmpty,
    ReplyEntry, ReplyXattr, Request, TimeOrNow,
};

use super::attributes::XattrMust;
use super::nodes::Time;
use super::state::{Answer, Caller};
use crate::face::PageCache;
use crate::recording::NodeId;

/// How long the kernel may keep names: only it changes them.
const NAMES_TTL: Duration = Duration::from_secs(86_400);
/// How long it may keep attributes. Their changes it knows as well, but for the number of blocks,
/// which write-back changes.
pub(super) const ATTRIBUTES_TTL: Duration = Duration::from_secs(1);
/// Nodes are never used twice.
pub(super) const GENERATION: Generation = Generation(0);

/// The node of a number of the kernel.
pub(super) fn node(ino: INodeNo) -> NodeId {
    NodeId(ino.0)
}

/// Who sent a request.
pub(super) fn caller(request: &Request) -> Caller {
    Caller {
        uid: request.uid(),
        gid: request.gid(),
    }
}

/// The time that a request asks for.
pub(super) fn time(time: TimeOrNow) -> Time {
    match time {
        TimeOrNow::SpecificTime(time) => Time::of_request(time),
        TimeOrNow::Now => Time::now(),
    }
}

/// Whether a file is opened for writing.
pub(super) fn writes(flags: OpenFlags) -> bool {
    flags.acc_mode() != OpenAccMode::O_RDONLY
}

/// Answers whether it was done.
pub(super) fn empty(reply: ReplyEmpty, answer: Answer<()>) {
    match answer {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error),
    }
}

/// Answers with the node of a name.
pub(super) fn entry(reply: ReplyEntry, answer: Answer<FileAttr>) {
    match answer {
        Ok(found) => {
            reply.entry_with_ttls(&ATTRIBUTES_TTL, &NAMES_TTL, &found, GENERATION);
        }
        Err(error) => reply.error(error),
    }
}

/// Answers with an extended attribute or the list of them, or how large it is.
pub(super) fn value(reply: ReplyXattr, size: u32, answer: Answer<&[u8]>) {
    match answer {
        Err(error) => reply.error(error),
        // Values are at most 64 KiB, lists 1 MiB.
        Ok(value) if size == 0 => reply.size(value.len() as u32),
        Ok(value) if value.len() > size as usize => reply.error(Errno::ERANGE),
        Ok(value) => reply.data(value),
    }
}

/// How the kernel treats an open file.
pub(super) fn open_flags(page_cache: PageCache) -> FopenFlags {
    // Only the kernel changes files, so that what it has of one stays right. Without dirty pages a
    // close has nothing to say.
    match page_cache {
        PageCache::WriteBack => FopenFlags::FOPEN_KEEP_CACHE,
        PageCache::WriteThrough => FopenFlags::FOPEN_KEEP_CACHE | FopenFlags::FOPEN_NOFLUSH,
    }
}

/// What the flags of `setxattr` say; `None` if nothing that makes sense.
pub(super) fn must(flags: i32) -> Option<XattrMust> {
    match flags {
        0 => Some(XattrMust::Whatever),
        libc::XATTR_CREATE => Some(XattrMust::BeNew),
        libc::XATTR_REPLACE => Some(XattrMust::Exist),
        _ => None,
    }
}
