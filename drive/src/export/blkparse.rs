//! The text that blkparse prints, of requests issued to the driver (action `D`).

use std::io::Write;

use super::requests::{Request, SECTOR, buffered, requests};
use crate::error::DriveError;
use crate::recording::Reader;

/// Writes the requests of a recording, from its next event to its end, as blkparse prints them.
///
/// ```text
///   8,0    0        1     0.000012000     1  D  WS 2048 + 8 [treering]
/// ```
///
/// # Errors
/// Those of the reader and of `out`.
pub fn blkparse(reader: &mut Reader, out: impl Write) -> Result<(), DriveError> {
    buffered(out, |out| {
        let mut number = 0_u64;
        requests(reader, |wall_ns, request| {
            number += 1;
            let (s, ns) = (wall_ns / 1_000_000_000, wall_ns % 1_000_000_000);
            write!(out, "  8,0    0 {number:>8} {s:>5}.{ns:09}     1  D ")?;
            let mut range = |rwbs: &str, offset: u64, len: u64| {
                let (sector, count) = (offset / SECTOR, len / SECTOR);
                writeln!(out, "{rwbs:>3} {sector} + {count} [treering]")
            };
            match request {
                Request::Write {
                    offset,
                    len,
                    synced: true,
                } => range("WFS", offset, len),
                Request::Write { offset, len, .. } => range("WS", offset, len),
                Request::Discard { offset, len } => range("D", offset, len),
                Request::Flush { .. } => writeln!(out, "  F [treering]"),
            }
        })
    })
}
