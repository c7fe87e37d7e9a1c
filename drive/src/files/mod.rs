//! The face `files`: a file system of our own, in FUSE.
//!
//! ```text
//! program ─▶ kernel: permissions, locks, page cache
//!               │ one request, one thread of `fuse`
//!               ▼
//!            State, behind one lock ──▶ recording: what happens, in the order in which it does
//!               │        │      │
//!            nodes,    space:  journal, if the drive is kept
//!            names     places
//!               │        │
//!               └────────┴──▶ image: the bytes, at their places on the drive
//! ```
//!
//! Names and attributes are in memory. The bytes of files are in the blocks of the drive, where
//! [`Space`](crate::space::Space) puts them: growth goes where the file ends, if that is free; what
//! is overwritten stays where it is; what is truncated, punched or removed is discarded at once,
//! but a file that is removed while open when it is closed last.
//!
//! | module | contents |
//! |---|---|
//! | `fuse`, `words` | the kernel's requests, and its words for ours |
//! | `state` | all that there is, behind one lock; how an operation ends |
//! | `names` | making, linking, renaming, removing |
//! | `content` | reading, writing, resizing, reserving, punching |
//! | `attributes` | modes, owners, times, extended attributes |
//! | `acl` | access control lists |
//! | `seek` | `SEEK_DATA` and `SEEK_HOLE` |
//! | `nodes`, `directory`, `extents` | what a node, a directory, the map of a file are |
//! | `keep`, `journal` | a drive that survives the death of its process |
//! | `laid` | a drive that begins as a given tree |
//!
//! # What the kernel does
//!
//! It checks permissions, POSIX access control lists among them, and keeps all locks: `flock`,
//! POSIX locks and those of open files are exact, since all users of the drive are on one machine.
//!
//! With [`PageCache::WriteBack`](crate::face::PageCache::WriteBack) it keeps dirty pages, as above
//! a real drive, and writes them as whole pages: on `fsync`, under memory pressure, after some
//! seconds. Two things differ from a file system in the kernel. A `close` writes the file's dirty
//! pages, as on NFS. And a full drive shows where the pages are written, as with delayed
//! allocation: `write` succeeds, and `fsync`, `msync` or `close` fail.
//!
//! # What is not modelled
//!
//! - A file system's own bytes: neither names nor attributes nor maps are written to the drive, and
//!   take no room on it. The face with a real file system has them.
//! - `syncfs` and `sync` record no flush. The kernel then sends dirty pages and times, as requests
//!   like any others, and does not even wait for the answers; the request for a flush,
//!   `FUSE_SYNCFS`, it sends to virtiofs, and since Linux 6.18 to file systems on a block device. So
//!   a program that relies on them is shown a drive that makes no promise; on the faces with a real
//!   file system they are flushes. `fsync`, `fdatasync`, and `sync FILE` are flushes here too.
//! - A user who sets an access control list on a file of a group other than his first loses the
//!   file's sgid, even if he is a member of that group: `fuser` does not tell.
//! - `O_TMPFILE`, and `FALLOC_FL_COLLAPSE_RANGE` and `FALLOC_FL_INSERT_RANGE`, are refused with
//!   `EOPNOTSUPP`, as by other file systems.
//! - A read sets the time of the last read at most once a day, unless the file changed
//!   (`relatime`).

mod acl;
mod attributes;
mod content;
mod directory;
mod extents;
mod fuse;
mod journal;
mod keep;
mod laid;
mod mount;
mod names;
mod nodes;
mod seek;
mod state;
mod words;

pub(crate) use laid::{LaidNode, mount_laid};
pub use mount::{FilesMount, Stats, mount};
