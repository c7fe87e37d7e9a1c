//! Tencent cloud block storage (CBS) traces (October 2018).
//!
//! ```text
//! Timestamp,Offset,Size,IOType,VolumeID
//! 1538323200,12910952,128,0,1063
//! ```
//!
//! Five columns. The published files have no header line; if there is one, it is skipped. The
//! timestamp is in seconds since 1970. Offset and size count sectors of 512 bytes, and the type is
//! 0 for a read and 1 for a write. A device is a volume.
//!
//! Source: the README of SNIA IOTTA trace 28064 (Zhang et al., "OSCA: An Online-Model Based Cache
//! Allocation Scheme in Cloud Block Storage Systems", USENIX ATC 2020).

use crate::import::emit::{Emit, Fault, Request};
use crate::import::fields::{number, scaled, split};
use crate::import::plugin::TextFormat;
use crate::import::words::flag;

#[derive(Debug, Default)]
pub(super) struct Tencent {
    begun: bool,
}

impl TextFormat for Tencent {
    fn line(&mut self, line: &[u8], out: &mut Emit<'_>) -> Result<(), Fault> {
        const LAYOUT: &str = "`Timestamp,Offset,Size,IOType,VolumeID`";
        let [at, offset, size, kind, volume] = split(line, b',', LAYOUT)?;
        let begun = std::mem::replace(&mut self.begun, true);
        if !begun && at == b"Timestamp" {
            return Ok(());
        }
        number(volume, "a volume id")?;
        out.request(Request {
            kind: flag(kind, 1)?,
            device: volume,
            offset: scaled(offset, 512, "an offset in sectors")?,
            length: scaled(size, 512, "a size in sectors")?,
            time_ns: Some(scaled(at, 1_000_000_000, "a timestamp in seconds")?),
        })
    }
}
