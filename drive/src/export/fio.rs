//! A log that `fio --read_iolog` replays, version 3.

use std::io::Write;

use super::requests::{Request, buffered, requests};
use crate::error::DriveError;
use crate::recording::Reader;

/// The version of a log of fio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IologVersion {
    /// Without times: any fio of this century replays it.
    Two,
    /// With a time of each request: fio 3.31 and newer.
    Three,
}

/// Writes the requests of a recording, from its next event to its end, as a log of fio. `file` is
/// what fio writes to; it is one word.
///
/// # Errors
/// [`DriveError::Parameter`] if `file` is no single word; those of the reader and of `out`.
pub fn fio_iolog(
    reader: &mut Reader,
    version: IologVersion,
    file: &str,
    out: impl Write,
) -> Result<(), DriveError> {
    if file.is_empty() || file.contains(|c: char| c.is_whitespace()) {
        return Err(DriveError::Parameter {
            name: "file",
            why: format!("expected a file name without spaces, found {file:?}"),
        });
    }
    let stamp = |wall_ns: u64| match version {
        IologVersion::Two => String::new(),
        IologVersion::Three => format!("{} ", wall_ns / 1000),
    };
    buffered(out, |out| {
        let number = match version {
            IologVersion::Two => 2,
            IologVersion::Three => 3,
        };
        let (begin, mut last) = (stamp(0), 0);
        let head = format!("fio version {number} iolog\n{begin}{file} add\n{begin}{file} open\n");
        let failed = DriveError::system("write the export");
        out.write_all(head.as_bytes()).map_err(failed)?;
        requests(reader, |wall_ns, request| {
            last = wall_ns;
            let (action, offset, len) = match request {
                Request::Write { offset, len, .. } => ("write", offset, len),
                Request::Discard { offset, len } => ("trim", offset, len),
                Request::Flush { all: true } => ("sync", 0, 0),
                Request::Flush { all: false } => ("datasync", 0, 0),
            };
            writeln!(out, "{}{file} {action} {offset} {len}", stamp(wall_ns))
        })?;
        writeln!(out, "{}{file} close", stamp(last)).map_err(DriveError::system("write the export"))
    })
}
