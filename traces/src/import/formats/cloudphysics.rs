//! CloudPhysics block traces as CSV, in the form of libCacheSim's sample.
//!
//! ```text
//! version,time,op,size,lbn
//! 1,5633898,2a,512,42932745
//! ```
//!
//! Five columns and a header line. Time is in seconds, op is a SCSI operation code in hexadecimal
//! (28 read, 2a write), size is in bytes, and lbn counts units of 512 bytes. A file holds one
//! virtual disk.
//!
//! Source: libCacheSim, `data/cloudPhysicsIO.csv`. It is the CSV form of the
//! [`vscsi`](super::vscsi) records of Waldspurger et al., FAST 2015.

use crate::import::emit::{Emit, Fault, Request};
use crate::import::fields::{hex, number, scaled, split, time};
use crate::import::plugin::TextFormat;
use crate::import::words::{Meaning, scsi};

#[derive(Debug, Default)]
pub(super) struct Cloudphysics {
    begun: bool,
}

impl TextFormat for Cloudphysics {
    fn line(&mut self, line: &[u8], out: &mut Emit<'_>) -> Result<(), Fault> {
        let [version, at, code, size, lbn] = split(line, b',', "`version,time,op,size,lbn`")?;
        let begun = std::mem::replace(&mut self.begun, true);
        if !begun && version == b"version" {
            return Ok(());
        }
        number(version, "a version")?;
        let time_ns = Some(time(at, 1_000_000_000, "a time in seconds")?);
        let meaning = scsi(hex(code, "a SCSI operation code")?);
        let offset = scaled(lbn, 512, "an lbn")?;
        let length = number(size, "a size in bytes")?;
        match meaning {
            Meaning::Op(kind) => out.request(Request {
                kind,
                device: b"",
                offset,
                length,
                time_ns,
            }),
            Meaning::NoCounterpart => {
                out.leave_out(&[b"SCSI ", code].concat());
                Ok(())
            }
        }
    }
}
