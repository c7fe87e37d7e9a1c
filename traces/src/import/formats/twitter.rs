//! Twitter cache traces.
//!
//! ```text
//! timestamp,key,key_size,value_size,client,op,TTL
//! 0,nz:u:eeW511W3dcH3de3d15ec,25,350,12,get,0
//! ```
//!
//! Seven columns and no header line. The timestamp is in seconds and sizes are in bytes. The op is
//! one of get, gets, set, add, replace, cas, append, prepend, delete, incr, decr. Keys are
//! anonymised and used unchanged, so `key_size` (of the original key) is ignored. A key may contain
//! commas, so the other columns are counted from both ends of the line. TTL is in seconds: a put's
//! key expires after it, or never if it is 0.
//!
//! Source: <https://github.com/twitter/cache-trace> (Yang et al., OSDI 2020).

use crate::import::emit::{Emit, Fault, KeyOp};
use crate::import::expire::Ttl;
use crate::import::fields::{number, size, time};
use crate::import::plugin::TextFormat;
use crate::import::words::{Meaning, keeps_expiry, word};

#[derive(Debug)]
pub(super) struct Twitter;

impl TextFormat for Twitter {
    fn line(&mut self, line: &[u8], out: &mut Emit<'_>) -> Result<(), Fault> {
        let too_few = || {
            Fault::bad(
                "7 columns, `timestamp,key,key_size,value_size,client,op,TTL`",
                line,
            )
        };
        let mut rest = line;
        let mut last = || {
            let comma = memchr::memrchr(b',', rest).ok_or_else(too_few)?;
            let column = rest[comma + 1..].trim_ascii();
            rest = &rest[..comma];
            Ok(column)
        };
        let [ttl, op, client, value_size, key_size] = [last()?, last()?, last()?, last()?, last()?];
        let comma = memchr::memchr(b',', rest).ok_or_else(too_few)?;
        let (at, key) = (&rest[..comma], &rest[comma + 1..]);
        let ttl = Ttl::seconds(number(ttl, "a TTL in seconds")?);
        number(key_size, "a key size in bytes")?;
        let Some(Meaning::Op(kind)) = word(op) else {
            return Err(Fault::bad(
                "an operation (get, gets, set, add, replace, cas, …)",
                op,
            ));
        };
        let op = KeyOp {
            kind,
            key,
            value_len: size(value_size, "a value size in bytes")?,
            scan_len: 1,
            client,
            time_ns: Some(time(at, 1_000_000_000, "a timestamp in seconds")?),
            ttl: if keeps_expiry(op) { Ttl::Keep } else { ttl },
        };
        out.key_op(op, 1)
    }
}
