//! What is recorded: one [`Event`] for each thing that reached the drive.
//!
//! A *node* is a file, directory or whatever else has a name. Names are entries of directories that
//! point to nodes, as in the file systems below which real programs run; so hard links, renames and
//! files that are removed while open need no special case.
//!
//! On the face `files`, the root directory is node 1. On the faces with a real file system there is
//! one node, the disk, also 1: a write's offset is its place on the disk. What the real file system
//! has where is told by [`Event::Region`] and [`Event::Map`].

use serde::{Deserialize, Serialize};

/// The line of the mark before which only the making of a file system was recorded, or what a kept
/// drive held. What comes behind it is the program's.
pub const MOUNTED: &[u8] = b"treering: mounted";

/// A file, directory, symbolic link or other node; never used twice in a recording.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct NodeId(pub u64);

impl NodeId {
    /// The root directory of the face `files`; the disk of the others.
    pub const ROOT: NodeId = NodeId(1);
}

/// Consecutive blocks of the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extent {
    /// First block.
    pub lba: u64,
    /// Number of blocks of 4 KiB.
    pub blocks: u64,
}

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A character device.
    CharDevice,
    /// A block device.
    BlockDevice,
}

/// Bytes that reached the drive. The bytes themselves are stored apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// The node that was written.
    pub node: NodeId,
    /// First byte, within the node.
    pub offset: u64,
    /// Number of bytes, at least 1.
    pub len: u32,
    /// The drive's blocks that the bytes lie in, in the order of the file: those of the blocks
    /// `offset / 4096` to `(offset + len - 1) / 4096` of the node.
    pub extents: Vec<Extent>,
    /// Whether the bytes were durable when the write returned (`O_SYNC`, `O_DSYNC`).
    pub synced: bool,
    /// Whether the write came from the page cache, which may have delayed it.
    pub cached: bool,
}

/// A change of attributes. `None` means: as before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Permission bits.
    pub mode: Option<u32>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Time of the last change of the contents, in nanoseconds since 1970.
    pub modified_ns: Option<i64>,
}

/// What a flush makes durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushKind {
    /// `fdatasync`: a file's bytes and its size.
    Data,
    /// `fsync`: a file's bytes, size and attributes.
    File,
    /// `fsync` of a directory: its entries.
    Directory,
    /// All of it: `syncfs`, or a flush of the disk.
    Drive,
}

/// Something that reached the drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A node came into being; an [`Event::Link`] names it.
    Make {
        /// The node.
        node: NodeId,
        /// What it is.
        kind: NodeKind,
        /// Permission bits.
        mode: u32,
        /// Owner.
        uid: u32,
        /// Group.
        gid: u32,
        /// Device number of a device.
        device: u32,
        /// Target of a symbolic link.
        target: Vec<u8>,
    },
    /// A directory got an entry.
    Link {
        /// The directory.
        parent: NodeId,
        /// The entry's name.
        name: Vec<u8>,
        /// What it names.
        node: NodeId,
    },
    /// A directory lost an entry (`unlink`, `rmdir`).
    Unlink {
        /// The directory.
        parent: NodeId,
        /// The entry's name.
        name: Vec<u8>,
        /// What it named.
        node: NodeId,
    },
    /// An entry moved, in one step.
    Rename {
        /// The directory it was in.
        parent: NodeId,
        /// Its name there.
        name: Vec<u8>,
        /// The directory it is in now.
        to: NodeId,
        /// Its name there.
        to_name: Vec<u8>,
        /// What it names.
        node: NodeId,
        /// What the new name named before.
        other: Option<NodeId>,
        /// Whether `other` got the old name (`RENAME_EXCHANGE`), instead of losing its name.
        exchange: bool,
    },
    /// A node's last name and last user are gone. Its blocks are discarded next.
    Free {
        /// The node.
        node: NodeId,
    },
    /// Bytes were written.
    Write(Write),
    /// A file's size was set. If it shrank, its blocks are discarded next.
    Resize {
        /// The file.
        node: NodeId,
        /// Its size in bytes.
        size: u64,
    },
    /// Room was reserved (`fallocate`); it reads as zeros.
    Allocate {
        /// The file.
        node: NodeId,
        /// First byte.
        offset: u64,
        /// Number of bytes.
        len: u64,
        /// Whether the file's size stays as it is.
        keep_size: bool,
    },
    /// Bytes of a file became zeros without being written; whole blocks are discarded next.
    Punch {
        /// The file.
        node: NodeId,
        /// First byte.
        offset: u64,
        /// Number of bytes.
        len: u64,
    },
    /// The drive may forget these blocks.
    Discard {
        /// Whose blocks they were.
        node: NodeId,
        /// The blocks.
        extents: Vec<Extent>,
    },
    /// Attributes of a node changed.
    Attributes {
        /// The node.
        node: NodeId,
        /// What changed.
        change: Attributes,
    },
    /// An extended attribute was set, or removed if there is no value.
    Xattr {
        /// The node.
        node: NodeId,
        /// Its name.
        name: Vec<u8>,
        /// Its value.
        value: Option<Vec<u8>>,
    },
    /// Something was made durable. Writes that returned before it began are.
    Flush {
        /// The node that was synced; the root if all were.
        node: NodeId,
        /// What of it.
        kind: FlushKind,
    },
    /// A flush failed. On the face `files`, what was written to the file since its last flush never
    /// reaches the drive; on a disk, nothing became durable.
    FailedFlush {
        /// The node that was to be synced.
        node: NodeId,
        /// What of it.
        kind: FlushKind,
    },
    /// A line that the program wrote to `$TREERING_ACKS`.
    Mark {
        /// The line, without its end.
        line: Vec<u8>,
    },
    /// Where a real file system has something that is no file: its journal, its tables.
    Region {
        /// What lies there, for example `journal`.
        name: String,
        /// Where.
        extents: Vec<Extent>,
    },
    /// Where a real file system has a file now.
    Map {
        /// The file's path from the root of that file system.
        path: Vec<u8>,
        /// Its inode number there.
        inode: u64,
        /// Where its bytes lie.
        extents: Vec<Extent>,
    },
    /// What a node holds, as its first bytes told: for example `pg-index`.
    Hint {
        /// The node.
        node: NodeId,
        /// What it holds.
        what: String,
    },
}
