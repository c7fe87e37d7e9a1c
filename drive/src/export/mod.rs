//! Recordings as other tools read them: a trace of Treering, the text of blkparse, a log of fio.
//!
//! All three show the drive as one device: writes are where their blocks lie on the drive, on
//! either face. Names, contents and marks have no counterpart.
//!
//! | event | trace | blkparse | fio |
//! |---|---|---|---|
//! | write | a put of each block | `D WS`, synced `D WFS`, in sectors | `write`, in bytes |
//! | discard | a delete of each block that holds something | `D D` | `trim` |
//! | flush | – | `D F` | `datasync`, or `sync` of the whole drive |
//!
//! Parts of sectors are rounded outward to whole ones, because a drive has nothing smaller.

mod blkparse;
mod fio;
mod requests;
mod trace;

#[cfg(test)]
mod tests;

pub use blkparse::blkparse;
pub use fio::{IologVersion, fio_iolog};
pub use trace::{Imported, import};
