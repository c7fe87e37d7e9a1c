//! libCacheSim's own trace format, lcs: binary, little-endian, a header and records of fixed
//! length.
//!
//! ```text
//! header, 8192 bytes
//! 0       8         16       24      32      40           48           56             8184
//! | magic | version | stat   | n_req | n_obj | n_req_byte | n_obj_byte | … statistics | magic |
//!                     version
//! request
//! 0      4      12     16          24
//! | time | id   | size | next      |                                             version 1
//! 0      4      12     16   17     20          28
//! | time | id   | size | op | tenant | next    |                                 version 2
//! 0      4      12        20   21     24    28          36
//! | time | id   | size    | op | tenant | ttl | next    | features …              versions 3 to 8
//! ```
//!
//! Both magics are 0x123456789abcdef0. Time is a u32 in seconds, id a u64 (a hash of the key, or a
//! block address), and size is in bytes (u32, from version 3 on i64). op is a u8, tenant a u24, and
//! ttl a u32 in seconds (0, or negative as an i32, for none). next is an i64: the number of the
//! object's next request, or -1. Versions 4 to 8 add 1, 2, 4, 8 and 16 features of 4 bytes, which
//! are ignored.
//!
//! Operations use the numbering of [`oracle`](super::oracle). Version 1 has no operations, so
//! [`OracleOp`] decides. It may also decide for later versions, whose writers store 0 (no
//! operation) where they do not know it. A key is the id in 8 bytes, big-endian, as in
//! `oracle-general`; a put's value has the object's size; a client is a tenant. n_req is the number
//! of records: a file with fewer was cut, and one with more is not an lcs trace.
//!
//! Source: libCacheSim, `traceReader/customizedReader/lcs.h` and `lcs.c`.

use super::oracle::{check_next, meaning};
use crate::OpKind;
use crate::import::binary::{u32_le, u64_le};
use crate::import::emit::{Emit, Fault, KeyOp};
use crate::import::expire::Ttl;
use crate::import::options::OracleOp;
use crate::import::plugin::BinaryFormat;
use crate::import::words::Meaning;

/// The magic number at both ends of the header.
pub(super) const MAGIC: u64 = 0x1234_5678_9abc_def0;
const HEADER: usize = 8192;
/// Length of a version 3 record. Later versions append features to it.
const BASE: usize = 36;

#[derive(Debug)]
pub(super) struct Lcs {
    what: Option<OracleOp>,
    /// The number of requests in the header.
    version: u64,
    requests: u64,
    records: u64,
}

impl Lcs {
    pub(super) fn new(what: Option<OracleOp>) -> Self {
        Lcs {
            what,
            version: 0,
            requests: 0,
            records: 0,
        }
    }

    /// Returns the kind of every request if an option or the lack of a field decides it.
    fn taken_for(&self) -> Option<OpKind> {
        match (self.what, self.version) {
            (Some(OracleOp::Get), _) | (None, 1) => Some(OpKind::Get),
            (Some(OracleOp::Put), _) => Some(OpKind::Put),
            (Some(OracleOp::Recorded) | None, _) => None,
        }
    }
}

fn bad(expected: &str, found: impl ToString) -> Fault {
    Fault::Bad {
        expected: expected.into(),
        found: found.to_string(),
    }
}

impl BinaryFormat for Lcs {
    fn header_len(&self) -> usize {
        HEADER
    }

    fn header(&mut self, header: &[u8]) -> Result<(), Fault> {
        for at in [0, HEADER - 8] {
            if u64_le(header, at) != MAGIC {
                let expected = format!("the lcs magic {MAGIC:#x} at byte {at}");
                return Err(Fault::bad(expected, &header[at..at + 8]));
            }
        }
        self.version = u64_le(header, 8);
        if !(1..=8).contains(&self.version) {
            return Err(bad("an lcs version from 1 to 8", self.version));
        }
        if self.version == 1 && self.what == Some(OracleOp::Recorded) {
            let expected = "an lcs version from 2 on, whose requests say what they are";
            return Err(bad(expected, "version 1"));
        }
        let counts = [24, 32, 40, 48].map(|at| u64_le(header, at) as i64);
        let names = ["requests", "objects", "bytes requested", "bytes of objects"];
        for (count, name) in counts.into_iter().zip(names) {
            if count < 0 {
                return Err(bad(&format!("a number of {name}, 0 or more"), count));
            }
        }
        let [requests, objects, ..] = counts;
        if objects > requests {
            let expected = format!("at most {requests} objects, as many as there are requests");
            return Err(bad(&expected, objects));
        }
        self.requests = requests as u64;
        Ok(())
    }

    fn record_len(&mut self, _start: &[u8]) -> Result<usize, Fault> {
        Ok(match self.version {
            1 => 24,
            2 => 28,
            3 => BASE,
            version => BASE + (4 << (version - 4)),
        })
    }

    fn record(&mut self, record: &[u8], out: &mut Emit<'_>) -> Result<(), Fault> {
        self.records += 1;
        if self.records > self.requests {
            let expected = format!(
                "the end of the trace after {} requests, as its header says",
                self.requests
            );
            return Err(Fault::bad(expected, record));
        }
        let (op_at, next_at) = match self.version {
            1 => (None, 16),
            2 => (Some(16), 20),
            _ => (Some(20), 28),
        };
        check_next(u64_le(record, next_at) as i64, record)?;
        let size = match self.version {
            1 | 2 => u64::from(u32_le(record, 12)),
            _ => u64_le(record, 12),
        };
        let value_len = u32::try_from(size).map_err(|_| {
            let expected = format!("an object size of at most {} bytes", u32::MAX);
            bad(&expected, size as i64)
        })?;
        let (op, tenant) = match op_at {
            Some(at) => (record[at], u32_le(record, at) >> 8),
            None => (0, 0),
        };
        let kind = match self.taken_for() {
            Some(kind) => kind,
            None => match meaning(op)? {
                Meaning::Op(kind) => kind,
                Meaning::NoCounterpart => {
                    out.leave_out(b"nop");
                    return Ok(());
                }
            },
        };
        let ttl = match self.version {
            1 | 2 => Ttl::Keep,
            // append, prepend, incr, decr
            _ if matches!(op, 7 | 8 | 10 | 11) => Ttl::Keep,
            _ => match u32_le(record, 24) as i32 {
                ttl @ 1.. => Ttl::seconds(ttl as u64),
                _ => Ttl::Never,
            },
        };
        let client = tenant.to_be_bytes();
        let op = KeyOp {
            kind,
            key: &u64_le(record, 4).to_be_bytes(),
            value_len,
            scan_len: 0,
            client: &client,
            time_ns: Some(u64::from(u32_le(record, 0)) * 1_000_000_000),
            ttl,
        };
        out.key_op(op, 1)
    }

    fn warning(&self, records: u64) -> Option<String> {
        if records < self.requests {
            return Some(format!(
                "the header says {} requests, and {records} are there: the trace is cut short",
                self.requests
            ));
        }
        (self.version == 1 && self.what.is_none()).then(|| {
            "lcs version 1 has no write flag: every request was taken for a get \
             (choose get or put)"
                .into()
        })
    }
}
