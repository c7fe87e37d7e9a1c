//! DiskSim ASCII traces.
//!
//! ```text
//! time      device  block  count  flags
//! 0.000000  0       41568  8      0
//! ```
//!
//! Five columns, separated by white space. Time is in ms with a fraction, blocks have 512 bytes,
//! and bit 0 of the flags (hexadecimal) means a read. The layout is that of `mqsim` with another
//! time unit.
//!
//! Source: DiskSim 4.0 reference manual, "ascii" trace format.

use crate::OpKind;
use crate::import::emit::{Emit, Fault, Request};
use crate::import::fields::{hex, number, scaled, time, words};
use crate::import::plugin::TextFormat;

#[derive(Debug)]
pub(super) struct Disksim;

impl TextFormat for Disksim {
    fn line(&mut self, line: &[u8], out: &mut Emit<'_>) -> Result<(), Fault> {
        let [at, device, block, count, flags] = words(line, "`time device block count flags`")?;
        number(device, "a device number")?;
        let read = hex(flags, "flags")? & 1 == 1;
        out.request(Request {
            kind: if read { OpKind::Get } else { OpKind::Put },
            device,
            offset: scaled(block, 512, "a block number")?,
            length: scaled(count, 512, "a number of blocks")?,
            time_ns: Some(time(at, 1_000_000, "an arrival time in ms")?),
        })
    }
}
