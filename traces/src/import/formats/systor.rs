//! SYSTOR '17 block traces of a virtual desktop infrastructure.
//!
//! ```text
//! Timestamp,Response,IOType,LUN,Offset,Size
//! 1456135200.013118000,0.000531,W,4,1998229504,4096
//! ```
//!
//! Six columns and a header line in each file. The timestamp is in seconds since 1970 with a
//! fraction. The response is in seconds or blank, and is ignored. The type is R or W; offset and
//! size are in bytes. A device is a LUN. A blank type is a request without a response message.
//! Whether it was a read or a write is unknown, so it is left out and counted.
//!
//! Source: the README of SNIA IOTTA trace 4928 (Lee et al., "Understanding storage traffic
//! characteristics on enterprise virtual desktop infrastructure", SYSTOR 2017).

use crate::OpKind;
use crate::import::emit::{Emit, Fault, Request};
use crate::import::fields::{number, split, time};
use crate::import::plugin::TextFormat;

#[derive(Debug)]
pub(super) struct Systor;

impl TextFormat for Systor {
    fn line(&mut self, line: &[u8], out: &mut Emit<'_>) -> Result<(), Fault> {
        const LAYOUT: &str = "`Timestamp,Response,IOType,LUN,Offset,Size`";
        let [at, response, kind, lun, offset, size] = split(line, b',', LAYOUT)?;
        // Several hours of a trace may be concatenated, each with a header line.
        if at == b"Timestamp" {
            return Ok(());
        }
        let time_ns = Some(time(at, 1_000_000_000, "a timestamp in seconds")?);
        if !response.is_empty() {
            time(response, 1_000_000_000, "a response time in seconds")?;
        }
        number(lun, "a LUN")?;
        let offset = number(offset, "an offset in bytes")?;
        let length = number(size, "a size in bytes")?;
        let kind = match kind {
            b"R" => OpKind::Get,
            b"W" => OpKind::Put,
            b"" => {
                out.leave_out(b"request of unknown type");
                return Ok(());
            }
            _ => return Err(Fault::bad("type R, W or blank", kind)),
        };
        out.request(Request {
            kind,
            device: lun,
            offset,
            length,
            time_ns,
        })
    }
}
