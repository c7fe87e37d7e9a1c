//! SPC-1 / UMass block traces.
//!
//! ```text
//! ASU,LBA,Size,Opcode,Timestamp[,...]
//! 0,303567,3584,w,0.000000
//! ```
//!
//! Five columns and any number of optional ones. LBA counts units of 512 bytes, size is in bytes,
//! the opcode is R or W in either case, and the timestamp is in seconds. A device is an application
//! storage unit (ASU).
//!
//! Source: Storage Performance Council, "SPC Trace File Format Specification" revision 1.0.1; UMass
//! Trace Repository.

use crate::import::emit::{Emit, Fault, Request};
use crate::import::fields::{number, scaled, time};
use crate::import::plugin::TextFormat;
use crate::import::words::{Meaning, word};

#[derive(Debug)]
pub(super) struct Spc;

impl TextFormat for Spc {
    fn line(&mut self, line: &[u8], out: &mut Emit<'_>) -> Result<(), Fault> {
        let mut columns = line.splitn(6, |&b| b == b',').map(<[u8]>::trim_ascii);
        let mut column = || {
            columns.next().ok_or_else(|| {
                Fault::bad("at least 5 columns, `ASU,LBA,Size,Opcode,Timestamp`", line)
            })
        };
        let [asu, lba, size, opcode, at] = [column()?, column()?, column()?, column()?, column()?];
        number(asu, "an ASU number")?;
        let Some(Meaning::Op(kind)) = word(opcode) else {
            return Err(Fault::bad("opcode R or W", opcode));
        };
        out.request(Request {
            kind,
            device: asu,
            offset: scaled(lba, 512, "an LBA")?,
            length: number(size, "a size in bytes")?,
            time_ns: Some(time(at, 1_000_000_000, "a timestamp in seconds")?),
        })
    }
}
