//! VANS memory access traces.
//!
//! ```text
//! 0xADDR      R/W/C[:idle_clocks]
//! 0x00000040  W
//! 0x00000080  R:12
//! ```
//!
//! Two columns. Every access is one cache line of 64 bytes. A key is the line's number (address /
//! 64) in 8 bytes, big-endian. A put has the value size that the options give. C (write back a
//! line) has no counterpart. The frequency of the idle clocks is not stated, so operations have no
//! time.
//!
//! Source: VANS (Wang et al., "Characterizing and modeling non-volatile memory systems", MICRO
//! 2020), its trace format.

use crate::OpKind;
use crate::import::emit::{Emit, Fault, KeyOp};
use crate::import::expire::Ttl;
use crate::import::fields::{hex, number, words};
use crate::import::plugin::TextFormat;

/// Bytes of a cache line.
const LINE: u64 = 64;

#[derive(Debug)]
pub(super) struct Vans;

impl TextFormat for Vans {
    fn line(&mut self, line: &[u8], out: &mut Emit<'_>) -> Result<(), Fault> {
        let [address, access] = words(line, "`0xADDR R/W/C[:idle_clocks]`")?;
        let number_of_line = hex(address, "an address")? / LINE;
        let kind = match access.first() {
            Some(b'R' | b'r') => Some(OpKind::Get),
            Some(b'W' | b'w') => Some(OpKind::Put),
            Some(b'C' | b'c') => None,
            _ => return Err(Fault::bad("R, W or C", access)),
        };
        match &access[1..] {
            [] => {}
            [b':', clocks @ ..] => {
                number(clocks, "idle clocks")?;
            }
            _ => return Err(Fault::bad("R, W or C, perhaps with :idle_clocks", access)),
        }
        let Some(kind) = kind else {
            out.leave_out(b"C (cache-line write-back)");
            return Ok(());
        };
        let op = KeyOp {
            kind,
            key: &number_of_line.to_be_bytes(),
            value_len: out.value_size,
            scan_len: 0,
            client: b"",
            time_ns: None,
            ttl: Ttl::Keep,
        };
        out.key_op(op, 1)
    }
}
