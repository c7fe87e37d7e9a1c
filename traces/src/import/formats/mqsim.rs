//! MQSim ASCII traces.
//!
//! ```text
//! arrival    device  start_sector  sectors  type
//! 938513000  4       264719034     16       0
//! ```
//!
//! Five columns, separated by white space. The arrival is in ns, sectors have 512 bytes, and the
//! type is 0 for a write and 1 for a read.
//!
//! Source: MQSim (Tavakkol et al., FAST 2018), `src/exec/` and its sample traces.

use crate::import::emit::{Emit, Fault, Request};
use crate::import::fields::{number, scaled, words};
use crate::import::plugin::TextFormat;
use crate::import::words::flag;

#[derive(Debug)]
pub(super) struct Mqsim;

impl TextFormat for Mqsim {
    fn line(&mut self, line: &[u8], out: &mut Emit<'_>) -> Result<(), Fault> {
        let [arrival, device, start, sectors, kind] =
            words(line, "`arrival device start_sector sectors type`")?;
        number(device, "a device number")?;
        out.request(Request {
            kind: flag(kind, 0)?,
            device,
            offset: scaled(start, 512, "a start sector")?,
            length: scaled(sectors, 512, "a number of sectors")?,
            time_ns: Some(number(arrival, "an arrival time in ns")?),
        })
    }
}
