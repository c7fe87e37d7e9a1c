//! RocksDB traces as `trace_analyzer --convert_to_human_readable_trace` writes them.
//!
//! ```text
//! hexkey              type  cf  value_size  time_us
//! Merge, 6 Seek, 7 SeekForPrev, 8 MultiGet (one line per key), 9 PutEntity. A seek is a scan of
//! one record, a merge is a put with its operand's size, and a range delete has no counterpart.
//! Keys of column family 0 are used unchanged; keys of other families are prefixed with the
//! family's number, 4 bytes, big-endian. With `no_key` the analyzer omits the keys; such a trace
//! cannot be replayed.
//!
//! Source: RocksDB, `tools/trace_analyzer_tool.cc` and `trace_replay/trace_replay.h`.
//! ```
//!
//! Five columns, separated by white space. Types: 0 Get, 1 Put, 2 Delete, 3 SingleDelete, 4
//! RangeDelete,

use crate::OpKind;
use crate::import::emit::{Emit, Fault, KeyOp};
use crate::import::expire::Ttl;
use crate::import::fields::{hex_bytes, number, scaled, size, words};
use crate::import::plugin::TextFormat;

#[derive(Debug, Default)]
pub(super) struct Rocksdb {
    key: Vec<u8>,
}

impl TextFormat for Rocksdb {
    fn line(&mut self, line: &[u8], out: &mut Emit<'_>) -> Result<(), Fault> {
        let [key, kind, family, value_size, at] = words(
            line,
            "`hexkey type cf value_size time_us` (written without no_key)",
        )?;
        let kind = match number(kind, "an operation type")? {
            0 | 8 => Some(OpKind::Get),
            1 | 5 | 9 => Some(OpKind::Put),
            2 | 3 => Some(OpKind::Delete),
            6 | 7 => Some(OpKind::Scan),
            4 => None,
            _ => return Err(Fault::bad("an operation type from 0 to 9", kind)),
        };
        let family = size(family, "a column family")?;
        let value_len = size(value_size, "a value size in bytes")?;
        let time_ns = Some(scaled(at, 1000, "a time in us")?);
        self.key.clear();
        if family != 0 {
            self.key.extend_from_slice(&family.to_be_bytes());
        }
        hex_bytes(key, "a key", &mut self.key)?;
        let Some(kind) = kind else {
            out.leave_out(b"RangeDelete");
            return Ok(());
        };
        let key = &self.key[..];
        out.key_op(
            KeyOp {
                kind,
                key,
                value_len,
                scan_len: 1,
                client: b"",
                time_ns,
                ttl: Ttl::Keep,
            },
            1,
        )
    }
}
