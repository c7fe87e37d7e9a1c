//! CloudPhysics vscsi traces: binary, little-endian.
//!
//! ```text
//! v1  0       4       8       12      14      16            24            32
//!     | sn    | len   | nSG   | cmd   | ver   | lbn         | ts          |              ver 0x01xx
//! v2  0       2       4       8       12      16            24            32            40
//!     | cmd   | ver   | sn    | len   | nSG   | lbn         | ts          | rt          |   ver 0x02xx
//! ```
//!
//! len is in bytes, lbn counts units of 512 bytes, ts is in us, and cmd is a SCSI operation code. A
//! file holds one virtual disk. The first record decides the version, and all others must have it
//! too.
//!
//! Source: Waldspurger et al., "Efficient MRC construction with SHARDS", FAST 2015; libCacheSim,
//! `traceReader/customizedReader/vscsi.h`.

use crate::import::binary::{u16_le, u32_le, u64_le};
use crate::import::emit::{Emit, Fault, Request};
use crate::import::plugin::BinaryFormat;
use crate::import::words::{Meaning, scsi};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Version {
    #[default]
    One,
    Two,
}

#[derive(Debug, Default)]
pub(super) struct Vscsi {
    version: Version,
}

impl BinaryFormat for Vscsi {
    fn record_len(&mut self, start: &[u8]) -> Result<usize, Fault> {
        // Try v1 first. In a v2 record, v1's version field is the upper half of nSG, a count that
        // is never that large; in a v1 record, v2's version field is part of a running number and
        // could match by chance.
        let version = |at: usize| start.get(at + 1).copied();
        if version(14) == Some(1) {
            self.version = Version::One;
            Ok(32)
        } else if version(2) == Some(2) {
            self.version = Version::Two;
            Ok(40)
        } else {
            Err(Fault::bad(
                "a vscsi record of version 1 or 2",
                &start[..start.len().min(40)],
            ))
        }
    }

    fn record(&mut self, record: &[u8], out: &mut Emit<'_>) -> Result<(), Fault> {
        let (cmd, ver, len, major) = match self.version {
            Version::One => (u16_le(record, 12), u16_le(record, 14), u32_le(record, 4), 1),
            Version::Two => (u16_le(record, 0), u16_le(record, 2), u32_le(record, 8), 2),
        };
        if ver >> 8 != major {
            return Err(Fault::Bad {
                expected: format!("a vscsi record of version {major}"),
                found: format!("version {ver:#06x}"),
            });
        }
        let lbn = u64_le(record, 16);
        let time_us = u64_le(record, 24);
        let kind = match scsi(u64::from(cmd)) {
            Meaning::Op(kind) => kind,
            Meaning::NoCounterpart => {
                out.leave_out(format!("SCSI {cmd:02x}").as_bytes());
                return Ok(());
            }
        };
        let scaled = |value: u64, unit, what: &str| {
            value
                .checked_mul(unit)
                .ok_or_else(|| Fault::bad(what, value.to_string().as_bytes()))
        };
        out.request(Request {
            kind,
            device: b"",
            offset: scaled(lbn, 512, "an lbn that a device can have")?,
            length: u64::from(len),
            time_ns: Some(scaled(time_us, 1000, "a time of at most 584 years in us")?),
        })
    }
}
