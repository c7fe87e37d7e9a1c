//! A simulated drive below the kernel's file interface: any program runs on it unmodified.
//!
//! ```text
//! program ──▶ kernel ──▶ FUSE ──▶ face ──▶ image: the bytes themselves
//!                                  │
//!                                  └─────▶ recording: every write, flush, discard, name, mark
//!                                              │
//!              measured and predicted on any drive, by cause, as often as wanted
//! ```
//!
//! Nothing is measured while the program runs. A run is recorded, and everything that is said
//! about it comes from the recording: the report of `treering drive run` is that of
//! `treering drive replay` on the recording that the run has just made.
//!
//! | module | contents |
//! |---|---|
//! | [`causes`] | what each write is for |
//! | [`cuts`] | power cuts over a recording |
//! | [`acks`] | `$TREERING_ACKS`: lines of the program that become marks |
//! | [`disk`] | the faces `ext4`, `xfs`, `btrfs` and `none`: a disk with a real file system on it |
//! | [`export`] | recordings as traces, blkparse's text and fio's logs |
//! | [`face`] | what a face is: a mounted directory over a drive |
//! | [`faults`] | errors that a drive gives on purpose |
//! | [`files`] | the face that is a file system of our own |
//! | [`space`] | which of the drive's blocks are free |
//! | [`image`](mod@image) | the drive's bytes, in memory or in a sparse file |
//! | [`measure`] | a recording on simulated drives, measured beside predicted |
//! | [`report`] | what comes out: JSON, text, HTML |
//! | [`layout`] | where a real file system has what on a disk |
//! | [`program`] | running the user's command on a drive |
//! | [`session`] | from the mount to the end of the recording |
//! | [`recording`] | what reached the drive, as a file |
//! | [`info`] | what is in a recording |

#![warn(missing_docs)]

pub mod acks;
mod busy;
pub mod causes;
pub mod cuts;
pub mod disk;
pub mod error;
pub mod export;
pub mod face;
pub mod faults;
pub mod files;
mod fuse;
pub mod image;
pub mod info;
mod janitor;
pub mod layout;
pub mod measure;
mod memory;
pub mod program;
pub mod recording;
pub mod report;
pub mod session;
pub mod space;

pub use error::DriveError;
