//! Alibaba block traces (January 2020).
//!
//! ```text
//! device_id,opcode,offset,length,timestamp
//! 0,R,126703644672,4096,1577808000000626
//! ```
//!
//! Five columns. The published file has no header line; if there is one, it is skipped. The opcode
//! is R or W, offset and length are in bytes, and the timestamp is in us. A device is a virtual
//! disk.
//!
//! Source: <https://github.com/alibaba/block-traces>, README, "Schema", `io_traces.csv`.

use crate::OpKind;
use crate::import::emit::{Emit, Fault, Request};
use crate::import::fields::{number, scaled, split};
use crate::import::plugin::TextFormat;

#[derive(Debug, Default)]
pub(super) struct Alibaba {
    begun: bool,
}

impl TextFormat for Alibaba {
    fn line(&mut self, line: &[u8], out: &mut Emit<'_>) -> Result<(), Fault> {
        const LAYOUT: &str = "`device_id,opcode,offset,length,timestamp`";
        let [device, opcode, offset, length, at] = split(line, b',', LAYOUT)?;
        let begun = std::mem::replace(&mut self.begun, true);
        if !begun && device == b"device_id" {
            return Ok(());
        }
        number(device, "a device id")?;
        let kind = match opcode {
            b"R" => OpKind::Get,
            b"W" => OpKind::Put,
            _ => return Err(Fault::bad("opcode R or W", opcode)),
        };
        out.request(Request {
            kind,
            device,
            offset: number(offset, "an offset in bytes")?,
            length: number(length, "a length in bytes")?,
            time_ns: Some(scaled(at, 1000, "a timestamp in us")?),
        })
    }
}
