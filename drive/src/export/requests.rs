//! The requests that a drive got, as block layers write them down.

use std::io::{self, BufWriter, Write};

use crate::error::DriveError;
use crate::recording::event::{Extent, FlushKind, Write as Written};
use crate::recording::{Event, PIECE, Reader, Recorded};

/// Bytes of a sector.
pub(super) const SECTOR: u64 = 512;

/// The most bytes of a request. Longer discards are split: readers take long ones for damage.
pub(super) const MOST: u64 = 1 << 30;

/// A request to the drive, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    Write { offset: u64, len: u64, synced: bool },
    Discard { offset: u64, len: u64 },
    Flush { all: bool },
}

/// Calls `each` with the time and the requests of every event that is one.
pub(super) fn requests(
    reader: &mut Reader,
    mut each: impl FnMut(u64, Request) -> io::Result<()>,
) -> Result<(), DriveError> {
    let mut recorded = Recorded::default();
    while reader.next(&mut recorded)? {
        let now = recorded.wall_ns;
        let done = match &recorded.event {
            Event::Write(write) => of_write(write, |request| each(now, request)),
            Event::Discard { extents, .. } => of_discard(extents, |request| each(now, request)),
            Event::Flush { kind, .. } => {
                let all = *kind == FlushKind::Drive;
                each(now, Request::Flush { all })
            }
            _ => Ok(()),
        };
        done.map_err(DriveError::system("write the export"))?;
    }
    Ok(())
}

/// The sectors of a write, one request for each run of blocks that lie together.
fn of_write(write: &Written, mut each: impl FnMut(Request) -> io::Result<()>) -> io::Result<()> {
    let block = PIECE as u64;
    let begin = write.offset % block / SECTOR * SECTOR;
    let end = (write.offset % block + u64::from(write.len)).next_multiple_of(SECTOR);
    let (mut before, synced) = (0, write.synced);
    for run in joined(&write.extents) {
        let bytes = run.blocks.saturating_mul(block);
        let from = begin.saturating_sub(before).min(bytes);
        let to = end.saturating_sub(before).min(bytes);
        if from < to {
            let (offset, len) = (run.lba.saturating_mul(block) + from, to - from);
            each(Request::Write {
                offset,
                len,
                synced,
            })?;
        }
        before += bytes;
    }
    Ok(())
}

pub(super) fn of_discard(
    extents: &[Extent],
    mut each: impl FnMut(Request) -> io::Result<()>,
) -> io::Result<()> {
    for run in joined(extents) {
        let mut offset = run.lba.saturating_mul(PIECE as u64);
        let end = offset.saturating_add(run.blocks.saturating_mul(PIECE as u64));
        while offset < end {
            let len = MOST.min(end - offset);
            each(Request::Discard { offset, len })?;
            offset += len;
        }
    }
    Ok(())
}

/// Extents, with those that lie one behind the other joined.
fn joined(extents: &[Extent]) -> impl Iterator<Item = Extent> {
    let runs = extents.chunk_by(|a, b| a.lba.checked_add(a.blocks) == Some(b.lba));
    runs.map(|run| Extent {
        lba: run[0].lba,
        blocks: run
            .iter()
            .map(|extent| extent.blocks)
            .fold(0, u64::saturating_add),
    })
}

/// Writes to `out` through a buffer, and flushes it.
pub(super) fn buffered<W: Write>(
    out: W,
    fill: impl FnOnce(&mut BufWriter<W>) -> Result<(), DriveError>,
) -> Result<(), DriveError> {
    let mut out = BufWriter::with_capacity(1 << 16, out);
    fill(&mut out)?;
    out.flush().map_err(DriveError::system("write the export"))
}
