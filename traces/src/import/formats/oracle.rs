//! libCacheSim oracleGeneral traces: binary, little-endian.
//!
//! ```text
//! 0       4             12      16            24
//! | time  | id          | size  | next access |                  oracleGeneral
//! 0       4             12      16   17   19            27
//! | time  | id          | size  | op | ns | next access |        oracleGeneralOpNS
//! prepend, 9 delete, 10 incr, 11 decr, 12 read, 13 write, 14 update) and a namespace, which is
//! ignored because ids are unique without it.
//!
//! A key is the id in 8 bytes, big-endian. A put's value has the object's size.
//!
//! Source: libCacheSim, `traceReader/customizedReader/oracle/oracleGeneralBin.h` and
//! `include/libCacheSim/request.h`.
//!
//! Time is a u32 in seconds, id a u64 (often a hash of the key), size a u32 in bytes. Next access
//! is an i64: the number of the object's next request, or -1. It serves to tell a trace from other
//! bytes.
//!
//! The 24-byte form has **no write flag**, so [`OracleOp`] decides how requests are imported. The
//! 27-byte form has the operation in libCacheSim's numbering (1 get, 2 gets, 3 set, 4 add, 5 cas, 6
//! replace, 7 append,

use crate::OpKind;
use crate::import::binary::{u32_le, u64_le};
use crate::import::emit::{Emit, Fault, KeyOp};
use crate::import::expire::Ttl;
use crate::import::options::OracleOp;
use crate::import::plugin::BinaryFormat;
use crate::import::words::Meaning;

#[derive(Debug)]
pub(super) struct OracleGeneral {
    what: Option<OracleOp>,
}

impl OracleGeneral {
    pub(super) fn new(what: Option<OracleOp>) -> Self {
        OracleGeneral { what }
    }
}

/// Returns the meaning of an operation in libCacheSim's numbering (`req_op_e`).
pub(super) fn meaning(op: u8) -> Result<Meaning, Fault> {
    Ok(Meaning::Op(match op {
        0 => return Ok(Meaning::NoCounterpart),
        1 | 2 | 12 => OpKind::Get,
        3..=8 | 10 | 11 | 13 | 14 => OpKind::Put,
        9 => OpKind::Delete,
        other => {
            return Err(Fault::Bad {
                expected: "an operation from 0 to 14".into(),
                found: other.to_string(),
            });
        }
    }))
}

/// Checks that `next` is a request number or the mark for none. This tells records from other
/// bytes.
pub(super) fn check_next(next: i64, record: &[u8]) -> Result<(), Fault> {
    let is_known = next == i64::MAX || (-2..1 << 48).contains(&next);
    if is_known && record.iter().any(|byte| *byte != 0) {
        return Ok(());
    }
    Err(Fault::bad(
        "a request with the number of the object's next one, or -1",
        record,
    ))
}

impl BinaryFormat for OracleGeneral {
    fn record_len(&mut self, _start: &[u8]) -> Result<usize, Fault> {
        Ok(if self.what == Some(OracleOp::Recorded) {
            27
        } else {
            24
        })
    }

    fn record(&mut self, record: &[u8], out: &mut Emit<'_>) -> Result<(), Fault> {
        check_next(u64_le(record, record.len() - 8) as i64, record)?;
        let id = u64_le(record, 4);
        let kind = match self.what {
            None | Some(OracleOp::Get) => OpKind::Get,
            Some(OracleOp::Put) => OpKind::Put,
            Some(OracleOp::Recorded) => match meaning(record[16])? {
                Meaning::Op(kind) => kind,
                Meaning::NoCounterpart => {
                    out.leave_out(b"nop");
                    return Ok(());
                }
            },
        };
        let op = KeyOp {
            kind,
            key: &id.to_be_bytes(),
            value_len: u32_le(record, 12),
            scan_len: 0,
            client: b"",
            time_ns: Some(u64::from(u32_le(record, 0)) * 1_000_000_000),
            ttl: Ttl::Keep,
        };
        out.key_op(op, 1)
    }

    fn warning(&self, _records: u64) -> Option<String> {
        self.what.is_none().then(|| {
            "oracle-general has no write flag: every request was taken for a get \
             (choose get, put or recorded)"
                .into()
        })
    }
}
