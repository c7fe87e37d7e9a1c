//! MSR Cambridge block traces.
//!
//! ```text
//! Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime
//! 128166372003061629,hm,0,Write,7014912,4096,26
//! ```
//!
//! Seven columns. The published files have no header line; if there is one, it is skipped. The
//! timestamp is a Windows file time, in ticks of 100 ns since 1601. Offset and size are in bytes. A
//! device is a host with a disk number.
//!
//! Source: SNIA IOTTA trace 388 (Narayanan et al., "Write off-loading", FAST 2008), its README.

use crate::import::emit::{Emit, Fault, Request};
use crate::import::fields::{number, split, time};
use crate::import::plugin::TextFormat;
use crate::import::words::{Meaning, word};

#[derive(Debug, Default)]
pub(super) struct Msr {
    device: Vec<u8>,
    begun: bool,
}

impl TextFormat for Msr {
    fn line(&mut self, line: &[u8], out: &mut Emit<'_>) -> Result<(), Fault> {
        let [at, host, disk, kind, offset, size, _response] = split(
            line,
            b',',
            "`Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`",
        )?;
        let begun = std::mem::replace(&mut self.begun, true);
        if !begun && at == b"Timestamp" {
            return Ok(());
        }
        let time_ns = Some(time(at, 100, "a timestamp in 100 ns")?);
        let Some(Meaning::Op(kind)) = word(kind) else {
            return Err(Fault::bad("Read or Write", kind));
        };
        self.device.clear();
        self.device.extend_from_slice(host);
        self.device.push(b',');
        self.device.extend_from_slice(disk);
        out.request(Request {
            kind,
            device: &self.device,
            offset: number(offset, "an offset in bytes")?,
            length: number(size, "a size in bytes")?,
            time_ns,
        })
    }
}
